//! The things that a package manager may also be able to do: hold packages, repair, clean up, and compare files with
//! packages. A backend that has them gives an [`Upkeep`], and gets seven tools more.

mod autoremove;
mod clean;
mod hold;
mod owner;
mod repair;
mod verify;

use serde::Serialize;

use super::Backend;
use super::types::Simulated;
use crate::{
    Category, Command, Context, DurationCategory, IntoReply, Module, Output, Problem, Result, Risk, Step,
    Tool,
};

/// The upkeep of a package manager. Commands that change something run with root's rights.
pub trait Upkeep {
    /// Finds out what is broken, and which commands mend it.
    fn diagnose(&self, cx: &Context) -> Result<Diagnosis>;

    /// The command that keeps installed packages at their version.
    fn hold(&self, names: &[String], cx: &Context) -> Result<Command>;

    /// The command that releases them.
    fn unhold(&self, names: &[String], cx: &Context) -> Result<Command>;

    /// The names of packages that were installed for others which don't need them any more.
    fn unneeded(&self, cx: &Context) -> Result<Vec<String>>;

    /// The command that removes these downloads. `None` where the manager has none for them.
    fn clean(&self, what: Cached, cx: &Context) -> Option<Command>;

    /// The size in bytes of all downloads.
    fn cached_bytes(&self, cx: &Context) -> Result<u64>;

    /// The files that differ from what these packages brought; of all packages where none is named.
    fn verify(&self, names: &[String], cx: &Context) -> Result<Comparison>;

    /// The commands that look for the packages that have these paths in their lists of files.
    fn search_owners(&self, paths: &[String]) -> Vec<Command>;

    /// Reads what these commands printed: the packages of each path, in order.
    fn read_owners(&self, paths: &[String], outputs: Vec<Result<Output>>) -> Result<Vec<Owners>>;

    /// The packages that have these paths in their lists of files, one answer for each path, in order.
    fn owners(&self, paths: &[String], cx: &Context) -> Result<Vec<Owners>> {
        match paths {
            [] => Ok(Vec::new()),
            paths => self.read_owners(paths, cx.run_all(self.search_owners(paths))),
        }
    }

    /// Packages of the repositories that would bring this path. Empty where the manager's metadata doesn't say it.
    fn providers(&self, _path: &str, _cx: &Context) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// The tools, where the backend has an upkeep.
pub(super) fn tools<B: Backend + 'static>(backend: fn() -> B) -> Vec<Tool> {
    use DurationCategory::{Normal, Slow};
    if backend().upkeep().is_none() {
        return Vec::new();
    }
    let change = |tool: Tool, risk: Risk| tool.risk(risk).duration(Normal);
    let named = |tool: Tool| tool.argument_alias("packages", "package").argument_alias("name", "package");
    vec![
        change(
            tool("pkg_repair", "Mend what an interrupted change broke", backend, repair::repair)
                .helps("DEPENDENCIES_BROKEN", "See what would mend it: pkg_repair dry_run=true")
                .helps("PACKAGES_INTERRUPTED", "Finish what was cut off: pkg_repair")
                .helps("PACKAGE_SCRIPT_FAILED", "Finish it once its cause is mended: pkg_repair"),
            Risk::Moderate,
        ),
        change(
            named(
                tool("pkg_hold", "Keep packages at their version", backend, hold::hold)
                    .loses_nothing()
                    .idempotent(),
            ),
            Risk::Moderate,
        ),
        change(
            named(
                tool("pkg_unhold", "Let held packages be updated", backend, hold::unhold)
                    .loses_nothing()
                    .idempotent(),
            ),
            Risk::Moderate,
        ),
        change(
            tool("pkg_autoremove", "Remove what no package needs", backend, autoremove::autoremove),
            Risk::High,
        ),
        change(
            tool("pkg_clean", "Remove downloads", backend, clean::clean)
                .helps("OUT_OF_SPACE", "Remove downloaded packages: pkg_clean")
                .idempotent(),
            Risk::Moderate,
        ),
        named(
            tool("pkg_verify", "Compare files with their packages", backend, verify::verify)
                .helps("UNTRUSTED_PROGRAM", "See what else differs from its package: pkg_verify"),
        )
        .duration(Slow),
        tool("pkg_owner", "Which package has these files", backend, owner::owner)
            .argument_alias("path", "files")
            .duration(Normal),
    ]
}

/// The module with what these tools ask for, beyond the backend's own grants.
pub(super) fn granted<B: Backend>(module: Module, backend: fn() -> B) -> Module {
    if backend().upkeep().is_some() { module.grants(owner::granted) } else { module }
}

/// A tool that uses the backend's upkeep.
fn tool<B, A, R>(
    name: &'static str,
    summary: &'static str,
    backend: fn() -> B,
    run: fn(&B, &dyn Upkeep, A, &Context) -> Result<R>,
) -> Tool
where
    B: Backend + 'static,
    A: serde::de::DeserializeOwned + schemars::JsonSchema + 'static,
    R: IntoReply + 'static,
{
    Tool::new(name, summary, move |args: A, cx: &Context| {
        let backend = backend();
        let upkeep = backend.upkeep().ok_or_else(|| {
            Problem::new("NOT_SUPPORTED", Category::State, "this package manager has no upkeep")
        })?;
        run(&backend, upkeep, args, cx)
    })
}

/// Downloads that a package manager keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Cached {
    #[default]
    Packages,
    Metadata,
    All,
}

/// The damage, and the steps that mend it.
#[derive(Debug, Default)]
pub struct Diagnosis {
    /// The damage, one sentence each. Empty where nothing is.
    pub findings: Vec<String>,
    /// The commands that mend it. Empty where no command of the manager does.
    pub steps: Vec<Step>,
    /// The changes that the steps make to packages, by the manager's own simulation.
    pub simulated: Simulated,
    /// The command of that simulation.
    pub dry_run: Option<Command>,
    /// The problem to answer with where there are no steps.
    pub problem: Option<Problem>,
    /// Notes for the caller, one sentence each.
    pub notes: Vec<String>,
}

/// The files of packages, compared with what the packages brought.
#[derive(Debug)]
pub struct Comparison {
    /// The named packages that aren't installed.
    pub absent: Vec<String>,
    /// The files that differ. Where a package isn't installed, this may be the problem of that.
    pub differences: Result<Vec<Difference>>,
}

/// A file that differs from what its package brought.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The path of the file.
    pub path: String,
    /// The package that brought it, where it is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub package: String,
    /// The properties that differ: `missing`, `digest`, `size`, `mode`, `type`, `owner`, `group`, `link`, `device`,
    /// `capabilities`, `time`.
    pub differs: Vec<&'static str>,
    /// True for configuration, which administrators change.
    #[serde(skip)]
    pub config: bool,
    /// True where the contents couldn't be read.
    #[serde(skip)]
    pub unreadable: bool,
}

/// The packages that have a path in their list of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owners {
    /// The names of the packages.
    pub packages: Vec<String>,
    /// The diversion of the path in the manager's words, where it has one.
    pub diversion: Option<String>,
}
