//! The mounts of a target. They say which other names a path has: the same file system mounted in several places, or a part
//! of it (a bind mount). The rules judge a path by its name, and one of the names may be that of a file of the system. They
//! also say what can be renamed: nothing from one mount to another.

use std::sync::Arc;

use host_base::Privilege;
use host_base::problem::{Category, Problem};
use host_capability::Access;
use host_target::{PathCheck, ReadRequest, Target};

/// The number of bytes of the largest table that is read. A machine with containers has some thousands of mounts.
const LARGEST: u64 = 16 << 20;
/// The kernel's table of what is mounted, see proc(5).
const TABLE: &str = "/proc/self/mountinfo";

/// A mount.
#[derive(Clone, Debug, PartialEq)]
struct Mount {
    /// The device, which is one for each file system.
    device: String,
    /// The directory of the file system that is mounted.
    root: String,
    /// The place where it is mounted.
    point: String,
    /// True where the file system may refuse to rename a directory, as an overlay does with a directory of a lower layer.
    keeps_directories: bool,
}

/// All mounts of a target, the lower ones first.
#[derive(Clone, Debug)]
pub struct Mounts(Vec<Mount>);

impl Mounts {
    /// Reads the kernel's table. The result is a problem where the target doesn't show what is mounted. Each call reads it
    /// anew: by poll(2) the kernel tells of mounts that come and go, and not of a directory above one that is renamed.
    pub async fn read(target: &Target) -> Result<Self, Problem> {
        let access = Access { privilege: Privilege::Caller, verbs: Vec::new() };
        let all: Arc<PathCheck> = Arc::new(|_, _| Ok(()));
        let request = ReadRequest { path: TABLE.to_owned(), offset: 0, max_bytes: LARGEST };
        target
            .read_all(vec![request], &access, all)
            .await
            .pop()
            .map_or_else(|| Err(unknown()), Self::of_table)
    }

    fn of_table(table: Result<Vec<u8>, Problem>) -> Result<Self, Problem> {
        // Where the connection is gone, nothing is known about the mounts.
        let table = table
            .map_err(|problem| if problem.category == Category::Network { problem } else { unknown() })?;
        let is_whole = table.ends_with(b"\n") && (table.len() as u64) < LARGEST;
        let mounts = is_whole.then(|| parse(&String::from_utf8_lossy(&table))).flatten();
        // Something is always mounted at the root.
        let is_shown = |mounts: &Vec<Mount>| mounts.iter().any(|mount| mount.point == "/");
        mounts.filter(is_shown).map(Self).ok_or_else(unknown)
    }

    /// The other names of a path whose links are resolved.
    pub fn other_names(&self, path: &str) -> Vec<String> {
        other_names(&self.0, path)
    }

    /// Whether something is mounted at the path itself.
    pub fn is_mount_point(&self, path: &str) -> bool {
        self.0.iter().any(|mount| mount.point == path)
    }

    /// The place at a path or below it where something is mounted.
    pub fn mounted_below(&self, path: &str) -> Option<&str> {
        self.0.iter().map(|mount| mount.point.as_str()).find(|point| within(path, point).is_some())
    }

    /// Whether two paths are in the same mount.
    pub fn are_together(&self, one: &str, other: &str) -> bool {
        let mount = |path: &str| covering(&self.0, path).map(|(mount, _)| std::ptr::from_ref(mount));
        mount(one).is_some() && mount(one) == mount(other)
    }

    /// Whether the file system of a path renames every directory.
    pub fn renames_directories(&self, path: &str) -> bool {
        covering(&self.0, path).is_some_and(|(mount, _)| !mount.keeps_directories)
    }
}

/// The problem where nobody knows by which other names a file may be reached.
fn unknown() -> Problem {
    let message = "the target doesn't show its mounts, by which one path may be another name of a file that is out of reach";
    Problem::new("MOUNTS_UNKNOWN", Category::State, message)
        .remedy("Have /proc mounted on the target, and let the account read /proc/self/mountinfo")
}

/// The mounts in the kernel's table, the lower ones first. None where a line isn't understood.
fn parse(table: &str) -> Option<Vec<Mount>> {
    let of_line = |line: &str| {
        let mut fields = line.split(' ').skip(2);
        let device = fields.next()?.to_owned();
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        let mut of_system = line.split_once(" - ")?.1.split(' ');
        let (kind, mut options) = (of_system.next()?, of_system.nth(1)?.split(','));
        let keeps_directories = kind == "overlay" && !options.any(|option| option == "redirect_dir=on");
        point.starts_with('/').then_some(Mount { device, root, point, keeps_directories })
    };
    table.lines().map(of_line).collect()
}

/// The text with the characters that `\040` stands for.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(code) => {
                plain.push(char::from(code));
                plain.push_str(&part[3..]);
            }
            None => plain.push_str(part),
        }
    }
    plain
}

fn other_names(mounts: &[Mount], path: &str) -> Vec<String> {
    let Some((own, below)) = covering(mounts, path) else { return Vec::new() };
    let place = joined(&own.root, below);
    let mut found: Vec<String> = Vec::new();
    for mount in mounts.iter().filter(|mount| mount.device == own.device) {
        let Some(below) = within(&mount.root, &place) else { continue };
        let name = joined(&mount.point, below);
        // Another mount may lie over it.
        let is_seen = covering(mounts, &name).is_some_and(|(over, _)| over == mount);
        if is_seen && name != path && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The mount in which a path lies, the last one of the innermost ones, and the path within it.
fn covering<'m, 'p>(mounts: &'m [Mount], path: &'p str) -> Option<(&'m Mount, &'p str)> {
    let inside = mounts.iter().filter_map(|mount| Some((mount, within(&mount.point, path)?)));
    inside.max_by_key(|(mount, _)| mount.point.len())
}

/// The part of a path behind a directory, with its slash. None where the path isn't in it.
fn within<'p>(directory: &str, path: &'p str) -> Option<&'p str> {
    let below = path.strip_prefix(directory.trim_end_matches('/'))?;
    (below.is_empty() || below.starts_with('/')).then_some(if below == "/" { "" } else { below })
}

