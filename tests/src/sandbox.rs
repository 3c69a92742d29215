//! A cheap machine for changes: a server runs as root in a mount namespace, where `/srv`, `/run` and the machine's id are
//! the test's own. Everything else is this machine's, and the tests leave it as it is.

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use serde_json::Value;

use crate::{Client, Home, guest, skipped};

/// Runs before the server starts: it mounts `/srv` and the id from the test's home, and an empty `/run`.
const INSIDE: &str = r#"set -e
mount --bind "$1" /srv
mount --bind "$2" /etc/machine-id
mount -t tmpfs -o mode=755 tmpfs /run
shift 2
exec "$@""#;

/// The time after which a test that hangs fails. Nothing that a test waits for takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The machine-id(5) of a sandbox.
const MACHINE_ID: &str = "0123456789abcdef0123456789abcdef";

/// A sandbox with the planner on it.
pub struct Sandbox {
    home: Home,
}

impl Sandbox {
    /// Makes a sandbox. Where that is impossible, the test is counted as skipped.
    pub fn new(test: &str) -> Option<Self> {
        let root = rustix::process::geteuid().is_root();
        let tried = || Command::new("unshare").args(["--mount", "mount", "--bind", "/srv", "/srv"]).output();
        if !root || !tried().is_ok_and(|output| output.status.success()) {
            skipped(test, "it takes root, and a mount namespace of its own");
            return None;
        }
        let sandbox = Self { home: Home::new() };
        fs::create_dir_all(sandbox.path("/srv/plan")).expect("made");
        for directory in ["/srv", "/srv/plan"] {
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(sandbox.path(directory), mode).expect("its owner's to write");
        }
        sandbox.becomes(MACHINE_ID);
        Some(sandbox)
    }

    /// The home of the server.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Sets another machine-id(5), so that the sandbox is another machine from now on.
    pub fn becomes(&self, id: &str) {
        fs::write(self.home.path().join("machine-id"), format!("{id}\n")).expect("written");
    }

    /// Writes the configuration, as YAML.
    pub fn configure(&self, yaml: &str) {
        let config = self.home.config();
        fs::create_dir_all(config.parent().expect("a directory")).expect("made");
        fs::write(config, yaml).expect("written");
    }

    /// Starts a server and opens no session.
    pub fn start(&self) -> Client {
        Client::start_command(self.command())
    }

    /// The command that starts a server, for any client.
    pub fn command(&self) -> Command {
        let server = self.home.command(&guest("planner"), &["serve"]);
        let mut command = Command::new("unshare");
        command.args(["--mount", "--", "sh", "-c", INSIDE, "sh"]);
        command.args([self.path("/srv"), self.home.path().join("machine-id")]);
        command.arg(server.get_program()).args(server.get_args());
        for (name, value) in server.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// A command that runs a program in the sandbox of this client's server.
    pub fn beside(&self, client: &Client, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &client.pid().to_string(), "--", program]);
        command.env("HOME", self.home.path()).env_remove("XDG_STATE_HOME");
        command
    }

    /// The path outside the sandbox of a path below its `/srv`.
    pub fn path(&self, path: &str) -> PathBuf {
        let relative = path.strip_prefix("/srv").expect("the path is below /srv");
        self.home.path().join("srv").join(relative.trim_start_matches('/'))
    }

    /// The contents of a file below the sandbox's `/srv`, or none where there is no such file.
    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok()
    }

    /// Writes a file below the sandbox's `/srv`.
    pub fn write(&self, path: &str, contents: &str) {
        fs::write(self.path(path), contents).expect("written");
    }

    /// Reads this number of bytes from a fifo below the sandbox's `/srv`. A writer waits until this opens it.
    pub async fn drain(&self, path: &str, bytes: usize) -> String {
        let (mut said, begun) = (String::new(), Instant::now());
        let fifo = open(self.path(path), OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).expect("a fifo");
        let mut fifo = fs::File::from(fifo);
        while said.len() < bytes {
            assert!(begun.elapsed() < PATIENCE, "nobody writes to {path}");
            match fifo.read_to_string(&mut said) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{path}: {error}"),
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        said
    }

    /// The names in `/srv/plan`.
    pub fn plan_files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("/srv/plan")).expect("a directory").flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Removes all files and records. No server may run.
    pub fn begin_anew(&self) {
        let plan = self.path("/srv/plan");
        fs::remove_dir_all(&plan).and_then(|()| fs::create_dir(&plan)).expect("made anew");
        fs::set_permissions(&plan, fs::Permissions::from_mode(0o755)).expect("its owner's to write");
        let _ = fs::remove_dir_all(self.home.state());
    }

    /// The records of the audit log.
    pub fn audit(&self) -> Vec<Value> {
        self.home.audit()
    }

    /// The records of this event.
    pub fn events(&self, event: &str) -> Vec<Value> {
        self.audit().into_iter().filter(|record| record["event"] == event).collect()
    }

    /// Waits for a record of this event with these members.
    pub async fn recorded(&self, event: &str, members: Value) -> Value {
        let members = members.as_object().expect("an object");
        let fits = |record: &Value| members.iter().all(|(name, value)| record[name] == *value);
        let begun = Instant::now();
        loop {
            if let Some(record) = self.events(event).into_iter().find(fits) {
                return record;
            }
            assert!(begun.elapsed() < PATIENCE, "never on record: {event} {members:?}: {:?}", self.audit());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Asserts that no change has begun, and that no plan has made a file.
    #[track_caller]
    pub fn is_untouched(&self, context: &str) {
        assert_eq!(self.plan_files(), Vec::<String>::new(), "{context}");
        assert_eq!(self.events("change-begun"), Vec::<Value>::new(), "{context}");
    }

    /// Asserts that the program finds the audit log valid.
    #[track_caller]
    pub fn audit_is_valid(&self) {
        let verified = self.home.run(Path::new("/nonexistent"), &["audit", "verify"]);
        assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stderr));
    }
}
