//! The interface by which a module calls other modules' read-only tools within a call of its own.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;

use super::bindings::sysadmin::module::tool_calls;
use super::imports::GuestResult;
use super::limits::CallBudget;
use super::store::{Call, State};
use super::tool_caller::ToolCaller;
use host_base::problem::{Category, Problem};

/// The number of calls of other modules' tools that one call makes at most. Each of them is a record in the audit log.
const MAX_TOOL_CALLS: usize = 32;

/// The number of problems that are told to a guest which asks for too many calls. It could ask for a million.
const MOST_PROBLEMS: usize = 1000;

/// The number of bytes of all results that one call into the host gives.
const RESULT_BYTES: usize = 8 << 20;

impl tool_calls::Host for State {
    async fn call_all(
        &mut self,
        calls: Vec<tool_calls::ToolCall>,
    ) -> wasmtime::Result<Vec<GuestResult<String>>> {
        let budget = self.budget.clone();
        let call = self.call()?;
        let caller = match call.tool_caller(&budget, calls.len()) {
            Ok(caller) => caller,
            Err(problem) if calls.len() > MOST_PROBLEMS => return Err(problem.into()),
            Err(problem) => return Ok(vec![call.to_guest(Err(problem)); calls.len()]),
        };
        let bytes = AtomicUsize::new(0);
        let results = join_all(calls.into_iter().map(|asked| async {
            let tool_calls::ToolCall { tool, arguments } = asked;
            call.grants().may_call(&tool).inspect_err(|problem| call.log.refused(problem, &[]))?;
            let result = caller.call(tool, arguments, budget.clone()).await?;
            match bytes.fetch_add(result.len(), Ordering::Relaxed) + result.len() <= RESULT_BYTES {
                true => Ok(result),
                false => Err(too_large()),
            }
        }));
        Ok(results.await.into_iter().map(|result| call.to_guest(result)).collect())
    }
}

impl Call {
    /// The way to make this many calls of other modules' tools, or the reason why the call makes none of them.
    fn tool_caller(&self, budget: &CallBudget, calls: usize) -> Result<&dyn ToolCaller, Problem> {
        if self.may_have_plan() {
            let message = format!(
                "{} changes something according to its module's description: only a tool that only looks calls other \
                 modules' tools",
                self.tool
            );
            return Err(Problem::new("NOT_READ_ONLY", Category::Denied, message));
        }
        let Some(caller) = &self.tool_caller else {
            let message =
                format!("{} was called by a module itself, so it calls no further tools", self.tool);
            return Err(Problem::new("NESTED_TOOL_CALL", Category::Denied, message));
        };
        budget.take_tool_calls(calls, MAX_TOOL_CALLS).map_err(|calls| {
            let message = format!("{calls} calls of tools in one call; at most {MAX_TOOL_CALLS} are made");
            Problem::new("TOO_MANY_TOOL_CALLS", Category::Resource, message)
        })?;
        Ok(&**caller)
    }
}

fn too_large() -> Problem {
    let message =
        format!("the results are larger than {RESULT_BYTES} bytes together, and this one is left out");
    Problem::new("REPLY_TOO_LARGE", Category::Resource, message)
}

#[cfg(test)]
mod tests;
