//! Reads crontabs as Debian's cron and cronie do (`load_env` and `load_entry` of their sources), and anacron's table.
//!
//! A line that can be an assignment is one. Every other line is a comment or a job; otherwise the text is unreadable.

use std::collections::HashSet;

use super::format::not_root;
use super::harmless;
use super::words::{joined, lines, word};
use super::{Code, Schedule, shown};
use host_base::sha256;

/// The form of a crontab: the fields before a command.
pub enum Form {
    /// A schedule and an account: `/etc/crontab` and `/etc/cron.d`.
    System,
    /// A schedule, in the crontab of this account; `None` for root's.
    Account(Option<String>),
    /// A period, a delay and a name.
    Anacron,
}

/// Finds the commands that cron runs and hasn't run in the same way before: those that the former text doesn't have under the
/// same variables.
pub fn read_new(text: &str, former: Option<&str>, form: &Form) -> Code {
    match former.and_then(|former| jobs(former, form)) {
        Some(kept) => read(&without_jobs(text, &kept), form),
        None => read(text, form),
    }
}

/// A line of a crontab with a hash of the variables above it.
type LineInContext<'a> = (String, &'a str);

/// The lines of a text, each with a hash of the variables above it, and whether it sets one itself.
fn in_context(text: &str) -> impl Iterator<Item = (LineInContext<'_>, bool)> {
    let mut variables = String::new();
    lines(text).map(move |(_, line)| {
        let line = line.trim_matches(SPACE);
        let sets = !line.starts_with('#') && variable(line).is_some();
        if sets {
            variables = sha256::of(format!("{variables}\n{line}").as_bytes());
        }
        ((variables.clone(), line), sets)
    })
}

/// The jobs of a text. `None` where a line is none: cron may have left out the whole text then.
fn jobs<'a>(text: &'a str, form: &Form) -> Option<HashSet<LineInContext<'a>>> {
    let jobs = in_context(text).filter(|((_, line), sets)| !sets && !is_comment(line));
    jobs.map(|(line, _)| job(line.1, form).is_some().then_some(line)).collect()
}

/// The text without these jobs, and without the variables that hold for none of the others. Each line keeps its number.
fn without_jobs(text: &str, known: &HashSet<LineInContext<'_>>) -> String {
    let mut left = Vec::new();
    let mut end = 0;
    for (line, sets) in in_context(text) {
        let is_left = !known.contains(&line);
        left.push(if is_left { line.1 } else { "" });
        if is_left && !sets && !is_comment(line.1) {
            end = left.len();
        }
    }
    left.truncate(end);
    left.join("\n")
}

/// Whether cron skips the line.
fn is_comment(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

/// Finds the commands that cron runs.
pub fn read(text: &str, form: &Form) -> Code {
    let mut code = Code::default();
    // Only anacron joins lines. For cron a backslash at the end is part of the command.
    let lines: Vec<(usize, String)> = match form {
        Form::Anacron => joined(text),
        _ => lines(text).map(|(number, line)| (number, line.to_owned())).collect(),
    };
    let mut shell = "sh".to_owned();
    for (number, line) in lines {
        let line = line.trim_matches(SPACE);
        if is_comment(line) {
            continue;
        }
        if let Some((name, value)) = variable(line) {
            if name == "SHELL" {
                shell = value.to_owned();
            }
            if !harmless::variable(name, Some(value)) {
                let set = shown(&format!("{name}={value}"));
                // A variable in an account's own crontab can do no more than the account.
                let account = if let Form::Account(account) = form { account.as_deref() } else { None };
                let whose = account.unwrap_or("root");
                let sentence = format_args!("sets {set} for what runs as {whose}, line {number}");
                code.add_power_of(account, sentence);
            }
            continue;
        }
        let Some(Job { user, schedule, command }) = job(line, form) else {
            code.cannot_read(format!(
                "a crontab with a line that is no job: `{}`, line {number}",
                shown(line)
            ));
            continue;
        };
        let (command, input) = match form {
            Form::Anacron => (command.to_owned(), None),
            _ => split_at_percent(command),
        };
        let at = format!("line {number}");
        if user.is_none() && input.is_some_and(|input| !input.trim().is_empty()) {
            // The command may be a shell that runs its input.
            code.add_power(format_args!(
                "gives `{}` what follows its first % to read, {at}",
                shown(&command)
            ));
        }
        let argv = [shell.as_str(), "-c", &command].map(str::to_owned);
        let argv = if ["/bin/sh", "/usr/bin/sh"].contains(&shell.as_str()) {
            ["sh".to_owned(), argv[1].clone(), argv[2].clone()]
        } else {
            argv
        };
        code.run(argv.into(), at, user.as_deref());
        if let Some(line) = code.lines.last_mut() {
            line.schedule = Some(schedule);
        }
    }
    code
}

/// The characters that `isspace` accepts.
const SPACE: [char; 5] = [' ', '\t', '\r', '\u{b}', '\u{c}'];

/// The parts of a job's line.
struct Job<'a> {
    user: Option<String>,
    schedule: Schedule,
    command: &'a str,
}

/// The job in a line; `None` where the line is none.
fn job<'a>(line: &'a str, form: &Form) -> Option<Job<'a>> {
    // In cronie a leading `-` keeps the job out of the log.
    let mut rest = line.strip_prefix('-').unwrap_or(line);
    let fields = match form {
        Form::Anacron => 3,
        _ if rest.starts_with('@') => 1,
        _ => 5,
    };
    let mut times = Vec::new();
    for field in 0..fields {
        let word = word(&mut rest)?;
        let is_name = matches!(form, Form::Anacron) && field == 2;
        if !is_name && !is_schedule(word) {
            return None;
        }
        times.push(word);
    }
    let user = match form {
        Form::System => {
            let user = word(&mut rest)?;
            // In FreeBSD a group and a class may follow the account.
            not_root(user.split([':', '/']).next().unwrap_or(user))
        }
        Form::Account(user) => user.clone(),
        Form::Anacron => None,
    };
    let schedule = Schedule { is_regular: is_regular(&times, form), settings: times.join(" ") };
    (!rest.is_empty()).then_some(Job { user, schedule, command: rest })
}

/// Whether a time comes at least once in about a month: in each month there is one of the days, except perhaps in the shorter
/// ones.
fn is_regular(times: &[&str], form: &Form) -> bool {
    const NICKNAMES: [&str; 6] = ["@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@every_minute"];
    match (form, times) {
        (Form::Anacron, [period, ..]) if period.starts_with('@') => NICKNAMES.contains(period),
        (Form::Anacron, [period, ..]) => period.parse().is_ok_and(|days: u32| (1..=31).contains(&days)),
        (_, [nickname]) => NICKNAMES.contains(nickname),
        (_, [_, _, _, month, _]) => ["*", "*/1", "1-12"].contains(month),
        _ => false,
    }
}

/// Whether the word is a field of a schedule, or a nickname for a whole schedule.
fn is_schedule(word: &str) -> bool {
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

/// The name and the value of an assignment, without their quotes.
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

/// The quoted text at the start, and the text behind it. `None` without quotes, `Some(None)` where they stay open.
fn quoted(text: &str) -> Option<Option<(&str, &str)>> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    Some(text[1..].split_once(quote))
}

/// Splits a command at the first `%`. The rest is its standard input. `\%` is a percent sign.
fn split_at_percent(command: &str) -> (String, Option<String>) {
    let mut parts = [String::new(), String::new()];
    let mut part = 0;
    let mut characters = command.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.peek() == Some(&'%') => parts[part].extend(characters.next()),
            // A backslash behind a backslash does not escape a percent sign.
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
