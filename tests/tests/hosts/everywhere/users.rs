//! Tests on a real host what the tools for users, groups, permissions and sudo show, do, undo and refuse. getent,
//! passwd, chage, stat and visudo say what they have done.

use linux_sysadmin_tests::{Changing, Client, Expected, way};
use serde_json::{Value, json};

const CLEAN: &str = r"
for user in lsa-new lsa-other lsa-renamed; do pkill -KILL -u $user; userdel --force --remove $user; done
for group in lsa-group lsa-team lsa-new; do groupdel $group; done
rm -f /tmp/lsa-shared
rm -rf /etc/sudoers.d/linux-sysadmin /etc/sudoers.d/lsa* /var/lib/linux-sysadmin-locked /srv/lsa* /home/lsa* /run/lsa-*
while mountpoint --quiet /etc/sudoers.d; do umount --lazy /etc/sudoers.d; done
sed -i '/^lsa-/d' /etc/subuid /etc/subgid
";

/// Files that the programs that change accounts write besides.
const ACCOUNTS: &[Expected] = &[
    Expected {
        name: "/etc/passwd*",
        why: "it is the tool's to change, and the program keeps the former one",
    },
    Expected {
        name: "/etc/shadow*",
        why: "it is the tool's to change, and the program keeps the former one",
    },
    Expected { name: "/etc/group*", why: "it is the tool's to change, and the program keeps the former one" },
    Expected {
        name: "/etc/gshadow*",
        why: "it is the tool's to change, and the program keeps the former one",
    },
    Expected { name: "/etc/subuid*", why: "useradd gives numbers to containers" },
    Expected { name: "/etc/subgid*", why: "useradd gives numbers to containers" },
];

fn changing(test: &str) -> Option<Changing> {
    let machine = Changing::by(way(), test, "", CLEAN)?;
    sudo_is_well(&machine, "before");
    Some(machine)
}

/// Asserts that sudo can read its rules, and that the tests' account has its rights.
#[track_caller]
fn sudo_is_well(machine: &Changing, context: &str) {
    assert!(machine.holds("visudo -c"), "{context}: sudo can't read its rules");
    assert!(machine.holds("runuser -u admin -- sudo -n true"), "{context}: admin has lost its sudo");
}

/// Makes a change, which must ask; says yes, and checks that the change is the one that was shown.
async fn agreed(machine: &Changing, client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let preview = machine.shows(client, tool, arguments).await;
    machine.asks(client, tool, arguments, preview["risk"].as_str().unwrap_or("critical")).await;
    let mut confirmed = arguments.clone();
    confirmed["confirmed"] = json!(true);
    let envelope = client.envelope(tool, confirmed).await;
    assert_eq!(envelope["status"], "success", "{envelope}");
    machine.nothing_is_left_behind();
    envelope
}

/// Makes a dry run, which changes nothing, and then the change that it shows.
async fn shown_and_done(machine: &Changing, client: &mut Client, tool: &str, arguments: &Value) -> Value {
    let preview = machine.shows(client, tool, arguments).await;
    machine.does(client, tool, arguments, &preview).await
}

fn passwd(machine: &Changing, user: &str) -> Vec<String> {
    machine.sh(&format!("getent passwd {user}")).trim_end().split(':').map(str::to_owned).collect()
}

/// The status of an account's password: `L`, `P` or `NP`.
fn status(machine: &Changing, user: &str) -> String {
    machine.sh(&format!("passwd -S {user}")).split(' ').nth(1).expect("a status").to_owned()
}

/// The account's last day, or `never`.
fn expiry(machine: &Changing, user: &str) -> String {
    let said = machine.sh(&format!("LC_ALL=C chage -l {user} | grep 'Account expires'"));
    said.split(": ").nth(1).expect("a date").trim().to_owned()
}

fn groups(machine: &Changing, user: &str) -> String {
    machine.sh(&format!("id -Gn {user}")).trim().to_owned()
}

