//! One module: found, described, and called, each call in a store of its own.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::OFlags;

use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;
use wasmtime::component::{Component, InstancePre};

use super::bindings::exports::sysadmin::module::tools;
use super::bindings::{SystemModule, SystemModulePre};
use super::cache::Cache;
use super::description::{Description, DescriptionError, Tool};
use super::engine::{Lazy, Shared};
use super::limits::Stopped;
use super::store::{self, CallContext, State};
use super::{CONTRACT, convert};
use crate::capability::Grants;
use crate::problem::{Category, Problem};
use crate::visible::excerpt;

/// The largest component that is read: a Python guest has 18 MiB.
const LARGEST: u64 = 128 << 20;
/// A description is data; a module that takes longer is waiting for something.
const DESCRIBE: Duration = Duration::from_secs(5);
/// A tool's whole answer.
const LARGEST_REPLY: usize = 8 << 20;

/// What a tool said.
pub struct Reply {
    /// JSON text.
    pub data: String,
    /// Before limit and filter, where the module applied them.
    pub total: Option<u64>,
    /// Of an analysis.
    pub summary: Option<String>,
    /// Of an analysis.
    pub severity: Option<String>,
    /// What the caller should know besides.
    pub notes: Vec<String>,
}

/// A component that may be called.
pub struct Module {
    /// What it said of itself.
    pub description: Description,
    /// Of its bytes.
    pub sha256: String,
    pub(super) path: PathBuf,
    grants: Arc<Grants>,
    engine: Arc<Lazy>,
    cache: Arc<Cache>,
    ready: OnceCell<SystemModulePre<State>>,
}

/// Why a file isn't a module.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error("the WebAssembly engine can't start: {0:#}")]
    Engine(wasmtime::Error),
    #[error("it can't be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is larger than {LARGEST} bytes")]
    TooLarge,
    #[error("it is not a component that this host can compile: {0:#}")]
    NotAComponent(wasmtime::Error),
    #[error("it speaks {theirs}, and this host speaks {CONTRACT}")]
    Contract { theirs: String },
    #[error("it imports {0}, which no module may have")]
    Import(String),
    #[error("it doesn't export what a module must: {0:#}")]
    Exports(wasmtime::Error),
    #[error("it failed while it described itself: {0:#}")]
    Describe(wasmtime::Error),
    #[error("it was stopped while it described itself: {0}")]
    DescribeLimit(Stopped),
    #[error("it took longer than {} s to describe itself", DESCRIBE.as_secs())]
    DescribeTime,
    #[error(transparent)]
    Description(#[from] DescriptionError),
}

impl Module {
    /// From a file with this SHA-256. Nothing is compiled where its description was kept.
    pub(super) async fn load(
        engine: &Arc<Lazy>,
        cache: &Arc<Cache>,
        path: &Path,
        sha256: Result<String, LoadError>,
    ) -> Result<Self, LoadError> {
        let sha256 = sha256?;
        let ready = OnceCell::new();
        let description = match cache.description(&sha256) {
            Some(description) => description,
            None => {
                let bytes = read(path, &sha256)?;
                let shared = engine.get().map_err(LoadError::Engine)?;
                let component = compile(shared, cache, &sha256, &bytes)?;
                let pre = link(shared, &component)?;
                let description = describe(shared, &component, &pre).await?;
                cache.keep_description(&description, &sha256);
                let _ = ready.set(pre);
                description
            }
        };
        let grants = Arc::new(description.grants()?);
        Ok(Self {
            description,
            sha256,
            path: path.to_owned(),
            grants,
            engine: engine.clone(),
            cache: cache.clone(),
            ready,
        })
    }

    /// What it may do.
    pub fn grants(&self) -> Arc<Grants> {
        self.grants.clone()
    }

    /// Whether it imports an interface of this name.
    pub fn imports(&self, interface: &str) -> bool {
        self.description.imports.iter().any(|import| {
            import.strip_prefix("sysadmin:module/").and_then(|rest| rest.split('@').next()) == Some(interface)
        })
    }

