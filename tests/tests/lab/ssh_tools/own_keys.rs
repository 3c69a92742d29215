//! `ssh_key_list` and `ssh_key_generate`: the server's own keys, as ssh-keygen and ssh-add list them.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use linux_sysadmin_tests::{Lab, Way};
use serde_json::{Value, json};

use super::*;

/// The files in `.ssh`: mode, owner, size, and contents or the target of a link.
fn files(lab: &Lab) -> BTreeMap<String, (u32, u32, String)> {
    let entries = std::fs::read_dir(lab.file("")).expect("a directory").flatten();
    let known = |entry: std::fs::DirEntry| {
        let metadata = entry.metadata().expect("it is there");
        let contents = match metadata.is_symlink() {
            true => format!("{:?}", std::fs::read_link(entry.path()).expect("a link")),
            false => String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap_or_default()).into_owned(),
        };
        (entry.file_name().to_string_lossy().into_owned(), (metadata.mode(), metadata.uid(), contents))
    };
    entries.map(known).collect()
}

#[tokio::test]
async fn keys_are_listed_as_openssh_lists_them() {
    let Some(lab) = Lab::new("keys_are_listed_as_openssh_lists_them") else { return };
    lab.agent();
    for (name, kind) in [("plain", "ed25519"), ("ecdsa", "ecdsa"), ("locked", "ed25519"), ("open", "ed25519")]
    {
        lab.key(name, kind);
    }
    let file = |name: &str| lab.file(name).to_str().expect("UTF-8").to_owned();
    lab.run(&["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-C", "short", "-f", &file("short")]);
    lab.run(&["ssh-keygen", "-q", "-p", "-N", "a passphrase", "-f", &file("locked")]);
    lab.run(&["chmod", "0644", &file("open")]);
    let agents = lab.key("agents", "ed25519");
    let of_agent = listed(&lab, agents.path());
    lab.add_key(&agents);
    lab.run(&["ssh-add", "-q", &file("plain")]);
    lab.run(&["rm", agents.path(), &format!("{}.pub", agents.path())]);

    let mut client = served(&lab, WITHOUT_SESSION).await;
    let keys = done(client.envelope("ssh_key_list", json!({"lines": true})).await);
    let keys = keys.as_array().expect("keys");
    let of = |fingerprint: &str| {
        let mut found = keys.iter().filter(|key| key["fingerprint"] == fingerprint);
        let key = found.next().unwrap_or_else(|| panic!("{fingerprint}: {keys:?}"));
        assert!(found.next().is_none(), "{fingerprint} is listed once: {keys:?}");
        key
    };
    for (name, in_agent, encrypted, found) in [
        ("plain", true, Some(false), &["no passphrase"][..]),
        ("ecdsa", false, Some(false), &["no passphrase"]),
        ("locked", false, Some(true), &[]),
        // The server doesn't use a key that others may read.
        ("open", false, None, &["mode 0644"]),
        ("short", false, Some(false), &["2048 bits", "no passphrase"]),
        ("id_ed25519", false, Some(false), &["no passphrase"]),
    ] {
        let (bits, fingerprint, comment) = listed(&lab, &file(&format!("{name}.pub")));
        let key = of(&fingerprint);
        assert_eq!(
            (&key["bits"], key["comment"].as_str()),
            (&json!(bits), Some(comment.as_str()).filter(|it| !it.is_empty() && *it != "no comment")),
            "{key}"
        );
        assert!(
            key["path"].as_str().is_some_and(|path| path.ends_with(&format!("/.ssh/{name}.pub"))),
            "{key}"
        );
        let said = (&key["has_private"], &key["encrypted"], &key["in_agent"]);
        assert_eq!(said, (&json!(true), &json!(encrypted), &json!(in_agent)), "{key}");
        let public = std::fs::read_to_string(lab.file(&format!("{name}.pub"))).expect("a public key");
        assert_eq!(
            (key["algorithm"].as_str(), key["line"].as_str()),
            (public.split(' ').next(), Some(public.trim()))
        );
        let findings = key["findings"].as_array().cloned().unwrap_or_default();
        assert_eq!(findings.len(), found.len(), "{key}");
        assert!(
            findings
                .iter()
                .zip(found)
                .all(|(said, part)| said.as_str().is_some_and(|said| said.contains(part))),
            "{key}"
        );
    }
    let key = of(&of_agent.1);
    assert_eq!((&key["in_agent"], &key["has_private"], key.get("path")), (&json!(true), &json!(false), None));
    assert_eq!(keys.len(), 7, "{keys:?}");
    assert!(!format!("{keys:?}").contains("PRIVATE"));
    assert!(client.close().await.0.success());
}

