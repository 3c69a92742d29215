//! `sec_check_users` on recordings of a Debian 12 machine.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::testkit::FakeTarget;
use module_security::module;
use serde_json::{Value, json};

const RECORDED: &str = include_str!("data/users.txt");
const PASSWD: &str = include_str!("data/passwd");
const LOGIN_DEFS: &str = include_str!("data/login.defs");
/// 2026-11-28
const NOW: f64 = 1_795_824_000.0;

fn target(passwd: &str, recorded: &str) -> FakeTarget {
    FakeTarget::new()
        .file("/etc/passwd", passwd)
        .file("/etc/login.defs", LOGIN_DEFS)
        .at(NOW)
        .transcript(recorded)
}

fn call(target: FakeTarget) -> (Value, String) {
    let (data, reply) = target.call(&module(), "sec_check_users", json!({})).unwrap();
    (data, reply.summary.unwrap())
}

fn subjects(data: &Value) -> Vec<(String, Vec<String>)> {
    let text = |value: &Value| value.as_str().unwrap().split(": ").next().unwrap().to_owned();
    let of = |entry: &Value| {
        let subjects = entry["subjects"].as_array().unwrap().iter().map(text).collect();
        (entry["kind"].as_str().unwrap().to_owned(), subjects)
    };
    data["findings"].as_array().map(|entries| entries.iter().map(of).collect()).unwrap_or_default()
}

#[test]
fn each_weakness_is_named_with_those_who_have_it() {
    let (data, _) = call(target(PASSWD, RECORDED));
    let mut found = subjects(&data);
    found.sort();
    let of = |kind: &str, names: &[&str]| {
        (kind.to_owned(), names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    };
    let expected = [
        of("home-rhosts", &["/home/dora/.rhosts"]),
        of("home-writable", &["/home/bob"]),
        of("keys-owner", &["/home/ada/.ssh/authorized_keys"]),
        of("keys-writable", &["/home/dora/.ssh/authorized_keys"]),
        of("user-empty-password", &["carl"]),
        of("user-expired", &["eve"]),
        of("user-password-no-expiry", &["ada", "dora"]),
        of("user-readable-hash", &["daemon"]),
        of("user-shared-uid", &["ada", "twin"]),
        of("user-stale", &["bob"]),
        of("user-system-shell", &["svc", "games"]),
        of("user-uid-0", &["toor"]),
    ];
    assert_eq!(found, expected);
    assert!(!data.to_string().contains("abcdef"), "a hash is never shown");
    let entry = data["findings"].as_array().unwrap().iter().find(|one| one["kind"] == "user-system-shell");
    let expected = json!({"tool": "user_modify", "arguments": {"user": "svc", "shell": "/usr/sbin/nologin"}});
    assert_eq!(entry.unwrap()["mend"], expected);
    assert_eq!(data["findings"][0]["severity"], "critical");
}

#[test]
fn a_fresh_machine_has_nothing_weak() {
    let clean = include_str!("data/passwd.clean");
    let of_clean = |line: &&str| {
        !["ada ", "bob ", "carl ", "dora ", "eve ", "toor ", "twin ", "svc "]
            .iter()
            .any(|name| line.starts_with(name))
    };
    let statuses = RECORDED.split_once("$ lslogins").unwrap().0;
    let statuses: Vec<&str> = statuses.lines().filter(of_clean).collect();
    let recorded = format!(
        "{}\n$ lslogins{}",
        statuses.join("\n"),
        RECORDED.split_once("$ lslogins").unwrap().1.split("$ find").next().unwrap()
    );
    let find = ["find", "/root"];
    let doors = [
        "-mindepth",
        "1",
        "-maxdepth",
        "2",
        "(",
        "-path",
        "*/.ssh",
        "-o",
        "-path",
        "*/.ssh/authorized_keys*",
        "-o",
        "-name",
        ".rhosts",
        "-o",
        "-name",
        ".shosts",
        ")",
        "-printf",
        "%y %m %U %s %p\\n",
    ];
    let host = target(clean, &recorded)
        .answer(
            &[&find[..], &["-maxdepth", "0", "-printf", "%y %m %U %s %p\\n"]].concat(),
            0,
            "d 700 0 4096 /root\n",
            "",
        )
        .answer(
            &[&find[..], &doors].concat(),
            0,
            "d 700 0 4096 /root/.ssh\nf 600 0 81 /root/.ssh/authorized_keys\n",
            "",
        );
    let (data, summary) = call(host);
    assert_eq!((data, summary.as_str()), (json!({}), "Nothing weak in the accounts"));
}

#[test]
fn what_root_alone_may_see_is_said_to_be_unseen() {
    let (data, summary) = call(
        FakeTarget::new().file("/etc/passwd", "root:x:0:0::/root:/bin/bash\n+::::::\nnonsense\n").at(NOW),
    );
    assert_eq!(data["unseen"].as_array().unwrap().len(), 3, "{data}");
    assert!(summary.contains("in what could be seen"), "{summary}");
    let missing = FakeTarget::new().call(&module(), "sec_check_users", json!({}));
    assert_eq!(missing.unwrap_err().code, "FILE_NOT_FOUND");
}

#[test]
fn a_login_that_is_recent_enough_is_none_that_is_stale() {
    let (data, _) =
        target(PASSWD, RECORDED).call(&module(), "sec_check_users", json!({"stale_days": 400})).unwrap();
    assert!(!subjects(&data).iter().any(|(kind, _)| kind == "user-stale"));
}

#[test]
fn whoever_comes_by_a_key_is_not_stale_by_the_age_of_a_password() {
    let aged = RECORDED.replace("PWD-CHANGE=\"2026-11-27\"", "PWD-CHANGE=\"2020-01-01\"");
    let (data, _) = call(target(PASSWD, &aged));
    let stale = subjects(&data).into_iter().find(|(kind, _)| kind == "user-stale").unwrap().1;
    assert!(stale.contains(&"bob".to_owned()) && !stale.contains(&"ada".to_owned()), "{stale:?}");
}
