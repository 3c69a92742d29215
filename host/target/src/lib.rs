//! The machine under administration. Nothing outside this folder starts a process or opens a connection.
#![forbid(unsafe_code)]

mod ending;
mod entry;
mod facts;
mod files;
#[cfg(any(test, feature = "test-support"))]
pub mod fragile;
mod group;
mod identity;
mod local;
pub mod lock;
mod overrides;
mod paths;
mod remote;
mod resolve;
mod rights;
mod sealed;
mod services;
mod stream;
mod verbs;

pub use facts::Facts;
pub use host_openssh::{Given, OwnKey, Peer, own_keys};
pub use identity::{Identity, STALE};
pub use overrides::Overrides;
pub use paths::{Found, Kind, Located, Metadata, PathCheck, ReadRequest};
pub use remote::{Connection, KnownAs, Place, Settings};
pub use resolve::Resolved;
pub use services::{LookedFor, Services, UnitState};

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use entry::Trusted;
use host_base::problem::{Category, Problem};
use host_base::{Command, Output, Privilege};
use local::Local;
use remote::Remote;
use rights::Rights;
use verbs::Runner;

/// Commands that run at the same time; the rest wait.
const AT_ONCE: usize = 8;

fn rights(facts: &Facts) -> Rights {
    Rights { available: facts.root_available(), limited: facts.sudo_limited, root: facts.uid == 0 }
}

/// What became of this change isn't known: it was on its way when the connection went.
fn uncertain(command: &Command, lost: &Problem) -> Problem {
    let message = format!(
        "{} in the middle of {}: whether that was done, in part or not at all, isn't known, and it isn't repeated",
        lost.message, command.program
    );
    Problem::uncertain(message)
}

enum Machine {
    Local(Local),
    Remote(Remote),
}

/// How something is changed.
#[derive(Clone, Copy)]
struct Acting<'a> {
    /// Who may stop it.
    stop: &'a CancellationToken,
    /// Over this connection and no other.
    connection: u64,
}

impl Machine {
    /// What changes something comes with who may stop it.
    async fn run(
        &self,
        command: &Command,
        rights: Rights,
        changes: Option<Acting<'_>>,
    ) -> Result<Output, Problem> {
        match (self, changes) {
            (Self::Local(local), None) => local.run(command, rights).await,
            (Self::Local(local), Some(acting)) => tokio::select! {
                output = local.run(command, rights) => output,
                // Dropping it ends its processes.
                () = acting.stop.cancelled() => Err(cancelled(&command.program)),
            },
            (Self::Remote(remote), Some(acting)) => remote.act(command, rights, acting).await,
            (Self::Remote(remote), None) => remote.run(command, rights).await,
        }
    }
}

fn cancelled(program: &str) -> Problem {
    Problem::new("CANCELLED", Category::Other, format!("{program} was stopped"))
}

/// A command whose stdout is read piece by piece. Dropping it ends the command.
pub enum OutputStream {
    /// On this machine.
    Local(stream::OutputStream),
    /// Behind SSH.
    Remote(remote::Stream),
}

impl OutputStream {
    /// At most `max_bytes`, and at most 1 MiB; empty at the end.
    pub async fn read(&mut self, max_bytes: u32) -> Result<Vec<u8>, Problem> {
        match self {
            Self::Local(stream) => stream.read(max_bytes).await,
            Self::Remote(stream) => stream.read(max_bytes).await,
        }
    }
}

/// What services are doing is told again so long.
const FRESH: Duration = Duration::from_secs(10);

/// One machine, with what was found out about it.
pub struct Target {
    machine: Machine,
    overrides: Overrides,
    facts: tokio::sync::Mutex<Option<Known>>,
    /// Since when, and on which connection.
    services: tokio::sync::Mutex<Option<(Instant, u64, Arc<Services>)>>,
    /// Files that are looked for along with its services.
    looked_for: LookedFor,
    /// While a plan runs: the machine that it is for, and nothing is changed on another one.
    pinned: Arc<Mutex<Option<Identity>>>,
    /// This machine, behind a connection of a test's.
    #[cfg(any(test, feature = "test-support"))]
    line: Option<Arc<fragile::Line>>,
}

/// What was found out on one connection.
#[derive(Clone)]
struct Known {
    connection: u64,
    facts: Arc<Facts>,
    host_key: Option<String>,
}

/// Changes are made to one machine only, until this is dropped. There is one plan at a time.
pub struct Pinned(Arc<Mutex<Option<Identity>>>);

impl Drop for Pinned {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Target {
    /// This machine. Facts are gathered at the first question.
    pub fn local(overrides: Overrides) -> Self {
        Self::of(Machine::Local(Local::new()), overrides)
    }

