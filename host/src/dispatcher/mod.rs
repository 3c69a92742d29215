//! Takes what clients ask for, and holds what outlives their calls.
//!
//! A request is begun in [`begin`], on one host or on many, or joins a call that waits. Its seven steps are
//! [`pipeline`]. How a question reaches a person is in [`confirmation`], and which modules there are in [`modules`].

mod begin;
mod confirmation;
mod modules;
mod pipeline;
mod request;

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{OnceCell, watch};

use crate::arguments::Validators;
use crate::config::Loaded;
use crate::jobs::Jobs;
use crate::parking::Parking;
use crate::running::Room;
use crate::targets::Targets;
use crate::turns::Turns;
use host_approval::Listener;
use host_audit::Audit;
use host_components::{Cold, Places, Registry};
use host_gate::Gate;
use host_inventory::InventoryError;
use host_knowledge::Lazy;
use host_policy::{Policy, PolicyError};
use host_system_mode::Mode;
use host_target::LookedFor;

use crate::live::Live;
pub use request::{Begun, Called, Caller, Request};

/// Takes requests, and holds everything that a call needs and that outlives it.
pub struct Dispatcher {
    live: RwLock<Arc<Live>>,
    cold: Cold,
    /// Set once the modules are loaded.
    first_look: OnceCell<()>,
    /// Counts the changes of the tools' list.
    changes: watch::Sender<u64>,
    /// Held while the modules are looked at anew, so that the latest look wins.
    reloading: tokio::sync::Mutex<()>,
    places: Places,
    targets: Arc<Targets>,
    loaded: Loaded,
    room: Room,
    /// What is about the other calls doesn't wait for them.
    room_of_host: Room,
    parking: Arc<Parking>,
    /// Where a person at a terminal reaches what is parked.
    listener: Mutex<Option<Listener>>,
    mode: Mode,
    gate: Arc<Gate>,
    jobs: Arc<Jobs>,
    /// The first answer of the first process says so, and no other.
    first_run: Mutex<bool>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its rules.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Its hosts.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
}

impl Dispatcher {
    /// With the modules of these places, for the targets of the configuration. An error where that can't be followed. The
    /// modules are loaded by who first asks for them.
    pub fn new(places: Places, loaded: Loaded, cold: Cold) -> Result<Self, StartError> {
        let policy = Policy::load(&loaded.config.policy)?;
        let registry = Registry::new(&loaded.config.modules, host_base::directories::cache());
        let live = Live { registry, validators: Validators::default(), config_error: None };
        let limits = &loaded.config.modules.limits;
        let turns = || Turns::new(limits.calls_at_once.get() as usize, limits.calls_waiting.get() as usize);
        let room = Room::new(turns());
        let room_of_host = room.beside(turns());
        let knowledge = Lazy::new(&loaded.config.knowledge, &loaded.path, policy.clone());
        let marks = knowledge.clone();
        let looked_for = LookedFor::new(move || marks.get().marks());
        let targets = Arc::new(Targets::new(&loaded.config, looked_for)?);
        let first_run = Mutex::new(loaded.generated);
        let audit = Arc::new(Audit::of_this_account(&loaded.config.audit));
        let gate = Arc::new(Gate::new(loaded.config.safety.clone(), policy, knowledge, audit));
        Ok(Self {
            live: RwLock::new(Arc::new(live)),
            cold,
            first_look: OnceCell::new(),
            changes: watch::Sender::new(0),
            reloading: tokio::sync::Mutex::default(),
            places,
            targets,
            loaded,
            room,
            room_of_host,
            parking: Arc::default(),
            listener: Mutex::default(),
            mode: host_system_mode::mode(),
            gate,
            jobs: Arc::default(),
            first_run,
        })
    }

    /// Ends what waits, and returns when no plan and no call is on its way.
    pub async fn finished(&self) {
        self.parking.close();
        self.jobs.close().await;
        drop(self.listener.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.gate.finished().await;
        self.room.is_empty().await;
        self.targets.close().await;
    }

    /// What is known of services.
    pub fn knowledge(&self) -> &Lazy {
        self.gate.knowledge()
    }

    /// The calls that go on by themselves.
    pub fn jobs(&self) -> &Arc<Jobs> {
        &self.jobs
    }

    /// When a call goes on by itself, of a client that has a way to ask for it; never, where nothing is set, and of a call
    /// that itself asks for such calls.
    pub fn job_after(&self, tool: &str, has_tasks: bool) -> Option<Duration> {
        let seconds = self.loaded.config.jobs.after_seconds.get();
        let live = self.now();
        let can_ask = || has_tasks || live.registry.modules().iter().any(|module| module.imports("jobs"));
        (seconds > 0 && can_ask() && !live.is_of_host(tool)).then(|| Duration::from_secs(seconds.into()))
    }

    /// The machines under administration.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Tells when the tools' list has changed.
    pub fn tools_changed(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Tells those who want to know that the tools' list has changed.
    pub fn announce(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// With no module.
    #[cfg(test)]
    pub fn without_modules() -> Self {
        let places = Places { host: None, system: "/nonexistent".into(), user: None };
        let loaded = Loaded { config: Default::default(), path: Default::default(), generated: false };
        match Self::new(places, loaded, Cold::Compile) {
            Ok(pipeline) => pipeline,
            Err(error) => panic!("the built-in rules hold: {error}"),
        }
    }
}
