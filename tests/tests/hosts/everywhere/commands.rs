//! Commands of the caller's choice on a real host: each row of the policy's tables is decided at the tool as the policy
//! decides, and whatever the words are, nothing runs unasked that isn't known to look.

use std::collections::BTreeSet;

use host_policy::{Level, Policy, unasked_look};
use linux_sysadmin_tests::{Changing, Client, way};
use proptest::prelude::RngExt;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The policy's own tables of what is dangerous, tries to get past it, and changes something.
const ROWS: [&str; 3] = [
    include_str!("../../../../host/policy/src/decisions/dangerous.yaml"),
    include_str!("../../../../host/policy/src/decisions/evasions.yaml"),
    include_str!("../../../../host/policy/src/decisions/changes.yaml"),
];
/// The policy's own tables of what is SAFE: it runs unasked, or could show a secret.
const LOOKS: [&str; 2] = [
    include_str!("../../../../host/policy/src/decisions/harmless.yaml"),
    include_str!("../../../../host/policy/src/decisions/harmless_asked.yaml"),
];
/// The number of random command lines. There are four ways, so all of them together have 10,000.
const RANDOM: usize = 2_500;
/// The number of calls at once. A server takes more.
const AT_ONCE: usize = 16;
/// The account of the server. Root would also be asked about paths below directories of others.
const ACCOUNT: &str = "admin";

const PREPARE: &str = r"
set -e
install -d -o admin -g admin /srv/lsa-files /srv/lsa-files/below
for name in a b c below/d; do echo $name > /srv/lsa-files/$name; done
ln -s a /srv/lsa-files/link
chown -R admin:admin /srv/lsa-files
";

const CLEAN: &str = r#"
test ! -e /run/lsa-stubs || while read -r stub; do rm -f "$stub"; done < /run/lsa-stubs
rm -rf /srv/lsa-files /run/lsa-stubs
"#;

