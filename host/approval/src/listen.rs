//! The server's side: a socket that exists from the first waiting call to the end of the server.
//!
//! The kernel reports the account at the other end. An account that may not decide isn't told what waits either.

use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::directory::{Directory, DirectoryError};
use super::message::{
    self, BEGINS_WITHIN, LONGEST_REQUEST, LONGEST_RESPONSE, LineError, PATIENCE, Request, Response,
};
use super::{Person, WaitingCall, WaitingCalls};
use host_base::account::{Account, runtime_directory};

/// The number of connections that are served at the same time. Others wait to be accepted.
const AT_ONCE: usize = 8;
/// The pause after a connection that could not be accepted, since no file descriptors may be left.
const PAUSE: Duration = Duration::from_millis(200);
/// The name of the directory below the one that an account's servers share.
pub(super) const DIRECTORY: &str = "pending";

/// The accounts that may see waiting calls and decide them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deciders {
    /// The account that the server runs as, and root.
    Account,
    /// In system mode only root decides, and nobody where the client runs as root. The server's own account may not
    /// decide, because a client that asks for a change must not approve it.
    Root {
        /// The uid of the client.
        client: Option<u32>,
    },
}

impl Deciders {
    /// Checks that `uid` may decide. `own` is the uid of the server.
    pub(super) fn may(self, uid: u32, own: u32) -> Result<(), &'static str> {
        match self {
            Self::Root { client } if client == Some(uid) => {
                Err("the client runs as this account, and who asks for a change doesn't decide about it")
            }
            Self::Root { .. } if uid != 0 => Err("in system mode only root decides: use sudo"),
            Self::Account if uid != 0 && uid != own => {
                Err("only the account that the server runs as, and root, decide")
            }
            Self::Root { .. } | Self::Account => Ok(()),
        }
    }
}

/// The reason why the server can't listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// There is no private directory for the socket.
    #[error("there is no directory for `linux-sysadmin approve`: {0}")]
    Directory(#[from] DirectoryError),
    /// An error of the system.
    #[error("no socket for `linux-sysadmin approve` in {directory}: {source}")]
    Socket {
        /// The directory.
        directory: String,
        /// The error.
        source: io::Error,
    },
}

/// A socket that listens until this is dropped.
#[derive(Debug)]
pub struct Listener {
    directory: Arc<Directory>,
    name: String,
    accepting: JoinHandle<()>,
}

impl Listener {
    /// Begins to listen, within a runtime. `log` is the directory of the account's audit log, which is used where there
    /// is no runtime directory. The listener doesn't keep the waiting calls alive.
    pub fn start(calls: &Arc<dyn WaitingCalls>, log: &Path, deciders: Deciders) -> Result<Self, ListenError> {
        let shared = runtime_directory(rustix::process::geteuid().as_raw());
        let directory = shared.as_deref().unwrap_or(log).join(DIRECTORY);
        let peer = |stream: &UnixStream| Ok(stream.peer_cred()?.uid());
        Self::start_in(Directory::create(directory)?, calls, deciders, PATIENCE, peer)
    }

    /// Begins to listen in this directory. `peer` tells the uid at the other end of a connection.
    pub(super) fn start_in(
        directory: Directory,
        calls: &Arc<dyn WaitingCalls>,
        deciders: Deciders,
        patience: Duration,
        peer: impl Fn(&UnixStream) -> io::Result<u32> + Send + 'static,
    ) -> Result<Self, ListenError> {
        let directory = Arc::new(directory);
        let socket = |source: io::Error| ListenError::Socket {
            directory: directory.path().display().to_string(),
            source,
        };
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| socket(error.into()))?;
        let name = format!("{}-{}", std::process::id(), hex::encode(random));
        let listener = directory.listen(&name).map_err(socket)?;
        let handler = RequestHandler { calls: Arc::downgrade(calls), deciders, patience };
        let accepting = tokio::spawn(accept(listener, directory.clone(), handler, peer));
        Ok(Self { directory, name, accepting })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.abort();
        self.directory.remove(&self.name);
    }
}

