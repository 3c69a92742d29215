//! Tests on a real host how file systems are mounted and unmounted, and what fstab has before and after it. The host's own
//! programs say the same. Each test makes the loop devices that it needs, whose names stand in /run/lsa-NAME.

use linux_sysadmin_tests::{Changing, Client, DISKS, NO_DISKS, Reach, way};
use serde_json::{Value, json};

const FSTAB: &str = r"
cp -a /etc/fstab /run/lsa-fstab
printf '# kept\n\nproc\t/proc\tproc  defaults\t0 0 # as it is' > /etc/fstab
systemctl daemon-reload
";

const OPTIONS: &str = "nofail,nosuid,nodev,noatime";

const EXT4: &str = "disk ext4 32M\nmkfs.ext4 -q -L 'lsa data' $device\n";
const XFS: &str = "disk xfs 320M\nmkfs.xfs -q $device\n";
const BTRFS: &str = "disk btrfs 128M\nmkfs.btrfs -q $device\n";
/// Beside a swap file, 256 MiB stay free.
const LARGE_XFS: &str = "disk xfs 640M\nmkfs.xfs -q $device\n";
const LARGE_BTRFS: &str = "disk btrfs 640M\nmkfs.btrfs -q $device\n";

const CLEAN: &str = r"
systemctl stop lsa-busy 2>/dev/null
systemctl reset-failed lsa-busy 2>/dev/null
for area in $(sed -n 's/^\(\/mnt\/lsa-[^ ]*\) .*/\1/p' /proc/swaps) $(cat /run/lsa-ext4 2>/dev/null); do swapoff $area; done 2>/dev/null
umount '/mnt/lsa dir/a b' /mnt/lsa-x /mnt/lsa-b 2>/dev/null
rmdir '/mnt/lsa dir/a b' '/mnt/lsa dir' /mnt/lsa-x /mnt/lsa-b 2>/dev/null
rm -f /mnt/lsa-link
test ! -e /run/lsa-fstab || mv /run/lsa-fstab /etc/fstab
systemctl daemon-reload
";

/// A host with these disks.
fn changing(test: &str, disks: &[&str]) -> Option<Changing> {
    let prepare = [DISKS, &disks.concat(), FSTAB].concat();
    Changing::by(way(), test, &prepare, &[CLEAN, NO_DISKS].concat())
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
    let Some(machine) = changing("file_systems_are_mounted_and_unmounted_for_real", &[]) else { return };
    let mut client = machine.serve_default().await;
    // The last line has no newline at first.
    let before = machine.sh("cat /etc/fstab");
    for (kind, disk, point, escaped) in [
        ("ext4", EXT4, "/mnt/lsa dir/a b", "/mnt/lsa\\040dir/a\\040b"),
        ("xfs", XFS, "/mnt/lsa-x", "/mnt/lsa-x"),
        ("btrfs", BTRFS, "/mnt/lsa-b", "/mnt/lsa-b"),
    ] {
        machine.sh(&[DISKS, disk].concat());
        let device = machine.sh(&format!("cat /run/lsa-{kind}")).trim().to_owned();
        let uuid = machine.sh(&format!("blkid -p -s UUID -o value {device}")).trim().to_owned();
        let arguments =
            json!({"device": device, "mount_point": point, "fs_type": kind, "options": OPTIONS, "pass": 0});
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
        assert_eq!(fstab, format!("{before}\nUUID={uuid}\t{escaped}\t{kind}\t{OPTIONS}\t0\t0\n"));
        machine.holds_already(&mut client, "mount_add", &arguments).await;
        // What fstab has is what mount takes.
        machine.sh(&format!("umount '{point}' && mount '{point}'"));

        let removed = agreed(&mut client, "mount_remove", &json!({"mount_point": device})).await;
        assert_eq!(removed["status"], "success", "{removed}");
        assert_eq!(machine.sh(&format!("findmnt --mountpoint '{point}' || echo none")), "none\n");
        assert_eq!(machine.sh("cat /etc/fstab"), format!("{before}\n"));
        assert_eq!(machine.sh(&format!("ls -A '{point}' && test -d '{point}'")), "");
        machine.sh(NO_DISKS);
    }
}

#[tokio::test]
async fn a_line_that_could_stop_the_next_start_is_asked_about_with_the_one_that_could_not() {
    let test = "a_line_that_could_stop_the_next_start_is_asked_about_with_the_one_that_could_not";
    let Some(machine) = changing(test, &[EXT4]) else { return };
    let mut client = machine.serve_default().await;
    let device = machine.sh("cat /run/lsa-ext4").trim().to_owned();
    for (options, risk) in [(None, "critical"), (Some("defaults,nofail,nosuid,nodev"), "high")] {
        let mut arguments = json!({"device": device, "mount_point": "/mnt/lsa-x", "fs_type": "ext4"});
        if let Some(options) = options {
            arguments["options"] = json!(options);
        }
        let asked = client.envelope("mount_add", arguments).await;
        assert_eq!(
            (&asked["status"], &asked["risk_level"]),
            (&json!("confirmation_required"), &json!(risk)),
            "{asked}"
        );
        let advice = "options=defaults,nofail,nosuid,nodev is of less risk";
        assert_eq!(asked.to_string().contains(advice), options.is_none(), "{asked}");
    }
}

