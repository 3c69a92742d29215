//! The account's own sudo rights, which are exactly what the modules were granted.
//!
//! They come from modules that only root can change: those beside the program, and those that root added for everyone
//! (`modules add --system`). Modules in the account's home give it no rights.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::sudoers;
use super::{ACCOUNT, SystemError};
use host_base::passwd;
use host_components::{CompileMode, ModuleDirectories, Registry};
use host_knowledge::LazyKnowledge;
use host_target::Target;

/// The directory of the fragments.
pub const DIRECTORY: &str = "/etc/sudoers.d";
/// The beginning of the fragments' names.
const PREFIX: &str = "linux-sysadmin-";

/// Reads what the configuration of the account with this home says of modules. It can only take some away. The error
/// tells why it can't be read.
pub type ModuleConfigReader = fn(home: &Path) -> Result<host_components::Modules, String>;

/// The fragments that must exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedFragments {
    /// The files with their texts. Files of variables come before those that refer to them.
    pub files: Vec<(PathBuf, String)>,
    /// Sentences for the operator about what some module won't be able to do.
    pub notes: Vec<String>,
}

/// Returns the fragments of the modules beside the program and of root's, as far as the account's configuration uses
/// them.
pub async fn wanted(
    target: &Target,
    modules: &Path,
    home: Option<&Path>,
    read_module_config: ModuleConfigReader,
) -> Result<WantedFragments, SystemError> {
    let config = match home {
        Some(home) => read_module_config(home).map_err(SystemError::Refused)?,
        None => host_components::Modules::default(),
    };
    let places = ModuleDirectories { user: None, ..ModuleDirectories::new(Some(modules.to_owned())) };
    let registry = Registry::new(&config, cache()).load(&places, CompileMode::Now).await;
    let knowledge = LazyKnowledge::default();
    let mut wanted = WantedFragments::default();
    for unused in registry.unused_modules().iter().filter(|unused| !unused.disabled) {
        wanted.notes.push(format!("the module {} is not used: {}", unused.name, unused.reason));
    }
    for module in registry.modules() {
        let name = &module.description.name;
        // The fragment fits the machine as it is now. When services with profiles are installed later, the operator
        // runs this again.
        let fragment = sudoers::fragment(target, module, ACCOUNT, &knowledge)
            .await
            .map_err(|error| SystemError::Refused(format!("the module {name}: {error}")))?;
        if !fragment.is_needed {
            continue;
        }
        if let Some(note) = unusable(name, fragment.usable, &fragment.to_string()) {
            wanted.notes.push(note);
        }
        let text = fragment.for_sudo();
        let environments = fragment.environments.into_iter();
        wanted.files.extend(environments.map(|environment| (environment.path, environment.text)));
        wanted.files.push((fragment.path, text));
    }
    Ok(wanted)
}

/// Counts the lines of a fragment that are comments, and gives the first reason for one.
fn unusable(module: &str, usable: usize, text: &str) -> Option<String> {
    let reasons: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# Not allowed: ")).collect();
    let first = reasons.first()?;
    let all = reasons.len() + usable;
    Some(format!(
        "{} of the {all} commands that the module {module} needs other rights for can't be allowed, so some of its \
         tools can't act; the first one: {first}",
        reasons.len()
    ))
}

/// Returns the files of sudo that were written for this account and aren't wanted any more. Returns an error where
/// another account's fragment is in the way.
pub fn stale(directory: &Path, wanted: &[(PathBuf, String)]) -> Result<Vec<PathBuf>, SystemError> {
    let mut stale = Vec::new();
    for path in present(directory).map_err(|error| SystemError::io(directory, error))? {
        let account = account_of(&path);
        let is_wanted = wanted.iter().any(|(path_wanted, _)| *path_wanted == path);
        match account.as_deref() {
            Some(ACCOUNT) if !is_wanted => stale.push(path),
            Some(other) if other != ACCOUNT && is_wanted => {
                let reason = format!(
                    "{} gives the account {other} these rights (for single-user mode), and sudo takes the names in it \
                     once only: remove it first",
                    path.display()
                );
                return Err(SystemError::Refused(reason));
            }
            _ => {}
        }
    }
    Ok(stale)
}

/// Returns all files whose name is that of a fragment of this program, in order.
fn present(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the account that a fragment is for, from its first line. For a file of variables it is the account of its
/// fragment.
fn account_of(path: &Path) -> Option<String> {
    let text = passwd::text_or_empty(path).ok()?;
    let said = text
        .lines()
        .next()?
        .strip_prefix("# The module ")
        .and_then(|line| line.split_once(", for the account "));
    if let Some((_, account)) = said {
        return account.strip_suffix('.').map(str::to_owned);
    }
    let name = path.file_name()?.to_str()?;
    let (fragment, number) = name.strip_suffix(".env")?.rsplit_once('.')?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| account_of(&path.with_file_name(fragment)))?
}

/// Returns root's own cache, whatever `HOME` says, because what is compiled there runs as root.
fn cache() -> Option<PathBuf> {
    let root = passwd::read().ok()?.into_iter().find(|entry| entry.uid == 0)?;
    Some(root.home.join(".cache/linux-sysadmin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(account: &str) -> String {
        format!("# The module services 0.1.0 of linux-sysadmin, for the account {account}.\n# more\n")
    }

    #[test]
    fn what_is_no_longer_wanted_is_stale_and_another_accounts_is_not_touched() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for (name, text) in [
            ("linux-sysadmin", "LINE".to_owned()),
            ("linux-sysadmin-services", fragment(ACCOUNT)),
            ("linux-sysadmin-gone", fragment(ACCOUNT)),
            ("linux-sysadmin-gone.3.env", "A=1\n".to_owned()),
            ("linux-sysadmin-lost.3.env", "A=1\n".to_owned()),
            ("linux-sysadmin-alices", fragment("alice")),
            ("linux-sysadmin-by-hand", "alice ALL=(ALL) ALL\n".to_owned()),
            ("other", fragment(ACCOUNT)),
        ] {
            fs::write(at(name), text).unwrap();
        }
        let wanted = [(at("linux-sysadmin-services"), String::new())];
        let found = stale(directory.path(), &wanted).unwrap();
        assert_eq!(found, [at("linux-sysadmin-gone"), at("linux-sysadmin-gone.3.env")]);
        let wanted = [(at("linux-sysadmin-alices"), String::new())];
        let refused = stale(directory.path(), &wanted).unwrap_err().to_string();
        assert!(
            refused.contains("the account alice") && refused.contains("linux-sysadmin-alices"),
            "{refused}"
        );
        assert!(stale(&at("none"), &wanted).unwrap().is_empty());
    }

    #[test]
    fn lines_that_are_comments_are_told_with_the_first_reason() {
        let text = "# 1. a\n# Not allowed: expected sudo 1.9.10\n\n# 2. b\n# Not allowed: other\n";
        let note = unusable("cron", 3, text).unwrap();
        assert!(note.contains("2 of the 5 commands") && note.ends_with("expected sudo 1.9.10"), "{note}");
        assert_eq!(unusable("cron", 3, "# 1. a\na ALL=(root) NOPASSWD: A\n"), None);
    }
}
