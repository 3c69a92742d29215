//! These rules hold for every command line: a wrapper never lowers a verdict, nothing panics, and the work is bounded.

use proptest::prelude::*;

use super::*;

/// Words that run the command behind them.
const WRAPPERS: &[&[&str]] = &[
    &["sudo"],
    &["sudo", "-u", "root", "--"],
    &["doas"],
    &["env", "A=b"],
    &["nice", "-n", "10"],
    &["ionice", "-c3"],
    &["timeout", "-k", "5", "10"],
    &["nohup"],
    &["setsid", "-f"],
    &["stdbuf", "-oL"],
    &["chroot", "/mnt"],
    &["unshare", "-m"],
    &["nsenter", "-t", "1", "-m"],
    &["systemd-run", "--wait"],
    &["xargs", "-0"],
    &["ip", "netns", "exec", "blue"],
    &["busybox"],
    &["time"],
    &["flock", "/run/lock"],
    &["runuser", "-u", "root", "--"],
    &["strace", "-f"],
    &["taskset", "1"],
    &["find", "/srv", "-exec"],
];

const COMMANDS: &[&[&str]] = &[
    &["rm", "-rf", "/"],
    &["rm", "-rf", "/srv"],
    &["reboot"],
    &["dd", "of=/dev/sda"],
    &["cat", "/etc/shadow"],
    &["tee", "/etc/sudoers"],
    &["systemctl", "stop", "ssh"],
    &["iptables", "-F"],
    &["sh", "-c", "echo x > /etc/passwd"],
    &["python3", "-c", "x"],
    &["ls"],
    &["mkfs", "/dev/sda"],
];

fn is_no_lower(one: &Verdict, other: &Verdict) -> bool {
    one.level >= other.level
        && one.risk >= other.risk
        && one.risk_score >= other.risk_score
        && other.capabilities.iter().all(|capability| one.capabilities.contains(capability))
}

fn quoted(argv: &[&str]) -> String {
    argv.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect::<Vec<_>>().join(" ")
}

fn words() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "sudo",
        "env",
        "-S",
        "-c",
        "sh",
        "find",
        "-exec",
        ";",
        "+",
        "{}",
        "xargs",
        "ip",
        "netns",
        "exec",
        "--",
        "-",
        "A=b",
        "/etc/shadow",
        "$(",
        ")",
        "`",
        "'",
        "\"",
        "<<x",
        "${",
        "((",
        "*",
        "rm",
        "-rf",
        "/",
        "systemctl",
        "tar",
        "--to-command=x",
        "\n",
    ]);
    prop_oneof![known.prop_map(str::to_owned), any::<String>()]
}

proptest! {
    #[test]
    fn wrapping_lowers_no_verdict(command in prop::sample::select(COMMANDS), wrappers in prop::collection::vec(prop::sample::select(WRAPPERS), 0..5)) {
        let policy = Policy::builtin();
        let bare = policy.verdict(command);
        let mut argv: Vec<&str> = command.to_vec();
        for wrapper in wrappers {
            argv.splice(0..0, wrapper.iter().copied());
            let wrapped = policy.verdict(&argv);
            prop_assert!(is_no_lower(&wrapped, &bare), "{argv:?}: {wrapped:?}, and bare {bare:?}");
        }
        let text = quoted(&argv);
        for shell in [["sh", "-c", &text], ["bash", "-lc", &text], ["su", "-c", &text], ["env", "-S", &text]] {
            let wrapped = policy.verdict(&shell);
            prop_assert!(is_no_lower(&wrapped, &bare), "{shell:?}: {wrapped:?}, and bare {bare:?}");
        }
    }

    #[test]
    fn no_argv_is_too_strange(argv in prop::collection::vec(words(), 0..12)) {
        let policy = Policy::builtin();
        policy.verdict(&argv);
        policy.verdict(&["sh", "-c", &argv.concat()]);
        policy.verdict(&["sh", "-c", &argv.join(" ")]);
        argv.iter().for_each(|path| { policy.file_verdict(FileStep::Write, path); });
    }

    #[test]
    fn more_commands_in_a_text_lower_no_verdict(one in prop::sample::select(COMMANDS), other in prop::sample::select(COMMANDS), sign in prop::sample::select(vec![";", "&&", "|", "||", "&", "\n"])) {
        let policy = Policy::builtin();
        let bare = policy.verdict(one);
        let both = of_text(&format!("{} {sign} {}", quoted(other), quoted(one)));
        prop_assert!(is_no_lower(&both, &bare), "{both:?}, and bare {bare:?}");
    }
}

