//! `proc_signal` as the host calls it, on files recorded from Debian 12 (Linux 6.1) and with made-up ones.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm;
use linux_sysadmin_sdk::testkit::{FakeTarget, output, takes_little_context};
use linux_sysadmin_sdk::{Change, Privilege, ProcessSignal, SignalTarget, Step};
use module_processes::module;
use serde_json::{Value, json};

const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000::/home/ada:/bin/sh\n";

/// A process for the fake target.
struct Made {
    pid: u32,
    name: &'static str,
    state: char,
    flags: u64,
    start: u64,
    uids: &'static str,
    thread_of: u32,
    pids: &'static str,
    cgroup: &'static str,
    command: &'static str,
}

const JOB: Made = Made {
    pid: 4711,
    name: "python3",
    state: 'S',
    flags: 4_194_304,
    start: 360_000,
    uids: "1000\t1000\t1000\t1000",
    thread_of: 4711,
    pids: "4711",
    cgroup: "0::/user.slice/user-1000.slice/session-3.scope\n",
    command: "python3\0job.py\0",
};

impl Made {
    fn add(&self, target: FakeTarget) -> FakeTarget {
        let Self { pid, name, state, flags, start, uids, thread_of, pids, cgroup, command } = self;
        let stat = format!(
            "{pid} ({name}) {state} 900 {pid} {pid} 0 -1 {flags} 1 0 0 0 5 3 0 0 20 0 1 0 {start} 4096 25 1844 1 1 0\n"
        );
        let status =
            format!("Name:\tx\nTgid:\t{thread_of}\nPid:\t{pid}\nPPid:\t900\nUid:\t{uids}\nNSpid:\t{pids}\n");
        target
            .file(&format!("/proc/{pid}/stat"), stat)
            .file(&format!("/proc/{pid}/status"), status)
            .file(&format!("/proc/{pid}/cgroup"), *cgroup)
            .file(&format!("/proc/{pid}/cmdline"), *command)
    }
}

fn target(processes: &[Made]) -> FakeTarget {
    let mut target =
        FakeTarget::new().file("/proc/stat", "cpu 1 2 3\nbtime 1764237780\n").file("/etc/passwd", PASSWD);
    target.distro.extra.push(("user".to_owned(), "ada".to_owned()));
    processes.iter().fold(target, |target, process| process.add(target))
}

fn plan(processes: &[Made], arguments: Value) -> Change {
    let target = target(processes);
    let plans = target.plans();
    target.call(&module(), "proc_signal", arguments).unwrap();
    plans.take().pop().unwrap()
}

fn order(signal: u8, wait_seconds: u32, kill: bool, tree: bool, privilege: Privilege) -> Step {
    let processes = vec![SignalTarget { pid: 4711, start_ticks: 360_000 }];
    Step::signal(ProcessSignal { processes, tree, signal, wait_seconds, kill, privilege })
}

fn refusal(processes: &[Made], arguments: Value) -> (String, String) {
    match target(processes).call(&module(), "proc_signal", arguments.clone()) {
        Ok((data, _)) => panic!("{arguments}: {data}"),
        Err(problem) => (problem.code, format!("{}; {}", problem.message, problem.remediation.join("; "))),
    }
}

#[test]
fn the_tool_takes_little_of_a_models_context() {
    let description = module().description();
    let tool = description.tools.iter().find(|tool| tool.name == "proc_signal").unwrap();
    takes_little_context(tool);
}

#[test]
fn without_a_signal_a_process_is_ended_by_both() {
    for (arguments, expected) in [
        (json!({"pid": 4711}), order(15, 10, true, false, Privilege::Caller)),
        (
            json!({"pid": [4711, 4711], "wait_seconds": 300, "tree": true}),
            order(15, 300, true, true, Privilege::Caller),
        ),
        (json!({"pid": 4711, "signal": "TERM"}), order(15, 10, false, false, Privilege::Caller)),
        (
            json!({"pid": 4711, "signal": "kill", "wait_seconds": 0}),
            order(9, 0, false, false, Privilege::Caller),
        ),
        (json!({"pid": 4711, "signal": "HUP"}), order(1, 0, false, false, Privilege::Caller)),
        (json!({"pid": 4711, "signal": 0}), order(0, 0, false, false, Privilege::Caller)),
        (
            json!({"pid": 4711, "signal": "RTMIN+3", "wait_seconds": 2}),
            order(37, 2, false, false, Privilege::Caller),
        ),
        (
            json!({"pid": 4711, "started": "2025-11-27T11:03:00Z"}),
            order(15, 10, true, false, Privilege::Caller),
        ),
        (
            json!({"pid": 4711, "started": "2025-11-27T11:03:01Z"}),
            order(15, 10, true, false, Privilege::Caller),
        ),
    ] {
        let plan = plan(&[JOB], arguments.clone());
        assert_eq!(plan.steps(), [expected], "{arguments}");
    }
}

