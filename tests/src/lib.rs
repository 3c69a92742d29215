//! The end-to-end tests share the real binary, a client that speaks plain JSON-RPC, and the test hosts.
#![forbid(unsafe_code)]

mod asking;
mod changing;
mod client;
mod differences;
mod everyday;
mod expected;
mod home_cache;
mod hosts;
mod lab;
pub mod lingering;
mod loop_disks;
mod machine;
mod package;
mod plan;
mod processes;
mod raw;
mod sandbox;
mod shipped;
mod snapshot;
mod terminal;

pub use asking::{Asked, Way};
pub use changing::{Changing, NO_UNITS, UNITS};
pub use client::Client;
pub use differences::MayDiffer;
pub use everyday::{Row, everyday};
pub use expected::{
    Difference, ExpectedModule, ExpectedTool, expected, expected_modules, expected_tools, file_of,
};
pub use hosts::{Host, has_fault_points, host, skipped, warmed, way};
pub use lab::{Fleet, Key, Lab, SFTP, Sshd};
pub use loop_disks::{DISKS, NO_DISKS};
pub use machine::{Helper, Machine, Reach};
pub use package::{InstalledPackage, PackageKind};
pub use plan::{Plan, Step, line};
pub use processes::{children_of, peak_memory, processes_with, until_gone};
pub use raw::{FROZEN, Raw};
pub use sandbox::Sandbox;
pub use shipped::{Shipped, shipped};
pub use snapshot::{Expected, Snapshot};
pub use terminal::at_terminal;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use home_cache::{HomeCache, shared_cache};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// The program under test: `LINUX_SYSADMIN_BIN`, or the one that `cargo xtask build` has made.
pub fn binary() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/debug/linux-sysadmin");
    let binary = std::env::var_os("LINUX_SYSADMIN_BIN").map_or(built, PathBuf::from);
    assert!(binary.is_file(), "{} is not there: run `cargo xtask test`", binary.display());
    binary
}

/// The directory of the components that ship.
pub fn modules() -> PathBuf {
    binary().with_file_name("modules")
}

/// The directory of one of the tests' own components.
pub fn guest(name: &str) -> PathBuf {
    binary().with_file_name("test-modules").join(name)
}

/// The directory of the component that does as it is told.
pub fn probe() -> PathBuf {
    guest("probe")
}

/// The file of one of the tests' own components.
pub fn component(name: &str) -> PathBuf {
    guest(name).join(format!("{name}.wasm"))
}

/// The modules of a home that compiles them itself.
const FEW: [&str; 3] = ["cron", "performance", "session"];

/// Makes a directory with few of the components that ship.
fn few_modules(directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir(directory)?;
    let files = FEW.map(|name| format!("{name}.wasm"));
    for file in &files {
        std::fs::copy(modules().join(file), directory.join(file))?;
    }
    let sums = std::fs::read_to_string(modules().join("SHA256SUMS"))?;
    let sums = sums.lines().filter(|line| files.iter().any(|file| line.ends_with(&format!(" {file}"))));
    std::fs::write(directory.join("SHA256SUMS"), sums.map(|line| format!("{line}\n")).collect::<String>())
}

/// A home of the test's own.
pub struct Home {
    path: PathBuf,
    cache: Cache,
    /// Removes the home when it is dropped. A home at a given place stays.
    _temporary: Option<TempDir>,
}

/// The compile cache of a home.
enum Cache {
    /// The home's own, with what other homes have compiled.
    Warm(HomeCache),
    /// The home's own in its usual place, empty at first.
    Cold,
    /// The one that the others begin with. The home is never dropped, so that it couldn't hand its own on.
    Shared,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// An empty home.
    pub fn new() -> Self {
        Self::in_temporary(tempfile::tempdir())
    }

