//! The command lines and paths of the module.

use linux_sysadmin_sdk::packages::Request;
use linux_sysadmin_sdk::packages::advisory::{ADVISORIES, CVES};
use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::{DurationCategory, Privilege};

/// Prints all packages of rpm's database.
pub const INSTALLED: CommandLine = CommandLine::new(
    r"rpm --query --all '--queryformat=%{NAME}\t%{EPOCHNUM}\t%{VERSION}\t%{RELEASE}\t%{ARCH}\n'",
);

/// Prints all available packages at their newest version.
pub const AVAILABLE: CommandLine = CommandLine::new(
    r"dnf --cacheonly repoquery --latest-limit=1 '--queryformat=%{name}\t%{evr}\t%{summary}\n'",
);

/// Prints all versions of some packages.
pub const VERSIONS: CommandLine =
    CommandLine::new(r"dnf --cacheonly repoquery '--queryformat=%{name}\t%{evr}\t%{repoid}\n' <package>...");

/// Prints the same, including streams of modules that aren't enabled.
pub const HIDDEN: CommandLine = CommandLine::new(
    r"dnf --cacheonly repoquery --disable-modular-filtering '--queryformat=%{name}\t%{evr}\t%{repoid}\n' <package>...",
);

/// Prints one package at its newest version. Each requirement has a line, and a description has any number of lines.
pub const INFO: CommandLine = CommandLine::new(
    r"dnf --cacheonly repoquery --latest-limit=1 '--queryformat=%{name}\t%{arch}\t%{evr}\t%{downloadsize}\t%{installsize}\t%{license}\t%{url}\t%{summary}\n@requires\n%{requires}\n@conflicts\n%{conflicts}\n@description\n%{description}\n' <package>",
);

/// Prints the same for an installed package.
pub const INFO_INSTALLED: CommandLine = CommandLine::new(
    r"dnf --cacheonly repoquery --installed '--queryformat=%{name}\t%{arch}\t%{evr}\t%{downloadsize}\t%{installsize}\t%{license}\t%{url}\t%{summary}\n@requires\n%{requires}\n@conflicts\n%{conflicts}\n@description\n%{description}\n' <package>",
);

/// Prints why a package is installed, and since when.
pub const REASON: CommandLine = CommandLine::new(
    r"TZ=UTC dnf --cacheonly repoquery --installed '--queryformat=%{name}\t%{reason}\t%{installtime}\n' <package>",
);

/// Prints the newer versions of installed packages.
pub const UPGRADES: CommandLine = CommandLine::new(
    r"dnf --cacheonly repoquery --upgrades --latest-limit=1 '--queryformat=%{name}\t%{arch}\t%{evr}\t%{repoid}\n'",
);

/// Prints one line for each transaction.
pub const TRANSACTIONS: CommandLine = CommandLine::new("dnf --quiet history list");

/// Prints the details of some transactions.
pub const TRANSACTION: CommandLine = CommandLine::new("TZ=UTC dnf --quiet history info <int>...");

/// Prints whether the machine has to be rebooted.
pub const REBOOT: CommandLine = CommandLine::new("dnf --quiet --cacheonly needs-restarting --reboothint");

/// Prints the units that run replaced files.
pub const RESTART: CommandLine = CommandLine::new("dnf --quiet --cacheonly needs-restarting --services");

/// Prints the packages that have a file.
pub const OWNER: CommandLine = CommandLine::new(r"rpm --query '--queryformat=%{NAME}\n' --file <path>");

/// Prints the available packages that have a file.
pub const PROVIDERS: CommandLine =
    CommandLine::new(r"dnf --quiet --cacheonly repoquery '--queryformat=%{name}\n' --whatprovides <path>");

/// Prints files that differ from what packages brought.
pub const VERIFY_ALL: CommandLine = CommandLine::new("rpm --verify --all");

/// Prints the same of some packages.
pub const VERIFY: CommandLine = CommandLine::new("rpm --verify <package>...");

/// Checks the form of rpm's database.
pub const VERIFY_DATABASE: CommandLine = CommandLine::new("rpmdb --verifydb");

/// Checks the dependencies of all installed packages.
pub const CHECK: CommandLine = CommandLine::new("dnf --quiet --cacheonly check");

/// Makes rpm's database anew from its table of packages.
pub const REBUILD: CommandLine = CommandLine::new("rpmdb --rebuilddb");

