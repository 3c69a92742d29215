//! Packages with apt and dpkg, by apt-get, apt-cache and dpkg-query in forms that programs can read.
//!
//! The module doesn't use `apt`, whose manual says that its command line isn't stable.
#![forbid(unsafe_code)]

mod aftermath;
mod apt_cache;
mod commands;
mod dpkg_query;
mod explain;
mod history;
mod log_files;
mod output;
mod repositories;
mod simulation;
mod upkeep;

use linux_sysadmin_sdk::packages::repositories::Repositories;
use linux_sysadmin_sdk::packages::upkeep::Upkeep;
use linux_sysadmin_sdk::packages::{
    Aftermath, Available, Backend, Found, Info, Installed, Remarks, Request, Simulated, Transaction, Updates,
};
use linux_sysadmin_sdk::prelude::*;

/// The module.
pub fn module() -> Module {
    linux_sysadmin_sdk::packages::module(|| Apt)
}

linux_sysadmin_sdk::export!(module);

struct Apt;

/// Asks for the files that tell what apt and dpkg have done.
fn files(module: Module) -> Module {
    module.paths([
        PathGrant::read("/var/log/apt/history.log*", "what apt has done"),
        PathGrant::read("/var/log/apt", "its rotated logs"),
        PathGrant::read("/var/log/dpkg.log*", "what dpkg has done without apt"),
        PathGrant::read("/var/log", "dpkg's rotated logs"),
        PathGrant::read("/var/lib/apt/lists/partial", "when the repositories were read last"),
        PathGrant::read("/var/lib/apt/periodic/update-success-stamp", "when they were read last"),
        PathGrant::read("/var/lib/dpkg/info/*.list", "when a package was installed"),
        PathGrant::read("/run/reboot-required", "whether a package wants a reboot"),
        PathGrant::read("/run/reboot-required.pkgs", "which packages want it"),
    ])
}

impl Backend for Apt {
    fn module(&self) -> Module {
        Module::new("packages-apt", env!("CARGO_PKG_VERSION"), "packages", "Packages with apt")
            .license(env!("CARGO_PKG_LICENSE"))
            .serves("package_manager", &["apt"])
            .grants(commands::granted)
            .grants(files)
            .grants(repositories::granted)
            .grants(upkeep::granted)
    }

    fn installed(&self, cx: &Context) -> Result<Vec<Installed>> {
        dpkg_query::installed(cx)
    }

    fn search(&self, words: &[String], names_only: bool, cx: &Context) -> Result<Vec<Found>> {
        apt_cache::search(words, names_only, cx)
    }

    fn info(&self, name: &str, cx: &Context) -> Result<Option<Info>> {
        apt_cache::info(name, cx)
    }

    fn versions(&self, name: &str, cx: &Context) -> Result<Vec<Available>> {
        Ok(apt_cache::policy(&[name], cx)?.remove(name).map(|policy| policy.available).unwrap_or_default())
    }

    fn updates(&self, cx: &Context) -> Result<Updates> {
        simulation::updates(cx)
    }

    fn history(&self, package: Option<&str>, cx: &Context) -> Result<Vec<Transaction>> {
        history::read(package, cx)
    }

    fn names(&self, like: &str, cx: &Context) -> Result<Vec<String>> {
        apt_cache::names(like, cx)
    }

    fn unknown(&self, names: &[String], cx: &Context) -> Result<Vec<String>> {
        let known = apt_cache::policy(names, cx)?;
        Ok(names.iter().filter(|name| !known.contains_key(name.as_str())).cloned().collect())
    }

    fn command(&self, request: &Request, _: &Context) -> Option<Command> {
        commands::run(request)
    }

    fn dry_run_command(&self, request: &Request, _: &Context) -> Option<Command> {
        commands::simulation(request)
    }

    fn simulate(&self, request: &Request, cx: &Context) -> Result<Simulated> {
        simulation::of(request, cx)
    }

    fn explain(&self, output: &Output, _: &Context) -> Option<Problem> {
        explain::explain(output)
    }

    fn remarks(&self, output: &Output, _: &Context) -> Remarks {
        explain::remarks(output)
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        Some(self)
    }

    fn aftermath(&self, cx: &Context) -> Aftermath {
        aftermath::look(cx)
    }

    fn repositories(&self) -> Option<&dyn Repositories> {
        Some(&repositories::Sources)
    }
}
