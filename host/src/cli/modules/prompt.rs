//! Questions to the person at the terminal. Only `y` and `yes` count as yes, and only the name itself as a name.

use std::io::{self, IsTerminal, Write};

use host_components::InstallError;

/// Asks questions at the terminal.
#[derive(Default)]
pub(in crate::cli) struct Prompt(());

/// An answer about several things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Answer {
    All,
    None,
    /// Each of them is to be asked about by itself.
    Each,
}

impl Prompt {
    /// Whether there is a terminal to ask at.
    pub(in crate::cli) fn is_possible(&self) -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Asks until the answer is yes or no.
    pub(in crate::cli) fn yes(&self, question: &str) -> Result<bool, InstallError> {
        loop {
            match answer(&format!("{question} [y/N] "))?.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => return Ok(true),
                "" | "n" | "no" => return Ok(false),
                _ => {}
            }
        }
    }

    /// Asks about several things at once until the answer is one for all of them, or that each is to be asked about.
    pub(in crate::cli) fn all(&self, question: &str) -> Result<Answer, InstallError> {
        loop {
            match answer(&format!("{question} [y/N/each] "))?.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => return Ok(Answer::All),
                "" | "n" | "no" => return Ok(Answer::None),
                "e" | "each" => return Ok(Answer::Each),
                _ => {}
            }
        }
    }

    /// Asks for a name, once. Any other answer than the name is a no.
    pub(in crate::cli) fn name(&self, question: &str, name: &str) -> Result<bool, InstallError> {
        Ok(answer(question)?.trim() == name)
    }
}

/// Reads a line after the question. The end of input ends the whole command.
fn answer(question: &str) -> Result<String, InstallError> {
    let read = || -> io::Result<String> {
        let mut output = io::stdout().lock();
        write!(output, "{question}")?;
        output.flush()?;
        let mut line = String::new();
        match io::stdin().read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line),
        }
    };
    read().map_err(|error| InstallError::NotAsked(error.to_string()))
}
