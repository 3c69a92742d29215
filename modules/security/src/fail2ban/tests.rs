//! The tools against recordings of fail2ban 1.0.2 (Debian 12), see `tests/data/fail2ban/README.md`.

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm;
use linux_sysadmin_sdk::testkit::{FakeTarget, output};
use linux_sysadmin_sdk::{Category, Step, prelude::*};
use serde_json::{Value, json};

use crate::module;

const RUNNING: &str = include_str!("../../tests/data/fail2ban/running.txt");
/// What the server and the test of the configuration say; the state of its jail sshd isn't there.
const RUNNING_WITHOUT_SSHD: &str = "$ fail2ban-client status\n[exit 0]\nStatus\n|- Number of jail:\t1\n\
    `- Jail list:\tsshd\n$ fail2ban-client -t\n[exit 0]\nOK: configuration test is successful\n";
const BROKEN: &str = include_str!("../../tests/data/fail2ban/broken.txt");
const DUMP: &str = include_str!("../../tests/data/fail2ban/dump.txt");
const CONF: &str = include_str!("../../tests/data/fail2ban/jail.conf");
const LOCAL: &str = include_str!("../../tests/data/fail2ban/jail.local");

const PATH: &str = "/etc/fail2ban/jail.local";
const DEFAULTS: &str = "/etc/fail2ban/jail.d/defaults-debian.conf";

fn files() -> FakeTarget {
    let target = FakeTarget::new().account("ada").file("/etc/fail2ban/jail.conf", CONF);
    target.file(DEFAULTS, "[sshd]\nenabled = true\n").answer(&["fail2ban-client", "-d"], 0, DUMP, "")
}

fn running() -> FakeTarget {
    files().file(PATH, LOCAL).transcript(RUNNING)
}

fn stopped() -> FakeTarget {
    files().file(PATH, LOCAL).transcript(BROKEN)
}

type Said = (Result<(Value, Vec<String>)>, Vec<Change>);

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Said {
    let plans = target.plans();
    let said = target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes));
    let plans = plans.borrow().clone();
    (said, plans)
}

fn configure(target: FakeTarget, arguments: Value) -> Said {
    call(target, "sec_fail2ban_configure", arguments)
}

fn refused(target: FakeTarget, arguments: Value) -> String {
    let (said, plans) = configure(target, arguments);
    assert!(plans.is_empty(), "{plans:?}");
    said.unwrap_err().code
}

fn run(line: &str) -> Command {
    let words: Vec<&str> = line.split(' ').collect();
    Command::new(words[0]).args(words[1..].iter().copied()).as_root()
}

/// The steps that follow the writing of files.
fn rest() -> [Step; 2] {
    let test = Step::run(run("fail2ban-client -t"));
    [test, Step::run(run("fail2ban-client reload")).uninterruptible()]
}

#[test]
fn each_jail_is_told_with_its_settings_and_whom_it_has_banned() {
    let (said, _) = call(running(), "sec_fail2ban_status", json!({}));
    let (data, notes) = said.unwrap();
    assert_eq!(
        data[0],
        json!({
            "jail": "sshd", "failed": 0, "failed_total": 0, "banned": 2, "banned_total": 2,
            "addresses": ["192.0.2.7", "2001:db8::7"], "logs": ["/var/log/auth.log"],
            "config": {"port": "ssh", "maxretry": 4, "findtime": "10m", "bantime": "10m", "backend": "polling",
                       "ignoreip": ["127.0.0.1/8", "::1"], "actions": ["nftables-multiport"]}
        })
    );
    assert_eq!((data[1]["jail"].as_str(), data[1].get("addresses"), notes), (Some("web"), None, Vec::new()));
    let (said, _) = call(running(), "sec_fail2ban_status", json!({"jail": "web"}));
    assert_eq!(said.unwrap().0.as_array().map(Vec::len), Some(1));
    let (said, _) = call(running(), "sec_fail2ban_status", json!({"jail": "none"}));
    assert_eq!(said.unwrap_err().code, "JAIL_NOT_FOUND");
}

