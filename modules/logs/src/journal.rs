//! The journal, as `journalctl` prints it for programs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use linux_sysadmin_sdk::{Category, DurationCategory, Keep, OutputStream, Privilege, prelude::*};
use serde::de::{IgnoredAny, SeqAccess, Visitor};

use crate::budget::{Budget, Spent};
use crate::line::{Level, Line};
use crate::moment::Range;
use crate::pieces::Lines;

/// Of an entry, as JSON: a message of bytes takes four for each.
const LONGEST: usize = 1 << 20;

/// `--all`, or a field above 4 KiB would be null. Not `--quiet`: why nothing is there is a message, too.
const FIXED: &[&str] = &[
    "--no-pager",
    "--all",
    "--output=json",
    "--output-fields=MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_SYSTEMD_UNIT,UNIT,_COMM",
];

/// Values of other types begin with no dash, but boots are counted back from the last one.
const PATTERN: &str = concat!(
    "journalctl --no-pager --all --output=json ",
    "--output-fields=MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_SYSTEMD_UNIT,UNIT,_COMM ",
    "[--reverse] [--lines=<int>] [--since=@<int>] [--until=@<int>] [--priority=<int>] ",
    "[(--boot=-1|--boot=-2|--boot=-3|--boot=-4|--boot=-5|--boot=-6|--boot=-7|--boot=-8|--boot=-9|--boot=<text>)] ",
    "[--after-cursor=<text>] [(--case-sensitive=true|--case-sensitive=false) --grep=<text>] ",
    "[(--unit=<unit>|--unit=<unit>'@*.service')]... [--identifier=<text>]... [-- <text>...]"
);

/// The grant to read it. Everything in it is shown to root and to the groups adm and systemd-journal.
pub(crate) fn grant() -> CommandGrant {
    CommandGrant::read(PATTERN, "messages of the journal, by unit, identifier, priority, time and field")
        .as_root_if_available()
}

/// What of the journal is meant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    /// With their suffixes; a template stands for its instances.
    pub(crate) units: Vec<String>,
    pub(crate) identifiers: Vec<String>,
    pub(crate) priority: Option<Level>,
    /// 0 for this one, -1 for the one before, or an id.
    pub(crate) boot: Option<String>,
    pub(crate) range: Range,
    pub(crate) after_cursor: Option<String>,
    /// `FIELD=value`
    pub(crate) fields: Vec<String>,
    /// Only what holds one of these.
    pub(crate) words: Vec<String>,
    pub(crate) ignores_case: bool,
}

impl Query {
    /// Whether the newest come first. From a time on, journalctl 252 counts lines from there, and so gives the oldest; but
    /// not where it goes back from the end.
    fn is_backwards(&self, lines: Option<usize>) -> bool {
        lines.is_some() && self.range.since.is_some() && self.after_cursor.is_none()
    }

    /// The newest `lines` of them, or all; oldest first, but where it [goes back](Self::is_backwards).
    pub(crate) fn command(&self, lines: Option<usize>) -> Command {
        let mut command = Command::new("journalctl").args(FIXED.iter().copied());
        let is_backwards = self.is_backwards(lines);
        command.args.extend(is_backwards.then(|| "--reverse".to_owned()));
        let mut option = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                command.args.push(format!("--{name}={value}"));
            }
        };
        option("lines", lines.map(|lines| lines.to_string()));
        option("since", self.range.since.map(|since| format!("@{since}")));
        // What journalctl leaves out is what lies after the very second.
        option("until", self.range.until.map(|until| format!("@{}", until + 1)));
        option("priority", self.priority.map(|level| level.0.to_string()));
        option("boot", self.boot.clone());
        option("after-cursor", self.after_cursor.clone());
        if !self.words.is_empty() {
            option("case-sensitive", Some((!self.ignores_case).to_string()));
            option("grep", Some(alternatives(&self.words)));
        }
        for unit in &self.units {
            option("unit", Some(unit.replace("@.service", "@*.service")));
        }
        for identifier in &self.identifiers {
            option("identifier", Some(identifier.clone()));
        }
        if !self.fields.is_empty() {
            command = command.arg("--").args(self.fields.iter().cloned());
        }
        command.keep = if is_backwards { Keep::Head } else { Keep::Tail };
        command.privilege(Privilege::RootIfAvailable).duration(DurationCategory::Quick)
    }

    /// A caller's fields and boot, as journalctl takes them.
    pub(crate) fn check(&self) -> Result<()> {
        let is_odd = |name: &str, marks: &[u8]| {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || marks.contains(&byte);
            name.is_empty() || name.len() > 255 || name.starts_with('-') || !name.bytes().all(fits)
        };
        if let Some(unit) = self.units.iter().find(|unit| is_odd(unit, br":_.\@-*?[]")) {
            let message = format!(
                "{unit:?} is no name of a unit; expected one like `nginx`, `ssh.service` or `getty@*`"
            );
            return Err(Problem::validation("INVALID_UNIT", message));
        }
        if let Some(identifier) = self.identifiers.iter().find(|identifier| is_odd(identifier, b" :_./()@+-"))
        {
            let message =
                format!("{identifier:?} is no identifier of syslog; expected a program's name, as `sudo`");
            return Err(Problem::validation("INVALID_IDENTIFIER", message));
        }
        for field in &self.fields {
            let name = field.split_once('=').map(|(name, _)| name).unwrap_or_default();
            let is_name = !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
            if !is_name {
                let message = format!(
                    "{field:?} is no field of the journal; expected `_UID=1000`, `_TRANSPORT=kernel`"
                );
                return Err(Problem::validation("INVALID_FIELD", message));
            }
        }
        if let Some(boot) = &self.boot {
            let is_id = boot.len() == 32 && boot.bytes().all(|byte| byte.is_ascii_hexdigit());
            let is_count = matches!(boot.as_bytes(), [b'0'] | [b'-', b'1'..=b'9']);
            if !is_id && !is_count {
                let message = format!(
                    "{boot:?} is no boot; expected 0 (this one), -1 to -9 (before), or an id of 32 digits"
                );
                return Err(Problem::validation("INVALID_BOOT", message));
            }
        }
        Ok(())
    }
}

