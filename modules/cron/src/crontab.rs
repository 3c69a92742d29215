//! A crontab as text: its lines that are jobs, and how a line is added or removed without a change of any other byte.
//!
//! Lines are read as Debian's cron and cronie read them (`load_env` and `load_entry` of their sources): a line that can
//! be an assignment is one. A line that is neither an assignment nor a comment has to be a job.

use std::collections::HashMap;
use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::expression::Expression;
use crate::parse::{Dialect, parse_as};

/// Debian's cron refuses a command of this many bytes (`MAX_COMMAND`); cronie takes 131,071.
const DEBIANS_COMMAND: usize = 999;

/// The number of hex digits of an entry's id: 48 bits.
const ID_DIGITS: usize = 12;

/// Variables that tell cron how to run a job. Answers show only the names of all other variables, because a value may be
/// a password.
const SHOWN: [&str; 9] = [
    "CONTENT_TRANSFER_ENCODING",
    "CONTENT_TYPE",
    "CRON_TZ",
    "HOME",
    "MAILFROM",
    "MAILTO",
    "PATH",
    "RANDOM_DELAY",
    "SHELL",
];

/// The form of a crontab's lines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The lines of an account's own crontab, which name no account.
    Users,
    /// The lines of `/etc/crontab` and `/etc/cron.d`, which name the account before the command.
    System,
}

/// A line that is neither empty, nor a comment, nor an assignment.
pub(crate) struct Job {
    /// The fields or the nickname, with one blank between the words.
    pub(crate) schedule: String,
    /// The account that the line names, in a crontab of the system.
    pub(crate) user: Option<String>,
    /// The command as written, including `%`.
    pub(crate) command: String,
    /// The schedule, if it is valid.
    pub(crate) expression: Option<Expression>,
    /// The reason why the schedule isn't valid, or why cron refuses the line.
    pub(crate) error: Option<String>,
}

/// A job with its place in the crontab.
pub(crate) struct PlacedJob<'a> {
    /// The line number, from 1.
    pub(crate) line: usize,
    /// The bytes of the line, including its newline.
    pub(crate) range: Range<usize>,
    /// The line without its newline.
    pub(crate) text: &'a str,
    /// The number of earlier lines with the same text.
    pub(crate) occurrence: usize,
    pub(crate) job: Job,
    /// The assignments above the line that apply to it, as names and values.
    pub(crate) environment: Vec<(String, String)>,
}

impl PlacedJob<'_> {
    /// An id of this line in that account's crontab. It stays the same as long as the line does.
    pub(crate) fn id(&self, user: &str) -> String {
        let digest = Sha256::digest(format!("{user}\0{}\0{}", self.text, self.occurrence));
        let mut id: String = digest.iter().take(ID_DIGITS / 2).map(|byte| format!("{byte:02x}")).collect();
        id.truncate(ID_DIGITS);
        id
    }
}

/// The jobs of a crontab in their order, including invalid ones.
pub(crate) fn jobs(text: &str, form: Form, dialect: Dialect) -> Vec<PlacedJob<'_>> {
    let mut jobs = Vec::new();
    let mut environment: Vec<(String, String)> = Vec::new();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut start = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let range = start..start + line.len();
        start = range.end;
        let line = line.strip_suffix('\n').unwrap_or(line);
        let body = line.trim_start_matches([' ', '\t']);
        if body.is_empty() || body.starts_with('#') {
            continue;
        }
        if let Some((name, value)) = variable(body, dialect) {
            environment.retain(|(known, _)| *known != name);
            environment.push((name, value));
            continue;
        }
        let count = seen.entry(line).or_default();
        jobs.push(PlacedJob {
            line: index + 1,
            range,
            text: line,
            occurrence: *count,
            job: job(body, form, dialect),
            environment: environment.clone(),
        });
        *count += 1;
    }
    jobs
}

/// Splits an assignment into its name and its value, without quotes.
pub(crate) fn variable(text: &str, dialect: Dialect) -> Option<(String, String)> {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\u{b}' | '\u{c}');
    let (name, rest) = match quoted(text) {
        Some(quoted) => quoted?,
        None => text.split_at(text.find(|c| is_space(c) || c == '=')?),
    };
    if name.contains('=') {
        return None;
    }
    let value = rest.trim_start_matches(is_space).strip_prefix('=')?.trim_start_matches(is_space);
    let value = match quoted(value) {
        Some(quoted) => {
            let (value, rest) = quoted?;
            rest.trim_start_matches(is_space).is_empty().then_some(value)?
        }
        // Debian's cron doesn't read `A=` as an assignment, so that the line is an invalid job.
        None if value.is_empty() && dialect == Dialect::Debian => return None,
        None => value.trim_end_matches(is_space),
    };
    Some((name.to_owned(), value.to_owned()))
}

