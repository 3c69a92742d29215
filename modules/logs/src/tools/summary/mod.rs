//! `log_summary`: shows what went wrong lately, where, how often, since when, and what that means.

mod answer;
mod collect;
mod profile_patterns;
mod signs;

use std::collections::{BTreeMap, HashMap};

use linux_sysadmin_sdk::prelude::*;

use crate::budget::Budget;
use crate::clock::Clock;
use crate::fold::Groups;
use crate::text_logs::inventory;
use crate::time_range::Range;
use answer::Summary;
use collect::Collector;
use profile_patterns::ProfilePatterns;
use signs::{SIGNS, signs};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// The number of different messages that are counted.
const GROUPS: usize = 3_000;
const SHOWN: usize = 240;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// `2h`, `yesterday`; default 24h
    since: Option<String>,
    /// `1h`, `2026-03-01 10:15`
    until: Option<String>,
}

pub(crate) fn log_summary(args: Args, cx: &Context) -> Result<Analysis<Summary>> {
    let (clock, budget) = (Clock::new(cx), Budget::slow(cx));
    let since = args.since.as_deref().unwrap_or("24h");
    let files = budget.waiting(|| clock.beside(vec![inventory::command()])).remove(0);
    let range = Range::parse(Some(since), args.until.as_deref(), &clock)?;
    let logs = files.and_then(inventory::listed);
    let logs = logs.map(|(found, _)| inventory::text_logs(range, inventory::EVERYWHERE, found));
    // journalctl prints while the profiles are looked at.
    let urgent = collect::begin_urgent(cx, &budget, range)?;
    let profiles = cx.detected();
    let patterns: Vec<_> = profiles.iter().map(ProfilePatterns::new).collect();
    let mut collector = Collector {
        cx,
        clock: &clock,
        budget: &budget,
        range,
        patterns: &patterns,
        owners: HashMap::new(),
        tallies: HashMap::new(),
        hours: BTreeMap::new(),
        groups: Groups::new(GROUPS, true),
        known: HashMap::new(),
        restarts: BTreeMap::new(),
        killed: Vec::new(),
        journal: 0,
        files: 0,
        left_out: Vec::new(),
        spent: None,
        unpacking: None,
        usual_signs: signs(SIGNS),
    };
    let logs = collector.journal(urgent, logs)?;
    collector.text_logs(&profiles, logs);
    Ok(collector.answer())
}
