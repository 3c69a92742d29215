//! The list of tools: as it was last given, where nothing that it was made of has changed since, and else of the modules.
//!
//! Whoever starts a server waits for this list first, so no module is looked into for it. What is called, and what may be
//! done, is only ever said by the modules themselves: they are looked into right after, and a list that isn't theirs is
//! made anew and announced.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use super::handler::describe_tool;
use crate::dispatcher::Dispatcher;
use crate::schema::Shown;
use host_components::Modules;
use host_components::{Places, Registry};

/// By then a client has the list that it has just asked for.
const GIVEN: Duration = Duration::from_millis(20);

/// As it is kept.
#[derive(Serialize, Deserialize)]
struct Entry {
    /// The hash of what the modules were made of.
    of: String,
    /// For which clients it is.
    shown: Shown,
    tools: Vec<Tool>,
}

/// A list that was kept.
struct Kept {
    entry: Entry,
    /// The entry's own bytes.
    bytes: Vec<u8>,
}

/// The list that was kept, read while everything else gets ready.
#[derive(Default)]
pub struct KeptList(Option<JoinHandle<Option<Kept>>>);

impl KeptList {
    /// Begins to read it.
    pub fn begin(places: &Places, modules: &Modules) -> Self {
        let (places, modules) = (places.clone(), modules.clone());
        Self(Some(tokio::task::spawn_blocking(move || {
            let (bytes, of) = host_components::kept_list(host_base::directories::cache(), &places, &modules)?;
            let entry = serde_json::from_slice::<Entry>(&bytes).ok().filter(|entry| entry.of == of)?;
            Some(Kept { entry, bytes })
        })))
    }

    /// It, where there is one that holds.
    async fn read(self) -> Option<Kept> {
        self.0?.await.unwrap_or_default()
    }
}

/// The list of one server.
pub(super) struct List {
    dispatcher: Arc<Dispatcher>,
    /// Taken by the first who asks.
    kept: Mutex<Option<JoinHandle<Option<Kept>>>>,
    /// The modules' files are read, or about to be.
    is_checked: OnceLock<()>,
}

impl List {
    /// Takes what was kept; where nothing was that holds, the modules are loaded at once.
    pub(super) fn begin(dispatcher: Arc<Dispatcher>, kept: KeptList) -> Self {
        let loading = dispatcher.clone();
        let kept = tokio::spawn(async move {
            let kept = kept.read().await;
            if kept.is_none() {
                tokio::spawn(load(loading));
            }
            kept
        });
        Self { dispatcher, kept: Mutex::new(Some(kept)), is_checked: OnceLock::new() }
    }

    /// Every tool, as such a client is to see it.
    pub(super) async fn tools(&self, shown: Shown) -> Vec<Tool> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        let kept = match kept {
            // Once the modules are loaded, they say what there is: something may have changed since it was read.
            Some(kept) if !self.dispatcher.is_loaded() => {
                kept.await.unwrap_or_default().filter(|kept| kept.entry.shown == shown)
            }
            _ => None,
        };
        let (given, bytes) = match kept {
            Some(kept) => (kept.entry.tools, Some(kept.bytes)),
            None => (tools(&self.dispatcher.live().await.registry, shown), None),
        };
        if self.is_checked.set(()).is_ok() {
            tokio::spawn(check(self.dispatcher.clone(), shown, bytes));
        }
        given
    }
}

/// Loads the modules, and compiles those that wait for it, beside whatever a client asks.
async fn load(dispatcher: Arc<Dispatcher>) {
    if dispatcher.live().await.registry.is_waiting() {
        dispatcher.reload().await;
    }
}

fn tools(registry: &Registry, shown: Shown) -> Vec<Tool> {
    registry.tools().map(|tool| describe_tool(tool, shown)).collect()
}

/// Looks into the modules and reads their files, once the list is on its way. Says so where it isn't what was given out of
/// the cache, and keeps it where another one is kept.
async fn check(dispatcher: Arc<Dispatcher>, shown: Shown, given: Option<Vec<u8>>) {
    tokio::time::sleep(GIVEN).await;
    // Loaded first: otherwise the reload announces a change whether there is one or not.
    dispatcher.live().await;
    dispatcher.reload().await;
    let registry = &dispatcher.live().await.registry;
    let tools = tools(registry, shown);
    let as_given = given.as_deref().map(|given| {
        let given = serde_json::from_slice::<Entry>(given).ok();
        given.is_some_and(|given| given.tools == tools)
    });
    if as_given == Some(false) {
        dispatcher.announce();
    }
    // Nothing is kept where the modules may be others at the next start.
    let Some(of) = registry.of().map(str::to_owned) else { return };
    let entry =
        serde_json::to_vec(&Entry { of, shown, tools }).ok().filter(|entry| given.as_ref() != Some(entry));
    if let Some(entry) = entry {
        registry.keep_list(&entry);
    }
}
