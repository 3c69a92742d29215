//! `fw_add_rule` and `fw_remove_rule`: one rule in unified words.

use serde::Serialize;

use super::asked::RuleArgs;
use super::effect::{self, Answers};
use super::evaluate::{Decision, Verdict};
use super::kernel::{self, Kernel};
use super::proposal::{After, Proposal};
use super::rule::{Action, Direction, FirewallRule};
use super::ruleset::Ruleset;
use super::ways_in::{self, WaysIn};
use super::{Backend, Rules};
use crate::{Category, Context, Noted, Problem, Result, text};

/// The most rules that a message names.
const MOST_NAMED: usize = 8;

#[derive(Serialize)]
pub(super) struct Outcome {
    /// What a dry run would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    rule: String,
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    /// What happens to the rule's packets now; in a dry run, what would.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<Decision>,
}

#[derive(Clone, Copy, PartialEq)]
enum Doing {
    Add,
    Remove,
}

pub(super) fn add<B: Backend>(backend: &B, args: RuleArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let rule = args.checked(cx)?;
    let (kernel, outputs) = kernel::read(cx, ways_in::looks())?;
    let ways = WaysIn::read(outputs, cx);
    let mut proposal = backend.adding(&rule, &kernel, cx)?;
    if proposal.steps.is_empty() {
        proposal.notes.push("the rule is there already: nothing was changed".to_owned());
        let data =
            Outcome { would: None, rule: rule.in_words(), place: proposal.place, verdict: None, by: None };
        return Ok(Noted { data, notes: proposal.notes });
    }
    check_active(backend, &kernel, &proposal.after)?;
    if let After::Rules(after) = &proposal.after {
        let packets = effect::packets(&rule, proposal.interface.as_deref(), &ways.own_addresses());
        let before = Answers::of(&kernel.ruleset, &packets);
        proposal.notes.extend(effect::of_new_rule(&rule, &before, &Answers::of(after, &packets))?);
    }
    if rule.direction == Direction::In {
        let lets_in_all = rule.action == Action::Allow
            && [&rule.port, &rule.source, &rule.destination].into_iter().all(Option::is_none);
        if lets_in_all {
            proposal.notes.push("this lets in everybody at every port".to_owned());
        }
        proposal.notes.extend(others(backend, &kernel));
    }
    carried_out(backend, Doing::Add, &rule, (&kernel, &ways), proposal, cx)
}

pub(super) fn remove<B: Backend>(backend: &B, args: RuleArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let rule = args.without_comment().checked(cx)?;
    let (kernel, outputs) = kernel::read(cx, ways_in::looks())?;
    let ways = WaysIn::read(outputs, cx);
    let proposal = backend.removing(&rule, &kernel, cx)?;
    if proposal.steps.is_empty() {
        return Err(not_found(backend, &rule, &backend.rules(&kernel, cx)?));
    }
    check_active(backend, &kernel, &proposal.after)?;
    carried_out(backend, Doing::Remove, &rule, (&kernel, &ways), proposal, cx)
}

fn carried_out<B: Backend>(
    backend: &B,
    doing: Doing,
    rule: &FirewallRule,
    (kernel, ways): (&Kernel, &WaysIn),
    mut proposal: Proposal,
    cx: &Context,
) -> Result<Noted<Outcome>> {
    if matches!(proposal.after, After::Same) {
        proposal.notes.push(format!("{} is inactive: its rules hold from fw_enable on", backend.name()));
    }
    let packets = effect::packets(rule, proposal.interface.as_deref(), &ways.own_addresses());
    let (place, after, notes) = (proposal.place.clone(), proposal.after.clone(), proposal.notes.clone());
    let cut = proposal.cut(&kernel.ruleset, ways);
    let applied = cx.apply(proposal.plan(cut.as_ref(), false))?;
    let is_inactive = matches!(after, After::Same);
    let ruleset = match (applied.dry_run, after) {
        (true, After::Rules(after)) => Some(after),
        (true, _) => None,
        (false, _) => Some(verified(backend, doing, rule, cx)?).filter(|_| !is_inactive),
    };
    let answers = ruleset.map(|ruleset| Answers::of(&ruleset, &packets));
    let (verdict, by) = answers.as_ref().and_then(Answers::verdict).unzip();
    let would = applied.dry_run.then_some(if doing == Doing::Add { "add" } else { "remove" });
    let data = Outcome { would, rule: rule.in_words(), place, verdict, by: by.flatten().cloned() };
    Ok(Noted { data, notes })
}

