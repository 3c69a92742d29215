//! The tools for jobs. The outputs were recorded on a Debian 12 host (cron 3.0pl1-162), and with cronie 1.7.2's `crontab`
//! (built from its source) where it differs.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm;
use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::testkit::{FakeTarget, output};
use linux_sysadmin_sdk::{Category, Privilege};
use module_cron::module;
use serde_json::{Value, json};

/// The files in the form of `tail -n +1`. Scripts have only their first lines.
const HOST: &str = include_str!("data/debian-host.txt");
const ROOTS: &str = include_str!("data/debian-root.crontab");
const ADMINS: &str = include_str!("data/debian-admin.crontab");

fn users() -> impl Iterator<Item = &'static str> {
    let passwd = HOST.lines().skip_while(|line| *line != "==> /etc/passwd <==").skip(1);
    passwd.take_while(|line| !line.is_empty()).filter_map(|line| line.split(':').next())
}

/// The host, reached as this account.
fn reached_as(account: &str) -> FakeTarget {
    FakeTarget::new().recording(HOST).account(account)
}

/// The host, reached as root, with the crontabs of root and admin.
fn host() -> FakeTarget {
    users().filter(|user| !["root", "admin"].contains(user)).fold(
        reached_as("root").answer(&["crontab", "-u", "root", "-l"], 0, ROOTS, "").answer(
            &["crontab", "-u", "admin", "-l"],
            0,
            ADMINS,
            "",
        ),
        |host, user| host.answer(&["crontab", "-u", user, "-l"], 1, "", &format!("no crontab for {user}\n")),
    )
}

/// The host, reached as root, with these crontabs of ada before and after the plan has run.
fn adas(before: &str, after: &str) -> FakeTarget {
    reached_as("root").answer(&["crontab", "-u", "ada", "-l"], 0, before, "").answer_after(
        &["crontab", "-u", "ada", "-l"],
        0,
        after,
        "",
    )
}

fn installed(user: &str, text: &str) -> Command {
    Command::new("crontab").args(["-u", user, "-"]).as_root().stdin(text)
}

fn plan(summary: &str, text: &str, undo: Command) -> Change {
    Change::new(summary)
        .step(Step::run(installed("ada", text)).undo(undo))
        .lock(Lock::Named("crontab".to_owned()))
}

fn list(target: FakeTarget, arguments: Value) -> (Vec<Value>, Vec<String>) {
    let (data, reply) = target.call(&module(), "cron_list", arguments).unwrap();
    (data.as_array().unwrap().clone(), reply.notes)
}

/// Calls a tool that changes something. Returns its answer and its plans.
fn call(target: FakeTarget, tool: &str, arguments: Value) -> (Result<(Value, Vec<String>)>, Vec<Change>) {
    let plans = target.plans();
    let answer = target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes));
    let plans = plans.borrow().clone();
    (answer, plans)
}

fn done(target: FakeTarget, tool: &str, arguments: Value) -> (Value, Vec<String>, Change) {
    let (answer, mut plans) = call(target, tool, arguments);
    let (data, notes) = answer.unwrap();
    assert_eq!(plans.len(), 1);
    (data, notes, plans.remove(0))
}

/// The problem of a call that hands over no plan.
fn refusal(target: FakeTarget, tool: &str, arguments: Value) -> Problem {
    let (answer, plans) = call(target, tool, arguments.clone());
    assert!(plans.is_empty(), "{arguments}");
    answer.err().unwrap_or_else(|| panic!("{arguments}"))
}

fn id_of(target: FakeTarget, user: &str, line: u64) -> String {
    let (items, _) = list(target, json!({"user": user}));
    let item = items.iter().find(|item| item["line"] == line && item["source"] == "crontab").unwrap();
    item["id"].as_str().unwrap().to_owned()
}

#[test]
fn the_grants_are_what_the_tools_run() {
    let capabilities = module().description().capabilities;
    let patterns: Vec<_> = capabilities.commands.iter().map(|grant| grant.pattern.as_str()).collect();
    assert_eq!(
        patterns,
        [
            "crontab -u <user> -l",
            "crontab -l",
            "crontab -u <user> - < stdin",
            "crontab -u <user> -r",
            "crontab - < stdin",
            "crontab -r",
        ]
    );
    let privileges: Vec<_> =
        capabilities.commands.iter().map(|grant| format!("{:?}", grant.privilege)).collect();
    let (caller, root, either) = (Privilege::Caller, Privilege::Root, Privilege::RootIfAvailable);
    let expected = [&either, &caller, &root, &root, &caller, &caller].map(|it| format!("{it:?}"));
    assert_eq!(privileges, expected);
    let written: Vec<_> = capabilities.paths.iter().filter(|grant| grant.write).collect();
    let globs_written: Vec<_> = written.iter().map(|grant| grant.glob.as_str()).collect();
    assert_eq!(globs_written, ["/etc/crontab", "/etc/cron.d/*"]);
    let globs: Vec<_> = capabilities.paths.iter().map(|grant| grant.glob.as_str()).collect();
    assert_eq!(
        globs,
        [
            "/etc/passwd",
            "/etc/crontab",
            "/etc/crontab",
            "/etc/cron.d/*",
            "/etc/anacrontab",
            "/var/spool/cron/crontabs",
            "/var/spool/cron",
            "/etc/cron.d/**",
            "/etc/cron.hourly/**",
            "/etc/cron.daily/**",
            "/etc/cron.weekly/**",
            "/etc/cron.monthly/**",
            "/usr/local/sbin/*",
            "/usr/local/bin/*",
            "/usr/sbin/*",
            "/usr/bin/*",
            "/sbin/*",
            "/bin/*",
            "/snap/bin/*",
            "/etc/environment",
        ]
    );
}

