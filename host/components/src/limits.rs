//! The limits of a call, and the problems of a guest that exceeds one.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wasmtime::component::ResourceTableError;
use wasmtime::{ResourceLimiter, Trap};

use host_base::problem::{Category, Problem};

/// The number of elements of all tables together. QuickJS needs 751, Python 5,684, StarlingMonkey 7,702.
pub(super) const TABLE_ELEMENTS: usize = 10_000;
/// The number of core instances. A component that combines several languages has about ten.
pub(super) const INSTANCES: u32 = 100;
pub(super) const TABLES: u32 = 100;
pub(super) const MEMORIES: u32 = 10;
/// The number of bytes of the guest's stack. The rest of the fiber's 2 MiB is for the host.
pub(super) const STACK_BYTES: usize = 512 << 10;
/// The number of bytes that one call into the host, or one answer, may hand over.
pub(super) const HOST_CALL_BYTES: usize = 16 << 20;
/// The number of bytes that one read returns at most. After a piece of that size, the file may go on.
pub(super) const PIECE: u64 = 1 << 20;
/// The number of streams, pollables and the guest's own resources that may be open at once.
pub(super) const HANDLES: usize = 1_000;

/// The limit that a guest exceeded, so that the host stopped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ExceededLimit {
    #[error("it computed for longer than {} s, which is what it may", .0.as_secs_f64())]
    Time(Duration),
    #[error("the host was called more than {0} times in one call")]
    HostCalls(u32),
    #[error("it handed over more than {} MiB at once", HOST_CALL_BYTES >> 20)]
    CallSize,
    #[error("more than {} MiB of memory were asked for in one call", .0 >> 20)]
    Memory(usize),
    #[error("it asked for more than {TABLE_ELEMENTS} table elements")]
    Tables,
    #[error("it has more than {INSTANCES} instances, {TABLES} tables or {MEMORIES} memories")]
    Instances,
    #[error("its calls are nested deeper than a stack of {} KiB holds", STACK_BYTES >> 10)]
    Stack,
    #[error("it holds more than {HANDLES} handles at once")]
    Handles,
    #[error("a description may not call the host")]
    NoImportsWhileDescribing,
}

impl ExceededLimit {
    /// The limit that an error is about, if it is about one. `refused` is the limiter's latest refusal: the guest saw
    /// only that memory did not grow, and then failed in its own way.
    pub(super) fn because(error: &wasmtime::Error, refused: Option<Self>) -> Option<Self> {
        if let Some(limit) = error.downcast_ref::<Self>() {
            return Some(*limit);
        }
        if let Some(Trap::StackOverflow) = error.downcast_ref::<Trap>() {
            return Some(Self::Stack);
        }
        if let Some(ResourceTableError::Full) = error.downcast_ref::<ResourceTableError>() {
            return Some(Self::Handles);
        }
        // wasmtime has no types for these errors. Only the root cause is compared: the text around it contains names
        // from the guest.
        let root = error.root_cause().to_string();
        let told = [
            ("fuel allocated for hostcalls has been exhausted", Self::CallSize),
            ("store handle limit exceeded", Self::Handles),
            ("resource limit exceeded", Self::Instances),
        ];
        told.iter().find(|(text, _)| root.contains(text)).map(|(_, limit)| *limit).or(refused)
    }

    /// The problem for the caller of this module.
    pub(super) fn problem(self, module: &str) -> Problem {
        let code = match self {
            Self::Time(_) => "MODULE_TIME_LIMIT",
            Self::HostCalls(_) => "MODULE_CALL_LIMIT",
            Self::CallSize => "MODULE_CALL_SIZE_LIMIT",
            Self::Memory(_) => "MODULE_MEMORY_LIMIT",
            Self::Tables => "MODULE_TABLE_LIMIT",
            Self::Instances => "MODULE_INSTANCE_LIMIT",
            Self::Stack => "MODULE_STACK_LIMIT",
            Self::Handles => "MODULE_HANDLE_LIMIT",
            Self::NoImportsWhileDescribing => "MODULE_TRAPPED",
        };
        Problem::new(code, Category::Internal, format!("module {module} was stopped: {self}"))
    }
}

/// What a call has used of its limits, together with the calls that its module makes of other modules' tools.
#[derive(Default)]
pub struct CallBudget {
    host_calls: AtomicU32,
    memory: AtomicUsize,
    tool_calls: AtomicUsize,
}

