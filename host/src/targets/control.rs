//! The target-control interface: lets a module connect to hosts, disconnect from them, and choose the current one.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::Targets;
use host_base::problem::{Category, Problem};
use host_components::{ConnectionService, PublicKey};
use host_gate::Origin;
use host_gate::Question;
use host_gate::{Answer, Confirmer, declined};
use host_target::{ConnectionInfo, KnownHost, OwnKey, SshOptions, Target, own_keys};

/// The interface for one call.
pub struct TargetControl {
    targets: Arc<Targets>,
    /// The target of the call.
    target: Arc<Target>,
    /// Whether the client's connection is a session, which has a current host.
    has_session: bool,
    /// Whether the call is a dry run.
    dry_run: bool,
    /// The caller, for the question.
    origin: Arc<Origin>,
    ask: Arc<dyn Confirmer>,
}

impl TargetControl {
    /// Makes the interface for a call on this target.
    pub fn new(
        targets: &Arc<Targets>,
        target: &Arc<Target>,
        (has_session, dry_run): (bool, bool),
        (origin, ask): (Arc<Origin>, Arc<dyn Confirmer>),
    ) -> Self {
        Self { targets: targets.clone(), target: target.clone(), has_session, dry_run, origin, ask }
    }

    /// Asks a person whether calls may name a host that was not known when the server started, or reach a host otherwise than
    /// the configuration says: as another account, at another port, or with another key. For a host it is not enough that the
    /// files that name hosts have it now: a model with a shell could have written to them.
    async fn allow(&self, host: &str, options: &SshOptions) -> Result<(), Problem> {
        let stranger = self.targets.unconfirmed(host);
        let target = match &stranger {
            Some(_) => self.targets.unconfirmed_with(host, options),
            None if *options == SshOptions::default() => return Ok(()),
            None => self.targets.with_options(host, options.clone())?,
        };
        if stranger.is_none() && self.targets.find_used(target.name()).is_some() {
            return Ok(());
        }
        let Some(known) = target.known_host().await? else { return Ok(()) };
        let because = match &stranger {
            Some(_) => {
                "it was no host of ~/.ssh/config, known_hosts or the inventory when the server started"
                    .to_owned()
            }
            None => {
                let usual = self.targets.with_options(host, SshOptions::default())?.known_host().await?;
                match usual.and_then(|usual| otherwise(&usual, &known, options)) {
                    Some(because) => because,
                    None => return Ok(()),
                }
            }
        };
        if !known.may_be_reached() {
            // The question could not say which machine it is. Connecting fails later.
            return Ok(());
        }
        match self.ask.ask(Question::about_host(&self.origin, host, &known, &because)?).await? {
            Answer::Yes(_) => {
                // The configuration may lead elsewhere by now.
                if target.known_host().await?.as_ref() != Some(&known) {
                    let message = "the configuration of ssh has changed since it was shown: nothing was done";
                    return Err(Problem::new("PLAN_STALE", Category::State, message)
                        .remedy("Make the call again: it shows where it leads now"));
                }
                if let Some(stranger) = stranger {
                    self.targets.remember(Arc::new(stranger))?;
                }
                self.targets.remember(target).map(drop)
            }
            Answer::No(_) => Err(declined()),
        }
    }

    /// The target of calls that name no host.
    fn current(&self) -> Result<Arc<Target>, Problem> {
        if self.has_session { self.targets.current() } else { Ok(self.targets.usual().clone()) }
    }

    fn is_current(&self, target: &Target) -> bool {
        self.current().is_ok_and(|current| current.name() == target.name())
    }

    async fn connect_to(&self, host: &str, options: SshOptions) -> Result<Value, Problem> {
        self.allow(host, &options).await?;
        if self.dry_run {
            let mut answer = self.test_host(host, options).await?;
            answer["current"] = self.has_session.into();
            return Ok(answer);
        }
        let target = self.targets.with_options(host, options)?;
        let facts = target.refresh_facts().await?;
        // This machine and the usual target are known anyway.
        let target = if self.targets.find_used(target.name()).is_some() || !target.is_remote() {
            target
        } else {
            self.targets.remember(target)?
        };
        if self.has_session {
            self.targets.set_current(Some(target.clone()));
        }
        let mut answer = json!({
            "host": target.name(),
            "current": self.is_current(&target),
            "hostname": facts.hostname,
            "user": facts.user,
            "distro": facts.name,
            "version": facts.version,
            "sudo": facts.sudo_available,
        });
        if let Some(peer) = target.peer().await {
            answer["address"] = format!("{}:{}", peer.hostname, peer.port).into();
            answer["host_key"] = peer.host_key.into();
        }
        Ok(answer)
    }

