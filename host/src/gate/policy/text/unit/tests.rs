use super::*;
use crate::gate::policy::text::of_file;

fn service(lines: &str) -> Code {
    of_file("/etc/systemd/system/app.service", format!("[Service]\n{lines}\n").as_bytes()).unwrap()
}

fn argvs(code: &Code) -> Vec<Vec<&str>> {
    code.lines.iter().map(|line| line.argv.iter().map(String::as_str).collect()).collect()
}

#[test]
fn words_are_those_that_systemd_itself_shows() {
    // What systemd 252.39-1~deb12u2 says with --test of the unit in the fixture, before it puts variables in.
    let shown: [&[&str]; 14] = [
        &["/bin/echo", "ab cd", "e f", " ", ";"],
        &["/bin/echo", "two", "three", "x;y", ";four"],
        &["rm", "-rf", "/x"],
        &["/bin/echo", "$$X", "${Y}z", "$Z", "%", "t.service", "\\$q", "\\q"],
        &["/bin/echo", "ok"],
        &["/bin/echo", "$B", "$C", "${B}", "pre$A", "${A}b", "${B} c", "$$A"],
        &["/bin/a", ";/bin/b"],
        &["/bin/c"],
        &["/bin/echo", "a'b", "a\"b", "a\\ b", "AA\u{e9}", "\\N"],
        &["/bin/true"],
        &["/bin/with space", "x"],
        &["/bin/x", "y"],
        &["/bin/sh", "-c", "echo \"t.service\" > /x; y"],
        &[],
    ];
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/gate/policy/text/fixtures/systemd252/words.service");
    let text = std::fs::read_to_string(path).unwrap();
    // Without the variables, which systemd doesn't put in at this point.
    let text: String = text
        .lines()
        .filter(|line| !line.starts_with("Environment="))
        .map(|line| format!("{line}\n"))
        .collect();
    let code = of_file("/etc/systemd/system/t.service", text.as_bytes()).unwrap();
    let found = argvs(&code);
    // A program that goes by another name is one line more, and a dollar that is doubled is one.
    let found: Vec<_> = found.into_iter().filter(|argv| argv[0] != "/bin/busybox").collect();
    let undoubled = |words: &&[&str]| words.iter().map(|word| word.replace("$$", "$")).collect::<Vec<_>>();
    let expected: Vec<_> = shown.iter().filter(|words| !words.is_empty()).map(undoubled).collect();
    // `:` before a program keeps the dollars as they are; there are none in that line.
    assert_eq!(found, expected);
}

#[test]
fn variables_of_the_file_itself_are_put_in() {
    let table: [(&str, &str, &[&str]); 9] = [
        ("A=-rf", "/bin/rm $A /", &["/bin/rm", "-rf", "/"]),
        ("\"A=-r -f\"", "/bin/rm $A /", &["/bin/rm", "-r", "-f", "/"]),
        ("\"A=-r -f\"", "/bin/rm ${A} /", &["/bin/rm", "-r -f", "/"]),
        ("A=1", "/bin/echo x${A}y$A $$A ${B} $B", &["/bin/echo", "x1y$A", "$A", "${B}", "$B"]),
        ("A=1 B=2", "/bin/echo $B", &["/bin/echo", "2"]),
        ("A=1", ":/bin/echo $A", &["/bin/echo", "$A"]),
        ("\"A='x y' z\"", "/bin/echo $A", &["/bin/echo", "x y", "z"]),
        ("A=%n", "/bin/echo $A", &["/bin/echo", "app.service"]),
        ("A=1", "/bin/echo ${A ${ $ ${}", &["/bin/echo", "${A", "${", "$", "${}"]),
    ];
    for (environment, command, expected) in table {
        let code = service(&format!("Environment={environment}\nExecStart={command}"));
        assert_eq!(argvs(&code), [expected], "{environment} {command}");
    }
    let growing =
        format!("Environment=A={}\nExecStart=/bin/x {}", "y".repeat(100_000), "$A ".repeat(100_000));
    assert!(service(&growing).unreadable.is_some());
}

