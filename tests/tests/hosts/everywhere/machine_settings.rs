//! Tests on a real host what is said of the clock, and that a name, a time zone and a locale are set. hostnamectl, timedatectl
//! and chronyc say the same.

use linux_sysadmin_tests::{Changing, way};
use serde_json::json;

const CLEAN: &str = r#"
test -e /run/lsa-hostname || exit 0
hostnamectl set-hostname "$(cat /run/lsa-hostname)"
cat /run/lsa-hosts > /etc/hosts
timedatectl set-timezone Etc/UTC
rm -f /run/lsa-hostname /run/lsa-hosts
"#;
const PREPARE: &str = "cat /etc/hostname > /run/lsa-hostname; cat /etc/hosts > /run/lsa-hosts";

#[tokio::test]
async fn the_clock_is_told_as_other_programs_tell_it() {
    let test = "the_clock_is_told_as_other_programs_tell_it";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let mut client = machine.serve_default().await;
    let said = client.envelope("machine_time", json!({})).await;
    let data = &said["data"];
    let shown = machine.sh("timedatectl show");
    let zone = shown.lines().find_map(|line| line.strip_prefix("Timezone=")).expect("a time zone");
    assert_eq!(data["time_zone"], zone, "{said}");
    let unix =
        machine.sh(&format!("date --date '{}' +%s; date +%s", data["time"].as_str().unwrap_or_default()));
    let mut seconds = unix.lines().map(|line| line.parse::<i64>().expect("seconds"));
    let (told, now) = (seconds.next().expect("told"), seconds.next().expect("now"));
    assert!((now - 120..=now).contains(&told), "{said} {unix}");
    // No server can be reached from the hosts.
    assert_eq!(data["synchronized"], false, "{said}");
    let runs = machine
        .sh("systemctl list-units --state=active --plain --no-legend 'chrony*.service' | cut -d' ' -f1");
    match runs.trim() {
        "" => assert!(data.get("by").is_none() && data["why"].is_string(), "{said}"),
        unit => {
            assert_eq!(data["by"], unit, "{said}");
            assert!(machine.sh("chronyc -c tracking").contains("Not synchronised"), "{said}");
            assert_eq!(data["next"], format!("svc_logs service={unit}"), "{said}");
        }
    }
}

#[tokio::test]
async fn a_name_and_a_time_zone_are_set_and_shown_by_other_programs() {
    let test = "a_name_and_a_time_zone_are_set_and_shown_by_other_programs";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let mut client = machine.serve_default().await;
    let old = machine.read("/etc/hostname").trim().to_owned();
    let arguments = json!({"hostname": "lsa-new", "timezone": "Europe/Berlin"});
    let set = client.envelope("machine_set", arguments.clone()).await;
    assert_eq!(set["status"], "success", "it is done unasked: {set}");
    assert_eq!(
        set["data"]["changes"],
        json!([
            {"setting": "hostname", "before": old, "value": "lsa-new"},
            {"setting": "timezone", "before": "Etc/UTC", "value": "Europe/Berlin"},
        ])
    );
    assert_eq!(machine.sh("hostnamectl --static").trim(), "lsa-new");
    assert_eq!(machine.sh("hostname").trim(), "lsa-new");
    assert!(machine.holds("getent hosts lsa-new"), "{}", machine.read("/etc/hosts"));
    assert!(!machine.read("/etc/hosts").contains(&old), "{}", machine.read("/etc/hosts"));
    assert!(machine.sh("timedatectl show").contains("Timezone=Europe/Berlin"));
    assert!(machine.holds("readlink /etc/localtime | grep --quiet Europe/Berlin"));
    machine.holds_already(&mut client, "machine_set", &arguments).await;
    for (arguments, code) in [
        (json!({"hostname": "under_score"}), "INVALID_HOSTNAME"),
        (json!({"timezone": "../../etc/passwd"}), "UNKNOWN_TIME_ZONE"),
        (json!({"locale": "xx_XX.UTF-8"}), "UNKNOWN_LOCALE"),
    ] {
        machine.refuses(&mut client, "machine_set", &arguments, code).await;
    }
}
