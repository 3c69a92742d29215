//! The output of a command, which is read as it comes and cut at its limit.

use std::collections::VecDeque;

use bytes::BufMut;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::process_group::ProcessGroup;
use crate::command_problem::{LEFTOVER, refused, refused_by_sudo, stopped};
use host_base::output_buffer::StreamWriter;
use host_base::problem::Problem;
use host_base::{Command, Keep, Output};
use host_text::redact::redact;
use host_text::visible::excerpt;

/// The bytes that are kept of each of a command's two streams.
pub(super) const KEPT_BYTES: usize = 1 << 20;

/// The kept part of one stream, and its whole size. It is consistent at any time, because reading may be stopped.
#[derive(Default)]
pub(super) struct Captured {
    output_buffer: Option<StreamWriter>,
    kept: VecDeque<u8>,
    last: Option<u8>,
    newlines: u64,
    pub(super) total_bytes: u64,
    pub(super) truncated: bool,
}

impl Captured {
    /// Captures one stream of this command.
    pub(super) fn of(command: &Command) -> Self {
        let output_buffer = command.output_buffer.as_ref().map(|buffer| buffer.open_stream());
        Self { output_buffer, ..Self::default() }
    }

    pub(super) fn add(&mut self, piece: &[u8], keep: Keep) {
        if let Some(buffer) = &self.output_buffer {
            buffer.write(piece);
        }
        self.total_bytes += piece.len() as u64;
        self.newlines += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.last = piece.last().copied().or(self.last);
        match keep {
            Keep::Head => {
                let room = KEPT_BYTES - self.kept.len();
                self.kept.extend(&piece[..piece.len().min(room)]);
            }
            Keep::Tail => {
                self.kept.extend(piece);
                self.kept.drain(..self.kept.len().saturating_sub(KEPT_BYTES));
            }
        }
        self.truncated = self.total_bytes > KEPT_BYTES as u64;
    }

    /// Returns the number of lines of the whole stream. A last line needs no newline.
    pub(super) fn total_lines(&self) -> u64 {
        self.newlines + u64::from(self.last.is_some_and(|byte| byte != b'\n'))
    }

    /// Makes this the stdout of a command whose output so far has its stderr.
    pub(super) fn into_stdout_of(self, output: &mut Output) {
        output.truncated |= self.truncated;
        output.stdout_bytes = self.total_bytes;
        output.stdout_lines = self.total_lines();
        output.stdout = self.into_bytes();
    }

    /// Adds what was kept of another stream.
    pub(super) fn append(&mut self, other: Self, keep: Keep) {
        let is_cut = self.truncated || other.truncated;
        self.add(&other.into_bytes(), keep);
        self.truncated |= is_cut;
    }

    /// Returns the bytes that were kept.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.kept.into()
    }
}

/// The lines of output that are quoted when a command is stopped.
const LAST_LINES: usize = 3;
const LAST_WORDS: usize = 500;

/// The member of an error that holds the output of a command that was stopped.
const OUTPUT_SO_FAR: &str = "output_so_far";
/// The bytes of each stream that it holds at most.
const SO_FAR_BYTES: usize = 16 << 10;

/// Adds the output so far to the problem. The last lines, which tell where the command hung, are in the message as well.
/// Secrets are taken out before anything is cut, because half a secret isn't recognized.
pub(super) fn with_output_so_far(mut problem: Problem, keep: Keep, out: Captured, err: Captured) -> Problem {
    let is_cut = out.truncated || err.truncated;
    let said = [out, err].map(|stream| redact(&String::from_utf8_lossy(&stream.into_bytes())).into_owned());
    let lines = said.iter().flat_map(|said| said.lines()).map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" / ");
    if last.is_empty() {
        return problem;
    }
    problem.message.push_str(&format!("; until then it said: {}", excerpt(&last, LAST_WORDS)));
    let [stdout, stderr] = said.each_ref().map(|said| match keep {
        Keep::Head => &said[..said.floor_char_boundary(SO_FAR_BYTES)],
        Keep::Tail => &said[said.ceil_char_boundary(said.len().saturating_sub(SO_FAR_BYTES))..],
    });
    let is_cut = is_cut || said.iter().any(|said| said.len() > SO_FAR_BYTES);
    problem.detail(OUTPUT_SO_FAR, json!({"stdout": stdout, "stderr": stderr, "truncated": is_cut}))
}

/// The bytes that are read at once. Most commands print little, and a call may run dozens of them at once.
const FIRST_CHUNK: usize = 4 << 10;
/// The bytes that are read at once where a command prints more: all that a pipe holds.
const FURTHER_CHUNKS: usize = 64 << 10;

/// Collects output into `captured` until the end of the stream.
pub(super) async fn capture(mut source: impl AsyncRead + Unpin, keep: Keep, captured: &mut Captured) {
    let mut chunk = Vec::with_capacity(FIRST_CHUNK);
    // After a read error, nothing more comes from a pipe.
    while let Ok(1..) = source.read_buf(&mut chunk).await {
        captured.add(&chunk, keep);
        let is_full = chunk.len() == chunk.capacity();
        chunk.clear();
        if is_full {
            chunk.reserve(FURTHER_CHUNKS);
        }
    }
}

