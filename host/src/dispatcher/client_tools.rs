//! The list of tools of one client. Where the operator keeps it short, it begins with a few tools, and others are added as
//! the client asks for them or calls them.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use crate::config::Listing;

/// The tools that one client has in its list.
#[derive(Debug)]
pub struct ClientTools {
    listing: Listing,
    names: Mutex<Names>,
    /// Counts the additions.
    additions: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Names {
    /// The tools of the list that the client last got.
    shown: BTreeSet<String>,
    /// The tools that were added to those that the list begins with.
    added: BTreeSet<String>,
}

impl ClientTools {
    /// The list of a client that has not asked for it yet.
    pub fn new(listing: Listing) -> Self {
        Self { listing, names: Mutex::default(), additions: watch::Sender::new(0) }
    }

    /// Whether the list is kept short.
    pub fn is_short(&self) -> bool {
        self.listing == Listing::Compact
    }

    /// A receiver of the additions.
    pub fn additions(&self) -> watch::Receiver<u64> {
        self.additions.subscribe()
    }

    /// Gives the names of all tools of a short list, and notes that the client gets it now. `first` are those that it begins
    /// with.
    pub fn show(&self, first: BTreeSet<String>) -> BTreeSet<String> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.shown = &first | &names.added;
        names.shown.clone()
    }

    /// Adds tools to a short list. Gives the names of those that were not in it before, and announces them.
    pub fn add(&self, tools: Vec<String>) -> Vec<String> {
        if !self.is_short() {
            return Vec::new();
        }
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let Names { shown, added } = &mut *names;
        let new = tools.into_iter().filter(|tool| !shown.contains(tool) && added.insert(tool.clone()));
        let new: Vec<_> = new.collect();
        drop(names);
        if !new.is_empty() {
            self.additions.send_modify(|additions| *additions += 1);
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn set(of: &[&str]) -> BTreeSet<String> {
        names(of).into_iter().collect()
    }

    #[test]
    fn a_tool_is_added_once_and_announced_once() {
        let tools = ClientTools::new(Listing::Compact);
        let additions = tools.additions();
        assert_eq!(tools.show(set(&["look"])), set(&["look"]));
        assert_eq!(tools.add(names(&["look", "change", "change"])), ["change"]);
        assert_eq!(*additions.borrow(), 1);
        // Neither what the list begins with nor what was added before is new.
        assert_eq!(tools.add(names(&["look", "change"])), names(&[]));
        assert_eq!(*additions.borrow(), 1);
        assert_eq!(tools.show(set(&["look"])), set(&["change", "look"]));
    }

    #[test]
    fn what_is_added_before_the_client_asks_for_the_list_is_in_it() {
        let tools = ClientTools::new(Listing::Compact);
        assert_eq!(tools.add(names(&["change"])), ["change"]);
        assert_eq!(tools.show(set(&["look"])), set(&["change", "look"]));
    }

    #[test]
    fn nothing_is_added_to_a_list_that_has_all_tools() {
        let tools = ClientTools::new(Listing::All);
        assert_eq!(tools.add(names(&["change"])), names(&[]));
        assert_eq!(*tools.additions().borrow(), 0);
    }
}
