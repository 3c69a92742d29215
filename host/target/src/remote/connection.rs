//! One connection, with what was found out on it: channels, SFTP, and paths of programs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use russh::Channel;
use russh::client::Msg;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::channel::{self, RemoteCommand, StartError};
use super::programs::Programs;
use super::script;
use super::sftp::Sftp;
use crate::commands::AT_ONCE;
use crate::facts;
use crate::file_commands::Runner;
use crate::rights::{EndMethod, Signal};
use host_base::problem::{Category, Problem};
use host_base::{Command, Output};
use host_openssh::{Peer, SshConnection};

/// A server that doesn't answer for this time is lost: a live one opens a channel at once.
const OPENING: Duration = Duration::from_secs(15);
/// The time that an orderly end of the connection may take.
const CLOSING: Duration = Duration::from_secs(2);
/// The time between ending SFTP and opening a session in its place.
const GIVING_WAY: Duration = Duration::from_millis(200);
/// The time for which the server may still count a session that has ended.
const COUNTING: Duration = Duration::from_secs(10);
const MOMENT: Duration = Duration::from_millis(20);
/// The time limit of the host's own commands.
const ASKING: Duration = Duration::from_secs(20);
/// The directories of the host's first commands, which find the others. They are root's on every system.
const FIRST: &str = "/usr/bin:/bin";

/// A script that kills a whole group and its leader, which a wrapper of the server may have put elsewhere. It exits
/// with 1 where either is left.
const KILL: &str = r#"kill -s KILL -- "-$1" 2>/dev/null; kill -s KILL -- "$1" 2>/dev/null
for again in 1 2 3 4 5; do kill -s 0 -- "-$1" 2>/dev/null || kill -s 0 -- "$1" 2>/dev/null || exit 0; sleep 0.2; done
exit 1"#;
/// A script that sends one signal after the other, a second apart, until sudo has ended. It exits with 1 where a
/// process of its group is left.
const TELL: &str = r#"pid=$1; shift
for signal; do kill -s "$signal" "$pid" 2>/dev/null || break; sleep 1; done
for again in 1 2 3; do kill -s 0 "$pid" 2>/dev/null || break; sleep 1; done
for group in $(ps -e -o pgid= 2>/dev/null); do if [ "$group" = "$pid" ]; then exit 1; fi; done"#;

/// A script that does the same for a process group in which sudo is among others, and kills the others at the end. It exits
/// with 1 where a process of the group is left, or had to be killed: that may have been a sudo, which then leaves what it
/// runs.
const TELL_GROUP: &str = r#"pid=$1; shift
for signal; do kill -s "$signal" -- "-$pid" 2>/dev/null || break; sleep 1; done
for again in 1 2 3; do kill -s 0 -- "-$pid" 2>/dev/null || break; sleep 1; done
kill -s KILL -- "-$pid" 2>/dev/null && exit 1
for group in $(ps -e -o pgid= 2>/dev/null); do if [ "$group" = "$pid" ]; then exit 1; fi; done"#;

/// Login shells that are known to read the words of [`super::quote`] as they are meant.
const SHELLS: &[&str] = &["sh", "ash", "bash", "dash", "fish", "ksh", "ksh93", "mksh", "zsh"];

/// One connection.
pub(super) struct Connection {
    /// The number of this connection among those of the target. A separate one has 0.
    number: u64,
    ssh: SshConnection,
    /// The time at which the connection was made, and how long that took.
    made: (Instant, Duration),
    /// True once the server no longer answers.
    is_dead: AtomicBool,
    /// The permits for commands. sshd takes ten sessions; one is for SFTP and one for ending a command.
    channels: Arc<Semaphore>,
    /// The number of permits that were more than the server takes.
    refused: AtomicUsize,
    end_permit: Semaphore,
    /// Ends the command that holds a lock, if there is one.
    lock: Mutex<Option<CancellationToken>>,
    sftp: tokio::sync::Mutex<Option<Files>>,
    /// A secret that only the host's script prints.
    nonce: String,
    pub(super) programs: Programs,
    session_environment: Mutex<Option<facts::SessionEnvironment>>,
    tasks: TaskTracker,
}

/// Whether the server has SFTP.
#[derive(Clone)]
enum Files {
    Sftp(Arc<Sftp>),
    No,
}