#[tokio::test]
async fn an_account_lives_as_it_is_told_to() {
    let Some(machine) = changing("an_account_lives_as_it_is_told_to") else { return };
    let mut client = machine.serve_all_but_critical().await;
    let before = machine.snapshot();

    let new = json!({"user": "lsa-new", "comment": "Ada, of the lab", "groups": ["adm", "audio"], "expires": "2037-01-31"});
    let made = shown_and_done(&machine, &mut client, "user_create", &new).await;
    let entry = passwd(&machine, "lsa-new");
    assert_eq!(
        (entry[4].as_str(), entry[5].as_str(), entry[6].as_str()),
        ("Ada, of the lab", "/home/lsa-new", "/bin/bash")
    );
    assert_eq!(made["data"]["uid"].to_string(), entry[2]);
    assert_eq!(
        (status(&machine, "lsa-new").as_str(), expiry(&machine, "lsa-new").as_str()),
        ("L", "Jan 31, 2037")
    );
    assert_eq!(groups(&machine, "lsa-new"), "lsa-new adm audio");
    assert!(made["notes"].to_string().contains("ssh_authorized_keys"), "{made}");
    machine.holds_already(&mut client, "user_create", &new).await;

    let change = json!({
        "user": "lsa-new", "shell": "/bin/sh", "comment": "", "add_groups": ["video"], "remove_groups": ["adm"],
        "expires": "2036-06-30",
    });
    shown_and_done(&machine, &mut client, "user_modify", &change).await;
    let entry = passwd(&machine, "lsa-new");
    assert_eq!((entry[4].as_str(), entry[6].as_str()), ("", "/bin/sh"));
    assert_eq!(
        (groups(&machine, "lsa-new").as_str(), expiry(&machine, "lsa-new").as_str()),
        ("lsa-new audio video", "Jun 30, 2036")
    );
    machine.holds_already(&mut client, "user_modify", &change).await;

    machine.sh("touch /home/lsa-new/kept");
    let moved = json!({"user": "lsa-new", "home": "/srv/lsa-new", "rename": "lsa-renamed"});
    shown_and_done(&machine, &mut client, "user_modify", &moved).await;
    assert_eq!(passwd(&machine, "lsa-renamed")[5], "/srv/lsa-new");
    assert!(machine.has("/srv/lsa-new/kept") && !machine.has("/home/lsa-new"));

    // The account has a password and an expiry date of its own.
    machine.sh("echo lsa-renamed:lsa-a-password-9 | chpasswd");
    let who = json!({"user": "lsa-renamed"});
    let locked = shown_and_done(&machine, &mut client, "user_lock", &who).await;
    assert_eq!(locked["data"]["locked"], true, "{locked}");
    assert_eq!(
        (status(&machine, "lsa-renamed").as_str(), expiry(&machine, "lsa-renamed").as_str()),
        ("L", "Jan 02, 1970")
    );
    machine.holds_already(&mut client, "user_lock", &who).await;
    let unlocked = shown_and_done(&machine, &mut client, "user_unlock", &who).await;
    assert_eq!(unlocked["data"]["expires"], "2036-06-30", "{unlocked}");
    assert_eq!(
        (status(&machine, "lsa-renamed").as_str(), expiry(&machine, "lsa-renamed").as_str()),
        ("P", "Jun 30, 2036")
    );
    machine.holds_already(&mut client, "user_unlock", &who).await;
    assert!(machine.holds("test -z \"$(ls -A /var/lib/linux-sysadmin-locked)\""), "a record is left");

    // A password that was locked before stays locked.
    machine.sh("usermod --lock lsa-renamed; chage -E -1 lsa-renamed");
    shown_and_done(&machine, &mut client, "user_lock", &who).await;
    shown_and_done(&machine, &mut client, "user_unlock", &who).await;
    assert_eq!(
        (status(&machine, "lsa-renamed").as_str(), expiry(&machine, "lsa-renamed").as_str()),
        ("L", "never")
    );

    let info = client.envelope("user_info", who.clone()).await;
    assert_eq!(
        (&info["data"]["home"]["path"], &info["data"]["login"]["password"]),
        (&json!("/srv/lsa-new"), &json!("locked")),
        "{info}"
    );
    assert!(
        !info.to_string().contains("$y$") && !info.to_string().contains("$6$"),
        "a hash is shown: {info}"
    );

    let deleted =
        agreed(&machine, &mut client, "user_delete", &json!({"user": "lsa-renamed", "remove_home": true}))
            .await;
    assert!(deleted["data"]["removed_home"].to_string().contains("/srv/lsa-new"), "{deleted}");
    assert!(!machine.holds("getent passwd lsa-renamed") && !machine.has("/srv/lsa-new"));
    machine.sh("groupdel lsa-new; rmdir /var/lib/linux-sysadmin-locked");
    machine.is_still_but(&before, ACCOUNTS, "the account is gone");
    sudo_is_well(&machine, "afterwards");
    machine.audit_is_valid("root", "root");
}

