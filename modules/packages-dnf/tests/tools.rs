//! The ten tools, with outputs of dnf and rpm that were recorded on a real machine.
#![allow(clippy::unwrap_used, missing_docs)]

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm::{Applied, Failure};
use linux_sysadmin_sdk::testkit::{self, FakeTarget, transcript};
use linux_sysadmin_sdk::{Category, Change, Output, Problem};
use module_packages_dnf::module;
use serde_json::{Value, json};

const FRESH: &str = include_str!("data/fresh.txt");
const OLD: &str = include_str!("data/old.txt");
const NEW: &str = include_str!("data/new.txt");
const GONE: &str = include_str!("data/gone.txt");
const UNREAD: &str = include_str!("data/unread.txt");
const DEAD: &str = include_str!("data/dead.txt");
const LOCKED: &str = include_str!("data/locked.txt");
const CHANGES: &str = include_str!("data/changes.txt");
const FAILURES: &str = include_str!("data/failures.txt");

const LOCK_LIST: &str = "\n# Added lock on Sun Nov 22 20:32:12 2026\nlab-hello-0:1.0-1.*\n";

fn target(text: &str) -> FakeTarget {
    FakeTarget::new().transcript(text)
}

/// The target with other outputs after a plan has run.
fn then(target: FakeTarget, text: &str) -> FakeTarget {
    transcript(text).iter().fold(target, |target, (argv, output)| {
        let argv: Vec<_> = argv.iter().map(String::as_str).collect();
        target.answer_after(&argv, output.exit_code, &output.stdout, &output.error_text())
    })
}

/// The outputs of all commands that end with this text.
fn outputs(text: &str, end: &str) -> Vec<Output> {
    let meant =
        transcript(text).into_iter().filter(|(argv, _)| format!(" {}", argv.join(" ")).ends_with(end));
    meant.map(|(_, output)| output).collect()
}

/// The last of these outputs.
fn output(text: &str, end: &str) -> Output {
    outputs(text, end).pop().expect("a recorded command")
}

fn told(target: FakeTarget, tool: &str, arguments: Value) -> (Value, Vec<String>) {
    let (data, reply) =
        target.call(&module(), tool, arguments).unwrap_or_else(|problem| panic!("{problem:?}"));
    (data, reply.notes)
}

fn refused(target: FakeTarget, tool: &str, arguments: Value) -> Problem {
    match target.call(&module(), tool, arguments) {
        Err(problem) => problem,
        Ok((data, reply)) => panic!("{data} {:?}", reply.notes),
    }
}

/// A plan that ran, with the output of its command.
fn ran(output: Output) -> Result<Applied, Failure> {
    Ok(Applied { outputs: vec![output], dry_run: false })
}

/// A plan whose command failed.
fn broke(output: Output) -> Result<Applied, Failure> {
    let problem = Problem::new("COMMAND_FAILED", Category::Other, "dnf ended with another exit code");
    Err(Failure {
        problem,
        step: 0,
        outputs: vec![output],
        undone: vec![],
        not_undone: vec![],
        uncertain: false,
    })
}

/// The command lines of a plan: its only step, and the simulation of its preview.
fn lines(change: &Change) -> (String, String) {
    let expected = format!("{change:?}");
    let of = |marker: &str| {
        let rest = expected.split_once(marker).unwrap_or_else(|| panic!("{marker} in {expected}")).1;
        let args = rest.split_once("args: [").unwrap().1.split_once(']').unwrap().0;
        args.split(", ").map(|arg| arg.trim_matches('"').to_owned()).collect::<Vec<_>>().join(" ")
    };
    (of("steps: ["), of("dry-run: Some("))
}

