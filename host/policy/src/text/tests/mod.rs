mod verdicts;

use proptest::prelude::*;

use super::*;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/text/fixtures/debian12");

/// Texts of Debian 12's packages, by the paths that they are installed to.
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
fn debians_own_texts_are_read_whole() {
    let found = of_debian();
    let mut lines = 0;
    for (path, contents) in &found {
        let code = code_in_file(path, contents).unwrap_or_else(|| panic!("{path} is read by nobody"));
        assert_eq!(code.unreadable, None, "{path}");
        lines += code.lines.len();
    }
    assert!(found.len() >= 20 && lines >= 30, "{} files, {lines} lines", found.len());
}

#[test]
fn a_line_is_what_its_program_runs() {
    let table: &[(&str, &str, &[&str])] = &[
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
        // A comment always ends with its line. Blanks may follow the backslash that joins two lines.
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
        ("/root/.ssh/authorized_keys", "command=\"a\" ssh-rsa AAAA", &["$ a"]),
        (
            "/usr/share/dbus-1/system-services/a.service",
            "[D-BUS Service]\nExec=/bin/a b\nUser=root",
            &["/bin/a b"],
        ),
    ];
    for (path, text, expected) in table {
        let code = code_in_file(path, text.as_bytes()).unwrap();
        assert_eq!(
            (texts(&code), &code.unreadable),
            (expected.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>(), &None),
            "{path}: {text}"
        );
    }
}

#[test]
fn a_line_says_whose_it_is_and_where_it_stands() {
    let code = code_in_file("/etc/cron.d/a", b"A=b\n@daily root a\n@daily alice b\n").unwrap();
    let said: Vec<_> = code.lines.iter().map(|line| (line.at.as_str(), line.user.as_deref())).collect();
    assert_eq!(said, [("line 2", None), ("line 3", Some("alice"))]);
    assert_eq!(code.lines[0].argv, ["sh", "-c", "a"]);
    let code = code_in_file("/var/spool/cron/crontabs/alice", b"@daily a").unwrap();
    assert_eq!(code.lines[0].user.as_deref(), Some("alice"));
}

#[test]
fn a_job_that_stays_under_the_same_variables_is_no_new_code() {
    let argv = ["crontab", "-"].map(str::to_owned);
    let old = "PATH=/usr/bin\n0 5 * * * job\nLD_PRELOAD=/x\n@daily other %input\n";
    for (text, lines, power) in [
        (old.to_owned(), &[][..], 0),
        (format!("# a comment\n{old}"), &[], 0),
        (old.replace("0 5", "0 6"), &["$ job"], 0),
        // Each new job is weighed with the variables above it, old or new.
        (format!("{old}@hourly true\n"), &["$ true"], 1),
        (old.replace("LD_", "@hourly true\nLD_"), &["$ true"], 0),
        // What is above the jobs has changed or has moved.
        (old.replace("/usr/bin", "/srv/bin"), &["$ job", "$ other "], 3),
        (format!("MAILTO=x\n{old}"), &["$ job", "$ other "], 2),
        (old.replace("PATH=/usr/bin\n", ""), &["$ job", "$ other "], 2),
        (
            "@daily other %input\nPATH=/usr/bin\nLD_PRELOAD=/x\n0 5 * * * job\n".to_owned(),
            &["$ other ", "$ job"],
            2,
        ),
        // They hold for no job any more.
        ("PATH=/usr/bin\n0 5 * * * job\nLD_PRELOAD=/x\n".to_owned(), &[], 0),
        ("LD_PRELOAD=/x\n".to_owned(), &[], 0),
    ] {
        let code = new_code_on_stdin(&argv, text.as_bytes(), Some(old.as_bytes())).unwrap();
        assert_eq!(texts(&code), lines, "{text}");
        assert_eq!(code.power.len(), power, "{text}: {:?}", code.power);
    }
    // Cron may have left out a text with a line that is no job.
    let code = new_code_on_stdin(&argv, b"@daily a\n", Some(b"@daily a\nno job\n")).unwrap();
    assert_eq!(texts(&code), ["$ a"]);
    let code =
        new_code_in_unit("/etc/cron.d/x", b"@daily root a\n@daily ben a\n", &[], Some(b"@daily ben a\n"));
    assert_eq!(code.unwrap().lines[0].user, None);
}

