//! Tests on a real host how file systems are mounted and unmounted, and what fstab has before and after it. The host's own
//! programs say the same. Each test makes its loop devices itself, and takes only free ones, since other hosts use the others.

use linux_sysadmin_tests::{Changing, Client, way};
use serde_json::{Value, json};

/// Makes file systems on loop devices, whose names stand in /run/lsa-NAME.
const PREPARE: &str = r#"
set -eu
cp -a /etc/fstab /run/lsa-fstab
printf '# kept\n\nproc\t/proc\tproc  defaults\t0 0 # as it is' > /etc/fstab
test -e /dev/loop-control || mknod /dev/loop-control c 10 237
disk() { # NAME
    truncate -s 320M /var/tmp/lsa-$1
    for attempt in 1 2 3 4 5; do
        device=$(losetup --find)
        test -e $device || mknod $device b 7 ${device#/dev/loop}
        if losetup $device /var/tmp/lsa-$1; then break; fi
    done
    echo $device > /run/lsa-$1
}
disk ext4 && mkfs.ext4 -q -L 'lsa data' $device
disk xfs && mkfs.xfs -q $device
disk btrfs && mkfs.btrfs -q $device
systemctl daemon-reload
"#;

const CLEAN: &str = r"
systemctl stop lsa-busy 2>/dev/null
systemctl reset-failed lsa-busy 2>/dev/null
umount '/mnt/lsa dir/a b' /mnt/lsa-x /mnt/lsa-b 2>/dev/null
for disk in ext4 xfs btrfs; do
    losetup --associated /var/tmp/lsa-$disk --noheadings --output NAME | xargs --no-run-if-empty losetup --detach
    rm -f /var/tmp/lsa-$disk /run/lsa-$disk
done
rmdir '/mnt/lsa dir/a b' '/mnt/lsa dir' /mnt/lsa-x /mnt/lsa-b 2>/dev/null
rm -f /mnt/lsa-link
test ! -e /run/lsa-fstab || mv /run/lsa-fstab /etc/fstab
systemctl daemon-reload
";

fn changing(test: &str) -> Option<Changing> {
    Changing::by(way(), test, PREPARE, CLEAN)
}

/// Makes a change, saying yes to the question.
async fn agreed(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let mut confirmed = arguments.clone();
    let answer = client.envelope(tool, arguments.clone()).await;
    assert_eq!(answer["status"], "confirmation_required", "{answer}");
    confirmed["confirmed"] = json!(true);
    client.envelope(tool, confirmed).await
}

#[tokio::test]
async fn file_systems_are_mounted_and_unmounted_for_real() {
    let Some(machine) = changing("file_systems_are_mounted_and_unmounted_for_real") else { return };
    let mut client = machine.serve_default().await;
    // The last line has no newline at first.
    let before = machine.sh("cat /etc/fstab");
    for (kind, point, escaped) in [
        ("ext4", "/mnt/lsa dir/a b", "/mnt/lsa\\040dir/a\\040b"),
        ("xfs", "/mnt/lsa-x", "/mnt/lsa-x"),
        ("btrfs", "/mnt/lsa-b", "/mnt/lsa-b"),
    ] {
        let device = machine.sh(&format!("cat /run/lsa-{kind}")).trim().to_owned();
        let uuid = machine.sh(&format!("blkid -p -s UUID -o value {device}")).trim().to_owned();
        let arguments = json!({"device": device, "mount_point": point, "fs_type": kind, "options": "nofail,noatime", "pass": 0});
        machine.shows(&mut client, "mount_add", &arguments).await;
        let added = agreed(&mut client, "mount_add", &arguments).await;
        assert_eq!(
            (&added["status"], &added["data"]["source"]),
            (&json!("success"), &json!(format!("UUID={uuid}"))),
            "{added}"
        );
        let said = machine
            .sh(&format!("findmnt --noheadings --output SOURCE,FSTYPE --mountpoint '{point}' | tr -s ' '"));
        assert_eq!(said.trim(), format!("{device} {kind}"));
        let fstab = machine.sh("cat /etc/fstab");
        assert_eq!(fstab, format!("{before}\nUUID={uuid}\t{escaped}\t{kind}\tnofail,noatime\t0\t0\n"));
        machine.holds_already(&mut client, "mount_add", &arguments).await;
        // What fstab has is what mount takes.
        machine.sh(&format!("umount '{point}' && mount '{point}'"));

        let removed = agreed(&mut client, "mount_remove", &json!({"mount_point": device})).await;
        assert_eq!(removed["status"], "success", "{removed}");
        assert_eq!(machine.sh(&format!("findmnt --mountpoint '{point}' || echo none")), "none\n");
        assert_eq!(machine.sh("cat /etc/fstab"), format!("{before}\n"));
        assert_eq!(machine.sh(&format!("ls -A '{point}' && test -d '{point}'")), "");
    }
}

#[tokio::test]
async fn a_mount_that_fails_leaves_everything_as_it_was() {
    let Some(machine) = changing("a_mount_that_fails_leaves_everything_as_it_was") else { return };
    let mut client = machine.serve_default().await;
    let device = machine.sh("cat /run/lsa-ext4").trim().to_owned();
    let arguments = json!({"device": device, "mount_point": "/mnt/lsa dir/a b", "fs_type": "ext4", "options": "lsa_no_such_option"});
    let before =
        machine.sh("sha256sum /etc/fstab; stat -c '%a %U %G' /etc/fstab; ls -A /mnt; cat /proc/self/mounts");
    let failed = agreed(&mut client, "mount_add", &arguments).await;
    assert_eq!(
        (&failed["status"], &failed["error_code"]),
        (&json!("error"), &json!("COMMAND_FAILED")),
        "{failed}"
    );
    assert!(failed.to_string().contains("`mount -- ") || failed.to_string().contains("mount: "), "{failed}");
    assert_eq!(failed["not_undone"], json!([]), "{failed}");
    let after =
        machine.sh("sha256sum /etc/fstab; stat -c '%a %U %G' /etc/fstab; ls -A /mnt; cat /proc/self/mounts");
    assert_eq!(after, before);
}

#[tokio::test]
async fn who_keeps_a_mount_busy_is_told() {
    let Some(machine) = changing("who_keeps_a_mount_busy_is_told") else { return };
    let mut client = machine.serve_default().await;
    machine.sh("mkdir /mnt/lsa-x && mount $(cat /run/lsa-xfs) /mnt/lsa-x && echo x > /mnt/lsa-x/log && \
         systemd-run --quiet --unit lsa-busy tail -f /mnt/lsa-x/log && sleep 0.5");
    let busy = machine
        .refuses(&mut client, "mount_remove", &json!({"mount_point": "/mnt/lsa-x"}), "MOUNT_BUSY")
        .await;
    let text = busy.to_string();
    let pid = machine.sh("systemctl show --property=MainPID --value lsa-busy");
    assert!(text.contains(&format!("PID {}", pid.trim())), "{busy}");
    for part in ["/mnt/lsa-x/log", "svc_stop service=lsa-busy.service", "root"] {
        assert!(text.contains(part), "{part}: {busy}");
    }
    machine.sh("systemctl stop lsa-busy");
    let removed = agreed(&mut client, "mount_remove", &json!({"mount_point": "/mnt/lsa-x"})).await;
    assert_eq!(removed["status"], "success", "{removed}");
    assert_eq!(machine.sh("findmnt --mountpoint /mnt/lsa-x || echo none"), "none\n");
}

#[tokio::test]
async fn mounts_and_fstab_are_compared() {
    let Some(machine) = changing("mounts_and_fstab_are_compared") else { return };
    let uuid = machine.sh("blkid -p -s UUID -o value $(cat /run/lsa-ext4)");
    machine.sh("mkdir /mnt/lsa-x && ln -sfn /srv /mnt/lsa-link && mount $(cat /run/lsa-xfs) /mnt/lsa-x");
    let lines = format!(
        "UUID={} /mnt/lsa-x xfs noexec 0 0\nUUID=lsa-none /mnt/lsa-none ext4 nofail 0 0\n\
         /dev/lsa-none /mnt/lsa-link ext4 defaults 0 0\n//h/s /mnt/lsa-c cifs nofail,password=lsa-secret 0 0",
        uuid.trim()
    );
    machine.sh(&format!("printf '\\n%s\\n' '{lines}' >> /etc/fstab"));
    let mut client = machine.serve_default().await;
    let listed = client.envelope("mount_list", json!({"filter": "lsa"})).await;
    let states: Vec<(&Value, &Value)> = listed["data"]
        .as_array()
        .unwrap_or_else(|| panic!("{listed}"))
        .iter()
        .map(|item| (&item["mount_point"], &item["state"]))
        .collect();
    let state =
        |point: &str| states.iter().find(|(mount_point, _)| *mount_point == point).map(|(_, state)| *state);
    assert_eq!(state("/mnt/lsa-x"), Some(&json!("other_source")), "{listed}");
    assert_eq!(state("/mnt/lsa-none"), Some(&json!("not_mounted")), "{listed}");
    assert!(!listed.to_string().contains("lsa-secret"), "{listed}");
    let validated = client.envelope("fstab_validate", json!({})).await;
    let text = validated.to_string();
    for part in [
        "no device UUID=lsa-none is there now",
        "no device /dev/lsa-none is there: the next start stops",
        "leads through a symlink to /srv",
        "options hold a secret (password)",
        "the type is xfs, and",
    ] {
        assert!(text.contains(part), "{part}: {validated}");
    }
    assert!(!text.contains("lsa-secret"), "{validated}");
    machine
        .refuses(
            &mut client,
            "mount_add",
            &json!({"device": "tmpfs", "mount_point": "/mnt/lsa-link", "fs_type": "tmpfs"}),
            "MOUNT_POINT_IN_FSTAB",
        )
        .await;
}

#[tokio::test]
async fn swap_that_is_refused_leaves_nothing_behind() {
    let Some(machine) = changing("swap_that_is_refused_leaves_nothing_behind") else { return };
    let mut client = machine.serve_default().await;
    // The filter of system calls around a host refuses swapon.
    machine.sh("mkdir /mnt/lsa-x /mnt/lsa-b && mount $(cat /run/lsa-xfs) /mnt/lsa-x && mount $(cat /run/lsa-btrfs) /mnt/lsa-b");
    let before = machine.sh("sha256sum /etc/fstab; ls -A /mnt/lsa-x /mnt/lsa-b");
    for point in ["/mnt/lsa-x", "/mnt/lsa-b"] {
        let arguments = json!({"size": "32M", "directory": point});
        let failed = agreed(&mut client, "swap_add", &arguments).await;
        assert_eq!(failed["status"], "error", "{failed}");
        assert!(failed.to_string().contains("swapon"), "{failed}");
        assert_eq!(failed["not_undone"], json!([]), "{failed}");
    }
    assert_eq!(machine.sh("sha256sum /etc/fstab; ls -A /mnt/lsa-x /mnt/lsa-b"), before);
    let device = machine.sh("cat /run/lsa-ext4").trim().to_owned();
    machine.refuses(&mut client, "swap_add", &json!({"device": device}), "DEVICE_HAS_DATA").await;
    machine.sh(&format!("wipefs --quiet --all {device}"));
    let failed = agreed(&mut client, "swap_add", &json!({"device": device})).await;
    assert_eq!((&failed["status"], &failed["not_undone"]), (&json!("error"), &json!([])), "{failed}");
    assert_eq!(machine.sh(&format!("blkid -p {device} || echo nothing")), "nothing\n");
    let listed = client.envelope("swap_list", json!({})).await;
    assert_eq!(listed["status"], "success", "{listed}");
    machine.refuses(&mut client, "swap_remove", &json!({"path": "/swapfile"}), "SWAP_NOT_FOUND").await;
}