#[tokio::test]
async fn a_new_key_is_one_of_openssh_and_opens_an_account_that_it_is_copied_to() {
    let test = "a_new_key_is_one_of_openssh_and_opens_an_account_that_it_is_copied_to";
    let Some(lab) = Lab::new(test) else { return };
    let mut client = served(&lab, WITHOUT_SESSION).await;
    for (number, (family, arguments, bits, kind)) in [
        (FAMILIES[0], json!({"comment": "of the server's, new"}), 256, "ssh-ed25519"),
        (FAMILIES[1], json!({"type": "ecdsa", "bits": 384}), 384, "ecdsa-sha2-nistp384"),
        (FAMILIES[1], json!({"type": "rsa", "bits": 3072}), 3072, "ssh-rsa"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("new{number}");
        let mut arguments = arguments;
        arguments["name"] = json!(name);
        let before = files(&lab);
        let mut dry_run = arguments.clone();
        dry_run["dry_run"] = true.into();
        let shown = done(client.agrees(Way::InputRequired, "ssh_key_generate", dry_run).await);
        assert_eq!((&shown["would"], shown.get("fingerprint")), (&json!("generate"), None), "{shown}");
        assert_eq!(files(&lab), before, "a dry run");

        let made = done(client.agrees(Way::InputRequired, "ssh_key_generate", arguments.clone()).await);
        let path = lab.file(&name);
        assert_eq!(made["path"], json!(path), "{made}");
        let (said_bits, fingerprint, comment) = listed(&lab, path.to_str().expect("UTF-8"));
        assert_eq!((said_bits, &made["fingerprint"]), (bits, &json!(fingerprint)), "{made}");
        if let Some(wanted) = arguments["comment"].as_str() {
            assert_eq!(comment, wanted);
        }
        let after = files(&lab);
        let public = &after[&format!("{name}.pub")];
        assert_eq!(
            (made["line"].as_str(), public.2.starts_with(kind)),
            (Some(public.2.trim()), true),
            "{made}"
        );
        assert_eq!((after[&name].0 & 0o7777, after[&name].1), (0o600, 0));
        assert_eq!((public.0 & 0o7777, public.1), (0o644, 0));
        assert!(after[&name].2.starts_with("-----BEGIN OPENSSH PRIVATE KEY-----"));
        let new: Vec<&String> = after.keys().filter(|file| !before.contains_key(*file)).collect();
        assert_eq!(new, [&name, &format!("{name}.pub")]);
        assert!(before.iter().all(|(file, known)| after[file] == *known));

        let account = Account::new(lab.host(family), "lsa-ssh");
        let (path, address) = (path.to_str().expect("UTF-8"), lab.address(family));
        assert!(!gets_in(&lab, path, account.name, &address));
        let copy = json!({"host": family, "user": account.name, "key": format!("~/.ssh/{name}")});
        let copied = done(client.agrees(Way::InputRequired, "ssh_copy_id", copy).await);
        assert_eq!((&copied["fingerprint"], &copied["count"]), (&json!(fingerprint), &json!(1)), "{copied}");
        assert!(gets_in(&lab, path, account.name, &address), "{made}");
    }
    assert!(client.close().await.0.success());
}

#[tokio::test]
async fn nothing_is_ever_written_over() {
    let Some(lab) = Lab::new("nothing_is_ever_written_over") else { return };
    let outside = lab.home().path().join("outside");
    lab.key("whole", "ed25519");
    lab.key("public", "ed25519");
    lab.key("private", "ed25519");
    lab.run(&["sh", "-c", "rm .ssh/public .ssh/private.pub"]);
    symlink(&outside, lab.file("link")).expect("a link");
    symlink(&outside, lab.file("linked.pub")).expect("a link");
    std::fs::create_dir(lab.file("directory")).expect("a directory");
    let before = files(&lab);
    let mut client = served(&lab, WITHOUT_SESSION).await;
    for name in ["whole", "public", "private", "link", "linked", "directory"] {
        for dry_run in [true, false] {
            let arguments = json!({"name": name, "dry_run": dry_run});
            let envelope = client.agrees(Way::InputRequired, "ssh_key_generate", arguments).await;
            refused(&envelope, "KEY_EXISTS", &[name, "never written over"]);
        }
    }
    // This is the lab's own key.
    let envelope = client.envelope("ssh_key_generate", json!({})).await;
    refused(&envelope, "KEY_EXISTS", &["id_ed25519"]);
    for name in ["config", "authorized_keys", "known_hosts", "../x", "a/b", "-x", "x.pub", "", "a b", "a\nb"]
    {
        let envelope = client.envelope("ssh_key_generate", json!({"name": name})).await;
        refused(&envelope, "INVALID_NAME", &["name is"]);
    }
    for arguments in
        [json!({"bits": 1024}), json!({"type": "rsa", "bits": 2048}), json!({"type": "ecdsa", "bits": 255})]
    {
        refused(&client.envelope("ssh_key_generate", arguments).await, "INVALID_BITS", &["expected"]);
    }
    for comment in ["-x", "a\nb", " a", ""] {
        let envelope = client.envelope("ssh_key_generate", json!({"name": "new", "comment": comment})).await;
        refused(&envelope, "INVALID_COMMENT", &[]);
    }
    assert_eq!(files(&lab), before);
    assert!(!outside.exists());
    assert!(client.close().await.0.success());
}

#[tokio::test]
async fn the_first_key_makes_its_directory_and_a_linked_one_is_refused() {
    let test = "the_first_key_makes_its_directory_and_a_linked_one_is_refused";
    let Some(lab) = Lab::new(test) else { return };
    let mut client = served(&lab, WITHOUT_SESSION).await;
    std::fs::rename(lab.file(""), lab.home().path().join("away")).expect("renamed");
    let ssh = lab.home().path().join(".ssh");
    symlink(lab.home().path().join("away"), &ssh).expect("a link");
    let before = files(&lab);
    let envelope = client.envelope("ssh_key_generate", json!({"name": "new"})).await;
    refused(&envelope, "SYMLINK", &["directory of keys"]);
    assert_eq!(files(&lab), before);
    std::fs::remove_file(&ssh).expect("removed");
    done(client.agrees(Way::InputRequired, "ssh_key_generate", json!({})).await);
    assert_eq!(std::fs::metadata(&ssh).expect("it is there").permissions().mode() & 0o7777, 0o700);
    let made: Vec<String> = files(&lab).into_keys().collect();
    assert_eq!(made, ["id_ed25519", "id_ed25519.pub"]);
    let keys: Value = done(client.envelope("ssh_key_list", json!({})).await);
    assert_eq!(keys.as_array().map(Vec::len), Some(1), "{keys}");
    assert!(client.close().await.0.success());
}
