//! The modules that are used, and the module that answers to a tool's name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::cache::{Cache, FileStamp};
use super::config::Modules;
use super::description::Tool;
use super::module::{Bytes, Loader, Module};
use super::source::{Candidate, ModuleDirectories, Origin, UnusedModule, candidates};
use host_target::Facts;

/// All modules and their tools. Each component was compared with its pin, and a change of any file makes a new
/// registry.
pub struct Registry {
    loader: Arc<Loader>,
    config: Modules,
    /// True where a component waits to be compiled.
    later: bool,
    modules: Vec<Arc<Module>>,
    unused: Vec<UnusedModule>,
    /// The modules that have a tool, by its name, with the tool's index in each.
    tools: BTreeMap<String, Vec<(usize, usize)>>,
    /// The aliases of tools, with the tools' names.
    aliases: BTreeMap<String, String>,
    /// All names and aliases of tools.
    names: BTreeSet<String>,
    /// A hash of what the registry was made of. None where the same files could make another registry.
    of: Option<String>,
}

/// The time at which a third party's component that isn't in the cache is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileMode {
    /// The component is compiled now, however long that takes.
    Now,
    /// The component is left out for now, because somebody waits for the others.
    Later,
}

/// The destination of a call.
pub enum Route {
    /// This module's tool answers.
    Module(Arc<Module>, Tool),
    /// No module with this tool serves the target, for these reasons.
    NotServed(Vec<String>),
    /// No module has this tool.
    Unknown,
}

/// The reason why two modules can't be used together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// Both modules have the same name.
    #[error("there is another module named {module}, {}", origin.described())]
    Name {
        /// The name of both.
        module: String,
        /// The origin of the other module.
        origin: Origin,
    },
    /// Both modules have a tool of one name for the same targets.
    #[error("module {module}, {}, has a tool {tool} for the same targets", origin.described())]
    Shadows {
        /// The module that is there.
        module: String,
        /// The origin of that module.
        origin: Origin,
        /// The tool that both have.
        tool: String,
    },
    /// Both modules have a tool of one name, and the two don't look the same to clients.
    #[error(
        "module {module} has a tool {tool} whose schema, shape, risk, place or aliases differ from this one's"
    )]
    Differs {
        /// The module that is there.
        module: String,
        /// The tool that both have.
        tool: String,
    },
    /// An alias of one tool is a name or alias of another one. A name in a call must mean one tool, whatever the
    /// target.
    #[error("{name} means the tool {tool} of module {module}, {}", origin.described())]
    Alias {
        /// The module that is there.
        module: String,
        /// The origin of that module.
        origin: Origin,
        /// The tool that is there.
        tool: String,
        /// The name that both tools would answer to. For at least one of them it is an alias.
        name: String,
    },
}

impl Registry {
    /// A registry without modules.
    pub fn new(config: &Modules, cache: Option<PathBuf>) -> Self {
        Self::empty(Arc::new(Loader::new(config, cache)), config)
    }

    /// Loads the modules of the directories. A component that can't be used doesn't affect the others.
    pub async fn load(&self, places: &ModuleDirectories, cold: CompileMode) -> Self {
        Self::empty(self.loader.clone(), &self.config).filled(places, &[], (cold, Bytes::AsKept)).await
    }

    /// Does the same as [`Registry::load`] with a loader that others share, and reads every file.
    pub(super) async fn with(
        loader: Arc<Loader>,
        places: &ModuleDirectories,
        config: &Modules,
        cold: CompileMode,
    ) -> Self {
        Self::empty(loader, config).filled(places, &[], (cold, Bytes::Read)).await
    }

    /// Loads the modules again, and keeps those that haven't changed. It reads every file.
    pub async fn reload(&self, places: &ModuleDirectories, config: &Modules) -> Self {
        let how = (CompileMode::Now, Bytes::Read);
        Self::empty(self.loader.clone(), config).filled(places, &self.modules, how).await
    }

    fn empty(loader: Arc<Loader>, config: &Modules) -> Self {
        let (modules, unused, tools, aliases, names, of) = Default::default();
        Self { loader, config: config.clone(), modules, unused, tools, aliases, names, of, later: false }
    }

    /// A hash of the pins and of the files' metadata, taken before any file was read. None where the same files could
    /// make another registry, because one was changed just now or can't be used.
    pub fn of(&self) -> Option<&str> {
        self.of.as_deref()
    }

    /// Keeps this list of tools in the cache.
    pub fn keep_list(&self, list: &[u8]) {
        self.loader.cache.keep_list(list);
    }

