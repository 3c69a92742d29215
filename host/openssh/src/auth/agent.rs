//! The SSH agent. It holds keys that this program never sees, and signs with them.

use std::path::Path;
use std::time::Duration;

use russh::keys::agent::client::AgentClient;
use russh::keys::agent::{AgentIdentity, AgentSessionBinding};
use russh::keys::{Error, HashAlg};
use tokio::net::UnixStream;

/// The time limit of one answer. The agent may ask a person for a touch or a word.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Agent(AgentClient<UnixStream>);

impl Agent {
    /// Connects to the agent. Returns none where nobody answers at that socket, because having no agent isn't an
    /// error.
    pub(crate) async fn connect(socket: &Path, session: Option<&AgentSessionBinding>) -> Option<Self> {
        let mut agent = within(AgentClient::connect_uds(socket)).await.ok()?;
        if let Some(session) = session {
            // Without this, the agent keeps back the keys that it may use for certain hosts only. An agent that is too
            // old to know it declines.
            let _ = within(agent.bind_session(session, false)).await;
        }
        Some(Self(agent))
    }

    pub(crate) async fn identities(&mut self) -> Result<Vec<AgentIdentity>, String> {
        within(self.0.request_identities()).await
    }

    /// Returns `data` with its signature after it.
    pub(super) async fn sign(
        &mut self,
        identity: &AgentIdentity,
        hash: Option<HashAlg>,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, String> {
        within(self.0.sign_request(identity, hash, data)).await
    }
}

async fn within<T>(answer: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, answer).await {
        Err(_) => Err(format!("the agent did not answer within {} s", PATIENCE.as_secs())),
        Ok(Err(Error::AgentFailure)) => Err("the agent declined".to_owned()),
        Ok(answer) => answer.map_err(|error| format!("the agent could not be asked: {error}")),
    }
}
