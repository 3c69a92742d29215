//! The rules of folding, on answers that the tools gave on recorded machines: Debian 12 with systemd 252, and a small
//! virtual machine that was busy.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

mod unfolded;

fn svc_list() -> Value {
    serde_json::from_str(include_str!("answers/svc_list.json")).unwrap()
}

fn timer_list() -> Value {
    serde_json::from_str(include_str!("answers/timer_list.json")).unwrap()
}

fn processes() -> Value {
    serde_json::from_str(include_str!("answers/perf_top_processes.json")).unwrap()
}

/// An answer's data, summary and severity.
fn perf_overview() -> Value {
    serde_json::from_str(include_str!("answers/perf_overview.json")).unwrap()
}

/// The session information of a host with this name.
fn session_info(host: &str) -> Value {
    json!({
        "target_host": host,
        "connection": {"address": format!("10.0.0.{}", host.len()), "port": 22, "user": "admin"},
        "distro": {
            "family": "debian", "name": "Debian GNU/Linux", "version": "12", "codename": "bookworm", "hostname": host,
            "kernel": "6.1.0-28-amd64", "architecture": "x86_64", "init_system": "systemd", "package_manager": "apt",
            "firewall_backend": "nftables", "container_runtime": "none", "log_system": "journald",
            "user_management": "adduser",
        },
        "timezone": "Europe/Berlin", "virtualization": "kvm", "sudo_available": true,
        "privilege": {"user": "admin", "uid": 1000, "root": false, "sudo": true},
        "mac_system": {"type": "apparmor", "mode": "enforcing"},
        "safety": {"mode": "system", "confirmation": "auto", "confirmation_threshold": "high"},
        "integration_mode": "complementary",
        "server": {"version": "0.1.0", "contract": "sysadmin:module@0.2.0"},
        "config_path": "/home/admin/.config/linux-sysadmin/config.yaml",
        "modules": [
            {"name": "services", "version": "0.1.0", "sha256": "ab".repeat(32), "tools": 22},
            {"name": "cron", "version": "0.1.0", "sha256": "cd".repeat(32), "tools": 5},
        ],
    })
}

fn name(host: usize) -> String {
    format!("web{:02}", host + 1)
}

fn answered(host: usize, data: Value) -> HostAnswer {
    HostAnswer { host: name(host), data, summary: None, severity: None, notes: Vec::new(), truncated: false }
}

/// Folds the answers of hosts, each with data that is made from its number.
fn folded(hosts: usize, data: impl Fn(usize) -> Value) -> FoldedAnswer {
    fold((0..hosts).map(|host| answered(host, data(host))).collect())
}

fn found<'a>(list: &'a Value, member: &str, value: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|item| item[member] == value).unwrap()
}

fn change<'a>(list: &'a mut Value, member: &str, value: &str) -> &'a mut Value {
    list.as_array_mut().unwrap().iter_mut().find(|item| item[member] == value).unwrap()
}

const LOSSY: &str = "Not everything is said of every host: $range is the least, the middle and the greatest value \
                     (low and high: whose), $examples are some, further counts what is left out. Ask one host for its \
                     own.";
const REORDERED: &str =
    "Some items don't stand in the same order on every host: ask one host for its own, where order matters.";
const LABELLED: &str = "$1 and so on stand for the hosts that are named where it stands first.";

/// A number that looks measured.
fn measured(host: usize, scale: f64) -> f64 {
    ((host * 7919 % 101) as f64 * scale).round() / 10.0
}

#[test]
fn fifty_hosts_that_say_the_same_are_one() {
    for data in [svc_list(), timer_list(), processes(), perf_overview()["data"].take(), session_info("db")] {
        let folded = folded(50, |_| data.clone());
        assert_eq!((&folded.data, folded.notes.len()), (&data, 0));
    }
}

#[test]
fn who_differs_is_named_with_what_it_says() {
    let folded = folded(50, |host| {
        let mut list = svc_list();
        if host == 6 {
            let nginx = change(&mut list, "service", "nginx");
            (nginx["active_state"], nginx["sub_state"]) = (json!("failed"), json!("failed"));
            nginx["result"] = json!("exit-code");
        }
        list
    });
    let nginx = found(&folded.data, "service", "nginx");
    assert_eq!(
        nginx["active_state"],
        json!({"$differs": [{"value": "failed", "hosts": ["web07"]}, {"value": "active", "hosts": 49}]})
    );
    assert_eq!(nginx["result"], json!({"$on": ["web07"], "$value": "exit-code"}));
    assert_eq!(nginx["enabled"], "enabled");
    assert!(folded.notes.is_empty());
    let bytes = folded.data.to_string().len() as f64 / svc_list().to_string().len() as f64;
    assert!(bytes < 1.2, "{bytes}");
}

