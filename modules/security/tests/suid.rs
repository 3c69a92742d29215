//! `sec_check_suid` on recordings of a Debian 12 machine (findutils 4.9.0, libcap 2.66, dpkg 1.21.22).
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::testkit::FakeTarget;
use linux_sysadmin_sdk::{Category, Problem};
use module_security::module;
use serde_json::{Value, json};

/// What find printed on a machine where /usr/local/bin/rootid and `/tmp/a b` were added and find itself was made setuid.
const FIND: &str = include_str!("data/suid-find.txt");
/// perl and rootid were given capabilities.
const CAPABILITIES: &str = include_str!("data/suid-caps.txt");
/// chage was modified.
const SEARCH: &str = include_str!("data/suid-search.txt");
const VERIFY: &str = "??5??????   /usr/bin/chage\n??5?????? c /etc/login.defs\n";

const MOUNTS: &str = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:21 / /proc rw - proc proc rw\n";
const FIND_SUID: [&str; 8] = ["find", "/", "-xdev", "-type", "f", "-perm", "/6000", "-printf"];
const FIND_CAPABLE: [&str; 12] =
    ["find", "/", "-xdev", "-type", "f", "-perm", "/111", "-exec", "getcap", "--", "{}", "+"];

fn names(path: &str) -> Vec<&str> {
    let is_merged = ["/usr/bin/", "/usr/sbin/", "/usr/lib/"].iter().any(|start| path.starts_with(start));
    std::iter::once(path).chain(is_merged.then(|| &path[4..])).collect()
}

/// The paths of the files, as the tool asks for them.
fn paths(find: &str, capable: &str) -> Vec<String> {
    let suid = find.lines().map(|line| line.splitn(5, ' ').nth(4).unwrap());
    let capable = capable.lines().map(|line| line.rsplit_once(' ').unwrap().0);
    let mut paths: Vec<_> = suid.chain(capable).map(str::to_owned).collect();
    paths.sort();
    paths
}

fn target(find: &str, capable: &str, search: &str, verify: &str, packages: &[&str]) -> FakeTarget {
    let paths = paths(find, capable);
    let asked: Vec<&str> = paths.iter().flat_map(|path| names(path)).collect();
    FakeTarget::new()
        .account("root")
        .file("/proc/self/mountinfo", MOUNTS)
        .answer(&[&FIND_SUID[..], &["%m %U %G %D:%i %p\\0"]].concat(), 0, find.replace('\n', "\0"), "")
        .answer(&FIND_CAPABLE, 0, capable, "")
        .answer(
            &[&["dpkg-query", "--search", "--"], &asked[..]].concat(),
            1,
            search,
            "dpkg-query: no path found",
        )
        .answer(&[&["dpkg", "--verify"], packages].concat(), 0, verify, "")
        .without_program("rpm")
}

fn call(target: FakeTarget) -> Value {
    target.call(&module(), "sec_check_suid", json!({})).unwrap().0
}

fn found(data: &Value) -> Vec<(String, Vec<String>)> {
    let text = |value: &Value| value.as_str().unwrap().split(": ").next().unwrap().to_owned();
    let of = |entry: &Value| {
        let subjects = entry["subjects"].as_array().unwrap().iter().map(text).collect();
        (entry["kind"].as_str().unwrap().to_owned(), subjects)
    };
    let mut found: Vec<(String, Vec<String>)> =
        data["findings"].as_array().map(|entries| entries.iter().map(of).collect()).unwrap_or_default();
    found.sort();
    found
}

