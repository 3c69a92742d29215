//! Protection against lockouts: no key is removed on which the way into the target may depend, in whatever order calls
//! come.
//!
//! - The key of the connection in use stays, in each account. Where a connection's key isn't known, all keys of its own
//!   account stay.
//! - A key of the controller is removed from an account only over a connection to that account by another key, which is
//!   in the same file and stays. So an account that one of the controller's keys opens always stays open for one of
//!   them, even where several connections change keys.
//! - The last key of the connection's own account stays. The last key of another account is removed with a warning.
//! - Only a line that opens the account from anywhere, at any time and for any command counts as one that stays.
//! - The key of a certificate authority stays: it isn't known whose certificates it has signed.

use linux_sysadmin_sdk::{Category, prelude::*, sshd};
use serde_json::Value;

use crate::account::Account;
use crate::host;
use linux_sysadmin_sdk::authorized_keys::{self, Authorized, Line};

/// The keys on which a way into the target may depend.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoginKeys {
    /// The fingerprint of the key by which the connection was authenticated.
    pub(crate) in_use: Option<String>,
    /// True where the target is reached over SSH, or a person is logged in over SSH on the server's machine.
    pub(crate) is_remote: bool,
    /// The fingerprints of the controller's keys.
    pub(crate) controllers: Vec<String>,
}

impl LoginKeys {
    pub(crate) fn find(cx: &Context) -> Result<Self> {
        let in_use = host::key_in_use();
        let is_remote = in_use.is_some() || sshd::client(cx).is_some() || is_connected();
        let listed = host::public_keys()?.into_iter().map(|key| key.fingerprint);
        // Keys that were used may have any name and place.
        let controllers = listed.chain(host::keys_used()).collect();
        Ok(Self { in_use, is_remote, controllers })
    }

    /// Whether this is the key of the connection.
    pub(crate) fn is_in_use(&self, fingerprint: &str) -> bool {
        self.in_use.as_deref() == Some(fingerprint)
    }
}

/// Whether the target is reached over SSH. It counts as reached over SSH where that isn't known.
fn is_connected() -> bool {
    let said = host::connection().ok().and_then(|said| serde_json::from_str::<Value>(&said).ok());
    said.is_none_or(|said| said.get("address").is_some())
}

/// Decides whether all lines of a key may be removed, and returns the warning for a person.
pub(crate) fn may_remove(
    fingerprint: &str,
    lines: &[Line<'_>],
    account: &Account,
    ways: &LoginKeys,
) -> Result<Option<String>> {
    let name = &account.name;
    let keys = || authorized_keys::keys(lines).map(|(_, found)| found);
    let is_it = |found: &&Authorized| found.key.fingerprint() == fingerprint;
    if keys().filter(is_it).any(Authorized::is_authority) {
        let why =
            "is an authority's key: who gets in by its certificates isn't known, and may be this connection";
        return Err(stays("AUTHORITY_STAYS", fingerprint, why).remedy("Remove its line by hand"));
    }
    if ways.is_in_use(fingerprint) {
        return Err(stays("KEY_IN_USE", fingerprint, "is the key of the connection in use").remedy(OTHERWISE));
    }
    if account.is_own && ways.is_remote && ways.in_use.is_none() {
        let why = format!(
            "opens {name}, the connection's own account, and may be its key: by which one it was authenticated isn't \
             known"
        );
        return Err(stays("KEY_IN_USE_UNKNOWN", fingerprint, &why).remedy(OTHERWISE));
    }
    // Another call may have removed the connection's key from the account since then, over another connection.
    let in_use_opens = account.is_own
        && keys().any(|found| found.opens_always() && ways.is_in_use(&found.key.fingerprint()));
    if !in_use_opens && ways.controllers.iter().any(|own| own == fingerprint) {
        let why = format!("is a key by which this server itself gets in as {name}");
        return Err(stays("KEY_OF_CONTROLLER", fingerprint, &why)
            .remedy(format!("Connect as {name} by another key first, and remove it over that connection")));
    }
    let opens = keys().filter(is_it).any(Authorized::opens);
    if !opens || keys().any(|found| found.opens_always() && !is_it(&found)) {
        return Ok(None);
    }
    if account.is_own {
        let why = format!("is the last key that is sure to open {name}, the account in use");
        return Err(stays("LAST_KEY", fingerprint, &why).remedy("Add another key first"));
    }
    Ok(Some(format!("it is the last key of {name}: afterwards no key is sure to open the account")))
}

/// The advice for a key that is in use.
const OTHERWISE: &str = "Connect by another key first: ssh_connect with identity_file";

fn stays(code: &str, fingerprint: &str, why: &str) -> Problem {
    Problem::new(code, Category::Denied, format!("{fingerprint} {why}; nothing was removed"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
