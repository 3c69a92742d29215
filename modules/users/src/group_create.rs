//! `group_create`: adds a group.

use linux_sysadmin_sdk::prelude::*;

use crate::accounts::Accounts;
use crate::plan::{self, state};
use crate::shadow_utils;
use crate::validate;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CreateArgs {
    /// New group
    name: String,
    /// Default: next free
    gid: Option<u32>,
    /// With a low gid
    #[serde(default)]
    system: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Created {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    gid: Option<u32>,
    /// The members of the group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    members: Vec<String>,
    /// The action in a dry run, where nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

pub(crate) fn group_create(args: CreateArgs, cx: &Context) -> Result<Noted<Created>> {
    validate::must_be_new_group(&args.name)?;
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
        let data = Created { gid: Some(known.gid), members: known.members.clone(), would: None, name };
        return Ok(Noted { data, notes: vec!["the group is there already: nothing was changed".to_owned()] });
    }
    if let Some(other) = accounts.groups.iter().find(|group| Some(group.gid) == args.gid) {
        return Err(state(
            "GID_EXISTS",
            format!("gid {} is {}'s already: expected a free one", other.gid, other.name),
        ));
    }
    let step = plan::step(shadow_utils::groupadd(&name, args.gid, args.system));
    let applied = plan::apply(plan::new(format!("Create the group {name}")).step(step), cx)?;
    let mut gid = args.gid;
    if !applied.dry_run {
        let known = Accounts::look(cx)?.group(&name).map(|group| group.gid);
        gid = Some(known.ok_or_else(|| {
            state("NOT_CREATED", format!("groupadd succeeded, and there is no group {name}"))
        })?);
    }
    let would = applied.dry_run.then_some("create");
    Ok(Noted { data: Created { name, gid, members: Vec::new(), would }, notes: Vec::new() })
}
