//! Other machines: one authenticated connection to a host, by all of its jumps, as the user's own SSH configuration
//! says. A host key that isn't known is refused, and so is whatever a server wants to open here.
#![forbid(unsafe_code)]

mod algorithms;
mod alias;
mod auth;
pub mod config;
mod keys;
pub mod known_hosts;
mod pattern;
#[cfg(test)]
mod peer;
mod proxy;
mod session;
mod stream;

use std::time::Duration;

use russh::client::Msg;
use russh::{Channel, ChannelOpenFailure};
use tokio::time::Instant;

pub use alias::Alias;
pub use config::Given;
use config::{HostConfig, Proxy};
use host_base::problem::{Category, Problem};
pub use keys::{OwnKey, own_keys};
use session::{Link, Unproven};

/// For everything of one hop up to its authentication, where the configuration doesn't say.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// When a connection that says nothing is asked whether it is still there.
#[derive(Clone, Copy, Debug)]
pub struct Keepalive {
    /// After so much silence; never, where nothing is set.
    pub interval: Option<Duration>,
    /// After so many questions without an answer it is gone.
    pub max_missed: usize,
}

impl Keepalive {
    /// How long a peer may be silent.
    fn patience(&self) -> Option<Duration> {
        let rounds = u32::try_from(self.max_missed).unwrap_or(u32::MAX).saturating_add(1);
        self.interval.map(|interval| interval.saturating_mul(rounds))
    }
}

/// Who is at the other end.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The account that we are there.
    pub user: String,
    /// As the configuration has it.
    pub hostname: String,
    /// Of its SSH server.
    pub port: u16,
    /// The fingerprint of its host key: `SHA256:…`.
    pub host_key: String,
    /// Of the host key, or of the certificate.
    pub host_key_algorithm: String,
    /// What the server calls itself.
    pub server_version: String,
    /// The one that was agreed on.
    pub cipher: String,
    /// The key exchange that was agreed on.
    pub kex: String,
    /// Fingerprint of our own key that it has taken, as `SHA256:…`; none where it wanted none.
    pub key: Option<String>,
    /// The hosts on the way, as `user@host:port`, the nearest first.
    pub jumps: Vec<String>,
    /// What the configuration sets and we don't follow, a sentence each.
    pub warnings: Vec<String>,
}

/// One authenticated connection, by all of its jumps. It ends when this is dropped.
pub struct Session {
    target: Link,
    /// The nearest last, so that they are dropped as they are left.
    jumps: Vec<Link>,
    _proxy: Option<proxy::Command>,
    peer: Peer,
}

impl Session {
    /// Connects to `host`, resolving its jumps by the same configuration. Each hop's host key is checked, and each hop
    /// is authenticated for itself.
    pub async fn open(host: &HostConfig, keepalive: &Keepalive) -> Result<Self, Problem> {
        Self::open_by(host, keepalive, config::resolve).await
    }

    async fn open_by<F>(host: &HostConfig, keepalive: &Keepalive, resolve: F) -> Result<Self, Problem>
    where
        F: AsyncFn(&str, &config::Given) -> Result<HostConfig, Problem>,
    {
        let jumps = proxy::jumps(host, resolve).await?;
        let mut links: Vec<Link> = Vec::new();
        let mut running = None;
        for (at, hop) in jumps.iter().chain([host]).enumerate() {
            let name = describe(hop, at < jumps.len());
            let link = open_hop(hop, links.first(), &mut running, keepalive)
                .await
                .map_err(|problem| at_hop(problem, &name, hop))?;
            links.insert(0, link);
        }
        let target = links.remove(0);
        let all = || jumps.iter().chain([host]);
        let seen = target.seen.clone();
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
        Ok(Self { target, jumps: links, _proxy: running, peer })
    }

    /// Whether it is gone.
    pub fn is_closed(&self) -> bool {
        self.target.is_closed()
    }

    /// Returns once it is gone.
    pub async fn closed(&self) {
        self.target.life.over().await;
    }

    /// A fresh session channel. Whoever takes it has to read it, and to close it.
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

    /// How long an answer takes.
    pub async fn round_trip(&self) -> Result<Duration, Problem> {
        self.target.round_trip().await.map_err(|_| self.lost())
    }

    fn lost(&self) -> Problem {
        let host = &self.peer.hostname;
        let message = match self.target.life.parting() {
            Some(parting) => format!("the connection to {host} is gone: {}", parting.shown()),
            None => format!("the connection to {host} is gone"),
        };
        Problem::new("CONNECTION_LOST", Category::Network, message)
            .remedy("Call again: a new one is made then")
    }

    /// Who is there.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Ends it, and the connections to the hosts on the way.
    pub async fn close(&self) {
        self.target.close().await;
        for jump in &self.jumps {
            jump.close().await;
        }
    }
}

/// Connects to a host: through the one `before` it, or directly, and then maybe by a ProxyCommand, which is left in
/// `running`.
async fn open_hop(
    host: &HostConfig,
    before: Option<&Link>,
    running: &mut Option<proxy::Command>,
    keepalive: &Keepalive,
) -> Result<Link, Problem> {
    let timeout = host.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
    let deadline = Instant::now() + timeout;
    let greeting = async {
        match (before, &host.proxy) {
            (Some(before), _) => {
                let stream = before.forward(host).await.map_err(|error| not_forwarded(&error))?;
                Unproven::over(stream, host, None, keepalive).await
            }
            (None, Proxy::Command(argv)) => {
                let (stream, command) = proxy::Command::start(argv)?;
                *running = Some(command);
                Unproven::over(stream, host, None, keepalive).await
            }
            (None, Proxy::None | Proxy::Jump(_)) => {
                let (stream, address) = proxy::connect(host, deadline).await?;
                Unproven::over(stream, host, Some(address), keepalive).await
            }
        }
    };
    let greeted = match tokio::time::timeout_at(deadline, greeting).await {
        Ok(greeted) => greeted,
        Err(_) => Err(timed_out(timeout)),
    };
    let mut link = match (greeted, running) {
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
    let key = auth::authenticate(&mut link, host).await?;
    Ok(link.proven(key))
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

/// As in `web1 (192.0.2.7:22)`.
fn describe(host: &HostConfig, is_jump: bool) -> String {
    let (alias, hostname, port) = (&host.alias, &host.hostname, host.port);
    let address =
        if hostname.contains(':') { format!("[{hostname}]:{port}") } else { format!("{hostname}:{port}") };
    let name = if alias == hostname { address } else { format!("{alias} ({address})") };
    if is_jump { format!("the jump host {name}") } else { name }
}

/// Says which hop could not be reached; the other problems name their host. What its configuration asks for in vain may
/// be why, and a log is read by nobody who was refused.
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
