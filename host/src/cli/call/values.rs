//! Writes JSON as text for a person: an object as a line for each member, a list of objects as a table.
//!
//! All of it may come from a target. Each text passes through `one_line` or `visible` here, whatever was done before.

use anstyle::Style;
use serde_json::{Map, Value};
use textwrap::core::display_width;

use crate::cli::screen::{HEADING, Screen, fold, severity_style};
use crate::cli::table::{Cell, Column, Table};
use host_text::visible::{one_line, visible};

/// The width of the names of members, where they have no longer one.
const MOST_NAME: usize = 24;
/// The width below which no column of a table is cut. The first one mostly names what the row is about.
const LEAST_COLUMN: usize = 8;
const LEAST_FIRST: usize = 24;
/// The blanks by which what belongs to a member stands further in.
const STEP: usize = 2;

/// The members whose value says how serious something is.
const SEVERITIES: [&str; 8] =
    ["severity", "risk", "risk_level", "status", "state", "result", "outcome", "verdict"];

/// Writes a value, each line `indent` columns from the left.
pub(super) fn write(text: &mut String, value: &Value, screen: Screen, indent: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => object(text, members, screen, indent),
        Value::Array(items) if !items.is_empty() => list(text, items, screen, indent),
        Value::String(said) => lines(text, said, screen, indent),
        other => lines(text, &simple(other).unwrap_or_default(), screen, indent),
    }
}

/// Writes an object: a line for each member, and below it what the member holds where that takes lines of its own.
pub(super) fn object(text: &mut String, members: &Map<String, Value>, screen: Screen, indent: usize) {
    let indent = indent.min(screen.columns() / 2);
    let names = members.iter().filter(|(_, value)| on_a_line(value).is_some());
    let widest = names.map(|(name, _)| display_width(&one_line(name))).max().unwrap_or_default();
    let width = widest.min(MOST_NAME).min(screen.columns() / 3);
    let space = " ".repeat(indent);
    for (name, value) in members {
        let shown = one_line(name);
        match on_a_line(value) {
            Some(said) => {
                let blanks = " ".repeat(width.saturating_sub(display_width(&shown)) + STEP);
                let before = format!("{space}{shown}{blanks}");
                let style = member_style(name, &said);
                if display_width(&before) + display_width(&said) <= screen.columns() {
                    text.push_str(&format!("{before}{}\n", screen.paint(style, &said)));
                } else {
                    let then = " ".repeat(indent + width + STEP);
                    fold(&format!("{before}{said}"), screen.columns(), &then)
                        .iter()
                        .for_each(|line| text.push_str(&format!("{line}\n")));
                }
            }
            None => {
                for line in fold(&format!("{space}{shown}"), screen.columns(), &space) {
                    text.push_str(&format!("{}\n", screen.paint(HEADING, &line)));
                }
                write(text, value, screen, indent + STEP);
            }
        }
    }
}

/// Writes a list: a table where it has objects that fit the screen, and otherwise its items one after the other.
pub(super) fn list(text: &mut String, items: &[Value], screen: Screen, indent: usize) {
    let objects: Option<Vec<&Map<String, Value>>> = items.iter().map(Value::as_object).collect();
    let table = objects.as_ref().map(|rows| table(rows));
    if let Some(table) = table.filter(|table| table.fits(screen.room().saturating_sub(indent))) {
        return text.push_str(&table.text(screen, indent));
    }
    for (number, item) in items.iter().enumerate() {
        if number > 0 && item.is_object() {
            text.push('\n');
        }
        write(text, item, screen, indent);
    }
}

/// The table of these objects. Members that no object has a value for have no column.
fn table(rows: &[&Map<String, Value>]) -> Table {
    let mut names: Vec<&String> = Vec::new();
    for (name, value) in rows.iter().flat_map(|row| row.iter()) {
        if !value.is_null() && !names.contains(&name) {
            names.push(name);
        }
    }
    let heads = names.iter().map(|name| one_line(&name.to_uppercase()));
    let least = |number| if number == 0 { LEAST_FIRST } else { LEAST_COLUMN };
    let mut table = Table::new(heads.enumerate().map(|(number, head)| Column::cut(head, least(number))));
    for row in rows {
        table.row(names.iter().map(|name| {
            let value = row.get(*name).unwrap_or(&Value::Null);
            let text = in_a_cell(value);
            let style = member_style(name, &text);
            Cell { text, style, is_number: value.is_number() || value.is_null() }
        }));
    }
    table
}

fn member_style(name: &str, said: &str) -> Style {
    if SEVERITIES.contains(&name) { severity_style(said) } else { Style::new() }
}

/// A value as a few words; `None` where it takes lines of its own.
fn on_a_line(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.trim_end_matches('\n').contains('\n') => None,
        Value::String(text) => Some(one_line(text.trim_end_matches('\n'))),
        Value::Array(items) if !items.is_empty() => {
            let words: Option<Vec<String>> = items.iter().map(simple).collect();
            words.map(|words| words.join(", "))
        }
        Value::Object(members) if !members.is_empty() => None,
        other => simple(other),
    }
}

