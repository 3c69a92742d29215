use super::*;
use host_target::ProcessId;

pub const UID: u32 = 4107;

pub fn facts() -> Facts {
    Facts { uid: UID, user: "ada".to_owned(), ..Facts::default() }
}

pub fn process(pid: u32, reach: Reach, uids: [u32; 4], cgroup: &str) -> SeenProcess {
    SeenProcess {
        id: ProcessId { pid, start_ticks: 360_000 },
        reach,
        uids: uids.to_vec(),
        user: "eve".to_owned(),
        thread_of: Some(pid),
        cgroup: cgroup.to_owned(),
        name: "python3".to_owned(),
        command: "python3 job.py --password=hunter2".to_owned(),
    }
}

pub fn seen(processes: Vec<SeenProcess>) -> SeenProcesses {
    SeenProcesses { boot_unix: 1_764_237_780, processes }
}

pub fn signal(number: u8) -> ProcessSignal {
    ProcessSignal {
        processes: vec![ProcessId { pid: 4711, start_ticks: 360_000 }],
        tree: false,
        signal: number,
        wait_seconds: 0,
        kill: false,
        privilege: Privilege::Caller,
    }
}

#[test]
fn what_no_signal_can_be_is_a_mistake() {
    let to = |pids: &[u32]| {
        let processes = pids.iter().map(|pid| ProcessId { pid: *pid, start_ticks: 1 }).collect();
        ProcessSignal { processes, ..signal(15) }
    };
    let killing = |wait_seconds, number| ProcessSignal { wait_seconds, kill: true, ..signal(number) };
    for (order, word) in [
        (to(&[]), "0 processes"),
        (to(&(2..=102).collect::<Vec<_>>()), "101 processes"),
        (to(&[0]), "process id 0"),
        (to(&[7, LARGEST + 1]), "process id 4194305"),
        (to(&[u32::MAX]), "process id 4294967295"),
        (to(&[7, 8, 7]), "twice"),
        (signal(65), "signal 65"),
        (signal(255), "signal 255"),
        (signal(32), "signal 32"),
        (signal(33), "signal 33"),
        (ProcessSignal { wait_seconds: 301, ..signal(15) }, "301 s"),
        (killing(0, 15), "SIGKILL after 0 s"),
        (killing(5, 18), "of SIGCONT"),
        (killing(5, 19), "of SIGSTOP"),
        (killing(5, 0), "of signal 0"),
        (killing(5, 9), "of SIGKILL"),
        (killing(5, 28), "of SIGWINCH"),
    ] {
        let mistake = mistake(&order).unwrap();
        assert!(mistake.contains(word), "{mistake}");
    }
    for order in
        [to(&[1, LARGEST]), signal(0), signal(31), signal(34), signal(64), killing(1, 15), killing(300, 2)]
    {
        assert_eq!(mistake(&order), None, "{order:?}");
    }
}

#[test]
fn a_person_reads_what_would_be_sent_to_whom() {
    let own = || process(4711, Reach::Given, [UID; 4], "");
    let child = process(4712, Reach::Descendant, [0; 4], "");
    let told = |order: &ProcessSignal, all: Vec<SeenProcess>| sentence(order, &seen(all), &facts());
    let who = "4711 `python3 job.py --password=[redacted]` (ada, started 2025-11-27 11:03:00 UTC)";
    let text = told(&ProcessSignal { wait_seconds: 10, kill: true, ..signal(15) }, vec![own()]);
    assert_eq!(
        text.replace(HIDDEN_PASSWORD, "[redacted]"),
        format!("Send SIGTERM to {who}, then SIGKILL to what is left after 10 s")
    );
    let text = told(&ProcessSignal { tree: true, ..signal(19) }, vec![own(), child]);
    assert!(
        text.starts_with("Send SIGSTOP to 4711 ")
            && text.ends_with(" and their descendants, which are 1 now"),
        "{text}"
    );
    let text = told(&ProcessSignal { tree: true, wait_seconds: 3, ..signal(37) }, vec![own()]);
    assert!(
        text.starts_with("Send SIGRTMIN+3 ")
            && text.ends_with(" and what they start meanwhile, and wait up to 3 s for their end"),
        "{text}"
    );
    let other = process(4711, Reach::Given, [0; 4], "/system.slice/x.service");
    assert!(told(&signal(1), vec![other]).contains("(eve, started 2025-11-27 11:03:00 UTC, of x.service)"));
    assert!(!told(&signal(1), vec![own()]).contains("hunter2"));
    let forged = SeenProcess { command: "x` (root)".to_owned(), ..own() };
    assert!(told(&signal(1), vec![forged]).contains("4711 `x' (root)` (ada, started"));
}

#[test]
fn a_process_that_started_another_program_in_its_own_place_is_another_one() {
    let before = process(4711, Reach::Given, [UID; 4], "/");
    let renamed = SeenProcess { command: "python3: job 2".to_owned(), ..before.clone() };
    let replaced = SeenProcess { name: "sleep".to_owned(), ..before.clone() };
    let identity = |process| identity(&signal(15), &seen(vec![process]));
    assert_eq!(identity(before.clone()), identity(renamed));
    assert_ne!(identity(before), identity(replaced));
}

/// The mark of the redaction in a command line.
const HIDDEN_PASSWORD: &str = "[redacted]";

#[test]
fn each_refusal_says_why() {
    for (reach, pid, code) in [
        (Reach::Own, 1, Some("PROTECTED_PROCESS")),
        (Reach::Own, 7, Some("PROTECTED_PROCESS")),
        (Reach::Kernel, 7, Some("PROTECTED_PROCESS")),
        (Reach::Other, 7, Some("PROCESS_REUSED")),
        (Reach::Denied, 7, Some("PERMISSION_DENIED")),
        (Reach::Given, 7, None),
        (Reach::Descendant, 7, None),
        (Reach::Gone, 7, None),
    ] {
        let problem = refusal(reach, pid, "process 7");
        assert_eq!(problem.as_ref().map(|problem| problem.code.as_str()), code, "{reach:?}");
    }
}

#[test]
fn only_a_stop_and_going_on_undo_each_other() {
    for (number, undo) in [(19, Some(18)), (18, Some(19)), (15, None), (9, None), (20, None), (0, None)] {
        let order = ProcessSignal { tree: true, ..signal(number) };
        let back = reverse(&order);
        assert_eq!(back.as_ref().map(|back| back.signal), undo, "{number}");
        assert!(back.is_none_or(|back| back.tree && back.processes == order.processes));
    }
}