#[tokio::test]
async fn a_mount_that_fails_leaves_everything_as_it_was() {
    let Some(machine) = changing("a_mount_that_fails_leaves_everything_as_it_was", &[EXT4]) else { return };
    let mut client = machine.serve_default().await;
    let device = machine.sh("cat /run/lsa-ext4").trim().to_owned();
    let arguments = json!({"device": device, "mount_point": "/mnt/lsa dir/a b", "fs_type": "ext4", "options": "lsa_no_such_option"});
    // The directory of an account's session goes when the session before has ended.
    let state = "sha256sum /etc/fstab; stat -c '%a %U %G' /etc/fstab; ls -A /mnt; grep -v ' /run/user/' /proc/self/mounts";
    let before = machine.sh(state);
    let failed = agreed(&mut client, "mount_add", &arguments).await;
    assert_eq!(
        (&failed["status"], &failed["error_code"]),
        (&json!("error"), &json!("COMMAND_FAILED")),
        "{failed}"
    );
    assert!(failed.to_string().contains("`mount -- ") || failed.to_string().contains("mount: "), "{failed}");
    assert_eq!(failed["not_undone"], json!([]), "{failed}");
    assert_eq!(machine.sh(state), before);
}

#[tokio::test]
async fn who_keeps_a_mount_busy_is_told() {
    let Some(machine) = changing("who_keeps_a_mount_busy_is_told", &[XFS]) else { return };
    let mut client = machine.serve_default().await;
    machine.sh("mkdir /mnt/lsa-x && mount $(cat /run/lsa-xfs) /mnt/lsa-x && echo x > /mnt/lsa-x/log && \
         systemd-run --quiet --unit lsa-busy tail -f /mnt/lsa-x/log");
    machine.until("find /proc/$(systemctl show --property=MainPID --value lsa-busy)/fd -lname /mnt/lsa-x/log | grep -q .");
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
    let Some(machine) = changing("mounts_and_fstab_are_compared", &[EXT4, XFS]) else { return };
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

/// Over SSH, the filter of system calls around a host refuses swapon. A program that comes into the host from outside has no
/// such filter, and its swap is the machine's.
#[tokio::test]
async fn swap_is_added_and_removed_and_one_that_is_refused_leaves_nothing_behind() {
    let test = "swap_is_added_and_removed_and_one_that_is_refused_leaves_nothing_behind";
    let Some(machine) = changing(test, &[LARGE_XFS, LARGE_BTRFS]) else { return };
    let is_allowed = matches!(way(), Reach::Inside(_));
    let mut client = machine.serve_default().await;
    machine.sh("mkdir /mnt/lsa-x /mnt/lsa-b && mount $(cat /run/lsa-xfs) /mnt/lsa-x && mount $(cat /run/lsa-btrfs) /mnt/lsa-b");
    let state = || machine.sh("sha256sum /etc/fstab; ls -A /mnt/lsa-x /mnt/lsa-b");
    let (before, fstab) = (state(), machine.sh("cat /etc/fstab"));
    for point in ["/mnt/lsa-x", "/mnt/lsa-b"] {
        let arguments = json!({"size": "32M", "directory": point});
        let added = agreed(&mut client, "swap_add", &arguments).await;
        if is_allowed {
            removed(&machine, &mut client, &added).await;
        } else {
            assert_eq!(added["status"], "error", "{added}");
            assert!(added.to_string().contains("swapon"), "{added}");
            assert_eq!(added["not_undone"], json!([]), "{added}");
        }
    }
    if is_allowed {
        // The last line has an end now, and the directory for swap files stays.
        assert_eq!(machine.sh("cat /etc/fstab"), format!("{fstab}\n"));
        assert_eq!(machine.sh("find /mnt/lsa-x /mnt/lsa-b -type f"), "");
    } else {
        assert_eq!(state(), before);
    }
    machine.sh("umount /mnt/lsa-x /mnt/lsa-b");
    machine.sh(&[NO_DISKS, DISKS, EXT4].concat());
    let device = machine.sh("cat /run/lsa-ext4").trim().to_owned();
    machine.refuses(&mut client, "swap_add", &json!({"device": device}), "DEVICE_HAS_DATA").await;
    machine.sh(&format!("wipefs --quiet --all {device}"));
    let added = agreed(&mut client, "swap_add", &json!({"device": device})).await;
    if is_allowed {
        removed(&machine, &mut client, &added).await;
    } else {
        assert_eq!((&added["status"], &added["not_undone"]), (&json!("error"), &json!([])), "{added}");
        assert_eq!(machine.sh(&format!("blkid -p {device} || echo nothing")), "nothing\n");
    }
    let listed = client.envelope("swap_list", json!({})).await;
    assert_eq!(listed["status"], "success", "{listed}");
    machine.refuses(&mut client, "swap_remove", &json!({"path": "/swapfile"}), "SWAP_NOT_FOUND").await;
}

/// Finds swap that was added, by the kernel and in fstab, and removes it.
async fn removed(machine: &Changing, client: &mut Client, added: &Value) {
    assert_eq!(added["status"], "success", "{added}");
    let path = added["data"]["path"].as_str().unwrap_or_else(|| panic!("{added}"));
    let source = added["data"]["source"].as_str().unwrap_or_else(|| panic!("{added}"));
    let areas = || machine.sh("tail -n +2 /proc/swaps; cat /etc/fstab");
    let has = |text: &str, fields: &[&str]| {
        text.lines().any(|line| line.split_whitespace().take(fields.len()).eq(fields.iter().copied()))
    };
    assert!(has(&areas(), &[path]) && has(&areas(), &[source, "none", "swap"]), "{}", areas());
    let listed = client.envelope("swap_list", json!({})).await;
    assert!(listed["data"].to_string().contains(path), "{listed}");
    let gone = agreed(client, "swap_remove", &json!({"path": path})).await;
    assert_eq!(gone["status"], "success", "{gone}");
    assert!(!areas().contains(path) && !areas().contains(source), "{}", areas());
}
