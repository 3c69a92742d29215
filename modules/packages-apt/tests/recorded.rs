//! The ten tools, with recorded outputs of apt and dpkg.

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm::Applied;
use linux_sysadmin_sdk::testkit::FakeTarget;
use linux_sysadmin_sdk::{Change, Problem, Risk};
use module_packages_apt::module;
use serde_json::{Value, json};

const FRESH: &str = include_str!("data/fresh.txt");
const OLDER: &str = include_str!("data/older.txt");
const HELD: &str = include_str!("data/held.txt");
const TWINS: &str = include_str!("data/twins.txt");

/// A history.log of apt 2.6.2 on Debian 12. The end of its third transaction is left out, as after a run that was killed.
const HISTORY: &str = "\nStart-Date: 2026-11-22  20:30:05\n\
    Commandline: /usr/bin/apt-get --yes --quiet install -- lab-hello\nRequested-By: admin (1000)\n\
    Install: lab-hello:amd64 (1.0), lab-dep:amd64 (1.0, automatic)\nEnd-Date: 2026-11-22  20:30:06\n\n\
    Start-Date: 2026-11-22  20:31:54\nCommandline: apt-get install lab-hello\nUpgrade: lab-hello:amd64 (1.0, 2.0)\n\
    Error: Sub-process /usr/bin/dpkg returned an error code (1)\nEnd-Date: 2026-11-22  20:31:55\n\n\
    Start-Date: 2026-11-22  20:40:00\nCommandline: apt-get install lab-slow\nInstall: lab-slow:amd64 (1.0)\n";

/// A dpkg.log of dpkg 1.21.22, with the same installation, and one by dpkg alone.
const DPKG: &str = "2026-11-22 20:30:05 startup archives unpack\n\
    2026-11-22 20:30:05 install lab-hello:all <none> 1.0\n\
    2026-11-22 20:30:05 status half-installed lab-hello:all 1.0\n\
    2026-11-22 20:50:01 startup archives install\n\
    2026-11-22 20:50:01 install lab-missing:all <none> 1.0\n\
    2026-11-22 20:50:01 status unpacked lab-missing:all 1.0\n";

fn fresh() -> FakeTarget {
    FakeTarget::new().transcript(FRESH)
}

/// A target with lab-hello and lab-conf at 1.0, and with lab-dep installed.
fn older() -> FakeTarget {
    fresh().transcript(OLDER)
}

/// A target with two architectures, and with packages that are only partly installed.
fn twins() -> FakeTarget {
    FakeTarget::new().transcript(TWINS)
}

/// The target in a dry run.
fn dry(target: FakeTarget) -> FakeTarget {
    target.outcome(Ok(Applied { outputs: vec![], dry_run: true }))
}

/// The target where dpkg-query doesn't print this line after the plan has run.
fn without(target: FakeTarget, line: &str) -> FakeTarget {
    let argv = dpkg_query();
    let argv: Vec<_> = argv.iter().map(String::as_str).collect();
    let is_listed = |other: &&str| other.contains("\tno\tno") && !other.starts_with(line);
    let rest: Vec<_> = TWINS.lines().filter(is_listed).collect();
    target.answer_after(&argv, 0, rest.join("\n"), "")
}

