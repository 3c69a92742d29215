//! Tests the tools that change something against recordings of a booted Debian 12 with systemd 252: what each tool plans,
//! and what it answers after the change.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm;
use linux_sysadmin_sdk::knowledge::{Dependant, Interaction, InteractionKind, Profile, Unit};
use linux_sysadmin_sdk::testkit::{FakeTarget, output, profile, takes_little_context};
use linux_sysadmin_sdk::{Category, DurationCategory, prelude::*};
use module_services::module;
use serde_json::{Value, json};

type Answer<'a> = (&'a str, i32, &'a str, &'a str);

fn words(line: &str) -> Vec<&str> {
    line.split(' ').filter(|word| *word != "TZ=UTC").collect()
}

/// The recorded machine, with some answers replaced or added.
fn target(answers: &[Answer<'_>]) -> FakeTarget {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/debian12-systemd252-changing");
    let more = answers.iter().fold(FakeTarget::new(), |target, (line, code, stdout, stderr)| {
        target.answer(&words(line), *code, stdout, stderr)
    });
    fs::read_dir(folder).unwrap().fold(more, |target, entry| {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let (command, stdout) = text.strip_prefix("$ ").unwrap().split_once('\n').unwrap();
        target.answer(&words(command), 0, stdout, "")
    })
}

/// The command line that asks for a unit's state.
fn state_of(units: &str) -> String {
    granted(
        "systemctl show --property=Id,LoadState,LoadError,ActiveState,SubState,UnitFileState,Type,CanStart",
    )
    .replace("<unit>...", units)
}

fn afterwards(unit: &str) -> String {
    granted("TZ=UTC systemctl show --property=Id,LoadState,LoadError,ActiveState,SubState,UnitFileState,Type,Result")
        .replace("<unit>", unit)
}

/// The command that prints a unit's journal after a change, without the unit.
const JOURNAL: &str = "journalctl --no-pager --quiet --reverse --output=json \
    --output-fields=MESSAGE,PRIORITY,_SYSTEMD_UNIT,UNIT,_SYSTEMD_INVOCATION_ID,INVOCATION_ID,JOB_RESULT \
    --priority=debug --lines=300";

fn granted(start: &str) -> String {
    let commands = module().description().capabilities.commands;
    commands.into_iter().map(|grant| grant.pattern).find(|pattern| pattern.starts_with(start)).unwrap()
}

/// A call's data, notes and plans.
fn run(target: FakeTarget, tool: &str, arguments: Value) -> (Result<(Value, Vec<String>)>, Vec<Change>) {
    let plans = target.plans();
    let answer = target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes));
    (answer, plans.take())
}

fn of(service: &str) -> Value {
    json!({ "service": service })
}

fn root(line: &str) -> Command {
    let words = words(line);
    Command::new(words[0]).args(words[1..].iter().copied()).as_root().duration(DurationCategory::Normal)
}

fn step(line: &str) -> Step {
    Step::run(root(line)).uninterruptible()
}

fn write(path: &str, text: &str) -> Step {
    let verify = Command::new("systemd-analyze").args(["verify", "--man=no", "--", "{}"]).as_root();
    Step::write(path, text).validate(verify.duration(DurationCategory::Quick))
}

fn new(path: &str, text: &str) -> Step {
    write(path, text).mode(0o644).owner("root", "root")
}

fn plan(summary: &str) -> Change {
    Change::new(summary).lock(Lock::Systemd)
}

const RELOAD: &str = "systemctl daemon-reload";

fn dry() -> std::result::Result<confirm::Applied, Failure> {
    Ok(confirm::Applied { outputs: Vec::new(), dry_run: true })
}

fn broke(step: u32, exit_code: i32, said: &str) -> Failure {
    let output = output(exit_code, "", said);
    Failure {
        problem: Problem::new("COMMAND_FAILED", Category::Other, "systemctl ended with exit code 1"),
        step,
        outputs: vec![output],
        undone: Vec::new(),
        not_undone: Vec::new(),
        uncertain: false,
    }
}

