//! Tests sshds that allow less than most, and accounts with less than most. Calls work where they can, and otherwise
//! the error names the setting.

use linux_sysadmin_tests::{Lab, SFTP, Sshd};
use serde_json::{Value, json};

/// Asserts that everything works for which sessions are used: files, many commands at once, facts.
#[track_caller]
fn everything_works(lab: &Lab, host: &str) {
    lab.reaches("there", host);
    let commands: Vec<[String; 1]> = (0..12).map(|number| [number.to_string()]).collect();
    let (envelope, _) = lab.call("there", "parrot_repeat", &json!({"commands": commands}));
    let expected: Vec<String> = (0..12).map(|number| hex::encode(format!("{number}\0"))).collect();
    assert_eq!(envelope["data"]["stdout"], json!(expected), "{envelope}");
    let (session, _) = lab.call("there", "sysadmin_session_info", &json!({}));
    assert_eq!(session["data"]["distro"]["hostname"], lab.host(host).name(), "{session}");
}

#[track_caller]
fn says(envelope: &Value, texts: &[&str]) {
    let said = format!("{} {}", envelope["message"], envelope["remediation"]);
    for text in texts {
        assert!(said.contains(text), "{text}: {envelope}");
    }
}

/// Starts an sshd on bare1 with these settings, which runs until this is dropped.
fn with(lab: &Lab, settings: &str, lines: &str) -> Sshd {
    lab.other("bare1", settings, lines)
}

#[test]
fn everything_works_with_few_sessions_and_without_sftp() {
    let Some(lab) = Lab::with_parrot("everything_works_with_few_sessions_and_without_sftp") else { return };
    let sshd = with(&lab, "", "");
    let key = lab.key("key", "ed25519");
    lab.know(&format!("{} {}", sshd.known_as(), key.public()));
    let internal = "Subsystem sftp internal-sftp\n";
    for settings in [
        format!("{SFTP}MaxSessions 1\n"),
        format!("{SFTP}MaxSessions 2\n"),
        format!("{SFTP}MaxSessions 4\n"),
        "MaxSessions 1\n".to_owned(),
        String::new(),
        internal.to_owned(),
        format!("{internal}MaxSessions 2\n"),
        "Subsystem sftp /bin/false\n".to_owned(),
        "DisableForwarding yes\nPermitTTY no\nPermitUserRC no\n".to_owned(),
    ] {
        sshd.start(&[&key], &settings);
        sshd.hang_up();
        everything_works(&lab, "bare1");
    }
}

#[test]
fn an_account_for_one_command_is_said_to_be_one() {
    let Some(lab) = Lab::with_parrot("an_account_for_one_command_is_said_to_be_one") else { return };
    for (settings, expected) in [
        ("ForceCommand echo this is all there is\n", "ended with 0 and said: this is all there is"),
        ("Subsystem sftp internal-sftp\nForceCommand internal-sftp\n", "said: This service allows sftp"),
        ("ForceCommand exit 3\n", "ended with 3"),
    ] {
        let _sshd = with(&lab, settings, "");
        let (refused, _) = lab.call("there", "parrot_repeat", &json!({"commands": [["a"]]}));
        assert_eq!(refused["error_code"], "COMMANDS_REFUSED", "{refused}");
        says(&refused, &[expected, "ForceCommand"]);
    }
}

#[test]
fn an_account_without_a_home_is_an_account() {
    let Some(lab) = Lab::with_parrot("an_account_without_a_home_is_an_account") else { return };
    let host = lab.host("bare1");
    host.holds("userdel homeless; useradd --no-create-home --home-dir /nonexistent --shell /bin/sh homeless");
    let settings = "AuthorizedKeysFile /run/lab-sshd-2201/authorized\n";
    let sshd = with(&lab, settings, "  User homeless");
    sshd.put("authorized", &std::fs::read(lab.file("id_ed25519.pub")).expect("a key"));
    everything_works(&lab, "bare1");
    drop(sshd);
    host.run(&["userdel", "homeless"]);
}

#[test]
fn a_jump_that_forwards_nothing_is_named_with_its_setting() {
    let Some(lab) = Lab::with_parrot("a_jump_that_forwards_nothing_is_named_with_its_setting") else {
        return;
    };
    let _sshd = with(&lab, "AllowTcpForwarding no\n", "");
    let config = std::fs::read_to_string(lab.file("config")).expect("a configuration");
    lab.configure(&format!(
        "{config}Host behind\n  HostName {}\n  User root\n  ProxyJump there\n",
        lab.address("debian1")
    ));
    let refused = lab.misses("behind", "CONNECTION_FAILED");
    says(&refused, &["jump host", "not allowed there", "AllowTcpForwarding"]);
}

#[test]
fn a_server_that_wants_a_password_is_given_none_and_nobody_is_asked() {
    let test = "a_server_that_wants_a_password_is_given_none_and_nobody_is_asked";
    let Some(lab) = Lab::with_parrot(test) else { return };
    let sshd = with(
        &lab,
        "PubkeyAuthentication no\nPasswordAuthentication yes\nKbdInteractiveAuthentication yes\n",
        "",
    );
    let refused = lab.misses("there", "AUTHENTICATION_FAILED");
    says(&refused, &["password", "Keys are the only way"]);
    assert_eq!(refused["error_category"], "privilege", "{refused}");
    let log = sshd.logged("Killing privsep child");
    assert!(!log.contains("Failed password") && !log.contains("method password"), "{log}");
    // The program has a terminal at which it could ask.
    let bin = lab.program(&["call", "--host", "there", "parrot_read", "path=/etc/hostname"]);
    let line = format!("'{}' call --host there parrot_read path=/etc/hostname > seen", bin_of(&bin));
    let mut script = lab.command(&["script", "--quiet", "--return", "--command", &line, "/dev/null"]);
    for (name, value) in bin.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        script.env(name, value);
    }
    let output = script.output().expect("script(1)");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "what the terminal showed");
    let seen = std::fs::read_to_string(lab.home().path().join("seen")).expect("an answer");
    assert!(seen.contains("AUTHENTICATION_FAILED"), "{seen}");
}

/// The path of the program in a command of the lab.
fn bin_of(command: &std::process::Command) -> String {
    let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
    args[args.iter().position(|arg| arg == "call").expect("a call") - 1].clone()
}

#[test]
fn where_one_try_is_all_the_first_key_decides() {
    let Some(lab) = Lab::with_parrot("where_one_try_is_all_the_first_key_decides") else { return };
    let wrong = lab.key("wrong", "ed25519");
    let right = lab.file("id_ed25519").display().to_string();
    let both = |first: &str, second: &str| {
        format!("  IdentitiesOnly yes\n  IdentityFile {first}\n  IdentityFile {second}")
    };
    let _sshd = with(&lab, "MaxAuthTries 1\n", &both(wrong.path(), &right));
    let refused = lab.misses("there", "AUTHENTICATION_FAILED");
    says(&refused, &["Too many authentication failures", wrong.path(), "1 more", "IdentitiesOnly"]);
    lab.configure_other("bare1", &both(&right, wrong.path()));
    lab.reaches("there", "bare1");
}
