//! Passes a call of the contract to the tool's function. [`crate::export!`] uses it.

use crate::bindings::exports::sysadmin::module::tools;
use crate::{Category, Context, Module, Problem};

/// Runs one tool of the module.
pub fn call(
    module: Module,
    tool: &str,
    arguments: &str,
    context: tools::Context,
) -> std::result::Result<tools::Reply, Problem> {
    let found = module.tools.iter().find(|candidate| candidate.name == tool);
    let Some(found) = found else {
        return Err(Problem::new(
            "UNKNOWN_TOOL",
            Category::Internal,
            format!("this module has no tool {tool}"),
        ));
    };
    (found.run)(arguments, &Context::new(context.limit, context.filter))
}
