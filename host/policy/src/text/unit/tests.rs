use super::*;
use crate::text::{code_in_file, code_in_unit};

fn service(lines: &str) -> Code {
    code_in_file("/etc/systemd/system/app.service", format!("[Service]\n{lines}\n").as_bytes()).unwrap()
}

fn argvs(code: &Code) -> Vec<Vec<&str>> {
    code.lines.iter().map(|line| line.argv.iter().map(String::as_str).collect()).collect()
}

#[test]
fn words_are_those_that_systemd_itself_shows() {
    // systemd 252.39-1~deb12u2 printed these words with --test for the unit in the fixture, before it replaced variables.
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
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/text/fixtures/systemd252/words.service");
    let text = std::fs::read_to_string(path).unwrap();
    // Variables are left out, because systemd has not replaced them at this point.
    let text: String = text
        .lines()
        .filter(|line| !line.starts_with("Environment="))
        .map(|line| format!("{line}\n"))
        .collect();
    let code = code_in_file("/etc/systemd/system/t.service", text.as_bytes()).unwrap();
    let found = argvs(&code);
    // A program with another name adds one line, and a doubled dollar sign becomes one.
    let found: Vec<_> = found.into_iter().filter(|argv| argv[0] != "/bin/busybox").collect();
    let undoubled = |words: &&[&str]| words.iter().map(|word| word.replace("$$", "$")).collect::<Vec<_>>();
    let expected: Vec<_> = shown.iter().filter(|words| !words.is_empty()).map(undoubled).collect();
    // `:` before a program keeps dollar signs as they are; that line has none.
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
        ("DynamicUser=yes\nExecStart=/bin/a", Some("dynamic:app")),
        ("user=ada\nExecStart=/bin/a", None),
    ];
    for (lines, expected) in table {
        assert_eq!(service(lines).lines[0].user.as_deref(), expected, "{lines}");
    }
}

#[test]
fn what_is_done_to_other_units_is_said_of_each() {
    let code = service(
        "ExecStart=/bin/a\n[Unit]\nWants=b.service\nConflicts=c.service shutdown.target\n[Install]\nAlso=app.socket",
    );
    let actions: Vec<_> =
        code.unit_actions.iter().map(|action| (action.verb, action.unit.as_str())).collect();
    let expected =
        [("start", "b.service"), ("stop", "c.service"), ("enable", "app.socket"), ("disable", "app.socket")];
    assert_eq!(actions, expected);
    assert_eq!(code.power, [""; 0]);
}

#[test]
fn drop_ins_count_each_for_itself() {
    let text = "[Service]\nUser=ada\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\\";
    let of = |drop_in: &str| {
        let code =
            code_in_unit("/etc/systemd/system/a.service", text.as_bytes(), &[drop_in.as_bytes().to_vec()]);
        code.unwrap().lines[0].user.clone()
    };
    assert_eq!(of("[Service]\nNice=5\n").as_deref(), Some("ada"));
    assert_eq!(of("[Service]\nUser=root\n"), None);
    assert_eq!(of("[Unit]\nUser=root\n").as_deref(), Some("ada"));
}

#[test]
fn a_text_that_systemds_read_differently_is_not_judged() {
    for (text, is_judged) in [
        ("User=ada\n# why\nExecStart=/bin/a", true),
        ("#\\\nUser=ada\nExecStart=/bin/a", false),
        ("User=ada\nExecStart=/bin/a \\\n; +/bin/b", false),
        ("User=ada\nExecStart=/bin/a \\\n  b", true),
    ] {
        assert_eq!(service(text).unreadable.is_none(), is_judged, "{text}");
    }
}

#[test]
fn the_end_of_the_machine_does_not_wait_for_long() {
    for (line, asks) in [
        ("TimeoutStopSec=20", false),
        ("TimeoutStopSec=1min 30s", false),
        ("TimeoutSec=5min", false),
        ("TimeoutStopSec=infinity", true),
        ("TimeoutStopSec=0", true),
        ("TimeoutStopSec=11min", true),
        ("TimeoutStopSec=1h", true),
        ("TimeoutAbortSec=x", true),
        ("SendSIGKILL=no", true),
        ("FinalKillSignal=SIGTERM", true),
    ] {
        assert_eq!(!service(&format!("User=ada\n{line}")).power.is_empty(), asks, "{line}");
    }
}

