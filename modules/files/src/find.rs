//! The entries of directory trees, as `find` prints them: names and metadata, never contents. A tree is walked only where a
//! path grant covers what is in it.

use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

use crate::original;
use crate::places::{UNTRUSTED, look, shown};

/// The format of an entry: type, size, mode, time, owner, group, path below the directory, and target of a symlink.
const FORMAT: &str = "%y/%s/%m/%T@/%u/%g/%P\\0%l\\0";
/// The most entries that are looked at.
pub(crate) const MOST: usize = 50_000;
/// The number of bytes that are read at once.
const PIECE: u32 = 1 << 16;
/// The greatest depth.
pub(crate) const DEEPEST: u32 = 32;

pub(crate) fn grants() -> [CommandGrant; 2] {
    let grant = CommandGrant::read(
        &format!("find <path> -mindepth 1 -maxdepth <int> -printf '{FORMAT}'"),
        "names and sizes of what is in a directory",
    );
    [grant.clone().as_root_if_available(), grant.as_user("*")]
}

/// An entry of a directory tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    /// The path below the directory.
    pub(crate) path: String,
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) modified: i64,
    pub(crate) owner: String,
    pub(crate) group: String,
    /// The target of a symlink as it is written.
    pub(crate) target: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink,
    Socket,
    Fifo,
    BlockDevice,
    CharacterDevice,
    Unknown,
}

impl Kind {
    fn of(letter: &str) -> Self {
        match letter {
            "f" => Self::File,
            "d" => Self::Directory,
            "l" => Self::Symlink,
            "s" => Self::Socket,
            "p" => Self::Fifo,
            "b" => Self::BlockDevice,
            "c" => Self::CharacterDevice,
            _ => Self::Unknown,
        }
    }

    pub(crate) fn of_mode(mode: u32) -> Self {
        match mode & 0o170_000 {
            0o100_000 => Self::File,
            0o040_000 => Self::Directory,
            0o120_000 => Self::Symlink,
            0o140_000 => Self::Socket,
            0o010_000 => Self::Fifo,
            0o060_000 => Self::BlockDevice,
            0o020_000 => Self::CharacterDevice,
            _ => Self::Unknown,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Socket => "socket",
            Self::Fifo => "FIFO",
            Self::BlockDevice => "block device",
            Self::CharacterDevice => "character device",
            Self::Unknown => "unknown",
        }
    }
}

/// The entries below a directory.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) items: Vec<Item>,
    /// Whether there are more than were looked at.
    pub(crate) is_cut: bool,
}

/// The kind of what is at the top of a tree.
pub(crate) enum Top {
    Nothing,
    Symlink,
    File(Metadata),
    /// A directory whose content a path grant covers.
    Directory,
}

/// Looks what is at a path, and whether a tree there may be walked.
pub(crate) fn top(path: &str, cx: &Context) -> Result<Top> {
    // Nothing has this name. The host says whether a grant would cover it.
    let inner = format!("{}/.any", path.trim_end_matches('/'));
    let (own, inner) = look(path, cx, |privilege| {
        let mut found = cx.files_as(privilege).stat_all(&[path, &inner]).into_iter();
        let own = found.next().unwrap_or(Ok(None));
        match own {
            Err(problem) if is_untrusted(&problem) => Err(problem),
            own => Ok((own, found.next().unwrap_or(Ok(None)))),
        }
    })?;
    match own {
        Ok(None) => return Ok(Top::Nothing),
        Ok(Some(found)) if found.is_symlink => return Ok(Top::Symlink),
        Ok(Some(found)) if !found.is_dir => return Ok(Top::File(found)),
        // A grant covers what is in /etc, and not /etc itself.
        Err(problem) if problem.code != "CAPABILITY_DENIED" => return Err(problem),
        _ => {}
    }
    match inner {
        Err(problem) if !is_untrusted(&problem) => Err(problem),
        _ => Ok(Top::Directory),
    }
}

/// The top of a tree that must be a directory.
pub(crate) fn must_be_directory(path: &str, cx: &Context) -> Result<()> {
    match top(path, cx)? {
        Top::Directory => Ok(()),
        Top::Nothing => Err(original::no_such(path)),
        Top::Symlink => Err(original::is_symlink(path, cx)),
        Top::File(_) => {
            let message = format!("{} is no directory: expected one", shown(path));
            Err(Problem::validation("NOT_A_DIRECTORY", message)
                .remedy(format!("Look at it: file_stat path={}", shown(path))))
        }
    }
}

