//! `sudoers_list`: every rule with its file and line, and flags for risky rules.

use linux_sysadmin_sdk::accounts::check_user;
use linux_sysadmin_sdk::{Category, Privilege, prelude::*, text};

use crate::accounts::Accounts;

use super::parse::{Alias, Allowed, Entry};
use super::rights::{Identity, PlacedRule, Rules};
use super::{CHECK_ALL, MAIN, Sudoers};

/// The most findings of visudo that are shown.
const MOST: usize = 20;
/// The most characters of an alias's members that are shown. An alias of commands with expressions may have some 100,000.
const MOST_OF_MEMBERS: usize = 600;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListArgs {
    /// Rules for it and its groups
    user: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Rights {
    rules: Vec<Item>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<AliasItem>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    defaults: Vec<Text>,
    /// Lines that sudo can't read, and findings of visudo.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
}

/// A rule. Usual values are left out.
#[derive(Debug, Serialize)]
pub(crate) struct Item {
    file: String,
    line: usize,
    users: Vec<String>,
    /// The hosts, where they aren't ALL.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
    commands: Vec<Command>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flags: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
}

#[derive(Debug, Serialize)]
struct Command {
    command: String,
    /// The runas part as sudoers has it; `root` where there is none.
    runas: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    nopasswd: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
}

#[derive(Debug, Serialize)]
struct AliasItem {
    kind: &'static str,
    name: String,
    /// The first ones, where they are long.
    members: Vec<String>,
    /// The number of members, where some are cut or left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    members_total: Option<usize>,
}

impl AliasItem {
    fn new(alias: &Alias) -> Self {
        let mut room = MOST_OF_MEMBERS;
        let mut members = Vec::new();
        for member in &alias.members {
            let shown = text::excerpt(member, room);
            room = room.saturating_sub(shown.chars().count());
            members.push(shown);
            if room == 0 {
                break;
            }
        }
        let members_total = (members != alias.members).then_some(alias.members.len());
        Self { kind: alias.kind, name: alias.name.clone(), members, members_total }
    }
}

#[derive(Debug, Serialize)]
struct Text {
    file: String,
    line: usize,
    text: String,
}

impl Item {
    pub(crate) fn new(placed: &PlacedRule, rules: &Rules) -> Self {
        let PlacedRule { file, line, comment, rule } = placed;
        let command = |own: &Allowed| Command {
            command: own.command.clone(),
            runas: own.runas.clone().unwrap_or_else(|| "root".to_owned()),
            nopasswd: own.nopasswd.unwrap_or(rules.asks_nobody),
            tags: own.tags.clone(),
        };
        Self {
            file: file.clone(),
            line: *line,
            users: rule.users.clone(),
            hosts: if rule.hosts == ["ALL"] { Vec::new() } else { rule.hosts.clone() },
            commands: rule.commands.iter().map(command).collect(),
            flags: flags(placed, rules),
            comment: comment.clone(),
        }
    }
}

/// Flags for what deserves a second look.
fn flags(placed: &PlacedRule, rules: &Rules) -> Vec<&'static str> {
    let rule = &placed.rule;
    let any = |is_it: &dyn Fn(&Allowed) -> bool| rule.commands.iter().any(is_it);
    let is_unasked = |own: &Allowed| own.nopasswd.unwrap_or(rules.asks_nobody);
    let is_people = rule.users != ["root"];
    let mut flags = Vec::new();
    for (is_it, flag) in [
        (is_people && any(&|own| own.command == "ALL" && is_unasked(own)), "NOPASSWD ALL"),
        (rule.users.iter().any(|user| user == "ALL"), "for everybody"),
        (any(&|own| own.command.starts_with('!')), "negation protects nothing"),
        (any(&|own| own.command.contains(['*', '?', '['])), "wildcards match blanks and slashes too"),
        (
            is_people
                && any(&|own| {
                    own.command != "ALL" && super::root_equivalent::warning(&own.command).is_some()
                }),
            "may amount to ALL",
        ),
        (any(&|own| own.tags.iter().any(|tag| tag == "SETENV") && own.command != "ALL"), "SETENV"),
    ] {
        flags.extend(is_it.then_some(flag));
    }
    flags
}

pub(crate) fn sudoers_list(args: ListArgs, cx: &Context) -> Result<Noted<Rights>> {
    if let Some(user) = &args.user {
        check_user(user)?;
    }
    let sudoers = match Sudoers::read(Privilege::RootIfAvailable, cx) {
        Ok(Some(sudoers)) => sudoers,
        Ok(None) => {
            let data =
                Rights { rules: Vec::new(), aliases: Vec::new(), defaults: Vec::new(), errors: Vec::new() };
            return Ok(Noted { data, notes: vec![format!("there is no {MAIN}: sudo isn't installed")] });
        }
        Err(problem) if problem.category == Category::Privilege => {
            return Err(problem.remedy("Only root may read sudo's rules"));
        }
        Err(problem) => return Err(problem),
    };
    let rules = sudoers.rules();
    let who = match &args.user {
        Some(user) => {
            let (accounts, user) = Accounts::look(cx)?.with(user, cx)?;
            Some(Identity::of(&user, &accounts.groups))
        }
        None => None,
    };
    let is_wanted = |placed: &&PlacedRule| who.as_ref().is_none_or(|who| rules.is_for(&placed.rule, who));
    let mut data = Rights {
        rules: rules.rules.iter().filter(is_wanted).map(|placed| Item::new(placed, &rules)).collect(),
        aliases: Vec::new(),
        defaults: Vec::new(),
        errors: Vec::new(),
    };
    if who.is_none() {
        data.aliases = rules.aliases().iter().map(AliasItem::new).collect();
    }
    sudoers.each_line(|file, line| match &line.entry {
        Entry::Defaults(text) if who.is_none() => {
            data.defaults.push(Text { file: file.path.clone(), line: line.number, text: text.clone() });
        }
        Entry::Wrong => {
            data.errors.push(format!("{}:{}: no line of sudoers: {}", file.path, line.number, line.text))
        }
        _ => {}
    });
    data.errors.extend(checked(cx));
    let mut notes = sudoers.notes;
    if data.aliases.iter().any(|alias| alias.members_total.is_some()) {
        notes.push("the file of an alias with `members_total` has the rest of its members".to_owned());
    }
    Ok(Noted { data, notes })
}

/// The findings of visudo; none where it can't be run.
pub(super) fn checked(cx: &Context) -> Vec<String> {
    let output = cx.run(CHECK_ALL.command().privilege(Privilege::RootIfAvailable));
    let Ok(output) = output else { return Vec::new() };
    if output.exit_code == 0 {
        return Vec::new();
    }
    let said = [output.text().into_owned(), output.error_text()].join("\n");
    let is_finding = |line: &&str| !line.is_empty() && !line.ends_with("parsed OK");
    said.lines()
        .map(str::trim_end)
        .filter(is_finding)
        .take(MOST)
        .map(|line| format!("visudo: {line}"))
        .collect()
}
