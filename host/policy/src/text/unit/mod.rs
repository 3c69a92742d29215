//! Reads units and their drop-ins as systemd does (systemd.syntax(7) and `config_parse` of its sources): the commands that
//! they run, and the settings that give power.

mod critical_units;
mod exec;
mod keys;
mod settings;
mod specifiers;
mod times;

use std::collections::{HashMap, HashSet};

use super::format::not_root;
use super::{Code, shown};

/// An assignment in a unit.
struct Entry {
    section: String,
    key: String,
    value: String,
    line: usize,
}

/// A unit file, in the order of its lines.
struct Unit {
    /// The unit's name by the path of its file; for a drop-in the name of its unit.
    name: String,
    is_drop_in: bool,
    entries: Vec<Entry>,
    /// The index of the last assignment by section and key.
    last: HashMap<String, HashMap<String, usize>>,
    /// The sections in which a command has more rights than its account.
    privileged: HashSet<String>,
}

/// Finds what systemd does by a unit file and its drop-ins, which are in the order in which systemd reads them.
pub fn read(path: &str, text: &str, drop_ins: &[&str]) -> Code {
    let mut code = Code::default();
    let mut unit = Unit::parse(path, text, &mut code);
    drop_ins.iter().for_each(|drop_in| unit.add(drop_in, &mut code));
    settings::judge_name(&unit, &mut code);
    let mut environment = exec::Environment::of(&unit);
    let mut stop_commands = 0;
    for entry in &unit.entries {
        let at = format!("{}, line {}", entry.key, entry.line);
        // An empty value resets the commands before it. Those are judged all the same.
        if keys::judgement(&entry.key) == Some(&keys::Judgement::Command) && !entry.value.is_empty() {
            if unit.name.ends_with(".socket") {
                code.add_power(format_args!("runs something that the start of the machine waits for, {at}"));
            }
            let before = code.lines.len();
            exec::read(&unit, entry, &mut environment, &at, &mut code);
            if ["ExecStop", "ExecStopPost"].contains(&entry.key.as_str()) {
                stop_commands += code.lines.len() - before;
            }
            let directory = unit.directory(&entry.section);
            code.lines[before..].iter_mut().for_each(|line| line.directory.clone_from(&directory));
        }
        settings::judge(&unit, entry, &at, &mut code);
    }
    code.schedule = times::schedule(&unit);
    if stop_commands > MAX_STOP_COMMANDS {
        code.add_power(format_args!(
            "has {stop_commands} commands at its end, for which the end of the machine may have to wait"
        ));
    }
    code
}

/// A place where a unit uses the name of its instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceUse {
    /// The account whose rights the place has; `None` for root.
    pub account: Option<String>,
    /// The form in which systemd passes on the name there.
    pub form: InstanceForm,
}

/// A form of an instance's name, see systemd.unit(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceForm {
    /// `%i`: the name as it is.
    Plain,
    /// `%I`: the name with each dash made a slash.
    Unescaped,
    /// `%f`: the same as an absolute path.
    Path,
}

/// The uses of the instance's name in a template and its drop-ins. Settings that are harmless with any value don't count.
pub fn instance_uses(path: &str, text: &str, drop_ins: &[&str]) -> Vec<InstanceUse> {
    let mut code = Code::default();
    let mut unit = Unit::parse(path, text, &mut code);
    drop_ins.iter().for_each(|drop_in| unit.add(drop_in, &mut code));
    let mut found = Vec::new();
    for entry in &unit.entries {
        use keys::Judgement::{Accounts, Command, Harmless, Variables};
        let account = match keys::judgement(&entry.key) {
            _ if entry.section.starts_with("X-") => continue,
            Some(Harmless) => continue,
            Some(Command | Variables | Accounts) => unit.settings_user(&entry.section),
            _ => None,
        };
        for form in specifiers::instance_forms(&entry.value) {
            let place = InstanceUse { account: account.clone(), form };
            if !found.contains(&place) {
                found.push(place);
            }
        }
    }
    found
}

