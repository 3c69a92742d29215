//! The tools of upkeep, with outputs of dnf 4.14.0 and rpm 4.18.0.
#![allow(clippy::unwrap_used, missing_docs)]

use linux_sysadmin_sdk::Problem;
use linux_sysadmin_sdk::bindings::sysadmin::module::confirm::Applied;
use linux_sysadmin_sdk::testkit::FakeTarget;
use module_packages_dnf::module;
use serde_json::{Value, json};

const LIST: [&str; 4] =
    ["rpm", "--query", "--all", r"--queryformat=%{NAME}\t%{EPOCHNUM}\t%{VERSION}\t%{RELEASE}\t%{ARCH}\n"];
const VERIFY: [&str; 2] = ["rpmdb", "--verifydb"];
const CHECK: [&str; 4] = ["dnf", "--quiet", "--cacheonly", "check"];
const HELLO: &str = "lab-base\t0\t40\t1\tnoarch\nlab-hello\t0\t2.0\t1\tnoarch\n";
const DAMAGED: &str =
    "error: verify: *** in database main ***\nPage 5: btreeInitPage() returns error code 11\n";

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

/// The arguments of the commands of the plan that a tool hands over.
fn plan(target: FakeTarget, tool: &str, arguments: Value) -> Vec<String> {
    let plans = target.plans();
    let _ = call(target, tool, arguments);
    let change = plans.borrow_mut().pop().unwrap_or_else(|| panic!("{tool} hands over a plan"));
    let text = format!("{change:?}");
    let args =
        text.split("args: [").skip(1).map(|rest| rest.split(']').next().unwrap().replace(['"', ','], ""));
    args.collect()
}

fn damaged(packages: &str, said: &str) -> FakeTarget {
    FakeTarget::new()
        .file("/var/lib/rpm/rpmdb.sqlite", "")
        .answer(&VERIFY, 2, "", DAMAGED)
        .answer(&LIST, 0, packages, said)
}

#[test]
fn nothing_is_repaired_where_nothing_is_broken() {
    let sound = FakeTarget::new().answer(&VERIFY, 0, "", "").answer(&CHECK, 0, "", "");
    assert_eq!(call(sound, "pkg_repair", json!({})).unwrap().0, json!({"nothing_to_repair": true}));
}

#[test]
fn a_damaged_index_is_made_anew_after_a_copy() {
    let lines = plan(damaged(HELLO, ""), "pkg_repair", json!({}));
    assert_eq!(
        lines[..2],
        ["--archive --no-target-directory -- /var/lib/rpm /var/lib/rpm.before-repair-0", "--rebuilddb"]
    );
    let done = Applied { outputs: vec![], dry_run: false };
    let mended = damaged(HELLO, "")
        .outcome(Ok(done.clone()))
        .answer_after(&VERIFY, 0, "", "")
        .answer_after(&CHECK, 0, "", "");
    let (data, notes) = call(mended, "pkg_repair", json!({})).unwrap();
    assert!(data["repaired"][0].as_str().unwrap().contains("Page 5"), "{data}");
    assert_eq!(notes, ["the database had 2 packages; its copy from before is /var/lib/rpm.before-repair-0"]);
    // A package that the new database doesn't have is told, and where the copy is.
    let lost = damaged(HELLO, "")
        .outcome(Ok(done))
        .answer_after(&VERIFY, 0, "", "")
        .answer_after(&CHECK, 0, "", "")
        .answer_after(&LIST, 0, "lab-base\t0\t40\t1\tnoarch\n", "");
    let problem = call(lost, "pkg_repair", json!({})).unwrap_err();
    assert_eq!(problem.code, "TRANSACTION_INCOMPLETE");
    for said in ["lab-hello 2.0-1", "/var/lib/rpm.before-repair-0"] {
        assert!(problem.message.contains(said), "{}", problem.message);
    }
}

