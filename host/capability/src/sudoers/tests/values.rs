//! Tests of holes' expressions against the validators.

use proptest::prelude::*;
use proptest::string::string_regex;
use proptest::test_runner::{Config, TestRunner};

use super::*;

/// `hole`, what its expression matches, what it doesn't.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    (
        "unit",
        &[
            "nginx", "nginx.service", "getty@tty1.service", "user@1000.service", "a_b:c.timer", "debug-shell",
            r"dev-disk-by\x2duuid-1234\x2dabcd.swap", r"\x2esnapshots.mount", "systemd-tmpfiles-clean.timer",
        ],
        &["-x", "--no-block", ".x", "@x", "../x", "a/b", "a*", "", "a b", "a\nb", "[a]"],
    ),
    (
        "package",
        &[
            "nginx", "g++", "gcc-c++", "libstdc++", "libstdc++6", "libstdc++-12-dev", "python3.11", "python3.11-minimal",
            "linux-image-6.1.0-18-amd64", "java-1.8.0-openjdk", "NetworkManager", "glibc.i686", "0ad", "r", "7z",
            "golang-gopkg-yaml.v3-dev", "kernel-core-5.14.0-362.el9", "openssl-libs.x86_64", "libfoo.so.1",
        ],
        &[
            "nginx-", "nginx+", "nginx++", "x.deb", "x.DEB", "x.rpm", "x.zst", "x.tar.gz", "a..b", "a.", "/tmp/x.deb",
            "./x.deb", "-y", "--purge", "@core", "a=1", "a/b", "a:amd64", "a*", "~n", "?x", "", "x.udeb", "x.changes",
        ],
    ),
    (
        "version",
        &["1.0", "1:2.36-9+deb12u14", "2.10-3~bpo12+1", "5.14.0-362.el9_3", "1.0^git1", "9", "v1", "1.0~"],
        &["-1", "1.0-", "1.0+", "~1", "1 0", "1/0", "1*", "1=2", ""],
    ),
    ("user", &["root", "www-data", "_apt", "first.last", "Ann", "a"], &["0", "#0", "1a", "-x", "a.", "a:b", "a b", "%a", "+a", ""]),
    ("group", &["wheel", "systemd-journal", "domain.users"], &["0", "-G", "a,b", "g.", "a$", ""]),
    (
        "disk",
        &[
            "/dev/sda", "/dev/sda1", "/dev/nvme0n1p2", "/dev/mapper/vg0-root", "/dev/mapper/cryptroot", "/dev/vg0/root",
            "/dev/ubuntu-vg/ubuntu-lv", "/dev/md127", "/dev/md/host:0", "/dev/disk/by-id/ata-Samsung_SSD_860_EVO-500GB",
            r"/dev/disk/by-label/My\x20Disk", "/dev/loop0", "/dev/dm-0", "/dev/mmcblk0p1", "/dev/zvol/tank/a",
            "/dev/block/8:0", "/dev/disk/by-path/pci-0000:00:1f.2-ata-1",
        ],
        &[
            "sda", "/dev/", "/dev/sda/", "/dev/../etc/shadow", "/dev/mem", "/dev/kmem", "/dev/shm/x", "/dev/fd/0",
            "/dev/mapper/control", "/dev/disk/x", "/dev/sd", "/dev/net/tun", "/dev/input/event0", "/dev/pts/0",
            "/dev/vg0/..", "/dev/bus/usb", "/dev/snd/pcmC0D0p", "/dev/dma_heap/system", "/dev/tty",
        ],
    ),
    ("volume", &["vg0", "vg0/root", "ubuntu-vg/ubuntu-lv", "data_1", "a.b"], &["-vg", "vg/-lv", "vg/..", "a/b/c", "/x", "@t", ""]),
    ("interface", &["eth0", "lo", "enp3s0f1", "br-lan", "eth0.100", "veth0@if2", "wg0"], &["-x", "eth/0", "..", "eth+", "averyveryverylong", ""]),
    ("int", &["0", "1", "65536", "9999999999999999999"], &["-1", "+1", "01", "0x1", "1.0", "10000000000000000000", ""]),
    ("port", &["1", "22", "443", "8080", "59999", "64999", "65499", "65529", "65535"], &["0", "65536", "080", "99999", "100000", "+80", ""]),
    ("protocol", &["tcp", "udp", "icmpv6", "ipv6-icmp"], &["TCP", "tc", "tcpx", "6", ""]),
    (
        "address",
        &["127.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "2001:db8::a:b", "1:2:3:4:5:6:7:8", "1::", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "FE80::A"],
        &["127.1", "256.1.1.1", "01.2.3.4", "1:2:3", "1::2::3", "1:2:3:4:5:6:7:8:9", "12345::", ":::", "[::1]", "fe80::1%eth0", ""],
    ),
    ("cidr", &["10.0.0.0/8", "0.0.0.0/0", "1.2.3.4/32", "::/0", "2001:db8::/32", "::1/128"], &["10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/08", "10/8", ""]),
    (
        "host",
        &["localhost", "example.org", "a-b.example.org", "xn--bcher-kva.example", "1.2.3.4", "::1", "3com.com", "ec2-1-2-3-4.eu-central-1.compute.amazonaws.com"],
        &["-oProxyCommand=x", "x-.org", "a..b", "a.", "a_b", "127.1", "2130706433", "0x7f.1", "a/b", "a@b", "a:22", ""],
    ),
    (
        "time",
        &[
            "now", "today", "yesterday", "2026-01-31", "2026-01-31 10:00:00", "2026-01-31T10:00:00Z", "2026-01-31T10:00:00+02:00",
            "@1700000000", "1 hour ago", "2 days ago", "+1h", "2h", "10:30", "1week 2days", "2026-01-31 10:00 UTC", "boot", "1h30min",
        ],
        &["-1h", "--x", "evil", "now evil", "now --file=/etc/shadow", "1  h", "2026-01-31  10:00", "2026-01-31 evil", "", "now\n"],
    ),
    ("size", &["0", "10G", "10g", "1.5T", "10GiB", "10Ki", "-5G", "+5G", "100%", "+100%FREE", "2048s"], &["", "-", "G", "-rf", "--5G", "5 G", "1..5G", "5GG", "1e3"]),
    ("mode", &["644", "0644", "4755", "u+x", "go-rwx", "a=rX", "u=rwx,g=rx,o=", "g=u", "ug+st"], &["-w", "-R", "+x", "8", "64", "00644", "u+", "u+x,", "u+ug", ""]),
    (
        "url",
        &["http://example.org", "https://example.org/", "https://example.org:8443/a/b?c=d&e=f", "http://1.2.3.4/x", "https://a.b/%20x", "https://a.b?x"],
        &["ftp://a.b", "file:///etc/passwd", "https://u:p@a.b/", "https://a.b/ x", "https://a.b/{x}", "https://a.b:0/", "https://a.b/%0a", "https://2130706433/", ""],
    ),
    (
        "image",
        &[
            "nginx", "nginx:latest", "debian:12", "postgres:16-alpine", "ubuntu:24.04", "docker.io/library/nginx:1.25",
            "localhost/x", "localhost:5000/a/b:t", "quay.io:443/a/b", "library/nginx", "python:3.12",
            "nginx@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ],
        &[
            "-x", "--privileged", "Nginx", "nginx:-x", "dir:/etc", "dir:x", "oci-archive:x", "docker-archive:x", "docker://nginx",
            "docker:x", "oci:x", "a//b", "../x", "a..b", "nginx@sha256:123", "https://a.b/c", "a_b.c/d", "",
        ],
    ),
    ("text", &["a", "a=b;c|d", "$(x)", "'", "*", "+x", "/etc/passwd", "x#y", r"a\b", "[x]{1}"], &["", "-", "-x", "--x", "a b", "a\nb", "a\tb", "ä"]),
    ("secret", &["hunter2", "+x", "pa$$", "a-b", "x#y\"'"], &["", "-", "-x", "a b", "a\n"]),
    ("path:/etc/sudoers.d/*", &["/etc/sudoers.d/ops", "/etc/sudoers.d/10_ops-x"], &["/etc/sudoers.d/", "/etc/sudoers.d/../shadow", "/etc/sudoers.d/..", "/etc/sudoers.d/.x", "/etc/sudoers.d/a/b", "/etc/sudoers.d/rndc.key", "/etc/sudoers.d/x.keytab", "/etc/shadow", "/etc/sudoers.d/a b"]),
    ("path:/etc/systemd/system/*.service", &["/etc/systemd/system/a.service", "/etc/systemd/system/a@1.service"], &["/etc/systemd/system/.service", "/etc/systemd/system/a.socket", "/etc/systemd/system/../a.service", "/etc/systemd/system/a/b.service"]),
    ("path:/home/*/.ssh/authorized_keys", &["/home/ada/.ssh/authorized_keys"], &["/home/../.ssh/authorized_keys", "/home/ada/.ssh/id_rsa", "/home//.ssh/authorized_keys", "/home/a/b/.ssh/authorized_keys"]),
    ("path:/var/log/syslog*", &["/var/log/syslog", "/var/log/syslog.1", "/var/log/syslog.2.gz"], &["/var/log/syslog/x", "/var/log/sys", "/var/log/../log/syslog"]),
    ("path:/etc/fstab", &["/etc/fstab"], &["/etc/fstab/", "/etc/fstab2", "//etc/fstab", "/etc/../etc/fstab"]),
    ("path:/etc/shadow", &["/etc/shadow"], &["/etc/gshadow", "/etc/shadow-"]),
    ("path:/srv/.*.conf", &["/srv/.x.conf", "/srv/.a.b.conf"], &["/srv/.", "/srv/..", "/srv/x", "/srv/x.conf"]),
    ("path:/", &["/"], &["/x", "//", ""]),
];

fn hole(text: &str) -> HoleType {
    HoleType::parse(text).unwrap()
}

#[test]
fn every_expression_matches_and_leaves_what_its_table_says() {
    for (name, matched, left) in TABLE {
        let texts = texts(&pattern(&format!("x -- <{name}>")));
        texts.iter().for_each(|text| assert_that_sudo_reads(text));
        for value in *matched {
            assert!(hole(name).accepts(value), "<{name}> {value:?}");
            assert!(allows(&texts, &["--", value]), "<{name}> must match {value:?}: {texts:?}");
        }
        for value in *left {
            assert!(!allows(&texts, &["--", value]), "<{name}> must not match {value:?}: {texts:?}");
        }
    }
}

#[test]
fn every_type_has_a_table_or_no_expression() {
    for name in [
        "unit",
        "package",
        "version",
        "user",
        "group",
        "disk",
        "volume",
        "interface",
        "int",
        "port",
        "protocol",
        "address",
        "cidr",
        "host",
        "time",
        "size",
        "mode",
        "url",
        "image",
        "text",
        "secret",
    ] {
        assert!(TABLE.iter().any(|(hole, ..)| *hole == name), "{name}");
    }
    assert_eq!(holes::expression(&hole("path"), Exactness::Grants), Err(Refusal::AnyPath));
}

#[test]
fn a_value_that_matches_is_one_that_the_hole_accepts() {
    let mut runner = TestRunner::new(Config { cases: 4000, failure_persistence: None, ..Config::default() });
    for (name, ..) in TABLE {
        for text in texts(&pattern(&format!("x <{name}>"))) {
            let values = string_regex(in_rust(&text).trim_matches(['^', '$'])).unwrap();
            runner
                .run(&values, |value| {
                    prop_assert!(hole(name).accepts(&value), "<{}> {:?}", name, value);
                    Ok(())
                })
                .unwrap();
        }
    }
}

#[test]
fn no_expression_is_longer_than_its_type() {
    for (name, most) in [
        ("unit", 255),
        ("package", 255),
        ("version", 255),
        ("user", 32),
        ("group", 32),
        ("disk", 255),
        ("volume", 255),
        ("interface", 15),
        ("int", 19),
        ("port", 5),
        ("address", 45),
        ("cidr", 49),
        ("host", 253),
        ("time", 64),
        ("size", 32),
        ("mode", 64),
        ("url", 2048),
        ("image", 455),
        ("text", 4096),
        ("secret", 4096),
        ("arg", 4096),
        ("path:/srv/a*b*", 260),
    ] {
        let longest = holes::expression(&hole(name), Exactness::Grants).unwrap().properties().maximum_len();
        assert!(longest.is_some_and(|longest| longest <= most), "{name}: {longest:?}");
    }
}

#[test]
fn a_glob_that_reaches_a_secret_has_no_expression() {
    for (glob, reached) in [
        ("/etc/*", "/**/etc/shadow"),
        ("/etc/sh*", "/**/etc/shadow"),
        ("/tmp/*", "/**/tmp/krb5cc_*"),
        ("/etc/ssh/*", "ssh_host_*_key"),
        ("/srv/.*/x", ".gnupg"),
        ("/*/shadow", "shadow"),
        ("/etc/ssh/ssh_host_*", "ssh_host_*_key"),
        ("/home/*/*", "/**/etc/shadow"),
        ("/home/*/.ssh/*", "/**/.ssh/"),
        ("/home/*/.*", ""),
        ("/dev/*", "/dev/"),
        ("/proc/*/*", ""),
        ("/proc/1/*", "/**/proc/*/environ"),
        ("/etc/ssl/private/*", "/**/etc/ssl/private/"),
        ("/etc/bind/rndc.*", ""),
        ("/etc/bind/rndc.k*", ""),
        ("/srv/*.keytab", "/**/*.keytab"),
        ("/srv/a.*", "/**/*.keytab"),
        ("/*/shadow*", "/**/etc/shadow"),
    ] {
        match holes::expression(&hole(&format!("path:{glob}")), Exactness::Grants) {
            Err(Refusal::Secret(_, secret, _)) => assert!(secret.contains(reached), "{glob}: {secret}"),
            other => panic!("{glob}: {other:?}"),
        }
    }
    for glob in ["/srv/**", "/srv/**/conf", "/**"] {
        assert_eq!(
            holes::expression(&hole(&format!("path:{glob}")), Exactness::Grants),
            Err(Refusal::AnyDepth(glob.to_owned()))
        );
    }
    for glob in [
        "/etc/cron.d/*",
        "/var/log/*",
        "/etc/sysctl.d/*.conf",
        "/srv/*",
        "/etc/apt/sources.list.d/*.list",
        "/etc/ssh/sshd_config.d/*",
    ] {
        assert!(holes::expression(&hole(&format!("path:{glob}")), Exactness::Grants).is_ok(), "{glob}");
    }
}

#[test]
fn of_an_account_that_only_the_server_runs_as_a_path_is_any_that_is_spelled_in_one_way() {
    let said = |text: &str| {
        let found = arguments(&pattern(text), Exactness::Server).unwrap().texts();
        found.iter().for_each(|text| assert_that_sudo_reads(text));
        found
    };
    let any = said("chmod -- <mode> <path>");
    for path in ["/", "/srv", "/srv/a/b.c", "/home/me/.ssh/id_rsa", "/etc/shadow", "/a/..b", "/a/.b"] {
        assert!(allows(&any, &["--", "0640", path]), "{path}");
    }
    for path in ["", "srv", "//", "/srv/", "/srv//a", "/srv/./a", "/srv/..", "/../etc", "/a b", "/a\n", "-R"]
    {
        assert!(!allows(&any, &["--", "0640", path]), "{path:?}");
    }
    assert!(!allows(&any, &["--", "0640", "/a", "/b"]));
    let keys =
        said("rm --force -- (<path:/**/.ssh/.linux-sysadmin-*/.previous>|<path:/**/.ssh/authorized_keys>)");
    for path in ["/.ssh/authorized_keys", "/srv/x/.me/.ssh/authorized_keys"] {
        assert!(allows(&keys, &["--force", "--", path]), "{path}");
    }
    assert!(allows(&keys, &["--force", "--", "/root/.ssh/.linux-sysadmin-0123456789abcdef/.previous"]));
    for path in
        ["/root/.ssh/id_rsa", "/root/../.ssh/authorized_keys", "/root/.ssh/.linux-sysadmin-x/.previous"]
    {
        assert!(!allows(&keys, &["--force", "--", path]), "{path}");
    }
    let below = said("tail -- <path:/var/log/**>");
    assert!(allows(&below, &["--", "/var/log/a/b.key"]));
    for path in ["/var/log", "/var/logs/x", "/var/log/../x", "/etc/shadow"] {
        assert!(!allows(&below, &["--", path]), "{path}");
    }
    let comment = said("usermod --comment=<text> -- <user>");
    for text in ["Jürgen Groß, room 1", "x", "$x #1"] {
        assert!(allows(&comment, &[&format!("--comment={text}"), "--", "me"]), "{text}");
    }
    let value = said("sysctl -w <text>=<text>");
    for text in
        ["vm.swappiness=10", "net.ipv4.tcp_rmem=4096 131072 6291456", "kernel.core_pattern=|/bin/x %P #\\$"]
    {
        assert!(allows(&value, &["-w", text]), "{text}");
    }
    for text in ["vm.swappiness", "vm.swappiness=", "=10", "a=b=c", "a=\n", ""] {
        assert!(!allows(&value, &["-w", text]), "{text}");
    }
    assert!(allows(&said("sysctl -w <text>=-<int>"), &["-w", "kernel.sched_rt_runtime_us=-1"]));
    assert!(!allows(&comment, &["--comment=", "--", "me"]));
    assert!(!allows(&comment, &["--comment=x", "--", "me", "--root"]));
}
