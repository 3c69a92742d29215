//! Tests on a real host what the tools that change crontabs show, do, undo and refuse. crontab itself says what they
//! have done.

use linux_sysadmin_tests::{Changing, Expected, way};
use serde_json::{Value, json};

/// A crontab with two jobs, comments, a variable, and a line that only looks like a job.
const CRONTAB: &str = "\
# Nightly things.
MAILTO=ops@example.org

0 3 * * * /bin/true nightly
# */5 * * * * /bin/false
@weekly /bin/true weekly
";

const CLEAN: &str = r"
while mountpoint --quiet /var/spool/cron/crontabs; do umount --lazy /var/spool/cron/crontabs; done
for user in root admin lsa-plain; do crontab -u $user -r; done
rm -f /var/spool/cron/crontabs/tmp.* /etc/cron.deny /etc/cron.allow /run/lsa-*
userdel --force --remove lsa-plain
";

/// Files that other programs write meanwhile.
const WRITTEN_TO: &[Expected] = &[
    Expected { name: "/var/log/syslog", why: "crontab logs that it listed a crontab" },
    Expected { name: "/var/log/cron.log", why: "crontab logs that it listed a crontab" },
    Expected { name: "/var/lib/fail2ban/fail2ban.sqlite3", why: "fail2ban takes note of the time" },
];
const ROOTS: Expected = Expected { name: "/var/spool/cron/crontabs/root", why: "it is the tool's to change" };
const ADMINS: Expected =
    Expected { name: "/var/spool/cron/crontabs/admin", why: "it is the tool's to change" };

fn changing(test: &str) -> Option<Changing> {
    let changing = Changing::by(way(), test, "", CLEAN)?;
    changing.host().put("/run/lsa-crontab", CRONTAB.as_bytes());
    changing.sh("crontab -u admin /run/lsa-crontab");
    Some(changing)
}

fn add(user: &str, schedule: &str, command: &str) -> Value {
    json!({"user": user, "schedule": schedule, "command": command})
}

fn crontab(machine: &Changing, user: &str) -> String {
    machine.sh(&format!("crontab -u {user} -l"))
}

fn sha256(machine: &Changing, text: &str) -> String {
    machine.host().put("/run/lsa-text", text.as_bytes());
    machine.sh("sha256sum /run/lsa-text").split(' ').next().expect("a sum").to_owned()
}

#[tokio::test]
async fn every_tool_shows_without_changing_anything_exactly_what_it_then_does() {
    let test = "every_tool_shows_without_changing_anything_exactly_what_it_then_does";
    let Some(machine) = changing(test) else { return };
    let mut client = machine.serve_all_but_critical().await;
    // Each row has the tool's arguments, the account, and the whole crontab before and afterwards.
    let commented = json!({
        "user": "admin", "schedule": "*/10  1-3 * * mon", "command": "/bin/echo 'a b' > /dev/null; true $(date +\\%F)",
        "comment": "Why; $(not run)",
    });
    let with_both = format!(
        "{CRONTAB}# Why; $(not run)\n*/10 1-3 * * mon /bin/echo 'a b' > /dev/null; true $(date +\\%F)\n"
    );
    let without_weekly = CRONTAB.replace("@weekly /bin/true weekly\n", "");
    for (tool, arguments, user, before, after, expected) in [
        ("cron_add", commented, "admin", CRONTAB, with_both.as_str(), ADMINS),
        (
            "cron_remove",
            json!({"user": "admin", "command": "/bin/echo 'a b' > /dev/null; true $(date +\\%F)"}),
            "admin",
            &with_both,
            &format!("{CRONTAB}# Why; $(not run)\n"),
            ADMINS,
        ),
        (
            "cron_remove",
            json!({"user": "admin", "schedule": "@weekly"}),
            "admin",
            &format!("{CRONTAB}# Why; $(not run)\n"),
            &format!("{without_weekly}# Why; $(not run)\n"),
            ADMINS,
        ),
        ("cron_add", add("root", "@daily", "/bin/true"), "root", "", "@daily /bin/true\n", ROOTS),
        // Where no user is named, it is the server's own account.
        (
            "cron_add",
            json!({"schedule": "5 4 * * *", "command": "/bin/false"}),
            "root",
            "@daily /bin/true\n",
            "@daily /bin/true\n5 4 * * * /bin/false\n",
            ROOTS,
        ),
    ] {
        let preview = machine.shows(&mut client, tool, &arguments).await;
        let mut undo =
            json!({"run": format!("crontab -u {user} -"), "stdin_sha256": sha256(&machine, before)});
        if before.is_empty() {
            undo = json!(format!("crontab -u {user} -r"));
        }
        assert_eq!(preview["command"], format!("crontab -u {user} -"), "{tool} {arguments}: {preview}");
        assert_eq!(preview["stdin_sha256"], sha256(&machine, after), "{tool} {arguments}: {preview}");
        assert_eq!(preview["undo"], json!([undo]), "{tool} {arguments}: {preview}");
        let diff = preview["stdin"]["diff"].as_str().expect("a diff");
        let marked = |mark: char| {
            diff.lines().skip(2).filter_map(move |line| line.strip_prefix(mark)).collect::<Vec<_>>()
        };
        let only = |here: &str, there: &str| {
            here.lines()
                .filter(|line| !there.lines().any(|other| other == *line))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (marked('+'), marked('-')),
            (
                only(after, before).iter().map(String::as_str).collect(),
                only(before, after).iter().map(String::as_str).collect(),
            ),
            "{diff}"
        );
        assert_eq!(preview.get("steps"), None, "{preview}");
        let warns_of_root = preview["warnings"].to_string().contains("runs as root");
        assert_eq!(warns_of_root, user == "root", "{preview}");

        let snapshot = machine.snapshot();
        machine.does(&mut client, tool, &arguments, &preview).await;
        assert_eq!(crontab(&machine, user), after, "{tool} {arguments}");
        machine.is_still_but(&snapshot, &[expected], tool);
    }
    machine.audit_is_valid("root", "root");
}

