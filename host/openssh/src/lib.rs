//! One authenticated connection to another machine, through all jumps, as the user's own SSH configuration says. It
//! refuses a host key that isn't known, and whatever a server wants to open here.
#![forbid(unsafe_code)]

mod algorithms;
mod alias;
mod auth;
pub mod config;
mod hop;
mod keys;
pub mod known_hosts;
mod proxy;
mod stream;
#[cfg(test)]
mod test_server;

use std::time::Duration;

use russh::client::Msg;
use russh::{Channel, ChannelOpenFailure};
use tokio::time::Instant;

pub use alias::Alias;
pub use config::SshOptions;
use config::{HostConfig, Proxy};
use hop::{Hop, UnauthenticatedHop};
use host_base::problem::{Category, Problem};
pub use keys::{OwnKey, own_keys};

/// The time limit of one hop up to its authentication, where the configuration sets none.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// The times at which a silent connection is asked whether it is still there.
#[derive(Clone, Copy, Debug)]
pub struct Keepalive {
    /// The silence after which it is asked. None means never.
    pub interval: Option<Duration>,
    /// The number of unanswered questions after which the connection counts as lost.
    pub max_missed: usize,
}

impl Keepalive {
    /// Returns how long a peer may be silent.
    fn patience(&self) -> Option<Duration> {
        let rounds = u32::try_from(self.max_missed).unwrap_or(u32::MAX).saturating_add(1);
        self.interval.map(|interval| interval.saturating_mul(rounds))
    }
}

/// The server at the other end.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The account that this side is there.
    pub user: String,
    /// The host name of the configuration.
    pub hostname: String,
    /// The port of its SSH server.
    pub port: u16,
    /// The fingerprint of its host key: `SHA256:…`.
    pub host_key: String,
    /// The algorithm of the host key, or of the certificate.
    pub host_key_algorithm: String,
    /// The version that the server announces.
    pub server_version: String,
    /// The cipher that was agreed on.
    pub cipher: String,
    /// The key exchange that was agreed on.
    pub kex: String,
    /// The fingerprint of this side's key that the server accepted, as `SHA256:…`. None where it wanted no key.
    pub key: Option<String>,
    /// The hosts on the way, as `user@host:port`, the nearest first.
    pub jumps: Vec<String>,
    /// A sentence about each setting of the configuration that isn't followed.
    pub warnings: Vec<String>,
}

/// One authenticated connection, through all of its jumps. It ends when this is dropped.
pub struct SshConnection {
    target: Hop,
    /// The connections to the jump hosts. The nearest comes last, and so they are dropped in the order in which they
    /// are left.
    jumps: Vec<Hop>,
    _proxy: Option<proxy::ProxyProcess>,
    peer: Peer,
}

impl SshConnection {
    /// Connects to `host`, and resolves its jumps by the same configuration. Each hop's host key is checked, and each
    /// hop is authenticated separately.
    pub async fn open(host: &HostConfig, keepalive: &Keepalive) -> Result<Self, Problem> {
        Self::open_by(host, keepalive, config::resolve).await
    }

    async fn open_by<F>(host: &HostConfig, keepalive: &Keepalive, resolve: F) -> Result<Self, Problem>
    where
        F: AsyncFn(&str, &config::SshOptions) -> Result<HostConfig, Problem>,
    {
        let jumps = proxy::jumps(host, resolve).await?;
        let mut opened_hops: Vec<Hop> = Vec::new();
        let mut running = None;
        for (at, hop) in jumps.iter().chain([host]).enumerate() {
            let name = describe(hop, at < jumps.len());
            let opened_hop = open_hop(hop, opened_hops.first(), &mut running, keepalive)
                .await
                .map_err(|problem| at_hop(problem, &name, hop))?;
            opened_hops.insert(0, opened_hop);
        }
        let target = opened_hops.remove(0);
        let all = || jumps.iter().chain([host]);
        let seen = target.server_info.clone();
        let peer = Peer {
            user: host.user.clone(),
            hostname: host.hostname.clone(),
            port: host.port,
            host_key: seen.host_key,
            host_key_algorithm: seen.host_key_algorithm,
            server_version: seen.server_version,
            cipher: seen.cipher,
            kex: seen.kex,
            key: target.key.clone(),
            jumps: jumps.iter().map(|hop| format!("{}@{}:{}", hop.user, hop.hostname, hop.port)).collect(),
            warnings: all().flat_map(|hop| hop.warnings.iter().cloned()).collect(),
        };
        Ok(Self { target, jumps: opened_hops, _proxy: running, peer })
    }

    /// Says whether the connection is lost.
    pub fn is_closed(&self) -> bool {
        self.target.is_closed()
    }

    /// Returns once the connection is lost.
    pub async fn closed(&self) {
        self.target.connection_state.ended().await;
    }

    /// Opens a session channel. The caller has to read it and to close it.
    pub async fn channel(&self) -> Result<Channel<Msg>, Problem> {
        self.target.channel().await.map_err(|error| match error {
            russh::Error::ChannelOpenFailure(reason) => {
                let (host, reason) = (&self.peer.hostname, why(&reason));
                let message = format!("{host} opens no further channel on this connection: {reason}");
                Problem::new("CHANNEL_REFUSED", Category::Resource, message)
                    .remedy("Check MaxSessions in the sshd_config of that host: 10 is usual, 8 are used")
            }
            _ => self.lost(),
        })
    }

