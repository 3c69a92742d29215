//! The list of tools. It comes from a cache where the modules have not changed since, and else from the modules. Where the
//! operator keeps it short, a client gets a part of it.
//!
//! A client waits for this list first, so no module is loaded for it. Only the list comes from the cache, never what a call
//! may do. The modules are loaded right afterwards; where their list is another one, the client is told.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use super::handler::describe_tool;
use crate::arguments::schema::SchemaOptions;
use crate::dispatcher::{ClientTools, Dispatcher};
use host_components::Modules;
use host_components::{ModuleDirectories, Origin, Registry};

/// The time within which a client gets the list that it has just asked for.
const SEND_TIME: Duration = Duration::from_millis(20);

/// The number of bytes that a short list begins with at most.
const SHORT_BYTES: usize = 8000;

/// All tools as a client sees them, and the names of those that a short list begins with.
#[derive(PartialEq, Serialize, Deserialize)]
struct AllTools {
    tools: Vec<Tool>,
    /// The host's own modules' tools come before those of others, and smaller ones before larger ones.
    first: Vec<String>,
}

impl AllTools {
    fn of(registry: &Registry, options: SchemaOptions) -> Self {
        let tools: Vec<_> = registry.tools().map(|tool| describe_tool(tool, options)).collect();
        let mut first: Vec<_> = registry
            .tools_with_modules()
            .zip(&tools)
            .filter(|((_, tool), _)| tool.first)
            .map(|((module, tool), shown)| (module.origin != Origin::Host, bytes(shown), tool.name.clone()))
            .collect();
        first.sort();
        Self { tools, first: first.into_iter().map(|(_, _, name)| name).collect() }
    }

    /// The list of this client: all tools, or the part of them that it has where its list is kept short.
    fn of_client(mut self, client: &ClientTools) -> Vec<Tool> {
        if client.is_short() {
            let names = client.show(self.begin());
            self.tools.retain(|tool| names.contains(&*tool.name));
        }
        self.tools
    }

    /// The names of the tools that a short list begins with: as many of the first as there is room for.
    fn begin(&self) -> BTreeSet<String> {
        let mut room = SHORT_BYTES - "[]".len();
        let mut names = BTreeSet::new();
        for name in &self.first {
            let Some(tool) = self.tools.iter().find(|tool| tool.name == **name) else { continue };
            let Some(rest) = room.checked_sub(bytes(tool) + ",".len()) else { continue };
            room = rest;
            names.insert(name.clone());
        }
        names
    }
}

/// The bytes that a tool takes in a list.
fn bytes(tool: &Tool) -> usize {
    serde_json::to_string(tool).map_or(SHORT_BYTES, |text| text.len())
}

/// The list in the cache.
#[derive(Serialize, Deserialize)]
struct Entry {
    /// The hash of everything that the list depends on.
    #[serde(rename = "of")]
    source_sha256: String,
    /// The clients that the list is for.
    #[serde(rename = "shown")]
    options: SchemaOptions,
    all: AllTools,
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

    /// The list of this client, with the schemas that it sees.
    pub(super) async fn tools(&self, options: SchemaOptions, client: &ClientTools) -> Vec<Tool> {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner).take();
        let cached = match cached {
            // Once the modules are loaded, the list comes from them: they may have changed since the cache was read.
            Some(cached) if !self.dispatcher.is_loaded() => {
                cached.await.unwrap_or_default().filter(|cached| cached.entry.options == options)
            }
            _ => None,
        };
        let (all, bytes) = match cached {
            Some(cached) => (cached.entry.all, Some(cached.bytes)),
            None => (AllTools::of(&self.dispatcher.modules().await.registry, options), None),
        };
        if self.is_checked.set(()).is_ok() {
            tokio::spawn(check(self.dispatcher.clone(), options, bytes));
        }
        all.of_client(client)
    }
}

/// Loads the modules, and compiles those that are not compiled yet, while the server answers requests.
async fn load(dispatcher: Arc<Dispatcher>) {
    if dispatcher.modules().await.registry.is_waiting() {
        dispatcher.reload().await;
    }
}

/// Loads the modules and reads their files after the client got the list, and compares their list with the one from the cache.
async fn check(dispatcher: Arc<Dispatcher>, options: SchemaOptions, cached: Option<Vec<u8>>) {
    tokio::time::sleep(SEND_TIME).await;
    // Loading comes first: otherwise the reload announces a change whether there is one or not.
    dispatcher.modules().await;
    dispatcher.reload().await;
    let modules = dispatcher.modules().await;
    // Comparing would delay the calls that come right after the list.
    let compare = move || compare(&dispatcher, &modules.registry, options, cached.as_deref());
    if let Err(error) = tokio::task::spawn_blocking(compare).await {
        tracing::error!(%error, "the list of tools is not compared with the modules");
    }
}

/// Announces a change where the list from the cache was another one, and writes the new list to the cache.
fn compare(dispatcher: &Dispatcher, registry: &Registry, options: SchemaOptions, cached: Option<&[u8]>) {
    let all = AllTools::of(registry, options);
    let is_same = cached.map(|cached| {
        let cached = serde_json::from_slice::<Entry>(cached).ok();
        cached.is_some_and(|cached| cached.all == all)
    });
    if is_same == Some(false) {
        dispatcher.announce_tools_changed();
    }
    // Without a hash nobody could tell at the next start whether the list still holds.
    let Some(source_sha256) = registry.of().map(str::to_owned) else { return };
    let entry = serde_json::to_vec(&Entry { source_sha256, options, all }).ok();
    if let Some(entry) = entry.filter(|entry| cached != Some(entry)) {
        registry.keep_list(&entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Listing;
    use serde_json::Map;

    /// Tools of this many bytes each, all of which are among the first.
    fn all(names: &[&str], bytes: usize) -> AllTools {
        let tool = |name: &&str| Tool::new((*name).to_owned(), "x".repeat(bytes), Map::new());
        AllTools {
            tools: names.iter().map(tool).collect(),
            first: names.iter().rev().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn shown(tools: &[Tool]) -> Vec<&str> {
        tools.iter().map(|tool| &*tool.name).collect()
    }

    #[test]
    fn a_short_list_never_begins_with_more_bytes_than_it_may_have() {
        let client = ClientTools::new(Listing::Compact);
        let tools = all(&["a", "b", "c", "d"], SHORT_BYTES / 3).of_client(&client);
        // The last ones come first in `first`, and the list keeps its order.
        assert_eq!(shown(&tools), ["c", "d"]);
        assert!(serde_json::to_string(&tools).unwrap().len() <= SHORT_BYTES);
        // One tool that is too large keeps no other one out.
        let mut mixed = all(&["a", "b"], 10);
        mixed.tools.extend(all(&["huge"], SHORT_BYTES).tools);
        mixed.first.insert(0, "huge".to_owned());
        let client = ClientTools::new(Listing::Compact);
        assert_eq!(shown(&mixed.of_client(&client)), ["a", "b"]);
    }

    #[test]
    fn a_short_list_has_what_was_added_and_a_whole_list_has_everything() {
        let some = || {
            let mut some = all(&["a", "b", "c"], 10);
            some.first = vec!["b".to_owned()];
            some
        };
        let client = ClientTools::new(Listing::Compact);
        assert_eq!(shown(&some().of_client(&client)), ["b"]);
        assert_eq!(client.add(vec!["c".to_owned()]), ["c"]);
        assert_eq!(shown(&some().of_client(&client)), ["b", "c"]);
        let client = ClientTools::new(Listing::All);
        assert_eq!(shown(&some().of_client(&client)), ["a", "b", "c"]);
    }
}
