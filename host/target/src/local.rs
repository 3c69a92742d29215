//! This machine. The kernel gets the argument vector, and files are opened in place.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use tokio::process::Child;

use super::command_problem::{LEFTOVER, timed_out};
use super::entry::Trusted;
use super::process_group::ProcessGroup;
use super::resolve::{LastLink, Resolved, is_kernels, resolve};
pub(super) use super::rights::Rights;
use super::rights::{CommandPrefix, EndMethod, command_prefix};
use super::sealed_stdin::sealed;
use super::stream::{Captured, LocalOutputStream, capture, with_last_words};
use super::{Metadata, PathCheck, ReadRequest, files};
use host_base::problem::{Category, Problem};
use host_base::program::{PATH, Programs};
use host_base::{Command, Output};

/// The number of the kernel's own files up to which they are read in this thread. They never wait for a device, and
/// changing to another thread and back would take longer than reading them.
const READ_HERE: usize = 16;

/// The most bytes that one call reads in all. No module could hold more.
pub(super) const READ_BYTES: usize = 64 << 20;

/// This machine.
pub struct Local {
    programs: Programs,
    home: PathBuf,
}

impl Local {
    pub(super) fn new() -> Self {
        Self { programs: Programs::default(), home: home() }
    }

    /// Returns the path of a program.
    pub(super) fn program(&self, name: &str) -> Result<PathBuf, Problem> {
        self.programs.find(name)
    }

    /// Runs the command to its end or to the timeout. Dropping the future ends every process of its group.
    pub(super) async fn run(&self, command: &Command, rights: Rights) -> Result<Output, Problem> {
        let started = Instant::now();
        let (mut child, ends) = self.spawn(command, rights)?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(Problem::new("IO_ERROR", Category::Internal, "the command has no output pipes"));
        };
        let mut group = ProcessGroup::of(child, ends);
        let (mut out, mut err) = (Captured::of(command), Captured::of(command));

        let status = {
            let reading = async {
                tokio::join!(
                    capture(stdout, command.keep, &mut out),
                    capture(stderr, command.keep, &mut err)
                );
            };
            tokio::pin!(reading);
            let ending = async {
                tokio::select! {
                    status = group.wait() => {
                        let _ = tokio::time::timeout(LEFTOVER, &mut reading).await;
                        status
                    }
                    // Output may be closed long before the command ends.
                    () = &mut reading => group.wait().await,
                }
            };
            tokio::time::timeout(command.timeout, ending).await
        };

