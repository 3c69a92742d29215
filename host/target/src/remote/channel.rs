//! One command or one pipeline behind SSH, with a channel, a session and a process group of its own.
//!
//! Closing a channel ends nothing on the other side. A command that has to end is therefore killed there by its
//! process id, over another channel. A script of the host's prints that id first, on both streams. Output before it
//! comes from the login shell's start-up files.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use russh::client::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tokio::io::AsyncWriteExt;
use tokio::sync::OwnedSemaphorePermit;

use super::connection::Connection;
use super::exit_codes::ExitCodes;
use crate::command_problem::{cancelled, timed_out};
use crate::pipeline::{Pipeline, sole};
use crate::rights::EndMethod;
use crate::stream::{Captured, with_output_so_far};
use host_base::problem::{Category, Problem};
use host_base::{Command, Keep, Output};
use host_text::redact::excerpt;

/// The time that the connection may be silent after the command itself has ended before the server is asked whether more
/// comes. A process that the command left behind may hold the pipe.
const LEFTOVER: Duration = Duration::from_millis(250);
/// The number of answers of the server in a row, without output between them, after which the pipe of an ended command is
/// empty.
const QUIET_ANSWERS: usize = 2;
/// The time that the host waits, after the command has ended, for output that is still on its way over a slow connection.
/// It doesn't listen longer to a process that the command left behind and that goes on printing.
const ON_ITS_WAY: Duration = Duration::from_secs(60);
/// The time that the host waits for the process id of a command that it has to end.
const STARTING: Duration = Duration::from_secs(30);
/// The bytes that are kept of output before the command's own. It is shown where the command never started.
const NOISE_KEPT: usize = 16 << 10;
/// The most bytes of a process id and the newline after it.
const LONGEST_PID: usize = 12;
/// The number of standard error, RFC 4254, section 5.2.
const STDERR: u32 = 1;

/// The reason why a command has no output.
#[derive(Debug)]
pub(super) enum StartError {
    /// The command was not started.
    NotStarted(Problem),
    /// The command may have been started.
    MaybeStarted(Problem),
}

impl StartError {
    pub(super) fn into_problem(self) -> Problem {
        match self {
            Self::NotStarted(problem) | Self::MaybeStarted(problem) => problem,
        }
    }
}

/// A command that was started.
pub(super) struct RemoteCommand {
    connection: Arc<Connection>,
    /// The connection over which the command is ended. On the command's own connection, output that nobody reads would
    /// be in the way.
    ending_connection: Arc<Connection>,
    /// The two halves of the channel. If this is dropped before the command's end was seen, the command is ended.
    halves: Option<(ChannelReadHalf, ChannelWriteHalf<Msg>)>,
    permit: Option<OwnedSemaphorePermit>,
    pub(super) out: MarkedStream,
    err: MarkedStream,
    ends: EndMethod,
    /// Takes the exit codes out of stderr, where several commands run.
    pub(super) exit_codes: Option<ExitCodes>,
    status: Option<i32>,
    pub(super) eof: bool,
}

/// An event that a channel reports.
pub(super) enum ChannelEvent {
    Out(Bytes),
    Err(Bytes),
    /// The command has ended.
    Status,
    /// The output has ended.
    Eof,
}

impl RemoteCommand {
    /// Starts a command, and feeds its standard input.
    pub(super) async fn start(
        connection: &Arc<Connection>,
        ending_connection: &Arc<Connection>,
        line: String,
        stdin: Option<Vec<u8>>,
        ends: EndMethod,
    ) -> Result<Self, StartError> {
        let (channel, permit) = connection.channel().await.map_err(StartError::NotStarted)?;
        let (read, write) = channel.split();
        let mut writer = write.make_writer();
        let halves = Some((read, write));
        let (out, err) = (MarkedStream::new(connection.nonce()), MarkedStream::new(connection.nonce()));
        let running = Self {
            connection: connection.clone(),
            ending_connection: ending_connection.clone(),
            halves,
            permit: Some(permit),
            out,
            err,
            ends,
            exit_codes: None,
            status: None,
            eof: false,
        };
        // From here on, dropping this ends the command.
        if let Some((_, write)) = &running.halves
            && write.exec(true, line).await.is_err()
        {
            return Err(StartError::MaybeStarted(running.lost().await));
        }
        tokio::spawn(async move {
            // A program that doesn't read all of its input has its own reasons, and its own exit code.
            if let Some(stdin) = stdin {
                let _ = writer.write_all(&stdin).await;
            }
            let _ = writer.shutdown().await;
        });
        Ok(running)
    }

