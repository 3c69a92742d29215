//! `user_lock` and `user_unlock`: lock an account against every way to log in, and restore its former state.
//!
//! A locked password keeps no key out. So the account also expires, on the second day of 1970. A record keeps its former
//! expiry, and whether its password was locked before, until it is unlocked.

use linux_sysadmin_sdk::accounts::check_user;
use linux_sysadmin_sdk::accounts::expiry::Expiry;
use linux_sysadmin_sdk::accounts::logins::{self, Login, Logins, Password};
use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

use crate::accounts::{Accounts, User};
use crate::lockout::LockoutCheck;
use crate::plan;
use crate::processes::Processes;
use crate::shadow_utils;

/// The directory of the records, by uid.
pub(crate) const RECORDS: &str = "/var/lib/linux-sysadmin-locked";

/// The date that `--expiredate=1` sets.
const LOCKED_SINCE: &str = "1970-01-02";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct LockArgs {
    /// The account
    user: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Locked {
    user: String,
    locked: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<Password>,
    /// A day, or `never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    /// The processes of the account, which continue to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<Processes>,
    /// The action in a dry run, where nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
}

/// The state before a lock, where it isn't the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    expires: Expiry,
    /// True where the password was locked before.
    password_locked: bool,
}

impl Record {
    fn text(&self, user: &str) -> String {
        let password = if self.password_locked { "locked" } else { "set" };
        format!("# {user} before it was locked\nexpires={}\npassword={password}\n", self.expires)
    }

    fn read(text: &str) -> Option<Self> {
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        Some(Self {
            expires: Expiry::read(value("expires")?).ok()?,
            password_locked: value("password")? == "locked",
        })
    }
}

fn path(uid: u32) -> String {
    format!("{RECORDS}/{uid}")
}

/// The path of an account's record, where there is one.
pub(crate) fn record_of(uid: u32, cx: &Context) -> Result<Option<String>> {
    let path = path(uid);
    let found = cx.files_as(Privilege::Root).stat_all(&[&path]).remove(0)?;
    Ok(found.map(|_| path))
}

/// The current state of an account.
struct Now {
    user: User,
    lockout: LockoutCheck,
    login: Login,
    password: Password,
}

impl Now {
    fn look(args: &LockArgs, cx: &Context) -> Result<Self> {
        check_user(&args.user)?;
        let (accounts, user) = Accounts::look(cx)?.with(&args.user, cx)?;
        accounts.must_be_local(&user)?;
        // This comes first, because its problem names the missing rights.
        let lockout = LockoutCheck::look(accounts, cx)?;
        let login = Logins::look(Some(&user.name), cx).of(&user.name);
        let password = logins::password(&user.name, cx).filter(|_| login.is_known).ok_or_else(|| {
            let message = format!("whether {} is locked isn't known: that takes root's rights", user.name);
            Problem::new("PRIVILEGE_REQUIRED", Category::Privilege, message)
                .remedy("Allow this account to run the module's commands through sudo: `linux-sysadmin modules sudoers users` prints the rules")
        })?;
        Ok(Self { user, lockout, login, password })
    }

    fn expires(&self) -> Expiry {
        self.login.expires.clone().unwrap_or(Expiry::Never)
    }

    fn reply(&self, expires: &Expiry, password: Password, now: f64) -> Locked {
        let locked = expires.is_over(now);
        Locked {
            user: self.user.name.clone(),
            locked,
            password: Some(password),
            expires: Some(expires.to_string()),
            processes: None,
            would: None,
        }
    }
}

