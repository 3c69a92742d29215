//! The means to call other modules' tools for a module. The caller of the module provides it.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::limits::CallBudget;
use host_base::problem::Problem;

/// Calls tools of other modules on the target of a module's call.
pub trait ToolCaller: Send + Sync {
    /// Calls a tool with arguments as JSON, which use up this budget. The result is the tool's envelope as JSON, without
    /// secrets. Dropping the future cancels the call.
    fn call(
        &self,
        tool: String,
        arguments: String,
        budget: Arc<CallBudget>,
    ) -> BoxFuture<'_, Result<String, Problem>>;
}
