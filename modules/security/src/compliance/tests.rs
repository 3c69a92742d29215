//! The outputs are made from the checks, in the formats of coreutils 9.1, dpkg 1.21.22, rpm 4.18.0, systemd 252 and OpenSSH
//! 9.2p1 (Debian 12); they were not recorded.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::testkit::FakeTarget;
use serde_json::{Value, json};

use super::*;

/// A machine that passes, but for what `change` replaces in what its programs say.
fn host(change: &[(&str, &str)]) -> FakeTarget {
    let (checks, _) = check::parse(BUILT_IN);
    let mut host = FakeTarget::new();
    let changed = |text: String| change.iter().fold(text, |text, (from, to)| text.replace(from, to));
    let (mut stat, mut paths, mut packages, mut units, mut shown) =
        (String::new(), Vec::new(), Vec::new(), Vec::new(), String::new());
    let mut sshd = String::from("port 22\n");
    let mut mounts = String::from("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
    for check in checks {
        match check.rule {
            Rule::File { file, mode, owner, groups } => {
                stat += &format!("{}:{owner}:{}:{file}\n", mode.trim_start_matches('0'), groups[0]);
                paths.push(file);
            }
            Rule::Sysctl { sysctl, values } => {
                let value = changed(format!("{sysctl}={}", values[0]));
                let path = format!("/proc/sys/{}", sysctl.replace('.', "/"));
                host = host.file(&path, format!("{}\n", value.split('=').nth(1).unwrap()));
            }
            Rule::Mount { mount, .. } if mount == "/dev/shm" && !mounts.contains("/dev/shm") => {
                mounts += "23 22 0:30 / /dev/shm rw,nosuid,nodev - tmpfs tmpfs rw\n";
            }
            Rule::Mount { .. } => {}
            Rule::Absent { absent } => packages.extend(absent),
            Rule::Off { off } => {
                for unit in off {
                    shown +=
                        &format!("Id={unit}\nLoadState=not-found\nActiveState=inactive\nUnitFileState=\n\n");
                    units.push(unit);
                }
            }
            Rule::Sshd { sshd: key, values, at_most, .. } => {
                let value = at_most.map(|most| most.to_string()).unwrap_or_else(|| values[0].clone());
                sshd += &format!("{key} {value}\n");
            }
        }
    }
    fn all<'a>(first: &[&'a str], rest: &'a [String]) -> Vec<&'a str> {
        first.iter().copied().chain(rest.iter().map(String::as_str)).collect()
    }
    host.file("/proc/self/mountinfo", changed(mounts))
        .answer(&all(&["stat", "--format=%a:%U:%G:%n", "--"], &paths), 0, changed(stat), "")
        .answer(
            &all(
                &["dpkg-query", "--show", "--showformat=${db:Status-Abbrev}\\t${Package}\\n", "--"],
                &packages,
            ),
            1,
            changed("un \ttelnetd\n".to_owned()),
            "dpkg-query: no packages found matching ypserv\n",
        )
        .answer(
            &all(&["rpm", "--query", "--queryformat=%{NAME}\\n"], &packages),
            8,
            changed("package ypserv is not installed\n".to_owned()),
            "",
        )
        .answer(
            &all(&["systemctl", "show", "--property=Id,LoadState,ActiveState,UnitFileState", "--"], &units),
            0,
            changed(shown),
            "",
        )
        .answer(&["sshd", "-T"], 0, changed(sshd), "")
}

fn call(host: FakeTarget, arguments: Value) -> Result<(Value, String)> {
    let module = tool(Module::new("m", "1", "security", ""));
    let (data, reply) = host.call(&module, "sec_compliance", arguments)?;
    Ok((data, reply.summary.unwrap()))
}

#[test]
fn there_are_thirty_checks_each_with_a_number() {
    let (checks, broken) = check::parse(BUILT_IN);
    assert_eq!((checks.len(), broken), (30, Vec::new()));
    assert!(
        checks.iter().all(|check| check.reference.as_ref().is_some_and(|number| number.starts_with("CCE-")))
    );
}

