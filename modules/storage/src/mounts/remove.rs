//! `mount_remove`: unmounts a file system and takes it out of fstab.

use linux_sysadmin_sdk::{Category, DurationCategory, prelude::*, text};

use super::add::MOUNT;
use super::devices::Devices;
use super::fstab::Table;
use super::plan::{findings, with_fstab};
use super::{busy, place, units};
use crate::mount_table::{Mount, MountTable};

const UMOUNT: CommandLine = CommandLine::new("umount -- <path>");

pub(crate) fn grants(module: Module) -> Module {
    module.command(UMOUNT.change(Risk::High, "unmount a file system"))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RemoveArgs {
    /// Mount point or device
    mount_point: String,
    /// Only unmount
    keep_fstab: Option<bool>,
}

#[derive(Serialize)]
pub(crate) struct Answer {
    /// What a dry run would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    mount_point: String,
    unmounted: bool,
    /// The numbers of the lines that were taken out of fstab.
    fstab_lines: Vec<usize>,
}

pub(crate) fn remove(args: RemoveArgs, cx: &Context) -> Result<Noted<Answer>> {
    let (mounts, table) = (MountTable::read(cx)?, Table::read(cx)?);
    let point = point(&args.mount_point, &mounts, &table, cx)?;
    place::check_removable(&point)?;
    let mount = mounts.at(&point);
    let is_kept = args.keep_fstab == Some(true);
    let known: Vec<usize> = table.at(&point).iter().map(|entry| entry.line).collect();
    let lines = if is_kept { Vec::new() } else { known.clone() };
    let mut answer = Answer {
        would: None,
        mount_point: point.clone(),
        unmounted: mount.is_some(),
        fstab_lines: lines.clone(),
    };
    if mount.is_none() && known.is_empty() {
        return Err(not_found(&point, &mounts));
    }
    if mount.is_none() && lines.is_empty() {
        return Ok(Noted {
            data: answer,
            notes: vec![format!("{point} isn't mounted: nothing was changed")],
        });
    }
    let mut change = Change::new(match is_kept {
        true => format!("Unmount {point}"),
        false => format!("Unmount {point} and take it out of fstab"),
    });
    if let Some(mount) = mount {
        if let Some(over) = mounts.hiding(mount) {
            let message = format!("{} is mounted at {}, over {point}", over.source, over.point);
            return Err(Problem::new("MOUNT_HIDDEN", Category::State, message)
                .remedy(format!("mount_remove mount_point={} keep_fstab=true", over.point)));
        }
        busy::check(&point, &mounts, cx)?;
    }
    if mounts.has_automount(&point) {
        change = change.step(units::stop_automount(&point));
    }
    if mount.is_some() {
        let umount = Step::run(UMOUNT.with([&point]).as_root().duration(DurationCategory::Slow));
        // Without an entry in fstab, no step follows that could fail.
        change = change.step(match known.is_empty() {
            true => umount,
            false => umount.undo(MOUNT.with([&point]).as_root().duration(DurationCategory::Normal)),
        });
    }
    let mut notes = Vec::new();
    if !lines.is_empty() {
        change = with_fstab(change, table.without(&lines), cx);
    }
    let applied = cx.apply(change).map_err(|failure| explained(failure.into(), mount))?;
    answer.would = applied.dry_run.then_some("unmount");
    if !applied.dry_run && !lines.is_empty() {
        notes.extend(findings(cx));
    }
    Ok(Noted { data: answer, notes })
}

/// Adds what helps where the machine that has the files doesn't answer, so that the unmount ends without success.
fn explained(problem: Problem, mount: Option<&Mount>) -> Problem {
    let has_failed = ["COMMAND_TIMEOUT", "COMMAND_FAILED"].contains(&problem.code.as_str());
    match mount.filter(|mount| has_failed && mount.may_hang()) {
        Some(mount) => problem.remedy(format!(
            "Where {} doesn't answer: command_run argv=[\"umount\",\"--force\",\"--lazy\",\"{}\"] as_root=true, then this call \
             again for fstab",
            mount.source, mount.point
        )),
        None => problem,
    }
}

/// The mount point that the caller means.
fn point(asked: &str, mounts: &MountTable, table: &Table, cx: &Context) -> Result<String> {
    let is_device = asked.starts_with("/dev/") || !asked.starts_with('/') || asked.starts_with("//");
    if !is_device || mounts.at(asked).is_some() {
        return Ok(place::checked(asked)?.to_owned());
    }
    let devices = Devices::read(cx);
    let named = devices.resolved(asked, cx).unwrap_or_default();
    let is_it = |source: &str| {
        source == asked
            || named.iter().any(|device| device.name == source)
            || devices.named(source).is_some_and(|other| other.iter().any(|device| named.contains(device)))
    };
    let mounted = mounts.all().iter().filter(|mount| is_it(&mount.source)).map(|mount| mount.point.clone());
    let written = table.entries.iter().filter(|entry| !entry.is_swap() && is_it(&entry.source));
    let mut points: Vec<String> = mounted.chain(written.map(|entry| entry.mount_point.clone())).collect();
    points.sort_unstable();
    points.dedup();
    match &points[..] {
        [] => Err(not_found(asked, mounts)),
        [point] => Ok(point.clone()),
        several => {
            let message = format!(
                "{} is mounted at {}: expected one mount point",
                text::excerpt(asked, 120),
                text::list(several, 6)
            );
            Err(Problem::validation("MOUNT_AMBIGUOUS", message))
        }
    }
}

fn not_found(asked: &str, mounts: &MountTable) -> Problem {
    let message = format!("{} is neither mounted nor in fstab", text::excerpt(asked, 120));
    let points: Vec<&str> =
        mounts.all().iter().filter(|mount| mount.is_lasting()).map(|mount| mount.point.as_str()).collect();
    Problem::not_found("MOUNT_NOT_FOUND", message).remedy(format!("Mounted: {}", text::list(&points, 8)))
}
