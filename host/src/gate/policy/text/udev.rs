//! udev's rules: `RUN`, `PROGRAM` and `IMPORT{program}` are run as root for each device that they match.

use super::words::joined;
use super::{Code, shown};

/// Where udev looks for a program that is no path.
const PROGRAMS: &str = "/usr/lib/udev/";

/// What udev runs.
pub fn read(text: &str) -> Code {
    let mut code = Code::default();
    for (number, line) in joined(text) {
        let line = line.trim_matches(SPACE);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut rest = line;
        loop {
            match next(&mut rest) {
                Ok(Some(pair)) => judge(&pair, number, &mut code),
                Ok(None) => break,
                Err(NoRule) => {
                    let why = "udev rules with a line that is none";
                    code.cannot_read(format!("{why}: `{}`, line {number}", shown(line)));
                    break;
                }
            }
        }
    }
    code
}

const SPACE: [char; 3] = [' ', '\t', '\r'];

/// One `KEY{attribute}op"value"`.
struct Pair<'a> {
    key: &'a str,
    attribute: &'a str,
    value: String,
}

struct NoRule;

fn next<'a>(rest: &mut &'a str) -> Result<Option<Pair<'a>>, NoRule> {
    let text = rest.trim_start_matches([' ', '\t', '\r', ',']);
    if text.is_empty() {
        return Ok(None);
    }
    let end = text.find(['=', '!', '+', '-', ':', '"']).ok_or(NoRule)?;
    // An attribute's name may have any of these within its braces.
    let end = match text[..end].find('{') {
        Some(open) => {
            let close = open + text[open..].find('}').ok_or(NoRule)? + 1;
            close + text[close..].find(['=', '!', '+', '-', ':', '"']).ok_or(NoRule)?
        }
        None => end,
    };
    let key = text[..end].trim_end_matches(SPACE);
    if key.is_empty() {
        return Err(NoRule);
    }
    let (name, attribute) = match key.split_once('{') {
        Some((name, attribute)) => (name, attribute.strip_suffix('}').ok_or(NoRule)?),
        None => (key, ""),
    };
    let operator = text[end..].find(['"', 'e', 'i']).ok_or(NoRule)?;
    if !text[end..end + operator].trim_matches(SPACE).chars().all(|c| "=!+-:".contains(c)) {
        return Err(NoRule);
    }
    // `e"…"` has C's escapes, `i"…"` compares without case.
    let mut value = &text[end + operator..];
    let mut has_escapes = false;
    while let Some(prefix) = value.chars().next().filter(|c| matches!(c, 'e' | 'i')) {
        has_escapes |= prefix == 'e';
        value = &value[1..];
    }
    let mut text = value.strip_prefix('"').ok_or(NoRule)?;
    let mut found = String::new();
    loop {
        let at = text.find(['"', '\\']).ok_or(NoRule)?;
        found.push_str(&text[..at]);
        let behind = &text[at + 1..];
        if text[at..].starts_with('"') {
            *rest = behind;
            // What C's escapes make of it isn't read: not a plain value.
            let value = if has_escapes && found.contains('\\') { format!("$e{found}") } else { found };
            return Ok(Some(Pair { key: name, attribute, value }));
        }
        match behind.strip_prefix('"') {
            Some(after) => {
                found.push('"');
                text = after;
            }
            None => {
                found.push('\\');
                text = behind;
            }
        }
    }
}

fn judge(pair: &Pair<'_>, number: usize, code: &mut Code) {
    let at = format!("{}, line {number}", pair.key);
    match (pair.key, pair.attribute) {
        ("RUN", "" | "program") | ("PROGRAM", _) | ("IMPORT", "program") => {
            let Some(mut argv) = words(&pair.value) else {
                return code.cannot_read(format!("a command with a quote that stays open, {at}"));
            };
            let Some(program) = argv.first_mut() else { return };
            if program.contains(['$', '%']) {
                code.gives(format_args!(
                    "runs `{}`, which a device or another rule names, {at}",
                    shown(program)
                ));
            } else if !program.contains('/') {
                program.insert_str(0, PROGRAMS);
            }
            // The signs that begin a substitution stand for themselves when doubled.
            let argv = argv.iter().map(|word| word.replace("$$", "$").replace("%%", "%")).collect();
            code.run(argv, at, None);
        }
        ("ENV", name) if name.starts_with("SYSTEMD_WANTS") || name == "SYSTEMD_USER_WANTS" => {
            for unit in pair.value.split([' ', '\t']) {
                if super::unit::is_grave_to_start(unit) {
                    code.gives(format_args!("pulls in {}, {at}", shown(unit)));
                }
            }
        }
        _ => {}
    }
}

/// Words as udev separates them: quotes around one keep it together, and nothing else is special.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = command.trim_start_matches(SPACE);
    while let Some(first) = rest.chars().next() {
        let mut word = String::new();
        let mut quote = None;
        let mut end = rest.len();
        for (at, character) in rest.char_indices() {
            match character {
                _ if quote == Some(character) => quote = None,
                '\'' | '"' if quote.is_none() => quote = Some(character),
                _ if quote.is_none() && SPACE.contains(&character) => {
                    end = at;
                    break;
                }
                other => word.push(other),
            }
        }
        if quote.is_some() {
            return None;
        }
        let is_quoted = matches!(first, '\'' | '"');
        if is_quoted || !word.is_empty() {
            words.push(word);
        }
        rest = rest[end..].trim_start_matches(SPACE);
    }
    Some(words)
}
