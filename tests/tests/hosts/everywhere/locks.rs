//! A plan on a real host leaves alone what a package manager or an editor works on, and the answer names that process.

use std::process::{Child, ExitStatus, Stdio};

use linux_sysadmin_tests::{Client, Host, Machine, Plan, Step, way};
use serde_json::{Value, json};

/// The commands that install and remove a package whose installation takes long, and the process that works then.
fn packages() -> (&'static str, &'static str, &'static str) {
    match way().host() {
        debian if debian.starts_with("debian") => {
            ("apt-get -qq install lab-slow", "apt-get -qq purge lab-slow", "apt-get")
        }
        _ => ("dnf --assumeyes --quiet install lab-slow", "dnf --assumeyes --quiet remove lab-slow", "dnf"),
    }
}

/// Vim without a terminal. It edits its stdin until that ends.
const EDITOR: &str = r#"
import os, subprocess, sys, time
vim = subprocess.Popen(["vim.tiny", "-e", "-s", "PATH"], stdin=subprocess.PIPE)
while not os.path.exists("SWAP"):
    assert vim.poll() is None, "vim has ended"
    time.sleep(0.01)
print(vim.pid, flush=True)
sys.stdin.read()
vim.stdin.close()
vim.wait()
"#;

/// A plan that needs this lock, and whose run shows on the host.
fn plan(lock: Value) -> Plan {
    Plan::of([Step::run(&["touch", "--", "/srv/plan/ran"])]).lock(lock)
}

/// Makes a plan, which must be blocked before any step; gives the answer's facts about the holder.
async fn blocked(machine: &Machine, client: &mut Client, lock: Value) -> Value {
    let envelope = client.apply(&plan(lock)).await;
    assert_eq!(envelope["status"], "blocked", "{envelope}");
    assert_eq!(envelope["error_code"], "RESOURCE_LOCKED", "{envelope}");
    assert_eq!(envelope["error_category"], "lock", "{envelope}");
    assert!(envelope["remediation"].as_array().is_some_and(|steps| !steps.is_empty()), "{envelope}");
    assert!(!machine.has("/srv/plan/ran"), "{envelope}");
    envelope["lock_info"].clone()
}

/// Asserts that the answer names this process, with the start that `ps` shows.
fn is_held_by(machine: &Machine, lock_info: &Value, pid: &str, name: &str) {
    assert_eq!(lock_info["held_by_pid"].to_string(), pid, "{lock_info}");
    assert_eq!(lock_info["held_by_process"], name, "{lock_info}");
    assert_eq!(lock_info["held_by_user"], "root", "{lock_info}");
    let since = lock_info["held_since"].as_str().unwrap_or_else(|| panic!("since when? {lock_info}"));
    let began = machine.sh(&format!("LC_ALL=C TZ=UTC ps -o lstart= -p {pid}"));
    let seconds = |time: &str| -> i64 {
        let said = machine.host().run(&["date", "--utc", "+%s", &format!("--date={}", time.trim())]);
        said.trim().parse().expect("a number")
    };
    // Both know the time of the machine's boot to the second.
    let apart = seconds(since) - seconds(&format!("{} UTC", began.trim()));
    assert!(apart.abs() <= 1, "{since} and {began}");
}

/// The package manager at work, until it may go on. It ends together with its children.
struct Installing {
    process: Child,
    host: Host,
}

