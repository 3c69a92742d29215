//! The tools' answers agree with the machine, which is asked by other means.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use linux_sysadmin_tests::{Home, Host, modules, warmed};
use serde_json::{Value, json};

/// Locked by tests in which a service fails, since another test would see it come and go.
static FAILING: Mutex<()> = Mutex::new(());

/// Calls a tool on a host, through the real binary there.
fn call(host: &Host, tool: &str, arguments: &Value) -> Value {
    let text =
        host.run(&["/opt/linux-sysadmin/linux-sysadmin", "call", tool, "--args", &arguments.to_string()]);
    let envelope: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(envelope["status"], "success", "{envelope}");
    envelope
}

/// The properties of these units, by `systemctl show`.
fn shown(host: &Host, properties: &str, units: &[String]) -> Vec<BTreeMap<String, String>> {
    let property = format!("--property={properties}");
    let mut argv = vec!["systemctl", "show", "--timestamp=unix", &property, "--"];
    argv.extend(units.iter().map(String::as_str));
    let text = host.run(&argv);
    let block = |block: &str| {
        let pairs = block.lines().filter_map(|line| line.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    text.trim().split("\n\n").map(block).collect()
}

#[test]
fn every_service_is_listed_with_the_state_that_systemctl_gives() {
    let _turn = FAILING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(host) = warmed("every_service_is_listed_with_the_state_that_systemctl_gives", "debian1") else {
        return;
    };
    host.nobody_is_leaving();
    let envelope = call(&host, "svc_list", &json!({"limit": 10000}));
    assert_eq!(envelope["truncated"], false);
    let listed: BTreeMap<String, Value> = envelope["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|item| (format!("{}.service", item["service"].as_str().expect("a name")), item.clone()))
        .collect();

    // The list is complete by systemctl's tables: it has every loaded unit that exists, and every installed unit file that
    // is no template and no alias.
    let units =
        host.run(&["systemctl", "list-units", "--all", "--type=service", "--plain", "--no-legend", "--full"]);
    let mut expected: BTreeSet<String> = units
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.get(1) != Some(&"not-found"))
        .map(|words| words[0].to_owned())
        .collect();
    let files =
        host.run(&["systemctl", "list-unit-files", "--type=service", "--plain", "--no-legend", "--full"]);
    for line in files.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if !words[0].contains("@.") && words[1] != "alias" {
            expected.insert(words[0].to_owned());
        }
    }
    // systemd forgets the units of other tests some time after they are removed, perhaps between the two askings.
    expected.retain(|name| !name.starts_with("lsa-"));
    let names: BTreeSet<String> = listed.keys().filter(|name| !name.starts_with("lsa-")).cloned().collect();
    assert_eq!(names, expected, "the services that are listed, and those that there are");

    // Each unit is compared.
    let names: Vec<String> = names.into_iter().collect();
    let states = shown(&host, "Id,ActiveState,SubState,UnitFileState,Description", &names);
    assert_eq!(states.len(), names.len());
    for (name, state) in names.iter().zip(&states) {
        let item = &listed[name];
        for (field, property) in [("active_state", "ActiveState"), ("sub_state", "SubState")] {
            assert_eq!(item[field], state[property], "{name}: {item}");
        }
        let enabled = item["enabled"].as_str().unwrap_or_default();
        assert_eq!(enabled, state["UnitFileState"], "{name}: {item}");
        if let Some(description) = item.get("description") {
            assert_eq!(description, &json!(state["Description"]), "{name}");
        }
    }
    assert!(names.len() > 50 && names.contains(&"nginx.service".to_owned()), "{names:?}");
}

#[test]
fn a_failed_service_comes_first_and_the_filter_finds_it() {
    let _turn = FAILING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(host) = warmed("a_failed_service_comes_first_and_the_filter_finds_it", "debian1") else {
        return;
    };
    let unit = "linux-sysadmin-test-fails";
    let started = host.command(&["systemd-run", &format!("--unit={unit}"), "--wait", "false"]).output();
    assert!(!started.expect("systemd-run").status.success());
    let all = call(&host, "svc_list", &json!({}));
    assert_eq!(all["data"][0]["service"], unit, "{}", all["data"][0]);
    let found = call(&host, "svc_list", &json!({"filter": "failed"}));
    assert_eq!(found["data"][0]["active_state"], "failed");
    let status = call(&host, "svc_status", &json!({"service": unit}));
    assert_eq!(status["data"]["active_state"], "failed");
    assert_eq!(status["data"]["exit_code"], 1, "{status}");
    host.run(&["systemctl", "reset-failed", unit]);
}

#[test]
fn the_status_of_nginx_is_what_systemctl_shows() {
    let Some(host) = warmed("the_status_of_nginx_is_what_systemctl_shows", "debian1") else { return };
    let properties = "ActiveState,SubState,UnitFileState,MainPID,FragmentPath,NRestarts,ExecMainStartTimestamp,Description";
    let state = shown(&host, properties, &["nginx.service".to_owned()]).remove(0);
    let status = call(&host, "svc_status", &json!({"service": "nginx"}));
    let data = &status["data"];
    assert_eq!(data["service"], "nginx");
    assert_eq!(data["active_state"], state["ActiveState"]);
    assert_eq!(data["sub_state"], state["SubState"]);
    assert_eq!(data["enabled"], state["UnitFileState"]);
    assert_eq!(data["pid"].to_string(), state["MainPID"]);
    assert_eq!(data["unit_file"], state["FragmentPath"]);
    assert_eq!(data["description"], state["Description"]);
    let started = state["ExecMainStartTimestamp"].trim_start_matches('@');
    let said = host.run(&["date", "--utc", "+%Y-%m-%dT%H:%M:%SZ", &format!("--date=@{started}")]);
    assert_eq!(data["started_at"], said.trim());
    for other in [
        "nginx.service",
        "sshd",
        "ssh.service",
        "cron.service",
        "systemd-tmpfiles-clean.timer",
        "dbus.socket",
    ] {
        let data = &call(&host, "svc_status", &json!({"service": other}))["data"];
        let state = host.run(&["systemctl", "show", "--value", "--property=ActiveState", "--", other]);
        assert_eq!(data["active_state"], state.trim(), "{other}");
    }
}

#[test]
fn every_timer_is_listed_with_the_times_that_systemctl_gives() {
    let Some(host) = warmed("every_timer_is_listed_with_the_times_that_systemctl_gives", "debian1") else {
        return;
    };
    let table = || -> Vec<Value> {
        let table = host.run(&["systemctl", "list-timers", "--all", "--output=json"]);
        serde_json::from_str(&table).expect("JSON")
    };
    let times = |table: &[Value]| -> Vec<Value> {
        table.iter().map(|row| json!([row["unit"], row["next"], row["last"]])).collect()
    };
    // Where units are loaded anew meanwhile, a timer with a random delay gets another one.
    let looked = (0..10).find_map(|_| {
        let before = table();
        let envelope = call(&host, "timer_list", &json!({"limit": 10000}));
        let after = table();
        (times(&before) == times(&after)).then_some((envelope, after))
    });
    let (envelope, table) = looked.expect("the timers stay as they are for a moment");
    let listed = envelope["data"].as_array().expect("a list");
    for row in &table {
        let item = listed.iter().find(|item| item["timer"] == row["unit"]);
        let Some(item) = item else {
            // systemd lists a name for a while that a program has only asked about.
            let unit = row["unit"].as_str().expect("a text");
            let state = host.run(&["systemctl", "show", "--value", "--property=LoadState", "--", unit]);
            assert_eq!(state.trim(), "not-found", "{row} is missing");
            continue;
        };
        // A timer that isn't loaded activates nothing, which systemctl gives as an empty text.
        assert_eq!(item["activates"].as_str().unwrap_or_default(), row["activates"], "{item}");
        for field in ["next", "last"] {
            let said = item.get(field).and_then(Value::as_str).unwrap_or_default();
            let expected = match row[field].as_u64() {
                None | Some(0) => String::new(),
                Some(microseconds) => {
                    let at = format!("--date=@{}", microseconds / 1_000_000);
                    host.run(&["date", "--utc", "+%Y-%m-%dT%H:%M:%SZ", &at]).trim().to_owned()
                }
            };
            assert_eq!(said, expected, "{field} of {item}, and {row}");
        }
    }
    let units =
        host.run(&["systemctl", "list-unit-files", "--type=timer", "--plain", "--no-legend", "--full"]);
    let installed =
        units.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| !name.contains("@."));
    let known: BTreeSet<_> = listed.iter().filter_map(|item| item["timer"].as_str()).collect();
    for name in installed {
        assert!(known.contains(name), "{name} is installed and not listed");
    }
    assert!(table.len() >= 5, "{table:?}");
}

