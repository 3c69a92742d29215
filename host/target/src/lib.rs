//! The machine under administration, on this machine or behind SSH. Only this crate starts commands on a target.
#![forbid(unsafe_code)]

mod account;
mod command_problem;
mod commands;
mod entry;
mod facts;
mod file_commands;
mod files;
mod identity;
mod local;
pub mod lock;
mod overrides;
mod own_first;
mod paths;
mod pipeline;
mod process_group;
pub mod recorded;
mod remote;
mod resolve;
mod rights;
mod sealed_stdin;
mod services;
mod signals;
mod stream;
#[cfg(any(test, feature = "test-support"))]
pub mod test_connection;

pub use facts::Facts;
pub use host_openssh::{OwnKey, Peer, SshOptions, own_keys};
pub use identity::{Identity, STALE};
pub use overrides::Overrides;
pub use paths::{FileKind, Found, Located, Metadata, PathCheck, ReadRequest};
pub use remote::{ConnectionInfo, ConnectionSettings, Destination, KnownHost};
pub use resolve::Resolved;
pub use services::{ServiceFiles, Services, UnitState};
pub use signals::{NOTHING_SENT, ProcessId, ProcessSignal, Reach, SeenProcess, SeenProcesses, outcomes};

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use entry::Trusted;
use host_base::problem::Problem;
use host_base::{Command, Privilege};
use local::Local;
use recorded::{Recorded, RecordedMachine};
use remote::Remote;
use rights::Rights;

fn rights(facts: &Facts) -> Rights {
    Rights { available: facts.root_available(), limited: facts.sudo_limited, root: facts.uid == 0 }
}

enum Machine {
    Local(Local),
    Remote(Remote),
    Recorded(Recorded),
}

/// A command whose stdout is read piece by piece. Dropping it ends the command.
pub enum OutputStream {
    /// The command runs on this machine.
    Local(stream::LocalOutputStream),
    /// The command runs on a machine behind SSH.
    Remote(remote::RemoteOutputStream),
    /// The command was recorded.
    Recorded(recorded::RecordedOutputStream),
}

impl OutputStream {
    /// Reads at most `max_bytes`, and at most 1 MiB. The result is empty at the end.
    pub async fn read(&mut self, max_bytes: u32) -> Result<Vec<u8>, Problem> {
        match self {
            Self::Local(stream) => stream.read(max_bytes).await,
            Self::Remote(stream) => stream.read(max_bytes).await,
            Self::Recorded(stream) => Ok(stream.read(max_bytes)),
        }
    }
}

/// The time for which answers about services are used again.
const FRESH: Duration = Duration::from_secs(10);

/// One machine, with the facts about it.
pub struct Target {
    machine: Machine,
    overrides: Overrides,
    facts: tokio::sync::Mutex<Option<GatheredFacts>>,
    /// The services, with the time and the connection at which they were asked for.
    services: tokio::sync::Mutex<Option<(Instant, u64, Arc<Services>)>>,
    /// Files that the host looks for along with the services.
    service_files: ServiceFiles,
    /// The machine that a running plan is for. Meanwhile nothing changes another one.
    pinned: Arc<Mutex<Option<Identity>>>,
    /// Tests reach this machine by a connection of their own.
    #[cfg(any(test, feature = "test-support"))]
    test_connection: Option<Arc<test_connection::TestConnection>>,
}

/// The facts that were gathered on one connection.
#[derive(Clone)]
struct GatheredFacts {
    connection: u64,
    facts: Arc<Facts>,
    host_key: Option<String>,
}

/// Allows changes on one machine only, until it is dropped. There is one plan at a time.
pub struct PinGuard(Arc<Mutex<Option<Identity>>>);

impl Drop for PinGuard {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Target {
    /// Makes the target of this machine. The first question gathers its facts.
    pub fn local(overrides: Overrides) -> Self {
        Self::of(Machine::Local(Local::new()), overrides)
    }

    /// Makes the target of a machine behind SSH. The first question connects to it.
    pub fn remote(destination: Destination, settings: ConnectionSettings, overrides: Overrides) -> Self {
        Self::of(Machine::Remote(Remote::new(destination, settings)), overrides)
    }

