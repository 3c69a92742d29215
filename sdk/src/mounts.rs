//! What is mounted, by `/proc/self/mountinfo`, see proc_pid_mountinfo(5).
//!
//! The kernel writes the file without asking any file system, so that one which hangs doesn't block the reading.

use std::collections::HashMap;

use crate::text::unescaped;
use crate::{Context, PathGrant, Problem, Result};

/// The file that says what is mounted.
pub const MOUNTINFO: &str = "/proc/self/mountinfo";

/// The grants to read the file. The link `/proc/self` leads to the directory of a process.
pub fn grants() -> [PathGrant; 2] {
    [MOUNTINFO, "/proc/*/mountinfo"].map(|path| PathGrant::read(path, "what is mounted"))
}

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    id: u32,
    parent: u32,
    /// The device's numbers, `major:minor`, which all mounts of one file system share.
    pub device: String,
    /// The directory of the file system that is mounted. It is `/` unless the mount is a bind mount or a subvolume.
    pub root: String,
    /// The mount point.
    pub point: String,
    /// The options of the mount and of the file system, each once.
    pub options: String,
    /// The type, such as `ext4` and `fuse.sshfs`.
    pub kind: String,
    /// The device's path, or what the file system has in its place.
    pub source: String,
}

impl Mount {
    /// A line of the file.
    fn parse(line: &str) -> Option<Self> {
        let (first, second) = line.split_once(" - ")?;
        let mut words = first.split(' ');
        let (id, parent) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let (device, root, point, own) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let mut words = second.split(' ');
        let (kind, source) = (words.next()?, words.next()?);
        Some(Self {
            id,
            parent,
            device: device.to_owned(),
            root: unescaped(root),
            point: unescaped(point),
            options: unescaped(&options(own, words.next().unwrap_or_default())),
            kind: kind.to_owned(),
            source: unescaped(source),
        })
    }

    /// Whether nothing can be written to it.
    pub fn is_read_only(&self) -> bool {
        self.options.split(',').any(|option| option == "ro")
    }

    /// Whether it is one of the kernel's own, which holds no data.
    fn is_pseudo(&self) -> bool {
        PSEUDO.contains(&self.kind.as_str())
    }

    /// Whether it is a directory of a container that lies over directories of this machine.
    fn is_of_a_container(&self) -> bool {
        self.point != "/" && (self.kind.ends_with("overlay") || self.kind.ends_with("overlayfs"))
    }

    /// Whether it holds data of the machine or of its users.
    pub fn is_real(&self) -> bool {
        !self.is_pseudo() && !IMAGES.contains(&self.kind.as_str()) && !self.is_of_a_container()
    }

    /// Whether it is of a disk or of the network, so that fstab could have it.
    pub fn is_lasting(&self) -> bool {
        self.point == "/" || !(self.is_pseudo() || self.is_in_memory() || self.is_of_a_container())
    }

    /// Whether it lies in memory.
    pub fn is_in_memory(&self) -> bool {
        self.kind == "tmpfs"
    }

    /// Whether it stands for a file system that systemd mounts once it is used.
    pub fn is_automount(&self) -> bool {
        self.kind == "autofs"
    }

    /// Whether another machine or a process answers for it, which may never do so.
    pub fn may_hang(&self) -> bool {
        const REMOTE: [&str; 14] = [
            "9p", "afs", "beegfs", "ceph", "cifs", "fuse", "fuseblk", "gfs2", "lustre", "nfs", "nfs4",
            "ocfs2", "smb3", "virtiofs",
        ];
        REMOTE.contains(&self.kind.as_str()) || self.kind.starts_with("fuse.")
    }

    /// Whether a path is the mount point or lies below it.
    pub fn has(&self, path: &str) -> bool {
        is_within(path, &self.point)
    }
}

