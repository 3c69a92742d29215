//! Yes-or-no questions to the person at the terminal. Only `y` and `yes` count as yes.

use std::io::{self, IsTerminal, Write};

use host_components::InstallError;

/// Asks questions at the terminal.
#[derive(Default)]
pub(in crate::cli) struct Prompt(());

impl Prompt {
    /// Whether there is a terminal to ask at.
    pub(in crate::cli) fn is_possible(&self) -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Asks until the answer is yes or no.
    pub(in crate::cli) fn yes(&self, question: &str) -> Result<bool, InstallError> {
        let answer = || -> io::Result<String> {
            let mut output = io::stdout().lock();
            write!(output, "{question} [y/N] ")?;
            output.flush()?;
            let mut line = String::new();
            match io::stdin().read_line(&mut line)? {
                // The end of input ends the whole command.
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                _ => Ok(line),
            }
        };
        loop {
            let answer = answer().map_err(|error| InstallError::NotAsked(error.to_string()))?;
            match answer.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => return Ok(true),
                "" | "n" | "no" => return Ok(false),
                _ => {}
            }
        }
    }
}
