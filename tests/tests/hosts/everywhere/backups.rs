//! Tests on a real host that a backup comes back as it was: with owners, links, holes and attributes, after a kill in the
//! middle, and by a timer.

use linux_sysadmin_tests::{Changing, way};
use serde_json::json;

const CLEAN: &str = r"
systemctl disable --now linux-sysadmin-backup-lsa.timer 2>/dev/null
rm -rf /srv/lsa-backups /srv/lsa-source /srv/lsa-restored /var/backups/linux-sysadmin-replaced /etc/linux-sysadmin/backup
rm -rf /usr/local/lib/linux-sysadmin /etc/systemd/system/linux-sysadmin-backup-lsa.*
rmdir /etc/linux-sysadmin
systemctl daemon-reload
";

const PREPARE: &str = r#"
mkdir -m 0700 /srv/lsa-backups
mkdir -p /srv/lsa-source/sub
cd /srv/lsa-source
echo one > 'a b'
printf two > "$(printf 'new\nline')"
printf three > ./-rf
ln -- -rf sub/hard
ln -s nowhere sub/soft
truncate -s 100M sparse
chown 12345:54321 -- -rf
chmod 4751 -- -rf
mkfifo sub/pipe
"#;

const SAME: &str = "rsync -aHAX --checksum --dry-run --itemize-changes --delete --exclude=sparse /srv/lsa-source/ /srv/lsa-restored/srv/lsa-source/";

#[tokio::test]
async fn a_backup_comes_back_as_it_was() {
    let Some(machine) = Changing::by(way(), "a_backup_comes_back_as_it_was", PREPARE, CLEAN) else {
        return;
    };
    let mut client = machine.serve_all_but_critical().await;
    let backup = json!({"paths": ["/srv/lsa-source"], "destination": "/srv/lsa-backups", "label": "one"});
    let preview = machine.shows(&mut client, "bak_create", &backup).await;
    let shown = preview.to_string();
    assert!(shown.contains("accepted with the module") && !shown.contains("#!/bin/sh"), "{shown}");
    let first = machine.does(&mut client, "bak_create", &backup, &preview).await;
    let id = first["data"]["backup_id"].as_str().unwrap_or_else(|| panic!("{first}")).to_owned();
    assert!(
        machine.sh("du -sk /srv/lsa-backups | cut -f1").trim().parse::<u32>().is_ok_and(|kib| kib < 1000)
    );
    machine.sh("echo changed > '/srv/lsa-source/a b'");
    let second = client.envelope("bak_create", backup.clone()).await;
    assert_eq!(second["data"]["new_files"], 1, "{second}");

    let listed = client.envelope("bak_list", json!({"destination": "/srv/lsa-backups"})).await;
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(2), "{listed}");
    assert_eq!(listed["data"][1]["backup_id"], id.as_str(), "{listed}");

    let latest = second["data"]["backup_id"].clone();
    let verify = json!({"backup_id": latest, "destination": "/srv/lsa-backups"});
    let verified = client.envelope("bak_verify", verify.clone()).await;
    assert_eq!(verified["data"]["corrupt"], 0, "{verified}");
    assert_eq!(verified["data"]["changed"], 0, "{verified}");
    let restore =
        json!({"backup_id": latest, "destination": "/srv/lsa-backups", "target_path": "/srv/lsa-restored"});
    machine.shows(&mut client, "bak_restore", &restore).await;
    machine.asks(&mut client, "bak_restore", &restore, "critical").await;
    // What the confirmed call would run.
    machine.sh(&format!(
        "/usr/local/lib/linux-sysadmin/backup restore --destination=/srv/lsa-backups --target=/srv/lsa-restored -- {}",
        latest.as_str().unwrap_or_default()
    ));
    assert_eq!(machine.sh(SAME), "");
    assert_eq!(
        machine.sh("stat -c '%a %u %g %h' -- /srv/lsa-restored/srv/lsa-source/-rf"),
        "4751 12345 54321 2\n"
    );

    // In place, what was lost comes back, and what was changed is kept beside it.
    machine.sh("cd /srv/lsa-source && rm -rf -- sub -rf && echo later > 'a b'");
    machine.asks(&mut client, "bak_restore", &json!({"destination": "/srv/lsa-backups"}), "critical").await;
    machine.sh(&format!(
        "/usr/local/lib/linux-sysadmin/backup restore --destination=/srv/lsa-backups -- {}",
        latest.as_str().unwrap_or_default()
    ));
    assert_eq!(machine.sh(SAME), "");
    assert_eq!(
        machine.sh(
            "find /var/backups/linux-sysadmin-replaced -name 'a b' -path '*/srv/lsa-source/*' -exec cat {} +"
        ),
        "later\n"
    );

    let flipped = format!("/srv/lsa-backups/{}/tree/srv/lsa-source/a b", latest.as_str().unwrap_or_default());
    machine.sh(&format!("touch -r '{flipped}' /srv/lsa-restored/time; printf C | dd of='{flipped}' conv=notrunc status=none; touch -r /srv/lsa-restored/time '{flipped}'"));
    let verified = client.envelope("bak_verify", verify).await;
    assert_eq!(
        verified["data"]["findings"],
        json!([{"kind": "corrupt", "path": "/srv/lsa-source/a b", "why": "content"}]),
        "{verified}"
    );
    assert_eq!(verified["severity"], "high", "{verified}");
}

