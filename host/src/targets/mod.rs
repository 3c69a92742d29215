//! The machines that a server works on. Each has a name, a connection, facts and a lock of its own.

pub mod control;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::{Config, DistroOf, Ssh};
use host_base::problem::{Category, Problem};
use host_inventory::{Allowed, Inventory, InventoryError};
use host_openssh::Alias;
use host_target::{ConnectionSettings, Destination, Overrides, ServiceFiles, SshOptions, Target};
use host_text::visible::excerpt;

/// The name by which calls name this machine.
const LOCALHOST: &str = "localhost";

/// The number of hosts that one call may name.
const MAX_HOSTS: usize = 1000;
/// The number of hosts that a call may change. The plan of each is kept in memory until it runs.
const MAX_CHANGED_HOSTS: usize = 100;
/// The number of remote targets that a server keeps.
const MAX_KNOWN: usize = 10_000;
/// The number of characters of a name in a message.
const MAX_NAME: usize = 80;

/// All targets of a server.
pub struct Targets {
    settings: ConnectionSettings,
    /// Whether calls may work on this machine.
    is_local_allowed: bool,
    /// This machine, without the operator's overrides of facts.
    local: Arc<Target>,
    /// The target of calls that name no host, unless their client is connected to another one.
    usual: Arc<Target>,
    hosts: Hosts,
    /// The remote targets that were used, by name.
    known: Mutex<BTreeMap<String, Arc<Target>>>,
    session: Mutex<ClientSession>,
}

/// The hosts that a client with a session has chosen and used.
#[derive(Default)]
struct ClientSession {
    current: Option<Arc<Target>>,
    /// Every host that was the current one.
    connected: BTreeSet<String>,
    used: BTreeSet<String>,
}

impl ClientSession {
    /// The target of calls that name no host; `None` for the usual one. Agents that share a connection share the current
    /// host too. After a second choice nobody can tell which agent means which host, so calls have to name it.
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

/// The targets of a call.
#[derive(Clone)]
pub enum Selected {
    /// The call works on one target.
    One(Arc<Target>),
    /// The call works on each of these targets, in this order.
    Many(Vec<Arc<Target>>),
}

/// The request of a call for its targets.
pub struct Selector<'a> {
    /// The hosts that the call names, if it names any.
    pub named: Option<&'a [String]>,
    /// Whether the client's connection is a session, which has a current host.
    pub has_session: bool,
    /// Whether the call may change something.
    pub changes: bool,
}

impl Targets {
    /// Makes the targets of this configuration.
    pub fn new(config: &Config, service_files: ServiceFiles) -> Result<Self, InventoryError> {
        let local = |overrides| Target::local(overrides).with_service_files(service_files.clone());
        let without_overrides = Arc::new(local(Overrides::default()));
        let hosts = Hosts::new(config)?;
        let settings = ConnectionSettings { service_files: service_files.clone(), ..config.ssh.settings() };
        let usual = match config.ssh.alias() {
            None => local(config.distro.clone()),
            Some(alias) => Target::remote(hosts.destination(alias), settings.clone(), config.distro.clone()),
        };
        Ok(Self {
            settings,
            is_local_allowed: config.ssh.local,
            local: without_overrides,
            usual: Arc::new(usual),
            hosts,
            known: Mutex::default(),
            session: Mutex::default(),
        })
    }

    /// Makes the targets of a server that works on this one only. Its calls can name no other host.
    pub fn only(target: Arc<Target>) -> Result<Self, InventoryError> {
        let ssh = Ssh { allowed_hosts: Some(Vec::new()), ..Ssh::default() };
        let only = Self::new(&Config { ssh, ..Config::default() }, ServiceFiles::default())?;
        Ok(Self { local: target.clone(), usual: target, ..only })
    }

    /// The target of calls that name no host, unless their client is connected to another one.
    pub fn usual(&self) -> &Arc<Target> {
        &self.usual
    }

