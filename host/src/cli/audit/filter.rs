//! The options that filter records.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp};

use crate::cli::completion;
use host_audit::{Record, Snapshot};
use host_text::visible::one_line;

#[derive(Args, Clone, Debug, Default)]
pub(super) struct Filter {
    /// Show records since 2026-01-31, 2026-01-31T12:00:00 (UTC), 2026-01-31T12:00:00+02:00, or 90m, 12h, 3d ago
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub since: Option<Timestamp>,
    /// Show records until this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub until: Option<Timestamp>,
    /// Show records of this tool
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(completion::tools))]
    pub tool: Option<String>,
    /// Show records of this target
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(completion::hosts))]
    pub host: Option<String>,
    /// Show calls with this status (success, error, blocked, confirmation_required), or changes (done, undone,
    /// partly-undone, uncertain)
    #[arg(long, value_name = "STATUS")]
    pub status: Option<String>,
    /// Show changes only
    #[arg(long)]
    pub changes: bool,
    /// Show only changes whose end is not known
    #[arg(long)]
    pub unfinished: bool,
    /// Show the last N records
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: Option<u32>,
    /// A change, or the number of a record
    #[arg(value_name = "ID")]
    pub id: Option<String>,
}

/// Reads a time. Without an offset it is in UTC, as in the log.
fn time(text: &str) -> Result<Timestamp, String> {
    let ago = || {
        let span: Span = text.parse().ok()?;
        let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
        Timestamp::now().checked_sub(length).ok()
    };
    let in_utc =
        || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    text.parse().ok().or_else(in_utc).or_else(ago).ok_or_else(|| {
        "a date, a date and time, or a length of time, as 90m, 12h or 3d, is expected".to_owned()
    })
}

impl Filter {
    /// Calls `wanted` for each record that passes the filter, the oldest first. Lines that are no records are reported on
    /// `err`; the result is false then.
    pub fn each(
        &self,
        directory: &Path,
        err: &mut impl Write,
        mut wanted: impl FnMut(&Record) -> io::Result<()>,
    ) -> anyhow::Result<bool> {
        let mut last = VecDeque::new();
        let most = self.last.map(|last| last as usize);
        let mut take = |record: Record| match most {
            Some(most) => {
                if last.len() == most {
                    last.pop_front();
                }
                last.push_back(record);
                Ok(())
            }
            None => wanted(&record),
        };
        let mut all_right = true;
        let mut begun = BegunChanges::default();
        if self.unfinished {
            for change in host_audit::unfinished(directory)? {
                let subject = begun.subject_of(&change.record);
                if self.wants(&change.record, &subject) {
                    take(change.record)?;
                }
            }
        } else {
            for record in Snapshot::open(directory)?.records() {
                match record? {
                    Ok(record) => {
                        let subject = begun.subject_of(&record);
                        if self.wants(&record, &subject) {
                            take(record)?;
                        }
                    }
                    Err(unreadable) => {
                        all_right = false;
                        let text = format!("error: {unreadable}; see `linux-sysadmin audit verify`");
                        writeln!(err, "{}", one_line(&text))?;
                    }
                }
            }
        }
        last.iter().try_for_each(wanted)?;
        Ok(all_right)
    }

    fn wants(&self, record: &Record, subject: &Subject) -> bool {
        let status = record.word("status").or_else(|| record.word("outcome"));
        let is_it = |id: &String| record.change() == Some(id) || record.seq.to_string() == *id;
        self.wants_at(&record.time)
            && self.wants_subject(subject)
            && self.wants_status(status)
            && (!self.changes || record.event.starts_with("change-"))
            && self.id.as_ref().is_none_or(is_it)
    }

    /// Whether a record of this time passes.
    pub fn wants_at(&self, time: &str) -> bool {
        // All times in the log are in one format and one zone, so they can be compared as text.
        let at = |time: &Timestamp| format!("{time:.3}");
        self.since.as_ref().is_none_or(|since| *time >= *at(since))
            && self.until.as_ref().is_none_or(|until| *time <= *at(until))
    }

    /// Whether a record about this tool and this host passes.
    pub fn wants_subject(&self, subject: &Subject) -> bool {
        fits(self.tool.as_deref(), subject.tool.as_deref())
            && fits(self.host.as_deref(), subject.host.as_deref())
    }

    /// Whether a call with this status, or a change with this outcome, passes.
    pub fn wants_status(&self, status: Option<&str>) -> bool {
        fits(self.status.as_deref(), status)
    }
}

/// Whether what is wanted is what was found. Where nothing is wanted, everything passes.
fn fits(wanted: Option<&str>, found: Option<&str>) -> bool {
    wanted.is_none() || wanted == found
}
/// The tool and the host that a record is about.
#[derive(Clone, Default)]
pub(super) struct Subject {
    tool: Option<String>,
    host: Option<String>,
}

impl Subject {
    /// The tool and the host that the record itself names.
    pub fn of(record: &Record) -> Self {
        let owned = |word: Option<&str>| word.map(str::to_owned);
        Self { tool: owned(record.word("tool")), host: owned(record.word_of("target", "name")) }
    }
}

/// The subjects of changes by their ids. The end of a change doesn't repeat what its beginning said.
#[derive(Default)]
struct BegunChanges(BTreeMap<String, Subject>);

impl BegunChanges {
    fn subject_of(&mut self, record: &Record) -> Subject {
        let own = Subject::of(record);
        match (record.event.as_str(), record.word("id")) {
            ("change-begun", Some(id)) => {
                self.0.insert(id.to_owned(), own.clone());
                own
            }
            ("change-ended", Some(id)) if record.word("outcome") != Some("uncertain") => {
                self.0.remove(id).unwrap_or_default()
            }
            // A change may have several records after its beginning.
            ("change-ended" | "change-recovered", Some(id)) => self.0.get(id).cloned().unwrap_or_default(),
            _ => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_an_offset_is_in_utc() {
        for (text, moment) in [
            ("2026-01-31", "2026-01-31T00:00:00Z"),
            ("2026-01-31T12:30:00", "2026-01-31T12:30:00Z"),
            ("2026-01-31 12:30", "2026-01-31T12:30:00Z"),
            ("2026-01-31T12:30:00+02:00", "2026-01-31T10:30:00Z"),
            ("2026-01-31T12:30:00.123Z", "2026-01-31T12:30:00.123Z"),
        ] {
            assert_eq!(time(text).unwrap().to_string(), moment, "{text}");
        }
        for (text, hours) in [("90m", 1), ("12h", 11), ("3d", 71), ("2w", 14 * 24 - 1)] {
            let ago = Timestamp::now().duration_since(time(text).unwrap());
            assert_eq!((ago.as_secs() - 1) / 3600, hours, "{text}");
        }
        for text in ["", "yesterday", "2026-13-01", "3 moons"] {
            assert!(time(text).unwrap_err().contains("90m"), "{text}");
        }
    }
}
