//! A lock on a machine behind SSH. `flock` holds it there while its `cat` waits for the channel. The lock ends with
//! this process and with the connection, as soon as the server notices. If the host notices a lost connection first,
//! the next lock request ends the old holder.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::client::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::sync::CancellationToken;

use super::Remote;
use super::channel::{close, drain_forever};
use super::connection::{BootstrapRunner, Connection, host_command};
use super::script::line;
use crate::file_commands::Runner;
use crate::lock::{Lock, LockOutcome, RemoteHold};
use host_base::problem::Problem;
use host_base::program::PATH;
use host_text::redact::excerpt;

/// The time for the answer, in addition to the wait for the lock.
const ANSWERING: Duration = Duration::from_secs(20);
/// `cat` prints this back, which shows that the lock is held.
const HELD_REPLY: &[u8] = b"held\n";
/// The exit code of flock where another process has the lock.
const CONFLICT_EXIT_CODE: u32 = 75;
/// The most bytes that are kept of a command that should print one line.
const MOST_OUTPUT: usize = 16 << 10;

/// A script that ends the process group of its first argument, if the second one is among the leader's arguments.
const END: &str = r#"tr '\0' '\n' <"/proc/$1/cmdline" | grep -qxF -e "$2" && kill -s KILL -- "-$1""#;

/// A process that may be left on the target.
pub(super) struct LeftoverHolder {
    pid: String,
    token: String,
}

/// A lock that lasts as long as the connection.
struct RemoteLock {
    connection: Arc<Connection>,
    /// Releases the lock.
    end: CancellationToken,
    process: Option<LeftoverHolder>,
    leftover_holders: Arc<Mutex<Vec<LeftoverHolder>>>,
}

impl RemoteHold for RemoteLock {
    fn is_lost(&self) -> bool {
        self.connection.is_closed()
    }
}

impl Drop for RemoteLock {
    fn drop(&mut self) {
        if self.connection.is_closed() {
            self.leftover_holders.lock().unwrap_or_else(PoisonError::into_inner).extend(self.process.take());
        }
        self.end.cancel();
        self.connection.lock().take();
    }
}

/// Keeps the channel open until the lock is released. Then `cat` reads the end of its input and ends.
async fn keep(
    mut read: ChannelReadHalf,
    write: ChannelWriteHalf<Msg>,
    _permit: OwnedSemaphorePermit,
    end: CancellationToken,
) {
    tokio::select! {
        () = end.cancelled() => {}
        // No output is expected, but any that comes is read, so that it doesn't hold up others.
        () = drain_forever(&mut read) => {}
    }
    let _ = write.eof().await;
    let _ = tokio::time::timeout(ANSWERING, async { while read.wait().await.is_some() {} }).await;
    drop(read);
    close(write).await;
}

impl Remote {
    /// Takes the lock of a file or directory, and waits for it at most for `patience`. No other account may choose
    /// which file it is.
    pub(crate) async fn lock(&self, path: &Path, patience: Duration) -> Result<LockOutcome, Problem> {
        let connection = self.connection().await?;
        let flock = match self.find(&connection, "flock").await {
            Ok(flock) => flock,
            Err(problem) if connection.is_closed() => return Err(problem),
            Err(problem) => return Ok(LockOutcome::Unavailable(problem.message)),
        };
        self.end_leftover_holders(&connection).await;
        let token = format!("linux-sysadmin-turn-{}", host_base::id::random()?);
        let (patience_s, kept, path) =
            (patience.as_secs().to_string(), CONFLICT_EXIT_CODE.to_string(), path.display().to_string());
        let argv = [&flock, "--exclusive", "--timeout", &patience_s, "--conflict-exit-code", &kept, &path]
            .into_iter()
            .chain(["/bin/sh", "-c", "exec cat", &token])
            .map(str::to_owned);
        let line = line(
            &connection.environment(PATH, &[]).await?,
            connection.nonce(),
            &argv.collect::<Vec<_>>(),
            None,
        )?;
        // The caller may go away meanwhile; what was started on the target must be ended all the same.
        let (answer_sender, given) = oneshot::channel();
        let taking = LockRequest {
            connection: connection.clone(),
            line,
            token,
            limit: patience + ANSWERING,
            leftover_holders: self.leftover_holders.clone(),
        };
        connection.spawn(taking.take(answer_sender));
        given.await.map_err(|_| connection.lost())?
    }

    /// Ends processes that may still hold a lock. A connection may be lost without the server noticing it.
    async fn end_leftover_holders(&self, connection: &Arc<Connection>) {
        let left = std::mem::take(&mut *self.leftover_holders.lock().unwrap_or_else(PoisonError::into_inner));
        for LeftoverHolder { pid, token } in left {
            let ended = BootstrapRunner(connection)
                .run_all(&[host_command("sh", &["-c", END, "sh", &pid, &token])])
                .await;
            let ended = ended.into_iter().all(|ended| ended.is_ok_and(|output| output.exit_code == 0));
            tracing::debug!(pid, ended, "a lost connection had left a process that holds a lock");
        }
    }
}

