//! The tools as the host calls them: their answers, plans and refusals. The outputs were recorded on a Debian 12 host
//! (shadow 4.13, util-linux 2.38.1, sudo 1.9.13p3).
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm;
use linux_sysadmin_sdk::testkit::FakeTarget;
use linux_sysadmin_sdk::{Privilege, prelude::*};
use module_users::module;
use serde_json::{Value, json};

/// The host's files and the outputs of programs. The accounts ada, bob (in sudo), eve (locked) and carl (expires in 2027)
/// were added, and admin has sudo without a password.
const HOST: &str = include_str!("data/debian.txt");
/// 2026-11-22
const NOW: f64 = 1_795_348_800.0;

const COLUMNS: &str = "--output=USER,PWD-EMPTY,PWD-WARN,PWD-CHANGE,PWD-MIN,PWD-MAX,PWD-EXPIR,LAST-LOGIN,LAST-TTY,LAST-HOSTNAME,FAILED-LOGIN";
const STAT: [&str; 3] = ["stat", "--format=%f:%s:%U:%G:%n", "--"];

fn part(name: &str) -> &'static str {
    let (_, rest) = HOST.split_once(&format!("==> {name} <==\n")).unwrap();
    rest.split("\n==> ").next().unwrap().trim_end_matches('\n')
}

fn line_of(part: &str, name: &str) -> String {
    let is_it =
        |line: &&str| line.starts_with(&format!("{name} ")) || line.starts_with(&format!("USER=\"{name}\""));
    part.lines().find(is_it).map(|line| format!("{line}\n")).unwrap_or_default()
}

/// The host, reached as this account.
fn host_as(caller: &str) -> FakeTarget {
    let lslogins = ["lslogins", "--export", "--notruncate", "--time-format=iso", COLUMNS];
    let mut host = FakeTarget::new()
        .recording(HOST)
        .at(NOW)
        .account(caller)
        .answer(&["getent", "passwd"], 0, part("/etc/passwd"), "")
        .answer(&["getent", "group"], 0, part("/etc/group"), "")
        .answer(&["getent", "passwd", "--", "nosuch"], 2, "", "")
        .answer(&["visudo", "--check"], 0, "/etc/sudoers: parsed OK\n", "")
        .answer(
            &["ps", "-e", "--no-headers", "-o", "ruid", "-o", "pid", "-o", "comm"],
            0,
            "    0  1 systemd\n 1000  4242 bash\n",
            "",
        )
        .answer(&["passwd", "--status", "--all"], 0, part("passwd"), "")
        .answer(&lslogins, 0, part("lslogins"), "");
    for name in ["ada", "bob", "eve", "carl", "admin", "root", "daemon"] {
        let only = format!("--logins={name}");
        let of_one = [&lslogins[..], &[&only]].concat();
        host = host.answer(&of_one, 0, line_of(part("lslogins"), name), "").answer(
            &["passwd", "--status", "--", name],
            0,
            line_of(part("passwd"), name),
            "",
        );
    }
    host
}

/// The host, reached as root.
fn host() -> FakeTarget {
    host_as("root")
}

/// The target with another output of a command.
fn instead(target: FakeTarget, command: &str, said: &str) -> FakeTarget {
    target.transcript(&format!("$ {command}\n[exit 0]\n{}\n", said.trim_end()))
}

/// The target with the metadata of paths: modes in hexadecimal as `stat` prints them, and owners. Other paths don't
/// exist.
fn with(target: FakeTarget, asked: &[&str], there: &[(&str, &str, &str)]) -> FakeTarget {
    let line = |(path, mode, owner): &(&str, &str, &str)| format!("{mode}:10:{owner}:{owner}:{path}\n");
    let said: String = there.iter().map(line).collect();
    let missing = asked.iter().filter(|path| !there.iter().any(|(known, ..)| known == *path));
    let missing: String =
        missing.map(|path| format!("stat: cannot statx '{path}': No such file or directory\n")).collect();
    target.answer(&[&STAT[..], asked].concat(), i32::from(!missing.is_empty()), said, &missing)
}

/// The target with the metadata of the way to a path.
fn way(target: FakeTarget, path: &str, mode: &str, owner: &str) -> FakeTarget {
    let mut prefixes: Vec<&str> = vec!["/"];
    prefixes.extend(path.match_indices('/').skip(1).map(|(at, _)| &path[..at]));
    prefixes.push(path);
    let there: Vec<_> = prefixes
        .iter()
        .map(|step| if *step == path { (path, mode, owner) } else { (*step, "41ed", "root") })
        .collect();
    with(target, &prefixes, &there)
}

fn refused(target: FakeTarget, tool: &str, arguments: Value) -> Problem {
    let plans = target.plans();
    let shown = format!("{tool} {arguments}");
    let Err(problem) = target.call(&module(), tool, arguments) else { panic!("{shown} was let through") };
    assert!(plans.borrow().is_empty(), "{shown}: a refusal comes before the plan");
    assert_ne!(problem.code, "NOT_RECORDED", "{shown}: {}", problem.message);
    problem
}

/// The answer of a tool, and its plan.
fn done(target: FakeTarget, tool: &str, arguments: Value) -> (Value, Vec<String>, Option<Change>) {
    let plans = target.plans();
    let shown = format!("{tool} {arguments}");
    let (data, reply) =
        target.call(&module(), tool, arguments).unwrap_or_else(|problem| panic!("{shown}: {problem:?}"));
    let plan = plans.borrow().first().cloned();
    (data, reply.notes, plan)
}

fn dry() -> std::result::Result<confirm::Applied, confirm::Failure> {
    Ok(confirm::Applied { outputs: Vec::new(), dry_run: true })
}

fn run(words: &[&str]) -> Command {
    Command::new(words[0]).args(words[1..].iter().copied()).as_root()
}

fn plan(summary: &str) -> Change {
    Change::new(summary).lock(Lock::Named("accounts".to_owned()))
}

fn step(words: &[&str]) -> Step {
    Step::run(run(words)).uninterruptible()
}

#[test]
fn people_come_first_and_what_is_usual_is_left_out() {
    let (data, notes, _) = done(host(), "user_list", json!({}));
    let items = data.as_array().unwrap();
    let first_system = items.iter().position(|item| item["system"] == true).unwrap();
    assert!(first_system >= 5 && items[first_system..].iter().all(|item| item["system"] == true), "{data}");
    let of = |name: &str| items.iter().find(|item| item["user"] == name).unwrap();
    assert_eq!(of("admin")["sudo"], "all");
    assert_eq!((&of("bob")["sudo"], &of("bob")["groups"]), (&json!("all"), &json!(["adm", "sudo"])));
    assert_eq!((&of("eve")["expired"], &of("eve")["password"]), (&json!(true), &json!("locked")));
    assert_eq!((&of("carl")["expires"], &of("carl")["password"]), (&json!("2027-01-31"), &json!("none")));
    assert_eq!((of("ada").get("sudo"), of("ada").get("home"), of("ada").get("groups")), (None, None, None));
    assert_eq!(notes, Vec::<String>::new());
    assert!(!data.to_string().contains("$y$"), "no hash is shown");
}

#[test]
fn what_cannot_be_told_without_root_is_said_once() {
    let lslogins = ["lslogins", "--export", "--notruncate", "--time-format=iso", COLUMNS];
    let target = FakeTarget::new()
        .recording(HOST)
        .answer(&["getent", "passwd"], 0, part("/etc/passwd"), "")
        .answer(&["getent", "group"], 0, part("/etc/group"), "")
        .answer(&lslogins, 0, part("lslogins as admin"), "")
        .answer(&["passwd", "--status", "--all"], 1, "", "passwd: Permission denied.\n");
    let (data, notes, _) = done(target, "user_list", json!({}));
    assert_eq!(notes, ["passwords and expiry aren't known: that takes root's rights"]);
    assert!(
        data.as_array()
            .unwrap()
            .iter()
            .all(|item| item.get("password").is_none() && item.get("expired").is_none())
    );
}