#[test]
fn a_hosts_jobs_are_listed_with_their_place_and_meaning() {
    let (items, notes) = list(host(), json!({}));
    let shown: Vec<_> = items
        .iter()
        .map(|item| {
            let text = |key: &str| item[key].as_str().unwrap_or("-").to_owned();
            format!("{} {} {} | {}", text("user"), text("source"), item["line"], text("schedule"))
        })
        .collect();
    assert_eq!(
        shown,
        [
            "root crontab 6 | @reboot",
            "root crontab 7 | */5 * * * *",
            "root crontab 8 | 0 3 * * 1-5",
            "root crontab 10 | 15 4 1 * *",
            "admin crontab 1 | */5 * * * *",
            "admin crontab 2 | */5 * * * *",
            "admin crontab 3 | 0 4 * * 5-1",
            "root /etc/crontab 18 | 17 * * * *",
            "root /etc/crontab 19 | 25 6 * * *",
            "root /etc/crontab 20 | 47 6 * * 7",
            "root /etc/crontab 21 | 52 6 1 * *",
            "root /etc/cron.d/e2scrub_all 1 | 30 3 * * 0",
            "root /etc/cron.d/e2scrub_all 2 | 10 3 * * *",
            "root /etc/cron.daily null | 25 6 * * *",
            "root /etc/cron.daily null | 25 6 * * *",
            "root /etc/cron.daily null | 25 6 * * *",
        ]
    );
    let mut first = items[2].clone();
    assert_eq!(first.as_object_mut().unwrap().remove("id").unwrap().as_str().unwrap().len(), 12);
    assert_eq!(
        first,
        json!({
            "user": "root", "source": "crontab", "line": 8, "schedule": "0 3 * * 1-5",
            "description": "At 03:00 on Monday through Friday",
            "command": "tar -czf /var/backups/etc-$(date +\\%F).tgz /etc",
            "environment": ["SHELL=/bin/bash", "MAILTO=ops@example.org", "DB_PASSWORD"], "enabled": true
        })
    );
    assert_eq!(items[3]["environment"], json!(["SHELL=/bin/bash", "DB_PASSWORD", "MAILTO="]));
    // Debian's cron accepts it, but it doesn't mean what it looks like.
    assert!(items[6]["error"].as_str().unwrap().contains("runs backwards"), "{}", items[6]);
    assert_eq!(
        (items[7]["id"].as_str().unwrap().len(), &items[7]["command"]),
        (12, &json!("cd / && run-parts --report /etc/cron.hourly"))
    );
    assert_eq!(
        (&items[13]["id"], &items[13]["kind"], &items[13]["command"]),
        (&Value::Null, &json!("run-parts"), &json!("/etc/cron.daily/apt-compat"))
    );
    assert_eq!(notes, ["files that cron ignores for their names: /etc/cron.d/old.bak"]);
    assert!(!Value::Array(items).to_string().contains("hunter2"));
}

#[test]
fn a_file_that_cron_ignores_for_its_name_is_told_with_a_name_that_it_reads() {
    let target = || {
        host()
            .file("/etc/cron.d/shop-report.cron", "30 2 * * * root /usr/local/bin/shop-report\n")
            .file("/etc/cron.daily/cleanup.sh", "#!/bin/sh\n")
    };
    let why = "cron reads no file whose name has anything but letters, digits, _ and -";
    let expected = [
        json!({"source": "/etc/cron.d/shop-report.cron", "enabled": false, "error": why, "better_name": "shop-report"}),
        json!({"source": "/etc/cron.daily", "kind": "run-parts", "command": "/etc/cron.daily/cleanup.sh",
               "enabled": false, "error": why, "better_name": "cleanup"}),
    ];
    // Whose job it would be isn't known, so that it is told of every account.
    for arguments in [json!({}), json!({"user": "admin"})] {
        let (items, notes) = list(target(), arguments);
        assert_eq!(items[items.len() - 2..], expected);
        assert_eq!(notes, ["files that cron ignores for their names: /etc/cron.d/old.bak"]);
    }
}

#[test]
fn one_users_jobs_are_those_that_run_as_it() {
    let (items, notes) = list(host(), json!({"user": "admin"}));
    assert_eq!(items.len(), 3);
    assert_eq!(notes, ["files that cron ignores for their names: /etc/cron.d/old.bak"]);
    let (items, notes) = list(host(), json!({"user": "nobody"}));
    assert!(items.is_empty() && notes.contains(&"nobody has no crontab".to_owned()), "{notes:?}");
    let (items, _) = list(host(), json!({"user": "root"}));
    assert_eq!(items.len(), 13);
}

#[test]
fn without_root_only_the_accounts_own_crontab_is_listed() {
    let (items, notes) = list(reached_as("admin").answer(&["crontab", "-l"], 0, ADMINS, ""), json!({}));
    assert_eq!(items.iter().filter(|item| item["source"] == "crontab").count(), 3);
    assert!(
        notes.contains(
            &"only the account's own crontab was read: those of others take root's rights".to_owned()
        )
    );
    // The account may use sudo, but not for crontab.
    let said = "must be privileged to use -u\n";
    let mut target = users()
        .fold(reached_as("admin").answer(&["crontab", "-l"], 0, ADMINS, ""), |target, user| {
            target.answer(&["crontab", "-u", user, "-l"], 1, "", said)
        });
    target.distro.sudo_available = true;
    let (items, notes) = list(target, json!({}));
    assert_eq!(items.iter().filter(|item| item["user"] == "admin").count(), 3);
    let note =
        notes.iter().find(|note| note.starts_with("crontabs that were not read: root, daemon")).unwrap();
    assert!(note.contains("and 13 more") && note.contains("must be privileged"), "{note}");

    let target = reached_as("admin").answer(&["crontab", "-u", "root", "-l"], 1, "", said);
    let problem = target.call(&module(), "cron_list", json!({"user": "root"})).unwrap_err();
    assert_eq!((problem.code.as_str(), problem.category), ("PRIVILEGE_REQUIRED", Category::Privilege));
}

