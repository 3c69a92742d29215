//! Parses a cron expression.
//!
//! The dialect is that of `man 5 crontab` as Debian's cron (vixie cron 3.0) and cronie read it. Where a daemon differs
//! from its manual, as with ranges of names, the daemon's source decides. No published parser was suitable: `croner`
//! knows seconds, years, `L`, `W` and `#`, takes a day field for unrestricted only where it is exactly `*`, and reports
//! one error without a place.
//!
//! Debian's cron takes some expressions that can't mean what they say: it skips everything after a readable start, so
//! that `*5` is `*`, and lets ranges run backwards and match nothing. They are refused here, and the problem says what
//! Debian's cron does.

use strsim::levenshtein;

use crate::debian;
use crate::expression::{DAYS, Expression, Field, MONTHS, Unit, When};
use crate::field::{Word, column_of, field};
use crate::problem::{Problem, echo};
use crate::schedule::Schedule;

/// The longest expression in bytes: more than any expression that names every value of every field.
pub const MAX_LENGTH: usize = 1000;

/// The cron that is to accept an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Any cron: `~`, which only cronie has, is accepted.
    Any,
    /// Debian's cron: `~` is refused.
    Debian,
}

/// The nicknames, and the fields that they stand for.
const NICKNAMES: [(&str, &str); 8] = [
    ("@reboot", ""),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

const FIVE_FIELDS: &str =
    "five fields (minute, hour, day of month, month, day of week) or a nickname like @daily";

/// Parses an expression, or reports everything that is wrong with it.
///
/// Blanks around it and a newline at its end are ignored.
///
/// # Errors
///
/// All problems of all fields, at most ten of each field, in the order of their columns.
pub fn parse(text: &str) -> Result<Expression, Vec<Problem>> {
    parse_as(text, Dialect::Any)
}

/// [`parse`] for the cron of one dialect.
///
/// # Errors
///
/// The same problems as [`parse`].
pub fn parse_as(text: &str, dialect: Dialect) -> Result<Expression, Vec<Problem>> {
    if text.len() > MAX_LENGTH {
        return Err(vec![whole(
            text,
            1,
            format!("{} bytes is too long to be an expression", text.len()),
            format!("at most {MAX_LENGTH} bytes"),
        )]);
    }
    let body = text.trim_end_matches([' ', '\t', '\r', '\n']);
    if let Some(at) = body.find(['\n', '\r']) {
        let column = column_of(body, at);
        let message = "more than one line".to_owned();
        return Err(vec![whole(body, column, message, "the expression of one crontab line".to_owned())]);
    }
    let words = split(body);
    let Some(first) = words.first() else {
        return Err(vec![whole(body, 1, "the expression is empty".to_owned(), FIVE_FIELDS.to_owned())]);
    };
    if first.text.starts_with('@') {
        return nickname(&words);
    }

    // Six or seven words that all look like fields have seconds first, and perhaps a year last.
    let foreign = matches!(words.len(), 6 | 7) && words[5..].iter().all(|word| looks_like_a_field(word.text));
    let mut fields = Vec::new();
    let mut problems = Vec::new();
    for (unit, word) in Unit::ALL.into_iter().zip(&words[usize::from(foreign)..]) {
        match field(unit, *word, dialect) {
            Ok(field) => fields.push(field),
            Err(found) => problems.extend(found),
        }
    }
    match words.len() {
        _ if foreign => problems.push(with_seconds(&words)),
        0..5 => problems.push(too_few(body, &words, problems.is_empty())),
        5 => swapped(&words, &mut problems),
        _ => problems.push(with_command(&words, problems.is_empty())),
    }
    problems.sort_by_key(|problem| problem.column);
    if !foreign {
        debians_indulgence(&words, dialect, &mut problems);
    }
    match <[Field; 5]>::try_from(fields) {
        Ok(fields) if problems.is_empty() => {
            Ok(Expression { nickname: None, when: When::Times(Box::new(fields)) })
        }
        _ => Err(problems),
    }
}

fn split(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        if c != ' ' && c != '\t' {
            start.get_or_insert(at);
        } else if let Some(from) = start.take() {
            words.push(Word { text: &text[from..at], column: column_of(text, from) });
        }
    }
    words
}

fn whole(value: &str, column: usize, message: String, expected: String) -> Problem {
    Problem { field: None, column, value: echo(value), message, expected, suggestion: None }
}

