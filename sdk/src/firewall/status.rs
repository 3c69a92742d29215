//! `fw_status`: whether the firewall is active, what it does by default, its rules in short, and who else writes rules.

use serde::Serialize;

use super::others::Published;
use super::{Backend, Standing, kernel};
use crate::{Context, NoArgs, Noted, Result};

/// The most rules that are shown in short.
const MOST_RULES: usize = 40;
/// The most published ports that are shown.
const MOST_PORTS: usize = 20;

#[derive(Serialize)]
pub(super) struct Status {
    firewall: &'static str,
    #[serde(flatten)]
    standing: Standing,
    rules: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also_writing_rules: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    published: Vec<Published>,
}

pub(super) fn status<B: Backend>(backend: &B, _: NoArgs, cx: &Context) -> Result<Noted<Status>> {
    let (kernel, _) = kernel::read(cx, Vec::new())?;
    let (mut standing, listed) = backend.standing_and_rules(&kernel, cx)?;
    let mut notes = kernel.notes.clone();
    notes.append(&mut standing.notes);
    let mut rules: Vec<String> = listed.items.iter().take(MOST_RULES).map(|rule| rule.in_words()).collect();
    if listed.items.len() > MOST_RULES {
        rules.push(format!("… {} more: fw_list_rules", listed.items.len() - MOST_RULES));
    }
    let mut published = kernel.ruleset.published();
    if !published.is_empty() && kernel.ruleset.has_containers() {
        notes.push(format!(
            "the published ports pass the rules of {} (fw_explain tells for each)",
            backend.name()
        ));
    }
    if published.len() > MOST_PORTS {
        notes.push(format!("{} published ports aren't shown", published.len() - MOST_PORTS));
        published.truncate(MOST_PORTS);
    }
    let also_writing_rules = kernel.ruleset.writers(backend.name());
    let data = Status { firewall: backend.name(), standing, rules, also_writing_rules, published };
    Ok(Noted { data, notes })
}
