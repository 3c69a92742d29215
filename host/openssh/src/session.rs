//! One hop: a connection over a stream that is there already, with a host key that is known, not authenticated yet.

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
use super::known_hosts::{self, Judged, KnownHosts, Names};
use super::stream::Held;
use host_base::problem::{Category, Problem};
use host_text::redact::excerpt;

/// How we say who we are. RFC 4253 allows no `-` in the name of a program.
const IDENTIFICATION: &str = concat!("SSH-2.0-linuxsysadmin_", env!("CARGO_PKG_VERSION"));

/// What may be on its way on one channel: enough to keep a fast line busy over a tenth of a second.
const WINDOW: u32 = 8 << 20;

/// What OpenSSH sends at once.
const PACKET: u32 = 32 << 10;

/// Messages of a channel that wait to be taken. A channel whose reader lets more of them wait stops the whole
/// connection until it goes on: this is russh's way of pushing back.
const WAITING: usize = 64;

/// How long a peer has to end by itself.
const FAREWELL: Duration = Duration::from_secs(1);

/// How much of a text of the server's is shown.
const SHOWN: usize = 300;

/// What is known of the other end once its key was accepted.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) host_key: String,
    pub(super) host_key_algorithm: String,
    pub(super) server_version: String,
    pub(super) cipher: String,
    pub(super) kex: String,
}

/// Why a connection went.
#[derive(Clone, Debug)]
pub(super) enum Parting {
    /// The server said so, with these words.
    Said(String),
    /// It broke.
    Broke(String),
}

/// A connection to a host whose key is known, and who doesn't know yet who we are. It ends when this is dropped.
pub(super) struct Unproven {
    pub(super) handle: Handle<Watch>,
    pub(super) life: Arc<Life>,
    seen: Seen,
    held: DropGuard,
}

/// A connection on which channels can be opened. It ends when this is dropped.
pub(super) struct Link {
    handle: Arc<Handle<Watch>>,
    pub(super) life: Arc<Life>,
    pub(super) seen: Seen,
    /// Fingerprint of our own key.
    pub(super) key: Option<String>,
    _held: DropGuard,
}

/// Whether a connection is still there.
#[derive(Default)]
pub(super) struct Life {
    /// Cancelled by the connection's end, whatever ended it.
    gone: CancellationToken,
    /// Cancelled to end it.
    end: CancellationToken,
    parting: OnceLock<Parting>,
}

impl Life {
    pub(super) fn is_over(&self) -> bool {
        self.gone.is_cancelled()
    }

    pub(super) async fn over(&self) {
        self.gone.cancelled().await;
    }

    /// Nothing, where it isn't over, or was ended by us.
    pub(super) fn parting(&self) -> Option<&Parting> {
        self.parting.get()
    }
}

impl Parting {
    /// As the second half of a sentence.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Said(words) if words.is_empty() => "the server ended it".to_owned(),
            Self::Said(words) => format!("the server ended it: {words}"),
            Self::Broke(reason) => reason.clone(),
        }
    }
}

impl Unproven {
    /// Makes a connection over `stream`. The address is the host's, where it is known.
    pub(super) async fn over<S>(
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
        let names = Names::of(host, address);
        let preferred = preferred(host, &known.algorithms(&names), &known.certificate_algorithms(&names))?;
        let config = client::Config {
            client_id: SshId::Standard(IDENTIFICATION.into()),
            window_size: WINDOW,
            maximum_packet_size: PACKET,
            channel_buffer_size: WAITING,
            preferred,
            // As OpenSSH asks for them: the library's own are larger, and take seconds.
            gex: client::GexParams::new(2048, 3072, 8192).unwrap_or_default(),
            inactivity_timeout: None,
            keepalive_interval: keepalive.interval,
            keepalive_max: keepalive.max_missed,
            ..client::Config::default()
        };
        let life = Arc::new(Life::default());
        let held = life.end.clone().drop_guard();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let watch = Watch {
            hostname: host.hostname.clone(),
            names,
            known,
            strict: host.strict,
            record: host.user_known_hosts.first().cloned().map(|file| (file, host.hash_known_hosts)),
            seen: seen.clone(),
            life: life.clone(),
            _gone: life.gone.clone().drop_guard(),
        };
        let stream = Held::new(stream, life.end.clone(), keepalive.patience());
        let handle = client::connect_stream(Arc::new(config), stream, watch).await?;
        if is_signed_with_sha1(&handle) {
            let message =
                format!("{} proved its host key with SHA-1 only, which proves nothing", host.hostname);
            return Err(Problem::new("HOST_KEY_INVALID", Category::Denied, message)
                .remedy("Update the SSH server of that host, or give it an Ed25519 host key"));
        }
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Self { handle, life, seen, held })
    }

    /// Once the other end has let us in, by this key.
    pub(super) fn proven(self, key: Option<String>) -> Link {
        Link { handle: Arc::new(self.handle), life: self.life, seen: self.seen, key, _held: self.held }
    }
}

impl Link {
    /// A session channel. It is closed where nobody takes it any more: left open, it would count for ever to the few
    /// that a server allows.
    pub(super) async fn channel(&self) -> Result<Channel<Msg>, russh::Error> {
        let (give, given) = oneshot::channel();
        let handle = self.handle.clone();
        tokio::spawn(async move {
            let _ = give.send(handle.channel_open_session().await.map(Unclaimed::new));
        });
        given.await.map_err(|_| russh::Error::Disconnect)??.claim()
    }

