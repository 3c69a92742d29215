//! Text that a plan's commands replace and that is in no file of the plan, such as a crontab. It is kept beside the
//! audit log until the change has ended, so that `audit recover` can put it back.
//!
//! The text is what the host itself has seen: the output of the command by which the module looked. The audit log holds
//! the command line that puts it back and the hash of that command's input. Nothing else is run to restore it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::plan::Action;
use super::prepare::{PreparedAction, PreparedPlan, PreparedStep};
use host_audit::ChangeBegun;
use host_base::problem::{Category, Problem};
use host_base::sha256;
use host_base::{Command, Privilege};
use host_capability::command_line;
use host_target::Target;
use host_text::redact::{excerpt, redact};

/// The name of the directory in the audit log's directory.
const DIRECTORY: &str = "replaced";
/// The longest time between keeping the text and recording the change.
const LATELY: Duration = Duration::from_secs(60);
/// The time for each command.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The text that one step replaces.
#[derive(Debug, Serialize, Deserialize)]
struct ReplacedText {
    /// The command that shows the current text.
    look: StoredCommand,
    /// The command that puts the former text back, by reading it.
    restore: StoredCommand,
    /// The former text, in hexadecimal digits.
    before: String,
    /// The hash of the text that the step put in its place.
    sha256_after: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredCommand {
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    privilege: Privilege,
}

impl StoredCommand {
    fn of(command: &Command) -> Self {
        let Command { program, args, env, privilege, .. } = command.clone();
        Self { program, args, env, privilege }
    }

    fn command(&self, stdin: Option<Vec<u8>>) -> Command {
        let Self { program, args, env, privilege } = self;
        Command {
            env: env.clone(),
            stdin,
            privilege: privilege.clone(),
            ..Command::new(program, args, TIMEOUT)
        }
    }

    fn shown(&self) -> String {
        std::iter::once(&self.program).chain(&self.args).cloned().collect::<Vec<_>>().join(" ")
    }
}

/// Writes the text that the plan's commands replace to the disk. It writes nothing where they replace nothing that the
/// host has seen.
pub(super) async fn keep(log: &Path, id: &str, plan: &PreparedPlan) -> io::Result<()> {
    let steps = plan.change.steps.iter().zip(&plan.steps);
    let all: Vec<ReplacedText> =
        steps.filter_map(|(step, prepared)| of_step(&step.action, prepared)).collect();
    if all.is_empty() {
        return Ok(());
    }
    let (path, all) = (path(log, id), serde_json::to_vec(&all)?);
    tokio::task::spawn_blocking(move || write(&path, &all)).await?
}

fn write(path: &Path, all: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    // The audit log's own directory may not exist yet.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(all)?;
    file.sync_all()?;
    File::open(directory)?.sync_all()
}

/// Removes kept text of changes that have ended. A server that was killed after recording an end had no time to do so.
/// A new change keeps its text before it is recorded, so recent text stays.
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

fn of_step(action: &Action, prepared: &PreparedStep) -> Option<ReplacedText> {
    let (Action::Run(run), PreparedAction::Run(_)) = (action, &prepared.action) else { return None };
    let look = prepared.looked_by.as_ref()?;
    let restore = prepared.undo.iter().find(|undo| prepared.is_in_diff(undo))?;
    Some(ReplacedText {
        look: StoredCommand::of(look),
        restore: StoredCommand::of(&restore.command),
        before: hex::encode(restore.command.stdin.as_deref()?),
        sha256_after: sha256::of(ended(run.command.stdin.as_deref()?)),
    })
}

/// Removes the text of a change that has ended well.
pub(super) fn forget(log: &Path, id: &str) {
    match fs::remove_file(path(log, id)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(change = id, %error, "the kept text that a change replaced could not be removed");
        }
        _ => {}
    }
}

fn path(log: &Path, id: &str) -> PathBuf {
    log.join(DIRECTORY).join(id)
}

/// Puts back the text that a change's commands have replaced, the latest first. Each result is a sentence. With
/// `force`, text that somebody has changed since is overwritten as well.
pub(super) async fn restore(
    log: &Path,
    target: &Target,
    begun: &ChangeBegun,
    force: bool,
) -> Vec<Result<String, String>> {
    let kept = match fs::read(path(log, &begun.id)) {
        Ok(kept) => kept,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            return vec![Err(format!("the kept text that the commands replaced can't be read: {error}"))];
        }
    };
    let all: Vec<ReplacedText> = match serde_json::from_slice(&kept) {
        Ok(all) => all,
        Err(error) => {
            return vec![Err(format!("the kept text that the commands replaced can't be read: {error}"))];
        }
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
    replaced: &ReplacedText,
    force: bool,
) -> Result<&'static str, Problem> {
    let before = hex::decode(&replaced.before).unwrap_or_default();
    // The recorded line of the undo names its input by a hash.
    let command = replaced.restore.command(Some(before.clone()));
    let line = redact(&command_line("", &command)).into_owned();
    let mark = format!("{line} < ({} bytes that aren't kept, SHA-256 {})", before.len(), sha256::of(&before));
    let is_on_record = begun.undo.iter().flatten().any(|undo| undo.ends_with(&mark));
    if !is_on_record {
        let message = "its kept text isn't the one on record: somebody has changed it".to_owned();
        return Err(Problem::new("INVALID_RECORD", Category::Validation, message));
    }
    let look = target.run_all(&[replaced.look.command(None)]).await.pop();
    let look = look.unwrap_or_else(|| Err(super::file_problems::no_answer()))?;
    // A program that has no text to show reports that by its exit code.
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

/// The text without its last newline, which not every program prints.
fn ended(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\n").unwrap_or(text)
}