#[tokio::test]
async fn a_dry_run_touches_no_file_but_the_programs_own() {
    let Some(machine) = changing("a_dry_run_touches_no_file_but_the_programs_own") else { return };
    let mut client = machine.serve_default().await;
    let calls = [
        ("cron_add", json!({"user": "admin", "schedule": "@daily", "command": "true"})),
        ("cron_add", json!({"schedule": "@daily", "command": "true"})),
        ("cron_remove", json!({"user": "admin", "schedule": "@weekly"})),
    ];
    machine.dry_runs_touch_only(&mut client, &calls, WRITTEN_TO).await;
}

#[tokio::test]
async fn an_entry_that_is_there_already_is_not_added_twice() {
    let Some(machine) = changing("an_entry_that_is_there_already_is_not_added_twice") else { return };
    let mut client = machine.serve_default().await;
    for arguments in [
        add("admin", "0 3 * * *", "/bin/true nightly"),
        add("admin", "00 03 * * *", "/bin/true nightly"),
        json!({"user": "admin", "schedule": "@weekly", "command": "/bin/true weekly", "comment": "again"}),
    ] {
        machine.holds_already(&mut client, "cron_add", &arguments).await;
    }
    assert_eq!(crontab(&machine, "admin"), CRONTAB);
}

#[tokio::test]
async fn what_fits_no_entry_or_several_is_not_removed() {
    let Some(machine) = changing("what_fits_no_entry_or_several_is_not_removed") else { return };
    let mut client = machine.serve_default().await;
    machine.sh("(crontab -u admin -l; echo '1 1 * * * /bin/true nightly') | crontab -u admin -");
    let before = machine.snapshot();
    for (arguments, code) in [
        (json!({"user": "admin", "command": "/bin/true nightly"}), "AMBIGUOUS_ENTRY"),
        (json!({"user": "admin", "command": "/bin/true night"}), "ENTRY_NOT_FOUND"),
        (json!({"user": "admin", "command": "/bin/false"}), "ENTRY_NOT_FOUND"),
        (json!({"user": "root", "schedule": "@weekly"}), "ENTRY_NOT_FOUND"),
        (json!({"id": "000000000000"}), "ENTRY_NOT_FOUND"),
        (json!({"user": "admin"}), "INVALID_ARGUMENTS"),
    ] {
        let envelope = machine.refuses(&mut client, "cron_remove", &arguments, code).await;
        if code == "AMBIGUOUS_ENTRY" {
            assert_eq!(envelope["remediation"].as_array().map(Vec::len), Some(2), "{envelope}");
        }
    }
    machine.is_still(&before, "nothing was removed");
    assert_eq!(machine.begun("root"), 0);
}

#[tokio::test]
async fn what_crontab_refuses_leaves_the_crontab_as_it_was_and_is_told_in_its_words() {
    let test = "what_crontab_refuses_leaves_the_crontab_as_it_was_and_is_told_in_its_words";
    let Some(machine) = changing(test) else { return };
    // The policy can't judge such a crontab, so the default server would ask.
    let mut client = machine.serve_all_but_critical().await;
    // crontab would never accept this line, and cron itself ignores it.
    machine.sh("echo 'no line of a crontab' >> /var/spool/cron/crontabs/admin");
    for (tool, arguments) in [
        ("cron_add", add("admin", "@daily", "/bin/true")),
        ("cron_remove", json!({"user": "admin", "schedule": "@weekly"})),
    ] {
        let before = machine.snapshot();
        let shown = machine.shows(&mut client, tool, &arguments).await;
        let envelope = client.envelope(tool, arguments).await;
        machine.failed(&envelope, "CRONTAB_REFUSED", &before, &[], tool);
        assert!(envelope["message"].as_str().is_some_and(|said| said.contains("bad minute")), "{envelope}");
        let warns = shown["warnings"].to_string().contains("no line of a crontab");
        assert_eq!(warns, tool == "cron_add", "{shown}");
    }
    machine.audit_is_valid("root", "root");
}