/// The text between quotes at the start, and the text after them. `None` without quotes, `Some(None)` where they aren't
/// closed.
fn quoted(text: &str) -> Option<Option<(&str, &str)>> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    Some(text[1..].split_once(quote))
}

/// Reads a line that has no blanks at its start and is neither a comment nor an assignment.
pub(crate) fn job(text: &str, form: Form, dialect: Dialect) -> Job {
    // cronie doesn't log the runs of such a line.
    let mut rest = if dialect == Dialect::Debian { text } else { text.strip_prefix('-').unwrap_or(text) };
    let fields = if rest.starts_with('@') { 1 } else { 5 };
    let mut words = Vec::new();
    for _ in 0..fields {
        words.extend(word(&mut rest));
    }
    let schedule = words.join(" ");
    let user = if form == Form::System { word(&mut rest).map(str::to_owned) } else { None };
    let (expression, mut error) = match parse_as(&schedule, dialect) {
        Ok(expression) => (Some(expression), None),
        Err(problems) => {
            let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
            (None, Some(problems.join("; ")))
        }
    };
    error = error.or_else(|| match rest {
        _ if form == Form::System && user.is_none() => Some("no user and no command".to_owned()),
        "" => Some("no command".to_owned()),
        _ if rest.starts_with('*') => {
            Some("the command begins with `*`: that is a field too many".to_owned())
        }
        _ if dialect == Dialect::Debian && rest.len() >= DEBIANS_COMMAND => Some(format!(
            "a command of {} bytes: Debian's cron takes less than {DEBIANS_COMMAND}",
            rest.len()
        )),
        _ => None,
    });
    Job { schedule, user, command: rest.to_owned(), expression, error }
}

/// Takes the next word and the blanks after it.
fn word<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let (word, after) = rest.split_at(rest.find([' ', '\t']).unwrap_or(rest.len()));
    *rest = after.trim_start_matches([' ', '\t']);
    (!word.is_empty()).then_some(word)
}

/// The variables as an answer shows them: with values only where cron itself reads the variable.
pub(crate) fn shown(environment: &[(String, String)]) -> Vec<String> {
    let shown = environment.iter().map(|(name, value)| match SHOWN.contains(&name.as_str()) {
        true => format!("{name}={value}"),
        false => name.clone(),
    });
    shown.collect()
}

/// Whether a `%` ends the command and begins its standard input. `\%` is a percent sign.
pub(crate) fn has_input(command: &str) -> bool {
    before_input(command).len() < command.len()
}

