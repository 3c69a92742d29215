//! The caller, the tool, the arguments and the target of a call. Every record of a call begins with them.

use serde_json::{Map, Value};

use host_audit::{ModuleUsed, TargetUsed};
use host_base::sha256;
use host_target::{Facts, Target};
use host_text::redact::redact_value;

/// A call, as far as it is known before it is answered.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The client's W3C trace id, or one that the host made.
    pub trace_id: String,
    /// The name that the client gives itself. Nobody has checked it.
    pub client: String,
    /// The version of MCP, or `cli`.
    pub protocol: String,
    /// The tool's name.
    pub tool: String,
    /// The alias by which the client called the tool, if it used one.
    pub called_as: Option<String>,
    /// The module that calls. None where the client does.
    pub called_by: Option<ModuleUsed>,
    /// The module that answers. None where no module does.
    pub module: Option<ModuleUsed>,
    /// The machine that the call is for.
    pub target: Option<TargetUsed>,
    /// The arguments without their secrets.
    pub arguments: Value,
    /// The SHA-256 of the arguments as they came.
    pub arguments_sha256: String,
}

impl Origin {
    /// The origin of a new call.
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
            called_by: None,
            module: None,
            target: None,
            arguments: shown,
            arguments_sha256,
        }
    }
}

/// The identity of a machine for the audit log. `host_key` is the key of the connection, where there is one.
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
