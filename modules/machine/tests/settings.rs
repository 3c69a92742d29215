//! `machine_time` and `machine_set` as the host calls them. The outputs are those of systemd 252 and chrony 4.3 on Debian 12,
//! and of the same systemd without a time service.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::testkit::FakeTarget;
use linux_sysadmin_sdk::{Change, Command, Problem, Step};
use module_machine::module;
use serde_json::{Value, json};

const SHOWN: &str = "Timezone=Etc/UTC\nLocalRTC=no\nCanNTP=yes\nNTP=yes\nNTPSynchronized=no\n\
                     TimeUSec=Fri 2026-11-27 02:36:57 UTC\n";
const NAMES: [&str; 7] = [
    "systemd-timesyncd.service",
    "chronyd.service",
    "chrony.service",
    "ntpd.service",
    "ntp.service",
    "ntpsec.service",
    "openntpd.service",
];
const SERVICES: &str = "systemctl show --property=Id,ActiveState,UnitFileState --";
const LOADED: &str = "systemctl list-units --all --plain --no-legend --no-pager --";
/// The units that others only name are listed as well.
const CHRONY: &str = "chrony.service   loaded    active   running chrony, an NTP client/server\n\
                      ntp.service      not-found inactive dead    ntp.service\n";
const FOLLOWS: &str = "CB00710F,ntp.example.net,3,1500000000.5,-0.5,-0.000006747,0.000035822,3.225,0.000,0.129,\
                       0.013639022,0.001100737,64.2,Normal\n";
const FOLLOWS_NONE: &str = "00000000,,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,1.000000000,\
                            1.000000000,0.0,Not synchronised\n";

