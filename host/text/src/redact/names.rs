//! Finds secrets by the name in front of them: `password=x`, `"token": "x"`, `--secret x`, `<password>x</password>`.
//!
//! The names are those of configuration files, variables, options and JSON. The end of a name decides: `db_password`
//! is one, `password_file` isn't. A value that is plainly no secret stays: a path, a reference to a variable, a word
//! like `no`.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::escapes::{Quote, ends_here, skip_blanks, skip_line_end};
use super::forms::looks_random;
use super::words::{
    ARCHITECTURES, BEFORE_A_BLANK, ENDINGS, HINTS, IN_MESSAGES, KEYS, NOT_OF_PASS, NOT_SECRET, PROSE, ROOTS,
    SERVICES, SPOKEN_KEYS, STATES,
};
use super::{Edit, REDACTED, REDACTED_KEY};

/// The number of bytes of a name that is looked at. The limit bounds how much is read twice.
const LONGEST_NAME: usize = 128;
/// The number of bytes of a value that may be no secret. A longer value always counts as one.
const LONGEST_EXEMPT: usize = 512;
/// The number of bytes of an element that are read for its end.
const LONGEST_CONTENT: usize = 4096;

static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let hints: Vec<_> = hints().collect();
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostFirst)
        .build(hints.iter().map(|hint| hint.as_bytes()))
        .ok()
});

/// Returns the words of which every name of a secret contains one.
pub(super) fn hints() -> impl Iterator<Item = Cow<'static, str>> {
    let joined = KEYS.iter().chain(SPOKEN_KEYS).flat_map(|word| ["", "_", "-"].map(|mark| (*word, mark)));
    let keys = joined.chain(SPOKEN_KEYS.iter().map(|word| (*word, " ")));
    HINTS
        .iter()
        .map(|hint| Cow::Borrowed(*hint))
        .chain(keys.map(|(word, mark)| format!("{word}{mark}key").into()))
}

/// Says whether the name is that of a secret: `db_password`, `clientSecret`, `X-Api-Key`; not `password_age`,
/// `tokens`.
pub(super) fn is_secret_name(name: &str) -> bool {
    if name.len() > LONGEST_NAME {
        return false;
    }
    let name = name.trim_end_matches(|last: char| last.is_ascii_digit() || matches!(last, '_' | '-' | '.'));
    // Every member of an answer is asked about, so this allocates nothing.
    let mut joined = [0; LONGEST_NAME];
    let joined = joined_letters(name, &mut joined);
    if NOT_SECRET.iter().any(|known| known.as_bytes() == joined) {
        return false;
    }
    let joined = joined.strip_suffix(b"hash").unwrap_or(joined);
    if ENDINGS.iter().any(|ending| joined.ends_with(ending.as_bytes())) {
        return true;
    }
    if let Some(before) = joined.strip_suffix(b"key")
        && KEYS.iter().chain(SPOKEN_KEYS).any(|word| before.ends_with(word.as_bytes()))
    {
        return true;
    }
    let (before, last) = name.split_at(last_word(name));
    let is_last = |word: &str| last.eq_ignore_ascii_case(word);
    if is_last("pwd") {
        return !before.eq_ignore_ascii_case("old");
    }
    if is_last("pw") {
        return true;
    }
    if is_last("pass") {
        // The name is `pass` alone, as in `--pass=x` and `PASS=x`. [`NameMatch::is_verb`] tells it from the verb.
        let words = before.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let word = &words[last_word(words)..];
        return before.is_empty() || !NOT_OF_PASS.iter().any(|known| word.eq_ignore_ascii_case(known));
    }
    is_last("psk")
}

/// Writes the letters and digits of a name in lower case into the buffer, and returns them.
fn joined_letters<'a>(name: &str, buffer: &'a mut [u8; LONGEST_NAME]) -> &'a [u8] {
    let mut count = 0;
    for (at, letter) in name.bytes().filter(u8::is_ascii_alphanumeric).enumerate() {
        buffer[at] = letter.to_ascii_lowercase();
        count = at + 1;
    }
    &buffer[..count]
}

