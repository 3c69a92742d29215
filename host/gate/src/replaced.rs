//! What commands replace that is no file of a plan's, as a crontab: kept beside the audit log until the change has ended,
//! so that `audit recover` can put it back.
//!
//! It is what the host itself has seen: the answer of the command by which the module looked. The record holds the command
//! line that puts it back, and the hash of what that reads: nothing else is run to restore it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::plan::Action;
use super::prepare::{Doing, Plan, Prepared};
use host_audit::ChangeBegun;
use host_base::problem::{Category, Problem};
use host_base::sha256;
use host_base::{Command, Keep, Privilege};
use host_capability::command_line;
use host_target::Target;
use host_text::redact::{excerpt, redact};

/// In the audit log's directory.
const DIRECTORY: &str = "replaced";
/// How long it may take from what is kept to the record of the change.
const LATELY: Duration = Duration::from_secs(60);
/// For each command.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The text that one step replaces.
#[derive(Debug, Serialize, Deserialize)]
struct Replaced {
    /// Shows what is there.
    look: Line,
    /// Puts back what was there: it reads that.
    restore: Line,
    /// The text that was there, in hexadecimal digits.
    before: String,
    /// The hash of the text that the step put in its place.
    sha256_after: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    privilege: Privilege,
}

impl Line {
    fn of(command: &Command) -> Self {
        let Command { program, args, env, privilege, .. } = command.clone();
        Self { program, args, env, privilege }
    }

    fn command(&self, stdin: Option<Vec<u8>>) -> Command {
        let Self { program, args, env, privilege } = self;
        Command {
            program: program.clone(),
            args: args.clone(),
            env: env.clone(),
            stdin,
            privilege: privilege.clone(),
            timeout: TIMEOUT,
            keep: Keep::Head,
            heard: None,
        }
    }

    fn shown(&self) -> String {
        std::iter::once(&self.program).chain(&self.args).cloned().collect::<Vec<_>>().join(" ")
    }
}

/// Keeps what the plan's commands replace, on the disk; nothing where they replace nothing that was seen.
pub(super) async fn keep(log: &Path, id: &str, plan: &Plan) -> io::Result<()> {
    let steps = plan.change.steps.iter().zip(&plan.steps);
    let all: Vec<Replaced> = steps.filter_map(|(step, prepared)| of_step(&step.action, prepared)).collect();
    if all.is_empty() {
        return Ok(());
    }
    let (path, all) = (path(log, id), serde_json::to_vec(&all)?);
    tokio::task::spawn_blocking(move || write(&path, &all)).await?
}

fn write(path: &Path, all: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    // The log itself may have nothing yet.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(all)?;
    file.sync_all()?;
    File::open(directory)?.sync_all()
}

/// Removes what was kept of changes that are over: a server that was killed right after an end was on record didn't come
/// to it. A change that begins keeps what it replaces before it is on record, so what is of lately stays.
pub fn forget_ended(log: &Path, unfinished: &[&str]) {
    let is_of_lately = |entry: &fs::DirEntry| {
        let age =
            entry.metadata().and_then(|metadata| metadata.modified()).map(|modified| modified.elapsed());
        !matches!(age, Ok(Ok(age)) if age > LATELY)
    };
    for entry in fs::read_dir(log.join(DIRECTORY)).into_iter().flatten().flatten() {
        if let Some(id) = entry.file_name().to_str()
            && !unfinished.contains(&id)
            && !is_of_lately(&entry)
        {
            forget(log, id);
        }
    }
}

fn of_step(action: &Action, prepared: &Prepared) -> Option<Replaced> {
    let (Action::Run(run), Doing::Run(_)) = (action, &prepared.doing) else { return None };
    let look = prepared.looked_by.as_ref()?;
    let restore = prepared.undo.iter().find(|undo| prepared.is_in_diff(undo))?;
    Some(Replaced {
        look: Line::of(look),
        restore: Line::of(&restore.command),
        before: hex::encode(restore.command.stdin.as_deref()?),
        sha256_after: sha256::of(ended(run.command.stdin.as_deref()?)),
    })
}

/// Removes what was kept of a change that has ended well.
pub(super) fn forget(log: &Path, id: &str) {
    match fs::remove_file(path(log, id)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(change = id, %error, "what a change replaced is still kept");
        }
        _ => {}
    }
}

fn path(log: &Path, id: &str) -> PathBuf {
    log.join(DIRECTORY).join(id)
}

/// Puts back what a change's commands have replaced, the latest first; each becomes a sentence, of what was put back or of
/// what wasn't. What somebody has changed since is put back only by `force`.
pub(super) async fn restore(
    log: &Path,
    target: &Target,
    begun: &ChangeBegun,
    force: bool,
) -> Vec<Result<String, String>> {
    let kept = match fs::read(path(log, &begun.id)) {
        Ok(kept) => kept,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![Err(format!("what the commands replaced can't be read: {error}"))],
    };
    let all: Vec<Replaced> = match serde_json::from_slice(&kept) {
        Ok(all) => all,
        Err(error) => return vec![Err(format!("what the commands replaced can't be read: {error}"))],
    };
    let mut said = Vec::new();
    for replaced in all.iter().rev() {
        let shown = replaced.restore.shown();
        said.push(match put_back(target, begun, replaced, force).await {
            Ok(what) => Ok(format!("what `{shown}` replaces {what}")),
            Err(problem) => Err(format!("what `{shown}` replaces: {}", problem.message)),
        });
    }
    if said.iter().all(Result::is_ok) {
        forget(log, &begun.id);
    }
    said
}

async fn put_back(
    target: &Target,
    begun: &ChangeBegun,
    replaced: &Replaced,
    force: bool,
) -> Result<&'static str, Problem> {
    let before = hex::decode(&replaced.before).unwrap_or_default();
    // The undo's line on record names what it reads by its hash.
    let command = replaced.restore.command(Some(before.clone()));
    let line = redact(&command_line("", &command)).into_owned();
    let mark = format!("{line} < ({} bytes that aren't kept, SHA-256 {})", before.len(), sha256::of(&before));
    let is_on_record = begun.undo.iter().flatten().any(|undo| undo.ends_with(&mark));
    if !is_on_record {
        let message = "what was kept of it isn't what is on record: somebody has changed it".to_owned();
        return Err(Problem::new("INVALID_RECORD", Category::Validation, message));
    }
    let look = target.run_all(&[replaced.look.command(None)]).await.pop();
    let look = look.unwrap_or_else(|| Err(super::file_problems::no_answer()))?;
    // Where there is nothing, the program says so by its exit code.
    let now = (look.exit_code == 0).then_some(ended(&look.stdout));
    if now == Some(ended(&before)) {
        return Ok("is as it was before");
    }
    let is_ours = now.is_none_or(|now| sha256::of(now) == replaced.sha256_after);
    if !is_ours && !force {
        let message =
            "somebody has changed it since; --force restores what was there all the same".to_owned();
        return Err(Problem::new("FILE_CHANGED", Category::State, message));
    }
    let output = target.act(&command).await?;
    if output.exit_code != 0 {
        let said = excerpt(String::from_utf8_lossy(&output.stderr).trim(), 300);
        let message = format!("it ended with {}: {said}", output.exit_code);
        return Err(Problem::new("COMMAND_FAILED", Category::Other, message));
    }
    Ok("is put back")
}

/// Programs differ in whether they give a text its last newline.
fn ended(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\n").unwrap_or(text)
}
