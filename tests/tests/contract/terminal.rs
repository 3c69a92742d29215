//! `pending`, `approve` and `deny` at a real terminal, with a server of the test's own that speaks the same protocol.

use std::fs::{self, DirBuilder};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{SystemTime, UNIX_EPOCH};

use linux_sysadmin_tests::{Home, at_terminal, binary, skipped};
use serde_json::{Value, json};

const YES: &str = "of high risk, type yes:";

/// A question as a server writes it, with characters that no server would leave in it.
fn question_of(id: &str, risk: &str) -> String {
    let because = "the service is the resolver of this network, and every other service of it needs names";
    format!(
        "May this be done on web1 (web1.example.org), as root?\n\nTool:    svc_restart, of module services 0.1.0\n\
         Client:  a test\nRisk:    {risk}\nBecause: {because}\nSays:    Restart nginx\n\n\
         1. systemctl restart nginx.service\nESC \u{1b}[2J, bidi \u{202e}\n\nPlan:    {id} (SHA-256 {})\n",
        "ab".repeat(32)
    )
}

fn call(id: &str, risk: &str) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    json!({
        "id": id, "tool": "svc_restart", "module": "services", "target": "web1", "risk": risk,
        "summary": "Restart\nnginx.service\u{9b}1A", "client": "a test", "asked_unix": now - 150,
        "expires_unix": now + 750, "question": question_of(id, risk),
        "preview": {"command": "systemctl restart nginx.service"}, "sha256": "ab".repeat(32),
    })
}

/// A server in which calls wait. It ends with the test.
struct Server {
    home: Home,
    decided: Receiver<Value>,
}

impl Server {
    /// Starts a server that gives this answer to a decision.
    fn new(calls: Vec<Value>, answer: Value) -> Self {
        let home = Home::new();
        let directory = home.state().join("pending");
        DirBuilder::new().recursive(true).mode(0o700).create(&directory).expect("a directory");
        let listener = UnixListener::bind(directory.join("1-aa.sock")).expect("a socket");
        let (sender, decided) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Some((stream, question)) = question(stream.expect("a connection")) else { continue };
                let is_it = |call: &&Value| question["show"]["id"] == call["id"];
                let answer = match question.as_object().and_then(|members| members.keys().next()) {
                    Some(word) if word == "list" => json!({"waiting": calls}),
                    Some(word) if word == "show" => {
                        json!({"waiting": calls.iter().filter(is_it).collect::<Vec<_>>()})
                    }
                    _ => answer.clone(),
                };
                if let Some(decision) = question.get("decide") {
                    let _ = sender.send(decision.clone());
                }
                writeln!(&stream, "{answer}").expect("answered");
            }
        });
        Self { home, decided }
    }

    fn with(risk: &str) -> Self {
        Self::new(vec![call("3f2a90c1d4e5b6a7", risk)], json!({"decided": {"change": "running"}}))
    }

    fn at_home(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("HOME", self.home.path()).env_remove("XDG_STATE_HOME");
        command
    }

    /// Runs the program without a terminal.
    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let mut command = self.at_home("setsid");
        let output = command.arg("--wait").arg(binary()).args(args).stdin(Stdio::null()).output();
        let Output { status, stdout, stderr } = output.expect("setsid(1)");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (status.code(), text(stdout), text(stderr))
    }

    /// Runs a line of shell at a terminal: types `first` at once, and `then` at the prompt.
    fn at_terminal(&self, line: &str, first: &str, prompt: &str, then: &str) -> (Option<i32>, String) {
        at_terminal(|program| self.at_home(program), line, first, prompt, then)
    }

    fn decision(&self) -> Option<Value> {
        self.decided.try_recv().ok()
    }
}

/// Reads a question. A peer that says nothing gives none: the program connects so to see whether a server lives.
fn question(stream: UnixStream) -> Option<(UnixStream, Value)> {
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).ok()?;
    Some((stream, serde_json::from_str(&line).ok()?))
}

fn decision(yes: bool) -> Option<Value> {
    Some(json!({"id": "3f2a90c1d4e5b6a7", "sha256": "ab".repeat(32), "yes": yes}))
}

