//! Takes requests, and holds everything that outlives their calls.
//!
//! [`begin`] turns a request into a call on one host or on many, or finds the call that waits for it. [`pipeline`] is
//! the call itself, in seven steps. [`tool_calls`] makes the calls of tools that a module makes within a call of its own.
//! [`confirmation`] chooses how a question reaches a person, and [`modules`] loads the
//! modules.

mod begin;
mod call_state;
mod client_tools;
mod confirmation;
mod loaded_modules;
mod modules;
mod pipeline;
mod request;
mod session_info;
mod tool_calls;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{OnceCell, watch};

use crate::arguments::Validators;
use crate::calls::call_pool::CallPool;
use crate::calls::jobs::Jobs;
use crate::calls::pending_calls::PendingCalls;
use crate::calls::scheduler::Scheduler;
use crate::config::LoadedConfig;
use crate::targets::Targets;
use host_approval::Listener;
use host_audit::AuditLog;
use host_components::{CompileMode, ModuleDirectories, Registry};
use host_gate::Gate;
use host_inventory::InventoryError;
use host_knowledge::LazyKnowledge;
use host_policy::{Policy, PolicyError};
use host_system_mode::Mode;
use host_target::{ServiceFiles, Target};

pub use client_tools::ClientTools;
pub use loaded_modules::LoadedModules;
pub use request::{Caller, Dispatched, DispatchedCall, Request};

/// Takes requests, and holds everything that calls need and that outlives them.
pub struct Dispatcher {
    modules: RwLock<Arc<LoadedModules>>,
    cold: CompileMode,
    /// Set once the modules are loaded.
    first_load: OnceCell<()>,
    /// Counts the changes of the list of tools.
    tool_changes: watch::Sender<u64>,
    /// Held while the modules are loaded again, so that the latest load wins.
    reloading: tokio::sync::Mutex<()>,
    places: ModuleDirectories,
    targets: Arc<Targets>,
    loaded_config: LoadedConfig,
    pool: CallPool,
    /// The pool of tools about the server's own connections and jobs, which must not wait for other calls.
    server_tool_pool: CallPool,
    /// The pool of the calls that modules make. A call that makes them keeps its slot until they end, so they have slots of
    /// their own.
    tool_call_pool: CallPool,
    pending_calls: Arc<PendingCalls>,
    /// Lets a person at a terminal decide about pending calls.
    listener: Mutex<Option<Listener>>,
    mode: Mode,
    gate: Arc<Gate>,
    jobs: Arc<Jobs>,
    /// True until the first answer of a server that has just written its configuration file.
    first_run: Arc<AtomicBool>,
}

/// The reason why the server can't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The rules of the policy are wrong.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The inventory of hosts is wrong.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
}

impl Dispatcher {
    /// Makes a dispatcher for the modules in these places and the targets of the configuration. The first request that
    /// needs the modules loads them.
    pub fn new(
        places: ModuleDirectories,
        loaded_config: LoadedConfig,
        cold: CompileMode,
    ) -> Result<Self, StartError> {
        let audit = AuditLog::of_this_account(&loaded_config.config.audit);
        Self::with(places, loaded_config, cold, audit, None)
    }

    /// Makes a dispatcher that works on this target only, and records its calls in this log.
    pub fn for_target(
        places: ModuleDirectories,
        loaded_config: LoadedConfig,
        target: Arc<Target>,
        audit: AuditLog,
    ) -> Result<Self, StartError> {
        Self::with(places, loaded_config, CompileMode::Now, audit, Some(target))
    }

