//! `sec_check_users`: accounts of the machine's own that let too many in.
//!
//! Accounts of a directory service are not looked at. No hash is read: passwd says of each account whether it has a
//! password.

mod homes;

use std::collections::BTreeMap;

use linux_sysadmin_sdk::accounts::expiry::Expiry;
use linux_sysadmin_sdk::accounts::logins::{self, Login, Logins, Password};
use linux_sysadmin_sdk::accounts::{User, login_setting};
use linux_sysadmin_sdk::prelude::*;
use serde_json::json;

use crate::finding::{Finding, Found, Report};
use homes::Homes;

const PASSWD: &str = "/etc/passwd";
const LOGIN_DEFS: &str = "/etc/login.defs";

/// The days without a login after which an account is stale, where the caller says nothing.
const STALE_DAYS: u32 = 90;

/// The age of passwords from which they never have to be changed.
const NEVER: u32 = 99_999;

/// Accounts of packages and their shells, which Debian and Red Hat ship so.
const SHIPPED: [(&str, &[&str]); 4] = [
    ("sync", &["/bin/sync", "/usr/bin/sync"]),
    ("shutdown", &["/sbin/shutdown", "/usr/sbin/shutdown"]),
    ("halt", &["/sbin/halt", "/usr/sbin/halt"]),
    ("postgres", &["/bin/bash"]),
];

pub(crate) fn tool(module: Module) -> Module {
    module.grants(grants).tool(Tool::new(
        "sec_check_users",
        "Weak accounts: no password, uid 0, stale, shells, homes, keys of others",
        sec_check_users,
    ))
}

fn grants(module: Module) -> Module {
    module
        .commands(logins::grants())
        .commands(homes::grants())
        .path(PathGrant::read(PASSWD, "the machine's own accounts"))
        .path(PathGrant::read(LOGIN_DEFS, "the machine's own rules for accounts"))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct UsersArgs {
    /// Days without login, default 90
    stale_days: Option<u32>,
}

fn sec_check_users(args: UsersArgs, cx: &Context) -> Result<Analysis<Report>> {
    Ok(look(args.stale_days.unwrap_or(STALE_DAYS), cx)?.analysis("accounts"))
}

/// The check as `sec_audit` runs it.
pub(crate) fn find(cx: &Context) -> Result<Found> {
    look(STALE_DAYS, cx)
}

/// The commands that don't wait for another one.
pub(crate) fn ahead(_: &Context) -> Vec<Command> {
    first_looks().into()
}

fn first_looks() -> [Command; 2] {
    [Logins::command(None), logins::status_of_all()]
}

/// The machine's own rules for accounts.
struct Rules {
    /// The first number of a person's account.
    first_person: u32,
    /// The days after which new passwords have to be changed.
    password_days: u32,
    /// The mode of new homes.
    home_mode: Option<u32>,
}

impl Rules {
    fn read(login_defs: &str) -> Self {
        let number = |key| login_setting(login_defs, key).and_then(|value| value.parse().ok());
        let mode = login_setting(login_defs, "HOME_MODE");
        Self {
            first_person: number("UID_MIN").unwrap_or(1000),
            password_days: number("PASS_MAX_DAYS").unwrap_or(NEVER),
            home_mode: mode.and_then(|mode| u32::from_str_radix(mode, 8).ok()),
        }
    }
}

impl Rules {
    /// True if the account is a person's, and not the system's or a package's.
    fn is_person(&self, user: &User) -> bool {
        user.uid >= self.first_person && !(65_533..=65_535).contains(&user.uid)
    }
}

/// An account with all that is known of it.
struct Account<'a> {
    user: &'a User,
    login: Login,
    password: Option<Password>,
    has_keys: bool,
}

impl Account<'_> {
    /// True if somebody can log in as the account, by a password or by a key.
    fn has_way_in(&self) -> bool {
        self.has_keys || matches!(self.password, Some(Password::Set | Password::None))
    }

    fn has_expired(&self, now: f64) -> bool {
        self.login.expires.as_ref().is_some_and(|expires| expires.is_over(now))
    }
}

fn look(stale_days: u32, cx: &Context) -> Result<Found> {
    let passwd = cx.read(PASSWD)?;
    let rules = Rules::read(&cx.read(LOGIN_DEFS).unwrap_or_default());
    let users: Vec<User> = passwd.lines().filter_map(User::parse).collect();
    let [logins, passwords] = cx.run_each(first_looks());
    let logins = Logins::of_output(logins);
    let passwords = of_all(&users, logins::statuses(passwords), cx);
    let homes = Homes::look(&users, &rules, cx);

    let mut found = Found::default();
    if passwords.is_empty() {
        found.unseen.push("whether accounts have passwords: that takes root's rights".to_owned());
    }
    match &logins.missing {
        Some(missing) => found.unseen.push(format!("logins and expiry: {missing}")),
        None if !logins.has_shadow() => {
            found.unseen.push("ages and expiry of passwords: that takes root's rights".to_owned());
        }
        None => {}
    }
    found.unseen.extend(homes.unseen.iter().cloned());
    in_the_file(&passwd, &users, &mut found);
    for user in &users {
        let password = passwords.get(&user.name).copied();
        let has_keys = homes.has_keys(user);
        let account = Account { user, login: logins.of(&user.name), password, has_keys };
        of_account(&account, &rules, stale_days, cx.now(), &mut found);
    }
    homes.judge(&users, &rules, &mut found);
    Ok(found)
}

