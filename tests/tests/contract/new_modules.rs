//! An author begins with `modules new`, and has the module served while writing it by `modules dev`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use linux_sysadmin_tests::{Client, Home, component, guest, modules, skipped};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader, Lines};

use super::pins::{list_changed, listed, said, typed};

/// The time after which a test that hangs fails. No build here takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs `modules new` with these words in this directory.
fn new(home: &Home, directory: &Path, words: &[&str]) -> Output {
    let mut command = home.command(&modules(), &["modules", "new"]);
    command.args(words).current_dir(directory).output().expect("the program starts")
}

fn one_line(output: &Output) -> String {
    said(output).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The module of this name as `modules list` tells it.
fn in_the_list(home: &Home, name: &str) -> Value {
    let output = home.run(&modules(), &["modules", "list", "--json"]);
    let list: Vec<Value> =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    list.into_iter().find(|module| module["name"] == name).unwrap_or_default()
}

#[test]
fn a_new_module_is_built_as_it_is_and_added() {
    let home = Home::new();
    for name in ["new-tools", "packages-new", "firewall-new"] {
        let output = home.add(&component(name));
        assert_eq!(output.status.code(), Some(0), "{name}: {}", said(&output));
        assert!(!said(&output).contains("NOT USED"), "{name}: {}", said(&output));
        let listed = in_the_list(&home, name);
        assert_eq!((&listed["state"], &listed["version"]), (&json!("enabled"), &json!("0.1.0")), "{listed}");
    }
    let release = Command::new("uname").arg("--kernel-release").output().expect("uname").stdout;
    let (code, envelope) = home.call(&modules(), "new_tools_kernel", json!({}));
    assert_eq!(code, Some(0), "{envelope}");
    assert_eq!(envelope["data"]["release"], String::from_utf8_lossy(&release).trim(), "{envelope}");
    assert!(envelope["data"]["up_seconds"].as_u64().is_some_and(|seconds| seconds > 0), "{envelope}");
}

#[test]
fn a_new_module_in_python_is_built_as_it_is_and_added() {
    if !component("new-python").is_file() {
        let reason = fs::read_to_string(guest("new-python").join("missing.txt")).expect("a reason");
        skipped("a_new_module_in_python_is_built_as_it_is_and_added", &reason);
        return;
    }
    let home = Home::new();
    let output = home.add(&component("new-python"));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let (code, envelope) = home.call(&modules(), "new_python_kernel", json!({}));
    assert!(code == Some(0) && envelope["data"]["up_seconds"].is_u64(), "{envelope}");
}

#[test]
fn a_folder_is_made_only_where_the_name_is_right_and_nothing_is_there() {
    let home = Home::new();
    let work = tempfile::tempdir().expect("a directory");
    let exists = |name: &str| work.path().join(name).exists();
    // A name that could be a path, an option, or something else than one word.
    for wrong in ["", "Disk", "disk_health", "../x", "/tmp/x", ".", "5x", "x--y", "x-", "x y", "x\u{202e}y"] {
        let output = new(&home, work.path(), &[wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", said(&output));
        assert!(one_line(&output).contains("such as disk-health"), "{wrong:?}: {}", said(&output));
    }
    for (words, reason) in [
        (&["cron"][..], "there is a module named cron already"),
        (&["x", "--lang", "python", "--domain", "packages"], "expected --lang rust with --domain packages"),
        (&["x", "--sdk", "/proc/self"], "is not the folder of the sdk"),
    ] {
        let output = new(&home, work.path(), words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", said(&output));
        assert!(one_line(&output).contains(reason), "{words:?}: {}", said(&output));
    }
    assert_eq!(new(&home, work.path(), &["x", "--domain", "storage"]).status.code(), Some(2));
    assert_eq!(fs::read_dir(work.path()).expect("a directory").count(), 0);

    let output = new(&home, work.path(), &["disk-health"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("linux-sysadmin modules dev disk-health"), "{}", said(&output));
    assert!(exists("disk-health/README.md") && exists("disk-health/src/lib.rs"));
    fs::write(work.path().join("disk-health/src/lib.rs"), "// mine").expect("written");
    let output = new(&home, work.path(), &["disk-health"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(one_line(&output).contains("is there already; nothing was changed"), "{}", said(&output));
    let kept = fs::read_to_string(work.path().join("disk-health/src/lib.rs")).expect("a file");
    assert_eq!(kept, "// mine");
}

/// A folder whose build copies the component that `module.py` names.
struct Folder(PathBuf);

impl Folder {
    fn new(home: &Home) -> Self {
        let folder = home.path().join("work");
        let build = folder.join(".venv/bin/linux-sysadmin-build");
        fs::create_dir_all(build.parent().expect("a folder")).expect("made");
        fs::write(&build, "#!/bin/sh\nexec cp \"$(cat \"$1\")\" \"$3\"\n").expect("written");
        fs::set_permissions(&build, fs::Permissions::from_mode(0o755)).expect("a program");
        Self(folder)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }

    /// The component that a build makes.
    fn component(&self) -> PathBuf {
        self.0.canonicalize().expect("a folder").join("module.wasm")
    }

    /// Has the next build make a copy of this component.
    fn makes(&self, component: &Path) {
        let (new, named) = (self.0.join(".module.py.new"), self.0.join("module.py"));
        fs::write(&new, component.to_str().expect("UTF-8")).expect("written");
        fs::rename(new, named).expect("renamed");
    }

    /// Has the next build make this component with other bytes, which mean the same.
    fn makes_another(&self, component: &Path) -> String {
        let mut bytes = fs::read(component).expect("a component");
        // A custom section: its id, its size, and its name with the name's length.
        bytes.extend(b"\0\x05\x04next");
        let copy = self.0.join(".next.wasm");
        fs::write(&copy, &bytes).expect("written");
        self.makes(&copy);
        hex::encode(Sha256::digest(bytes))
    }
}

async fn until_listed(client: &mut Client, tool: &str) {
    while !listed(client).await.contains(tool) {
        list_changed(client).await;
    }
}

#[tokio::test]
async fn a_module_under_way_is_asked_about_once_and_a_running_server_has_it() {
    let home = Home::new();
    let folder = Folder::new(&home);
    folder.makes(&component("greeter-next"));
    let once = ["modules", "dev", folder.path(), "--once"];

    let output = home.run(&modules(), &once);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let refused = one_line(&output);
    assert!(refused.contains("no terminal to ask at") && refused.contains("modules add"), "{refused}");
    assert_eq!(in_the_list(&home, "greeter"), Value::Null);

    let (mut client, _) = Client::open(&home, &modules(), "2025-06-18").await;
    // No to the change as root, yes to the other request without a review, and yes to the whole.
    let (success, shown) = typed(&home, &once, "n\ny\ny\n");
    assert!(success && shown.contains("and without 1?"), "{shown}");
    until_listed(&mut client, "greet_shout").await;

    // The same bytes, and others that ask for nothing more than was granted, need nobody.
    let granted = |home: &Home| in_the_list(home, "greeter")["granted"].clone();
    let before = granted(&home);
    assert_eq!(home.run(&modules(), &once).status.code(), Some(0));
    // What was declined is asked about again, but only by a new session of `modules dev`.
    let next = folder.makes_another(&component("greeter-next"));
    assert_eq!(home.run(&modules(), &once).status.code(), Some(1));
    let (success, shown) = typed(&home, &once, "n\ny\n");
    assert!(success, "{shown}");
    assert_eq!((granted(&home), &in_the_list(&home, "greeter")["sha256"]), (before, &json!(next)));

    // Another version, which asks for more.
    folder.makes(&component("greeter"));
    let output = home.run(&modules(), &once);
    assert!(one_line(&output).contains("no terminal to ask at"), "{}", said(&output));
    let (success, shown) = typed(&home, &once, "y\n");
    assert!(success && shown.contains("WIDER"), "{shown}");
    until_listed(&mut client, "greet_users").await;
    assert_eq!(client.close().await.0.code(), Some(0));
}

/// Reads lines up to one with these words.
async fn until(lines: &mut Lines<impl AsyncBufRead + Unpin>, words: &str) {
    let mut seen = String::new();
    loop {
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("{words} does not come: {seen}")).expect("read");
        let line = line.unwrap_or_else(|| panic!("it ended without {words}: {seen}"));
        seen = format!("{seen}{line}\n");
        if line.contains(words) {
            return;
        }
    }
}

#[tokio::test]
async fn each_change_is_built_and_added_and_a_build_that_fails_leaves_the_module_as_it_is() {
    let home = Home::new();
    let folder = Folder::new(&home);
    folder.makes(&component("greeter"));
    // The author has decided about it before.
    fs::copy(component("greeter"), folder.component()).expect("copied");
    let output = home.add(&folder.component());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));

    let command = home.command(&modules(), &["modules", "dev", folder.path()]);
    let mut command = tokio::process::Command::from(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    until(&mut lines, "the same as before; waiting for changes").await;

    let next = folder.makes_another(&component("greeter"));
    until(&mut lines, "updated greeter 1.0.0").await;
    until(&mut lines, "waiting for changes").await;
    assert_eq!(in_the_list(&home, "greeter")["sha256"], json!(next));

    folder.makes(Path::new("/nowhere.wasm"));
    until(&mut lines, "error: the build ended with").await;
    until(&mut lines, "waiting for changes").await;
    // Another module's component is added by nobody's word.
    folder.makes(&component("shadow"));
    until(&mut lines, "error: there is no terminal to ask at").await;
    until(&mut lines, "waiting for changes").await;
    let listed = in_the_list(&home, "greeter");
    assert_eq!(listed["sha256"], json!(next), "{listed}");
    assert_eq!(in_the_list(&home, "shadow"), Value::Null);
    child.kill().await.expect("ended");
}

#[test]
fn grants_that_were_given_to_another_file_are_not_taken_over_without_a_question() {
    let home = Home::new();
    let output = home.add(&component("greeter"));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let folder = Folder::new(&home);
    folder.makes_another(&component("greeter"));
    let once = ["modules", "dev", folder.path(), "--once"];
    let output = home.run(&modules(), &once);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(one_line(&output).contains("no terminal to ask at"), "{}", said(&output));
    let (success, shown) = typed(&home, &once, "y\n");
    assert!(success && shown.contains("Pin greeter with"), "{shown}");
    // From now on the file is the module's own.
    folder.makes(&component("greeter"));
    let output = home.run(&modules(), &once);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

#[test]
fn a_folder_without_a_module_is_refused_with_what_was_expected() {
    let home = Home::new();
    for (folder, words) in [
        (home.path().to_str().expect("UTF-8"), "expected Cargo.toml for a module in Rust or module.py"),
        ("/nowhere", "/nowhere can't be looked at"),
    ] {
        let output = home.run(&modules(), &["modules", "dev", folder, "--once"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(one_line(&output).contains(words), "{}", said(&output));
    }
    assert_eq!(home.run(&modules(), &["modules", "dev"]).status.code(), Some(2));
}
