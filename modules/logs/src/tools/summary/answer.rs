//! Makes the answer of `log_summary` from what was counted.

use std::collections::BTreeMap;
use std::rc::Rc;

use linux_sysadmin_sdk::prelude::*;

use super::collect::Collector;
use super::{DAY, HOUR, SHOWN};
use crate::clock::{self, SECOND};
use crate::fold::Group;
use crate::level::Level;
use crate::line::shortened;

/// The numbers of units, messages and known patterns in the answer.
const UNITS: usize = 12;
const MESSAGES: usize = 12;
const PATTERNS: usize = 15;
/// The number of restarts from which on a service counts as flapping.
const FLAPPING: u64 = 3;

#[derive(Serialize)]
pub(crate) struct Summary {
    since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    errors: u64,
    warnings: u64,
    /// The units with errors or warnings. Those with the most errors come first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    units: Vec<Unit>,
    /// The number of such units, where some are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    units_total: Option<usize>,
    /// The errors and warnings of each hour that has any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    per_hour: BTreeMap<String, (u64, u64)>,
    /// Matches of the profiles' patterns, the worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    known: Vec<Known>,
    /// The kinds of messages: the worst first, then the most frequent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Message>,
    /// The number of kinds, where some are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages_total: Option<usize>,
    /// Services that were restarted again and again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flapping: Vec<Flapping>,
    /// Processes that the kernel killed because memory was short.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    oom_kills: Vec<Killed>,
    /// The numbers of journal entries and files that were read.
    sources: Sources,
    /// The sources that were not read, with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
}

#[derive(Serialize)]
struct Unit {
    unit: Rc<str>,
    #[serde(skip_serializing_if = "is_zero")]
    errors: u64,
    #[serde(skip_serializing_if = "is_zero")]
    warnings: u64,
    first: String,
    last: String,
}

#[derive(Serialize)]
struct Message {
    unit: Rc<str>,
    level: &'static str,
    message: String,
    count: u64,
    first: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    /// True where it occurred in the last hour for the first time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    new: bool,
}

#[derive(Serialize)]
struct Known {
    profile: String,
    severity: &'static str,
    means: String,
    /// The id of a symptom in the profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    symptom: Option<String>,
    count: u64,
    last: String,
    /// The last message.
    message: String,
}

#[derive(Serialize)]
struct Flapping {
    unit: String,
    restarts: u64,
    first: String,
    last: String,
}

#[derive(Serialize)]
struct Killed {
    time: String,
    process: String,
}

