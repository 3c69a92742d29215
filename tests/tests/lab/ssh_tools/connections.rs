//! `ssh_connect`, `ssh_disconnect` and `ssh_test_connection`.

use linux_sysadmin_tests::{Client, Lab};
use serde_json::{Value, json};

use super::*;

/// The host on which calls without a host work.
async fn unnamed(client: &mut Client) -> Value {
    client.envelope("sysadmin_session_info", json!({})).await["target_host"].clone()
}

/// The number of open connections to the sshd of this port.
fn connections(lab: &Lab, family: &str, port: u16) -> usize {
    let filter = format!("sport = :{port}");
    lab.host(family).run(&["ss", "--no-header", "--tcp", "state", "established", &filter]).lines().count()
}

#[tokio::test]
async fn a_host_is_connected_by_its_alias_and_is_the_current_one_where_there_is_a_session() {
    let test = "a_host_is_connected_by_its_alias_and_is_the_current_one_where_there_is_a_session";
    let Some(lab) = Lab::new(test) else { return };
    for (version, has_session) in [(WITH_SESSION, true), (WITHOUT_SESSION, false)] {
        for family in FAMILIES {
            let mut client = served(&lab, version).await;
            assert_eq!(unnamed(&mut client).await, "localhost");
            let connected = done(client.envelope("ssh_connect", json!({"host": family})).await);
            assert_eq!((&connected["host"], &connected["current"]), (&json!(family), &json!(has_session)));
            assert_eq!(connected["address"], format!("{}:22", lab.address(family)), "{connected}");
            assert_eq!(
                (&connected["user"], &connected["hostname"]),
                (&json!("root"), &json!(lab.host(family).name()))
            );
            let keys =
                lab.host(family).run(&["sh", "-c", "cat /etc/ssh/ssh_host_*_key.pub | ssh-keygen -lf -"]);
            assert!(
                keys.contains(connected["host_key"].as_str().expect("a fingerprint")),
                "{connected}: {keys}"
            );
            assert_eq!(unnamed(&mut client).await, if has_session { family } else { "localhost" });
            let named = client.envelope("sysadmin_session_info", json!({"host": connected["host"]})).await;
            assert_eq!(named["data"]["distro"]["hostname"], lab.host(family).name(), "{named}");
            assert!(client.close().await.0.success());
        }
    }
}

#[tokio::test]
async fn port_account_and_key_may_be_given_and_the_name_stands_for_them_from_then_on() {
    let test = "port_account_and_key_may_be_given_and_the_name_stands_for_them_from_then_on";
    let Some(lab) = Lab::new(test) else { return };
    let (user, host_key) = (lab.key("user", "ed25519"), lab.key("host", "ecdsa"));
    lab.run(&["mkdir", "elsewhere"]);
    lab.run(&["cp", user.path(), "elsewhere/user"]);
    for family in FAMILIES {
        let account = Account::new(lab.host(family), "lsa-ssh");
        account.write(&user.public());
        let sshd = lab.sshd(family, PORT);
        sshd.start(&[&host_key], "");
        lab.know(&format!("{} {}", sshd.known_as(), host_key.public()));
        for version in [WITH_SESSION, WITHOUT_SESSION] {
            let mut client = served(&lab, version).await;
            let elsewhere = lab.home().path().join("elsewhere/user");
            for file in [json!(user.path()), json!("~/.ssh/user"), json!(elsewhere)] {
                let given = json!({"host": family, "port": PORT, "user": "lsa-ssh", "identity_file": file});
                // The configuration says another account, so a person is asked, once.
                let connected = done(client.agrees(way(version), "ssh_connect", given.clone()).await);
                assert_eq!(connected["user"], "lsa-ssh", "{connected}");
                assert_eq!(connected["address"], format!("{}:{PORT}", lab.address(family)));
                assert_eq!(connected["host_key"], listed(&lab, host_key.path()).1);
                let name = connected["host"].as_str().expect("a name");
                assert!(name.starts_with(&format!("lsa-ssh@{family}:{PORT}+")), "{name}");
                // This is another connection than that of the alias alone.
                for (host, user) in [(name, "lsa-ssh"), (family, "root")] {
                    let session = done(client.envelope("ssh_session_info", json!({"host": host})).await);
                    assert_eq!(
                        (&session["host"], &session["user"]),
                        (&json!(host), &json!(user)),
                        "{session}"
                    );
                }
                // A person has allowed this way already.
                let tested = done(client.envelope("ssh_test_connection", given).await);
                assert_eq!(
                    (&tested["host"], &tested["user"]),
                    (&connected["host"], &json!("lsa-ssh")),
                    "{tested}"
                );
            }
            assert!(client.close().await.0.success());
        }
    }
}

