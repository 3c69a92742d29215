//! One command behind SSH: a channel, a session and a process group of its own.
//!
//! Closing a channel ends nothing on the other side, so whatever is to end is killed there, by its number, over another
//! channel. A script of ours says that number first, on both streams: what comes before it is the login shell's own, of
//! start-up files that print something.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use russh::client::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tokio::io::AsyncWriteExt;
use tokio::sync::OwnedSemaphorePermit;

use super::link::Link;
use super::quote;
use crate::cancelled;
use crate::rights::Ends;
use crate::stream::{Captured, KEPT_BYTES, with_last_words};
use host_base::problem::{Category, Problem};
use host_base::{Command, Keep, Output};
use host_text::redact::excerpt;

/// How long the connection may be silent once the command itself has ended: a process that it left behind may hold the
/// pipe.
const LEFTOVER: Duration = Duration::from_millis(250);
/// How long what the command has said may be on its way once it has ended, over a slow connection. A process that it left
/// behind and that goes on talking is listened to no longer.
const ON_ITS_WAY: Duration = Duration::from_secs(60);
/// How long a command's number is waited for that is to be ended before it was told.
const STARTING: Duration = Duration::from_secs(30);
/// What comes before a command's own output is kept so far, to be shown where the command never came.
const NOISE: usize = 16 << 10;
/// A login shell takes the line as one argument, and the kernel takes none that is longer (MAX_ARG_STRLEN).
const LONGEST: usize = 128 << 10;
/// Bytes of a process's number and the newline behind it.
const NUMBER: usize = 12;
/// Standard error, RFC 4254, section 5.2.
const STDERR: u32 = 1;

/// Data is only ever one of its arguments.
const SCRIPT: &str = r#"echo "$0 $$"; echo "$0 $$" >&2; exec "$@""#;

/// The same for a program that reads so many bytes: they are all there before it starts, or it doesn't. A connection that
/// is cut, or whoever writes being killed, looks like the end of what there is to read.
const READING: &str = r#"echo "$0 $$"; echo "$0 $$" >&2; n=$1; shift; u=$(umask); umask 077
f=$(mktemp /dev/shm/.linux-sysadmin.XXXXXX 2> /dev/null || mktemp /tmp/.linux-sysadmin.XXXXXX) || exit 126
trap 'rm -f "$f"; exit 126' HUP INT TERM
if cat > "$f" && test "$(wc -c < "$f")" -eq "$n"; then exec < "$f"; rm -f "$f"; trap - HUP INT TERM; umask "$u"; exec "$@"; fi
rm -f "$f"; echo "linux-sysadmin: what the command reads is not there whole, so it was not started" >&2; exit 126"#;

/// The line for the login shell. `argv` begins with a path, or a name in this environment's PATH. With the length of what
/// it reads, where it reads anything.
pub(super) fn line(
    environment: &[(String, String)],
    nonce: &str,
    argv: &[String],
    reads: Option<usize>,
) -> Result<String, Problem> {
    let variables: Vec<String> = environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let reads = reads.map(|bytes| bytes.to_string());
    let script = if reads.is_some() { READING } else { SCRIPT };
    let words = ["exec", "/usr/bin/env", "-i"]
        .into_iter()
        .chain(variables.iter().map(String::as_str))
        .chain(["/bin/sh", "-c", script, nonce])
        .chain(reads.as_deref())
        .chain(argv.iter().map(String::as_str));
    let line = quote::line(words);
    if line.len() >= LONGEST {
        let message =
            format!("a command line of {} bytes; over SSH expected fewer than {LONGEST}", line.len());
        return Err(Problem::new("COMMAND_TOO_LONG", Category::Validation, message));
    }
    Ok(line)
}

/// Why there is no output.
#[derive(Debug)]
pub(super) enum Failed {
    /// It was not started.
    Before(Problem),
    /// It may have been.
    After(Problem),
}

impl Failed {
    pub(super) fn into_problem(self) -> Problem {
        match self {
            Self::Before(problem) | Self::After(problem) => problem,
        }
    }
}

/// A command that was started.
pub(super) struct Running {
    link: Arc<Link>,
    /// Over which it is ended: on its own, whoever doesn't read would be in the way.
    ender: Arc<Link>,
    /// Whoever drops this without having seen the end has it ended.
    halves: Option<(ChannelReadHalf, ChannelWriteHalf<Msg>)>,
    permit: Option<OwnedSemaphorePermit>,
    out: Marked,
    err: Marked,
    ends: Ends,
    status: Option<i32>,
    eof: bool,
}

