//! Runs commands behind SSH: finds their programs, gets their rights, and starts them over one channel.

use std::sync::Arc;
use std::time::Duration;

use super::channel::{RemoteCommand, StartError};
use super::connection::Connection;
use super::exit_codes::ExitCodes;
use super::output_stream::RemoteOutputStream;
use super::{Remote, script};
use crate::command_problem;
use crate::commands::ChangeContext;
use crate::pipeline::Pipeline;
use crate::rights::{CommandPrefix, EndMethod, Rights, command_prefix};
use host_base::problem::Problem;
use host_base::program::PATH;
use host_base::{Command, Output, Privilege};

/// What is sent to start a pipeline.
struct Prepared {
    line: String,
    stdin: Option<Vec<u8>>,
    ends: EndMethod,
    exit_codes: Option<ExitCodes>,
}

impl Remote {
    pub(super) async fn command_prefix_on(
        &self,
        connection: &Arc<Connection>,
        command: &Command,
        limit: Duration,
        rights: Rights,
    ) -> Result<CommandPrefix, Problem> {
        let names = ["sudo", "timeout"];
        if command.privilege != Privilege::Caller {
            for name in names {
                // Where a program is missing that the command needs, the call of `command_prefix` below says so.
                let _ = self.find(connection, name).await;
            }
        }
        let known =
            |name: &str| connection.programs.known(name).ok_or_else(|| host_base::program::not_found(name));
        command_prefix(command, limit, rights, known)
    }

    /// Starts a pipeline. With `only`, it uses the connection of this number and no other.
    async fn start(
        &self,
        pipeline: Pipeline<'_>,
        rights: Rights,
        only: Option<u64>,
    ) -> Result<RemoteCommand, StartError> {
        let mut again = true;
        loop {
            let connection = self.connection().await.map_err(StartError::NotStarted)?;
            if only.is_some_and(|number| number != connection.number()) {
                return Err(StartError::NotStarted(connection.lost()));
            }
            match self.start_on(&connection, &connection, pipeline, rights).await {
                // The connection was lost without notice, and nothing was started.
                Err(StartError::NotStarted(problem)) if again && problem.code == "CONNECTION_LOST" => {
                    again = false
                }
                started => return started,
            }
        }
    }

    async fn start_on(
        &self,
        connection: &Arc<Connection>,
        channels: &Arc<Connection>,
        pipeline: Pipeline<'_>,
        rights: Rights,
    ) -> Result<RemoteCommand, StartError> {
        let prepared = self.prepare(connection, channels.nonce(), pipeline, rights).await;
        let Prepared { line, stdin, ends, exit_codes } = prepared.map_err(StartError::NotStarted)?;
        let mut running = RemoteCommand::start(channels, connection, line, stdin, ends).await?;
        running.exit_codes = exit_codes;
        Ok(running)
    }

    async fn prepare(
        &self,
        connection: &Arc<Connection>,
        nonce: &str,
        pipeline: Pipeline<'_>,
        rights: Rights,
    ) -> Result<Prepared, Problem> {
        let (mut stages, mut ends) = (Vec::new(), Vec::new());
        for (at, command) in pipeline.commands().enumerate() {
            let (argv, end) = self
                .argv(connection, command, pipeline.limit(), rights)
                .await
                .map_err(|problem| pipeline.at(at, problem))?;
            stages.push(argv);
            ends.push(end);
        }
        let (ends, reads) = (EndMethod::of_all(&ends), pipeline.stdin().map(Vec::len));
        if let [argv] = stages.as_slice() {
            let environment = connection.environment(PATH, &pipeline.last().env).await?;
            let line = script::line(&environment, nonce, argv, reads)?;
            return Ok(Prepared { line, stdin: pipeline.stdin().cloned(), ends, exit_codes: None });
        }
        let environment = connection.environment(PATH, &[]).await?;
        let stages = pipeline.commands().zip(stages);
        let stages: Vec<_> =
            stages.map(|(command, argv)| script::with_variables(&command.env, argv)).collect();
        let line = script::pipeline_line(&environment, nonce, &stages, reads)?;
        let exit_codes = ExitCodes::new(pipeline.len())?;
        let stdin = Some(exit_codes.stdin(pipeline.stdin()));
        Ok(Prepared { line, stdin, ends, exit_codes: Some(exit_codes) })
    }

    /// Returns the words that start a command with its rights, and the way to end it.
    async fn argv(
        &self,
        connection: &Arc<Connection>,
        command: &Command,
        limit: Duration,
        rights: Rights,
    ) -> Result<(Vec<String>, EndMethod), Problem> {
        let program = self.find(connection, &command.program).await?;
        let CommandPrefix { mut argv, ends, .. } =
            self.command_prefix_on(connection, command, limit, rights).await?;
        argv.push(program);
        argv.extend(command.args.iter().cloned());
        Ok((argv, ends))
    }

    /// Runs a pipeline to its end or to the timeout. Dropping the future ends it.
    pub(crate) async fn run(&self, pipeline: Pipeline<'_>, rights: Rights) -> Result<Vec<Output>, Problem> {
        let running = self.start(pipeline, rights, None).await.map_err(StartError::into_problem)?;
        running.finish_unless(pipeline, std::future::pending()).await
    }

    /// Runs a pipeline that changes something. If the connection is lost while it runs, its outcome is not known.
    pub(crate) async fn act(
        &self,
        pipeline: Pipeline<'_>,
        rights: Rights,
        acting: ChangeContext<'_>,
    ) -> Result<Vec<Output>, Problem> {
        // A server that closes the channel doesn't tell the outcome either.
        let uncertain = |problem: Problem| match matches!(&*problem.code, "CONNECTION_LOST" | "IO_ERROR") {
            true => command_problem::uncertain(&pipeline.name(), &problem),
            false => problem,
        };
        match self.start(pipeline, rights, Some(acting.connection)).await {
            Err(StartError::NotStarted(problem)) => Err(problem),
            Err(StartError::MaybeStarted(problem)) => Err(uncertain(problem)),
            Ok(running) => running.finish_unless(pipeline, acting.stop.cancelled()).await.map_err(uncertain),
        }
    }

    pub(crate) async fn stream(
        &self,
        command: &Command,
        rights: Rights,
    ) -> Result<RemoteOutputStream, Problem> {
        let connection = self.connection().await?;
        let streams = self.beside(&connection).await?;
        let running = self
            .start_on(&connection, &streams, command.into(), rights)
            .await
            .map_err(StartError::into_problem)?;
        Ok(RemoteOutputStream::new(running, command))
    }
}
