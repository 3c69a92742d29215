//! Finds components and their pins, before any component is opened.
//!
//! | origin | where | pinned by |
//! |---|---|---|
//! | host | beside the program | `SHA256SUMS` there |
//! | system | `/var/lib/linux-sysadmin/modules`, root's | `modules.lock` there |
//! | user | `~/.local/share/linux-sysadmin/modules` | `modules.lock` there |
//!
//! A component that nothing pins is reported and never loaded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::config::{Disabled, Modules, Policy};
use super::lock::{self, Entry, Lock, Owner};
use super::surface::World;
use host_base::sha256::is_sha256;
use host_base::trusted_file;

/// The file that pins the host's own modules, in the format of sha256sum(1).
pub const SUMS: &str = "SHA256SUMS";

/// The directory of the system's modules, which all accounts of the machine share.
const SYSTEM: &str = "/var/lib/linux-sysadmin/modules";

/// The one who answers for a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The module comes with this program.
    Host,
    /// The module is a third party's, and root added it for everyone.
    System,
    /// The module is a third party's, and the server's account added it.
    User,
}

impl Origin {
    /// The contract's world that the module may import.
    pub(super) fn world(self) -> World {
        match self {
            Self::Host => World::System,
            Self::System | Self::User => World::Tool,
        }
    }

    /// The origin in words.
    pub fn described(self) -> &'static str {
        match self {
            Self::Host => "which comes with the host",
            Self::System => "which root added for everyone",
            Self::User => "which this account added",
        }
    }

    /// The only account that may write to the directory of such modules.
    pub(super) fn owner(self) -> Owner {
        match self {
            Self::Host | Self::System => Owner::Root,
            Self::User => Owner::Caller,
        }
    }
}

/// The directories of modules.
#[derive(Clone, Debug)]
pub struct ModuleDirectories {
    /// The directory of the host's own modules, where it was found.
    pub host: Option<PathBuf>,
    /// The directory of the system's modules.
    pub system: PathBuf,
    /// The directory of the account's own modules. None where the account has no home directory.
    pub user: Option<PathBuf>,
}

impl ModuleDirectories {
    /// The usual directories, with this one for the host's own modules.
    pub fn new(host: Option<PathBuf>) -> Self {
        let user = host_base::directories::program_directory("XDG_DATA_HOME", ".local/share");
        Self { host, system: SYSTEM.into(), user: user.map(|directory| directory.join("modules")) }
    }

    /// All directories, including those that don't exist.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        [self.host.as_deref(), Some(self.system.as_path()), self.user.as_deref()].into_iter().flatten()
    }

    /// The directories of third parties' modules, the system's first.
    pub fn locked(&self) -> impl Iterator<Item = (Origin, &Path)> {
        let user = self.user.as_deref().map(|directory| (Origin::User, directory));
        [(Origin::System, self.system.as_path())].into_iter().chain(user)
    }
}

/// A component that is to be loaded.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// The name of a third party's module, or of a file of the host's.
    pub(super) name: String,
    pub(super) origin: Origin,
    pub(super) path: PathBuf,
    /// The pinned SHA-256.
    pub(super) sha256: String,
    /// The entry in `modules.lock`. None for the host's own modules.
    pub(super) entry: Option<Entry>,
}

/// A module that isn't used.
#[derive(Clone, Debug, Serialize)]
pub struct UnusedModule {
    /// The module's name, or the file's.
    pub name: String,
    /// The origin of the module.
    pub origin: Origin,
    /// The path where the file is or should be.
    #[serde(skip)]
    pub path: PathBuf,
    /// The reason for the operator: what was expected and what was found.
    pub reason: String,
    /// True where the operator has disabled the module, so that nothing is wrong.
    pub disabled: bool,
    /// The SHA-256 that its component should have. It is empty where it isn't known.
    #[serde(skip)]
    pub(super) sha256: String,
}

impl UnusedModule {
    /// A module that isn't used because something is wrong.
    pub(super) fn refused(name: &str, origin: Origin, path: &Path, reason: impl ToString) -> Self {
        let (name, reason) = (name.to_owned(), reason.to_string());
        Self { name, origin, path: path.to_owned(), reason, disabled: false, sha256: String::new() }
    }

