//! The ten tools, with outputs that pacman 6.0.2 gave on a real machine.
#![allow(clippy::unwrap_used, missing_docs)]

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm::{Applied, Failure};
use linux_sysadmin_sdk::testkit::{FakeTarget, transcript};
use linux_sysadmin_sdk::{Category, Change, Output, Problem};
use packages_pacman::module;
use serde_json::{Value, json};

const FRESH: &str = include_str!("data/fresh.txt");
const NEW: &str = include_str!("data/new.txt");
const OLD: &str = include_str!("data/old.txt");
const HELD: &str = include_str!("data/held.txt");
const CHANGES: &str = include_str!("data/changes.txt");
const FAILURES: &str = include_str!("data/failures.txt");
const LOG: &str = include_str!("data/pacman.log");

const CACHED: &str = "/var/cache/pacman/pkg/lab-hello-1.0-1-any.pkg.tar.zst";

/// A target whose cache has lab-hello 1.0.
fn target(text: &str) -> FakeTarget {
    FakeTarget::new().transcript(text).file(CACHED, "").file("/var/log/pacman.log", LOG)
}

/// The target with other outputs after a plan has run.
fn then(target: FakeTarget, text: &str) -> FakeTarget {
    transcript(text).iter().fold(target, |target, (argv, output)| {
        let argv: Vec<_> = argv.iter().map(String::as_str).collect();
        target.answer_after(&argv, output.exit_code, &output.stdout, &output.error_text())
    })
}

/// The last recorded output of the command that ends with this text.
fn output(text: &str, end: &str) -> Output {
    let meant =
        transcript(text).into_iter().filter(|(argv, _)| format!(" {}", argv.join(" ")).ends_with(end));
    meant.map(|(_, output)| output).last().expect("a recorded command")
}

fn told(target: FakeTarget, tool: &str, arguments: Value) -> (Value, Vec<String>) {
    let (data, reply) =
        target.call(&module(), tool, arguments).unwrap_or_else(|problem| panic!("{tool}: {problem:?}"));
    (data, reply.notes)
}

fn refused(target: FakeTarget, tool: &str, arguments: Value) -> Problem {
    match target.call(&module(), tool, arguments) {
        Err(problem) => problem,
        Ok((data, reply)) => panic!("{tool}: {data} {:?}", reply.notes),
    }
}

/// A plan that ran, with the output of its command.
fn ran(output: Output) -> Result<Applied, Failure> {
    Ok(Applied { outputs: vec![output], dry_run: false })
}

fn dry_run() -> Result<Applied, Failure> {
    Ok(Applied { outputs: vec![], dry_run: true })
}

/// A plan whose command failed.
fn broke(output: Output) -> Result<Applied, Failure> {
    let problem = Problem::new("COMMAND_FAILED", Category::Other, "pacman ended with another exit code");
    Err(Failure {
        problem,
        step: 0,
        outputs: vec![output],
        undone: vec![],
        not_undone: vec![],
        uncertain: false,
    })
}

/// The arguments of a plan's only step, and of the simulation in its preview.
fn lines(change: &Change) -> (String, String) {
    let expected = format!("{change:?}");
    let of = |marker: &str| {
        let rest = expected.split_once(marker).unwrap_or_else(|| panic!("{marker} in {expected}")).1;
        let args = rest.split_once("args: [").unwrap().1.split_once(']').unwrap().0;
        args.split(", ").map(|arg| arg.trim_matches('"').to_owned()).collect::<Vec<_>>().join(" ")
    };
    (of("steps: ["), of("dry-run: Some("))
}

/// Names and versions, sorted by name.
fn versions(list: &Value) -> Vec<(&str, &str)> {
    let items = list.as_array().unwrap_or_else(|| panic!("a list: {list}"));
    let mut versions: Vec<_> = items
        .iter()
        .map(|item| (item["name"].as_str().unwrap_or_default(), item["version"].as_str().unwrap_or_default()))
        .collect();
    versions.sort_unstable();
    versions
}

