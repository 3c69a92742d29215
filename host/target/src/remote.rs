//! A machine behind SSH. It has one connection, which is restored by itself.
//!
//! Callers may repeat commands that only look. A command that changes something is never repeated here, and if the
//! connection is lost while it runs, its outcome is not known.

mod channel;
mod connection;
mod connection_info;
mod destination;
mod exit_codes;
mod output_stream;
mod programs;
mod quote;
mod remote_lock;
mod running;
mod script;
mod sftp;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio_util::task::TaskTracker;

use connection::{BootstrapRunner, Connection};

use super::entry::Trusted;
use super::facts::{self, Facts};
use super::file_commands::{FileCommands, Runner};
use super::resolve::{LastLink, Resolved};
use super::rights::{CommandPrefix, Rights};
use super::services::{self, ServiceFiles, Services};
use super::{Metadata, PathCheck, ReadRequest};
pub use connection_info::{ConnectionInfo, KnownHost};
pub use destination::Destination;
use host_base::Attempt;
use host_base::problem::{Category, Problem};
use host_base::{Command, Privilege};
use host_capability::Access;
use host_openssh::{Keepalive, Peer, SshConnection};
pub use output_stream::RemoteOutputStream;

/// The pauses before each attempt to restore a lost connection.
const PAUSES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(10),
];

/// The settings of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// The time between two keepalive messages. None turns them off.
    pub keepalive_interval: Option<Duration>,
    /// The number of unanswered keepalive messages after which the connection counts as lost.
    pub keepalive_max_missed: usize,
    /// Whether the call that finds the connection lost restores it.
    pub reconnects: bool,
    /// The number of attempts to restore it. There are at most as many as pauses.
    pub attempts: usize,
    /// The keys that authenticated connections since the server started.
    pub keys: Arc<Mutex<BTreeSet<String>>>,
    /// Files that are looked for along with the facts.
    pub service_files: ServiceFiles,
}

/// A machine behind SSH.
pub struct Remote {
    destination: Destination,
    settings: ConnectionSettings,
    /// Locked while connecting, so that other calls wait and then use the same connection.
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
    history: Arc<Mutex<ConnectionHistory>>,
    /// Processes on the target that held a lock over a connection that was lost.
    leftover_holders: Arc<Mutex<Vec<remote_lock::LeftoverHolder>>>,
    tasks: TaskTracker,
}

/// The history of the connection.
#[derive(Default)]
struct ConnectionHistory {
    /// The number of connections so far.
    count: u64,
    /// The time at which the connection was lost, while there is none.
    lost: Option<Instant>,
    /// The time at which the connection was last restored, and for how long it was lost.
    restored: Option<(Instant, Duration)>,
    /// The number of the connection whose loss a call has told of.
    told_loss_of: Option<u64>,
}