#[test]
fn what_no_package_has_so_is_told_with_the_call_that_takes_the_rights() {
    let packages = [
        "findutils",
        "libpam-modules-bin",
        "login",
        "mount",
        "openssh-client",
        "passwd",
        "perl-base",
        "sudo",
        "util-linux",
    ];
    let data = call(target(FIND, CAPABILITIES, SEARCH, VERIFY, &packages));
    let of = |kind: &str, paths: &[&str]| {
        (kind.to_owned(), paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>())
    };
    let expected = [
        of("capability-unexpected", &["/usr/bin/perl"]),
        of("capability-unowned", &["/usr/bin/perl5.36.0", "/usr/local/bin/rootid"]),
        of("suid-modified", &["/usr/bin/chage"]),
        of("suid-unexpected", &["/usr/bin/find"]),
        of("suid-unowned", &["/tmp/a b", "/usr/local/bin/rootid"]),
        of("suid-writable", &["/tmp/a b"]),
    ];
    assert_eq!(found(&data), expected, "{data}");
    let entries = data["findings"].as_array().unwrap();
    let mend = |kind: &str| &entries.iter().find(|entry| entry["kind"] == kind).unwrap()["mend"];
    assert_eq!(mend("suid-unexpected")["arguments"], json!({"path": "/usr/bin/find", "mode": "ug-s"}));
    assert_eq!(mend("suid-modified")["arguments"], json!({"package": ["passwd"]}));
}

#[test]
fn what_a_distribution_ships_is_nothing_to_tell() {
    let is_planted = |line: &&str| ["/rootid", "/find", "/tmp/"].iter().any(|part| line.contains(part));
    let find: String =
        FIND.lines().filter(|line| !is_planted(line)).map(|line| format!("{line}\n")).collect();
    let packages = ["libpam-modules-bin", "login", "mount", "openssh-client", "passwd", "sudo", "util-linux"];
    let data = call(target(&find, "", SEARCH, "", &packages));
    assert_eq!(data, json!({}));
}

#[test]
fn a_path_that_a_package_has_led_elsewhere_is_still_a_package_s() {
    // Written by hand in the format of dpkg 1.21.22, which prints diversions beside the owners.
    let search = "diversion by other from: /usr/bin/sudo\ndiversion by other to: /usr/bin/sudo.real\n\
                  sudo: /usr/bin/sudo\nlocal diversion from: /usr/bin/sudo\nlocal diversion to: /usr/bin/sudo.real\n";
    let data = call(target("4755 0 0 1:5 /usr/bin/sudo\n", "", search, "", &["sudo"]));
    assert_eq!(data, json!({}));
}

#[test]
fn rpm_says_itself_which_modes_and_capabilities_its_packages_bring() {
    // Written by hand in the format of rpm 4.18.0: `M` is the mode, `P` are the capabilities, `5` is the digest.
    let find = "4755 0 0 1:1 /usr/bin/find\n4755 0 0 1:2 /usr/bin/su\n4755 0 0 1:3 /usr/bin/gone\n4755 0 0 1:4 /usr/bin/mine\n4755 0 0 1:5 /usr/bin/sudo\n";
    let capable = "/usr/bin/newuidmap cap_setuid=ep\n/usr/bin/python cap_setuid=ep\n";
    let owner = |target: FakeTarget, path: &str, code: i32, said: &str, error: &str| {
        target.answer(&["rpm", "--query", "--queryformat=%{NAME}\\n", "--file", path], code, said, error)
    };
    let target = FakeTarget::new()
        .account("root")
        .file("/proc/self/mountinfo", MOUNTS)
        .answer(&[&FIND_SUID[..], &["%m %U %G %D:%i %p\\0"]].concat(), 0, find.replace('\n', "\0"), "")
        .answer(&FIND_CAPABLE, 0, capable, "")
        .without_program("dpkg-query");
    let target = owner(target, "/usr/bin/find", 0, "findutils\n", "");
    let target = owner(target, "/usr/bin/su", 0, "util-linux\n", "");
    let target = owner(target, "/usr/bin/sudo", 0, "sudo\n", "");
    let target =
        owner(target, "/usr/bin/gone", 1, "", "error: file /usr/bin/gone: No such file or directory\n");
    let target = owner(target, "/usr/bin/mine", 1, "file /usr/bin/mine is not owned by any package\n", "");
    let target = owner(target, "/usr/bin/newuidmap", 0, "shadow-utils\n", "");
    let target = owner(target, "/usr/bin/python", 0, "python3\n", "").answer(
        &["rpm", "--verify", "findutils", "python3", "shadow-utils", "sudo", "util-linux"],
        1,
        ".M.......    /usr/bin/find\n........P    /usr/bin/python\nS.5....T.    /usr/bin/sudo\n.......T.  c /etc/sudo.conf\n",
        "",
    );
    let data = call(target);
    let of = |kind: &str, path: &str| (kind.to_owned(), vec![path.to_owned()]);
    let expected = [
        of("capability-unexpected", "/usr/bin/python"),
        of("suid-modified", "/usr/bin/sudo"),
        of("suid-unexpected", "/usr/bin/find"),
        of("suid-unowned", "/usr/bin/mine"),
    ];
    assert_eq!(found(&data), expected, "{data}");
}

