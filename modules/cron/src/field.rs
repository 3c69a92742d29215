//! Parses one of the five fields.

use strsim::levenshtein;

use crate::debian::{self, Reading};
use crate::expression::{DAYS, Element, Field, Unit};
use crate::parse::Dialect;
use crate::problem::{Problem, echo};

/// The most problems that are reported of a field: more bad values than this have one cause.
const MAX_PROBLEMS: usize = 10;

/// A word of the expression and the column it starts in.
#[derive(Clone, Copy)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    pub(crate) column: usize,
}

/// The column, from 1, of the character at byte `at`.
pub(crate) fn column_of(text: &str, at: usize) -> usize {
    text[..at].chars().count() + 1
}

/// Parses a field, or reports everything that is wrong with it.
pub(crate) fn field(unit: Unit, word: Word<'_>, dialect: Dialect) -> Result<Field, Vec<Problem>> {
    let mut elements = Vec::new();
    let mut problems = Vec::new();
    let mut column = word.column;
    let mut not_random = if dialect == Dialect::Debian { debians_random(unit, word.text) } else { None };
    for text in word.text.split(',') {
        let reader = Reader { unit, text, column };
        // Only the first random value of a field is reported.
        let read = match not_random.take_if(|_| text.contains('~')) {
            Some(message) => Err(reader.problem(text, 0, message)),
            None => reader.element(),
        };
        match read {
            Ok(element) => elements.push(element),
            Err(problem) if problems.len() < MAX_PROBLEMS => problems.push(*problem),
            Err(_) => {}
        }
        column += text.chars().count() + 1;
    }
    if problems.is_empty() { Ok(Field::new(unit, word.text, elements)) } else { Err(problems) }
}

/// The reason why Debian's cron doesn't draw the random values of a field.
fn debians_random(unit: Unit, text: &str) -> Option<String> {
    if !text.contains('~') {
        return None;
    }
    let what = match debian::read(unit, text) {
        Reading::Takes(field) => format!("Debian's cron reads the field as {}", field.read_as()),
        Reading::Refuses => format!("Debian's crontab refuses it ({})", debian::complaint(unit)),
        Reading::Unknown => return None,
    };
    Some(format!("{what}; random ranges (`~`) are cronie's"))
}

type Read<T> = Result<T, Box<Problem>>;

/// Parses one element of a list.
struct Reader<'a> {
    unit: Unit,
    text: &'a str,
    column: usize,
}

