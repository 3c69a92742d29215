//! The tools as the host calls them: their answers, plans and refusals.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm;
use linux_sysadmin_sdk::{
    Category, DurationCategory, Place, Privilege,
    prelude::*,
    testkit::{FakeTarget, output, takes_little_context},
};
use module_ssh::host::PublicKey;
use module_ssh::host::fake::{self, FakeHost};
use module_ssh::module;
use serde_json::{Value, json};

/// Keys of each kind, made by ssh-keygen of OpenSSH 9.2p1 (Debian 12).
const KEYS: &str = include_str!("data/keys.pub");
/// The output of `ssh-keygen -l` for them.
const LISTED: &str = include_str!("data/keys.list");
const CERTIFICATE: &str = include_str!("data/certificate.pub");
const CONFIG: &str = include_str!("data/ssh_config");

/// The files of ada, bob and root.
const FILES: [&str; 3] =
    ["/home/ada/.ssh/authorized_keys", "/home/bob/.ssh/authorized_keys", "/root/.ssh/authorized_keys"];

fn key(number: usize) -> &'static str {
    KEYS.lines().nth(number).unwrap()
}

fn fingerprint(number: usize) -> &'static str {
    LISTED.lines().nth(number).unwrap().split(' ').nth(1).unwrap()
}

fn metadata(owner: &str, mode: u32, is_dir: bool) -> Metadata {
    let (owner, group) = (owner.to_owned(), owner.to_owned());
    Metadata { size: 0, mode, owner, group, modified_unix: 0, is_dir, is_symlink: false }
}

fn link(owner: &str) -> Metadata {
    Metadata { is_symlink: true, ..metadata(owner, 0o777, false) }
}

/// A machine that ada is logged in to. bob and root have accounts there too, and nobody has keys yet.
fn bare() -> FakeTarget {
    let mut target = FakeTarget::new().account("ada");
    for (name, uid, home) in [("ada", 1000, "/home/ada"), ("bob", 1001, "/home/bob"), ("root", 0, "/root")] {
        let entry = format!("{name}:x:{uid}:{uid}:,,,:{home}:/bin/bash\n");
        let asked = format!("user={name},host=192.0.2.7,addr=192.0.2.7");
        let files =
            "pubkeyauthentication yes\nauthorizedkeysfile .ssh/authorized_keys .ssh/authorized_keys2\n";
        target = target
            .answer(&["getent", "passwd", "--", name], 0, entry, "")
            .answer(&["stat", "--format=%F", "--", home], 0, "directory\n", "")
            .answer(&["sshd", "-T", "-C", &asked], 0, files, "");
    }
    target.distro.extra.push(("ssh_client".to_owned(), "192.0.2.7".to_owned()));
    target
}

/// The machine with these files, which belong to their accounts.
fn target(files: &[(&str, &str)]) -> FakeTarget {
    let home = |path: &str| path.rsplit_once("/.ssh").unwrap().0.to_owned();
    files.iter().fold(bare(), |target, (path, text)| {
        let owner = home(path).rsplit_once('/').unwrap().1.to_owned();
        let directory = format!("{}/.ssh", home(path));
        target
            .file(path, *text)
            .metadata(path, metadata(&owner, 0o600, false))
            .metadata(&directory, metadata(&owner, 0o700, true))
    })
}

fn public(number: usize, path: Option<&str>) -> PublicKey {
    let mut words = LISTED.lines().nth(number).unwrap().split(' ');
    PublicKey {
        path: path.map(str::to_owned),
        bits: words.next().unwrap().parse().unwrap(),
        fingerprint: words.next().unwrap().to_owned(),
        algorithm: key(number).split(' ').next().unwrap().to_owned(),
        comment: key(number).splitn(3, ' ').last().unwrap().to_owned(),
        line: key(number).to_owned(),
        has_private: path.is_some(),
        encrypted: path.map(|_| true),
        in_agent: path.is_none(),
        mode: path.map(|_| 0o600),
    }
}

/// A host that is connected by the first key.
fn connected() -> FakeHost {
    FakeHost {
        key_in_use: Some(fingerprint(0).to_owned()),
        keys: Ok(vec![public(0, Some("~/.ssh/id_ed25519.pub"))]),
        ..FakeHost::default()
    }
}

/// The data, the notes, and the plans.
fn run(target: FakeTarget, tool: &str, arguments: Value) -> (Result<(Value, Vec<String>)>, Vec<Change>) {
    let plans = target.plans();
    let answer = target.call(&module(), tool, arguments).map(|(data, reply)| (data, reply.notes));
    (answer, plans.take())
}

fn keys(target: FakeTarget, arguments: Value) -> (Result<(Value, Vec<String>)>, Vec<Change>) {
    run(target, "ssh_authorized_keys", arguments)
}

/// The problem of a call that hands over no plan.
fn refused(target: FakeTarget, tool: &str, arguments: Value) -> Problem {
    let (answer, plans) = run(target, tool, arguments.clone());
    assert!(plans.is_empty(), "{arguments}");
    answer.map(|(data, _)| panic!("{arguments}: {data}")).unwrap_err()
}

fn dry_run(target: FakeTarget) -> FakeTarget {
    target.outcome(Ok(confirm::Applied { outputs: Vec::new(), dry_run: true }))
}

// Connections.

#[test]
fn what_the_contract_names_of_a_connection_is_handed_through() {
    let said = json!({"host": "web1", "current": true, "hostname": "10.0.0.1", "address": "10.0.0.1:22", "user": "ada",
        "host_key": "SHA256:x", "distro": {"name": "Debian"}, "sudo": "all"});
    let mut more = said.clone();
    more["secret"] = json!("x");
    fake::set(FakeHost { connection: Ok(more.to_string()), ..FakeHost::default() });
    let arguments = json!({"host": "web1", "port": 2222, "user": "ada", "identity_file": "~/.ssh/k"});
    let (answer, plans) = run(FakeTarget::new(), "ssh_connect", arguments.clone());
    let (data, notes) = answer.unwrap();
    assert_eq!((data, plans), (said, Vec::new()));
    assert_eq!(notes, ["calls without host look at web1 from now on; a change names it: host=web1"]);

    let tested = json!({"host": "web1", "address": "10.0.0.1:22", "user": "ada", "host_key": "SHA256:x",
        "host_key_algorithm": "ssh-ed25519", "jumps": ["a@b:22"], "connect_ms": 81.5, "round_trip_ms": 2,
        "server_version": "SSH-2.0-OpenSSH_9.2p1"});
    fake::set(FakeHost { connection: Ok(tested.to_string()), asked: fake::asked(), ..FakeHost::default() });
    assert_eq!(run(FakeTarget::new(), "ssh_test_connection", json!({"host": "web1"})).0.unwrap().0, tested);

    let info = json!({"host": "web1", "connected": true, "current": false, "address": "10.0.0.1", "user": "ada",
        "jumps": ["b"], "server_version": "v", "cipher": "c", "key_exchange": "k",
        "host_key": "h", "host_key_algorithm": "a", "round_trip_ms": 1.5, "uptime_seconds": 60, "channels": 2,
        "keepalive_interval_seconds": 15, "sftp": true, "restored": 1, "warnings": ["w"], "known": {"web": ["web1"]}});
    let mut more = info.clone();
    more["new"] = json!(1);
    fake::set(FakeHost { connection: Ok(more.to_string()), asked: fake::asked(), ..FakeHost::default() });
    assert_eq!(run(FakeTarget::new(), "ssh_session_info", json!({})).0.unwrap().0, info);

    let ended = json!({"host": "web1", "was_connected": false, "current": "localhost"});
    fake::set(FakeHost { connection: Ok(ended.to_string()), asked: fake::asked(), ..FakeHost::default() });
    let (data, notes) = run(FakeTarget::new(), "ssh_disconnect", json!({"host": "web1"})).0.unwrap();
    assert_eq!(data, ended);
    assert_eq!(
        notes,
        ["there was no connection to web1", "calls without host work on localhost from now on"]
    );
    assert_eq!(
        fake::asked(),
        ["connect web1 ada 2222 ~/.ssh/k", "test web1 - - -", "connection", "disconnect web1"]
    );
}