/// Compares figures that don't change: total memory, boot time, cores.
fn fixed_figures(meminfo: &str, stat: &str, memory: &Value, uptime: &Value) {
    let number = |text: &str, name: &str| -> u64 {
        let line =
            text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name}"));
        line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{line}"))
    };
    let total = number(meminfo, "MemTotal:") as f64 / 1024.0;
    let said = memory["data"]["total_mb"].as_f64().unwrap_or_else(|| panic!("no total_mb in {memory}"));
    assert!((said - total).abs() < 0.1, "{said} and {total}");
    let cores = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
    assert_eq!(uptime["data"]["cores"], cores);
    let boot = number(stat, "btime ");
    let output = std::process::Command::new("date")
        .args(["--utc", "+%Y-%m-%dT%H:%M:%SZ", &format!("--date=@{boot}")])
        .output()
        .expect("date");
    assert_eq!(uptime["data"]["booted_at"], String::from_utf8_lossy(&output.stdout).trim(), "{uptime}");
}

#[test]
fn memory_cores_and_boot_time_are_those_of_this_machine() {
    let home = Home::new();
    let (_, memory) = home.call(&modules(), "perf_memory", json!({}));
    let (_, uptime) = home.call(&modules(), "perf_uptime", json!({}));
    let meminfo = std::fs::read_to_string("/proc/meminfo").expect("/proc");
    let stat = std::fs::read_to_string("/proc/stat").expect("/proc");
    fixed_figures(&meminfo, &stat, &memory, &uptime);
}

