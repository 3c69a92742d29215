//! Tests on a real host what the tools for disks say: df, du and lsblk say the same, and each planted full disk is found by
//! one call, with its cause.

use linux_sysadmin_tests::{Changing, Client, DISKS, NO_DISKS, way};
use serde_json::{Value, json};

const CLEAN: &str = r"
systemctl kill --signal=KILL lsa-disk 2>/dev/null
systemctl stop lsa-disk 2>/dev/null
systemctl reset-failed lsa-disk 2>/dev/null
umount /mnt/lsa/hiding/backup /mnt/lsa/log /mnt/lsa/deleted /mnt/lsa/inodes /mnt/lsa/hiding 2>/dev/null
rm -rf --one-file-system /mnt/lsa /run/lsa-disk*
";

/// Fills file systems in memory: by a log that grows, by a deleted file that a unit has open, by many small files, and by data
/// over which another file system is mounted.
const PREPARE: &str = r#"
for name in log deleted inodes hiding; do mkdir -p /mnt/lsa/$name; done
mount -t tmpfs -o size=20m lsa /mnt/lsa/log
mkdir -p "/mnt/lsa/log/my app"
head -c 19M /dev/zero > "/mnt/lsa/log/my app/app.log"
mount -t tmpfs -o size=20m lsa /mnt/lsa/deleted
head -c 19M /dev/zero > /mnt/lsa/deleted/gone.log
cat > /run/lsa-disk.sh <<'END'
exec 7<> /mnt/lsa/deleted/gone.log
touch /run/lsa-disk.ready
exec sleep 1000
END
systemd-run --quiet --unit lsa-disk sh /run/lsa-disk.sh
until [ -e /run/lsa-disk.ready ]; do sleep 0.1; done
rm /mnt/lsa/deleted/gone.log
mount -t tmpfs -o size=20m,nr_inodes=200 lsa /mnt/lsa/inodes
mkdir -p /mnt/lsa/inodes/cache/a /mnt/lsa/inodes/cache/b
for i in $(seq 95); do : > /mnt/lsa/inodes/cache/a/$i; : > /mnt/lsa/inodes/cache/b/$i; done
mount -t tmpfs -o size=20m lsa /mnt/lsa/hiding
mkdir /mnt/lsa/hiding/backup
head -c 19M /dev/zero > /mnt/lsa/hiding/backup/old.tar
mount -t tmpfs -o size=1m lsa /mnt/lsa/hiding/backup
"#;

/// The member of a list that has this value.
fn of<'a>(list: &'a Value, member: &str, value: &str) -> &'a Value {
    let found = list.as_array().and_then(|list| list.iter().find(|one| one[member] == value));
    found.unwrap_or_else(|| panic!("{value}: {list}"))
}

#[tokio::test]
async fn each_full_disk_is_found_by_one_call_with_its_cause() {
    let test = "each_full_disk_is_found_by_one_call_with_its_cause";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let mut client = machine.serve_default().await;
    let envelope = client.envelope("disk_usage", json!({})).await;
    let data = &envelope["data"];
    let causes = &data["causes"];
    let pid = machine.sh("systemctl show --property MainPID --value lsa-disk");

    let log = of(causes, "mount", "/mnt/lsa/log");
    assert_eq!(log["largest"][0]["path"], "/mnt/lsa/log/my app/app.log", "{envelope}");
    assert_eq!(log["largest"][0]["changed_within"], "10 min", "{envelope}");

    let deleted = &of(causes, "mount", "/mnt/lsa/deleted")["deleted_open"][0];
    assert_eq!(
        (&deleted["path"], &deleted["size"]),
        (&json!("/mnt/lsa/deleted/gone.log"), &json!("19M")),
        "{envelope}"
    );
    assert_eq!(deleted["pid"].to_string(), pid.trim(), "{envelope}");
    assert_eq!(
        (&deleted["unit"], &deleted["user"]),
        (&json!("lsa-disk.service"), &json!("root")),
        "{envelope}"
    );
    assert_eq!(deleted["next"], "svc_restart {\"service\": \"lsa-disk.service\"}", "{envelope}");

    // The service has files there, by which it is named.
    let services = &of(causes, "mount", "/mnt/lsa/deleted")["services"];
    assert_eq!(services[0]["unit"], "lsa-disk.service", "{envelope}");

    let inodes = of(causes, "mount", "/mnt/lsa/inodes");
    assert_eq!(inodes["most_files"][0]["path"], "/mnt/lsa/inodes/cache/", "{envelope}");

    let hidden = &of(causes, "mount", "/mnt/lsa/hiding")["hidden"];
    assert_eq!(hidden["below_mounts"], json!(["/mnt/lsa/hiding/backup"]), "{envelope}");
    assert!(
        hidden["size"].as_str().is_some_and(|size| size.starts_with("19") || size.starts_with("18.9")),
        "{envelope}"
    );

    assert_eq!(envelope["severity"], "critical", "{envelope}");
    let df = machine.sh("df --output=target,pcent,ipcent | tail -n +2");
    let mut compared = 0;
    for line in df.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [target, pcent, ipcent] = words[..] else { continue };
        let all = data["filesystems"].as_array();
        let Some(found) = all.and_then(|all| all.iter().find(|one| one["mount"] == target)) else { continue };
        assert_eq!(format!("{}%", found["used_pct"]), pcent, "{line}: {envelope}");
        if found["inodes_used_pct"].is_u64() {
            assert_eq!(format!("{}%", found["inodes_used_pct"]), ipcent, "{line}: {envelope}");
        }
        compared += 1;
    }
    assert!(compared >= 4, "{df}\n{envelope}");
}

