//! Packages with {{program}}. The sdk has the tools; here are the commands, and the parsers of what they print.
//!
//! The commands and their output are examples: `{{program}} list` prints `NAME VERSION`, and a change or its simulation prints
//! `VERB NAME FROM TO`, where `-` stands for no version. Put those of your package manager in their place, and recordings of a
//! real machine into `tests/transcripts`.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::packages::{
    self, Available, Backend, Found, Info, Installed, Operation, Request, Simulated, Transaction,
    Update, Updates, Verb,
};
use linux_sysadmin_sdk::prelude::*;

// A command line is written once, and used twice: for the grant, and for the command that it allows.
const LIST: CommandLine = CommandLine::new("{{program}} list");
const SEARCH: CommandLine = CommandLine::new("{{program}} search -- <text>...");
const VERSIONS: CommandLine = CommandLine::new("{{program}} versions -- <package>");
const NAMES: CommandLine = CommandLine::new("{{program}} names");
const LOG: CommandLine = CommandLine::new("{{program}} log");
const REFRESH: CommandLine = CommandLine::new("{{program}} refresh");

/// A command that changes something, and its simulation.
struct Pair {
    run: CommandLine,
    simulate: CommandLine,
}

const INSTALL: Pair = Pair {
    run: CommandLine::new("{{program}} install -- <package>..."),
    simulate: CommandLine::new("{{program}} install --simulate -- <package>..."),
};
const REMOVE: Pair = Pair {
    run: CommandLine::new("{{program}} remove -- <package>..."),
    simulate: CommandLine::new("{{program}} remove --simulate -- <package>..."),
};
const PURGE: Pair = Pair {
    run: CommandLine::new("{{program}} purge -- <package>..."),
    simulate: CommandLine::new("{{program}} purge --simulate -- <package>..."),
};
const UPDATE: Pair = Pair {
    run: CommandLine::new("{{program}} update -- <package>..."),
    simulate: CommandLine::new("{{program}} update --simulate -- <package>..."),
};
const UPDATE_ALL: Pair = Pair {
    run: CommandLine::new("{{program}} update"),
    simulate: CommandLine::new("{{program}} update --simulate"),
};
const SET_VERSION: Pair = Pair {
    run: CommandLine::new("{{program}} install -- <package>=<version>"),
    simulate: CommandLine::new("{{program}} install --simulate -- <package>=<version>"),
};

/// The module.
pub fn module() -> Module {
    packages::module(|| Manager)
}

linux_sysadmin_sdk::export!(module);

struct Manager;

/// What the module may do, each with the reason that the operator reads.
fn granted(module: Module) -> Module {
    let looks = [
        (LIST, "what is installed"),
        (SEARCH, "what the repositories have"),
        (VERSIONS, "the versions of a package"),
        (NAMES, "names that are close to an unknown one"),
        (LOG, "what was changed and when"),
    ];
    let module = looks.into_iter().fold(module, |module, (line, reason)| module.command(line.read(reason)));
    let changes = [
        (INSTALL, Risk::Moderate, "install packages"),
        (REMOVE, Risk::High, "remove packages"),
        (PURGE, Risk::Critical, "remove packages with their configuration"),
        (UPDATE, Risk::Moderate, "update packages"),
        (UPDATE_ALL, Risk::Moderate, "update all packages"),
        (SET_VERSION, Risk::High, "take a package to an earlier version"),
    ];
    let module = changes.into_iter().fold(module, |module, (pair, risk, what)| {
        module
            .command(pair.run.change(risk, what))
            .command(pair.simulate.dry_run(&format!("say what this would do: {what}")))
    });
    module.command(REFRESH.change(Risk::Moderate, "read the repositories anew"))
}

impl Manager {
    /// What a command prints that has to succeed.
    fn said(&self, command: Command, cx: &Context) -> Result<String> {
        let output = cx.run(command)?;
        match self.explain(&output, cx).filter(|_| output.exit_code != 0) {
            Some(problem) => Err(problem),
            None => Ok(output.success("{{program}}")?.text().into_owned()),
        }
    }