/// The directories where rpm's database may be, each with the command that copies it.
pub const DATABASES: [(&str, CommandLine); 2] = [
    (
        "/usr/lib/sysimage/rpm",
        CommandLine::new(
            "cp --archive --no-target-directory -- /usr/lib/sysimage/rpm /usr/lib/sysimage/rpm.before-repair-<int>",
        ),
    ),
    (
        "/var/lib/rpm",
        CommandLine::new(
            "cp --archive --no-target-directory -- /var/lib/rpm /var/lib/rpm.before-repair-<int>",
        ),
    ),
];

/// Keeps packages at the installed version, by a plugin of dnf 4 and by dnf 5 itself.
pub const LOCK: CommandLine = CommandLine::new("dnf --quiet --cacheonly versionlock add <package>...");
pub const UNLOCK: CommandLine = CommandLine::new("dnf --quiet --cacheonly versionlock delete <package>...");

/// dnf's simulation of the removal of what no package needs.
pub const AUTOREMOVE: CommandLine = CommandLine::new("dnf --cacheonly --assumeno autoremove");

pub const CLEAN_PACKAGES: CommandLine = CommandLine::new("dnf --quiet clean packages");
pub const CLEAN_METADATA: CommandLine = CommandLine::new("dnf --quiet clean metadata");
pub const CLEAN_ALL: CommandLine = CommandLine::new("dnf --quiet clean all");

/// Prints the size of the downloads.
pub const CACHED_BYTES: CommandLine =
    CommandLine::new("du --bytes --summarize -- /var/cache/dnf /var/cache/libdnf5");

/// The directories in which dnf 4 and dnf 5 keep their downloads.
pub const CACHES: [&str; 2] = ["/var/cache/dnf", "/var/cache/libdnf5"];

/// The directory of files that name protected packages.
pub const PROTECTED: &str = "/etc/dnf/protected.d";

/// Files of which one is there where dnf can lock versions: the plugin's of dnf 4, and dnf 5.
pub const VERSIONLOCK: [&str; 2] = ["/etc/dnf/plugins/versionlock.conf", "/usr/bin/dnf5"];

/// The files with locked versions in dnf 4 and in dnf 5.
pub const LOCKED: [&str; 2] = ["/etc/dnf/plugins/versionlock.list", "/etc/dnf/versionlock.toml"];

/// Defines the simulation of a request and its change side by side. They differ only in the answer to dnf's question, and
/// in that the change may download packages.
macro_rules! twice {
    ($simulation:ident, $change:ident, $words:literal) => {
        const $simulation: CommandLine = CommandLine::new(concat!("dnf --cacheonly --assumeno ", $words));
        const $change: CommandLine = CommandLine::new(concat!(
            "dnf --assumeyes --setopt=exit_on_lock=1 '--setopt=*.metadata_expire=never' ",
            $words
        ));
    };
}

twice!(TRY_INSTALL, INSTALL, "install <package>...");
twice!(TRY_REINSTALL, REINSTALL, "reinstall <package>...");
twice!(TRY_REMOVE, REMOVE, "remove <package>...");
twice!(TRY_UPGRADE, UPGRADE, "upgrade <package>...");
twice!(TRY_UPGRADE_ALL, UPGRADE_ALL, "upgrade");
// dnf takes a name and a version in one word. Two holes can't share the word, because each of them may contain a dash. A
// `<version>` has all characters that such a word may have.
twice!(TRY_DOWNGRADE, DOWNGRADE, "downgrade <version>");
twice!(TRY_UNDO, UNDO, "history undo <int>");
/// With this option, a repository that can't be read is an error, and not a warning with exit code 0.
const REFRESH: CommandLine = CommandLine::new(
    "dnf --assumeyes --setopt=exit_on_lock=1 '--setopt=*.skip_if_unavailable=0' --refresh makecache",
);

/// dnf's own simulation, which answers dnf's question with no.
pub fn simulation(request: &Request) -> Option<Command> {
    let command = match request {
        Request::Install(names) => TRY_INSTALL.with(names),
        Request::Reinstall(names) => TRY_REINSTALL.with(names),
        // rpm keeps no configuration of a removed package except changed files, which it saves under another name.
        Request::Remove(names) | Request::Purge(names) => TRY_REMOVE.with(names),
        Request::Update(names) => TRY_UPGRADE.with(names),
        Request::UpdateAll => TRY_UPGRADE_ALL.command(),
        Request::Version(name, version) => TRY_DOWNGRADE.with([format!("{name}-{version}")]),
        Request::Undo(id) => TRY_UNDO.with([id]),
        Request::Refresh => return None,
    };
    Some(command.as_root().duration(DurationCategory::Normal))
}

