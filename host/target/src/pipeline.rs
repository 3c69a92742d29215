//! Commands that are connected by pipes: each reads what the one before it writes. A single command is a pipeline of
//! one.

use std::iter::once;
use std::time::Duration;

use host_base::problem::{Category, Problem};
use host_base::{Command, Output, Privilege};

/// The most commands of one pipeline.
const MOST: usize = 8;

/// At least one command, in the order in which they are connected.
#[derive(Clone, Copy)]
pub(super) struct Pipeline<'a> {
    first: &'a Command,
    rest: &'a [Command],
}

impl<'a> From<&'a Command> for Pipeline<'a> {
    fn from(command: &'a Command) -> Self {
        Self { first: command, rest: &[] }
    }
}

impl<'a> Pipeline<'a> {
    /// Returns a problem where there are too few or too many commands, or where one but the first has a standard input
    /// of its own.
    pub(super) fn of(commands: &'a [Command]) -> Result<Self, Problem> {
        let invalid = |message| Err(Problem::new("INVALID_PIPELINE", Category::Validation, message));
        let Some((first, rest)) = commands.split_first().filter(|_| commands.len() <= MOST) else {
            return invalid(format!("a pipeline of {} commands; expected 1 to {MOST}", commands.len()));
        };
        let pipeline = Self { first, rest };
        match rest.iter().position(|command| command.stdin.is_some()) {
            None => Ok(pipeline),
            Some(at) => {
                let name = pipeline.name_of(at + 1);
                invalid(format!("{name} has an input of its own; expected one for the first command at most"))
            }
        }
    }

    pub(super) fn commands(self) -> impl Iterator<Item = &'a Command> {
        once(self.first).chain(self.rest)
    }

    pub(super) fn len(self) -> usize {
        1 + self.rest.len()
    }

    pub(super) fn stdin(self) -> Option<&'a Vec<u8>> {
        self.first.stdin.as_ref()
    }

    /// Returns the command whose stdout is the pipeline's.
    pub(super) fn last(self) -> &'a Command {
        self.rest.last().unwrap_or(self.first)
    }

    /// Returns the time after which the whole pipeline is stopped: the longest of its commands' limits.
    pub(super) fn limit(self) -> Duration {
        self.rest.iter().fold(self.first.timeout, |limit, command| limit.max(command.timeout))
    }

    /// Returns the name that messages have: the programs, with `|` between them.
    pub(super) fn name(self) -> String {
        self.commands().map(|command| command.program.as_str()).collect::<Vec<_>>().join(" | ")
    }

    fn name_of(self, at: usize) -> String {
        let program = self.commands().nth(at).map_or("", |command| &command.program);
        format!("command {} of {}, {program},", at + 1, self.len())
    }

    /// Puts before the message which of the commands has the problem.
    pub(super) fn at(self, at: usize, mut problem: Problem) -> Problem {
        if self.len() > 1 {
            problem.message = format!("{} can't be started: {}", self.name_of(at), problem.message);
        }
        problem
    }

    /// Returns the commands, those at these places with the account's own rights.
    pub(super) fn with_own_rights(self, places: &[usize]) -> Vec<Command> {
        let of = |(at, command): (usize, &Command)| match places.contains(&at) {
            true => Command { privilege: Privilege::Caller, ..command.clone() },
            false => command.clone(),
        };
        self.commands().enumerate().map(of).collect()
    }
}

/// Returns the output of a pipeline of one command.
pub(super) fn sole(outputs: Vec<Output>) -> Result<Output, Problem> {
    let missing = || Problem::new("INTERNAL_ERROR", Category::Internal, "the command has no output");
    outputs.into_iter().next_back().ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(program: &str, seconds: u64) -> Command {
        Command::new(program, ["x"], Duration::from_secs(seconds))
    }

    #[test]
    fn a_pipeline_has_one_to_eight_commands_and_only_the_first_has_an_input() {
        let given = Command { stdin: Some(b"x".to_vec()), ..command("cat", 1) };
        let many = |count| vec![command("cat", 1); count];
        let later =
            |at: usize| (0..3).map(|n| if n == at { given.clone() } else { command("cat", 1) }).collect();
        for (commands, message) in [
            (many(0), Some("a pipeline of 0 commands; expected 1 to 8")),
            (many(1), None),
            (many(8), None),
            (many(9), Some("a pipeline of 9 commands; expected 1 to 8")),
            (later(0), None),
            (
                later(2),
                Some(
                    "command 3 of 3, cat, has an input of its own; expected one for the first command at most",
                ),
            ),
        ] {
            let refused = Pipeline::of(&commands).err();
            assert_eq!(refused.as_ref().map(|problem| problem.message.as_str()), message);
            assert!(refused.is_none_or(|problem| problem.code == "INVALID_PIPELINE"));
        }
    }

    #[test]
    fn a_pipeline_has_the_longest_time_and_the_names_of_all() {
        let commands = [command("printf", 2), command("sort", 9), command("uniq", 3)];
        let pipeline = Pipeline::of(&commands).unwrap();
        assert_eq!((pipeline.limit().as_secs(), pipeline.len()), (9, 3));
        assert_eq!(pipeline.name(), "printf | sort | uniq");
        assert_eq!(pipeline.last().program, "uniq");
        let problem = pipeline.at(1, Problem::new("X", Category::NotFound, "there is none"));
        assert_eq!(problem.message, "command 2 of 3, sort, can't be started: there is none");
        let single =
            Pipeline::from(&commands[0]).at(0, Problem::new("X", Category::NotFound, "there is none"));
        assert_eq!(single.message, "there is none");
    }
}
