//! Random sequences of calls lock the server out of no account that it was ever connected to, on real sshds. After each call, a
//! new connection of OpenSSH has to get into each of these accounts. A failure names its sequence, and `LINUX_SYSADMIN_SEED`
//! begins with it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use linux_sysadmin_tests::{Asked, Client, Way};
use serde_json::{Value, json};

use crate::ssh_lockout::{ACCOUNTS, OPTIONS, World};

/// New sequences begin within this time.
const LASTS: Duration = Duration::from_secs(30);
/// The least number of sequences, also on a slow machine.
const FEWEST: usize = 2;
/// The most sequences.
const MOST: usize = 40;
/// The calls of a sequence.
const CALLS: u64 = 24;

impl World {
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

    fn line(&self, dice: &mut Dice) -> String {
        format!("{}{}", dice.one_of(&OPTIONS), dice.one_of(&self.keys))
    }

    fn fingerprint(&self, line: &str) -> String {
        let file = self.lab.home().path().join("line.pub");
        std::fs::write(&file, line).expect("written");
        let shown = self.lab.run(&["ssh-keygen", "-lf", file.to_str().expect("UTF-8")]);
        shown.split_whitespace().nth(1).expect("a fingerprint").to_owned()
    }

    fn files(&self) -> String {
        let cat = |(account, home)| {
            let files = format!("tail -v -n +1 {home}/.ssh/authorized_keys*");
            format!("{account}:\n{}", self.lab.host(self.host).run(&["sh", "-c", &files]))
        };
        ACCOUNTS.map(cat).concat()
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
async fn nobody_is_locked_out_of_a_debian() {
    nobody_is_locked_out_of("debian1", "nobody_is_locked_out_of_a_debian").await;
}

#[tokio::test]
async fn nobody_is_locked_out_of_a_fedora() {
    nobody_is_locked_out_of("rhel1", "nobody_is_locked_out_of_a_fedora").await;
}
