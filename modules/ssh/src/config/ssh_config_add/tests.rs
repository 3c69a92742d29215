use std::fs;
use std::process::Command as Program;

use linux_sysadmin_sdk::testkit::FakeTarget;
use proptest::prelude::*;

use super::*;
use crate::config::edit::Edited;

const FILE: &str = include_str!("../../../tests/data/ssh_config");
const PATH: &str = "/home/ada/.ssh/config";

fn wish(alias: &str, settings: &[(&'static str, &str)]) -> HostSettings {
    let settings = settings.iter().map(|(keyword, value)| (*keyword, value.to_string())).collect();
    HostSettings { alias: alias.to_owned(), settings }
}

fn account() -> Account {
    let privilege = linux_sysadmin_sdk::Privilege::Caller;
    Account { name: "ada".into(), uid: 1000, home: "/home/ada".into(), privilege, is_own: true }
}

fn read(text: &str) -> Config {
    files::read(PATH, text, &account(), &FakeTarget::new().context()).unwrap()
}

fn checked(text: &str, wish: &HostSettings) -> Result<(Edited, Vec<String>)> {
    let edited = edit(text, wish).map_err(|refusal| refusal.problem(PATH, wish, &account()))?;
    let warnings = must_count(&read(&edited.text), PATH, edited.line, wish, &account())?;
    Ok((edited, warnings))
}

#[test]
fn a_new_host_goes_in_front_of_all_others_and_behind_what_is_for_all() {
    let web = wish("new", &[("HostName", "10.0.0.9"), ("Port", "2222")]);
    let block = "Host new\n    HostName 10.0.0.9\n    Port 2222\n";
    for (before, after, line) in [
        ("", block.to_owned(), 1),
        ("# mine\n", format!("# mine\n\n{block}"), 3),
        ("User x", format!("User x\n\n{block}"), 3),
        ("User x\n\n", format!("User x\n\n{block}"), 3),
        ("Host *\n User x\n", format!("{block}\nHost *\n User x\n"), 1),
        // A comment right above a block belongs to it.
        ("# all\nHost *\n User x\n", format!("{block}\n# all\nHost *\n User x\n"), 1),
        ("# mine\n\n# all\nMatch all\n", format!("# mine\n\n{block}\n# all\nMatch all\n"), 3),
        ("Compression yes\nHost *\n", format!("Compression yes\n\n{block}\nHost *\n"), 3),
    ] {
        let edited = edit(before, &web).unwrap();
        assert_eq!((&edited.text, edited.line, edited.is_new), (&after, line, true), "{before:?}");
    }
    let windows = edit("User x\r\n\r\nHost *\r\n", &web).unwrap();
    assert_eq!(windows.text, format!("User x\r\n\r\n{}\r\nHost *\r\n", block.replace('\n', "\r\n")));
}

#[test]
fn of_a_host_that_is_there_its_own_lines_change_and_no_others() {
    let (edited, _) = checked(
        FILE,
        &wish("bastion", &[("Port", "22"), ("HostName", "b.example.com"), ("IdentitiesOnly", "yes")]),
    )
    .unwrap();
    let expected = FILE
        .replace("HostName = bastion.example.com", "HostName = b.example.com")
        .replace("\tPort=2222\n\tUser admin\n", "\tPort=22\n\tUser admin\n\tIdentitiesOnly yes\n");
    assert_eq!((edited.text, edited.line, edited.is_new), (expected, 7, false));
    // A comment after the value stays, and so does another block of the same host.
    let text = "Host a\n  User \"x\" # me\nHost a\n  User y\n  Port 1\n";
    let (edited, _) = checked(text, &wish("a", &[("User", "z"), ("Port", "2")])).unwrap();
    assert_eq!(edited.text, "Host a\n  User z # me\n  Port 2\nHost a\n  User y\n  Port 1\n");
    let bare = edit("Host a", &wish("a", &[("Port", "2")])).unwrap();
    assert_eq!(bare.text, "Host a\n    Port 2\n");
}

#[test]
fn what_is_there_already_is_not_written_again() {
    for wish in [
        wish("bastion", &[("Port", "2222"), ("User", "admin")]),
        wish("prod-db", &[("HostName", "10.0.1.50"), ("ProxyJump", "bastion")]),
    ] {
        assert_eq!(edit(FILE, &wish).unwrap().text, FILE);
    }
    let text = "Host a\n IdentitiesOnly true\n Port 022\n";
    assert_eq!(edit(text, &wish("a", &[("IdentitiesOnly", "yes"), ("Port", "22")])).unwrap().text, text);
}

#[test]
fn what_cannot_be_changed_by_itself_is_refused() {
    let port = [("Port", "22")];
    let jump = [("ProxyJump", "b")];
    for (text, wish, code, part) in [
        ("Host a b\n Port 1\n", wish("a", &port), "HOST_SHARED", "~/.ssh/config:1: Host a b"),
        ("Host x\nHost \"a\" !b\n", wish("a", &port), "HOST_SHARED", "~/.ssh/config:2"),
        (
            "Host a\n IdentityFile ~/x\n IdentityFile ~/y\n",
            wish("a", &[("IdentityFile", "~/z")]),
            "SETTING_NOT_CLEAR",
            "several lines IdentityFile",
        ),
        (
            "Host a\n ProxyCommand nc %h %p\n",
            wish("a", &jump),
            "SETTING_COMES_FIRST",
            "~/.ssh/config:2 sets a ProxyCommand",
        ),
        ("Port 1\n", wish("a", &port), "SETTING_COMES_FIRST", "~/.ssh/config:1 sets Port 1"),
        (
            "Host *\n port=1\nHost a\n User x\n",
            wish("a", &port),
            "SETTING_COMES_FIRST",
            "~/.ssh/config:2 sets port 1",
        ),
        (
            "Match originalhost a\n Port 1\nHost a\n User x\n",
            wish("a", &port),
            "SETTING_COMES_FIRST",
            "~/.ssh/config:2",
        ),
        (
            "ProxyCommand nc %h %p # all\n",
            wish("a", &jump),
            "SETTING_COMES_FIRST",
            "~/.ssh/config:1 sets ProxyCommand",
        ),
        ("Host a\n User \"x\n", wish("a", &port), "SSH_CONFIG_INVALID", "~/.ssh/config:2: a quote"),
    ] {
        let problem = checked(text, &wish).unwrap_err();
        assert_eq!(problem.code, code, "{text}: {}", problem.message);
        assert!(
            problem.message.contains(part) && !problem.remediation.is_empty(),
            "{text}: {}",
            problem.message
        );
    }
    // The same value before does no harm, and neither does a value for other hosts.
    for text in [
        "Port 22\nHost a\n User x\n",
        "Host b*\n Port 1\nHost a\n User x\n",
        "Match !originalhost a\n Port 1\nHost a\n",
    ] {
        assert_eq!(checked(text, &wish("a", &port)).unwrap().1, [""; 0], "{text}");
    }
}

#[test]
fn what_may_come_first_is_warned_of() {
    let text = "Match exec \"/bin/x\"\n Port 1\n IdentityFile ~/x\nHost a\n User x\nHost *\n Port 3\n";
    let (_, warnings) = checked(text, &wish("a", &[("Port", "22"), ("IdentityFile", "~/y")])).unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("~/.ssh/config:2 sets Port before"), "{warnings:?}");
    assert!(warnings[1].contains("~/.ssh/config:3 names another IdentityFile"), "{warnings:?}");
}

#[test]
fn a_host_of_an_included_file_is_changed_there() {
    let config = files::read(
        PATH,
        "Include x.conf\n",
        &account(),
        &FakeTarget::new().file("/home/ada/.ssh/x.conf", "\nHost b a\n").context(),
    )
    .unwrap();
    let problem = must_be_here(&config, PATH, "a", &account()).unwrap_err();
    assert_eq!(problem.code, "HOST_ELSEWHERE");
    assert!(problem.message.contains("~/.ssh/x.conf:2"), "{}", problem.message);
    assert!(must_be_here(&config, PATH, "c", &account()).is_ok());
}

#[test]
fn arguments_are_checked_before_anything_is_looked_at() {
    let args = |json: serde_json::Value| serde_json::from_value::<AddArgs>(json).unwrap().wish();
    for (json, part) in [
        (serde_json::json!({"host": "a"}), "nothing is to be set"),
        (serde_json::json!({"host": "web*", "port": 22}), "host is"),
        (serde_json::json!({"host": "localhost", "port": 22}), "host is"),
        (serde_json::json!({"host": "a", "port": 0}), "port is 0"),
        (serde_json::json!({"host": "a", "user": "x\nProxyCommand id"}), "user is"),
        (serde_json::json!({"host": "a", "hostname": "-oProxyCommand=id"}), "hostname is"),
        (serde_json::json!({"host": "a", "identity_file": "~/%h"}), "identity_file is"),
        (serde_json::json!({"host": "a", "proxy_jump": "a b"}), "proxy_jump is"),
    ] {
        let problem = args(json).unwrap_err();
        assert!(problem.message.contains(part), "{}", problem.message);
    }
    let all = serde_json::json!({"host": "a", "hostname": "h", "port": 22, "user": "u", "identity_file": "~/k",
        "identities_only": false, "proxy_jump": "none"});
    let keywords: Vec<&str> = args(all).unwrap().settings.iter().map(|(keyword, _)| *keyword).collect();
    assert_eq!(keywords, ["HostName", "Port", "User", "IdentityFile", "IdentitiesOnly", "ProxyJump"]);
}

/// The settings that OpenSSH itself reads, `None` where it isn't installed.
fn by_ssh(text: &str, alias: &str) -> Option<Vec<(String, String)>> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config");
    fs::write(&file, text).unwrap();
    let output = Program::new("ssh").arg("-G").arg("-F").arg(&file).args(["--", alias]).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}: {text}");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(
        stdout
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect(),
    )
}

