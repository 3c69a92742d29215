//! `group_delete`: removes a group that is no account's primary group.

use linux_sysadmin_sdk::prelude::*;

use crate::accounts::Accounts;
use crate::lockout::LockoutCheck;
use crate::plan::{self, state};
use crate::shadow_utils;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DeleteArgs {
    /// The group
    name: String,
    /// Allow a system's gid
    #[serde(default)]
    system: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Deleted {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    gid: Option<u32>,
    /// The former members of the group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<String>,
    /// The action in a dry run, where nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

pub(crate) fn group_delete(args: DeleteArgs, cx: &Context) -> Result<Noted<Deleted>> {
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
        return Err(
            denied("PROTECTED_GROUP", message).remedy("Delete a group of the system with system=true")
        );
    }
    let lockout = LockoutCheck::look(accounts, cx)?;
    let mut after = lockout.accounts.clone();
    after.groups.retain(|other| other.name != *name);
    lockout.must_keep(&after, lockout.sudoers.as_ref())?;
    let mut change = plan::new(format!("Delete the group {name} (gid {})", group.gid));
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
    let mut step = Step::run(shadow_utils::GROUPDEL.with([name]).as_root()).uninterruptible();
    step = step.undo(shadow_utils::groupadd(name, Some(group.gid), false));
    for member in &group.members {
        step = step.undo(shadow_utils::JOIN.with([member, name]).as_root());
    }
    let applied = plan::apply(change.step(step), cx)?;
    let would = applied.dry_run.then_some("delete");
    Ok(Noted {
        data: Deleted { name: group.name, gid: Some(group.gid), members: group.members, would },
        notes: Vec::new(),
    })
}
