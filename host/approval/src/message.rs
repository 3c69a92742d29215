//! What goes over the socket: one line of JSON as question, one as answer, then the connection ends.
//!
//! A line has a longest length and a time by which it must be there, both ways.

use std::io;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{Refused, Waiting};

/// Bytes of a question: an id, a sum and a word.
pub(super) const LONGEST_QUESTION: u64 = 4 << 10;
/// Bytes of an answer: one plan, as text and as data.
pub(super) const LONGEST_ANSWER: u64 = 32 << 20;
/// For a line to come, and to be taken; those who write are programs.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Question {
    /// What waits, without the plans.
    List {},
    /// One call, with its plan.
    Show {
        /// The whole of it.
        id: String,
    },
    /// Decides one.
    Decide {
        /// The whole of it.
        id: String,
        /// Of the plan that was shown.
        sha256: String,
        /// Or no.
        yes: bool,
    },
}

/// What is answered.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// To `List`, and to `Show`: that one, or none.
    Waiting(Vec<Waiting>),
    /// To `Decide`: as it was asked.
    Decided {},
    /// To `Decide`: it was not.
    Refused(Refused),
    /// To anything: not from this account, or not understood. In words.
    Error(String),
}

/// Why there is no line.
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

/// Reads one line; none where the other end says nothing and goes.
pub(super) async fn read<T: DeserializeOwned>(
    stream: &mut UnixStream,
    longest: u64,
    patience: Duration,
) -> Result<Option<T>, LineError> {
    let mut line = Vec::new();
    // What follows the line isn't for anybody.
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
