//! `machine_reboot` and `machine_shutdown` as the host calls them. The outputs are those of systemd 252.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm;
use linux_sysadmin_sdk::testkit::{FakeTarget, takes_little_context};
use linux_sysadmin_sdk::{Change, Command, Lock, Problem, Step};
use module_machine::module;
use serde_json::{Value, json};

const BOOT: &str = "==> /proc/sys/kernel/random/boot_id <==\n2f9d2a7c-6b1e-4a53-9c0f-5f0c7f4d1e8a\n";
const NEXT_BOOT: &str = "==> /proc/sys/kernel/random/boot_id <==\nd3c1a2b4-0f5e-4a53-9c0f-5f0c7f4d1e8a\n";
const STATES: [&str; 8] = [
    "systemctl",
    "show",
    "--property=Id,ActiveState,SubState,Result,UnitFileState,WantedBy,RequiredBy,TriggeredBy",
    "--",
    "*.service",
    "*.socket",
    "*.mount",
    "*.timer",
];
const WAIT: [&str; 3] = ["systemctl", "is-system-running", "--wait"];

/// One unit as `systemctl show` prints it: its name, its states, and whether and by what it is started at boot.
fn unit(name: &str, [active, sub, result]: [&str; 3], enabled: &str, wanted: &str) -> String {
    format!(
        "Result={result}\nId={name}\nRequiredBy=\nWantedBy={wanted}\nTriggeredBy=\nActiveState={active}\n\
         SubState={sub}\nUnitFileState={enabled}\n\n"
    )
}

const UP: [&str; 3] = ["active", "running", "success"];

fn before() -> String {
    [
        unit("ssh.service", UP, "enabled", "multi-user.target"),
        unit("shop.service", UP, "enabled", "multi-user.target"),
        unit("byhand.service", UP, "disabled", ""),
        unit("backend.service", UP, "disabled", "shop.service"),
        unit("setup.service", ["active", "exited", "success"], "enabled", "multi-user.target"),
        unit("user@1000.service", UP, "static", ""),
        unit("run-r1.service", UP, "transient", ""),
        unit("broken.service", ["failed", "failed", "exit-code"], "enabled", "multi-user.target"),
        unit("data.mount", ["active", "mounted", "success"], "", ""),
    ]
    .concat()
}

fn after() -> String {
    [
        unit("ssh.service", UP, "enabled", "multi-user.target"),
        unit("shop.service", ["failed", "failed", "exit-code"], "enabled", "multi-user.target"),
        unit("backend.service", UP, "disabled", "shop.service"),
        unit("broken.service", ["failed", "failed", "exit-code"], "enabled", "multi-user.target"),
        unit("fresh.service", ["failed", "failed", "timeout"], "enabled", "multi-user.target"),
    ]
    .concat()
}

