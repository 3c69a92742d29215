//! What lies at a path, whose it is, and who could put something else there.

use std::os::unix::fs::MetadataExt;

use rustix::fs::FileType;

use super::Metadata;
use host_base::problem::{Category, Problem};
use host_base::program::others_write;

/// What is at a path itself, a link there not followed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// `st_mode`: kind and permissions.
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) size: u64,
    pub(super) modified_unix: i64,
    /// Hard links.
    pub(super) links: u64,
    /// `st_dev` of the file system that it is on.
    pub(super) device: u64,
    pub(super) inode: u64,
    /// Where the names are known along with the numbers; else this machine's tables have them.
    pub(super) names: Option<(String, String)>,
}

impl Entry {
    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    fn owner(&self) -> String {
        self.names.as_ref().map_or_else(|| name_of("/etc/passwd", self.uid), |(owner, _)| owner.clone())
    }

    fn group(&self) -> String {
        self.names.as_ref().map_or_else(|| name_of("/etc/group", self.gid), |(_, group)| group.clone())
    }
}

impl From<&std::fs::Metadata> for Entry {
    fn from(metadata: &std::fs::Metadata) -> Self {
        Self {
            mode: metadata.mode(),
            uid: metadata.uid(),
            gid: metadata.gid(),
            size: metadata.len(),
            modified_unix: metadata.mtime(),
            links: metadata.nlink(),
            device: metadata.dev(),
            inode: metadata.ino(),
            names: None,
        }
    }
}

impl From<&Entry> for Metadata {
    fn from(entry: &Entry) -> Self {
        Self {
            size: entry.size,
            mode: entry.mode & 0o7777,
            owner: entry.owner(),
            group: entry.group(),
            modified_unix: entry.modified_unix,
            links: entry.links,
            device: entry.device,
            inode: entry.inode,
            is_dir: entry.kind() == FileType::Directory,
            is_symlink: entry.kind() == FileType::Symlink,
        }
    }
}

/// Whether it belongs to root, and nobody else may write to it.
pub(super) fn is_roots(uid: u32, mode: u32) -> bool {
    uid == 0 && !others_write(mode)
}

/// An account without rights of its own, which programs take to look at what everybody may see.
const NOBODY: &str = "nobody";

/// Who may be able to change the directories that lead to a path. Whoever can puts a link there, and has it followed
/// with rights that aren't his own.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Trusted {
    /// The path is reached with the caller's rights, and they are all that a link could use.
    Anyone,
    /// Only root.
    Root,
    /// Root, and this account.
    User(String),
    /// The same, for what is done at once with that account's rights: what is its own in a directory that everybody may add
    /// to, as /tmp, nobody else can replace there.
    Owner(String),
}

impl Trusted {
    /// A problem where others can change what is in a directory above the path.
    pub(super) fn check(&self, directory: &str, entry: &Entry, path: &str) -> Result<(), Problem> {
        let (trusts, whose) = match self {
            Self::Anyone => return Ok(()),
            Self::Root => (entry.uid == 0, "root's own".to_owned()),
            Self::User(name) | Self::Owner(name) => {
                (entry.uid == 0 || entry.owner() == *name, format!("root's or {name}'s own"))
            }
        };
        let found = if !trusts {
            format!("belongs to {}", entry.owner())
        } else if entry.mode & 0o002 != 0 {
            "can be written to by everybody".to_owned()
        } else if others_write(entry.mode) {
            format!("can be written to by group {}", entry.group())
        } else {
            return Ok(());
        };
        let message = format!(
            "{directory}, on the way to {path}, {found}: expected every directory there to be {whose}, and nobody \
             else to be able to write to it"
        );
        Err(Problem::new("UNTRUSTED_DIRECTORY", Category::Denied, message))
    }
}

impl Trusted {
    /// Whether it depends on what comes next that others can write to a directory: where they can add to it and replace
    /// nothing.
    pub(super) fn may_share(&self, directory: &Entry) -> bool {
        matches!(self, Self::Owner(_)) && directory.uid == 0 && directory.mode & 0o1000 != 0
    }

    /// Whether it belongs to the account whose rights are taken, or that account has none that a link could use.
    pub(super) fn owns(&self, entry: &Entry) -> bool {
        matches!(self, Self::Owner(name) if entry.owner() == *name || name == NOBODY)
    }
}

/// For what can't be read piece by piece, or would be waited for.
pub(super) fn not_a_regular_file(path: &str, kind: FileType) -> Problem {
    let kind = match kind {
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Symlink => "a symlink",
        _ => "a device",
    };
    let message = format!("{path} is {kind}, not a regular file");
    Problem::new("NOT_A_REGULAR_FILE", Category::Validation, message)
}

/// The name that a table of the system's gives a number; only local accounts are known by name here.
pub(super) fn name_of(table: &str, id: u32) -> String {
    let number = id.to_string();
    let contents = std::fs::read_to_string(table).unwrap_or_default();
    let name = contents.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    });
    name.unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(mode: u32, uid: u32, gid: u32) -> Entry {
        let names = Some((format!("u{uid}"), format!("g{gid}")));
        let mode = 0o040_000 | mode;
        Entry { mode, uid, gid, size: 0, modified_unix: 0, links: 2, device: 1, inode: 1, names }
    }

    #[test]
    fn a_directory_is_trusted_where_nobody_else_can_change_it() {
        let user = Trusted::User("u7".into());
        for (mode, uid, gid, root, user_too) in [
            (0o755, 0, 0, true, true),
            (0o700, 0, 5, true, true),
            (0o775, 0, 0, false, false),
            (0o775, 0, 5, false, false),
            (0o777, 0, 0, false, false),
            // Sticky keeps others from replacing what is there, and not from adding a link.
            (0o1777, 0, 0, false, false),
            (0o755, 7, 7, false, true),
            (0o700, 7, 0, false, true),
            (0o775, 7, 7, false, false),
            (0o757, 7, 7, false, false),
            (0o755, 8, 0, false, false),
        ] {
            let entry = directory(mode, uid, gid);
            let trusts = |trusted: &Trusted| trusted.check("/a", &entry, "/a/b").is_ok();
            assert_eq!(is_roots(uid, entry.mode), root, "{mode:o} {uid}:{gid}");
            assert_eq!(trusts(&Trusted::Root), root, "{mode:o} {uid}:{gid}");
            assert_eq!(trusts(&user), user_too, "{mode:o} {uid}:{gid}");
            assert!(trusts(&Trusted::Anyone));
        }
    }

    #[test]
    fn a_refusal_says_which_directory_whose_it_is_and_what_is_expected() {
        for (mode, uid, found) in [
            (0o755, 7, "belongs to u7"),
            (0o757, 0, "can be written to by everybody"),
            (0o775, 0, "can be written to by group g5"),
        ] {
            let problem = Trusted::Root.check("/srv", &directory(mode, uid, 5), "/srv/a").unwrap_err();
            assert_eq!((problem.code.as_str(), problem.category), ("UNTRUSTED_DIRECTORY", Category::Denied));
            let said = format!(
                "/srv, on the way to /srv/a, {found}: expected every directory there to be root's own"
            );
            assert!(problem.message.starts_with(&said), "{}", problem.message);
        }
    }
}
