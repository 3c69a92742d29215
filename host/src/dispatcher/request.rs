//! What clients ask for, and what has become of it.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::aliases::Older;
use crate::running::{About, Running};
use host_base::problem::Problem;
use host_gate::Question;

/// What a client asks for.
#[derive(Clone)]
pub struct Request {
    /// The tool's name.
    pub tool: String,
    /// As the client gave them.
    pub arguments: Map<String, Value>,
    /// What of it was said in an older spelling, and is put right. Nothing, as it comes.
    pub older: Older,
    /// Who asks.
    pub caller: Caller,
    /// Whether this client confirms in a second call.
    pub two_step: bool,
    /// Of a call that is made again with an answer: which one, where that could be told, and what was answered.
    pub answered: Option<(Result<String, Problem>, host_gate::Answer)>,
}

impl Request {
    pub(super) fn about(&self, host: &str) -> About {
        let tool = host_text::redact::excerpt(&self.tool, 64);
        About { tool, host: host.to_owned(), agent_id: self.caller.agent_id.clone() }
    }
}

/// A call that has come.
pub struct Called {
    /// What has become of it.
    pub begun: Begun,
    /// What its answer says of the spelling, where that was an older one.
    pub note: Option<String>,
}

/// A call has begun.
pub enum Begun {
    /// It is on its way.
    Runs(Box<Running>),
    /// The same call waits for a person at a terminal.
    Waits(Arc<Question>),
}

/// Who asks, by their own word.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// Name and version.
    pub client: String,
    /// The protocol's version, where there is one.
    pub protocol: Option<String>,
    /// W3C's trace id, where the client follows its calls.
    pub trace_id: Option<String>,
    /// Whether its connection is a session, which has a current host.
    pub has_session: bool,
    /// Which of several that share a connection it is.
    pub agent_id: Option<String>,
}
