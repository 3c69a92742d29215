//! Ansible's INI inventories, as `lib/ansible/plugins/inventory/ini.py` of ansible-core 2.19 reads them: `[group]` with
//! a host and its variables on a line, `[group:children]`, `[group:vars]`.

use std::collections::HashSet;
use std::path::Path;

use super::collected::{Collected, Place, UNGROUPED};
use super::variables::Value;
use super::{InventoryError, range, words};

/// What the lines of a section are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Hosts,
    Children,
    Vars,
}

/// Adds what the file says.
pub(super) fn read(file: &Path, bytes: &[u8], collected: &mut Collected) -> Result<(), InventoryError> {
    let at = |line| Place { file, line: Some(line) };
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let mut section = Section::Hosts;
    let mut group = UNGROUPED.to_owned();
    // What is said of groups that may be there only further down: `:vars` of them, and which they are in.
    let mut set: Vec<(usize, String)> = Vec::new();
    let mut children: Vec<(usize, String, String)> = Vec::new();
    let mut declared: HashSet<String> = collected.names().0.map(str::to_owned).collect();
    for (index, bytes) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let place = at(index + 1);
        let Some(line) = text(bytes, &place)? else { continue };
        if let Some((name, kind)) = header(line, &place)? {
            (group, section) = (name.to_owned(), kind);
            match section {
                Section::Vars => set.push((index + 1, group.clone())),
                Section::Hosts | Section::Children => drop(declared.insert(group.clone())),
            }
            collected.group(&group, &place)?;
            continue;
        }
        match section {
            Section::Hosts => hosts(line, &group, &place, collected)?,
            Section::Vars => {
                let (name, value) = line
                    .split_once('=')
                    .ok_or_else(|| place.error("expected a variable as key=value in a section of :vars"))?;
                collected.set(&group, name.trim(), || Value::literal(value), &place)?;
            }
            Section::Children => {
                let child = group_name(line)
                    .ok_or_else(|| place.error("expected the name of a group in a section of :children"))?;
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
        let place = at(line);
        if !declared.contains(&child) {
            let why =
                format!("[{parent}:children] names {child}, which is no group: expected [{child}], too");
            return Err(place.error(why));
        }
        let (parent, child) = (collected.group(&parent, &place)?, collected.group(&child, &place)?);
        collected.child(parent, child, &place)?;
    }
    Ok(())
}

/// The line without blanks around it; none where there is nothing on it but a comment, which may be in any encoding.
fn text<'a>(bytes: &'a [u8], place: &Place) -> Result<Option<&'a str>, InventoryError> {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() || bytes.starts_with(b"#") || bytes.starts_with(b";") {
        // For Python more than a newline ends a line, and what follows in a comment would be a host.
        return match String::from_utf8_lossy(bytes).contains(ends_a_line) {
            true => Err(place.error(ENDS_A_LINE)),
            false => Ok(None),
        };
    }
    let text = std::str::from_utf8(bytes).map_err(|_| place.error("expected UTF-8"))?.trim();
    match text.contains(ends_a_line) {
        true => Err(place.error(ENDS_A_LINE)),
        false => Ok((!text.is_empty()).then_some(text)),
    }
}

const ENDS_A_LINE: &str = "expected no control characters: Ansible takes this one for the end of a line";

fn ends_a_line(character: char) -> bool {
    matches!(character, '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// `[group]` or `[group:children]`, and perhaps a comment.
fn header<'a>(line: &'a str, place: &Place) -> Result<Option<(&'a str, Section)>, InventoryError> {
    const EXPECTED: &str = "expected a section as [group], [group:children] or [group:vars], without blanks";
    let Some((inside, behind)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return Ok(None);
    };
    let behind = behind.trim_start();
    if !behind.is_empty() && !behind.starts_with('#') {
        // As `[::1]:22`, a host.
        return match line.ends_with(']') {
            true => Err(place.error(EXPECTED)),
            false => Ok(None),
        };
    }
    let (name, kind) = inside.split_once(':').map_or((inside, "hosts"), |(name, kind)| (name, kind));
    let section = match kind {
        "hosts" => Section::Hosts,
        "children" => Section::Children,
        "vars" => Section::Vars,
        _ => return Err(place.error(EXPECTED)),
    };
    match !name.is_empty() && !name.contains(char::is_whitespace) {
        true => Ok(Some((name, section))),
        false => Err(place.error(EXPECTED)),
    }
}

fn group_name(line: &str) -> Option<&str> {
    let end = line.find(|c: char| c.is_whitespace()).unwrap_or(line.len());
    let (name, behind) = line.split_at(end);
    let is_name = !name.is_empty() && !name.contains([':', ']']);
    let behind = behind.trim_start();
    (is_name && (behind.is_empty() || behind.starts_with('#'))).then_some(name)
}

/// A host, or a range of them, and what is set for them.
fn hosts(line: &str, group: &str, place: &Place, collected: &mut Collected) -> Result<(), InventoryError> {
    let words = words::split(line).map_err(|why| place.error(why))?;
    let Some((pattern, settings)) = words.split_first().filter(|(pattern, _)| !pattern.is_empty()) else {
        return Err(place.error("expected the name of a host"));
    };
    if pattern == "---" {
        return Err(
            place.error("expected a host; --- begins YAML, which is in files that end in .yml or .yaml")
        );
    }
    let hosts = range::hosts(pattern).map_err(|why| place.error(why))?;
    let mut variables = Vec::new();
    for setting in settings {
        // Never shown: it may be half of a password.
        let set = setting.split_once('=').ok_or_else(|| {
            place.error("expected nothing but variables as key=value behind a host; quote values with blanks")
        })?;
        variables.push(set);
    }
    let id = collected.group(group, place)?;
    for name in &hosts.names {
        collected.host(name, id, hosts.port, place)?;
        for (variable, value) in &variables {
            collected.set(name, variable, || Value::literal(value), place)?;
        }
    }
    Ok(())
}
