//! The context of a call, through which a tool reaches the target's commands and files within the module's grants.

use std::array;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;

use crate::bindings::sysadmin::module::confirm;
use crate::bindings::sysadmin::module::target_files::Request;
use crate::knowledge::Profile;
use crate::text;
use crate::{
    Applied, Category, Change, Command, Distro, Failure, Metadata, Output, Pipeline, Privilege, Problem,
    Result, ToolCall,
};
#[cfg(target_family = "wasm")]
use crate::{Place, bindings::sysadmin::module::target_files};

/// The most bytes that one read of a file returns. The contract sets this limit.
const MOST: u64 = 1 << 20;

/// The most commands that one call into the host takes. The contract sets this limit.
const AT_ONCE: usize = 32;

/// Commands that have run, with their answers.
type Answers = Vec<(Command, Result<Output>)>;

/// The context of a call. The host hands one to every tool.
#[derive(Clone)]
pub struct Context {
    limit: Option<u32>,
    filter: Option<String>,
    /// The account whose rights read files.
    #[cfg_attr(not(target_family = "wasm"), expect(dead_code, reason = "a fake target has one account"))]
    privilege: Privilege,
    /// The answers to commands that were run ahead of the questions.
    ahead: Rc<RefCell<Answers>>,
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fake: crate::testkit::FakeTarget,
}

