//! `fw_enable` and `fw_disable`: the firewall as a whole, now and at each start.

use serde::Serialize;

use super::ways_in::{self, WaysIn};
use super::{Backend, Standing};
use super::{kernel, rules};
use crate::{Category, Context, NoArgs, Noted, Problem, Result};

#[derive(Serialize)]
pub(super) struct Switched {
    /// What a dry run would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    firewall: &'static str,
    #[serde(flatten)]
    standing: Standing,
}

pub(super) fn enable<B: Backend>(backend: &B, _: NoArgs, cx: &Context) -> Result<Noted<Switched>> {
    switch(backend, true, cx)
}

pub(super) fn disable<B: Backend>(backend: &B, _: NoArgs, cx: &Context) -> Result<Noted<Switched>> {
    switch(backend, false, cx)
}

fn switch<B: Backend>(backend: &B, is_on: bool, cx: &Context) -> Result<Noted<Switched>> {
    let (kernel, outputs) = kernel::read(cx, ways_in::looks())?;
    let mut proposal = if is_on { backend.enabling(&kernel, cx)? } else { backend.disabling(&kernel, cx)? };
    let firewall = backend.name();
    if proposal.steps.is_empty() {
        let mut notes = proposal.notes;
        let state = if is_on { "active" } else { "inactive" };
        notes.push(format!("{firewall} is {state} already, also at the next start: nothing was changed"));
        let standing = backend.standing(&kernel, cx)?;
        return Ok(Noted { data: Switched { would: None, firewall, standing }, notes });
    }
    if is_on {
        proposal.notes.extend(rules::others(backend, &kernel));
    }
    let mut notes = proposal.notes.clone();
    let ways = WaysIn::read(outputs, cx);
    let cut = if is_on { proposal.cut(&kernel.ruleset, &ways) } else { None };
    let applied = cx.apply(proposal.plan(cut.as_ref(), is_on))?;
    let (kernel, _) = kernel::read(cx, Vec::new())?;
    let mut standing = backend.standing(&kernel, cx)?;
    notes.append(&mut standing.notes);
    if !applied.dry_run && backend.is_on(&kernel, cx)? != is_on {
        let state = if is_on { "inactive" } else { "active" };
        let message = format!("the commands succeeded, but {firewall} is still {state}");
        return Err(Problem::new("NOT_SWITCHED", Category::Other, message));
    }
    let would = applied.dry_run.then_some(if is_on { "enable" } else { "disable" });
    Ok(Noted { data: Switched { would, firewall, standing }, notes })
}