#[tokio::test]
async fn a_locked_account_is_opened_by_no_key() {
    let Some(machine) = changing("a_locked_account_is_opened_by_no_key") else { return };
    let mut client = machine.serve_all_but_critical().await;
    machine.sh("useradd --create-home lsa-new");
    let opens =
        || machine.holds("runuser -u lsa-new -- true") && machine.holds("su - lsa-new -c true < /dev/null");
    assert!(opens());
    let done = client.envelope("user_lock", json!({"user": "lsa-new"})).await;
    assert_eq!(done["status"], "success", "{done}");
    // sshd asks PAM this for an account that has a key.
    assert!(!machine.holds("su - lsa-new -c true < /dev/null"), "PAM lets a locked account in");
    let done = client.envelope("user_unlock", json!({"user": "lsa-new"})).await;
    assert_eq!(done["status"], "success", "{done}");
    assert!(opens());
}

#[tokio::test]
async fn a_group_is_made_and_deleted_again() {
    let Some(machine) = changing("a_group_is_made_and_deleted_again") else { return };
    let mut client = machine.serve_all_but_critical().await;
    let before = machine.snapshot();
    let new = json!({"name": "lsa-group", "gid": 4711});
    shown_and_done(&machine, &mut client, "group_create", &new).await;
    assert!(machine.sh("getent group lsa-group").starts_with("lsa-group:x:4711:"));
    machine.holds_already(&mut client, "group_create", &new).await;
    machine.sh("gpasswd -a admin lsa-group");
    let shown = machine.shows(&mut client, "group_delete", &json!({"name": "lsa-group"})).await;
    assert!(shown.to_string().contains("its members lose it: admin"), "{shown}");
    let done = machine.does(&mut client, "group_delete", &json!({"name": "lsa-group"}), &shown).await;
    assert_eq!(done["data"]["members"], json!(["admin"]), "{done}");
    assert!(!machine.holds("getent group lsa-group"));
    machine.is_still_but(&before, ACCOUNTS, "the group is gone");
}

#[tokio::test]
async fn what_breaks_in_the_middle_is_undone() {
    let Some(machine) = changing("what_breaks_in_the_middle_is_undone") else { return };
    let mut client = machine.serve_all_but_critical().await;
    machine.sh("useradd --create-home lsa-new; useradd lsa-other");
    // gpasswd adds the group, and then usermod finds no room for the copy of the home.
    machine.sh("mkdir /srv/lsa-full; mount -t tmpfs -o size=64k,mode=755 lsa /srv/lsa-full");
    machine.sh("dd if=/dev/zero of=/home/lsa-new/large bs=1k count=512 2>/dev/null; chown lsa-new /home/lsa-new/large");
    let is = || {
        machine.sh("getent passwd lsa-new; id --groups --name lsa-new; stat --format=%U:%a /home/lsa-new; ls -A /home/lsa-new /srv/lsa-full")
    };
    let before = is();
    let arguments = json!({"user": "lsa-new", "home": "/srv/lsa-full/x", "add_groups": ["audio"]});
    let envelope = client.envelope("user_modify", arguments).await;
    assert_eq!(envelope["status"], "error", "{envelope}");
    assert_eq!(envelope["failed_step"], 1, "{envelope}");
    // usermod writes the new home down before it fails to move the old one.
    assert_eq!(is(), before, "the group was left again, and the account has the home that is there");
    machine.nothing_is_left_behind();
    machine.sh("umount /srv/lsa-full");
    sudo_is_well(&machine, "after a plan that broke");
}

