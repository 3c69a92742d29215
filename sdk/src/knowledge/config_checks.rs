//! Runs of a service's own configuration checkers: the verdict, and the errors that a checker prints.

use serde::Serialize;

use super::{Validator, evidence_lines, expression, text_of};
use crate::text::of_line;
use crate::{Analysis, Output, Problem, Result, Severity};

/// The number of errors of one checker in an answer.
const MOST: usize = 20;

/// The answer of the tools that check a configuration.
#[derive(Debug, Serialize)]
pub struct Validated {
    /// The profile's id.
    pub profile: String,
    /// The action in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would: Option<&'static str>,
    /// The verdict. None where no checker could tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid: Option<bool>,
    /// The verdict of each checker.
    pub checks: Vec<Checked>,
}

/// The verdict of one checker.
#[derive(Debug, Serialize)]
pub struct Checked {
    /// The checker's command line.
    pub command: String,
    /// The verdict. None where the checker couldn't tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid: Option<bool>,
    /// The errors that it found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Mistake>,
    /// The reason why the checker couldn't tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// The extent of the check, and its limits.
    pub what: String,
}

/// An error in a configuration.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub struct Mistake {
    /// The file that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The number of the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The checker's message.
    pub message: String,
}

/// The answer from the verdicts of all checkers.
pub fn validated(profile: String, subject: &str, checks: Vec<Checked>) -> Analysis<Validated> {
    let valid = match checks.iter().any(|check| check.valid == Some(false)) {
        true => Some(false),
        false => checks.iter().any(|check| check.valid == Some(true)).then_some(true),
    };
    let first = checks.iter().flat_map(|check| &check.errors).next();
    let (summary, severity) = match valid {
        Some(true) => (format!("{subject} can be used"), Severity::Info),
        Some(false) => {
            let what = first.map(|first| format!(": {}", first.shown())).unwrap_or_default();
            (format!("{subject} is refused{what}"), Severity::High)
        }
        None => (format!("{subject}: whether it can be used is unknown"), Severity::Warning),
    };
    Analysis { data: Validated { profile, would: None, valid, checks }, summary, severity }
}

impl Mistake {
    /// The error in one line, with its place.
    pub fn shown(&self) -> String {
        let at = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: "),
            (Some(file), None) => format!("{file}: "),
            (None, Some(line)) => format!("line {line}: "),
            (None, None) => String::new(),
        };
        format!("{at}{}", self.message)
    }
}

/// The verdict of one checker. `wants_root` says whether missing rights may have kept it from what it reads.
pub fn checked(checker: &Validator, argv: &[String], wants_root: bool, answer: &Result<Output>) -> Checked {
    let mut checked = Checked {
        command: argv.join(" "),
        valid: None,
        errors: Vec::new(),
        unknown: None,
        what: checker.what.clone(),
    };
    let judged = answer
        .as_ref()
        .map_err(Problem::clone)
        .and_then(|output| Ok((output, checker.expect.is_met(output)?, mistakes(checker, output)?)));
    match judged {
        Ok((output, false, _)) if wants_root && evidence_lines::is_limited(argv, output) => {
            checked.unknown =
                Some(format!("it seems to need root's rights: {}", evidence_lines::summary(output)));
        }
        Ok((output, is_met, errors)) => {
            checked.valid = Some(is_met);
            checked.errors = errors;
            if !is_met && checked.errors.is_empty() {
                let message = evidence_lines::against(argv, &checker.expect, output);
                checked.errors.push(Mistake { file: None, line: None, message });
            }
        }
        Err(problem) => checked.unknown = Some(evidence_lines::why(&problem)),
    }
    checked
}

/// The errors that the profile's pattern finds in the output. They may include warnings.
fn mistakes(checker: &Validator, output: &Output) -> Result<Vec<Mistake>> {
    let Some(pattern) = &checker.error else { return Ok(Vec::new()) };
    let pattern = expression(pattern)?;
    let text = text_of(output);
    let mut mistakes: Vec<Mistake> = Vec::new();
    for found in pattern.captures_iter(&text) {
        let group = |name: &str| found.name(name).map(|group| group.as_str().trim());
        // Some checkers print the place in one line and the message in the next one.
        let behind = found.get(0).map_or("", |whole| &text[whole.end()..]);
        let next = || behind.lines().map(str::trim).find(|line| !line.is_empty());
        let message =
            group("message").filter(|message| !message.is_empty()).or_else(next).unwrap_or_default();
        let mistake = Mistake {
            file: group("file").map(str::to_owned),
            line: group("line").and_then(|line| line.parse().ok()),
            message: of_line(message),
        };
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
        if mistakes.len() == MOST {
            break;
        }
    }
    Ok(mistakes)
}
