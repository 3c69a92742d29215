//! What the end-to-end tests share: the real binary, a client that speaks plain JSON-RPC, and the test hosts.
#![forbid(unsafe_code)]

mod client;
mod hosts;

pub use client::Client;
pub use hosts::{Host, host, skipped};

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// The program under test: `LINUX_SYSADMIN_BIN`, or what `cargo xtask build` made.
pub fn binary() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/linux-sysadmin");
    let binary = std::env::var_os("LINUX_SYSADMIN_BIN").map_or(built, PathBuf::from);
    assert!(binary.is_file(), "{} is not there: run `cargo xtask test`", binary.display());
    binary
}

/// The components that ship.
pub fn modules() -> PathBuf {
    binary().with_file_name("modules")
}

/// The directory of one of the tests' own components.
pub fn guest(name: &str) -> PathBuf {
    binary().with_file_name("test-modules").join(name)
}

/// The component that does what a well-behaved one doesn't.
pub fn probe() -> PathBuf {
    guest("probe")
}

/// A user's home of the test's own, with nothing in it.
pub struct Home(TempDir);

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// Empty.
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The configuration of a first start.
    pub fn config(&self) -> PathBuf {
        self.path().join(".config/linux-sysadmin/config.yaml")
    }

    /// The compile cache.
    pub fn cache(&self) -> PathBuf {
        self.path().join(".cache/linux-sysadmin")
    }

    /// The program, at home here and nowhere else.
    pub fn command(&self, modules: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        for name in ["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "LINUX_SYSADMIN_CONFIG", "LINUX_SYSADMIN_LOG"] {
            command.env_remove(name);
        }
        command.env("HOME", self.path()).env("LINUX_SYSADMIN_MODULES", modules).args(args);
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, modules: &Path, args: &[&str]) -> Output {
        self.command(modules, args).output().expect("the program starts")
    }

    /// Calls a tool from the command line; gives the exit code and the envelope.
    pub fn call(&self, modules: &Path, tool: &str, arguments: Value) -> (Option<i32>, Value) {
        let output = self.run(modules, &["call", tool, "--json", &arguments.to_string()]);
        let text = String::from_utf8_lossy(&output.stdout);
        let envelope = serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!("no envelope ({error}): {text}\n{}", String::from_utf8_lossy(&output.stderr))
        });
        (output.status.code(), envelope)
    }
}

/// Processes of this machine whose command line holds the mark.
pub fn processes_with(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|cmdline| String::from_utf8_lossy(cmdline).contains(mark))
        .count()
}
