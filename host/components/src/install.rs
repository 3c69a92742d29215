//! What an operator does with third parties' modules. Nothing of this can be reached over MCP.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cache::Cache;
use super::config::{Disabled, Modules};
use super::description::Description;
use super::engine::Lazy;
use super::lock::{Editing, Entry, Lock, LockError};
use super::module::{self, LoadError, Loader, Module};
use super::registry::{Cold, Conflict, Registry};
use super::source::{Candidate, Found, Origin, Places, candidates};
use host_capability::Requests;

/// The operator's view: what is there, and the means to change it.
pub struct Workshop {
    places: Places,
    loader: Arc<Loader>,
    /// What a server would load now.
    pub registry: Registry,
}

/// A component that could become a module, or that is one.
pub struct Examined {
    module: Module,
    /// Bytes.
    pub size: u64,
    /// Why it can't be used beside the modules that are there.
    pub conflicts: Vec<Conflict>,
}

impl Examined {
    /// What it says of itself.
    pub fn description(&self) -> &Description {
        &self.module.description
    }

    /// Of its bytes.
    pub fn sha256(&self) -> &str {
        &self.module.sha256
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        self.module.path()
    }
}

/// A component's bytes beside its pin.
pub struct Verified {
    /// The module's name, or the file's.
    pub name: String,
    /// Whose it is.
    pub origin: Origin,
    /// Where it is, or should be.
    pub path: PathBuf,
    /// Why it isn't what was pinned.
    pub fault: Option<String>,
}

/// Why something can't be done. Shown to the operator, so each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// It isn't a module that this host can use.
    #[error("{} is refused: {reason}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// No module has the name.
    #[error("there is no module named {0}; `linux-sysadmin modules list` shows those that are there")]
    Unknown(String),
    /// Somebody else's.
    #[error("{0} was added for the whole system, so only root can change it: run this with sudo")]
    Roots(String),
    /// The lock isn't what it should be.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// It has no home.
    #[error("neither XDG_DATA_HOME nor HOME says where this account's modules are")]
    Nowhere,
    /// Somebody else was faster.
    #[error("{0} was changed meanwhile; nothing was done, so look at it again")]
    Meanwhile(String),
    /// It comes with the program.
    #[error("{0} comes with the program and can't be removed; `linux-sysadmin modules disable {0}`")]
    Hosts(String),
    /// What every account uses.
    #[error("only root changes what holds for everyone: run this with sudo")]
    System,
    /// The terminal is gone.
    #[error("the question could not be asked ({0}); nothing was changed")]
    NotAsked(String),
    /// Other places than the lock say so as well.
    #[error("{0} stays disabled: {1}")]
    StillDisabled(String, String),
}

impl Workshop {
    /// Looks at what is there.
    pub async fn open(places: Places, config: &Modules, cold: Cold) -> Self {
        let cache = host_base::directories::cache();
        let loader = Loader::new(Lazy::new(config.limits.clone()), Cache::open(cache));
        let loader = Arc::new(loader);
        let registry = Registry::with(loader.clone(), &places, config, cold).await;
        Self { places, loader, registry }
    }

    /// What a component is and asks for. It is compiled in a process of its own, and asked to describe itself without
    /// being given anything.
    pub async fn examine(&self, path: &Path, updates: bool) -> Result<Examined, InstallError> {
        let refused = |reason: String| InstallError::Refused { path: path.to_owned(), reason };
        let sha256 = module::hash(path).map_err(|error| refused(error.to_string()))?;
        let name = path.display().to_string();
        let (path, origin) = (path.to_owned(), Origin::User);
        let size = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let candidate = Candidate { name, origin, path, sha256, entry: None };
        // By its own word, whatever is kept: somebody decides by it.
        let module = Module::load(&self.loader, candidate, Ok(None)).await;
        let module = module.map_err(|error: LoadError| refused(error.to_string()))?;
        let conflicts = self.registry.conflicts(&module, updates);
        Ok(Examined { module, size, conflicts })
    }

    /// Forgets what was compiled for a look, where no module of these bytes is there.
    pub fn forget(&self, examined: &Examined) {
        self.forget_bytes(examined.sha256());
    }

    fn forget_bytes(&self, sha256: &str) {
        if !Found::at(&self.places).candidates.iter().any(|candidate| candidate.sha256 == sha256) {
            self.loader.cache.forget(sha256);
        }
    }

    /// The directory of the account's own modules, or root's for everyone.
    fn directory(&self, origin: Origin) -> Result<&Path, InstallError> {
        match origin {
            Origin::User => self.places.user.as_deref().ok_or(InstallError::Nowhere),
            Origin::System | Origin::Host => Ok(&self.places.system),
        }
    }

    /// Root's directory is changed by root alone.
    fn editable(&self, origin: Origin) -> Result<&Path, InstallError> {
        match origin {
            Origin::System if !rustix::process::geteuid().is_root() => Err(InstallError::System),
            _ => self.directory(origin),
        }
    }