#[derive(Serialize)]
struct Sources {
    journal: u64,
    files: usize,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Collector<'_> {
    pub(super) fn answer(self) -> Analysis<Summary> {
        let now = self.range.until.unwrap_or_else(|| self.clock.now());
        let hour_ago = (now - HOUR) * SECOND;
        let begins = self.range.since.unwrap_or(now - DAY);
        let mut left_out = self.left_out;
        if let Some(spent) = self.spent {
            left_out.insert(0, format!("incomplete: {}", spent.text()));
        }
        left_out.truncate(20);

        let (errors, warnings) =
            self.hours.values().fold((0, 0), |sum, hour| (sum.0 + hour.0, sum.1 + hour.1));
        let mut tallies: Vec<_> = self.tallies.into_iter().collect();
        tallies.sort_by(|(a, one), (b, other)| {
            (other.errors, other.warnings).cmp(&(one.errors, one.warnings)).then_with(|| a.cmp(b))
        });
        let units_total = (tallies.len() > UNITS).then_some(tallies.len());
        let units = tallies.into_iter().take(UNITS).map(|(unit, tally)| Unit {
            unit,
            errors: tally.errors,
            warnings: tally.warnings,
            first: clock::text(tally.first.unwrap_or_default()),
            last: clock::text(tally.last.unwrap_or_default()),
        });
        let units: Vec<_> = units.collect();

        let mut known: Vec<_> = self.known.into_iter().collect();
        let of = |(profile, number): (usize, usize)| {
            let patterns = &self.patterns[profile];
            (patterns.profile, patterns.patterns[number].pattern)
        };
        known.sort_by_key(|(at, count)| {
            (std::cmp::Reverse(of(*at).1.severity as u8), std::cmp::Reverse(count.count), *at)
        });
        let known: Vec<_> = known
            .into_iter()
            .take(PATTERNS)
            .map(|(at, count)| {
                let (profile, pattern) = of(at);
                Known {
                    profile: profile.id.clone(),
                    severity: pattern.severity.name(),
                    means: pattern.means.clone(),
                    symptom: pattern.symptom.clone(),
                    count: count.count,
                    last: clock::text(count.last),
                    message: count.message,
                }
            })
            .collect();

        let mut groups: Vec<Group> = self.groups.into_groups().collect();
        let messages_total = (groups.len() > MESSAGES).then_some(groups.len());
        // Errors come before warnings, and frequent messages before rare and older ones.
        let is_new =
            |group: &Group| group.first.is_some_and(|first| first >= hour_ago) && begins < now - HOUR;
        let rank = |group: &Group| {
            let level = group.line.level.unwrap_or(Level::WARNING);
            (level > Level::ERROR, level > Level::CRITICAL, std::cmp::Reverse(group.count))
        };
        groups.sort_by(|a, b| {
            rank(a)
                .cmp(&rank(b))
                .then_with(|| b.last.cmp(&a.last))
                .then_with(|| a.line.message.cmp(&b.line.message))
        });
        let new = groups.iter().filter(|group| is_new(group)).count();
        let chosen = chosen(&groups, &is_new);
        let messages: Vec<_> = chosen
            .into_iter()
            .map(|group| Message {
                unit: group.line.unit.clone().unwrap_or_else(|| group.line.source.clone()),
                level: group.line.level.map_or("warning", Level::name),
                message: shortened(&group.line.message, SHOWN),
                count: group.count,
                first: clock::text(group.first.unwrap_or_default()),
                last: group.last.filter(|_| group.count > 1).map(clock::text),
                new: is_new(group),
            })
            .collect();

        let flapping: Vec<_> = self
            .restarts
            .into_iter()
            .filter(|(_, (count, ..))| *count >= FLAPPING)
            .map(|(unit, (restarts, first, last))| Flapping {
                unit,
                restarts,
                first: clock::text(first),
                last: clock::text(last),
            })
            .collect();
        let oom_kills: Vec<_> = self
            .killed
            .into_iter()
            .rev()
            .take(10)
            .map(|(at, process)| Killed { time: clock::text(at), process })
            .collect();

        let worst = known.iter().filter(|known| known.severity == "critical").count();
        let is_bad = known.iter().any(|known| known.severity == "error") || errors > 0;
        let severity = if !oom_kills.is_empty() || worst > 0 {
            Severity::High
        } else if !flapping.is_empty() || is_bad || warnings > 0 {
            Severity::Warning
        } else {
            Severity::Info
        };
        let mut said =
            vec![format!("{errors} errors and {warnings} warnings since {}", clock::text(begins * SECOND))];
        said.extend(
            units
                .first()
                .filter(|unit| unit.errors > 0)
                .map(|unit| format!("most errors from {} ({})", unit.unit, unit.errors)),
        );
        said.extend(
            known.first().map(|known| format!("{}: {} ({} times)", known.profile, known.means, known.count)),
        );
        said.extend(
            flapping
                .iter()
                .max_by_key(|unit| unit.restarts)
                .map(|unit| format!("{} was started again {} times", unit.unit, unit.restarts)),
        );
        said.extend(
            oom_kills
                .first()
                .map(|killed| format!("the kernel killed {} for want of memory", killed.process)),
        );
        if new > 0 {
            said.push(format!("{new} kinds of messages are new within the last hour"));
        }
        if self.spent.is_some() {
            said.push("not everything could be looked at".to_owned());
        }
        let hour = |hour: i64| clock::text(hour * HOUR * SECOND)[..13].to_owned();
        let data = Summary {
            since: clock::text(begins * SECOND),
            until: self.range.until.map(|until| clock::text(until * SECOND)),
            errors,
            warnings,
            units,
            units_total,
            per_hour: self.hours.into_iter().rev().take(48).map(|(at, counts)| (hour(at), counts)).collect(),
            known,
            messages,
            messages_total,
            flapping,
            oom_kills,
            sources: Sources { journal: self.journal, files: self.files },
            left_out,
        };
        Analysis { data, summary: said.join("; "), severity }
    }
}

/// The first groups of the ranking. New groups that rank lower replace some of the last ones.
fn chosen<'g>(groups: &'g [Group], is_new: &impl Fn(&Group) -> bool) -> Vec<&'g Group> {
    let mut chosen: Vec<_> = groups.iter().take(MESSAGES).collect();
    let others = groups.iter().skip(MESSAGES).filter(|group| is_new(group)).take(MESSAGES / 3);
    let others: Vec<_> = others.collect();
    chosen.truncate(MESSAGES - others.len().min(MESSAGES));
    chosen.extend(others);
    chosen
}
