//! The way between: hosts to jump over, or a program. A ProxyCommand is the user's own and needs no shell. One
//! that needs a shell is refused, because a shell must never read a value that comes from elsewhere.

use super::settings::Setting;
use super::tokens::Tokens;
use super::{Jump, Proxy, names};
use host_base::problem::{Category, Problem};

/// Characters that only a shell understands, outside of quotes and in double quotes.
// Brackets are allowed, though they are patterns: everybody writes `ssh -W [%h]:%p`, and no file has such a name.
const OF_SHELLS: &[char] = &['|', '&', ';', '<', '>', '(', ')', '$', '`', '*', '?', '{', '}', '\n', '\r'];
const OF_SHELLS_IN_QUOTES: &[char] = &['$', '`', '\n', '\r'];

/// Returns the proxy. `ssh -G` prints only one of the two, the one that came first.
pub(super) fn proxy(
    jump: Option<Setting>,
    command: Option<Setting>,
    tokens: &Tokens,
) -> Result<Proxy, Problem> {
    match (jump, command.filter(|setting| setting.value != "none")) {
        (Some(setting), _) => Ok(Proxy::Jump(jumps(&setting, tokens)?)),
        (None, Some(setting)) => Ok(Proxy::Command(command_line(&setting, tokens)?)),
        (None, None) => Ok(Proxy::None),
    }
}

fn jumps(setting: &Setting, tokens: &Tokens) -> Result<Vec<Jump>, Problem> {
    setting.value.split(',').map(|text| jump(setting, text.trim(), tokens)).collect()
}

/// Parses `[user@]host[:port]`, also as a URI.
fn jump(setting: &Setting, text: &str, tokens: &Tokens) -> Result<Jump, Problem> {
    let expected =
        || setting.invalid("expected [user@]host[:port], several with commas in between; IPv6 in brackets");
    let text = text.strip_prefix("ssh://").map_or(text, |uri| uri.strip_suffix('/').unwrap_or(uri));
    let (user, place) = match text.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, text),
    };
    let (host, port) = match place.strip_prefix('[') {
        Some(bracketed) => {
            let (host, behind) = bracketed.split_once(']').ok_or_else(expected)?;
            match behind {
                "" => (host, None),
                _ => (host, Some(behind.strip_prefix(':').ok_or_else(expected)?)),
            }
        }
        // With more than one colon it is an address without a port.
        None if place.matches(':').count() == 1 => {
            place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port)))
        }
        None => (place, None),
    };
    let host = tokens.word(setting, host)?;
    names::check_host("a host to jump over", &host).map_err(|problem| setting.invalid(&problem.message))?;
    let user = user.map(|user| tokens.word(setting, user)).transpose()?;
    if let Some(user) = &user {
        names::check_user(user).map_err(|problem| setting.invalid(&problem.message))?;
    }
    let port = match port {
        Some(text) => Some(names::port(&tokens.word(setting, text)?).ok_or_else(expected)?),
        None => None,
    };
    Ok(Jump { user, host, port })
}

/// Splits a command into words. The value of a token stays a part of its word, whatever is in it.
fn command_line(setting: &Setting, tokens: &Tokens) -> Result<Vec<String>, Problem> {
    let text = setting.value;
    if let Some(found) = needs_a_shell(text) {
        return Err(refused(setting, &format!("{found} needs a shell, and none ever reads it")));
    }
    let words = shell_words::split(text).map_err(|_| refused(setting, "a quote in it has no end"))?;
    let mut words = words.as_slice();
    if let [first, rest @ ..] = words
        && first == "exec"
    {
        words = rest;
    }
    match words.first().map(String::as_str) {
        None | Some("") => Err(refused(setting, "it names no program")),
        Some(option) if option.starts_with('-') => Err(refused(setting, &format!("{option} is no program"))),
        Some(assignment) if is_assignment(assignment) => Err(refused(
            setting,
            &format!("{assignment} sets a variable, which needs a shell, and none ever reads it"),
        )),
        Some(_) => words.iter().map(|word| tokens.word(setting, word)).collect(),
    }
}

fn refused(setting: &Setting, why: &str) -> Problem {
    let message = format!("{} {why}", setting.shown());
    Problem::new("PROXY_COMMAND_REFUSED", Category::Validation, message)
        .remedy("Write ProxyJump, where the command only goes through another host")
        .remedy("Or put what is meant as it stands in single quotes, as '[%h]:%p'")
        .remedy("Or put the command into a script, and write its path and %h %p")
}

/// Returns the first thing for which a shell would do more than split words.
fn needs_a_shell(text: &str) -> Option<String> {
    let mut quote = None;
    let mut begins = true;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                if let Some(end @ ('\n' | '\r')) = characters.next() {
                    return Some(format!("{end:?}"));
                }
            }
            (Some(_), _) if OF_SHELLS_IN_QUOTES.contains(&character) => {
                return Some(format!("{character:?} in double quotes"));
            }
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, _)
                if OF_SHELLS.contains(&character) || (begins && matches!(character, '~' | '#' | '!')) =>
            {
                return Some(format!("an unquoted {character:?}"));
            }
            // After these, some shells look for a home as well.
            (None, ':' | '=') if characters.as_str().starts_with('~') => {
                return Some("an unquoted '~'".to_owned());
            }
            (None, _) => {}
        }
        begins = quote.is_none() && matches!(character, ' ' | '\t');
    }
    None
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests;
