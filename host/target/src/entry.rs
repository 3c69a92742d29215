//! Entries of directories: what lies at a path, who owns it, and who could replace it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::FileType;

use super::Metadata;
use host_base::passwd;
use host_base::problem::{Category, Problem};
use host_base::program::others_write;

/// An entry at a path. A link there is not followed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// `st_mode`: the kind and the permissions.
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) size: u64,
    pub(super) modified_unix: i64,
    /// The number of hard links.
    pub(super) links: u64,
    /// `st_dev` of the file system that holds it.
    pub(super) device: u64,
    pub(super) inode: u64,
    /// The names of owner and group where they came with the ids. Otherwise this machine's tables have them.
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

/// Says whether root owns it and nobody else may write to it.
pub(super) fn is_roots(uid: u32, mode: u32) -> bool {
    uid == 0 && !others_write(mode)
}

/// An account without rights of its own. Programs use it to look at what everybody may see.
pub(super) const NOBODY: &str = "nobody";

/// The accounts that may be able to change the directories on the way to a path. Such an account can put a link there,
/// and the link is then followed with rights that aren't its own.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Trusted {
    /// Anyone, because the path is reached with the caller's own rights, and a link can't use others.
    Anyone,
    /// Root alone.
    Root,
    /// Root and this account.
    User(String),
    /// Root and this account, for what is done at once with that account's rights. In a directory that everybody may
    /// add to, such as /tmp, nobody else can replace what belongs to the account.
    Owner(String),
}

impl Trusted {
    /// Returns a problem where others can change what is in a directory above the path.
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
    /// Says whether others can add to the directory but can't replace anything in it. What lies in it then decides.
    pub(super) fn may_share(&self, directory: &Entry) -> bool {
        matches!(self, Self::Owner(_)) && directory.uid == 0 && directory.mode & 0o1000 != 0
    }

    /// Says whether the entry belongs to the account whose rights are taken, or the account has no rights that a link
    /// could use.
    pub(super) fn owns(&self, entry: &Entry) -> bool {
        matches!(self, Self::Owner(name) if entry.owner() == *name || name == NOBODY)
    }
}

/// The problem of a path that isn't a regular file. Reading it could block.
pub(super) fn not_a_regular_file(path: &str, kind: FileType) -> Problem {
    let kind = match kind {
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Symlink => "a symlink",
        FileType::Socket => "a socket",
        _ => "a device",
    };
    let message = format!("{path} is {kind}, not a regular file");
    Problem::new("NOT_A_REGULAR_FILE", Category::Validation, message)
}

/// Returns the name that a table of the system gives to an id, or the id where it has none. Only local accounts have
/// names here.
pub(super) fn name_of(table: &str, id: u32) -> String {
    let text = passwd::text_or_empty(Path::new(table)).unwrap_or_default();
    passwd::name_of(&text, id).map_or_else(|| id.to_string(), str::to_owned)
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
            // The sticky bit keeps others from replacing what is there, but not from adding a link.
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
