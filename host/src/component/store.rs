//! One call's store: its memory, time and calls are counted, and nothing of it outlives the call.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wasmtime::component::ResourceTable;
use wasmtime::{CallHook, ResourceLimiter, Store, UpdateDeadline};
use wasmtime_wasi::{
    Deterministic, HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView,
};

use super::engine::Shared;
use crate::capability::{Grants, command_line};
use crate::problem::Problem;
use crate::target::{Command, Facts, Target};
use crate::visible::excerpt;

/// All linear memories of a component together.
const MEMORY_BYTES: usize = 64 << 20;
/// Of one table. QuickJS needs 751, Python 5,684, StarlingMonkey 7,702.
const TABLE_ELEMENTS: usize = 10_000;
/// What one call into the host may hand over.
const HOST_CALL_BYTES: usize = 16 << 20;
/// Calls into this package's interfaces.
const HOST_CALLS: u32 = 10_000;
/// Streams, pollables and the like that are open at once.
const HANDLES: usize = 1_000;

/// Told how far a call is: a fraction where it is known, and what it is at.
pub type Progress = Arc<dyn Fn(Option<f32>, &str) + Send + Sync>;

/// What a tool call may reach. Without one, as while a module is described, every import traps.
pub struct CallContext {
    /// Where commands run and files are.
    pub target: Arc<Target>,
    /// What is known of it.
    pub facts: Arc<Facts>,
    /// What the module may do.
    pub grants: Arc<Grants>,
    /// The longest that a command may take, where the operator set a ceiling.
    pub ceiling: Option<Duration>,
    /// For the session interface; only for modules that import it.
    pub session: Option<String>,
    /// What ran.
    pub executed: Arc<Executed>,
    /// Told how far the tool is, in its own words.
    pub progress: Progress,
}

/// The commands of one call, for `command_executed`: the first line, and the names of all programs.
#[derive(Default)]
pub struct Executed(Mutex<Vec<(String, String)>>);

/// Commands that are remembered; a call that runs more of them doesn't show them all.
const REMEMBERED: usize = 64;
/// Characters of a command line that are shown.
const SHOWN: usize = 2000;

impl Executed {
    pub(super) fn push(&self, prefix: &str, command: &Command) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < REMEMBERED {
            lines.push((command.program.clone(), excerpt(&command_line(prefix, command), SHOWN)));
        }
    }

    /// The command line, or the programs where there were several; none where nothing ran.
    pub fn shown(&self) -> Option<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match lines.as_slice() {
            [] => None,
            [(_, line)] => Some(line.clone()),
            several => {
                let mut programs: Vec<&str> = Vec::new();
                for (program, _) in several {
                    if !programs.contains(&program.as_str()) {
                        programs.push(program);
                    }
                }
                Some(format!("multiple ({})", programs.join(", ")))
            }
        }
    }
}

/// What a store holds.
pub(super) struct State {
    wasi: WasiCtx,
    pub(super) table: ResourceTable,
    limiter: Limiter,
    guest: GuestTime,
    host_calls: u32,
    /// Commands that are being read from.
    pub(super) streams: usize,
    call: Option<CallContext>,
}

impl State {
    /// The call's context, counting one call into the host. A trap where there is none, or one too many.
    pub(super) fn call(&mut self) -> wasmtime::Result<&CallContext> {
        self.host_calls += 1;
        if self.host_calls > HOST_CALLS {
            return Err(Stopped::HostCalls.into());
        }
        match &self.call {
            Some(call) => Ok(call),
            None => Err(Stopped::NoImportsWhileDescribing.into()),
        }
    }