impl Installing {
    fn begin(machine: &Machine, install: &str) -> Self {
        machine.sh("touch /run/lsa-slow-goes-on");
        let host = machine.host().clone();
        let mut command = host.command(&["sh", "-c", &format!("exec {install}")]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("xtask runs");
        let installing = Self { process, host };
        machine.until("pgrep --full --exact 'sleep 8'");
        installing
    }

    /// Lets it go on, and returns once it has ended.
    fn finish(&mut self) -> ExitStatus {
        self.host.run(&["rm", "-f", "/run/lsa-slow-goes-on"]);
        self.process.wait().expect("it ends")
    }
}

impl Drop for Installing {
    fn drop(&mut self) {
        self.finish();
    }
}

#[tokio::test]
async fn a_package_manager_that_is_at_work_is_named_and_not_disturbed() {
    let test = "a_package_manager_that_is_at_work_is_named_and_not_disturbed";
    let Some(machine) = Machine::by(way(), test) else { return };
    let (install, remove, name) = packages();
    machine.holds(remove);
    let mut clients = [machine.serve().await, machine.serve_as("admin", "admin").await];
    let mut installing = Installing::begin(&machine, install);
    let pid = machine.sh(&format!("pgrep --exact {name}"));
    for client in &mut clients {
        let lock_info = blocked(&machine, client, json!("package-database")).await;
        let resource = lock_info["resource"].as_str().unwrap_or_default();
        assert!(resource.starts_with("package database (/"), "{lock_info}");
        is_held_by(&machine, &lock_info, pid.trim(), name);
    }
    assert!(machine.holds(&format!("pgrep --exact {name}")), "it was at work all the time");
    assert!(installing.finish().success(), "it wasn't disturbed");
    for client in &mut clients {
        client.done(&plan(json!("package-database"))).await;
    }
    machine.sh(remove);
}

#[tokio::test]
async fn a_package_manager_that_knows_no_locks_is_known_by_its_mark() {
    let Some(machine) = Machine::by(way(), "a_package_manager_that_knows_no_locks_is_known_by_its_mark")
    else {
        return;
    };
    let mut client = machine.serve_as("admin", "admin").await;
    machine.sh("mkdir /var/lib/pacman; touch /var/lib/pacman/db.lck");
    let lock_info = blocked(&machine, &mut client, json!("package-database")).await;
    assert_eq!(lock_info["resource"], "package database (/var/lib/pacman/db.lck)", "{lock_info}");
    assert_eq!(lock_info.get("held_by_pid"), None, "{lock_info}");
    machine.sh("rm -r /var/lib/pacman");
    client.done(&plan(json!("package-database"))).await;
}

#[tokio::test]
async fn a_file_that_is_open_in_vim_is_left_alone() {
    let Some(machine) = Machine::by(way(), "a_file_that_is_open_in_vim_is_left_alone") else { return };
    let (file, swap) = ("/srv/plan/edited", "/srv/plan/.edited.swp");
    machine.sh(&format!("echo text > {file}"));
    let mut root = machine.serve().await;
    let mut admin = machine.serve_as("admin", "admin").await;
    let (editor, pid) = machine.helper(&EDITOR.replace("PATH", file).replace("SWAP", swap));
    let lock = json!({"file": file});
    for client in [&mut root, &mut admin] {
        let lock_info = blocked(&machine, client, lock.clone()).await;
        assert_eq!(lock_info["resource"], file, "{lock_info}");
        is_held_by(&machine, &lock_info, &pid, "vim.tiny");
    }
    // An account that can't read the swap file learns that there is one, but not whose it is.
    machine.sh(&format!("chmod 600 {swap}"));
    let lock_info = blocked(&machine, &mut admin, lock.clone()).await;
    assert!(lock_info["held_by_process"].as_str().is_some_and(|held| held.contains(swap)), "{lock_info}");
    assert_eq!(lock_info.get("held_by_pid"), None, "{lock_info}");

    editor.end();
    for client in [&mut root, &mut admin] {
        client.done(&plan(lock.clone())).await;
    }
    // Vim was killed, and its swap file is left. Nothing edits the file.
    machine.sh(&format!(
        "mkfifo /srv/plan/never; exec 3<> /srv/plan/never
         vim.tiny -e -s {file} <&3 & echo $! > /srv/plan/pid
         until test -s {swap}; do :; done; kill -s KILL $(cat /srv/plan/pid)
         wait; test -s {swap}"
    ));
    root.done(&plan(lock)).await;
}