/// The entries of a tree down to a depth.
pub(crate) fn to_depth(path: &str, depth: u32, cx: &Context) -> Result<Tree> {
    look(path, cx, |privilege| entries(path, depth, privilege, cx))
}

fn entries(path: &str, depth: u32, privilege: Privilege, cx: &Context) -> Result<Tree> {
    let depth = depth.to_string();
    let command = Command::new("find").args([path, "-mindepth", "1", "-maxdepth", &depth, "-printf", FORMAT]);
    let mut stream = cx.open(command.privilege(privilege))?;
    let (mut tree, mut rest) = (Tree::default(), Vec::new());
    loop {
        let piece = match stream.read(PIECE) {
            // The time that a command may take is over.
            Err(problem) if problem.category == Category::Timeout => {
                tree.is_cut = true;
                break;
            }
            piece => piece?,
        };
        if piece.is_empty() {
            break;
        }
        rest.extend_from_slice(&piece);
        let mut used = 0;
        while let Some((item, length)) = item(&rest[used..]) {
            used += length;
            tree.items.extend(item);
        }
        rest.drain(..used);
        if tree.items.len() >= MOST {
            tree.is_cut = true;
            break;
        }
    }
    Ok(tree)
}

/// Reads an entry, and how many bytes it took. None where the bytes don't hold a whole one.
fn item(bytes: &[u8]) -> Option<(Option<Item>, usize)> {
    let first = bytes.iter().position(|byte| *byte == 0)?;
    let second = first + 1 + bytes[first + 1..].iter().position(|byte| *byte == 0)?;
    let text = String::from_utf8_lossy(&bytes[..first]).into_owned();
    let target = String::from_utf8_lossy(&bytes[first + 1..second]).into_owned();
    let read = || {
        let [kind, size, mode, modified, owner, group, path] = text.splitn(7, '/').collect::<Vec<_>>()[..]
        else {
            return None;
        };
        Some(Item {
            path: path.to_owned(),
            kind: Kind::of(kind),
            size: size.parse().ok()?,
            mode: u32::from_str_radix(mode, 8).ok()?,
            modified: modified.split('.').next()?.parse().ok()?,
            owner: owner.to_owned(),
            group: group.to_owned(),
            target: (!target.is_empty()).then_some(target),
        })
    };
    Some((read(), second + 1))
}

/// Whether the host refuses to go down from here with root's rights.
pub(crate) fn is_untrusted(problem: &Problem) -> bool {
    problem.code == UNTRUSTED
}

/// Refuses a depth that no tree has.
pub(crate) fn depth(asked: Option<u32>, default: u32) -> Result<u32> {
    match asked.unwrap_or(default) {
        depth if (1..=DEEPEST).contains(&depth) => Ok(depth),
        depth => {
            let message = format!("depth is {}: expected 1 to {DEEPEST}", shown(&depth.to_string()));
            Err(Problem::validation("INVALID_DEPTH", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn the_entries_of_a_tree_are_read() {
        // find (GNU findutils) 4.9.0
        let said = b"f/12/644/1767225600.1234567890/root/adm/a b\0\0d/4096/755/1767225600.0/ada/ada/d\nx\0\0l/3/777/1.0/root/root/l\0/etc\0";
        let argv = ["find", "/etc/x", "-mindepth", "1", "-maxdepth", "2", "-printf", FORMAT];
        let tree = to_depth("/etc/x", 2, &FakeTarget::new().answer(&argv, 0, said, "").context()).unwrap();
        let found: Vec<_> =
            tree.items.iter().map(|item| (item.path.as_str(), item.kind, item.size)).collect();
        assert_eq!(
            found,
            [("a b", Kind::File, 12), ("d\nx", Kind::Directory, 4096), ("l", Kind::Symlink, 3)]
        );
        assert_eq!(tree.items[2].target.as_deref(), Some("/etc"));
        assert_eq!((tree.items[0].modified, tree.items[0].mode, tree.is_cut), (1_767_225_600, 0o644, false));
    }

    #[test]
    fn a_depth_has_bounds() {
        for (asked, expected) in [(None, Ok(1)), (Some(3), Ok(3)), (Some(0), Err(())), (Some(33), Err(()))] {
            assert_eq!(depth(asked, 1).map_err(|_| ()), expected);
        }
    }
}
