//! A fake target made of recordings, for a module's own tests.
//!
//! ```
//! # use linux_sysadmin_sdk::{prelude::*, testkit::FakeTarget};
//! let target = FakeTarget::new()
//!     .recording("==> /proc/loadavg <==\n0.10 0.20 0.30 1/99 4242\n")
//!     .answer(&["systemctl", "is-system-running"], 0, "running\n", "");
//! let cx = target.context();
//! assert_eq!(cx.read("/proc/loadavg").unwrap(), "0.10 0.20 0.30 1/99 4242\n");
//! ```
//!
//! The fake target checks no grants unless [`FakeTarget::checks_grants`] says so, and then as far as that goes without the
//! host. `linux-sysadmin modules test` tries the component itself, under its real grants and the policy.

mod grants;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use crate::bindings::exports::sysadmin::module::{describe, tools};
use crate::bindings::sysadmin::module::confirm;
use crate::bindings::sysadmin::module::target_files::Request;
use crate::knowledge::{Profile, Status};
use crate::{
    Category, Change, Command, Context, Distro, Metadata, Module, Output, Pipeline, Problem, Result, ToolCall,
};

/// The most bytes of stdout that the host keeps of a command.
const KEPT_BYTES: usize = 1 << 20;

/// The most calls of other modules' tools in one call, as the contract says.
const TOOL_CALLS: usize = 32;

type Files = BTreeMap<String, Vec<u8>>;

/// A target that answers with files and outputs which were recorded on a real machine.
#[derive(Clone)]
pub struct FakeTarget {
    /// The facts that [`Context::distro`] returns.
    pub distro: Distro,
    recordings: Vec<Files>,
    /// The metadata of paths that aren't plain files or directories of root.
    metadata: BTreeMap<String, Metadata>,
    devices: BTreeSet<String>,
    missing_programs: BTreeSet<String>,
    answers: Vec<(Vec<String>, Output)>,
    /// The problems of commands that the host didn't run to their end.
    failures: Vec<(Vec<String>, Problem)>,
    /// The output of commands without a recording.
    otherwise: Option<Output>,
    trips: Trips,
    /// The outputs of commands after a plan has run.
    later: Vec<(Vec<String>, Output)>,
    has_run: Cell<bool>,
    clock: Cell<f64>,
    current: Cell<usize>,
    outcome: std::result::Result<confirm::Applied, confirm::Failure>,
    applied: Plans,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) secrets: Vec<String>,
    needs_plan: bool,
    /// The results of other modules' tools, by their names and arguments.
    tool_results: Vec<(ToolCall, Result<serde_json::Value>)>,
    /// The tools that the module requests. None where the module isn't known.
    requested_tools: Option<BTreeSet<String>>,
    /// The number of calls of other modules' tools.
    tool_calls: Cell<usize>,
    checks_grants: bool,
    /// The command lines that the module asks for. None where they aren't checked.
    granted: Option<grants::Grants>,
}

/// The plans that a tool handed over. They outlive the fake target, which a call consumes.
pub type Plans = Rc<RefCell<Vec<Change>>>;

/// The number of times that a tool has waited for commands. It outlives the fake target, which a call consumes.
pub type Trips = Rc<Cell<usize>>;

impl Default for FakeTarget {
    fn default() -> Self {
        let distro = Distro {
            family: "debian".into(),
            name: "Debian GNU/Linux".into(),
            version: "12".into(),
            codename: Some("bookworm".into()),
            package_manager: "apt".into(),
            init_system: "systemd".into(),
            firewall_backend: "none".into(),
            mac_system: "none".into(),
            mac_mode: None,
            container_runtime: "none".into(),
            log_system: "journald".into(),
            user_management: "adduser".into(),
            hostname: "fake".into(),
            kernel: "6.1.0".into(),
            architecture: "x86_64".into(),
            sudo_available: false,
            extra: Vec::new(),
        };
        Self {
            distro,
            recordings: Vec::new(),
            metadata: BTreeMap::new(),
            devices: BTreeSet::new(),
            missing_programs: BTreeSet::new(),
            answers: Vec::new(),
            failures: Vec::new(),
            otherwise: None,
            trips: Trips::default(),
            later: Vec::new(),
            has_run: Cell::new(false),
            clock: Cell::new(0.0),
            current: Cell::new(0),
            outcome: Ok(confirm::Applied { outputs: Vec::new(), dry_run: false }),
            applied: Plans::default(),
            profiles: Vec::new(),
            secrets: Vec::new(),
            needs_plan: false,
            tool_results: Vec::new(),
            requested_tools: None,
            tool_calls: Cell::new(0),
            checks_grants: false,
            granted: None,
        }
    }
}