    /// Returns the next event of the channel.
    pub(super) async fn next(&mut self) -> Result<ChannelEvent, Problem> {
        loop {
            let Some((read, _)) = &mut self.halves else { return Ok(ChannelEvent::Eof) };
            match read.wait().await {
                Some(ChannelMsg::Data { data }) => {
                    let own_part = self.out.own_part(data);
                    if !own_part.is_empty() {
                        return Ok(ChannelEvent::Out(own_part));
                    }
                }
                Some(ChannelMsg::ExtendedData { data, ext: STDERR }) => {
                    let mut own_part = self.err.own_part(data);
                    if let Some(exit_codes) = &mut self.exit_codes {
                        own_part = exit_codes.own_part(own_part);
                    }
                    if !own_part.is_empty() {
                        return Ok(ChannelEvent::Err(own_part));
                    }
                }
                Some(ChannelMsg::ExitStatus { exit_status }) => {
                    self.status = Some(exit_status.cast_signed());
                    return Ok(ChannelEvent::Status);
                }
                Some(ChannelMsg::ExitSignal { signal_name, .. }) => {
                    self.status = Some(128 + signal_number(&signal_name));
                    return Ok(ChannelEvent::Status);
                }
                Some(ChannelMsg::Failure) => {
                    self.status = Some(-1);
                    let message = "the SSH server doesn't let this account run commands";
                    return Err(Problem::new("COMMANDS_REFUSED", Category::Privilege, message));
                }
                Some(ChannelMsg::Eof) => {
                    self.eof = true;
                    return Ok(ChannelEvent::Eof);
                }
                // This is how the end of the connection shows.
                None if self.status.is_none() => return Err(self.lost().await),
                Some(ChannelMsg::Close) | None => {
                    self.eof = true;
                    return match self.status {
                        Some(_) => Ok(ChannelEvent::Eof),
                        None => Err(self.lost().await),
                    };
                }
                Some(_) => {}
            }
        }
    }

    /// Waits for the end of the command, or for its timeout.
    pub(super) async fn finish(self, command: &Command) -> Result<Output, Problem> {
        sole(self.finish_unless(command.into(), std::future::pending()).await?)
    }

    /// Does the same for a pipeline, or ends it when `stop` is ready. Where it can't be told to end, the connection is the
    /// problem.
    pub(super) async fn finish_unless(
        mut self,
        pipeline: Pipeline<'_>,
        stop: impl Future<Output = ()>,
    ) -> Result<Vec<Output>, Problem> {
        let (started, limit, last) = (Instant::now(), pipeline.limit(), pipeline.last());
        let (mut out, mut err) = (Captured::of(last), Captured::of(last));
        let (ended, is_told) = tokio::select! {
            ended = tokio::time::timeout(limit, self.collect(last.keep, &mut out, &mut err)) => (ended.ok(), false),
            () = stop => (None, true),
        };
        if let Some(exit_codes) = &mut self.exit_codes {
            err.add(&exit_codes.take_rest(), last.keep);
        }
        let stopped = |left, out, err| {
            with_output_so_far(timed_out(&pipeline.name(), limit, left), last.keep, out, err)
        };
        let Some(ended) = ended else {
            let left = self.end().await;
            return Err(match left && self.connection.is_closed() {
                true => self.connection.lost(),
                false if is_told && left => may_go_on(&pipeline.name()),
                false if is_told => cancelled(&pipeline.name()),
                false => stopped(left, out, err),
            });
        };
        ended?;
        if !self.out.is_past() {
            return Err(self.not_run_problem());
        }
        let status = self.status.unwrap_or(-1);
        self.close_ended();
        let exit_codes = match &self.exit_codes {
            None => vec![status],
            Some(exit_codes) => match exit_codes.of_all(status) {
                Some(exit_codes) => exit_codes,
                None => return Err(with_output_so_far(ended_early(status), last.keep, out, err)),
            },
        };
        if started.elapsed() >= limit && exit_codes.iter().any(|exit_code| self.ends.was_backstop(*exit_code))
        {
            return Err(stopped(false, out, err));
        }
        let duration = started.elapsed();
        let output = |exit_code| Output { exit_code, duration, ..Output::default() };
        let mut outputs: Vec<Output> = exit_codes.into_iter().map(output).collect();
        if let Some(last) = outputs.last_mut() {
            last.truncated = err.truncated;
            last.stderr = err.into_bytes();
            out.into_stdout_of(last);
        }
        Ok(outputs)
    }

