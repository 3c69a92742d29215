//! The domain `packages`: ten tools whose names, schemas, risks and answers are the same for every package manager. A
//! [`Backend`] gives the manager's commands and reads their output.
//!
//! The manager's own simulation says what a change would do, before anybody is asked. The plan is one command, and its risk
//! follows from the simulation. What was done is read from the package database before and after the change, and not from
//! the manager's output.
//!
//! [`upkeep`] has seven more tools, which hold, repair, clean up and compare, and [`repositories`] three, for the places that
//! packages come from.

pub mod advisory;
pub mod apt_lines;
mod check_updates;
mod history;
mod info;
mod install;
mod list_installed;
mod name;
pub mod nevra;
mod outcome;
mod package_change;
mod remove;
mod report;
pub mod repositories;
mod risk;
mod rollback;
mod search;
mod types;
mod update;
pub mod upkeep;

pub use name::{MAX_NAMES, check as check_name};
pub use types::{
    Aftermath, Available, Found, Info, Installed, Operation, Request, Simulated, State, Transaction, Update,
    Updates, Verb,
};

use crate::{Category, Command, Context, DurationCategory, Module, Output, Problem, Result, Risk, Tool};

/// A package manager: the commands of a module, and the parsers of their output.
///
/// ```
/// use linux_sysadmin_sdk::{packages::*, prelude::*};
///
/// struct Toy;
///
/// const LIST: CommandLine = CommandLine::new("toy list");
/// const ADD: CommandLine = CommandLine::new("toy add -- <package>...");
/// const TRY: CommandLine = CommandLine::new("toy add --try -- <package>...");
/// # fn nothing<T: Default>() -> Result<T> { Ok(T::default()) }
///
/// impl Backend for Toy {
///     fn module(&self) -> Module {
///         Module::new("packages-toy", env!("CARGO_PKG_VERSION"), "packages", "Packages with toy")
///             .serves("package_manager", &["toy"])
///             .command(LIST.read("to see what is installed"))
///             .command(ADD.change(Risk::Moderate, "to install packages"))
///             .command(CommandGrant::dry_run("toy add --try -- <package>...", "what that would do"))
///     }
///
///     fn installed(&self, cx: &Context) -> Result<Vec<Installed>> {
///         let said = cx.run(LIST.command())?.success("toy list")?;
///         let package = |line: &str| line.split_once(' ').map(|(name, version)| Installed {
///             name: name.to_owned(), version: version.to_owned(), ..Installed::default()
///         });
///         Ok(said.text().lines().filter_map(package).collect())
///     }
///
///     fn command(&self, request: &Request, _: &Context) -> Option<Command> {
///         let Request::Install(names) = request else { return None };
///         Some(ADD.with(names).as_root())
///     }
///     // … and the others.
/// #   fn search(&self, _: &[String], _: bool, _: &Context) -> Result<Vec<Found>> { nothing() }
/// #   fn info(&self, _: &str, _: &Context) -> Result<Option<Info>> { nothing() }
/// #   fn versions(&self, _: &str, _: &Context) -> Result<Vec<Available>> { nothing() }
/// #   fn updates(&self, _: &Context) -> Result<Updates> { nothing() }
/// #   fn history(&self, _: Option<&str>, _: &Context) -> Result<Vec<Transaction>> { nothing() }
/// #   fn names(&self, _: &str, _: &Context) -> Result<Vec<String>> { nothing() }
/// #   fn unknown(&self, _: &[String], _: &Context) -> Result<Vec<String>> { nothing() }
/// #   fn simulate(&self, _: &Request, _: &Context) -> Result<Simulated> { nothing() }
/// #   fn explain(&self, _: &Output, _: &Context) -> Option<Problem> { None }
/// }
///
/// fn module() -> Module {
///     linux_sysadmin_sdk::packages::module(|| Toy)
/// }
/// assert_eq!(module().description().tools.len(), 10);
/// ```
///
/// The names that a backend gets have passed its own [`Backend::check_name`]: each can be the name of a package, though there
/// may be no such package.
pub trait Backend {
    /// The module without its tools: its name, its grants, and the targets that it serves.
    fn module(&self) -> Module;

    /// Refuses a text that is no package's name for this manager, by a problem with the code `INVALID_PACKAGE_NAME`. The
    /// default is [`check_name`], which fits apt, dnf and most others. A manager whose names have another form, such as
    /// `category/name`, has a check of its own, and grants whose holes take these names.
    fn check_name(&self, name: &str) -> Result<()> {
        name::check(name)
    }

