//! `user_create`: makes an account by one `useradd`, without a password.

use linux_sysadmin_sdk::accounts::expiry::Expiry;
use linux_sysadmin_sdk::accounts::logins::Logins;
use linux_sysadmin_sdk::prelude::*;

use crate::accounts::{Accounts, Group, UNKNOWN, User};
use crate::files;
use crate::lockout::LockoutCheck;
use crate::perms::protected_paths::is_within;
use crate::plan::{self, state};
use crate::shadow_utils;
use crate::validate::{self, shown};

/// The most groups that one option of `useradd` takes in the grant.
const GROUPS_AT_ONCE: usize = 4;

/// Directories in which there are no homes.
const NO_HOMES: [&str; 11] =
    ["/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr"];

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CreateArgs {
    /// New account
    user: String,
    /// Full name
    comment: Option<String>,
    /// Login shell, absolute
    shell: Option<String>,
    /// Default /home/NAME
    home: Option<String>,
    /// Default: unless system
    create_home: Option<bool>,
    /// More groups
    #[serde(default)]
    groups: Vec<String>,
    /// Default: new one
    primary_group: Option<String>,
    /// Default: next free
    uid: Option<u32>,
    /// Low uid, no login
    #[serde(default)]
    system: bool,
    /// YYYY-MM-DD
    expires: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Created {
    user: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    home: Option<String>,
    shell: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    /// `locked`: no password opens the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<&'static str>,
    /// The action in a dry run, where nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

pub(crate) fn user_create(args: CreateArgs, cx: &Context) -> Result<Noted<Created>> {
    validate::must_be_new_user(&args.user)?;
    args.comment.as_deref().map(validate::must_be_comment).transpose()?;
    let expires = args.expires.as_deref().map(Expiry::read).transpose()?;
    if args.uid == Some(0) || args.uid.is_some_and(|uid| uid >= u32::MAX - 1) {
        return Err(Problem::validation(
            "INVALID_UID",
            "uid 0 is root's: expected a number from 1 to 4294967293",
        ));
    }
    let shells = validate::shells(&cx.read("/etc/shells").unwrap_or_default());
    if let Some(shell) = &args.shell {
        validate::must_be_shell(shell, &shells)?;
    }
    args.home.as_deref().map(must_be_new_home).transpose()?;
    let accounts = Accounts::look(cx)?.with_groups(args.groups.iter().chain(&args.primary_group), cx)?;
    for group in args.groups.iter().chain(&args.primary_group) {
        accounts.known_group(group)?;
    }
    if let Some(known) = accounts.user(&args.user) {
        return exists(&args, expires, known, &accounts, cx);
    }
    let name = &args.user;
    if let Some(other) = args.uid.and_then(|uid| accounts.users.iter().find(|user| user.uid == uid)) {
        return Err(state(
            "UID_EXISTS",
            format!("uid {} is {}'s already: expected a free one", other.uid, other.name),
        ));
    }
    if args.primary_group.is_none() && accounts.group(name).is_some() {
        return Err(state(
            "GROUP_EXISTS",
            format!("there is a group {name} already, which the account would get as its own"),
        )
        .remedy(format!("Make it the account's: primary_group={name}")));
    }
    let lockout = LockoutCheck::look(accounts, cx)?;
    let creates_home = args.create_home.unwrap_or(!args.system);
    let home = args.home.clone().unwrap_or_else(|| format!("/home/{name}"));
    let mut change = plan::new(format!("Create the account {name}"));
    // There may be rules for a former account of this name, or for the groups.
    let gained = lockout.gained(None, &with(&args, &lockout.accounts)?, name);
    change = gained.into_iter().fold(change, |change, what| change.risk(Risk::High).warning(what));
    let there = files::stat(&[&home], cx)?;
    if let Some(found) = there.first() {
        if !home.starts_with("/home/") || found.kind != files::Kind::Directory {
            return Err(state(
                "HOME_EXISTS",
                format!("{home} is there already, and isn't a directory below /home: expected a new one"),
            )
            .remedy("Name a path where there is nothing"));
        }
        change = change.risk(Risk::High).warning(format!(
            "{home} is there already, and {}'s: the account gets what is in it only as far as permissions go",
            found.owner
        ));
    }
    let shell = args.shell.clone().or_else(|| usual_shell(args.system, &shells));
    let (first, rest) = args.groups.split_at(args.groups.len().min(GROUPS_AT_ONCE));
    let options = [
        args.system.then(|| "--system".to_owned()),
        Some(if creates_home { "--create-home" } else { "--no-create-home" }.to_owned()),
        args.uid.map(|uid| format!("--uid={uid}")),
        args.primary_group.as_ref().map(|group| format!("--gid={group}")),
        args.home.as_ref().map(|home| format!("--home-dir={home}")),
        shell.as_ref().map(|shell| format!("--shell={shell}")),
        args.comment
            .as_ref()
            .filter(|comment| !comment.is_empty())
            .map(|comment| format!("--comment={comment}")),
        expires.filter(|expires| *expires != Expiry::Never).map(|expires| expires.argument()),
        (!first.is_empty()).then(|| format!("--groups={}", first.join(","))),
    ];
    let command =
        Command::new("useradd").args(options.into_iter().flatten()).args(["--", name.as_str()]).as_root();
    let mut step = plan::step(command);
    if !rest.is_empty() {
        // Undo keeps a home that existed before, or that nobody made.
        let is_new = creates_home && there.is_empty();
        let undo = if is_new { shadow_utils::USERDEL_HOME } else { shadow_utils::USERDEL };
        step = step.undo(undo.with([name]).as_root());
    }
    change = change.step(step);
    for group in rest {
        let undo = shadow_utils::LEAVE.with([name, group]).as_root();
        change = change.step(plan::step(shadow_utils::JOIN.with([name, group]).as_root()).undo(undo));
    }
    for group in args.groups.iter().chain(&args.primary_group) {
        change = crate::user_modify::joining(change, group);
    }
    let applied = plan::apply(change, cx)?;
    let mut data = Created {
        user: name.clone(),
        uid: args.uid,
        home: Some(home),
        shell: shell.unwrap_or_else(|| "the default of useradd".to_owned()),
        groups: args.groups,
        password: Some("locked"),
        would: applied.dry_run.then_some("create"),
    };
    let mut notes = Vec::new();
    if !applied.dry_run {
        let after = Accounts::look(cx)?;
        let user = after.user(name).ok_or_else(|| {
            state("NOT_CREATED", format!("useradd succeeded, and there is no account {name}"))
        })?;
        data.uid = Some(user.uid);
        data.home = Some(user.home.clone());
        data.shell = user.shell.clone();
        data.groups = after.secondary(user).into_iter().map(str::to_owned).collect();
    }
    if !args.system {
        notes.push(format!(
            "nobody can log in to {name} yet: add a key (ssh_authorized_keys action=add user={name}), or have a person set a \
             password on the machine (passwd {name})"
        ));
    }
    Ok(Noted { data, notes })
}

/// The accounts after the change.
fn with(args: &CreateArgs, accounts: &Accounts) -> Result<Accounts> {
    let mut after = accounts.clone();
    let name = &args.user;
    let gid = match &args.primary_group {
        Some(group) => accounts.known_group(group)?.gid,
        None => {
            after.groups.push(Group { name: name.clone(), gid: UNKNOWN, members: Vec::new() });
            UNKNOWN
        }
    };
    for group in after.groups.iter_mut().filter(|group| args.groups.contains(&group.name)) {
        group.members.push(name.clone());
    }
    after.users.push(User {
        name: name.clone(),
        uid: args.uid.unwrap_or(UNKNOWN),
        gid,
        comment: String::new(),
        home: String::new(),
        shell: String::new(),
    });
    Ok(after)
}

/// The default shell: bash for a person where /etc/shells lists it, and none for the system.
fn usual_shell(system: bool, shells: &[String]) -> Option<String> {
    if system {
        return Some("/usr/sbin/nologin".to_owned());
    }
    ["/bin/bash", "/usr/bin/bash"]
        .into_iter()
        .find(|bash| shells.iter().any(|shell| shell == bash))
        .map(str::to_owned)
}

/// Refuses a path that can't be the home of a new account.
pub(crate) fn must_be_new_home(path: &str) -> Result<()> {
    validate::must_be_path(path)?;
    if let Some(top) = NO_HOMES.iter().find(|top| is_within(path, top)) {
        let message =
            format!("{} is below {top}, which is the system's: expected a home elsewhere", shown(path));
        return Err(Problem::validation("INVALID_HOME", message));
    }
    if ["/", "/home", "/root", "/srv", "/opt", "/var", "/tmp", "/mnt", "/media"].contains(&path)
        || path.contains(':')
    {
        let message =
            format!("{} is nobody's home: expected a directory of its own, without `:`", shown(path));
        return Err(Problem::validation("INVALID_HOME", message));
    }
    Ok(())
}

/// The answer for an account that exists: nothing is changed where it is as requested, otherwise this is a problem.
fn exists(
    args: &CreateArgs,
    expires: Option<Expiry>,
    known: &User,
    accounts: &Accounts,
    cx: &Context,
) -> Result<Noted<Created>> {
    let groups = accounts.secondary(known);
    let primary = accounts.group_name(known.gid);
    let mut differs = Vec::new();
    let mut compare = |what: &str, wanted: Option<&str>, is: &str| {
        if let Some(wanted) = wanted.filter(|wanted| *wanted != is) {
            differs.push(format!("{what} is {}, not {}", shown(is), shown(wanted)));
        }
    };
    compare("comment", args.comment.as_deref(), &known.comment);
    compare("shell", args.shell.as_deref(), &known.shell);
    compare("home", args.home.as_deref(), &known.home);
    compare("primary_group", args.primary_group.as_deref(), &primary);
    compare("uid", args.uid.map(|uid| uid.to_string()).as_deref(), &known.uid.to_string());
    if let Some(wanted) = expires.map(|expires| expires.to_string()) {
        let is = Logins::look(Some(&known.name), cx).of(&known.name).expires;
        let is = is.map_or_else(|| "unknown".to_owned(), |expires| expires.to_string());
        compare("expires", Some(&wanted), &is);
    }
    if args.system && !accounts.ranges.is_system_uid(known.uid) {
        differs.push(format!("it is no system account (uid {})", known.uid));
    }
    let missing: Vec<&str> = args
        .groups
        .iter()
        .map(String::as_str)
        .filter(|group| *group != primary && !groups.contains(group))
        .collect();
    if !missing.is_empty() {
        differs.push(format!("it isn't in {}", missing.join(", ")));
    }
    let name = &known.name;
    if !differs.is_empty() {
        return Err(state(
            "USER_EXISTS",
            format!("there is an account {name} already: {}", differs.join("; ")),
        )
        .remedy(format!("Change it by user_modify user={name}, or take another name")));
    }
    let data = Created {
        user: name.clone(),
        uid: Some(known.uid),
        home: Some(known.home.clone()),
        shell: known.shell.clone(),
        groups: groups.into_iter().map(str::to_owned).collect(),
        password: None,
        would: None,
    };
    Ok(Noted {
        data,
        notes: vec![format!("the account {name} is there already, as it was asked for: nothing was changed")],
    })
}
