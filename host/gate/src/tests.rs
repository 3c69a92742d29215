use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::FutureExt;

use super::plan::tests::{change, moving, removing, removing_directory, run, setting, write};
use super::*;
use host_base::{Command, Privilege};
use host_capability::{CommandRequest, Effect, OwnProgramRequest, PathRequest, Place};
use host_target::Overrides;

/// A gate with its own audit log, and a directory that plans may write to.
struct Lab {
    kept: tempfile::TempDir,
    gate: Arc<Gate>,
}

impl Lab {
    fn new(safety: Safety) -> Self {
        // Root's rights don't pass a directory that others can write to.
        let kept = match rustix::process::geteuid().is_root() {
            true => tempfile::tempdir_in("/run"),
            false => tempfile::tempdir(),
        };
        let kept = kept.unwrap();
        let settings = host_audit::Settings { rotate_bytes: 1 << 20, keep: 1 };
        let audit = AuditLog::new(kept.path().join("log"), settings).with_journal("/nonexistent".into());
        std::fs::create_dir(kept.path().join("files")).unwrap();
        // The locks are this test's own, because other tests lock the same machine.
        let target_locks = target_lock::TargetLocks::new(kept.path().join("turns"));
        let gate =
            Gate { target_locks, ..Gate::new(safety, None, LazyKnowledge::default(), Arc::new(audit)) };
        Self { gate: Arc::new(gate), kept }
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

    async fn request(&self, dry_run: bool) -> PlanRequest {
        self.asking_on(Target::local(Overrides::default()), dry_run).await
    }

    async fn asking_on(&self, target: Target, dry_run: bool) -> PlanRequest {
        let mut grants = Grants::new("test");
        let files = self.path("");
        for (pattern, effect, risk) in [
            (format!("touch -- <path:{files}*>"), Effect::Change, Risk::Moderate),
            (format!("rm -- <path:{files}*>"), Effect::Change, Risk::High),
            (format!("chmod -- <mode> <path:{files}*>"), Effect::Change, Risk::High),
            ("true".into(), Effect::Read, Risk::ReadOnly),
            ("false".into(), Effect::Change, Risk::Low),
            // timeout(1) ends with the exit code of a command that was killed.
            ("timeout --signal=KILL 0.01 sleep 60".into(), Effect::Change, Risk::Low),
            (format!("cat -- <path:{files}*>"), Effect::Read, Risk::ReadOnly),
            ("echo <text>".into(), Effect::DryRun, Risk::ReadOnly),
            (format!("head -- <path:{files}*>"), Effect::DryRun, Risk::ReadOnly),
            (format!("mv -- <path:{files}*> <path:{files}*>"), Effect::DryRun, Risk::ReadOnly),
            ("sort < stdin".into(), Effect::Change, Risk::Moderate),
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
        let (facts, target) = (target.facts().await.unwrap(), Arc::new(target));
        let arguments = serde_json::Map::new();
        let mut origin = Origin::new("1".into(), "test".into(), "cli".into(), "t".into(), &arguments);
        origin.target = Some(crate::target_used(&target, &facts, target.host_key().await));
        PlanRequest {
            origin: Arc::new(origin),
            risk: Risk::Moderate,
            grants: Arc::new(grants),
            facts,
            target,
            dry_run,
            target_lock: TargetLockSlot::default(),
            confirmer: Arc::new(confirmation::NoConfirmer),
            replan: Arc::new(Module(None)),
            file_hashes: HashMap::new(),
            observed: Arc::default(),
            command_log: Arc::default(),
            progress: Arc::new(|_, _| {}),
        }
    }

    /// The events of the audit log.
    fn events(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.kept.path().join("log/audit.jsonl")).unwrap_or_default();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A module that makes the same plan each time, or none where nothing is to be done.
struct Module(Option<Change>);

impl Replan for Module {
    fn plan(&self) -> futures_util::future::BoxFuture<'_, Result<PlannedChange, Problem>> {
        let nothing = || Problem::new("NO_PLAN", Category::State, "nothing would be changed any more");
        let change = self.0.clone().ok_or_else(nothing);
        Box::pin(async {
            Ok(PlannedChange { change: change?, file_hashes: HashMap::new(), observed: Arc::default() })
        })
    }
}

/// The request with a person to ask, and with a module that makes this plan again.
fn about(plan: &Change, person: Arc<Person>, request: PlanRequest) -> PlanRequest {
    PlanRequest { confirmer: person, replan: Arc::new(Module(Some(plan.clone()))), ..request }
}

/// The code of a plan that needs a person where there is none.
const UNAVAILABLE: &str = "CONFIRMATION_UNAVAILABLE";

/// A person who does something first, and then answers.
struct Person {
    answer: confirmation::Answer,
    first: Box<dyn Fn() + Send + Sync>,
    asked: std::sync::Mutex<Option<Question>>,
}

impl Person {
    fn who_says(answer: confirmation::Answer) -> Self {
        Self { answer, first: Box::new(|| {}), asked: Default::default() }
    }

    fn who_first(first: impl Fn() + Send + Sync + 'static) -> Self {
        Self { first: Box::new(first), ..Self::who_says(yes()) }
    }
}

impl Confirmer for Person {
    fn ask(
        &self,
        question: Question,
    ) -> futures_util::future::BoxFuture<'_, Result<confirmation::Answer, Problem>> {
        *self.asked.lock().unwrap() = Some(question);
        (self.first)();
        Box::pin(async { Ok(self.answer.clone()) })
    }
}

fn yes() -> confirmation::Answer {
    confirmation::Answer::Yes(DecidedBy::Elicitation)
}

fn no() -> confirmation::Answer {
    confirmation::Answer::No(DecidedBy::Elicitation)
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
    let outcome = lab.gate.apply(lab.request(true).await, plan).await;
    let Ok(Outcome::DryRun { preview, outputs, .. }) = outcome else { panic!("no dry run") };
    assert_eq!(outputs[0].stdout, b"would\n");
    assert_eq!(preview["steps"][0]["write"], lab.path("new"));
    assert!(preview["steps"][0]["diff"].as_str().unwrap().contains("\n+a\n"), "{preview}");
    assert_eq!(preview["steps"][1]["run"], format!("touch -- {}", lab.path("ran")));
    assert!(lab.names().is_empty() && lab.events().is_empty());
}

#[tokio::test]
async fn a_program_of_the_modules_own_may_be_missing_until_a_step_brings_it() {
    const PATH: &str = "/usr/local/lib/linux-sysadmin/lsa-test-brought";
    const TEXT: &str = "#!/bin/sh\n";
    let lab = Lab::new(Safety::default());
    let mut grants = Grants::new("test");
    let (path, reason) = (PATH.to_owned(), String::new());
    grants.own_program(&OwnProgramRequest { path, sha256: sha256::of(TEXT.as_bytes()), reason }).unwrap();
    let (privilege, place) = (Privilege::Caller, Place::Target);
    let command = CommandRequest {
        pattern: format!("{PATH} create"),
        effect: Effect::Change,
        privilege: privilege.clone(),
        place,
        risk: Risk::Low,
        reason: String::new(),
    };
    grants.command(&command).unwrap();
    let path = PathRequest { glob: PATH.into(), write: true, privilege, place, reason: String::new() };
    grants.path(&path).unwrap();
    let grants = Arc::new(grants);
    for (steps, is_missing) in [
        (vec![run(&[PATH, "create"])], true),
        (vec![run(&[PATH, "create"]), write(PATH, TEXT)], true),
        (vec![write(PATH, TEXT), run(&[PATH, "create"])], false),
    ] {
        let request = PlanRequest { grants: grants.clone(), ..lab.request(true).await };
        let code = lab.gate.apply(request, change(steps)).await.err().map(|problem| problem.code);
        // Where the directory is missing as well, the write is what can't be.
        assert_eq!(code.as_deref() == Some("PROGRAM_NOT_FOUND"), is_missing, "{code:?}");
    }
}

#[tokio::test]
async fn a_plan_that_needs_rights_that_cannot_be_had_says_which_command_does() {
    let lab = Lab::new(Safety::default());
    let mut request = lab.request(false).await;
    let mut grants = Grants::new("test");
    let grant = CommandRequest {
        pattern: "true".into(),
        effect: Effect::Change,
        privilege: Privilege::User("nobody".into()),
        place: Place::Target,
        risk: Risk::Low,
        reason: String::new(),
    };
    grants.command(&grant).unwrap();
    request.grants = Arc::new(grants);
    request.facts = Arc::new(host_target::Facts { uid: 1000, ..Default::default() });
    let mut step = run(&["true"]);
    if let Action::Run(run) = &mut step.action {
        run.command.privilege = Privilege::User("nobody".into());
    }
    let refused = lab.gate.apply(request, change(vec![step])).await.err().unwrap();
    assert_eq!(refused.code, "PRIVILEGE_REQUIRED");
    assert!(refused.message.starts_with("`true` as nobody: "), "{refused}");
    assert!(lab.events().is_empty());
}

#[tokio::test]
async fn the_gravest_of_tool_plan_and_grants_decides_whether_a_person_is_asked() {
    let lab = Lab::new(Safety::default());
    std::fs::write(lab.path("file"), "").unwrap();
    let remove = || change(vec![run(&["rm", "--", &lab.path("file")])]);
    let mut grave = change(vec![run(&["true"])]);
    grave.risk = Some(Risk::Critical);
    // The undo runs in a plan that is made to fail.
    let hidden = change(vec![with_undo(run(&["true"]), &["rm", "--", &lab.path("file")]), run(&["false"])]);
    for (plan, risk) in [(remove(), "high"), (grave, "critical"), (hidden, "high")] {
        let person = Arc::new(Person::who_says(no()));
        let request = PlanRequest { confirmer: person.clone(), ..lab.request(false).await };
        let refused = lab.gate.apply(request, plan).await.err().unwrap();
        assert_eq!(refused.code, "CONFIRMATION_DECLINED");
        let question = person.asked.lock().unwrap().take().unwrap();
        assert_eq!(json!(question.risk), json!(risk));
        let preview = &question.preview;
        assert!(preview["command"].is_string() || preview["steps"].is_array(), "{preview}");
        assert!(preview["escalation_reason"].is_string(), "{preview}");
    }
    assert_eq!(lab.names(), ["file"]);
    let wary = Safety { confirmation_threshold: Risk::Moderate, ..Safety::default() };
    let wary = Gate::new(wary, None, LazyKnowledge::default(), lab.gate.audit().clone());
    for (step, code) in [(write(&lab.path("file"), "x"), Some(UNAVAILABLE)), (run(&["true"]), None)] {
        let request = PlanRequest { risk: Risk::Low, ..lab.request(false).await };
        let refused = wary.apply(request, change(vec![step])).await.err();
        assert_eq!(refused.map(|problem| problem.code).as_deref(), code);
    }
    let strict = Safety { dry_run_bypass_confirmation: false, ..Safety::default() };
    let strict = Gate::new(strict, None, LazyKnowledge::default(), lab.gate.audit().clone());
    let refused = strict.apply(lab.request(true).await, remove()).await.err().unwrap();
    assert_eq!(refused.code, UNAVAILABLE);
    let lenient = Safety { confirmation_threshold: Risk::Critical, ..Safety::default() };
    let lenient = Gate::new(lenient, None, LazyKnowledge::default(), lab.gate.audit().clone());
    assert!(matches!(lenient.apply(lab.request(false).await, remove()).await, Ok(Outcome::Done { .. })));
    assert!(lab.names().is_empty());
}

#[tokio::test]
async fn what_was_confirmed_is_what_runs_and_who_said_so_is_on_record() {
    let lab = Lab::new(Safety::default());
    std::fs::write(lab.path("file"), "").unwrap();
    let person = Arc::new(Person::who_says(yes()));
    let plan = change(vec![run(&["rm", "--", &lab.path("file")])]);
    let request = about(&plan, person.clone(), lab.request(false).await);
    let outcome = lab.gate.apply(request, plan).await;
    assert!(matches!(outcome, Ok(Outcome::Done { .. })));
    assert!(lab.names().is_empty());
    let question = person.asked.lock().unwrap().take().unwrap();
    let begun = &lab.events()[0];
    assert_eq!(begun["plan"], question.preview);
    assert_eq!((&begun["id"], &begun["plan_sha256"]), (&json!(question.id), &json!(question.sha256)));
    assert_eq!((&begun["decision"], &begun["decided_by"]), (&json!("allowed"), &json!("elicitation")));
    assert!(question.text.contains(&format!("1. run rm -- {}\n", lab.path("file"))), "{}", question.text);
}

#[tokio::test]
async fn what_changed_while_somebody_was_asked_is_another_plan_and_does_not_run() {
    for (after, code) in [("theirs", "PLAN_STALE"), ("as shown", "")] {
        let lab = Lab::new(Safety::default());
        let (file, link) = (lab.path("file"), lab.path("link"));
        std::fs::write(&file, "as shown").unwrap();
        std::fs::write(&link, "").unwrap();
        let there = file.clone();
        let person = Person::who_first(move || std::fs::write(&there, after).unwrap());
        let plan = change(vec![write(&file, "ours"), run(&["rm", "--", &link])]);
        let request = about(&plan, Arc::new(person), lab.request(false).await);
        let refused = lab.gate.apply(request, plan).await.err();
        assert_eq!(refused.map_or(String::new(), |problem| problem.code), code);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), if code.is_empty() { "ours" } else { after });
    }
}

