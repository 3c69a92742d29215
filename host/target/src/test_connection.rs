//! A connection for tests, which leads to this machine. The test decides when it is lost and whether it can be made
//! again. Commands run on this machine.

use std::sync::{Arc, Mutex, PoisonError};

use super::Facts;
use super::command_problem::uncertain;
use super::pipeline::Pipeline;
use host_base::problem::{Category, Problem};
use host_base::{Command, Output};

/// The fate of a command that is sent.
pub enum Fate {
    /// The command runs, and its output arrives.
    Answers,
    /// The test gives the answer: exit code and stdout. The other commands of a pipeline end with 0.
    Says(i32, String),
    /// The connection is lost before the command arrives.
    NeverComes,
    /// The command runs, and the connection is lost before its output arrives.
    NeverAnswers,
}

/// Decides what happens to each command, or to a pipeline by its last command.
pub type Script = dyn Fn(&Command) -> Fate + Send + Sync;

/// A connection to this machine.
pub struct TestConnection {
    script: Box<Script>,
    state: Mutex<State>,
}

struct State {
    connections: u64,
    is_connected: bool,
    is_reachable: bool,
    host_key: String,
    alter: Option<Arc<Alter>>,
}

/// Changes the facts, so that the machine seems to be another one.
type Alter = dyn Fn(&mut Facts) + Send + Sync;

impl TestConnection {
    /// Makes a connection that holds until the script says otherwise.
    pub fn new(script: impl Fn(&Command) -> Fate + Send + Sync + 'static) -> Arc<Self> {
        let host_key = "SHA256:first".to_owned();
        let state = State { connections: 1, is_connected: true, is_reachable: true, host_key, alter: None };
        Arc::new(Self { script: Box::new(script), state: Mutex::new(state) })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loses the connection.
    pub fn lose(&self) {
        self.state().is_connected = false;
    }

    /// Sets whether a new connection can be made from now on.
    pub fn set_reachable(&self, reachable: bool) {
        self.state().is_reachable = reachable;
    }

    /// Sets the host key and the facts that the next connection finds.
    pub fn set_machine(&self, host_key: &str, alter: impl Fn(&mut Facts) + Send + Sync + 'static) {
        let mut state = self.state();
        state.host_key = host_key.to_owned();
        state.alter = Some(Arc::new(alter));
    }

    pub(super) fn alter(&self, facts: &mut Facts) {
        let alter = self.state().alter.clone();
        if let Some(alter) = alter {
            alter(facts);
        }
    }

    pub(super) fn host_key(&self) -> Option<String> {
        let state = self.state();
        state.is_connected.then(|| state.host_key.clone())
    }

    /// Connects if there is no connection, and returns the number of connections so far.
    pub(super) fn connected(&self) -> Result<u64, Problem> {
        let mut state = self.state();
        if !state.is_connected {
            if !state.is_reachable {
                let message = "web1 port 22 can't be reached";
                return Err(Problem::new("CONNECTION_FAILED", Category::Network, message));
            }
            state.is_connected = true;
            state.connections += 1;
        }
        Ok(state.connections)
    }

    pub(super) fn is_still(&self, connection: u64) -> bool {
        let state = self.state();
        state.is_connected && state.connections == connection
    }

    pub(super) fn check_new_connection(&self) -> Result<(), Problem> {
        match self.state().is_reachable {
            true => Ok(()),
            false => Err(Problem::new("CONNECTION_FAILED", Category::Network, "nobody answers")),
        }
    }

    pub(super) async fn carry(
        &self,
        pipeline: Pipeline<'_>,
        changes: bool,
        running: impl Future<Output = Result<Vec<Output>, Problem>>,
    ) -> Result<Vec<Output>, Problem> {
        self.connected()?;
        match (self.script)(pipeline.last()) {
            Fate::Answers => return running.await,
            Fate::Says(exit_code, stdout) => {
                let mut outputs = vec![Output::default(); pipeline.len() - 1];
                outputs.push(Output {
                    exit_code,
                    stdout_bytes: stdout.len() as u64,
                    stdout_lines: stdout.lines().count() as u64,
                    stdout: stdout.into_bytes(),
                    ..Output::default()
                });
                return Ok(outputs);
            }
            Fate::NeverComes => {}
            Fate::NeverAnswers => drop(running.await),
        }
        self.lose();
        let lost =
            Problem::new("CONNECTION_LOST", Category::Network, "the connection to web1 port 22 was lost");
        Err(if changes { uncertain(&pipeline.name(), &lost) } else { lost })
    }
}
