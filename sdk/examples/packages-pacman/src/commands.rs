//! The command lines of the module.

use linux_sysadmin_sdk::DurationCategory;
use linux_sysadmin_sdk::packages::Request;
use linux_sysadmin_sdk::prelude::*;

/// Prints the name and the version of each installed package.
pub const INSTALLED: CommandLine = CommandLine::new("pacman --query");

/// Prints patterns of the packages that are kept at their version, a line for each.
pub const IGNORED: CommandLine = CommandLine::new("pacman-conf IgnorePkg");

/// Prints patterns of the packages that pacman asks about before it removes them.
pub const GUARDED: CommandLine = CommandLine::new("pacman-conf HoldPkg");

/// Prints the packages of the repositories in which each of these expressions matches something.
pub const SEARCH: CommandLine = CommandLine::new("pacman --sync --search -- <text>...");

/// Prints what the repositories say of packages.
pub const OFFERED: CommandLine = CommandLine::new("pacman --sync --info -- <package>...");

/// Prints what is known of an installed package.
pub const DETAILS: CommandLine = CommandLine::new("pacman --query --info -- <package>");

/// Prints the newer versions of installed packages.
pub const UPDATES: CommandLine = CommandLine::new("pacman --query --upgrades");

/// Prints the names of all packages of the repositories.
pub const NAMES: CommandLine = CommandLine::new("pacman --sync --list --quiet");

/// A change, and the same command as pacman's own simulation.
pub type Pair = [CommandLine; 2];

/// The change is asked about by the host and not by pacman, which would wait for an answer.
macro_rules! pair {
    ($operation:literal, $operands:literal) => {
        [
            CommandLine::new(concat!("pacman ", $operation, " --noconfirm", $operands)),
            CommandLine::new(concat!("pacman ", $operation, " --print '--print-format=%n %v %s'", $operands)),
        ]
    };
}

pub const INSTALL: Pair = pair!("--sync --needed", " -- <package>...");
/// Packages that need a removed one are removed with it.
const REMOVE: Pair = pair!("--remove --cascade", " -- <package>...");
const UPGRADE_ALL: Pair = pair!("--sync --sysupgrade", "");
/// A file of pacman's own cache. pacman would fetch an address, even to say what it would do.
const FILE: Pair = pair!("--upgrade", " -- <path:/var/cache/pacman/pkg/*>");
/// pacman takes no `--nosave` beside `--print`, so that the simulation is that of a removal.
const PURGE: CommandLine = CommandLine::new("pacman --remove --cascade --nosave --noconfirm -- <package>...");
const REFRESH: CommandLine = CommandLine::new("pacman --sync --refresh --noconfirm");

/// What is granted at once, since an operator is asked about each grant for a change.
const SYNCED: CommandLine = CommandLine::new(
    "pacman --sync (--needed --noconfirm -- <package>...|--sysupgrade --noconfirm|--refresh --noconfirm)",
);
const REMOVED: CommandLine =
    CommandLine::new("pacman --remove --cascade [--nosave] --noconfirm -- <package>...");

/// The commands of a request that names packages, or all. None where it isn't one.
pub fn of(request: &Request) -> Option<[Command; 2]> {
    match request {
        Request::Install(names) | Request::Update(names) => Some(of_names(INSTALL, names)),
        Request::Remove(names) => Some(of_names(REMOVE, names)),
        Request::Purge(names) => {
            let [_, simulation] = of_names(REMOVE, names);
            Some([long(PURGE.with(names)), simulation])
        }
        Request::UpdateAll => Some(of_names(UPGRADE_ALL, &[])),
        // pacman's database has no package that is there in part, which alone is installed anew.
        Request::Reinstall(_) => None,
        Request::Version(..) | Request::Refresh | Request::Undo(_) => None,
    }
}

/// The commands for these names.
pub fn of_names([change, simulation]: Pair, names: &[String]) -> [Command; 2] {
    [long(change.with(names)), look(simulation.with(names))]
}

/// The commands for a file of pacman's cache.
pub fn of_file(path: &str) -> [Command; 2] {
    let [change, simulation] = FILE;
    [long(change.with([path])), look(simulation.with([path]))]
}

/// The command that fetches the lists of the repositories anew.
pub fn refresh() -> Command {
    long(REFRESH.command())
}

/// The command with the time that pacman needs to read its lists.
pub fn look(command: Command) -> Command {
    command.duration(DurationCategory::Normal)
}

fn long(command: Command) -> Command {
    command.as_root().duration(DurationCategory::LongRunning)
}

/// Adds all grants to the module.
pub fn granted(module: Module) -> Module {
    let looks = [
        (INSTALLED, "installed packages"),
        (IGNORED, "which packages are kept at their version"),
        (GUARDED, "which packages pacman guards"),
        (SEARCH, "packages of the repositories"),
        (OFFERED, "what the repositories say of a package"),
        (DETAILS, "what is known of an installed package"),
        (UPDATES, "newer versions"),
        (NAMES, "names of the repositories' packages"),
    ];
    let simulations = [
        (INSTALL, "install or update packages"),
        (REMOVE, "remove packages"),
        (UPGRADE_ALL, "update everything"),
        (FILE, "go back to a version that was kept"),
    ];
    let simulated = |([_, simulation], reason): (Pair, &str)| {
        simulation.dry_run(&format!("what it would do to {reason}"))
    };
    let [to_kept, _] = FILE;
    module
        .commands(looks.map(|(line, reason)| line.read(reason)))
        .commands(simulations.map(simulated))
        .command(
            SYNCED
                .change(Risk::Moderate, "to install and update packages, and to read the repositories anew"),
        )
        .command(
            REMOVED
                .change(Risk::High, "to remove packages, with their configuration where that is asked for"),
        )
        .command(to_kept.change(Risk::High, "to go back to a version that was kept"))
}
