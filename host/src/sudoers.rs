//! What sudo must allow a module on a target: from its grants, and from what the target is.
use crate::component::Module;
use crate::target::Target;

/// Module and fragment.
pub async fn reference(_: &Target, module: &Module, _: &str) -> (String, String) {
    (module.description.name.clone(), String::new())
}