#[tokio::test]
async fn a_rule_of_sudo_is_added_changed_and_removed() {
    let Some(machine) = changing("a_rule_of_sudo_is_added_changed_and_removed") else { return };
    let mut client = machine.serve_default().await;
    machine.sh("useradd --create-home lsa-new");
    let file = "/etc/sudoers.d/linux-sysadmin";
    let before = machine.snapshot();

    let rule = |commands: &[&str]| json!({"user": "lsa-new", "runas": "root", "commands": commands, "nopasswd": true, "comment": "for tests"});
    let add = json!({"action": "add", "rule": rule(&["/usr/bin/id -u", "/usr/bin/whoami \"\""])});
    agreed(&machine, &mut client, "sudoers_modify", &add).await;
    assert_eq!(
        machine.read(file),
        "lsa-new ALL=(root) NOPASSWD: /usr/bin/id -u, /usr/bin/whoami \"\" # for tests\n"
    );
    assert_eq!(machine.sh(&format!("stat -c '%a %U:%G' {file}")), "440 root:root\n");
    let may = |command: &str| machine.holds(&format!("runuser -u lsa-new -- sudo -n {command}"));
    assert!(
        may("/usr/bin/id -u")
            && may("whoami")
            && !may("/usr/bin/id -g")
            && !may("whoami --version")
            && !may("/bin/sh")
    );
    machine.holds_already(&mut client, "sudoers_modify", &add).await;
    sudo_is_well(&machine, "added");

    let listed = client.envelope("sudoers_list", json!({"user": "lsa-new"})).await;
    assert_eq!(
        (&listed["data"]["rules"][0]["file"], &listed["data"]["rules"][0]["line"]),
        (&json!(file), &json!(1)),
        "{listed}"
    );
    let info = client.envelope("user_info", json!({"user": "lsa-new"})).await;
    assert_eq!(info["data"]["sudo"]["root"], "some", "{info}");

    // Other lines stay as they are.
    machine.sh(&format!(
        "printf '# ours\\r\\n\\tlsa-new ALL = (games) /bin/true, \\\\\\n  /bin/false\\n' >> {file}"
    ));
    let change = json!({"action": "modify", "rule": {"user": "lsa-new", "runas": "root", "commands": ["/usr/bin/id -g"], "nopasswd": true}});
    agreed(&machine, &mut client, "sudoers_modify", &change).await;
    assert!(may("/usr/bin/id -g") && !may("/usr/bin/id -u"));
    let ours = "# ours\r\n\tlsa-new ALL = (games) /bin/true, \\\n  /bin/false\n";
    assert_eq!(
        machine.read(file),
        format!("lsa-new ALL=(root) NOPASSWD: /usr/bin/id -g # for tests\n{ours}")
    );
    sudo_is_well(&machine, "changed");
    let ambiguous = json!({"action": "remove", "rule": {"user": "lsa-new"}});
    machine.refuses(&mut client, "sudoers_modify", &ambiguous, "AMBIGUOUS_RULE").await;

    agreed(
        &machine,
        &mut client,
        "sudoers_modify",
        &json!({"action": "remove", "rule": {"user": "lsa-new"}, "line": 1}),
    )
    .await;
    assert_eq!(machine.read(file), ours);
    assert!(!may("/usr/bin/id -g"));
    agreed(
        &machine,
        &mut client,
        "sudoers_modify",
        &json!({"action": "remove", "rule": {"user": "lsa-new"}, "line": 2}),
    )
    .await;
    machine.sh(&format!("test \"$(cat {file})\" = \"$(printf '# ours\\r')\"; rm {file}"));
    machine.is_still(&before, "the rules are gone");
    sudo_is_well(&machine, "removed");
    machine.audit_is_valid("root", "root");
}

#[tokio::test]
async fn a_file_that_visudo_refuses_is_left_as_it_was() {
    let Some(machine) = changing("a_file_that_visudo_refuses_is_left_as_it_was") else { return };
    let mut client = machine.serve_default().await;
    machine.sh("useradd lsa-new; printf 'lsa-new ALL=(ALL NOPASSWD\\n' > /etc/sudoers.d/lsa.wrong; chmod 440 /etc/sudoers.d/lsa.wrong");
    // The file that sudo ignores because of its name has no other fault.
    machine.sh("cp -a /etc/sudoers.d/lsa.wrong /etc/sudoers.d/lsa");
    let before = machine.snapshot();
    let mut arguments = json!({
        "action": "add", "target_file": "/etc/sudoers.d/lsa",
        "rule": {"user": "lsa-new", "commands": ["/usr/bin/id -u"]},
    });
    machine.asks(&mut client, "sudoers_modify", &arguments, "critical").await;
    arguments["confirmed"] = json!(true);
    let envelope = client.envelope("sudoers_modify", arguments).await;
    assert_eq!(envelope["error_code"], "VALIDATION_FAILED", "{envelope}");
    assert!(envelope["message"].to_string().contains("syntax error"), "{envelope}");
    machine.is_still(&before, "visudo refused");
    machine.nothing_is_left_behind();
    let listed = client.envelope("sudoers_list", json!({})).await;
    assert!(listed["data"]["errors"].to_string().contains("syntax error"), "{listed}");
    machine.sh("rm /etc/sudoers.d/lsa /etc/sudoers.d/lsa.wrong");
    sudo_is_well(&machine, "after a refused file");
}

