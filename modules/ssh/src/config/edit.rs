//! Changes one host's settings in the text of a configuration: in its own block, or in a new one. Every other line keeps
//! its bytes.

use linux_sysadmin_sdk::{Category, prelude::*};

use super::Broken;
use super::line::{self, Directive, Line};
use crate::account::Account;

/// The indentation of settings where the block has no other.
const INDENTATION: &str = "    ";

/// The new settings of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostSettings {
    pub(crate) alias: String,
    /// Keywords in the spelling of ssh_config(5), each once, with their values.
    pub(crate) settings: Vec<(&'static str, String)>,
}

/// The changed text, and the place of the block in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edited {
    pub(crate) text: String,
    pub(crate) line: usize,
    pub(crate) is_new: bool,
}

/// The reason why a text isn't changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Broken(usize, &'static str),
    /// The block at this line applies to other hosts as well.
    Shared(usize, Vec<String>),
    /// The block has this keyword more than once.
    Several(usize, &'static str),
    /// The block has a ProxyCommand before, at this line.
    Command(usize),
}

impl Refusal {
    pub(crate) fn problem(self, path: &str, wish: &HostSettings, account: &Account) -> Problem {
        let (path, alias) = (account.short(path), &wish.alias);
        let state = |code: &str, message: String| Problem::new(code, Category::State, message);
        match self {
            Self::Broken(line, why) => Broken { file: path, line, why }.problem(account),
            Self::Shared(line, patterns) => {
                let message = format!(
                    "{alias} shares a block with others ({path}:{line}: Host {}): what is set there is theirs as well",
                    patterns.join(" ")
                );
                state("HOST_SHARED", message)
                    .remedy(format!(
                        "Give {alias} a block of its own by hand, in front of that one; then call again"
                    ))
                    .remedy("Or set up another alias with the same hostname")
            }
            Self::Several(line, keyword) => {
                let message = format!(
                    "the block of {alias} ({path}:{line}) has several lines {keyword}: expected one at most"
                );
                state("SETTING_NOT_CLEAR", message).remedy("Edit it by hand")
            }
            Self::Command(line) => {
                let message = format!(
                    "{path}:{line} sets a ProxyCommand for {alias}, so that ssh passes over ProxyJump: of the two it \
                     takes the first"
                );
                state("SETTING_COMES_FIRST", message).remedy(format!("Remove {path}:{line} by hand"))
            }
        }
    }
}

/// Changes the host's own block, or adds one.
pub(crate) fn edit(text: &str, wish: &HostSettings) -> std::result::Result<Edited, Refusal> {
    let mut lines = Vec::new();
    for line in line::lines(text) {
        lines.push((line, line.said().map_err(|why| Refusal::Broken(line.number, why))?));
    }
    let is_head =
        |said: &Directive<'_>| ["host", "match"].iter().any(|head| said.keyword.eq_ignore_ascii_case(head));
    let heads: Vec<usize> =
        (0..lines.len()).filter(|at| lines[*at].1.as_ref().is_some_and(is_head)).collect();
    let patterns = |at: &usize| -> Vec<String> {
        let said = lines[*at].1.as_ref().filter(|said| said.keyword.eq_ignore_ascii_case("host"));
        said.map(|said| said.words.iter().map(|word| word.text.clone()).collect()).unwrap_or_default()
    };
    let own = heads.iter().position(|at| patterns(at) == [wish.alias.as_str()]);
    if let Some(own) = own {
        let end = heads.get(own + 1).copied().unwrap_or(lines.len());
        return changed(&lines, heads[own]..end, wish);
    }
    if let Some(at) = heads.iter().find(|at| patterns(at).contains(&wish.alias)) {
        return Err(Refusal::Shared(at + 1, patterns(at)));
    }
    // Comments right above a block belong to it.
    let is_comment = |at: usize| lines[at].0.text.trim_start().starts_with('#');
    let mut before = heads.first().copied().unwrap_or(lines.len());
    while before > 0 && before < lines.len() && is_comment(before - 1) {
        before -= 1;
    }
    Ok(with_new(text, &lines, before, wish))
}

