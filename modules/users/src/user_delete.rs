//! `user_delete`: deletes an account that has no processes, and reports what is left behind.

use linux_sysadmin_sdk::accounts::check_user;
use linux_sysadmin_sdk::prelude::*;

use crate::accounts::{Accounts, User};
use crate::files::{self, Count};
use crate::lockout::LockoutCheck;
use crate::perms::protected_paths::is_within;
use crate::plan::{self, state};
use crate::shadow_utils;
use crate::user_lock;
use crate::user_modify::must_be_idle;
use crate::validate;

/// The places of an account's crontab and mail in different distributions.
const SPOOLS: [(&str, &str); 5] = [
    ("crontab", "/var/spool/cron/crontabs/"),
    ("crontab", "/var/spool/cron/"),
    ("mail", "/var/mail/"),
    ("mail", "/var/spool/mail/"),
    ("lingering services", "/var/lib/systemd/linger/"),
];

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DeleteArgs {
    /// The account
    user: String,
    /// The mail too
    #[serde(default)]
    remove_home: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Deleted {
    user: String,
    uid: u32,
    /// The removed home and its size.
    #[serde(skip_serializing_if = "Option::is_none")]
    removed_home: Option<String>,
    /// The files and services that the account leaves behind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_behind: Vec<String>,
    /// The action in a dry run, where nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

pub(crate) fn user_delete(args: DeleteArgs, cx: &Context) -> Result<Noted<Deleted>> {
    check_user(&args.user)?;
    let (accounts, user) = Accounts::look(cx)?.with(&args.user, cx)?;
    accounts.must_be_local(&user)?;
    let lockout = LockoutCheck::look(accounts, cx)?;
    lockout.must_not_be_in_use(&user, "deleted")?;
    let mut after = lockout.accounts.clone();
    after.users.retain(|other| other.name != user.name);
    lockout.must_keep(&after, lockout.sudoers.as_ref())?;
    must_be_idle(&user, "deleted", cx)?;

    let name = &user.name;
    let spools: Vec<(&str, String)> =
        SPOOLS.iter().map(|(what, directory)| (*what, format!("{directory}{name}"))).collect();
    let mut paths: Vec<&str> = spools.iter().map(|(_, path)| path.as_str()).collect();
    let is_path = validate::must_be_path(&user.home).is_ok();
    paths.extend(is_path.then_some(user.home.as_str()));
    // A group may write to some spool directories, and the host doesn't look there with root's rights.
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    match files::stat(&paths, cx) {
        Ok(all) => found = all,
        Err(_) => {
            for path in &paths {
                match files::stat(&[path], cx) {
                    Ok(one) => found.extend(one),
                    Err(_) => unknown.push(*path),
                }
            }
        }
    }
    if args.remove_home && (!is_path || unknown.contains(&user.home.as_str())) {
        let message = format!(
            "the owner of {} isn't known, so it isn't deleted with {name}",
            validate::shown(&user.home)
        );
        return Err(state("HOME_UNKNOWN", message).remedy("Leave it: remove_home=false"));
    }
    let home = found.iter().find(|stat| stat.path == user.home);
    let mut left: Vec<String> = Vec::new();
    for (what, path) in &spools {
        let goes = *what == "mail" && args.remove_home;
        // A path may be another name of the same directory.
        if !goes
            && found.iter().any(|stat| stat.path == *path)
            && !left.iter().any(|known| known.starts_with(what))
        {
            left.push(format!("{what}: {path}"));
        }
    }
    left.extend(unknown.iter().map(|path| format!("perhaps {path}, which can't be looked at")));
    let mut change = plan::new(format!("Delete the account {name} (uid {})", user.uid));
    let mut removed = None;
    if let Some(home) = home {
        let held = Count::of(&home.path, cx)
            .map(|count| format!(" ({}, {})", count.text(), count.size()))
            .unwrap_or_default();
        if args.remove_home {
            must_be_own_home(&user, home, &lockout.accounts)
                .map_err(|problem| problem.remedy("Leave it: remove_home=false"))?;
            change = change.warning(format!("{}{held} is deleted, and can't be had back", home.path));
            removed = Some(format!("{}{held}", home.path));
        } else {
            left.push(format!("home: {}{held}", home.path));
        }
    }
    let own_rules = lockout.sudoers.as_ref().map(|sudoers| sudoers.rules().rules).unwrap_or_default();
    for placed in own_rules.iter().filter(|placed| placed.rule.users.contains(name)) {
        left.push(format!("sudo rule: {}:{}", placed.file, placed.line));
    }
    if lockout.accounts.ranges.is_system_uid(user.uid) {
        change = change.warning(format!(
            "{name} is a system account (uid {}): the package or service that made it may need it",
            user.uid
        ));
    }
    change = change.warning(format!(
        "files of uid {} elsewhere stay, and belong to the next account with that number",
        user.uid
    ));
    if !left.is_empty() {
        change = change.warning(format!("what stays behind: {}", left.join("; ")));
    }
    let line = if args.remove_home { shadow_utils::USERDEL_HOME } else { shadow_utils::USERDEL };
    change = change.step(plan::step(line.with([name]).as_root()));
    if let Some(record) = user_lock::record_of(user.uid, cx)? {
        change = change.step(Step::remove(record));
    }
    let applied = plan::apply(change, cx)?;
    let notes = vec![format!("files of uid {} elsewhere: find / -xdev -uid {}", user.uid, user.uid)];
    let would = applied.dry_run.then_some("delete");
    Ok(Noted {
        data: Deleted { user: user.name, uid: user.uid, removed_home: removed, left_behind: left, would },
        notes,
    })
}

/// Refuses a home that belongs to another account or to the system, before it is deleted or moved.
pub(crate) fn must_be_own_home(user: &User, home: &files::Stat, accounts: &Accounts) -> Result<()> {
    let path = &home.path;
    let why = if !home.is_directory() {
        Some("is no directory".to_owned())
    } else if home.owner != user.name {
        Some(format!("is {}'s", home.owner))
    } else if crate::user_create::must_be_new_home(path).is_err() {
        Some("is a directory of the system".to_owned())
    } else {
        let is_others = |other: &&User| other.name != user.name && is_within(&other.home, path);
        accounts
            .users
            .iter()
            .find(is_others)
            .map(|other| format!("is {}'s home too, or around it", other.name))
    };
    match why {
        None => Ok(()),
        Some(why) => Err(state("HOME_NOT_OWN", format!("{path} {why}: it isn't {}'s own home", user.name))),
    }
}
