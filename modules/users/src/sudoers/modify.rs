//! `sudoers_modify`: changes one rule in a file of /etc/sudoers.d, and keeps every other byte. visudo checks the file
//! before sudo reads it, and all files afterwards.

use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

use crate::accounts::Accounts;
use crate::files;
use crate::lockout::LockoutCheck;
use crate::plan::{self, state};
use crate::validate::shown;

use super::list::checked;
use super::parse::{self, Entry, Line, Rule};
use super::requested_rule::{RequestedRule, RuleArgs, is_plain};
use super::rights::PlacedRule;
use super::{CHECK_ALL, CHECK_ONE, DIRECTORY, MAIN, is_read, root_equivalent};

/// The file for rules unless the caller names another one.
const DEFAULT: &str = "/etc/sudoers.d/linux-sysadmin";
/// The mode that sudo wants for its files.
const MODE: u32 = 0o440;

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Action {
    Add,
    Remove,
    Modify,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ModifyArgs {
    /// What to do
    action: Action,
    /// Default linux-sysadmin
    target_file: Option<String>,
    /// The rule; modify finds it by user
    rule: RuleArgs,
    /// Its line, where several fit
    line: Option<usize>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Modified {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// The rule as it is in the file after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// The rule as it was before the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    former: Option<String>,
    /// The action in a dry run, where nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

pub(crate) fn sudoers_modify(args: ModifyArgs, cx: &Context) -> Result<Noted<Modified>> {
    let path = target(args.target_file.as_deref())?;
    let mut wanted = args.rule.check()?;
    if args.action != Action::Remove && wanted.commands.is_none() {
        return Err(Problem::validation("INVALID_COMMAND", "commands is missing: expected what may be run"));
    }
    let lockout = LockoutCheck::look(Accounts::look(cx)?, cx)?;
    let Some(sudoers) = lockout.sudoers.clone() else {
        return Err(state("NO_SUDO", format!("there is no {MAIN} on this machine: sudo isn't installed")));
    };
    let root = cx.files_as(Privilege::Root);
    let before = match root.read_bytes(&path) {
        Ok(contents) => Some(contents),
        Err(problem) if problem.category == Category::NotFound => None,
        Err(problem) => return Err(problem),
    };
    let old = before.as_deref().unwrap_or_default();
    let mut data = Modified { file: path.clone(), line: None, rule: None, former: None, would: None };
    let after = match args.action {
        Action::Add => {
            must_be_somebody(&wanted.user, &lockout.accounts, cx)?;
            if let Some(known) = sudoers.rules().rules.iter().find(|placed| wanted.is_same(&placed.rule)) {
                return Ok(holds(data, known));
            }
            let after = with(old, &wanted.line());
            data.line = parse::lines(&after).last().map(|line| line.number);
            after
        }
        Action::Modify | Action::Remove => {
            let lines = parse::lines(old);
            let found = find(&lines, &wanted, args.action, args.line, &path)?;
            data.former = Some(found.line.text.clone());
            if args.action == Action::Remove {
                replaced(old, found.line, "")
            } else {
                must_be_somebody(&wanted.user, &lockout.accounts, cx)?;
                if !is_plain(found.rule) {
                    return Err(not_plain(&found, &path));
                }
                // Fields that the caller doesn't give stay as they were.
                wanted = wanted.over(found.rule, found.line);
                data.line = Some(found.line.number);
                if wanted.is_same(found.rule) && wanted.comment == found.line.comment {
                    data.rule = data.former.take();
                    return Ok(Noted {
                        data,
                        notes: vec![
                            "the rule is as it was asked for already: nothing was changed".to_owned(),
                        ],
                    });
                }
                replaced(old, found.line, &wanted.line())
            }
        }
    };
    let new_line = |number| {
        parse::lines(&after).into_iter().find(|line| Some(line.number) == number).map(|line| line.text)
    };
    data.rule = if args.action == Action::Remove { None } else { new_line(data.line) };
    lockout.must_keep(&lockout.accounts, Some(&sudoers.with(&path, &after)))?;

    let (verb, summary) = match (args.action, &data.former, &data.rule) {
        (Action::Add, _, Some(rule)) => ("add", format!("Add a rule of sudo to {path}: {rule}")),
        (Action::Modify, Some(former), Some(rule)) => {
            ("modify", format!("Change a rule of sudo in {path}: {former} → {rule}"))
        }
        (_, former, _) => (
            "remove",
            format!("Remove a rule of sudo from {path}: {}", former.as_deref().unwrap_or_default()),
        ),
    };
    let mut change = plan::new(summary).risk(Risk::Critical);
    if args.action != Action::Remove {
        for warning in warnings(&wanted, cx)? {
            change = change.warning(warning);
        }
    }
    if !sudoers.includes_directory() {
        change = change.warning(format!("{MAIN} doesn't include {DIRECTORY}: sudo reads none of its files"));
    }
    let is_nothing = after.iter().all(u8::is_ascii_whitespace);
    change = change.step(if is_nothing && before.is_some() {
        Step::remove(&path)
    } else {
        let check = Command::new("visudo").args(["--check", "--file={}"]).as_root();
        Step::write(&path, after).mode(MODE).owner("root", "root").validate(check)
    });
    // Where the files had errors before, a check says nothing about this change.
    let errors = checked(cx);
    if errors.is_empty() {
        change = change.step(Step::run(CHECK_ALL.command().as_root()));
    }
    let applied = plan::apply(change, cx)?;
    data.would = applied.dry_run.then_some(verb);
    let mut notes = sudoers.notes;
    if !errors.is_empty() {
        notes.push(format!("sudo's files had errors before: {}", errors.join("; ")));
    }
    Ok(Noted { data, notes })
}

pub(crate) fn grants() -> Vec<CommandGrant> {
    vec![
        CHECK_ALL.read("whether sudo can read its rules").as_root_if_available(),
        CHECK_ALL.change(Risk::Moderate, "the same after a change, which is undone where it can't"),
        CHECK_ONE.read("whether sudo can read a rule before it is one").as_root(),
    ]
}

/// Refuses a path that isn't a file of the directory which sudo reads.
fn target(path: Option<&str>) -> Result<String> {
    let path = path.unwrap_or(DEFAULT);
    let refused = |code: &str, why: &str| {
        let message = format!("{} {why}: expected a file in {DIRECTORY}, as {DEFAULT}", shown(path));
        Err(Problem::validation(code, message))
    };
    if path.trim_end_matches('/') == MAIN {
        return refused("PROTECTED_FILE", "is never changed");
    }
    let Some(name) = path.strip_prefix(DIRECTORY).and_then(|rest| rest.strip_prefix('/')) else {
        return refused("INVALID_FILE", "is outside of sudo's directory");
    };
    let is_name = !name.is_empty()
        && name.len() <= 128
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte));
    if !is_name || name.starts_with('-') {
        return refused("INVALID_FILE", "has no plain name of letters, digits, `_` and `-`");
    }
    if !is_read(name) {
        return refused("INVALID_FILE", "has a name that sudo passes over (with a `.`, or `~` at the end)");
    }
    Ok(path.to_owned())
}

/// Refuses a rule for nobody: sudo accepts any name, and a later account of that name would get the right.
fn must_be_somebody(user: &str, accounts: &Accounts, cx: &Context) -> Result<()> {
    match user.strip_prefix('%') {
        Some(group) => {
            let group = group.to_owned();
            accounts.clone().with_groups([&group], cx)?.known_group(&group).map(|_| ())
        }
        None => accounts.clone().with(user, cx).map(|_| ()),
    }
}

fn holds(mut data: Modified, known: &PlacedRule) -> Noted<Modified> {
    data.file.clone_from(&known.file);
    data.line = Some(known.line);
    let note = format!("{}:{} says so already: nothing was changed", known.file, known.line);
    Noted { data, notes: vec![note] }
}

/// Refuses to rewrite a rule whose tags or options would be lost, because they may restrict it.
fn not_plain(found: &Found<'_>, path: &str) -> Problem {
    let message = format!(
        "{path}:{} has tags, options or digests, or not the same for all of its commands: {}",
        found.line.number, found.line.text
    );
    state("RULE_NOT_PLAIN", message)
        .remedy("Add a rule that says what is wanted, then remove this one")
        .remedy(format!("Or have a person change it: visudo -f {path}"))
}

/// The rule to change, and its line.
struct Found<'a> {
    line: &'a Line,
    rule: &'a Rule,
}

