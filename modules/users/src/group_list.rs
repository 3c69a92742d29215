//! `group_list`: groups and their members.

use linux_sysadmin_sdk::prelude::*;

use crate::accounts::{Accounts, Group};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct GroupsArgs {
    /// Groups of this account
    user: Option<String>,
}

/// A group in the list. Usual values are left out.
#[derive(Debug, Serialize)]
pub(crate) struct Item {
    name: String,
    gid: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<String>,
    /// The accounts whose primary group this is, except the one of the same name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    primary_of: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    system: bool,
    /// True where the group isn't in /etc/group.
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
    let note = || format!("{} lists only some of its groups", accounts.directories.join(", "));
    let notes = (!accounts.directories.is_empty()).then(note).into_iter().collect();
    Ok(Listing { items, total: None, notes })
}
