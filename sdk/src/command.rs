//! Builders for commands, and readers for their output.

use std::borrow::Cow;

use crate::{Category, Command, DurationCategory, Keep, Output, Place, Privilege, Problem, text};

impl Command {
    /// A command that runs as the account that the target is reached as, for at most 10 s. The host runs it only if a grant
    /// matches.
    pub fn new(program: &str) -> Self {
        Self {
            program: program.to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            stdin: None,
            privilege: Privilege::Caller,
            place: Place::Target,
            duration: DurationCategory::Instant,
            keep: Keep::Head,
        }
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds several arguments.
    pub fn args<I: IntoIterator<Item: Into<String>>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable. The grant's pattern must spell it out.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets how long the command may take.
    pub fn duration(mut self, duration: DurationCategory) -> Self {
        self.duration = duration;
        self
    }

    /// Runs the command with root's rights.
    pub fn as_root(self) -> Self {
        self.privilege(Privilege::Root)
    }

    /// Sets what the command reads on stdin. The grant's pattern must end in `< stdin`.
    pub fn stdin(mut self, contents: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(contents.into());
        self
    }

    /// Sets whose rights the command runs with.
    pub fn privilege(mut self, privilege: Privilege) -> Self {
        self.privilege = privilege;
        self
    }
}

impl Output {
    /// Stdout as text. Bytes that aren't UTF-8 become U+FFFD.
    pub fn text(&self) -> Cow<'_, str> {
        text::lossy(&self.stdout)
    }

    /// Stderr as text, without blanks around it. Bytes that aren't UTF-8 become U+FFFD.
    pub fn error_text(&self) -> String {
        text::lossy(&self.stderr).trim().to_owned()
    }

    /// The output, if the exit code is 0 and stdout is complete; otherwise a problem that quotes stderr.
    pub fn success(self, program: &str) -> Result<Self, Problem> {
        if self.exit_code != 0 {
            let said = self.error_text();
            let message = format!("{program} ended with exit code {}: {said}", self.exit_code);
            return Err(Problem::new("COMMAND_FAILED", Category::Other, message));
        }
        if self.truncated {
            let message = format!("{program} printed {} bytes, more than is kept", self.stdout_bytes);
            return Err(Problem::new("OUTPUT_TOO_LARGE", Category::Resource, message));
        }
        Ok(self)
    }
}
