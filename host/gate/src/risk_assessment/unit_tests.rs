//! Tests which commands on units of a made-up machine ask, by the effects of those units.

use host_base::{Command, Risk};
use host_knowledge::LazyKnowledge;
use host_policy::Policy;
use host_policy::text::{self, UnitAction};
use host_target::test_connection::{Fate, TestConnection};
use host_target::{Facts, Target};

use super::RiskAssessment;

/// Units with properties as systemd 252 shows them, and the text of their files. Those with a text are the administrator's own.
const UNITS: &[(&str, &str, &str)] = &[
    ("ssh.service", "ActiveState=active Before=multi-user.target", ""),
    ("sshd.service", "ActiveState=inactive", ""),
    ("cron.service", "ActiveState=active", ""),
    ("nginx.service", "ActiveState=active", ""),
    ("multi-user.target", "ActiveState=active Before=graphical.target,cron.service", ""),
    ("remote-fs.target", "ActiveState=active Before=systemd-user-sessions.service", ""),
    ("own.target", "ActiveState=inactive Before=mid.service", ""),
    ("mid.service", "ActiveState=inactive Before=ssh.service", "[Service]\nExecStart=/usr/local/bin/mid\n"),
    // What they run.
    (
        "plain.service",
        "ActiveState=active Before=multi-user.target",
        "[Service]\nExecStart=/usr/local/bin/app\nExecReload=/bin/kill -HUP $MAINPID\n",
    ),
    ("reboots.service", "ActiveState=inactive", "[Service]\nExecStart=/usr/sbin/reboot\n"),
    ("offs.service", "ActiveState=inactive", "[Service]\nExecStart=-/bin/sh -c 'systemctl stop ssh'\n"),
    (
        "wraps.service",
        "ActiveState=inactive",
        "[Service]\nExecStart=/bin/sh -c 'if true; then exec systemctl start reboots.service; fi'\n",
    ),
    ("loops.service", "ActiveState=inactive", "[Service]\nExecStart=/bin/systemctl restart loops.service\n"),
    ("webs.service", "ActiveState=inactive", "[Service]\nExecStart=/bin/systemctl stop nginx.service\n"),
    ("unsure.service", "ActiveState=inactive", "[Service]\nExecStart=/bin/systemctl stop $UNIT\n"),
    ("theirs.service", "ActiveState=inactive", "[Service]\nUser=nobody\nExecStart=/usr/sbin/reboot\n"),
    ("strange.service", "ActiveState=inactive", "[Service]\nUser=nobody-knows\nExecStart=/usr/sbin/reboot\n"),
    ("hidden.service", "ActiveState=inactive", "?"),
    (
        "late.service",
        "ActiveState=active",
        "[Service]\nExecStart=/usr/local/bin/app\nExecStop=/bin/systemctl stop ssh\n",
    ),
    (
        "after.service",
        "ActiveState=active",
        "[Service]\nExecStart=/usr/local/bin/app\nExecStopPost=+/sbin/poweroff\n",
    ),
    (
        "reloads.service",
        "ActiveState=active",
        "[Service]\nExecStart=/usr/local/bin/app\nExecReload=/bin/systemctl stop ssh\n",
    ),
    (
        "hub.service",
        "ActiveState=active ConsistsOf=late.service",
        "[Service]\nExecStart=/usr/local/bin/app\n",
    ),
    (
        "front.service",
        "ActiveState=active PropagatesReloadTo=reloads.service",
        "[Service]\nExecStart=/usr/local/bin/app\n",
    ),
    ("jump.service", "ActiveState=active", "[Service]\nExecStart=/usr/sbin/sshd -D $OPTIONS\n"),
    ("tunnel.service", "ActiveState=active", "[Service]\nExecStart=/usr/bin/ssh -N x\n"),
    (
        "wants.service",
        "ActiveState=inactive Wants=reboots.service",
        "[Service]\nExecStart=/usr/local/bin/app\n",
    ),
    (
        "wants.timer",
        "ActiveState=inactive Triggers=reboots.service Before=timers.target",
        "[Timer]\nOnCalendar=daily\n",
    ),
    (
        "job.timer",
        "ActiveState=inactive Triggers=plain.service Before=timers.target",
        "[Timer]\nOnCalendar=daily\n[Install]\nWantedBy=timers.target\n",
    ),
    (
        "theirs.timer",
        "ActiveState=active Triggers=theirs.service Before=timers.target",
        "[Timer]\nOnCalendar=daily\n",
    ),
    ("shipped.timer", "ActiveState=active Triggers=nginx.service Before=timers.target", ""),
    ("shipped-own.timer", "ActiveState=active Triggers=plain.service Before=timers.target", ""),
    ("true.timer", "ActiveState=active Triggers=ends.service", "[Timer]\nOnCalendar=daily\n"),
    ("blind.timer", "ActiveState=active Triggers=hidden.service", "[Timer]\nOnCalendar=daily\n"),
    (
        "listens.socket",
        "ActiveState=inactive Accept=yes Before=sockets.target",
        "[Socket]\nListenStream=1\nAccept=yes\n",
    ),
    (
        "listens@0.service",
        "ActiveState=inactive Conflicts=ssh.service",
        "[Service]\nExecStart=/usr/local/bin/app\n",
    ),
    // What ends with them.
    ("ends.service", "ActiveState=inactive Wants=unneeded.service", "[Service]\nExecStart=/bin/true\n"),
    (
        "unneeded.service",
        "ActiveState=inactive StopWhenUnneeded=yes PropagatesStopTo=ssh.service",
        "[Service]\nExecStart=/bin/true\n",
    ),
    ("turns.service", "ActiveState=inactive Conflicts=sshd.service", "[Service]\nExecStart=/bin/true\n"),
    (
        "turns.timer",
        "ActiveState=inactive Triggers=turns.service Before=timers.target",
        "[Timer]\nOnCalendar=daily\n",
    ),
    ("shipped.service", "ActiveState=inactive Conflicts=sshd.service", ""),
    ("held.slice", "ActiveState=inactive RequiredBy=sshd.service", ""),
    // What waits for them at the start.
    (
        "remote.service",
        "ActiveState=inactive Before=remote-fs.target,multi-user.target",
        "[Service]\nExecStart=/bin/true\n",
    ),
    ("first.service", "ActiveState=inactive Before=own.target", "[Service]\nExecStart=/bin/true\n"),
    (
        "wanted.service",
        "ActiveState=inactive",
        "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=remote-fs.target\n",
    ),
    ("jobs.service", "ActiveState=inactive Before=cron.service", "[Service]\nExecStart=/bin/true\n"),
    (
        "fails.service",
        "ActiveState=inactive",
        "[Service]\nExecStart=/bin/false\n[Install]\nRequiredBy=nginx.service\n",
    ),
    (
        "also.service",
        "ActiveState=inactive",
        "[Service]\nExecStart=/bin/true\n[Install]\nAlso=jobs.service\n",
    ),
    (
        "slow.mount",
        "ActiveState=inactive Before=remote-fs.target,umount.target",
        "[Mount]\nWhat=x\nWhere=/slow\n",
    ),
    (
        "watch.path",
        "ActiveState=inactive Triggers=plain.service Before=paths.target",
        "[Path]\nPathExists=/x\n",
    ),
    ("shipped-early.service", "ActiveState=inactive Before=remote-fs.target", ""),
];

