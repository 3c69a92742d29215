//! The test hosts are machines with systemd, which `cargo xtask test` brings up.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Reach;
use crate::home_cache::{of_components, shared_cache};

/// The time after which a test that hangs fails. Nothing that a test waits for takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// A host that is up.
#[derive(Clone)]
pub struct Host {
    name: String,
    xtask: String,
}

/// The host of this name. Where there can be no hosts, the test is counted as skipped, with the reason.
pub fn host(test: &str, name: &str) -> Option<Host> {
    let up = std::env::var_os("LINUX_SYSADMIN_TEST_HOSTS").is_some();
    match (up, std::env::var("XTASK")) {
        (true, Ok(xtask)) => Some(Host { name: instead(name), xtask }),
        _ => {
            skipped(test, "no test hosts are up: they need root, and `cargo xtask test`");
            None
        }
    }
}

/// The same as [`host`], where root's cache has the modules that the tests have compiled.
pub fn warmed(test: &str, name: &str) -> Option<Host> {
    let host = host(test, name)?;
    let turn = host.turn("cache.lock");
    turn.lock().expect("a turn");
    if !host.holds("test -e /root/.cache/warm") {
        host.warm("root", "/root/.cache");
        host.run(&["touch", "/root/.cache/warm"]);
    }
    Some(host)
}

/// The way in which a story is told, by `LINUX_SYSADMIN_TEST_WAY`: `inside-debian`, `inside-rhel`, `over-ssh-debian` or
/// `over-ssh-rhel`. The default is `inside-debian`.
pub fn way() -> Reach {
    match std::env::var("LINUX_SYSADMIN_TEST_WAY").as_deref() {
        Err(_) | Ok("inside-debian") => Reach::Inside("debian1"),
        Ok("inside-rhel") => Reach::Inside("rhel1"),
        Ok("over-ssh-debian") => Reach::OverSsh("debian1"),
        Ok("over-ssh-rhel") => Reach::OverSsh("rhel1"),
        Ok(other) => panic!("LINUX_SYSADMIN_TEST_WAY is {other}; expected inside-debian, over-ssh-rhel, …"),
    }
}

/// The name of the host that replaces this one, by `LINUX_SYSADMIN_TEST_HOST`, as in `debian1=mine,rhel1=mine-too`. Each
/// process of a test run has hosts of its own. A person who runs tests beside another run, or on another image, may set it.
fn instead(name: &str) -> String {
    let given = std::env::var("LINUX_SYSADMIN_TEST_HOST").unwrap_or_default();
    let mut pairs = given.split(',').filter_map(|pair| pair.split_once('='));
    pairs.find(|(asked, _)| *asked == name).map_or(name, |(_, other)| other).to_owned()
}

/// The lab and its hosts, as `cargo xtask hosts list --json` shows them.
pub(crate) fn listing() -> Value {
    let file = std::env::var_os("LINUX_SYSADMIN_TEST_HOSTS").expect("hosts are up");
    let text = std::fs::read_to_string(file).expect("hosts.json");
    serde_json::from_str(&text).expect("JSON")
}

/// Whether the program under test can be made to fail. Where it can't, the test is counted as skipped.
pub fn has_fault_points(test: &str) -> bool {
    let has = std::env::var_os("LINUX_SYSADMIN_FAULT_POINTS").is_some();
    if !has {
        skipped(
            test,
            "the program under test has no fault points: it takes `cargo xtask test` without --release",
        );
    }
    has
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
    /// The host's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A member of the host in the listing: `address`, `netns`, `mac`, `link`, `root` …
    pub(crate) fn listed(&self, member: &str) -> String {
        let listing = listing();
        let mut hosts = listing["hosts"].as_array().into_iter().flatten();
        let this =
            hosts.find(|host| host["name"] == self.name).unwrap_or_else(|| panic!("{} is up", self.name));
        this[member].as_str().unwrap_or_else(|| panic!("{member} of {this}")).to_owned()
    }

    /// A file beside the host's disk, which tests lock to use the host one after the other. The lock holds across threads and
    /// processes.
    pub(crate) fn turn(&self, name: &str) -> File {
        let directory = Path::new(&self.listed("root")).parent().expect("a host's directory").to_owned();
        let file = File::options().create(true).append(true).open(directory.join(name));
        file.expect("a file to lock")
    }

    /// The host's address in the lab.
    pub fn address(&self) -> String {
        self.listed("address")
    }

    /// Reboots the host, and waits until it is ready again.
    pub fn reboot(&self) {
        let output =
            Command::new(&self.xtask).args(["hosts", "reboot", &self.name]).stdin(Stdio::null()).output();
        let output = output.expect("xtask runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Waits until the host has removed what it keeps for some time for accounts that have logged out, and ends the services
    /// that others have asked something, which would end by themselves half a minute later.
    pub fn nobody_is_leaving(&self) {
        self.run(&["systemctl", "stop", "systemd-hostnamed", "systemd-localed", "systemd-timedated"]);
        self.until(
            "! grep --quiet --no-messages '^STATE=closing' /run/systemd/users/* \
             && test -z \"$(systemctl list-jobs --no-legend)\"",
        );
    }

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

    /// A command on the host as this account. Its environment has only a PATH and the account's home.
    pub fn command_as(&self, account: &str, argv: &[&str]) -> Command {
        let home = if account == "root" { "HOME=/root".to_owned() } else { format!("HOME=/home/{account}") };
        let head = ["runuser", "-u", account, "--", "env", "-i", "-C", "/", "PATH=/usr/sbin:/usr/bin", &home];
        self.command(&[&head[..], argv].concat())
    }

    /// Copies the modules that the tests have compiled into this directory of the account, which would otherwise compile them
    /// anew.
    pub fn warm(&self, account: &str, cache: &str) {
        let entries = of_components().expect("a compile cache");
        let mut pack = Command::new("tar");
        // A test that uses the shared cache itself may remove an entry meanwhile.
        pack.arg("-C")
            .arg(shared_cache())
            .args(["-c", "--no-recursion", "--ignore-failed-read"])
            .args(entries);
        let mut packed = pack.stdout(Stdio::piped()).spawn().expect("tar starts");
        let unpack = format!(
            "install -d -m 700 -o {account} {cache} && tar -C {cache} -x --no-same-owner && chown -R {account}: {cache}"
        );
        let mut unpack = self.command(&["sh", "-c", &unpack]);
        let unpacked = unpack.stdin(packed.stdout.take().expect("stdout")).status().expect("xtask runs");
        // The exit code is 1 where other tests were adding files meanwhile. The program makes an incomplete entry anew.
        let packed = packed.wait().expect("tar ends").code();
        assert!(unpacked.success() && matches!(packed, Some(0 | 1)), "{cache}: {packed:?}");
    }

    /// Whether a script of sh succeeds on the host.
    pub fn holds(&self, script: &str) -> bool {
        self.command(&["sh", "-c", script]).output().expect("xtask runs").status.success()
    }

    /// Waits until a script of sh succeeds on the host.
    pub fn until(&self, script: &str) {
        let begun = Instant::now();
        while !self.holds(script) {
            assert!(begun.elapsed() < PATIENCE, "never came true on {}: {script}", self.name);
            // Without a pause, the questions would slow down what the test waits for.
            std::thread::sleep(Duration::from_millis(20));
        }
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