#[test]
fn only_accounts_with_a_crontab_are_asked_for_where_the_spool_tells_them() {
    // The crontabs of the others aren't recorded. A request for one of them would add a note.
    let target = reached_as("root")
        .answer(&["crontab", "-u", "admin", "-l"], 0, ADMINS, "")
        .file("/var/spool/cron/crontabs/admin", "")
        .file("/var/spool/cron/crontabs/crontab.w1x2", "");
    let (items, notes) = list(target, json!({}));
    let users: Vec<_> =
        items.iter().filter(|item| item["source"] == "crontab").map(|item| &item["user"]).collect();
    assert_eq!(users, ["admin", "admin", "admin"]);
    assert!(notes.iter().all(|note| !note.contains("not read")), "{notes:?}");
}

#[test]
fn who_doesnt_exist_has_no_crontab() {
    let said = "crontab:  user `nosuch' unknown\n";
    for tool in ["cron_list", "cron_add", "cron_remove"] {
        let arguments = match tool {
            "cron_add" => json!({"user": "nosuch", "schedule": "@daily", "command": "true"}),
            "cron_remove" => json!({"user": "nosuch", "command": "true"}),
            _ => json!({"user": "nosuch"}),
        };
        let target = reached_as("root").answer(&["crontab", "-u", "nosuch", "-l"], 1, "", said);
        assert_eq!(refusal(target, tool, arguments.clone()).code, "USER_NOT_FOUND");
        for user in ["-r", "", "a b", "../x", &"x".repeat(33)] {
            let mut arguments = arguments.clone();
            arguments["user"] = json!(user);
            assert_eq!(refusal(reached_as("root"), tool, arguments).code, "INVALID_USER", "{user}");
        }
    }
}

#[test]
fn crontabs_own_refusals_are_carried_over() {
    // This is the output as root with admin missing in cron.allow, and as admin. cronie prints only the latter.
    for said in [
        "The user admin cannot use this program (crontab)\n",
        "You (admin) are not allowed to use this program (crontab)\nSee crontab(1) for more information\n",
    ] {
        let target = reached_as("root").answer(&["crontab", "-u", "admin", "-l"], 1, "", said);
        let problem =
            refusal(target, "cron_add", json!({"user": "admin", "schedule": "@daily", "command": "true"}));
        assert_eq!((problem.code.as_str(), problem.category), ("CRONTAB_REFUSED", Category::Privilege));
        assert!(problem.message.contains("use this program (crontab)"), "{}", problem.message);
        assert!(problem.remediation[0].contains("/etc/cron.allow"));
    }
    for said in [
        "\"-\":3: bad minute\nerrors in crontab file, can't install.\n",
        "\"-\":3: bad minute\nInvalid crontab file, can't install.\n",
        "crontab is too long; maximum number of lines is 10000.\n",
    ] {
        let failed = output(1, "", said);
        let failure = Failure {
            problem: Problem::new("STEP_FAILED", Category::Other, "step 1 failed"),
            step: 0,
            outputs: vec![failed],
            undone: Vec::new(),
            not_undone: Vec::new(),
            uncertain: false,
        };
        let arguments = json!({"user": "ada", "schedule": "@daily", "command": "true"});
        let uncertain = Failure { uncertain: true, ..failure.clone() };
        let (answer, _) = call(adas("", "").outcome(Err(failure)), "cron_add", arguments.clone());
        let problem = answer.unwrap_err();
        assert_eq!(problem.code, "CRONTAB_REFUSED");
        assert!(problem.message.contains(said.lines().next().unwrap()), "{}", problem.message);
        let (answer, _) = call(adas("", "").outcome(Err(uncertain)), "cron_add", arguments);
        assert_eq!(answer.unwrap_err().code, "STEP_FAILED");
    }
}

#[test]
fn an_entry_is_appended_and_every_other_byte_stays() {
    let line = "*/5 * * * * /usr/bin/true --x";
    let odd = " A = \"b c\" \n\n\t*/5 * * * *\ttrue\n   # ünï\n@reboot  x \\% y\n61 * * * * wrong\n";
    for (before, comment, after, warnings) in [
        ("", None, format!("{line}\n"), &[][..]),
        ("# only a comment\n", None, format!("# only a comment\n{line}\n"), &[]),
        (
            ADMINS,
            Some("why"),
            format!("{ADMINS}# why\n{line}\n"),
            &["line 3 is wrong, and crontab may refuse the whole for it: 0 4 * * 5-1 /home/admin/never"],
        ),
        (
            odd,
            Some("# why "),
            format!("{odd}# why\n{line}\n"),
            &["line 6 is wrong, and crontab may refuse the whole for it: 61 * * * * wrong"],
        ),
    ] {
        let mut arguments =
            json!({"user": "ada", "schedule": " */5  * * *\t* ", "command": "/usr/bin/true --x "});
        arguments["comment"] = json!(comment);
        let (data, notes, made) = done(adas(before, &after), "cron_add", arguments);
        let expected = plan(&format!("Add to ada's crontab: {line}"), &after, installed("ada", before));
        assert_eq!(made, warnings.iter().fold(expected, |plan, warning| plan.warning(*warning)));
        assert!(notes.is_empty(), "{notes:?}");
        let entry = &data["entry"];
        assert_eq!(
            (&data["user"], &entry["command"], &data["would"]),
            (&json!("ada"), &json!("/usr/bin/true --x"), &Value::Null)
        );
        assert_eq!(entry["line"].as_u64().unwrap(), after.lines().count() as u64);
        assert_eq!(data["entries"].as_u64().unwrap(), data["entries_before"].as_u64().unwrap() + 1);
    }
}

