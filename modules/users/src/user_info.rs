//! `user_info`: everything about one account.

use linux_sysadmin_sdk::accounts::check_user;
use linux_sysadmin_sdk::accounts::logins::{self, Logins, Password};
use linux_sysadmin_sdk::prelude::*;

use crate::accounts::{Accounts, GROUPS, GROUPS_OF, USERS, User};
use crate::files::{self, Stat};
use crate::processes::Processes;
use crate::sudoers::list::Item as SudoRule;
use crate::user_list::{sudo, sudo_rules};
use crate::validate;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct InfoArgs {
    /// The account
    user: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct Info {
    user: String,
    uid: u32,
    gid: u32,
    group: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    comment: String,
    system: bool,
    /// `local` or `directory`.
    source: &'static str,
    home: Home,
    shell: Shell,
    login: Login,
    #[serde(skip_serializing_if = "Option::is_none")]
    sudo: Option<Sudo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<Processes>,
}

#[derive(Debug, Serialize)]
struct Home {
    path: String,
    exists: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    /// The owner, where it isn't the account itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
}

#[derive(Debug, Serialize)]
struct Shell {
    path: String,
    /// True where the shell lets somebody log in.
    login: bool,
    /// True where the shell is in /etc/shells.
    listed: bool,
}

#[derive(Debug, Serialize)]
struct Login {
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<Password>,
    #[serde(skip_serializing_if = "Option::is_none")]
    password_changed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_days: Option<u32>,
    /// The maximal age of the password; left out where it never has to be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_days: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warn_days: Option<u32>,
    /// A day, or `never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    account_expires: Option<String>,
    /// True where nobody can log in, not even by key.
    #[serde(skip_serializing_if = "Option::is_none")]
    account_expired: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_tty: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failed: Option<String>,
}

#[derive(Debug, Serialize)]
struct Sudo {
    /// The commands that may run as root: `all`, `some` or `none`.
    root: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules: Vec<SudoRule>,
}

/// The value in shadow(5) of a password that never has to be changed.
const FOREVER: u32 = 99_999;

pub(crate) fn user_info(args: InfoArgs, cx: &Context) -> Result<Noted<Info>> {
    check_user(&args.user)?;
    let [users, groups, ids, logins, password, processes] = cx.run_each([
        USERS.command(),
        GROUPS.command(),
        GROUPS_OF.with([&args.user]),
        Logins::command(Some(&args.user)),
        logins::status_of(&args.user),
        Processes::command(),
    ]);
    let (mut accounts, user) = Accounts::of(users, groups, cx)?.with(&args.user, cx)?;
    let mut notes = Vec::new();
    let groups = groups_of(&user, &mut accounts, ids);
    let shells = cx.read("/etc/shells").map(|text| validate::shells(&text)).unwrap_or_default();
    let login = login(&user, (Logins::of_output(logins), logins::statuses(password)), &mut notes, cx);
    let home = home(&user, &mut notes, cx);
    let rules = sudo_rules(&mut notes, cx);
    let sudo = rules.map(|rules| {
        let who = crate::sudoers::rights::Identity::of(&user, &accounts.groups);
        let fitting = rules.rules.iter().filter(|placed| rules.is_for(&placed.rule, &who));
        Sudo {
            root: sudo(&user, &accounts, &rules).unwrap_or("none"),
            rules: fitting.map(|placed| SudoRule::new(placed, &rules)).collect(),
        }
    });
    let processes = match Processes::of_output(user.uid, processes) {
        Ok(processes) => Some(processes),
        Err(problem) => {
            notes.push(format!("processes aren't known: {}", problem.message));
            None
        }
    };
    let data = Info {
        uid: user.uid,
        gid: user.gid,
        group: accounts.group_name(user.gid),
        groups,
        comment: user.comment.clone(),
        system: accounts.ranges.is_system_uid(user.uid),
        source: if accounts.is_local_user(&user.name) { "local" } else { "directory" },
        home,
        shell: Shell {
            login: user.has_login_shell(),
            listed: shells.contains(&user.shell),
            path: user.shell.clone(),
        },
        login,
        sudo,
        processes,
        user: user.name,
    };
    Ok(Noted { data, notes })
}

/// The groups of an account besides the primary one. A directory service may not list them, so that `id` is asked.
fn groups_of(user: &User, accounts: &mut Accounts, ids: Result<Output>) -> Vec<String> {
    let primary = accounts.group_name(user.gid);
    let Ok(output) = ids.and_then(|output| output.success("id")) else {
        return accounts.secondary(user).into_iter().map(str::to_owned).collect();
    };
    let all: Vec<String> = output.text().split_whitespace().map(str::to_owned).collect();
    // A rule may be for a group that only the directory service knows.
    for name in &all {
        if let Some(group) = accounts
            .groups
            .iter_mut()
            .find(|group| group.name == *name && !group.members.contains(&user.name))
        {
            group.members.push(user.name.clone());
        }
    }
    all.into_iter().filter(|name| *name != primary).collect()
}

fn login(
    user: &User,
    (logins, passwords): (Logins, Vec<(String, Password)>),
    notes: &mut Vec<String>,
    cx: &Context,
) -> Login {
    if let Some(missing) = &logins.missing {
        notes.push(format!("logins and expiry aren't known: {missing}"));
    }
    let found = logins.of(&user.name);
    if !found.is_known && logins.missing.is_none() {
        notes.push(
            "password ages and expiry aren't known: that takes root's rights, and an entry in /etc/shadow"
                .to_owned(),
        );
    }
    Login {
        password: passwords.into_iter().find(|(name, _)| *name == user.name).map(|(_, password)| password),
        password_changed: found.changed,
        min_days: found.days_min.filter(|days| *days > 0),
        max_days: found.days_max.filter(|days| *days < FOREVER),
        warn_days: found.days_max.filter(|days| *days < FOREVER).and(found.days_warn),
        account_expired: found.expires.as_ref().map(|expires| expires.is_over(cx.now())).filter(|over| *over),
        account_expires: found.expires.map(|expires| expires.to_string()),
        last: found.last,
        last_from: found.last_from,
        last_tty: found.last_tty,
        last_failed: found.failed,
    }
}

fn home(user: &User, notes: &mut Vec<String>, cx: &Context) -> Home {
    let found = match validate::must_be_path(&user.home).and_then(|()| files::stat(&[&user.home], cx)) {
        Ok(found) => found.into_iter().next(),
        Err(problem) => {
            notes.push(format!("the home wasn't looked at: {}", problem.message));
            None
        }
    };
    let owner = |stat: &Stat| Some(stat.owner.clone()).filter(|owner| *owner != user.name);
    Home {
        path: user.home.clone(),
        exists: found.is_some(),
        mode: found.as_ref().map(|stat| format!("{:04o}", stat.mode)),
        owner: found.as_ref().and_then(owner),
    }
}
