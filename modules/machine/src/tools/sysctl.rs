//! `sysctl_get` and `sysctl_set`.

use std::collections::{BTreeMap, BTreeSet};

use linux_sysadmin_sdk::{Category, Output, prelude::*};

use crate::sysctl;
use crate::sysctl::config::{Config, OURS, Setting};
use crate::sysctl::key::Key;
use crate::sysctl::running::{self, MOUNTS};
use crate::sysctl::value::{self, Value};

/// The most keys of one call.
const MOST: usize = 50;

#[derive(Deserialize, JsonSchema)]
struct GetArgs {
    /// Names, prefixes, globs
    keys: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct SetArgs {
    /// Values by key
    #[serde(default)]
    set: BTreeMap<String, Value>,
    /// Keys to set no longer
    #[serde(default)]
    remove: Vec<String>,
}

/// One value.
#[derive(Serialize)]
struct Item {
    key: String,
    /// The value that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// The value that the next start sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    persistent: Option<String>,
    /// The file and line of the persistent value.
    #[serde(skip_serializing_if = "Option::is_none")]
    set_by: Option<String>,
    /// True where both values differ.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    differs: bool,
    /// The files and lines that lose, with their values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    loses: Vec<String>,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<&'static str>,
}

fn get(args: GetArgs, cx: &Context) -> Result<Listing<Item>> {
    if args.keys.is_empty() || args.keys.len() > MOST {
        return Err(Problem::validation("INVALID_ARGUMENTS", format!("expected 1 to {MOST} keys")));
    }
    let asked = args.keys.iter().map(|key| Key::checked(key)).collect::<Result<Vec<_>>>()?;
    let named: Vec<_> = asked.iter().filter(|key| !key.is_glob() && !key.is_secret()).collect();
    let (config, texts) = Config::read(cx, &named.iter().map(|key| key.path()).collect::<Vec<_>>());
    let known = named.into_iter().cloned().zip(texts).filter(|(_, text)| text.is_ok());
    let mut running: BTreeMap<Key, Result<String>> = known.collect();
    let mut is_cut = false;
    let mut missing = Vec::new();
    for key in &asked {
        if running.contains_key(key) {
            continue;
        }
        let (found, more) = running::find(key, cx);
        is_cut |= more;
        let is_nowhere = found.is_empty() || found.get(key).is_some_and(running::is_missing);
        if is_nowhere && config.settings(key).is_empty() {
            missing.push(running::missing(key, cx));
        } else {
            running.extend(found);
        }
    }
    let mut notes = config.unreadable.clone();
    if running.is_empty() && !missing.is_empty() {
        return Err(missing.swap_remove(0));
    }
    for Problem { message, remediation, .. } in missing {
        notes.push(format!("{message}: {}", remediation.join("; ")));
    }
    if is_cut {
        notes.push("there are more values than one answer has: ask for a narrower prefix".to_owned());
    }
    for key in running.keys() {
        if let Some(Setting { at, value }) = config.not_applied(key).filter(|_| !key.is_secret()) {
            notes.push(format!("{at} sets {} to {value}, but systemd doesn't read that file", key.name()));
        }
    }
    let items = running.into_iter().map(|(key, text)| item(&key, text, &config)).collect();
    Ok(Listing { items, total: None, notes })
}

fn item(key: &Key, running: Result<String>, config: &Config) -> Item {
    let name = key.name();
    let mut settings = config.settings(key);
    let winner = settings.pop();
    let empty = Item {
        key: name,
        value: None,
        persistent: None,
        set_by: None,
        differs: false,
        loses: Vec::new(),
        unreadable: None,
    };
    if key.is_secret() {
        return Item { set_by: winner.map(|winner| winner.at), unreadable: Some("it is a secret"), ..empty };
    }
    let (value, unreadable) = match running {
        Ok(text) => (Some(value::words(&text)), None),
        Err(problem) if problem.category == Category::NotFound => {
            (None, Some("the kernel has no such value"))
        }
        Err(_) => (None, Some("the kernel doesn't show it to this account")),
    };
    let differs =
        winner.as_ref().is_some_and(|winner| value.as_ref().is_some_and(|value| *value != winner.value));
    let (set_by, persistent) = winner.map(|winner| (winner.at, winner.value)).unzip();
    let loses = settings.into_iter().map(|lost| format!("{} = {}", lost.at, lost.value)).collect();
    Item { value, persistent, set_by, differs, loses, unreadable, ..empty }
}

/// The change of one value.
#[derive(Serialize)]
struct Changed {
    key: String,
    /// The value that ran before.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

#[derive(Default, Serialize)]
struct Answer {
    /// The change that a dry run would make.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<Changed>,
    /// The file that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'static str>,
}

/// The arguments after their check.
struct Request {
    set: BTreeMap<Key, String>,
    remove: BTreeSet<Key>,
}

impl Request {
    fn checked(args: SetArgs) -> Result<Self> {
        let count = args.set.len() + args.remove.len();
        if !(1..=MOST).contains(&count) {
            let message = format!(
                "expected 1 to {MOST} keys in `set` and `remove`, such as set={{\"vm.swappiness\": 10}}"
            );
            return Err(Problem::validation("INVALID_ARGUMENTS", message));
        }
        let mut request = Self { set: BTreeMap::new(), remove: BTreeSet::new() };
        for (name, value) in &args.set {
            let key = one(name)?;
            let value = value.checked(&key)?;
            request.set.insert(key, value);
        }
        for name in &args.remove {
            request.remove.insert(one(name)?);
        }
        let is_twice = request.set.len() + request.remove.len() != count
            || request.remove.iter().any(|key| request.set.contains_key(key));
        match is_twice {
            true => Err(Problem::validation("INVALID_ARGUMENTS", "a key is there twice: expected each once")),
            false => Ok(request),
        }
    }
}

/// A key that is no glob and no secret.
fn one(name: &str) -> Result<Key> {
    let key = Key::checked(name)?;
    if key.is_glob() {
        return Err(Problem::validation("INVALID_KEY", format!("{name} is a glob: expected one key")));
    }
    if key.is_secret() {
        let message =
            format!("{name} is a secret: it can't be shown, so that setting it could not be undone");
        return Err(Problem::validation("INVALID_KEY", message));
    }
    Ok(key)
}

fn set(args: SetArgs, cx: &Context) -> Result<Noted<Answer>> {
    let request = Request::checked(args)?;
    let keys: Vec<_> = request.set.keys().chain(&request.remove).collect();
    let paths: Vec<_> = keys.iter().map(|key| key.path()).collect();
    let (config, mut texts) = Config::read(cx, &[paths.clone(), vec![MOUNTS.to_owned()]].concat());
    if let Some(file) = config.unreadable.first() {
        let message = format!("{file}, so that nobody knows what the next start sets");
        return Err(Problem::new("FILE_UNREADABLE", Category::State, message)
            .remedy("Make it a file that the account can read, in place of a link to another directory"));
    }
    let mounts = texts.pop().and_then(Result::ok).unwrap_or_default();
    let running: BTreeMap<_, _> = keys.into_iter().zip(texts).collect();
    let found = cx.stat_all(&paths);
    // What only takes values, such as `net.ipv4.route.flush`, does something once.
    let mut momentary = BTreeSet::new();
    for (key, metadata) in running.keys().zip(sorted(&request, found)) {
        match metadata? {
            None if request.set.contains_key(*key) => return Err(running::missing(key, cx)),
            Some(metadata) if metadata.is_dir => {
                let message = format!("{} is a group of values: expected one of them", key.name());
                return Err(Problem::validation("INVALID_KEY", message));
            }
            Some(metadata) if request.set.contains_key(*key) => {
                running::refuse_read_only(key, &metadata, &mounts)?;
                if metadata.mode & 0o444 == 0 {
                    momentary.insert((*key).clone());
                }
            }
            _ => {}
        }
    }
    let mut notes = Vec::new();
    let file = file(&request, &momentary, &config, &mut notes)?;
    let after = file.as_ref().map_or_else(|| config.clone(), |text| config.with_ours(text));
    let mut change = Change::new(summary(&request));
    let mut changes = Vec::new();
    let mut has_steps = false;
    for (key, text) in &running {
        let wanted = match request.set.get(*key) {
            Some(value) => Some(value.clone()),
            // Without our line, another file's value holds. The kernel's own value is known only after the next start.
            None => after.settings(key).pop().map(|setting| setting.value),
        };
        let before = text.as_ref().ok().map(|text| value::words(text));
        let Some(wanted) = wanted.filter(|_| text.is_ok() || request.set.contains_key(*key)) else {
            if config.ours().contains_key(*key) {
                notes.push(format!("{} keeps its value until the next start", key.name()));
                changes.push(Changed { key: key.name(), before: None, value: before });
            }
            continue;
        };
        if before.as_ref() == Some(&wanted) {
            match config.ours().get(*key) != after.ours().get(*key) {
                true => changes.push(Changed { key: key.name(), before: None, value: Some(wanted) }),
                false => notes.push(holds(key, &wanted, &after)),
            }
            continue;
        }
        let step = Step::run(sysctl::set(key, &wanted));
        change = match &before {
            Some(before) => change.step(step.undo(sysctl::set(key, before))),
            None => change.step(step),
        };
        has_steps = true;
        if let Some(why) = before.as_ref().and_then(|before| value::lowers(key, before, &wanted)) {
            change = change.risk(Risk::High).warning(why);
        }
        changes.push(Changed { key: key.name(), before, value: Some(wanted) });
    }
    if let Some(text) = &file {
        change = change.step(Step::write(OURS, text.as_str()));
    } else if !has_steps {
        return Ok(Noted { data: Answer::default(), notes });
    }
    let applied = cx.apply(change).map_err(|failure| refused(failure, &changes))?;
    if applied.dry_run {
        return Ok(Noted { data: Answer { would: Some("set"), changes, file: None }, notes });
    }
    notes.extend(not_taken(&changes, cx));
    Ok(Noted { data: Answer { would: None, changes, file: file.map(|_| OURS) }, notes })
}

/// The metadata in the order of the keys by name, which they were asked for as `set` and `remove`.
fn sorted(request: &Request, found: Vec<Result<Option<Metadata>>>) -> Vec<Result<Option<Metadata>>> {
    let all: BTreeMap<_, _> = request.set.keys().chain(&request.remove).zip(found).collect();
    all.into_values().collect()
}

fn summary(request: &Request) -> String {
    let set = request.set.iter().map(|(key, value)| format!("set {} to {value}", key.name()));
    let removed = request.remove.iter().map(|key| format!("no longer set {}", key.name()));
    set.chain(removed).collect::<Vec<_>>().join(", ")
}

fn holds(key: &Key, value: &str, config: &Config) -> String {
    match config.settings(key).pop() {
        Some(setting) => format!("{} is {value} already, by {}", key.name(), setting.at),
        None => format!("{} is {value}, and no file sets it", key.name()),
    }
}

/// The new text of our file, where it changes. Refused where a later file wins.
fn file(
    request: &Request,
    momentary: &BTreeSet<Key>,
    config: &Config,
    notes: &mut Vec<String>,
) -> Result<Option<String>> {
    let before = config.ours();
    let mut changes = BTreeMap::new();
    for key in &request.remove {
        match before.contains_key(key) {
            true => drop(changes.insert(key.clone(), None)),
            false => notes.push(format!("{OURS} doesn't set {}", key.name())),
        }
    }
    for key in momentary {
        // A line of an earlier call would do the act again at each start.
        if before.contains_key(key) {
            changes.insert(key.clone(), None);
        }
        notes.push(format!("{} only takes values: it isn't set at the next start", key.name()));
    }
    let kept = || request.set.iter().filter(|(key, _)| !momentary.contains(*key));
    for (key, value) in kept() {
        let holds = config.settings(key).pop().is_some_and(|setting| setting.value == *value);
        let needs_line = !holds || before.contains_key(key);
        if needs_line && before.get(key) != Some(value) {
            changes.insert(key.clone(), Some(value.clone()));
        }
    }
    if changes.is_empty() {
        return Ok(None);
    }
    let text = config.ours_with(&changes);
    let after = config.with_ours(&text);
    for (key, value) in kept() {
        if let Some(Setting { at, value: other }) =
            after.settings(key).pop().filter(|setting| setting.value != *value)
        {
            let path = at.rsplit_once(':').map_or(at.as_str(), |(path, _)| path);
            let message = format!(
                "{at} sets {} to {other} after {OURS}: the value wouldn't hold after a restart",
                key.name()
            );
            return Err(Problem::new("SYSCTL_OVERRIDDEN", Category::State, message).remedy(format!(
                "Change or remove that line with file_patch path={path}, then call this again"
            )));
        }
    }
    Ok(Some(text))
}

/// The problem of a plan that failed. sysctl doesn't say which value the kernel refused, and which one holds.
fn refused(failure: Failure, changes: &[Changed]) -> Problem {
    let said = failure.outputs.last().filter(|output| output.exit_code != 0).map(Output::error_text);
    let said =
        said.filter(|said| failure.problem.code == "COMMAND_FAILED" && said.contains("Invalid argument"));
    let is_named = |said: &str, key: &str| said.contains(&format!("\"{key}\""));
    let change = said.and_then(|said| changes.iter().find(|change| is_named(&said, &change.key)));
    match change {
        Some(Changed { key, before: Some(before), value: Some(value) }) => Problem::validation(
            "INVALID_VALUE",
            format!(
                "the kernel refuses {value:?} for {key}: expected a value of the kind of {before:?}, which it is now"
            ),
        ),
        _ => failure.problem,
    }
}

/// Notes where the kernel made another value of what it was told.
fn not_taken(changes: &[Changed], cx: &Context) -> Vec<String> {
    let paths: Vec<_> = changes.iter().map(|change| Key::read(&change.key).path()).collect();
    let now = changes.iter().zip(cx.read_all(&paths));
    let note = |(change, text): (&Changed, Result<String>)| {
        let now = value::words(&text.ok()?);
        let wanted = change.value.as_ref().filter(|wanted| **wanted != now)?;
        Some(format!("the kernel made {now} of {wanted} for {}", change.key))
    };
    now.filter_map(note).collect()
}

/// Adds the tools.
pub(crate) fn tools(module: Module) -> Module {
    let get =
        Tool::new("sysctl_get", "Kernel values: running, persistent and which file and line sets them", get)
            .instant();
    let set = Tool::new(
        "sysctl_set",
        "Set kernel values now and for the next start; refused where a later file wins",
        set,
    );
    module.tool(get).tool(set.risk(Risk::Moderate))
}
