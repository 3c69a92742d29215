//! The fragment that `modules sudoers` prints on a real host is enough for every tool, and sudo refuses everything
//! else.

use std::process::Output;

use linux_sysadmin_tests::{Host, component, expected, host};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const ACCOUNT: &str = "lsa-test";
const PROGRAM: &str = "/opt/linux-sysadmin/linux-sysadmin";
const ROOTED: &str = "/tmp/rooted.wasm";
const FRAGMENT: &str = "/etc/sudoers.d/linux-sysadmin-rooted";
/// A link of root, in a directory of root, that leads to a file that isn't granted.
const LEADS_OUT: &str = "/etc/sudoers.d/leads-out~";

/// An account of the host that may do nothing by sudo until the fragment is installed.
struct Account(Host);

impl Account {
    fn new(host: Host) -> Self {
        let account = Self(host);
        account.clean();
        account.0.run(&["useradd", "--create-home", ACCOUNT]);
        account.0.warm(ACCOUNT, &format!("/home/{ACCOUNT}/.cache"));
        account
    }

    fn clean(&self) {
        let _ = self.0.command(&["userdel", "--remove", ACCOUNT]).output();
        let _ = self
            .0
            .command(&["rm", "-f", FRAGMENT, LEADS_OUT, "/tmp/leads-in", ROOTED, "/tmp/fragment"])
            .output();
        let _ = self
            .0
            .command(&["find", "/etc/sudoers.d", "-name", "linux-sysadmin-rooted.*", "-delete"])
            .output();
    }

    fn output(&self, argv: &[&str]) -> Output {
        self.0.command_as(ACCOUNT, argv).output().expect("xtask runs")
    }

    fn run(&self, argv: &[&str]) -> String {
        let output = self.output(argv);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{argv:?}: {said}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Calls a tool through the real binary; gives the envelope.
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let output = self.output(&[PROGRAM, "call", tool, "--args", &arguments.to_string()]);
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!("{tool}: {error}: {text}{}", String::from_utf8_lossy(&output.stderr))
        })
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.clean();
    }
}

/// The files that are shown as comments below a fragment: `# PATH, owned by root, mode 0440:` and indented lines.
fn environments(fragment: &str) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    for line in fragment.lines() {
        if let Some(path) =
            line.strip_prefix("# ").and_then(|line| line.strip_suffix(", owned by root, mode 0440:"))
        {
            files.push((path.to_owned(), String::new()));
        } else if let (Some(variable), Some((_, text))) = (line.strip_prefix("#   "), files.last_mut()) {
            text.push_str(variable);
            text.push('\n');
        }
    }
    files
}

