//! Resolves a path link by link, as the kernel does, but looks at every directory on the way.
//!
//! A [`Walk`] only decides. It is told what is at a path and where a link leads, by this machine directly or by
//! commands elsewhere. Where rights other than the caller's are taken, only [`Trusted`] accounts may be able to change
//! a directory on the way. This holds from the root on, and so nobody else can change what was found, and the file
//! that is opened later is the one that was resolved.

use std::collections::VecDeque;
use std::fs;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::entry::{Entry, Trusted};
use super::{FileKind, Found, Metadata};
use host_base::problem::{Category, Problem};
use host_capability::is_lexically_safe;
use host_text::visible::excerpt;

/// The number of links that the kernel follows, path_resolution(7).
const MOST_LINKS: usize = 40;

/// The most names in a path. Every directory on the way is looked at, and a path of 4,095 bytes would need two
/// thousand questions.
const DEEPEST: usize = 64;

/// The result of resolving a path.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The absolute path without links. For a path that doesn't exist, the last existing directory is resolved and the
    /// rest is as it was asked for.
    pub path: String,
    pub(super) end: End,
    /// True where a directory on the way lets not everybody pass.
    pub(super) is_closed: bool,
}

/// The end of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    There(Entry),
    /// The path leads to no file yet.
    Missing,
    /// The path leads to no file, through a link.
    Dangling,
}

impl Resolved {
    /// Returns a problem for a dangling link, because whoever creates its target decides where the path leads.
    pub(super) fn unless_dangling(self, asked: &str) -> Result<Self, Problem> {
        match self.end {
            End::Dangling => {
                Err(unresolvable(asked, "a link on it leads to nothing; expected one that leads somewhere"))
            }
            _ => Ok(self),
        }
    }
}

impl Resolved {
    /// Says whether a directory on the way keeps others from what is there, whatever its own rights are.
    pub fn is_behind_closed_directory(&self) -> bool {
        self.is_closed
    }

    /// Returns what is there.
    pub fn found(&self) -> Option<Found> {
        let End::There(entry) = &self.end else { return None };
        let kind = match entry.kind() {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            FileType::Symlink => FileKind::Symlink,
            _ => FileKind::Other,
        };
        Some(Found { kind, metadata: Metadata::from(entry) })
    }
}

/// Whether a link at the very end is followed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LastLink {
    Followed,
    Kept,
}

/// The next information that a walk needs.
pub(super) enum NextStep {
    /// The walk needs to know what is at these paths, each above the next, up to the first that isn't a directory.
    Look(Vec<String>),
    /// The walk needs the target of this link.
    Follow(String),
    Done(Resolved),
}

/// A path that is being resolved.
pub(super) struct Walk<'a> {
    asked: &'a str,
    last: LastLink,
    trusted: &'a Trusted,
    /// The names that were passed. The root's is empty.
    done: Vec<String>,
    /// The names that are left.
    pending: VecDeque<String>,
    /// The number of names left that came out of links.
    linked: usize,
    links: usize,
    /// True where the next name is a link that has to be followed.
    at_link: bool,
    /// Set where the last directory lets others add to it. It is the problem to return unless the next entry is safe
    /// there.
    shared: Option<Problem>,
    /// True where a directory that was passed lets not everybody pass.
    is_closed: bool,
    end: Option<End>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(asked: &'a str, last: LastLink, trusted: &'a Trusted) -> Result<Self, Problem> {
        if !is_lexically_safe(asked) {
            return Err(unresolvable(asked, "expected an absolute path without `.`, `..` or `//`"));
        }
        if asked.split('/').count() > DEEPEST {
            return Err(unresolvable(asked, "expected a path that isn't nested so deeply"));
        }
        let mut walk = Self {
            asked,
            last,
            trusted,
            done: Vec::new(),
            pending: VecDeque::from([String::new()]),
            linked: 0,
            links: 0,
            at_link: false,
            shared: None,
            is_closed: false,
            end: None,
        };
        walk.pending.extend(names(asked));
        Ok(walk)
    }

    pub(super) fn ask(&self) -> NextStep {
        if let Some(end) = &self.end {
            let path = joined(self.done.iter().chain(&self.pending));
            return NextStep::Done(Resolved { path, end: end.clone(), is_closed: self.is_closed });
        }
        if self.at_link {
            return NextStep::Follow(self.next());
        }
        // The meaning of `..` depends on what was before it.
        let plain = self.pending.iter().take_while(|name| *name != "..").count();
        let upto = |count| joined(self.done.iter().chain(self.pending.iter().take(count)));
        NextStep::Look((1..=plain).map(upto).collect())
    }

    /// Takes what is at the paths of [`NextStep::Look`], or `None` where there is nothing.
    pub(super) fn looked(
        &mut self,
        entries: impl IntoIterator<Item = Result<Option<Entry>, Problem>>,
    ) -> Result<(), Problem> {
        for entry in entries {
            if !self.arrive(entry?)? {
                break;
            }
        }
        Ok(())
    }

    /// Goes on by one name. Returns false where the entries that follow are of no use any more.
    fn arrive(&mut self, entry: Option<Entry>) -> Result<bool, Problem> {
        if let Some(problem) = self.shared.take()
            && !entry.as_ref().is_some_and(|entry| self.trusted.owns(entry))
        {
            return Err(problem);
        }
        let nothing = |linked| if linked > 0 { End::Dangling } else { End::Missing };
        let Some(entry) = entry else {
            self.end = Some(nothing(self.linked));
            return Ok(false);
        };
        let path = self.next();
        let is_last = self.pending.len() == 1;
        // These links lead each process to itself, and so the process that uses the path resolves them rightly.
        let is_self = matches!(path.as_str(), "/proc/self" | "/proc/thread-self");
        if entry.kind() == FileType::Symlink && !is_self && (!is_last || self.last == LastLink::Followed) {
            self.at_link = true;
            return Ok(false);
        }
        if is_last {
            self.end = Some(End::There(entry));
            return Ok(false);
        }
        if entry.kind() != FileType::Directory && !is_self {
            // This exists and isn't a directory, and so nothing can be below it.
            self.end = Some(nothing(self.linked.saturating_sub(1)));
            return Ok(false);
        }
        if !is_kernels(&path) {
            match self.trusted.check(&path, &entry, self.asked) {
                Err(problem) if self.trusted.may_share(&entry) => self.shared = Some(problem),
                checked => checked?,
            }
        }
        self.is_closed |= entry.mode & 0o001 == 0;
        self.done.extend(self.pending.pop_front());
        self.linked = self.linked.saturating_sub(1);
        self.go_up();
        Ok(true)
    }

    /// Takes the target of the link of [`NextStep::Follow`].
    pub(super) fn followed(&mut self, target: &str) -> Result<(), Problem> {
        let link = self.next();
        if target.chars().any(char::is_control) {
            return Err(unresolvable(self.asked, "a link on it leads to a name with control characters"));
        }
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Problem::io(self.asked, &Errno::LOOP.into()));
        }
        if of_a_process(&link) {
            return Err(unresolvable(self.asked, "expected no link of a process's own, which it can change"));
        }
        self.at_link = false;
        self.pending.pop_front();
        self.linked = self.linked.saturating_sub(1);
        for name in names(target).collect::<Vec<_>>().into_iter().rev() {
            self.pending.push_front(name);
            self.linked += 1;
        }
        if target.starts_with('/') {
            self.is_closed = false;
            self.done.clear();
            self.pending.push_front(String::new());
            self.linked += 1;
        }
        self.go_up();
        Ok(())
    }

    /// Removes a name for each `..` that comes next. The very end is always looked at, and so one name is left.
    fn go_up(&mut self) {
        while self.pending.front().is_some_and(|name| name == "..") {
            self.pending.pop_front();
            self.linked = self.linked.saturating_sub(1);
            // Above the root is the root.
            if self.done.len() > 1 {
                self.done.pop();
            }
        }
        if self.pending.is_empty() {
            self.pending.extend(self.done.pop());
            self.linked = 1;
        }
    }

    /// Returns the path of the next name.
    fn next(&self) -> String {
        joined(self.done.iter().chain(self.pending.front()))
    }
}

