//! The machines that a server works on: each by its name, with a connection, facts and a turn of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::Config;
use host_base::problem::{Category, Problem};
use host_inventory::{Allowed, Inventory, InventoryError};
use host_openssh::Alias;
use host_target::{Given, LookedFor, Overrides, Place, Settings, Target};
use host_text::visible::excerpt;

/// This machine, as callers name it.
pub const HERE: &str = "localhost";

/// Hosts of one call.
const MOST: usize = 1000;
/// The same of a call that changes something: each keeps its plan, with all that this holds, until its turn.
const MOST_CHANGED: usize = 100;
/// Hosts that are known by their own name, and those reached otherwise.
const MOST_KNOWN: usize = 10_000;
/// Characters of a name in a message.
const SHOWN: usize = 80;

/// All of them.
pub struct Targets {
    settings: Settings,
    /// Whether this machine may be worked on.
    is_local_allowed: bool,
    here: Arc<Target>,
    /// Where calls work that name none, unless their client is connected elsewhere.
    usual: Arc<Target>,
    hosts: Hosts,
    known: Mutex<BTreeMap<String, Arc<Target>>>,
    session: Mutex<Session>,
}

/// Of a client whose connection is a session: what it has chosen, and what it has used.
#[derive(Default)]
struct Session {
    current: Option<Arc<Target>>,
    /// Every host that was the current one.
    connected: BTreeSet<String>,
    used: BTreeSet<String>,
}

impl Session {
    /// Where calls work that name no host, unless that is the usual place. Two that share a connection share what is here
    /// as well, and who of them has chosen it nobody can tell: with a second choice there is none any more.
    fn current(&self) -> Result<Option<Arc<Target>>, Problem> {
        match self.connected.len() {
            0 | 1 => Ok(self.current.clone()),
            _ => Err(host_required("a call", "were connected to", &self.connected)),
        }
    }
}

fn host_required(what: &str, how: &str, hosts: &BTreeSet<String>) -> Problem {
    let names = hosts.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let message = format!("{what} has to name its host here, since several {how}: {names}");
    let problem = Problem::new("HOST_REQUIRED", Category::Validation, message);
    match hosts.first() {
        Some(first) => problem.remedy(format!("Say which one is meant, as in host: {first:?}")),
        None => problem,
    }
}

/// Where a call works.
#[derive(Clone)]
pub enum Picked {
    /// On one machine.
    One(Arc<Target>),
    /// On each of these, in this order.
    Many(Vec<Arc<Target>>),
}

/// How a call names where it works.
pub struct Naming<'a> {
    /// What it names, if it does.
    pub said: Option<&'a [String]>,
    /// Whether its client's connection is a session, which has a current host.
    pub has_session: bool,
    /// Whether it may change something.
    pub changes: bool,
}

impl Targets {
    /// As the configuration says.
    pub fn new(config: &Config, looked_for: LookedFor) -> Result<Self, InventoryError> {
        let local = |overrides| Target::local(overrides).looking_for(looked_for.clone());
        let here = Arc::new(local(Overrides::default()));
        let hosts = Hosts::new(config)?;
        let settings = Settings { looked_for: looked_for.clone(), ..config.ssh.settings() };
        let usual = match config.ssh.alias() {
            None => local(config.distro.clone()),
            Some(alias) => Target::remote(hosts.place(alias), settings.clone(), config.distro.clone()),
        };
        Ok(Self {
            settings,
            is_local_allowed: config.ssh.local,
            here,
            usual: Arc::new(usual),
            hosts,
            known: Mutex::default(),
            session: Mutex::default(),
        })
    }

    /// Where calls work that name no host, unless their client is connected elsewhere.
    pub fn usual(&self) -> &Arc<Target> {
        &self.usual
    }