impl Connection {
    /// Makes a connection of a session. `took` is the time that opening it took.
    pub(super) fn new(
        (ssh, took): (SshConnection, Duration),
        number: u64,
        tasks: TaskTracker,
    ) -> Result<Arc<Self>, Problem> {
        Ok(Arc::new(Self {
            number,
            ssh,
            made: (Instant::now(), took),
            is_dead: AtomicBool::new(false),
            channels: Arc::new(Semaphore::new(AT_ONCE)),
            end_permit: Semaphore::new(1),
            lock: Mutex::default(),
            refused: AtomicUsize::new(0),
            sftp: Default::default(),
            nonce: host_base::id::random()?,
            programs: Programs::default(),
            session_environment: Mutex::default(),
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
        self.ssh.peer()
    }

    /// Returns how long the connection exists, and how long making it took.
    pub(super) fn times(&self) -> (Duration, Duration) {
        (self.made.0.elapsed(), self.made.1)
    }

    /// Returns the number of commands that run on it.
    pub(super) fn busy(&self) -> usize {
        AT_ONCE - self.refused.load(Ordering::Acquire) - self.channels.available_permits()
    }

    /// Measures how long an answer takes.
    pub(super) async fn round_trip(&self) -> Result<Duration, Problem> {
        match tokio::time::timeout(OPENING, self.ssh.round_trip()).await {
            Ok(took) => took,
            Err(_) => {
                self.is_dead.store(true, Ordering::Release);
                self.close().await;
                Err(self.lost())
            }
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.ssh.is_closed() || self.is_dead.load(Ordering::Acquire)
    }

    pub(super) async fn closed(&self) {
        self.ssh.closed().await;
    }

    /// Ends the connection in order, unless that takes long.
    pub(super) async fn close(&self) {
        let _ = tokio::time::timeout(CLOSING, self.ssh.close()).await;
    }

    pub(super) fn lost(&self) -> Problem {
        let peer = self.peer();
        let message = format!("the connection to {} port {} was lost", peer.hostname, peer.port);
        Problem::new("CONNECTION_LOST", Category::Network, message)
    }

    /// Spawns a task for which nobody waits now. The server waits for it at its end.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Opens a channel once a permit is free. If the server takes fewer sessions than usual, it is asked with fewer.
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
                        // The server counts a session for a moment longer than the host does.
                        if since.get_or_insert_with(Instant::now).elapsed() > COUNTING {
                            return Err(problem);
                        }
                        tokio::time::sleep(MOMENT).await;
                    }
                }
            }
        }
    }

    /// Gives up SFTP. A server that takes one session at a time is better used for commands.
    async fn do_without_sftp(&self) -> bool {
        let mut files = self.sftp.lock().await;
        let had = matches!(*files, Some(Files::Sftp(_)));
        *files = Some(Files::No);
        drop(files);
        if had {
            // SFTP ends on the other side, and nothing reports it.
            tokio::time::sleep(GIVING_WAY).await;
        }
        had
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Option<CancellationToken>> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up the lock, because the server takes one session at a time.
    async fn do_without_lock(&self) -> bool {
        let Some(held) = self.lock().take() else { return false };
        tracing::info!("no lock on the target: the server takes one session at a time");
        held.cancel();
        tokio::time::sleep(GIVING_WAY).await;
        true
    }

    async fn session_channel(&self) -> Result<Channel<Msg>, Problem> {
        match tokio::time::timeout(OPENING, self.ssh.channel()).await {
            Ok(opened) => opened,
            Err(_) => {
                // The connection is given up, whether the other side ever notices or not.
                self.is_dead.store(true, Ordering::Release);
                self.close().await;
                Err(self.lost())
            }
        }
    }

    /// Returns the SFTP session, if the server has SFTP.
    pub(super) async fn sftp(self: &Arc<Self>) -> Option<Arc<Sftp>> {
        // The caller may go away meanwhile, and a channel without an owner would stay open.
        let connection = self.clone();
        self.tasks.spawn(async move { connection.files().await }).await.ok().flatten()
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

    /// Ends the command with this process id, without waiting.
    pub(super) fn end(self: &Arc<Self>, pid: u32, ends: EndMethod) {
        let connection = self.clone();
        self.spawn(async move {
            connection.kill(pid, ends).await;
        });
    }

    /// Ends a command by the shell's own `kill`, which is everywhere. Returns whether any process may be left.
    pub(super) async fn kill(self: &Arc<Self>, pid: u32, ends: EndMethod) -> bool {
        if self.is_closed() {
            return true;
        }
        let _permit = self.end_permit.acquire().await;
        let number = pid.to_string();
        let mut argv = vec!["/bin/sh", "-c"];
        match ends {
            EndMethod::Group => argv.extend([KILL, "sh", &number]),
            // There is no terminal here, and so sudo can't give a command one.
            EndMethod::Sudo(_) => argv.extend([TELL, "sh", &number]),
            EndMethod::SudoAmongOthers(_) => argv.extend([TELL_GROUP, "sh", &number]),
        }
        argv.extend(ends.signals(false).iter().map(|signal| name(*signal)));
        let told = self.tell(&argv).await;
        if let Err(problem) = &told {
            tracing::warn!(pid, %problem, "a command could not be ended");
        }
        !matches!(told, Ok(0))
    }

    /// Runs a command over a channel beside those of other commands. Returns the exit code.
    async fn tell(&self, argv: &[&str]) -> Result<u32, Problem> {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        let line = script::line(&[], &self.nonce, &argv, None)?;
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

    /// Returns the environment of this session, which is asked for once.
    pub(super) async fn session_environment(self: &Arc<Self>) -> Result<facts::SessionEnvironment, Problem> {
        let known = self.session_environment.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known {
            return Ok(known);
        }
        // This runs before any other environment is made.
        let script =
            r#"echo "$0 $$"; printf '%s\0%s\0%s\0' "$HOME" "$SHELL" "$SSH_CONNECTION"; echo "$0 $$" >&2"#;
        let words = ["exec", "/bin/sh", "-c", script, &self.nonce];
        let line = super::quote::line(words);
        let running = RemoteCommand::start(self, self, line, None, EndMethod::Group)
            .await
            .map_err(StartError::into_problem)?;
        let output = running.finish(&host_command("sh", &[])).await?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut values = said.split('\0').map(str::to_owned);
        let mut next = || values.next().filter(|value| !value.is_empty());
        let facts = facts::SessionEnvironment { home: next(), shell: next(), ssh_connection: next() };
        reads_alike(facts.shell.as_deref())?;
        *self.session_environment.lock().unwrap_or_else(PoisonError::into_inner) = Some(facts.clone());
        Ok(facts)
    }

    /// Returns the clean environment of commands on the target.
    pub(super) async fn environment(
        self: &Arc<Self>,
        path: &str,
        own: &[(String, String)],
    ) -> Result<Vec<(String, String)>, Problem> {
        let home = self.session_environment().await?.home.filter(|home| home.starts_with('/'));
        let home = home.unwrap_or_else(|| "/".to_owned());
        let fixed = [("PATH", path), ("HOME", &home), ("LC_ALL", "C.UTF-8")];
        let fixed = fixed.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(fixed.chain(own.iter().cloned()).collect())
    }
}

/// Returns a problem where the account's login shell may read a word differently than it was written. csh ends a word
/// at its newline, and runs what follows as a command.
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

/// Returns the signal's name as `kill -s` takes it.
fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::CONT => "CONT",
        Signal::TERM => "TERM",
        Signal::ALARM => "ALRM",
        _ => "KILL",
    }
}

/// Makes a command of the host's own.
pub(super) fn host_command(program: &str, args: &[&str]) -> Command {
    Command::new(program, args.iter().copied(), ASKING)
}

/// Runs commands by their names, in directories where only root can have put them. It runs the programs that find
/// other programs.
pub(super) struct BootstrapRunner<'a>(pub(super) &'a Arc<Connection>);

impl Runner for BootstrapRunner<'_> {
    async fn run_all(&self, commands: &[Command]) -> Vec<Result<Output, Problem>> {
        let run = async |command: &Command| {
            let environment = self.0.environment(FIRST, &command.env).await?;
            let argv: Vec<String> =
                std::iter::once(command.program.clone()).chain(command.args.iter().cloned()).collect();
            let line =
                script::line(&environment, self.0.nonce(), &argv, command.stdin.as_ref().map(Vec::len))?;
            let running =
                RemoteCommand::start(self.0, self.0, line, command.stdin.clone(), EndMethod::Group).await;
            running.map_err(StartError::into_problem)?.finish(command).await
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