#[tokio::test]
async fn a_plan_that_would_be_another_one_by_now_does_not_run() {
    let lab = Lab::new(Safety::default());
    let (file, other) = (lab.path("file"), lab.path("other"));
    let remove = |path: &str| change(vec![run(&["rm", "--", path])]);
    let longer = change(vec![run(&["rm", "--", &file]), run(&["true"])]);
    let counting = |files: u32| Change { warnings: vec![format!("{files} files")], ..remove(&file) };
    for (then, differs) in [
        (
            Some(remove(&other)),
            json!([{"at": "/command", "shown": format!("rm -- {file}"), "now": format!("rm -- {other}")}]),
        ),
        (
            Some(Change { summary: "Something else".into(), ..remove(&file) }),
            json!([{"at": "/description", "shown": "Do it", "now": "Something else"}]),
        ),
        (Some(longer), Value::Null),
        (None, Value::Null),
        // The two plans differ only by a number in a sentence.
        (Some(counting(12)), json!("it runs")),
    ] {
        std::fs::write(&file, "").unwrap();
        std::fs::write(&other, "").unwrap();
        let runs = differs == json!("it runs");
        let person = Arc::new(Person::who_says(yes()));
        let request =
            PlanRequest { confirmer: person, replan: Arc::new(Module(then)), ..lab.request(false).await };
        let plan = if runs { counting(9) } else { remove(&file) };
        let outcome = lab.gate.apply(request, plan).await;
        match outcome.err() {
            None => assert!(runs),
            Some(refused) => {
                assert_eq!(refused.code, "PLAN_STALE");
                if !differs.is_null() {
                    assert_eq!(refused.details["differs"], differs);
                }
            }
        }
        let left = if runs { &["other"][..] } else { &["file", "other"] };
        assert_eq!(lab.names(), left);
    }
}

