use linux_sysadmin_sdk::testkit::FakeTarget;

use super::files;
use super::*;
use crate::account::Account;

/// A typical configuration with an Include, a Match, quotes, `Key=Value` and tabs.
const FILE: &str = include_str!("../../tests/data/ssh_config");
const WORK: &str = include_str!("../../tests/data/work.conf");

fn account() -> Account {
    let privilege = linux_sysadmin_sdk::Privilege::Caller;
    Account { name: "ada".into(), uid: 1000, home: "/home/ada".into(), privilege, is_own: true }
}

fn read(files: &[(&str, &str)]) -> Result<Config, Broken> {
    let target = files.iter().fold(FakeTarget::new(), |target, (path, text)| target.file(path, *text));
    files::read(files[0].0, files[0].1, &account(), &target.context())
}

fn recorded() -> Config {
    read(&[("/home/ada/.ssh/config", FILE), ("/home/ada/.ssh/config.d/work.conf", WORK)]).unwrap()
}

fn of<'a>(config: &'a Config, keyword: &str, alias: &str) -> Option<(&'a str, Holds)> {
    let found = config.settings.iter().filter(|setting| setting.is(keyword));
    let mut held = found.map(|setting| (setting.words[0].as_str(), config.holds(setting.block, alias)));
    held.find(|(_, holds)| *holds > Holds::No)
}

#[test]
fn settings_come_in_the_order_in_which_ssh_meets_them() {
    let config = recorded();
    for (keyword, alias, expected) in [
        ("ServerAliveInterval", "anything", Some(("30", Holds::Yes))),
        ("HostName", "prod-db", Some(("10.0.1.50", Holds::Yes))),
        ("ProxyJump", "prod-db", Some(("bastion", Holds::Yes))),
        ("IdentityFile", "prod-db", Some(("~/.ssh/prod key", Holds::Yes))),
        ("Port", "bastion", Some(("2222", Holds::Yes))),
        ("User", "web1", Some(("deploy", Holds::Yes))),
        ("User", "web9", Some(("deploy", Holds::Yes))),
        // The pattern of this host is negated.
        ("User", "web-old", Some(("late", Holds::Maybe))),
        // This is in the included file.
        ("HostName", "intranet", Some(("intranet.example.org", Holds::Yes))),
        ("ForwardAgent", "other", Some(("no", Holds::Yes))),
        ("HostName", "other", None),
    ] {
        assert_eq!(of(&config, keyword, alias), expected, "{keyword} of {alias}");
    }
    assert!(config.unread.is_empty(), "{:?}", config.unread);
}

#[test]
fn what_is_included_within_a_block_holds_where_the_block_does() {
    let config = read(&[
        ("/home/ada/.ssh/config", "Host web*\n Include conf.d/*\nHost *\n User last\n"),
        ("/home/ada/.ssh/conf.d/a", "User first\nHost web1\n Port 1\nHost db1\n Port 2\n"),
        ("/home/ada/.ssh/conf.d/.hidden", "User hidden\n"),
    ])
    .unwrap();
    for (keyword, alias, expected) in [
        ("User", "web1", Some(("first", Holds::Yes))),
        ("User", "db1", Some(("last", Holds::Yes))),
        ("Port", "web1", Some(("1", Holds::Yes))),
        ("Port", "db1", None),
    ] {
        assert_eq!(of(&config, keyword, alias), expected, "{keyword} of {alias}");
    }
}

#[test]
fn of_a_match_it_is_known_what_depends_on_the_alias_only() {
    for (criteria, holds) in [
        ("all", Holds::Yes),
        ("originalhost web*,db1", Holds::Yes),
        ("originalhost=web1", Holds::Yes),
        ("originalhost db*", Holds::No),
        ("!originalhost web1", Holds::No),
        ("!originalhost db1", Holds::Yes),
        ("host web1", Holds::Maybe),
        ("exec \"test -e /x\"", Holds::Maybe),
        ("user ada originalhost db1", Holds::No),
        ("originalhost web1 user ada", Holds::Maybe),
        ("final", Holds::Maybe),
    ] {
        let config = read(&[("/home/ada/.ssh/config", &format!("Match {criteria}\n Port 1\n"))]).unwrap();
        assert_eq!(config.holds(1, "web1"), holds, "{criteria}");
    }
}

#[test]
fn what_is_not_followed_is_said() {
    let text = "Include ~bob/x %h.conf ${X}/y\nInclude none.conf /etc/none/*.conf\nInclude '[a'\n";
    let config = read(&[("/home/ada/.ssh/config", text)]).unwrap();
    let unread = config.unread.join("\n");
    assert_eq!(config.unread.len(), 4, "{unread}");
    for part in ["~bob/x: another account's", "%h.conf: tokens", "${X}/y: tokens", "[a"] {
        assert!(unread.contains(part), "{part}: {unread}");
    }
}

#[test]
fn files_that_include_themselves_have_an_end() {
    let config = read(&[("/home/ada/.ssh/config", "Include config\nPort 1\n")]).unwrap();
    assert!(config.unread.iter().any(|unread| unread.contains("too deeply")), "{:?}", config.unread);
    let twice = read(&[("/home/ada/.ssh/config", "Include config config\n")]).unwrap();
    assert!(
        twice.unread.iter().any(|unread| unread.contains("more than 200 files")),
        "{:?}",
        twice.unread.len()
    );
}

#[test]
fn a_line_that_ssh_gives_up_at_is_named() {
    for (text, line) in [("Host a\n User \"x\n", 2), ("\n\nPort\n", 3)] {
        let broken = read(&[("/home/ada/.ssh/config", text)]).unwrap_err();
        assert_eq!((broken.file.as_str(), broken.line), ("/home/ada/.ssh/config", line));
        let problem = broken.problem(&account());
        assert_eq!(problem.code, "SSH_CONFIG_INVALID");
        assert!(problem.message.starts_with(&format!("~/.ssh/config:{line}:")), "{}", problem.message);
    }
    let files = [("/home/ada/.ssh/config", "Include sub.conf\n"), ("/home/ada/.ssh/sub.conf", "Port\n")];
    assert_eq!(read(&files).unwrap_err().file, "/home/ada/.ssh/sub.conf");
}