/// Returns where the last word of `db_pass`, `db-pass`, `dbPass`, `SSHPASS` begins.
fn last_word(name: &str) -> usize {
    let bytes = name.as_bytes();
    let capitals = bytes.iter().rev().take_while(|byte| byte.is_ascii_uppercase()).count();
    let last = ["PASS", "PWD", "PW"].iter().find(|last| capitals > last.len() && name.ends_with(**last));
    if let Some(last) = last {
        return name.len() - last.len();
    }
    let begins = |at: &usize| {
        let (before, here) = (bytes[*at - 1], bytes[*at]);
        !before.is_ascii_alphanumeric() || before.is_ascii_lowercase() && here.is_ascii_uppercase()
    };
    // Behind a byte that isn't a letter, a character begins or goes on. In its middle no word begins.
    (1..bytes.len()).rev().find(begins).filter(|at| name.is_char_boundary(*at)).unwrap_or(0)
}

/// Says whether a value is plainly no secret: a state, a path, a reference to a secret, or text that is hidden
/// already.
pub(super) fn is_no_secret(value: &str) -> bool {
    let value = value.trim();
    if value.is_empty() || value == REDACTED || value == REDACTED_KEY {
        return true;
    }
    if value.len() > LONGEST_EXEMPT {
        return false;
    }
    if value.chars().all(|mark| matches!(mark, '*' | 'x' | 'X' | '!' | '-' | '.' | '•' | '?')) {
        return true;
    }
    STATES.iter().any(|state| value.eq_ignore_ascii_case(state))
        || is_path(value)
        || is_reference(value)
        // This is a placeholder, as in `--password=PASSWORD`.
        || value.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') && is_secret_name(value)
}

fn is_path(value: &str) -> bool {
    let value = value.strip_prefix("file:").map_or(value, |path| path.trim_start_matches("//"));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-@%~:+".contains(&byte);
    if !value.bytes().all(is_name) {
        return false;
    }
    if value.starts_with("./") || value.starts_with("../") || value.starts_with("~/") {
        return true;
    }
    let first = value.strip_prefix('/').and_then(|rest| rest.split('/').next());
    first.is_some_and(|first| ROOTS.contains(&first))
}

/// Says whether a value is a reference: `$PASSWORD`, `${…}`, `$(…)`, `{{ … }}`, `%(…)s`, `<password>`.
fn is_reference(value: &str) -> bool {
    let within = |open: &str, close: &str| {
        value.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)).is_some_and(|name| {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-. /|:[]'\"<\\$".contains(&byte))
        })
    };
    let variable = value.strip_prefix('$').is_some_and(|name| {
        let of = |allowed: fn(u8) -> bool| !name.is_empty() && name.bytes().all(allowed);
        of(|byte| byte.is_ascii_digit())
            || of(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
            || of(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && is_secret_name(name)
    });
    variable
        || within("${", "}")
        || within("$(", ")")
        || within("{{", "}}")
        || within("%(", ")s")
        || within("<", ">")
}

/// A name in a text, and its surroundings.
struct NameMatch<'a> {
    text: &'a str,
    /// The name without the dashes in front.
    name: &'a str,
    start: usize,
    end: usize,
    dashes: usize,
}

fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

pub(super) fn find(text: &str) -> Option<Vec<Edit>> {
    let words = WORDS.as_ref()?;
    let mut edits: Vec<Edit> = Vec::new();
    let mut from = 0;
    for hit in words.find_iter(text) {
        if hit.start() < from {
            continue;
        }
        let named = NameMatch::around(text, hit.start(), hit.end(), from);
        from = named.end;
        if !is_secret_name(named.name) {
            continue;
        }
        if let Some((start, end)) = named.value() {
            from = end;
            edits.push((start..end, Cow::Borrowed(REDACTED)));
        }
    }
    Some(edits)
}