impl Remote {
    pub(super) fn new(destination: Destination, settings: ConnectionSettings) -> Self {
        Self {
            destination,
            settings,
            connection: Default::default(),
            history: Arc::default(),
            leftover_holders: Arc::default(),
            tasks: TaskTracker::new(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.destination.name
    }

    /// Connects if there is no connection, and returns the connection's number. What was found out on one connection
    /// may not hold on the next.
    pub(super) async fn connected(&self) -> Result<u64, Problem> {
        Ok(self.connection().await?.number())
    }

    /// Returns for how long the connection was lost, if it was restored after `since`.
    pub(super) fn restored_since(&self, since: Instant) -> Option<Duration> {
        self.history().restored.filter(|(at, _)| *at >= since).map(|(_, gone)| gone)
    }

    /// Returns the peer of the connection, if there is one.
    pub(super) async fn peer(&self) -> Option<Peer> {
        let connection = self.connection.lock().await;
        connection
            .as_ref()
            .filter(|connection| !connection.is_closed())
            .map(|connection| connection.peer().clone())
    }

    /// Makes a separate connection in the same way and asks the machine for its id. Returns the host key and the
    /// machine id.
    pub(super) async fn check_new_connection(&self) -> Result<(String, Option<String>), Problem> {
        let connection = Connection::new(self.open().await?, 0, self.tasks.clone())?;
        let asked = connection::host_command("cat", &["--", facts::MACHINE_ID]);
        let answered = BootstrapRunner(&connection).run_all(&[asked]).await.pop();
        connection.close().await;
        let output = answered.unwrap_or_else(|| Err(connection.lost()))?;
        let machine_id = facts::machine_id_in(&String::from_utf8_lossy(&output.stdout));
        Ok((connection.peer().host_key.clone(), machine_id))
    }

    /// Returns the state of the connection, and connects if there is none.
    pub(super) async fn connection_info(&self) -> Result<ConnectionInfo, Problem> {
        let connection = self.connection().await?;
        self.connection_state(&connection).await
    }

    /// Makes a separate connection, returns its state, and ends it.
    pub(super) async fn probe_connection(&self) -> Result<ConnectionInfo, Problem> {
        let connection = Connection::new(self.open().await?, 0, self.tasks.clone())?;
        let info = self.connection_state(&connection).await;
        connection.close().await;
        info
    }

    async fn connection_state(&self, connection: &Connection) -> Result<ConnectionInfo, Problem> {
        let round_trip = connection.round_trip().await?;
        let restored = self.history().count.saturating_sub(1);
        let (peer, channels) = (connection.peer().clone(), connection.busy());
        let (up, made_in) = connection.times();
        Ok(ConnectionInfo { peer, round_trip, up, channels, restored, made_in })
    }

    /// Says whether there is a connection.
    pub(super) async fn is_connected(&self) -> bool {
        self.connection.lock().await.as_ref().is_some_and(|connection| !connection.is_closed())
    }

    /// Notes that a call has told of the lost connection, so that the next one doesn't.
    pub(super) async fn note_told_loss(&self) {
        let number = self.connection.lock().await.as_ref().map(|connection| connection.number());
        self.history().told_loss_of = number;
    }

    /// Ends the connection in use.
    pub(super) async fn leave(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            self.history().lost.get_or_insert_with(Instant::now);
            connection.close().await;
        }
    }

    /// Waits until all commands that are being ended have ended, and closes the connection.
    pub(super) async fn close(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        if let Some(connection) = self.connection.lock().await.take() {
            connection.close().await;
        }
    }

    fn history(&self) -> std::sync::MutexGuard<'_, ConnectionHistory> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the address and the known keys of the machine, without asking it.
    pub(super) async fn known_host(&self) -> Result<KnownHost, Problem> {
        let host = host_openssh::config::resolve(&self.destination.alias, &self.destination.options).await?;
        let (user, global) = (host.user_known_hosts.clone(), host.global_known_hosts.clone());
        let known =
            tokio::task::spawn_blocking(move || host_openssh::known_hosts::KnownHosts::load(&user, &global))
                .await
                .map_err(|error| Problem::new("INTERNAL_ERROR", Category::Internal, error.to_string()))??;
        let address = match host.hostname.contains(':') {
            true => format!("[{}]:{}", host.hostname, host.port),
            false => format!("{}:{}", host.hostname, host.port),
        };
        let names = host_openssh::known_hosts::HostNames::of(&host, None);
        Ok(KnownHost {
            address,
            user: host.user.clone(),
            host_keys: known.fingerprints(&names),
            authorities: known.authority_fingerprints(&names),
            accepts_new: host.strict == host_openssh::config::Strict::AcceptNew,
        })
    }

    /// Opens a session. Returns it with the time that this took. The future is boxed: it is large and seldom needed, and every
    /// call, on this machine too, would have room for it.
    fn open(&self) -> BoxFuture<'_, Result<(SshConnection, Duration), Problem>> {
        async move {
            let began = Instant::now();
            let host =
                host_openssh::config::resolve(&self.destination.alias, &self.destination.options).await?;
            let keepalive = Keepalive {
                interval: self.settings.keepalive_interval,
                max_missed: self.settings.keepalive_max_missed,
            };
            let session = SshConnection::open(&host, &keepalive).await?;
            Ok((session, began.elapsed()))
        }
        .boxed()
    }

