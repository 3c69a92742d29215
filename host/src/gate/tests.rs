use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::FutureExt;

use super::plan::tests::{change, run, write};
use super::*;
use crate::capability::{CommandRequest, Effect, PathRequest, Place};
use crate::target::{Overrides, Privilege};

/// A directory with a log of its own, that plans may write to.
struct Lab {
    kept: tempfile::TempDir,
    gate: Arc<Gate>,
}

impl Lab {
    fn new(safety: Safety) -> Self {
        // Root's rights go through no directory that others can write to.
        let kept = match rustix::process::geteuid().is_root() {
            true => tempfile::tempdir_in("/run"),
            false => tempfile::tempdir(),
        };
        let kept = kept.unwrap();
        let settings = audit::Settings { rotate_bytes: 1 << 20, keep: 1 };
        let audit = Audit::new(kept.path().join("log"), settings).with_journal("/nonexistent".into());
        std::fs::create_dir(kept.path().join("files")).unwrap();
        Self { gate: Arc::new(Gate::new(safety, Arc::new(audit))), kept }
    }

    fn path(&self, name: &str) -> String {
        self.kept.path().canonicalize().unwrap().join("files").join(name).to_str().unwrap().to_owned()
    }

    fn names(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.kept.path().join("files")).unwrap();
        let mut names: Vec<_> =
            files.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    async fn asking(&self, dry_run: bool) -> Asking {
        let mut grants = Grants::new("test");
        let files = self.path("");
        for (pattern, effect, risk) in [
            (format!("touch -- <path:{files}*>"), Effect::Change, Risk::Moderate),
            (format!("rm -- <path:{files}*>"), Effect::Change, Risk::High),
            ("true".into(), Effect::Read, Risk::ReadOnly),
            ("false".into(), Effect::Change, Risk::Low),
            (format!("cat -- <path:{files}*>"), Effect::Read, Risk::ReadOnly),
            ("echo <text>".into(), Effect::DryRun, Risk::ReadOnly),
        ] {
            let (privilege, place, reason) = (Privilege::Caller, Place::Target, String::new());
            let request = CommandRequest { pattern, effect, privilege, place, risk, reason };
            grants.command(&request).unwrap();
        }
        let request = PathRequest {
            glob: format!("{files}*"),
            write: true,
            privilege: Privilege::Caller,
            place: Place::Target,
            reason: String::new(),
        };
        grants.path(&request).unwrap();
        let target = Arc::new(Target::local(Overrides::default()));
        let arguments = serde_json::Map::new();
        let origin = Origin::new("1".into(), "test".into(), "cli".into(), "t".into(), &arguments);
        Asking {
            origin: Arc::new(origin),
            risk: Risk::Moderate,
            grants: Arc::new(grants),
            facts: target.facts().await,
            target,
            dry_run,
            turn: None,
            seen: HashMap::new(),
            executed: Arc::default(),
            telling: Arc::new(|_, _| {}),
        }
    }

