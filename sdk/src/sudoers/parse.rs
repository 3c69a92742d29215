//! The rules of sudoers(5), line by line. Each line knows its place in the file, so that a change keeps every other byte.

use std::ops::Range;

/// Options of a command.
const OPTIONS: [&str; 10] = [
    "ROLE",
    "TYPE",
    "CWD",
    "CHROOT",
    "TIMEOUT",
    "NOTBEFORE",
    "NOTAFTER",
    "APPARMOR_PROFILE",
    "PRIVS",
    "LIMITPRIVS",
];
const DIGESTS: [&str; 4] = ["sha224", "sha256", "sha384", "sha512"];

/// A line, or several lines that a backslash joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The number of the first line, from 1.
    pub number: usize,
    /// The place of the bytes, including the line end.
    pub bytes: Range<usize>,
    /// The text without its comment.
    pub text: String,
    /// The text of the comment, without its sign.
    pub comment: Option<String>,
    /// The meaning of the line.
    pub entry: Entry,
}

/// The meaning of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// An empty line, or a comment.
    Nothing,
    /// The path of a file whose lines count here.
    Include(String),
    /// The path of a directory whose files count here.
    IncludeDirectory(String),
    /// The line as it is in the file.
    Defaults(String),
    /// The aliases of a line.
    Aliases(Vec<Alias>),
    /// The rules; a line has several where hosts differ.
    Rules(Vec<Rule>),
    /// A line that isn't valid in sudoers.
    Wrong,
}

/// A name for several users, hosts or commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// `User_Alias`, `Runas_Alias`, `Host_Alias` or `Cmnd_Alias`.
    pub kind: &'static str,
    /// The name, in capitals.
    pub name: String,
    /// The words that the name stands for.
    pub members: Vec<String>,
}

/// A rule: who may run which commands on which hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Who may run the commands.
    pub users: Vec<String>,
    /// The machines on which they may.
    pub hosts: Vec<String>,
    /// The commands, in order.
    pub commands: Vec<Allowed>,
}

/// A command of a rule, with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The text between the parentheses, such as `ALL:ALL`. `None` without parentheses, which means root.
    pub runas: Option<String>,
    /// The tags except PASSWD and NOPASSWD.
    pub tags: Vec<String>,
    /// The value of the tag; `None` where `Defaults` decide.
    pub nopasswd: Option<bool>,
    /// True where options or digests apply to the command. They aren't kept.
    pub is_bound: bool,
    /// The command with its `!`, and with escaped arguments.
    pub command: String,
}

/// All lines in order. Their bytes together are those of the file.
pub fn lines(file: &[u8]) -> Vec<Line> {
    let mut lines = Vec::new();
    let (mut begin, mut number) = (0, 1);
    while begin < file.len() {
        let (mut end, mut text, mut physical) = (begin, String::new(), 0);
        loop {
            let rest = &file[end..];
            let length = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
            let line = String::from_utf8_lossy(&rest[..length]);
            let line = line.trim_end_matches('\n').trim_end_matches('\r');
            (end, physical) = (end + length, physical + 1);
            match going_on(line) {
                Some(part) if end < file.len() => {
                    text.push_str(part);
                    text.push(' ');
                }
                _ => {
                    text.push_str(line);
                    break;
                }
            }
        }
        let (body, comment) = without_comment(&text);
        lines.push(Line {
            number,
            bytes: begin..end,
            text: body.trim().to_owned(),
            comment: comment.map(str::to_owned).filter(|comment| !comment.is_empty()),
            entry: entry(body.trim()),
        });
        (begin, number) = (end, number + physical);
    }
    lines
}

/// The part of a line that is joined with the next one. Blanks may follow the backslash, a second backslash cancels it,
/// and a comment always ends with its line.
fn going_on(line: &str) -> Option<&str> {
    let part = line.trim_end_matches([' ', '\t']).strip_suffix('\\')?;
    let before = part.len() - part.trim_end_matches('\\').len();
    (before % 2 == 0 && without_comment(line).1.is_none()).then_some(part)
}

