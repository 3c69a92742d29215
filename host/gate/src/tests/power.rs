//! Tests of plans that restart a machine or turn it off.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use host_target::test_connection::{Fate, TestConnection};

/// A machine that runs another boot once `reboot` is touched, after which its connection has this fate.
fn machine(fate: fn() -> Fate) -> Arc<TestConnection> {
    let boot = Arc::new(AtomicU32::new(1));
    let told = boot.clone();
    let line = TestConnection::new(move |command| {
        match command.args.last().and_then(|path| path.rsplit('/').next()) {
            Some("reboot") => {
                told.fetch_add(1, Ordering::SeqCst);
                fate()
            }
            Some("lost") => Fate::NeverComes,
            _ => Fate::Says(0, String::new()),
        }
    });
    line.set_machine("SHA256:first", move |facts| {
        facts.boot_id = Some(format!("boot {}", boot.load(Ordering::SeqCst)));
    });
    line
}

/// A plan that touches these files in turn.
fn plan(lab: &Lab, [first, last]: [&str; 2], power: PowerChange) -> Change {
    let touch = |name| run(&["touch", "--", &lab.path(name)]);
    Change { power: Some(power), ..change(vec![touch(first), touch(last)]) }
}

async fn applied(lab: &Lab, line: &Arc<TestConnection>, plan: Change) -> Outcome {
    let request = lab.asking_on(Target::over_test_connection(line), false).await;
    lab.gate.apply(request, plan).await.unwrap()
}

const RESTART: PowerChange = PowerChange::Restart(Duration::from_secs(60));
const FATES: [fn() -> Fate; 3] =
    [|| Fate::Says(0, String::new()), || Fate::NeverComes, || Fate::NeverAnswers];

#[tokio::test(start_paused = true)]
async fn a_restart_ends_once_another_boot_answers_however_the_connection_ended() {
    for fate in FATES {
        let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
        let outcome = applied(&lab, &machine(fate), plan(&lab, ["first", "reboot"], RESTART)).await;
        let Outcome::Done { outputs, .. } = outcome else { panic!("not done") };
        assert_eq!(outputs.len(), 2);
        assert_eq!(lab.events()[1]["outcome"], "done");
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_turned_off_loses_its_connection_and_is_not_waited_for() {
    for fate in FATES {
        let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
        let outcome = applied(&lab, &machine(fate), plan(&lab, ["first", "reboot"], PowerChange::Off)).await;
        assert!(matches!(outcome, Outcome::Done { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_not_back_in_time_is_told_with_what_was_seen_of_it() {
    for (last, reachable, seen) in [
        ("reboot", false, "doesn't answer after 60 s"),
        ("last", true, "still runs the same boot after 60 s"),
    ] {
        let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
        let line = machine(|| Fate::NeverAnswers);
        let gone = line.clone();
        let mut request = lab.asking_on(Target::over_test_connection(&line), false).await;
        request.progress = Arc::new(move |_, said| {
            if said.starts_with("waiting") {
                gone.set_reachable(reachable);
            }
        });
        let outcome = lab.gate.apply(request, plan(&lab, ["first", last], RESTART)).await;
        let Ok(Outcome::Failed { problem, uncertain, .. }) = outcome else { panic!("not failed") };
        assert_eq!((problem.code.as_str(), uncertain), ("HOST_NOT_BACK", true), "{problem}");
        assert!(problem.message.contains(seen), "{problem}");
        assert_eq!(lab.events()[1]["outcome"], "uncertain");
    }
}

#[tokio::test(start_paused = true)]
async fn another_machine_that_answers_instead_is_not_taken_for_the_one_that_was_restarted() {
    let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
    let line = machine(|| Fate::NeverAnswers);
    let other = line.clone();
    let mut request = lab.asking_on(Target::over_test_connection(&line), false).await;
    request.progress = Arc::new(move |_, said| {
        if said.starts_with("waiting") {
            other.set_machine("SHA256:second", |facts| facts.boot_id = Some("another".to_owned()));
        }
    });
    let outcome = lab.gate.apply(request, plan(&lab, ["first", "reboot"], RESTART)).await;
    let Ok(Outcome::Failed { problem, .. }) = outcome else { panic!("not failed") };
    assert_eq!(problem.code, "PLAN_STALE", "{problem}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_lost_before_the_last_step_is_no_restart() {
    let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
    let lost = plan(&lab, ["lost", "reboot"], RESTART);
    let outcome = applied(&lab, &machine(|| Fate::NeverComes), lost).await;
    let Outcome::Failed { problem, step, .. } = outcome else { panic!("not failed") };
    assert_eq!((problem.code.as_str(), step), ("CHANGE_UNCERTAIN", 0), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn a_boot_that_is_not_known_is_no_other_boot() {
    for boots in [[None, Some("another")], [Some("one"), None], [None, None]] {
        let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
        let line = machine(|| Fate::NeverAnswers);
        let [before, after] = boots.map(|boot| boot.map(str::to_owned));
        line.set_machine("SHA256:first", move |facts| facts.boot_id = before.clone());
        let mut request = lab.asking_on(Target::over_test_connection(&line), false).await;
        request.progress = Arc::new(move |_, said| {
            if said.starts_with("waiting") {
                let after = after.clone();
                line.set_machine("SHA256:first", move |facts| facts.boot_id = after.clone());
            }
        });
        let outcome = lab.gate.apply(request, plan(&lab, ["first", "reboot"], RESTART)).await;
        let Ok(Outcome::Failed { problem, .. }) = outcome else { panic!("not failed: {boots:?}") };
        assert_eq!(problem.code, "HOST_NOT_BACK", "{boots:?}: {problem}");
    }
}