#[test]
fn the_counters_are_those_that_fail2ban_prints_and_none_is_made_up() {
    let status = ["fail2ban-client", "status", "sshd"];
    // In the format of fail2ban 1.0.2, with numbers that differ from each other.
    let said = "Status for the jail: sshd\n|- Filter\n|  |- Currently failed:\t3\n|  |- Total failed:\t17\n\
        |  `- Journal matches:\t_SYSTEMD_UNIT=sshd.service + _COMM=sshd\n`- Actions\n   |- Currently banned:\t1\n\
        |  |- Total banned:\t9\n   `- Banned IP list:\t192.0.2.7\n";
    let of = |target: FakeTarget| {
        let (data, notes) = call(target, "sec_fail2ban_status", json!({"jail": "sshd"})).0.unwrap();
        (data[0].clone(), notes)
    };
    let others = || files().file(PATH, LOCAL);
    let (jail, notes) = of(others().answer(&status, 0, said, "").transcript(RUNNING_WITHOUT_SSHD));
    let counters = ["failed", "failed_total", "banned", "banned_total"].map(|name| jail[name].as_u64());
    assert_eq!((counters, notes.len()), ([Some(3), Some(17), Some(1), Some(9)], 0), "{jail}");
    assert_eq!(jail["journal"], "_SYSTEMD_UNIT=sshd.service + _COMM=sshd");
    // Nothing is known of a jail whose state can't be read: no number is 0 for that.
    let busy = Problem::new("COMMAND_TIMEOUT", Category::Resource, "the command took longer than 10 s");
    for target in [
        others().failure(&status, busy).transcript(RUNNING_WITHOUT_SSHD),
        others().answer(&status, 255, "", "ERROR NOK: ('busy',)\n").transcript(RUNNING_WITHOUT_SSHD),
    ] {
        let (jail, notes) = of(target);
        assert_eq!(
            (jail.get("banned"), jail.get("failed"), jail.get("running")),
            (None, None, None),
            "{jail}"
        );
        assert!(notes[0].starts_with("sshd doesn't tell its state: "), "{notes:?}");
    }
    let (jail, _) = of(others().answer(&status, 0, "Zustand: gut\n", "").transcript(RUNNING_WITHOUT_SSHD));
    assert_eq!((jail.get("banned"), jail.get("running")), (None, None), "{jail}");
    // One that has ended meanwhile isn't at work.
    let gone = "Sorry but the jail 'sshd' does not exist\n";
    let (jail, notes) = of(others().answer(&status, 255, gone, "").transcript(RUNNING_WITHOUT_SSHD));
    assert_eq!((jail["running"].as_bool(), notes.len()), (Some(false), 0), "{jail}");
}

#[test]
fn nobody_is_called_let_in_where_the_jail_does_not_tell_whom_it_has_banned() {
    let target =
        files().file(PATH, LOCAL).answer(&["fail2ban-client", "status", "sshd"], 255, "", "ERROR busy\n");
    let arguments = json!({"jail": "sshd", "action": "unban", "address": "192.0.2.7"});
    assert_eq!(refused(target.transcript(RUNNING_WITHOUT_SSHD), arguments), "COMMAND_FAILED");
}

#[test]
fn the_own_address_among_the_banned_ones_is_told() {
    let mut target = running();
    target.distro.extra.push(("ssh_client".to_owned(), "192.0.2.7".to_owned()));
    let (_, notes) = call(target, "sec_fail2ban_status", json!({})).0.unwrap();
    assert!(notes[0].contains("the address in use"), "{notes:?}");
}

#[test]
fn a_server_that_does_not_run_is_told_with_the_reason() {
    let (data, notes) = call(stopped(), "sec_fail2ban_status", json!({})).0.unwrap();
    assert_eq!(data[0]["running"], false);
    let why = "can't start with its configuration: Failed during configuration: Have not found any log file for web jail";
    assert!(notes[0].ends_with(why), "{notes:?}");
}

