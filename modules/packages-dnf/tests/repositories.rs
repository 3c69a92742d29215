//! The repositories of dnf. The files of `target()` were recorded on the image rhel-like with dnf 4.14.0, as was dnf's output;
//! `odd()` has what administrators and distributions write.
#![allow(clippy::unwrap_used, missing_docs)]

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm::Failure;
use linux_sysadmin_sdk::testkit::{FakeTarget, output};
use linux_sysadmin_sdk::{Category, Problem};
use module_packages_dnf::module;
use serde_json::{Value, json};

const GOOD: &str = include_str!("../../../sdk/src/packages/repositories/keys/good.asc");
const GOOD_ID: &str = "4BEBBC1013BA745C96D1136A809E4947E4034791";
const MAIN: &str = "[main]\ngpgcheck=True\ninstallonly_limit=3\nclean_requirements_on_remove=True\nbest=False\n\
    skip_if_unavailable=True\n";
const LAB: &str =
    "[lab]\nname=Lab $releasever\nbaseurl=file:///opt/labrepo\nenabled=1\ngpgcheck=0\nmetadata_expire=0\n";

fn target() -> FakeTarget {
    let mut target = FakeTarget::new();
    (target.distro.family, target.distro.package_manager) = ("rhel".into(), "dnf".into());
    target.distro.version = "40".into();
    target
        .at(1_795_741_000.0)
        .file("/etc/dnf/dnf.conf", MAIN)
        .file("/etc/yum.repos.d/lab.repo", LAB)
        .file("/var/cache/dnf/lab-66959f9b15991c45/repodata/1bb6-primary.xml.gz", "")
        .file("/var/cache/dnf/lab-0771f0f8bd804a4d/pubring/x", "")
}

fn odd() -> FakeTarget {
    target()
        .file(
            "/etc/yum.repos.d/fedora.repo",
            "[fedora]\nname=Fedora $releasever - $basearch\n#baseurl=http://download.example/\n\
             metalink=https://mirrors.example/metalink?repo=fedora-$releasever&arch=$basearch\nenabled=1\ngpgcheck=1\n\
             gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-fedora-$releasever-$basearch\n\n\
             [fedora-source]\nname=Fedora source\nmirrorlist=http://mirrors.example/list\nenabled=0\n",
        )
        .file("/etc/pki/rpm-gpg/RPM-GPG-KEY-fedora-40-x86_64", GOOD)
        .file(
            "/etc/yum.repos.d/odd.repo",
            "stray=1\n[odd]\nname = Odd\nbaseurl = https://u:hunter2@a.example/1/,\n   https://a.example/2/\ngpgkey=https://a.example/KEY\n  \
             file:///etc/pki/rpm-gpg/NONE\nincludepkgs=a b\npriority=10\nusername=me\npassword=hunter3\n\
             [lab]\nbaseurl=https://other.example/\n[\n",
        )
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

fn plan(target: FakeTarget, tool: &str, arguments: Value) -> String {
    let plans = target.plans();
    call(target, tool, arguments).unwrap();
    let plan = format!("{:?}", plans.borrow()[0]);
    plan
}

fn added(changes: Value) -> Value {
    let mut arguments = json!({"id": "new", "url": "https://d.example/$releasever/$basearch", "key": GOOD, "fingerprint": GOOD_ID});
    for (name, value) in changes.as_object().unwrap() {
        arguments[name] = value.clone();
    }
    arguments
}

fn bytes(text: &str) -> String {
    format!("{:?}", text.as_bytes()).trim_matches(['[', ']']).to_owned()
}

#[test]
fn each_repository_is_listed_with_when_it_was_read() {
    let (list, notes) = call(target(), "repo_list", json!({})).unwrap();
    let expected = json!([{"id": "lab", "name": "Lab 40", "urls": ["file:///opt/labrepo"], "at": "/etc/yum.repos.d/lab.repo:1",
        "refreshed": "1970-01-01T00:00:00Z", "warnings": ["signatures aren't checked (gpgcheck=0)"]}]);
    assert_eq!((list, notes.len()), (expected, 0));
}

#[test]
fn odd_files_are_read_and_lines_that_cant_be_are_told_while_no_secret_is() {
    let (list, notes) = call(odd(), "repo_list", json!({})).unwrap();
    let ids: Vec<_> = list.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["fedora", "fedora-source", "lab", "odd", "lab"]);
    assert_eq!(
        notes,
        [
            "/etc/yum.repos.d/odd.repo:1 can't be read: a section in brackets is expected first",
            "/etc/yum.repos.d/odd.repo:14 can't be read: a section's name is expected in brackets",
        ]
    );
    assert_eq!(list[0]["signed_by"]["fingerprints"], json!([GOOD_ID]));
    assert_eq!(list[0]["mirrors"], "https://mirrors.example/metalink?repo=fedora-$releasever&arch=$basearch");
    assert_eq!(list[0]["warnings"], json!(["never read successfully"]));
    assert_eq!((&list[1]["enabled"], &list[1]["warnings"]), (&json!(false), &json!(["reached without TLS"])));
    assert_eq!(list[3]["urls"], json!(["https://a.example/1/", "https://a.example/2/"]));
    assert_eq!((&list[3]["restricted"], &list[3]["priority"]), (&json!(["includepkgs=a,b"]), &json!(10)));
    assert_eq!(list[3]["signed_by"]["urls"], json!(["https://a.example/KEY"]));
    assert!(list[4]["warnings"].to_string().contains("defines the same as /etc/yum.repos.d/lab.repo:1"));
    assert!(!list.to_string().contains("hunter"), "{list}");
    // Without a default, dnf checks no signature.
    let unset = target()
        .file("/etc/dnf/dnf.conf", "[main]\n")
        .file("/etc/yum.repos.d/lab.repo", "[lab]\nbaseurl=https://x/\n");
    let (list, _) = call(unset, "repo_list", json!({})).unwrap();
    assert!(list[0]["warnings"].to_string().contains("signatures aren't checked"), "{list}");
}