fn some_wish() -> impl Strategy<Value = HostSettings> {
    let alias = prop_oneof![Just("bastion"), Just("prod-db"), Just("new"), Just("web7"), Just("web-old")];
    let setting = prop_oneof![
        "[a-z]{1,8}(\\.[a-z]{1,5})?".prop_map(|name| ("HostName", name)),
        (1u16..).prop_map(|port| ("Port", port.to_string())),
        "[a-z_][a-z0-9@.+-]{0,8}".prop_map(|user| ("User", user)),
        "(~|/etc)/[a-z]{1,5}/[a-zA-Z0-9_@+]{1,8}".prop_map(|file| ("IdentityFile", file)),
        any::<bool>().prop_map(|only| ("IdentitiesOnly", if only { "yes" } else { "no" }.to_owned())),
        "([a-z]{1,5}@)?[a-z]{1,5}(:22)?(,[a-z]{1,4})?".prop_map(|jump| ("ProxyJump", jump)),
    ];
    (alias, proptest::collection::btree_map(0usize..6, setting, 1..5)).prop_map(|(alias, settings)| {
        let mut settings: Vec<(&'static str, String)> = settings.into_values().collect();
        settings.sort();
        settings.dedup_by_key(|(keyword, _)| *keyword);
        HostSettings { alias: alias.to_owned(), settings }
    })
}

fn some_text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("# a comment".to_owned()),
        Just(String::new()),
        Just("Compression yes".to_owned()),
        Just("Host new".to_owned()),
        Just("Host web* !web-old".to_owned()),
        Just("Host other".to_owned()),
        Just("Match all".to_owned()),
        Just("\tPort = 2022".to_owned()),
        Just("  user \"x\" # y".to_owned()),
        Just("  IdentityFile ~/.ssh/a\\ b".to_owned()),
        Just("ServerAliveInterval=5".to_owned()),
    ];
    (proptest::collection::vec(line, 0..10), any::<bool>(), any::<bool>()).prop_map(
        |(lines, windows, is_ended)| {
            let end = if windows { "\r\n" } else { "\n" };
            let text = lines.join(end);
            if is_ended && !text.is_empty() { text + end } else { text }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// This compares our reading with OpenSSH's, for the recorded file and for others.
    #[test]
    fn values_are_read_back_as_they_were_given(
        text in prop_oneof![Just(FILE.replace("Include config.d/*.conf\n", "")), some_text()],
        wish in some_wish(),
    ) {
        let Ok((edited, _)) = checked(&text, &wish) else { return Ok(()) };
        let config = read(&edited.text);
        let printed = by_ssh(&edited.text, &wish.alias);
        for (keyword, value) in &wish.settings {
            let mut held = config.settings.iter().filter(|setting| setting.is(keyword))
                .filter(|setting| config.holds(setting.block, &wish.alias) == Holds::Yes);
            let ours = if *keyword == "IdentityFile" {
                held.any(|setting| setting.words == [value.as_str()])
            } else {
                held.next().is_some_and(|setting| is_same(keyword, &setting.words[0], value))
            };
            prop_assert!(ours, "{} {}: {}", keyword, value, edited.text);
            let Some(printed) = &printed else { continue };
            let name = keyword.to_ascii_lowercase();
            let theirs = printed.iter().filter(|(keyword, _)| *keyword == name).any(|(_, said)| said == value);
            prop_assert!(theirs, "ssh: {} {}: {}", keyword, value, edited.text);
        }
        // A second change with the same settings changes nothing.
        prop_assert_eq!(&edit(&edited.text, &wish).unwrap().text, &edited.text);
    }

    /// Without the new lines, the text is the former one: no other line has changed.
    #[test]
    fn other_lines_stay_byte_for_byte(text in some_text(), wish in some_wish()) {
        let Ok(edited) = edit(&text, &wish) else { return Ok(()) };
        let before: Vec<&str> = text.split_inclusive('\n').collect();
        let after: Vec<&str> = edited.text.split_inclusive('\n').collect();
        if edited.is_new {
            let mut rest = after.iter();
            for line in &before {
                let line = line.trim_end_matches(['\r', '\n']);
                prop_assert!(rest.any(|there| there.trim_end_matches(['\r', '\n']) == line));
            }
            let is_head = |line: &&str| ["Host", "Match", "#"].iter().any(|head| line.starts_with(head));
            let start: String = text.split_inclusive('\n').take_while(|line| !is_head(line)).collect();
            prop_assert!(edited.text.starts_with(start.trim_end_matches(['\r', '\n'])));
        } else {
            let block = edited.line - 1;
            let is_head = |line: &&str| line.starts_with("Host") || line.starts_with("Match");
            let end = before.iter().skip(block + 1).position(is_head);
            let end = end.map_or(before.len(), |end| block + 1 + end);
            prop_assert_eq!(&before[..block], &after[..block]);
            let tail = before.len() - end;
            prop_assert_eq!(&before[end..], &after[after.len() - tail..]);
        }
    }
}