#[test]
fn each_verb_is_one_plan_with_its_undo_and_what_goes_along() {
    let along = |change: Change| {
        let units = ["lsa-dep.service", "lsa-dep2.service", "lsa-part.service"];
        units.into_iter().fold(change, |change, unit| change.affects(unit))
    };
    let table = [
        (
            "svc_start",
            of("lsa-fails"),
            plan("Start lsa-fails.service").step(
                step("systemctl start -- lsa-fails.service")
                    .undo(root("systemctl stop -- lsa-fails.service")),
            ),
        ),
        (
            "svc_stop",
            of("lsa-app"),
            along(plan("Stop lsa-app.service").affects("lsa-app.service"))
                .step(
                    step("systemctl stop -- lsa-app.service")
                        .undo(root("systemctl start -- lsa-app.service")),
                )
                .warning("also stops: lsa-dep, lsa-dep2, lsa-part")
                .warning("lsa-t.timer can start it again"),
        ),
        (
            "svc_restart",
            of("lsa-app.service"),
            along(plan("Restart lsa-app.service").affects("lsa-app.service"))
                .step(step("systemctl restart -- lsa-app.service"))
                .warning("also restarts: lsa-dep, lsa-dep2, lsa-part"),
        ),
        (
            "svc_restart",
            of("lsa-fails"),
            plan("Restart lsa-fails.service").step(
                step("systemctl restart -- lsa-fails.service")
                    .undo(root("systemctl stop -- lsa-fails.service")),
            ),
        ),
        (
            "svc_reload",
            of("nginx"),
            plan("Reload nginx.service").step(step("systemctl reload -- nginx.service")),
        ),
        (
            "svc_enable",
            of("lsa-rival"),
            plan("Enable lsa-rival.service").step(
                step("systemctl enable -- lsa-rival.service")
                    .undo(root("systemctl disable -- lsa-rival.service")),
            ),
        ),
        (
            "svc_enable",
            json!({"service": "lsa-rival", "now": true}),
            along(plan("Enable and start lsa-rival.service").affects("lsa-app.service"))
                .step(
                    step("systemctl enable -- lsa-rival.service")
                        .undo(root("systemctl disable -- lsa-rival.service")),
                )
                .step(
                    step("systemctl start -- lsa-rival.service")
                        .undo(root("systemctl stop -- lsa-rival.service")),
                )
                .warning("also stops: lsa-app, lsa-dep, lsa-dep2, lsa-part"),
        ),
        (
            "svc_disable",
            of("lsa-app"),
            plan("Disable lsa-app.service").step(
                step("systemctl disable -- lsa-app.service")
                    .undo(root("systemctl enable -- lsa-app.service")),
            ),
        ),
        (
            "svc_disable",
            json!({"service": "nginx", "now": true}),
            plan("Disable and stop nginx.service")
                .affects("nginx.service")
                .step(
                    step("systemctl disable -- nginx.service")
                        .undo(root("systemctl enable -- nginx.service")),
                )
                .step(step("systemctl stop -- nginx.service").undo(root("systemctl start -- nginx.service"))),
        ),
    ];
    for (tool, arguments, expected) in table {
        let (answer, plans) = run(target(&[]), tool, arguments.clone());
        assert!(answer.is_ok(), "{tool} {arguments}: {answer:?}");
        assert_eq!(plans, [expected], "{tool} {arguments}");
    }
}

#[test]
fn a_profile_warns_of_those_who_depend_on_the_service_and_of_those_it_conflicts_with() {
    let dependant = |role: &str, profiles: &[&str]| Dependant {
        role: role.into(),
        why: "They ask it".into(),
        if_down: format!("{role} fails"),
        profiles: profiles.iter().map(|id| (*id).into()).collect(),
    };
    let with = |id: &str, kind, active| Interaction { with: id.into(), kind, what: format!("{id}!"), active };
    let unit = |name: &str, main| Unit {
        name: name.into(),
        aliases: Vec::new(),
        main,
        reload: true,
        optional: false,
        what: None,
    };
    let known = |name: &str| Profile {
        units: vec![unit(name, true), unit("lsa-dep.service", false)],
        dependants: vec![
            dependant("app", &["x", "a"]),
            dependant("web-clients", &[]),
            dependant("dns", &["b"]),
        ],
        interactions: vec![
            with("apache", InteractionKind::Conflicts, true),
            with("caddy", InteractionKind::Conflicts, false),
            with("certbot", InteractionKind::UsedBy, true),
        ],
        ..profile("known")
    };
    let warned = |name: &str, tool: &str, arguments: Value| {
        let (_, plans) = run(target(&[]).profile(known(name)), tool, arguments);
        let plan = format!("{:?}", plans[0]);
        let of = |text: &str| plan.contains(&format!("{text:?}"));
        let depends = of("a, x depend on it (app): app fails") && of("b depends on it (dns): dns fails");
        assert!(!plan.contains("web-clients") && !plan.contains("caddy!") && !plan.contains("certbot!"));
        let later = of("from the next boot on, a, x depend on it (app): app fails");
        let conflicts = of("apache is active and conflicts with it: apache!");
        (depends, later, conflicts)
    };
    let nginx = "nginx.service";
    assert_eq!(warned(nginx, "svc_stop", of("nginx")), (true, false, false));
    assert_eq!(warned(nginx, "svc_restart", of("nginx")), (true, false, false));
    assert_eq!(warned(nginx, "svc_reload", of("nginx")), (false, false, false));
    assert_eq!(warned(nginx, "svc_disable", of("nginx")), (false, true, false));
    let both = json!({"service": "nginx", "now": true});
    assert_eq!(warned(nginx, "svc_disable", both), (true, false, false));
    let fails = "lsa-fails.service";
    assert_eq!(warned(fails, "svc_start", of("lsa-fails")), (false, false, true));
    // A unit that is only a part of the service gives no warnings.
    assert_eq!(warned(nginx, "svc_stop", of("lsa-dep")), (false, false, false));
}

#[test]
fn what_holds_already_is_a_success_with_a_note_and_no_plan() {
    let table = [
        ("svc_start", of("nginx"), "nginx.service is active already"),
        ("svc_stop", of("lsa-rival"), "lsa-rival.service isn't running: it is inactive"),
        ("svc_stop", of("lsa-masked"), "lsa-masked.service isn't running: it is inactive"),
        ("svc_enable", of("nginx"), "nginx.service is enabled already"),
        (
            "svc_enable",
            json!({"service": "nginx", "now": true}),
            "nginx.service is enabled and active already",
        ),
        ("svc_disable", of("lsa-rival"), "lsa-rival.service isn't enabled: its unit file is disabled"),
        ("svc_disable", of("lsa-masked"), "lsa-masked.service isn't enabled: its unit file is masked"),
        (
            "svc_disable",
            of("lsa-fails"),
            "lsa-fails.service is static: it is enabled nowhere, what needs it starts it",
        ),
    ];
    for (tool, arguments, note) in table {
        let (answer, plans) = run(target(&[]), tool, arguments.clone());
        let (data, notes) = answer.unwrap();
        assert_eq!((notes.as_slice(), plans.len()), (&[note.to_owned()][..], 0), "{tool} {arguments}");
        assert!(
            data["before"].is_null() && data["would"].is_null() && data["active_state"].is_string(),
            "{data}"
        );
    }
}

