//! One connection, with what was found out on it: channels, SFTP, where programs are.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use russh::Channel;
use russh::client::Msg;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::channel::{self, Failed, Running};
use super::programs::Programs;
use super::sftp::Sftp;
use crate::AT_ONCE;
use crate::facts;
use crate::rights::{Ends, Signal};
use crate::verbs::Runner;
use host_base::problem::{Category, Problem};
use host_base::{Command, Keep, Output, Privilege};
use host_openssh::{Peer, Session};

/// A server that doesn't answer for so long isn't there: whoever is alive opens a channel at once.
const OPENING: Duration = Duration::from_secs(15);
/// How long a connection may take to be ended in order.
const CLOSING: Duration = Duration::from_secs(2);
/// Between giving up SFTP and asking for its session.
const GIVING_WAY: Duration = Duration::from_millis(200);
/// How long a session that is over may count to the server, and between two questions whether it does.
const COUNTING: Duration = Duration::from_secs(10);
const MOMENT: Duration = Duration::from_millis(20);
/// For what the host asks by itself.
const ASKING: Duration = Duration::from_secs(20);
/// Where the host's first commands are looked for, which find the others: root's on every system.
const FIRST: &str = "/usr/bin:/bin";

/// The whole group and its leader, which a wrapper of the server's may have put elsewhere; 1 where either is left.
const KILL: &str = r#"kill -s KILL -- "-$1" 2>/dev/null; kill -s KILL -- "$1" 2>/dev/null
for again in 1 2 3 4 5; do kill -s 0 -- "-$1" 2>/dev/null || kill -s 0 -- "$1" 2>/dev/null || exit 0; sleep 0.2; done
exit 1"#;
/// One signal after the other, a second apart, until sudo has ended; 1 where somebody of its group is left behind.
const TELL: &str = r#"pid=$1; shift
for signal; do kill -s "$signal" "$pid" 2>/dev/null || break; sleep 1; done
for again in 1 2 3; do kill -s 0 "$pid" 2>/dev/null || break; sleep 1; done
for group in $(ps -e -o pgid= 2>/dev/null); do if [ "$group" = "$pid" ]; then exit 1; fi; done"#;

/// Login shells that are known to read what [`super::quote`] writes as it is meant.
const SHELLS: &[&str] = &["sh", "ash", "bash", "dash", "fish", "ksh", "ksh93", "mksh", "zsh"];

/// One connection.
pub(super) struct Link {
    /// The how many-th of the target's it is; 0 of one beside them.
    number: u64,
    session: Session,
    /// When it was there, and after how long.
    made: (Instant, Duration),
    /// It no longer answers.
    is_dead: AtomicBool,
    /// Commands at once: sshd takes ten sessions, one is for SFTP and one for ending a command.
    channels: Arc<Semaphore>,
    /// Of those so many were more than the server takes.
    refused: AtomicUsize,
    ending: Semaphore,
    /// Ends the command that holds a lock, where there is one.
    lock: Mutex<Option<CancellationToken>>,
    sftp: tokio::sync::Mutex<Option<Files>>,
    /// Told by nobody but our own script.
    nonce: String,
    pub(super) programs: Programs,
    session_facts: Mutex<Option<facts::Session>>,
    tasks: TaskTracker,
}

/// Whether the server has SFTP.
#[derive(Clone)]
enum Files {
    Sftp(Arc<Sftp>),
    No,
}

