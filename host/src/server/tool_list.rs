//! The list of tools. It comes from a cache where the modules have not changed since, and else from the modules.
//!
//! A client waits for this list first, so no module is loaded for it. Only the list comes from the cache, never what a call
//! may do. The modules are loaded right afterwards; where their list is another one, the client is told.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use super::handler::describe_tool;
use crate::arguments::schema::SchemaOptions;
use crate::dispatcher::Dispatcher;
use host_components::Modules;
use host_components::{ModuleDirectories, Registry};

/// The time within which a client gets the list that it has just asked for.
const SEND_TIME: Duration = Duration::from_millis(20);

/// The list in the cache.
#[derive(Serialize, Deserialize)]
struct Entry {
    /// The hash of everything that the list depends on.
    #[serde(rename = "of")]
    source_sha256: String,
    /// The clients that the list is for.
    #[serde(rename = "shown")]
    options: SchemaOptions,
    tools: Vec<Tool>,
}

/// A list from the cache.
struct CachedList {
    entry: Entry,
    /// The entry as it stands in the cache.
    bytes: Vec<u8>,
}

/// Reads the list from the cache while the rest of the server starts.
#[derive(Default)]
pub struct ListReader(Option<JoinHandle<Option<CachedList>>>);

impl ListReader {
    /// Begins to read.
    pub fn start(places: &ModuleDirectories, modules: &Modules) -> Self {
        let (places, modules) = (places.clone(), modules.clone());
        Self(Some(tokio::task::spawn_blocking(move || {
            let (bytes, source_sha256) =
                host_components::kept_list(host_base::directories::cache(), &places, &modules)?;
            let entry = serde_json::from_slice::<Entry>(&bytes).ok()?;
            (entry.source_sha256 == source_sha256).then_some(CachedList { entry, bytes })
        })))
    }

    /// The list, where there is one that still holds.
    async fn read(self) -> Option<CachedList> {
        self.0?.await.unwrap_or_default()
    }
}

/// The list of tools of one server.
pub(super) struct ToolList {
    dispatcher: Arc<Dispatcher>,
    /// The list from the cache, until the first request takes it.
    cached: Mutex<Option<JoinHandle<Option<CachedList>>>>,
    /// Set once the modules are read to check the list.
    is_checked: OnceLock<()>,
}

impl ToolList {
    /// Makes the list. Where the cache has none that holds, the modules are loaded at once.
    pub(super) fn start(dispatcher: Arc<Dispatcher>, reader: ListReader) -> Self {
        let loading = dispatcher.clone();
        let cached = tokio::spawn(async move {
            let cached = reader.read().await;
            if cached.is_none() {
                tokio::spawn(load(loading));
            }
            cached
        });
        Self { dispatcher, cached: Mutex::new(Some(cached)), is_checked: OnceLock::new() }
    }

    /// All tools as a client with these options sees them.
    pub(super) async fn tools(&self, options: SchemaOptions) -> Vec<Tool> {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner).take();
        let cached = match cached {
            // Once the modules are loaded, the list comes from them: they may have changed since the cache was read.
            Some(cached) if !self.dispatcher.is_loaded() => {
                cached.await.unwrap_or_default().filter(|cached| cached.entry.options == options)
            }
            _ => None,
        };
        let (tools, bytes) = match cached {
            Some(cached) => (cached.entry.tools, Some(cached.bytes)),
            None => (describe_tools(&self.dispatcher.modules().await.registry, options), None),
        };
        if self.is_checked.set(()).is_ok() {
            tokio::spawn(check(self.dispatcher.clone(), options, bytes));
        }
        tools
    }
}

/// Loads the modules, and compiles those that are not compiled yet, while the server answers requests.
async fn load(dispatcher: Arc<Dispatcher>) {
    if dispatcher.modules().await.registry.is_waiting() {
        dispatcher.reload().await;
    }
}

fn describe_tools(registry: &Registry, options: SchemaOptions) -> Vec<Tool> {
    registry.tools().map(|tool| describe_tool(tool, options)).collect()
}

/// Loads the modules and reads their files after the client got the list. Announces a change where the list from the cache
/// was another one, and writes the new list to the cache.
async fn check(dispatcher: Arc<Dispatcher>, options: SchemaOptions, cached: Option<Vec<u8>>) {
    tokio::time::sleep(SEND_TIME).await;
    // Loading comes first: otherwise the reload announces a change whether there is one or not.
    dispatcher.modules().await;
    dispatcher.reload().await;
    let registry = &dispatcher.modules().await.registry;
    let tools = describe_tools(registry, options);
    let is_same = cached.as_deref().map(|cached| {
        let cached = serde_json::from_slice::<Entry>(cached).ok();
        cached.is_some_and(|cached| cached.tools == tools)
    });
    if is_same == Some(false) {
        dispatcher.announce_tools_changed();
    }
    // Without a hash nobody could tell at the next start whether the list still holds.
    let Some(source_sha256) = registry.of().map(str::to_owned) else { return };
    let entry = serde_json::to_vec(&Entry { source_sha256, options, tools }).ok();
    if let Some(entry) = entry.filter(|entry| cached.as_ref() != Some(entry)) {
        registry.keep_list(&entry);
    }
}
