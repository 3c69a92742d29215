//! `ssh_key_list`: the keys of the account that the server runs as.

use linux_sysadmin_sdk::authorized_keys::public_key;
use linux_sysadmin_sdk::prelude::*;

use crate::host::{self, PublicKey};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListArgs {
    /// Whole public lines
    #[serde(default)]
    lines: bool,
}

/// A key of the controller.
#[derive(Debug, Serialize)]
pub(crate) struct Item {
    /// The path; a key that only the agent has has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    algorithm: String,
    bits: u32,
    fingerprint: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    comment: String,
    has_private: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    encrypted: Option<bool>,
    in_agent: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
}

pub(crate) fn ssh_key_list(args: ListArgs, _: &Context) -> Result<Listing<Item>> {
    let item = |key: PublicKey| Item {
        findings: findings(&key),
        line: args.lines.then_some(key.line),
        path: key.path,
        algorithm: key.algorithm,
        bits: key.bits,
        fingerprint: key.fingerprint,
        comment: key.comment,
        has_private: key.has_private,
        encrypted: key.encrypted,
        in_agent: key.in_agent,
    };
    Ok(host::public_keys()?.into_iter().map(item).collect::<Vec<_>>().into())
}

fn findings(key: &PublicKey) -> Vec<String> {
    let mut findings: Vec<String> =
        public_key::finding(&key.algorithm, key.bits.try_into().unwrap_or(usize::MAX)).into_iter().collect();
    if let Some(mode) = key.mode.filter(|mode| mode & 0o077 != 0) {
        findings.push(format!(
            "others may read its private half (mode {:04o}): ssh won't use it, expected 0600",
            mode & 0o7777
        ));
    }
    // The file of a security key is of no use without the device.
    if key.encrypted == Some(false) && !key.algorithm.starts_with("sk-") {
        findings.push("its private half has no passphrase".to_owned());
    }
    findings
}