#[test]
fn roots_rights_are_taken_only_for_what_is_not_the_accounts_own() {
    for (uids, privilege) in [
        ("1000\t1000\t1000\t1000", Privilege::Caller),
        ("0\t0\t0\t0", Privilege::Root),
        ("1000\t0\t0\t0", Privilege::Root),
        ("1000\t1000\t0\t1000", Privilege::Root),
        ("1001\t1001\t1001\t1001", Privilege::Root),
    ] {
        let plan = plan(&[Made { uids, ..JOB }], json!({"pid": 4711}));
        assert_eq!(plan.steps(), [order(15, 10, true, false, privilege)], "{uids}");
    }
}

#[test]
fn a_tree_with_processes_of_others_is_ended_with_roots_rights() {
    // The made-up processes have the parent 900.
    let parent = || Made { pid: 900, thread_of: 900, ..JOB };
    for (uids, tree, privilege) in [
        ("1000\t1000\t1000\t1000", true, Privilege::Caller),
        ("0\t0\t0\t0", true, Privilege::Root),
        ("0\t0\t0\t0", false, Privilege::Caller),
    ] {
        let plan = plan(&[parent(), Made { uids, ..JOB }], json!({"pid": 900, "tree": tree}));
        let shown = format!("{plan:?}");
        assert!(shown.contains(&format!("privilege: {privilege:?}")), "{uids} {tree}: {shown}");
    }
}

