//! The question shows for random plans exactly, byte by byte, what runs and what is there afterwards.

use std::fs;
use std::process::Command;

use linux_sysadmin_tests::{Plan, Sandbox, Step, Way};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const APPLY: &str = "planner_apply";
const PLANS: usize = 200;

/// A step, with the name of the file that it touches.
#[derive(Clone, Debug)]
enum Does {
    Touch { undone: bool },
    Tee { reads: String, undone: bool },
    Write { before: Option<String>, contents: String, mode: Option<u32> },
    Remove { before: String },
    MakeDirectory { mode: u32 },
}

/// A file name with characters that a shell, a terminal or a careless parser might read otherwise.
fn name() -> impl Strategy<Value = String> {
    let harmless = "[a-z0-9_.-]{1,12}";
    let awkward = r#"[ a-zA-Z'"\\$`*?\[\](){}<>|&;!#~=%+,:@^äöüßéñ日本語Ωж€😀-]{1,24}"#;
    prop_oneof![harmless, awkward]
}

/// Lines without secrets. Some have invisible characters, and the last one may lack its newline.
fn contents() -> impl Strategy<Value = String> {
    let line = r#"[ -~äö日😀\t]{0,60}"#;
    let awkward = "[\u{1}-\u{8}\u{b}-\u{1f}\u{7f}\u{9b}\u{ad}\u{200b}\u{202e}\u{feff}\u{e0041}a-f ]{0,12}";
    let lines = vec(prop_oneof![4 => line, 1 => awkward], 0..8);
    (lines, any::<bool>()).prop_map(|(lines, ends)| lines.join("\n") + if ends { "\n" } else { "" })
}

fn mode() -> impl Strategy<Value = u32> {
    proptest::sample::select(vec![0o600, 0o640, 0o644, 0o700, 0o755])
}

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        any::<bool>().prop_map(|undone| Does::Touch { undone }),
        (contents(), any::<bool>()).prop_map(|(reads, undone)| Does::Tee { reads, undone }),
        (proptest::option::of(contents()), contents(), proptest::option::of(mode()))
            .prop_map(|(before, contents, mode)| Does::Write { before, contents, mode }),
        contents().prop_map(|before| Does::Remove { before }),
        mode().prop_map(|mode| Does::MakeDirectory { mode }),
    ]
}

impl Does {
    fn step(&self, path: &str) -> Step {
        let undone = |step: Step, undone: bool| if undone { step.undo(&["rm", "--", path]) } else { step };
        match self {
            Self::Touch { undone: by } => undone(Step::run(&["touch", "--", path]), *by),
            Self::Tee { reads, undone: by } => {
                undone(Step::run(&["tee", "--", path]).with("stdin", reads.clone()), *by)
            }
            Self::Write { contents, mode, .. } => match mode {
                Some(mode) => Step::write(path, contents).with("mode", *mode),
                None => Step::write(path, contents),
            },
            Self::Remove { .. } => Step::remove(path),
            Self::MakeDirectory { mode } => Step::make_directory(path, *mode),
        }
    }

    /// The file's contents before.
    fn before(&self) -> Option<&str> {
        match self {
            Self::Write { before, .. } => before.as_deref(),
            Self::Remove { before } => Some(before),
            _ => None,
        }
    }

    /// The words of the step's command and of its undo.
    fn commands(&self, path: &str) -> (Option<[String; 3]>, Option<[String; 3]>) {
        let argv = |program: &str| [program, "--", path].map(str::to_owned);
        match self {
            Self::Touch { undone } => (Some(argv("touch")), undone.then(|| argv("rm"))),
            Self::Tee { undone, .. } => (Some(argv("tee")), undone.then(|| argv("rm"))),
            _ => (None, None),
        }
    }
}

/// A step as the question shows it.
#[derive(Debug, Default)]
struct Shown {
    title: String,
    /// The lines below the title that have no mark.
    notes: Vec<String>,
    diff: String,
}

