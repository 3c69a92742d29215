//! One hop: a connection over an existing stream, whose host key is checked, before and after its authentication.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use russh::client::{self, ChannelOpenHandle, DisconnectReason, Handle, Msg};
use russh::keys::ssh_encoding::Decode;
use russh::keys::{HashAlg, PublicKeyOrCertificate};
use russh::{Channel, ChannelId, ChannelStream, Disconnect, SshId};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Keepalive;
use super::algorithms::preferred;
use super::config::{HostConfig, Strict};
use super::known_hosts::{self, HostNames, KeyVerdict, KnownHosts};
use super::stream::CancellableStream;
use host_base::problem::{Category, Problem};
use host_text::redact::excerpt;

/// The version that this side announces. RFC 4253 allows no `-` in the name of a program.
const IDENTIFICATION: &str = concat!("SSH-2.0-linuxsysadmin_", env!("CARGO_PKG_VERSION"));

/// The bytes that may be under way on one channel. They keep a fast line busy over a tenth of a second.
const WINDOW: u32 = 8 << 20;

/// The bytes that OpenSSH sends at once.
const PACKET: u32 = 32 << 10;

/// The messages of a channel that wait to be read. If more wait, the whole connection stops until the reader goes on;
/// russh has no other way to slow a sender down.
const WAITING: usize = 64;

/// The time that a peer has to end by itself.
const FAREWELL: Duration = Duration::from_secs(1);

/// The most characters of a server's text that are shown.
const SHOWN: usize = 300;

/// The facts about a server whose key was accepted.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerInfo {
    pub(super) host_key: String,
    pub(super) host_key_algorithm: String,
    pub(super) server_version: String,
    pub(super) cipher: String,
    pub(super) kex: String,
}

/// The reason why a connection ended.
#[derive(Clone, Debug)]
pub(super) enum EndReason {
    /// The server ended it, with these words.
    ServerMessage(String),
    /// The connection broke, for this reason.
    Broke(String),
}

/// A connection to a host whose key is known, before this side is authenticated. It ends when this is dropped.
pub(super) struct UnauthenticatedHop {
    pub(super) handle: Handle<ClientHandler>,
    pub(super) connection_state: Arc<ConnectionState>,
    server_info: ServerInfo,
    end_guard: DropGuard,
}

/// A connection on which channels can be opened. It ends when this is dropped.
pub(super) struct Hop {
    handle: Arc<Handle<ClientHandler>>,
    pub(super) connection_state: Arc<ConnectionState>,
    pub(super) server_info: ServerInfo,
    /// The fingerprint of this side's key.
    pub(super) key: Option<String>,
    _end_guard: DropGuard,
}

/// Whether a connection still exists.
#[derive(Default)]
pub(super) struct ConnectionState {
    /// Cancelled by the connection's end, whatever ended it.
    gone: CancellationToken,
    /// Cancelled to end the connection.
    end: CancellationToken,
    end_reason: OnceLock<EndReason>,
}

impl ConnectionState {
    pub(super) fn has_ended(&self) -> bool {
        self.gone.is_cancelled()
    }

    pub(super) async fn ended(&self) {
        self.gone.cancelled().await;
    }

    /// Returns why the connection ended. None where it hasn't ended, or this side ended it.
    pub(super) fn end_reason(&self) -> Option<&EndReason> {
        self.end_reason.get()
    }
}

impl EndReason {
    /// Returns the reason as the second half of a sentence.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::ServerMessage(words) if words.is_empty() => "the server ended it".to_owned(),
            Self::ServerMessage(words) => format!("the server ended it: {words}"),
            Self::Broke(reason) => reason.clone(),
        }
    }
}

