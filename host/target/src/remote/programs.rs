//! Paths of programs behind SSH. They are found once per connection, in root-owned directories only, as on this
//! machine.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use rustix::fs::FileType;

use crate::entry::is_roots;
use crate::resolve::{End, Resolved};
use host_base::problem::{Category, Problem};
use host_base::program::{candidates, not_found, untrusted};

/// Absolute paths of programs by name. A program that wasn't found is looked for again, as it may have been installed
/// since.
#[derive(Default)]
pub(super) struct Programs(Mutex<HashMap<String, String>>);

impl Programs {
    pub(super) fn known(&self, name: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(super) fn learn(&self, name: &str, path: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), path.to_owned());
    }
}

/// Returns the first candidate that nobody but root can replace, by where each leads.
pub(super) fn choose(name: &str, led: Vec<(String, Result<Resolved, Problem>)>) -> Result<String, Problem> {
    let mut refused = None;
    for (candidate, resolved) in led {
        match resolved {
            Ok(Resolved { end: End::There(entry), .. })
                if entry.kind() == FileType::RegularFile && entry.mode & 0o111 != 0 =>
            {
                if is_roots(entry.uid, entry.mode) {
                    return Ok(candidate);
                }
                refused = Some(candidate);
            }
            Err(problem) if problem.code == "UNTRUSTED_DIRECTORY" => refused = Some(candidate),
            // A candidate without an answer doesn't count as missing.
            Err(problem) if is_unanswered(problem.category) => return Err(problem),
            _ => {}
        }
    }
    Err(refused.map_or_else(|| not_found(name), |path| untrusted(&path)))
}

fn is_unanswered(category: Category) -> bool {
    matches!(category, Category::Network | Category::Timeout | Category::Resource)
}

pub(super) fn of(name: &str) -> Result<Vec<String>, Problem> {
    candidates(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_answered_is_not_said_to_be_missing() {
        for category in [Category::Network, Category::Timeout, Category::Resource] {
            let led = vec![
                ("/usr/bin/printf".to_owned(), Err(Problem::new("LATE", category, "no answer"))),
                ("/bin/printf".to_owned(), Ok(missing())),
            ];
            assert_eq!(choose("printf", led).unwrap_err().code, "LATE");
        }
        for category in [Category::Privilege, Category::NotFound] {
            let led = vec![("/usr/bin/printf".to_owned(), Err(Problem::new("CLOSED", category, "not so")))];
            assert_eq!(choose("printf", led).unwrap_err().code, "PROGRAM_NOT_FOUND");
        }
    }

    fn missing() -> Resolved {
        Resolved { path: "/bin/printf".to_owned(), end: End::Missing, is_closed: false }
    }
}
