//! Questions to the person at the terminal. Nothing but a clear yes is one.

use std::io::{self, IsTerminal, Write};

use host_components::InstallError;

/// Where questions go.
#[derive(Default)]
pub(in crate::cli) struct Asking(());

impl Asking {
    /// Whether there is anybody to ask.
    pub(in crate::cli) fn is_possible(&self) -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Asks; the question ends in `?`.
    pub(in crate::cli) fn yes(&self, question: &str) -> Result<bool, InstallError> {
        let answer = || -> io::Result<String> {
            let mut output = io::stdout().lock();
            write!(output, "{question} [y/N] ")?;
            output.flush()?;
            let mut line = String::new();
            match io::stdin().read_line(&mut line)? {
                // Who types the end of input is done with all of it.
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