#[test]
fn a_new_repository_gets_its_key_and_its_file_and_is_read_alone() {
    let plan = plan(target(), "repo_add", added(json!({"priority": 50})));
    let text = "[new]\nname=new\nbaseurl=https://d.example/$releasever/$basearch\nenabled=1\ngpgcheck=1\nrepo_gpgcheck=1\n\
        gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-new\npriority=50\n";
    for part in [
        "MakeDirectory",
        "/etc/pki/rpm-gpg/RPM-GPG-KEY-new",
        &bytes(GOOD),
        "/etc/yum.repos.d/new.repo",
        &bytes(text),
        "--enablerepo=new",
    ] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    let plan = self::plan(target(), "repo_add", added(json!({"signed_index": false})));
    assert!(plan.contains(&bytes("repo_gpgcheck=0\n")) && plan.contains("only TLS says"), "{plan}");
}

#[test]
fn keys_that_dnf_imported_once_for_the_same_name_are_forgotten() {
    let old = target().file("/var/cache/dnf/new-0fe8ed3fcdb26f14/pubring/pubring.kbx", "");
    let added = plan(old, "repo_add", added(json!({})));
    assert!(
        added.contains("/var/cache/dnf/new-0fe8ed3fcdb26f14/pubring") && !added.contains("lab-"),
        "{added}"
    );
    let removed = plan(target(), "repo_remove", json!({"id": "lab"}));
    assert!(removed.contains("/var/cache/dnf/lab-0771f0f8bd804a4d/pubring"), "{removed}");
    let disabled = plan(target(), "repo_remove", json!({"id": "lab", "enabled": false}));
    assert!(!disabled.contains("pubring"), "{disabled}");
}

#[test]
fn bad_input_is_refused() {
    for (changes, code, said) in [
        (json!({"url": "http://d.example", "signed_index": false}), "CONFLICTING_ARGUMENTS", "https"),
        (json!({"suites": ["s"]}), "INVALID_VALUE", "no suites"),
        (json!({"url": "https://d.example/\ngpgcheck=0"}), "INVALID_VALUE", "characters"),
        (json!({"id": "main"}), "INVALID_NAME", "id"),
        (json!({"id": "a]"}), "INVALID_NAME", "id"),
        (json!({"id": "lab"}), "REPOSITORY_EXISTS", "lab.repo:1"),
        (json!({"url": "file:///opt/labrepo"}), "REPOSITORY_EXISTS", "lab.repo:1"),
    ] {
        let problem = call(target(), "repo_add", added(changes.clone())).unwrap_err();
        assert_eq!(problem.code, code, "{changes}: {}", problem.message);
        assert!(problem.message.contains(said), "{changes}: {}", problem.message);
    }
}

