//! A module goes from its author to an operator over a registry, or as a file.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use linux_sysadmin_tests::{Home, component, modules, skipped};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::pins::{done, file, has, refused, typed};

/// A real registry, which keeps what it has in a directory of the test's own.
struct Registry {
    child: Child,
    /// Its address, such as `127.0.0.1:41234`.
    address: String,
    directory: TempDir,
}

impl Registry {
    /// Starts it. Where it isn't installed, the test is counted as skipped.
    fn start(test: &str) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let config = directory.path().join("config.yml");
        let storage = directory.path().join("storage");
        let text = json!({
            "version": 0.1,
            "storage": {"filesystem": {"rootdirectory": storage}},
            "http": {"addr": "127.0.0.1:0"},
        });
        fs::write(&config, text.to_string()).expect("written");
        let started = Command::new("docker-registry")
            .arg("serve")
            .arg(&config)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                skipped(test, "there is no docker-registry, of Debian's package of that name");
                return None;
            }
            Err(error) => panic!("docker-registry: {error}"),
        };
        let mut log = BufReader::new(child.stderr.take().expect("stderr")).lines();
        let mut seen = String::new();
        let address = loop {
            let Some(Ok(line)) = log.next() else { panic!("it never listened: {seen}") };
            if let Some((_, rest)) = line.split_once("listening on ") {
                let end = rest.find(|c: char| c != '.' && c != ':' && !c.is_ascii_digit());
                break rest[..end.unwrap_or(rest.len())].to_owned();
            }
            seen.push_str(&line);
        };
        // Nobody reads on, and it must not wait for that.
        std::thread::spawn(move || log.for_each(drop));
        Some(Self { child, address, directory })
    }

    /// The file in which it keeps what has this digest.
    fn kept(&self, sha256: &str) -> PathBuf {
        let blobs = self.directory.path().join("storage/docker/registry/v2/blobs/sha256");
        blobs.join(&sha256[..2]).join(sha256).join("data")
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The SHA-256 of a component of the tests.
fn sha256(name: &str) -> String {
    hex::encode(Sha256::digest(fs::read(component(name)).expect("a component")))
}

/// Publishes a component of the tests; gives its reference with the digest.
fn published(home: &Home, name: &str, address: &str, options: &[&str]) -> String {
    let said = done(home, &[&["modules", "publish", &file(name), address], options].concat());
    let reference = said.lines().last().expect("a reference").to_owned();
    assert!(reference.starts_with("oci://") && reference.contains("@sha256:"), "{said}");
    reference
}

/// Adds what is at an address, as an operator who agrees to everything in the component of this name.
fn added(home: &Home, address: &str, name: &str) {
    done(home, &["modules", "add", address, "--sha256", &sha256(name), "--yes"]);
}

/// The entry of the module in the list.
fn listed(home: &Home) -> Value {
    let list: Value = serde_json::from_str(&done(home, &["modules", "list", "--json"])).expect("JSON");
    let modules = list.as_array().expect("a list");
    modules.iter().find(|module| module["name"] == "greeter").cloned().unwrap_or_default()
}

#[test]
fn a_module_goes_over_a_registry_from_its_publication_to_its_removal() {
    let test = "a_module_goes_over_a_registry_from_its_publication_to_its_removal";
    let Some(registry) = Registry::start(test) else { return };
    let (author, home) = (Home::new(), Home::new());
    let address = format!("oci://{}/ada/greeter", registry.address);
    let stable = format!("{address}:stable");

    // The author publishes it. Doing that again changes nothing.
    let by_version = published(&author, "greeter", &address, &["--source", "https://git.example/greeter"]);
    assert!(by_version.starts_with(&format!("{address}:1.0.0@sha256:")), "{by_version}");
    let first = published(&author, "greeter", &stable, &["--source", "https://git.example/greeter"]);
    assert_eq!(published(&author, "greeter", &stable, &["--source", "https://git.example/greeter"]), first);
    let (_, digest) = first.rsplit_once(':').expect("a digest");
    let manifest: Value =
        serde_json::from_slice(&fs::read(registry.kept(digest)).expect("a manifest")).expect("JSON");
    let annotation = |key: &str| manifest["annotations"][key].as_str().unwrap_or_default().to_owned();
    assert_eq!(annotation("org.opencontainers.image.licenses"), "MIT");
    assert_eq!(annotation("org.opencontainers.image.source"), "https://git.example/greeter");
    assert!(annotation("linux-sysadmin.contract").starts_with("sysadmin:module@"), "{manifest}");

    // The operator looks at it and adds it by its digest.
    let shown = done(&home, &["modules", "inspect", &first]);
    assert!(shown.contains(&first) && shown.contains(&sha256("greeter")), "{shown}");
    refused(&home, &["modules", "add", &first], &["no terminal", "--yes --sha256"]);
    added(&home, &first, "greeter");
    assert_eq!(listed(&home)["source"], first);
    assert_eq!(home.call(&modules(), "greet", json!({})).0, Some(0));
    assert!(done(&home, &["modules", "update", "greeter"]).contains("greeter 1.0.0 is up to date"));

    // The tag moves only where the author says so. The update follows it.
    let next = ["modules", "publish", &file("greeter-next"), &stable];
    refused(&author, &next, &["is there already", digest, "--move-tag"]);
    let second = published(&author, "greeter-next", &stable, &["--move-tag"]);
    let (success, shown) = typed(&home, &["modules", "update", "greeter"], "y\ny\ny\n");
    assert!(success && shown.contains("greeter 1.0.0 -> 2.0.0") && shown.contains(&second), "{shown}");
    assert_eq!(listed(&home)["source"], second);
    assert!(has(&home, "greet_shout"));

    // A step back is said first.
    let (success, shown) = typed(&home, &["modules", "update", "greeter", &first], "n\nn\nn\n");
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text} is not in: {shown}"));
    assert!(!success && at("DOWNGRADE: 1.0.0 is older than 2.0.0") < at("greeter 2.0.0 -> 1.0.0"), "{shown}");

    // Somebody changes the component on the registry.
    let kept = registry.kept(&sha256("greeter-next"));
    let mut bytes = fs::read(&kept).expect("the component");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&kept, bytes).expect("written");
    let other = Home::new();
    for address in [&stable, &second] {
        let words = ["somebody has changed it", &sha256("greeter-next")];
        refused(&other, &["modules", "add", address], &words);
    }
    assert!(!has(&other, "greet"));
    // Then the manifest.
    fs::write(registry.kept(digest), manifest.to_string().replace("MIT", "GPL")).expect("written");
    refused(&other, &["modules", "add", &first], &["manifest", "somebody has changed it", digest]);

    // What is installed goes on, until the operator disables whatever has these bytes.
    assert!(has(&home, "greet_shout"));
    let by_hash = format!("sha256:{}", sha256("greeter-next"));
    done(&home, &["modules", "disable", &by_hash]);
    assert!(!has(&home, "greet_shout"));
    done(&home, &["modules", "enable", &by_hash]);
    assert!(has(&home, "greet_shout"));
    done(&home, &["modules", "remove", "greeter"]);
    assert!(!has(&home, "greet_shout"));
    refused(&home, &["modules", "update", "greeter"], &["no module named greeter"]);
}

