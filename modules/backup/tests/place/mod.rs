//! A place for the engine: directories of its own, with the real rsync. A test ends where rsync is missing, and says so.
#![allow(clippy::unwrap_used, clippy::print_stdout, dead_code, missing_docs)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A directory with the engine, a source, a destination, and programs that stand before the system's.
pub struct Place {
    pub directory: TempDir,
    pub shell: Vec<String>,
}

/// What a run of the engine printed.
pub struct Ran {
    pub ok: bool,
    pub out: String,
    pub error: String,
}

impl Ran {
    pub fn value(&self, key: &str) -> &str {
        let found = self.out.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("no {key} in {}{}", self.out, self.error))
    }

    #[track_caller]
    pub fn good(self) -> Self {
        assert!(self.ok, "{}{}", self.out, self.error);
        self
    }

    /// The code of a refusal.
    #[track_caller]
    pub fn code(&self) -> &str {
        assert!(!self.ok, "{}", self.out);
        let last = self.error.lines().last().unwrap_or_default();
        last.split_once(": ").unwrap_or_else(|| panic!("{}", self.error)).0
    }
}

pub fn has(program: &str) -> bool {
    Command::new(program).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Counts the test as skipped, and says why.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    println!("SKIPPED {test}: {reason}");
    if let Some(log) = std::env::var_os("LINUX_SYSADMIN_SKIP_LOG") {
        let mut log = fs::File::options().create(true).append(true).open(log).unwrap();
        writeln!(log, "{test}: {reason}").unwrap();
    }
}