fn names(path: &str) -> impl Iterator<Item = String> {
    path.split('/').filter(|name| !matches!(*name, "" | ".")).map(str::to_owned)
}

fn joined<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let path = names.map(String::as_str).collect::<Vec<_>>().join("/");
    if path.is_empty() { "/".to_owned() } else { path }
}

/// Says whether a path is the kernel's own, where nobody can plant a link. The directory of BPF programs isn't, as
/// others may be allowed to write there.
pub(super) fn is_kernels(path: &str) -> bool {
    let below = |directory: &str| {
        path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    below("/proc") || below("/sys") && !below("/sys/fs/bpf")
}

/// Says whether a link is one such as `/proc/1/cwd` or `/proc/1/fd/3`, which leads wherever its process wants.
fn of_a_process(path: &str) -> bool {
    let Some((process, _)) = path.strip_prefix("/proc/").and_then(|below| below.split_once('/')) else {
        return false;
    };
    matches!(process, "self" | "thread-self") || process.bytes().all(|byte| byte.is_ascii_digit())
}

fn unresolvable(path: &str, why: &str) -> Problem {
    let message = format!("{} can't be resolved: {why}", excerpt(path, 300));
    Problem::new("UNRESOLVABLE_PATH", Category::Denied, message)
}

/// Resolves a path on this machine.
pub(super) fn resolve(asked: &str, last: LastLink, trusted: &Trusted) -> Result<Resolved, Problem> {
    let mut walk = Walk::new(asked, last, trusted)?;
    loop {
        match walk.ask() {
            NextStep::Look(paths) => walk.looked(paths.iter().map(|path| look(path)))?,
            NextStep::Follow(link) => walk.followed(&read_link(&link)?)?,
            NextStep::Done(resolved) => return Ok(resolved),
        }
    }
}

/// Returns a problem where accounts that aren't trusted could change what the path leads to.
pub(super) fn check_trusted(path: &str, last: LastLink, trusted: &Trusted) -> Result<(), Problem> {
    match trusted {
        Trusted::Anyone => Ok(()),
        _ => resolve(path, last, trusted).map(drop),
    }
}

fn look(path: &str) -> Result<Option<Entry>, Problem> {
    use std::io::ErrorKind;
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(Entry::from(&metadata))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Problem::io(path, &error)),
    }
}

fn read_link(link: &str) -> Result<String, Problem> {
    let target = fs::read_link(link).map_err(|error| Problem::io(link, &error))?;
    utf8(link, target.into_os_string().into_encoded_bytes())
}

/// Returns the target of a link. No grant could cover one that isn't text.
pub(super) fn utf8(link: &str, target: Vec<u8>) -> Result<String, Problem> {
    String::from_utf8(target)
        .map_err(|_| unresolvable(link, "it is a link; expected a name in UTF-8 where it leads"))
}

#[cfg(test)]
mod tests;