/// The steps of a question.
fn steps(text: &str) -> Vec<Shown> {
    let mut steps: Vec<Shown> = Vec::new();
    let lines = text.lines().skip_while(|line| !line.starts_with("1. "));
    for line in lines.take_while(|line| !line.is_empty()) {
        let title = line.split_once(". ").filter(|_| line.starts_with(|c: char| c.is_ascii_digit()));
        match (title, steps.last_mut()) {
            (Some((_, title)), _) => steps.push(Shown { title: title.to_owned(), ..Shown::default() }),
            (None, Some(step)) => match line.strip_prefix("   | ") {
                Some(marked) => step.diff += &format!("{marked}\n"),
                None => step.notes.push(line.trim_start().to_owned()),
            },
            (None, None) => panic!("{text}"),
        }
    }
    steps
}

/// The words that a shell makes of a line.
fn words(line: &str) -> Vec<String> {
    let script = format!("printf '%s\\0' {line}");
    let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    said.trim_end_matches('\0').split('\0').map(str::to_owned).collect()
}

/// The text with invisible characters made visible.
fn visible(text: &str) -> String {
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{ad}' | '\u{200b}' | '\u{202e}' | '\u{feff}' | '\u{e0041}')
    };
    text.chars()
        .map(|c| if hidden(c) { format!("\\u{{{:x}}}", u32::from(c)) } else { c.to_string() })
        .collect()
}

/// The text that patch(1) would make of another by a unified diff.
fn patched(before: &str, diff: &str) -> String {
    if diff.is_empty() {
        return before.to_owned();
    }
    let mut old = before.split_inclusive('\n').collect::<Vec<_>>().into_iter();
    let (mut new, mut taken) = (String::new(), 0);
    for line in diff.lines().skip(2) {
        match line.split_at(1) {
            ("@", _) => {
                let from = line.split([' ', ',']).nth(1).expect("a range").trim_start_matches('-');
                let count = line.split(' ').nth(1).and_then(|range| range.split_once(',')).map(|(_, n)| n);
                // An empty range has the number of the line before it.
                let from = from.parse::<usize>().expect("a number") - usize::from(count != Some("0"));
                while taken < from {
                    new += old.next().expect("a line");
                    taken += 1;
                }
            }
            (" ", kept) => {
                assert_eq!(old.next().map(|line| line.trim_end_matches('\n')), Some(kept), "{diff}");
                taken += 1;
                new += &format!("{kept}\n");
            }
            ("-", removed) => {
                assert_eq!(old.next().map(|line| line.trim_end_matches('\n')), Some(removed), "{diff}");
                taken += 1;
            }
            ("+", added) => new += &format!("{added}\n"),
            ("\\", _) => {}
            _ => panic!("{line} in {diff}"),
        }
    }
    old.for_each(|line| new += line);
    // The diff says for each side whether the last line has a newline.
    let without = diff.lines().collect::<Vec<_>>();
    let unended = without.windows(2).any(|pair| pair[1].starts_with('\\') && !pair[0].starts_with('-'));
    if unended { new.trim_end_matches('\n').to_owned() } else { new }
}

fn sha256(contents: &str) -> String {
    hex::encode(Sha256::digest(contents))
}

