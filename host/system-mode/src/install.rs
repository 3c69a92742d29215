//! Plans what `system install` has to do so that everything is as it must be. Where it is already, the plan is empty.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::account::{self, AccountState, BASE, HOME};
use super::fragments::{self, ModuleConfigReader, WantedFragments};
use super::install_record::{self, InstallRecord, sha256};
use super::module_copy::{ModuleCopy, names};
use super::serve_rights::{self, ServeRights};
use super::steps::{self, Step, StepsFailed};
use super::{ACCOUNT, SystemError, atomic_file, programs, trust, wall};
use crate::sudoers;
use host_base::passwd;
use host_target::Target;

/// The path to which the program is copied where accounts other than root could change it.
pub const PROGRAM: &str = "/usr/local/bin/linux-sysadmin";
/// The directory for its modules, where the program finds them by default.
pub const MODULES: &str = "/usr/local/lib/linux-sysadmin/modules";

/// The time limit of the first start. A server that starts for the first time compiles its modules.
const FIRST_START: Duration = Duration::from_secs(300);

/// The request of the operator.
pub struct InstallRequest {
    /// The running program.
    pub program: PathBuf,
    /// The directory of its modules.
    pub modules: PathBuf,
    /// Whether the operator named the modules, which then aren't those that the program finds by default.
    pub named: bool,
    /// The user who may use the server from now on. An upgrade adds none.
    pub user: Option<String>,
    /// Reads the account's configuration.
    pub read_module_config: ModuleConfigReader,
}

/// The steps of an installation.
pub struct Installation {
    /// The steps, in this order.
    pub steps: Vec<Step>,
    /// Sentences for the operator.
    pub notes: Vec<String>,
    /// The program that sudo may start, and its users.
    pub rights: ServeRights,
    /// The user as whom the server is tried out.
    user: Option<String>,
    _staged: Option<ModuleCopy>,
}

impl Installation {
    /// Finds out what is missing or wrong. It changes nothing but a copy of the modules, which is removed when this is
    /// dropped.
    pub async fn plan(target: &Target, request: InstallRequest) -> Result<Self, SystemError> {
        if !rustix::process::geteuid().is_root() {
            return Err(SystemError::NotRoot("install"));
        }
        target.program("sudo").await?;
        target.program("visudo").await?;
        let mut planning =
            Planner { record: InstallRecord::read(Path::new(install_record::FILE))?, steps: Vec::new() };
        let known = planning.record.clone();
        let users = users(target, request.user.as_deref()).await?;
        let sudo = sudoers::sudo_version(target).await;

        planning.account(target).await?;
        let mut notes = Vec::new();
        let doubt = doubt(&request)?;
        let staged = match &doubt {
            None if !request.named => None,
            _ => Some(ModuleCopy::new(&request.modules)?),
        };
        let (program, modules) = match &staged {
            None => (request.program.clone(), request.modules.clone()),
            Some(staged) => {
                planning.copies(&request, staged)?;
                notes.extend(staged.left_out.iter().cloned());
                (PROGRAM.into(), staged.directory.clone())
            }
        };
        if !serve_rights::is_plain_program(&program) {
            let reason = format!(
                "{} can't be written in sudoers as it is: it has other characters than letters, \
                                  digits and `. _ + - /`",
                program.display()
            );
            return Err(SystemError::Refused(reason));
        }
        let home = Path::new(HOME);
        let fragments =
            fragments::wanted(target, &modules, home.is_dir().then_some(home), request.read_module_config)
                .await?;
        planning.fragments(&fragments)?;
        planning.wall()?;
        notes.extend(fragments.notes);
        notes.extend(wall::writers().map_err(|error| SystemError::io(Path::new("/etc"), error))?);
        let rights = ServeRights { program, users };
        planning.sudos(serve_rights::FILE.into(), rights.text(sudo))?;
        let copies = planning.steps.iter().any(|step| matches!(step, Step::Copy { .. }));
        if let Some(doubt) = doubt.filter(|_| copies) {
            let note = "check the SHA-256 of what is copied: others than root could have changed it";
            notes.insert(0, format!("{note}, since {doubt}"));
        }
        if planning.record != known {
            let text = planning.record.text();
            // The record comes before what it names, so that a run that is killed leaves nothing without a record.
            let record =
                Step::Write { path: install_record::FILE.into(), text, mode: 0o644, is_sudos: false };
            let at = planning.steps.iter().position(|step| {
                matches!(step, Step::Account { .. } | Step::Copy { .. } | Step::RestartJournal)
            });
            planning.steps.insert(at.unwrap_or(planning.steps.len()), record);
        }
        Ok(Self { steps: planning.steps, notes, rights, user: request.user, _staged: staged })
    }