    /// A machine behind SSH. It is reached at the first question.
    pub fn remote(place: Place, settings: Settings, overrides: Overrides) -> Self {
        Self::of(Machine::Remote(Remote::new(place, settings)), overrides)
    }

    fn of(machine: Machine, overrides: Overrides) -> Self {
        Self {
            machine,
            overrides,
            facts: Default::default(),
            services: Default::default(),
            looked_for: LookedFor::default(),
            pinned: Arc::default(),
            #[cfg(any(test, feature = "test-support"))]
            line: None,
        }
    }

    /// This machine, as it would be behind a connection that comes and goes.
    #[cfg(any(test, feature = "test-support"))]
    pub fn behind(line: &Arc<fragile::Line>) -> Self {
        Self { line: Some(line.clone()), ..Self::local(Overrides::default()) }
    }

    /// With files that are looked for along with its services.
    pub fn looking_for(self, looked_for: LookedFor) -> Self {
        Self { looked_for, ..self }
    }

    /// As in the envelope.
    pub fn name(&self) -> &str {
        match &self.machine {
            Machine::Local(_) => "localhost",
            Machine::Remote(remote) => remote.name(),
        }
    }

    /// Whether it is reached over SSH.
    pub fn is_remote(&self) -> bool {
        #[cfg(any(test, feature = "test-support"))]
        if self.line.is_some() {
            return true;
        }
        matches!(self.machine, Machine::Remote(_))
    }

    /// What is known of it; gathered once for each connection.
    pub async fn facts(&self) -> Result<Arc<Facts>, Problem> {
        Ok(self.known(false).await?.facts)
    }

    /// The same, gathered anew.
    pub async fn refresh_facts(&self) -> Result<Arc<Facts>, Problem> {
        Ok(self.known(true).await?.facts)
    }

