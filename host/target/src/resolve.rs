//! Where a path leads: link after link, as the kernel goes, but with every directory on the way looked at.
//!
//! A [`Walk`] only decides; what is at a path and where a link leads it is told, by this machine at once or by commands
//! elsewhere. Where rights are taken that aren't the caller's, only [`Trusted`] accounts may be able to change a
//! directory that it goes through. As that holds from the root on, nobody else can change what was found either, and
//! what is opened afterwards is what was resolved.

use std::collections::VecDeque;
use std::fs;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::entry::{Entry, Trusted};
use super::{Found, Kind, Metadata};
use host_base::problem::{Category, Problem};
use host_capability::is_lexically_safe;
use host_text::visible::excerpt;

/// As many links as the kernel follows, path_resolution(7).
const MOST_LINKS: usize = 40;

/// Names in a path. Every directory on the way is looked at, so a path of 4,095 bytes would be two thousand questions.
const DEEPEST: usize = 64;

/// Where a path leads.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Absolute, without links. Of what doesn't exist: its last existing directory's, and the rest as it was asked for.
    pub path: String,
    pub(super) end: End,
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    There(Entry),
    /// Nothing yet.
    Missing,
    /// Nothing, and not because of what was asked for: a link leads there.
    Dangling,
}

impl Resolved {
    /// A problem where the path would be anything as soon as somebody creates what a link on it leads to.
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
    /// What is there.
    pub(super) fn found(&self) -> Option<Found> {
        let End::There(entry) = &self.end else { return None };
        let kind = match entry.kind() {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            _ => Kind::Other,
        };
        Some(Found { kind, metadata: Metadata::from(entry) })
    }
}

/// Whether a link at the very end is followed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Last {
    Followed,
    Kept,
}

/// What a walk has to be told next.
pub(super) enum Ask {
    /// What is at these paths, each above the next; up to the first that isn't a directory.
    Look(Vec<String>),
    /// Where this link leads.
    Follow(String),
    Done(Resolved),
}

/// A path on its way to where it leads.
pub(super) struct Walk<'a> {
    asked: &'a str,
    last: Last,
    trusted: &'a Trusted,
    /// What has been gone through: names, the root's is empty.
    done: Vec<String>,
    /// What is left.
    pending: VecDeque<String>,
    /// So many of what is left came out of links.
    linked: usize,
    links: usize,
    /// The next of what is left is a link, to be followed.
    at_link: bool,
    /// What was gone through last is a directory that others can add to; the problem, unless what comes next is safe there.
    shared: Option<Problem>,
    end: Option<End>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(asked: &'a str, last: Last, trusted: &'a Trusted) -> Result<Self, Problem> {
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
            end: None,
        };
        walk.pending.extend(names(asked));
        Ok(walk)
    }

    pub(super) fn ask(&self) -> Ask {
        if let Some(end) = &self.end {
            let path = joined(self.done.iter().chain(&self.pending));
            return Ask::Done(Resolved { path, end: end.clone() });
        }
        if self.at_link {
            return Ask::Follow(self.next());
        }
        // What `..` leaves depends on what was before it.
        let plain = self.pending.iter().take_while(|name| *name != "..").count();
        let upto = |count| joined(self.done.iter().chain(self.pending.iter().take(count)));
        Ask::Look((1..=plain).map(upto).collect())
    }

    /// Takes what is at the paths of [`Ask::Look`], `None` where there is nothing.
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

    /// Goes on by one name; false where the entries that follow are of no use any more.
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
        // In each process these lead to the process itself: whoever uses the path will be right about them.
        let is_self = matches!(path.as_str(), "/proc/self" | "/proc/thread-self");
        if entry.kind() == FileType::Symlink && !is_self && (!is_last || self.last == Last::Followed) {
            self.at_link = true;
            return Ok(false);
        }
        if is_last {
            self.end = Some(End::There(entry));
            return Ok(false);
        }
        if entry.kind() != FileType::Directory && !is_self {
            // This is there; what is below it can't be.
            self.end = Some(nothing(self.linked.saturating_sub(1)));
            return Ok(false);
        }
        if !is_kernels(&path) {
            match self.trusted.check(&path, &entry, self.asked) {
                Err(problem) if self.trusted.may_share(&entry) => self.shared = Some(problem),
                checked => checked?,
            }
        }
        self.done.extend(self.pending.pop_front());
        self.linked = self.linked.saturating_sub(1);
        self.go_up();
        Ok(true)
    }

    /// Takes where the link of [`Ask::Follow`] leads.
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
            self.done.clear();
            self.pending.push_front(String::new());
            self.linked += 1;
        }
        self.go_up();
        Ok(())
    }

    /// Takes back a name for each `..` that comes next. What is at the very end is always looked at, so it is left.
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

    /// The path of what comes next.
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

/// Whether a path is the kernel's own: nobody plants a link there. Where programs for the kernel are kept, which others
/// may be allowed to, is not.
pub(super) fn is_kernels(path: &str) -> bool {
    let below = |directory: &str| {
        path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    below("/proc") || below("/sys") && !below("/sys/fs/bpf")
}

/// `/proc/1/cwd`, `/proc/1/fd/3` and the like: they lead wherever the process wants them to.
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

/// Where a path leads on this machine.
pub(super) fn resolve(asked: &str, last: Last, trusted: &Trusted) -> Result<Resolved, Problem> {
    let mut walk = Walk::new(asked, last, trusted)?;
    loop {
        match walk.ask() {
            Ask::Look(paths) => walk.looked(paths.iter().map(|path| look(path)))?,
            Ask::Follow(link) => walk.followed(&read_link(&link)?)?,
            Ask::Done(resolved) => return Ok(resolved),
        }
    }
}

/// A problem where others than those trusted could change what the path leads to.
pub(super) fn assure(path: &str, last: Last, trusted: &Trusted) -> Result<(), Problem> {
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

/// Where a link leads, which no grant could cover were it no text.
pub(super) fn utf8(link: &str, target: Vec<u8>) -> Result<String, Problem> {
    String::from_utf8(target)
        .map_err(|_| unresolvable(link, "it is a link; expected a name in UTF-8 where it leads"))
}

#[cfg(test)]
mod tests;