fn found(unit: &str) -> (&'static str, &'static str) {
    let name = if unit.contains('.') { unit.to_owned() } else { format!("{unit}.service") };
    UNITS
        .iter()
        .find(|(known, ..)| *known == name)
        .map_or(("ActiveState=inactive LoadState=not-found", ""), |(_, properties, text)| (properties, text))
}

fn shown(unit: &str, asked: &str) -> String {
    let (properties, text) = found(unit);
    let place = if text.is_empty() { "/lib" } else { "/etc" };
    let of = |name: &str| match name {
        "Id" if unit.contains('.') => unit.to_owned(),
        "Id" => format!("{unit}.service"),
        "FragmentPath" => format!("{place}/systemd/system/{unit}"),
        "RefuseManualStop" => "no".to_owned(),
        name => {
            let values = properties.split(' ').filter_map(|property| property.split_once('='));
            let value = values.into_iter().find(|(known, _)| *known == name);
            value.map(|(_, value)| value.replace(',', " ")).unwrap_or_default()
        }
    };
    asked.split(',').map(|name| format!("{name}={}\n", of(name))).collect()
}

fn machine() -> Target {
    Target::over_test_connection(&TestConnection::new(|command: &Command| {
        let args: Vec<&str> = command.args.iter().map(String::as_str).collect();
        match (command.program.rsplit('/').next(), &args[..]) {
            (Some("systemctl"), ["show", asked, "--", units @ ..]) => {
                let asked = asked.trim_start_matches("--property=");
                Fate::Says(0, units.iter().map(|unit| shown(unit, asked)).collect::<Vec<_>>().join("\n"))
            }
            (Some("systemctl"), ["cat", .., unit]) => match found(unit) {
                (_, "?") => Fate::Says(1, String::new()),
                (_, text) => Fate::Says(0, format!("# /etc/systemd/system/{unit}\n{text}")),
            },
            _ => Fate::Answers,
        }
    }))
}

