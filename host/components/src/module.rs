//! A module: its description, its code, and its calls, each in a store of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZero;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use memmap2::MmapMut;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use super::bindings::exports::sysadmin::module::tools;
use super::cache::{Cache, CachedDescription, FileStamp, compiled};
use super::compile::{self, CompileError};
use super::config::{ConfiguredPaths, Modules};
use super::description::{Description, DescriptionError, Tool};
use super::engine::{LazyEngine, Shared};
use super::guest::Guest;
use super::idle::{Slot, Slots};
use super::instance;
use super::limits::ExceededLimit;
use super::lock::Entry;
use super::source::{Candidate, Origin};
use super::store::CallContext;
use super::surface::{Contract, Surface, SurfaceError, check_imports};
use super::{CONTRACT, convert, trap};
use host_base::problem::{Category, Problem};
use host_base::sha256;
use host_capability::{Grants, Requests};

/// The number of bytes of the largest component. A Python guest has 18 MiB.
pub const LARGEST: u64 = 128 << 20;
/// The time for a description. A module that takes longer waits for something.
const DESCRIBE: Duration = Duration::from_secs(5);
/// The number of bytes of a tool's whole answer.
const LARGEST_REPLY: usize = 8 << 20;
/// The number of values in an answer. A value may take two bytes as text, and about a hundred when it is parsed.
const MOST_VALUES: usize = 500_000;

/// The answer of a tool.
pub struct Reply {
    /// The data, as JSON text.
    pub data: String,
    /// The number of rows before limit and filter, where the module applied them.
    pub total: Option<u64>,
    /// The summary of an analysis.
    pub summary: Option<String>,
    /// The severity of an analysis.
    pub severity: Option<String>,
    /// Notes for the caller.
    pub notes: Vec<String>,
}

/// A component that may be called.
pub struct Module {
    /// The description that the component gave of itself.
    pub description: Description,
    /// The SHA-256 of the component.
    pub sha256: String,
    /// The origin of the module.
    pub origin: Origin,
    path: PathBuf,
    /// The names of the interfaces of the contract that it imports.
    interfaces: Vec<String>,
    /// The entry in `modules.lock`. None for the host's own modules.
    entry: Option<Entry>,
    loader: Arc<Loader>,
    ready: Arc<Slot<Ready>>,
    /// Held while the code is loaded, so that other calls wait for it.
    loading: tokio::sync::Mutex<()>,
    /// True once the component itself has given the description. Its bytes are the same at each load, so it isn't asked again.
    is_confirmed: AtomicBool,
    /// True once the component has given another description than this one.
    is_disowned: AtomicBool,
}

/// The code and the grants of a component whose bytes and description have been checked.
struct Ready {
    code: Guest,
    grants: Arc<Grants>,
}

impl Ready {
    fn new(
        code: Guest,
        description: &Description,
        entry: Option<&Entry>,
        paths: Option<&ConfiguredPaths>,
    ) -> Result<Self, LoadError> {
        let grants = Arc::new(description.grants(entry.map(|entry| &entry.grants), paths)?);
        Ok(Self { code, grants })
    }
}

/// The time at which a file's bytes are compared with their pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bytes {
    /// The bytes are always read.
    Read,
    /// The bytes are not read where the file's metadata haven't changed. They are read before any of the code runs.
    AsKept,
}

/// Loads components.
#[derive(Default)]
pub(super) struct Loader {
    pub(super) engine: LazyEngine,
    pub(super) cache: Cache,
    /// The paths that the configuration gives to modules, by their names.
    paths: BTreeMap<String, ConfiguredPaths>,
    slots: Slots<Ready>,
}

impl Loader {
    /// A loader with this configuration, and with a cache in this directory.
    pub(super) fn new(config: &Modules, cache: Option<PathBuf>) -> Self {
        Self::with_cache(config, Cache::open(cache))
    }