    /// Returns what the channel says after the command has ended, and `None` once no output of the command can come any
    /// more.
    ///
    /// sshd tells the end of a command before it has sent all of its output, and ends the channel only when every process
    /// has closed the pipe. Silence means nothing on a busy machine, so the server is asked: sshd reads the pipe in the same
    /// turn of its loop in which it answers a request. Where it had no room to send, it has after the first answer.
    async fn next_after_end(&mut self, ended: tokio::time::Instant) -> Result<Option<ChannelEvent>, Problem> {
        let rest = ON_ITS_WAY.saturating_sub(ended.elapsed());
        if rest.is_zero() {
            return Ok(None);
        }
        if let Ok(said) = tokio::time::timeout(LEFTOVER.min(rest), self.next()).await {
            return said.map(Some);
        }
        let connection = self.connection.clone();
        for _ in 0..QUIET_ANSWERS {
            tokio::select! {
                biased;
                said = self.next() => return said.map(Some),
                answered = connection.round_trip() => if answered.is_err() {
                    return Ok(None);
                },
            }
        }
        // What the server sent before its last answer has reached the channel.
        self.next().now_or_never().transpose()
    }

    async fn collect(&mut self, keep: Keep, out: &mut Captured, err: &mut Captured) -> Result<(), Problem> {
        let mut ended: Option<tokio::time::Instant> = None;
        loop {
            let said = match ended {
                None => self.next().await?,
                Some(at) => match self.next_after_end(at).await? {
                    Some(said) => said,
                    None => {
                        self.end_leftovers();
                        return Ok(());
                    }
                },
            };
            match said {
                ChannelEvent::Out(piece) => out.add(&piece, keep),
                ChannelEvent::Err(piece) => err.add(&piece, keep),
                ChannelEvent::Status => ended = Some(tokio::time::Instant::now()),
                ChannelEvent::Eof if self.status.is_some() => return Ok(()),
                ChannelEvent::Eof => {}
            }
            if self.eof && self.status.is_some() {
                return Ok(());
            }
        }
    }

    /// Returns the exit code, if the command has ended.
    pub(super) fn status(&self) -> Option<i32> {
        self.status
    }

    /// Ends the process that the command left behind and that holds a stream.
    fn end_leftovers(&mut self) {
        if let (Some(pid), EndMethod::Group) = (self.out.pid.or(self.err.pid), self.ends) {
            self.ending_connection.end(pid, EndMethod::Group);
        }
    }

    /// Ends the command and all that it started, and waits for it. Returns whether any process may be left.
    pub(super) async fn end(&mut self) -> bool {
        let Some((mut read, write)) = self.halves.take() else { return false };
        let permit = self.permit.take();
        if self.status.is_some() {
            return false;
        }
        let left = end(&self.ending_connection, &mut read, std::mem::take(&mut self.out), self.ends).await;
        drop(read);
        close(write).await;
        drop(permit);
        left
    }