    /// All packages of the package database, including broken ones and those of which only configuration is left.
    fn installed(&self, cx: &Context) -> Result<Vec<Installed>>;

    /// The available packages that have all of the words in their name or summary. There are at most 8 words, of plain text
    /// in lower case.
    fn search(&self, words: &[String], names_only: bool, cx: &Context) -> Result<Vec<Found>>;

    /// The details of a package. `None` where it is neither installed nor available.
    fn info(&self, name: &str, cx: &Context) -> Result<Option<Info>>;

    /// The versions of a package that the repositories have, the newest first.
    fn versions(&self, name: &str, cx: &Context) -> Result<Vec<Available>>;

    /// The newer versions of installed packages.
    fn updates(&self, cx: &Context) -> Result<Updates>;

    /// The manager's transactions, the latest first. Where a package is named, at least all transactions that concern it.
    fn history(&self, package: Option<&str>, cx: &Context) -> Result<Vec<Transaction>>;

    /// Names of packages, including all that are similar to this one.
    fn names(&self, like: &str, cx: &Context) -> Result<Vec<String>>;

    /// The names of which the repositories have no package.
    fn unknown(&self, names: &[String], cx: &Context) -> Result<Vec<String>>;

    /// The command that does what is requested, with root's rights. `None` where the manager can't do it, which the caller is
    /// told by the code `NOT_SUPPORTED`. A manager that keeps no configuration files of removed packages, as rpm mostly
    /// doesn't, removes by the same command for [`Request::Remove`] and [`Request::Purge`].
    fn command(&self, request: &Request, cx: &Context) -> Option<Command>;

    /// The exit codes with which [`Backend::command`] has done what was requested, such as one that asks for a reboot.
    /// [`Backend::remarks`] can say what a code means.
    fn success_codes(&self) -> &[i32] {
        &[0]
    }

    /// The command of the manager's own simulation, for the plan's preview. Its output must stay the same as long as the same
    /// would be done.
    fn dry_run_command(&self, _request: &Request, _cx: &Context) -> Option<Command> {
        None
    }

    /// Simulates the request. It is never called with [`Request::Refresh`].
    fn simulate(&self, request: &Request, cx: &Context) -> Result<Simulated>;

    /// The problem that the output of a failed command describes. `None` where the backend doesn't know the output. The host
    /// has remedies for these codes: `RESOURCE_LOCKED`, `DEPENDENCY_CONFLICT`, `DEPENDENCIES_BROKEN`, `PACKAGE_NOT_FOUND`,
    /// `VERSION_NOT_AVAILABLE`, `PROTECTED_PACKAGE`, `OUT_OF_SPACE`, `REPOSITORY_UNREACHABLE`, `REPOSITORY_UNTRUSTED`,
    /// `PACKAGES_INTERRUPTED`, `PACKAGE_SCRIPT_FAILED`.
    fn explain(&self, output: &Output, cx: &Context) -> Option<Problem>;

    /// Reads the output of a command that succeeded: configuration files that were kept, scripts that failed all the same.
    fn remarks(&self, _output: &Output, _cx: &Context) -> Remarks {
        Remarks::default()
    }

    /// Finds out what is left to do after a change.
    fn aftermath(&self, _cx: &Context) -> Aftermath {
        Aftermath::default()
    }

    /// The upkeep of the manager. With it, the module has seven tools more: repair, hold, unhold, autoremove, clean, verify,
    /// owner.
    fn upkeep(&self) -> Option<&dyn upkeep::Upkeep> {
        None
    }

    /// The request that takes a package back where the caller names no version. By default this is the latest former version
    /// of the history that is still available, otherwise the available version below the current one.
    fn rollback_request(&self, name: &str, current: &str, cx: &Context) -> Result<Request> {
        let available: Vec<_> = self.versions(name, cx)?.into_iter().map(|found| found.version).collect();
        let former = rollback::former_versions(name, current, &self.history(Some(name), cx)?);
        let below = || available.iter().skip_while(|version| *version != current).nth(1);
        match former.iter().find(|version| available.contains(version)).or_else(below) {
            Some(version) => Ok(Request::Version(name.to_owned(), version.clone())),
            None => Err(rollback::no_earlier_version(name, former.first().map(String::as_str), &available)),
        }
    }

