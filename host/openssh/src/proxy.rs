//! Reaches a host: finds the hosts on the way, and makes the stream.

use std::net::{IpAddr, SocketAddr};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio::process::{Child, ChildStderr};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::config::{Family, HostConfig, Jump, Proxy, SshOptions};
use host_base::problem::{Category, Problem};
use host_text::redact::excerpt;

/// The most hops. A configuration that goes round in circles is found by it, too.
const HOPS: usize = 8;

/// The bytes of a ProxyCommand's stderr that are kept. They are the last ones.
const SAID: usize = 2 << 10;

/// The time that a failed ProxyCommand has to say why it failed.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Returns the hosts on the way to `host`, the nearest first and without `host`. As in ssh, only the first jump's own
/// proxy counts, because the others are reached through the one before.
pub(super) async fn jumps<F>(host: &HostConfig, resolve: F) -> Result<Vec<HostConfig>, Problem>
where
    F: AsyncFn(&str, &SshOptions) -> Result<HostConfig, Problem>,
{
    let mut hops: Vec<HostConfig> = Vec::new();
    while let Proxy::Jump(jumps) = &hops.first().unwrap_or(host).proxy {
        let jumps: Vec<Jump> = jumps.clone();
        if jumps.is_empty() {
            break;
        }
        for jump in jumps.iter().rev() {
            let given = SshOptions { port: jump.port, user: jump.user.clone(), ..SshOptions::default() };
            let hop = resolve(&jump.host, &given).await?;
            let is_same = |other: &HostConfig| {
                (&other.hostname, other.port, &other.user) == (&hop.hostname, hop.port, &hop.user)
            };
            if is_same(host) || hops.iter().any(is_same) {
                let message = format!("the jumps to {} go round in circles at {}", host.alias, hop.alias);
                return Err(invalid(message));
            }
            hops.insert(0, hop);
            // The target is a hop as well.
            if hops.len() >= HOPS {
                let message = format!("there are more than {HOPS} hops to {}", host.alias);
                return Err(invalid(message));
            }
        }
    }
    Ok(hops)
}

fn invalid(message: String) -> Problem {
    Problem::new("SSH_CONFIG_INVALID", Category::Validation, message).remedy(
        "Check ProxyJump in ~/.ssh/config: a host that is reached directly among them needs 'ProxyJump none'",
    )
}

/// Connects to the first of the host's addresses that answers before the deadline.
pub(super) async fn connect(host: &HostConfig, deadline: Instant) -> Result<(TcpStream, IpAddr), Problem> {
    let addresses = addresses(host, deadline).await?;
    let from = bind_address(host).await?;
    let mut failures = Vec::new();
    let mut last = None;
    for (at, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        // The remaining addresses share the remaining time.
        let share = left / u32::try_from(addresses.len() - at).unwrap_or(u32::MAX);
        let error = match tokio::time::timeout(share, connect_to(*address, &from)).await {
            Ok(Ok(stream)) => return Ok((stream, address.ip())),
            Ok(Err(error)) => error,
            Err(_) => std::io::ErrorKind::TimedOut.into(),
        };
        failures.push(format!("{address}: {}", reason(&error)));
        last = Some(error.kind());
    }
    let problem = Problem::new("CONNECTION_FAILED", Category::Network, failures.join(", "));
    Err(problem.remedy(remedy(last)))
}

fn reason(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        ErrorKind::TimedOut => "no answer".to_owned(),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => "no route to it".to_owned(),
        _ => error.to_string(),
    }
}

fn remedy(kind: Option<std::io::ErrorKind>) -> &'static str {
    use std::io::ErrorKind;
    match kind {
        Some(ErrorKind::ConnectionRefused) => "Check that an SSH server runs there, and on that port",
        Some(ErrorKind::TimedOut) => {
            "Check that the host is up, and that no firewall drops what is sent to that port"
        }
        Some(ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => {
            "Check this machine's network, and whether the host is reached through a jump host or a VPN"
        }
        _ => "Try 'ssh -v' to that host: it shows how far the connection comes",
    }
}