/// The bytes of stderr that are kept. They are enough to recognize a refusal of sudo.
const STDERR_KEPT: usize = 4 << 10;

/// A running command whose stdout is read piece by piece. Dropping it ends the command.
pub struct LocalOutputStream {
    stdout: ChildStdout,
    stderr_start: AbortOnDrop<Vec<u8>>,
    said_anything: bool,
    /// The time at which the command is stopped.
    deadline: Instant,
    program: String,
    group: ProcessGroup,
}

/// A task that ends with its owner.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl LocalOutputStream {
    pub(super) fn new(
        stdout: ChildStdout,
        stderr: Option<ChildStderr>,
        deadline: Instant,
        program: String,
        group: ProcessGroup,
    ) -> Self {
        // With a larger pipe, the command goes on while a guest computes. Only a limit of the account can refuse that,
        // and then the command waits.
        let _ = rustix::pipe::fcntl_setpipe_size(&stdout, KEPT_BYTES);
        let stderr_start = AbortOnDrop(tokio::spawn(async move {
            let Some(stderr) = stderr else { return Vec::new() };
            let (mut stderr_start, mut rest) = (Vec::new(), stderr.take(STDERR_KEPT as u64));
            let _ = rest.read_to_end(&mut stderr_start).await;
            // The rest isn't used, but it has to be read.
            let _ = tokio::io::copy(&mut rest.into_inner(), &mut tokio::io::sink()).await;
            stderr_start
        }));
        Self { stdout, stderr_start, said_anything: false, deadline, program, group }
    }

    /// Reads at most `max_bytes`, and at most 1 MiB. The result is empty at the end.
    pub async fn read(&mut self, max_bytes: u32) -> Result<Vec<u8>, Problem> {
        let most = (max_bytes as usize).clamp(1, KEPT_BYTES);
        // The buffer isn't filled with zeros: most pieces are small, and that would take longer than the reading.
        let mut piece = Vec::with_capacity(most);
        let mut room = (&mut piece).limit(most);
        let reading =
            tokio::time::timeout_at(self.deadline, read(&mut self.stdout, &mut self.group, &mut room));
        let Ok(read) = reading.await else { return Err(self.timed_out().await) };
        let count = read.map_err(|error| Problem::io("reading the output", &error))?;
        if count == 0 && !std::mem::replace(&mut self.said_anything, true) {
            self.unless_refused().await?;
        }
        self.said_anything = true;
        Ok(piece)
    }

    /// Returns a problem where the command wasn't run. A command without any output may not have been.
    async fn unless_refused(&mut self) -> Result<(), Problem> {
        let ending = async { (self.group.wait().await, (&mut self.stderr_start.0).await) };
        let Ok((status, stderr_start)) = tokio::time::timeout_at(self.deadline, ending).await else {
            return Err(self.timed_out().await);
        };
        self.group.leader_ended();
        let exit_code = status.ok().and_then(|status| status.code()).unwrap_or(0);
        match refused_by_sudo(exit_code, false, &stderr_start.unwrap_or_default()) {
            Some(said) => Err(refused(&self.program, &said)),
            None => Ok(()),
        }
    }

    async fn timed_out(&mut self) -> Problem {
        stopped(&format!("{} took longer than it may", self.program), self.group.end().await)
    }
}

/// Reads a piece. Once the command has ended, a process that it left behind and that holds its stdout is ended.
async fn read(
    stdout: &mut ChildStdout,
    group: &mut ProcessGroup,
    piece: &mut impl BufMut,
) -> std::io::Result<usize> {
    let ended = async {
        let _ = group.wait().await;
        tokio::time::sleep(LEFTOVER).await;
    };
    tokio::select! {
        biased;
        read = stdout.read_buf(piece) => read,
        () = ended => {
            group.leader_ended();
            Ok(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn captured(input: &[u8], keep: Keep) -> Captured {
        let mut captured = Captured::default();
        capture(input, keep, &mut captured).await;
        captured
    }

    #[tokio::test]
    async fn the_kept_end_is_the_one_asked_for_and_the_rest_is_counted() {
        let mut input = b"first\n".to_vec();
        input.resize(KEPT_BYTES + 100, b'x');
        input.extend_from_slice(b"\nlast");
        for (keep, begins, ends) in
            [(Keep::Head, &b"first\n"[..], &b"xxx"[..]), (Keep::Tail, b"xxx", b"\nlast")]
        {
            let captured = captured(&input, keep).await;
            assert!(captured.truncated);

            assert_eq!(captured.total_bytes, input.len() as u64);
            assert_eq!(captured.total_lines(), 3);
            let bytes = captured.into_bytes();
            assert_eq!(bytes.len(), KEPT_BYTES);
            assert!(bytes.starts_with(begins) && bytes.ends_with(ends));
        }
    }

    #[tokio::test]
    async fn lines_are_counted_with_and_without_a_last_newline() {
        for (input, lines) in [(&b""[..], 0), (b"a", 1), (b"a\n", 1), (b"a\n\nb", 3)] {
            let captured = captured(input, Keep::Head).await;
            assert_eq!(captured.total_lines(), lines, "{input:?}");
            assert!(!captured.truncated);
        }
    }
}
