//! The session interface: tells a module facts about the server, its modules and the target.

use std::sync::Arc;

use serde_json::{Value, json};

use super::loaded_modules::LoadedModules;
use crate::config::{IntegrationMode, LoadedConfig};
use host_components::{CONTRACT, Module, SessionService, UnusedModule};
use host_gate::Safety;
use host_knowledge::{LazyKnowledge, TargetServices};
use host_system_mode::Mode;
use host_system_mode::sudoers::reference;
use host_target::{Facts, Target};

/// The state from which the session of one call is described.
pub struct SessionInfo {
    modules: Arc<LoadedModules>,
    target: Arc<Target>,
    safety: Safety,
    integration_mode: IntegrationMode,
    config_path: String,
    mode: Mode,
    first_run: bool,
    knowledge: LazyKnowledge,
}

impl SessionInfo {
    /// Gathers it for a call that has begun. `first_run` is true in one call of the first server only.
    pub fn new(
        modules: &Arc<LoadedModules>,
        target: &Arc<Target>,
        loaded: &LoadedConfig,
        mode: Mode,
        first_run: bool,
        knowledge: &LazyKnowledge,
    ) -> Arc<Self> {
        Arc::new(Self {
            modules: modules.clone(),
            target: target.clone(),
            safety: loaded.config.safety.clone(),
            integration_mode: loaded.config.integration_mode,
            config_path: loaded.path.display().to_string(),
            mode,
            first_run,
            knowledge: knowledge.clone(),
        })
    }

    /// The interface for a module that imports it.
    pub async fn session(self: &Arc<Self>, facts: &Facts) -> SessionService {
        let (refresh, sudoers) = (self.clone(), self.clone());
        let account = facts.user.clone();
        SessionService {
            snapshot: self.snapshot(facts, false).await,
            refresh: Box::new(move || {
                let info = refresh.clone();
                Box::pin(async move {
                    let facts = info.target.refresh_facts().await?;
                    Ok(info.snapshot(&facts, true).await)
                })
            }),
            sudoers: Box::new(move |name| {
                let (info, account) = (sudoers.clone(), account.clone());
                Box::pin(async move {
                    let mut modules = info.modules.registry.modules().iter();
                    let module = modules.find(|module| module.description.name == name)?;
                    Some(reference(&info.target, module, &account, &info.knowledge).await)
                })
            }),
        }
    }

    /// The session as a JSON object, which `wit/session.wit` documents. `refresh` looks for the target's services again.
    async fn snapshot(&self, facts: &Facts, refresh: bool) -> String {
        let registry = &self.modules.registry;
        let modules = registry.modules().iter().map(|module| module_json(module, facts));
        let modules: Vec<Value> = modules.chain(registry.unused_modules().iter().map(unused_json)).collect();
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
        let seen = self.target.services(refresh).await.unwrap_or_default();
        let (profiles, unresolved) = TargetServices::new(knowledge, &facts.family, &seen).to_json();
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
        if let Some(error) = &self.modules.config_error {
            snapshot["config_error"] = json!(error);
        }
        if self.first_run {
            snapshot["config_generated"] = json!(self.config_path);
        }
        snapshot.to_string()
    }
}

fn module_json(module: &Arc<Module>, facts: &Facts) -> Value {
    let description = &module.description;
    let tools: Vec<&str> = description.tools.iter().map(|tool| tool.name.as_str()).collect();
    let refuses = description.refuses(facts);
    let mut json = json!({
        "name": description.name,
        "version": description.version,
        "origin": module.origin,
        "sha256": module.sha256,
        "tools": tools,
        "serves": refuses.is_none(),
    });
    if let Some(reason) = refuses {
        json["reason"] = reason.into();
    }
    json
}

fn unused_json(unused: &UnusedModule) -> Value {
    let why = if unused.disabled { "disabled" } else { "error" };
    json!({"name": unused.name, "origin": unused.origin, why: unused.reason})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatcher::Dispatcher;
    use host_target::Overrides;

    #[tokio::test]
    async fn a_snapshot_has_every_member_and_a_refreshed_one_has_them_too() {
        let modules = Dispatcher::without_modules().modules().await;
        let target = Arc::new(Target::local(Overrides::default()));
        let loaded = LoadedConfig { config: Default::default(), path: "/c.yaml".into(), generated: true };
        let mut facts = (*target.facts().await.unwrap()).clone();
        facts.missing = vec!["no-such-program".to_owned()];
        let info =
            SessionInfo::new(&modules, &target, &loaded, Mode::SingleUser, true, &LazyKnowledge::default());
        let session = info.session(&facts).await;
        let told: Value = serde_json::from_str(&session.snapshot).unwrap();
        assert_eq!(
            (&told["target_host"], &told["missing"]),
            (&json!("localhost"), &json!(["no-such-program"]))
        );
        assert_eq!((&told["first_run"], &told["config_generated"]), (&json!(true), &json!("/c.yaml")));
        assert_eq!(told["safety"]["mode"], "single-user");
        assert!(told["distro"]["hostname"].is_string() && told.get("connection").is_none(), "{told}");
        // A refreshed snapshot has the target's facts, and not those that were passed in before.
        let refreshed: Value = serde_json::from_str(&(session.refresh)().await.unwrap()).unwrap();
        let missing = json!(target.facts().await.unwrap().missing);
        assert_eq!((&refreshed["missing"], &refreshed["first_run"]), (&missing, &json!(true)));
    }
}
