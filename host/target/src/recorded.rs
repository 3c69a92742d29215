//! A machine that consists of recordings: the facts about a real one, what its commands printed, and some of its files. The
//! tests of a module look at it and change it through the same host as a real one. Nothing runs, and no file of this machine
//! is read.
//!
//! A command is answered by its whole argument vector. One that was not recorded is a problem, because nobody knows what the
//! machine would have said. Files can be read and not written: whatever writes to one ends as a command without a recording.

pub mod transcript;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::command_problem::no_root;
use crate::entry::Entry;
use crate::files::{MOST_BYTES, MOST_NAMES, too_many_names};
use crate::pipeline::Pipeline;
use crate::resolve::{End, Resolved};
use crate::rights::{Rights, command_prefix};
use crate::stream::{Captured, KEPT_BYTES};
use crate::{Facts, Metadata, PathCheck, ReadRequest};
use host_base::problem::{Category, Problem};
use host_base::program::not_found;
use host_base::{Command, Output, Privilege};
use host_capability::is_lexically_safe;
use host_text::visible::excerpt;
use transcript::RecordedCommand;

/// The error code of a command that was not recorded.
pub const NOT_RECORDED: &str = "NOT_RECORDED";

/// The table of mounts of a machine whose recording has none: one file system, mounted at the root. The host reads it to know
/// which paths are other names of the same file.
const MOUNTS: (&str, &str) = ("/proc/self/mountinfo", "22 1 254:0 / / rw,relatime - ext4 /dev/vda1 rw\n");

/// The most characters of a command line in a message.
const LINE: usize = 300;

/// The parts of a machine that were recorded.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The commands with what they printed. Where one stands several times, the last counts.
    pub commands: Vec<RecordedCommand>,
    /// What commands print once a change has begun. They go before the others.
    pub later: Vec<RecordedCommand>,
    /// The contents of files, by their absolute paths.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The programs that the machine doesn't have.
    pub missing_programs: BTreeSet<String>,
}

/// What a recorded machine answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Playback {
    /// Each command prints what was recorded.
    #[default]
    AsRecorded,
    /// Each command succeeds and prints nothing, and each recorded file is empty.
    Empty,
    /// Each command prints more than the host keeps: what was recorded, over and over.
    Huge,
    /// Each command fails and says so.
    Failing,
}

/// A command that ran on a recorded machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RanCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Whether it ran as a part of a change.
    pub changes: bool,
}

/// The way in which a path was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathUse {
    /// A file was read or looked at.
    Read,
    /// A directory was listed.
    List,
    /// A plan was prepared that writes, moves or removes what is there.
    Write,
}

/// All that was asked of a recorded machine.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The commands that the host let through: those that look, and every command of a plan, also what would undo it.
    pub allowed: Vec<Command>,
    /// The commands that ran, in their order.
    pub ran: Vec<RanCommand>,
    /// The commands that ran and were not recorded.
    pub not_recorded: Vec<Vec<String>>,
    /// The paths that were used, each with the rights that were asked for.
    pub paths: Vec<(PathUse, String, Privilege)>,
}

/// A machine that consists of recordings.
pub struct RecordedMachine {
    name: String,
    facts: Facts,
    playing: Mutex<Playing>,
}

#[derive(Default)]
struct Playing {
    recording: Recording,
    playback: Playback,
    has_changed: bool,
    asked: Asked,
}

impl RecordedMachine {
    /// Makes a machine with these facts, of which nothing else is recorded yet.
    pub fn new(name: &str, facts: Facts) -> Self {
        Self { name: name.to_owned(), facts, playing: Mutex::default() }
    }

    /// Begins anew with this recording. What was asked before is forgotten.
    pub fn play(&self, recording: Recording, playback: Playback) {
        *self.playing() = Playing { recording, playback, ..Playing::default() };
    }

    /// Returns all that was asked since the recording began.
    pub fn asked(&self) -> Asked {
        self.playing().asked.clone()
    }

    fn playing(&self) -> MutexGuard<'_, Playing> {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Returns the path of a program. Every program is there that isn't recorded as missing.
    pub(super) fn program(&self, name: &str) -> Result<String, Problem> {
        let is_odd = name.is_empty() || name.contains('/') && !name.starts_with('/');
        match is_odd || self.playing().recording.missing_programs.contains(name) {
            true => Err(not_found(name)),
            false if name.starts_with('/') => Ok(name.to_owned()),
            false => Ok(format!("/usr/bin/{name}")),
        }
    }

    /// Returns the words before a command that the host has let through, as they are shown.
    pub(super) fn prefix(&self, command: &Command, rights: Rights) -> Result<String, Problem> {
        let prefix = self.check(command, rights)?;
        self.playing().asked.allowed.push(Command { output_buffer: None, ..command.clone() });
        Ok(prefix)
    }

