use std::time::Duration;

use wasmtime::Store;
use wasmtime_wasi::WasiView;

use super::*;
use crate::CallContext;
use crate::engine::LazyEngine;
use crate::instance;
use crate::log::tests::Written;
use host_capability::PathRequest;
use host_target::{Overrides, Target};

const GRANTED: &str = "/etc/hostname";

/// A module that never makes a plan again.
struct Never;

impl Replan for Never {
    fn plan(&self) -> futures_util::future::BoxFuture<'_, Result<PlannedChange, problem::Problem>> {
        unreachable!("nobody has said yes")
    }
}

/// A call of a tool with this risk, by a module that may read one file and run nothing.
async fn call(risk: Risk) -> Store<State> {
    call_whose_plan_is(risk, PlanHandling::Applied(Arc::new(Never))).await
}

async fn call_whose_plan_is(risk: Risk, plan_handling: PlanHandling) -> Store<State> {
    let mut grants = Grants::new("probe");
    grants
        .path(&PathRequest {
            glob: GRANTED.into(),
            write: false,
            privilege: host_base::Privilege::Caller,
            place: host_capability::Place::Target,
            reason: String::new(),
        })
        .unwrap();
    let target = Arc::new(Target::local(Overrides::default()));
    let context = CallContext {
        tool: "probe_change".into(),
        risk,
        facts: target.facts().await.unwrap(),
        target,
        grants: Arc::new(grants),
        plan_handling,
        ..CallContext::of_a_test()
    };
    let engine = LazyEngine::default();
    let time = Duration::from_secs(1);
    instance::for_call(engine.get().unwrap(), (time, time), &"probe".into(), context).unwrap()
}

fn nothing() -> confirm::Change {
    confirm::Change {
        summary: "Do nothing".into(),
        steps: Vec::new(),
        after_undo: Vec::new(),
        guard: None,
        power: None,
        locks: Vec::new(),
        risk: None,
        warnings: Vec::new(),
        affected_services: Vec::new(),
        dry_run: None,
    }
}

fn command() -> Command {
    Command {
        program: "true".into(),
        args: Vec::new(),
        env: Vec::new(),
        stdin: None,
        privilege: Privilege::Caller,
        place: Place::Target,
        duration: types::DurationCategory::Instant,
        keep: types::Keep::Head,
    }
}

#[tokio::test]
async fn a_plan_of_a_read_only_tool_ends_the_call() {
    let mut store = call(Risk::ReadOnly).await;
    let error = confirm::Host::apply(store.data_mut(), nothing()).await.unwrap_err();
    let problem = error.downcast_ref::<problem::Problem>().unwrap();
    assert_eq!((problem.code.as_str(), problem.category), ("READ_ONLY_TOOL", Category::Denied));
    assert!(problem.message.contains("probe_change"), "{}", problem.message);
}

#[tokio::test]
async fn a_plan_that_is_none_ends_the_call_and_there_is_no_second_one() {
    for risk in [Risk::Low, Risk::Moderate, Risk::High, Risk::Critical] {
        let mut store = call(risk).await;
        for code in ["INVALID_PLAN", "SECOND_PLAN"] {
            let error = confirm::Host::apply(store.data_mut(), nothing()).await.unwrap_err();
            assert_eq!(error.downcast_ref::<problem::Problem>().unwrap().code, code, "{risk:?}");
        }
    }
}

#[tokio::test]
async fn a_plan_that_is_only_wanted_is_kept_and_ends_the_call() {
    let kept = Arc::default();
    let mut store = call_whose_plan_is(Risk::High, PlanHandling::Kept(Arc::clone(&kept))).await;
    let plan = confirm::Change { summary: "Do what is granted or not".into(), ..nothing() };
    let error = confirm::Host::apply(store.data_mut(), plan).await.unwrap_err();
    assert_eq!(error.downcast_ref::<problem::Problem>().unwrap().code, "PLAN_KEPT");
    let kept: PlannedChange = kept.lock().unwrap().take().unwrap();
    assert_eq!(kept.change.summary, "Do what is granted or not");
    assert!(store.data_mut().call().unwrap().plan.get().is_none(), "nothing became of it");
}

#[tokio::test]
async fn refused_commands_are_logged_up_to_a_number_and_then_counted() {
    let mut store = call(Risk::ReadOnly).await;
    let (written, _guard) = Written::begin();
    for _ in 0..3 {
        let answers = exec_command::Host::run_all(store.data_mut(), vec![command(); 10]).await.unwrap();
        assert!(answers.iter().all(|answer| answer.as_ref().is_err_and(|p| p.code == "CAPABILITY_DENIED")));
    }
    drop(store);
    let lines = written.lines();
    assert_eq!(lines.len(), 21);
    assert!(lines[0].contains("module probe may not run `true`"), "{}", lines[0]);
    assert!(lines[20].contains("and 10 more refusals"), "{}", lines[20]);
}

