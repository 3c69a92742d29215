//! The types of file systems: which need the network, and which are one and the same.

/// File systems of other machines, as systemd knows them (fstype_is_network).
const NETWORK: [&str; 13] = [
    "9p",
    "afs",
    "ceph",
    "cifs",
    "davfs",
    "glusterfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "pvfs2",
    "smb3",
    "smbfs",
];

/// Types that a program as fsck can't check, besides those of the network.
const UNCHECKED: [&str; 6] = ["none", "overlay", "proc", "squashfs", "swap", "tmpfs"];

pub(crate) fn is_network(fs_type: &str, options: &str) -> bool {
    NETWORK.contains(&fs_type) || fs_type == "fuse.sshfs" || super::options::has(options, "_netdev")
}

/// Whether fsck has nothing to do for it.
pub(crate) fn is_unchecked(fs_type: &str) -> bool {
    UNCHECKED.contains(&fs_type) || is_network(fs_type, "")
}

/// Whether the driver `asked` mounts what blkid calls `found`.
pub(crate) fn mounts(asked: &str, found: &str) -> bool {
    matches!(
        (asked, found),
        ("auto", _)
            | ("ext4" | "ext3", "ext2")
            | ("ext4", "ext3")
            | ("msdos", "vfat")
            | ("ntfs3" | "ntfs-3g", "ntfs")
    ) || asked.split(',').any(|asked| asked == found)
}

/// The package with the program that mounts it, by the family of the distribution, and the program.
pub(crate) fn helper(fs_type: &str, family: &str) -> Option<(&'static str, &'static str)> {
    let by_family = |debian, rhel| if family == "rhel" { rhel } else { debian };
    match fs_type {
        "nfs" => Some(("mount.nfs", by_family("nfs-common", "nfs-utils"))),
        "nfs4" => Some(("mount.nfs4", by_family("nfs-common", "nfs-utils"))),
        "cifs" | "smb3" => Some(("mount.cifs", "cifs-utils")),
        "ceph" => Some(("mount.ceph", "ceph-common")),
        "glusterfs" => Some(("mount.glusterfs", by_family("glusterfs-client", "glusterfs-fuse"))),
        _ => None,
    }
}

/// The reason why something on a device is no file system that can be mounted, with what helps.
pub(crate) fn not_mountable(found: &str) -> Option<(&'static str, &'static str)> {
    Some(match found {
        "swap" => ("a swap area", "swap_add device=… uses it"),
        "LVM2_member" => ("a physical volume of LVM", "lvm_list tells the volumes on it"),
        "crypto_LUKS" => (
            "an encrypted volume",
            "Have a person open it with cryptsetup, and mount the device below /dev/mapper",
        ),
        "linux_raid_member" | "isw_raid_member" | "ddf_raid_member" => {
            ("a member of an array", "Mount the array, which disk_list tells")
        }
        "zfs_member" => ("a member of a pool of ZFS", "zfs mounts its file systems"),
        "mpath_member" => ("a path of a multipath device", "Mount the device below /dev/mapper"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_mounts_its_own_and_older_types() {
        for (asked, found, expected) in [
            ("ext4", "ext4", true),
            ("ext4", "ext3", true),
            ("auto", "xfs", true),
            ("xfs,ext4", "ext4", true),
            ("ntfs3", "ntfs", true),
            ("ext3", "ext4", false),
            ("ext4", "xfs", false),
        ] {
            assert_eq!(mounts(asked, found), expected, "{asked} {found}");
        }
        assert!(is_network("ext4", "_netdev") && is_network("nfs", "") && !is_network("ext4", "defaults"));
    }
}
