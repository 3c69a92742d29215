//! What the session interface tells: what the host knows of itself and of its target.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::config::{IntegrationMode, Loaded};
use crate::live::Live;
use host_components::{Absent, CONTRACT, Module, Session};
use host_gate::Safety;
use host_knowledge::{Lazy, Resolved};
use host_system_mode::Mode;
use host_target::{Facts, Target};

/// What it is told from, for one call.
pub struct Known {
    live: Arc<Live>,
    target: Arc<Target>,
    safety: Safety,
    integration_mode: IntegrationMode,
    config_path: String,
    mode: Mode,
    first_run: bool,
    knowledge: Lazy,
}

impl Known {
    /// Of a call that has begun. `first_run` is told once.
    pub fn new(
        live: &Arc<Live>,
        target: &Arc<Target>,
        loaded: &Loaded,
        mode: Mode,
        first_run: bool,
        knowledge: &Lazy,
    ) -> Arc<Self> {
        Arc::new(Self {
            live: live.clone(),
            target: target.clone(),
            safety: loaded.config.safety.clone(),
            integration_mode: loaded.config.integration_mode,
            config_path: loaded.path.display().to_string(),
            mode,
            first_run,
            knowledge: knowledge.clone(),
        })
    }

    /// For a module that imports it.
    pub async fn session(self: &Arc<Self>, facts: &Facts) -> Session {
        let (again, sudoers) = (self.clone(), self.clone());
        let account = facts.user.clone();
        Session {
            snapshot: self.snapshot(facts, false).await,
            refresh: Box::new(move || {
                let known = again.clone();
                Box::pin(async move {
                    let facts = known.target.refresh_facts().await?;
                    Ok(known.snapshot(&facts, true).await)
                })
            }),
            sudoers: Box::new(move || {
                let (known, account) = (sudoers.clone(), account.clone());
                Box::pin(async move {
                    let modules = known.live.registry.modules().iter();
                    let fragments = modules.map(|module| {
                        host_system_mode::sudoers::reference(
                            &known.target,
                            module,
                            &account,
                            &known.knowledge,
                        )
                    });
                    futures_util::future::join_all(fragments).await
                })
            }),
        }
    }

    /// A JSON object, documented in `wit/session.wit`.
    async fn snapshot(&self, facts: &Facts, anew: bool) -> String {
        let registry = &self.live.registry;
        let modules = registry.modules().iter().map(|module| shown(module, facts));
        let modules: Vec<Value> = modules.chain(registry.absent().iter().map(absent)).collect();
        let mut snapshot = json!({
            "target_host": self.target.name(),
            "distro": facts,
            "missing": facts.missing,
            "privilege": {
                "user": facts.user,
                "uid": facts.uid,
                "root": facts.uid == 0,
                "sudo": facts.sudo_available,
                "sudo_limited": facts.sudo_limited,
            },
            "server": {"version": env!("CARGO_PKG_VERSION"), "contract": CONTRACT},
            "modules": modules,
            "safety": {
                "mode": match self.mode {
                    Mode::SingleUser => "single-user",
                    Mode::System { .. } => "system",
                },
                "confirmation": self.safety.confirmation,
                "confirmation_threshold": self.safety.confirmation_threshold,
            },
            "integration_mode": self.integration_mode,
            "config_path": self.config_path,
            "first_run": self.first_run,
        });
        let knowledge = self.knowledge.get();
        let seen = self.target.services(anew).await.unwrap_or_default();
        let (profiles, unresolved) = Resolved::new(knowledge, &facts.family, &seen).shown();
        snapshot["detected_profiles"] = profiles.into();
        snapshot["unresolved_roles"] = unresolved.into();
        if !knowledge.warnings().is_empty() {
            snapshot["profile_warnings"] = json!(knowledge.warnings());
        }
        if let Some(peer) = self.target.peer().await {
            snapshot["connection"] = json!({
                "address": format!("{}:{}", peer.hostname, peer.port),
                "jumps": peer.jumps,
                "host_key": peer.host_key,
                "host_key_algorithm": peer.host_key_algorithm,
                "sftp": facts.sftp,
                "warnings": peer.warnings,
            });
        }
        if let Some(error) = &self.live.config_error {
            snapshot["config_error"] = json!(error);
        }
        if self.first_run {
            snapshot["config_generated"] = json!(self.config_path);
        }
        snapshot.to_string()
    }
}

fn shown(module: &Arc<Module>, facts: &Facts) -> Value {
    let description = &module.description;
    let tools: Vec<&str> = description.tools.iter().map(|tool| tool.name.as_str()).collect();
    let refuses = description.refuses(facts);
    let mut shown = json!({
        "name": description.name,
        "version": description.version,
        "origin": module.origin,
        "sha256": module.sha256,
        "tools": tools,
        "serves": refuses.is_none(),
    });
    if let Some(reason) = refuses {
        shown["reason"] = reason.into();
    }
    shown
}

fn absent(absent: &Absent) -> Value {
    let why = if absent.disabled { "disabled" } else { "error" };
    json!({"name": absent.name, "origin": absent.origin, why: absent.reason})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatcher::Dispatcher;
    use host_target::Overrides;

    #[tokio::test]
    async fn what_is_told_has_every_member_and_the_same_again_when_it_is_gathered_anew() {
        let live = Dispatcher::without_modules().live().await;
        let target = Arc::new(Target::local(Overrides::default()));
        let loaded = Loaded { config: Default::default(), path: "/c.yaml".into(), generated: true };
        let mut facts = (*target.facts().await.unwrap()).clone();
        facts.missing = vec!["no-such-program".to_owned()];
        let known = Known::new(&live, &target, &loaded, Mode::SingleUser, true, &Lazy::default());
        let session = known.session(&facts).await;
        let told: Value = serde_json::from_str(&session.snapshot).unwrap();
        assert_eq!(
            (&told["target_host"], &told["missing"]),
            (&json!("localhost"), &json!(["no-such-program"]))
        );
        assert_eq!((&told["first_run"], &told["config_generated"]), (&json!(true), &json!("/c.yaml")));
        assert_eq!(told["safety"]["mode"], "single-user");
        assert!(told["distro"]["hostname"].is_string() && told.get("connection").is_none(), "{told}");
        // Of the target, and not of what was known before.
        let anew: Value = serde_json::from_str(&(session.refresh)().await.unwrap()).unwrap();
        let missing = json!(target.facts().await.unwrap().missing);
        assert_eq!((&anew["missing"], &anew["first_run"]), (&missing, &json!(true)));
    }
}