    /// The component of a third party's module, used or not.
    pub fn installed_file(&self, name: &str) -> Result<Option<PathBuf>, InstallError> {
        match self.entry(name)? {
            Some((origin, entry)) => Ok(Some(self.directory(origin)?.join(entry.file()))),
            None => Ok(None),
        }
    }

    /// Where a third party's module of this name is recorded, and as what.
    pub fn entry(&self, name: &str) -> Result<Option<(Origin, Entry)>, InstallError> {
        let mut locks = self.places.locked().collect::<Vec<_>>();
        // The account's own first: that is the one it can change.
        locks.reverse();
        for (origin, directory) in locks {
            if let Some(entry) = Lock::read(directory, origin.owner())?.entry(name) {
                return Ok(Some((origin, entry.clone())));
            }
        }
        Ok(None)
    }

    /// Pins a component, with what it may do, in the place of what was there when it was looked at.
    pub fn install(
        &self,
        origin: Origin,
        examined: &Examined,
        before: Option<&Entry>,
        grants: Requests,
        replaces: Vec<String>,
    ) -> Result<(), InstallError> {
        let description = examined.description();
        let refused =
            |reason: String| InstallError::Refused { path: examined.module.path().to_owned(), reason };
        // The bytes that were examined, and no others.
        let bytes = examined.module.bytes().map_err(|error| refused(error.to_string()))?;
        let source = std::path::absolute(examined.module.path());
        let source = source.unwrap_or_else(|_| examined.module.path().to_owned());
        let entry = Entry {
            name: description.name.clone(),
            version: description.version.clone(),
            source: source.display().to_string(),
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

    /// Takes a third party's module away.
    pub fn remove(&self, name: &str) -> Result<(), InstallError> {
        let (mut editing, sha256) = self.edit(name)?;
        editing.lock.modules.retain(|entry| entry.name != name);
        editing.commit()?;
        self.forget_bytes(&sha256);
        Ok(())
    }

    /// Has a module, or whatever has these bytes, never loaded.
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
        // Bytes wherever they lie, and a name that others have as well.
        left += usize::from(name.starts_with("sha256:"));
        if left > 0 && !editing.lock.disabled.contains(wanted) {
            editing.lock.disabled.push(wanted.clone());
        }
        Ok(editing.commit()?)
    }

    /// Undoes what [`Workshop::disable`] did.
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
        let (candidates, absent) = candidates(&self.places, self.registry.config());
        let is_it = |candidate: &Candidate| wanted.names(&candidate.name, &candidate.sha256);
        match absent.into_iter().find(|absent| absent.disabled && absent.name == name) {
            Some(absent) => Err(InstallError::StillDisabled(name, absent.reason)),
            None if is_known || candidates.iter().any(is_it) => Ok(()),
            None => Err(self.unknown(&name)),
        }
    }

    /// Why there is nothing of this name to be changed.
    fn unknown(&self, name: &str) -> InstallError {
        match self.places.locked().find_map(|(origin, directory)| Lock::read(directory, origin.owner()).err())
        {
            Some(error) => error.into(),
            None => InstallError::Unknown(name.to_owned()),
        }
    }

    /// Every component's bytes beside its pin, disabled ones too, and every component without a pin.
    pub fn verify(&self) -> Vec<Verified> {
        let found = Found::at(&self.places);
        let pinned = found.candidates.into_iter().map(|candidate| {
            let fault = module::verify(&candidate).err().map(|error| error.to_string());
            Verified { name: candidate.name, origin: candidate.origin, path: candidate.path, fault }
        });
        let unpinned = found.absent.into_iter().map(|absent| Verified {
            name: absent.name,
            origin: absent.origin,
            path: absent.path,
            fault: Some(absent.reason),
        });
        pinned.chain(unpinned).collect()
    }

    /// [`Workshop::verify`], and each component compiled anew: what is kept of it has to be the same.
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

    /// What is used now, after a change: why a module isn't, if it isn't.
    pub async fn unused(&self, name: &str) -> Option<String> {
        let registry = self.registry.reload(&self.places, self.registry.config()).await;
        registry.absent().iter().find(|absent| absent.name == name).map(|absent| absent.reason.clone())
    }

    /// Whether a module's component is what was pinned.
    pub fn is_as_pinned(&self, name: &str) -> bool {
        let faulty = |verified: &Verified| verified.name == name && verified.fault.is_some();
        !self.verify().iter().any(faulty)
    }

    /// Begins to change the lock that has this module.
    fn edit(&self, name: &str) -> Result<(Editing, String), InstallError> {
        let Some((origin, entry)) = self.entry(name)? else {
            let is_hosts = |candidate: &Candidate| candidate.origin == Origin::Host && candidate.name == name;
            return Err(match Found::at(&self.places).candidates.iter().any(is_hosts) {
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