#[tokio::test]
async fn a_file_that_was_replaced_while_somebody_was_asked_is_another_one() {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    type Change = fn(&Path);
    let replaced: Change = |file| {
        let beside = file.with_extension("new");
        std::fs::copy(file, &beside).unwrap();
        std::fs::rename(&beside, file).unwrap();
    };
    let overwritten: Change = |file| std::fs::write(file, "secret").unwrap();
    let continued: Change = |file| {
        let mut file = std::fs::File::options().append(true).open(file).unwrap();
        file.write_all(b"more\n").unwrap();
    };
    let read: Change = |file| drop(std::fs::read(file).unwrap());
    for (mode, meanwhile, is_stale) in [
        (0o644, replaced, true),
        (0o600, replaced, true),
        // Others get what is in it.
        (0o644, overwritten, true),
        (0o644, continued, false),
        (0o644, read, false),
        // Nobody gets it.
        (0o700, overwritten, false),
    ] {
        for is_command in [true, false] {
            let lab = Lab::new(Safety::default());
            let file = lab.path("file");
            std::fs::write(&file, "line\n").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
            let step = match is_command {
                true => run(&["chmod", "--", &format!("{mode:04o}"), &file]),
                false => setting(&file, Some(mode), None, None),
            };
            let plan = super::Change { risk: Some(Risk::High), ..change(vec![step]) };
            let there = PathBuf::from(&file);
            let person = Arc::new(Person::who_first(move || meanwhile(&there)));
            let request = about(&plan, person, lab.request(false).await);
            let refused = lab.gate.apply(request, plan).await.err();
            let code = refused.map_or(String::new(), |problem| problem.code);
            assert_eq!(code, if is_stale { "PLAN_STALE" } else { "" }, "{mode:o} {is_command}");
            let now = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
            assert_eq!(now == mode, !is_stale, "{mode:o} {is_command}");
        }
    }
}

