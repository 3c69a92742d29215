//! No sequence of calls locks the server out. The promise: as long as a server runs, one of its keys opens each account
//! that it was ever connected to. It holds whatever keys are listed, added, copied and removed, over any connections,
//! in any order, with a yes to every question, and with several questions open at once.
//!
//! The test makes random sequences of calls on real sshds. After each call, a new connection of OpenSSH has to get into each
//! of these accounts. A failure names its sequence, and `LINUX_SYSADMIN_SEED` begins with it.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use linux_sysadmin_tests::{Asked, Client, Lab, Sshd, Way};
use serde_json::{Value, json};

/// New sequences begin within this time.
const LASTS: Duration = Duration::from_secs(30);
/// The least number of sequences, also on a slow machine.
const FEWEST: usize = 2;
/// The most sequences.
const MOST: usize = 40;
/// The calls of a sequence.
const CALLS: u64 = 24;
/// The port of the sshd.
const PORT: u16 = 2210;

/// An account that may do anything, one that may do so by sudo, and one that may write only to its own home.
const ACCOUNTS: [(&str, &str); 3] =
    [("root", "/root"), ("lsa-keys-sudo", "/home/lsa-keys-sudo"), ("lsa-keys-plain", "/home/lsa-keys-plain")];

/// The server's keys, in its home: two where ssh looks for keys, one without a public half, and one elsewhere.
const OWN: [&str; 4] = [".ssh/first", ".ssh/second", ".ssh/bare", "keys/elsewhere"];
/// The number of keys of others. The server has only their public halves, and not in its home.
const OTHERS: usize = 1;

/// Options of lines. With some, a key opens nothing from here or now. With the others, it opens the account.
const OPTIONS: [&str; 7] = ["", "", "", "", "restrict ", "expiry-time=\"20200101\" ", "from=\"192.0.2.1\" "];

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
struct World {
    lab: Lab,
    host: &'static str,
    /// Lines of public keys: first the server's keys, then those of others.
    keys: Vec<String>,
    _sshd: Sshd,
}

impl World {
    fn new(host: &'static str, test: &str) -> Option<Self> {
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

    /// Writes each account's file at random. Most keys are in it, in any order.
    fn begin(&self, dice: &mut Dice) {
        self.lab.run(&["sh", "-c", "rm -f .ssh/made*"]);
        for (account, home) in ACCOUNTS {
            let mut lines: Vec<String> = Vec::new();
            for key in &self.keys {
                let line = format!("{}{key}\n", dice.one_of(&OPTIONS));
                let at = dice.below(2) * u64::try_from(lines.len()).expect("few");
                if dice.below(3) > 0 {
                    lines.insert(usize::try_from(at).expect("few"), line);
                }
            }
            // sshd reads this file as well, and no tool writes it.
            let second = if dice.below(4) == 0 { dice.one_of(&self.keys).as_str() } else { "" };
            self.replace(account, home, &lines.concat(), second);
        }
    }

    fn replace(&self, account: &str, home: &str, first: &str, second: &str) {
        self.lab.host(self.host).run(&["sh", "-c", REPLACE, account, home, first, second]);
    }

    fn line(&self, dice: &mut Dice) -> String {
        format!("{}{}", dice.one_of(&OPTIONS), dice.one_of(&self.keys))
    }

    fn fingerprint(&self, line: &str) -> String {
        let file = self.lab.home().path().join("line.pub");
        std::fs::write(&file, line).expect("written");
        let shown = self.lab.run(&["ssh-keygen", "-lf", file.to_str().expect("UTF-8")]);
        shown.split_whitespace().nth(1).expect("a fingerprint").to_owned()
    }

    /// The paths of the private keys that the server has, including new ones.
    fn private(&self) -> Vec<String> {
        let made = self.lab.run(&["sh", "-c", "ls .ssh/made* 2> /dev/null | grep -v pub || :"]);
        OWN.iter().copied().chain(made.lines()).map(str::to_owned).collect()
    }

    /// The first of these accounts that OpenSSH can't get into.
    fn locked_out_of<'a>(&self, accounts: &'a BTreeSet<String>) -> Option<&'a str> {
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

