//! Calls of tools that a module makes within a call of its own. Each goes through the pipeline as a client's call does, on
//! the same target, and is on record with the module that makes it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::call_state::CallState;
use super::pipeline::PreparedCall;
use super::{Caller, Dispatcher, LoadedModules, Request};
use crate::answers::envelope::Envelope;
use crate::arguments::aliases::AppliedAliases;
use crate::arguments::schema::{declares, invalid_arguments};
use crate::arguments::{self, Arguments};
use crate::calls::call_handle::CallEvent;
use crate::calls::call_key::CallKey;
use host_audit::ModuleUsed;
use host_base::problem::{Category, Problem};
use host_base::{Risk, strict_json};
use host_components::host_arguments::{AGENT, HOST};
use host_components::{CallBudget, Tool, ToolCaller};
use host_target::Target;

/// The number of bytes of the arguments of one call as JSON.
const MAX_ARGUMENTS: usize = 64 << 10;

/// The module that makes a call within a call of its own.
#[derive(Clone)]
pub struct CallingModule {
    /// The module.
    pub module: ModuleUsed,
    /// The limits that the call shares with the call within which it is made.
    pub budget: Arc<CallBudget>,
}

/// Calls tools for the module of one call.
pub(super) struct ModuleToolCaller {
    dispatcher: Arc<Dispatcher>,
    modules: Arc<LoadedModules>,
    target: Arc<Target>,
    module: ModuleUsed,
    caller: Caller,
}

impl ModuleToolCaller {
    /// Calls tools for this module, on the target of its call and for the client that makes it.
    pub(super) fn new(
        dispatcher: &Arc<Dispatcher>,
        modules: &Arc<LoadedModules>,
        module: ModuleUsed,
        target: &Arc<Target>,
        call: &CallState,
    ) -> Self {
        let CallState { origin, has_session, agent_id, .. } = call;
        let caller = Caller {
            client: origin.client.clone(),
            protocol: Some(origin.protocol.clone()),
            trace_id: Some(origin.trace_id.clone()),
            has_session: *has_session,
            agent_id: agent_id.clone(),
            // What a module calls gets into no client's list.
            tools: None,
        };
        let (dispatcher, modules, target) = (dispatcher.clone(), modules.clone(), target.clone());
        Self { dispatcher, modules, target, module, caller }
    }

    /// Finds the tool and checks the arguments, which become those of the request.
    fn check(&self, request: &mut Request, given: &str) -> Result<Arguments, Problem> {
        request.arguments = parse(given)?;
        let tool = self.modules.registry.tool(&request.tool).filter(|tool| tool.name == request.tool);
        let tool = tool.ok_or_else(|| self.modules.unknown_tool(&request.tool, &request.arguments))?;
        if tool.risk > Risk::ReadOnly {
            let message = format!("{} changes something: a module calls only tools that look", tool.name);
            return Err(Problem::new("NOT_READ_ONLY", Category::Denied, message));
        }
        if tool.on_controller {
            let message = format!(
                "{} works on the machine that the server runs on: a module calls only tools that work on its own \
                 call's target",
                tool.name
            );
            return Err(Problem::new("CONTROLLER_TOOL", Category::Denied, message));
        }
        let decided = [HOST, AGENT].into_iter().filter(|name| is_decided(tool, name, &request.arguments));
        let decided: Vec<String> =
            decided.map(|name| format!("{name} is that of the module's own call")).collect();
        if !decided.is_empty() {
            return Err(invalid_arguments(tool, decided));
        }
        let validators = &self.modules.validators;
        request.aliases.apply(validators, tool, &mut request.tool, &mut request.arguments)?;
        arguments::check(validators, tool, None, request.arguments.clone(), &request.aliases)
    }
}

impl ToolCaller for ModuleToolCaller {
    fn call(
        &self,
        tool: String,
        arguments: String,
        budget: Arc<CallBudget>,
    ) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async move {
            let mut request = Request {
                tool,
                arguments: Map::new(),
                aliases: AppliedAliases::default(),
                caller: self.caller.clone(),
                two_step: false,
                answered: None,
            };
            let arguments = self.check(&mut request, &arguments);
            let key = CallKey::new(&request.tool, &request.arguments, None, [self.target.name()]);
            let calling = Some(CallingModule { module: self.module.clone(), budget });
            let (modules, target) = (self.modules.clone(), self.target.clone());
            let call = PreparedCall { modules, request, arguments, target, calling };
            let mut call = self.dispatcher.begin_on(call, key, &self.dispatcher.tool_call_pool);
            loop {
                match call.next_event().await {
                    CallEvent::Ended(envelope) => return result(*envelope),
                    // A tool that only looks asks nothing. Where one did, the question would get no answer.
                    CallEvent::Asks(question) => drop(question),
                }
            }
        })
    }
}

/// Reads the arguments of a call.
fn parse(given: &str) -> Result<Map<String, Value>, Problem> {
    let wrong = |code, message| Err(Problem::new(code, Category::Validation, message));
    if given.len() > MAX_ARGUMENTS {
        let message =
            format!("the arguments are {} bytes as JSON; at most {MAX_ARGUMENTS} are taken", given.len());
        return wrong("ARGUMENTS_TOO_LARGE", message);
    }
    match strict_json::parse(given.as_bytes()) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => wrong("INVALID_ARGUMENTS", "the arguments are no JSON object, which is expected".to_owned()),
        Err(error) => wrong("INVALID_ARGUMENTS", format!("the arguments are no JSON: {error}")),
    }
}

/// Whether the arguments say what the call of the module decides.
fn is_decided(tool: &Tool, name: &str, arguments: &Map<String, Value>) -> bool {
    arguments.contains_key(name) && !declares(&tool.input_schema, name)
}

/// The envelope as JSON, or the problem that it tells.
fn result(envelope: Envelope) -> Result<String, Problem> {
    if let Some(failure) = envelope.error {
        return Err(Problem {
            code: failure.error_code,
            category: failure.error_category,
            message: failure.message,
            remediation: failure.remediation,
            details: Box::new(failure.details),
        });
    }
    let mut members = envelope.into_json();
    members.retain(|_, value| !value.is_null());
    Ok(Value::Object(members).to_string())
}

#[cfg(test)]
mod tests;