    /// Returns the connection, and connects if there is none.
    async fn connection(&self) -> Result<Arc<Connection>, Problem> {
        let mut known = self.connection.lock().await;
        match known.as_ref() {
            Some(connection) if !connection.is_closed() => return Ok(connection.clone()),
            Some(connection) => {
                let (problem, number) = (connection.lost(), connection.number());
                self.history().lost.get_or_insert_with(Instant::now);
                *known = None;
                // A loss is told once: a call that was running then has told of it already.
                let is_told = self.history().told_loss_of == Some(number);
                if !self.settings.reconnects && !is_told {
                    return Err(problem.remedy("Call again: the next call connects anew"));
                }
            }
            None => {}
        }
        let was_there = self.history().count > 0;
        let attempts = if was_there && self.settings.reconnects { self.settings.attempts } else { 1 };
        let (began, mut failed) = (Instant::now(), Vec::new());
        let session = loop {
            tokio::time::sleep(PAUSES[failed.len().min(PAUSES.len() - 1)]).await;
            let problem = match self.open().await {
                Ok(session) => break session,
                Err(problem) => problem,
            };
            failed.push(Attempt::of(&problem, began.elapsed()));
            if problem.category != Category::Network || failed.len() >= attempts {
                return Err(match &failed[..] {
                    // With one attempt, the attempt's problem says all.
                    [_] => problem,
                    failed => problem.detail("attempts", json!(failed)),
                });
            }
            tracing::warn!(host = self.destination.name, attempt = failed.len(), %problem, "not connected");
        };
        let number = self.history().count + 1;
        let connection = Connection::new(session, number, self.tasks.clone())?;
        if let Some(key) = &connection.peer().key {
            self.settings.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        }
        for warning in &connection.peer().warnings {
            tracing::warn!(
                host = self.destination.name,
                warning,
                "the configuration of ssh isn't followed here"
            );
        }
        {
            let mut history = self.history();
            history.count = number;
            if let Some(lost) = history.lost.take() {
                history.restored = Some((Instant::now(), lost.elapsed()));
            }
        }
        // The loss is noted when it happens, and not when the next call finds it.
        tokio::spawn({
            let (connection, history) = (Arc::downgrade(&connection), Arc::downgrade(&self.history));
            async move {
                let Some(watched) = connection.upgrade() else { return };
                watched.closed().await;
                if let Some(history) = history.upgrade() {
                    let mut history = history.lock().unwrap_or_else(PoisonError::into_inner);
                    history.lost.get_or_insert_with(Instant::now);
                }
            }
        });
        *known = Some(connection.clone());
        Ok(connection)
    }

    /// Makes a separate connection for output that is read piece by piece. A channel that nobody reads holds up all
    /// others on its connection.
    async fn beside(&self, connection: &Connection) -> Result<Arc<Connection>, Problem> {
        let beside = Connection::new(self.open().await?, 0, self.tasks.clone())?;
        let (before, now) = (&connection.peer().host_key, &beside.peer().host_key);
        if before == now {
            return Ok(beside);
        }
        let message = format!(
            "{} is another machine by now: expected host key {before}, found {now}",
            self.destination.name
        );
        Err(Problem::new("CONNECTION_LOST", Category::Network, message))
    }

    /// Asks for all facts at once. Returns them with the number of the connection, the host key that the machine
    /// showed, and its services.
    pub(super) async fn gather(&self) -> Result<(u64, Facts, String, Services), Problem> {
        let connection = self.connection().await?;
        let session = connection.session_environment().await?;
        let mut questions = facts::questions(&self.settings.service_files.paths());
        questions.push(services::units_question());
        let mut answers = BootstrapRunner(&connection).run_all(&questions).await;
        let units = answers.pop().unwrap_or_else(|| Err(connection.lost()));
        let services = Services::read(
            units,
            answers.get(facts::LISTING_QUESTION).cloned().unwrap_or_else(|| Err(connection.lost())),
        );
        let mut facts = facts::read(answers, session)?;
        facts.sftp = connection.sftp().await.is_some();
        Ok((connection.number(), facts, connection.peer().host_key.clone(), services))
    }

    /// Asks for the services alone, all at once.
    pub(super) async fn services(&self) -> Result<Services, Problem> {
        let connection = self.connection().await?;
        let paths = self.settings.service_files.paths();
        let questions = [services::units_question(), services::paths_question(&paths)];
        let mut answers = BootstrapRunner(&connection).run_all(&questions).await;
        let (paths, units) = (answers.pop(), answers.pop());
        let (Some(paths), Some(units)) = (paths, units) else { return Err(connection.lost()) };
        Ok(Services::read(units, paths))
    }

    /// Returns the path of a program.
    pub(super) async fn program(&self, name: &str) -> Result<String, Problem> {
        let connection = self.connection().await?;
        self.find(&connection, name).await
    }