#[test]
fn the_way_back_from_a_first_crontab_is_none() {
    let target = reached_as("root")
        .answer(&["crontab", "-u", "ada", "-l"], 1, "", "no crontab for ada\n")
        .answer_after(&["crontab", "-u", "ada", "-l"], 0, "@daily true\n", "");
    let (data, _, made) =
        done(target, "cron_add", json!({"user": "ada", "schedule": "@daily", "command": "true"}));
    let back = Command::new("crontab").args(["-u", "ada", "-r"]).as_root();
    assert_eq!(made, plan("Add to ada's crontab: @daily true", "@daily true\n", back));
    assert_eq!((&data["entries_before"], &data["entries"]), (&json!(0), &json!(1)));
}

#[test]
fn the_accounts_own_crontab_takes_its_own_rights_only() {
    let target = reached_as("ada").answer(&["crontab", "-l"], 1, "", "no crontab for ada\n").answer_after(
        &["crontab", "-l"],
        0,
        "@daily true\n",
        "",
    );
    let (data, notes, made) = done(target, "cron_add", json!({"schedule": "@daily", "command": "true"}));
    let step = Step::run(Command::new("crontab").arg("-").stdin("@daily true\n"))
        .undo(Command::new("crontab").arg("-r"));
    let expected =
        Change::new("Add to ada's crontab: @daily true").step(step).lock(Lock::Named("crontab".to_owned()));
    assert_eq!((made, &data["user"]), (expected, &json!("ada")));
    assert_eq!(notes, ["no user was named: ada's crontab was taken, the account in use"]);
}

#[test]
fn root_is_the_default_where_the_target_is_reached_as_root() {
    let target = reached_as("root").answer(&["crontab", "-u", "root", "-l"], 0, ROOTS, "").answer_after(
        &["crontab", "-u", "root", "-l"],
        0,
        format!("{ROOTS}* * * * * echo 50% off\n"),
        "",
    );
    let arguments = json!({"schedule": "* * * * *", "command": "echo 50% off"});
    let (data, notes, made) = done(target, "cron_add", arguments);
    assert_eq!(data["user"], "root");
    assert_eq!(notes, ["no user was named: root's crontab was taken, the account in use"]);
    let after = format!("{ROOTS}* * * * * echo 50% off\n");
    let expected = Change::new("Add to root's crontab: * * * * * echo 50% off")
        .step(Step::run(installed("root", &after)).undo(installed("root", ROOTS)))
        .lock(Lock::Named("crontab".to_owned()))
        .warning("the command runs as root")
        .warning(
            "an unescaped `%` ends the command: what follows it is given to it on stdin, each further `%` a \
             newline; `\\%` is a percent sign",
        )
        .warning("this runs every minute")
        .warning("the command runs in /bin/bash (SHELL)")
        .warning("the crontab sets an empty MAILTO: the command's output is lost");
    assert_eq!(made, expected);
}

#[test]
fn what_may_surprise_is_in_the_plan() {
    for (before, schedule, command, warning) in [
        ("", "0 0 30 2 *", "true", "this never runs: there is no day 30 in February"),
        ("", "@reboot", "true", "@reboot has no clock times"),
        ("MAILTO=me@example.org\n", "@daily", "true", "mailed to me@example.org"),
        ("CRON_TZ=Asia/Tokyo\n", "@daily", "true", "CRON_TZ=Asia/Tokyo"),
        ("@daily a", "@daily", "true", "last line had no newline"),
        ("@daily printf 'a\\rb'\n", "@daily", "true", "`\\r` or `\\b`"),
        ("", "@daily", &format!("echo {}", "x".repeat(300)), "the whole line: @daily echo x"),
    ] {
        let line = format!("{schedule} {command}\n");
        let newline = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        let arguments = json!({"user": "ada", "schedule": schedule, "command": command});
        let (_, _, made) = done(adas(before, &format!("{before}{newline}{line}")), "cron_add", arguments);
        let made = format!("{made:?}");
        assert!(made.contains(&format!("{warning:?}").trim_matches('"').to_owned()), "{warning}: {made}");
    }
}

#[test]
fn a_last_line_without_newline_gets_one_in_the_undo_too() {
    // "new crontab file is missing newline before EOF, can't install."
    let (_, _, made) = done(
        adas("@daily a", "@daily a\n@weekly b\n"),
        "cron_add",
        json!({"user": "ada", "schedule": "@weekly", "command": "b"}),
    );
    let expected =
        plan("Add to ada's crontab: @weekly b", "@daily a\n@weekly b\n", installed("ada", "@daily a\n"));
    let warning = "the crontab's last line had no newline, so that cron ignored it; it gets one: @daily a";
    assert_eq!(made, expected.warning(warning));
}

#[test]
fn an_entry_that_is_there_is_no_plan() {
    for (before, schedule) in
        [("*/5 * * * * a\n@daily true\n", "@daily"), ("0\t0 * *\t*  true \n", "@midnight")]
    {
        let arguments = json!({"user": "ada", "schedule": schedule, "command": "true"});
        let (answer, plans) = call(adas(before, before), "cron_add", arguments);
        let (data, notes) = answer.unwrap();
        assert!(plans.is_empty());
        assert!(notes[0].ends_with("says so already: nothing was changed"), "{notes:?}");
        assert_eq!(
            (&data["entries"], &data["entry"]["command"].as_str().unwrap().trim()),
            (&data["entries_before"], &"true")
        );
    }
}

fn dry(target: FakeTarget) -> FakeTarget {
    target.outcome(Ok(confirm::Applied { outputs: Vec::new(), dry_run: true }))
}

