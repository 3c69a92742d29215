//! `ssh_authorized_keys` and `ssh_copy_id` change which keys open an account. Everything else in the file stays as it
//! is, byte by byte.

use linux_sysadmin_tests::{Client, Lab, Way};
use serde_json::{Value, json};

use super::*;

/// An account that becomes root by sudo.
const SUDOER: &str = "lsa-ssh-sudo";

/// A file with the key of the connection, comments, options, empty lines, a line that sshd ignores, and a key that stands
/// there twice. Its last line has no newline.
fn file(way_in: &str, known: &Other, limited: &Other) -> String {
    let (known, limited) = (&known.public, &limited.public);
    format!(
        "# The keys of Ada; kept as they are\r\n\r\n{way_in}\n{known}\n\t \nno-pty,from=\"10.0.0.0/8,!10.1.0.0/16\" {limited}\n\
         nonsense at all\n# \u{fc} {limited}\n  restrict {known} again\nno-such-option {limited}\n# the end"
    )
}

/// Makes a change and says yes. The question must name the key and the account.
async fn agreed(client: &mut Client, tool: &str, arguments: Value, fingerprint: &str) -> Value {
    let asked = client.is_asked(Way::InputRequired, tool, arguments).await;
    for part in [fingerprint, "lsa-ssh", "authorized_keys"] {
        assert!(asked.text().contains(part), "{part}: {}", asked.text());
    }
    done(client.answers(&asked, "accept").await)
}

/// The kind, mode and owner of the file and of its directories.
fn owners(account: &Account<'_>) -> String {
    let home = format!("/home/{}", account.name);
    account.host.run(&["stat", "--format=%n %F %a %U:%G", &home, &format!("{home}/.ssh"), &account.file()])
}

/// Makes an account, and another one that may become root. The server's key opens both.
fn with_sudoer<'a>(lab: &'a Lab, family: &str) -> (Account<'a>, Account<'a>) {
    let host = lab.host(family);
    let (account, sudoer) = (Account::new(host, "lsa-ssh"), Account::new(host, SUDOER));
    host.put(
        &format!("/etc/sudoers.d/{SUDOER}"),
        format!("{SUDOER} ALL=(ALL:ALL) NOPASSWD: ALL\n").as_bytes(),
    );
    sudoer.write(&lab.run(&["cat", ".ssh/id_ed25519.pub"]));
    (account, sudoer)
}

