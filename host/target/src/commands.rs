//! Runs commands on a target: those that look, side by side or connected by pipes, and those that change something.

use std::sync::PoisonError;

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::command_problem::{cancelled, not_allowed, refused, refused_by_sudo, without_warnings_of_sudo};
use crate::file_commands::Runner;
use crate::pipeline::{Pipeline, sole};
use crate::rights::Rights;
use crate::{Identity, Machine, Target, rights};
use host_base::problem::Problem;
use host_base::{Command, Output, Privilege};

/// The number of commands that run at the same time. The others wait.
pub(super) const AT_ONCE: usize = 8;

/// The context of a change that the host makes.
#[derive(Clone, Copy)]
pub(super) struct ChangeContext<'a> {
    /// Stops the change when it is cancelled.
    pub(super) stop: &'a CancellationToken,
    /// The number of the connection that the change uses. It uses no other.
    pub(super) connection: u64,
}

impl Machine {
    /// Runs a pipeline. `changes` is given for one that changes something.
    async fn run(
        &self,
        pipeline: Pipeline<'_>,
        rights: Rights,
        changes: Option<ChangeContext<'_>>,
    ) -> Result<Vec<Output>, Problem> {
        match (self, changes) {
            (Self::Local(local), None) => local.run_pipeline(pipeline, rights).await,
            (Self::Local(local), Some(acting)) => tokio::select! {
                outputs = local.run_pipeline(pipeline, rights) => outputs,
                // Dropping the future ends the processes of all commands.
                () = acting.stop.cancelled() => Err(cancelled(&pipeline.name())),
            },
            (Self::Remote(remote), Some(acting)) => remote.act(pipeline, rights, acting).await,
            (Self::Remote(remote), None) => remote.run(pipeline, rights).await,
            (Self::Recorded(recorded), changes) => recorded.run(pipeline, rights, changes.is_some()),
        }
    }

    /// Returns what the command at this place may have written to stderr. Over SSH, the commands of a pipeline share
    /// their stderr, and the last output has it.
    fn stderr<'o>(&self, outputs: &'o [Output], at: usize) -> &'o [u8] {
        let holder = match self {
            Self::Local(_) | Self::Recorded(_) => outputs.get(at),
            Self::Remote(_) => outputs.last(),
        };
        holder.map_or(&[], |output| &output.stderr)
    }
}

impl Target {
    /// Runs commands side by side, and returns the answers in the order given. Dropping the future ends the commands
    /// and all that they started.
    pub async fn run_all(&self, commands: &[Command]) -> Vec<Result<Output, Problem>> {
        let rights = match self.facts().await {
            Ok(facts) => rights(&facts),
            Err(problem) => return vec![Err(problem); commands.len()],
        };
        // Each future is boxed, because it is large and is moved several times before it runs.
        let running: Vec<_> = commands.iter().map(|command| Box::pin(self.run(command, rights))).collect();
        // They are polled in this task, so that dropping the whole drops each of them.
        futures_util::stream::iter(running).buffered(AT_ONCE).collect().await
    }

    /// Runs commands that are connected by pipes, and returns the output of each, in the order given. At most eight are
    /// taken, and only the first may have a standard input.
    ///
    /// Only the last output has a stdout: what the others wrote went into the pipes, and their counts are 0. On this
    /// machine, each output has its command's own stderr. Over SSH, all of it is in the last output, because one channel
    /// carries it.
    ///
    /// The pipeline has one time limit, the longest of its commands'. It is stopped as a whole, with all that its
    /// commands started. As in a shell, a command that ends early lets the one before it end by SIGPIPE, and every
    /// command is waited for. On this machine, a process that a command leaves behind doesn't hold up the next command;
    /// over SSH, and behind sudo, it does until the time limit.
    pub async fn run_pipeline(&self, commands: &[Command]) -> Result<Vec<Output>, Problem> {
        let pipeline = Pipeline::of(commands)?;
        let rights = rights(&*self.facts().await?);
        Box::pin(self.once(pipeline, rights, None)).await
    }

    /// Runs a command that changes something. If the connection is lost while it runs, its outcome is not known, and
    /// the problem says so.
    pub async fn act(&self, command: &Command) -> Result<Output, Problem> {
        self.act_unless(command, &CancellationToken::new()).await
    }

    /// Does the same, and returns `CANCELLED` where the command was stopped by `stop`.
    pub async fn act_unless(&self, command: &Command, stop: &CancellationToken) -> Result<Output, Problem> {
        sole(self.change(command.into(), stop).await?)
    }

    /// Runs a pipeline that changes something. What [`Target::run_pipeline`] and [`Target::act`] say holds for it.
    pub async fn act_pipeline(&self, commands: &[Command]) -> Result<Vec<Output>, Problem> {
        self.act_pipeline_unless(commands, &CancellationToken::new()).await
    }

