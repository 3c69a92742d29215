//! Tests of plans whose connection is lost.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use host_target::test_connection::{Fate, TestConnection};

/// A gate that asks for no confirmation.
fn lenient() -> Lab {
    Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() })
}

/// A connection that is lost at the command with this number among those of this program.
fn losing(
    program: Option<&'static str>,
    number: usize,
    fate: fn() -> Fate,
) -> (Arc<TestConnection>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    let line = TestConnection::new(move |command| match program {
        Some(program) if program != command.program => Fate::Answers,
        _ if count.fetch_add(1, Ordering::SeqCst) == number => fate(),
        _ => Fate::Answers,
    });
    (line, seen)
}

const FATES: [fn() -> Fate; 2] = [|| Fate::NeverComes, || Fate::NeverAnswers];

#[tokio::test]
async fn wherever_a_file_step_loses_its_connection_it_is_taken_back_and_what_was_before_it_is_undone() {
    for fate in FATES {
        for number in 0.. {
            let lab = lenient();
            let (line, seen) = losing(None, number, fate);
            for name in ["first", "second", "third"] {
                std::fs::write(lab.path(name), "before").unwrap();
            }
            let directory = Directory {
                at: FilePath { path: lab.path("made"), privilege: Privilege::Caller },
                mode: 0o755,
                owner: None,
                group: None,
            };
            let remove = FilePath { path: lab.path("third"), privilege: Privilege::Caller };
            let plan = change(vec![
                write(&lab.path("first"), "after"),
                write(&lab.path("new"), "after"),
                Step { action: Action::Remove(remove), undo: Vec::new() },
                Step { action: Action::MakeDirectory(directory), undo: Vec::new() },
                write(&lab.path("second"), "after"),
            ]);
            let request = lab.asking_on(Target::over_test_connection(&line), false).await;
            seen.store(0, Ordering::SeqCst);
            let outcome = lab.gate.apply(request, plan).await.unwrap();
            match outcome {
                Outcome::Failed { problem, uncertain, not_undone, .. } => {
                    assert_eq!(
                        (problem.code.as_str(), uncertain),
                        ("CONNECTION_LOST", false),
                        "{number}: {problem}"
                    );
                    assert!(not_undone.is_empty(), "{number}: {not_undone:?}");
                    assert_eq!(lab.names(), ["first", "second", "third"], "{number}");
                    for name in lab.names() {
                        assert_eq!(std::fs::read_to_string(lab.path(&name)).unwrap(), "before", "{number}");
                    }
                    assert_eq!(lab.events()[1]["outcome"], "undone");
                }
                Outcome::Done { notes, .. } => {
                    assert_eq!(std::fs::read_to_string(lab.path("second")).unwrap(), "after");
                    if seen.load(Ordering::SeqCst) <= number {
                        assert!(number > 15 && notes.is_empty(), "{number}: {notes:?}");
                        break;
                    }
                }
                Outcome::DryRun { .. } => panic!("no dry run"),
            }
        }
    }
}

#[tokio::test]
async fn wherever_a_move_or_a_change_of_attributes_loses_its_connection_it_is_taken_back() {
    // Only root may give a file to somebody else, and nobody sets attributes below a shared /tmp.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for fate in FATES {
        for number in 0.. {
            let lab = lenient();
            let (line, seen) = losing(None, number, fate);
            std::fs::write(lab.path("file"), "").unwrap();
            std::fs::write(lab.path("given"), "").unwrap();
            std::fs::create_dir(lab.path("empty")).unwrap();
            let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(lab.path("given"), mode(0o4711)).unwrap();
            std::fs::set_permissions(lab.path("empty"), mode(0o750)).unwrap();
            let state = || -> Vec<_> {
                use std::os::unix::fs::MetadataExt;
                let of = |name: String| {
                    let metadata = std::fs::metadata(lab.path(&name)).unwrap();
                    // A directory that was made again is another one.
                    let inode = metadata.is_file().then_some(metadata.ino());
                    (name, metadata.mode(), metadata.uid(), metadata.gid(), inode)
                };
                lab.names().into_iter().map(of).collect()
            };
            let before = state();
            let plan = change(vec![
                moving(&lab.path("file"), &lab.path("moved")),
                setting(&lab.path("given"), Some(0o600), Some("daemon"), Some("bin")),
                removing_directory(&lab.path("empty")),
            ]);
            let request = lab.asking_on(Target::over_test_connection(&line), false).await;
            seen.store(0, Ordering::SeqCst);
            match lab.gate.apply(request, plan).await.unwrap() {
                Outcome::Failed { problem, uncertain, not_undone, .. } => {
                    assert_eq!(
                        (problem.code.as_str(), uncertain),
                        ("CONNECTION_LOST", false),
                        "{number}: {problem}"
                    );
                    assert!(not_undone.is_empty(), "{number}: {not_undone:?}");
                    assert_eq!(state(), before, "{number}");
                    assert_eq!(lab.events()[1]["outcome"], "undone");
                }
                Outcome::Done { .. } => {
                    assert_eq!(lab.names(), ["given", "moved"], "{number}");
                    if seen.load(Ordering::SeqCst) <= number {
                        assert!(number > 3, "{number}");
                        break;
                    }
                }
                Outcome::DryRun { .. } => panic!("no dry run"),
            }
        }
    }
}