    async fn disconnect_from(&self, host: Option<&str>) -> Result<Value, Problem> {
        let target = match host {
            Some(host) => self.targets.find_used(host).ok_or_else(|| {
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
            target.drop_connection().await;
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

    async fn describe_connection(&self) -> Result<Value, Problem> {
        let facts = self.target.facts().await?;
        let mut answer = json!({
            "host": self.target.name(),
            "current": self.is_current(&self.target),
            "connected": false,
            "known": self.targets.names(),
        });
        if let Some(connection) = self.target.connection_info().await? {
            answer["connected"] = true.into();
            answer["channels"] = connection.channels.into();
            answer["uptime_seconds"] = connection.up.as_secs().into();
            answer["restored"] = connection.restored.into();
            answer["sftp"] = facts.sftp.into();
            answer["keepalive_interval_seconds"] = self.targets.keepalive_seconds().into();
            add_connection(&mut answer, &connection);
        }
        Ok(answer)
    }

    async fn test_host(&self, host: &str, options: SshOptions) -> Result<Value, Problem> {
        let target = self.targets.temporary(host, options)?;
        let mut answer = json!({"host": target.name()});
        if let Some(connection) = target.probe_connection().await? {
            answer["connect_ms"] = millis(connection.made_in).into();
            add_connection(&mut answer, &connection);
        }
        Ok(answer)
    }
}

/// Adds the peer and the algorithms of a connection to the answer.
fn add_connection(answer: &mut Value, connection: &ConnectionInfo) {
    let peer = &connection.peer;
    answer["address"] = format!("{}:{}", peer.hostname, peer.port).into();
    answer["user"] = peer.user.clone().into();
    answer["jumps"] = json!(peer.jumps);
    answer["server_version"] = peer.server_version.clone().into();
    answer["cipher"] = peer.cipher.clone().into();
    answer["key_exchange"] = peer.kex.clone().into();
    answer["host_key"] = peer.host_key.clone().into();
    answer["host_key_algorithm"] = peer.host_key_algorithm.clone().into();
    answer["round_trip_ms"] = millis(connection.round_trip).into();
    answer["warnings"] = json!(peer.warnings);
}

/// The differences from the configuration where a host is reached with these options. None where there are none.
fn otherwise(usual: &KnownHost, known: &KnownHost, options: &SshOptions) -> Option<String> {
    let mut differs = Vec::new();
    if usual.user != known.user {
        differs.push(format!("that it is worked on as {}", usual.user));
    }
    if usual.address != known.address {
        differs.push(format!("that it is at {}", usual.address));
    }
    if let Some(file) = &options.identity_file {
        differs.push(format!("nothing of the key {} for it", file.display()));
    }
    (!differs.is_empty()).then(|| format!("the configuration says {}", differs.join(" and ")))
}

fn millis(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 10_000.0).round() / 10.0
}

fn public_key(key: OwnKey) -> PublicKey {
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

impl ConnectionService for TargetControl {
    fn connect(&self, host: String, options: SshOptions) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async move { Ok(self.connect_to(&host, options).await?.to_string()) })
    }

    fn disconnect(&self, host: Option<String>) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async move { Ok(self.disconnect_from(host.as_deref()).await?.to_string()) })
    }

    fn is_host(&self, name: &str) -> bool {
        self.targets.is_host(name)
    }

    fn connection(&self) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async move { Ok(self.describe_connection().await?.to_string()) })
    }

    fn test(&self, host: String, options: SshOptions) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async move {
            self.allow(&host, &options).await?;
            Ok(self.test_host(&host, options).await?.to_string())
        })
    }

    fn public_keys(&self) -> BoxFuture<'_, Result<Vec<PublicKey>, Problem>> {
        Box::pin(async { Ok(own_keys().await?.into_iter().map(public_key).collect()) })
    }

    fn keys_used(&self) -> Vec<String> {
        self.targets.keys_used()
    }

    fn key_in_use(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { self.target.peer().await?.key })
    }
}
