//! Tests the tools that show a unit's text, mask it and limit it against recordings of a booted Debian 12 with systemd 252. The
//! image `rhel-like` has the same systemd.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm;
use linux_sysadmin_sdk::testkit::FakeTarget;
use linux_sysadmin_sdk::{DurationCategory, Metadata, prelude::*};
use module_services::module;
use serde_json::{Value, json};

fn recorded(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// The argv and the output of a recorded command.
fn command(text: &str) -> (Vec<&str>, &str) {
    let (line, output) = text.strip_prefix("$ ").unwrap().split_once('\n').unwrap();
    (line.split(' ').filter(|word| *word != "TZ=UTC").collect(), output)
}

fn answering(target: FakeTarget, recording: &str) -> FakeTarget {
    let text = recorded(recording);
    let (argv, output) = command(&text);
    target.answer(&argv, 0, output, "")
}

const TEXTS: &str = "debian12-systemd252-texts";
const CHANGING: &str = "debian12-systemd252-changing";

fn target(units: &[&str]) -> FakeTarget {
    let target = FakeTarget::new().recording(&recorded(&format!("{TEXTS}/files.txt")));
    units.iter().fold(target, |target, unit| answering(target, &format!("{TEXTS}/show-{unit}.txt")))
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>)> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

fn show(unit: &str, service: &str) -> (Value, Vec<String>) {
    call(target(&[unit]), "svc_show", json!({"service": service})).unwrap()
}

#[test]
fn each_file_is_shown_by_line_with_what_overrides_it() {
    let (data, notes) = show("lsa-text.service", "lsa-text");
    let folder = "/etc/systemd/system";
    let expected = json!({
        "service": "lsa-text",
        "enabled": "static",
        "files": [
            {
                "path": format!("{folder}/lsa-text.service"),
                "text": "2: [Unit]\n3: Description=Text\n5: [Service]\n6: ExecStart=/bin/sleep 1000\n\
                         7: Environment=DB_PASSWORD=hunter2secret MODE=x\n8: MemoryMax=1G\n9: CPUQuota=50%\n10: Nice=5",
                "overridden": {"6": "more.conf:2", "8": "more.conf:4", "9": "more.conf:5", "10": "nice.conf:2"},
            },
            {
                "path": format!("{folder}/lsa-text.service.d/more.conf"),
                "text": "1: [Service]\n2: ExecStart=\n3: ExecStart=/bin/sleep 2000\n4: MemoryMax=2G\n5: CPUQuota=150%\n\
                         6: User=nobody\n7: TasksMax=10%",
            },
            {"path": format!("{folder}/lsa-.service.d/nice.conf"), "text": "1: [Service]\n2: Nice=3"},
            {"path": format!("{folder}/service.d/type.conf"), "text": "1: [Service]\n2: LimitNOFILE=1000:2000"},
        ],
        "runs": ["/bin/sleep 2000"],
        "user": "nobody",
        "limits": {
            "CPUQuota": {"limit": "150%"},
            "LimitNOFILE": {"limit": "1000:2000"},
            "MemoryMax": {"limit": 2_147_483_648_u64},
            "TasksMax": {"limit": 19273},
        },
    });
    assert_eq!((data, notes), (expected, Vec::new()));
}

#[test]
fn an_answer_is_smaller_than_what_systemctl_prints() {
    for unit in ["lsa-text.service", "sshd.service", "mnt.mount"] {
        let (data, _) = show(unit, unit);
        let printed = recorded(&format!("{TEXTS}/show-{unit}.txt")).len();
        assert!(data.to_string().len() * 10 < printed * 6, "{unit}: {} of {printed}", data.to_string().len());
    }
}

#[test]
fn comments_are_shown_where_others_may_read_the_file() {
    let path = "/etc/systemd/system/lsa-text.service";
    let with = json!({"service": "lsa-text", "comments": true});
    let file = |mode| Metadata {
        size: 1,
        mode,
        owner: "root".to_owned(),
        group: "root".to_owned(),
        modified_unix: 0,
        is_dir: false,
        is_symlink: false,
    };
    let of = |mode| {
        let target = target(&["lsa-text.service"]).metadata(path, file(mode));
        let (data, notes) = call(target, "svc_show", with.clone()).unwrap();
        (data["files"][0]["text"].as_str().unwrap().to_owned(), notes)
    };
    let (text, notes) = of(0o644);
    assert!(
        text.starts_with("1: # Why it is so.\n2: [Unit]\n3: Description=Text\n4: \n5: [Service]\n"),
        "{text}"
    );
    assert!(notes.is_empty());
    let (text, notes) = of(0o600);
    assert!(text.starts_with("2: [Unit]\n3: Description=Text\n5: [Service]\n"), "{text}");
    assert_eq!(notes, [format!("the comments of {path} are left out: others may not read it")]);
}

#[test]
fn what_systemd_has_not_loaded_is_named() {
    let folder = "/etc/systemd/system/lsa-text.service.d";
    let text = recorded(&format!("{TEXTS}/loaded-at.txt"));
    let (argv, output) = command(&text);
    let (loaded_at, stat) = output.split_at(output.find("lsa-text.service ").unwrap());
    let mut target = answering(target(&[]), &format!("{TEXTS}/newer-lsa-text.service.txt"))
        .answer(&argv, 0, loaded_at, "")
        .file(&format!("{folder}/new.conf"), "[Service]\nNice=4\n");
    for line in stat.lines() {
        let (name, modified) = line.split_once(' ').unwrap();
        let metadata = Metadata {
            size: 1,
            mode: 0o644,
            owner: "root".to_owned(),
            group: "root".to_owned(),
            modified_unix: modified.parse().unwrap(),
            is_dir: false,
            is_symlink: false,
        };
        target = target.metadata(&format!("/etc/systemd/system/{name}"), metadata);
    }
    let (data, notes) = call(target, "svc_show", json!({"service": "lsa-text"})).unwrap();
    assert_eq!(
        data["not_loaded"],
        json!([format!("{folder}/new.conf (new)"), format!("{folder}/more.conf (changed)")])
    );
    assert_eq!(notes, ["systemd has loaded older files than these: systemctl daemon-reload loads them"]);
}

#[test]
fn states_say_where_a_unit_comes_from() {
    let (masked, notes) = show("rsyslog.service", "rsyslog");
    assert_eq!(
        (&masked["enabled"], &masked["mask"]),
        (&json!("masked"), &json!("/etc/systemd/system/rsyslog.service"))
    );
    assert_eq!(masked["files"][0]["path"], "/usr/lib/systemd/system/rsyslog.service");
    assert_eq!(
        notes,
        [
            "it is masked, and can't start: svc_unmask service=rsyslog ends that; systemd reads none of its files"
        ]
    );
    // The alias of a unit that was masked afterwards is a unit of its own for systemd, which it can't load.
    let both = target(&["lsa-second.service", "lsa-first.service"]);
    let (masked, notes) = call(both, "svc_show", json!({"service": "lsa-second"})).unwrap();
    assert_eq!(
        (&masked["service"], &masked["mask"]),
        (&json!("lsa-first"), &json!("/etc/systemd/system/lsa-first.service"))
    );
    assert!(notes[0].contains("svc_unmask service=lsa-first ends that"), "{notes:?}");
    let (_, notes) = show("lsa-of@1.service", "lsa-of@1");
    assert!(notes[0].contains("systemctl unmask -- lsa-of@.service ends that"), "{notes:?}");
    // Debian's own mask, in /lib.
    let (masked, notes) = show("sudo.service", "sudo");
    assert_eq!((&masked["mask"], &masked["files"]), (&json!("/lib/systemd/system/sudo.service"), &json!([])));
    assert_eq!(notes, ["it is masked, and can't start; systemd reads none of its files"]);
    let (generated, _) = show("mnt.mount", "mnt.mount");
    assert_eq!(
        [&generated["enabled"], &generated["generator"], &generated["generated_from"]],
        ["generated", "systemd-fstab-generator", "/etc/fstab"]
    );
    let (alias, _) = show("sshd.service", "sshd");
    assert_eq!((&alias["service"], &alias["aliases"]), (&json!("ssh"), &json!(["sshd"])));
    let (dynamic, _) = show("lsa-dynamic.service", "lsa-dynamic");
    let implied = json!({
        "NoNewPrivileges": "yes", "PrivateTmp": "yes", "ProtectHome": "read-only", "ProtectSystem": "strict", "RemoveIPC": "yes",
        "RestrictSUIDSGID": "yes",
    });
    assert_eq!(dynamic["implied"], implied);
    let (timer, _) = show("logrotate.timer", "logrotate.timer");
    assert_eq!(timer["files"][0]["path"], "/lib/systemd/system/logrotate.timer");
    assert!(timer["runs"].is_null() && timer["limits"].is_null(), "{timer}");
}

#[test]
fn what_is_no_unit_is_refused_with_what_was_expected() {
    let loaded = "getty@tty1.service loaded active running Getty on tty1\nserial-getty@ttyS0.service loaded active running x\n";
    let list = "systemctl list-units --all --plain --no-legend --full --no-pager --output=json";
    let target = target(&["nosuch.service"]).answer(&list.split(' ').collect::<Vec<_>>(), 0, loaded, "");
    for tool in ["svc_show", "svc_mask", "svc_unmask", "svc_set_limits"] {
        let of = |service: &str| {
            let mut arguments = json!({"service": service});
            if tool == "svc_set_limits" {
                arguments["memory_max"] = json!("1G");
            }
            call(target.clone(), tool, arguments).unwrap_err()
        };
        let template = of("getty@");
        assert_eq!(template.code, "INVALID_UNIT_NAME", "{tool}");
        assert_eq!(template.remediation[1], "Loaded instances: getty@tty1", "{tool}");
        for name in ["../etc/passwd", "/etc/systemd/system/a.service", "-x", "", &"a".repeat(256)] {
            assert_eq!(of(name).code, "INVALID_UNIT_NAME", "{tool} {name}");
        }
    }
    let unknown = call(target, "svc_show", json!({"service": "nosuch"})).unwrap_err();
    assert_eq!(unknown.code, "UNIT_NOT_FOUND");
    for text in ["", "garbage\n", "Id=a.service\n\nId=b.service\n"] {
        let target = FakeTarget::new().answer(&["systemctl", "show", "--", "nosuch.service"], 0, text, "");
        let problem = call(target, "svc_show", json!({"service": "nosuch"})).unwrap_err();
        assert_eq!(problem.code, "UNEXPECTED_OUTPUT", "{text}");
    }
}

/// The recorded states of the units that the changing tools work on.
fn changing(units: &[&str]) -> FakeTarget {
    units
        .iter()
        .fold(FakeTarget::new(), |target, unit| answering(target, &format!("{CHANGING}/state-{unit}.txt")))
}

/// What a call plans. The plan counts as a dry run.
fn planned(target: FakeTarget, tool: &str, arguments: Value) -> (Vec<Change>, Value, Vec<String>) {
    let target = target.outcome(Ok(confirm::Applied { outputs: Vec::new(), dry_run: true }));
    let plans = target.plans();
    let (data, notes) = call(target, tool, arguments).unwrap();
    (plans.take(), data, notes)
}

fn root(line: &str) -> Command {
    let words: Vec<&str> = line.split(' ').collect();
    Command::new(words[0]).args(words[1..].iter().copied()).as_root().duration(DurationCategory::Normal)
}

fn step(line: &str, undo: &str) -> Step {
    Step::run(root(line)).uninterruptible().undo(root(undo))
}

#[test]
fn a_mask_is_undone_by_its_reverse_and_says_what_needs_the_unit() {
    let cron = |arguments: Value| planned(changing(&["cron.service"]), "svc_mask", arguments).0;
    let plan = |summary: &str| Change::new(summary).lock(Lock::Systemd);
    let (mask, unmask) = ("systemctl mask -- cron.service", "systemctl unmask -- cron.service");
    assert_eq!(cron(json!({"service": "cron"})), [plan("Mask cron.service").step(step(mask, unmask))]);
    let stopped = plan("Stop and mask cron.service")
        .step(step("systemctl stop -- cron.service", "systemctl start -- cron.service"))
        .step(step("systemctl mask --runtime -- cron.service", "systemctl unmask --runtime -- cron.service"))
        .affects("cron.service");
    assert_eq!(cron(json!({"service": "cron", "now": true, "runtime": true})), [stopped]);
}

#[test]
fn a_unit_whose_file_is_in_the_place_of_the_mask_is_refused_beforehand() {
    let path = "/etc/systemd/system/cron.service";
    let target = changing(&["cron.service"]).file(path, "[Service]\n");
    for arguments in [json!({"service": "cron"}), json!({"service": "cron", "runtime": true})] {
        let problem = call(target.clone(), "svc_mask", arguments).unwrap_err();
        assert_eq!(problem.code, "UNIT_NOT_MASKABLE");
        assert_eq!(
            problem.message,
            format!("cron.service can't be masked: its file is {path}, where the mask would have to be")
        );
        assert_eq!(problem.remediation[0], "Have it not started at boot: svc_disable service=cron now=true");
    }
}

#[test]
fn an_unmask_removes_the_masks_that_are_there() {
    let unit = "lsa-masked.service";
    let masked = changing(&[unit]).file(&format!("/etc/systemd/system/{unit}"), "");
    let (plans, _, notes) = planned(masked, "svc_unmask", json!({"service": "lsa-masked"}));
    let expected = step("systemctl unmask -- lsa-masked.service", "systemctl mask -- lsa-masked.service");
    assert_eq!(plans, [Change::new("Unmask lsa-masked.service").lock(Lock::Systemd).step(expected)]);
    assert_eq!(notes, ["it isn't started by that: svc_start service=lsa-masked"]);
    let problem = call(changing(&[unit]), "svc_unmask", json!({"service": "lsa-masked"})).unwrap_err();
    assert_eq!(problem.code, "UNIT_MASKED", "the package's own mask");
    let (plans, _, notes) = planned(changing(&["cron.service"]), "svc_unmask", json!({"service": "cron"}));
    assert_eq!((plans, notes), (Vec::new(), vec!["cron.service isn't masked".to_owned()]));
    let (plans, _, notes) = planned(changing(&[unit]), "svc_mask", json!({"service": "lsa-masked"}));
    assert_eq!((plans, notes), (Vec::new(), vec!["lsa-masked.service is masked already".to_owned()]));
}

#[test]
fn a_mask_is_that_of_the_units_own_name() {
    let both = || {
        changing(&["lsa-second.service", "lsa-first.service"])
            .file("/etc/systemd/system/lsa-first.service", "")
            .file("/etc/systemd/system/lsa-second.service", "[Service]\n")
    };
    let (plans, data, _) = planned(both(), "svc_unmask", json!({"service": "lsa-second"}));
    let expected = step("systemctl unmask -- lsa-first.service", "systemctl mask -- lsa-first.service");
    assert_eq!(plans, [Change::new("Unmask lsa-first.service").lock(Lock::Systemd).step(expected)]);
    assert_eq!(data["service"], "lsa-first");
    let (plans, _, notes) = planned(both(), "svc_mask", json!({"service": "lsa-second"}));
    assert_eq!((plans, notes), (Vec::new(), vec!["lsa-first.service is masked already".to_owned()]));
}

#[test]
fn a_unit_that_is_masked_with_its_template_is_told_so() {
    let target = changing(&["lsa-of@1.service"]).file("/etc/systemd/system/lsa-of@.service", "");
    let problem = call(target, "svc_unmask", json!({"service": "lsa-of@1"})).unwrap_err();
    assert_eq!(problem.code, "UNIT_MASKED");
    assert!(problem.message.contains("with all instances of lsa-of@.service"), "{problem:?}");
    assert!(problem.remediation[0].contains("systemctl unmask -- lsa-of@.service"), "{problem:?}");
}

#[test]
fn a_file_in_the_place_of_a_mask_until_the_next_boot_hinders_only_that() {
    let path = "/run/systemd/system/cron.service";
    let target = || changing(&["cron.service"]).file(path, "[Service]\n");
    let problem = call(target(), "svc_mask", json!({"service": "cron", "runtime": true})).unwrap_err();
    assert_eq!(problem.code, "UNIT_NOT_MASKABLE");
    assert!(problem.message.contains(path), "{problem:?}");
    assert_eq!(planned(target(), "svc_mask", json!({"service": "cron"})).0.len(), 1);
}

const SHOWN: &str = "Id=cron.service\nLoadState=loaded\nActiveState=active\nMemoryCurrent=50541363\nTasksCurrent=3\n\
    MemoryMax=infinity\nTasksMax=28909\nLimitNOFILE=524288\nLimitNOFILESoft=1024\n";

fn limiting() -> FakeTarget {
    changing(&["cron.service"]).answer(&["systemctl", "show", "--", "cron.service"], 0, SHOWN, "")
}

const DROP_IN: &str = "/etc/systemd/system/cron.service.d/50-linux-sysadmin.conf";

/// The plan that makes these steps and has systemd read the file.
fn limits_plan(steps: Vec<Step>) -> Change {
    let reload = || root("systemctl daemon-reload");
    let change = Change::new("Set limits of cron.service").lock(Lock::Systemd).after_undo(reload());
    let change = steps.into_iter().fold(change, Change::step);
    change.step(Step::run(reload()).uninterruptible())
}

#[test]
fn limits_are_written_to_one_drop_in_and_merged_with_what_is_there() {
    let new = json!({"service": "cron", "memory_max": "512M", "tasks_max": 100});
    let text = "[Service]\nMemoryMax=512M\nTasksMax=100\n";
    let directory = Step::make_directory("/etc/systemd/system/cron.service.d", 0o755);
    let (plans, data, _) = planned(limiting(), "svc_set_limits", new.clone());
    assert_eq!(plans, [limits_plan(vec![directory, Step::write(DROP_IN, text)])]);
    assert_eq!((&data["would"], &data["path"]), (&json!("set limits"), &json!(DROP_IN)));

    let there = || limiting().file(DROP_IN, text);
    let (plans, _, notes) = planned(there(), "svc_set_limits", new);
    assert_eq!(
        (plans, notes),
        (vec![], vec!["its limits are set so already: nothing was written".to_owned()])
    );
    let one_less = json!({"service": "cron", "memory_max": "", "limit_nofile": "1024:4096"});
    let (plans, ..) = planned(there(), "svc_set_limits", one_less);
    assert_eq!(
        plans,
        [limits_plan(vec![Step::write(DROP_IN, "[Service]\nTasksMax=100\nLimitNOFILE=1024:4096\n")])]
    );
    let by_hand = limiting().file(DROP_IN, "[Service]\nTasksMax=\nTasksMax=7\n");
    let problem = call(by_hand, "svc_set_limits", json!({"service": "cron", "tasks_max": 100})).unwrap_err();
    assert_eq!(problem.remediation, [format!("Take that line out first: file_patch path={DROP_IN}")]);
    let (plans, ..) = planned(there(), "svc_set_limits", json!({"service": "cron", "reset": true}));
    assert_eq!(plans, [limits_plan(vec![Step::remove(DROP_IN)])]);
    let (plans, ..) =
        planned(there(), "svc_set_limits", json!({"service": "cron", "reset": true, "cpu_weight": 50}));
    assert_eq!(plans, [limits_plan(vec![Step::write(DROP_IN, "[Service]\nCPUWeight=50\n")])]);
}

#[test]
fn a_service_that_does_not_come_up_with_its_limits_runs_again_with_the_former_ones() {
    let arguments = json!({"service": "cron", "tasks_max": 1000, "restart": true});
    let expected = Change::new("Set limits of cron.service and restart it")
        .lock(Lock::Systemd)
        .after_undo(root("systemctl daemon-reload"))
        .after_undo(root("systemctl start -- cron.service"))
        .step(Step::make_directory("/etc/systemd/system/cron.service.d", 0o755))
        .step(Step::write(DROP_IN, "[Service]\nTasksMax=1000\n"))
        .step(Step::run(root("systemctl daemon-reload")).uninterruptible())
        .step(Step::run(root("systemctl restart -- cron.service")).uninterruptible())
        .affects("cron.service");
    assert_eq!(planned(limiting(), "svc_set_limits", arguments).0, [expected]);
}

#[test]
fn a_limit_below_the_present_use_has_a_higher_risk() {
    let of = |limit: &str| {
        planned(limiting(), "svc_set_limits", json!({"service": "cron", "memory_max": limit})).0
    };
    let directory = Step::make_directory("/etc/systemd/system/cron.service.d", 0o755);
    let write = |limit: &str| Step::write(DROP_IN, format!("[Service]\nMemoryMax={limit}\n"));
    assert_eq!(of("64M"), [limits_plan(vec![directory.clone(), write("64M")])]);
    let warned = limits_plan(vec![directory, write("32M")])
        .warning(
            "MemoryMax 32M (33554432) is below what it takes now (50541363): the kernel kills its processes where it can't \
             take the memory back",
        )
        .risk(Risk::High);
    assert_eq!(of("32M"), [warned]);
    let share = |total: &str| {
        let target = limiting().file("/proc/meminfo", format!("MemTotal:       {total} kB\nMemFree: 1 kB\n"));
        planned(target, "svc_set_limits", json!({"service": "cron", "memory_max": "1%"})).0
    };
    let warning = "MemoryMax 1% (41943040) is below what it takes now (50541363): the kernel kills its processes where it \
                   can't take the memory back";
    let directory = Step::make_directory("/etc/systemd/system/cron.service.d", 0o755);
    let plan = || limits_plan(vec![directory.clone(), write("1%")]);
    assert_eq!(share("4096000"), [plan().warning(warning).risk(Risk::High)]);
    assert_eq!(share("16384000"), [plan()]);
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    let masked = changing(&["lsa-masked.service"]).answer(
        &["systemctl", "show", "--", "lsa-masked.service"],
        0,
        "Id=lsa-masked.service\n",
        "",
    );
    let table = [
        (limiting(), json!({"service": "cron"}), "NOTHING_TO_CHANGE"),
        (limiting(), json!({"service": "cron", "memory_max": "2"}), "INVALID_VALUE"),
        (limiting(), json!({"service": "cron", "cpu_quota": 50}), "INVALID_VALUE"),
        (limiting(), json!({"service": "cron", "tasks_max": "a\nb"}), "INVALID_VALUE"),
        (limiting(), json!({"service": "logrotate.timer", "memory_max": "1G"}), "INVALID_UNIT_TYPE"),
        (masked, json!({"service": "lsa-masked", "memory_max": "1G"}), "UNIT_MASKED"),
    ];
    for (target, arguments, code) in table {
        let problem = call(target, "svc_set_limits", arguments.clone()).unwrap_err();
        assert_eq!(problem.code, code, "{arguments}");
    }
}
