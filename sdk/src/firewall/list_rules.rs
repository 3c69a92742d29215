//! `fw_list_rules`: the firewall's rules, in unified words where these say all of a rule.

use super::{Backend, Listed, kernel};
use crate::{Context, Listing, NoArgs, Result};

pub(super) fn list_rules<B: Backend>(backend: &B, _: NoArgs, cx: &Context) -> Result<Listing<Listed>> {
    let (kernel, _) = kernel::read(cx, Vec::new())?;
    let mut rules = backend.rules(&kernel, cx)?;
    if rules.items.iter().any(|rule| rule.raw.is_some()) {
        rules.notes.push("`raw` rules say more than the common words can".to_owned());
    }
    if kernel.ruleset.has_containers() {
        let message = format!(
            "{} writes rules of its own: published ports pass these rules (fw_status lists them)",
            kernel.ruleset.writers(backend.name()).join(", ")
        );
        rules.notes.push(message);
    }
    Ok(Listing { items: rules.items, total: None, notes: rules.notes })
}