#[tokio::test]
async fn what_was_shown_is_what_ran_and_what_is_there() {
    let Some(sandbox) = Sandbox::new("what_was_shown_is_what_ran_and_what_is_there") else { return };
    let mut client = sandbox.serve(Way::InputRequired).await;
    let mut runner = TestRunner::deterministic();
    for number in 0..PLANS {
        let plan = vec((name(), does()), 1..=6).new_tree(&mut runner).expect("a plan").current();
        let plan: Vec<(String, Does)> = plan
            .into_iter()
            .enumerate()
            .map(|(at, (name, does))| (format!("/srv/plan/{number}/{at}{name}"), does))
            .collect();
        fs::create_dir(sandbox.path(&format!("/srv/plan/{number}"))).expect("made");
        for (path, does) in &plan {
            if let Some(before) = does.before() {
                sandbox.write(path, before);
            }
        }
        let apply = Plan::of(plan.iter().map(|(path, does)| does.step(path))).with("risk", "high");
        let context = format!("plan {number}: {}", apply.json());

        let preview = client.envelope(APPLY, apply.dry_run()).await["preview"].clone();
        let asked = client.is_asked(Way::InputRequired, APPLY, apply.apply()).await;
        let envelope = client.answers(&asked, "accept").await;
        assert_eq!(envelope["status"], "success", "{context}: {envelope}");

        let begun = last(&sandbox, "change-begun");
        let call = last(&sandbox, "call");
        assert_eq!(begun["plan"], preview, "{context}");
        assert_eq!(call["change"], begun["id"], "{context}");
        assert!(asked.text().contains(begun["plan_sha256"].as_str().expect("a hash")), "{context}");

        let shown = steps(asked.text());
        assert_eq!(shown.len(), plan.len(), "{context}: {}", asked.text());
        let previewed = match preview.get("command") {
            Some(command) => {
                let mut step = json!({"run": command});
                for name in ["stdin", "stdin_sha256", "undo"] {
                    if let Some(value) = preview.get(name) {
                        step[name] = value.clone();
                    }
                }
                json!([step])
            }
            None => preview["steps"].clone(),
        };
        let ran: Vec<&str> = call["commands"]
            .as_array()
            .unwrap_or_else(|| panic!("{call}"))
            .iter()
            .map(|command| command["command"].as_str().expect("a line"))
            .collect();
        let mut lines = Vec::new();
        for (at, ((path, does), shown)) in plan.iter().zip(&shown).enumerate() {
            let context = format!("step {at} of {context}\n{}", asked.text());
            same_as_shown(&sandbox, path, does, shown, &context);
            let (argv, undo) = does.commands(path);
            if let Some(argv) = argv {
                let line = shown.title.strip_prefix("run ").unwrap_or_else(|| panic!("{context}"));
                assert_eq!(words(line), argv, "{context}");
                assert_eq!(previewed[at]["run"], line, "{context}");
                lines.push(line);
            }
            let undone: Vec<&str> =
                shown.notes.iter().filter_map(|note| note.strip_prefix("undo: ")).collect();
            assert_eq!(begun["undo"][at], json!(undone), "{context}");
            assert_eq!(undone.first().map(|line| words(line)), undo.map(Vec::from), "{context}");
        }
        assert_eq!(ran, lines, "{context}");
    }
    assert_eq!(client.close().await.0.code(), Some(0));
    assert_eq!(sandbox.events("change-begun").len(), PLANS);
    sandbox.audit_is_valid();
}

/// Asserts that the files afterwards are what the question said.
fn same_as_shown(sandbox: &Sandbox, path: &str, does: &Does, shown: &Shown, context: &str) {
    let there = fs::symlink_metadata(sandbox.path(path)).ok();
    let says = |note: &str| shown.notes.iter().any(|said| said == note);
    let title = |what: &str| assert_eq!(shown.title, format!("{what} {path}"), "{context}");
    let before = visible(does.before().unwrap_or_default());
    match does {
        Does::Touch { .. } => assert!(there.is_some_and(|file| file.len() == 0), "{context}"),
        Does::Tee { reads, .. } => {
            assert_eq!(sandbox.read(path).as_deref(), Some(reads.as_str()), "{context}");
            assert!(says(&format!("reading (SHA-256 {})", sha256(reads))), "{context}");
            assert_eq!(patched("", &shown.diff), visible(reads), "{context}");
        }
        Does::Write { contents, mode, .. } => {
            title("write");
            assert_eq!(sandbox.read(path).as_deref(), Some(contents.as_str()), "{context}");
            assert!(says(&format!("SHA-256 {}", sha256(contents))), "{context}");
            assert_eq!(patched(&before, &shown.diff), visible(contents), "{context}");
            if let Some(mode) = mode {
                assert!(says(&format!("mode {mode:04o}")), "{context}");
            }
        }
        Does::Remove { before: contents } => {
            title("remove");
            assert!(there.is_none(), "{context}");
            assert_eq!(patched(&before, &shown.diff), "", "{context}: {contents}");
        }
        Does::MakeDirectory { mode } => {
            title("make directory");
            assert!(
                there.is_some_and(|made| made.is_dir()) && says(&format!("mode {mode:04o}")),
                "{context}"
            );
        }
    }
}

fn last(sandbox: &Sandbox, event: &str) -> Value {
    sandbox.events(event).pop().unwrap_or_else(|| panic!("no {event}"))
}
