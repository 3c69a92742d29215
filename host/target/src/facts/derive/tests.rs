use super::*;

/// The mark of sd_booted(3).
const UNDER_SYSTEMD: &str = "/run/systemd/system";

fn release(os_release: &str) -> Facts {
    derive(&Answers {
        files: Some(BTreeMap::from([("/etc/os-release", os_release.to_owned())])),
        ..Answers::default()
    })
}

fn with_files(files: &[(&'static str, &str)]) -> Facts {
    let files = files.iter().map(|(path, text)| (*path, text.to_string())).collect();
    derive(&Answers { files: Some(files), ..Answers::default() })
}

fn with_there(there: &[&'static str]) -> Facts {
    derive(&Answers { there: Some(there.iter().copied().collect()), ..Answers::default() })
}

#[test]
fn the_family_is_the_id_or_what_the_id_is_like() {
    for (text, family) in [
        ("ID=debian\nNAME=\"Debian GNU/Linux\"", "debian"),
        ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"", "debian"),
        ("ID=fedora", "rhel"),
        ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"", "rhel"),
        // The distribution's own id comes before what it is like.
        ("ID=debian\nID_LIKE=fedora", "debian"),
        // Of what it is like, the first one that is known counts.
        ("ID=mine\nID_LIKE=\"other fedora debian\"", "rhel"),
        ("ID=mine\nID_LIKE=\"suse fedora debian\"", "suse"),
        ("ID=arch", "arch"),
        ("ID=manjaro\nID_LIKE=arch", "arch"),
        ("ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"", "suse"),
        ("ID=slackware", "slackware"),
        ("ID=", "unknown"),
        ("", "unknown"),
    ] {
        assert_eq!(release(text).family, family, "{text}");
    }
}

#[test]
fn without_an_id_what_the_distribution_is_counts_as_unknown() {
    let facts = release("NAME=\"Something\"\n");
    assert_eq!((facts.name.as_str(), facts.get("family")), ("Something", None));
    for fact in ["family", "name", "version", "codename"] {
        assert!(facts.unknown.iter().any(|unknown| unknown == fact), "{fact}");
    }
}

#[test]
fn the_vendors_file_is_read_where_there_is_no_other() {
    let vendor = ("/usr/lib/os-release", "ID=fedora\n");
    assert_eq!(with_files(&[vendor]).family, "rhel");
    assert_eq!(with_files(&[vendor, ("/etc/os-release", "ID=debian\n")]).family, "debian");
}

#[test]
fn a_text_of_the_targets_is_short_and_hides_nothing() {
    let long = "x".repeat(5000);
    for (value, shown) in [
        ("a\u{1b}[2Jb", "a\\u{1b}[2Jb".to_owned()),
        ("a\u{202e}b", "a\\u{202e}b".to_owned()),
        ("a\tb", "a\\tb".to_owned()),
        ("a\u{fffd}b", "a\u{fffd}b".to_owned()),
        (long.as_str(), format!("{}… (5000 bytes)", "x".repeat(128))),
    ] {
        let text = ["ID", "NAME", "VERSION_ID", "VERSION_CODENAME"].map(|key| format!("{key}=\"{value}\"\n"));
        let facts = release(&text.concat());
        let machine =
            UnameOutput { hostname: value.into(), kernel: value.into(), architecture: value.into() };
        let other = derive(&Answers {
            files: Some(BTreeMap::from([
                ("/proc/1/comm", value.to_owned()),
                ("/etc/timezone", value.to_owned()),
                ("/run/systemd/container", value.to_owned()),
            ])),
            machine: Some(machine),
            account: Account { uid: 7, name: Some(value.to_owned()) },
            ..Answers::default()
        });
        let codename = facts.codename.unwrap();
        for fact in [&facts.family, &facts.name, &facts.version, &codename] {
            assert_eq!(*fact, shown, "{value:?}");
        }
        let extra = [&other.extra["timezone"], &other.extra["virtualization"]];
        for fact in [&other.hostname, &other.kernel, &other.architecture, &other.init_system, &other.user] {
            assert_eq!(*fact, shown, "{value:?}");
        }
        assert_eq!(extra, [&shown, &shown], "{value:?}");
    }
}

#[test]
fn what_is_installed_decides_backends() {
    let facts = with_there(&["apt-get", "nft", "ufw", "podman", "journalctl", "rsyslogd", "timeout"]);
    assert_eq!(facts.package_manager, "apt");
    assert_eq!(facts.firewall_backend, "ufw");
    assert_eq!(facts.container_runtime, "podman");
    assert_eq!(facts.log_system, "both");
    assert_eq!(facts.user_management, "useradd");
    assert!(facts.has_timeout);
    let facts = with_there(&["firewall-cmd", "nft", "docker", "podman", "rsyslogd"]);
    assert_eq!(facts.firewall_backend, "firewalld");
    assert_eq!(facts.container_runtime, "docker");
    assert_eq!(facts.log_system, "rsyslog");
    assert!(!facts.has_timeout);
    let facts = with_there(&[]);
    for fact in [facts.package_manager, facts.firewall_backend, facts.container_runtime, facts.log_system] {
        assert_eq!(fact, "none");
    }
}

#[test]
fn what_is_expected_and_absent_is_named() {
    let all: Vec<&'static str> = programs().into_iter().collect();
    assert_eq!(with_there(&all).missing, Vec::<String>::new());
    let some: Vec<_> =
        all.iter().copied().filter(|name| !["sudo", "crontab", "ufw"].contains(name)).collect();
    assert_eq!(with_there(&some).missing, ["sudo", "crontab"]);
}

#[test]
fn what_had_no_answer_is_empty_and_named() {
    let facts = derive(&Answers::default());
    for fact in [
        "family",
        "name",
        "version",
        "codename",
        "package_manager",
        "init_system",
        "firewall_backend",
        "mac_system",
        "mac_mode",
        "container_runtime",
        "log_system",
        "user_management",
        "hostname",
        "kernel",
        "architecture",
        "login_shell",
        "machine_id",
        "has_timeout",
        "missing",
    ] {
        assert!(facts.unknown.iter().any(|unknown| unknown == fact), "{fact}");
    }
    for fact in [
        facts.package_manager,
        facts.firewall_backend,
        facts.mac_system,
        facts.container_runtime,
        facts.log_system,
        facts.user_management,
        facts.hostname,
        facts.version,
    ] {
        assert_eq!(fact, "");
    }
    assert!(facts.missing.is_empty() && !facts.sudo_available);
}

#[test]
fn an_account_is_as_passwd_and_its_session_tell() {
    let passwd = "root:x:0:0:root:/root:/bin/bash\nbad:x:1000\nada:x:1000:1000::/home/ada:/bin/zsh\nada2:x:1000:1::/x:/bin/sh\n";
    let derived = |uid, name: Option<&str>, home: Option<&str>, shell: Option<&str>| {
        let facts = derive(&Answers {
            files: Some(BTreeMap::from([("/etc/passwd", passwd.to_owned())])),
            account: Account { uid, name: name.map(str::to_owned) },
            session: SessionEnvironment {
                home: home.map(str::to_owned),
                shell: shell.map(str::to_owned),
                ssh_connection: None,
            },
            ..Answers::default()
        });
        (facts.user, facts.home, facts.login_shell)
    };
    let told = |user: &str, home: &str, shell: Option<&str>| {
        (user.to_owned(), home.to_owned(), shell.map(str::to_owned))
    };
    assert_eq!(derived(1000, None, None, None), told("ada", "/home/ada", Some("/bin/zsh")));
    assert_eq!(
        derived(1000, Some("ada"), Some("/srv/ada"), Some("/x")),
        told("ada", "/srv/ada", Some("/bin/zsh"))
    );
    // Another machine keeps the account.
    assert_eq!(
        derived(70000, Some("eve@example.org"), Some("/home/eve"), Some("/bin/bash")),
        told("eve@example.org", "/home/eve", Some("/bin/bash"))
    );
    assert_eq!(derived(70000, None, Some("home"), Some("sh")), told("70000", "/", None));
    assert_eq!(derived(70000, None, Some("/a\u{1b}b"), Some("/a\nb")), told("70000", "/", None));
}

#[test]
fn rights_are_what_sudo_allows_or_roots_own() {
    let rights = |uid, sudo_everything, sudo_something| {
        let account = Account { uid, name: None };
        let facts = derive(&Answers { account, sudo_everything, sudo_something, ..Answers::default() });
        (facts.sudo_available, facts.sudo_limited, facts.root_available())
    };
    assert_eq!(rights(1000, false, false), (false, false, false));
    assert_eq!(rights(1000, true, true), (true, false, true));
    assert_eq!(rights(1000, false, true), (true, true, true));
    assert_eq!(rights(0, false, false), (false, false, true));
}

#[test]
fn the_client_is_the_first_word_where_it_is_an_address() {
    for (connection, address) in [
        ("192.0.2.7 51234 198.51.100.1 22", Some("192.0.2.7")),
        ("2001:db8::7 51234 2001:db8::1 22", Some("2001:db8::7")),
        ("fe80::1%eth0 51234 fe80::2%eth0 22", Some("fe80::1")),
        ("::ffff:192.0.2.7 51234 ::ffff:198.51.100.1 22", Some("192.0.2.7")),
        ("UNKNOWN 65535 UNKNOWN 65535", None),
        ("192.0.2.7; 1 2 3", None),
        ("192.0.2.7/0 1 2 3", None),
        (" 192.0.2.7", None),
        ("web1 1 2 3", None),
        ("", None),
    ] {
        let session = SessionEnvironment {
            ssh_connection: Some(connection.to_owned()),
            ..SessionEnvironment::default()
        };
        let facts = derive(&Answers { session, ..Answers::default() });
        assert_eq!(facts.ssh_client.map(|address| address.to_string()).as_deref(), address, "{connection}");
    }
}

#[test]
fn a_machine_is_told_by_32_digits_and_nothing_else() {
    let id = "0123456789abcdef0123456789abcdef";
    assert_eq!(machine_id_in(&format!("{id}\n")).as_deref(), Some(id));
    for file in ["", "\n", "uninitialized\n", &id[1..], &format!("{id}0"), "0123456789abcdef 123456789abcdef"]
    {
        assert_eq!(machine_id_in(file), None, "{file:?}");
    }
}

#[test]
fn the_init_system_is_process_1_or_systemd_where_that_is_hidden() {
    let init = |comm: Option<&str>, there: &[&'static str]| {
        let facts = derive(&Answers {
            files: Some(comm.map(|comm| ("/proc/1/comm", comm.to_owned())).into_iter().collect()),
            there: Some(there.iter().copied().collect()),
            ..Answers::default()
        });
        (facts.init_system.clone(), facts.unknown.iter().any(|fact| fact == "init_system"))
    };
    assert_eq!(init(Some("systemd\n"), &[]), ("systemd".into(), false));
    assert_eq!(init(Some("procd\n"), &[UNDER_SYSTEMD]), ("procd".into(), false));
    assert_eq!(init(None, &[UNDER_SYSTEMD]), ("systemd".into(), false));
    assert_eq!(init(None, &[]), (String::new(), true));
    // Process 1 is called init under several of them.
    assert_eq!(init(Some("init\n"), &["/run/openrc"]), ("openrc".into(), false));
    assert_eq!(init(Some("init\n"), &["/run/runit"]), ("runit".into(), false));
    assert_eq!(init(Some("runit\n"), &[]), ("runit".into(), false));
    assert_eq!(init(Some("init\n"), &[]), ("init".into(), false));
}

#[test]
fn the_mac_system_and_its_mode_are_read_from_sys() {
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
        let facts = with_files(files);
        assert_eq!((facts.mac_system.as_str(), facts.mac_mode.as_deref()), (system, mode), "{files:?}");
    }
}

#[test]
fn the_time_zone_is_where_localtime_leads() {
    assert_eq!(time_zone(Some("/usr/share/zoneinfo/Europe/Berlin"), None).as_deref(), Some("Europe/Berlin"));
    assert_eq!(time_zone(Some("/etc/zoneinfo/Asia/Tokyo"), None).as_deref(), Some("Asia/Tokyo"));
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
    for (files, there, kind) in [
        (
            &[("/run/systemd/container", "systemd-nspawn\n"), (vendor, "QEMU"), (product, "x")][..],
            None,
            Some("systemd-nspawn"),
        ),
        (&[(vendor, "QEMU"), (product, "x")], Some("/.dockerenv"), Some("docker")),
        (&[], Some("/run/.containerenv"), Some("podman")),
        (&[(vendor, "QEMU\n"), (product, "Standard PC\n")], None, Some("kvm")),
        (&[(vendor, "Microsoft Corporation"), (product, "Virtual Machine")], None, Some("microsoft")),
        (&[(vendor, "Microsoft Corporation"), (product, "Surface")], None, None),
        (&[(vendor, "LENOVO"), (product, "20XY")], None, None),
        (&[], None, None),
    ] {
        let facts = derive(&Answers {
            files: Some(files.iter().map(|(path, text)| (*path, text.to_string())).collect()),
            there: Some(there.into_iter().collect()),
            ..Answers::default()
        });
        assert_eq!(facts.extra.get("virtualization").map(String::as_str), kind, "{files:?} {there:?}");
    }
}