#[test]
fn a_schedule_is_regular_that_comes_each_month() {
    for (path, line, is_regular) in [
        ("/etc/cron.d/a", "0 5 * * * root a", true),
        ("/etc/cron.d/a", "*/5 1-3 31 * mon root a", true),
        ("/etc/cron.d/a", "@daily root a", true),
        ("/etc/cron.d/a", "@monthly root a", true),
        ("/etc/cron.d/a", "@reboot root a", false),
        ("/etc/cron.d/a", "@yearly root a", false),
        ("/etc/cron.d/a", "0 0 30 2 * root a", false),
        ("/etc/cron.d/a", "0 0 1 jan * root a", false),
        ("/etc/anacrontab", "7 5 a a", true),
        ("/etc/anacrontab", "@weekly 5 a a", true),
        ("/etc/anacrontab", "9999 5 a a", false),
        ("/etc/anacrontab", "@yearly 5 a a", false),
    ] {
        let code = code_in_file(path, line.as_bytes()).unwrap();
        let schedule = code.lines[0].schedule.as_ref().unwrap();
        assert_eq!(schedule.is_regular, is_regular, "{line}");
    }
    let of = |is_regular, settings: &str| Schedule { is_regular, settings: settings.to_owned() };
    for (former, now, ends) in [
        (of(true, "a"), of(true, "b"), false),
        (of(true, "a"), of(false, "b"), true),
        (of(false, "a"), of(false, "b"), true),
        (of(false, "a"), of(false, "a"), false),
    ] {
        assert_eq!(now.may_end(&former), ends, "{former:?} {now:?}");
    }
}

#[test]
fn what_gives_power_without_a_command_is_said() {
    let table = [
        ("/etc/cron.d/a", "LD_PRELOAD=/x.so\n", "sets LD_PRELOAD"),
        ("/etc/cron.d/a", "PATH=/tmp:/bin\n", "sets PATH=/tmp:/bin for what runs as root"),
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
        ("/etc/sudoers.d/a", "@includedir /tmp/x", "takes rules from /tmp/x"),
        ("/etc/sudoers.d/a", "#include /home/alice/x", "takes rules from /home/alice/x"),
        ("/etc/sudoers.d/a", "Defaults !authenticate", "sets `!authenticate`"),
        ("/etc/sudoers.d/a", "Defaults:alice env_reset, !authenticate", "sets `!authenticate`"),
        ("/etc/sudoers.d/a", "Defaults:alice, \"a b\" !authenticate", "sets `!authenticate`"),
        ("/etc/sudoers.d/a", "Defaults!/bin/ls !authenticate", "sets `!authenticate`"),
        ("/etc/sudoers.d/a", "Defaults secure_path=\"/x#:/tmp\"", "sets `secure_path="),
        ("/etc/sudoers.d/a", "alice ALL = /bin/a ^x,y$", "whatever that matches"),
        ("/etc/sudoers.d/a", "Defaults env_keep += \"A LD_PRELOAD\"", "sets `env_keep +="),
        ("/etc/sudoers.d/a", "Defaults secure_path=/tmp:/bin", "sets `secure_path=/tmp:/bin`"),
        ("/etc/sudoers.d/a", "Defaults timestamp_timeout=-1", "sets `timestamp_timeout=-1`"),
        ("/etc/ssh/ssh_config", "Include /tmp/x", "sets Include to /tmp/x"),
        ("/etc/ssh/ssh_config", "PKCS11Provider /tmp/x.so", "sets PKCS11Provider to /tmp/x.so"),
        (
            "/root/.ssh/authorized_keys",
            "environment=\"LD_PRELOAD=/x\" ssh-rsa AAAA",
            "sets environment=\"LD_PRELOAD=/x\"",
        ),
    ];
    for (path, text, expected) in table {
        let code = code_in_file(path, text.as_bytes()).unwrap();
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
        ("/home/alice/.ssh/authorized_keys", "no-pty,from=\"10.0.0.1\" ssh-ed25519 AAAA a@b\n"),
    ];
    for (path, text) in table {
        let code = code_in_file(path, text.as_bytes()).unwrap();
        assert!(code.power.is_empty() && code.unreadable.is_none(), "{path}: {code:?}");
    }
}

