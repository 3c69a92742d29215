//! Loads the modules when a request first needs them, and again when their files or the configuration change.

use std::sync::{Arc, PoisonError};

use super::Dispatcher;
use super::loaded_modules::LoadedModules;
use crate::arguments::Validators;
use crate::config;

impl Dispatcher {
    /// The modules as they are now. The first call loads them.
    pub async fn modules(&self) -> Arc<LoadedModules> {
        // Boxed, because every call would have room for it.
        self.first_load.get_or_init(|| Box::pin(self.load())).await;
        self.current_modules()
    }

    /// Whether the modules are loaded.
    pub fn is_loaded(&self) -> bool {
        self.first_load.initialized()
    }

    async fn load(&self) {
        let _guard = self.reloading.lock().await;
        let registry = self.current_modules().registry.load(&self.places, self.cold).await;
        registry.log_unused();
        tracing::info!(modules = registry.modules().len(), tools = registry.tools().count(), "loaded");
        self.set_modules(LoadedModules { registry, validators: Validators::default(), config_error: None });
    }

    fn set_modules(&self, modules: LoadedModules) {
        *self.modules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(modules);
    }

    /// The modules as they are now, without loading them: none before the first load.
    pub(super) fn current_modules(&self) -> Arc<LoadedModules> {
        self.modules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the modules and their part of the configuration again.
    pub async fn reload(&self) {
        // Before the first load a client may have got a cached list of tools, and nobody knows whether it still holds.
        let was_loaded = self.is_loaded();
        self.modules().await;
        let _guard = self.reloading.lock().await;
        let before = self.current_modules();
        let (modules, config_error) = match config::reload(&self.loaded_config) {
            Ok(config) => (config.modules, None),
            Err(error) => {
                tracing::error!(%error, "the configuration is not followed; what it said before holds");
                (before.registry.config().clone(), Some(error.to_string()))
            }
        };
        let registry = before.registry.reload(&self.places, &modules).await;
        registry.log_unused();
        let same = registry.tools().eq(before.registry.tools());
        tracing::info!(modules = registry.modules().len(), same_tools = same, "looked at the modules anew");
        self.set_modules(LoadedModules { registry, validators: Validators::default(), config_error });
        if !same || !was_loaded {
            self.announce_tools_changed();
        }
    }
}
