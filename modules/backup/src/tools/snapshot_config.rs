//! `bak_snapshot_config`: one archive of `/etc`.

use linux_sysadmin_sdk::prelude::*;

use crate::answer::{Said, failed};
use crate::destination::ARCHIVES;
use crate::engine;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct SnapshotArgs {
    /// URI or path
    destination: Option<String>,
    /// Name of the snapshot
    label: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Answer {
    /// What a dry run would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    destination: String,
    /// The archive's name at the destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    archive: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<i64>,
}

pub(crate) fn snapshot_config(args: SnapshotArgs, cx: &Context) -> Result<Noted<Answer>> {
    super::check_label(args.label.as_deref())?;
    let (destination, configs) = super::destination(args.destination.as_deref().unwrap_or(ARCHIVES), cx)?;
    if destination.is_repository() {
        let message = "an archive is no snapshot of restic: expected another destination";
        let problem = Problem::validation("INVALID_DESTINATION", message);
        return Err(problem.remedy(format!("bak_create paths=[\"/etc\"] destination={}", destination.uri())));
    }
    let mut change = Change::new(format!("Archive /etc at {}", destination.uri()));
    change = engine::installed(change, cx)?;
    if destination.uri() == format!("local://{ARCHIVES}") {
        change = engine::directory(change, ARCHIVES, 0o700, cx)?;
    }
    let change =
        destination.weighed(change, &configs).step(engine::archive(&destination, args.label.as_deref()));
    let applied = cx.apply(change).map_err(failed)?;
    let said = Said::of(&applied);
    let data = Answer {
        would: applied.dry_run.then_some("archive"),
        destination: destination.uri().to_owned(),
        archive: said.text("archive"),
        bytes: said.number("bytes"),
    };
    Ok(Noted { data, notes: said.notes() })
}