/// What a channel has said.
pub(super) enum Said {
    Out(Bytes),
    Err(Bytes),
    /// The command has ended.
    Status,
    /// Nothing comes any more.
    Eof,
}

impl Running {
    /// Starts it, with its stdin being fed.
    pub(super) async fn start(
        link: &Arc<Link>,
        ender: &Arc<Link>,
        line: String,
        stdin: Option<Vec<u8>>,
        ends: Ends,
    ) -> Result<Self, Failed> {
        let (channel, permit) = link.channel().await.map_err(Failed::Before)?;
        let (read, write) = channel.split();
        let mut writer = write.make_writer();
        let halves = Some((read, write));
        let (out, err) = (Marked::new(link.nonce()), Marked::new(link.nonce()));
        let running = Self {
            link: link.clone(),
            ender: ender.clone(),
            halves,
            permit: Some(permit),
            out,
            err,
            ends,
            status: None,
            eof: false,
        };
        // From here on whoever goes away has it ended.
        if let Some((_, write)) = &running.halves
            && write.exec(true, line).await.is_err()
        {
            return Err(Failed::After(running.lost().await));
        }
        tokio::spawn(async move {
            // A program that doesn't read all of it has its own reasons, and its own exit code.
            if let Some(stdin) = stdin {
                let _ = writer.write_all(&stdin).await;
            }
            let _ = writer.shutdown().await;
        });
        Ok(running)
    }

    /// What comes next.
    pub(super) async fn next(&mut self) -> Result<Said, Problem> {
        loop {
            let Some((read, _)) = &mut self.halves else { return Ok(Said::Eof) };
            match read.wait().await {
                Some(ChannelMsg::Data { data }) => {
                    let own = self.out.own(data);
                    if !own.is_empty() {
                        return Ok(Said::Out(own));
                    }
                }
                Some(ChannelMsg::ExtendedData { data, ext: STDERR }) => {
                    let own = self.err.own(data);
                    if !own.is_empty() {
                        return Ok(Said::Err(own));
                    }
                }
                Some(ChannelMsg::ExitStatus { exit_status }) => {
                    self.status = Some(exit_status.cast_signed());
                    return Ok(Said::Status);
                }
                Some(ChannelMsg::ExitSignal { signal_name, .. }) => {
                    self.status = Some(128 + number(&signal_name));
                    return Ok(Said::Status);
                }
                Some(ChannelMsg::Failure) => {
                    self.status = Some(-1);
                    let message = "the SSH server doesn't let this account run commands";
                    return Err(Problem::new("COMMANDS_REFUSED", Category::Privilege, message));
                }
                Some(ChannelMsg::Eof) => {
                    self.eof = true;
                    return Ok(Said::Eof);
                }
                // What follows the end of the connection.
                None if self.status.is_none() => return Err(self.lost().await),
                Some(ChannelMsg::Close) | None => {
                    self.eof = true;
                    return match self.status {
                        Some(_) => Ok(Said::Eof),
                        None => Err(self.lost().await),
                    };
                }
                Some(_) => {}
            }
        }
    }

    /// To the end, or to the timeout.
    pub(super) async fn finish(self, command: &Command) -> Result<Output, Problem> {
        self.finish_unless(command, std::future::pending()).await
    }

    /// The same, or until it is to stop: then it is ended first, as with the timeout. Where that can't be told it, the
    /// connection is the problem.
    pub(super) async fn finish_unless(
        mut self,
        command: &Command,
        stop: impl Future<Output = ()>,
    ) -> Result<Output, Problem> {
        let started = Instant::now();
        let (mut out, mut err) = (Captured::of(command), Captured::of(command));
        let keep = command.keep;
        let (ended, is_told) = tokio::select! {
            ended = tokio::time::timeout(command.timeout, self.collect(keep, &mut out, &mut err)) => (ended.ok(), false),
            () = stop => (None, true),
        };
        let Some(ended) = ended else {
            let left = self.end().await;
            return Err(match left && self.link.is_closed() {
                true => self.link.lost(),
                false if is_told && left => may_go_on(&command.program),
                false if is_told => cancelled(&command.program),
                false => {
                    let problem = crate::ending::timed_out(&command.program, command.timeout, left);
                    with_last_words(problem, out, err)
                }
            });
        };
        ended?;
        if !self.out.is_past() {
            return Err(self.never_came());
        }
        let exit_code = self.status.unwrap_or(-1);
        self.let_go();
        if started.elapsed() >= command.timeout && self.ends.was_backstop(exit_code) {
            let problem = crate::ending::timed_out(&command.program, command.timeout, false);
            return Err(with_last_words(problem, out, err));
        }
        Ok(Output {
            exit_code,
            truncated: out.truncated || err.truncated,
            stdout_bytes: out.total_bytes,
            stdout_lines: out.total_lines(),
            stdout: out.into_bytes(),
            stderr: err.into_bytes(),
            duration: started.elapsed(),
        })
    }

