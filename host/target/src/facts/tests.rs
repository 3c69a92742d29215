//! The facts of real distributions, from their files; see `os-release/README.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::derive::{Answers, derive};
use super::*;

/// The file, the family, the name, the version, the code name if there is one, and the package manager that the
/// distribution's own programs show.
const DISTRIBUTIONS: &[(&str, &str, &str, &str, &str, &str)] = &[
    ("debian-10", "debian", "Debian GNU/Linux", "10", "buster", "apt"),
    ("debian-11", "debian", "Debian GNU/Linux", "11", "bullseye", "apt"),
    ("debian-12", "debian", "Debian GNU/Linux", "12", "bookworm", "apt"),
    ("debian-13", "debian", "Debian GNU/Linux", "13", "trixie", "apt"),
    ("ubuntu-20.04", "debian", "Ubuntu", "20.04", "focal", "apt"),
    ("ubuntu-22.04", "debian", "Ubuntu", "22.04", "jammy", "apt"),
    ("ubuntu-24.04", "debian", "Ubuntu", "24.04", "noble", "apt"),
    ("ubuntu-25.10", "debian", "Ubuntu", "25.10", "questing", "apt"),
    ("ubuntu-26.04", "debian", "Ubuntu", "26.04", "resolute", "apt"),
    ("raspbian-8", "debian", "Raspbian GNU/Linux", "8", "", "apt"),
    ("raspbian-12", "debian", "Raspbian GNU/Linux", "12", "bookworm", "apt"),
    ("linuxmint-22", "debian", "Linux Mint", "22", "wilma", "apt"),
    ("lmde-6", "debian", "LMDE", "6", "faye", "apt"),
    ("pop-22.04", "debian", "Pop!_OS", "22.04", "jammy", "apt"),
    ("kali-2025.4", "debian", "Kali GNU/Linux", "2025.4", "kali-rolling", "apt"),
    ("devuan-5", "debian", "Devuan GNU/Linux", "5", "daedalus", "apt"),
    ("fedora-40", "rhel", "Fedora Linux", "40", "", "dnf"),
    ("fedora-41", "rhel", "Fedora Linux", "41", "", "dnf"),
    ("fedora-42", "rhel", "Fedora Linux", "42", "", "dnf"),
    ("fedora-43", "rhel", "Fedora Linux", "43", "", "dnf"),
    ("fedora-44", "rhel", "Fedora Linux", "44", "", "dnf"),
    ("rhel-8", "rhel", "Red Hat Enterprise Linux", "8.9", "", "dnf"),
    ("rhel-9", "rhel", "Red Hat Enterprise Linux", "9.6", "", "dnf"),
    ("rhel-10", "rhel", "Red Hat Enterprise Linux", "10.0", "", "dnf"),
    ("rocky-8", "rhel", "Rocky Linux", "8.4", "", "dnf"),
    ("rocky-9", "rhel", "Rocky Linux", "9.3", "", "dnf"),
    ("rocky-10", "rhel", "Rocky Linux", "10.1", "", "dnf"),
    ("almalinux-8", "rhel", "AlmaLinux", "8.10", "", "dnf"),
    ("almalinux-9", "rhel", "AlmaLinux", "9.6", "", "dnf"),
    ("almalinux-10", "rhel", "AlmaLinux", "10.0", "", "dnf"),
    ("oracle-8", "rhel", "Oracle Linux Server", "8.10", "", "dnf"),
    ("oracle-9", "rhel", "Oracle Linux Server", "9.3", "", "dnf"),
    ("oracle-10", "rhel", "Oracle Linux Server", "10.0", "", "dnf"),
    ("centos-9", "rhel", "CentOS Stream", "9", "", "dnf"),
    ("centos-10", "rhel", "CentOS Stream", "10", "", "dnf"),
    ("amazon-2023", "rhel", "Amazon Linux", "2023", "", "dnf"),
    // These have yum only.
    ("centos-7", "rhel", "CentOS Linux", "7", "", "none"),
    ("amazon-2", "rhel", "Amazon Linux", "2", "", "none"),
    ("opensuse-leap-15.6", "suse", "openSUSE Leap", "15.6", "", "zypper"),
    ("opensuse-tumbleweed", "suse", "openSUSE Tumbleweed", "20240823", "", "zypper"),
    ("sles-15", "suse", "SLES", "15.7", "", "zypper"),
    ("arch", "arch", "Arch Linux", "", "", "pacman"),
    ("manjaro", "arch", "Manjaro Linux", "", "", "pacman"),
    ("endeavouros", "arch", "EndeavourOS", "", "", "pacman"),
    ("alpine-3.22", "alpine", "Alpine Linux", "3.22.1", "", "apk"),
    ("nixos-25.11", "nixos", "NixOS", "25.11", "xantusia", "nix"),
    ("void", "void", "Void", "", "", "xbps"),
    ("gentoo", "gentoo", "Gentoo", "", "", "emerge"),
    // These belong to no family, and so their own ID is the family.
    ("slackware-14", "slackware", "Slackware", "14.1", "", "none"),
    ("guix", "guix", "Guix System", "", "", "none"),
    ("openwrt-22.03", "openwrt", "OpenWrt", "22.03.4", "", "none"),
];