#[test]
fn an_item_says_who_has_it_or_who_lacks_it() {
    let folded = folded(50, |host| {
        let mut list = svc_list();
        let items = list.as_array_mut().unwrap();
        if [3, 40].contains(&host) {
            items.retain(|item| item["service"] != "nginx");
        }
        if host == 8 {
            items.push(json!({"service": "xmrig", "active_state": "active", "sub_state": "running"}));
        }
        list
    });
    assert_eq!(found(&folded.data, "service", "nginx")["$not_on"], json!(["web04", "web41"]));
    let expected =
        json!({"$on": ["web09"], "service": "xmrig", "active_state": "active", "sub_state": "running"});
    assert_eq!(found(&folded.data, "service", "xmrig"), &expected);
}

#[test]
fn numbers_of_many_hosts_are_their_ends_and_the_middle() {
    let folded = folded(50, |host| {
        let mut data = perf_overview()["data"].take();
        data["cpu"]["usage_pct"] = json!(if host == 16 { 99.9 } else { measured(host, 2.0) });
        data["load_average"] = json!([measured(host, 0.5), measured(host, 0.4), 1.0]);
        data["cpu"]["cores"] = json!(if host < 10 { 4 } else { 8 });
        data
    });
    let expected = json!({"$range": [0.0, 9.4, 99.9], "low": ["web01"], "high": ["web17"]});
    assert_eq!(folded.data["cpu"]["usage_pct"], expected);
    assert_eq!(folded.data["load_average"][2], 1.0);
    assert!(folded.data["load_average"][0]["$range"][1].is_number());
    let four = ["web01", "web02", "web03", "web04", "web05", "web06", "web07", "web08", "web09", "web10"];
    let cores = json!({"$differs": [{"value": 4, "hosts": four}, {"value": 8, "hosts": 40}]});
    assert_eq!(folded.data["cpu"]["cores"], cores);
    assert_eq!(folded.notes, [LOSSY]);
}

#[test]
fn a_host_that_was_started_at_another_time_is_named() {
    let folded = folded(50, |host| {
        let day = if host == 30 { 21 } else { 1 };
        json!({"started_at": format!("2026-11-{day:02}T08:{:02}:00Z", host % 50)})
    });
    let range = ["2026-11-01T08:00:00Z", "2026-11-01T08:24:00Z", "2026-11-21T08:30:00Z"];
    assert_eq!(folded.data["started_at"], json!({"$range": range, "low": ["web01"], "high": ["web31"]}));
}

#[test]
fn a_text_that_each_host_has_otherwise_is_shown_by_examples() {
    let folded =
        folded(50, |host| json!({"machine_id": format!("{:032x}", host * 7919), "state": "running"}));
    let expected = json!({
        "$examples": [
            {"value": format!("{:032x}", 0), "hosts": ["web01"]},
            {"value": format!("{:032x}", 7919), "hosts": ["web02"]},
            {"value": format!("{:032x}", 2 * 7919), "hosts": ["web03"]},
        ],
        "values": 50,
    });
    assert_eq!(folded.data, json!({"machine_id": expected, "state": "running"}));
    assert_eq!(folded.notes, [LOSSY]);
}

#[test]
fn outliers_are_named_however_many_values_they_have() {
    let folded = folded(
        50,
        |host| json!({"kernel": if host % 3 == 0 { format!("6.1.{host}") } else { "6.1.0".into() }}),
    );
    let differs = folded.data["kernel"]["$differs"].as_array().unwrap();
    assert_eq!(differs.last().unwrap(), &json!({"value": "6.1.0", "hosts": 34}));
    let outliers: Vec<String> = (1..50).filter(|host| host % 3 == 0).map(name).collect();
    let named = |group: &Value| group["hosts"].as_array().cloned().unwrap_or_default();
    let mut all: Vec<Value> = differs.iter().flat_map(named).collect();
    all.sort_by_key(Value::to_string);
    assert_eq!(json!(all), json!(outliers));
    assert!(differs.iter().any(|group| group["further"] == 6));
    assert_eq!(folded.notes, [LOSSY]);
}