    /// A module that the configuration doesn't allow, so that nothing is wrong.
    pub(super) fn disabled(candidate: (&str, Origin, &Path, &str), reason: &str) -> Self {
        let (name, origin, path, sha256) = candidate;
        let sha256 = sha256.to_owned();
        Self { disabled: true, sha256, ..Self::refused(name, origin, path, reason) }
    }
}

/// All pinned components, and the components without a pin.
#[derive(Default)]
pub(super) struct Found {
    pub(super) candidates: Vec<Candidate>,
    pub(super) unused: Vec<UnusedModule>,
    /// The names and hashes that locks disable besides their own modules, each with the path of the lock.
    disabled: Vec<(PathBuf, Disabled)>,
    /// The path of a lock that is too damaged to tell what it disables.
    unknown: Option<PathBuf>,
}

/// The names of all modules that are there. None of them is loaded, so that they needn't be compiled.
pub fn module_names(places: &ModuleDirectories) -> Vec<String> {
    Found::at(places).candidates.into_iter().map(|candidate| candidate.name).collect()
}

/// The components that are to be loaded, and those that are not, with the reasons.
pub(super) fn candidates(
    places: &ModuleDirectories,
    config: &Modules,
) -> (Vec<Candidate>, Vec<UnusedModule>) {
    let Found { candidates, mut unused, disabled, unknown } = Found::at(places);
    let mut kept = Vec::new();
    for candidate in candidates {
        let names = |wanted: &Disabled| wanted.names(&candidate.name, &candidate.sha256);
        let by_lock = disabled.iter().find(|(_, wanted)| names(wanted));
        let reason = if let Some(lock) = &unknown {
            let why = format!("whether {} disables it can't be read", lock.display());
            unused.push(UnusedModule::refused(&candidate.name, candidate.origin, &candidate.path, why));
            continue;
        } else if config.disabled.iter().any(names) {
            Some("modules.disabled of the configuration names it".to_owned())
        } else if let Some((lock, wanted)) = by_lock {
            let system = if lock.starts_with(&places.system) { " --system" } else { "" };
            let enable = format!("`linux-sysadmin modules enable {wanted}{system}` enables it");
            Some(format!("{} disables {wanted}; {enable}", lock.display()))
        } else if candidate.entry.as_ref().is_some_and(|entry| !entry.enabled) {
            Some(format!("`linux-sysadmin modules enable {}` enables it", candidate.name))
        } else if candidate.origin != Origin::Host && config.policy == Policy::BuiltinOnly {
            Some("modules.policy of the configuration is builtin-only".to_owned())
        } else {
            None
        };
        match reason {
            None => kept.push(candidate),
            Some(reason) => {
                let Candidate { name, origin, path, sha256, .. } = candidate;
                unused.push(UnusedModule { name, origin, path, reason, disabled: true, sha256 });
            }
        }
    }
    (kept, unused)
}

impl Found {
    /// The components in these directories.
    pub(super) fn at(places: &ModuleDirectories) -> Self {
        let mut found = Self::default();
        if let Some(directory) = &places.host {
            found.of_host(directory);
        }
        for (origin, directory) in places.locked() {
            found.of_lock(origin, directory);
        }
        found
    }

    /// Adds the host's own components, which `SHA256SUMS` pins.
    fn of_host(&mut self, directory: &Path) {
        let components = self.components(Origin::Host, directory);
        let sums = match components.is_empty() {
            true => Ok(BTreeMap::new()),
            false => read_sums(&directory.join(SUMS)),
        };
        let mut sums = match sums {
            Ok(sums) => sums,
            Err(reason) => {
                self.unused.push(UnusedModule::refused(SUMS, Origin::Host, &directory.join(SUMS), reason));
                BTreeMap::new()
            }
        };
        for path in components {
            let file = file_name(&path);
            let name = file.trim_end_matches(".wasm").to_owned();
            match sums.remove(&file) {
                Some(sha256) => {
                    self.candidates.push(Candidate { name, origin: Origin::Host, path, sha256, entry: None });
                }
                None => {
                    let reason = format!("{SUMS} beside it doesn't name it, so it is not loaded");
                    self.unused.push(UnusedModule::refused(&name, Origin::Host, &path, reason));
                }
            }
        }
    }

