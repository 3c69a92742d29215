use proptest::prelude::*;

use super::*;

#[track_caller]
fn glob(text: &str) -> Glob {
    Glob::parse(text).unwrap()
}

#[test]
fn a_safe_path_is_absolute_and_plain() {
    for path in ["/", "/etc", "/etc/", "/srv/My Files/ü", "/...", "/.hidden", "/a/..b", "/a:b", "/-x", "/a*b"]
    {
        assert!(is_lexically_safe(path), "{path:?}");
    }
    let long_name = format!("/{}", "x".repeat(256));
    let long_path = "/x".repeat(2048);
    for path in [
        "",
        "etc",
        "./etc",
        "-",
        "//",
        "//etc",
        "/etc//passwd",
        "/etc/passwd//",
        "/.",
        "/..",
        "/etc/./passwd",
        "/etc/../etc/shadow",
        "/etc/..",
        "/etc/../",
        "/a\0b",
        "/a\nb",
        "/a\u{1b}[2Jb",
        "/a\u{7f}",
        "/a\u{9b}b",
        "/a\u{202e}b",
        "/a\u{200b}b",
        &long_name,
        &long_path,
    ] {
        assert!(!is_lexically_safe(path), "{path:?}");
    }
}

#[test]
fn a_glob_covers_what_the_table_says() {
    for (pattern, path, expected) in [
        ("/", "/", true),
        ("/", "/etc", false),
        ("/etc/hosts", "/etc/hosts", true),
        ("/etc/hosts", "/etc/hosts/", true),
        ("/etc/hosts", "/etc/hosts2", false),
        ("/etc/hosts", "/etc/hosts/x", false),
        ("/etc/hosts", "/etc", false),
        ("/etc/sudoers.d/*", "/etc/sudoers.d/admin", true),
        ("/etc/sudoers.d/*", "/etc/sudoers.d/.hidden", true),
        ("/etc/sudoers.d/*", "/etc/sudoers.d", false),
        ("/etc/sudoers.d/*", "/etc/sudoers.d/", false),
        ("/etc/sudoers.d/*", "/etc/sudoers.d/a/b", false),
        ("/etc/sudoers.d/*", "/etc/sudoers.d/../shadow", false),
        ("/etc/sudoers.d/*", "/etc//sudoers.d/a", false),
        ("/mnt/**", "/mnt/a", true),
        ("/mnt/**", "/mnt/a/b/c", true),
        ("/mnt/**", "/mnt", false),
        ("/mnt/**", "/mnt/", false),
        ("/mnt/**", "/mntx/a", false),
        ("/mnt/**", "/", false),
        ("/mnt/**", "/mnt/../etc", false),
        ("/**", "/etc", true),
        ("/**", "/etc/passwd", true),
        ("/**", "/", false),
        ("/**/conf", "/conf", true),
        ("/**/conf", "/a/b/conf", true),
        ("/**/conf", "/a/conf/b", false),
        ("/a/**/b/**/c", "/a/b/c", true),
        ("/a/**/b/**/c", "/a/x/b/b/y/c", true),
        ("/a/**/b/**/c", "/a/x/c/b", false),
        ("/var/log/*.log", "/var/log/a.log", true),
        ("/var/log/*.log", "/var/log/.log", true),
        ("/var/log/*.log", "/var/log/a.log.1", false),
        ("/x/a*b*c", "/x/abc", true),
        ("/x/a*b*c", "/x/aXbYbZc", true),
        ("/x/a*b*c", "/x/ac", false),
        ("/x/a*a", "/x/a", false),
        ("/x/*a*", "/x/bab", true),
        ("/x/*a*", "/x/bbb", false),
        ("/home/*/.ssh/authorized_keys", "/home/ann/.ssh/authorized_keys", true),
        ("/home/*/.ssh/authorized_keys", "/home/a/b/.ssh/authorized_keys", false),
    ] {
        assert_eq!(glob(pattern).matches(path), expected, "{pattern} {path}");
    }
}

#[test]
fn a_glob_is_refused_where_it_could_be_misread() {
    use GlobError::*;
    for (text, error) in [
        ("", Relative),
        ("etc", Relative),
        ("~/x", Relative),
        ("**", Relative),
        ("//", Unsafe),
        ("/etc/", Unsafe),
        ("/etc//x", Unsafe),
        ("/etc/../x", Unsafe),
        ("/a/./b", Unsafe),
        ("/a\n", Unsafe),
        ("/a\u{202e}", Unsafe),
        ("/a**", PartialDoubleStar),
        ("/a/***", PartialDoubleStar),
        ("/a/**.conf", PartialDoubleStar),
        ("/a/?", Wildcard('?')),
        ("/a/[ab]", Wildcard('[')),
        ("/a/{b,c}", Wildcard('{')),
        ("/a\\*", Wildcard('\\')),
        ("/a/'b'", Wildcard('\'')),
    ] {
        assert_eq!(Glob::parse(text), Err(error), "{text:?}");
    }
}