/// Unmounts the loop devices of a test, and gives them back.
const CLEAN_LOOPS: &str = r"
umount /mnt/lsa-reserved /mnt/lsa-grown 2>/dev/null
rmdir /mnt/lsa-reserved /mnt/lsa-grown 2>/dev/null
test ! -e /run/fstab-before || mv /run/fstab-before /etc/fstab
systemctl daemon-reload
";

fn with_loops(test: &str, prepare: &str) -> Option<Changing> {
    Changing::by(way(), test, &[DISKS, prepare].concat(), &[CLEAN_LOOPS, NO_DISKS].concat())
}

#[tokio::test]
async fn reserved_blocks_are_told_as_the_cause() {
    let prepare = r"
disk reserved 40M
mkfs.ext4 -q -m 30 $device
mkdir /mnt/lsa-reserved
mount $device /mnt/lsa-reserved
chmod 777 /mnt/lsa-reserved
setpriv --reuid=65534 --regid=65534 --clear-groups dd if=/dev/zero of=/mnt/lsa-reserved/part bs=64k 2>/dev/null || :
";
    let Some(machine) = with_loops("reserved_blocks_are_told_as_the_cause", prepare) else { return };
    let mut client = machine.serve_default().await;
    let envelope = client.envelope("disk_usage", json!({})).await;
    let summary = envelope["summary"].as_str().unwrap_or_default();
    assert!(summary.contains("/mnt/lsa-reserved is 100 % full"), "{envelope}");
    assert!(summary.contains("are reserved for root"), "{envelope}");
}

/// Makes a change, saying yes to the question.
async fn agreed(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let mut confirmed = arguments.clone();
    let answer = client.envelope(tool, arguments.clone()).await;
    assert_eq!(answer["status"], "confirmation_required", "{answer}");
    confirmed["confirmed"] = json!(true);
    let done = client.envelope(tool, confirmed).await;
    assert_eq!(done["status"], "success", "{done}");
    done
}

/// The file system that `disk_usage` tells of, and what fills it.
async fn usage_of_grown(client: &mut Client) -> (Value, Value) {
    let envelope = client.envelope("disk_usage", json!({"path": GROWN})).await;
    let data = &envelope["data"];
    assert!(data["causes"][0].is_object(), "{envelope}");
    (data["filesystems"][0].clone(), data["causes"][0].clone())
}

const GROWN: &str = "/mnt/lsa-grown";

