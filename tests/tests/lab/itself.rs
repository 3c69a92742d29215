//! The lab itself works as the tests of targets behind SSH expect. The real ssh shows it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Output, Stdio};

use linux_sysadmin_tests::{Lab, SFTP};
use serde_json::json;

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Asserts that the command succeeded and printed this.
#[track_caller]
fn says(output: &Output, expected: &str) {
    assert_eq!((stdout(output).as_str(), output.status.code()), (expected, Some(0)), "{}", stderr(output));
}

/// Asserts that ssh itself failed with this message.
#[track_caller]
fn fails(output: &Output, why: &str) {
    assert_eq!(output.status.code(), Some(255), "{}{}", stdout(output), stderr(output));
    assert!(stderr(output).contains(why), "{}", stderr(output));
}

#[test]
fn every_host_is_reached_by_its_alias_and_nothing_else_is() {
    let Some(lab) = Lab::new("every_host_is_reached_by_its_alias_and_nothing_else_is") else { return };
    for alias in ["debian1", "rhel1", "bare1"] {
        says(&lab.ssh(&[alias, "hostname"]), lab.host(alias).name());
        says(&lab.ssh(&["-l", "admin", alias, "id", "-un"]), "admin");
    }
    fails(&lab.ssh(&["192.0.2.1", "true"]), "Network is unreachable");
    lab.forget_hosts();
    fails(&lab.ssh(&["debian1", "true"]), "Host key verification failed");
}

#[test]
fn each_host_is_what_its_image_says() {
    let Some(lab) = Lab::new("each_host_is_what_its_image_says") else { return };
    for (alias, there, not_there) in [
        ("debian1", "sudo apt-get ufw crontab python3", "dnf rpm firewall-cmd"),
        ("rhel1", "sudo dnf yum rpm firewall-cmd crontab python3", "apt-get apt ufw"),
        ("bare1", "systemctl ip ps", "sudo crontab python3 dnf"),
    ] {
        let found = format!(
            "for name in {there} {not_there}; do command -v $name > /dev/null && echo $name; done; :"
        );
        says(&lab.ssh(&[alias, &found]), &there.replace(' ', "\n"));
    }
    says(&lab.ssh(&["rhel1", ". /etc/os-release; echo $ID $VERSION_ID"]), "fedora 40");
    let rhel1 = |script: &str| lab.ssh(&["-l", "admin", "rhel1", script]);
    let installed = rhel1("sudo -n dnf --assumeyes --quiet install lab-hello-1.0");
    assert!(installed.status.success(), "{}", stderr(&installed));
    says(&rhel1("lab-hello"), "lab-hello 1.0");
    let upgraded = rhel1("sudo -n dnf --assumeyes --quiet upgrade --security");
    assert!(upgraded.status.success(), "{}", stderr(&upgraded));
    says(&rhel1("lab-hello"), "lab-hello 2.0");
    assert!(rhel1("sudo -n dnf --assumeyes --quiet remove lab-hello").status.success());
}

#[test]
fn who_is_behind_two_jumps_is_reached_only_through_both() {
    let Some(lab) = Lab::new("who_is_behind_two_jumps_is_reached_only_through_both") else { return };
    let (rhel, bare) = lab.chain();
    lab.knows(rhel, "rhel1");
    lab.knows(bare, "bare1");
    lab.configure(&format!(
        "{}Host inner\n  HostName {rhel}\n  ProxyJump debian1\n\
         Host innermost\n  HostName {bare}\n  ProxyJump inner\n\
         Host *\n  User root\n  ConnectTimeout 10\n",
        lab.aliases()
    ));
    says(&lab.ssh(&["inner", "hostname"]), lab.host("rhel1").name());
    says(&lab.ssh(&["innermost", "hostname"]), lab.host("bare1").name());
    for address in [rhel, bare] {
        fails(&lab.ssh(&[address, "true"]), "Network is unreachable");
    }
    fails(&lab.ssh(&["-J", "debian1", bare, "true"]), "open failed");
}

#[test]
fn a_server_is_known_by_its_certificate_while_that_is_valid() {
    let Some(lab) = Lab::new("a_server_is_known_by_its_certificate_while_that_is_valid") else { return };
    let sshd = lab.sshd("debian1", 2201);
    let authority = lab.key("authority", "ed25519");
    let address = lab.address("debian1");
    lab.forget_hosts();
    lab.know(&format!("@cert-authority * {}", authority.public()));
    let attempt = || lab.ssh(&["-p", "2201", "-o", "StrictHostKeyChecking=yes", &address, "hostname"]);
    for (name, options, refusal) in [
        ("valid", &["-h", "-n", &address, "-V", "-1d:+1d"][..], None),
        ("expired", &["-h", "-n", &address, "-V", "-2d:-1d"], Some("expired")),
        ("other", &["-h", "-n", "elsewhere", "-V", "-1d:+1d"], Some("not a listed principal")),
    ] {
        let key = lab.key(name, "ed25519");
        lab.sign(&authority, &key, options);
        sshd.start(&[&key], "");
        match refusal {
            None => says(&attempt(), lab.host("debian1").name()),
            Some(why) => {
                let output = attempt();
                assert_eq!(output.status.code(), Some(255), "{name}: {}", stderr(&output));
                assert!(stderr(&output).contains(why), "{name}: {}", stderr(&output));
            }
        }
    }
    let plain = lab.key("plain", "ed25519");
    sshd.start(&[&plain], "");
    fails(&attempt(), "Host key verification failed");
    lab.know(&format!("{} {}", sshd.known_as(), plain.public()));
    says(&attempt(), lab.host("debian1").name());
    lab.know(&format!("@revoked * {}", plain.public()));
    fails(&attempt(), "REVOKED");
}