#[tokio::test]
async fn a_link_that_was_set_while_somebody_was_asked_is_noticed() {
    let lab = Lab::new(Safety::default());
    let (file, other) = (lab.path("file"), lab.path("other"));
    std::fs::write(&other, "").unwrap();
    std::fs::write(&file, "").unwrap();
    let (from, to) = (file.clone(), other.clone());
    let person = Person::who_first(move || {
        std::fs::remove_file(&from).unwrap();
        std::os::unix::fs::symlink(&to, &from).unwrap();
    });
    let plan = change(vec![run(&["rm", "--", &file])]);
    let request = about(&plan, Arc::new(person), lab.request(false).await);
    let refused = lab.gate.apply(request, plan).await.err().unwrap();
    assert_eq!(refused.code, "PLAN_STALE", "{refused}");
    assert_eq!(lab.names(), ["file", "other"]);
}

#[tokio::test]
async fn what_the_program_itself_says_of_the_plan_is_part_of_it() {
    let lab = Lab::new(Safety::default());
    std::fs::write(lab.path("simulation"), "would do this\n").unwrap();
    let now = "Last metadata expiration check: 0:00:01 ago on Sun Nov 22 20:31:17 2026.\nwould do this\n";
    let later = now.replace("0:00:01", "0:05:00");
    for (then, code) in [(now, ""), (&later, ""), ("would do that\n", "PLAN_STALE")] {
        let then = then.to_owned();
        std::fs::write(lab.path("file"), "").unwrap();
        std::fs::write(lab.path("simulation"), now).unwrap();
        let there = lab.path("simulation");
        let person = Arc::new(Person::who_first(move || std::fs::write(&there, &then).unwrap()));
        let mut plan = change(vec![run(&["rm", "--", &lab.path("file")])]);
        plan.dry_run = Some(super::plan::tests::command(&["head", "--", &lab.path("simulation")]));
        let request = about(&plan, person.clone(), lab.request(false).await);
        let refused = lab.gate.apply(request, plan).await.err();
        assert_eq!(refused.map_or(String::new(), |problem| problem.code), code);
        let question = person.asked.lock().unwrap().take().unwrap();
        assert!(question.text.contains("\n   | would do this\n"), "{}", question.text);
        assert!(!question.text.contains("expiration"), "{}", question.text);
    }
}

#[tokio::test]
async fn while_somebody_is_asked_others_may_change_the_target() {
    let lab = Lab::new(Safety::default());
    std::fs::write(lab.path("file"), "").unwrap();
    let request = lab.request(false).await;
    request.target_lock.hold(lab.gate.lock_target(&request.target).await.unwrap());
    let (gate, target) = (lab.gate.clone(), request.target.clone());
    let person = Person::who_first(move || {
        assert!(gate.lock_target(&target).now_or_never().is_some_and(|target_lock| target_lock.is_ok()));
    });
    let plan = change(vec![run(&["rm", "--", &lab.path("file")])]);
    let request = about(&plan, Arc::new(person), request);
    let (target_lock, target) = (request.target_lock.clone(), request.target.clone());
    let outcome = lab.gate.apply(request, plan).await;
    assert!(outcome.is_ok());
    assert!(lab.gate.lock_target(&target).now_or_never().is_none(), "it is held again");
    drop(target_lock);
}

/// The test's own rules for `rm`, `touch` and `echo`.
fn rules(lab: &Lab, level: &str, risk: &str) -> Option<Arc<Policy>> {
    let path = lab.kept.path().join("rules.yaml");
    let rule = |id: &str, of: &str| {
        format!(
            "- {{id: {id}, level: {level}, risk_score: 50, {risk} capabilities: [test.change], reason: is tried, match: {{{of}}}}}\n"
        )
    };
    let rules = [rule("commands", "command: [touch, mv]"), rule("files", "step: write, path: '/**/judged'")];
    std::fs::write(&path, format!("rules:\n{}", rules.concat())).unwrap();
    let path = path.to_str().unwrap().to_owned();
    Policy::load(&host_policy::PolicyFile { path: Some(path), include_builtin: false }).unwrap()
}

