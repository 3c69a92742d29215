//! A call's plan, made once more: by the same module with the same arguments, in a store of its own.

use std::sync::{Arc, PoisonError};

use futures_util::future::BoxFuture;

use super::store::{CallContext, Handing};
use super::{Module, Tool};
use host_base::problem::{Category, Problem};
use host_gate::{Again, Planned};

/// One call of a module's tool, as often as it is wanted.
pub struct Calling {
    /// The module that has the tool.
    pub module: Arc<Module>,
    /// The tool.
    pub tool: Tool,
    /// The arguments, as JSON.
    pub arguments: String,
    /// Limit and filter, where the tool takes them.
    pub context: (Option<u32>, Option<String>),
}

/// The same call once more, of which only the plan is wanted.
pub struct Anew {
    /// The call.
    pub calling: Arc<Calling>,
    /// The call may reach this.
    pub call: CallContext,
}

impl Again for Anew {
    fn plan(&self) -> BoxFuture<'_, Result<Planned, Problem>> {
        Box::pin(async {
            let kept = Arc::default();
            // The answer tells nothing of what the module looks at this time.
            let call = CallContext {
                handing: Handing::Kept(Arc::clone(&kept)),
                plan: Arc::default(),
                executed: Arc::default(),
                progress: Arc::new(|_, _| {}),
                ..self.call.clone()
            };
            let Calling { module, tool, arguments, context } = &*self.calling;
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
