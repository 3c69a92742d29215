//! What modules that come with the host may reach besides the target: the session, the connections, the jobs. Whoever calls a
//! module provides them.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::bindings::sysadmin::module::target_control;
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
