//! Protection against lockouts: a hardening is refused where afterwards no account that may become root would be sure to
//! get in, or not the one in use. The guard of the plan proves the rest by a new login.

use linux_sysadmin_sdk::accounts::logins::{self, Password};
use linux_sysadmin_sdk::sshd::{self, Settings};
use linux_sysadmin_sdk::{Category, prelude::*};

use super::action::Action;
use super::administrators::{Administrator, Survey};
use super::key_login;

/// The most accounts whose reasons a refusal tells.
const TOLD: usize = 5;

pub(super) fn grants(module: Module) -> Module {
    module.commands(logins::grants())
}

/// The reason why these actions together are refused.
pub(super) fn refusal(actions: &[Action], survey: &Survey, cx: &Context) -> Option<Problem> {
    let ends_passwords = actions.contains(&Action::DisablePasswordAuth);
    let ends_root = actions.contains(&Action::DisableRootLogin);
    if ends_root && sshd::client(cx).is_some() && is_root(survey, cx) {
        let message = "root is the account in use: with disable_root_login the next login would be refused";
        return Some(
            Problem::new("ACCOUNT_IN_USE", Category::Denied, message)
                .remedy("Connect as another account that may become root, and do it from there"),
        );
    }
    if !ends_passwords && !ends_root {
        return None;
    }
    let expired = survey.expired(cx);
    let mut why = Vec::new();
    for (account, settings) in &survey.accounts {
        let hindrance = match account.user.uid == 0 && ends_root {
            true => Some("disable_root_login".to_owned()),
            false if expired.contains(&account.user.name) => Some("the account has expired".to_owned()),
            false => hindrance(account, settings, ends_passwords, cx),
        };
        match hindrance {
            None => return None,
            Some(hindrance) => why.push(format!("{}: {hindrance}", account.user.name)),
        }
    }
    let more = why.len().saturating_sub(TOLD);
    why.truncate(TOLD);
    let more = if more > 0 { format!("; and {more} others") } else { String::new() };
    let (code, what) = match ends_passwords {
        true => ("NO_USABLE_KEY", "no key opens an account that may become root"),
        false => ("NO_OTHER_LOGIN", "nobody else could log in and become root"),
    };
    Some(
        Problem::new(code, Category::Denied, format!("{what}: {}{more}", why.join("; ")))
            .remedy("ssh_copy_id, or ssh_authorized_keys action=add, for an account that may become root"),
    )
}

/// True if the account in use is root.
fn is_root(survey: &Survey, cx: &Context) -> bool {
    let own = cx.account();
    let roots = survey.accounts.iter().filter(|(account, _)| account.user.uid == 0);
    own.is_err()
        || roots.into_iter().any(|(account, _)| own.as_deref().is_ok_and(|own| own == account.user.name))
}

/// The reason why it isn't sure that the account gets in afterwards.
fn hindrance(
    account: &Administrator,
    settings: &Settings,
    ends_passwords: bool,
    cx: &Context,
) -> Option<String> {
    let by_key = key_login::hindrance(account, settings, cx)?;
    (ends_passwords || !has_password(account, settings, cx)).then_some(by_key)
}

/// True if a password opens the account.
fn has_password(account: &Administrator, settings: &Settings, cx: &Context) -> bool {
    let methods = settings.get("AuthenticationMethods").unwrap_or("any");
    let is_password_alone = |methods: &str| methods == "any" || methods == "password";
    settings.is("PasswordAuthentication", "yes")
        && methods.split_whitespace().any(is_password_alone)
        && (account.user.uid != 0 || settings.is("PermitRootLogin", "yes"))
        && key_login::kept_out(account, settings).is_none()
        && logins::password(&account.user.name, cx) == Some(Password::Set)
}