    fn files(&self) -> String {
        let cat = |(account, home)| {
            let files = format!("tail -v -n +1 {home}/.ssh/authorized_keys*");
            format!("{account}:\n{}", self.lab.host(self.host).run(&["sh", "-c", &files]))
        };
        ACCOUNTS.map(cat).concat()
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

    async fn serve(&self) -> Client {
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

/// Random numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let count = u64::try_from(all.len()).expect("few");
        &all[usize::try_from(self.below(count)).expect("few")]
    }
}

/// A sequence of calls.
struct Sequence<'a> {
    world: &'a World,
    client: Client,
    dice: Dice,
    /// The connections, by the names that `host` takes.
    connections: Vec<String>,
    /// The accounts that the server was connected to.
    accounts: BTreeSet<String>,
    /// Questions without an answer so far.
    open: Vec<Asked>,
    /// The calls and their results.
    story: Vec<String>,
}

/// Counts the results of all sequences, which must have tried each kind of call.
#[derive(Debug, Default)]
struct Tally {
    sequences: usize,
    added: usize,
    removed: usize,
    kept: usize,
    answered_late: usize,
}

impl Tally {
    fn is_telling(&self) -> bool {
        self.added > 0 && self.removed > 0 && self.kept > 0
    }
}

impl Sequence<'_> {
    async fn call(&mut self, tool: &str, arguments: Value) -> Option<Value> {
        self.story.push(format!("{tool} {arguments}"));
        let envelope = match self.client.may_be_asked(Way::InputRequired, tool, arguments).await {
            Ok(asked) if self.dice.below(6) == 0 => {
                self.story.push("  asked".to_owned());
                self.open.push(asked);
                return None;
            }
            Ok(asked) => self.client.answers(&asked, "accept").await,
            Err(envelope) => envelope,
        };
        self.tell(&envelope);
        Some(envelope)
    }

    fn tell(&mut self, envelope: &Value) {
        let status = &envelope["status"];
        self.story.push(format!("  {status} {} {}", envelope["error_code"], envelope["message"]));
        // A call may be refused. Nothing else may go wrong.
        assert_ne!(envelope["error_category"], "internal", "{envelope}");
    }

    /// The `host` of a call: one connection or two.
    fn somewhere(&mut self) -> Value {
        let one = self.dice.one_of(&self.connections).clone();
        if self.dice.below(8) > 0 {
            return one.into();
        }
        let other = self.dice.one_of(&self.connections).clone();
        if one == other { one.into() } else { json!([one, other]) }
    }

    /// The arguments of a change of an account's keys.
    fn change(&mut self) -> Value {
        let mut arguments = json!({"host": self.somewhere()});
        let is_plain = arguments["host"].to_string().contains(ACCOUNTS[2].0);
        if self.dice.below(if is_plain { 12 } else { 2 }) == 0 {
            arguments["user"] = self.dice.one_of(&ACCOUNTS).0.into();
        }
        arguments
    }

    async fn connect(&mut self) {
        let (account, _) = *self.dice.one_of(&ACCOUNTS);
        let private = self.world.private();
        let key = self.world.lab.home().path().join(self.dice.one_of(&private));
        let arguments = json!({"host": account, "identity_file": key});
        self.story.push(format!("ssh_connect {arguments}"));
        // A key that the configuration doesn't name is asked about, and the answer is yes at once.
        let envelope = self.client.agrees(Way::InputRequired, "ssh_connect", arguments).await;
        self.tell(&envelope);
        if envelope["status"] == "success" {
            let name = envelope["data"]["host"].as_str().expect("a name").to_owned();
            self.accounts.insert(account.to_owned());
            if !self.connections.contains(&name) {
                self.connections.push(name);
            }
        }
    }

    async fn step(&mut self, tally: &mut Tally) {
        match self.dice.below(18) {
            _ if self.connections.len() < 2 => self.connect().await,
            0..2 => self.connect().await,
            2 => {
                let host = self.dice.one_of(&self.connections).clone();
                self.call("ssh_disconnect", json!({"host": host})).await;
            }
            3 if self.open.is_empty() => {
                let name = format!("made{}", self.story.len());
                self.call("ssh_key_generate", json!({"name": name})).await;
            }
            3 | 4 if !self.open.is_empty() => {
                let asked = self.open.remove(0);
                self.story.push("yes to what was asked first".to_owned());
                let envelope = self.client.answers(&asked, "accept").await;
                self.tell(&envelope);
                tally.answered_late += 1;
            }
            4..7 => {
                let mut arguments = self.change();
                let private = self.world.private();
                arguments["key"] = format!("~/{}", self.dice.one_of(&private)).into();
                self.call("ssh_copy_id", arguments).await;
            }
            7 | 8 => {
                let mut arguments = self.change();
                arguments["action"] = "add".into();
                arguments["key"] = self.world.line(&mut self.dice).into();
                let said = self.call("ssh_authorized_keys", arguments).await;
                tally.added += usize::from(said.is_some_and(|said| said["status"] == "success"));
            }
            kind => {
                let mut arguments = self.change();
                arguments["action"] = "remove".into();
                let key = self.dice.one_of(&self.world.keys).clone();
                match kind % 2 {
                    0 => arguments["key"] = key.into(),
                    _ => arguments["fingerprint"] = self.world.fingerprint(&key).into(),
                }
                let said = self.call("ssh_authorized_keys", arguments).await.unwrap_or_default();
                tally.removed += usize::from(said["status"] == "success" && said.get("notes").is_none());
                tally.kept += usize::from(said["error_category"] == "denied");
            }
        }
    }
}