#[test]
fn a_dry_run_says_what_would_be() {
    let arguments = json!({"user": "ada", "schedule": "@daily", "command": "true"});
    let (data, _, _) = done(dry(adas("@weekly a\n", "")), "cron_add", arguments.clone());
    assert_eq!(
        (&data["would"], &data["entries_before"], &data["entries"]),
        (&json!("add"), &json!(1), &json!(2))
    );
    let (data, _, _) = done(dry(adas("@daily true\n", "")), "cron_remove", arguments);
    assert_eq!(
        (&data["would"], &data["entries_before"], &data["entries"]),
        (&json!("remove"), &json!(1), &json!(0))
    );
}

#[test]
fn success_is_believed_only_once_it_is_seen() {
    let arguments = json!({"user": "ada", "schedule": "@daily", "command": "true"});
    let (answer, _) = call(adas("@weekly a\n", "@weekly a\n"), "cron_add", arguments.clone());
    let problem = answer.unwrap_err();
    assert_eq!(problem.code, "CRONTAB_NOT_CHANGED");
    assert!(problem.message.contains("1 entries, expected 2"), "{}", problem.message);
    let (answer, _) = call(adas("@daily true\n", "@daily true\n"), "cron_remove", arguments.clone());
    assert_eq!(answer.unwrap_err().code, "CRONTAB_NOT_CHANGED");
    // Somebody else adds a line at the same time.
    let (_, notes, _) = done(adas("", "@daily true\n@hourly b\n"), "cron_add", arguments.clone());
    assert!(notes[0].contains("changed by others"), "{notes:?}");
    // The crontab can't be read after the change.
    let target = reached_as("root").answer(&["crontab", "-u", "ada", "-l"], 0, "", "").answer_after(
        &["crontab", "-u", "ada", "-l"],
        1,
        "",
        "/var/spool/cron/crontabs/ada/: fopen: Permission denied",
    );
    let (_, notes, _) = done(target, "cron_add", arguments);
    assert!(notes[0].contains("Permission denied"), "{notes:?}");
}

#[test]
fn a_wrong_entry_never_becomes_a_plan() {
    let long = "x".repeat(999);
    for (schedule, command, comment, code, part) in [
        ("61 * * * *", "true", "", "INVALID_CRON_EXPRESSION", "`61` is out of range"),
        ("* * * *", "true", "", "INVALID_CRON_EXPRESSION", "only 4 of five fields"),
        ("@dayly", "true", "", "INVALID_CRON_EXPRESSION", "did you mean `@daily`?"),
        ("~ 3 * * *", "true", "", "INVALID_CRON_EXPRESSION", "cronie's"),
        ("* * * * * true", "true", "", "INVALID_CRON_EXPRESSION", "not part of the expression"),
        ("@daily\n* * * * *", "true", "", "INVALID_CRON_EXPRESSION", "more than one line"),
        ("@daily", "", "", "INVALID_COMMAND", "is empty"),
        ("@daily", "  ", "", "INVALID_COMMAND", "is empty"),
        ("@daily", "a\n* * * * * b", "", "INVALID_COMMAND", "U+000A"),
        ("@daily", "a\r", "", "INVALID_COMMAND", "U+000D"),
        ("@daily", "a\0b", "", "INVALID_COMMAND", "U+0000"),
        ("@daily", "a\u{9b}b", "", "INVALID_COMMAND", "U+009B"),
        ("@daily", "-n true", "", "INVALID_COMMAND", "an option"),
        ("@daily", "= true", "", "INVALID_COMMAND", "an assignment"),
        ("* * * * *", "* true", "", "INVALID_COMMAND", "a field too many"),
        ("@daily", &long, "", "INVALID_COMMAND", "999 bytes"),
        ("@daily", "true", "a\n* * * * * b", "INVALID_COMMENT", "control character"),
    ] {
        let arguments = json!({"user": "ada", "schedule": schedule, "command": command, "comment": comment});
        let problem = refusal(adas("", ""), "cron_add", arguments);
        assert_eq!((problem.code.as_str(), problem.category), (code, Category::Validation));
        assert!(problem.message.contains(part), "{}", problem.message);
    }
}

#[test]
fn what_would_not_come_back_as_it_was_is_not_edited() {
    let add = json!({"user": "ada", "schedule": "@daily", "command": "true"});
    let remove = json!({"user": "ada", "command": "true"});
    // On Debian, this is the listing after `printf '*/5 * * * * true\r\n' | crontab -u ada -`.
    let carriage = "# a\n*/5 * * * * true\\r\n0 4 * * * true\n";
    for (tool, arguments) in [("cron_add", add), ("cron_remove", remove)] {
        let latin = b"# a\n# caf\xe9\n*/5 * * * * true\n";
        let target = reached_as("root").answer(&["crontab", "-u", "ada", "-l"], 0, latin, "");
        let problem = refusal(target, tool, arguments.clone());
        assert_eq!(problem.code, "CRONTAB_NOT_UTF8");
        assert!(problem.message.contains("line 2 of ada's"), "{}", problem.message);
        let problem = refusal(adas(carriage, ""), tool, arguments);
        assert_eq!(problem.code, "CRONTAB_CARRIAGE_RETURN");
        assert!(problem.message.contains("line 2 of ada's"), "{}", problem.message);
    }
    let target = reached_as("root").answer(&["crontab", "-u", "ada", "-l"], 0, b"@daily echo \xe9\n", "");
    assert_eq!(list(target, json!({"user": "ada"})).0[0]["command"], "echo \u{fffd}");
}