#[tokio::test]
async fn permissions_are_set_shown_and_put_back() {
    let Some(machine) = changing("permissions_are_set_shown_and_put_back") else { return };
    let mut client = machine.serve_all_but_critical().await;
    machine.sh(
        "useradd lsa-new; mkdir -p /srv/lsa/in/deep; echo x > /srv/lsa/in/file; ln -s /etc/hostname /srv/lsa/in/link; \
         chmod 2755 /srv/lsa/in; chmod 0600 /srv/lsa/in/file; cp /bin/true /srv/lsa/program",
    );
    let stat = |path: &str| machine.sh(&format!("stat -c '%a %U:%G' {path}")).trim().to_owned();
    let hostname = stat("/etc/hostname");
    let file = json!({"path": "/srv/lsa/in/file", "mode": "u=rw,g=r,o=", "owner": "lsa-new", "group": "adm"});
    let done = shown_and_done(&machine, &mut client, "perms_set", &file).await;
    assert_eq!(stat("/srv/lsa/in/file"), "640 lsa-new:adm");
    assert_eq!(done["data"]["former"], "0600 root:root", "{done}");
    machine.holds_already(&mut client, "perms_set", &file).await;
    shown_and_done(&machine, &mut client, "perms_set", &json!({"path": "/srv/lsa/in", "mode": "g-s,o-rx"}))
        .await;
    assert_eq!(stat("/srv/lsa/in"), "750 root:root");

    let tree = json!({"path": "/srv/lsa/in", "mode": "g+rX", "owner": "lsa-new", "recursive": true});
    let done = shown_and_done(&machine, &mut client, "perms_set", &tree).await;
    assert_eq!(done["data"]["tree"]["symlinks"], 1, "{done}");
    assert_eq!(
        (stat("/srv/lsa/in/deep"), stat("/srv/lsa/in/file")),
        ("755 lsa-new:root".to_owned(), "640 lsa-new:adm".to_owned())
    );
    assert_eq!(stat("/etc/hostname"), hostname, "what a symlink leads to stays");

    let checked = client
        .envelope("perms_check", json!({"path": ["/srv/lsa/in/file", "/srv/lsa/in/link"], "user": "nobody"}))
        .await;
    assert!(
        checked["data"][0]["access"]["stopped_by"].to_string().contains("can't enter /srv/lsa/in"),
        "{checked}"
    );
    assert_eq!(checked["data"][1]["leads_to"], "/etc/hostname", "{checked}");
    let can = |user: &str, test: &str| machine.holds(&format!("runuser -u {user} -- test {test}"));
    for (user, path) in [
        ("nobody", "/etc/shadow"),
        ("nobody", "/etc/passwd"),
        ("lsa-new", "/srv/lsa/in/file"),
        ("admin", "/srv/lsa/program"),
    ] {
        let checked = client.envelope("perms_check", json!({"path": path, "user": user})).await;
        let access = &checked["data"][0]["access"];
        for (right, flag) in [("read", "-r"), ("write", "-w"), ("execute", "-x")] {
            assert_eq!(
                access[right],
                can(user, &format!("{flag} {path}")),
                "{user} {right} {path}: {checked}"
            );
        }
    }

    // In a shared directory, and in a directory of a service, the change runs with the rights of the owner.
    machine.sh("install -d -o lsa-new /srv/lsa/own; for file in /tmp/lsa-shared /srv/lsa/own/file; do \
         install -m 644 -o lsa-new -g lsa-new /etc/hostname $file; done");
    for path in ["/tmp/lsa-shared", "/srv/lsa/own/file"] {
        let done = client.envelope("perms_set", json!({"path": path, "mode": "600"})).await;
        assert_eq!(
            (&done["status"], stat(path).as_str()),
            (&json!("success"), "600 lsa-new:lsa-new"),
            "{done}"
        );
    }

    let before = machine.snapshot();
    for (arguments, code) in [
        // A new owner needs root's rights, and the old owner could put another file there meanwhile.
        (json!({"path": "/tmp/lsa-shared", "owner": "nobody"}), "UNTRUSTED_DIRECTORY"),
        (json!({"path": "/srv/lsa/in/link", "mode": "644"}), "SYMLINK"),
        (json!({"path": "/etc", "mode": "755", "recursive": true}), "SYSTEM_TREE"),
        (json!({"path": "/lib", "owner": "lsa-new"}), "SYMLINK"),
        (json!({"path": "/usr/lib/systemd", "owner": "lsa-new", "recursive": true}), "SYSTEM_TREE"),
        (json!({"path": "/etc/shadow", "mode": "o+r"}), "SENSITIVE_FILE"),
        (json!({"path": "/etc/sudoers", "mode": "0666"}), "SENSITIVE_FILE"),
        (json!({"path": "/bin/../usr/bin/env", "mode": "u+s"}), "INVALID_PATH"),
        (json!({"path": "/usr/bin/env", "mode": "u+s"}), "SETUID_INTERPRETER"),
        (json!({"path": "/srv/lsa/in", "mode": "u+s", "recursive": true}), "SETUID_RECURSIVE"),
        (json!({"path": "/srv/lsa/none", "mode": "644"}), "PATH_NOT_FOUND"),
        (json!({"path": "/srv/lsa/in", "mode": "9999"}), "INVALID_MODE"),
    ] {
        machine.refuses(&mut client, "perms_set", &arguments, code).await;
    }
    machine.is_still(&before, "nothing was set");
}

