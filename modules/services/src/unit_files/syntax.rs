//! The text of a unit file: makes it from settings, or changes some of its settings and keeps every other byte.
//!
//! The syntax is that of systemd.syntax(7), as systemd's parser reads it. A line that ends in a backslash continues in the
//! next one, and comments in between are left out. A comment never continues. A section may occur several times. A lone
//! carriage return ends a line.

use linux_sysadmin_sdk::prelude::*;

use crate::systemd::unit::state;

/// The new values of one key of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) section: &'static str,
    pub(crate) key: &'static str,
    /// The values, each in an assignment of its own and checked to be one line. Without values, the key is removed.
    pub(crate) values: Vec<String>,
}

impl Setting {
    pub(crate) fn new(section: &'static str, key: &'static str, values: Vec<String>) -> Self {
        Self { section, key, values }
    }

    /// True for a setting whose empty assignment resets other keys or earlier values.
    fn is_list(&self) -> bool {
        self.section == "Timer" && self.key.starts_with("On")
    }
}

/// The text of a whole file, with its sections in the order of their first setting.
pub(crate) fn render(settings: &[Setting]) -> String {
    let settings: Vec<&Setting> = settings.iter().filter(|setting| !setting.values.is_empty()).collect();
    let mut sections: Vec<&str> = Vec::new();
    for setting in &settings {
        if !sections.contains(&setting.section) {
            sections.push(setting.section);
        }
    }
    let section = |name: &&str| {
        let of_it = settings.iter().filter(|setting| setting.section == *name);
        let lines =
            of_it.flat_map(|setting| setting.values.iter().map(|value| format!("{}={value}\n", setting.key)));
        format!("[{name}]\n{}", lines.collect::<String>())
    };
    sections.iter().map(section).collect::<Vec<_>>().join("\n")
}

/// The text with changed settings. The first assignment of a key is replaced, and its other assignments are removed. A new
/// key follows the last assignment of its section. An ambiguous change is an error.
pub(crate) fn edit(text: &str, settings: &[Setting]) -> Result<String> {
    let mut file = File::parse(text);
    for setting in settings {
        file.set(setting)?;
    }
    Ok(file.text())
}

/// The values of a key, in order. An empty one resets the ones before it.
pub(crate) fn values(text: &str, section: &str, key: &str) -> Vec<String> {
    let file = File::parse(text);
    file.lines.iter().filter(|line| line.is(section, key)).map(|line| line.value.clone()).collect()
}

/// One assignment of a unit file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The number of its first physical line, from 1 on.
    pub(crate) line: usize,
    pub(crate) section: String,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// The assignments of a text, in order. A line outside of all sections is none, because systemd ignores it.
pub(crate) fn assignments(text: &str) -> Vec<Assignment> {
    let mut number = 1;
    let numbered = File::parse(text).lines.into_iter().map(|line| {
        let first = number;
        number += physical_lines(&line.raw).count();
        (first, line)
    });
    let assigned = numbered.filter(|(_, line)| !line.key.is_empty() && !line.section.is_empty());
    assigned
        .map(|(first, line)| Assignment {
            line: first,
            section: line.section,
            key: line.key,
            value: line.value,
        })
        .collect()
}

/// The physical lines of a text with their numbers, without line ends. Unless `comments` is set, those that systemd passes
/// over are left out: comments and blank lines.
pub(crate) fn numbered(text: &str, comments: bool) -> impl Iterator<Item = (usize, &str)> {
    let lines = physical_lines(text).map(|raw| raw.strip_suffix(line_end(raw)).unwrap_or(raw));
    let tells = move |(_, line): &(usize, &str)| {
        let content = line.trim_start_matches('\u{feff}').trim_start_matches(BLANK);
        comments || !(content.is_empty() || content.starts_with(['#', ';']))
    };
    (1..).zip(lines).filter(tells)
}