#[test]
fn a_host_that_is_not_current_is_to_be_named() {
    let said = json!({"host": "web1", "current": false});
    fake::set(FakeHost { connection: Ok(said.to_string()), ..FakeHost::default() });
    let (_, notes) = run(FakeTarget::new(), "ssh_connect", json!({"host": "web1"})).0.unwrap();
    assert_eq!(notes, ["calls reach it where they name it: host=web1"]);
}

#[test]
fn this_machine_has_no_connection_to_tell_of() {
    let said = json!({"host": "localhost", "connected": true, "current": true});
    fake::set(FakeHost { connection: Ok(said.to_string()), ..FakeHost::default() });
    assert_eq!(run(FakeTarget::new(), "ssh_session_info", json!({})).0.unwrap().0, said);
}

#[test]
fn the_hosts_problem_is_the_tools() {
    let problem = Problem::new("HOST_KEY_CHANGED", Category::Denied, "changed");
    for (said, code) in [(Err(problem), "HOST_KEY_CHANGED"), (Ok("[]".to_owned()), "INVALID_ANSWER")] {
        fake::set(FakeHost { connection: said, ..FakeHost::default() });
        for (tool, arguments) in [
            ("ssh_connect", json!({"host": "web1"})),
            ("ssh_test_connection", json!({"host": "web1"})),
            ("ssh_disconnect", json!({})),
            ("ssh_session_info", json!({})),
        ] {
            assert_eq!(refused(FakeTarget::new(), tool, arguments).code, code, "{tool}");
        }
    }
}

// Keys that open an account.

#[test]
fn a_list_says_what_sshd_makes_of_each_line() {
    fake::set(connected());
    let text = format!(
        "# mine\n{}\nno-pty,environment=\"T=secret\" {}\nnonsense\ncert-authority {}\n{CERTIFICATE}",
        key(0),
        key(3),
        key(4)
    );
    let (answer, plans) = keys(target(&[(FILES[0], &text)]), json!({}));
    let (data, notes) = answer.unwrap();
    assert!(plans.is_empty() && notes.is_empty(), "{notes:?}");
    let certified = "a certificate: sshd takes keys here only";
    assert_eq!(
        data,
        json!({"user": "ada", "path": FILES[0], "keys": [
            {"line": 2, "algorithm": "ssh-ed25519", "bits": 256, "fingerprint": fingerprint(0),
             "comment": "ada@example.org ed25519", "in_use": true},
            {"line": 3, "algorithm": "ssh-rsa", "bits": 1024, "fingerprint": fingerprint(3),
             "comment": "ada@example.org rsa-1024", "options": ["no-pty", "environment=\"T=…\""],
             "finding": "RSA of 1024 bits, expected 3072 or more"},
            {"line": 4, "finding": "not a key that sshd knows: it passes over the line"},
            {"line": 5, "algorithm": "ecdsa-sha2-nistp256", "bits": 256, "fingerprint": fingerprint(4),
             "comment": "ada@example.org ecdsa-256", "options": ["cert-authority"],
             "finding": "an authority: its certificates open the account"},
            {"line": 6, "algorithm": "ssh-ed25519-cert-v01@openssh.com", "comment": "ada@example.org ed25519",
             "finding": certified, "fingerprint": data["keys"][4]["fingerprint"]},
        ]})
    );
    assert!(!data.to_string().contains("secret"));
}

#[test]
fn an_account_without_keys_has_an_empty_list() {
    fake::set(connected());
    let (data, notes) = keys(bare(), json!({"action": "list", "user": "bob"})).0.unwrap();
    assert_eq!(data, json!({"user": "bob", "path": FILES[1], "keys": []}));
    assert_eq!(notes, [format!("{} isn't there", FILES[1])]);
}

fn add(user: &str, path: &str, text: &str, number: usize, rights: Privilege) -> Change {
    Change::new(format!(
        "Add the key {} ({}) to {user}'s authorized_keys",
        fingerprint(number),
        key(number).splitn(3, ' ').last().unwrap()
    ))
    .lock(Lock::Named("ssh-keys".into()))
    .step(Step::write(path, text).files_as(rights))
    .lock(Lock::File(path.into()))
    .warning(format!("whoever has the key gets in as {user}"))
}

#[test]
fn a_key_is_added_with_the_rights_of_the_account() {
    fake::set(connected());
    for (user, file, rights) in [
        ("ada", FILES[0], Privilege::Caller),
        ("bob", FILES[1], Privilege::User("bob".into())),
        ("root", FILES[2], Privilege::Root),
    ] {
        let before = format!("# kept\r\n\r\n{}", key(4));
        let (answer, plans) =
            keys(target(&[(file, &before)]), json!({"action": "add", "user": user, "key": key(0)}));
        let (data, notes) = answer.unwrap();
        assert_eq!(data, json!({"user": user, "path": file, "fingerprint": fingerprint(0), "count": 2}));
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!(plans, [add(user, file, &format!("{before}\r\n{}\r\n", key(0)), 0, rights)]);
    }
}

#[test]
fn the_first_key_makes_file_and_directory() {
    fake::set(connected());
    let rights = || Privilege::User("bob".into());
    let (answer, plans) =
        keys(dry_run(bare()), json!({"action": "add", "user": "bob", "key": format!("restrict {}", key(0))}));
    assert_eq!(answer.unwrap().0["would"], "add");
    let expected = Change::new(format!(
        "Add the key {} (ada@example.org ed25519) to bob's authorized_keys",
        fingerprint(0)
    ))
    .lock(Lock::Named("ssh-keys".into()))
    .step(Step::make_directory("/home/bob/.ssh", 0o700).files_as(rights()))
    .step(Step::write(FILES[1], format!("restrict {}\n", key(0))).mode(0o600).files_as(rights()))
    .warning("whoever has the key gets in as bob");
    assert_eq!(plans, [expected]);
}

