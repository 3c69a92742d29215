//! No sequence of calls locks the server out. The promise: as long as a server runs, one of its keys opens each account
//! that it was ever connected to. It holds whatever keys are listed, added, copied and removed, over any connections,
//! in any order, with a yes to every question, and with several questions open at once.
//!
//! Here it is tried with the lines that it is easiest broken by, on a real sshd. The tests in `thorough` try random sequences.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};

use linux_sysadmin_tests::{Client, Lab, Sshd, Way};
use serde_json::{Value, json};

/// The port of the sshd.
const PORT: u16 = 2210;

/// An account that may do anything, one that may do so by sudo, and one that may write only to its own home.
pub(crate) const ACCOUNTS: [(&str, &str); 3] =
    [("root", "/root"), ("lsa-keys-sudo", "/home/lsa-keys-sudo"), ("lsa-keys-plain", "/home/lsa-keys-plain")];

/// The server's keys, in its home: two where ssh looks for keys, one without a public half, and one elsewhere.
pub(crate) const OWN: [&str; 4] = [".ssh/first", ".ssh/second", ".ssh/bare", "keys/elsewhere"];
/// The number of keys of others. The server has only their public halves, and not in its home.
const OTHERS: usize = 1;

/// Options of lines. With some, a key opens nothing from here or now. With the others, it opens the account.
pub(crate) const OPTIONS: [&str; 7] =
    ["", "", "", "", "restrict ", "expiry-time=\"20200101\" ", "from=\"192.0.2.1\" "];

/// Restores the hosts. The key by which the lab logs in as root isn't part of the test.
const CLEAN: &str = r"
for account in lsa-keys-sudo lsa-keys-plain; do userdel --force --remove $account; done
rm -f /etc/sudoers.d/lsa-keys
test -e /run/lsa-keys-root || exit 0
cp -p /run/lsa-keys-root /root/.ssh/authorized_keys && rm /run/lsa-keys-root
";

const PREPARE: &str = r"
set -e
cp -p /root/.ssh/authorized_keys /run/lsa-keys-root
for account in lsa-keys-sudo lsa-keys-plain; do
    useradd --create-home --shell /bin/bash --password '*' $account
done
echo 'lsa-keys-sudo ALL=(ALL:ALL) NOPASSWD: ALL' > /etc/sudoers.d/lsa-keys
";

