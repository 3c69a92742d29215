use super::*;

/// `hole`, what it accepts, what it refuses.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    (
        "unit",
        &[
            "nginx", "nginx.service", "getty@tty1.service", "user@1000.service", "dev-sda1.device",
            "a_b:c.timer", r"\x2esnapshots.mount", "system-getty.slice", "debug-shell", "_x",
        ],
        &[
            "-.mount", "-Hhost", "--no-block", "../x", "/etc/systemd/system/x.service", "/dev/sda", "nginx*",
            "ngin?", "[ab].service", "a b", "a;b", "x\n", ".", ".x.service", "@.service", "ünit", "a=b",
            "a,b", "a%b",
        ],
    ),
    (
        "package",
        &[
            "nginx", "g++", "gcc-c++", "libstdc++6", "libstdc++-12-dev", "python3.11", "0ad",
            "linux-image-6.1.0-13-amd64", "java-1.8.0-openjdk", "NetworkManager", "glibc.i686",
            "libsigc++-2.0-0v5", "perl_x",
        ],
        &[
            "nginx-", "nginx+", "nginx++", "e++", "hello.", "nginx=1.0", "nginx/stable", "nginx*", "ngin?",
            "[n]ginx", "^nginx", "nginx$", "@core", "@development-tools", "./x.deb", "/tmp/x.rpm", "x.deb",
            "x.RPM", "x.pkg.tar.zst", "https://x/y", "-y", "-o", "--purge", "+x", ".x", "_x", "a b", "a..b",
            "libc6:amd64", "", "~nx", "?all",
        ],
    ),
    (
        "version",
        &[
            "1.0", "1:2.36-9+deb12u14", "2.10-3~bpo12+1", "5.14.0-362.el9_3", "1.0^git1", "9", "2.4.57-2",
            "v1", "1.0~",
        ],
        &["-1", "1.0-", "1.0+", "~1", ":1", "1 0", "1/0", "1*", "1=2", "", "1,2", "$(x)", "1;2", "ü1"],
    ),
    (
        "user",
        &["root", "www-data", "_apt", "systemd-network", "first.last", "Ann", "a", "svc_1", "a1"],
        &[
            "0", "1000", "1a", "0x10", "-root", "+root", "root:root", "a b", "samba$", "root.", ".x", "a/b",
            "a,b", "ann@example.org", "DOM\\ann", "root\n", "ünal", "", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ],
    ),
    (
        "group",
        &["wheel", "sudo", "docker", "systemd-journal", "_ssh", "users", "domain.users", "g1"],
        &["0", "100", "-G", "a:b", "a,b", "a b", "", "g$", "@admins", "%wheel", "#0", "g."],
    ),
    (
        "path",
        &[
            "/", "/etc/fstab", "/srv/", "/srv/My Files", "/a:b", "/ü", "/root/.ssh/authorized_keys",
            "/var/log/x.log", "/-x",
        ],
        &[
            "etc", "./x", "../x", "~/x", "//etc", "/etc/../etc/shadow", "/etc/./x", "/a//b", "-/x", "",
            "/a\nb", "/a\u{202e}", "/etc/shadow", "/proc/1/environ", "/etc/ssh/ssh_host_rsa_key", "host:/x",
            "file:///etc/passwd",
        ],
    ),
    (
        "path:/mnt/**",
        &["/mnt/a", "/mnt/a/b", "/mnt/a/", "/mnt/.x", "/mnt/a b", "/mnt/-x", "/mnt/..x", "/mnt/a:b"],
        &[
            "/mnt", "/mnt/", "/mntx", "/", "/mnt/../etc", "/mnt//a", "/etc/mnt/a", "mnt/a", "/mnt/etc/shadow",
            "/mnt/x/.ssh/id_rsa",
        ],
    ),
    (
        "path:/etc/shadow",
        &["/etc/shadow"],
        &[
            "/etc/gshadow", "/etc/shadow-", "//etc/shadow", "/etc/./shadow", "/etc", "shadow",
            "/mnt/etc/shadow", "",
        ],
    ),
    (
        "disk",
        &[
            "/dev/sda", "/dev/sda1", "/dev/nvme0n1p2", "/dev/vdb", "/dev/mapper/vg0-root", "/dev/vg0/root",
            "/dev/md127", "/dev/md/host:0", "/dev/disk/by-id/ata-Samsung_SSD_860_EVO-500GB",
            "/dev/disk/by-label/My\\x20Disk", "/dev/disk/by-path/pci-0000:00:1f.2-ata-1", "/dev/loop0",
            "/dev/dm-0", "/dev/mmcblk0p1", "/dev/zvol/tank/a", "/dev/block/8:0",
        ],
        &[
            "sda", "/dev", "/dev/", "/dev/../etc/shadow", "/dev//sda", "/dev/sda/", "/dev/mem", "/dev/kmem",
            "/dev/port", "/dev/null", "/dev/zero", "/dev/stdin", "/dev/tty", "/dev/fd/0", "/dev/shm/x",
            "/dev/pts/0", "/dev/net/tun", "/dev/mapper/control", "/dev/sd*", "/dev/sda b", "/etc/fstab",
            "-/dev/sda", "/dev/disk/x", "/dev/sd", "UUID=1",
        ],
    ),
    (
        "volume",
        &["vg0", "vg0/root", "ubuntu-vg/ubuntu-lv", "data_1", "a.b", "+x", "my-volume", "vg/lv+1", "0"],
        &[
            "-vg", "vg/-lv", "vg/", "/lv", "a/b/c", "/dev/vg/lv", ".", "..", "vg/..", "@tag", "a b", "vg*",
            "", "a:b",
        ],
    ),
    (
        "interface",
        &["eth0", "lo", "enp3s0f1", "wg0", "br-lan", "eth0.100", "veth0@if2", "eth0:1", "_x", "docker0"],
        &[
            "-x", "eth/0", ".", "..", ".x", "eth 0", "eth+", "eth*", "averyveryverylong", "", "ethü", "a;b",
            "a%b",
        ],
    ),
    (
        "int",
        &["0", "1", "10", "65536", "1000000", "9223372036854775807", "9999999999999999999", "42"],
        &["-1", "+1", "01", "00", "0x10", "1e3", "1.0", " 1", "1 ", "", "١", "10000000000000000000", "1,000"],
    ),
    (
        "port",
        &["1", "22", "80", "443", "8080", "9", "65535", "1024"],
        &["0", "65536", "-1", "+80", "080", "80-90", "80:90", "http", "80/tcp", "", " 80", "99999999999"],
    ),
    (
        "protocol",
        &["tcp", "udp", "sctp", "icmp", "icmpv6", "ipv6-icmp", "esp", "ah", "gre"],
        &["TCP", "any", "all", "6", "-tcp", "tcp udp", "tcp,udp", "", "http", "tcp/udp"],
    ),
    (
        "address",
        &["127.0.0.1", "10.0.0.255", "0.0.0.0", "::1", "::", "fe80::1", "2001:db8::a:b", "::ffff:1.2.3.4"],
        &[
            "127.1", "256.1.1.1", "1.2.3", "01.2.3.4", "1.2.3.4/24", "[::1]", "fe80::1%eth0", "localhost",
            "-1.2.3.4", "", "1.2.3.4:80", " ::1",
        ],
    ),
    (
        "cidr",
        &[
            "10.0.0.0/8", "192.168.1.5/24", "0.0.0.0/0", "1.2.3.4/32", "::/0", "2001:db8::/32", "fe80::1/64",
            "::1/128",
        ],
        &[
            "10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/08", "10.0.0.0/-1",
            "/8", "10/8", "a/8", "10.0.0.0/8/8", "10.0.0.0/255.0.0.0",
        ],
    ),
    (
        "host",
        &[
            "localhost", "example.org", "a-b.example.org", "xn--bcher-kva.example", "1.2.3.4", "::1",
            "3com.com", "A.B", "h1",
        ],
        &[
            "-oProxyCommand=x", "-x.org", "x-.org", "a..b", ".a", "a.", "a_b", "a b", "root@host", "a;b",
            "127.1", "2130706433", "0x7f000001", "0x7f.1", "256.1.1.1", "[::1]", "host:22", "a/b", "*.org",
            "büch.de", "", "ssh://h",
        ],
    ),
    (
        "time",
        &[
            "now", "today", "yesterday", "2026-01-31", "2026-01-31 10:00:00", "2026-01-31T10:00:00Z",
            "2026-01-31T10:00:00+02:00", "@1700000000", "1 hour ago", "2 days ago", "+1h", "2h", "10:30",
            "1week 2days", "2026-01-31 10:00 UTC", "Mon", "boot",
        ],
        &[
            "-1h", "--x", "", " now", "now ", "1  h", "now; id", "$(date)", "2026/01/31", "x", "evil",
            "TZ=UTC now", "*-*-*", "now\n", "1h,2h", "heute", ":", "@",
        ],
    ),
    (
        "size",
        &[
            "0", "10", "10G", "10g", "512M", "1.5T", "10GiB", "10GB", "10Ki", "-5G", "+5G", "100%",
            "+100%FREE", "50%VG", "-10%LV", "2048s", "10B", "100%PVS",
        ],
        &[
            "", "-", "+", "G", "-G", "--5G", "+-5G", "5-G", "5GG", "5 G", "5G ", "1..5G", ".5G", "5.G", "%",
            "5%X", "1,5G", "0x10", "-rf", "5iB", "-5Gx", "1e3",
        ],
    ),
    (
        "mode",
        &["644", "0644", "4755", "0000", "u+x", "go-rwx", "a=rX", "u=rwx,g=rx,o=", "g=u", "ug+st"],
        &[
            "-w", "-R", "+x", "=", "", "8", "64", "888", "00644", "u", "u+", "u-", "x+u", "u+z", "u+x,",
            ",u+x", "u+x g+x", "u+ug", "0o644",
        ],
    ),
    (
        "url",
        &[
            "http://example.org", "https://example.org/", "https://example.org:8443/a/b?c=d&e=f#g",
            "http://1.2.3.4/x", "http://[::1]:80/", "https://a.b/%20x", "https://a.b?x",
            "https://a.b/@x/(y)*",
        ],
        &[
            "ftp://a.b", "file:///etc/passwd", "HTTPS://a.b", "//a.b", "a.b", "https://", "https:///x",
            "https://u@a.b/", "https://u:p@a.b/", "https://a.b/ x", "https://a.b/\n", "https://a.b/{x,y}",
            "https://a.b/[1-3]", "https://a.b:0/", "https://a.b:x/", "https://a.b\\@c.d/",
            "https://2130706433/", "https://a.b/%0d%0a", "https://a.b/%zz", "https://a.b/%2", "https://a.b/ü",
            "-https://a.b", "https://[::1/",
        ],
    ),
    (
        "image",
        &[
            "nginx", "nginx:latest", "library/nginx", "docker.io/library/nginx:1.25", "localhost/x",
            "localhost:5000/a/b:t", "quay.io:443/a/b", "a/b_c/d__e/f-g--h",
            "nginx@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "a.b/c:1.0@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "[::1]:5000/a",
        ],
        &[
            "", "-x", "--privileged", "Nginx", "nginx:", ":tag", "nginx:-x", "nginx@sha256:123", "nginx@",
            "a//b", "/a", "a/", "a b", "../x", "./x", "dir:/etc", "dir:x", "oci-archive:x",
            "docker-archive:x.tar", "docker://nginx", "containers-storage:x", "https://a.b/c", "a..b",
            "a___b", "nginx;id", "nginx:a:b",
        ],
    ),
    (
        "text",
        &["a", "a b", "ä€😀", "a=b;c|d", "$(x)", "'", "*", "+x", " -x", "/etc/passwd"],
        &[
            "", "-", "-x", "--x", "a\nb", "a\tb", "a\0", "\u{1b}[2J", "a\u{7f}", "a\u{9b}", "a\u{2028}",
            "a\u{202e}b", "a\u{200b}b", "\u{feff}a",
        ],
    ),
    (
        "secret",
        &["hunter2", "a b", "pä$$", "+x", "'\"", "a=b", "x-y", "0"],
        &["", "-", "-x", "--x", "a\nb", "a\0", "a\u{9b}", "a\u{202e}b"],
    ),
    (
        "arg",
        &["", "-", "-x", "--x", "a b", "a\nb", "\u{1b}", "sh", "ä", "/etc/shadow"],
        &["\0", "a\0", "\0a", "a\0b", "-\0", " \0", "\n\0", "--\0x"],
    ),
];