/// The reasons for which commands and the actions of a text ask.
async fn reasons(lines: &[&str], acts: &[UnitAction]) -> String {
    let target = machine();
    let facts = Facts { user: "root".to_owned(), family: "debian".to_owned(), ..Facts::default() };
    let lazy = LazyKnowledge::default();
    let mut assessment = RiskAssessment::new(Policy::builtin(), lazy.get(), &target, &facts);
    for line in lines {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assessment.reaches(&argv, line).await.unwrap();
    }
    assessment.acts(acts, &[], "a text").await.unwrap();
    let grave = assessment.risks.into_iter().filter(|(risk, _)| *risk >= Risk::High);
    grave.map(|(_, reason)| reason).collect::<Vec<_>>().join("\n")
}

/// Asserts which commands ask, and with which words.
async fn ask(rows: &[(&str, Option<&str>)]) {
    for (line, expected) in rows {
        let found = reasons(&[line], &[]).await;
        match expected {
            Some(words) => assert!(found.contains(words), "{line}: {found}"),
            None => assert_eq!(found, "", "{line}"),
        }
    }
}

#[tokio::test]
async fn the_commands_of_the_administrators_units_are_weighed() {
    ask(&[
        ("systemctl start -- plain", None),
        ("systemctl restart -- plain.service", None),
        ("systemctl reload -- plain.service", None),
        ("systemctl stop -- plain.service", None),
        ("systemctl enable -- plain.service", None),
        ("systemctl start -- nginx.service", None),
        ("systemctl start -- reboots", Some("reboots.service run `/usr/sbin/reboot`")),
        ("systemctl enable -- reboots.service", Some("/usr/sbin/reboot")),
        ("systemctl start -- offs.service", Some("systemctl stop ssh")),
        ("systemctl start -- wants.service", Some("/usr/sbin/reboot")),
        ("systemctl start -- wants.timer", Some("/usr/sbin/reboot")),
        ("systemctl start -- wraps.service", Some("/usr/sbin/reboot")),
        ("systemctl start -- loops.service", None),
        ("systemctl start -- webs.service", Some("nginx")),
        ("systemctl start -- unsure.service", None),
        ("systemctl start -- theirs.service", None),
        ("systemctl start -- strange.service", Some("/usr/sbin/reboot")),
        ("systemctl start -- hidden.service", Some("doesn't show which")),
        ("systemctl stop -- hidden.service", Some("doesn't show which")),
        ("systemctl reload -- hidden.service", Some("doesn't show which")),
        ("systemctl stop -- reboots.service", None),
        ("systemctl reload -- late.service", None),
        ("systemctl stop -- late.service", Some("systemctl stop ssh")),
        ("systemctl restart -- late.service", Some("systemctl stop ssh")),
        ("systemctl stop -- after.service", Some("/sbin/poweroff")),
        ("systemctl start -- after.service", Some("/sbin/poweroff")),
        ("systemctl reload -- reloads.service", Some("systemctl stop ssh")),
        ("systemctl reload -- front.service", Some("systemctl stop ssh")),
        ("systemctl stop -- reloads.service", None),
        ("systemctl stop -- hub.service", Some("systemctl stop ssh")),
        ("systemctl restart -- hub.service", Some("systemctl stop ssh")),
        ("systemctl start -- hub.service", None),
        // A service is known by its program as well.
        ("systemctl stop -- jump.service", Some("is the program of sshd.service")),
        ("systemctl restart -- jump.service", Some("is the program of sshd.service")),
        ("systemctl disable -- jump.service", Some("is the program of sshd.service")),
        ("systemctl start -- jump.service", None),
        ("systemctl reload -- jump.service", None),
        ("systemctl stop -- tunnel.service", None),
    ])
    .await;
    for (verb, unit, asks) in [
        ("start", "reboots.service", true),
        (text::TRIGGER, "reboots.service", true),
        ("start", "plain.service", false),
        ("stop", "late.service", true),
        ("stop", "jump.service", true),
        ("start", "unneeded.service", true),
        ("start", "remote.service", true),
        ("enable", "also.service", false),
    ] {
        let act = UnitAction { verb, unit: unit.to_owned(), at: "line 1".to_owned() };
        assert_eq!(!reasons(&[], &[act]).await.is_empty(), asks, "{verb} {unit}");
    }
}

