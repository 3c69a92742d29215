//! The modules that are there, and which of them answers to a tool's name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cache::Cache;
use super::description::Tool;
use super::engine::Lazy;
use super::module::{self, LoadError, Module};
use crate::target::Facts;

/// Every module, every tool.
pub struct Registry {
    modules: Vec<Arc<Module>>,
    refused: Vec<Refused>,
    /// Tool name to the modules that have it, with the tool's index in each.
    tools: BTreeMap<String, Vec<(usize, usize)>>,
}

/// A file that isn't used, and why.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The file's name without `.wasm`.
    pub name: String,
    /// For the operator.
    pub reason: String,
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

impl Registry {
    /// Loads every `*.wasm` of a directory. A file that can't be used takes nothing else with it.
    pub async fn load(directory: Option<&Path>, cache: Option<PathBuf>) -> anyhow::Result<Self> {
        let mut registry = Self { modules: Vec::new(), refused: Vec::new(), tools: BTreeMap::new() };
        let files = directory.map(components).transpose()?.unwrap_or_default();
        let engine = Arc::new(Lazy::default());
        let cache = Arc::new(Cache::open(cache));
        for (path, sha256) in files.iter().zip(hashes(&files)) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let loaded = Module::load(&engine, &cache, path, sha256).await;
            if let Err(reason) =
                loaded.map_err(|error| error.to_string()).and_then(|module| registry.add(module))
            {
                tracing::error!(module = name, reason, "a module is not used");
                registry.refused.push(Refused { name, reason });
            }
        }
        Ok(registry)
    }

    fn add(&mut self, module: Module) -> Result<(), String> {
        if self.modules.iter().any(|other| other.description.name == module.description.name) {
            return Err(format!("there is another module named {}", module.description.name));
        }
        for tool in &module.description.tools {
            for (other, index) in self.tools.get(&tool.name).into_iter().flatten() {
                let other = &self.modules[*other].description;
                let theirs = &other.tools[*index];
                if !module.description.excludes(other) {
                    return Err(format!(
                        "module {} has a tool {} for the same targets",
                        other.name, tool.name
                    ));
                }
                if (&theirs.input_schema, theirs.shape, theirs.risk)
                    != (&tool.input_schema, tool.shape, tool.risk)
                {
                    return Err(format!(
                        "module {} has a tool {} that differs from this one",
                        other.name, tool.name
                    ));
                }
            }
        }
        let number = self.modules.len();
        for (index, tool) in module.description.tools.iter().enumerate() {
            self.tools.entry(tool.name.clone()).or_default().push((number, index));
        }
        self.modules.push(Arc::new(module));
        Ok(())
    }

    /// The modules, in the order of their files' names.
    pub fn modules(&self) -> &[Arc<Module>] {
        &self.modules
    }

    /// The files that aren't used.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
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

    /// The tool of this name, whichever module has it.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        let (module, index) = self.tools.get(name)?.first()?;
        Some(&self.modules[*module].description.tools[*index])
    }
}

/// Of all files at once: with a warm cache, hashing is nearly all of a start.
fn hashes(files: &[PathBuf]) -> Vec<Result<String, LoadError>> {
    std::thread::scope(|scope| {
        let hashing: Vec<_> = files.iter().map(|path| scope.spawn(|| module::hash(path))).collect();
        hashing
            .into_iter()
            .map(|thread| {
                thread.join().unwrap_or_else(|_| Err(std::io::Error::other("hashing it failed").into()))
            })
            .collect()
    })
}

fn components(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory)
        .map_err(|error| anyhow::anyhow!("the modules' directory {}: {error}", directory.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .collect();
    files.sort();
    Ok(files)
}
