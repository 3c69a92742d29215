//! The tools against recordings of OpenSSH 9.2p1 (Debian 12), see `tests/data/ssh/README.md`.

use linux_sysadmin_sdk::accounts::logins::Logins;
use linux_sysadmin_sdk::bindings::sysadmin::module::confirm;
use linux_sysadmin_sdk::testkit::FakeTarget;
use linux_sysadmin_sdk::{Metadata, Step, prelude::*};
use serde_json::{Value, json};

use crate::module;

const FRESH: &str = include_str!("../../tests/data/ssh/debian12.txt");
const WEAK: &str = include_str!("../../tests/data/ssh/weak.txt");
const KEX: &str = include_str!("../../tests/data/ssh/kex.txt");
const CIPHER: &str = include_str!("../../tests/data/ssh/cipher.txt");
const MAC: &str = include_str!("../../tests/data/ssh/mac.txt");
const KEY: &str = include_str!("../../tests/data/ssh/authorized_keys");

const MAIN: &str = "/etc/ssh/sshd_config";
const DROP_IN: &str = "/etc/ssh/sshd_config.d/00-linux-sysadmin.conf";
const DEBIAN: &str = "Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\n";
const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
    nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n\
    ada:x:1000:1000:Ada:/home/ada:/bin/bash\nbob:x:1001:1001:Bob:/home/bob:/bin/bash\n";
const UNITS: [&str; 8] = [
    "systemctl",
    "show",
    "--property=Id,ActiveState",
    "--",
    "ssh.service",
    "sshd.service",
    "ssh.socket",
    "sshd.socket",
];

fn settings_of(account: &str) -> String {
    format!("user={account},host=192.0.2.1,addr=192.0.2.1")
}

/// What systemd says of a machine whose sshd runs. Debian has two names of its unit.
const RUNNING: &str = "Id=ssh.service\nActiveState=active\n\nId=ssh.service\nActiveState=active\n\n\
    Id=ssh.socket\nActiveState=inactive\n\nId=sshd.socket\nActiveState=inactive\n";

/// A machine that ada has reached over SSH, who may do everything by sudo, with these settings for each account.
fn machine(settings: &[(&str, &str)]) -> FakeTarget {
    machine_with(RUNNING, settings)
}

/// The same with these states of sshd's units.
fn machine_with(units: &str, settings: &[(&str, &str)]) -> FakeTarget {
    let mut target = FakeTarget::new()
        .account("ada")
        .file(MAIN, DEBIAN)
        .file("/etc/sudoers", "root ALL=(ALL:ALL) ALL\n%sudo ALL=(ALL:ALL) NOPASSWD: ALL\n")
        .file("/home/ada/.ssh/authorized_keys", KEY)
        .metadata("/home/ada/.ssh/authorized_keys", metadata("ada", 0o600))
        .metadata("/home/ada/.ssh", Metadata { is_dir: true, ..metadata("ada", 0o700) })
        .answer(&["getent", "passwd"], 0, PASSWD, "")
        .answer(&["getent", "group"], 0, "root:x:0:\nsudo:x:27:ada\nada:x:1000:\n", "")
        .answer(&["stat", "--format=%a:%U", "--", "/home/ada"], 0, "755:ada\n", "")
        .answer(&["ssh", "-Q", "kex"], 0, KEX, "")
        .answer(&["ssh", "-Q", "cipher"], 0, CIPHER, "")
        .answer(&["ssh", "-Q", "mac"], 0, MAC, "")
        .answer(&UNITS, 0, units, "");
    target.distro.sudo_available = true;
    target.distro.extra.push(("ssh_client".to_owned(), "192.0.2.1".to_owned()));
    for account in ["root", "ada", "nobody"] {
        let own = settings.iter().find(|(name, _)| *name == account).or(settings.first());
        target = target.answer(&["sshd", "-T", "-C", &settings_of(account)], 0, own.unwrap().1, "");
    }
    target
}

