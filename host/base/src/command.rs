//! A program that is run on a machine, and what it left behind.

use std::sync::Arc;
use std::time::Duration;

use crate::heard::Heard;
use crate::privilege::Privilege;

/// Which end of an output above the limit is kept.
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
    /// A name, found in root-owned directories, or an absolute path.
    pub program: String,
    /// One token each.
    pub args: Vec<String>,
    /// Besides `PATH`, `HOME` and `LC_ALL`.
    pub env: Vec<(String, String)>,
    /// What it reads; nothing where there is none.
    pub stdin: Option<Vec<u8>>,
    /// Whose rights it takes.
    pub privilege: Privilege,
    /// When it is stopped, with every process it started.
    pub timeout: Duration,
    /// What stays of an output above the limit.
    pub keep: Keep,
    /// Who hears what it says as it comes.
    pub heard: Option<Arc<Heard>>,
}

/// What a command left behind.
#[derive(Clone, Debug)]
pub struct Output {
    /// 128 + N where signal N ended it, as shells report it.
    pub exit_code: i32,
    /// As it came, up to the limit.
    pub stdout: Vec<u8>,
    /// As it came, up to the limit.
    pub stderr: Vec<u8>,
    /// The whole size of stdout.
    pub stdout_bytes: u64,
    /// All lines of stdout.
    pub stdout_lines: u64,
    /// Whether anything was dropped.
    pub truncated: bool,
    /// Wall-clock time.
    pub duration: Duration,
}
