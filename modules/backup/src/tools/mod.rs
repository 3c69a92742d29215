//! The tools.

mod create;
mod destinations;
mod list;
mod restore;
mod schedule;
mod snapshot_config;
mod verify;

use linux_sysadmin_sdk::{DurationCategory, prelude::*};

use crate::destination::Destination;
use crate::schedule::config::Config;

/// The most paths and excludes of a request.
const MOST: usize = 200;

pub(crate) fn all(module: Module) -> Module {
    let slow = |tool: Tool| tool.duration(DurationCategory::Normal);
    module
        .tool(Tool::new("bak_create", "Back up paths", create::create).loses_nothing().risk(Risk::Low))
        .tool(slow(
            Tool::new("bak_list", "Backups at a destination", list::list)
                .argument_alias("path", "destination"),
        ))
        .tool(
            Tool::new("bak_verify", "Whether a backup is whole, and what is live", verify::verify)
                .duration(DurationCategory::LongRunning),
        )
        .tool(
            Tool::new("bak_restore", "Restore in place or to target_path", restore::restore)
                .risk(Risk::Critical)
                .duration(DurationCategory::LongRunning),
        )
        .tool(
            Tool::new("bak_snapshot_config", "Archive /etc", snapshot_config::snapshot_config)
                .loses_nothing()
                .risk(Risk::Low),
        )
        .tool(slow(Tool::new(
            "bak_destinations",
            "Schedules, their destinations, space",
            destinations::destinations,
        )))
        .tool(
            Tool::new("bak_schedule", "Back up regularly; `remove` ends it", schedule::schedule)
                .risk(Risk::Moderate)
                .argument_alias("retention_days", "keep_daily"),
        )
}

// A doc comment would be in the schemas, and the values say that they are strings.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(transform = without_type)]
enum Dump {
    Postgresql,
    Mariadb,
    Redis,
}

fn without_type(schema: &mut schemars::Schema) {
    schema.remove("type");
}

impl Dump {
    fn names(dumps: &[Self]) -> Vec<&'static str> {
        let name = |dump: &Self| match dump {
            Self::Postgresql => "postgresql",
            Self::Mariadb => "mariadb",
            Self::Redis => "redis",
        };
        dumps.iter().map(name).collect()
    }
}

/// Paths to back up or to restore, without slashes at their ends.
fn checked_paths(paths: Vec<String>, least: usize) -> Result<Vec<String>> {
    if !(least..=MOST).contains(&paths.len()) {
        let message = format!("paths has {} entries: expected {least} to {MOST}", paths.len());
        return Err(Problem::validation("INVALID_ARGUMENTS", message));
    }
    paths.into_iter().map(|path| checked_path("paths", &path)).collect()
}

fn checked_path(argument: &str, path: &str) -> Result<String> {
    let is_odd = |name: &str| matches!(name, "." | "..");
    if !path.starts_with('/') || path.chars().any(char::is_control) || path.split('/').any(is_odd) {
        let message = format!("{argument} has {path:?}: expected an absolute path without `..`");
        return Err(Problem::validation("INVALID_PATH", message));
    }
    let names: Vec<_> = path.split('/').filter(|name| !name.is_empty()).collect();
    Ok(format!("/{}", names.join("/")))
}

fn check_excludes(excludes: &[String]) -> Result<()> {
    let is_odd = |pattern: &String| {
        pattern.is_empty()
            || pattern.starts_with('-')
            || pattern.len() > 1000
            || pattern.chars().any(char::is_control)
    };
    match excludes.iter().find(|pattern| is_odd(pattern)) {
        Some(pattern) => {
            let message =
                format!("exclude has {pattern:?}: expected patterns of rsync, such as *.log or /srv/cache/");
            Err(Problem::validation("INVALID_ARGUMENTS", message))
        }
        None if excludes.len() > MOST => Err(Problem::validation(
            "INVALID_ARGUMENTS",
            format!("exclude: expected at most {MOST} patterns"),
        )),
        None => Ok(()),
    }
}

fn check_label(label: Option<&str>) -> Result<()> {
    let is_plain = |label: &str| {
        (1..=64).contains(&label.len())
            && !label.starts_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    match label {
        Some(label) if !is_plain(label) => {
            let message = format!("{label:?} is no label: expected 1 to 64 of A-Z a-z 0-9 . _ -");
            Err(Problem::validation("INVALID_LABEL", message))
        }
        _ => Ok(()),
    }
}

/// The name of a backup: HOST-YYYY-MM-DD-HHMMSS[-LABEL].
fn check_id(id: &str) -> Result<()> {
    let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if is_plain && !id.starts_with(['.', '-']) && id.len() <= 255 && time_of(id).is_some() {
        return Ok(());
    }
    let message =
        format!("{id:?} is no backup: expected HOST-YYYY-MM-DD-HHMMSS[-LABEL] as bak_list has it, or latest");
    Err(Problem::validation("INVALID_BACKUP_ID", message))
}

/// The part of a name that says when the backup was made, `2026-02-18-143000`.
fn time_of(id: &str) -> Option<&str> {
    let is_time = |text: &str| {
        text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 | 10 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    };
    let starts = id.match_indices('-').map(|(at, _)| at + 1);
    starts.filter_map(|at| id.get(at..at + 17)).find(|text| is_time(text))
}

/// The destination of a call, and all that is configured.
fn destination(text: &str, cx: &Context) -> Result<(Destination, Vec<Config>)> {
    let configs = crate::destination::configured(cx)?;
    Ok((Destination::named(text, &configs)?, configs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_when_it_was_made() {
        for (id, time) in [
            ("raspi5-2026-02-18-143000-pre-upgrade", Some("2026-02-18-143000")),
            ("a-b-2026-02-18-143000", Some("2026-02-18-143000")),
            ("h-2026-02-18-143000-2027-02-18-143000", Some("2026-02-18-143000")),
            ("h-2026-02-18", None),
            ("", None),
        ] {
            assert_eq!(time_of(id), time);
            assert_eq!(check_id(id).is_ok(), time.is_some());
        }
        assert!(check_id("../h-2026-02-18-143000").is_err() && check_id(".h-2026-02-18-143000").is_err());
    }
}