#[test]
fn a_certificate_lets_in_its_principals_until_it_is_revoked() {
    let Some(lab) = Lab::new("a_certificate_lets_in_its_principals_until_it_is_revoked") else { return };
    let sshd = lab.sshd("debian1", 2201);
    let (authority, host, user) =
        (lab.key("authority", "ed25519"), lab.key("host", "ecdsa"), lab.key("user", "ed25519"));
    lab.know(&format!("{} {}", sshd.known_as(), host.public()));
    let trusted = sshd.put("authority.pub", authority.public().as_bytes());
    let revoked = sshd.put("revoked", &lab.revoked(&[]));
    sshd.start(
        &[&host],
        &format!("TrustedUserCAKeys {trusted}\nRevokedKeys {revoked}\nAuthorizedKeysFile none\n"),
    );
    let address = lab.address("debian1");
    let attempt = |account: &str| {
        let head = ["-p", "2201", "-i", user.path(), "-o", "IdentitiesOnly=yes", "-l", account];
        lab.ssh(&[&head[..], &[&address, "id", "-un"]].concat())
    };
    fails(&attempt("admin"), "Permission denied");
    lab.sign(&authority, &user, &["-n", "admin", "-V", "-1h:+1h"]);
    says(&attempt("admin"), "admin");
    fails(&attempt("root"), "Permission denied");
    sshd.put("revoked", &lab.revoked(&["user-cert.pub"]));
    fails(&attempt("admin"), "Permission denied");
}

#[test]
fn a_key_of_the_agents_lets_in() {
    let Some(lab) = Lab::new("a_key_of_the_agents_lets_in") else { return };
    let sshd = lab.sshd("bare1", 2201);
    let (host, user) = (lab.key("host", "ed25519"), lab.key("user", "rsa"));
    lab.know(&format!("{} {}", sshd.known_as(), host.public()));
    let authorized = sshd.put("authorized_keys", user.public().as_bytes());
    sshd.start(&[&host], &format!("AuthorizedKeysFile {authorized}\n"));
    let attempt = || lab.ssh(&["-p", "2201", "-l", "admin", &lab.address("bare1"), "id", "-un"]);
    fails(&attempt(), "Permission denied");
    lab.agent();
    fails(&attempt(), "Permission denied");
    lab.add_key(&user);
    std::fs::remove_file(user.path()).expect("the key is the agent's alone");
    says(&attempt(), "admin");
}

