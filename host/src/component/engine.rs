//! One engine for the process, for compiling and for running alike, or the cache would be rejected at run time.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use wasmtime::component::Linker;
use wasmtime::{Config, Engine, EngineWeak};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::{cli, filesystem, random};
use wasmtime_wasi::random::{WasiRandom, WasiRandomView};

use super::bindings::SystemModule;
use super::store::State;

/// How often a running guest is looked at: the precision of its time limit.
const TICK: Duration = Duration::from_millis(10);

/// What every module is compiled by and linked to.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) engine: Engine,
    pub(super) linker: Arc<Linker<State>>,
    ticker: Arc<Ticker>,
}

impl Shared {
    pub(super) fn new() -> wasmtime::Result<Self> {
        let mut config = Config::new();
        config.epoch_interruption(true);
        let engine = Engine::new(&config)?;
        let mut linker = Linker::new(&engine);
        link_wasi(&mut linker)?;
        SystemModule::add_to_linker::<_, wasmtime::component::HasSelf<_>>(&mut linker, |state| state)?;
        let ticker = Ticker::start(engine.weak());
        Ok(Self { engine, linker: Arc::new(linker), ticker })
    }

    /// What the compiled form depends on besides the component: wasmtime's version, its settings, this processor.
    pub(super) fn compatibility(&self) -> String {
        let mut hasher = std::hash::DefaultHasher::new();
        self.engine.precompile_compatibility_hash().hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// While this is held, guests are looked at every tick.
    pub(super) fn running(&self) -> Running {
        self.ticker.change(|running| running + 1);
        Running(self.ticker.clone())
    }
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
/// to stop), and only while a guest runs: a server at rest wakes up for nothing.
struct Ticker {
    running: Mutex<usize>,
    changed: Condvar,
}

impl Ticker {
    fn start(engine: EngineWeak) -> Arc<Self> {
        let ticker = Arc::new(Self { running: Mutex::new(0), changed: Condvar::new() });
        let weak = Arc::downgrade(&ticker);
        std::thread::spawn(move || {
            while let (Some(ticker), Some(engine)) = (weak.upgrade(), engine.upgrade()) {
                let running = ticker.running.lock().unwrap_or_else(PoisonError::into_inner);
                // Woken now and then even at rest, to see that the engine is gone.
                let rest = Duration::from_secs(60);
                let idle = ticker.changed.wait_timeout_while(running, rest, |running| *running == 0);
                let is_idle = idle.is_ok_and(|(running, _)| *running == 0);
                if !is_idle {
                    engine.increment_epoch();
                    drop(engine);
                    std::thread::sleep(TICK);
                }
            }
        });
        ticker
    }

    fn change(&self, by: impl FnOnce(usize) -> usize) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running = by(*running);
        self.changed.notify_one();
    }
}

/// A guest is running.
pub(super) struct Running(Arc<Ticker>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.change(|running| running - 1);
    }
}