/// The command without the standard input that an unescaped `%` begins.
pub(crate) fn before_input(command: &str) -> &str {
    let mut escaped = false;
    let end = command.char_indices().find(|(_, c)| {
        let ends = *c == '%' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(command, |(end, _)| &command[..end])
}

/// The text with a newline at its end. crontab refuses a text without one, even to undo a change.
pub(crate) fn ended(text: &str) -> String {
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{newline}")
}

/// The text with these lines added at its end.
pub(crate) fn with(text: &str, lines: &[String]) -> String {
    let mut text = ended(text);
    for line in lines {
        text += line;
        text.push('\n');
    }
    text
}

/// The text with this line in place of these bytes.
pub(crate) fn replaced(text: &str, range: Range<usize>, line: &str) -> String {
    ended(&format!("{}{line}\n{}", &text[..range.start], &text[range.end..]))
}

/// The text without these bytes.
pub(crate) fn without(text: &str, range: Range<usize>) -> String {
    ended(&format!("{}{}", &text[..range.start], &text[range.end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_is_one_as_cron_reads_it() {
        // Each row has a text, and what Debian's cron 3.0pl1 and cronie 1.7 read it as, by load_env of their sources.
        let table = [
            ("A=b", Some(("A", "b")), Some(("A", "b"))),
            ("A = \"b c\" ", Some(("A", "b c")), Some(("A", "b c"))),
            ("MAILTO=\"\"", Some(("MAILTO", "")), Some(("MAILTO", ""))),
            ("'A B'=c", Some(("A B", "c")), Some(("A B", "c"))),
            ("A=b # no comment ", Some(("A", "b # no comment")), Some(("A", "b # no comment"))),
            ("A=it's", Some(("A", "it's")), Some(("A", "it's"))),
            ("@daily =x", Some(("@daily", "x")), Some(("@daily", "x"))),
            ("A=b=c", Some(("A", "b=c")), Some(("A", "b=c"))),
            ("A=", None, Some(("A", ""))),
            ("A=\"b\" c", None, None),
            ("A=\"b", None, None),
            ("\"A=b", None, None),
            ("\"A=b\"=c", None, None),
            ("* * * * * FOO=1 true", None, None),
            ("@daily FOO=1 true", None, None),
            ("A b=c", None, None),
            ("word", None, None),
        ];
        for (text, debian, cronie) in table {
            for (dialect, expected) in [(Dialect::Debian, debian), (Dialect::Any, cronie)] {
                let read = variable(text, dialect);
                let read = read.as_ref().map(|(name, value)| (name.as_str(), value.as_str()));
                assert_eq!(read, expected, "{text} {dialect:?}");
            }
        }
    }

    #[test]
    fn a_percent_sign_is_a_newline_unless_escaped() {
        let table = [
            ("date +%F", true),
            (r"date +\%F", false),
            (r"date +\\%F", true),
            (r"date +\\\%F", false),
            ("true", false),
            ("%", true),
        ];
        for (command, input) in table {
            assert_eq!(has_input(command), input, "{command}");
        }
    }

    #[test]
    fn a_line_is_split_as_cron_splits_it() {
        let table = [
            (Form::Users, "*/5\t*  * * *\ttrue  x ", "*/5 * * * *", None, "true  x ", ""),
            (Form::Users, "@reboot  a % b", "@reboot", None, "a % b", ""),
            (Form::System, "17 *\t* * *\troot\tcd / && x", "17 * * * *", Some("root"), "cd / && x", ""),
            (Form::System, "@daily root", "@daily", Some("root"), "", "no command"),
            (Form::System, "1 2 3 4 5", "1 2 3 4 5", None, "", "no user and no command"),
            (Form::Users, "* * * * *", "* * * * *", None, "", "no command"),
            (Form::Users, "* * * * * * true", "* * * * *", None, "* true", "a field too many"),
            (Form::Users, "61 * * * * true", "61 * * * *", None, "true", "`61` is out of range"),
            (Form::Users, "@dayly true", "@dayly", None, "true", "no nickname"),
            (Form::Users, "5 4", "5 4", None, "", "only 2 of five fields"),
        ];
        for (form, text, schedule, user, command, error) in table {
            let read = job(text, form, Dialect::Debian);
            assert_eq!((read.schedule.as_str(), read.command.as_str()), (schedule, command), "{text}");
            assert_eq!(read.user.as_deref(), user, "{text}");
            let said = read.error.unwrap_or_default();
            assert_eq!((said.contains(error), said.is_empty()), (true, error.is_empty()), "{text}: {said}");
        }
        // In cronie the `-` keeps runs out of the log.
        assert!(job("-* * * * * true", Form::Users, Dialect::Debian).error.is_some());
        assert!(job("-* * * * * true", Form::Users, Dialect::Any).error.is_none());
    }

    #[test]
    fn debians_limit_of_a_command_is_the_one_it_was_seen_to_have() {
        // crontab 3.0pl1-162 installed 998 bytes and refused 999 as "command too long".
        for (bytes, dialect, right) in
            [(998, Dialect::Debian, true), (999, Dialect::Debian, false), (999, Dialect::Any, true)]
        {
            let read = job(&format!("* * * * * {}", "x".repeat(bytes)), Form::Users, dialect);
            assert_eq!(read.error.is_none(), right, "{bytes}");
        }
    }

    #[test]
    fn an_id_is_of_one_line_of_one_crontab() {
        let text = "* * * * * a\n* * * * * a\n* * * * * b\n";
        let found = jobs(text, Form::Users, Dialect::Debian);
        let mut ids: Vec<_> = found.iter().flat_map(|found| [found.id("ada"), found.id("bob")]).collect();
        assert!(ids.iter().all(|id| id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 6);
        // The id stays while other lines come and go.
        let later = jobs("# new\n* * * * * b\n", Form::Users, Dialect::Debian);
        assert_eq!(later[0].id("ada"), found[2].id("ada"));
    }

    #[test]
    fn only_a_jobs_own_bytes_are_added_or_taken_out() {
        let text = "# a\r\n\n\tMAILTO = x\n* * * * * é  \n\n# end";
        let found = jobs(text, Form::Users, Dialect::Any);
        assert_eq!((found.len(), found[0].line, &text[found[0].range.clone()]), (1, 4, "* * * * * é  \n"));
        assert_eq!(without(text, found[0].range.clone()), "# a\r\n\n\tMAILTO = x\n\n# end\n");
        let added = with(text, &["# c".to_owned(), "@daily x".to_owned()]);
        assert_eq!(added, format!("{text}\n# c\n@daily x\n"));
        assert_eq!(with("", &["@daily x".to_owned()]), "@daily x\n");
        assert_eq!(without("@daily x", 0..8), "");
    }

    #[test]
    fn values_that_cron_itself_doesnt_read_are_not_shown() {
        let text = "MAILTO=a\nDB_PASSWORD=hunter2\nMAILTO=b\n@daily x\nMAILTO=c\n";
        let found = jobs(text, Form::Users, Dialect::Debian);
        assert_eq!(shown(&found[0].environment), ["DB_PASSWORD", "MAILTO=b"]);
    }
}