/// Where restic isn't installed, the answer says so.
#[tokio::test]
async fn a_repository_of_restic_gives_back_what_it_got() {
    let test = "a_repository_of_restic_gives_back_what_it_got";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let mut client = machine.serve_all_but_critical().await;
    let backup = json!({"paths": ["/srv/lsa-source"], "destination": "restic:///srv/lsa-backups/repository"});
    let has_restic = !machine.sh("command -v restic || true").is_empty();
    let said = client.envelope("bak_create", backup.clone()).await;
    let expected = if has_restic { "RESTIC_PASSWORD_MISSING" } else { "RESTIC_MISSING" };
    assert_eq!(said["error_code"], expected, "{said}");
    if !has_restic {
        return;
    }
    machine.sh("mkdir -p /etc/linux-sysadmin; umask 077; mkdir -p /etc/linux-sysadmin/backup; echo a-password-of-a-test > /etc/linux-sysadmin/backup/restic-password");
    let first = client.envelope("bak_create", backup.clone()).await;
    assert_eq!(first["status"], "success", "{first}");
    machine.sh("echo changed > '/srv/lsa-source/a b'");
    let second = client.envelope("bak_create", backup).await;
    assert_eq!(second["data"]["new_files"], 1, "{second}");
    let destination = json!({"destination": "restic:///srv/lsa-backups/repository"});
    let listed = client.envelope("bak_list", destination).await;
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(2), "{listed}");
    let id = second["data"]["backup_id"].as_str().unwrap_or_else(|| panic!("{second}")).to_owned();
    assert_eq!(listed["data"][0]["backup_id"], id.as_str(), "{listed}");
    machine.sh(&format!(
        "/usr/local/lib/linux-sysadmin/backup restore --destination=restic:///srv/lsa-backups/repository --target=/srv/lsa-restored -- {id}"
    ));
    assert_eq!(machine.sh(SAME), "");
    let verify = json!({"backup_id": "latest", "destination": "restic:///srv/lsa-backups/repository"});
    let whole = client.envelope("bak_verify", verify.clone()).await;
    assert_eq!((&whole["data"]["corrupt"], &whole["data"]["changed"]), (&json!(0), &json!(0)), "{whole}");
    machine.sh("for pack in $(find /srv/lsa-backups/repository/data -type f); do
            chmod u+w $pack; printf XXXX | dd of=$pack bs=1 seek=20 conv=notrunc status=none
        done");
    let damaged = client.envelope("bak_verify", verify).await;
    assert!(
        damaged["error_code"] == "REPOSITORY_CORRUPT" || damaged["data"]["corrupt"] != json!(0),
        "{damaged}"
    );
    let text = [first, second, listed, whole, damaged].map(|envelope| envelope.to_string()).concat();
    assert!(!text.contains("a-password-of-a-test"), "{text}");
}

