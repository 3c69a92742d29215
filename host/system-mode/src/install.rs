//! What `system install` would have to do so that everything is as it must be; nothing, where it is.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::account::{self, BASE, HOME, State};
use super::fragments::{self, Configured, Wanted};
use super::record::{self, Record, sha256};
use super::rights::{self, Rights};
use super::staged::{Staged, names};
use super::steps::{self, Failed, Step};
use super::{ACCOUNT, SystemError, programs, put, trust};
use crate::sudoers;
use host_base::passwd;
use host_target::Target;

/// Where the program is put that others than root could change.
pub const PROGRAM: &str = "/usr/local/bin/linux-sysadmin";
/// And its modules, where it finds them by itself.
pub const MODULES: &str = "/usr/local/lib/linux-sysadmin/modules";

/// A server that starts for the first time compiles its modules.
const FIRST_START: Duration = Duration::from_secs(300);

/// What is asked for.
pub struct Request {
    /// The running program.
    pub program: PathBuf,
    /// Its modules.
    pub modules: PathBuf,
    /// Whether those were named and aren't the ones that it finds by itself.
    pub named: bool,
    /// Who is to use the server; at an upgrade, nobody more than now.
    pub user: Option<String>,
    /// Reads the account's configuration.
    pub configured: Configured,
}

/// What would be done.
pub struct Installation {
    /// In this order.
    pub steps: Vec<Step>,
    /// For the operator.
    pub notes: Vec<String>,
    /// What sudo may start.
    pub rights: Rights,
    /// Whom it is tried out as.
    user: Option<String>,
    _staged: Option<Staged>,
}

impl Installation {
    /// Finds out what is missing or wrong. Changes nothing but a copy of the modules that is gone again with this.
    pub async fn plan(target: &Target, request: Request) -> Result<Self, SystemError> {
        if !rustix::process::geteuid().is_root() {
            return Err(SystemError::NotRoot("install"));
        }
        target.program("sudo").await?;
        target.program("visudo").await?;
        let mut planning = Planning { record: Record::read(Path::new(record::FILE))?, steps: Vec::new() };
        let known = planning.record.clone();
        let users = users(target, request.user.as_deref()).await?;
        let sudo = sudoers::sudo_version(target).await;

        planning.account(target).await?;
        let mut notes = Vec::new();
        let doubt = doubt(&request)?;
        let staged = match &doubt {
            None if !request.named => None,
            _ => Some(Staged::new(&request.modules)?),
        };
        let (program, modules) = match &staged {
            None => (request.program.clone(), request.modules.clone()),
            Some(staged) => {
                planning.copies(&request, staged)?;
                notes.extend(staged.left_out.iter().cloned());
                (PROGRAM.into(), staged.directory.clone())
            }
        };
        if !rights::is_plain_program(&program) {
            let reason = format!(
                "{} can't be written in sudoers as it is: it has other characters than letters, \
                                  digits and `. _ + - /`",
                program.display()
            );
            return Err(SystemError::Refused(reason));
        }
        let home = Path::new(HOME);
        let fragments =
            fragments::wanted(target, &modules, home.is_dir().then_some(home), request.configured).await?;
        planning.fragments(&fragments)?;
        notes.extend(fragments.notes);
        let rights = Rights { program, users };
        planning.sudos(rights::FILE.into(), rights.text(sudo))?;
        let copies = planning.steps.iter().any(|step| matches!(step, Step::Copy { .. }));
        if let Some(doubt) = doubt.filter(|_| copies) {
            let note = "check the SHA-256 of what is copied: others than root could have changed it";
            notes.insert(0, format!("{note}, since {doubt}"));
        }
        if planning.record != known {
            let text = planning.record.text();
            // Before what it names: a run that is killed leaves nothing that it doesn't name.
            let record = Step::Write { path: record::FILE.into(), text, mode: 0o644, is_sudos: false };
            let at = planning
                .steps
                .iter()
                .position(|step| matches!(step, Step::Account { .. } | Step::Copy { .. }));
            planning.steps.insert(at.unwrap_or(planning.steps.len()), record);
        }
        Ok(Self { steps: planning.steps, notes, rights, user: request.user, _staged: staged })
    }

