//! Decides whether two calls are the same, so that an answer reaches the call that it is for.

use serde_json::{Map, Value};

use host_base::sha256;

/// The identity of a call: the tool, the arguments without `confirmed`, the agent, and the hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallKey {
    /// The tool's name.
    pub tool: String,
    /// SHA-256 of everything else.
    digest: String,
}

impl CallKey {
    /// The key of a call by this agent on these hosts. `confirmed`, `agent_id` and `host` have been taken out of the
    /// arguments. A member that is null counts as left out.
    pub fn new<'a>(
        tool: &str,
        arguments: &Map<String, Value>,
        agent_id: Option<&str>,
        hosts: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut arguments = arguments.clone();
        arguments.retain(|_, value| !value.is_null());
        let hosts: Vec<&str> = hosts.into_iter().collect();
        let call = serde_json::json!({"arguments": arguments, "agent_id": agent_id, "hosts": hosts});
        let bytes = host_audit::canonical(&call).unwrap_or_else(|_| call.to_string().into_bytes());
        Self { tool: tool.to_owned(), digest: sha256::of(&bytes) }
    }
}
