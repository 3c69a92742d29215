//! The file authorized_keys (sshd(8), AUTHORIZED_KEYS FILE FORMAT), as bytes: a change of one line keeps every other line
//! as it is.

pub mod public_key;

pub use public_key::Key;

/// The options of OpenSSH 10.0.
const OPTIONS: [&str; 23] = [
    "agent-forwarding",
    "cert-authority",
    "command",
    "environment",
    "expiry-time",
    "from",
    "no-agent-forwarding",
    "no-port-forwarding",
    "no-pty",
    "no-touch-required",
    "no-user-rc",
    "no-x11-forwarding",
    "permitlisten",
    "permitopen",
    "port-forwarding",
    "principals",
    "pty",
    "restrict",
    "tunnel",
    "touch-required",
    "user-rc",
    "verify-required",
    "x11-forwarding",
];

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The line number, from 1.
    pub number: usize,
    /// The bytes of the line, including its end.
    bytes: &'a [u8],
    /// The meaning of the line for sshd.
    pub entry: Entry,
}

/// The meaning of a line for sshd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// An empty line, or a comment.
    Nothing,
    /// A key, with what stands around it.
    Key(Authorized),
    /// A line that sshd ignores, because it is neither a key nor a comment.
    Junk,
}

/// A key with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorized {
    /// The options before the key, one in each element.
    pub options: Vec<String>,
    /// The key itself.
    pub key: Key,
    /// The text behind the key.
    pub comment: String,
}

impl Authorized {
    /// Parses a whole line. `None` where it has no key.
    pub fn read(line: &str) -> Option<Self> {
        let line = line.trim_matches([' ', '\t', '\r', '\n']);
        // Like sshd, this looks for a key first, and for options with a key only where there is none.
        let (options, found) = match Key::read(line) {
            Some(found) => ("", Some(found)),
            None => {
                let (options, rest) = line.split_at(end_of_options(line)?);
                (options, Key::read(rest))
            }
        };
        let (key, comment) = found?;
        Some(Self { options: split(options), key, comment: comment.to_owned() })
    }

    /// The line of the key, without its end.
    pub fn line(&self) -> String {
        let parts = [self.options.join(","), self.key.text(), self.comment.clone()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Whether an option of this name is there.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|own| name(own).eq_ignore_ascii_case(option))
    }

    /// Whether this is the key of a certificate authority: its certificates open the account, and the key itself doesn't.
    pub fn is_authority(&self) -> bool {
        self.has("cert-authority")
    }

    /// The first option that sshd doesn't know. sshd ignores such a line.
    pub fn unknown_option(&self) -> Option<&str> {
        let is_known = |option: &str| OPTIONS.iter().any(|known| name(option).eq_ignore_ascii_case(known));
        self.options.iter().map(String::as_str).find(|option| !is_known(option))
    }

    /// Whether the key itself opens the account. The key of an authority doesn't, and sshd accepts no certificate in this
    /// file.
    pub fn opens(&self) -> bool {
        !self.is_authority()
            && !self.key.is_certificate()
            && self.key.algorithm != "ssh-dss"
            && self.unknown_option().is_none()
    }

    /// Whether the key opens the account from anywhere, at any time and for any command. It isn't known whether a
    /// restriction holds for this connection.
    pub fn opens_always(&self) -> bool {
        self.opens() && !["command", "expiry-time", "from"].iter().any(|option| self.has(option))
    }
}

/// The name of an option, before its equals sign.
pub fn name(option: &str) -> &str {
    option.split('=').next().unwrap_or_default()
}

/// All lines in order. Their bytes together are those of the file.
pub fn lines(file: &[u8]) -> Vec<Line<'_>> {
    let lines = file.split_inclusive(|byte| *byte == b'\n').enumerate();
    lines.map(|(index, bytes)| Line { number: index + 1, bytes, entry: entry(bytes) }).collect()
}

fn entry(bytes: &[u8]) -> Entry {
    // sshd reads a line as a C string, which ends at a zero byte.
    let text = String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default());
    match text.trim_matches([' ', '\t', '\r', '\n']) {
        "" => Entry::Nothing,
        text if text.starts_with('#') => Entry::Nothing,
        text => Authorized::read(text).map_or(Entry::Junk, Entry::Key),
    }
}

/// The keys with the numbers of their lines.
pub fn keys<'a>(lines: &'a [Line<'_>]) -> impl Iterator<Item = (usize, &'a Authorized)> {
    lines.iter().filter_map(|line| match &line.entry {
        Entry::Key(key) => Some((line.number, key)),
        _ => None,
    })
}

/// The file with a line added at its end. sshd takes the first line that matches, so that no other line changes its
/// meaning.
pub fn with(file: &[u8], line: &str) -> Vec<u8> {
    let end: &[u8] = if line_ends_as_windows(file) { b"\r\n" } else { b"\n" };
    let mut file = file.to_vec();
    if !file.is_empty() && !file.ends_with(b"\n") {
        file.extend_from_slice(end);
    }
    file.extend_from_slice(line.as_bytes());
    file.extend_from_slice(end);
    file
}

/// The file without the lines of a key.
pub fn without(file: &[u8], fingerprint: &str) -> Vec<u8> {
    let is_other = |line: &&Line<'_>| match &line.entry {
        Entry::Key(found) => found.key.fingerprint() != fingerprint,
        _ => true,
    };
    lines(file).iter().filter(is_other).flat_map(|line| line.bytes).copied().collect()
}

fn line_ends_as_windows(file: &[u8]) -> bool {
    let first = file.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    first.ends_with(b"\r\n")
}

/// The first blank outside of quotes. A backslash only escapes a quote. `None` where a quote isn't closed, as in sshd.
fn end_of_options(line: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' if !is_escaped => is_quoted = !is_quoted,
            b' ' | b'\t' if !is_quoted => return Some(at),
            _ => {}
        }
        is_escaped = byte == b'\\';
    }
    (!is_quoted).then_some(line.len())
}

/// Splits options at commas outside of quotes.
fn split(options: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let (mut is_quoted, mut is_escaped) = (false, false);
    for character in options.chars() {
        is_quoted ^= character == '"' && !is_escaped;
        is_escaped = character == '\\';
        match all.last_mut() {
            Some(last) if character != ',' || is_quoted => last.push(character),
            _ => all.push(String::new()),
        }
    }
    all.retain(|option| !option.is_empty());
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
