//! Snapshots of restic as backups. `restic snapshots --json` has told them since 0.9; a restic from 0.17 on has numbers as well,
//! and for an older one the script keeps them as tags.

use linux_sysadmin_sdk::prelude::*;

use super::Item;
use crate::tools::time_of;

/// The directory in which dumps lie for restic.
const DUMPS: &str = "/var/backups/linux-sysadmin-dumps/";

#[derive(Deserialize)]
struct Snapshot {
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
    summary: Option<Summary>,
}

#[derive(Deserialize)]
struct Summary {
    total_files_processed: Option<i64>,
    total_bytes_processed: Option<i64>,
    data_added: Option<i64>,
}

/// The backups among the snapshots. Those whose tags are none of the script's are left out.
pub(super) fn items(json: &str) -> Result<Vec<Item>> {
    // A repository without snapshots has `null` in some versions.
    let snapshots: Option<Vec<Snapshot>> =
        serde_json::from_str(json).map_err(|_| Problem::unexpected("the list of snapshots", json))?;
    let mut items: Vec<Item> = snapshots.unwrap_or_default().into_iter().filter_map(item).collect();
    // An interrupted change of tags leaves a snapshot twice.
    items.dedup_by(|one, other| one.backup_id == other.backup_id);
    Ok(items)
}

fn item(snapshot: Snapshot) -> Option<Item> {
    let name = snapshot.tags.iter().find(|tag| !tag.contains('=') && time_of(tag).is_some())?;
    let mut item = Item { backup_id: name.clone(), created: rfc3339_of(time_of(name)?), ..Item::default() };
    for (key, value) in snapshot.tags.iter().filter_map(|tag| tag.split_once('=')) {
        item.take(key, value);
    }
    if let Some(summary) = snapshot.summary {
        item.files = summary.total_files_processed;
        item.bytes = summary.total_bytes_processed;
        item.new_bytes = summary.data_added;
    }
    item.paths = snapshot.paths.into_iter().filter(|path| !path.starts_with(DUMPS)).collect();
    Some(item)
}

/// `2026-02-18-143000` as RFC 3339.
fn rfc3339_of(time: &str) -> Option<String> {
    let (date, clock) = time.split_at_checked(10)?;
    let [hour, minute, second] = [1..3, 3..5, 5..7].map(|range| clock.get(range));
    Some(format!("{date}T{}:{}:{}Z", hour?, minute?, second?))
}