#[tokio::test]
async fn keys_are_listed_added_and_removed_by_whoever_may_and_the_rest_stays() {
    let test = "keys_are_listed_added_and_removed_by_whoever_may_and_the_rest_stays";
    let Some(lab) = Lab::new(test) else { return };
    let own = lab.run(&["cat", ".ssh/id_ed25519.pub"]).trim().to_owned();
    let own_fingerprint = listed(&lab, &format!("{}.pub", lab.file("id_ed25519").display())).1;
    let [known, limited, new] = [("known", "ed25519"), ("limited", "rsa"), ("new", "ecdsa")]
        .map(|(name, kind)| Other::new(&lab, name, kind));
    for family in FAMILIES {
        let (account, _sudoer) = with_sudoer(&lab, family);
        let ways = [family.to_owned(), lab.alias(family, SUDOER), lab.alias(family, "lsa-ssh")];
        let mut client = served(&lab, WITHOUT_SESSION).await;
        for host in ways {
            let before = file(&own, &known, &limited);
            account.write(&before);
            let owned = owners(&account);
            let call = |action: &str, more: Value| {
                let mut arguments = json!({"host": host, "user": "lsa-ssh", "action": action});
                arguments.as_object_mut().expect("it").extend(more.as_object().cloned().unwrap_or_default());
                arguments
            };
            let list = done(client.envelope("ssh_authorized_keys", call("list", json!({}))).await);
            let of =
                |item: &Value| (item["line"].as_u64(), item["fingerprint"].clone(), item["in_use"] == true);
            let listed: Vec<_> = list["keys"].as_array().expect("keys").iter().map(of).collect();
            let (first, second) = (json!(known.fingerprint), json!(limited.fingerprint));
            let (third, none) = (json!(own_fingerprint), Value::Null);
            let expected = [
                (Some(3), third, true),
                (Some(4), first.clone(), false),
                (Some(6), second.clone(), false),
                (Some(7), none, false),
                (Some(9), first, false),
                (Some(10), second, false),
            ];
            assert_eq!(listed, expected, "{list}");
            assert_eq!(list["keys"][2]["options"], json!(["no-pty", "from=\"10.0.0.0/8,!10.1.0.0/16\""]));
            assert_eq!((&list["user"], &list["path"]), (&json!("lsa-ssh"), &json!(account.file())));

            let add = call("add", json!({"key": new.public}));
            let facts = account.facts();
            let mut dry_run = add.clone();
            dry_run["dry_run"] = true.into();
            let shown = client.envelope("ssh_authorized_keys", dry_run).await;
            assert_eq!(
                (&shown["data"]["would"], &shown["dry_run"]),
                (&json!("add"), &json!(true)),
                "{shown}"
            );
            let asked = client.is_asked(Way::InputRequired, "ssh_authorized_keys", add.clone()).await;
            refused(&client.answers(&asked, "decline").await, "CONFIRMATION_DECLINED", &[]);
            assert_eq!(account.facts(), facts, "a dry run, and a no");

            assert!(!gets_in(&lab, &new.path, "lsa-ssh", &lab.address(family)));
            agreed(&mut client, "ssh_authorized_keys", add.clone(), &new.fingerprint).await;
            let with_new = format!("{before}\r\n{}\r\n", new.public);
            assert_eq!(account.read(), with_new);
            assert_eq!(owners(&account), owned);
            assert!(gets_in(&lab, &new.path, "lsa-ssh", &lab.address(family)));
            let facts = account.facts();
            let again = client.envelope("ssh_authorized_keys", add).await;
            assert!(again["notes"].to_string().contains("nothing was written"), "{again}");
            assert_eq!(account.facts(), facts, "twice");

            let remove = call("remove", json!({"fingerprint": known.fingerprint}));
            let mut dry_run = remove.clone();
            dry_run["dry_run"] = true.into();
            assert_eq!(done(client.envelope("ssh_authorized_keys", dry_run).await)["would"], "remove");
            assert_eq!(account.facts(), facts, "a dry run");
            assert!(gets_in(&lab, &known.path, "lsa-ssh", &lab.address(family)));
            agreed(&mut client, "ssh_authorized_keys", remove.clone(), &known.fingerprint).await;
            assert!(!gets_in(&lab, &known.path, "lsa-ssh", &lab.address(family)));
            let gone = |text: &str, lines: [String; 2]| {
                lines.iter().fold(text.to_owned(), |text, line| text.replacen(line, "", 1))
            };
            let lines = [format!("{}\n", known.public), format!("  restrict {} again\n", known.public)];
            let without = gone(&with_new, lines);
            assert_eq!(account.read(), without);
            // The key is given as a line with another comment. Each line of the key goes, and a comment that looks like one
            // stays.
            let bare = limited.public.rsplit_once(' ').expect("a comment").0;
            agreed(
                &mut client,
                "ssh_authorized_keys",
                call("remove", json!({"key": bare})),
                &limited.fingerprint,
            )
            .await;
            let lines = [
                format!("no-pty,from=\"10.0.0.0/8,!10.1.0.0/16\" {}\n", limited.public),
                format!("no-such-option {}\n", limited.public),
            ];
            assert_eq!(account.read(), gone(&without, lines));
            assert_eq!(owners(&account), owned);
            let facts = account.facts();
            let again = client.envelope("ssh_authorized_keys", remove).await;
            assert!(again["notes"].to_string().contains("isn't there"), "{again}");

            // The key of the connection stays.
            let envelope = client.envelope("ssh_authorized_keys", call("remove", json!({"key": own}))).await;
            refused(&envelope, "KEY_IN_USE", &[&own_fingerprint, "nothing was removed"]);
            assert_eq!(account.facts(), facts);
        }
        assert!(client.close().await.0.success());
    }
}