fn find<'a>(
    lines: &'a [Line],
    wanted: &RequestedRule,
    action: Action,
    number: Option<usize>,
    path: &str,
) -> Result<Found<'a>> {
    let of_user = lines.iter().filter_map(|line| match &line.entry {
        Entry::Rules(rules) => match &rules[..] {
            [rule] if wanted.is_users(rule) => Some(Found { line, rule }),
            _ => None,
        },
        _ => None,
    });
    let mut fitting: Vec<Found<'_>> = of_user.collect();
    let all: Vec<String> =
        fitting.iter().map(|found| format!("line {}: {}", found.line.number, found.line.text)).collect();
    match number {
        Some(number) => fitting.retain(|found| found.line.number == number),
        // A rule to remove has to match every given field. For a modification, the given fields may be new.
        None if action == Action::Remove => fitting.retain(|found| wanted.fits(found.rule)),
        None => {
            for fits in [RequestedRule::is_placed_as, RequestedRule::fits] {
                if fitting.len() > 1 {
                    fitting.retain(|found| fits(wanted, found.rule));
                }
            }
        }
    }
    if fitting.len() == 1
        && let Some(found) = fitting.pop()
    {
        return Ok(found);
    }
    let user = &wanted.user;
    if fitting.is_empty() && all.len() < 2 {
        let message = match all.first() {
            None => format!("{path} has no rule that is {user}'s alone"),
            Some(other) => format!("the rule of {user} in {path} is another one ({other})"),
        };
        return Err(Problem::not_found("RULE_NOT_FOUND", message).remedy(format!(
            "sudoers_list user={} shows where its rules are",
            user.trim_start_matches('%')
        )));
    }
    let message = format!("{path} has {} rules of {user}, and which one is meant isn't clear", all.len());
    let problem = Problem::validation("AMBIGUOUS_RULE", message);
    Err(all
        .into_iter()
        .fold(problem, |problem, rule| problem.remedy(format!("Say which by its line: {rule}"))))
}

