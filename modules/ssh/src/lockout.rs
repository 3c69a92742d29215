//! No key is removed that the way into the target may depend on, whatever the order of calls.
//!
//! - The key of the connection in use stays, in each account. Where a connection's key isn't known, so do all keys of
//!   its own account.
//! - A key that the controller has leaves an account only over a connection to that account by another key, which then
//!   stays. So of the controller's keys an account that had one keeps one: two connections can't shut each other out.
//! - The last key of the connection's own account stays; of another account it goes with a warning.
//! - An authority stays: whose certificates it has signed isn't known.

use linux_sysadmin_sdk::{Category, prelude::*};
use serde_json::Value;

use crate::account::Account;
use crate::authorized_keys::{self, Authorized, Line};
use crate::{host, sshd};

/// What is known of who gets in by which key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ways {
    /// Fingerprint of the key that the connection was authenticated by.
    pub(crate) in_use: Option<String>,
    /// There is a connection, or a person has come by one to where the server runs.
    pub(crate) is_remote: bool,
    /// Fingerprints of the keys that the controller has.
    pub(crate) controllers: Vec<String>,
}

impl Ways {
    pub(crate) fn find(cx: &Context) -> Result<Self> {
        let in_use = host::key_in_use();
        let is_remote = in_use.is_some() || sshd::client(cx).is_some() || is_connected();
        let controllers = host::public_keys()?.into_iter().map(|key| key.fingerprint).collect();
        Ok(Self { in_use, is_remote, controllers })
    }

    /// Whether the key of this fingerprint is the connection's.
    pub(crate) fn is_in_use(&self, fingerprint: &str) -> bool {
        self.in_use.as_deref() == Some(fingerprint)
    }
}

/// Whether the target is behind SSH. What can't be told is taken for it.
fn is_connected() -> bool {
    let said = host::connection().ok().and_then(|said| serde_json::from_str::<Value>(&said).ok());
    said.is_none_or(|said| said.get("address").is_some())
}

/// Whether all lines of a key may go. Yes comes with what a person should know.
pub(crate) fn may_remove(
    fingerprint: &str,
    lines: &[Line<'_>],
    account: &Account,
    ways: &Ways,
) -> Result<Option<String>> {
    let name = &account.name;
    let refused = |code: &str, message: String| {
        Err(Problem::new(code, Category::Denied, format!("{message}; nothing was removed")))
    };
    let with_another = "Connect by another key first: ssh_connect with identity_file";
    let of_key: Vec<&Authorized> = authorized_keys::keys(lines)
        .map(|(_, key)| key)
        .filter(|found| found.key.fingerprint() == fingerprint)
        .collect();
    if of_key.iter().any(|found| found.is_authority()) {
        return refused(
            "AUTHORITY_STAYS",
            format!("{fingerprint} is an authority's key: who gets in by its certificates isn't known, and may be this connection"),
        )
        .map_err(|problem| problem.remedy("Remove its line by hand"));
    }
    if ways.is_in_use(fingerprint) {
        return refused("KEY_IN_USE", format!("{fingerprint} is the key of the connection in use"))
            .map_err(|problem| problem.remedy(with_another));
    }
    if account.is_own && ways.is_remote && ways.in_use.is_none() {
        return refused(
            "KEY_IN_USE_UNKNOWN",
            format!("{name} is the connection's own account, and it isn't known by which key the connection was authenticated: any may be it"),
        )
        .map_err(|problem| problem.remedy(with_another));
    }
    let stays_in = account.is_own && ways.in_use.is_some();
    if !stays_in && ways.controllers.iter().any(|own| own == fingerprint) {
        return refused(
            "KEY_OF_CONTROLLER",
            format!("{fingerprint} is a key that this server itself can get in with as {name}"),
        )
        .map_err(|problem| {
            problem.remedy(format!("Connect as {name} by another key first, and remove it then"))
        });
    }
    let others = authorized_keys::keys(lines)
        .filter(|(_, found)| found.opens() && found.key.fingerprint() != fingerprint);
    let is_last = of_key.iter().any(|found| found.opens()) && others.count() == 0;
    match (is_last, account.is_own) {
        (false, _) => Ok(None),
        (true, true) => refused(
            "LAST_KEY",
            format!("{fingerprint} is the last key that opens {name}, the account in use"),
        )
        .map_err(|problem| problem.remedy("Add another key first")),
        (true, false) => {
            Ok(Some(format!("it is the last key of {name}: afterwards no key opens the account")))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