    /// Whether there is any machine to choose.
    pub fn offers_hosts(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// This machine.
    pub fn here(&self) -> Result<Arc<Target>, Problem> {
        if !self.is_local_allowed {
            let message =
                "nothing runs on the machine of the server itself: its configuration says ssh.local: false";
            return Err(Problem::new("LOCAL_NOT_ALLOWED", Category::Denied, message)
                .remedy("Name a host, as in host: \"web1\""));
        }
        // With the operator's overrides, where it is the usual one.
        Ok(self.controller())
    }

    /// This machine, as the place of a call that is about the server's connections or its other calls: nothing runs on
    /// it where it isn't allowed.
    pub fn controller(&self) -> Arc<Target> {
        if self.usual.is_remote() { self.here.clone() } else { self.usual.clone() }
    }

    /// Where a call works.
    pub fn pick(&self, naming: &Naming) -> Result<Picked, Problem> {
        let picked = match naming.said {
            Some(said) => {
                let mut all: Vec<Arc<Target>> = Vec::new();
                for name in self.expand(said, if naming.changes { MOST_CHANGED } else { MOST })? {
                    let target = self.named(&name)?;
                    if !all.iter().any(|known| Arc::ptr_eq(known, &target)) {
                        all.push(target);
                    }
                }
                match <[Arc<Target>; 1]>::try_from(all) {
                    Ok([one]) => Picked::One(one),
                    Err(several) => Picked::Many(several),
                }
            }
            None => Picked::One(self.unnamed(naming)?),
        };
        let mut session = self.session();
        session.used.extend(picked.names().map(str::to_owned));
        Ok(picked)
    }

    /// What is meant by it, each once: what was used before is known by its name, whatever else may be named.
    fn expand(&self, said: &[String], most: usize) -> Result<Vec<String>, Problem> {
        let many = |what: &str| {
            let message = format!("{what} in one call; expected at most {most}");
            Problem::new("TOO_MANY_HOSTS", Category::Validation, message)
        };
        let words = || said.iter().flat_map(|said| said.split(',')).map(str::trim);
        let count = words().count();
        if count > MOST {
            return Err(many(&format!("{count} names")));
        }
        let (mut names, mut seen) = (Vec::new(), BTreeSet::new());
        for word in words() {
            let meant = match self.used(word) {
                Some(target) => vec![target.name().to_owned()],
                None => self.hosts.expand(&[word.to_owned()])?,
            };
            names.extend(meant.into_iter().filter(|name| seen.insert(name.clone())));
            if names.len() > most {
                return Err(many(&format!("{} hosts or more", names.len())));
            }
        }
        Ok(names)
    }

    /// The connected host, or the usual one.
    fn unnamed(&self, naming: &Naming) -> Result<Arc<Target>, Problem> {
        let target = match naming.has_session {
            false => self.usual.clone(),
            true => {
                let session = self.session();
                let target = session.current()?.unwrap_or_else(|| self.usual.clone());
                let mut used = session.used.clone();
                used.insert(target.name().to_owned());
                if naming.changes && used.len() > 1 {
                    return Err(host_required("a change", "were used", &used));
                }
                target
            }
        };
        if !target.is_remote() {
            return self.here();
        }
        Ok(target)
    }

    /// The machine of this name, which may be used.
    fn named(&self, name: &str) -> Result<Arc<Target>, Problem> {
        if self.hosts.is_here(name) {
            return self.here();
        }
        if name == self.usual.name() {
            return Ok(self.usual.clone());
        }
        let known = self.known().get(name).cloned();
        known.map_or_else(|| self.keep(Arc::new(self.target(self.hosts.place(name)))), Ok)
    }

    fn target(&self, place: Place) -> Target {
        Target::remote(place, self.settings.clone(), Overrides::default())
    }

    /// Of a host that may be named, reached otherwise than its configuration says. Once it is kept, calls name it by what
    /// differs.
    pub fn given(&self, host: &str, given: Given) -> Result<Arc<Target>, Problem> {
        let name = self.one(host, &given)?;
        if given == Given::default() {
            return self.named(&name);
        }
        let place = self.hosts.place(&name).with(given);
        let known = self.known().get(&place.name).cloned();
        Ok(known.unwrap_or_else(|| Arc::new(self.target(place))))
    }

    /// Calls can name it from now on, by its own name. The one of that name, which may have been there before.
    pub fn keep(&self, target: Arc<Target>) -> Result<Arc<Target>, Problem> {
        let mut known = self.known();
        if known.len() >= MOST_KNOWN && !known.contains_key(target.name()) {
            let message = format!("{MOST_KNOWN} hosts were used, and no more are kept");
            return Err(Problem::new("TOO_MANY_HOSTS", Category::Resource, message)
                .remedy("Start the server anew, or connect as the SSH configuration says"));
        }
        Ok(known.entry(target.name().to_owned()).or_insert(target).clone())
    }

    /// The same, for nothing but a look at it.
    pub fn apart(&self, host: &str, given: Given) -> Result<Target, Problem> {
        let name = self.one(host, &given)?;
        if self.hosts.is_here(&name) {
            self.here()?;
            return Ok(Target::local(Overrides::default()));
        }
        Ok(self.target(self.hosts.place(&name).with(given)))
    }

    /// SHA-256 fingerprints of the keys by which any host was reached since the server started.
    pub fn keys_used(&self) -> Vec<String> {
        self.settings.keys.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// How often a connection is asked whether it is there; none where it isn't.
    pub fn keepalive_seconds(&self) -> Option<u64> {
        self.settings.keepalive_interval.map(|interval| interval.as_secs())
    }

    /// A host that may be named once a person has said so; none where it may be already, or never.
    pub fn stranger(&self, host: &str) -> Option<Target> {
        let is_one = self.used(host).is_none() && self.hosts.is_stranger(host);
        is_one.then(|| self.target(self.hosts.place(host)))
    }

    /// The one name that is meant.
    fn one(&self, host: &str, given: &Given) -> Result<String, Problem> {
        if let Some(used) = self.used(host) {
            return Ok(used.name().to_owned());
        }
        let names = self.hosts.expand(&[host.to_owned()])?;
        let [name] = names.as_slice() else {
            let message = format!("{} is {} hosts; expected one", excerpt(host, SHOWN), names.len());
            return Err(Problem::new("HOST_AMBIGUOUS", Category::Validation, message));
        };
        if self.hosts.is_here(name) && *given != Given::default() {
            let message = "this machine is worked on as the server's own account: expected no port, user or identity file";
            return Err(Problem::new("INVALID_ARGUMENTS", Category::Validation, message));
        }
        Ok(name.clone())
    }

    /// From now on calls that name none work there, of clients whose connection is a session; none: on the usual one.
    pub fn set_current(&self, target: Option<Arc<Target>>) {
        let mut session = self.session();
        if let Some(target) = &target {
            // Another agent may still mean the place where it was before.
            session.used.extend([self.usual.name().to_owned(), target.name().to_owned()]);
            session.connected.insert(target.name().to_owned());
        }
        session.current = target;
    }

    /// Where such calls work. A problem where they have to name a host.
    pub fn current(&self) -> Result<Arc<Target>, Problem> {
        Ok(self.session().current()?.unwrap_or_else(|| self.usual.clone()))
    }

    /// One that was used before.
    pub fn used(&self, name: &str) -> Option<Arc<Target>> {
        match name == self.usual.name() && self.usual.is_remote() {
            true => Some(self.usual.clone()),
            false => self.known().get(name).cloned(),
        }
    }

    /// Whether a call may name it, as one host.
    pub fn is_host(&self, name: &str) -> bool {
        let named = self.hosts.expand(&[name.to_owned()]);
        name == self.usual.name() || named.is_ok_and(|names| names == [name])
    }

    /// Names that may be used, by group; those of none under an empty name.
    pub fn names(&self) -> BTreeMap<String, Vec<String>> {
        self.hosts.names()
    }

    /// Ends all connections.
    pub async fn close(&self) {
        let known: Vec<_> = self.known().values().cloned().collect();
        let close = known.iter().map(|target| target.close());
        futures_util::future::join(futures_util::future::join_all(close), self.usual.close()).await;
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Target>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The machine that a record names, as the configuration is now; in words, why there is none. `web1`, or what it was known
/// by where it was reached otherwise than its configuration says: `deploy@web1:2222`, `deploy@[2001:db8::1]:2222`.
pub fn recorded(config: &Config, name: &str) -> Result<Target, String> {
    if name.contains('+') {
        return Err(format!("{name} was reached by an identity file that isn't on record"));
    }
    let (user, rest) =
        name.split_once('@').map_or((None, name), |(user, rest)| (Some(user.to_owned()), rest));
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
        Some((host, port)) => (host, Some(port)),
        None => match rest.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host, Some(port)),
            _ => (rest, None),
        },
    };
    let port =
        port.map(str::parse).transpose().map_err(|_| format!("{name} has no port behind its colon"))?;
    let host: Alias = host.parse()?;
    let Some(alias) = host.elsewhere() else { return Ok(Target::local(Overrides::default())) };
    let hosts = Hosts::new(config).map_err(|error| error.to_string())?;
    if hosts.is_here(alias) {
        return Ok(Target::local(Overrides::default()));
    }
    let place = hosts.place(alias);
    let given = Given { user, port, ..Given::default() };
    let place = if given == Given::default() { place } else { place.with(given) };
    Ok(Target::remote(place, config.ssh.settings(), Overrides::default()))
}

impl Picked {
    /// Of each machine.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let all = match self {
            Self::One(target) => std::slice::from_ref(target),
            Self::Many(targets) => targets,
        };
        all.iter().map(|target| target.name())
    }
}

