//! A walk over one directory tree within its file system, which finds the directories and files that take most of it.
//!
//! `find` prints the tree, and the walk reads it piece by piece: a whole disk doesn't fit in memory, and a walk that takes too
//! long is stopped with what it has found. `du` takes as long, prints twice as many bytes, and knows neither inodes nor when
//! a file was changed. Sizes are those of the blocks in use, so that a sparse file counts with what it takes. A file with
//! several names counts once.

use std::collections::HashSet;

use linux_sysadmin_sdk::{DurationCategory, Privilege, prelude::*};

use super::largest::{Largest, Weighed};

/// Prints an entry's age (`n`: changed within ten minutes, `d`: within a day), type (`x` for a directory that may not be
/// read), depth, links, blocks, inode, device and name. The hole takes the path as a text: a path would be resolved with a look
/// at each directory's owner, and the homes of accounts would be refused to root.
const FIND: CommandLine = CommandLine::new(
    "find -H <text> -xdev '(' -mmin -10 -printf n -o -mtime -1 -printf d -o -printf o ')' \
     '(' -type d '!' '(' -readable -executable ')' -printf x -o -printf %y ')' -printf '%d %n %b %i %D %f\\0'",
);

/// The unit of `%b` in bytes.
const BLOCK: u64 = 512;
/// The most bytes that are read at once.
const PIECE: u32 = 256 << 10;
/// The longest entry in bytes. A name has at most 255.
const LONGEST_ENTRY: usize = 1024;
/// The most files with several names that are remembered. They take 8 MiB at most.
const MOST_LINKED: usize = 300_000;
/// The number of directories that are kept.
const DIRECTORIES: usize = 500;
/// The number of files that are kept.
const FILES: usize = 40;

pub(crate) fn grants() -> [CommandGrant; 1] {
    [FIND.read("sizes of the files and directories on one file system").as_root_if_available()]
}

/// The time since a file was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Changed {
    #[serde(rename = "10 min")]
    TenMinutes,
    #[serde(rename = "day")]
    Day,
}

/// What a file, or a directory with all that is below it, takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Taken {
    /// The path; a directory's ends with `/`.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
    pub(crate) changed: Option<Changed>,
}

/// What a walk found.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
    /// The directories that take most bytes.
    pub(crate) directories: Vec<Taken>,
    /// The directories with most files below them.
    pub(crate) crowded: Vec<Taken>,
    /// The largest files.
    pub(crate) files: Vec<Taken>,
    /// The largest files among those that were changed within a day.
    pub(crate) changed: Vec<Taken>,
    /// The number of directories that may not be read.
    pub(crate) closed: usize,
    /// The directory in which the walk was stopped, because its time was over. Directories may then take more than is said.
    pub(crate) stopped_in: Option<String>,
    /// Whether files with several names may have been counted more than once.
    pub(crate) counts_links: bool,
}

impl Walk {
    /// Whether nothing was left out.
    pub(crate) fn is_complete(&self) -> bool {
        self.closed == 0 && self.stopped_in.is_none() && !self.counts_links
    }

    /// The bytes that a directory takes, where it is among the largest.
    pub(crate) fn bytes_of(&self, directory: &str) -> Option<u64> {
        let is_it = |taken: &&Taken| taken.path.strip_suffix('/') == Some(directory);
        self.directories.iter().find(is_it).map(|taken| taken.bytes)
    }

    /// What the walk left out, in words.
    pub(crate) fn left_out(&self) -> Option<String> {
        if let Some(path) = &self.stopped_in {
            return Some(format!(
                "stopped in {path} after {} files: sizes are at least these; a longer `seconds` or a path below covers more",
                self.inodes
            ));
        }
        let closed = |count| format!("{count} directories can't be read without root's rights");
        let linked = || "files with several names may count more than once".to_owned();
        (self.closed > 0).then(|| closed(self.closed)).or_else(|| self.counts_links.then(linked))
    }
}

/// Walks the tree below a path, for at most this many seconds.
pub(crate) fn walk(path: &str, seconds: u32, cx: &Context) -> Result<Walk> {
    // A file system that blocks is noticed only once the command's own time is over.
    let duration = if seconds < 25 { DurationCategory::Quick } else { DurationCategory::Normal };
    let command = FIND.with([path]).privilege(Privilege::RootIfAvailable).duration(duration);
    let end = cx.monotonic() + f64::from(seconds);
    let mut stream = cx.open(command)?;
    let mut walker = Walker::new(path);
    loop {
        match stream.read(PIECE) {
            Ok(piece) if piece.is_empty() => return Ok(walker.finish(false)),
            Ok(piece) => walker.take(&piece),
            Err(problem) if walker.has_begun() && problem.code == "COMMAND_TIMEOUT" => {
                return Ok(walker.finish(true));
            }
            Err(problem) => return Err(problem),
        }
        if cx.monotonic() >= end {
            return Ok(walker.finish(true));
        }
    }
}

/// A directory that the walk is in.
struct Open {
    name: String,
    bytes: u64,
    inodes: u64,
}