#[test]
fn bad_names_shells_homes_and_groups_are_refused() {
    let forty = "a".repeat(40);
    for name in ["-x", "a b", &forty, "ünï", "123", "", "Ada", "a:b", "a\nb", "../x", "root\n"] {
        assert_eq!(refused(host(), "user_create", json!({"user": name})).code, "INVALID_USER", "{name}");
        assert_eq!(refused(host(), "group_create", json!({"name": name})).code, "INVALID_GROUP", "{name}");
    }
    for tool in ["user_info", "user_modify", "user_delete", "user_lock", "user_unlock"] {
        for name in ["-x", "a b", &forty, "ünï", "123", "#0", ""] {
            assert_eq!(refused(host(), tool, json!({"user": name})).code, "INVALID_USER", "{tool} {name}");
        }
        let arguments = json!({"user": "nosuch", "shell": "/bin/bash"});
        let arguments = if tool == "user_modify" { arguments } else { json!({"user": "nosuch"}) };
        assert_eq!(refused(host(), tool, arguments).code, "USER_NOT_FOUND", "{tool}");
    }
    let new = |field: &str, value: Value| {
        let mut arguments = json!({"user": "newone"});
        arguments[field] = value;
        arguments
    };
    for (field, value, code) in [
        ("groups", json!(["nosuch"]), "GROUP_NOT_FOUND"),
        ("groups", json!(["a b"]), "INVALID_GROUP"),
        ("primary_group", json!("nosuch"), "GROUP_NOT_FOUND"),
        ("shell", json!("/usr/bin/python3"), "INVALID_SHELL"),
        ("shell", json!("bash"), "INVALID_SHELL"),
        ("home", json!("/etc/x"), "INVALID_HOME"),
        ("home", json!("/home"), "INVALID_HOME"),
        ("home", json!("srv"), "INVALID_PATH"),
        ("home", json!("/srv/../etc"), "INVALID_PATH"),
        ("comment", json!("a:b"), "INVALID_COMMENT"),
        ("comment", json!("a\nroot::0:0"), "INVALID_COMMENT"),
        ("expires", json!("tomorrow"), "INVALID_DATE"),
        ("uid", json!(0), "INVALID_UID"),
        ("uid", json!(1000), "UID_EXISTS"),
        ("password", json!("x"), "INVALID_ARGUMENTS"),
    ] {
        if field == "password" {
            // The host refuses arguments that aren't in the schema, and no schema has such a field.
            let schema = module()
                .description()
                .tools
                .into_iter()
                .find(|tool| tool.name == "user_create")
                .unwrap()
                .input_schema;
            assert!(!schema.contains("password"), "{schema}");
            continue;
        }
        assert_eq!(refused(host(), "user_create", new(field, value)).code, code, "{field}");
    }
    let there = with(host(), &["/srv"], &[("/srv", "41ed", "root")]);
    assert_eq!(
        refused(there, "user_create", json!({"user": "newone", "home": "/srv/x", "uid": 1000})).code,
        "UID_EXISTS"
    );
    let there = with(host(), &["/data/x"], &[("/data/x", "41ed", "root")]);
    assert_eq!(refused(there, "user_create", new("home", json!("/data/x"))).code, "HOME_EXISTS");
    assert_eq!(refused(host(), "user_create", json!({"user": "sudo"})).code, "GROUP_EXISTS");
}

#[test]
fn an_account_is_made_by_one_command_and_no_password_opens_it() {
    let arguments =
        json!({"user": "newone", "comment": "New One", "groups": ["adm", "audio"], "expires": "2027-05-01"});
    let target = with(host(), &["/home/newone"], &[]).outcome(dry());
    let (data, notes, made) = done(target, "user_create", arguments);
    let line = [
        "useradd",
        "--create-home",
        "--shell=/bin/bash",
        "--comment=New One",
        "--expiredate=2027-05-01",
        "--groups=adm,audio",
        "--",
        "newone",
    ];
    assert_eq!(made.unwrap(), plan("Create the account newone").step(step(&line)));
    assert_eq!((&data["password"], &data["would"]), (&json!("locked"), &json!("create")));
    assert!(notes[0].contains("ssh_authorized_keys action=add user=newone"), "{notes:?}");

    let target = with(host(), &["/home/daemond"], &[]).outcome(dry());
    let (data, notes, made) = done(target, "user_create", json!({"user": "daemond", "system": true}));
    let line = ["useradd", "--system", "--no-create-home", "--shell=/usr/sbin/nologin", "--", "daemond"];
    assert_eq!(made.unwrap(), plan("Create the account daemond").step(step(&line)));
    assert_eq!((data["shell"].as_str(), notes.len()), (Some("/usr/sbin/nologin"), 0));
}

