//! A module for the tests: it runs a program of the test many times at once, and tells the output of each.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::{DurationCategory, Keep};

/// The bytes of an output that are told.
const TOLD: usize = 64;

#[derive(Deserialize, JsonSchema)]
struct Ask {
    questions: Vec<Question>,
}

#[derive(Deserialize, JsonSchema)]
struct Question {
    /// The kind of output.
    kind: String,
    /// A number by which the test finds the output.
    number: u32,
    /// The number of bytes on stdin. They have all values in turn.
    #[serde(default)]
    stdin: u32,
    /// Whether the end of the output is kept instead of its beginning.
    #[serde(default)]
    tail: bool,
    /// Whether the program may take 60 s instead of 10.
    #[serde(default)]
    patient: bool,
}

#[derive(Serialize)]
struct Answers {
    answers: Vec<Answer>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Said(Said),
    Not { error_code: String, message: String },
}

#[derive(Serialize)]
struct Said {
    exit_code: i32,
    stdout: Part,
    stderr: Part,
    truncated: bool,
    stdout_bytes: u64,
    stdout_lines: u64,
}

/// The kept part of a stream: its beginning, its end, and a sum over all of it.
#[derive(Serialize)]
struct Part {
    bytes: usize,
    first: Vec<u8>,
    last: Vec<u8>,
    sum: u64,
}

impl From<&[u8]> for Part {
    fn from(bytes: &[u8]) -> Self {
        let sum = |sum: u64, byte: &u8| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)) & 0xffff_ffff;
        Self {
            bytes: bytes.len(),
            first: bytes[..bytes.len().min(TOLD)].to_vec(),
            last: bytes[bytes.len().saturating_sub(TOLD)..].to_vec(),
            sum: bytes.iter().fold(0, sum),
        }
    }
}

impl From<Question> for Command {
    fn from(question: Question) -> Self {
        let mut command = Self::new("talking").arg(question.kind).arg(question.number.to_string());
        if question.stdin > 0 {
            command = command.stdin((0..question.stdin).map(|number| number as u8).collect::<Vec<_>>());
        }
        if question.tail {
            command.keep = Keep::Tail;
        }
        if question.patient { command.duration(DurationCategory::Normal) } else { command }
    }
}

fn ask(args: Ask, cx: &Context) -> Result<Single<Answers>> {
    let commands = args.questions.into_iter().map(Command::from).collect();
    let answer = |outcome: Result<Output>| match outcome {
        Ok(output) => Answer::Said(Said {
            exit_code: output.exit_code,
            stdout: Part::from(&output.stdout[..]),
            stderr: Part::from(&output.stderr[..]),
            truncated: output.truncated,
            stdout_bytes: output.stdout_bytes,
            stdout_lines: output.stdout_lines,
        }),
        Err(problem) => Answer::Not { error_code: problem.code, message: problem.message },
    };
    Ok(Single(Answers { answers: cx.run_all(commands).into_iter().map(answer).collect() }))
}

/// The module.
pub fn module() -> Module {
    const KINDS: &str = "talking (number|bytes|much|reads|leaving|hanging) <int>";
    Module::new("talking", env!("CARGO_PKG_VERSION"), "talking", "Says what the test wants it to")
        .command(CommandGrant::read(KINDS, "to hear it"))
        .command(CommandGrant::read(&format!("{KINDS} < stdin"), "to hear what comes of stdin"))
        .tool(Tool::new("talking_ask", "", ask).duration(DurationCategory::Normal))
}

linux_sysadmin_sdk::export!(module);
