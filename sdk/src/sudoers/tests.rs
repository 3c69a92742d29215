//! These tests compare the reader with cvtsudoers of sudo 1.9.13p3 (Debian 12), and check the rights that rules give.

use serde_json::Value;

use super::parse::{self, Allowed, Entry};
use super::rights::{Identity, Rules, SudoRights};
use super::*;

const SAMPLE: &str = include_str!("data/sample.sudoers");
const CONVERTED: &str = include_str!("data/sample.json");

/// `{"usergroup": "sudo", "negated": true}` as sudoers has it.
fn member(value: &Value) -> String {
    let object = value.as_object().unwrap();
    let (kind, name) =
        object.iter().find(|(kind, _)| *kind != "negated" && !kind.starts_with("sha")).unwrap();
    let name = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
    let sign = match kind.as_str() {
        "usergroup" => "%",
        "usergid" => "%#",
        "userid" => "#",
        _ => "",
    };
    let negated = if value["negated"] == true { "!" } else { "" };
    format!("{negated}{sign}{name}")
}

fn members(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(member).collect()
}

fn runas(value: &Value) -> Option<String> {
    let users = members(&value["runasusers"]).join(", ");
    let groups: Vec<String> =
        members(&value["runasgroups"]).iter().map(|name| name.trim_start_matches('%').to_owned()).collect();
    match (users.as_str(), groups.join(", ").as_str()) {
        ("", "") => None,
        (users, "") => Some(users.to_owned()),
        (users, groups) => Some(format!("{users}:{groups}")),
    }
}

fn unescaped(command: &str) -> String {
    command.replace("\\=", "=").replace("\\,", ",").replace("\\:", ":")
}