    /// A loader with this configuration and this cache.
    pub(super) fn with_cache(config: &Modules, cache: Cache) -> Self {
        let engine = LazyEngine::new(config.limits.clone());
        Self { engine, cache, paths: config.paths.clone(), slots: Slots::default() }
    }
}

/// The reason why a file can't be used as a module.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error("the WebAssembly engine can't start: {0:#}")]
    Engine(wasmtime::Error),
    #[error("it can't be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is larger than {LARGEST} bytes")]
    TooLarge,
    #[error(
        "the SHA-256 of its bytes is {found}, and it should be {expected}: somebody has changed the file, so it is \
         not loaded"
    )]
    Pin { expected: String, found: String },
    #[error(
        "its compiled code in the cache isn't what compiling it makes: somebody has changed the cache; remove the entries \
         that begin with its SHA-256"
    )]
    Compiled,
    #[error(transparent)]
    Surface(#[from] SurfaceError),
    #[error("it is not a component that this host can compile: {0:#}")]
    NotAComponent(wasmtime::Error),
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error("it doesn't fit the contract {CONTRACT}: {0:#}")]
    Contract(wasmtime::Error),
    #[error("it failed while it described itself: {0:#}")]
    Describe(wasmtime::Error),
    #[error("it was stopped while it described itself: {0}")]
    DescribeLimit(ExceededLimit),
    #[error("it took longer than {} s to describe itself", DESCRIBE.as_secs())]
    DescribeTime,
    #[error("it describes itself differently when it is asked again, so nothing that it says can be pinned")]
    Fickle,
    #[error("it describes itself differently from when it was added")]
    Described,
    #[error(
        "it describes itself differently from its description in the cache; the host makes that anew, so call it again"
    )]
    Kept,
    #[error("it says that its name is {0:?}, and it was added under another")]
    Name(String),
    #[error(transparent)]
    Description(#[from] DescriptionError),
}