    /// Makes the target of a machine that consists of recordings.
    pub fn recorded(machine: Arc<RecordedMachine>) -> Self {
        Self::of(Machine::Recorded(machine), Overrides::default())
    }

    fn of(machine: Machine, overrides: Overrides) -> Self {
        Self {
            machine,
            overrides,
            facts: Default::default(),
            services: Default::default(),
            service_files: ServiceFiles::default(),
            pinned: Arc::default(),
            #[cfg(any(test, feature = "test-support"))]
            test_connection: None,
        }
    }

    /// Makes a target of this machine that is reached by a test's connection.
    #[cfg(any(test, feature = "test-support"))]
    pub fn over_test_connection(test_connection: &Arc<test_connection::TestConnection>) -> Self {
        Self { test_connection: Some(test_connection.clone()), ..Self::local(Overrides::default()) }
    }

    /// Adds the files that are looked for along with the services.
    pub fn with_service_files(self, service_files: ServiceFiles) -> Self {
        Self { service_files, ..self }
    }

    /// Returns the name, as in the envelope.
    pub fn name(&self) -> &str {
        match &self.machine {
            Machine::Local(_) => "localhost",
            Machine::Remote(remote) => remote.name(),
            Machine::Recorded(recorded) => recorded.name(),
        }
    }

    /// Says whether the target is reached over SSH.
    pub fn is_remote(&self) -> bool {
        #[cfg(any(test, feature = "test-support"))]
        if self.test_connection.is_some() {
            return true;
        }
        matches!(self.machine, Machine::Remote(_))
    }

    /// Returns the facts. They are gathered once for each connection.
    pub async fn facts(&self) -> Result<Arc<Facts>, Problem> {
        Ok(self.known(false).await?.facts)
    }

    /// Gathers the facts again.
    pub async fn refresh_facts(&self) -> Result<Arc<Facts>, Problem> {
        Ok(self.known(true).await?.facts)
    }

    /// Returns the state of services. It is a few seconds old at most, or fresh where `anew` asks for it.
    pub async fn services(&self, anew: bool) -> Result<Arc<Services>, Problem> {
        let known = self.known(false).await?;
        let mut services = self.services.lock().await;
        let is_fresh = |(since, connection, _): &&(Instant, u64, _)| {
            *connection == known.connection && since.elapsed() < FRESH && !anew
        };
        if let Some((_, _, services)) = services.as_ref().filter(is_fresh) {
            return Ok(services.clone());
        }
        let seen = match &self.machine {
            Machine::Local(local) => {
                let units = local.run(&services::units_question(), rights(&known.facts)).await;
                let paths = self.service_files.clone();
                let here = tokio::task::spawn_blocking(move || Services::here(units, paths.paths()));
                here.await.unwrap_or_default()
            }
            Machine::Remote(remote) => remote.services().await?,
            Machine::Recorded(_) => Services::default(),
        };
        let seen = Arc::new(seen);
        *services = Some((Instant::now(), known.connection, seen.clone()));
        Ok(seen)
    }

    async fn known(&self, anew: bool) -> Result<GatheredFacts, Problem> {
        let mut known = self.facts.lock().await;
        let connection = match &self.machine {
            Machine::Local(_) | Machine::Recorded(_) => 0,
            Machine::Remote(remote) => remote.connected().await?,
        };
        #[cfg(any(test, feature = "test-support"))]
        let connection = self.test_connection.as_ref().map_or(Ok(connection), |test| test.connected())?;
        if let Some(known) = known.as_ref().filter(|known| known.connection == connection && !anew) {
            return Ok(known.clone());
        }
        let (connection, facts, host_key) = match &self.machine {
            Machine::Local(local) => (connection, facts::gather_here(local).await, None),
            Machine::Recorded(recorded) => (connection, recorded.facts().clone(), None),
            Machine::Remote(remote) => {
                let (connection, facts, host_key, services) = remote.gather().await?;
                *self.services.lock().await = Some((Instant::now(), connection, Arc::new(services)));
                (connection, facts, Some(host_key))
            }
        };
        #[cfg(any(test, feature = "test-support"))]
        let facts = self.test_connection.iter().fold(facts, |mut facts, test_connection| {
            test_connection.alter(&mut facts);
            facts
        });
        #[cfg(any(test, feature = "test-support"))]
        let host_key = self.test_connection.as_ref().map_or(host_key, |test| test.host_key());
        let facts = Arc::new(self.overrides.apply(facts));
        Ok(known.insert(GatheredFacts { connection, facts, host_key }).clone())
    }

