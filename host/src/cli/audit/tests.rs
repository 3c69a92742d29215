use std::fs;

use clap::Parser;
use tempfile::TempDir;

use super::*;
use host_audit::{AuditLog as Log, ChangeBegun, Durability, Event, ModuleUsed, Outcome, Settings};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    audit: Audit,
}

/// Runs a command. Gives whether all was right, and what it printed on stdout and stderr.
fn run(directory: &Path, args: &[&str]) -> (bool, String, String) {
    let line = Line::try_parse_from([&["audit"], args].concat()).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let all_right = match line.audit.command {
        Command::Verify(command) => command.run(directory, &mut out, &mut err),
        Command::Show(command) => command.run(directory, Screen::plain(80), &mut out, &mut err),
        Command::Export(command) => command.run(directory, &mut out, &mut err),
        Command::Recover(_) => panic!("its tests are beside it"),
    };
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (all_right.unwrap(), text(out), text(err))
}

/// A log of thirty calls, one that a module made, and a change. One of the calls has characters that a terminal would act
/// upon.
fn log() -> (TempDir, Log) {
    let home = tempfile::tempdir().unwrap();
    let log =
        host_audit::examples::with_calls(home.path(), 29, Settings { rotate_bytes: 8 << 10, keep: 200 });
    let Event::Call(mut evil) = host_audit::examples::call("\u{1b}[2J\nforged line") else { panic!() };
    evil.tool = "evil\u{1b}[2J\nforged line".to_owned();
    evil.status = host_audit::CallStatus::Error;
    log.append(&Event::Call(evil), Durability::Lazy).unwrap();
    let Event::Call(mut within) = host_audit::examples::call("within") else { panic!() };
    within.tool = "others_look".to_owned();
    within.called_by = within.module.take().map(|module| ModuleUsed { name: "triage".to_owned(), ..module });
    log.append(&Event::Call(within), Durability::Lazy).unwrap();
    let begun = Event::ChangeBegun(Box::new(host_audit::examples::begun("c1")));
    log.append(&begun, Durability::Synced).unwrap();
    (home, log)
}

#[test]
fn a_log_that_is_what_was_written_is_said_to_be_with_what_is_worth_knowing() {
    let (home, log) = log();
    let (right, out, err) = run(home.path(), &["verify"]);
    assert!(right && err.is_empty());
    let records = out.split(' ').next().unwrap();
    assert!(out.starts_with(&format!("{records} records, seq 1 to {records}, valid\n")), "{out}");
    assert!(out.contains("  changes being made: 1\n"), "{out}");
    log.append(&host_audit::examples::ended("c1", Outcome::Done), Durability::Synced).unwrap();
    assert!(!run(home.path(), &["verify"]).1.contains("changes"));
    let none = tempfile::tempdir().unwrap();
    let (right, out, _) = run(none.path(), &["verify"]);
    assert!(right && out.contains("no record"), "{out}");
}

#[test]
fn heads_that_name_no_record_are_no_comparison() {
    let (home, _log) = log();
    let heads = home.path().join("heads");
    fs::write(&heads, "-- No entries --\n").unwrap();
    let (right, out, err) = run(home.path(), &["verify", "--heads", heads.to_str().unwrap()]);
    assert!(!right && out.contains("valid") && err.contains("the other log names no record"), "{out}{err}");
    let (right, _, err) = run(home.path(), &["verify"]);
    assert!(right && err.is_empty(), "{err}");
}

#[test]
fn damage_and_heads_that_do_not_fit_are_refused() {
    let (home, _log) = log();
    let heads = home.path().join("heads");
    fs::write(&heads, format!("audit head 1 {}\n", "a".repeat(64))).unwrap();
    let (right, out, err) = run(home.path(), &["verify", "--heads", heads.to_str().unwrap()]);
    assert!(!right && out.is_empty());
    assert!(err.replace("\n  ", " ").contains(".jsonl:1: expected hash aaaa"), "{err}");
    let current = home.path().join("audit.jsonl");
    fs::write(&current, fs::read_to_string(&current).unwrap().replacen("web1", "web2", 1)).unwrap();
    let (right, _, err) = run(home.path(), &["verify"]);
    assert!(!right && err.contains("audit.jsonl:"), "{err}");
    let (right, out, err) = run(home.path(), &["export"]);
    assert!(
        !right && !out.is_empty() && err.contains("audit verify"),
        "the rest is shown all the same: {err}"
    );
}

