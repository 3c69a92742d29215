//! Makes a store with all limits for each call of a tool, and for each description.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::ResourceTable;
use wasmtime::{Store, UpdateDeadline};
use wasmtime_wasi::{Deterministic, FsPerms, HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxBuilder};

use super::call_clock::CallClock;
use super::engine::Shared;
use super::limits::{GuestTime, HANDLES, HOST_CALL_BYTES, Limiter};
use super::log::Stream;
use super::output::Printer;
use super::store::{Call, CallContext, State};
use host_base::problem::{Category, Problem};
use host_capability::DataDirectory;

/// The time that a module may compute to describe itself.
const DESCRIBING: Duration = Duration::from_secs(2);
/// The number of bytes that one `get-random-bytes` may ask for. The host makes all of them before the guest takes them.
const RANDOM_BYTES: u64 = 1 << 20;

/// A store for one call of a module's tool.
pub(super) fn for_call(
    shared: &Shared,
    (guest_time, wall_time): (Duration, Duration),
    module: &Arc<str>,
    context: CallContext,
) -> Result<Store<State>, Problem> {
    let call = Call::new(context, module);
    let (context, log) = (&call.context, &call.log);
    let mut wasi = WasiCtxBuilder::new();
    wasi.stdout(Printer::new(log, Stream::Stdout))
        .stderr(Printer::new(log, Stream::Stderr))
        .max_random_size(RANDOM_BYTES);
    for directory in context.grants.directories() {
        give(&mut wasi, directory)?;
    }
    Ok(new_store(shared, (guest_time, wall_time), wasi.build(), Some(call)))
}

/// Gives the guest read access to a directory of data, where the directory exists and can be trusted.
fn give(wasi: &mut WasiCtxBuilder, directory: &DataDirectory) -> Result<(), Problem> {
    let refused = |why: String| {
        let message = format!("the module may read {}, but not as it is now: {why}", directory.path());
        Problem::new("DIRECTORY_REFUSED", Category::Denied, message)
    };
    let path = directory.path();
    if tokio::task::block_in_place(|| directory.check()).map_err(refused)? {
        let given = wasi.preopened_dir(path, path, FsPerms::ReadOnly);
        given.map_err(|error| refused(error.to_string()))?;
    }
    Ok(())
}

/// A store for a description. Clock and seed are fixed, so that a component describes itself in the same way every
/// time. Its output is discarded.
pub(super) fn for_description(shared: &Shared) -> Store<State> {
    let wasi = WasiCtxBuilder::new()
        .insecure_random_seed(0)
        .insecure_random(Deterministic::new(vec![0]))
        .secure_random(Deterministic::new(vec![0]))
        .max_random_size(RANDOM_BYTES)
        .wall_clock(FixedClock)
        .monotonic_clock(FixedClock)
        .build();
    new_store(shared, (DESCRIBING, DESCRIBING), wasi, None)
}

/// A store with every limit set.
pub(super) fn new_store(
    shared: &Shared,
    (guest_time, wall_time): (Duration, Duration),
    wasi: WasiCtx,
    call: Option<Call>,
) -> Store<State> {
    let mut table = ResourceTable::new();
    table.set_max_capacity(HANDLES);
    let guest_time = GuestTime::new(guest_time);
    let limits = shared.limits();
    let budget = call.as_ref().and_then(|call| call.budget.clone()).unwrap_or_default();
    let limiter = Limiter::new(budget.clone(), (limits.memory_mib.get() as usize) << 20);
    let most_host_calls = limits.host_calls.get();
    let clock = Arc::new(CallClock::new(wall_time));
    let (streams, looked_through) = Default::default();
    let state = State {
        wasi,
        table,
        limiter,
        guest_time,
        budget,
        most_host_calls,
        streams,
        looked_through,
        clock,
        call,
    };
    let mut store = Store::new(&shared.engine, state);
    store.limiter(|state| &mut state.limiter);
    store.set_hostcall_fuel(HOST_CALL_BYTES);
    store.set_max_component_handles(HANDLES);
    // A plain deadline would include the time of calls into the host, so that a guest would be stopped after a long
    // command. Every tick checks the guest's own time instead.
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|store| {
        store.data().guest_time.check()?;
        Ok(UpdateDeadline::Yield(1))
    });
    store
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