#[tokio::test]
async fn what_would_shut_somebody_out_is_refused() {
    let Some(machine) = changing("what_would_shut_somebody_out_is_refused") else { return };
    // This server runs as the tests' account, with sudo.
    let mut client = machine.serve_shipped("admin", "admin").await;
    machine.sh("useradd --create-home lsa-new; runuser -u lsa-new -- sleep 98761 > /dev/null 2>&1 &");
    machine.until("pgrep --full 'sleep 98761'");
    let before = machine.snapshot();
    let rule = json!({"user": "admin", "commands": ["ALL"]});
    for (tool, arguments, code) in [
        ("user_delete", json!({"user": "root"}), "PROTECTED_ACCOUNT"),
        ("user_delete", json!({"user": "admin"}), "ACCOUNT_IN_USE"),
        ("user_delete", json!({"user": "lsa-new"}), "USER_BUSY"),
        ("user_lock", json!({"user": "root"}), "PROTECTED_ACCOUNT"),
        ("user_lock", json!({"user": "admin"}), "ACCOUNT_IN_USE"),
        ("user_modify", json!({"user": "admin", "shell": "/usr/sbin/nologin"}), "ACCOUNT_IN_USE"),
        ("user_modify", json!({"user": "admin", "expires": "2020-01-01"}), "CALLER_RIGHTS"),
        ("user_create", json!({"user": "-x"}), "INVALID_USER"),
        ("user_create", json!({"user": "lsa-new", "shell": "/bin/lsa"}), "INVALID_SHELL"),
        ("group_delete", json!({"name": "admin"}), "PRIMARY_GROUP"),
        ("group_delete", json!({"name": "adm"}), "PROTECTED_GROUP"),
        (
            "sudoers_modify",
            json!({"action": "add", "target_file": "/etc/sudoers.d/zz-lsa", "rule": rule}),
            "CALLER_RIGHTS",
        ),
        (
            "sudoers_modify",
            json!({"action": "remove", "target_file": "/etc/sudoers.d/admin", "rule": {"user": "admin"}}),
            "CALLER_RIGHTS",
        ),
        (
            "sudoers_modify",
            json!({"action": "add", "target_file": "/etc/sudoers", "rule": rule}),
            "PROTECTED_FILE",
        ),
    ] {
        machine.refuses(&mut client, tool, &arguments, code).await;
    }
    // Root may do it, except for the last account that has sudo.
    let mut root = machine.serve_default().await;
    for tool in ["user_delete", "user_lock"] {
        let envelope = root.envelope(tool, json!({"user": "admin"})).await;
        assert_eq!(envelope["error_code"], "LAST_SUDOER", "{envelope}");
    }
    machine.is_still(&before, "nobody was shut out");
    assert_eq!(machine.begun("admin"), 0);
    sudo_is_well(&machine, "after refusals");
}
