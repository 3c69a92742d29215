//! `ssh_config_list` lists what ssh reads, and ssh reaches the hosts that `ssh_config_add` adds.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use linux_sysadmin_tests::Lab;
use serde_json::{Value, json};

use super::*;

/// A configuration with comments, tabs, equals signs, quotes, an included file, and a text that may be a secret.
const CONFIG: &str = "# Mine; kept as it is
ServerAliveInterval 30
IgnoreUnknown UnknownThing
Include config.d/*.conf

# The way in
Host bastion
\tHostName = 198.51.100.1
\tPort=2222
\tUser \"admin\"   # of the way in

host prod-db other
    HostName 198.51.100.2
    ProxyJump bastion
    IdentityFile ~/.ssh/id_ed25519
    SetEnv TOKEN=s3cret LANG=C
    UnknownThing s3cret

Match originalhost prod-db exec \"test -e /run/vpn\"
    User late

Host *
    HashKnownHosts yes
";

const INCLUDED: &str = "Host work\n  HostName work.example.org\n  User ada\n";

fn written(lab: &Lab) -> String {
    std::fs::read_to_string(lab.file("config")).expect("a configuration")
}

/// The values that ssh reads for a setting of this host.
fn taken(lab: &Lab, alias: &str, setting: &str) -> BTreeSet<String> {
    let all = lab.run(&["ssh", "-G", alias]);
    let values = all.lines().filter_map(|line| line.split_once(' ')).filter(|(name, _)| *name == setting);
    values.map(|(_, value)| value.to_owned()).collect()
}

#[tokio::test]
async fn what_is_listed_for_a_host_is_what_ssh_takes() {
    let Some(lab) = Lab::new("what_is_listed_for_a_host_is_what_ssh_takes") else { return };
    lab.run(&["mkdir", ".ssh/config.d"]);
    std::fs::write(lab.file("config.d/work.conf"), INCLUDED).expect("written");
    lab.configure(CONFIG);
    let mut client = served(&lab, WITHOUT_SESSION).await;
    let listed = done(client.envelope("ssh_config_list", json!({})).await);
    let items = listed.as_array().expect("items");
    let mut compared = 0;
    for item in items {
        let settings = item["settings"].as_array().expect("settings").iter();
        for alias in item["host"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            for (keyword, value) in settings.clone().filter_map(|said| said.as_str()?.split_once(' ')) {
                if keyword == "SetEnv" || value == "…" || alias == "*" {
                    continue;
                }
                let value = value.trim_start_matches("= ").trim_matches('"');
                let of_ssh = taken(&lab, alias, &keyword.to_ascii_lowercase());
                assert!(of_ssh.contains(value), "{alias} {keyword} {value}: {of_ssh:?}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 11, "{listed}");
    assert!(!listed.to_string().contains("s3cret"), "{listed}");
    let place = |item: &Value| (item["file"].clone(), item["line"].clone());
    let of = |alias: &str| items.iter().find(|item| item["host"][0] == alias).map(place);
    assert_eq!(of("bastion"), Some((json!("~/.ssh/config"), json!(7))), "{listed}");
    assert_eq!(of("prod-db"), Some((json!("~/.ssh/config"), json!(12))), "{listed}");
    assert_eq!(of("work").map(|place| place.1), Some(json!(1)), "{listed}");
    assert_eq!(written(&lab), CONFIG);
}

#[tokio::test]
async fn a_host_that_is_added_is_reached_by_ssh_and_every_other_line_stays() {
    let test = "a_host_that_is_added_is_reached_by_ssh_and_every_other_line_stays";
    let Some(lab) = Lab::new(test) else { return };
    let (user, host_key) = (lab.key("user", "ed25519"), lab.key("host", "ed25519"));
    for family in FAMILIES {
        let account = Account::new(lab.host(family), "lsa-ssh");
        account.write(&user.public());
        let sshd = lab.sshd(family, PORT);
        sshd.start(&[&host_key], "");
        lab.know(&format!("{} {}", sshd.known_as(), host_key.public()));
        lab.configure(CONFIG);
        let mut client = served(&lab, WITHOUT_SESSION).await;
        let arguments = json!({"host": "added", "hostname": lab.address(family), "port": PORT, "user": "lsa-ssh",
            "identity_file": "~/.ssh/user", "identities_only": true});
        let mut dry_run = arguments.clone();
        dry_run["dry_run"] = true.into();
        let shown = done(client.agrees(Way::InputRequired, "ssh_config_add", dry_run).await);
        assert_eq!((&shown["would"], written(&lab)), (&json!("add"), CONFIG.to_owned()), "{shown}");

        let mode = std::fs::metadata(lab.file("config")).expect("it is there").mode();
        let added = done(client.agrees(Way::InputRequired, "ssh_config_add", arguments.clone()).await);
        let after = written(&lab);
        assert_eq!(std::fs::metadata(lab.file("config")).expect("it is there").mode(), mode);
        let lines: Vec<&str> = after.lines().collect();
        let line = usize::try_from(added["line"].as_u64().expect("a line")).expect("few");
        assert_eq!((lines[line - 1], &added["file"]), ("Host added", &json!("~/.ssh/config")), "{added}");
        let block: String = lines[line - 1..line + 6].iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(after.replacen(&block, "", 1), CONFIG, "{after}");
        assert_eq!(lab.run(&["ssh", "-o", "BatchMode=yes", "added", "id", "-un"]), "lsa-ssh\n");
        assert_eq!(taken(&lab, "bastion", "port"), BTreeSet::from(["2222".to_owned()]));

        // The second time the host is there already, and the call doesn't ask.
        let again = client.envelope("ssh_config_add", arguments).await;
        assert!(
            again["notes"][0].as_str().is_some_and(|note| note.contains("nothing was written")),
            "{again}"
        );
        // A changed host keeps the settings that the call doesn't name.
        let change = json!({"host": "added", "user": "root"});
        done(client.agrees(Way::InputRequired, "ssh_config_add", change).await);
        assert_eq!(written(&lab), after.replace("User lsa-ssh\n", "User root\n"));
        assert!(client.close().await.0.success());
    }
}

#[tokio::test]
async fn a_host_that_was_added_is_taken_by_servers_that_start_afterwards_and_only_if_it_is_known() {
    let test = "a_host_that_was_added_is_taken_by_servers_that_start_afterwards_and_only_if_it_is_known";
    let Some(lab) = Lab::new(test) else { return };
    let host_key = lab.key("host", "ed25519");
    for family in FAMILIES {
        let sshd = lab.sshd(family, PORT);
        sshd.start(&[&host_key], "");
        lab.configure(&lab.aliases());
        // The key of the host's other sshd is known, and the question would mention it.
        lab.forget_hosts();
        let unknown = std::fs::read_to_string(lab.file("known_hosts")).expect("it");
        let mut before = served(&lab, WITHOUT_SESSION).await;
        let added = json!({"host": "added", "hostname": lab.address(family), "port": PORT, "user": "root"});
        let envelope = before.agrees(Way::InputRequired, "ssh_config_add", added).await;
        assert!(envelope["notes"].to_string().contains("restarts the server"), "{envelope}");
        refused(&before.envelope("ssh_connect", json!({"host": "added"})).await, "HOST_UNKNOWN", &["added"]);
        refused(
            &before.envelope("sysadmin_session_info", json!({"host": "added"})).await,
            "HOST_UNKNOWN",
            &[],
        );
        assert!(before.close().await.0.success());

        let mut after = served(&lab, WITHOUT_SESSION).await;
        let envelope = after.envelope("ssh_connect", json!({"host": "added"})).await;
        refused(&envelope, "HOST_KEY_UNKNOWN", &[&listed(&lab, host_key.path()).1]);
        // ssh refuses the host as well, since it may not ask.
        let said = lab.ssh(&["added", "true"]);
        assert!(String::from_utf8_lossy(&said.stderr).contains("Host key verification failed"), "{said:?}");
        lab.know(&format!("{} {}", sshd.known_as(), host_key.public()));
        let connected = done(after.envelope("ssh_connect", json!({"host": "added"})).await);
        assert_eq!(connected["hostname"], lab.host(family).name(), "{connected}");
        assert!(after.close().await.0.success());
        std::fs::write(lab.file("known_hosts"), unknown).expect("written");
    }
}

#[tokio::test]
async fn a_host_that_came_after_the_start_is_worked_on_once_a_person_says_so() {
    let test = "a_host_that_came_after_the_start_is_worked_on_once_a_person_says_so";
    let Some(lab) = Lab::new(test) else { return };
    let host_key = lab.key("host", "ed25519");
    let family = FAMILIES[0];
    let sshd = lab.sshd(family, PORT);
    sshd.start(&[&host_key], "");
    lab.configure(&lab.aliases());
    // The key of the host's other sshd is known, and the question would mention it.
    lab.forget_hosts();
    let (unknown, unnamed) = (std::fs::read_to_string(lab.file("known_hosts")).expect("it"), written(&lab));
    let connect = json!({"host": "late"});
    for (tool, way) in [
        ("ssh_connect", Way::InputRequired),
        ("ssh_connect", Way::Elicitation),
        ("ssh_test_connection", Way::InputRequired),
    ] {
        let mut client = served_for(&lab, way).await;
        lab.configure(&format!(
            "{unnamed}\nHost late\n  HostName {}\n  Port {PORT}\n  User root\n",
            lab.address(family)
        ));
        // There is no question about a key that was never seen.
        refused(&client.envelope(tool, connect.clone()).await, "HOST_UNKNOWN", &["late"]);
        lab.know(&format!("{} {}", sshd.known_as(), host_key.public()));
        let asked = client.is_asked(way, tool, connect.clone()).await;
        let question = asked.message.to_string();
        for part in ["May late be worked on", &lab.address(family), &listed(&lab, host_key.path()).1] {
            assert!(question.contains(part), "{part}: {question}");
        }
        let declined = client.answers(&asked, "decline").await;
        refused(&declined, "CONFIRMATION_DECLINED", &[]);
        refused(&client.envelope("perf_uptime", json!({"host": "late"})).await, "HOST_UNKNOWN", &[]);

        done(client.agrees(way, tool, connect.clone()).await);
        // The question comes once. From now on the host is known.
        done(client.envelope(tool, connect.clone()).await);
        done(client.envelope("perf_uptime", json!({"host": "late"})).await);
        assert!(client.close().await.0.success());
        // The next server would know the host, so the test restores the file.
        std::fs::write(lab.file("known_hosts"), &unknown).expect("written");
        lab.configure(&unnamed);
    }
    // A client that can't ask its user can't say yes by itself.
    let mut client = served_for(&lab, Way::TwoStep).await;
    lab.configure(&format!("{unnamed}\nHost late\n  HostName {}\n  Port {PORT}\n", lab.address(family)));
    lab.know(&format!("{} {}", sshd.known_as(), host_key.public()));
    for confirmed in [false, true] {
        let mut arguments = connect.clone();
        arguments["confirmed"] = confirmed.into();
        let waits = client.envelope("ssh_connect", arguments).await;
        assert_eq!(
            (&waits["status"], &waits["confirmation"]["way"]),
            (&json!("confirmation_required"), &json!("terminal")),
            "{waits}"
        );
    }
    assert!(client.close().await.0.success());
    // Where the operator lists the allowed hosts, there is no question.
    std::fs::write(lab.home().config(), "ssh:\n  allowed_hosts: [debian1]\n").expect("written");
    let mut client = served_for(&lab, Way::InputRequired).await;
    refused(&client.envelope("ssh_connect", connect).await, "HOST_NOT_ALLOWED", &["late"]);
}

#[tokio::test]
async fn who_leads_a_known_host_elsewhere_is_asked_and_told_where_it_leads_to() {
    let test = "who_leads_a_known_host_elsewhere_is_asked_and_told_where_it_leads_to";
    let Some(lab) = Lab::new(test) else { return };
    let [from, to] = FAMILIES;
    let mut client = served(&lab, WITHOUT_SESSION).await;
    let before = written(&lab);
    let change = json!({"host": from, "hostname": lab.address(to)});
    let asked = client.is_asked(Way::InputRequired, "ssh_config_add", change.clone()).await;
    for part in [lab.address(from), lab.address(to), "critical".to_owned()] {
        assert!(asked.text().to_lowercase().contains(&part), "{part}: {}", asked.text());
    }
    refused(&client.answers(&asked, "decline").await, "CONFIRMATION_DECLINED", &[]);
    assert_eq!(written(&lab), before);
    let asked = client.is_asked(Way::InputRequired, "ssh_config_add", change).await;
    done(client.answers(&asked, "accept").await);
    assert_eq!(
        lab.run(&["ssh", "-o", "BatchMode=yes", from, "hostname"]),
        format!("{}\n", lab.host(to).name())
    );
    let there = done(client.envelope("sysadmin_session_info", json!({"host": from})).await);
    assert_eq!(there["distro"]["hostname"], lab.host(to).name(), "{there}");
    assert!(client.close().await.0.success());
}

#[tokio::test]
async fn nothing_else_gets_into_the_configuration() {
    let Some(lab) = Lab::new("nothing_else_gets_into_the_configuration") else { return };
    lab.run(&["mkdir", ".ssh/config.d"]);
    std::fs::write(lab.file("config.d/work.conf"), INCLUDED).expect("written");
    lab.configure(CONFIG);
    let mut client = served(&lab, WITHOUT_SESSION).await;
    for keyword in [
        "proxy_command",
        "local_command",
        "ProxyCommand",
        "match",
        "include",
        "identity_agent",
        "forward_agent",
    ] {
        let arguments = json!({"host": "new", "hostname": "new.example.org", keyword: "x"});
        let envelope = client.envelope("ssh_config_add", arguments).await;
        refused(&envelope, "INVALID_ARGUMENTS", &[keyword]);
    }
    for (member, value) in [
        ("host", json!("new\n  ProxyCommand touch /run/x")),
        ("host", json!("*")),
        ("host", json!("new other")),
        ("hostname", json!("x\n  LocalCommand touch /run/x")),
        ("hostname", json!("x\r  PermitLocalCommand yes")),
        ("hostname", json!("x ${HOME}")),
        ("hostname", json!("%h")),
        ("hostname", json!("-oProxyCommand=touch")),
        ("user", json!("ada\tProxyCommand")),
        ("user", json!("\"ada")),
        ("identity_file", json!("~/../../etc/shadow")),
        ("identity_file", json!("x # y")),
        ("proxy_jump", json!("a;touch /run/x")),
        ("proxy_jump", json!("none\nProxyCommand x")),
    ] {
        let mut arguments = json!({"host": "new", "hostname": "new.example.org"});
        arguments[member] = value;
        let envelope = client.envelope("ssh_config_add", arguments.clone()).await;
        refused(&envelope, "INVALID_VALUE", &[&format!("{member} is ")]);
    }
    for (host, code) in [("other", "HOST_SHARED"), ("work", "HOST_ELSEWHERE")] {
        let envelope = client.envelope("ssh_config_add", json!({"host": host, "port": 22})).await;
        refused(&envelope, code, &[host]);
    }
    assert_eq!(written(&lab), CONFIG);

    // The tool doesn't follow a link to a file elsewhere.
    std::fs::rename(lab.file("config"), lab.file("real")).expect("renamed");
    std::os::unix::fs::symlink(lab.file("real"), lab.file("config")).expect("a link");
    let envelope = client.envelope("ssh_config_add", json!({"host": "new", "hostname": "x"})).await;
    refused(&envelope, "SYMLINK", &["config"]);
    assert_eq!(written(&lab), CONFIG);
    assert!(client.close().await.0.success());
}

#[tokio::test]
async fn the_first_host_makes_the_configuration() {
    let Some(lab) = Lab::new("the_first_host_makes_the_configuration") else { return };
    let mut client = served(&lab, WITHOUT_SESSION).await;
    std::fs::remove_file(lab.file("config")).expect("removed");
    let none = client.envelope("ssh_config_list", json!({})).await;
    assert_eq!(done(none), json!([]));
    let added = json!({"host": "new", "hostname": lab.address("debian1"), "user": "root"});
    done(client.agrees(Way::InputRequired, "ssh_config_add", added).await);
    let mode = std::fs::metadata(lab.file("config")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert_eq!(
        lab.run(&["ssh", "-o", "BatchMode=yes", "new", "hostname"]),
        format!("{}\n", lab.host("debian1").name())
    );
    assert!(client.close().await.0.success());
}