fn metadata(owner: &str, mode: u32) -> Metadata {
    Metadata {
        size: 0,
        mode,
        owner: owner.to_owned(),
        group: owner.to_owned(),
        modified_unix: 0,
        is_dir: false,
        is_symlink: false,
    }
}

fn check(target: FakeTarget) -> Value {
    target.call(&module(), "sec_check_ssh", json!({})).unwrap().0
}

fn kinds(checked: &Value) -> Vec<&str> {
    let findings = checked["findings"].as_array();
    findings.into_iter().flatten().map(|finding| finding["kind"].as_str().unwrap()).collect()
}

type Hardened = (Result<(Value, Vec<String>)>, Vec<Change>);

fn harden(target: FakeTarget, actions: &[&str]) -> Hardened {
    let plans = target.plans();
    let said = target.call(&module(), "sec_harden_ssh", json!({"actions": actions}));
    let plans = plans.borrow().clone();
    (said.map(|(data, reply)| (data, reply.notes)), plans)
}

fn refused(target: FakeTarget, actions: &[&str]) -> Problem {
    let (said, plans) = harden(target, actions);
    assert!(plans.is_empty(), "{plans:?}");
    said.unwrap_err()
}

#[test]
fn a_fresh_installation_has_no_finding_and_the_actions_that_would_harden_it() {
    let checked = check(machine(&[("", FRESH)]));
    assert_eq!(kinds(&checked), Vec::<&str>::new(), "{checked}");
    assert_eq!(checked["held_back"], Value::Null, "{checked}");
    // Neither empty passwords nor weak ciphers are among what this sshd allows as it is installed.
    assert_eq!(
        checked["recommended_actions"],
        json!([
            "disable_root_login",
            "disable_password_auth",
            "restrict_key_exchange",
            "restrict_macs",
            "set_max_auth_tries",
            "disable_x11_forwarding",
            "set_login_grace_time",
            "disable_agent_forwarding"
        ])
    );
}

#[test]
fn every_weak_setting_is_found_and_those_that_can_be_hardened_say_how() {
    let checked = check(machine(&[("", WEAK)]));
    let mut found = kinds(&checked);
    found.sort_unstable();
    let rules = include_str!("weaknesses.yaml");
    let mut all: Vec<&str> = rules.lines().filter_map(|line| line.strip_prefix("- kind: ")).collect();
    all.sort_unstable();
    assert_eq!(found, all, "{checked}");
    let first = &checked["findings"][0];
    assert_eq!((&first["kind"], &first["severity"]), (&json!("ssh-empty-passwords"), &json!("critical")));
    assert_eq!(first["subjects"], json!(["PermitEmptyPasswords yes"]));
    assert_eq!(
        first["mend"],
        json!({"tool": "sec_harden_ssh", "arguments": {"actions": ["disable_empty_passwords"]}})
    );
}

#[test]
fn a_match_block_that_is_weak_for_one_account_names_it() {
    let weak = FRESH.replace("permitemptypasswords no", "permitemptypasswords yes");
    let main = format!("{DEBIAN}Match User ada\nPermitEmptyPasswords yes\n");
    let checked = check(machine(&[("root", FRESH), ("ada", weak.as_str())]).file(MAIN, main));
    let evidence = checked["findings"][0]["evidence"].as_str().unwrap();
    assert!(evidence.ends_with(", set at /etc/ssh/sshd_config:4"), "{evidence}");
    assert_eq!(checked["findings"][0]["subjects"], json!(["PermitEmptyPasswords yes for ada"]));
}