    /// What it tells of its services: not older than a few seconds, or asked anew.
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
                let paths = self.looked_for.clone();
                let here = tokio::task::spawn_blocking(move || Services::here(units, paths.paths()));
                here.await.unwrap_or_default()
            }
            Machine::Remote(remote) => remote.services().await?,
        };
        let seen = Arc::new(seen);
        *services = Some((Instant::now(), known.connection, seen.clone()));
        Ok(seen)
    }

    async fn known(&self, anew: bool) -> Result<Known, Problem> {
        let mut known = self.facts.lock().await;
        let connection = match &self.machine {
            Machine::Local(_) => 0,
            Machine::Remote(remote) => remote.connected().await?,
        };
        #[cfg(any(test, feature = "test-support"))]
        let connection = self.line.as_ref().map_or(Ok(connection), |line| line.connected())?;
        if let Some(known) = known.as_ref().filter(|known| known.connection == connection && !anew) {
            return Ok(known.clone());
        }
        let (connection, facts, host_key) = match &self.machine {
            Machine::Local(local) => (connection, facts::gather_here(local).await, None),
            Machine::Remote(remote) => {
                let (connection, facts, host_key, services) = remote.gather().await?;
                *self.services.lock().await = Some((Instant::now(), connection, Arc::new(services)));
                (connection, facts, Some(host_key))
            }
        };
        #[cfg(any(test, feature = "test-support"))]
        let facts = self.line.iter().fold(facts, |mut facts, line| {
            line.alter(&mut facts);
            facts
        });
        #[cfg(any(test, feature = "test-support"))]
        let host_key = self.line.as_ref().map_or(host_key, |line| line.host_key());
        let facts = Arc::new(self.overrides.apply(facts));
        Ok(known.insert(Known { connection, facts, host_key }).clone())
    }

    /// machine-id(5) as it is now, where there is one: which machine answers to this name.
    pub async fn machine_id(&self) -> Option<String> {
        #[cfg(any(test, feature = "test-support"))]
        if self.line.is_some() {
            return self.facts().await.ok()?.machine_id.clone();
        }
        let request = ReadRequest { path: facts::MACHINE_ID.to_owned(), offset: 0, max_bytes: 4096 };
        let check: Arc<PathCheck> = Arc::new(|_, _| Ok(()));
        let id = self.read_own(vec![request], Trusted::Anyone, check).await.pop()?.ok()?;
        facts::machine_id_in(&String::from_utf8(id).ok()?)
    }

    /// Who answers at the other end of the connection; none of this machine, or while there is no connection.
    pub async fn peer(&self) -> Option<Peer> {
        match &self.machine {
            Machine::Local(_) => None,
            Machine::Remote(remote) => remote.peer().await,
        }
    }

    /// The connection to it, which is made where there is none; none of this machine.
    pub async fn connection(&self) -> Result<Option<Connection>, Problem> {
        match &self.machine {
            Machine::Local(_) => Ok(None),
            Machine::Remote(remote) => remote.connection().await.map(Some),
        }
    }

    /// A connection of its own, which is ended again; none of this machine.
    pub async fn try_connection(&self) -> Result<Option<Connection>, Problem> {
        match &self.machine {
            Machine::Local(_) => Ok(None),
            Machine::Remote(remote) => remote.try_connection().await.map(Some),
        }
    }

    /// Where it would be looked for, and by which keys it is known; none of this machine. Nothing is asked of it.
    pub async fn known_as(&self) -> Result<Option<KnownAs>, Problem> {
        match &self.machine {
            Machine::Local(_) => Ok(None),
            Machine::Remote(remote) => remote.known_as().await.map(Some),
        }
    }

    /// Whether a connection to it is there; never of this machine.
    pub async fn is_connected(&self) -> bool {
        match &self.machine {
            Machine::Local(_) => false,
            Machine::Remote(remote) => remote.is_connected().await,
        }
    }

    /// The fingerprint of the key that it has shown, as `SHA256:…`; none where [`Target::peer`] is none.
    pub async fn host_key(&self) -> Option<String> {
        #[cfg(any(test, feature = "test-support"))]
        if let Some(line) = &self.line {
            return line.host_key();
        }
        self.peer().await.map(|peer| peer.host_key)
    }

    /// For how long the connection was gone, where it was had back since then.
    pub fn restored_since(&self, since: Instant) -> Option<Duration> {
        match &self.machine {
            Machine::Local(_) => None,
            Machine::Remote(remote) => remote.restored_since(since),
        }
    }

    /// Whether a new connection reaches it, by the same way as the one in use. Whoever is on the machine itself has none.
    pub async fn is_reached_anew(&self) -> Result<(), Problem> {
        #[cfg(any(test, feature = "test-support"))]
        if let Some(line) = &self.line {
            return line.is_reached_anew();
        }
        match &self.machine {
            Machine::Local(_) => Ok(()),
            Machine::Remote(remote) => {
                let (host_key, machine_id) = remote.is_reached_anew().await?;
                let pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner).clone();
                pinned.map_or(Ok(()), |meant| meant.is(&meant.elsewhere(host_key, machine_id), self.name()))
            }
        }
    }

    /// A call was told that the connection was lost in its midst: the next one isn't told again.
    pub async fn loss_is_told(&self) {
        if let Machine::Remote(remote) = &self.machine {
            remote.loss_is_told().await;
        }
    }

    /// The connection in use doesn't answer, though another one would be to be had: the next question asks for one.
    pub async fn leave_connection(&self) {
        if let Machine::Remote(remote) = &self.machine {
            remote.leave().await;
        }
    }

    /// Ends what is being ended, and the connection.
    pub async fn close(&self) {
        if let Machine::Remote(remote) = &self.machine {
            remote.close().await;
        }
    }

    /// What stands in front of the command where it runs with other rights than the caller's, as `sudo -n `. A problem
    /// where it can't be started.
    pub async fn prefix(&self, command: &Command, facts: &Facts) -> Result<String, Problem> {
        match &self.machine {
            Machine::Local(local) => local.prefix(command, rights(facts)),
            Machine::Remote(remote) => Ok(remote.head(command, rights(facts)).await?.shown),
        }
    }

    /// Runs commands side by side; answers in the order given. Dropping the future ends them, with what they started.
    pub async fn run_all(&self, commands: &[Command]) -> Vec<Result<Output, Problem>> {
        let rights = match self.facts().await {
            Ok(facts) => rights(&facts),
            Err(problem) => return vec![Err(problem); commands.len()],
        };
        // Each future is boxed: it is large, and is moved several times before it runs.
        let running: Vec<_> = commands.iter().map(|command| Box::pin(self.run(command, rights))).collect();
        // Polled in this task, so that dropping the whole drops each.
        futures_util::stream::iter(running).buffered(AT_ONCE).collect().await
    }

    /// Runs a command that changes something. Where the connection goes in the middle of it, nobody knows what became of
    /// it: that is a problem of its own.
    pub async fn act(&self, command: &Command) -> Result<Output, Problem> {
        self.act_unless(command, &CancellationToken::new()).await
    }

    /// The same, or `CANCELLED` where it was told to stop meanwhile, and has.
    pub async fn act_unless(&self, command: &Command, stop: &CancellationToken) -> Result<Output, Problem> {
        let mut again = true;
        loop {
            // Apart from here on: a plan is deep within others already, and this is larger than all of them.
            let known = Box::pin(self.known(false)).await?;
            let pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(meant) = pinned {
                meant.is(&Identity::of(&known.facts, known.host_key), self.name())?;
            }
            // On the very connection that was asked who answers, or on none.
            let acting = Acting { stop, connection: known.connection };
            let rights = rights(&known.facts);
            let is_own = rights.limited
                && command.privilege == Privilege::RootIfAvailable
                && !Box::pin(self.is_allowed(command, rights)).await;
            let own = is_own.then(|| Command { privilege: Privilege::Caller, ..command.clone() });
            match Box::pin(self.once(own.as_ref().unwrap_or(command), rights, Some(acting))).await {
                Err(problem) if again && problem.code == "CONNECTION_LOST" => again = false,
                acted => return acted,
            }
        }
    }

    /// Changes go to this machine and to no other from now on.
    pub fn pin(&self, meant: Identity) -> Pinned {
        *self.pinned.lock().unwrap_or_else(PoisonError::into_inner) = Some(meant);
        Pinned(self.pinned.clone())
    }

    /// Whether a change is being made here.
    pub fn is_pinned(&self) -> bool {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    async fn run(&self, command: &Command, rights: Rights) -> Result<Output, Problem> {
        self.once(command, rights, None).await
    }

    /// What sudo doesn't allow runs without it where that will do.
    async fn once(
        &self,
        command: &Command,
        rights: Rights,
        changes: Option<Acting<'_>>,
    ) -> Result<Output, Problem> {
        #[cfg(any(test, feature = "test-support"))]
        if let Some(line) = &self.line {
            return line.carry(command, changes.is_some(), self.machine.run(command, rights, changes)).await;
        }
        let output = self.machine.run(command, rights, changes).await?;
        if !rights.takes_sudo(&command.privilege) {
            return Ok(output);
        }
        match crate::ending::refused_by_sudo(output.exit_code, !output.stdout.is_empty(), &output.stderr) {
            None => Ok(output),
            // What changes something isn't begun twice, whatever it said itself: it was asked about before.
            Some(_) if command.privilege == Privilege::RootIfAvailable && changes.is_none() => {
                let command = Command { privilege: Privilege::Caller, ..command.clone() };
                self.machine.run(&command, rights, changes).await
            }
            Some(said) => Err(crate::ending::refused(&command.program, &said)),
        }
    }

    /// Starts a command whose stdout is read piece by piece.
    pub async fn open(&self, command: &Command) -> Result<OutputStream, Problem> {
        let facts = self.facts().await?;
        // Asked first where sudo allows some commands only: once a stream is open, nothing else can be run in its place.
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
            Machine::Remote(remote) => remote.stream(command, rights).await.map(OutputStream::Remote),
        }
    }

    /// Whether sudo would run it, or wouldn't be asked.
    async fn is_allowed(&self, command: &Command, rights: Rights) -> bool {
        let account = match &command.privilege {
            Privilege::Caller => return true,
            Privilege::Root | Privilege::RootIfAvailable => "root",
            Privilege::User(name) => name,
        };
        let asked = ["-n", "-l", "-u", account, "--", &command.program].map(str::to_owned);
        let args = asked.into_iter().chain(command.args.iter().cloned()).collect();
        let question = Command {
            program: "sudo".to_owned(),
            args,
            privilege: Privilege::Caller,
            stdin: None,
            ..command.clone()
        };
        self.run(&question, rights).await.is_ok_and(|output| output.exit_code == 0)
    }

    /// Takes the lock of what is at this path there, which has to be nobody's to swap; waits for it at most so long. Only
    /// reading it is needed.
    pub async fn lock(&self, path: &Path, patience: Duration) -> Result<lock::Asked, Problem> {
        #[cfg(any(test, feature = "test-support"))]
        if let Some(line) = &self.line {
            let connection = line.connected()?;
            return Ok(match lock::here(path, patience).await? {
                lock::Asked::Taken(lock) => lock::Asked::Taken(lock.behind(line, connection)),
                asked => asked,
            });
        }
        match &self.machine {
            Machine::Local(_) => lock::here(path, patience).await,
            Machine::Remote(remote) => remote.lock(path, patience).await,
        }
    }

    /// Where a program is on the target.
    pub async fn program(&self, name: &str) -> Result<String, Problem> {
        match &self.machine {
            Machine::Local(local) => Ok(local.program(name)?.to_string_lossy().into_owned()),
            Machine::Remote(remote) => remote.program(name).await,
        }
    }
}

impl Runner for Target {
    async fn run_all(&self, commands: &[Command]) -> Vec<Result<Output, Problem>> {
        Self::run_all(self, commands).await
    }
}
