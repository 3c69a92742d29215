//! The domain `packages`: ten tools whose names, schemas, risks and answers are the same for every package manager. A
//! backend gives its commands and reads what they say; see [`Backend`].
//!
//! What a change does is found out by the manager's own simulation, before anything is asked or done. The plan is one
//! command; how grave it is follows from what the simulation says; and what was done is read from the package database,
//! before and after, not from what the manager says that it did.

mod change;
mod look;
mod name;
mod types;
mod weigh;

pub use name::{MOST, check as check_name};
pub use types::{
    Aftermath, Available, Found, Info, Installed, Operation, Request, Simulated, State, Transaction, Update,
    Updates, Verb,
};

use crate::{Category, Command, Context, DurationCategory, Module, Output, Problem, Result, Risk, Tool};

/// A package manager.
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
///     fn run(&self, request: &Request) -> Option<Command> {
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
/// #   fn explain(&self, _: &Output) -> Option<Problem> { None }
/// }
///
/// fn module() -> Module {
///     linux_sysadmin_sdk::packages::module(|| Toy)
/// }
/// assert_eq!(module().description().tools.len(), 10);
/// ```
///
/// Names that a backend is given are checked: they are names of packages alone, though perhaps of none that exists.
pub trait Backend {
    /// Everything of the module but its tools: name, grants, which targets it serves.
    fn module(&self) -> Module;

    /// Every package of the package database, also those that are half-installed or of which configuration is left.
    fn installed(&self, cx: &Context) -> Result<Vec<Installed>>;

    /// What can be had and has all of the words (lower-case, plain text, at most 8) in its name or summary.
    fn search(&self, words: &[String], names_only: bool, cx: &Context) -> Result<Vec<Found>>;

    /// What is known of a package, installed or to be had; none where it is neither.
    fn info(&self, name: &str, cx: &Context) -> Result<Option<Info>>;

    /// The versions of a package that can be had from the repositories, the newest first.
    fn versions(&self, name: &str, cx: &Context) -> Result<Vec<Available>>;

    /// Newer versions of what is installed.
    fn updates(&self, cx: &Context) -> Result<Updates>;

    /// What the manager has done, the latest first; where a package is named, at least all that concerns it.
    fn history(&self, package: Option<&str>, cx: &Context) -> Result<Vec<Transaction>>;

    /// Names of packages among which one like this would be.
    fn names(&self, like: &str, cx: &Context) -> Result<Vec<String>>;

    /// Those of the names that the repositories don't have.
    fn unknown(&self, names: &[String], cx: &Context) -> Result<Vec<String>>;

    /// The command that does it, with root's rights; none where the manager can't.
    fn run(&self, request: &Request) -> Option<Command>;

    /// The manager's own simulation of that, for the plan's preview: what it says must not differ from one time to the
    /// next as long as what would be done doesn't.
    fn dry_run(&self, _request: &Request) -> Option<Command> {
        None
    }

    /// What the simulation says. Never of [`Request::Refresh`].
    fn simulate(&self, request: &Request, cx: &Context) -> Result<Simulated>;

    /// What a failed command says, in the words of a [`Problem`]; none where it says nothing that is known. These codes
    /// have remedies with the host: `RESOURCE_LOCKED`, `DEPENDENCY_CONFLICT`, `DEPENDENCIES_BROKEN`, `PACKAGE_NOT_FOUND`,
    /// `VERSION_NOT_AVAILABLE`, `PROTECTED_PACKAGE`, `OUT_OF_SPACE`, `REPOSITORY_UNREACHABLE`, `REPOSITORY_UNTRUSTED`,
    /// `PACKAGES_INTERRUPTED`, `PACKAGE_SCRIPT_FAILED`.
    fn explain(&self, output: &Output) -> Option<Problem>;

    /// What a command that succeeded says besides: configuration files that were kept, scripts that failed all the same.
    fn remarks(&self, _output: &Output) -> Remarks {
        Remarks::default()
    }

