//! The modules as they are now: loaded by whoever first asks for them, and looked at anew when their files or the
//! configuration change.

use std::sync::{Arc, PoisonError};

use super::Dispatcher;
use crate::arguments::Validators;
use crate::config;
use host_base::problem::{Category, Problem};
use host_components::{Module, Registry, Route, Tool};
use host_target::Facts;
use host_text::spelling;
use host_text::visible::excerpt;

/// What may change while a server runs: calls keep what they began with.
pub struct Live {
    /// The modules and their tools.
    pub registry: Registry,
    pub(super) validators: Validators,
    /// Why the configuration's file is not followed.
    pub config_error: Option<String>,
}

impl Dispatcher {
    /// The modules and their tools as they are now, once they are loaded.
    pub async fn live(&self) -> Arc<Live> {
        self.first_look.get_or_init(|| self.load()).await;
        self.now()
    }

    /// Whether the modules are loaded.
    pub fn is_loaded(&self) -> bool {
        self.first_look.initialized()
    }

    async fn load(&self) {
        let _held = self.reloading.lock().await;
        let registry = self.now().registry.load(&self.places, self.cold).await;
        registry.tell_absent();
        tracing::info!(modules = registry.modules().len(), tools = registry.tools().count(), "loaded");
        self.set_live(Live { registry, validators: Validators::default(), config_error: None });
    }

    fn set_live(&self, live: Live) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(live);
    }

    /// The modules and their tools as they are now: none, before they are loaded.
    pub(super) fn now(&self) -> Arc<Live> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at the modules and at their part of the configuration anew.
    pub async fn reload(&self) {
        // Where nothing was loaded yet, a list that was kept may have been given, and what came of it isn't known.
        let was_loaded = self.is_loaded();
        self.live().await;
        let _held = self.reloading.lock().await;
        let before = self.now();
        let (modules, config_error) = match config::read_again(&self.loaded) {
            Ok(config) => (config.modules, None),
            Err(error) => {
                tracing::error!(%error, "the configuration is not followed; what it said before holds");
                (before.registry.config().clone(), Some(error.to_string()))
            }
        };
        let registry = before.registry.reload(&self.places, &modules).await;
        registry.tell_absent();
        let same = registry.tools().eq(before.registry.tools());
        tracing::info!(modules = registry.modules().len(), same_tools = same, "looked at the modules anew");
        self.set_live(Live { registry, validators: Validators::default(), config_error });
        if !same || !was_loaded {
            self.announce();
        }
    }
}

impl Live {
    /// Whether a tool is about connections or about other calls, which the host has, and no target.
    pub(super) fn is_of_host(&self, tool: &str) -> bool {
        let is_it = |known: &Tool| known.name == tool && known.on_controller;
        let of_host = |module: &&Arc<Module>| module.imports("target-control") || module.imports("jobs");
        self.registry
            .modules()
            .iter()
            .filter(of_host)
            .any(|module| module.description.tools.iter().any(is_it))
    }

    pub(super) fn route(&self, name: &str, facts: &Facts) -> Result<(Arc<Module>, Tool), Problem> {
        match self.registry.route(name, facts) {
            Route::Module(module, tool) => Ok((module, tool)),
            Route::NotServed(reasons) => {
                let message = format!("{name} doesn't work on this target: {}", reasons.join("; "));
                Err(Problem::new("TARGET_NOT_SERVED", Category::State, message))
            }
            Route::Unknown => Err(self.unknown_tool(name)),
        }
    }

    /// Names the tools that were perhaps meant.
    pub(super) fn unknown_tool(&self, name: &str) -> Problem {
        let wanted = excerpt(name, 64);
        let close = spelling::close(name, self.registry.tools().map(|tool| tool.name.as_str()));
        let problem = Problem::new("UNKNOWN_TOOL", Category::NotFound, format!("there is no tool {wanted}"));
        match close.as_slice() {
            [] => problem,
            close => {
                let names = &close[..close.len().min(3)];
                problem.remedy(format!("Did you mean {}?", names.join(", ")))
            }
        }
    }
}
