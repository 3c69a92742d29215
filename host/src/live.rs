//! The modules and their tools as they are at one time: calls keep those that they began with.

use std::sync::Arc;

use crate::arguments::Validators;
use host_base::problem::{Category, Problem};
use host_components::{Module, Registry, Route, Tool};
use host_target::Facts;
use host_text::spelling;
use host_text::visible::excerpt;

/// What may change while a server runs: calls keep what they began with.
pub struct Live {
    /// The modules and their tools.
    pub registry: Registry,
    pub validators: Validators,
    /// Why the configuration's file is not followed.
    pub config_error: Option<String>,
}

impl Live {
    /// Whether a tool is about connections or about other calls, which the host has, and no target.
    pub fn is_of_host(&self, tool: &str) -> bool {
        let is_it = |known: &Tool| known.name == tool && known.on_controller;
        let of_host = |module: &&Arc<Module>| module.imports("target-control") || module.imports("jobs");
        self.registry
            .modules()
            .iter()
            .filter(of_host)
            .any(|module| module.description.tools.iter().any(is_it))
    }

    pub fn route(&self, name: &str, facts: &Facts) -> Result<(Arc<Module>, Tool), Problem> {
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
    pub fn unknown_tool(&self, name: &str) -> Problem {
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