#[test]
fn a_match_block_for_the_address_in_use_counts_and_is_placed() {
    // sshd prints the settings for the address that the connection comes from, and for no other one.
    let weak = FRESH.replace("permitemptypasswords no", "permitemptypasswords yes");
    let main =
        format!("{DEBIAN}PermitEmptyPasswords no\nMatch Address 192.0.2.0/24\nPermitEmptyPasswords yes\n");
    let (data, reply) =
        machine(&[("", weak.as_str())]).file(MAIN, main).call(&module(), "sec_check_ssh", json!({})).unwrap();
    assert_eq!(data["findings"][0]["subjects"], json!(["PermitEmptyPasswords yes"]));
    let evidence = data["findings"][0]["evidence"].as_str().unwrap();
    assert!(evidence.ends_with(", set at /etc/ssh/sshd_config:5"), "{evidence}");
    assert!(reply.summary.unwrap().contains("192.0.2.1"));
}

#[test]
fn a_machine_on_which_nobody_who_logs_in_may_become_root_is_looked_at_as_for_anybody() {
    let passwd = PASSWD.replace("root:/bin/bash", "root:/usr/sbin/nologin");
    let target = machine(&[("", WEAK)]).transcript(&format!("$ getent passwd\n[exit 0]\n{passwd}"));
    let target = target.file("/etc/sudoers", "root ALL=(ALL:ALL) ALL\n");
    assert!(kinds(&check(target)).contains(&"ssh-empty-passwords"));
}

#[test]
fn what_programs_print_in_another_form_is_neither_weak_nor_well() {
    let huge = "x y\n".repeat(300_000);
    for text in ["", "Fehler: alles anders\n", "\u{fffd}\0\n", huge.as_str()] {
        let code = |target: FakeTarget| target.call(&module(), "sec_check_ssh", json!({})).unwrap_err().code;
        let of_sshd = code(machine(&[("", text)]));
        let of_getent =
            code(machine(&[("", FRESH)]).transcript(&format!("$ getent passwd\n[exit 0]\n{text}")));
        let expected = if text.len() > 1 << 20 { "OUTPUT_TOO_LARGE" } else { "UNEXPECTED_OUTPUT" };
        assert_eq!((of_sshd.as_str(), of_getent.as_str()), (expected, expected), "{text:.20}");
        // sshd's list of algorithms: none of them is one that counts as strong.
        let list = machine(&[("", FRESH)]).transcript(&format!("$ ssh -Q mac\n[exit 0]\n{text}"));
        let expected = if text.len() > 1 << 20 { "OUTPUT_TOO_LARGE" } else { "NO_STRONG_ALGORITHM" };
        assert_eq!(refused(list, &["restrict_macs"]).code, expected, "{text:.20}");
    }
    // Where systemctl says nothing of sshd's units, nothing is reloaded, and a note tells it.
    for text in ["", "Einheit ssh.service wurde nicht gefunden.\n"] {
        let (said, plans) = harden(machine_with(text, &[("", FRESH)]), &["set_max_auth_tries"]);
        assert!(said.unwrap().1.iter().any(|note| note.starts_with("sshd's unit isn't active")), "{text}");
        assert_eq!(plans[0].steps().len(), 2, "{text}");
    }
}

#[test]
fn an_argument_is_refused_before_anything_runs_and_a_broken_configuration_before_everything_else() {
    // Nothing is recorded, so that any command would be another problem.
    for (arguments, code) in [
        (json!({"actions": []}), "NO_ACTIONS"),
        (json!({"actions": ["disable_everything"]}), "INVALID_ARGUMENTS"),
        (json!({"actions": "set_max_auth_tries"}), "INVALID_ARGUMENTS"),
        (json!({"actions": [3]}), "INVALID_ARGUMENTS"),
        (json!({}), "INVALID_ARGUMENTS"),
    ] {
        let problem = FakeTarget::new().call(&module(), "sec_harden_ssh", arguments.clone()).unwrap_err();
        assert_eq!(problem.code, code, "{arguments}");
    }
    // root is in use, no key opens an account, and /etc/ssh is a link: what sshd can't read is said first.
    let said = "/etc/ssh/sshd_config: line 1: Bad configuration option: PermitRootLogn\n";
    let mut target = FakeTarget::new()
        .account("root")
        .answer(&["getent", "passwd"], 0, PASSWD, "")
        .answer(&["getent", "group"], 0, "", "")
        .metadata("/etc/ssh", Metadata { is_symlink: true, ..metadata("root", 0o777) });
    target.distro.extra.push(("ssh_client".to_owned(), "192.0.2.1".to_owned()));
    for account in ["root", "nobody"] {
        target = target.answer(&["sshd", "-T", "-C", &settings_of(account)], 255, "", said);
    }
    let problem = refused(target, &["disable_root_login", "disable_password_auth"]);
    assert_eq!(problem.code, "SSHD_CONFIG_INVALID", "{problem:?}");
    assert!(problem.message.contains("line 1: Bad configuration option"), "{problem:?}");
}