#[tokio::test]
async fn a_command_that_lost_its_connection_is_neither_repeated_nor_is_anything_undone() {
    for (fate, is_done) in FATES.into_iter().zip([false, true]) {
        let lab = lenient();
        let (line, seen) = losing(Some("touch"), 0, fate);
        let (ran, never) = (lab.path("ran"), lab.path("never"));
        std::fs::write(lab.path("file"), "before").unwrap();
        let plan = change(vec![
            write(&lab.path("file"), "after"),
            with_undo(run(&["touch", "--", &ran]), &["rm", "--", &ran]),
            run(&["touch", "--", &never]),
        ]);
        let outcome =
            lab.gate.apply(lab.asking_on(Target::over_test_connection(&line), false).await, plan).await;
        let Ok(Outcome::Failed { problem, step, undone, not_undone, uncertain, .. }) = outcome else {
            panic!("not broken")
        };
        assert_eq!((problem.code.as_str(), step, uncertain), ("CHANGE_UNCERTAIN", 1, true), "{problem}");
        assert_eq!((undone, not_undone), (vec![], vec![format!("write {}", lab.path("file"))]));
        assert_eq!(problem.details["uncertain"], true);
        let begun = &lab.events()[0];
        let advice = problem.remediation.join("; ");
        for said in [format!("`touch -- {ran}`"), format!("audit recover {}", begun["id"].as_str().unwrap())]
        {
            assert!(advice.contains(&said), "{advice}");
        }
        assert_eq!(seen.load(Ordering::SeqCst), 1);
        assert_eq!(Path::new(&ran).exists(), is_done);
        assert_eq!(std::fs::read_to_string(lab.path("file")).unwrap(), "after");
        let staging = Path::new(begun["files"][0]["staging"].as_str().unwrap());
        assert_eq!(std::fs::read_to_string(staging.join(".previous")).unwrap(), "before");
        assert_eq!(lab.events()[1]["outcome"], "uncertain");
        let open = host_audit::unfinished(&lab.kept.path().join("log")).unwrap();
        assert_eq!((open.len(), open[0].liveness()), (1, host_audit::Liveness::Uncertain));
    }
}

#[tokio::test]
async fn where_nobody_is_to_be_reached_a_file_step_is_uncertain_too() {
    let lab = lenient();
    let line = Arc::new(Mutex::new(None::<Arc<TestConnection>>));
    let known = line.clone();
    let fragile = TestConnection::new(move |command| match command.program.as_str() {
        "mv" => {
            known.lock().unwrap().as_ref().unwrap().set_reachable(false);
            Fate::NeverAnswers
        }
        _ => Fate::Answers,
    });
    *line.lock().unwrap() = Some(fragile.clone());
    let plan = change(vec![write(&lab.path("new"), "after")]);
    let outcome =
        lab.gate.apply(lab.asking_on(Target::over_test_connection(&fragile), false).await, plan).await;
    let Ok(Outcome::Failed { problem, uncertain, .. }) = outcome else { panic!("not broken") };
    assert_eq!((problem.code.as_str(), uncertain), ("CHANGE_UNCERTAIN", true), "{problem}");
    assert!(problem.remediation[0].contains(&lab.path("new")), "{:?}", problem.remediation);
}

