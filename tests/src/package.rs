//! Packages of the program, as `cargo xtask dist` makes them: installed on a test host, used by an account that has never
//! started the program, and removed.

use std::path::{Path, PathBuf};

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
const INSTALLED: [&str; 6] = [
    "/usr/share/man/man1/linux-sysadmin.1*",
    "/usr/share/man/man1/linux-sysadmin-doctor.1*",
    "/usr/share/bash-completion/completions/linux-sysadmin",
    "/usr/share/fish/vendor_completions.d/linux-sysadmin.fish",
    "/usr/share/zsh/*/_linux-sysadmin",
    "/usr/share/linux-sysadmin/claude-plugin/.claude-plugin/plugin.json",
];

/// The files that would be left after the removal. The package manager's own records may be.
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
    let entries = std::fs::read_dir(&folder).expect("the folder of the packages");
    let found = entries.map(|entry| entry.expect("an entry").path()).find(is_it);
    Some(found.unwrap_or_else(|| panic!("no {} in {}", kind.ending, Path::new(&folder).display())))
}

/// Tells the story of one package on the host of `reach`.
pub async fn is_installed_used_and_removed(test: &str, reach: Reach, kind: &PackageKind) {
    let Some(file) = package(test, kind) else { return };
    let Some(machine) = Changing::by(reach, test, PREPARE, CLEAN) else { return };
    let host = machine.host();
    let path = format!("/run/lsa-package{}", kind.ending);
    host.put(&path, &std::fs::read(file).expect("the package"));
    machine.sh(&format!("{} {path}", kind.install));
    for installed in INSTALLED {
        machine.sh(&format!("test -s {installed}"));
    }
    machine.sh("visudo --check --quiet --file=/usr/share/doc/linux-sysadmin/sudoers.example");

    let says = |code: i32, args: &[&str]| {
        let argv = [&["linux-sysadmin"], args].concat();
        let output = host.command_as(PERSON, &argv).output().expect("xtask runs");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{args:?}: {out}\n{err}");
        serde_json::from_str::<Value>(&out).unwrap_or_else(|error| panic!("{args:?}: {error}: {out}\n{err}"))
    };
    // The installation has compiled the modules, so the first call of an account compiles none.
    let first = says(0, &["call", "perf_uptime", "--json"]);
    assert_eq!(first["status"], "success", "{first}");
    machine.sh("ls /var/cache/linux-sysadmin/*.cwasm");
    machine.sh(&format!("test -z \"$(find /home/{PERSON}/.cache -name '*.cwasm')\""));

    let mut client = Client::start_command(host.command_as(PERSON, &["linux-sysadmin", "serve"]));
    client.initialize("2025-06-18").await;
    let tools = client.request("tools/list", json!({})).await;
    assert!(tools["result"]["tools"].as_array().is_some_and(|tools| tools.len() > 100), "{tools}");
    let prompts = client.request("prompts/list", json!({})).await;
    assert!(prompts["result"]["prompts"].as_array().is_some_and(|prompts| !prompts.is_empty()), "{prompts}");
    let envelope = client.envelope("svc_list", json!({"limit": 3})).await;
    assert_eq!(envelope["status"], "success", "{envelope}");
    client.close().await;

    let compile = host.command_as(PERSON, &["linux-sysadmin", "modules", "compile"]).output();
    let compile = compile.expect("xtask runs");
    let said = String::from_utf8_lossy(&compile.stderr);
    assert!(compile.status.code() == Some(1) && said.contains("only root"), "{said}");

    let health = says(0, &["doctor", "--json"]);
    assert_eq!(health["all_right"], true, "{health}");
    for area in ["configuration", "modules", "cache", "ssh", "sudo", "clients"] {
        let mut findings = health["findings"].as_array().into_iter().flatten();
        assert!(findings.any(|finding| finding["area"] == area), "{area}: {health}");
    }

    machine.sh(kind.remove);
    assert_eq!(machine.sh(LEFT), "", "the removal leaves files behind");
}