/// rpm's exit code is 0 where it can't read its table of packages, and a new database would have none of them.
#[test]
fn a_damaged_table_of_packages_is_never_made_anew() {
    let said = "error: SELECT hnum, blob FROM 'Packages': 11: database disk image is malformed\n";
    for target in [damaged("", said), damaged(HELLO, said), damaged("", "")] {
        let plans = target.plans();
        let problem = call(target, "pkg_repair", json!({})).unwrap_err();
        assert_eq!(problem.code, "PACKAGE_DATABASE_DAMAGED");
        assert!(problem.remediation[0].contains("backup"), "{:?}", problem.remediation);
        assert!(plans.borrow().is_empty());
    }
}

#[test]
fn an_account_that_may_not_verify_is_no_damage() {
    let said = "error: can't create transaction lock on /var/lib/rpm/.rpm.lock (Permission denied)\n";
    let refused = |said: &str| {
        call(FakeTarget::new().answer(&VERIFY, 255, "", said), "pkg_repair", json!({})).unwrap_err().code
    };
    assert_eq!(refused(said), "PRIVILEGE_REQUIRED");
    let held =
        "error: can't create transaction lock on /var/lib/rpm/.rpm.lock (Resource temporarily unavailable)\n";
    assert_eq!(refused(held), "RESOURCE_LOCKED");
}

#[test]
fn dependencies_that_are_not_met_are_told() {
    let said = "lab-missing-1.0-1.noarch has missing requires of lab-nowhere >= 9\n";
    let broken = FakeTarget::new().answer(&VERIFY, 0, "", "").answer(
        &CHECK,
        1,
        said,
        "Error: Check discovered 1 problem(s)\n",
    );
    let problem = call(broken, "pkg_repair", json!({})).unwrap_err();
    assert_eq!((problem.code.as_str(), problem.message.as_str()), ("DEPENDENCIES_BROKEN", said.trim()));
}

#[test]
fn a_hold_is_a_locked_version_where_dnf_has_them() {
    let hello = json!({"package": "lab-hello"});
    let target = || FakeTarget::new().answer(&LIST, 0, HELLO, "");
    let able = || target().file("/etc/dnf/plugins/versionlock.conf", "[main]\nenabled = 1\n");
    let lines = plan(able(), "pkg_hold", hello.clone());
    assert_eq!(
        lines[..2],
        ["--quiet --cacheonly versionlock add lab-hello", "--quiet --cacheonly versionlock delete lab-hello"]
    );
    let problem = call(target(), "pkg_hold", hello.clone()).unwrap_err();
    assert_eq!(problem.code, "NOT_SUPPORTED");
    assert!(problem.remediation[0].contains("python3-dnf-plugin-versionlock"), "{:?}", problem.remediation);
    let locked = able().file("/etc/dnf/plugins/versionlock.list", "lab-hello-0:2.0-1.*\n");
    let lines = plan(locked, "pkg_unhold", hello);
    assert_eq!(lines[0], "--quiet --cacheonly versionlock delete lab-hello");
}

