//! `ssh_copy_id`: lets a key of the server open an account of the target.

use linux_sysadmin_sdk::prelude::*;

use crate::host;
use crate::key_argument::{chosen, new_key};
use crate::keys_file::{Access, KeysFile};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CopyArgs {
    /// Path of the server's .pub, or fingerprint
    key: Option<String>,
    /// Default: the connection's
    user: Option<String>,
}

pub(crate) fn ssh_copy_id(args: CopyArgs, cx: &Context) -> Result<Noted<Access>> {
    let key = chosen(host::public_keys()?, args.key.as_deref())?;
    let key = new_key(&key.line)?;
    KeysFile::open(args.user.as_deref(), cx)?.add(&key, cx)
}