    /// Whether there are hosts to choose from.
    pub fn offers_hosts(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// This machine. An error where calls may not work on it.
    pub fn local(&self) -> Result<Arc<Target>, Problem> {
        if !self.is_local_allowed {
            let message =
                "no call runs on the machine of the server itself: its configuration says ssh.local: false";
            return Err(Problem::new("LOCAL_NOT_ALLOWED", Category::Denied, message)
                .remedy("Name a host, as in host: \"web1\""));
        }
        // The usual target has the operator's overrides.
        Ok(self.controller())
    }

    /// This machine, as the target of a call about the server's own connections or jobs. Where calls may not work on this
    /// machine, such a call gets no grants.
    pub fn controller(&self) -> Arc<Target> {
        if self.usual.is_remote() { self.local.clone() } else { self.usual.clone() }
    }

    /// Selects the targets of a call.
    pub fn select(&self, selector: &Selector) -> Result<Selected, Problem> {
        let selected = match selector.named {
            Some(named) => {
                let mut all: Vec<Arc<Target>> = Vec::new();
                let max_hosts = if selector.changes { MAX_CHANGED_HOSTS } else { MAX_HOSTS };
                for name in self.expand(named, max_hosts)? {
                    let target = self.by_name(&name)?;
                    if !all.iter().any(|known| Arc::ptr_eq(known, &target)) {
                        all.push(target);
                    }
                }
                match <[Arc<Target>; 1]>::try_from(all) {
                    Ok([one]) => Selected::One(one),
                    Err(several) => Selected::Many(several),
                }
            }
            None => Selected::One(self.unnamed(selector)?),
        };
        let mut session = self.session();
        session.used.extend(selected.names().map(str::to_owned));
        Ok(selected)
    }

    /// The names of the hosts that these words mean, each once. A target that was used before can be named as it was
    /// reached, such as `deploy@web1:2222`.
    fn expand(&self, named: &[String], max_hosts: usize) -> Result<Vec<String>, Problem> {
        let many = |what: &str| {
            let message = format!("{what} in one call; expected at most {max_hosts}");
            Problem::new("TOO_MANY_HOSTS", Category::Validation, message)
        };
        let words = || named.iter().flat_map(|words| words.split(',')).map(str::trim);
        let count = words().count();
        if count > MAX_HOSTS {
            return Err(many(&format!("{count} names")));
        }
        let (mut names, mut seen) = (Vec::new(), BTreeSet::new());
        for word in words() {
            let meant = match self.find_used(word) {
                Some(target) => vec![target.name().to_owned()],
                None => self.hosts.expand(&[word.to_owned()])?,
            };
            names.extend(meant.into_iter().filter(|name| seen.insert(name.clone())));
            if names.len() > max_hosts {
                return Err(many(&format!("{} hosts or more", names.len())));
            }
        }
        Ok(names)
    }

    /// The target of a call that names none: the connected host, or the usual one.
    fn unnamed(&self, selector: &Selector) -> Result<Arc<Target>, Problem> {
        let target = match selector.has_session {
            false => self.usual.clone(),
            true => {
                let session = self.session();
                let target = session.current()?.unwrap_or_else(|| self.usual.clone());
                let mut used = session.used.clone();
                used.insert(target.name().to_owned());
                if selector.changes && used.len() > 1 {
                    return Err(host_required("a change", "were used", &used));
                }
                target
            }
        };
        if !target.is_remote() {
            return self.local();
        }
        Ok(target)
    }

    /// The target of this name, which calls may name.
    fn by_name(&self, name: &str) -> Result<Arc<Target>, Problem> {
        if self.hosts.is_local(name) {
            return self.local();
        }
        if name == self.usual.name() {
            return Ok(self.usual.clone());
        }
        let known = self.known().get(name).cloned();
        known.map_or_else(|| self.remember(Arc::new(self.remote_target(self.hosts.destination(name)))), Ok)
    }

    fn remote_target(&self, destination: Destination) -> Target {
        let overrides = self.hosts.overrides(&destination.alias);
        Target::remote(destination, self.settings.clone(), overrides)
    }

    /// The target of a host that calls may name, reached with these options instead of those of the configuration. Once it
    /// is remembered, its name has the options in it.
    pub fn with_options(&self, host: &str, options: SshOptions) -> Result<Arc<Target>, Problem> {
        let name = self.resolve_one(host, &options)?;
        if options == SshOptions::default() {
            return self.by_name(&name);
        }
        let destination = self.hosts.destination(&name).with(options);
        let known = self.known().get(&destination.name).cloned();
        Ok(known.unwrap_or_else(|| Arc::new(self.remote_target(destination))))
    }

    /// Lets calls name the target from now on. Gives the target of that name, which may have been known before.
    pub fn remember(&self, target: Arc<Target>) -> Result<Arc<Target>, Problem> {
        let mut known = self.known();
        if known.len() >= MAX_KNOWN && !known.contains_key(target.name()) {
            let message = format!("{MAX_KNOWN} hosts were used, and no more are kept");
            return Err(Problem::new("TOO_MANY_HOSTS", Category::Resource, message)
                .remedy("Start the server anew, or connect as the SSH configuration says"));
        }
        Ok(known.entry(target.name().to_owned()).or_insert(target).clone())
    }

    /// A target of its own for a host that calls may name, for one look at it.
    pub fn temporary(&self, host: &str, options: SshOptions) -> Result<Target, Problem> {
        let name = self.resolve_one(host, &options)?;
        if self.hosts.is_local(&name) {
            self.local()?;
            return Ok(Target::local(Overrides::default()));
        }
        Ok(self.remote_target(self.hosts.destination(&name).with(options)))
    }

    /// The SHA-256 fingerprints of the keys that authenticated to any host since the server started.
    pub fn keys_used(&self) -> Vec<String> {
        self.settings.keys.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Seconds between two keepalive messages; `None` where there are none.
    pub fn keepalive_seconds(&self) -> Option<u64> {
        self.settings.keepalive_interval.map(|interval| interval.as_secs())
    }

    /// The target of a host that calls may name only after a person has confirmed it. `None` where they may name it already,
    /// and where they never may.
    pub fn unconfirmed(&self, host: &str) -> Option<Target> {
        let is_one = self.find_used(host).is_none() && self.hosts.is_stranger(host);
        is_one.then(|| self.remote_target(self.hosts.destination(host)))
    }

    /// The same target, reached with these options instead of those of the configuration.
    pub fn unconfirmed_with(&self, host: &str, options: &SshOptions) -> Arc<Target> {
        Arc::new(self.remote_target(self.hosts.destination(host).with(options.clone())))
    }

    /// The name of the one host that is meant.
    fn resolve_one(&self, host: &str, options: &SshOptions) -> Result<String, Problem> {
        if let Some(used) = self.find_used(host) {
            return Ok(used.name().to_owned());
        }
        let names = self.hosts.expand(&[host.to_owned()])?;
        let [name] = names.as_slice() else {
            let message = format!("{} is {} hosts; expected one", excerpt(host, MAX_NAME), names.len());
            return Err(Problem::new("HOST_AMBIGUOUS", Category::Validation, message));
        };
        if self.hosts.is_local(name) && *options != SshOptions::default() {
            let message = "this machine is worked on as the server's own account: expected no port, user or identity file";
            return Err(Problem::new("INVALID_ARGUMENTS", Category::Validation, message));
        }
        Ok(name.clone())
    }

    /// Sets the target of later calls in the session that name no host; `None` for the usual one.
    pub fn set_current(&self, target: Option<Arc<Target>>) {
        let mut session = self.session();
        if let Some(target) = &target {
            // Another agent may still mean the host that was the current one before.
            session.used.extend([self.usual.name().to_owned(), target.name().to_owned()]);
            session.connected.insert(target.name().to_owned());
        }
        session.current = target;
    }

    /// The target of calls in the session that name no host. An error where they have to name one.
    pub fn current(&self) -> Result<Arc<Target>, Problem> {
        Ok(self.session().current()?.unwrap_or_else(|| self.usual.clone()))
    }

    /// The remote target of this name, if it was used before.
    pub fn find_used(&self, name: &str) -> Option<Arc<Target>> {
        match name == self.usual.name() && self.usual.is_remote() {
            true => Some(self.usual.clone()),
            false => self.known().get(name).cloned(),
        }
    }

    /// Whether this is the name of one host that calls may name.
    pub fn is_host(&self, name: &str) -> bool {
        let named = self.hosts.expand(&[name.to_owned()]);
        name == self.usual.name() || named.is_ok_and(|names| names == [name])
    }

    /// The hosts that calls may name, by group. Hosts without a group stand under an empty name.
    pub fn names(&self) -> BTreeMap<String, Vec<String>> {
        self.hosts.names()
    }

    /// Closes all connections.
    pub async fn close(&self) {
        let known: Vec<_> = self.known().values().cloned().collect();
        let close = known.iter().map(|target| target.close());
        futures_util::future::join(futures_util::future::join_all(close), self.usual.close()).await;
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Target>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self) -> MutexGuard<'_, ClientSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The target that an audit record names, as the configuration is now, or in words why there is none. The name is `web1`, or
/// has the options by which the host was reached: `deploy@web1:2222`, `deploy@[2001:db8::1]:2222`.
pub fn target_of_record(config: &Config, name: &str) -> Result<Target, String> {
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
    if hosts.is_local(alias) {
        return Ok(Target::local(Overrides::default()));
    }
    let destination = hosts.destination(alias);
    let options = SshOptions { user, port, ..SshOptions::default() };
    let destination = if options == SshOptions::default() { destination } else { destination.with(options) };
    let overrides = hosts.overrides(&destination.alias);
    Ok(Target::remote(destination, config.ssh.settings(), overrides))
}

impl Selected {
    /// The name of each target.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let all = match self {
            Self::One(target) => std::slice::from_ref(target),
            Self::Many(targets) => targets,
        };
        all.iter().map(|target| target.name())
    }
}

/// The hosts that calls may name, as they were when the server started.
struct Hosts {
    inventory: Inventory,
    allowed: Allowed,
    distro_of: DistroOf,
}

impl Hosts {
    fn new(config: &Config) -> Result<Self, InventoryError> {
        let inventory = Inventory::load(&config.hosts, &config.inventory)?;
        let allowed = Allowed::load(config.ssh.allowed_hosts.as_deref(), config.ssh.local, &inventory);
        for warning in inventory.warnings().iter().chain(allowed.warnings()) {
            tracing::warn!(warning, "hosts that calls may name");
        }
        Ok(Self { inventory, allowed, distro_of: config.distro_of.clone() })
    }

    fn is_empty(&self) -> bool {
        !self.allowed.has_others()
    }

    fn expand(&self, names: &[String]) -> Result<Vec<String>, Problem> {
        Ok(self.inventory.expand(names, &self.allowed)?.into_iter().map(|named| named.name).collect())
    }

    fn is_stranger(&self, name: &str) -> bool {
        self.inventory.is_unknown_host(name, &self.allowed)
    }

    fn is_local(&self, name: &str) -> bool {
        name == LOCALHOST || self.inventory.entry(name).is_some_and(|entry| entry.is_local)
    }

    /// The operator's facts for the host of this name.
    fn overrides(&self, name: &str) -> Overrides {
        self.distro_of.of(name, &self.inventory)
    }

    /// The way to reach the host of this name.
    fn destination(&self, name: &str) -> Destination {
        let mut destination = Destination::of_alias(name.to_owned());
        if let Some(entry) = self.inventory.entry(name) {
            destination.options = SshOptions {
                hostname: entry.hostname.clone(),
                port: entry.port,
                user: entry.user.clone(),
                identity_file: entry.identity_file.as_ref().map(PathBuf::from),
            };
        }
        destination
    }

    /// The hosts by group. Hosts without a group stand under an empty name.
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