#[tokio::test]
async fn rules_raise_a_plan_forbid_it_or_leave_it_as_the_grants_have_it() {
    for (level, risk, asked, code) in [
        ("SAFE", "", None, ""),
        // A command that a typed grant allows has the risk of its tool.
        ("CONFIRM", "", None, ""),
        ("CONFIRM", "risk: high,", Some(Risk::High), "CONFIRMATION_DECLINED"),
        ("CONFIRM", "risk: critical,", Some(Risk::Critical), "CONFIRMATION_DECLINED"),
        ("CONFIRM", "risk: low,", None, ""),
        ("BLOCK", "risk: critical,", None, "POLICY_BLOCKED"),
    ] {
        let lab = Lab::new(Safety::default());
        let gate = Gate::new(
            Safety::default(),
            rules(&lab, level, risk),
            LazyKnowledge::default(),
            lab.gate.audit().clone(),
        );
        let (ran, judged) = (lab.path("ran"), lab.path("judged"));
        let after = |mut plan: Change| {
            plan.after_undo.push(super::plan::tests::command(&["touch", "--", &ran]));
            plan
        };
        for plan in [
            change(vec![run(&["touch", "--", &ran])]),
            change(vec![with_undo(run(&["true"]), &["touch", "--", &ran])]),
            after(change(vec![run(&["true"])])),
            change(vec![write(&judged, "x")]),
        ] {
            // A file asks by itself unless it is known to be only data.
            let writes = plan.steps.iter().any(|step| step.action.path().is_some());
            if writes && code.is_empty() {
                continue;
            }
            let person = Arc::new(Person::who_says(no()));
            let request = PlanRequest { confirmer: person.clone(), ..lab.request(false).await };
            let refused = gate.apply(request, plan).await.err();
            assert_eq!(
                refused.as_ref().map_or("", |problem| &problem.code),
                code,
                "{level} {risk} {refused:?}"
            );
            let question = person.asked.lock().unwrap().take();
            assert_eq!(question.as_ref().map(|question| question.risk), asked, "{level} {risk}");
            if let Some(question) = question {
                assert!(question.text.contains("is tried"), "{}", question.text);
            }
        }
    }
}

#[tokio::test]
async fn what_a_program_reads_is_shown_whole_whatever_a_plan_says_was_there() {
    let lab = Lab::new(Safety::default());
    let reading =
        |stdin: &str| Command { stdin: Some(stdin.into()), ..super::plan::tests::command(&["sort"]) };
    for (undone, shown) in [("evil\n", 2), ("before\n", 1)] {
        let run = Run {
            command: reading("evil\n"),
            piped: Vec::new(),
            any_exit: false,
            success: Vec::new(),
            interruptible: true,
        };
        let mut plan = change(vec![Step { action: Action::Run(run), undo: vec![reading(undone)] }]);
        plan.risk = Some(Risk::High);
        let person = Arc::new(Person::who_says(no()));
        let request = PlanRequest { confirmer: person.clone(), ..lab.request(false).await };
        lab.gate.apply(request, plan).await.err().unwrap();
        let text = person.asked.lock().unwrap().take().unwrap().text;
        assert!(text.contains("   | +evil\n"), "{text}");
        assert_eq!(text.matches("evil").count(), shown, "the undo as well: {text}");
    }
}

#[tokio::test]
async fn a_simulation_that_the_rules_take_for_a_change_is_never_run() {
    let lab = Lab::new(Safety::default());
    std::fs::write(lab.path("file"), "").unwrap();
    let gate = Gate::new(
        Safety::default(),
        rules(&lab, "CONFIRM", ""),
        LazyKnowledge::default(),
        lab.gate.audit().clone(),
    );
    for dry_run in [true, false] {
        let mut plan = change(vec![run(&["true"])]);
        plan.risk = Some(Risk::High);
        let simulation = ["mv", "--", &lab.path("file"), &lab.path("moved")];
        plan.dry_run = Some(super::plan::tests::command(&simulation));
        let person = Arc::new(Person::who_says(yes()));
        let request = PlanRequest { confirmer: person, ..lab.request(dry_run).await };
        let refused = gate.apply(request, plan).await.err().unwrap();
        assert_eq!(refused.code, "POLICY_BLOCKED", "{refused}");
        assert_eq!(lab.names(), ["file"]);
    }
}

