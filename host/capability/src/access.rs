//! The rights and the commands by which the host accesses files.

use std::sync::Arc;

use host_base::Privilege;
use host_base::problem::{Category, Problem};

use crate::Verb;

/// The rights with which paths are accessed, and the commands that do it.
#[derive(Clone, Debug)]
pub struct Access {
    /// The account whose rights the access takes.
    pub privilege: Privilege,
    /// The commands that the host itself may run for it, where those rights are not this process's own.
    pub verbs: Vec<Arc<Verb>>,
}

impl Access {
    /// Whether sudo refused an access that also makes sense without root's rights.
    pub fn would_do_without_sudo<T>(&self, answers: &[Result<T, Problem>]) -> bool {
        let refused = |answer: &Result<T, Problem>| {
            answer.as_ref().is_err_and(|problem| problem.category == Category::Privilege)
        };
        self.privilege == Privilege::RootIfAvailable && answers.iter().any(refused)
    }
}
