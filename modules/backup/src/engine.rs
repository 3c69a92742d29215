//! The script that makes backups: its text, its place on the target, and every command line by which it is run.

use linux_sysadmin_sdk::{Category, DurationCategory, OwnProgramGrant, Pipeline, prelude::*};

use crate::destination::Destination;

/// The script. It is one file on the target, so that it needs nothing else there.
pub const TEXT: &str =
    concat!(include_str!("engine.sh"), include_str!("restic.sh"), include_str!("dispatch.sh"));

/// The place of the script on the target.
pub const PATH: &str = "/usr/local/lib/linux-sysadmin/backup";

/// The SHA-256 of [`TEXT`], by which the host knows the script.
pub const SHA256: &str = include_str!("engine.sha256");

/// The directory of the script.
const DIRECTORY: &str = "/usr/local/lib/linux-sysadmin";

/// The longest time of a backup or a restore, in seconds: a day.
const LONGEST: u32 = 86_400;

const CREATE: &str = "/usr/local/lib/linux-sysadmin/backup create --destination=<text> [--label=<text>] [--full] \
                      [(--dump=postgresql|--dump=mariadb|--dump=redis)]... [--exclude=<text>]... -- <arg>...";
const RESTORE: &str = "/usr/local/lib/linux-sysadmin/backup restore --destination=<text> [--target=<path>] -- <text> [<arg>]...";
const PREVIEW: &str = "/usr/local/lib/linux-sysadmin/backup preview --destination=<text> [--target=<path>] -- <text> [<arg>]...";
const ARCHIVE: &str =
    "/usr/local/lib/linux-sysadmin/backup archive-etc --destination=<text> [--label=<text>]";
const LIST: CommandLine = CommandLine::new("/usr/local/lib/linux-sysadmin/backup list --destination=<text>");
const CHECK: CommandLine =
    CommandLine::new("/usr/local/lib/linux-sysadmin/backup check --destination=<text>");
const VERIFY: CommandLine =
    CommandLine::new("/usr/local/lib/linux-sysadmin/backup verify --destination=<text> -- <text>");

/// What is backed up, and how.
pub(crate) struct Request<'a> {
    pub(crate) label: Option<&'a str>,
    pub(crate) full: bool,
    pub(crate) dumps: &'a [&'static str],
    pub(crate) excludes: &'a [String],
    pub(crate) paths: &'a [String],
}

/// The step that makes a backup.
pub(crate) fn create(destination: &Destination, request: &Request) -> Step {
    let command = to("create", destination)
        .args(request.label.map(|label| format!("--label={label}")))
        .args(request.full.then_some("--full"))
        .args(request.dumps.iter().map(|dump| format!("--dump={dump}")))
        .args(request.excludes.iter().map(|pattern| format!("--exclude={pattern}")))
        .arg("--")
        .args(request.paths);
    long(command)
}

/// The step that makes an archive of `/etc`.
pub(crate) fn archive(destination: &Destination, label: Option<&str>) -> Step {
    long(to("archive-etc", destination).args(label.map(|label| format!("--label={label}"))))
}

/// The step that restores, and the command that says what it would write.
pub(crate) fn restore(
    destination: &Destination,
    target: Option<&str>,
    id: &str,
    paths: &[String],
) -> (Step, Command) {
    let command = |verb| {
        let command = to(verb, destination).args(target.map(|target| format!("--target={target}")));
        command.arg("--").arg(id).args(paths)
    };
    (long(command("restore")), command("preview").duration(DurationCategory::LongRunning))
}

/// Lists the backups of a destination.
pub(crate) fn list(destination: &Destination) -> Command {
    LIST.with([destination.uri()]).as_root().duration(DurationCategory::Normal)
}

/// Says whether a destination can be reached, and its space.
pub(crate) fn check(destination: &Destination) -> Command {
    CHECK.with([destination.uri()]).as_root().duration(DurationCategory::Normal)
}

/// Compares a backup with its manifest and with the files that are live.
pub(crate) fn verify(destination: &Destination, id: &str) -> Command {
    VERIFY.with([destination.uri(), id]).as_root().duration(DurationCategory::LongRunning)
}

fn to(verb: &str, destination: &Destination) -> Command {
    Command::new(PATH).arg(verb).arg(format!("--destination={}", destination.uri())).as_root()
}

/// A step that may take hours. An interrupted backup harms nothing, so the step can be cancelled.
fn long(command: Command) -> Step {
    Step::run_pipeline(Pipeline { commands: vec![command], seconds: Some(LONGEST) }).success(&[0])
}

/// Refuses to look where the script is missing or another one: only a plan installs it.
pub(crate) fn ready(cx: &Context) -> Result<()> {
    let message = match cx.read(PATH) {
        Ok(text) if text == TEXT => return Ok(()),
        Ok(_) => format!("{PATH} is not the one of this version"),
        Err(problem) if problem.category == Category::NotFound => format!("{PATH} isn't installed yet"),
        Err(problem) => return Err(problem),
    };
    Err(Problem::new("BACKUP_PROGRAM_MISSING", Category::State, message).remedy(
        "bak_create, bak_schedule and bak_restore install it; bak_restore backup_id=latest needs no list",
    ))
}

/// Adds the steps that install the script where it is missing or another one.
pub(crate) fn installed(change: Change, cx: &Context) -> Result<Change> {
    if cx.read(PATH).is_ok_and(|text| text == TEXT) {
        return Ok(change);
    }
    let change = directory(change, DIRECTORY, 0o755, cx)?;
    Ok(change.step(Step::write(PATH, TEXT).mode(0o755).owner("root", "root")))
}

/// Adds the step that makes a directory which is missing.
pub(crate) fn directory(change: Change, path: &str, mode: u32, cx: &Context) -> Result<Change> {
    match cx.stat_all(&[path]).remove(0)? {
        Some(_) => Ok(change),
        None => Ok(change.step(Step::make_directory(path, mode))),
    }
}

/// The grants to install and run the script.
pub(crate) fn grants(module: Module) -> Module {
    module
        .path(PathGrant::write(PATH, "to install the script that makes backups"))
        .own_program(OwnProgramGrant::new(PATH, SHA256, "the script that makes, checks and restores backups"))
        .path(PathGrant::write(DIRECTORY, "the directory of that script"))
        .path(PathGrant::read(PATH, "whether the script is installed"))
        .path(PathGrant::read(DIRECTORY, "whether its directory is there"))
        .path(PathGrant::write(crate::destination::ARCHIVES, "the place of archives of /etc"))
        .path(PathGrant::read(crate::destination::ARCHIVES, "whether that place is there"))
        .command(CommandGrant::change(CREATE, Risk::Low, "to make a backup"))
        .command(CommandGrant::change(ARCHIVE, Risk::Low, "to archive /etc"))
        .command(CommandGrant::change(RESTORE, Risk::Critical, "to restore a backup"))
        .command(CommandGrant::dry_run(PREVIEW, "what a restore would write").as_root())
        .command(LIST.read("which backups there are").as_root())
        .command(CHECK.read("whether a destination can be reached, and its space").as_root())
        .command(VERIFY.read("whether a backup is whole").as_root())
}