#[test]
fn without_fail2ban_and_without_roots_rights_the_answer_says_so() {
    for (tool, arguments) in [
        ("sec_fail2ban_status", json!({})),
        ("sec_fail2ban_configure", json!({"jail": "sshd", "action": "enable"})),
    ] {
        let none = FakeTarget::new().without_program("fail2ban-client");
        assert_eq!(call(none, tool, arguments.clone()).0.unwrap_err().code, "PROGRAM_NOT_FOUND");
        // The message of fail2ban 1.0.2.
        let said = "2026-11-27 22:22:37,476 fail2ban                [44]: ERROR   Permission denied to socket: \
                    /var/run/fail2ban/fail2ban.sock, (you must be root)\n";
        let denied = files().answer(&["fail2ban-client", "status"], 255, "", said).answer(
            &["fail2ban-client", "-t"],
            0,
            "",
            "",
        );
        assert_eq!(call(denied, tool, arguments).0.unwrap_err().code, "PRIVILEGE_REQUIRED");
    }
}

#[test]
fn a_change_is_written_checked_and_reloaded_and_packages_files_stay() {
    let off = LOCAL.replacen("[web]\nenabled = true", "[web]\nenabled = false", 1);
    let more = LOCAL.replacen("maxretry = 4\n", "maxretry = 3\nbantime = 1d 12h\n", 1);
    let new = format!("{LOCAL}\n[recidive]\nenabled = true\nbantime = -1\n");
    let config = json!({"maxretry": 3, "bantime": "1d 12h"});
    for (arguments, text, set) in [
        (json!({"jail": "web", "action": "disable"}), off, json!(["enabled = false"])),
        (
            json!({"jail": "sshd", "action": "modify", "config": config}),
            more,
            json!(["maxretry = 3", "bantime = 1d 12h"]),
        ),
        (
            json!({"jail": "recidive", "action": "create", "config": {"bantime": "-1"}}),
            new,
            json!(["enabled = true", "bantime = -1"]),
        ),
    ] {
        let (said, plans) = configure(running(), arguments.clone());
        let (data, _) = said.unwrap();
        assert_eq!((&data["files"], &data["set"]), (&json!([PATH]), &set), "{arguments}");
        let [test, reload] = rest();
        assert_eq!(plans[0].steps(), [Step::write(PATH, text), test, reload], "{arguments}");
    }
    // There is no own file yet.
    let fresh = || files().transcript(RUNNING);
    let (_, plans) = configure(fresh(), json!({"jail": "sshd", "action": "disable"}));
    assert_eq!(plans[0].steps()[0], Step::write(PATH, "[sshd]\nenabled = false\n").mode(0o644));
}

#[test]
fn a_jail_is_deleted_from_own_files_and_a_package_that_enables_it_is_named() {
    let (said, plans) = configure(running(), json!({"jail": "sshd", "action": "delete"}));
    let (_, notes) = said.unwrap();
    assert_eq!(notes, [format!("{DEFAULTS} enables sshd all the same: action=disable ends it")]);
    let begin = LOCAL.find("[sshd]").unwrap();
    let end = LOCAL.find("[web]").unwrap();
    let left = format!("{}{}", &LOCAL[..begin], &LOCAL[end..]);
    assert_eq!(plans[0].steps()[0], Step::write(PATH, left));
    assert_eq!(
        refused(files().transcript(RUNNING), json!({"jail": "sshd", "action": "delete"})),
        "NO_OWN_SETTINGS"
    );
    // A file with nothing else in it goes.
    let only = files().transcript(RUNNING).file(PATH, "[web]\nenabled = true\n");
    let (_, plans) = configure(only, json!({"jail": "web", "action": "delete"}));
    assert_eq!(plans[0].steps()[0], Step::remove(PATH));
}

#[test]
fn a_new_jail_over_ssh_has_to_be_proven_by_a_new_login() {
    let remote = |action: &str, jail: &str| {
        let mut target = running();
        target.distro.extra.push(("ssh_client".to_owned(), "192.0.2.1".to_owned()));
        let (_, plans) = configure(target, json!({"jail": jail, "action": action}));
        format!("{plans:?}").contains("guard: Some")
    };
    assert!(remote("create", "recidive") && !remote("disable", "web"));
}

