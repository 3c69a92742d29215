//! A command behind SSH gets exactly the words that the module gives, byte by byte, with any login shell and whatever
//! that shell prints by itself, on a real sshd.

use std::cell::RefCell;

use linux_sysadmin_tests::{Client, Lab};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const SHELLS: [&str; 4] = ["dash", "bash", "zsh", "fish"];
/// The cases for each shell. A case is several commands of many words.
const CASES: u32 = 12;
/// The longest argument that a module may give.
const LONGEST: usize = 4096;

/// A line for start-up files that prints to both streams, with and without a newline, and prints text like a marker.
const NOISE: &str = "printf 'hello\\n0123456789abcdef 4711\\nno end of line'; printf 'oh dear' >&2\n";
const STARTUP_FILES: [(&str, &str); 3] =
    [("bash", ".bashrc"), ("zsh", ".zshenv"), ("fish", ".config/fish/config.fish")];

/// Starts a server for an account with this login shell.
fn serve(lab: &Lab, runtime: &Runtime, shell: &str) -> RefCell<Client> {
    lab.configure(&format!("Host there\n  HostName {}\n  User with-{shell}\n", lab.address("debian1")));
    let _entered = runtime.enter();
    let mut client = lab.serve(&["--host", "there"]);
    runtime.block_on(client.initialize("2025-06-18"));
    RefCell::new(client)
}

/// The words that each of the commands repeats, and its stderr.
fn repeated(runtime: &Runtime, client: &RefCell<Client>, commands: &[Vec<String>]) -> Value {
    let arguments = json!({"commands": commands});
    runtime.block_on(client.borrow_mut().envelope("parrot_repeat", arguments))
}

/// The expected answer: each word with a NUL behind it.
fn expected(commands: &[Vec<String>]) -> Value {
    let of = |words: &Vec<String>| -> String {
        hex::encode(words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect::<Vec<u8>>())
    };
    json!({"stdout": commands.iter().map(of).collect::<Vec<_>>(), "stderr": ""})
}

/// A word of characters with a meaning to some shell, of any other characters of Unicode, and of those that fish reserves.
fn word() -> impl Strategy<Value = String> {
    let special = "[ \t\n\r\\\\'\"$`!*?\\[\\]{}()<>|&;#~%^=:,@+a-]{0,12}";
    prop_oneof![
        4 => special,
        2 => "[^\0]{0,24}",
        1 => "-{1,2}[a-z=$ ]{0,8}",
        1 => "[\u{f600}-\u{f6ff}\u{fdd0}-\u{fdef}\u{1b}\u{7f}\u{80}\u{feff}\u{10ffff}]{1,6}",
        1 => Just(String::new()),
        1 => "(\\$[A-Z({]|`id`|\\$\\(id\\)|\\{a,b\\}|~root|%1|!!|\\\\n|%s){1,4}",
    ]
}

fn commands() -> impl Strategy<Value = Vec<Vec<String>>> {
    let words = proptest::collection::vec(word(), 1..40);
    proptest::collection::vec(words, 1..6)
}

#[test]
fn words_arrive_as_they_are_whatever_is_in_them() {
    let Some(lab) = Lab::with_parrot("words_arrive_as_they_are_whatever_is_in_them") else { return };
    let runtime = Runtime::new().expect("a runtime");
    for shell in SHELLS {
        let client = serve(&lab, &runtime, shell);
        let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let outcome = TestRunner::new_with_rng(config, rng).run(&commands(), |commands| {
            let envelope = repeated(&runtime, &client, &commands);
            prop_assert_eq!(&envelope["data"], &expected(&commands), "{}", envelope);
            Ok(())
        });
        match outcome {
            Ok(()) => {}
            Err(TestError::Fail(reason, least)) => panic!("with {shell}: {least:?}: {reason}"),
            Err(error) => panic!("with {shell}: {error}"),
        }
    }
}

