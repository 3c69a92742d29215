//! Programs that set things up or are asked: found in root's own directories, given their arguments and nothing else.

use std::time::Duration;

use super::SystemError;
use host_base::{Command, Keep, Output, Privilege};
use host_target::Target;
use host_text::visible::excerpt;

/// For those that only look something up, or change one file.
pub const SHORT: Duration = Duration::from_secs(60);

/// Runs a program, found in root's own directories, that must succeed.
pub async fn must(target: &Target, program: &str, args: &[&str]) -> Result<Output, SystemError> {
    let output = run(target, program, args, SHORT).await?;
    succeeded(program, args, output)
}

/// The output of a program that was to succeed.
pub fn succeeded(program: &str, args: &[&str], output: Output) -> Result<Output, SystemError> {
    if output.exit_code == 0 {
        return Ok(output);
    }
    let said = [output.stderr, output.stdout].concat();
    let said = excerpt(String::from_utf8_lossy(&said).trim(), 1000);
    let command = format!("{program} {}", args.join(" "));
    Err(SystemError::Command { command, exit_code: output.exit_code, said })
}

/// Runs a program, found in root's own directories, with nothing on stdin.
pub async fn run(
    target: &Target,
    program: &str,
    args: &[&str],
    timeout: Duration,
) -> Result<Output, SystemError> {
    let command = Command {
        program: program.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Vec::new(),
        stdin: None,
        privilege: Privilege::Caller,
        timeout,
        keep: Keep::Head,
        heard: None,
    };
    let none = || SystemError::Refused(format!("{program} was not run"));
    Ok(target.run_all(&[command]).await.pop().ok_or_else(none)??)
}
