//! The test hosts: real machines with systemd, brought up by `cargo xtask test`.

use std::io::Write;
use std::process::{Command, Stdio};

/// A machine that is up.
pub struct Host {
    name: String,
    xtask: String,
}

/// The host of this name. Where hosts can't be had, the test is counted as skipped, with the reason.
pub fn host(test: &str, name: &str) -> Option<Host> {
    let up = std::env::var_os("LINUX_SYSADMIN_TEST_HOSTS").is_some();
    match (up, std::env::var("XTASK")) {
        (true, Ok(xtask)) => {
            // For who runs tests beside somebody else's.
            let name = std::env::var("LINUX_SYSADMIN_TEST_HOST").unwrap_or_else(|_| name.to_owned());
            Some(Host { name, xtask })
        }
        _ => {
            skipped(test, "no test hosts are up: they need root, and `cargo xtask test`");
            None
        }
    }
}

/// Counts a test as skipped.
pub fn skipped(test: &str, reason: &str) {
    eprintln!("SKIPPED {test}: {reason}");
    if let Some(log) = std::env::var_os("LINUX_SYSADMIN_SKIP_LOG") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
        let _ = file.and_then(|mut file| writeln!(file, "{test}: {reason}"));
    }
}

impl Host {
    /// A command on the host, as root.
    pub fn command(&self, argv: &[&str]) -> Command {
        let mut command = Command::new(&self.xtask);
        command.args(["hosts", "exec", &self.name, "--"]).args(argv).stdin(Stdio::null());
        command
    }

    /// Puts a file on the host, as root and for everyone to read.
    pub fn put(&self, path: &str, contents: &[u8]) {
        let mut tee = self.command(&["tee", path]);
        let mut tee = tee.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("xtask runs");
        tee.stdin.take().expect("stdin").write_all(contents).expect("written");
        assert!(tee.wait().expect("it ends").success(), "{path} on {}", self.name);
        self.run(&["chmod", "0444", path]);
    }

    /// A command on the host, as this account and with nothing in its environment but its home.
    pub fn command_as(&self, account: &str, argv: &[&str]) -> Command {
        let home = if account == "root" { "HOME=/root".to_owned() } else { format!("HOME=/home/{account}") };
        let head = ["runuser", "-u", account, "--", "env", "-i", "-C", "/", "PATH=/usr/sbin:/usr/bin", &home];
        self.command(&[&head[..], argv].concat())
    }

    /// Runs a command on the host; gives its stdout.
    pub fn run(&self, argv: &[&str]) -> String {
        let output = self.command(argv).output().expect("xtask runs");
        assert!(
            output.status.success(),
            "{argv:?} on {}: {}\n{}",
            self.name,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}
