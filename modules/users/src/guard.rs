//! What no change may cost: the rights of the account in use, and the last one that can become root. And what one gives.

use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

use crate::accounts::{Accounts, User};
use crate::logins::{self, Logins};
use crate::sudoers::Sudoers;
use crate::sudoers::rights::{Placed, Rules, Who};

/// So many accounts with all of sudo are asked about; of more, some can use it.
const ASKED: usize = 16;

/// Who has which rights now.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) accounts: Accounts,
    /// The account that the target is reached as.
    pub(crate) caller: String,
    pub(crate) sudoers: Option<Sudoers>,
    /// Accounts whose sudo rights are of no use: nobody logs in to them any more, or sudo asks for a password that there
    /// isn't.
    unable: Vec<String>,
}

impl Guard {
    pub(crate) fn look(accounts: Accounts, cx: &Context) -> Result<Self> {
        let caller = cx.account()?;
        let accounts = accounts.with_caller(&caller, cx)?;
        let sudoers = Sudoers::read(Privilege::Root, cx)?;
        let unable = Logins::look(None, cx).ended(cx.now());
        let mut guard = Self { accounts, caller, sudoers, unable };
        if let Some(rules) = guard.sudoers.as_ref().map(Sudoers::rules) {
            let is_asked = |name: &String| {
                let user = guard.accounts.user(name);
                user.is_some_and(|user| !rules.standing(&Who::of(user, &guard.accounts)).unasked)
            };
            let mut asked = guard.administrators(&guard.accounts, &rules);
            asked.retain(is_asked);
            if asked.len() <= ASKED {
                guard.unable.extend(logins::locked(asked, cx));
            }
        }
        Ok(guard)
    }

    /// Which rules of sudo let an account run what as root that didn't before: it has another name, or other groups.
    pub(crate) fn gained(&self, before: Option<&User>, after: &Accounts, name: &str) -> Vec<String> {
        let (Some(rules), Some(user)) = (self.sudoers.as_ref().map(Sudoers::rules), after.user(name)) else {
            return Vec::new();
        };
        let (had, has) = (before.map(|user| Who::of(user, &self.accounts)), Who::of(user, after));
        let is_new = |placed: &&Placed| {
            let rule = &placed.rule;
            rules.is_for(rule, &has) && !had.as_ref().is_some_and(|had| rules.is_for(rule, had))
        };
        let told = |placed: &Placed| {
            let as_root = placed.rule.commands.iter().filter(|allowed| rules.is_as_root(allowed));
            let commands: Vec<&str> = as_root.map(|allowed| allowed.command.as_str()).collect();
            let what = match commands.as_slice() {
                [] => return None,
                [only] => (*only).to_owned(),
                [first, others @ ..] => format!("{first} and {} others", others.len()),
            };
            Some(format!("sudo lets {name} run {what} as root then ({}:{})", placed.file, placed.line))
        };
        rules.rules.iter().filter(is_new).filter_map(told).collect()
    }

    /// Nobody shuts himself out, nor everybody.
    pub(crate) fn must_not_be_in_use(&self, user: &User, verb: &str) -> Result<()> {
        let name = &user.name;
        if user.uid == 0 {
            let message = format!("{name} is root (uid 0), which can't be {verb}");
            return Err(Problem::new("PROTECTED_ACCOUNT", Category::Denied, message)
                .remedy("To keep root from logging in: `PermitRootLogin no` in sshd's configuration"));
        }
        if *name == self.caller {
            let message = format!("{name} is the account in use, which can't be {verb} by itself");
            return Err(Problem::new("ACCOUNT_IN_USE", Category::Denied, message)
                .remedy("Connect as another account first"));
        }
        Ok(())
    }

    /// Refuses what would leave nobody with sudo, or the account in use with less.
    pub(crate) fn must_keep(&self, after: &Accounts, sudoers: Option<&Sudoers>) -> Result<()> {
        let (Some(before), Some(sudoers)) = (&self.sudoers, sudoers) else { return Ok(()) };
        let (before, rules) = (before.rules(), sudoers.rules());
        let own = |accounts: &Accounts, rules: &Rules| {
            let user = accounts.users.iter().find(|user| user.name == self.caller);
            user.filter(|user| user.uid != 0).map(|user| rules.standing(&Who::of(user, accounts)))
        };
        if let Some(had) = own(&self.accounts, &before) {
            let has = own(after, &rules).unwrap_or_default();
            let loses = [(had.all, has.all), (had.unasked, has.unasked), (had.some, has.some)];
            if let Some(at) = loses.iter().position(|(had, has)| *had && !*has) {
                let what = [
                    "its sudo rights",
                    "sudo without a password, which is how this server uses it",
                    "its sudo rights",
                ][at];
                let message =
                    format!("{}, the account in use, would lose {what}: nothing was changed", self.caller);
                return Err(Problem::new("CALLER_RIGHTS", Category::Denied, message)
                    .remedy("Connect as another account that has sudo, and change it from there"));
            }
        }
        let had = self.administrators(&self.accounts, &before);
        if !had.is_empty() && self.administrators(after, &rules).is_empty() {
            let names = had.join(", ");
            let message =
                format!("{names} is the last that may do everything by sudo: afterwards nobody could");
            return Err(Problem::new("LAST_SUDOER", Category::Denied, message)
                .remedy("Give another account sudo first: user_modify add_groups, or sudoers_modify"));
        }
        Ok(())
    }

    /// Who may do everything by sudo and is able to, besides root.
    fn administrators(&self, accounts: &Accounts, rules: &Rules) -> Vec<String> {
        let can = |user: &&User| {
            user.uid != 0
                && user.has_login_shell()
                && !self.unable.contains(&user.name)
                && rules.standing(&Who::of(user, accounts)).all
        };
        accounts.users.iter().filter(can).map(|user| user.name.clone()).collect()
    }
}