#[tokio::test]
async fn the_servers_key_is_copied_once_and_opens_the_account() {
    let Some(lab) = Lab::new("the_servers_key_is_copied_once_and_opens_the_account") else { return };
    let second = lab.key("second", "ed25519");
    let fingerprint = listed(&lab, second.path()).1;
    for family in FAMILIES {
        let account = Account::new(lab.host(family), "lsa-ssh");
        let address = lab.address(family);
        let mut client = served(&lab, WITHOUT_SESSION).await;
        let several = client.envelope("ssh_copy_id", json!({"host": family, "user": "lsa-ssh"})).await;
        refused(&several, "KEY_NOT_CHOSEN", &[&fingerprint, "/.ssh/second.pub"]);
        let copy = json!({"host": family, "user": "lsa-ssh", "key": second.path()});
        let mut dry_run = copy.clone();
        dry_run["dry_run"] = true.into();
        let facts = account.facts();
        assert_eq!(done(client.envelope("ssh_copy_id", dry_run).await)["would"], "add");
        assert_eq!(account.facts(), facts, "a dry run");
        assert!(!gets_in(&lab, second.path(), "lsa-ssh", &address));

        agreed(&mut client, "ssh_copy_id", copy.clone(), &fingerprint).await;
        assert_eq!(account.read(), format!("{}\n", second.public()));
        let home = format!("/home/{}", account.name);
        let made = owners(&account);
        assert!(made.contains(&format!("{home}/.ssh directory 700 lsa-ssh:lsa-ssh\n")), "{made}");
        assert!(made.contains(&format!("{} regular file 600 lsa-ssh:lsa-ssh\n", account.file())), "{made}");
        assert!(gets_in(&lab, second.path(), "lsa-ssh", &address));
        // A second call, also with another form of the key, gets a note and doesn't ask.
        let facts = account.facts();
        for key in [second.path().to_owned(), "~/.ssh/second.pub".to_owned(), fingerprint.clone()] {
            let arguments = json!({"host": family, "user": "lsa-ssh", "key": key});
            let again = client.envelope("ssh_copy_id", arguments).await;
            assert_eq!(done(again.clone())["count"], 1, "{again}");
            assert!(again["notes"].to_string().contains("nothing was written"), "{again}");
        }
        assert_eq!(account.facts(), facts, "twice");
        assert!(client.close().await.0.success());
    }
}

#[tokio::test]
async fn one_question_lets_a_key_in_on_several_hosts() {
    let Some(lab) = Lab::new("one_question_lets_a_key_in_on_several_hosts") else { return };
    let new = Other::new(&lab, "new", "ed25519");
    let accounts = FAMILIES.map(|family| Account::new(lab.host(family), "lsa-ssh"));
    let mut client = served(&lab, WITHOUT_SESSION).await;
    let arguments = json!({"host": FAMILIES, "user": "lsa-ssh", "action": "add", "key": new.public});
    let asked = client.is_asked(Way::InputRequired, "ssh_authorized_keys", arguments).await;
    assert!(FAMILIES.iter().all(|family| asked.text().contains(family)), "{}", asked.text());
    let both = client.answers(&asked, "accept").await;
    assert_eq!(both["hosts"], json!({"total": 2, "succeeded": 2, "failed": 0}), "{both}");
    for (family, account) in FAMILIES.into_iter().zip(&accounts) {
        assert_eq!(account.read(), format!("{}\n", new.public));
        assert!(gets_in(&lab, &new.path, "lsa-ssh", &lab.address(family)));
    }
    assert!(client.close().await.0.success());
}

#[tokio::test]
async fn the_servers_key_leaves_an_account_only_over_a_connection_by_another_one() {
    let test = "the_servers_key_leaves_an_account_only_over_a_connection_by_another_one";
    let Some(lab) = Lab::new(test) else { return };
    let (first, second) = (lab.key("first", "ed25519"), lab.key("second", "ed25519"));
    let other = Other::new(&lab, "other", "ed25519");
    for family in FAMILIES {
        let account = Account::new(lab.host(family), "lsa-ssh");
        let both = format!("{}\n{}\n{}\n", first.public(), second.public(), other.public);
        account.write(&both);
        let mut client = served(&lab, WITHOUT_SESSION).await;
        let remove = |host: &Value, key: &str| json!({"host": host, "user": "lsa-ssh", "action": "remove", "key": key});
        for key in [&first, &second] {
            let envelope =
                client.envelope("ssh_authorized_keys", remove(&json!(family), &key.public())).await;
            refused(&envelope, "KEY_OF_CONTROLLER", &["gets in as lsa-ssh", "Connect as lsa-ssh"]);
        }
        let mut connections = Vec::new();
        for key in [&first, &second] {
            let given = json!({"host": family, "user": "lsa-ssh", "identity_file": key.path()});
            let connected = client.agrees(Way::InputRequired, "ssh_connect", given).await;
            connections.push(done(connected)["host"].clone());
        }
        let by_first = remove(&connections[0], &first.public());
        refused(&client.envelope("ssh_authorized_keys", by_first).await, "KEY_IN_USE", &["ssh_connect"]);
        assert_eq!(account.read(), both);
        let gone = client.agrees(
            Way::InputRequired,
            "ssh_authorized_keys",
            remove(&connections[0], &second.public()),
        );
        done(gone.await);
        assert_eq!(account.read(), format!("{}\n{}\n", first.public(), other.public));
        // The other connection is still open, but its key opens nothing any more.
        let by_second = remove(&connections[1], &first.public());
        refused(&client.envelope("ssh_authorized_keys", by_second).await, "KEY_OF_CONTROLLER", &[]);
        assert!(gets_in(&lab, first.path(), "lsa-ssh", &lab.address(family)));
        assert!(client.close().await.0.success());
    }
}