    /// An empty home with an empty compile cache of its own. It has few of the host's modules, since each is compiled there.
    pub fn cold() -> Self {
        let temporary = tempfile::tempdir().expect("a temporary directory");
        let home =
            Self { path: temporary.path().to_owned(), cache: Cache::Cold, _temporary: Some(temporary) };
        few_modules(&home.modules()).expect("a directory of modules");
        home
    }

    /// An empty home where only root may write to the directories above it, as it is with root's own home.
    pub fn of_root() -> Self {
        Self::in_temporary(tempfile::tempdir_in("/run"))
    }

    /// An empty home at this place, which stays. Several tests use it, and none knows that it is the last one.
    pub fn at(path: PathBuf) -> Self {
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory");
        Self { path, cache: Cache::Shared, _temporary: None }
    }

    fn in_temporary(made: std::io::Result<TempDir>) -> Self {
        let temporary = made.expect("a temporary directory");
        let cache = Cache::Warm(HomeCache::new().expect("a compile cache"));
        Self { path: temporary.path().to_owned(), cache, _temporary: Some(temporary) }
    }

    /// The home's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The configuration file that a first start writes.
    pub fn config(&self) -> PathBuf {
        self.path().join(".config/linux-sysadmin/config.yaml")
    }

    /// The host's modules in this home.
    pub fn modules(&self) -> PathBuf {
        if self.is_cold() { self.path().join("host-modules") } else { modules() }
    }

    fn is_cold(&self) -> bool {
        matches!(self.cache, Cache::Cold)
    }

    /// The compile cache of a cold home.
    #[track_caller]
    pub fn cache(&self) -> PathBuf {
        assert!(self.is_cold(), "the home's cache holds what other homes have compiled");
        self.path().join(".cache/linux-sysadmin")
    }

    /// Has a command of the program use the home's compile cache.
    fn give_cache(&self, command: &mut Command) {
        match &self.cache {
            Cache::Warm(own) => command.env("XDG_CACHE_HOME", own.path()),
            Cache::Shared => command.env("XDG_CACHE_HOME", shared_cache()),
            Cache::Cold => command.env_remove("XDG_CACHE_HOME"),
        };
    }

    /// The directory of the audit log.
    pub fn state(&self) -> PathBuf {
        self.path().join(".local/state/linux-sysadmin")
    }

    /// The records of the current file of the audit log.
    pub fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.state().join("audit.jsonl")).unwrap_or_default();
        let record = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        text.lines().map(record).collect()
    }

    /// The directory of third parties' modules.
    pub fn data(&self) -> PathBuf {
        self.path().join(".local/share/linux-sysadmin/modules")
    }

    /// A command that runs the program in this home.
    pub fn command(&self, modules: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        for name in ["CONFIG", "DATA", "STATE"] {
            command.env_remove(format!("XDG_{name}_HOME"));
        }
        self.give_cache(&mut command);
        command.env_remove("LINUX_SYSADMIN_CONFIG").env_remove("LINUX_SYSADMIN_LOG");
        command.env("HOME", self.path()).env("LINUX_SYSADMIN_MODULES", modules).args(args);
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, modules: &Path, args: &[&str]) -> Output {
        self.command(modules, args).output().expect("the program starts")
    }

    /// Adds a third party's module beside the host's own, as an operator who agrees to everything.
    pub fn add(&self, component: &Path) -> Output {
        let bytes = std::fs::read(component).expect("a component");
        let sha256 = hex::encode(Sha256::digest(bytes));
        let file = component.to_str().expect("UTF-8");
        self.run(&self.modules(), &["modules", "add", file, "--sha256", &sha256, "--yes"])
    }

    /// Calls a tool from the command line; gives the exit code and the envelope.
    pub fn call(&self, modules: &Path, tool: &str, arguments: Value) -> (Option<i32>, Value) {
        let output = self.run(modules, &["call", tool, "--args", &arguments.to_string()]);
        let text = String::from_utf8_lossy(&output.stdout);
        let envelope = serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!("no envelope ({error}): {text}\n{}", String::from_utf8_lossy(&output.stderr))
        });
        (output.status.code(), envelope)
    }
}
