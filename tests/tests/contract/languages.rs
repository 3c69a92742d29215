//! A module in another language than Rust has the same contract and the same limits.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use linux_sysadmin_tests::{Client, Home, component, guest, modules, skipped};
use serde_json::{Value, json};

/// A home with the component in Python, or the reason why there is none.
static HOME: LazyLock<Result<Home, String>> = LazyLock::new(|| {
    if !component("python").is_file() {
        let reason = fs::read_to_string(guest("python").join("missing.txt"));
        return Err(reason.expect("`cargo xtask build` makes it, or says why it couldn't"));
    }
    let home = Home::at(Path::new(env!("CARGO_TARGET_TMPDIR")).join("languages"));
    let output = home.add(&component("python"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(home)
});

/// Opens a session with the module in Python.
async fn open(test: &str) -> Option<Client> {
    match &*HOME {
        Ok(home) => Some(Client::open(home, &modules(), "2025-06-18").await.0),
        Err(reason) => {
            skipped(test, reason);
            None
        }
    }
}

#[tokio::test]
async fn a_module_in_python_answers_by_itself_and_by_the_host() {
    let Some(mut client) = open("a_module_in_python_answers_by_itself_and_by_the_host").await else { return };
    let hostname = fs::read_to_string("/etc/hostname").expect("a name");
    for (tool, arguments, text) in [
        ("python_greet", json!({"name": "Zoë"}), "Hello, Zoë!"),
        ("python_run", json!({"argv": ["uname", "--kernel-name"]}), "Linux\n"),
        ("python_read", json!({"path": "/etc/hostname"}), &hostname),
    ] {
        let envelope = client.envelope(tool, arguments).await;
        assert_eq!(envelope["data"]["text"], text, "{envelope}");
    }
    let envelope = client.envelope("python_greet", json!({"nmae": "Zoë"})).await;
    assert_eq!(envelope["error_code"], "INVALID_ARGUMENTS", "{envelope}");
    assert_eq!(client.close().await.0.code(), Some(0));
}

#[tokio::test]
async fn a_module_in_python_gets_what_it_was_granted_and_nothing_else() {
    let Some(mut client) = open("a_module_in_python_gets_what_it_was_granted_and_nothing_else").await else {
        return;
    };
    for (tool, arguments) in [
        ("python_run", json!({"argv": ["id"]})),
        ("python_run", json!({"argv": ["uname", "--all"]})),
        ("python_read", json!({"path": "/etc/passwd"})),
        ("python_read", json!({"path": "/etc/../etc/hostname"})),
    ] {
        let envelope = client.envelope(tool, arguments.clone()).await;
        assert_eq!(envelope["error_code"], "CAPABILITY_DENIED", "{arguments}: {envelope}");
        assert_eq!(envelope["command_executed"], Value::Null);
    }
    assert_eq!(client.close().await.0.code(), Some(0));
}

#[tokio::test]
async fn pythons_own_ways_out_lead_nowhere() {
    let Some(mut client) = open("pythons_own_ways_out_lead_nowhere").await else { return };
    let envelope = client.envelope("python_escape", json!({"by": "environment"})).await;
    assert_eq!(envelope["data"]["text"], "{}", "{envelope}");
    for way in ["file", "directory", "socket", "process"] {
        let envelope = client.envelope("python_escape", json!({"by": way})).await;
        assert_eq!(envelope["error_code"], "MODULE_TRAPPED", "{way}: {envelope}");
        assert_eq!(client.envelope("python_greet", json!({"name": "x"})).await["status"], "success");
    }
    assert_eq!(client.close().await.0.code(), Some(0));
}

#[test]
fn a_component_that_takes_too_much_to_compile_is_refused_with_what_it_may_take() {
    let test = "a_component_that_takes_too_much_to_compile_is_refused_with_what_it_may_take";
    if let Err(reason) = &*HOME {
        skipped(test, reason);
        return;
    }
    // To compile the component takes some 390 MiB and several seconds of a core.
    for (limit, said) in [
        ("compile_memory_mib: 256", &["can't be compiled"][..]),
        // On a busy machine the compiler gets less than a second of a core within the two seconds that it may take.
        ("compile_seconds: 1", &["compute for 1 s", "took longer than 2 s"]),
    ] {
        let home = Home::cold();
        fs::create_dir_all(home.config().parent().expect("a directory")).expect("made");
        fs::write(home.config(), format!("modules:\n  limits:\n    {limit}\n")).expect("written");
        let output = home.add(&component("python"));
        let words = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        let is_said = said.iter().any(|said| words.contains(said));
        assert!(output.status.code() == Some(1) && is_said, "{limit}: {words}");
        assert!(!home.data().exists());
    }
}
