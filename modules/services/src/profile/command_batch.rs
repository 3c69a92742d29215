//! Commands that run at the same time. A command that several parts of an answer need runs once.

use linux_sysadmin_sdk::{Output, prelude::*};

/// The commands of a batch.
#[derive(Default)]
pub(crate) struct CommandBatch(Vec<Command>);

/// The position of a command in its batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandIndex(usize);

/// The outputs of a batch.
pub(crate) struct Outputs(Vec<Result<Output>>);

impl CommandBatch {
    /// Adds a command, unless the batch has it already.
    pub(crate) fn add(&mut self, command: Command) -> CommandIndex {
        let known = self.0.iter().position(|known| *known == command);
        CommandIndex(known.unwrap_or_else(|| {
            self.0.push(command);
            self.0.len() - 1
        }))
    }

    /// Runs all commands at the same time.
    pub(crate) fn run(self, cx: &Context) -> Outputs {
        Outputs(if self.0.is_empty() { Vec::new() } else { cx.run_all(self.0) })
    }
}

impl Outputs {
    /// The output of one command.
    pub(crate) fn of(&self, command: CommandIndex) -> &Result<Output> {
        &self.0[command.0]
    }

    /// The stdout of a command that exited with 0. It may have been cut.
    pub(crate) fn stdout(&self, command: CommandIndex) -> Option<String> {
        let output = self.of(command).as_ref().ok()?;
        (output.exit_code == 0).then(|| output.text().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn the_same_command_runs_once() {
        let mut batch = CommandBatch::default();
        let commands = ["a", "b", "a"].map(|program| batch.add(Command::new(program)));
        assert_eq!(batch.0.len(), 2);
        let cx = FakeTarget::new().answer(&["a"], 0, "A", "").answer(&["b"], 1, "B", "").context();
        let outputs = batch.run(&cx);
        let stdouts = commands.map(|command| outputs.stdout(command));
        assert_eq!(stdouts, [Some("A".to_owned()), None, Some("A".to_owned())]);
    }
}