#[test]
fn a_copy_goes_to_a_machine_without_a_network() {
    let (home, other) = (Home::new(), Home::new());
    added(&home, &file("greeter"), "greeter");
    let copy = home.path().join("copy.wasm");
    let copy = copy.to_str().expect("UTF-8");
    let said = done(&home, &["modules", "export", "greeter", copy]);
    assert!(said.contains(&format!("modules add {copy} --sha256 {}", sha256("greeter"))), "{said}");
    added(&other, copy, "greeter");
    assert_eq!(other.call(&modules(), "greet", json!({})).0, Some(0));
    // Nothing that is there is overwritten.
    refused(&home, &["modules", "export", "greeter", copy], &["is not written", "exists"]);
    refused(&home, &["modules", "export", "nobody", copy], &["no module named nobody"]);
    refused(&home, &["modules", "export", "cron", "cron.wasm"], &["comes with the program"]);
    // What was changed is not passed on.
    let installed = fs::read_dir(home.data()).expect("the modules").flatten().map(|entry| entry.path());
    let installed = installed.filter(|path| path.extension().is_some_and(|extension| extension == "wasm"));
    for path in installed {
        fs::write(path, "changed").expect("written");
    }
    let new = home.path().join("new.wasm");
    refused(
        &home,
        &["modules", "export", "greeter", new.to_str().expect("UTF-8")],
        &["somebody has changed the file"],
    );
    assert!(!new.exists());
}

#[test]
fn an_address_that_says_too_little_is_refused_before_anything_is_fetched() {
    let home = Home::new();
    added(&home, &file("greeter"), "greeter");
    let zeros = "0".repeat(64);
    let cases: [(&[&str], &[&str]); 10] = [
        (&["add", "https://r.example/x.wasm"], &["say by `--sha256 HEX` which ones are meant"]),
        (&["add", "https://r.example/x.wasm", "--sha256", "abc"], &["expected 64 hexadecimal digits"]),
        (&["add", "http://r.example/x.wasm", "--sha256", &zeros], &["not encrypted", "https://"]),
        (&["add", "https://ada:secret@r.example/x.wasm", "--sha256", &zeros], &["has a password"]),
        (&["add", "docker://r.example/x:1"], &["oci://REGISTRY/NAME:TAG"]),
        (&["add", "oci://r.example/x"], &["neither a tag nor a digest"]),
        (&["add", "oci://ada/greeter:1"], &["\"ada\" is no registry"]),
        (&["inspect", "https://r.example/x.wasm"], &["modules add --sha256 HEX"]),
        (&["update", "greeter"], &["only a tag on a registry says which version is the next one"]),
        (&["publish", &file("greeter"), "oci://r.example/x:1@sha256:0"], &["is no digest"]),
    ];
    for (args, words) in cases {
        refused(&home, &[&["modules"], args].concat(), words);
    }
}
