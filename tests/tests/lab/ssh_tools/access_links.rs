//! `ssh_authorized_keys` and `ssh_copy_id` follow no link and change nothing where something else stands in the place of a
//! home, of a directory or of a file of keys.

use linux_sysadmin_tests::{Lab, Way};
use serde_json::json;

use super::*;

/// A directory outside of all homes.
const OUTSIDE: &str = "/run/lsa-ssh-outside";

/// Scripts that change a home, which is `$0`, each with the tool's error code.
const PLACES: [(&str, &str); 9] = [
    ("mkdir .ssh && ln -s $1/keys .ssh/authorized_keys", "SYMLINK"),
    ("mkdir .ssh && ln -s $1/nothing .ssh/authorized_keys", "SYMLINK"),
    ("mkdir .ssh && ln -s /root/.ssh/authorized_keys .ssh/authorized_keys", "SYMLINK"),
    ("ln -s $1 .ssh", "SYMLINK"),
    ("ln -s $1/nothing .ssh", "SYMLINK"),
    ("ln -s /root/.ssh .ssh", "SYMLINK"),
    ("mkdir -p .ssh/authorized_keys", "NOT_A_FILE"),
    ("echo > .ssh", "NOT_A_DIRECTORY"),
    ("mkdir .ssh && mkfifo .ssh/authorized_keys", "NOT_A_REGULAR_FILE"),
];

fn outside(host: &Host) -> String {
    let contents = format!("cat {OUTSIDE}/keys {OUTSIDE}/authorized_keys /root/.ssh/authorized_keys");
    seen(host, &[OUTSIDE, "/root/.ssh"]) + &host.run(&["sh", "-c", &contents])
}

#[tokio::test]
async fn what_is_no_plain_file_in_a_plain_directory_is_refused_and_nothing_is_touched() {
    let test = "what_is_no_plain_file_in_a_plain_directory_is_refused_and_nothing_is_touched";
    let Some(lab) = Lab::new(test) else { return };
    let new = Other::new(&lab, "new", "ed25519");
    for family in FAMILIES {
        let host = lab.host(family);
        let account = Account::new(host, "lsa-ssh");
        host.run(&[
            "sh",
            "-c",
            "rm -rf $0; mkdir $0; echo '# kept' > $0/keys; cp $0/keys $0/authorized_keys",
            OUTSIDE,
        ]);
        host.run(&["chown", "-R", "lsa-ssh:", OUTSIDE]);
        let mut client = served(&lab, WITHOUT_SESSION).await;
        for (place, code) in PLACES {
            let script =
                format!("set -e; cd /home/$0; rm -rf .ssh; {place}; find .ssh -exec chown -h $0: {{}} +");
            host.run(&["sh", "-c", &script, "lsa-ssh", OUTSIDE]);
            let (before, facts) = (outside(host), seen(account.host, &["/home/lsa-ssh"]));
            for (tool, more) in [
                ("ssh_authorized_keys", json!({})),
                ("ssh_authorized_keys", json!({"action": "add", "key": new.public})),
                ("ssh_authorized_keys", json!({"action": "remove", "key": new.public})),
                ("ssh_copy_id", json!({"key": "~/.ssh/id_ed25519"})),
            ] {
                let mut arguments = more;
                arguments["host"] = family.into();
                arguments["user"] = "lsa-ssh".into();
                let envelope = client.agrees(Way::InputRequired, tool, arguments).await;
                assert_eq!(envelope["error_code"], code, "{place}: {envelope}");
            }
            assert_eq!((outside(host), seen(host, &["/home/lsa-ssh"])), (before, facts), "{place}");
        }
        // Here the home itself is a link.
        host.run(&["sh", "-c", "rm -rf /home/lsa-ssh && ln -s $0 /home/lsa-ssh", OUTSIDE]);
        let before = outside(host);
        for arguments in [json!({"action": "add", "key": new.public}), json!({"action": "list"})] {
            let mut arguments = arguments;
            arguments["host"] = family.into();
            arguments["user"] = "lsa-ssh".into();
            let envelope = client.agrees(Way::InputRequired, "ssh_authorized_keys", arguments).await;
            refused(&envelope, "SYMLINK", &["lsa-ssh's home"]);
        }
        assert_eq!(outside(host), before);
        host.run(&["rm", "-rf", OUTSIDE, "/home/lsa-ssh"]);
        assert!(client.close().await.0.success());
    }
}