/// The options of a mount and of its file system, each once. Where either is read-only, the mount is.
fn options(of_mount: &str, of_file_system: &str) -> String {
    let mut found: Vec<&str> = Vec::new();
    for option in of_mount.split(',').chain(of_file_system.split(',')) {
        if !option.is_empty() && !found.contains(&option) {
            found.push(option);
        }
    }
    if found.contains(&"ro") {
        found.retain(|option| *option != "rw");
    }
    found.join(",")
}

/// Whether a path is a directory or lies below it.
pub fn is_within(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// All mounts, in the kernel's order: the lower ones come first.
#[derive(Default)]
pub struct MountTable {
    mounts: Vec<Mount>,
    /// The position of each mount by its number.
    by_id: HashMap<u32, usize>,
    /// The position of each mount by the number of the mount on which it lies, and by its mount point.
    by_place: HashMap<(u32, String), usize>,
}

impl MountTable {
    /// Reads the table of the target.
    pub fn read(cx: &Context) -> Result<Self> {
        Self::checked(&cx.read(MOUNTINFO)?)
    }

    /// The table of a text that was read. Something is always mounted at the root.
    pub fn checked(text: &str) -> Result<Self> {
        let table = Self::parse(text);
        if table.mounts.is_empty() { Err(Problem::unexpected(MOUNTINFO, text)) } else { Ok(table) }
    }

    /// The table of a text. Lines of another form are skipped.
    pub fn parse(text: &str) -> Self {
        let mounts: Vec<Mount> = text.lines().filter_map(Mount::parse).collect();
        let by_id = mounts.iter().enumerate().map(|(at, mount)| (mount.id, at)).collect();
        let place = |(at, mount): (usize, &Mount)| ((mount.parent, mount.point.clone()), at);
        let by_place = mounts.iter().enumerate().map(place).collect();
        Self { mounts, by_id, by_place }
    }

    /// All mounts, the lower ones first.
    pub fn all(&self) -> &[Mount] {
        &self.mounts
    }

    /// The mounts that a path can reach.
    pub fn visible(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter().filter(|mount| self.hiding(mount).is_none())
    }

    /// One mount of each file system that holds data: the one that shows most of it.
    pub fn file_systems(&self) -> Vec<&Mount> {
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
    pub fn of(&self, path: &str) -> Option<&Mount> {
        let inside = self.visible().filter(|mount| mount.has(path) && !mount.is_automount());
        inside.max_by_key(|mount| mount.point.len())
    }

    /// The mount that is seen at a mount point.
    pub fn at(&self, point: &str) -> Option<&Mount> {
        self.mounts.iter().rfind(|mount| mount.point == point && !mount.is_automount())
    }

    /// Whether systemd mounts something there once it is used.
    pub fn has_automount(&self, point: &str) -> bool {
        self.mounts.iter().any(|mount| mount.point == point && mount.is_automount())
    }

    /// The mounts below a mount point.
    pub fn below<'a>(&'a self, point: &'a str) -> impl Iterator<Item = &'a Mount> {
        self.mounts.iter().filter(move |mount| mount.point != point && is_within(&mount.point, point))
    }

    /// The mount points directly on a file system. Each hides what lies in its directory.
    pub fn on(&self, device: &str) -> Vec<&str> {
        let is_on = |mount: &&Mount| {
            let parent = self.parent(mount);
            parent.is_some_and(|parent| parent.device == device)
        };
        let mut points: Vec<&str> =
            self.mounts.iter().filter(is_on).map(|mount| mount.point.as_str()).collect();
        points.sort_unstable();
        points.dedup();
        points
    }

    /// The mount that hides another one: it lies over it, or over a directory above it.
    pub fn hiding(&self, hidden: &Mount) -> Option<&Mount> {
        let over = self.place(hidden.id, &hidden.point).filter(|over| over.id != hidden.id);
        if over.is_some() {
            return over;
        }
        let mut lower = hidden;
        // The table can't be deeper than it is long, even if it had a loop.
        for _ in 0..self.mounts.len() {
            let ends = lower.point.match_indices('/').map(|(end, _)| end.max(1)).chain([lower.point.len()]);
            let beside = ends.filter_map(|end| self.place(lower.parent, &lower.point[..end]));
            if let Some(over) = beside.into_iter().find(|beside| beside.id != lower.id) {
                return Some(over);
            }
            lower = self.parent(lower)?;
        }
        None
    }

    /// The mount on another one at a mount point.
    fn place(&self, parent: u32, point: &str) -> Option<&Mount> {
        self.mounts.get(*self.by_place.get(&(parent, point.to_owned()))?)
    }

    /// The mount on which another one lies.
    fn parent(&self, mount: &Mount) -> Option<&Mount> {
        let parent = self.mounts.get(*self.by_id.get(&mount.parent)?)?;
        (parent.id != mount.id).then_some(parent)
    }
}

/// The whole file system comes before a part of it, and a short mount point before a long one.
fn rank(mount: &Mount) -> (usize, usize) {
    (mount.root.len(), mount.point.len())
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
            (mount.is_read_only(), mount.may_hang())
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
    }

    #[test]
    fn a_mount_has_its_options_once_and_is_read_only_where_either_is() {
        let table = MountTable::parse(
            "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw,discard\n23 22 0:39 /@ /x ro,relatime - btrfs /dev/sdb rw,subvol=/@\n\
             24 22 0:50 / /net rw - autofs systemd-1 rw\n25 22 8:2 / /y rw - ext4 /dev/sdc\n",
        );
        let options = |point: &str| table.at(point).map(|mount| mount.options.as_str());
        assert_eq!(
            ["/", "/x", "/y", "/net"].map(options),
            [Some("rw,relatime,discard"), Some("ro,relatime,subvol=/@"), Some("rw"), None]
        );
        assert!(table.has_automount("/net") && table.of("/net/a").unwrap().point == "/");
    }

    #[test]
    fn a_mount_is_hidden_by_one_over_it_or_over_a_directory_above_it() {
        // Two mounts at /mnt/x, one at /srv that came after the one at /srv/a, and another one at /srv/a on that.
        let table = MountTable::parse(
            "27 1 254:0 / / rw - ext4 /dev/vda rw\n63 27 7:2 / /mnt/a rw - ext4 /dev/loop2 rw\n\
             64 27 7:3 / /mnt/x rw - xfs /dev/loop3 rw\n65 64 0:39 / /mnt/x ro - btrfs /dev/loop4 rw\n\
             66 27 7:5 / /srv/a rw - ext4 /dev/loop5 rw\n67 27 7:6 / /srv rw - ext4 /dev/loop6 rw\n\
             68 67 7:7 / /srv/a rw - ext4 /dev/loop7 rw\n69 66 7:8 / /srv/a/b rw - ext4 /dev/loop8 rw\n",
        );
        let hiding = |mount: &Mount| table.hiding(mount).map(|over| over.source.as_str());
        let said: Vec<_> =
            table.all().iter().filter_map(|mount| Some((mount.source.as_str(), hiding(mount)?))).collect();
        let expected =
            [("/dev/loop3", "/dev/loop4"), ("/dev/loop5", "/dev/loop6"), ("/dev/loop8", "/dev/loop6")];
        assert_eq!(said, expected);
        assert_eq!(table.at("/srv/a").unwrap().source, "/dev/loop7");
        assert_eq!(table.below("/srv").filter(|mount| mount.point == "/srv/a").count(), 2);
    }

    #[test]
    fn what_fstab_could_have_is_of_a_disk_or_of_the_network() {
        let table = MountTable::parse(TABLE);
        let lasting: Vec<_> =
            table.all().iter().filter(|mount| mount.is_lasting()).map(|mount| mount.point.as_str()).collect();
        let expected = [
            "/",
            "/var/www",
            "/home",
            "/mnt/top",
            "/mnt/a b\\c",
            "/mnt/nfs",
            "/data",
            "/data",
            "/snap/core/1",
        ];
        assert_eq!(lasting, expected);
    }
}