    /// Does the same, and returns `CANCELLED` where the pipeline was stopped by `stop`.
    pub async fn act_pipeline_unless(
        &self,
        commands: &[Command],
        stop: &CancellationToken,
    ) -> Result<Vec<Output>, Problem> {
        self.change(Pipeline::of(commands)?, stop).await
    }

    async fn change(&self, pipeline: Pipeline<'_>, stop: &CancellationToken) -> Result<Vec<Output>, Problem> {
        let mut again = true;
        loop {
            // These futures are boxed, because this one is larger than the deep ones that a plan has already.
            let known = Box::pin(self.known(false)).await?;
            let pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(meant) = pinned {
                meant.is(&Identity::of(&known.facts, known.host_key), self.name())?;
            }
            // The change uses the connection that was asked who answers, and no other.
            let acting = ChangeContext { stop, connection: known.connection };
            let rights = rights(&known.facts);
            let own = match rights.limited {
                true => Box::pin(self.without_sudo(pipeline, rights)).await?,
                false => Vec::new(),
            };
            let with_own = (!own.is_empty()).then(|| pipeline.with_own_rights(&own));
            let meant = with_own.as_deref().map_or(Ok(pipeline), Pipeline::of)?;
            match Box::pin(self.once(meant, rights, Some(acting))).await {
                Err(problem) if again && problem.code == "CONNECTION_LOST" => again = false,
                acted => return acted,
            }
        }
    }

    /// Returns the places of the commands that sudo would refuse and that run with the account's own rights instead.
    /// Where another command of several would be refused, that is a problem before any of them starts.
    async fn without_sudo(&self, pipeline: Pipeline<'_>, rights: Rights) -> Result<Vec<usize>, Problem> {
        let mut own = Vec::new();
        for (at, command) in pipeline.commands().enumerate() {
            let may_do = command.privilege == Privilege::RootIfAvailable;
            // A single command is refused by sudo itself, and nothing has run then.
            let is_asked = may_do || pipeline.len() > 1;
            if !is_asked || self.is_allowed(command, rights).await {
                continue;
            }
            if !may_do {
                return Err(pipeline.at(at, not_allowed()));
            }
            own.push(at);
        }
        Ok(own)
    }

    async fn run(&self, command: &Command, rights: Rights) -> Result<Output, Problem> {
        sole(self.once(command.into(), rights, None).await?)
    }

    /// Runs a pipeline once. Where sudo refuses a command and the caller's rights may do, all run again, this command
    /// without sudo.
    async fn once(
        &self,
        pipeline: Pipeline<'_>,
        rights: Rights,
        changes: Option<ChangeContext<'_>>,
    ) -> Result<Vec<Output>, Problem> {
        #[cfg(any(test, feature = "test-support"))]
        if let Some(test_connection) = &self.test_connection {
            return test_connection
                .carry(pipeline, changes.is_some(), self.machine.run(pipeline, rights, changes))
                .await;
        }
        let mut outputs = self.machine.run(pipeline, rights, changes).await?;
        let mut own = Vec::new();
        for (at, (command, output)) in pipeline.commands().zip(&outputs).enumerate() {
            if !rights.takes_sudo(&command.privilege) {
                continue;
            }
            let stderr = self.machine.stderr(&outputs, at);
            match refused_by_sudo(output.exit_code, !output.stdout.is_empty(), stderr) {
                None => {}
                // A command that changes something isn't started twice, whatever it printed itself;
                // [`Target::without_sudo`] asked sudo before.
                Some(_) if command.privilege == Privilege::RootIfAvailable && changes.is_none() => {
                    own.push(at)
                }
                Some(said) => return Err(refused(&command.program, &said)),
            }
        }
        if own.is_empty() {
            if pipeline.commands().any(|command| rights.takes_sudo(&command.privilege)) {
                outputs
                    .iter_mut()
                    .for_each(|output| without_warnings_of_sudo(output.exit_code, &mut output.stderr));
            }
            return Ok(outputs);
        }
        self.machine.run(Pipeline::of(&pipeline.with_own_rights(&own))?, rights, changes).await
    }

    /// Says whether sudo would run the command, or isn't needed.
    pub(super) async fn is_allowed(&self, command: &Command, rights: Rights) -> bool {
        let account = match &command.privilege {
            Privilege::Caller => return true,
            Privilege::Root | Privilege::RootIfAvailable => "root",
            Privilege::User(name) => name,
        };
        let asked = ["-n", "-l", "-u", account, "--", &command.program].map(str::to_owned);
        let args = asked.into_iter().chain(command.args.iter().cloned()).collect();
        let question = Command {
            program: "sudo".to_owned(),
            args,
            privilege: Privilege::Caller,
            stdin: None,
            ..command.clone()
        };
        self.run(&question, rights).await.is_ok_and(|output| output.exit_code == 0)
    }
}

impl Runner for Target {
    async fn run_all(&self, commands: &[Command]) -> Vec<Result<Output, Problem>> {
        Self::run_all(self, commands).await
    }
}

#[cfg(test)]
mod tests;