#[tokio::test]
async fn a_file_system_that_is_full_grows_with_its_disk() {
    let test = "a_file_system_that_is_full_grows_with_its_disk";
    let Some(machine) = with_loops(test, "cp -a /etc/fstab /run/fstab-before\n") else { return };
    let mut client = machine.serve_default().await;
    for (kind, size, larger, more) in
        [("ext4", "64M", "128M", "64M"), ("xfs", "320M", "640M", "320M"), ("btrfs", "128M", "256M", "128M")]
    {
        machine.sh(&format!("{DISKS}\ndisk grown {size}\nmkfs.{kind} -q $device"));
        let device = machine.sh("cat /run/lsa-grown").trim().to_owned();
        let mount = json!({"device": device, "mount_point": GROWN, "fs_type": kind, "options": "nofail,nosuid,nodev"});
        agreed(&mut client, "mount_add", &mount).await;
        machine.sh(&format!("head --bytes=1G /dev/zero > {GROWN}/fill || sync --file-system {GROWN}"));
        let filled = machine.sh(&format!("stat --format=%s {GROWN}/fill"));
        let (full, cause) = usage_of_grown(&mut client).await;
        assert!(full["used_pct"].as_u64() >= Some(95), "{full}");
        assert_eq!(cause["largest"][0]["path"], format!("{GROWN}/fill"), "{cause}");
        assert!(cause["growable"].is_null(), "{cause}");

        // As a provider makes a virtual disk larger.
        machine
            .sh(&format!("truncate --size {larger} /var/tmp/lsa-grown && losetup --set-capacity {device}"));
        let (_, cause) = usage_of_grown(&mut client).await;
        assert_eq!(cause["growable"]["more"], more, "{cause}");
        let next = cause["growable"]["next"].as_str().and_then(|call| call.strip_prefix("command_run "));
        let arguments: Value = serde_json::from_str(next.expect("a call")).expect("JSON");
        // Not every machine may grow a mounted ext4: that takes CAP_SYS_RESOURCE.
        if kind == "ext4" {
            machine.sh(&format!("umount {GROWN} && {{ e2fsck -f -p {device} || test $? = 1; }}"));
        }
        let done = agreed(&mut client, "command_run", &arguments).await;
        assert_eq!(done["data"]["commands"][0]["exit_code"], 0, "{done}");
        machine.sh(&format!("mountpoint --quiet {GROWN} || mount {GROWN}"));
        let (roomy, cause) = usage_of_grown(&mut client).await;
        assert!(roomy["used_pct"].as_u64() < Some(90), "{roomy}");
        assert!(cause["growable"].is_null(), "{cause}");
        assert_eq!(machine.sh(&format!("stat --format=%s {GROWN}/fill")), filled);
        agreed(&mut client, "mount_remove", &json!({"mount_point": GROWN})).await;
        machine.sh(NO_DISKS);
    }
}

#[tokio::test]
async fn the_largest_are_those_that_du_says() {
    let prepare = r#"
mkdir -p "/mnt/lsa/a b/c" /mnt/lsa/many
head -c 3M /dev/zero > "/mnt/lsa/a b/c/one"
ln "/mnt/lsa/a b/c/one" /mnt/lsa/two
truncate -s 1G /mnt/lsa/sparse
head -c 1M /dev/zero > "$(printf '/mnt/lsa/line\nbreak')"
for i in $(seq 300); do head -c 8192 /dev/zero > /mnt/lsa/many/$i; done
"#;
    let Some(machine) = Changing::by(way(), "the_largest_are_those_that_du_says", prepare, CLEAN) else {
        return;
    };
    let mut client = machine.serve_default().await;
    let envelope = client.envelope("disk_usage_top", json!({"path": "/mnt/lsa"})).await;
    let data = &envelope["data"];
    // For du -x, the files of an overlay are on another file system than its directories.
    let du = machine.sh("du -s --block-size=1 /mnt/lsa | cut -f1");
    assert_eq!(data["size"], shown(du.trim().parse().unwrap_or_default()), "{du}: {envelope}");
    let paths: Vec<_> =
        data["largest"].as_array().into_iter().flatten().filter_map(|one| one["path"].as_str()).collect();
    // A file with two names is told by the one that find met first.
    assert!(paths.contains(&"/mnt/lsa/a b/c/one") != paths.contains(&"/mnt/lsa/two"), "{envelope}");
    assert!(paths.contains(&"/mnt/lsa/many/") && !paths.contains(&"/mnt/lsa/sparse"), "{envelope}");
}

/// A number of bytes as the tools write it.
fn shown(bytes: u64) -> String {
    let power = (1..=6).rev().find(|power| bytes >> (10 * power) > 0).unwrap_or(0);
    let hundredths = (u128::from(bytes) * 100) >> (10 * power);
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    format!(
        "{}{}",
        text.trim_end_matches('0').trim_end_matches('.'),
        ["B", "K", "M", "G", "T", "P", "E"][power]
    )
}

#[tokio::test]
async fn disks_are_those_that_lsblk_says() {
    let Some(machine) = Changing::by(way(), "disks_are_those_that_lsblk_says", "", "") else { return };
    let mut client = machine.serve_default().await;
    let envelope = client.envelope("disk_list", json!({"limit": 1000})).await;
    let lsblk = machine.sh("lsblk --bytes --list --paths --noheadings --output NAME,TYPE,SIZE");
    // Loop devices are the machine's, on which the hosts run, and come and go.
    for line in lsblk.lines().filter(|line| !line.contains("loop")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, kind, size] = words[..] else { panic!("{line}") };
        let Ok(size @ 1..) = size.parse::<u64>() else { continue };
        let found = of(&envelope["data"], "path", name);
        assert_eq!(found["type"], kind, "{line}: {found}");
        assert_eq!(found["size"], shown(size), "{line}: {found}");
    }
    let health = client.envelope("disk_health", json!({})).await;
    assert_eq!(health["status"], "success", "{health}");
    // The machine's disk is virtual, which smartctl isn't asked about.
    assert!(health["data"]["disks"].as_array().is_some(), "{health}");
}
