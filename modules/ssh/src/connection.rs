//! The host that the tools for connections take, and the reading of the host program's answers.

use linux_sysadmin_sdk::{Category, prelude::*};
use serde::de::DeserializeOwned;

use crate::host::Given;

/// A host, and settings that precede its configuration.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct HostArgs {
    /// Alias, name or address
    host: String,
    /// Default 22
    #[schemars(range(min = 1))]
    port: Option<u16>,
    /// Account there
    user: Option<String>,
    /// On the server's machine
    identity_file: Option<String>,
}

impl HostArgs {
    pub(crate) fn given(self) -> (String, Given) {
        let Self { host, port, user, identity_file } = self;
        (host, Given { port, user, identity_file })
    }
}

/// Reads an answer. Members that a later version of the host adds are ignored.
pub(crate) fn typed<T: DeserializeOwned>(said: &str) -> Result<T> {
    serde_json::from_str(said).map_err(|error| {
        Problem::new(
            "INVALID_ANSWER",
            Category::Internal,
            format!("what the host says of a connection: {error}"),
        )
    })
}