/// A value that is neither a list nor an object.
fn simple(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("-".to_owned()),
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("no".to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) if text.is_empty() => Some("\"\"".to_owned()),
        Value::String(text) => Some(one_line(text)),
        Value::Array(items) if items.is_empty() => Some("none".to_owned()),
        Value::Object(members) if members.is_empty() => Some("none".to_owned()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// A value in a cell of a table, however much it holds.
fn in_a_cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Array(items) if !items.is_empty() => {
            items.iter().map(in_a_cell).collect::<Vec<_>>().join(", ")
        }
        Value::Object(members) if !members.is_empty() => {
            let pair = |(name, value): (&String, &Value)| format!("{} {}", one_line(name), in_a_cell(value));
            members.iter().map(pair).collect::<Vec<_>>().join("; ")
        }
        other => simple(other).unwrap_or_default(),
    }
}

/// Writes text of several lines, each of which is broken where it is longer than the screen.
fn lines(text: &mut String, said: &str, screen: Screen, indent: usize) {
    let space = " ".repeat(indent.min(screen.columns() / 2));
    // A tab would take the terminal further than its width says.
    for line in visible(said).replace('\t', "    ").lines() {
        for line in fold(&format!("{space}{line}"), screen.columns(), &format!("{space}    ")) {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(value: &Value, screen: Screen) -> String {
        let mut text = String::new();
        write(&mut text, value, screen, 0);
        text
    }

    #[test]
    fn an_object_has_a_line_for_each_member_and_a_table_for_a_list_of_objects() {
        let value = json!({
            "unit": "nginx.service", "enabled": true, "since": null, "ports": [80, 443], "roles": [],
            "limits": {"memory": 1024, "tasks": {}},
            "errors": [
                {"time": "12:00", "priority": 3, "message": "bind() failed"},
                {"time": "12:01", "priority": 11, "message": null, "pid": null},
            ],
            "text": "one\n  two\n",
        });
        assert_eq!(
            shown(&value, Screen::plain(80)),
            "unit     nginx.service\nenabled  yes\nsince    -\nports    80, 443\nroles    none\nlimits\n  \
             memory  1024\n  tasks   none\nerrors\n  TIME   PRIORITY  MESSAGE\n  12:00         3  bind() failed\n  \
             12:01        11\ntext\n  one\n    two\n"
        );
    }

    #[test]
    fn a_table_that_does_not_fit_becomes_a_list() {
        let row = |unit: &str| json!({"unit": unit, "description": "d".repeat(30), "state": "failed", "sub": "failed"});
        let value = json!([row("nginx.service"), row("cron.service")]);
        assert_eq!(
            shown(&value, Screen::plain(40)),
            "UNIT           DESCRIPT…  STATE   SUB\nnginx.service  dddddddd…  failed  failed\n\
             cron.service   dddddddd…  failed  failed\n"
        );
        let rest = format!(
            "description  {}\n          {}\n          {}\nstate     failed\nsub       failed\n",
            "d".repeat(11),
            "d".repeat(14),
            "d".repeat(5)
        );
        assert_eq!(
            shown(&value, Screen::plain(24)),
            format!("unit      nginx.service\n{rest}\nunit      cron.service\n{rest}")
        );
    }

    #[test]
    fn no_line_is_longer_than_the_screen_whatever_the_value_is() {
        let word = "日本".repeat(60);
        let long = json!({
            "a name that is longer than any that a tool has": word, "text": format!("{word}\n\t{word}"),
            "deep": {"er": {"and": {"deeper": {"still": {"a": {"b": {"c": word}}}}}}},
            "table": [{"name": word, "more": [{"x": [word]}]}],
            "mixed": [1, {"a": word}, [word, [word]]],
        });
        for width in [20, 40, 80, 132] {
            let shown = shown(&long, Screen::plain(width));
            let widest = shown.lines().max_by_key(|line| display_width(line)).unwrap();
            assert!(display_width(widest) <= width, "{width}: {widest:?}");
        }
    }

    #[test]
    fn nothing_that_a_terminal_acts_upon_is_shown() {
        let evil = "x\u{1b}[2J\u{9b}1A\r\u{202e}\u{200b}\u{7}";
        let value = json!({
            (evil): evil, "lines": format!("{evil}\n{evil}"), "list": [evil], "table": [{(evil): evil, "n": {(evil): [evil]}}],
        });
        let shown = shown(&value, Screen::plain(80));
        assert!(!shown.chars().any(|c| c != '\n' && host_text::characters::is_hidden(c)), "{shown:?}");
        assert!(shown.matches("\\u{1b}").count() >= 6, "{shown}");
    }

    #[test]
    fn only_what_says_how_serious_it_is_has_a_colour() {
        let value =
            json!({"severity": "critical", "name": "critical", "checks": [{"name": "a", "status": "ok"}]});
        let shown = shown(&value, Screen::colored(80));
        assert!(shown.contains("severity  \u{1b}[1m\u{1b}[31mcritical\u{1b}[0m\n"), "{shown:?}");
        assert!(
            shown.contains("name      critical\n") && shown.contains("a     \u{1b}[32mok\u{1b}[0m\n"),
            "{shown:?}"
        );
    }
}
