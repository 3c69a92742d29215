//! Requests of clients, and the calls that the dispatcher makes of them.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::ClientTools;
use crate::arguments::aliases::AppliedAliases;
use crate::calls::call_handle::{CallHandle, CallInfo};
use host_base::problem::Problem;
use host_gate::Question;

/// A request to call a tool.
#[derive(Clone)]
pub struct Request {
    /// The tool's name.
    pub tool: String,
    /// The arguments as the client gave them.
    pub arguments: Map<String, Value>,
    /// The older names that were replaced in the request. Empty in a request that has just come.
    pub aliases: AppliedAliases,
    /// The caller.
    pub caller: Caller,
    /// Whether this client confirms a call by making it a second time.
    pub two_step: bool,
    /// The id of the question, where it is known, and its answer, in a call that is made again with the answer.
    pub answered: Option<(Result<String, Problem>, host_gate::Answer)>,
}

impl Request {
    pub(super) fn info(&self, host: &str) -> CallInfo {
        let tool = host_text::redact::excerpt(&self.tool, 64);
        CallInfo { tool, host: host.to_owned(), agent_id: self.caller.agent_id.clone() }
    }
}

/// The dispatcher's answer to a request.
pub struct Dispatched {
    /// The call.
    pub call: DispatchedCall,
    /// A note for the call's envelope about older names in the request.
    pub note: Option<String>,
}

/// The call of a request.
pub enum DispatchedCall {
    /// The call runs.
    Runs(Box<CallHandle>),
    /// The same call waits already for a person at a terminal.
    Waits(Arc<Question>),
}

/// The caller of a tool, as the client describes it. Nobody has verified it.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The client's name and version.
    pub client: String,
    /// The version of the protocol, where there is one.
    pub protocol: Option<String>,
    /// The trace id of W3C Trace Context, where the client traces its calls.
    pub trace_id: Option<String>,
    /// Whether the client's connection is a session, which has a current host.
    pub has_session: bool,
    /// The agent that asks, where several agents share a connection.
    pub agent_id: Option<String>,
    /// The client's list of tools, where it has one.
    pub tools: Option<Arc<ClientTools>>,
}
