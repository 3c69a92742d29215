//! `perf_top_processes`: shows the processes that use the most CPU or memory.

use linux_sysadmin_sdk::{prelude::*, processes};

use crate::sample::Interval;
use crate::sources::process::{self, Process, ShownProcess, Sort};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct TopArgs {
    /// Default: cpu
    sort: Option<Sort>,
    /// 0, or at least 100
    #[schemars(range(max = 10000))]
    sample_ms: Option<u32>,
}

pub(crate) fn top_processes(args: TopArgs, cx: &Context) -> Result<Listing<ShownProcess>> {
    let interval = Interval::take(cx, args.sample_ms, || processes::stat_paths(cx))?;
    let mut found = process::processes(&interval);
    if found.is_empty() {
        return Err(processes::none());
    }
    process::sort(&mut found, args.sort.unwrap_or(Sort::Cpu));
    let hidden = processes::hidden(found.iter().map(|process| &process.stat));
    let (found, total) = wanted(found, cx.limit(), cx.filter());
    let within = interval.cpu_within_pct();
    let mut notes = Vec::from_iter(
        within.map(|within| format!("cpu_pct is right to within {within}, where 100 is one core")),
    );
    notes.extend(hidden);
    Ok(Listing { items: process::look_up(cx, found), total, notes })
}

/// The processes to look up, and their number before the limit. Without a filter, these are only the ones in the answer,
/// because each command line is a file. A filter may match a command line, and therefore needs all of them.
fn wanted(
    mut processes: Vec<Process>,
    limit: Option<u32>,
    filter: Option<&str>,
) -> (Vec<Process>, Option<u64>) {
    match (limit, filter) {
        (Some(limit), None) => {
            let total = processes.len() as u64;
            processes.truncate(limit as usize);
            (processes, Some(total))
        }
        _ => (processes, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::processes::Stat;

    #[test]
    fn a_limit_is_applied_here_and_a_filter_by_the_host() {
        let stat = Stat::parse("7 (x) S 1 1 1 0 -1 0 0 0 0 0 5 0 9 9 20 0 3 0 100 4096 25").unwrap();
        let five = vec![Process { stat, cpu_pct: 0.0 }; 5];
        let counts = |limit, filter| {
            let (processes, total) = wanted(five.clone(), limit, filter);
            (processes.len(), total)
        };
        assert_eq!(counts(Some(2), None), (2, Some(5)));
        assert_eq!(counts(Some(9), None), (5, Some(5)));
        assert_eq!(counts(Some(2), Some("x")), (5, None));
        assert_eq!(counts(None, None), (5, None));
    }
}