#[tokio::test]
async fn a_link_that_comes_after_the_question_is_not_followed() {
    let Some(lab) = Lab::new("a_link_that_comes_after_the_question_is_not_followed") else { return };
    let new = Other::new(&lab, "new", "ed25519");
    for family in FAMILIES {
        let host = lab.host(family);
        let account = Account::new(host, "lsa-ssh");
        host.run(&[
            "sh",
            "-c",
            "rm -rf $0; mkdir $0; echo '# kept' > $0/keys; cp $0/keys $0/authorized_keys",
            OUTSIDE,
        ]);
        let mut client = served(&lab, WITHOUT_SESSION).await;
        for swap in [
            "rm .ssh/authorized_keys && ln -s $1/keys .ssh/authorized_keys",
            "rm -r .ssh && ln -s $1 .ssh",
            "cd .. && mv lsa-ssh lsa-ssh-away && ln -s $1 lsa-ssh",
        ] {
            account.write("# kept\n");
            let arguments = json!({"host": family, "user": "lsa-ssh", "action": "add", "key": new.public});
            let asked = client.is_asked(Way::InputRequired, "ssh_authorized_keys", arguments).await;
            host.run(&["sh", "-c", &format!("cd /home/$0 && {swap}"), "lsa-ssh", OUTSIDE]);
            let before = outside(host);
            let envelope = client.answers(&asked, "accept").await;
            assert_eq!(envelope["status"], "error", "{swap}: {envelope}");
            assert_eq!(outside(host), before, "{swap}");
            host.run(&["sh", "-c", "rm -rf /home/lsa-ssh/.ssh; test -d /home/lsa-ssh-away || exit 0; rm -rf /home/lsa-ssh; mv /home/lsa-ssh-away /home/lsa-ssh"]);
        }
        host.run(&["rm", "-rf", OUTSIDE]);
        assert!(client.close().await.0.success());
    }
}

#[tokio::test]
async fn who_has_no_home_or_no_account_has_no_keys() {
    let Some(lab) = Lab::new("who_has_no_home_or_no_account_has_no_keys") else { return };
    let new = Other::new(&lab, "new", "ed25519");
    for family in FAMILIES {
        let host = lab.host(family);
        let _account = Account::new(host, "lsa-ssh");
        // usermod would wait for the end of all processes of the account.
        let lives_in = |home: &str| {
            let script = format!("s#^\\(lsa-ssh:.*\\):[^:]*:\\([^:]*\\)$#\\1:{home}:\\2#");
            host.run(&["sed", "-i", &script, "/etc/passwd"]);
        };
        let mut client = served(&lab, WITHOUT_SESSION).await;
        let mut refuses = async |user: &str, code: &str, texts: &[&str]| {
            for tool in ["ssh_authorized_keys", "ssh_copy_id"] {
                let mut arguments = json!({"host": family, "user": user, "key": "~/.ssh/id_ed25519"});
                if tool == "ssh_authorized_keys" {
                    arguments["action"] = "add".into();
                    arguments["key"] = new.public.clone().into();
                }
                refused(&client.envelope(tool, arguments).await, code, texts);
            }
        };
        refuses("lsa-nobody", "USER_NOT_FOUND", &["lsa-nobody"]).await;
        for name in ["../root", "-x", "a b", "", "root\n", "$(id)"] {
            refuses(name, "INVALID_USER", &["no account's name"]).await;
        }
        for (home, code) in [
            ("/nonexistent/lsa-ssh", "NO_HOME"),
            ("/", "NO_HOME"),
            ("/etc/hostname", "NO_HOME"),
            ("/home/../etc", "NO_HOME"),
        ] {
            lives_in(home);
            refuses("lsa-ssh", code, &["lsa-ssh"]).await;
        }
        lives_in("/home/lsa-ssh");
        let made = "ls -d /.ssh /etc/.ssh /home/lsa-ssh/.ssh /nonexistent 2> /dev/null || :";
        assert_eq!(host.run(&["sh", "-c", made]), "");

        // Where sshd reads keys from another file, a key in this one would open nothing.
        let settings = "Match User lsa-ssh\nAuthorizedKeysFile /etc/ssh/keys/%u\n";
        host.put("/etc/ssh/sshd_config.d/lsa-ssh.conf", settings.as_bytes());
        refuses("lsa-ssh", "KEYS_ELSEWHERE", &["/etc/ssh/keys/%u"]).await;
        assert!(client.close().await.0.success());
    }
}
