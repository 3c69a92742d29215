//! `bak_create`: a backup of paths, by hard links to the one before.

use linux_sysadmin_sdk::prelude::*;

use super::Dump;
use crate::answer::{Said, failed};
use crate::engine;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CreateArgs {
    /// Backed up
    paths: Vec<String>,
    /// URI or path
    destination: String,
    /// Left out
    exclude: Option<Vec<String>>,
    /// Its name
    label: Option<String>,
    /// Dumped first
    dump: Option<Vec<Dump>>,
    /// Copy all files anew
    full: Option<bool>,
}

#[derive(Default, Serialize)]
pub(crate) struct Answer {
    /// What a dry run would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    destination: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<i64>,
    /// What isn't a link to the backup before.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_files: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<i64>,
}

pub(crate) fn create(args: CreateArgs, cx: &Context) -> Result<Noted<Answer>> {
    let paths = super::checked_paths(args.paths, 1)?;
    let excludes = args.exclude.unwrap_or_default();
    super::check_excludes(&excludes)?;
    super::check_label(args.label.as_deref())?;
    let (destination, configs) = super::destination(&args.destination, cx)?;
    let request = engine::Request {
        label: args.label.as_deref(),
        full: args.full.unwrap_or_default(),
        dumps: &Dump::names(&args.dump.unwrap_or_default()),
        excludes: &excludes,
        paths: &paths,
    };
    let anew = if destination.is_repository() { ", a new repository where there is none" } else { "" };
    let change = Change::new(format!("Back up {} to {}{anew}", paths.join(", "), destination.uri()));
    let change = destination.weighed(engine::installed(change, cx)?, &configs);
    let applied = cx.apply(change.step(engine::create(&destination, &request))).map_err(failed)?;
    let uri = destination.uri().to_owned();
    if applied.dry_run {
        let data = Answer { would: Some("back up"), destination: uri, ..Answer::default() };
        return Ok(Noted { data, notes: Vec::new() });
    }
    let said = Said::of(&applied);
    let seconds = said.number("finished").zip(said.number("started")).map(|(end, start)| end - start);
    let data = Answer {
        would: None,
        destination: uri,
        backup_id: said.text("id"),
        files: said.number("files"),
        bytes: said.number("bytes"),
        new_files: said.number("new_files"),
        new_bytes: said.number("new_bytes"),
        seconds,
    };
    Ok(Noted { data, notes: said.notes() })
}
