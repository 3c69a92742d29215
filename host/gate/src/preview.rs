//! The preview of a plan for a person or a model: every command to the letter, every file as a diff.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::allowed::{AllowedCommand, STDIN};
use super::diff::FileDiff;
use super::files::{Site, octal};
use super::plan::{Action, FilePath, Write};
use super::prepare::{PreparedAction, PreparedPlan, PreparedStep};
use super::signals;
use host_base::sha256;
use host_base::{Command, Privilege};
use host_target::Found;
use host_text::redact::{excerpt, redact};

/// The number of characters of a module's own sentence that are shown.
const SENTENCE: usize = 500;

/// The preview without secrets. Whoever shows it still has to make its text visible.
pub fn preview(plan: &PreparedPlan) -> Value {
    let change = &plan.change;
    let mut preview = Map::new();
    match plan.steps.as_slice() {
        // Most plans have only one step, which is a command.
        [prepared] if matches!(prepared.action, PreparedAction::Run(_)) => {
            let step = change.steps.first().map(|step| shown(&step.action, prepared));
            for (name, value) in step.unwrap_or_default() {
                preview.insert(if name == "run" { "command".to_owned() } else { name }, value);
            }
        }
        steps => {
            let steps = change.steps.iter().zip(steps);
            let steps = steps.map(|(step, prepared)| Value::Object(shown(&step.action, prepared)));
            preview.insert("steps".to_owned(), steps.collect());
        }
    }
    preview.insert("description".to_owned(), excerpt(&change.summary, SENTENCE).into());
    let texts =
        |texts: &[String]| texts.iter().map(|text| Value::from(excerpt(text, SENTENCE))).collect::<Vec<_>>();
    let warnings = [&change.warnings[..], &plan.warnings].concat();
    preview.insert("warnings".to_owned(), texts(&warnings).into());
    preview.insert("affected_services".to_owned(), texts(&change.affected_services).into());
    if !plan.after_undo.is_empty() {
        preview.insert("after_undo".to_owned(), lines(&plan.after_undo));
    }
    if let Some(guard) = change.guard {
        let seconds = guard.as_secs();
        let text =
            format!("the target undoes this by itself unless it can still be reached within {seconds} s");
        preview.insert("guard".to_owned(), text.into());
    }
    if !plan.reasons.is_empty() {
        let risk = serde_json::to_value(plan.risk).unwrap_or_default();
        let mut reason = plan.reasons.join("; ");
        if plan.is_raised {
            reason = format!("{} rather than the tool's own: {reason}", risk.as_str().unwrap_or_default());
        }
        preview.insert("escalation_reason".to_owned(), reason.into());
    }
    Value::Object(preview)
}

fn shown(action: &Action, prepared: &PreparedStep) -> Map<String, Value> {
    let mut shown = match (&prepared.action, action) {
        (PreparedAction::Run(command), _) => run(command, prepared.diff.as_ref()),
        (PreparedAction::File(site, validate), Action::Write(write)) => {
            let mut shown = with_rights("write", &site.path, &write.at);
            shown.append(&mut written(write, prepared.diff.as_ref()));
            if let Some(validate) = validate {
                shown.insert("validate".to_owned(), validate.line().into());
            }
            shown
        }
        (PreparedAction::File(site, _), Action::Remove(at)) => {
            let mut shown = with_rights("remove", &site.path, at);
            match is_private(site, at) {
                true => {
                    let note = "its contents aren't shown, because its group and others may not read it";
                    shown.insert("note".to_owned(), note.into());
                    former(&mut shown, site);
                }
                false => shown.append(&mut compared(prepared.diff.as_ref())),
            }
            if let Some(leads_to) = site.link_target() {
                let leads_to = excerpt(&String::from_utf8_lossy(leads_to), SENTENCE);
                shown.insert("symlink_to".to_owned(), leads_to.into());
            }
            shown
        }
        (PreparedAction::File(site, _), Action::MakeDirectory(directory)) => {
            let mut shown = with_rights("make_directory", &site.path, &directory.at);
            shown.insert("mode".to_owned(), octal(directory.mode).into());
            owners(&mut shown, &directory.owner, &directory.group);
            shown
        }
        (PreparedAction::File(site, _), Action::Move(moved)) => {
            let mut shown = with_rights("move", &site.path, &moved.from);
            let to = site.to.as_ref().unwrap_or(&moved.to);
            shown.insert("to".to_owned(), to.clone().into());
            if moved.to != *to || moved.from.path != site.path {
                let asked = format!("{} and {}", moved.from.path, moved.to);
                shown.insert("asked_for".to_owned(), asked.into());
            }
            former(&mut shown, site);
            match site.sha256() {
                Some(_) if site.before.as_deref().is_some_and(hides) || is_private(site, &moved.from) => None,
                Some(sha256) => shown.insert("sha256".to_owned(), sha256.into()),
                None if site.is_directory() => {
                    shown.insert("note".to_owned(), "what is in the directory".into())
                }
                None => None,
            };
            shown
        }
        (PreparedAction::File(site, _), Action::SetAttributes(attributes)) => {
            let mut shown = with_rights("set_attributes", &site.path, &attributes.at);
            // A new owner may take bits from the mode, so the mode is shown wherever it changes.
            let after = site.attributes_after(attributes).map(|after| after.mode);
            let former_mode = site.attributes().map(|former| former.mode);
            if let Some(mode) = attributes.mode.or(after.filter(|mode| Some(*mode) != former_mode)) {
                shown.insert("mode".to_owned(), octal(mode).into());
            }
            owners(&mut shown, &attributes.owner, &attributes.group);
            former(&mut shown, site);
            shown
        }
        (PreparedAction::File(site, _), Action::RemoveDirectory(at)) => {
            let mut shown = with_rights("remove_directory", &site.path, at);
            former(&mut shown, site);
            shown
        }
        (PreparedAction::Signal(prepared), Action::Signal(signal)) => signals::shown(signal, prepared),
        (PreparedAction::File(..), Action::Run(_) | Action::Signal(_)) | (PreparedAction::Signal(_), _) => {
            Map::new()
        }
    };
    if !prepared.undo.is_empty() {
        let undo = prepared.undo.iter().map(|undo| {
            flattened(match prepared.is_in_diff(undo) {
                true => {
                    let mut shown = run(undo, None);
                    shown.remove("stdin");
                    shown
                }
                false => run(undo, None),
            })
        });
        shown.insert("undo".to_owned(), undo.collect());
    }
    shown
}