/// Reads what `find` prints. A directory comes before its entries, so that the path to each entry is known by its depth.
struct Walker {
    /// The path of the walk, without `/` at its end.
    start: String,
    rest: Vec<u8>,
    device: Option<u64>,
    open: Vec<Open>,
    linked: HashSet<u64>,
    directories: Largest<Taken>,
    crowded: Largest<Crowded>,
    files: Largest<Taken>,
    changed: Largest<Taken>,
    closed: usize,
    counts_links: bool,
}

impl Weighed for Taken {
    fn weight(&self) -> u64 {
        self.bytes
    }
}

/// A directory that is weighed by its inodes.
struct Crowded(Taken);

impl Weighed for Crowded {
    fn weight(&self) -> u64 {
        self.0.inodes
    }
}

/// An entry as `find` prints it.
struct Entry<'a> {
    age: u8,
    kind: u8,
    depth: usize,
    links: u64,
    bytes: u64,
    inode: u64,
    device: u64,
    name: &'a [u8],
}

impl<'a> Entry<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let [age, kind, rest @ ..] = line else { return None };
        let mut words = rest.splitn(6, |byte| *byte == b' ');
        let mut number = || std::str::from_utf8(words.next()?).ok()?.parse::<u64>().ok();
        let (depth, links, blocks, inode, device) = (number()?, number()?, number()?, number()?, number()?);
        Some(Self {
            age: *age,
            kind: *kind,
            depth: usize::try_from(depth).ok()?,
            links,
            bytes: blocks.saturating_mul(BLOCK),
            inode,
            device,
            name: words.next()?,
        })
    }
}

impl Walker {
    fn new(path: &str) -> Self {
        Self {
            start: path.trim_end_matches('/').to_owned(),
            rest: Vec::new(),
            device: None,
            open: Vec::new(),
            linked: HashSet::new(),
            directories: Largest::new(DIRECTORIES),
            crowded: Largest::new(DIRECTORIES),
            files: Largest::new(FILES),
            changed: Largest::new(FILES),
            closed: 0,
            counts_links: false,
        }
    }

    fn has_begun(&self) -> bool {
        self.device.is_some()
    }

    fn take(&mut self, piece: &[u8]) {
        let mut lines = piece.split(|byte| *byte == 0);
        let Some(mut line) = lines.next() else { return };
        for next in lines {
            if self.rest.is_empty() {
                self.entry(line);
            } else {
                let mut whole = std::mem::take(&mut self.rest);
                whole.extend_from_slice(line);
                self.entry(&whole);
            }
            line = next;
        }
        if self.rest.len() + line.len() <= LONGEST_ENTRY {
            self.rest.extend_from_slice(line);
        }
    }

    fn entry(&mut self, line: &[u8]) {
        let Some(entry) = Entry::parse(line) else { return };
        let is_directory = matches!(entry.kind, b'd' | b'x');
        let device = *self.device.get_or_insert(entry.device);
        // A mount point belongs to another file system. Files of an overlay have devices of their own.
        if is_directory && entry.device != device {
            return;
        }
        while self.open.len() > entry.depth {
            self.close();
        }
        if is_directory {
            self.closed += usize::from(entry.kind == b'x');
            let name = String::from_utf8_lossy(entry.name).into_owned();
            self.open.push(Open { name, bytes: entry.bytes, inodes: 1 });
            return;
        }
        let is_counted = entry.links > 1 && self.was_met(entry.inode);
        let (bytes, inodes) = if is_counted { (0, 0) } else { (entry.bytes, 1) };
        let changed = match entry.age {
            b'n' => Some(Changed::TenMinutes),
            b'd' => Some(Changed::Day),
            _ => None,
        };
        if self.files.takes(bytes) || (changed.is_some() && self.changed.takes(bytes)) {
            let mut path = self.directory();
            match entry.depth {
                0 => path = self.start.clone(),
                _ => path.push_str(&String::from_utf8_lossy(entry.name)),
            }
            let taken = Taken { path, bytes, inodes, changed };
            if changed.is_some() {
                self.changed.push(taken.clone());
            }
            self.files.push(taken);
        }
        match self.open.last_mut() {
            Some(parent) => (parent.bytes, parent.inodes) = (parent.bytes + bytes, parent.inodes + inodes),
            // The path of the walk is a file itself.
            None => self.open.push(Open { name: String::new(), bytes, inodes }),
        }
    }

    /// Whether a file with several names was met by another one of them.
    fn was_met(&mut self, inode: u64) -> bool {
        if self.linked.len() < MOST_LINKED {
            return !self.linked.insert(inode);
        }
        let is_known = self.linked.contains(&inode);
        self.counts_links |= !is_known;
        is_known
    }

    /// The path of the innermost directory, with `/` at its end.
    fn directory(&self) -> String {
        let mut path = format!("{}/", self.start);
        for open in self.open.iter().skip(1) {
            path.push_str(&open.name);
            path.push('/');
        }
        path
    }

