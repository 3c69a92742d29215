//! The services that the host's own modules may use besides the target: the session, the connections and the jobs. The
//! caller of a module provides them.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::bindings::sysadmin::module::{session, target_control};
use host_base::problem::Problem;
use host_target::SshOptions;

/// The services of one call. A service that the module doesn't import is none.
#[derive(Clone, Default)]
pub struct SystemServices {
    /// The service behind the session interface.
    pub session: Option<Arc<dyn SessionService>>,
    /// The service behind the target-control interface.
    pub connections: Option<Arc<dyn ConnectionService>>,
    /// The service behind the jobs interface.
    pub jobs: Option<Arc<dyn JobService>>,
}

/// The session interface for one call. Its snapshots are JSON, see `wit/session.wit`.
pub trait SessionService: Send + Sync {
    /// The server and the target as they are known.
    fn snapshot(&self) -> BoxFuture<'_, String>;
    /// The same with facts that are gathered anew.
    fn refresh(&self) -> BoxFuture<'_, Result<String, Problem>>;
    /// The sudoers fragment of the module of this name, which is found out on the target.
    fn sudoers(&self, module: String) -> BoxFuture<'_, Option<String>>;
    /// All tools, in the order of their names.
    fn tools(&self) -> Vec<ListedTool>;
    /// Adds tools to the calling client's list. Gives the names of those that were not in it.
    fn list_tools(&self, names: Vec<String>) -> Vec<String>;
}

/// A tool as clients see it.
pub type ListedTool = session::ListedTool;

/// The target-control interface for one call. Its results are JSON, see `wit/target-control.wit`.
pub trait ConnectionService: Send + Sync {
    /// Connects to a host.
    fn connect(&self, host: String, given: SshOptions) -> BoxFuture<'_, Result<String, Problem>>;
    /// Ends a connection.
    fn disconnect(&self, host: Option<String>) -> BoxFuture<'_, Result<String, Problem>>;
    /// Whether calls can name this host.
    fn is_host(&self, name: &str) -> bool;
    /// The connection to the call's target.
    fn connection(&self) -> BoxFuture<'_, Result<String, Problem>>;
    /// Tests whether a connection can be made.
    fn test(&self, host: String, given: SshOptions) -> BoxFuture<'_, Result<String, Problem>>;
    /// The public keys of the account.
    fn public_keys(&self) -> BoxFuture<'_, Result<Vec<PublicKey>, Problem>>;
    /// The SHA-256 fingerprints of the keys by which any host was reached.
    fn keys_used(&self) -> Vec<String>;
    /// The SHA-256 fingerprint of the key that the target has accepted.
    fn key_in_use(&self) -> BoxFuture<'_, Option<String>>;
}

/// A public key of the account that the server runs as.
pub type PublicKey = target_control::PublicKey;

/// The jobs interface. Its results are JSON, see `wit/jobs.wit`.
pub trait JobService: Send + Sync {
    /// All jobs, or those of one agent.
    fn list(&self, agent_id: Option<&str>) -> String;
    /// The state and new output of a job. It waits for at most this many seconds.
    fn output(&self, id: String, offset: u64, wait_seconds: u32) -> BoxFuture<'_, Result<String, Problem>>;
    /// Cancels a job.
    fn cancel(&self, id: String, wait_seconds: u32) -> BoxFuture<'_, Result<String, Problem>>;
}
