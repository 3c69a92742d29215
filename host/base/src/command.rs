//! A program that is run on a machine, and the output that it left.

use std::sync::Arc;
use std::time::Duration;

use crate::output_buffer::OutputBuffer;
use crate::privilege::Privilege;

/// Says which end of an output is kept if the output is longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The beginning.
    Head,
    /// The end.
    Tail,
}

/// One program and its arguments. No shell ever reads it.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program's name, which is looked for in root-owned directories, or its absolute path.
    pub program: String,
    /// The arguments, one string for each.
    pub args: Vec<String>,
    /// Environment variables besides `PATH`, `HOME` and `LC_ALL`.
    pub env: Vec<(String, String)>,
    /// The bytes that the command reads as its standard input. Without them it reads nothing.
    pub stdin: Option<Vec<u8>>,
    /// The account whose rights the command takes.
    pub privilege: Privilege,
    /// The time after which the command is stopped, with every process that it started.
    pub timeout: Duration,
    /// The end of a long output that is kept.
    pub keep: Keep,
    /// The buffer that gets the output while the command runs.
    pub output_buffer: Option<Arc<OutputBuffer>>,
}

impl Command {
    /// Makes a command that takes the caller's rights, reads nothing, and whose output is kept from the beginning.
    pub fn new<A: Into<String>>(
        program: impl Into<String>,
        args: impl IntoIterator<Item = A>,
        timeout: Duration,
    ) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            stdin: None,
            privilege: Privilege::Caller,
            timeout,
            keep: Keep::Head,
            output_buffer: None,
        }
    }
}

/// The result of a command that ended.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// The exit code, or 128 + N where signal N ended the command, as shells report it.
    pub exit_code: i32,
    /// The standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// The standard error, up to the limit.
    pub stderr: Vec<u8>,
    /// The size of the whole standard output, also of what was dropped.
    pub stdout_bytes: u64,
    /// The number of lines of the whole standard output.
    pub stdout_lines: u64,
    /// True where some of the output was dropped.
    pub truncated: bool,
    /// The wall-clock time from start to end.
    pub duration: Duration,
}