#[tokio::test]
async fn where_a_grant_leaves_the_arguments_open_a_rule_asks_by_itself() {
    let lab = Lab::new(Safety::default());
    let gate = Gate::new(
        Safety::default(),
        rules(&lab, "CONFIRM", ""),
        LazyKnowledge::default(),
        lab.gate.audit().clone(),
    );
    for (pattern, asked) in [("mv <path> <path>", false), ("mv <path> <arg>", true)] {
        let person = Arc::new(Person::who_says(no()));
        let mut grants = Grants::new("test");
        let request = CommandRequest {
            pattern: pattern.to_owned(),
            effect: Effect::Change,
            privilege: Privilege::Caller,
            place: Place::Target,
            risk: Risk::Low,
            reason: String::new(),
        };
        grants.command(&request).unwrap();
        let request = PlanRequest {
            confirmer: person.clone(),
            grants: Arc::new(grants),
            risk: Risk::Low,
            ..lab.request(false).await
        };
        let plan = change(vec![run(&["mv", &lab.path("none"), &lab.path("other")])]);
        let _ = gate.apply(request, plan).await;
        assert_eq!(person.asked.lock().unwrap().is_some(), asked, "{pattern}");
    }
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
        change(vec![touch(), moving("/etc/passwd", &lab.path("moved"))]),
        change(vec![touch(), moving(&lab.path("moved"), "/etc/lsa-moved")]),
        change(vec![touch(), setting("/etc/passwd", Some(0o600), None, None)]),
        change(vec![touch(), removing_directory("/etc/cron.d")]),
        change(vec![touch(), validated]),
        simulated,
        after,
    ] {
        let refused = lab.gate.apply(lab.request(false).await, plan).await.err().unwrap();
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
    let outcome = lab.gate.apply(lab.request(false).await, plan).await;
    let Ok(Outcome::Failed { problem, step, undone, not_undone, .. }) = outcome else { panic!("not broken") };
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
async fn a_step_that_somebody_else_ended_is_undone_too_and_nobody_knows_what_is_left() {
    let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
    let (ran, half) = (lab.path("ran"), lab.path("half"));
    std::fs::write(&half, "").unwrap();
    let killed = run(&["timeout", "--signal=KILL", "0.01", "sleep", "60"]);
    let plan = change(vec![
        with_undo(run(&["touch", "--", &ran]), &["rm", "--", &ran]),
        with_undo(killed, &["rm", "--", &half]),
    ]);
    let outcome = lab.gate.apply(lab.request(false).await, plan).await;
    let Ok(Outcome::Failed { problem, step, undone, not_undone, uncertain, .. }) = outcome else {
        panic!("not broken")
    };
    assert_eq!((problem.code.as_str(), step, uncertain), ("COMMAND_KILLED", 1, true));
    assert!(problem.message.contains("ended by signal 9"), "{problem}");
    assert_eq!(undone, [format!("rm -- {half}"), format!("rm -- {ran}")]);
    assert!(not_undone.is_empty() && lab.names().is_empty(), "{not_undone:?} {:?}", lab.names());
    let advised = problem.remediation.join("\n");
    assert!(advised.contains("sleep 60` is still running"), "{advised}");
    assert!(advised.contains("audit recover"), "{advised}");
    assert_eq!(lab.events()[1]["outcome"], "uncertain");
}

#[tokio::test]
async fn moves_attributes_and_removed_directories_are_shown_recorded_and_undone() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
    let path = |name: &str| lab.path(name);
    std::fs::write(path("file"), "text").unwrap();
    std::fs::write(path("given"), "").unwrap();
    std::fs::create_dir(path("empty")).unwrap();
    let plan = || {
        change(vec![
            moving(&path("file"), &path("moved")),
            setting(&path("given"), Some(0o640), None, Some("daemon")),
            removing_directory(&path("empty")),
            run(&["false"]),
        ])
    };
    let Ok(Outcome::DryRun { preview, .. }) = lab.gate.apply(lab.request(true).await, plan()).await else {
        panic!("no dry run")
    };
    let steps = &preview["steps"];
    assert_eq!((&steps[0]["move"], &steps[0]["to"]), (&json!(path("file")), &json!(path("moved"))));
    assert_eq!(
        (&steps[0]["former"], &steps[0]["sha256"]),
        (&json!("0644 root:root"), &json!(sha256::of(b"text")))
    );
    assert_eq!((&steps[1]["set_attributes"], &steps[1]["mode"]), (&json!(path("given")), &json!("0640")));
    assert_eq!((&steps[1]["group"], &steps[1]["owner"]), (&json!("daemon"), &Value::Null));
    assert_eq!(
        (&steps[2]["remove_directory"], &steps[2]["former"]),
        (&json!(path("empty")), &json!("0755 root:root"))
    );
    assert_eq!(lab.names(), ["empty", "file", "given"]);
    let outcome = lab.gate.apply(lab.request(false).await, plan()).await;
    let Ok(Outcome::Failed { undone, not_undone, .. }) = outcome else { panic!("not broken") };
    let expected = [
        format!("remove directory {}", path("empty")),
        format!("set attributes of {}", path("given")),
        format!("move {} to {}", path("file"), path("moved")),
    ];
    assert_eq!((undone, not_undone), (expected.to_vec(), Vec::new()));
    assert_eq!(lab.names(), ["empty", "file", "given"]);
    let events = lab.events();
    let files = &events[0]["files"];
    let kinds: Vec<_> = files.as_array().unwrap().iter().map(|file| file["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["move", "set-attributes", "remove-directory"]);
    assert_eq!(files[0]["to"], path("moved"));
    assert_eq!(
        (&files[1]["before"]["group"], &files[1]["after"]["group"]),
        (&json!("root"), &json!("daemon"))
    );
    assert_eq!(events[1]["outcome"], "undone");
}

#[tokio::test]
async fn what_was_confirmed_is_moved_or_changed_and_nothing_else_of_that_name() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for (name, replaces) in [("file", true), ("file", false), ("empty", true), ("empty", false)] {
        let lab = Lab::new(Safety::default());
        std::fs::write(lab.path("file"), "text").unwrap();
        std::fs::create_dir(lab.path("empty")).unwrap();
        let other = |name: &str| match name {
            "file" => std::fs::write(lab.path("other"), "text").unwrap(),
            _ => std::fs::create_dir(lab.path("other")).unwrap(),
        };
        other(name);
        let (at, new) = (lab.path(name), lab.path("other"));
        let person = Person::who_first(move || {
            if replaces {
                std::fs::rename(&at, format!("{at}-away")).unwrap();
                std::fs::rename(&new, &at).unwrap();
            }
        });
        let mut plan = change(vec![match name {
            "file" => setting(&lab.path(name), Some(0o600), None, None),
            _ => removing_directory(&lab.path(name)),
        }]);
        plan.risk = Some(Risk::High);
        let request = about(&plan, Arc::new(person), lab.request(false).await);
        let refused = lab.gate.apply(request, plan).await.err();
        assert_eq!(refused.map(|problem| problem.code), replaces.then(|| "PLAN_STALE".to_owned()), "{name}");
    }
}

#[tokio::test]
async fn no_step_works_where_another_one_moves_or_removes_a_directory() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
    // The grants cover the directory and what is below it.
    let path = |name: &str| lab.path(name);
    std::fs::create_dir(path("a")).unwrap();
    std::fs::create_dir(path("empty")).unwrap();
    std::fs::write(path("a/x"), "").unwrap();
    for (steps, is_refused) in [
        (vec![moving(&path("a"), &path("b")), write(&path("b/x"), "")], true),
        (vec![write(&path("a/x"), "y"), moving(&path("a"), &path("b"))], true),
        (vec![moving(&path("a/x"), &path("a/y")), moving(&path("a"), &path("b"))], true),
        (vec![moving(&path("a"), &path("b")), setting(&path("a/x"), Some(0o600), None, None)], true),
        (vec![removing_directory(&path("empty")), write(&path("empty/x"), "")], true),
        (vec![write(&path("empty/x"), "y"), removing_directory(&path("empty"))], true),
        (vec![removing(&path("a/x")), removing_directory(&path("a"))], false),
        (vec![moving(&path("a/x"), &path("a/y")), write(&path("a/z"), "")], false),
        (vec![moving(&path("a"), &path("b")), write(&path("ab"), "")], false),
    ] {
        let mut request = lab.request(true).await;
        let mut grants = Grants::new("test");
        let (glob, place) = (format!("{}**", path("")), Place::Target);
        let below =
            PathRequest { glob, write: true, privilege: Privilege::Caller, place, reason: String::new() };
        grants.path(&below).unwrap();
        request.grants = Arc::new(grants);
        let refused = lab.gate.apply(request, change(steps)).await.err();
        let code = refused.as_ref().map(|problem| problem.code.as_str());
        assert_eq!(code, is_refused.then_some("INVALID_PLAN"), "{refused:?}");
    }
}

