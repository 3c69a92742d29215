//! The engine of the process. It has one set of settings for compiling and for running, because an engine rejects code
//! that was compiled with others.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use wasmtime::component::Linker;
use wasmtime::{Config, Enabled, Engine, EngineWeak, PoolingAllocationConfig};

use super::config::Limits;
use super::limits::{INSTANCES, MEMORIES, STACK_BYTES, TABLES};
use super::linker;
use super::store::State;

/// The time between two checks of a running guest, which is the precision of its time limit.
const TICK: Duration = Duration::from_millis(10);

/// The number of bytes that wasmtime may need to describe an instance, however many functions and globals it has.
const LARGEST_INSTANCE: usize = 16 << 20;
/// The number of elements that one table has room for. The limit of a call is lower, and is counted elsewhere.
const LARGEST_TABLE: usize = 1 << 20;
/// The number of unused memories and tables that are kept ready.
const KEPT: u32 = 4;
/// The number of bytes of each that are cleared in place instead of being returned to the system. Few calls use more, and each
/// call that ran beside others leaves as much behind.
const KEPT_BYTES: usize = 128 << 10;

/// The engine, which is made when it is first needed. Descriptions come from the cache without it.
#[derive(Default)]
pub(super) struct LazyEngine {
    limits: Limits,
    shared: OnceLock<Shared>,
}

impl LazyEngine {
    /// An engine that will have these limits.
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, shared: OnceLock::new() }
    }

    /// The limits that the operator has set.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn get(&self) -> wasmtime::Result<&Shared> {
        if let Some(shared) = self.shared.get() {
            return Ok(shared);
        }
        // Two calls at the same time may make two engines; one of them is dropped.
        let shared = Shared::new(self.limits.clone())?;
        Ok(self.shared.get_or_init(|| shared))
    }
}

/// The engine and linker that all modules share.
pub(super) struct Shared {
    pub(super) engine: Engine,
    linker: OnceLock<Linker<State>>,
    limits: Limits,
    ticker: Arc<Ticker>,
}

impl Shared {
    fn new(limits: Limits) -> wasmtime::Result<Self> {
        // Where the system can't reserve so much address space, each call allocates its own memory.
        let engine = pooling_engine(&limits).or_else(|_| new_engine())?;
        let ticker = Ticker::start(engine.weak());
        Ok(Self { engine, linker: OnceLock::new(), limits, ticker })
    }

    /// What components may import. It is made when it is first needed: a unit test that links nothing of it compiles in a
    /// fraction of the time.
    pub(super) fn linker(&self) -> wasmtime::Result<&Linker<State>> {
        if let Some(linker) = self.linker.get() {
            return Ok(linker);
        }
        // As with the engine, two calls at the same time may make two.
        let linker = linker::new(&self.engine)?;
        Ok(self.linker.get_or_init(|| linker))
    }

    /// The limits of a call.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A hash of what compiled code depends on besides the component: wasmtime's version, its settings and this
    /// processor.
    pub(super) fn compatibility(&self) -> String {
        let mut hasher = std::hash::DefaultHasher::new();
        self.engine.precompile_compatibility_hash().hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// Running guests are checked at every tick while the result is held.
    pub(super) fn running(&self) -> Running {
        self.ticker.guest_starts();
        Running(self.ticker.clone())
    }
}

/// An engine with the settings that compiled code needs.
pub(super) fn new_engine() -> wasmtime::Result<Engine> {
    Engine::new(&settings())
}

/// An engine with the same settings that allocates memories, tables and stacks once, for the highest number of calls. A
/// call reuses what a former call has left, cleared.
fn pooling_engine(limits: &Limits) -> wasmtime::Result<Engine> {
    // Guests are calls, the calls that make a plan anew, and as many components that describe themselves.
    let guests = 3 * limits.calls_at_once.get();
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(guests)
        .total_core_instances(guests * INSTANCES)
        .total_memories(guests * MEMORIES)
        .total_tables(guests * TABLES)
        .total_stacks(2 * guests)
        .max_memories_per_module(MEMORIES)
        .max_tables_per_module(TABLES)
        .max_component_instance_size(LARGEST_INSTANCE)
        .max_core_instance_size(LARGEST_INSTANCE)
        .table_elements(LARGEST_TABLE)
        .max_unused_warm_slots(KEPT)
        .pagemap_scan(Enabled::Auto)
        .linear_memory_keep_resident(KEPT_BYTES)
        .table_keep_resident(KEPT_BYTES);
    Engine::new(settings().allocation_strategy(pool))
}

fn settings() -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true);
    config.max_wasm_stack(STACK_BYTES);
    // The map only tells where in a function a guest trapped, and is an eighth of compiled code.
    config.generate_address_map(false);
    config
}

/// Advances the engine's epoch on a thread of its own, since an async timer would wait behind the guest that it has to
/// stop. The thread sleeps unless guests run or have just run, so that an idle server doesn't wake up.
struct Ticker {
    running: AtomicUsize,
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

/// The number of ticks without a guest before the thread sleeps, so that successive calls don't each wake it.
const LINGER: u32 = 20;

impl Ticker {
    fn start(engine: EngineWeak) -> Arc<Self> {
        let ticker = Arc::new(Self {
            running: AtomicUsize::new(0),
            asleep: AtomicBool::new(false),
            thread: OnceLock::new(),
        });
        let weak = Arc::downgrade(&ticker);
        let handle = std::thread::spawn(move || {
            let mut idle = 0;
            while let (Some(ticker), Some(engine)) = (weak.upgrade(), engine.upgrade()) {
                engine.increment_epoch();
                idle = if ticker.running.load(Ordering::SeqCst) > 0 { 0 } else { idle + 1 };
                if idle < LINGER {
                    drop((ticker, engine));
                    std::thread::sleep(TICK);
                    continue;
                }
                // The flag is set before the last check, so that a guest that starts in between sees it and wakes the
                // thread.
                ticker.asleep.store(true, Ordering::SeqCst);
                let rests = ticker.running.load(Ordering::SeqCst) == 0;
                if rests {
                    drop(engine);
                    // The thread also wakes up now and then to see whether the engine is gone.
                    std::thread::park_timeout(Duration::from_secs(60));
                }
                ticker.asleep.store(false, Ordering::SeqCst);
            }
        });
        let _ = ticker.thread.set(handle.thread().clone());
        ticker
    }

    fn guest_starts(&self) {
        self.running.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }
}

/// Tells the ticker that a guest is running, until it is dropped.
pub(super) struct Running(Arc<Ticker>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}
