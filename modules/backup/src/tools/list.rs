//! `bak_list`: the backups at a destination, the newest first.

use linux_sysadmin_sdk::{prelude::*, time::rfc3339};

use crate::answer::Said;
use crate::destination::Destination;
use crate::engine;

mod snapshots;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListArgs {
    /// URI, path or schedule
    destination: String,
}

/// One backup, archive, or what is left of an interrupted backup.
#[derive(Default, Serialize)]
pub(crate) struct Item {
    pub(crate) backup_id: String,
    /// `incomplete`, or `archive` for an archive of `/etc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dumps: Vec<String>,
}

pub(crate) fn list(args: ListArgs, cx: &Context) -> Result<Listing<Item>> {
    let (destination, _) = super::destination(&args.destination, cx)?;
    Ok(at(&destination, cx)?.into())
}

/// What is at a destination.
pub(crate) fn at(destination: &Destination, cx: &Context) -> Result<Vec<Item>> {
    engine::ready(cx)?;
    let said = Said::by(cx.run(engine::list(destination)))?;
    let mut items: Vec<Item> = Vec::new();
    let mut is_inside = false;
    for line in said.lines() {
        if is_inside && line == "end" {
            is_inside = false;
        } else if is_inside {
            if let (Some(item), Some((key, value))) = (items.last_mut(), line.split_once('=')) {
                item.take(key, value);
            }
        } else if let Some(json) = line.strip_prefix("snapshots ") {
            items.extend(snapshots::items(json)?);
        } else if let Some(id) = line.strip_prefix("backup ") {
            is_inside = true;
            items.push(Item { backup_id: id.to_owned(), ..Item::default() });
        } else if let Some(id) = line.strip_prefix("incomplete ") {
            items.push(Item { backup_id: id.to_owned(), kind: Some("incomplete"), ..Item::default() });
        } else if let Some((size, id)) = line.strip_prefix("archive ").and_then(|rest| rest.split_once(' ')) {
            items.push(Item {
                backup_id: id.to_owned(),
                kind: Some("archive"),
                bytes: size.parse().ok(),
                ..Item::default()
            });
        }
    }
    // A name that is none of ours can't be asked for.
    items.retain(|item| super::time_of(&item.backup_id).is_some());
    items.sort_by(|one, other| super::time_of(&other.backup_id).cmp(&super::time_of(&one.backup_id)));
    Ok(items)
}

impl Item {
    /// Takes a line of `info`, or a tag of a snapshot.
    fn take(&mut self, key: &str, value: &str) {
        match key {
            "started" => self.created = value.parse().ok().map(rfc3339),
            "label" if !value.is_empty() => self.label = Some(value.to_owned()),
            "files" => self.files = value.parse().ok(),
            "bytes" => self.bytes = value.parse().ok(),
            "new_bytes" => self.new_bytes = value.parse().ok(),
            "path" => self.paths.push(value.to_owned()),
            "dump" => self.dumps.push(value.to_owned()),
            _ => {}
        }
    }
}

/// The newest good backup of this host, or else of any. One whose time is still to come was made by a wrong clock, and is
/// taken only where there is no other.
pub(crate) fn latest(destination: &Destination, cx: &Context) -> Result<String> {
    let mut items = at(destination, cx)?;
    items.retain(|item| item.kind.is_none());
    let hostname = cx.distro().hostname;
    let own = format!("{}-", hostname.split('.').next().unwrap_or_default());
    let now = rfc3339(cx.now() as i64).replace('T', "-").replace([':', 'Z'], "");
    let is_past = |item: &&Item| super::time_of(&item.backup_id).is_some_and(|time| time <= now.as_str());
    let is_own = |item: &&Item| item.backup_id.starts_with(&own);
    let all = || items.iter();
    let found = all().filter(is_own).find(is_past).or_else(|| all().find(is_own));
    let found = found.or_else(|| all().find(is_past)).or(items.first());
    found
        .map(|item| item.backup_id.clone())
        .ok_or_else(|| Problem::not_found("BACKUP_NOT_FOUND", format!("{} has no backup", destination.uri())))
}