#[test]
fn a_key_that_is_there_is_not_added_again() {
    fake::set(connected());
    let text = format!("no-pty {} other comment\n", key(0));
    let (answer, plans) = keys(target(&[(FILES[0], &text)]), json!({"action": "add", "key": key(0)}));
    let (data, notes) = answer.unwrap();
    assert_eq!((&data["count"], plans.len()), (&json!(1), 0));
    assert_eq!(
        notes,
        [
            "the key is there already, in line 1: nothing was written; its options there are others (no-pty), and stay"
        ]
    );
}

#[test]
fn a_key_that_is_there_for_something_else_is_added() {
    fake::set(connected());
    for options in ["cert-authority", "no-such-option"] {
        let text = format!("{options} {}\n", key(4));
        let plans = keys(target(&[(FILES[0], &text)]), json!({"action": "add", "key": key(4)})).1;
        assert_eq!(plans, [add("ada", FILES[0], &format!("{text}{}\n", key(4)), 4, Privilege::Caller)]);
    }
}

#[test]
fn what_is_no_good_key_is_not_added_and_not_repeated() {
    fake::set(connected());
    for (line, code) in [
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE\n-----END OPENSSH PRIVATE KEY-----"
                .to_owned(),
            "INVALID_KEY",
        ),
        (format!("{}\n{}", key(0), key(1)), "INVALID_KEY"),
        (format!("{}\u{1b}[2J", key(0)), "INVALID_KEY"),
        ("hunter2".to_owned(), "INVALID_KEY"),
        (String::new(), "INVALID_KEY"),
        (format!("{} {}", key(0), "x".repeat(9000)), "INVALID_KEY"),
        (format!("command=\"id\" {}", key(0)), "INVALID_OPTION"),
        (format!("restrict,environment=\"A=b\" {}", key(0)), "INVALID_OPTION"),
        (format!("cert-authority {}", key(0)), "INVALID_OPTION"),
        (key(3).to_owned(), "KEY_NOT_TAKEN"),
        (key(7).to_owned(), "KEY_NOT_TAKEN"),
        (CERTIFICATE.to_owned(), "KEY_NOT_TAKEN"),
    ] {
        let problem =
            refused(target(&[(FILES[0], "")]), "ssh_authorized_keys", json!({"action": "add", "key": line}));
        assert_eq!(problem.code, code, "{line}");
        assert!(
            !problem.message.contains("b3Blb") && !problem.message.contains("hunter2"),
            "{}",
            problem.message
        );
    }
}

#[test]
fn a_call_says_one_thing() {
    fake::set(connected());
    for arguments in [
        json!({"key": key(0)}),
        json!({"action": "list", "fingerprint": fingerprint(0)}),
        json!({"action": "add"}),
        json!({"action": "add", "key": key(0), "fingerprint": fingerprint(0)}),
        json!({"action": "remove"}),
        json!({"action": "remove", "key": key(0), "fingerprint": fingerprint(0)}),
    ] {
        assert_eq!(refused(bare(), "ssh_authorized_keys", arguments).code, "INVALID_ARGUMENTS");
    }
    for wrong in ["MD5:00:11", "SHA256:", "SHA256:abc", "sha256:scg+LNh0Yn+Sn5IKtITRq13Mx2hLBTpcqyGE1fzefw4"]
    {
        let arguments = json!({"action": "remove", "fingerprint": wrong});
        assert_eq!(refused(bare(), "ssh_authorized_keys", arguments).code, "INVALID_FINGERPRINT");
    }
}

#[test]
fn a_removed_key_takes_its_lines_and_no_others() {
    fake::set(connected());
    let text = format!("# kept\n{}\n\nno-pty {}\n{}", key(0), key(4), key(4));
    let expected = Change::new(format!(
        "Remove the key {} (ada@example.org ecdsa-256) from ada's authorized_keys",
        fingerprint(4)
    ))
    .lock(Lock::Named("ssh-keys".into()))
    .step(Step::write(FILES[0], format!("# kept\n{}\n\n", key(0))).files_as(Privilege::Caller))
    .lock(Lock::File(FILES[0].into()));
    for given in [
        json!({"action": "remove", "key": format!("{} another comment", key(4))}),
        json!({"action": "remove", "fingerprint": fingerprint(4)}),
    ] {
        let (answer, plans) = keys(target(&[(FILES[0], &text)]), given);
        assert_eq!(
            answer.unwrap().0,
            json!({"user": "ada", "path": FILES[0], "fingerprint": fingerprint(4), "count": 1})
        );
        assert_eq!(plans, std::slice::from_ref(&expected));
    }
    let (answer, plans) =
        keys(target(&[(FILES[0], &text)]), json!({"action": "remove", "fingerprint": fingerprint(5)}));
    assert_eq!(
        (answer.unwrap().1, plans.len()),
        (vec!["the key isn't there: nothing was written".to_owned()], 0)
    );
}

#[test]
fn the_last_key_of_another_account_goes_with_a_warning() {
    fake::set(connected());
    let arguments = json!({"action": "remove", "user": "bob", "fingerprint": fingerprint(4)});
    let (answer, plans) = keys(dry_run(target(&[(FILES[1], key(4))])), arguments);
    assert_eq!(answer.unwrap().0["would"], "remove");
    let expected = Change::new(format!(
        "Remove the key {} (ada@example.org ecdsa-256) from bob's authorized_keys",
        fingerprint(4)
    ))
    .lock(Lock::Named("ssh-keys".into()))
    .step(Step::write(FILES[1], "").files_as(Privilege::User("bob".into())))
    .lock(Lock::File(FILES[1].into()))
    .warning("it is the last key of bob: afterwards no key is sure to open the account")
    .risk(Risk::Critical);
    assert_eq!(plans, [expected]);
}

#[test]
fn nobody_is_shut_out() {
    let file = format!("{}\n{}\n", key(0), key(4));
    let remove = |user: &str, number: usize| json!({"action": "remove", "user": user, "fingerprint": fingerprint(number)});
    let unknown = || FakeHost { key_in_use: None, ..connected() };
    for (host, path, arguments, code) in [
        (connected(), FILES[0], remove("ada", 0), "KEY_IN_USE"),
        (connected(), FILES[2], remove("root", 0), "KEY_IN_USE"),
        (unknown(), FILES[0], remove("ada", 4), "KEY_IN_USE_UNKNOWN"),
        (unknown(), FILES[1], remove("bob", 0), "KEY_OF_CONTROLLER"),
    ] {
        fake::set(host);
        assert_eq!(
            refused(target(&[(path, &file)]), "ssh_authorized_keys", arguments.clone()).code,
            code,
            "{arguments}"
        );
    }
    // A key that the host can't list may be one of its own.
    fake::set(FakeHost { keys: Err(Problem::new("AGENT", Category::Other, "no answer")), ..connected() });
    assert_eq!(refused(target(&[(FILES[1], &file)]), "ssh_authorized_keys", remove("bob", 4)).code, "AGENT");
}