impl Context {
    #[cfg(target_family = "wasm")]
    pub(crate) fn new(limit: Option<u32>, filter: Option<String>) -> Self {
        Self { limit, filter, privilege: Privilege::Caller, ahead: Rc::default() }
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn new(limit: Option<u32>, filter: Option<String>) -> Self {
        Self { limit, filter, privilege: Privilege::Caller, ahead: Rc::default(), fake: Default::default() }
    }

    /// The most items that the caller wants of a listing. The host applies it; a tool may do so earlier to save work.
    pub fn limit(&self) -> Option<u32> {
        self.limit
    }

    /// The text that items of a listing must hold. The host applies it; a tool may do so earlier to save work.
    pub fn filter(&self) -> Option<&str> {
        self.filter.as_deref()
    }

    /// This context with other rights for files. The path grants must name the same rights.
    pub fn files_as(&self, privilege: Privilege) -> Self {
        Self { privilege, ..self.clone() }
    }

    /// This context with the answers to these commands, which run at the same time. [`Context::run_all`] then takes an answer
    /// from there, each one once, so that looks which are written one after the other wait for the slowest command and not
    /// for all of them.
    pub fn ahead(&self, mut commands: Vec<Command>) -> Self {
        let mut distinct: Vec<Command> = Vec::new();
        commands.retain(|command| {
            let is_new = !distinct.contains(command);
            distinct.extend(is_new.then(|| command.clone()));
            is_new
        });
        let answers = self.run_all(commands);
        Self { ahead: Rc::new(RefCell::new(distinct.into_iter().zip(answers).collect())), ..self.clone() }
    }

    /// The answer to a command that was run ahead.
    fn known(&self, command: &Command) -> Option<Result<Output>> {
        let mut ahead = self.ahead.borrow_mut();
        let at = ahead.iter().position(|(known, _)| known == command)?;
        Some(ahead.swap_remove(at).1)
    }

    /// Runs one command that looks. An exit code other than 0 is not a problem here; [`Output::success`] makes it one.
    pub fn run(&self, command: Command) -> Result<Output> {
        self.run_all(vec![command]).remove(0)
    }

    /// Runs a pipeline that looks. The outputs are in the order of its commands, and only the last one has stdout.
    pub fn run_pipeline(&self, pipeline: Pipeline) -> Result<Vec<Output>> {
        let count = pipeline.commands.len();
        let outputs = self.host_run_pipeline(pipeline)?;
        if outputs.len() == count { Ok(outputs) } else { Err(no_answer()) }
    }

    /// Runs independent commands at the same time, 32 at most. The results are in the order of the commands.
    pub fn run_all(&self, commands: Vec<Command>) -> Vec<Result<Output>> {
        let known: Vec<_> = commands.iter().map(|command| self.known(command)).collect();
        let open = commands.into_iter().zip(&known).filter(|(_, known)| known.is_none());
        let mut open: Vec<Command> = open.map(|(command, _)| command).collect();
        let mut outputs = Vec::new();
        while !open.is_empty() {
            let rest = open.split_off(AT_ONCE.min(open.len()));
            let count = open.len();
            outputs.extend(padded(self.host_run_all(open), count));
            open = rest;
        }
        let mut outputs = outputs.into_iter();
        let answers = known.into_iter();
        answers.map(|known| known.or_else(|| outputs.next()).unwrap_or_else(|| Err(no_answer()))).collect()
    }

    /// [`Context::run_all`] for a fixed number of commands: `let [users, groups] = cx.run_each([a, b]);`
    pub fn run_each<const N: usize>(&self, commands: [Command; N]) -> [Result<Output>; N] {
        let mut answers = self.run_all(commands.into()).into_iter();
        array::from_fn(|_| answers.next().unwrap_or_else(|| Err(no_answer())))
    }

    /// Reads a text file of the target. Bytes that aren't UTF-8 become U+FFFD. A file of 1 MiB or more is a problem.
    pub fn read(&self, path: &str) -> Result<String> {
        self.read_all(&[path]).remove(0)
    }

    /// Reads several text files at the same time. The results are in the order of the paths.
    pub fn read_all<P: AsRef<str>>(&self, paths: &[P]) -> Vec<Result<String>> {
        self.read_all_bytes(paths).into_iter().map(|contents| contents.map(text::lossy_string)).collect()
    }

    /// Reads the bytes of a file of the target, for a tool that writes it back. A file of 1 MiB or more is a problem.
    pub fn read_bytes(&self, path: &str) -> Result<Vec<u8>> {
        self.read_all_bytes(&[path]).remove(0)
    }

    /// [`Context::read_bytes`] for several files at the same time. The results are in the order of the paths.
    pub fn read_all_bytes<P: AsRef<str>>(&self, paths: &[P]) -> Vec<Result<Vec<u8>>> {
        let requests = paths
            .iter()
            .map(|path| Request { path: path.as_ref().to_owned(), offset: 0, max_bytes: MOST })
            .collect::<Vec<_>>();
        let answers = padded(self.host_read_all(requests), paths.len()).into_iter().zip(paths);
        answers.map(|(contents, path)| whole(path.as_ref(), contents?)).collect()
    }

    /// The metadata of paths, `None` for a path that doesn't exist. Symlinks aren't followed.
    pub fn stat_all<P: AsRef<str>>(&self, paths: &[P]) -> Vec<Result<Option<Metadata>>> {
        let paths = paths.iter().map(|path| path.as_ref().to_owned()).collect::<Vec<_>>();
        let count = paths.len();
        padded(self.host_stat_all(paths), count)
    }

    /// Starts a command that looks, to read its standard output piece by piece, where that doesn't fit in memory. Dropping
    /// the stream ends the command. The exit code and standard error aren't available.
    pub fn open(&self, command: Command) -> Result<OutputStream> {
        self.host_open(command)
    }

    /// Reads parts of files at the same time. Each part is a path, an offset and a length in bytes. A negative offset counts
    /// from the end. A result holds at most 1 MiB, and less at the end of the file. The results are in the order of the parts.
    /// The host knows a file as read whole, so that a plan is refused where it has changed since, where the parts of one call
    /// follow each other from its beginning to beyond its end.
    pub fn read_parts<P: AsRef<str>>(&self, parts: &[(P, i64, u64)]) -> Vec<Result<Vec<u8>>> {
        let requests = parts.iter().map(|(path, offset, length)| Request {
            path: path.as_ref().to_owned(),
            offset: *offset,
            max_bytes: (*length).min(MOST),
        });
        padded(self.host_read_all(requests.collect()), parts.len())
    }

    /// The names in a directory, sorted.
    pub fn list_dir(&self, path: &str) -> Result<Vec<String>> {
        self.list_all(&[path]).remove(0)
    }

    /// [`Context::list_dir`] for several directories at the same time. The results are in the order of the paths.
    pub fn list_all<P: AsRef<str>>(&self, paths: &[P]) -> Vec<Result<Vec<String>>> {
        let paths = paths.iter().map(|path| path.as_ref().to_owned()).collect::<Vec<_>>();
        let count = paths.len();
        padded(self.host_list_all(paths), count)
    }

    /// The texts as the host would show them, without secrets. A tool that searches text searches these, so that a match
    /// tells nothing about a secret.
    pub fn redacted(&self, texts: Vec<String>) -> Vec<String> {
        self.host_redact(texts)
    }

    /// The name of the account that the target is reached as, or its number where it has no name.
    pub fn account(&self) -> Result<String> {
        let known = self.distro().extra.into_iter().find(|(name, _)| name == "user");
        known.map(|(_, user)| user).ok_or_else(|| {
            Problem::new("NO_ANSWER", Category::Internal, "the host doesn't say which account is in use")
        })
    }

    /// The profile of a service, by the profile's id or a unit's name, whether or not the target has the service.
    pub fn profile(&self, name: &str) -> Option<Profile> {
        self.host_profile(name)
    }

    /// The profiles of the services that the target has, sorted by id.
    pub fn detected(&self) -> Vec<Profile> {
        self.host_detected()
    }

    /// Calls read-only tools of other modules on this target, all at the same time and 32 at most in one call. The module
    /// names them by [`crate::Module::calls_tool`]. The results are in the order of the calls, and each is the tool's envelope
    /// as the host would show it: `data`, and `summary` and `severity` of an analysis. A call that fails doesn't affect the
    /// others. Only a read-only tool that a client calls may use this.
    pub fn call_tools(&self, calls: &[ToolCall]) -> Vec<Result<Value>> {
        padded(self.host_call_tools(calls), calls.len())
    }

    /// Hands the plan to the host, at most once in a call. It returns after the plan ran, failed, or was a dry run. If
    /// somebody refuses the plan, the host ends the call. `?` turns a failure into a problem.
    pub fn apply(&self, change: Change) -> std::result::Result<Applied, Failure> {
        self.host_apply(change).map(Applied::from)
    }
}

/// The standard output of a running command.
#[cfg(target_family = "wasm")]
pub struct OutputStream(crate::bindings::sysadmin::module::exec_command::OutputStream);

/// The standard output of a running command.
#[cfg(not(target_family = "wasm"))]
pub struct OutputStream {
    stdout: Vec<u8>,
    read: usize,
}

impl OutputStream {
    /// The next bytes, at most `max_bytes` of them. Empty at the end.
    #[cfg(target_family = "wasm")]
    pub fn read(&mut self, max_bytes: u32) -> Result<Vec<u8>> {
        self.0.read(max_bytes)
    }