    /// Does it, and tries it out as the user whom it is for. Where anything fails, all of it is undone.
    pub async fn carry_out(&self, target: &Target) -> Result<(), Failed> {
        steps::carry_out(target, &self.steps, async || {
            programs::must(target, "visudo", &["-c"]).await?;
            if let Some(user) = &self.user {
                try_out(target, user, &self.rights.program).await?;
            }
            Ok(())
        })
        .await
    }
}

/// The server starts for this user, and ends with its input.
async fn try_out(target: &Target, user: &str, program: &Path) -> Result<(), SystemError> {
    let program = program.display().to_string();
    let args = ["-n", "-u", user, "--", "sudo", "-n", "-u", ACCOUNT, &program, "serve"];
    let output = programs::run(target, "sudo", &args, FIRST_START).await?;
    programs::succeeded("sudo", &args, output).map(drop)
}

/// Those who may use the server now, and whoever is to.
async fn users(target: &Target, more: Option<&str>) -> Result<BTreeSet<String>, SystemError> {
    let file = Path::new(rights::FILE);
    let text = passwd::text(file).map_err(|error| SystemError::io(file, error))?;
    let mut users = BTreeSet::new();
    if !text.is_empty() {
        let rights = Rights::parse(&text).map_err(|line| {
            let reason =
                format!("{} holds what `system install` didn't write, so it stays: {line}", file.display());
            SystemError::Refused(reason)
        })?;
        users = rights.users;
    }
    if let Some(user) = more {
        is_a_person(target, user).await?;
        users.insert(user.to_owned());
    }
    match users.is_empty() {
        true => Err(SystemError::Refused("whose client is to use the server? Say `--for USER`".to_owned())),
        false => Ok(users),
    }
}

/// Whether this is an account that a line of sudoers can name, and that isn't root or the server's own.
async fn is_a_person(target: &Target, user: &str) -> Result<(), SystemError> {
    let refused = |reason: &str| Err(SystemError::Refused(format!("{user:?} {reason}")));
    if !rights::is_plain(user) {
        return refused(
            "can't be named in sudoers: expected letters, digits and `. _ -`, a lower-case letter first",
        );
    }
    // Accounts may come from elsewhere than passwd.
    let found = programs::run(target, "getent", &["passwd", user], programs::SHORT).await?;
    let entries = passwd::parse(&String::from_utf8_lossy(&found.stdout));
    let server = super::account().map(|account| account.uid);
    match entries.into_iter().find(|entry| entry.name == user) {
        None => refused("is no account of this machine"),
        Some(entry) if entry.uid == 0 => refused("is root, who needs no such line"),
        Some(entry) if user == ACCOUNT || Some(entry.uid) == server => refused("is the server's own account"),
        Some(_) => Ok(()),
    }
}

/// Who besides root could have changed the program or its modules. Where nobody could, they stay where they are.
fn doubt(request: &Request) -> Result<Option<String>, SystemError> {
    let Request { program, modules, .. } = request;
    match trust::who_else(program).map_err(|error| SystemError::io(program, error))? {
        None => trust::who_else_in(modules).map_err(|error| SystemError::io(modules, error)),
        found => Ok(found),
    }
}

struct Planning {
    /// As it is to be.
    record: Record,
    steps: Vec<Step>,
}

