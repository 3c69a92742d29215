//! The operator's commands for third parties' modules. None of them can be reached over MCP.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::config::{Disabled, Modules};
use super::description::Description;
use super::lock::{Editing, Entry, Lock, LockError};
use super::module::{self, LoadError, Loader, Module};
use super::registry::{CompileMode, Conflict, Registry};
use super::source::{Candidate, Found, ModuleDirectories, Origin, candidates};
use super::surface::Surface;
use host_base::sha256;
use host_capability::Requests;

/// The modules that are there, and the operator's means to change them.
pub struct ModuleInstaller {
    places: ModuleDirectories,
    loader: Arc<Loader>,
    /// The modules that a server would load now.
    pub registry: Registry,
}

/// A component that was examined.
pub struct Examined {
    module: Module,
    /// The address that the file was fetched from.
    address: Option<String>,
    /// The size in bytes.
    pub size: u64,
    /// The conflicts with modules that are there.
    pub conflicts: Vec<Conflict>,
}

impl Examined {
    /// The description that the component gives of itself.
    pub fn description(&self) -> &Description {
        &self.module.description
    }

    /// The SHA-256 of the component.
    pub fn sha256(&self) -> &str {
        &self.module.sha256
    }

    /// The component's file.
    pub fn path(&self) -> &Path {
        self.module.path()
    }

    /// The same, fetched from this address. An entry in `modules.lock` names the address in place of the file.
    pub fn fetched_from(self, address: String) -> Self {
        Self { address: Some(address), ..self }
    }

    /// Where the component comes from: the address that it was fetched from, or its file.
    pub fn shown_source(&self) -> String {
        self.address.clone().unwrap_or_else(|| self.path().display().to_string())
    }

    /// The contract that a component with these bytes was built against, such as `sysadmin:module@0.2.0`.
    pub fn contract(bytes: &[u8]) -> String {
        Surface::read(bytes).ok().and_then(|surface| surface.contract()).unwrap_or_default()
    }

    /// The component's bytes, which are those that were examined.
    pub fn bytes(&self) -> Result<Vec<u8>, InstallError> {
        match self.module.bytes() {
            Ok(bytes) => Ok(bytes.to_vec()),
            Err(error) => {
                Err(InstallError::Refused { path: self.shown_source().into(), reason: error.to_string() })
            }
        }
    }
}

/// The result of comparing a component with its pin.
pub struct Verified {
    /// The module's name, or the file's.
    pub name: String,
    /// The origin of the module.
    pub origin: Origin,
    /// The path where the component is or should be.
    pub path: PathBuf,
    /// The reason why it isn't the pinned component. None where it is.
    pub fault: Option<String>,
}

