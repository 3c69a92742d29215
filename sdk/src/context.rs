//! The world as a tool sees it: the target's commands and files, within the module's grants.

use std::time::Duration;

use crate::bindings::sysadmin::module::confirm;
use crate::bindings::sysadmin::module::target_files::Request;
use crate::knowledge::Profile;
use crate::{
    Applied, Category, Change, Command, Distro, Failure, Metadata, Output, Privilege, Problem, Result,
};
#[cfg(target_family = "wasm")]
use crate::{Place, bindings::sysadmin::module::target_files};

/// What one file read may return, as in the contract.
const MOST: u64 = 1 << 20;

/// Handed to every tool.
#[derive(Clone)]
pub struct Context {
    limit: Option<u32>,
    filter: Option<String>,
    /// Whose rights reach files.
    #[cfg_attr(not(target_family = "wasm"), expect(dead_code, reason = "a fake target has one account"))]
    privilege: Privilege,
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fake: crate::testkit::FakeTarget,
}

impl Context {
    #[cfg(target_family = "wasm")]
    pub(crate) fn new(limit: Option<u32>, filter: Option<String>) -> Self {
        Self { limit, filter, privilege: Privilege::Caller }
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn new(limit: Option<u32>, filter: Option<String>) -> Self {
        Self { limit, filter, privilege: Privilege::Caller, fake: Default::default() }
    }

    /// At most so many items of a listing, where the module can push that down. The host applies it otherwise.
    pub fn limit(&self) -> Option<u32> {
        self.limit
    }

    /// Only items that hold this text, where the module can push that down. The host applies it otherwise.
    pub fn filter(&self) -> Option<&str> {
        self.filter.as_deref()
    }

    /// The same with other rights for files: those that the path grants name.
    pub fn files_as(&self, privilege: Privilege) -> Self {
        Self { privilege, ..self.clone() }
    }

    /// Runs one command that looks. An exit code other than 0 is no problem here: see [`Output::success`].
    pub fn run(&self, command: Command) -> Result<Output> {
        self.run_all(vec![command]).remove(0)
    }

    /// Runs independent commands at once; results in the order given.
    pub fn run_all(&self, commands: Vec<Command>) -> Vec<Result<Output>> {
        let count = commands.len();
        padded(self.host_run_all(commands), count)
    }

    /// A text file of the target; bytes that aren't UTF-8 become U+FFFD. One above 1 MiB is a problem, not half a file.
    pub fn read(&self, path: &str) -> Result<String> {
        self.read_all(&[path]).remove(0)
    }

    /// Text files at once; results in the order given.
    pub fn read_all<P: AsRef<str>>(&self, paths: &[P]) -> Vec<Result<String>> {
        let text = |contents: Vec<u8>| String::from_utf8_lossy(&contents).into_owned();
        self.read_all_bytes(paths).into_iter().map(|contents| contents.map(text)).collect()
    }

    /// A file of the target as it is: for what is written back. One above 1 MiB is a problem, not half a file.
    pub fn read_bytes(&self, path: &str) -> Result<Vec<u8>> {
        self.read_all_bytes(&[path]).remove(0)
    }

    /// [`Context::read_bytes`] of several files at once; results in the order given.
    pub fn read_all_bytes<P: AsRef<str>>(&self, paths: &[P]) -> Vec<Result<Vec<u8>>> {
        let requests = paths
            .iter()
            .map(|path| Request { path: path.as_ref().to_owned(), offset: 0, max_bytes: MOST })
            .collect::<Vec<_>>();
        let answers = padded(self.host_read_all(requests), paths.len()).into_iter().zip(paths);
        answers.map(|(contents, path)| whole(path.as_ref(), contents?)).collect()
    }

    /// Symlinks aren't followed; `None` for what doesn't exist.
    pub fn stat_all<P: AsRef<str>>(&self, paths: &[P]) -> Vec<Result<Option<Metadata>>> {
        let paths = paths.iter().map(|path| path.as_ref().to_owned()).collect::<Vec<_>>();
        let count = paths.len();
        padded(self.host_stat_all(paths), count)
    }

    /// Starts a command that looks, and reads its standard output piece by piece: for what doesn't fit in memory.
    /// Dropping it ends the command. Its exit code and what it says on standard error are not to be had.
    pub fn open(&self, command: Command) -> Result<OutputStream> {
        self.host_open(command)
    }

    /// Parts of files, each a path, an offset (a negative one counts from the end) and a length, of which at most 1 MiB
    /// is given; less at the end of the file. All at once; results in the order given.
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

    /// [`Context::list_dir`] of several directories at once; results in the order given.
    pub fn list_all<P: AsRef<str>>(&self, paths: &[P]) -> Vec<Result<Vec<String>>> {
        let paths = paths.iter().map(|path| path.as_ref().to_owned()).collect::<Vec<_>>();
        let count = paths.len();
        padded(self.host_list_all(paths), count)
    }

    /// Each text as it would be shown, without its secrets. What is searched has to be that.
    pub fn redacted(&self, texts: Vec<String>) -> Vec<String> {
        self.host_redact(texts)
    }

    /// The account that the target is reached as; its number where it has no name.
    pub fn account(&self) -> Result<String> {
        let known = self.distro().extra.into_iter().find(|(name, _)| name == "user");
        known.map(|(_, user)| user).ok_or_else(|| {
            Problem::new("NO_ANSWER", Category::Internal, "the host doesn't say which account is in use")
        })
    }

    /// What is known of a service, by its profile's id or a unit's name; whether the target has it or not.
    pub fn profile(&self, name: &str) -> Option<Profile> {
        self.host_profile(name)
    }

    /// What is known of each service that the target has, by id.
    pub fn detected(&self) -> Vec<Profile> {
        self.host_detected()
    }

    /// Hands over the plan, at most once in a call. Returns only where it ran, was a dry run, or broke: a refusal ends
    /// the call in the host. `?` makes a problem of a failure.
    pub fn apply(&self, change: Change) -> std::result::Result<Applied, Failure> {
        self.host_apply(change).map(Applied::from)
    }
}

/// Standard output of a running command, as it comes.
#[cfg(target_family = "wasm")]
pub struct OutputStream(crate::bindings::sysadmin::module::exec_command::OutputStream);

/// Standard output of a running command, as it comes.
#[cfg(not(target_family = "wasm"))]
pub struct OutputStream {
    stdout: Vec<u8>,
    read: usize,
}

impl OutputStream {
    /// What has come, at most so many bytes; empty at the end.
    #[cfg(target_family = "wasm")]
    pub fn read(&mut self, max_bytes: u32) -> Result<Vec<u8>> {
        self.0.read(max_bytes)
    }