    /// What is left to do after a change.
    fn aftermath(&self, _cx: &Context) -> Aftermath {
        Aftermath::default()
    }

    /// What takes a package back where no version is named. Unless a backend knows better: the version that it had
    /// before by the manager's history and that can still be had, else the one below the present one.
    fn back(&self, name: &str, current: &str, cx: &Context) -> Result<Request> {
        let available: Vec<_> = self.versions(name, cx)?.into_iter().map(|found| found.version).collect();
        let former = look::former_versions(name, current, &self.history(Some(name), cx)?);
        let below = || available.iter().skip_while(|version| *version != current).nth(1);
        match former.iter().find(|version| available.contains(version)).or_else(below) {
            Some(version) => Ok(Request::Version(name.to_owned(), version.clone())),
            None => Err(look::no_way_back(name, former.first().map(String::as_str), &available)),
        }
    }
}

/// What a command that succeeded says besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Configuration files that stayed as an administrator had changed them.
    pub kept_config_files: Vec<String>,
    /// A sentence each.
    pub notes: Vec<String>,
}

/// The module of a backend: its grants, and the ten tools.
pub fn module<B: Backend + 'static>(backend: fn() -> B) -> Module {
    use DurationCategory::{Normal, Slow};
    let look = |tool: Tool| tool.duration(Normal);
    [
        look(Tool::new("pkg_list_installed", "Installed packages", move |args, cx: &Context| {
            look::installed(&backend(), args, cx)
        })),
        look(Tool::new("pkg_search", "Search the repositories", move |args, cx: &Context| {
            look::search(&backend(), args, cx)
        })),
        look(Tool::new("pkg_info", "One package: versions, sizes, needs", move |args, cx: &Context| {
            look::info(&backend(), args, cx)
        })),
        Tool::new("pkg_install", "Install packages", move |args, cx: &Context| {
            change::install(&backend(), args, cx)
        })
        .risk(Risk::Moderate)
        .duration(Normal),
        Tool::new("pkg_remove", "Remove packages, keep their configuration", move |args, cx: &Context| {
            change::remove(&backend(), args, cx)
        })
        .argument_alias("packages", "package")
        .risk(Risk::High)
        .duration(Normal),
        Tool::new("pkg_purge", "Remove packages with their configuration", move |args, cx: &Context| {
            change::purge(&backend(), args, cx)
        })
        .argument_alias("packages", "package")
        .risk(Risk::Critical)
        .duration(Normal),
        Tool::new("pkg_update", "Update these packages, or all", move |args, cx: &Context| {
            change::update(&backend(), args, cx)
        })
        .risk(Risk::Moderate)
        .duration(Slow),
        look(Tool::new("pkg_check_updates", "Updates that are to be had", move |args, cx: &Context| {
            look::check_updates(&backend(), args, cx)
        })),
        look(Tool::new(
            "pkg_history",
            "What was installed, updated, removed, when",
            move |args, cx: &Context| look::history(&backend(), args, cx),
        )),
        Tool::new("pkg_rollback", "Take a package back to an earlier version", move |args, cx: &Context| {
            change::rollback(&backend(), args, cx)
        })
        .risk(Risk::High)
        .duration(Normal),
    ]
    .into_iter()
    .fold(backend().module(), Module::tool)
}

/// The problem of names that there are no packages of.
fn unknown<B: Backend>(backend: &B, names: &[String], cx: &Context) -> Problem {
    let mut message = format!("there is no package {} in the repositories of this machine", names.join(", "));
    for name in names {
        let close = backend.names(name, cx).map(|known| name::close(name, &known)).unwrap_or_default();
        if !close.is_empty() {
            message += &format!("; close to {name}: {}", close.join(", "));
        }
    }
    Problem::new("PACKAGE_NOT_FOUND", Category::NotFound, message)
}