#[test]
fn what_waits_is_listed_and_shown_whole() {
    let server = Server::with("high");
    let (code, out, err) = server.run(&["pending"]);
    assert_eq!(code, Some(0), "{err}");
    let line = out.lines().find(|line| line.starts_with("3f2a90c1d4e5b6a7")).expect("its line");
    let cells = ["2 min", "12 min", "high", "web1", "svc_restart", "Restart\\nnginx.service\\u{9b}1A"];
    assert!(cells.iter().all(|cell| line.contains(cell)), "{line}");

    let (code, out, _) = server.run(&["pending", "3f2a"]);
    assert_eq!(code, Some(0));
    for line in [
        "  Risk:    high",
        "  1. systemctl restart nginx.service",
        "  ESC \\u{1b}[2J, bidi \\u{202e}",
        "  Because: the service is the resolver of this network, and every other service",
        "           of it needs names",
        "  Asked:   2 min ago; expires in 12 min",
    ] {
        assert!(out.lines().any(|shown| shown == line), "{line}: {out}");
    }

    let (code, out, _) = server.run(&["pending", "3F2A90", "--json"]);
    let shown: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &shown["sha256"]), (Some(0), &json!("ab".repeat(32))));
    assert_eq!(shown["preview"]["command"], "systemctl restart nginx.service");
    assert!(!out.contains('\u{202e}'));
    assert_eq!(server.decision(), None);
}

