//! The repositories of apt. The files of `target()` were recorded on Debian 12 with apt 2.6.1, as were the outputs of
//! apt-cache and apt-get; `odd()` has what administrators and other distributions write.
#![allow(clippy::unwrap_used, missing_docs)]

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm::Failure;
use linux_sysadmin_sdk::testkit::{FakeTarget, output, takes_little_context};
use linux_sysadmin_sdk::{Category, Change, Problem};
use module_packages_apt::module;
use serde_json::{Value, json};

const GOOD: &str = include_str!("../../../sdk/src/packages/repositories/keys/good.asc");
const ALL: &str = include_str!("../../../sdk/src/packages/repositories/keys/all.asc");
const EXPIRED: &str = include_str!("../../../sdk/src/packages/repositories/keys/expired.asc");
const REVOKED: &str = include_str!("../../../sdk/src/packages/repositories/keys/revoked.asc");
const SECRET: &str = include_str!("../../../sdk/src/packages/repositories/keys/secret.asc");
const GOOD_ID: &str = "4BEBBC1013BA745C96D1136A809E4947E4034791";
const OTHER_ID: &str = "8D4EA5CB47985EE943AFE069CFA937B303FB7B7E";
/// The time of the recordings: 2026-11-27.
const NOW: f64 = 1_795_741_000.0;

const POLICY: &str = "Package files:\n 100 /var/lib/dpkg/status\n     release a=now\n 500 file:/opt/aptrepo ./ Packages\n     \
    release o=lab,a=stable,l=lab,c=\n 400 http://127.0.0.1:8088/good stable/main amd64 Packages\n     \
    release a=stable,c=main,b=amd64\n     origin 127.0.0.1\nPinned packages:\n";

fn target() -> FakeTarget {
    FakeTarget::new()
        .at(NOW)
        .file("/etc/apt/sources.list.d/lab.list", "deb [trusted=yes] file:/opt/aptrepo ./\n")
        .file(
            "/etc/apt/sources.list.d/k2good.sources",
            "Types: deb\nURIs: http://127.0.0.1:8088/good\nSuites: stable\nComponents: main\nSigned-By: /etc/apt/keyrings/k2good.asc\n",
        )
        .file("/etc/apt/keyrings/k2good.asc", GOOD)
        .file("/etc/apt/preferences.d/k2good.pref", "Package: *\nPin: origin \"127.0.0.1\"\nPin-Priority: 400\n")
        .file("/var/lib/apt/lists/127.0.0.1:8088_good_dists_stable_InRelease", "")
        .file("/var/lib/apt/lists/_opt_aptrepo_._Release", "")
        .answer(&["apt-cache", "policy"], 0, POLICY, "")
}