fn joined(directory: &str, below: &str) -> String {
    let whole = format!("{}{below}", directory.trim_end_matches('/'));
    if whole.is_empty() { "/".to_owned() } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_not_known_whole_is_a_problem() {
        let root = "22 1 254:0 / / rw,relatime - ext4 /dev/vda1 rw\n";
        let code = |table: &str| {
            Mounts::of_table(Ok(table.as_bytes().to_vec())).map_err(|problem| problem.code).err()
        };
        assert_eq!(code(root), None);
        let unknown = Some("MOUNTS_UNKNOWN".to_owned());
        for table in
            ["", root.trim_end(), "22 1 254:0 / /srv rw - ext4 /dev/vda1 rw\n", &format!("{root}garbled\n")]
        {
            assert_eq!(code(table), unknown, "{table:?}");
        }
        for (category, code) in [(Category::NotFound, "MOUNTS_UNKNOWN"), (Category::Network, "X")] {
            let problem = Mounts::of_table(Err(Problem::new("X", category, "x"))).unwrap_err();
            assert_eq!(problem.code, code);
        }
    }

    /// The table is from Linux 6.18: a disk, two bind mounts of parts of it, a file system over a part, and one in two places.
    const MOUNTS: &str = "\
        22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
        23 22 0:20 / /proc rw - proc proc rw\n\
        24 22 254:0 /home /mnt/data/home rw - ext4 /dev/vda rw\n\
        25 22 254:0 /usr /srv/chroot/usr rw - ext4 /dev/vda rw\n\
        26 22 254:0 /home/alice/.ssh /mnt/b\\0402 rw - ext4 /dev/vda rw\n\
        27 22 0:30 / /srv/chroot/usr/local rw - tmpfs tmpfs rw\n\
        28 22 254:16 / /data rw - xfs /dev/vdb rw\n\
        29 22 254:16 / /backup rw - xfs /dev/vdb rw\n";

    #[test]
    fn a_path_has_the_names_of_all_its_mounts() {
        let mounts = parse(MOUNTS).unwrap();
        for (path, others) in [
            ("/mnt/data/home", &["/home"][..]),
            ("/mnt/data/home/bob/x", &["/home/bob/x"]),
            ("/home/bob", &["/mnt/data/home/bob"]),
            ("/srv/chroot/usr", &["/usr"]),
            ("/srv/chroot/usr/bin/true", &["/usr/bin/true"]),
            ("/usr/bin", &["/srv/chroot/usr/bin"]),
            // Another file system lies over it there.
            ("/usr/local/x", &[]),
            ("/srv/chroot/usr/local/x", &[]),
            (
                "/mnt/b 2/authorized_keys",
                &["/home/alice/.ssh/authorized_keys", "/mnt/data/home/alice/.ssh/authorized_keys"],
            ),
            ("/data/x", &["/backup/x"]),
            ("/data", &["/backup"]),
            ("/etc/passwd", &[]),
            ("/homes", &[]),
            ("/", &[]),
        ] {
            assert_eq!(other_names(&mounts, path), others, "{path}");
        }
    }

    #[test]
    fn what_can_be_renamed_is_in_one_mount_that_renames_it() {
        let table = format!(
            "{MOUNTS}30 22 0:40 / /merged rw - overlay overlay rw,lowerdir=/a\n\
             31 22 0:41 / /redirects rw - overlay overlay rw,lowerdir=/a,redirect_dir=on\n"
        );
        let mounts = Mounts(parse(&table).unwrap());
        for (one, other, together) in [
            ("/home/a", "/etc/b", true),
            ("/data/a", "/data/b/c", true),
            // The same file system in two places.
            ("/data/a", "/backup/a", false),
            ("/home/a", "/mnt/data/home/a", false),
            ("/srv/chroot/usr/local/a", "/srv/chroot/usr/a", false),
        ] {
            assert_eq!(mounts.are_together(one, other), together, "{one} {other}");
        }
        for (path, is_mounted_below) in [
            ("/data", true),
            ("/mnt", true),
            ("/", true),
            ("/data/x", false),
            ("/dat", false),
            ("/mnt/data/home/x", false),
        ] {
            assert_eq!(mounts.mounted_below(path).is_some(), is_mounted_below, "{path}");
        }
        for (path, is_mount_point) in [("/data", true), ("/mnt", false), ("/data/x", false), ("/", true)] {
            assert_eq!(mounts.is_mount_point(path), is_mount_point, "{path}");
        }
        for (path, renames) in [("/srv/x", true), ("/merged/x", false), ("/redirects/x", true)] {
            assert_eq!(mounts.renames_directories(path), renames, "{path}");
        }
    }

    #[test]
    fn a_table_that_is_not_understood_is_none() {
        assert_eq!(parse("22 1 254:0 /\n"), None);
        assert_eq!(parse("22 1 254:0 / / rw\n"), None);
        assert_eq!(parse("x\n"), None);
        assert_eq!(parse(""), Some(Vec::new()));
    }
}