impl Loader {
    /// Compares these files with their pins, and looks up their kept descriptions unless they are in use already. It
    /// works on as many files at a time as there are processors.
    pub(super) fn look_at_all(
        &self,
        candidates: &[Candidate],
        in_use: &[Arc<Module>],
        bytes: Bytes,
    ) -> Vec<Result<Option<Description>, LoadError>> {
        let is_in_use = |candidate: &Candidate| in_use.iter().any(|module| module.is(candidate));
        let look_at = |candidate: &Candidate| match is_in_use(candidate) {
            true => verify(candidate).map(|()| None),
            false => self.look_at(candidate, bytes),
        };
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let share = candidates.len().div_ceil(processors).max(1);
        std::thread::scope(|scope| {
            let mut shares = candidates.chunks(share).map(|share| share.iter().map(look_at));
            let first = shares.next();
            let others: Vec<_> = shares.map(|share| scope.spawn(|| share.collect::<Vec<_>>())).collect();
            let mut all: Vec<_> = first.into_iter().flatten().collect();
            for looking in others {
                all.extend(looking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            all
        })
    }

    fn look_at(&self, candidate: &Candidate, bytes: Bytes) -> Result<Option<Description>, LoadError> {
        let known = self.cache.known(&candidate.sha256);
        let stamp = FileStamp::of(&candidate.path);
        let is_known = known.as_ref().is_some_and(|known| known.file.is_some() && known.file == stamp);
        if !is_known || bytes == Bytes::Read {
            verify(candidate)?;
        }
        let Some(mut known) = known else { return Ok(None) };
        let is_same = || stamp == FileStamp::of(&candidate.path);
        if !is_known && stamp.as_ref().is_some_and(FileStamp::is_settled) && is_same() {
            known.file = stamp;
            self.cache.keep_known(&known, &candidate.sha256);
        }
        Ok(Some(known.description))
    }

    /// Has the component of a file describe itself. The result also has the code.
    async fn describe(&self, source: &Source<'_>) -> Result<(Description, Guest), LoadError> {
        let shared = self.engine.get().map_err(LoadError::Engine)?;
        let (guest, imports) = self.load(source).await?;
        let description = describe(shared, &guest, imports).await?;
        Ok((description, guest))
    }

    /// The code of a file, whose bytes are compared with their pin, and what it imports.
    async fn load(&self, source: &Source<'_>) -> Result<(Guest, Vec<String>), LoadError> {
        let bytes = tokio::task::block_in_place(|| source.read())?;
        let surface = Surface::read(&bytes)?;
        let contract = surface.check(source.origin.world())?;
        Ok((self.prepare(source, &bytes, contract).await?, surface.imports))
    }

    /// The code of these bytes, ready to be called. It comes from the cache, or is compiled now.
    async fn prepare(
        &self,
        source: &Source<'_>,
        bytes: &[u8],
        contract: Contract,
    ) -> Result<Guest, LoadError> {
        let shared = self.engine.get().map_err(LoadError::Engine)?;
        let (sha256, compatibility) = (source.sha256, shared.compatibility());
        let kept = || self.cache.code(&shared.engine, sha256, &compatibility);
        let component = match tokio::task::block_in_place(kept) {
            Some(component) => component,
            None => {
                let code = self.compile(source.origin, bytes).await?;
                self.cache.keep_code(&code, sha256, &compatibility);
                match tokio::task::block_in_place(kept) {
                    Some(component) => component,
                    None => compiled(&shared.engine, &code).map_err(LoadError::NotAComponent)?,
                }
            }
        };
        let linker = shared.linker().map_err(LoadError::Engine)?;
        let pre = linker.instantiate_pre(&component).map_err(LoadError::Contract)?;
        Guest::new(pre, contract).map_err(LoadError::Contract)
    }

    async fn compile(&self, origin: Origin, bytes: &[u8]) -> Result<Vec<u8>, LoadError> {
        let shared = self.engine.get().map_err(LoadError::Engine)?;
        match origin {
            Origin::Host => tokio::task::block_in_place(|| shared.engine.precompile_component(bytes))
                .map_err(LoadError::NotAComponent),
            Origin::System | Origin::User => Ok(compile::in_child(bytes, self.engine.limits()).await?),
        }
    }

    /// Compiles a component again, and compares the result with the code in the cache.
    pub(super) async fn compares(&self, candidate: &Candidate) -> Result<(), LoadError> {
        let Candidate { path, sha256, origin, .. } = candidate;
        let compatibility = self.engine.get().map_err(LoadError::Engine)?.compatibility();
        let Some(kept) = self.cache.kept_code(sha256, &compatibility) else { return Ok(()) };
        let mut bytes = Vec::new();
        open(path)?.read_to_end(&mut bytes)?;
        Source { path, sha256, origin: *origin }.check(hex::encode(sha256::digest(&bytes[..])?))?;
        match self.compile(*origin, &bytes).await? == kept {
            true => Ok(()),
            false => Err(LoadError::Compiled),
        }
    }
}

/// A component's file, with the hash that its bytes must have.
struct Source<'a> {
    path: &'a Path,
    sha256: &'a str,
    origin: Origin,
}

impl Source<'_> {
    /// Reads the bytes and compares them with the pin. They are in an anonymous mapping, which returns to the system at
    /// once. The allocator would keep so large a block, although most of it is dropped soon after.
    fn read(&self) -> Result<MmapMut, LoadError> {
        let mut file = open(self.path)?;
        let length = usize::try_from(file.get_ref().metadata()?.len()).map_err(io::Error::other)?;
        let mut bytes = MmapMut::map_anon(length)?;
        file.read_exact(&mut bytes)?;
        self.check(hex::encode(Sha256::digest(&bytes)))?;
        Ok(bytes)
    }