#[test]
fn what_is_installed_is_what_pacman_says_with_what_is_held() {
    assert_eq!(told(target(FRESH), "pkg_list_installed", json!({})).0, json!([]));
    let (data, _) = told(target(HELD), "pkg_list_installed", json!({}));
    let expected = json!([
        {"name": "lab-dep", "version": "1.0-1"},
        {"name": "lab-hello", "version": "1.0-1", "held": true},
    ]);
    assert_eq!(data, expected);
    let odd = FakeTarget::new()
        .answer(&["pacman", "--query"], 0, "lab-dep\n", "")
        .answer(&["pacman-conf", "IgnorePkg"], 0, "", "")
        .answer(&["pacman-conf", "HoldPkg"], 0, "", "");
    assert_eq!(refused(odd, "pkg_list_installed", json!({})).code, "UNEXPECTED_OUTPUT");
    let broken = FakeTarget::new()
        .answer(
            &["pacman", "--query"],
            255,
            "",
            "error: failed to initialize alpm library:\ndatabase is incorrect version\n",
        )
        .answer(&["pacman-conf", "IgnorePkg"], 0, "", "")
        .answer(&["pacman-conf", "HoldPkg"], 0, "", "");
    let problem = refused(broken, "pkg_list_installed", json!({}));
    assert!(problem.message.contains("incorrect version"), "{problem:?}");
}

#[test]
fn all_words_are_searched_in_names_and_descriptions() {
    let search = |arguments: Value| versions_of_search(&told(target(OLD), "pkg_search", arguments).0);
    assert_eq!(search(json!({"query": "package HELLO"})), ["lab-hello"]);
    assert_eq!(search(json!({"query": "package hello", "names_only": true})), Vec::<String>::new());
    assert_eq!(search(json!({"query": "nothing"})), Vec::<String>::new());
    let (data, _) = told(target(OLD), "pkg_search", json!({"query": "lab-hello"}));
    let hello = json!({
        "name": "lab-hello", "version": "2.0-1", "installed": "1.0-1", "summary": "Lab package lab-hello",
    });
    assert_eq!(data, json!([hello]));
}

