//! Makes the plan of a call once more, by the same module with the same arguments, in a store of its own.

use std::sync::{Arc, PoisonError};

use futures_util::future::BoxFuture;

use super::store::{CallContext, PlanHandling};
use super::{Module, Tool};
use host_base::problem::{Category, Problem};
use host_gate::{PlannedChange, Replan};

/// A call of a module's tool, which can be repeated.
pub struct ToolCall {
    /// The module that has the tool.
    pub module: Arc<Module>,
    /// The tool.
    pub tool: Tool,
    /// The arguments, as JSON.
    pub arguments: String,
    /// The limit and the filter, where the tool takes them.
    pub context: (Option<u32>, Option<String>),
}

/// Repeats a call for its plan only.
pub struct ReplanCall {
    /// The call to repeat.
    pub tool_call: Arc<ToolCall>,
    /// The context of the first call.
    pub call: CallContext,
}

impl Replan for ReplanCall {
    fn plan(&self) -> BoxFuture<'_, Result<PlannedChange, Problem>> {
        Box::pin(async {
            let kept = Arc::default();
            // The answer to the call doesn't show what the module looks at this time.
            let call = CallContext {
                plan_handling: PlanHandling::Kept(Arc::clone(&kept)),
                plan: Arc::default(),
                command_log: Arc::default(),
                progress: Arc::new(|_, _| {}),
                ..self.call.clone()
            };
            let ToolCall { module, tool, arguments, context } = &*self.tool_call;
            let called = module.call(tool, arguments.clone(), context.clone(), call).await;
            let planned = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
            match (planned, called) {
                (Some(planned), _) => Ok(planned),
                (None, Err(problem)) => Err(problem),
                (None, Ok(_)) => {
                    let message = "nothing would be changed any more";
                    Err(Problem::new("NO_PLAN", Category::State, message))
                }
            }
        })
    }
}
