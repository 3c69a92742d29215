//! What only modules that come with the host may ask of it: the session, the connections, the jobs.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::bindings::sysadmin::module::{jobs, session, target_control};
use super::imports::Answer;
use super::limits::Stopped;
use super::store::State;
use host_base::problem::Problem;
use host_target::Given;

/// What a system module may reach in one call: what it doesn't import is none.
#[derive(Clone, Default)]
pub struct Reach {
    /// For the session interface.
    pub session: Option<Arc<Session>>,
    /// For the target-control interface.
    pub connections: Option<Arc<dyn Connections>>,
    /// For the jobs interface.
    pub jobs: Option<Arc<dyn Jobs>>,
}

/// What the session interface tells.
pub struct Session {
    /// A JSON object, documented in `wit/session.wit`.
    pub snapshot: String,
    /// The same, of facts that are gathered anew.
    pub refresh: Box<dyn Fn() -> BoxFuture<'static, Result<String, Problem>> + Send + Sync>,
    /// Found out on the target where it is asked for.
    pub sudoers: Box<dyn Fn() -> BoxFuture<'static, Fragments> + Send + Sync>,
}

/// Modules, each with what sudo must allow it.
type Fragments = Vec<(String, String)>;

/// The target-control interface, of one call: JSON as `wit/target-control.wit` documents it.
pub trait Connections: Send + Sync {
    /// Connects.
    fn connect(&self, host: String, given: Given) -> BoxFuture<'_, Result<String, Problem>>;
    /// Ends a connection.
    fn disconnect(&self, host: Option<String>) -> BoxFuture<'_, Result<String, Problem>>;
    /// Whether calls can name it as their host.
    fn is_host(&self, name: &str) -> bool;
    /// Of the connection to the call's target.
    fn connection(&self) -> BoxFuture<'_, Result<String, Problem>>;
    /// Whether one can be had.
    fn test(&self, host: String, given: Given) -> BoxFuture<'_, Result<String, Problem>>;
    /// The account's own.
    fn public_keys(&self) -> BoxFuture<'_, Result<Vec<PublicKey>, Problem>>;
    /// SHA-256 fingerprints of those by which any host was reached.
    fn keys_used(&self) -> Vec<String>;
    /// SHA-256 fingerprint of the one that the target has taken.
    fn key_in_use(&self) -> BoxFuture<'_, Option<String>>;
}

/// A public key of the account that the server runs as.
pub type PublicKey = target_control::PublicKey;

/// The jobs interface: JSON as `wit/jobs.wit` documents it.
pub trait Jobs: Send + Sync {
    /// All, or an agent's.
    fn list(&self, agent_id: Option<&str>) -> String;
    /// How far one is, waited for at most so many seconds.
    fn output(&self, id: String, offset: u64, wait_seconds: u32) -> BoxFuture<'_, Result<String, Problem>>;
    /// Ends one.
    fn cancel(&self, id: String, wait_seconds: u32) -> BoxFuture<'_, Result<String, Problem>>;
}

fn missing() -> wasmtime::Error {
    Stopped::NoImportsWhileDescribing.into()
}

impl session::Host for State {
    async fn snapshot(&mut self) -> wasmtime::Result<String> {
        let call = self.call()?;
        Ok(call.reach.session.as_ref().ok_or_else(missing)?.snapshot.clone())
    }

    async fn refresh(&mut self) -> wasmtime::Result<Answer<String>> {
        let call = self.call()?;
        let session = call.reach.session.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest((session.refresh)().await))
    }

    async fn sudoers_reference(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        let call = self.call()?;
        Ok((call.reach.session.as_ref().ok_or_else(missing)?.sudoers)().await)
    }
}

fn given(given: target_control::Given) -> Given {
    let target_control::Given { port, user, identity_file } = given;
    Given { hostname: None, port, user, identity_file: identity_file.map(PathBuf::from) }
}

impl target_control::Host for State {
    async fn connect(
        &mut self,
        host: String,
        over: target_control::Given,
    ) -> wasmtime::Result<Answer<String>> {
        // A person may have to be asked, who may take long.
        let wall_time = self.wall_time.clone();
        let _still = wall_time.stands_still();
        let call = self.call()?;
        let connections = call.reach.connections.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest(connections.connect(host, given(over)).await))
    }

    async fn disconnect(&mut self, host: Option<String>) -> wasmtime::Result<Answer<String>> {
        let call = self.call()?;
        let connections = call.reach.connections.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest(connections.disconnect(host).await))
    }

    async fn is_host(&mut self, name: String) -> wasmtime::Result<bool> {
        let call = self.call()?;
        Ok(call.reach.connections.as_ref().ok_or_else(missing)?.is_host(&name))
    }

    async fn connection(&mut self) -> wasmtime::Result<Answer<String>> {
        let call = self.call()?;
        let connections = call.reach.connections.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest(connections.connection().await))
    }

    async fn test(&mut self, host: String, over: target_control::Given) -> wasmtime::Result<Answer<String>> {
        let wall_time = self.wall_time.clone();
        let _still = wall_time.stands_still();
        let call = self.call()?;
        let connections = call.reach.connections.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest(connections.test(host, given(over)).await))
    }

    async fn public_keys(&mut self) -> wasmtime::Result<Answer<Vec<PublicKey>>> {
        let call = self.call()?;
        let connections = call.reach.connections.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest(connections.public_keys().await))
    }

    async fn keys_used(&mut self) -> wasmtime::Result<Vec<String>> {
        let call = self.call()?;
        Ok(call.reach.connections.as_ref().ok_or_else(missing)?.keys_used())
    }

    async fn key_in_use(&mut self) -> wasmtime::Result<Option<String>> {
        let call = self.call()?;
        Ok(call.reach.connections.as_ref().ok_or_else(missing)?.key_in_use().await)
    }
}

impl jobs::Host for State {
    async fn list(&mut self, agent_id: Option<String>) -> wasmtime::Result<String> {
        let call = self.call()?;
        Ok(call.reach.jobs.as_ref().ok_or_else(missing)?.list(agent_id.as_deref()))
    }

    async fn output(
        &mut self,
        id: String,
        offset: u64,
        wait_seconds: u32,
    ) -> wasmtime::Result<Answer<String>> {
        let call = self.call()?;
        let jobs = call.reach.jobs.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest(jobs.output(id, offset, wait_seconds).await))
    }

    async fn cancel(&mut self, id: String, wait_seconds: u32) -> wasmtime::Result<Answer<String>> {
        let call = self.call()?;
        let jobs = call.reach.jobs.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest(jobs.cancel(id, wait_seconds).await))
    }
}