/// A lock that is being asked for.
struct LockRequest {
    connection: Arc<Connection>,
    line: String,
    token: String,
    limit: Duration,
    leftover_holders: Arc<Mutex<Vec<LeftoverHolder>>>,
}

impl LockRequest {
    async fn take(self, mut answer_sender: oneshot::Sender<Result<LockOutcome, Problem>>) {
        let Self { connection, line, token, limit, leftover_holders } = self;
        let opened = async {
            let (channel, permit) = connection.channel().await?;
            let (read, write) = channel.split();
            write.exec(true, line).await.map_err(|_| connection.lost())?;
            write.data(HELD_REPLY).await.map_err(|_| connection.lost())?;
            Ok((read, write, permit))
        };
        let (mut read, write, permit) = match opened.await {
            Ok(opened) => opened,
            Err(problem) => return drop(answer_sender.send(Err(problem))),
        };
        let answer = tokio::select! {
            answer = tokio::time::timeout(limit, answer(&mut read, connection.nonce())) => Some(answer),
            () = answer_sender.closed() => None,
        };
        if let Some(Ok(Answer::Held(pid))) = answer {
            let (end, process) = (CancellationToken::new(), Some(LeftoverHolder { pid, token }));
            connection.spawn(keep(read, write, permit, end.clone()));
            *connection.lock() = Some(end.clone());
            // If nobody takes the lock any more, dropping it releases it.
            return drop(answer_sender.send(Ok(LockOutcome::Taken(Lock::remote(RemoteLock {
                connection,
                end,
                process,
                leftover_holders,
            })))));
        }
        // `cat` reads the end of its input once flock has the lock.
        let _ = write.eof().await;
        drop(read);
        close(write).await;
        let _ = answer_sender.send(match answer {
            Some(Ok(Answer::Ended(CONFLICT_EXIT_CODE))) | Some(Err(_)) => Ok(LockOutcome::HeldByOther),
            Some(Ok(Answer::Ended(code))) => {
                Ok(LockOutcome::Unavailable(format!("flock ended with exit code {code}")))
            }
            _ => Err(connection.lost()),
        });
    }
}

enum Answer {
    /// The process with this id holds the lock.
    Held(String),
    /// flock ended with this exit code.
    Ended(u32),
    /// The connection was lost.
    Gone,
}

async fn answer(read: &mut ChannelReadHalf, nonce: &str) -> Answer {
    let mut output = Vec::new();
    while let Some(said) = read.wait().await {
        match said {
            ChannelMsg::Data { data } => {
                if output.len() > MOST_OUTPUT {
                    output.drain(..MOST_OUTPUT / 2);
                }
                output.extend_from_slice(&data);
                if let Some(pid) = holder(&output, nonce) {
                    return Answer::Held(pid);
                }
            }
            ChannelMsg::ExtendedData { data, .. } => {
                tracing::debug!(said = excerpt(&String::from_utf8_lossy(&data), 300), "flock");
            }
            ChannelMsg::ExitStatus { exit_status } => return Answer::Ended(exit_status),
            ChannelMsg::ExitSignal { .. } | ChannelMsg::Failure => return Answer::Ended(u32::MAX),
            _ => {}
        }
    }
    Answer::Gone
}

/// Returns the id of the process that holds the lock, once it has printed it. The login shell may print something
/// before.
fn holder(output: &[u8], nonce: &str) -> Option<String> {
    let output = String::from_utf8_lossy(output);
    let (pid, rest) = output.split_once(&format!("{nonce} "))?.1.split_once('\n')?;
    let is_number = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && rest.as_bytes().starts_with(HELD_REPLY)).then(|| pid.to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_lock_is_held_once_the_process_behind_it_says_so_and_not_before() {
        for (output, pid) in [
            ("", None),
            ("N 77\n", None),
            ("N 77\nhe", None),
            ("held\nN 77\n", None),
            ("motd\nN 77\nheld\n", Some("77")),
            ("N x\nheld\n", None),
        ] {
            assert_eq!(holder(output.as_bytes(), "N").as_deref(), pid, "{output:?}");
        }
    }

    #[test]
    fn only_the_process_with_the_token_is_ended_by_its_number() {
        use std::os::unix::process::CommandExt;
        let mut process = Command::new("sh");
        process.args(["-c", "read line", "token-1"]).stdin(Stdio::piped()).process_group(0);
        let mut process = process.spawn().unwrap();
        let pid = process.id().to_string();
        for (token, ends) in [("token-2", false), ("token", false), ("token-1", true)] {
            let ended = Command::new("sh").args(["-c", END, "sh", &pid, token]).status().unwrap();
            assert_eq!(ended.success(), ends, "{token}");
        }
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(process.wait().unwrap().signal(), Some(9));
    }
}
