//! The modules that are used, and which of them answers to a tool's name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::cache::{Cache, Stamp};
use super::config::Modules;
use super::description::Tool;
use super::engine::Lazy;
use super::module::{Bytes, Loader, Module};
use super::source::{Absent, Candidate, Origin, Places, candidates};
use host_target::Facts;

/// Every module, every tool. What is loaded is what was pinned, and a change of any file makes a new registry.
pub struct Registry {
    loader: Arc<Loader>,
    config: Modules,
    /// Whether a component waits to be compiled.
    later: bool,
    modules: Vec<Arc<Module>>,
    absent: Vec<Absent>,
    /// Tool name to the modules that have it, with the tool's index in each.
    tools: BTreeMap<String, Vec<(usize, usize)>>,
    /// What older clients call a tool, and its name.
    aliases: BTreeMap<String, String>,
    /// Every name and alias that any of the modules has.
    names: BTreeSet<String>,
    /// What it was made of, where the same would make the same again.
    of: Option<String>,
}

/// What to do with a third party's component that isn't in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cold {
    /// Compile it now, however long that takes.
    Compile,
    /// Leave it out for now: somebody waits for the rest.
    Later,
}

/// Where a call goes.
pub enum Route {
    /// To this module's tool.
    Module(Arc<Module>, Tool),
    /// Nowhere: no module that has it serves the target; the reasons.
    NotServed(Vec<String>),
    /// Nowhere: no module has it.
    Unknown,
}

/// Two modules that can't be used together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// Modules are known by their names.
    #[error("there is another module named {module}, {}", origin.described())]
    Name {
        /// Of both.
        module: String,
        /// Whose the other one is.
        origin: Origin,
    },
    /// Neither name nor target says which one is meant.
    #[error("module {module}, {}, has a tool {tool} for the same targets", origin.described())]
    Shadows {
        /// The one that is there.
        module: String,
        /// Whose it is.
        origin: Origin,
        /// What both have.
        tool: String,
    },
    /// Clients see one tool.
    #[error(
        "module {module} has a tool {tool} whose schema, shape, risk, place or aliases differ from this one's"
    )]
    Differs {
        /// The one that is there.
        module: String,
        /// What both have.
        tool: String,
    },
    /// What a call names is one tool, whatever the target.
    #[error("{name} means the tool {tool} of module {module}, {}", origin.described())]
    Alias {
        /// The one that is there.
        module: String,
        /// Whose it is.
        origin: Origin,
        /// Its tool.
        tool: String,
        /// What both tools would answer to: to one of them at least it is an alias.
        name: String,
    },
}

impl Registry {
    /// A registry of no module, yet.
    pub fn new(config: &Modules, cache: Option<PathBuf>) -> Self {
        let loader = Loader::new(Lazy::new(config.limits.clone()), Cache::open(cache));
        Self::empty(Arc::new(loader), config)
    }

    /// Loads what the places hold. A component that can't be used takes nothing else with it.
    pub async fn load(&self, places: &Places, cold: Cold) -> Self {
        Self::empty(self.loader.clone(), &self.config).filled(places, &[], (cold, Bytes::AsKept)).await
    }

    /// As [`Registry::load`], with a loader that others use as well, and with every file read.
    pub(super) async fn with(loader: Arc<Loader>, places: &Places, config: &Modules, cold: Cold) -> Self {
        Self::empty(loader, config).filled(places, &[], (cold, Bytes::Read)).await
    }

    /// Anew, keeping what hasn't changed. Every file is read.
    pub async fn reload(&self, places: &Places, config: &Modules) -> Self {
        let how = (Cold::Compile, Bytes::Read);
        Self::empty(self.loader.clone(), config).filled(places, &self.modules, how).await
    }

    fn empty(loader: Arc<Loader>, config: &Modules) -> Self {
        let (modules, absent, tools, aliases, names, of) = Default::default();
        Self { loader, config: config.clone(), modules, absent, tools, aliases, names, of, later: false }
    }

    /// What this was made of: a hash of the pins and of the files' metadata, taken before any file was read. None, where
    /// the same files could make another one, because one of them was just changed or can't be used.
    pub fn of(&self) -> Option<&str> {
        self.of.as_deref()
    }

    /// Keeps this as the list of tools.
    pub fn keep_list(&self, list: &[u8]) {
        self.loader.cache.keep_list(list);
    }