    /// The next bytes, at most `max_bytes` of them. Empty at the end.
    #[cfg(not(target_family = "wasm"))]
    pub fn read(&mut self, max_bytes: u32) -> Result<Vec<u8>> {
        let rest = self.stdout.get(self.read..).unwrap_or_default();
        let piece = rest.get(..max_bytes as usize).unwrap_or(rest).to_vec();
        self.read += piece.len();
        Ok(piece)
    }
}

/// The contents of a whole file, or a problem where it may be larger than what was read.
fn whole(path: &str, contents: Vec<u8>) -> Result<Vec<u8>> {
    if (contents.len() as u64) < MOST {
        return Ok(contents);
    }
    let message = format!("{path} is larger than {MOST} bytes");
    Err(Problem::new("FILE_TOO_LARGE", Category::Resource, message))
}

/// Fills up missing answers with problems: a tool needn't panic where the host is broken.
fn padded<T>(mut answers: Vec<Result<T>>, count: usize) -> Vec<Result<T>> {
    answers.resize_with(count, || Err(no_answer()));
    answers
}

fn no_answer() -> Problem {
    Problem::new("NO_ANSWER", Category::Internal, "the host gave no answer")
}

#[cfg(target_family = "wasm")]
impl Context {
    /// The facts that the host found out about the target.
    pub fn distro(&self) -> Distro {
        crate::bindings::sysadmin::module::distro_context::current()
    }

    /// Waits, for example between two samples of a counter.
    pub fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }

    /// The time in seconds since the epoch, with fractions.
    pub fn now(&self) -> f64 {
        std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64()
    }

    /// Seconds on a clock that only moves forward, for rates.
    pub fn monotonic(&self) -> f64 {
        use std::sync::OnceLock;
        use std::time::Instant;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_secs_f64()
    }

    /// Reports the progress of the tool's own work to the client, from 0 to 1.
    pub fn progress(&self, fraction: Option<f32>, message: &str) {
        crate::bindings::sysadmin::module::progress::report(fraction, message);
    }

    fn host_run_all(&self, commands: Vec<Command>) -> Vec<Result<Output>> {
        crate::bindings::sysadmin::module::exec_command::run_all(&commands)
    }

    fn host_run_pipeline(&self, pipeline: Pipeline) -> Result<Vec<Output>> {
        crate::bindings::sysadmin::module::exec_command::run_pipeline(&pipeline)
    }

    fn host_open(&self, command: Command) -> Result<OutputStream> {
        crate::bindings::sysadmin::module::exec_command::open(&command).map(OutputStream)
    }

    fn host_read_all(&self, requests: Vec<Request>) -> Vec<Result<Vec<u8>>> {
        target_files::read_all(&requests, &self.privilege, Place::Target)
    }

    fn host_stat_all(&self, paths: Vec<String>) -> Vec<Result<Option<Metadata>>> {
        target_files::stat_all(&paths, &self.privilege, Place::Target)
    }

    fn host_list_all(&self, paths: Vec<String>) -> Vec<Result<Vec<String>>> {
        target_files::list_all(&paths, &self.privilege, Place::Target)
    }

    fn host_apply(&self, change: Change) -> std::result::Result<confirm::Applied, Failure> {
        confirm::apply(&change.0)
    }

    fn host_profile(&self, name: &str) -> Option<Profile> {
        crate::bindings::sysadmin::module::knowledge::find(name)
    }

    fn host_detected(&self) -> Vec<Profile> {
        crate::bindings::sysadmin::module::knowledge::detected()
    }