pub fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// None, and a word about it, where rsync is missing.
pub fn place() -> Option<Place> {
    if !has("rsync") {
        skipped("there is no rsync");
        return None;
    }
    let directory = tempfile::Builder::new().prefix("backup engine ").tempdir_in("/var/tmp").unwrap();
    let place = Place { directory, shell: vec!["sh".into()] };
    for name in ["source", "destination", "bin", "config"] {
        fs::create_dir(place.path(name)).unwrap();
    }
    fs::set_permissions(place.path("destination"), fs::Permissions::from_mode(0o700)).unwrap();
    let part = |name: &str| fs::read_to_string(format!("{}/src/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut text: String = ["engine.sh", "restic.sh", "dispatch.sh"].map(part).concat();
    for (constant, value) in [
        ("CONFIG=/etc/linux-sysadmin/backup", "config"),
        ("RUN=/run/linux-sysadmin-backup", "run"),
        ("REPLACED=/var/backups/linux-sysadmin-replaced", "replaced"),
        ("DUMPS=/var/backups/linux-sysadmin-dumps", "dumps"),
        ("RESTORING=/var/backups/linux-sysadmin-restoring", "restoring"),
        ("MACHINE=/etc/machine-id", "machine-id"),
        ("REDIS=/etc/redis", "redis"),
    ] {
        assert!(text.contains(constant), "{constant}");
        let (name, _) = constant.split_once('=').unwrap();
        text = text.replace(constant, &format!("{name}='{}'", place.path(value).display()));
    }
    fs::write(place.path("engine"), text).unwrap();
    Some(place)
}

impl Place {
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn at(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes a program that is found before the system's.
    pub fn program(&self, name: &str, text: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Sets a number of the engine.
    pub fn set(&self, constant: &str, value: &str) {
        let text = fs::read_to_string(self.path("engine")).unwrap();
        assert!(text.contains(constant), "{constant}");
        let (name, _) = constant.split_once('=').unwrap();
        fs::write(self.path("engine"), text.replace(constant, &format!("{name}={value}"))).unwrap();
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.shell[0]);
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.at("bin"));
        command.args(&self.shell[1..]).arg(self.path("engine")).args(args).env_clear().env("PATH", path);
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        ran(&mut self.command(args))
    }

    /// Runs a command with the destination's option.
    pub fn at_destination(&self, command: &str, args: &[&str]) -> Ran {
        let destination = format!("--destination=local://{}", self.at("destination"));
        self.run(&[&[command, &destination], args].concat())
    }

    /// Backs up the source and gives the backup's name.
    #[track_caller]
    pub fn create(&self, args: &[&str]) -> String {
        let source = self.at("source");
        self.at_destination("create", &[args, &["--", &source]].concat()).good().value("id").to_owned()
    }

    pub fn verify(&self, id: &str) -> Ran {
        self.at_destination("verify", &["--", id]).good()
    }

    /// A file of the source in a backup.
    pub fn backed_up(&self, id: &str, name: &str) -> PathBuf {
        let source = self.at("source");
        self.path("destination").join(id).join("tree").join(source.trim_start_matches('/')).join(name)
    }

    pub fn destination_names(&self) -> Vec<String> {
        let names = fs::read_dir(self.path("destination")).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A stand-in for ssh that runs the command here, as this account.
    pub fn fake_ssh(&self) {
        self.program(
            "ssh",
            "while :; do case $1 in -o | -p | -l) shift 2 ;; -*) shift ;; *) break ;; esac; done\n\
             [ \"$1\" = backuphost ] || { echo \"ssh: Could not resolve hostname $1: Name or service not known\" >&2; exit 255; }\n\
             shift; exec sh -c \"$*\"",
        );
    }
}

pub fn ran(command: &mut Command) -> Ran {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Ran {
        ok: output.status.success(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        error: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// What rsync would have to do to make the second directory like the first one, with everything that it knows.
pub fn difference(one: &Path, other: &Path) -> String {
    let mut command = Command::new("rsync");
    command.args(["-aHAX", "--checksum", "--dry-run", "--itemize-changes", "--delete"]);
    ran(command.arg(format!("{}/", one.display())).arg(format!("{}/", other.display()))).good().out
}

/// The shells by which the engine has to run.
const SHELLS: [&[&str]; 3] = [&["dash"], &["bash", "--posix"], &["busybox", "sh"]];

/// A place for each shell that the machine has; none where `make` has none.
pub fn of_each_shell(make: impl Fn() -> Option<Place>) -> impl Iterator<Item = Place> {
    let shells = SHELLS.into_iter().filter(|shell| {
        let is_there = has(shell[0]);
        if !is_there {
            println!("skipped: there is no {}", shell[0]);
        }
        is_there
    });
    shells.filter_map(move |shell| {
        Some(Place { shell: shell.iter().map(|word| (*word).to_owned()).collect(), ..make()? })
    })
}

/// Gives a file to another account with a mode of its own, where root runs the tests.
pub fn give_away(file: &Path) {
    if is_root() {
        std::os::unix::fs::chown(file, Some(12345), Some(54321)).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o4751)).unwrap();
    }
}

/// Names and files that break what isn't written with care.
pub fn odd_files(source: &Path) {
    let names: [&[u8]; 9] = [
        b"new\nline",
        b"-rf",
        b" blank ",
        "ä ☃".as_bytes(),
        b"\xff\xfe",
        b"tab\tx \\#041",
        b"[x]*?",
        b"$(touch x)'\"`",
        b"a => b -> c | d",
    ];
    for name in names {
        use std::os::unix::ffi::OsStrExt;
        fs::write(source.join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    fs::create_dir_all(source.join("empty/deep")).unwrap();
    fs::hard_link(source.join("-rf"), source.join("empty/hard => link")).unwrap();
    symlink("//tmp//x/ y", source.join("link")).unwrap();
    symlink("nowhere", source.join("dangling")).unwrap();
    let sparse = fs::File::create(source.join("sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    fs::set_permissions(source.join("-rf"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(source.join("empty"), fs::Permissions::from_mode(0o2770)).unwrap();
}

/// Runs shell lines in the place, with mounts of their own. `e` runs the engine.
pub fn with_mounts(place: &Place, script: &str) -> Option<Ran> {
    if !is_root() || !ran(Command::new("unshare").args(["-m", "true"])).ok {
        skipped("needs mounts");
        return None;
    }
    let script = format!(
        "set -u; at='{}'; cd \"$at\"; PATH=$at/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
         e() {{ sh \"$at/engine\" \"$@\"; echo code=$?; }}\n{script}",
        place.directory.path().display()
    );
    Some(ran(Command::new("unshare").args(["-m", "sh", "-c", &script])))
}