    /// What is on record.
    fn events(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.kept.path().join("log/audit.jsonl")).unwrap_or_default();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn with_undo(mut step: Step, undo: &[&str]) -> Step {
    step.undo.push(super::plan::tests::command(undo));
    step
}

#[tokio::test]
async fn a_dry_run_shows_the_plan_and_its_own_simulation_and_changes_nothing() {
    let lab = Lab::new(Safety::default());
    let mut plan = change(vec![write(&lab.path("new"), "a\n"), run(&["touch", "--", &lab.path("ran")])]);
    plan.dry_run = Some(super::plan::tests::command(&["echo", "would"]));
    let outcome = lab.gate.apply(lab.asking(true).await, plan).await;
    let Ok(Outcome::DryRun { preview, outputs }) = outcome else { panic!("no dry run") };
    assert_eq!(outputs[0].stdout, b"would\n");
    assert_eq!(preview["steps"][0]["write"], lab.path("new"));
    assert!(preview["steps"][0]["diff"].as_str().unwrap().contains("\n+a\n"), "{preview}");
    assert_eq!(preview["steps"][1]["run"], format!("touch -- {}", lab.path("ran")));
    assert!(lab.names().is_empty() && lab.events().is_empty());
}

#[tokio::test]
async fn the_gravest_of_tool_plan_and_grants_decides_whether_a_person_is_asked() {
    let lab = Lab::new(Safety::default());
    std::fs::write(lab.path("file"), "").unwrap();
    let remove = || change(vec![run(&["rm", "--", &lab.path("file")])]);
    let mut grave = change(vec![run(&["true"])]);
    grave.risk = Some(Risk::Critical);
    // A plan that is made to break runs its undo.
    let hidden = change(vec![with_undo(run(&["true"]), &["rm", "--", &lab.path("file")]), run(&["false"])]);
    for (plan, risk) in [(remove(), "high"), (grave, "critical"), (hidden, "high")] {
        let refused = lab.gate.apply(lab.asking(false).await, plan).await.err().unwrap();
        assert_eq!(
            (refused.code.as_str(), &refused.details["risk_level"]),
            (CONFIRMATION_REQUIRED, &json!(risk))
        );
        let preview = &refused.details["preview"];
        assert!(preview["command"].is_string() || preview["steps"].is_array(), "{preview}");
        assert!(preview["escalation_reason"].is_string(), "{preview}");
    }
    assert_eq!(lab.names(), ["file"]);
    let wary = Safety { confirmation_threshold: Risk::Moderate, ..Safety::default() };
    let wary = Gate::new(wary, lab.gate.audit().clone());
    for (step, code) in [(write(&lab.path("file"), "x"), Some(CONFIRMATION_REQUIRED)), (run(&["true"]), None)]
    {
        let asking = Asking { risk: Risk::Low, ..lab.asking(false).await };
        let refused = wary.apply(asking, change(vec![step])).await.err();
        assert_eq!(refused.map(|problem| problem.code).as_deref(), code);
    }
    let strict = Safety { dry_run_bypass_confirmation: false, ..Safety::default() };
    let strict = Gate::new(strict, lab.gate.audit().clone());
    let refused = strict.apply(lab.asking(true).await, remove()).await.err().unwrap();
    assert_eq!(refused.code, CONFIRMATION_REQUIRED);
    let lenient = Safety { confirmation_threshold: Risk::Critical, ..Safety::default() };
    let lenient = Gate::new(lenient, lab.gate.audit().clone());
    assert!(matches!(lenient.apply(lab.asking(false).await, remove()).await, Ok(Outcome::Done { .. })));
    assert!(lab.names().is_empty());
}

#[tokio::test]
async fn what_is_not_granted_ends_the_plan_before_it_begins() {
    let lab = Lab::new(Safety::default());
    let touch = || run(&["touch", "--", &lab.path("ran")]);
    let mut validated = write(&lab.path("new"), "a");
    let Action::Write(file) = &mut validated.action else { unreachable!() };
    file.validate = Some(super::plan::tests::command(&["touch", "--", "{}"]));
    let mut simulated = change(vec![touch()]);
    simulated.dry_run = Some(super::plan::tests::command(&["true"]));
    let mut after = change(vec![touch()]);
    after.after_undo.push(super::plan::tests::command(&["reboot"]));
    for plan in [
        change(vec![touch(), run(&["reboot"])]),
        change(vec![touch(), with_undo(touch(), &["reboot"])]),
        change(vec![touch(), write("/etc/passwd", "")]),
        change(vec![touch(), validated]),
        simulated,
        after,
    ] {
        let refused = lab.gate.apply(lab.asking(false).await, plan).await.err().unwrap();
        assert_eq!(refused.code, "CAPABILITY_DENIED", "{refused}");
    }
    assert!(lab.names().is_empty() && lab.events().is_empty());
}

#[tokio::test]
async fn a_half_done_plan_is_undone_and_both_its_ends_are_on_record() {
    let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
    let (ran, never) = (lab.path("ran"), lab.path("never"));
    let plan = change(vec![
        with_undo(run(&["touch", "--", &ran]), &["rm", "--", &ran]),
        write(&lab.path("new"), "a"),
        with_undo(run(&["false"]), &["touch", "--", &never]),
        run(&["touch", "--", &never]),
    ]);
    let outcome = lab.gate.apply(lab.asking(false).await, plan).await;
    let Ok(Outcome::Broke { problem, step, undone, not_undone, .. }) = outcome else { panic!("not broken") };
    assert_eq!((problem.code.as_str(), step), ("COMMAND_FAILED", 2));
    assert_eq!(undone, [format!("write {}", lab.path("new")), format!("rm -- {ran}")]);
    assert!(not_undone.is_empty() && lab.names().is_empty(), "{not_undone:?} {:?}", lab.names());
    let events = lab.events();
    let shown: Vec<_> = events.iter().map(|event| (event["event"].as_str().unwrap(), &event["id"])).collect();
    let id = &events[0]["id"];
    assert_eq!(shown, [("change-begun", id), ("change-ended", id)]);
    assert_eq!((&events[1]["outcome"], &events[1]["failed_step"]), (&json!("undone"), &json!(2)));
}

#[tokio::test]
async fn what_cannot_be_put_on_record_does_not_happen() {
    let lab = Lab::new(Safety::default());
    std::fs::write(lab.kept.path().join("log"), "in the way").unwrap();
    let plan = change(vec![run(&["touch", "--", &lab.path("ran")])]);
    let refused = lab.gate.apply(lab.asking(false).await, plan).await.err().unwrap();
    assert_eq!(refused.code, "AUDIT_UNAVAILABLE", "{refused}");
    assert!(lab.names().is_empty());
}

#[tokio::test]
async fn a_plan_made_of_what_is_gone_is_refused() {
    let lab = Lab::new(Safety::default());
    std::fs::write(lab.path("file"), "theirs").unwrap();
    for (seen, code) in [
        (Some(sha256(b"theirs")), None),
        (Some(sha256(b"other")), Some("FILE_CHANGED")),
        (None, Some("FILE_CHANGED")),
    ] {
        std::fs::write(lab.path("file"), "theirs").unwrap();
        let mut asking = lab.asking(false).await;
        asking.seen.insert(lab.path("file"), seen);
        let outcome = lab.gate.apply(asking, change(vec![write(&lab.path("file"), "ours")])).await;
        assert_eq!(outcome.err().map(|problem| problem.code).as_deref(), code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asked_may_go_and_the_plan_is_finished_or_undone_all_the_same() {
    let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
    let (pipe, ran) = (PathBuf::from(lab.path("pipe")), lab.path("ran"));
    for (interruptible, finished) in [(false, true), (true, false)] {
        let _ = std::fs::remove_file(&pipe);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        // Waits for whoever writes to the pipe.
        let mut waiting = run(&["cat", "--", pipe.to_str().unwrap()]);
        let Action::Run(step) = &mut waiting.action else { unreachable!() };
        step.interruptible = interruptible;
        let plan = change(vec![
            with_undo(run(&["touch", "--", &ran]), &["rm", "--", &ran]),
            waiting,
            run(&["true"]),
        ]);
        let asking = lab.asking(false).await;
        let executed = asking.executed.clone();
        {
            let mut applying = Box::pin(lab.gate.apply(asking, plan));
            while executed.lines().len() < 2 {
                assert!(applying.as_mut().now_or_never().is_none());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        if finished {
            let pipe = pipe.clone();
            tokio::task::spawn_blocking(move || std::fs::write(pipe, "go")).await.unwrap().unwrap();
        }
        until(|| {
            lab.events().iter().filter(|event| event["event"] == "change-ended").count()
                == 1 + usize::from(!finished)
        })
        .await;
        let ended = lab.events().pop().unwrap();
        assert_eq!(
            (&ended["interrupted"], &ended["error_code"]),
            (&json!(true), &json!("CANCELLED")),
            "{ended}"
        );
        assert_eq!(ended["steps_done"], if finished { 2 } else { 1 }, "{ended}");
        until(|| !Path::new(&ran).exists()).await;
    }
    lab.gate.finished().await;
}

async fn until(holds: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "it never came");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