#[test]
fn every_type_accepts_and_refuses_what_its_table_says() {
    for (hole, accepted, refused) in TABLE {
        let hole = HoleType::parse(hole).unwrap();
        for value in *accepted {
            assert!(hole.accepts(value), "<{hole}> must accept {value:?}");
        }
        for value in *refused {
            assert!(!hole.accepts(value), "<{hole}> must refuse {value:?}");
        }
    }
}

#[test]
fn every_type_has_a_table() {
    for (name, _) in SIMPLE {
        let (_, accepted, refused) =
            TABLE.iter().find(|(hole, ..)| hole == name).unwrap_or_else(|| panic!("{name}"));
        assert!(accepted.len() >= 8 && refused.len() >= 8, "{name}");
    }
}

#[test]
fn a_type_covers_another_only_where_it_takes_all_its_values() {
    let table = || TABLE.iter().map(|(hole, accepted, _)| (HoleType::parse(hole).unwrap(), *accepted));
    let mut covered = 0;
    for (wide, _) in table() {
        for (narrow, values) in table().filter(|(narrow, _)| wide.covers(narrow)) {
            covered += 1;
            for value in values {
                assert!(wide.accepts(value), "<{wide}> covers <{narrow}> and refuses {value:?}");
            }
        }
        assert!(wide.covers(&wide), "<{wide}>");
    }
    assert!(covered > 3 * TABLE.len(), "`text`, `secret` and `arg` cover nearly all");
}