#[test]
fn without_a_database_nothing_is_called_unowned() {
    let broken = FakeTarget::new()
        .account("root")
        .file("/proc/self/mountinfo", MOUNTS)
        .answer(&[&FIND_SUID[..], &["%m %U %G %D:%i %p\\0"]].concat(), 0, "4755 0 0 1:1 /usr/bin/x\0", "")
        .answer(&FIND_CAPABLE, 1, "", "find: 'getcap': No such file or directory\n")
        .answer(
            &["dpkg-query", "--search", "--", "/usr/bin/x", "/bin/x"],
            2,
            "",
            "dpkg-query: error: failed to open package info file '/var/lib/dpkg/status' for reading: No such file or directory\n",
        )
        .answer(
            &["rpm", "--query", "--queryformat=%{NAME}\\n", "--file", "/usr/bin/x"],
            1,
            "",
            "error: cannot open Packages database in /var/lib/rpm\n",
        );
    let data = call(broken);
    assert!(data.get("findings").is_none(), "{data}");
    let unseen = data["unseen"].to_string();
    for part in ["getcap", "no database", "status", "Packages database"] {
        assert!(unseen.contains(part), "{part}: {unseen}");
    }
}

#[test]
fn a_search_that_takes_too_long_tells_what_it_has_not_seen() {
    let slow = FakeTarget::new().account("root").file("/proc/self/mountinfo", MOUNTS).failure(
        &FIND_CAPABLE,
        Problem::new("COMMAND_TIMEOUT", Category::Resource, "the command took longer than 120 s"),
    );
    let slow = slow.answer(&[&FIND_SUID[..], &["%m %U %G %D:%i %p\\0"]].concat(), 0, "", "");
    assert!(call(slow)["unseen"][0].as_str().unwrap().starts_with("capabilities of files on /"));
    let none = FakeTarget::new().file("/proc/self/mountinfo", "nonsense").call(
        &module(),
        "sec_check_suid",
        json!({}),
    );
    assert_eq!(none.unwrap_err().code, "UNEXPECTED_OUTPUT");
}

/// A machine with one such file, whose database of packages says this.
fn with_database(dpkg: (i32, &str, &str), rpm: (i32, &str, &str)) -> FakeTarget {
    FakeTarget::new()
        .account("root")
        .file("/proc/self/mountinfo", MOUNTS)
        .answer(&[&FIND_SUID[..], &["%m %U %G %D:%i %p\\0"]].concat(), 0, "4755 0 0 1:1 /usr/bin/x\0", "")
        .answer(&FIND_CAPABLE, 0, "", "")
        .answer(&["dpkg-query", "--search", "--", "/usr/bin/x", "/bin/x"], dpkg.0, dpkg.1, dpkg.2)
        .answer(&["rpm", "--query", "--queryformat=%{NAME}\\n", "--file", "/usr/bin/x"], rpm.0, rpm.1, rpm.2)
}

