use super::*;
use crate::config::settings::{Settings, Source};
use crate::config::tokens::LocalUser;

fn proxy_of(keyword: &'static str, value: &str) -> Result<Proxy, Problem> {
    expanded(keyword, value, "web.example.com", "ada")
}

fn expanded(keyword: &'static str, value: &str, hostname: &str, user: &str) -> Result<Proxy, Problem> {
    let local_user =
        LocalUser { name: "me".into(), uid: 1000, home: "/home/me".into(), variables: Vec::new() };
    let tokens = Tokens {
        local_user: &local_user,
        alias: "web",
        hostname: hostname.to_owned(),
        port: 2222,
        user,
        key_alias: "web",
        jump: None,
    };
    let mut settings = Settings::new(Source::Ssh);
    settings.add(keyword, value, None);
    let jump = settings.get("ProxyJump").filter(|setting| setting.value != "none");
    proxy(jump, settings.get("ProxyCommand"), &tokens)
}

#[test]
fn a_command_is_words_and_tokens_are_parts_of_them() {
    for (text, expected) in [
        ("nc %h %p", vec!["nc", "web.example.com", "2222"]),
        ("exec nc %h %p", vec!["nc", "web.example.com", "2222"]),
        (
            "/usr/bin/nc -X 5 -x proxy:1080 %h %p",
            vec!["/usr/bin/nc", "-X", "5", "-x", "proxy:1080", "web.example.com", "2222"],
        ),
        ("ssh -W %h:%p bastion", vec!["ssh", "-W", "web.example.com:2222", "bastion"]),
        ("ssh -W [%h]:%p bastion", vec!["ssh", "-W", "[web.example.com]:2222", "bastion"]),
        ("ssh -W '[%h]:%p' %r@bastion", vec!["ssh", "-W", "[web.example.com]:2222", "ada@bastion"]),
        (r"ssh -W \[%h\]:%p bastion", vec!["ssh", "-W", "[web.example.com]:2222", "bastion"]),
        ("tool \"%n and %%\" 'a;b|c'", vec!["tool", "web and %", "a;b|c"]),
        ("tool a#b c~d", vec!["tool", "a#b", "c~d"]),
        ("tool --set=a", vec!["tool", "--set=a"]),
    ] {
        let expected = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(proxy_of("ProxyCommand", text).unwrap(), Proxy::Command(expected), "{text}");
    }
}

#[test]
fn what_needs_a_shell_is_refused_and_named() {
    for (text, found) in [
        ("nc %h %p | tee /tmp/log", "'|'"),
        ("nc %h %p 2>/dev/null", "'>'"),
        ("nc %h %p < /dev/null", "'<'"),
        ("nc %h %p; id", "';'"),
        ("nc %h %p && id", "'&'"),
        ("(nc %h %p)", "'('"),
        ("nc $HOST %p", "'$'"),
        ("nc \"$(id)\" %p", "'$'"),
        ("nc \"`id`\" %p", "'`'"),
        ("nc `id` %p", "'`'"),
        ("nc * %p", "'*'"),
        ("nc ho?t %p", "'?'"),
        ("nc {a,b}", "'{'"),
        ("~/bin/proxy %h", "'~'"),
        ("tool --file=~/x", "'~'"),
        ("nc %h %p # comment", "'#'"),
        ("! nc %h %p", "'!'"),
        ("nc %h\n%p", "'\\n'"),
        ("nc %h\\\n%p", "'\\n'"),
        ("nc \"%h\n\" %p", "'\\n'"),
        ("A=b nc %h %p", "A=b"),
        ("exec A=b nc %h %p", "A=b"),
        ("exec -a x nc %h", "-a"),
        ("nc 'a", "no end"),
        ("nc \"a", "no end"),
        ("exec", "no program"),
        ("''", "no program"),
        ("-", "no program"),
    ] {
        let problem = proxy_of("ProxyCommand", text).unwrap_err();
        assert_eq!(problem.code, "PROXY_COMMAND_REFUSED", "{text}");
        assert!(problem.message.contains(found), "{text}: {}", problem.message);
        assert!(problem.remediation.iter().any(|step| step.contains("ProxyJump")), "{text}");
    }
}

#[test]
fn a_value_is_never_more_than_a_part_of_its_word() {
    for value in ["a b", "a;id", "$(id)", "'", "\"", "a\nb", "%p", "#"] {
        let words = vec!["nc".to_owned(), value.to_owned(), "2222".to_owned()];
        assert_eq!(
            expanded("ProxyCommand", "nc %h %p", value, "ada").unwrap(),
            Proxy::Command(words),
            "{value}"
        );
    }
    for (text, hostname, user) in
        [("nc %h", "-e/bin/sh", "ada"), ("nc x%h", "-e", "ada"), ("ssh -l %r web", "web", "-oProxyCommand=x")]
    {
        assert!(
            expanded("ProxyCommand", text, hostname, user).unwrap_err().message.contains("begins with -"),
            "{text}"
        );
    }
}

#[test]
fn a_token_that_there_is_not_is_named() {
    for (text, why) in [("nc %Z", "%Z"), ("nc %d/x", "%d"), ("nc %", "single %")] {
        let problem = proxy_of("ProxyCommand", text).unwrap_err();
        assert_eq!(problem.code, "SSH_CONFIG_INVALID");
        assert!(problem.message.contains(why), "{}", problem.message);
    }
}

#[test]
fn jumps_are_hosts_in_their_order() {
    let jump = |user: Option<&str>, host: &str, port| Jump {
        user: user.map(str::to_owned),
        host: host.to_owned(),
        port,
    };
    for (text, expected) in [
        ("bastion", vec![jump(None, "bastion", None)]),
        ("ada@bastion:2222", vec![jump(Some("ada"), "bastion", Some(2222))]),
        ("a,b:22,c@d", vec![jump(None, "a", None), jump(None, "b", Some(22)), jump(Some("c"), "d", None)]),
        (
            "[::1]:2222,x@[2001:db8::1],::1",
            vec![
                jump(None, "::1", Some(2222)),
                jump(Some("x"), "2001:db8::1", None),
                jump(None, "::1", None),
            ],
        ),
        (
            "ssh://ada@bastion:44/,ssh://[::1]",
            vec![jump(Some("ada"), "bastion", Some(44)), jump(None, "::1", None)],
        ),
        ("a@b@bastion", vec![jump(Some("a@b"), "bastion", None)]),
        ("%r@jump.%h:%p", vec![jump(Some("ada"), "jump.web.example.com", Some(2222))]),
    ] {
        assert_eq!(proxy_of("ProxyJump", text).unwrap(), Proxy::Jump(expected), "{text}");
    }
    for text in [
        "",
        ",a",
        "a,,b",
        "a:",
        "a:0",
        "a:ssh",
        "a:65536",
        "-oProxyCommand=x",
        "a,-b",
        "-l@a",
        "@a",
        "a b",
        "a;id",
        "[::1",
        "[::1]22",
        "[a",
        "none,a:x",
        "ssh://",
        "%Z",
        "ssh://a/path",
    ] {
        assert_eq!(proxy_of("ProxyJump", text).unwrap_err().code, "SSH_CONFIG_INVALID", "{text}");
    }
}

#[test]
fn none_is_nothing() {
    assert_eq!(proxy_of("ProxyJump", "none").unwrap(), Proxy::None);
    assert_eq!(proxy_of("ProxyCommand", "none").unwrap(), Proxy::None);
}