#[test]
fn a_configuration_that_sshd_cannot_read_is_the_finding_and_is_not_hardened() {
    // Messages of OpenSSH 9.2p1 for a wrong line, and for files that include each other.
    for said in [
        "/etc/ssh/sshd_config: line 1: Bad configuration option: PermitRootLogn\n\
         /etc/ssh/sshd_config: terminating, 1 bad configuration options\n",
        "Too many recursive configuration includes\n",
    ] {
        let broken = || {
            let target = FakeTarget::new().account("root");
            let target =
                target.answer(&["getent", "passwd"], 0, PASSWD, "").answer(&["getent", "group"], 0, "", "");
            ["root", "nobody"].into_iter().fold(target, |target, account| {
                let argv = format!("user={account},host=127.0.0.1,addr=127.0.0.1");
                target.answer(&["sshd", "-T", "-C", &argv], 255, "", said)
            })
        };
        let checked = check(broken());
        assert_eq!(kinds(&checked), ["ssh-config-invalid"], "{checked}");
        assert!(checked.to_string().contains(said.lines().next().unwrap()), "{checked}");
        let problem = refused(broken(), &["disable_x11_forwarding"]);
        assert_eq!(problem.code, "SSHD_CONFIG_INVALID", "{problem:?}");
    }
}

#[test]
fn without_sshd_or_without_roots_rights_the_answer_says_so() {
    let bare = || {
        FakeTarget::new().account("bob").answer(&["getent", "passwd"], 0, PASSWD, "").answer(
            &["getent", "group"],
            0,
            "",
            "",
        )
    };
    let (data, reply) = bare().without_program("sshd").call(&module(), "sec_check_ssh", json!({})).unwrap();
    assert_eq!(data, json!({"recommended_actions": []}));
    assert_eq!(reply.summary.as_deref(), Some("There is no sshd on this machine"));
    let fails = |said: &str| {
        ["root", "nobody"].into_iter().fold(bare(), |target, account| {
            let argv = format!("user={account},host=127.0.0.1,addr=127.0.0.1");
            target.answer(&["sshd", "-T", "-C", &argv], 1, "", said)
        })
    };
    // What an account without root's rights gets, on Debian and where only root may read the configuration.
    for said in ["sshd: no hostkeys available -- exiting.\n", "/etc/ssh/sshd_config: Permission denied\n"] {
        assert_eq!(refused(fails(said), &["set_max_auth_tries"]).code, "PRIVILEGE_REQUIRED", "{said}");
        let checked = check(fails(said));
        assert_eq!((kinds(&checked).len(), &checked["recommended_actions"]), (0, &json!([])), "{checked}");
        assert_eq!(checked["unseen"][0], "sshd tells its settings to root only", "{checked}");
    }
    let keys = "Unable to load host key: /none\nsshd: no hostkeys available -- exiting.\n";
    assert_eq!(kinds(&check(fails(keys))), ["ssh-config-invalid"]);
    let stopped = fails("Missing privilege separation directory: /run/sshd\n");
    assert_eq!(stopped.call(&module(), "sec_check_ssh", json!({})).unwrap_err().code, "SSHD_STOPPED");
}