    /// Adds the components that `modules.lock` names, and those that lie beside it.
    fn of_lock(&mut self, origin: Origin, directory: &Path) {
        let path = directory.join(lock::NAME);
        let lock = match Lock::read(directory, origin.owner()) {
            Ok(lock) => lock,
            Err(error) => {
                self.unused.push(UnusedModule::refused(lock::NAME, origin, &path, error));
                match Lock::disabled_by_broken(directory) {
                    Some(disabled) => {
                        self.disabled.extend(disabled.into_iter().map(|wanted| (path.clone(), wanted)));
                    }
                    // It isn't known what the lock disables, so any component may be disabled.
                    None => self.unknown = Some(path),
                }
                return;
            }
        };
        for component in self.components(origin, directory) {
            if !lock.modules.iter().any(|entry| entry.file() == file_name(&component)) {
                let reason = format!("{} doesn't name it, so it is not loaded", lock::NAME);
                self.unused.push(UnusedModule::refused(&file_name(&component), origin, &component, reason));
            }
        }
        self.disabled.extend(lock.disabled.into_iter().map(|wanted| (path.clone(), wanted)));
        for entry in lock.modules {
            let (name, sha256) = (entry.name.clone(), entry.sha256.clone());
            let path = directory.join(entry.file());
            self.candidates.push(Candidate { name, origin, path, sha256, entry: Some(entry) });
        }
    }

    fn components(&mut self, origin: Origin, directory: &Path) -> Vec<PathBuf> {
        lock::components(directory).unwrap_or_else(|error| {
            self.unused.push(UnusedModule::refused(&file_name(directory), origin, directory, error));
            Vec::new()
        })
    }
}