/// The commands in a unit file that run with root's rights: all of them where the file names no other user, or else those
/// whose prefix says so.
pub(crate) fn commands_of_root(text: &str) -> Vec<String> {
    const COMMANDS: [&str; 8] = [
        "ExecStart",
        "ExecStartPre",
        "ExecStartPost",
        "ExecCondition",
        "ExecReload",
        "ExecStop",
        "ExecStopPre",
        "ExecStopPost",
    ];
    let file = File::parse(text);
    let last = |section: &str, key: &str| {
        let found = file.lines.iter().rfind(|line| line.is(section, key));
        found.map(|line| line.value.as_str()).unwrap_or_default()
    };
    let is_roots = |section: &str| {
        matches!(last(section, "User"), "" | "root" | "0")
            && !["yes", "true", "on", "1", "y", "t"].contains(&last(section, "DynamicUser"))
    };
    let is_privileged = |value: &str| {
        let mut prefix = value.chars().take_while(|character| "@-:+!|".contains(*character));
        prefix.any(|character| "+!".contains(character))
    };
    let is_command = |line: &&Line| COMMANDS.contains(&line.key.as_str()) && !line.value.is_empty();
    let found = file.lines.iter().filter(is_command);
    found
        .filter(|line| is_roots(&line.section) || is_privileged(&line.value))
        .map(|line| line.value.clone())
        .collect()
}

/// A logical line, which may consist of several physical lines.
#[derive(Debug)]
struct Line {
    /// The physical lines with their line ends.
    raw: String,
    /// The comments between the physical lines, with their line ends.
    comments: String,
    section: String,
    /// The key of an assignment. Empty for other lines.
    key: String,
    value: String,
    /// True for the header of a section.
    is_header: bool,
}

impl Line {
    fn is(&self, section: &str, key: &str) -> bool {
        self.key == key && self.section == section
    }

    fn line_end(&self) -> &str {
        line_end(&self.raw)
    }
}

struct File {
    lines: Vec<Line>,
    line_end: String,
}

impl File {
    fn parse(text: &str) -> Self {
        let mut lines = Vec::new();
        let mut section = String::new();
        let mut open: Option<(String, String, String)> = None;
        for raw in physical_lines(text) {
            let content = raw[..raw.len() - line_end(raw).len()].trim_start_matches('\u{feff}');
            let is_comment = content.trim_start_matches(BLANK).starts_with(['#', ';']);
            let (mut whole, mut comments, mut logical) = match open.take() {
                Some((whole, comments, logical)) if is_comment => {
                    open = Some((whole + raw, comments + raw, logical));
                    continue;
                }
                Some(parts) => parts,
                None if is_comment => {
                    lines.push(Line::other(raw.to_owned(), &section));
                    continue;
                }
                None => Default::default(),
            };
            whole.push_str(raw);
            if ends_in_escape(content) {
                logical.push_str(&content[..content.len() - 1]);
                logical.push(' ');
                open = Some((whole, std::mem::take(&mut comments), logical));
                continue;
            }
            logical.push_str(content);
            lines.push(Line::of(whole, comments, &logical, &mut section));
        }
        if let Some((whole, comments, logical)) = open {
            lines.push(Line::of(whole, comments, &logical, &mut section));
        }
        let first = lines.iter().map(|line: &Line| physical_lines(&line.raw).next().map_or("", line_end));
        let line_end = first.into_iter().find(|end| !end.is_empty()).unwrap_or("\n").to_owned();
        Self { lines, line_end }
    }

    fn text(&self) -> String {
        self.lines.iter().map(|line| line.raw.as_str()).collect()
    }

    fn set(&mut self, setting: &Setting) -> Result<()> {
        let Setting { section, key, values } = setting;
        let found = self.lines.iter().filter(|line| line.is(section, key)).collect::<Vec<_>>();
        // An empty assignment resets earlier values, and in a timer also those of other keys.
        let takes_back = if setting.is_list() {
            self.lines
                .iter()
                .any(|line| line.section == *section && line.key.starts_with("On") && line.value.is_empty())
        } else {
            found.len() > 1 && found.iter().any(|line| line.value.is_empty())
        };
        if takes_back {
            let message = format!(
                "an empty assignment in [{section}] takes others back: what {key} is to be isn't plain"
            );
            return Err(by_hand(message));
        }
        if *key == "ExecStart" && found.len() > 1 {
            return Err(by_hand(format!("there are {} of {key}, and one is to be changed", found.len())));
        }
        let new: Vec<String> = values.iter().map(|value| format!("{key}={value}")).collect();
        if found.is_empty() {
            if !new.is_empty() {
                self.insert(section, &new);
            }
            return Ok(());
        }
        let mut new = Some(new);
        let mut lines = Vec::new();
        for mut line in std::mem::take(&mut self.lines) {
            if !line.is(section, key) {
                lines.push(line);
                continue;
            }
            let comments = std::mem::take(&mut line.comments);
            let raw = with_ends(&new.take().unwrap_or_default(), &self.line_end, line.line_end(), comments);
            // The new text is parsed, so that the next setting sees it as ordinary lines.
            let written = Self::parse(&raw).lines.into_iter();
            lines.extend(written.map(|written| Line { section: line.section.clone(), ..written }));
        }
        self.lines = lines;
        Ok(())
    }

