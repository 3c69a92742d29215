//! The settings of sshd that are a weakness: `weaknesses.yaml` lists them.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::sshd::Settings;
use linux_sysadmin_sdk::{Category, prelude::*};
use serde_json::json;

use super::action::Action;
use super::config_file::ConfigFiles;
use crate::finding::Finding;

/// A rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Weakness {
    kind: String,
    keyword: String,
    #[serde(default)]
    is: Vec<String>,
    #[serde(default)]
    above: Option<u64>,
    #[serde(default)]
    any_of: Vec<String>,
    #[serde(default, rename = "while")]
    others: BTreeMap<String, Vec<String>>,
    severity: Level,
    says: String,
    #[serde(default)]
    action: Option<Action>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Warning,
    High,
    Critical,
}

impl Weakness {
    /// The weak value, where the effective settings have one.
    fn value(&self, settings: &Settings) -> Option<String> {
        let now = settings.get(&self.keyword)?;
        let holds = |(keyword, values): (&String, &Vec<String>)| {
            settings.get(keyword).is_some_and(|value| values.iter().any(|weak| weak == value))
        };
        if !self.others.iter().all(holds) {
            return None;
        }
        let weak: Vec<&str> =
            now.split(',').filter(|name| self.any_of.iter().any(|weak| weak == name)).collect();
        let is_above = |most| now.parse().is_ok_and(|now: u64| now == 0 || now > most);
        match weak.is_empty() {
            false => Some(weak.join(",")),
            true if self.is.iter().any(|weak| weak == now) || self.above.is_some_and(is_above) => {
                Some(now.to_owned())
            }
            true => None,
        }
    }
}

/// The weak settings among those for these accounts, each with the accounts that it holds for where it doesn't hold for all of
/// them, and with its line.
pub(super) fn find(accounts: &[(&str, &Settings)], files: Option<&ConfigFiles>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for rule in rules()? {
        let mut by_value: Vec<(String, Vec<&str>)> = Vec::new();
        for (account, settings) in accounts.iter().copied() {
            let Some(value) = rule.value(settings) else { continue };
            match by_value.iter_mut().find(|(known, _)| *known == value) {
                Some((_, names)) => names.push(account),
                None => by_value.push((value, vec![account])),
            }
        }
        for (value, names) in by_value {
            let whose = match names.len() == accounts.len() {
                true => String::new(),
                false => format!(" for {}", names.join(", ")),
            };
            let subject = format!("{} {value}{whose}", rule.keyword);
            let severity = match rule.severity {
                Level::Warning => Severity::Warning,
                Level::High => Severity::High,
                Level::Critical => Severity::Critical,
            };
            let is_for_all = whose.is_empty();
            let place = files.and_then(|files| files.place_of(&rule.keyword, &value, is_for_all));
            let place = place.map(|place| format!(", set at {place}")).unwrap_or_default();
            let evidence = format!("{}{place}", rule.says);
            let finding = Finding::new(severity, rule.kind.as_str(), subject, evidence);
            findings.push(match rule.action {
                Some(action) => finding.mend("sec_harden_ssh", json!({"actions": [action]})),
                None => finding,
            });
        }
    }
    Ok(findings)
}

fn rules() -> Result<Vec<Weakness>> {
    serde_yaml::from_str(include_str!("weaknesses.yaml")).map_err(|error| {
        Problem::new("BROKEN_MODULE", Category::Internal, format!("weaknesses.yaml: {error}"))
    })
}