#[tokio::test]
async fn a_killed_backup_goes_on() {
    let Some(machine) = Changing::by(way(), "a_killed_backup_goes_on", PREPARE, CLEAN) else {
        return;
    };
    let mut client = machine.serve_all_but_critical().await;
    let backup = json!({"paths": ["/srv/lsa-source"], "destination": "/srv/lsa-backups"});
    // The first call installs the script.
    let first = client.envelope("bak_create", backup.clone()).await;
    assert_eq!(first["status"], "success", "{first}");
    machine.sh(
        "rm -rf /srv/lsa-backups/*; i=0; while [ $i -lt 300 ]; do head -c 100000 /dev/urandom >/srv/lsa-source/$i; i=$((i+1)); done
        setsid /usr/local/lib/linux-sysadmin/backup create --destination=local:///srv/lsa-backups -- /srv/lsa-source >/dev/null 2>&1 &
        until ls /srv/lsa-backups/.incomplete-*/tree/srv/lsa-source/1* >/dev/null 2>&1; do kill -0 $! || exit 1; sleep 0.01; done
        kill -KILL -$!",
    );
    let listed = client.envelope("bak_list", json!({"destination": "/srv/lsa-backups"})).await;
    assert_eq!(listed["data"][0]["kind"], "incomplete", "{listed}");
    let again = client.envelope("bak_create", backup).await;
    assert_eq!(again["status"], "success", "{again}");
    let verified = client
        .envelope("bak_verify", json!({"backup_id": "latest", "destination": "/srv/lsa-backups"}))
        .await;
    let counts = ["corrupt", "missing", "changed", "extra"].map(|kind| verified["data"][kind].clone());
    assert_eq!(counts, [json!(0), json!(0), json!(0), json!(0)], "{verified}");
}

#[tokio::test]
async fn a_timer_makes_backups() {
    let Some(machine) = Changing::by(way(), "a_timer_makes_backups", PREPARE, CLEAN) else {
        return;
    };
    let mut client = machine.serve_all_but_critical().await;
    let schedule = json!({
        "name": "lsa", "schedule": "30 2 * * 1-5", "paths": ["/srv/lsa-source"], "destination": "/srv/lsa-backups", "keep_daily": 1,
        "keep_weekly": 0, "keep_monthly": 0,
    });
    let preview = machine.shows(&mut client, "bak_schedule", &schedule).await;
    machine.does(&mut client, "bak_schedule", &schedule, &preview).await;
    machine.holds_already(&mut client, "bak_schedule", &schedule).await;
    assert_eq!(machine.sh("systemctl is-active linux-sysadmin-backup-lsa.timer"), "active\n");
    machine.sh("systemctl start linux-sysadmin-backup-lsa.service && systemctl start linux-sysadmin-backup-lsa.service");
    let listed = client.envelope("bak_list", json!({"destination": "lsa"})).await;
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed["data"][0]["label"], "lsa", "{listed}");
    let destinations = client.envelope("bak_destinations", json!({})).await;
    assert_eq!(destinations["data"][0].get("problems"), None, "{destinations}");
    assert!(destinations["data"][0]["last"].is_string(), "{destinations}");
    let remove = json!({"name": "lsa", "remove": true});
    let preview = machine.shows(&mut client, "bak_schedule", &remove).await;
    machine.does(&mut client, "bak_schedule", &remove, &preview).await;
    assert_eq!(machine.sh("ls /etc/systemd/system | grep -c linux-sysadmin-backup || true"), "0\n");
    assert_eq!(machine.sh("ls /srv/lsa-backups | wc -l"), "1\n");
}