#[test]
fn a_hosts_own_name_is_the_same_everywhere_and_another_name_is_not() {
    let mut infos: Vec<Value> = (0..50).map(|host| session_info(&name(host))).collect();
    infos[11]["distro"]["hostname"] = json!("localhost");
    let folded = folded(50, |host| infos[host].clone());
    assert_eq!(folded.data["target_host"], json!({"$differs": [{"value": "$host", "hosts": 50}]}));
    let expected =
        json!({"$differs": [{"value": "localhost", "hosts": ["web12"]}, {"value": "$host", "hosts": 49}]});
    assert_eq!(folded.data["distro"]["hostname"], expected);
    assert!(folded.notes.is_empty());
    let bytes = folded.data.to_string().len() as f64 / infos[0].to_string().len() as f64;
    assert!(bytes < 1.2, "{bytes}");
}

#[test]
fn hosts_that_are_named_again_have_a_label() {
    let folded = folded(50, |host| {
        let mut info = session_info("db");
        if host % 2 == 0 {
            info["distro"]["version"] = json!("11");
            info["distro"]["codename"] = json!("bullseye");
            info["distro"]["kernel"] = json!("5.10.0-33-amd64");
        }
        info
    });
    let even: Vec<String> = (0..50).step_by(2).map(name).collect();
    let distro = &folded.data["distro"];
    assert_eq!(distro["version"]["$differs"][0], json!({"value": "11", "hosts": {"$1": even}}));
    assert_eq!(distro["kernel"]["$differs"][0], json!({"value": "5.10.0-33-amd64", "hosts": "$1"}));
    assert_eq!(folded.notes, [LABELLED]);
}

#[test]
fn a_process_is_no_other_process_with_the_same_number() {
    let folded = folded(2, |host| {
        let mut list = processes();
        if host == 1 {
            change(&mut list, "name", "cron")["pid"] = json!(14407);
            change(&mut list, "name", "sshd")["pid"] = json!(14394);
        }
        list
    });
    let cron = found(&folded.data, "name", "cron");
    let expected =
        json!({"$differs": [{"value": 14394, "hosts": ["web01"]}, {"value": 14407, "hosts": ["web02"]}]});
    assert_eq!((&cron["pid"], &cron["command"]), (&expected, &json!("/usr/sbin/cron -f")));
}

#[test]
fn lines_are_folded_where_they_are_equal_and_keep_every_hosts_order() {
    let folded = folded(3, |host| match host {
        0 => json!({"lines": ["start", "a", "b", "end"]}),
        1 => json!({"lines": ["start", "x", "end"]}),
        _ => json!({"lines": ["start", "a", "b", "end", "end"]}),
    });
    let expected = json!({"lines": [
        "start",
        {"$not_on": ["web02"], "$items": ["a", "b"]},
        {"$on": ["web02"], "$value": "x"},
        "end",
        {"$on": ["web03"], "$value": "end"},
    ]});
    assert_eq!((folded.data, folded.notes), (expected, vec![]));
}

#[test]
fn lists_that_differ_in_their_order_alone_are_told_as_they_are() {
    let folded = folded(
        9,
        |host| json!({"dns": if host == 4 { ["9.9.9.9", "1.1.1.1"] } else { ["1.1.1.1", "9.9.9.9"] }}),
    );
    let expected = json!({"dns": [
        {"$not_on": ["web05"], "$items": ["1.1.1.1", "9.9.9.9"]},
        {"$on": ["web05"], "$items": ["9.9.9.9", "1.1.1.1"]},
    ]});
    assert_eq!((folded.data, folded.notes), (expected, vec![]));
}

#[test]
fn what_needs_attention_anywhere_comes_early_and_that_the_order_is_another_is_said() {
    let folded = folded(50, |host| {
        let mut list = svc_list();
        if host == 6 {
            let items = list.as_array_mut().unwrap();
            let at = items.iter().position(|item| item["service"] == "nginx").unwrap();
            let mut nginx = items.remove(at);
            nginx["active_state"] = json!("failed");
            items.insert(0, nginx);
        }
        list
    });
    assert_eq!(folded.data[1]["service"], "nginx");
    assert_eq!(folded.notes, [REORDERED]);
}

