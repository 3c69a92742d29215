//! The tools of upkeep, with outputs of apt 2.6.2 and dpkg 1.21.23 on Debian 12.
#![allow(clippy::unwrap_used, missing_docs)]

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm::Applied;
use linux_sysadmin_sdk::testkit::FakeTarget;
use linux_sysadmin_sdk::{Change, Problem, Risk};
use module_packages_apt::module;
use serde_json::{Value, json};

const STATUS: [&str; 3] = [
    "dpkg-query",
    "--show",
    r"--showformat=${Package}\t${Version}\t${Architecture}\t${db:Status-Abbrev}\t${Essential}\t${Protected}\n",
];
/// Prints of these packages what [`STATUS`] prints of all.
fn status_of<'a>(names: &[&'a str]) -> Vec<&'a str> {
    [&STATUS[..], &["--"], names].concat()
}
const FIX: [&str; 7] = [
    "apt-get",
    "--simulate",
    "--quiet",
    "-o",
    "APT::Get::Show-User-Simulation-Note=false",
    "--fix-broken",
    "install",
];
const READING: &str = "Reading package lists...\nBuilding dependency tree...\nReading state information...\n";
const WHOLE: &str = "0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n";
const HELLO: &str = "lab-hello\t2.0\tall\tii \tno\tno\n";