#[tokio::test]
async fn an_undo_that_lost_its_connection_is_not_taken_for_done() {
    let lab = lenient();
    let (line, seen) = losing(Some("rm"), 0, || Fate::NeverComes);
    let ran = lab.path("ran");
    let plan = change(vec![with_undo(run(&["touch", "--", &ran]), &["rm", "--", &ran]), run(&["false"])]);
    let outcome = lab.gate.apply(lab.asking_on(Target::over_test_connection(&line), false).await, plan).await;
    let Ok(Outcome::Failed { problem, undone, not_undone, uncertain, .. }) = outcome else {
        panic!("not broken")
    };
    assert_eq!((problem.code.as_str(), uncertain, undone.len()), ("COMMAND_FAILED", true, 0), "{problem}");
    assert!(not_undone[0].contains("isn't known"), "{not_undone:?}");
    assert_eq!((seen.load(Ordering::SeqCst), lab.events()[1]["outcome"].as_str()), (1, Some("uncertain")));
}

#[tokio::test]
async fn a_step_that_never_began_has_failed_for_sure() {
    let lab = lenient();
    let line = TestConnection::new(|_| Fate::Answers);
    let (gone, ran) = (line.clone(), lab.path("ran"));
    let mut request = lab.asking_on(Target::over_test_connection(&line), false).await;
    request.progress = Arc::new(move |_, _| {
        gone.lose();
        gone.set_reachable(false);
    });
    let outcome = lab.gate.apply(request, change(vec![run(&["touch", "--", &ran])])).await;
    let Ok(Outcome::Failed { problem, uncertain, .. }) = outcome else { panic!("not broken") };
    assert_eq!((problem.code.as_str(), uncertain), ("CONNECTION_FAILED", false), "{problem}");
    assert_eq!(lab.events()[1]["outcome"], "undone");
}

/// The host key and a change of the facts that a new connection finds, with the resulting error code.
type Found = (&'static str, fn(&mut Facts), &'static str);
const FOUND: [Found; 4] = [
    ("SHA256:first", |_| {}, ""),
    ("SHA256:second", |_| {}, "PLAN_STALE"),
    ("SHA256:first", |facts| facts.machine_id = Some("another".to_owned()), "PLAN_STALE"),
    ("SHA256:first", |facts| facts.uid += 1, "PLAN_STALE"),
];

#[tokio::test]
async fn no_step_is_taken_on_another_machine_than_the_one_that_the_plan_was_made_for() {
    for (host_key, alter, code) in FOUND {
        let lab = lenient();
        let line = TestConnection::new(|_| Fate::Answers);
        let (moved, ran) = (line.clone(), lab.path("ran"));
        let mut request = lab.asking_on(Target::over_test_connection(&line), false).await;
        request.progress = Arc::new(move |_, _| {
            moved.lose();
            moved.set_machine(host_key, alter);
        });
        let plan = change(vec![run(&["touch", "--", &ran])]);
        let outcome = lab.gate.apply(request, plan).await.unwrap();
        let found = match &outcome {
            Outcome::Failed { problem, .. } => problem.code.as_str(),
            _ => "",
        };
        assert_eq!((found, Path::new(&ran).exists()), (code, code.is_empty()));
    }
}

#[tokio::test]
async fn what_was_confirmed_is_not_done_to_another_machine() {
    for (host_key, alter, code) in FOUND {
        let lab = Lab::new(Safety::default());
        std::fs::write(lab.path("file"), "").unwrap();
        let line = TestConnection::new(|_| Fate::Answers);
        let moved = line.clone();
        let person = Arc::new(Person::who_first(move || {
            moved.lose();
            moved.set_machine(host_key, alter);
        }));
        let plan = change(vec![run(&["rm", "--", &lab.path("file")])]);
        let request =
            about(&plan, person.clone(), lab.asking_on(Target::over_test_connection(&line), false).await);
        let refused = lab.gate.apply(request, plan).await.err();
        assert_eq!(refused.map_or(String::new(), |problem| problem.code), code);
        assert_eq!(lab.names().is_empty(), code.is_empty());
        let question = person.asked.lock().unwrap().take().unwrap();
        assert!(question.text.contains("host key SHA256:first)"), "{}", question.text);
    }
}

#[tokio::test]
async fn a_simulation_that_lost_its_connection_has_changed_nothing() {
    let lab = lenient();
    let (line, _) = losing(Some("echo"), 0, || Fate::NeverAnswers);
    let mut plan = change(vec![run(&["true"])]);
    plan.dry_run = Some(super::super::plan::tests::command(&["echo", "would"]));
    let refused = lab
        .gate
        .apply(lab.asking_on(Target::over_test_connection(&line), true).await, plan)
        .await
        .err()
        .unwrap();
    assert_eq!(refused.code, "CONNECTION_LOST", "{refused}");
}