#[test]
fn whether_there_is_a_connection_is_asked_where_the_target_does_not_say() {
    let file = format!("{}\n{}\n", key(4), key(5));
    let arguments = json!({"action": "remove", "fingerprint": fingerprint(4)});
    let here = || {
        let mut target = target(&[(FILES[0], &file)]);
        target.distro.extra.retain(|(name, _)| name == "user");
        let said = "authorizedkeysfile %h/.ssh/authorized_keys\n";
        target.answer(&["sshd", "-T", "-C", "user=ada,host=127.0.0.1,addr=127.0.0.1"], 0, said, "")
    };
    let remote = json!({"host": "web1", "address": "10.0.0.1"}).to_string();
    let local = json!({"host": "localhost"}).to_string();
    for connection in [Ok(remote), Ok("nonsense".to_owned()), FakeHost::default().connection] {
        fake::set(FakeHost { connection, ..FakeHost::default() });
        assert_eq!(refused(here(), "ssh_authorized_keys", arguments.clone()).code, "KEY_IN_USE_UNKNOWN");
    }
    fake::set(FakeHost { connection: Ok(local), ..FakeHost::default() });
    assert_eq!(keys(here(), arguments).1.len(), 1);
}

#[test]
fn an_account_by_another_name_is_the_connections_own() {
    fake::set(FakeHost { key_in_use: None, ..connected() });
    let twin = |home: &str, uid: u32| {
        let path = format!("{home}/.ssh/authorized_keys");
        target(&[(path.as_str(), key(4))])
            .answer(&["getent", "passwd", "--", "twin"], 0, format!("twin:x:{uid}:1:,:{home}:/bin/sh\n"), "")
            .answer(
                &["sshd", "-T", "-C", "user=twin,host=192.0.2.7,addr=192.0.2.7"],
                1,
                "",
                "no hostkeys available\n",
            )
            .answer(&["stat", "--format=%F", "--", home], 0, "directory\n", "")
    };
    let arguments = json!({"action": "remove", "user": "twin", "fingerprint": fingerprint(4)});
    for (home, uid) in [("/home/ada", 1002), ("/home/twin", 1000)] {
        assert_eq!(
            refused(twin(home, uid), "ssh_authorized_keys", arguments.clone()).code,
            "KEY_IN_USE_UNKNOWN",
            "{home}"
        );
    }
    // An account with root's uid under another name is refused.
    let problem = refused(twin("/root", 0), "ssh_authorized_keys", arguments.clone());
    assert_eq!((problem.code.as_str(), problem.category), ("INVALID_USER", Category::Denied));
}

#[test]
fn links_are_not_followed() {
    fake::set(connected());
    let file = || target(&[(FILES[0], key(0))]);
    let arguments = json!({"action": "add", "key": key(4)});
    for (target, part) in [
        (file().metadata("/home/ada/.ssh", link("ada")), "directory of keys, /home/ada/.ssh, is a symlink"),
        (
            file().metadata(FILES[0], link("ada")),
            "file of keys, /home/ada/.ssh/authorized_keys, is a symlink",
        ),
    ] {
        let problem = refused(target, "ssh_authorized_keys", arguments.clone());
        assert_eq!(problem.code, "SYMLINK");
        assert!(problem.message.contains(part), "{}", problem.message);
    }
    for (path, is, code) in [
        ("/home/ada/.ssh", metadata("ada", 0o600, false), "NOT_A_DIRECTORY"),
        (FILES[0], metadata("ada", 0o700, true), "NOT_A_FILE"),
    ] {
        assert_eq!(refused(file().metadata(path, is), "ssh_authorized_keys", arguments.clone()).code, code);
    }
    let home = |kind: &str, exit_code, error| {
        FakeTarget::new()
            .answer(&["stat", "--format=%F", "--", "/home/ada"], exit_code, kind, error)
            .account("ada")
            .answer(&["getent", "passwd", "--", "ada"], 0, "ada:x:1000:1000::/home/ada:/bin/sh\n", "")
            .answer(&["sshd", "-T", "-C", "user=ada,host=127.0.0.1,addr=127.0.0.1"], 0, "", "")
    };
    let missing = "stat: cannot statx '/home/ada': No such file or directory";
    let closed = "stat: cannot statx '/home/ada': Permission denied";
    for (target, code) in [
        (home("symbolic link\n", 0, ""), "SYMLINK"),
        (home("regular file\n", 0, ""), "NO_HOME"),
        (home("", 1, missing), "NO_HOME"),
        (home("", 1, closed), "COMMAND_FAILED"),
    ] {
        assert_eq!(refused(target, "ssh_authorized_keys", json!({})).code, code);
    }
}

#[test]
fn accounts_are_named_as_accounts_are() {
    fake::set(connected());
    for wrong in ["", "-x", "a b", "0", "#0", "a:b", "a/b", "ada.", "a\nb", &"a".repeat(33)] {
        assert_eq!(
            refused(bare(), "ssh_authorized_keys", json!({"user": wrong})).code,
            "INVALID_USER",
            "{wrong:?}"
        );
    }
    let none = bare().answer(&["getent", "passwd", "--", "eve"], 2, "", "");
    assert_eq!(refused(none, "ssh_authorized_keys", json!({"user": "eve"})).code, "USER_NOT_FOUND");
    for (entry, code) in [
        ("eve:x:7:7::/:/bin/sh\n", "NO_HOME"),
        ("eve:x:7:7:::/bin/sh\n", "NO_HOME"),
        ("eve:x:7:7::home/eve:/bin/sh\n", "NO_HOME"),
        ("eve:x:7:7::/home/../etc:/bin/sh\n", "NO_HOME"),
        ("bob:x:7:7::/home/bob:/bin/sh\n", "UNEXPECTED_OUTPUT"),
        ("eve:x:seven:7::/home/eve:/bin/sh\n", "UNEXPECTED_OUTPUT"),
        ("eve\n", "UNEXPECTED_OUTPUT"),
        ("", "UNEXPECTED_OUTPUT"),
    ] {
        let odd = bare().answer(&["getent", "passwd", "--", "eve"], 0, entry, "");
        assert_eq!(refused(odd, "ssh_authorized_keys", json!({"user": "eve"})).code, code, "{entry}");
    }
}