impl Link {
    /// Of a session that took so long to be had.
    pub(super) fn new(
        (session, took): (Session, Duration),
        number: u64,
        tasks: TaskTracker,
    ) -> Result<Arc<Self>, Problem> {
        Ok(Arc::new(Self {
            number,
            session,
            made: (Instant::now(), took),
            is_dead: AtomicBool::new(false),
            channels: Arc::new(Semaphore::new(AT_ONCE)),
            ending: Semaphore::new(1),
            lock: Mutex::default(),
            refused: AtomicUsize::new(0),
            sftp: Default::default(),
            nonce: host_base::id::random()?,
            programs: Programs::default(),
            session_facts: Mutex::default(),
            tasks,
        }))
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn nonce(&self) -> &str {
        &self.nonce
    }

    pub(super) fn peer(&self) -> &Peer {
        self.session.peer()
    }

    /// How long it has been there, and how long it took to be made.
    pub(super) fn times(&self) -> (Duration, Duration) {
        (self.made.0.elapsed(), self.made.1)
    }

    /// Commands that run on it.
    pub(super) fn busy(&self) -> usize {
        AT_ONCE - self.refused.load(Ordering::Acquire) - self.channels.available_permits()
    }

    /// How long an answer takes.
    pub(super) async fn round_trip(&self) -> Result<Duration, Problem> {
        match tokio::time::timeout(OPENING, self.session.round_trip()).await {
            Ok(took) => took,
            Err(_) => {
                self.is_dead.store(true, Ordering::Release);
                self.close().await;
                Err(self.lost())
            }
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.session.is_closed() || self.is_dead.load(Ordering::Acquire)
    }

    pub(super) async fn closed(&self) {
        self.session.closed().await;
    }

    /// Says goodbye, unless that takes long.
    pub(super) async fn close(&self) {
        let _ = tokio::time::timeout(CLOSING, self.session.close()).await;
    }

    pub(super) fn lost(&self) -> Problem {
        let peer = self.peer();
        let message = format!("the connection to {} port {} was lost", peer.hostname, peer.port);
        Problem::new("CONNECTION_LOST", Category::Network, message)
    }

    /// For what goes on when nobody waits for it; waited for at the end.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// A fresh channel, once it is its turn. A server that takes fewer than it usually would is asked again with fewer.
    pub(super) async fn channel(&self) -> Result<(Channel<Msg>, OwnedSemaphorePermit), Problem> {
        let mut since = None;
        loop {
            let permit = self.channels.clone().acquire_owned().await.map_err(|_| self.lost())?;
            match self.session_channel().await {
                Ok(channel) => return Ok((channel, permit)),
                Err(problem) if self.is_closed() => return Err(problem),
                Err(problem) => {
                    let alone = 1 + usize::from(self.lock().is_some());
                    if self.busy() > alone {
                        self.refused.fetch_add(1, Ordering::AcqRel);
                        permit.forget();
                    } else if !self.do_without_sftp().await && !self.do_without_lock().await {
                        // To the server a session counts for a moment longer than to us.
                        if since.get_or_insert_with(Instant::now).elapsed() > COUNTING {
                            return Err(problem);
                        }
                        tokio::time::sleep(MOMENT).await;
                    }
                }
            }
        }
    }

    /// A server that takes one session at a time is better used for commands.
    async fn do_without_sftp(&self) -> bool {
        let mut files = self.sftp.lock().await;
        let had = matches!(*files, Some(Files::Sftp(_)));
        *files = Some(Files::No);
        drop(files);
        if had {
            // It ends on the other side, of which nobody tells.
            tokio::time::sleep(GIVING_WAY).await;
        }
        had
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Option<CancellationToken>> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A server that takes one session at a time has none for a lock.
    async fn do_without_lock(&self) -> bool {
        let Some(held) = self.lock().take() else { return false };
        tracing::info!("no lock on the target: the server takes one session at a time");
        held.cancel();
        tokio::time::sleep(GIVING_WAY).await;
        true
    }

    async fn session_channel(&self) -> Result<Channel<Msg>, Problem> {
        match tokio::time::timeout(OPENING, self.session.channel()).await {
            Ok(opened) => opened,
            Err(_) => {
                // Whether the other side ever notices or not.
                self.is_dead.store(true, Ordering::Release);
                self.close().await;
                Err(self.lost())
            }
        }
    }

    /// SFTP, where the server has it.
    pub(super) async fn sftp(self: &Arc<Self>) -> Option<Arc<Sftp>> {
        // Whoever asks may go away meanwhile, and a channel that nobody holds would stay.
        let link = self.clone();
        self.tasks.spawn(async move { link.files().await }).await.ok().flatten()
    }

    async fn files(&self) -> Option<Arc<Sftp>> {
        let mut files = self.sftp.lock().await;
        if files.is_none() {
            let begun = match self.session_channel().await {
                Ok(channel) => Sftp::begin(channel).await.map_err(|error| error.to_string()),
                Err(problem) => Err(problem.message),
            };
            *files = Some(match begun {
                Ok(sftp) => Files::Sftp(Arc::new(sftp)),
                Err(why) => {
                    tracing::info!(why, "no SFTP: files are read by commands");
                    Files::No
                }
            });
        }
        match &*files {
            Some(Files::Sftp(sftp)) => Some(sftp.clone()),
            _ => None,
        }
    }

    /// Ends what runs under this number; nobody waits for it.
    pub(super) fn end(self: &Arc<Self>, pid: u32, ends: Ends) {
        let link = self.clone();
        self.spawn(async move {
            link.kill(pid, ends).await;
        });
    }

    /// By the shell's own `kill`, which is everywhere; gives whether anything may be left.
    pub(super) async fn kill(self: &Arc<Self>, pid: u32, ends: Ends) -> bool {
        if self.is_closed() {
            return true;
        }
        let _turn = self.ending.acquire().await;
        let number = pid.to_string();
        let mut argv = vec!["/bin/sh", "-c"];
        match ends {
            Ends::Group => argv.extend([KILL, "sh", &number]),
            // There is no terminal here that sudo could give a command one of.
            Ends::Sudo(_) => argv.extend([TELL, "sh", &number]),
        }
        argv.extend(ends.signals(false).iter().map(|signal| name(*signal)));
        let told = self.tell(&argv).await;
        if let Err(problem) = &told {
            tracing::warn!(pid, %problem, "a command could not be ended");
        }
        !matches!(told, Ok(0))
    }

    /// Over a channel beside those of commands; gives the exit code.
    async fn tell(&self, argv: &[&str]) -> Result<u32, Problem> {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        let line = channel::line(&[], &self.nonce, &argv, None)?;
        let (mut read, write) = self.session_channel().await?.split();
        let telling = async {
            write.exec(true, line).await.map_err(|_| self.lost())?;
            let mut status = None;
            while let Some(said) = read.wait().await {
                if let russh::ChannelMsg::ExitStatus { exit_status } = said {
                    status = Some(exit_status);
                }
            }
            status.ok_or_else(|| self.lost())
        };
        let late = |_| Err(Problem::new("COMMAND_TIMEOUT", Category::Timeout, "no answer in time"));
        let told = tokio::time::timeout(ASKING, telling).await.unwrap_or_else(late);
        channel::close(write).await;
        told
    }

    /// Of this session, asked once.
    pub(super) async fn session_facts(self: &Arc<Self>) -> Result<facts::Session, Problem> {
        let known = self.session_facts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known {
            return Ok(known);
        }
        // Before any other environment is made.
        let script =
            r#"echo "$0 $$"; printf '%s\0%s\0%s\0' "$HOME" "$SHELL" "$SSH_CONNECTION"; echo "$0 $$" >&2"#;
        let words = ["exec", "/bin/sh", "-c", script, &self.nonce];
        let line = super::quote::line(words);
        let running =
            Running::start(self, self, line, None, Ends::Group).await.map_err(Failed::into_problem)?;
        let output = running.finish(&asking("sh", &[])).await?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut values = said.split('\0').map(str::to_owned);
        let mut next = || values.next().filter(|value| !value.is_empty());
        let facts = facts::Session { home: next(), shell: next(), ssh_connection: next() };
        reads_alike(facts.shell.as_deref())?;
        *self.session_facts.lock().unwrap_or_else(PoisonError::into_inner) = Some(facts.clone());
        Ok(facts)
    }

    /// Of what runs on the target: a clean one.
    pub(super) async fn environment(
        self: &Arc<Self>,
        path: &str,
        own: &[(String, String)],
    ) -> Result<Vec<(String, String)>, Problem> {
        let home = self.session_facts().await?.home.filter(|home| home.starts_with('/'));
        let home = home.unwrap_or_else(|| "/".to_owned());
        let fixed = [("PATH", path), ("HOME", &home), ("LC_ALL", "C.UTF-8")];
        let fixed = fixed.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(fixed.chain(own.iter().cloned()).collect())
    }
}

/// A problem where the account's login shell may read a word otherwise than it was written: csh ends one at its newline,
/// and runs what follows as a command.
fn reads_alike(shell: Option<&str>) -> Result<(), Problem> {
    let name = shell.map(|shell| shell.rsplit_once('/').map_or(shell, |(_, name)| name));
    if name.is_some_and(|name| SHELLS.contains(&name)) {
        return Ok(());
    }
    let found = host_text::visible::excerpt(shell.unwrap_or("none that is known"), 80);
    let message = format!("the account's login shell is {found}; expected one of {}", SHELLS.join(", "));
    Err(Problem::new("LOGIN_SHELL_NOT_SUPPORTED", Category::State, message)
        .remedy("Use an account with one of these shells, or change this one's with chsh"))
}

/// As `kill -s` takes it.
fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::CONT => "CONT",
        Signal::TERM => "TERM",
        Signal::ALARM => "ALRM",
        _ => "KILL",
    }
}

/// A command that the host asks by itself.
pub(super) fn asking(program: &str, args: &[&str]) -> Command {
    Command {
        program: program.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Vec::new(),
        stdin: None,
        privilege: Privilege::Caller,
        timeout: ASKING,
        keep: Keep::Head,
        heard: None,
    }
}

/// Runs commands by their names, found where only root can have put them. It finds the programs that find programs.
pub(super) struct First<'a>(pub(super) &'a Arc<Link>);