#[test]
fn more_groups_than_one_command_takes_are_undone_with_the_account() {
    let groups = json!(["adm", "audio", "video", "cdrom", "sudo"]);
    let target = with(host(), &["/home/newone"], &[]).outcome(dry());
    let (_, _, made) = done(target, "user_create", json!({"user": "newone", "groups": groups}));
    let line =
        ["useradd", "--create-home", "--shell=/bin/bash", "--groups=adm,audio,video,cdrom", "--", "newone"];
    let join = ["gpasswd", "--add=newone", "--", "sudo"];
    let expected = plan("Create the account newone")
        .step(step(&line).undo(run(&["userdel", "--remove", "--", "newone"])))
        .step(step(&join).undo(run(&["gpasswd", "--delete=newone", "--", "sudo"])))
        .risk(Risk::High)
        .warning("after that, sudo lets newone run ALL as root (/etc/sudoers:50)")
        .warning("the group sudo is usually let run everything by sudo");
    assert_eq!(made.unwrap(), expected);
    // Undo keeps a home that existed before the account.
    let target = with(host(), &["/home/newone"], &[("/home/newone", "41ed", "ada")]).outcome(dry());
    let (_, _, made) = done(target, "user_create", json!({"user": "newone", "groups": groups}));
    let made = format!("{:?}", made.unwrap());
    assert!(made.contains(r#"program: "userdel", args: ["--", "newone"]"#), "{made}");
    assert!(!made.contains("--remove"), "{made}");
}

#[test]
fn what_gives_an_account_root_s_rights_is_said_and_asked_about() {
    let rules = "%ops ALL=(ALL) NOPASSWD: /usr/bin/id, /usr/bin/uptime\nformer ALL=(ALL) ALL\n%adm ALL=(carl) /usr/bin/id\n";
    let groups = format!("{}\nops:x:2001:\n", part("/etc/group"));
    let target = || {
        let target = host().file("/etc/sudoers.d/lsa", rules).file("/etc/group", groups.as_str());
        let target = instead(target, "getent group", &groups);
        with(with(target, &["/home/former"], &[]), &["/home/newone"], &[]).outcome(dry())
    };
    let ops = "run /usr/bin/id and 1 others as root (/etc/sudoers.d/lsa:1)";
    for (tool, arguments, why) in [
        ("user_create", json!({"user": "newone", "primary_group": "ops"}), format!("sudo lets newone {ops}")),
        ("user_create", json!({"user": "newone", "groups": ["ops"]}), format!("sudo lets newone {ops}")),
        (
            "user_create",
            json!({"user": "former"}),
            "after that, sudo lets former run ALL as root (/etc/sudoers.d/lsa:2)".to_owned(),
        ),
        (
            "user_create",
            json!({"user": "newone", "primary_group": "disk"}),
            "the group disk amounts".to_owned(),
        ),
        ("user_modify", json!({"user": "ada", "add_groups": ["ops"]}), format!("sudo lets ada {ops}")),
        (
            "user_modify",
            json!({"user": "ada", "rename": "former"}),
            "after that, sudo lets former run ALL as root".to_owned(),
        ),
    ] {
        let (_, _, made) = done(target(), tool, arguments.clone());
        let made = format!("{:?}", made.unwrap());
        assert!(made.contains("risk: Some(Risk::High)") && made.contains(&why), "{arguments}: {made}");
    }
    // A rule that isn't for root gives no rights of root.
    let (_, _, made) = done(target(), "user_modify", json!({"user": "ada", "add_groups": ["adm"]}));
    let made = format!("{:?}", made.unwrap());
    assert!(made.contains("risk: None"), "{made}");
}

#[test]
fn what_is_there_as_asked_for_is_a_success_and_otherwise_an_error() {
    for (tool, arguments) in [
        ("user_create", json!({"user": "ada", "shell": "/bin/bash", "comment": "Ada Lovelace"})),
        ("user_create", json!({"user": "bob", "groups": ["sudo"]})),
        ("user_create", json!({"user": "carl", "expires": "2027-01-31"})),
        ("user_modify", json!({"user": "ada", "shell": "/bin/bash"})),
        ("user_modify", json!({"user": "bob", "add_groups": ["sudo", "bob"], "remove_groups": ["audio"]})),
        ("user_modify", json!({"user": "carl", "expires": "2027-01-31"})),
        ("user_lock", json!({"user": "eve"})),
        ("user_unlock", json!({"user": "bob"})),
        ("user_unlock", json!({"user": "ada"})),
        ("group_create", json!({"name": "sudo"})),
        ("group_create", json!({"name": "sudo", "gid": 27})),
        (
            "sudoers_modify",
            json!({"action": "add", "rule": {"user": "admin", "runas": "ALL:ALL", "commands": ["ALL"], "nopasswd": true}}),
        ),
    ] {
        let (_, notes, plan) = done(host(), tool, arguments.clone());
        assert!(plan.is_none() && !notes.is_empty(), "{tool} {arguments}");
    }
    for (tool, arguments, code) in [
        ("user_create", json!({"user": "ada", "shell": "/bin/sh"}), "USER_EXISTS"),
        ("user_create", json!({"user": "ada", "groups": ["sudo"]}), "USER_EXISTS"),
        ("user_create", json!({"user": "carl", "expires": "2028-01-31"}), "USER_EXISTS"),
        ("user_create", json!({"user": "ada", "system": true}), "USER_EXISTS"),
        ("group_create", json!({"name": "sudo", "gid": 28}), "GROUP_EXISTS"),
        ("group_create", json!({"name": "newone", "gid": 27}), "GID_EXISTS"),
        ("user_modify", json!({"user": "ada", "rename": "bob"}), "USER_EXISTS"),
        ("user_modify", json!({"user": "ada"}), "NOTHING_TO_CHANGE"),
        (
            "user_modify",
            json!({"user": "ada", "add_groups": ["adm"], "remove_groups": ["adm"]}),
            "INVALID_ARGUMENTS",
        ),
        ("user_modify", json!({"user": "ada", "remove_groups": ["ada"]}), "PRIMARY_GROUP"),
    ] {
        assert_eq!(refused(host(), tool, arguments.clone()).code, code, "{tool} {arguments}");
    }
}

#[test]
fn nobody_locks_deletes_or_disarms_root_himself_or_the_last_sudoer() {
    for tool in ["user_delete", "user_lock"] {
        let problem = refused(host(), tool, json!({"user": "root"}));
        assert_eq!(problem.code, "PROTECTED_ACCOUNT", "{tool}");
        assert!(problem.remediation[0].contains("PermitRootLogin no"), "{tool}: {problem:?}");
        assert_eq!(
            refused(host_as("admin"), tool, json!({"user": "admin"})).code,
            "ACCOUNT_IN_USE",
            "{tool}"
        );
        // Without bob, admin is the last one.
        let without_bob = HOST.replace("sudo:x:27:bob", "sudo:x:27:");
        let group = part("/etc/group").replace("sudo:x:27:bob", "sudo:x:27:");
        let target = FakeTarget::new()
            .recording(&without_bob)
            .answer(&["getent", "group"], 0, group, "")
            .account("root")
            .answer(&["getent", "passwd"], 0, part("/etc/passwd"), "")
            .answer(
                &["lslogins", "--export", "--notruncate", "--time-format=iso", COLUMNS, "--logins=admin"],
                0,
                line_of(part("lslogins"), "admin"),
                "",
            )
            .answer(&["passwd", "--status", "--", "admin"], 0, line_of(part("passwd"), "admin"), "");
        assert_eq!(refused(target, tool, json!({"user": "admin"})).code, "LAST_SUDOER", "{tool}");
    }
    for (caller, tool, arguments, code) in [
        ("root", "user_modify", json!({"user": "root", "shell": "/bin/sh"}), "PROTECTED_ACCOUNT"),
        ("root", "user_modify", json!({"user": "root", "rename": "toor"}), "PROTECTED_ACCOUNT"),
        ("bob", "user_modify", json!({"user": "bob", "remove_groups": ["sudo"]}), "CALLER_RIGHTS"),
        ("bob", "user_modify", json!({"user": "bob", "expires": "2020-01-01"}), "CALLER_RIGHTS"),
        ("bob", "user_modify", json!({"user": "bob", "shell": "/usr/sbin/nologin"}), "ACCOUNT_IN_USE"),
        ("bob", "group_delete", json!({"name": "sudo", "system": true}), "CALLER_RIGHTS"),
        ("root", "group_delete", json!({"name": "root"}), "PROTECTED_GROUP"),
        ("root", "group_delete", json!({"name": "audio"}), "PROTECTED_GROUP"),
        ("root", "group_delete", json!({"name": "ada"}), "PRIMARY_GROUP"),
        ("root", "group_delete", json!({"name": "nosuch"}), "GROUP_NOT_FOUND"),
        // The last rule that matches decides. A rule that asks for a password would stop the server.
        (
            "admin",
            "sudoers_modify",
            json!({"action": "add", "target_file": "/etc/sudoers.d/zz", "rule": {"user": "admin", "commands": ["ALL"]}}),
            "CALLER_RIGHTS",
        ),
        (
            "admin",
            "sudoers_modify",
            json!({"action": "remove", "target_file": "/etc/sudoers.d/admin", "rule": {"user": "admin"}}),
            "CALLER_RIGHTS",
        ),
    ] {
        assert_eq!(refused(host_as(caller), tool, arguments.clone()).code, code, "{tool} {arguments}");
    }
    // An account with processes can be locked instead.
    let problem = refused(host(), "user_delete", json!({"user": "admin"}));
    assert!(problem.code == "USER_BUSY" && problem.message.contains("bash (4242)"), "{problem:?}");
    assert!(problem.remediation.iter().any(|step| step.contains("user_lock user=admin")), "{problem:?}");
}

#[test]
fn an_account_of_a_directory_is_changed_there() {
    let target = |target: FakeTarget| {
        let dora = "dora:*:70001:70001:Dora:/home/dora:/bin/bash\n";
        target
            .answer(&["getent", "passwd", "--", "dora"], 0, dora, "")
            .file("/etc/nsswitch.conf", "passwd: files sss\n")
    };
    for (tool, arguments) in [
        ("user_delete", json!({"user": "dora"})),
        ("user_lock", json!({"user": "dora"})),
        ("user_modify", json!({"user": "dora", "shell": "/bin/sh"})),
    ] {
        let problem = refused(target(host()), tool, arguments);
        assert!(problem.code == "NOT_LOCAL" && problem.message.contains("sss"), "{tool}: {problem:?}");
    }
    // An account of the directory may join a group of this machine.
    let as_root = |target: FakeTarget| {
        let target = target.answer(&["id", "--user"], 0, "0\n", "");
        target.answer(&["id", "--groups", "--name"], 0, "root\n", "")
    };
    let (data, _, plan) = done(
        as_root(target(host())).outcome(dry()),
        "user_modify",
        json!({"user": "dora", "add_groups": ["audio"]}),
    );
    assert!(plan.is_some() && data["changed"] == json!(["joins audio"]), "{data}");
    // A group that only the directory knows isn't a group of this machine, but it counts all the same.
    let ops = |target: FakeTarget, exit_code: i32, said: &str| {
        target.answer(&["getent", "group", "--", "ops"], exit_code, said, "")
    };
    let joins = json!({"user": "bob", "add_groups": ["ops"]});
    let there = ops(target(host()), 0, "ops:*:70002:\n");
    assert_eq!(refused(there, "user_modify", joins.clone()).code, "NOT_LOCAL");
    assert_eq!(refused(ops(target(host()), 2, ""), "user_modify", joins).code, "GROUP_NOT_FOUND");
}

#[test]
fn an_account_in_use_that_a_directory_does_not_list_keeps_its_sudo() {
    let target = || {
        host_as("dora@corp")
            .file("/etc/nsswitch.conf", "passwd: files sss\n")
            .file("/etc/sudoers.d/lsa", "%ops ALL=(ALL) NOPASSWD: ALL\n")
            .answer(&["id", "--user"], 0, "70001\n", "")
            .answer(&["id", "--groups", "--name"], 0, "dora@corp ops\n", "")
    };
    let arguments =
        json!({"action": "remove", "target_file": "/etc/sudoers.d/lsa", "rule": {"user": "%ops"}});
    assert_eq!(refused(target(), "sudoers_modify", arguments).code, "CALLER_RIGHTS");
    let (_, _, made) =
        done(target().outcome(dry()), "user_modify", json!({"user": "bob", "add_groups": ["audio"]}));
    assert!(made.is_some());
    // Nothing is changed where the number of the account isn't known.
    let unknown = instead(target(), "id --user", "no number");
    assert_eq!(refused(unknown, "user_delete", json!({"user": "bob"})).code, "UNEXPECTED_OUTPUT");
}

#[test]
fn a_sudoer_without_a_password_that_sudo_asks_for_is_not_the_one_that_is_left() {
    // Without admin's rule, bob and ada are left. ada has no password that sudo would accept.
    let groups = part("/etc/group").replace("sudo:x:27:bob", "sudo:x:27:bob,ada");
    let target = || {
        let target = host().file("/etc/sudoers.d/admin", "").file("/etc/group", groups.as_str());
        instead(target, "getent group", &groups)
    };
    let problem = refused(target(), "user_modify", json!({"user": "bob", "remove_groups": ["sudo"]}));
    assert_eq!(problem.code, "LAST_SUDOER", "{problem:?}");
}

#[test]
fn fields_and_groups_are_changed_in_one_plan_with_its_way_back() {
    let arguments = json!({"user": "ada", "shell": "/bin/sh", "comment": "", "add_groups": ["docker-x"], "remove_groups": []});
    assert_eq!(refused(host(), "user_modify", arguments).code, "GROUP_NOT_FOUND");
    let arguments = json!({"user": "bob", "shell": "/bin/bash", "comment": "Bob", "expires": "never", "add_groups": ["audio"], "remove_groups": ["adm"]});
    let (data, _, made) = done(host().outcome(dry()), "user_modify", arguments);
    let summary =
        "Modify the account bob: comment:  → Bob, shell: /bin/sh → /bin/bash, joins audio, leaves adm";
    let expected = plan(summary)
        .step(step(&["gpasswd", "--add=bob", "--", "audio"]).undo(run(&[
            "gpasswd",
            "--delete=bob",
            "--",
            "audio",
        ])))
        .step(step(&["gpasswd", "--delete=bob", "--", "adm"]).undo(run(&[
            "gpasswd",
            "--add=bob",
            "--",
            "adm",
        ])))
        .step(step(&["usermod", "--comment=Bob", "--shell=/bin/bash", "--", "bob"]).undo(run(&[
            "usermod",
            "--comment=",
            "--shell=/bin/sh",
            "--",
            "bob",
        ])));
    assert_eq!(made.unwrap(), expected);
    assert_eq!(data["would"], "modify");
}

#[test]
fn a_home_is_moved_and_an_account_renamed_with_the_way_back() {
    let target = with(with(host(), &["/srv/ada"], &[]), &["/home/ada"], &[("/home/ada", "41ed", "ada")])
        .answer(&["find", "/home/ada", "-printf", "%y %m %D %s\\n"], 0, "d 755 1 4096\nf 644 1 3000\n", "")
        .outcome(dry());
    let (_, _, made) =
        done(target, "user_modify", json!({"user": "ada", "home": "/srv/ada", "rename": "adele"}));
    let made = format!("{:?}", made.unwrap());
    for line in [
        r#"["--home=/srv/ada", "--move-home", "--", "ada"]"#,
        r#"["--home=/home/ada", "--move-home", "--", "ada"]"#,
        r#"["--login=adele", "--", "ada"]"#,
        r#"["--login=ada", "--", "adele"]"#,
        "/home/ada (1 files, 1 directories, 2.9 KiB) is moved",
        // Where the move fails, usermod has already changed the account.
        r#"after-undo: [Command { program: "usermod", args: ["--home=/home/ada", "--", "ada"]"#,
    ] {
        assert!(made.contains(line), "{line}: {made}");
    }
    // A home that isn't the account's own is never moved.
    let home = part("/etc/passwd").lines().find(|line| line.starts_with("daemon:")).unwrap();
    let home = home.split(':').nth(5).unwrap();
    let target = || with(with(host(), &["/srv/d"], &[]), &[home], &[(home, "41ed", "root")]);
    let arguments = json!({"user": "daemon", "home": "/srv/d"});
    let problem = refused(target(), "user_modify", arguments.clone());
    assert!(
        problem.code == "HOME_NOT_OWN" && problem.remediation[0].contains("move_home=false"),
        "{problem:?}"
    );
    let arguments = json!({"user": "daemon", "home": "/srv/d", "move_home": false});
    let (_, _, made) = done(target().outcome(dry()), "user_modify", arguments);
    assert!(!format!("{:?}", made.unwrap()).contains("--move-home"));
}

#[test]
fn a_lock_keeps_keys_out_too_and_its_way_back_is_what_was_there() {
    // The account has a password and no expiry, so that no record is needed.
    let (data, _, made) = done(host().outcome(dry()), "user_lock", json!({"user": "bob"}));
    let lock = ["usermod", "--lock", "--expiredate=1", "--", "bob"];
    let unlock = ["usermod", "--unlock", "--expiredate=", "--", "bob"];
    assert_eq!(made.unwrap(), plan("Lock the account bob").step(step(&lock).undo(run(&unlock))));
    assert_eq!((&data["locked"], &data["would"]), (&json!(false), &json!("lock")));
    // There is no password to lock.
    let (_, _, made) = done(host(), "user_lock", json!({"user": "ada"}));
    let lock = ["usermod", "--expiredate=1", "--", "ada"];
    assert_eq!(
        made.unwrap(),
        plan("Lock the account ada").step(step(&lock).undo(run(&["usermod", "--expiredate=", "--", "ada"])))
    );
    // The record keeps the account's own expiry.
    let (_, _, made) = done(host(), "user_lock", json!({"user": "carl"}));
    let made = made.unwrap();
    let uid = part("/etc/passwd")
        .lines()
        .find(|line| line.starts_with("carl:"))
        .unwrap()
        .split(':')
        .nth(2)
        .unwrap();
    let record = "# carl before it was locked\nexpires=2027-01-31\npassword=set\n";
    let expected = plan("Lock the account carl")
        .step(Step::make_directory("/var/lib/linux-sysadmin-locked", 0o700))
        .step(Step::write(format!("/var/lib/linux-sysadmin-locked/{uid}"), record).mode(0o600))
        .step(step(&["usermod", "--lock", "--expiredate=1", "--", "carl"]).undo(run(&[
            "usermod",
            "--unlock",
            "--expiredate=2027-01-31",
            "--",
            "carl",
        ])));
    assert_eq!(made, expected);
}

#[test]
fn an_unlock_gives_back_the_former_expiry_and_no_password_that_somebody_else_locked() {
    let uid =
        part("/etc/passwd").lines().find(|line| line.starts_with("eve:")).unwrap().split(':').nth(2).unwrap();
    let path = format!("/var/lib/linux-sysadmin-locked/{uid}");
    for (record, options) in [
        (None, &["--unlock", "--expiredate="][..]),
        (Some("expires=2027-01-31\npassword=set\n"), &["--unlock", "--expiredate=2027-01-31"]),
        (Some("expires=never\npassword=locked\n"), &["--expiredate="]),
        (Some("garbage"), &["--unlock", "--expiredate="]),
    ] {
        let target = record.iter().fold(host(), |target, record| target.file(&path, *record));
        let (_, _, made) = done(target, "user_unlock", json!({"user": "eve"}));
        let words: Vec<&str> = ["usermod"].iter().chain(options).chain(&["--", "eve"]).copied().collect();
        let lock: &[&str] = if options.contains(&"--unlock") {
            &["usermod", "--lock", "--expiredate=1", "--", "eve"]
        } else {
            &["usermod", "--expiredate=1", "--", "eve"]
        };
        let expected = plan("Unlock the account eve").step(step(&words).undo(run(lock)));
        let expected = if record.is_some() { expected.step(Step::remove(&path)) } else { expected };
        assert_eq!(made.unwrap(), expected, "{record:?}");
    }
}

#[test]
fn what_stays_behind_of_a_deleted_account_is_said() {
    let asked = [
        "/var/spool/cron/crontabs/bob",
        "/var/spool/cron/bob",
        "/var/mail/bob",
        "/var/spool/mail/bob",
        "/var/lib/systemd/linger/bob",
        "/home/bob",
    ];
    let target = || {
        let there = [
            ("/var/spool/cron/crontabs/bob", "8180", "bob"),
            ("/var/mail/bob", "8180", "bob"),
            ("/home/bob", "41ed", "bob"),
        ];
        with(host(), &asked, &there).answer(
            &["find", "/home/bob", "-printf", "%y %m %D %s\\n"],
            0,
            "d 755 1 4096\nf 644 1 3000\n",
            "",
        )
    };
    let (data, _, made) = done(target().outcome(dry()), "user_delete", json!({"user": "bob"}));
    assert_eq!(
        data["left_behind"],
        json!([
            "crontab: /var/spool/cron/crontabs/bob",
            "mail: /var/mail/bob",
            "home: /home/bob (1 files, 1 directories, 2.9 KiB)"
        ])
    );
    let made = format!("{:?}", made.unwrap());
    assert!(made.contains(r#"program: "userdel", args: ["--", "bob"]"#), "{made}");
    let (data, _, made) = done(target(), "user_delete", json!({"user": "bob", "remove_home": true}));
    assert_eq!(
        (&data["left_behind"], &data["removed_home"]),
        (
            &json!(["crontab: /var/spool/cron/crontabs/bob"]),
            &json!("/home/bob (1 files, 1 directories, 2.9 KiB)")
        )
    );
    let made = format!("{:?}", made.unwrap());
    assert!(
        made.contains(r#"args: ["--remove", "--", "bob"]"#) && made.contains("can't be had back"),
        "{made}"
    );
    // The home of another account stays.
    let others = with(host(), &asked, &[("/home/bob", "41ed", "ada")]).answer(
        &["find", "/home/bob", "-printf", "%y %m %D %s\\n"],
        0,
        "",
        "",
    );
    assert_eq!(
        refused(others, "user_delete", json!({"user": "bob", "remove_home": true})).code,
        "HOME_NOT_OWN"
    );
    // A home whose owner isn't known isn't deleted.
    let passwd = part("/etc/passwd").replace(":/home/bob:", ":/home/bob/:");
    let unseen = with(host(), &asked[..5], &[]).file("/etc/passwd", passwd.as_str());
    let unseen = instead(unseen, "getent passwd", &passwd);
    assert_eq!(
        refused(unseen, "user_delete", json!({"user": "bob", "remove_home": true})).code,
        "HOME_UNKNOWN"
    );
}

#[test]
fn a_group_of_the_system_is_deleted_only_where_that_is_said() {
    let (_, _, made) = done(host().outcome(dry()), "group_delete", json!({"name": "adm", "system": true}));
    let made = format!("{:?}", made.unwrap());
    assert!(
        made.contains("risk: Some(Risk::Critical)") && made.contains("its members lose it: bob"),
        "{made}"
    );
    assert!(made.contains(r#"["--gid=4", "--", "adm"]"#), "the way back: {made}");
}

#[test]
fn modes_that_nobody_means_are_refused() {
    let set = |target: FakeTarget, path: &str, fields: Value| {
        let mut arguments = fields;
        arguments["path"] = json!(path);
        refused(target, "perms_set", arguments).code
    };
    for mode in ["9999", "+x", "rwx", "", "u+s\n", "0o644"] {
        assert_eq!(set(host(), "/srv/x", json!({"mode": mode})), "INVALID_MODE", "{mode}");
    }
    assert_eq!(set(host(), "/srv/x", json!({})), "NOTHING_TO_CHANGE");
    assert_eq!(set(host(), "srv/x", json!({"mode": "644"})), "INVALID_PATH");
    assert_eq!(set(host(), "/srv/../etc/shadow", json!({"mode": "644"})), "INVALID_PATH");
    assert_eq!(set(host(), "/srv/x", json!({"owner": "nosuch"})), "USER_NOT_FOUND");
    assert_eq!(set(host(), "/srv/x", json!({"group": "nosuch"})), "GROUP_NOT_FOUND");
    assert_eq!(set(host(), "/srv/x", json!({"owner": "0"})), "INVALID_USER");
    let file = |path: &str| way(host(), path, "81ed", "root");
    let head = |target: FakeTarget, path: &str, said: &str| {
        target.answer(&["head", "--bytes=2", "--", path], 0, said, "")
    };
    for (path, mode, code) in [
        ("/usr/bin/python3.11", "u+s", "SETUID_INTERPRETER"),
        ("/usr/bin/bash", "4755", "SETUID_INTERPRETER"),
        ("/home/ada/x", "u+s", "SETUID_IN_HOME"),
        ("/root/x", "g+s", "SETUID_IN_HOME"),
    ] {
        assert_eq!(set(file(path), path, json!({"mode": mode})), code, "{path}");
    }
    assert_eq!(set(head(file("/opt/x"), "/opt/x", "#!"), "/opt/x", json!({"mode": "u+s"})), "SETUID_SCRIPT");
    for path in ["/etc/shadow", "/etc/sudoers", "/home/ada/.ssh/id_rsa", "/etc/sudoers.d/x"] {
        let secret = || way(host(), path, "8180", "root");
        assert_eq!(set(secret(), path, json!({"mode": "644"})), "SENSITIVE_FILE", "{path}");
        assert_eq!(set(secret(), path, json!({"owner": "ada"})), "SENSITIVE_FILE", "{path}");
    }
    for path in ["/etc", "/usr/lib", "/home", "/var/lib", "/root", "/var/lib/dpkg"] {
        let directory = way(host(), path, "41ed", "root");
        assert_eq!(set(directory, path, json!({"mode": "755", "recursive": true})), "SYSTEM_TREE", "{path}");
    }
    let slash = with(host(), &["/"], &[("/", "41ed", "root")]);
    let problem = refused(slash, "perms_set", json!({"path": "/", "owner": "ada", "recursive": true}));
    assert_eq!(problem.code, "SYSTEM_TREE");
    assert!(problem.remediation[0].contains("without recursive"), "{problem:?}");
    assert_eq!(
        set(way(host(), "/srv/x", "41ed", "root"), "/srv/x", json!({"mode": "u+s", "recursive": true})),
        "SETUID_RECURSIVE"
    );
    assert_eq!(set(file("/srv/x"), "/srv/x", json!({"mode": "644", "recursive": true})), "NOT_A_DIRECTORY");
    let link = way(host(), "/srv/x", "a1ff", "root").answer(
        &["readlink", "--no-newline", "--", "/srv/x"],
        0,
        "/etc/shadow",
        "",
    );
    assert_eq!(set(link, "/srv/x", json!({"mode": "644"})), "SYMLINK");
    let sudo = || way(host(), "/usr/bin/sudo", "89ed", "root");
    assert_eq!(set(sudo(), "/usr/bin/sudo", json!({"mode": "0755"})), "PROTECTED_PROGRAM");
    assert_eq!(set(sudo(), "/usr/bin/sudo", json!({"owner": "ada"})), "PROTECTED_PROGRAM");
    let usr = way(host(), "/usr", "41ed", "root");
    assert_eq!(set(usr, "/usr", json!({"mode": "0700"})), "SYSTEM_DIRECTORY");
    let immutable =
        file("/srv/x").answer(&["lsattr", "-d", "--", "/srv/x"], 0, "----i---------e------- /srv/x\n", "");
    assert_eq!(set(immutable, "/srv/x", json!({"mode": "644"})), "IMMUTABLE");
    assert_eq!(
        set(
            with(host(), &["/", "/srv", "/srv/x"], &[("/", "41ed", "root"), ("/srv", "41ed", "root")]),
            "/srv/x",
            json!({"mode": "644"})
        ),
        "PATH_NOT_FOUND"
    );
}

#[test]
fn one_path_is_set_with_its_way_back() {
    // Mode 2755 of root becomes 0640 of ada. The owner comes first, because that removes setgid.
    let target = with(way(host(), "/srv/x", "85ed", "root"), &["/srv/x"], &[("/srv/x", "81a0", "ada")]);
    let (data, _, made) =
        done(target.outcome(dry()), "perms_set", json!({"path": "/srv/x", "mode": "640", "owner": "ada"}));
    let expected = plan("Set mode 640, owner ada of /srv/x")
        .step(
            Step::run(run(&["chown", "--no-dereference", "--", "ada:root", "/srv/x"]))
                .undo(run(&["chown", "--no-dereference", "--", "root:root", "/srv/x"]))
                .undo(run(&["chmod", "--", "2755", "/srv/x"])),
        )
        .step(
            Step::run(run(&["chmod", "--", "0640", "/srv/x"])).undo(run(&["chmod", "--", "0755", "/srv/x"])),
        );
    assert_eq!(made.unwrap(), expected);
    assert_eq!(
        (&data["mode"], &data["former"], &data["would"]),
        (&json!("0640"), &json!("2755 root:root"), &json!("set"))
    );
    let (_, notes, plan) =
        done(way(host(), "/srv/x", "81a4", "root"), "perms_set", json!({"path": "/srv/x", "mode": "u=rw"}));
    assert!(plan.is_none() && notes[0].contains("already"), "{notes:?}");
}

#[test]
fn below_a_shared_directory_the_owners_rights_are_taken() {
    for (above, owner, expected) in [
        ("43ff", "ada", r#"Privilege::User("ada")"#),
        ("43ff", "root", "Privilege::Root"),
        // An account that could replace the path doesn't decide whose rights are used.
        ("41ff", "ada", "Privilege::Root"),
        ("41ed", "ada", "Privilege::Root"),
    ] {
        let entries = [("/", "41ed", "root"), ("/tmp", above, "root"), ("/tmp/x", "81a4", owner)];
        let target = with(host(), &["/", "/tmp", "/tmp/x"], &entries).outcome(dry());
        let (_, _, made) = done(target, "perms_set", json!({"path": "/tmp/x", "mode": "600"}));
        let made = format!("{:?}", made.unwrap());
        assert!(made.contains(expected), "{above} {owner}: {made}");
    }
}

#[test]
fn a_change_of_a_tree_is_counted_and_cannot_be_undone() {
    let target = way(host(), "/srv/x", "41ed", "root")
        .answer(&["find", "/srv/x", "-printf", "%y %m %D %s\\n"], 0, "d 755 1 1\nf 4755 1 1\nl 777 1 1\n", "")
        .outcome(dry());
    let (data, notes, made) = done(
        target,
        "perms_set",
        json!({"path": "/srv/x", "mode": "o+w", "owner": "ada", "group": "adm", "recursive": true}),
    );
    assert_eq!(data["tree"], json!({"files": 1, "directories": 1, "symlinks": 1, "setuid": 1, "bytes": 1}));
    assert!(notes[0].contains("can't be undone"), "{notes:?}");
    let expected = plan("Set mode o+w, owner ada, group adm of /srv/x and everything below")
        .risk(Risk::High)
        .warning("everybody on the machine may write to /srv/x")
        .warning("1 files, 1 directories, 1 symlinks are changed; this can't be undone")
        .warning("1 symlinks aren't followed: what they lead to stays as it is")
        .warning("1 files lose setuid or setgid with their owner")
        .step(Step::run(run(&["chmod", "--recursive", "--", "o+w", "/srv/x"])))
        .step(Step::run(run(&["chown", "--recursive", "-P", "--no-dereference", "--", "ada:adm", "/srv/x"])));
    assert_eq!(made.unwrap(), expected);
    // In an account's own directory only its own rights are used, because chmod would follow a link that the account puts
    // there.
    let target = way(host(), "/srv/x", "41ed", "ada")
        .answer(&["find", "/srv/x", "-printf", "%y %m %D %s\\n"], 0, "d 755 1 1\n", "")
        .outcome(dry());
    let (_, _, made) =
        done(target, "perms_set", json!({"path": "/srv/x", "mode": "o+rX", "recursive": true}));
    let made = format!("{:?}", made.unwrap());
    assert!(made.contains(r#"Privilege::User("ada")"#) && !made.contains("Privilege::Root"), "{made}");
}

#[test]
fn a_check_shows_the_whole_way_and_who_is_stopped_where() {
    // /srv/link leads to /data/x, which only ada may enter.
    let target = way(host(), "/srv/link", "a1ff", "root")
        .answer(&["readlink", "--no-newline", "--", "/srv/link"], 0, "../data/x", "")
        .answer(&["id", "--groups", "--name", "--", "bob"], 0, "bob adm sudo\n", "")
        .answer(&["lsattr", "-d", "--", "/data/x"], 0, "-----a--------e------- /data/x\n", "");
    let target = with(
        target,
        &["/", "/data", "/data/x"],
        &[("/", "41ed", "root"), ("/data", "41c0", "ada"), ("/data/x", "81a4", "ada")],
    );
    let (data, notes, _) = done(target, "perms_check", json!({"path": "/srv/link", "user": "bob"}));
    let found = &data[0];
    assert_eq!(
        (&found["mode"], &found["leads_to"], &found["attributes"]),
        (&json!("0644"), &json!("/data/x"), &json!(["append-only"]))
    );
    assert_eq!(found["access"]["read"], false);
    assert!(found["access"]["stopped_by"].as_str().unwrap().contains("can't enter /data"), "{found}");
    assert_eq!(found["parents"][2], "lrwxrwxrwx root:root /srv/link");
    assert!(notes[0].contains("getfacl"), "{notes:?}");
    let missing = with(host(), &["/", "/none"], &[("/", "41ed", "root")]);
    let (data, ..) = done(missing, "perms_check", json!({"path": ["/none"]}));
    assert!(data[0]["error"].as_str().unwrap().contains("/none"), "{data}");
}

#[test]
fn rules_of_sudo_are_listed_with_their_places_and_what_is_wrong() {
    let (data, ..) = done(host(), "sudoers_list", json!({}));
    let rules = data["rules"].as_array().unwrap();
    let of = |file: &str| rules.iter().find(|rule| rule["file"] == file).unwrap();
    let admin = of("/etc/sudoers.d/admin");
    assert_eq!(
        (&admin["line"], &admin["flags"], &admin["commands"][0]["nopasswd"]),
        (&json!(1), &json!(["NOPASSWD ALL"]), &json!(true))
    );
    let users: Vec<&Value> = rules.iter().map(|rule| &rule["users"][0]).collect();
    assert_eq!(users, ["root", "%sudo", "admin"]);
    assert!(data["defaults"].to_string().contains("secure_path"), "{data}");
    let (data, ..) = done(host(), "sudoers_list", json!({"user": "bob"}));
    assert_eq!(data["rules"].as_array().unwrap().len(), 1);
    assert_eq!((data.get("defaults"), data.get("aliases")), (None, None));

    // A module's commands in system mode have expressions of up to 1024 bytes each.
    let long = format!("/usr/bin/stat ^--format=%n --( /{})+$", "(a|b)".repeat(150));
    let file = format!(
        "Cmnd_Alias LONG = {}\nCmnd_Alias SHORT = /bin/a, /bin/b\nCmnd_Alias ONE = {long}\n",
        [long.as_str(); 50].join(", \\\n    ")
    );
    let target = host().file("/etc/sudoers.d/admin", file);
    let (data, notes, _) = done(target, "sudoers_list", json!({}));
    let aliases = data["aliases"].as_array().unwrap();
    assert_eq!(aliases[1]["members"], json!(["/bin/a", "/bin/b"]));
    assert_eq!(aliases[1].get("members_total"), None);
    assert_eq!((&aliases[0]["members_total"], &aliases[2]["members_total"]), (&json!(50), &json!(1)));
    assert!(aliases[0]["members"][0].as_str().unwrap().starts_with("/usr/bin/stat ^--format=%n"), "{data}");
    assert!(aliases[0].to_string().len() < 1000, "{data}");
    assert!(notes.iter().any(|note| note.contains("members_total")), "{notes:?}");

    // This is visudo's output for such a file.
    let broken = FakeTarget::new()
        .recording(HOST)
        .file("/etc/sudoers.d/lsa", "ada ALL=(ALL) NOPASSWD ALL=x\nx y z\n")
        .file("/etc/sudoers.d/old.bak", "x")
        .answer(
            &["visudo", "--check"],
            1,
            "",
            "/etc/sudoers.d/lsa:1:24: syntax error\nada ALL=(ALL) NOPASSWD ALL\n                       ^~~\n",
        );
    let (data, notes, _) = done(broken, "sudoers_list", json!({}));
    let errors = data["errors"].to_string();
    assert!(
        errors.contains("/etc/sudoers.d/lsa:2: no line of sudoers")
            && errors.contains("visudo: /etc/sudoers.d/lsa:1:24: syntax error"),
        "{errors}"
    );
    assert!(notes[0].contains("old.bak"), "{notes:?}");
    let (data, notes, _) = done(FakeTarget::new(), "sudoers_list", json!({}));
    assert!(data["rules"] == json!([]) && notes[0].contains("isn't installed"), "{data}");
}

#[test]
fn rules_that_are_more_than_they_seem_are_refused() {
    let with = |field: &str, value: Value| {
        let mut rule = json!({"user": "ada", "commands": ["/usr/bin/id"]});
        rule[field] = value;
        json!({"action": "add", "rule": rule})
    };
    for (arguments, code) in [
        (with("comment", json!("why\nroot ALL=(ALL) ALL")), "INVALID_COMMENT"),
        (with("commands", json!(["id"])), "INVALID_COMMAND"),
        (with("commands", json!(["!/bin/sh"])), "INVALID_COMMAND"),
        (with("commands", json!(["ALL", "!/bin/sh"])), "INVALID_COMMAND"),
        (with("commands", json!(["/usr/bin/../sbin/x"])), "INVALID_COMMAND"),
        (with("commands", json!(["/usr/bin/*"])), "INVALID_COMMAND"),
        (with("commands", json!([])), "INVALID_COMMAND"),
        (with("commands", Value::Null), "INVALID_COMMAND"),
        (with("user", json!("nosuch")), "USER_NOT_FOUND"),
        (with("user", json!("%nosuch")), "GROUP_NOT_FOUND"),
        (with("user", json!("ALL")), "INVALID_USER"),
        (with("runas", json!("root) NOPASSWD: ALL")), "INVALID_RUNAS"),
        (with("hosts", json!("ALL = ALL")), "INVALID_HOSTS"),
    ] {
        assert_eq!(refused(host(), "sudoers_modify", arguments.clone()).code, code, "{arguments}");
    }
    for (file, code) in [
        ("/etc/sudoers", "PROTECTED_FILE"),
        ("/etc/sudoers/", "PROTECTED_FILE"),
        ("/etc/sudoers.d/../sudoers", "INVALID_FILE"),
        ("/etc/sudoers.d/", "INVALID_FILE"),
        ("/etc/sudoers.d/a/b", "INVALID_FILE"),
        ("/etc/sudoers.d/a.b", "INVALID_FILE"),
        ("/etc/sudoers.d/a~", "INVALID_FILE"),
        ("/tmp/x", "INVALID_FILE"),
        ("lsa", "INVALID_FILE"),
    ] {
        let arguments = json!({"action": "add", "target_file": file, "rule": {"user": "ada", "commands": ["/usr/bin/id"]}});
        assert_eq!(refused(host(), "sudoers_modify", arguments).code, code, "{file}");
    }
    let rule = json!({"user": "ada", "commands": ["/usr/bin/id"]});
    let problem = FakeTarget::new()
        .answer(&["getent", "passwd"], 0, part("/etc/passwd"), "")
        .answer(&["getent", "group"], 0, part("/etc/group"), "")
        .account("root")
        .file("/etc/passwd", part("/etc/passwd"))
        .file("/etc/group", part("/etc/group"));
    assert_eq!(refused(problem, "sudoers_modify", json!({"action": "add", "rule": rule})).code, "NO_SUDO");
}

/// A file with rules of others, which is kept byte for byte.
const OTHERS: &str = "# ours\r\nada ALL=(ALL) /usr/bin/id # why\n\tada web1 = (root) /usr/bin/true, \\\n   /usr/bin/false\nbob ALL=ALL\nada,bob ALL=/bin/ls";

fn write(path: &str, contents: &str) -> Step {
    let check = run(&["visudo", "--check", "--file={}"]);
    Step::write(path, contents).mode(0o440).owner("root", "root").validate(check)
}

#[test]
fn a_rule_is_added_changed_and_removed_and_every_other_byte_stays() {
    let path = "/etc/sudoers.d/lsa";
    let bin = |target: FakeTarget, program: &str| {
        with(
            target,
            &["/usr", "/usr/bin", program],
            &[("/usr", "41ed", "root"), ("/usr/bin", "41ed", "root"), (program, "81ed", "root")],
        )
    };
    let check_all = || Step::run(run(&["visudo", "--check"]));
    let target = || bin(host().file(path, OTHERS), "/usr/bin/uptime");
    let call = |target: FakeTarget, action: &str, rule: Value, line: Option<usize>| {
        let mut arguments = json!({"action": action, "target_file": path, "rule": rule});
        if let Some(line) = line {
            arguments["line"] = json!(line);
        }
        done(target.outcome(dry()), "sudoers_modify", arguments)
    };
    let (data, _, made) = call(
        target(),
        "add",
        json!({"user": "%adm", "commands": ["/usr/bin/uptime -p"], "comment": "for all"}),
        None,
    );
    let text = format!("{OTHERS}\n%adm ALL=(ALL) /usr/bin/uptime -p # for all\n");
    let expected = plan("Add a rule of sudo to /etc/sudoers.d/lsa: %adm ALL=(ALL) /usr/bin/uptime -p")
        .risk(Risk::Critical)
        .step(write(path, &text))
        .step(check_all());
    assert_eq!(made.unwrap(), expected);
    assert_eq!((&data["line"], &data["would"]), (&json!(7), &json!("add")));

    // The hosts decide which of several rules is meant.
    let (data, _, made) = call(
        target(),
        "modify",
        json!({"user": "ada", "hosts": "web1", "runas": "root", "commands": ["/usr/bin/uptime -p"]}),
        None,
    );
    let text = OTHERS.replace(
        "\tada web1 = (root) /usr/bin/true, \\\n   /usr/bin/false\n",
        "ada web1=(root) /usr/bin/uptime -p\n",
    );
    assert!(
        made.unwrap()
            == plan(&format!(
                "Change a rule of sudo in {path}: {} → ada web1=(root) /usr/bin/uptime -p",
                data["former"].as_str().unwrap()
            ))
            .risk(Risk::Critical)
            .step(write(path, &text))
            .step(check_all())
    );

    let (_, _, made) = call(target(), "remove", json!({"user": "ada", "commands": ["/usr/bin/id"]}), None);
    let text = OTHERS.replace("ada ALL=(ALL) /usr/bin/id # why\n", "");
    assert!(format!("{:?}", made.unwrap()).contains(&format!("{:?}", text.as_bytes())));
    let (_, _, made) = call(target(), "remove", json!({"user": "ada"}), Some(3));
    let text = OTHERS.replace("\tada web1 = (root) /usr/bin/true, \\\n   /usr/bin/false\n", "");
    assert!(format!("{:?}", made.unwrap()).contains(&format!("{:?}", text.as_bytes())));

    let refuse = |action: &str, rule: Value| {
        refused(target(), "sudoers_modify", json!({"action": action, "target_file": path, "rule": rule}))
    };
    let problem = refuse("remove", json!({"user": "ada"}));
    assert_eq!((problem.code.as_str(), problem.remediation.len()), ("AMBIGUOUS_RULE", 2), "{problem:?}");
    assert_eq!(
        refuse("modify", json!({"user": "ada", "commands": ["/usr/bin/uptime"]})).code,
        "AMBIGUOUS_RULE"
    );
    // A change keeps what the tool can't express, and the same rule without it is another one.
    for kept in
        ["NOEXEC: /usr/bin/uptime", "NOTAFTER=20200101000000Z /usr/bin/uptime", "sha224:00 /usr/bin/uptime"]
    {
        let target = || bin(host().file(path, format!("eve ALL=(ALL) {kept}\n")), "/usr/bin/uptime");
        let rule = json!({"user": "eve", "runas": "ALL", "commands": ["/usr/bin/uptime"], "comment": "new"});
        let arguments = |action: &str| json!({"action": action, "target_file": path, "rule": rule});
        assert_eq!(refused(target(), "sudoers_modify", arguments("modify")).code, "RULE_NOT_PLAIN", "{kept}");
        assert!(call(target(), "add", rule.clone(), None).2.is_some(), "{kept}");
    }
    let unasked = bin(host().file(path, "eve ALL=(ALL) NOPASSWD: /usr/bin/id\n"), "/usr/bin/uptime");
    let (data, _, made) =
        call(unasked, "modify", json!({"user": "eve", "commands": ["/usr/bin/uptime"]}), None);
    assert_eq!(data["rule"], "eve ALL=(ALL) NOPASSWD: /usr/bin/uptime");
    assert!(format!("{:?}", made.unwrap()).contains("eve is asked for no password"));
    assert_eq!(refuse("remove", json!({"user": "eve"})).code, "RULE_NOT_FOUND");
    assert_eq!(refuse("remove", json!({"user": "bob", "commands": ["/bin/ls"]})).code, "RULE_NOT_FOUND");
}

#[test]
fn the_last_rule_of_a_file_takes_the_file_with_it() {
    let path = "/etc/sudoers.d/lsa";
    let target = host().file(path, "ada ALL=(ALL) /usr/bin/id\n").outcome(dry());
    let (_, _, made) = done(
        target,
        "sudoers_modify",
        json!({"action": "remove", "target_file": path, "rule": {"user": "ada"}}),
    );
    assert!(format!("{:?}", made.unwrap()).contains("RemoveFile"));
}

#[test]
fn what_amounts_to_everything_is_said_before_anybody_says_yes() {
    let warned = |commands: Value, nopasswd: bool, asked: &[&str], there: &[(&str, &str, &str)]| {
        let rule = json!({"user": "ada", "commands": commands, "nopasswd": nopasswd});
        let target = with(host(), asked, there).outcome(dry());
        format!("{:?}", done(target, "sudoers_modify", json!({"action": "add", "rule": rule})).2.unwrap())
    };
    assert!(warned(json!(["ALL"]), true, &[], &[]).contains("ada may run everything, without a password"));
    let bin = |program: &'static str| {
        vec![("/usr", "41ed", "root"), ("/usr/bin", "41ed", "root"), (program, "81ed", "root")]
    };
    let made =
        warned(json!(["/usr/bin/vim"]), true, &["/usr", "/usr/bin", "/usr/bin/vim"], &bin("/usr/bin/vim"));
    assert!(
        made.contains("as good as ALL")
            && made.contains("asked for no password")
            && made.contains("any arguments"),
        "{made}"
    );
    let made = warned(json!(["/usr/bin/"]), false, &["/usr", "/usr/bin"], &bin("/usr/bin")[..2]);
    assert!(made.contains("every program that is in that directory"), "{made}");
    let home = [("/home", "41ed", "root"), ("/home/ada", "41ed", "ada"), ("/home/ada/x", "81ed", "ada")];
    let made = warned(json!(["/home/ada/x"]), false, &["/home", "/home/ada", "/home/ada/x"], &home);
    assert!(made.contains("/home/ada is ada's: that amounts to ALL"), "{made}");
    let made = warned(json!(["/opt/x"]), false, &["/opt", "/opt/x"], &[("/opt", "41ed", "root")]);
    assert!(made.contains("/opt/x isn't there"), "{made}");
}

#[test]
fn everything_about_an_account_is_told_and_no_hash() {
    let target = with(host(), &["/home/bob"], &[("/home/bob", "41ed", "bob")]).answer(
        &["id", "--groups", "--name", "--", "bob"],
        0,
        "bob adm sudo\n",
        "",
    );
    let (data, notes, _) = done(target, "user_info", json!({"user": "bob"}));
    assert_eq!(
        (&data["group"], &data["groups"], &data["source"], &data["system"]),
        (&json!("bob"), &json!(["adm", "sudo"]), &json!("local"), &json!(false))
    );
    assert_eq!(
        (&data["login"]["password"], &data["login"]["account_expires"]),
        (&json!("set"), &json!("never"))
    );
    assert_eq!(
        (&data["home"]["exists"], &data["home"]["mode"], &data["shell"]["listed"]),
        (&json!(true), &json!("0755"), &json!(true))
    );
    assert_eq!(
        (&data["sudo"]["root"], &data["sudo"]["rules"][0]["users"]),
        (&json!("all"), &json!(["%sudo"]))
    );
    assert_eq!((&data["processes"]["count"], notes.len()), (&json!(0), 0));
    assert!(!data.to_string().contains('$'), "{data}");
}

#[test]
fn groups_are_listed_with_their_members() {
    let (data, ..) = done(host(), "group_list", json!({}));
    let items = data.as_array().unwrap();
    let of = |name: &str| items.iter().find(|item| item["name"] == name).unwrap();
    assert_eq!((&of("sudo")["members"], &of("sudo")["system"]), (&json!(["bob"]), &json!(true)));
    assert_eq!((of("ada").get("primary_of"), of("ada").get("system")), (None, None));
    assert!(of("nogroup")["primary_of"].to_string().contains("nobody"), "{data}");
    let (data, ..) = done(host(), "group_list", json!({"user": "bob"}));
    let names: Vec<&Value> = data.as_array().unwrap().iter().map(|item| &item["name"]).collect();
    assert_eq!(names, ["bob", "adm", "sudo"]);
}

#[test]
fn what_only_looks_never_takes_more_than_it_may() {
    let description = module().description();
    for grant in &description.capabilities.commands {
        let is_root_to_look = grant.risk == Risk::ReadOnly && grant.privilege == Privilege::Root;
        assert!(!is_root_to_look || grant.pattern.starts_with("visudo --check"), "{}", grant.pattern);
    }
    let written: Vec<&str> = description
        .capabilities
        .paths
        .iter()
        .filter(|path| path.write)
        .map(|path| path.glob.as_str())
        .collect();
    assert_eq!(
        written,
        ["/etc/sudoers.d/*", "/var/lib/linux-sysadmin-locked", "/var/lib/linux-sysadmin-locked/*"]
    );
}