impl UnauthenticatedHop {
    /// Makes a connection over `stream`. `address` is the host's, where it is known.
    pub(super) async fn over_stream<S>(
        stream: S,
        host: &HostConfig,
        address: Option<IpAddr>,
        keepalive: &Keepalive,
    ) -> Result<Self, Problem>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (user, global) = (host.user_known_hosts.clone(), host.global_known_hosts.clone());
        let known = tokio::task::spawn_blocking(move || KnownHosts::load(&user, &global))
            .await
            .map_err(|error| Problem::new("INTERNAL_ERROR", Category::Internal, error.to_string()))??;
        let names = HostNames::of(host, address);
        let preferred = preferred(host, &known.algorithms(&names), &known.certificate_algorithms(&names))?;
        let config = client::Config {
            client_id: SshId::Standard(IDENTIFICATION.into()),
            window_size: WINDOW,
            maximum_packet_size: PACKET,
            channel_buffer_size: WAITING,
            preferred,
            // OpenSSH asks for these sizes. The library's own are larger, and take seconds.
            gex: client::GexParams::new(2048, 3072, 8192).unwrap_or_default(),
            inactivity_timeout: None,
            keepalive_interval: keepalive.interval,
            keepalive_max: keepalive.max_missed,
            ..client::Config::default()
        };
        let connection_state = Arc::new(ConnectionState::default());
        let end_guard = connection_state.end.clone().drop_guard();
        let server_info = Arc::new(Mutex::new(ServerInfo::default()));
        let handler = ClientHandler {
            hostname: host.hostname.clone(),
            names,
            known,
            strict: host.strict,
            record: host.user_known_hosts.first().cloned().map(|file| (file, host.hash_known_hosts)),
            server_info: server_info.clone(),
            connection_state: connection_state.clone(),
            _gone: connection_state.gone.clone().drop_guard(),
        };
        let stream = CancellableStream::new(stream, connection_state.end.clone(), keepalive.patience());
        let handle = client::connect_stream(Arc::new(config), stream, handler).await?;
        if is_signed_with_sha1(&handle) {
            let message =
                format!("{} proved its host key with SHA-1 only, which proves nothing", host.hostname);
            return Err(Problem::new("HOST_KEY_INVALID", Category::Denied, message)
                .remedy("Update the SSH server of that host, or give it an Ed25519 host key"));
        }
        let server_info = server_info.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Self { handle, connection_state, server_info, end_guard })
    }

    /// Makes the usable connection, once the server has accepted this key.
    pub(super) fn authenticated(self, key: Option<String>) -> Hop {
        Hop {
            handle: Arc::new(self.handle),
            connection_state: self.connection_state,
            server_info: self.server_info,
            key,
            _end_guard: self.end_guard,
        }
    }
}

impl Hop {
    /// Opens a session channel. It is closed if the caller has gone away: left open, it would count forever among the
    /// few that a server allows.
    pub(super) async fn channel(&self) -> Result<Channel<Msg>, russh::Error> {
        let (give, given) = oneshot::channel();
        let handle = self.handle.clone();
        tokio::spawn(async move {
            let _ = give.send(handle.channel_open_session().await.map(UnclaimedChannel::new));
        });
        given.await.map_err(|_| russh::Error::Disconnect)??.claim()
    }

    /// Measures how long an answer takes.
    pub(super) async fn round_trip(&self) -> Result<Duration, russh::Error> {
        let asked = Instant::now();
        self.handle.send_ping().await?;
        match self.is_closed() {
            true => Err(russh::Error::Disconnect),
            false => Ok(asked.elapsed()),
        }
    }

    /// Opens a stream to another host's SSH server, from this hop's host.
    pub(super) async fn forward(&self, host: &HostConfig) -> Result<ChannelStream<Msg>, russh::Error> {
        let is_v6 = host.hostname.contains(':');
        let from = if is_v6 { "::1" } else { "127.0.0.1" };
        let (to, port) = (host.hostname.clone(), u32::from(host.port));
        Ok(self.handle.channel_open_direct_tcpip(to, port, from, 0).await?.into_stream())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.connection_state.has_ended() || self.handle.is_closed()
    }

    /// Ends the connection in order, and waits only briefly for the server.
    pub(super) async fn close(&self) {
        let goodbye = async {
            let _ = self.handle.disconnect(Disconnect::ByApplication, "", "").await;
            self.connection_state.ended().await;
        };
        let _ = tokio::time::timeout(FAREWELL, goodbye).await;
        self.connection_state.end.cancel();
    }
}

/// A channel that its caller hasn't taken yet.
struct UnclaimedChannel(Option<Channel<Msg>>);

impl UnclaimedChannel {
    fn new(channel: Channel<Msg>) -> Self {
        Self(Some(channel))
    }