/// A profile of an active service without any other content. Tests set the fields that they need.
pub fn profile(id: &str) -> Profile {
    Profile {
        id: id.to_owned(),
        name: id.to_owned(),
        summary: id.to_owned(),
        category: "system".to_owned(),
        version_notes: None,
        status: Status::Active,
        config_seen: None,
        units: Vec::new(),
        processes: Vec::new(),
        config: Vec::new(),
        validators: Vec::new(),
        data: Vec::new(),
        logs: Vec::new(),
        log_patterns: Vec::new(),
        ports: Vec::new(),
        provides: Vec::new(),
        needs: Vec::new(),
        dependants: Vec::new(),
        interactions: Vec::new(),
        health: Vec::new(),
        symptoms: Vec::new(),
        backup: Vec::new(),
    }
}

impl FakeTarget {
    /// A target without files and outputs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds files in the format that `tail -n +1 FILE FILE…` prints. A second recording replaces the first after the tool has
    /// slept; files that only an earlier recording has stay.
    pub fn recording(mut self, text: &str) -> Self {
        let mut files = self.recordings.last().cloned().unwrap_or_default();
        files.extend(parse_recording(text));
        self.recordings.push(files);
        self
    }

    /// Adds one file to the latest recording, byte for byte.
    pub fn file(mut self, path: &str, contents: impl Into<Vec<u8>>) -> Self {
        if self.recordings.is_empty() {
            self.recordings.push(Files::new());
        }
        if let Some(files) = self.recordings.last_mut() {
            files.insert(path.to_owned(), contents.into());
        }
        self
    }

    /// Adds a path that leads to a device, such as a link to `/dev/null`.
    pub fn device(mut self, path: &str) -> Self {
        self.devices.insert(path.to_owned());
        self.file(path, "")
    }

    /// Sets the account that the target is reached as.
    pub fn account(mut self, name: &str) -> Self {
        self.distro.extra.push(("user".to_owned(), name.to_owned()));
        self
    }

    /// Adds a secret that the host doesn't show.
    pub fn secret(mut self, secret: &str) -> Self {
        self.secrets.push(secret.to_owned());
        self
    }

    /// Sets the metadata of a path, which otherwise is a plain file or directory of root.
    pub fn metadata(mut self, path: &str, metadata: Metadata) -> Self {
        self.metadata.insert(path.to_owned(), metadata);
        self
    }

    /// Adds the output of one command: its exit code, stdout (text or bytes) and stderr.
    pub fn answer(mut self, argv: &[&str], exit_code: i32, stdout: impl AsRef<[u8]>, stderr: &str) -> Self {
        self.answers.push(recorded(argv, exit_code, stdout.as_ref(), stderr));
        self
    }

    /// Adds the problem of one command that the host doesn't run to its end, such as `COMMAND_TIMEOUT`.
    pub fn failure(mut self, argv: &[&str], problem: Problem) -> Self {
        self.failures.push((argv.iter().map(|token| token.to_string()).collect(), problem));
        self
    }

    /// Has the host say that the target hasn't got this program, where no output of the command is recorded.
    pub fn without_program(mut self, program: &str) -> Self {
        self.missing_programs.insert(program.to_owned());
        self
    }

    /// Sets the output of every command that has no recording: its exit code and stdout (text or bytes).
    pub fn otherwise(mut self, exit_code: i32, stdout: impl AsRef<[u8]>) -> Self {
        self.otherwise = Some(output(exit_code, stdout, ""));
        self
    }

    /// Adds commands with their outputs, as [`transcript`] reads them. The last output of a command counts.
    pub fn transcript(mut self, text: &str) -> Self {
        self.answers.splice(0..0, transcript(text).into_iter().rev());
        self
    }