#[test]
fn a_directory_can_be_listed_where_everything_below_is_covered() {
    assert!(glob("/proc/**").covers_listing(&PathText::new("/proc")));
    assert!(glob("/proc/**").covers_listing(&PathText::new("/proc/")));
    assert!(glob("/proc/**").covers_listing(&PathText::new("/proc/1")));
    assert!(glob("/**").covers_listing(&PathText::new("/")));
    assert!(glob("/etc/apt").covers_listing(&PathText::new("/etc/apt")));
    assert!(!glob("/proc/*").covers_listing(&PathText::new("/proc")));
    assert!(!glob("/proc/**").covers_listing(&PathText::new("/")));
    assert!(!glob("/proc/**").covers_listing(&PathText::new("/proc/../etc")));
    assert!(!glob("/root/**").covers_listing(&PathText::new("/root/.gnupg")));
}

#[test]
fn secrets_are_known_wherever_they_lie() {
    for path in [
        "/etc/shadow",
        "/etc/shadow-",
        "/etc/gshadow",
        "/etc/gshadow-",
        "//etc/shadow",
        "/etc/./shadow",
        "/etc/../etc/shadow",
        "/etc/shadow/",
        "/mnt/backup/etc/shadow",
        "/proc/1/root/etc/shadow",
        "/var/backups/shadow.bak",
        "/etc/ssh/ssh_host_ed25519_key",
        "/root/.ssh/id_rsa",
        "/home/a/.ssh/id_ed25519",
        "/home/a/.ssh/id_rsa.bak",
        "/etc/ssl/private",
        "/etc/ssl/private/site.key",
        "/etc/letsencrypt/live/example.org/privkey.pem",
        "/etc/letsencrypt/archive/example.org/privkey1.pem",
        "/proc/1/environ",
        "/proc/self/environ",
        "/proc/1/task/7/environ",
        "/proc/1/mem",
        "/proc/kcore",
        "/proc/1/root/x",
        "/proc/1/fd/3",
        "/dev/sda1",
        "/dev/mem",
        "/dev/disk/by-uuid/1-2",
        "/etc/NetworkManager/system-connections/home.nmconnection",
        "/etc/wireguard/wg0.conf",
        "/root/.gnupg",
        "/root/.gnupg/private-keys-v1.d/x.key",
        "/root/.docker/config.json",
        "/home/a/.pgpass",
        "/root/.netrc",
        "/root/.aws/credentials",
        "/root/.kube/config",
        "/root/.bash_history",
        "/etc/krb5.keytab",
    ] {
        assert!(is_secret(path), "{path}");
    }
    for path in [
        "/",
        "/etc",
        "/etc/passwd",
        "/etc/shadow.d",
        "/etc/sudoers",
        "/etc/sudoers.d/x",
        "/etc/ssh/sshd_config",
        "/etc/ssh/ssh_host_ed25519_key.pub",
        "/root/.ssh/authorized_keys",
        "/root/.ssh/id_rsa.pub",
        "/root/.ssh/id_rsa-cert.pub",
        "/root/.ssh",
        "/etc/ssl/certs/x.pem",
        "/etc/letsencrypt/live/example.org/fullchain.pem",
        "/proc/1/status",
        "/proc/1/fd",
        "/proc/meminfo",
        "/dev/null",
        "/dev",
        "/etc/docker/daemon.json",
        "/etc/shadow/../passwd",
    ] {
        assert!(!is_secret(path), "{path}: {:?}", secret_reason(path));
    }
}