#[test]
fn what_systemd_would_refuse_or_ignore_is_a_problem_and_no_plan() {
    let table = [
        ("svc_start", "lsa-masked", "UNIT_MASKED"),
        ("svc_start", "lsa-manual", "UNIT_REFUSES_START"),
        ("svc_start", "lsa-bad", "UNIT_NOT_LOADED"),
        ("svc_restart", "lsa-masked", "UNIT_MASKED"),
        ("svc_reload", "lsa-app", "RELOAD_NOT_SUPPORTED"),
        ("svc_enable", "lsa-masked", "UNIT_MASKED"),
        ("svc_enable", "lsa-fails", "UNIT_STATIC"),
        ("svc_enable", "lsa-indirect", "UNIT_INDIRECT"),
        ("svc_enable", "lsa-sysv", "UNIT_GENERATED"),
        ("svc_disable", "lsa-sysv", "UNIT_GENERATED"),
        ("svc_start", "getty@", "INVALID_UNIT_NAME"),
        ("svc_start", "-Hhost", "INVALID_UNIT_NAME"),
        ("svc_stop", "a b", "INVALID_UNIT_NAME"),
        ("svc_enable", "*", "INVALID_UNIT_NAME"),
    ];
    for (tool, service, code) in table {
        let (answer, plans) = run(target(&[]), tool, of(service));
        assert_eq!((answer.unwrap_err().code.as_str(), plans.len()), (code, 0), "{tool} {service}");
    }
    let (answer, _) = run(target(&[]), "svc_reload", of("lsa-app"));
    let remedies = answer.unwrap_err().remediation;
    assert_eq!(remedies, ["Restart it instead, which interrupts it: svc_restart service=lsa-app"]);
    let (answer, _) = run(target(&[]), "svc_enable", of("lsa-fails"));
    assert!(answer.unwrap_err().message.contains("has no [Install] section"));
    let (answer, _) = run(target(&[]), "svc_enable", of("lsa-sysv"));
    assert_eq!(answer.unwrap_err().remediation, ["On the target: update-rc.d lsa-sysv enable"]);
}

#[test]
fn an_unknown_unit_is_answered_with_similar_ones() {
    let units = "systemctl list-units --all --plain --no-legend --full --no-pager --output=json";
    let loaded = r#"[{"unit":"nosuchd.service","load":"loaded"}]"#;
    for tool in ["svc_start", "svc_stop", "svc_restart", "svc_reload", "svc_enable", "svc_disable"] {
        let (answer, plans) = run(target(&[(units, 0, loaded, "")]), tool, of("nosuch"));
        let problem = answer.unwrap_err();
        assert_eq!((problem.code.as_str(), plans.len()), ("UNIT_NOT_FOUND", 0), "{tool}");
        assert_eq!(problem.remediation[0], "Similar units: nosuchd");
    }
}

#[test]
fn an_alias_is_planned_by_the_units_own_name() {
    let around = state_of("multi-user.target graphical.target");
    let shown = "Id=multi-user.target\nActiveState=active\n\nId=graphical.target\nActiveState=inactive\n";
    let (answer, plans) = run(target(&[(&around, 0, shown, "")]), "svc_start", of("lsa-quiet.target"));
    answer.unwrap();
    let expected = plan("Start rescue.target")
        .step(step("systemctl start -- rescue.target").undo(root("systemctl stop -- rescue.target")))
        .warning("also stops: multi-user.target")
        .affects("multi-user.target");
    assert_eq!(plans, [expected]);
}

#[test]
fn the_way_to_the_machine_is_guarded_and_warned_of() {
    let running = |id: &str| {
        format!(
            "Id={id}\nActiveState=active\nSubState=running\nUnitFileState=enabled\nCanStart=yes\nCanStop=yes\n"
        )
    };
    let stop = |unit: &str| {
        step(&format!("systemctl stop -- {unit}")).undo(root(&format!("systemctl start -- {unit}")))
    };
    let unit = "NetworkManager.service";
    let shown = running(unit);
    let line = state_of(unit);
    let answers = [(line.as_str(), 0, shown.as_str(), "")];
    let (_, plans) = run(target(&answers), "svc_stop", of("NetworkManager"));
    let network = |summary: &str, verb: &str| {
        plan(summary)
            .warning(format!("{verb} {unit}: the machine can lose its network"))
            .affects(unit)
            .guard(60)
    };
    assert_eq!(plans, [network("Stop NetworkManager.service", "stop").step(stop(unit))]);
    let (_, plans) = run(target(&answers), "svc_restart", of("NetworkManager"));
    let restart = "systemctl restart -- NetworkManager.service";
    let expected = network("Restart NetworkManager.service", "restart");
    assert_eq!(plans, [expected.step(step(restart).undo(root(restart)))], "a second attempt is all there is");

    let (_, plans) = run(target(&[]), "svc_stop", of("ssh"));
    let expected = plan("Stop ssh.service")
        .warning("stop ssh.service: nobody can log in by ssh any more")
        .affects("ssh.service")
        .step(stop("ssh.service"));
    assert_eq!(plans, [expected]);
}