    /// Measures how long an answer takes.
    pub async fn round_trip(&self) -> Result<Duration, Problem> {
        self.target.round_trip().await.map_err(|_| self.lost())
    }

    fn lost(&self) -> Problem {
        let host = &self.peer.hostname;
        let message = match self.target.connection_state.end_reason() {
            Some(end_reason) => format!("the connection to {host} is gone: {}", end_reason.shown()),
            None => format!("the connection to {host} is gone"),
        };
        Problem::new("CONNECTION_LOST", Category::Network, message)
            .remedy("Call again: a new one is made then")
    }

    /// Returns the server at the other end.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Ends the connection, and those to the hosts on the way.
    pub async fn close(&self) {
        self.target.close().await;
        for jump in &self.jumps {
            jump.close().await;
        }
    }
}

/// Connects to a host: through the hop `before` it, or directly, perhaps by a ProxyCommand, which is then kept in
/// `running`.
async fn open_hop(
    host: &HostConfig,
    before: Option<&Hop>,
    running: &mut Option<proxy::ProxyProcess>,
    keepalive: &Keepalive,
) -> Result<Hop, Problem> {
    let timeout = host.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
    let deadline = Instant::now() + timeout;
    let greeting = async {
        match (before, &host.proxy) {
            (Some(before), _) => {
                let stream = before.forward(host).await.map_err(|error| not_forwarded(&error))?;
                UnauthenticatedHop::over_stream(stream, host, None, keepalive).await
            }
            (None, Proxy::Command(argv)) => {
                let (stream, command) = proxy::ProxyProcess::start(argv)?;
                *running = Some(command);
                UnauthenticatedHop::over_stream(stream, host, None, keepalive).await
            }
            (None, Proxy::None | Proxy::Jump(_)) => {
                let (stream, address) = proxy::connect(host, deadline).await?;
                UnauthenticatedHop::over_stream(stream, host, Some(address), keepalive).await
            }
        }
    };
    let greeted = match tokio::time::timeout_at(deadline, greeting).await {
        Ok(greeted) => greeted,
        Err(_) => Err(timed_out(timeout)),
    };
    let mut opened_hop = match (greeted, running) {
        (Err(mut problem), Some(command)) if problem.code == "CONNECTION_FAILED" => {
            if let Some(said) = command.last_words().await {
                problem.message = format!("{}; {said}", problem.message);
                problem.remediation =
                    vec!["Check ProxyCommand in ~/.ssh/config, and what it connects to".to_owned()];
            }
            return Err(problem);
        }
        (greeted, _) => greeted?,
    };
    let key = auth::authenticate(&mut opened_hop, host).await?;
    Ok(opened_hop.authenticated(key))
}

fn timed_out(timeout: Duration) -> Problem {
    let message = format!("no answer from an SSH server within {} s", timeout.as_secs());
    Problem::new("CONNECTION_FAILED", Category::Network, message)
        .remedy("Check the host and the way to it, or set a longer ConnectTimeout for it in ~/.ssh/config")
}

fn not_forwarded(error: &russh::Error) -> Problem {
    let reason = match error {
        russh::Error::ChannelOpenFailure(reason) => why(reason),
        _ => "the connection to it is gone".to_owned(),
    };
    let message = format!("the jump host before it made no connection: {reason}");
    Problem::new("CONNECTION_FAILED", Category::Network, message)
        .remedy("Check that the jump host reaches it, and AllowTcpForwarding in the jump host's sshd_config")
}

fn why(reason: &ChannelOpenFailure) -> String {
    match reason {
        ChannelOpenFailure::AdministrativelyProhibited => "it is not allowed there".to_owned(),
        ChannelOpenFailure::ConnectFailed => "nothing answered".to_owned(),
        ChannelOpenFailure::UnknownChannelType => "it knows no such channel".to_owned(),
        ChannelOpenFailure::ResourceShortage => "it has too many already".to_owned(),
        ChannelOpenFailure::Other { code, .. } => format!("it gave the reason {code}"),
    }
}

/// Describes a host, as in `web1 (192.0.2.7:22)`.
fn describe(host: &HostConfig, is_jump: bool) -> String {
    let (alias, hostname, port) = (&host.alias, &host.hostname, host.port);
    let address =
        if hostname.contains(':') { format!("[{hostname}]:{port}") } else { format!("{hostname}:{port}") };
    let name = if alias == hostname { address } else { format!("{alias} ({address})") };
    if is_jump { format!("the jump host {name}") } else { name }
}

/// Adds to the problem which hop couldn't be reached; other problems name their host. It also adds the settings that
/// weren't followed, because they may be the reason, and a log isn't read by the caller.
fn at_hop(mut problem: Problem, name: &str, hop: &HostConfig) -> Problem {
    if problem.code == "CONNECTION_FAILED" {
        problem.message = format!("no connection to {name}: {}", problem.message);
    }
    match hop.warnings.is_empty() {
        true => problem,
        false => problem.detail("not_followed", hop.warnings.clone().into()),
    }
}

#[cfg(test)]
mod tests;