#[test]
fn a_file_that_one_host_has_otherwise_is_told_line_by_line() {
    let config = "# How others come in.\nPort 22\nPermitRootLogin no\nPasswordAuthentication no\nX11Forwarding no\n\
                  UsePAM yes\nSubsystem sftp internal-sftp\n";
    let folded = folded(50, |host| {
        let text = if host == 2 { config.replace("Login no", "Login yes") } else { config.to_owned() };
        json!({"text": text})
    });
    let diff = "@@ -3 +3 @@\n-PermitRootLogin no\n+PermitRootLogin yes\n";
    let expected = json!({"$differs": [{"diff": diff, "hosts": ["web03"]}, {"value": config, "hosts": 49}]});
    assert_eq!(folded.data["text"], expected);
}

#[test]
fn values_of_another_kind_are_told_apart() {
    let folded = folded(30, |host| match host {
        4 => json!({"disk": null}),
        5 => json!({"disk": ["sda"]}),
        host => json!({"disk": {"name": "vda", "used_mb": host * host}}),
    });
    let groups = folded.data["disk"]["$differs"].as_array().unwrap();
    assert_eq!(groups[0], json!({"value": null, "hosts": ["web05"]}));
    assert_eq!(groups[1], json!({"value": ["sda"], "hosts": ["web06"]}));
    assert_eq!((&groups[2]["value"]["name"], &groups[2]["hosts"]), (&json!("vda"), &json!(28)));
    assert!(groups[2]["value"]["used_mb"]["$range"].is_array());

    let folded = self::folded(
        30,
        |host| json!({"mb": if host == 4 { json!("unlimited") } else { json!(host * host) }}),
    );
    let groups = &folded.data["mb"]["$differs"];
    assert_eq!(groups[0], json!({"value": "unlimited", "hosts": ["web05"]}));
    assert!(groups[1]["value"]["$range"].is_array());
}

#[test]
fn side_by_side_is_said_where_it_is_shorter() {
    let folded = folded(2, |host| json!({"up": true, "cpu": {"a": host, "b": host + 2, "c": host + 3}}));
    let expected = json!({"$differs": [
        {"value": {"a": 0, "b": 2, "c": 3}, "hosts": ["web01"]}, {"value": {"a": 1, "b": 3, "c": 4}, "hosts": ["web02"]},
    ]});
    assert_eq!(folded.data, json!({"up": true, "cpu": expected}));
}

#[test]
fn a_name_of_the_tools_own_is_no_sign_of_folding() {
    let data = json!({"$differs": [{"value": "fine", "hosts": 49}], "$$x": 1, "plain": {"$on": ["web01"]}});
    let shown =
        json!({"$$differs": [{"value": "fine", "hosts": 49}], "$$$x": 1, "plain": {"$$on": ["web01"]}});
    assert_eq!(folded(50, |_| data.clone()).data, shown);
    let folded = folded(50, |host| if host == 0 { data.clone() } else { json!({"plain": 1}) });
    assert_eq!(
        folded.data["$$differs"],
        json!({"$on": ["web01"], "$value": [{"value": "fine", "hosts": 49}]})
    );
    assert_eq!(folded.data["plain"]["$differs"][0]["value"], json!({"$$on": ["web01"]}));
}

#[test]
fn a_secret_stays_one_when_hosts_have_others() {
    let folded = folded(8, |host| {
        json!({
            "password": format!("hunter{host}"),
            "variables": [{"name": "DB_PASSWORD", "value": format!("hunter{host}")}],
            "command": ["mysql", "--password", format!("hunter{host}")],
        })
    });
    assert!(!folded.data.to_string().contains("hunter"), "{}", folded.data);
}

#[test]
fn the_worst_comes_first_in_a_summary() {
    let answers: Vec<HostAnswer> = (0..50)
        .map(|host| {
            let severity = ["critical", "warning", "info"][host.min(2)];
            let summary = format!("CPU usage is {host}%.");
            HostAnswer {
                summary: Some(summary),
                severity: Some(severity.to_owned()),
                ..answered(host, perf_overview()["data"].take())
            }
        })
        .rev()
        .collect();
    let folded = fold(answers);
    assert_eq!(folded.severity.as_deref(), Some("critical"));
    let expected = "web01 (critical): CPU usage is 0%.\nweb02 (warning): CPU usage is 1%.\n\
                    web50 (info): CPU usage is 49%.\nweb49 (info): CPU usage is 48%.\n46 more hosts (info)";
    assert_eq!(folded.summary.as_deref(), Some(expected));
    assert_eq!(folded.notes, [LOSSY]);
}