    /// Returns the current machine-id(5) where the target has one. It tells which machine answers to this name.
    pub async fn machine_id(&self) -> Option<String> {
        #[cfg(any(test, feature = "test-support"))]
        if self.test_connection.is_some() {
            return self.facts().await.ok()?.machine_id.clone();
        }
        if let Machine::Recorded(recorded) = &self.machine {
            return recorded.facts().machine_id.clone();
        }
        let request = ReadRequest { path: facts::MACHINE_ID.to_owned(), offset: 0, max_bytes: 4096 };
        let check: Arc<PathCheck> = Arc::new(|_, _| Ok(()));
        let id =
            self.read_own(vec![request], Trusted::Anyone, &Privilege::Caller, check).await.pop()?.ok()?;
        facts::machine_id_in(&String::from_utf8(id).ok()?)
    }

    /// Returns who answers at the other end of the connection. This machine has no peer, and neither has a target
    /// without a connection.
    pub async fn peer(&self) -> Option<Peer> {
        match &self.machine {
            Machine::Local(_) | Machine::Recorded(_) => None,
            Machine::Remote(remote) => remote.peer().await,
        }
    }

    /// Returns the state of the connection, and connects if there is none. This machine has no connection.
    pub async fn connection_info(&self) -> Result<Option<ConnectionInfo>, Problem> {
        match &self.machine {
            Machine::Local(_) | Machine::Recorded(_) => Ok(None),
            Machine::Remote(remote) => remote.connection_info().await.map(Some),
        }
    }

    /// Makes a separate connection, measures it and ends it. This machine has no connection.
    pub async fn probe_connection(&self) -> Result<Option<ConnectionInfo>, Problem> {
        match &self.machine {
            Machine::Local(_) | Machine::Recorded(_) => Ok(None),
            Machine::Remote(remote) => remote.probe_connection().await.map(Some),
        }
    }

    /// Returns the address and the known keys of the target without asking it. This machine has none.
    pub async fn known_host(&self) -> Result<Option<KnownHost>, Problem> {
        match &self.machine {
            Machine::Local(_) | Machine::Recorded(_) => Ok(None),
            Machine::Remote(remote) => remote.known_host().await.map(Some),
        }
    }

    /// Says whether there is a connection. This machine never has one.
    pub async fn is_connected(&self) -> bool {
        match &self.machine {
            Machine::Local(_) | Machine::Recorded(_) => false,
            Machine::Remote(remote) => remote.is_connected().await,
        }
    }

    /// Returns the fingerprint of the key that the target showed, as `SHA256:…`. There is none where [`Target::peer`]
    /// is none.
    pub async fn host_key(&self) -> Option<String> {
        #[cfg(any(test, feature = "test-support"))]
        if let Some(test_connection) = &self.test_connection {
            return test_connection.host_key();
        }
        self.peer().await.map(|peer| peer.host_key)
    }

    /// Returns for how long the connection was lost, if it was restored after `since`.
    pub fn restored_since(&self, since: Instant) -> Option<Duration> {
        match &self.machine {
            Machine::Local(_) | Machine::Recorded(_) => None,
            Machine::Remote(remote) => remote.restored_since(since),
        }
    }

    /// Checks that a new connection reaches the target in the same way as the one in use. This machine always
    /// succeeds.
    pub async fn check_new_connection(&self) -> Result<(), Problem> {
        #[cfg(any(test, feature = "test-support"))]
        if let Some(test_connection) = &self.test_connection {
            return test_connection.check_new_connection();
        }
        match &self.machine {
            Machine::Local(_) | Machine::Recorded(_) => Ok(()),
            Machine::Remote(remote) => {
                let (host_key, machine_id) = remote.check_new_connection().await?;
                let pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner).clone();
                pinned.map_or(Ok(()), |meant| meant.is(&meant.elsewhere(host_key, machine_id), self.name()))
            }
        }
    }

    /// Notes that a call has told of the lost connection, so that the next call doesn't tell it again.
    pub async fn note_told_loss(&self) {
        if let Machine::Remote(remote) = &self.machine {
            remote.note_told_loss().await;
        }
    }