#[test]
fn what_would_cut_off_along_is_guarded_as_well() {
    let first =
        "Id=app.service\nActiveState=active\nCanStop=yes\nCanStart=yes\nRequiredBy=networking.service\n";
    let second = "Id=networking.service\nActiveState=active\n";
    let (one, two) = (state_of("app.service"), state_of("networking.service"));
    let answers = [(one.as_str(), 0, first, ""), (two.as_str(), 0, second, "")];
    let (_, plans) = run(target(&answers), "svc_stop", of("app"));
    let expected = plan("Stop app.service")
        .step(step("systemctl stop -- app.service").undo(root("systemctl start -- app.service")))
        .affects("app.service")
        .affects("networking.service")
        .warning("also stops: networking")
        .warning("stop networking.service: the machine can lose its network")
        .guard(60);
    assert_eq!(plans, [expected]);
}

#[test]
fn the_answer_says_what_has_become_of_it_and_what_was() {
    let (answer, _) = run(target(&[]), "svc_restart", of("nginx"));
    let expected = json!({
        "service": "nginx", "active_state": "active", "sub_state": "running", "enabled": "enabled",
        "before": {"active_state": "active", "sub_state": "running", "enabled": "enabled"},
    });
    assert_eq!(answer.unwrap(), (expected, Vec::new()));

    let (answer, _) = run(target(&[]), "svc_start", of("lsa-fails"));
    let (data, notes) = answer.unwrap();
    assert_eq!(
        (&data["active_state"], &data["result"], &data["exit_code"]),
        (&json!("failed"), &json!("exit-code"), &json!(3))
    );
    assert_eq!(data["last_output"], json!(["no database"]));
    let note = "lsa-fails was started and ended badly at once";
    assert_eq!(notes, [note]);
    let line = format!("{JOURNAL} --unit=lsa-fails.service");
    let (answer, _) = run(target(&[(&line, 0, "", "")]), "svc_start", of("lsa-fails"));
    assert_eq!(answer.unwrap().1, [format!("{note}: see svc_status service=lsa-fails")]);

    let (answer, _) = run(target(&[]), "svc_start", of("lsa-ran"));
    let (data, notes) = answer.unwrap();
    assert_eq!((&data["sub_state"], &data["result"], notes.len()), (&json!("dead"), &json!("success"), 0));

    // systemd unloads a unit that nothing needs at once, and forgets how it ended and why it didn't start.
    let (answer, _) = run(target(&[]), "svc_start", of("lsa-gone"));
    let (data, notes) = answer.unwrap();
    let note = "lsa-gone has run to its end, or a condition of its unit file isn't met";
    assert_eq!((&data["result"], notes), (&Value::Null, vec![note.to_owned()]));
    let (answer, _) = run(target(&[]), "svc_start", of("lsa-cond"));
    let note = "lsa-cond was started and is inactive: it has ended already, or a condition of its unit file isn't met; \
                see svc_status service=lsa-cond";
    assert_eq!(answer.unwrap().1, [note]);
    let line = afterwards("lsa-cond.service");
    let shown = "Id=lsa-cond.service\nType=simple\nActiveState=inactive\nConditionResult=no\n\
                 ConditionTimestamp=Fri 2026-11-20 22:52:42 UTC\n";
    let (answer, _) = run(target(&[(&line, 0, shown, "")]), "svc_start", of("lsa-cond"));
    let note =
        "lsa-cond was not started: a condition of its unit file isn't met; see svc_status service=lsa-cond";
    assert_eq!(answer.unwrap().1, [note]);
}

#[test]
fn a_change_that_cannot_be_looked_at_is_no_failure() {
    let line = afterwards("lsa-rival.service");
    let answers = [(line.as_str(), 1, "", "Failed to get properties:\nTimed out")];
    let (answer, plans) = run(target(&answers), "svc_enable", of("lsa-rival"));
    let (data, notes) = answer.unwrap();
    assert_eq!((plans.len(), &data["active_state"]), (1, &json!("unknown")));
    assert!(
        notes[0].starts_with("the change was made, but the state afterwards could not be read: "),
        "{notes:?}"
    );
}

#[test]
fn a_dry_run_says_what_would_be_and_the_states_of_now() {
    let (answer, plans) =
        run(target(&[]).outcome(dry()), "svc_disable", json!({"service": "nginx", "now": true}));
    let expected = json!({
        "service": "nginx", "would": "disable and stop", "active_state": "active", "sub_state": "running",
        "enabled": "enabled",
    });
    assert_eq!((answer.unwrap(), plans.len()), ((expected, Vec::new()), 1));
    let (answer, _) = run(target(&[]).outcome(dry()), "svc_stop", of("lsa-app"));
    assert_eq!(answer.unwrap().0["along"], json!(["lsa-dep", "lsa-dep2", "lsa-part"]));
}