    /// What has come, at most so many bytes; empty at the end.
    #[cfg(not(target_family = "wasm"))]
    pub fn read(&mut self, max_bytes: u32) -> Result<Vec<u8>> {
        let rest = self.stdout.get(self.read..).unwrap_or_default();
        let piece = rest.get(..max_bytes as usize).unwrap_or(rest).to_vec();
        self.read += piece.len();
        Ok(piece)
    }
}

/// Not the first part of a larger file.
fn whole(path: &str, contents: Vec<u8>) -> Result<Vec<u8>> {
    if (contents.len() as u64) < MOST {
        return Ok(contents);
    }
    let message = format!("{path} is larger than {MOST} bytes");
    Err(Problem::new("FILE_TOO_LARGE", Category::Resource, message))
}

/// A host that answers fewer questions than were asked is broken; a tool needn't panic over it.
fn padded<T>(mut answers: Vec<Result<T>>, count: usize) -> Vec<Result<T>> {
    answers
        .resize_with(count, || Err(Problem::new("NO_ANSWER", Category::Internal, "the host gave no answer")));
    answers
}

#[cfg(target_family = "wasm")]
impl Context {
    /// What the host found out about the target.
    pub fn distro(&self) -> Distro {
        crate::bindings::sysadmin::module::distro_context::current()
    }

    /// Waits, as between two samples of a counter.
    pub fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }

    /// Seconds since the epoch, with fractions.
    pub fn now(&self) -> f64 {
        std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64()
    }

    /// Seconds on a clock that only moves forward: for rates.
    pub fn monotonic(&self) -> f64 {
        use std::sync::OnceLock;
        use std::time::Instant;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_secs_f64()
    }

    /// Tells the client how far the tool's own work is, from 0 to 1.
    pub fn progress(&self, fraction: Option<f32>, message: &str) {
        crate::bindings::sysadmin::module::progress::report(fraction, message);
    }

    fn host_run_all(&self, commands: Vec<Command>) -> Vec<Result<Output>> {
        crate::bindings::sysadmin::module::exec_command::run_all(&commands)
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
}

#[cfg(not(target_family = "wasm"))]
impl Context {
    /// What the host found out about the target.
    pub fn distro(&self) -> Distro {
        self.fake.distro.clone()
    }

    /// Waits, as between two samples of a counter. A fake target goes on to its next recording instead.
    pub fn sleep(&self, duration: Duration) {
        self.fake.sleep(duration);
    }

    /// Seconds since the epoch, with fractions.
    pub fn now(&self) -> f64 {
        self.fake.now()
    }

    /// Seconds on a clock that only moves forward: for rates.
    pub fn monotonic(&self) -> f64 {
        self.fake.now()
    }

    /// Tells the client how far the tool's own work is, from 0 to 1.
    pub fn progress(&self, _fraction: Option<f32>, _message: &str) {}

    fn host_run_all(&self, commands: Vec<Command>) -> Vec<Result<Output>> {
        commands.iter().map(|command| self.fake.run(command)).collect()
    }

    fn host_open(&self, command: Command) -> Result<OutputStream> {
        self.fake.run(&command).map(|output| OutputStream { stdout: output.stdout, read: 0 })
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
}
