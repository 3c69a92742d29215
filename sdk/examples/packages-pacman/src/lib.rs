//! Packages with pacman, as Arch Linux and its relatives have it.
//!
//! What looks runs with the caller's rights, and on the lists that were fetched before. pacman says by `--print` what a change
//! would do, without a lock and without rights; it doesn't look for conflicts then, so that the module does. Older versions are
//! those that pacman has kept in its cache, since a repository has the newest one alone.
//!
//! The module reads pacman's output in English: the host sets the locale of every command. It was tried with pacman 6.0.2.
#![forbid(unsafe_code)]

mod commands;
mod database;
mod kept;
mod log;
mod problem;
mod simulation;
mod version;

use std::cell::RefCell;

use kept::Kept;
use linux_sysadmin_sdk::packages::{
    self, Available, Backend, Found, Info, Installed, Remarks, Request, Simulated, Transaction, Updates,
};
use linux_sysadmin_sdk::prelude::*;

linux_sysadmin_sdk::export!(module);

/// The module.
pub fn module() -> Module {
    packages::module(Pacman::default)
}

/// The backend for pacman.
#[derive(Default)]
struct Pacman {
    /// The packages in pacman's cache that this call has asked about. A command for an older version names one of them.
    kept: RefCell<Vec<Kept>>,
}

impl Pacman {
    /// The file of pacman's cache with this version of the package, where this call has asked about the package.
    fn file(&self, name: &str, version: &str) -> Option<String> {
        let kept = self.kept.borrow();
        kept.iter().find(|kept| kept.name == name && kept.version == version).map(Kept::path)
    }

    /// Looks for the versions of a package that pacman has kept, the newest first.
    fn look_for_kept(&self, name: &str, cx: &Context) -> Result<Vec<Kept>> {
        let found = kept::of(name, cx)?;
        self.kept.borrow_mut().extend(found.iter().cloned());
        Ok(found)
    }

    /// The commands of a request: the one that does it, and the one that says what it would do.
    fn commands(&self, request: &Request) -> Option<[Command; 2]> {
        match request {
            Request::Version(name, version) => match self.file(name, version) {
                Some(file) => Some(commands::of_file(&file)),
                // Only the repositories can have it.
                None => Some(commands::of_names(commands::INSTALL, std::slice::from_ref(name))),
            },
            request => commands::of(request),
        }
    }
}

impl Backend for Pacman {
    fn module(&self) -> Module {
        let module =
            Module::new("packages-pacman", env!("CARGO_PKG_VERSION"), "packages", "Packages with pacman");
        module
            .license(env!("CARGO_PKG_LICENSE"))
            .serves("package_manager", &["pacman"])
            .grants(commands::granted)
            .path(PathGrant::read(kept::CACHE, "which versions pacman has kept"))
            .path(PathGrant::read(log::LOG, "what pacman has done"))
    }

    fn installed(&self, cx: &Context) -> Result<Vec<Installed>> {
        database::installed(cx)
    }

    fn search(&self, words: &[String], names_only: bool, cx: &Context) -> Result<Vec<Found>> {
        database::search(words, names_only, cx)
    }

    fn info(&self, name: &str, cx: &Context) -> Result<Option<Info>> {
        let Some(info) = database::info(name, cx)? else { return Ok(None) };
        Ok(Some(Info { versions: self.versions(name, cx)?, ..info }))
    }

    fn versions(&self, name: &str, cx: &Context) -> Result<Vec<Available>> {
        let mut versions = database::offered(name, cx)?;
        for kept in self.look_for_kept(name, cx)? {
            if versions.iter().all(|known| known.version != kept.version) {
                versions.push(Available { version: kept.version, repository: "cache".to_owned() });
            }
        }
        versions.sort_by(|a, b| version::compare(&b.version, &a.version));
        Ok(versions)
    }

    fn updates(&self, cx: &Context) -> Result<Updates> {
        let items = database::updates(cx)?;
        Ok(Updates { items, refreshed: log::refreshed(cx)?, ..Updates::default() })
    }

    fn history(&self, _package: Option<&str>, cx: &Context) -> Result<Vec<Transaction>> {
        log::transactions(cx)
    }

    fn names(&self, _like: &str, cx: &Context) -> Result<Vec<String>> {
        database::names(cx)
    }

    fn unknown(&self, names: &[String], cx: &Context) -> Result<Vec<String>> {
        let known = database::names(cx)?;
        Ok(names.iter().filter(|name| !known.contains(name)).cloned().collect())
    }

    fn command(&self, request: &Request, _: &Context) -> Option<Command> {
        match request {
            Request::Refresh => Some(commands::refresh()),
            request => self.commands(request).map(|[change, _]| change),
        }
    }

    fn dry_run_command(&self, request: &Request, _: &Context) -> Option<Command> {
        self.commands(request).map(|[_, simulation]| simulation)
    }

    fn simulate(&self, request: &Request, cx: &Context) -> Result<Simulated> {
        if let Request::Version(name, version) = request
            && self.file(name, version).is_none()
        {
            self.look_for_kept(name, cx)?;
        }
        match self.dry_run_command(request, cx) {
            Some(command) => simulation::simulate(request, command, cx),
            None => Ok(Simulated::default()),
        }
    }

    fn explain(&self, output: &Output, _: &Context) -> Option<Problem> {
        problem::explain(output)
    }

    fn remarks(&self, output: &Output, _: &Context) -> Remarks {
        problem::remarks(output)
    }
}
