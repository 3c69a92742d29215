//! What the target-control interface does in one call: connections to hosts, and which of them is the current one.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::targets::Targets;
use host_base::problem::{Category, Problem};
use host_components::{Connections, PublicKey};
use host_gate::Origin;
use host_gate::Question;
use host_gate::{Answer, Ask, declined};
use host_target::{Connection, Given, OwnKey, Target, own_keys};

/// Of one call.
pub struct Control {
    targets: Arc<Targets>,
    /// Where the call works.
    target: Arc<Target>,
    /// Whether its client's connection is a session, which has a current host.
    has_session: bool,
    /// Whether it only says what it would do.
    dry_run: bool,
    /// Who calls, and who can be asked for it.
    origin: Arc<Origin>,
    ask: Arc<dyn Ask>,
}

impl Control {
    /// Of a call that works there.
    pub fn new(
        targets: &Arc<Targets>,
        target: &Arc<Target>,
        (has_session, dry_run): (bool, bool),
        (origin, ask): (Arc<Origin>, Arc<dyn Ask>),
    ) -> Self {
        Self { targets: targets.clone(), target: target.clone(), has_session, dry_run, origin, ask }
    }

    /// A host that wasn't known when the server started may be named from now on, where a person says so: whoever else may
    /// write to the files that name hosts has no say in it.
    async fn allow(&self, host: &str) -> Result<(), Problem> {
        let Some(stranger) = self.targets.stranger(host) else { return Ok(()) };
        let Some(known) = stranger.known_as().await? else { return Ok(()) };
        if known.host_keys.is_empty() {
            // What nobody has seen of the host isn't for a question to vouch for.
            return Ok(());
        }
        match self.ask.ask(Question::about_host(&self.origin, host, &known)?).await? {
            Answer::Yes(_) => self.targets.keep(Arc::new(stranger)).map(drop),
            Answer::No(_) => Err(declined()),
        }
    }

    /// Where calls without `host` work, where they do.
    fn current(&self) -> Result<Arc<Target>, Problem> {
        if self.has_session { self.targets.current() } else { Ok(self.targets.usual().clone()) }
    }

    fn is_current(&self, target: &Target) -> bool {
        self.current().is_ok_and(|current| current.name() == target.name())
    }

    async fn connect_to(&self, host: &str, given: Given) -> Result<Value, Problem> {
        self.allow(host).await?;
        if self.dry_run {
            let mut told = self.tested(host, given).await?;
            told["current"] = self.has_session.into();
            return Ok(told);
        }
        let target = self.targets.given(host, given)?;
        let facts = target.refresh_facts().await?;
        // The machine that the server runs on and the usual one are known anyway.
        let target = if self.targets.used(target.name()).is_some() || !target.is_remote() {
            target
        } else {
            self.targets.keep(target)?
        };
        if self.has_session {
            self.targets.set_current(Some(target.clone()));
        }
        let mut told = json!({
            "host": target.name(),
            "current": self.is_current(&target),
            "hostname": facts.hostname,
            "user": facts.user,
            "distro": facts.name,
            "version": facts.version,
            "sudo": facts.sudo_available,
        });
        if let Some(peer) = target.peer().await {
            told["address"] = format!("{}:{}", peer.hostname, peer.port).into();
            told["host_key"] = peer.host_key.into();
        }
        Ok(told)
    }

    async fn disconnect_from(&self, host: Option<&str>) -> Result<Value, Problem> {
        let target = match host {
            Some(host) => self.targets.used(host).ok_or_else(|| {
                let message = format!("there is no connection to {}", host_text::visible::excerpt(host, 80));
                Problem::new("NOT_CONNECTED", Category::NotFound, message)
            })?,
            None => self.current()?,
        };
        if target.is_pinned() {
            let message = format!("a change is being made on {}", target.name());
            return Err(Problem::new("RESOURCE_LOCKED", Category::Lock, message)
                .remedy("Wait until it is over, or cancel it: without its connection nobody would know what became of it"));
        }
        let was_connected = target.is_connected().await;
        let was_current = self.is_current(&target);
        if !self.dry_run {
            target.leave_connection().await;
            if was_current && self.has_session {
                self.targets.set_current(None);
            }
        }
        let current = if was_current { Ok(self.targets.usual().clone()) } else { self.current() };
        Ok(json!({
            "host": target.name(),
            "was_connected": was_connected,
            "current": current.ok().map(|current| current.name().to_owned()),
        }))
    }

    async fn of_connection(&self) -> Result<Value, Problem> {
        let facts = self.target.facts().await?;
        let mut told = json!({
            "host": self.target.name(),
            "current": self.is_current(&self.target),
            "connected": false,
            "known": self.targets.names(),
        });
        if let Some(connection) = self.target.connection().await? {
            told["connected"] = true.into();
            told["channels"] = connection.channels.into();
            told["uptime_seconds"] = connection.up.as_secs().into();
            told["restored"] = connection.restored.into();
            told["sftp"] = facts.sftp.into();
            told["keepalive_interval_seconds"] = self.targets.keepalive_seconds().into();
            described(&mut told, &connection);
        }
        Ok(told)
    }

    async fn tested(&self, host: &str, given: Given) -> Result<Value, Problem> {
        let target = self.targets.apart(host, given)?;
        let mut told = json!({"host": target.name()});
        if let Some(connection) = target.try_connection().await? {
            told["connect_ms"] = millis(connection.made_in).into();
            described(&mut told, &connection);
        }
        Ok(told)
    }
}

/// Who is there, and by what.
fn described(told: &mut Value, connection: &Connection) {
    let peer = &connection.peer;
    told["address"] = format!("{}:{}", peer.hostname, peer.port).into();
    told["user"] = peer.user.clone().into();
    told["jumps"] = json!(peer.jumps);
    told["server_version"] = peer.server_version.clone().into();
    told["cipher"] = peer.cipher.clone().into();
    told["key_exchange"] = peer.kex.clone().into();
    told["host_key"] = peer.host_key.clone().into();
    told["host_key_algorithm"] = peer.host_key_algorithm.clone().into();
    told["round_trip_ms"] = millis(connection.round_trip).into();
    told["warnings"] = json!(peer.warnings);
}

fn millis(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 10_000.0).round() / 10.0
}

fn public(key: OwnKey) -> PublicKey {
    let OwnKey {
        path,
        algorithm,
        bits,
        fingerprint,
        comment,
        line,
        has_private,
        encrypted,
        in_agent,
        mode,
        ..
    } = key;
    let path = path.map(|path| path.display().to_string());
    PublicKey { path, algorithm, bits, fingerprint, comment, line, has_private, encrypted, in_agent, mode }
}

impl Connections for Control {
    fn connect(&self, host: String, given: Given) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async move { Ok(self.connect_to(&host, given).await?.to_string()) })
    }

    fn disconnect(&self, host: Option<String>) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async move { Ok(self.disconnect_from(host.as_deref()).await?.to_string()) })
    }

    fn is_host(&self, name: &str) -> bool {
        self.targets.is_host(name)
    }

    fn connection(&self) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async move { Ok(self.of_connection().await?.to_string()) })
    }

    fn test(&self, host: String, given: Given) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async move {
            self.allow(&host).await?;
            Ok(self.tested(&host, given).await?.to_string())
        })
    }

    fn public_keys(&self) -> BoxFuture<'_, Result<Vec<PublicKey>, Problem>> {
        Box::pin(async { Ok(own_keys().await?.into_iter().map(public).collect()) })
    }

    fn keys_used(&self) -> Vec<String> {
        self.targets.keys_used()
    }

    fn key_in_use(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { self.target.peer().await?.key })
    }
}