    /// Sets another output of one command for the time after a plan has run.
    pub fn answer_after(
        mut self,
        argv: &[&str],
        exit_code: i32,
        stdout: impl AsRef<[u8]>,
        stderr: &str,
    ) -> Self {
        self.later.push(recorded(argv, exit_code, stdout.as_ref(), stderr));
        self
    }

    /// Sets the outcome of a plan. By default it runs without output. A second recording replaces the first after that.
    pub fn outcome(mut self, outcome: std::result::Result<confirm::Applied, confirm::Failure>) -> Self {
        self.outcome = outcome;
        self
    }

    /// Has pipelines without a recording refused as the host refuses those that aren't known to look only.
    pub fn needs_plan(mut self) -> Self {
        self.needs_plan = true;
        self
    }

    /// Has [`FakeTarget::call`] refuse commands that no grant of the module allows, with the code `CAPABILITY_DENIED`: those
    /// by which a tool looks, and those of its plans. The words of a command count, its rights, variables and input, and
    /// what the values of all holes have in common. Whether a value is a unit or a package is not checked, nor are paths,
    /// grants by profiles, and the policy: only the host knows these.
    pub fn checks_grants(mut self) -> Self {
        self.checks_grants = true;
        self
    }

    /// Adds the profile of a service that the target has.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profiles.push(profile);
        self
    }

    /// Adds the result of another module's tool that is called with these arguments: its envelope as JSON, or a problem.
    pub fn tool(
        mut self,
        tool: &str,
        arguments: serde_json::Value,
        result: std::result::Result<serde_json::Value, Problem>,
    ) -> Self {
        self.tool_results.push((ToolCall::new(tool, arguments), result));
        self
    }

    /// The plans that the tool will hand over.
    pub fn plans(&self) -> Plans {
        self.applied.clone()
    }

    /// The number of times that the tool will have waited for commands. Commands that run at the same time count once.
    pub fn trips(&self) -> Trips {
        self.trips.clone()
    }

    /// Sets the clock, in seconds since the epoch.
    pub fn at(self, unix: f64) -> Self {
        self.clock.set(unix);
        self
    }

    /// The context that a tool gets.
    pub fn context(self) -> Context {
        let mut context = Context::new(None, None);
        context.fake = self;
        context
    }

    /// Calls a tool as the host would, by its name and with arguments as JSON. The result is the reply's data as JSON, and the
    /// reply itself.
    pub fn call(
        mut self,
        module: &Module,
        tool: &str,
        arguments: serde_json::Value,
    ) -> Result<(serde_json::Value, tools::Reply)> {
        let found = module.tools.iter().find(|candidate| candidate.name == tool);
        let found = found.ok_or_else(|| Problem::new("UNKNOWN_TOOL", Category::Internal, tool))?;
        self.requested_tools = Some(module.requested_tools());
        if self.checks_grants {
            self.granted = Some(grants::Grants::new(&module.requested_commands()));
        }
        let reply = (found.run)(&arguments.to_string(), &self.context())?;
        let data = serde_json::from_str(&reply.data)
            .map_err(|error| Problem::new("INVALID_JSON", Category::Internal, error.to_string()))?;
        Ok((data, reply))
    }

    fn files(&self) -> Option<&Files> {
        self.recordings.get(self.current.get())
    }

    pub(crate) fn sleep(&self, duration: Duration) {
        self.clock.set(self.clock.get() + duration.as_secs_f64());
        if self.current.get() + 1 < self.recordings.len() {
            self.current.set(self.current.get() + 1);
        }
    }

    pub(crate) fn apply(&self, change: Change) -> std::result::Result<confirm::Applied, confirm::Failure> {
        if let Some(Err(problem)) = self.granted.as_ref().map(|granted| granted.check_plan(&change.0)) {
            let (outputs, undone, not_undone) = Default::default();
            return Err(confirm::Failure { problem, step: 0, outputs, undone, not_undone, uncertain: false });
        }
        self.applied.borrow_mut().push(change);
        if self.outcome.as_ref().is_ok_and(|applied| !applied.dry_run) {
            self.has_run.set(true);
            self.sleep(Duration::ZERO);
        }
        self.outcome.clone()
    }

    pub(crate) fn redact(&self, text: String) -> String {
        self.secrets.iter().fold(text, |text, secret| text.replace(secret.as_str(), "[redacted]"))
    }

    pub(crate) fn now(&self) -> f64 {
        self.clock.get()
    }

    pub(crate) fn run_all(&self, commands: &[Command]) -> Vec<Result<Output>> {
        self.trips.set(self.trips.get() + 1);
        commands.iter().map(|command| self.run(command)).collect()
    }

    /// Results of other modules' tools. Where there would be too many calls, the host makes none of them.
    pub(crate) fn call_tools(&self, calls: &[ToolCall]) -> Vec<Result<serde_json::Value>> {
        let count = self.tool_calls.get() + calls.len();
        if count > TOOL_CALLS {
            let message = format!("{count} calls of tools in one call; at most {TOOL_CALLS} are made");
            let problem = Problem::new("TOO_MANY_TOOL_CALLS", Category::Resource, message);
            return vec![Err(problem); calls.len()];
        }
        self.tool_calls.set(count);
        calls.iter().map(|call| self.call_tool(call)).collect()
    }

    fn call_tool(&self, call: &ToolCall) -> Result<serde_json::Value> {
        let is_recorded = || self.tool_results.iter().any(|(recorded, _)| recorded.tool == call.tool);
        let is_requested = match &self.requested_tools {
            Some(tools) => tools.contains(&call.tool),
            None => is_recorded(),
        };
        if !is_requested {
            let message =
                format!("the module may not call {}: none of its requests names that tool", call.tool);
            return Err(Problem::new("CAPABILITY_DENIED", Category::Denied, message));
        }
        match self.tool_results.iter().find(|(recorded, _)| recorded == call) {
            Some((_, result)) => result.clone(),
            None => {
                let message = format!("no result was recorded for {} {}", call.tool, call.arguments);
                Err(Problem::new("NOT_RECORDED", Category::Internal, message))
            }
        }
    }

    /// The output of a command, as much of it as the host keeps.
    pub(crate) fn run(&self, command: &Command) -> Result<Output> {
        let mut output = self.whole_output(command)?;
        output.truncated = output.stdout.len() > KEPT_BYTES;
        output.stdout.truncate(KEPT_BYTES);
        Ok(output)
    }

    pub(crate) fn whole_output(&self, command: &Command) -> Result<Output> {
        self.granted.as_ref().map_or(Ok(()), |granted| granted.check_look(command))?;
        let argv = std::iter::once(&command.program).chain(&command.args).cloned().collect::<Vec<_>>();
        if let Some((_, problem)) = self.failures.iter().find(|(recorded, _)| *recorded == argv) {
            return Err(problem.clone());
        }
        let later = self.later.iter().filter(|_| self.has_run.get());
        if let Some((_, output)) = later.chain(&self.answers).find(|(recorded, _)| *recorded == argv) {
            return Ok(output.clone());
        }
        let program = &command.program;
        if self.missing_programs.contains(program) {
            let message = format!("there is no program {program} on the target");
            return Err(Problem::not_found("PROGRAM_NOT_FOUND", message));
        }
        self.otherwise.clone().ok_or_else(|| {
            let message = format!("no answer was recorded for {argv:?}");
            Problem::new("NOT_RECORDED", Category::Internal, message)
        })
    }

    /// Each command of a pipeline has a recording of its own. Only the last one's stdout counts.
    pub(crate) fn run_pipeline(&self, pipeline: &Pipeline) -> Result<Vec<Output>> {
        let outputs = pipeline.commands.iter().map(|command| self.run(command)).collect::<Result<Vec<_>>>();
        let mut outputs = outputs.map_err(|problem| match self.needs_plan {
            true => Problem::new("NEEDS_PLAN", Category::Denied, problem.message),
            false => problem,
        })?;
        let last = outputs.len().saturating_sub(1);
        outputs.iter_mut().take(last).for_each(|output| output.stdout.clear());
        Ok(outputs)
    }

    pub(crate) fn read_part(&self, request: &Request) -> Result<Vec<u8>> {
        let path = &request.path;
        if self.devices.contains(path) {
            return Err(Problem::validation(
                "NOT_A_REGULAR_FILE",
                format!("{path} is a device, not a regular file"),
            ));
        }
        let contents = self.files().and_then(|files| files.get(path)).ok_or_else(|| no_such(path))?;
        let from = match usize::try_from(request.offset) {
            Ok(offset) => offset,
            Err(_) => contents.len().saturating_sub(request.offset.unsigned_abs() as usize),
        };
        let rest = contents.get(from..).unwrap_or_default();
        Ok(rest.get(..request.max_bytes as usize).unwrap_or(rest).to_vec())
    }

    pub(crate) fn stat(&self, path: &str) -> Result<Option<Metadata>> {
        if let Some(metadata) = self.metadata.get(path) {
            return Ok(Some(metadata.clone()));
        }
        let file = self.files().and_then(|files| files.get(path));
        let is_dir = file.is_none();
        if is_dir && self.list_dir(path).is_err() {
            return Ok(None);
        }
        Ok(Some(Metadata {
            size: file.map_or(0, |contents| contents.len() as u64),
            mode: if is_dir { 0o755 } else { 0o644 },
            owner: "root".into(),
            group: "root".into(),
            modified_unix: 0,
            is_dir,
            is_symlink: false,
        }))
    }

    pub(crate) fn list_dir(&self, path: &str) -> Result<Vec<String>> {
        let prefix = format!("{}/", path.trim_end_matches('/'));
        let names: BTreeSet<String> = self
            .files()
            .into_iter()
            .flat_map(|files| files.keys())
            .filter_map(|file| file.strip_prefix(&prefix)?.split('/').next())
            .map(str::to_owned)
            .collect();
        let is_there = !names.is_empty() || self.metadata.get(path).is_some_and(|found| found.is_dir);
        if is_there { Ok(names.into_iter().collect()) } else { Err(no_such(path)) }
    }
}

