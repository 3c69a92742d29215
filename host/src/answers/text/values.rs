//! JSON values as text for reading: members a line each, lists of objects as aligned tables, and nothing of what is empty.

use std::borrow::Cow;

use serde_json::{Map, Value};

use host_text::table::Table;
use host_text::visible::one_line;

/// The number of characters that a list or an object may have to stand in the line of its name.
const SHORT: usize = 100;
/// The deeper values are indented by so many blanks.
const INDENT: usize = 2;
/// The text of an empty list, which says that something was looked for and isn't there.
const NONE: &str = "none";

/// Lines of text, indented.
#[derive(Default)]
pub(super) struct Lines {
    text: String,
    indent: usize,
    /// Stands before the next line in place of the last blanks of its indentation.
    mark: Option<&'static str>,
}

impl Lines {
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Writes a value without a name.
    pub(super) fn value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => self.members(members),
            Value::Array(items) => self.items(items),
            value => self.lines_of(&shown(value)),
        }
    }

    /// Writes a member of an object. Nothing is written of one that has no value.
    pub(super) fn member(&mut self, name: &str, value: &Value) {
        let name = name_of(name);
        match value {
            Value::Null => {}
            Value::String(text) if text.is_empty() => {}
            Value::Object(members) if members.values().all(is_nothing) => {}
            Value::Array(items) if items.is_empty() => self.line(&format!("{name}: {NONE}")),
            Value::String(text) if text.trim_end().contains('\n') => {
                self.line(&format!("{name}:"));
                self.deeper(|lines| text.trim_end().split('\n').for_each(|line| lines.line(line)));
            }
            Value::Array(_) | Value::Object(_) => match short(value) {
                Some(text) => self.line(&format!("{name}: {text}")),
                None => {
                    self.line(&format!("{name}:"));
                    self.deeper(|lines| lines.value(value));
                }
            },
            value => self.line(&format!("{name}: {}", shown(value).trim_end())),
        }
    }

    fn members(&mut self, members: &Map<String, Value>) {
        members.iter().for_each(|(name, value)| self.member(name, value));
    }

    /// Writes a list: a table where it has several objects, else an item after the other.
    fn items(&mut self, items: &[Value]) {
        if let [Value::Object(only)] = items {
            return self.members(only);
        }
        if let Some(mut table) = table(items) {
            let same = table.take_constants();
            if !same.is_empty() {
                let same: Vec<_> = same.iter().map(|(name, value)| format!("{name} {value}")).collect();
                self.line(&format!("all: {}", same.join(", ")));
            }
            table.move_longest_last();
            return table.lines().for_each(|line| self.line(&line));
        }
        for item in items {
            match item {
                Value::Object(_) => self.marked(item),
                Value::Array(_) => match inline(item) {
                    Some(text) => self.line(&text),
                    None => self.marked(item),
                },
                item => self.lines_of(&shown(item)),
            }
        }
    }

    /// Writes an item of a list on lines of its own, with a mark before the first one.
    fn marked(&mut self, item: &Value) {
        self.mark = Some("- ");
        self.deeper(|lines| lines.value(item));
        self.mark = None;
    }

    /// Writes a text. Its further lines are indented, so that none of them looks like a line of its own.
    fn lines_of(&mut self, text: &str) {
        let mut lines = text.trim_end().split('\n');
        if let Some(first) = lines.next() {
            self.line(first);
        }
        self.deeper(|deeper| lines.for_each(|line| deeper.line(line)));
    }

    fn deeper(&mut self, write: impl FnOnce(&mut Self)) {
        self.indent += INDENT;
        write(self);
        self.indent -= INDENT;
    }

    fn line(&mut self, line: &str) {
        let mark = self.mark.take().unwrap_or_default();
        if !line.is_empty() {
            self.text.extend(std::iter::repeat_n(' ', self.indent.saturating_sub(mark.len())));
            self.text.push_str(mark);
            self.text.push_str(line);
        }
        self.text.push('\n');
    }
}