/// Splits off the comment. A number sign begins none before digits, where it is a uid, after a backslash, or in quotes.
fn without_comment(line: &str) -> (&str, Option<&str>) {
    if line.trim_start().starts_with("#include") {
        return (line, None);
    }
    let (mut before, mut is_quoted) = (' ', false);
    for (at, character) in line.char_indices() {
        is_quoted ^= character == '"' && before != '\\';
        let behind = &line[at + character.len_utf8()..];
        let is_number = behind.strip_prefix('-').unwrap_or(behind).starts_with(|c: char| c.is_ascii_digit());
        if character == '#' && before != '\\' && !is_quoted && !is_number {
            return (&line[..at], Some(behind.trim()));
        }
        before = character;
    }
    (line, None)
}

fn entry(line: &str) -> Entry {
    let keyword = line.split([' ', '\t']).next().unwrap_or_default();
    let rest = line[keyword.len()..].trim();
    match keyword {
        "" => Entry::Nothing,
        "@include" | "#include" => Entry::Include(path(rest)),
        "@includedir" | "#includedir" => Entry::IncludeDirectory(path(rest)),
        "User_Alias" => aliases("User_Alias", rest),
        "Runas_Alias" => aliases("Runas_Alias", rest),
        "Host_Alias" => aliases("Host_Alias", rest),
        "Cmnd_Alias" | "Cmd_Alias" => aliases("Cmnd_Alias", rest),
        keyword if is_defaults(keyword) => Entry::Defaults(line.to_owned()),
        _ => rules(line).map_or(Entry::Wrong, Entry::Rules),
    }
}

fn is_defaults(keyword: &str) -> bool {
    keyword
        .strip_prefix("Defaults")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['@', ':', '!', '>']))
}

fn path(text: &str) -> String {
    text.trim_matches('"').replace("\\ ", " ")
}

fn aliases(kind: &'static str, text: &str) -> Entry {
    let one = |definition: &str| {
        let (name, members) = split_once(definition, '=')?;
        let members =
            split(members, ',').into_iter().map(|member| member.trim().to_owned()).collect::<Vec<_>>();
        let is_whole = members.iter().all(|member| !member.is_empty());
        is_whole.then(|| Alias { kind, name: name.trim().to_owned(), members })
    };
    let all: Option<Vec<_>> = split(text, ':').into_iter().map(one).collect();
    all.map_or(Entry::Wrong, Entry::Aliases)
}

/// Parses `users hosts = commands : hosts = commands`.
fn rules(line: &str) -> Option<Vec<Rule>> {
    let (left, mut right) = split_once(line, '=')?;
    let [users, hosts] = &lists(left)[..] else { return None };
    let mut rules = Vec::new();
    let mut hosts = hosts.clone();
    loop {
        let (commands, rest) = commands(right)?;
        rules.push(Rule { users: users.clone(), hosts, commands });
        let Some(rest) = rest else { return Some(rules) };
        let (left, behind) = split_once(rest, '=')?;
        let [next] = &lists(left)[..] else { return None };
        (hosts, right) = (next.clone(), behind);
    }
}

/// The commands up to the end or to a colon, and the text after the colon.
fn commands(text: &str) -> Option<(Vec<Allowed>, Option<&str>)> {
    let mut all: Vec<Allowed> = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        // Values of the former command apply until another one is given.
        let (mut runas, mut tags, mut nopasswd) = all
            .last()
            .map_or((None, Vec::new(), None), |last| (last.runas.clone(), last.tags.clone(), last.nopasswd));
        // Options apply on as well. This is also assumed of digests, which refuses more than necessary.
        let mut is_bound = all.last().is_some_and(|last| last.is_bound);
        if let Some(inner) = rest.strip_prefix('(') {
            let (inside, behind) = inner.split_once(')')?;
            (runas, rest) = (Some(inside.trim().to_owned()), behind.trim_start());
        }
        loop {
            if let Some(behind) = option(rest) {
                is_bound = true;
                rest = behind;
                continue;
            }
            let Some((tag, behind)) = rest.split_once(':') else { break };
            let tag = tag.trim_end();
            if tag.is_empty() || !tag.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') {
                break;
            }
            match tag {
                "NOPASSWD" => nopasswd = Some(true),
                "PASSWD" => nopasswd = Some(false),
                tag => {
                    let other = tag.strip_prefix("NO").map_or_else(|| format!("NO{tag}"), str::to_owned);
                    tags.retain(|known| *known != other && known != tag);
                    tags.push(tag.to_owned());
                }
            }
            rest = behind.trim_start();
        }
        let command = without_digests(rest)?;
        is_bound |= command.len() < rest.len();
        rest = command;
        let end = end_of_command(rest);
        let (command, behind) = rest.split_at(end);
        let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
        let command = command.replacen("! ", "!", 1);
        if command.is_empty() {
            return None;
        }
        all.push(Allowed { runas, tags, nopasswd, is_bound, command });
        match behind.chars().next() {
            None => return Some((all, None)),
            Some(':') => return Some((all, Some(&behind[1..]))),
            Some(_) => rest = &behind[1..],
        }
    }
}

