//! The suites of domains: what the modules for one subject have in common, as stories. The recorded calls of a module tell
//! them.

use serde::Deserialize;
use serde_json::Value;

use super::Trial;
use super::report::Report;
use host_components::Description;

/// The suites, one document for each domain.
const SUITES: &str = include_str!(concat!(env!("OUT_DIR"), "/suites.yaml"));

/// A suite of one domain.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The domain, as descriptions of modules name it.
    pub domain: String,
    stories: Vec<Story>,
}

/// What some call of a tool shows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Story {
    /// The story in one sentence.
    story: String,
    /// The tool that is called.
    tool: String,
    /// Arguments that the call gives.
    #[serde(default)]
    arguments: Vec<String>,
    /// Arguments that the call doesn't give.
    #[serde(default)]
    without: Vec<String>,
    /// The code of the call's error. Without it, the call succeeds.
    #[serde(default)]
    error: Option<String>,
    /// The members of every item of the listing, which is not empty where there are some.
    #[serde(default)]
    each: Vec<String>,
    /// The members of the answer.
    #[serde(default)]
    members: Vec<String>,
    /// Members of which the answer has at least one, unless there are none.
    #[serde(default)]
    one_of: Vec<String>,
    /// Whether a command of a change ran, where that matters.
    #[serde(default)]
    changes: Option<bool>,
    /// Whether the answer is that of a dry run with a plan.
    #[serde(default)]
    plans: bool,
    /// Whether a program of the domain may lack what the story needs. A module says so by the code NOT_SUPPORTED.
    #[serde(default)]
    may_lack: bool,
}

/// The code of what a program can't do.
const NOT_SUPPORTED: &str = "NOT_SUPPORTED";

/// Reads all suites.
pub fn suites() -> anyhow::Result<Vec<Suite>> {
    let documents = serde_yaml::Deserializer::from_str(SUITES);
    Ok(documents.map(Suite::deserialize).collect::<Result<_, _>>()?)
}

