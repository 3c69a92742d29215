//! Root adds modules for everyone on a real host, which no account can change or override.

use std::process::Output;

use linux_sysadmin_tests::{Host, component, warmed};
use serde_json::Value;
use sha2::{Digest, Sha256};

const ACCOUNT: &str = "system-test";
const PROGRAM: &str = "/opt/linux-sysadmin/linux-sysadmin";
const PLACE: &str = "/var/lib/linux-sysadmin";

struct Machine(Host);

impl Machine {
    fn new(host: Host) -> Self {
        let machine = Self(host);
        machine.clean();
        machine.0.run(&["useradd", "--create-home", ACCOUNT]);
        machine.0.warm(ACCOUNT, &format!("/home/{ACCOUNT}/.cache"));
        machine
    }

    fn clean(&self) {
        let _ = self.0.command(&["userdel", "--remove", ACCOUNT]).output();
        let _ = self.0.command(&["rm", "-rf", PLACE, "/tmp/greeter.wasm", "/tmp/greeter-next.wasm"]).output();
    }

    /// Puts a component on the host; gives its path and its SHA-256.
    fn put(&self, name: &str) -> (String, String) {
        let path = format!("/tmp/{name}.wasm");
        let bytes = std::fs::read(component(name)).expect("a component");
        self.0.put(&path, &bytes);
        (path, hex::encode(Sha256::digest(bytes)))
    }

    /// Runs `linux-sysadmin` with these arguments as the account.
    fn account(&self, args: &[&str]) -> Output {
        self.0.command_as(ACCOUNT, &[&[PROGRAM], args].concat()).output().expect("xtask runs")
    }

    /// Runs `linux-sysadmin` with these arguments as root.
    fn root(&self, args: &[&str]) -> Output {
        self.0.command_as("root", &[&[PROGRAM], args].concat()).output().expect("xtask runs")
    }

    /// Whether the account has the module's tools, and the program's messages.
    fn has_greeter(&self) -> (bool, String) {
        let listed = self.account(&["modules", "list", "--json"]);
        let all: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
        let entries = all.as_array().expect("a list").iter();
        let why = entries.filter_map(|entry| entry["reason"].as_str()).collect::<Vec<_>>().join("; ");
        let tools = self.account(&["tools"]);
        (String::from_utf8_lossy(&tools.stdout).contains("greet_users"), why)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.clean();
    }
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn done(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

#[track_caller]
fn refused(output: &Output, word: &str) {
    let said = said(output);
    assert!(output.status.code() == Some(1) && said.contains(word), "{word} is not in: {said}");
}

#[test]
fn what_root_adds_is_everyones_and_nobody_elses_to_change() {
    let test = "what_root_adds_is_everyones_and_nobody_elses_to_change";
    let Some(host) = warmed(test, "debian1") else { return };
    let machine = Machine::new(host);
    let (greeter, sha256) = machine.put("greeter");
    let (next, next_sha256) = machine.put("greeter-next");
    let add = ["modules", "add", &greeter, "--yes", "--sha256", &sha256];
    let system = [&add[..], &["--system"]].concat();

    refused(&machine.account(&system), "run this with sudo");
    assert!(!machine.has_greeter().0);
    done(&machine.root(&system));
    assert!(machine.has_greeter().0);
    done(&machine.account(&["call", "greet"]));

    // An account can neither change the module nor replace it by another of its name.
    refused(&machine.account(&["modules", "remove", "greeter"]), "only root can change it");
    refused(&machine.account(&["modules", "disable", "greeter", "--system"]), "run this with sudo");
    let update = ["modules", "update", "greeter", &next, "--yes", "--sha256", &next_sha256];
    refused(&machine.account(&update), "only root can change it");
    let own = ["modules", "add", &next, "--yes", "--sha256", &next_sha256];
    refused(&machine.account(&own), "which root added for everyone");
    refused(&machine.account(&[&own[..], &["--replace"]].concat()), "which root added for everyone");

    // An account can disable the module for itself.
    done(&machine.account(&["modules", "disable", "greeter"]));
    assert!(!machine.has_greeter().0);
    done(&machine.account(&["modules", "enable", "greeter"]));
    assert!(machine.has_greeter().0);

    // A component that root disables by its hash is disabled for everyone, at any path.
    done(&machine.root(&["modules", "disable", &format!("sha256:{sha256}"), "--system"]));
    let (has, why) = machine.has_greeter();
    assert!(!has && why.contains("/var/lib/linux-sysadmin/modules/modules.lock"), "{why}");
    done(&machine.root(&["modules", "remove", "greeter"]));
    done(&machine.account(&add));
    let (has, why) = machine.has_greeter();
    assert!(!has && why.contains("/var/lib/linux-sysadmin/modules/modules.lock"), "{why}");
    let enabled = machine.account(&["modules", "enable", "greeter"]);
    refused(&enabled, "/var/lib/linux-sysadmin/modules/modules.lock");
    done(&machine.root(&["modules", "enable", &format!("sha256:{sha256}"), "--system"]));
    assert!(machine.has_greeter().0);

    // A directory that others may write to is ignored.
    done(&machine.account(&["modules", "remove", "greeter"]));
    done(&machine.root(&system));
    machine.0.run(&["chmod", "0777", "/var/lib/linux-sysadmin/modules"]);
    let (has, why) = machine.has_greeter();
    assert!(!has && why.contains("nothing in it is trusted"), "{why}");
}