    fn check(&self, found: String) -> Result<(), LoadError> {
        match found == self.sha256 {
            true => Ok(()),
            false => Err(LoadError::Pin { expected: self.sha256.to_owned(), found }),
        }
    }
}

impl Module {
    /// Makes a module from a file that was looked at, by its kept description or by a new one.
    pub(super) async fn load(
        loader: &Arc<Loader>,
        candidate: Candidate,
        looked_at: Result<Option<Description>, LoadError>,
    ) -> Result<Self, LoadError> {
        let Candidate { path, sha256, origin, entry, .. } = candidate;
        let (description, ready) = match looked_at? {
            Some(description) => (description, None),
            None => {
                let source = Source { path: &path, sha256: &sha256, origin };
                let (description, code) = loader.describe(&source).await?;
                let paths = loader.paths.get(&description.name);
                let ready = Ready::new(code, &description, entry.as_ref(), paths)?;
                let known = CachedDescription { description, file: None };
                loader.cache.keep_known(&known, &sha256);
                (known.description, Some(ready))
            }
        };
        check_imports(&description.imports, origin.world())?;
        description.check_for(origin.world())?;
        if let Some(entry) = &entry {
            if entry.description != description.sha256 {
                return Err(LoadError::Described);
            }
            if entry.name != description.name {
                return Err(LoadError::Name(description.name));
            }
        }
        let slot = loader.slots.add();
        let is_confirmed = AtomicBool::new(ready.is_some());
        if let Some(ready) = ready {
            slot.put(ready, Instant::now());
        }
        Ok(Self {
            interfaces: interfaces(&description.imports),
            description,
            sha256,
            origin,
            path,
            entry,
            loader: loader.clone(),
            ready: slot,
            loading: tokio::sync::Mutex::default(),
            is_confirmed,
            is_disowned: AtomicBool::new(false),
        })
    }