#[test]
fn where_sshd_looks_for_keys_is_asked_of_it() {
    fake::set(connected());
    let asked = ["sshd", "-T", "-C", "user=ada,host=127.0.0.1,addr=127.0.0.1"];
    let said = |settings: &str, exit_code| {
        let mut target = target(&[(FILES[0], key(0))]);
        target.distro.extra.retain(|(name, _)| name == "user");
        target.answer(&asked, exit_code, settings, "sshd: no hostkeys available -- exiting.\n")
    };
    for settings in [
        "",
        "authorizedkeysfile /home/%u/.ssh/authorized_keys\n",
        "authorizedkeysfile /etc/keys/%U %h/.ssh/authorized_keys\n",
    ] {
        assert!(keys(said(settings, 0), json!({})).0.unwrap().1.is_empty(), "{settings}");
    }
    for settings in [
        "authorizedkeysfile /etc/ssh/keys/%u\n",
        "authorizedkeysfile none\n",
        "authorizedkeysfile %%h/.ssh/authorized_keys\n",
    ] {
        let problem =
            refused(said(settings, 0), "ssh_authorized_keys", json!({"action": "add", "key": key(4)}));
        assert_eq!(problem.code, "KEYS_ELSEWHERE", "{settings}");
    }
    let notes = keys(said("", 255), json!({})).0.unwrap().1;
    assert!(notes[0].contains("could not be asked") && notes[0].contains("no hostkeys"), "{notes:?}");
    let notes = keys(said("pubkeyauthentication no\n", 0), json!({})).0.unwrap().1;
    assert_eq!(notes, ["sshd takes no keys at all: PubkeyAuthentication is no"]);
}

#[test]
fn a_key_that_opens_the_account_by_another_file_is_not_said_to_be_removed() {
    fake::set(connected());
    let remove =
        |number: usize| json!({"action": "remove", "user": "bob", "fingerprint": fingerprint(number)});
    let second = "/home/bob/.ssh/authorized_keys2";
    let both = format!("{}\n{}\n", key(4), key(5));
    let here = |text: &str| target(&[(FILES[1], &both)]).file(second, text);
    let by_name = key(1).replacen("ssh-rsa", "rsa-sha2-256", 1);
    for (other, number, line) in [
        (format!("# old\nno-pty {}\n", key(4)), 4, 2),
        // The key isn't in the first file, but it still opens the account.
        (by_name, 1, 1),
    ] {
        let notes = keys(here(&other), json!({"user": "bob"})).0.unwrap().1;
        assert_eq!(notes, [format!("keys of bob are in {second} as well")]);
        let problem = refused(here(&other), "ssh_authorized_keys", remove(number));
        assert_eq!((problem.code.as_str(), problem.category), ("KEY_ELSEWHERE", Category::State));
        let said = format!(
            "{} would still open bob by {second}, line {line}; nothing was removed",
            fingerprint(number)
        );
        assert_eq!(problem.message, said);
        assert!(problem.remediation[0].contains(second), "{:?}", problem.remediation);
        // Another key can be removed.
        assert_eq!(keys(here(&other), remove(5)).1.len(), 1);
    }
    // The file exists and can't be read.
    let closed = || target(&[(FILES[1], &both)]).metadata(second, metadata("bob", 0o600, false));
    let notes = keys(closed(), json!({"user": "bob"})).0.unwrap().1;
    assert!(notes[0].starts_with(&format!("keys of bob may be in {second} as well: ")), "{notes:?}");
    let problem = refused(closed(), "ssh_authorized_keys", remove(4));
    assert_eq!(problem.code, "KEY_ELSEWHERE");
    assert!(problem.message.contains("can't be read"), "{}", problem.message);
    // A directory, or a file without keys, opens nothing. Where sshd can't be asked, the default applies.
    let directory = target(&[(FILES[1], &both)]).metadata(second, metadata("bob", 0o700, true));
    for harmless in [directory, here("# none\n"), target(&[(FILES[1], &both)])] {
        assert!(keys(harmless.clone(), json!({"user": "bob"})).0.unwrap().1.is_empty());
        assert_eq!(keys(harmless, remove(4)).1.len(), 1);
    }
    let mut unasked = here(key(4));
    unasked.distro.extra.retain(|(name, _)| name == "user");
    let unasked = unasked.answer(
        &["sshd", "-T", "-C", "user=bob,host=127.0.0.1,addr=127.0.0.1"],
        255,
        "",
        "no hostkeys",
    );
    assert_eq!(refused(unasked, "ssh_authorized_keys", remove(4)).code, "KEY_ELSEWHERE");
    // These are other places where sshd looks for keys.
    let mut told = target(&[(FILES[1], &both)]).file("/etc/ssh/keys/bob", key(4));
    told.distro.extra.retain(|(name, _)| name == "user");
    let files = "authorizedkeysfile /etc/ssh/keys/%u .ssh/authorized_keys\n";
    let told = told.answer(&["sshd", "-T", "-C", "user=bob,host=127.0.0.1,addr=127.0.0.1"], 0, files, "");
    assert_eq!(refused(told, "ssh_authorized_keys", remove(4)).code, "KEY_ELSEWHERE");
}

#[test]
fn permissions_for_which_sshd_passes_over_keys_are_told() {
    fake::set(connected());
    for (path, is, part) in [
        (FILES[0], metadata("ada", 0o620, false), "ada's with mode 0620"),
        (FILES[0], metadata("bob", 0o600, false), "bob's with mode 0600"),
        ("/home/ada/.ssh", metadata("ada", 0o777, true), "mode 0777"),
    ] {
        let notes = keys(target(&[(FILES[0], key(0))]).metadata(path, is), json!({})).0.unwrap().1;
        assert!(notes[0].starts_with("sshd passes over") && notes[0].contains(part), "{notes:?}");
    }
    let of_root = target(&[(FILES[0], key(0))]).metadata(FILES[0], metadata("root", 0o644, false));
    assert!(keys(of_root, json!({})).0.unwrap().1.is_empty());
}

// One of the controller's keys.