/// Checks the suite of a module's domain, where there is one and the module has a tool of it.
pub fn check(report: &mut Report, description: &Description, told: &[Trial<'_>]) -> anyhow::Result<()> {
    let has = |tool: &str| description.tools.iter().any(|own| own.name == tool);
    for suite in suites()?.iter().filter(|suite| suite.domain == description.domain) {
        if !suite.stories.iter().any(|story| has(&story.tool)) {
            continue;
        }
        for story in &suite.stories {
            if story.is_lacking(told) {
                let check = format!("{}: {}", story.tool, story.story);
                report.skip(&suite.domain, None, check, "the module says that its program can't do it");
                continue;
            }
            let reasons = match has(&story.tool) {
                true => story.reasons(told),
                false => vec![format!(
                    "the module has no tool {}, which every module of the domain has",
                    story.tool
                )],
            };
            report.add(&suite.domain, None, format!("{}: {}", story.tool, story.story), reasons);
        }
    }
    Ok(())
}

impl Story {
    /// Whether the program may lack what the story needs, and the module says in each call that it does.
    fn is_lacking(&self, told: &[Trial<'_>]) -> bool {
        let mut calls = told.iter().filter(|told| told.call.tool == self.tool).peekable();
        self.may_lack
            && calls.peek().is_some()
            && calls.all(|told| told.answer.error().is_some_and(|code| code == NOT_SUPPORTED))
    }

    /// The reasons why no call tells the story. Empty where one does.
    fn reasons(&self, told: &[Trial<'_>]) -> Vec<String> {
        let mut reasons = Vec::new();
        for told in told.iter().filter(|told| told.call.tool == self.tool) {
            match self.lacks(told) {
                None => return Vec::new(),
                Some(lacks) => reasons.push(format!("{} on {}: {lacks}", told.call.name(), told.machine)),
            }
        }
        if reasons.is_empty() {
            reasons.push(format!("no recorded call of {}: add one that shows it", self.tool));
        }
        reasons
    }

    /// What a call lacks to tell the story.
    fn lacks(&self, told: &Trial<'_>) -> Option<String> {
        let Trial { call, answer, .. } = told;
        let given = |name: &&String| call.arguments.contains_key(*name);
        if let Some(missing) = self.arguments.iter().find(|name| !given(name)) {
            return Some(format!("it doesn't give {missing}"));
        }
        if let Some(name) = self.without.iter().find(given) {
            return Some(format!("it gives {name}"));
        }
        match (&self.error, answer.error()) {
            (None, None) => {}
            (Some(expected), Some(found)) if expected == found => {}
            (Some(expected), _) => return Some(format!("expected {expected}, found {}", answer.message())),
            (None, Some(_)) => return Some(answer.message()),
        }
        match self.changes {
            Some(true) if !answer.has_changed() => return Some("nothing was changed".to_owned()),
            Some(false) if answer.has_changed() => return Some("something was changed".to_owned()),
            _ => {}
        }
        if self.plans && !answer.envelope.contains_key("preview") {
            return Some("there is no plan: expected a dry run that shows one".to_owned());
        }
        let data = answer.envelope.get("data").unwrap_or(&Value::Null);
        let has = |value: &Value, name: &String| value.get(name).is_some_and(|member| !member.is_null());
        if !self.each.is_empty() {
            let items = data.as_array().map(Vec::as_slice).unwrap_or_default();
            if items.is_empty() {
                return Some("its listing is empty".to_owned());
            }
            let missing = items.iter().find_map(|item| self.each.iter().find(|name| !has(item, name)));
            if let Some(missing) = missing {
                return Some(format!("an item has no {missing}"));
            }
        }
        if let Some(missing) = self.members.iter().find(|name| !has(data, name)) {
            return Some(format!("its answer has no {missing}"));
        }
        let has_one = self.one_of.is_empty() || self.one_of.iter().any(|name| has(data, name));
        (!has_one).then(|| format!("its answer has none of {}", self.one_of.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::module_tests::stage::TriedAnswer;
    use crate::module_tests::transcripts::TriedCall;
    use host_target::recorded::{Asked, RanCommand, Recording};

    #[test]
    fn every_suite_is_read_and_each_story_is_a_sentence_about_one_tool() {
        let suites = suites().unwrap();
        assert!(!suites.is_empty());
        for suite in &suites {
            assert!(!suite.stories.is_empty(), "{}", suite.domain);
            for story in &suite.stories {
                assert!(!story.story.is_empty() && !story.tool.is_empty(), "{story:?}");
            }
        }
    }

    fn told(arguments: Value, envelope: Value, changes: bool) -> (TriedCall, TriedAnswer) {
        let call = TriedCall {
            tool: "toy_add".to_owned(),
            arguments: arguments.as_object().unwrap().clone(),
            ..TriedCall::default()
        };
        let ran = vec![RanCommand { argv: vec!["toy".to_owned()], changes }];
        let asked = Asked { ran, ..Asked::default() };
        (call, TriedAnswer { envelope: envelope.as_object().unwrap().clone(), asked })
    }

    #[test]
    fn a_story_is_told_by_a_call_that_has_all_that_it_asks_for() {
        let story = |text: &str| -> Story {
            serde_yaml::from_str(&format!("{{story: s, tool: toy_add, {text}}}")).unwrap()
        };
        let good = json!({"data": {"added": ["a"], "none": null}});
        let listing = json!({"data": [{"name": "a", "version": "1"}, {"name": "b"}]});
        let failed = json!({"error_code": "NOT_FOUND", "message": "no"});
        for (text, envelope, changes, reason) in [
            ("members: [added]", &good, true, None),
            ("members: [none]", &good, true, Some("has no none")),
            ("one_of: [x, added]", &good, true, None),
            ("one_of: [x, y]", &good, true, Some("none of x, y")),
            ("changes: true", &good, true, None),
            ("changes: true", &good, false, Some("nothing was changed")),
            ("changes: false", &good, true, Some("something was changed")),
            ("plans: true", &good, false, Some("no plan")),
            ("arguments: [name]", &good, false, None),
            ("arguments: [other]", &good, false, Some("doesn't give other")),
            ("without: [name]", &good, false, Some("it gives name")),
            ("error: NOT_FOUND", &failed, false, None),
            ("error: NOT_FOUND", &good, false, Some("expected NOT_FOUND, found no error")),
            ("members: []", &failed, false, Some("NOT_FOUND: no")),
            ("each: [name]", &listing, false, None),
            ("each: [version]", &listing, false, Some("an item has no version")),
            ("each: [name]", &good, false, Some("listing is empty")),
        ] {
            let (call, answer) = told(json!({"name": "a"}), envelope.clone(), changes);
            let told = Trial { machine: "toy", call: &call, recording: Recording::default(), answer };
            let reasons = story(text).reasons(&[told]);
            match reason {
                None => assert!(reasons.is_empty(), "{text}: {reasons:?}"),
                Some(reason) => assert!(reasons[0].contains(reason), "{text}: {reasons:?}"),
            }
        }
        let unsupported = json!({"error_code": "NOT_SUPPORTED", "message": "no"});
        for (text, envelopes, is_lacking) in [
            ("may_lack: true", &[&unsupported][..], true),
            ("may_lack: true", &[&unsupported, &failed], false),
            ("may_lack: true", &[&good], false),
            ("may_lack: true", &[], false),
            ("may_lack: false", &[&unsupported], false),
        ] {
            let (call, _) = told(json!({}), json!({}), false);
            let answers = envelopes.iter().map(|envelope| told(json!({}), (*envelope).clone(), false).1);
            let trial =
                |answer| Trial { machine: "toy", call: &call, recording: Recording::default(), answer };
            let trials: Vec<_> = answers.map(trial).collect();
            assert_eq!(story(text).is_lacking(&trials), is_lacking, "{text} {envelopes:?}");
        }
        let none = story("members: [added]").reasons(&[]);
        assert!(none[0].contains("no recorded call of toy_add"), "{none:?}");
    }
}