/// Several objects as a table. Members that fewer than half of the objects have stand behind the last column with their
/// names. None where something else is in the list, or a text of several lines.
fn table(items: &[Value]) -> Option<Table> {
    let rows = items.iter().map(Value::as_object).collect::<Option<Vec<_>>>()?;
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for (name, value) in rows.iter().copied().flatten() {
        let is_there = usize::from(!is_nothing(value));
        match counts.iter_mut().find(|(known, _)| *known == name.as_str()) {
            Some((_, count)) => *count += is_there,
            None => counts.push((name.as_str(), is_there)),
        }
    }
    let (columns, seldom): (Vec<_>, Vec<_>) =
        counts.into_iter().partition(|(_, count)| 2 * *count >= rows.len());
    let columns: Vec<&str> = columns.into_iter().map(|(name, _)| name).collect();
    let seldom: Vec<&str> =
        seldom.into_iter().filter(|(_, count)| *count > 0).map(|(name, _)| name).collect();
    if columns.is_empty() {
        return None;
    }
    let behind = (!seldom.is_empty()).then_some("");
    let mut table = Table::new(columns.iter().copied().chain(behind));
    for row in rows {
        let mut cells = columns
            .iter()
            .map(|name| row.get(*name).map_or(Some(String::new()), inline))
            .collect::<Option<Vec<_>>>()?;
        if behind.is_some() {
            cells.push(pairs(seldom.iter().filter_map(|name| Some((*name, row.get(*name)?))))?);
        }
        table.row(cells);
    }
    Some(table)
}

/// Whether a value says nothing.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_nothing),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A list or an object that fits into the line of its name, unless it holds other objects. A list of words fits, however
/// long it is.
fn short(value: &Value) -> Option<String> {
    let (holds_objects, are_words) = match value {
        Value::Array(items) => (items.iter().any(Value::is_object), items.iter().all(is_word)),
        Value::Object(members) => (members.values().any(Value::is_object), false),
        _ => (false, false),
    };
    inline(value).filter(|text| !holds_objects && (are_words || text.chars().count() <= SHORT))
}

/// Whether a value is a single word or number.
fn is_word(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty() && !text.contains(parts),
        Value::Number(_) => true,
        _ => false,
    }
}

/// Whether a character parts the values of a line.
fn parts(character: char) -> bool {
    character.is_whitespace() || ",={}[]".contains(character)
}

/// The name of a member in one line. A machine may have given it, as the name of a file.
fn name_of(name: &str) -> Cow<'_, str> {
    match name.contains(['\n', '\t']) {
        true => Cow::Owned(one_line(name)),
        false => Cow::Borrowed(name),
    }
}

/// A value in one line. None where it holds a text of several lines.
fn inline(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.contains('\n') => None,
        Value::Array(items) => Some(items.iter().map(part).collect::<Option<Vec<_>>>()?.join(", ")),
        Value::Object(members) => pairs(members.iter().map(|(name, value)| (name.as_str(), value))),
        value => Some(shown(value)),
    }
}

/// Members in one line.
fn pairs<'a>(members: impl Iterator<Item = (&'a str, &'a Value)>) -> Option<String> {
    let said = members.filter(|(_, value)| !is_nothing(value));
    let pairs = said.map(|(name, value)| Some(format!("{}={}", name_of(name), part(value)?)));
    Some(pairs.collect::<Option<Vec<_>>>()?.join(" "))
}

/// A value as a part of a line, from which it can be told apart.
fn part(value: &Value) -> Option<String> {
    let text = inline(value)?;
    Some(match value {
        Value::Array(_) => format!("[{text}]"),
        Value::Object(_) => format!("{{{text}}}"),
        Value::String(_) if text.is_empty() || text.contains(parts) => format!("\"{text}\""),
        _ => text,
    })
}

/// A value that is neither a list nor an object.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
