//! This machine. The kernel gets the argument vector, and files are opened in place.

use std::ffi::OsStr;
use std::io::pipe;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::process::{ChildStderr, ChildStdout};
use tokio_util::sync::CancellationToken;

use super::command_problem::{LEFTOVER, timed_out};
use super::entry::Trusted;
use super::pipeline::{Pipeline, sole};
use super::process_group::ProcessGroup;
use super::resolve::{LastLink, Resolved, is_kernels, resolve};
pub(super) use super::rights::Rights;
use super::rights::{CommandPrefix, EndMethod, command_prefix};
use super::sealed_stdin::sealed;
use super::stream::{Captured, LocalOutputStream, capture, with_output_so_far};
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
        sole(self.run_pipeline(command.into(), rights).await?)
    }

    /// Runs the pipeline to its end or to the timeout. Each command has a process group of its own. Dropping the future
    /// ends every process of all groups.
    pub(super) async fn run_pipeline(
        &self,
        pipeline: Pipeline<'_>,
        rights: Rights,
    ) -> Result<Vec<Output>, Problem> {
        let (started, limit, last) = (Instant::now(), pipeline.limit(), pipeline.last());
        let Stages { mut groups, ends, stdout, stderrs } = self.start(pipeline, rights)?;
        let mut out = Captured::of(last);
        let mut errs: Vec<Captured> = pipeline.commands().map(Captured::of).collect();

        let statuses = {
            let captures = pipeline.commands().zip(stderrs).zip(&mut errs);
            let captures = captures.map(|((command, stderr), err)| capture(stderr, command.keep, err));
            let reading = async { tokio::join!(capture(stdout, last.keep, &mut out), join_all(captures)) };
            let ended = until_ended(&mut groups);
            tokio::pin!(reading, ended);
            let ending = async {
                tokio::select! {
                    statuses = &mut ended => {
                        let _ = tokio::time::timeout(LEFTOVER, &mut reading).await;
                        statuses
                    }
                    // Output may be closed long before the command ends.
                    _ = &mut reading => ended.await,
                }
            };
            tokio::time::timeout(limit, ending).await
        };

        let stopped = |left, out, errs: Vec<Captured>| {
            let mut err = Captured::default();
            errs.into_iter().for_each(|stage| err.append(stage, last.keep));
            Err(with_output_so_far(timed_out(&pipeline.name(), limit, left), last.keep, out, err))
        };
        let Ok(statuses) = statuses else {
            let left = join_all(groups.iter_mut().map(ProcessGroup::end)).await;
            return stopped(left.contains(&true), out, errs);
        };
        // This ends what the commands left behind. The numbers can't belong to other groups yet: numbers are given out
        // in a circle, and these were in use a moment ago.
        groups.iter_mut().for_each(ProcessGroup::leader_ended);
        let exit_code = |(command, status): (&Command, std::io::Result<ExitStatus>)| {
            let status = status.map_err(|error| Problem::io(&command.program, &error))?;
            Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
        };
        let exit_codes: Vec<i32> =
            pipeline.commands().zip(statuses).map(exit_code).collect::<Result<_, Problem>>()?;
        let was_backstop =
            ends.iter().zip(&exit_codes).any(|(ends, exit_code)| ends.was_backstop(*exit_code));
        if was_backstop && started.elapsed() > limit {
            return stopped(false, out, errs);
        }
        let mut outputs: Vec<Output> = exit_codes
            .into_iter()
            .zip(errs)
            .map(|(exit_code, err)| Output {
                exit_code,
                truncated: err.truncated,
                stderr: err.into_bytes(),
                duration: started.elapsed(),
                ..Output::default()
            })
            .collect();
        if let Some(last) = outputs.last_mut() {
            out.into_stdout_of(last);
        }
        Ok(outputs)
    }

    /// Starts a command whose stdout is read piece by piece. Only the beginning of its stderr is kept, to tell a
    /// refusal of sudo from the command's own messages.
    pub(super) async fn open(&self, command: &Command, rights: Rights) -> Result<LocalOutputStream, Problem> {
        let (mut prepared, ends) = self.prepare(command, command.timeout, rights)?;
        let mut child = prepared.spawn().map_err(|error| Problem::io(&command.program, &error))?;
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
        Ok(self.command_prefix(command, command.timeout, rights)?.shown)
    }

    fn command_prefix(
        &self,
        command: &Command,
        limit: Duration,
        rights: Rights,
    ) -> Result<CommandPrefix, Problem> {
        let find = |name: &str| Ok(self.programs.find(name)?.to_string_lossy().into_owned());
        command_prefix(command, limit, rights, find)
    }

    /// Starts the commands of a pipeline, once each of them is known to be there and to be allowed. Each has only its own
    /// ends of the pipes, because all descriptors of this process are closed when a program starts.
    fn start(&self, pipeline: Pipeline<'_>, rights: Rights) -> Result<Stages, Problem> {
        let prepare = |(at, command)| {
            self.prepare(command, pipeline.limit(), rights).map_err(|problem| pipeline.at(at, problem))
        };
        let (mut prepared, ends): (Vec<_>, Vec<_>) =
            pipeline.commands().enumerate().map(prepare).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        for at in 1..prepared.len() {
            let (reader, writer) = pipe().map_err(|error| Problem::io("a pipe", &error))?;
            prepared[at - 1].stdout(writer);
            prepared[at].stdin(reader);
        }
        let (mut groups, mut stdout, mut stderrs) = (Vec::new(), None, Vec::new());
        // Each is dropped once it has started, and this process' ends of its pipes with it. Where one can't be started,
        // dropping the groups ends those before it.
        for ((at, command), (mut prepared, ends)) in
            pipeline.commands().enumerate().zip(prepared.into_iter().zip(&ends))
        {
            let spawned = prepared.spawn().map_err(|error| Problem::io(&command.program, &error));
            let mut child = spawned.map_err(|problem| pipeline.at(at, problem))?;
            stdout = child.stdout.take();
            stderrs.extend(child.stderr.take());
            groups.push(ProcessGroup::of(child, *ends));
        }
        match stdout {
            Some(stdout) if stderrs.len() == groups.len() => Ok(Stages { groups, ends, stdout, stderrs }),
            _ => Err(Problem::new("IO_ERROR", Category::Internal, "the command has no output pipes")),
        }
    }

    fn prepare(
        &self,
        command: &Command,
        limit: Duration,
        rights: Rights,
    ) -> Result<(tokio::process::Command, EndMethod), Problem> {
        let program = self.programs.find(&command.program)?;
        let command_prefix = self.command_prefix(command, limit, rights)?;
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
        Ok((prepared, command_prefix.ends))
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

/// The commands of a pipeline that were started.
struct Stages {
    groups: Vec<ProcessGroup>,
    ends: Vec<EndMethod>,
    /// The stdout of the last one.
    stdout: ChildStdout,
    stderrs: Vec<ChildStderr>,
}

/// Waits until the leader of each group has ended. A process that one left behind and that holds the pipe to the next
/// command is ended, unless that command has ended anyway.
async fn until_ended(groups: &mut [ProcessGroup]) -> Vec<std::io::Result<ExitStatus>> {
    let have_ended: Vec<CancellationToken> = groups.iter().map(|_| CancellationToken::new()).collect();
    let until_ended = async |(at, group): (usize, &mut ProcessGroup)| {
        let status = group.wait().await;
        have_ended[at].cancel();
        if let Some(next) = have_ended.get(at + 1)
            && tokio::time::timeout(LEFTOVER, next.cancelled()).await.is_err()
        {
            group.leader_ended();
        }
        status
    };
    join_all(groups.iter_mut().enumerate().map(until_ended)).await
}

pub(super) fn read_within(
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
