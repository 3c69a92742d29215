//! Packages of the program, as `cargo xtask dist` makes them: installed on a test host, used by an account that has never
//! started the program, and removed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::{Changing, Client, Reach, skipped};

/// The account that uses the program.
const PERSON: &str = "lsa-person";

const PREPARE: &str = "useradd --create-home --shell /bin/bash lsa-person";

const CLEAN: &str = r"
pkill -KILL -u lsa-person
userdel --remove lsa-person
dpkg --purge linux-sysadmin
rpm --erase linux-sysadmin
rm -rf /var/cache/linux-sysadmin /run/lsa-package.*
";

/// What an installation has besides the program and its modules.
const INSTALLED: [&str; 8] = [
    "/usr/share/man/man1/linux-sysadmin.1*",
    "/usr/share/man/man1/linux-sysadmin-doctor.1*",
    "/usr/share/bash-completion/completions/linux-sysadmin",
    "/usr/share/fish/vendor_completions.d/linux-sysadmin.fish",
    "/usr/share/zsh/*/_linux-sysadmin",
    "/usr/share/linux-sysadmin/claude-plugin/.claude-plugin/plugin.json",
    "/usr/share/linux-sysadmin/sdk/Cargo.toml",
    "/usr/share/linux-sysadmin/sdk/python/pyproject.toml",
];

/// Lists what would be left after the removal. The package manager's own records, and what this test makes, may be.
const LEFT: &str = "find /etc /usr /var/lib /var/cache -xdev -path '*linux-sysadmin*' \
    ! -path '/var/lib/dpkg/*' ! -path '/var/lib/rpm/*' ! -path '/var/lib/planner*' -print";

/// A kind of package.
pub struct PackageKind {
    /// The ending of its file.
    pub ending: &'static str,
    /// The command that installs the file behind it.
    pub install: &'static str,
    /// The command that removes the package.
    pub remove: &'static str,
    /// The name of a host that takes it.
    pub host: &'static str,
}

/// A host on which a package is installed.
pub struct InstalledPackage {
    machine: Changing,
    kind: PackageKind,
    /// What was there before, of other tests.
    before: BTreeSet<String>,
}

/// The package of this kind for this processor. Where there are no packages, the test is counted as skipped.
fn package(test: &str, kind: &PackageKind) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("LINUX_SYSADMIN_PACKAGES") else {
        skipped(
            test,
            "there is no package to install: it takes `cargo xtask test --all` or `cargo xtask dist --test`",
        );
        return None;
    };
    let archs: &[&str] = match std::env::consts::ARCH {
        "x86_64" => &["x86_64", "amd64"],
        _ => &["aarch64", "arm64"],
    };
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.ends_with(kind.ending) && archs.iter().any(|arch| name.contains(arch))
    };
    let entries = fs::read_dir(&folder).expect("the folder of the packages");
    let found = entries.map(|entry| entry.expect("an entry").path()).find(is_it);
    Some(found.unwrap_or_else(|| panic!("no {} in {}", kind.ending, Path::new(&folder).display())))
}

/// The program of a client that `cargo xtask` has installed. Where there is none, the test is counted as skipped.
fn client(test: &str, variable: &str) -> Option<PathBuf> {
    let program = std::env::var_os(variable).map(PathBuf::from);
    if program.is_none() {
        skipped(test, &format!("{variable} names no client: it takes npm, and the network"));
    }
    program
}

