//! Who called which tool with what, and where it was to work: what every record of a call begins with.

use serde_json::{Map, Value};

use host_audit::{ModuleUsed, TargetUsed};
use host_base::sha256;
use host_target::{Facts, Target};
use host_text::redact::redact_value;

/// A call, as far as it is known before it is answered.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The client's W3C trace id, or one of our own.
    pub trace_id: String,
    /// As the client names itself; nobody has checked that.
    pub client: String,
    /// The version of MCP, or `cli`.
    pub protocol: String,
    /// The tool's name.
    pub tool: String,
    /// What the client called the tool, where that is an alias.
    pub called_as: Option<String>,
    /// The module that answers; none where none does.
    pub module: Option<ModuleUsed>,
    /// Where.
    pub target: Option<TargetUsed>,
    /// Without their secrets.
    pub arguments: Value,
    /// Of the arguments as they came.
    pub arguments_sha256: String,
}

impl Origin {
    /// Of a call that has just come.
    pub fn new(
        trace_id: String,
        client: String,
        protocol: String,
        tool: String,
        arguments: &Map<String, Value>,
    ) -> Self {
        let mut shown = Value::Object(arguments.clone());
        let arguments_sha256 = sha256::of(shown.to_string().as_bytes());
        redact_value(&mut shown);
        Self {
            trace_id,
            client,
            protocol,
            tool,
            called_as: None,
            module: None,
            target: None,
            arguments: shown,
            arguments_sha256,
        }
    }
}

/// Which machine, whatever name it goes by. `host_key` is that of the connection, where there is one.
pub fn target_used(target: &Target, facts: &Facts, host_key: Option<String>) -> TargetUsed {
    TargetUsed {
        name: target.name().to_owned(),
        account: facts.user.clone(),
        uid: Some(facts.uid),
        machine_id: facts.machine_id.clone(),
        hostname: Some(facts.hostname.clone()),
        host_key,
    }
}