#[test]
fn what_is_installed_is_what_rpm_says_with_locks_and_what_is_guarded() {
    let locked = target(OLD).file("/etc/dnf/plugins/versionlock.list", LOCK_LIST);
    let (data, _) = told(locked, "pkg_list_installed", json!({}));
    let names: Vec<_> =
        data.as_array().unwrap().iter().map(|package| package["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["lab-base", "lab-conf", "lab-dep", "lab-hello", "lab-service"]);
    assert_eq!(data[3], json!({"name": "lab-hello", "version": "1.0-1", "arch": "noarch", "held": true}));
    assert_eq!(data[1], json!({"name": "lab-conf", "version": "1.0-1", "arch": "noarch"}));
}

#[test]
fn a_list_that_rpm_does_not_write_is_an_error_and_not_a_shorter_list() {
    let argv =
        ["rpm", "--query", "--all", r"--queryformat=%{NAME}\t%{EPOCHNUM}\t%{VERSION}\t%{RELEASE}\t%{ARCH}\n"];
    let said = |text: &str| FakeTarget::new().answer(&argv, 0, text, "");
    assert_eq!(refused(said("a\t0\t1\n"), "pkg_list_installed", json!({})).code, "UNEXPECTED_OUTPUT");
    assert_eq!(told(said(""), "pkg_list_installed", json!({})).0, json!([]));
    let epochs = "vim-enhanced\t2\t9.1\t1.el9\tx86_64\ngpg-pubkey\t0\t8483c65d\t5ccc5b19\t(none)\n";
    let (data, _) = told(said(epochs), "pkg_list_installed", json!({}));
    assert_eq!(data, json!([{"name": "vim-enhanced", "version": "2:9.1-1.el9", "arch": "x86_64"}]));
    let failed = FakeTarget::new().answer(&argv, 1, "", "error: cannot open Packages database");
    assert!(refused(failed, "pkg_list_installed", json!({})).message.contains("cannot open"));
}

#[test]
fn all_words_are_searched_in_names_and_summaries() {
    let search = |query: &str, names_only: bool| {
        let (data, _) = told(target(OLD), "pkg_search", json!({"query": query, "names_only": names_only}));
        data.as_array()
            .unwrap()
            .iter()
            .map(|found| found["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(search("package HELLO", false), ["lab-hello"]);
    assert_eq!(search("package hello", true), Vec::<String>::new());
    assert_eq!(search("lab-s", true), ["lab-service", "lab-slow"]);
    let (data, _) = told(target(OLD), "pkg_search", json!({"query": "lab-hello"}));
    let found = json!({"name": "lab-hello", "version": "2.0-1", "installed": "1.0-1", "summary": "Lab package lab-hello"});
    assert_eq!(data, json!([found]));
}

#[test]
fn a_hundred_thousand_packages_are_searched_piece_by_piece() {
    let argv = [
        "dnf",
        "--cacheonly",
        "repoquery",
        "--latest-limit=1",
        r"--queryformat=%{name}\t%{evr}\t%{summary}\n",
    ];
    let many: String =
        (0..100_000).map(|n| format!("package-{n}\t1.0-{n}\tA summary of päckage {n}\n\n")).collect();
    let target = target(FRESH_WITHOUT_LIST).answer(&argv, 0, many, "");
    let (data, _) = told(target, "pkg_search", json!({"query": "päckage 99999"}));
    assert_eq!(data[0]["name"], "package-99999");
    assert_eq!(data.as_array().unwrap().len(), 1);
}

/// A target with rpm's output only.
const FRESH_WITHOUT_LIST: &str = "$ rpm --query --all '--queryformat=%{NAME}\\t%{EPOCHNUM}\\t%{VERSION}\\t%{RELEASE}\\t%{ARCH}\\n'\n\
    [exit 0]\nlab-base\t0\t40\t1\tnoarch\n";

#[test]
fn a_package_is_told_with_what_is_installed_and_what_could_be() {
    let (data, _) = told(target(OLD), "pkg_info", json!({"package": "lab-dep"}));
    let expected = json!({
        "name": "lab-dep", "installed": "1.0-1", "arch": "noarch", "summary": "Lab package lab-dep",
        "description": "Lab package.", "license": "MIT", "download_bytes": 6187, "installed_bytes": 27,
        "depends": ["/bin/sh", "lab-hello >= 1.0"], "versions": [{"version": "1.0-1", "repository": "lab"}],
        "installed_at": "2026-11-22 20:31 UTC",
    });
    assert_eq!(data, expected);
    let (data, _) = told(target(OLD), "pkg_info", json!({"package": "lab-hello"}));
    assert_eq!((&data["installed"], &data["candidate"]), (&json!("1.0-1"), &json!("2.0-1")));
    assert_eq!(data["versions"][0]["version"], "2.0-1");
    assert_eq!(data["versions"][1]["version"], "1.0-1");
    // The package is installed, and no repository has it.
    let (data, _) = told(target(FRESH), "pkg_info", json!({"package": "lab-base"}));
    assert_eq!(
        (&data["installed"], data.get("candidate"), data.get("versions")),
        (&json!("40-1"), None, None)
    );
}

#[test]
fn only_the_very_name_of_a_package_is_one() {
    let missing = refused(target(FRESH), "pkg_info", json!({"package": "lab-nonesuch"}));
    assert_eq!(missing.code, "PACKAGE_NOT_FOUND");
    // dnf would read this as version 1.0 of lab-hello.
    let versioned = refused(target(FRESH), "pkg_install", json!({"package": ["lab-hello-1.0"]}));
    assert_eq!(versioned.code, "PACKAGE_NOT_FOUND", "{versioned:?}");
    assert!(versioned.message.contains("close to lab-hello-1.0: lab-hello"), "{versioned:?}");
}

#[test]
fn what_is_installed_and_in_no_repository_needs_not_be_had() {
    // This is dnf 4.14's message, as recorded for lab-hello.
    let said = "Package lab-base-40-1.noarch is already installed.\nDependencies resolved.\nNothing to do.\nComplete!\n";
    let argv = ["dnf", "--cacheonly", "--assumeno", "install", "lab-base"];
    let (data, notes) =
        told(target(FRESH).answer(&argv, 0, said, ""), "pkg_install", json!({"package": "lab-base"}));
    assert_eq!(data, json!({}));
    assert_eq!(notes, ["lab-base 40-1 is installed already", "nothing has to be done"]);
}

#[test]
fn a_package_that_a_module_hides_is_said_to_be_hidden() {
    let query = ["dnf", "--cacheonly", "repoquery"];
    let format = r"--queryformat=%{name}\t%{evr}\t%{repoid}\n";
    let hidden = "nodejs\t1:18.20.2-1.module_el8\tappstream\n";
    let target = target(FRESH).answer(&[&query[..], &[format, "nodejs"]].concat(), 0, "", "").answer(
        &[&query[..], &["--disable-modular-filtering", format, "nodejs"]].concat(),
        0,
        hidden,
        "",
    );
    let problem = refused(target, "pkg_install", json!({"package": "nodejs"}));
    assert_eq!(problem.code, "PACKAGE_IN_MODULE");
    assert!(problem.message.contains("1:18.20.2-1.module_el8"), "{problem:?}");
}

#[test]
fn updates_come_with_their_advisories() {
    let (data, notes) = told(target(OLD), "pkg_check_updates", json!({}));
    let hello = json!({
        "name": "lab-hello", "installed": "1.0-1", "candidate": "2.0-1", "repository": "lab", "security": true,
        "severity": "Important", "advisories": ["LAB-2026-0001"], "cves": ["CVE-2026-0001", "CVE-2026-0002"],
    });
    let conf = json!({
        "name": "lab-conf", "installed": "1.0-1", "candidate": "2.0-1", "repository": "lab",
        "advisories": ["LAB-2026-0002"],
    });
    assert_eq!((&data[0], &data[1]), (&hello, &conf));
    assert_eq!(data.as_array().unwrap().len(), 3);
    assert_eq!(notes, Vec::<String>::new());
    let (data, _) = told(target(OLD), "pkg_check_updates", json!({"security_only": true}));
    assert_eq!(data, json!([hello]));
    assert_eq!(told(target(NEW), "pkg_check_updates", json!({})).0, json!([]));
}

#[test]
fn knowledge_of_the_repositories_is_as_old_as_their_lists() {
    let list = "/var/cache/dnf/lab-66959f9b15991c45/repodata/40d8-primary.xml.gz";
    let of = |at: f64| told(target(OLD).file(list, "").at(at), "pkg_check_updates", json!({})).1;
    // A fake file was written at the beginning of the epoch.
    assert_eq!(of(3600.0), Vec::<String>::new());
    assert!(of(8.0 * 86400.0)[0].contains("8 days ago"));
}

#[test]
fn what_was_never_read_is_not_taken_for_empty() {
    for (tool, arguments) in [
        ("pkg_search", json!({"query": "hello"})),
        ("pkg_check_updates", json!({})),
        ("pkg_install", json!({"package": "lab-dep"})),
        ("pkg_history", json!({"package": "lab-hello"})),
    ] {
        let target = recorded_history(target(UNREAD));
        let problem = refused(target, tool, arguments);
        assert_eq!(problem.code, "REPOSITORIES_NOT_READ", "{tool}: {problem:?}");
        assert!(problem.remediation[0].contains("refresh_only"), "{tool}: {problem:?}");
    }
    // The installed packages are known all the same.
    let (data, _) = told(target(UNREAD), "pkg_info", json!({"package": "lab-hello"}));
    assert_eq!(data["installed"], "2.0-1");
}

/// The target with one transaction, whichever are asked for.
fn recorded_history(target: FakeTarget) -> FakeTarget {
    let argv = ["dnf", "--quiet", "history", "info", "9", "8", "7", "6", "5", "4", "3", "2", "1"];
    let text = "Transaction ID : 9\nPackages Altered:\n    Upgrade lab-hello-2.0-1.noarch @lab\n";
    target.answer(&argv, 0, text, "")
}

#[test]
fn a_repository_that_is_left_out_is_named() {
    let (data, notes) = told(target(DEAD), "pkg_check_updates", json!({}));
    assert_eq!(data[0]["name"], "lab-service");
    assert!(notes.iter().any(|note| note.contains("repositories dead")), "{notes:?}");
}

#[test]
fn the_history_is_told_in_operations() {
    let (data, _) = told(target(NEW), "pkg_history", json!({}));
    let upgrade = json!({
        "id": "4", "at": data[0]["at"],
        "command": "--assumeyes --setopt=exit_on_lock=1 --setopt=*.metadata_expire=never upgrade",
        "operations": [
            "upgrade lab-conf 1.0-1 -> 2.0-1", "upgrade lab-hello 1.0-1 -> 2.0-1", "upgrade lab-service 1.0-1 -> 2.0-1"
        ],
    });
    assert_eq!(data[0], upgrade);
    assert!(data[0]["at"].as_str().unwrap().starts_with("2026-11-22T20:31:"));
    assert_eq!(data[3]["error"], "Failure: 1");
    let (data, notes) = told(target(NEW), "pkg_history", json!({"package": "lab-hello"}));
    let operations: Vec<_> = data.as_array().unwrap().iter().map(|past| past["operations"].clone()).collect();
    assert_eq!(operations, [json!(["upgrade lab-hello 1.0-1 -> 2.0-1"]), json!(["install lab-hello 1.0-1"])]);
    assert_eq!(notes, ["available versions of lab-hello: 2.0-1, 1.0-1"]);
    // dnf 4 fails with a traceback where it is asked for a transaction of an empty history.
    assert_eq!(told(target(FRESH), "pkg_history", json!({})).0, json!([]));
}

#[test]
fn an_installation_is_shown_as_dnf_simulates_it() {
    let shown = |names: Value| {
        let dry = target(FRESH).outcome(Ok(Applied { outputs: vec![], dry_run: true }));
        told(dry, "pkg_install", json!({"package": names})).0
    };
    let expected = json!({
        "would_install": [{"name": "lab-dep", "version": "1.0-1"}, {"name": "lab-hello", "version": "2.0-1"}],
        "dependency_count": 1, "would_download_mb": 0.01, "would_require_disk_mb": 0.0,
    });
    assert_eq!(shown(json!("lab-dep")), expected);
}

#[test]
fn each_request_is_one_command_beside_its_simulation() {
    let table = [
        (FRESH, "pkg_install", json!({"package": "lab-dep"}), "install lab-dep"),
        (OLD, "pkg_remove", json!({"package": "lab-hello"}), "remove lab-hello"),
        (OLD, "pkg_purge", json!({"package": "lab-hello"}), "remove lab-hello"),
        (OLD, "pkg_update", json!({}), "upgrade"),
        (OLD, "pkg_update", json!({"package": "lab-hello"}), "upgrade lab-hello"),
        (OLD, "pkg_update", json!({"security_only": true}), "upgrade lab-hello"),
        (NEW, "pkg_rollback", json!({"package": "lab-hello"}), "history undo 4"),
        (NEW, "pkg_rollback", json!({"package": "lab-hello", "version": "1.0"}), "downgrade lab-hello-1.0-1"),
    ];
    for (recorded, tool, arguments, expected) in table {
        let target = target(recorded).outcome(Ok(Applied { outputs: vec![], dry_run: true }));
        let plans = target.plans();
        told(target, tool, arguments);
        let plans = plans.borrow();
        let (step, simulation) = lines(&plans[0]);
        let change =
            format!("--assumeyes --setopt=exit_on_lock=1 --setopt=*.metadata_expire=never {expected}");
        assert_eq!((step, simulation), (change, format!("--cacheonly --assumeno {expected}")), "{tool}");
    }
}

#[test]
fn what_was_done_is_told_by_rpms_database() {
    let outcome = ran(output(CHANGES, " upgrade"));
    let target = then(target(OLD), NEW).outcome(outcome);
    let (data, notes) = told(target, "pkg_update", json!({}));
    assert_eq!(
        data,
        json!({
            "upgraded": [
                {"name": "lab-conf", "from": "1.0-1", "version": "2.0-1"},
                {"name": "lab-hello", "from": "1.0-1", "version": "2.0-1"},
                {"name": "lab-service", "from": "1.0-1", "version": "2.0-1"},
            ],
            "kept_config_files": ["/etc/lab-conf.conf"],
        })
    );
    assert_eq!(notes, ["the package's own /etc/lab-conf.conf is in /etc/lab-conf.conf.rpmnew"]);
}

#[test]
fn a_script_that_failed_in_what_succeeded_is_told() {
    let outcome = ran(output(CHANGES, " install lab-postfails"));
    let target = then(target(FRESH), OLD).outcome(outcome);
    let problem = refused(target, "pkg_install", json!({"package": "lab-dep"}));
    // lab-hello has another version than was simulated.
    assert_eq!(problem.code, "TRANSACTION_INCOMPLETE");
    let outcome = ran(output(CHANGES, " install lab-postfails"));
    let (_, notes) = told(then(target_of_old_upgrade(), NEW).outcome(outcome), "pkg_update", json!({}));
    let expected = "a script of a package failed: warning: %post(lab-postfails-1.0-1.noarch) scriptlet failed, exit status 3";
    assert_eq!(notes, [expected]);
}

fn target_of_old_upgrade() -> FakeTarget {
    target(OLD)
}

#[test]
fn each_failure_has_a_code_of_its_own() {
    let table = [
        (" install lab-broken", "PACKAGE_SCRIPT_FAILED", "%prein(lab-broken-1.0-1.noarch) scriptlet failed"),
        (" install lab-big", "OUT_OF_SPACE", "At least 1MB more space needed on the /opt/labbig filesystem"),
        (" install lab-slow", "REPOSITORY_UNTRUSTED", "lab-slow-1.0-1.noarch.rpm is not signed"),
        (" --refresh makecache", "REPOSITORY_UNREACHABLE", "Curl error (7)"),
        (" remove lab-hello", "PROTECTED_PACKAGE", "protected packages: lab-hello"),
    ];
    for (line, code, said) in table {
        let target = target(OLD).outcome(broke(output(FAILURES, line)));
        let problem = refused(target, "pkg_update", json!({}));
        assert_eq!(problem.code, code, "{line}: {problem:?}");
        assert!(problem.message.contains(said), "{line}: {}", problem.message);
    }
    let twice = outputs(FAILURES, " install lab-conf");
    let codes = twice.into_iter().map(|output| {
        let problem = refused(target(OLD).outcome(broke(output)), "pkg_update", json!({}));
        // dnf prints the repository with its passwords.
        assert!(!problem.message.contains("password"), "{}", problem.message);
        (problem.code, problem.message.contains("already locked by"))
    });
    let expected = [("REPOSITORY_UNTRUSTED".to_owned(), false), ("RESOURCE_LOCKED".to_owned(), true)];
    assert_eq!(codes.collect::<Vec<_>>(), expected);
}

#[test]
fn what_the_simulation_refuses_never_becomes_a_plan() {
    let table = [
        (
            FRESH,
            "pkg_install",
            json!({"package": "lab-missing"}),
            "DEPENDENCY_CONFLICT",
            "nothing provides lab-nowhere",
        ),
        (
            OLD,
            "pkg_install",
            json!({"package": "lab-clash"}),
            "DEPENDENCY_CONFLICT",
            "conflicts with lab-hello",
        ),
        (
            OLD,
            "pkg_rollback",
            json!({"package": "lab-hello"}),
            "DEPENDENCY_CONFLICT",
            "lab-dep-1.0-1.noarch requires lab-hello",
        ),
        (
            OLD,
            "pkg_rollback",
            json!({"package": "lab-hello", "version": "2.0"}),
            "NOT_AN_EARLIER_VERSION",
            "2.0-1",
        ),
        (
            OLD,
            "pkg_rollback",
            json!({"package": "lab-hello", "version": "3.0"}),
            "VERSION_NOT_AVAILABLE",
            "2.0-1, 1.0-1",
        ),
        (
            GONE,
            "pkg_rollback",
            json!({"package": "lab-hello"}),
            "VERSION_NOT_AVAILABLE",
            "no other version can be had",
        ),
    ];
    for (recorded, tool, arguments, code, said) in table {
        let target = target(recorded);
        let plans = target.plans();
        let problem = refused(target, tool, arguments.clone());
        assert_eq!(problem.code, code, "{tool} {arguments}: {problem:?}");
        assert!(problem.message.contains(said), "{tool} {arguments}: {}", problem.message);
        assert!(plans.borrow().is_empty(), "{tool} {arguments}");
    }
}

#[test]
fn a_locked_version_stays_and_is_said_to() {
    let locked = || target(LOCKED).file("/etc/dnf/plugins/versionlock.list", LOCK_LIST);
    let dry = locked().outcome(Ok(Applied { outputs: vec![], dry_run: true }));
    let (data, _) = told(dry, "pkg_update", json!({}));
    assert_eq!(data["held_back"], json!(["lab-hello"]));
    assert_eq!(data["would_upgrade"], json!([{"name": "lab-service", "from": "1.0-1", "version": "2.0-1"}]));
    let (data, notes) = told(locked(), "pkg_update", json!({"package": "lab-hello"}));
    assert_eq!(
        (data, notes),
        (json!({"held_back": ["lab-hello"]}), vec!["nothing has to be done".to_owned()])
    );
}

#[test]
fn a_repository_that_cannot_be_read_fails_a_refresh() {
    let failed = target(OLD).outcome(broke(output(FAILURES, "--refresh makecache")));
    let problem = refused(failed, "pkg_update", json!({"refresh_only": true}));
    assert_eq!(problem.code, "REPOSITORY_UNREACHABLE");
    assert!(problem.message.contains("192.0.2.1"), "{}", problem.message);
    let target = target(OLD).outcome(ran(output(CHANGES, "--refresh makecache")));
    let (data, _) = told(target, "pkg_update", json!({"refresh_only": true}));
    assert_eq!(data, json!({"refreshed": true, "updates": 3, "security_updates": 1}));
}

#[test]
fn an_answer_that_is_no_table_is_an_error_and_never_a_plan() {
    let simulation = "$ dnf --cacheonly --assumeno upgrade lab-hello";
    for (text, stderr) in [
        ("", "Operation aborted.\n"),
        (
            "Upgrading:\n lab-hello\n\nTransaction Summary\n====\nUpgrade  1 Package\n\n",
            "Operation aborted.\n",
        ),
        (
            "Upgrading:\n lab-hello noarch 2.0-1 lab 6.0 k\n\nTransaction Summary\n====\nUpgrade  2 Packages\n\n",
            "Operation aborted.",
        ),
        (
            "Aktualisieren:\n lab-hello noarch 2.0-1 lab 6.0 k\n\nTransaction Summary\n====\n",
            "Operation aborted.",
        ),
        ("\u{1b}[2J", ""),
    ] {
        let target = target(OLD).transcript(&format!("{simulation}\n[exit 1]\n{text}\n[stderr]\n{stderr}"));
        let plans = target.plans();
        let problem = refused(target, "pkg_update", json!({"package": "lab-hello"}));
        assert!(
            ["UNEXPECTED_OUTPUT", "COMMAND_FAILED"].contains(&problem.code.as_str()),
            "{text}: {problem:?}"
        );
        assert!(plans.borrow().is_empty(), "{text}");
    }
}

/// The tables have long columns as dnf 4 breaks them, obsoletes, skipped packages, and the form of dnf 5. The forms are
/// those of dnf/cli/output.py of dnf 4.14 and libdnf5-cli/output/transaction_table.cpp of dnf 5.2.
#[test]
fn both_tables_are_read_whatever_their_columns() {
    let four = "\
Last metadata expiration check: 0:05:00 ago on Sun Nov 22 20:30:58 2026.
Dependencies resolved.
================================================================================
 Package                 Architecture     Version           Repository     Size
================================================================================
Installing:
 lab-new                 noarch           1:2.0-1           lab           6.0 k
     replacing  lab-conf.noarch 1.0-1
Installing weak dependencies:
 lab-with-a-name-that-is-much-longer-than-its-column
                         noarch           1.0-1.module_el9.4.0+1234+abcdef
                                                            lab            12 M
Upgrading:
 lab-hello               noarch           2.0-1             lab           6.0 k
Removing unused dependencies:
 lab-dep                 noarch           1.0-1             @lab           27  
Skipping packages with conflicts:
(add '--best --allowerasing' to command line to force their upgrade):
 lab-service             noarch           2.0-1             lab           6.7 k

Transaction Summary
================================================================================
Install  2 Packages
Upgrade  1 Package
Remove   1 Package
Skip     1 Package

Total download size: 12 M
";
    let five = "\
Package                                              Arch   Version                           Repository      Size
Installing:
 lab-new                                             noarch 1:2.0-1                           lab          6.0 KiB
   replacing lab-conf                                noarch 1.0-1                             lab         42.0   B
Installing weak dependencies:
 lab-with-a-name-that-is-much-longer-than-its-column noarch 0:1.0-1.module_el9.4.0+1234+abcdef lab        12.0 MiB
Upgrading:
 lab-hello                                           noarch 0:2.0-1                           lab          6.0 KiB
   replacing lab-hello                               noarch 0:1.0-1                           lab         29.0   B
Removing unused dependencies:
 lab-dep                                             noarch 1.0-1                             lab         27.0   B
Skipping packages with conflicts:
 lab-service                                         noarch 2.0-1                             lab          6.7 KiB

Transaction Summary:
 Installing:         2 packages
 Upgrading:          1 package
 Replacing:          2 packages
 Removing:           1 package
 Skipping:           1 package

Total size of inbound packages is 12 MiB. Need to download 12 MiB.
After this operation, 5 MiB will be freed (install 12 MiB, remove 17 MiB).
";
    for (table, said, disk) in [
        (four, "Operation aborted.\n", None),
        (
            five,
            "Updating and loading repositories:\nRepositories loaded.\nOperation aborted by the user.\n",
            Some(-5.24),
        ),
    ] {
        let simulation = format!("$ dnf --cacheonly --assumeno upgrade\n[exit 1]\n{table}\n[stderr]\n{said}");
        let target =
            target(OLD).transcript(&simulation).outcome(Ok(Applied { outputs: vec![], dry_run: true }));
        let (data, _) = told(target, "pkg_update", json!({}));
        let mut expected = json!({
            "would_install": [
                {"name": "lab-new", "version": "1:2.0-1"},
                {
                    "name": "lab-with-a-name-that-is-much-longer-than-its-column",
                    "version": "1.0-1.module_el9.4.0+1234+abcdef",
                },
            ],
            "would_upgrade": [{"name": "lab-hello", "from": "1.0-1", "version": "2.0-1"}],
            "would_remove": [
                {"name": "lab-conf", "version": "1.0-1"},
                {"name": "lab-dep", "version": "1.0-1"},
            ],
            "held_back": ["lab-service"],
            "would_download_mb": 12.58,
        });
        if let Some(disk) = disk {
            expected["would_require_disk_mb"] = json!(disk);
        }
        assert_eq!(data, expected, "{table}");
    }
}

/// The messages are dnf 5's, from ci-dnf-stack's features and dnf5 5.2.
#[test]
fn dnf_5_fails_in_known_words_too() {
    let table = [
        (
            "Failed to resolve the transaction:\nNo match for argument: lab-nonesuch\nYou can try to add to command line:\n  \
             --skip-unavailable to skip unavailable packages\n",
            "PACKAGE_NOT_FOUND",
        ),
        (
            "Failed to resolve the transaction:\nProblem: conflicting requests\n  - nothing provides lab-nowhere needed by \
             lab-missing-1.0-1.noarch from lab\n",
            "DEPENDENCY_CONFLICT",
        ),
        (
            "Transaction failed: Failed to obtain rpm transaction lock. Another transaction is in progress.\n",
            "RESOURCE_LOCKED",
        ),
    ];
    for (said, code) in table {
        let output = testkit::output(1, "", said);
        let problem = refused(target(OLD).outcome(broke(output)), "pkg_update", json!({}));
        assert_eq!(problem.code, code, "{said}: {problem:?}");
    }
}