#[test]
fn hardening_writes_checks_reloads_and_has_to_be_proven() {
    let all = [
        "disable_root_login",
        "disable_password_auth",
        "disable_empty_passwords",
        "restrict_key_exchange",
        "restrict_ciphers",
        "restrict_macs",
        "set_max_auth_tries",
        "disable_x11_forwarding",
        "set_login_grace_time",
        "disable_agent_forwarding",
    ];
    let settings = FRESH.replacen(",aes256-gcm@openssh.com\n", ",aes256-gcm@openssh.com,aes256-cbc\n", 1);
    let (said, plans) = harden(machine(&[("", settings.as_str())]), &all);
    let (data, notes) = said.unwrap();
    assert_eq!(data["file"], DROP_IN);
    assert_eq!(notes[0], "in force already: PermitEmptyPasswords", "{notes:?}");
    let text = "# Set by sec_harden_ssh of linux-sysadmin. sshd takes the first value of a keyword.\n\
        PermitRootLogin no\n\
        PasswordAuthentication no\n\
        KexAlgorithms sntrup761x25519-sha512,sntrup761x25519-sha512@openssh.com,curve25519-sha256,\
        curve25519-sha256@libssh.org,diffie-hellman-group18-sha512,diffie-hellman-group-exchange-sha256,\
        diffie-hellman-group16-sha512\n\
        Ciphers chacha20-poly1305@openssh.com,aes256-gcm@openssh.com,aes256-ctr,aes192-ctr,\
        aes128-gcm@openssh.com,aes128-ctr\n\
        MACs hmac-sha2-512-etm@openssh.com,hmac-sha2-256-etm@openssh.com,umac-128-etm@openssh.com\n\
        MaxAuthTries 3\nX11Forwarding no\nLoginGraceTime 60\nAllowAgentForwarding no\n";
    let run = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        Command::new(words[0]).args(words[1..].iter().copied()).as_root()
    };
    let [plan] = &plans[..] else { panic!("{plans:?}") };
    let write = Step::write(DROP_IN, text).mode(0o600).validate(run("sshd -t -f {}"));
    let reload = Step::run(run("systemctl reload -- ssh.service")).uninterruptible();
    assert_eq!(plan.steps(), [write, Step::run(run("sshd -t")), reload]);
    let shown = format!("{plan:?}");
    assert!(shown.contains("guard: Some(Guard { seconds: 30 })"), "{shown}");
    assert!(shown.contains("reload-or-restart"), "{shown}");
}

#[test]
fn a_new_login_proves_the_hardening_whatever_starts_sshd() {
    for (socket, is_told) in [("active", false), ("inactive", true)] {
        let units = RUNNING
            .replace("ActiveState=active", "ActiveState=inactive")
            .replace("Id=ssh.socket\nActiveState=inactive", &format!("Id=ssh.socket\nActiveState={socket}"));
        let (said, plans) = harden(machine_with(&units, &[("", FRESH)]), &["set_max_auth_tries"]);
        let (_, notes) = said.unwrap();
        let shown = format!("{:?}", plans[0]);
        assert!(shown.contains("guard: Some(Guard { seconds: 30 })"), "{shown}");
        // Nothing reads the settings but the next connection's own sshd.
        assert_eq!(plans[0].steps().len(), 2, "{shown}");
        let told = notes.iter().any(|note| note.starts_with("sshd's unit isn't active"));
        assert_eq!(told, is_told, "{socket}: {notes:?}");
    }
}

#[test]
fn where_sshd_reads_no_drop_in_first_the_main_file_begins_with_the_block() {
    let target = machine(&[("", FRESH)]).file(MAIN, "Port 22\nX11Forwarding yes\n");
    let (said, plans) = harden(target, &["disable_x11_forwarding"]);
    assert_eq!(said.unwrap().0["file"], MAIN);
    let text = "# BEGIN linux-sysadmin\n\
        # Set by sec_harden_ssh of linux-sysadmin. sshd takes the first value of a keyword.\n\
        X11Forwarding no\n# END linux-sysadmin\nPort 22\nX11Forwarding yes\n";
    let write = Step::write(MAIN, text);
    let check = Command::new("sshd").args(["-t", "-f", "{}"]).as_root();
    assert_eq!(plans[0].steps()[0], write.validate(check));
}