#[test]
fn rules_are_read_as_sudo_reads_them() {
    let converted: Value = serde_json::from_str(CONVERTED).unwrap();
    let mut expected = Vec::new();
    for spec in converted["User_Specs"].as_array().unwrap() {
        let mut commands = Vec::new();
        for cmnd in spec["Cmnd_Specs"].as_array().unwrap() {
            let options = cmnd["Options"].as_array().cloned().unwrap_or_default();
            let unasked =
                options.iter().find_map(|option| option["authenticate"].as_bool()).map(|asks| !asks);
            commands.extend(
                members(&cmnd["Commands"]).into_iter().map(|command| (runas(cmnd), unasked, command)),
            );
        }
        expected.push((members(&spec["User_List"]), members(&spec["Host_List"]), commands));
    }
    let own = |allowed: &Allowed| (allowed.runas.clone(), allowed.nopasswd, unescaped(&allowed.command));
    let mut found = Vec::new();
    for line in parse::lines(SAMPLE.as_bytes()) {
        assert_ne!(line.entry, Entry::Wrong, "{line:?}");
        if let Entry::Rules(rules) = line.entry {
            found.extend(
                rules
                    .into_iter()
                    .map(|rule| (rule.users, rule.hosts, rule.commands.iter().map(own).collect::<Vec<_>>())),
            );
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn aliases_are_read_as_sudo_reads_them() {
    let converted: Value = serde_json::from_str(CONVERTED).unwrap();
    let mut seen = 0;
    for line in parse::lines(SAMPLE.as_bytes()) {
        let Entry::Aliases(aliases) = line.entry else { continue };
        for alias in aliases {
            let key = match alias.kind {
                "Cmnd_Alias" => "Command_Aliases".to_owned(),
                kind => format!("{kind}es"),
            };
            assert_eq!(
                members(&converted[key.as_str()][alias.name.as_str()]),
                alias.members,
                "{}",
                alias.name
            );
            seen += 1;
        }
    }
    assert_eq!(seen, 6);
}

#[test]
fn the_bytes_of_all_lines_are_the_files() {
    for text in [
        SAMPLE.as_bytes(),
        b"",
        b"\n\n",
        b"ada ALL=ALL",
        b"a \\\n b\\\n",
        b"\xff\xfe ALL=ALL\r\n# x\\\nb ALL=ALL\n",
    ] {
        let lines = parse::lines(text);
        let joined: Vec<u8> = lines.iter().flat_map(|line| text[line.bytes.clone()].to_vec()).collect();
        assert_eq!(joined, text);
    }
    let numbers: Vec<usize> = parse::lines(b"a \\\n b\n# c \\\nd\n").iter().map(|line| line.number).collect();
    assert_eq!(numbers, [1, 3, 4]);
}

#[test]
fn what_is_no_line_of_sudoers_is_said_to_be_wrong() {
    for text in [
        "ada",
        "ada ALL",
        "ada ALL=",
        "ada=ALL",
        "ada ALL=(root ALL",
        "ada bob carl=ALL",
        "ada ALL=ALL,",
        "x y z",
        "= =",
    ] {
        assert_eq!(parse::lines(text.as_bytes())[0].entry, Entry::Wrong, "{text}");
    }
    // Large and hostile inputs end.
    let long = format!("ada ALL={}\n", "/bin/a, ".repeat(20_000) + "/bin/b");
    assert!(
        matches!(&parse::lines(long.as_bytes())[0].entry, Entry::Rules(rules) if rules[0].commands.len() == 20_001)
    );
    parse::lines(&"\\\n".repeat(100_000).into_bytes());
}

fn rules(text: &str) -> Rules {
    let main = File::new(MAIN.to_owned(), text.as_bytes());
    Sudoers { main, others: Vec::new(), host: "web1.example.org".to_owned(), notes: Vec::new() }.rules()
}

fn ada() -> Identity {
    Identity { name: "ada".into(), uid: 1000, groups: vec![("ada".into(), 1000), ("sudo".into(), 27)] }
}

#[test]
fn of_all_rules_that_fit_the_last_one_decides() {
    let (all, unasked, some) = (true, true, true);
    let table = [
        ("", (false, false, false)),
        ("ada ALL=(ALL) ALL\n", (all, false, some)),
        ("%sudo ALL=(ALL:ALL) NOPASSWD: ALL\n", (all, unasked, some)),
        ("ada ALL=(ALL) NOPASSWD: ALL\n%sudo ALL=(ALL) ALL\n", (all, false, some)),
        ("ada ALL=(ALL) NOPASSWD: ALL\nada ALL=(ALL) /bin/id\n", (all, false, some)),
        ("ada ALL=(ALL) NOPASSWD: ALL\nada ALL=(ALL) NOPASSWD: /bin/id\n", (all, unasked, some)),
        ("ada ALL=(ALL) ALL\nada ALL=(ALL) !ALL\n", (false, false, false)),
        ("ada ALL=(ALL) ALL, !/bin/su\n", (all, false, some)),
        ("ada ALL=/bin/id\n", (false, false, some)),
        ("ada ALL=(www-data) ALL\n", (false, false, false)),
        ("ada ALL=(:adm) ALL\n", (false, false, false)),
        ("ada web1=ALL\n", (all, false, some)),
        ("ada web2=ALL\n", (false, false, false)),
        ("ada ALL, !web1=ALL\n", (false, false, false)),
        ("ALL, !ada ALL=ALL\n", (false, false, false)),
        ("#1000 ALL=ALL\n", (all, false, some)),
        ("%#27 ALL=ALL\n", (all, false, some)),
        ("#27 ALL=ALL\n", (false, false, false)),
        ("bob ALL=ALL\n", (false, false, false)),
        ("+people ALL=ALL\n", (false, false, false)),
        ("User_Alias X = ada\nCmnd_Alias Y = ALL\nX ALL=Y\n", (all, false, some)),
        ("User_Alias X = Y\nUser_Alias Y = X\nX ALL=ALL\n", (false, false, false)),
        ("Defaults !authenticate\nada ALL=ALL\n", (all, unasked, some)),
        ("Defaults:bob !authenticate\nada ALL=ALL\n", (all, false, some)),
    ];
    for (text, (all, unasked, some)) in table {
        assert_eq!(rules(text).standing(&ada()), SudoRights { all, unasked, some }, "{text}");
    }
}

#[test]
fn files_of_the_directory_come_where_it_is_included() {
    let sudoers = |main: &str| Sudoers {
        main: File::new(MAIN.to_owned(), main.as_bytes()),
        others: vec![File::new("/etc/sudoers.d/a".to_owned(), b"ada ALL=(ALL) ALL\n")],
        host: "x".to_owned(),
        notes: Vec::new(),
    };
    for (main, unasked) in [
        ("@includedir /etc/sudoers.d\nada ALL=(ALL) NOPASSWD: ALL\n", true),
        ("ada ALL=(ALL) NOPASSWD: ALL\n#includedir /etc/sudoers.d/\n", false),
        ("ada ALL=(ALL) NOPASSWD: ALL\n", true),
    ] {
        assert_eq!(sudoers(main).rules().standing(&ada()).unasked, unasked, "{main}");
    }
    let after =
        sudoers("@includedir /etc/sudoers.d\n").with("/etc/sudoers.d/b", b"ada ALL=(ALL) NOPASSWD: ALL\n");
    assert!(after.rules().standing(&ada()).unasked);
}

#[test]
fn names_with_a_dot_or_a_tilde_at_the_end_are_passed_over() {
    for (name, expected) in [
        ("ada", true),
        ("90-cloud", true),
        ("ada.bak", false),
        (".hidden", false),
        ("ada~", false),
        ("a~b", true),
    ] {
        assert_eq!(is_read(name), expected, "{name}");
    }
}

/// The aliases have the form of `linux-sysadmin modules sudoers`, which sudo 1.9.13p3 reads.
#[test]
fn a_regular_expression_is_one_argument_whatever_signs_are_in_it() {
    let file = r#"
Cmnd_Alias LSA_1 = /usr/bin/stat ^--format=%f:%u --( /| /etc/sudoers\.d/[+A-Za-z0-9%,:=@_~-]{1,60})+$
Cmnd_Alias LSA_2 = /usr/bin/whoami "", /usr/bin/sleep ^(0|[1-9][0-9]{0,18})$, /usr/bin/id
"#;
    let aliases: Vec<_> = parse::lines(file.as_bytes())
        .into_iter()
        .filter_map(|line| match line.entry {
            Entry::Aliases(aliases) => Some(aliases),
            Entry::Nothing => None,
            other => panic!("{other:?}"),
        })
        .flatten()
        .collect();
    let expression = r"/usr/bin/stat ^--format=%f:%u --( /| /etc/sudoers\.d/[+A-Za-z0-9%,:=@_~-]{1,60})+$";
    assert_eq!(aliases[0].members, [expression]);
    assert_eq!(
        aliases[1].members,
        ["/usr/bin/whoami \"\"", "/usr/bin/sleep ^(0|[1-9][0-9]{0,18})$", "/usr/bin/id"]
    );
}

#[test]
fn a_comment_ends_with_its_line_and_a_rule_with_the_last_that_a_backslash_joins() {
    // cvtsudoers 1.9.13p3 reads six rules.
    let text = "ada ALL=(ALL) /bin/id # x \\\nbob ALL=(ALL) NOPASSWD: ALL\n# y \\\ncat ALL=(ALL) ALL\n\
                dan ALL=(ALL) /bin/a b\\ \t\nc, \\\n /bin/b\neve ALL=(ALL) /bin/a b\\\\\nfay ALL=ALL\n";
    let rules: Vec<(usize, Vec<String>)> = parse::lines(text.as_bytes())
        .into_iter()
        .filter_map(|line| match line.entry {
            Entry::Rules(rules) => {
                let commands = rules.into_iter().flat_map(|rule| rule.commands);
                Some((line.number, commands.map(|allowed| allowed.command).collect()))
            }
            _ => None,
        })
        .collect();
    let expected: [(usize, &[&str]); 6] = [
        (1, &["/bin/id"]),
        (2, &["ALL"]),
        (4, &["ALL"]),
        (5, &["/bin/a b c", "/bin/b"]),
        (8, &["/bin/a b\\\\"]),
        (9, &["ALL"]),
    ];
    let expected: Vec<(usize, Vec<String>)> = expected
        .iter()
        .map(|(line, commands)| (*line, commands.iter().map(|command| command.to_string()).collect()))
        .collect();
    assert_eq!(rules, expected);
}
