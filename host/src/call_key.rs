//! What makes two calls the same.

use serde_json::{Map, Value};

use host_base::sha256;

/// What makes two calls the same: the tool, and its arguments but for `confirmed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallKey {
    /// The tool's name.
    pub tool: String,
    arguments: String,
}

impl CallKey {
    /// Of a call whose `confirmed`, `agent_id` and `host` have been taken out, by this agent, on these machines. A member
    /// that is null is as good as left out.
    pub fn new<'a>(
        tool: &str,
        arguments: &Map<String, Value>,
        agent_id: Option<&str>,
        hosts: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut said = arguments.clone();
        said.retain(|_, value| !value.is_null());
        let hosts: Vec<&str> = hosts.into_iter().collect();
        let said = serde_json::json!({"arguments": said, "agent_id": agent_id, "hosts": hosts});
        let bytes = host_audit::canonical(&said).unwrap_or_else(|_| said.to_string().into_bytes());
        Self { tool: tool.to_owned(), arguments: sha256::of(&bytes) }
    }
}