/// Replaces both files of an account. The arguments are its home and the texts.
const REPLACE: &str = r#"
set -e
rm -rf "$1/.ssh"
install -d -m 700 -o "$0" -g "$0" "$1/.ssh"
printf %s "$2" > "$1/.ssh/authorized_keys"
test -z "$3" || printf %s "$3" > "$1/.ssh/authorized_keys2"
chown "$0:$0" "$1"/.ssh/*
chmod 600 "$1"/.ssh/*
"#;

/// The machine with the accounts. They are removed when this is dropped.
pub(crate) struct World {
    pub(crate) lab: Lab,
    pub(crate) host: &'static str,
    /// Lines of public keys: first the server's keys, then those of others.
    pub(crate) keys: Vec<String>,
    _sshd: Sshd,
}

impl World {
    pub(crate) fn new(host: &'static str, test: &str) -> Option<Self> {
        let lab = Lab::new(test)?;
        let _ = lab.host(host).command(&["sh", "-c", CLEAN]).output();
        lab.host(host).run(&["sh", "-c", PREPARE]);
        let sshd = lab.sshd(host, PORT);
        let key = lab.key("host", "ed25519");
        // A session of systemd for each connection would take most of the time.
        sshd.start(&[&key], "UsePAM no\nMaxAuthTries 100\nMaxStartups 100\n");
        lab.know(&format!("{} {}", sshd.known_as(), key.public()));
        // This is a host's key, which opens nothing.
        lab.run(&["mkdir", "keys", "others"]);
        lab.run(&["mv", key.path(), &format!("{}.pub", key.path()), "others"]);

        let mut keys: Vec<String> = ["first", "second", "bare", "elsewhere"]
            .iter()
            .map(|name| lab.key(name, "ed25519").public())
            .collect();
        keys.extend((0..OTHERS).map(|number| lab.key(&format!("other{number}"), "ed25519").public()));
        lab.run(&["rm", ".ssh/bare.pub"]);
        lab.run(&["sh", "-c", "mv .ssh/elsewhere .ssh/elsewhere.pub keys; mv .ssh/other* others"]);

        let alias = |(account, _)| {
            let address = lab.address(host);
            format!(
                "Host {account}\n  HostName {address}\n  Port {PORT}\n  User {account}\n  IdentitiesOnly yes\n"
            )
        };
        lab.configure(&ACCOUNTS.map(alias).concat());
        Some(Self { lab, host, keys, _sshd: sshd })
    }

    pub(crate) fn replace(&self, account: &str, home: &str, first: &str, second: &str) {
        self.lab.host(self.host).run(&["sh", "-c", REPLACE, account, home, first, second]);
    }

    /// The paths of the private keys that the server has, including new ones.
    pub(crate) fn private(&self) -> Vec<String> {
        let made = self.lab.run(&["sh", "-c", "ls .ssh/made* 2> /dev/null | grep -v pub || :"]);
        OWN.iter().copied().chain(made.lines()).map(str::to_owned).collect()
    }

    /// The first of these accounts that OpenSSH can't get into.
    pub(crate) fn locked_out_of<'a>(&self, accounts: &'a BTreeSet<String>) -> Option<&'a str> {
        let identities: Vec<String> =
            self.private().into_iter().flat_map(|path| ["-i".to_owned(), path]).collect();
        let identities: Vec<&str> = identities.iter().map(String::as_str).collect();
        let tries = |account: &'a String| -> (&'a str, Child) {
            let argv = [&["ssh", "-o", "BatchMode=yes"], &identities[..], &[account, "true"]].concat();
            let mut command = self.lab.command(&argv);
            (account, command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("ip runs"))
        };
        let tries: Vec<_> = accounts.iter().map(tries).collect();
        let ended =
            tries.into_iter().map(|(account, mut child)| (account, child.wait().expect("it ends").success()));
        ended.filter(|(_, is_in)| !is_in).map(|(account, _)| account).next()
    }

    /// Connects to these accounts by these keys; gives the names for `host`.
    async fn connected(&self, client: &mut Client, ways: &[(&str, &str)]) -> Vec<Value> {
        let mut names = Vec::new();
        for (account, key) in ways {
            let key = self.lab.home().path().join(key);
            let envelope = client
                .agrees(Way::InputRequired, "ssh_connect", json!({"host": account, "identity_file": key}))
                .await;
            assert_eq!(envelope["status"], "success", "{envelope}");
            names.push(envelope["data"]["host"].clone());
        }
        names
    }

    pub(crate) async fn serve(&self) -> Client {
        let mut client = self.lab.serve(&[]);
        client.can(json!({"elicitation": {"form": {}}}));
        client.initialize("2026-07-28").await;
        client
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.lab.host(self.host).command(&["sh", "-c", CLEAN]).output();
    }
}

#[tokio::test]
async fn a_key_of_the_servers_is_one_wherever_it_lies() {
    let Some(world) = World::new("debian1", "a_key_of_the_servers_is_one_wherever_it_lies") else { return };
    let [(root, of_root), _, (plain, of_plain)] = ACCOUNTS;
    let other = world.keys.last().expect("a key of another's");
    for (number, key) in OWN.into_iter().enumerate().skip(1) {
        world.replace(root, of_root, &world.keys[0], "");
        world.replace(plain, of_plain, &format!("{}\n{other}\n", world.keys[number]), "");
        let mut client = world.serve().await;
        let connections = world.connected(&mut client, &[(root, OWN[0]), (plain, key)]).await;
        let remove =
            json!({"host": connections[0], "user": plain, "action": "remove", "key": world.keys[number]});
        let envelope = client.agrees(Way::InputRequired, "ssh_authorized_keys", remove).await;
        assert_eq!(envelope["error_code"], "KEY_OF_CONTROLLER", "{key}: {envelope}");
        assert_eq!(world.locked_out_of(&BTreeSet::from([plain.to_owned()])), None, "{key}");
        assert!(client.close().await.0.success());
    }
}

#[tokio::test]
async fn a_line_that_opens_nothing_from_here_or_now_is_nobodys_way_in() {
    let test = "a_line_that_opens_nothing_from_here_or_now_is_nobodys_way_in";
    let Some(world) = World::new("debian1", test) else { return };
    let (plain, of_plain) = ACCOUNTS[2];
    let [first, second, ..] = &world.keys[..] else { panic!("keys") };
    for options in &OPTIONS[OPTIONS.len() - 2..] {
        let file = format!("{first}\n{second}\n{}\n", world.keys[OWN.len()]);
        world.replace(plain, of_plain, &file, "");
        let mut client = world.serve().await;
        let connections = world.connected(&mut client, &[(plain, OWN[0]), (plain, OWN[1])]).await;
        for (connection, action, key, code) in [
            (0, "remove", second.clone(), Value::Null),
            (0, "add", format!("{options}{second}"), Value::Null),
            (1, "remove", first.clone(), "KEY_OF_CONTROLLER".into()),
        ] {
            let arguments = json!({"host": connections[connection], "action": action, "key": key});
            let envelope = client.agrees(Way::InputRequired, "ssh_authorized_keys", arguments).await;
            assert_eq!(envelope["error_code"], code, "{action} {key}: {envelope}");
        }
        assert_eq!(world.locked_out_of(&BTreeSet::from([plain.to_owned()])), None, "{options}");
        assert!(client.close().await.0.success());
    }
}