#[test]
fn the_only_key_of_the_server_is_copied_and_of_several_the_one_that_is_meant() {
    let copied = |keys: Vec<PublicKey>, arguments: Value| {
        fake::set(FakeHost { keys: Ok(keys), ..FakeHost::default() });
        run(target(&[(FILES[1], "")]), "ssh_copy_id", arguments)
    };
    let several = || {
        vec![
            public(0, Some("~/.ssh/id_ed25519.pub")),
            public(4, Some("~/.ssh/id_ecdsa.pub")),
            public(5, None),
        ]
    };
    let absolute = || [(0, "/home/x/.ssh/id_ed25519.pub"), (4, "/home/x/.ssh/id_ecdsa.pub")];
    let absolute = || absolute().map(|(number, path)| public(number, Some(path))).to_vec();
    let twice = || vec![public(0, Some("~/.ssh/id_ed25519.pub")), public(0, None)];
    for (keys, wanted, number) in [
        (twice(), None, 0),
        (several(), Some("~/.ssh/id_ecdsa.pub"), 4),
        (several(), Some("~/.ssh/id_ecdsa"), 4),
        (several(), Some("/home/x/.ssh/id_ecdsa.pub"), 4),
        (absolute(), Some("~/.ssh/id_ecdsa"), 4),
        (absolute(), Some("/home/x/.ssh/id_ecdsa"), 4),
        (several(), Some(fingerprint(5)), 5),
    ] {
        let (answer, plans) = copied(keys, json!({"user": "bob", "key": wanted}));
        assert_eq!(answer.unwrap().0["fingerprint"], fingerprint(number));
        assert_eq!(
            plans,
            [add("bob", FILES[1], &format!("{}\n", key(number)), number, Privilege::User("bob".into()))]
        );
    }
    for (keys, wanted, code) in [
        (several(), None, "KEY_NOT_CHOSEN"),
        (several(), Some("id_ecdsa"), "KEY_NOT_FOUND"),
        (absolute(), Some("~/id_ecdsa"), "KEY_NOT_FOUND"),
        (absolute(), Some("~x/.ssh/id_ecdsa"), "KEY_NOT_FOUND"),
        (absolute(), Some("/home/y/.ssh/id_ecdsa"), "KEY_NOT_FOUND"),
        (several(), Some("SHA256:x"), "KEY_NOT_FOUND"),
        (Vec::new(), None, "NO_KEYS"),
        (Vec::new(), Some("~/.ssh/x"), "NO_KEYS"),
        (vec![public(3, None)], None, "KEY_NOT_TAKEN"),
    ] {
        let (answer, plans) = copied(keys, json!({"user": "bob", "key": wanted}));
        let problem = answer.unwrap_err();
        assert_eq!((problem.code.as_str(), plans.len()), (code, 0));
        assert!(!problem.remediation.is_empty(), "{code}");
        if code == "KEY_NOT_CHOSEN" {
            let listed = &problem.remediation[0];
            assert!(
                listed.contains("~/.ssh/id_ecdsa.pub SHA256:") && listed.contains("in the agent"),
                "{listed}"
            );
        }
    }
}

#[test]
fn a_key_that_was_copied_is_not_copied_again() {
    fake::set(FakeHost { keys: Ok(vec![public(0, None)]), ..FakeHost::default() });
    let (answer, plans) = run(target(&[(FILES[0], key(0))]), "ssh_copy_id", json!({}));
    assert!(answer.unwrap().1[0].contains("there already") && plans.is_empty());
}

// The controller's keys.

#[test]
fn keys_of_the_server_are_listed_with_what_is_wrong_with_them() {
    let open = PublicKey { mode: Some(0o644), encrypted: Some(false), ..public(0, Some("~/.ssh/a.pub")) };
    let hardware = PublicKey { encrypted: Some(false), ..public(8, Some("~/.ssh/sk.pub")) };
    let keys = vec![open, public(2, Some("~/.ssh/b.pub")), public(7, None), hardware];
    fake::set(FakeHost { keys: Ok(keys), ..FakeHost::default() });
    let (data, _) = run(FakeTarget::new(), "ssh_key_list", json!({})).0.unwrap();
    assert_eq!(
        data[0],
        json!({"path": "~/.ssh/a.pub", "algorithm": "ssh-ed25519", "bits": 256, "fingerprint": fingerprint(0),
            "comment": "ada@example.org ed25519", "has_private": true, "encrypted": false, "in_agent": false,
            "findings": ["others may read its private half (mode 0644): ssh won't use it, expected 0600",
                "its private half has no passphrase"]})
    );
    assert_eq!(data[1]["findings"], json!(["RSA of 2048 bits, expected 3072 or more"]));
    assert_eq!(
        (&data[2]["findings"], &data[2]["path"]),
        (&json!(["DSA: OpenSSH takes it no longer"]), &Value::Null)
    );
    assert_eq!(data[3]["findings"], Value::Null);
    let (data, _) = run(FakeTarget::new(), "ssh_key_list", json!({"lines": true})).0.unwrap();
    assert_eq!(data[0]["line"], key(0));
}

fn generation(options: &[&str], name: &str, kind: &str) -> Change {
    let path = format!("/home/ada/.ssh/{name}");
    let public = format!("{path}.pub");
    let argv = [&["-q", "-t", kind], options, &["-f", &path]].concat();
    let generate = Command::new("ssh-keygen").args(argv).duration(DurationCategory::Normal);
    let remove = Command::new("rm").args(["--", &path, &public]);
    Change::new(format!("Make an SSH key pair of type {kind}: ~/.ssh/{name}, ~/.ssh/{name}.pub"))
        .warning(format!(
            "the private key, ~/.ssh/{name}, has no passphrase: whoever can read the file has the key"
        ))
        .lock(Lock::Named("ssh-keys".into()))
        .step(Step::run(Command::new("test").args(["!", "-e", &public])))
        .step(Step::run(generate).undo(remove))
}

#[test]
fn a_new_key_is_made_by_ssh_keygen() {
    for (arguments, options, name, kind) in [
        (json!({}), &["-N", ""] as &[&str], "id_ed25519", "ed25519"),
        (
            json!({"type": "ed25519", "bits": 256, "name": "deploy", "comment": "deploy key"}),
            &["-N", "", "-C", "deploy key"],
            "deploy",
            "ed25519",
        ),
        (json!({"type": "ecdsa"}), &["-b", "256", "-N", ""], "id_ecdsa", "ecdsa"),
        (json!({"type": "ecdsa", "bits": 521}), &["-b", "521", "-N", ""], "id_ecdsa", "ecdsa"),
        (json!({"type": "rsa"}), &["-b", "4096", "-N", ""], "id_rsa", "rsa"),
        (json!({"type": "rsa", "bits": 3072, "name": "x_1.y"}), &["-b", "3072", "-N", ""], "x_1.y", "rsa"),
    ] {
        let after = format!("/home/ada/.ssh/{name}.pub");
        let target = target(&[("/home/ada/.ssh/known_hosts", "")])
            .metadata("/home/ada/.ssh", metadata("ada", 0o700, true))
            .recording(&format!("==> {after} <==\n{}\n", key(0)));
        let (answer, plans) = run(target, "ssh_key_generate", arguments);
        assert_eq!(plans, [generation(options, name, kind)]);
        let path = after.strip_suffix(".pub").unwrap();
        assert_eq!(answer.unwrap().0, json!({"path": path, "fingerprint": fingerprint(0), "line": key(0)}));
    }
}

#[test]
fn where_there_is_no_directory_for_keys_it_is_made() {
    let (answer, plans) = run(dry_run(bare()), "ssh_key_generate", json!({}));
    assert_eq!(answer.unwrap().0, json!({"path": "/home/ada/.ssh/id_ed25519", "would": "generate"}));
    let plan = format!("{:?}", plans[0]);
    assert!(plan.contains("MakeDirectory") && plan.contains("mode: 448"), "{plan}");
}

#[test]
fn a_key_is_never_written_over() {
    for there in ["id_ed25519", "id_ed25519.pub"] {
        let target = target(&[(&format!("/home/ada/.ssh/{there}"), "x")]);
        let problem = refused(target, "ssh_key_generate", json!({}));
        assert_eq!(problem.code, "KEY_EXISTS");
        assert!(problem.message.contains(there), "{}", problem.message);
    }
    let linked = bare().metadata("/home/ada/.ssh", link("ada"));
    assert_eq!(refused(linked, "ssh_key_generate", json!({})).code, "SYMLINK");
}