impl<'a> NameMatch<'a> {
    /// Finds the whole name around a hint. `from` is where the last name or value ended.
    fn around(text: &'a str, hit: usize, hit_end: usize, from: usize) -> Self {
        let bytes = text.as_bytes();
        let mut start = hit;
        while start > from && hit - start < LONGEST_NAME && is_of_a_name(bytes[start - 1]) {
            start -= 1;
        }
        if start > 0 && bytes[start - 1] == b'\\' {
            start += match bytes[start] {
                b'n' | b'r' | b't' if start < hit => 1,
                b'u' if start + 5 <= hit => 5,
                _ => 0,
            };
        }
        let mut end = hit_end;
        while end < bytes.len() && end - hit_end < LONGEST_NAME && is_of_a_name(bytes[end]) {
            end += 1;
        }
        let name = &text[start..end];
        let bare = name.trim_start_matches(['-', '.']);
        let dashes = name.len() - bare.len();
        Self { text, name: bare, start: start + dashes, end, dashes }
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    fn ends_with(&self, ending: &str) -> bool {
        let name = self.name.trim_end_matches(|last: char| last.is_ascii_digit());
        name.len() >= ending.len()
            && name.as_bytes()[name.len() - ending.len()..].eq_ignore_ascii_case(ending.as_bytes())
    }

    fn byte_before(&self) -> Option<u8> {
        self.bytes().get((self.start - self.dashes).checked_sub(1)?).copied()
    }

    /// Returns where the value begins and ends, if there is one and it is secret.
    fn value(&self) -> Option<(usize, usize)> {
        let bytes = self.bytes();
        if bytes.get(self.end) == Some(&b'>') && self.byte_before() == Some(b'<') {
            let start = self.end + 1;
            let length = bytes[start..].iter().position(|byte| matches!(byte, b'<' | b'\n'))?;
            let closes = bytes[start + length..].starts_with(b"</");
            return if closes { self.secret(start, start + length) } else { None };
        }
        if let Some(start) = self.of_an_element() {
            let (quote, inside) =
                Quote::at(bytes, start).unwrap_or((Quote { mark: b'<', backslashes: 0 }, start));
            return self.secret(inside, quote.end(bytes, inside));
        }
        let mut at = self.end;
        let quoted = Quote::at(bytes, at).map(|(_, behind)| at = behind).is_some();
        at = self.behind_a_number(at);
        if bytes.get(at) == Some(&b']') {
            at += 1;
        }
        let before_separator = at;
        at = skip_blanks(bytes, at);
        let rest = &bytes[at..];
        let (colon, length) = match rest {
            [b'=', b'>', ..] => (false, 2),
            // A comparison such as `== x` isn't an assignment, unless the secret itself begins with such a character.
            [b'=', b'=' | b'~', next, ..] if quoted || at != self.end || b" \t\"'".contains(next) => {
                return None;
            }
            [b'=', ..] => (false, 1),
            [b':', b'=', ..] => (false, 2),
            // In LDIF, two colons come before base64.
            [b':', b':', b' ', ..] => (true, 2),
            [b':', b':' | b'/', ..] => return None,
            [b':', ..] => (true, 1),
            _ if quoted => return None,
            _ => return self.after_a_blank(before_separator, at),
        };
        let behind = at + length;
        let start = skip_blanks(bytes, behind);
        if ends_here(bytes, start) {
            let next = skip_line_end(bytes, start);
            let (quote, inside) = Quote::at(bytes, next).filter(|_| quoted && next != start)?;
            return self.secret(inside, quote.end(bytes, inside));
        }
        // In JSON, `"pass": 3` counts something, and `"pass": "x"` is a password.
        let is_text = quoted && Quote::at(bytes, start).is_some();
        if self.is_verb()
            && !is_text
            && (quoted || !is_assigned(&rest[..length], at == self.end && start == behind))
        {
            return None;
        }
        if let Some((quote, inside)) = Quote::at(bytes, start) {
            return self.secret(inside, quote.end(bytes, inside));
        }
        if bytes[start] == b'`' {
            let end = self.until(start + 1, |byte| matches!(byte, b' ' | b'\t' | b'`'));
            return if bytes.get(end) == Some(&b'`') { self.secret(start + 1, end) } else { None };
        }
        let blanks = before_separator != at || start != behind;
        if matches!(bytes[start], b'{' | b'[' | b'(')
            && (colon || blanks)
            && !is_redacted(&self.text[start..])
            && !self.text[start..].starts_with("{{")
        {
            return None;
        }
        if let Some((quote, _)) = Quote::before(bytes, self.start - self.dashes).filter(|_| !quoted && !colon)
        {
            // The quotes are around name and value: `"PASSWORD=two words"`.
            return self.secret(start, quote.end(bytes, start));
        }
        let line = self.begins_a_line();
        // Here an empty value is followed by another word, or by a comment.
        let is_apart =
            !colon && before_separator == at && start != behind && (line.is_none() || self.dashes >= 2);
        if is_apart || bytes[start..].starts_with(b"# ") {
            return None;
        }
        let word_end = self.word_end(start);
        let word = &self.text[start..word_end];
        if self.ends_with("authorization") && is_redacted(&self.text[skip_blanks(bytes, word_end)..]) {
            // The secret's form was known already: `Authorization: Bearer [redacted]`.
            return None;
        }
        if colon && !quoted && self.is_prose(word, start, word_end, start != behind, line.is_some()) {
            return None;
        }
        let end = match (self.byte_before(), line) {
            (Some(b'?' | b'&' | b';' | b',' | b'{' | b'('), None) => self.member_end(start),
            _ if quoted => self.member_end(start),
            _ if self.dashes >= 2 => self.trimmed(start, word_end),
            (_, Some(line)) => {
                let shell = !blanks && !self.name.bytes().any(|byte| byte.is_ascii_lowercase());
                self.line_end(start, line, shell)
            }
            _ => self.trimmed(start, word_end),
        };
        self.secret(start, end)
    }

    /// Returns where the value begins if the name is an attribute or an element of XML: `<property name="password">x<`,
    /// `<add key="password" value="x"`, `<secret name="a" value="x"`.
    fn of_an_element(&self) -> Option<usize> {
        let bytes = self.bytes();
        let mut at = self.end;
        if self.byte_before() != Some(b'<') {
            let (_, start) = Quote::before(bytes, self.start - self.dashes)?;
            let before = &bytes[start.saturating_sub(5)..start];
            let before = before.to_ascii_lowercase();
            if ![&b"name="[..], b"key=", b"id=", b"type="].iter().any(|name| before.ends_with(name)) {
                return None;
            }
            at = Quote::at(bytes, at)?.1;
            if bytes.get(at) == Some(&b'>') {
                let content = &bytes[at + 1..bytes.len().min(at + LONGEST_CONTENT)];
                let length = content.iter().position(|byte| matches!(byte, b'<' | b'\n'))?;
                return content[length..].starts_with(b"</").then_some(at + 1);
            }
        } else if bytes.get(at) != Some(&b' ') {
            return None;
        }
        let rest = &bytes[at..bytes.len().min(at + 2 * LONGEST_NAME)];
        let element =
            &rest[..rest.iter().position(|byte| matches!(byte, b'>' | b'<' | b'\n')).unwrap_or(rest.len())];
        let value = element.windows(7).position(|part| part.eq_ignore_ascii_case(b" value="))?;
        Quote::at(bytes, at + value + 7).map(|_| at + value + 7)
    }

    /// Returns the place behind the number of a name: `unseal key 1: x`.
    fn behind_a_number(&self, at: usize) -> usize {
        let rest = &self.bytes()[at..];
        let digits = rest.iter().skip(1).take(4).take_while(|byte| byte.is_ascii_digit()).count();
        let is_number = rest.first() == Some(&b' ') && (1..4).contains(&digits);
        if is_number && matches!(rest.get(1 + digits), Some(b':' | b'=')) { at + 1 + digits } else { at }
    }

    /// Says whether the name is `pass`, which is a verb unless it is an option or a variable.
    fn is_verb(&self) -> bool {
        self.name.eq_ignore_ascii_case("pass")
    }

    fn secret(&self, start: usize, end: usize) -> Option<(usize, usize)> {
        let value = &self.text[start..end];
        if self.is_verb() && value.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // A backslash before a replaced secret makes it no other one.
        let hidden = redacted_length(self.text[start..].trim_start_matches('\\'));
        if hidden > 0 && value.trim_start_matches('\\').len() <= hidden {
            return None;
        }
        let is_directory = self.ends_with("pwd") && value.starts_with('/');
        // A replaced secret within the value is one word, though it ends with a bracket.
        let last = value.rfind('[').map_or(start, |at| start + at);
        let behind = last + redacted_length(&self.text[last..]);
        let end = if behind > end { self.word_end(behind) } else { end };
        (start < end && !is_no_secret(value) && !is_directory).then_some((start, end))
    }

    /// Returns the value after a blank: `--password x`, `requirepass x`.
    fn after_a_blank(&self, behind: usize, at: usize) -> Option<(usize, usize)> {
        let bytes = self.bytes();
        let line = self.begins_a_line();
        let is_setting = line.is_some() && {
            let joined: String = self.name.chars().filter(char::is_ascii_alphanumeric).collect();
            BEFORE_A_BLANK.contains(&joined.to_ascii_lowercase().as_str())
        };
        // In a help text, several blanks stand between an option and its explanation.
        let is_listed = line.is_some() || bytes[..self.start - self.dashes].ends_with(b", ");
        // A single dash may be the mark of a diff, and then it begins the line.
        let dashes = if line.is_none() && self.text[..self.start].ends_with(" -") { 2 } else { self.dashes };
        let is_option = dashes >= 2 && (at == behind + 1 || !is_listed);
        if at == behind || ends_here(bytes, at) || bytes[at] == b'-' {
            return None;
        }
        if !is_setting && !is_option {
            return self.in_a_message(at);
        }
        if let Some((quote, inside)) = Quote::at(bytes, at) {
            // If the option stands in quotes, this quotation mark closes them.
            let ends = Quote::before(bytes, self.start - self.dashes).is_some();
            return if ends { None } else { self.secret(inside, quote.end(bytes, inside)) };
        }
        self.secret(at, self.word_end(at))
    }

    /// Returns the secret in a message, `with password x` or `the password is x`, where the word can hardly be another one.
    fn in_a_message(&self, at: usize) -> Option<(usize, usize)> {
        // A single dash may be the sign of a diff.
        // Behind such a sign it is a value itself.
        let is_value = self.byte_before().is_some_and(|before| b"=:".contains(&before));
        if is_value || self.dashes > 1 || !IN_MESSAGES.iter().any(|name| self.name.eq_ignore_ascii_case(name))
        {
            return None;
        }
        let at = if self.text[at..].starts_with("is ") { at + 3 } else { at };
        let end = self.word_end(at);
        let word = self.text.get(at..end)?;
        let has = |of: fn(char) -> bool| usize::from(word.contains(of));
        let kinds = has(|c| c.is_ascii_lowercase())
            + has(|c| c.is_ascii_uppercase())
            + has(|c| c.is_ascii_digit())
            + has(|c| "!@#$%^&*?".contains(c));
        if word.len() < 8 || kinds < 3 { None } else { self.secret(at, end) }
    }

    /// Says whether the text after a colon isn't the name's value.
    fn is_prose(&self, word: &str, start: usize, end: usize, blank: bool, begins_a_line: bool) -> bool {
        let before = &self.text[..self.start - self.dashes];
        // A path comes before a message: `/run/secrets/token: Permission denied`. An option of Windows does not.
        if let Some(before) = before.strip_suffix('/') {
            return blank || !(before.is_empty() || before.ends_with([' ', '\n', '+', '-']));
        }
        // The sentence says that there is none: `has no passphrase: whoever reads the file has the key`.
        // A parser speaks of another kind of token: `unexpected token: x`.
        if ["no ", "without a ", "nexpected "].iter().any(|none| before.ends_with(none)) {
            return true;
        }
        let of = |words: &[&str]| {
            let word = word.trim_end_matches([',', ';', '.', ')']);
            words.iter().any(|known| word.eq_ignore_ascii_case(known))
        };
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let is_line_number = digits > 0 && word[digits..].starts_with(':');
        if !blank && (of(ARCHITECTURES) || is_line_number) {
            return true;
        }
        if self.ends_with("passwd") {
            // This is a program's name before its message, a package, a line of nsswitch.conf, or a tag of sudoers.
            let is_last =
                ends_here(self.bytes(), skip_blanks(self.bytes(), end)) || word.starts_with("[redacted");
            return !blank || !is_last || of(SERVICES) || self.name == "PASSWD" && !begins_a_line;
        }
        if begins_a_line {
            return false;
        }
        let is_plain = ["password", "passphrase"].iter().any(|ending| self.ends_with(ending));
        let is_compound = self.name.contains(['_', '-', '.']);
        of(PROSE) || !is_plain && !is_compound && !looks_random(&self.text[start..end])
    }

    /// Says whether the name begins a line, after nothing but blanks and the marks of a diff, a list or a comment. The
    /// value is true if that line begins with an escaped line end.
    fn begins_a_line(&self) -> Option<bool> {
        let before = &self.bytes()[..self.start - self.dashes];
        let near = &before[before.len().saturating_sub(64)..];
        let real = near.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        let escaped = near.windows(2).rposition(|two| two == b"\\n").map(|at| at + 2);
        let begins = if before.len() <= 64 { Some(0) } else { None };
        let (start, is_escaped) = match (real.or(begins), escaped) {
            (real, Some(escaped)) if real.is_none_or(|real| escaped > real) => (escaped, true),
            (Some(real), _) => (real, false),
            _ => return None,
        };
        let mut prefix = &near[start..];
        let is_mark = |byte: &u8| b" \t+-#*>|\"'".contains(byte);
        while let [first, rest @ ..] = prefix {
            if !is_mark(first) {
                break;
            }
            prefix = rest;
        }
        let prefix = std::str::from_utf8(prefix).unwrap_or("?").trim_end();
        matches!(prefix, "" | "export" | "set" | "setenv").then_some(is_escaped)
    }

    /// Returns the end of a word on a command line or in prose.
    fn word_end(&self, start: usize) -> usize {
        self.until(start, |byte| matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'`'))
    }

