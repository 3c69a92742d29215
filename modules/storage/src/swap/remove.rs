//! `swap_remove`: a swap area is read back into memory and taken out of fstab. A file of this tool is removed.

use linux_sysadmin_sdk::{Category, prelude::*, text};

use super::add::remove_file;
use super::areas::{self, Area};
use super::{commands, list};
use crate::mounts::devices::Devices;
use crate::mounts::fstab::Table;
use crate::mounts::plan::{findings, with_fstab};
use crate::size::shown;

/// The memory that stays available beside what comes back from swap.
const LEFT: u64 = 64 << 20;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RemoveArgs {
    /// File, device or UUID=…
    path: String,
}

#[derive(Serialize)]
pub(crate) struct Answer {
    /// What a dry run would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    path: String,
    /// The amount that comes back into memory.
    used: String,
    /// The numbers of the lines that were taken out of fstab.
    fstab_lines: Vec<usize>,
    file_removed: bool,
}

pub(crate) fn remove(args: RemoveArgs, cx: &Context) -> Result<Noted<Answer>> {
    let asked = args.path;
    if asked.is_empty() || asked.starts_with('-') || asked.chars().any(char::is_control) {
        return Err(Problem::validation(
            "INVALID_PATH",
            "expected the path of a swap file, a device or UUID=…",
        ));
    }
    let (used, table, devices) = (areas::read(cx)?, Table::read(cx)?, Devices::read(cx));
    let named = devices.resolved(&asked, cx).unwrap_or_default();
    let is_it = |path: &str| path == asked || named.iter().any(|device| device.is_called(path));
    let area = used.iter().find(|area| is_it(&area.path));
    let same = |source: &str| {
        is_it(source)
            || devices.named(source).is_some_and(|other| other.iter().any(|device| named.contains(device)))
    };
    let entries = table.entries.iter().filter(|entry| entry.is_swap() && same(&entry.source));
    let lines: Vec<usize> = entries.map(|entry| entry.line).collect();
    let is_ours = areas::is_ours(&asked) && is_there(&asked, cx)?;
    if area.is_none() && lines.is_empty() && !is_ours {
        return Err(not_found(&asked, &used));
    }
    let mut change = Change::new(format!("Use {asked} as swap no more"));
    let mut notes = Vec::new();
    if let Some(area) = area {
        check_room(area, &used, cx)?;
        let priority = u16::try_from(area.priority).ok();
        change = change.step(Step::run(commands::off(&area.path)).undo(commands::on(&area.path, priority)));
        if area.is_zram() {
            notes.push(
                "what made this area (zram-generator, zramswap) makes it again at the next start".to_owned(),
            );
        }
    }
    if !lines.is_empty() {
        change = with_fstab(change, table.without(&lines), cx);
    }
    if is_ours {
        change = change.step(Step::run(remove_file(&asked)));
    } else if area.is_some_and(|area| area.kind == "file") {
        notes.push(format!("{asked} stays: file_remove path={asked} frees its room"));
    }
    let in_use = shown(area.map_or(0, |area| area.used));
    let applied = cx.apply(change)?;
    if !applied.dry_run && !lines.is_empty() {
        notes.extend(findings(cx));
    }
    let would = applied.dry_run.then_some("remove");
    let data = Answer { would, path: asked, used: in_use, fstab_lines: lines, file_removed: is_ours };
    Ok(Noted { data, notes })
}

/// Whether a file of this tool is there.
fn is_there(path: &str, cx: &Context) -> Result<bool> {
    let found = cx.files_as(linux_sysadmin_sdk::Privilege::Root).stat_all(&[path]).remove(0)?;
    Ok(found.is_some_and(|found| !found.is_dir && !found.is_symlink))
}

/// Refuses what memory and the other areas have no room for: the kernel would kill processes.
fn check_room(area: &Area, all: &[Area], cx: &Context) -> Result<()> {
    if area.path.ends_with(" (deleted)") {
        let message =
            format!("{} was deleted while it was in use: only a restart of the machine frees it", area.path);
        return Err(Problem::new("SWAP_FILE_DELETED", Category::State, message));
    }
    let meminfo = cx.read(areas::MEMORY)?;
    let memory =
        areas::available_memory(&meminfo).ok_or_else(|| Problem::unexpected(areas::MEMORY, &meminfo))?;
    let others: u64 =
        all.iter().filter(|other| *other != area).map(|other| other.size.saturating_sub(other.used)).sum();
    let room = memory.saturating_add(others).saturating_sub(LEFT);
    if area.used <= room {
        return Ok(());
    }
    let message = format!(
        "{} of {} are in use, and there is room for {}: memory has {}, other swap areas {}, and {} have to stay free",
        shown(area.used),
        area.path,
        shown(room),
        shown(memory),
        shown(others),
        shown(LEFT)
    );
    let mut problem = Problem::new("SWAP_NEEDED", Category::Resource, message);
    for (process, bytes) in list::most(cx).unwrap_or_default() {
        let what = format!(
            "PID {} ({}) has {} in swap",
            process.pid,
            text::excerpt(&process.command, 80),
            shown(bytes)
        );
        problem = problem.remedy(match process.unit.filter(|unit| unit.ends_with(".service")) {
            Some(unit) => format!("svc_restart service={unit}: {what}"),
            None => what,
        });
    }
    Err(problem.remedy("Or swap_add another area first"))
}

fn not_found(asked: &str, used: &[Area]) -> Problem {
    let message = format!("{} is neither in use as swap nor in fstab", text::excerpt(asked, 120));
    let paths: Vec<&str> = used.iter().map(|area| area.path.as_str()).collect();
    let in_use = if paths.is_empty() { "nothing".to_owned() } else { text::list(&paths, 6) };
    Problem::not_found("SWAP_NOT_FOUND", message).remedy(format!("In use: {in_use}"))
}
