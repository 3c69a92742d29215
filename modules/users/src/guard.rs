//! What no change may cost: the rights of the account in use, and the last one that can become root.

use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

use crate::accounts::{self, Accounts, User};
use crate::logins::Logins;
use crate::sudoers::Sudoers;
use crate::sudoers::rights::{Rules, Who};

/// Who has which rights now.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) accounts: Accounts,
    /// The account that the target is reached as.
    pub(crate) caller: String,
    pub(crate) sudoers: Option<Sudoers>,
    /// Accounts that nobody can log in to any more.
    ended: Vec<String>,
}

impl Guard {
    pub(crate) fn look(accounts: Accounts, cx: &Context) -> Result<Self> {
        let caller = accounts::caller(cx)?;
        let sudoers = Sudoers::read(Privilege::Root, cx)?;
        let ended = Logins::look(None, cx).ended(cx.now());
        Ok(Self { accounts, caller, sudoers, ended })
    }

    /// Nobody shuts himself out, nor everybody.
    pub(crate) fn must_not_be_in_use(&self, user: &User, verb: &str) -> Result<()> {
        let name = &user.name;
        if user.uid == 0 {
            let message = format!("{name} is root (uid 0), which can't be {verb}");
            return Err(Problem::new("PROTECTED_ACCOUNT", Category::Denied, message));
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

    /// Who may do everything by sudo and can log in, besides root.
    fn administrators(&self, accounts: &Accounts, rules: &Rules) -> Vec<String> {
        let can = |user: &&User| {
            user.uid != 0
                && user.has_login_shell()
                && !self.ended.contains(&user.name)
                && rules.standing(&Who::of(user, accounts)).all
        };
        accounts.users.iter().filter(can).map(|user| user.name.clone()).collect()
    }
}