/// The file with one more line at its end.
fn with(file: &[u8], line: &str) -> Vec<u8> {
    let mut file = file.to_vec();
    if !file.is_empty() && !file.ends_with(b"\n") {
        file.push(b'\n');
    }
    file.extend_from_slice(line.as_bytes());
    file.push(b'\n');
    file
}

/// The file with a line replaced, or removed.
fn replaced(file: &[u8], line: &Line, new: &str) -> Vec<u8> {
    let new = if new.is_empty() { String::new() } else { format!("{new}\n") };
    [&file[..line.bytes.start], new.as_bytes(), &file[line.bytes.end..]].concat()
}

/// The warnings that a person reads before saying yes.
fn warnings(wanted: &RequestedRule, cx: &Context) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    let who = match wanted.user.strip_prefix('%') {
        Some(group) => format!("every member of {group}"),
        None => wanted.user.clone(),
    };
    if wanted.is_everything() {
        let how = if wanted.asks_nobody() {
            "without a password: whoever gets into such an account is root"
        } else {
            "with the own password"
        };
        warnings.push(format!("{who} may run everything, {how}"));
    } else if wanted.asks_nobody() {
        warnings.push(format!("{who} is asked for no password"));
    }
    let programs: Vec<&str> = wanted
        .commands()
        .iter()
        .filter(|command| *command != "ALL")
        .map(|command| program(command))
        .collect();
    warnings.extend(wanted.commands().iter().filter_map(|command| root_equivalent::warning(command)));
    for command in wanted
        .commands()
        .iter()
        .filter(|command| *command != "ALL" && !command.contains(' ') && !command.ends_with('/'))
    {
        warnings.push(format!("`{command}` may run with any arguments; `{command} \"\"` allows none"));
    }
    let plain: Vec<&str> = programs.iter().map(|path| path.trim_end_matches('/')).collect();
    if !plain.is_empty() {
        let mut paths: Vec<String> = plain.iter().flat_map(|path| with_parents(path)).collect();
        paths.sort();
        paths.dedup();
        let found = files::stat(&paths, cx)?;
        for path in plain {
            if !found.iter().any(|stat| stat.path == path) {
                warnings
                    .push(format!("{path} isn't there: whoever can put a program there decides what it is"));
            }
        }
        for stat in found.iter().filter(|stat| stat.kind != files::Kind::Symlink) {
            // An account that may write to a directory can replace the programs in it, unless the directory is sticky.
            let is_open = stat.mode & 0o022 != 0
                && stat.mode & 0o1000 == 0
                && (stat.group != "root" || stat.mode & 0o002 != 0);
            if stat.owner != "root" || is_open {
                let whose = if stat.owner == "root" {
                    format!("written by others than root (mode {:04o})", stat.mode)
                } else {
                    format!("{}'s", stat.owner)
                };
                warnings
                    .push(format!("{} is {whose}: that amounts to ALL for whoever can write it", stat.path));
            }
        }
    }
    Ok(warnings)
}

fn program(command: &str) -> &str {
    command.split(' ').next().unwrap_or_default()
}

/// The path `/a/b` with its parents: `/a` and `/a/b`.
fn with_parents(path: &str) -> Vec<String> {
    let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
    ends.map(|at| path[..at].to_owned()).chain([path.to_owned()]).collect()
}
