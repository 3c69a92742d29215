//! Tests on a real host what the server does in system mode for a person, and what the person may not do to it.

use super::system_mode::{ACCOUNT, HOME, MODULES, OWN, PERSON, PROGRAM, Person, SERVE};
use linux_sysadmin_tests::at_terminal;
use serde_json::{Value, json};

#[test]
fn a_person_may_start_the_server_and_do_nothing_else_as_its_account() {
    let test = "a_person_may_start_the_server_and_do_nothing_else_as_its_account";
    let Some(person) = Person::with_system_mode(test) else { return };
    let as_account = ["sudo", "-n", "-u", ACCOUNT];
    for beyond in [
        &["/bin/sh"][..],
        &[PROGRAM],
        &[PROGRAM, "serve", "--modules", "/tmp/x"],
        &[PROGRAM, "--modules", "/tmp/x", "serve"],
        &[PROGRAM, "serve", ""],
        &[PROGRAM, "call", "perf_uptime"],
        &[PROGRAM, "modules", "add", "/tmp/x.wasm", "--yes"],
        &[PROGRAM, "audit", "show"],
        &[PROGRAM, "approve", "x"],
        &[PROGRAM, "system", "remove", "--yes"],
        &[OWN, "serve"],
        &["LINUX_SYSADMIN_CONFIG=/tmp/x", PROGRAM, "serve"],
        &["SUDO_UID=0", PROGRAM, "serve"],
        &["-E", PROGRAM, "serve"],
        &["--preserve-env=HOME", PROGRAM, "serve"],
        &["-g", "root", PROGRAM, "serve"],
        &["-D", "/tmp", PROGRAM, "serve"],
        &["-C", "10", PROGRAM, "serve"],
        &["-s"],
        &["-i"],
        &["-e", "/var/lib/linux-sysadmin/home/.config/linux-sysadmin/config.yaml"],
    ] {
        let (code, said) = person.tries(&[&as_account, beyond].concat());
        assert!(code == Some(1) && said.contains("sudo: "), "{beyond:?}: {code:?} {said}");
    }
    for as_other in [&["sudo", "-n", PROGRAM, "serve"][..], &["sudo", "-n", "-u", "admin", PROGRAM, "serve"]]
    {
        assert_eq!(person.tries(as_other).0, Some(1), "{as_other:?}");
    }

    let config = format!("{HOME}/.config/linux-sysadmin/config.yaml");
    let log = format!("{HOME}/.local/state/linux-sysadmin");
    for file in [
        HOME,
        &config,
        &log,
        &format!("{HOME}/.ssh"),
        "/etc/sudoers.d/linux-sysadmin_serve",
        "/etc/sudoers.d/linux-sysadmin-services",
    ] {
        person.0.sh(&format!("test -e {file}"));
        for command in ["cat", "ls -l", "touch", "rm -rf", "chmod 777"] {
            person.tries(&["sh", "-c", &format!("{command} {file}")]);
        }
        let (code, said) = person.tries(&["sh", "-c", &format!("cat {file} || ls {file}/")]);
        assert!(code != Some(0) && said.contains("Permission denied"), "{file}: {said}");
        person.0.sh(&format!("test -e {file}"));
    }
    for file in [PROGRAM, MODULES, "/var/lib/linux-sysadmin", "/var/lib/linux-sysadmin/system.json"] {
        let (code, _) =
            person.tries(&["sh", "-c", &format!("touch {file}/x || echo x >> {file} || mv {file} {file}.x")]);
        assert_ne!(code, Some(0), "{file}");
    }
    assert_eq!(person.not_right(0), []);
    // Without root's rights only a part can be seen.
    let (code, said) = person.tries(&[PROGRAM, "system", "status"]);
    assert!(code == Some(1) && said.contains("unknown") && !said.contains("WRONG"), "{said}");
    assert!(said.contains("to start the server, and no other"), "{said}");
    for refused in [["install", "--yes"], ["remove", "--yes"]] {
        let (code, said) = person.tries(&[&[PROGRAM, "system"], &refused[..]].concat());
        assert!(code == Some(1) && said.contains("takes root"), "{refused:?}: {said}");
    }
}