fn recorded(file: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/facts/os-release");
    fs::read_to_string(directory.join(file)).unwrap()
}

fn facts_of(file: &str, programs: &[&'static str]) -> Facts {
    derive(&Answers {
        files: Some(BTreeMap::from([("/etc/os-release", recorded(file))])),
        there: Some(programs.iter().copied().collect()),
        ..Answers::default()
    })
}

#[test]
fn each_distribution_is_known_by_its_own_file() {
    for &(file, family, name, version, codename, manager) in DISTRIBUTIONS {
        let programs: &[&str] = match manager {
            "apt" => &["apt-get", "adduser"],
            "dnf" => &["dnf", "adduser"],
            "pacman" => &["pacman", "adduser"],
            "zypper" => &["zypper", "adduser"],
            "apk" => &["apk", "adduser"],
            "xbps" => &["xbps-install", "adduser"],
            "emerge" => &["emerge", "adduser"],
            "nix" => &["nix-env", "adduser"],
            _ => &["adduser"],
        };
        let facts = facts_of(file, programs);
        let found = (facts.family.as_str(), facts.name.as_str(), facts.version.as_str());
        assert_eq!(found, (family, name, version), "{file}");
        assert_eq!(facts.codename.as_deref().unwrap_or_default(), codename, "{file}");
        assert_eq!(facts.package_manager, manager, "{file}");
        let users = if family == "debian" { "adduser" } else { "useradd" };
        assert_eq!(facts.user_management, users, "{file}");
        for unknown in ["family", "name", "version", "codename", "package_manager", "user_management"] {
            assert!(!facts.unknown.iter().any(|fact| fact == unknown), "{file}: {unknown}");
        }
    }
}

#[test]
fn where_both_package_managers_are_installed_the_family_decides() {
    for &(file, family, ..) in DISTRIBUTIONS {
        let manager = if family == "rhel" { "dnf" } else { "apt" };
        assert_eq!(facts_of(file, &["apt-get", "dnf"]).package_manager, manager, "{file}");
    }
    assert_eq!(facts_of("debian-12", &["dnf"]).package_manager, "dnf");
    assert_eq!(facts_of("fedora-42", &["apt-get"]).package_manager, "apt");
    let all = ["apt-get", "dnf", "pacman", "zypper", "apk", "xbps-install", "emerge", "nix-env"];
    for &(file, .., manager) in DISTRIBUTIONS.iter().filter(|(.., manager)| *manager != "none") {
        assert_eq!(facts_of(file, &all).package_manager, manager, "{file}");
    }
}

#[test]
fn every_recorded_file_is_in_the_table_and_has_its_source() {
    let sources = recorded("README.md");
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/facts/os-release");
    let names =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = names.filter(|name| name != "README.md").collect();
    let listed: BTreeSet<String> = DISTRIBUTIONS.iter().map(|(file, ..)| (*file).to_owned()).collect();
    assert_eq!(files, listed);
    for file in files {
        assert!(sources.contains(&format!("| {file} | ")), "{file}");
    }
}

#[test]
fn every_named_fact_can_be_asked_for_and_one_that_is_not_known_has_no_value() {
    let mut facts = facts_of("debian-12", &["apt-get"]);
    facts.unknown.clear();
    for name in Facts::NAMES.iter().filter(|name| **name != "mac_mode") {
        assert!(facts.get(name).is_some(), "{name}");
    }
    assert_eq!(facts.get("no-such-fact"), None);
    facts.unknown.push("family".into());
    assert_eq!(facts.get("family"), None);
}

#[test]
fn what_is_not_for_the_model_is_not_serialized() {
    let facts = Facts {
        home: "/home/ada".into(),
        login_shell: Some("/bin/sh".into()),
        machine_id: Some("0123456789abcdef0123456789abcdef".into()),
        boot_id: Some("2f9d2a7c-6b1e-4a53-9c0f-5f0c7f4d1e8a".into()),
        ssh_client: Some("192.0.2.1".parse().unwrap()),
        has_timeout: true,
        missing: vec!["sudo".into()],
        sftp: true,
        ..Facts::default()
    };
    let mut plain = serde_json::to_value(Facts::default()).unwrap();
    assert_eq!(serde_json::to_value(&facts).unwrap(), plain);
    let told = Facts { unknown: vec!["kernel".into()], ..facts };
    plain["unknown"] = serde_json::json!(["kernel"]);
    assert_eq!(serde_json::to_value(&told).unwrap(), plain);
}