        let Ok(status) = status else {
            let problem = timed_out(&command.program, command.timeout, group.end().await);
            return Err(with_last_words(problem, out, err));
        };
        // This ends what the command left behind. The number can't belong to another group yet: numbers are given out
        // in a circle, and this one was in use a moment ago.
        group.leader_ended();
        let status = status.map_err(|error| Problem::io(&command.program, &error))?;
        let exit_code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        if ends.was_backstop(exit_code) && started.elapsed() > command.timeout {
            let problem = timed_out(&command.program, command.timeout, false);
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

    /// Starts a command whose stdout is read piece by piece. Only the beginning of its stderr is kept, to tell a
    /// refusal of sudo from the command's own messages.
    pub(super) async fn open(&self, command: &Command, rights: Rights) -> Result<LocalOutputStream, Problem> {
        let (mut child, ends) = self.spawn(command, rights)?;
        let stderr = child.stderr.take();
        let stdout = child.stdout.take();
        let stdout =
            stdout.ok_or_else(|| Problem::new("IO_ERROR", Category::Internal, "the command has no pipe"))?;
        let deadline = tokio::time::Instant::now() + command.timeout;
        Ok(LocalOutputStream::new(
            stdout,
            stderr,
            deadline,
            command.program.clone(),
            ProcessGroup::of(child, ends),
        ))
    }

    /// Returns the rights that a command would really take, as they are shown: an empty text, or the call of sudo, see
    /// [`CommandPrefix::shown`]. Returns a problem where the command can't be started.
    pub(super) fn prefix(&self, command: &Command, rights: Rights) -> Result<String, Problem> {
        self.programs.find(&command.program)?;
        Ok(self.command_prefix(command, rights)?.shown)
    }

    fn command_prefix(&self, command: &Command, rights: Rights) -> Result<CommandPrefix, Problem> {
        command_prefix(command, rights, |name| Ok(self.programs.find(name)?.to_string_lossy().into_owned()))
    }

    fn spawn(&self, command: &Command, rights: Rights) -> Result<(Child, EndMethod), Problem> {
        let program = self.programs.find(&command.program)?;
        let command_prefix = self.command_prefix(command, rights)?;
        let stdin = match &command.stdin {
            Some(contents) => {
                sealed(contents).map_err(|error| Problem::io("what the command reads", &error))?.into()
            }
            None => Stdio::null(),
        };
        let mut argv = command_prefix.argv.iter().map(OsStr::new).chain([program.as_os_str()]);
        let mut prepared = tokio::process::Command::new(argv.next().unwrap_or_default());
        prepared
            .args(argv)
            .args(&command.args)
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", &self.home)
            .env("LC_ALL", "C.UTF-8")
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            // If sudo were killed, it would leave what it runs; see `ProcessGroup`.
            .kill_on_drop(command_prefix.ends == EndMethod::Group);
        let child = prepared.spawn().map_err(|error| Problem::io(&command.program, &error))?;
        Ok((child, command_prefix.ends))
    }

    /// Reads files in this process, with its own rights. The next two functions do the same.
    pub(super) async fn read_all(
        &self,
        requests: Vec<ReadRequest>,
        trusted: Trusted,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Vec<u8>, Problem>> {
        let count = requests.len();
        let at_once = count <= READ_HERE && requests.iter().all(|request| is_kernels(&request.path));
        let read = move || read_within(READ_BYTES, &requests, &trusted, &*check);
        if at_once {
            return read();
        }
        blocking(read).await.unwrap_or_else(|problem| vec![Err(problem); count])
    }

    pub(super) async fn stat_all(
        &self,
        paths: Vec<String>,
        trusted: Trusted,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Option<Metadata>, Problem>> {
        let count = paths.len();
        let stat = move || files::stat_all(&paths, &trusted, &*check);
        blocking(stat).await.unwrap_or_else(|problem| vec![Err(problem); count])
    }

    pub(super) async fn list_all(
        &self,
        paths: Vec<String>,
        trusted: Trusted,
        check: Arc<PathCheck>,
    ) -> Vec<Result<Vec<String>, Problem>> {
        let count = paths.len();
        let list = move || files::list_all(&paths, &trusted, &*check);
        blocking(list).await.unwrap_or_else(|problem| vec![Err(problem); count])
    }

    /// Returns where paths lead.
    pub(super) async fn resolve(
        &self,
        paths: Vec<String>,
        last: LastLink,
        trusted: Trusted,
    ) -> Vec<Result<Resolved, Problem>> {
        let count = paths.len();
        let resolve = move || paths.iter().map(|path| resolve(path, last, &trusted)).collect();
        blocking(resolve).await.unwrap_or_else(|problem| vec![Err(problem); count])
    }
}

fn read_within(
    mut left: usize,
    requests: &[ReadRequest],
    trusted: &Trusted,
    check: &PathCheck,
) -> Vec<Result<Vec<u8>, Problem>> {
    let read = |request| {
        if left == 0 {
            return Err(files_too_large());
        }
        let contents = files::read(request, trusted, check)?;
        left = left.saturating_sub(contents.len());
        Ok(contents)
    };
    requests.iter().map(read).collect()
}

pub(super) fn files_too_large() -> Problem {
    let message = format!("these files together are larger than {READ_BYTES} bytes");
    Problem::new("FILES_TOO_LARGE", Category::Resource, message)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Problem::new("INTERNAL_ERROR", Category::Internal, error.to_string()))
}

/// Returns the caller's home. Programs look there for their configuration.
fn home() -> PathBuf {
    std::env::var_os("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_absolute())
        .unwrap_or_else(|| "/".into())
}

#[cfg(test)]
mod tests;