#[test]
fn a_key_that_has_come_to_be_there_since_ends_the_plan() {
    let failed = |stdout: &str, stderr: &str, code: &str| {
        let output = output(1, stdout, stderr);
        let failure = confirm::Failure {
            problem: Problem::new(code, Category::Other, "broke"),
            step: 1,
            outputs: vec![output],
            undone: Vec::new(),
            not_undone: Vec::new(),
            uncertain: false,
        };
        run(bare().outcome(Err(failure)), "ssh_key_generate", json!({})).0.unwrap_err().code
    };
    assert_eq!(failed("", "", "COMMAND_FAILED"), "KEY_EXISTS", "test ! -e");
    assert_eq!(
        failed("/home/ada/.ssh/id_ed25519 already exists.\nOverwrite (y/n)? ", "", "COMMAND_FAILED"),
        "KEY_EXISTS"
    );
    assert_eq!(failed("", "Saving key failed: No space left on device", "COMMAND_FAILED"), "COMMAND_FAILED");
    assert_eq!(failed("", "", "CANCELLED"), "CANCELLED");
}

#[test]
fn names_bits_and_comments_are_what_ssh_keygen_can_make_keys_of() {
    for (arguments, code) in [
        (json!({"name": ""}), "INVALID_NAME"),
        (json!({"name": "../x"}), "INVALID_NAME"),
        (json!({"name": "-x"}), "INVALID_NAME"),
        (json!({"name": ".x"}), "INVALID_NAME"),
        (json!({"name": "x/y"}), "INVALID_NAME"),
        (json!({"name": "x y"}), "INVALID_NAME"),
        (json!({"name": "x."}), "INVALID_NAME"),
        (json!({"name": "x".repeat(33)}), "INVALID_NAME"),
        (json!({"name": "x.pub"}), "INVALID_NAME"),
        (json!({"name": "config"}), "INVALID_NAME"),
        (json!({"name": "authorized_keys"}), "INVALID_NAME"),
        (json!({"bits": 512}), "INVALID_BITS"),
        (json!({"type": "ecdsa", "bits": 255}), "INVALID_BITS"),
        (json!({"type": "rsa", "bits": 2048}), "INVALID_BITS"),
        (json!({"type": "rsa", "bits": 8193}), "INVALID_BITS"),
        (json!({"type": "dsa"}), "INVALID_ARGUMENTS"),
        (json!({"comment": ""}), "INVALID_COMMENT"),
        (json!({"comment": "-x"}), "INVALID_COMMENT"),
        (json!({"comment": "a\nb"}), "INVALID_COMMENT"),
        (json!({"comment": " a"}), "INVALID_COMMENT"),
        (json!({"comment": "a".repeat(201)}), "INVALID_COMMENT"),
    ] {
        assert_eq!(refused(bare(), "ssh_key_generate", arguments.clone()).code, code, "{arguments}");
    }
}

// The controller's configuration.

#[test]
fn a_configuration_is_listed_block_by_block_without_what_may_be_secret() {
    let target = target(&[
        ("/home/ada/.ssh/config", CONFIG),
        ("/home/ada/.ssh/config.d/work.conf", include_str!("data/work.conf")),
    ]);
    let (data, notes) = run(target, "ssh_config_list", json!({})).0.unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let file = "~/.ssh/config";
    assert_eq!(
        data,
        json!([
            {"all": true, "file": file, "line": 1,
             "settings": ["ServerAliveInterval 30", "IgnoreUnknown UnknownThing", "Include config.d/*.conf"]},
            {"host": ["intranet"], "file": "~/.ssh/config.d/work.conf", "line": 1,
             "settings": ["HostName intranet.example.org"]},
            {"host": ["bastion"], "file": file, "line": 7,
             "settings": ["HostName bastion.example.com", "Port 2222", "User admin"]},
            {"host": ["prod-db"], "file": file, "line": 12,
             "settings": ["HostName 10.0.1.50", "User deploy", "ProxyJump bastion", "IdentityFile \"~/.ssh/prod key\"",
                "IdentityFile ~/.ssh/spare", "SetEnv TOKEN=… LANG=…"]},
            {"host": ["web*", "!web-old"], "file": file, "line": 20,
             "settings": ["User \"deploy\"", "ProxyCommand nc -X connect -x proxy:3128 %h %p # all of the line"]},
            {"match": "host *.example.com exec test -e /run/vpn", "file": file, "line": 24,
             "settings": ["User late", "LocalForward 8080 localhost:80"]},
            {"host": ["quoted", "other"], "file": file, "line": 28,
             "settings": ["ForwardAgent no", "UnknownThing …"]},
            {"match": "all", "file": file, "line": 32, "settings": ["HashKnownHosts yes"]},
        ])
    );
}

#[test]
fn without_a_configuration_there_is_nothing_to_list() {
    let (data, notes) = run(bare(), "ssh_config_list", json!({})).0.unwrap();
    assert_eq!((data, notes), (json!([]), vec!["~/.ssh/config isn't there".to_owned()]));
    let broken = target(&[("/home/ada/.ssh/config", "Host x\n User \"y\n")]);
    assert_eq!(refused(broken, "ssh_config_list", json!({})).code, "SSH_CONFIG_INVALID");
}

#[test]
fn a_host_is_written_and_is_not_thereby_allowed() {
    let arguments = json!({"host": "new", "hostname": "10.0.0.9", "port": 2222});
    let text = "Host new\n    HostName 10.0.0.9\n    Port 2222\n";
    let plan = || {
        Change::new("Add the host new in ~/.ssh/config: HostName 10.0.0.9, Port 2222")
            .lock(Lock::Named("ssh-config".into()))
            .risk(Risk::High)
    };
    let path = "/home/ada/.ssh/config";
    let (answer, plans) = run(bare(), "ssh_config_add", arguments.clone());
    let (data, notes) = answer.unwrap();
    assert_eq!(
        data,
        json!({"host": "new", "file": "~/.ssh/config", "line": 1, "settings": ["HostName 10.0.0.9", "Port 2222"]})
    );
    assert!(
        notes[0].contains("new is not thereby a host that `host` takes")
            && notes[0].contains("ssh.allowed_hosts")
    );
    let expected = plan()
        .step(Step::make_directory("/home/ada/.ssh", 0o700).files_as(Privilege::Caller))
        .step(Step::write(path, text).files_as(Privilege::Caller).mode(0o600));
    assert_eq!(plans, [expected]);

    let (answer, plans) = run(dry_run(target(&[(path, "Host *\n")])), "ssh_config_add", arguments.clone());
    assert_eq!(answer.unwrap().0["would"], "add");
    let expected = plan()
        .step(Step::write(path, format!("{text}\nHost *\n")).files_as(Privilege::Caller))
        .lock(Lock::File(path.into()));
    assert_eq!(plans, [expected]);

    let (answer, plans) = run(target(&[(path, text)]), "ssh_config_add", arguments);
    let notes = answer.unwrap().1;
    assert_eq!((notes.len(), plans.len()), (2, 0));
    assert_eq!(notes[0], "the configuration says so already: nothing was written");
}