#[test]
fn nothing_that_the_client_sets_reaches_the_server() {
    let Some(person) = Person::with_system_mode("nothing_that_the_client_sets_reaches_the_server") else {
        return;
    };
    // A server that reads this configuration ends with code 2, and sudo keeps the variables that lead to it.
    person.0.sh(
        "set -e; mkdir -p /tmp/lsa-x/linux-sysadmin /tmp/lsa-x/.config/linux-sysadmin; chmod -R 777 /tmp/lsa-x\n\
         echo 'no: such option' | tee /tmp/lsa-x/config.yaml /tmp/lsa-x/linux-sysadmin/config.yaml \
         > /tmp/lsa-x/.config/linux-sysadmin/config.yaml\n\
         chmod -R a+rwX /tmp/lsa-x; find /tmp/lsa-x -name config.yaml -exec chmod a-w {} +\n\
         echo 'Defaults env_keep += \"HOME XDG_CONFIG_HOME XDG_STATE_HOME LINUX_SYSADMIN_CONFIG LINUX_SYSADMIN_MODULES\"' \
         > /etc/sudoers.d/lsa-keep",
    );
    let before = person.0.sh("find /tmp/lsa-x | sort");
    let variables = [
        "LINUX_SYSADMIN_CONFIG=/tmp/lsa-x/config.yaml",
        "LINUX_SYSADMIN_MODULES=/tmp/lsa-x",
        "HOME=/tmp/lsa-x",
        "XDG_CONFIG_HOME=/tmp/lsa-x",
        "XDG_STATE_HOME=/tmp/lsa-x",
        "XDG_CACHE_HOME=/tmp/lsa-x",
        "XDG_DATA_HOME=/tmp/lsa-x",
    ];
    // The person's own server does read it.
    let (code, said) = person.tries(&["env", variables[0], OWN, "serve"]);
    assert!(code == Some(2) && said.contains("no: such") || said.contains("unknown field"), "{said}");
    let root_becomes = ["runuser", "-u", ACCOUNT, "--", "env"];
    for variable in variables {
        let (code, said) = person.tries(&[&["env", variable], &SERVE[..]].concat());
        assert_eq!(code, Some(0), "{variable}: {said}");
        // The protection doesn't depend on sudo either.
        let argv = [&root_becomes, &[variable, PROGRAM, "serve"][..]].concat();
        let output = person.0.host().command(&argv).output().expect("xtask runs");
        assert_eq!(output.status.code(), Some(0), "{variable}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(person.0.sh("find /tmp/lsa-x | sort"), before, "nothing was written there");
}

#[tokio::test]
async fn the_server_acts_for_a_person_who_cannot_touch_it() {
    let test = "the_server_acts_for_a_person_who_cannot_touch_it";
    let Some(person) = Person::with_system_mode(test) else { return };
    let journal = "journalctl --sync; journalctl --cursor-file=/run/lsa-cursor -o cat";
    person.0.sh(&format!("set -e; rm -f /run/lsa-cursor; {journal} --lines=1"));
    let mut client = person.serve().await;
    let looks = client.envelope("perf_uptime", json!({})).await;
    assert_eq!(looks["status"], "success", "{looks}");
    let pid = person.0.sh("systemctl show --property=MainPID lsa-works");
    let acts = client.envelope("svc_restart", json!({"service": "lsa-works"})).await;
    assert_eq!(acts["status"], "success", "{acts}");
    assert_ne!(person.0.sh("systemctl show --property=MainPID lsa-works"), pid);
    person.0.nothing_is_left_behind();

    // sudo refuses the same command by hand.
    let (code, _) = person.tries(&["sudo", "-n", "systemctl", "restart", "--", "lsa-works"]);
    assert_eq!(code, Some(1));
    let server = person.0.sh("pgrep -u linux-sysadmin -x linux-sysadmin");
    let server = server.trim();
    let attach = "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, int(sys.argv[1]), 0, 0) != 0)";
    for touch in [
        &["kill", "-KILL", server][..],
        &["kill", "-STOP", server],
        &["cat", &format!("/proc/{server}/environ")],
        &["cat", &format!("/proc/{server}/mem")],
        &["ls", &format!("/proc/{server}/fd/")],
        &["python3", "-c", attach, server],
    ] {
        let (code, said) = person.tries(touch);
        assert_ne!(code, Some(0), "{touch:?}: {said}");
    }
    let environment = person.0.sh(&format!("tr '\\0' '\\n' < /proc/{server}/environ | cut -d= -f1 | sort"));
    assert_eq!(
        environment.split_whitespace().collect::<Vec<_>>(),
        ["HOME", "LOGNAME", "PATH", "SUDO_UID", "TERM", "USER"]
    );
    let said = person.system(1, PROGRAM, &["remove", "--purge", "--yes"]);
    assert!(said.contains("are running"), "{said}");
    let again = client.envelope("perf_uptime", json!({})).await;
    assert_eq!(again["status"], "success", "{again}");
    let (status, stderr) = client.close().await;
    assert_eq!((status.code(), stderr.contains("sudo")), (Some(0), false), "{stderr}");

    // The change is on record, and the journal, which that account can't change, has the heads of the log.
    person.0.sh(&format!(
        "set -e; {journal} -t linux-sysadmin _UID=$(id -u linux-sysadmin) > /run/lsa-heads; grep '^audit head ' /run/lsa-heads\n\
         sudo -u {ACCOUNT} {PROGRAM} audit verify --heads - < /run/lsa-heads"
    ));
}

#[tokio::test]
async fn what_everybody_may_read_is_read_without_sudo_and_the_rest_by_it() {
    let test = "what_everybody_may_read_is_read_without_sudo_and_the_rest_by_it";
    let Some(person) = Person::with_system_mode(test) else { return };
    let journal = "journalctl --sync; journalctl --cursor-file=/run/lsa-cursor --identifier=sudo -o cat";
    let (shown, kept) = ("/etc/lsa-shown/a.conf", "/etc/sudoers.d/lsa-kept");
    person.0.sh(&format!(
        "set -e; mkdir -p /etc/lsa-shown; echo '# shown' > {shown}; echo '# kept' > {kept}; chmod 440 {kept}\n\
         rm -f /run/lsa-cursor; {journal} --lines=1"
    ));
    let mut client = person.serve().await;
    for (file, contents) in [(shown, "# shown"), (kept, "# kept")] {
        let read = client.envelope("file_read", json!({"path": file})).await;
        assert!(read.to_string().contains(contents), "{read}");
    }
    let taken = person.0.sh(&format!("{journal}; rm -r /etc/lsa-shown {kept}"));
    let commands: Vec<&str> =
        taken.lines().filter_map(|line| line.split_once("USER=root ; COMMAND=")).map(|(_, it)| it).collect();
    let is_read = |command: &&str| command.contains("/dd if=/etc/sudoers.d/lsa-kept ");
    assert!(commands.len() == 1 && commands.iter().all(is_read), "{commands:#?}");
    client.close().await;
}

#[tokio::test]
async fn what_is_critical_is_for_root_to_approve_and_never_for_the_person() {
    let test = "what_is_critical_is_for_root_to_approve_and_never_for_the_person";
    let Some(person) = Person::with_system_mode(test) else { return };
    let mut client = person.serve().await;
    let stop = json!({"service": "ufw"});
    let is_active = || person.0.sh("systemctl is-active ufw || true").trim().to_owned();
    assert_eq!(is_active(), "active");
    let asked = client.envelope("svc_stop", stop.clone()).await;
    assert_eq!(asked["status"], "confirmation_required", "{asked}");
    assert_eq!(
        (&asked["risk_level"], &asked["confirmation"]["way"]),
        (&json!("critical"), &json!("terminal"))
    );
    let id = asked["confirmation"]["id"].as_str().expect("an id").to_owned();

    // The person who asks can neither see the waiting call nor decide it.
    let mut confirmed = stop.clone();
    confirmed["confirmed"] = json!(true);
    let confirmed = client.envelope("svc_stop", confirmed).await;
    assert_ne!(confirmed["status"], "success", "{confirmed}");
    let (_, said) = person.tries(&[PROGRAM, "pending", "--json"]);
    assert!(!said.contains(&id), "{said}");
    let approve = format!("{PROGRAM} approve {id}");
    let of_person = |script: &str| person.0.host().command_as(PERSON, &[script]);
    let (code, seen) = at_terminal(of_person, &approve, "", "type", "localhost\n");
    assert_eq!(code, Some(1), "{seen}");
    for tries in [
        &["sudo", "-n", PROGRAM, "approve", &id][..],
        &["sudo", "-n", "-u", ACCOUNT, PROGRAM, "approve", &id],
        &["sudo", "-n", "-u", ACCOUNT, PROGRAM, "pending"],
    ] {
        let (code, said) = person.tries(tries);
        assert_eq!(code, Some(1), "{tries:?}: {said}");
    }
    assert_eq!(is_active(), "active");

    // Any account could write over what root reads.
    let of_root = |script: &str| person.0.host().command(&["sudo", script]);
    for logger in ["/etc/rsyslog.d/lsa.conf", "/etc/syslog-ng/conf.d/lsa.conf"] {
        let lines = r#"*.emerg :omusrmsg:*\ndestination d { usertty("*"); };\n"#;
        person.0.sh(&format!("mkdir -p $(dirname {logger}); printf '{lines}' > {logger}"));
        let (code, seen) = at_terminal(of_root, &approve, "", "not approved", "");
        assert!(code == Some(1) && seen.contains(logger), "{seen}");
        person.0.sh(&format!("rm {logger}"));
    }
    assert_eq!(is_active(), "active");

    // Root decides by sudo, after seeing the whole plan, and types the target's name.
    let (code, seen) = at_terminal(of_root, &approve, "", "type the name", "localhost\n");
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("systemctl stop -- ufw.service") && seen.contains("approved"), "{seen}");
    let outcome = client.envelope("svc_stop", stop).await;
    assert_eq!(outcome["status"], "success", "{outcome}");
    assert_eq!(is_active(), "inactive");
    person.0.sh("systemctl start ufw");
    let audit = format!("sudo -u {ACCOUNT} {PROGRAM} audit export | grep change-begun");
    let begun: Value = serde_json::from_str(person.0.sh(&audit).trim()).expect("JSON");
    let by = &begun["decided_by"]["terminal"];
    assert_eq!((&by["uid"], &by["account"]), (&json!(0), &json!("root")), "{begun}");
    client.close().await;
}

#[tokio::test]
async fn any_program_runs_only_where_roots_configuration_says_so_and_never_by_sudo() {
    let test = "any_program_runs_only_where_roots_configuration_says_so_and_never_by_sudo";
    let Some(person) = Person::with_system_mode(test) else { return };
    let fragments = || person.0.sh("cd /etc/sudoers.d && ls -A | grep linux-sysadmin | xargs sha256sum");
    let before = fragments();
    assert!(before.contains("linux-sysadmin-services") && !before.contains("commands"), "{before}");

    // The tool is neither listed nor called, and the answer says why.
    let looks = json!({"argv": ["uname", "--kernel-name"]});
    let mut client = person.serve().await;
    let listed = client.request("tools/list", json!({})).await.to_string();
    assert!(listed.contains("svc_status") && !listed.contains("command_run"), "{listed}");
    let refused = client.call("command_run", looks.clone()).await;
    let message = refused["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
    for word in ["commands", "isn't used", "modules.any_program of the configuration"] {
        assert!(message.contains(word), "{word}: {message}");
    }
    client.close().await;

    // The person can't write the configuration, and root can.
    let config = format!("{HOME}/.config/linux-sysadmin/config.yaml");
    let own = format!("printf 'modules:\\n  any_program: [commands]\\n' > {config}");
    assert_ne!(person.tries(&["sh", "-c", &own]).0, Some(0));
    person.0.sh(&own);
    let mut client = person.serve().await;
    let looked = client.envelope("command_run", looks).await;
    assert_eq!(looked["data"]["commands"][0]["stdout"], "Linux\n", "{looked}");
    // sudo allows nothing more than before, also after a new installation.
    let as_root = json!({"argv": ["cat", "/etc/hosts"], "as_root": true});
    let as_root = client.envelope("command_run", as_root).await;
    assert_eq!(as_root["error_category"], "privilege", "{as_root}");
    client.close().await;
    person.system(0, PROGRAM, &["install", "--for", PERSON, "--yes"]);
    assert_eq!(fragments(), before);
    assert_eq!(person.not_right(0), []);
}