#[test]
fn a_database_that_is_locked_or_says_nothing_sensible_calls_no_file_unowned() {
    let not_dpkgs = (1, "", "dpkg-query: no path found matching pattern /usr/bin/x\n");
    // Written by hand: the message of rpm while another program has the lock.
    let locked =
        "error: can't create transaction lock on /var/lib/rpm/.rpm.lock (Resource temporarily unavailable)\n";
    let nothing = (1, "", "");
    let huge = "x y\n".repeat(300_000);
    for (dpkg, rpm, why) in [
        // As on a machine with rpm's database alone.
        (
            (2, "", "dpkg-query: error: failed to open package info file\n"),
            (1, "", locked),
            "transaction lock",
        ),
        ((2, "", "dpkg-query: error: failed to open package info file\n"), nothing, "another form"),
        ((0, "", ""), (1, "", locked), "dpkg-query printed another form"),
        (
            (0, "Fehler: alles anders\n", ""),
            (0, "Fehler: alles anders\n", ""),
            "dpkg-query printed another form",
        ),
        ((1, huge.as_str(), ""), (0, huge.as_str(), ""), "rpm printed another form"),
        ((0, "\u{fffd}\0\n", ""), (0, "\u{fffd}\0\n", ""), "no database could be asked"),
    ] {
        let data = call(with_database(dpkg, rpm));
        assert!(data.get("findings").is_none(), "{why}: {data}");
        assert!(data["unseen"].to_string().contains(why), "{why}: {data}");
    }
    // Where neither has it, the file is nobody's.
    let unowned = with_database(not_dpkgs, (1, "file /usr/bin/x is not owned by any package\n", ""));
    assert_eq!(found(&call(unowned)), [("suid-unowned".to_owned(), vec!["/usr/bin/x".to_owned()])]);
}

#[test]
fn a_comparison_that_fails_is_told() {
    for (code, stdout, stderr, why) in [
        // Written by hand: the message of dpkg without the rights for its database.
        (
            2,
            "",
            "dpkg: error: cannot access the dpkg database directory /var/lib/dpkg: Permission denied\n",
            "cannot access",
        ),
        (0, "Fehler: alles anders\n", "", "another form than expected"),
    ] {
        let target = with_database((0, "xpkg: /usr/bin/x\n", ""), (1, "", "")).without_program("rpm");
        let data = call(target.answer(&["dpkg", "--verify", "xpkg"], code, stdout, stderr));
        let unseen = data["unseen"][0].as_str().unwrap();
        assert!(unseen.starts_with("whether files are modified: ") && unseen.contains(why), "{why}: {data}");
    }
}

#[test]
fn a_file_that_vanishes_meanwhile_is_no_missing_program() {
    let base = |find: &str, error: &str| {
        FakeTarget::new()
            .account("root")
            .file("/proc/self/mountinfo", MOUNTS)
            .answer(&[&FIND_SUID[..], &["%m %U %G %D:%i %p\\0"]].concat(), 1, find, error)
            .answer(&FIND_CAPABLE, 1, "", error)
    };
    // Written by hand in the form of find and getcap; the first file has the program's name in its own.
    let vanished = "find: ‘/opt/getcap-data/a’: No such file or directory\n\
        Failed to get capabilities of file '/opt/b' (No such file or directory)\n";
    assert_eq!(call(base("", vanished)), json!({}));
    let missing = call(base("", "find: ‘getcap’: No such file or directory\n"));
    assert!(missing["unseen"].to_string().contains("the target has no getcap"), "{missing}");
}

#[test]
fn what_find_and_getcap_print_in_another_form_is_unseen() {
    let huge = "x y\n".repeat(300_000);
    for text in ["Fehler: alles anders\n", "\u{fffd} \0 \0\n", huge.as_str()] {
        let target = FakeTarget::new()
            .account("root")
            .file("/proc/self/mountinfo", MOUNTS)
            .answer(&[&FIND_SUID[..], &["%m %U %G %D:%i %p\\0"]].concat(), 0, text, "")
            .answer(&FIND_CAPABLE, 0, text, "");
        let data = call(target);
        assert!(data.get("findings").is_none(), "{data}");
        let unseen = data["unseen"].to_string();
        assert!(unseen.contains("what find printed") && unseen.contains("what getcap printed"), "{unseen}");
    }
}