fn odd() -> FakeTarget {
    FakeTarget::new()
        .at(NOW)
        .file(
            "/etc/apt/sources.list",
            "# deb cdrom:[Debian GNU/Linux 12]/ bookworm main\n\ndeb http://deb.debian.org/debian bookworm main\n\
             deb-src http://deb.debian.org/debian bookworm main\nrubbish\n#deb http://ftp.example/debian bookworm main\n",
        )
        .file(
            "/etc/apt/sources.list.d/debian.sources",
            "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: bookworm bookworm-updates\nComponents: main\n\
             Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\nTypes: deb\nURIs: https://a.example/x\nSuites: ./\nSigned-By:\n"
                .to_owned()
                + &GOOD.lines().map(|line| format!(" {}\n", if line.is_empty() { "." } else { line })).collect::<String>(),
        )
        .file("/etc/apt/sources.list.d/two.list", format!(
            "deb [signed-by=/usr/share/keyrings/all.asc,/usr/share/keyrings/none.gpg] https://me:hunter2@b.example/ s main\n\
             deb [signed-by={OTHER_ID}!] https://c.example/?token=hunter3 s main\n"
        ))
        .file("/etc/apt/sources.list.d/ignored.list.save", "deb http://x/ y z\n")
        .file("/usr/share/keyrings/all.asc", ALL)
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

/// apt 2.6.1 made this name of the index.
#[test]
fn the_index_of_a_suite_that_is_the_root_itself_was_read() {
    let flat = "Types: deb\nURIs: file:///tmp/a/repo\nSuites: /\n";
    let target = target()
        .file("/etc/apt/sources.list.d/flat.sources", flat)
        .file("/var/lib/apt/lists/_tmp_a_repo_InRelease", "");
    let (list, _) = call(target, "repo_list", json!({})).unwrap();
    let of_it = list.as_array().unwrap().iter().find(|item| item["id"] == "flat").unwrap();
    assert_eq!(of_it["warnings"], Value::Null, "{of_it}");
}

/// The plan that a tool hands over, and the problem where there is one.
fn plan(target: FakeTarget, tool: &str, arguments: Value) -> Change {
    let plans = target.plans();
    call(target, tool, arguments).unwrap();
    let mut plans = plans.borrow_mut();
    assert_eq!(plans.len(), 1);
    plans.remove(0)
}

fn added(changes: Value) -> Value {
    let mut arguments = json!({"id": "new", "url": "https://d.example/debian", "suites": ["s"], "components": ["main"],
        "key": GOOD, "fingerprint": GOOD_ID});
    for (name, value) in changes.as_object().unwrap() {
        arguments[name] = value.clone();
    }
    arguments
}

#[test]
fn the_tools_take_little_of_a_models_context() {
    for tool in module().description().tools.iter().filter(|tool| tool.name.starts_with("repo_")) {
        takes_little_context(tool);
    }
}

#[test]
fn several_keys_are_taken_where_all_are_named() {
    let both = format!("{GOOD}{}", include_str!("../../../sdk/src/packages/repositories/keys/other.asc"));
    let named = json!({"key": both, "fingerprint": format!("{OTHER_ID}, {GOOD_ID}")});
    assert_eq!(call(target(), "repo_add", added(named)).unwrap().0["added"], "new");
}

#[test]
fn each_repository_is_listed_with_its_key_and_what_is_unsafe() {
    let (list, notes) = call(target(), "repo_list", json!({})).unwrap();
    let expected = json!([
        {"id": "k2good", "urls": ["http://127.0.0.1:8088/good"], "suites": ["stable"], "components": ["main"],
         "signed_by": {"files": ["/etc/apt/keyrings/k2good.asc"], "fingerprints": [GOOD_ID]}, "priority": 400,
         "at": "/etc/apt/sources.list.d/k2good.sources:1", "warnings": ["reached without TLS"]},
        {"id": "lab", "urls": ["file:/opt/aptrepo"], "suites": ["./"], "at": "/etc/apt/sources.list.d/lab.list:1",
         "warnings": ["signatures aren't checked (trusted=yes)"]},
    ]);
    assert_eq!((list, notes.len()), (expected, 0));
}

#[test]
fn odd_files_are_read_and_lines_that_cant_be_are_told_while_no_secret_is() {
    let (list, notes) = call(odd(), "repo_list", json!({})).unwrap();
    let ids: Vec<_> = list.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(
        ids,
        [
            "sources.list:1",
            "sources.list:3",
            "sources.list:4",
            "sources.list:6",
            "debian.sources:1",
            "debian.sources:7",
            "two.list:1",
            "two.list:2",
        ]
    );
    assert_eq!(notes[0], "/etc/apt/sources.list:5 can't be read: deb URL SUITE COMPONENT… is expected");
    assert!(notes[1].contains("apt itself works with no repository"), "{notes:?}");
    assert_eq!(list[0]["enabled"], false);
    assert_eq!(list[1].get("enabled"), None);
    assert_eq!(list[2]["types"], json!(["deb-src"]));
    let same = "defines the same as /etc/apt/sources.list:3";
    assert!(list[4]["warnings"].as_array().unwrap().contains(&json!(same)), "{}", list[4]);
    assert_eq!(list[5]["signed_by"], json!({"fingerprints": [GOOD_ID]}));
    assert_eq!(list[6]["urls"], json!(["https://b.example/"]));
    assert_eq!(list[6]["signed_by"]["fingerprints"].as_array().unwrap().len(), 5);
    let warnings = list[6]["warnings"].to_string();
    for said in [
        "its URL holds credentials",
        "key 007700DC89B9E79F01EA75FE0F4B4D70296F1E06 has expired on 2021-01-01",
        "key EFA82D8667F06B9F694B42E32B58CEF5BE2862A2 expires on 2026-12-17",
        "key 3A83B21DAED57F23E410BAE78868F0296B85B300 is revoked",
        "key file /usr/share/keyrings/none.gpg: ",
    ] {
        assert!(warnings.contains(said), "{said}: {warnings}");
    }
    assert_eq!(list[7]["signed_by"], json!({"fingerprints": [OTHER_ID]}));
    assert!(!list.to_string().contains("hunter"), "{list}");
}

#[test]
fn a_machine_without_sources_has_none() {
    assert_eq!(call(FakeTarget::new(), "repo_list", json!({})).unwrap(), (json!([]), vec![]));
}

#[test]
fn a_new_repository_gets_its_key_and_its_file_and_is_read_alone() {
    let plan = format!("{:?}", plan(target(), "repo_add", added(json!({"priority": 400}))));
    let text = |text: &str| format!("{:?}", text.as_bytes());
    let source = "Types: deb\nURIs: https://d.example/debian\nSuites: s\nComponents: main\nSigned-By: /etc/apt/keyrings/new.asc\n";
    let pin = "Package: *\nPin: origin \"d.example\"\nPin-Priority: 400\n";
    for part in [
        "/etc/apt/keyrings/new.asc",
        &text(GOOD),
        "/etc/apt/sources.list.d/new.sources",
        &text(source),
        "/etc/apt/preferences.d/new.pref",
        &text(pin),
        "Dir::Etc::sourcelist=/etc/apt/sources.list.d/new.sources",
        "APT::Get::List-Cleanup=0",
        "PackageDatabase",
    ] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    // A pin of the host also holds for another repository there, whose plan has no priority.
    let same_host = added(json!({"url": "http://127.0.0.1:8088/second"}));
    let plan = format!("{:?}", self::plan(target(), "repo_add", same_host));
    assert!(plan.contains("k2good of the host 127.0.0.1 has the priority 400"), "{plan}");
    // A keyring of the host stays where it is.
    let keyring = target().file("/usr/share/keyrings/v.asc", GOOD);
    let (answer, _) = call(keyring, "repo_add", added(json!({"key": "/usr/share/keyrings/v.asc"}))).unwrap();
    assert_eq!(
        answer,
        json!({"added": "new", "file": "/etc/apt/sources.list.d/new.sources", "key_file": "/usr/share/keyrings/v.asc"})
    );
}

#[test]
fn bad_input_is_refused_before_a_plan_is_made() {
    let cases = [
        (json!({"fingerprint": OTHER_ID}), "REPOSITORY_UNTRUSTED", "another fingerprint"),
        (json!({"fingerprint": "E4034791"}), "INVALID_FINGERPRINT", "short key id"),
        (json!({"fingerprint": ""}), "INVALID_FINGERPRINT", "0 digits"),
        (json!({"key": ALL}), "REPOSITORY_UNTRUSTED", "007700DC89B9E79F01EA75FE0F4B4D70296F1E06"),
        (json!({"key": SECRET}), "INVALID_KEY", "private"),
        (json!({"key": GOOD.replace("mQENBGsI", "mQENBGsJ")}), "INVALID_KEY", "checksum"),
        (json!({"key": "x"}), "INVALID_KEY", "armored"),
        (json!({"key": "  "}), "INVALID_KEY", "armored"),
        (json!({"key": "/usr/share/keyrings/a\nTrusted: yes"}), "INVALID_PATH", "characters"),
        (json!({"key": "/usr/share/keyrings/none"}), "FILE_NOT_FOUND", "none"),
        (
            json!({"key": EXPIRED, "fingerprint": "007700DC89B9E79F01EA75FE0F4B4D70296F1E06"}),
            "INVALID_KEY",
            "2021-01-01",
        ),
        (
            json!({"key": REVOKED, "fingerprint": "3A83B21DAED57F23E410BAE78868F0296B85B300"}),
            "INVALID_KEY",
            "revoked",
        ),
        (json!({"url": "https://u:hunter2@d.example"}), "INVALID_VALUE", "credentials"),
        (json!({"url": "d.example"}), "INVALID_VALUE", "https://"),
        (json!({"suites": ["a b"]}), "INVALID_VALUE", "one word"),
        (json!({"suites": ["s\nTrusted: yes"]}), "INVALID_VALUE", "one word"),
        (json!({"suites": []}), "INVALID_VALUE", "suite is expected"),
        (json!({"suites": ["./"]}), "INVALID_VALUE", "no components"),
        (json!({"components": []}), "INVALID_VALUE", "component is expected"),
        (json!({"signed_index": false}), "INVALID_VALUE", "dnf only"),
        (json!({"priority": 1001}), "INVALID_VALUE", "999"),
        (json!({"priority": 400, "url": "http://127.0.0.1:9/other"}), "CONFLICTING_ARGUMENTS", "k2good"),
        (json!({"priority": 400, "url": "file:///opt/x"}), "CONFLICTING_ARGUMENTS", "a file has none"),
        (json!({"id": "../x"}), "INVALID_NAME", "id"),
        (json!({"id": "lab"}), "REPOSITORY_EXISTS", "lab.list:1"),
        (json!({"url": "http://127.0.0.1:8088/good/", "suites": ["stable"]}), "REPOSITORY_EXISTS", "k2good"),
    ];
    for (changes, code, said) in cases {
        let plans = target().plans();
        let problem = call(target(), "repo_add", added(changes.clone())).unwrap_err();
        assert_eq!(problem.code, code, "{changes}: {}", problem.message);
        assert!(problem.message.contains(said), "{changes}: {}", problem.message);
        let all = format!("{problem:?}");
        assert!(!all.contains("hunter2") && !all.contains("PRIVATE KEY"), "{all}");
        assert!(plans.borrow().is_empty());
    }
    let taken = target().file("/etc/apt/keyrings/new.asc", "x");
    assert_eq!(call(taken, "repo_add", added(json!({}))).unwrap_err().code, "FILE_EXISTS");
}

#[test]
fn a_repository_that_another_key_signed_is_untrusted_and_the_key_is_named() {
    let got = "Get:1 http://127.0.0.1:8088/other stable InRelease [1129 B]\n";
    let said = "W: GPG error: http://127.0.0.1:8088/other stable InRelease: The following signatures couldn't be verified \
        because the public key is not available: NO_PUBKEY CFA937B303FB7B7E\nE: The repository \
        'http://127.0.0.1:8088/other stable InRelease' is not signed.\n";
    let problem = Problem::new("COMMAND_FAILED", Category::Other, "apt-get ended with another exit code");
    let failure = Failure {
        problem,
        step: 2,
        outputs: vec![output(100, got, said)],
        undone: vec![],
        not_undone: vec![],
        uncertain: false,
    };
    let problem = call(target().outcome(Err(failure)), "repo_add", added(json!({}))).unwrap_err();
    assert_eq!(problem.code, "REPOSITORY_UNTRUSTED");
    assert!(problem.message.contains("NO_PUBKEY CFA937B303FB7B7E"), "{}", problem.message);
}

#[test]
fn a_removal_takes_the_stanza_or_line_and_what_nothing_else_needs() {
    let (answer, _) = call(target(), "repo_remove", json!({"id": "k2good"})).unwrap();
    let files = [
        "/etc/apt/sources.list.d/k2good.sources",
        "/etc/apt/keyrings/k2good.asc",
        "/etc/apt/preferences.d/k2good.pref",
    ];
    assert_eq!(answer, json!({"removed": "k2good", "files": files}));
    // Another repository uses the key.
    let shared = target().file(
        "/etc/apt/sources.list.d/z.list",
        "deb [signed-by=/etc/apt/keyrings/k2good.asc] https://z/ a b\n",
    );
    let (answer, _) = call(shared, "repo_remove", json!({"id": "k2good"})).unwrap();
    assert_eq!(answer["files"], json!([files[0], files[2]]));
    for (path, removed) in [
        ("/etc/apt//keyrings/./k2good.asc", json!([files[0], files[2]])),
        // A path with `..` may lead to any file.
        ("/etc/apt/keyrings/../keyrings/k2good.asc", json!([files[0]])),
    ] {
        let line = format!("deb [signed-by={path}] https://z/ a b\n");
        let odd = target().file("/etc/apt/sources.list.d/z.list", line);
        let (answer, _) = call(odd, "repo_remove", json!({"id": "k2good"})).unwrap();
        assert_eq!(answer["files"], removed, "{path}");
    }
    // An administrator wrote the pins.
    let pins = "Package: *\nPin: origin \"127.0.0.1\"\nPin-Priority: 400\n\nPackage: x\nPin: version 1\nPin-Priority: 900\n";
    let pinned = target().file("/etc/apt/preferences.d/k2good.pref", pins);
    let (answer, _) = call(pinned, "repo_remove", json!({"id": "k2good"})).unwrap();
    assert_eq!(answer["files"], json!(files[..2]));
    // Another definition of the file is only commented out.
    let stanza = "Types: deb\nURIs: http://127.0.0.1:8088/good\nSuites: stable\nComponents: main\n";
    let commented = format!("{stanza}\n# types: deb\n#URIs: https://z/\n#Suites: ./\n");
    let commented = target().file("/etc/apt/sources.list.d/k2good.sources", commented);
    let (answer, _) = call(commented, "repo_remove", json!({"id": "k2good"})).unwrap();
    assert_eq!(answer["file"], "/etc/apt/sources.list.d/k2good.sources:1");
    assert_eq!(answer["files"], json!([files[2]]));
    // Nobody knows which key a line names that can't be read.
    let unknown =
        target().file("/etc/apt/sources.list.d/z.list", "deb [signed-by=/etc/apt/keyrings/k2good.asc\n");
    let (answer, _) = call(unknown, "repo_remove", json!({"id": "k2good"})).unwrap();
    assert_eq!(answer["files"], json!([files[0]]));
    for (id, enabled, kept) in [
        (
            "sources.list:3",
            None,
            "# deb cdrom:[Debian GNU/Linux 12]/ bookworm main\n\ndeb-src http://deb.debian.org/debian bookworm main\nrubbish\n",
        ),
        ("sources.list:3", Some(false), "\n\n# deb http://deb.debian.org/debian bookworm main\ndeb-src"),
        ("sources.list:6", Some(true), "rubbish\ndeb http://ftp.example/debian bookworm main\n"),
        ("debian.sources:1", None, ""),
        ("debian.sources:1", Some(false), "Enabled: no\nTypes: deb\nURIs: http://deb.debian.org/debian\n"),
    ] {
        let plan = plan(odd(), "repo_remove", json!({"id": id, "enabled": enabled}));
        let plan = format!("{plan:?}");
        let bytes = format!("{:?}", kept.as_bytes());
        assert!(plan.contains(bytes.trim_matches(['[', ']'])), "{id} {enabled:?}: {plan}");
        let is_critical =
            plan.contains("risk: Some(Critical)") || plan.contains("risk: Some(Risk::Critical)");
        assert_eq!(is_critical, id != "sources.list:6" || enabled == Some(true), "{id}: {plan}");
    }
    let problem = call(target(), "repo_remove", json!({"id": "none"})).unwrap_err();
    assert_eq!(problem.code, "REPOSITORY_NOT_FOUND");
    assert!(problem.message.contains("k2good, lab"), "{}", problem.message);
    let (answer, notes) = call(target(), "repo_remove", json!({"id": "lab", "enabled": true})).unwrap();
    assert_eq!((answer, notes), (json!({}), vec!["lab is enabled already".to_owned()]));
}

#[test]
fn a_repository_is_the_distributions_own_though_its_address_has_a_password() {
    let line = "deb https://me:hunter2@deb.debian.org/debian bookworm main\n";
    let own = target().file("/etc/apt/sources.list.d/own.list", line);
    let plan = format!("{:?}", plan(own, "repo_remove", json!({"id": "own"})));
    assert!(plan.contains("the repository is the distribution's own"), "{plan}");
}

#[test]
fn a_mirrors_security_updates_are_the_distributions_own_and_a_vendors_packages_are_not() {
    let table = [
        ("deb http://mirror.hoster.example/debian/security bookworm-security main\n", true),
        ("deb http://mirror.hoster.example/debian-security buster/updates main\n", true),
        ("deb https://apt.vendor.example/x bookworm main\n", false),
    ];
    for (line, is_own) in table {
        let target = target().file("/etc/apt/sources.list.d/m.list", line);
        let plan = format!("{:?}", plan(target, "repo_remove", json!({"id": "m", "enabled": false})));
        assert_eq!(plan.contains("the machine gets no security updates"), is_own, "{line}: {plan}");
    }
}

/// A pin that names no host sets no priority, and apt says nothing.
#[test]
fn the_host_of_a_pin_may_be_an_address_of_ip_version_6() {
    let arguments = added(json!({"url": "http://[::1]:8080/debian", "priority": 400}));
    let plan = format!("{:?}", plan(target(), "repo_add", arguments));
    let pin = format!("{:?}", b"Package: *\nPin: origin \"::1\"\nPin-Priority: 400\n");
    assert!(plan.contains(&pin), "{plan}");
}