#[test]
fn to_lead_calls_elsewhere_is_critical() {
    let path = "/home/ada/.ssh/config";
    let before = "Host web1\n    HostName 10.0.0.1\n";
    let change = |dry: bool, hosts: &[&str], arguments: &Value| {
        fake::set(FakeHost {
            hosts: hosts.iter().map(|host| host.to_string()).collect(),
            ..FakeHost::default()
        });
        let target = target(&[(path, before)]);
        let (answer, plans) =
            run(if dry { dry_run(target) } else { target }, "ssh_config_add", arguments.clone());
        (answer.unwrap().1, plans)
    };
    let plan = |summary: &str, text: &str| {
        Change::new(summary)
            .lock(Lock::Named("ssh-config".into()))
            .step(Step::write(path, text).files_as(Privilege::Caller))
            .lock(Lock::File(path.into()))
    };
    let warning =
        "calls with host web1 would work on db1.prod:22 as root from then on; so far on 10.0.0.1:22 as ada";
    let moved = json!({"host": "web1", "hostname": "db1.prod", "user": "root"});
    let plain = plan(
        "Change the host web1 in ~/.ssh/config: HostName db1.prod, User root",
        "Host web1\n    HostName db1.prod\n    User root\n",
    );
    for dry in [false, true] {
        let (notes, plans) = change(dry, &["web1"], &moved);
        assert_eq!(plans, [plain.clone().warning(warning).risk(Risk::Critical)]);
        assert_eq!(
            notes,
            [
                "web1 is a host that `host` takes: connections to it are made as this says from then on",
                warning
            ]
        );
        // Calls can't name this host until the server is started anew.
        let (notes, plans) = change(dry, &["web2"], &moved);
        assert_eq!(plans, [plain.clone().risk(Risk::High)]);
        assert!(notes.len() == 1 && notes[0].contains("not thereby a host"), "{notes:?}");
    }
    // A new alias that matches an allowed glob is a host at once.
    let (notes, plans) = change(false, &["web2"], &json!({"host": "web2", "hostname": "db1"}));
    let warning = "calls with host web2 would work on db1:22 as ada from then on; so far on web2:22 as ada";
    let text = format!("Host web2\n    HostName db1\n\n{before}");
    let summary = "Add the host web2 in ~/.ssh/config: HostName db1";
    assert_eq!(plans, [plan(summary, &text).warning(warning).risk(Risk::Critical)]);
    assert!(notes[0].starts_with("web2 is a host"), "{notes:?}");
    // A key alone doesn't change the destination, but the rights there.
    let key = json!({"host": "web1", "identity_file": "~/.ssh/k", "identities_only": true});
    let summary = "Change the host web1 in ~/.ssh/config: IdentityFile ~/.ssh/k, IdentitiesOnly yes";
    let text = format!("{before}    IdentityFile ~/.ssh/k\n    IdentitiesOnly yes\n");
    let warning = "connections to web1 may take another key from then on, which may have other rights";
    assert_eq!(change(false, &["web1"], &key).1, [plan(summary, &text).warning(warning).risk(Risk::High)]);
}

#[test]
fn a_configuration_that_cannot_be_kept_as_it_is_is_not_edited() {
    let path = "/home/ada/.ssh/config";
    let there = || target(&[(path, "Host *\n")]);
    for (target, code) in [
        (there().metadata(path, link("ada")), "SYMLINK"),
        (there().metadata("/home/ada/.ssh", link("ada")), "SYMLINK"),
        (there().file(path, b"# M\xfcller\nHost *\n".to_vec()), "CONFIG_NOT_TEXT"),
        (there().file(path, "Host x new\n"), "HOST_SHARED"),
        (there().file(path, "Port 1\n"), "SETTING_COMES_FIRST"),
        (there().file(path, "Port\n"), "SSH_CONFIG_INVALID"),
        (
            there().file(path, "Include sub.conf\n").file("/home/ada/.ssh/sub.conf", "Host new\n"),
            "HOST_ELSEWHERE",
        ),
        (
            there().file(path, "Include sub.conf\n").file("/home/ada/.ssh/sub.conf", "Port 3\n"),
            "SETTING_COMES_FIRST",
        ),
    ] {
        assert_eq!(refused(target, "ssh_config_add", json!({"host": "new", "port": 22})).code, code);
    }
    // A list reads any file.
    let odd = there().metadata(path, link("ada")).file(path, b"# M\xfcller\nHost *\n User x\n".to_vec());
    assert_eq!(run(odd, "ssh_config_list", json!({})).0.unwrap().0[0]["settings"], json!(["User x"]));
}

// The module.

#[test]
fn tools_are_what_they_are_said_to_be() {
    let description = module().description();
    let expected = [
        ("ssh_connect", Risk::Moderate, Place::Controller),
        ("ssh_disconnect", Risk::Low, Place::Controller),
        ("ssh_session_info", Risk::ReadOnly, Place::Target),
        ("ssh_test_connection", Risk::ReadOnly, Place::Controller),
        ("ssh_config_list", Risk::ReadOnly, Place::Controller),
        ("ssh_config_add", Risk::Moderate, Place::Controller),
        ("ssh_key_list", Risk::ReadOnly, Place::Controller),
        ("ssh_key_generate", Risk::Low, Place::Controller),
        ("ssh_authorized_keys", Risk::High, Place::Target),
        ("ssh_copy_id", Risk::Moderate, Place::Target),
    ];
    let tools: Vec<_> =
        description.tools.iter().map(|tool| (tool.name.as_str(), tool.risk, tool.place)).collect();
    assert_eq!(tools, expected);
    for tool in &description.tools {
        takes_little_context(tool);
    }
}

#[test]
fn no_grant_is_for_private_keys() {
    let paths = module().description().capabilities.paths;
    for grant in &paths {
        let last = grant.glob.rsplit('/').next().unwrap();
        assert!(
            !last.starts_with("id_") && last != "*" || grant.glob.starts_with("/etc/ssh/ssh_config.d"),
            "{}",
            grant.glob
        );
    }
    let whole = paths.iter().filter(|grant| grant.glob.ends_with("/**")).map(|grant| grant.glob.as_str());
    assert!(whole.eq(["/**/.ssh/config.d/**", "/**/.ssh/conf.d/**"]));
    // As root, only root's own home is used.
    let of_root =
        paths.iter().filter(|grant| grant.privilege == Privilege::Root).map(|grant| grant.glob.as_str());
    assert!(of_root.eq(["/root/.ssh/authorized_keys", "/root/.ssh/authorized_keys2", "/root/.ssh"]));
    let others = paths.iter().filter(|grant| grant.glob.ends_with("authorized_keys2"));
    assert!(others.map(|grant| grant.write).eq([false; 3]));
}