    /// Inserts lines after the last assignment of the section, or else after its header. Without such a section, it adds one
    /// at the end of the file.
    fn insert(&mut self, section: &str, new: &[String]) {
        let position = self
            .lines
            .iter()
            .rposition(|line| line.section == section && (line.is_header || !line.key.is_empty()));
        let end = self.line_end.clone();
        let mut text = String::new();
        let at = match position {
            Some(position) => position + 1,
            None => {
                let last = self.lines.last().map(|line| line.raw.trim().is_empty());
                if last == Some(false) {
                    text.push_str(&end);
                }
                text.push_str(&format!("[{section}]{end}"));
                self.lines.len()
            }
        };
        for line in new {
            text.push_str(line);
            text.push_str(&end);
        }
        // Where the last line of the file had no line end, the new last line has none either.
        if let Some(before) = at.checked_sub(1).and_then(|before| self.lines.get_mut(before))
            && before.line_end().is_empty()
        {
            before.raw.push_str(&end);
            text.truncate(text.len() - end.len());
        }
        let parsed = Self::parse(&text).lines.into_iter();
        let parsed = parsed.map(|line| Line { section: section.to_owned(), ..line });
        self.lines.splice(at..at, parsed);
    }
}

impl Line {
    fn other(raw: String, section: &str) -> Self {
        Self {
            raw,
            comments: String::new(),
            section: section.to_owned(),
            key: String::new(),
            value: String::new(),
            is_header: false,
        }
    }

    fn of(raw: String, comments: String, logical: &str, section: &mut String) -> Self {
        let content = logical.trim_matches(BLANK);
        if let Some(name) = content.strip_prefix('[') {
            // systemd doesn't load a file where the bracket is missing. The lines after it belong to no section.
            *section = name.strip_suffix(']').unwrap_or_default().to_owned();
            return Self { comments, is_header: true, ..Self::other(raw, section) };
        }
        match content.split_once('=') {
            Some((key, value)) => Self {
                comments,
                key: key.trim_matches(BLANK).to_owned(),
                value: value.trim_matches(BLANK).to_owned(),
                ..Self::other(raw, section)
            },
            None => Self { comments, ..Self::other(raw, section) },
        }
    }
}

/// The characters that systemd strips.
const BLANK: [char; 2] = [' ', '\t'];

fn by_hand(message: String) -> Problem {
    state("UNIT_FILE_AMBIGUOUS", message).remedy("Give the whole file as raw_content")
}

/// The lines with their line ends, and after them the comments of the replaced line. The last line gets the line end of the
/// replaced one.
fn with_ends(lines: &[String], end: &str, last: &str, mut comments: String) -> String {
    if comments.is_empty() {
        return match lines {
            [] => String::new(),
            lines => lines.join(end) + last,
        };
    }
    let mut text: String = lines.iter().map(|line| format!("{line}{end}")).collect();
    if last.is_empty() {
        comments.truncate(comments.len() - line_end(&comments).len());
    }
    text.push_str(&comments);
    text
}

/// Whether the line continues, that is, ends in a backslash that isn't escaped by another one.
fn ends_in_escape(content: &str) -> bool {
    content.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

fn line_end(raw: &str) -> &str {
    ["\r\n", "\n", "\r"].into_iter().find(|end| raw.ends_with(end)).unwrap_or("")
}

/// The physical lines of a text, with their line ends.
fn physical_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = match rest.find(['\n', '\r']) {
            Some(at) if rest[at..].starts_with("\r\n") => at + 2,
            Some(at) => at + 1,
            None => rest.len(),
        };
        let (line, behind) = rest.split_at(end);
        rest = behind;
        Some(line)
    })
}

#[cfg(test)]
mod tests;