    /// Carries the steps out, and tries the server out as the user. If anything fails, all steps are undone.
    pub async fn carry_out(&self, target: &Target) -> Result<(), StepsFailed> {
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

/// Starts the server for this user. It ends with its input.
async fn try_out(target: &Target, user: &str, program: &Path) -> Result<(), SystemError> {
    let program = program.display().to_string();
    let args = ["-n", "-u", user, "--", "sudo", "-n", "-u", ACCOUNT, &program, "serve"];
    let output = programs::run(target, "sudo", &args, FIRST_START).await?;
    programs::succeeded("sudo", &args, output).map(drop)
}

/// Returns the users of the server: those of now, and the new one.
async fn users(target: &Target, more: Option<&str>) -> Result<BTreeSet<String>, SystemError> {
    let file = Path::new(serve_rights::FILE);
    let text = passwd::text_or_empty(file).map_err(|error| SystemError::io(file, error))?;
    let mut users = BTreeSet::new();
    if !text.is_empty() {
        let rights = ServeRights::parse(&text).map_err(|line| {
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

/// Checks that this is an account that a line of sudoers can name, and that it isn't root or the server's own.
async fn is_a_person(target: &Target, user: &str) -> Result<(), SystemError> {
    let refused = |reason: &str| Err(SystemError::Refused(format!("{user:?} {reason}")));
    if !serve_rights::is_plain(user) {
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

/// Returns who besides root could have changed the program or its modules. Where nobody could, they stay where they
/// are.
fn doubt(request: &InstallRequest) -> Result<Option<String>, SystemError> {
    let InstallRequest { program, modules, .. } = request;
    match trust::who_else(program).map_err(|error| SystemError::io(program, error))? {
        None => trust::who_else_in(modules).map_err(|error| SystemError::io(modules, error)),
        found => Ok(found),
    }
}

struct Planner {
    /// The record as it has to be afterwards.
    record: InstallRecord,
    steps: Vec<Step>,
}

impl Planner {
    /// Plans the account, and the directories that it owns.
    async fn account(&mut self, target: &Target) -> Result<(), SystemError> {
        let (base, home) = (Path::new(BASE), Path::new(HOME));
        self.roots(base)?;
        let uid = match account::state(target).await? {
            AccountState::Wrong(why) => {
                let reason = format!(
                    "there is an account {ACCOUNT} that isn't this program's: {why}. Rename or remove it, or put it right"
                );
                return Err(SystemError::Refused(reason));
            }
            AccountState::Missing { group_exists } => {
                self.steps.push(Step::Account { home: home.into(), group_exists });
                self.record.account = true;
                None
            }
            AccountState::Right(account) => Some(account.uid),
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
        let own = account::home_directories(home, uid.unwrap_or(u32::MAX)).map_err(wrong)?;
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

    /// Plans that messages of the journal don't reach terminals.
    fn wall(&mut self) -> Result<(), SystemError> {
        let file = Path::new(wall::FILE);
        let is_there = |path: &Path| -> io::Result<bool> {
            Ok(is_roots(path, 0o644)? && passwd::text_or_empty(path)? == wall::TEXT)
        };
        if !wall::is_needed() || is_there(file).map_err(|error| SystemError::io(file, error))? {
            return Ok(());
        }
        if let Some(directory) = file.parent() {
            self.roots(directory)?;
        }
        let text = wall::TEXT.to_owned();
        self.record.files.insert(file.into(), host_base::sha256::of(text.as_bytes()));
        self.steps.push(Step::Write { path: file.into(), text, mode: 0o644, is_sudos: false });
        self.steps.push(Step::RestartJournal);
        Ok(())
    }

    /// Plans a directory of root's, if it is missing.
    fn roots(&mut self, path: &Path) -> Result<(), SystemError> {
        safe(path)?;
        if !path.is_dir() {
            self.steps.push(Step::Directory { path: path.into(), is_accounts: false, exists: false });
        }
        Ok(())
    }

    /// Plans the copies of program and modules that don't exist yet.
    fn copies(&mut self, request: &InstallRequest, staged: &ModuleCopy) -> Result<(), SystemError> {
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
        let old = if modules.is_dir() { super::module_copy::names(modules)? } else { BTreeSet::new() };
        for name in old.difference(&names) {
            self.record.files.remove(&modules.join(name));
            self.steps.push(Step::Remove { path: modules.join(name) });
        }
        // This is the very file that runs, whatever lies at its path by now.
        let running = Path::new(atomic_file::RUNNING);
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
        let is_there = install_record::sha256(&to).is_ok_and(|found| found == sha256)
            && is_roots(&to, mode).map_err(|error| SystemError::io(&to, error))?;
        if is_there {
            return Ok(());
        }
        self.record.files.insert(to.clone(), sha256.clone());
        let original = original.to_owned();
        self.steps.push(Step::Copy { from, original, to, mode, sha256 });
        Ok(())
    }

    fn fragments(&mut self, wanted: &WantedFragments) -> Result<(), SystemError> {
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

/// Says whether a file of sudo exists with this text, owner and mode.
pub fn is_file_with(path: &Path, text: &str) -> io::Result<bool> {
    Ok(is_roots(path, 0o440)? && passwd::text_or_empty(path)? == text)
}

/// Says whether a file of root's exists with this mode.
fn is_roots(path: &Path, mode: u32) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(found.is_file() && (found.uid(), found.gid(), found.mode() & 0o7777) == (0, 0, mode)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Refuses a place that accounts other than root could change.
fn safe(path: &Path) -> Result<(), SystemError> {
    match trust::who_else(path).map_err(|error| SystemError::io(path, error))? {
        None => Ok(()),
        Some(who) => {
            let reason = format!("{} is no place for it: {who}. Put that right first", path.display());
            Err(SystemError::Refused(reason))
        }
    }
}