/// Makes sequences for a while.
async fn nobody_is_locked_out_of(host: &'static str, test: &str) {
    let Some(world) = World::new(host, test) else { return };
    let given = std::env::var("LINUX_SYSADMIN_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").subsec_nanos();
    let (begun, mut seed): (Instant, u64) = (Instant::now(), given.unwrap_or(now.into()));
    let mut tally = Tally::default();
    let tries = |tally: &Tally| begun.elapsed() < LASTS || tally.sequences < FEWEST || !tally.is_telling();
    while tries(&tally) && tally.sequences < MOST {
        let mut dice = Dice(seed);
        world.begin(&mut dice);
        let before = world.files();
        let (client, story) = (world.serve().await, Vec::new());
        let (connections, accounts, open) = (Vec::new(), BTreeSet::new(), Vec::new());
        let mut sequence = Sequence { world: &world, client, dice, connections, accounts, open, story };
        for _ in 0..CALLS {
            sequence.step(&mut tally).await;
            if let Some(account) = world.locked_out_of(&sequence.accounts) {
                let (story, after) = (sequence.story.join("\n"), world.files());
                panic!(
                    "locked out of {account} on {host}, LINUX_SYSADMIN_SEED={seed}\n{story}\n\nbefore:\n{before}\n\
                     after:\n{after}"
                );
            }
        }
        assert!(sequence.client.close().await.0.success());
        tally.sequences += 1;
        seed = seed.wrapping_add(1);
    }
    eprintln!("{host}: {tally:?}");
    assert!(tally.is_telling(), "{tally:?}");
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

#[tokio::test]
async fn nobody_is_locked_out_of_a_debian() {
    nobody_is_locked_out_of("debian1", "nobody_is_locked_out_of_a_debian").await;
}

#[tokio::test]
async fn nobody_is_locked_out_of_a_fedora() {
    nobody_is_locked_out_of("rhel1", "nobody_is_locked_out_of_a_fedora").await;
}
