//! `net_explain`: why this machine can't reach another one, or a port of it.

use std::net::IpAddr;

use linux_sysadmin_sdk::prelude::*;

use crate::explain::{Step, name as by_name, port as by_port, way};
use crate::name;
use crate::probe::tcp::{self, Outcome};
use crate::target::Target;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ExplainArgs {
    /// Name or address
    target: String,
    /// TCP port
    port: Option<i64>,
}

#[derive(Serialize)]
pub(crate) struct Explained {
    /// None where nothing is known to stand in the way, and no connection could be tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    reached: Option<bool>,
    /// The first step that fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    fails_at: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
    /// In the order in which a connection needs them, up to the first that fails.
    steps: Vec<Step>,
}

pub(crate) fn net_explain(args: ExplainArgs, cx: &Context) -> Result<Analysis<Explained>> {
    let target = Target::parse(&args.target)?;
    let port = args.port.map(name::check_port).transpose()?;
    let (step, addresses) = by_name::step(&target, cx)?;
    let mut explained = Explained { reached: None, fails_at: None, address: None, steps: vec![step] };
    let Some(first) = addresses.first().copied() else {
        return Ok(told(explained, Outcome::Unknown));
    };
    let outcomes = match port {
        Some(port) => tcp::try_connect(&addresses, port, cx)?,
        None => Vec::new(),
    };
    // Programs try one address after the other, so that one that answers suffices.
    let open = outcomes.iter().find(|(_, outcome)| *outcome == Outcome::Open);
    let (address, outcome) = open.or(outcomes.first()).copied().unwrap_or((first, Outcome::Unknown));
    explained.address = Some(address);
    let (step, way) = way::route(address, port, cx)?;
    explained.steps.push(step);
    let Some(way) = way else { return Ok(told(explained, outcome)) };
    if outcome == Outcome::Open {
        explained.steps.extend(port.map(|port| by_port::other_port(address, port, outcome, &way, cx)));
        for (other, outcome) in outcomes.iter().filter(|(_, outcome)| *outcome != Outcome::Open) {
            let evidence = format!("{other}, another address of it, isn't reached: {}", outcome.meaning());
            explained.steps.last_mut().into_iter().for_each(|step| step.evidence.push(evidence.clone()));
        }
        return Ok(told(explained, outcome));
    }
    if way.is_local {
        if let Some(port) = port {
            let firewall = by_port::own_firewall(address, Some(port), &way, cx);
            let is_stopped = !firewall.ok;
            explained.steps.push(firewall);
            if !is_stopped {
                explained.steps.push(by_port::own_port(address, port, outcome, cx)?);
            }
        }
        return Ok(told(explained, outcome));
    }
    // Without a port, an echo request makes the kernel look for the neighbour.
    let answer = match port {
        Some(_) => None,
        None => Some(by_port::any_answer(address, cx)?),
    };
    let is_answered = answer.as_ref().is_some_and(|answer| answer.ok);
    if let Some(neighbour) = way::neighbour(address, &way, cx)? {
        // What answers is there, whatever the kernel has forgotten meanwhile.
        if neighbour.ok || outcome != Outcome::Refused && !is_answered {
            explained.steps.push(neighbour);
        }
    }
    if explained.steps.iter().all(|step| step.ok) {
        explained.steps.push(by_port::own_firewall(address, port, &way, cx));
    }
    if explained.steps.iter().all(|step| step.ok) {
        let last = match (answer, port) {
            (Some(answer), _) => Some(answer),
            (None, Some(port)) => Some(by_port::other_port(address, port, outcome, &way, cx)),
            (None, None) => None,
        };
        explained.steps.extend(last);
    }
    Ok(told(explained, outcome))
}

fn told(mut explained: Explained, outcome: Outcome) -> Analysis<Explained> {
    let failing = explained.steps.iter().find(|step| !step.ok);
    explained.fails_at = failing.map(|step| step.step);
    explained.reached = match failing {
        Some(_) => Some(false),
        None => (outcome != Outcome::Untried).then_some(true),
    };
    let (summary, severity) = match failing {
        Some(step) => (step.found.clone(), Severity::High),
        None => {
            let last = explained.steps.last().map(|step| step.found.clone()).unwrap_or_default();
            (format!("Nothing stands in the way: {last}"), Severity::Info)
        }
    };
    Analysis { data: explained, summary, severity }
}
