//! What is mounted, by `/proc/self/mountinfo`, see proc_pid_mountinfo(5).
//!
//! The kernel writes the file without asking any file system, so that one which hangs doesn't block the reading.

use linux_sysadmin_sdk::prelude::*;

pub(crate) const MOUNTINFO: &str = "/proc/self/mountinfo";

/// File systems of the kernel's own, which hold no data.
const PSEUDO: [&str; 30] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fuse.gvfsd-fuse",
    "fuse.lxcfs",
    "fuse.portal",
    "fuse.snapfuse",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nfsd",
    "nsfs",
    "proc",
    "pstore",
    "ramfs",
    "resctrl",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "smackfs",
    "sysfs",
    "tracefs",
    "virtualfs",
];

/// Images that are full by their nature.
const IMAGES: [&str; 5] = ["cramfs", "erofs", "iso9660", "romfs", "squashfs"];

/// A mounted file system.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mount {
    id: u32,
    parent: u32,
    /// The device's numbers, `major:minor`, which all mounts of one file system share.
    pub(crate) device: String,
    /// The directory of the file system that is mounted. It is `/` unless the mount is a bind mount or a subvolume.
    pub(crate) root: String,
    /// The mount point.
    pub(crate) point: String,
    pub(crate) is_read_only: bool,
    /// The type, such as `ext4` and `fuse.sshfs`.
    pub(crate) kind: String,
    /// The device's path, or what the file system has in its place.
    pub(crate) source: String,
}

impl Mount {
    /// Whether it holds data of the machine or of its users.
    pub(crate) fn is_real(&self) -> bool {
        let kind = self.kind.as_str();
        let is_of_a_container = kind.ends_with("overlay") || kind.ends_with("overlayfs");
        !PSEUDO.contains(&kind) && !IMAGES.contains(&kind) && (!is_of_a_container || self.point == "/")
    }

    /// Whether it lies in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.kind == "tmpfs"
    }

    /// Whether another machine or a process answers for it, which may never do so.
    pub(crate) fn may_hang(&self) -> bool {
        const REMOTE: [&str; 14] = [
            "9p", "afs", "beegfs", "ceph", "cifs", "fuse", "fuseblk", "gfs2", "lustre", "nfs", "nfs4",
            "ocfs2", "smb3", "virtiofs",
        ];
        REMOTE.contains(&self.kind.as_str()) || self.kind.starts_with("fuse.")
    }

    /// Whether a path is the mount point or lies below it.
    pub(crate) fn has(&self, path: &str) -> bool {
        is_within(path, &self.point)
    }
}

/// Whether a path is a directory or lies below it.
pub(crate) fn is_within(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// All mounts, in the kernel's order.
pub(crate) struct MountTable(Vec<Mount>);

impl MountTable {
    pub(crate) fn read(cx: &Context) -> Result<Self> {
        let text = cx.read(MOUNTINFO)?;
        let table = Self::parse(&text);
        if table.0.is_empty() { Err(Problem::unexpected(MOUNTINFO, &text)) } else { Ok(table) }
    }

    pub(crate) fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(mount).collect())
    }

    pub(crate) fn all(&self) -> &[Mount] {
        &self.0
    }

    /// The mounts that a path can reach: none of them lies below a later mount.
    pub(crate) fn visible(&self) -> impl Iterator<Item = &Mount> {
        self.0.iter().filter(|mount| {
            !self.0.iter().any(|other| other.has_hidden(mount) && !self.is_above(other.id, mount))
        })
    }

    /// One mount of each file system that holds data: the one that shows most of it.
    pub(crate) fn file_systems(&self) -> Vec<&Mount> {
        let mut found: Vec<&Mount> = Vec::new();
        for mount in self.visible().filter(|mount| mount.is_real()) {
            match found.iter_mut().find(|known| known.device == mount.device) {
                Some(known) if rank(mount) < rank(known) => *known = mount,
                Some(_) => {}
                None => found.push(mount),
            }
        }
        found
    }

    /// The mount that a path without symlinks lies on.
    pub(crate) fn of(&self, path: &str) -> Option<&Mount> {
        self.visible().filter(|mount| mount.has(path)).max_by_key(|mount| mount.point.len())
    }

    /// The mount points directly on a file system. Each hides what lies in its directory.
    pub(crate) fn on(&self, device: &str) -> Vec<&str> {
        let is_on = |mount: &&Mount| {
            let parent = self.0.iter().find(|parent| parent.id == mount.parent && parent.id != mount.id);
            parent.is_some_and(|parent| parent.device == device)
        };
        let mut points: Vec<&str> = self.0.iter().filter(is_on).map(|mount| mount.point.as_str()).collect();
        points.sort_unstable();
        points.dedup();
        points
    }

    /// Whether a mount is among those that another one is mounted on.
    fn is_above(&self, id: u32, mount: &Mount) -> bool {
        let mut parent = mount.parent;
        // The table can't be deeper than it is long, even if it had a loop.
        for _ in 0..self.0.len() {
            if parent == id {
                return true;
            }
            let Some(next) = self.0.iter().find(|other| other.id == parent) else { return false };
            parent = next.parent;
        }
        false
    }
}