#[tokio::test]
async fn a_full_disk_leaves_the_crontab_as_it_was() {
    let Some(machine) = changing("a_full_disk_leaves_the_crontab_as_it_was") else { return };
    let mut client = machine.serve_default().await;
    machine.sh("set -e
        mount -t tmpfs -o size=8k,mode=1730,gid=crontab lsa-full /var/spool/cron/crontabs
        crontab -u admin /run/lsa-crontab
        ! dd if=/dev/zero of=/var/spool/cron/crontabs/lsa-filler bs=4k 2>/dev/null");
    for (tool, arguments) in [
        ("cron_add", add("admin", "@daily", "/bin/true")),
        ("cron_add", add("root", "@daily", "/bin/true")),
        ("cron_remove", json!({"user": "admin", "schedule": "@weekly"})),
    ] {
        let before = machine.snapshot();
        let envelope = client.envelope(tool, arguments).await;
        machine.failed(&envelope, "CRONTAB_REFUSED", &before, &[], tool);
        assert!(
            envelope["message"].as_str().is_some_and(|said| said.contains("No space left")),
            "{envelope}"
        );
    }
    assert_eq!(crontab(&machine, "admin"), CRONTAB);
}

#[tokio::test]
async fn who_may_not_use_cron_is_told_where_that_is_written() {
    let Some(machine) = changing("who_may_not_use_cron_is_told_where_that_is_written") else { return };
    machine.sh("useradd lsa-plain; echo lsa-plain > /etc/cron.deny");
    let mut client = machine.serve_shipped("lsa-plain", "lsa-plain").await;
    let before = machine.snapshot();
    let own = json!({"schedule": "@daily", "command": "/bin/true"});
    let envelope = client.envelope("cron_add", own).await;
    machine.is_still(&before, "cron.deny");
    assert_eq!(envelope["error_code"], "CRONTAB_REFUSED", "{envelope}");
    assert_eq!(envelope["error_category"], "privilege", "{envelope}");
    assert!(envelope["remediation"].to_string().contains("/etc/cron.deny"), "{envelope}");
    assert_eq!(machine.begun("lsa-plain"), 0);
}

#[tokio::test]
async fn what_would_be_more_than_one_line_is_refused() {
    let Some(machine) = changing("what_would_be_more_than_one_line_is_refused") else { return };
    let mut client = machine.serve_default().await;
    let before = machine.snapshot();
    // Debian's cron takes lines of at most 998 bytes. Fedora's takes a hundred times as much, and the module goes by the
    // distribution.
    let long = if way().host().starts_with("rhel") { "-x".to_owned() } else { "x".repeat(1000) };
    let fields = json!({"user": "admin", "schedule": "@daily", "command": "/bin/true"});
    for (field, values, code) in [
        (
            "user",
            &[
                "",
                "-l",
                "-r",
                "--help",
                "../root",
                "/etc/passwd",
                "root;id",
                "$(id)",
                "a b",
                "root\n",
                "root\nadmin",
                "*",
            ][..],
            "INVALID_USER",
        ),
        ("user", &["lsa-no-such-account"], "USER_NOT_FOUND"),
        (
            "schedule",
            &[
                "* * * * *\n* * * * * root",
                "* * * * * root",
                "@daily /bin/evil",
                "$(id)",
                "-",
                "@nonsense",
                "",
                "* * * *;",
                "61 * * * *",
                "PATH=/tmp",
            ],
            "INVALID_CRON_EXPRESSION",
        ),
        (
            "command",
            &["a\nb", "a\r\nb", "a\u{0}b", "", " ", "-x", "a\tb", "a\u{1b}[2Jb", &long],
            "INVALID_COMMAND",
        ),
        ("comment", &["a\n* * * * * /bin/evil", "a\rb", "a\u{0}b"], "INVALID_COMMENT"),
    ] {
        for value in values {
            let mut arguments = fields.clone();
            arguments[field] = json!(value);
            machine.refuses(&mut client, "cron_add", &arguments, code).await;
        }
    }
    for (user, code) in [
        ("-r", "INVALID_USER"),
        ("../root", "INVALID_USER"),
        ("root\n", "INVALID_USER"),
        ("lsa-no-such-account", "USER_NOT_FOUND"),
    ] {
        let arguments = json!({"user": user, "schedule": "@weekly"});
        machine.refuses(&mut client, "cron_remove", &arguments, code).await;
    }
    for (field, value) in [
        ("id", "$(id)"),
        ("id", "-r"),
        ("command", "/bin/true weekly\n@daily /bin/evil"),
        ("schedule", "@weekly\n@daily"),
    ] {
        let mut arguments = json!({"user": "admin"});
        arguments[field] = json!(value);
        machine.refuses(&mut client, "cron_remove", &arguments, "ENTRY_NOT_FOUND").await;
    }
    machine.is_still(&before, "nothing was let through");
    assert_eq!(machine.begun("root"), 0);
}

#[tokio::test]
async fn an_account_with_sudo_changes_roots_crontab_and_its_own_without() {
    let Some(machine) = changing("an_account_with_sudo_changes_roots_crontab_and_its_own_without") else {
        return;
    };
    let mut client = machine.serve_shipped("admin", "admin").await;
    for (user, line) in [("root", "sudo -n crontab -u root -"), ("admin", "crontab -")] {
        let arguments = add(user, "@daily", "/bin/true");
        let mut dry_run = arguments.clone();
        dry_run["dry_run"] = json!(true);
        let shown = client.envelope("cron_add", dry_run).await;
        assert_eq!(shown["preview"]["command"], line, "{shown}");
        let done = client.envelope("cron_add", arguments).await;
        assert_eq!(done["status"], "success", "{done}");
        assert!(crontab(&machine, user).ends_with("@daily /bin/true\n"));
        let done = client.envelope("cron_remove", json!({"user": user, "schedule": "@daily"})).await;
        assert_eq!(done["status"], "success", "{done}");
    }
    assert_eq!((crontab(&machine, "root"), crontab(&machine, "admin")), (String::new(), CRONTAB.to_owned()));
    machine.audit_is_valid("admin", "admin");
}

#[tokio::test]
async fn an_account_without_sudo_changes_its_own_crontab_and_no_other() {
    let Some(machine) = changing("an_account_without_sudo_changes_its_own_crontab_and_no_other") else {
        return;
    };
    machine.sh("useradd lsa-plain");
    let mut client = machine.serve_shipped("lsa-plain", "lsa-plain").await;
    let before = machine.snapshot();
    for (tool, arguments) in [
        ("cron_add", add("root", "@daily", "/bin/true")),
        ("cron_add", add("admin", "@daily", "/bin/true")),
        ("cron_remove", json!({"user": "admin", "schedule": "@weekly"})),
    ] {
        let envelope = client.envelope(tool, arguments).await;
        machine.is_still(&before, tool);
        assert_eq!(envelope["error_code"], "PRIVILEGE_REQUIRED", "{tool}: {envelope}");
        assert!(envelope["remediation"].to_string().contains("modules sudoers"), "{tool}: {envelope}");
    }
    assert_eq!(machine.begun("lsa-plain"), 0);
    let own = json!({"schedule": "@daily", "command": "/bin/true"});
    let done = client.envelope("cron_add", own).await;
    assert_eq!(done["status"], "success", "{done}");
    assert_eq!(crontab(&machine, "lsa-plain"), "@daily /bin/true\n");
}

#[tokio::test]
async fn a_job_that_another_program_adds_while_somebody_is_asked_is_not_lost() {
    let test = "a_job_that_another_program_adds_while_somebody_is_asked_is_not_lost";
    let Some(machine) = changing(test) else { return };
    machine.configure("root", "safety:\n  confirmation_threshold: low\n");
    let mut client = machine.serve_default().await;
    let arguments = add("admin", "@daily", "/bin/true ours");
    let mut confirmed = arguments.clone();
    confirmed["confirmed"] = json!(true);
    let asked = client.envelope("cron_add", arguments.clone()).await;
    assert_eq!(asked["status"], "confirmation_required", "{asked}");
    machine.sh("(crontab -u admin -l; echo '@daily /bin/true theirs') | crontab -u admin -");
    let before = machine.snapshot();
    let stale = client.envelope("cron_add", confirmed.clone()).await;
    assert_eq!(stale["error_code"], "PLAN_STALE", "{stale}");
    assert!(stale["differs"].to_string().contains("theirs"), "{stale}");
    machine.is_still(&before, "the plan was for another crontab");
    assert_eq!(machine.begun("root"), 0);
    // The question is now about the crontab as it is.
    let asked = client.envelope("cron_add", arguments).await;
    assert_eq!(asked["status"], "confirmation_required", "{asked}");
    let done = client.envelope("cron_add", confirmed).await;
    assert_eq!(done["status"], "success", "{done}");
    assert_eq!(
        crontab(&machine, "admin"),
        format!("{CRONTAB}@daily /bin/true theirs\n@daily /bin/true ours\n")
    );
    machine.audit_is_valid("root", "root");
}