    /// How long an answer takes.
    pub(super) async fn round_trip(&self) -> Result<Duration, russh::Error> {
        let asked = Instant::now();
        self.handle.send_ping().await?;
        match self.is_closed() {
            true => Err(russh::Error::Disconnect),
            false => Ok(asked.elapsed()),
        }
    }

    /// A stream to another host's SSH server, made there.
    pub(super) async fn forward(&self, host: &HostConfig) -> Result<ChannelStream<Msg>, russh::Error> {
        let is_v6 = host.hostname.contains(':');
        let from = if is_v6 { "::1" } else { "127.0.0.1" };
        let (to, port) = (host.hostname.clone(), u32::from(host.port));
        Ok(self.handle.channel_open_direct_tcpip(to, port, from, 0).await?.into_stream())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.life.is_over() || self.handle.is_closed()
    }

    /// Says goodbye, and doesn't wait long for an answer.
    pub(super) async fn close(&self) {
        let goodbye = async {
            let _ = self.handle.disconnect(Disconnect::ByApplication, "", "").await;
            self.life.over().await;
        };
        let _ = tokio::time::timeout(FAREWELL, goodbye).await;
        self.life.end.cancel();
    }
}

/// A channel on its way to whoever asked for it.
struct Unclaimed(Option<Channel<Msg>>);

impl Unclaimed {
    fn new(channel: Channel<Msg>) -> Self {
        Self(Some(channel))
    }

    fn claim(mut self) -> Result<Channel<Msg>, russh::Error> {
        self.0.take().ok_or(russh::Error::Disconnect)
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let (Some(channel), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { channel.close().await });
        }
    }
}

/// The library takes any hash that the server signs with, whatever was agreed on.
fn is_signed_with_sha1(handle: &Handle<Watch>) -> bool {
    let Some(binding) = handle.agent_session_binding() else { return true };
    String::decode(&mut binding.signature()).is_ok_and(|algorithm| algorithm == "ssh-rsa")
}

/// Why the library ended a connection.
#[derive(Debug)]
pub(super) enum Failure {
    /// We did.
    Refused(Problem),
    /// Something else did.
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

/// Of what happens before anybody is authenticated.
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
        Error::Version => failed("what answers there doesn't speak SSH 2".to_owned())
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

/// What the library asks while a connection lives.
pub(super) struct Watch {
    hostname: String,
    names: Names,
    known: KnownHosts,
    strict: Strict,
    /// Where a key that is new is written, and whether the name is hashed there.
    record: Option<(std::path::PathBuf, bool)>,
    seen: Arc<Mutex<Seen>>,
    life: Arc<Life>,
    /// The library drops this when the connection is over, in whatever way.
    _gone: DropGuard,
}

impl Watch {
    fn judge(&self, presented: &PublicKeyOrCertificate) -> Judged {
        match presented.certificate() {
            Some(certificate) => self.known.judge_certificate(&self.names, certificate, SystemTime::now()),
            None => self.known.judge(&self.names, &presented.public_key()),
        }
    }

    fn accept(&self, presented: &PublicKeyOrCertificate) -> Result<(), Problem> {
        let key = presented.public_key();
        let judged = self.judge(presented);
        if let Some(problem) = known_hosts::refusal(&self.names, &key, &judged, self.strict) {
            return Err(problem);
        }
        match (judged, &self.record) {
            (Judged::Known, _) => Ok(()),
            // One that isn't written down would be new again the next time, whoever has it then.
            (Judged::Unknown, Some((file, hashed))) => known_hosts::record(file, &self.names, &key, *hashed),
            _ => {
                let message = format!("the host key of {} can't be accepted", self.hostname);
                Err(Problem::new("HOST_KEY_INVALID", Category::Denied, message)
                    .remedy("Set UserKnownHostsFile to a file that new host keys can be written to"))
            }
        }
    }

    fn see(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl client::Handler for Watch {
    type Error = Failure;

    async fn check_server_key(&mut self, presented: &PublicKeyOrCertificate) -> Result<bool, Failure> {
        self.accept(presented).map_err(Failure::Refused)?;
        let key = presented.public_key();
        self.see(|seen| {
            seen.host_key = key.fingerprint(HashAlg::Sha256).to_string();
            seen.host_key_algorithm = match presented.certificate() {
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
        self.see(|seen| {
            seen.server_version = version;
            seen.cipher = names.cipher.as_ref().to_owned();
            seen.kex = names.kex.as_ref().to_owned();
        });
        Ok(())
    }

    async fn disconnected(&mut self, reason: DisconnectReason<Failure>) -> Result<(), Failure> {
        let (parting, failure) = match reason {
            DisconnectReason::ReceivedDisconnect(said) => {
                let words = excerpt(said.message.trim(), SHOWN);
                let message = format!("the server ended it: {words}");
                let refused = Problem::new("CONNECTION_FAILED", Category::Network, message)
                    .remedy("Look into the SSH server's log on that host");
                (Parting::Said(words), Failure::Refused(refused))
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
                (Parting::Broke(reason), failure)
            }
        };
        let _ = self.life.parting.set(parting);
        Err(failure)
    }

    // Nothing that a server opens is accepted: to drop the reply is to refuse. The library's own answers are yes.

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
