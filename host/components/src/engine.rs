//! One engine for the process, with one set of settings for compiling and for running, or the compiled form would be
//! rejected.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use wasmtime::component::Linker;
use wasmtime::{Config, Enabled, Engine, EngineWeak, PoolingAllocationConfig};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::{cli, filesystem, random};
use wasmtime_wasi::random::{WasiRandom, WasiRandomView};

use super::bindings::SystemModule;
use super::config::Limits;
use super::limits::{INSTANCES, MEMORIES, STACK_BYTES, TABLES};
use super::store::State;

/// How often a running guest is looked at: the precision of its time limit.
const TICK: Duration = Duration::from_millis(10);

/// Of a component's own description in memory, however many functions and globals it has.
const LARGEST_INSTANCE: usize = 16 << 20;
/// Elements for which there is room in one table: what a call may have of them is less, and counted elsewhere.
const LARGEST_TABLE: usize = 1 << 20;
/// What has been used and stays at hand: so many memories or tables of guests that don't run now.
const KEPT: u32 = 4;
/// Of each, what is emptied in place.
const KEPT_BYTES: usize = 256 << 10;

/// The engine, once something needs it: descriptions are answered from the cache without any.
#[derive(Default)]
pub(super) struct Lazy {
    limits: Limits,
    shared: OnceLock<Shared>,
}

impl Lazy {
    /// With what calls may take.
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, shared: OnceLock::new() }
    }

    /// What the operator has set.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn get(&self) -> wasmtime::Result<&Shared> {
        if let Some(shared) = self.shared.get() {
            return Ok(shared);
        }
        // Two calls that come here at once make one engine too many, and one of them is dropped.
        let shared = Shared::new(self.limits.clone())?;
        Ok(self.shared.get_or_init(|| shared))
    }
}

/// What every module is compiled by and linked to.
pub(super) struct Shared {
    pub(super) engine: Engine,
    pub(super) linker: Linker<State>,
    limits: Limits,
    ticker: Arc<Ticker>,
}

impl Shared {
    fn new(limits: Limits) -> wasmtime::Result<Self> {
        // Where so much of the address space can't be had, each call takes its own.
        let engine = pooling_engine(&limits).or_else(|_| new_engine())?;
        let mut linker = Linker::new(&engine);
        link_wasi(&mut linker)?;
        SystemModule::add_to_linker::<_, wasmtime::component::HasSelf<_>>(&mut linker, |state| state)?;
        let ticker = Ticker::start(engine.weak());
        Ok(Self { engine, linker, limits, ticker })
    }

    /// What a call may take.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What the compiled form depends on besides the component: wasmtime's version, its settings, this processor.
    pub(super) fn compatibility(&self) -> String {
        let mut hasher = std::hash::DefaultHasher::new();
        self.engine.precompile_compatibility_hash().hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// While this is held, guests are looked at every tick.
    pub(super) fn running(&self) -> Running {
        self.ticker.guest_starts();
        Running(self.ticker.clone())
    }
}

/// The one set of settings.
pub(super) fn new_engine() -> wasmtime::Result<Engine> {
    Engine::new(&settings())
}

/// The same, where memories, tables and stacks are taken once for as many calls as there may be: a call that follows
/// another uses what that one has left, emptied.
fn pooling_engine(limits: &Limits) -> wasmtime::Result<Engine> {
    // Calls, those about other calls, and as many components that describe themselves.
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
    // It only tells where in a function a guest trapped, and is an eighth of what a compiled component takes.
    config.generate_address_map(false);
    config
}

/// WASI without sockets and http: neither is in the linker, so no component that asks for them can start.
fn link_wasi(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    // io, clocks, random and the three standard streams.
    wasmtime_wasi::p2::add_to_linker_proxy_interfaces_async(linker)?;
    random::insecure::add_to_linker::<_, WasiRandom>(linker, State::random)?;
    random::insecure_seed::add_to_linker::<_, WasiRandom>(linker, State::random)?;
    filesystem::preopens::add_to_linker::<_, WasiFilesystem>(linker, State::filesystem)?;
    filesystem::types::add_to_linker::<_, WasiFilesystem>(linker, State::filesystem)?;
    cli::exit::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::environment::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    Ok(())
}

/// Advances the engine's epoch, on a thread of its own (an async timer would wait behind the very guest that it is
/// to stop), and only while guests run or have just run: a server at rest wakes up for nothing.
struct Ticker {
    running: AtomicUsize,
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

/// Ticks without a guest before the ticker sleeps, so that calls in a row don't wake it for each.
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
                // Announced before the last look, so that a guest that starts in between sees it and wakes us.
                ticker.asleep.store(true, Ordering::SeqCst);
                let rests = ticker.running.load(Ordering::SeqCst) == 0;
                if rests {
                    drop(engine);
                    // Woken now and then even so, to see that the engine is gone.
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

/// A guest is running.
pub(super) struct Running(Arc<Ticker>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}
