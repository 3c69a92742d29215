//! The engine sees through wrappers, quotes and other disguises. These tests use as few rules as possible.

use super::*;

#[test]
fn it_is_seen_who_starts_what() {
    for line in [
        "reboot",
        "/sbin/reboot",
        "/usr/bin/../sbin/reboot",
        "sudo reboot",
        "sudo -u root -- reboot",
        "sudo -n -E A=b reboot",
        "doas -u root reboot",
        "env A=b reboot",
        "env -i -u X -C /tmp reboot",
        "env - reboot",
        "nice -n 10 reboot",
        "nice -10 reboot",
        "ionice -c3 reboot",
        "chrt -f 50 reboot",
        "taskset -c 0-3 reboot",
        "timeout -s KILL -k 5 10 reboot",
        "nohup reboot",
        "setsid -f reboot",
        "stdbuf -oL reboot",
        "chroot /mnt reboot",
        "unshare -m reboot",
        "nsenter -t 1 -m -u reboot",
        "watch -n 1 reboot",
        "systemd-run --wait -p A=b reboot",
        "xargs -0 -n 1 reboot",
        "ip netns exec blue reboot",
        "ip -all netns exec reboot",
        "ip net e blue reboot",
        "busybox reboot",
        "time -p reboot",
        "strace -f -e trace=all reboot",
        "flock -n /run/lock reboot",
        "flock /run/lock -c reboot",
        "script -q -c reboot /dev/null",
        "su -c reboot",
        "su - root -c reboot",
        "su root -- -c reboot",
        "runuser -u root -- reboot",
        "ssh -p 22 host reboot",
        "find / -name x -exec reboot ;",
        "find / -name x -exec true ; -ok reboot {} +",
        "start-stop-daemon -S -x /sbin/reboot -- now",
        "sudo env A=b nice timeout 5 sh -c reboot",
        "sudo --unknown value reboot",
        "setpriv --reuid 0 reboot",
    ] {
        let verdict = verdict(line);
        assert!(verdict.matched_rules.contains(&"power.off".to_owned()), "{line}: {verdict:?}");
    }
}

#[test]
fn a_text_for_a_shell_is_read() {
    for text in [
        "reboot",
        "true;reboot",
        "true && reboot",
        "true||reboot",
        "true|reboot",
        "true & reboot",
        "true\nreboot",
        "echo $(reboot)",
        "echo \"$(reboot)\"",
        "echo `reboot`",
        "echo `echo \\`reboot\\``",
        "cat <(reboot)",
        "(reboot)",
        "{ reboot; }",
        "if true; then reboot; fi",
        "while reboot; do :; done",
        "for x in a b; do reboot; done",
        "case $x in a) reboot;; esac",
        "! reboot",
        "A=b reboot",
        "A=$(reboot)",
        "f() { reboot; }; f",
        "function f { reboot; }",
        "r'e'bo\"ot\"",
        "re\\boot",
        "reboot>/dev/null",
        "2>/dev/null reboot",
        "eval reboot",
        "eval 'true; reboot'",
        "sh -c 'sh -c \"reboot\"'",
        "cat <<X\ntext\nX\nreboot",
        "cat <<'X'\n$(true)\nX\nreboot",
        "echo $((1 << 2)); reboot",
        "# comment\nreboot",
        "exec reboot",
        "trap '' 1; command reboot",
        "sudo reboot",
        "x=(reboot)",
    ] {
        let verdict = of_text(text);
        assert!(verdict.matched_rules.contains(&"power.off".to_owned()), "{text}: {verdict:?}");
        assert!(!verdict.matched_rules.contains(&"code.shell".to_owned()), "{text}: {verdict:?}");
    }
}

#[test]
fn relative_paths_begin_where_the_command_does() {
    let policy = Policy::builtin();
    let shows = |argv: &[&str], directory| {
        let certain = policy.certain_verdict(argv, directory).capabilities;
        let all = policy.verdict_in(argv, directory).capabilities;
        assert!(certain.iter().all(|one| all.contains(one)), "{argv:?}");
        certain.iter().any(|one| one == "credentials.read")
    };
    for directory in ["/home/bob/.ssh", "~/.ssh", "/etc/../home/bob/.ssh/"] {
        assert!(shows(&["od", "-An", "id_ed25519"], Some(directory)), "{directory}");
    }
    assert!(shows(&["cat", "shadow"], Some("/etc")));
    assert!(!shows(&["cat", "notes"], Some("/home/bob")));
    assert!(!shows(&["cat", "/srv/shadow"], Some("/etc")));
}

#[test]
fn a_safe_rule_holds_only_where_every_word_is_certain() {
    let policy = policy(
        "rules:
  - id: own.look
    level: SAFE
    risk_score: 0
    capabilities: own.read
    reason: looks
    match: {command: frob, args_any: ['*'], args_none: [set], options_none: [--kill], options_only: [-v, --all, --kill, --no-kill]}
  - id: own.route
    level: SAFE
    risk_score: 0
    capabilities: own.read
    reason: looks
    match: {command: ip, subcommand_any: route show}
  - id: own.check
    level: CONFIRM
    risk_score: 10
    capabilities: own.read
    reason: reads files
    match: {command: frob, path_other: '/etc/**'}
",
    );
    for (line, expected) in [
        ("frob /etc/x", Level::Safe),
        ("frob -v --all /etc/x", Level::Safe),
        ("frob --al /etc/x", Level::Confirm),
        ("frob -w /etc/x", Level::Confirm),
        ("frob -vw /etc/x", Level::Confirm),
        ("frob --kill /etc/x", Level::Confirm),
        ("frob --kil /etc/x", Level::Confirm),
        ("frob --no-kill --kill /etc/x", Level::Confirm),
        ("frob set /etc/x", Level::Confirm),
        ("frob $X /etc/x", Level::Confirm),
        ("frob /srv/x", Level::Confirm),
        ("frob /etc/../srv/x", Level::Confirm),
        ("frob x", Level::Confirm),
        ("ip route show", Level::Safe),
        ("ip route s", Level::Confirm),
        ("ip r show", Level::Confirm),
    ] {
        assert_eq!(policy.verdict(&["sh", "-c", line]).level, expected, "{line}");
    }
}
