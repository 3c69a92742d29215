//! Packages with apt and dpkg: apt-get, apt-cache and dpkg-query in the forms that programs read.
//!
//! `apt` itself is not used: it says of itself that its command line isn't stable.
#![forbid(unsafe_code)]

mod aftermath;
mod commands;
mod database;
mod explain;
mod history;
mod output;
mod records;
mod simulation;

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

impl Backend for Apt {
    fn module(&self) -> Module {
        let module = Module::new("packages-apt", env!("CARGO_PKG_VERSION"), "packages", "Packages with apt")
            .license(env!("CARGO_PKG_LICENSE"))
            .serves("package_manager", &["apt"]);
        let paths = [
            PathGrant::read("/var/log/apt/history.log*", "what apt has done"),
            PathGrant::read("/var/log/apt", "its rotated logs"),
            PathGrant::read("/var/log/dpkg.log*", "what dpkg has done without apt"),
            PathGrant::read("/var/log", "dpkg's rotated logs"),
            PathGrant::read("/var/lib/apt/lists/partial", "when the repositories were read last"),
            PathGrant::read("/var/lib/apt/periodic/update-success-stamp", "when they were read last"),
            PathGrant::read("/var/lib/dpkg/info/*.list", "when a package was installed"),
            PathGrant::read("/run/reboot-required", "whether a package wants a reboot"),
            PathGrant::read("/run/reboot-required.pkgs", "which packages want it"),
        ];
        paths.into_iter().fold(commands::granted(module), Module::path)
    }

    fn installed(&self, cx: &Context) -> Result<Vec<Installed>> {
        database::installed(cx)
    }

    fn search(&self, words: &[String], names_only: bool, cx: &Context) -> Result<Vec<Found>> {
        records::search(words, names_only, cx)
    }

    fn info(&self, name: &str, cx: &Context) -> Result<Option<Info>> {
        records::info(name, cx)
    }

    fn versions(&self, name: &str, cx: &Context) -> Result<Vec<Available>> {
        Ok(records::policy(&[name], cx)?.remove(name).map(|policy| policy.available).unwrap_or_default())
    }

    fn updates(&self, cx: &Context) -> Result<Updates> {
        simulation::updates(cx)
    }

    fn history(&self, package: Option<&str>, cx: &Context) -> Result<Vec<Transaction>> {
        history::read(package, cx)
    }

    fn names(&self, like: &str, cx: &Context) -> Result<Vec<String>> {
        records::names(like, cx)
    }

    fn unknown(&self, names: &[String], cx: &Context) -> Result<Vec<String>> {
        let known = records::policy(names, cx)?;
        Ok(names.iter().filter(|name| !known.contains_key(name.as_str())).cloned().collect())
    }

    fn run(&self, request: &Request) -> Option<Command> {
        commands::run(request)
    }

    fn dry_run(&self, request: &Request) -> Option<Command> {
        commands::simulation(request)
    }

    fn simulate(&self, request: &Request, cx: &Context) -> Result<Simulated> {
        simulation::of(request, cx)
    }

    fn explain(&self, output: &Output) -> Option<Problem> {
        explain::explain(output)
    }

    fn remarks(&self, output: &Output) -> Remarks {
        explain::remarks(output)
    }

    fn aftermath(&self, cx: &Context) -> Aftermath {
        aftermath::look(cx)
    }
}