    fn claim(mut self) -> Result<Channel<Msg>, russh::Error> {
        self.0.take().ok_or(russh::Error::Disconnect)
    }
}

impl Drop for UnclaimedChannel {
    fn drop(&mut self) {
        if let (Some(channel), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { channel.close().await });
        }
    }
}

/// Says whether the server signed with SHA-1. The library accepts any hash, whatever was agreed on.
fn is_signed_with_sha1(handle: &Handle<ClientHandler>) -> bool {
    let Some(binding) = handle.agent_session_binding() else { return true };
    String::decode(&mut binding.signature()).is_ok_and(|algorithm| algorithm == "ssh-rsa")
}

/// The reason why the library ended a connection.
#[derive(Debug)]
pub(super) enum Failure {
    /// This side refused the server.
    Refused(Problem),
    /// The library or the server failed.
    Ssh(russh::Error),
}

impl From<russh::Error> for Failure {
    fn from(error: russh::Error) -> Self {
        Self::Ssh(error)
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(problem) => problem,
            Failure::Ssh(error) => from_library(&error),
        }
    }
}

/// Makes the problem of a failure before the authentication.
fn from_library(error: &russh::Error) -> Problem {
    use russh::Error;
    let failed = |message: String| Problem::new("CONNECTION_FAILED", Category::Network, message);
    match error {
        Error::NoCommonAlgo { kind, theirs, .. } => {
            let theirs = excerpt(&theirs.join(", "), SHOWN);
            let kind = format!("{kind:?}").to_lowercase();
            failed(format!("no {kind} algorithm that is sound is known to both; the server offers {theirs}"))
                .remedy("Update the SSH server of that host: SHA-1, CBC and DSA are not used")
        }
        Error::Version => failed("the program that answers there doesn't speak SSH 2".to_owned())
            .remedy("Check the host name and the port"),
        Error::WrongServerSig => {
            let message = "the server could not prove that its host key is its own";
            Problem::new("HOST_KEY_INVALID", Category::Denied, message)
                .remedy("Somebody may be between this machine and that host: find out before you try again")
        }
        Error::Disconnect | Error::HUP => failed("it was closed by the server before it was made".to_owned())
            .remedy(
                "Look into the SSH server's log on that host: it may refuse this address, or have too many \
                 connections that wait",
            ),
        other => failed(excerpt(&other.to_string(), SHOWN))
            .remedy("Try 'ssh -v' to that host: it shows how far the connection comes"),
    }
}

/// Answers the library's questions while a connection exists.
pub(super) struct ClientHandler {
    hostname: String,
    names: HostNames,
    known: KnownHosts,
    strict: Strict,
    /// The file where a new key is written, and whether the name is hashed there.
    record: Option<(std::path::PathBuf, bool)>,
    server_info: Arc<Mutex<ServerInfo>>,
    connection_state: Arc<ConnectionState>,
    /// The library drops this when the connection has ended, for any reason.
    _gone: DropGuard,
}

impl ClientHandler {
    fn judge(&self, presented: &PublicKeyOrCertificate) -> KeyVerdict {
        match presented.certificate() {
            Some(certificate) => self.known.judge_certificate(&self.names, certificate, SystemTime::now()),
            None => self.known.judge(&self.names, &presented.public_key()),
        }
    }

    fn accept(&self, presented: &PublicKeyOrCertificate) -> Result<(), Problem> {
        let key = presented.public_key();
        let verdict = self.judge(presented);
        if let Some(problem) = known_hosts::refusal(&self.names, &key, &verdict, self.strict) {
            return Err(problem);
        }
        match (verdict, &self.record) {
            (KeyVerdict::Known, _) => Ok(()),
            // A key that isn't written down would be new again next time, whoever has it then.
            (KeyVerdict::Unknown, Some((file, hashed))) => {
                known_hosts::record(file, &self.names, &key, *hashed)
            }
            _ => {
                let message = format!("the host key of {} can't be accepted", self.hostname);
                Err(Problem::new("HOST_KEY_INVALID", Category::Denied, message)
                    .remedy("Set UserKnownHostsFile to a file that new host keys can be written to"))
            }
        }
    }