#[test]
fn a_machine_that_is_as_expected_passes() {
    let (data, summary) = call(host(&[]), json!({"all": true})).unwrap();
    assert_eq!(summary, "29 checks passed, 0 failed");
    assert_eq!(data["not_applicable"], json!(["mount-tmp-nosuid"]));
    assert_eq!(data["passed_ids"].as_array().unwrap().len(), 29);
    let (data, _) = call(host(&[]), json!({})).unwrap();
    assert!(data.get("passed_ids").is_none());
}

#[test]
fn each_kind_of_check_fails_with_what_was_found_and_what_mends_it() {
    for (change, id, found, tool) in [
        (
            ("640:root:root:/etc/shadow\n", "644:root:root:/etc/shadow\n"),
            "mode-shadow",
            "mode 0644, owner root, group root",
            "perms_set",
        ),
        (
            ("644:root:root:/etc/passwd", "644:ada:root:/etc/passwd"),
            "mode-passwd",
            "mode 0644, owner ada, group root",
            "perms_set",
        ),
        (("randomize_va_space=2", "randomize_va_space=0"), "sysctl-aslr", "0", "sysctl_set"),
        (("un \ttelnetd", "ii \ttelnetd"), "package-telnet-server", "installed: telnetd", "pkg_purge"),
        (
            ("package ypserv is not installed", "ypserv"),
            "package-nis-server",
            "installed: ypserv",
            "pkg_purge",
        ),
        (
            (
                "Id=rpcbind.socket\nLoadState=not-found\nActiveState=inactive",
                "Id=rpcbind.socket\nLoadState=loaded\nActiveState=active",
            ),
            "service-rpcbind",
            "on: rpcbind.socket",
            "svc_mask",
        ),
        (("permitrootlogin no", "permitrootlogin yes"), "sshd-root-login", "yes", "sec_harden_ssh"),
        (("maxauthtries 4", "maxauthtries 6"), "sshd-max-auth-tries", "6", "sec_harden_ssh"),
        (("rw,nosuid,nodev", "rw,nosuid"), "mount-shm-nodev", "rw,nosuid", ""),
    ] {
        let (data, _) = call(host(&[change]), json!({})).unwrap();
        let failed = data["failed"].as_array().unwrap();
        assert_eq!(failed.len(), 1, "{id}: {data}");
        assert_eq!((failed[0]["id"].as_str(), failed[0]["found"].as_str()), (Some(id), Some(found)));
        assert_eq!(failed[0]["mend"]["tool"].as_str().unwrap_or_default(), tool, "{id}");
    }
}

#[test]
fn what_cannot_be_looked_at_is_unseen_and_has_not_passed() {
    let blind = FakeTarget::new().without_program("sshd");
    let (data, _) = call(blind, json!({})).unwrap();
    assert_eq!(data["passed"], 0);
    let unseen = data["unseen"].as_array().unwrap();
    assert!(unseen.iter().any(|line| line.as_str().unwrap().starts_with("mode-shadow")), "{data}");
    assert!(data["not_applicable"].to_string().contains("sshd-root-login"), "{data}");
}

#[test]
fn a_file_that_may_not_be_looked_at_is_unseen_and_one_that_is_missing_does_not_apply() {
    let (checks, _) = check::parse(BUILT_IN);
    let files = checks.iter().filter_map(|check| match &check.rule {
        Rule::File { file, .. } => Some(file.as_str()),
        _ => None,
    });
    let argv: Vec<&str> = ["stat", "--format=%a:%U:%G:%n", "--"].into_iter().chain(files).collect();
    // In the words of coreutils 9.1.
    let error = "stat: cannot statx '/etc/crontab': No such file or directory\n\
        stat: cannot statx '/etc/cron.d': Permission denied\n";
    let (data, _) =
        call(FakeTarget::new().answer(&argv, 1, "644:root:root:/etc/passwd\n", error), json!({})).unwrap();
    assert!(data["not_applicable"].to_string().contains("mode-crontab"), "{data}");
    assert!(data["unseen"].to_string().contains("mode-cron-d: stat: cannot statx"), "{data}");
    assert!(!data["unseen"].to_string().contains("mode-passwd"), "{data}");
}