fn run(command: &AllowedCommand, diff: Option<&FileDiff>) -> Map<String, Value> {
    let mut shown = Map::from_iter([("run".to_owned(), command.line().into())]);
    if let Some(stdin) = &command.command.stdin {
        // The input of a program such as `crontab -` is as powerful as its arguments, so it is shown.
        match (diff, std::str::from_utf8(stdin)) {
            (Some(diff), _) => shown.insert("stdin".to_owned(), Value::Object(compared(Some(diff)))),
            (None, Ok(text)) => shown.insert("stdin".to_owned(), excerpt(text, STDIN).into()),
            (None, Err(_)) => shown.insert("stdin".to_owned(), json!({"bytes": stdin.len()})),
        };
        shown.insert("stdin_sha256".to_owned(), sha256::of(stdin).into());
    }
    shown
}

fn with_rights(what: &str, path: &str, at: &FilePath) -> Map<String, Value> {
    let mut shown = Map::from_iter([(what.to_owned(), path.into())]);
    if at.path != path {
        shown.insert("asked_for".to_owned(), at.path.clone().into());
    }
    if let Privilege::User(_) = at.privilege {
        shown.insert("as".to_owned(), String::from(at.privilege.clone()).into());
    }
    shown
}

fn written(write: &Write, diff: Option<&FileDiff>) -> Map<String, Value> {
    let mut shown = match write.sensitive {
        true => Map::from_iter([("note".to_owned(), "its contents aren't shown".into())]),
        false => compared(diff),
    };
    // With everything else known, a hash would let somebody guess what is hidden.
    if write.sensitive || !hides(&write.contents) {
        shown.insert("sha256".to_owned(), sha256::of(&write.contents).into());
    }
    if let Some(mode) = write.mode {
        shown.insert("mode".to_owned(), octal(mode).into());
    }
    owners(&mut shown, &write.owner, &write.group);
    shown
}

/// Whether something in these contents isn't shown.
fn hides(contents: &[u8]) -> bool {
    matches!(redact(&String::from_utf8_lossy(contents)), Cow::Owned(_))
}

/// Whether only the owner may read a file, and root's rights would show it. A step that removes or moves it needs neither its
/// contents nor its hash.
fn is_private(site: &Site, at: &FilePath) -> bool {
    site.attributes().is_some_and(|now| {
        let is_roots = at.privilege == Privilege::Root || now.owner == "root";
        !now.is_directory && now.mode & 0o044 == 0 && is_roots
    })
}

/// Adds mode, owner and group of what is there now.
fn former(shown: &mut Map<String, Value>, site: &Site) {
    if let Some(now) = site.attributes() {
        let former = format!("{} {}:{}", octal(now.mode), now.owner, now.group);
        shown.insert("former".to_owned(), former.into());
    }
}

fn owners(shown: &mut Map<String, Value>, owner: &Option<String>, group: &Option<String>) {
    for (name, value) in [("owner", owner), ("group", group)] {
        if let Some(value) = value {
            shown.insert(name.to_owned(), value.clone().into());
        }
    }
}