#[test]
fn a_dynamic_user_has_the_name_of_its_unit() {
    for (name, user) in [
        ("root.service", "dynamic:root"),
        ("root@.service", "dynamic:root"),
        ("a-b@c@d.service", "dynamic:a-b"),
        ("a.b.service", "dynamic:a.b"),
        ("@.service", "dynamic:"),
    ] {
        let text = "[Service]\nDynamicUser=yes\nExecStart=/bin/a\n";
        let code = code_in_file(&format!("/etc/systemd/system/{name}"), text.as_bytes()).unwrap();
        assert_eq!(code.lines[0].user.as_deref(), Some(user), "{name}");
    }
}

#[test]
fn a_signal_to_the_units_own_process_is_nothing_to_say() {
    let table = [
        ("/bin/kill -HUP $MAINPID", true),
        ("/usr/bin/kill -s HUP ${MAINPID}", true),
        ("-/bin/kill $MAINPID", true),
        ("/bin/kill -9 1", false),
        ("/bin/kill -9 1 $MAINPID", false),
        ("/bin/kill -- -1 $MAINPID", false),
        ("/bin/kill -HUP $OTHER", false),
        ("/opt/kill -HUP $MAINPID", false),
    ];
    for (command, says_nothing) in table {
        assert_eq!(service(&format!("ExecReload={command}")).lines.is_empty(), says_nothing, "{command}");
    }
    assert!(!service("Environment=MAINPID=1\nExecReload=/bin/kill -HUP $MAINPID").lines.is_empty());
}

#[test]
fn settings_are_judged_by_the_commands_with_the_most_rights() {
    let settings = [
        "Environment=BASH_ENV=/x",
        "EnvironmentFile=-/srv/q",
        "PassEnvironment=LD_PRELOAD",
        "WorkingDirectory=/srv",
        "LimitCORE=infinity",
        "NoNewPrivileges=yes\nInaccessiblePaths=/etc/sudoers",
    ];
    for setting in settings {
        for (who, root, account) in [
            ("User=ada\nExecStart=/bin/a -mtime +30", 0, Some("ada")),
            ("DynamicUser=yes\nExecStart=/bin/a", 0, Some("dynamic:app")),
            ("User=ada\nExecStart=/bin/a \\; +/bin/b", 0, Some("ada")),
            ("User=ada\nExecStart=/bin/a\nExecStartPre=+/bin/b", 1, None),
            ("User=ada\nExecStart=/bin/a ; -!/bin/b", 1, None),
            ("DynamicUser=yes\nExecStart=/bin/a\nExecStop=\"@!!/bin/b\" b", 1, None),
            ("ExecStart=/bin/a", 1, None),
        ] {
            let code = service(&format!("{who}\n{setting}"));
            let accounts: Vec<_> = code.account_power.iter().map(|power| power.account.as_str()).collect();
            assert_eq!(code.power.len(), root, "{who} {setting}: {code:?}");
            assert_eq!(accounts, account.into_iter().collect::<Vec<_>>(), "{who} {setting}: {code:?}");
        }
    }
    // Root would signal whatever process another account names.
    assert!(!service("User=ada\nExecReload=+/bin/kill -KILL $MAINPID").lines.is_empty());
    let many: String = (0..100).map(|number| format!("Environment=A{number}=x\n")).collect();
    assert!(service(&format!("User=ada\n{many}ExecStart=/bin/a")).unreadable.is_none());
}

