//! Runs the programs that set things up or answer questions. They are found in root's own directories, and get their
//! arguments and nothing else.

use std::time::Duration;

use super::SystemError;
use host_base::{Command, Output};
use host_target::Target;
use host_text::visible::excerpt;

/// The time limit of programs that only look something up, or change one file.
pub const SHORT: Duration = Duration::from_secs(60);

/// Runs a program that must succeed.
pub async fn must(target: &Target, program: &str, args: &[&str]) -> Result<Output, SystemError> {
    let output = run(target, program, args, SHORT).await?;
    succeeded(program, args, output)
}

/// Returns the output of a program, or an error where it failed.
pub fn succeeded(program: &str, args: &[&str], output: Output) -> Result<Output, SystemError> {
    if output.exit_code == 0 {
        return Ok(output);
    }
    let said = [output.stderr, output.stdout].concat();
    let said = excerpt(String::from_utf8_lossy(&said).trim(), 1000);
    let command = format!("{program} {}", args.join(" "));
    Err(SystemError::Command { command, exit_code: output.exit_code, said })
}

/// Runs a program without standard input.
pub async fn run(
    target: &Target,
    program: &str,
    args: &[&str],
    timeout: Duration,
) -> Result<Output, SystemError> {
    let command = Command::new(program, args.iter().copied(), timeout);
    let none = || SystemError::Refused(format!("{program} was not run"));
    Ok(target.run_all(&[command]).await.pop().ok_or_else(none)??)
}