#[test]
fn an_index_without_a_signature_is_untrusted() {
    let said = |text: &str| {
        let said = format!("Error: Failed to download metadata for repo 't': {text}\n");
        let problem = Problem::new("COMMAND_FAILED", Category::Other, "dnf ended with another exit code");
        let failure = Failure {
            problem,
            step: 3,
            outputs: vec![output(1, "", &said)],
            undone: vec![],
            not_undone: vec![],
            uncertain: false,
        };
        call(target().outcome(Err(failure)), "repo_add", added(json!({}))).unwrap_err().code
    };
    assert_eq!(
        said("repomd.xml GPG signature verification error: Bad GPG signature"),
        "REPOSITORY_UNTRUSTED"
    );
    let missing = "GPG verification is enabled, but GPG signature is not available. This may be an error or the repository does \
        not support GPG verification: Status code: 404 for http://127.0.0.1:8088/unsigned/repodata/repomd.xml.asc (IP: 127.0.0.1)";
    assert_eq!(said(missing), "REPOSITORY_UNTRUSTED");
    let none = "Cannot download repomd.xml: Cannot download repodata/repomd.xml: All mirrors were tried";
    assert_eq!(said(none), "REPOSITORY_UNREACHABLE");
}

#[test]
fn a_removal_takes_the_section_and_its_own_key() {
    let (answer, _) = call(target(), "repo_remove", json!({"id": "lab"})).unwrap();
    assert_eq!(answer, json!({"removed": "lab", "files": ["/etc/yum.repos.d/lab.repo"]}));
    let plan =
        |id: &str, enabled: Option<bool>| plan(odd(), "repo_remove", json!({"id": id, "enabled": enabled}));
    assert!(
        plan("fedora-source", Some(true))
            .contains(&bytes("[fedora-source]\nenabled=1\nname=Fedora source\n"))
    );
    let disabled = plan("fedora", Some(false));
    assert!(
        disabled.contains(&bytes("[fedora]\nenabled=0\nname=Fedora $releasever - $basearch\n#baseurl")),
        "{disabled}"
    );
    assert!(disabled.contains("Critical") && disabled.contains("security updates"), "{disabled}");
    let removed = plan("odd", None);
    assert!(removed.contains(&bytes("stray=1\n[lab]\n")) && removed.contains("sensitive: true"), "{removed}");
    assert_eq!(call(odd(), "repo_remove", json!({"id": "lab"})).unwrap_err().code, "AMBIGUOUS_ENTRY");
    let own = "[own]\nbaseurl=https://x/\ngpgcheck=1\ngpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-own\n";
    let with_key =
        target().file("/etc/yum.repos.d/own.repo", own).file("/etc/pki/rpm-gpg/RPM-GPG-KEY-own", GOOD);
    let (answer, _) = call(with_key, "repo_remove", json!({"id": "own"})).unwrap();
    assert_eq!(answer["files"], json!(["/etc/yum.repos.d/own.repo", "/etc/pki/rpm-gpg/RPM-GPG-KEY-own"]));
}

#[test]
fn an_address_of_mirrors_is_told_and_one_with_a_password_isnt_shown() {
    let file = "[m]\nmirrorlist=https://u:hunter2@a.example/\n[n]\nmetalink=https://b.example/\n";
    let plan = plan(target().file("/etc/yum.repos.d/m.repo", file), "repo_remove", json!({"id": "n"}));
    assert!(plan.contains("Remove the package repository n (https://b.example/)"), "{plan}");
    assert!(plan.contains("sensitive: true"), "{plan}");
}

/// dnf imports the key from this address with the first package, and asks nobody.
#[test]
fn a_key_or_an_index_that_others_could_put_there_is_told() {
    let options = "baseurl=https://a.example/\ngpgcheck=1\n";
    let table = [
        ("gpgkey=http://a.example/KEY", vec!["its key is fetched without TLS"]),
        ("gpgkey=https://a.example/KEY", vec![]),
        ("sslverify=0", vec!["the server's certificate isn't checked"]),
        ("sslverify=True", vec![]),
    ];
    for (option, expected) in table {
        let file = format!("[x]\n{options}{option}\n");
        let (list, _) = call(target().file("/etc/yum.repos.d/x.repo", file), "repo_list", json!({})).unwrap();
        let of_it = list.as_array().unwrap().iter().find(|item| item["id"] == "x").unwrap();
        let told =
            of_it["warnings"].as_array().unwrap().iter().filter(|said| **said != "never read successfully");
        assert_eq!(told.collect::<Vec<_>>(), expected, "{option}");
    }
    let main = target().file("/etc/dnf/dnf.conf", format!("{MAIN}sslverify=no\n"));
    let (list, _) = call(main, "repo_list", json!({})).unwrap();
    assert!(list.to_string().contains("certificate"), "{list}");
}