#[tokio::test]
async fn refused_paths_are_logged_and_a_call_that_has_ended_reaches_none() {
    let mut store = call(Risk::ReadOnly).await;
    let (written, _guard) = Written::begin();
    let caller = host_base::Privilege::Caller;
    let check = store.data_mut().call().unwrap().path_check(&caller, Grants::may_read).await;
    assert_eq!(check("/etc/motd", "/etc/motd").unwrap_err().code, "CAPABILITY_DENIED");
    check(GRANTED, GRANTED).unwrap();
    drop(store);
    assert_eq!(check(GRANTED, GRANTED).unwrap_err().code, "CANCELLED");
    let lines = written.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("module probe may not read /etc/motd"), "{}", lines[0]);
}

#[tokio::test]
async fn a_guest_may_write_as_much_as_it_likes_and_the_log_stays_small() {
    let mut store = call(Risk::ReadOnly).await;
    let (written, _guard) = Written::begin();
    let state = store.data_mut();
    for stream in [
        wasmtime_wasi::p2::bindings::cli::stdout::Host::get_stdout(&mut cli(state)).unwrap(),
        wasmtime_wasi::p2::bindings::cli::stderr::Host::get_stderr(&mut cli(state)).unwrap(),
    ] {
        let stream = state.ctx().table.get_mut(&stream).unwrap();
        for _ in 0..1000 {
            assert!(stream.check_write().unwrap() >= 4096);
            stream.write("a line\n".repeat(500).into()).unwrap();
            stream.flush().unwrap();
        }
    }
    drop(store);
    let lines = written.lines();
    assert_eq!(lines.len(), 101);
    assert!(lines[100].contains("and 999900 more lines"), "{}", lines[100]);
}

fn cli(state: &mut State) -> wasmtime_wasi::cli::WasiCliCtxView<'_> {
    wasmtime_wasi::cli::WasiCliView::cli(state)
}

#[test]
fn a_file_of_any_size_is_known_once_its_pieces_reach_its_end() {
    let piece = vec![b'x'; PIECE as usize];
    let request = |path: &str, offset: u64| ReadRequest {
        path: path.to_owned(),
        offset: offset as i64,
        max_bytes: PIECE,
    };
    let hash = |contents: &[u8]| Some(sha256::of(contents));
    let missing = || problem::Problem::new("FILE_NOT_FOUND", Category::NotFound, "there is none");
    let denied = || problem::Problem::new("CAPABILITY_DENIED", Category::Denied, "no grant");
    let [one, two, three] = [("/a", 0), ("/a", PIECE), ("/a", 2 * PIECE)].map(|(path, at)| request(path, at));
    let large = [&piece[..], b"end"].concat();
    for (requests, answers, expected) in [
        (vec![one.clone()], vec![Ok(b"small".to_vec())], vec![("/a", hash(b"small"))]),
        (vec![one.clone()], vec![Ok(piece.clone())], vec![]),
        (
            vec![one.clone(), two.clone()],
            vec![Ok(piece.clone()), Ok(b"end".to_vec())],
            vec![("/a", hash(&large))],
        ),
        (vec![one.clone(), two.clone()], vec![Ok(piece.clone()), Ok(Vec::new())], vec![("/a", hash(&piece))]),
        // Something is missing between the pieces, or at the beginning.
        (vec![one.clone(), three.clone()], vec![Ok(piece.clone()), Ok(b"end".to_vec())], vec![]),
        (vec![two.clone()], vec![Ok(b"end".to_vec())], vec![]),
        (vec![one.clone(), two.clone()], vec![Err(denied()), Ok(b"end".to_vec())], vec![]),
        (vec![one.clone(), request("/b", PIECE)], vec![Ok(piece.clone()), Ok(b"end".to_vec())], vec![]),
        // Another file follows.
        (
            vec![one.clone(), two.clone(), request("/b", 0)],
            vec![Ok(piece.clone()), Ok(b"end".to_vec()), Ok(b"b".to_vec())],
            vec![("/a", hash(&large)), ("/b", hash(b"b"))],
        ),
        (vec![one.clone()], vec![Err(missing())], vec![("/a", None)]),
    ] {
        let found = read_whole(&requests, &answers);
        let found: Vec<_> = found.iter().map(|(path, hash)| (path.as_str(), hash.clone())).collect();
        assert_eq!(found, expected, "{requests:?}");
    }
}