    /// Returns the end of a URL's parameter, of an option among others, or of a member in braces.
    fn member_end(&self, start: usize) -> usize {
        self.until(start, |byte| b" \t\"'`&;,)}]<".contains(&byte))
    }

    /// Returns the end of a setting's value, which may contain blanks.
    fn line_end(&self, start: usize, escaped: bool, shell: bool) -> usize {
        let bytes = self.bytes();
        let stops = |byte: u8| byte == b' ' || byte == b'\t' || escaped && matches!(byte, b'"' | b'\'');
        let mut end = self.until(start, stops);
        // A shell's word ends at the first blank.
        loop {
            if shell {
                break;
            }
            let next = skip_blanks(bytes, end);
            let next_end = self.until(next, stops);
            let word = &self.text[next..next_end];
            let is_another = |word: &str| {
                let name = word.bytes().take_while(|byte| is_of_a_name(*byte)).count();
                name > 0 && matches!(word.as_bytes().get(name), Some(b'=' | b':'))
            };
            // The value ends before the next setting on the line, an option, a comment, or the end of the line.
            if next == end
                || word.is_empty()
                || word.starts_with('#')
                || word.starts_with("--")
                || is_another(word)
            {
                break;
            }
            end = next_end;
        }
        self.without(start, end, &[',', ';'])
    }

