//! An SSH server inside the tests. A test sets what it accepts, and reads what it was offered.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use russh::keys::key::safe_rng;
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, Certificate, HashAlg, PrivateKey, PublicKey};
use russh::server::{self, Auth, ChannelOpenHandle, Msg, PublicKeyOffer, VerifiedPublicKey};
use russh::{Channel, MethodKind, MethodSet};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::Keepalive;
use super::config::{HostConfig, Proxy, Strict};

/// No keepalive is sent, so that nothing depends on time.
pub(super) const QUIET: Keepalive = Keepalive { interval: None, max_missed: 3 };

pub(super) fn new_key() -> PrivateKey {
    PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).unwrap()
}

pub(super) fn fingerprint(key: &PrivateKey) -> String {
    key.public_key().fingerprint(HashAlg::Sha256).to_string()
}

/// Writes a key as ssh-keygen does.
pub(super) fn save(directory: &Path, name: &str, key: &PrivateKey) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, key.to_openssh(LineEnding::LF).unwrap().as_bytes()).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

pub(super) fn save_public(directory: &Path, name: &str, key: &PublicKey) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, key.to_openssh().unwrap()).unwrap();
    path
}

/// The rules by which a server accepts clients.
#[derive(Clone, Default)]
pub(super) struct Rules {
    pub(super) keys: Vec<PublicKey>,
    /// The authorities whose certificates it accepts.
    pub(super) authorities: Vec<PublicKey>,
    /// The number of keys that it needs, at least one.
    pub(super) needs: usize,
    /// The methods that it wants besides, once a key was right.
    pub(super) then: Vec<MethodKind>,
    /// Whether it refuses session channels.
    pub(super) no_sessions: bool,
}

/// A server on a port of this machine.
pub(super) struct TestServer {
    pub(super) port: u16,
    pub(super) host_key: PrivateKey,
    pub(super) seen: Arc<Mutex<Vec<String>>>,
    /// One message for each connection.
    pub(super) connections: mpsc::UnboundedReceiver<server::Handle>,
    /// One message for each channel that was closed.
    pub(super) closed_channels: mpsc::UnboundedReceiver<()>,
}

impl TestServer {
    pub(super) async fn start(rules: Rules) -> Self {
        Self::start_with(rules, new_key(), None).await
    }

    pub(super) async fn start_with(
        rules: Rules,
        host_key: PrivateKey,
        certificate: Option<Certificate>,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let config = Arc::new(server::Config {
            auth_rejection_time: Duration::ZERO,
            keys: vec![host_key.clone()],
            certificates: certificate.into_iter().collect(),
            methods: MethodSet::from([MethodKind::PublicKey].as_slice()),
            max_auth_attempts: 6,
            ..server::Config::default()
        });
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (tell, connections) = mpsc::unbounded_channel();
        let (closed, closed_channels) = mpsc::unbounded_channel();
        let handler = Handler { rules, seen: seen.clone(), closed, right: 0 };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (config, handler, tell) = (config.clone(), handler.clone(), tell.clone());
                tokio::spawn(async move {
                    if let Ok(session) = server::run_stream(config, stream, handler).await {
                        let _ = tell.send(session.handle());
                        let _ = session.await;
                    }
                });
            }
        });
        Self { port, host_key, seen, connections, closed_channels }
    }

    /// Returns the configuration that a host for this server would have. Its key is known.
    pub(super) fn host(&self, directory: &Path) -> HostConfig {
        let known_hosts = directory.join(format!("known_hosts_{}", self.port));
        let key = self.host_key.public_key().to_openssh().unwrap();
        std::fs::write(&known_hosts, format!("[127.0.0.1]:{} {key}\n", self.port)).unwrap();
        HostConfig {
            alias: format!("peer{}", self.port),
            hostname: "127.0.0.1".into(),
            port: self.port,
            user: "alice".into(),
            identity_files: Vec::new(),
            certificate_files: Vec::new(),
            identities_only: false,
            agent: None,
            proxy: Proxy::None,
            host_key_alias: None,
            user_known_hosts: vec![known_hosts],
            global_known_hosts: Vec::new(),
            strict: Strict::Ask,
            hash_known_hosts: false,
            connect_timeout: None,
            address_family: None,
            bind_address: None,
            host_key_algorithms: None,
            kex: None,
            ciphers: None,
            macs: None,
            warnings: Vec::new(),
        }
    }

    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

#[derive(Clone)]
struct Handler {
    rules: Rules,
    seen: Arc<Mutex<Vec<String>>>,
    closed: mpsc::UnboundedSender<()>,
    right: usize,
}

impl Handler {
    fn see(&self, what: impl Into<String>) {
        self.seen.lock().unwrap().push(what.into());
    }

    fn takes(&self, offered: &PublicKey) -> bool {
        self.rules.keys.iter().any(|key| key.key_data() == offered.key_data())
    }

    fn answer(&mut self) -> Auth {
        self.right += 1;
        let more = self.right < self.rules.needs.max(1);
        let then = match more {
            true => vec![MethodKind::PublicKey],
            false => self.rules.then.clone(),
        };
        if then.is_empty() {
            return Auth::Accept;
        }
        Auth::Reject { proceed_with_methods: Some(then.as_slice().into()), partial_success: true }
    }
}

impl server::Handler for Handler {
    type Error = russh::Error;

    async fn auth_none(&mut self, _: &str) -> Result<Auth, russh::Error> {
        self.see("none");
        Ok(Auth::reject())
    }

    async fn auth_password(&mut self, _: &str, _: &str) -> Result<Auth, russh::Error> {
        self.see("password");
        Ok(Auth::reject())
    }

    async fn auth_publickey_offered(
        &mut self,
        _: &str,
        offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, russh::Error> {
        self.see(offer.public_key.fingerprint(HashAlg::Sha256).to_string());
        // Here the server isn't told whether the key is in a certificate.
        match !self.rules.authorities.is_empty() || self.takes(offer.public_key) {
            true => Ok(Auth::Accept),
            false => Ok(Auth::reject()),
        }
    }

    async fn auth_publickey(&mut self, _: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, russh::Error> {
        if self.takes(key.public_key) { Ok(self.answer()) } else { Ok(Auth::reject()) }
    }

    async fn auth_openssh_certificate(
        &mut self,
        _: &str,
        certificate: &Certificate,
    ) -> Result<Auth, russh::Error> {
        self.see(format!("certificate {}", certificate.key_id()));
        let is_its = |authority: &PublicKey| authority.key_data() == certificate.signature_key();
        match self.rules.authorities.iter().any(is_its) {
            true => Ok(self.answer()),
            false => Ok(Auth::reject()),
        }
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut server::Session,
    ) -> Result<(), russh::Error> {
        if !self.rules.no_sessions {
            reply.accept().await;
        }
        Ok(())
    }

    async fn channel_close(
        &mut self,
        _: russh::ChannelId,
        _: &mut server::Session,
    ) -> Result<(), russh::Error> {
        let _ = self.closed.send(());
        Ok(())
    }

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<Msg>,
        host: &str,
        port: u32,
        _: &str,
        _: u32,
        reply: ChannelOpenHandle,
        _: &mut server::Session,
    ) -> Result<(), russh::Error> {
        self.see(format!("to {host}:{port}"));
        let address: SocketAddr = format!("{host}:{port}").parse().unwrap();
        let Ok(mut to) = TcpStream::connect(address).await else { return Ok(()) };
        reply.accept().await;
        tokio::spawn(async move {
            let mut from = channel.into_stream();
            let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
        });
        Ok(())
    }
}