#[tokio::test]
async fn a_timer_that_starts_what_root_runs_does_not_end_unasked() {
    let ends = Some("plain.service, a job of root's");
    ask(&[
        ("systemctl stop -- job.timer", ends),
        ("systemctl disable --now -- job.timer", ends),
        ("systemctl mask -- job.timer", ends),
        ("systemctl stop -- nginx.service job.timer", ends),
        ("systemctl disable -- shipped-own.timer", ends),
        ("systemctl disable -- blind.timer", Some("hidden.service, a job of root's")),
        ("systemctl restart -- job.timer", None),
        ("systemctl stop -- theirs.timer", None),
        ("systemctl stop -- shipped.timer", None),
        ("systemctl stop -- true.timer", None),
        ("systemctl stop -- plain.service", None),
    ])
    .await;
    let target = machine();
    let facts = Facts { user: "root".to_owned(), family: "debian".to_owned(), ..Facts::default() };
    let lazy = LazyKnowledge::default();
    let code = |text: &str| text::code_in_file("/etc/systemd/system/job.timer", text.as_bytes()).unwrap();
    let daily = "[Timer]\nOnCalendar=daily\nUnit=plain.service\n";
    for (timer, former, now, asks) in [
        ("job.timer", Some(daily), Some(daily), false),
        ("job.timer", Some(daily), Some("[Timer]\nOnCalendar=Sun 03:00\nUnit=plain.service\n"), false),
        ("job.timer", Some(daily), Some("[Timer]\nOnCalendar=2099-01-01\nUnit=plain.service\n"), true),
        ("job.timer", Some(daily), Some("[Timer]\nOnCalendar=daily\nUnit=webs.service\n"), true),
        ("job.timer", Some(daily), Some("[Timer]\nOnCalendar=daily\n"), true),
        ("job.timer", Some(daily), None, true),
        ("theirs.timer", Some(daily), None, false),
        // A drop-in.
        ("job.timer", None, Some("[Timer]\nRandomizedDelaySec=10y\n"), true),
        ("theirs.timer", None, Some("[Timer]\nRandomizedDelaySec=10y\n"), false),
    ] {
        let mut assessment = RiskAssessment::new(Policy::builtin(), lazy.get(), &target, &facts);
        let (former, after) = (former.map(code), now.map(code));
        assessment.timer_ends(timer, former.as_ref(), after.as_ref(), "a text").await;
        assert_eq!(!assessment.risks.is_empty(), asks, "{timer} {now:?}: {:?}", assessment.risks.first());
    }
}

#[tokio::test]
async fn what_ends_or_turns_with_a_unit_is_weighed() {
    ask(&[
        ("systemctl start -- ends.service", Some("systemctl stop -- ssh.service")),
        ("systemctl start -- unneeded.service", Some("systemctl stop -- ssh.service")),
        ("systemctl start -- listens.socket", Some("systemctl stop -- ssh.service")),
        // Now the other unit doesn't run, but it may at the next start of the machine, or at the next time of a timer.
        ("systemctl start -- turns.service", None),
        ("systemctl enable -- turns.service", Some("systemctl stop -- sshd.service")),
        ("systemctl start -- turns.timer", Some("systemctl stop -- sshd.service")),
        ("systemctl enable -- shipped.service", None),
        // What doesn't run doesn't stop, but it can't start without a unit that is masked.
        ("systemctl stop -- held.slice", None),
        ("systemctl mask -- held.slice", Some("systemctl stop -- sshd.service")),
    ])
    .await;
}

#[tokio::test]
async fn units_that_hold_up_the_start_of_the_machine_ask_when_they_are_enabled() {
    ask(&[
        ("systemctl start -- remote.service", None),
        ("systemctl enable -- remote.service", Some("systemd-user-sessions.service wait for remote.service")),
        ("systemctl enable -- first.service", Some("ssh.service wait for first.service")),
        ("systemctl enable -- mid.service", Some("ssh.service wait for mid.service")),
        ("systemctl enable -- wanted.service", Some("systemd-user-sessions.service wait for wanted.service")),
        ("systemctl enable -- jobs.service", Some("cron.service wait for jobs.service")),
        ("systemctl enable -- also.service", Some("cron.service wait for jobs.service")),
        ("systemctl enable -- slow.mount", Some("systemd-user-sessions.service wait for slow.mount")),
        ("systemctl enable -- fails.service", Some("nginx.service fail with it")),
        ("systemctl enable -- job.timer", None),
        ("systemctl enable -- watch.path", None),
        ("systemctl enable -- shipped-early.service", None),
        ("systemctl disable -- remote.service", None),
    ])
    .await;
}
