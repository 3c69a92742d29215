//! The identity of a target: the machine that answers, and the account there. The same name may lead to another
//! machine at the next connection, if an alias or an address is given to another machine.

use super::Facts;
use host_base::problem::{Category, Problem};

/// The error code where another machine answers than the one that the plan was made for.
pub const STALE: &str = "PLAN_STALE";

/// A machine and an account on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    machine_id: Option<String>,
    host_key: Option<String>,
    uid: u32,
}

impl Identity {
    /// Makes the identity from the facts, and from the host key that the machine showed if it is reached over SSH.
    pub fn of(facts: &Facts, host_key: Option<String>) -> Self {
        Self { machine_id: facts.machine_id.clone(), host_key, uid: facts.uid }
    }

    /// Returns the same account on the machine that showed this key and machine id.
    pub(super) fn elsewhere(&self, host_key: String, machine_id: Option<String>) -> Self {
        Self { machine_id, host_key: Some(host_key), uid: self.uid }
    }

    /// Returns a problem where another machine or account answers to this name now.
    pub fn is(&self, now: &Self, name: &str) -> Result<(), Problem> {
        let said = |said: &Option<String>| said.clone().unwrap_or_else(|| "none".to_owned());
        for (what, before, now) in [
            ("machine id", said(&self.machine_id), said(&now.machine_id)),
            ("host key", said(&self.host_key), said(&now.host_key)),
            ("account", self.uid.to_string(), now.uid.to_string()),
        ] {
            if before != now {
                let message = format!(
                    "{name} is another machine by now than the one that the plan was made for: expected {what} {before}, \
                     found {now}"
                );
                return Err(Problem::new(STALE, Category::State, message)
                    .remedy("Call again: the plan is made anew, for the machine that answers now"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_another_key_or_another_account_is_not_the_one_that_was_meant() {
        let facts = Facts { machine_id: Some("a".into()), uid: 1000, ..Facts::default() };
        let meant = Identity::of(&facts, Some("SHA256:x".into()));
        assert!(meant.is(&meant.clone(), "web1").is_ok());
        assert!(meant.is(&meant.elsewhere("SHA256:x".into(), Some("a".into())), "web1").is_ok());
        for (now, what) in [
            (Identity { machine_id: None, ..meant.clone() }, "expected machine id a, found none"),
            (Identity { host_key: None, ..meant.clone() }, "expected host key SHA256:x, found none"),
            (Identity { uid: 0, ..meant.clone() }, "expected account 1000, found 0"),
        ] {
            let problem = meant.is(&now, "web1").unwrap_err();
            assert!(problem.code == STALE && problem.message.contains(what), "{problem}");
        }
    }
}