type Read<'a> = (Line<'a>, Option<Directive<'a>>);

/// Adds a block before the line with this index.
fn with_new(text: &str, lines: &[Read<'_>], before: usize, wish: &HostSettings) -> Edited {
    let end = line_end(lines);
    let mut new = String::new();
    let mut line = before + 1;
    let is_blank = |line: &Line<'_>| line.text.trim().is_empty();
    if let Some((last, _)) = before.checked_sub(1).and_then(|last| lines.get(last)) {
        if last.end.is_empty() {
            new.push_str(end);
        }
        if !is_blank(last) {
            new.push_str(end);
            line += 1;
        }
    }
    new.push_str(&format!("Host {}{end}", wish.alias));
    for (keyword, value) in &wish.settings {
        new.push_str(&format!("{INDENTATION}{keyword} {value}{end}"));
    }
    if lines.get(before).is_some_and(|(next, _)| !is_blank(next)) {
        new.push_str(end);
    }
    let at: usize = lines[..before].iter().map(|(line, _)| line.text.len() + line.end.len()).sum();
    Edited { text: format!("{}{new}{}", &text[..at], &text[at..]), line, is_new: true }
}

/// Changes the settings of the block in these lines.
fn changed(
    lines: &[Read<'_>],
    block: std::ops::Range<usize>,
    wish: &HostSettings,
) -> std::result::Result<Edited, Refusal> {
    let end = line_end(lines);
    let head = block.start;
    let body = head + 1..block.end;
    let mut texts: Vec<String> = lines.iter().map(|(line, _)| format!("{}{}", line.text, line.end)).collect();
    let setting = |at: usize, keyword: &str| {
        lines[at].1.as_ref().filter(|said| said.keyword.eq_ignore_ascii_case(keyword))
    };
    let mut new = Vec::new();
    for (keyword, value) in &wish.settings {
        let known: Vec<usize> = body.clone().filter(|at| setting(*at, keyword).is_some()).collect();
        let jump =
            (*keyword == "ProxyJump").then(|| body.clone().find(|at| setting(*at, "ProxyCommand").is_some()));
        if let Some(command) =
            jump.flatten().filter(|command| known.first().is_none_or(|known| command < known))
        {
            return Err(Refusal::Command(command + 1));
        }
        match known[..] {
            [] => new.push((*keyword, value)),
            // Every IdentityFile counts; of other settings the first one does.
            [_, _, ..] if *keyword == "IdentityFile" => return Err(Refusal::Several(head + 1, keyword)),
            [at, ..] => {
                let Some(said) = setting(at, keyword) else { continue };
                if !is_same(keyword, &said.words[0].text, value) || said.words.len() > 1 {
                    texts[at].replace_range(said.span.clone(), value);
                }
            }
        }
    }
    if !new.is_empty() {
        let last = block.clone().rev().find(|at| lines[*at].1.is_some()).unwrap_or(head);
        let sibling = body.clone().rev().find(|at| lines[*at].1.is_some());
        let indentation = sibling.map_or(INDENTATION, |at| lines[at].0.indentation());
        if lines[last].0.end.is_empty() {
            texts[last].push_str(end);
        }
        for (keyword, value) in new {
            texts[last].push_str(&format!("{indentation}{keyword} {value}{end}"));
        }
    }
    Ok(Edited { text: texts.concat(), line: head + 1, is_new: false })
}

/// The line end of the first line.
fn line_end<'a>(lines: &[Read<'a>]) -> &'a str {
    match lines.first() {
        Some((first, _)) if first.end == "\r\n" => "\r\n",
        _ => "\n",
    }
}

/// Whether ssh reads both values alike.
pub(crate) fn is_same(keyword: &str, there: &str, wanted: &str) -> bool {
    match keyword {
        "Port" => there.parse::<u16>().ok() == wanted.parse().ok(),
        "IdentitiesOnly" => match there {
            "yes" | "true" => wanted == "yes",
            "no" | "false" => wanted == "no",
            _ => false,
        },
        _ => there == wanted,
    }
}