fn compared(diff: Option<&FileDiff>) -> Map<String, Value> {
    let mut shown = Map::new();
    for (name, text) in [
        ("diff", diff.and_then(|diff| diff.text.as_ref())),
        ("note", diff.and_then(|diff| diff.note.as_ref())),
    ] {
        if let Some(text) = text {
            shown.insert(name.to_owned(), text.clone().into());
        }
    }
    shown
}

fn lines(commands: &[AllowedCommand]) -> Value {
    commands.iter().map(|command| flattened(run(command, None))).collect()
}

/// A command without input is shown as its line alone.
fn flattened(mut shown: Map<String, Value>) -> Value {
    match shown.len() {
        1 => shown.remove("run").unwrap_or_default(),
        _ => Value::Object(shown),
    }
}

/// A sentence without its numbers. A live directory has another number of files a minute later, and the plan for it is
/// the same.
fn without_numbers(sentence: &str) -> String {
    let mut digits =
        sentence.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect::<String>();
    while digits.contains("00") {
        digits = digits.replace("00", "0");
    }
    digits
}

/// The file that was found, whatever is in it. Programs may go on writing to it.
fn file_id(found: &Found) -> Value {
    json!([format!("{:?}", found.kind), found.metadata.device, found.metadata.inode])
}

/// All that distinguishes this plan from any other, for its hash. Contents stand in it by their own hashes.
pub fn identity(plan: &PreparedPlan) -> Value {
    let command = |allowed: &AllowedCommand| {
        let command: &Command = &allowed.command;
        json!({
            "leads": allowed.leads,
            "found": allowed.found.iter().map(|found| found.as_ref().map(file_id)).collect::<Vec<_>>(),
            "program": command.program,
            "args": command.args,
            "env": command.env,
            "stdin": command.stdin.as_deref().map(sha256::of),
            "privilege": String::from(command.privilege.clone()),
            "milliseconds": u64::try_from(command.timeout.as_millis()).unwrap_or(u64::MAX >> 11),
        })
    };
    let commands = |all: &[AllowedCommand]| all.iter().map(command).collect::<Value>();
    let steps = plan.change.steps.iter().zip(&plan.steps).map(|(step, prepared)| {
        let action = match (&step.action, &prepared.action) {
            (Action::Run(run), PreparedAction::Run(allowed)) => json!({
                "run": command(allowed), "piped": commands(&allowed.piped), "any_exit": run.any_exit,
                "success": run.success, "interruptible": run.interruptible,
            }),
            (action, PreparedAction::File(site, validate)) => {
                let at = json!({
                    "path": site.path,
                    "privilege": action.path().map(|at| String::from(at.privilege.clone())),
                    "before": site.sha256(),
                });
                match action {
                    Action::Write(write) => json!({
                        "write": at, "contents": sha256::of(&write.contents), "mode": write.mode, "owner": write.owner,
                        "group": write.group, "sensitive": write.sensitive, "validate": validate.as_ref().map(command),
                    }),
                    Action::MakeDirectory(directory) => json!({
                        "make_directory": at, "mode": directory.mode, "owner": directory.owner,
                        "group": directory.group,
                    }),
                    Action::Remove(_) | Action::Run(_) | Action::Signal(_) => json!({"remove": at}),
                    Action::Move(_) => json!({"move": at, "to": site.to, "found": site.attributes()}),
                    Action::SetAttributes(attributes) => json!({
                        "set_attributes": at, "mode": attributes.mode, "owner": attributes.owner,
                        "group": attributes.group, "found": site.attributes(),
                    }),
                    Action::RemoveDirectory(_) => json!({"remove_directory": at, "found": site.attributes()}),
                }
            }
            (Action::Signal(signal), PreparedAction::Signal(prepared)) => {
                signals::identity(signal, &prepared.seen)
            }
            _ => Value::Null,
        };
        json!({"action": action, "undo": commands(&prepared.undo)})
    });
    json!({
        "summary": without_numbers(&plan.change.summary),
        "steps": steps.collect::<Vec<_>>(),
        "after_undo": commands(&plan.after_undo),
        "guard": plan.change.guard.map(|guard| guard.as_secs()),
        "power": plan.change.power.map(|power| format!("{power:?}")),
        "risk": plan.risk,
        "locks": plan.change.locks.iter().map(|lock| format!("{lock:?}")).collect::<Vec<_>>(),
        "dry_run": plan.dry_run.as_ref().map(command),
        "warnings": plan.change.warnings.iter().map(|text| without_numbers(text)).collect::<Vec<_>>(),
        "affected_services": plan.change.affected_services,
    })
}