#[test]
fn a_summary_of_all_is_said_once_and_few_are_all_said() {
    let with = |host, summary: &str, severity: &str| HostAnswer {
        summary: Some(summary.to_owned()),
        severity: Some(severity.to_owned()),
        ..answered(host, json!({}))
    };
    let same = fold(vec![with(0, "No bottleneck.", "info"), with(1, "No bottleneck.", "info")]);
    assert_eq!((same.summary.as_deref(), same.severity.as_deref()), (Some("No bottleneck."), Some("info")));
    let all: Vec<HostAnswer> = (0..5).map(|host| with(host, &format!("{host}"), "info")).collect();
    let folded = fold(all);
    assert_eq!(folded.summary.unwrap().lines().count(), 5);
    assert!(folded.notes.is_empty());
    let none = fold(vec![answered(0, json!({})), answered(1, json!({}))]);
    assert_eq!((none.summary, none.severity), (None, None));
}

#[test]
fn whoever_is_not_well_is_named_even_without_a_summary() {
    let answers: Vec<HostAnswer> = (0..50)
        .map(|host| HostAnswer {
            summary: Some(format!("Disk at {host}%.")),
            severity: Some("high".to_owned()),
            ..answered(host, json!({}))
        })
        .take(20)
        .collect();
    let folded = fold(answers);
    let last = folded.summary.as_deref().unwrap().lines().last().unwrap();
    assert_eq!(last, "15 more hosts (high): all but web01, web02, web03, web04, web05");
}

#[test]
fn a_note_says_whose_it_is() {
    let noted = |host, notes: &[&str]| HostAnswer {
        notes: notes.iter().map(|note| (*note).to_owned()).collect(),
        ..answered(host, json!({}))
    };
    let mut answers: Vec<HostAnswer> = (0..10).map(|host| noted(host, &["cut", "old systemd"])).collect();
    answers[3] = noted(3, &["cut", "no journal", "no journal"]);
    let expected = ["cut", "all but web04: old systemd", "web04: no journal"];
    assert_eq!(fold(answers).notes, expected);
}

#[test]
fn notes_are_never_more_than_the_envelope_takes() {
    let noted = |host| HostAnswer {
        notes: (0..20).map(|note| format!("note {note} of {host}")).chain(["common".to_owned()]).collect(),
        ..answered(host, json!({"a": format!("{host}")}))
    };
    let notes = fold((0..50).map(noted).collect()).notes;
    assert_eq!(notes[0], "common");
    assert_eq!(notes[11..], ["990 further notes of hosts are left out", LOSSY]);
}

/// The note about what there was no room for.
fn cut_note(folded: &FoldedAnswer) -> Option<&String> {
    folded.notes.iter().find(|note| note.starts_with("There was room for 256 KiB"))
}

fn is_within(folded: &FoldedAnswer) -> bool {
    folded.truncated
        && cut_note(folded).is_some_and(|note| !note.contains("  "))
        && folded.data.to_string().len() <= 256 << 10
}

#[test]
fn whatever_hosts_say_an_answer_has_bounds() {
    let long = "long ".repeat(200_000);
    let table: [&dyn Fn(usize) -> Value; 9] = [
        &|host| json!({"items": (0..1000).map(|item| json!({"name": format!("{host}-{item}")})).collect::<Vec<_>>()}),
        &|host| json!((0..1000).map(|item| format!("line {item} of {host}")).collect::<Vec<_>>()),
        &|_| json!({"text": long, "$list": vec!["$"; 100_000]}),
        &|host| {
            json!(
                (0..1000)
                    .map(|item| (format!("$member {item} of {host}"), json!(item)))
                    .collect::<Map<_, _>>()
            )
        },
        &|host| json!({"text": format!("{host}\u{200b}").repeat(20_000)}),
        &|host| json!([[[[vec![format!("{host}").repeat(100); 500]]]]]),
        &|host| if host % 2 == 0 { json!(vec![host; 20_000]) } else { json!({"n": vec![host; 20_000]}) },
        &|host| json!(format!("{}\n{host}\n", "line\n".repeat(100_000))),
        &|host| json!({"list": if host % 3 == 0 { vec!["y\u{7}\"".repeat(50_000)] } else { vec![] }}),
    ];
    for (at, data) in table.iter().enumerate() {
        let (one, again) = (folded(20, data), folded(20, data));
        assert!(is_within(&one), "{at}: {} {:?}", one.data.to_string().len(), one.notes);
        assert_eq!(one.data.to_string(), again.data.to_string());
        // The answer uses most of the room.
        assert!(one.data.to_string().len() > 100 << 10, "{at}: {}", one.data.to_string().len());
    }
}

