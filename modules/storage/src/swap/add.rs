//! `swap_add`: a new swap file, or a partition as swap, now and at each start.
//!
//! The file lies in a directory of root alone, and has the mode 0600 from the moment on in which it is made. Nobody else can
//! put a file or a link in its place, or read what is swapped out.

use linux_sysadmin_sdk::{Category, DurationCategory, Privilege, prelude::*, text};

use super::areas::{self, FOLDER};
use super::commands;
use crate::mount_table::MountTable;
use crate::mounts::devices::Devices;
use crate::mounts::fstab::{Entry, Table};
use crate::mounts::place::{self, Place};
use crate::mounts::plan::{findings, with_fstab};
use crate::size::{Size, shown};

/// Where the directory for files is made, unless the caller names another place.
const USUAL: &str = "/var/lib";
/// File systems on which a file can be swap, and whose space can be taken at once: swapon(8).
const ABLE: [&str; 3] = ["ext4", "xfs", "btrfs"];
/// The room that stays free beside a new file.
const LEFT: u64 = 256 << 20;
/// The smallest area that helps anybody.
const LEAST: u64 = 16 << 20;
/// Tells one start of the machine from another.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

const ROOM: CommandLine = CommandLine::new("stat --file-system '--format=%a %S' -- <path>");
/// Makes an empty file that has its mode from the beginning.
const INSTALL: CommandLine = CommandLine::new(
    "install --mode=0600 --no-target-directory -- /dev/null <path:/**/linux-sysadmin-swap/*>",
);
/// On btrfs, a swap file has to be written in place.
const NO_COW: CommandLine = CommandLine::new("chattr +C -- <path:/**/linux-sysadmin-swap/*>");
const SELINUX: CommandLine = CommandLine::new("chcon --type=swapfile_t -- <path:/**/linux-sysadmin-swap/*>");
const ALLOCATE: CommandLine =
    CommandLine::new("fallocate --length <int> -- <path:/**/linux-sysadmin-swap/*>");
const FORMAT_FILE: CommandLine = CommandLine::new("mkswap -- <path:/**/linux-sysadmin-swap/*>");
const REMOVE_FILE: CommandLine = CommandLine::new("rm --force -- <path:/**/linux-sysadmin-swap/*>");
const FORMAT: CommandLine = CommandLine::new("mkswap --uuid=<text> -- <disk>");
const WIPE: CommandLine = CommandLine::new("wipefs --all --types=swap -- <disk>");

/// A start goes on where the area is missing.
const OF_A_FILE: &str = "sw,nofail";
/// systemd waits 90 s for a device, with `nofail` too, before it goes on: systemd.swap(5).
const OF_A_DEVICE: &str = "sw,nofail,x-systemd.device-timeout=10s";

pub(crate) fn grants(module: Module) -> Module {
    let undo = "undo what the same plan did";
    module
        .command(ROOM.read("how much room there is for a swap file").as_root_if_available())
        .path(PathGrant::read(BOOT, "a part of the name of a swap file"))
        .path(PathGrant::write("/**/linux-sysadmin-swap", "the directory for swap files"))
        .path(PathGrant::read("/**/linux-sysadmin-swap/*", "whether a swap file is there").as_root())
        .command(INSTALL.change(Risk::Moderate, "make a swap file that only root reads"))
        .command(NO_COW.change(Risk::Moderate, "have btrfs write a swap file in place"))
        .command(SELINUX.change(Risk::Moderate, "give a swap file its SELinux type"))
        .command(ALLOCATE.change(Risk::Moderate, "take the room of a swap file"))
        .command(FORMAT_FILE.change(Risk::High, "make a swap area in a swap file"))
        .command(REMOVE_FILE.change(Risk::High, "remove a swap file of this tool"))
        .command(FORMAT.change(Risk::High, "make a swap area on a partition that has nothing on it"))
        .command(WIPE.change(Risk::High, undo))
}

