//! Each way in which a client is asked, said as plain JSON-RPC: the question, and its answer.

use serde_json::{Value, json};

use crate::{Client, Sandbox};

/// How a client can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By an input-required result.
    InputRequired,
    /// By a request of the server's own.
    Elicitation,
    /// Not at all: it calls again.
    TwoStep,
}

/// A call that waits for a yes or a no.
#[derive(Clone, Debug)]
pub struct Asked {
    way: Way,
    params: Value,
    /// The request that it was.
    pub call: i64,
    /// The result, or the server's request.
    pub message: Value,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::InputRequired, Self::Elicitation, Self::TwoStep];

    /// Of which protocol version a client is that is asked so, and what it says that it can do.
    pub fn client(self) -> (&'static str, Value) {
        match self {
            Self::InputRequired => ("2026-07-28", json!({"elicitation": {"form": {}}})),
            Self::Elicitation => ("2025-06-18", json!({"elicitation": {}})),
            Self::TwoStep => ("2025-06-18", json!({})),
        }
    }

    /// Who has decided, on record.
    pub fn decided_by(self) -> &'static str {
        if self == Self::TwoStep { "client-asserted" } else { "elicitation" }
    }
}

impl Asked {
    /// What a person reads. In two steps nobody is sent a text.
    pub fn text(&self) -> &str {
        let message = match self.way {
            Way::InputRequired => &self.message["inputRequests"]["confirm"]["params"]["message"],
            Way::Elicitation => &self.message["params"]["message"],
            Way::TwoStep => panic!("there is no text in two steps"),
        };
        message.as_str().unwrap_or_else(|| panic!("no question: {}", self.message))
    }

    /// What the client brings back of an input-required result.
    pub fn state(&self) -> &str {
        self.message["requestState"].as_str().unwrap_or_else(|| panic!("no state: {}", self.message))
    }

    /// The parameters of the call again, with an answer.
    pub fn answered(&self, action: &str) -> Value {
        let mut params = self.params.clone();
        match self.way {
            Way::InputRequired => {
                params["requestState"] = self.state().into();
                params["inputResponses"] = json!({"confirm": {"action": action, "content": {}}});
            }
            Way::TwoStep if action == "accept" => params["arguments"]["confirmed"] = true.into(),
            _ => {}
        }
        params
    }
}

impl Sandbox {
    /// A server for a client that can be asked in this way.
    pub async fn serve(&self, way: Way) -> Client {
        let (version, capabilities) = way.client();
        self.serve_for(version, capabilities).await
    }

    /// A server for a client of this protocol version that can do this.
    pub async fn serve_for(&self, version: &str, capabilities: Value) -> Client {
        let mut client = self.start();
        client.can(capabilities);
        client.initialize(version).await;
        client
    }
}

impl Client {
    /// Calls a tool, and is asked in this way and in no other.
    pub async fn is_asked(&mut self, way: Way, tool: &str, arguments: Value) -> Asked {
        match self.may_be_asked(way, tool, arguments).await {
            Ok(asked) => asked,
            Err(message) => panic!("not asked: {message}"),
        }
    }

    /// Calls a tool, and is asked in this way; else gives the envelope.
    pub async fn may_be_asked(&mut self, way: Way, tool: &str, arguments: Value) -> Result<Asked, Value> {
        let params = json!({"name": tool, "arguments": arguments});
        let call = self.ask("tools/call", params.clone()).await;
        let message = self
            .receive_where(|message| message["id"] == call || message["method"] == "elicitation/create")
            .await;
        let envelope = &message["result"]["structuredContent"];
        let message = match way {
            Way::InputRequired if message["result"]["resultType"] == "input_required" => {
                message["result"].clone()
            }
            Way::Elicitation if message["method"] == "elicitation/create" => message,
            Way::TwoStep if envelope["status"] == "confirmation_required" => envelope.clone(),
            _ if envelope.is_object() => return Err(envelope.clone()),
            _ => panic!("neither a question in this way nor an envelope: {message}"),
        };
        Ok(Asked { way, params, call, message })
    }

    /// Calls a tool and says yes, where it asks in this way; gives the envelope.
    pub async fn agrees(&mut self, way: Way, tool: &str, arguments: Value) -> Value {
        match self.may_be_asked(way, tool, arguments).await {
            Ok(asked) => self.answers(&asked, "accept").await,
            Err(envelope) => envelope,
        }
    }

    /// Answers and gives the call's envelope: `accept`, `decline` or `cancel`. In two steps only the first can be said.
    pub async fn answers(&mut self, asked: &Asked, action: &str) -> Value {
        let id = self.begins_to_answer(asked, action).await;
        self.envelope_of(id).await
    }

    /// Answers and doesn't wait; gives the request that will be answered.
    pub async fn begins_to_answer(&mut self, asked: &Asked, action: &str) -> i64 {
        match asked.way {
            Way::Elicitation => {
                let result = json!({"action": action, "content": {}});
                self.responds(asked, "result", result).await;
                asked.call
            }
            _ => self.ask("tools/call", asked.answered(action)).await,
        }
    }

    /// Answers the server's own request: a `result` or an `error`.
    pub async fn responds(&mut self, asked: &Asked, kind: &str, what: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": asked.message["id"], kind: what})).await;
    }

    /// The envelope of a call's answer.
    pub async fn envelope_of(&mut self, call: i64) -> Value {
        let answer = self.answer(call).await;
        let envelope = &answer["result"]["structuredContent"];
        assert!(envelope.is_object(), "no envelope: {answer}");
        envelope.clone()
    }
}