#[test]
fn damage_is_told_apart_from_changed_configuration_and_attributes() {
    let said = "missing     /usr/bin/lab-service\n.M.......    /usr/bin/lab-hello\nS.5....T.  c /etc/lab-conf.conf\n\
        Unsatisfied dependencies for lab-missing-1.0-1.noarch:\n\tlab-nowhere >= 9 is needed by (installed) lab-missing-1.0-1.noarch\n";
    let owners = [
        ("/usr/bin/lab-service", "lab-service\n"),
        ("/usr/bin/lab-hello", "lab-hello\n"),
        ("/etc/lab-conf.conf", "lab-conf\n"),
    ];
    let target = owners.iter().fold(
        FakeTarget::new().answer(&["rpm", "--verify", "--all"], 1, said, ""),
        |target, (path, name)| {
            let argv = ["rpm", "--query", r"--queryformat=%{NAME}\n", "--file", path];
            target.answer(&argv, 0, name, "")
        },
    );
    let (data, _) = call(target, "pkg_verify", json!({})).unwrap();
    assert_eq!(
        data,
        json!({
            "damaged_count": 1, "config_changed_count": 1,
            "damaged": [{"path": "/usr/bin/lab-service", "package": "lab-service", "differs": ["missing"]}],
            "attributes_changed": [{"path": "/usr/bin/lab-hello", "package": "lab-hello", "differs": ["mode"]}],
            "config_changed": [
                {"path": "/etc/lab-conf.conf", "package": "lab-conf", "differs": ["size", "digest", "time"]},
            ],
        })
    );
    let failed =
        FakeTarget::new().answer(&["rpm", "--verify", "--all"], 1, "", "error: cannot open Packages\n");
    assert!(call(failed, "pkg_verify", json!({})).unwrap_err().message.contains("cannot open"));
    let said = "package lab-none is not installed\n.M.......    /usr/bin/lab-hello\n";
    let owner = ["rpm", "--query", r"--queryformat=%{NAME}\n", "--file", "/usr/bin/lab-hello"];
    let absent = FakeTarget::new().answer(&["rpm", "--verify", "lab-none", "lab-hello"], 1, said, "").answer(
        &owner,
        0,
        "lab-hello\n",
        "",
    );
    let problem = call(absent, "pkg_verify", json!({"package": ["lab-none", "lab-hello"]})).unwrap_err();
    assert_eq!(problem.code, "PACKAGE_NOT_INSTALLED");
    assert!(problem.message.ends_with("aren't installed: lab-none"), "{}", problem.message);
}

/// rpm is asked for each path alone.
#[test]
fn many_changed_files_have_their_packages() {
    let paths: Vec<_> = (0..70).map(|number| format!("/usr/bin/lab-{number}")).collect();
    let said: String = paths.iter().map(|path| format!("missing     {path}\n")).collect();
    let verified = FakeTarget::new().answer(&["rpm", "--verify", "--all"], 1, &said, "");
    let target = paths.iter().fold(verified, |target, path| {
        let argv = ["rpm", "--query", r"--queryformat=%{NAME}\n", "--file", path];
        target.answer(&argv, 0, format!("of{path}\n"), "")
    });
    let (data, _) = call(target, "pkg_verify", json!({})).unwrap();
    let packages: Vec<_> =
        data["damaged"].as_array().unwrap().iter().map(|file| file["package"].clone()).collect();
    let expected: Vec<_> = paths.iter().map(|path| json!(format!("of{path}"))).collect();
    assert_eq!(packages, expected);
}

/// dnf takes a name for all packages that are called so.
#[test]
fn an_unneeded_version_never_costs_the_needed_one_of_the_same_name() {
    let removing = |rows: &str, count: usize| {
        format!(
            "Removing:\n{rows}\nTransaction Summary\n====\nRemove  {count} Packages\n\nFreed space: 56  \nOperation aborted.\n"
        )
    };
    let [old, new] = ["1.0-1", "2.0-1"].map(|version| format!(" lab-devel  noarch  {version}  @lab  29  \n"));
    let argv = |rest: &[&'static str]| [&["dnf", "--cacheonly", "--assumeno"][..], rest].concat();
    let target = |unneeded: String, count: usize| {
        FakeTarget::new()
            .answer(&LIST, 0, "lab-devel\t0\t1.0\t1\tnoarch\nlab-devel\t0\t2.0\t1\tnoarch\n", "")
            .answer(&argv(&["autoremove"]), 1, removing(&unneeded, count), "")
            .answer(&argv(&["remove", "lab-devel"]), 1, removing(&format!("{old}{new}"), 2), "")
    };
    let one = target(old.clone(), 1);
    let plans = one.plans();
    let problem = call(one, "pkg_autoremove", json!({})).unwrap_err();
    assert_eq!(problem.code, "PACKAGES_NEEDED");
    assert!(problem.message.contains("lab-devel 2.0-1"), "{}", problem.message);
    assert!(plans.borrow().is_empty());
    // Both may go where neither is needed.
    let lines = plan(target(format!("{old}{new}"), 2), "pkg_autoremove", json!({}));
    assert_eq!(lines[0].split(' ').filter(|word| *word == "lab-devel").count(), 1, "{lines:?}");
}