#[test]
fn what_is_in_force_is_not_set_again() {
    let done = FRESH.replace("x11forwarding yes", "x11forwarding no");
    let (said, plans) = harden(machine(&[("", done.as_str())]), &["disable_x11_forwarding"]);
    let (data, notes) = said.unwrap();
    assert_eq!((data["set"].clone(), plans.len()), (json!([]), 0));
    assert_eq!(notes, ["in force already: X11Forwarding"]);
}

#[test]
fn a_match_block_that_overrides_the_hardening_is_named_with_its_place() {
    let main = format!("{DEBIAN}Match User ada\n  X11Forwarding yes\n");
    let target = machine(&[("", FRESH)]).file(MAIN, main);
    let hard = FRESH.replace("x11forwarding yes", "x11forwarding no");
    let target = ["root", "nobody"].into_iter().fold(target, |target, account| {
        target.answer_after(&["sshd", "-T", "-C", &settings_of(account)], 0, &hard, "")
    });
    let (_, notes) = harden(target, &["disable_x11_forwarding"]).0.unwrap();
    let expected =
        "X11Forwarding is still another one for ada: a Match block sets it at /etc/ssh/sshd_config:4";
    assert_eq!(notes, [expected]);
}

#[test]
fn passwords_that_pam_still_asks_for_are_told() {
    let asks = FRESH.replace("kbdinteractiveauthentication no", "kbdinteractiveauthentication yes");
    let (_, notes) = harden(machine(&[("", asks.as_str())]), &["disable_password_auth"]).0.unwrap();
    assert!(notes.iter().any(|note| note.contains("KbdInteractiveAuthentication")), "{notes:?}");
}

#[test]
fn passwords_stay_where_no_key_is_sure_to_open_an_account_that_may_become_root() {
    let with = |from: &str, to: &str| FRESH.replace(from, to);
    let keys = "authorizedkeysfile .ssh/authorized_keys .ssh/authorized_keys2";
    let settings = [
        (with("pubkeyauthentication yes", "pubkeyauthentication no"), "PubkeyAuthentication no"),
        (
            with("authenticationmethods any", "authenticationmethods publickey,password"),
            "AuthenticationMethods",
        ),
        (with(keys, "authorizedkeysfile none"), "reads no file of keys"),
        (
            with(keys, "authorizedkeysfile none")
                .replace("authorizedkeyscommand none", "authorizedkeyscommand /usr/bin/keys %u"),
            "/usr/bin/keys %u (AuthorizedKeysCommand) knows can't be looked at",
        ),
        (format!("{FRESH}allowusers bob\n"), "AllowUsers has no ada"),
        (format!("{FRESH}allowusers ada@10.0.0.0/8\n"), "AllowUsers has no ada"),
        (format!("{FRESH}denyusers a*\n"), "DenyUsers a*"),
        (format!("{FRESH}allowgroups admins\n"), "AllowGroups has no"),
    ];
    for (settings, why) in &settings {
        let problem = refused(machine(&[("", settings.as_str())]), &["disable_password_auth"]);
        assert_eq!(problem.code, "NO_USABLE_KEY");
        assert!(problem.message.contains(why), "{why}: {}", problem.message);
        let checked = check(machine(&[("", settings.as_str())]));
        assert!(checked["held_back"].to_string().contains("disable_password_auth"), "{checked}");
    }
    let fresh = || machine(&[("", FRESH)]);
    let path = "/home/ada/.ssh/authorized_keys";
    for (target, why) in [
        (fresh().file(path, "# none\n"), "has no key"),
        (fresh().file(path, format!("from=\"10.0.0.0/8\" {KEY}")), "has no key"),
        (fresh().file(path, format!("command=\"id\" {KEY}")), "has no key"),
        (fresh().metadata(path, metadata("ada", 0o666)), "passes over"),
        (fresh().metadata(path, metadata("bob", 0o600)), "passes over"),
        (
            fresh().metadata("/home/ada/.ssh", Metadata { is_dir: true, ..metadata("ada", 0o777) }),
            "passes over",
        ),
    ] {
        let problem = refused(target, &["disable_password_auth"]);
        assert_eq!(problem.code, "NO_USABLE_KEY");
        assert!(problem.message.contains(why), "{why}: {}", problem.message);
    }
    // With StrictModes off, the permissions don't matter.
    let loose = with("strictmodes yes", "strictmodes no");
    let target = machine(&[("", loose.as_str())]).metadata(path, metadata("ada", 0o666));
    assert!(harden(target, &["disable_password_auth"]).0.is_ok());
}

