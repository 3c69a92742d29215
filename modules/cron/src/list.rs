//! `cron_list`: everything that cron runs, for one account or for all.

use linux_sysadmin_sdk::prelude::*;

use crate::item::{self, Item};
use crate::target::{self, Owner};
use crate::{dialect, system};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListArgs {
    user: Option<String>,
}

/// Accounts' own crontabs first, then the system's, then directories of scripts, then anacron's table.
pub(crate) fn cron_list(args: ListArgs, cx: &Context) -> Result<Listing<Item>> {
    let dialect = dialect(cx);
    let (mut items, mut notes) = (Vec::new(), Vec::new());
    match &args.user {
        Some(user) => {
            let owner = Owner::find(cx, Some(user))?;
            match owner.read(cx)? {
                Some(bytes) => {
                    items.extend(item::users(&owner.user, &String::from_utf8_lossy(&bytes), dialect))
                }
                None => notes.push(format!("{user} has no crontab")),
            }
        }
        None => {
            let (crontabs, said) = target::all(cx);
            notes.extend(said);
            for crontab in crontabs {
                items.extend(item::users(&crontab.user, &crontab.text, dialect));
            }
        }
    }
    let (system, said) = system::jobs(cx, dialect);
    notes.extend(said);
    let is_asked_for = |item: &Item| args.user.as_ref().is_none_or(|user| item.user == *user);
    items.extend(system.into_iter().filter(is_asked_for));
    Ok(Listing { items, total: None, notes })
}
