use wasmtime::component::{Component, Linker, Val};
use wasmtime_wasi::WasiCtxBuilder;

use super::*;
use crate::engine::LazyEngine;
use crate::instance;

/// The limit for which a component was stopped while it started or while its `run` ran.
async fn exceeded_limit(component: &str, allowed: Duration) -> Option<ExceededLimit> {
    let engine = LazyEngine::default();
    let shared = engine.get().unwrap();
    let component = Component::from_binary(&shared.engine, &wat::parse_str(component).unwrap()).unwrap();
    let mut store = instance::new_store(shared, (allowed, allowed), WasiCtxBuilder::new().build(), None);
    let guest_time = store.data().guest_time.clone();
    let _running = shared.running();
    let calling = async {
        // These components import nothing.
        let linker = Linker::new(&shared.engine);
        let instance = linker.instantiate_async(&mut store, &component).await?;
        let run = instance.get_func(&mut store, "run").expect("a function named run");
        let mut results = vec![Val::Bool(false); run.ty(&store).results().len()];
        run.call_async(&mut store, &[], &mut results).await
    };
    let error = guest_time.counting(calling).await.err()?;
    store.data().exceeded_limit(&error)
}

/// A component around one core module whose `run` has this body.
fn component(fields: &str, body: &str) -> String {
    format!(
        r#"(component
            (core module $m {fields} (func $run (export "run") {body}))
            (core instance $i (instantiate $m))
            (func (export "run") (canon lift (core func $i "run"))))"#
    )
}

