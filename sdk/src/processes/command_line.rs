//! Shortens command lines, and hides the passwords in them.
//!
//! A secret is recognized by its place: the value of an option or a variable with such a name, the word after `Bearer`,
//! the password in a URL. It is not recognized by its look, so that hashes and UUIDs stay visible. Where the end of a
//! secret isn't clear, too much is hidden rather than too little.

use crate::text::excerpt;

/// The longest command line in a list, in characters. That is enough to tell two processes of one program apart.
const LONGEST: usize = 160;

const HIDDEN: &str = "***";

const QUOTES: [char; 2] = ['\'', '"'];

/// The command line to show, from `/proc/PID/cmdline`, which has a NUL after each argument. None for kernel threads and
/// zombies, which have no command line.
pub fn shown(cmdline: &str) -> Option<String> {
    shown_up_to(cmdline, LONGEST)
}

/// [`shown`] with at most this many characters.
pub fn shown_up_to(cmdline: &str, longest: usize) -> Option<String> {
    let mut shown = String::new();
    let mut masker = Masker::default();
    for argument in cmdline.trim_end_matches(['\0', '\n']).split('\0') {
        if !shown.is_empty() {
            shown.push(' ');
        }
        masker.argument(&argument.replace(char::is_control, " "), &mut shown);
    }
    let shown = shown.trim();
    if shown.is_empty() {
        return None;
    }
    Some(excerpt(shown, longest))
}

/// The kind of the next word, as far as the words before it tell.
#[derive(Clone, Copy, Default, PartialEq)]
enum Next {
    #[default]
    Any,
    /// A secret, unless it is an option.
    Secret,
    /// A secret, whatever it looks like.
    HeaderValue,
    /// A secret, or the scheme before it.
    Authorization,
    /// A user and a password, as `user:password`.
    Credentials,
}

/// Masks a command line word by word. An argument may be a line of shell, with several words.
#[derive(Default)]
struct Masker {
    next: Next,
    /// The quote that ends the secret which has begun.
    until: Option<char>,
    /// The last program in the command line that takes a password in a special way.
    program: Option<Program>,
    /// True after a program for containers, for which `-u 0:0` is a user and a group, and `-p80:80` are ports.
    containers: bool,
}

/// The special ways in which programs take a password.
#[derive(Clone, Copy, PartialEq)]
enum Program {
    /// The password follows in the same word, as `-pPASSWORD`. A word after `-p` is a database.
    Mysql,
    /// User and password follow `-u`, also after other letters, as in `-su user:password`.
    Curl,
    /// The password follows this letter, as in `-a PASSWORD`.
    Option(char),
}

impl Program {
    fn of(word: &str) -> Option<Self> {
        let word = word.trim_matches(QUOTES);
        match word.rsplit('/').next().unwrap_or(word) {
            name if name.starts_with("mysql") || name.starts_with("mariadb") => Some(Self::Mysql),
            "curl" => Some(Self::Curl),
            "redis-cli" => Some(Self::Option('a')),
            "sshpass" => Some(Self::Option('p')),
            "ldapsearch" | "ldapmodify" | "ldapadd" | "ldapdelete" | "ldapwhoami" => Some(Self::Option('w')),
            _ => None,
        }
    }
}

impl Masker {
    fn argument(&mut self, argument: &str, shown: &mut String) {
        self.until = None;
        if self.next == Next::Secret && !argument.starts_with('-') {
            self.next = Next::Any;
            shown.push_str(HIDDEN);
            return;
        }
        if self.next == Next::Credentials && !argument.starts_with('-') {
            self.next = Next::Any;
            return self.credentials(argument, "", shown);
        }
        if let Some(name) = variable(argument) {
            self.next = Next::Any;
            shown.push_str(&format!("{name}={HIDDEN}"));
            return;
        }
        if let Some(letter) = self.letter_of(argument) {
            shown.push_str(&format!("-{letter}{HIDDEN}"));
            return;
        }
        let argument = connection_string(argument);
        for word in argument.split_inclusive(' ') {
            let (word, space) = word.strip_suffix(' ').map_or((word, ""), |word| (word, " "));
            let hidden = self.until.is_some();
            if !word.is_empty() {
                self.word(word, shown);
            }
            if !hidden {
                shown.push_str(space);
            }
        }
    }

    /// The letter of an option whose secret is the rest of the argument, with its blanks.
    fn letter_of(&self, argument: &str) -> Option<char> {
        let letter = match self.program? {
            Program::Mysql => 'p',
            Program::Option(letter) => letter,
            Program::Curl => return None,
        };
        argument.strip_prefix('-')?.strip_prefix(letter).filter(|secret| secret.contains(' ')).map(|_| letter)
    }