#[test]
fn root_stays_while_it_is_in_use_or_nobody_else_gets_in() {
    let mut as_root = machine(&[("", FRESH)]);
    as_root.distro.extra.retain(|(name, _)| name != "user");
    let problem = refused(as_root.account("root"), &["disable_root_login"]);
    assert_eq!(problem.code, "ACCOUNT_IN_USE");
    // Without a key, ada gets in by a password, where there is one.
    let status = ["passwd", "--status", "--", "ada"];
    let without_key = || machine(&[("", FRESH)]).file("/home/ada/.ssh/authorized_keys", "");
    let locked = without_key().answer(&status, 0, "ada L 2026-11-22 0 99999 7 -1\n", "");
    assert_eq!(refused(locked, &["disable_root_login"]).code, "NO_OTHER_LOGIN");
    let open = || without_key().answer(&status, 0, "ada P 2026-11-22 0 99999 7 -1\n", "");
    assert!(harden(open(), &["disable_root_login"]).0.is_ok());
    let problem = refused(open(), &["disable_root_login", "disable_password_auth"]);
    assert_eq!(problem.code, "NO_USABLE_KEY");
}

#[test]
fn an_account_that_has_expired_is_no_way_in() {
    let command = Logins::command(None);
    let argv: Vec<&str> =
        std::iter::once(&command.program).chain(&command.args).map(String::as_str).collect();
    // In the format of lslogins (util-linux) 2.38.1.
    let expires_on = |day: &str| {
        let said = format!("USER=\"ada\" PWD-CHANGE=\"2026-11-22\" PWD-EXPIR=\"{day}\"\n");
        machine(&[("", FRESH)]).at(1_795_824_000.0).answer(&argv, 0, said, "")
    };
    let problem = refused(expires_on("2026-11-01"), &["disable_root_login"]);
    assert_eq!(problem.code, "NO_OTHER_LOGIN");
    assert!(problem.message.contains("ada: the account has expired"), "{}", problem.message);
    assert_eq!(refused(expires_on("2026-11-01"), &["disable_password_auth"]).code, "NO_USABLE_KEY");
    assert!(harden(expires_on("2026-12-31"), &["disable_root_login"]).0.is_ok());
}

#[test]
fn a_directory_that_is_a_link_and_a_file_that_is_missing_are_refused() {
    let link = Metadata { is_symlink: true, ..metadata("root", 0o777) };
    let problem = refused(machine(&[("", FRESH)]).metadata("/etc/ssh", link), &["disable_x11_forwarding"]);
    assert_eq!(problem.code, "SSH_DIRECTORY_IS_LINK");
    // What is weak is told all the same, without the lines of files that aren't read.
    let link = Metadata { is_symlink: true, ..metadata("root", 0o777) };
    let checked = check(machine(&[("", WEAK)]).metadata("/etc/ssh", link));
    assert_eq!(checked["findings"][0]["kind"], "ssh-empty-passwords");
    assert!(!checked["findings"][0]["evidence"].as_str().unwrap().contains("set at"), "{checked}");
    let problem =
        machine(&[("", FRESH)]).call(&module(), "sec_harden_ssh", json!({"actions": []})).unwrap_err();
    assert_eq!(problem.code, "NO_ACTIONS");
    let unknown = json!({"actions": ["disable_everything"]});
    let problem = machine(&[("", FRESH)]).call(&module(), "sec_harden_ssh", unknown).unwrap_err();
    assert_eq!(problem.code, "INVALID_ARGUMENTS");
}