fn versions_of_search(data: &Value) -> Vec<String> {
    data.as_array().unwrap().iter().map(|found| found["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_package_is_told_with_what_is_installed_and_what_could_be() {
    let (data, _) = told(target(OLD), "pkg_info", json!({"package": "lab-hello"}));
    assert_eq!((&data["installed"], &data["candidate"]), (&json!("1.0-1"), &json!("2.0-1")));
    let offered = json!([
        {"version": "2.0-1", "repository": "lab"},
        {"version": "1.0-1", "repository": "cache"},
    ]);
    assert_eq!(data["versions"], offered);
    assert_eq!(
        (&data["arch"], &data["license"], &data["automatic"]),
        (&json!("any"), &json!("MIT"), &json!(true))
    );
    assert_eq!(data["installed_bytes"], 30);
    let (data, _) = told(target(OLD), "pkg_info", json!({"package": "lab-dep"}));
    assert_eq!((&data["depends"], data.get("automatic")), (&json!(["lab-hello>=1.0"]), None));
    let none = refused(target(OLD), "pkg_info", json!({"package": "lab-helo"}));
    assert_eq!(none.code, "PACKAGE_NOT_FOUND");
    assert!(none.message.contains("lab-hello"), "{none:?}");
}

#[test]
fn updates_are_told_with_what_is_held() {
    let hello = json!({"name": "lab-hello", "installed": "1.0-1", "candidate": "2.0-1"});
    assert_eq!(told(target(OLD), "pkg_check_updates", json!({})).0, json!([hello]));
    let (data, _) = told(target(HELD), "pkg_check_updates", json!({}));
    assert_eq!((&data[0]["name"], &data[0]["held"]), (&json!("lab-hello"), &json!(true)));
    assert_eq!(told(target(NEW), "pkg_check_updates", json!({})).0, json!([]));
    // The log says when the lists were fetched: 29 November 2026.
    let later = told(target(NEW).at(1_796_000_000.0), "pkg_check_updates", json!({})).1;
    assert_eq!(later, Vec::<String>::new());
    let later = told(target(NEW).at(1_797_000_000.0), "pkg_check_updates", json!({})).1;
    assert!(later[0].contains("days ago"), "{later:?}");
}

#[test]
fn the_history_is_told_in_operations() {
    let (data, _) = told(target(NEW), "pkg_history", json!({}));
    let removal = json!({
        "at": "2026-11-29T08:04:48+0000",
        "command": "pacman --remove --cascade --noconfirm -- lab-hello",
        "operations": ["remove lab-dep 1.0-1", "remove lab-hello 2.0-1"],
    });
    assert_eq!(data[0], removal);
    let (data, notes) = told(target(NEW), "pkg_history", json!({"package": "lab-hello"}));
    let verbs: Vec<_> = data.as_array().unwrap().iter().map(|past| past["operations"][0].clone()).collect();
    let expected = [
        "remove lab-hello 2.0-1",
        "reinstall lab-hello 2.0-1",
        "upgrade lab-hello 1.0-1 -> 2.0-1",
        "downgrade lab-hello 2.0-1 -> 1.0-1",
        "install lab-hello 2.0-1",
    ];
    assert_eq!(verbs, expected.map(Value::from));
    assert_eq!(notes, ["available versions of lab-hello: 2.0-1, 1.0-1"]);
    let without = FakeTarget::new().transcript(FRESH);
    assert_eq!(told(without, "pkg_history", json!({})).0, json!([]));
}

#[test]
fn each_request_is_one_command_beside_its_simulation() {
    let print = "--print --print-format=%n %v %s";
    let pair = |operation: &str, operands: &str| {
        (format!("{operation} --noconfirm{operands}"), format!("{operation} {print}{operands}"))
    };
    let purge = || {
        let (_, simulation) = pair("--remove --cascade", " -- lab-hello");
        ("--remove --cascade --nosave --noconfirm -- lab-hello".to_owned(), simulation)
    };
    let back = || pair("--upgrade", &format!(" -- {CACHED}"));
    let table = [
        (FRESH, "pkg_install", json!({"package": "lab-dep"}), pair("--sync --needed", " -- lab-dep")),
        (NEW, "pkg_remove", json!({"package": "lab-hello"}), pair("--remove --cascade", " -- lab-hello")),
        (NEW, "pkg_purge", json!({"package": "lab-hello"}), purge()),
        (OLD, "pkg_update", json!({}), pair("--sync --sysupgrade", "")),
        (OLD, "pkg_update", json!({"package": "lab-hello"}), pair("--sync --needed", " -- lab-hello")),
        (NEW, "pkg_rollback", json!({"package": "lab-hello", "version": "1.0"}), back()),
        (NEW, "pkg_rollback", json!({"package": "lab-hello"}), back()),
    ];
    for (recorded, tool, arguments, expected) in table {
        let target = target(recorded).outcome(dry_run());
        let plans = target.plans();
        told(target, tool, arguments);
        let plans = plans.borrow();
        assert_eq!(lines(&plans[0]), expected, "{tool}");
    }
}

#[test]
fn a_change_is_shown_with_all_that_comes_and_goes() {
    let shown = |recorded: &str, tool: &str, arguments: Value| {
        told(target(recorded).outcome(dry_run()), tool, arguments).0
    };
    let data = shown(FRESH, "pkg_install", json!({"package": "lab-dep"}));
    assert_eq!(versions(&data["would_install"]), [("lab-dep", "1.0-1"), ("lab-hello", "2.0-1")]);
    assert_eq!(data["dependency_count"], 1);
    let data = shown(NEW, "pkg_remove", json!({"package": "lab-hello"}));
    assert_eq!(versions(&data["would_remove"]), [("lab-dep", "1.0-1"), ("lab-hello", "2.0-1")]);
    let data = shown(OLD, "pkg_update", json!({}));
    assert_eq!(versions(&data["would_upgrade"]), [("lab-hello", "2.0-1")]);
    let data = shown(NEW, "pkg_rollback", json!({"package": "lab-hello", "version": "1.0"}));
    assert_eq!(versions(&data["would_downgrade"]), [("lab-hello", "1.0-1")]);
}

#[test]
fn what_was_done_is_told_by_pacmans_database() {
    let installs = then(target(FRESH), NEW).outcome(ran(output(CHANGES, " --needed --noconfirm -- lab-dep")));
    let (data, notes) = told(installs, "pkg_install", json!({"package": "lab-dep"}));
    assert_eq!(versions(&data["installed"]), [("lab-dep", "1.0-1"), ("lab-hello", "2.0-1")]);
    assert_eq!(notes, Vec::<String>::new());
    let goes_back = then(target(NEW), OLD).outcome(ran(output(CHANGES, "lab-hello-1.0-1-any.pkg.tar.zst")));
    let (data, _) = told(goes_back, "pkg_rollback", json!({"package": "lab-hello"}));
    assert_eq!(versions(&data["downgraded"]), [("lab-hello", "1.0-1")]);
    let again = told(target(NEW), "pkg_install", json!({"package": "lab-dep"}));
    assert_eq!(again.1, ["lab-dep 1.0-1 is installed already", "nothing has to be done"]);
    let refreshes = target(OLD).outcome(ran(output(FRESH, "--sync --refresh --noconfirm")));
    assert_eq!(told(refreshes, "pkg_update", json!({"refresh_only": true})).0["updates"], 1);
}

#[test]
fn what_stands_in_the_way_is_told_before_anybody_is_asked() {
    let unmet = refused(target(FRESH), "pkg_install", json!({"package": "lab-missing"}));
    assert_eq!(unmet.code, "DEPENDENCY_CONFLICT");
    assert!(unmet.message.contains("lab-nowhere>=9"), "{unmet:?}");
    let clash = refused(target(NEW), "pkg_install", json!({"package": "lab-clash"}));
    assert_eq!(clash.code, "DEPENDENCY_CONFLICT");
    assert!(clash.message.contains("lab-clash and lab-hello are in conflict"), "{clash:?}");
    let guarded = refused(target(HELD), "pkg_remove", json!({"package": "lab-hello"}));
    assert_eq!(guarded.code, "PROTECTED_PACKAGE");
    let none = refused(target(FRESH), "pkg_install", json!({"package": "lab-helo"}));
    assert_eq!(none.code, "PACKAGE_NOT_FOUND");
    assert!(none.message.contains("lab-hello"), "{none:?}");
    let gone = refused(target(NEW), "pkg_rollback", json!({"package": "lab-hello", "version": "0.1"}));
    assert_eq!(gone.code, "VERSION_NOT_AVAILABLE");
    assert!(gone.message.contains("1.0-1"), "{gone:?}");
}

#[test]
fn a_failure_is_told_by_what_pacman_says_of_it() {
    let table = [
        (" --needed --noconfirm -- lab-broken", "RESOURCE_LOCKED", "could not lock database"),
        ("--sync --noconfirm -- lab-hello", "REPOSITORY_UNTRUSTED", "missing required signature"),
        ("--sync --refresh --noconfirm", "REPOSITORY_UNTRUSTED", "missing required signature"),
        (" --needed --noconfirm -- lab-missing", "DEPENDENCY_CONFLICT", "lab-nowhere"),
        (" --needed --noconfirm -- lab-nope", "PACKAGE_NOT_FOUND", "target not found: lab-nope"),
        (" --needed --noconfirm -- lab-clash", "REPOSITORY_UNREACHABLE", "invalid or corrupted package"),
    ];
    for (command, code, said) in table {
        let fails = target(FRESH).outcome(broke(output(FAILURES, command)));
        let problem = refused(fails, "pkg_install", json!({"package": "lab-dep"}));
        assert_eq!(problem.code, code, "{command}: {problem:?}");
        assert!(problem.message.contains(said), "{command}: {problem:?}");
        assert!(!problem.message.contains("[Y/n]"), "{command}: {problem:?}");
    }
    // Of several recordings of a command, these are earlier ones.
    let all: Vec<_> = transcript(FAILURES)
        .into_iter()
        .filter(|(argv, output)| output.exit_code != 0 && argv.last().is_some_and(|word| word == "lab-clash"))
        .map(|(_, output)| output)
        .collect();
    for (output, said) in all.into_iter().zip(["are in conflict", "exists in filesystem"]) {
        let fails = target(FRESH).outcome(broke(output));
        let problem = refused(fails, "pkg_install", json!({"package": "lab-dep"}));
        assert_eq!(problem.code, "DEPENDENCY_CONFLICT", "{problem:?}");
        assert!(problem.message.contains(said), "{problem:?}");
    }
}

#[test]
fn a_name_is_a_name_and_nothing_that_pacman_reads_out_of_one() {
    let target = || target(NEW).outcome(broke(output(FAILURES, " --needed --noconfirm -- lab-nope")));
    for name in [
        "lab/lab-hello",
        "lab-hello>=1.0",
        "lab-hello=1.0",
        "--config=/srv/x",
        "https://example.net/x",
        "lab-*",
        "./x.pkg.tar.zst",
    ] {
        for tool in ["pkg_install", "pkg_remove", "pkg_purge", "pkg_update"] {
            let problem = refused(target(), tool, json!({"package": name}));
            assert_eq!(problem.code, "INVALID_PACKAGE_NAME", "{tool} {name}");
        }
    }
}
