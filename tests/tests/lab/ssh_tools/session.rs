//! `ssh_session_info`: the connection as sshd and ssh see it.

use linux_sysadmin_tests::Lab;
use serde_json::{Value, json};

use super::*;

/// Settings that make both sides choose one of several algorithms, and no setting, where they choose by themselves.
const AGREED: [&str; 3] = [
    "",
    "KexAlgorithms ecdh-sha2-nistp384\nCiphers aes256-ctr\nMACs hmac-sha2-512-etm@openssh.com\n",
    "KexAlgorithms diffie-hellman-group16-sha512\nCiphers aes128-gcm@openssh.com\n",
];

/// The text behind this mark, up to the end of the line.
#[track_caller]
fn after<'a>(text: &'a str, mark: &str) -> &'a str {
    let (_, rest) = text.rsplit_once(mark).unwrap_or_else(|| panic!("{mark}: {text}"));
    rest.lines().next().unwrap_or_default().trim()
}

#[tokio::test]
async fn what_was_agreed_on_is_what_sshd_has_logged_and_ssh_would_have() {
    let test = "what_was_agreed_on_is_what_sshd_has_logged_and_ssh_would_have";
    let Some(lab) = Lab::new(test) else { return };
    for family in FAMILIES {
        for (kind, settings) in ["ed25519", "ecdsa", "rsa"].into_iter().zip(AGREED) {
            let host_key = lab.key(&format!("{family}-{kind}"), kind);
            let sshd = lab.sshd(family, PORT);
            sshd.start(&[&host_key], &format!("LogLevel DEBUG1\n{settings}"));
            lab.know(&format!("{} {}", sshd.known_as(), host_key.public()));
            let mut client = served(&lab, WITHOUT_SESSION).await;
            let name = done(
                client
                    .agrees(way(WITHOUT_SESSION), "ssh_connect", json!({"host": family, "port": PORT}))
                    .await,
            );
            let session = client.envelope("ssh_session_info", json!({"host": name["host"]})).await;
            let session = done(session);
            let log = sshd.logged("kex: server->client");
            let cipher = after(&log, "kex: server->client cipher: ").split(' ').next().expect("a cipher");
            assert_eq!(session["cipher"], cipher, "{session}");
            assert_eq!(
                session["key_exchange"],
                after(&log, "kex: algorithm: ").trim_end_matches(" [preauth]")
            );
            let algorithm = after(&log, "kex: host key algorithm: ").trim_end_matches(" [preauth]");

            let arguments = ["-v", "-p", "2211", family, "true"];
            let said = String::from_utf8(lab.ssh(&arguments).stderr).expect("UTF-8");
            let (shown, fingerprint) = after(&said, "Server host key: ").split_once(' ').expect("both");
            assert_eq!(
                (&session["host_key"], &session["host_key_algorithm"]),
                (&json!(fingerprint), &json!(shown))
            );
            assert!(
                algorithm == shown || shown == "ssh-rsa" && algorithm.starts_with("rsa-sha2-"),
                "{algorithm}"
            );
            let version = after(&said, "remote software version ");
            assert_eq!(session["server_version"], format!("SSH-2.0-{version}"), "{session}");
            if !settings.is_empty() {
                let cipher =
                    after(&said, "kex: server->client cipher: ").split(' ').next().expect("a cipher");
                assert_eq!(session["cipher"], cipher);
                assert_eq!(session["key_exchange"], after(&said, "kex: algorithm: "));
            }
            assert_eq!(session["user"], "root");
            assert_eq!(session["address"], format!("{}:{PORT}", lab.address(family)));
            assert_eq!((&session["connected"], &session["sftp"]), (&json!(true), &json!(false)), "{session}");
            assert!(client.close().await.0.success());
        }
    }
}

#[tokio::test]
async fn how_long_it_is_there_and_how_often_it_was_had_back_is_told() {
    let test = "how_long_it_is_there_and_how_often_it_was_had_back_is_told";
    let Some(lab) = Lab::new(test) else { return };
    let host_key = lab.key("host", "ed25519");
    for family in FAMILIES {
        let sshd = lab.sshd(family, PORT);
        sshd.start(&[&host_key], "");
        lab.know(&format!("{} {}", sshd.known_as(), host_key.public()));
        let mut client = served(&lab, WITHOUT_SESSION).await;
        let connected = done(
            client.agrees(way(WITHOUT_SESSION), "ssh_connect", json!({"host": family, "port": PORT})).await,
        );
        let host = json!({"host": connected["host"]});
        for restored in 0..3 {
            let session = done(client.envelope("ssh_session_info", host.clone()).await);
            assert_eq!(session["restored"], restored, "{session}");
            // In the lab the time may be almost nothing.
            assert!(session["round_trip_ms"].as_f64().is_some_and(|took| took < 60_000.0), "{session}");
            // No other call uses the connection now.
            assert_eq!(session["channels"], 0, "{session}");
            assert!(session["keepalive_interval_seconds"].is_u64(), "{session}");
            let up = session["uptime_seconds"].as_u64().expect("a number");
            // The newest process counts, since one of an earlier connection that was cut may still be there.
            let begun = "ps -o etimes= -p $(pgrep --newest --full '^sshd: root@notty') | tr -d ' '";
            let by_ps: u64 = lab.host(family).run(&["sh", "-c", begun]).trim().parse().expect("a number");
            assert!(up <= by_ps + 1 && by_ps <= up + 5, "{up} {by_ps}");
            sshd.hang_up();
            lab.host(family).until(&format!("test -z \"$(ss -H -t state established sport = :{PORT})\""));
        }
        assert!(client.close().await.0.success());
    }
}

#[tokio::test]
async fn of_this_machine_and_of_several_hosts_it_is_told_as_well() {
    let Some(lab) = Lab::new("of_this_machine_and_of_several_hosts_it_is_told_as_well") else { return };
    lab.settle_for("hosts: {lab: [debian1, rhel1]}\n");
    let mut client = served(&lab, WITHOUT_SESSION).await;
    let here = done(client.envelope("ssh_session_info", json!({})).await);
    assert_eq!(
        (&here["host"], &here["connected"], &here["current"]),
        (&json!("localhost"), &json!(false), &json!(true))
    );
    assert_eq!(here["known"]["lab"], json!(FAMILIES), "{here}");
    assert!(here["known"][""].as_array().is_some_and(|names| names.contains(&json!("bare1"))), "{here}");
    assert_eq!(here.get("address"), None::<&Value>, "{here}");
    let both = client.envelope("ssh_session_info", json!({"host": "lab"})).await;
    assert_eq!(both["hosts"], json!({"total": 2, "succeeded": 2, "failed": 0}), "{both}");
    for family in FAMILIES {
        assert!(both["data"].to_string().contains(&lab.address(family)), "{both}");
    }
    assert!(client.close().await.0.success());
}
