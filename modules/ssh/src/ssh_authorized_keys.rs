//! `ssh_authorized_keys`: lists, adds and removes the keys that open an account of the target.

use linux_sysadmin_sdk::prelude::*;

use crate::key_argument::{must_be_fingerprint, new_key, read_key};
use crate::keys_file::{Access, KeysFile};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    List,
    Add,
    Remove,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct KeysArgs {
    /// Default: list
    action: Option<Action>,
    /// Default: the connection's
    user: Option<String>,
    /// Whole public key line
    key: Option<String>,
    /// Instead of key, to remove
    fingerprint: Option<String>,
}

pub(crate) fn ssh_authorized_keys(args: KeysArgs, cx: &Context) -> Result<Noted<Access>> {
    let given = (args.key.as_deref(), args.fingerprint.as_deref());
    match (args.action.unwrap_or(Action::List), given) {
        (Action::List, (None, None)) => Ok(KeysFile::open(args.user.as_deref(), cx)?.list()),
        (Action::List, _) => Err(Problem::validation(
            "INVALID_ARGUMENTS",
            "a list takes neither key nor fingerprint: expected action add or remove",
        )),
        (Action::Add, (Some(key), None)) => {
            let key = new_key(key)?;
            KeysFile::open(args.user.as_deref(), cx)?.add(&key, cx)
        }
        (Action::Add, _) => Err(Problem::validation(
            "INVALID_ARGUMENTS",
            "to add takes a whole public key line as key, and no fingerprint",
        )),
        (Action::Remove, (Some(key), None)) => {
            let fingerprint = read_key(key)?.key.fingerprint();
            KeysFile::open(args.user.as_deref(), cx)?.remove(&fingerprint, cx)
        }
        (Action::Remove, (None, Some(fingerprint))) => {
            must_be_fingerprint(fingerprint)?;
            KeysFile::open(args.user.as_deref(), cx)?.remove(fingerprint, cx)
        }
        (Action::Remove, _) => Err(Problem::validation(
            "INVALID_ARGUMENTS",
            "to remove takes either key, a whole public key line, or fingerprint, as SHA256:…",
        )),
    }
}
