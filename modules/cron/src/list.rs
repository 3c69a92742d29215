//! `cron_list`: everything that cron runs, for one account or for all.

use linux_sysadmin_sdk::prelude::*;

use crate::crontab_command::{self, Owner};
use crate::entry::{self, Entry};
use crate::{dialect, programs, system_jobs};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListArgs {
    /// Jobs of this account
    user: Option<String>,
}

/// Lists the entries of accounts' own crontabs first, then those of the system, then scripts of directories, then
/// anacron's.
pub(crate) fn cron_list(args: ListArgs, cx: &Context) -> Result<Listing<Entry>> {
    let dialect = dialect(cx);
    let (mut items, mut notes) = (Vec::new(), Vec::new());
    match &args.user {
        Some(user) => {
            let owner = Owner::find(cx, Some(user))?;
            match owner.read(cx)? {
                Some(bytes) => {
                    items.extend(entry::users(&owner.user, &String::from_utf8_lossy(&bytes), dialect))
                }
                None => notes.push(format!("{user} has no crontab")),
            }
        }
        None => {
            let (crontabs, said) = crontab_command::all(cx);
            notes.extend(said);
            for crontab in crontabs {
                items.extend(entry::users(&crontab.user, &crontab.text, dialect));
            }
        }
    }
    let (system, said) = system_jobs::jobs(cx, dialect);
    notes.extend(said);
    // Whose jobs are in a file that cron ignores isn't known.
    let is_ignored = |item: &Entry| item.user.is_empty() && item.line.is_none();
    let is_asked_for =
        |item: &Entry| args.user.as_ref().is_none_or(|user| item.user == *user || is_ignored(item));
    items.extend(system.into_iter().filter(is_asked_for));
    programs::check(&mut items, cx);
    Ok(Listing { items, total: None, notes })
}
