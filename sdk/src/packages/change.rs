//! The tools that change something: look, have the manager simulate it, weigh that, hand over the plan, and look again.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::look::not_to_be_had;
use super::name::{self, Names};
use super::types::{Installed, Operation, Request, Simulated, State, Verb};
use super::weigh::weigh;
use super::{Backend, unknown};
use crate::{Category, Change, Context, Failure, Lock, Noted, Problem, Result, Step};

#[derive(Deserialize, JsonSchema)]
pub(super) struct InstallArgs {
    /// One name or several
    packages: Names,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RemoveArgs {
    /// One name or several
    package: Names,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct UpdateArgs {
    /// Default: all
    packages: Option<Names>,
    #[serde(default)]
    security_only: bool,
    /// Update nothing, read the repositories anew
    #[serde(default)]
    refresh_only: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RollbackArgs {
    package: String,
    /// Default: the one before this one
    version: Option<String>,
}

type Done = Noted<Value>;

pub(super) fn install<B: Backend>(backend: &B, args: InstallArgs, cx: &Context) -> Result<Done> {
    let names = args.packages.checked()?;
    let before = backend.installed(cx)?;
    // What is here may be in no repository any more.
    let absent: Vec<_> = names.iter().filter(|name| !is_here(&before, name)).cloned().collect();
    all_known(backend, &absent, cx)?;
    let already = names.iter().filter_map(|name| whole(&before, name));
    let notes = already.map(|package| format!("{} {} is installed already", package.name, package.version));
    let notes = notes.collect();
    // A manager may take what is broken for installed.
    let is_broken = |name: &String| is_here(&before, name) && whole(&before, name).is_none();
    let request = if names.iter().any(is_broken) {
        Request::Reinstall(names.into_iter().filter(|name| whole(&before, name).is_none()).collect())
    } else {
        Request::Install(names)
    };
    Run { backend, cx, request, before, notes }.apply()
}

pub(super) fn remove<B: Backend>(backend: &B, args: RemoveArgs, cx: &Context) -> Result<Done> {
    take_away(backend, args, cx, Request::Remove, |state| *state != State::ConfigFiles)
}

pub(super) fn purge<B: Backend>(backend: &B, args: RemoveArgs, cx: &Context) -> Result<Done> {
    take_away(backend, args, cx, Request::Purge, |_| true)
}

/// What isn't there needn't be removed; what doesn't exist at all is a mistake.
fn take_away<B: Backend>(
    backend: &B,
    args: RemoveArgs,
    cx: &Context,
    request: fn(Vec<String>) -> Request,
    is_there: fn(&State) -> bool,
) -> Result<Done> {
    let names = args.package.checked()?;
    let before = backend.installed(cx)?;
    let here = |name: &String| before.iter().any(|package| package.name == *name && is_there(&package.state));
    let (here, absent): (Vec<_>, Vec<_>) = names.into_iter().partition(here);
    all_known(backend, &absent, cx)?;
    let notes = absent.iter().map(|name| format!("{name} is not installed")).collect();
    if here.is_empty() {
        return Ok(Noted { data: json!({}), notes });
    }
    Run { backend, cx, request: request(here), before, notes }.apply()
}

pub(super) fn update<B: Backend>(backend: &B, args: UpdateArgs, cx: &Context) -> Result<Done> {
    let named = args.packages.map(Names::checked).transpose()?;
    if args.refresh_only {
        if named.is_some() || args.security_only {
            let message =
                "refresh_only updates nothing: it is expected alone, without packages or security_only";
            return Err(Problem::validation("CONFLICTING_ARGUMENTS", message));
        }
        return refresh(backend, cx);
    }
    let before = backend.installed(cx)?;
    let absent: Vec<_> =
        named.iter().flatten().filter(|name| whole(&before, name).is_none()).cloned().collect();
    if !absent.is_empty() {
        let message = format!("not installed, and so not to be updated: {}", absent.join(", "));
        let problem = Problem::new("PACKAGE_NOT_INSTALLED", Category::State, message);
        return Err(problem.remedy("pkg_install installs a package at its newest version"));
    }
    let updates = backend.updates(cx)?;
    let notes: Vec<_> = updates.refreshed.and_then(|at| super::look::age(at, cx.now())).into_iter().collect();
    let request = if args.security_only {
        let is_meant = |name: &String| named.as_ref().is_none_or(|named| named.contains(name));
        let secure = updates.items.into_iter().filter(|update| update.security && !update.held);
        let mut names: Vec<_> = secure.map(|update| update.name).filter(is_meant).collect();
        names.sort();
        names.dedup();
        if names.is_empty() {
            let notes = [vec!["there is no security update to be had".to_owned()], notes].concat();
            return Ok(Noted { data: json!({}), notes });
        }
        Request::Update(names)
    } else {
        named.map_or(Request::UpdateAll, Request::Update)
    };
    Run { backend, cx, request, before, notes }.apply()
}

fn refresh<B: Backend>(backend: &B, cx: &Context) -> Result<Done> {
    let command = backend.run(&Request::Refresh).ok_or_else(|| cannot(&Request::Refresh))?;
    let change = Change::new("Read the package repositories anew")
        .step(Step::run(command).uninterruptible())
        .lock(Lock::PackageDatabase);
    let applied = cx.apply(change).map_err(|failure| explained(backend, failure))?;
    if applied.dry_run {
        return Ok(Noted { data: json!({"would_refresh": true}), notes: Vec::new() });
    }
    let remarks = applied.outputs.first().map(|output| backend.remarks(output)).unwrap_or_default();
    let mut notes = remarks.notes;
    let mut data = json!({"refreshed": true});
    match backend.updates(cx) {
        Ok(updates) => {
            let secure = updates.items.iter().filter(|update| update.security).count();
            data["updates"] = json!(updates.items.len());
            data["security_updates"] = json!(secure);
        }
        Err(problem) => notes.push(format!("what there is to update couldn't be read: {}", problem.message)),
    }
    Ok(Noted { data, notes })
}

pub(super) fn rollback<B: Backend>(backend: &B, args: RollbackArgs, cx: &Context) -> Result<Done> {
    name::check(&args.package)?;
    let before = backend.installed(cx)?;
    let name = args.package;
    let Some(current) = whole(&before, &name).map(|package| package.version.clone()) else {
        all_known(backend, std::slice::from_ref(&name), cx)?;
        let message = format!("{name} is not installed, so there is nothing to go back from");
        return Err(Problem::new("PACKAGE_NOT_INSTALLED", Category::State, message));
    };
    let request = match args.version {
        Some(version) if version == current => {
            let notes = vec![format!("{name} is at version {version} already")];
            return Ok(Noted { data: json!({}), notes });
        }
        Some(version) => {
            let available = backend.versions(&name, cx)?.into_iter().map(|found| found.version);
            Request::Version(name.clone(), meant(&name, &version, available.collect())?)
        }
        None => backend.back(&name, &current, cx)?,
    };
    Run { backend, cx, request, before, notes: Vec::new() }.apply()
}

/// The one of the available versions that is meant: itself, or without the part that the distribution adds.
fn meant(name: &str, version: &str, available: Vec<String>) -> Result<String> {
    let begins = |candidate: &&String| {
        let candidate = candidate.split_once(':').map_or(candidate.as_str(), |(_epoch, rest)| rest);
        candidate == version || candidate.strip_prefix(version).is_some_and(|rest| rest.starts_with('-'))
    };
    if available.iter().any(|candidate| candidate == version) {
        return Ok(version.to_owned());
    }
    match available.iter().filter(begins).collect::<Vec<_>>().as_slice() {
        [] => Err(not_to_be_had(name, &shortened(version), &available)),
        [only] => Ok((*only).clone()),
        several => {
            let several: Vec<_> = several.iter().map(|version| version.as_str()).collect();
            let message =
                format!("{version} could be any of these versions of {name}: {}", several.join(", "));
            Err(Problem::validation("AMBIGUOUS_VERSION", message))
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// Refuses what there is no package of.
fn all_known<B: Backend>(backend: &B, names: &[String], cx: &Context) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let unknown_names = backend.unknown(names, cx)?;
    if unknown_names.is_empty() { Ok(()) } else { Err(unknown(backend, &unknown_names, cx)) }
}

/// Whether it is installed, be it broken.
fn is_here(installed: &[Installed], name: &str) -> bool {
    installed.iter().any(|package| package.name == name && package.state != State::ConfigFiles)
}

/// The package where it is installed as a whole.
fn whole<'a>(installed: &'a [Installed], name: &str) -> Option<&'a Installed> {
    installed.iter().find(|package| package.name == name && package.state == State::Installed)
}

/// One change on its way.
struct Run<'a, B> {
    backend: &'a B,
    cx: &'a Context,
    request: Request,
    before: Vec<Installed>,
    notes: Vec<String>,
}

impl<B: Backend> Run<'_, B> {
    fn apply(mut self) -> Result<Done> {
        let simulated = self.backend.simulate(&self.request, self.cx)?;
        self.is_what_was_named(&simulated)?;
        self.notes.extend(simulated.notes.iter().cloned());
        if simulated.operations.is_empty() {
            self.is_whole_already()?;
            self.notes.push("nothing has to be done".to_owned());
            let data = Value::Object(rest(&simulated).into_iter().collect());
            return Ok(Noted { data, notes: self.notes });
        }
        let command = self.backend.run(&self.request).ok_or_else(|| cannot(&self.request))?;
        let weight = weigh(&self.request, &simulated, &self.before, &self.cx.distro().kernel);
        let mut change = Change::new(summary(&self.request, &simulated))
            .step(Step::run(command).uninterruptible())
            .lock(Lock::PackageDatabase);
        change = weight.risk.into_iter().fold(change, Change::risk);
        change = weight.warnings.into_iter().fold(change, Change::warning);
        change = self.backend.dry_run(&self.request).into_iter().fold(change, Change::dry_run);
        match self.cx.apply(change) {
            Ok(applied) if applied.dry_run => {
                Ok(Noted { data: would(&self.request, &simulated), notes: self.notes })
            }
            Ok(applied) => self.done(&simulated, applied.outputs.first()),
            Err(failure) => Err(self.broken(failure, &simulated)),
        }
    }

    /// A manager may take a name for that of a package which only provides it.
    fn is_what_was_named(&self, simulated: &Simulated) -> Result<()> {
        let (Request::Install(names) | Request::Reinstall(names)) = &self.request else { return Ok(()) };
        let is_touched = |name: &String| simulated.operations.iter().any(|operation| operation.name == *name);
        let Some(name) = names.iter().find(|name| !is_touched(name) && !is_here(&self.before, name)) else {
            return Ok(());
        };
        let mut message = format!("no package that is called {name} would be installed");
        let instead = simulated.operations.iter().filter(|operation| operation.verb == Verb::Install);
        let instead: Vec<_> = instead.map(Operation::versions).collect();
        if !instead.is_empty() {
            message += &format!(", but {}", instead.join(", "));
        }
        let problem = Problem::new("PACKAGE_NOT_FOUND", Category::NotFound, message);
        Err(problem.remedy("Name the package itself that is to be installed"))
    }

    /// What is broken, and is in no repository to be installed anew from, isn't mended by doing nothing.
    fn is_whole_already(&self) -> Result<()> {
        let Request::Reinstall(names) = &self.request else { return Ok(()) };
        let broken = self.before.iter().filter(|package| names.contains(&package.name));
        let broken = broken.filter_map(|package| match &package.state {
            State::Broken(state) => Some(format!("{} {} is {state}", package.name, package.version)),
            _ => None,
        });
        let broken: Vec<_> = broken.collect();
        if broken.is_empty() {
            return Ok(());
        }
        let message = format!("{}, and the package manager can't install it anew", broken.join(", "));
        Err(Problem::new("PACKAGES_INTERRUPTED", Category::State, message))
    }

    /// What has really happened, by the package database.
    fn done(mut self, simulated: &Simulated, output: Option<&crate::Output>) -> Result<Done> {
        let after = match self.backend.installed(self.cx) {
            Ok(after) => after,
            // It is done; that nobody can see it doesn't undo it.
            Err(problem) => {
                let note = format!(
                    "the package manager has succeeded; its database couldn't be read: {}",
                    problem.message
                );
                self.notes.push(note);
                return Ok(Noted { data: json!({}), notes: self.notes });
            }
        };
        let operations = difference(&self.before, &after, simulated);
        let has_come = |wanted: &&Operation| has_come(wanted, &simulated.operations, &self.before, &after);
        let left: Vec<_> = simulated.operations.iter().filter(|wanted| !has_come(wanted)).collect();
        if !left.is_empty() {
            let left = left.iter().map(|wanted| format!("{} {}", wanted.verb.name(), wanted.versions()));
            let message = format!(
                "the package manager says that it has succeeded, but this isn't done: {}{}",
                left.collect::<Vec<_>>().join(", "),
                happened(&operations)
            );
            return Err(Problem::new("TRANSACTION_INCOMPLETE", Category::Other, message));
        }
        let remarks = output.map(|output| self.backend.remarks(output)).unwrap_or_default();
        let aftermath = self.backend.aftermath(self.cx);
        self.notes.extend(remarks.notes.into_iter().chain(aftermath.notes));
        let lists = [
            ("kept_config_files", remarks.kept_config_files),
            ("reboot_required_by", aftermath.reboot_required_by),
            ("services_to_restart", aftermath.services_to_restart),
        ];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let mut data = grouped(&operations, done_word);
        data.extend(lists.map(|(key, list)| (key.to_owned(), json!(list))));
        data.extend(rest(simulated));
        Ok(Noted { data: Value::Object(data), notes: self.notes })
    }

    /// What went wrong, in known words where there are any, and what was done by then.
    fn broken(&self, failure: Failure, simulated: &Simulated) -> Problem {
        let uncertain = failure.uncertain;
        let mut problem = explained(self.backend, failure);
        if !uncertain && let Ok(after) = self.backend.installed(self.cx) {
            problem.message += &happened(&difference(&self.before, &after, simulated));
        }
        problem
    }
}

/// In known words, where the manager's own say what it was.
fn explained<B: Backend>(backend: &B, failure: Failure) -> Problem {
    let is_its_own = failure.problem.code == "COMMAND_FAILED" && !failure.uncertain;
    let said = failure.outputs.last().filter(|_| is_its_own);
    said.and_then(|output| backend.explain(output)).unwrap_or(failure.problem)
}

fn cannot(request: &Request) -> Problem {
    let message = format!("this package manager has no command for it: {request:?}");
    Problem::new("NOT_SUPPORTED", Category::State, message)
}

fn happened(operations: &[Operation]) -> String {
    if operations.is_empty() {
        return String::new();
    }
    let done: Vec<_> =
        operations.iter().map(|done| format!("{} {}", done_word(done.verb), done.versions())).collect();
    format!("; in the package database there has changed: {}", done.join(", "))
}

/// One sentence.
fn summary(request: &Request, simulated: &Simulated) -> String {
    let count = |verb: Verb| simulated.operations.iter().filter(|operation| operation.verb == verb).count();
    let named = |names: &[String]| {
        let versions = names.iter().take(10).map(|name| {
            let found = simulated.operations.iter().find(|operation| operation.name == *name);
            found.map_or(name.clone(), Operation::versions)
        });
        let mut text = versions.collect::<Vec<_>>().join(", ");
        if names.len() > 10 {
            text += &format!(" and {} more", names.len() - 10);
        }
        text
    };
    let (head, asked) = match request {
        Request::Install(names) => (format!("Install {}", named(names)), names.len()),
        Request::Reinstall(names) => (format!("Install anew {}", named(names)), names.len()),
        Request::Remove(names) => (format!("Remove {}", named(names)), names.len()),
        Request::Purge(names) => (format!("Purge {}", named(names)), names.len()),
        Request::Update(names) => (format!("Update {}", named(names)), names.len()),
        Request::UpdateAll => (format!("Update {} packages", count(Verb::Upgrade)), count(Verb::Upgrade)),
        Request::Refresh => ("Read the package repositories anew".to_owned(), 0),
        Request::Version(name, version) => {
            let found = simulated.operations.iter().find(|operation| operation.name == *name);
            let from = found.map_or("", |operation| operation.from.as_str());
            (format!("Take {name} from {from} to {version}"), 1)
        }
        Request::Undo(id) => (format!("Undo transaction {id} of the package manager"), 0),
    };
    let others = simulated.operations.len().saturating_sub(asked);
    let verbs = [Verb::Install, Verb::Upgrade, Verb::Downgrade, Verb::Reinstall, Verb::Remove, Verb::Purge];
    if others == 0 {
        return head;
    }
    let counts = verbs.map(|verb| (verb.name(), count(verb))).into_iter().filter(|(_, count)| *count > 0);
    let counts: Vec<_> = counts.map(|(verb, count)| format!("{verb} {count}")).collect();
    format!("{head} (packages in all: {})", counts.join(", "))
}

/// The answer of a dry run.
fn would(request: &Request, simulated: &Simulated) -> Value {
    let mut data = grouped(&simulated.operations, |verb| match verb {
        Verb::Install => "would_install",
        Verb::Upgrade => "would_upgrade",
        Verb::Downgrade => "would_downgrade",
        Verb::Reinstall => "would_reinstall",
        Verb::Remove => "would_remove",
        Verb::Purge => "would_purge",
    });
    let mb = |bytes: f64| json!((bytes / 1e4).round() / 100.0);
    let brings = simulated.operations.iter().any(|operation| !operation.is_removal());
    if let Some(bytes) = simulated.download_bytes.filter(|_| brings) {
        data.insert("would_download_mb".to_owned(), mb(bytes as f64));
    }
    if let Some(bytes) = simulated.disk_bytes {
        data.insert("would_require_disk_mb".to_owned(), mb(bytes as f64));
    }
    if let Request::Install(names) | Request::Reinstall(names) = request {
        let is_dependency =
            |operation: &&Operation| !operation.is_removal() && !names.contains(&operation.name);
        let count = simulated.operations.iter().filter(is_dependency).count();
        data.insert("dependency_count".to_owned(), json!(count));
    }
    data.extend(rest(simulated));
    Value::Object(data)
}

/// What a simulation says besides what would happen.
fn rest(simulated: &Simulated) -> Vec<(String, Value)> {
    let lists = [("held_back", &simulated.held_back), ("no_longer_needed", &simulated.no_longer_needed)];
    let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
    lists.map(|(key, list)| (key.to_owned(), json!(list))).collect()
}

/// As `{"upgraded": [{"name": "lab-hello", "from": "1.0", "version": "2.0"}]}`.
fn grouped(operations: &[Operation], word: fn(Verb) -> &'static str) -> Map<String, Value> {
    let mut groups: BTreeMap<Verb, Vec<Value>> = BTreeMap::new();
    for operation in operations {
        let mut item = Map::new();
        item.insert("name".to_owned(), json!(operation.name));
        let (from, to) = (operation.from.as_str(), operation.to.as_str());
        let (from, version) = if to.is_empty() { ("", from) } else { (from, to) };
        if !from.is_empty() && from != version {
            item.insert("from".to_owned(), json!(from));
        }
        if !version.is_empty() {
            item.insert("version".to_owned(), json!(version));
        }
        groups.entry(operation.verb).or_default().push(Value::Object(item));
    }
    groups.into_iter().map(|(verb, items)| (word(verb).to_owned(), Value::Array(items))).collect()
}

fn done_word(verb: Verb) -> &'static str {
    match verb {
        Verb::Install => "installed",
        Verb::Upgrade => "upgraded",
        Verb::Downgrade => "downgraded",
        Verb::Reinstall => "reinstalled",
        Verb::Remove => "removed",
        Verb::Purge => "purged",
    }
}

