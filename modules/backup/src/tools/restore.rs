//! `bak_restore`: a backup or a part of it, where it was or at another place.

use linux_sysadmin_sdk::prelude::*;

use crate::answer::{Said, failed};
use crate::destination::{self, Destination};
use crate::engine;
use crate::schedule::config::Config;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RestoreArgs {
    /// From bak_list, or latest
    backup_id: Option<String>,
    /// URI or path of the backups
    destination: String,
    /// Default: where it was
    target_path: Option<String>,
    /// Only these paths
    paths: Option<Vec<String>>,
    /// Older form of backup_id
    source: Option<String>,
}

/// Which backup goes where.
struct Request {
    destination: Destination,
    id: String,
    target: Option<String>,
}

#[derive(Serialize)]
struct Finding {
    /// `newer` or `overwritten` in a preview; `corrupt` where the backup's file isn't what was backed up.
    kind: &'static str,
    path: String,
}

#[derive(Default, Serialize)]
pub(crate) struct Answer {
    /// What a dry run would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    backup_id: String,
    /// The directory that gets the files. None where they go back to where they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overwritten: Option<i64>,
    /// Those of the overwritten ones that are newer than the backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    newer: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restored: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<i64>,
    /// The directory that has what was overwritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
}

pub(crate) fn restore(args: RestoreArgs, cx: &Context) -> Result<Noted<Answer>> {
    let paths = super::checked_paths(args.paths.unwrap_or_default(), 0)?;
    let configs = destination::configured(cx)?;
    let request = match args.source {
        Some(source) => older(&source, args.backup_id, &args.destination, &configs)?,
        None => Request {
            destination: Destination::named(&args.destination, &configs)?,
            id: args.backup_id.unwrap_or_else(|| "latest".to_owned()),
            target: args.target_path,
        },
    };
    let Request { destination, id, target } = request;
    let target = target.map(|target| super::checked_path("target_path", &target)).transpose()?;
    // The root directory is where the files were.
    let target = target.filter(|target| target != "/");
    let is_ready = engine::ready(cx);
    let id = match id.as_str() {
        "latest" if is_ready.is_ok() => super::list::latest(&destination, cx)?,
        // Without a list, the program itself finds the newest one.
        "latest" => id,
        _ => {
            super::check_id(&id)?;
            id
        }
    };
    let what = if paths.is_empty() { "everything".to_owned() } else { paths.join(", ") };
    let place = target.as_deref().unwrap_or("where it was");
    let mut change = Change::new(format!("Restore {what} of {id} from {} to {place}", destination.uri()));
    change = engine::installed(change, cx)?;
    let (step, preview) = engine::restore(&destination, target.as_deref(), &id, &paths);
    let mut notes = Vec::new();
    match is_ready {
        Ok(()) => change = change.dry_run(preview),
        Err(_) => notes.push(
            "nothing says yet what would be overwritten: the program for backups isn't installed".to_owned(),
        ),
    }
    if target.is_none() {
        change =
            change.warning("files that are live are overwritten, newer ones too; what is replaced is kept");
    }
    let applied = cx.apply(change.step(step)).map_err(failed)?;
    let said = Said::of(&applied);
    let kinds = ["corrupt", "newer", "overwritten"].into_iter();
    let findings = kinds.flat_map(|kind| said.findings(kind).map(move |(path, _)| Finding { kind, path }));
    let data = Answer {
        would: applied.dry_run.then_some("restore"),
        backup_id: said.text("id").unwrap_or(id),
        target,
        created: said.number("created"),
        overwritten: said.number("overwritten"),
        newer: said.number("newer"),
        restored: said.number("restored"),
        bytes: said.number("bytes"),
        replaced: said.text("kept"),
        findings: findings.collect(),
    };
    if data.findings.iter().any(|finding| finding.kind == "corrupt") {
        notes.push("some files were corrupt in the backup: an older backup may have them whole".to_owned());
    }
    notes.extend(said.notes());
    Ok(Noted { data, notes })
}

/// The older spelling: `source` is what is restored, and `destination` the place that gets it. The source is a destination
/// with or without the name of a backup, or such a name alone where one destination is configured.
fn older(source: &str, id: Option<String>, target: &str, configs: &[Config]) -> Result<Request> {
    let target = Some(target.to_owned());
    if super::check_id(source).is_ok() {
        let mut known: Vec<_> = configs.iter().map(|config| config.destination.as_str()).collect();
        known.dedup();
        let [only] = known.as_slice() else {
            let message =
                format!("source is {source}: expected a destination as well, such as /mnt/backups/{source}");
            return Err(Problem::validation("INVALID_ARGUMENTS", message));
        };
        return Ok(Request { destination: Destination::checked(only)?, id: source.to_owned(), target });
    }
    let source = source.trim_end_matches('/');
    match source.rsplit_once('/').filter(|(_, last)| super::check_id(last).is_ok()) {
        Some((place, last)) => {
            Ok(Request { destination: Destination::named(place, configs)?, id: last.to_owned(), target })
        }
        None => Ok(Request {
            destination: Destination::named(source, configs)?,
            id: id.unwrap_or_else(|| "latest".to_owned()),
            target,
        }),
    }
}