/// Which machines there are to choose from, as it was when the server started.
struct Hosts {
    inventory: Inventory,
    allowed: Allowed,
}

impl Hosts {
    fn new(config: &Config) -> Result<Self, InventoryError> {
        let inventory = Inventory::load(&config.hosts, &config.inventory)?;
        let allowed = Allowed::load(config.ssh.allowed_hosts.as_deref(), config.ssh.local, &inventory);
        for warning in inventory.warnings().iter().chain(allowed.warnings()) {
            tracing::warn!(warning, "hosts that calls may name");
        }
        Ok(Self { inventory, allowed })
    }

    fn is_empty(&self) -> bool {
        !self.allowed.has_others()
    }

    fn expand(&self, said: &[String]) -> Result<Vec<String>, Problem> {
        Ok(self.inventory.expand(said, &self.allowed)?.into_iter().map(|named| named.name).collect())
    }

    fn is_stranger(&self, name: &str) -> bool {
        self.inventory.is_stranger(name, &self.allowed)
    }

    fn is_here(&self, name: &str) -> bool {
        name == HERE || self.inventory.entry(name).is_some_and(|entry| entry.is_local)
    }

    /// How it is reached.
    fn place(&self, name: &str) -> Place {
        let mut place = Place::of_alias(name.to_owned());
        if let Some(entry) = self.inventory.entry(name) {
            place.given = Given {
                hostname: entry.hostname.clone(),
                port: entry.port,
                user: entry.user.clone(),
                identity_file: entry.identity_file.as_ref().map(PathBuf::from),
            };
        }
        place
    }

    /// By group; those of none under an empty name.
    fn names(&self) -> BTreeMap<String, Vec<String>> {
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        let mut all: BTreeMap<String, Vec<String>> =
            self.inventory.groups().map(|(group, members)| (group.to_owned(), owned(members))).collect();
        let grouped: BTreeSet<String> = all.values().flatten().cloned().collect();
        let others = self.allowed.names().filter(|name| !grouped.contains(*name)).map(str::to_owned);
        all.insert(String::new(), others.collect());
        all
    }
}

#[cfg(test)]
mod tests;
