//! The agent: keys that this program never sees, and signatures by them.

use std::path::Path;
use std::time::Duration;

use russh::keys::agent::client::AgentClient;
use russh::keys::agent::{AgentIdentity, AgentSessionBinding};
use russh::keys::{Error, HashAlg};
use tokio::net::UnixStream;

/// How long one answer may take: it may be a person who is asked for a touch or a word.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Agent(AgentClient<UnixStream>);

impl Agent {
    /// None where nobody answers at that socket: to have no agent is no error.
    pub(crate) async fn connect(socket: &Path, session: Option<&AgentSessionBinding>) -> Option<Self> {
        let mut agent = within(AgentClient::connect_uds(socket)).await.ok()?;
        if let Some(session) = session {
            // Without it the agent keeps back the keys that it was told to use for certain hosts only. One that is
            // too old to know of that says no.
            let _ = within(agent.bind_session(session, false)).await;
        }
        Some(Self(agent))
    }

    pub(crate) async fn identities(&mut self) -> Result<Vec<AgentIdentity>, String> {
        within(self.0.request_identities()).await
    }

    /// `data`, with its signature behind it.
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
