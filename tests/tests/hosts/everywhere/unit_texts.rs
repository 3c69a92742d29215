//! Shows, masks and limits units of a real host, and holds what the tools say against systemctl.

use linux_sysadmin_tests::{Changing, way};
use serde_json::{Value, json};

/// Makes a unit in a directory where a mask can hide it, one that requires it, and drop-ins of its name, of a prefix of its name
/// and of its type.
const PREPARE: &str = r"
mkdir -p /usr/local/lib/systemd/system
cd /usr/local/lib/systemd/system
cat > lsa-text.service <<'END'
# Why it is so.
[Unit]
Description=Text

[Service]
ExecStart=/bin/sleep 1000
Environment=DB_PASSWORD=hunter2secret MODE=x
CPUQuota=50%
Nice=5

[Install]
WantedBy=multi-user.target
END
printf '[Unit]\nRequires=lsa-text.service\nAfter=lsa-text.service\n[Service]\nExecStart=/bin/sleep 1000\n' > lsa-needs.service
mkdir -p /etc/systemd/system/lsa-text.service.d /etc/systemd/system/lsa-.service.d
printf '[Service]\nExecStart=\nExecStart=/bin/sleep 2000\nCPUQuota=150%%\nUser=nobody\n' > /etc/systemd/system/lsa-text.service.d/more.conf
printf '[Service]\nNice=3\n' > /etc/systemd/system/lsa-.service.d/nice.conf
systemctl daemon-reload
systemctl enable --quiet lsa-text
systemctl start lsa-text lsa-needs
";

const CLEAN: &str = r"
systemctl unmask --quiet lsa-text lsa-needs
systemctl unmask --quiet --runtime lsa-text
systemctl disable --quiet lsa-text
systemctl stop lsa-text lsa-needs
rm -rf /usr/local/lib/systemd/system/lsa-* /etc/systemd/system/lsa-*
systemctl daemon-reload
";

fn changing(test: &str) -> Option<Changing> {
    Changing::by(way(), test, PREPARE, CLEAN)
}

fn service(name: &str) -> Value {
    json!({"service": name})
}

fn property(machine: &Changing, unit: &str, name: &str) -> String {
    machine.sh(&format!("systemctl show --value --property={name} -- {unit}")).trim().to_owned()
}

/// The lines that `systemctl cat` prints of each file, without comments and blank lines.
fn printed(machine: &Changing, unit: &str) -> Vec<String> {
    let printed = machine.sh(&format!("systemctl cat -- {unit}"));
    let lines =
        printed.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with(['#', ';']));
    lines.map(str::to_owned).collect()
}

/// The lines that the tool shows, without their numbers.
fn shown(data: &Value) -> Vec<String> {
    let files = data["files"].as_array().unwrap_or_else(|| panic!("{data}"));
    let texts = files.iter().map(|file| file["text"].as_str().unwrap_or_else(|| panic!("{file}")));
    let lines = texts.flat_map(str::lines);
    lines.map(|line| line.split_once(": ").unwrap_or_else(|| panic!("{line}")).1.to_owned()).collect()
}

#[tokio::test]
async fn a_units_text_is_that_of_systemctl_cat_and_its_values_those_of_systemctl_show() {
    let test = "a_units_text_is_that_of_systemctl_cat_and_its_values_those_of_systemctl_show";
    let Some(machine) = changing(test) else { return };
    let mut client = machine.serve_default().await;
    for unit in
        ["ssh.service", "cron.service", "logrotate.timer", "dbus.socket", "multi-user.target", "user.slice"]
    {
        let envelope = client.envelope("svc_show", service(unit)).await;
        assert_eq!(envelope["status"], "success", "{envelope}");
        let data = &envelope["data"];
        assert_eq!(shown(data), printed(&machine, unit), "{unit}");
        let paths: Vec<&str> =
            data["files"].as_array().into_iter().flatten().filter_map(|file| file["path"].as_str()).collect();
        let known = format!(
            "{} {}",
            property(&machine, unit, "FragmentPath"),
            property(&machine, unit, "DropInPaths")
        );
        assert_eq!(paths.join(" "), known.trim(), "{unit}");
        assert_eq!(
            data["enabled"].as_str().unwrap_or_default(),
            property(&machine, unit, "UnitFileState"),
            "{unit}"
        );
    }
    let envelope = client.envelope("svc_show", service("lsa-text")).await;
    let data = &envelope["data"];
    let own: Vec<String> = printed(&machine, "lsa-text.service")
        .into_iter()
        .map(|line| line.replace("hunter2secret", "[redacted]"))
        .collect();
    assert_eq!(shown(data), own);
    assert!(!envelope.to_string().contains("hunter2secret"), "{envelope}");
    assert_eq!(
        data["files"][0]["overridden"],
        json!({"6": "more.conf:2", "8": "more.conf:4", "9": "nice.conf:2"})
    );
    assert_eq!(data["user"], property(&machine, "lsa-text", "User"));
    assert!(
        property(&machine, "lsa-text", "ExecStart")
            .contains(&format!("argv[]={} ;", data["runs"][0].as_str().unwrap_or("-")))
    );
    assert_eq!(data["limits"]["CPUQuota"]["limit"], "150%");
    assert_eq!(property(&machine, "lsa-text", "CPUQuotaPerSecUSec"), "1.500000s");
    assert_eq!(property(&machine, "lsa-text", "Nice"), "3");
}