#[test]
fn what_comes_before_others_is_said_and_closes_no_cycle() {
    let of = |name: &str, text: &str| {
        code_in_file(&format!("/etc/systemd/system/{name}"), text.as_bytes()).unwrap()
    };
    for (name, text, asks, delayed) in [
        ("a.service", "[Unit]\nBefore=b.service c.service", false, &["b.service", "c.service"][..]),
        ("a.service", "[Unit]\nAfter=network-online.target\nBefore=b.service", false, &["b.service"]),
        ("a.service", "[Unit]\nBefore=multi-user.target shutdown.target", false, &[]),
        ("a.service", "[Unit]\nAfter=b.service multi-user.target\n[Install]\nWantedBy=c.service", false, &[]),
        ("a.service", "[Unit]\nAfter=d.service\nBefore=shutdown.target", false, &[]),
        ("a.service", "[Unit]\nAfter=multi-user.target\nBefore=cron.service", true, &[]),
        ("a.service", "[Unit]\nBefore=b.service\nAfter=z0x0.slice", true, &[]),
        ("a.service", "[Unit]\nAfter=%i.service\nBefore=b.service", true, &[]),
        ("a.service", "[Unit]\nBefore=sysinit.target", true, &[]),
        ("a.target", "[Unit]\nWants=c.service\nBefore=b.service", true, &[]),
        ("a.service.d/x.conf", "[Unit]\nBefore=b.service", true, &[]),
    ] {
        let code = of(name, text);
        let actions = code.unit_actions.iter().filter(|action| action.verb == DELAY);
        let actions: Vec<_> = actions.map(|action| action.unit.as_str()).collect();
        assert_eq!((!code.power.is_empty(), &actions[..]), (asks, delayed), "{text}: {code:?}");
    }
}

#[test]
fn starting_a_unit_with_power_gives_power_and_is_a_start_as_well() {
    for (name, text, verb, started) in [
        ("a.service", "[Unit]\nWants=debug-shell.service", "start", "debug-shell.service"),
        ("a.timer", "[Timer]\nOnCalendar=daily\nUnit=reboot.target", TRIGGER, "reboot.target"),
        ("systemd-poweroff.timer", "[Timer]\nOnCalendar=daily", TRIGGER, "systemd-poweroff.service"),
    ] {
        let code = code_in_file(&format!("/etc/systemd/system/{name}"), text.as_bytes()).unwrap();
        let is_start = |action: &&crate::text::UnitAction| (action.verb, &*action.unit) == (verb, started);
        assert!(code.unit_actions.iter().any(|action| is_start(&action)), "{name}: {:?}", code.unit_actions);
        assert!(code.power.iter().any(|said| said.contains(started)), "{name}: {:?}", code.power);
    }
}

#[test]
fn what_a_timer_or_a_path_starts_comes_after_it() {
    for (name, text, started, waits) in [
        ("a.timer", "[Timer]\nOnCalendar=daily\nUnit=b.service", "b.service", false),
        ("a.timer", "[Timer]\nOnCalendar=daily", "a.service", false),
        ("a.path", "[Path]\nPathExists=/srv/x", "a.service", false),
        (
            "a.path",
            "[Unit]\nAfter=local-fs.target\n[Path]\nPathExists=/srv/x\nUnit=b.service",
            "b.service",
            false,
        ),
        ("a.path", "[Unit]\nAfter=multi-user.target\n[Path]\nUnit=b.service", "b.service", true),
        ("a.timer", "[Unit]\nAfter=time-sync.target c.service\n[Timer]\nUnit=b.service", "b.service", true),
        ("a.timer", "[Unit]\nAfter=time-sync.target\n[Timer]\nUnit=b.service", "b.service", false),
        // These come after paths.target, which comes after every path.
        ("a.path", "[Unit]\nAfter=time-sync.target\n[Path]\nUnit=b.service", "b.service", true),
        ("a.path", "[Unit]\nAfter=basic.target\n[Path]\nUnit=b.service", "b.service", true),
        ("a.path", "[Unit]\nAfter=sysinit.target\n[Path]\nUnit=b.service", "b.service", false),
    ] {
        let code = code_in_file(&format!("/etc/systemd/system/{name}"), text.as_bytes()).unwrap();
        let is_trigger =
            |action: &&crate::text::UnitAction| (action.verb, &*action.unit) == (TRIGGER, started);
        assert!(
            code.unit_actions.iter().any(|action| is_trigger(&action)),
            "{text}: {:?}",
            code.unit_actions
        );
        assert_eq!(code.power.iter().any(|said| said.contains("After=")), waits, "{text}: {:?}", code.power);
    }
    // People come in by these, so nothing may have them wait.
    for (name, text) in [
        ("ssh.timer", "[Timer]\nOnCalendar=daily"),
        ("a.timer", "[Timer]\nOnCalendar=daily\nUnit=sshd.service"),
        ("a.path", "[Path]\nPathExists=/srv/x\nUnit=systemd-logind.service"),
    ] {
        let code = code_in_file(&format!("/etc/systemd/system/{name}"), text.as_bytes()).unwrap();
        assert!(
            code.power.iter().any(|said| said.contains("wait for it")),
            "{name} {text}: {:?}",
            code.power
        );
    }
    // Sockets come before sockets.target, as paths do before theirs.
    for (after, waits) in [("basic.target", true), ("network-online.target", true), ("sysinit.target", false)]
    {
        let text = format!("[Unit]\nAfter={after}\n[Socket]\nListenStream=/run/a.sock");
        let code = code_in_file("/etc/systemd/system/a.socket", text.as_bytes()).unwrap();
        assert_eq!(code.power.iter().any(|said| said.contains("After=")), waits, "{after}: {:?}", code.power);
    }
    // Drop-ins of a timer let it wait as well.
    let drop_in = b"[Unit]\nAfter=multi-user.target\n";
    let code = code_in_file("/etc/systemd/system/a.timer.d/x.conf", drop_in).unwrap();
    assert!(code.power.iter().any(|said| said.contains("After=")), "{:?}", code.power);
}