/// The passwords of all accounts. Some versions of passwd tell them only one by one.
fn of_all(users: &[User], statuses: Vec<(String, Password)>, cx: &Context) -> BTreeMap<String, Password> {
    if !statuses.is_empty() {
        return statuses.into_iter().collect();
    }
    let known = users.iter().filter(|user| linux_sysadmin_sdk::accounts::is_name(&user.name));
    let answers = cx.run_all(known.map(|user| logins::status_of(&user.name)).collect());
    answers.into_iter().flat_map(logins::statuses).collect()
}

/// What the file of accounts itself shows: hashes that everybody can read, and numbers that two accounts share.
fn in_the_file(passwd: &str, users: &[User], found: &mut Found) {
    for line in passwd.lines() {
        let Some(user) = User::parse(line) else { continue };
        let field = line.split(':').nth(1).unwrap_or_default();
        if field.len() > 1 && !field.starts_with(['!', '*']) {
            let evidence = "the hash of the password is in /etc/passwd, which everybody can read";
            found.push(
                Finding::new(Severity::High, "user-readable-hash", &user.name, evidence)
                    .mend("user_lock", json!({"user": user.name})),
            );
        }
    }
    for user in users {
        if user.uid == 0 && user.name != "root" {
            found.push(
                Finding::new(Severity::Critical, "user-uid-0", &user.name, "has root's uid 0 beside root")
                    .mend("user_delete", json!({"user": user.name})),
            );
            continue;
        }
        let first = users.iter().find(|other| other.uid == user.uid && other.name != user.name);
        if let Some(other) = first.filter(|_| user.uid != 0) {
            let evidence = format!("has uid {}, as {} has", user.uid, other.name);
            found.push(Finding::new(Severity::Warning, "user-shared-uid", &user.name, evidence));
        }
    }
}

fn of_account(account: &Account, rules: &Rules, stale_days: u32, now: f64, found: &mut Found) {
    let Account { user, login, .. } = account;
    let lock = json!({"user": user.name});
    let is_person = rules.is_person(user);
    if account.password == Some(Password::None) {
        let severity = if user.has_login_shell() { Severity::Critical } else { Severity::High };
        found.push(
            Finding::new(severity, "user-empty-password", &user.name, "no password is asked for")
                .mend("user_lock", lock.clone()),
        );
    }
    if !is_person && user.uid != 0 && user.has_login_shell() {
        system_shell(account, found);
    }
    if account.has_expired(now) {
        // A lock by user_lock is an expiry as well, and is nothing weak.
        let expires = login.expires.as_ref().map(Expiry::to_string).unwrap_or_default();
        if is_person && expires != "1970-01-02" {
            let evidence = format!("expired on {expires} and is still there");
            found.push(
                Finding::new(Severity::Info, "user-expired", &user.name, evidence)
                    .mend("user_delete", lock.clone()),
            );
        }
        return;
    }
    if !is_person || !user.has_login_shell() || !account.has_way_in() {
        return;
    }
    let long_ago = now - f64::from(stale_days) * 86_400.0;
    if let Some(since) = last_seen(account).filter(|day| Expiry::On(day.clone()).is_over(long_ago)) {
        let evidence = match login.last {
            Some(_) => format!("last login on {since}"),
            None => format!("no login is recorded; password of {since}"),
        };
        found.push(
            Finding::new(Severity::Warning, "user-stale", &user.name, evidence).mend("user_lock", lock),
        );
    }
    let days = login.days_max.unwrap_or(NEVER);
    if account.password == Some(Password::Set) && rules.password_days < NEVER && days > rules.password_days {
        let evidence = format!(
            "the password {}, against {} days in login.defs",
            if days >= NEVER { "never expires".to_owned() } else { format!("expires after {days} days") },
            rules.password_days
        );
        found.push(Finding::new(Severity::Warning, "user-password-no-expiry", &user.name, evidence).mend(
            "command_run",
            json!({
                "argv": ["chage", "--maxdays", rules.password_days.to_string(), user.name],
                "as_root": true
            }),
        ));
    }
}

/// The day of the last login, or that on which the password was set where no login is known. Whoever comes by a key may be
/// here each day on a machine that records no logins.
fn last_seen(account: &Account) -> Option<String> {
    let login = &account.login;
    let set = login.changed.as_ref().filter(|_| !account.has_keys);
    let time = login.last.as_ref().or(set)?;
    let day = time.get(..10)?;
    Expiry::read(day).is_ok().then(|| day.to_owned())
}

/// An account of the system or of a package whose shell lets somebody log in.
fn system_shell(account: &Account, found: &mut Found) {
    let user = account.user;
    let is_shipped =
        SHIPPED.iter().any(|(name, shells)| *name == user.name && shells.contains(&user.shell.as_str()));
    let (severity, evidence) = match (account.has_way_in(), is_shipped) {
        (false, true) => return,
        (false, false) => (Severity::Warning, format!("uid {}, shell {:?}", user.uid, user.shell)),
        (true, _) => {
            let way = if account.has_keys { "keys" } else { "a password" };
            (Severity::High, format!("uid {}, shell {:?}, and {way} to log in with", user.uid, user.shell))
        }
    };
    found.push(
        Finding::new(severity, "user-system-shell", &user.name, evidence)
            .mend("user_modify", json!({"user": user.name, "shell": "/usr/sbin/nologin"})),
    );
}