    async fn filled(
        mut self,
        places: &ModuleDirectories,
        known: &[Arc<Module>],
        (cold, bytes): (CompileMode, Bytes),
    ) -> Self {
        let config = &self.config;
        let (candidates, unused) = candidates(places, config);
        self.unused = unused;
        self.of = made_of(&candidates, config);
        let (loader, in_use) = (self.loader.clone(), known.to_vec());
        // Hashing all files would delay the calls that this thread serves as well.
        let looking = tokio::task::spawn_blocking(move || {
            let looked_at = loader.look_at_all(&candidates, &in_use, bytes);
            (candidates, looked_at)
        });
        let (candidates, looked_at) =
            looking.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        for (candidate, looked_at) in candidates.into_iter().zip(looked_at) {
            let (name, origin, path) = (candidate.name.clone(), candidate.origin, candidate.path.clone());
            let as_pinned = looked_at.is_ok();
            let unchanged = known.iter().find(|module| module.is(&candidate)).filter(|_| as_pinned);
            let must_compile = matches!(&looked_at, Ok(None)) && origin != Origin::Host;
            if cold == CompileMode::Later && unchanged.is_none() && as_pinned && origin != Origin::Host {
                // Later components wait as well, because the names of this one's tools aren't known yet.
                if self.later || must_compile {
                    self.later = true;
                    let reason = "it is not compiled yet; a server does that while it runs";
                    self.unused.push(UnusedModule::refused(&name, origin, &path, reason));
                    continue;
                }
            }
            let loaded = match unchanged {
                Some(module) => Ok(module.clone()),
                None => Module::load(&self.loader, candidate, looked_at).await.map(Arc::new),
            };
            let added = match loaded {
                Ok(module) if !may_run_any(&self.config, &module) => {
                    let reason = "it asks to run any program, and modules.any_program of the configuration doesn't name it";
                    let disabled = (name.as_str(), origin, path.as_path(), module.sha256.as_str());
                    self.unused.push(UnusedModule::disabled(disabled, reason));
                    continue;
                }
                Ok(module) => self.add(module).map_err(|conflict| conflict.to_string()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(reason) = added {
                self.unused.push(UnusedModule::refused(&name, origin, &path, reason));
            }
        }
        if self.unused.iter().any(|unused| !unused.disabled) {
            self.of = None;
        }
        self
    }

    /// Logs the modules that are not used.
    pub fn log_unused(&self) {
        for unused in self.unused.iter().filter(|unused| !unused.disabled) {
            tracing::error!(module = unused.name, reason = unused.reason, "a module is not used");
        }
    }

    /// The configuration that it was made by.
    pub fn config(&self) -> &Modules {
        &self.config
    }

    /// Whether a component waits to be compiled. [`Registry::reload`] compiles it.
    pub fn is_waiting(&self) -> bool {
        self.later
    }

    /// The conflicts of a module with those that are there. With `updates`, the module replaces the one of its own
    /// name, which is left out of the comparison.
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

    /// The modules that are not used, with the reasons.
    pub fn unused_modules(&self) -> &[UnusedModule] {
        &self.unused
    }

    /// The module that isn't used now and has a tool of this name, as far as the cache knows its description.
    pub fn unused_with(&self, tool: &str) -> Option<&UnusedModule> {
        self.unused.iter().find(|unused| {
            let known = self.loader.cache.known(&unused.sha256);
            known.is_some_and(|known| known.description.tools.iter().any(|own| own.name == tool))
        })
    }

    /// Each tool once, in the order of names.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.tools_with_modules().map(|(_, tool)| tool)
    }

    /// Each tool once, in the order of names, with the first module that has it.
    pub fn tools_with_modules(&self) -> impl Iterator<Item = (&Module, &Tool)> {
        self.tools.values().filter_map(|found| {
            let (module, index) = found.first()?;
            let module = &self.modules[*module];
            Some((&**module, &module.description.tools[*index]))
        })
    }

    /// The module that answers to a tool's name on a target.
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

    /// The tool with this name or alias, in whichever module.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        let found = self.tools.get(name).or_else(|| self.tools.get(self.aliases.get(name)?));
        let (module, index) = found?.first()?;
        Some(&self.modules[*module].description.tools[*index])
    }
}

/// The list of tools that was last kept, and the hash of what a registry of these directories would be made of now.
pub fn kept_list(
    cache: Option<PathBuf>,
    places: &ModuleDirectories,
    config: &Modules,
) -> Option<(Vec<u8>, String)> {
    Some((Cache::open(cache).list()?, made_of(&candidates(places, config).0, config)?))
}

/// Whether a module doesn't ask to run any program, or may.
fn may_run_any(config: &Modules, module: &Module) -> bool {
    module.granted().any_program.is_empty() || config.allows_any_program(&module.description.name)
}

/// A hash of all that decides which tools there are: this program, the pins, the configuration, and the files' metadata.
fn made_of(candidates: &[Candidate], config: &Modules) -> Option<String> {
    let any_program = &config.any_program;
    let program = std::env::current_exe().ok().and_then(|program| FileStamp::of(&program))?;
    let files =
        candidates.iter().map(|candidate| FileStamp::of(&candidate.path).filter(FileStamp::is_settled));
    let files = files.collect::<Option<Vec<_>>>()?;
    Some(hex::encode(Sha256::digest(format!("{program:?} {candidates:?} {files:?} {any_program:?}"))))
}

/// The names and aliases of a module's tools.
fn names(module: &Module) -> impl Iterator<Item = &str> {
    let tools = module.description.tools.iter();
    tools.flat_map(|tool| std::iter::once(&tool.name).chain(&tool.aliases.tool)).map(String::as_str)
}