#[test]
fn a_start_that_failed_says_why_and_where_to_look() {
    let said = "Job for lsa-notify.service failed because the control process exited with error code.\n\
                See \"systemctl status lsa-notify.service\" and \"journalctl -xeu lsa-notify.service\" for details.\n";
    let (answer, _) = run(target(&[]).outcome(Err(broke(0, 1, said))), "svc_start", of("lsa-notify"));
    let problem = answer.unwrap_err();
    assert_eq!((problem.code.as_str(), problem.category), ("SERVICE_START_FAILED", Category::State));
    let failed = "systemctl start lsa-notify.service failed (exit-code, exit code 4)";
    let wrote =
        "checking the lock; shop-backup: /run/lock/shop-backup.lock: another backup runs as process 4190000";
    assert_eq!(problem.message, format!("{failed}: {wrote}"));
    let remedies = [
        "Look at its state: svc_status service=lsa-notify",
        "Find out why: svc_troubleshoot service=lsa-notify",
        "Read its log: svc_logs service=lsa-notify",
    ];
    assert_eq!(problem.remediation, remedies);

    let hint =
        "See \"systemctl status lsa-notify.service\" and \"journalctl -xeu lsa-notify.service\" for details.";
    let often = "Job for lsa-notify.service failed because start of the service was attempted too often.";
    let dependency = "A dependency job for lsa-notify.service failed. See 'journalctl -xe' for details.";
    let journal = format!("{JOURNAL} --unit=lsa-notify.service");
    let unreadable =
        [(journal.as_str(), 1, "", "No journal files were opened due to insufficient permissions.\n")];
    for (said, told) in [
        (said.to_owned(), String::new()),
        (format!("{often}\n{hint}\n"), format!(": {often}")),
        (dependency.to_owned(), format!(": {dependency}")),
    ] {
        let (answer, _) =
            run(target(&unreadable).outcome(Err(broke(0, 1, &said))), "svc_start", of("lsa-notify"));
        assert_eq!(answer.unwrap_err().message, format!("{failed}{told}"));
    }

    let arguments = json!({"service": "lsa-notify", "now": true});
    let (answer, _) = run(target(&[]).outcome(Err(broke(1, 1, said))), "svc_enable", arguments.clone());
    assert_eq!(answer.unwrap_err().code, "SERVICE_START_FAILED", "the step that broke");
    let (answer, _) = run(target(&[]).outcome(Err(broke(0, 1, said))), "svc_enable", arguments);
    let problem = answer.unwrap_err();
    assert_eq!(problem.code, "SERVICE_ENABLE_FAILED");
    assert!(!problem.message.contains("lock") && problem.remediation.len() == 1, "{problem:?}");
}

#[test]
fn what_the_host_knows_better_is_left_to_it() {
    let lost = Failure { uncertain: true, ..broke(0, 1, "") };
    let timeout = Failure { problem: Problem::new("TIMEOUT", Category::Timeout, "late"), ..broke(0, 1, "") };
    let cancelled =
        Failure { problem: Problem::new("CANCELLED", Category::Other, "cancelled"), ..broke(0, 0, "") };
    for (failure, code) in [(lost, "COMMAND_FAILED"), (timeout, "TIMEOUT"), (cancelled, "CANCELLED")] {
        let (answer, _) = run(target(&[]).outcome(Err(failure)), "svc_start", of("lsa-notify"));
        assert_eq!(answer.unwrap_err().code, code);
    }
}

#[test]
fn a_new_unit_is_written_checked_and_made_known_but_not_started() {
    let arguments = json!({
        "service": "lsa-new", "description": "An app", "exec_start": "/usr/bin/app --port 80", "user": "app",
        "working_directory": "/srv/app", "after": ["network-online.target", "postgresql.service"],
        "restart": "on-failure", "type": "notify",
    });
    let text = "[Unit]\nDescription=An app\nAfter=network-online.target postgresql.service\n\n\
                [Service]\nType=notify\nExecStart=/usr/bin/app --port 80\nUser=app\nWorkingDirectory=/srv/app\n\
                Restart=on-failure\n\n[Install]\nWantedBy=multi-user.target\n";
    let path = "/etc/systemd/system/lsa-new.service";
    let after = afterwards("lsa-new.service");
    let verify = format!("systemd-analyze verify --man=no -- {path}");
    let shown = "Id=lsa-new.service\nLoadState=loaded\nActiveState=inactive\nUnitFileState=disabled\n";
    let remark = format!("{path}:5: Failed to parse x, ignoring\n/lib/systemd/system/other.service:1: y\n");
    let answers = [(after.as_str(), 0, shown, ""), (verify.as_str(), 0, "", remark.as_str())];
    let (answer, plans) = run(target(&answers), "svc_create_unit", arguments.clone());
    let expected = plan("Create the unit lsa-new.service")
        .step(new(path, text))
        .step(step(RELOAD))
        .after_undo(root(RELOAD));
    assert_eq!(plans, [expected]);
    let (data, notes) = answer.unwrap();
    let expected = json!({
        "unit": "lsa-new", "path": path, "load_state": "loaded", "active_state": "inactive", "enabled": "disabled",
    });
    assert_eq!(data, expected);
    let remark = format!("{path}:5: Failed to parse x, ignoring");
    let how =
        "it is neither started nor enabled: svc_start service=lsa-new, svc_enable service=lsa-new now=true";
    assert_eq!(notes, [remark.as_str(), how]);

    let (answer, plans) = run(target(&[]).outcome(dry()), "svc_create_unit", arguments);
    let expected = json!({"unit": "lsa-new", "path": path, "would": "create"});
    assert_eq!((answer.unwrap(), plans.len()), ((expected, Vec::new()), 1));
}

#[test]
fn a_unit_without_a_user_is_said_to_run_as_root() {
    let text = "[Service]\nExecStart=/bin/a\n";
    let path = "/etc/systemd/system/lsa-new.service";
    let expected = |text: &str| {
        plan("Create the unit lsa-new.service")
            .step(new(path, text))
            .warning("lsa-new.service runs as root: /bin/a")
            .step(step(RELOAD))
            .after_undo(root(RELOAD))
    };
    let arguments = json!({"service": "lsa-new.service", "exec_start": "/bin/a", "wanted_by": []});
    let (_, plans) = run(target(&[]), "svc_create_unit", arguments);
    assert_eq!(plans, [expected(text)]);
    let whole = "# Mine\r\n[Service]\r\nExecStart=/bin/a";
    let arguments = json!({"service": "lsa-new", "exec_start": "/bin/b", "user": "x", "raw_content": whole});
    let (answer, plans) = run(target(&[]), "svc_create_unit", arguments);
    assert_eq!(plans, [expected(whole)]);
    assert_eq!(answer.unwrap().1[0], "raw_content is the whole file: exec_start, user was ignored");
}