impl Planning {
    /// The account, and what it owns.
    async fn account(&mut self, target: &Target) -> Result<(), SystemError> {
        let (base, home) = (Path::new(BASE), Path::new(HOME));
        self.roots(base)?;
        let uid = match account::state(target).await? {
            State::Wrong(why) => {
                let reason = format!(
                    "there is an account {ACCOUNT} that isn't this program's: {why}. Rename or remove it, or put it right"
                );
                return Err(SystemError::Refused(reason));
            }
            State::Missing { group_exists } => {
                self.steps.push(Step::Account { home: home.into(), group_exists });
                self.record.account = true;
                None
            }
            State::Right(account) => Some(account.uid),
        };
        let wrong = |error| SystemError::io(home, error);
        let is_right = match (uid, fs::symlink_metadata(home)) {
            (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => false,
            (_, Err(error)) => return Err(wrong(error)),
            (None, Ok(_)) => false,
            (Some(uid), Ok(_)) => account::wrong_with(home, uid, 0o700).map_err(wrong)?.is_none(),
        };
        if !is_right {
            self.steps.push(Step::Directory { path: home.into(), is_accounts: true, exists: home.exists() });
        }
        let own = account::own(home, uid.unwrap_or(u32::MAX)).map_err(wrong)?;
        if uid.is_none() && !own.wrong.is_empty() {
            let reason = format!(
                "{HOME} is there without an account that it belongs to: move it away, or give it to one"
            );
            return Err(SystemError::Refused(reason));
        }
        let wrong = own.wrong.into_iter().map(|(path, _)| path).collect::<Vec<_>>();
        if !own.missing.is_empty() || !wrong.is_empty() {
            self.steps.push(Step::OwnDirectories { missing: own.missing, wrong });
        }
        Ok(())
    }

    /// A directory of root's, made where it is missing.
    fn roots(&mut self, path: &Path) -> Result<(), SystemError> {
        safe(path)?;
        if !path.is_dir() {
            self.steps.push(Step::Directory { path: path.into(), is_accounts: false, exists: false });
        }
        Ok(())
    }

    /// Program and modules, as far as they aren't there already.
    fn copies(&mut self, request: &Request, staged: &Staged) -> Result<(), SystemError> {
        let modules = Path::new(MODULES);
        for directory in [modules.parent(), Some(modules)].into_iter().flatten() {
            self.roots(directory)?;
        }
        let names = names(&staged.directory)?;
        for name in &names {
            let (from, to) = (staged.directory.join(name), modules.join(name));
            let sha256 = sha256(&from).map_err(|error| SystemError::io(&from, error))?;
            let original = request.modules.join(name);
            self.copy(from, to, &original, 0o644, sha256)?;
        }
        let old = if modules.is_dir() { super::staged::names(modules)? } else { BTreeSet::new() };
        for name in old.difference(&names) {
            self.record.files.remove(&modules.join(name));
            self.steps.push(Step::Remove { path: modules.join(name) });
        }
        // The very file that runs, whatever is at its path by now.
        let running = Path::new(put::RUNNING);
        let sha256 = sha256(running).map_err(|error| SystemError::io(running, error))?;
        self.copy(running.into(), PROGRAM.into(), &request.program, 0o755, sha256)
    }

    fn copy(
        &mut self,
        from: PathBuf,
        to: PathBuf,
        original: &Path,
        mode: u32,
        sha256: String,
    ) -> Result<(), SystemError> {
        safe(&to)?;
        let is_there = record::sha256(&to).is_ok_and(|found| found == sha256)
            && is_roots(&to, mode).map_err(|error| SystemError::io(&to, error))?;
        if is_there {
            return Ok(());
        }
        self.record.files.insert(to.clone(), sha256.clone());
        let original = original.to_owned();
        self.steps.push(Step::Copy { from, original, to, mode, sha256 });
        Ok(())
    }

    fn fragments(&mut self, wanted: &Wanted) -> Result<(), SystemError> {
        let directory = Path::new(fragments::DIRECTORY);
        safe(directory)?;
        let stale = fragments::stale(directory, &wanted.files)?;
        for (path, text) in &wanted.files {
            match path.extension().is_some_and(|extension| extension == "env") {
                true => self.file(path.clone(), text.clone(), false)?,
                false => self.sudos(path.clone(), text.clone())?,
            }
        }
        self.steps.extend(stale.into_iter().map(|path| Step::Remove { path }));
        Ok(())
    }

    fn sudos(&mut self, path: PathBuf, text: String) -> Result<(), SystemError> {
        self.file(path, text, true)
    }

    fn file(&mut self, path: PathBuf, text: String, is_sudos: bool) -> Result<(), SystemError> {
        let is_there = is_file_with(&path, &text).map_err(|error| SystemError::io(&path, error))?;
        if !is_there {
            self.steps.push(Step::Write { path, text, mode: 0o440, is_sudos });
        }
        Ok(())
    }
}

/// Whether a file of sudo's is there as it must be.
pub fn is_file_with(path: &Path, text: &str) -> io::Result<bool> {
    Ok(is_roots(path, 0o440)? && passwd::text(path)? == text)
}

/// Whether this is a file of root's with this mode.
fn is_roots(path: &Path, mode: u32) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(found.is_file() && (found.uid(), found.gid(), found.mode() & 0o7777) == (0, 0, mode)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Refuses to put anything where others than root could change it.
fn safe(path: &Path) -> Result<(), SystemError> {
    match trust::who_else(path).map_err(|error| SystemError::io(path, error))? {
        None => Ok(()),
        Some(who) => {
            let reason = format!("{} is no place for it: {who}. Put that right first", path.display());
            Err(SystemError::Refused(reason))
        }
    }
}