    fn check(&self, command: &Command, rights: Rights) -> Result<String, Problem> {
        let find = |name: &str| self.program(name);
        Ok(command_prefix(command, Duration::MAX, rights, find)?.shown)
    }

    /// Returns a problem where the account can't have these rights.
    pub(super) fn check_rights(&self, privilege: &Privilege, rights: Rights) -> Result<(), Problem> {
        match privilege {
            Privilege::Root | Privilege::User(_) if !rights.available => Err(no_root()),
            _ => Ok(()),
        }
    }

    pub(super) fn run(
        &self,
        pipeline: Pipeline<'_>,
        rights: Rights,
        changes: bool,
    ) -> Result<Vec<Output>, Problem> {
        for (at, command) in pipeline.commands().enumerate() {
            self.program(&command.program).map_err(|problem| pipeline.at(at, problem))?;
            self.check(command, rights).map_err(|problem| pipeline.at(at, problem))?;
        }
        let mut playing = self.playing();
        let outputs = pipeline.commands().map(|command| playing.output(command, changes));
        let mut outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        // What the others wrote went into the pipes.
        let last = outputs.len().saturating_sub(1);
        for output in outputs.iter_mut().take(last) {
            output.stdout.clear();
            (output.stdout_bytes, output.stdout_lines) = (0, 0);
        }
        Ok(outputs)
    }

    pub(super) fn stream(&self, command: &Command, rights: Rights) -> Result<RecordedOutputStream, Problem> {
        self.program(&command.program)?;
        self.check(command, rights)?;
        let (_, stdout, _) = self.playing().said(command, false)?;
        Ok(RecordedOutputStream { stdout, at: 0 })
    }

    pub(super) fn read_all(
        &self,
        requests: &[ReadRequest],
        privilege: &Privilege,
        check: &PathCheck,
    ) -> Vec<Result<Vec<u8>, Problem>> {
        let read = |request: &ReadRequest| {
            check(&request.path, &request.path)?;
            let mut playing = self.playing();
            playing.note(PathUse::Read, &request.path, privilege);
            let contents = playing.file(&request.path).ok_or_else(|| no_such(&request.path))?;
            let from = match usize::try_from(request.offset) {
                Ok(offset) => offset,
                // An offset before the beginning means the beginning.
                Err(_) => contents.len().saturating_sub(request.offset.unsigned_abs() as usize),
            };
            let rest = contents.get(from..).unwrap_or_default();
            let most = request.max_bytes.min(MOST_BYTES) as usize;
            Ok(rest.get(..most).unwrap_or(rest).to_vec())
        };
        requests.iter().map(read).collect()
    }

    pub(super) fn stat_all(
        &self,
        paths: &[String],
        privilege: &Privilege,
        check: &PathCheck,
    ) -> Vec<Result<Option<Metadata>, Problem>> {
        let stat = |path: &String| {
            check(path, path)?;
            let mut playing = self.playing();
            playing.note(PathUse::Read, path, privilege);
            Ok(playing.entry(path).as_ref().map(Metadata::from))
        };
        paths.iter().map(stat).collect()
    }

    pub(super) fn list_all(
        &self,
        paths: &[String],
        privilege: &Privilege,
        check: &PathCheck,
    ) -> Vec<Result<Vec<String>, Problem>> {
        let list = |path: &String| {
            check(path, path)?;
            let mut playing = self.playing();
            playing.note(PathUse::List, path, privilege);
            let names = playing.names(path);
            match names.len() {
                0 => Err(no_such(path)),
                1..=MOST_NAMES => Ok(names.into_iter().collect()),
                _ => Err(too_many_names(path, MOST_NAMES)),
            }
        };
        paths.iter().map(list).collect()
    }

    /// Returns where paths lead. No link is recorded, so each leads to itself. `written` is the rights of a plan that
    /// writes there.
    pub(super) fn resolve(
        &self,
        paths: &[String],
        written: Option<&Privilege>,
    ) -> Vec<Result<Resolved, Problem>> {
        let resolve = |path: &String| {
            if !is_lexically_safe(path) {
                let message =
                    format!("{}: expected an absolute path without `.`, `..` or `//`", excerpt(path, LINE));
                return Err(Problem::new("UNRESOLVABLE_PATH", Category::Denied, message));
            }
            let mut playing = self.playing();
            if let Some(privilege) = written {
                playing.note(PathUse::Write, path, privilege);
            }
            let end = playing.entry(path).map_or(End::Missing, End::There);
            Ok(Resolved { path: path.clone(), end, is_closed: false })
        };
        paths.iter().map(resolve).collect()
    }
}

impl Playing {
    fn note(&mut self, used: PathUse, path: &str, privilege: &Privilege) {
        self.asked.paths.push((used, path.to_owned(), privilege.clone()));
    }