/// Any of these words, as an expression of PCRE's that needs no looking back.
pub(crate) fn alternatives(words: &[String]) -> String {
    words.iter().map(|word| format!("\\Q{word}\\E")).collect::<Vec<_>>().join("|")
}

/// The longest expression that is asked with; a hole of a grant takes 4096 bytes.
pub(crate) const LONGEST_EXPRESSION: usize = 3_500;

/// An entry, and where it is.
pub(crate) struct Entry {
    pub(crate) line: Line,
    pub(crate) cursor: String,
}

/// Makes lines of what `journalctl` prints.
#[derive(Default)]
pub(crate) struct Reader {
    names: HashMap<String, Rc<str>>,
}

impl Reader {
    /// None for what is no entry.
    pub(crate) fn entry(&mut self, text: &[u8]) -> Option<Entry> {
        let raw: Raw<'_> = serde_json::from_slice(text).ok()?;
        let at = raw.time.text()?.parse().ok()?;
        let unit = raw.unit.text().or(raw.systemd_unit.text()).map(|unit| self.name(&unit));
        let source = raw.identifier.text().or(raw.comm.text());
        let source = source.map(|name| self.name(&name));
        let source = source.or_else(|| unit.clone()).unwrap_or_else(|| self.name("journal"));
        let level = raw
            .priority
            .text()
            .and_then(|text| Some(Level(text.parse::<u8>().ok().filter(|level| *level < 8)?)));
        let message = raw.message.text().unwrap_or_default().into_owned();
        Some(Entry {
            line: Line { at: Some(at), source, unit, level, message },
            cursor: raw.cursor.text()?.into_owned(),
        })
    }

    fn name(&mut self, name: &str) -> Rc<str> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let shared: Rc<str> = name.strip_suffix(".service").unwrap_or(name).into();
        self.names.insert(name.to_owned(), shared.clone());
        shared
    }
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(rename = "__REALTIME_TIMESTAMP", borrow)]
    time: Field<'a>,
    #[serde(rename = "__CURSOR", default, borrow)]
    cursor: Field<'a>,
    #[serde(rename = "MESSAGE", default, borrow)]
    message: Field<'a>,
    #[serde(rename = "PRIORITY", default, borrow)]
    priority: Field<'a>,
    #[serde(rename = "SYSLOG_IDENTIFIER", default, borrow)]
    identifier: Field<'a>,
    #[serde(rename = "_SYSTEMD_UNIT", default, borrow)]
    systemd_unit: Field<'a>,
    #[serde(rename = "UNIT", default, borrow)]
    unit: Field<'a>,
    #[serde(rename = "_COMM", default, borrow)]
    comm: Field<'a>,
}

/// Text; a list of bytes where it isn't printable; a list of values where there is more than one, of which the first
/// counts; null where there is none.
#[derive(Default)]
struct Field<'a>(Option<Cow<'a, str>>);

