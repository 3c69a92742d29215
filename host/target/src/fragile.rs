//! For tests: this machine as if it were behind a connection, which goes when the test says so and comes back where it
//! lets it. What runs, runs here.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Facts, uncertain};
use host_base::problem::{Category, Problem};
use host_base::{Command, Output};

/// What becomes of a command that is sent.
pub enum Fate {
    /// It runs, and its answer comes.
    Answers,
    /// The test answers for it: exit code and stdout.
    Says(i32, String),
    /// The connection goes before the command has come to the other side.
    NeverComes,
    /// It runs, and the connection goes before its answer comes.
    NeverAnswers,
}

/// Decides what becomes of each command.
pub type Script = dyn Fn(&Command) -> Fate + Send + Sync;

/// A connection to this machine.
pub struct Line {
    script: Box<Script>,
    state: Mutex<State>,
}

struct State {
    connections: u64,
    is_there: bool,
    can_be_had: bool,
    host_key: String,
    alter: Option<Arc<Alter>>,
}

/// What another machine would say of itself.
type Alter = dyn Fn(&mut Facts) + Send + Sync;

impl Line {
    /// One that is there, until the script says otherwise.
    pub fn new(script: impl Fn(&Command) -> Fate + Send + Sync + 'static) -> Arc<Self> {
        let host_key = "SHA256:first".to_owned();
        let state = State { connections: 1, is_there: true, can_be_had: true, host_key, alter: None };
        Arc::new(Self { script: Box::new(script), state: Mutex::new(state) })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is gone, as after a command of the script's.
    pub fn goes(&self) {
        self.state().is_there = false;
    }

    /// From now on nobody is to be reached, or somebody is again.
    pub fn can_be_had(&self, can: bool) {
        self.state().can_be_had = can;
    }

    /// From the next connection on this is what is found out.
    pub fn leads_to(&self, host_key: &str, alter: impl Fn(&mut Facts) + Send + Sync + 'static) {
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
        state.is_there.then(|| state.host_key.clone())
    }

    /// Counts connections.
    pub(super) fn connected(&self) -> Result<u64, Problem> {
        let mut state = self.state();
        if !state.is_there {
            if !state.can_be_had {
                let message = "web1 port 22 can't be reached";
                return Err(Problem::new("CONNECTION_FAILED", Category::Network, message));
            }
            state.is_there = true;
            state.connections += 1;
        }
        Ok(state.connections)
    }

    pub(super) fn is_still(&self, connection: u64) -> bool {
        let state = self.state();
        state.is_there && state.connections == connection
    }

    pub(super) fn is_reached_anew(&self) -> Result<(), Problem> {
        match self.state().can_be_had {
            true => Ok(()),
            false => Err(Problem::new("CONNECTION_FAILED", Category::Network, "nobody answers")),
        }
    }

    pub(super) async fn carry(
        &self,
        command: &Command,
        changes: bool,
        running: impl Future<Output = Result<Output, Problem>>,
    ) -> Result<Output, Problem> {
        self.connected()?;
        match (self.script)(command) {
            Fate::Answers => return running.await,
            Fate::Says(exit_code, stdout) => {
                return Ok(Output {
                    exit_code,
                    stdout_bytes: stdout.len() as u64,
                    stdout_lines: stdout.lines().count() as u64,
                    stdout: stdout.into_bytes(),
                    stderr: Vec::new(),
                    truncated: false,
                    duration: std::time::Duration::ZERO,
                });
            }
            Fate::NeverComes => {}
            Fate::NeverAnswers => drop(running.await),
        }
        self.goes();
        let lost =
            Problem::new("CONNECTION_LOST", Category::Network, "the connection to web1 port 22 was lost");
        Err(if changes { uncertain(command, &lost) } else { lost })
    }
}