/// This would take hours if anything read the same words again and again.
#[test]
fn the_size_of_an_argv_costs_no_more_than_its_length() {
    let policy = Policy::builtin();
    let long = "a".repeat(1 << 20);
    let many = |word: &'static str| vec![word; 10_000];
    policy.verdict(&["rm", &long]);
    policy.verdict(&["sh", "-c", &long]);
    policy.verdict(&["awk", &"system".repeat(1 << 17)]);
    policy.verdict(&["rm", &format!("-{long}")]);
    policy.verdict(&["cat", &"/..".repeat(1 << 18)]);
    for word in [
        "a",
        "env",
        "find",
        "-exec",
        "xargs",
        "-S",
        "/etc/shadow",
        "eval",
        "--x",
        "sudo",
        "watch",
        "su",
        "-c",
    ] {
        policy.verdict(&many(word));
    }
    for first in [
        "rm",
        "cp",
        "find",
        "systemctl",
        "ip",
        "git",
        "xargs",
        "env",
        "watch",
        "ssh",
        "parallel",
        "tmux",
        "frob",
    ] {
        let mut argv = many("/etc/x");
        argv[0] = first;
        policy.verdict(&argv);
    }
    for piece in [
        "$(",
        "`",
        "(",
        "{ ",
        "\\`",
        "<(",
        "${",
        "$((",
        "<<x\n",
        "\"",
        "'",
        "$'",
        "eval ",
        "x=(",
        "case x in ",
        "a;",
        "*",
        "[",
        "{,",
    ] {
        of_text(&piece.repeat(5_000));
    }
}

#[test]
fn brackets_and_braces_in_one_another_are_no_trouble() {
    for text in ["[{x]}", "[aaaa{x]}", "{[a,b}]", "{[a],b}", "a{b[c{d]e}f,g}h]", "[[{{]]}}", "{a,{b,[c}d]}"] {
        of_text(text);
        of_text(&format!("rm -rf {text}"));
    }
}

#[test]
fn nothing_in_a_text_is_read_twice() {
    for (opening, closing) in
        [("(( $( ", " ) ))"), ("$(( $( ", " ) ))"), ("` ", " `"), ("${x:-$( ", " )}"), ("<( ", " )")]
    {
        let text = format!("{}{}{}", opening.repeat(8), "a;".repeat(1000), closing.repeat(8));
        let commands = shell::read(&text).commands.len();
        assert!(commands < 2000, "{opening}: {commands}");
    }
}

#[test]
fn what_is_added_or_found_may_be_anything() {
    for line in [
        "xargs kill -9",
        "xargs cat",
        "xargs -I% sh -c %",
        "xargs -I% % x",
        "parallel {} ::: reboot",
        "find / -name x -exec {} ;",
        "find / -name shadow -exec cat {} +",
        "find /etc/sudoers.d -type f -exec tee {} ;",
    ] {
        assert_eq!(verdict(line).level, Level::Confirm, "{line}");
    }
    assert!(verdict("find /etc/sudoers.d -type f -exec tee {} ;").risk >= Some(Risk::Critical));
    assert_eq!(verdict("find /srv -name x -exec echo {} ;").level, Level::Safe);
}

#[test]
fn an_option_makes_harmless_only_where_it_is_certain() {
    for line in [
        "apt-get -s- purge x",
        "apt-get -s=no purge x",
        "apt-get --simulate=NO purge x",
        "apt-get --simulate=00 purge x",
        "apt-get -s --no-s purge x",
        "apt-get -s --no-simulate purge x",
        "tar -x --unknown -O -f /tmp/a.tar",
        "rsync --delete --unknown --dry-run /empty/ /srv/",
        "apt-get purge -- --simulate",
    ] {
        assert_eq!(verdict(line).level, Level::Confirm, "{line}");
    }
    for line in ["apt-get -s purge x", "apt-get --simulate=yes purge x"] {
        assert!(verdict(line).level == Level::Safe, "{line}: {:?}", verdict(line));
    }
}

#[test]
fn programs_that_start_each_other_too_deep_are_not_followed() {
    let nested = |verdict: &Verdict| verdict.matched_rules.contains(&"code.nested".to_owned());
    let mut argv = vec!["env"; 10_000];
    argv.push("ls");
    let verdict = Policy::builtin().verdict(&argv);
    assert!(
        nested(&verdict) && verdict.level == Level::Confirm && verdict.risk == Some(Risk::High),
        "{verdict:?}"
    );
    assert!(!nested(&Policy::builtin().verdict(&argv[9_980..])));
    let mut text = "ls".to_owned();
    for _ in 0..10 {
        text = format!("eval {text}");
    }
    assert!(nested(&of_text(&text)));
    let deep = format!("{}ls{}", "$(".repeat(100), ")".repeat(100));
    assert!(of_text(&deep).matched_rules.contains(&"code.shell".to_owned()));
}

#[test]
fn an_option_that_nobody_knows_hides_no_command() {
    for argv in ["timeout --x a --y b 5 reboot", "sudo --what ever reboot", "nice --x reboot"] {
        assert_eq!(verdict(argv).level, Level::Confirm, "{argv}");
    }
    assert!(verdict("systemctl --unknown value stop ssh").risk >= Some(Risk::High));
}
