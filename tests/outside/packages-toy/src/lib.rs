//! Packages with `toypkg`, a package manager that exists only in a test (`toypkg.py` beside this crate). Any other package
//! manager takes no more code than this.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::packages::{
    self, Available, Backend, Found, Info, Installed, Operation, Request, Simulated, State, Transaction,
    Update, Updates, Verb,
};
use linux_sysadmin_sdk::prelude::*;

const LIST: CommandLine = CommandLine::new("toypkg list");
const SEARCH: CommandLine = CommandLine::new("toypkg search -- <text>...");
const SHOW: CommandLine = CommandLine::new("toypkg show -- <package>");
const VERSIONS: CommandLine = CommandLine::new("toypkg versions -- <package>");
const NAMES: CommandLine = CommandLine::new("toypkg names");
const LOG: CommandLine = CommandLine::new("toypkg log");
const REFRESH: CommandLine = CommandLine::new("toypkg refresh");

/// A command that changes something, and the same with `--try`, which says what it would do.
macro_rules! pair {
    ($verb:literal, $operands:literal) => {
        [
            CommandLine::new(concat!("toypkg ", $verb, $operands)),
            CommandLine::new(concat!("toypkg ", $verb, " --try", $operands)),
        ]
    };
}

const INSTALL: [CommandLine; 2] = pair!("install", " -- <package>...");
const REMOVE: [CommandLine; 2] = pair!("remove", " -- <package>...");
const PURGE: [CommandLine; 2] = pair!("purge", " -- <package>...");
const UPDATE: [CommandLine; 2] = pair!("update", " -- <package>...");
const UPDATE_ALL: [CommandLine; 2] = pair!("update", "");
const SET: [CommandLine; 2] = pair!("set", " -- <package>=<version>");

linux_sysadmin_sdk::export!(module);

#[cfg_attr(not(target_family = "wasm"), allow(dead_code))]
fn module() -> Module {
    packages::module(|| Toy)
}

struct Toy;

impl Toy {
    fn said(&self, command: Command, cx: &Context) -> Result<String> {
        let output = cx.run(command)?;
        match self.explain(&output, cx).filter(|_| output.exit_code != 0) {
            Some(problem) => Err(problem),
            None => Ok(output.success("toypkg")?.text().into_owned()),
        }
    }