impl Unit {
    fn parse(path: &str, text: &str, code: &mut Code) -> Self {
        let mut parts = path.rsplit('/');
        let file = parts.next().unwrap_or_default();
        let drop_in =
            parts.next().and_then(|parent| parent.strip_suffix(".d")).filter(|_| file.ends_with(".conf"));
        let name = drop_in.unwrap_or(file).to_owned();
        let mut unit = Self {
            name,
            is_drop_in: drop_in.is_some(),
            entries: Vec::new(),
            last: HashMap::new(),
            privileged: HashSet::new(),
        };
        unit.add(text, code);
        unit
    }

    /// Adds the assignments of another file.
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
                    let is_command = keys::judgement(key) == Some(&keys::Judgement::Command);
                    if is_command && exec::has_privileged_command(value) {
                        self.privileged.insert(section.clone());
                    }
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

    /// The last assignment of this key.
    fn last(&self, section: &str, key: &str) -> Option<&Entry> {
        self.last.get(section)?.get(key).and_then(|at| self.entries.get(*at))
    }

    /// The last value of this key, if it is not empty.
    fn value(&self, section: &str, key: &str) -> Option<&str> {
        self.last(section, key).map(|entry| entry.value.as_str()).filter(|value| !value.is_empty())
    }

    /// The account that the commands of a section run as; `None` for root. A specifier may stand for root.
    fn user(&self, section: &str) -> Option<String> {
        match (self.value(section, "User"), self.value(section, "DynamicUser")) {
            (Some(user), _) => not_root(user).filter(|user| !user.contains('%')),
            (None, dynamic) => {
                dynamic.is_some_and(is_true).then(|| format!("{DYNAMIC_USER_PREFIX}{}", self.prefix()))
            }
        }
    }

    /// The account whose rights decide what a section's settings give; `None` for root. systemd gives the settings to every
    /// command of the section, so one command with root's rights makes them root's.
    fn settings_user(&self, section: &str) -> Option<String> {
        self.user(section).filter(|_| !self.privileged.contains(section))
    }

    /// The unit's name without its suffix.
    fn stem(&self) -> Option<&str> {
        self.name.rsplit_once('.').map(|(stem, _)| stem)
    }

    /// The unit's name without instance and suffix. systemd gives a dynamic user this name.
    fn prefix(&self) -> &str {
        let stem = self.stem().unwrap_or(&self.name);
        stem.split_once('@').map_or(stem, |(prefix, _)| prefix)
    }

    /// The directory in which relative paths of the commands begin.
    fn directory(&self, section: &str) -> Option<String> {
        let directory = self.value(section, "WorkingDirectory")?;
        Some(specifiers::expand(directory.trim_start_matches('-'), &self.name))
    }

    /// Whether the commands have an ordinary account's rights, and can get no others. A drop-in alone doesn't tell that.
    fn is_confined(&self, section: &str) -> bool {
        self.settings_user(section).is_some() && self.value(section, "NoNewPrivileges").is_some_and(is_true)
    }
}

/// The number of commands at a unit's end, each of which may take as long as the end of the unit may take.
const MAX_STOP_COMMANDS: usize = 5;

pub use settings::{BEFORE_TRIGGERS, DELAY, HAND_OVER, TRIGGER};

/// The prefix before the name of a dynamic user. systemd makes that account while the unit runs, but uses an existing account
/// or group of the same name, see systemd.exec(5).
pub const DYNAMIC_USER_PREFIX: &str = "dynamic:";

/// The characters that systemd strips.
const BLANK: [char; 4] = [' ', '\t', '\n', '\r'];

/// Whether `parse_boolean` of systemd reads the value as true.
fn is_true(value: &str) -> bool {
    ["1", "yes", "y", "true", "t", "on"].iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// Whether systemd before version 240 reads other lines. It continues a comment that ends in a backslash, and takes a comment
/// within a continued line for a part of it.
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

/// The lines with the numbers of their first physical lines. A line that ends in a backslash is joined with the next one by a
/// blank. Comments in between are left out, and a comment is never continued.
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

/// The lines without their ends. A carriage return ends a line as well, alone or beside a newline.
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