    fn word(&mut self, word: &str, shown: &mut String) {
        if let Some(quote) = self.until {
            self.until = (!word.contains(quote)).then_some(quote);
            return;
        }
        let bare = word.trim_matches(QUOTES);
        match std::mem::take(&mut self.next) {
            Next::Secret if !word.starts_with('-') => return self.hide(word, shown),
            Next::HeaderValue => return self.hide(word, shown),
            Next::Authorization if is_scheme(bare) => {
                self.next = Next::HeaderValue;
                return shown.push_str(word);
            }
            Next::Authorization => return self.hide(word, shown),
            Next::Credentials if !word.starts_with('-') => return self.credentials(word, "", shown),
            Next::Any | Next::Secret | Next::Credentials => {}
        }
        match Program::of(word) {
            Some(program) => self.program = Some(program),
            None => self.containers |= matches!(bare, "docker" | "podman" | "nerdctl"),
        }
        if self.option(bare, shown) {
            return;
        }
        let last = bare.rsplit([':', '\'', '"']).next().unwrap_or(bare);
        if last.eq_ignore_ascii_case("bearer") || last.eq_ignore_ascii_case("basic") {
            self.next = Next::Secret;
            return shown.push_str(word);
        }
        let word = url(word);
        self.named(&word, shown);
    }

    /// Masks an option that has a secret in the same word, and returns true then. It remembers an option whose secret is the
    /// next word.
    fn option(&mut self, word: &str, shown: &mut String) -> bool {
        let Some(letters) = word.strip_prefix('-') else { return false };
        match self.program {
            Some(Program::Mysql) => {
                let value = letters.strip_prefix('p').filter(|value| !value.is_empty());
                if value.is_some_and(|value| !(self.containers && is_numeric(value))) {
                    shown.push_str("-p***");
                    return true;
                }
            }
            Some(Program::Option(letter)) => {
                if let Some(value) = letters.strip_prefix(letter) {
                    if value.is_empty() {
                        self.next = Next::Secret;
                        return false;
                    }
                    shown.push_str(&format!("-{letter}{HIDDEN}"));
                    return true;
                }
            }
            Some(Program::Curl) => {
                let alone = letters.chars().all(|letter| letter.is_ascii_alphabetic());
                if alone && letters.ends_with(['u', 'U']) {
                    self.next = Next::Credentials;
                    return false;
                }
            }
            None => {}
        }
        for option in ["--user=", "--proxy-user=", "-u"] {
            match word.strip_prefix(option) {
                Some("") => break,
                Some(value) if value.contains(':') => {
                    self.credentials(value, option, shown);
                    return true;
                }
                _ => {}
            }
        }
        if matches!(word, "-u" | "--user" | "--proxy-user") {
            self.next = Next::Credentials;
        } else if is_plain(word) && is_secret(word) {
            self.next = Next::Secret;
        }
        false
    }

    fn credentials(&mut self, value: &str, option: &str, shown: &mut String) {
        shown.push_str(option);
        match value.split_once(':') {
            Some((user, secret)) if !(secret.starts_with("//") || self.containers && is_numeric(value)) => {
                shown.push_str(user);
                shown.push(':');
                let quote = value.chars().next().filter(|first| QUOTES.contains(first));
                self.until = quote.filter(|quote| !secret.contains(*quote));
                shown.push_str(HIDDEN);
            }
            _ => self.named(&url(value), shown),
        }
    }

    /// Hides a word, and the words after it up to the closing quote where it begins with a quote.
    fn hide(&mut self, word: &str, shown: &mut String) {
        let quote = word.chars().next().filter(|first| QUOTES.contains(first));
        self.until = quote.filter(|quote| !word[1..].contains(*quote));
        shown.push_str(HIDDEN);
    }

    /// Masks secrets of the form `name=value` and `name:value` anywhere in a word.
    fn named(&mut self, word: &str, shown: &mut String) {
        let mut done = 0;
        for (at, separator) in word.match_indices(['=', ':']) {
            if at < done {
                continue;
            }
            let name = word[done..at].trim_end_matches(['\'', '"', '\\']);
            let start = name.rfind(|c: char| !is_name(c) || (c == '.' && separator == ":"));
            let name = start.map_or(name, |start| &name[start..]).trim_start_matches(|c| !is_name(c));
            let value = &word[at + 1..];
            let authorization = separator == ":" && name.to_ascii_lowercase().ends_with("authorization");
            if authorization && is_scheme(value) {
                self.next = Next::HeaderValue;
                break;
            }
            if !(authorization || is_secret(name)) || (separator == ":" && value.starts_with([':', '/'])) {
                continue;
            }
            let done_already =
                value.strip_prefix(HIDDEN).is_some_and(|rest| rest.is_empty() || rest.starts_with(';'));
            if separator == "=" && (done_already || is_directory(name, value)) {
                continue;
            }
            if value.is_empty() {
                if separator == ":" {
                    self.next = if authorization { Next::Authorization } else { Next::HeaderValue };
                }
                continue;
            }
            shown.push_str(&word[done..=at]);
            shown.push_str(HIDDEN);
            let inner = value.trim_start_matches('\\');
            let quote = inner.chars().next().filter(|first| QUOTES.contains(first));
            let length = match quote {
                Some(quote) => match inner[1..].find(quote) {
                    Some(length) => value.len() - inner.len() + length + 2,
                    None => {
                        self.until = Some(quote);
                        value.len()
                    }
                },
                None => {
                    let outer = word.chars().next().filter(|first| QUOTES.contains(first));
                    let length = value_length(value);
                    if length == value.len() {
                        self.until = outer.filter(|quote| !value.contains(*quote));
                    }
                    length
                }
            };
            done = at + 1 + length;
        }
        shown.push_str(&word[done..]);
    }
}