/// The rows of a list, without its heading.
fn rows(out: &str) -> Vec<&str> {
    assert!(out.lines().all(|line| line.chars().count() <= 80 && !line.contains('\u{1b}')), "{out}");
    match out.trim_start().starts_with("NR  WHEN") {
        true => out.lines().skip(1).collect(),
        false => {
            assert!(out.ends_with("on record\n") || out.contains("--looks"), "{out}");
            Vec::new()
        }
    }
}

#[test]
fn a_change_has_one_line_that_says_when_who_where_what_and_what_came_of_it() {
    let (home, log) = log();
    let (right, out, err) = run(home.path(), &["show"]);
    assert!(right && err.is_empty(), "{err}");
    // This process makes the change.
    assert!(
        matches!(rows(&out)[..], [row] if row.contains("Z  claude-code  web1  Restart the nginx service  running")),
        "{out}"
    );
    for (outcome, shown) in [
        (Outcome::Undone, "undone"),
        (Outcome::PartlyUndone, "partly undone"),
        (Outcome::Uncertain, "uncertain"),
        (Outcome::Done, "done"),
    ] {
        log.append(&host_audit::examples::ended("c1", outcome), Durability::Synced).unwrap();
        let (_, out, _) = run(home.path(), &["show"]);
        assert!(matches!(rows(&out)[..], [row] if row.ends_with(&format!("  {shown}"))), "{shown}: {out}");
    }
    let recovered = host_audit::ChangeRecovered {
        id: "c1".to_owned(),
        by: "root".to_owned(),
        restored: Vec::new().into(),
        not_restored: Vec::new().into(),
    };
    log.append(&Event::ChangeRecovered(recovered), Durability::Synced).unwrap();
    assert!(rows(&run(home.path(), &["show"]).1)[0].ends_with("  recovered"));
    let person = host_audit::DecidedBy::Terminal(host_audit::Person { uid: 1000, account: "ada".to_owned() });
    let plan =
        host_audit::MaybeOmitted::Omitted(host_audit::Omitted { omitted_bytes: 9, sha256: "a".repeat(64) });
    let begun = ChangeBegun { decided_by: Some(person), plan, ..host_audit::examples::begun("c2") };
    log.append(&Event::ChangeBegun(Box::new(begun)), Durability::Synced).unwrap();
    let (_, out, _) = run(home.path(), &["show"]);
    assert!(rows(&out)[1].contains("Z  ada          web1  service_restart"), "{out}");
}

#[test]
fn calls_that_changed_nothing_are_listed_on_request_and_nothing_in_them_is_hidden() {
    let (home, _log) = log();
    let (_, out, _) = run(home.path(), &["show", "--looks"]);
    let rows = rows(&out);
    assert_eq!(rows.len(), 20, "{out}");
    assert!(
        rows[0].contains("Z  claude-code  web1  service_status") && rows[0].ends_with("  success"),
        "{out}"
    );
    assert!(out.contains("  others_look for triage  "), "{out}");
    assert!(out.contains("evil\\u{1b}[2J\\nforged line") && out.contains("  error\n"), "{out}");
    for conflicting in [&["--looks", "--changes"][..], &["--looks", "--unfinished"], &["--looks", "c1"]] {
        assert!(Line::try_parse_from([&["audit", "show"], conflicting].concat()).is_err(), "{conflicting:?}");
    }
}

#[test]
fn a_list_has_the_changes_that_the_filter_wants() {
    let (home, log) = log();
    log.append(&host_audit::examples::ended("c1", Outcome::Undone), Durability::Synced).unwrap();
    for id in ["c2", "c3"] {
        let begun = ChangeBegun { tool: "other".to_owned(), ..host_audit::examples::begun(id) };
        log.append(&Event::ChangeBegun(Box::new(begun)), Durability::Synced).unwrap();
        log.append(&host_audit::examples::ended(id, Outcome::Done), Durability::Synced).unwrap();
    }
    for (filter, listed) in [
        (&[][..], 3),
        (&["--changes"], 3),
        (&["--status", "undone"], 1),
        (&["--status", "undone", "--last", "1"], 1),
        (&["--tool", "other"], 2),
        (&["--last", "2"], 2),
        (&["--host", "web1", "--since", "1h"], 3),
        (&["--until", "1h"], 0),
        (&["--host", "web2"], 0),
        (&["--looks", "--status", "error"], 1),
        (&["--looks", "--tool", "service_status", "--last", "5"], 5),
    ] {
        let (right, out, err) = run(home.path(), &[&["show"], filter].concat());
        assert!(right && err.is_empty(), "{filter:?}: {err}");
        assert_eq!(rows(&out).len(), listed, "{filter:?}: {out}");
    }
}

