//! Lines of the journal.

use std::collections::HashMap;
use std::rc::Rc;

use linux_sysadmin_sdk::JournalEntry;

use crate::level::Level;
use crate::line::Line;

/// An entry, with its cursor.
pub(crate) struct Entry {
    pub(crate) line: Line,
    pub(crate) cursor: String,
}

/// Reads entries. It keeps each name once in memory.
#[derive(Default)]
pub(crate) struct EntryReader {
    names: HashMap<String, Rc<str>>,
}

impl EntryReader {
    /// Reads a line of `journalctl`. None where it is no entry.
    pub(crate) fn entry(&mut self, text: &[u8]) -> Option<Entry> {
        let read = JournalEntry::parse(text)?;
        let at = read.microseconds()?;
        let unit = read.unit().map(|unit| self.name(unit));
        let source = read.identifier().or(read.process()).map(|name| self.name(name));
        let source = source.or_else(|| unit.clone()).unwrap_or_else(|| self.name("journal"));
        let level = read.priority().map(Level);
        let message = read.message().unwrap_or_default().to_owned();
        Some(Entry {
            line: Line { at: Some(at), source, unit, level, message },
            cursor: read.cursor()?.to_owned(),
        })
    }

    fn name(&mut self, name: &str) -> Rc<str> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let shared: Rc<str> = name.strip_suffix(".service").unwrap_or(name).into();
        self.names.insert(name.to_owned(), shared.clone());
        shared
    }
}