    /// Calls a tool. Whatever the guest does, what comes back is a reply or a problem.
    pub async fn call(
        &self,
        tool: &Tool,
        arguments: String,
        context: (Option<u32>, Option<String>),
        call: CallContext,
    ) -> Result<Reply, Problem> {
        let wall_time = tool.duration.wall_time();
        let wall_time = call.ceiling.map_or(wall_time, |ceiling| ceiling.min(wall_time));
        let pre = self.ready.get_or_try_init(|| self.prepare()).await?;
        let shared = self.shared().map_err(|error| self.unavailable(&error))?;
        let _running = shared.running();
        let module: Arc<str> = self.description.name.as_str().into();
        let mut store = store::for_call(shared, tool.duration.guest_time(), &module, call);
        let guest_time = store.data().guest_time.clone();
        let context = tools::Context { limit: context.0, filter: context.1 };
        let calling = async {
            let instance = pre.instantiate_async(&mut store).await?;
            instance.sysadmin_module_tools().call_call(&mut store, &tool.name, &arguments, &context).await
        };
        let answer = match tokio::time::timeout(wall_time, guest_time.counting(calling)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(trap)) => return Err(self.stopped(&trap, store.data())),
            Err(_) => return Err(too_long(tool, wall_time)),
        };
        let reply = answer.map_err(convert::problem_from_guest)?;
        if reply.data.len() > LARGEST_REPLY {
            let message =
                format!("module {} answered with {} bytes", self.description.name, reply.data.len());
            return Err(Problem::new("REPLY_TOO_LARGE", Category::Resource, message));
        }
        Ok(Reply {
            data: reply.data,
            total: reply.total,
            summary: reply.summary,
            severity: reply.severity,
            notes: reply.notes,
        })
    }

    /// Loads the code: from the cache, or compiled from the very bytes that were hashed at the start.
    async fn prepare(&self) -> Result<SystemModulePre<State>, Problem> {
        let prepare = || {
            let shared = self.shared()?;
            let compatibility = shared.compatibility();
            let component = match self.cache.code(&shared.engine, &self.sha256, &compatibility) {
                Some(component) => component,
                None => {
                    let bytes = read(&self.path, &self.sha256)?;
                    compile(shared, &self.cache, &self.sha256, &bytes)?
                }
            };
            link(shared, &component)
        };
        tokio::task::block_in_place(prepare).map_err(|error| self.unavailable(&error))
    }

    fn shared(&self) -> Result<&Shared, LoadError> {
        self.engine.get().map_err(LoadError::Engine)
    }

    fn unavailable(&self, error: &LoadError) -> Problem {
        let message = format!("module {} can't be loaded: {error}", self.description.name);
        Problem::new("MODULE_UNAVAILABLE", Category::Internal, message)
    }

    fn stopped(&self, trap: &wasmtime::Error, state: &State) -> Problem {
        let name = &self.description.name;
        if let Some(problem) = trap.downcast_ref::<Problem>() {
            tracing::warn!(module = name, reason = problem.message, "a call was ended");
            return problem.clone();
        }
        if let Some(stopped) = state.stopped(trap) {
            tracing::warn!(module = name, %stopped, "a module was stopped");
            return stopped.problem(name);
        }
        tracing::warn!(module = name, trap = excerpt(&format!("{trap:#}"), 2000), "a module trapped");
        let reason = excerpt(&trap.root_cause().to_string(), 300);
        let message = format!("module {name} failed: {reason}");
        Problem::new("MODULE_TRAPPED", Category::Internal, message)
    }
}

fn too_long(tool: &Tool, allowed: Duration) -> Problem {
    let (category, seconds) = (tool.duration.name(), allowed.as_secs_f64());
    let message =
        format!("{} took longer than {seconds} s (duration category {category}) and was stopped", tool.name);
    Problem::new("TOOL_TIMEOUT", Category::Timeout, message)
}