async fn accept(
    listener: UnixListener,
    directory: Arc<Directory>,
    handler: RequestHandler,
    peer: impl Fn(&UnixStream) -> io::Result<u32>,
) {
    // Connecting removes the sockets of servers that were killed. Live servers see a connection that ends without a
    // request.
    for name in directory.names().unwrap_or_default() {
        let _ = directory.connect(&name).await;
    }
    let handler = Arc::new(handler);
    let free = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(permit) = free.clone().acquire_owned().await else { return };
        match listener.accept().await.and_then(|(stream, _)| Ok((peer(&stream)?, stream))) {
            Ok((uid, stream)) => {
                let handler = handler.clone();
                // The task outlives the listener, so that the last decision is answered.
                tokio::spawn(async move {
                    let _permit = permit;
                    handler.serve(stream, uid).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection of `linux-sysadmin approve` was not accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Answers requests.
struct RequestHandler {
    calls: Weak<dyn WaitingCalls>,
    deciders: Deciders,
    patience: Duration,
}

impl RequestHandler {
    async fn serve(&self, mut stream: UnixStream, uid: u32) {
        // The request is read before anything is answered, because a client that still writes would not read the
        // response.
        let response = match message::read(&mut stream, LONGEST_REQUEST, self.patience).await {
            Ok(Some(request)) => self.answer(request, uid).await,
            Ok(None) => return,
            Err(error @ (LineError::TooLong(_) | LineError::Garbage(_) | LineError::Cut)) => {
                tracing::warn!(uid, %error, "a request at the socket of `linux-sysadmin approve` is invalid");
                Response::Error(error.to_string())
            }
            Err(error @ (LineError::Io(_) | LineError::Silent(_))) => {
                tracing::debug!(uid, %error, "a connection of `linux-sysadmin approve` was lost");
                return;
            }
        };
        let written = match message::write(&mut stream, &response, LONGEST_RESPONSE, self.patience).await {
            Err(error @ LineError::TooLong(_)) => {
                let why = Response::Error(format!("the waiting calls are too much to be shown: {error}"));
                message::write(&mut stream, &why, LONGEST_RESPONSE, self.patience).await
            }
            written => written,
        };
        if let Err(error) = written {
            tracing::debug!(uid, %error, "`linux-sysadmin approve` didn't take its response");
        }
    }

    async fn answer(&self, request: Request, uid: u32) -> Response {
        if let Err(why) = self.deciders.may(uid, rustix::process::geteuid().as_raw()) {
            tracing::warn!(uid, why, "an account that may not decide asked which calls wait");
            return Response::Error(format!("refused to the account {uid}: {why}"));
        }
        let Some(calls) = self.calls.upgrade() else {
            return Response::Error("the server is ending".to_owned());
        };
        match request {
            Request::List {} => Response::Waiting(calls.waiting().into_iter().map(without_plan).collect()),
            Request::Show { id } => Response::Waiting(
                calls.waiting().into_iter().find(|waiting| waiting.id == id).into_iter().collect(),
            ),
            Request::Decide { id, sha256, yes } => {
                let account = Account::of_uid(uid).map_or_else(|| uid.to_string(), |account| account.name);
                let decided = calls.decide(&id, &sha256, yes, Person { uid, account });
                // The server may end meanwhile.
                drop(calls);
                match decided {
                    Ok(beginning) => Response::Decided {
                        change: timeout(BEGINS_WITHIN, beginning).await.unwrap_or_default(),
                    },
                    Err(refused) => Response::Refused(refused),
                }
            }
        }
    }
}

/// The call as it stands in a list. All plans together would be too large for one response.
fn without_plan(waiting: WaitingCall) -> WaitingCall {
    WaitingCall { question: String::new(), preview: serde_json::Value::Null, ..waiting }
}