/// The kernel's rules after the change. Programs of firewalls may end well without having done anything.
fn verified<B: Backend>(backend: &B, doing: Doing, rule: &FirewallRule, cx: &Context) -> Result<Ruleset> {
    let (kernel, _) = kernel::read(cx, Vec::new())?;
    let left = match doing {
        Doing::Add => backend.adding(rule, &kernel, cx)?,
        Doing::Remove => backend.removing(rule, &kernel, cx)?,
    };
    if left.steps.is_empty() {
        return Ok(kernel.ruleset);
    }
    let is = if doing == Doing::Remove { "is still there" } else { "isn't there" };
    let message = format!("{} reported success, but the rule {is}", backend.name());
    Err(Problem::new("RULE_NOT_APPLIED", Category::Other, message).remedy("fw_list_rules shows the rules"))
}

/// The other firewalls that are active.
fn other_firewalls<B: Backend>(backend: &B, kernel: &Kernel) -> Vec<&'static str> {
    kernel.ruleset.active_firewalls().into_iter().filter(|other| *other != backend.name()).collect()
}

/// A rule of an inactive firewall is hardly what was meant where another one is active.
fn check_active<B: Backend>(backend: &B, kernel: &Kernel, after: &After) -> Result<()> {
    let (others, name) = (other_firewalls(backend, kernel), backend.name());
    match (after, others.first()) {
        (After::Same, Some(other)) => {
            let message =
                format!("{name} is inactive here and {other} is active: which one is meant isn't clear");
            Err(Problem::new("OTHER_FIREWALL_ACTIVE", Category::State, message)
                .remedy(format!(
                    "For {other}, set distro.firewall_backend: {other} in the server's configuration"
                ))
                .remedy(format!("For {name}, make it active by fw_enable first")))
        }
        _ => Ok(()),
    }
}

/// What else decides about packets to the machine.
pub(super) fn others<B: Backend>(backend: &B, kernel: &Kernel) -> Vec<String> {
    let mut notes = Vec::new();
    for other in other_firewalls(backend, kernel) {
        notes.push(format!("{other} is active as well: what one of both drops doesn't get in"));
    }
    if kernel.ruleset.has_containers() {
        notes.push(format!("ports that containers publish pass {}'s rules", backend.name()));
    }
    notes
}

fn not_found<B: Backend>(backend: &B, rule: &FirewallRule, listed: &Rules) -> Problem {
    if let Some(known) = listed.items.iter().find(|known| known.is(rule)) {
        let place = known.place.as_deref().unwrap_or("another place");
        let message = format!("`{}` is a rule of {place}, which this tool doesn't change", rule.in_words());
        return Problem::new("NOT_OWN_RULE", Category::State, message)
            .remedy("Change it where the administrator or another program keeps it");
    }
    let is_near = |known: &&super::Listed| match &known.rule {
        Some(own) => own.port == rule.port || own.source.is_some() && own.source == rule.source,
        None => false,
    };
    let near: Vec<String> = listed.items.iter().filter(is_near).map(super::Listed::in_words).collect();
    let message = format!("{} has no rule `{}`", backend.name(), rule.in_words());
    let problem = Problem::not_found("RULE_NOT_FOUND", message);
    match near.is_empty() {
        true => problem.remedy("fw_list_rules shows the rules"),
        false => problem.remedy(format!("It has {}", text::list(&near, MOST_NAMED))),
    }
}