#[test]
fn the_longest_lists_are_cut_first_and_what_is_short_stays_whole() {
    let folded = folded(20, |host| {
        let items = if host == 0 { 20_000 } else { 20 };
        let list: Vec<Value> = (0..items).map(|item| json!({"name": format!("{host}-{item}")})).collect();
        json!({"release": "12", "list": list, "short": (0..5).collect::<Vec<_>>(), "text": "x".repeat(1000)})
    });
    assert!(is_within(&folded));
    assert_eq!(
        (&folded.data["release"], &folded.data["short"], &folded.data["text"]),
        (&json!("12"), &json!([0, 1, 2, 3, 4]), &json!("x".repeat(1000)))
    );
    let shown = folded.data["list"].to_string();
    for host in 1..20 {
        assert!(shown.contains(&format!("\"{host}-19\"")), "{host}");
    }
    let first = shown.matches("\"0-").count();
    assert!(first > 1000, "{first}");
    let mark = folded.data["list"].as_array().unwrap().last().unwrap();
    assert_eq!(mark, &json!({"$cut": 20_000 - first}));
    assert!(cut_note(&folded).unwrap().contains(&format!(" {} items and members ", 20_000 - first)));
}

#[test]
fn of_every_host_as_much_is_given_as_of_the_others() {
    let folded = folded(300, |host| {
        json!(
            (0..100)
                .map(|item| json!({"name": format!("{host}-{item}-{}", "x".repeat(50))}))
                .collect::<Vec<_>>()
        )
    });
    assert!(is_within(&folded));
    let shown = folded.data.to_string();
    let given = |host: usize| shown.matches(&format!("\"{host}-")).count();
    let (least, most) = ((0..300).map(given).min().unwrap(), (0..300).map(given).max().unwrap());
    assert!(least > 0 && most <= least + 1, "{least} {most}");
}

#[test]
fn hosts_of_which_nothing_is_left_are_counted() {
    let folded = folded(300, |host| json!([{"name": format!("{host}-{}", "x".repeat(4000))}]));
    assert!(is_within(&folded));
    let given = folded.data.as_array().unwrap().len() - 1;
    let mark = &folded.data.as_array().unwrap()[given];
    assert_eq!(mark, &json!({"$cut": {"count": 300 - given, "hosts": 300 - given}}));
}

#[test]
fn what_a_listing_was_cut_to_says_nothing_of_what_is_lacking() {
    let says = |names: &[&str], truncated| -> Vec<HostAnswer> {
        let data = |name: &&str| json!({"name": name});
        let answered = |(host, name): (usize, &&str)| HostAnswer {
            truncated: truncated && host == 1,
            ..answered(host, json!([{"name": "a"}, data(name)]))
        };
        names.iter().enumerate().map(answered).collect()
    };
    let folded = fold(says(&["b", "c", "b"], true));
    assert!(folded.truncated);
    let [note] = folded.notes.as_slice() else { panic!("{:?}", folded.notes) };
    assert!(note.starts_with("The listing is cut on web02: what $on and $not_on say"), "{note}");
    assert!(!note.contains("  "), "{note}");
    for (names, truncated) in [(["b", "c", "b"], false), (["b", "b", "b"], true)] {
        let folded = fold(says(&names, truncated));
        assert_eq!((folded.notes.len(), folded.truncated), (0, truncated));
    }
}

#[test]
fn nothing_folds_to_nothing_and_one_to_itself() {
    assert_eq!(fold(vec![]).data, Value::Null);
    assert_eq!(folded(1, |_| svc_list()).data, svc_list());
}