    async fn find(&self, connection: &Arc<Connection>, name: &str) -> Result<String, Problem> {
        if let Some(path) = connection.programs.known(name) {
            return Ok(path);
        }
        let candidates = programs::of(name)?;
        let led = self.walk(connection, &candidates, LastLink::Followed, &Trusted::Root).await;
        let path = programs::choose(name, candidates.into_iter().zip(led).collect())?;
        connection.programs.learn(name, &path);
        Ok(path)
    }

    /// Returns where paths lead, with the account's own rights.
    async fn walk(
        &self,
        connection: &Arc<Connection>,
        paths: &[String],
        last: LastLink,
        trusted: &Trusted,
    ) -> Vec<Result<Resolved, Problem>> {
        if let Some(sftp) = connection.sftp().await {
            let walks = paths.iter().map(|path| sftp.resolve(path, last, trusted));
            return futures_util::future::join_all(walks).await;
        }
        let asked: Vec<_> = paths.iter().map(String::as_str).collect();
        let access = own();
        FileCommands { runner: &BootstrapRunner(connection), access: &access, trusted, here: None }
            .resolve(&asked, last)
            .await
    }

    /// Returns where paths lead and what is there, with the account's own rights. It uses `stat`, which tells more
    /// than SFTP does.
    pub(super) async fn locate(
        &self,
        paths: Vec<String>,
        last: LastLink,
        trusted: Trusted,
    ) -> Vec<Result<Resolved, Problem>> {
        let connection = match self.connection().await {
            Ok(connection) => connection,
            Err(problem) => return vec![Err(problem); paths.len()],
        };
        let asked: Vec<_> = paths.iter().map(String::as_str).collect();
        let access = own();
        FileCommands { runner: &BootstrapRunner(&connection), access: &access, trusted: &trusted, here: None }
            .resolve(&asked, last)
            .await
    }

    /// Returns where paths lead, with the account's own rights.
    pub(super) async fn resolve(
        &self,
        paths: Vec<String>,
        last: LastLink,
        trusted: Trusted,
    ) -> Vec<Result<Resolved, Problem>> {
        match self.connection().await {
            Ok(connection) => self.walk(&connection, &paths, last, &trusted).await,
            Err(problem) => vec![Err(problem); paths.len()],
        }
    }

    pub(super) async fn read_all(
        &self,
        requests: Vec<ReadRequest>,
        trusted: Trusted,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Vec<u8>, Problem>> {
        let connection = match self.connection().await {
            Ok(connection) => connection,
            Err(problem) => return vec![Err(problem); requests.len()],
        };
        if let Some(sftp) = connection.sftp().await {
            return sftp.read_all(&requests, &trusted, &*check).await;
        }
        let access = own();
        FileCommands { runner: &BootstrapRunner(&connection), access: &access, trusted: &trusted, here: None }
            .read_all(&requests, &check)
            .await
    }

    pub(super) async fn stat_all(
        &self,
        paths: Vec<String>,
        trusted: Trusted,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Option<Metadata>, Problem>> {
        let connection = match self.connection().await {
            Ok(connection) => connection,
            Err(problem) => return vec![Err(problem); paths.len()],
        };
        let access = own();
        FileCommands { runner: &BootstrapRunner(&connection), access: &access, trusted: &trusted, here: None }
            .stat_all(&paths, &check)
            .await
    }

    pub(super) async fn list_all(
        &self,
        paths: Vec<String>,
        trusted: Trusted,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Vec<String>, Problem>> {
        let connection = match self.connection().await {
            Ok(connection) => connection,
            Err(problem) => return vec![Err(problem); paths.len()],
        };
        if let Some(sftp) = connection.sftp().await {
            return sftp.list_all(&paths, &trusted, &*check).await;
        }
        let access = own();
        FileCommands { runner: &BootstrapRunner(&connection), access: &access, trusted: &trusted, here: None }
            .list_all(&paths, &check)
            .await
    }

    /// Returns the words before a command. Returns a problem where the command can't be started.
    pub(super) async fn command_prefix(
        &self,
        command: &Command,
        rights: Rights,
    ) -> Result<CommandPrefix, Problem> {
        let connection = self.connection().await?;
        self.command_prefix_on(&connection, command, command.timeout, rights).await
    }
}

/// The account's own rights, which no pattern has to allow.
fn own() -> Access {
    Access { privilege: Privilege::Caller, verbs: Vec::new() }
}