    async fn collect(&mut self, keep: Keep, out: &mut Captured, err: &mut Captured) -> Result<(), Problem> {
        let mut ended: Option<tokio::time::Instant> = None;
        loop {
            let said = match ended {
                None => self.next().await?,
                Some(at) => match tokio::time::timeout(
                    LEFTOVER.min(ON_ITS_WAY.saturating_sub(at.elapsed())),
                    self.next(),
                )
                .await
                {
                    Ok(said) => said?,
                    Err(_) => {
                        self.end_leftovers();
                        return Ok(());
                    }
                },
            };
            match said {
                Said::Out(piece) => out.add(&piece, keep),
                Said::Err(piece) => err.add(&piece, keep),
                Said::Status => ended = Some(tokio::time::Instant::now()),
                Said::Eof if self.status.is_some() => return Ok(()),
                Said::Eof => {}
            }
            if self.eof && self.status.is_some() {
                return Ok(());
            }
        }
    }

    /// Whether the command has ended, and with what.
    pub(super) fn status(&self) -> Option<i32> {
        self.status
    }

    /// What it left behind holds a stream: whoever that is ends with it.
    fn end_leftovers(&mut self) {
        if let (Some(pid), Ends::Group) = (self.out.pid.or(self.err.pid), self.ends) {
            self.ender.end(pid, Ends::Group);
        }
    }

    /// Ends it with all that it started, and waits until that is done; gives whether anything may be left.
    async fn end(&mut self) -> bool {
        let Some((mut read, write)) = self.halves.take() else { return false };
        let permit = self.permit.take();
        if self.status.is_some() {
            return false;
        }
        let left = end(&self.ender, &mut read, std::mem::take(&mut self.out), self.ends).await;
        drop(read);
        close(write).await;
        drop(permit);
        left
    }

    /// It has ended by itself.
    fn let_go(&mut self) {
        let Some((_, write)) = self.halves.take() else { return };
        let permit = self.permit.take();
        self.link.spawn(async move {
            close(write).await;
            drop(permit);
        });
    }

    /// The line never came to our own script.
    fn never_came(&mut self) -> Problem {
        let said = [&self.err.noise[..], &self.out.noise].concat();
        let said = match excerpt(String::from_utf8_lossy(&said).trim(), 300) {
            said if said.is_empty() => said,
            said => format!(" and said: {said}"),
        };
        let status = self.status.unwrap_or(-1);
        self.let_go();
        let message = format!(
            "this account runs no commands: its login shell, or what is forced upon it, ended with {status}{said}"
        );
        Problem::new("COMMANDS_REFUSED", Category::Privilege, message)
            .remedy("Give the account a login shell that runs commands: dash, bash, zsh or fish")
            .remedy("Look for ForceCommand in that host's sshd_config, and for command= in authorized_keys")
    }

