//! Where programs are behind SSH: found once per connection, in root-owned directories only, as on this machine.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use rustix::fs::FileType;

use crate::problem::Problem;
use crate::target::entry::is_roots;
use crate::target::program::{candidates, not_found, untrusted};
use crate::target::resolve::{End, Resolved};

/// Absolute paths by name. What wasn't found is looked for again: it may have been installed since.
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

/// The first of a program's candidates that nobody but root can replace, by where each leads.
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
            // What can't be asked isn't what isn't there.
            Err(problem) if problem.category == crate::problem::Category::Network => return Err(problem),
            _ => {}
        }
    }
    Err(refused.map_or_else(|| not_found(name), |path| untrusted(&path)))
}

pub(super) fn of(name: &str) -> Result<Vec<String>, Problem> {
    candidates(name)
}
