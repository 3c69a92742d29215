//! Packages with dnf, versions 4 and 5, and with `yum` where it is another name of dnf.
//!
//! Commands that look read only what was downloaded before (`--cacheonly`), with the caller's rights. So they need no
//! network, write nothing that the system shares, and print what root would see. A change uses the same metadata
//! (`metadata_expire=never`), so that it does what was simulated. Only `pkg_update` with `refresh_only` reads the
//! repositories anew.
//!
//! The module reads dnf's output in English: the host sets the locale of every command.
#![forbid(unsafe_code)]

mod aftermath;
mod command;
mod history;
mod installed;
mod problem;
mod remarks;
mod repository;
mod rollback;
mod simulation;
mod sources;
mod upkeep;
mod version;

use linux_sysadmin_sdk::packages::repositories::Repositories;
use linux_sysadmin_sdk::packages::upkeep::Upkeep;
use linux_sysadmin_sdk::packages::{
    Aftermath, Available, Backend, Found, Info, Installed, Remarks, Request, Simulated, Transaction, Updates,
};
use linux_sysadmin_sdk::prelude::*;

/// The backend for dnf 4 and dnf 5.
struct Dnf;

impl Backend for Dnf {
    fn module(&self) -> Module {
        Module::new("packages-dnf", env!("CARGO_PKG_VERSION"), "packages", "Packages with dnf")
            .license(env!("CARGO_PKG_LICENSE"))
            .serves("package_manager", &["dnf"])
            .grants(command::granted)
            .grants(sources::granted)
            .grants(upkeep::granted)
    }

    fn installed(&self, cx: &Context) -> Result<Vec<Installed>> {
        installed::installed(cx)
    }

    fn search(&self, words: &[String], names_only: bool, cx: &Context) -> Result<Vec<Found>> {
        repository::search(words, names_only, cx)
    }

    fn info(&self, name: &str, cx: &Context) -> Result<Option<Info>> {
        repository::info(name, cx)
    }

    fn versions(&self, name: &str, cx: &Context) -> Result<Vec<Available>> {
        repository::versions(name, cx)
    }

    fn updates(&self, cx: &Context) -> Result<Updates> {
        repository::updates(cx)
    }

    fn history(&self, package: Option<&str>, cx: &Context) -> Result<Vec<Transaction>> {
        history::history(package, cx)
    }

    fn names(&self, _like: &str, cx: &Context) -> Result<Vec<String>> {
        repository::names(cx)
    }

    fn unknown(&self, names: &[String], cx: &Context) -> Result<Vec<String>> {
        repository::unknown(names, cx)
    }

    fn command(&self, request: &Request, _: &Context) -> Option<Command> {
        Some(command::change(request))
    }

    fn dry_run_command(&self, request: &Request, _: &Context) -> Option<Command> {
        command::simulation(request)
    }

    fn simulate(&self, request: &Request, cx: &Context) -> Result<Simulated> {
        simulation::simulate(request, cx)
    }

    fn explain(&self, output: &Output, _: &Context) -> Option<Problem> {
        problem::explain(output)
    }

    fn remarks(&self, output: &Output, _: &Context) -> Remarks {
        remarks::remarks(output)
    }

    fn upkeep(&self) -> Option<&dyn Upkeep> {
        Some(self)
    }

    fn aftermath(&self, cx: &Context) -> Aftermath {
        aftermath::aftermath(cx)
    }

    fn rollback_request(&self, name: &str, current: &str, cx: &Context) -> Result<Request> {
        rollback::rollback_request(name, current, cx)
    }

    fn repositories(&self) -> Option<&dyn Repositories> {
        Some(&sources::Sources)
    }
}

/// The module.
pub fn module() -> Module {
    linux_sysadmin_sdk::packages::module(|| Dnf)
}

linux_sysadmin_sdk::export!(module);