#[test]
fn no_type_takes_more_than_its_longest_value() {
    for (_, hole) in SIMPLE {
        for letter in ["a", "1", "/a"] {
            assert!(!hole.accepts(&letter.repeat(MAX_VALUE + 1)), "{hole}");
        }
    }
    assert!(HoleType::Text.accepts(&"a".repeat(MAX_VALUE)));
    assert!(!HoleType::Unit.accepts(&"a".repeat(256)));
    assert!(HoleType::User.accepts(&"a".repeat(32)));
    assert!(!HoleType::Interface.accepts(&"a".repeat(16)));
    assert!(!HoleType::Host.accepts(&format!("{}.org", "a".repeat(64))));
    assert!(!HoleType::Host.accepts(&"a.".repeat(130)));
}

#[test]
fn a_type_is_read_by_its_name_and_shown_as_it_was_read() {
    for text in ["unit", "path", "path:/mnt/**", "path:/srv/My Files/*", "arg"] {
        assert_eq!(HoleType::parse(text).unwrap().to_string(), text);
    }
    for (name, hole) in SIMPLE {
        assert_eq!(HoleType::parse(name).unwrap(), *hole);
        assert_eq!(hole.name(), *name);
    }
    assert_eq!(HoleType::parse("path:/mnt/**").unwrap().name(), "path");
    for text in
        ["", "Unit", "units", " unit", "path:", "path:x", "path:/a/../b", "unit:/x", "stdin", "path :/x"]
    {
        assert!(HoleType::parse(text).is_err(), "{text:?}");
    }
}
