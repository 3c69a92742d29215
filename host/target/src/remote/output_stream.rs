//! The output of a command behind SSH, read piece by piece while it runs.

use std::time::Duration;

use bytes::Bytes;

use super::channel::{ChannelEvent, RemoteCommand};
use crate::stream::KEPT_BYTES;
use host_base::Command;
use host_base::problem::Problem;

/// A running command whose stdout is read piece by piece. Dropping it ends the command.
pub struct RemoteOutputStream {
    running: RemoteCommand,
    program: String,
    limit: Duration,
    deadline: tokio::time::Instant,
    /// Output that arrived and wasn't asked for yet.
    rest: Bytes,
    stderr_start: Vec<u8>,
    said_anything: bool,
}

/// The bytes of stderr that are kept. They are enough to recognize a refusal of sudo.
const STDERR_KEPT: usize = 4 << 10;

impl RemoteOutputStream {
    pub(super) fn new(running: RemoteCommand, command: &Command) -> Self {
        let deadline = tokio::time::Instant::now() + command.timeout;
        let (program, limit) = (command.program.clone(), command.timeout);
        Self {
            running,
            program,
            limit,
            deadline,
            rest: Bytes::new(),
            stderr_start: Vec::new(),
            said_anything: false,
        }
    }

    /// Reads at most `max_bytes`, and at most 1 MiB. The result is empty at the end.
    pub async fn read(&mut self, max_bytes: u32) -> Result<Vec<u8>, Problem> {
        let most = (max_bytes as usize).clamp(1, KEPT_BYTES);
        while self.rest.is_empty() && !self.running.eof {
            match tokio::time::timeout_at(self.deadline, self.running.next()).await {
                Err(_) => return Err(self.timed_out().await),
                Ok(said) => match said? {
                    ChannelEvent::Out(piece) => self.rest = piece,
                    ChannelEvent::Err(piece) => {
                        let room = STDERR_KEPT.saturating_sub(self.stderr_start.len());
                        self.stderr_start.extend_from_slice(&piece[..piece.len().min(room)]);
                    }
                    ChannelEvent::Status | ChannelEvent::Eof => {}
                },
            }
        }
        if self.rest.is_empty() && !std::mem::replace(&mut self.said_anything, true) {
            self.unless_refused().await?;
        }
        self.said_anything = true;
        Ok(self.rest.split_to(most.min(self.rest.len())).into())
    }

    async fn timed_out(&mut self) -> Problem {
        let left = self.running.end().await;
        crate::command_problem::timed_out(&self.program, self.limit, left)
    }

    /// Returns a problem where the command wasn't run. A command without any output may not have been.
    async fn unless_refused(&mut self) -> Result<(), Problem> {
        while self.running.status().is_none() {
            match tokio::time::timeout_at(self.deadline, self.running.next()).await {
                Err(_) => return Err(self.timed_out().await),
                Ok(said) => drop(said?),
            }
        }
        if !self.running.out.is_past() {
            return Err(self.running.not_run_problem());
        }
        let exit_code = self.running.status().unwrap_or(0);
        match crate::command_problem::refused_by_sudo(exit_code, false, &self.stderr_start) {
            Some(said) => Err(crate::command_problem::refused(&self.program, &said)),
            None => Ok(()),
        }
    }
}