/// Puts a program that does nothing in the place of each that isn't there.
const STUBS: &str = r#"
set -e
touch /run/lsa-stubs
for name; do
    case $name in
        /*) stub=$name; there=$(test ! -e "$name" || echo yes) ;;
        *)
            stub=/usr/local/bin/$name; there=
            for directory in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
                test ! -e "$directory/$name" || there=yes
            done ;;
    esac
    test -z "$there" || continue
    mkdir -p "$(dirname "$stub")"
    printf '#!/bin/sh\nexit 0\n' > "$stub"
    chmod 0755 "$stub"
    echo "$stub" >> /run/lsa-stubs
done
cat /run/lsa-stubs
"#;

/// What a call did.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Ran,
    Asks,
    Fails(String),
}

/// What the policy decides on a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Unasked,
    Asked,
    Blocked,
}

#[derive(Deserialize)]
struct Row {
    argv: Vec<String>,
}

fn rows() -> Vec<Vec<String>> {
    let rows = ROWS.iter().flat_map(|table| serde_yaml::from_str::<Vec<Row>>(table).expect("a table"));
    rows.map(|row| row.argv).collect()
}

fn looks(table: &str) -> Vec<Vec<String>> {
    serde_yaml::from_str(table).expect("a table")
}

fn decision(commands: &[Vec<String>]) -> Decision {
    let policy = Policy::builtin();
    let mut verdicts: Vec<_> = commands.iter().map(|argv| policy.verdict(argv)).collect();
    if commands.len() > 1 {
        let line = commands.iter().map(shell_words::join).collect::<Vec<_>>().join(" | ");
        verdicts.push(policy.verdict(&["sh", "-c", &line]));
    }
    if verdicts.iter().any(|verdict| verdict.level == Level::Block) {
        return Decision::Blocked;
    }
    let is_safe = verdicts.iter().all(|verdict| verdict.level == Level::Safe && !verdict.changes());
    match is_safe && commands.iter().all(|argv| unasked_look(argv).is_ok()) {
        true => Decision::Unasked,
        false => Decision::Asked,
    }
}

fn outcome(envelope: &Value) -> Outcome {
    match (envelope["error_code"].as_str(), &envelope["needs_confirmation"]) {
        // It ran until its time was over.
        (Some("COMMAND_TIMEOUT"), _) => Outcome::Ran,
        (Some(code), _) => Outcome::Fails(code.to_owned()),
        (None, Value::Bool(true)) => Outcome::Asks,
        (None, _) => Outcome::Ran,
    }
}

/// The outcomes of dry runs, in the order of the command lines, of which each is one command or a pipeline.
async fn outcomes(client: &mut Client, lines: &[Vec<Vec<String>>]) -> Vec<(Outcome, Value)> {
    let mut all = Vec::new();
    for some in lines.chunks(AT_ONCE) {
        let mut asked = Vec::new();
        for line in some {
            let mut arguments = json!({"dry_run": true, "timeout_seconds": 1});
            match &line[..] {
                [argv] => arguments["argv"] = json!(argv),
                pipeline => arguments["pipeline"] = json!(pipeline),
            }
            let params = json!({"name": "command_run", "arguments": arguments});
            asked.push(client.ask("tools/call", params).await);
        }
        for id in asked {
            let envelope = client.answer(id).await["result"]["structuredContent"].clone();
            all.push((outcome(&envelope), envelope));
        }
    }
    all
}

/// The outcome that a decision has at the tool.
fn expected(decision: Decision) -> Outcome {
    match decision {
        Decision::Unasked => Outcome::Ran,
        Decision::Asked => Outcome::Asks,
        Decision::Blocked => Outcome::Fails("POLICY_BLOCKED".to_owned()),
    }
}

fn programs(lines: &[Vec<String>]) -> BTreeSet<&str> {
    let names = lines.iter().filter_map(|argv| argv.first().map(String::as_str));
    names.filter(|name| is_found_everywhere(name)).collect()
}

/// Whether a program by this name is found wherever the server runs. A relative path never is, and one with `..` or `//` only
/// on the server's own machine.
fn is_found_everywhere(name: &str) -> bool {
    let is_plain = !name.contains("//") && !name.split('/').any(|part| part == "..");
    !name.is_empty() && is_plain && (name.starts_with('/') || !name.contains('/'))
}

/// Puts a program that does nothing in the place of each that isn't on the host; gives the paths of these.
fn stub(machine: &Changing, lines: &[Vec<String>]) -> String {
    let names: Vec<&str> = programs(lines).into_iter().collect();
    machine.host().run(&[&["sh", "-c", STUBS, "sh"], &names[..]].concat())
}

/// Starts a server that runs no command a second time because it took long.
async fn serve(machine: &Changing) -> Client {
    machine.configure(ACCOUNT, "errors:\n  max_retries: 0\n");
    machine.serve_shipped(ACCOUNT, ACCOUNT).await
}

#[tokio::test]
async fn every_row_of_the_policys_tables_is_decided_at_the_tool_as_the_policy_decides() {
    let test = "every_row_of_the_policys_tables_is_decided_at_the_tool_as_the_policy_decides";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let mut client = serve(&machine).await;
    let rows = rows();
    let [unasked, asked] = LOOKS.map(looks);
    let alone = |rows: &[Vec<String>]| rows.iter().map(|argv| vec![argv.clone()]).collect::<Vec<_>>();
    let is_blocked = |argv: &&Vec<String>| decision(std::slice::from_ref(*argv)) == Decision::Blocked;

    // What is forbidden is refused as that, whether or not the host has the program.
    let blocked: Vec<Vec<String>> = rows.iter().filter(is_blocked).cloned().collect();
    let mut wrong = Vec::new();
    for (argv, (found, envelope)) in blocked.iter().zip(outcomes(&mut client, &alone(&blocked)).await) {
        if found != expected(Decision::Blocked) {
            wrong.push(format!("{argv:?}, before there are stubs: {envelope}"));
        }
    }

    let all = [&rows[..], &unasked, &asked].concat();
    let stubs = stub(&machine, &all);
    assert!(stubs.lines().count() > 0, "some programs of the tables aren't on any host");
    let mut proven = 0;
    for (argv, (found, envelope)) in all.iter().zip(outcomes(&mut client, &alone(&all)).await) {
        let decided = decision(std::slice::from_ref(argv));
        let name = argv.first().map_or("", String::as_str);
        let is_found = is_found_everywhere(name) || name.starts_with('/') && machine.lab().is_none();
        let expected = match is_found || decided == Decision::Blocked {
            true => expected(decided),
            false => Outcome::Fails("PROGRAM_NOT_FOUND".to_owned()),
        };
        match found == expected {
            true => proven += 1,
            false => wrong.push(format!("{argv:?}: expected {expected:?}: {envelope}")),
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(proven, all.len());
    // The tables themselves say what looks unasked, and what is refused at least.
    let count = |rows: &[Vec<String>], decision_of: Decision| {
        rows.iter().filter(|argv| decision(std::slice::from_ref(argv)) == decision_of).count()
    };
    assert_eq!(count(&unasked, Decision::Unasked), unasked.len());
    assert_eq!(count(&asked, Decision::Asked), asked.len());
    assert_eq!(count(&rows, Decision::Unasked), 0);
    assert_eq!(count(&rows, Decision::Blocked), blocked.len());
}

/// Command lines of the programs of the tables: words of a row and of other rows of the same program, paths, wrappers, quoting
/// and pipelines.
struct Lines {
    random: TestRng,
    rows: Vec<Vec<String>>,
}

impl Lines {
    fn new(seed: &str, rows: Vec<Vec<String>>) -> Self {
        let seed: [u8; 32] = Sha256::digest(seed).into();
        Self { random: TestRng::from_seed(RngAlgorithm::ChaCha, &seed), rows }
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end)
    }

    fn any<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// The words of a row, some of them replaced by paths or by words of other rows of the same program.
    fn command(&mut self) -> Vec<String> {
        const PATHS: [&str; 12] = [
            "/srv/lsa-files/a",
            "/srv/lsa-files/b",
            "/srv/lsa-files/link",
            "/srv/lsa-files",
            "/srv/lsa-files/new",
            "/srv/lsa-files/below/d",
            "srv/lsa-files/c",
            "/etc/hosts",
            "/etc/shadow",
            "/home/admin/.ssh/id_ed25519",
            "../srv/lsa-files/a",
            "/",
        ];
        let at = self.below(self.rows.len());
        let mut argv = self.rows[at].clone();
        let related: Vec<String> = self
            .rows
            .iter()
            .filter(|row| row.first() == argv.first())
            .flat_map(|row| row[1..].iter().cloned())
            .collect();
        for _ in 0..self.below(4) {
            let word = match self.below(3) {
                0 if !related.is_empty() => related[self.below(related.len())].clone(),
                1 => {
                    format!("{}{}", self.any(&["--output=", "of=", "-o", "-f", "--file="]), self.any(&PATHS))
                }
                _ => self.any(&PATHS).to_owned(),
            };
            let place = 1 + self.below(argv.len());
            match self.below(3) {
                0 if place < argv.len() => argv[place] = word,
                1 if place < argv.len() => drop(argv.remove(place)),
                _ => argv.insert(place, word),
            }
        }
        argv
    }

    /// A command alone, behind wrappers, as a text for a shell, or several joined by pipes.
    fn line(&mut self) -> Vec<Vec<String>> {
        let argv = self.command();
        let words = |text: &[&str]| text.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        match self.below(8) {
            0 => {
                let wrapper: &[&str] = match self.below(7) {
                    0 => &["env", "A=b"],
                    1 => &["timeout", "5"],
                    2 => &["nice", "-n", "5"],
                    3 => &["sudo", "-n"],
                    4 => &["xargs", "-0"],
                    5 => &["env", "--chdir=/srv/lsa-files"],
                    _ => &["find", "/srv/lsa-files", "-exec"],
                };
                vec![[words(wrapper), argv].concat()]
            }
            1 => {
                let other = shell_words::join(self.command());
                let between = self.any(&["; ", " && ", " | ", " > /srv/lsa-files/a; ", "\n", " $("]);
                let text = format!("{}{between}{other}", shell_words::join(argv));
                vec![words(&["sh", "-c", &text])]
            }
            2 | 3 => {
                let more = 1 + self.below(2);
                std::iter::once(argv).chain((0..more).map(|_| self.command())).collect()
            }
            _ => vec![argv],
        }
    }
}

#[tokio::test]
async fn whatever_the_words_are_nothing_changes_unasked() {
    let test = "whatever_the_words_are_nothing_changes_unasked";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let mut client = serve(&machine).await;
    let [unasked, asked] = LOOKS.map(looks);
    let mut rows = [rows(), unasked, asked].concat();
    rows.retain(|argv| !programs(std::slice::from_ref(argv)).is_empty());
    stub(&machine, &rows);
    let marker = || {
        machine
            .sh("cd /srv/lsa-files && find . -printf '%p %y %m %u %l %T@\\n' | sort; sha256sum a b c below/d")
    };
    let before = marker();
    let mut lines = Lines::new(&format!("{:?}", way()), rows);
    let (mut looked, mut refused, mut done) = (0, 0, 0);
    while done < RANDOM {
        let some: Vec<Vec<Vec<String>>> = (0..100.min(RANDOM - done)).map(|_| lines.line()).collect();
        for (line, (found, envelope)) in some.iter().zip(outcomes(&mut client, &some).await) {
            let decided = decision(line);
            let is_right = match (decided, &found) {
                (Decision::Blocked, Outcome::Fails(code)) => code == "POLICY_BLOCKED",
                // Where a path leads, or what a unit takes along, may be forbidden all the same.
                (Decision::Asked, Outcome::Fails(code)) => code == "POLICY_BLOCKED",
                (Decision::Asked, Outcome::Asks) => true,
                // Where a path leads may ask all the same.
                (Decision::Unasked, _) => true,
                _ => false,
            };
            assert!(is_right, "{line:?} is {decided:?}, and the tool says {found:?}: {envelope}");
            looked += usize::from(found == Outcome::Ran);
            refused += usize::from(decided == Decision::Blocked);
        }
        assert_eq!(marker(), before, "one of these changed something unasked: {some:?}");
        done += some.len();
    }
    assert!(looked > 0 && refused > 0, "{looked} of {done} command lines looked, and {refused} were refused");
    assert_eq!(machine.begun(ACCOUNT), 0);
}

#[tokio::test]
async fn a_key_of_the_accounts_own_is_shown_to_nobody_unasked() {
    let test = "a_key_of_the_accounts_own_is_shown_to_nobody_unasked";
    let prepare = format!(
        "{PREPARE}\ninstall -d -m 700 -o admin -g admin /home/admin/.ssh /srv/lsa-files/.ssh\n\
         ssh-keygen -q -t ed25519 -N '' -f /srv/lsa-files/.ssh/id_ed25519\n\
         ln -s .ssh/id_ed25519 /srv/lsa-files/other\nln -s /srv/lsa-files/.ssh /srv/lsa-files/keys\n\
         chown -hR admin:admin /srv/lsa-files\n"
    );
    let Some(machine) = Changing::by(way(), test, &prepare, CLEAN) else { return };
    let mut client = machine.serve_shipped(ACCOUNT, ACCOUNT).await;
    let key = machine.sh("sed '1d;$d' /srv/lsa-files/.ssh/id_ed25519");
    for arguments in [
        json!({"argv": ["grep", "-r", "", "/srv/lsa-files"]}),
        json!({"argv": ["grep", "-rh", "", "/srv/lsa-files/.ssh"]}),
        json!({"argv": ["awk", "1", "/srv/lsa-files/.ssh/id_ed25519"]}),
        json!({"argv": ["sed", "-n", "2p", "/srv/lsa-files/.ssh/id_ed25519"]}),
        json!({"argv": ["cat", "srv/lsa-files/.ssh/id_ed25519"]}),
        json!({"argv": ["cat", ".ssh/id_ed25519"], "directory": "/srv/lsa-files"}),
        json!({"argv": ["cat", "id_ed25519"], "directory": "/srv/lsa-files/.ssh"}),
        json!({"argv": ["cat", "/srv/lsa-files/other"]}),
        json!({"argv": ["cat", "other"], "directory": "/srv/lsa-files"}),
        json!({"argv": ["cat", "/srv/lsa-files/keys/id_ed25519"]}),
        json!({"argv": ["xargs", "cat"], "stdin": "/srv/lsa-files/.ssh/id_ed25519"}),
        json!({"argv": ["sh", "-c", "cat /srv/lsa-files/.ss*/id*"]}),
        json!({"pipeline": [["cat", "/srv/lsa-files/other"], ["tail", "-n", "2"]]}),
    ] {
        let envelope = client.envelope("command_run", arguments.clone()).await;
        assert_eq!(envelope["status"], "confirmation_required", "{arguments}: {envelope}");
        for line in key.lines() {
            assert!(!envelope.to_string().contains(line), "{arguments}: {envelope}");
        }
    }
    // What everybody looks at stays free, also from a directory, and what isn't there fails as itself.
    for (arguments, exit_code) in [
        (json!({"argv": ["cat", "a"], "directory": "/srv/lsa-files"}), 0),
        (json!({"argv": ["cat", "srv/lsa-files/a"]}), 0),
        (json!({"argv": ["cat", "/srv/lsa-files/.ssh/id_ed25519.pub"]}), 0),
        (json!({"argv": ["ls", "-la"], "directory": "/srv/lsa-files"}), 0),
        (json!({"argv": ["cat", "/srv/lsa-files/none"]}), 1),
        (json!({"argv": ["cat", "/root/none"]}), 1),
    ] {
        let envelope = client.envelope("command_run", arguments.clone()).await;
        assert_eq!(envelope["data"]["commands"][0]["exit_code"], exit_code, "{arguments}: {envelope}");
    }
}

