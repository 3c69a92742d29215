//! `bak_destinations`: the schedules, whether their destinations can be reached, and their space.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::prelude::*;

use crate::answer::Said;
use crate::destination::{self, Destination};
use crate::engine;
use crate::schedule::config::Keep;
use crate::schedule::start;

#[derive(Serialize)]
pub(crate) struct Item {
    schedule: String,
    destination: String,
    paths: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exclude: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dump: Vec<String>,
    /// When it runs: a cron expression.
    when: String,
    keep: Keep,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// The end of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    /// The problem of the schedule or of its destination, and what helps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_bytes: Option<i64>,
}

/// What a look at a destination found.
type Found = std::result::Result<(Option<i64>, Option<i64>), String>;

pub(crate) fn destinations(_: NoArgs, cx: &Context) -> Result<Listing<Item>> {
    let configs = destination::configured(cx)?;
    let mut notes = Vec::new();
    let mut found: BTreeMap<String, Found> = BTreeMap::new();
    let known =
        configs.iter().map(|config| (config.destination.clone(), Destination::checked(&config.destination)));
    let known: BTreeMap<_, _> = known.collect();
    let is_ready = engine::ready(cx).map_err(|problem| notes.push(problem.message)).is_ok();
    let checked = known.into_iter().filter_map(|(text, destination)| match destination {
        Ok(destination) => Some((text, destination)),
        Err(problem) => {
            found.insert(text, Err(problem.message));
            None
        }
    });
    let checked: Vec<_> = checked.collect();
    if is_ready {
        let outputs = cx.run_all(checked.iter().map(|(_, destination)| engine::check(destination)).collect());
        for ((text, _), output) in checked.into_iter().zip(outputs) {
            found.insert(text, space(Said::by(output)));
        }
    }
    let names: Vec<&str> = configs.iter().map(|config| config.name.as_str()).collect();
    let states = start::states(&names, cx);
    let items = configs.iter().zip(states).map(|(config, state)| {
        let mut problems = Vec::new();
        if state.failed {
            problems.push(format!(
                "the last run failed: svc_status service=linux-sysadmin-backup-{}",
                config.name
            ));
        }
        if state.off {
            problems.push("its timer is off: bak_schedule again turns it on".to_owned());
        }
        let space = found.get(&config.destination).cloned().unwrap_or(Ok((None, None)));
        let (free_bytes, total_bytes) = space.unwrap_or_else(|problem| {
            problems.push(problem);
            (None, None)
        });
        Item {
            schedule: config.name.clone(),
            destination: config.destination.clone(),
            paths: config.paths.clone(),
            exclude: config.excludes.clone(),
            dump: config.dumps.clone(),
            when: config.schedule.clone(),
            keep: config.keep,
            next: state.next,
            last: state.last,
            problems,
            free_bytes,
            total_bytes,
        }
    });
    let items: Vec<_> = items.collect();
    if items.is_empty() {
        notes = vec!["no schedule is configured: bak_schedule makes one".to_owned()];
    }
    Ok(Listing { items, total: None, notes })
}

fn space(said: Result<Said>) -> Found {
    let said = said.map_err(|problem| {
        problem.remediation.iter().fold(problem.message, |text, step| format!("{text} ({step})"))
    })?;
    if said.text("read_only").is_some() {
        return Err("it can't be written".to_owned());
    }
    let bytes = |key| said.number(key).map(|kib| kib * 1024);
    Ok((bytes("free_kib"), bytes("total_kib")))
}