    /// The commands for a request, and the values for their holes.
    fn pair(&self, request: &Request) -> Option<(Pair, Vec<String>)> {
        match request {
            Request::Install(names) | Request::Reinstall(names) => Some((INSTALL, names.clone())),
            Request::Remove(names) => Some((REMOVE, names.clone())),
            Request::Purge(names) => Some((PURGE, names.clone())),
            Request::Update(names) => Some((UPDATE, names.clone())),
            Request::UpdateAll => Some((UPDATE_ALL, Vec::new())),
            Request::Version(name, version) => Some((SET_VERSION, vec![name.clone(), version.clone()])),
            Request::Refresh | Request::Undo(_) => None,
        }
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Reads each line. One in another form is an error: a part of the truth would be worse than none.
fn each<T>(said: &str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
    let lines = said.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| read(line).ok_or_else(|| Problem::unexpected("{{program}}", line))).collect()
}

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

fn installed(line: &str) -> Option<Installed> {
    let [name, version] = words(line).try_into().ok()?;
    let (name, version) = (String::from(name), String::from(version));
    Some(Installed { name, version, ..Installed::default() })
}

impl Backend for Manager {
    fn module(&self) -> Module {
        Module::new("{{name}}", env!("CARGO_PKG_VERSION"), "packages", env!("CARGO_PKG_DESCRIPTION"))
            .license(env!("CARGO_PKG_LICENSE"))
            // The module is called on targets with this package manager only.
            .serves("package_manager", &["{{program}}"])
            .grants(granted)
    }

    fn installed(&self, cx: &Context) -> Result<Vec<Installed>> {
        each(&self.said(LIST.command(), cx)?, installed)
    }

    fn search(&self, words: &[String], _names_only: bool, cx: &Context) -> Result<Vec<Found>> {
        each(&self.said(SEARCH.with(words), cx)?, |line| {
            let (name, summary) = line.split_once(' ')?;
            let (name, summary) = (name.to_owned(), summary.to_owned());
            Some(Found { name, version: None, installed: None, summary })
        })
    }

    fn info(&self, name: &str, cx: &Context) -> Result<Option<Info>> {
        let versions = self.versions(name, cx)?;
        let here = self.installed(cx)?.into_iter().find(|package| package.name == name);
        if versions.is_empty() && here.is_none() {
            return Ok(None);
        }
        let installed = here.map(|here| here.version);
        let candidate = versions.first().map(|found| found.version.clone());
        let candidate = candidate.filter(|candidate| installed.as_ref() != Some(candidate));
        Ok(Some(Info { name: name.to_owned(), installed, candidate, versions, ..Info::default() }))
    }

    fn versions(&self, name: &str, cx: &Context) -> Result<Vec<Available>> {
        let version = |line: &str| Available { version: line.trim().to_owned(), repository: String::new() };
        each(&self.said(VERSIONS.with([name]), cx)?, |line| Some(version(line)))
    }

    fn updates(&self, cx: &Context) -> Result<Updates> {
        let operations = each(&self.said(UPDATE_ALL.simulate.command(), cx)?, operation)?;
        let newer = operations.into_iter().filter(|one| one.verb == Verb::Upgrade);
        let update = |one: Operation| Update {
            name: one.name,
            installed: one.from,
            candidate: one.to,
            ..Update::default()
        };
        Ok(Updates { items: newer.map(update).collect(), ..Updates::default() })
    }

    fn history(&self, _package: Option<&str>, cx: &Context) -> Result<Vec<Transaction>> {
        let mut all = each(&self.said(LOG.command(), cx)?, |line| {
            let (at, rest) = line.split_once(' ')?;
            let operations = vec![operation(rest)?];
            Some(Transaction { at: at.to_owned(), operations, ..Transaction::default() })
        })?;
        // The log has the latest last.
        all.reverse();
        Ok(all)
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
        self.pair(request).map(|(pair, values)| pair.run.with(values).as_root())
    }

    fn dry_run_command(&self, request: &Request, _: &Context) -> Option<Command> {
        self.pair(request).map(|(pair, values)| pair.simulate.with(values))
    }

    fn simulate(&self, request: &Request, cx: &Context) -> Result<Simulated> {
        let Some(command) = self.dry_run_command(request, cx) else { return Ok(Simulated::default()) };
        let operations = each(&self.said(command, cx)?, operation)?;
        Ok(Simulated { operations, ..Simulated::default() })
    }

    fn explain(&self, output: &Output, _: &Context) -> Option<Problem> {
        let said = output.error_text();
        let known = [
            ("depends on", "DEPENDENCY_CONFLICT", Category::Dependency),
            ("no such package", "PACKAGE_NOT_FOUND", Category::NotFound),
        ];
        let (_, code, category) = known.into_iter().find(|(words, ..)| said.contains(words))?;
        Some(Problem::new(code, category, said))
    }
}