/// The reason why a command of the operator failed. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The component is no module that this host can use.
    #[error("{} is refused: {reason}", path.display())]
    Refused {
        /// The component's file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// There is no module with this name.
    #[error("there is no module named {0}; `linux-sysadmin modules list` shows those that are there")]
    Unknown(String),
    /// The module belongs to the whole system, and the account isn't root.
    #[error("{0} was added for the whole system, so only root can change it: run this with sudo")]
    Roots(String),
    /// `modules.lock` can't be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The account has no home directory.
    #[error("neither XDG_DATA_HOME nor HOME says where this account's modules are")]
    Nowhere,
    /// Another process has changed the module meanwhile.
    #[error("{0} was changed meanwhile; nothing was done, so look at it again")]
    Meanwhile(String),
    /// The module comes with the program.
    #[error("{0} comes with the program and can't be removed; `linux-sysadmin modules disable {0}`")]
    Hosts(String),
    /// The change affects every account, and this one isn't root.
    #[error("only root changes what holds for everyone: run this with sudo")]
    System,
    /// The directory for compiled code that all accounts share can't be used.
    #[error("{} can't be used: {source}", directory.display())]
    Shared {
        /// The directory.
        directory: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The terminal gave no answer.
    #[error("the question could not be asked ({0}); nothing was changed")]
    NotAsked(String),
    /// What lies outside this machine can't be fetched or published.
    #[error("{address}: {reason}")]
    Elsewhere {
        /// Where it lies.
        address: String,
        /// The reason.
        reason: String,
    },
    /// A copy of a component can't be made.
    #[error("{} is not written: {reason}", path.display())]
    NotExported {
        /// The file that should have been made.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The configuration or another lock disables the module as well.
    #[error("{0} stays disabled: {1}")]
    StillDisabled(String, String),
}

impl ModuleInstaller {
    /// Loads the modules that are there.
    pub async fn open(places: ModuleDirectories, config: &Modules, cold: CompileMode) -> Self {
        let loader = Arc::new(Loader::new(config, host_base::directories::cache()));
        let registry = Registry::with(loader.clone(), &places, config, cold).await;
        Self { places, loader, registry }
    }

    /// Examines a component: compiles it in a process of its own, and has it describe itself without any access.
    pub async fn examine(&self, path: &Path, updates: bool) -> Result<Examined, InstallError> {
        let refused = |reason: String| InstallError::Refused { path: path.to_owned(), reason };
        let sha256 = module::hash(path).map_err(|error| refused(error.to_string()))?;
        let name = path.display().to_string();
        let (path, origin) = (path.to_owned(), Origin::User);
        let size = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let candidate = Candidate { name, origin, path, sha256, entry: None };
        // The component describes itself again, whatever the cache holds, because somebody decides by the result.
        let module = Module::load(&self.loader, candidate, Ok(None)).await;
        let module = module.map_err(|error: LoadError| refused(error.to_string()))?;
        let conflicts = self.registry.conflicts(&module, updates);
        Ok(Examined { module, address: None, size, conflicts })
    }

    /// Forgets the compiled code of an examined component, unless a module with the same bytes is installed.
    pub fn forget(&self, examined: &Examined) {
        self.forget_bytes(examined.sha256());
    }

    fn forget_bytes(&self, sha256: &str) {
        if !Found::at(&self.places).candidates.iter().any(|candidate| candidate.sha256 == sha256) {
            self.loader.cache.forget(sha256);
        }
    }

    /// The directory of the account's own modules, or of the system's.
    fn directory(&self, origin: Origin) -> Result<&Path, InstallError> {
        match origin {
            Origin::User => self.places.user.as_deref().ok_or(InstallError::Nowhere),
            Origin::System | Origin::Host => Ok(&self.places.system),
        }
    }

    /// The same for a change. Only root changes the system's directory.
    fn editable(&self, origin: Origin) -> Result<&Path, InstallError> {
        match origin {
            Origin::System if !rustix::process::geteuid().is_root() => Err(InstallError::System),
            _ => self.directory(origin),
        }
    }

    /// The file of a third party's module, whether the module is used or not.
    pub fn installed_file(&self, name: &str) -> Result<Option<PathBuf>, InstallError> {
        match self.entry(name)? {
            Some((origin, entry)) => Ok(Some(self.directory(origin)?.join(entry.file()))),
            None => Ok(None),
        }
    }

    /// The entry of a third party's module, and whose it is.
    pub fn entry(&self, name: &str) -> Result<Option<(Origin, Entry)>, InstallError> {
        let mut locks = self.places.locked().collect::<Vec<_>>();
        // The account's own entry comes first, because the account can change it.
        locks.reverse();
        for (origin, directory) in locks {
            if let Some(entry) = Lock::read(directory, origin.owner())?.entry(name) {
                return Ok(Some((origin, entry.clone())));
            }
        }
        Ok(None)
    }

    /// Pins a component with its grants. It replaces `before`, the entry that was there when the component was
    /// examined.
    pub fn install(
        &self,
        origin: Origin,
        examined: &Examined,
        before: Option<&Entry>,
        grants: Requests,
        replaces: Vec<String>,
    ) -> Result<(), InstallError> {
        let description = examined.description();
        let refused = |reason: String| InstallError::Refused { path: examined.shown_source().into(), reason };
        // These must be the bytes that were examined.
        let bytes = examined.module.bytes().map_err(|error| refused(error.to_string()))?;
        let source = examined.address.clone().unwrap_or_else(|| {
            let path = std::path::absolute(examined.module.path());
            path.unwrap_or_else(|_| examined.module.path().to_owned()).display().to_string()
        });
        let entry = Entry {
            name: description.name.clone(),
            version: description.version.clone(),
            source,
            sha256: examined.sha256().to_owned(),
            description: description.sha256.clone(),
            enabled: before.is_none_or(|before| before.enabled),
            replaces,
            grants,
        };
        let mut editing = Editing::begin(self.editable(origin)?, origin.owner())?;
        if editing.lock.entry(&entry.name) != before {
            return Err(InstallError::Meanwhile(entry.name));
        }
        editing.put(&entry, &bytes)?;
        let before = before.map(|before| before.sha256.clone());
        editing.lock.modules.retain(|other| other.name != entry.name);
        editing.lock.modules.push(entry);
        editing.commit()?;
        before.iter().for_each(|sha256| self.forget_bytes(sha256));
        Ok(())
    }

    /// Copies a third party's component to a new file, and gives its entry. The bytes are the pinned ones.
    pub fn export(&self, name: &str, to: &Path) -> Result<Entry, InstallError> {
        let failed = |reason: String| InstallError::NotExported { path: to.to_owned(), reason };
        let Some((origin, entry)) = self.entry(name)? else {
            return Err(match self.is_hosts(name) {
                true => failed(format!("{name} comes with the program, which brings it to every machine")),
                false => self.unknown(name),
            });
        };
        let path = self.directory(origin)?.join(entry.file());
        let (name, sha256) = (entry.name.clone(), entry.sha256.clone());
        let candidate = Candidate { name, origin, path, sha256, entry: None };
        let refused = |reason: String| InstallError::Refused { path: candidate.path.clone(), reason };
        module::verify(&candidate).map_err(|error| refused(error.to_string()))?;
        let bytes = std::fs::read(&candidate.path).map_err(|error| refused(error.to_string()))?;
        if sha256::of(&bytes) != candidate.sha256 {
            return Err(InstallError::Meanwhile(candidate.name));
        }
        // Nothing that is there is overwritten, and nothing incomplete stays.
        let mut file = File::create_new(to).map_err(|error| failed(error.to_string()))?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(|error| {
            let _ = std::fs::remove_file(to);
            failed(error.to_string())
        })?;
        Ok(entry)
    }

    /// Removes a third party's module.
    pub fn remove(&self, name: &str) -> Result<(), InstallError> {
        let (mut editing, sha256) = self.edit(name)?;
        editing.lock.modules.retain(|entry| entry.name != name);
        editing.commit()?;
        self.forget_bytes(&sha256);
        Ok(())
    }

    /// Disables a module by its name, or every component with these bytes.
    pub fn disable(&self, wanted: &Disabled, origin: Origin) -> Result<(), InstallError> {
        let name = wanted.to_string();
        let means = |candidate: &Candidate| wanted.names(&candidate.name, &candidate.sha256);
        let found: Vec<Candidate> = Found::at(&self.places).candidates.into_iter().filter(means).collect();
        if found.is_empty() && !name.starts_with("sha256:") {
            return Err(self.unknown(&name));
        }
        let mut editing = Editing::begin(self.editable(origin)?, origin.owner())?;
        let mut left = found.iter().filter(|candidate| candidate.origin != origin).count();
        for entry in editing.lock.modules.iter_mut().filter(|entry| wanted.names(&entry.name, &entry.sha256))
        {
            entry.enabled = false;
        }
        // The lock also names bytes wherever they lie, and a name that modules of other origins have.
        left += usize::from(name.starts_with("sha256:"));
        if left > 0 && !editing.lock.disabled.contains(wanted) {
            editing.lock.disabled.push(wanted.clone());
        }
        Ok(editing.commit()?)
    }

    /// Undoes [`ModuleInstaller::disable`].
    pub fn enable(&self, wanted: &Disabled, origin: Origin) -> Result<(), InstallError> {
        let name = wanted.to_string();
        let directory = self.editable(origin)?;
        let is_entrys = |entry: &Entry| wanted.names(&entry.name, &entry.sha256);
        let lock = Lock::read(directory, origin.owner())?;
        let is_known = lock.disabled.contains(wanted) || lock.modules.iter().any(is_entrys);
        if is_known {
            let mut editing = Editing::begin(directory, origin.owner())?;
            editing.lock.disabled.retain(|other| other != wanted);
            let entries = editing.lock.modules.iter_mut();
            entries.filter(|entry| is_entrys(entry)).for_each(|entry| entry.enabled = true);
            editing.commit()?;
        }
        let (candidates, unused) = candidates(&self.places, self.registry.config());
        let is_it = |candidate: &Candidate| wanted.names(&candidate.name, &candidate.sha256);
        match unused.into_iter().find(|unused| unused.disabled && unused.name == name) {
            Some(unused) => Err(InstallError::StillDisabled(name, unused.reason)),
            None if is_known || candidates.iter().any(is_it) => Ok(()),
            None => Err(self.unknown(&name)),
        }
    }

    /// The error for a name that no module has, or whose lock can't be read.
    fn unknown(&self, name: &str) -> InstallError {
        match self.places.locked().find_map(|(origin, directory)| Lock::read(directory, origin.owner()).err())
        {
            Some(error) => error.into(),
            None => InstallError::Unknown(name.to_owned()),
        }
    }

    /// Compares every component with its pin, including disabled ones, and lists components without a pin.
    pub fn verify(&self) -> Vec<Verified> {
        let found = Found::at(&self.places);
        let pinned = found.candidates.into_iter().map(|candidate| {
            let fault = module::verify(&candidate).err().map(|error| error.to_string());
            Verified { name: candidate.name, origin: candidate.origin, path: candidate.path, fault }
        });
        let unpinned = found.unused.into_iter().map(|unused| Verified {
            name: unused.name,
            origin: unused.origin,
            path: unused.path,
            fault: Some(unused.reason),
        });
        pinned.chain(unpinned).collect()
    }

    /// Does the same as [`ModuleInstaller::verify`], and compiles each component again to compare the code in the
    /// cache.
    pub async fn verify_compiled(&self) -> Vec<Verified> {
        let candidates = Found::at(&self.places).candidates;
        let mut all = self.verify();
        for verified in all.iter_mut().filter(|verified| verified.fault.is_none()) {
            let candidate = candidates.iter().find(|candidate| candidate.path == verified.path);
            if let Some(candidate) = candidate {
                verified.fault = self.loader.compares(candidate).await.err().map(|error| error.to_string());
            }
        }
        all
    }

    /// The reason why a module isn't used after a change. None where it is.
    pub async fn unused(&self, name: &str) -> Option<String> {
        let registry = self.registry.reload(&self.places, self.registry.config()).await;
        registry
            .unused_modules()
            .iter()
            .find(|unused| unused.name == name)
            .map(|unused| unused.reason.clone())
    }

    /// Whether a module's component is the pinned one.
    pub fn is_as_pinned(&self, name: &str) -> bool {
        let faulty = |verified: &Verified| verified.name == name && verified.fault.is_some();
        !self.verify().iter().any(faulty)
    }

    /// Whether a module of this name comes with the program.
    fn is_hosts(&self, name: &str) -> bool {
        let is_it = |candidate: &Candidate| candidate.origin == Origin::Host && candidate.name == name;
        Found::at(&self.places).candidates.iter().any(is_it)
    }

    /// Opens the lock that has this module, for a change.
    fn edit(&self, name: &str) -> Result<(Editing, String), InstallError> {
        let Some((origin, entry)) = self.entry(name)? else {
            return Err(match self.is_hosts(name) {
                true => InstallError::Hosts(name.to_owned()),
                false => InstallError::Unknown(name.to_owned()),
            });
        };
        if origin == Origin::System && !rustix::process::geteuid().is_root() {
            return Err(InstallError::Roots(name.to_owned()));
        }
        Ok((Editing::begin(self.directory(origin)?, origin.owner())?, entry.sha256))
    }
}