#[tokio::test]
async fn a_command_without_a_directory_begins_in_the_root_directory() {
    let test = "a_command_without_a_directory_begins_in_the_root_directory";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let mut client = machine.serve_shipped(ACCOUNT, ACCOUNT).await;
    for (arguments, expected) in [
        (json!({"argv": ["realpath", "."]}), "/\n"),
        (json!({"argv": ["realpath", "."], "as_root": true}), "/\n"),
        (json!({"pipeline": [["realpath", "."], ["cat"]]}), "/\n"),
        (json!({"argv": ["realpath", "."], "directory": "/srv/lsa-files"}), "/srv/lsa-files\n"),
        (json!({"argv": ["realpath", "."], "directory": "/srv", "as_root": true}), "/srv\n"),
    ] {
        let envelope = client.envelope("command_run", arguments.clone()).await;
        let commands = envelope["data"]["commands"].as_array().unwrap_or_else(|| panic!("{envelope}"));
        assert_eq!(commands.last().expect("a command")["stdout"], expected, "{arguments}: {envelope}");
    }
}

#[tokio::test]
async fn a_command_line_that_cannot_run_or_does_not_end_gets_a_clear_answer() {
    let test = "a_command_line_that_cannot_run_or_does_not_end_gets_a_clear_answer";
    let Some(machine) = Changing::by(way(), test, PREPARE, CLEAN) else { return };
    let mut client = machine.serve_shipped(ACCOUNT, ACCOUNT).await;
    for (arguments, code, word) in [
        (json!({"argv": []}), "INVALID_ARGUMENTS", "argv"),
        (json!({"argv": [""]}), "INVALID_COMMAND", "without a program"),
        (json!({"argv": ["cat", "a\u{0}b"]}), "INVALID_COMMAND", "NUL"),
        (json!({"argv": ["echo", "x".repeat(100_000)]}), "INVALID_COMMAND", "stdin"),
        (json!({"argv": ["echo", "x".repeat(1 << 20)]}), "ARGUMENTS_TOO_LARGE", "bytes"),
        (json!({"argv": ["systemctll", "status"]}), "PROGRAM_NOT_FOUND", "systemctl"),
        (json!({"argv": ["systemctll"], "directory": "/srv"}), "PROGRAM_NOT_FOUND", "systemctl"),
        (json!({"steps": [["true"], ["systemctll"]]}), "PROGRAM_NOT_FOUND", "systemctl"),
        (json!({"steps": [["true"], ["srm", "-r", "/etc"]]}), "POLICY_BLOCKED", "forbids"),
    ] {
        let envelope = client.envelope("command_run", arguments.clone()).await;
        let shown: String = arguments.to_string().chars().take(100).collect();
        assert_eq!(envelope["error_code"], code, "{shown}: {envelope}");
        assert!(envelope.to_string().contains(word), "{shown}: {envelope}");
    }

    // There is no terminal, and nothing on the standard input.
    let needs = client.envelope("command_run", json!({"argv": ["tty"]})).await;
    let said = &needs["data"]["commands"][0];
    assert_eq!((&said["exit_code"], &said["stdout"]), (&json!(1), &json!("not a tty\n")), "{needs}");
    let reads = client.envelope("command_run", json!({"argv": ["cat"]})).await;
    assert_eq!(reads["data"]["commands"][0], json!({"exit_code": 0}), "{reads}");

    // A command that never ends gives what there was until then.
    let endless = json!({"argv": ["tail", "-f", "/srv/lsa-files/a"], "timeout_seconds": 1});
    let endless = client.envelope("command_run", endless).await;
    assert_eq!(endless["error_code"], "COMMAND_TIMEOUT", "{endless}");
    machine.until("! pgrep --full 'tail -f /srv/[l]sa-files/a'");

    // A process in the background that keeps the pipe holds nothing up, and is ended with its command.
    let forks = json!({"argv": ["sh", "-c", "sleep 987654 & echo started"], "confirmed": true});
    let asked = json!({"argv": forks["argv"]});
    assert_eq!(client.envelope("command_run", asked).await["status"], "confirmation_required");
    let forked = client.envelope("command_run", forks).await;
    assert_eq!(forked["data"]["commands"][0]["stdout"], "started\n", "{forked}");
    machine.until("! pgrep --full --exact 'sleep [9]87654'");
}