/// A directory with files, links and directories in it.
fn plant(lab: &Lab) {
    for directory in ["tree", "tree/sub", "tree/sub/deeper", "tree/empty"] {
        std::fs::create_dir(lab.path(directory)).unwrap();
    }
    for file in ["tree/one", "tree/sub/two", "tree/sub/deeper/three"] {
        std::fs::write(lab.path(file), file).unwrap();
    }
    std::os::unix::fs::symlink("nothing", lab.path("tree/sub/link")).unwrap();
}

/// The steps that remove it, with another step before the directories.
fn felling(lab: &Lab, between: Option<Step>) -> Change {
    let files = ["tree/one", "tree/sub/two", "tree/sub/link", "tree/sub/deeper/three"];
    let directories = ["tree/empty", "tree/sub/deeper", "tree/sub", "tree"];
    let files = files.map(|file| removing(&lab.path(file)));
    let directories = directories.map(|directory| removing_directory(&lab.path(directory)));
    change(files.into_iter().chain(between).chain(directories).collect())
}

/// The grants for all that is below the lab's directory.
async fn asking_below(lab: &Lab, dry_run: bool) -> PlanRequest {
    let mut request = lab.request(dry_run).await;
    let mut grants = Grants::new("test");
    let (glob, place) = (format!("{}**", lab.path("")), Place::Target);
    grants
        .path(&PathRequest { glob, write: true, privilege: Privilege::Caller, place, reason: String::new() })
        .unwrap();
    for pattern in ["touch -- <path>", "rm -- <path>", "false"] {
        let (privilege, place, reason) = (Privilege::Caller, Place::Target, String::new());
        let (pattern, effect, risk) = (pattern.to_owned(), Effect::Change, Risk::Low);
        grants.command(&CommandRequest { pattern, effect, privilege, place, risk, reason }).unwrap();
    }
    request.grants = Arc::new(grants);
    request
}

