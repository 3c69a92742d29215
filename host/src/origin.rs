//! Who called which tool with what, and where it was to work: what every record of a call begins with.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::gate::sha256;
use crate::redact::redact_value;
use crate::target::{Facts, Target};

/// A call, as far as it is known before it is answered.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The client's W3C trace id, or one of our own.
    pub trace_id: String,
    /// As the client names itself; nobody has checked that.
    pub client: String,
    /// The protocol's version.
    pub protocol: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// The module that answers; none where none does.
    pub module: Option<ModuleId>,
    /// Where.
    pub target: Option<TargetId>,
    /// Without their secrets.
    pub arguments: Value,
    /// Of the arguments as they came.
    pub arguments_sha256: String,
}

/// Which module, to the byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModuleId {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Of its component.
    pub sha256: String,
}

/// Which machine, whatever name it goes by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TargetId {
    /// As in the envelope.
    pub name: String,
    /// The account that it is reached as.
    pub account: String,
    /// That account's number.
    pub uid: u32,
    /// machine-id(5), where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<String>,
    /// The machine's own name.
    pub hostname: String,
}

impl TargetId {
    /// Of a target whose facts are known.
    pub fn new(target: &Target, facts: &Facts) -> Self {
        Self {
            name: target.name().to_owned(),
            account: facts.user.clone(),
            uid: facts.uid,
            machine_id: facts.machine_id.clone(),
            hostname: facts.hostname.clone(),
        }
    }
}

impl Origin {
    /// Of a call that has just come.
    pub fn new(
        trace_id: String,
        client: String,
        protocol: Option<String>,
        tool: String,
        arguments: &Map<String, Value>,
    ) -> Self {
        let mut shown = Value::Object(arguments.clone());
        let arguments_sha256 = sha256(shown.to_string().as_bytes());
        redact_value(&mut shown);
        Self {
            trace_id,
            client,
            protocol,
            tool,
            module: None,
            target: None,
            arguments: shown,
            arguments_sha256,
        }
    }
}