    fn host_redact(&self, texts: Vec<String>) -> Vec<String> {
        crate::bindings::sysadmin::module::redaction::redact(&texts)
    }

    fn host_call_tools(&self, calls: &[ToolCall]) -> Vec<Result<Value>> {
        let calls: Vec<_> = calls.iter().map(ToolCall::in_contract).collect();
        let results = crate::bindings::sysadmin::module::tool_calls::call_all(&calls);
        results.into_iter().map(|result| crate::tool_call::envelope(&result?)).collect()
    }
}

#[cfg(not(target_family = "wasm"))]
impl Context {
    /// The facts that the host found out about the target.
    pub fn distro(&self) -> Distro {
        self.fake.distro.clone()
    }

    /// Waits, for example between two samples of a counter. A fake target goes on to its next recording instead.
    pub fn sleep(&self, duration: Duration) {
        self.fake.sleep(duration);
    }

    /// The time in seconds since the epoch, with fractions.
    pub fn now(&self) -> f64 {
        self.fake.now()
    }

    /// Seconds on a clock that only moves forward, for rates.
    pub fn monotonic(&self) -> f64 {
        self.fake.now()
    }

    /// Reports the progress of the tool's own work to the client, from 0 to 1.
    pub fn progress(&self, _fraction: Option<f32>, _message: &str) {}

    fn host_run_all(&self, commands: Vec<Command>) -> Vec<Result<Output>> {
        assert!(commands.len() <= AT_ONCE, "the host refuses {} commands at once", commands.len());
        self.fake.run_all(&commands)
    }

    fn host_run_pipeline(&self, pipeline: Pipeline) -> Result<Vec<Output>> {
        self.fake.run_pipeline(&pipeline)
    }

    fn host_open(&self, command: Command) -> Result<OutputStream> {
        self.fake.whole_output(&command).map(|output| OutputStream { stdout: output.stdout, read: 0 })
    }

    fn host_read_all(&self, requests: Vec<Request>) -> Vec<Result<Vec<u8>>> {
        requests.iter().map(|request| self.fake.read_part(request)).collect()
    }

    fn host_stat_all(&self, paths: Vec<String>) -> Vec<Result<Option<Metadata>>> {
        paths.iter().map(|path| self.fake.stat(path)).collect()
    }

    fn host_list_all(&self, paths: Vec<String>) -> Vec<Result<Vec<String>>> {
        paths.iter().map(|path| self.fake.list_dir(path)).collect()
    }

    fn host_apply(&self, change: Change) -> std::result::Result<confirm::Applied, Failure> {
        self.fake.apply(change)
    }

    fn host_profile(&self, name: &str) -> Option<Profile> {
        self.fake.profiles.iter().find(|profile| profile.id == name || profile.is_meant_by(name)).cloned()
    }

    fn host_detected(&self) -> Vec<Profile> {
        self.fake.profiles.clone()
    }

    fn host_redact(&self, texts: Vec<String>) -> Vec<String> {
        texts.into_iter().map(|text| self.fake.redact(text)).collect()
    }

    fn host_call_tools(&self, calls: &[ToolCall]) -> Vec<Result<Value>> {
        self.fake.call_tools(calls)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::{Command, testkit::FakeTarget};

    #[test]
    fn answers_come_in_the_order_of_the_questions() {
        let cx = FakeTarget::new().answer(&["a"], 0, "A", "").answer(&["b"], 0, "B", "").context();
        let [b, missing, a] = cx.run_each(["b", "c", "a"].map(Command::new));
        assert_eq!((b.unwrap().text(), a.unwrap().text()), ("B".into(), "A".into()));
        assert_eq!(missing.unwrap_err().code, "NOT_RECORDED");
    }

    #[test]
    fn what_was_run_ahead_is_answered_from_there_once() {
        let cx = FakeTarget::new().answer(&["a"], 0, "1", "").answer_after(&["a"], 0, "2", "").context();
        let cx = cx.ahead(["a", "b", "a"].map(Command::new).to_vec());
        // From now on, the target would answer otherwise.
        cx.apply(crate::Change::new("Change it")).unwrap();
        let said = |cx: &crate::Context| cx.run(Command::new("a")).map(|said| said.text().into_owned());
        assert_eq!((said(&cx).unwrap(), said(&cx).unwrap()), ("1".to_owned(), "2".to_owned()));
        // Other rights or another time limit make another command.
        let cx = cx.ahead(vec![Command::new("a")]);
        let [other, same] = cx.run_each([Command::new("a").as_root(), Command::new("a")]);
        assert_eq!((other.unwrap().text(), same.unwrap().text()), ("2".into(), "2".into()));
        assert_eq!(cx.run(Command::new("b")).unwrap_err().code, "NOT_RECORDED");
    }
}