impl<'a> Field<'a> {
    fn text(&self) -> Option<Cow<'_, str>> {
        self.0.as_deref().filter(|text| !text.is_empty()).map(Cow::Borrowed)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Field<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Field<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text, bytes, or a list of them")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Self::Value, E> {
                Ok(Field(Some(Cow::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Self::Value, E> {
                Ok(Field(Some(Cow::Owned(text.to_owned()))))
            }

            fn visit_unit<E>(self) -> std::result::Result<Self::Value, E> {
                Ok(Field(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut items: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut bytes = Vec::new();
                loop {
                    match items.next_element::<Item<'de>>()? {
                        Some(Item::Byte(byte)) => bytes.push(byte),
                        Some(Item::Value(first)) => {
                            while items.next_element::<IgnoredAny>()?.is_some() {}
                            return Ok(first);
                        }
                        None => {
                            let text = String::from_utf8(bytes).unwrap_or_else(|error| {
                                String::from_utf8_lossy(error.as_bytes()).into_owned()
                            });
                            return Ok(Field(Some(Cow::Owned(text))));
                        }
                    }
                }
            }
        }
        deserializer.deserialize_any(Any)
    }
}

enum Item<'a> {
    Byte(u8),
    Value(Field<'a>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Item<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Item<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a byte or a value")
            }

            fn visit_u64<E: serde::de::Error>(self, byte: u64) -> std::result::Result<Self::Value, E> {
                u8::try_from(byte).map(Item::Byte).map_err(E::custom)
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Self::Value, E> {
                Ok(Item::Value(Field(Some(Cow::Borrowed(text)))))
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Self::Value, E> {
                Ok(Item::Value(Field(Some(Cow::Owned(text.to_owned())))))
            }

            fn visit_unit<E>(self) -> std::result::Result<Self::Value, E> {
                Ok(Item::Value(Field(None)))
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut items: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = items.next_element::<u8>()? {
                    bytes.push(byte);
                }
                Ok(Item::Value(Field(Some(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())))))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// Entries as they were found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) lines: Vec<Line>,
    /// Of the last of them.
    pub(crate) cursor: Option<String>,
    /// Whether there are more that were not given.
    pub(crate) more: bool,
}

/// Why there is nothing of the journal to be had.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// There is none.
    NoJournal,
    /// There is one, and nobody may read it; or it says otherwise why not.
    Refused(String),
}

impl Absent {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::NoJournal => "there is no journal".to_owned(),
            Self::Refused(said) => said.clone(),
        }
    }
}

/// The newest entries, oldest first.
pub(crate) fn newest(cx: &Context, query: &Query, most: usize) -> Result<std::result::Result<Found, Absent>> {
    let output = match cx.run(query.command(Some(most + 1))) {
        Ok(output) => output,
        Err(problem) => return absent(problem).map(Err),
    };
    let mut reader = Reader::default();
    let entries = output.stdout.split(|byte| *byte == b'\n').filter_map(|line| reader.entry(line));
    let mut entries: Vec<_> = entries.collect();
    if query.is_backwards(Some(most)) {
        entries.reverse();
    }
    if entries.is_empty() {
        return nothing_of(cx, query, &output);
    }
    let cut = entries.len().saturating_sub(most);
    let more = cut > 0 || output.truncated;
    entries.drain(..cut);
    let cursor = entries.last().map(|entry| entry.cursor.clone());
    let lines = entries.into_iter().map(|entry| entry.line).collect();
    Ok(Ok(Found { lines, cursor, more }))
}

/// A journalctl that begins to print while something else is done; none, where it can't be asked.
pub(crate) struct Begun(Option<OutputStream>);

/// Has every entry printed, oldest first.
pub(crate) fn begin(cx: &Context, budget: &Budget<'_>, query: &Query) -> Result<Begun> {
    let command = query.command(None).duration(DurationCategory::Slow);
    match budget.waiting(|| cx.open(command)) {
        Ok(stream) => Ok(Begun(Some(stream))),
        Err(problem) => absent(problem).map(|_| Begun(None)),
    }
}

/// Every entry, oldest first, until the sink has enough or the call its budget; in which case it says so. A stream tells
/// nothing of errors: where nothing comes, [`silence`] has to be asked.
pub(crate) fn each(
    cx: &Context,
    budget: &Budget<'_>,
    query: &Query,
    sink: impl FnMut(Entry) -> bool,
) -> Result<Option<Spent>> {
    each_of(begin(cx, budget, query)?, budget, sink)
}