/// The command that removes a file of this tool.
pub(crate) fn remove_file(path: &str) -> Command {
    REMOVE_FILE.with([path]).as_root()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct AddArgs {
    /// Size of a new file, as 2G
    size: Option<String>,
    /// Directory of the file, default /var/lib
    directory: Option<String>,
    /// Blank partition instead
    device: Option<String>,
    /// 0 to 32767, the highest is used first
    priority: Option<i64>,
}

#[derive(Serialize)]
pub(crate) struct Answer {
    /// What a dry run would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    path: String,
    size: String,
    /// The source as fstab has it.
    source: String,
}

/// The plan so far.
struct Draft {
    change: Change,
    path: String,
    size: u64,
    source: String,
    /// The options in fstab, besides a priority.
    options: &'static str,
    notes: Vec<String>,
}

pub(crate) fn add(args: AddArgs, cx: &Context) -> Result<Noted<Answer>> {
    let priority = args.priority.map(priority).transpose()?;
    let table = Table::read(cx)?;
    let draft = match (&args.size, &args.device) {
        (Some(size), None) => of_file(size, args.directory.as_deref(), priority, cx)?,
        (None, Some(device)) if args.directory.is_none() => of_device(device, priority, &table, cx)?,
        _ => {
            let message = "expected either size (of a new file, with directory where /var/lib is the wrong place) or device";
            return Err(Problem::validation("INVALID_ARGUMENTS", message));
        }
    };
    let entry = Entry {
        line: 0,
        source: draft.source.clone(),
        mount_point: "none".to_owned(),
        fs_type: "swap".to_owned(),
        options: match priority {
            Some(priority) => format!("{},pri={priority}", draft.options),
            None => draft.options.to_owned(),
        },
        dump: "0".to_owned(),
        pass: "0".to_owned(),
    };
    let change = with_fstab(draft.change, table.with(&entry), cx);
    let applied = cx.apply(change)?;
    let mut notes = draft.notes;
    if !applied.dry_run {
        notes.extend(findings(cx));
    }
    let would = applied.dry_run.then_some("add");
    let data = Answer { would, path: draft.path, size: shown(draft.size), source: draft.source };
    Ok(Noted { data, notes })
}

fn priority(number: i64) -> Result<u16> {
    let priority = u16::try_from(number).ok().filter(|priority| *priority <= 32_767);
    priority.ok_or_else(|| Problem::validation("INVALID_ARGUMENTS", "expected a priority from 0 to 32767"))
}

fn of_file(size: &str, directory: Option<&str>, asked: Option<u16>, cx: &Context) -> Result<Draft> {
    // The kernel swaps whole pages.
    let size = Size::bytes(size)? & !0xfff;
    if size < LEAST {
        return Err(Problem::validation("INVALID_SIZE", "expected a size of at least 16M"));
    }
    let above = place::checked(directory.unwrap_or(USUAL))?;
    match place::all(&[above], cx).into_iter().next() {
        Some(Place::Directory) => {}
        Some(Place::Symlink(target)) => {
            let message =
                format!("{above} leads through a symlink to {target}: expected a path without symlinks");
            return Err(Problem::validation("INVALID_PATH", message).remedy(format!("directory={target}")));
        }
        _ => return Err(Problem::not_found("DIRECTORY_NOT_FOUND", format!("there is no directory {above}"))),
    }
    let fs_type = able(above, cx)?;
    check_room(above, size, cx)?;
    let folder = if above == "/" { format!("/{FOLDER}") } else { format!("{above}/{FOLDER}") };
    let (is_there, names) = folder_content(&folder, cx)?;
    let path = format!("{folder}/{}", name(size, &names, cx));
    let mut change =
        Change::new(format!("Make a swap file of {} and use it now and at each start", shown(size)));
    if !is_there {
        change = change.step(Step::make_directory(&folder, 0o700).owner("root", "root"));
    }
    // What a step leaves of the file where it fails is removed by the undo of the first step.
    let step = |command: Command| {
        let command = command.as_root().duration(DurationCategory::LongRunning);
        Step::run(command).undo(remove_file(&path))
    };
    change = change.step(step(INSTALL.with([&path])));
    if fs_type == "btrfs" {
        change = change.step(step(NO_COW.with([&path])));
    }
    if cx.distro().mac_system == "selinux" {
        change = change.step(step(SELINUX.with([&path])));
    }
    change = change.step(step(ALLOCATE.with([size.to_string().as_str(), &path])));
    change = change.step(step(FORMAT_FILE.with([&path])));
    change = change.step(Step::run(commands::on(&path, asked)).undo(commands::off(&path)));
    let mut notes = Vec::new();
    if fs_type == "btrfs" {
        notes.push(format!("while it is in use, btrfs makes no snapshot of the subvolume of {above}"));
    }
    Ok(Draft { change, source: path.clone(), path, size, options: OF_A_FILE, notes })
}

/// The type of the file system of a directory, where a file on it can be swap.
fn able(directory: &str, cx: &Context) -> Result<String> {
    let mounts = MountTable::read(cx)?;
    let fs_type = mounts.of(directory).map(|mount| mount.kind.clone()).unwrap_or_default();
    if ABLE.contains(&fs_type.as_str()) {
        return Ok(fs_type);
    }
    let message = format!("{directory} is on {fs_type}: expected a directory on {}", ABLE.join(", "));
    let able: Vec<&str> = mounts
        .all()
        .iter()
        .filter(|mount| ABLE.contains(&mount.kind.as_str()) && mount.root == "/")
        .map(|mount| mount.point.as_str())
        .collect();
    let problem = Problem::new("FS_TYPE_NOT_SUPPORTED", Category::State, message);
    Err(match able.is_empty() {
        true => problem.remedy("device=… makes a partition swap"),
        false => problem.remedy(format!("directory= one on {}", text::list(&able, 6))),
    })
}

fn check_room(directory: &str, size: u64, cx: &Context) -> Result<()> {
    let output = cx.run(ROOM.with([directory]).privilege(Privilege::RootIfAvailable))?.success("stat")?;
    let text = output.text();
    let free = text
        .trim()
        .split_once(' ')
        .and_then(|(blocks, block)| blocks.parse::<u64>().ok()?.checked_mul(block.parse().ok()?));
    let free = free.ok_or_else(|| Problem::unexpected("stat --file-system", &text))?;
    if free >= size.saturating_add(LEFT) {
        return Ok(());
    }
    let message = format!(
        "{directory} has {} free, and a file of {} should leave {}",
        shown(free),
        shown(size),
        shown(LEFT)
    );
    Err(Problem::new("NO_ROOM", Category::Resource, message)
        .remedy("disk_usage_top tells what fills it")
        .remedy("Or pass a smaller size, or a directory on another file system"))
}

/// Whether the directory for files is there, and the names in it.
fn folder_content(folder: &str, cx: &Context) -> Result<(bool, Vec<String>)> {
    let cx = cx.files_as(Privilege::Root);
    let Some(found) = cx.stat_all(&[folder]).remove(0)? else { return Ok((false, Vec::new())) };
    if !found.is_dir || found.is_symlink || found.owner != "root" || found.mode & 0o077 != 0 {
        let message = format!("{folder} should be a directory of root with mode 0700, and isn't");
        return Err(Problem::new("UNSAFE_DIRECTORY", Category::State, message));
    }
    Ok((true, cx.list_dir(folder)?))
}

/// The name of a new file. It is the same where the plan is made once more, and another one for the next file.
fn name(size: u64, names: &[String], cx: &Context) -> String {
    format!("{:016x}", hash(&format!("{size} {}", names.join("/")), cx))
}

/// A new UUID for an area, so that fstab can name it before it is made. It is the same where the plan is made once more.
fn uuid(device: &str, cx: &Context) -> String {
    let [first, second] =
        ["first", "second"].map(|part| hash(&format!("{part} {device} {}", cx.distro().hostname), cx));
    // Version 8 of RFC 9562 leaves the bits to whoever makes it.
    format!(
        "{:08x}-{:04x}-8{:03x}-8{:03x}-{:012x}",
        first >> 32,
        first >> 16 & 0xffff,
        first & 0xfff,
        second >> 48 & 0xfff,
        second & 0xffff_ffff_ffff
    )
}

/// FNV-1a of a text in this start of the machine.
fn hash(text: &str, cx: &Context) -> u64 {
    let seed = format!("{} {text}", cx.read(BOOT).unwrap_or_default().trim());
    seed.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn of_device(asked: &str, priority: Option<u16>, table: &Table, cx: &Context) -> Result<Draft> {
    let state = |code: &str, message: String| Problem::new(code, Category::State, message);
    if asked.is_empty() || asked.starts_with('-') || asked.chars().any(char::is_control) {
        return Err(Problem::validation("INVALID_DEVICE", "expected a device such as /dev/sdb2, or UUID=…"));
    }
    let devices = Devices::read(cx);
    let named = devices.resolved(asked, cx).ok_or_else(|| {
        let message = format!(
            "{:?} is no block device: expected one such as /dev/sdb2, or UUID=…",
            text::excerpt(asked, 120)
        );
        Problem::validation("INVALID_DEVICE", message)
    })?;
    let device = match named[..] {
        [device] => device,
        [] => {
            let message = format!("there is no device {}", text::excerpt(asked, 120));
            return Err(Problem::not_found("DEVICE_NOT_FOUND", message)
                .remedy("disk_list tells which devices there are"));
        }
        _ => return Err(state("DEVICE_AMBIGUOUS", format!("{asked} is on several devices"))),
    };
    let name = &device.name;
    let mounts = MountTable::read(cx)?;
    if let Some(mount) =
        mounts.all().iter().find(|mount| mount.source == *name || mount.device == device.number)
    {
        return Err(state("DEVICE_MOUNTED", format!("{name} is mounted at {}", mount.point)));
    }
    if areas::read(cx)?.iter().any(|area| device.is_called(&area.path)) {
        return Err(state("SWAP_IN_USE", format!("{name} is in use as swap already")).remedy("swap_list"));
    }
    if device.is_read_only {
        return Err(state(
            "DEVICE_READ_ONLY",
            format!("{name} is read-only, and nothing can be swapped to it"),
        ));
    }
    if devices.0.iter().any(|other| other.is_part_of(device)) {
        return Err(state("DEVICE_IN_USE", format!("{name} has partitions or volumes on it")));
    }
    let same = |entry: &&Entry| devices.named(&entry.source).is_some_and(|named| named.contains(&device));
    if let Some(entry) = table.entries.iter().find(same) {
        let message = format!("{name} is in line {} of fstab already, for {}", entry.line, entry.mount_point);
        let help = format!("command_run argv=[\"swapon\",\"--\",\"{name}\"] as_root=true");
        let problem = state("DEVICE_IN_FSTAB", message);
        return Err(if entry.is_swap() { problem.remedy(help) } else { problem });
    }
    let mut change = Change::new(format!("Use {name} as swap now and at each start"));
    let mut source = name.clone();
    match device.fs_type.as_deref() {
        Some("swap") => {
            if let Some(uuid) = device.uuid() {
                source = format!("UUID={uuid}");
            }
        }
        Some(other) => {
            let message = format!("{name} has {other} on it: expected a partition with nothing on it");
            return Err(state("DEVICE_HAS_DATA", message)
                .remedy("Where nothing on it is needed, have a person run wipefs --all on it first"));
        }
        None => {
            check_blank(name, cx)?;
            let uuid = uuid(name, cx);
            let format = FORMAT.with([uuid.as_str(), name]).as_root();
            change = change.step(Step::run(format).undo(WIPE.with([name]).as_root()));
            source = format!("UUID={uuid}");
        }
    }
    change = change.step(Step::run(commands::on(name, priority)).undo(commands::off(name)));
    let (path, size) = (name.clone(), device.size);
    Ok(Draft { change, path, size, source, options: OF_A_DEVICE, notes: Vec::new() })
}

/// Refuses a device on which blkid finds anything, such as a table of partitions.
fn check_blank(name: &str, cx: &Context) -> Result<()> {
    let output = cx.run(super::PROBE.with([name]).as_root())?;
    match output.exit_code {
        2 => Ok(()),
        0 | 8 => {
            let text = output.text();
            let message = format!(
                "{name} has something on it: {}",
                text::excerpt(&text.trim().replace('\n', " "), 200)
            );
            Err(Problem::new("DEVICE_HAS_DATA", Category::State, message)
                .remedy("Where nothing on it is needed, have a person run wipefs --all on it first"))
        }
        _ => Err(output.success("blkid").err().unwrap_or_else(|| Problem::unexpected("blkid", ""))),
    }
}