/// Several core instances of one module.
fn instances(number: usize, fields: &str) -> String {
    let more = "(core instance (instantiate $m))".repeat(number - 1);
    let first =
        r#"(core instance $i (instantiate $m)) (func (export "run") (canon lift (core func $i "run")))"#;
    format!(r#"(component (core module $m {fields} (func (export "run"))) {first} {more})"#)
}

const PLENTY: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn each_limit_stops_a_guest_for_its_own_reason() {
    let grow_memory = "(loop (br_if 0 (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable";
    let grow_table =
        "(loop (br_if 0 (i32.ne (table.grow 0 (ref.null func) (i32.const 500)) (i32.const -1)))) unreachable";
    let resources = r#"(component
        (type $r (resource (rep i32)))
        (core func $new (canon resource.new $r))
        (core module $m (import "" "new" (func $new (param i32) (result i32)))
            (func (export "run") (loop (drop (call $new (i32.const 0))) (br 0))))
        (core instance $i (instantiate $m (with "" (instance (export "new" (func $new))))))
        (func (export "run") (canon lift (core func $i "run"))))"#;
    // The string has 17 MiB and begins at address 8.
    let long = r#"(component
        (core module $m (memory (export "memory") 300)
            (data (i32.const 0) "\08\00\00\00\00\00\10\01")
            (func (export "run") (result i32) (i32.const 0)))
        (core instance $i (instantiate $m))
        (func (export "run") (result string) (canon lift (core func $i "run") (memory (core memory $i "memory")))))"#;
    for (case, text, expected) in [
        ("one memory grows", component("(memory 1)", grow_memory), ExceededLimit::Memory(64 << 20)),
        (
            "one memory is too large from the start",
            component("(memory 1025)", ""),
            ExceededLimit::Memory(64 << 20),
        ),
        ("three memories together", instances(3, "(memory 400)"), ExceededLimit::Memory(64 << 20)),
        ("one table grows", component("(table 1 funcref)", grow_table), ExceededLimit::Tables),
        (
            "one table is too large from the start",
            component("(table 10001 funcref)", ""),
            ExceededLimit::Tables,
        ),
        ("three tables together", instances(3, "(table 4000 funcref)"), ExceededLimit::Tables),
        ("many instances", instances(INSTANCES as usize + 1, ""), ExceededLimit::Instances),
        (
            "many tables",
            instances(TABLES as usize / 2 + 1, "(table 1 funcref) (table 1 funcref)"),
            ExceededLimit::Instances,
        ),
        ("many memories", instances(MEMORIES as usize + 1, "(memory 1)"), ExceededLimit::Instances),
        ("endless recursion", component("", "(call $run)"), ExceededLimit::Stack),
        ("resources of its own", resources.to_owned(), ExceededLimit::Handles),
        ("a long answer", long.to_owned(), ExceededLimit::CallSize),
    ] {
        assert_eq!(exceeded_limit(&text, PLENTY).await, Some(expected), "{case}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_is_just_within_the_limits_is_not_stopped() {
    for (case, text) in [
        ("one memory", component("(memory 1024)", "")),
        ("memories together", instances(4, "(memory 256)")),
        ("one table", component("(table 10000 funcref)", "")),
        ("instances", instances(INSTANCES as usize, "")),
        ("some recursion", component("", "")),
    ] {
        assert_eq!(exceeded_limit(&text, PLENTY).await, None, "{case}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_trap_of_its_own_is_no_limit() {
    assert_eq!(exceeded_limit(&component("", "unreachable"), PLENTY).await, None);
    // A function's name may repeat the text of an error about limits.
    let named = "(func $store_handle_limit_exceeded unreachable)";
    let text = component(named, "(call $store_handle_limit_exceeded)").replace('_', " ");
    let text = text.replace("$store handle limit exceeded", "$\"store handle limit exceeded\"");
    assert_eq!(exceeded_limit(&text, PLENTY).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn time_is_up_however_it_is_spent() {
    let allowed = Duration::from_millis(50);
    let fill = "(loop (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x3000000)) (br 0))";
    for (case, text) in
        [("a loop", component("", "(loop (br 0))")), ("work for the host", component("(memory 1000)", fill))]
    {
        assert_eq!(exceeded_limit(&text, allowed).await, Some(ExceededLimit::Time(allowed)), "{case}");
    }
}

/// The thread has no processor, as on a busy machine.
#[tokio::test]
async fn time_without_a_processor_counts_for_less() {
    let (little, much) = (Duration::from_millis(10), Duration::from_millis(500));
    for (allowed, sleeps, expected) in
        [(much, much + little, Ok(())), (little, little * (LONGER + 1), Err(ExceededLimit::Time(little)))]
    {
        let time = GuestTime::new(allowed);
        let checked = time.clone().counting(async {
            std::thread::sleep(sleeps);
            time.check()
        });
        assert_eq!(checked.await, expected, "{allowed:?}");
    }
}

#[tokio::test]
async fn time_that_is_waited_does_not_count() {
    let time = GuestTime::new(Duration::from_secs(1));
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let waited = tokio::spawn({
        let time = time.clone();
        async move { time.counting(receiver).await }
    });
    // The call counts as waiting for long: nothing runs, so no time is counted.
    tokio::task::yield_now().await;
    assert!(time.with(|spent| spent.since.is_none()));
    sender.send(()).unwrap();
    waited.await.unwrap().unwrap();
    assert!(time.with(|spent| spent.since.is_none()));
}

#[test]
fn each_limit_has_a_code_and_says_how_much_it_is() {
    for (limit, code, said) in [
        (ExceededLimit::Time(Duration::from_secs(2)), "MODULE_TIME_LIMIT", "2 s"),
        (ExceededLimit::HostCalls(10_000), "MODULE_CALL_LIMIT", "10000"),
        (ExceededLimit::CallSize, "MODULE_CALL_SIZE_LIMIT", "16 MiB"),
        (ExceededLimit::Memory(64 << 20), "MODULE_MEMORY_LIMIT", "64 MiB"),
        (ExceededLimit::Tables, "MODULE_TABLE_LIMIT", "10000"),
        (ExceededLimit::Instances, "MODULE_INSTANCE_LIMIT", "100 instances"),
        (ExceededLimit::Stack, "MODULE_STACK_LIMIT", "512 KiB"),
        (ExceededLimit::Handles, "MODULE_HANDLE_LIMIT", "1000"),
    ] {
        let problem = limit.problem("probe");
        assert_eq!(problem.code, code);
        assert!(problem.message.starts_with("module probe was stopped: "), "{}", problem.message);
        assert!(problem.message.contains(said), "{}", problem.message);
    }
}

#[test]
fn calls_of_one_budget_share_their_memory_and_give_it_back() {
    let budget = Arc::new(CallBudget::default());
    let limiter = || Limiter::new(budget.clone(), 64);
    let (mut outer, mut inner) = (limiter(), limiter());
    assert!(outer.memory_growing(0, 40, None).unwrap());
    assert!(!inner.memory_growing(0, 25, None).unwrap());
    assert_eq!(inner.refused, Some(ExceededLimit::Memory(64)));
    assert!(inner.memory_growing(0, 24, None).unwrap());
    assert!(!outer.memory_growing(40, 41, None).unwrap());
    drop(inner);
    assert!(outer.memory_growing(40, 64, None).unwrap());
    assert!(!outer.memory_growing(64, 65, None).unwrap());
    drop(outer);
    assert!(limiter().memory_growing(0, 64, None).unwrap());
}