impl Reader<'_> {
    /// A problem with the part of the element that starts at byte `at`.
    fn problem(&self, part: &str, at: usize, message: impl Into<String>) -> Box<Problem> {
        Box::new(Problem {
            field: Some(self.unit),
            column: self.column + column_of(self.text, at) - 1,
            value: echo(part),
            message: message.into(),
            expected: self.unit.expected().to_owned(),
            suggestion: None,
        })
    }

    /// A problem with the whole element, and a suggestion.
    fn instead(&self, message: impl Into<String>, suggestion: impl Into<String>) -> Box<Problem> {
        let mut problem = self.problem(self.text, 0, message);
        problem.suggestion = Some(suggestion.into());
        problem
    }

    fn element(&self) -> Read<Element> {
        let text = self.text;
        let unit = self.unit;
        self.foreign()?;
        let (body, step) = match text.find('/') {
            Some(at) => (&text[..at], Some(at + 1)),
            None => (text, None),
        };
        if let Some(after) = body.strip_prefix('*') {
            if !after.is_empty() {
                let digits = after.bytes().all(|b| b.is_ascii_digit()) && step.is_none();
                let message = "only `/` and a step may follow a `*`";
                return Err(if digits {
                    self.instead(message, format!("*/{after}"))
                } else {
                    self.problem(text, 0, message)
                });
            }
            let step = step.map_or(Ok(1), |at| self.step(at))?;
            return Ok(Element::Range { low: unit.first(), high: unit.last(), step });
        }
        if body.is_empty() {
            return Err(self.instead("a step needs a range or `*` before it", format!("*{text}")));
        }
        if let Some(at) = body.find('~') {
            return self.random(body, at, step);
        }
        // A dash at the start would be a sign.
        let Some(dash) = body[1..].find('-').map(|at| at + 1) else {
            let value = self.value(body, 0)?;
            return match step {
                None => Ok(Element::Value(value)),
                Some(at) => {
                    let step = self.step(at)?;
                    let last = unit.last();
                    Err(self.instead(
                        "cron takes a step only after a range or `*`, not after one value",
                        if value == unit.first() {
                            format!("*/{step}")
                        } else {
                            format!("{value}-{last}/{step}")
                        },
                    ))
                }
            };
        };
        let (low, high) = (self.value(&body[..dash], 0)?, &body[dash + 1..]);
        if high.is_empty() {
            let problem = "the range has no end";
            return Err(self.instead(problem, format!("{body}{}{}", unit.last(), &text[body.len()..])));
        }
        let high = self.value(high, dash + 1)?;
        let step = step.map_or(Ok(1), |at| self.step(at))?;
        if low > high {
            return Err(self.backwards(low, high, step, body));
        }
        Ok(Element::Range { low, high, step })
    }

    /// Refuses syntax of other schedulers, and characters of word processors.
    fn foreign(&self) -> Read<()> {
        let text = self.text;
        if text.is_empty() {
            return Err(self.problem(text, 0, "a value is missing in the list"));
        }
        if let Some((at, c)) = text.char_indices().find(|(_, c)| !c.is_ascii_graphic()) {
            let look_alike = match c {
                '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' | '-' => Some('-'),
                '∗' | '＊' | '٭' | '×' | '✱' => Some('*'),
                '，' | '、' | '‚' => Some(','),
                '∕' | '⁄' | '／' => Some('/'),
                '０'..='９' => char::from_digit(c as u32 - '０' as u32, 10),
                _ => None,
            };
            let mut problem = self.problem(
                &c.to_string(),
                at,
                format!("the character U+{:04X} is not of cron's alphabet", u32::from(c)),
            );
            problem.suggestion = look_alike.map(String::from);
            return Err(problem);
        }
        let upper = text.to_ascii_uppercase();
        let before = upper.trim_end_matches(['L', 'W']);
        let is_day =
            |day: &str| day.bytes().all(|b| b.is_ascii_digit()) || DAYS.contains(&&*day.to_ascii_lowercase());
        if text.contains('?') {
            return Err(if text == "?" {
                self.instead("`?` is Quartz's, cron writes `*`", "*")
            } else {
                self.problem(text, 0, "`?` is Quartz's, cron doesn't have it")
            });
        }
        if text.contains('#') {
            let message = "`#` (the nth weekday of a month) is Quartz's, cron doesn't have it";
            return Err(self.problem(text, 0, message));
        }
        if before.len() < upper.len() && is_day(before) || upper.starts_with("L-") {
            let message = "`L` (last) and `W` (nearest weekday) are Quartz's, cron doesn't have them";
            return Err(self.problem(text, 0, message));
        }
        if upper == "H" || upper.starts_with("H/") || upper.starts_with("H(") {
            return Err(self.problem(text, 0, "`H` (a hashed value) is Jenkins', cron doesn't have it"));
        }
        if matches!(self.unit, Unit::Minute | Unit::Hour)
            && let Some((hour, minute)) = text.split_once(':')
            && let (Ok(hour @ 0..24), Ok(minute @ 0..60)) = (hour.parse::<u8>(), minute.parse::<u8>())
        {
            let message = "minute and hour are fields of their own, the minute first";
            return Err(self.instead(message, format!("{minute} {hour}")));
        }
        Ok(())
    }

    /// The step that starts at byte `at` and goes to the end of the element.
    fn step(&self, at: usize) -> Read<u32> {
        let text = &self.text[at..];
        let problem = |message: &str| {
            let mut problem = self.problem(text, at, message);
            problem.expected = "a step of 1 or more".to_owned();
            Err(problem)
        };
        if text.is_empty() {
            return problem("the step is missing after `/`");
        }
        if !text.bytes().all(|b| b.is_ascii_digit()) {
            return problem("a step is a number");
        }
        // cron reads the step as a C int.
        match text.parse::<i32>() {
            Ok(0) => problem("a step of 0 never gets on"),
            Ok(step) => Ok(step.unsigned_abs()),
            Err(_) => problem("the step is too large"),
        }
    }

    /// A number or a name that starts at byte `at`.
    fn value(&self, text: &str, at: usize) -> Read<u8> {
        let unit = self.unit;
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            let value = text.parse::<u8>().unwrap_or(u8::MAX);
            if (unit.first()..=unit.last()).contains(&value) {
                return Ok(value);
            }
            let mut problem = self.problem(text, at, format!("`{}` is out of range", echo(text)));
            problem.suggestion = match (unit, value) {
                (Unit::Minute, 60) | (Unit::Hour, 24) => Some("0".to_owned()),
                _ => None,
            };
            return Err(problem);
        }
        if text.starts_with(['-', '+']) {
            let message = format!("`{}`: a value has no sign, and a range starts with a value", echo(text));
            return Err(self.problem(text, at, message));
        }
        if !text.bytes().all(|b| b.is_ascii_alphabetic()) || text.is_empty() {
            let message = if unit.names().is_empty() {
                format!("`{}` is not a number", echo(text))
            } else {
                format!("`{}` is neither a number nor a name", echo(text))
            };
            return Err(self.problem(text, at, message));
        }
        let lower = text.to_ascii_lowercase();
        let index = |names: &[&str]| names.iter().position(|name| *name == lower);
        if let Some(index) = index(unit.names()) {
            return Ok(unit.first() + index as u8);
        }
        let other = Unit::ALL.into_iter().find(|other| index(other.names()).is_some());
        let message = match other {
            Some(other) => format!("`{}` belongs to the field {}", echo(text), other.name()),
            None if unit.names().is_empty() => format!("the field takes numbers only, not `{}`", echo(text)),
            None => format!("`{}` is not a name cron knows", echo(text)),
        };
        let mut problem = self.problem(text, at, message);
        if other.is_none() {
            problem.suggestion = closest_name(unit.names(), &lower);
        }
        Err(problem)
    }

    fn random(&self, body: &str, at: usize, step: Option<usize>) -> Read<Element> {
        let unit = self.unit;
        let (low, high) = (&body[..at], &body[at + 1..]);
        let low = if low.is_empty() { unit.first() } else { self.value(low, 0)? };
        let high = if high.is_empty() { unit.last() } else { self.value(high, at + 1)? };
        if step.is_some() {
            return Err(self.instead("a step after `~` is OpenBSD's, cronie doesn't have it", body));
        }
        if low > high {
            return Err(self.instead(format!("`{body}` runs backwards"), format!("{high}~{low}")));
        }
        Ok(Element::Random { low, high })
    }

    /// cron's ranges don't wrap around: cronie refuses them, Debian's cron takes them and matches nothing.
    fn backwards(&self, low: u8, high: u8, step: u32, body: &str) -> Box<Problem> {
        let unit = self.unit;
        let (first, last) = (unit.first(), unit.distinct_last());
        let range = |low: u8, high: u8| {
            if low == high { low.to_string() } else { format!("{low}-{high}") }
        };
        let stepped = |range: String| if step > 1 { format!("{range}/{step}") } else { range };
        let suggestion = if unit == Unit::DayOfWeek && high == 0 {
            stepped(range(low, 7))
        } else if unit == Unit::DayOfWeek && low == 7 {
            stepped(range(0, high))
        } else if step > 1 {
            let count = u32::from(last - first) + 1;
            let to = u32::from(high) + count;
            let values = (u32::from(low)..=to).step_by(step as usize);
            let values = values.map(|value| (value - u32::from(first)) % count + u32::from(first));
            values.map(|value| value.to_string()).collect::<Vec<_>>().join(",")
        } else {
            format!("{},{}", range(low, last), range(first, high))
        };
        self.instead(
            format!("the range `{}` runs backwards, and cron's ranges don't wrap around", echo(body)),
            suggestion,
        )
    }
}

/// A name that the text may mean: the name begins the text, as `mon` begins `monday`, or it differs in one character.
fn closest_name(names: &[&str], text: &str) -> Option<String> {
    let start = names.iter().find(|name| text.starts_with(**name));
    let near = || {
        names
            .iter()
            .filter(|name| text.len() <= 4 && levenshtein(name, text) <= 1)
            .min_by_key(|n| levenshtein(n, text))
    };
    start.or_else(near).map(|name| (*name).to_owned())
}
