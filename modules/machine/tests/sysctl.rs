//! `sysctl_get` and `sysctl_set` as the host calls them. The files are those of systemd 252 and procps 4.0.2 on Debian 12.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::testkit::{FakeTarget, output};
use linux_sysadmin_sdk::{Category, Change, Command, Failure, Metadata, Problem, Risk, Step};
use module_machine::module;
use serde_json::{Value, json};

const OURS: &str = "/etc/sysctl.d/90-linux-sysadmin.conf";
const CONTAINER: &str = "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\nproc /proc/sys proc ro,nosuid,nodev,noexec,relatime 0 0\n\
                         proc /proc/sys/net proc rw,nosuid,nodev,noexec,relatime 0 0\n";

fn target() -> FakeTarget {
    FakeTarget::new()
        .file("/proc/mounts", "proc /proc proc rw,relatime 0 0\n")
        .file("/proc/sys/vm/swappiness", "60\n")
        .file("/proc/sys/vm/dirty_ratio", "20\n")
        .file("/proc/sys/vm/max_map_count", "65530\n")
        .file("/proc/sys/net/ipv4/ip_forward", "0\n")
        .file("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n")
        .file("/proc/sys/net/ipv4/tcp_fastopen_key", "01020304-05060708-090a0b0c-0d0e0f10\n")
        .file("/proc/sys/kernel/pid_max", "4194304\n")
        .file("/etc/sysctl.conf", "#kernel.domainname = example.com\n")
        .file("/etc/sysctl.d/99-sysctl.conf", "#kernel.domainname = example.com\n")
        .file("/usr/lib/sysctl.d/50-pid-max.conf", "# Bump\nkernel.pid_max = 4194304\n")
}

fn call(target: FakeTarget, tool: &str, arguments: Value) -> Result<(Value, Vec<String>), Problem> {
    target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes))
}

fn get(target: FakeTarget, keys: Value) -> (Value, Vec<String>) {
    call(target, "sysctl_get", json!({"keys": keys})).unwrap()
}

fn refused(target: FakeTarget, arguments: Value) -> Problem {
    let plans = target.plans();
    let problem = call(target, "sysctl_set", arguments).unwrap_err();
    assert!(plans.borrow().is_empty());
    problem
}

/// The steps of the only plan.
fn steps(target: FakeTarget, arguments: Value) -> Vec<Step> {
    planned(target, arguments).steps()
}

fn planned(target: FakeTarget, arguments: Value) -> Change {
    let plans = target.plans();
    call(target, "sysctl_set", arguments).unwrap();
    assert_eq!(plans.borrow().len(), 1);
    plans.take().remove(0)
}

fn sets(key: &str, value: &str, before: &str) -> Step {
    let command = |value| Command::new("sysctl").arg("-w").arg(format!("{key}={value}")).as_root();
    Step::run(command(value)).undo(command(before))
}

fn writes(lines: &str) -> Step {
    Step::write(
        OURS,
        format!("# Values that sysctl_set of linux-sysadmin keeps for the next start.\n{lines}"),
    )
}

