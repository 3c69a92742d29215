//! Disks for tests: loop devices on files of a host. The machine has one set of them for all its hosts. A host shows only the
//! nodes of those that it has taken itself, so that its programs find nothing of other hosts.

/// Defines `disk NAME SIZE` for a script of sh: it makes the file /var/tmp/lsa-NAME, takes a free loop device for it, keeps the
/// device's name in `device` and in /run/lsa-NAME, and fails where it gets none.
pub const DISKS: &str = r#"
set -eu
test -e /dev/loop-control || mknod /dev/loop-control c 10 237
disk() {
    truncate --size $2 /var/tmp/lsa-$1
    for attempt in 1 2 3 4 5 6 7 8 9 10; do
        device=$(losetup --find)
        test -e $device || mknod -m 660 $device b 7 ${device#/dev/loop}
        # Another host may have taken it meanwhile.
        if losetup $device /var/tmp/lsa-$1; then
            echo $device > /run/lsa-$1
            return
        fi
        rm $device
    done
    return 1
}
"#;

/// Gives the disks back, with their files and nodes. Nothing is mounted on them any more.
pub const NO_DISKS: &str = r"
for file in /var/tmp/lsa-*; do
    test -e $file || continue
    for device in $(losetup --associated $file --noheadings --output NAME); do losetup --detach $device; done
    name=/run/${file#/var/tmp/}
    test ! -s $name || rm -f $(cat $name)
    rm -f $file $name
done
";
