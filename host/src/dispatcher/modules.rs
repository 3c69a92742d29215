//! The modules as they are now: loaded by whoever first asks for them, and looked at anew when their files or the
//! configuration change.

use std::sync::{Arc, PoisonError};

use super::Dispatcher;
use crate::arguments::Validators;
use crate::config;
use crate::live::Live;

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
