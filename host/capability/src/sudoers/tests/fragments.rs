//! Tests of whole fragments.

use super::*;

const SUDO: Option<SudoVersion> = Some(SudoVersion::Sudo(1, 9, 13));

fn rule<'a>(pattern: &'a Pattern) -> SudoersRule<'a> {
    SudoersRule {
        pattern,
        run_as: "root",
        program: Ok(PathBuf::from("/usr/bin").join(pattern.program())),
        reason: "to do it",
        refused: None,
    }
}

fn fragment(rules: &[SudoersRule<'_>]) -> Fragment {
    Fragment::new("disk-tools", "0.1.0", "ops", Exactness::Grants, SUDO, rules).unwrap()
}

/// The lines of a fragment that are not comments.
fn lines(fragment: &Fragment) -> Vec<String> {
    fragment
        .to_string()
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_rules_of_an_account_are_an_alias_and_its_use() {
    let (units, dates) = (pattern("systemctl restart -- <int>"), pattern("date [--utc]"));
    let rules = [rule(&units), SudoersRule { run_as: "www-data", ..rule(&dates) }];
    let fragment = fragment(&rules);
    assert_eq!(
        lines(&fragment),
        [
            "Cmnd_Alias LSA_DISK_TOOLS_AS_1 = /usr/bin/systemctl ^restart -- (0|[1-9][0-9]{0,18})$",
            "ops ALL=(root) NOPASSWD: LSA_DISK_TOOLS_AS_1",
            "Cmnd_Alias LSA_DISK_TOOLS_AS_2 = /usr/bin/date \"\", \\",
            "    /usr/bin/date ^--utc$",
            "ops ALL=(www-data) NOPASSWD: LSA_DISK_TOOLS_AS_2",
        ]
    );
    let text = fragment.to_string();
    for expected in [
        "# The module disk-tools 0.1.0 of linux-sysadmin, for the account ops.\n",
        "/etc/sudoers.d/linux-sysadmin-disk-tools, owned by root, mode 0440",
        "# 1. systemctl restart -- <int>\n# as root, since: to do it\n",
        "# as www-data, since: to do it\n",
    ] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
    assert_eq!((fragment.usable, fragment.environments.len()), (2, 0));
}

#[test]
fn sudo_gets_the_heading_and_the_rules() {
    let (units, dates) = (pattern("A=b systemctl restart -- <int>"), pattern("date [--utc]"));
    let path = pattern("cat -- <path>");
    let fragment = fragment(&[rule(&units), rule(&dates), rule(&path)]);
    let text = fragment.for_sudo();
    let (comments, rules): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with('#'));
    assert_eq!(rules, lines(&fragment));
    assert_eq!(comments[0], "# The module disk-tools 0.1.0 of linux-sysadmin, for the account ops.");
    let more = "# What each of the rules is for: linux-sysadmin modules sudoers disk-tools";
    assert_eq!(comments.last(), Some(&more));
    assert!(fragment.to_string().contains("to do it") && !text.contains("to do it"), "{text}");
}

#[test]
fn what_no_expression_can_hold_is_a_comment_with_the_reason() {
    let nothing = fragment(&[]);
    assert!(!nothing.is_needed && nothing.to_string().contains("there is nothing to allow"));
    let mut signals = fragment(&[]);
    signals.without(
        "signals to processes",
        "root",
        "end\nprocesses ALL=(ALL) ALL",
        "expected sudo to allow everything",
    );
    assert!(signals.is_needed && lines(&signals).is_empty(), "{signals}");
    let text = signals.to_string();
    let told = "\n# signals to processes\n# as root, since: end processes ALL=(ALL) ALL\n# Not allowed: expected sudo to allow";
    assert!(text.contains(told) && !text.contains("there is nothing to allow"), "{text}");
}

#[test]
fn a_variable_has_the_value_of_the_pattern() {
    let pattern = pattern("DEBIAN_FRONTEND=noninteractive A= apt-get update");
    let fragment = fragment(&[rule(&pattern)]);
    let path = "/etc/sudoers.d/linux-sysadmin-disk-tools.1.env";
    let dropped = |name: &str| format!(", env_keep-=\"{name}\", env_check-=\"{name}\"");
    let (first, second) = (dropped("DEBIAN_FRONTEND"), dropped("A"));
    let expected = format!("Defaults!LSA_DISK_TOOLS_1 env_reset, env_file=\"{path}\"{first}{second}");
    assert_eq!(lines(&fragment)[1], expected);
    let text = "DEBIAN_FRONTEND=noninteractive\nA=\n".to_owned();
    assert_eq!(fragment.environments, [Environment { path: path.into(), text }]);
    for word in ["SETENV", "env_keep+", "env_keep =", "env_check+"] {
        assert!(!fragment.to_string().contains(word));
    }
}

#[test]
fn without_rules_a_fragment_says_so() {
    let fragment = fragment(&[]);
    assert_eq!(lines(&fragment), [""; 0]);
    assert!(fragment.to_string().contains("nothing to allow"));
}

#[test]
fn what_cannot_be_said_is_a_comment_with_the_reason() {
    let (plain, path) = (pattern("id"), pattern("cat -- <path>"));
    let (value, editor) = (pattern("A='#' id"), pattern("sudoedit x"));
    for (rule, reason) in [
        (rule(&path), "expected a path hole with a glob"),
        (rule(&value), "expected a value of letters"),
        (rule(&editor), "expected a program with a plain absolute path"),
        (
            SudoersRule { refused: Some("/srv can be written to by others".into()), ..rule(&plain) },
            "/srv can be written",
        ),
        (SudoersRule { program: Err("id is not installed".into()), ..rule(&plain) }, "id is not installed"),
        (SudoersRule { run_as: "ALL", ..rule(&plain) }, "found \"ALL\""),
        (SudoersRule { run_as: "#0", ..rule(&plain) }, "found \"#0\""),
        (SudoersRule { run_as: "root) NOPASSWD: ALL", ..rule(&plain) }, "expected an account's name"),
    ] {
        let fragment = fragment(&[rule]);
        assert_eq!(lines(&fragment), [""; 0]);
        assert_eq!((fragment.usable, fragment.environments.len()), (0, 0));
        let text = fragment.to_string();
        assert!(
            text.lines().any(|line| line.starts_with("# Not allowed: ") && line.contains(reason)),
            "{text}"
        );
    }
}

#[test]
fn a_program_is_a_plain_absolute_path() {
    let pattern = pattern("id");
    for path in [
        "id",
        "/",
        "/usr/bin/",
        "/usr//bin/id",
        "/usr/../id",
        "/usr/bin/*",
        "/usr/bin/a b",
        "/usr/bin/a,b",
        "/usr/bin/sudoedit",
        "/a\n/b",
        "",
    ] {
        let fragment = fragment(&[SudoersRule { program: Ok(path.into()), ..rule(&pattern) }]);
        assert_eq!(lines(&fragment), [""; 0], "{path:?}");
    }
}

#[test]
fn a_sudo_without_expressions_gets_comments() {
    let pattern = pattern("systemctl [--now] restart -- <unit>");
    for (sudo, reason) in [
        (Some(SudoVersion::Sudo(1, 9, 5)), "found 1.9.5"),
        (Some(SudoVersion::Rs), "found sudo-rs"),
        (None, "found one that doesn't say"),
    ] {
        let fragment = Fragment::new("m", "1", "ops", Exactness::Grants, sudo, &[rule(&pattern)]).unwrap();
        assert_eq!(lines(&fragment), [""; 0]);
        let text = fragment.to_string();
        assert!(
            text.contains(reason) && text.contains("# Cmnd_Alias LSA_M_1 = /usr/bin/systemctl ^"),
            "{text}"
        );
    }
}

#[test]
fn names_have_no_other_meaning_in_sudoers() {
    let new = |module: &str, account: &str| Fragment::new(module, "1", account, Exactness::Grants, SUDO, &[]);
    for module in ["", "A", "a.b", "a/b", "../x", "a_b", "a b", "a\n", "ü"] {
        assert_eq!(new(module, "ops"), Err(FragmentError::Module(module.to_owned())));
    }
    for account in [
        "",
        "ALL",
        "OPS",
        "Defaults",
        "User_Alias",
        "0",
        "#0",
        "%wheel",
        "+net",
        "!ops",
        "a b",
        "a,b",
        "ops\n",
        "a$",
    ] {
        assert_eq!(new("m", account), Err(FragmentError::Account(account.to_owned())));
    }
    assert!(new("a-1", "_svc.ops-2").is_ok());
}

#[test]
fn text_of_a_module_stays_in_its_comment() {
    let pattern = pattern("id");
    for text in [
        "a\nops ALL=(ALL) NOPASSWD: ALL",
        "a\r\nops ALL=(ALL) NOPASSWD: ALL",
        "a\u{85}\u{2028}\u{b}ops ALL=(ALL) NOPASSWD: ALL",
        "ends in \\",
        "ends in \\ \t",
        "\n#include /etc/passwd\n@include /etc/passwd\n#includedir /tmp",
        "#0 ALL=(ALL) ALL",
        "\u{1b}[2J\u{202e}",
        "\0",
        "",
    ] {
        let rules = [SudoersRule { reason: text, refused: Some(text.to_owned()), ..rule(&pattern) }];
        let fragment = Fragment::new("m", text, "ops", Exactness::Grants, SUDO, &rules).unwrap().to_string();
        for line in fragment.lines() {
            assert!(line.is_empty() || line == "#" || line.starts_with("# "), "{text:?}: {line:?}");
            assert!(!line.trim_end().ends_with('\\'), "{text:?}: {line:?}");
            assert!(!line.chars().any(host_text::characters::is_hidden), "{text:?}: {line:?}");
        }
    }
    let long = "x".repeat(100_000);
    assert!(fragment(&[SudoersRule { reason: &long, ..rule(&pattern) }]).to_string().len() < 3000);
}

#[test]
fn any_account_is_all_but_root_where_only_the_server_runs_as_the_account() {
    let cat = pattern("cat -- <path:/**/.ssh/authorized_keys>");
    let rules = [SudoersRule { run_as: "*", ..rule(&cat) }];
    let of_server = Fragment::new("ssh", "1", "ops", Exactness::Server, SUDO, &rules).unwrap();
    let said = lines(&of_server);
    assert_eq!(said[1], "ops ALL=(ALL, !root, !#0) NOPASSWD: LSA_SSH_AS_1", "{said:?}");
    assert!(of_server.to_string().contains("Paths, accounts and texts are wider"), "{of_server}");
    let of_others = fragment(&rules);
    assert_eq!(lines(&of_others), [""; 0]);
    assert!(!of_others.to_string().contains("wider than the grants"), "{of_others}");
    for other in ["ALL", "%wheel", "!root", "#0", "* "] {
        let rules = [SudoersRule { run_as: other, ..rule(&cat) }];
        let fragment = Fragment::new("ssh", "1", "ops", Exactness::Server, SUDO, &rules).unwrap();
        assert_eq!(lines(&fragment), [""; 0], "{other}");
    }
}
