//! `group_list`, `group_create` and `group_delete`.

use linux_sysadmin_sdk::prelude::*;

use crate::accounts::{Accounts, Group};
use crate::change::{self, state};
use crate::guard::Guard;
use crate::name;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct GroupsArgs {
    /// Only this account's
    user: Option<String>,
}

/// A group in a list. What is usual is left out.
#[derive(Debug, Serialize)]
pub(crate) struct Item {
    name: String,
    gid: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<String>,
    /// Accounts whose primary group it is, besides the one that is called like it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    primary_of: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    system: bool,
    /// Not of /etc/group.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    directory: bool,
}

pub(crate) fn group_list(args: GroupsArgs, cx: &Context) -> Result<Listing<Item>> {
    let accounts = Accounts::look(cx)?;
    let (accounts, user) = match &args.user {
        Some(user) => accounts.with(user, cx).map(|(accounts, user)| (accounts, Some(user)))?,
        None => (accounts, None),
    };
    let is_wanted = |group: &&Group| {
        user.as_ref().is_none_or(|user| group.gid == user.gid || group.members.contains(&user.name))
    };
    let item = |group: &Group| Item {
        name: group.name.clone(),
        gid: group.gid,
        members: group.members.clone(),
        primary_of: accounts
            .primary_of(group.gid)
            .into_iter()
            .filter(|user| *user != group.name)
            .map(str::to_owned)
            .collect(),
        system: accounts.ranges.is_system_gid(group.gid),
        directory: !accounts.is_local_group(&group.name),
    };
    let mut items: Vec<Item> = accounts.groups.iter().filter(is_wanted).map(item).collect();
    items.sort_by_key(|item| (item.system, item.gid));
    let note =
        || format!("of {} only those groups are listed that it enumerates", accounts.directories.join(", "));
    let notes = (!accounts.directories.is_empty()).then(note).into_iter().collect();
    Ok(Listing { items, total: None, notes })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CreateArgs {
    name: String,
    gid: Option<u32>,
    /// Low gid
    #[serde(default)]
    system: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DeleteArgs {
    name: String,
    /// Also one with a system's gid
    #[serde(default)]
    system: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Changed {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    gid: Option<u32>,
    /// Who was in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<String>,
    /// Of a dry run: nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

pub(crate) fn group_create(args: CreateArgs, cx: &Context) -> Result<Noted<Changed>> {
    name::must_be_new_group(&args.name)?;
    if args.gid.is_some_and(|gid| gid == 0 || gid >= u32::MAX - 1) {
        return Err(Problem::validation(
            "INVALID_GID",
            "gid 0 is root's: expected a number from 1 to 4294967293",
        ));
    }
    let accounts = Accounts::look(cx)?;
    let name = args.name;
    if let Some(known) = accounts.group(&name) {
        if let Some(gid) = args.gid.filter(|gid| *gid != known.gid) {
            return Err(state(
                "GROUP_EXISTS",
                format!("there is a group {name} already, with gid {} and not {gid}", known.gid),
            ));
        }
        let data = Changed { gid: Some(known.gid), members: known.members.clone(), would: None, name };
        return Ok(Noted { data, notes: vec!["the group is there already: nothing was changed".to_owned()] });
    }
    if let Some(other) = accounts.groups.iter().find(|group| Some(group.gid) == args.gid) {
        return Err(state(
            "GID_EXISTS",
            format!("gid {} is {}'s already: expected a free one", other.gid, other.name),
        ));
    }
    let step = change::step(change::groupadd(&name, args.gid, args.system));
    let applied = change::apply(change::plan(format!("Create the group {name}")).step(step), cx)?;
    let mut gid = args.gid;
    if !applied.dry_run {
        let known = Accounts::look(cx)?.group(&name).map(|group| group.gid);
        gid = Some(known.ok_or_else(|| {
            state("NOT_CREATED", format!("groupadd succeeded, and there is no group {name}"))
        })?);
    }
    let would = applied.dry_run.then_some("create");
    Ok(Noted { data: Changed { name, gid, members: Vec::new(), would }, notes: Vec::new() })
}

pub(crate) fn group_delete(args: DeleteArgs, cx: &Context) -> Result<Noted<Changed>> {
    let accounts = Accounts::look(cx)?.with_groups([&args.name], cx)?;
    let group = accounts.known_group(&args.name)?.clone();
    let name = &group.name;
    let denied =
        |code: &str, message: String| Problem::new(code, linux_sysadmin_sdk::Category::Denied, message);
    if group.gid == 0 {
        return Err(denied(
            "PROTECTED_GROUP",
            format!("{name} is root's group (gid 0), which can't be deleted"),
        ));
    }
    accounts.must_be_local_group(&group)?;
    let users = accounts.primary_of(group.gid);
    if !users.is_empty() {
        let message =
            format!("{name} is the primary group of {}: an account can't be without one", users.join(", "));
        return Err(state("PRIMARY_GROUP", message)
            .remedy("Delete those accounts, or give them another primary group (usermod -g)"));
    }
    let is_system = accounts.ranges.is_system_gid(group.gid);
    if is_system && !args.system {
        let message = format!(
            "{name} is a group of the system (gid {}), which packages and permissions may depend on",
            group.gid
        );
        return Err(denied("PROTECTED_GROUP", message).remedy("Where it is meant: system=true"));
    }
    let guard = Guard::look(accounts, cx)?;
    let mut after = guard.accounts.clone();
    after.groups.retain(|other| other.name != *name);
    guard.must_keep(&after, guard.sudoers.as_ref())?;
    let mut change = change::plan(format!("Delete the group {name} (gid {})", group.gid));
    if is_system {
        change = change
            .risk(Risk::Critical)
            .warning("it is a group of the system: packages and permissions may depend on it");
    }
    let members = match group.members.as_slice() {
        [] => "it has no members".to_owned(),
        members => format!("its members lose it: {}", members.join(", ")),
    };
    change = change.warning(members);
    change = change
        .warning(format!("files of gid {} stay, and belong to the next group with that number", group.gid));
    let mut step = Step::run(change::GROUPDEL.with([name]).as_root()).uninterruptible();
    step = step.undo(change::groupadd(name, Some(group.gid), false));
    for member in &group.members {
        step = step.undo(change::JOIN.with([member, name]).as_root());
    }
    let applied = change::apply(change.step(step), cx)?;
    let would = applied.dry_run.then_some("delete");
    Ok(Noted {
        data: Changed { name: group.name, gid: Some(group.gid), members: group.members, would },
        notes: Vec::new(),
    })
}
