use std::fs;
use std::path::Path;

use super::*;
use crate::Groups;
use crate::expand::SelectedHost;

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFr0nJxMpU0Vg3Xo4nHhOMVHJ2ZrYVbKXGJyPWYPlM5S";

fn inventory(yaml: &str) -> Inventory {
    Inventory::load(&serde_yaml::from_str::<Groups>(yaml).unwrap(), &[]).unwrap()
}

/// Makes the allowed hosts from a list of the configuration.
fn listed(list: &[&str], local: bool, inventory: &Inventory) -> Allowed {
    let list: Vec<_> = list.iter().map(|text| HostPattern::try_from((*text).to_owned()).unwrap()).collect();
    Allowed::listed(&list, local, inventory)
}

fn known(aliases: &[&str], known_hosts: &str, local: bool, inventory: &Inventory) -> Allowed {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known_hosts");
    fs::write(&path, known_hosts.replace("KEY", KEY)).unwrap();
    let names = aliases.iter().map(|name| (*name).to_owned()).collect();
    Allowed::known(HostAliases { names, warnings: Vec::new() }, &[path], local, inventory)
}

fn names(allowed: &Allowed) -> String {
    allowed.names().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_the_configuration_lists_is_allowed_and_nothing_else() {
    let hosts = inventory("{web: [web1, web2], db: [db1]}");
    let allowed = listed(&["web", "mail", "lab-*"], true, &hosts);
    assert_eq!(names(&allowed), "localhost mail web1 web2");
    for (name, expected) in [
        ("web1", true),
        ("web2", true),
        ("mail", true),
        ("lab-7", true),
        ("lab", false),
        ("xlab-7", false),
        ("db1", false),
        ("web", false),
        ("web3", false),
        ("MAIL", false),
        ("", false),
        ("lab-7;id", false),
        ("lab-7\n", false),
        ("localhost", true),
    ] {
        assert_eq!(allowed.allows(name), expected, "{name}");
    }
    assert!(!listed(&["*"], true, &hosts).allows("-oProxyCommand=id"));
    assert!(listed(&["all"], true, &hosts).allows("db1"));
    assert!(!listed(&["all"], true, &hosts).allows("mail"));
}

#[test]
fn an_empty_list_allows_nobody() {
    let hosts = inventory("{web: [web1]}");
    let allowed = listed(&[], false, &hosts);
    assert!(!allowed.has_others() && !allowed.allows("web1") && !allowed.allows("localhost"));
    assert!(listed(&["lab-*"], false, &hosts).has_others());
    // This machine doesn't count as another one.
    assert!(!listed(&[], true, &hosts).has_others());
}

#[test]
fn without_a_list_what_ssh_and_the_inventory_know_is_allowed() {
    let hosts = inventory("{web: [web1]}");
    let allowed = known(
        &["alias", "Big", "b%d"],
        "Known.example,10.0.0.1 KEY\n[port]:2222 KEY\n@revoked bad KEY\n",
        true,
        &hosts,
    );
    assert_eq!(names(&allowed), "localhost Big alias web1 10.0.0.1 known.example");
    for (name, expected) in [
        ("alias", true),
        ("Big", true),
        ("big", false),
        ("web1", true),
        ("known.example", true),
        ("KNOWN.example", true),
        ("10.0.0.1", true),
        ("port", false),
        ("bad", false),
        ("b%d", false),
        ("other", false),
        ("web", false),
        ("localhost", true),
    ] {
        assert_eq!(allowed.allows(name), expected, "{name}");
    }
    assert!(!known(&[], "", false, &Inventory::default()).has_others());
    assert!(known(&[], "a KEY\n", false, &Inventory::default()).has_others());
}

#[test]
fn a_hidden_name_is_allowed_and_not_shown() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../openssh/src/known_hosts/fixtures/hashed");
    let allowed = Allowed::known(HostAliases::default(), &[fixture], false, &Inventory::default());
    assert!(allowed.allows("web.example.com") && !allowed.allows("db.example.com"));
    assert_eq!(names(&allowed), "");
    assert!(allowed.has_others());
}

