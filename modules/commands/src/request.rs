//! The arguments of the tool, and the commands that they stand for.

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::{DurationCategory, Keep, Pipeline, Privilege};

/// The number of bytes of all words of a call. A command line over SSH has to be shorter.
const MOST_BYTES: usize = 96 << 10;
/// The time of a command where the caller names none, in seconds.
const SECONDS: u32 = 60;

/// The arguments of the tool.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Request {
    /// Command's words
    #[schemars(length(min = 1))]
    argv: Option<Vec<String>>,
    /// Piped commands
    #[schemars(length(min = 2, max = 8))]
    pipeline: Option<Vec<Vec<String>>>,
    /// In turn, until one fails
    #[schemars(length(min = 2, max = 32))]
    steps: Option<Vec<Vec<String>>>,
    /// Text for stdin
    stdin: Option<String>,
    /// As root
    #[serde(default)]
    as_root: bool,
    /// As this account
    user: Option<String>,
    /// Absolute path
    directory: Option<String>,
    /// At most
    #[schemars(range(min = 1, max = 86400))]
    timeout_seconds: Option<u32>,
}

impl Request {
    /// The pipelines that the arguments stand for. A single command is a pipeline of one.
    pub(crate) fn pipelines(&self) -> Result<Vec<Pipeline>> {
        let groups: Vec<Vec<&Vec<String>>> = match (&self.argv, &self.pipeline, &self.steps) {
            (Some(argv), None, None) => vec![vec![argv]],
            (None, Some(pipeline), None) => vec![pipeline.iter().collect()],
            (None, None, Some(steps)) => steps.iter().map(|step| vec![step]).collect(),
            _ => return Err(invalid("expected exactly one of argv, pipeline and steps")),
        };
        if self.steps.is_some() && self.stdin.is_some() {
            return Err(invalid("stdin belongs to one command or one pipeline, and not to steps"));
        }
        let words = groups.iter().flatten().copied().flatten();
        if words.map(String::len).sum::<usize>() > MOST_BYTES {
            return Err(invalid(&format!(
                "the words have more than {MOST_BYTES} bytes; give a program its text by stdin"
            )));
        }
        let privilege = self.privilege()?;
        groups
            .into_iter()
            .map(|group| {
                let commands = group.into_iter().map(|argv| self.command(argv, &privilege));
                let mut commands = commands.collect::<Result<Vec<Command>>>()?;
                if let (Some(first), Some(stdin)) = (commands.first_mut(), &self.stdin) {
                    first.stdin = Some(stdin.clone().into_bytes());
                }
                Ok(Pipeline { commands, seconds: Some(self.timeout_seconds.unwrap_or(SECONDS)) })
            })
            .collect()
    }

    fn privilege(&self) -> Result<Privilege> {
        match (&self.user, self.as_root) {
            (Some(user), true) if user != "root" => Err(invalid("expected either as_root or user")),
            (Some(user), _) if user == "root" => Ok(Privilege::Root),
            (Some(user), _) => Ok(Privilege::User(user.clone())),
            (None, true) => Ok(Privilege::Root),
            (None, false) => Ok(Privilege::Caller),
        }
    }

    fn command(&self, argv: &[String], privilege: &Privilege) -> Result<Command> {
        if let Some(word) = argv.iter().position(|word| word.contains('\0')) {
            return Err(invalid(&format!("word {word} holds a NUL byte, which no program can be given")));
        }
        let Some((program, args)) = argv.split_first().filter(|(program, _)| !program.is_empty()) else {
            return Err(invalid("a command without a program"));
        };
        let command = match &self.directory {
            None => Command::new(program).args(args),
            Some(directory) if directory.starts_with('/') && !directory.contains('\0') => {
                Command::new("env").arg(format!("--chdir={directory}")).arg(program).args(args)
            }
            Some(_) => return Err(invalid("directory: expected an absolute path")),
        };
        let command = command.privilege(privilege.clone()).duration(DurationCategory::LongRunning);
        Ok(Command { keep: Keep::Tail, ..command })
    }
}

/// The line of a pipeline for a person.
pub(crate) fn line(pipeline: &Pipeline) -> String {
    let lines: Vec<String> = pipeline
        .commands
        .iter()
        .map(|command| [std::slice::from_ref(&command.program), &command.args].concat().join(" "))
        .collect();
    linux_sysadmin_sdk::text::excerpt(&lines.join(" | "), 200)
}

fn invalid(message: &str) -> Problem {
    Problem::validation("INVALID_COMMAND", message)
}