/// The length of a value, which ends before a separator that another name or nothing follows. A secret may itself hold
/// separators.
fn value_length(value: &str) -> usize {
    let ends = |rest: &str| {
        let name = rest.trim_start_matches(['\'', '"', '\\']);
        let after = name.trim_start_matches(is_name).trim_start_matches(['\'', '"', '\\']);
        rest.is_empty() || (after.len() < name.len() && after.starts_with(['=', ':']))
    };
    let mut separators = value.match_indices([',', ';', '&']);
    separators.find(|(at, _)| ends(&value[at + 1..])).map_or(value.len(), |(at, _)| at)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_name)
}

fn is_numeric(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_digit() || matches!(c, ':' | '.'))
}

/// Says whether a word is a scheme of the header `Authorization`.
fn is_scheme(word: &str) -> bool {
    let schemes = ["bearer", "basic", "token", "digest", "negotiate", "apikey", "key"];
    schemes.iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// Says whether a variable holds a working directory, and no password, although its name ends with `PWD`.
fn is_directory(name: &str, value: &str) -> bool {
    matches!(name, "PWD" | "OLDPWD") && value.starts_with('/')
}

/// The name of a variable whose whole value is secret, as in `PASSWORD=a b` and `--env=PASSWORD=a b`.
fn variable(argument: &str) -> Option<&str> {
    let mut from = 0;
    for (at, _) in argument.match_indices('=') {
        let name = &argument[from..at];
        if !is_plain(name) {
            return None;
        }
        if is_secret(name) && !is_directory(name, &argument[at + 1..]) {
            return Some(&argument[..at]);
        }
        from = at + 1;
    }
    None
}

/// Masks `Server=x;Password=a b;Database=y`. A secret ends before the next name, which may have a space in it.
fn connection_string(argument: &str) -> String {
    let mut shown = String::new();
    let mut hiding = false;
    for (n, part) in argument.split(';').enumerate() {
        let name = part
            .split_once('=')
            .map(|(name, _)| name)
            .filter(|name| !name.trim().is_empty() && name.chars().all(|c| is_name(c) || c.is_whitespace()));
        if n > 0 {
            hiding &= name.is_none() && !part.is_empty();
            if !hiding {
                shown.push(';');
            }
        }
        match name.filter(|name| n > 0 && is_plain(name.trim()) && is_secret(name.trim())) {
            Some(name) => {
                hiding = true;
                shown.push_str(&format!("{name}={HIDDEN}"));
            }
            None if hiding => {}
            None => shown.push_str(part),
        }
    }
    shown
}

/// Masks `scheme://user:password@host`. The password may hold characters that are not allowed there.
fn url(word: &str) -> String {
    const SCHEME_END: &str = "://";
    let mut shown = String::new();
    let mut rest = word;
    let last_at = word.rfind('@').map(|at| word.len() - at);
    while let Some(at) = rest.find(SCHEME_END) {
        let (scheme, after) = rest.split_at(at + SCHEME_END.len());
        shown.push_str(scheme);
        rest = after;
        let authority = &after[..after.find(['/', '?', '#']).unwrap_or(after.len())];
        let userinfo = authority.rfind('@').or_else(|| {
            let (_, port) = authority.split_once(':')?;
            let odd =
                !port.is_empty() && !authority.contains('[') && !is_numeric(port) && !port.contains(',');
            odd.then_some(after.len().checked_sub(last_at?)?)
        });
        let Some(end) = userinfo else { continue };
        // Some services take a token as the user's name.
        let user = |name: &str| {
            let token = name.len() >= 20 && name.contains(|c: char| c.is_ascii_digit());
            if token { HIDDEN.to_owned() } else { name.to_owned() }
        };
        match after[..end].split_once(':') {
            Some((name, _)) => shown.push_str(&format!("{}:{HIDDEN}", user(name))),
            None => shown.push_str(&user(&after[..end])),
        }
        rest = &after[end..];
    }
    shown + rest
}

/// Says whether an option or a variable with this name has a secret value: `--password`, `DB_PASSWORD`, `--api-key`. Names
/// of files with a secret, and similar names such as `--max-tokens`, don't count.
fn is_secret(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_ascii_lowercase();
    if name.starts_with("no-") || ["file", "path", "dir", "stdin"].iter().any(|end| name.ends_with(end)) {
        return false;
    }
    let named = name.replace("tokeniz", "").replace("max-tokens", "").replace("max_tokens", "");
    let words = [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "credential",
        "api-key",
        "apikey",
        "api_key",
        "accountkey",
        "accesskey",
        "access-key",
        "access_key",
        "requirepass",
        "masterauth",
    ];
    named.ends_with("pwd")
        || named.split(['-', '_', '.']).any(|part| part == "pass")
        || words.iter().any(|word| named.contains(word))
}

#[cfg(test)]
mod tests;