/// The text after an option such as `TIMEOUT=5m`, where there is one.
fn option(text: &str) -> Option<&str> {
    let (key, value) = text.split_once('=')?;
    if !OPTIONS.contains(&key.trim_end()) {
        return None;
    }
    let value = value.trim_start();
    let quoted = value.strip_prefix('"').and_then(|inner| inner.split_once('"')).map(|(_, behind)| behind);
    quoted.or_else(|| value.split_once([' ', '\t']).map(|(_, behind)| behind)).map(str::trim_start)
}

/// The text after the digests of a command. There may be several with commas between them.
fn without_digests(mut text: &str) -> Option<&str> {
    while let Some(digest) =
        DIGESTS.iter().find_map(|name| text.strip_prefix(name)?.trim_start().strip_prefix(':'))
    {
        let digest = digest.trim_start();
        let end = digest.find([' ', '\t', ','])?;
        text = digest[end..].trim_start();
        if let Some(more) = text.strip_prefix(',').map(str::trim_start)
            && DIGESTS.iter().any(|name| more.starts_with(name))
        {
            text = more;
        }
    }
    Some(text)
}

/// The end of a command: a comma or colon that is neither escaped nor in a regular expression.
fn end_of_command(text: &str) -> usize {
    let (mut before, mut before_that, mut is_expression) = (' ', ' ', false);
    for (at, character) in text.char_indices() {
        let behind = text[at + character.len_utf8()..].chars().next();
        let is_last = behind.is_none_or(|next| [' ', '\t', ',', ':'].contains(&next));
        let is_escaped = before == '\\' && before_that != '\\';
        match character {
            '^' if [' ', '\t'].contains(&before) || at == 0 => is_expression = true,
            '$' if is_expression && is_last && !is_escaped => is_expression = false,
            ',' | ':' if !is_expression && !is_escaped => return at,
            _ => {}
        }
        (before_that, before) = (before, character);
    }
    text.len()
}

/// Splits a text into lists of words. Blanks without a comma separate lists.
fn lists(text: &str) -> Vec<Vec<String>> {
    let mut lists: Vec<Vec<String>> = Vec::new();
    for part in split(text, ',') {
        let words = words(part);
        for (index, word) in words.into_iter().enumerate() {
            match lists.last_mut() {
                Some(last) if index == 0 => last.push(word),
                _ => lists.push(vec![word]),
            }
        }
    }
    lists
}

/// Splits a text at blanks that are neither escaped nor in quotes. Quotes are removed, and a `!` stays.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut is_quoted, mut is_escaped) = (false, false);
    for character in text.chars() {
        let Some(word) = words.last_mut() else { break };
        match character {
            _ if is_escaped => {
                is_escaped = false;
                word.push(character);
            }
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ' ' | '\t' if !is_quoted => {
                if !word.trim_matches('!').is_empty() {
                    words.push(String::new());
                }
            }
            other => word.push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Splits a text at a sign that is neither escaped nor in quotes.
fn split(text: &str, sign: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((part, behind)) = split_once(rest, sign) {
        parts.push(part);
        rest = behind;
    }
    parts.push(rest);
    parts
}

/// Splits a text once, at a sign that is neither escaped, nor in quotes, nor in a regular expression. An expression
/// begins with `^` after a blank, and ends with `$` at the end of an argument.
fn split_once(text: &str, sign: char) -> Option<(&str, &str)> {
    let (mut is_quoted, mut is_escaped, mut is_expression) = (false, false, false);
    let mut before = ' ';
    for (at, character) in text.char_indices() {
        let behind = &text[at + character.len_utf8()..];
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' if !is_expression => is_quoted = !is_quoted,
            '^' if [' ', '\t'].contains(&before) && !is_quoted => is_expression = true,
            '$' if is_expression && (behind.is_empty() || behind.starts_with([' ', '\t', ',', ':'])) => {
                is_expression = false;
            }
            found if found == sign && !is_quoted && !is_expression => return Some((&text[..at], behind)),
            _ => {}
        }
        before = character;
    }
    None
}