#[test]
fn a_socket_names_what_it_starts() {
    for (text, started) in [
        ("ListenStream=5555", "a.service"),
        ("ListenStream=5555\nService=b.service", "b.service"),
        ("ListenStream=5555\nAccept=yes", "a@0.service"),
        ("ListenStream=5555\nAccept=no", "a.service"),
    ] {
        let code =
            code_in_file("/etc/systemd/system/a.socket", format!("[Socket]\n{text}\n").as_bytes()).unwrap();
        let actions: Vec<_> =
            code.unit_actions.iter().map(|action| (action.verb, action.unit.as_str())).collect();
        assert_eq!(actions, [(HAND_OVER, started)], "{text}");
    }
}

#[test]
fn the_end_of_a_unit_has_few_commands_and_is_not_put_off_by_each_of_its_processes() {
    let stops = |count: usize| "ExecStop=/bin/sleep 590\n".repeat(count);
    for (lines, asks) in [
        (stops(5), false),
        (stops(6), true),
        (format!("ExecStop={}", ["/bin/sleep 590"; 6].join(" ; ")), true),
        (format!("{}ExecStopPost=/bin/true", stops(5)), true),
        ("NotifyAccess=main".to_owned(), false),
        ("NotifyAccess=all".to_owned(), true),
        ("NotifyAccess=exec".to_owned(), true),
    ] {
        assert_eq!(!service(&format!("User=ada\n{lines}")).power.is_empty(), asks, "{lines}");
    }
}

#[test]
fn a_template_uses_its_instance_with_somebodys_rights() {
    use InstanceForm::{Path, Plain, Unescaped};
    let root = |form| InstanceUse { account: None, form };
    let ada = |form| InstanceUse { account: Some("ada".to_owned()), form };
    for (text, expected) in [
        ("[Unit]\nDescription=%I\n[Service]\nExecStart=/bin/cat /srv/%I", vec![root(Unescaped)]),
        ("[Service]\nUser=ada\nEnvironment=T=%i\nExecStart=/bin/cat %f", vec![ada(Plain), ada(Path)]),
        ("[Service]\nUser=ada\nExecStart=/bin/a\nExecStartPre=+/bin/rm -r %f", vec![root(Path)]),
        ("[Service]\nUser=ada\nEnvironmentFile=/etc/%I\nExecStart=/bin/a", vec![root(Unescaped)]),
        ("[Service]\nUser=ada\nExecStart=/bin/a\n[X-Own]\nA=%f", vec![]),
    ] {
        assert_eq!(instance_uses("/etc/systemd/system/a@.service", text, &[]), expected, "{text}");
    }
    let drop_in = "[Service]\nUser=root\n";
    let uses = instance_uses("/x/a@.service", "[Service]\nUser=ada\nExecStart=/bin/a %I", &[drop_in]);
    assert_eq!(uses, [root(Unescaped)]);
}