#[test]
fn memory_cores_and_boot_time_are_those_of_the_host() {
    let Some(host) = warmed("memory_cores_and_boot_time_are_those_of_the_host", "debian1") else { return };
    let memory = call(&host, "perf_memory", &json!({}));
    let uptime = call(&host, "perf_uptime", &json!({}));
    fixed_figures(&host.run(&["cat", "/proc/meminfo"]), &host.run(&["cat", "/proc/stat"]), &memory, &uptime);
}

#[test]
fn the_session_says_what_the_host_is() {
    let Some(host) = warmed("the_session_says_what_the_host_is", "debian1") else { return };
    let session = call(&host, "sysadmin_session_info", &json!({}));
    let data = &session["data"];
    assert_eq!(data["distro"]["hostname"], host.run(&["hostname"]).trim());
    assert_eq!(data["distro"]["kernel"], host.run(&["uname", "-r"]).trim());
    assert_eq!(data["distro"]["family"], "debian");
    assert_eq!(data["distro"]["init_system"], "systemd");
    assert_eq!(data["distro"]["package_manager"], "apt");
    assert_eq!(data["distro"]["firewall_backend"], "ufw");
    assert_eq!(data["sudo_available"], true);
    assert_eq!(data["privilege"]["user"], "root");
    let hashes = host.run(&["sha256sum", "/opt/linux-sysadmin/modules/cron.wasm"]);
    let shown = call(&host, "sysadmin_session_info", &json!({"show_modules": true}));
    let cron =
        shown["data"]["modules"].as_array().expect("a list").iter().find(|module| module["name"] == "cron");
    assert_eq!(cron.expect("cron")["sha256"], hashes.split(' ').next().expect("a hash"));

    // The same holds for ordinary users, with sudo and without.
    let as_user = |user: &str| {
        let cache = format!("/srv/lsa-agreement-{user}");
        host.warm(user, &cache);
        let variable = format!("XDG_CACHE_HOME={cache}");
        let program = "/opt/linux-sysadmin/linux-sysadmin";
        let text = host.run(&[
            "runuser",
            "-u",
            user,
            "--",
            "env",
            &variable,
            program,
            "call",
            "sysadmin_session_info",
        ]);
        host.run(&["rm", "-r", &cache]);
        serde_json::from_str::<Value>(&text).expect("JSON")["data"].clone()
    };
    let admin = as_user("admin");
    assert_eq!((&admin["privilege"]["user"], &admin["sudo_available"]), (&json!("admin"), &json!(true)));
    assert!(admin.get("degraded_mode").is_none(), "{admin}");
    let nobody = as_user("nobody");
    assert_eq!(
        (&nobody["sudo_available"], &nobody["degraded_mode"]),
        (&json!(false), &json!(true)),
        "{nobody}"
    );
}
