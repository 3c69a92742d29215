//! A lock on a machine behind SSH: `flock` holds it there as long as its `cat` has something to wait for, which is the
//! channel. It ends with us and with the connection, as soon as the server notices; where we notice first, the next one
//! ends what is left of it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use russh::client::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::sync::CancellationToken;

use super::Remote;
use super::channel::{close, drained, line};
use super::link::{First, Link, asking};
use crate::lock::{Asked, Holds, Lock};
use crate::verbs::Runner;
use host_base::problem::Problem;
use host_base::program::PATH;
use host_text::redact::excerpt;

/// For the answer to come, beside the waiting for the lock.
const ANSWERING: Duration = Duration::from_secs(20);
/// `cat` says it back: the lock is held.
const HELD: &[u8] = b"held\n";
/// Of flock: somebody else has the lock.
const KEPT: u32 = 75;
/// What is heard of a command that should say one line.
const HEARD: usize = 16 << 10;

/// Ends the group of the first argument, where its leader has the second one among its own.
const END: &str = r#"tr '\0' '\n' <"/proc/$1/cmdline" | grep -qxF -e "$2" && kill -s KILL -- "-$1""#;

/// A process on the target that we may have left there.
pub(super) struct Left {
    pid: String,
    token: String,
}

/// The lock, as long as the connection lasts.
struct Held {
    link: Arc<Link>,
    /// Gives it back.
    end: CancellationToken,
    process: Option<Left>,
    left: Arc<Mutex<Vec<Left>>>,
}

impl Holds for Held {
    fn is_lost(&self) -> bool {
        self.link.is_closed()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.link.is_closed() {
            self.left.lock().unwrap_or_else(PoisonError::into_inner).extend(self.process.take());
        }
        self.end.cancel();
        self.link.lock().take();
    }
}

/// Keeps the channel open until it is to end. Where that is told, `cat` reads the end, and that is all there is to it.
async fn keep(
    mut read: ChannelReadHalf,
    write: ChannelWriteHalf<Msg>,
    _permit: OwnedSemaphorePermit,
    end: CancellationToken,
) {
    tokio::select! {
        () = end.cancelled() => {}
        // Nothing comes, and what does isn't left to be in the way of others.
        () = drained(&mut read) => {}
    }
    let _ = write.eof().await;
    let _ = tokio::time::timeout(ANSWERING, async { while read.wait().await.is_some() {} }).await;
    drop(read);
    close(write).await;
}

impl Remote {
    /// Takes the lock of a file or directory, waited for at most so long. Which one it is, no account may choose.
    pub(crate) async fn lock(&self, path: &Path, patience: Duration) -> Result<Asked, Problem> {
        let link = self.link().await?;
        let flock = match self.find(&link, "flock").await {
            Ok(flock) => flock,
            Err(problem) if link.is_closed() => return Err(problem),
            Err(problem) => return Ok(Asked::Unavailable(problem.message)),
        };
        self.end_left(&link).await;
        let token = format!("linux-sysadmin-turn-{}", host_base::id::random()?);
        let (patience_s, kept, path) =
            (patience.as_secs().to_string(), KEPT.to_string(), path.display().to_string());
        let argv = [&flock, "--exclusive", "--timeout", &patience_s, "--conflict-exit-code", &kept, &path]
            .into_iter()
            .chain(["/bin/sh", "-c", "exec cat", &token])
            .map(str::to_owned);
        let line = line(&link.environment(PATH, &[]).await?, link.nonce(), &argv.collect::<Vec<_>>(), None)?;
        // Whoever asks may go away meanwhile; what was begun there has to be ended all the same.
        let (give, given) = oneshot::channel();
        let taking =
            Taking { link: link.clone(), line, token, limit: patience + ANSWERING, left: self.left.clone() };
        link.spawn(taking.take(give));
        given.await.map_err(|_| link.lost())?
    }

    /// Where a connection went without the server's noticing, what was held by it may be held still.
    async fn end_left(&self, link: &Arc<Link>) {
        let left = std::mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner));
        for Left { pid, token } in left {
            let ended = First(link).run_all(&[asking("sh", &["-c", END, "sh", &pid, &token])]).await;
            let ended = ended.into_iter().all(|ended| ended.is_ok_and(|output| output.exit_code == 0));
            tracing::debug!(pid, ended, "what a lost connection had left of a lock");
        }
    }
}

/// The lock, on its way.
struct Taking {
    link: Arc<Link>,
    line: String,
    token: String,
    limit: Duration,
    left: Arc<Mutex<Vec<Left>>>,
}

impl Taking {
    async fn take(self, mut give: oneshot::Sender<Result<Asked, Problem>>) {
        let Self { link, line, token, limit, left } = self;
        let opened = async {
            let (channel, permit) = link.channel().await?;
            let (read, write) = channel.split();
            write.exec(true, line).await.map_err(|_| link.lost())?;
            write.data(HELD).await.map_err(|_| link.lost())?;
            Ok((read, write, permit))
        };
        let (mut read, write, permit) = match opened.await {
            Ok(opened) => opened,
            Err(problem) => return drop(give.send(Err(problem))),
        };
        let answer = tokio::select! {
            answer = tokio::time::timeout(limit, answer(&mut read, link.nonce())) => Some(answer),
            () = give.closed() => None,
        };
        if let Some(Ok(Answer::Held(pid))) = answer {
            let (end, process) = (CancellationToken::new(), Some(Left { pid, token }));
            link.spawn(keep(read, write, permit, end.clone()));
            *link.lock() = Some(end.clone());
            // Where nobody takes it, it is given back by being dropped.
            return drop(give.send(Ok(Asked::Taken(Lock::there(Held { link, end, process, left })))));
        }
        // It reads the end once it has the lock.
        let _ = write.eof().await;
        drop(read);
        close(write).await;
        let _ = give.send(match answer {
            Some(Ok(Answer::Ended(KEPT))) | Some(Err(_)) => Ok(Asked::Kept),
            Some(Ok(Answer::Ended(code))) => {
                Ok(Asked::Unavailable(format!("flock ended with exit code {code}")))
            }
            _ => Err(link.lost()),
        });
    }
}

enum Answer {
    /// By the process of this number.
    Held(String),
    /// With this exit code.
    Ended(u32),
    /// The connection went.
    Gone,
}

async fn answer(read: &mut ChannelReadHalf, nonce: &str) -> Answer {
    let mut heard = Vec::new();
    while let Some(said) = read.wait().await {
        match said {
            ChannelMsg::Data { data } => {
                if heard.len() > HEARD {
                    heard.drain(..HEARD / 2);
                }
                heard.extend_from_slice(&data);
                if let Some(pid) = holder(&heard, nonce) {
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

/// The number of the process that holds the lock, once it has said so. A login shell's own noise comes before.
fn holder(heard: &[u8], nonce: &str) -> Option<String> {
    let heard = String::from_utf8_lossy(heard);
    let (pid, rest) = heard.split_once(&format!("{nonce} "))?.1.split_once('\n')?;
    let is_number = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && rest.as_bytes().starts_with(HELD)).then(|| pid.to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_lock_is_held_once_the_process_behind_it_says_so_and_not_before() {
        for (heard, pid) in [
            ("", None),
            ("N 77\n", None),
            ("N 77\nhe", None),
            ("held\nN 77\n", None),
            ("motd\nN 77\nheld\n", Some("77")),
            ("N x\nheld\n", None),
        ] {
            assert_eq!(holder(heard.as_bytes(), "N").as_deref(), pid, "{heard:?}");
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
