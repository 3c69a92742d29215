//! Crontabs, as Debian's cron and cronie read them (`load_env` and `load_entry` of their sources), and anacron's table.
//!
//! A line that can be an assignment is one; what is neither that nor a comment has to be a job, and where one isn't, the
//! text is no crontab.

use super::harmless;
use super::place::not_root;
use super::words::{joined, lines, word};
use super::{Code, shown};

/// What stands before a command.
pub enum Form {
    /// When, then whose rights: `/etc/crontab` and `/etc/cron.d`.
    System,
    /// When: an account's own; root's where there is none.
    Of(Option<String>),
    /// A period, a delay and a name.
    Anacron,
}

/// What a crontab has cron run.
pub fn read(text: &str, form: &Form) -> Code {
    let mut code = Code::default();
    // Only anacron joins lines. To cron a backslash at the end is the command's.
    let lines: Vec<(usize, String)> = match form {
        Form::Anacron => joined(text),
        _ => lines(text).map(|(number, line)| (number, line.to_owned())).collect(),
    };
    let mut shell = "sh".to_owned();
    for (number, line) in lines {
        let line = line.trim_matches(SPACE);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some((name, value)) = variable(line) {
            if name == "SHELL" {
                shell = value.to_owned();
            }
            // In an account's own crontab it can do no more than the account.
            let is_roots = !matches!(form, Form::Of(Some(_)));
            if is_roots && !harmless::variable(name, Some(value)) {
                let set = format!("{name}={value}");
                code.gives(format_args!("sets {} for what runs as root, line {number}", shown(&set)));
            }
            continue;
        }
        let Some((user, command)) = job(line, form) else {
            code.cannot_read(format!(
                "a crontab with a line that is no job: `{}`, line {number}",
                shown(line)
            ));
            continue;
        };
        let (command, input) = match form {
            Form::Anacron => (command.to_owned(), None),
            _ => at_percent(command),
        };
        let at = format!("line {number}");
        if user.is_none() && input.is_some_and(|input| !input.trim().is_empty()) {
            // Who reads it, is the command's affair: a shell might.
            code.gives(format_args!("gives `{}` what follows its first % to read, {at}", shown(&command)));
        }
        let argv = [shell.as_str(), "-c", &command].map(str::to_owned);
        let argv = if ["/bin/sh", "/usr/bin/sh"].contains(&shell.as_str()) {
            ["sh".to_owned(), argv[1].clone(), argv[2].clone()]
        } else {
            argv
        };
        code.run(argv.into(), at, user.as_deref());
    }
    code
}

/// What `isspace` takes for one.
const SPACE: [char; 5] = [' ', '\t', '\r', '\u{b}', '\u{c}'];

/// Whose rights, and the command.
fn job<'a>(line: &'a str, form: &Form) -> Option<(Option<String>, &'a str)> {
    // cronie's way to keep a run out of the log.
    let mut rest = line.strip_prefix('-').unwrap_or(line);
    let fields = match form {
        Form::Anacron => 3,
        _ if rest.starts_with('@') => 1,
        _ => 5,
    };
    for field in 0..fields {
        let word = word(&mut rest)?;
        let is_name = matches!(form, Form::Anacron) && field == 2;
        if !is_name && !is_when(word) {
            return None;
        }
    }
    let user = match form {
        Form::System => {
            let user = word(&mut rest)?;
            // FreeBSD's has a group and a class behind it.
            not_root(user.split([':', '/']).next().unwrap_or(user))
        }
        Form::Of(user) => user.clone(),
        Form::Anacron => None,
    };
    (!rest.is_empty()).then_some((user, rest))
}

/// A field of a schedule, or a nickname for all of them.
fn is_when(word: &str) -> bool {
    const NAMES: [&str; 19] = [
        "sun", "mon", "tue", "wed", "thu", "fri", "sat", "jan", "feb", "mar", "apr", "may", "jun", "jul",
        "aug", "sep", "oct", "nov", "dec",
    ];
    if let Some(nickname) = word.strip_prefix('@') {
        return nickname.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    }
    word.split([',', '-', '/', '~', '#']).all(|part| {
        let is_number = part.chars().all(|c| c.is_ascii_digit());
        is_number || matches!(part, "*" | "?") || NAMES.iter().any(|name| name.eq_ignore_ascii_case(part))
    })
}

/// An assignment: name and value without their quotes.
fn variable(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = match quoted(line) {
        Some(quoted) => quoted?,
        None => line.split_at(line.find(|c| SPACE.contains(&c) || c == '=')?),
    };
    let value = rest.trim_start_matches(SPACE).strip_prefix('=')?.trim_start_matches(SPACE);
    match quoted(value) {
        Some(quoted) => {
            let (value, rest) = quoted?;
            rest.trim_start_matches(SPACE).is_empty().then_some((name, value))
        }
        None => Some((name, value)),
    }
}

/// What stands between quotes at the start, and what follows them: None without quotes, Some(None) where they stay open.
fn quoted(text: &str) -> Option<Option<(&str, &str)>> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    Some(text[1..].split_once(quote))
}

/// The command up to the first `%`, and what it gets to read; `\%` is a percent sign.
fn at_percent(command: &str) -> (String, Option<String>) {
    let mut parts = [String::new(), String::new()];
    let mut part = 0;
    let mut characters = command.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.peek() == Some(&'%') => parts[part].extend(characters.next()),
            // Not the one that would escape a percent sign.
            '\\' if characters.peek() == Some(&'\\') => {
                parts[part].push('\\');
                parts[part].extend(characters.next());
            }
            '%' if part == 0 => part = 1,
            '%' => parts[1].push('\n'),
            other => parts[part].push(other),
        }
    }
    let [command, input] = parts;
    (command, (part == 1).then_some(input))
}
