//! The messages on the socket: a request and a response, each as one line of JSON, after which the connection ends.
//!
//! A line has a limited length and a limited time in both directions.

use std::io;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{Beginning, Refused, WaitingCall};

/// The number of bytes of a request, which holds an id, a hash and a word.
pub(super) const LONGEST_REQUEST: u64 = 4 << 10;
/// The number of bytes of a response, which holds one plan as text and as data.
pub(super) const LONGEST_RESPONSE: u64 = 32 << 20;
/// The time for reading or writing a line. Both ends are programs.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// The time for which a decision waits for what comes of it. The plan is made anew meanwhile.
pub(super) const BEGINS_WITHIN: Duration = Duration::from_secs(60);

/// A request to a server.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Request {
    /// Asks for all waiting calls, without their plans.
    List {},
    /// Asks for one call with its plan.
    Show {
        /// The whole id of the call.
        id: String,
    },
    /// Decides a call.
    Decide {
        /// The whole id of the call.
        id: String,
        /// The SHA-256 of the plan that was shown.
        sha256: String,
        /// True where the plan may run.
        yes: bool,
    },
}

/// The response of a server.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Response {
    /// The response to `List`, and to `Show` with one call or none.
    Waiting(Vec<WaitingCall>),
    /// The response to `Decide` where the decision was taken, once it is known what comes of it.
    Decided {
        /// The consequence of the decision so far.
        #[serde(default)]
        change: Beginning,
    },
    /// The response to `Decide` where it was not taken.
    Refused(Refused),
    /// The response to a request that isn't understood, or isn't allowed to this account.
    Error(String),
}

/// The reason why no line was read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the other end was silent for {0:?}")]
    Silent(Duration),
    #[error("the connection ended before a whole line had come")]
    Cut,
    #[error("expected a line of at most {0} bytes")]
    TooLong(u64),
    #[error("expected a line of JSON as this version of linux-sysadmin writes it: {0}")]
    Garbage(#[from] serde_json::Error),
}

/// Reads one line. None where the other end closes the connection without one.
pub(super) async fn read<T: DeserializeOwned>(
    stream: &mut UnixStream,
    longest: u64,
    patience: Duration,
) -> Result<Option<T>, LineError> {
    let mut line = Vec::new();
    // Anything after the line is ignored.
    let mut reader = BufReader::new(stream).take(longest);
    timeout(patience, reader.read_until(b'\n', &mut line))
        .await
        .map_err(|_| LineError::Silent(patience))??;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(serde_json::from_slice(&line)?)),
        Some(_) if line.len() as u64 == longest => Err(LineError::TooLong(longest)),
        Some(_) => Err(LineError::Cut),
    }
}

/// Writes one line.
pub(super) async fn write<T: Serialize>(
    stream: &mut UnixStream,
    message: &T,
    longest: u64,
    patience: Duration,
) -> Result<(), LineError> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    if line.len() as u64 > longest {
        return Err(LineError::TooLong(longest));
    }
    timeout(patience, stream.write_all(&line)).await.map_err(|_| LineError::Silent(patience))??;
    Ok(())
}