/// The words of a command on all services that can keep the clock.
fn of_services(command: &'static str) -> Vec<&'static str> {
    command.split(' ').chain(NAMES).collect()
}

fn target() -> FakeTarget {
    FakeTarget::new()
        .answer(&["timedatectl", "show"], 0, SHOWN, "")
        .answer(&["timedatectl", "show-timesync"], 1, "", "Failed to parse bus message: No route to host\n")
        .answer(&["localectl", "status"], 0, "System Locale: LANG=C.UTF-8\n    VC Keymap: (unset)\n", "")
        .answer(&["localectl", "list-locales"], 0, "C.UTF-8\nde_DE.UTF-8\n", "")
        .file("/etc/hostname", "old\n")
        .file("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 old\n")
        .file("/usr/share/zoneinfo/Europe/Berlin", "TZif")
        .file("/usr/share/zoneinfo/localtime", "TZif")
        .file("/usr/share/zoneinfo/leapseconds", "# Allowance for leap seconds\n")
        .file("/usr/share/zoneinfo/zone1970.tab", "# comment\nDE\t+5230+01322\tEurope/Berlin\n")
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

fn time(target: FakeTarget) -> Value {
    call(target, "machine_time", json!({})).unwrap().0
}

#[test]
fn the_server_that_the_clock_is_kept_by_is_told() {
    let target = target().answer(&of_services(LOADED), 0, CHRONY, "").answer(
        &["chronyc", "-c", "tracking"],
        0,
        FOLLOWS,
        "",
    );
    assert_eq!(
        time(target),
        json!({
            "time": "2026-11-27T02:36:57Z", "time_zone": "Etc/UTC", "synchronized": true, "by": "chrony.service",
            "server": "ntp.example.net", "stratum": 3, "off_by_seconds": 0.5, "measured_at": "2017-07-14T02:40:00Z",
        })
    );
}

#[test]
fn a_clock_that_nothing_keeps_has_its_reason_and_what_helps() {
    let stopped = "Id=chrony.service\nActiveState=inactive\nUnitFileState=disabled\n";
    let off = SHOWN.replace("NTP=yes\nNTPS", "NTP=no\nNTPS");
    let cases = [
        (
            target().answer(&of_services(LOADED), 0, CHRONY, ""),
            "no server has answered it",
            "svc_logs service=chrony.service",
        ),
        (
            // A unit that nothing refers to isn't loaded.
            target().answer(&of_services(LOADED), 0, "", "").answer(&of_services(SERVICES), 0, stopped, ""),
            "doesn't run",
            "svc_start service=chrony.service",
        ),
        (
            FakeTarget::new().answer(&["timedatectl", "show"], 0, off, "").answer(
                &of_services(SERVICES),
                0,
                stopped,
                "",
            ),
            "doesn't run",
            "machine_set ntp=true",
        ),
        (target().answer(&of_services(SERVICES), 0, "", ""), "is installed", "pkg_install package=chrony"),
    ];
    for (target, why, next) in cases {
        let target = target.answer(&["chronyc", "-c", "tracking"], 0, FOLLOWS_NONE, "");
        let said = time(target);
        assert_eq!((&said["synchronized"], &said["next"]), (&json!(false), &json!(next)), "{said}");
        assert!(said["why"].as_str().unwrap().contains(why), "{said}");
    }
}

#[test]
fn without_systemd_the_clock_is_told_with_the_reason_why_nothing_else_is() {
    // timedatectl of systemd 252 in a container whose first process is another program.
    let silent = "System has not been booted with systemd as init system (PID 1). Can't operate.\n\
                  Failed to connect to bus: Host is down\n";
    let date = ["date", "-u", "+%FT%TZ"];
    let target = || {
        FakeTarget::new().answer(&["timedatectl", "show"], 1, "", silent).answer(
            &date,
            0,
            "2026-11-27T04:02:13Z\n",
            "",
        )
    };
    let said = time(target().file("/etc/timezone", "Etc/UTC\n"));
    let why = "timedatectl ended with exit code 1: System has not been booted with systemd as init system (PID 1). \
               Can't operate.";
    let expected =
        json!({"time": "2026-11-27T04:02:13Z", "time_zone": "Etc/UTC", "synchronized": false, "why": why});
    assert_eq!(said, expected);
    let said = time(target().answer(&["chronyc", "-c", "tracking"], 0, FOLLOWS, ""));
    assert_eq!((&said["synchronized"], &said["server"]), (&json!(true), &json!("ntp.example.net")));
    let none = call(FakeTarget::new(), "machine_time", json!({})).unwrap_err();
    assert_eq!(none.code, "NOT_RECORDED", "without a clock its own problem is told");
}

#[test]
fn all_settings_are_one_plan_with_the_values_before_as_its_undo() {
    let target = target();
    let plans = target.plans();
    let arguments =
        json!({"hostname": "new", "timezone": "Europe/Berlin", "locale": "de_DE.utf8", "ntp": false});
    let (data, notes) = call(target, "machine_set", arguments).unwrap();
    let run = |argv: &[&str]| Command::new(argv[0]).args(argv[1..].to_vec()).as_root();
    let step = |now: &[&str], before: &[&str]| Step::run(run(now)).undo(run(before));
    let expected = Change::new("Set what the machine is called and how it tells the time")
        .step(step(
            &["hostnamectl", "--static", "--transient", "set-hostname", "new"],
            &["hostnamectl", "--static", "--transient", "set-hostname", "old"],
        ))
        .step(Step::write("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 new\n"))
        .step(step(
            &["timedatectl", "set-timezone", "Europe/Berlin"],
            &["timedatectl", "set-timezone", "Etc/UTC"],
        ))
        .step(step(&["timedatectl", "set-ntp", "false"], &["timedatectl", "set-ntp", "true"]))
        .step(step(
            &["localectl", "set-locale", "LANG=de_DE.UTF-8"],
            &["localectl", "set-locale", "LANG=C.UTF-8"],
        ));
    assert_eq!(plans.take(), [expected]);
    assert_eq!(data["changes"][0], json!({"setting": "hostname", "before": "old", "value": "new"}));
    assert_eq!(data["changes"].as_array().unwrap().len(), 4);
    assert!(notes[0].contains("until they restart"), "{notes:?}");
}

#[test]
fn what_goes_on_naming_the_former_value_is_told() {
    let target = target().file("/etc/timezone", "Etc/UTC\n").device("/etc/hosts");
    let plans = target.plans();
    let (_, notes) =
        call(target, "machine_set", json!({"hostname": "new", "timezone": "Europe/Berlin"})).unwrap();
    assert_eq!(plans.borrow()[0].steps().len(), 2);
    assert!(notes[0].starts_with("/etc/hosts stays as it is, also where it names old: "), "{notes:?}");
    assert_eq!(notes[1], "/etc/timezone goes on naming \"Etc/UTC\", for programs that read it");
}

#[test]
fn what_holds_already_is_no_plan() {
    let target = target();
    let plans = target.plans();
    let arguments = json!({"hostname": "old", "timezone": "Etc/UTC", "ntp": true});
    let (data, notes) =
        call(target.file("/usr/share/zoneinfo/Etc/UTC", "TZif"), "machine_set", arguments).unwrap();
    assert_eq!((data, plans.borrow().len()), (json!({"changes": []}), 0));
    assert_eq!(notes.len(), 3);
}

#[test]
fn what_cannot_be_set_is_refused_and_nothing_is_planned() {
    for (arguments, code, said) in [
        (json!({}), "INVALID_ARGUMENTS", "at least one"),
        (json!({"hostname": "-x"}), "INVALID_HOSTNAME", "64 characters"),
        (json!({"hostname": "a".repeat(65)}), "INVALID_HOSTNAME", "64 characters"),
        (json!({"timezone": "Europe/Berln"}), "UNKNOWN_TIME_ZONE", "Near: Europe/Berlin"),
        (json!({"timezone": "Europe"}), "UNKNOWN_TIME_ZONE", "such as Europe/Berlin"),
        (json!({"timezone": "/etc/localtime"}), "UNKNOWN_TIME_ZONE", "no time zone"),
        (json!({"timezone": "Europe/../Europe/Berlin"}), "UNKNOWN_TIME_ZONE", "no time zone"),
        (json!({"timezone": ""}), "UNKNOWN_TIME_ZONE", "no time zone"),
        (json!({"timezone": "localtime"}), "UNKNOWN_TIME_ZONE", "no time zone"),
        (json!({"timezone": "leapseconds"}), "UNKNOWN_TIME_ZONE", "no time zone"),
        (json!({"locale": "de_DE.UTF-9"}), "UNKNOWN_LOCALE", "Near: de_DE.UTF-8"),
        (json!({"locale": "C\nLANG=x"}), "UNKNOWN_LOCALE", "locale-gen"),
    ] {
        let target = target();
        let plans = target.plans();
        let problem = call(target, "machine_set", arguments.clone()).unwrap_err();
        let text = format!("{} {}", problem.message, problem.remediation.join(" "));
        assert_eq!((problem.code.as_str(), plans.borrow().len()), (code, 0), "{arguments}");
        assert!(text.contains(said), "{arguments}: {text}");
    }
    let none = SHOWN.replace("CanNTP=yes", "CanNTP=no");
    let target = FakeTarget::new().answer(&["timedatectl", "show"], 0, none, "");
    assert_eq!(call(target, "machine_set", json!({"ntp": true})).unwrap_err().code, "NOT_SUPPORTED");
}