#[test]
fn what_cannot_be_read_is_said_to_be_unreadable() {
    let table: &[(&str, &[u8])] = &[
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
        ("/etc/ssh/ssh_config", b"KnownHostsCommand /bin/a \"b"),
    ];
    for (path, contents) in table {
        let code = code_in_file(path, contents).unwrap();
        assert!(code.unreadable.is_some(), "{path}: {}: {code:?}", String::from_utf8_lossy(contents));
    }
    assert!(code_in_file("/etc/cron.d/a", &vec![b'#'; MAX_BYTES + 1]).unwrap().unreadable.is_some());
}

#[test]
fn data_that_commands_terminals_is_not_harmless() {
    for (contents, is_harmless) in [
        ("Welcome\tto\r\nZürich\n", true),
        ("\x1b[2J\x1b]52;c;eA==\x07\n", false),
        ("a\rb\x08\n", false),
        ("\u{9b}2J\n", false),
        ("\x7f", false),
    ] {
        for path in ["/etc/motd", "/etc/motd.d/50-x", "/etc/issue"] {
            assert_eq!(code_in_file(path, contents.as_bytes()).is_none(), is_harmless, "{path} {contents:?}");
        }
    }
}

#[test]
fn only_what_is_known_to_be_data_or_somebodys_own_is_not_read() {
    for path in ["/etc/hosts", "/etc/motd", "/var/www/index.html", "/srv/x.yaml", "/home/ada/notes"] {
        assert_eq!(code_in_file(path, b"rm -rf /\n"), None, "{path}");
    }
    for path in [
        "/etc/nginx/nginx.conf",
        "/etc/crypttab",
        "/etc/ld.so.preload",
        "/etc/udev/rules.d/a.rules",
        "/etc/pam.d/sshd",
        "/etc/apt/apt.conf.d/20a",
        "/etc/default/ssh",
        "/etc/ssh/sshd_config",
        "/etc/logrotate.d/a",
        "/usr/lib/tmpfiles.d/a.conf",
        "/run/udev/rules.d/a.rules",
        "/run/tmpfiles.d/a.conf",
        "/var/lib/dpkg/info/bash.postinst",
        "/opt/app/config",
        "/root/notes",
        "/new/place",
        "/srv/a/.git/config",
        "/srv/a.git/hooks/update",
        "relative",
    ] {
        assert!(code_in_file(path, b"x\n").is_some_and(|code| code.unreadable.is_some()), "{path}");
    }
}

#[test]
fn an_fstab_that_cannot_be_read_is_critical() {
    let large = vec![b'#'; MAX_BYTES + 1];
    let good = "UUID=6a7b /srv/data ext4 nofail,nosuid,nodev 0 2\n";
    for (contents, former) in [
        (&b"# a\0b\n"[..], ""),
        (b"# \xff\n", ""),
        (&large, ""),
        (b"", "# \0\n"),
        (b"#!/bin/sh\n/dev/x / ext4 ro\n", ""),
        (b"\x7fELF", ""),
    ] {
        let code = new_code_in_unit("/etc/../etc/fstab", contents, &[], Some(former.as_bytes())).unwrap();
        assert_eq!(code.effects[0].0, Risk::Critical, "{contents:?}");
    }
    let code = new_code_in_unit("/etc/fstab", good.as_bytes(), &[], Some(b"#!x\n")).unwrap();
    assert_eq!(code.effects[0].0, Risk::High);
    // What comes on the input of a program is judged like a whole new file.
    let tee = ["tee", "-a", "/etc/fstab"].map(str::to_owned);
    assert_eq!(code_on_stdin(&tee, good.as_bytes()).unwrap().effects.len(), 1);
}