impl Mount {
    /// Whether this mount lies on another one's mount point or above it.
    fn has_hidden(&self, other: &Mount) -> bool {
        self.id != other.id && self.has(&other.point)
    }
}

/// The whole file system comes before a part of it, and a short mount point before a long one.
fn rank(mount: &Mount) -> (usize, usize) {
    (mount.root.len(), mount.point.len())
}

fn mount(line: &str) -> Option<Mount> {
    let (first, second) = line.split_once(" - ")?;
    let mut words = first.split(' ');
    let id = words.next()?.parse().ok()?;
    let parent = words.next()?.parse().ok()?;
    let (device, root, point, options) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let mut words = second.split(' ');
    let (kind, source) = (words.next()?, words.next()?);
    let of_file_system = words.next().unwrap_or_default();
    let is_read_only = options.split(',').chain(of_file_system.split(',')).any(|option| option == "ro");
    Some(Mount {
        id,
        parent,
        device: device.to_owned(),
        root: unescaped(root),
        point: unescaped(point),
        is_read_only,
        kind: kind.to_owned(),
        source: unescaped(source),
    })
}

/// The kernel writes blanks, tabs, line breaks and backslashes in octal.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let octal = behind.get(..3).filter(|_| *first == b'\\');
        let code = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        (rest, _) = match code {
            Some(code) => (&behind[3..], bytes.push(code)),
            None => (behind, bytes.push(*first)),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TABLE: &str = r"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
23 22 0:21 / /proc rw - proc proc rw
24 22 8:1 /srv/web /var/www rw - ext4 /dev/sda1 rw
25 22 0:40 /@home /home rw - btrfs /dev/sdb rw,subvol=/@home
26 22 0:40 / /mnt/top ro - btrfs /dev/sdb rw
27 22 8:17 / /mnt/a\040b\134c ro,nosuid - ext4 /dev/sdc1 ro
28 22 0:50 / /mnt/nfs rw - nfs4 nas:/export rw
29 22 0:51 / /data/old rw - tmpfs tmpfs rw
30 22 8:33 / /data rw - xfs /dev/sdd1 rw
31 30 8:34 / /data rw - xfs /dev/sde1 rw
32 31 0:52 / /data/in rw - tmpfs tmpfs rw
33 22 0:60 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw
34 22 7:1 / /snap/core/1 ro - squashfs /dev/loop1 ro
garbage
35 22 8:99 / /cut rw
";

    #[test]
    fn each_file_system_is_told_once_by_the_mount_that_shows_most_of_it() {
        let table = MountTable::parse(TABLE);
        let found: Vec<_> = table.file_systems().iter().map(|mount| mount.point.clone()).collect();
        assert_eq!(found, ["/", "/mnt/top", "/mnt/a b\\c", "/mnt/nfs", "/data", "/data/in"]);
        let data = table.of("/data").unwrap();
        assert_eq!(
            (data.source.as_str(), table.of("/data/in/x").unwrap().kind.as_str()),
            ("/dev/sde1", "tmpfs")
        );
        // What lies below a later mount isn't reached.
        assert_eq!(table.of("/data/old/x").unwrap().source, "/dev/sde1");
        assert_eq!(table.of("/database").unwrap().point, "/");
    }

    #[test]
    fn a_mount_says_whether_it_is_read_only_and_whether_it_may_hang() {
        let table = MountTable::parse(TABLE);
        let said = |path: &str| {
            let mount = table.of(path).unwrap();
            (mount.is_read_only, mount.may_hang())
        };
        assert_eq!(said("/"), (false, false));
        assert_eq!(said("/mnt/a b\\c"), (true, false));
        assert_eq!(said("/mnt/nfs"), (false, true));
    }

    #[test]
    fn the_mount_points_on_a_file_system_are_those_that_can_hide_its_data() {
        let table = MountTable::parse(TABLE);
        assert_eq!(table.on("8:33"), ["/data"]);
        assert!(table.on("8:1").contains(&"/mnt/top") && !table.on("8:1").contains(&"/data/in"));
        assert!(table.on("9:9").is_empty());
    }

    #[test]
    fn a_table_with_a_loop_or_nothing_in_it_ends() {
        let odd = MountTable::parse("1 2 8:1 / /a rw - ext4 /dev/a rw\n2 1 8:2 / /a/b rw - ext4 /dev/b rw\n");
        assert!(odd.visible().count() <= 2);
        assert!(MountTable::parse("").file_systems().is_empty());
        for (text, expected) in
            [(r"a\040b", "a b"), (r"\", r"\"), (r"\04", r"\04"), (r"\999", r"\999"), (r"\134n", r"\n")]
        {
            assert_eq!(unescaped(text), expected);
        }
    }
}