#[test]
fn an_approval_is_typed_after_the_whole_plan_was_shown() {
    for (risk, prompt, typed, approved) in [
        ("high", YES, "yes\n", true),
        ("high", YES, "y\n", false),
        ("high", YES, "\n", false),
        // What is typed before the second question is no answer to it; the code follows.
        ("high", YES, "yes\nno\n", true),
        // `\u{4}` is the end of input.
        ("high", YES, "\u{4}", false),
        ("critical", "the name of its target, web1:", "web1\n", true),
        ("critical", "the name of its target, web1:", "yes\n", false),
    ] {
        let server = Server::with(risk);
        let (code, seen) = server.at_terminal("$BIN approve 3f2a", "", prompt, typed);
        assert_eq!(code, Some(i32::from(!approved)), "{seen}");
        assert_eq!(server.decision(), approved.then(|| decision(true)).flatten(), "{seen}");
        let plan = seen.find("1. systemctl restart nginx.service").expect("the plan");
        assert!(plan < seen.find(prompt).expect("the question"), "{seen}");
        let again = "to approve on web1, of high risk: Restart\\nnginx.service\\u{9b}1A:";
        assert_eq!(seen.contains(&again.replace("high", risk)), approved, "{seen}");
        assert!(!seen.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{seen:?}");
        let outcome = if approved { "approved: the change is running" } else { "not approved" };
        assert!(seen.contains(outcome), "{seen}");
    }
}

#[test]
fn a_plan_is_shown_once_fits_the_terminal_and_its_risk_has_a_colour() {
    for (columns, risk, shown) in
        [(80, "high", "\u{1b}[31mhigh\u{1b}[0m"), (100, "moderate", "\u{1b}[33mmoderate\u{1b}[0m")]
    {
        let server = Server::with(risk);
        let line = format!("stty cols {columns}; NO_COLOR= TERM=xterm $BIN approve 3f2a");
        let prompt = format!("of {risk} risk, type yes:");
        let (code, seen) = server.at_terminal(&line, "", &prompt, "yes\n");
        assert_eq!((code, server.decision()), (Some(0), decision(true)), "{seen}");
        assert!(seen.contains(&format!("Risk:    {shown}\r\n")), "{seen:?}");
        let plain = seen.replace(shown, risk);
        assert!(!plain.contains('\u{1b}'), "{plain:?}");
        let lines: Vec<&str> = plain.lines().take_while(|line| !line.starts_with("approved")).collect();
        // A line of the terminal also has what was typed.
        assert!(lines.iter().all(|line| line.trim_end().chars().count() <= columns), "{plain}");
        for once in ["svc_restart", "a test", "Restart nginx\r\n", &"ab".repeat(32), "Because"] {
            assert_eq!(plain.matches(once).count(), 1, "{once}: {plain}");
        }
    }
    // Without colours the terminal gets no escape at all.
    let server = Server::with("high");
    let (code, seen) = server.at_terminal("NO_COLOR=1 TERM=xterm $BIN approve 3f2a", "", YES, "no\n");
    assert!(code == Some(1) && !seen.contains('\u{1b}'), "{seen:?}");
}

#[test]
fn who_approves_learns_what_came_of_it() {
    for (change, code, said) in [
        (json!({"change": "running"}), 0, "approved: the change is running"),
        (
            json!({"change": {"nothing": "it has changed\u{1b}"}}),
            1,
            "nothing was done: it has changed\\u{1b}",
        ),
        (json!({"change": "unknown"}), 0, "approved: the change has not begun yet"),
        (json!({}), 0, "approved: the change has not begun yet"),
    ] {
        let calls = vec![call("3f2a90c1d4e5b6a7", "high")];
        let server = Server::new(calls, json!({"decided": change}));
        let (found, seen) = server.at_terminal("$BIN approve 3f2a", "", YES, "yes\n");
        assert_eq!(found, Some(code), "{seen}");
        assert!(seen.contains(said), "{seen}");
    }
}

#[test]
fn only_the_terminal_is_asked_and_only_after_the_plan_was_to_be_seen() {
    for line in [
        "echo yes | $BIN approve 3f2a",
        // The answer is typed before the question.
        "read line; $BIN approve 3f2a",
    ] {
        let server = Server::with("high");
        let (code, seen) = server.at_terminal(line, "go\nyes\n", YES, "no\n");
        assert_eq!((code, server.decision()), (Some(1), None), "{seen}");
    }
    // However the streams are redirected, the person who approves sees the plan.
    let server = Server::with("high");
    let line = "$BIN approve 3f2a </dev/null >/dev/null 2>/dev/null";
    let (code, seen) = server.at_terminal(line, "", YES, "yes\n");
    assert_eq!((code, server.decision()), (Some(0), decision(true)), "{seen}");
    assert!(seen.contains("1. systemctl restart nginx.service"), "{seen}");
}

#[test]
fn without_a_terminal_nothing_is_approved_and_a_denial_needs_none() {
    let server = Server::with("high");
    let (code, out, err) = server.run(&["approve", "3f2a90c1d4e5b6a7"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("typed at a terminal"), "{err}");
    assert_eq!(server.decision(), None);
    let (code, out, err) = server.run(&["deny", "3f2a90c1d4e5b6a7"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("denied: Restart\\nnginx.service\\u{9b}1A;"), "{out}");
    assert_eq!(server.decision(), decision(false));
}

#[test]
fn a_decision_that_is_not_taken_is_an_error_with_its_reason() {
    let calls = || vec![call("3f2a90c1d4e5b6a7", "high"), call("3f2b000000000000", "high")];
    for (answer, args, code, said) in [
        (json!({"refused": "expired"}), ["deny", "3f2a"], 1, "has expired"),
        (json!({"refused": "decided"}), ["deny", "3f2a"], 1, "decided already"),
        (json!({"refused": "unknown"}), ["deny", "3f2a"], 1, "waits any more"),
        (json!({"refused": "other-plan"}), ["deny", "3f2a"], 1, "not the one that was shown"),
        (json!({"error": "refused to the account 5: no\u{1b}"}), ["deny", "3f2a"], 1, "account 5: no\\u{1b}"),
        (json!({"decided": {}}), ["deny", "ffff"], 1, "no call whose id begins with ffff"),
        (json!({"decided": {}}), ["pending", "ffff"], 1, "no call whose id begins with ffff"),
        (json!({"decided": {}}), ["deny", "3f2"], 2, "16 hexadecimal digits"),
        (json!({"decided": {}}), ["pending", "nonsense"], 2, "16 hexadecimal digits"),
    ] {
        let server = Server::new(calls(), answer);
        let (found, out, err) = server.run(&args);
        assert_eq!((found, out.as_str()), (Some(code), ""), "{err}");
        assert!(err.contains(said), "{said}: {err}");
    }
    let same = vec![call("3f2a90c1d4e5b6a7", "high"), call("3f2a000000000000", "high")];
    let server = Server::new(same, json!({"decided": {}}));
    let (code, _, err) = server.run(&["deny", "3f2a"]);
    assert_eq!((code, server.decision()), (Some(1), None));
    assert!(err.contains("3f2a90c1d4e5b6a7") && err.contains("3f2a000000000000"), "{err}");
    // The decision names the plan that was shown, and the server decides whether it holds.
    let server = Server::new(calls(), json!({"refused": "other-plan"}));
    let (code, seen) = server.at_terminal("$BIN approve 3f2a", "", YES, "yes\n");
    assert_eq!(code, Some(1));
    assert!(seen.contains("not the one that was shown") && !seen.contains("approved:"), "{seen}");
}

#[test]
fn as_root_what_another_account_has_put_there_is_left_alone() {
    if !rustix::process::geteuid().is_root() {
        return skipped("another account's directory", "giving one away takes root");
    }
    let server = Server::with("high");
    chown(server.home.state().join("pending"), Some(65534), None).expect("given away");
    for (args, said) in
        [(&["pending"][..], "belongs to the account 65534"), (&["deny", "3f2a"], "no call whose id begins")]
    {
        let (code, out, err) = server.run(args);
        assert_eq!(code, Some(1), "{err}");
        assert!(err.contains(said) && !out.contains("3f2a"), "{out}{err}");
    }
    assert_eq!(server.decision(), None);
}

#[test]
fn a_broken_configuration_stands_in_nobodys_way() {
    let server = Server::with("high");
    fs::create_dir_all(server.home.config().parent().expect("a parent")).expect("a directory");
    fs::write(server.home.config(), "safety: [").expect("written");
    assert_eq!(server.run(&["pending", "3f2a"]).0, Some(0));
    assert_eq!(server.run(&["deny", "3f2a"]).0, Some(0));
}
