//! What one call may use, and how it is said that it used more.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wasmtime::component::ResourceTableError;
use wasmtime::{ResourceLimiter, Trap};

use host_base::problem::{Category, Problem};

/// Of all tables together. QuickJS needs 751, Python 5,684, StarlingMonkey 7,702.
pub(super) const TABLE_ELEMENTS: usize = 10_000;
/// Of its core modules; a component that was put together of several languages' has ten or so.
pub(super) const INSTANCES: u32 = 100;
pub(super) const TABLES: u32 = 100;
pub(super) const MEMORIES: u32 = 10;
/// Of nested calls. What is left of the fiber's 2 MiB is for the host's own.
pub(super) const STACK_BYTES: usize = 512 << 10;
/// What one call into the host, or one answer, may hand over.
pub(super) const HOST_CALL_BYTES: usize = 16 << 20;
/// Streams, pollables and resources of the guest's own that are open at once.
pub(super) const HANDLES: usize = 1_000;

/// Why the host stopped a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stopped {
    #[error("it computed for longer than {} s, which is what it may", .0.as_secs_f64())]
    Time(Duration),
    #[error("it called the host more than {0} times")]
    HostCalls(u32),
    #[error("it handed over more than {} MiB at once", HOST_CALL_BYTES >> 20)]
    CallSize,
    #[error("it asked for more than {} MiB of memory", .0 >> 20)]
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

impl Stopped {
    /// Why an error came up, where one of these limits is the reason. `refused` is what the limiter said no to: the
    /// guest only saw a growth that failed, and then gave up in its own way.
    pub(super) fn because(error: &wasmtime::Error, refused: Option<Self>) -> Option<Self> {
        if let Some(stopped) = error.downcast_ref::<Self>() {
            return Some(*stopped);
        }
        if let Some(Trap::StackOverflow) = error.downcast_ref::<Trap>() {
            return Some(Self::Stack);
        }
        if let Some(ResourceTableError::Full) = error.downcast_ref::<ResourceTableError>() {
            return Some(Self::Handles);
        }
        // wasmtime has no types for these. Only the root is looked at: what is around it names the guest's functions.
        let root = error.root_cause().to_string();
        let told = [
            ("fuel allocated for hostcalls has been exhausted", Self::CallSize),
            ("store handle limit exceeded", Self::Handles),
            ("resource limit exceeded", Self::Instances),
        ];
        told.iter().find(|(text, _)| root.contains(text)).map(|(_, stopped)| *stopped).or(refused)
    }

    /// For the caller of this module.
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

/// wasmtime's own limits count each memory and table by itself; this one counts them all. It remembers a refusal,
/// because the guest only sees a failed growth and then traps as `unreachable`.
pub(super) struct Limiter {
    most_memory: usize,
    memory: usize,
    elements: usize,
    /// The latest growth that was refused.
    pub(super) refused: Option<Stopped>,
}

impl Limiter {
    /// With so many bytes for all linear memories together.
    pub(super) fn new(most_memory: usize) -> Self {
        Self { most_memory, memory: 0, elements: 0, refused: None }
    }

    fn allow(&mut self, fits: bool, otherwise: Stopped) -> wasmtime::Result<bool> {
        if !fits {
            self.refused = Some(otherwise);
        }
        Ok(fits)
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.memory.saturating_add(desired.saturating_sub(current));
        let fits = total <= self.most_memory;
        if fits {
            self.memory = total;
        }
        self.allow(fits, Stopped::Memory(self.most_memory))
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.elements.saturating_add(desired.saturating_sub(current));
        let fits = total <= TABLE_ELEMENTS;
        if fits {
            self.elements = total;
        }
        self.allow(fits, Stopped::Tables)
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

/// The guest's time: that of a processor, while its call is being worked on, and not while it waits for a command or for its
/// turn on a thread. What it makes the host do on the spot counts as its own: filling 64 MiB of memory is one instruction.
#[derive(Clone)]
pub(super) struct GuestTime {
    allowed: Duration,
    spent: Arc<Mutex<Spent>>,
}

/// On a machine that has much else to do, a call is worked on for longer than it has a processor; up to so many times what
/// it may have.
const LONGER: u32 = 4;

#[derive(Default)]
struct Spent {
    before: Used,
    /// The processor's time that its thread had used when work on it began, and when that was.
    since: Option<(Duration, Instant)>,
}

/// The time that a call has used.
#[derive(Clone, Copy, Default)]
struct Used {
    /// Time of a processor.
    processor: Duration,
    /// Time by the clock on the wall.
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

/// The time of a processor that this thread has used.
fn of_processor() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

impl GuestTime {
    pub(super) fn new(allowed: Duration) -> Self {
        Self { allowed, spent: Arc::default() }
    }

    /// Works on a call, counting.
    pub(super) async fn counting<T>(self, call: impl Future<Output = T>) -> T {
        let mut call = pin!(call);
        poll_fn(|cx| {
            self.with(Spent::begin);
            let polled = call.as_mut().poll(cx);
            self.with(Spent::end);
            polled
        })
        .await
    }

    /// Asked while the guest runs, on its thread.
    pub(super) fn check(&self) -> Result<(), Stopped> {
        let spent = self.with(|spent| spent.so_far());
        match spent.processor > self.allowed || spent.wall > self.allowed * LONGER {
            true => Err(Stopped::Time(self.allowed)),
            false => Ok(()),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Spent) -> T) -> T {
        work(&mut self.spent.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests;
