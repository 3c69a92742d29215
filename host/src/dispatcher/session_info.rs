//! The session interface: tells a module facts about the server, its modules and the target.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::ClientTools;
use super::loaded_modules::LoadedModules;
use crate::config::IntegrationMode;
use host_base::problem::Problem;
use host_components::{CONTRACT, ListedTool, Module, SessionService, UnusedModule};
use host_gate::Safety;
use host_knowledge::{LazyKnowledge, TargetServices};
use host_system_mode::Mode;
use host_system_mode::sudoers::reference;
use host_target::{Facts, Target};

/// The state from which the session of one call is described.
pub struct SessionInfo {
    pub(super) modules: Arc<LoadedModules>,
    pub(super) target: Arc<Target>,
    /// The target's facts as they were when the call began.
    pub(super) facts: Arc<Facts>,
    pub(super) safety: Safety,
    pub(super) integration_mode: IntegrationMode,
    pub(super) config_path: String,
    pub(super) mode: Mode,
    /// True until the first snapshot of a server that has just written its configuration file.
    pub(super) first_run: Arc<AtomicBool>,
    pub(super) knowledge: LazyKnowledge,
    /// The client's list of tools, where it has one.
    pub(super) client_tools: Option<Arc<ClientTools>>,
}

impl SessionService for SessionInfo {
    fn snapshot(&self) -> BoxFuture<'_, String> {
        Box::pin(self.describe(&self.facts, false))
    }

    fn refresh(&self) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async {
            let facts = self.target.refresh_facts().await?;
            Ok(self.describe(&facts, true).await)
        })
    }

    fn sudoers(&self, name: String) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move {
            let mut modules = self.modules.registry.modules().iter();
            let module = modules.find(|module| module.description.name == name)?;
            Some(reference(&self.target, module, &self.facts.user, &self.knowledge).await)
        })
    }

    fn tools(&self) -> Vec<ListedTool> {
        let all = self.modules.registry.tools_with_modules();
        all.map(|(module, tool)| ListedTool {
            name: tool.name.clone(),
            summary: tool.summary.clone(),
            domain: module.description.domain.clone(),
            module: module.description.summary.clone(),
        })
        .collect()
    }

    fn list_tools(&self, names: Vec<String>) -> Vec<String> {
        let Some(client) = &self.client_tools else { return Vec::new() };
        let is_tool = |name: &String| self.modules.registry.tool(name).is_some_and(|tool| tool.name == *name);
        client.add(names.into_iter().filter(is_tool).collect())
    }
}

impl SessionInfo {
    /// The session as a JSON object, which `wit/session.wit` documents. `refresh` looks for the target's services again.
    async fn describe(&self, facts: &Facts, refresh: bool) -> String {
        let first_run = self.first_run.swap(false, Ordering::Relaxed);
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
            "first_run": first_run,
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
        if first_run {
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
    use crate::config::Listing;
    use crate::dispatcher::Dispatcher;
    use host_target::Overrides;

    async fn session(client_tools: Option<Arc<ClientTools>>) -> SessionInfo {
        let target = Arc::new(Target::local(Overrides::default()));
        let mut facts = (*target.facts().await.unwrap()).clone();
        facts.missing = vec!["no-such-program".to_owned()];
        SessionInfo {
            modules: Dispatcher::without_modules().modules().await,
            target,
            facts: Arc::new(facts),
            safety: Safety::default(),
            integration_mode: IntegrationMode::default(),
            config_path: "/c.yaml".to_owned(),
            mode: Mode::SingleUser,
            first_run: Arc::new(AtomicBool::new(true)),
            knowledge: LazyKnowledge::default(),
            client_tools,
        }
    }

    #[tokio::test]
    async fn a_snapshot_has_every_member_and_a_refreshed_one_has_the_targets_facts() {
        let session = session(None).await;
        let told: Value = serde_json::from_str(&session.snapshot().await).unwrap();
        assert_eq!(
            (&told["target_host"], &told["missing"]),
            (&json!("localhost"), &json!(["no-such-program"]))
        );
        assert_eq!((&told["first_run"], &told["config_generated"]), (&json!(true), &json!("/c.yaml")));
        assert_eq!(told["safety"]["mode"], "single-user");
        assert!(told["distro"]["hostname"].is_string() && told.get("connection").is_none(), "{told}");
        let refreshed: Value = serde_json::from_str(&session.refresh().await.unwrap()).unwrap();
        assert_eq!(refreshed["missing"], json!(session.target.facts().await.unwrap().missing));
        // Only the first answer is that of a first run.
        assert_eq!((&refreshed["first_run"], refreshed.get("config_generated")), (&json!(false), None));
    }

    #[tokio::test]
    async fn what_is_no_tool_gets_into_no_list() {
        let client = Arc::new(ClientTools::new(Listing::Compact));
        let session = session(Some(client.clone())).await;
        assert!(session.tools().is_empty());
        assert!(session.list_tools(vec!["no_such_tool".to_owned()]).is_empty());
        assert!(!client.additions().has_changed().unwrap());
    }
}
