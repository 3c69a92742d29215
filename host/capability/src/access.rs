//! By which rights, and by which commands, files are reached.

use std::sync::Arc;

use host_base::Privilege;
use host_base::problem::{Category, Problem};

use crate::Pattern;

/// How paths are reached.
#[derive(Clone, Debug)]
pub struct Access {
    /// Whose rights are taken.
    pub privilege: Privilege,
    /// What the host may run itself for that, where those rights aren't this process's own.
    pub verbs: Vec<Arc<Pattern>>,
}

impl Access {
    /// Whether sudo said no, to one who would be content without it.
    pub fn would_do_without_sudo<T>(&self, answers: &[Result<T, Problem>]) -> bool {
        let refused = |answer: &Result<T, Problem>| {
            answer.as_ref().is_err_and(|problem| problem.category == Category::Privilege)
        };
        self.privilege == Privilege::RootIfAvailable && answers.iter().any(refused)
    }
}