#[test]
fn every_kind_of_unit_has_its_commands() {
    let table: [(&str, &str, &[&str]); 4] = [
        ("a.socket", "[Socket]\nExecStartPre=/bin/a b", &["/bin/a", "b"]),
        ("a.service", "[Service]\nExecCondition=/bin/a\\\n; b\n\tc", &["/bin/a", "c"]),
        ("a.service", "\u{feff}[Service]\r\nExecStart=/bin/a b\r\n", &["/bin/a", "b"]),
        ("a.service", "[Service]\rExecStart=/bin/a", &["/bin/a"]),
    ];
    for (name, text, expected) in table {
        let code = code_in_file(&format!("/etc/systemd/system/{name}"), text.as_bytes()).unwrap();
        assert_eq!(argvs(&code), [expected], "{text}");
    }
    let code =
        code_in_file("/etc/systemd/system/a.service.d/x.conf", b"[Service]\nExecStart=\nExecStart=/bin/a")
            .unwrap();
    assert_eq!((argvs(&code), code.lines[0].at.as_str()), (vec![vec!["/bin/a"]], "ExecStart, line 3"));
}

#[test]
fn what_a_key_gives_is_said_with_its_line() {
    let table = [
        (
            "a.service",
            "StandardOutput=append:/etc/cron.d/x",
            "sets StandardOutput=append:/etc/cron.d/x, and not to what is known to be harmless",
        ),
        (
            "a.service",
            "RuntimeDirectory=systemd/system",
            "makes directories as root, gives them to an account, or removes them",
        ),
        ("a.service", "Evil=x", "sets `Evil`, which isn't known to be harmless, Evil, line 2"),
        (
            "a.service",
            "Environment=LD_PRELOAD=/x.so",
            "sets LD_PRELOAD=/x.so for what runs as root, Environment, line 2",
        ),
        ("a.service", "User=%U", "runs as who `%U` turns out to be"),
        ("a.service", "Wants=debug-shell.service", "pulls in debug-shell.service (Wants=)"),
        (
            "a.service",
            "Also=debug-%i.service",
            "is enabled and disabled together with debug-%i.service (Also=)",
        ),
        (
            "a.service",
            "Also=a.socket ufw.service",
            "is enabled and disabled together with ufw.service (Also=)",
        ),
        ("a.service", "Conflicts=ssh.service", "stops ssh.service (Conflicts=)"),
        ("a@.service", "ExecStart=/opt/%i", "which program that is"),
        ("nginx.service.d/a.conf", "User=ada", "changes whose rights nginx.service has (User=ada)"),
        ("ssh.service", "User=ada", "takes the place of ssh.service"),
    ];
    for (name, line, expected) in table {
        let path = format!("/etc/systemd/system/{name}");
        let code = code_in_file(&path, format!("[Service]\n{line}\n").as_bytes()).unwrap();
        assert!(code.power.iter().any(|said| said.contains(expected)), "{line}: {:?}", code.power);
    }
}

#[test]
fn a_file_of_variables_is_asked_about_for_an_account_and_given_to_nobody_else() {
    let code = service("User=ada\nEnvironmentFile=-/etc/default/app\nExecStart=/bin/a");
    assert_eq!(code.files, [("/etc/default/app".to_owned(), "EnvironmentFile, line 3".to_owned())]);
    assert!(code.power.is_empty());
    assert_eq!(service("EnvironmentFile=/etc/default/app").power.len(), 1);
}

/// The test also checks the keys of this machine's systemd, where it has one.
#[test]
fn every_key_of_the_installed_systemd_has_a_judgement() {
    let found = ["/usr/lib/systemd/systemd", "/lib/systemd/systemd"].into_iter().find_map(|systemd| {
        std::process::Command::new(systemd).arg("--dump-configuration-items").output().ok()
    });
    let dumped = match found {
        Some(output) if output.status.success() => String::from_utf8(output.stdout).unwrap(),
        // The recorded keys are checked in any case.
        _ => String::new(),
    };
    let recorded = include_str!("../fixtures/systemd252/configuration-items.txt");
    let keys = dumped.lines().chain(recorded.lines()).filter_map(|line| line.split_once('='));
    let unknown: Vec<&str> = keys.map(|(key, _)| key).filter(|key| keys::judgement(key).is_none()).collect();
    assert_eq!(unknown, [""; 0]);
}

#[test]
fn what_systemd_would_not_read_is_unreadable() {
    for lines in ["ExecStart=/bin/a 'b", "ExecStart", "ExecStart=+", "=", "ExecStart=-"] {
        let code = service(lines);
        assert!(code.unreadable.is_some() || lines == "=", "{lines}: {code:?}");
    }
}