#[test]
fn a_prefix_gives_a_command_roots_rights_or_another_name() {
    let code =
        service("User=ada\nExecStart=/bin/a\nExecStartPre=+/bin/b\nExecStop=!/bin/c\nExecReload=-!!/bin/d");
    let users: Vec<_> = code.lines.iter().map(|line| line.user.as_deref()).collect();
    assert_eq!(users, [Some("ada"), None, None, None]);
    let code = service("ExecStart=@-/bin/busybox rm -rf /x");
    assert_eq!(argvs(&code), [["rm", "-rf", "/x"], ["/bin/busybox", "-rf", "/x"]]);
    let code = service("ExecStart=|/bin/echo a; b");
    assert_eq!(code.lines[0].shell.as_deref(), Some("/bin/echo a; b"));
}

#[test]
fn the_account_is_the_last_one_of_the_section() {
    let table = [
        ("User=ada\nExecStart=/bin/a", Some("ada")),
        ("ExecStart=/bin/a\nUser=ada", Some("ada")),
        ("User=ada\nUser=root\nExecStart=/bin/a", None),
        ("User=ada\nUser=\nExecStart=/bin/a", None),
        ("User=0\nExecStart=/bin/a", None),
        ("User=%i\nExecStart=/bin/a", None),
        ("[Unit]\nUser=ada\n[Service]\nExecStart=/bin/a", None),
        ("DynamicUser=yes\nExecStart=/bin/a", Some("a dynamic user")),
        ("user=ada\nExecStart=/bin/a", None),
    ];
    for (lines, expected) in table {
        assert_eq!(service(lines).lines[0].user.as_deref(), expected, "{lines}");
    }
}

#[test]
fn every_kind_of_unit_has_its_commands() {
    let table: [(&str, &str, &[&str]); 6] = [
        ("a.socket", "[Socket]\nExecStartPre=/bin/a b", &["/bin/a", "b"]),
        (
            "a.mount",
            "[Mount]\nWhat=/dev/sda1\nWhere=/etc\nType=ext4\nOptions=ro",
            &["mount", "-t", "ext4", "-o", "ro", "/dev/sda1", "/etc"],
        ),
        ("a.swap", "[Swap]\nWhat=/dev/sda2", &["swapon", "/dev/sda2"]),
        ("a.service", "[Service]\nExecCondition=/bin/a\\\n; b\n\tc", &["/bin/a", "c"]),
        ("a.service", "\u{feff}[Service]\r\nExecStart=/bin/a b\r\n", &["/bin/a", "b"]),
        ("a.service", "[Service]\rExecStart=/bin/a", &["/bin/a"]),
    ];
    for (name, text, expected) in table {
        let code = of_file(&format!("/etc/systemd/system/{name}"), text.as_bytes()).unwrap();
        assert_eq!(argvs(&code), [expected], "{text}");
    }
    let code = of_file("/etc/systemd/system/a.service.d/x.conf", b"[Service]\nExecStart=\nExecStart=/bin/a")
        .unwrap();
    assert_eq!((argvs(&code), code.lines[0].at.as_str()), (vec![vec!["/bin/a"]], "ExecStart, line 3"));
}