#[tokio::test]
async fn whoever_is_not_reached_is_told_why_and_the_current_host_stays() {
    let Some(lab) = Lab::new("whoever_is_not_reached_is_told_why_and_the_current_host_stays") else { return };
    let (wrong, host_key, other) =
        (lab.key("wrong", "ed25519"), lab.key("host", "ed25519"), lab.key("other", "ed25519"));
    for family in FAMILIES {
        let sshd = lab.sshd(family, PORT);
        sshd.start(&[&host_key], "LogLevel DEBUG1\n");
        let (known, unknown) =
            (sshd.known_as(), std::fs::read_to_string(lab.file("known_hosts")).expect("it"));
        let mut client = served(&lab, WITH_SESSION).await;
        done(client.envelope("ssh_connect", json!({"host": family})).await);
        let wrong_key = json!({"host": family, "identity_file": wrong.path(), "user": "admin"});
        let at_port = |port: u16| json!({"host": family, "port": port});
        for tool in ["ssh_connect", "ssh_test_connection"] {
            let address = lab.address(family);
            let (presented, remembered) = (listed(&lab, host_key.path()).1, listed(&lab, other.path()).1);
            for (arguments, code, texts) in [
                (json!({"host": "nobody.example.org"}), "HOST_UNKNOWN", &["nobody.example.org"][..]),
                (json!({"host": "-oProxyCommand=touch"}), "INVALID_ARGUMENTS", &["host"]),
                (at_port(9), "CONNECTION_FAILED", &[&address, "refused"]),
                (
                    wrong_key.clone(),
                    "AUTHENTICATION_FAILED",
                    &["admin@", &listed(&lab, wrong.path()).1, wrong.path()],
                ),
                (at_port(PORT), "HOST_KEY_UNKNOWN", &[&presented, &format!("ssh -p {PORT}")]),
                (at_port(0), "INVALID_ARGUMENTS", &["port"]),
                (json!({"host": family, "port": 65536}), "INVALID_ARGUMENTS", &["port"]),
            ] {
                let envelope = client.agrees(way(WITH_SESSION), tool, arguments.clone()).await;
                refused(&envelope, code, texts);
                assert_eq!(unnamed(&mut client).await, family, "{arguments}");
            }
            lab.know(&format!("{known} {}", other.public()));
            let envelope = client.envelope(tool, at_port(PORT)).await;
            refused(
                &envelope,
                "HOST_KEY_CHANGED",
                &["HAS CHANGED", &presented, &remembered, "ssh-keygen -f"],
            );
            assert_eq!(unnamed(&mut client).await, family);
            std::fs::write(lab.file("known_hosts"), &unknown).expect("written");
        }
        // The unknown host didn't even get the account's name.
        assert!(!sshd.log().contains("userauth-request"), "{}", sshd.log());
        assert!(client.close().await.0.success());
    }
}

#[tokio::test]
async fn a_connection_that_is_ended_is_gone_from_the_host_and_this_machine_is_the_current_one() {
    let test = "a_connection_that_is_ended_is_gone_from_the_host_and_this_machine_is_the_current_one";
    let Some(lab) = Lab::new(test) else { return };
    let host_key = lab.key("host", "ed25519");
    for family in FAMILIES {
        let sshd = lab.sshd(family, PORT);
        sshd.start(&[&host_key], "");
        lab.know(&format!("{} {}", sshd.known_as(), host_key.public()));
        for version in [WITH_SESSION, WITHOUT_SESSION] {
            let mut client = served(&lab, version).await;
            let at_port = json!({"host": family, "port": PORT});
            let connected = done(client.agrees(way(version), "ssh_connect", at_port).await);
            let name = connected["host"].clone();
            assert_eq!(connections(&lab, family, PORT), 1);
            let shown = done(client.envelope("ssh_disconnect", json!({"host": name, "dry_run": true})).await);
            assert_eq!(connections(&lab, family, PORT), 1, "{shown}");
            let ended = done(client.envelope("ssh_disconnect", json!({"host": name})).await);
            assert_eq!(ended, json!({"host": name, "was_connected": true, "current": "localhost"}));
            assert_eq!(shown, ended);
            lab.host(family).until(&format!("test -z \"$(ss -H -t state established sport = :{PORT})\""));
            assert_eq!(unnamed(&mut client).await, "localhost");
            let again = done(client.envelope("ssh_disconnect", json!({"host": name})).await);
            assert_eq!(again["was_connected"], false, "{again}");
            // A call that names the host connects again.
            let session = done(client.envelope("ssh_session_info", json!({"host": name})).await);
            assert_eq!(session["connected"], true, "{session}");
            let never = client.envelope("ssh_disconnect", json!({"host": "nobody"})).await;
            refused(&never, "NOT_CONNECTED", &["nobody"]);
            assert!(client.close().await.0.success());
        }
    }
}