fn join(words: &[Word<'_>]) -> String {
    words.iter().map(|word| word.text).collect::<Vec<_>>().join(" ")
}

fn nickname(words: &[Word<'_>]) -> Result<Expression, Vec<Problem>> {
    let word = words[0];
    let mut problems = Vec::new();
    let mut read = None;
    match NICKNAMES.into_iter().find(|(name, _)| *name == word.text) {
        Some((name, "")) => read = Some(Expression { nickname: Some(name), when: When::Boot }),
        Some((name, fields)) => {
            // The fields of the nicknames are valid: a test reads them all.
            read = parse(fields).ok().map(|expression| Expression { nickname: Some(name), ..expression });
        }
        None => {
            let expected = NICKNAMES.map(|(name, _)| name).join(", ");
            let mut problem = whole(
                word.text,
                word.column,
                format!("cron has no nickname `{}`", echo(word.text)),
                expected,
            );
            let lower = word.text.to_ascii_lowercase();
            let close = NICKNAMES.into_iter().map(|(name, _)| name);
            problem.suggestion = close.min_by_key(|name| levenshtein(name, &lower)).and_then(|name| {
                if name == lower {
                    problem.message =
                        format!("nicknames are written in lower case, not `{}`", echo(word.text));
                }
                (levenshtein(name, &lower) <= 2).then(|| name.to_owned())
            });
            problems.push(problem);
        }
    }
    if let Some(next) = words.get(1) {
        let message = format!("`{}` is not part of the expression", echo(&join(&words[1..])));
        let mut problem =
            whole(next.text, next.column, message, "the nickname alone, without a command".into());
        problem.suggestion = read.is_some().then(|| word.text.to_owned());
        problems.push(problem);
    }
    match read {
        Some(expression) if problems.is_empty() => Ok(expression),
        _ => Err(problems),
    }
}

fn too_few(body: &str, words: &[Word<'_>], rest_is_right: bool) -> Problem {
    let count = words.len();
    let message = format!("only {count} of five fields");
    let column = words.first().map_or(1, |word| word.column);
    let mut problem = whole(body.trim_start(), column, message, FIVE_FIELDS.to_owned());
    if rest_is_right {
        problem.suggestion = Some(join(words) + &" *".repeat(5 - count));
    }
    problem
}

fn with_seconds(words: &[Word<'_>]) -> Problem {
    let year = if words.len() == 7 { ", a year last" } else { "" };
    let message = format!(
        "{} fields are Quartz's or Spring's (seconds first{year}), cron has five and no seconds",
        words.len()
    );
    let mut problem = whole(&join(words), words[0].column, message, FIVE_FIELDS.to_owned());
    let without = join(&words[1..6]).replace('?', "*");
    problem.suggestion = parse(&without).is_ok().then_some(without);
    problem
}

fn with_command(words: &[Word<'_>], rest_is_right: bool) -> Problem {
    let sixth = words[5];
    let rest = echo(&join(&words[5..]));
    let message = format!("`{rest}`: the command, and its user, are not part of the expression");
    let mut problem = whole(sixth.text, sixth.column, message, "five fields".to_owned());
    problem.suggestion = rest_is_right.then(|| join(&words[..5]));
    problem
}

/// Whether a word looks like a field, as `*`, `2026-2030`, `MON#2` and `LW` do. `w` and `/bin/true` are commands.
fn looks_like_a_field(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let name = |part: &str| DAYS.contains(&part) || MONTHS.contains(&part);
    lower != "w"
        && !lower.starts_with('/')
        && lower.split(|c: char| c.is_ascii_digit() || "*?,-/#~".contains(c)).all(|part| {
            matches!(part, "" | "l" | "w" | "lw") || name(part) || part.strip_suffix('l').is_some_and(name)
        })
}

/// Adds to the problems what Debian's cron does with a line that it accepts all the same, for readers of an existing
/// crontab.
fn debians_indulgence(words: &[Word<'_>], dialect: Dialect, problems: &mut [Problem]) {
    // Debian's cron reads `A=B` as an assignment, and no command starts with a star.
    let is_line = words.len() >= 5
        && !words
            .iter()
            .any(|word| word.text.contains(['=', '"', '\'']) || word.text.contains(char::is_control))
        && words.get(5).is_none_or(|command| !command.text.starts_with('*'));
    if !is_line {
        return;
    }
    let read = Unit::ALL.into_iter().zip(words).map(|(unit, word)| debian::read(unit, word.text).taken());
    let Some(fields) = read.collect::<Option<Vec<_>>>() else { return };
    let Ok(fields) = <[Field; 5]>::try_from(fields) else { return };
    let never = !Schedule::new(&fields).is_possible();
    for (field, word) in fields.iter().zip(words) {
        // The problem says so already.
        if dialect == Dialect::Debian && word.text.contains('~') {
            continue;
        }
        let Some(problem) = problems.iter_mut().find(|problem| problem.field == Some(field.unit)) else {
            continue;
        };
        let and = match field.unit {
            _ if !field.values.is_empty() => format!("reads the field as {}", field.read_as()),
            _ if never => "never runs the job".to_owned(),
            // One of the two day fields is enough.
            Unit::DayOfWeek => "runs the job on the days of the month only".to_owned(),
            _ => "runs the job on the days of the week only".to_owned(),
        };
        problem.message += &format!("; Debian's crontab takes this without complaint, and its cron {and}");
    }
}

/// Reports a minute and an hour that seem to be swapped.
fn swapped(words: &[Word<'_>], problems: &mut [Problem]) {
    let number = |index: usize| words[index].text.parse::<u8>().ok();
    if let (Some(minute), Some(hour)) = (number(0), number(1))
        && minute <= 23
        && (25..=59).contains(&hour)
        && let Some(problem) = problems.iter_mut().find(|problem| problem.field == Some(Unit::Hour))
    {
        problem.message.push_str("; the minute comes first");
        problem.suggestion = Some(format!("{hour} {minute}"));
        problem.column = words[0].column;
        problem.value = echo(&join(&words[..2]));
    }
}
