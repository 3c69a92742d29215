//! What is mounted, from `/proc/self/mountinfo`, see proc(5).

use linux_sysadmin_sdk::{prelude::*, text::unescaped};

pub(crate) const PATH: &str = "/proc/self/mountinfo";

/// File systems that hold no files of a disk or of the network.
const PSEUDO: [&str; 27] = [
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
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "overlay",
    "proc",
    "pstore",
    "ramfs",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tmpfs",
    "tracefs",
];

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    id: u32,
    parent: u32,
    /// The number of the device, as `8:1`.
    pub(crate) number: String,
    /// The directory of the file system that is mounted; `/` unless it is a bind mount or a subvolume.
    pub(crate) root: String,
    pub(crate) point: String,
    /// The options of the mount and of the file system, each once.
    pub(crate) options: String,
    pub(crate) fs_type: String,
    pub(crate) source: String,
}

impl Mount {
    pub(crate) fn is_pseudo(&self) -> bool {
        self.point != "/" && PSEUDO.contains(&self.fs_type.as_str())
    }

    fn parse(line: &str) -> Option<Self> {
        let (first, second) = line.split_once(" - ")?;
        let mut fields = first.split(' ');
        let mut of_system = second.split(' ');
        let (id, parent) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let number = fields.next()?.to_owned();
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        let own = fields.next()?;
        let (fs_type, source) = (of_system.next()?.to_owned(), unescaped(of_system.next()?));
        let mut options: Vec<&str> = Vec::new();
        for option in own.split(',').chain(of_system.next().unwrap_or_default().split(',')) {
            // A mount that is read-only may be of a file system that isn't.
            let is_opposite = option == "rw" && options.contains(&"ro");
            if !option.is_empty() && !is_opposite && !options.contains(&option) {
                options.push(option);
            }
        }
        if options.contains(&"ro") {
            options.retain(|option| *option != "rw");
        }
        Some(Self {
            id,
            parent,
            number,
            root,
            point,
            options: unescaped(&options.join(",")),
            fs_type,
            source,
        })
    }
}

/// All mounts, the lower ones first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mounts(pub(crate) Vec<Mount>);

impl Mounts {
    pub(crate) fn parse(table: &str) -> Self {
        Self(table.lines().filter_map(Mount::parse).collect())
    }

    pub(crate) fn read(cx: &Context) -> Result<Self> {
        let table = Self::parse(&cx.read(PATH)?);
        // Something is always mounted at the root.
        if table.0.is_empty() { Err(Problem::unexpected(PATH, "")) } else { Ok(table) }
    }

    /// The mount that is seen at a mount point.
    pub(crate) fn at(&self, point: &str) -> Option<&Mount> {
        self.0.iter().rfind(|mount| mount.point == point && mount.fs_type != "autofs")
    }

    /// Whether systemd mounts something there once it is used.
    pub(crate) fn has_automount(&self, point: &str) -> bool {
        self.0.iter().any(|mount| mount.point == point && mount.fs_type == "autofs")
    }

    /// The mount in which a path lies.
    pub(crate) fn of(&self, path: &str) -> Option<&Mount> {
        let inside = self.0.iter().filter(|mount| within(&mount.point, path) && mount.fs_type != "autofs");
        inside.max_by_key(|mount| mount.point.len())
    }

    /// The mounts below a mount point.
    pub(crate) fn below<'a>(&'a self, point: &'a str) -> impl Iterator<Item = &'a Mount> {
        self.0.iter().filter(move |mount| mount.point != point && within(point, &mount.point))
    }

    /// The mount that hides another one: it lies over it, or over a directory above it.
    pub(crate) fn hiding(&self, hidden: &Mount) -> Option<&Mount> {
        let mut chain = vec![hidden.id];
        let mut parent = hidden.parent;
        while let Some(mount) = self.0.iter().find(|mount| mount.id == parent && !chain.contains(&mount.id)) {
            chain.push(mount.id);
            parent = mount.parent;
        }
        self.0.iter().find(|mount| {
            !chain.contains(&mount.id) && chain.contains(&mount.parent) && within(&mount.point, &hidden.point)
        })
    }
}

/// Whether a path is a directory or lies below it.
pub(crate) fn within(directory: &str, path: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // The form of Linux 6.18; two mounts at /mnt/x, and one at /srv that came after the one at /srv/a.
    const TABLE: &str = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
        28 27 0:21 / /proc rw - proc proc rw\n\
        63 27 7:2 / /mnt/a\\040b rw,relatime shared:1 - ext4 /dev/loop2 rw\n\
        64 27 7:3 / /mnt/x rw,relatime - xfs /dev/loop3 rw,inode64\n\
        65 64 0:39 /@ /mnt/x ro,relatime - btrfs /dev/loop4 rw,subvol=/@\n\
        66 27 7:5 / /srv/a rw - ext4 /dev/loop5 rw\n67 27 7:6 / /srv rw - ext4 /dev/loop6 rw\n\
        68 27 0:50 / /net rw - autofs systemd-1 rw\ngarbage\n";

    #[test]
    fn mounts_have_their_place_and_options() {
        let mounts = Mounts::parse(TABLE);
        assert_eq!(mounts.0.len(), 8);
        let x = mounts.at("/mnt/x").unwrap();
        assert_eq!(
            (x.source.as_str(), x.root.as_str(), x.options.as_str()),
            ("/dev/loop4", "/@", "ro,relatime,subvol=/@")
        );
        assert_eq!(mounts.at("/mnt/a b").unwrap().options, "rw,relatime");
        assert_eq!(mounts.of("/srv/a/b").unwrap().source, "/dev/loop5");
        assert_eq!(mounts.of("/mnt/xy").unwrap().point, "/");
        assert!(mounts.at("/net").is_none() && mounts.has_automount("/net"));
        assert_eq!(mounts.below("/srv").map(|mount| mount.point.as_str()).collect::<Vec<_>>(), ["/srv/a"]);
        assert!(mounts.0[1].is_pseudo() && !mounts.0[0].is_pseudo());
    }

    #[test]
    fn a_mount_is_hidden_by_one_over_it_or_over_a_directory_above_it() {
        let mounts = Mounts::parse(TABLE);
        let hiding = |index: usize| mounts.hiding(&mounts.0[index]).map(|mount| mount.source.as_str());
        assert_eq!([3, 4, 5, 6, 2].map(hiding), [Some("/dev/loop4"), None, Some("/dev/loop6"), None, None]);
    }
}
