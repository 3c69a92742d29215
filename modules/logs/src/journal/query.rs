//! A query for entries of the journal, and the command line for it.

use linux_sysadmin_sdk::{DurationCategory, Keep, Privilege, prelude::*};

use crate::level::Level;
use crate::time_range::Range;

/// The options of every call. Without `--all`, a field above 4 KiB would be null. With `--quiet`, journalctl would not say
/// why there is nothing.
const FIXED: &[&str] = &[
    "--no-pager",
    "--all",
    "--output=json",
    "--output-fields=MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_SYSTEMD_UNIT,UNIT,_COMM",
];

/// The pattern of the grant. It spells out the boots before the current one, because no hole takes a value that begins with
/// a dash.
const PATTERN: &str = concat!(
    "journalctl --no-pager --all --output=json ",
    "--output-fields=MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_SYSTEMD_UNIT,UNIT,_COMM ",
    "[--reverse] [--lines=<int>] [--since=@<int>] [--until=@<int>] [--priority=<int>] ",
    "[(--boot=-1|--boot=-2|--boot=-3|--boot=-4|--boot=-5|--boot=-6|--boot=-7|--boot=-8|--boot=-9|--boot=<text>)] ",
    "[--after-cursor=<text>] [(--case-sensitive=true|--case-sensitive=false) --grep=<text>] ",
    "[(--unit=<unit>|--unit=<unit>'@*.service')]... [--identifier=<text>]... [-- <text>...]"
);

/// The grant to read the journal. Root and the groups adm and systemd-journal see all of it.
pub(crate) fn grant() -> CommandGrant {
    CommandGrant::read(PATTERN, "messages of the journal, by unit, identifier, priority, time and field")
        .as_root_if_available()
}

/// A query for entries of the journal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    /// The units, with their suffixes. A template stands for its instances.
    pub(crate) units: Vec<String>,
    pub(crate) identifiers: Vec<String>,
    pub(crate) priority: Option<Level>,
    /// The boot: 0 for the current one, -1 for the one before, or an id.
    pub(crate) boot: Option<String>,
    pub(crate) range: Range,
    pub(crate) after_cursor: Option<String>,
    /// Conditions of the form `FIELD=value`.
    pub(crate) fields: Vec<String>,
    /// Words of which each entry must have one. Empty for no such condition.
    pub(crate) words: Vec<String>,
    pub(crate) ignores_case: bool,
}

impl Query {
    /// Whether the newest entries come first. With `--since` and `--lines`, journalctl 252 counts from the start and prints
    /// the oldest entries, unless `--reverse` makes it start at the end.
    pub(super) fn is_backwards(&self, lines: Option<usize>) -> bool {
        lines.is_some() && self.range.since.is_some() && self.after_cursor.is_none()
    }

    /// The command that prints the newest `lines` entries, or all. The oldest comes first, unless the command
    /// [goes backwards](Self::is_backwards).
    pub(crate) fn command(&self, lines: Option<usize>) -> Command {
        let mut command = Command::new("journalctl").args(FIXED.iter().copied());
        let is_backwards = self.is_backwards(lines);
        command.args.extend(is_backwards.then(|| "--reverse".to_owned()));
        let mut option = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                command.args.push(format!("--{name}={value}"));
            }
        };
        option("lines", lines.map(|lines| lines.to_string()));
        option("since", self.range.since.map(|since| format!("@{since}")));
        // journalctl leaves out entries within the last second, after its start.
        option("until", self.range.until.map(|until| format!("@{}", until + 1)));
        option("priority", self.priority.map(|level| level.0.to_string()));
        option("boot", self.boot.clone());
        option("after-cursor", self.after_cursor.clone());
        if !self.words.is_empty() {
            option("case-sensitive", Some((!self.ignores_case).to_string()));
            option("grep", Some(alternatives(&self.words)));
        }
        for unit in &self.units {
            option("unit", Some(unit.replace("@.service", "@*.service")));
        }
        for identifier in &self.identifiers {
            option("identifier", Some(identifier.clone()));
        }
        if !self.fields.is_empty() {
            command = command.arg("--").args(self.fields.iter().cloned());
        }
        command.keep = if is_backwards { Keep::Head } else { Keep::Tail };
        command.privilege(Privilege::RootIfAvailable).duration(DurationCategory::Quick)
    }

    /// Checks a caller's units, identifiers, fields and boot.
    pub(crate) fn check(&self) -> Result<()> {
        let is_odd = |name: &str, marks: &[u8]| {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || marks.contains(&byte);
            name.is_empty() || name.len() > 255 || name.starts_with('-') || !name.bytes().all(fits)
        };
        if let Some(unit) = self.units.iter().find(|unit| is_odd(unit, br":_.\@-*?[]")) {
            let message = format!(
                "{unit:?} is no name of a unit; expected one like `nginx`, `ssh.service` or `getty@*`"
            );
            return Err(Problem::validation("INVALID_UNIT", message));
        }
        if let Some(identifier) = self.identifiers.iter().find(|identifier| is_odd(identifier, b" :_./()@+-"))
        {
            let message =
                format!("{identifier:?} is no identifier of syslog; expected a program's name, as `sudo`");
            return Err(Problem::validation("INVALID_IDENTIFIER", message));
        }
        for field in &self.fields {
            let name = field.split_once('=').map(|(name, _)| name).unwrap_or_default();
            let is_name = !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
            if !is_name {
                let message = format!(
                    "{field:?} is no field of the journal; expected `_UID=1000`, `_TRANSPORT=kernel`"
                );
                return Err(Problem::validation("INVALID_FIELD", message));
            }
        }
        if let Some(boot) = &self.boot {
            let is_id = boot.len() == 32 && boot.bytes().all(|byte| byte.is_ascii_hexdigit());
            let is_count = matches!(boot.as_bytes(), [b'0'] | [b'-', b'1'..=b'9']);
            if !is_id && !is_count {
                let message = format!(
                    "{boot:?} is no boot; expected 0 (this one), -1 to -9 (before), or an id of 32 digits"
                );
                return Err(Problem::validation("INVALID_BOOT", message));
            }
        }
        Ok(())
    }
}

/// A PCRE expression for any of the words, which needs no backtracking.
fn alternatives(words: &[String]) -> String {
    words.iter().map(|word| format!("\\Q{word}\\E")).collect::<Vec<_>>().join("|")
}

/// The longest expression for `--grep`, in bytes. A hole of a grant takes 4096 bytes.
const LONGEST_EXPRESSION: usize = 3_500;

/// Whether journalctl can search for these words.
pub(crate) fn is_askable(words: &[String]) -> bool {
    words.iter().all(|word| !word.contains("\\E")) && alternatives(words).len() <= LONGEST_EXPRESSION
}