    async fn filled(mut self, places: &Places, known: &[Arc<Module>], (cold, bytes): (Cold, Bytes)) -> Self {
        let config = &self.config;
        let (candidates, absent) = candidates(places, config);
        self.absent = absent;
        self.of = made_of(&candidates);
        let looked_at = self.loader.look_at_all(&candidates, known, bytes);
        for (candidate, looked_at) in candidates.into_iter().zip(looked_at) {
            let (name, origin, path) = (candidate.name.clone(), candidate.origin, candidate.path.clone());
            let as_pinned = looked_at.is_ok();
            let unchanged = known.iter().find(|module| module.is(&candidate)).filter(|_| as_pinned);
            let must_compile = matches!(&looked_at, Ok(None)) && origin != Origin::Host;
            if cold == Cold::Later && unchanged.is_none() && as_pinned && origin != Origin::Host {
                // Those after it wait as well: what it is called and has is theirs to respect.
                if self.later || must_compile {
                    self.later = true;
                    let reason = "it is not compiled yet; a server does that while it runs";
                    self.absent.push(Absent::refused(&name, origin, &path, reason));
                    continue;
                }
            }
            let loaded = match unchanged {
                Some(module) => Ok(module.clone()),
                None => Module::load(&self.loader, candidate, looked_at).await.map(Arc::new),
            };
            let added = match loaded {
                Ok(module) => self.add(module).map_err(|conflict| conflict.to_string()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(reason) = added {
                self.absent.push(Absent::refused(&name, origin, &path, reason));
            }
        }
        if self.absent.iter().any(|absent| !absent.disabled) {
            self.of = None;
        }
        self
    }

    /// Tells the log what is not used.
    pub fn tell_absent(&self) {
        for absent in self.absent.iter().filter(|absent| !absent.disabled) {
            tracing::error!(module = absent.name, reason = absent.reason, "a module is not used");
        }
    }

    /// What it was made by.
    pub fn config(&self) -> &Modules {
        &self.config
    }

    /// Whether a component waits to be compiled; reloading does it.
    pub fn is_waiting(&self) -> bool {
        self.later
    }

    /// Why this module can't be used beside those that are there; one of its own name is left out of it where it is to
    /// take that one's place.
    pub(super) fn conflicts(&self, module: &Module, updates: bool) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        let name = &module.description.name;
        let is_new = |name: &str| !self.names.contains(name);
        if names(module).all(is_new) && self.modules.iter().all(|other| other.description.name != *name) {
            return conflicts;
        }
        let others = self.modules.iter().filter(|other| !updates || other.description.name != *name);
        for other in others {
            if other.description.name == *name {
                conflicts.push(Conflict::Name { module: name.clone(), origin: other.origin });
            }
            let (ours, theirs) = (module.description.tools.iter(), other.description.tools.as_slice());
            let pairs = ours.flat_map(|tool| theirs.iter().map(move |theirs| (tool, theirs)));
            for (tool, theirs) in pairs {
                let (other, origin) = (&other.description, other.origin);
                if theirs.name != tool.name {
                    if let Some(shared) = tool.shares_name_with(theirs) {
                        let (module, tool, name) =
                            (other.name.clone(), theirs.name.clone(), shared.to_owned());
                        conflicts.push(Conflict::Alias { module, origin, tool, name });
                    }
                    continue;
                }
                if origin == Origin::Host && module.replaces(&tool.name) {
                    continue;
                }
                let (with, tool_name) = (other.name.clone(), tool.name.clone());
                if !module.description.excludes(other) {
                    conflicts.push(Conflict::Shadows { module: with, origin, tool: tool_name });
                } else if !tool.is_same_to_clients(theirs) {
                    conflicts.push(Conflict::Differs { module: with, tool: tool_name });
                }
            }
        }
        conflicts
    }

    fn add(&mut self, module: Arc<Module>) -> Result<(), Conflict> {
        if let Some(conflict) = self.conflicts(&module, false).into_iter().next() {
            return Err(conflict);
        }
        self.names.extend(names(&module).map(str::to_owned));
        let number = self.modules.len();
        for (index, tool) in module.description.tools.iter().enumerate() {
            let answering = self.tools.entry(tool.name.clone()).or_default();
            if module.replaces(&tool.name) {
                answering.retain(|(other, _)| self.modules[*other].origin != Origin::Host);
                self.aliases.retain(|_, name| *name != tool.name);
            }
            answering.push((number, index));
            let aliases = tool.aliases.tool.iter();
            self.aliases.extend(aliases.map(|alias| (alias.clone(), tool.name.clone())));
        }
        self.modules.push(module);
        Ok(())
    }

    /// The modules, the host's own first.
    pub fn modules(&self) -> &[Arc<Module>] {
        &self.modules
    }

    /// What is not used, and why.
    pub fn absent(&self) -> &[Absent] {
        &self.absent
    }

    /// Every tool once, by name.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.tools.values().filter_map(|found| {
            let (module, index) = found.first()?;
            Some(&self.modules[*module].description.tools[*index])
        })
    }

    /// Which module answers to this tool's name on a target.
    pub fn route(&self, tool: &str, facts: &Facts) -> Route {
        let Some(candidates) = self.tools.get(tool) else { return Route::Unknown };
        let mut reasons = Vec::new();
        for (number, index) in candidates {
            let module = &self.modules[*number];
            match module.description.refuses(facts) {
                None => return Route::Module(module.clone(), module.description.tools[*index].clone()),
                Some(reason) => reasons.push(format!("module {}: {reason}", module.description.name)),
            }
        }
        Route::NotServed(reasons)
    }

    /// The tool that answers to this name or alias, whichever module has it.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        let found = self.tools.get(name).or_else(|| self.tools.get(self.aliases.get(name)?));
        let (module, index) = found?.first()?;
        Some(&self.modules[*module].description.tools[*index])
    }
}

/// What was last kept as the list of tools, and what a registry of these places would be made of now.
pub fn kept_list(cache: Option<PathBuf>, places: &Places, config: &Modules) -> Option<(Vec<u8>, String)> {
    Some((Cache::open(cache).list()?, made_of(&candidates(places, config).0)?))
}

/// A hash of all that decides which tools these have: this program, their pins, and their files' metadata.
fn made_of(candidates: &[Candidate]) -> Option<String> {
    let program = std::env::current_exe().ok().and_then(|program| Stamp::of(&program))?;
    let files = candidates.iter().map(|candidate| Stamp::of(&candidate.path).filter(Stamp::is_settled));
    let files = files.collect::<Option<Vec<_>>>()?;
    Some(hex::encode(Sha256::digest(format!("{program:?} {candidates:?} {files:?}"))))
}

/// The names and aliases of its tools.
fn names(module: &Module) -> impl Iterator<Item = &str> {
    let tools = module.description.tools.iter();
    tools.flat_map(|tool| std::iter::once(&tool.name).chain(&tool.aliases.tool)).map(String::as_str)
}