/// Versions of one name that are installed beside each other (architectures, kernels), and whether they are whole.
type Versions<'a> = BTreeMap<(&'a str, &'a str), Vec<(&'a str, &'a State)>>;

fn by_name(installed: &[Installed]) -> Versions<'_> {
    let mut versions = Versions::new();
    for package in installed {
        let of_it = versions.entry((package.name.as_str(), package.arch.as_str())).or_default();
        of_it.push((package.version.as_str(), &package.state));
    }
    versions
}

/// What lies between two looks at the package database. Which of two versions is the higher one, and what is a removal
/// and what a purge, is for the manager to say: the word is that of the simulation.
fn difference(before: &[Installed], after: &[Installed], simulated: &Simulated) -> Vec<Operation> {
    let (before, after) = (by_name(before), by_name(after));
    let meant = |name: &str, verb: Verb, otherwise: Verb| {
        let mut operations = simulated.operations.iter();
        if operations.any(|meant| meant.verb == verb && meant.name == name) { verb } else { otherwise }
    };
    let is_here = |(_, state): &&(&str, &State)| **state != State::ConfigFiles;
    let mut operations = Vec::new();
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for key in keys {
        let (old, new) = (of_one(&before, key), of_one(&after, key));
        let gone: Vec<_> = old.iter().filter(|version| !new.contains(version)).collect();
        let come: Vec<_> = new.iter().filter(|version| !old.contains(version)).collect();
        let name = key.0;
        if let ([from], [to]) = (gone.as_slice(), come.as_slice())
            && is_here(from)
            && is_here(to)
        {
            let verb =
                if from.0 == to.0 { Verb::Reinstall } else { meant(name, Verb::Downgrade, Verb::Upgrade) };
            operations.push(Operation::new(verb, name, from.0, shown(to)));
            continue;
        }
        for from in gone {
            // What had only configuration left and is installed again isn't gone.
            if is_here(&from) || new.is_empty() {
                let verb = if new.is_empty() { meant(name, Verb::Purge, Verb::Remove) } else { Verb::Remove };
                operations.push(Operation::new(verb, name, from.0, ""));
            }
        }
        let come = come.into_iter().filter(is_here);
        operations.extend(come.map(|to| Operation::new(Verb::Install, name, "", shown(to))));
    }
    operations
}

