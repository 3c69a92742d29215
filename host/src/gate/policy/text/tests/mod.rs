mod verdicts;

use proptest::prelude::*;

use super::*;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/gate/policy/text/fixtures/debian12");

/// Texts of Debian 12's packages, by the path that they are installed to.
pub(crate) fn of_debian() -> Vec<(String, Vec<u8>)> {
    fn walk(directory: &std::path::Path, inside: &str, found: &mut Vec<(String, Vec<u8>)>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let inside = format!("{inside}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                walk(&entry.path(), &inside, found);
            } else {
                found.push((inside, std::fs::read(entry.path()).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    for package in std::fs::read_dir(FIXTURES).unwrap() {
        walk(&package.unwrap().path(), "", &mut found);
    }
    found
}

fn texts(code: &Code) -> Vec<String> {
    code.lines
        .iter()
        .map(|line| match &line.shell {
            Some(text) => format!("$ {text}"),
            None => line.argv.join(" "),
        })
        .collect()
}

#[test]
fn debians_own_texts_are_read_whole_and_give_no_power() {
    let found = of_debian();
    let mut lines = 0;
    for (path, contents) in &found {
        let code = of_file(path, contents).unwrap_or_else(|| panic!("{path} is read by nobody"));
        assert_eq!((&code.power, &code.unreadable), (&Vec::new(), &None), "{path}");
        lines += code.lines.len();
    }
    assert!(found.len() >= 40 && lines >= 40, "{} files, {lines} lines", found.len());
}

#[test]
fn a_line_is_what_its_program_runs() {
    let table: [(&str, &str, &[&str]); 52] = [
        ("/etc/cron.d/a", "*/5 * * * * root  a | b\n@daily alice c\n", &["$ a | b", "$ c"]),
        ("/etc/cron.d/a", "# x\nMAILTO=root\n\n17 *\t* * *\troot\ta\r\n", &["$ a"]),
        ("/etc/cron.d/a", "0 0 1 jan mon-fri root a \\% b", &["$ a % b"]),
        ("/etc/cron.d/a", "* * * * * root a\\\n", &["$ a\\"]),
        ("/etc/cron.d/a", "SHELL=/bin/bash\n* * * * * root a", &["$ a"]),
        ("/etc/cron.d/a", "SHELL=/usr/bin/python3\n* * * * * root a", &["/usr/bin/python3 -c a"]),
        ("/var/spool/cron/crontabs/root", "@reboot a b", &["$ a b"]),
        ("/var/spool/cron/crontabs/root", "-*/5 * * * * a", &["$ a"]),
        ("/etc/anacrontab", "START_HOURS_RANGE=3-22\n1\t5\tx/y a \\\nb\n@monthly 5 z c", &["$ a b", "$ c"]),
        ("/etc/sudoers", "alice ALL=(ALL) NOPASSWD: /bin/a b\\,c, /bin/d \"\"", &["/bin/a b,c", "/bin/d"]),
        (
            "/etc/sudoers",
            "Cmnd_Alias A = /bin/a x, B : B = /bin/b y\nalice h1 , h2 = A, !/bin/c z",
            &["/bin/a x", "/bin/b y"],
        ),
        ("/etc/sudoers", "#1000 ALL = sudoedit /etc/hosts # c", &["sudoedit /etc/hosts"]),
        // A comment ends with its line, whatever its last character is; blanks may stand behind what joins two.
        ("/etc/sudoers", "alice ALL = /bin/a x # c \\\nbob ALL = /bin/b y", &["/bin/a x", "/bin/b y"]),
        ("/etc/sudoers", "# c \\\nbob ALL = /bin/b y", &["/bin/b y"]),
        ("/etc/sudoers", "bob ALL = /bin/b y\\ \t\nz, \\\n/bin/c \"\"", &["/bin/b y z", "/bin/c"]),
        ("/etc/sudoers", "alice ALL = (www-data) SETENV: NOEXEC: sha256:abc= /bin/a \\\n x", &["/bin/a x"]),
        ("/etc/sudoers", "alice ALL = /bin/a --b=c # d", &["/bin/a --b=c"]),
        ("/etc/sudoers", "alice ALL = sha256:abc /bin/a x", &["/bin/a x"]),
        ("/etc/ssh/ssh_config", "Host a\n\tProxyCommand = nc %h %p\n", &["$ nc %h %p"]),
        ("/etc/ssh/ssh_config", "proxycommand=\"a b\"|c\nProxyCommand none", &["$ \"a b\"|c"]),
        ("/etc/ssh/ssh_config", "\"LocalCommand\" a\nMatch host x exec \"a b\" user y", &["$ a", "$ a b"]),
        ("/etc/ssh/ssh_config", "Match !Exec=a", &["$ a"]),
        ("/etc/ssh/ssh_config", "KnownHostsCommand /bin/a \"b c\" %H", &["/bin/a b c %H"]),
        (
            "/etc/ssh/sshd_config",
            "Subsystem sftp /usr/lib/openssh/sftp-server -l INFO",
            &["$ /usr/lib/openssh/sftp-server -l INFO"],
        ),
        ("/etc/ssh/sshd_config", "Subsystem sftp internal-sftp\nForceCommand internal-sftp\n", &[]),
        (
            "/etc/ssh/sshd_config",
            "Match User x\n  ForceCommand a b\nAuthorizedKeysCommand /bin/a %u",
            &["$ a b", "/bin/a %u"],
        ),
        ("/etc/udev/rules.d/a.rules", "ACTION==\"add\", RUN+=\"/bin/a 'b c' %k\"", &["/bin/a b c %k"]),
        (
            "/etc/udev/rules.d/a.rules",
            "RUN{program}+=\"a\", \\\n PROGRAM==\"/bin/sh -c 'echo $$x'\"",
            &["/usr/lib/udev/a", "$ echo $x"],
        ),
        (
            "/etc/udev/rules.d/a.rules",
            "IMPORT{program}=\"a\", RUN{builtin}+=\"kmod load\", ENV{A}=\"RUN+=b\"",
            &["/usr/lib/udev/a"],
        ),
        ("/etc/udev/rules.d/a.rules", "KERNEL==\"x\"  RUN+=\"/bin/a \\\"b\\\"\"", &["/bin/a b"]),
        ("/etc/logrotate.d/a", "/var/log/a {\n postrotate\n  a\n  b\n endscript\n}\n", &["$   a\n  b\n"]),
        ("/etc/logrotate.d/a", "/var/log/a { prerotate\n a\nendscript }\n", &["$  a\n"]),
        ("/etc/logrotate.d/a", "compresscmd /bin/xz\n", &["/bin/xz"]),
        (
            "/etc/sysctl.d/a.conf",
            "kernel.core_pattern = |/bin/a %p\n-kernel/modprobe=/bin/b",
            &["/bin/a %p", "/bin/b"],
        ),
        ("/etc/sysctl.d/a.conf", "kernel.core_pattern=core.%p\nvm.swappiness = 10\n", &[]),
        (
            "/etc/modprobe.d/a.conf",
            "install a /bin/b; \\\n c\nblacklist d\nremove e f",
            &["$ /bin/b;  c", "$ f"],
        ),
        (
            "/etc/pam.d/a",
            "auth [success=1 default=ignore] pam_unix.so\n-session optional pam_exec.so quiet log=/x /bin/a [b c]",
            &["/bin/a b c"],
        ),
        ("/etc/pam.conf", "sshd auth optional /lib/security/pam_exec.so /bin/a", &["/bin/a"]),
        ("/root/.ssh/authorized_keys", "command=\"a\" ssh-rsa AAAA", &["$ a"]),
        ("/srv/a/.git/config", "[core]\n\tsshCommand = a\n", &["$ a"]),
        (
            "/srv/compose.yaml",
            "services:\n  a:\n    image: b\n    command: sh -c 'c d'\n",
            &["docker run b sh -c c d"],
        ),
        (
            "/srv/compose.yaml",
            "services:\n  a:\n    image: b\n    privileged: true\n    pid: host\n    network_mode: host\n    command: [c, d]\n",
            &["docker run --privileged --pid=host --network=host b c d"],
        ),
        (
            "/srv/compose.yaml",
            "services:\n  a:\n    image: b\n    volumes: ['/:/host:ro', data:/d]\n    cap_add: [SYS_ADMIN]\n",
            &["docker run --cap-add=SYS_ADMIN -v /:/host:ro -v data:/d b"],
        ),
        (
            "/srv/compose.yaml",
            "services:\n  a:\n    image: b\n    volumes:\n      - type: bind\n        source: /etc\n        target: /x\n    devices: [/dev/sda:/dev/sda]\n",
            &["docker run --device=/dev/sda:/dev/sda -v /etc:/x b"],
        ),
        (
            "/srv/compose.yaml",
            "services:\n  a:\n    build: .\n    entrypoint: e f\n    command: g\n",
            &["docker build .", "docker run --entrypoint e a f g"],
        ),
        (
            "/srv/compose.yaml",
            "services:\n  a:\n    image: b\n    healthcheck: {test: [CMD-SHELL, x y]}\n",
            &["docker run --health-cmd x y b"],
        ),
        (
            "/srv/compose.yaml",
            "x-a: &a\n  privileged: true\nservices:\n  a:\n    <<: *a\n    image: b\n",
            &["docker run --privileged b"],
        ),
        (
            "/srv/compose.yaml",
            "services:\n  a:\n    image: b\n    secrets: [s]\nsecrets:\n  s: {file: /etc/shadow}\n",
            &["docker run -v /etc/shadow:/run/secrets:ro b"],
        ),
        ("/srv/docker-compose.yml", "web:\n  image: b\n  privileged: true\n", &["docker run --privileged b"]),
        (
            "/etc/network/interfaces",
            "iface eth0 inet dhcp\n  post-up a \\\n b\n  down c\n  mtu 9000\n",
            &["$ a  b", "$ c"],
        ),
        ("/etc/dpkg/dpkg.cfg.d/a", "post-invoke=a b\n", &["$ a b"]),
        (
            "/usr/share/dbus-1/system-services/a.service",
            "[D-BUS Service]\nExec=/bin/a b\nUser=root",
            &["/bin/a b"],
        ),
    ];
    for (path, text, expected) in table {
        let code = of_file(path, text.as_bytes()).unwrap();
        assert_eq!(
            (texts(&code), &code.unreadable),
            (expected.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>(), &None),
            "{path}: {text}"
        );
    }
}

#[test]
fn a_line_says_whose_it_is_and_where_it_stands() {
    let code = of_file("/etc/cron.d/a", b"A=b\n@daily root a\n@daily alice b\n").unwrap();
    let said: Vec<_> = code.lines.iter().map(|line| (line.at.as_str(), line.user.as_deref())).collect();
    assert_eq!(said, [("line 2", None), ("line 3", Some("alice"))]);
    assert_eq!(code.lines[0].argv, ["sh", "-c", "a"]);
    let code = of_file("/var/spool/cron/crontabs/alice", b"@daily a").unwrap();
    assert_eq!(code.lines[0].user.as_deref(), Some("alice"));
}

#[test]
fn what_gives_power_without_a_command_is_said() {
    let table = [
        ("/etc/cron.d/a", "LD_PRELOAD=/x.so\n", "sets LD_PRELOAD"),
        ("/etc/cron.d/a", "PATH=/tmp:/bin\n", "has PATH lead to `/tmp`"),
        ("/etc/cron.d/a", "* * * * * root /tmp/x\n", "runs /tmp/x as root"),
        ("/etc/cron.d/a", "* * * * * root sh%rm -rf /\n", "what follows its first %"),
        (
            "/etc/sudoers",
            "alice ALL=(ALL) NOPASSWD: ALL",
            "lets alice run everything as root, without a password (NOPASSWD), line 1",
        ),
        ("/etc/sudoers.d/a", "%sudo ALL=(ALL:ALL) NOPASSWD:ALL", "lets %sudo run everything"),
        ("/etc/sudoers.d/a", "alice ALL=(ALL:ALL) ALL", "lets alice run everything as root"),
        ("/etc/sudoers.d/a", "alice, root ALL=(ALL:ALL) ALL", "lets alice,root run everything"),
        ("/etc/sudoers.d/a", "ALL ALL = ALL", "lets ALL run everything"),
        ("/etc/sudoers.d/a", "Cmnd_Alias A = ALL\nalice ALL = A", "lets alice run everything"),
        ("/etc/sudoers.d/a", "alice ALL = /bin/a *", "whatever that matches"),
        ("/etc/sudoers.d/a", "alice ALL = /bin/", "whatever that matches"),
        ("/etc/sudoers.d/a", "alice ALL = /bin/a", "with any arguments"),
        ("/etc/sudoers.d/a", "alice ALL = NOPASSWD: /bin/a b", "without a password"),
        ("/etc/sudoers.d/a", "alice ALL = SETENV: /bin/a b", "with variables of their own"),
        ("/etc/sudoers.d/a", "alice ALL = /tmp/a b", "runs /tmp/a as root"),
        ("/etc/sudoers.d/a", "@includedir /tmp/x", "takes rules from /tmp/x"),
        ("/etc/sudoers.d/a", "#include /home/alice/x", "takes rules from /home/alice/x"),
        ("/etc/sudoers.d/a", "Defaults !authenticate", "without a password"),
        ("/etc/sudoers.d/a", "Defaults:alice env_reset, !authenticate", "without a password"),
        ("/etc/sudoers.d/a", "Defaults:alice, \"a b\" !authenticate", "without a password"),
        ("/etc/sudoers.d/a", "Defaults!/bin/ls !authenticate", "without a password"),
        ("/etc/sudoers.d/a", "Defaults secure_path=\"/x#:/tmp\"", "has root use /x#:/tmp"),
        ("/etc/sudoers.d/a", "alice ALL = /bin/a ^x,y$", "whatever that matches"),
        ("/etc/sudoers.d/a", "Defaults env_keep += \"A LD_PRELOAD\"", "lets LD_PRELOAD through"),
        ("/etc/sudoers.d/a", "Defaults secure_path=/tmp:/bin", "has root use /tmp:/bin"),
        ("/etc/sudoers.d/a", "Defaults timestamp_timeout=-1", "never again"),
        ("/srv/compose.yaml", "services:\n  a:\n    image: b\n    pid: ${P}\n", "what isn't known before"),
        (
            "/srv/compose.yaml",
            "services:\n  a:\n    image: b\n    volumes: [\"${D}:/d\"]\n",
            "mounts what isn't known before",
        ),
        (
            "/srv/compose.yaml",
            "services: {a: {image: b}}\nvolumes:\n  v:\n    driver_opts: {type: none, o: bind, device: /}\n",
            "be / of the host",
        ),
        ("/srv/compose.yaml", "include: [/tmp/x.yaml]\nservices: {}\n", "from other files"),
        ("/srv/compose.yaml", "services:\n  a:\n    extends: {file: /tmp/x.yaml, service: y}\n", "extends"),
        ("/etc/ssh/sshd_config", "AuthorizedKeysFile .ssh/authorized_keys /tmp/%u", "trusts /tmp/%u"),
        ("/etc/ssh/sshd_config", "PermitUserEnvironment yes", "set any variable"),
        ("/etc/ssh/sshd_config", "SetEnv A=b LD_PRELOAD=/x", "sets LD_PRELOAD"),
        ("/etc/ssh/ssh_config", "Include /tmp/x", "trusts /tmp/x"),
        ("/etc/ssh/ssh_config", "PKCS11Provider /tmp/x.so", "loads /tmp/x.so"),
        ("/root/.ssh/authorized_keys", "environment=\"LD_PRELOAD=/x\" ssh-rsa AAAA", "sets LD_PRELOAD"),
        (
            "/etc/udev/rules.d/a.rules",
            "ENV{SYSTEMD_WANTS}+=\"debug-shell.service\"",
            "pulls in debug-shell.service",
        ),
        ("/etc/udev/rules.d/a.rules", "RUN+=\"$env{X} y\"", "a device or another rule names"),
        ("/etc/logrotate.d/a", "include /tmp/x\n", "takes settings from /tmp/x"),
        ("/etc/logrotate.d/a", "/etc/shadow {\n rotate 0\n}\n", "rotates /etc/shadow"),
        ("/etc/sysctl.d/a.conf", "kernel.core_patter? = |/tmp/x", "may name a program"),
        ("/etc/sysctl.d/a.conf", "kernel.core_pattern=|/tmp/x", "runs /tmp/x as root"),
        ("/etc/modprobe.d/a.conf", "install a /home/x/y", "runs /home/x/y as root"),
        ("/etc/pam.d/sshd", "auth sufficient pam_permit.so", "lets anybody in"),
        ("/etc/pam.d/sshd", "auth required /tmp/x.so", "loads /tmp/x.so"),
        ("/etc/environment", "LD_PRELOAD=/x.so\n", "sets LD_PRELOAD"),
        ("/srv/a/.git/config", "[core]\nhooksPath=/tmp/x\n", "run the hooks in /tmp/x"),
    ];
    for (path, text, expected) in table {
        let code = of_file(path, text.as_bytes()).unwrap();
        assert!(code.power.iter().any(|said| said.contains(expected)), "{path}: {text}: {code:?}");
    }
}

#[test]
fn what_is_ordinary_gives_no_power() {
    let table = [
        (
            "/etc/cron.d/a",
            "PATH=/usr/local/bin:/usr/bin\n@daily root find /tmp -mtime +7 -name 'x*'\n@daily alice /home/alice/x\n",
        ),
        (
            "/etc/sudoers",
            "root ALL=(ALL:ALL) NOPASSWD: ALL\n%wheel ALL=(ALL) ALL\nDefaults timestamp_timeout=5\n",
        ),
        (
            "/etc/sudoers.d/a",
            "alice ALL = /usr/bin/systemctl restart nginx\nalice ALL = /bin/a \"\"\nalice ALL = !/bin/su\n",
        ),
        (
            "/etc/ssh/sshd_config",
            "PermitRootLogin no\nAuthorizedKeysFile .ssh/authorized_keys\nSubsystem sftp internal-sftp\n",
        ),
        (
            "/srv/compose.yaml",
            "services:\n  a:\n    image: nginx:${TAG}\n    ports: ['80:80']\n    volumes: [data:/var/lib/x]\nvolumes:\n  data: {}\n",
        ),
        ("/etc/logrotate.d/a", "/var/log/a/*.log {\n weekly\n su root adm\n create 0640 root adm\n}\n"),
        ("/etc/modprobe.d/a.conf", "blacklist a\noptions b c=1\ninstall d /bin/true\n"),
        (
            "/etc/pam.d/common-auth",
            "auth [success=1 default=ignore] pam_unix.so nullok\nauth requisite pam_deny.so\nauth required pam_permit.so\n",
        ),
        ("/home/alice/.ssh/authorized_keys", "no-pty,from=\"10.0.0.1\" ssh-ed25519 AAAA a@b\n"),
    ];
    for (path, text) in table {
        let code = of_file(path, text.as_bytes()).unwrap();
        assert!(code.power.is_empty() && code.unreadable.is_none(), "{path}: {code:?}");
    }
}

#[test]
fn what_cannot_be_read_is_said_to_be_unreadable() {
    let table: [(&str, &[u8]); 24] = [
        ("/etc/cron.daily/a", b"echo"),
        ("/usr/local/bin/a.sh", b"echo"),
        ("/srv/anything", b"#!/bin/sh\n"),
        ("/etc/cron.d/a", b"#!/bin/sh\n"),
        ("/srv/anything", b"\x7fELF\x02"),
        ("/etc/cron.d/a", b"\xff\xfe"),
        ("/etc/cron.d/a", b"@daily root a\0b"),
        ("/etc/cron.d/a", b"@daily root"),
        ("/etc/cron.d/a", b"* * * *"),
        ("/etc/cron.d/a", b"this is no crontab at all, is it"),
        ("/etc/systemd/system/a.service", b"[Service]\nExecStart=/bin/a 'b"),
        ("/etc/systemd/system/a.service", b"words\n"),
        ("/etc/sudoers", b"alice ALL"),
        ("/etc/sudoers", b"alice = ALL"),
        ("/etc/sudoers", b"alice ALL = /bin/a : h2 = /bin/b"),
        ("/etc/sudoers", b"alice ALL = STRANGE: /bin/a"),
        ("/etc/sudoers", b"Cmnd_Alias A = A\nalice ALL = A"),
        ("/srv/compose.yaml", b"services: [\n"),
        ("/srv/compose.yaml", b"- a\n"),
        ("/srv/compose.yaml", b"services:\n  a:\n    command: {a: b}\n"),
        ("/etc/ssh/ssh_config", b"KnownHostsCommand /bin/a \"b"),
        ("/etc/udev/rules.d/a.rules", b"RUN+=\"/bin/a"),
        ("/etc/logrotate.d/a", b"/var/log/a {\npostrotate\n a\n"),
        ("/etc/default/a", b"A=$(id)\n"),
    ];
    for (path, contents) in table {
        let code = of_file(path, contents).unwrap();
        assert!(code.unreadable.is_some(), "{path}: {}: {code:?}", String::from_utf8_lossy(contents));
    }
    assert!(of_file("/etc/cron.d/a", &vec![b'#'; LARGEST + 1]).unwrap().unreadable.is_some());
}

#[test]
fn what_nobody_takes_code_from_is_not_read() {
    for path in [
        "/etc/hosts",
        "/etc/nginx/nginx.conf",
        "/var/www/index.html",
        "/etc/fstab",
        "/srv/x.yaml",
        "relative",
    ] {
        assert_eq!(of_file(path, b"rm -rf /\n"), None, "{path}");
    }
}

#[test]
fn what_a_program_reads_is_code_where_it_runs_it() {
    const CRONTAB: &str = "@daily x\n";
    let table: [(&str, &str, Option<&[&str]>); 30] = [
        ("crontab -", CRONTAB, Some(&["$ x"])),
        ("/usr/bin/crontab -u alice -", CRONTAB, Some(&["$ x"])),
        ("crontab -ualice -", CRONTAB, Some(&["$ x"])),
        ("crontab", CRONTAB, Some(&["$ x"])),
        ("crontab -l", CRONTAB, None),
        ("crontab /srv/file", CRONTAB, None),
        ("at now", "x\n", Some(&["$ x\n"])),
        ("batch", "x", Some(&["$ x"])),
        ("at -f /srv/file now", "x", None),
        ("sh", "x", Some(&["$ x"])),
        ("bash -s -- a b", "x", Some(&["$ x"])),
        ("/bin/dash -eu -", "x", Some(&["$ x"])),
        ("bash -o pipefail", "x", Some(&["$ x"])),
        ("sh -c cat", "x", None),
        ("sh /srv/script", "x", None),
        ("sudo -u root bash -s", "x", Some(&["$ x"])),
        ("env A=b timeout -s KILL 5 sh", "x", Some(&["$ x"])),
        ("nsenter -t 1 -m -- crontab -", CRONTAB, Some(&["$ x"])),
        ("docker exec -i web sh", "x", Some(&["$ x"])),
        ("tee /etc/cron.d/a", "@daily root x", Some(&["$ x"])),
        ("tee -a /srv/notes", "x", None),
        ("dd bs=1 of=/etc/cron.d/a", "@daily root x", Some(&["$ x"])),
        ("docker compose -f - up", "services: {a: {image: b}}", Some(&["docker run b"])),
        ("nft -f -", "flush ruleset", None),
        ("cat", "x", None),
        ("grep sh", "x", None),
        ("chpasswd", "a:b", None),
        ("sed -n s/a/b/p", "x", None),
        ("python3 -c pass", "x", None),
        ("python3 /srv/x.py", "x", None),
    ];
    for (line, stdin, expected) in table {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let code = of_stdin(&argv, stdin.as_bytes());
        let found = code.as_ref().map(texts);
        let expected = expected.map(|lines| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        assert_eq!(found, expected, "{line}");
    }
    for line in [
        "python3",
        "python3 -",
        "python3.11 -u -",
        "perl",
        "node -",
        "patch -p1",
        "xargs rm",
        "ssh host",
        "sudo perl",
        "mysql",
        "make -f -",
        "sh -c cat|sh",
    ] {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert!(of_stdin(&argv, b"x").is_some_and(|code| code.unreadable.is_some()), "{line}");
    }
    let code = of_stdin(&["crontab", "-u", "alice", "-"].map(str::to_owned), CRONTAB.as_bytes()).unwrap();
    assert_eq!(code.lines[0].user.as_deref(), Some("alice"));
    assert_eq!(of_stdin(&[], b"x"), None);
}

/// One place of each kind.
const PLACES: [&str; 21] = [
    "/etc/network/interfaces",
    "/etc/apt/apt.conf",
    "/etc/dpkg/dpkg.cfg",
    "/etc/systemd/system/a@.service",
    "/etc/systemd/system/a.service.d/a.conf",
    "/etc/systemd/system.conf",
    "/etc/cron.d/a",
    "/var/spool/cron/crontabs/a",
    "/etc/anacrontab",
    "/etc/sudoers",
    "/srv/compose.yaml",
    "/etc/ssh/sshd_config",
    "/root/.ssh/authorized_keys",
    "/etc/udev/rules.d/a.rules",
    "/etc/logrotate.d/a",
    "/etc/sysctl.conf",
    "/etc/modprobe.d/a",
    "/etc/pam.d/a",
    "/etc/pam.conf",
    "/etc/default/a",
    "/srv/.git/config",
];

#[test]
fn a_text_that_repeats_itself_is_read_in_one_go() {
    let parts = [
        "ExecStart=/bin/a $A ${A} %n\n",
        "Environment=A=bbbbbbbb\n",
        "\\\n",
        "[Service]\n",
        "\"",
        "'",
        "(",
        "$A ",
        "* ",
        "\\",
        "a,",
        "a:b=",
        "a ALL=A\n",
        "Cmnd_Alias A=A,A,A\n",
        "RUN+=\"a\" ",
        "{",
        "[",
        "postrotate\n",
        "command=\"a\",",
        "- [",
        "a: &a [*a]\n",
        "include /tmp/a\n",
        "User=a\nExecStart=/bin/a\n",
        "* * * * * root a\n",
        "=",
        ";",
        "#",
        "Match exec ",
        "\r",
        "\u{e9}",
        "- ",
        "? ",
        "&a ",
        "*a ",
        "|\n ",
        "KEY{a",
    ];
    for part in parts {
        let text = part.repeat((1 << 15) / part.len());
        for place in PLACES {
            let code = of_file(place, text.as_bytes()).unwrap();
            assert!(code.power.len() <= SENTENCES, "{place}: {part:?}");
        }
        let argv = vec!["sudo".to_owned(), text.clone(), "dd".to_owned()];
        of_stdin(&argv, text.as_bytes());
    }
    of_stdin(&vec!["dd".to_owned(); 10_000], b"x");
}

proptest! {
    #[test]
    fn no_text_is_too_strange(contents in proptest::collection::vec(any::<u8>(), 0..200)) {
        for place in PLACES {
            of_file(place, &contents);
        }
    }

    #[test]
    fn no_text_of_the_formats_own_signs_is_too_strange(text in "([a-zé=:,;$%{}()\\[\\]\"'\\\\ \n\r\t#@!*|/]|ExecStart=|\\* |ALL|RUN|exec |endscript|\\$\\{A\\}|services:|Environment=A=){0,60}") {
        for place in PLACES {
            of_file(place, text.as_bytes());
        }
    }

    #[test]
    fn no_argv_is_too_strange(argv in proptest::collection::vec("(sudo|sh|-s|-|--|dd|of=/etc/crontab|crontab|-u|tee|python3|-c|env|é|/|)", 0..12)) {
        of_stdin(&argv, b"@daily x");
    }
}