/// Checks that a tool takes little of a model's context, and that each of its arguments says what it is.
///
/// # Panics
///
/// Panics where the tool takes more, or where an argument has no description.
pub fn takes_little_context(tool: &describe::Tool) {
    let schema: serde_json::Value = serde_json::from_str(&tool.input_schema).unwrap_or_default();
    let arguments = schema["properties"].as_object().cloned().unwrap_or_default();
    for (name, argument) in &arguments {
        let is_told = argument["description"].as_str().is_some_and(|text| !text.is_empty());
        assert!(is_told, "{} doesn't say what its argument {name} is", tool.name);
    }
    let bytes = tool.name.len() + tool.summary.len() + tool.input_schema.len();
    let most = 350.max(250 + 75 * arguments.len());
    assert!(bytes <= most, "{bytes} bytes of at most {most}: {tool:?}");
}

/// A complete output of a command: its exit code, stdout (text or bytes) and stderr.
pub fn output(exit_code: i32, stdout: impl AsRef<[u8]>, stderr: &str) -> Output {
    let stdout = stdout.as_ref();
    Output {
        exit_code,
        stdout: stdout.to_vec(),
        stderr: stderr.into(),
        stdout_bytes: stdout.len() as u64,
        stdout_lines: stdout.split_inclusive(|byte| *byte == b'\n').count() as u64,
        truncated: false,
        duration_ms: 1,
    }
}

