//! The log patterns of profiles, and the lines that they are searched in.

use std::cell::OnceCell;

use linux_sysadmin_sdk::knowledge::{self, LogSource, Profile};

use crate::line::Line;
use crate::pattern::words_of;
use crate::text_logs::path;

/// A profile's patterns, and the names of the units and programs in whose lines they are searched.
pub(super) struct ProfilePatterns<'a> {
    pub(super) profile: &'a Profile,
    pub(super) units: Vec<String>,
    pub(super) patterns: Vec<ProfilePattern<'a>>,
}

/// A pattern. Its expression is made only when a message has one of its words, because that takes long and is rarely needed.
pub(super) struct ProfilePattern<'a> {
    pub(super) pattern: &'a knowledge::LogPattern,
    /// Words of which every match has one. Empty where there are no such words.
    pub(super) words: Vec<String>,
    pub(super) regex: OnceCell<Option<regex::Regex>>,
}

impl<'a> ProfilePattern<'a> {
    pub(super) fn new(pattern: &'a knowledge::LogPattern) -> Self {
        Self { pattern, words: words_of(&pattern.matches), regex: OnceCell::new() }
    }

    pub(super) fn is_in(&self, message: &str) -> bool {
        if !self.words.is_empty() && !self.words.iter().any(|word| message.contains(word)) {
            return false;
        }
        let regex = self.regex.get_or_init(|| knowledge::expression(&self.pattern.matches).ok());
        regex.as_ref().is_some_and(|regex| regex.is_match(message))
    }
}

impl<'a> ProfilePatterns<'a> {
    pub(super) fn new(profile: &'a Profile) -> Self {
        let units = profile.units.iter().map(|unit| unit.name.trim_end_matches(".service").to_owned());
        let identifiers = profile.logs.iter().filter_map(|log| match &log.source {
            LogSource::Identifier(name) => Some(name.clone()),
            LogSource::Journal(unit) => Some(unit.trim_end_matches(".service").to_owned()),
            LogSource::Path(_) => None,
        });
        let names = profile.processes.iter().cloned();
        let units = units.chain(identifiers).chain(names).collect();
        Self { profile, units, patterns: profile.log_patterns.iter().map(ProfilePattern::new).collect() }
    }

    pub(super) fn is_of(&self, line: &Line) -> bool {
        let names = [Some(&line.source), line.unit.as_ref()];
        names.into_iter().flatten().any(|name| {
            self.units.iter().any(|unit| {
                unit.eq_ignore_ascii_case(name)
                    || unit.strip_suffix('@').is_some_and(|template| {
                        name.strip_prefix(template).is_some_and(|rest| rest.starts_with('@'))
                    })
            })
        })
    }

    pub(super) fn has_file(&self, path: &str) -> bool {
        self.profile
            .logs
            .iter()
            .any(|log| matches!(&log.source, LogSource::Path(glob) if path::covers(glob, path)))
    }
}