/// The command of the change.
pub fn change(request: &Request) -> Command {
    let command = match request {
        Request::Install(names) => INSTALL.with(names),
        Request::Reinstall(names) => REINSTALL.with(names),
        Request::Remove(names) | Request::Purge(names) => REMOVE.with(names),
        Request::Update(names) => UPGRADE.with(names),
        Request::UpdateAll => UPGRADE_ALL.command(),
        Request::Version(name, version) => DOWNGRADE.with([format!("{name}-{version}")]),
        Request::Undo(id) => UNDO.with([id]),
        Request::Refresh => REFRESH.command(),
    };
    command.as_root().duration(DurationCategory::LongRunning)
}

/// The command with the time that dnf needs to read its downloads.
pub fn look(command: Command) -> Command {
    command.duration(DurationCategory::Normal)
}

/// The command with root's rights where the target allows them: without them it knows only the caller's processes.
pub fn after(line: CommandLine) -> Command {
    look(line.command()).privilege(Privilege::RootIfAvailable)
}

/// Adds all grants to the module.
pub fn granted(module: Module) -> Module {
    let looks = [
        (INSTALLED, "installed packages"),
        (AVAILABLE, "packages of the repositories"),
        (VERSIONS, "versions that can be had"),
        (HIDDEN, "packages that modules hide"),
        (INFO, "what the repositories say of a package"),
        (INFO_INSTALLED, "what is known of an installed package"),
        (REASON, "why and since when a package is installed"),
        (UPGRADES, "newer versions"),
        (ADVISORIES, "advisories that updates settle"),
        (CVES, "CVEs that updates settle"),
        (TRANSACTIONS, "what dnf has done"),
        (TRANSACTION, "what dnf has done, in detail"),
        (OWNER, "which package has a file"),
        (PROVIDERS, "which package would bring a file"),
        (CHECK, "whether dependencies are met"),
    ];
    let simulations = [
        (TRY_INSTALL, INSTALL, Risk::Moderate, "install packages"),
        (TRY_REINSTALL, REINSTALL, Risk::Moderate, "install packages anew"),
        (TRY_REMOVE, REMOVE, Risk::High, "remove packages"),
        (TRY_UPGRADE, UPGRADE, Risk::Moderate, "update packages"),
        (TRY_UPGRADE_ALL, UPGRADE_ALL, Risk::Moderate, "update everything"),
        (TRY_DOWNGRADE, DOWNGRADE, Risk::High, "go back to a version"),
        (TRY_UNDO, UNDO, Risk::High, "take a transaction back"),
    ];
    let changing = simulations.into_iter().flat_map(|(simulation, change, risk, reason)| {
        let dry_run = simulation.dry_run(&format!("what it would do to {reason}")).as_root();
        [dry_run, change.change(risk, &format!("to {reason}"))]
    });
    module
        .commands(looks.map(|(line, reason)| line.read(reason)))
        .commands(changing)
        .commands(
            [
                (VERIFY_ALL, "files that differ from their packages'"),
                (VERIFY, "files that differ from these packages'"),
                (VERIFY_DATABASE, "whether rpm's database is sound"),
                (CACHED_BYTES, "how much is downloaded"),
            ]
            .map(|(line, reason)| line.read(reason).as_root_if_available()),
        )
        .command(AUTOREMOVE.dry_run("what no package needs").as_root())
        .commands([
            REBUILD.change(Risk::Moderate, "to make rpm's database anew"),
            LOCK.change(Risk::Moderate, "to keep packages at their version"),
            UNLOCK.change(Risk::Moderate, "to release them"),
            CLEAN_PACKAGES.change(Risk::Low, "to remove downloaded packages"),
            CLEAN_METADATA.change(Risk::Low, "to remove downloaded metadata"),
            CLEAN_ALL.change(Risk::Low, "to remove all downloads"),
        ])
        .commands(DATABASES.map(|(_, copy)| copy.change(Risk::Moderate, "to keep a copy of rpm's database")))
        .command(REFRESH.change(Risk::Low, "to read the repositories anew"))
        .command(REBOOT.read("whether a reboot is due").as_root_if_available())
        .command(RESTART.read("services that run what was replaced").as_root_if_available())
        .path(PathGrant::read(&format!("{PROTECTED}/**"), "packages that dnf refuses to remove"))
        .paths(VERSIONLOCK.iter().map(|path| PathGrant::read(path, "whether dnf can lock versions")))
        .paths(LOCKED.iter().map(|path| PathGrant::read(path, "versions that are locked")))
        .paths(
            CACHES
                .iter()
                .map(|path| PathGrant::read(&format!("{path}/**"), "when the repositories were read")),
        )
}