    fn lines(&self, request: &Request) -> Option<[Command; 2]> {
        let pair = |[run, dry_run]: [CommandLine; 2], values: &[String]| {
            Some([run.with(values).as_root(), dry_run.with(values)])
        };
        match request {
            Request::Install(names) | Request::Reinstall(names) => pair(INSTALL, names),
            Request::Remove(names) => pair(REMOVE, names),
            Request::Purge(names) => pair(PURGE, names),
            Request::Update(names) => pair(UPDATE, names),
            Request::UpdateAll => pair(UPDATE_ALL, &[]),
            Request::Version(name, version) => pair(SET, &[name.clone(), version.clone()]),
            Request::Refresh | Request::Undo(_) => None,
        }
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Reads a line such as `upgrade lab-toy 1.0 2.0`, where `-` stands for no version.
fn operation(line: &str) -> Option<Operation> {
    let [verb, name, from, to] = words(line).try_into().ok()?;
    let verb = match verb {
        "install" => Verb::Install,
        "upgrade" => Verb::Upgrade,
        "downgrade" => Verb::Downgrade,
        "remove" => Verb::Remove,
        "purge" => Verb::Purge,
        _ => return None,
    };
    let version = |text: &str| if text == "-" { String::new() } else { text.to_owned() };
    Some(Operation::new(verb, name, version(from), version(to)))
}

impl Backend for Toy {
    fn module(&self) -> Module {
        let module =
            Module::new("packages-toy", env!("CARGO_PKG_VERSION"), "packages", "Packages with toypkg")
                // A target has toypkg only by its configuration, which takes the names of real package managers.
                .serves("package_manager", &["pacman"]);
        let looking = [LIST, SEARCH, SHOW, VERSIONS, NAMES, LOG];
        let module = looking.into_iter().fold(module, |module, line| module.command(line.read("to look")));
        let changing = [INSTALL, REMOVE, PURGE, UPDATE, UPDATE_ALL, SET];
        let module = changing.into_iter().fold(module, |module, [run, dry_run]| {
            module
                .command(run.change(Risk::Moderate, "to do it"))
                .command(dry_run.dry_run("to say what it would do"))
        });
        module.command(REFRESH.change(Risk::Moderate, "to read the repository anew"))
    }

    fn installed(&self, cx: &Context) -> Result<Vec<Installed>> {
        let said = self.said(LIST.command(), cx)?;
        let package = |line: &str| {
            let [name, version, state] = words(line).try_into().ok()?;
            let state = if state == "removed" { State::ConfigFiles } else { State::Installed };
            Some(Installed {
                name: String::from(name),
                version: String::from(version),
                arch: "any".into(),
                state,
                ..Installed::default()
            })
        };
        Ok(said.lines().filter_map(package).collect())
    }

    fn search(&self, words: &[String], _names_only: bool, cx: &Context) -> Result<Vec<Found>> {
        let said = self.said(SEARCH.with(words), cx)?;
        let found = said.lines().filter_map(|line| line.split_once(' '));
        let found = found.map(|(name, summary)| Found {
            name: name.to_owned(),
            version: None,
            installed: None,
            summary: summary.to_owned(),
        });
        Ok(found.collect())
    }

    fn info(&self, name: &str, cx: &Context) -> Result<Option<Info>> {
        let versions = self.versions(name, cx)?;
        if versions.is_empty() {
            return Ok(None);
        }
        let summary = self.said(SHOW.with([name]), cx)?.trim().to_owned();
        let here = self.installed(cx)?.into_iter().find(|package| package.name == name);
        let candidate = versions.first().map(|found| found.version.clone());
        let installed = here.map(|here| here.version);
        Ok(Some(Info { name: name.to_owned(), installed, candidate, versions, summary, ..Info::default() }))
    }

    fn versions(&self, name: &str, cx: &Context) -> Result<Vec<Available>> {
        let said = self.said(VERSIONS.with([name]), cx)?;
        let version = |line: &str| Available { version: line.to_owned(), repository: String::new() };
        Ok(said.lines().map(version).collect())
    }

    fn updates(&self, cx: &Context) -> Result<Updates> {
        let [_, dry_run] = UPDATE_ALL;
        let said = self.said(dry_run.command(), cx)?;
        let update = |done: Operation| Update {
            name: done.name,
            installed: done.from,
            candidate: done.to,
            ..Update::default()
        };
        Ok(Updates { items: said.lines().filter_map(operation).map(update).collect(), ..Updates::default() })
    }

    fn history(&self, _package: Option<&str>, cx: &Context) -> Result<Vec<Transaction>> {
        let said = self.said(LOG.command(), cx)?;
        let past = |line: &str| {
            let (at, rest) = line.split_once(' ')?;
            Some(Transaction {
                at: at.to_owned(),
                operations: vec![operation(rest)?],
                ..Transaction::default()
            })
        };
        Ok(said.lines().rev().filter_map(past).collect())
    }

    fn names(&self, _like: &str, cx: &Context) -> Result<Vec<String>> {
        Ok(self.said(NAMES.command(), cx)?.lines().map(str::to_owned).collect())
    }

    fn unknown(&self, names: &[String], cx: &Context) -> Result<Vec<String>> {
        let known = self.names("", cx)?;
        Ok(names.iter().filter(|name| !known.contains(name)).cloned().collect())
    }

    fn command(&self, request: &Request, _: &Context) -> Option<Command> {
        if *request == Request::Refresh {
            return Some(REFRESH.command().as_root());
        }
        self.lines(request).map(|[run, _]| run)
    }

    fn dry_run_command(&self, request: &Request, _: &Context) -> Option<Command> {
        self.lines(request).map(|[_, dry_run]| dry_run)
    }

    fn simulate(&self, request: &Request, cx: &Context) -> Result<Simulated> {
        let command = self.dry_run_command(request, cx);
        let said = command.map(|command| self.said(command, cx)).transpose()?.unwrap_or_default();
        Ok(Simulated { operations: said.lines().filter_map(operation).collect(), ..Simulated::default() })
    }

    fn explain(&self, output: &Output, _: &Context) -> Option<Problem> {
        let said = output.error_text();
        let unmet = said.contains("needs");
        unmet.then(|| Problem::new("DEPENDENCY_CONFLICT", Category::Dependency, said))
    }
}