#[test]
fn cronies_carriage_returns_stay_where_they_are() {
    // With cronie, this is the same listing.
    let before = "*/5 * * * * true\r\n0 4 * * * echo a\tb\\b\n";
    let after = "0 4 * * * echo a\tb\\b\n";
    let mut target = adas(before, after);
    target.distro.family = "rhel".to_owned();
    let (_, _, made) = done(target, "cron_remove", json!({"user": "ada", "schedule": "*/5 * * * *"}));
    assert_eq!(made, plan("Remove from ada's crontab: */5 * * * * true\r", after, installed("ada", before)));
}

#[test]
fn exactly_the_named_entry_is_removed() {
    let before = "MAILTO=x\n# first\n*/5 * * * * sync\n# second\n*/5 * * * * sync\n\n@daily  other\n61 * * * * wrong\n";
    let sync = "MAILTO=x\n# first\n*/5 * * * * sync\n# second\n\n@daily  other\n61 * * * * wrong\n";
    let other = "MAILTO=x\n# first\n*/5 * * * * sync\n# second\n*/5 * * * * sync\n\n61 * * * * wrong\n";
    let wrong = "MAILTO=x\n# first\n*/5 * * * * sync\n# second\n*/5 * * * * sync\n\n@daily  other\n";
    let id = |line| id_of(adas(before, before), "ada", line);
    for (arguments, line, after) in [
        (json!({"id": id(5)}), "*/5 * * * * sync", sync),
        (json!({"id": id(5), "schedule": "*/5 * * * *"}), "*/5 * * * * sync", sync),
        (json!({"command": "other"}), "@daily  other", other),
        (json!({"schedule": "@daily"}), "@daily  other", other),
        (json!({"schedule": "@daily", "command": "other"}), "@daily  other", other),
        (json!({"id": id(8)}), "61 * * * * wrong", wrong),
    ] {
        let mut arguments = arguments;
        arguments["user"] = json!("ada");
        let (data, notes, made) = done(adas(before, after), "cron_remove", arguments.clone());
        let expected = plan(&format!("Remove from ada's crontab: {line}"), after, installed("ada", before));
        assert_eq!(made, expected, "{arguments}");
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!((&data["entries_before"], &data["entries"]), (&json!(4), &json!(3)));
    }
}

#[test]
fn a_crontab_keeps_its_comments_without_any_entry() {
    for (before, after) in [("# why\n@daily a\n", "# why\n"), ("@daily a\n", "")] {
        let (data, _, made) =
            done(adas(before, after), "cron_remove", json!({"user": "ada", "command": "a"}));
        assert_eq!(made, plan("Remove from ada's crontab: @daily a", after, installed("ada", before)));
        assert_eq!(data["entries"], 0);
    }
}

#[test]
fn an_id_alone_finds_whose_it_is() {
    let id = id_of(host(), "admin", 2);
    let after = "*/5 * * * * /home/admin/sync\n0 4 * * 5-1 /home/admin/never\n";
    let target = host().answer_after(&["crontab", "-u", "admin", "-l"], 0, after, "");
    let (data, _, made) = done(target, "cron_remove", json!({"id": id}));
    assert_eq!((&data["user"], &data["entry"]["line"]), (&json!("admin"), &json!(2)));
    let step = Step::run(installed("admin", after)).undo(installed("admin", ADMINS));
    let expected = Change::new("Remove from admin's crontab: */5 * * * * /home/admin/sync")
        .step(step)
        .lock(Lock::Named("crontab".to_owned()));
    assert_eq!(made, expected);
    // The id of another account's entry doesn't match.
    let problem = refusal(host(), "cron_remove", json!({"id": id, "user": "root"}));
    assert_eq!((problem.code.as_str(), problem.remediation.len()), ("ENTRY_NOT_FOUND", 1));
    let problem = refusal(host(), "cron_remove", json!({"id": "0123456789ab"}));
    assert_eq!((problem.code.as_str(), problem.category), ("ENTRY_NOT_FOUND", Category::NotFound));
}

#[test]
fn what_is_not_exactly_one_entry_is_an_error_that_names_them() {
    let problem = refusal(host(), "cron_remove", json!({"user": "admin", "command": "/home/admin/sync"}));
    assert_eq!((problem.code.as_str(), problem.category), ("AMBIGUOUS_ENTRY", Category::Validation));
    let ids = [1, 2].map(|line| id_of(host(), "admin", line));
    assert_eq!(problem.remediation.len(), 2);
    for (remedy, id) in problem.remediation.iter().zip(&ids) {
        assert!(remedy.contains(id.as_str()) && remedy.contains("/home/admin/sync"), "{remedy}");
    }
    let problem = refusal(host(), "cron_remove", json!({"user": "admin", "command": "/home/admin/syncs"}));
    assert_eq!((problem.code.as_str(), problem.category), ("ENTRY_NOT_FOUND", Category::NotFound));
    assert!(problem.remediation[0].contains(&ids[0]), "{:?}", problem.remediation);
    let problem = refusal(host(), "cron_remove", json!({"user": "nobody", "command": "x"}));
    assert_eq!(problem.message, "nobody's crontab has no entries");
    for arguments in [json!({}), json!({"user": "admin"})] {
        assert_eq!(refusal(host(), "cron_remove", arguments).code, "INVALID_ARGUMENTS");
    }
}

#[test]
fn a_job_of_the_system_is_not_taken_for_one_of_an_account() {
    for (arguments, place) in [
        (json!({"command": "cd / && run-parts --report /etc/cron.hourly"}), "line 18 of /etc/crontab"),
        (json!({"schedule": "10 3 * * *"}), "line 2 of /etc/cron.d/e2scrub_all"),
        (json!({"command": "/etc/cron.daily/dpkg"}), "/etc/cron.daily/dpkg"),
    ] {
        let problem = refusal(host(), "cron_remove", arguments);
        assert_eq!(problem.code, "SYSTEM_CRONTAB");
        assert!(problem.message.contains(place), "{}", problem.message);
    }
}

