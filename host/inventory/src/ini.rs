//! Reads Ansible's INI inventories as `lib/ansible/plugins/inventory/ini.py` of ansible-core 2.19 does: `[group]` with
//! a host and its variables on each line, `[group:children]`, `[group:vars]`.

use std::collections::HashSet;
use std::path::Path;

use super::collected::{Collected, Location, UNGROUPED};
use super::variables::Value;
use super::{InventoryError, range, shlex};

/// The kind of a section's lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Hosts,
    Children,
    Vars,
}

/// Adds what the file says.
pub(super) fn read(file: &Path, bytes: &[u8], collected: &mut Collected) -> Result<(), InventoryError> {
    let at = |line| Location { file, line: Some(line) };
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let mut section = Section::Hosts;
    let mut group = UNGROUPED.to_owned();
    // These are statements about groups that may be defined only further down: their `:vars`, and the groups that they
    // are in.
    let mut set: Vec<(usize, String)> = Vec::new();
    let mut children: Vec<(usize, String, String)> = Vec::new();
    let mut declared: HashSet<String> = collected.names().0.map(str::to_owned).collect();
    for (index, bytes) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let location = at(index + 1);
        let Some(line) = text(bytes, &location)? else { continue };
        if let Some((name, kind)) = header(line, &location)? {
            (group, section) = (name.to_owned(), kind);
            match section {
                Section::Vars => set.push((index + 1, group.clone())),
                Section::Hosts | Section::Children => drop(declared.insert(group.clone())),
            }
            collected.group(&group, &location)?;
            continue;
        }
        match section {
            Section::Hosts => hosts(line, &group, &location, collected)?,
            Section::Vars => {
                let (name, value) = line.split_once('=').ok_or_else(|| {
                    location.error("expected a variable as key=value in a section of :vars")
                })?;
                collected.set(&group, name.trim(), || Value::literal(value), &location)?;
            }
            Section::Children => {
                let child = group_name(line).ok_or_else(|| {
                    location.error("expected the name of a group in a section of :children")
                })?;
                children.push((index + 1, group.clone(), child.to_owned()));
            }
        }
    }
    for (line, name) in set {
        if !declared.contains(&name) {
            let why = format!("[{name}:vars] is about a group that isn't there: expected [{name}], too");
            return Err(at(line).error(why));
        }
    }
    for (line, parent, child) in children {
        let location = at(line);
        if !declared.contains(&child) {
            let why =
                format!("[{parent}:children] names {child}, which is no group: expected [{child}], too");
            return Err(location.error(why));
        }
        let (parent, child) = (collected.group(&parent, &location)?, collected.group(&child, &location)?);
        collected.child(parent, child, &location)?;
    }
    Ok(())
}

/// Returns the line without blanks around it. Returns none where it holds nothing but a comment, which may be in any
/// encoding.
fn text<'a>(bytes: &'a [u8], location: &Location) -> Result<Option<&'a str>, InventoryError> {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() || bytes.starts_with(b"#") || bytes.starts_with(b";") {
        // Python ends a line also at other characters, and what follows them in a comment would be a host.
        return match String::from_utf8_lossy(bytes).contains(ends_a_line) {
            true => Err(location.error(ENDS_A_LINE)),
            false => Ok(None),
        };
    }
    let text = std::str::from_utf8(bytes).map_err(|_| location.error("expected UTF-8"))?.trim();
    match text.contains(ends_a_line) {
        true => Err(location.error(ENDS_A_LINE)),
        false => Ok((!text.is_empty()).then_some(text)),
    }
}

const ENDS_A_LINE: &str = "expected no control characters: Ansible takes this one for the end of a line";

fn ends_a_line(character: char) -> bool {
    matches!(character, '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Parses `[group]` or `[group:children]`, perhaps with a comment.
fn header<'a>(line: &'a str, location: &Location) -> Result<Option<(&'a str, Section)>, InventoryError> {
    const EXPECTED: &str = "expected a section as [group], [group:children] or [group:vars], without blanks";
    let Some((inside, behind)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return Ok(None);
    };
    let behind = behind.trim_start();
    if !behind.is_empty() && !behind.starts_with('#') {
        // Such a line is a host, as in `[::1]:22`.
        return match line.ends_with(']') {
            true => Err(location.error(EXPECTED)),
            false => Ok(None),
        };
    }
    let (name, kind) = inside.split_once(':').map_or((inside, "hosts"), |(name, kind)| (name, kind));
    let section = match kind {
        "hosts" => Section::Hosts,
        "children" => Section::Children,
        "vars" => Section::Vars,
        _ => return Err(location.error(EXPECTED)),
    };
    match !name.is_empty() && !name.contains(char::is_whitespace) {
        true => Ok(Some((name, section))),
        false => Err(location.error(EXPECTED)),
    }
}

fn group_name(line: &str) -> Option<&str> {
    let end = line.find(|c: char| c.is_whitespace()).unwrap_or(line.len());
    let (name, behind) = line.split_at(end);
    let is_name = !name.is_empty() && !name.contains([':', ']']);
    let behind = behind.trim_start();
    (is_name && (behind.is_empty() || behind.starts_with('#'))).then_some(name)
}

/// Reads a host, or a range of hosts, and its variables.
fn hosts(
    line: &str,
    group: &str,
    location: &Location,
    collected: &mut Collected,
) -> Result<(), InventoryError> {
    let words = shlex::split(line).map_err(|why| location.error(why))?;
    let Some((pattern, settings)) = words.split_first().filter(|(pattern, _)| !pattern.is_empty()) else {
        return Err(location.error("expected the name of a host"));
    };
    if pattern == "---" {
        return Err(
            location.error("expected a host; --- begins YAML, which is in files that end in .yml or .yaml")
        );
    }
    let hosts = range::hosts(pattern).map_err(|why| location.error(why))?;
    let mut variables = Vec::new();
    for setting in settings {
        // The setting is never shown, because it may be half of a password.
        let set = setting.split_once('=').ok_or_else(|| {
            location
                .error("expected nothing but variables as key=value behind a host; quote values with blanks")
        })?;
        variables.push(set);
    }
    let id = collected.group(group, location)?;
    for name in &hosts.names {
        collected.host(name, id, hosts.port, location)?;
        for (variable, value) in &variables {
            collected.set(name, variable, || Value::literal(value), location)?;
        }
    }
    Ok(())
}