    /// Why the guest was stopped, where the trap itself doesn't say.
    pub(super) fn memory_refused(&self) -> bool {
        self.limiter.refused
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Why the host stopped a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stopped {
    #[error("it computed for longer than its tool may")]
    Time,
    #[error("it called the host more than {HOST_CALLS} times")]
    HostCalls,
    #[error("a description may not call the host")]
    NoImportsWhileDescribing,
}

/// A fresh store for one call, with the guest's time limit.
pub(super) fn for_call(shared: &Shared, guest_time: Duration, call: CallContext) -> Store<State> {
    new_store(shared, guest_time, WasiCtxBuilder::new().build(), Some(call))
}

/// A fresh store for a description: clock and seed are fixed, so that it says the same every time.
pub(super) fn for_description(shared: &Shared) -> Store<State> {
    let wasi = WasiCtxBuilder::new()
        .insecure_random_seed(0)
        .insecure_random(Deterministic::new(vec![0]))
        .secure_random(Deterministic::new(vec![0]))
        .wall_clock(FixedClock)
        .monotonic_clock(FixedClock)
        .build();
    new_store(shared, Duration::from_secs(2), wasi, None)
}

fn new_store(
    shared: &Shared,
    guest_time: Duration,
    wasi: WasiCtx,
    call: Option<CallContext>,
) -> Store<State> {
    let mut table = ResourceTable::new();
    table.set_max_capacity(HANDLES);
    let state = State {
        wasi,
        table,
        limiter: Limiter { memory: 0, refused: false },
        guest: GuestTime::starting(guest_time),
        host_calls: 0,
        streams: 0,
        call,
    };
    let mut store = Store::new(&shared.engine, state);
    store.limiter(|state| &mut state.limiter);
    store.set_hostcall_fuel(HOST_CALL_BYTES);
    store.set_max_component_handles(HANDLES);
    store.call_hook(|mut store, hook| {
        store.data_mut().guest.at(hook);
        Ok(())
    });
    // A plain deadline would count the time of host calls, too: a guest that waited for a command would be stopped
    // on its return. So every tick only asks how long the guest itself has run.
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|store| match store.data().guest.is_over() {
        true => Err(Stopped::Time.into()),
        false => Ok(UpdateDeadline::Yield(1)),
    });
    store
}

/// The guest's own time: the time since the start, less the time spent in the host.
struct GuestTime {
    allowed: Duration,
    spent: Duration,
    /// Since when the guest has been running; none while the host is.
    since: Option<Instant>,
}

impl GuestTime {
    fn starting(allowed: Duration) -> Self {
        Self { allowed, spent: Duration::ZERO, since: Some(Instant::now()) }
    }

    fn at(&mut self, hook: CallHook) {
        match hook {
            CallHook::CallingWasm | CallHook::ReturningFromHost => {
                self.since.get_or_insert_with(Instant::now);
            }
            CallHook::ReturningFromWasm | CallHook::CallingHost => {
                self.spent += self.since.take().map(|since| since.elapsed()).unwrap_or_default();
            }
        }
    }

    fn is_over(&self) -> bool {
        self.spent + self.since.map(|since| since.elapsed()).unwrap_or_default() > self.allowed
    }
}

/// wasmtime's own limits count each memory by itself; this one counts them all. It remembers a refusal, because the
/// guest only sees a failed growth and then traps as `unreachable`.
struct Limiter {
    memory: usize,
    refused: bool,
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.memory.saturating_add(desired.saturating_sub(current));
        if total > MEMORY_BYTES {
            self.refused = true;
            return Ok(false);
        }
        self.memory = total;
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let fits = desired <= TABLE_ELEMENTS;
        self.refused |= !fits;
        Ok(fits)
    }

    fn instances(&self) -> usize {
        100
    }

    fn tables(&self) -> usize {
        100
    }

    fn memories(&self) -> usize {
        10
    }
}

struct FixedClock;

impl HostWallClock for FixedClock {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

impl HostMonotonicClock for FixedClock {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        0
    }
}

/// The problem that every import gives where the host doesn't do yet what the contract allows for.
pub(super) fn unsupported(what: &str) -> Problem {
    Problem::new(
        "NOT_SUPPORTED",
        crate::problem::Category::State,
        format!("this version of the host doesn't offer {what}"),
    )
}