    /// Closes the channel of a command that has ended.
    fn close_ended(&mut self) {
        let Some((_, write)) = self.halves.take() else { return };
        let permit = self.permit.take();
        self.connection.spawn(async move {
            close(write).await;
            drop(permit);
        });
    }

    /// Returns the problem where the line never reached the host's script.
    pub(super) fn not_run_problem(&mut self) -> Problem {
        let said = [&self.err.noise[..], &self.out.noise].concat();
        let said = match excerpt(String::from_utf8_lossy(&said).trim(), 300) {
            said if said.is_empty() => said,
            said => format!(" and said: {said}"),
        };
        let status = self.status.unwrap_or(-1);
        self.close_ended();
        let message = format!(
            "this account runs no commands: its login shell, or what is forced upon it, ended with {status}{said}"
        );
        Problem::new("COMMANDS_REFUSED", Category::Privilege, message)
            .remedy("Give the account a login shell that runs commands: dash, bash, zsh or fish")
            .remedy("Look for ForceCommand in that host's sshd_config, and for command= in authorized_keys")
    }

    async fn lost(&self) -> Problem {
        match self.connection.is_closed() {
            true => self.connection.lost(),
            // The end of a connection reaches its channels first.
            false => match tokio::time::timeout(LEFTOVER, self.connection.closed()).await {
                Ok(()) => self.connection.lost(),
                Err(_) => Problem::new(
                    "IO_ERROR",
                    Category::Other,
                    "the SSH server closed the channel and didn't say how the command ended",
                ),
            },
        }
    }
}

impl Drop for RemoteCommand {
    fn drop(&mut self) {
        let Some((mut read, write)) = self.halves.take() else { return };
        if self.status.is_some() {
            let permit = self.permit.take();
            self.connection.spawn(async move {
                close(write).await;
                drop(permit);
            });
            return;
        }
        let (connection, ends, permit) = (self.ending_connection.clone(), self.ends, self.permit.take());
        let out = std::mem::take(&mut self.out);
        self.connection.spawn(async move {
            end(&connection, &mut read, out, ends).await;
            drop(read);
            close(write).await;
            drop(permit);
        });
    }
}

/// Ends a command once its process id is known. Returns whether any process may be left.
async fn end(
    connection: &Arc<Connection>,
    read: &mut ChannelReadHalf,
    mut out: MarkedStream,
    ends: EndMethod,
) -> bool {
    let starting = async {
        while out.pid.is_none() {
            match read.wait().await {
                Some(ChannelMsg::Data { data }) => drop(out.own_part(data)),
                Some(_) => {}
                None => break,
            }
        }
        out.pid
    };
    match tokio::time::timeout(STARTING, starting).await {
        // Its further output is read, because unread it would hold up all other channels.
        Ok(Some(pid)) => tokio::select! {
            left = connection.kill(pid, ends) => left,
            () = drain_forever(read) => true,
        },
        // Without a process id, the command hadn't started, or its end can't be told.
        Ok(None) => false,
        Err(_) => true,
    }
}

/// Reads and drops all that a channel says, and never returns.
pub(super) async fn drain_forever(read: &mut ChannelReadHalf) {
    while read.wait().await.is_some() {}
    std::future::pending().await
}

/// The problem of a command that was told to stop and didn't.
fn may_go_on(program: &str) -> Problem {
    let message = format!("{program} was told to stop and may go on all the same");
    Problem::new("IO_ERROR", Category::Other, message)
}

/// The problem of a pipeline whose shell ended before it told the exit codes.
fn ended_early(status: i32) -> Problem {
    let message = format!("the shell around the commands ended early, with exit code {status}");
    Problem::new("IO_ERROR", Category::Other, message)
}

/// Closes a channel. Nobody waits for the answer, or for a connection that takes no more data.
pub(super) async fn close(write: ChannelWriteHalf<Msg>) {
    let _ = tokio::time::timeout(LEFTOVER, write.close()).await;
}