#[test]
fn an_administrators_own_checks_are_added() {
    let own = "- {id: own-hostname, file: /etc/hostname, mode: \"0600\", owner: root, groups: [root]}\n\
               - {id: own-shm, severity: high, mount: /dev/shm, option: noexec}\n";
    let (data, _) = call(host(&[]).file(OWN, own), json!({})).unwrap();
    assert_eq!(data["failed"][0]["id"], "own-shm");
    assert_eq!(data["failed"][0]["severity"], "high");
}

#[test]
fn the_documented_examples_are_in_the_form() {
    let docs = include_str!("../../../../docs/tools.md");
    let examples: String =
        docs.lines().filter(|line| line.starts_with("- {id: own-")).map(|line| format!("{line}\n")).collect();
    let (checks, broken) = check::parse(&examples);
    assert_eq!((checks.len(), broken), (6, Vec::new()));
}

#[test]
fn a_file_of_checks_that_is_not_roots_alone_is_refused() {
    let metadata = Metadata {
        size: 3,
        mode: 0o666,
        owner: "root".into(),
        group: "root".into(),
        modified_unix: 0,
        is_dir: false,
        is_symlink: false,
    };
    let writable = host(&[]).file(OWN, "[]").metadata(OWN, metadata.clone());
    assert_eq!(call(writable, json!({})).unwrap_err().code, "UNTRUSTED_FILE");
    let others = Metadata { mode: 0o644, owner: "ada".into(), ..metadata };
    let others = host(&[]).file(OWN, "[]").metadata(OWN, others);
    assert_eq!(call(others, json!({})).unwrap_err().code, "UNTRUSTED_FILE");
}