    /// Leaves the innermost directory, which counts for the one above it from now on.
    fn close(&mut self) {
        if self.open.len() > 1 {
            let (bytes, inodes) = self.open.last().map_or((0, 0), |open| (open.bytes, open.inodes));
            if self.directories.takes(bytes) || self.crowded.takes(inodes) {
                let taken = Taken { path: self.directory(), bytes, inodes, changed: None };
                self.crowded.push(Crowded(taken.clone()));
                self.directories.push(taken);
            }
        }
        let Some(closed) = self.open.pop() else { return };
        match self.open.last_mut() {
            Some(parent) => {
                parent.bytes += closed.bytes;
                parent.inodes += closed.inodes;
            }
            None => self.open.push(closed),
        }
    }

    fn finish(mut self, is_stopped: bool) -> Walk {
        let stopped_in = is_stopped.then(|| self.directory());
        while self.open.len() > 1 {
            self.close();
        }
        let (bytes, inodes) = self.open.first().map_or((0, 0), |open| (open.bytes, open.inodes));
        Walk {
            bytes,
            inodes,
            directories: self.directories.sorted(),
            crowded: self.crowded.sorted().into_iter().map(|Crowded(taken)| taken).collect(),
            files: self.files.sorted(),
            changed: self.changed.sorted(),
            closed: self.closed,
            stopped_in,
            counts_links: self.counts_links,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `find` of findutils 4.9.0 printed of a directory with a hard link, a sparse file, a mount point, a closed directory,
    /// and a name with a line break.
    const TREE: &str = "od0 4 8 2 2049 srv\0od1 2 8 11 2049 a\0of2 2 16 12 2049 one\0of2 2 16 12 2049 two\0\
        nf2 1 2048 13 2049 new\nfile\0ol2 1 0 14 2049 link\0ox1 2 8 15 2049 closed\0od1 2 0 1 50 mounted\0\
        of1 1 0 16 2049 sparse\0df1 1 24 17 2049 b b\0";

    fn walked(start: &str, text: &str, piece: usize) -> Walk {
        let mut walker = Walker::new(start);
        text.as_bytes().chunks(piece).for_each(|piece| walker.take(piece));
        walker.finish(false)
    }

    #[test]
    fn each_file_counts_once_with_its_blocks_wherever_the_output_is_cut() {
        for piece in [1, 2, 7, 1000] {
            let walk = walked("/srv", TREE, piece);
            assert_eq!((walk.bytes, walk.inodes), (2112 * 512, 8), "{piece}");
            let paths =
                |all: &[Taken]| all.iter().map(|one| (one.path.clone(), one.bytes)).collect::<Vec<_>>();
            let directories = [("/srv/a/".to_owned(), 2072 * 512), ("/srv/closed/".to_owned(), 4096)];
            assert_eq!(paths(&walk.directories), directories);
            assert_eq!(walk.bytes_of("/srv/a"), Some(2072 * 512));
            assert_eq!(walk.files[0].path, "/srv/a/new\nfile");
            let changed = [("/srv/a/new\nfile".to_owned(), 1 << 20), ("/srv/b b".to_owned(), 12288)];
            assert_eq!(paths(&walk.changed), changed);
            assert_eq!(walk.crowded[0].inodes, 4);
            assert_eq!((walk.closed, walk.is_complete()), (1, false));
        }
    }

    #[test]
    fn a_walk_that_is_stopped_says_where_and_counts_what_it_has_met() {
        let mut walker = Walker::new("/");
        walker.take(b"od0 3 8 2 1 /\0od1 2 8 3 1 var\0od2 2 8 4 1 log\0of3 1 80 5 1 x\0of3 1 80 6");
        let walk = walker.finish(true);
        assert_eq!(walk.stopped_in.as_deref(), Some("/var/log/"));
        assert_eq!((walk.bytes, walk.inodes), (104 * 512, 4));
        assert_eq!(walk.directories[0].path, "/var/");
        assert!(walk.left_out().is_some_and(|said| said.starts_with("stopped in /var/log/ after 4 files")));
    }

    #[test]
    fn a_path_that_is_a_file_is_its_own_answer_and_garbage_is_none() {
        let walk = walked("/srv/x", "of0 1 8 2 1 x\0", 100);
        assert_eq!((walk.bytes, walk.files[0].path.as_str()), (4096, "/srv/x"));
        for text in ["", "\0\0", "garbage\0", "od\0", "of0 1 8\0", &"x".repeat(100_000)] {
            let walk = walked("/srv", text, 4096);
            assert_eq!((walk.bytes, walk.inodes, walk.files.len()), (0, 0, 0));
        }
    }

    #[test]
    fn a_huge_tree_takes_little_memory_and_keeps_its_largest() {
        let mut walker = Walker::new("/");
        walker.take(b"od0 3 0 2 1 /\0");
        for number in 0..40_000_u64 {
            walker.take(
                format!("od1 2 0 {number} 1 d{number}\0of2 2 {number} {} 1 f\0", number + 100_000).as_bytes(),
            );
        }
        let walk = walker.finish(false);
        assert_eq!((walk.inodes, walk.directories.len(), walk.files.len()), (80_001, DIRECTORIES, FILES));
        assert_eq!(walk.files[0].path, "/d39999/f");
        assert_eq!(walk.directories[DIRECTORIES - 1].path, "/d39500/");
    }
}
