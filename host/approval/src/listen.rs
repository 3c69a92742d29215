//! The server's end: a socket from the first call on that waits, to the end of the server.
//!
//! Who is at the other end, the kernel says. Whoever may not decide isn't told what waits either.

use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::directory::{Directory, DirectoryError};
use super::message::{self, Answer, LONGEST_ANSWER, LONGEST_QUESTION, LineError, PATIENCE, Question};
use super::{Parked, Person, Waiting};
use host_base::account::{Account, runtime_directory};

/// Connections at the same time; more wait to be accepted.
const AT_ONCE: usize = 8;
/// After a connection that couldn't be accepted: there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(200);
/// Below the directory that an account's servers share.
pub(super) const DIRECTORY: &str = "pending";

/// Who may see what waits, and decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deciders {
    /// The account that the server runs as, and root.
    Account,
    /// In system mode: root alone, and not even root where the client is root. For the account is the server itself, and
    /// who asks for a change doesn't approve it.
    Root {
        /// The client's uid.
        client: Option<u32>,
    },
}

impl Deciders {
    /// An error in words where `uid` may not. `own` is the server's.
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

/// Why nobody can be heard.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// No private place for the socket.
    #[error("there is no directory for `linux-sysadmin approve`: {0}")]
    Directory(#[from] DirectoryError),
    /// The system's own word.
    #[error("no socket for `linux-sysadmin approve` in {directory}: {source}")]
    Socket {
        /// Where.
        directory: String,
        /// Why.
        source: io::Error,
    },
}

/// Listens until it is dropped.
#[derive(Debug)]
pub struct Listener {
    directory: Arc<Directory>,
    name: String,
    accepting: JoinHandle<()>,
}

impl Listener {
    /// Begins to listen, within a runtime. `log` is the directory of the account's audit log, for where the system has no
    /// better place. What waits is not kept alive by it.
    pub fn start(parked: &Arc<dyn Parked>, log: &Path, deciders: Deciders) -> Result<Self, ListenError> {
        let shared = runtime_directory(rustix::process::geteuid().as_raw());
        let directory = shared.as_deref().unwrap_or(log).join(DIRECTORY);
        let peer = |stream: &UnixStream| Ok(stream.peer_cred()?.uid());
        Self::start_in(Directory::create(directory)?, parked, deciders, PATIENCE, peer)
    }

    /// In this directory; `peer` says who is at the other end.
    pub(super) fn start_in(
        directory: Directory,
        parked: &Arc<dyn Parked>,
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
        let desk = Desk { parked: Arc::downgrade(parked), deciders, patience };
        let accepting = tokio::spawn(accept(listener, directory.clone(), desk, peer));
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
    desk: Desk,
    peer: impl Fn(&UnixStream) -> io::Result<u32>,
) {
    // What servers that were killed have left; the others see a connection that says nothing and goes.
    for name in directory.names().unwrap_or_default() {
        let _ = directory.connect(&name).await;
    }
    let desk = Arc::new(desk);
    let free = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(permit) = free.clone().acquire_owned().await else { return };
        match listener.accept().await.and_then(|(stream, _)| Ok((peer(&stream)?, stream))) {
            Ok((uid, stream)) => {
                let desk = desk.clone();
                // Not ended with the listener: the answer to the last decision is still to be given.
                tokio::spawn(async move {
                    let _permit = permit;
                    desk.serve(stream, uid).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection of `linux-sysadmin approve` was not accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Where questions are answered.
struct Desk {
    parked: Weak<dyn Parked>,
    deciders: Deciders,
    patience: Duration,
}

impl Desk {
    async fn serve(&self, mut stream: UnixStream, uid: u32) {
        // Read before anything is answered: whoever still writes wouldn't come to read it.
        let answer = match message::read(&mut stream, LONGEST_QUESTION, self.patience).await {
            Ok(Some(question)) => self.answer(question, uid),
            Ok(None) => return,
            Err(error @ (LineError::TooLong(_) | LineError::Garbage(_) | LineError::Cut)) => {
                tracing::warn!(uid, %error, "a question at the socket of `linux-sysadmin approve` is none");
                Answer::Error(error.to_string())
            }
            Err(error @ (LineError::Io(_) | LineError::Silent(_))) => {
                tracing::debug!(uid, %error, "a connection of `linux-sysadmin approve` was lost");
                return;
            }
        };
        let written = match message::write(&mut stream, &answer, LONGEST_ANSWER, self.patience).await {
            Err(error @ LineError::TooLong(_)) => {
                let why = Answer::Error(format!("what waits is too much to be shown: {error}"));
                message::write(&mut stream, &why, LONGEST_ANSWER, self.patience).await
            }
            written => written,
        };
        if let Err(error) = written {
            tracing::debug!(uid, %error, "`linux-sysadmin approve` didn't take its answer");
        }
    }

    fn answer(&self, question: Question, uid: u32) -> Answer {
        if let Err(why) = self.deciders.may(uid, rustix::process::geteuid().as_raw()) {
            tracing::warn!(uid, why, "an account that may not decide asked what waits");
            return Answer::Error(format!("refused to the account {uid}: {why}"));
        }
        let Some(parked) = self.parked.upgrade() else {
            return Answer::Error("the server is ending".to_owned());
        };
        match question {
            Question::List {} => Answer::Waiting(parked.waiting().into_iter().map(without_plan).collect()),
            Question::Show { id } => Answer::Waiting(
                parked.waiting().into_iter().find(|waiting| waiting.id == id).into_iter().collect(),
            ),
            Question::Decide { id, sha256, yes } => {
                let account = Account::of_uid(uid).map_or_else(|| uid.to_string(), |account| account.name);
                match parked.decide(&id, &sha256, yes, Person { uid, account }) {
                    Ok(()) => Answer::Decided {},
                    Err(refused) => Answer::Refused(refused),
                }
            }
        }
    }
}

/// As in a list: the plans of all would be too much for one answer.
fn without_plan(waiting: Waiting) -> Waiting {
    Waiting { question: String::new(), preview: serde_json::Value::Null, ..waiting }
}