fn recorded(argv: &[&str], exit_code: i32, stdout: &[u8], stderr: &str) -> (Vec<String>, Output) {
    (argv.iter().map(|token| token.to_string()).collect(), output(exit_code, stdout, stderr))
}

/// Reads commands and their outputs. Each begins with a line `$ ARGV` (words with blanks are in single quotes) and a line
/// `[exit CODE]`. Stdout follows, then `[stderr]` and stderr where there is any. Text before the first command is a comment.
pub fn transcript(text: &str) -> Vec<(Vec<String>, Output)> {
    let blocks = format!("\n{text}");
    let blocks = blocks.split("\n$ ").skip(1).map(|block| {
        let (argv, rest) = block.split_once('\n').unwrap_or((block, ""));
        let (exit, rest) = rest.split_once('\n').unwrap_or((rest, ""));
        let code = exit.strip_prefix("[exit ").and_then(|code| code.strip_suffix(']'));
        let code = code.and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{argv}: {exit}"));
        let (stdout, stderr) = match rest.strip_prefix("[stderr]\n") {
            Some(stderr) => ("", stderr),
            None => rest.split_once("\n[stderr]\n").unwrap_or((rest, "")),
        };
        let ended = |text: &str| match text.trim_end_matches('\n') {
            "" => String::new(),
            text => format!("{text}\n"),
        };
        let words = words(argv);
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        recorded(&words, code, ended(stdout).as_bytes(), &ended(stderr))
    });
    blocks.collect()
}