#[test]
fn what_a_program_reads_is_code_unless_it_is_known_to_be_data_to_it() {
    const CRONTAB: &str = "@daily x\n";
    let table: [(&str, &str, Option<&[&str]>); 11] = [
        ("crontab -", CRONTAB, Some(&["$ x"])),
        ("/usr/bin/crontab -u alice -", CRONTAB, Some(&["$ x"])),
        ("crontab -ualice -", CRONTAB, Some(&["$ x"])),
        ("crontab", CRONTAB, Some(&["$ x"])),
        ("crontab -l", CRONTAB, None),
        ("crontab /srv/file", CRONTAB, None),
        ("tee /etc/cron.d/a", "@daily root x", Some(&["$ x"])),
        ("tee -a /srv/notes", "x", None),
        ("cat", "x", None),
        ("sha256sum", "x", None),
        ("visudo --check --file=-", "x", None),
    ];
    for (line, stdin, expected) in table {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let code = code_on_stdin(&argv, stdin.as_bytes());
        let found = code.as_ref().map(texts);
        let expected = expected.map(|lines| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        assert_eq!(found, expected, "{line}");
    }
    for line in [
        "sh",
        "bash -s",
        "sudo sh",
        "env sh",
        "python3 -",
        "at now",
        "patch -p1",
        "xargs rm",
        "ssh host",
        "mysql",
        "nft -f -",
        "make -f -",
        "chpasswd",
        "docker compose -f - up",
        "visudo",
        "nobody-knows",
    ] {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert!(code_on_stdin(&argv, b"x").is_some_and(|code| code.unreadable.is_some()), "{line}");
    }
    let code =
        code_on_stdin(&["crontab", "-u", "alice", "-"].map(str::to_owned), CRONTAB.as_bytes()).unwrap();
    assert_eq!(code.lines[0].user.as_deref(), Some("alice"));
    assert_eq!(code_on_stdin(&[], b"x"), None);
}

/// One path of each format.
const PLACES: [&str; 10] = [
    "/etc/systemd/system/a@.service",
    "/etc/systemd/system/a.service.d/a.conf",
    "/etc/cron.d/a",
    "/var/spool/cron/crontabs/a",
    "/etc/anacrontab",
    "/etc/sudoers",
    "/etc/fstab",
    "/srv/compose.yaml",
    "/etc/ssh/ssh_config",
    "/root/.ssh/authorized_keys",
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
            let code = code_in_file(place, text.as_bytes()).unwrap();
            assert!(code.power.len() <= MAX_SENTENCES, "{place}: {part:?}");
        }
        let argv = vec!["sudo".to_owned(), text.clone(), "dd".to_owned()];
        code_on_stdin(&argv, text.as_bytes());
    }
    code_on_stdin(&vec!["dd".to_owned(); 10_000], b"x");
}

proptest! {
    #[test]
    fn no_text_is_too_strange(contents in proptest::collection::vec(any::<u8>(), 0..200)) {
        for place in PLACES {
            code_in_file(place, &contents);
        }
    }

    #[test]
    fn no_text_of_the_formats_own_signs_is_too_strange(text in "([a-zé=:,;$%{}()\\[\\]\"'\\\\ \n\r\t#@!*|/]|ExecStart=|\\* |ALL|RUN|exec |endscript|\\$\\{A\\}|services:|Environment=A=){0,60}") {
        for place in PLACES {
            code_in_file(place, text.as_bytes());
        }
    }

    #[test]
    fn no_argv_is_too_strange(argv in proptest::collection::vec("(sudo|sh|-s|-|--|dd|of=/etc/crontab|crontab|-u|tee|python3|-c|env|é|/|)", 0..12)) {
        code_on_stdin(&argv, b"@daily x");
    }
}
