//! What the tools that change the network have in common.

use linux_sysadmin_sdk::{Category, prelude::*};

use crate::change::owner::Owner;
use crate::links::Link;

/// What was changed, and where it lasts.
#[derive(Serialize)]
pub(crate) struct Outcome {
    /// What a dry run would have done.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    /// The route or the address.
    setting: String,
    /// The route before it was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) was: Option<String>,
    /// The program that configures the interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'static str>,
    /// The file or the connection that has it for the next start, or had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    set_in: Option<String>,
}

impl Outcome {
    pub(crate) fn removed(setting: String, owner: &Owner, set_in: Option<String>) -> Self {
        Self { would: None, setting, was: None, owner: owner.name, set_in }
    }

    pub(crate) fn unchanged(setting: String) -> Self {
        Self { would: None, setting, was: None, owner: None, set_in: None }
    }
}

/// What was added, with a note where it doesn't last.
pub(crate) fn outcome(
    setting: String,
    owner: &Owner,
    set_in: Option<String>,
    link: &Link,
    notes: &mut Vec<String>,
) -> Outcome {
    if owner.name.is_none() {
        notes.push(format!("no program configures {} at boot: it is gone after a restart", link.ifname));
    }
    Outcome::removed(setting, owner, set_in)
}

/// Hands the plan over, and tells what was done or would be.
pub(crate) fn apply(
    change: Change,
    verb: &'static str,
    mut data: Outcome,
    notes: Vec<String>,
    cx: &Context,
) -> Result<Noted<Outcome>> {
    let applied = cx.apply(change)?;
    data.would = applied.dry_run.then_some(verb);
    Ok(Noted { data, notes })
}

/// Refuses the ports of a bridge or a bond, whose packets go through the whole.
///
/// Problems: `INTERFACE_IS_PORT`.
pub(crate) fn check_link(link: &Link, all: &[Link]) -> Result<()> {
    let Some(master) = &link.master else { return Ok(()) };
    let kind = all.iter().find(|other| other.ifname == *master).and_then(Link::kind).unwrap_or("bridge");
    if kind == "vrf" {
        return Ok(());
    }
    let message =
        format!("{} is a port of the {kind} {master}, which has the addresses and routes", link.ifname);
    Err(Problem::new("INTERFACE_IS_PORT", Category::State, message)
        .remedy(format!("Name interface={master}")))
}