    /// Ends the connection in use, which doesn't answer though a new one could be made. The next question connects.
    pub async fn drop_connection(&self) {
        #[cfg(any(test, feature = "test-support"))]
        if let Some(test_connection) = &self.test_connection {
            test_connection.lose();
        }
        if let Machine::Remote(remote) = &self.machine {
            remote.leave().await;
        }
    }

    /// Waits until all commands that are being ended have ended, and closes the connection.
    pub async fn close(&self) {
        if let Machine::Remote(remote) = &self.machine {
            remote.close().await;
        }
    }

    /// Returns the words before the command where it runs with other rights than the caller's, such as `sudo -n `.
    /// Returns a problem where the command can't be started.
    pub async fn prefix(&self, command: &Command, facts: &Facts) -> Result<String, Problem> {
        self.program(&command.program).await?;
        self.prefix_of_missing(command, facts).await
    }

    /// [`Target::prefix`] of a command whose program may not be there yet.
    pub async fn prefix_of_missing(&self, command: &Command, facts: &Facts) -> Result<String, Problem> {
        match &self.machine {
            Machine::Local(local) => local.prefix(command, rights(facts)),
            Machine::Recorded(recorded) => recorded.prefix(command, rights(facts)),
            Machine::Remote(remote) => Ok(remote.command_prefix(command, rights(facts)).await?.shown),
        }
    }

    /// Allows changes on this machine only from now on.
    pub fn pin(&self, meant: Identity) -> PinGuard {
        *self.pinned.lock().unwrap_or_else(PoisonError::into_inner) = Some(meant);
        PinGuard(self.pinned.clone())
    }

    /// Says whether a change is under way on this target.
    pub fn is_pinned(&self) -> bool {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Starts a command whose stdout is read piece by piece.
    pub async fn open(&self, command: &Command) -> Result<OutputStream, Problem> {
        let facts = self.facts().await?;
        // Where sudo allows certain commands only, it is asked first: once a stream is open, no other command can take
        // its place.
        let allowed = !facts.sudo_limited || self.is_allowed(command, rights(&facts)).await;
        let own = Rights { available: false, limited: false, root: facts.uid == 0 };
        match command.privilege {
            Privilege::RootIfAvailable if !allowed => {
                let command = Command { privilege: Privilege::Caller, ..command.clone() };
                self.stream(&command, own).await
            }
            _ if allowed => self.stream(command, rights(&facts)).await,
            _ => self.stream(command, own).await,
        }
    }

    async fn stream(&self, command: &Command, rights: Rights) -> Result<OutputStream, Problem> {
        match &self.machine {
            Machine::Local(local) => local.open(command, rights).await.map(OutputStream::Local),
            Machine::Recorded(recorded) => recorded.stream(command, rights).map(OutputStream::Recorded),
            Machine::Remote(remote) => remote.stream(command, rights).await.map(OutputStream::Remote),
        }
    }

    /// Takes the lock of the file or directory at this path on the target, and waits for it at most for `patience`. No
    /// other account may be able to replace the file. The lock needs only the right to read it.
    pub async fn lock(&self, path: &Path, patience: Duration) -> Result<lock::LockOutcome, Problem> {
        #[cfg(any(test, feature = "test-support"))]
        if let Some(test_connection) = &self.test_connection {
            let connection = test_connection.connected()?;
            return Ok(match lock::take_local(path, patience).await? {
                lock::LockOutcome::Taken(lock) => {
                    lock::LockOutcome::Taken(lock.over_test_connection(test_connection, connection))
                }
                asked => asked,
            });
        }
        match &self.machine {
            Machine::Local(_) => lock::take_local(path, patience).await,
            Machine::Recorded(_) => {
                Ok(lock::LockOutcome::Unavailable("a machine of recordings has no locks".to_owned()))
            }
            Machine::Remote(remote) => remote.lock(path, patience).await,
        }
    }

    /// Returns the path of a program on the target.
    pub async fn program(&self, name: &str) -> Result<String, Problem> {
        match &self.machine {
            Machine::Local(local) => Ok(local.program(name)?.to_string_lossy().into_owned()),
            Machine::Recorded(recorded) => recorded.program(name),
            Machine::Remote(remote) => remote.program(name).await,
        }
    }
}