    /// The exit code, the stdout and the stderr of a command.
    fn said(&mut self, command: &Command, changes: bool) -> Result<(i32, Vec<u8>, Vec<u8>), Problem> {
        let argv: Vec<String> = std::iter::once(&command.program).chain(&command.args).cloned().collect();
        let later = self.recording.later.iter().rev().filter(|_| self.has_changed);
        let recorded =
            later.chain(self.recording.commands.iter().rev()).find(|recorded| recorded.argv == argv).cloned();
        self.has_changed |= changes;
        self.asked.ran.push(RanCommand { argv: argv.clone(), changes });
        if recorded.is_none() {
            self.asked.not_recorded.push(argv.clone());
        }
        let recorded = match (self.playback, recorded) {
            (Playback::AsRecorded, Some(recorded)) => recorded,
            (Playback::AsRecorded, None) => {
                let line = transcript::line(&argv).unwrap_or_else(|_| format!("{argv:?}"));
                let message = format!("`{}` was not recorded", excerpt(&line, LINE));
                return Err(Problem::new(NOT_RECORDED, Category::Internal, message));
            }
            (Playback::Empty, _) => RecordedCommand { argv, ..RecordedCommand::default() },
            (Playback::Failing, _) => RecordedCommand {
                argv,
                exit_code: 1,
                stderr: b"this command fails\n".to_vec(),
                ..RecordedCommand::default()
            },
            (Playback::Huge, recorded) => {
                let mut recorded = recorded.unwrap_or_default();
                recorded.stdout = repeated(recorded.stdout);
                recorded
            }
        };
        Ok((recorded.exit_code, recorded.stdout, recorded.stderr))
    }

    fn output(&mut self, command: &Command, changes: bool) -> Result<Output, Problem> {
        let (exit_code, stdout, stderr) = self.said(command, changes)?;
        let (mut out, mut err) = (Captured::of(command), Captured::of(command));
        out.add(&stdout, command.keep);
        err.add(&stderr, command.keep);
        let mut output = Output { exit_code, truncated: err.truncated, ..Output::default() };
        output.stderr = err.into_bytes();
        out.into_stdout_of(&mut output);
        Ok(output)
    }

    fn file(&self, path: &str) -> Option<Vec<u8>> {
        if path == MOUNTS.0 {
            let recorded = self.recording.files.get(path).cloned();
            return Some(recorded.unwrap_or_else(|| MOUNTS.1.as_bytes().to_vec()));
        }
        let contents = self.recording.files.get(path)?;
        Some(match self.playback {
            Playback::AsRecorded | Playback::Failing => contents.clone(),
            Playback::Empty => Vec::new(),
            Playback::Huge => repeated(contents.clone()),
        })
    }

    /// What is at a path: a recorded file, or a directory that one lies in. All of it is root's.
    fn entry(&self, path: &str) -> Option<Entry> {
        let file = self.file(path);
        if file.is_none() && path != "/" && self.names(path).is_empty() {
            return None;
        }
        let inode = self.recording.files.keys().position(|known| known == path).unwrap_or_default();
        Some(Entry {
            mode: if file.is_some() { 0o100_644 } else { 0o040_755 },
            uid: 0,
            gid: 0,
            size: file.map_or(4096, |contents| contents.len() as u64),
            modified_unix: 0,
            links: 1,
            device: 1,
            inode: 2 + inode as u64,
            names: Some(("root".to_owned(), "root".to_owned())),
        })
    }

    /// The names in a directory.
    fn names(&self, directory: &str) -> BTreeSet<String> {
        let prefix = format!("{}/", directory.trim_end_matches('/'));
        let files = self.recording.files.keys();
        let names = files.filter_map(|file| file.strip_prefix(&prefix)?.split('/').next());
        names.map(str::to_owned).collect()
    }
}

/// More than the host keeps of one output.
fn repeated(text: Vec<u8>) -> Vec<u8> {
    let text = if text.is_empty() { b"a line of output without end\n".to_vec() } else { text };
    let times = 2 * KEPT_BYTES / text.len() + 1;
    text.repeat(times)
}

fn no_such(path: &str) -> Problem {
    let message = format!("{}: no such file or directory", excerpt(path, LINE));
    Problem::new("FILE_NOT_FOUND", Category::NotFound, message)
}

/// The stdout of a recorded command, which is read piece by piece.
pub struct RecordedOutputStream {
    stdout: Vec<u8>,
    at: usize,
}

impl RecordedOutputStream {
    pub(super) fn read(&mut self, max_bytes: u32) -> Vec<u8> {
        let most = (max_bytes as usize).clamp(1, KEPT_BYTES);
        let rest = self.stdout.get(self.at..).unwrap_or_default();
        let piece = rest.get(..most).unwrap_or(rest).to_vec();
        self.at += piece.len();
        piece
    }
}

/// The machine as the target holds it.
pub(super) type Recorded = Arc<RecordedMachine>;

#[cfg(test)]
mod tests;