#[test]
fn a_check_that_is_not_in_the_form_is_said_and_loses_no_other_one() {
    for yaml in [
        "nonsense",
        "- {id: x}",
        "- {id: 'a b', sysctl: a.b, values: ['1']}",
        "- {id: x, sysctl: ../../etc/shadow, values: ['1']}",
        "- {id: x, sysctl: a.b}",
        "- {id: x, file: etc/x, mode: '0644', owner: root, groups: [root]}",
        "- {id: x, file: /etc/x, mode: '999', owner: root, groups: [root]}",
        "- {id: x, file: /etc/x, mode: '0644', owner: root}",
        "- {id: x, file: /a, sysctl: b, values: ['1']}",
        "- {id: x, off: ['-x']}",
        "- {id: x, absent: ['-x']}",
        "- {id: x, sshd: 'a b', values: ['no']}",
        "- {id: x, sshd: port, values: ['22'], at_most: 3}",
        "- {id: x, mount: /a, option: 'a b'}",
        "- {id: x, mount: /a, option: a, unknown: 1}",
        "- {id: x, mount: /a, option: a}\n- {id: x, mount: /b, option: a}",
        "- {id: mode-passwd, mount: /a, option: a}",
    ] {
        let (data, summary) = call(host(&[]).file(OWN, yaml), json!({})).unwrap();
        assert_eq!((&data["passed"], data.get("failed")), (&json!(29), None), "{yaml}: {data}");
        assert_eq!(summary, "29 checks passed, 0 failed; own checks are refused", "{yaml}");
        let refused = data["refused"].as_array().unwrap();
        assert_eq!(refused.len(), 2, "{yaml}: {data}");
        assert!(refused[1].as_str().unwrap().starts_with(OWN), "{yaml}: {data}");
    }
    // One that can't even be read as YAML, between others that are in the form.
    let own = "# mine\n---\n- {id: own-first, mount: /dev/shm, option: noexec}\n- {id: own-odd, mount: [}\n\
        - id: own-last\n  mount: /dev/shm\n  option: noatime\n";
    let (data, _) = call(host(&[]).file(OWN, own), json!({})).unwrap();
    let failed: Vec<&Value> = data["failed"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(failed, ["own-first", "own-last"], "{data}");
    assert!(data["refused"][0].as_str().unwrap().starts_with("the check that begins in line 4: "), "{data}");
    // However many there are, the answer stays short.
    let many = "- {id: x, unknown: 1}\n".repeat(10_000);
    let (data, _) = call(host(&[]).file(OWN, many), json!({})).unwrap();
    assert_eq!(
        (data["refused"].as_array().unwrap().len(), &data["refused"][20]),
        (22, &json!("and 9980 more"))
    );
    let many: String =
        (0..10_000).map(|number| format!("- {{id: own-{number}, mount: /a, option: b}}\n")).collect();
    let (data, _) = call(host(&[]).file(OWN, many), json!({})).unwrap();
    assert_eq!(data["refused"][0], "9800 checks are beyond the first 200");
    for empty in ["", "[]", "# no checks yet\n"] {
        assert_eq!(call(host(&[]).file(OWN, empty), json!({})).unwrap().0.get("refused"), None, "{empty}");
    }
}

#[test]
fn what_a_program_does_not_say_has_not_passed() {
    // Written by hand: no output, one in another language, one that is no text, and one that is larger than what is kept.
    for text in ["", "Fehler: alles anders\n", "\u{fffd}\0\0\n\n\n", &"x y z\n".repeat(200_000)] {
        let mut target =
            FakeTarget::new().file("/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
        for command in Checks::read(&FakeTarget::new().context()).unwrap().ahead() {
            let argv: Vec<&str> =
                std::iter::once(&command.program).chain(&command.args).map(String::as_str).collect();
            target = target.answer(&argv, 0, text, "");
        }
        let (data, _) = call(target, json!({})).unwrap();
        assert_eq!((&data["passed"], data.get("failed")), (&json!(0), None), "{text:.20}: {data}");
        let unseen = data["unseen"].as_array().unwrap();
        for id in ["mode-shadow", "package-nis-server", "service-rpcbind", "sshd-root-login"] {
            assert!(
                unseen.iter().any(|line| line.as_str().unwrap().starts_with(id)),
                "{id} {text:.20}: {data}"
            );
        }
        assert!(data.to_string().len() < 10_000, "{}", data.to_string().len());
    }
}

#[test]
fn a_unit_is_judged_under_the_name_that_it_was_asked_for_by() {
    let own =
        "- {id: own-sshd, off: [sshd.service]}\n- {id: own-again, off: [rpcbind.service, sshd.service]}\n";
    let checks = Checks::read(&FakeTarget::new().file(OWN, own).context()).unwrap();
    let commands = checks.ahead();
    let units = commands.iter().find(|command| command.program == "systemctl").unwrap();
    let argv: Vec<&str> = std::iter::once(&units.program).chain(&units.args).map(String::as_str).collect();
    assert_eq!(argv.iter().filter(|word| **word == "sshd.service").count(), 1);
    // Debian calls the unit ssh.service, and systemctl prints this name.
    let off = "LoadState=not-found\nActiveState=inactive\nUnitFileState=\n\n";
    let shown: String = argv[4..]
        .iter()
        .map(|unit| match *unit {
            "sshd.service" => {
                "Id=ssh.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n\n".to_owned()
            }
            unit => format!("Id={unit}\n{off}"),
        })
        .collect();
    let (data, _) = call(FakeTarget::new().file(OWN, own).answer(&argv, 0, shown, ""), json!({})).unwrap();
    let failed: Vec<&Value> = data["failed"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(failed, ["own-sshd", "own-again"], "{data}");
}