    /// The repositories, for the tools `repo_list`, `repo_add` and `repo_remove`. Without them, a module doesn't have the
    /// tools.
    fn repositories(&self) -> Option<&dyn repositories::Repositories> {
        None
    }
}

/// Remarks in the output of a successful command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Configuration files that kept an administrator's changes.
    pub kept_config_files: Vec<String>,
    /// Notes for the caller, one sentence each.
    pub notes: Vec<String>,
}

/// The module of a backend, with the ten tools, and those for repositories and upkeep where the backend knows them.
pub fn module<B: Backend + 'static>(backend: fn() -> B) -> Module {
    use DurationCategory::{Normal, Slow};
    let look = |tool: Tool| tool.duration(Normal);
    let named = |tool: Tool| tool.argument_alias("packages", "package").argument_alias("name", "package");
    let module = upkeep::granted(backend().module(), backend);
    [
        look(
            Tool::new("pkg_list_installed", "Installed packages", move |args, cx: &Context| {
                list_installed::list_installed(&backend(), args, cx)
            })
            .helps("PACKAGE_NOT_INSTALLED", "See what is installed: pkg_list_installed"),
        ),
        look(
            Tool::new("pkg_search", "Search the repositories", move |args, cx: &Context| {
                search::search(&backend(), args, cx)
            })
            .helps("PROGRAM_NOT_FOUND", "Find the package that has it: pkg_search query=<program>")
            .helps("PACKAGE_NOT_FOUND", "Find its name: pkg_search query=<words>"),
        ),
        named(look(Tool::new(
            "pkg_info",
            "One package: versions, sizes, needs",
            move |args, cx: &Context| info::info(&backend(), args, cx),
        ))),
        named(
            Tool::new("pkg_install", "Install packages", move |args, cx: &Context| {
                install::install(&backend(), args, cx)
            })
            .idempotent(),
        )
        .risk(Risk::Moderate)
        .duration(Normal)
        .first(),
        named(
            Tool::new(
                "pkg_remove",
                "Remove packages, keep their configuration",
                move |args, cx: &Context| remove::remove(&backend(), args, cx),
            )
            .idempotent(),
        )
        .risk(Risk::High)
        .duration(Normal),
        named(
            Tool::new("pkg_purge", "Remove packages with their configuration", move |args, cx: &Context| {
                remove::purge(&backend(), args, cx)
            })
            .idempotent(),
        )
        .risk(Risk::Critical)
        .duration(Normal),
        named(
            Tool::new("pkg_update", "Update these packages, or all", move |args, cx: &Context| {
                update::update(&backend(), args, cx)
            })
            .helps("PACKAGE_NOT_FOUND", "Read the repositories anew: pkg_update refresh_only=true")
            .helps("DEPENDENCY_CONFLICT", "Read the repositories anew: pkg_update refresh_only=true"),
        )
        .risk(Risk::Moderate)
        .duration(Slow),
        look(Tool::new("pkg_check_updates", "Updates that are to be had", move |args, cx: &Context| {
            check_updates::check_updates(&backend(), args, cx)
        })),
        look(
            Tool::new(
                "pkg_history",
                "What was installed, updated, removed, when",
                move |args, cx: &Context| history::history(&backend(), args, cx),
            )
            .helps("VERSION_NOT_AVAILABLE", "See which versions it had: pkg_history package=<package>")
            .helps("TRANSACTION_INCOMPLETE", "See what was done to it: pkg_history package=<package>"),
        ),
        named(Tool::new(
            "pkg_rollback",
            "Take a package back to an earlier version",
            move |args, cx: &Context| rollback::rollback(&backend(), args, cx),
        ))
        .risk(Risk::High)
        .duration(Normal),
    ]
    .into_iter()
    .chain(upkeep::tools(backend))
    .chain(repositories::tools(backend))
    .fold(module, Module::tool)
}

/// The problem of names of which the repositories have no package.
fn not_found<B: Backend>(backend: &B, names: &[String], cx: &Context) -> Problem {
    let mut message = format!("there is no package {} in the repositories of this machine", names.join(", "));
    for name in names {
        let close = backend.names(name, cx).map(|known| name::close(name, &known)).unwrap_or_default();
        if !close.is_empty() {
            message += &format!("; close to {name}: {}", close.join(", "));
        }
    }
    Problem::new("PACKAGE_NOT_FOUND", Category::NotFound, message)
}
