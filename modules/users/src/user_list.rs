//! `user_list`: the accounts, people first.

use linux_sysadmin_sdk::accounts::expiry::Expiry;
use linux_sysadmin_sdk::accounts::logins::{self, Logins, Password};
use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

use crate::accounts::{Accounts, GROUPS, USERS, User};
use crate::sudoers::Sudoers;
use crate::sudoers::rights::{Identity, Rules};

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Which {
    People,
    System,
    All,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListArgs {
    /// Default: all
    kind: Option<Which>,
}

/// An account in the list. Usual values are left out.
#[derive(Debug, Serialize)]
pub(crate) struct Item {
    user: String,
    uid: u32,
    /// The primary group, where it has another name than the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    comment: String,
    /// The home, where it isn't /home/NAME.
    #[serde(skip_serializing_if = "Option::is_none")]
    home: Option<String>,
    shell: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    system: bool,
    /// True where the account isn't in /etc/passwd.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    directory: bool,
    /// The state of the password, where it isn't set.
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<Password>,
    /// True where nobody can log in, not even by key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    expired: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_login: Option<String>,
    /// The commands that may run as root: `all` or `some`.
    #[serde(skip_serializing_if = "Option::is_none")]
    sudo: Option<&'static str>,
}

pub(crate) fn user_list(args: ListArgs, cx: &Context) -> Result<Listing<Item>> {
    let [users, groups, logins, passwords] =
        cx.run_each([USERS.command(), GROUPS.command(), Logins::command(None), logins::status_of_all()]);
    let accounts = Accounts::of(users, groups, cx)?;
    let (logins, passwords) = (Logins::of_output(logins), logins::statuses(passwords));
    let mut notes = Vec::new();
    if let Some(missing) = &logins.missing {
        notes.push(format!("logins and expiry aren't known: {missing}"));
    } else if !logins.has_shadow() || passwords.is_empty() {
        notes.push("passwords and expiry aren't known: that takes root's rights".to_owned());
    }
    let rules = sudo_rules(&mut notes, cx);
    if !accounts.directories.is_empty() {
        notes.push(format!(
            "{} lists only some of its accounts; user_info finds any of them by name",
            accounts.directories.join(", ")
        ));
    }
    let now = cx.now();
    let mut items: Vec<Item> = accounts
        .users
        .iter()
        .map(|user| {
            let login = logins.of(&user.name);
            let password =
                passwords.iter().find(|(name, _)| *name == user.name).map(|(_, password)| *password);
            let expired = login.expires.as_ref().is_some_and(|expires| expires.is_over(now));
            let system = accounts.ranges.is_system_uid(user.uid);
            let group = accounts.group_name(user.gid);
            Item {
                user: user.name.clone(),
                uid: user.uid,
                group: Some(group).filter(|group| *group != user.name),
                groups: accounts.secondary(user).into_iter().map(str::to_owned).collect(),
                comment: user.comment.trim_end_matches(',').to_owned(),
                home: Some(user.home.clone()).filter(|home| *home != format!("/home/{}", user.name)),
                shell: user.shell.clone(),
                system,
                directory: !accounts.is_local_user(&user.name),
                // It is usual that no password opens a system account.
                password: password.filter(|password| {
                    *password != Password::Set && (!system || *password == Password::None)
                }),
                expired,
                expires: login
                    .expires
                    .filter(|expires| *expires != Expiry::Never)
                    .map(|expires| expires.to_string()),
                last_login: login.last,
                sudo: rules.as_ref().and_then(|rules| sudo(user, &accounts, rules)),
            }
        })
        .collect();
    let wanted = args.kind.unwrap_or(Which::All);
    items.retain(|item| match wanted {
        Which::All => true,
        Which::People => !item.system,
        Which::System => item.system,
    });
    items.sort_by_key(|item| (item.system, item.uid));
    Ok(Listing { items, total: None, notes })
}

/// The rules of sudo. A note says why they aren't known.
pub(crate) fn sudo_rules(notes: &mut Vec<String>, cx: &Context) -> Option<Rules> {
    match Sudoers::read(Privilege::RootIfAvailable, cx) {
        Ok(sudoers) => sudoers.map(|sudoers| sudoers.rules()),
        Err(problem) if problem.category == Category::Privilege => {
            notes.push("sudo rights aren't known: reading /etc/sudoers takes root's rights".to_owned());
            None
        }
        Err(problem) => {
            notes.push(format!("sudo rights aren't known: {}", problem.message));
            None
        }
    }
}

/// `all` or `some` where the account may run commands as root.
pub(crate) fn sudo(user: &User, accounts: &Accounts, rules: &Rules) -> Option<&'static str> {
    let standing = rules.standing(&Identity::of(user, &accounts.groups));
    if standing.all { Some("all") } else { standing.some.then_some("some") }
}