    /// The component's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The size of the component's file in bytes.
    pub fn size(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    /// The component's bytes, compared with their pin.
    pub(super) fn bytes(&self) -> Result<MmapMut, LoadError> {
        Source { path: &self.path, sha256: &self.sha256, origin: self.origin }.read()
    }

    /// Whether this module was loaded from the same candidate, so that it needn't be loaded again.
    pub(super) fn is(&self, candidate: &Candidate) -> bool {
        self.sha256 == candidate.sha256
            && self.path == candidate.path
            && self.origin == candidate.origin
            && self.entry == candidate.entry
            && !self.is_disowned.load(Ordering::Relaxed)
    }

    /// Whether it replaces this tool of the host's own modules.
    pub(super) fn replaces(&self, tool: &str) -> bool {
        self.replaced().iter().any(|replaced| replaced == tool)
    }

    /// The tools of the host's own modules that it replaces.
    pub fn replaced(&self) -> &[String] {
        self.entry.as_ref().map_or(&[], |entry| &entry.replaces)
    }

    /// The grants of the module.
    pub async fn grants(&self) -> Result<Arc<Grants>, Problem> {
        Ok(self.ready().await?.grants.clone())
    }

    /// The requests that are granted.
    pub fn granted(&self) -> Requests {
        self.requests(true)
    }

    /// The requests that the operator declined.
    pub fn not_granted(&self) -> Requests {
        self.requests(false)
    }

    fn requests(&self, granted: bool) -> Requests {
        let accepted = self.entry.as_ref().map(|entry| &entry.grants);
        let mut requests = self.description.requests.read();
        requests.commands.retain(|asked| accepted.is_none_or(|all| all.commands.contains(asked)) == granted);
        requests.paths.retain(|asked| accepted.is_none_or(|all| all.paths.contains(asked)) == granted);
        if let Some(paths) = self.paths().filter(|_| granted) {
            paths.apply(&mut requests);
        }
        requests
            .any_program
            .retain(|asked| accepted.is_none_or(|all| all.any_program.contains(asked)) == granted);
        requests.signals.retain(|asked| accepted.is_none_or(|all| all.signals.contains(asked)) == granted);
        requests
            .own_programs
            .retain(|asked| accepted.is_none_or(|all| all.own_programs.contains(asked)) == granted);
        requests.tools.retain(|asked| accepted.is_none_or(|all| all.tools.contains(asked)) == granted);
        requests
    }

    /// The paths that the configuration gives to it in place of its own requests.
    fn paths(&self) -> Option<&ConfiguredPaths> {
        self.loader.paths.get(&self.description.name)
    }

    /// Whether the profiles that it asks for allow it to look at those services.
    pub fn learns(&self) -> bool {
        self.origin == Origin::Host && self.imports("knowledge")
    }

    /// Whether it imports an interface of this name.
    pub fn imports(&self, interface: &str) -> bool {
        self.interfaces.iter().any(|own| own == interface)
    }

    /// Calls a tool. Whatever the guest does, the result is a reply or a problem.
    pub async fn call(
        &self,
        tool: &Tool,
        arguments: String,
        context: (Option<u32>, Option<String>),
        call: CallContext,
    ) -> Result<Reply, Problem> {
        let wall_time = call.time_limits.of(tool.duration.wall_time());
        let ready = self.ready().await?;
        let shared = self.shared().map_err(|error| self.unavailable(&error))?;
        let _running = shared.running();
        let module: Arc<str> = self.description.name.as_str().into();
        let times = (tool.duration.guest_time(), wall_time);
        let mut store = instance::for_call(shared, times, &module, call)?;
        let (guest_time, clock) = (store.data().guest_time.clone(), store.data().clock.clone());
        let context = tools::Context { limit: context.0, filter: context.1 };
        let calling = ready.code.call(&mut store, &tool.name, &arguments, context);
        let called = tokio::select! {
            called = guest_time.counting(calling) => called,
            () = clock.has_run_out() => return Err(too_long(tool, wall_time)),
        };
        let answer = match called {
            Ok(answer) => answer,
            Err(trap) => return Err(trap::problem(&self.description.name, &trap, store.data())),
        };
        let reply = answer.map_err(|problem| store.data().answered(convert::problem_from_guest(problem)))?;
        check_size(&self.description.name, &reply.data)?;
        Ok(Reply {
            data: reply.data,
            total: reply.total,
            summary: reply.summary,
            severity: reply.severity,
            notes: reply.notes,
        })
    }

    /// The code and the grants. Before the first use, the file's bytes are compared with their pin, and the component's
    /// description with the kept one. Until then, no code of the module runs, and nothing is granted to it.
    async fn ready(&self) -> Result<Arc<Ready>, Problem> {
        if let Some(ready) = self.ready.get(Instant::now()) {
            return Ok(ready);
        }
        let _held = self.loading.lock().await;
        // Another call may have loaded it meanwhile.
        if let Some(ready) = self.ready.get(Instant::now()) {
            return Ok(ready);
        }
        let ready = self.prepare().await.map_err(|error| self.unavailable(&error))?;
        self.loader.slots.let_go_of_idle(Instant::now());
        Ok(self.ready.put(ready, Instant::now()))
    }

    async fn prepare(&self) -> Result<Ready, LoadError> {
        let source = Source { path: &self.path, sha256: &self.sha256, origin: self.origin };
        let ready = |code| Ready::new(code, &self.description, self.entry.as_ref(), self.paths());
        if self.is_confirmed.load(Ordering::Relaxed) {
            return ready(self.loader.load(&source).await?.0);
        }
        let (description, code) = self.loader.describe(&source).await?;
        if description == self.description {
            self.is_confirmed.store(true, Ordering::Relaxed);
            return ready(code);
        }
        self.is_disowned.store(true, Ordering::Relaxed);
        self.loader.cache.forget_known(&self.sha256);
        Err(LoadError::Kept)
    }

    fn shared(&self) -> Result<&Shared, LoadError> {
        self.loader.engine.get().map_err(LoadError::Engine)
    }

    fn unavailable(&self, error: &LoadError) -> Problem {
        let message = format!("module {} can't be loaded: {error}", self.description.name);
        Problem::new("MODULE_UNAVAILABLE", Category::Internal, message)
    }
}

/// The names of the contract's interfaces among the imports, which have the form `sysadmin:module/NAME@VERSION`.
fn interfaces(imports: &[String]) -> Vec<String> {
    let names =
        imports.iter().filter_map(|import| import.strip_prefix("sysadmin:module/")?.split('@').next());
    names.map(str::to_owned).collect()
}

/// Refuses an answer that would take too much memory once it is parsed.
fn check_size(module: &str, reply: &str) -> Result<(), Problem> {
    let values = reply.bytes().filter(|byte| b",[{".contains(byte)).count();
    if reply.len() <= LARGEST_REPLY && values <= MOST_VALUES {
        return Ok(());
    }
    let bytes = reply.len();
    let message = format!(
        "module {module} answered with {bytes} bytes and some {values} values; at most {LARGEST_REPLY} and \
         {MOST_VALUES} are taken"
    );
    Err(Problem::new("REPLY_TOO_LARGE", Category::Resource, message))
}

fn too_long(tool: &Tool, allowed: Duration) -> Problem {
    let (category, seconds) = (tool.duration.name(), allowed.as_secs_f64());
    let message =
        format!("{} took longer than {seconds} s (duration category {category}) and was stopped", tool.name);
    Problem::new("TOOL_TIMEOUT", Category::Timeout, message)
}

/// Compares a candidate's file with its pin.
pub(super) fn verify(candidate: &Candidate) -> Result<(), LoadError> {
    let Candidate { path, sha256, origin, .. } = candidate;
    Source { path, sha256, origin: *origin }.check(hash(path)?)
}

/// The SHA-256 of a file, which is read in pieces.
pub(super) fn hash(path: &Path) -> Result<String, LoadError> {
    Ok(hex::encode(sha256::digest(open(path)?)?))
}

/// Opens a regular file of a limited size. Reading a pipe or a device would never end.
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

/// Has a component describe itself twice. The description must be the same every time, because it is pinned.
async fn describe(shared: &Shared, guest: &Guest, imports: Vec<String>) -> Result<Description, LoadError> {
    let _running = shared.running();
    let mut store = instance::for_description(shared);
    let guest_time = store.data().guest_time.clone();
    let describing = guest_time.counting(guest.describe_twice(&mut store));
    let said = tokio::time::timeout(DESCRIBE, describing).await.map_err(|_| LoadError::DescribeTime)?;
    let [first, second] = said.map_err(|trap| match store.data().exceeded_limit(&trap) {
        Some(limit) => LoadError::DescribeLimit(limit),
        None => LoadError::Describe(trap),
    })?;
    match first.json == second.json {
        true => Ok(Description::new(first, imports)?),
        false => Err(LoadError::Fickle),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_bounded_in_bytes_and_in_values() {
        for (reply, fits) in [
            ("[]".to_owned(), true),
            (format!("\"{}\"", "x".repeat(LARGEST_REPLY - 2)), true),
            (format!("\"{}\"", "x".repeat(LARGEST_REPLY)), false),
            (format!("[{}0]", "0,".repeat(MOST_VALUES - 1)), true),
            (format!("[{}0]", "0,".repeat(MOST_VALUES)), false),
            (format!("{}{}", "[".repeat(MOST_VALUES + 1), "]".repeat(MOST_VALUES + 1)), false),
        ] {
            assert_eq!(check_size("test", &reply).is_ok(), fits, "{} bytes", reply.len());
        }
        assert_eq!(check_size("test", &"x".repeat(LARGEST_REPLY + 1)).unwrap_err().code, "REPLY_TOO_LARGE");
    }
}
