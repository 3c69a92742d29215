//! `mount_add`: mounts a file system now and at each start. Where it can't be mounted, fstab is as before.

use linux_sysadmin_sdk::{Category, DurationCategory, prelude::*};

use super::devices::Devices;
use super::fstab::{Entry, Table};
use super::options;
use super::place::{self, Place};
use super::plan::{findings, with_fstab};
use super::source::{self, Asked, Source};
use crate::mount_table::MountTable;

/// Makes directories that are missing.
const MKDIR: CommandLine = CommandLine::new("mkdir --mode=0755 -- <path>...");
/// Takes them away again, the lower ones first.
const RMDIR: CommandLine = CommandLine::new("rmdir -- <path>...");
/// Mounts what fstab has for a mount point.
pub(crate) const MOUNT: CommandLine = CommandLine::new("mount -- <path>");

pub(crate) fn grants(module: Module) -> Module {
    module
        .command(MKDIR.change(Risk::Moderate, "make a mount point that is missing"))
        .command(RMDIR.change(Risk::Moderate, "remove a mount point that the same plan made"))
        .command(MOUNT.change(Risk::High, "mount what fstab has for a mount point"))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct AddArgs {
    /// Device, UUID= or share
    device: String,
    /// Directory
    mount_point: String,
    /// As ext4, nfs; auto
    fs_type: String,
    /// As noatime,nofail
    options: Option<String>,
    /// fstab field 5
    dump: Option<i64>,
    /// fstab field 6
    pass: Option<i64>,
}

#[derive(Serialize)]
pub(crate) struct Answer {
    /// What a dry run would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    mount_point: String,
    source: String,
    fs_type: String,
    options: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    made: Vec<String>,
}

pub(crate) fn add(args: AddArgs, cx: &Context) -> Result<Noted<Answer>> {
    let point = place::checked(&args.mount_point)?;
    place::check_coverable(point)?;
    let options = args.options.as_deref().unwrap_or("defaults");
    options::check(options)?;
    let (dump, pass) = (args.dump.unwrap_or(0), args.pass.unwrap_or(0));
    if !(0..=1).contains(&dump) || !(0..=2).contains(&pass) {
        return Err(Problem::validation(
            "INVALID_ARGUMENTS",
            "expected 0 or 1 as dump, and 0, 1 or 2 as pass",
        ));
    }
    let (mounts, table, devices) = (MountTable::read(cx)?, Table::read(cx)?, Devices::read(cx));
    let asked = Asked { device: &args.device, mount_point: point, fs_type: &args.fs_type, options };
    let mut source = source::find(&asked, &devices, &mounts, &table, cx)?;
    let entry = Entry {
        line: 0,
        source: source.written.clone(),
        mount_point: point.to_owned(),
        fs_type: source.fs_type.clone(),
        options: options.to_owned(),
        dump: dump.to_string(),
        pass: pass.to_string(),
    };
    let is_in_fstab = is_in_fstab(&entry, &table, &devices)?;
    let is_mounted = is_mounted(&source, point, &mounts)?;
    let mut answer = Answer {
        would: None,
        mount_point: point.to_owned(),
        source: source.written.clone(),
        fs_type: source.fs_type.clone(),
        options: options.to_owned(),
        made: Vec::new(),
    };
    let mut notes = std::mem::take(&mut source.notes);
    if is_in_fstab && is_mounted {
        return Ok(Noted {
            data: answer,
            notes: vec![format!("{point} is mounted and in fstab already: nothing was changed")],
        });
    }
    let mut change = Change::new(format!("Mount {} at {point} now and at each start", source.written));
    if !is_mounted {
        (change, answer.made) = with_directory(change, point, &source, cx)?;
    }
    if !is_in_fstab {
        change = with_fstab(change, table.with(&entry), cx);
    }
    if !is_mounted {
        // A program of the network's file systems tries for two minutes.
        change = change.step(Step::run(MOUNT.with([point]).as_root().duration(DurationCategory::Slow)));
    }
    if let Some((directory, who)) = place::redirected_by(point, cx) {
        source
            .warnings
            .push(format!("{who} can write to {directory}, and put a symlink in the place of {point}"));
    }
    source.warnings.extend(risks(&source, options));
    // Once it is mounted, the same call with other options is refused.
    let safer = (!is_in_fstab).then(|| safer(&source, options)).flatten();
    for warning in source.warnings.iter().chain(&safer) {
        change = change.warning(warning.clone());
    }
    if gives_root(options) {
        change = change.risk(Risk::Critical);
    }
    let applied = cx.apply(change)?;
    answer.would = applied.dry_run.then_some("mount");
    if !applied.dry_run {
        notes.extend(findings(cx));
    }
    notes.extend(source.warnings);
    notes.extend(safer.filter(|_| applied.dry_run));
    Ok(Noted { data: answer, notes })
}

/// Whether fstab has this very entry. Another one for the mount point is refused.
fn is_in_fstab(entry: &Entry, table: &Table, devices: &Devices) -> Result<bool> {
    let Some(known) = table.at(&entry.mount_point).into_iter().next() else { return Ok(false) };
    let same_source = known.source == entry.source
        || devices
            .named(&known.source)
            .is_some_and(|named| !named.is_empty() && Some(named) == devices.named(&entry.source));
    if same_source && known.fs_type == entry.fs_type && known.options == entry.options {
        return Ok(true);
    }
    let message = format!(
        "line {} of fstab has {} for {} already, with type {} and options {}",
        known.line,
        known.source,
        known.mount_point,
        known.fs_type,
        options::shown(&known.options)
    );
    Err(Problem::new("MOUNT_POINT_IN_FSTAB", Category::State, message)
        .remedy(format!("mount_remove mount_point={} first", known.mount_point)))
}

/// Whether this is mounted there. Something else there is refused.
fn is_mounted(source: &Source, point: &str, mounts: &MountTable) -> Result<bool> {
    match mounts.at(point) {
        None => Ok(false),
        Some(mount) if source.is(mount) => Ok(true),
        Some(mount) => {
            let message = format!("{} is mounted at {point} already", mount.source);
            Err(Problem::new("MOUNT_POINT_IN_USE", Category::State, message)
                .remedy(format!("mount_remove mount_point={point}")))
        }
    }
}

/// Makes the mount point where it is missing, and refuses what is none.
fn with_directory(
    change: Change,
    point: &str,
    source: &Source,
    cx: &Context,
) -> Result<(Change, Vec<String>)> {
    let state = |code: &str, message: String| Err(Problem::new(code, Category::State, message));
    match place::all(&[point], cx).into_iter().next() {
        Some(Place::Missing) => {
            let made = place::missing(point, cx);
            let undo = RMDIR.with(made.iter().rev()).as_root();
            Ok((change.step(Step::run(MKDIR.with(&made).as_root()).undo(undo)), made))
        }
        Some(Place::Directory) => {
            let change = match place::entries(point, cx)? {
                0 => change,
                count => change.warning(format!("{point} isn't empty: the mount hides its {count} entries")),
            };
            Ok((change, Vec::new()))
        }
        Some(Place::Symlink(target)) => {
            let message =
                format!("{point} leads through a symlink to {target}: expected a path without symlinks");
            Err(Problem::new("MOUNT_POINT_IS_SYMLINK", Category::State, message)
                .remedy(format!("mount_point={target}")))
        }
        // A file can be bound over a file.
        Some(Place::Other(_)) if source.fs_type == "none" => Ok((change, Vec::new())),
        Some(Place::Other(kind)) => state("NOT_A_DIRECTORY", format!("{point} is a {kind}, no directory")),
        Some(Place::Unknown(reason)) => {
            state("MOUNT_POINT_UNKNOWN", format!("{point} can't be looked at: {reason}"))
        }
        None => state("MOUNT_POINT_UNKNOWN", format!("{point} can't be looked at")),
    }
}

/// What a person should know of the options.
fn risks(source: &Source, options: &str) -> Vec<String> {
    let is_removable = source.device.as_ref().is_some_and(|device| device.is_removable);
    let mut found = Vec::new();
    if source.is_network && !is_optional(options) {
        found.push("without nofail, services wait for the other machine at each start, and stay away where it is down".to_owned());
    } else if source.fs_type != "tmpfs" && !is_optional(options) {
        found.push(format!("without nofail, a start without {} stops in emergency mode", source.written));
    }
    if (is_removable || source.is_network) && !options::has(options, "nosuid") && !lets_accounts(options) {
        found.push(
            "without nosuid and nodev, programs with the setuid bit on it run as their owner, such as root"
                .to_owned(),
        );
    }
    if lets_accounts(options) {
        found.push("the options let accounts other than root mount it".to_owned());
    }
    if gives_root(options) {
        found.push("with suid or dev, what an account mounts there can make it root".to_owned());
    }
    found
}

/// The options with which a start does without what isn't there, and nothing on it gives root's rights.
fn safer(source: &Source, options: &str) -> Option<String> {
    let mut missing = Vec::new();
    if !is_optional(options) {
        missing.push("nofail");
    }
    if !lets_accounts(options) {
        missing.extend(["nosuid", "nodev"].into_iter().filter(|name| !options::has(options, name)));
    }
    if missing.is_empty() {
        return None;
    }
    let on_use = if source.is_network { "; x-systemd.automount mounts it on use" } else { "" };
    Some(format!(
        "where the machine can do without it, options={options},{} is of less risk{on_use}",
        missing.join(",")
    ))
}

/// Whether the machine starts without it.
fn is_optional(options: &str) -> bool {
    options::has(options, "nofail") || options::has(options, "noauto")
}

fn lets_accounts(options: &str) -> bool {
    ["user", "users", "owner", "group"]
        .into_iter()
        .any(|name| options::all(options).any(|option| option == name))
}

/// `user` and the like turn suid and dev off, unless they are said as well.
fn gives_root(options: &str) -> bool {
    lets_accounts(options) && (options::has(options, "suid") || options::has(options, "dev"))
}