fn target() -> FakeTarget {
    FakeTarget::new()
        .recording(BOOT)
        .answer(&STATES, 0, before(), "")
        .answer(&["findmnt", "--verify"], 0, "Success, no errors or warnings detected\n", "")
        .answer(&["sshd", "-t"], 0, "", "")
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

/// The only plan of a call that ended.
fn planned(target: FakeTarget, tool: &str, arguments: Value) -> Change {
    let plans = target.plans();
    call(target, tool, arguments).unwrap();
    assert_eq!(plans.borrow().len(), 1);
    plans.take().remove(0)
}

#[test]
fn a_tool_takes_little_of_a_models_context() {
    for tool in &module().description().tools {
        takes_little_context(tool);
    }
}

#[test]
fn a_restart_that_came_back_tells_what_did_not_come_up() {
    let target = target().recording(NEXT_BOOT).answer_after(&STATES, 0, after(), "").answer_after(
        &WAIT,
        1,
        "degraded\n",
        "",
    );
    let (data, notes) = call(target, "machine_reboot", json!({})).unwrap();
    assert_eq!(
        data,
        json!({
            "state": "up",
            "system": "degraded",
            "not_up": [
                {"unit": "byhand.service", "state": "gone"},
                {"unit": "data.mount", "state": "gone"},
                {"unit": "fresh.service", "state": "failed", "result": "timeout"},
                {"unit": "shop.service", "state": "failed", "result": "exit-code"},
            ]
        })
    );
    assert_eq!(notes, ["svc_troubleshoot service=fresh.service says why"]);
}

#[test]
fn on_the_same_boot_the_machine_is_still_going_down() {
    let (data, notes) = call(target(), "machine_reboot", json!({})).unwrap();
    assert_eq!((data, notes), (json!({"state": "going_down"}), vec![]));
    let (data, _) = call(target().recording(NEXT_BOOT), "machine_shutdown", json!({})).unwrap();
    assert_eq!(data, json!({"state": "going_down"}));
}

#[test]
fn the_plan_is_one_command_and_says_what_it_does_to_the_machine() {
    let shutdown =
        |args: &[&str]| Step::run(Command::new("shutdown").args(args.to_vec()).as_root()).uninterruptible();
    let cancel = || Command::new("shutdown").arg("-c").as_root();
    let told = |change: Change| {
        change
            .lock(Lock::PackageDatabase)
            .warning("nothing starts these at boot, though they run: byhand.service")
    };
    for (tool, arguments, expected) in [
        (
            "machine_reboot",
            json!({"wait_seconds": 60}),
            Change::new("Restart the machine now").step(shutdown(&["-r", "now"])).restarts(60),
        ),
        (
            "machine_reboot",
            json!({"at": "+5", "message": "new kernel"}),
            Change::new("Restart the machine in 5 minutes")
                .step(shutdown(&["-r", "+5", "new kernel"]).undo(cancel())),
        ),
        (
            "machine_shutdown",
            json!({"at": "now"}),
            Change::new("Turn the machine off now").step(shutdown(&["-P", "now"])).turns_off(),
        ),
        (
            "machine_shutdown",
            json!({"at": "23:59"}),
            Change::new("Turn the machine off at 23:59").step(shutdown(&["-P", "23:59"]).undo(cancel())),
        ),
    ] {
        assert_eq!(planned(target(), tool, arguments), told(expected));
    }
}

#[test]
fn what_would_keep_the_machine_from_coming_back_is_a_warning() {
    let fstab = "\n0 parse errors, 1 error, 0 warnings\n/data\n   [E] unreachable on boot required source: UUID=dead\n";
    let lost = unit("ssh.service", UP, "disabled", "");
    let target = FakeTarget::new()
        .recording(BOOT)
        .file("/run/systemd/shutdown/scheduled", "USEC=1795741274627635\nMODE=poweroff\n")
        .answer(&STATES, 0, lost, "")
        .answer(&["findmnt", "--verify"], 1, fstab, "")
        .answer(&["sshd", "-t"], 255, "", "/etc/ssh/sshd_config line 7: Bad configuration option: Prot\n");
    let expected = [
        "/etc/fstab, /data: unreachable on boot required source: UUID=dead; the start may stop there",
        "sshd would not start again: /etc/ssh/sshd_config line 7: Bad configuration option: Prot",
        "sshd runs, and nothing starts it at boot",
        "this takes the place of the poweroff that is planned for 2026-11-27T01:01:14Z",
    ];
    let plan = planned(target, "machine_reboot", json!({}));
    let same = expected.into_iter().fold(
        Change::new("Restart the machine now")
            .lock(Lock::PackageDatabase)
            .step(Step::run(Command::new("shutdown").args(["-r", "now"]).as_root()).uninterruptible())
            .restarts(300),
        Change::warning,
    );
    assert_eq!(plan, same);
}

#[test]
fn a_dry_run_names_what_needs_the_restart() {
    let mut target = target()
        .file("/run/reboot-required.pkgs", "linux-base\nlibc6\nlinux-base\n")
        .file("/usr/lib/modules/6.1.0-9-amd64/modules.dep", "")
        .file("/usr/lib/modules/6.1.0-38-amd64/modules.dep", "")
        .outcome(Ok(confirm::Applied { outputs: Vec::new(), dry_run: true }));
    target.distro.kernel = "6.1.0-9-amd64".to_owned();
    let (data, _) = call(target, "machine_reboot", json!({})).unwrap();
    assert_eq!(
        data,
        json!({"would": "restart", "required_by": ["libc6", "linux-base", "kernel 6.1.0-38-amd64"]})
    );
}

#[test]
fn what_is_planned_is_told_with_its_time_and_is_cancelled() {
    let scheduled = "==> /run/systemd/shutdown/scheduled <==\nUSEC=1795741274627635\nMODE=reboot\n";
    let later = target().recording(scheduled);
    let (data, notes) = call(later, "machine_reboot", json!({"at": "+30"})).unwrap();
    assert_eq!(data, json!({"state": "scheduled", "at": "2026-11-27T01:01:14Z"}));
    assert_eq!(notes, ["cancel=true cancels it"]);
    let planned_already = FakeTarget::new().recording(scheduled);
    let (data, _) = call(planned_already, "machine_shutdown", json!({"cancel": true})).unwrap();
    assert_eq!(data, json!({"state": "cancelled", "at": "2026-11-27T01:01:14Z"}));
}

#[test]
fn what_cannot_be_done_is_refused_and_nothing_is_planned() {
    fn held() -> FakeTarget {
        let lock = "WHAT=shutdown\nMODE=block\nPID=112\nWHO=backup job\nWHY=copies disks\n";
        target().file("/run/systemd/inhibit/1", lock).file("/run/systemd/inhibit/1.ref", "")
    }
    type Row = (fn() -> FakeTarget, Value, &'static str);
    let rows: [Row; 5] = [
        (held, json!({}), "SHUTDOWN_INHIBITED"),
        (target, json!({"at": "tomorrow"}), "INVALID_TIME"),
        (target, json!({"message": "-k"}), "INVALID_MESSAGE"),
        (target, json!({"cancel": true}), "NOT_SCHEDULED"),
        (target, json!({"cancel": true, "at": "now"}), "INVALID_ARGUMENTS"),
    ];
    for (target, arguments, code) in rows {
        for tool in ["machine_reboot", "machine_shutdown"] {
            let target = target();
            let plans = target.plans();
            let problem = call(target, tool, arguments.clone()).unwrap_err();
            assert_eq!((problem.code.as_str(), plans.borrow().len()), (code, 0), "{tool} {arguments}");
        }
    }
    for arguments in [json!({"force": true}), json!({"at": "+5"})] {
        let plan = planned(held(), "machine_reboot", arguments.clone());
        assert_eq!(plan.steps().len(), 1, "{arguments}");
        // Who confirms the plan is told.
        let told = "backup job (PID 112) blocks a shutdown: copies disks; ";
        assert!(format!("{plan:?}").contains(told), "{arguments}: {plan:?}");
    }
}

#[test]
fn without_systemd_the_machine_goes_down_all_the_same() {
    let (data, _) = call(FakeTarget::new(), "machine_shutdown", json!({})).unwrap();
    assert_eq!(data, json!({"state": "going_down"}));
}
