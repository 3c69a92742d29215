//! Runs other programs without a shell, and says which one failed and how.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The command line as a person would type it, for headings and errors.
pub(crate) fn describe(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        let arg = arg.to_string_lossy();
        line.push(' ');
        if arg.is_empty() || arg.contains(|c: char| c.is_whitespace() || "'\"\\$`;&|<>()*?".contains(c)) {
            line.push_str(&format!("'{}'", arg.replace('\'', r"'\''")));
        } else {
            line.push_str(&arg);
        }
    }
    line
}

/// Runs a program to its end with our own stdin, stdout and stderr. Any exit status is fine.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    command.status().with_context(|| cannot_start(command))
}

/// Runs a program to its end with our own stdin, stdout and stderr. A status other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!("`{}` ended with {status}", describe(command));
    }
    Ok(())
}

/// Runs a program quietly and gives its stdout. A status other than 0 is an error that carries its stderr.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let out = command.stdin(Stdio::null()).output().with_context(|| cannot_start(command))?;
    if !out.status.success() {
        let stderr = String::from_utf8_lossy(&out.stderr);
        let stdout = String::from_utf8_lossy(&out.stdout);
        let said = if stderr.trim().is_empty() { stdout.trim() } else { stderr.trim() };
        bail!("`{}` ended with {}: {said}", describe(command), out.status);
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Runs a program quietly and tells only whether it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The path of a program. An absolute path is only checked. The sbin folders are searched as well, which the PATH of an
/// unprivileged account often lacks.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    if name.starts_with('/') {
        return Path::new(name).exists().then(|| PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// Whether this process may make namespaces and install packages.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn cannot_start(command: &Command) -> String {
    format!("cannot start `{}`", describe(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_described_command_can_be_pasted_into_a_shell() {
        let mut command = Command::new("ssh");
        command.args(["root@h", "echo it's", ""]);
        assert_eq!(describe(&command), r"ssh root@h 'echo it'\''s' ''");
    }
}