fn of_one<'a>(versions: &'a Versions<'a>, key: &(&'a str, &'a str)) -> &'a [(&'a str, &'a State)] {
    versions.get(key).map_or(&[], Vec::as_slice)
}

/// `1.0`, or `1.0 (half-configured)`.
fn shown((version, state): &(&str, &State)) -> String {
    match state {
        State::Broken(state) => format!("{version} ({state})"),
        State::Installed | State::ConfigFiles => (*version).to_owned(),
    }
}

/// Whether the package database is as this operation, one of several, would have left it.
fn has_come(wanted: &Operation, all: &[Operation], before: &[Installed], after: &[Installed]) -> bool {
    let is_of_it = |package: &&Installed| package.name == wanted.name;
    if !wanted.is_removal() {
        let mut here = after.iter().filter(is_of_it).filter(|package| package.state == State::Installed);
        return here.any(|package| wanted.to.is_empty() || package.version == wanted.to);
    }
    let is_meant = |package: &&Installed| match wanted.verb {
        Verb::Remove => package.state != State::ConfigFiles && package.version == wanted.from,
        _ => wanted.from.is_empty() || package.version == wanted.from,
    };
    let count = |installed: &[Installed]| installed.iter().filter(is_of_it).filter(is_meant).count();
    // The same version may stay for another architecture, which an operation doesn't name: as many have to be gone as
    // were to go.
    let to_go = all.iter().filter(|other| {
        let goes = other.is_removal() || matches!(other.verb, Verb::Upgrade | Verb::Downgrade);
        goes && (&other.name, &other.from) == (&wanted.name, &wanted.from)
    });
    let left = count(after);
    left == 0 || count(before).saturating_sub(left) >= to_go.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, state: State) -> Installed {
        Installed { name: name.into(), version: version.into(), state, ..Installed::default() }
    }

    fn whole(name: &str, version: &str) -> Installed {
        package(name, version, State::Installed)
    }

    fn simulated(verb: Verb) -> Simulated {
        Simulated { operations: vec![Operation::new(verb, "a", "1", "2")], ..Simulated::default() }
    }

    #[test]
    fn what_was_done_is_read_from_the_package_database() {
        let broken = || package("a", "1", State::Broken("half-configured".into()));
        let left = || package("a", "1", State::ConfigFiles);
        let table = [
            (vec![], vec![whole("a", "1")], Verb::Install, vec!["installed a 1"]),
            (vec![whole("a", "1")], vec![whole("a", "2")], Verb::Upgrade, vec!["upgraded a 1 -> 2"]),
            (vec![whole("a", "2")], vec![whole("a", "1")], Verb::Downgrade, vec!["downgraded a 2 -> 1"]),
            (vec![whole("a", "1")], vec![left()], Verb::Remove, vec!["removed a 1"]),
            (vec![whole("a", "1")], vec![], Verb::Remove, vec!["removed a 1"]),
            (vec![whole("a", "1")], vec![], Verb::Purge, vec!["purged a 1"]),
            (vec![left()], vec![], Verb::Purge, vec!["purged a 1"]),
            (vec![left()], vec![whole("a", "1")], Verb::Install, vec!["installed a 1"]),
            (vec![], vec![broken()], Verb::Install, vec!["installed a 1 (half-configured)"]),
            (vec![broken()], vec![whole("a", "1")], Verb::Install, vec!["reinstalled a 1"]),
            // Kernels stand beside each other.
            (
                vec![whole("a", "1")],
                vec![whole("a", "1"), whole("a", "2")],
                Verb::Install,
                vec!["installed a 2"],
            ),
            (vec![whole("b", "1")], vec![whole("b", "1")], Verb::Install, vec![]),
        ];
        for (before, after, verb, expected) in table {
            let done = difference(&before, &after, &simulated(verb));
            let done: Vec<_> =
                done.iter().map(|done| format!("{} {}", done_word(done.verb), done.versions())).collect();
            assert_eq!(done, expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_removal_has_come_where_another_architecture_stays() {
        let of = |arch: &str, version: &str| Installed { arch: arch.into(), ..whole("a", version) };
        let left = Installed { state: State::ConfigFiles, ..of("i386", "1") };
        let both = || vec![of("amd64", "1"), of("i386", "1")];
        let removal = || Operation::new(Verb::Remove, "a", "1", "");
        let purge = |from: &str| Operation::new(Verb::Purge, "a", from, "");
        let upgrade = Operation::new(Verb::Upgrade, "a", "1", "2");
        let table = [
            (both(), vec![removal()], vec![of("i386", "1")], true),
            (both(), vec![removal()], vec![of("amd64", "1"), left.clone()], true),
            (both(), vec![removal()], both(), false),
            (both(), vec![removal(), removal()], vec![], true),
            (both(), vec![removal(), removal()], vec![of("i386", "1")], false),
            (both(), vec![purge("1")], vec![of("i386", "1")], true),
            (both(), vec![purge("1")], vec![of("amd64", "1"), left.clone()], false),
            (vec![of("amd64", "1"), left.clone()], vec![purge("")], vec![of("amd64", "1")], true),
            (vec![of("amd64", "1"), left.clone()], vec![purge("")], vec![of("amd64", "1"), left], false),
            // A version that the manager writes in another way than its database.
            (vec![of("amd64", "0:1")], vec![removal()], vec![], true),
            // The one that is gone is the one that was updated.
            (both(), vec![removal(), upgrade], vec![of("amd64", "2"), of("i386", "1")], false),
        ];
        for (before, all, after, expected) in table {
            assert_eq!(has_come(&all[0], &all, &before, &after), expected, "{all:?}: {before:?} {after:?}");
        }
    }

    #[test]
    fn a_version_is_meant_with_or_without_what_the_distribution_adds() {
        let available = || ["1:2.0-1", "1.0-2", "1.0-1", "0.9"].map(str::to_owned).to_vec();
        assert_eq!(meant("a", "0.9", available()).expect("exact"), "0.9");
        assert_eq!(meant("a", "2.0", available()).expect("without epoch"), "1:2.0-1");
        assert_eq!(meant("a", "1.0", available()).expect_err("two").code, "AMBIGUOUS_VERSION");
        let gone = meant("a", "3.0", available()).expect_err("none");
        assert_eq!(gone.code, "VERSION_NOT_AVAILABLE");
        assert!(gone.message.contains("1.0-2"), "{}", gone.message);
    }
}