#[test]
fn each_login_shell_gives_quoted_words_on_as_they_are() {
    let Some(lab) = Lab::new("each_login_shell_gives_quoted_words_on_as_they_are") else { return };
    // No word has quotes or backslashes, which fish reads in its own way.
    let words = ["a b", "$HOME", "`id`", "*", "~", "{a,b}", "!x", "%1", "#", "", "é"];
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let line = format!("/usr/bin/printf '<%s>' {}", quoted.join(" "));
    let expected: String = words.iter().map(|word| format!("<{word}>")).collect();
    for shell in ["dash", "bash", "zsh", "fish"] {
        says(&lab.ssh(&["-l", &format!("with-{shell}"), "debian1", &line]), &expected);
        let named = lab.ssh(&["-l", &format!("with-{shell}"), "debian1", "basename $SHELL"]);
        says(&named, shell);
    }
    let refused = lab.ssh(&["-l", "with-nologin", "debian1", &line]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(stdout(&refused).contains("not available"), "{}", stdout(&refused));
}

#[test]
fn there_is_sftp_where_the_settings_say_so() {
    let Some(lab) = Lab::new("there_is_sftp_where_the_settings_say_so") else { return };
    let sshd = lab.sshd("bare1", 2201);
    let host = lab.key("host", "ed25519");
    lab.know(&format!("{} {}", sshd.known_as(), host.public()));
    let destination = format!("root@{}", lab.address("bare1"));
    let attempt = || {
        let argv = ["sftp", "-b", "-", "-P", "2201", &destination];
        let mut child = lab
            .command(&argv)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ip runs");
        // Where there is no SFTP, ssh ends without reading.
        let _ = child.stdin.take().expect("stdin").write_all(b"ls /etc/hostname\n");
        child.wait_with_output().expect("it ends")
    };
    sshd.start(&[&host], SFTP);
    let output = attempt();
    assert!(output.status.success() && stdout(&output).contains("/etc/hostname"), "{}", stderr(&output));
    sshd.start(&[&host], "");
    let output = attempt();
    assert!(
        !output.status.success() && stderr(&output).contains("subsystem request failed"),
        "{}",
        stderr(&output)
    );
    says(&lab.ssh(&["-p", "2201", &destination, "id", "-un"]), "root");
}

#[test]
fn what_is_cut_off_hangs_and_goes_on_once_it_is_mended() {
    let Some(lab) = Lab::new("what_is_cut_off_hangs_and_goes_on_once_it_is_mended") else { return };
    let mut ssh = lab.command(&["ssh", "-o", "BatchMode=yes", "bare1", "cat"]);
    let mut ssh = ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("ip runs");
    let (mut stdin, mut said) = (ssh.stdin.take().expect("stdin"), String::new());
    let mut stdout = BufReader::new(ssh.stdout.take().expect("stdout"));
    stdin.write_all(b"before\n").expect("ssh reads");
    stdout.read_line(&mut said).expect("UTF-8");
    lab.cut("bare1");
    stdin.write_all(b"meanwhile\n").expect("ssh reads");
    // ssh gets no refusal and no error about the host.
    fails(&lab.ssh(&["-o", "ConnectTimeout=2", "bare1", "true"]), "timed out");
    assert_eq!(ssh.try_wait().expect("a status"), None, "the connection waits");
    says(&lab.ssh(&["debian1", "hostname"]), lab.host("debian1").name());
    lab.mend("bare1");
    stdout.read_line(&mut said).expect("UTF-8");
    assert_eq!(said, "before\nmeanwhile\n");
    drop(stdin);
    assert!(ssh.wait().expect("it ends").success());
}

#[test]
fn a_reboot_ends_connections_and_the_host_comes_back() {
    let Some(lab) = Lab::new("a_reboot_ends_connections_and_the_host_comes_back") else { return };
    let boot = || stdout(&lab.ssh(&["bare1", "cat /proc/sys/kernel/random/boot_id /etc/machine-id"]));
    let before = boot();
    let mut ssh = lab.command(&["ssh", "-o", "BatchMode=yes", "bare1", "echo there; cat"]);
    let mut ssh =
        ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("ip runs");
    let mut said = String::new();
    let mut stdout = BufReader::new(ssh.stdout.take().expect("stdout"));
    stdout.read_line(&mut said).expect("UTF-8");
    assert_eq!(said, "there\n");
    lab.reboot("bare1");
    assert!(!ssh.wait().expect("it ends").success());
    assert_ne!(boot(), before);
    let (chained, _) = lab.chain();
    lab.knows(chained, "rhel1");
    says(&lab.ssh(&["-J", "debian1", &format!("root@{chained}"), "hostname"]), lab.host("rhel1").name());
}

#[tokio::test]
async fn the_server_runs_in_the_lab_in_a_home_of_its_own() {
    let Some(lab) = Lab::new("the_server_runs_in_the_lab_in_a_home_of_its_own") else { return };
    lab.agent();
    lab.add_planner();
    let mut client = lab.serve(&[]);
    client.initialize("2025-06-18").await;
    let session = client.envelope("sysadmin_session_info", json!({})).await;
    assert_eq!(session["status"], "success", "{session}");
    let listed = client.request("tools/list", json!({})).await;
    assert!(listed.to_string().contains("planner_apply"), "{listed}");

    let process = std::path::PathBuf::from(format!("/proc/{}", client.pid()));
    let here = lab.run(&["readlink", "/proc/self/ns/net"]);
    let there = std::fs::read_link(process.join("ns/net")).expect("the server runs");
    assert_eq!(there.to_str(), Some(here.trim()));
    assert_ne!(there, std::fs::read_link("/proc/self/ns/net").expect("/proc"));
    let environment = std::fs::read(process.join("environ")).expect("the server runs");
    let names: BTreeSet<_> = environment
        .split(|byte| *byte == 0)
        .filter_map(|pair| Some(String::from_utf8_lossy(pair).split_once('=')?.0.to_owned()))
        .filter(|name| name != "PWD")
        .collect();
    let expected = ["HOME", "LINUX_SYSADMIN_MODULES", "PATH", "SSH_AUTH_SOCK", "XDG_CACHE_HOME"];
    assert_eq!(names, BTreeSet::from(expected.map(str::to_owned)));
    assert_eq!(lab.home().audit().iter().filter(|event| event["event"] == "call").count(), 1);
    client.close().await;

    // ssh finds the account's home, and not root's.
    let resolved = lab.run(&["ssh", "-G", "debian1"]);
    assert!(resolved.contains(&format!("hostname {}", lab.address("debian1"))), "{resolved}");
}