#[test]
fn a_name_that_tells_of_a_secret_is_enough() {
    for path in [
        "/etc/rsyncd.secrets",
        "/etc/davfs2/secrets",
        "/etc/zabbix/agent.psk",
        "/etc/restic.pass",
        "/etc/ldap.secret",
        "/etc/ceph/ceph.client.admin.keyring",
        "/etc/nginx/.htpasswd",
        "/etc/nginx/.htpasswd.bak",
        "/etc/nginx/site.htpasswd",
        "/etc/corosync/authkey",
        "/etc/ha.d/authkeys",
        "/etc/gitlab/gitlab-secrets.json",
        "/opt/rails/config/master.key",
        "/opt/rails/config/credentials/production.key",
        "/opt/jenkins/secrets",
        "/opt/jenkins/secrets/hudson.util.Secret",
        "/run/secrets/db",
        "/opt/ansible/.vault_pass",
        "/opt/ansible/.vault_pass.txt",
        "/etc/munge/munge.key",
        "/etc/tor/hs/hs_ed25519_secret_key",
        "/var/lib/rabbitmq/.erlang.cookie",
        "/srv/backup/passwords.txt",
        "/var/log/installer/cdebconf/passwords.dat",
        "/usr/local/etc/app.psk",
        // Places of one program.
        "/etc/rancher/node/password",
        "/var/lib/rancher/k3s/server/token",
        "/var/lib/rancher/k3s/server/node-token",
        "/etc/openvpn/client/auth.txt",
        "/etc/luks-keys/root",
        "/etc/keys/disk",
        "/etc/opendkim/keys/example.org/mail.private",
        "/etc/tinc/vpn/rsa_key.priv",
        "/etc/dovecot/passwd",
        "/etc/pgbouncer/userlist.txt",
        "/etc/shadow~",
        "/etc/shadow.bak",
    ] {
        assert!(is_secret(path), "{path}");
    }
    for path in [
        "/etc/security",
        "/etc/security/limits.conf",
        "/etc/passwd",
        "/etc/passwd-",
        "/etc/pam.d/passwd",
        "/etc/ssh/authorized_keys/ada",
        "/etc/luksmeta.conf",
        "/etc/keyboard",
        "/etc/password-policy.conf",
        "/usr/share/doc/app/secrets.txt",
        "/usr/share/doc/libsecret-1-0/copyright",
        "/usr/share/keyrings/debian.keyring",
        "/usr/share/man/man5/chap-secrets.5.gz",
        "/usr/bin/htpasswd",
        "/usr/lib/python3.11/secrets.py",
        "/opt/app/node_modules/secrets.js",
        "/srv/app/src/secrets/store.ts",
        "/srv/app/docs/secrets.md",
        "/etc/app/authkey.pub",
        "/srv/app/compass",
        "/srv/app/master.keys.md",
    ] {
        assert!(!is_secret(path), "{path}: {:?}", secret_reason(path));
    }
    // A directory of secrets keeps its name, because what is in it is known by that.
    assert!(secret_below("/opt/jenkins/secrets", "/opt/jenkins/other").is_some());
    assert!(secret_below("/opt/jenkins/jobs", "/opt/jenkins/other").is_none());
}

#[test]
fn the_secret_files_of_known_programs_are_secrets_and_what_lies_beside_them_is_not() {
    for path in [
        "/etc/restic/password",
        "/etc/restic/repo-password.txt",
        "/etc/restic/nightly.env",
        "/root/.config/restic/pw",
        "/root/.config/borg/keys/srv__backup",
        "/etc/borgmatic/config.yaml",
        "/etc/borgmatic.d/home.yaml",
        "/root/.config/rclone/rclone.conf",
        "/home/ada/.rclone.conf",
        "/etc/wireguard/wg0.conf",
        "/etc/wireguard/private.key",
        "/etc/bareos/bareos-dir.d/director/bareos-dir.conf",
        "/home/ada/.s3cfg",
        "/etc/passwd-s3fs",
        "/home/ada/.cloudflared/cert.pem",
        "/etc/gitlab-runner/config.toml",
        "/etc/salt/pki/minion/minion.pem",
        "/home/ada/infra/terraform.tfstate",
        "/etc/traefik/acme.json",
        "/home/ada/vault.kdbx",
        "/srv/tls/site.pfx",
        "/home/ada/.msmtprc",
        "/etc/ddclient.conf",
        "/root/.secrets/certbot/dns.ini",
        // In a backup or a container's layer as well.
        "/mnt/old/etc/restic/password",
    ] {
        assert!(is_secret(path), "{path}");
    }
    for path in [
        "/etc/restic/excludes",
        "/etc/restic",
        "/etc/borgmatic",
        "/usr/share/doc/rclone/README",
        "/usr/bin/rclone",
        "/var/log/borgmatic.log",
        "/etc/gitlab-runner",
        "/etc/salt/minion",
        "/etc/puppetlabs/puppet/puppet.conf",
        "/home/ada/infra/main.tf",
        "/etc/traefik/traefik.yml",
        "/home/ada/.config/gh/config.yml",
        "/etc/passwd",
    ] {
        assert!(!is_secret(path), "{path}: {:?}", secret_reason(path));
    }
}

