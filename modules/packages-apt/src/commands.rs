//! The command lines, each both a grant and what is run.
//!
//! Whatever changes something asks nobody (`noninteractive`, `--yes`), keeps configuration files that were changed by
//! hand (`--force-confold`), and leaves services alone that needrestart would restart by itself (`NEEDRESTART_MODE=l`):
//! nothing happens that the plan didn't show. Without `--allow-remove-essential`, apt-get itself refuses what a machine
//! can't do without.

use linux_sysadmin_sdk::packages::Request;
use linux_sysadmin_sdk::prelude::*;

/// Every package of dpkg's database, tab-separated: dpkg-query(1).
pub(crate) const INSTALLED: CommandLine = CommandLine::new(
    r"dpkg-query --show '--showformat=${Package}\t${Version}\t${Architecture}\t${db:Status-Abbrev}\t${Essential}\t${Protected}\n'",
);
pub(crate) const SEARCH: CommandLine = CommandLine::new("apt-cache search -- <text>...");
pub(crate) const SEARCH_NAMES: CommandLine = CommandLine::new("apt-cache search --names-only -- <text>...");
pub(crate) const NAMES: CommandLine = CommandLine::new("apt-cache pkgnames -- <package>");
pub(crate) const POLICY: CommandLine = CommandLine::new("apt-cache policy -- <package>...");
pub(crate) const SHOW: CommandLine = CommandLine::new("apt-cache show -- <package>...");
/// The size of exactly what would be installed.
pub(crate) const SHOW_VERSIONS: CommandLine = CommandLine::new("apt-cache show -- <package>=<version>...");
pub(crate) const AUTOMATIC: CommandLine = CommandLine::new("apt-mark showauto -- <package>");

/// Everything newer, held or in need of a removal; what is rolled out in phases it names without a version.
pub(crate) const NEWER: CommandLine =
    CommandLine::new("apt-get --simulate --quiet --ignore-hold full-upgrade");

macro_rules! change {
    ($rest:literal) => {
        CommandLine::new(concat!(
            "DEBIAN_FRONTEND=noninteractive APT_LISTCHANGES_FRONTEND=none NEEDRESTART_MODE=l apt-get --yes --quiet ",
            "-o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold ",
            $rest
        ))
    };
}

macro_rules! simulation {
    ($rest:literal) => {
        CommandLine::new(concat!(
            // Whoever isn't root is told at length that it is a simulation.
            "apt-get --simulate --quiet -o APT::Get::Show-User-Simulation-Note=false ",
            $rest
        ))
    };
}

const INSTALL: [CommandLine; 2] =
    [change!("install -- <package>..."), simulation!("install -- <package>...")];
const REINSTALL: [CommandLine; 2] =
    [change!("--reinstall install -- <package>..."), simulation!("--reinstall install -- <package>...")];
const REMOVE: [CommandLine; 2] = [change!("remove -- <package>..."), simulation!("remove -- <package>...")];
const PURGE: [CommandLine; 2] = [change!("purge -- <package>..."), simulation!("purge -- <package>...")];
const UPDATE: [CommandLine; 2] = [
    change!("--only-upgrade install -- <package>..."),
    simulation!("--only-upgrade install -- <package>..."),
];
const UPDATE_ALL: [CommandLine; 2] =
    [change!("--with-new-pkgs upgrade"), simulation!("--with-new-pkgs upgrade")];
const VERSION: [CommandLine; 2] = [
    change!("--allow-downgrades install -- <package>=<version>"),
    simulation!("--allow-downgrades install -- <package>=<version>"),
];
/// A repository that can't be read is an error, and not a warning beside exit code 0.
const REFRESH: CommandLine = CommandLine::new("apt-get --quiet -o APT::Update::Error-Mode=any update");

/// What does it, and what says what that would do.
fn lines(request: &Request) -> Option<(&'static [CommandLine; 2], Vec<String>)> {
    Some(match request {
        Request::Install(names) => (&INSTALL, names.clone()),
        Request::Reinstall(names) => (&REINSTALL, names.clone()),
        Request::Remove(names) => (&REMOVE, names.clone()),
        Request::Purge(names) => (&PURGE, names.clone()),
        Request::Update(names) => (&UPDATE, names.clone()),
        Request::UpdateAll => (&UPDATE_ALL, Vec::new()),
        Request::Version(name, version) => (&VERSION, vec![name.clone(), version.clone()]),
        Request::Refresh | Request::Undo(_) => return None,
    })
}

pub(crate) fn run(request: &Request) -> Option<Command> {
    if *request == Request::Refresh {
        return Some(REFRESH.command().as_root());
    }
    lines(request).map(|([change, _], values)| change.with(values).as_root())
}

pub(crate) fn simulation(request: &Request) -> Option<Command> {
    lines(request).map(|([_, simulation], values)| simulation.with(values))
}

/// Everything that the module asks for.
pub(crate) fn granted(module: Module) -> Module {
    let looking = [
        INSTALLED.read("what is installed"),
        SEARCH.read("to search names and summaries"),
        SEARCH_NAMES.read("to search names"),
        NAMES.read("names to suggest for one that there is no package of"),
        POLICY.read("which versions there are, and where from"),
        SHOW.read("what is known of a package"),
        SHOW_VERSIONS.read("sizes of what would be installed"),
        AUTOMATIC.read("whether a package was installed for another one's sake"),
        crate::aftermath::NEEDRESTART
            .read("services that still run what was replaced")
            .as_root_if_available(),
    ];
    let risks = [
        (&INSTALL, Risk::Moderate, "to install packages"),
        (&REINSTALL, Risk::Moderate, "to install packages anew that are broken"),
        (&REMOVE, Risk::High, "to remove packages, their configuration kept"),
        (&PURGE, Risk::Critical, "to remove packages with their configuration"),
        (&UPDATE, Risk::Moderate, "to update these packages"),
        (&UPDATE_ALL, Risk::Moderate, "to update all packages"),
        (&VERSION, Risk::High, "to go back to another version"),
    ];
    let module = looking.into_iter().fold(module, Module::command);
    let module = risks.into_iter().fold(module, |module, ([change, simulation], risk, reason)| {
        module.command(change.change(risk, reason)).command(simulation.dry_run("what that would do"))
    });
    module
        .command(NEWER.dry_run("what there is to update"))
        .command(REFRESH.change(Risk::Moderate, "to read the repositories anew"))
}
