//! The question and its answer in plain JSON-RPC, for each way in which a client can be asked.

use serde_json::{Value, json};

use crate::{Client, Sandbox};

/// A way in which a client can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The call's result says that input is required.
    InputRequired,
    /// The server sends a request of its own.
    Elicitation,
    /// The client isn't asked, and calls a second time.
    TwoStep,
}

/// A call that waits for a yes or a no.
#[derive(Clone, Debug)]
pub struct Asked {
    way: Way,
    params: Value,
    /// The id of the call's request.
    pub call: i64,
    /// The call's result, or the server's request.
    pub message: Value,
}

impl Way {
    /// All ways.
    pub const ALL: [Self; 3] = [Self::InputRequired, Self::Elicitation, Self::TwoStep];

    /// The protocol version of a client that is asked in this way, and the capabilities that it declares.
    pub fn client(self) -> (&'static str, Value) {
        match self {
            Self::InputRequired => ("2026-07-28", json!({"elicitation": {"form": {}}})),
            Self::Elicitation => ("2025-06-18", json!({"elicitation": {}})),
            Self::TwoStep => ("2025-06-18", json!({})),
        }
    }

    /// The member of the record that says who has decided.
    pub fn decided_by(self) -> &'static str {
        if self == Self::TwoStep { "client-asserted" } else { "elicitation" }
    }
}

impl Asked {
    /// The text for a person. In two steps no text is sent.
    pub fn text(&self) -> &str {
        let message = match self.way {
            Way::InputRequired => &self.message["inputRequests"]["confirm"]["params"]["message"],
            Way::Elicitation => &self.message["params"]["message"],
            Way::TwoStep => panic!("there is no text in two steps"),
        };
        message.as_str().unwrap_or_else(|| panic!("no question: {}", self.message))
    }

    /// The state of an input-required result, which the client sends back.
    pub fn state(&self) -> &str {
        self.message["requestState"].as_str().unwrap_or_else(|| panic!("no state: {}", self.message))
    }

    /// The parameters of the repeated call, with an answer.
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
    /// Starts a server for a client that can be asked in this way.
    pub async fn serve(&self, way: Way) -> Client {
        let (version, capabilities) = way.client();
        self.serve_for(version, capabilities).await
    }

    /// Starts a server for a client of this protocol version with these capabilities.
    pub async fn serve_for(&self, version: &str, capabilities: Value) -> Client {
        let mut client = self.start();
        client.can(capabilities);
        client.initialize(version).await;
        client
    }
}

impl Client {
    /// Calls a tool. The client must be asked, in this way and in no other.
    pub async fn is_asked(&mut self, way: Way, tool: &str, arguments: Value) -> Asked {
        match self.may_be_asked(way, tool, arguments).await {
            Ok(asked) => asked,
            Err(message) => panic!("not asked: {message}"),
        }
    }

    /// Calls a tool; gives the question where the client is asked in this way, and else the envelope.
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

    /// Calls a tool and says yes where the client is asked in this way; gives the envelope.
    pub async fn agrees(&mut self, way: Way, tool: &str, arguments: Value) -> Value {
        match self.may_be_asked(way, tool, arguments).await {
            Ok(asked) => self.answers(&asked, "accept").await,
            Err(envelope) => envelope,
        }
    }

    /// Answers with `accept`, `decline` or `cancel`; gives the call's envelope. In two steps the only answer is `accept`.
    pub async fn answers(&mut self, asked: &Asked, action: &str) -> Value {
        let id = self.begins_to_answer(asked, action).await;
        self.envelope_of(id).await
    }

    /// Answers without waiting; gives the id of the request that the server will answer.
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

    /// Answers the server's own request by a `result` or an `error`.
    pub async fn responds(&mut self, asked: &Asked, kind: &str, what: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": asked.message["id"], kind: what})).await;
    }

    /// Waits for the answer to a call; gives its envelope.
    pub async fn envelope_of(&mut self, call: i64) -> Value {
        let answer = self.answer(call).await;
        let envelope = &answer["result"]["structuredContent"];
        assert!(envelope.is_object(), "no envelope: {answer}");
        envelope.clone()
    }
}