/// The same of what has begun.
pub(crate) fn each_of(
    begun: Begun,
    budget: &Budget<'_>,
    mut sink: impl FnMut(Entry) -> bool,
) -> Result<Option<Spent>> {
    let Some(mut stream) = begun.0 else { return Ok(None) };
    let (mut lines, mut reader) = (Lines::new(LONGEST), Reader::default());
    loop {
        if let Some(spent) = budget.spent() {
            return Ok(Some(spent));
        }
        let piece = budget.read(&mut stream)?;
        let mut each = |line: &[u8]| reader.entry(line).is_none_or(&mut sink);
        if piece.is_empty() {
            lines.end(&mut each);
            return Ok(None);
        }
        if !lines.piece(&piece, &mut each) {
            return Ok(None);
        }
    }
}

/// When the first entry of all was written.
pub(crate) fn first(cx: &Context, budget: &Budget<'_>) -> Result<Option<i64>> {
    let mut at = None;
    each(cx, budget, &Query::default(), |entry| {
        at = entry.line.at;
        false
    })?;
    Ok(at)
}

/// Why nothing was found.
pub(crate) struct Silence {
    /// `journalctl` may have been built without expressions: then it says nothing when it is asked for words.
    pub(crate) is_of_words: bool,
    /// There is nothing to be had at all.
    pub(crate) absent: Option<Absent>,
}

/// A time at which nothing is in any journal.
const NEVER: i64 = 1 << 32;

/// Why a query had no answer.
pub(crate) fn silence(cx: &Context, budget: &Budget<'_>, query: &Query) -> Result<Silence> {
    let all = Query { words: Vec::new(), ..query.clone() };
    let mut asked = vec![all.command(Some(1)), Query::default().command(Some(1))];
    if !query.words.is_empty() {
        asked.push(for_words());
    }
    let mut answers = budget.waiting(|| cx.run_all(asked)).into_iter();
    let (of_all, of_any, of_words) = (answers.next(), answers.next(), answers.next());
    let is_of_words = of_words.and_then(Result::ok).is_some_and(knows_no_words);
    let absent = match of_all {
        Some(Ok(output)) if output.stdout.contains(&b'{') => None,
        Some(Ok(output)) => nothing(&all, &output, || of_any.and_then(Result::ok).is_some_and(holds))?.err(),
        Some(Err(problem)) => Some(Absent::Refused(problem.message)),
        None => None,
    };
    Ok(Silence { is_of_words, absent })
}

/// Whether a query for words had no answer because it can't be asked, of a journal that has something.
pub(crate) fn is_of_words(cx: &Context, budget: &Budget<'_>) -> bool {
    budget.waiting(|| cx.run(for_words())).is_ok_and(knows_no_words)
}

/// What is answered by nothing, or by that it can't be asked.
fn for_words() -> Command {
    let range = Range { since: Some(NEVER), until: None };
    Query { range, words: vec!["x".to_owned()], ..Query::default() }.command(Some(1))
}

fn knows_no_words(output: Output) -> bool {
    output.error_text().contains("pattern matching")
}

fn holds(output: Output) -> bool {
    output.stdout.contains(&b'{')
}

/// The same of a query whose answer is known.
pub(crate) fn nothing_of(
    cx: &Context,
    query: &Query,
    output: &Output,
) -> Result<std::result::Result<Found, Absent>> {
    nothing(query, output, || cx.run(Query::default().command(Some(1))).is_ok_and(holds))
}

/// Nothing is meant, or there is no journal, or nobody may read it.
fn nothing(
    query: &Query,
    output: &Output,
    is_any: impl FnOnce() -> bool,
) -> Result<std::result::Result<Found, Absent>> {
    let said = output.error_text();
    let said = said.lines().find(|line| !line.starts_with("Hint:")).unwrap_or_default();
    if said.contains("cursor") {
        let message = format!("after_cursor is no cursor of this journal: {said}");
        return Err(Problem::validation("INVALID_CURSOR", message).remedy("Ask without it, or by since"));
    }
    if said.contains("boot") && query.boot.is_some() {
        return Err(Problem::not_found("BOOT_NOT_FOUND", said.to_owned()));
    }
    // Of a pattern of units, none was ever heard of.
    if said.contains("No data available") {
        return Ok(Ok(Found::default()));
    }
    if output.exit_code != 0 {
        return Ok(Err(Absent::Refused(said.to_owned())));
    }
    // Without one it says nothing at all.
    Ok(if is_any() { Ok(Found::default()) } else { Err(Absent::NoJournal) })
}

fn absent(problem: Problem) -> Result<Absent> {
    match problem.category {
        Category::NotFound => Ok(Absent::NoJournal),
        Category::Privilege => Ok(Absent::Refused(problem.message)),
        _ => Err(problem),
    }
}