#[test]
fn the_fragment_alone_is_enough_for_every_tool_and_sudo_refuses_all_else() {
    let test = "the_fragment_alone_is_enough_for_every_tool_and_sudo_refuses_all_else";
    let Some(host) = host(test, "debian1") else { return };
    let account = Account::new(host);
    let bytes = std::fs::read(component("rooted")).expect("a component");
    let sha256 = hex::encode(Sha256::digest(&bytes));
    account.0.put(ROOTED, &bytes);
    account.run(&[PROGRAM, "modules", "add", ROOTED, "--yes", "--sha256", &sha256]);

    // Before the fragment is there, tools that need root's rights say so, and the others work.
    let sudoers = json!({"path": "/etc/sudoers.d/admin"});
    for tool in ["rooted_read", "rooted_head"] {
        let refused = account.call(tool, &sudoers);
        assert_eq!(refused["error_code"], "PRIVILEGE_REQUIRED", "{refused}");
        let fragment = format!("modules sudoers rooted --account {ACCOUNT}");
        assert!(refused["remediation"].to_string().contains(&fragment), "{refused}");
    }
    assert_eq!(account.call("rooted_whoami", &json!({}))["data"]["text"], format!("{ACCOUNT}\n"));
    let session = account.call("sysadmin_session_info", &json!({}));
    assert_eq!(session["data"]["degraded_mode"], true, "{session}");

    let fragment = account.run(&[PROGRAM, "modules", "sudoers", "rooted"]);
    let shown = account.call("sysadmin_session_info", &json!({"show_sudoers_reference": "rooted"}));
    let shown = shown["data"]["sudoers_reference"]["rooted"].as_str().expect("a fragment").to_owned();
    assert!(fragment.starts_with(shown.trim_end()), "both ways show the same");
    assert!(!fragment.contains("NOPASSWD: ALL") && !fragment.contains("SETENV"), "{fragment}");
    let files = environments(&fragment);
    assert!(matches!(&files[..], [(_, text)] if text == "DEBIAN_FRONTEND=noninteractive\n"), "{files:?}");
    account.0.put("/tmp/fragment", fragment.as_bytes());
    account.0.run(&["visudo", "-cf", "/tmp/fragment"]);
    account.0.put(FRAGMENT, fragment.as_bytes());
    account.0.run(&["chmod", "0440", FRAGMENT]);
    for (path, text) in &files {
        account.0.put(path, text.as_bytes());
        account.0.run(&["chmod", "0440", path]);
    }
    account.0.run(&["visudo", "-c"]);

    // Now every tool is called.
    let session = account.call("sysadmin_session_info", &json!({"refresh": true}));
    assert!(session["data"].get("degraded_mode").is_none(), "{session}");
    assert_eq!(session["data"]["privilege"]["sudo_limited"], true, "{session}");
    let tools: Value = serde_json::from_str(&account.run(&[PROGRAM, "tools", "--json"])).expect("JSON");
    for tool in tools.as_array().expect("a list") {
        let name = tool["name"].as_str().expect("a name");
        let (arguments, code) = match name {
            "rooted_head" | "rooted_read" => (sudoers.clone(), ""),
            // The names in a directory can be listed only where everything below it is granted.
            "rooted_list" => (json!({"path": "/etc/sudoers.d"}), "CAPABILITY_DENIED"),
            "rooted_status" => (json!({"unit": "ssh"}), ""),
            "rooted_wait" => (json!({}), "COMMAND_TIMEOUT"),
            _ if name.starts_with("rooted_") => (json!({}), ""),
            // The other modules' tools look with the rights that the account has, and their fragments aren't there.
            _ => {
                let expected = expected(name);
                let code = expected.without_sudo.as_ref().unwrap_or(&expected.fails);
                (expected.harmless.clone(), code.as_str())
            }
        };
        let answer = account.call(name, &arguments);
        assert_eq!(answer["error_code"].as_str().unwrap_or_default(), code, "{name}: {answer}");
    }
    // The command that was stopped has ended, though it ran as root: sudo has ended it.
    while account
        .0
        .command(&["pgrep", "--full", "sleep 98765"])
        .output()
        .expect("xtask runs")
        .status
        .success()
    {
        std::thread::yield_now();
    }
    let rules = account.0.run(&["cat", "/etc/sudoers.d/admin"]);
    assert_eq!(account.call("rooted_read", &sudoers)["data"]["text"], rules.as_str());
    assert_eq!(account.call("rooted_head", &sudoers)["data"]["text"], format!("0 {rules}"));
    assert_eq!(account.call("rooted_whoami", &json!({}))["data"]["text"], "root\n");
    let gshadow = account.call("rooted_read", &json!({"path": "/etc/gshadow"}));
    assert!(gshadow["data"]["text"].as_str().expect("text").starts_with("root:"), "{gshadow}");

    // The server itself refuses these paths. sudo can't see where they lead.
    account.0.run(&["ln", "-s", "/etc/shadow", LEADS_OUT]);
    account.0.run(&["ln", "-s", "/etc/sudoers.d/admin", "/tmp/leads-in"]);
    for tool in ["rooted_read", "rooted_head"] {
        for path in [LEADS_OUT, "/tmp/leads-in", "/etc/sudoers.d/../shadow", "/etc/shadow"] {
            let refused = account.call(tool, &json!({"path": path}));
            assert_eq!(refused["error_code"], "CAPABILITY_DENIED", "{tool} {path}: {refused}");
        }
    }

    // sudo allows these.
    for allowed in [
        &["systemctl", "show", "--property=ActiveState", "--", "ssh"][..],
        &["systemctl", "show", "--property=ActiveState", "--", "ssh.service", "cron"],
        &["head", "--lines=5", "--", "/etc/sudoers.d/admin"],
    ] {
        account.run(&[&["sudo", "-n", "--"][..], allowed].concat());
    }
    for listed in [
        &["systemctl", "restart", "--", "nginx.service"][..],
        &["apt-get", "install", "--yes", "--", "lab-hello", "lab-dep"],
        &["journalctl", "--vacuum-size=100M"],
        &["journalctl", "--vacuum-size=100M", "--unit=nginx"],
    ] {
        account.run(&[&["sudo", "-n", "-l", "--"][..], listed].concat());
    }
    for refused in [
        // Texts that are no unit's name.
        &["--", "systemctl", "restart", "--", "ngin*"][..],
        &["--", "systemctl", "restart", "--", "../../tmp/evil.service"],
        &["--", "systemctl", "restart", "--", "/tmp/evil.service"],
        &["--", "systemctl", "restart", "--", "-Hother"],
        &["--", "systemctl", "restart", "--", ""],
        // A further option, an option in another place, a verb that isn't granted.
        &["--", "systemctl", "restart", "--no-block", "--", "nginx"],
        &["--", "systemctl", "-Hother", "restart", "--", "nginx"],
        &["--", "systemctl", "restart", "nginx"],
        &["--", "systemctl", "edit", "--", "nginx"],
        &["--", "journalctl", "--vacuum-size=1M", "--unit=nginx", "--rotate"],
        &["--", "journalctl", "--unit=nginx", "--vacuum-size=1M"],
        // Two words in one hole.
        &["--", "systemctl", "restart", "--", "nginx ssh"],
        &["--", "systemctl", "restart", "--", "nginx", "ssh"],
        &["--", "journalctl", "--vacuum-size=1M --rotate"],
        &["--", "systemctl", "restart", "--", "nginx\nssh"],
        // Paths that aren't granted.
        &["--", "head", "--lines=5", "--", "/etc/sudoers.d/../shadow"],
        &["--", "head", "--lines=5", "--", "/tmp/leads-in"],
        &["--", "head", "--lines=5", "--", "/etc/sudoers.d/a/b"],
        &["--", "head", "--lines=5", "--", "/etc/sudoers.d/admin", "/etc/shadow"],
        &["--", "head", "--lines=5", "--", "/etc/shadow"],
        &["--", "dd", "if=/etc/shadow"],
        // A package's file, a removal, a version, an option.
        &["--", "apt-get", "install", "--yes", "--", "/tmp/x.deb"],
        &["--", "apt-get", "install", "--yes", "--", "./x.deb"],
        &["--", "apt-get", "install", "--yes", "--", "x.deb"],
        &["--", "apt-get", "install", "--yes", "--", "lab-hello-"],
        &["--", "apt-get", "install", "--yes", "--", "lab-hello=1.0"],
        &["--", "apt-get", "-oAPT::Update::Pre-Invoke::=id", "install", "--yes", "--", "lab-hello"],
        // Another variable, or another value of this one.
        &["FOO=bar", "systemctl", "show", "--property=ActiveState", "--", "ssh"],
        &["LD_PRELOAD=/tmp/x.so", "systemctl", "show", "--property=ActiveState", "--", "ssh"],
        &["DEBIAN_FRONTEND=evil", "apt-get", "install", "--yes", "--", "no-such-package"],
        // Another account.
        &["-u", "admin", "--", "whoami"],
        &["-g", "shadow", "--", "whoami"],
        // An editor, a shell.
        &["--", "vi", "/etc/passwd"],
        &["-e", "/etc/passwd"],
        &["--", "sh"],
        &["--", "/bin/bash", "-c", "id"],
        &["-s"],
        &["-i"],
    ] {
        let output = account.output(&[&["sudo", "-n"][..], refused].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        let by_sudo = said.contains("sudo: a password is required") || said.contains("not allowed");
        assert!(output.status.code() == Some(1) && by_sudo, "{refused:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{refused:?}: {output:?}");
    }
}