async fn addresses(host: &HostConfig, deadline: Instant) -> Result<Vec<SocketAddr>, Problem> {
    let failed = |reason: String| {
        Problem::new("CONNECTION_FAILED", Category::Network, reason)
            .remedy("Check the host name, and this machine's DNS and /etc/hosts")
    };
    let asked = tokio::net::lookup_host((host.hostname.as_str(), host.port));
    let found = tokio::time::timeout_at(deadline, asked)
        .await
        .map_err(|_| failed("no answer from the name service".to_owned()))?
        .map_err(|error| failed(format!("the name could not be resolved: {error}")))?;
    let is_wanted = |address: &SocketAddr| match host.address_family {
        None => true,
        Some(Family::Inet) => address.is_ipv4(),
        Some(Family::Inet6) => address.is_ipv6(),
    };
    let mut wanted: Vec<SocketAddr> = Vec::new();
    for address in found.filter(is_wanted) {
        if !wanted.contains(&address) {
            wanted.push(address);
        }
    }
    if wanted.is_empty() {
        return Err(failed("the name has no address of the family that AddressFamily asks for".to_owned()));
    }
    Ok(wanted)
}

/// Returns the addresses of this machine from which the connection may come.
async fn bind_address(host: &HostConfig) -> Result<Vec<IpAddr>, Problem> {
    let Some(name) = &host.bind_address else { return Ok(Vec::new()) };
    match tokio::net::lookup_host((name.as_str(), 0)).await {
        Ok(found) => Ok(found.map(|address| address.ip()).collect()),
        Err(error) => {
            let message = format!("BindAddress {name} could not be resolved: {error}");
            Err(Problem::new("SSH_CONFIG_INVALID", Category::Validation, message)
                .remedy("Set BindAddress to an address of this machine"))
        }
    }
}

async fn connect_to(address: SocketAddr, from: &[IpAddr]) -> std::io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_nodelay(true)?;
    if !from.is_empty() {
        let fitting = from.iter().find(|ours| ours.is_ipv4() == address.is_ipv4());
        let ours = fitting.ok_or_else(|| std::io::Error::other("BindAddress is of another family"))?;
        socket.bind(SocketAddr::new(*ours, 0))?;
    }
    socket.connect(address).await
}

/// A running ProxyCommand. Dropping it ends it and what it started.
pub(super) struct ProxyProcess {
    name: String,
    leader: Option<Pid>,
    said: Arc<Mutex<Vec<u8>>>,
    listening: JoinHandle<()>,
    // The child isn't waited for, so that no other process gets its id.
    _child: Child,
}

impl ProxyProcess {
    /// Starts the command. Returns it with its input and output. It is the user's own command: it is found as the
    /// user's shell would find it, and runs in the user's environment.
    pub(super) fn start(
        argv: &[String],
    ) -> Result<(impl AsyncRead + AsyncWrite + Unpin + Send + use<>, Self), Problem> {
        let failed = |reason: String| {
            Problem::new("CONNECTION_FAILED", Category::Network, format!("its ProxyCommand {reason}"))
                .remedy("Check ProxyCommand in ~/.ssh/config")
        };
        let (program, args) = argv.split_first().ok_or_else(|| failed("is empty".to_owned()))?;
        let mut child = tokio::process::Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(format!("{program} could not be started: {error}")))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(failed("has no pipes".to_owned()));
        };
        let said = Arc::new(Mutex::new(Vec::new()));
        let running = Self {
            name: program.clone(),
            leader: child.id().and_then(|id| Pid::from_raw(id.cast_signed())),
            listening: tokio::spawn(listen(stderr, said.clone())),
            said,
            _child: child,
        };
        Ok((tokio::io::join(stdout, stdin), running))
    }

    /// Returns the last words of its stderr as the end of a sentence. None where it said nothing.
    pub(super) async fn last_words(&mut self) -> Option<String> {
        let _ = tokio::time::timeout(LAST_WORDS, &mut self.listening).await;
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        (!said.is_empty()).then(|| format!("{} said: {}", self.name, excerpt(&said, SAID)))
    }
}

impl Drop for ProxyProcess {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // It may have ended by itself.
            let _ = kill_process_group(leader, Signal::KILL);
        }
        self.listening.abort();
    }
}

async fn listen(mut stderr: ChildStderr, said: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(&buffer[..count]);
        let excess = said.len().saturating_sub(SAID);
        said.drain(..excess);
    }
}

#[cfg(test)]
mod tests;