#[test]
fn the_number_in_the_list_stands_for_the_whole_change() {
    let (home, log) = log();
    log.append(&host_audit::examples::ended("c1", Outcome::Done), Durability::Synced).unwrap();
    let (_, out, _) = run(home.path(), &["show"]);
    let number = rows(&out)[0].split_whitespace().next().unwrap();
    let (right, out, _) = run(home.path(), &["show", number]);
    assert!(right && out.contains("change c1 begun") && out.contains("change c1 ended"), "{out}");
    assert!(out.contains("Restart the nginx service"), "{out}");
}

#[test]
fn an_id_shows_everything_of_it() {
    let (home, log) = log();
    log.append(&host_audit::examples::ended("c1", Outcome::Done), Durability::Synced).unwrap();
    let (right, out, _) = run(home.path(), &["show", "c1"]);
    assert!(right);
    for said in [
        "change c1 begun",
        "change c1 ended",
        "path: /etc/nginx/nginx.conf",
        "- systemctl daemon-reload",
        "pid:",
        "hash: ",
    ] {
        assert!(out.contains(said), "{said}: {out}");
    }
    let (_, out, _) = run(home.path(), &["show", "3"]);
    assert!(out.starts_with("     3  "), "{out}");
    let (right, _, err) = run(home.path(), &["show", "none"]);
    assert!(!right && err.contains("nothing of the kind"));
}

#[test]
fn filters_hold_for_what_is_shown_and_exported() {
    let (home, log) = log();
    log.append(&host_audit::examples::ended("c1", Outcome::Done), Durability::Synced).unwrap();
    for id in ["c2", "c3"] {
        let begun = ChangeBegun { tool: "other".to_owned(), ..host_audit::examples::begun(id) };
        log.append(&Event::ChangeBegun(Box::new(begun)), Durability::Synced).unwrap();
    }
    log.append(&host_audit::examples::ended("c3", Outcome::Uncertain), Durability::Synced).unwrap();
    for (filter, records) in [
        (&["--changes"][..], 5),
        (&["--tool", "service_restart"], 2),
        (&["--tool", "other", "--changes"], 3),
        (&["--tool", "service_status"], 29),
        (&["--host", "web1", "--status", "error"], 1),
        (&["--status", "uncertain"], 1),
        (&["--host", "web2"], 0),
        (&["--unfinished"], 2),
        (&["--changes", "--last", "2"], 2),
        (&["--since", "1h", "--tool", "service_status"], 29),
        (&["--tool", "others_look"], 1),
        (&["--until", "1h"], 0),
        (&["--until", "2200-01-01", "--changes"], 5),
        (&["--since", "2200-01-01"], 0),
        (&["c2"], 1),
        (&["1"], 1),
    ] {
        let (right, out, _) = run(home.path(), &[&["export"], filter].concat());
        assert!(right);
        assert_eq!(out.lines().count(), records, "{filter:?}");
    }
    let (_, out, _) = run(home.path(), &["show", "--unfinished"]);
    assert!(out.contains("change c2 begun") && out.contains("still being made"), "{out}");
    assert!(out.contains("change c3 begun") && out.contains("NOBODY KNOWS ITS OUTCOME"), "{out}");
}

#[test]
fn what_is_exported_is_the_log_and_no_file_is_written_over() {
    let (home, _log) = log();
    let file = home.path().join("out");
    let (right, out, _) = run(home.path(), &["export", "--output", file.to_str().unwrap()]);
    assert!(right && out.is_empty());
    let exported = fs::read_to_string(&file).unwrap();
    let last: u64 = exported.lines().count() as u64;
    assert_eq!(run(home.path(), &["export"]).1, exported);
    assert!(run(home.path(), &["verify"]).1.starts_with(&format!("{last} records")));
    let again = Line::try_parse_from(["audit", "export", "--output", file.to_str().unwrap()]).unwrap();
    let Command::Export(command) = again.audit.command else { panic!() };
    let error = command.run(home.path(), &mut Vec::new(), &mut Vec::new()).unwrap_err();
    assert!(format!("{error:#}").contains("exists"), "{error:#}");
}