#[test]
fn bad_input_says_what_is_expected() {
    for (arguments, code, word) in [
        (json!({"pid": 0}), "INVALID_PID", "1 to 4194304"),
        (json!({"pid": -4711}), "INVALID_PID", "groups of processes"),
        (json!({"pid": 4_194_305}), "INVALID_PID", "1 to 4194304"),
        (json!({"pid": i64::MAX}), "INVALID_PID", "1 to 4194304"),
        (json!({"pid": []}), "INVALID_PID", "1 to 100"),
        (json!({"pid": (2..=102).collect::<Vec<u32>>()}), "INVALID_PID", "1 to 100"),
        (json!({"pid": 1}), "PROTECTED_PROCESS", "first process"),
        (json!({"pid": [4711, 1]}), "PROTECTED_PROCESS", "first process"),
        (json!({"pid": 4712}), "PROCESS_NOT_FOUND", "proc_list"),
        (json!({"pid": [4711, 4712], "started": "2025-11-27T11:03:00Z"}), "INVALID_START", "one pid"),
        (json!({"pid": 4711, "started": "2025-11-27T11:03:02Z"}), "PROCESS_REUSED", "2025-11-27T11:03:00Z"),
        (json!({"pid": 4711, "started": "10:03"}), "INVALID_START", "such as 2026-01-31T09:30:00Z"),
        (json!({"pid": 4711, "started": ""}), "INVALID_START", "such as 2026-01-31T09:30:00Z"),
        (json!({"pid": 4711, "started": "2025-11-27T11:03:00+00:00"}), "INVALID_START", "as answers show it"),
        (json!({"pid": 4711, "signal": "FOO"}), "INVALID_SIGNAL", "RTMIN+N"),
        (json!({"pid": 4711, "signal": 65}), "INVALID_SIGNAL", "0 to 64"),
        (json!({"pid": 4711, "signal": -9}), "INVALID_SIGNAL", "0 to 64"),
        (json!({"pid": 4711, "wait_seconds": 0}), "INVALID_WAIT", "1 to 300"),
        (json!({"pid": 4711, "wait_seconds": 301}), "INVALID_WAIT", "1 to 300"),
    ] {
        let (found, said) = refusal(&[JOB], arguments.clone());
        assert_eq!(found, code, "{arguments}: {said}");
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn a_process_whose_first_thread_has_ended_is_ended_with_the_others() {
    let stat = "4711 (x) Z 900 1 1 0 -1 4194304 1 0 0 0 5 3 0 0 20 0 2 0 360000 0 0 1844 0 0 0\n";
    let target = target(&[Made { command: "", ..JOB }]).file("/proc/4711/stat", stat);
    let plans = target.plans();
    target.call(&module(), "proc_signal", json!({"pid": 4711})).unwrap();
    assert_eq!(plans.borrow()[0].steps(), [order(15, 10, true, false, Privilege::Caller)]);
}

#[test]
fn what_no_signal_ends_is_explained() {
    // Recorded on Linux 6.18.
    let kthreadd = Made { name: "kthreadd", flags: 2_129_984, uids: "0\t0\t0\t0", command: "", ..JOB };
    let (code, said) = refusal(&[kthreadd], json!({"pid": 4711}));
    assert!(code == "PROTECTED_PROCESS" && said.contains("[kthreadd]"), "{said}");
    let (code, said) = refusal(&[Made { state: 'Z', command: "", ..JOB }], json!({"pid": 4711}));
    assert!(code == "PROCESS_ENDED" && said.contains("parent 900"), "{said}");
    let (code, said) = refusal(&[Made { thread_of: 4700, ..JOB }], json!({"pid": 4711}));
    assert!(code == "NOT_A_PROCESS" && said.contains("Name the process: 4700"), "{said}");
}

fn in_unit(target: FakeTarget, main: u32) -> FakeTarget {
    let shown = format!("Id=nginx.service\nMainPID={main}\n");
    target.answer(&["systemctl", "show", "--property=Id,MainPID", "--", "nginx.service"], 0, &shown, "")
}

#[test]
fn the_main_process_of_a_unit_is_left_to_systemd() {
    let worker = || Made { cgroup: "0::/system.slice/nginx.service\n", ..JOB };
    for (signal, advice) in
        [(json!("TERM"), "svc_stop"), (json!("HUP"), "svc_reload"), (json!(9), "svc_restart")]
    {
        let called = in_unit(target(&[worker()]), 4711).call(
            &module(),
            "proc_signal",
            json!({"pid": 4711, "signal": signal}),
        );
        let problem = called.unwrap_err();
        assert_eq!(problem.code, "UNIT_PROCESS");
        assert!(problem.remediation[0].contains(advice), "{problem:?}");
    }
    // A log that is opened anew is asked for by USR1; nothing ends then.
    assert_eq!(plan(&[worker()], json!({"pid": 4711, "signal": "USR1"})).steps().len(), 1);
    let other = in_unit(target(&[worker()]), 4700);
    let plans = other.plans();
    other.call(&module(), "proc_signal", json!({"pid": 4711})).unwrap();
    let shown = format!("{:?}", plans.borrow()[0]);
    assert!(shown.contains("4711 is a process of nginx.service, which may start another one"), "{shown}");
}

#[test]
fn a_container_is_told() {
    for (made, warning) in [
        (
            Made { cgroup: "0::/system.slice/docker-0123456789abcdef0123.scope\n", ..JOB },
            "the container 0123456789ab (docker)",
        ),
        (
            Made { cgroup: "0::/machine.slice/systemd-nspawn@web.service/payload/x.service\n", ..JOB },
            "the container web (nspawn)",
        ),
        (Made { cgroup: "0::/lxc.payload.db/system.slice/x.service\n", ..JOB }, "the container db (lxc)"),
        (
            Made { cgroup: "0::/machine.slice/libpod-0123456789abcdef.scope/container\n", ..JOB },
            "the container 0123456789ab (podman)",
        ),
        (Made { pids: "4711\t7", ..JOB }, "a PID namespace of its own"),
        (Made { pids: "4711\t7\t1", ..JOB }, "the first process there"),
    ] {
        let plan = format!("{:?}", plan(&[made], json!({"pid": 4711})));
        assert!(plan.contains(warning), "{warning}: {plan}");
    }
}

fn answered(said: &str, arguments: Value) -> (Value, Vec<String>) {
    let applied = confirm::Applied { outputs: vec![output(0, said, "")], dry_run: false };
    let (data, reply) =
        target(&[JOB]).outcome(Ok(applied)).call(&module(), "proc_signal", arguments).unwrap();
    (data, reply.notes)
}

#[test]
fn what_has_become_of_each_is_told() {
    let (data, notes) = answered("4711 360000 ended\n", json!({"pid": 4711}));
    let expected = json!({
        "signal": "SIGTERM",
        "processes": [{
            "pid": 4711, "started": "2025-11-27T11:03:00Z", "command": "python3 job.py", "unit": "session-3.scope",
            "user": "ada", "outcome": "ended",
        }],
    });
    assert_eq!((data, notes), (expected, Vec::new()));
    let (data, notes) = answered(
        "4711 360000 killed\n4712 1 ended\n4713 1 ended\n4714 1 zombie 900\n4715 1 blocked rpc_wait_bit_killable\n\
         4716 1 running\n4717 1 denied\n4718 1 gone\n4719 1 blocked 0\n",
        json!({"pid": [4711, 4000], "tree": true}),
    );
    assert_eq!(
        data["descendants"],
        json!({"blocked": 2, "denied": 1, "ended": 2, "gone": 1, "running": 1, "zombie": 1})
    );
    assert_eq!(data["left"][0], json!({"pid": 4714, "outcome": "zombie", "detail": "900"}));
    assert_eq!(notes[0], "4000 had ended before");
    for (note, word) in notes[1..].iter().zip([
        "parent 900",
        "(rpc_wait_bit_killable)",
        "after SIGKILL",
        "another account's",
        "4719 waits in the kernel,",
    ]) {
        assert!(note.contains(word), "{notes:?}");
    }
    let (_, notes) = answered("4711 360000 running\n", json!({"pid": 4711, "signal": "TERM"}));
    assert!(notes[0].contains("ignores SIGTERM"), "{notes:?}");
}