#[test]
fn a_slice_that_units_name_and_no_file_defines_can_be_written() {
    let arguments = json!({"service": "batch.slice", "raw_content": "[Slice]\nCPUWeight=20\n"});
    let (_, plans) = run(target(&[]), "svc_create_unit", arguments);
    assert!(format!("{plans:?}").contains("/etc/systemd/system/batch.slice"), "{plans:?}");
}

#[test]
fn what_is_no_new_unit_is_refused_and_nothing_is_planned() {
    let good = |name: &str| json!({"service": name, "exec_start": "/bin/a"});
    let with = |key: &str, value: &str| json!({"service": "lsa-new", "exec_start": "/bin/a", key: value});
    let table = [
        (good("nginx"), "UNIT_EXISTS"),
        (good("lsa-masked"), "UNIT_EXISTS"),
        (json!({"service": "system.slice", "raw_content": "[Slice]\nMemoryMax=1G\n"}), "UNIT_EXISTS"),
        (good("lsa-quiet.mount"), "INVALID_UNIT_TYPE"),
        (good("../lsa-new"), "INVALID_UNIT_NAME"),
        (good("lsa-new@"), "INVALID_UNIT_NAME"),
        (good("lsa-new.timer"), "NOT_A_SERVICE"),
        (json!({"service": "lsa-new"}), "MISSING_EXEC_START"),
        (json!({"service": "lsa-new", "raw_content": "nothing"}), "INVALID_VALUE"),
        (json!({"service": "lsa-new", "exec_start": "app"}), "INVALID_VALUE"),
        (with("description", "x\n[Service]\nExecStartPre=/bin/evil"), "INVALID_VALUE"),
        (with("description", "x\\"), "INVALID_VALUE"),
        (with("user", "app\nExecStartPre=/bin/evil"), "INVALID_VALUE"),
        (with("working_directory", "/x\r\nUser=root"), "INVALID_VALUE"),
        (with("after", "a.service\nExecStart=/bin/evil"), "INVALID_VALUE"),
        (with("wanted_by", "multi-user"), "INVALID_VALUE"),
        (with("type", "simple\\"), "INVALID_VALUE"),
        (with("restart", "sometimes"), "INVALID_VALUE"),
    ];
    for (arguments, code) in table {
        let (answer, plans) = run(target(&[]), "svc_create_unit", arguments.clone());
        assert_eq!((answer.unwrap_err().code.as_str(), plans.len()), (code, 0), "{arguments}");
    }
    let (answer, _) = run(target(&[]), "svc_create_unit", good("nginx"));
    let problem = answer.unwrap_err();
    assert_eq!(problem.message, "there is a unit nginx.service already: /lib/systemd/system/nginx.service");
    assert_eq!(problem.remediation[0], "Change that one: svc_edit_unit service=nginx");
    let there = target(&[]).recording("==> /etc/systemd/system/lsa-new.service <==\n[Unit]\n");
    let (answer, _) = run(there, "svc_create_unit", good("lsa-new"));
    assert_eq!(answer.unwrap_err().code, "UNIT_EXISTS", "though systemd hasn't read it yet");
}

const APP: &str = "==> /etc/systemd/system/lsa-app.service <==\n\
    # Mine\n[Unit]\nDescription=An app\n\n[Service]\nExecStart=/bin/sleep \\\n  infinity\nNice=5\n\n\
    [Install]\nWantedBy=multi-user.target\n";

