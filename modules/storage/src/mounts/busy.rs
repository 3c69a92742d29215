//! What keeps a file system from being unmounted: processes, mounts below it, swap files and loop devices.

use linux_sysadmin_sdk::processes::links::{self, TO_A_FILE, to_a_file};
use linux_sysadmin_sdk::processes::{self, Process};
use linux_sysadmin_sdk::{Category, DurationCategory, prelude::*, text};

use crate::mount_table::{MountTable, is_within};
use crate::swap::areas;

const BLOCKS: &str = "/sys/block";
/// The most processes that are named.
const MOST: usize = 5;

pub(crate) fn grants(module: Module) -> Module {
    module
        .path(PathGrant::read(BLOCKS, "which loop devices there are"))
        .path(PathGrant::read("/sys/block/loop*/loop/backing_file", "which files loop devices show"))
        .command(TO_A_FILE.read("which processes keep a file system busy").as_root_if_available())
}

/// A process with what it has of the file system.
struct Holder {
    process: Process,
    uses: Vec<String>,
}

/// Refuses to unmount what is in use, with the calls that free it.
pub(crate) fn check(point: &str, mounts: &MountTable, cx: &Context) -> Result<()> {
    let below: Vec<&str> = mounts.below(point).map(|mount| mount.point.as_str()).collect();
    if !below.is_empty() {
        let message = format!("{point} is busy: {} is mounted below it", text::list(&below, MOST));
        // The innermost one comes first.
        let innermost = below.iter().max_by_key(|path| path.len()).unwrap_or(&point);
        return Err(busy(message).remedy(format!("mount_remove mount_point={innermost} keep_fstab=true")));
    }
    let areas = areas::read(cx).unwrap_or_default();
    if let Some(file) = areas.iter().map(|area| &area.path).find(|path| is_within(path, point)) {
        return Err(busy(format!("{point} is busy: the swap area {file} lies on it"))
            .remedy(format!("swap_remove path={file}")));
    }
    if let Some((device, file)) = loop_device(point, cx) {
        return Err(busy(format!("{point} is busy: {device} shows the file {file} on it"))
            .remedy(format!("command_run argv=[\"losetup\",\"--detach\",\"{device}\"] as_root=true")));
    }
    let holders = holders(point, cx)?;
    // Where some processes can't be looked at, umount itself finds out.
    if holders.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = holders.iter().take(MOST).map(described).collect();
    let more = holders.len().saturating_sub(MOST);
    let others = if more == 0 { String::new() } else { format!("; and {more} more") };
    let mut problem = busy(format!("{point} is busy: {}{others}", shown.join("; ")));
    let mut units: Vec<&str> = holders.iter().filter_map(|holder| holder.process.unit.as_deref()).collect();
    units.sort_unstable();
    units.dedup();
    for unit in units.iter().filter(|unit| unit.ends_with(".service")).take(MOST) {
        problem = problem.remedy(format!("svc_stop service={unit}"));
    }
    let is_service =
        |holder: &&Holder| holder.process.unit.as_deref().is_some_and(|unit| unit.ends_with(".service"));
    let others: Vec<String> = holders
        .iter()
        .filter(|holder| !is_service(holder))
        .map(|holder| holder.process.pid.to_string())
        .collect();
    if !others.is_empty() {
        problem = problem.remedy(format!("proc_signal pid=[{}]", others.join(",")));
    }
    Err(problem)
}

/// A loop device whose file lies there, with the file.
fn loop_device(point: &str, cx: &Context) -> Option<(String, String)> {
    let names = cx.list_dir(BLOCKS).ok()?;
    let names: Vec<&String> = names.iter().filter(|name| name.starts_with("loop")).collect();
    let files = cx
        .read_all(&names.iter().map(|name| format!("{BLOCKS}/{name}/loop/backing_file")).collect::<Vec<_>>());
    let found = names.into_iter().zip(files).filter_map(|(name, file)| Some((name, file.ok()?)));
    let mut found =
        found.map(|(name, file)| (format!("/dev/{name}"), file.trim_end_matches('\n').to_owned()));
    found.find(|(_, file)| is_within(file, point))
}

fn busy(message: String) -> Problem {
    Problem::new("MOUNT_BUSY", Category::State, message)
}

/// The processes that use something at or below a mount point.
fn holders(point: &str, cx: &Context) -> Result<Vec<Holder>> {
    let output = cx.run(to_a_file(point).duration(DurationCategory::Quick))?;
    let mut uses = links::uses(links::parse(&output), point);
    let found = processes::by_pid(cx, uses.keys().copied());
    let holder = |found: processes::Found| {
        let uses = uses.remove(&found.process.pid).unwrap_or_default();
        Holder { process: found.process, uses }
    };
    Ok(found.into_values().map(holder).collect())
}

/// `PID 7 (nginx: master, started …, nginx.service, root) has fd 3 /mnt/x/log`.
fn described(holder: &Holder) -> String {
    let Holder { process, uses } = holder;
    format!("{} has {}", process.shown(), text::excerpt(&text::list(uses, 2), 200))
}