#[test]
fn without_the_client_the_algorithms_are_those_that_sshd_offers_now() {
    let offered = FRESH
        .replace("macs umac-64-etm@openssh.com,umac-128-etm@openssh.com", "macs umac-128-etm@openssh.com");
    let target = machine(&[("", offered.as_str())]).failure(
        &["ssh", "-Q", "mac"],
        Problem::not_found("PROGRAM_NOT_FOUND", "there is no program ssh on the target"),
    );
    let (data, _) = harden(target, &["restrict_macs"]).0.unwrap();
    let best = "MACs hmac-sha2-512-etm@openssh.com,hmac-sha2-256-etm@openssh.com,umac-128-etm@openssh.com";
    assert_eq!(data["set"], json!([best]));
}

#[test]
fn a_dry_run_says_what_it_would_do() {
    let outcome = Ok(confirm::Applied { outputs: Vec::new(), dry_run: true });
    let (data, _) = harden(machine(&[("", FRESH)]).outcome(outcome), &["set_max_auth_tries"]).0.unwrap();
    assert_eq!(data, json!({"would": "harden", "file": DROP_IN, "set": ["MaxAuthTries 3"]}));
}

#[test]
fn a_small_group_is_found_where_sshd_may_choose_it() {
    let moduli = include_str!("../../tests/data/ssh/moduli");
    let small = moduli.replacen(" 100 2047 ", " 100 1023 ", 1);
    let none = FRESH.replace("diffie-hellman-group-exchange-sha256,", "");
    for (settings, moduli, expected) in [
        (FRESH, moduli, &[][..]),
        (FRESH, small.as_str(), &["ssh-weak-moduli"]),
        (none.as_str(), small.as_str(), &[]),
        (FRESH, "# no groups\n1 2 3 4 7\n\u{fffd} 1 1 1 x 2 2\n", &[]),
    ] {
        let checked = check(machine(&[("", settings)]).file("/etc/ssh/moduli", moduli));
        assert_eq!(kinds(&checked), expected, "{checked}");
    }
}

#[test]
fn weak_host_keys_and_files_that_others_may_write_to_are_found() {
    let rsa = include_str!("../../tests/data/ssh/rsa1024.pub");
    let keys = ["rsa", "ecdsa", "ed25519"].map(|kind| format!("/etc/ssh/ssh_host_{kind}_key"));
    let modes =
        format!("600:root:root:{}\n640:root:ssh_keys:{}\n644:root:root:{}\n", keys[0], keys[1], keys[2]);
    let mut argv = vec!["stat", "--format=%a:%U:%G:%n", "--"];
    argv.extend(keys.iter().map(String::as_str));
    let target = machine(&[("", FRESH)])
        .file(&format!("{}.pub", keys[0]), rsa)
        .answer(&argv, 0, modes, "")
        .file("/etc/ssh/sshd_config.d/50-a.conf", "")
        .metadata("/etc/ssh/sshd_config.d/50-a.conf", metadata("ada", 0o644));
    let checked = check(target);
    assert_eq!(
        kinds(&checked),
        ["ssh-config-writable", "ssh-weak-host-key", "ssh-host-key-mode"],
        "{checked}"
    );
    assert_eq!(checked["findings"][2]["subjects"], json!([keys[2]]));
    let mend = |at: usize| checked["findings"][at]["mend"]["arguments"].clone();
    let path = "/etc/ssh/sshd_config.d/50-a.conf";
    assert_eq!(mend(0), json!({"path": path, "owner": "root", "mode": "go-w"}));
    assert_eq!(mend(2), json!({"path": keys[2], "owner": "root", "group": "root", "mode": "0600"}));
}
