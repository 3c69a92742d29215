//! The terminal's side: it finds the servers that can be reached, lists the calls that wait in them, and hands over a
//! decision.
//!
//! A server is trusted by its directory, and by the account that the kernel reports for the other end of its socket. A
//! terminal of root therefore shows no plan and gives no answer to an account whose servers it does not ask.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use super::directory::{Directory, DirectoryError};
use super::listen::DIRECTORY;
use super::message::{
    self, BEGINS_WITHIN, LONGEST_REQUEST, LONGEST_RESPONSE, LineError, PATIENCE, Request, Response,
};
use super::{Beginning, Refused, WaitingCall};
use host_base::account::{Account, runtime_directory};

/// The reason why a server could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The directory can't be used.
    #[error("a directory of servers is not used: {0}")]
    Directory(#[from] DirectoryError),
    /// The server runs as another account.
    #[error("a socket in {directory} is served by the account {found}: expected {expected}")]
    Foreign {
        /// The directory of the socket.
        directory: String,
        /// The uid of the server.
        found: u32,
        /// The uid that the server should have.
        expected: u32,
    },
    /// The server can't be reached, or gives a wrong response.
    #[error("the server with process number {process}: {reason}")]
    Server {
        /// The process number in the socket's name.
        process: String,
        /// The reason in words.
        reason: String,
    },
    /// The server did not take the decision.
    #[error("{0}")]
    Refused(#[from] Refused),
}

/// A server that can be reached.
#[derive(Clone, Debug)]
pub struct Server {
    directory: Arc<Directory>,
    name: String,
    uid: u32,
    patience: Duration,
}

/// A call that waits, and its server.
#[derive(Debug)]
pub struct ServerCall {
    /// The server.
    pub server: Server,
    /// The call.
    pub waiting: WaitingCall,
}

/// The places where servers are looked for.
#[derive(Debug, Default)]
pub struct Servers {
    /// The directories, each with the uid of its owner.
    places: Vec<(PathBuf, u32)>,
    /// The names of the accounts whose servers are looked for.
    accounts: Vec<String>,
}

impl Servers {
    /// The servers of this account. For root, those of system mode as well.
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

    /// Adds both directories that a server of the account may have chosen when it began to listen.
    fn add(&mut self, account: String, uid: u32, log: Option<PathBuf>) {
        let places = [runtime_directory(uid), log].into_iter().flatten();
        self.places.extend(places.map(|place| (place.join(DIRECTORY), uid)));
        self.accounts.push(account);
    }

    /// The servers in one directory.
    #[cfg(test)]
    pub(super) fn at(directory: PathBuf, uid: u32) -> Self {
        Self { places: vec![(directory, uid)], accounts: vec![uid.to_string()] }
    }

    /// The names of the accounts whose servers are looked for.
    pub fn accounts(&self) -> &[String] {
        &self.accounts
    }

    /// All waiting calls without their plans, the oldest first, and the errors of servers that could not be asked.
    pub async fn pending(&self) -> (Vec<ServerCall>, Vec<AskError>) {
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
                    .extend(list.into_iter().map(|waiting| ServerCall { server: server.clone(), waiting })),
                Err(error) => errors.push(error),
            }
        }
        pending.sort_by(|one, other| {
            let key = |pending: &ServerCall| (pending.waiting.asked_unix, pending.waiting.id.clone());
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

    /// The same server, expected to run as another account.
    #[cfg(test)]
    pub(super) fn of_account(self, uid: u32) -> Self {
        Self { uid, ..self }
    }

    #[cfg(test)]
    pub(super) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    pub(super) async fn list(&self) -> Result<Vec<WaitingCall>, AskError> {
        match self.ask(&Request::List {}).await? {
            // The server has ended.
            None => Ok(Vec::new()),
            Some(Response::Waiting(list)) => Ok(list),
            Some(other) => Err(self.wrong(other)),
        }
    }

    /// The call with its plan. None where it doesn't wait any more.
    pub async fn show(&self, id: &str) -> Result<Option<WaitingCall>, AskError> {
        match self.ask(&Request::Show { id: id.to_owned() }).await? {
            None => Ok(None),
            // A call with another id isn't the one that was asked for.
            Some(Response::Waiting(list)) => Ok(list.into_iter().find(|waiting| waiting.id == id)),
            Some(other) => Err(self.wrong(other)),
        }
    }

    /// Decides about the plan that was shown, and tells what came of it.
    pub async fn decide(&self, shown: &WaitingCall, yes: bool) -> Result<Beginning, AskError> {
        let request = Request::Decide { id: shown.id.clone(), sha256: shown.sha256.clone(), yes };
        match self.ask_for(&request, BEGINS_WITHIN + self.patience).await? {
            Some(Response::Decided { change }) => Ok(change),
            Some(Response::Refused(refused)) => Err(refused.into()),
            None => Err(Refused::Unknown.into()),
            Some(other) => Err(self.wrong(other)),
        }
    }

    async fn ask(&self, request: &Request) -> Result<Option<Response>, AskError> {
        self.ask_for(request, self.patience).await
    }

    /// Sends a request and reads the response, which may take this long. None where the server is dead.
    async fn ask_for(&self, request: &Request, longest: Duration) -> Result<Option<Response>, AskError> {
        let connected = timeout(self.patience, self.directory.connect(&self.name)).await;
        let connected = connected.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
        let Some(mut stream) = connected.map_err(|error| self.unusable(error))? else { return Ok(None) };
        // The account is checked before anything is sent: another account must not learn a decision of root.
        let found = stream.peer_cred().map_err(|error| self.unusable(error))?.uid();
        if found != self.uid {
            let directory = self.directory.path().display().to_string();
            return Err(AskError::Foreign { directory, found, expected: self.uid });
        }
        let asked = message::write(&mut stream, request, LONGEST_REQUEST, self.patience).await;
        asked.map_err(|error| self.unusable(error))?;
        let response = message::read(&mut stream, LONGEST_RESPONSE, longest)
            .await
            .map_err(|error| self.unusable(error))?;
        Ok(Some(response.ok_or_else(|| self.unusable(LineError::Cut))?))
    }

    fn unusable(&self, reason: impl ToString) -> AskError {
        // The socket's name begins with the process number.
        let process = self.name.split('-').next().unwrap_or_default().to_owned();
        AskError::Server { process, reason: reason.to_string() }
    }

    fn wrong(&self, response: Response) -> AskError {
        match response {
            Response::Error(reason) => self.unusable(reason),
            _ => self.unusable("the answer doesn't fit the question"),
        }
    }
}