    async fn lost(&self) -> Problem {
        match self.link.is_closed() {
            true => self.link.lost(),
            // The end of a connection reaches its channels first.
            false => match tokio::time::timeout(LEFTOVER, self.link.closed()).await {
                Ok(()) => self.link.lost(),
                Err(_) => Problem::new(
                    "IO_ERROR",
                    Category::Other,
                    "the SSH server closed the channel and didn't say how the command ended",
                ),
            },
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some((mut read, write)) = self.halves.take() else { return };
        if self.status.is_some() {
            let permit = self.permit.take();
            self.link.spawn(async move {
                close(write).await;
                drop(permit);
            });
            return;
        }
        let (link, ends, permit) = (self.ender.clone(), self.ends, self.permit.take());
        let out = std::mem::take(&mut self.out);
        self.link.spawn(async move {
            end(&link, &mut read, out, ends).await;
            drop(read);
            close(write).await;
            drop(permit);
        });
    }
}

/// Ends a command once its number is known.
async fn end(link: &Arc<Link>, read: &mut ChannelReadHalf, mut out: Marked, ends: Ends) -> bool {
    let starting = async {
        while out.pid.is_none() {
            match read.wait().await {
                Some(ChannelMsg::Data { data }) => drop(out.own(data)),
                Some(_) => {}
                None => break,
            }
        }
        out.pid
    };
    match tokio::time::timeout(STARTING, starting).await {
        // What it goes on to say is taken all the same: left alone it would be in the way of all others.
        Ok(Some(pid)) => tokio::select! {
            left = link.kill(pid, ends) => left,
            () = drained(read) => true,
        },
        // It had not begun, or nobody can tell.
        Ok(None) => false,
        Err(_) => true,
    }
}

/// Never ends.
pub(super) async fn drained(read: &mut ChannelReadHalf) {
    while read.wait().await.is_some() {}
    std::future::pending().await
}

/// It was told to stop, and hasn't.
fn may_go_on(program: &str) -> Problem {
    let message = format!("{program} was told to stop and may go on all the same");
    Problem::new("IO_ERROR", Category::Other, message)
}

/// Nobody waits for an answer, nor for a connection that takes nothing any more.
pub(super) async fn close(write: ChannelWriteHalf<Msg>) {
    let _ = tokio::time::timeout(LEFTOVER, write.close()).await;
}

/// What a stream says once our script has spoken.
#[derive(Default)]
struct Marked {
    marker: Vec<u8>,
    noise: Vec<u8>,
    pid: Option<u32>,
}

impl Marked {
    fn new(nonce: &str) -> Self {
        Self { marker: format!("{nonce} ").into_bytes(), noise: Vec::new(), pid: None }
    }

    fn is_past(&self) -> bool {
        self.pid.is_some()
    }