    /// Returns the end of a word without the punctuation after it.
    fn trimmed(&self, start: usize, end: usize) -> usize {
        self.without(start, end, &[',', ';', ')', '}', ']', '>'])
    }

    /// Returns the end without the given marks. A replaced secret keeps its bracket.
    fn without(&self, start: usize, end: usize, marks: &[char]) -> usize {
        let start = (start + redacted_length(&self.text[start..end])).min(end);
        start + self.text[start..end].trim_end_matches(marks).len()
    }

    fn until(&self, start: usize, stops: impl Fn(u8) -> bool) -> usize {
        let bytes = self.bytes();
        let start = start + redacted_length(&self.text[start..]);
        let mut at = start;
        while at < bytes.len() && !stops(bytes[at]) && !ends_here(bytes, at) {
            if bytes[at] == b'\\' && matches!(bytes.get(at + 1), Some(b't' | b'"' | b'\'' | b'u')) {
                break;
            }
            at += 1;
        }
        at
    }
}

/// Says whether the separator assigns without blanks: `pass=x`, and not `pass: 3` or `pass = 3`.
fn is_assigned(separator: &[u8], is_close: bool) -> bool {
    separator == b"=" && is_close
}

fn is_redacted(text: &str) -> bool {
    redacted_length(text) > 0
}

/// Returns the length of a replaced secret at the beginning of a text, or 0. Though it has brackets and blanks, it is
/// one word.
fn redacted_length(text: &str) -> usize {
    let known = [REDACTED, REDACTED_KEY].into_iter().find(|known| text.starts_with(known));
    known.map_or(0, str::len)
}
