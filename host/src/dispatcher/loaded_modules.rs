//! The modules and their tools as they are loaded at one time. A call keeps those that it began with.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::arguments::{self, Validators};
use host_base::problem::{Category, Problem};
use host_components::{Module, Origin, Registry, Route, Tool};
use host_target::Facts;
use host_text::suggestion;
use host_text::visible::excerpt;

/// The modules that are loaded, with what depends on them.
pub struct LoadedModules {
    /// The modules and their tools.
    pub registry: Registry,
    /// The compiled schemas of the tools' arguments.
    pub validators: Validators,
    /// The reason why the configuration file as it is now is not used.
    pub config_error: Option<String>,
}

impl LoadedModules {
    /// True for a tool about the server's own connections, jobs or tools, which works on no target.
    pub fn is_server_tool(&self, tool: &str) -> bool {
        let is_it = |known: &Tool| known.name == tool && known.on_controller;
        let is_about_server = |module: &&Arc<Module>| {
            ["target-control", "jobs", "session"].iter().any(|interface| module.imports(interface))
        };
        self.registry
            .modules()
            .iter()
            .filter(is_about_server)
            .any(|module| module.description.tools.iter().any(is_it))
    }

    /// Chooses the module whose tool of this name serves a target with these facts.
    pub fn route(&self, name: &str, facts: &Facts) -> Result<(Arc<Module>, Tool), Problem> {
        match self.registry.route(name, facts) {
            Route::Module(module, tool) => Ok((module, tool)),
            Route::NotServed(reasons) => {
                let message = format!("{name} doesn't work on this target: {}", reasons.join("; "));
                Err(Problem::new("TARGET_NOT_SERVED", Category::State, message))
            }
            Route::Unknown => Err(self.unknown_tool(name, &Map::new())),
        }
    }

    /// The steps that name tools which help with errors of this code. Only modules that come with this program give advice
    /// about other modules' errors.
    pub fn helping_calls(&self, code: &str) -> Vec<String> {
        let own = self.registry.modules().iter().filter(|module| module.origin == Origin::Host);
        let tools = own.flat_map(|module| &module.description.tools);
        let helps = tools.flat_map(|tool| &tool.helps).filter(|help| help.code == code);
        let mut steps: Vec<String> = Vec::new();
        for help in helps {
            // Modules of which one serves the target have their tools in common.
            if !steps.contains(&help.step) {
                steps.push(help.step.clone());
            }
        }
        steps
    }

    /// The error of a tool that does not exist, with tools of similar names, and with the call of the most similar one.
    pub fn unknown_tool(&self, name: &str, arguments: &Map<String, Value>) -> Problem {
        let wanted = excerpt(name, 64);
        if let Some(unused) = self.registry.unused_with(name) {
            let message = format!(
                "{wanted} is a tool of the module {}, which isn't used: {}",
                unused.name, unused.reason
            );
            return Problem::new("UNKNOWN_TOOL", Category::NotFound, message);
        }
        let mut close = suggestion::closest(name, self.registry.tools().map(|tool| tool.name.as_str()));
        if close.is_empty() {
            let tools = self.registry.tools().map(|tool| (tool.name.as_str(), tool.summary.as_str()));
            close = suggestion::by_words(name, tools);
        }
        let problem = Problem::new("UNKNOWN_TOOL", Category::NotFound, format!("there is no tool {wanted}"));
        match close.as_slice() {
            [] => problem,
            close => {
                let names = &close[..close.len().min(3)];
                let tool = names.first().and_then(|name| self.registry.tool(name));
                let call = tool.and_then(|tool| arguments::written_out(&self.validators, tool, arguments));
                let problem = problem.remedy(format!("Did you mean {}?", names.join(", ")));
                call.into_iter().fold(problem, Problem::remedy)
            }
        }
    }
}
