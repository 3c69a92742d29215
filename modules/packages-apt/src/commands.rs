//! The command lines of the module, each for its grant and for the command.
//!
//! A command that changes something asks nobody (`noninteractive`, `--yes`), keeps configuration files that an
//! administrator changed (`--force-confold`), and lets needrestart restart no services (`NEEDRESTART_MODE=l`). So nothing
//! happens that the plan doesn't show. Without `--allow-remove-essential`, apt-get itself refuses to remove packages that
//! a machine needs.

use linux_sysadmin_sdk::packages::Request;
use linux_sysadmin_sdk::packages::apt_lines::NEWER;
use linux_sysadmin_sdk::prelude::*;

macro_rules! installed {
    ($packages:literal) => {
        CommandLine::new(concat!(
            r"dpkg-query --show '--showformat=${Package}\t${Version}\t${Architecture}\t${db:Status-Abbrev}\t${Essential}\t${Protected}\n'",
            $packages
        ))
    };
}

/// Prints all packages of dpkg's database, separated by tabs: dpkg-query(1).
pub(crate) const INSTALLED: CommandLine = installed!("");
/// Prints the same of these packages alone, and fails where there is none of one name.
pub(crate) const INSTALLED_OF: CommandLine = installed!(" -- <package>...");
pub(crate) const SEARCH: CommandLine = CommandLine::new("apt-cache search -- <text>...");
pub(crate) const SEARCH_NAMES: CommandLine = CommandLine::new("apt-cache search --names-only -- <text>...");
pub(crate) const NAMES: CommandLine = CommandLine::new("apt-cache pkgnames -- <package>");
pub(crate) const POLICY: CommandLine = CommandLine::new("apt-cache policy -- <package>...");
pub(crate) const SHOW: CommandLine = CommandLine::new("apt-cache show -- <package>...");
/// Prints the sizes of exactly the versions that would be installed.
pub(crate) const SHOW_VERSIONS: CommandLine = CommandLine::new("apt-cache show -- <package>=<version>...");
pub(crate) const AUTOMATIC: CommandLine = CommandLine::new("apt-mark showauto -- <package>");

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
            // This leaves out the note that apt-get prints to accounts other than root.
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
/// With this option, a repository that can't be read is an error, and not a warning with exit code 0.
const REFRESH: CommandLine = CommandLine::new("apt-get --quiet -o APT::Update::Error-Mode=any update");

/// The repair of dependencies. The simulation takes no lock, and also names packages that are only half installed.
pub(crate) const FIX_BROKEN: [CommandLine; 2] =
    [change!("--fix-broken install"), simulation!("--fix-broken install")];
/// Configures packages that were unpacked and not configured.
pub(crate) const CONFIGURE: CommandLine = CommandLine::new(
    "DEBIAN_FRONTEND=noninteractive APT_LISTCHANGES_FRONTEND=none NEEDRESTART_MODE=l dpkg --force-confold --configure --pending",
);
/// Removes packages that dpkg wants to have installed anew. Where no archive of such a package is left, apt-get refuses every
/// change until it is gone.
pub(crate) const GIVE_UP: [CommandLine; 2] = [
    CommandLine::new(
        "DEBIAN_FRONTEND=noninteractive dpkg --force-remove-reinstreq --remove <package>:<package>...",
    ),
    CommandLine::new("dpkg --no-act --force-remove-reinstreq --remove <package>:<package>..."),
];
pub(crate) const AUTOREMOVE: CommandLine = simulation!("autoremove");
pub(crate) const HOLD: CommandLine = CommandLine::new("apt-mark hold -- <package>...");
pub(crate) const UNHOLD: CommandLine = CommandLine::new("apt-mark unhold -- <package>...");
pub(crate) const CLEAN: CommandLine = CommandLine::new("apt-get --quiet clean");
pub(crate) const CACHED_BYTES: CommandLine =
    CommandLine::new("du --bytes --summarize -- /var/cache/apt/archives");
pub(crate) const VERIFY_ALL: CommandLine = CommandLine::new("dpkg --verify");
pub(crate) const VERIFY: CommandLine = CommandLine::new("dpkg --verify <package>...");
/// Names each package with its architecture.
pub(crate) const VERIFY_QUALIFIED: CommandLine = CommandLine::new("dpkg --verify <package>:<package>...");
/// Prints the packages that have a path. A path is taken for a pattern where it has the characters of one.
pub(crate) const SEARCH_FILES: CommandLine = CommandLine::new("dpkg-query --search -- <path>...");

/// The command lines of the change and of its simulation, with the values of their holes.
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

/// Adds all grants to the module.
pub(crate) fn granted(module: Module) -> Module {
    let looking = [
        INSTALLED.read("what is installed"),
        INSTALLED_OF.read("which of these packages are installed"),
        SEARCH.read("to search names and summaries"),
        SEARCH_NAMES.read("to search names"),
        NAMES.read("names to suggest for one that there is no package of"),
        POLICY.read("which versions there are, and where from"),
        SHOW.read("what is known of a package"),
        SHOW_VERSIONS.read("sizes of what would be installed"),
        SEARCH_FILES.read("which package has a file"),
        CACHED_BYTES.read("how much is downloaded").as_root_if_available(),
        VERIFY_ALL.read("files that differ from their packages'").as_root_if_available(),
        VERIFY.read("files that differ from these packages'").as_root_if_available(),
        VERIFY_QUALIFIED.read("files of packages of several architectures").as_root_if_available(),
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
        (&FIX_BROKEN, Risk::Moderate, "to mend dependencies"),
        (&GIVE_UP, Risk::High, "to remove what is broken and can't be installed anew"),
        (&VERSION, Risk::High, "to go back to another version"),
    ];
    let changing = risks.into_iter().flat_map(|([change, simulation], risk, reason)| {
        [change.change(risk, reason), simulation.dry_run("what that would do")]
    });
    module
        .commands(looking)
        .commands(changing)
        .command(AUTOREMOVE.dry_run("what no package needs"))
        .command(CONFIGURE.change(Risk::Moderate, "to finish what was cut off"))
        .command(HOLD.change(Risk::Moderate, "to keep packages at their version"))
        .command(UNHOLD.change(Risk::Moderate, "to release them"))
        .command(CLEAN.change(Risk::Moderate, "to remove downloaded packages"))
        .command(NEWER.dry_run("what there is to update"))
        .command(REFRESH.change(Risk::Moderate, "to read the repositories anew"))
}