#[test]
fn what_gives_power_without_a_command_is_said() {
    let table = [
        ("a.service", "Environment=LD_PRELOAD=/x.so", "sets LD_PRELOAD"),
        ("a.service", "Environment=\"A=b\" 'LD_LIBRARY_PATH=/x'", "sets LD_LIBRARY_PATH"),
        ("a.service", "Environment=PATH=/tmp:/bin", "has PATH lead to `/tmp`"),
        ("a.service", "PassEnvironment=A LD_AUDIT", "lets LD_AUDIT through"),
        ("a.service", "EnvironmentFile=-/home/ada/env", "takes variables for root from /home/ada/env"),
        ("a.service", "ExecSearchPath=/tmp", "looks for root's programs in /tmp"),
        ("a.service", "User=%U", "runs as the account that `%U` turns out to be"),
        ("a.service", "RootDirectory=/srv/x", "in place of the system's own"),
        ("a.service", "BindPaths=/tmp/x:/usr/bin", "puts in the place of root's files"),
        ("a.service", "StandardOutput=append:/etc/cron.d/x", "writes a program's output to /etc/cron.d/x"),
        ("a.service", "StandardInputText=rm -rf /", "gives a program text to read"),
        ("a.service", "StandardInput=socket\nExecStart=/bin/sh", "run what it reads"),
        ("a.service", "ExecStart=/bin/sh", "opens a shell"),
        ("a.service", "ExecStart=/tmp/x", "runs /tmp/x as root"),
        ("a.service", "ExecStart=/bin/sh -c '/dev/shm/x'", "runs /dev/shm/x as root"),
        ("a.service", "ExecStart=%h/x", ""),
        ("a@.service", "ExecStart=/opt/%i", "which program that is"),
        ("a.service", "User=ada\nAmbientCapabilities=CAP_SYS_ADMIN", "gives CAP_SYS_ADMIN"),
        ("a.service", "User=ada\nAmbientCapabilities=~", "to an account that isn't root"),
        ("a.service", "DeviceAllow=/dev/sda rw", "allows /dev/sda"),
        ("a.service", "Wants=debug-shell.service", "pulls in debug-shell.service"),
        ("a.service", "Requires=x.service rescue.target", "pulls in rescue.target"),
        ("a.service", "OnFailure=reboot.target", "pulls in reboot.target"),
        ("a.service", "Also=debug-%i.service", "pulls in debug-%i.service"),
        ("a.service", "Alias=debug-shell.service", "pulls in debug-shell.service"),
        ("a.service", "Alias=ssh.service", "takes the place of ssh.service"),
        ("a.service", "Conflicts=ssh.service", "stops ssh.service"),
        ("a.service", "FailureAction=poweroff-force", "can end the running system"),
        ("a.timer", "Unit=emergency.target", "pulls in emergency.target"),
        ("a.socket", "Service=debug-shell.service", "pulls in debug-shell.service"),
        ("nginx.service.d/a.conf", "User=root", "has nginx.service run as root"),
        ("nginx.service.d/a.conf", "User=", "has nginx.service run as root"),
        ("/etc/systemd/system.conf", "DefaultEnvironment=LD_PRELOAD=/x", "sets LD_PRELOAD"),
    ];
    for (name, line, expected) in table {
        let path =
            if name.starts_with('/') { name.to_owned() } else { format!("/etc/systemd/system/{name}") };
        let code = of_file(&path, format!("[X]\n{line}\n").as_bytes()).unwrap();
        match expected {
            "" => assert_eq!(code.power, [""; 0], "{line}"),
            expected => {
                assert!(code.power.iter().any(|said| said.contains(expected)), "{line}: {:?}", code.power)
            }
        }
    }
}

#[test]
fn what_is_ordinary_in_a_unit_gives_no_power() {
    let lines = [
        "Environment=A=b PYTHONPATH=/opt/app",
        "EnvironmentFile=-/etc/default/app",
        "User=ada\nEnvironment=LD_PRELOAD=/opt/x.so",
        "User=ada\nExecStart=/home/ada/x",
        "User=www-data\nAmbientCapabilities=CAP_NET_BIND_SERVICE",
        "DeviceAllow=/dev/null rw",
        "Wants=network-online.target",
        "Conflicts=shutdown.target rescue.service",
        "FailureAction=none",
        "StandardOutput=append:/var/log/app.log",
        "StandardInput=null",
        "BindPaths=/srv/a",
        "Alias=app2.service",
        "ExecStart=/usr/bin/python3 /opt/app/main.py --tmp /tmp",
    ];
    for line in lines {
        let code = service(line);
        assert!(code.power.is_empty() && code.unreadable.is_none(), "{line}: {code:?}");
    }
}

#[test]
fn what_systemd_would_not_read_is_unreadable() {
    for lines in ["ExecStart=/bin/a 'b", "ExecStart", "ExecStart=+", "=", "ExecStart=-"] {
        let code = service(lines);
        assert!(code.unreadable.is_some() || lines == "=", "{lines}: {code:?}");
    }
}
