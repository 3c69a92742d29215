//! Units and their drop-ins, as systemd reads them (systemd.syntax(7) and `config_parse` of its sources): what they run,
//! and what of root's they give away beside.

mod exec;
mod grave;
mod keys;
mod power;
mod specifiers;

use std::collections::HashMap;

use super::place::not_root;
use super::{Code, shown};

/// Of an assignment.
struct Entry {
    section: String,
    key: String,
    value: String,
    line: usize,
}

/// A unit file, in the order of its lines.
struct Unit {
    /// As its path says; of a drop-in, the unit that it is one of.
    name: String,
    is_drop_in: bool,
    entries: Vec<Entry>,
    /// Where in them a key of a section is assigned last.
    last: HashMap<String, HashMap<String, usize>>,
}

/// What a unit file has systemd do, with its drop-ins in the order in which systemd reads them.
pub fn read(path: &str, text: &str, drop_ins: &[&str]) -> Code {
    let mut code = Code::default();
    let mut unit = Unit::parse(path, text, &mut code);
    drop_ins.iter().for_each(|drop_in| unit.add(drop_in, &mut code));
    power::judge_name(&unit, &mut code);
    let mut environment = exec::Environment::of(&unit);
    for entry in &unit.entries {
        let at = format!("{}, line {}", entry.key, entry.line);
        // An empty one takes back what came before it, which is read all the same.
        if keys::judgement(&entry.key) == Some(&keys::Judgement::Command) && !entry.value.is_empty() {
            if unit.name.ends_with(".socket") {
                code.gives(format_args!("runs something that the start of the machine waits for, {at}"));
            }
            let before = code.lines.len();
            exec::read(&unit, entry, &mut environment, &at, &mut code);
            let directory = unit.directory(&entry.section);
            code.lines[before..].iter_mut().for_each(|line| line.directory.clone_from(&directory));
        }
        power::judge(&unit, entry, &at, &mut code);
    }
    code
}

impl Unit {
    fn parse(path: &str, text: &str, code: &mut Code) -> Self {
        let mut parts = path.rsplit('/');
        let file = parts.next().unwrap_or_default();
        let drop_in =
            parts.next().and_then(|parent| parent.strip_suffix(".d")).filter(|_| file.ends_with(".conf"));
        let name = drop_in.unwrap_or(file).to_owned();
        let mut unit =
            Self { name, is_drop_in: drop_in.is_some(), entries: Vec::new(), last: HashMap::new() };
        unit.add(text, code);
        unit
    }

    /// Adds what one more file says.
    fn add(&mut self, text: &str, code: &mut Code) {
        let mut section = String::new();
        if reads_differently(text) {
            code.cannot_read(
                "a comment that goes on in the next line, or that stands within a line that goes on",
            );
        }
        for (number, line) in logical_lines(text) {
            let content = line.trim_matches(BLANK);
            if content.is_empty() {
                continue;
            }
            if let Some(header) = content.strip_prefix('[') {
                section = header.strip_suffix(']').unwrap_or_default().to_owned();
                continue;
            }
            match content.split_once('=') {
                Some((key, value)) => {
                    let (key, value) = (key.trim_matches(BLANK), value.trim_matches(BLANK));
                    let of_section = self.last.entry(section.clone()).or_default();
                    of_section.insert(key.to_owned(), self.entries.len());
                    self.entries.push(Entry {
                        section: section.clone(),
                        key: key.to_owned(),
                        value: value.to_owned(),
                        line: number,
                    });
                }
                None => code.cannot_read(format!(
                    "a unit file with a line that is no assignment: `{}`, line {number}",
                    shown(content)
                )),
            }
        }
    }

    /// The last assignment of a key.
    fn last(&self, section: &str, key: &str) -> Option<&Entry> {
        self.last.get(section)?.get(key).and_then(|at| self.entries.get(*at))
    }

    /// What is assigned last, and isn't empty.
    fn value(&self, section: &str, key: &str) -> Option<&str> {
        self.last(section, key).map(|entry| entry.value.as_str()).filter(|value| !value.is_empty())
    }

    /// Whose rights the commands of a section have. Where a specifier says so, anybody's, root's among them.
    fn user(&self, section: &str) -> Option<String> {
        match (self.value(section, "User"), self.value(section, "DynamicUser")) {
            (Some(user), _) => not_root(user).filter(|user| !user.contains('%')),
            (None, dynamic) => dynamic.is_some_and(is_true).then(|| format!("{DYNAMIC}{}", self.prefix())),
        }
    }

    /// The name before its kind.
    fn stem(&self) -> Option<&str> {
        self.name.rsplit_once('.').map(|(stem, _)| stem)
    }

    /// The name before its instance and kind, which systemd gives a dynamic user.
    fn prefix(&self) -> &str {
        let stem = self.stem().unwrap_or(&self.name);
        stem.split_once('@').map_or(stem, |(prefix, _)| prefix)
    }

    /// Where its commands' relative paths begin.
    fn directory(&self, section: &str) -> Option<String> {
        let directory = self.value(section, "WorkingDirectory")?;
        Some(specifiers::expand(directory.trim_start_matches('-'), &self.name))
    }

    /// Whether its commands have an ordinary account's rights, and no program that they start has more. Of a drop-in, which
    /// shows only a part, that isn't said.
    fn is_confined(&self, section: &str) -> bool {
        self.user(section).is_some() && self.value(section, "NoNewPrivileges").is_some_and(is_true)
    }
}

pub use power::HANDS_OVER;

/// What stands before the name of a dynamic user: an account that is there while the unit runs, and that nobody else has. But
/// where there is an account or a group of that name already, systemd takes that one, systemd.exec(5).
pub const DYNAMIC: &str = "dynamic:";

/// What systemd strips.
const BLANK: [char; 4] = [' ', '\t', '\n', '\r'];

/// As `parse_boolean` reads it.
fn is_true(value: &str) -> bool {
    ["1", "yes", "y", "true", "t", "on"].iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// Whether systemd before version 240 reads other lines: it takes a comment's backslash for the sign that the next line
/// belongs to it, and a comment within a line that goes on for a part of that.
fn reads_differently(text: &str) -> bool {
    let mut goes_on = false;
    physical_lines(text).any(|line| {
        let is_comment = line.trim_start_matches(BLANK).starts_with(['#', ';']);
        let escapes = line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
        let differs = is_comment && (escapes || goes_on);
        goes_on = escapes;
        differs
    })
}

/// With the number of their first physical line. A line that ends in a backslash goes on in the next one, a blank in
/// its place; comments in between are left out, and a comment never goes on.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in (1..).zip(physical_lines(text)) {
        let line = line.trim_start_matches(BLANK);
        if line.starts_with(['#', ';']) {
            continue;
        }
        let escapes = line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
        let part = if escapes { &line[..line.len() - 1] } else { line };
        match found.last_mut() {
            Some((_, whole)) if goes_on => whole.push_str(part),
            _ => found.push((number, part.to_owned())),
        }
        if escapes && let Some((_, whole)) = found.last_mut() {
            whole.push(' ');
        }
        goes_on = escapes;
    }
    found
}

/// Without their ends. A carriage return is one as well, alone or beside a newline.
fn physical_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let (line, behind) = rest.split_at(at);
        let is_pair = behind.starts_with("\r\n") || behind.starts_with("\n\r");
        rest = behind.get(if is_pair { 2 } else { 1 }..).unwrap_or_default();
        Some(line)
    })
}

#[cfg(test)]
mod tests;