/// A plan that writes a crontab of the system.
fn written(summary: &str, path: &str, text: &str) -> Change {
    Change::new(summary).step(Step::write(path, text)).lock(Lock::Named("crontab".to_owned()))
}

/// Written by hand, as packages write such files.
const BACKUP: &str = "# nightly\nMAILTO=ops@example.org\n5 4 * * * backup /opt/backup/run\n\n# end";

#[test]
fn a_job_of_the_system_is_added_to_its_file_with_its_account() {
    let path = "/etc/cron.d/backup";
    let target = || reached_as("root").file(path, BACKUP);
    let arguments = json!({"file": path, "schedule": "@daily", "command": "sync", "comment": "why"});
    let (data, notes, made) = done(target(), "cron_add", arguments.clone());
    let after = format!("{BACKUP}\n# why\n@daily root sync\n");
    let expected = written(&format!("Add to {path}: @daily root sync"), path, &after)
        .warning("the command runs as root")
        .warning("the command's output is mailed to ops@example.org (MAILTO)")
        .warning("the crontab's last line had no newline, so that cron ignored it; it gets one: # end");
    assert_eq!(made, expected);
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!((&data["user"], &data["entry"]["source"]), (&json!("root"), &json!(path)));
    assert_eq!((&data["entries_before"], &data["entries"]), (&json!(1), &json!(2)));

    let arguments =
        json!({"file": path, "user": "backup", "schedule": "5 4 * * *", "command": "/opt/backup/run"});
    let (answer, plans) = call(target(), "cron_add", arguments);
    assert!(plans.is_empty() && answer.unwrap().1[0].contains("line 3 says so already"));

    // The file is new.
    let arguments =
        json!({"file": "/etc/cron.d/new", "user": "ada", "schedule": "@daily", "command": "sync"});
    let (_, _, made) = done(reached_as("root"), "cron_add", arguments);
    let expected = written("Add to /etc/cron.d/new: @daily ada sync", "/etc/cron.d/new", "@daily ada sync\n");
    assert_eq!(made, expected);
}

#[test]
fn a_file_that_cron_would_not_read_gets_no_job() {
    for file in [
        "/etc/cron.d/my.job",
        "/etc/cron.d/",
        "/etc/cron.d/a/b",
        "/etc/cron.d/../x",
        "/etc/anacrontab",
        "crontab",
        "",
    ] {
        let arguments = json!({"file": file, "schedule": "@daily", "command": "sync"});
        assert_eq!(refusal(reached_as("root"), "cron_add", arguments).code, "INVALID_CRONTAB_FILE", "{file}");
    }
    let arguments = json!({"file": "/etc/crontab", "user": "a b", "schedule": "@daily", "command": "sync"});
    assert_eq!(refusal(reached_as("root"), "cron_add", arguments).code, "INVALID_USER");
}

#[test]
fn a_job_of_the_system_is_changed_and_removed_by_its_id() {
    let path = "/etc/cron.d/backup";
    let target = || {
        reached_as("root").file(path, BACKUP).file("/var/spool/cron/crontabs/root", "").answer(
            &["crontab", "-u", "root", "-l"],
            1,
            "",
            "no crontab for root\n",
        )
    };
    let (items, _) = list(target(), json!({}));
    let item = items.iter().find(|item| item["source"] == path).unwrap();
    assert_eq!((&item["user"], &item["line"]), (&json!("backup"), &json!(3)));
    let id = item["id"].as_str().unwrap().to_owned();

    let (data, _, made) = done(target(), "cron_modify", json!({"id": id, "schedule": "30 4 * * *"}));
    let after = format!("{}\n", BACKUP.replace("5 4 * * *", "30 4 * * *"));
    let expected = written(&format!("Change in {path}: 30 4 * * * backup /opt/backup/run"), path, &after)
        .warning("the line is now: 5 4 * * * backup /opt/backup/run")
        .warning("the command's output is mailed to ops@example.org (MAILTO)")
        .warning("the crontab's last line had no newline, so that cron ignored it; it gets one: # end");
    assert_eq!(made, expected);
    assert_eq!((&data["user"], &data["entry"]["schedule"]), (&json!("backup"), &json!("30 4 * * *")));

    let (data, _, made) = done(target(), "cron_remove", json!({"id": id}));
    let after = "# nightly\nMAILTO=ops@example.org\n\n# end\n";
    assert_eq!(made.steps(), written("", path, after).steps());
    assert_eq!((&data["entries_before"], &data["entries"]), (&json!(1), &json!(0)));
    let (_, _, made) = done(target(), "cron_remove", json!({"file": path, "schedule": "5 4 * * *"}));
    assert_eq!(made.steps(), written("", path, after).steps());
    // The line is another account's.
    let arguments = json!({"file": path, "user": "root", "schedule": "5 4 * * *"});
    assert_eq!(refusal(target(), "cron_remove", arguments).code, "ENTRY_NOT_FOUND");
}

#[test]
fn a_line_of_the_system_without_an_account_gets_no_command() {
    let path = "/etc/cron.d/backup";
    let target = || {
        reached_as("root").file(path, "5 4 * * *\n").file("/var/spool/cron/crontabs/root", "").answer(
            &["crontab", "-u", "root", "-l"],
            1,
            "",
            "no crontab for root\n",
        )
    };
    let (items, _) = list(target(), json!({}));
    let item = items.iter().find(|item| item["source"] == path).unwrap();
    let arguments = json!({"id": item["id"], "command": "root /bin/true"});
    assert_eq!(refusal(target(), "cron_modify", arguments).code, "INCOMPLETE_ENTRY");
}

