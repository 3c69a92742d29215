//! `bak_schedule`: a backup that is made regularly, with a retention.

use linux_sysadmin_sdk::prelude::*;

use super::Dump;
use crate::destination::{self, Destination};
use crate::engine;
use crate::schedule::config::{self, Config, Keep};
use crate::schedule::{start, when::When};

/// What is kept where the caller doesn't say.
const KEEP: Keep = Keep { daily: 7, weekly: 4, monthly: 6 };

/// The most backups of one kind.
const MOST: u32 = 3660;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ScheduleArgs {
    /// Its name
    name: String,
    /// cron, HH:MM or daily
    schedule: Option<String>,
    /// Backed up
    paths: Option<Vec<String>>,
    /// URI or path
    destination: Option<String>,
    /// Left out
    exclude: Option<Vec<String>>,
    /// Dumped first
    dump: Option<Vec<Dump>>,
    /// Daily ones kept
    keep_daily: Option<i64>,
    /// Weekly ones kept
    keep_weekly: Option<i64>,
    /// Monthly ones kept
    keep_monthly: Option<i64>,
    /// End the schedule
    remove: Option<bool>,
}

#[derive(Serialize)]
pub(crate) struct Answer {
    schedule: String,
    /// What a dry run would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    when: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep: Option<Keep>,
    /// The file that says what is backed up.
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

pub(crate) fn schedule(args: ScheduleArgs, cx: &Context) -> Result<Noted<Answer>> {
    check_name(&args.name)?;
    let configs = destination::configured(cx)?;
    let former = configs.iter().find(|config| config.name == args.name).cloned();
    if args.remove.unwrap_or_default() {
        return remove(&args.name, former, &configs, cx);
    }
    let (config, when) = wanted(args, former.as_ref(), &configs)?;
    if former.as_ref() == Some(&config)
        && !start::states(&[&config.name], cx).iter().any(|state| state.off)
        && engine::ready(cx).is_ok()
    {
        let data = Answer {
            schedule: config.name.clone(),
            would: None,
            when: Some(when.cron),
            keep: Some(config.keep),
            file: Config::path(&config.name),
            next: None,
        };
        return Ok(Noted { data, notes: vec!["it is scheduled so already".to_owned()] });
    }
    let mut change = Change::new(format!(
        "Back up {} to {} by the schedule {}",
        config.paths.join(", "),
        config.destination,
        config.name
    ));
    change = engine::installed(change, cx)?;
    change = engine::directory(change, "/etc/linux-sysadmin", 0o755, cx)?;
    change = engine::directory(change, config::DIRECTORY, 0o700, cx)?;
    change = Destination::checked(&config.destination)?.weighed(change, &configs);
    let path = Config::path(&config.name);
    change = change.step(Step::write(&path, config.text()).mode(0o600).owner("root", "root"));
    change = start::started(change, &config, &when, former.is_none(), cx)?;
    let applied = cx.apply(change)?;
    let next = match applied.dry_run {
        true => None,
        false => start::states(&[&config.name], cx).pop().and_then(|state| state.next),
    };
    let would = applied.dry_run.then_some(if former.is_some() { "change" } else { "schedule" });
    let data = Answer {
        schedule: config.name,
        would,
        when: Some(when.cron),
        keep: Some(config.keep),
        file: path,
        next,
    };
    let notes = match applied.dry_run {
        true => Vec::new(),
        false => vec![format!(
            "it hasn't run yet: bak_create makes a first backup at once, bak_destinations tells what came of the runs"
        )],
    };
    Ok(Noted { data, notes })
}

fn check_name(name: &str) -> Result<()> {
    let is_plain = (1..=40).contains(&name.len())
        && !name.starts_with('-')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    match is_plain {
        true => Ok(()),
        // cron ignores files with other characters in their names.
        false => Err(Problem::validation(
            "INVALID_SCHEDULE_NAME",
            format!("{name:?}: expected 1 to 40 of A-Z a-z 0-9 _ -"),
        )),
    }
}

/// The schedule that the caller wants. What an existing one has and the caller doesn't say stays.
fn wanted(args: ScheduleArgs, former: Option<&Config>, configs: &[Config]) -> Result<(Config, When)> {
    let missing = |what: &str| {
        Problem::validation(
            "INVALID_ARGUMENTS",
            format!("a new schedule needs schedule, paths and destination: {what} is missing"),
        )
    };
    let paths = args.paths.map(|paths| super::checked_paths(paths, 1)).transpose()?;
    let kept = |of: fn(&Config) -> &Vec<String>| former.map(of).cloned();
    let paths = paths.or(kept(|former| &former.paths)).ok_or_else(|| missing("paths"))?;
    let excludes = args.exclude.or(kept(|former| &former.excludes)).unwrap_or_default();
    super::check_excludes(&excludes)?;
    let dumps = args.dump.map(|dumps| Dump::names(&dumps).into_iter().map(str::to_owned).collect());
    let dumps = dumps.or(kept(|former| &former.dumps)).unwrap_or_default();
    let text = args
        .schedule
        .or_else(|| former.map(|former| former.schedule.clone()))
        .ok_or_else(|| missing("schedule"))?;
    let when = When::checked(&text)?;
    let destination = args
        .destination
        .or_else(|| former.map(|former| former.destination.clone()))
        .ok_or_else(|| missing("destination"))?;
    let destination = Destination::named(&destination, configs)?;
    let before = former.map_or(KEEP, |former| former.keep);
    let number = |given: Option<i64>, before: u32, least: u32| match given.map(u32::try_from) {
        None => Ok(before),
        Some(Ok(number)) if (least..=MOST).contains(&number) => Ok(number),
        Some(_) => {
            let message =
                format!("keep_daily is 1 to {MOST}, keep_weekly and keep_monthly are each 0 to {MOST}");
            Err(Problem::validation("INVALID_ARGUMENTS", message))
        }
    };
    let keep = Keep {
        daily: number(args.keep_daily, before.daily, 1)?,
        weekly: number(args.keep_weekly, before.weekly, 0)?,
        monthly: number(args.keep_monthly, before.monthly, 0)?,
    };
    let config = Config {
        name: args.name,
        destination: destination.uri().to_owned(),
        schedule: when.cron.clone(),
        paths,
        excludes,
        dumps,
        keep,
    };
    Ok((config, when))
}

fn remove(name: &str, former: Option<Config>, configs: &[Config], cx: &Context) -> Result<Noted<Answer>> {
    let Some(former) = former else {
        let known: Vec<_> = configs.iter().map(|config| config.name.as_str()).collect();
        let problem = Problem::not_found("SCHEDULE_NOT_FOUND", format!("there is no schedule {name}"));
        return Err(match known.is_empty() {
            true => problem,
            false => problem.remedy(format!("There are: {}", known.join(", "))),
        });
    };
    let path = Config::path(name);
    let change = start::stopped(Change::new(format!("Remove the schedule {name}")), name, cx);
    let applied = cx.apply(change.step(Step::remove(&path)))?;
    let would = applied.dry_run.then_some("remove");
    let data = Answer { schedule: name.to_owned(), would, when: None, keep: None, file: path, next: None };
    Ok(Noted { data, notes: vec![format!("its backups stay at {}", former.destination)] })
}