/// The pins of a file of sums: names with their SHA-256. An error names the line that is invalid, without its contents.
pub fn read_sums(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let text = trusted_file::read(path, |_| std::io::Result::Ok(()));
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    let line = |(number, line): (usize, &str)| match line.split_once(char::is_whitespace) {
        Some((sha256, name)) if is_sha256(sha256) => {
            // A star stands for "read as binary".
            Ok((name.trim_start().trim_start_matches('*').to_owned(), sha256.to_owned()))
        }
        _ => Err(format!("{}, line {}: expected `SHA-256  name.wasm`", path.display(), number + 1)),
    };
    text.lines().enumerate().map(line).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    struct Setting {
        directory: tempfile::TempDir,
        places: ModuleDirectories,
    }

    impl Setting {
        fn new() -> Self {
            use std::os::unix::fs::DirBuilderExt;
            let directory = tempfile::tempdir().unwrap();
            let below = |name: &str| directory.path().join(name);
            for name in ["host", "user"] {
                fs::DirBuilder::new().mode(0o700).create(below(name)).unwrap();
            }
            let places = ModuleDirectories {
                host: Some(below("host")),
                system: below("none"),
                user: Some(below("user")),
            };
            Self { directory, places }
        }

        fn write(&self, file: &str, contents: impl AsRef<[u8]>) {
            fs::write(self.directory.path().join(file), contents).unwrap();
        }

        fn found(&self, config: &Modules) -> (Vec<String>, Vec<(String, String)>) {
            let (candidates, unused) = candidates(&self.places, config);
            (
                candidates.into_iter().map(|candidate| candidate.name).collect(),
                unused.into_iter().map(|unused| (unused.name, unused.reason)).collect(),
            )
        }
    }

    fn lock(name: &str, sha256: &str, more: &str) -> String {
        format!(
            "version: 1\nmodules:\n- name: {name}\n  version: 1.0.0\n  source: x\n  sha256: {sha256}\n  \
             description: d\n  enabled: true\n{more}"
        )
    }

    #[test]
    fn what_nothing_pins_is_not_loaded_and_is_reported() {
        let setting = Setting::new();
        setting.write("host/cron.wasm", "");
        setting.write("host/extra.wasm", "");
        setting.write("host/SHA256SUMS", format!("{A}  cron.wasm\n{B} *gone.wasm\n"));
        setting.write("user/stray.wasm", "");
        setting.write("user/modules.lock", lock("hello", B, ""));
        let (found, unused) = setting.found(&Modules::default());
        assert_eq!(found, ["cron", "hello"]);
        let names: Vec<_> = unused.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["extra", "stray.wasm"]);
    }

    #[test]
    fn without_sums_nothing_of_the_host_is_loaded() {
        for sums in [None, Some("nonsense\n"), Some("AAAA  cron.wasm\n")] {
            let setting = Setting::new();
            setting.write("host/cron.wasm", "");
            if let Some(sums) = sums {
                setting.write("host/SHA256SUMS", sums);
            }
            let (found, unused) = setting.found(&Modules::default());
            assert!(found.is_empty());
            assert_eq!(unused.len(), 2, "{unused:?}");
            assert!(unused[0].1.contains(SUMS));
        }
    }

    #[test]
    fn what_a_lock_disables_stays_disabled_when_it_is_broken() {
        let setting = Setting::new();
        setting.write("host/cron.wasm", "");
        setting.write("host/session.wasm", "");
        setting.write("host/SHA256SUMS", format!("{A}  cron.wasm\n{B}  session.wasm\n"));
        let whole = lock("hello", B, "disabled: [cron]\n");
        setting.write("user/modules.lock", &whole);
        assert_eq!(setting.found(&Modules::default()).0, ["session", "hello"]);
        // The file is cut, so that a part of it is valid.
        setting.write("user/modules.lock", whole.replace("enabled: true", "enabled: tru"));
        assert_eq!(setting.found(&Modules::default()).0, ["session"]);
        let longer = format!("{whole}zzz\n");
        for broken in [longer.as_str(), "disabled: [\n", "\0", "", "# emptied\n", "disabled: []\n"] {
            setting.write("user/modules.lock", broken);
            let (found, unused) = setting.found(&Modules::default());
            assert!(found.is_empty(), "{broken}: {found:?}");
            assert!(unused.iter().any(|(name, why)| name == "cron" && why.contains("can't be read")));
        }
    }

    #[test]
    fn a_lock_that_does_not_count_takes_its_modules_along_and_no_others() {
        let setting = Setting::new();
        setting.write("host/cron.wasm", "");
        setting.write("host/SHA256SUMS", format!("{A}  cron.wasm\n"));
        setting.write("user/modules.lock", lock("hello", "short", ""));
        let (found, unused) = setting.found(&Modules::default());
        assert_eq!(found, ["cron"]);
        assert_eq!(unused[0].0, "modules.lock");
    }

    #[test]
    fn what_the_operator_disables_is_not_loaded() {
        let setting = Setting::new();
        setting.write("host/cron.wasm", "");
        setting.write("host/SHA256SUMS", format!("{A}  cron.wasm\n"));
        setting.write("user/modules.lock", lock("hello", B, ""));
        let config = |text: &str| serde_yaml::from_str::<Modules>(text).unwrap();
        for (text, left) in [
            ("{}", &["cron", "hello"][..]),
            ("policy: builtin-only", &["cron"]),
            ("disabled: [cron]", &["hello"]),
            ("disabled: [other]", &["cron", "hello"]),
            (&format!("disabled: ['sha256:{A}']"), &["hello"]),
            (&format!("disabled: ['{}', hello]", A.to_uppercase()), &[]),
        ] {
            let (found, unused) = setting.found(&config(text));
            assert_eq!(found, left, "{text}");
            assert_eq!(unused.len(), 2 - left.len());
        }
        setting.write("user/modules.lock", lock("hello", B, &format!("disabled: [cron, 'sha256:{B}']\n")));
        assert!(setting.found(&Modules::default()).0.is_empty());
        setting.write("user/modules.lock", lock("hello", B, "").replace("true", "false"));
        let (found, unused) = setting.found(&Modules::default());
        assert_eq!(found, ["cron"]);
        assert!(unused[0].1.contains("modules enable hello"));
    }
}