#[test]
fn a_line_is_changed_in_its_place_and_every_other_byte_stays() {
    let before = "# a\n@daily  true \n\n@weekly other\n";
    let after = "# a\n@hourly true\n\n@weekly other\n";
    let id = id_of(adas(before, before), "ada", 2);
    let target = |text: &str| {
        FakeTarget::new()
            .recording("==> /etc/passwd <==\nada:x:1000:1000::/home/ada:/bin/sh\n")
            .file("/var/spool/cron/crontabs/ada", "")
            .account("root")
            .answer(&["crontab", "-u", "ada", "-l"], 0, before, "")
            .answer_after(&["crontab", "-u", "ada", "-l"], 0, text, "")
    };
    let (data, notes, made) = done(target(after), "cron_modify", json!({"id": id, "schedule": "@hourly"}));
    let expected = plan("Change in ada's crontab: @hourly true", after, installed("ada", before))
        .warning("the line is now: @daily  true ");
    assert_eq!(made, expected);
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(
        (&data["entry"]["schedule"], &data["entries_before"], &data["entries"]),
        (&json!("@hourly"), &json!(2), &json!(2))
    );
    let (data, _, _) = done(dry(target("")), "cron_modify", json!({"id": id, "command": "false"}));
    assert_eq!((&data["would"], &data["entry"]["command"]), (&json!("modify"), &json!("false")));
    // It is the same already.
    let (answer, plans) = call(target(""), "cron_modify", json!({"id": id, "schedule": "0 0 * * *"}));
    assert!(plans.is_empty() && answer.unwrap().1[0].contains("says so already"));
}

#[test]
fn what_is_wrong_is_never_changed() {
    let before = "@daily true\n";
    let target = || {
        FakeTarget::new()
            .recording("==> /etc/passwd <==\nada:x:1000:1000::/home/ada:/bin/sh\n")
            .file("/var/spool/cron/crontabs/ada", "")
            .account("root")
            .answer(&["crontab", "-u", "ada", "-l"], 0, before, "")
    };
    let id = id_of(adas(before, before), "ada", 1);
    for (arguments, code) in [
        (json!({"id": id}), "INVALID_ARGUMENTS"),
        (json!({"id": id, "schedule": "61 * * * *"}), "INVALID_CRON_EXPRESSION"),
        (json!({"id": id, "command": ""}), "INVALID_COMMAND"),
        (json!({"id": id, "command": "a\n* * * * * b"}), "INVALID_COMMAND"),
        (json!({"id": "0123456789ab", "schedule": "@hourly"}), "ENTRY_NOT_FOUND"),
    ] {
        assert_eq!(refusal(target(), "cron_modify", arguments.clone()).code, code, "{arguments}");
    }
}

#[test]
fn a_huge_crontab_is_listed_and_edited() {
    let before: String = (0..10_000).map(|job| format!("0 4 * * * /bin/true {job}\n")).collect();
    let (items, _) = list(adas(&before, ""), json!({"user": "ada"}));
    assert_eq!(items.len(), 10_000);
    let after = before.replace("/bin/true 5000\n", "\n").replacen("0 4 * * * \n", "", 1);
    let arguments = json!({"user": "ada", "command": "/bin/true 5000"});
    let (data, _, made) = done(adas(&before, &after), "cron_remove", arguments);
    let expected =
        plan("Remove from ada's crontab: 0 4 * * * /bin/true 5000", &after, installed("ada", &before));
    assert!(made == expected);
    assert_eq!(data["entries"], 9_999);
    let problem = refusal(adas(&before, ""), "cron_remove", json!({"user": "ada", "schedule": "0 4 * * *"}));
    assert_eq!(problem.remediation.len(), 11);
    assert_eq!(problem.remediation[10], "9990 more: cron_list");
}

#[test]
fn many_accounts_are_asked_up_to_a_limit() {
    let passwd: String = (0..510).map(|user| format!("u{user}:x:{user}:{user}::/:/bin/sh\n")).collect();
    let odd = "+::::::\n-x::::::\n0day:x:1:1::/:/bin/sh\nu0:x:1:1::/:/bin/sh\n";
    let target = FakeTarget::new().recording(&format!("==> /etc/passwd <==\n{odd}{passwd}")).account("root");
    let target = (0..500).fold(target, |target, user| {
        target.answer(&["crontab", "-u", &format!("u{user}"), "-l"], 0, "@daily a\n", "")
    });
    let (items, notes) = list(target, json!({}));
    assert_eq!(items.len(), 500);
    assert_eq!(
        notes,
        [
            "crontabs that were not read, for the account's name: 0day",
            "10 accounts were not asked for: only the first 500 of /etc/passwd are"
        ]
    );
}

#[test]
fn a_directory_full_of_files_is_looked_at_up_to_a_limit() {
    let files: String =
        (0..151).map(|file| format!("==> /etc/cron.d/f{file} <==\n@daily root true\n\n")).collect();
    let target = FakeTarget::new().recording(&files).account("root");
    let (items, notes) = list(target, json!({}));
    assert_eq!(items.len(), 150);
    assert!(notes.contains(&"only 150 of 151 files of /etc/cron.d were looked at".to_owned()), "{notes:?}");
}

#[test]
fn what_cannot_be_read_is_noted_and_the_rest_is_listed() {
    // No output is recorded for `crontab -l`, which would be another problem.
    let target = reached_as("admin");
    let (items, notes) = list(target, json!({}));
    assert!(items.iter().all(|item| item["source"] != "crontab") && items.len() == 9, "{items:?}");
    assert!(notes.iter().any(|note| note.starts_with("crontabs that were not read: admin")), "{notes:?}");
}

#[test]
fn a_host_without_anything_of_cron_is_an_empty_list() {
    let target = FakeTarget::new().account("root");
    let (items, notes) = list(target, json!({}));
    assert!(items.is_empty());
    assert_eq!(notes, ["accounts' crontabs were not looked for: /etc/passwd: no such file or directory"]);
}
