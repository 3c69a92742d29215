//! Plans that send signals to processes, from the grant to the record.

use std::process::{Child, Command as Process};

use super::*;
use host_capability::SignalRequest;
use host_target::test_connection::{Fate, TestConnection};
use host_target::{ProcessId, ProcessSignal};

struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        Self(Process::new("sleep").arg("60").spawn().unwrap())
    }

    /// A process that ignores SIGTERM by now.
    fn stubborn() -> Self {
        use std::io::Read;
        let script = "trap '' TERM; echo; while :; do sleep 1; done";
        let mut child =
            Process::new("sh").args(["-c", script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Self(child)
    }

    fn stat(&self) -> Vec<String> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        text.rsplit_once(") ").unwrap().1.split_whitespace().map(str::to_owned).collect()
    }

    fn id(&self) -> ProcessId {
        ProcessId { pid: self.0.id(), start_ticks: self.stat()[19].parse().unwrap() }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sending(signal: u8, processes: &[ProcessId]) -> Step {
    let signal = ProcessSignal {
        processes: processes.to_vec(),
        tree: false,
        signal,
        wait_seconds: 0,
        kill: false,
        privilege: Privilege::Caller,
    };
    Step { action: Action::Signal(signal), undo: Vec::new() }
}

/// A request of a module that may send signals.
async fn granted(lab: &Lab, dry_run: bool) -> PlanRequest {
    with_grant(lab.request(dry_run).await)
}

fn with_grant(request: PlanRequest) -> PlanRequest {
    let mut grants = (*request.grants).clone();
    let (privilege, place, reason) = (Privilege::Caller, Place::Target, String::new());
    grants.signals(&SignalRequest { privilege, place, reason }).unwrap();
    PlanRequest { grants: Arc::new(grants), ..request }
}

fn code(outcome: Result<Outcome, Problem>) -> String {
    match outcome {
        Err(problem) => problem.code,
        Ok(Outcome::Failed { problem, .. }) => problem.code,
        Ok(_) => "done".to_owned(),
    }
}

#[tokio::test]
async fn without_a_grant_no_signal_is_sent() {
    let (lab, sleeper) = (Lab::new(Safety::default()), Sleeper::start());
    let plan = change(vec![sending(9, &[sleeper.id()])]);
    assert_eq!(code(lab.gate.apply(lab.request(false).await, plan.clone()).await), "CAPABILITY_DENIED");
    let Step { action: Action::Signal(mut signal), .. } = sending(9, &[sleeper.id()]) else { unreachable!() };
    for privilege in [Privilege::Root, Privilege::RootIfAvailable, Privilege::User("nobody".into())] {
        signal.privilege = privilege;
        let plan = change(vec![Step { action: Action::Signal(signal.clone()), undo: Vec::new() }]);
        assert_eq!(code(lab.gate.apply(granted(&lab, false).await, plan).await), "CAPABILITY_DENIED");
    }
    assert_eq!(sleeper.stat()[0], "S");
}

#[tokio::test]
async fn whatever_a_module_asks_for_some_processes_get_no_signal() {
    let (lab, sleeper) = (Lab::new(Safety::default()), Sleeper::start());
    let first = std::fs::read_to_string("/proc/1/stat").unwrap();
    let start_ticks = first.rsplit_once(") ").unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
    let own = std::fs::read_to_string("/proc/self/stat").unwrap();
    let own = own.rsplit_once(") ").unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
    let reused = ProcessId { start_ticks: sleeper.id().start_ticks + 7, ..sleeper.id() };
    for (process, expected) in [
        (ProcessId { pid: 1, start_ticks }, "PROTECTED_PROCESS"),
        (ProcessId { pid: std::process::id(), start_ticks: own }, "PROTECTED_PROCESS"),
        (reused, "PROCESS_REUSED"),
        (ProcessId { pid: 0, start_ticks: 0 }, "INVALID_PLAN"),
        (ProcessId { pid: 4_194_304, start_ticks: 1 }, "PROCESS_NOT_FOUND"),
    ] {
        // A process that is gone is no reason to leave out the others.
        let is_alone = process == reused || expected == "PROCESS_NOT_FOUND";
        let processes = [sleeper.id(), process];
        for dry_run in [true, false] {
            let plan = change(vec![sending(9, &processes[usize::from(is_alone)..])]);
            let outcome = lab.gate.apply(granted(&lab, dry_run).await, plan).await;
            assert_eq!(code(outcome), expected, "{process:?}");
        }
    }
    assert_eq!(sleeper.stat()[0], "S");
    assert!(lab.events().is_empty(), "nothing was begun");
}

#[tokio::test]
async fn a_signal_is_shown_and_recorded_and_its_outcome_told() {
    let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
    let sleeper = Sleeper::start();
    let plan = change(vec![sending(15, &[sleeper.id()])]);
    let shown = match lab.gate.apply(granted(&lab, true).await, plan.clone()).await.unwrap() {
        Outcome::DryRun { preview, .. } => preview,
        _ => panic!(),
    };
    let pid = sleeper.id().pid;
    let step = shown["steps"][0]["signal"].as_str().unwrap();
    assert!(step.starts_with(&format!("Send SIGTERM to {pid} `sleep 60` (")), "{step}");
    assert_eq!(sleeper.stat()[0], "S");
    match lab.gate.apply(granted(&lab, false).await, plan).await.unwrap() {
        Outcome::Done { outputs, .. } => {
            let said = String::from_utf8(outputs[0].stdout.clone()).unwrap();
            assert!(said.starts_with(&format!("{pid} {} ", sleeper.id().start_ticks)), "{said}");
        }
        _ => panic!(),
    }
    let recorded = lab.events()[0].to_string();
    assert!(recorded.contains(&format!("Send SIGTERM to {pid} `sleep 60`")), "{recorded}");
}

#[tokio::test]
async fn a_stop_is_undone_where_a_later_step_fails_and_an_end_is_not() {
    let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
    for (signal, state, undone) in [(19, "S", true), (12, "Z", false)] {
        let sleeper = Sleeper::start();
        let plan = change(vec![sending(signal, &[sleeper.id()]), run(&["false"])]);
        match lab.gate.apply(granted(&lab, false).await, plan).await.unwrap() {
            Outcome::Failed { undone: told, not_undone, step, .. } => {
                assert_eq!((step, told.len(), not_undone.is_empty()), (1, usize::from(undone), undone));
            }
            _ => panic!(),
        }
        while sleeper.stat()[0] != state {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn a_guard_cannot_take_a_signal_back() {
    let (lab, sleeper) = (Lab::new(Safety::default()), Sleeper::start());
    let plan = Change { guard: Some(Duration::from_secs(30)), ..change(vec![sending(19, &[sleeper.id()])]) };
    assert_eq!(code(lab.gate.apply(granted(&lab, false).await, plan).await), "INVALID_PLAN");
}

#[tokio::test]
async fn where_the_connection_is_lost_nobody_knows_what_became_of_the_signal() {
    for (fate, state) in [((|| Fate::NeverComes) as fn() -> Fate, "S"), (|| Fate::NeverAnswers, "Z")] {
        let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
        let sleeper = Sleeper::start();
        // The first shell looks, and the second one sends.
        let shells = std::sync::atomic::AtomicUsize::new(0);
        let connection = TestConnection::new(move |command| match command.program.as_str() {
            "sh" if shells.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 1 => fate(),
            _ => Fate::Answers,
        });
        let request = with_grant(lab.asking_on(Target::over_test_connection(&connection), false).await);
        match lab.gate.apply(request, change(vec![sending(15, &[sleeper.id()])])).await.unwrap() {
            Outcome::Failed { problem, uncertain, .. } => {
                assert!(uncertain && problem.is_uncertain(), "{problem:?}");
                let advice = problem.remediation.join(" ");
                assert!(advice.contains(&format!("send SIGTERM to {}", sleeper.id().pid)), "{advice}");
            }
            _ => panic!(),
        }
        until(|| sleeper.stat()[0] == state).await;
        assert_eq!(lab.events().last().unwrap()["outcome"], "uncertain");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_has_begun_goes_on_when_its_caller_goes_away() {
    let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
    let stubborn = Sleeper::stubborn();
    let Step { action: Action::Signal(mut signal), .. } = sending(15, &[stubborn.id()]) else {
        unreachable!()
    };
    (signal.tree, signal.wait_seconds, signal.kill) = (true, 1, true);
    let plan = change(vec![Step { action: Action::Signal(signal), undo: Vec::new() }]);
    let request = granted(&lab, false).await;
    let command_log = request.command_log.clone();
    {
        let mut applying = Box::pin(lab.gate.apply(request, plan));
        while command_log.lines().is_empty() {
            assert!(applying.as_mut().now_or_never().is_none());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    lab.gate.finished().await;
    assert_eq!(stubborn.stat()[0], "Z");
    assert_eq!(lab.events().last().unwrap()["outcome"], "done");
}