    /// What of a piece is the command's own.
    fn own(&mut self, piece: Bytes) -> Bytes {
        if self.is_past() {
            return piece;
        }
        self.noise.extend_from_slice(&piece);
        let at = self.noise.windows(self.marker.len()).position(|window| window == self.marker);
        if let Some(at) = at {
            let said = &self.noise[at + self.marker.len()..];
            let (end, is_long) =
                (said.iter().take(NUMBER).position(|byte| *byte == b'\n'), said.len() >= NUMBER);
            if end.is_none() && is_long {
                // No number is so long: somebody else said it.
                self.noise.drain(..at + self.marker.len());
                return Bytes::new();
            }
            if let Some(end) = end {
                self.pid = std::str::from_utf8(&said[..end]).ok().and_then(|pid| pid.parse().ok());
                let own = Bytes::copy_from_slice(&said[end + 1..]);
                self.noise = Vec::new();
                return own;
            }
        } else if self.noise.len() > 2 * NOISE {
            self.noise.drain(..self.noise.len() - NOISE);
        }
        Bytes::new()
    }
}

/// As shells report it, signal(7) on most architectures.
fn number(signal: &russh::Sig) -> i32 {
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

/// A running command whose stdout is read piece by piece. Dropping it ends the command.
pub struct Stream {
    running: Running,
    program: String,
    limit: Duration,
    deadline: tokio::time::Instant,
    /// What came and wasn't asked for yet.
    rest: Bytes,
    heard: Vec<u8>,
    said_anything: bool,
}

/// What is kept of a stream's stderr: enough to know sudo by.
const HEARD: usize = 4 << 10;

impl Stream {
    pub(super) fn new(running: Running, command: &Command) -> Self {
        let deadline = tokio::time::Instant::now() + command.timeout;
        let (program, limit) = (command.program.clone(), command.timeout);
        Self {
            running,
            program,
            limit,
            deadline,
            rest: Bytes::new(),
            heard: Vec::new(),
            said_anything: false,
        }
    }

    /// At most `max_bytes`, and at most 1 MiB; empty at the end.
    pub async fn read(&mut self, max_bytes: u32) -> Result<Vec<u8>, Problem> {
        let most = (max_bytes as usize).clamp(1, KEPT_BYTES);
        while self.rest.is_empty() && !self.running.eof {
            match tokio::time::timeout_at(self.deadline, self.running.next()).await {
                Err(_) => return Err(self.timed_out().await),
                Ok(said) => match said? {
                    Said::Out(piece) => self.rest = piece,
                    Said::Err(piece) => {
                        let room = HEARD.saturating_sub(self.heard.len());
                        self.heard.extend_from_slice(&piece[..piece.len().min(room)]);
                    }
                    Said::Status | Said::Eof => {}
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
        crate::ending::timed_out(&self.program, self.limit, left)
    }

    /// Where a command said nothing at all, it may not have been run.
    async fn unless_refused(&mut self) -> Result<(), Problem> {
        while self.running.status().is_none() {
            match tokio::time::timeout_at(self.deadline, self.running.next()).await {
                Err(_) => return Err(self.timed_out().await),
                Ok(said) => drop(said?),
            }
        }
        if !self.running.out.is_past() {
            return Err(self.running.never_came());
        }
        let exit_code = self.running.status().unwrap_or(0);
        match crate::ending::refused_by_sudo(exit_code, false, &self.heard) {
            Some(said) => Err(crate::ending::refused(&self.program, &said)),
            None => Ok(()),
        }
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
            let mut marked = Marked::new("N0");
            let own: Vec<u8> =
                pieces.iter().flat_map(|piece| marked.own(Bytes::from_static(piece.as_bytes()))).collect();
            assert_eq!((own.as_slice(), marked.pid), (&b"own N0 78\n"[..], Some(77)), "{pieces:?}");
        }
    }

    #[test]
    fn endless_noise_is_bounded_and_the_command_is_found_behind_it() {
        let mut marked = Marked::new("N0");
        for _ in 0..100 {
            assert!(marked.own(Bytes::from(vec![b'x'; 4096])).is_empty());
            assert!(marked.noise.len() <= 2 * NOISE + 4096);
        }
        assert_eq!(marked.own(Bytes::from_static(b"N0 5\nabc")), "abc");
    }

    #[test]
    fn a_marker_without_a_number_is_noise_and_is_bounded() {
        let mut marked = Marked::new("N0");
        for _ in 0..100 {
            assert!(marked.own(Bytes::from([b"N0 ".as_slice(), &vec![b'7'; 4096]].concat())).is_empty());
            assert!(marked.noise.len() <= 2 * NOISE + 4200, "{}", marked.noise.len());
        }
        assert_eq!((marked.own(Bytes::from_static(b"\nN0 5\nabc")), marked.pid), ("abc".into(), Some(5)));
    }

    #[test]
    fn a_line_that_no_shell_could_take_is_refused() {
        let argv = |bytes: usize| vec!["/usr/bin/echo".to_owned(), "x".repeat(bytes)];
        assert!(line(&[], "n", &argv(100_000), None).is_ok());
        assert_eq!(line(&[], "n", &argv(131_000), None).unwrap_err().code, "COMMAND_TOO_LONG");
    }

    #[test]
    fn variables_are_words_and_the_script_is_one() {
        let environment = [("A".to_owned(), "b c".to_owned())];
        let line = line(&environment, "n", &["/bin/x".into(), "$y".into()], None).unwrap();
        assert_eq!(
            line,
            r#"exec /usr/bin/env -i 'A=b c' /bin/sh -c 'echo "$0 $$"; echo "$0 $$" >&2; exec "$@"' n /bin/x '$y'"#
        );
    }

    /// What a login shell runs for a program that reads these many bytes and is given those.
    fn read_by(reads: usize, given: &[u8]) -> std::process::Output {
        let environment = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let argv = ["/bin/sh", "-c", "umask; cat; test -p /dev/stdin && echo pipe"].map(str::to_owned);
        let line = line(&environment, "n", &argv, Some(reads)).unwrap();
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", &format!("umask 027; {line}")])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), given).unwrap();
        child.wait_with_output().unwrap()
    }

    #[test]
    fn a_program_reads_all_that_it_is_given_or_does_not_start() {
        let given = b"a\0b\n$(id)\n";
        let whole = read_by(given.len(), given);
        let said = String::from_utf8(whole.stdout).unwrap();
        let (marker, rest) = said.split_once('\n').unwrap();
        assert!(marker.starts_with("n "), "{marker}");
        assert_eq!(rest, "0027\na\0b\n$(id)\n");
        for (reads, given) in [(given.len() + 1, &given[..]), (3, b""), (0, b"more")] {
            let cut = read_by(reads, given);
            assert_eq!(cut.status.code(), Some(126), "{reads}");
            assert!(String::from_utf8(cut.stdout).unwrap().lines().count() == 1, "{reads}");
            assert!(String::from_utf8(cut.stderr).unwrap().contains("was not started"), "{reads}");
        }
        assert_eq!(read_by(0, b"").status.code(), Some(1), "test(1) said that it is no pipe");
    }
}