    fn with(
        places: ModuleDirectories,
        loaded_config: LoadedConfig,
        cold: CompileMode,
        audit: AuditLog,
        only: Option<Arc<Target>>,
    ) -> Result<Self, StartError> {
        let config = &loaded_config.config;
        let policy = Policy::load(&config.policy)?;
        let registry = Registry::new(&config.modules, host_base::directories::cache());
        let modules = LoadedModules { registry, validators: Validators::default(), config_error: None };
        let limits = &config.modules.limits;
        let at_once = limits.calls_at_once.get() as usize;
        let scheduler = || Scheduler::new(at_once, limits.calls_waiting.get() as usize);
        let pool = CallPool::new(scheduler());
        let server_tool_pool = pool.with_scheduler(scheduler());
        // Each call that runs makes a bounded number of calls, so that this queue is bounded without a limit of its own.
        let tool_call_pool = pool.with_scheduler(Scheduler::new(at_once, usize::MAX));
        let knowledge = LazyKnowledge::new(&config.knowledge, &loaded_config.path, policy.clone());
        let marks = knowledge.clone();
        let looked_for = ServiceFiles::new(move || marks.get().configuration_marks());
        // A target that only this dispatcher has is locked apart from those of the account's servers.
        let locks = only.is_some().then(|| audit.directory().join("targets"));
        let targets = Arc::new(match only {
            Some(target) => Targets::only(target)?,
            None => Targets::new(config, looked_for)?,
        });
        let first_run = Arc::new(AtomicBool::new(loaded_config.generated));
        let gate = Gate::new(config.safety.clone(), policy, knowledge, Arc::new(audit));
        let gate = Arc::new(match locks {
            Some(directory) => gate.with_locks_in(directory),
            None => gate,
        });
        Ok(Self {
            modules: RwLock::new(Arc::new(modules)),
            cold,
            first_load: OnceCell::new(),
            tool_changes: watch::Sender::new(0),
            reloading: tokio::sync::Mutex::default(),
            places,
            targets,
            loaded_config,
            pool,
            server_tool_pool,
            tool_call_pool,
            pending_calls: Arc::default(),
            listener: Mutex::default(),
            mode: host_system_mode::mode(),
            gate,
            jobs: Arc::default(),
            first_run,
        })
    }

    /// Ends the calls that wait and the jobs, and returns when no plan and no call runs any more.
    pub async fn shut_down(&self) {
        self.pending_calls.close();
        self.jobs.close().await;
        drop(self.listener.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.gate.finished().await;
        self.pool.wait_until_empty().await;
        self.targets.close().await;
    }

    /// The profiles of services.
    pub fn knowledge(&self) -> &LazyKnowledge {
        self.gate.knowledge()
    }

    /// The calls that go on as jobs.
    pub fn jobs(&self) -> &Arc<Jobs> {
        &self.jobs
    }

    /// The time after which a call of this tool goes on as a job. `None` where the configuration allows none, where the
    /// client could not ask for the job, and for tools about the server itself.
    pub fn job_after(&self, tool: &str, has_tasks: bool) -> Option<Duration> {
        let seconds = self.loaded_config.config.jobs.after_seconds.get();
        let modules = self.current_modules();
        let can_ask = || has_tasks || modules.registry.modules().iter().any(|module| module.imports("jobs"));
        (seconds > 0 && can_ask() && !modules.is_server_tool(tool))
            .then(|| Duration::from_secs(seconds.into()))
    }

    /// The machines under administration.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// The list of tools of a client that connects now.
    pub fn client_tools(&self) -> ClientTools {
        ClientTools::new(self.loaded_config.config.tools.listing)
    }

    /// A receiver of the changes of the list of tools.
    pub fn tools_changed(&self) -> watch::Receiver<u64> {
        self.tool_changes.subscribe()
    }

    /// Tells all receivers that the list of tools has changed.
    pub fn announce_tools_changed(&self) {
        self.tool_changes.send_modify(|changes| *changes += 1);
    }

    /// A dispatcher without any module.
    #[cfg(test)]
    pub fn without_modules() -> Self {
        let places = ModuleDirectories { host: None, system: "/nonexistent".into(), user: None };
        let loaded_config =
            LoadedConfig { config: Default::default(), path: Default::default(), generated: false };
        match Self::new(places, loaded_config, CompileMode::Now) {
            Ok(dispatcher) => dispatcher,
            Err(error) => panic!("the built-in rules hold: {error}"),
        }
    }
}