/// A service manager that starts the units that it is told to start, and reports them.
fn service_manager(step: fn() -> Fate) -> (Arc<TestConnection>, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::<String>::new()));
    let heard = told.clone();
    let line = TestConnection::new(move |command| {
        let verb = command.args.first().map_or("", String::as_str);
        match (command.program.as_str(), verb) {
            ("touch", _) => step(),
            ("systemctl", "show") => {
                let fired = heard.lock().unwrap().iter().any(|told| told.ends_with(".service"));
                let (state, time) = if fired { ("active", 7) } else { ("inactive", 0) };
                let unit = format!(
                    "ActiveState={state}\nJob=\nExecMainStartTimestampMonotonic={time}\nResult=success\nConditionResult=yes"
                );
                let units = command.args.iter().skip_while(|arg| *arg != "--").skip(1);
                Fate::Says(0, units.map(|_| unit.clone()).collect::<Vec<_>>().join("\n\n"))
            }
            ("systemctl", "start" | "stop") => {
                let unit = command.args.last().unwrap();
                heard.lock().unwrap().push(format!("{verb} {unit}"));
                Fate::Says(0, String::new())
            }
            _ => Fate::Says(0, String::new()),
        }
    });
    line.set_machine("SHA256:first", |facts| {
        facts.init_system = "systemd".to_owned();
        (facts.uid, facts.sudo_limited) = (0, false);
    });
    (line, told)
}

async fn guarded(lab: &Lab, line: &Arc<TestConnection>) -> Result<Outcome, Problem> {
    let ran = lab.path("ran");
    let mut plan = change(vec![with_undo(run(&["touch", "--", &ran]), &["rm", "--", &ran])]);
    plan.guard = Some(Duration::from_secs(60));
    lab.gate.apply(lab.asking_on(Target::over_test_connection(line), false).await, plan).await
}

#[tokio::test(start_paused = true)]
async fn a_guard_is_taken_away_where_a_new_connection_is_had_and_fires_where_none_is() {
    for (is_reached, code) in [(true, ""), (false, "CONNECTION_CUT")] {
        let lab = lenient();
        let (line, told) = service_manager(|| Fate::Says(0, String::new()));
        line.set_reachable(is_reached);
        let outcome = guarded(&lab, &line).await.unwrap();
        let (found, undone) = match outcome {
            Outcome::Failed { problem, undone, uncertain: false, .. } => (problem.code, undone),
            _ => (String::new(), Vec::new()),
        };
        assert_eq!(found, code);
        assert_eq!(undone.len(), usize::from(!is_reached));
        let has_fired =
            told.lock().unwrap().iter().any(|told| told.starts_with("start") && told.ends_with(".service"));
        assert_eq!(has_fired, !is_reached);
    }
}

#[tokio::test(start_paused = true)]
async fn a_guarded_step_that_lost_its_connection_is_undone_by_the_target() {
    let lab = lenient();
    let (line, _) = service_manager(|| Fate::NeverAnswers);
    let outcome = guarded(&lab, &line).await;
    let Ok(Outcome::Failed { problem, undone, uncertain, .. }) = outcome else { panic!("not broken") };
    assert_eq!((problem.code.as_str(), uncertain), ("CONNECTION_CUT", false), "{problem}");
    assert_eq!(undone, [format!("rm -- {}", lab.path("ran"))]);
    assert_eq!(lab.events()[1]["outcome"], "undone");
}

#[tokio::test(start_paused = true)]
async fn a_target_that_stays_away_undoes_by_itself_and_nobody_claims_to_know() {
    let lab = lenient();
    let (line, _) = service_manager(|| Fate::NeverAnswers);
    let gone = line.clone();
    let mut request = lab.asking_on(Target::over_test_connection(&line), false).await;
    request.progress = Arc::new(move |_, _| gone.set_reachable(false));
    let mut plan = change(vec![run(&["touch", "--", &lab.path("ran")])]);
    plan.guard = Some(Duration::from_secs(60));
    let outcome = lab.gate.apply(request, plan).await;
    let Ok(Outcome::Failed { problem, undone, uncertain, .. }) = outcome else { panic!("not broken") };
    assert_eq!((problem.code.as_str(), uncertain, undone.len()), ("CONNECTION_CUT", true, 0), "{problem}");
    assert!(problem.message.contains("undoes the change by itself, by "), "{problem}");
    assert_eq!(lab.events()[1]["outcome"], "uncertain");
}