#[test]
fn an_edit_changes_the_given_fields_of_the_file_and_says_what_does_not_follow_by_itself() {
    let arguments = json!({"service": "lsa-app", "user": "app", "wanted_by": "graphical.target"});
    let text = "# Mine\n[Unit]\nDescription=An app\n\n[Service]\nExecStart=/bin/sleep \\\n  infinity\nNice=5\nUser=app\n\n\
                [Install]\nWantedBy=graphical.target\n";
    let path = "/etc/systemd/system/lsa-app.service";
    let (answer, plans) = run(target(&[]).recording(APP), "svc_edit_unit", arguments);
    let expected = plan("Edit the unit lsa-app.service")
        .step(write(path, text))
        .step(step(RELOAD))
        .after_undo(root(RELOAD));
    assert_eq!(plans, [expected]);
    let (data, notes) = answer.unwrap();
    assert_eq!(
        (&data["path"], &data["active_state"], &data["instead_of"]),
        (&json!(path), &json!("active"), &Value::Null)
    );
    let expected = [
        "it runs as before until it is restarted: svc_restart service=lsa-app",
        "it stays enabled as before until it is enabled anew: svc_disable service=lsa-app, svc_enable service=lsa-app",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn an_edit_to_what_holds_writes_nothing_and_an_edit_of_nothing_is_a_mistake() {
    let arguments = json!({"service": "lsa-app", "description": "An app"});
    let (answer, plans) = run(target(&[]).recording(APP), "svc_edit_unit", arguments);
    assert_eq!(
        (answer.unwrap().1, plans.len()),
        (vec!["its file says so already: nothing was written".to_owned()], 0)
    );
    let table = [
        (json!({"service": "lsa-app"}), "NOTHING_TO_CHANGE"),
        (json!({"service": "lsa-app", "exec_start": ""}), "MISSING_EXEC_START"),
        (json!({"service": "lsa-app", "user": "a\nb"}), "INVALID_VALUE"),
        (json!({"service": "lsa-sock.socket", "user": "a"}), "NOT_A_SERVICE"),
        (json!({"service": "lsa-masked", "user": "a"}), "UNIT_MASKED"),
        (json!({"service": "lsa-sysv", "user": "a"}), "UNIT_NOT_EDITABLE"),
        (json!({"service": "getty@tty1", "user": "a"}), "UNIT_NOT_EDITABLE"),
    ];
    for (arguments, code) in table {
        let (answer, plans) = run(target(&[]).recording(APP), "svc_edit_unit", arguments.clone());
        assert_eq!((answer.unwrap_err().code.as_str(), plans.len()), (code, 0), "{arguments}");
    }
}

#[test]
fn a_vendors_unit_is_edited_in_a_copy_that_comes_before_it() {
    let vendors =
        "==> /lib/systemd/system/nginx.service <==\n[Service]\nExecStart=/usr/sbin/nginx\nRestart=no\n";
    let path = "/etc/systemd/system/nginx.service";
    let whole = json!({"service": "nginx", "restart": "always"});
    let (answer, plans) = run(target(&[]).recording(vendors), "svc_edit_unit", whole);
    let expected = plan("Edit the unit nginx.service")
        .step(new(path, "[Service]\nExecStart=/usr/sbin/nginx\nRestart=always\n"))
        .warning(
            "/etc/systemd/system/nginx.service is read instead of /lib/systemd/system/nginx.service from now on, \
             whatever a package update brings",
        )
        .step(step(RELOAD))
        .after_undo(root(RELOAD));
    assert_eq!(plans, [expected]);
    assert_eq!(answer.unwrap().0["instead_of"], "/lib/systemd/system/nginx.service");
}

#[test]
fn what_is_not_text_is_replaced_as_a_whole_or_not_at_all() {
    let odd = "==> /etc/systemd/system/lsa-app.service <==\n# caf\u{fffd}\n[Service]\nExecStart=/bin/a\n";
    let (answer, plans) =
        run(target(&[]).recording(odd), "svc_edit_unit", json!({"service": "lsa-app", "user": "a"}));
    assert_eq!((answer.unwrap_err().code.as_str(), plans.len()), ("UNIT_FILE_NOT_TEXT", 0));
    let whole = json!({"service": "lsa-app", "raw_content": "[Service]\nExecStart=/bin/a\n"});
    let (answer, plans) = run(target(&[]).recording(odd), "svc_edit_unit", whole);
    assert!(answer.is_ok() && plans.len() == 1);
}

const CALENDAR: &str = "systemd-analyze calendar --iterations=3 -- daily";
const DAILY: &str = "  Original form: daily\nNormalized form: *-*-* 00:00:00\n    \
    Next elapse: Sat 2026-11-21 00:00:00 UTC\n       From now: 1h 30min left\n       \
    Iter. #2: Sun 2026-11-22 00:00:00 UTC\n       From now: 1 day 1h left\n       \
    Iter. #3: Mon 2026-11-23 00:00:00 UTC\n       From now: 2 days left\n";

fn with_calendar() -> FakeTarget {
    target(&[(CALENDAR, 0, DAILY, "")])
}

#[test]
fn a_timer_is_written_enabled_and_started_for_a_unit_that_is_there() {
    let arguments = json!({
        "name": "lsa-new", "on_calendar": "daily", "on_boot_sec": "15min", "persistent": true,
        "randomized_delay_sec": "5min", "description": "Rotate", "service": "logrotate",
    });
    let text = "[Unit]\nDescription=Rotate\n\n[Timer]\nOnCalendar=daily\nOnBootSec=15min\nRandomizedDelaySec=5min\n\
                Persistent=true\nUnit=logrotate.service\n\n[Install]\nWantedBy=timers.target\n";
    let path = "/etc/systemd/system/lsa-new.timer";
    let (answer, plans) = run(with_calendar(), "timer_create", arguments.clone());
    let expected = plan("Create the timer lsa-new.timer")
        .step(new(path, text))
        .step(step(RELOAD))
        .step(step("systemctl enable -- lsa-new.timer").undo(root("systemctl disable -- lsa-new.timer")))
        .step(step("systemctl start -- lsa-new.timer").undo(root("systemctl stop -- lsa-new.timer")))
        .warning("where the time since boot (OnBootSec) has passed already, it runs at once")
        .after_undo(root(RELOAD));
    assert_eq!(plans, [expected]);
    let (data, _) = answer.unwrap();
    let next = json!(["2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z", "2026-11-23T00:00:00Z"]);
    assert_eq!(
        (&data["unit"], &data["activates"], &data["next"]),
        (&json!("lsa-new.timer"), &json!("logrotate.service"), &next)
    );

    let (answer, _) = run(with_calendar().outcome(dry()), "timer_create", arguments);
    let expected = json!({
        "unit": "lsa-new.timer", "path": path, "would": "create", "activates": "logrotate.service", "next": next,
    });
    assert_eq!(answer.unwrap(), (expected, Vec::new()));
}

#[test]
fn a_timer_can_bring_its_service() {
    let arguments = json!({
        "name": "lsa-new.timer", "on_calendar": ["daily"], "exec_start": "/usr/local/bin/backup",
        "working_directory": "/srv", "description": "Back up", "enable": false,
    });
    let (answer, plans) = run(with_calendar(), "timer_create", arguments);
    let service = "[Unit]\nDescription=Back up\n\n[Service]\nType=oneshot\nExecStart=/usr/local/bin/backup\n\
                   WorkingDirectory=/srv\n";
    let timer =
        "[Unit]\nDescription=Back up\n\n[Timer]\nOnCalendar=daily\n\n[Install]\nWantedBy=timers.target\n";
    let expected = plan("Create the timer lsa-new.timer")
        .step(new("/etc/systemd/system/lsa-new.service", service))
        .warning("lsa-new.service runs as root: /usr/local/bin/backup")
        .step(new("/etc/systemd/system/lsa-new.timer", timer))
        .step(step(RELOAD))
        .after_undo(root(RELOAD));
    assert_eq!(plans, [expected]);
    let (data, notes) = answer.unwrap();
    assert_eq!(data["activates"], "lsa-new.service");
    let how = "it is neither started nor enabled: svc_enable service=lsa-new.timer now=true";
    assert_eq!(notes.last().map(String::as_str), Some(how));
}

#[test]
fn what_is_no_timer_is_refused_and_nothing_is_planned() {
    let with = |key: &str, value: Value| {
        let mut arguments = json!({"name": "lsa-new", "service": "logrotate", "on_calendar": "daily"});
        arguments[key] = value;
        arguments
    };
    let table = [
        (with("name", json!("logrotate")), "UNIT_EXISTS"),
        (with("name", json!("lsa-new.service")), "INVALID_UNIT_TYPE"),
        (with("on_calendar", json!("dxaily")), "INVALID_CALENDAR"),
        (with("on_calendar", json!("daily\nUnit=rescue.target")), "INVALID_VALUE"),
        (with("on_boot_sec", json!("5 parsecs")), "INVALID_VALUE"),
        (with("on_calendar", json!([])), "MISSING_SCHEDULE"),
        (with("service", json!("nosuch")), "UNIT_NOT_FOUND"),
        (with("service", json!("lsa-masked")), "UNIT_MASKED"),
        (with("service", json!("lsa-new.timer")), "INVALID_VALUE"),
        (with("exec_start", json!("/bin/a")), "TWO_SERVICES"),
        (with("user", json!("app")), "MISSING_EXEC_START"),
        (json!({"name": "lsa-new", "on_calendar": "daily"}), "UNIT_NOT_FOUND"),
    ];
    let said = "Failed to parse calendar specification 'dxaily': Invalid argument\n";
    let wrong = CALENDAR.replace("daily", "dxaily");
    for (arguments, code) in table {
        let target = target(&[(CALENDAR, 0, DAILY, ""), (wrong.as_str(), 1, "", said)]);
        let (answer, plans) = run(target, "timer_create", arguments.clone());
        assert_eq!((answer.unwrap_err().code.as_str(), plans.len()), (code, 0), "{arguments}");
    }
}

#[test]
fn a_modified_timer_is_restarted_so_that_its_schedule_holds() {
    let file = "==> /etc/systemd/system/lsa-t.timer <==\n# Mine\n[Timer]\nOnCalendar=weekly\nUnit=lsa-app.service\n\n\
                [Install]\nWantedBy=timers.target\n";
    let text =
        "# Mine\n[Timer]\nOnCalendar=daily\nUnit=lsa-app.service\n\n[Install]\nWantedBy=timers.target\n";
    let arguments = json!({"name": "lsa-t", "on_calendar": "daily"});
    let (answer, plans) = run(with_calendar().recording(file), "timer_modify", arguments);
    let restart = "systemctl restart -- lsa-t.timer";
    let expected = plan("Modify the timer lsa-t.timer")
        .step(write("/etc/systemd/system/lsa-t.timer", text))
        .step(step(RELOAD))
        .step(step(restart))
        .after_undo(root(RELOAD))
        .after_undo(root(restart));
    assert_eq!(plans, [expected]);
    let (data, notes) = answer.unwrap();
    assert_eq!((&data["activates"], &data["active_state"]), (&json!("lsa-app.service"), &json!("active")));
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn a_vendors_timer_is_modified_in_a_copy() {
    let file = "==> /lib/systemd/system/logrotate.timer <==\n[Timer]\nOnCalendar=weekly\nPersistent=true\n";
    let arguments = json!({"name": "logrotate", "on_calendar": "daily", "randomized_delay_sec": "1h"});
    let (answer, plans) = run(with_calendar().recording(file).outcome(dry()), "timer_modify", arguments);
    let data = answer.unwrap().0;
    assert_eq!(
        (&data["would"], &data["instead_of"]),
        (&json!("edit"), &json!("/lib/systemd/system/logrotate.timer"))
    );
    let text = "[Timer]\nOnCalendar=daily\nPersistent=true\nRandomizedDelaySec=1h\n";
    let written = format!("{:?}", plans[0]);
    assert!(written.contains(&format!("{:?}", text.as_bytes())), "{written}");
}

#[test]
fn a_timer_is_not_modified_to_elapse_never() {
    let file = "==> /etc/systemd/system/lsa-t.timer <==\n[Timer]\nOnCalendar=weekly\n";
    let arguments = json!({"name": "lsa-t", "on_calendar": []});
    let (answer, plans) = run(with_calendar().recording(file), "timer_modify", arguments);
    assert_eq!((answer.unwrap_err().code.as_str(), plans.len()), ("MISSING_SCHEDULE", 0));
}

#[test]
fn a_schema_costs_little() {
    for tool in module().description().tools {
        takes_little_context(&tool);
    }
}
