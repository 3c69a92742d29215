//! Checks against lockouts. No change may take rights from the account in use, or from the last account that can become
//! root. The check also reports the rights that a change gives.

use linux_sysadmin_sdk::accounts::logins::{self, Logins};
use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

use crate::accounts::{Accounts, User};
use crate::sudoers::Sudoers;
use crate::sudoers::rights::{Identity, PlacedRule, Rules};

/// The most accounts with full sudo rights whose passwords are checked. Of more accounts, at least one can use sudo.
const ASKED: usize = 16;

/// The accounts and their sudo rights before a change.
#[derive(Clone, Debug)]
pub(crate) struct LockoutCheck {
    pub(crate) accounts: Accounts,
    /// The account that the target is reached as.
    pub(crate) caller: String,
    pub(crate) sudoers: Option<Sudoers>,
    /// Accounts that can't use their sudo rights: nobody can log in to them, or sudo asks for a password that doesn't
    /// exist.
    unable: Vec<String>,
}

impl LockoutCheck {
    pub(crate) fn look(accounts: Accounts, cx: &Context) -> Result<Self> {
        let caller = cx.account()?;
        let accounts = accounts.with_caller(&caller, cx)?;
        let sudoers = Sudoers::read(Privilege::Root, cx)?;
        let unable = Logins::look(None, cx).ended(cx.now());
        let mut lockout = Self { accounts, caller, sudoers, unable };
        if let Some(rules) = lockout.sudoers.as_ref().map(Sudoers::rules) {
            let is_asked = |name: &String| {
                let user = lockout.accounts.user(name);
                user.is_some_and(|user| {
                    !rules.standing(&Identity::of(user, &lockout.accounts.groups)).unasked
                })
            };
            let mut asked = lockout.administrators(&lockout.accounts, &rules);
            asked.retain(is_asked);
            if asked.len() <= ASKED {
                lockout.unable.extend(logins::locked(asked, cx));
            }
        }
        Ok(lockout)
    }

    /// The sudo rules that an account gains by a new name or by new groups.
    pub(crate) fn gained(&self, before: Option<&User>, after: &Accounts, name: &str) -> Vec<String> {
        let (Some(rules), Some(user)) = (self.sudoers.as_ref().map(Sudoers::rules), after.user(name)) else {
            return Vec::new();
        };
        let (had, has) =
            (before.map(|user| Identity::of(user, &self.accounts.groups)), Identity::of(user, &after.groups));
        let is_new = |placed: &&PlacedRule| {
            let rule = &placed.rule;
            rules.is_for(rule, &has) && !had.as_ref().is_some_and(|had| rules.is_for(rule, had))
        };
        let told = |placed: &PlacedRule| {
            let as_root = placed.rule.commands.iter().filter(|allowed| rules.is_as_root(allowed));
            let commands: Vec<&str> = as_root.map(|allowed| allowed.command.as_str()).collect();
            let what = match commands.as_slice() {
                [] => return None,
                [only] => (*only).to_owned(),
                [first, others @ ..] => format!("{first} and {} others", others.len()),
            };
            Some(format!("after that, sudo lets {name} run {what} as root ({}:{})", placed.file, placed.line))
        };
        rules.rules.iter().filter(is_new).filter_map(told).collect()
    }

    /// Refuses root and the account in use.
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

    /// Refuses a change that would leave nobody with full sudo rights, or would take sudo rights from the account in use.
    pub(crate) fn must_keep(&self, after: &Accounts, sudoers: Option<&Sudoers>) -> Result<()> {
        let (Some(before), Some(sudoers)) = (&self.sudoers, sudoers) else { return Ok(()) };
        let (before, rules) = (before.rules(), sudoers.rules());
        let own = |accounts: &Accounts, rules: &Rules| {
            let user = accounts.users.iter().find(|user| user.name == self.caller);
            user.filter(|user| user.uid != 0)
                .map(|user| rules.standing(&Identity::of(user, &accounts.groups)))
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

    /// The accounts besides root that have full sudo rights and can use them.
    fn administrators(&self, accounts: &Accounts, rules: &Rules) -> Vec<String> {
        let can = |user: &&User| {
            user.uid != 0
                && user.has_login_shell()
                && !self.unable.contains(&user.name)
                && rules.standing(&Identity::of(user, &accounts.groups)).all
        };
        accounts.users.iter().filter(can).map(|user| user.name.clone()).collect()
    }
}
