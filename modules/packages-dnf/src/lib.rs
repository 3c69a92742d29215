//! The package tools with dnf: versions 4 and 5, `yum` where it is another name of them.
//!
//! What looks asks for what is downloaded already (`--cacheonly`), with nobody's rights but the caller's: so it needs no
//! network, writes nothing that the system shares, and tells the same as root would see. What changes something takes the
//! very same metadata (`metadata_expire=never`): what was simulated is what runs. `pkg_update` with `refresh_only` reads
//! the repositories anew, and nothing else does.
//!
//! dnf's words are read in English: the host sets the locale of every command.
#![forbid(unsafe_code)]

mod advisory;
mod aftermath;
mod back;
mod command;
mod history;
mod installed;
mod package;
mod problem;
mod remarks;
mod repository;
mod simulation;
mod version;

use linux_sysadmin_sdk::packages::{
    Aftermath, Available, Backend, Found, Info, Installed, Remarks, Request, Simulated, Transaction, Updates,
};
use linux_sysadmin_sdk::prelude::*;

/// dnf, whichever of its versions the target has.
struct Dnf;

impl Backend for Dnf {
    fn module(&self) -> Module {
        command::granted(
            Module::new("packages-dnf", env!("CARGO_PKG_VERSION"), "packages", "Packages with dnf")
                .license(env!("CARGO_PKG_LICENSE"))
                .serves("package_manager", &["dnf"]),
        )
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

    fn run(&self, request: &Request) -> Option<Command> {
        Some(command::change(request))
    }

    fn dry_run(&self, request: &Request) -> Option<Command> {
        command::simulation(request)
    }

    fn simulate(&self, request: &Request, cx: &Context) -> Result<Simulated> {
        simulation::simulate(request, cx)
    }

    fn explain(&self, output: &Output) -> Option<Problem> {
        problem::explain(output)
    }

    fn remarks(&self, output: &Output) -> Remarks {
        remarks::remarks(output)
    }

    fn aftermath(&self, cx: &Context) -> Aftermath {
        aftermath::aftermath(cx)
    }

    fn back(&self, name: &str, current: &str, cx: &Context) -> Result<Request> {
        back::back(name, current, cx)
    }
}

/// The module.
pub fn module() -> Module {
    linux_sysadmin_sdk::packages::module(|| Dnf)
}

linux_sysadmin_sdk::export!(module);