/// The output of a program that ends well.
fn output(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let (out, err) = (String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {out}\n{err}");
    out
}

impl InstalledPackage {
    /// Installs the package on a host. Where there is no package or no host, the test is counted as skipped.
    pub fn new(test: &str, kind: PackageKind) -> Option<Self> {
        let file = package(test, &kind)?;
        let machine = Changing::by(Reach::Inside(kind.host), test, PREPARE, CLEAN)?;
        let before = machine.sh(LEFT).lines().map(str::to_owned).collect();
        let path = format!("/run/lsa-package{}", kind.ending);
        machine.host().put(&path, &fs::read(file).expect("the package"));
        machine.sh(&format!("{} {path}", kind.install));
        Some(Self { machine, kind, before })
    }

    /// Runs the program as the person; gives its exit code, and what it prints on stdout and stderr.
    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let argv = [&["linux-sysadmin"], args].concat();
        let output = self.machine.host().command_as(PERSON, &argv).output().expect("xtask runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn says(&self, args: &[&str]) -> Value {
        let (code, out, err) = self.run(args);
        assert_eq!(code, Some(0), "{args:?}: {out}\n{err}");
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error}: {out}\n{err}"))
    }

    /// Tells what a person finds who uses the program for the first time, and what is left after its removal.
    pub async fn is_used_and_removed(&self) {
        let machine = &self.machine;
        for installed in INSTALLED {
            machine.sh(&format!("test -s {installed}"));
        }
        machine.sh("visudo --check --quiet --file=/usr/share/doc/linux-sysadmin/sudoers.example");

        // The installation has compiled the modules, so the first call of an account compiles none.
        let first = self.says(&["call", "perf_uptime", "--json"]);
        assert_eq!(first["status"], "success", "{first}");
        machine.sh("ls /var/cache/linux-sysadmin/*.cwasm");
        machine.sh(&format!("test -z \"$(find /home/{PERSON}/.cache -name '*.cwasm')\""));

        let server = machine.host().command_as(PERSON, &["linux-sysadmin", "serve"]);
        let mut client = Client::start_command(server);
        client.initialize("2025-06-18").await;
        let tools = client.request("tools/list", json!({})).await;
        assert!(tools["result"]["tools"].as_array().is_some_and(|tools| tools.len() > 100), "{tools}");
        let prompts = client.request("prompts/list", json!({})).await;
        assert!(prompts["result"]["prompts"].as_array().is_some_and(|all| !all.is_empty()), "{prompts}");
        let envelope = client.envelope("svc_list", json!({"limit": 3})).await;
        assert_eq!(envelope["status"], "success", "{envelope}");
        client.close().await;

        let (code, _, refused) = self.run(&["modules", "compile"]);
        assert!(code == Some(1) && refused.contains("only root"), "{refused}");
        let health = self.says(&["doctor", "--json"]);
        assert_eq!(health["all_right"], true, "{health}");
        for area in ["configuration", "modules", "cache", "ssh", "sudo", "clients"] {
            let mut findings = health["findings"].as_array().into_iter().flatten();
            assert!(findings.any(|finding| finding["area"] == area), "{area}: {health}");
        }

        machine.sh(self.kind.remove);
        let after = machine.sh(LEFT);
        let left: Vec<&str> = after.lines().filter(|file| !self.before.contains(*file)).collect();
        assert_eq!(left, Vec::<&str>::new(), "the removal leaves files behind");
    }

    /// Starts the installed server by Claude Code and by the inspector's command line, as a person's client would.
    pub fn answers_clients(&self, test: &str) {
        let clients = (client(test, "LINUX_SYSADMIN_CLAUDE"), client(test, "LINUX_SYSADMIN_INSPECTOR"));
        let (Some(claude), Some(inspector)) = clients else { return };
        let home = tempfile::tempdir().expect("a home");
        let server = self.starter(home.path());
        let server = server.to_str().expect("UTF-8");
        // The clients get a home of their own, and nothing of this process's environment.
        let start = |program: &Path, args: &[&str]| {
            let mut command = Command::new(program);
            let path = std::env::var_os("PATH").unwrap_or_default();
            command.env_clear().env("PATH", path).env("HOME", home.path()).current_dir(home.path());
            command.args(args);
            output(&mut command)
        };
        let json = |said: &str| -> Value {
            serde_json::from_str(said).unwrap_or_else(|error| panic!("{error}: {said}"))
        };
        let listed = json(&start(&inspector, &["--cli", server, "serve", "--method", "tools/list"]));
        assert!(listed["tools"].as_array().is_some_and(|tools| tools.len() > 100), "{listed}");
        let call = ["--cli", server, "serve", "--method", "tools/call", "--tool-name", "cron_validate"];
        let call = [&call[..], &["--tool-arg", "expression=@daily"]].concat();
        let called = json(&start(&inspector, &call));
        assert_eq!(called["structuredContent"]["status"], "success", "{called}");

        start(&claude, &["mcp", "add", "linux-sysadmin-mcp", "--", server, "serve"]);
        let listed = start(&claude, &["mcp", "list"]);
        let line = listed.lines().find(|line| line.starts_with("linux-sysadmin-mcp: "));
        assert!(line.is_some_and(|line| line.ends_with("Connected")), "{listed}");
    }

    /// A script that starts the program on the host as the person. The clients run on this machine.
    fn starter(&self, folder: &Path) -> PathBuf {
        let command = self.machine.host().command_as(PERSON, &["linux-sysadmin"]);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        let script = format!("#!/bin/sh\nexec {} \"$@\"\n", shell_words::join(words));
        let path = folder.join("server");
        fs::write(&path, script).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be started");
        path
    }
}