#[test]
fn a_hundred_thousand_bytes_arrive_and_what_no_shell_takes_is_refused() {
    let Some(lab) = Lab::with_parrot("a_hundred_thousand_bytes_arrive_and_what_no_shell_takes_is_refused")
    else {
        return;
    };
    let runtime = Runtime::new().expect("a runtime");
    for shell in SHELLS {
        let client = serve(&lab, &runtime, shell);
        let many = vec![vec!["x y\n".repeat(LONGEST / 4); 25], vec!["'\\".repeat(LONGEST / 2); 8]];
        assert_eq!(repeated(&runtime, &client, &many)["data"], expected(&many), "{shell}");
        let refused = repeated(&runtime, &client, &[vec!["x".repeat(LONGEST); 40]]);
        assert_eq!(refused["error_code"], "COMMAND_TOO_LONG", "{shell}: {refused}");
    }
}

#[test]
fn words_pass_through_sudo_as_they_are() {
    let Some(lab) = Lab::with_parrot("words_pass_through_sudo_as_they_are") else { return };
    lab.configure(&format!("Host there\n  HostName {}\n  User admin\n", lab.address("debian1")));
    let words =
        ["a b", "-n", "--", "", "it's", "\\", "\n", "$HOME", "`id`", "*", "!", "\u{fdd0}é", "\u{1b}[2J"];
    let commands = [words.map(str::to_owned).to_vec()];
    let (envelope, _) = lab.call("there", "parrot_repeat", &json!({"commands": commands, "root": true}));
    assert_eq!(envelope["data"], expected(&commands), "{envelope}");
}

/// Start-up files that print, until this is dropped.
struct Noisy<'a>(&'a Lab);

impl<'a> Noisy<'a> {
    fn new(lab: &'a Lab) -> Self {
        for (shell, file) in STARTUP_FILES {
            let file = format!("/home/with-{shell}/{file}");
            let keep = format!("mkdir -p $(dirname {file}); test ! -e {file} || mv -n {file} {file}.lab");
            lab.host("debian1").run(&["sh", "-c", &keep]);
            lab.host("debian1").put(&file, NOISE.as_bytes());
        }
        Self(lab)
    }
}

impl Drop for Noisy<'_> {
    fn drop(&mut self) {
        for (shell, file) in STARTUP_FILES {
            let file = format!("/home/with-{shell}/{file}");
            let back = format!("rm -f {file}; test ! -e {file}.lab || mv {file}.lab {file}");
            self.0.host("debian1").holds(&back);
        }
    }
}

#[test]
fn what_a_shell_prints_when_it_starts_changes_nothing() {
    let Some(lab) = Lab::with_parrot("what_a_shell_prints_when_it_starts_changes_nothing") else { return };
    let _noisy = Noisy::new(&lab);
    let runtime = Runtime::new().expect("a runtime");
    for (shell, _) in STARTUP_FILES {
        let client = serve(&lab, &runtime, shell);
        let greeted = lab.ssh(&["there", "true"]);
        assert!(greeted.stdout.starts_with(b"hello\n"), "{shell}: {greeted:?}");
        let commands = [vec!["a b".to_owned(), "it's".to_owned()], vec!["c".to_owned()]];
        assert_eq!(repeated(&runtime, &client, &commands)["data"], expected(&commands), "{shell}");
        // The output breaks SFTP, and the program reads files without it.
        lab.reaches("there", "debian1");
        let session = runtime.block_on(client.borrow_mut().envelope("sysadmin_session_info", json!({})));
        assert_eq!(session["data"]["distro"]["hostname"], lab.host("debian1").name(), "{session}");
    }
}

#[test]
fn an_account_that_may_not_log_in_is_said_so() {
    let Some(lab) = Lab::with_parrot("an_account_that_may_not_log_in_is_said_so") else { return };
    lab.configure(&format!("Host there\n  HostName {}\n  User with-nologin\n", lab.address("debian1")));
    let (refused, _) = lab.call("there", "parrot_repeat", &json!({"commands": [["a"]]}));
    assert_eq!(refused["error_code"], "COMMANDS_REFUSED", "{refused}");
    let message = refused["message"].as_str().expect("a message");
    assert!(message.contains("runs no commands") && message.contains("not available"), "{refused}");
}
