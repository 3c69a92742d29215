use super::*;

fn facts_of(os_release: &str, programs: &[&'static str]) -> Facts {
    let files = BTreeMap::from([
        ("/etc/os-release", os_release.to_owned()),
        ("/proc/1/comm", "systemd\n".to_owned()),
        ("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000::/home/ada:/bin/sh\n".to_owned()),
    ]);
    derive(&Answers { files, programs: programs.to_vec(), uid: 1000, ..Answers::default() })
}

#[test]
fn the_family_is_the_id_or_what_the_id_is_like() {
    for (release, family) in [
        ("ID=debian\nNAME=\"Debian GNU/Linux\"", "debian"),
        ("ID=ubuntu\nID_LIKE=debian", "debian"),
        ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"", "debian"),
        ("ID=fedora", "rhel"),
        ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"", "rhel"),
        ("ID=arch", "arch"),
        ("ID=opensuse-leap\nID_LIKE=\"suse opensuse\"", "opensuse-leap"),
        ("", "unknown"),
    ] {
        assert_eq!(facts_of(release, &[]).family, family, "{release}");
    }
}

#[test]
fn os_release_values_may_be_quoted_or_not_and_comments_are_none() {
    let release = "# NAME=no\nNAME='Debian GNU/Linux'\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\nODD=\"a \\\"b\\\"\"\n";
    let facts = facts_of(release, &[]);
    assert_eq!((facts.name.as_str(), facts.version.as_str()), ("Debian GNU/Linux", "12"));
    assert_eq!(facts.codename.as_deref(), Some("bookworm"));
    assert_eq!(os_release(release)["ODD"], "a \"b\"");
}

#[test]
fn what_is_installed_decides_backends() {
    let facts =
        facts_of("ID=debian", &["apt-get", "nft", "ufw", "podman", "journalctl", "rsyslogd", "adduser"]);
    assert_eq!(facts.package_manager, "apt");
    assert_eq!(facts.firewall_backend, "ufw");
    assert_eq!(facts.container_runtime, "podman");
    assert_eq!(facts.log_system, "both");
    assert_eq!(facts.user_management, "adduser");
    assert_eq!(facts_of("ID=fedora", &["dnf", "adduser"]).user_management, "useradd");
    assert_eq!(facts_of("ID=arch", &[]).package_manager, "none");
}

#[test]
fn the_caller_is_named_and_rights_follow() {
    let facts = facts_of("ID=debian", &[]);
    assert_eq!((facts.user.as_str(), facts.uid), ("ada", 1000));
    assert!(!facts.root_available());
}

#[test]
fn the_mac_system_and_its_mode_are_read_from_sys() {
    let with = |files: &[(&'static str, &str)]| {
        let files = files.iter().map(|(path, text)| (*path, text.to_string())).collect();
        let facts = derive(&Answers { files, ..Answers::default() });
        (facts.mac_system, facts.mac_mode)
    };
    let selinux = "/sys/fs/selinux/enforce";
    let apparmor = "/sys/module/apparmor/parameters/enabled";
    let profiles = "/sys/kernel/security/apparmor/profiles";
    for (files, system, mode) in [
        (&[(selinux, "1")][..], "selinux", Some("enforcing")),
        (&[(selinux, "0\n")], "selinux", Some("permissive")),
        (&[(apparmor, "Y\n")], "apparmor", None),
        (&[(apparmor, "Y\n"), (profiles, "man (enforce)\n")], "apparmor", Some("enforcing")),
        (&[(apparmor, "Y\n"), (profiles, "man (complain)\n")], "apparmor", Some("complaining")),
        (&[(apparmor, "N\n")], "apparmor", Some("disabled")),
        (&[], "none", None),
    ] {
        assert_eq!(with(files), (system.to_owned(), mode.map(str::to_owned)), "{files:?}");
    }
}

#[test]
fn the_time_zone_is_where_localtime_leads() {
    assert_eq!(time_zone(Some("/usr/share/zoneinfo/Europe/Berlin"), None).as_deref(), Some("Europe/Berlin"));
    assert_eq!(
        time_zone(Some("../usr/share/zoneinfo/Etc/UTC"), Some("Asia/Tokyo")).as_deref(),
        Some("Etc/UTC")
    );
    assert_eq!(time_zone(None, Some("Asia/Tokyo\n")).as_deref(), Some("Asia/Tokyo"));
    assert_eq!(time_zone(None, Some("\n")), None);
}

#[test]
fn a_container_is_told_before_the_machine_it_runs_on() {
    let (vendor, product) = ("/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name");
    for (files, kind) in [
        (
            &[("/run/systemd/container", "systemd-nspawn\n"), (vendor, "QEMU"), (product, "x")][..],
            Some("systemd-nspawn"),
        ),
        (&[("/.dockerenv", "")], Some("docker")),
        (&[("/run/.containerenv", "engine=\"podman\"")], Some("podman")),
        (&[(vendor, "QEMU\n"), (product, "Standard PC\n")], Some("kvm")),
        (&[(vendor, "Microsoft Corporation"), (product, "Virtual Machine")], Some("microsoft")),
        (&[(vendor, "Microsoft Corporation"), (product, "Surface")], None),
        (&[(vendor, "LENOVO"), (product, "20XY")], None),
        (&[], None),
    ] {
        let files = files.iter().map(|(path, text)| (*path, text.to_string())).collect();
        assert_eq!(virtualization(&files).as_deref(), kind, "{files:?}");
    }
}

#[test]
fn every_named_fact_can_be_asked_for() {
    let facts = facts_of("ID=debian\nVERSION_CODENAME=x", &[]);
    for name in Facts::NAMES.iter().filter(|name| **name != "mac_mode") {
        assert!(facts.get(name).is_some(), "{name}");
    }
    assert_eq!(facts.get("no-such-fact"), None);
}