impl CallBudget {
    /// Counts a call into the host. The result is the number of them.
    pub(super) fn count_host_call(&self) -> u32 {
        self.host_calls.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// Takes this many calls of tools, where no more than `most` are taken then. The error is the number that there would
    /// be, and none is taken.
    pub(super) fn take_tool_calls(&self, calls: usize, most: usize) -> Result<(), usize> {
        take(&self.tool_calls, calls, most)
    }

    /// Takes this many bytes of memory, where no more than `most` are taken then. It says whether it has.
    fn take_memory(&self, bytes: usize, most: usize) -> bool {
        take(&self.memory, bytes, most).is_ok()
    }

    fn give_memory_back(&self, bytes: usize) {
        self.memory.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Adds to a sum that may reach `most`. The error is the sum that there would be.
fn take(sum: &AtomicUsize, more: usize, most: usize) -> Result<(), usize> {
    let fits = |taken: usize| taken.checked_add(more).filter(|total| *total <= most);
    let taken = sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
    taken.map(|_| ()).map_err(|taken| taken.saturating_add(more))
}

/// Limits all memories and tables of a call together, while wasmtime's own limits are for each. It keeps a refusal,
/// because the guest sees only a failed growth and then traps as `unreachable`.
pub(super) struct Limiter {
    budget: Arc<CallBudget>,
    most_memory: usize,
    /// The bytes that this store has taken of the budget.
    memory: usize,
    elements: usize,
    /// The limit of the latest refused growth.
    pub(super) refused: Option<ExceededLimit>,
}

impl Limiter {
    /// A limiter with this many bytes for all linear memories of the budget together.
    pub(super) fn new(budget: Arc<CallBudget>, most_memory: usize) -> Self {
        Self { budget, most_memory, memory: 0, elements: 0, refused: None }
    }

    fn allow(&mut self, fits: bool, otherwise: ExceededLimit) -> wasmtime::Result<bool> {
        if !fits {
            self.refused = Some(otherwise);
        }
        Ok(fits)
    }
}

impl Drop for Limiter {
    fn drop(&mut self) {
        self.budget.give_memory_back(self.memory);
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        let fits = self.budget.take_memory(more, self.most_memory);
        if fits {
            self.memory += more;
        }
        self.allow(fits, ExceededLimit::Memory(self.most_memory))
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.elements.saturating_add(desired.saturating_sub(current));
        let fits = total <= TABLE_ELEMENTS;
        if fits {
            self.elements = total;
        }
        self.allow(fits, ExceededLimit::Tables)
    }

    fn instances(&self) -> usize {
        INSTANCES as usize
    }

    fn tables(&self) -> usize {
        TABLES as usize
    }

    fn memories(&self) -> usize {
        MEMORIES as usize
    }
}

/// The processor time of a guest. It counts while the guest runs, and not while the guest waits for a command or for a
/// thread. Work that the guest makes the host do in one instruction counts as well, such as filling 64 MiB of memory.
#[derive(Clone)]
pub(super) struct GuestTime {
    allowed: Duration,
    spent: Arc<Mutex<Spent>>,
    /// True where the guest was still computing at a tick since it was last started.
    computes: Arc<AtomicBool>,
}

/// The factor by which the elapsed time may exceed the processor time that a guest may use, since a busy machine runs
/// it with interruptions.
const LONGER: u32 = 4;

#[derive(Default)]
struct Spent {
    before: Used,
    /// The thread's processor time and the moment when the guest was last started. None while it doesn't run.
    since: Option<(Duration, Instant)>,
}

/// The time that a call has used.
#[derive(Clone, Copy, Default)]
struct Used {
    /// The processor time.
    processor: Duration,
    /// The elapsed time.
    wall: Duration,
}

impl Spent {
    fn begin(&mut self) {
        self.since = Some((of_processor(), Instant::now()));
    }

    fn end(&mut self) {
        self.before = self.so_far();
        self.since = None;
    }

    fn so_far(&self) -> Used {
        let Some((used, begun)) = self.since else { return self.before };
        Used {
            processor: self.before.processor + of_processor().saturating_sub(used),
            wall: self.before.wall + begun.elapsed(),
        }
    }
}

/// The processor time that this thread has used.
fn of_processor() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

impl GuestTime {
    pub(super) fn new(allowed: Duration) -> Self {
        Self { allowed, spent: Arc::default(), computes: Arc::default() }
    }

    /// Runs a call and counts its time. A guest that computes for longer than a tick goes on beside the thread that serves
    /// everybody, so that it delays no other call.
    pub(super) async fn counting<T>(self, call: impl Future<Output = T>) -> T {
        let mut call = pin!(call);
        poll_fn(|cx| {
            let mut poll = || {
                self.with(Spent::begin);
                let polled = call.as_mut().poll(cx);
                self.with(Spent::end);
                polled
            };
            match self.computes.swap(false, Ordering::Relaxed) {
                true => tokio::task::block_in_place(poll),
                false => poll(),
            }
        })
        .await
    }

    /// Checks the limits. It is called on the guest's thread at each tick while the guest runs.
    pub(super) fn check(&self) -> Result<(), ExceededLimit> {
        self.computes.store(true, Ordering::Relaxed);
        let spent = self.with(|spent| spent.so_far());
        match spent.processor > self.allowed || spent.wall > self.allowed * LONGER {
            true => Err(ExceededLimit::Time(self.allowed)),
            false => Ok(()),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Spent) -> T) -> T {
        work(&mut self.spent.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests;