/// Splits a line at blanks outside of single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            _ => words.last_mut().into_iter().for_each(|word| word.push(c)),
        }
    }
    words
}

fn no_such(path: &str) -> Problem {
    Problem::not_found("FILE_NOT_FOUND", format!("{path}: no such file or directory"))
}

fn parse_recording(text: &str) -> Files {
    let mut files = Files::new();
    let mut current: Option<(String, String)> = None;
    for line in text.split_inclusive('\n') {
        let header = line.trim_end().strip_prefix("==> ").and_then(|rest| rest.strip_suffix(" <=="));
        match (header, &mut current) {
            (Some(path), _) => {
                // `tail` prints an empty line before the next header.
                if let Some((path, mut contents)) = current.replace((path.to_owned(), String::new())) {
                    if contents.ends_with('\n') {
                        contents.pop();
                    }
                    files.insert(path, contents.into_bytes());
                }
            }
            (None, Some((_, contents))) => contents.push_str(line),
            (None, None) => {}
        }
    }
    files.extend(current.map(|(path, contents)| (path, contents.into_bytes())));
    files
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_recording_gives_each_file_byte_for_byte() {
        let files = parse_recording("==> /a <==\none\n\ntwo\n\n==> /b <==\nlast");
        assert_eq!(files["/a"], b"one\n\ntwo\n");
        assert_eq!(files["/b"], b"last");
    }

    #[test]
    fn a_file_is_read_as_it_is_and_said_to_be_what_it_is_said_to_be() {
        let link = Metadata {
            size: 3,
            mode: 0o777,
            owner: "ada".into(),
            group: "ada".into(),
            modified_unix: 0,
            is_dir: false,
            is_symlink: true,
        };
        let empty = Metadata { is_dir: true, is_symlink: false, ..link.clone() };
        let cx = FakeTarget::new()
            .file("/a", b"\xff\r\n")
            .metadata("/b", link)
            .metadata("/empty", empty)
            .context();
        assert_eq!(cx.read_bytes("/a").unwrap(), b"\xff\r\n");
        assert_eq!(cx.read("/a").unwrap(), "\u{fffd}\r\n");
        let found = cx.stat_all(&["/b"]).remove(0).unwrap().unwrap();
        assert!(found.is_symlink && found.owner == "ada");
        assert!(cx.list_dir("/empty").unwrap().is_empty());
        assert_eq!(cx.list_dir("/none").unwrap_err().code, "FILE_NOT_FOUND");
        let large = FakeTarget::new().file("/large", vec![b'x'; 1 << 20]).context();
        assert_eq!(large.read_bytes("/large").unwrap_err().code, "FILE_TOO_LARGE");
    }

    #[test]
    fn a_transcript_gives_each_command_with_what_it_said_last() {
        let text = "$ a '--x= y'\n[exit 0]\none\n\ntwo\n$ b\n[exit 3]\n[stderr]\nno\n$ b\n[exit 0]\n$ c\n[exit 1]\nx\n[stderr]\ny";
        let cx = FakeTarget::new().transcript(text).context();
        let said = |program: &str, args: &[&str]| {
            let said = cx.run(Command::new(program).args(args.iter().copied())).unwrap();
            (said.exit_code, said.text().into_owned(), said.error_text())
        };
        assert_eq!(said("a", &["--x= y"]), (0, "one\n\ntwo\n".into(), String::new()));
        assert_eq!(said("b", &[]), (0, String::new(), String::new()));
        assert_eq!(said("c", &[]), (1, "x\n".into(), "y".into()));
    }

    #[test]
    fn the_sample_that_the_host_reads_is_read_alike() {
        let read = transcript(include_str!("../tests/data/transcript.txt"));
        let read: Vec<_> = read
            .iter()
            .map(|(argv, said)| {
                (argv.join("|"), said.exit_code, said.text().into_owned(), said.stderr.clone())
            })
            .collect();
        let expected = [
            ("a|--x= y", 0, "one\n\ntwo\n", ""),
            ("b", 3, "", "no\n"),
            ("b", 0, "", ""),
            ("c|", 1, "x\n", "y\n"),
        ];
        let expected = expected.map(|(argv, code, stdout, stderr)| {
            (argv.to_owned(), code, stdout.to_owned(), stderr.as_bytes().to_vec())
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn parts_of_files_and_pieces_of_output_are_what_was_asked_for() {
        let cx = FakeTarget::new().file("/a", b"0123456789").answer(&["a"], 0, "0123456789", "").context();
        let parts = [("/a", 2, 3), ("/a", -2, 5), ("/a", -20, 4), ("/a", 9, 5), ("/a", 10, 5)];
        let read: Vec<_> = cx.read_parts(&parts).into_iter().map(|part| part.unwrap()).collect();
        assert_eq!(read, [&b"234"[..], b"89", b"0123", b"9", b""]);
        let mut stream = cx.open(Command::new("a")).unwrap();
        let pieces: Vec<_> = (0..4).map(|_| stream.read(4).unwrap()).collect();
        assert_eq!(pieces, [&b"0123"[..], b"4567", b"89", b""]);
        assert_eq!(cx.open(Command::new("b")).err().unwrap().code, "NOT_RECORDED");
    }

    #[test]
    fn a_program_that_is_missing_is_said_to_be() {
        let cx = FakeTarget::new().answer(&["a"], 0, "A", "").without_program("a").context();
        assert_eq!(cx.run(Command::new("a")).unwrap().text(), "A");
        assert_eq!(cx.run(Command::new("a").arg("x")).unwrap_err().code, "PROGRAM_NOT_FOUND");
        assert_eq!(cx.run(Command::new("b")).unwrap_err().code, "NOT_RECORDED");
    }

    #[test]
    fn what_is_not_recorded_may_have_one_output_and_trips_are_counted() {
        let target = FakeTarget::new().answer(&["a"], 0, "A", "").without_program("c").otherwise(3, "odd");
        let trips = target.trips();
        let cx = target.context();
        let [a, b] = cx.run_each(["a", "b"].map(Command::new)).map(Result::unwrap);
        assert_eq!((a.text(), b.text(), b.exit_code), ("A".into(), "odd".into(), 3));
        assert_eq!(cx.run(Command::new("c")).unwrap_err().code, "PROGRAM_NOT_FOUND");
        assert_eq!(trips.get(), 2);
    }

    #[test]
    fn another_modules_tool_gives_what_was_recorded_for_these_arguments() {
        let refused = Problem::new("UNIT_NOT_FOUND", Category::NotFound, "no such unit");
        let cx = FakeTarget::new()
            .tool("svc_list", json!({"state": "failed"}), Ok(json!({"data": [], "total": 0})))
            .tool("svc_status", json!({"service": "x"}), Err(refused))
            .context();
        let calls = [
            ToolCall::new("svc_status", json!({"service": "x"})),
            ToolCall::new("svc_list", json!({"state": "failed"})),
            ToolCall::new("svc_list", json!({})),
            ToolCall::new("disk_usage", json!({})),
        ];
        let mut results = cx.call_tools(&calls).into_iter();
        assert_eq!(results.next().unwrap().unwrap_err().code, "UNIT_NOT_FOUND");
        assert_eq!(results.next().unwrap().unwrap(), json!({"data": [], "total": 0}));
        assert_eq!(results.next().unwrap().unwrap_err().code, "NOT_RECORDED");
        let denied = results.next().unwrap().unwrap_err();
        assert_eq!(denied.code, "CAPABILITY_DENIED");
        assert!(denied.message.contains("disk_usage"), "{}", denied.message);
    }

    #[test]
    fn a_tool_that_the_module_does_not_request_is_denied_though_a_result_is_recorded() {
        fn look(_: crate::NoArgs, cx: &Context) -> Result<crate::Single<serde_json::Value>> {
            let calls = ["a", "b", "c"].map(|tool| ToolCall::new(tool, json!({})));
            let told = cx.call_tools(&calls).into_iter().map(|result| match result {
                Ok(envelope) => envelope,
                Err(problem) => problem.code.into(),
            });
            Ok(crate::Single(json!({"told": told.collect::<Vec<_>>()})))
        }
        let module = Module::new("look", "1.0.0", "test", "Looks")
            .calls_tool("a")
            .grants(|module| module.calls_tool("b"))
            .tool(crate::Tool::new("look", "Look", look));
        let all = ["a", "b", "c"]
            .iter()
            .fold(FakeTarget::new(), |fake, tool| fake.tool(tool, json!({}), Ok(json!({"tool": tool}))));
        let (data, _) = all.call(&module, "look", json!({})).unwrap();
        assert_eq!(data, json!({"told": [{"tool": "a"}, {"tool": "b"}, "CAPABILITY_DENIED"]}));
        assert_eq!(module.description().capabilities.tools, ["a", "b"]);
    }

    #[test]
    fn a_command_without_a_grant_is_denied_where_grants_are_checked() {
        fn look(_: crate::NoArgs, cx: &Context) -> Result<crate::Single<serde_json::Value>> {
            let told = cx.run_all(vec![Command::new("a"), Command::new("b")]).into_iter();
            let told = told.map(|output| match output {
                Ok(output) => output.text().into_owned(),
                Err(problem) => problem.code,
            });
            Ok(crate::Single(json!({"told": told.collect::<Vec<_>>()})))
        }
        fn change(_: crate::NoArgs, cx: &Context) -> Result<crate::Single<serde_json::Value>> {
            cx.apply(Change::new("Change it").step(crate::Step::run(Command::new("a").as_root())))?;
            Ok(crate::Single(json!({})))
        }
        let module = Module::new("look", "1.0.0", "test", "Looks")
            .command(crate::CommandGrant::read("a", "to look"))
            .tool(crate::Tool::new("look", "Look", look))
            .tool(crate::Tool::new("change", "Change", change).risk(crate::Risk::Low));
        let target = || FakeTarget::new().answer(&["a"], 0, "A", "").answer(&["b"], 0, "B", "");
        let told = |target: FakeTarget| target.call(&module, "look", json!({})).unwrap().0;
        assert_eq!(told(target()), json!({"told": ["A", "B"]}));
        assert_eq!(told(target().checks_grants()), json!({"told": ["A", "CAPABILITY_DENIED"]}));
        assert!(target().call(&module, "change", json!({})).is_ok());
        let target = target().checks_grants();
        let plans = target.plans();
        assert_eq!(target.call(&module, "change", json!({})).unwrap_err().code, "CAPABILITY_DENIED");
        assert!(plans.borrow().is_empty());
    }

    #[test]
    fn one_call_makes_at_most_32_calls_of_tools() {
        let cx = FakeTarget::new().tool("a", json!({}), Ok(json!({}))).context();
        let call = ToolCall::new("a", json!({}));
        let codes = |calls: Vec<ToolCall>| -> Vec<_> {
            cx.call_tools(&calls).into_iter().map(|result| result.map_err(|problem| problem.code)).collect()
        };
        assert!(codes(vec![call.clone(); 30]).iter().all(|result| result.is_ok()));
        assert_eq!(codes(vec![call.clone(); 3]), vec![Err("TOO_MANY_TOOL_CALLS".to_owned()); 3]);
        assert!(codes(vec![call; 2]).iter().all(|result| result.is_ok()));
    }

    #[test]
    fn a_later_answer_shows_once_a_plan_has_run() {
        let target = || FakeTarget::new().answer(&["a"], 0, "1", "").answer_after(&["a"], 1, b"\xff", "");
        let said = |cx: &Context| cx.run(Command::new("a")).unwrap().stdout;
        let cx = target().context();
        assert_eq!(said(&cx), b"1");
        cx.apply(Change::new("Change it")).unwrap();
        assert_eq!(said(&cx), b"\xff");
        let cx = target().outcome(Ok(confirm::Applied { outputs: Vec::new(), dry_run: true })).context();
        cx.apply(Change::new("Change it")).unwrap();
        assert_eq!(said(&cx), b"1");
    }

    #[test]
    fn a_second_recording_shows_after_a_sleep() {
        let cx = FakeTarget::new()
            .recording("==> /a <==\n1\n\n==> /b <==\nb\n")
            .recording("==> /a <==\n2\n")
            .context();
        assert_eq!(cx.read("/a").unwrap(), "1\n");
        cx.sleep(Duration::from_secs(1));
        assert_eq!(cx.read("/a").unwrap(), "2\n");
        assert_eq!(cx.read("/b").unwrap(), "b\n");
        assert_eq!(cx.now(), 1.0);
    }
}