pub(crate) fn user_lock(args: LockArgs, cx: &Context) -> Result<Noted<Locked>> {
    let now = Now::look(&args, cx)?;
    let name = now.user.name.clone();
    now.lockout.must_not_be_in_use(&now.user, "locked")?;
    if now.expires().is_over(cx.now()) && now.password == Password::Locked {
        let note =
            format!("{name} is locked already: no password opens it, and it expired on {}", now.expires());
        return Ok(Noted { data: now.reply(&now.expires(), now.password, cx.now()), notes: vec![note] });
    }
    let mut after = now.lockout.accounts.clone();
    after.users.retain(|other| other.name != name);
    now.lockout.must_keep(&after, now.lockout.sudoers.as_ref())?;

    let locks_password = now.password != Password::Locked;
    // A lock without a password hash doesn't change anything.
    let record = Record { expires: now.expires(), password_locked: !locks_password && now.login.has_hash };
    let mut change = plan::new(format!("Lock the account {name}"));
    let cx_root = cx.files_as(Privilege::Root);
    if record.expires != Expiry::Never || record.password_locked {
        if cx_root.stat_all(&[RECORDS]).remove(0)?.is_none() {
            change = change.step(Step::make_directory(RECORDS, 0o700));
        }
        // An existing record belongs to an earlier lock.
        change = change.step(Step::write(path(now.user.uid), record.text(&name)).mode(0o600));
    } else if let Some(stale) = record_of(now.user.uid, cx)? {
        change = change.step(Step::remove(stale));
    }
    let undo = shadow_utils::unlock(&name, locks_password, &now.expires());
    change = change.step(plan::step(shadow_utils::lock(&name, locks_password)).undo(undo));
    let processes = Processes::of(now.user.uid, cx).ok().filter(|processes| processes.count > 0);
    // The number of processes isn't in the plan, because it changes while a person decides.
    if processes.is_some() {
        change = change.warning(format!("processes of {name} run on: locking ends no session"));
    }
    if now.lockout.accounts.ranges.is_system_uid(now.user.uid) {
        change = change
            .risk(Risk::High)
            .warning(format!("{name} is a system account: jobs of cron that run as it stop"));
    }
    let applied = plan::apply(change, cx)?;
    let locked = Expiry::On(LOCKED_SINCE.to_owned());
    let mut data = now.reply(&locked, Password::Locked, cx.now());
    data.processes = processes;
    let mut notes = Vec::new();
    if applied.dry_run {
        (data.would, data.locked) = (Some("lock"), false);
        (data.password, data.expires) = (Some(now.password), Some(now.expires().to_string()));
    } else if let Some(processes) = &data.processes {
        notes.push(format!(
            "{} processes of {name} run on: loginctl terminate-user {name} ends them",
            processes.count
        ));
    }
    Ok(Noted { data, notes })
}

pub(crate) fn user_unlock(args: LockArgs, cx: &Context) -> Result<Noted<Locked>> {
    let now = Now::look(&args, cx)?;
    let name = now.user.name.clone();
    let is_over = now.expires().is_over(cx.now());
    let has_locked_password = now.password == Password::Locked && now.login.has_hash;
    if !is_over && !has_locked_password {
        let note = match now.password {
            Password::Locked => format!("{name} isn't locked: it has no password, and keys open it"),
            _ => format!("{name} isn't locked already"),
        };
        return Ok(Noted { data: now.reply(&now.expires(), now.password, cx.now()), notes: vec![note] });
    }
    let kept = record_of(now.user.uid, cx)?;
    let record = match &kept {
        Some(path) => Record::read(&cx.files_as(Privilege::Root).read(path)?),
        None => None,
    };
    let is_ours = now.expires() == Expiry::On(LOCKED_SINCE.to_owned());
    let record = record.filter(|_| is_ours);
    // An expiry that somebody else set, and that is over, is removed: no record says what it was before.
    let expires = match &record {
        Some(record) => record.expires.clone(),
        None if is_over => Expiry::Never,
        None => now.expires(),
    };
    let unlocks_password =
        has_locked_password && !record.as_ref().is_some_and(|record| record.password_locked);
    let mut notes = Vec::new();
    let mut change = plan::new(format!("Unlock the account {name}"));
    let mut step = plan::step(shadow_utils::unlock(&name, unlocks_password, &expires));
    if is_ours {
        step = step.undo(shadow_utils::lock(&name, unlocks_password));
    }
    change = change.step(step);
    if let Some(path) = kept {
        change = change.step(Step::remove(path));
    }
    if is_over && !is_ours {
        let note = format!(
            "{name} had expired on {}: it has no expiry any more (user_modify expires=… sets one)",
            now.expires()
        );
        change = change.warning(note.clone());
        notes.push(note);
    }
    if expires.is_over(cx.now()) {
        notes.push(format!(
            "its former expiry, {expires}, is over: nobody logs in until user_modify expires=never"
        ));
    }
    let password = if unlocks_password { Password::Set } else { now.password };
    let applied = plan::apply(change, cx)?;
    let mut data = now.reply(&expires, password, cx.now());
    if applied.dry_run {
        (data.would, data.locked) = (Some("unlock"), true);
        (data.password, data.expires) = (Some(now.password), Some(now.expires().to_string()));
    }
    if password == Password::Locked {
        notes.push(format!("no password opens {name}; keys do"));
    }
    Ok(Noted { data, notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_and_garbage_is_none() {
        let record = Record { expires: Expiry::On("2027-01-31".into()), password_locked: true };
        assert_eq!(Record::read(&record.text("ada")), Some(record));
        for text in ["", "expires=never\n", "expires=soon\npassword=set\n", "\u{0}"] {
            assert_eq!(Record::read(text), None, "{text}");
        }
    }
}