fn dpkg_query() -> Vec<String> {
    let line = FRESH.lines().find_map(|line| line.strip_prefix("$ dpkg-query")).expect("recorded");
    format!("dpkg-query{line}").replace('\'', "").split(' ').map(str::to_owned).collect()
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

fn data(target: FakeTarget, tool: &str, arguments: Value) -> Value {
    call(target, tool, arguments).unwrap_or_else(|problem| panic!("{tool}: {problem:?}")).0
}

fn code(target: FakeTarget, tool: &str, arguments: Value) -> (String, String) {
    let problem = call(target, tool, arguments).expect_err("refused");
    (problem.code, problem.message)
}

/// The plan that a tool hands over. The target doesn't run it.
fn plan(target: FakeTarget, tool: &str, arguments: Value) -> Change {
    let plans = target.plans();
    let _ = call(target, tool, arguments);
    let mut plans = plans.borrow_mut();
    assert_eq!(plans.len(), 1, "{tool}");
    plans.remove(0)
}

#[test]
fn what_is_installed_is_listed_by_name() {
    let all = data(older(), "pkg_list_installed", json!({}));
    let all = all.as_array().expect("a list");
    assert!(all.len() > 200);
    assert!(all.is_sorted_by_key(|package| package["name"].as_str()));
    let hello = all.iter().find(|package| package["name"] == "lab-hello").expect("installed");
    assert_eq!(*hello, json!({"name": "lab-hello", "version": "1.0", "arch": "all"}));
    let held = data(fresh().transcript(HELD), "pkg_list_installed", json!({}));
    let held: Vec<_> =
        held.as_array().expect("a list").iter().filter(|package| package["held"] == true).collect();
    assert_eq!(held.len(), 1);
    assert_eq!(held[0]["name"], "lab-hello");
}

#[test]
fn a_search_has_the_name_before_what_only_speaks_of_it() {
    let found = data(older(), "pkg_search", json!({"query": "lab"}));
    let found = found.as_array().expect("a list");
    let at = |name: &str| found.iter().position(|package| package["name"] == name).expect(name);
    assert!(at("lab-hello") < at("git"));
    assert_eq!(found[at("lab-hello")]["installed"], "1.0");
    assert_eq!(found[at("lab-clash")].get("installed"), None);
    let names = data(fresh(), "pkg_search", json!({"query": "lab he", "names_only": true}));
    assert_eq!(names, json!([{"name": "lab-hello", "summary": "lab package lab-hello"}]));
}

#[test]
fn a_package_is_described_installed_or_not() {
    let not_here = data(fresh(), "pkg_info", json!({"package": "lab-hello"}));
    assert_eq!(not_here["candidate"], "2.0");
    assert_eq!(not_here.get("installed"), None);
    assert_eq!(not_here["versions"][1]["version"], "1.0");
    assert_eq!(not_here["download_bytes"], 620);
    let here = data(older(), "pkg_info", json!({"package": "lab-hello"}));
    assert_eq!((&here["installed"], &here["candidate"]), (&json!("1.0"), &json!("2.0")));
    let bash = data(fresh(), "pkg_info", json!({"package": "bash"}));
    assert_eq!((&bash["essential"], &bash["installed_bytes"]), (&json!(true), &json!(7164 * 1024)));
    assert_eq!(bash["depends"][0], "libc6 (>= 2.36)");
    // An installed package that is in no repository has no available version.
    assert_eq!(bash.get("versions"), None);
    let (code, message) = code(fresh(), "pkg_info", json!({"package": "lab-helo"}));
    assert_eq!(code, "PACKAGE_NOT_FOUND");
    assert!(message.contains("lab-hello"), "{message}");
}

#[test]
fn updates_are_told_with_what_holds_them_back() {
    let updates = data(older(), "pkg_check_updates", json!({}));
    let expected = |held: bool| {
        let mut hello =
            json!({"name": "lab-hello", "installed": "1.0", "candidate": "2.0", "repository": "lab:stable"});
        if held {
            hello["held"] = json!(true);
        }
        json!([
            {"name": "lab-conf", "installed": "1.0", "candidate": "2.0", "repository": "lab:stable"},
            hello,
        ])
    };
    assert_eq!(updates, expected(false));
    let held = older().transcript(HELD);
    assert_eq!(call(held, "pkg_check_updates", json!({})).expect("told"), (expected(true), vec![]));
    assert_eq!(data(fresh(), "pkg_check_updates", json!({})), json!([]));
}

#[test]
fn a_plan_is_one_command_and_as_grave_as_its_simulation_says() {
    let high = Some(Risk::High);
    let critical = Some(Risk::Critical);
    let table = [
        (fresh(), "pkg_install", json!({"package": "lab-dep"}), "install -- lab-dep", None, ""),
        (
            older(),
            "pkg_install",
            json!({"package": "lab-clash"}),
            "install -- lab-clash",
            high,
            "lab-dep, lab-hello",
        ),
        (older(), "pkg_remove", json!({"package": "lab-hello"}), "remove -- lab-hello", None, "lab-dep"),
        (older(), "pkg_purge", json!({"package": "lab-hello"}), "purge -- lab-hello", None, "lab-dep"),
        (fresh(), "pkg_remove", json!({"package": "sudo"}), "remove -- sudo", critical, "rights"),
        (fresh(), "pkg_remove", json!({"package": "bash"}), "remove -- bash", critical, "essential"),
        (older(), "pkg_update", json!({}), "--with-new-pkgs upgrade", None, ""),
        (
            older(),
            "pkg_update",
            json!({"package": ["lab-hello"]}),
            "--only-upgrade install -- lab-hello",
            None,
            "",
        ),
    ];
    for (target, tool, arguments, end, risk, warning) in table {
        let shown = format!("{:?}", plan(target, tool, arguments.clone()));
        let expected: Vec<_> = end.split(' ').map(|word| format!("{word:?}")).collect();
        assert!(shown.contains(&expected.join(", ")), "{arguments}: {shown}");
        assert!(shown.contains("--force-confold") && shown.contains("interruptible: false"), "{shown}");
        assert!(shown.contains("PackageDatabase"), "{shown}");
        let raised = risk.map_or("risk: None".to_owned(), |risk| format!("risk: Some({risk:?})"));
        assert!(shown.contains(&raised), "{arguments}: {shown}");
        assert!(shown.contains(warning), "{arguments}: {shown}");
    }
}

#[test]
fn what_needs_nothing_done_or_cannot_be_done_is_said_before_anything_is_asked() {
    let (done, notes) = call(fresh(), "pkg_update", json!({})).expect("nothing to do");
    assert_eq!((done, notes), (json!({}), vec!["nothing has to be done".to_owned()]));
    let (_, notes) = call(fresh(), "pkg_remove", json!({"package": "lab-hello"})).expect("nothing to do");
    assert_eq!(notes, ["lab-hello is not installed"]);
    let held = || older().transcript(HELD);
    let table = [
        (fresh(), "pkg_install", json!({"package": "lab-missing"}), "DEPENDENCY_CONFLICT", "lab-nowhere"),
        (fresh(), "pkg_install", json!({"package": "lab-helo"}), "PACKAGE_NOT_FOUND", "lab-hello"),
        (fresh(), "pkg_remove", json!({"package": "lab-helo"}), "PACKAGE_NOT_FOUND", "lab-hello"),
        (fresh(), "pkg_update", json!({"package": "lab-hello"}), "PACKAGE_NOT_INSTALLED", "lab-hello"),
        (held(), "pkg_update", json!({"package": "lab-hello"}), "PACKAGE_HELD", "lab-hello"),
        (fresh(), "pkg_rollback", json!({"package": "bash"}), "VERSION_NOT_AVAILABLE", "bash"),
        (older(), "pkg_rollback", json!({"package": "lab-hello"}), "VERSION_NOT_AVAILABLE", "2.0, 1.0"),
        (
            older(),
            "pkg_rollback",
            json!({"package": "lab-hello", "version": "0.1"}),
            "VERSION_NOT_AVAILABLE",
            "2.0, 1.0",
        ),
        (
            older(),
            "pkg_update",
            json!({"refresh_only": true, "package": "bash"}),
            "CONFLICTING_ARGUMENTS",
            "refresh_only",
        ),
        (fresh(), "pkg_install", json!({"package": "lab-hello=1.0"}), "INVALID_PACKAGE_NAME", "version"),
        (fresh(), "pkg_install", json!({"package": []}), "NO_PACKAGE", "one name"),
    ];
    for (target, tool, arguments, expected, said) in table {
        let plans = target.plans();
        let (code, message) = code(target, tool, arguments.clone());
        assert_eq!(code, expected, "{arguments}: {message}");
        assert!(message.contains(said), "{arguments}: {message}");
        assert!(plans.borrow().is_empty(), "{arguments}");
    }
}

#[test]
fn history_is_apts_with_what_dpkg_did_alone_and_old_logs_as_well() {
    use std::io::Write;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed
        .write_all(
            b"Start-Date: 2026-10-01  01:02:03\nPurge: lab-old:amd64 (0.1)\nEnd-Date: 2026-10-01  01:02:04\n",
        )
        .expect("packed");
    let packed = packed.finish().expect("packed");
    let target = || {
        fresh()
            .file("/var/log/apt/history.log", HISTORY)
            .file("/var/log/apt/history.log.1.gz", packed.clone())
            .file("/var/log/apt/term.log", "not this one")
            .file("/var/log/dpkg.log", DPKG)
    };
    let all = data(target(), "pkg_history", json!({}));
    let shown: Vec<_> = all
        .as_array()
        .expect("a list")
        .iter()
        .map(|past| (past["at"].as_str().expect("at"), past["operations"][0].as_str().expect("operation")))
        .collect();
    assert_eq!(
        shown,
        [
            ("2026-11-22 20:50:01", "install lab-missing 1.0"),
            ("2026-11-22 20:40:00", "install lab-slow 1.0"),
            ("2026-11-22 20:31:54", "upgrade lab-hello 1.0 -> 2.0"),
            ("2026-11-22 20:30:05", "install lab-hello 1.0"),
            ("2026-10-01 01:02:03", "purge lab-old 0.1"),
        ]
    );
    assert_eq!((&all[3]["by"], &all[3]["operations"][1]), (&json!("admin"), &json!("install lab-dep 1.0")));
    assert!(all[2]["error"].as_str().is_some_and(|error| error.contains("dpkg")));
    assert_eq!(all[1]["error"], "it didn't finish");
    let (one, notes) = call(target(), "pkg_history", json!({"package": "lab-hello"})).expect("told");
    assert_eq!(one.as_array().map(Vec::len), Some(2));
    assert_eq!(one[1]["operations"], json!(["install lab-hello 1.0"]));
    assert_eq!(notes, ["available versions of lab-hello: 2.0, 1.0"]);
    assert_eq!(data(fresh(), "pkg_history", json!({})), json!([]));
}

#[test]
fn rotated_logs_are_read_until_there_is_enough_and_all_of_them_for_one_package() {
    let past = |at: usize| {
        let at = format!("{}-01-01  01:02:03", 3000 - at);
        format!("Start-Date: {at}\nRemove: lab-hello:amd64 (0.1)\nEnd-Date: {at}\n\n")
    };
    let years = |all: &Value| -> Vec<usize> {
        let year = |past: &Value| past["at"].as_str().and_then(|at| at[..4].parse().ok()).expect("a year");
        all.as_array().expect("a list").iter().map(year).collect()
    };
    let few = (1..13).fold(fresh().file("/var/log/apt/history.log", past(0)), |target, number| {
        target.file(&format!("/var/log/apt/history.log.{number}"), past(number))
    });
    assert_eq!(years(&data(few, "pkg_history", json!({}))), (2988..=3000).rev().collect::<Vec<_>>());

    let many = || {
        let newest: String = (0..300).rev().map(past).collect();
        fresh().file("/var/log/apt/history.log", newest).file("/var/log/apt/history.log.1", past(300))
    };
    let of_all = data(many(), "pkg_history", json!({"limit": 1000}));
    assert_eq!(years(&of_all), (2701..=3000).rev().collect::<Vec<_>>());
    let (of_one, _) =
        call(many(), "pkg_history", json!({"package": "lab-hello", "limit": 1000})).expect("told");
    assert_eq!(years(&of_one), (2700..=3000).rev().collect::<Vec<_>>());
}

#[test]
fn without_a_version_the_way_back_is_the_version_before_by_history() {
    let upgraded = || older().file("/var/log/apt/history.log", HISTORY.replace("(1.0, 2.0)", "(2.0, 1.0)"));
    let shown = format!("{:?}", plan_of_rollback(upgraded(), json!({"package": "lab-hello"})));
    assert!(shown.contains("lab-hello=2.0"), "{shown}");
    let named = json!({"package": "lab-hello", "version": "2.0"});
    assert!(format!("{:?}", plan_of_rollback(older(), named)).contains("lab-hello=2.0"));
}

/// The plan of a rollback. Its simulation is that of the upgrade, because none was recorded.
fn plan_of_rollback(target: FakeTarget, arguments: Value) -> Change {
    let simulation = ["apt-get", "--simulate", "--quiet", "-o", "APT::Get::Show-User-Simulation-Note=false"];
    let argv = [&simulation[..], &["--allow-downgrades", "install", "--", "lab-hello=2.0"]].concat();
    plan(
        target.answer(&argv, 0, "Inst lab-hello [1.0] (2.0 lab:stable [all])\n", ""),
        "pkg_rollback",
        arguments,
    )
}

#[test]
fn what_is_no_output_of_dpkgs_is_a_problem_and_not_a_guess() {
    let argv = dpkg_query();
    let argv: Vec<_> = argv.iter().map(String::as_str).collect();
    for bad in ["bash\t5\n", "Kein Paket gefunden\n", "\u{fffd}\u{fffd}"] {
        let target = FakeTarget::new().answer(&argv, 0, bad, "");
        assert_eq!(code(target, "pkg_list_installed", json!({})).0, "UNEXPECTED_OUTPUT", "{bad:?}");
    }
    let huge = (0..30_000).map(|n| format!("p{n}\t1.0\tall\tii \tno\tno\n")).collect::<String>();
    let target = FakeTarget::new().answer(&argv, 0, huge, "");
    assert_eq!(data(target, "pkg_list_installed", json!({})).as_array().map(Vec::len), Some(30_000));
    let empty = FakeTarget::new().answer(&argv, 0, "", "");
    assert_eq!(data(empty, "pkg_list_installed", json!({})), json!([]));
}

#[test]
fn a_removal_is_done_where_another_architecture_stays() {
    let removed = || call(without(twins(), "libma\t1.0\tamd64"), "pkg_remove", json!({"package": "libma"}));
    assert_eq!(removed().expect("done").0, json!({"removed": [{"name": "libma", "version": "1.0"}]}));
    let (code, message) = code(twins(), "pkg_remove", json!({"package": "libma"}));
    assert_eq!(code, "TRANSACTION_INCOMPLETE", "{message}");
}

#[test]
fn what_is_left_of_a_removed_package_can_be_purged() {
    let arguments = || json!({"package": "lab-conf"});
    assert_eq!(data(dry(twins()), "pkg_purge", arguments()), json!({"would_purge": [{"name": "lab-conf"}]}));
    let done = data(without(twins(), "lab-conf"), "pkg_purge", arguments());
    assert_eq!(done, json!({"purged": [{"name": "lab-conf", "version": "1.0"}]}));
}

#[test]
fn what_is_kept_back_is_an_update_of_any_architecture_and_of_security_by_any_source() {
    let (updates, notes) = call(twins(), "pkg_check_updates", json!({})).expect("told");
    let shown: Vec<_> = updates
        .as_array()
        .expect("a list")
        .iter()
        .map(|update| (update["name"].as_str().expect("name"), update.get("security").is_some()))
        .collect();
    let expected = [
        ("lab-sec", true),
        ("lab-hello", false),
        ("lab-needs", false),
        ("lab-pri", false),
        ("only386", false),
    ];
    assert_eq!(shown, expected);
    assert_eq!(notes, ["an update of all packages leaves these out: lab-needs, lab-sec, only386"]);
}

#[test]
fn the_size_of_a_change_counts_what_is_in_no_repository_any_more() {
    let sizes = |tool: &str, arguments: Value| {
        let data = data(dry(twins()), tool, arguments);
        let size = |name: &str| data.get(name).and_then(Value::as_f64);
        (size("would_download_mb"), size("would_require_disk_mb"))
    };
    assert_eq!(sizes("pkg_update", json!({"package": "lab-hello"})), (Some(7.0), Some(10.24)));
    assert_eq!(sizes("pkg_remove", json!({"package": "lab-hello"})), (None, Some(-20.48)));
    // The size of the current version isn't known.
    assert_eq!(sizes("pkg_update", json!({"package": "lab-pri"})), (Some(0.5), None));
}

#[test]
fn what_cannot_be_done_as_it_was_meant_is_refused() {
    let table = [
        // The package would only be configured again.
        ("lab-half", "PACKAGES_INTERRUPTED", "lab-half 1.0 is half-configured"),
        ("lab-virt", "PACKAGE_NOT_FOUND", "lab-prov 1.0"),
    ];
    for (name, expected, said) in table {
        let target = twins();
        let plans = target.plans();
        let (code, message) = code(target, "pkg_install", json!({"package": name}));
        assert_eq!(code, expected, "{message}");
        assert!(message.contains(said), "{message}");
        assert!(plans.borrow().is_empty(), "{name}");
    }
}

#[test]
fn a_search_that_failed_is_not_told_as_one_that_found_nothing() {
    assert_eq!(data(twins(), "pkg_search", json!({"query": "nonesuch"})), json!([]));
    // This is apt 2.6.1's message for an incomplete line of sources.list.
    let said = "E: Malformed entry 1 in list file /etc/apt/sources.list (Suite)\n\
        E: The list of sources could not be read.\n";
    let argv = dpkg_query();
    let argv: Vec<_> = argv.iter().map(String::as_str).collect();
    let broken = FakeTarget::new()
        .answer(&argv, 0, "", "")
        .answer(&["apt-cache", "search", "--", "lab"], 100, "", said)
        .answer(&["apt-cache", "policy", "--", "apt"], 100, "", said);
    let problem = call(broken, "pkg_search", json!({"query": "lab"})).expect_err("failed");
    assert!(format!("{problem:?}").contains("Malformed entry"), "{problem:?}");
}

#[test]
fn of_a_long_log_the_latest_part_is_told() {
    use std::io::Write;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for day in 0..100_000 {
        let at = format!("{:04}-01-01  01:02:03", day / 100);
        let past = format!(
            "Start-Date: {at}\nCommandline: apt-get remove lab-{day}\nRemove: lab-{day}:amd64 (0.1)\n"
        );
        packed.write_all(format!("{past}End-Date: {at}\n\n").as_bytes()).expect("packed");
    }
    let target = fresh().file("/var/log/apt/history.log.1.gz", packed.finish().expect("packed"));
    let newest = data(target, "pkg_history", json!({}));
    assert_eq!(newest[0]["at"], "0999-01-01 01:02:03");
}