#[test]
fn what_is_so_already_changes_nothing() {
    for arguments in [
        json!({"jail": "sshd", "action": "enable"}),
        json!({"jail": "recidive", "action": "disable"}),
        json!({"jail": "sshd", "action": "modify", "config": {"maxretry": 4}}),
        json!({"jail": "sshd", "action": "unban", "address": "192.0.2.99"}),
    ] {
        let (said, plans) = configure(running(), arguments.clone());
        assert!(said.unwrap().1[0].ends_with("nothing was changed"), "{arguments}");
        assert!(plans.is_empty());
    }
}

#[test]
fn an_address_is_let_in_again() {
    // In whatever form the address is given.
    let arguments = json!({"jail": "sshd", "action": "unban", "address": "2001:DB8:0::7"});
    let (said, plans) = configure(running(), arguments);
    assert!(said.is_ok());
    let undo = run("fail2ban-client set sshd banip 2001:db8::7");
    let step = Step::run(run("fail2ban-client set sshd unbanip 2001:db8::7")).undo(undo);
    assert_eq!(plans[0].steps(), [step]);
    let arguments = || json!({"jail": "nginx", "action": "unban", "address": "192.0.2.7"});
    assert_eq!(refused(running(), arguments()), "JAIL_NOT_FOUND");
    assert_eq!(refused(stopped(), arguments()), "NOT_RUNNING");
}

#[test]
fn what_fits_no_jail_is_refused() {
    for (arguments, code) in [
        (json!({"jail": "DEFAULT", "action": "enable"}), "INVALID_VALUE"),
        (json!({"jail": "sshd", "action": "enable", "config": {"maxretry": 1}}), "INVALID_ARGUMENTS"),
        (json!({"jail": "sshd", "action": "unban"}), "INVALID_ARGUMENTS"),
        (json!({"jail": "sshd", "action": "enable", "address": "192.0.2.1"}), "INVALID_ARGUMENTS"),
        (json!({"jail": "sshd", "action": "unban", "address": "192.0.2.0/24"}), "INVALID_VALUE"),
        (json!({"jail": "sshd", "action": "modify"}), "INVALID_ARGUMENTS"),
        (json!({"jail": "sshd", "action": "modify", "config": {"maxretry": 0}}), "INVALID_VALUE"),
        (json!({"jail": "sshd", "action": "modify", "config": {"logpath": "auth.log"}}), "INVALID_VALUE"),
        (json!({"jail": "sshd", "action": "modify", "config": {"action": "x"}}), "INVALID_ARGUMENTS"),
        (json!({"jail": "sshd", "action": "create"}), "JAIL_EXISTS"),
        (json!({"jail": "nothing", "action": "enable"}), "JAIL_NOT_FOUND"),
        (json!({"jail": "nothing", "action": "modify", "config": {"maxretry": 1}}), "JAIL_NOT_FOUND"),
    ] {
        assert_eq!(refused(running(), arguments.clone()), code, "{arguments}");
    }
}

#[test]
fn a_jail_whose_log_is_missing_is_refused_with_the_reason_and_what_helps() {
    let said = BROKEN.split("[stderr]\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let failure = confirm::Failure {
        problem: Problem::new("COMMAND_FAILED", Category::Other, "fail2ban-client ended with exit code 255"),
        step: 1,
        outputs: vec![output(255, "", said)],
        undone: Vec::new(),
        not_undone: Vec::new(),
        uncertain: false,
    };
    let arguments = json!({"jail": "web", "action": "modify", "config": {"logpath": "/var/log/nothere.log"}});
    let problem = configure(running().outcome(Err(failure)), arguments).0.unwrap_err();
    assert_eq!(problem.code, "JAIL_REFUSED");
    assert!(problem.message.contains("Have not found any log file for web jail"), "{}", problem.message);
    assert!(problem.remediation[0].contains("backend=systemd"), "{:?}", problem.remediation);
}

#[test]
fn without_the_server_the_settings_are_written_and_nothing_is_reloaded() {
    let (said, plans) = configure(stopped(), json!({"jail": "web", "action": "disable"}));
    let (data, notes) = said.unwrap();
    assert_eq!(plans[0].steps().len(), 2);
    assert_eq!(data.get("running"), None);
    assert_eq!(notes, ["fail2ban isn't running: svc_start service=fail2ban"]);
}