/// The file's SHA-256, piece by piece: at a start with a warm cache nothing else of it is needed.
pub(super) fn hash(path: &Path) -> Result<String, LoadError> {
    let mut file = open(path)?;
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    while let count @ 1.. = file.read(&mut piece)? {
        hasher.update(&piece[..count]);
    }
    Ok(hex::encode(hasher.finalize()))
}

/// The bytes with this SHA-256, and no others: the file may have changed since it was hashed.
fn read(path: &Path, sha256: &str) -> Result<Vec<u8>, LoadError> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    if hex::encode(Sha256::digest(&bytes)) != sha256 {
        return Err(LoadError::Unreadable(io::Error::other("it has changed since the start")));
    }
    Ok(bytes)
}

/// A regular file of a sensible size: a pipe or a device by this name would never end.
fn open(path: &Path) -> Result<io::Take<File>, LoadError> {
    let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(LoadError::Unreadable(io::Error::other("it is not a regular file")));
    }
    if metadata.len() > LARGEST {
        return Err(LoadError::TooLarge);
    }
    Ok(file.take(LARGEST))
}

fn compile(shared: &Shared, cache: &Cache, sha256: &str, bytes: &[u8]) -> Result<Component, LoadError> {
    // Not `Component::new`, which would also take WebAssembly's text format.
    let component = Component::from_binary(&shared.engine, bytes).map_err(LoadError::NotAComponent)?;
    cache.keep_code(&component, sha256, &shared.compatibility());
    Ok(component)
}

fn imports(shared: &Shared, component: &Component) -> Vec<String> {
    component.component_type().imports(&shared.engine).map(|(name, _)| name.to_owned()).collect()
}

/// Checked by name first, so that the refusal says what it is about.
fn link(shared: &Shared, component: &Component) -> Result<SystemModulePre<State>, LoadError> {
    let (_, version) = CONTRACT.split_once('@').unwrap_or_default();
    for import in imports(shared, component) {
        let known = ["wasi:io/", "wasi:clocks/", "wasi:random/", "wasi:cli/", "wasi:filesystem/"];
        if let Some((_, theirs)) =
            import.strip_prefix("sysadmin:module/").and_then(|rest| rest.split_once('@'))
        {
            if theirs != version {
                return Err(LoadError::Contract { theirs: format!("sysadmin:module@{theirs}") });
            }
        } else if !known.iter().any(|prefix| import.starts_with(prefix)) {
            return Err(LoadError::Import(import));
        }
    }
    let exports = component.component_type();
    let exported: Vec<String> = exports.exports(&shared.engine).map(|(name, _)| name.to_owned()).collect();
    for export in exported {
        if let Some((_, theirs)) =
            export.strip_prefix("sysadmin:module/").and_then(|rest| rest.split_once('@'))
            && theirs != version
        {
            return Err(LoadError::Contract { theirs: format!("sysadmin:module@{theirs}") });
        }
    }
    let pre: InstancePre<State> =
        shared.linker.instantiate_pre(component).map_err(LoadError::NotAComponent)?;
    SystemModulePre::new(pre).map_err(LoadError::Exports)
}

async fn describe(
    shared: &Shared,
    component: &Component,
    pre: &SystemModulePre<State>,
) -> Result<Description, LoadError> {
    let _running = shared.running();
    let mut store = store::for_description(shared);
    let guest_time = store.data().guest_time.clone();
    let describing = async {
        let instance: SystemModule = pre.instantiate_async(&mut store).await?;
        instance.sysadmin_module_describe().call_describe(&mut store).await
    };
    let describing = guest_time.counting(describing);
    let said = tokio::time::timeout(DESCRIBE, describing).await.map_err(|_| LoadError::DescribeTime)?;
    let said = said.map_err(|trap| match store.data().stopped(&trap) {
        Some(stopped) => LoadError::DescribeLimit(stopped),
        None => LoadError::Describe(trap),
    })?;
    Ok(Description::new(said, imports(shared, component))?)
}