#[test]
fn a_value_is_told_with_the_line_that_sets_it_and_those_that_lose() {
    let target = target()
        .file("/etc/sysctl.d/10-a.conf", "vm.swappiness=30\n")
        .file("/usr/lib/sysctl.d/20-b.conf", "\nvm/swappiness = 20\n")
        .file("/etc/sysctl.d/60-c.conf", "-vm.swappiness = 5\nnet.ipv4.tcp_rmem = 4096 131072   6291456\n");
    let (data, notes) =
        get(target, json!(["vm.swappiness", "net/ipv4/tcp_rmem", "kernel.pid_max", "vm.dirty_ratio"]));
    assert_eq!(
        data,
        json!([
            {"key": "kernel.pid_max", "value": "4194304", "persistent": "4194304", "set_by": "/usr/lib/sysctl.d/50-pid-max.conf:2"},
            {"key": "net.ipv4.tcp_rmem", "value": "4096 131072 6291456", "persistent": "4096 131072 6291456", "set_by": "/etc/sysctl.d/60-c.conf:2"},
            {"key": "vm.dirty_ratio", "value": "20"},
            {"key": "vm.swappiness", "value": "60", "persistent": "5", "set_by": "/etc/sysctl.d/60-c.conf:1", "differs": true,
             "loses": ["/etc/sysctl.d/10-a.conf:1 = 30", "/usr/lib/sysctl.d/20-b.conf:2 = 20"]},
        ])
    );
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn a_name_in_an_earlier_directory_hides_the_later_one() {
    let target = target().file("/etc/sysctl.d/50-pid-max.conf", "");
    assert_eq!(
        get(target, json!(["kernel.pid_max"])).0,
        json!([{"key": "kernel.pid_max", "value": "4194304"}])
    );
}

#[test]
fn the_old_file_counts_only_through_a_link() {
    let text = "# Old\nvm.swappiness=1\n";
    let linked = target().file("/etc/sysctl.conf", text).file("/etc/sysctl.d/99-sysctl.conf", text);
    let (data, notes) = get(linked, json!(["vm.swappiness"]));
    assert_eq!((data[0]["set_by"].as_str(), notes.len()), (Some("/etc/sysctl.d/99-sysctl.conf:2"), 0));
    let (data, notes) = get(target().file("/etc/sysctl.conf", text), json!(["vm.swappiness"]));
    assert_eq!(data, json!([{"key": "vm.swappiness", "value": "60"}]));
    assert_eq!(notes, ["/etc/sysctl.conf:2 sets vm.swappiness to 1, but systemd doesn't read that file"]);
}

#[test]
fn a_prefix_and_a_glob_list_and_secrets_are_not_shown() {
    let keys = |target, keys| -> Vec<String> {
        let (data, _) = get(target, keys);
        data.as_array().unwrap().iter().map(|item| item["key"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(keys(target(), json!(["vm"])), ["vm.dirty_ratio", "vm.max_map_count", "vm.swappiness"]);
    assert_eq!(keys(target(), json!(["vm.*ss"])), ["vm.swappiness"]);
    // The directories net.core and net.ipv4 match, and one of them has the value.
    let core = || target().file("/proc/sys/net/core/somaxconn", "4096\n");
    assert_eq!(keys(core(), json!(["net.*.ip_forward"])), ["net.ipv4.ip_forward"]);
    let problem = call(core(), "sysctl_get", json!({"keys": ["net.*.none"]})).unwrap_err();
    assert_eq!(problem.code, "SYSCTL_NOT_FOUND");
    let (data, _) = get(target(), json!(["net.ipv4.tcp_*"]));
    assert_eq!(data[0], json!({"key": "net.ipv4.tcp_fastopen_key", "unreadable": "it is a secret"}));
    assert!(!data.to_string().contains("05060708"));
}

#[test]
fn a_key_that_is_missing_is_refused_with_near_names() {
    for (tool, arguments) in [
        ("sysctl_get", json!({"keys": ["vm.swapiness"]})),
        ("sysctl_set", json!({"set": {"vm.swapiness": 1}})),
    ] {
        let problem = call(target(), tool, arguments).unwrap_err();
        assert_eq!(
            (problem.code.as_str(), problem.remediation[0].as_str()),
            ("SYSCTL_NOT_FOUND", "Near: vm.swappiness")
        );
    }
}

#[test]
fn a_key_that_is_missing_beside_others_is_noted() {
    let (data, notes) = get(target(), json!(["vm.swapiness", "vm.dirty_ratio"]));
    assert_eq!(data, json!([{"key": "vm.dirty_ratio", "value": "20"}]));
    assert_eq!(notes, ["the kernel has no value vm.swapiness: Near: vm.swappiness"]);
}

#[test]
fn what_to_list_in_place_of_a_missing_key_is_there() {
    for (key, said) in [
        ("net.ipv4.conf.lo.rp_filter", "sysctl_get keys=[\"net.ipv4\"] lists those"),
        ("abcdefgh.passwd.x", "sysctl_get keys=[\"*\"] lists those"),
    ] {
        let problem = call(target(), "sysctl_get", json!({"keys": [key]})).unwrap_err();
        assert!(problem.remediation[0].starts_with(said), "{problem:?}");
    }
}

#[test]
fn a_group_without_values_is_told_as_one() {
    let group = "/proc/sys/fs/binfmt_misc";
    let directory = Metadata {
        size: 0,
        mode: 0o555,
        owner: "root".into(),
        group: "root".into(),
        modified_unix: 0,
        is_dir: true,
        is_symlink: false,
    };
    let target = target().device(group).metadata(group, directory);
    let problem = call(target, "sysctl_get", json!({"keys": ["fs.binfmt_misc"]})).unwrap_err();
    assert_eq!(problem.message, "fs.binfmt_misc is a group that has no values now");
}

#[test]
fn a_value_that_the_kernel_refuses_is_told_with_the_present_one() {
    let said = "sysctl: setting key \"net.ipv4.ip_forward\": Invalid argument\n";
    let failure = Failure {
        problem: Problem::new("COMMAND_FAILED", Category::Other, "sysctl ended with exit code 1"),
        step: 0,
        outputs: vec![output(1, "", said)],
        undone: Vec::new(),
        not_undone: Vec::new(),
        uncertain: false,
    };
    let target = target().outcome(Err(failure));
    let problem = call(target, "sysctl_set", json!({"set": {"net.ipv4.ip_forward": "abc"}})).unwrap_err();
    assert_eq!(problem.code, "INVALID_VALUE");
    assert!(problem.message.contains("refuses \"abc\" for net.ipv4.ip_forward"), "{problem:?}");
    assert!(problem.message.contains("\"0\", which it is now"), "{problem:?}");
}

#[test]
fn odd_arguments_are_refused() {
    let long = "9".repeat(1001);
    for (arguments, code) in [
        (json!({}), "INVALID_ARGUMENTS"),
        (json!({"set": {}, "remove": []}), "INVALID_ARGUMENTS"),
        (json!({"set": {"vm.swappiness": 1, "vm/swappiness": 2}}), "INVALID_ARGUMENTS"),
        (json!({"set": {"vm.swappiness": 1}, "remove": ["vm.swappiness"]}), "INVALID_ARGUMENTS"),
        (json!({"set": {"vm.swappiness": "1\nkernel.core_pattern=|/tmp/x"}}), "INVALID_VALUE"),
        (json!({"set": {"vm.swappiness": "1\rx"}}), "INVALID_VALUE"),
        (json!({"set": {"vm.swappiness": ""}}), "INVALID_VALUE"),
        (json!({"set": {"vm.swappiness": "-x"}}), "INVALID_VALUE"),
        (json!({"set": {"vm.swappiness": "-1 5"}}), "INVALID_VALUE"),
        (json!({"set": {"vm.swappiness": long}}), "INVALID_VALUE"),
        (json!({"set": {"net/../../etc/passwd": "1"}}), "INVALID_KEY"),
        (json!({"set": {"vm...swappiness": "1", "..": "1"}}), "INVALID_KEY"),
        (json!({"set": {"vm.*": "1"}}), "INVALID_KEY"),
        (json!({"set": {"vm": "1"}}), "INVALID_KEY"),
        (json!({"set": {"net.ipv4.tcp_fastopen_key": "1"}}), "INVALID_KEY"),
    ] {
        assert_eq!(refused(target(), arguments.clone()).code, code, "{arguments}");
    }
    let problem = call(target(), "sysctl_get", json!({"keys": []})).unwrap_err();
    assert_eq!(problem.code, "INVALID_ARGUMENTS");
}

#[test]
fn both_values_are_set_and_can_be_taken_back() {
    let target = target().file(OURS, "# x\nvm.dirty_ratio = 20\n");
    assert_eq!(
        steps(target, json!({"set": {"vm.swappiness": 10, "net.ipv4.tcp_rmem": "4096\t131072 33554432"}})),
        [
            sets("net.ipv4.tcp_rmem", "4096 131072 33554432", "4096 131072 6291456"),
            sets("vm.swappiness", "10", "60"),
            Step::write(
                OURS,
                "# x\nvm.dirty_ratio = 20\nnet.ipv4.tcp_rmem = 4096 131072 33554432\nvm.swappiness = 10\n"
            ),
        ]
    );
}

#[test]
fn an_empty_value_can_be_taken_back() {
    let key = "net.ipv4.ip_local_reserved_ports";
    let target = target().file("/proc/sys/net/ipv4/ip_local_reserved_ports", "\n");
    let expected = [sets(key, "8080", ""), writes(&format!("{key} = 8080\n"))];
    assert_eq!(steps(target, json!({"set": {key: 8080}})), expected);
    // No other grant has an empty value.
    let commands = module().description().capabilities.commands;
    assert!(commands.iter().any(|grant| grant.pattern == "sysctl -w <text>="));
}

#[test]
fn a_file_that_is_masked_sets_nothing_and_hinders_nothing() {
    let target = || target().device("/etc/sysctl.d/50-pid-max.conf");
    assert_eq!(
        get(target(), json!(["kernel.pid_max"])),
        (json!([{"key": "kernel.pid_max", "value": "4194304"}]), vec![])
    );
    assert_eq!(steps(target(), json!({"set": {"vm.swappiness": 10}})).len(), 2);
}

#[test]
fn what_holds_already_needs_no_plan() {
    let target = target();
    let plans = target.plans();
    let (data, notes) =
        call(target, "sysctl_set", json!({"set": {"kernel.pid_max": 4194304}, "remove": ["vm.swappiness"]}))
            .unwrap();
    assert_eq!(data, json!({}));
    assert!(plans.borrow().is_empty());
    assert!(notes[0].contains("doesn't set vm.swappiness"), "{notes:?}");
    assert!(
        notes.contains(
            &"kernel.pid_max is 4194304 already, by /usr/lib/sysctl.d/50-pid-max.conf:2".to_owned()
        ),
        "{notes:?}"
    );
}

#[test]
fn a_later_file_that_wins_is_named_and_one_that_agrees_is_enough() {
    let target = || {
        target().file("/etc/sysctl.d/95-hardening.conf", "# H\nnet.ipv4.ip_forward = 0\nvm.swappiness = 10\n")
    };
    let problem = refused(target(), json!({"set": {"net.ipv4.ip_forward": 1}}));
    assert_eq!(problem.code, "SYSCTL_OVERRIDDEN");
    assert!(
        problem.message.contains("/etc/sysctl.d/95-hardening.conf:2 sets net.ipv4.ip_forward to 0"),
        "{problem:?}"
    );
    assert!(
        problem.remediation[0].contains("file_patch path=/etc/sysctl.d/95-hardening.conf"),
        "{problem:?}"
    );
    assert_eq!(steps(target(), json!({"set": {"vm.swappiness": "10"}})), [sets("vm.swappiness", "10", "60")]);
}

#[test]
fn a_key_that_is_removed_gets_the_value_of_the_file_that_then_wins() {
    let target = target()
        .file(OURS, "# ours\nvm.swappiness = 60\nvm.dirty_ratio = 20\n")
        .file("/etc/sysctl.d/10-a.conf", "vm.swappiness=30\n");
    assert_eq!(
        steps(target, json!({"remove": ["vm.swappiness", "vm.dirty_ratio"]})),
        [sets("vm.swappiness", "30", "60"), Step::write(OURS, "# ours\n")]
    );
}

/// A line for such a value would do its act again at each start.
#[test]
fn a_value_that_only_takes_what_is_written_is_not_kept() {
    let metadata = Metadata {
        size: 0,
        mode: 0o200,
        owner: "root".into(),
        group: "root".into(),
        modified_unix: 0,
        is_dir: false,
        is_symlink: false,
    };
    let flushed = || target().metadata("/proc/sys/net/ipv4/route/flush", metadata.clone());
    let command = Command::new("sysctl").arg("-w").arg("net.ipv4.route.flush=1").as_root();
    assert_eq!(steps(flushed(), json!({"set": {"net.ipv4.route.flush": 1}})), [Step::run(command.clone())]);
    let both = steps(flushed(), json!({"set": {"net.ipv4.route.flush": 1, "vm.swappiness": 10}}));
    assert_eq!(both, [Step::run(command), sets("vm.swappiness", "10", "60"), writes("vm.swappiness = 10\n")]);
    let kept = flushed().file(OURS, "net.ipv4.route.flush = 1\nvm.swappiness = 60\n");
    let again = steps(kept, json!({"set": {"net.ipv4.route.flush": 1}}));
    assert_eq!(again[1..], [Step::write(OURS, "vm.swappiness = 60\n")]);
    let (_, notes) = call(flushed(), "sysctl_set", json!({"set": {"net.ipv4.route.flush": 1}})).unwrap();
    assert_eq!(notes, ["net.ipv4.route.flush only takes values: it isn't set at the next start"]);
}

#[test]
fn a_container_and_a_value_that_is_only_shown_are_told_apart() {
    let container = target().file("/proc/mounts", CONTAINER);
    let problem = refused(container, json!({"set": {"vm.swappiness": 10}}));
    assert_eq!(problem.code, "SYSCTL_READ_ONLY");
    assert!(problem.message.contains("container"), "{problem:?}");
    let container = target().file("/proc/mounts", CONTAINER);
    assert_eq!(steps(container, json!({"set": {"net.ipv4.ip_forward": 1}})).len(), 2);
    let metadata = Metadata {
        size: 0,
        mode: 0o444,
        owner: "root".into(),
        group: "root".into(),
        modified_unix: 0,
        is_dir: false,
        is_symlink: false,
    };
    let shown = target().metadata("/proc/sys/kernel/pid_max", metadata);
    assert!(refused(shown, json!({"set": {"kernel.pid_max": 1000}})).message.contains("only shows"));
}

#[test]
fn a_smaller_limit_raises_the_risk() {
    let expected = Change::new("set vm.max_map_count to 1000")
        .risk(Risk::High)
        .warning("lowers vm.max_map_count from 65530 to 1000: programs that need more than that fail")
        .step(sets("vm.max_map_count", "1000", "65530"))
        .step(writes("vm.max_map_count = 1000\n"));
    assert_eq!(planned(target(), json!({"set": {"vm.max_map_count": 1000}})), expected);
}