#[tokio::test]
async fn what_systemd_has_not_loaded_is_named() {
    let Some(machine) = changing("what_systemd_has_not_loaded_is_named") else { return };
    let mut client = machine.serve_default().await;
    let new = "/etc/systemd/system/lsa-text.service.d/new.conf";
    machine.sh(&format!("printf '[Service]\\nNice=4\\n' > {new}"));
    assert_eq!(property(&machine, "lsa-text", "NeedDaemonReload"), "yes");
    let envelope = client.envelope("svc_show", service("lsa-text")).await;
    assert_eq!(envelope["data"]["not_loaded"], json!([format!("{new} (new)")]), "{envelope}");
    machine.sh(&format!("systemctl daemon-reload; rm {new}"));
    let envelope = client.envelope("svc_show", service("lsa-text")).await;
    assert_eq!(envelope["data"]["not_loaded"], json!([format!("{new} (gone)")]), "{envelope}");
    machine.sh("systemctl daemon-reload");
    let envelope = client.envelope("svc_show", service("lsa-text")).await;
    assert!(envelope["data"]["not_loaded"].is_null(), "{envelope}");
}

#[tokio::test]
async fn a_masked_unit_is_not_started_by_anything_until_it_is_unmasked() {
    let test = "a_masked_unit_is_not_started_by_anything_until_it_is_unmasked";
    let Some(machine) = changing(test) else { return };
    let mut client = machine.serve_all_but_critical().await;
    let both = json!({"service": "lsa-text", "now": true});
    let preview = machine.shows(&mut client, "svc_mask", &both).await;
    let (stop, mask) = (&preview["steps"][0], &preview["steps"][1]);
    assert_eq!(stop["run"], "systemctl stop -- lsa-text.service", "{preview}");
    assert_eq!(
        mask,
        &json!({"run": "systemctl mask -- lsa-text.service", "undo": ["systemctl unmask -- lsa-text.service"]})
    );
    assert!(preview["warnings"].to_string().contains("can't start without it: lsa-needs"), "{preview}");
    machine.does(&mut client, "svc_mask", &both, &preview).await;
    machine.sh("set -e
        test $(readlink /etc/systemd/system/lsa-text.service) = /dev/null
        if systemctl start lsa-text; then exit 1; fi
        if systemctl start lsa-needs; then exit 1; fi");
    assert_eq!(property(&machine, "lsa-text", "UnitFileState"), "masked");
    assert_eq!(property(&machine, "lsa-text", "ActiveState"), "inactive");
    let shown = client.envelope("svc_show", service("lsa-text")).await;
    assert_eq!(shown["data"]["mask"], "/etc/systemd/system/lsa-text.service", "{shown}");
    assert_eq!(
        shown["data"]["files"][0]["path"], "/usr/local/lib/systemd/system/lsa-text.service",
        "{shown}"
    );
    machine.holds_already(&mut client, "svc_mask", &both).await;
    drop(client);

    // A shutdown waits long for processes that ignore its signal, and other tests may have left some.
    machine.sh("pkill -KILL sleep || :");
    machine.host().reboot();
    assert_eq!(property(&machine, "lsa-text", "ActiveState"), "inactive");
    assert_eq!(property(&machine, "lsa-text", "UnitFileState"), "masked");

    let mut client = machine.serve_all_but_critical().await;
    let preview = machine.shows(&mut client, "svc_unmask", &service("lsa-text")).await;
    assert_eq!(preview["command"], "systemctl unmask -- lsa-text.service", "{preview}");
    machine.does(&mut client, "svc_unmask", &service("lsa-text"), &preview).await;
    assert_eq!(property(&machine, "lsa-text", "UnitFileState"), "enabled");
    machine.sh("set -e; systemctl start lsa-needs; systemctl is-active lsa-text");
    machine.holds_already(&mut client, "svc_unmask", &service("lsa-text")).await;
    machine.audit_is_valid("root", "root");
}

#[tokio::test]
async fn a_mask_of_this_boot_ends_with_it() {
    let Some(machine) = changing("a_mask_of_this_boot_ends_with_it") else { return };
    let mut client = machine.serve_all_but_critical().await;
    let done = client.envelope("svc_mask", json!({"service": "lsa-text", "runtime": true})).await;
    assert_eq!(done["data"]["enabled"], "masked-runtime", "{done}");
    assert_eq!(property(&machine, "lsa-text", "UnitFileState"), "masked-runtime");
    assert_eq!(property(&machine, "lsa-text", "ActiveState"), "active", "it runs on");
    let done = client.envelope("svc_unmask", service("lsa-text")).await;
    assert_eq!(done["data"]["enabled"], "enabled", "{done}");
    machine.sh("test ! -e /run/systemd/system/lsa-text.service");
}

#[tokio::test]
async fn what_a_mask_cannot_hide_is_refused_and_what_people_come_in_by_asks() {
    let test = "what_a_mask_cannot_hide_is_refused_and_what_people_come_in_by_asks";
    let Some(machine) = changing(test) else { return };
    machine.sh("cp /usr/local/lib/systemd/system/lsa-text.service /etc/systemd/system/lsa-own.service
        systemctl daemon-reload
        systemd-run --quiet --unit=lsa-transient sleep 1000");
    let mut client = machine.serve_default().await;
    for (name, code) in [
        ("lsa-own", "UNIT_NOT_MASKABLE"),
        ("lsa-transient", "UNIT_GENERATED"),
        ("lsa-none", "UNIT_NOT_FOUND"),
        ("getty@", "INVALID_UNIT_NAME"),
    ] {
        machine.refuses(&mut client, "svc_mask", &service(name), code).await;
    }
    let refused = machine.sh("systemctl mask lsa-own 2>&1 || :");
    assert!(refused.contains("already exists"), "systemd refuses it too: {refused}");
    machine.asks(&mut client, "svc_mask", &service("dbus"), "high").await;
    machine.asks(&mut client, "svc_mask", &service("ssh"), "critical").await;
    machine.sh("systemctl stop lsa-transient");
}

#[tokio::test]
async fn limits_are_in_effect_at_once_and_gone_when_they_are_reset() {
    let Some(machine) = changing("limits_are_in_effect_at_once_and_gone_when_they_are_reset") else { return };
    let mut client = machine.serve_all_but_critical().await;
    let limits = json!({
        "service": "lsa-text", "memory_max": "512M", "memory_high": "256M", "cpu_weight": 50, "io_weight": 200, "tasks_max": 100,
        "limit_nofile": "2048:4096", "restart": true,
    });
    let before = property(&machine, "lsa-text", "MainPID");
    let preview = machine.shows(&mut client, "svc_set_limits", &limits).await;
    let done = machine.does(&mut client, "svc_set_limits", &limits, &preview).await;
    for (name, value) in [
        ("MemoryMax", "536870912"),
        ("MemoryHigh", "268435456"),
        ("CPUWeight", "50"),
        ("IOWeight", "200"),
        ("TasksMax", "100"),
        ("LimitNOFILE", "4096"),
        ("LimitNOFILESoft", "2048"),
        ("NeedDaemonReload", "no"),
    ] {
        assert_eq!(property(&machine, "lsa-text", name), value, "{name}: {done}");
    }
    let pid = property(&machine, "lsa-text", "MainPID");
    assert_ne!(pid, before, "it was restarted");
    let of_process = machine.sh(&format!("grep 'Max open files' /proc/{pid}/limits"));
    assert!(of_process.split_whitespace().any(|word| word == "2048"), "{of_process}");

    // A drop-in that is read later counts.
    let quota = json!({"service": "lsa-text", "cpu_quota": "25%"});
    let done = client.envelope("svc_set_limits", quota).await;
    let later = "/etc/systemd/system/lsa-text.service.d/more.conf:4 is read later and counts: CPUQuota=150%";
    assert!(done["notes"].to_string().contains(later), "{done}");
    assert_eq!(property(&machine, "lsa-text", "CPUQuotaPerSecUSec"), "1.500000s");

    let reset = json!({"service": "lsa-text", "reset": true});
    let preview = machine.shows(&mut client, "svc_set_limits", &reset).await;
    machine.does(&mut client, "svc_set_limits", &reset, &preview).await;
    machine.sh("test ! -e /etc/systemd/system/lsa-text.service.d/50-linux-sysadmin.conf");
    for (name, value) in [("MemoryMax", "infinity"), ("MemoryHigh", "infinity"), ("CPUWeight", "[not set]")] {
        assert_eq!(property(&machine, "lsa-text", name), value, "{name}");
    }
    machine.holds_already(&mut client, "svc_set_limits", &reset).await;
    machine.audit_is_valid("root", "root");
}
