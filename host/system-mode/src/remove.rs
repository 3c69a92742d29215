//! Plans what `system remove` takes away: what `system install` put there, as far as it wasn't changed since.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::account::{BASE, HOME};
use super::fragments;
use super::install::MODULES;
use super::install_record::{self, InstallRecord};
use super::serve_rights::{self, ServeRights};
use super::steps::{self, Step, StepsFailed};
use super::{ACCOUNT, SystemError, wall};
use host_base::passwd;
use host_target::Target;

/// The steps of a removal.
pub struct Removal {
    /// The steps, in this order.
    pub steps: Vec<Step>,
    /// Sentences for the operator.
    pub notes: Vec<String>,
}

impl Removal {
    /// Finds out what there is. With `purge` it includes the account's home, and the log in it.
    pub fn plan(purge: bool) -> Result<Self, SystemError> {
        if !rustix::process::geteuid().is_root() {
            return Err(SystemError::NotRoot("remove"));
        }
        let record = InstallRecord::read(Path::new(install_record::FILE))?;
        let (mut steps, mut notes) = (Vec::new(), Vec::new());
        // First nobody can start another server, then the running ones lose their rights.
        let lines = Path::new(serve_rights::FILE);
        let text = passwd::text_or_empty(lines).map_err(|error| SystemError::io(lines, error))?;
        if let Err(line) = ServeRights::parse(&text)
            && !text.is_empty()
        {
            let reason = format!("{} holds what `system install` didn't write: {line}", lines.display());
            return Err(SystemError::Refused(reason));
        }
        if !text.is_empty() {
            steps.push(Step::Remove { path: lines.into() });
        }
        let stale = fragments::stale(Path::new(fragments::DIRECTORY), &[])?;
        steps.extend(stale.into_iter().map(|path| Step::Remove { path }));
        for path in record.files.keys().filter(|path| path.exists()) {
            match record.is_ours(path) {
                true => steps.push(Step::Remove { path: path.clone() }),
                false => {
                    notes.push(format!("{} was changed since it was installed, and stays", path.display()))
                }
            }
        }
        let wall = Path::new(wall::FILE);
        if wall.exists() && record.is_ours(wall) {
            steps.push(Step::RestartJournal);
        }
        let modules = Path::new(MODULES);
        let directories = [Some(modules), modules.parent()].into_iter().flatten();
        if !record.files.is_empty() {
            steps.extend(
                directories.filter(|path| path.exists()).map(|path| Step::RemoveEmpty { path: path.into() }),
            );
        }
        let account = super::account();
        let running = account.as_ref().map(|account| processes(account.uid)).unwrap_or_default();
        if purge {
            if !running.is_empty() {
                let reason = format!(
                    "processes of {ACCOUNT} are running ({}): end the clients that use the server first",
                    running.join(", ")
                );
                return Err(SystemError::Refused(reason));
            }
            steps.extend(purged(&record, account.is_some(), &mut notes));
        } else {
            if !record.files.is_empty() {
                let text = InstallRecord { files: Default::default(), ..record }.text();
                steps.push(Step::Write {
                    path: install_record::FILE.into(),
                    text,
                    mode: 0o644,
                    is_sudos: false,
                });
            }
            if !running.is_empty() {
                notes.push(format!(
                    "servers that run now ({}) go on without sudo rights until their clients end",
                    running.join(", ")
                ));
            }
            if Path::new(HOME).exists() {
                notes.push(format!(
                    "{HOME} stays, with configuration and audit log, and so does the account {ACCOUNT}; --purge \
                     removes both"
                ));
            }
        }
        Ok(Self { steps, notes })
    }

    /// Carries the steps out.
    pub async fn carry_out(&self, target: &Target) -> Result<(), StepsFailed> {
        steps::carry_out(target, &self.steps, async || Ok(())).await
    }
}

/// Returns the steps that remove everything else. Those that can't be undone come last.
fn purged(record: &InstallRecord, has_account: bool, notes: &mut Vec<String>) -> Vec<Step> {
    let mut steps = Vec::new();
    // This step may be refused, and so it comes first.
    if has_account && record.account {
        steps.push(Step::RemoveAccount);
    } else if has_account {
        notes.push(format!("the account {ACCOUNT} was there before, and stays"));
    }
    if Path::new(HOME).exists() {
        steps.push(Step::RemoveTree { path: HOME.into() });
    }
    for path in [install_record::FILE, BASE].map(PathBuf::from).into_iter().filter(|path| path.exists()) {
        steps.push(match path.is_dir() {
            true => Step::RemoveEmpty { path },
            false => Step::Remove { path },
        });
    }
    steps
}

/// Returns the processes of an account, each with its number and program.
fn processes(uid: u32) -> Vec<String> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let of_account = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        let pid = entry.file_name().into_string().ok()?;
        let is_number = pid.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && entry.metadata().ok()?.uid() == uid).then(|| {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            format!("{pid} {}", name.trim())
        })
    };
    entries.filter_map(of_account).collect()
}