#[test]
fn this_machine_is_allowed_by_a_setting_of_its_own_whatever_it_is_called() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hosts");
    fs::write(&path, "here ansible_connection=local\nweb1\n").unwrap();
    let hosts = Inventory::read(&Groups::default(), &[path]).unwrap();
    for (allowed, expected) in [
        (known(&[], "localhost KEY\n", true, &hosts), "localhost here web1"),
        (known(&["localhost"], "localhost,here KEY\n", false, &hosts), "web1"),
        (listed(&["here", "web1"], true, &hosts), "localhost here web1"),
        (listed(&["localhost", "here", "web1"], false, &hosts), "web1"),
        (listed(&["*"], false, &hosts), ""),
    ] {
        let local = expected.contains("here");
        assert_eq!((allowed.allows("here"), allowed.allows("localhost")), (local, local), "{expected}");
        assert_eq!(names(&allowed), expected);
    }
    // Another name of this machine has to be listed as well.
    assert!(!listed(&["web1"], true, &hosts).allows("here"));
}

#[test]
fn what_is_allowed_is_what_it_was_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known_hosts");
    fs::write(&path, format!("before {KEY}\n")).unwrap();
    let allowed =
        Allowed::known(HostAliases::default(), std::slice::from_ref(&path), true, &Inventory::default());
    fs::write(&path, format!("before {KEY}\nafter {KEY}\n")).unwrap();
    assert!(allowed.allows("before") && !allowed.allows("after"));
}

#[test]
fn a_file_that_is_missing_is_empty_and_one_that_cannot_be_read_is_told_of() {
    let directory = tempfile::tempdir().unwrap();
    let files = [directory.path().join("none"), directory.path().to_owned()];
    let aliases =
        HostAliases { warnings: vec!["No host of x may be named.".to_owned()], ..HostAliases::default() };
    let allowed = Allowed::known(aliases, &files, true, &Inventory::default());
    assert_eq!(allowed.warnings().len(), 2, "{:?}", allowed.warnings());
    assert!(allowed.warnings()[1].contains("not a regular file"));
    assert!(!allowed.allows("web1"));
}

#[test]
fn thousands_of_lines_are_not_taken_apart_before_they_are_asked_about() {
    let lines: String =
        (0..10_000).map(|n| format!("host{n}.example,10.0.{}.{} KEY\n", n / 250, n % 250)).collect();
    let allowed = known(&[], &lines, true, &Inventory::default());
    let AllowedBy::Known { known_hosts, .. } = &allowed.by else { panic!("{allowed:?}") };
    assert!(LazyLock::get(known_hosts).is_none());
    assert!(allowed.allows("host9999.example"));
    assert!(LazyLock::get(known_hosts).is_some());
    assert_eq!(allowed.names().count(), 20_001);
    let named = Inventory::default().expand(&["host1.example".to_owned()], &allowed).unwrap();
    assert_eq!(named, [SelectedHost { name: "host1.example".to_owned(), explicit: true }]);
}

#[test]
fn where_the_configuration_lists_hosts_no_other_file_counts() {
    let list = HostPattern::try_from("web1".to_owned()).unwrap();
    let allowed = Allowed::load(Some(&[list]), false, &Inventory::default());
    assert_eq!(names(&allowed), "web1");
    assert_eq!(allowed.warnings(), [""; 0]);
}

#[test]
fn the_files_that_ssh_reads_by_itself_are_read() {
    let files = known_hosts_files();
    let ends =
        [".ssh/known_hosts", ".ssh/known_hosts2", "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"];
    assert_eq!(files.len(), ends.len());
    for (file, end) in files.iter().zip(ends) {
        assert!(file.is_absolute() && file.ends_with(end), "{file:?}");
    }
    // This holds whatever this machine has, because a missing file isn't an error.
    assert!(Allowed::load(None, true, &Inventory::default()).allows("localhost"));
}