/// A target with these packages, on which the simulation of a repair says this after its first lines.
fn target(packages: &str, simulated: &str) -> FakeTarget {
    FakeTarget::new().file("/var/lib/dpkg/updates/tmp.i", "").answer(&STATUS, 0, packages, "").answer(
        &FIX,
        0,
        format!("{READING}{simulated}"),
        "",
    )
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

/// The plan that a tool hands over, with its command lines.
fn plan(target: FakeTarget, tool: &str, arguments: Value) -> (Change, Vec<String>) {
    let plans = target.plans();
    let _ = call(target, tool, arguments);
    let change = plans.borrow_mut().pop().unwrap_or_else(|| panic!("{tool} hands over a plan"));
    let text = format!("{change:?}");
    let args =
        text.split("args: [").skip(1).map(|rest| rest.split(']').next().unwrap().replace(['"', ','], ""));
    (change, args.collect())
}

#[test]
fn nothing_is_repaired_where_nothing_is_broken() {
    let (data, _) = call(target(HELLO, WHOLE), "pkg_repair", json!({})).unwrap();
    assert_eq!(data, json!({"nothing_to_repair": true}));
    assert_eq!(
        call(target("", WHOLE), "pkg_repair", json!({})).unwrap().0,
        json!({"nothing_to_repair": true})
    );
}

#[test]
fn what_was_cut_off_is_configured() {
    let slow = "lab-slow\t1.0\tall\tiF \tno\tno\n";
    let said = format!("{WHOLE}1 not fully installed or removed.\nConf lab-slow (1.0 lab:stable [all])\n");
    let cut = || target(slow, &said).file("/var/lib/dpkg/updates/0000", "");
    let (change, lines) = plan(cut(), "pkg_repair", json!({}));
    assert_eq!(lines[0], "--force-confold --configure --pending");
    let text = format!("{change:?}");
    assert!(text.contains("a run of dpkg was cut off; lab-slow 1.0 is half-configured"), "{text}");
    assert!(text.contains("DEBIAN_FRONTEND"), "{text}");
    // A number alone makes an update: dpkg leaves its draft.
    let draft = target(HELLO, WHOLE).file("/var/lib/dpkg/updates/0000", "");
    let draft = plan(draft, "pkg_repair", json!({})).1;
    assert_eq!(draft[0], "--force-confold --configure --pending");
    let done = cut().outcome(Ok(Applied { outputs: vec![], dry_run: false }));
    let problem = call(done, "pkg_repair", json!({})).unwrap_err();
    assert_eq!(problem.code, "TRANSACTION_INCOMPLETE");
    assert!(problem.message.contains("lab-slow 1.0 is half-configured"), "{}", problem.message);
}

#[test]
fn unmet_dependencies_are_mended_as_simulated_and_a_removal_is_a_high_risk() {
    let missing = "lab-missing\t1.0\tall\tiU \tno\tno\n";
    let said = "Correcting dependencies... Done\nThe following packages will be REMOVED:\n  lab-missing\n\
        0 upgraded, 0 newly installed, 1 to remove and 0 not upgraded.\n1 not fully installed or removed.\n\
        Remv lab-missing [1.0]\n";
    let (change, lines) = plan(target(missing, said), "pkg_repair", json!({}));
    assert!(lines[0].ends_with("--fix-broken install"), "{lines:?}");
    assert!(format!("{change:?}").contains(&format!("{:?}", Risk::High)), "{change:?}");
    let cut = target(missing, said).file("/var/lib/dpkg/updates/0007", "");
    let lines = plan(cut, "pkg_repair", json!({})).1;
    assert!(lines[0].ends_with("--pending") && lines[1].ends_with("--fix-broken install"), "{lines:?}");
    let dry = target(missing, said).outcome(Ok(Applied { outputs: vec![], dry_run: true }));
    let (data, _) = call(dry, "pkg_repair", json!({})).unwrap();
    assert_eq!(data["would_remove"], json!([{"name": "lab-missing", "version": "1.0"}]));
}

#[test]
fn a_package_that_has_to_be_installed_anew_is_told_with_the_tool_that_does_it() {
    let said = format!("{WHOLE}1 not fully installed or removed.\n");
    let problem =
        call(target("lab-conf\t2.0\tall\tiHR\tno\tno\n", &said), "pkg_repair", json!({})).unwrap_err();
    assert_eq!(
        (problem.code.as_str(), problem.message.as_str()),
        ("PACKAGES_INTERRUPTED", "lab-conf 2.0 is reinst-required")
    );
    assert!(problem.remediation[0].contains("`pkg_install` with lab-conf"), "{:?}", problem.remediation);
}

/// apt-get refuses every change until such a package is gone.
#[test]
fn a_broken_package_that_no_repository_has_is_removed_alone_as_a_high_risk() {
    let refused = "E: The package lab-slow needs to be reinstalled, but I can't find an archive for it.\n";
    let broken = "lab-conf\t2.0\tall\tiHR\tno\tno\nlab-slow\t1.0\tall\tiHR\tno\tno\n";
    let policy = "lab-conf:\n  Installed: 2.0\n  Candidate: 2.0\n  Version table:\n *** 2.0 500\n        \
        500 file:/opt/aptrepo ./ Packages\n        100 /var/lib/dpkg/status\n\
        lab-slow:\n  Installed: 1.0\n  Candidate: 1.0\n  Version table:\n *** 1.0 100\n        \
        100 /var/lib/dpkg/status\n";
    let target = || {
        FakeTarget::new()
            .file("/var/lib/dpkg/updates/tmp.i", "")
            .answer(&STATUS, 0, broken, "")
            .answer(&FIX, 100, READING, refused)
            .answer(&["apt-cache", "policy", "--", "lab-conf", "lab-slow"], 0, policy, "")
    };
    let (change, lines) = plan(target(), "pkg_repair", json!({}));
    assert_eq!(lines[0], "--force-remove-reinstreq --remove lab-slow:all");
    assert_eq!(lines[1], "--no-act --force-remove-reinstreq --remove lab-slow:all");
    assert!(format!("{change:?}").contains(&format!("{:?}", Risk::High)), "{change:?}");
    let dry = target().outcome(Ok(Applied { outputs: vec![], dry_run: true }));
    let (data, notes) = call(dry, "pkg_repair", json!({})).unwrap();
    assert_eq!(data["would_remove"], json!([{"name": "lab-slow", "version": "1.0"}]));
    assert_eq!(notes, ["no repository has an archive of what is removed"]);
}

#[test]
fn a_hold_is_set_released_and_noted() {
    let (change, lines) = plan(target(HELLO, WHOLE), "pkg_hold", json!({"package": "lab-hello"}));
    assert_eq!(&lines[..2], ["hold -- lab-hello", "unhold -- lab-hello"], "{change:?}");
    let held = "lab-hello\t2.0\tall\thi \tno\tno\n";
    let (data, notes) = call(target(held, WHOLE), "pkg_hold", json!({"package": "lab-hello"})).unwrap();
    assert_eq!((data, notes[0].as_str()), (json!({}), "lab-hello is held already"));
    let lines = plan(target(held, WHOLE), "pkg_unhold", json!({"package": ["lab-hello"]})).1;
    assert_eq!(&lines[..2], ["unhold -- lab-hello", "hold -- lab-hello"]);
    let after = target(HELLO, WHOLE)
        .outcome(Ok(Applied { outputs: vec![], dry_run: false }))
        .answer_after(&STATUS, 0, held, "");
    let (data, _) = call(after, "pkg_hold", json!({"package": "lab-hello"})).unwrap();
    assert_eq!(data, json!({"held": [{"name": "lab-hello", "version": "2.0"}]}));
    let untrue = target(HELLO, WHOLE).outcome(Ok(Applied { outputs: vec![], dry_run: false }));
    let problem = call(untrue, "pkg_hold", json!({"package": "lab-hello"})).unwrap_err();
    assert_eq!(problem.code, "TRANSACTION_INCOMPLETE");
    for tool in ["pkg_hold", "pkg_unhold", "pkg_verify"] {
        let none = "dpkg-query: no packages found matching lab-none\n";
        let target = || target(HELLO, WHOLE).answer(&status_of(&["lab-none"]), 1, "", none);
        let refused = |packages: &str| call(target(), tool, json!({"package": packages})).unwrap_err().code;
        assert_eq!(refused("lab-none"), "PACKAGE_NOT_INSTALLED", "{tool}");
        for name in ["lab*", "--all", "/etc/passwd", ""] {
            assert_eq!(refused(name), "INVALID_PACKAGE_NAME", "{tool} {name}");
        }
    }
}

#[test]
fn damage_is_told_apart_from_changed_configuration() {
    let said = "??5?????? c /etc/lab-conf.conf\n??5??????   /usr/bin/lsattr\nmissing     /usr/bin/free\n\
        ????????? c /etc/sudoers\n";
    let owners = "lab-conf: /etc/lab-conf.conf\ne2fsprogs: /usr/bin/lsattr\nprocps: /usr/bin/free\nsudo: /etc/sudoers\n";
    let search = [
        "dpkg-query",
        "--search",
        "--",
        "/etc/lab-conf.conf",
        "/usr/bin/lsattr",
        "/usr/bin/free",
        "/etc/sudoers",
    ];
    let all = FakeTarget::new().answer(&["dpkg", "--verify"], 0, said, "").answer(&search, 0, owners, "");
    let (data, notes) = call(all, "pkg_verify", json!({})).unwrap();
    assert_eq!(
        data,
        json!({
            "damaged_count": 2, "config_changed_count": 1,
            "damaged": [
                {"path": "/usr/bin/lsattr", "package": "e2fsprogs", "differs": ["digest"]},
                {"path": "/usr/bin/free", "package": "procps", "differs": ["missing"]},
            ],
            "config_changed": [{"path": "/etc/lab-conf.conf", "package": "lab-conf", "differs": ["digest"]}],
            "unreadable": ["/etc/sudoers"],
        })
    );
    assert_eq!(notes, ["files that only root may read weren't compared"]);
    let sound = FakeTarget::new().answer(&["dpkg", "--verify"], 0, "", "");
    let (data, _) = call(sound, "pkg_verify", json!({})).unwrap();
    assert_eq!(data, json!({"damaged_count": 0, "config_changed_count": 0}));
    // dpkg refuses a name that stands for two packages.
    let two = "libc6\t2.36\tamd64\tii \tno\tno\nlibc6\t2.36\ti386\tii \tno\tno\n";
    let both = FakeTarget::new()
        .answer(&status_of(&["libc6"]), 0, two, "")
        .answer(&["dpkg", "--verify", "libc6:amd64", "libc6:i386"], 0, "missing     /usr/lib32/x\n", "")
        .answer(&["dpkg-query", "--search", "--", "/usr/lib32/x"], 0, "libc6:i386: /usr/lib32/x\n", "");
    let (data, _) = call(both, "pkg_verify", json!({"package": "libc6"})).unwrap();
    assert_eq!(data["damaged"][0]["path"], "/usr/lib32/x");
    let foreign = FakeTarget::new().answer(&["dpkg", "--verify"], 0, "fehlend    /usr/bin/free\n", "");
    assert_eq!(call(foreign, "pkg_verify", json!({})).unwrap_err().code, "UNEXPECTED_OUTPUT");
}

/// The target answers no other command.
#[test]
fn a_package_with_digests_is_compared_without_a_look_at_the_database() {
    let compared = FakeTarget::new().file("/var/lib/dpkg/info/lab-hello.md5sums", "").answer(
        &["dpkg", "--verify", "lab-hello"],
        0,
        "missing     /usr/bin/lab-hello\n",
        "",
    );
    let (data, _) = call(compared, "pkg_verify", json!({"package": "lab-hello"})).unwrap();
    assert_eq!(data["damaged"][0]["path"], "/usr/bin/lab-hello");
}

/// dpkg finds nothing wrong with a package of which only configuration files are left.
#[test]
fn a_package_that_was_removed_is_not_sound() {
    let left = "lab-conf\t1.0\tall\trc \tno\tno\n";
    let removed = FakeTarget::new().answer(&status_of(&["lab-conf"]), 0, left, "").answer(
        &["dpkg", "--verify", "lab-conf"],
        0,
        "",
        "",
    );
    let problem = call(removed, "pkg_verify", json!({"package": "lab-conf"})).unwrap_err();
    assert_eq!(problem.message, "these packages aren't installed: lab-conf");
    let one = FakeTarget::new()
        .answer(&status_of(&["lab-hello", "lab-none"]), 1, HELLO, "dpkg-query: no packages found\n")
        .answer(
            &["dpkg", "--verify", "lab-hello", "lab-none"],
            1,
            "",
            "dpkg: package 'lab-none' is not installed\n",
        );
    let problem = call(one, "pkg_verify", json!({"package": ["lab-hello", "lab-none"]})).unwrap_err();
    assert_eq!(problem.message, "these packages aren't installed: lab-none");
    let locked = FakeTarget::new()
        .answer(&status_of(&["lab-hello"]), 2, "", "dpkg-query: error: parsing file '/var/lib/dpkg/status'\n")
        .answer(&["dpkg", "--verify", "lab-hello"], 2, "", "");
    assert_eq!(
        call(locked, "pkg_verify", json!({"package": "lab-hello"})).unwrap_err().code,
        "COMMAND_FAILED"
    );
}

#[test]
fn a_file_is_found_behind_links_and_in_merged_directories() {
    let stat = ["stat", r"--printf=%F\t%n\n", "--", "/bin/ls", "/usr/bin/pager", "/nonexist", "/opt/made"];
    let target_of =
        ["readlink", "--canonicalize-missing", "--", "/bin/ls", "/usr/bin/pager", "/nonexist", "/opt/made"];
    let search =
        ["/bin/ls", "/bin/pager", "/nonexist", "/opt/made", "/usr/bin/ls", "/usr/bin/pager"].as_slice();
    let [search, search_links] = [search, &["/bin/less", "/usr/bin/less"]]
        .map(|paths| [&["dpkg-query", "--search", "--"], paths].concat());
    let nothing = "dpkg-query: no path found matching pattern /x\n";
    let missing = "stat: cannot statx '/nonexist': No such file or directory\n";
    let there = "regular file\t/bin/ls\nsymbolic link\t/usr/bin/pager\nregular file\t/opt/made\n";
    let target = FakeTarget::new()
        .answer(&stat, 1, there, missing)
        .answer(&target_of, 0, "/usr/bin/ls\n/usr/bin/less\n/nonexist\n/opt/made\n", "")
        .answer(&search, 1, "coreutils: /bin/ls\n", nothing)
        .answer(&search_links, 1, "less: /usr/bin/less\n", nothing);
    let files = json!({"files": ["/bin/ls", "/usr/bin/pager", "/nonexist", "/opt/made"]});
    let (data, notes) = call(target, "pkg_owner", files).unwrap();
    assert_eq!(
        data,
        json!([
            {"path": "/bin/ls", "packages": ["coreutils"]},
            {"path": "/usr/bin/pager", "packages": ["less"], "file": "/usr/bin/less"},
            {"path": "/nonexist"},
            {"path": "/opt/made"},
        ])
    );
    assert_eq!(notes.len(), 2);
    assert!(
        notes[0].contains("/nonexist isn't there") && notes[1].contains("/opt/made is there"),
        "{notes:?}"
    );
}

#[test]
fn what_apt_keeps_is_cleaned_and_its_metadata_is_not() {
    let du = ["du", "--bytes", "--summarize", "--", "/var/cache/apt/archives"];
    let target = || FakeTarget::new().answer(&du, 0, "5000\t/var/cache/apt/archives\n", "");
    let done = target().outcome(Ok(Applied { outputs: vec![], dry_run: false })).answer_after(
        &du,
        0,
        "120\t/var/cache/apt/archives\n",
        "",
    );
    let (data, _) = call(done, "pkg_clean", json!({})).unwrap();
    assert_eq!(data, json!({"freed_bytes": 4880, "cached_bytes": 120}));
    assert_eq!(call(target(), "pkg_clean", json!({"what": "metadata"})).unwrap_err().code, "NOT_SUPPORTED");
}

/// The output comes from apt 2.6.1. `apt-get remove -- libfoo` removes the machine's own package, which somebody installed.
#[test]
fn an_unneeded_package_of_another_architecture_never_costs_the_machines_own() {
    let simulate = ["apt-get", "--simulate", "--quiet", "-o", "APT::Get::Show-User-Simulation-Note=false"];
    let argv = |rest: &[&'static str]| [&simulate[..], rest].concat();
    let said = |name: &str| {
        format!(
            "{READING}The following packages will be REMOVED:\n  {name}\n\
            0 upgraded, 0 newly installed, 1 to remove and 0 not upgraded.\nRemv {name} [1.0]\n"
        )
    };
    let both = "libfoo\t1.0\tamd64\tii \tno\tno\nlibfoo\t1.0\ti386\tii \tno\tno\n";
    let target = FakeTarget::new()
        .answer(&STATUS, 0, both, "")
        .answer(&argv(&["autoremove"]), 0, said("libfoo:i386"), "")
        .answer(&argv(&["remove", "--", "libfoo"]), 0, said("libfoo"), "");
    let plans = target.plans();
    let problem = call(target, "pkg_autoremove", json!({})).unwrap_err();
    assert!(problem.message.contains("libfoo:i386"), "{}", problem.message);
    assert!(plans.borrow().is_empty());
}
