//! A module in another language than Rust has the same contract and the same limits.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use linux_sysadmin_tests::{Client, Home, component, guest, modules, skipped};
use serde_json::{Value, json};

/// A home with a component in Python, or the reason why there is none.
type Made = Result<Home, String>;

/// The component that uses the contract alone.
static HOME: LazyLock<Made> = LazyLock::new(|| home("python"));

/// The example for authors, which the sdk for Python has made.
static EXAMPLE: LazyLock<Made> = LazyLock::new(|| home("port-names"));

fn home(name: &str) -> Made {
    if !component(name).is_file() {
        let reason = fs::read_to_string(guest(name).join("missing.txt"));
        return Err(reason.expect("`cargo xtask build` makes it, or says why it couldn't"));
    }
    let home = Home::at(Path::new(env!("CARGO_TARGET_TMPDIR")).join("languages").join(name));
    let output = home.add(&component(name));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(home)
}

/// Opens a session with a module in Python.
async fn open_with(home: &Made, test: &str) -> Option<Client> {
    match home {
        Ok(home) => Some(Client::open(home, &modules(), "2025-06-18").await.0),
        Err(reason) => {
            skipped(test, reason);
            None
        }
    }
}

async fn open(test: &str) -> Option<Client> {
    open_with(&HOME, test).await
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

#[tokio::test]
async fn a_module_by_the_sdk_for_python_answers_as_its_functions_do() {
    let test = "a_module_by_the_sdk_for_python_answers_as_its_functions_do";
    let Some(mut client) = open_with(&EXAMPLE, test).await else { return };
    // The module asks getent, as this test does.
    let known = Command::new("getent").args(["services", "--", "22/tcp"]).output().expect("getent runs");
    let envelope = client.envelope("port_name", json!({"port": 22})).await;
    match String::from_utf8_lossy(&known.stdout).split_whitespace().next() {
        Some(name) => assert_eq!(envelope["data"]["name"], name, "{envelope}"),
        None => assert_eq!(envelope["error_code"], "PORT_NOT_NAMED", "{envelope}"),
    }
    let range = client.envelope("port_range", json!({})).await;
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").expect("a range");
    let [first, last] = text.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert_eq!(range["data"]["first"].to_string(), first, "{range}");
    assert_eq!(range["data"]["last"].to_string(), last, "{range}");
    assert!(range["summary"].as_str().is_some_and(|said| said.contains("connections")), "{range}");
    let listed = client.envelope("port_list", json!({"limit": 1})).await;
    assert!(listed["data"].as_array().is_some_and(|ports| ports.len() <= 1), "{listed}");
    assert_eq!(client.close().await.0.code(), Some(0));
}

#[tokio::test]
async fn what_a_function_in_python_raises_is_the_error_of_the_call() {
    let test = "what_a_function_in_python_raises_is_the_error_of_the_call";
    let Some(mut client) = open_with(&EXAMPLE, test).await else { return };
    let unknown = client.envelope("port_name", json!({"port": 4, "protocol": "udp"})).await;
    assert_eq!(unknown["error_code"], "PORT_NOT_NAMED", "{unknown}");
    assert_eq!(unknown["error_category"], "not_found", "{unknown}");
    assert!(unknown.to_string().contains("net_connections port=4"), "{unknown}");
    // The bounds and the choices of the type hints are in the schema, which the host holds each call against.
    for arguments in
        [json!({"port": 0}), json!({"port": 65536}), json!({"port": 22, "protocol": "sctp"}), json!({})]
    {
        let envelope = client.envelope("port_name", arguments.clone()).await;
        assert_eq!(envelope["error_code"], "INVALID_ARGUMENTS", "{arguments}: {envelope}");
    }
    assert_eq!(client.close().await.0.code(), Some(0));
}

/// The environment in which pip has installed the sdk for Python from its folder.
fn installed() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python").join("venv/bin/python3")
}

#[test]
fn the_sdk_for_python_works_as_pip_installs_it() {
    let test = "the_sdk_for_python_works_as_pip_installs_it";
    if let Err(reason) = &*EXAMPLE {
        skipped(test, reason);
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for tests in ["sdk/python/tests", "sdk/examples/port-names"] {
        let mut python = Command::new(installed());
        // It leaves no bytecode beside the sources, and finds the package where pip has put it.
        python.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("PYTHONPATH");
        let output = python.args(["-m", "unittest", "discover", "--start-directory"]).arg(root.join(tests));
        let output = output.output().expect("Python runs");
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().next_back().unwrap_or_default();
        // A test that is skipped would be named there.
        assert!(output.status.success() && last == "OK", "{tests}: {said}");
    }
    let place = "import linux_sysadmin_sdk, pathlib; print(pathlib.Path(linux_sysadmin_sdk.__file__).parent)";
    let output = Command::new(installed()).args(["-c", place]).output().expect("Python runs");
    let package = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    for entry in fs::read_dir(root.join("wit")).expect("the contract").flatten() {
        if entry.path().is_file() {
            let own = fs::read(package.join("wit").join(entry.file_name())).expect("a part of the contract");
            assert_eq!(own, fs::read(entry.path()).expect("a file"), "{}", entry.path().display());
        }
    }
}

#[test]
fn a_file_that_is_no_module_is_refused_with_what_was_expected() {
    let test = "a_file_that_is_no_module_is_refused_with_what_was_expected";
    if let Err(reason) = &*EXAMPLE {
        skipped(test, reason);
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    for (name, text, said) in [
        ("none.py", None, "expected a file whose name ends in .py"),
        ("module.txt", Some(""), "expected a file whose name ends in .py"),
        ("two words.py", Some(""), "expected a file name that Python can import"),
        ("wit_world.py", Some(""), "expected a file name that Python can import"),
        ("empty.py", Some("modul = 1"), "expected a variable `module`"),
        ("wrong.py", Some("module = ("), "line 1"),
    ] {
        let file = folder.path().join(name);
        if let Some(text) = text {
            fs::write(&file, text).expect("written");
        }
        let component = folder.path().join("out.wasm");
        let mut build = Command::new(installed().with_file_name("linux-sysadmin-build"));
        let output = build.arg(&file).arg("--output").arg(&component).output().expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && error.contains(said), "{name}: {error}");
        assert!(!component.exists(), "{name}");
    }
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