#[test]
fn a_secret_is_admitted_only_by_a_glob_that_names_it() {
    for (pattern, path, expected) in [
        ("/etc/shadow", "/etc/shadow", true),
        ("/proc/*/environ", "/proc/1/environ", true),
        ("/home/*/.ssh/id_ed25519", "/home/a/.ssh/id_ed25519", true),
        ("/etc/*", "/etc/shadow", false),
        ("/etc/shado*", "/etc/shadow", false),
        ("/etc/**", "/etc/shadow", false),
        ("/**", "/etc/shadow", false),
        ("/**/shadow", "/etc/shadow", false),
        ("/proc/**", "/proc/1/environ", false),
        ("/home/*/.ssh/*", "/home/a/.ssh/id_ed25519", false),
        ("/home/*/.ssh/*", "/home/a/.ssh/id_ed25519.pub", true),
        ("/etc/*", "/etc/passwd", true),
        ("/etc/shadow", "/etc/gshadow", false),
    ] {
        assert_eq!(glob(pattern).admits(path), expected, "{pattern} {path}");
    }
}

#[test]
fn a_hostile_glob_and_path_take_no_time() {
    let stars = glob(&format!("/{}", "*a".repeat(120)));
    let deep = glob(&format!("/{}x", "**/a/".repeat(800)));
    let started = std::time::Instant::now();
    assert!(!stars.matches(&format!("/{}b", "a".repeat(250))));
    assert!(!deep.matches(&"/a".repeat(2000)));
    assert!(started.elapsed().as_millis() < 500);
}

#[test]
fn globs_that_may_meet_are_those_of_a_common_path() {
    for (one, other, expected) in [
        ("/a", "/a", true),
        ("/a", "/b", false),
        ("/a/*", "/a/b", true),
        ("/a/*", "/a/b/c", false),
        ("/a/*", "/a", false),
        ("/a/*.x", "/a/b*", true),
        ("/a/*.x", "/a/*.y", false),
        ("/a/b*", "/a/c*", false),
        ("/*/b", "/a/*", true),
        ("/etc/*", "/etc/sudoers.d/*", false),
        ("/etc/**", "/etc/sudoers.d/*", true),
        ("/etc/**", "/etc", false),
        ("/srv/**/x", "/srv/x", true),
        ("/srv/**/x", "/srv/*", true),
        ("/srv/**/x", "/srv/**/y", false),
        ("/srv/**", "/etc/**", false),
        ("/**", "/etc/passwd", true),
        ("/", "/**", false),
    ] {
        assert_eq!(glob(one).may_meet(&glob(other)), expected, "{one} {other}");
        assert_eq!(glob(other).may_meet(&glob(one)), expected, "{other} {one}");
    }
}

proptest! {
    #[test]
    fn globs_that_cover_the_same_path_may_meet(
        one in "(/([ab]|[ab]?\\*[ab]?|\\*\\*)){1,4}", other in "(/([ab]|[ab]?\\*[ab]?|\\*\\*)){1,4}",
        paths in prop::collection::vec("(/[ab]{1,3}){1,4}", 16),
    ) {
        let (one, other) = (glob(&one), glob(&other));
        for path in paths.iter().filter(|path| one.matches(path) && other.matches(path)) {
            prop_assert!(one.may_meet(&other), "{:?} {:?} {}", one, other, path);
        }
    }
}

#[test]
fn what_the_host_keeps_is_secret_for_all_but_its_own_globs() {
    let copies = "/etc/.linux-sysadmin-0123456789abcdef";
    let file = &format!("{copies}/x");
    assert!(is_secret(copies) && is_secret(file) && is_secret(&format!("{file}/y")));
    for name in [".linux-sysadmin-", ".linux-sysadmin-0123456789ABCDEF", "linux-sysadmin-0123456789abcdef"] {
        assert!(!is_secret(&format!("/etc/{name}/x")), "{name}");
    }
    for (pattern, admits_directory, admits_file) in [
        ("/etc/**", false, false),
        ("/etc/*", false, false),
        ("/etc/*/x", false, false),
        ("/etc/.*", false, false),
        ("/etc/.linux-sysadmin-*", true, false),
        ("/etc/.linux-sysadmin-*/*", false, true),
        ("/**/.linux-sysadmin-*/x", false, true),
        ("/etc/.linux-sysadmin-*/**", false, false),
    ] {
        assert_eq!(glob(pattern).admits(copies), admits_directory, "{pattern}");
        assert_eq!(glob(pattern).admits(file), admits_file, "{pattern}");
        assert_eq!(glob(pattern).covers_listing(&PathText::new(copies)), admits_directory, "{pattern}");
    }
    assert!(!glob("/etc/**").covers(&glob("/etc/.linux-sysadmin-*")));
    // The glob of another secret doesn't name it either.
    let other = glob("/home/*/.gnupg/*/x");
    assert!(other.admits("/home/ada/.gnupg/private-keys-v1.d/x"));
    assert!(!other.admits("/home/ada/.gnupg/.linux-sysadmin-0123456789abcdef/x"));
}