#[tokio::test]
async fn without_a_name_the_current_connection_is_ended_and_of_two_none_is_current() {
    let test = "without_a_name_the_current_connection_is_ended_and_of_two_none_is_current";
    let Some(lab) = Lab::new(test) else { return };
    let mut client = served(&lab, WITH_SESSION).await;
    done(client.envelope("ssh_connect", json!({"host": FAMILIES[0]})).await);
    let ended = done(client.envelope("ssh_disconnect", json!({})).await);
    assert_eq!(ended, json!({"host": FAMILIES[0], "was_connected": true, "current": "localhost"}));
    assert_eq!(unnamed(&mut client).await, "localhost");

    // Agents that share this session may mean either host.
    for family in FAMILIES {
        done(client.envelope("ssh_connect", json!({"host": family})).await);
    }
    for tool in ["sysadmin_session_info", "ssh_session_info", "ssh_disconnect"] {
        refused(&client.envelope(tool, json!({})).await, "HOST_REQUIRED", &FAMILIES);
    }
    for family in FAMILIES {
        let session = done(client.envelope("ssh_session_info", json!({"host": family})).await);
        assert_eq!((&session["connected"], &session["current"]), (&json!(true), &json!(false)), "{session}");
        let ended = done(client.envelope("ssh_disconnect", json!({"host": family})).await);
        assert_eq!(ended, json!({"host": family, "was_connected": true, "current": null}));
    }
    assert!(client.close().await.0.success());
}

#[tokio::test]
async fn a_connection_that_is_tried_leaves_nothing() {
    let Some(lab) = Lab::new("a_connection_that_is_tried_leaves_nothing") else { return };
    let host_key = lab.key("host", "ed25519");
    for family in FAMILIES {
        let account = Account::new(lab.host(family), "lsa-ssh");
        account.write(&lab.run(&["cat", ".ssh/id_ed25519.pub"]));
        let sshd = lab.sshd(family, PORT);
        sshd.start(&[&host_key], "");
        lab.know(&format!("{} {}", sshd.known_as(), host_key.public()));
        let mut client = served(&lab, WITH_SESSION).await;
        for (number, tool) in ["ssh_test_connection", "ssh_connect"].into_iter().enumerate() {
            let mut arguments = json!({"host": family, "port": PORT, "user": "lsa-ssh"});
            if tool == "ssh_connect" {
                arguments["dry_run"] = true.into();
            }
            let tested = done(client.agrees(way(WITH_SESSION), tool, arguments).await);
            assert_eq!(tested["host_key"], listed(&lab, host_key.path()).1, "{tested}");
            assert_eq!(tested["user"], "lsa-ssh", "{tested}");
            if tool == "ssh_test_connection" {
                assert_eq!(tested["host_key_algorithm"], "ssh-ed25519", "{tested}");
                assert!(tested["connect_ms"].as_f64().is_some_and(|took| took > 0.0), "{tested}");
                assert!(tested["round_trip_ms"].is_f64(), "{tested}");
            }
            let gone = format!(
                "test -z \"$(ss -H -t state established sport = :{PORT})\" && ! pgrep -u lsa-ssh sshd"
            );
            lab.host(family).until(&gone);
            let log = sshd.logged("Disconnected from user lsa-ssh");
            assert_eq!(log.matches("Accepted publickey for lsa-ssh").count(), number + 1, "{log}");
            // It isn't a connection of the server either.
            assert_eq!(unnamed(&mut client).await, "localhost");
            let ended = done(client.envelope("ssh_disconnect", json!({"host": tested["host"]})).await);
            assert_eq!(ended["was_connected"], false, "{ended}");
        }
        assert!(client.close().await.0.success());
    }
}

#[tokio::test]
async fn another_account_than_the_configurations_is_asked_about() {
    let Some(lab) = Lab::new("another_account_than_the_configurations_is_asked_about") else { return };
    for family in FAMILIES {
        for version in [WITH_SESSION, WITHOUT_SESSION] {
            let mut client = served(&lab, version).await;
            let other = json!({"host": family, "user": "admin"});
            for (way_there, part) in [
                (json!({"host": family, "port": 2222}), "that it is at "),
                (json!({"host": family, "identity_file": "~/.ssh/id_ed25519"}), "nothing of the key "),
            ] {
                let asked = client.is_asked(way(version), "ssh_test_connection", way_there).await;
                assert!(asked.text().contains(part), "{}", asked.text());
                refused(&client.answers(&asked, "decline").await, "CONFIRMATION_DECLINED", &[]);
            }
            for tool in ["ssh_test_connection", "ssh_connect"] {
                let asked = client.is_asked(way(version), tool, other.clone()).await;
                let question = asked.text();
                for part in
                    [&format!("May {family} be worked on as admin"), "is worked on as root", "Risk:    high"]
                {
                    assert!(question.contains(part), "{question}");
                }
                let declined = client.answers(&asked, "decline").await;
                refused(&declined, "CONFIRMATION_DECLINED", &[]);
            }
            let name = json!({"host": format!("admin@{family}")});
            refused(&client.envelope("perf_uptime", name.clone()).await, "INVALID_ARGUMENTS", &[]);
            // The account that the configuration says is not another one.
            done(client.envelope("ssh_connect", json!({"host": family, "user": "root"})).await);
            done(client.agrees(way(version), "ssh_connect", other.clone()).await);
            done(client.envelope("ssh_connect", other).await);
            done(client.envelope("perf_uptime", name).await);
            assert!(client.close().await.0.success());
        }
    }
}