    fn update_server_info(&self, change: impl FnOnce(&mut ServerInfo)) {
        change(&mut self.server_info.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl client::Handler for ClientHandler {
    type Error = Failure;

    async fn check_server_key(&mut self, presented: &PublicKeyOrCertificate) -> Result<bool, Failure> {
        self.accept(presented).map_err(Failure::Refused)?;
        let key = presented.public_key();
        self.update_server_info(|server_info| {
            server_info.host_key = key.fingerprint(HashAlg::Sha256).to_string();
            server_info.host_key_algorithm = match presented.certificate() {
                Some(certificate) => certificate.algorithm().to_certificate_type(),
                None => key.algorithm().to_string(),
            };
        });
        Ok(true)
    }

    async fn kex_done(
        &mut self,
        _: Option<&[u8]>,
        names: &russh::Names,
        session: &mut client::Session,
    ) -> Result<(), Failure> {
        let version = excerpt(&String::from_utf8_lossy(session.remote_sshid()), SHOWN);
        self.update_server_info(|server_info| {
            server_info.server_version = version;
            server_info.cipher = names.cipher.as_ref().to_owned();
            server_info.kex = names.kex.as_ref().to_owned();
        });
        Ok(())
    }

    async fn disconnected(&mut self, reason: DisconnectReason<Failure>) -> Result<(), Failure> {
        let (end_reason, failure) = match reason {
            DisconnectReason::ReceivedDisconnect(said) => {
                let words = excerpt(said.message.trim(), SHOWN);
                let message = format!("the server ended it: {words}");
                let refused = Problem::new("CONNECTION_FAILED", Category::Network, message)
                    .remedy("Look into the SSH server's log on that host");
                (EndReason::ServerMessage(words), Failure::Refused(refused))
            }
            DisconnectReason::Error(failure) => {
                let reason = match &failure {
                    Failure::Refused(problem) => problem.message.clone(),
                    Failure::Ssh(russh::Error::KeepaliveTimeout) => {
                        "the server no longer answered".to_owned()
                    }
                    Failure::Ssh(russh::Error::Disconnect | russh::Error::HUP) => {
                        "it was closed without a word".to_owned()
                    }
                    Failure::Ssh(error) => excerpt(&error.to_string(), SHOWN),
                };
                (EndReason::Broke(reason), failure)
            }
        };
        let _ = self.connection_state.end_reason.set(end_reason);
        Err(failure)
    }

    // Whatever a server wants to open is refused, which dropping the reply does. The library's own answers would
    // accept it.

    async fn server_channel_open_forwarded_tcpip(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: u32,
        _: &str,
        _: u32,
        _: ChannelOpenHandle,
        _: &mut client::Session,
    ) -> Result<(), Failure> {
        Ok(())
    }

    async fn server_channel_open_forwarded_streamlocal(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: ChannelOpenHandle,
        _: &mut client::Session,
    ) -> Result<(), Failure> {
        Ok(())
    }

    async fn server_channel_open_agent_forward(
        &mut self,
        _: Channel<Msg>,
        _: ChannelOpenHandle,
        _: &mut client::Session,
    ) -> Result<(), Failure> {
        Ok(())
    }

    async fn should_accept_unknown_server_channel(&mut self, _: ChannelId, _: &str) -> bool {
        false
    }

    async fn server_channel_open_session(
        &mut self,
        _: Channel<Msg>,
        _: ChannelOpenHandle,
        _: &mut client::Session,
    ) -> Result<(), Failure> {
        Ok(())
    }

    async fn server_channel_open_direct_tcpip(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: u32,
        _: &str,
        _: u32,
        _: ChannelOpenHandle,
        _: &mut client::Session,
    ) -> Result<(), Failure> {
        Ok(())
    }

    async fn server_channel_open_direct_streamlocal(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: ChannelOpenHandle,
        _: &mut client::Session,
    ) -> Result<(), Failure> {
        Ok(())
    }

    async fn server_channel_open_x11(
        &mut self,
        _: Channel<Msg>,
        _: &str,
        _: u32,
        _: ChannelOpenHandle,
        _: &mut client::Session,
    ) -> Result<(), Failure> {
        Ok(())
    }
}