impl Runner for First<'_> {
    async fn run_all(&self, commands: &[Command]) -> Vec<Result<Output, Problem>> {
        let run = async |command: &Command| {
            let environment = self.0.environment(FIRST, &command.env).await?;
            let argv: Vec<String> =
                std::iter::once(command.program.clone()).chain(command.args.iter().cloned()).collect();
            let line =
                channel::line(&environment, self.0.nonce(), &argv, command.stdin.as_ref().map(Vec::len))?;
            let running = Running::start(self.0, self.0, line, command.stdin.clone(), Ends::Group).await;
            running.map_err(Failed::into_problem)?.finish(command).await
        };
        futures_util::future::join_all(commands.iter().map(run)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_that_read_words_otherwise_are_sent_none() {
        for shell in
            ["/bin/sh", "/usr/bin/bash", "/bin/dash", "/usr/bin/zsh", "/usr/local/bin/fish", "/bin/ash"]
        {
            assert!(reads_alike(Some(shell)).is_ok(), "{shell}");
        }
        for shell in [
            Some("/bin/tcsh"),
            Some("/bin/csh"),
            Some("/usr/bin/nu"),
            Some("/opt/bash/wrapper"),
            Some(""),
            None,
        ] {
            let problem = reads_alike(shell).unwrap_err();
            assert_eq!(problem.code, "LOGIN_SHELL_NOT_SUPPORTED", "{shell:?}");
            assert!(problem.message.contains("expected one of sh, ash, bash"), "{problem}");
        }
    }
}