/// A stream whose first part, before the host's marker, isn't the command's own.
#[derive(Default)]
pub(super) struct MarkedStream {
    marker: Vec<u8>,
    noise: Vec<u8>,
    pid: Option<u32>,
}

impl MarkedStream {
    fn new(nonce: &str) -> Self {
        Self { marker: format!("{nonce} ").into_bytes(), noise: Vec::new(), pid: None }
    }

    pub(super) fn is_past(&self) -> bool {
        self.pid.is_some()
    }

    /// Returns the part of a piece that is the command's own.
    fn own_part(&mut self, piece: Bytes) -> Bytes {
        if self.is_past() {
            return piece;
        }
        self.noise.extend_from_slice(&piece);
        let at = self.noise.windows(self.marker.len()).position(|window| window == self.marker);
        if let Some(at) = at {
            let said = &self.noise[at + self.marker.len()..];
            let (end, is_long) =
                (said.iter().take(LONGEST_PID).position(|byte| *byte == b'\n'), said.len() >= LONGEST_PID);
            if end.is_none() && is_long {
                // No process id is so long, and so this isn't the host's script.
                self.noise.drain(..at + self.marker.len());
                return Bytes::new();
            }
            if let Some(end) = end {
                self.pid = std::str::from_utf8(&said[..end]).ok().and_then(|pid| pid.parse().ok());
                let own_part = Bytes::copy_from_slice(&said[end + 1..]);
                self.noise = Vec::new();
                return own_part;
            }
        } else if self.noise.len() > 2 * NOISE_KEPT {
            self.noise.drain(..self.noise.len() - NOISE_KEPT);
        }
        Bytes::new()
    }
}

/// Returns the number of a signal, which shells add to 128. See signal(7); most architectures use these numbers.
fn signal_number(signal: &russh::Sig) -> i32 {
    use russh::Sig;
    match signal {
        Sig::HUP => 1,
        Sig::INT => 2,
        Sig::QUIT => 3,
        Sig::ILL => 4,
        Sig::ABRT => 6,
        Sig::FPE => 8,
        Sig::KILL => 9,
        Sig::USR1 => 10,
        Sig::SEGV => 11,
        Sig::PIPE => 13,
        Sig::ALRM => 14,
        Sig::TERM => 15,
        Sig::Custom(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_login_shell_prints_before_the_command_is_not_the_commands() {
        for pieces in [
            &["motd\nhelloN0 77\nown N0 78\n"][..],
            &["N0 77\n", "own N0 78\n"],
            &["", "motd", "\nN", "0 7", "7\no", "wn N0 78\n"],
        ] {
            let mut marked = MarkedStream::new("N0");
            let own_part: Vec<u8> = pieces
                .iter()
                .flat_map(|piece| marked.own_part(Bytes::from_static(piece.as_bytes())))
                .collect();
            assert_eq!((own_part.as_slice(), marked.pid), (&b"own N0 78\n"[..], Some(77)), "{pieces:?}");
        }
    }

    #[test]
    fn endless_noise_is_bounded_and_the_command_is_found_behind_it() {
        let mut marked = MarkedStream::new("N0");
        for _ in 0..100 {
            assert!(marked.own_part(Bytes::from(vec![b'x'; 4096])).is_empty());
            assert!(marked.noise.len() <= 2 * NOISE_KEPT + 4096);
        }
        assert_eq!(marked.own_part(Bytes::from_static(b"N0 5\nabc")), "abc");
    }

    #[test]
    fn a_marker_without_a_number_is_noise_and_is_bounded() {
        let mut marked = MarkedStream::new("N0");
        for _ in 0..100 {
            assert!(marked.own_part(Bytes::from([b"N0 ".as_slice(), &vec![b'7'; 4096]].concat())).is_empty());
            assert!(marked.noise.len() <= 2 * NOISE_KEPT + 4200, "{}", marked.noise.len());
        }
        assert_eq!(
            (marked.own_part(Bytes::from_static(b"\nN0 5\nabc")), marked.pid),
            ("abc".into(), Some(5))
        );
    }
}
