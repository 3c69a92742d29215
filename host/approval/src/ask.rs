//! The other end: which servers can be reached from here, what waits in them, and a decision taken to one of them.
//!
//! A server is believed to be one by its directory and by the account that the kernel names at the other end of its
//! socket, so that root is shown no plan, and gives no answer, but to the accounts whose servers it asks.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use super::directory::{Directory, DirectoryError};
use super::listen::DIRECTORY;
use super::message::{self, Answer, LONGEST_ANSWER, LONGEST_QUESTION, LineError, PATIENCE, Question};
use super::{Refused, Waiting};
use host_base::account::{Account, runtime_directory};

/// Why a server could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Its directory isn't used.
    #[error("servers are not looked for in a directory: {0}")]
    Directory(#[from] DirectoryError),
    /// It is another account's.
    #[error("a socket in {directory} is served by the account {found}: expected {expected}")]
    Foreign {
        /// Where.
        directory: String,
        /// Whose it is.
        found: u32,
        /// Whose it should be.
        expected: u32,
    },
    /// It can't be reached, or doesn't speak as it should.
    #[error("the server with process number {process}: {reason}")]
    Server {
        /// As its socket's name says.
        process: String,
        /// In words.
        reason: String,
    },
    /// It has taken no decision.
    #[error("{0}")]
    Refused(#[from] Refused),
}

/// One that can be reached.
#[derive(Clone, Debug)]
pub struct Server {
    directory: Arc<Directory>,
    name: String,
    uid: u32,
    patience: Duration,
}

/// A call, and where it waits.
#[derive(Debug)]
pub struct Pending {
    /// Its server.
    pub server: Server,
    /// The call.
    pub waiting: Waiting,
}

/// Where servers are looked for.
#[derive(Debug, Default)]
pub struct Servers {
    /// Each with whose it must be.
    places: Vec<(PathBuf, u32)>,
    /// Whose servers those are, by name.
    accounts: Vec<String>,
}

impl Servers {
    /// Those of this account; as root those of system mode too.
    pub fn within_reach() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let name = Account::of_uid(uid).map_or_else(|| uid.to_string(), |account| account.name);
        let mut servers = Self::default();
        servers.add(name, uid, host_audit::directory());
        if let Some(system) =
            Account::named(host_system_mode::ACCOUNT).filter(|system| uid == 0 && system.uid != 0)
        {
            let log = system.home.join(".local/state/linux-sysadmin");
            servers.add(system.name, system.uid, Some(log));
        }
        servers
    }

    /// A server chose between the two by what was there when it began to listen.
    fn add(&mut self, account: String, uid: u32, log: Option<PathBuf>) {
        let places = [runtime_directory(uid), log].into_iter().flatten();
        self.places.extend(places.map(|place| (place.join(DIRECTORY), uid)));
        self.accounts.push(account);
    }

    /// In one directory.
    #[cfg(test)]
    pub(super) fn at(directory: PathBuf, uid: u32) -> Self {
        Self { places: vec![(directory, uid)], accounts: vec![uid.to_string()] }
    }

    /// Whose servers are looked for, by name.
    pub fn accounts(&self) -> &[String] {
        &self.accounts
    }

    /// All that waits in them, the oldest first, without the plans; and what kept a server from being asked.
    pub async fn pending(&self) -> (Vec<Pending>, Vec<AskError>) {
        let (mut pending, mut errors) = (Vec::new(), Vec::new());
        let mut servers = Vec::new();
        for (place, uid) in &self.places {
            match Server::all_in(place.clone(), *uid) {
                Ok(found) => servers.extend(found),
                Err(error) => errors.push(error),
            }
        }
        let lists = join_all(servers.iter().map(Server::list)).await;
        for (server, list) in servers.into_iter().zip(lists) {
            match list {
                Ok(list) => pending
                    .extend(list.into_iter().map(|waiting| Pending { server: server.clone(), waiting })),
                Err(error) => errors.push(error),
            }
        }
        pending.sort_by(|one, other| {
            let key = |pending: &Pending| (pending.waiting.asked_unix, pending.waiting.id.clone());
            key(one).cmp(&key(other))
        });
        (pending, errors)
    }
}

impl Server {
    pub(super) fn all_in(place: PathBuf, uid: u32) -> Result<Vec<Self>, AskError> {
        let Some(directory) = Directory::open(place.clone(), uid)? else { return Ok(Vec::new()) };
        let names = directory.names().map_err(|source| DirectoryError::Io { path: place, source })?;
        let directory = Arc::new(directory);
        Ok(names
            .into_iter()
            .map(|name| Self { directory: directory.clone(), name, uid, patience: PATIENCE })
            .collect())
    }

    /// The same, expected to be another account's.
    #[cfg(test)]
    pub(super) fn of_account(self, uid: u32) -> Self {
        Self { uid, ..self }
    }

    #[cfg(test)]
    pub(super) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    pub(super) async fn list(&self) -> Result<Vec<Waiting>, AskError> {
        match self.ask(&Question::List {}).await? {
            // It has ended.
            None => Ok(Vec::new()),
            Some(Answer::Waiting(list)) => Ok(list),
            Some(other) => Err(self.wrong(other)),
        }
    }

    /// The call with its plan; none where it doesn't wait any more.
    pub async fn show(&self, id: &str) -> Result<Option<Waiting>, AskError> {
        match self.ask(&Question::Show { id: id.to_owned() }).await? {
            None => Ok(None),
            // What isn't the one that was asked for is none.
            Some(Answer::Waiting(list)) => Ok(list.into_iter().find(|waiting| waiting.id == id)),
            Some(other) => Err(self.wrong(other)),
        }
    }

    /// Decides about the plan that was shown.
    pub async fn decide(&self, shown: &Waiting, yes: bool) -> Result<(), AskError> {
        let question = Question::Decide { id: shown.id.clone(), sha256: shown.sha256.clone(), yes };
        match self.ask(&question).await? {
            Some(Answer::Decided {}) => Ok(()),
            Some(Answer::Refused(refused)) => Err(refused.into()),
            None => Err(Refused::Unknown.into()),
            Some(other) => Err(self.wrong(other)),
        }
    }

    /// None where the server is dead.
    async fn ask(&self, question: &Question) -> Result<Option<Answer>, AskError> {
        let connected = timeout(self.patience, self.directory.connect(&self.name)).await;
        let connected = connected.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
        let Some(mut stream) = connected.map_err(|error| self.unusable(error))? else { return Ok(None) };
        // Before a word is said: as root somebody else would be told what was decided.
        let found = stream.peer_cred().map_err(|error| self.unusable(error))?.uid();
        if found != self.uid {
            let directory = self.directory.path().display().to_string();
            return Err(AskError::Foreign { directory, found, expected: self.uid });
        }
        let asked = message::write(&mut stream, question, LONGEST_QUESTION, self.patience).await;
        asked.map_err(|error| self.unusable(error))?;
        let answer = message::read(&mut stream, LONGEST_ANSWER, self.patience)
            .await
            .map_err(|error| self.unusable(error))?;
        Ok(Some(answer.ok_or_else(|| self.unusable(LineError::Cut))?))
    }

    fn unusable(&self, reason: impl ToString) -> AskError {
        // The number that its name begins with.
        let process = self.name.split('-').next().unwrap_or_default().to_owned();
        AskError::Server { process, reason: reason.to_string() }
    }

    fn wrong(&self, answer: Answer) -> AskError {
        match answer {
            Answer::Error(reason) => self.unusable(reason),
            _ => self.unusable("the answer is none to what was asked"),
        }
    }
}