/// Every name below a directory, with its inode. An empty directory, which is made again, has none.
fn inodes(directory: &Path) -> Vec<(PathBuf, Option<u64>)> {
    use std::os::unix::fs::DirEntryExt;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let inside = match entry.file_type().unwrap().is_dir() {
            true => inodes(&entry.path()),
            false => Vec::new(),
        };
        let is_empty = entry.file_type().unwrap().is_dir() && inside.is_empty();
        found.push((entry.path(), (!is_empty).then(|| entry.ino())));
        found.extend(inside);
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_tree_goes_as_a_whole_or_stays_as_it_was() {
    let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
    plant(&lab);
    let files = lab.kept.path().join("files");
    let before = inodes(&files);
    let Ok(Outcome::DryRun { preview, .. }) =
        lab.gate.apply(asking_below(&lab, true).await, felling(&lab, None)).await
    else {
        panic!("no dry run")
    };
    assert_eq!(
        (&preview["steps"][2]["remove"], &preview["steps"][2]["symlink_to"]),
        (&json!(lab.path("tree/sub/link")), &json!("nothing"))
    );
    assert_eq!(preview["steps"].as_array().map(Vec::len), Some(8));
    // A step after it fails, and somebody adds a file in the middle.
    let mut broken = felling(&lab, None);
    broken.steps.push(run(&["false"]));
    let added = lab.path("tree/sub/new");
    let joined = felling(&lab, Some(with_undo(run(&["touch", "--", &added]), &["rm", "--", &added])));
    for (plan, code) in [(broken, "COMMAND_FAILED"), (joined, "DIRECTORY_NOT_EMPTY")] {
        let outcome = lab.gate.apply(asking_below(&lab, false).await, plan).await;
        let Ok(Outcome::Failed { problem, not_undone, .. }) = outcome else { panic!("{code}: not broken") };
        assert_eq!((problem.code.as_str(), not_undone), (code, Vec::new()), "{problem}");
        assert_eq!(inodes(&files), before, "{code}");
    }
    let outcome = lab.gate.apply(asking_below(&lab, false).await, felling(&lab, None)).await;
    let Ok(Outcome::Done { notes, .. }) = outcome else { panic!("not done") };
    assert_eq!((notes, lab.names()), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn a_private_file_goes_without_its_contents_or_hash_being_shown() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::new(Safety::default());
    let (file, moved) = (lab.path("file"), lab.path("moved"));
    for (mode, is_closed) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
        std::fs::write(&file, "k4x7\n").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        let plans = [change(vec![removing(&file)]), change(vec![moving(&file, &moved)])];
        for (plan, hidden) in plans.into_iter().zip(["diff", "sha256"]) {
            let outcome = lab.gate.apply(lab.request(true).await, plan).await;
            let Ok(Outcome::DryRun { preview, .. }) = outcome else { panic!("{mode:o}: no dry run") };
            // The files of this test are root's only where root runs it. An account sees its own.
            let is_private = is_closed && rustix::process::geteuid().is_root();
            let step = &preview["steps"][0];
            assert_eq!(step.get(hidden).is_none(), is_private, "{mode:o} {preview}");
            assert_eq!(
                step["former"].as_str().is_some(),
                is_private || hidden == "sha256",
                "{mode:o} {preview}"
            );
            assert!(!is_private || !preview.to_string().contains("k4x7"), "{mode:o} {preview}");
        }
        std::fs::remove_file(&file).unwrap();
    }
}

#[tokio::test]
async fn a_directory_with_more_in_it_than_the_plan_removes_is_refused() {
    let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
    plant(&lab);
    std::fs::write(lab.path("tree/sub/more"), "").unwrap();
    let before = inodes(&lab.kept.path().join("files"));
    let refused = lab.gate.apply(asking_below(&lab, false).await, felling(&lab, None)).await.err().unwrap();
    assert_eq!(refused.code, "DIRECTORY_NOT_EMPTY");
    assert!(refused.message.contains("holds more"), "{refused}");
    assert_eq!(inodes(&lab.kept.path().join("files")), before);
}

#[tokio::test]
async fn what_cannot_be_put_on_record_does_not_happen() {
    let lab = Lab::new(Safety::default());
    std::fs::write(lab.kept.path().join("log"), "in the way").unwrap();
    let plan = change(vec![run(&["touch", "--", &lab.path("ran")])]);
    let refused = lab.gate.apply(lab.request(false).await, plan).await.err().unwrap();
    assert_eq!(refused.code, "AUDIT_UNAVAILABLE", "{refused}");
    assert!(lab.names().is_empty());
}

#[tokio::test]
async fn a_plan_made_of_what_is_gone_is_refused() {
    let lab = Lab::new(Safety { confirmation_threshold: Risk::Critical, ..Safety::default() });
    std::fs::write(lab.path("file"), "theirs").unwrap();
    for (seen, code) in [
        (Some(sha256::of(b"theirs")), None),
        (Some(sha256::of(b"other")), Some("FILE_CHANGED")),
        (None, Some("FILE_CHANGED")),
    ] {
        std::fs::write(lab.path("file"), "theirs").unwrap();
        let mut request = lab.request(false).await;
        request.file_hashes.insert(lab.path("file"), seen);
        let outcome = lab.gate.apply(request, change(vec![write(&lab.path("file"), "ours")])).await;
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
        // The command waits for a process that writes to the pipe.
        let mut waiting = run(&["cat", "--", pipe.to_str().unwrap()]);
        let Action::Run(step) = &mut waiting.action else { unreachable!() };
        step.interruptible = interruptible;
        let plan = change(vec![
            with_undo(run(&["touch", "--", &ran]), &["rm", "--", &ran]),
            waiting,
            run(&["true"]),
        ]);
        let request = lab.request(false).await;
        let command_log = request.command_log.clone();
        {
            let mut applying = Box::pin(lab.gate.apply(request, plan));
            while command_log.lines().len() < 2 {
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

mod lost;
mod power;
mod signals;
