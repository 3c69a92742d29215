//! The way of packets: the default route, its gateway, the hosts of the complaint, and whether the machine passes packets on.

use linux_sysadmin_sdk::{Severity, text};
use serde_json::{Value, json};

use crate::call::{Call, Form};
use crate::envelope::{Envelope, list, raw, said, strings};
use crate::finding::{Finding, Kind};
use crate::notebook::Notebook;
use crate::rank;

/// Reads `net_routes_show`.
pub(crate) fn shown(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let is_default = |item: &&Value| {
        raw(item, "to") == Some("default") && raw(item, "type").is_none() && raw(item, "table").is_none()
    };
    let mut defaults = envelope.items().filter(is_default).peekable();
    if defaults.peek().is_none() {
        let finding = Finding::new(Kind::Network, Severity::Info, "there is no default route")
            .fits(&[Kind::Dns])
            .evidence("only the machine's own networks are reached")
            .call([Some(Call::new("net_interfaces"))]);
        return notebook.add(finding);
    }
    let gateway = defaults.filter_map(|route| raw(route, "via")).find(|via| Form::Host.value(via).is_some());
    notebook.gateway = gateway.map(str::to_owned);
}

/// Reads `net_explain` of the gateway, or of a host that the complaint names.
pub(crate) fn way(envelope: Envelope<'_>, target: &str, notebook: &mut Notebook<'_>) {
    let data = envelope.data();
    let Some(step) = list(data, "steps").find(|step| step["ok"].as_bool() == Some(false)) else { return };
    // The test of the name tells more.
    if raw(step, "step") == Some("name") {
        return;
    }
    let is_gateway = notebook.gateway.as_deref() == Some(target);
    let what = match is_gateway {
        true => format!("the gateway {target} isn't reached"),
        false => format!("{target} isn't reached"),
    };
    let mut finding = Finding::new(Kind::Network, Severity::High, what)
        .fits(&[Kind::Dns])
        .name(target)
        .call([Call::new("net_explain").of("target", Form::Host, target)]);
    finding.cause = said(step, "found");
    finding.evidence = strings(step, "evidence").take(2).collect();
    if !is_gateway {
        finding = finding.weight(rank::MEANT);
    }
    notebook.add(finding);
}

/// Reads `sysctl_get` of the forwarding of packets.
pub(crate) fn forwarding(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    for item in envelope.items() {
        let (Some(key), Some("0")) = (said(item, "key"), raw(item, "value")) else { continue };
        let loses: Vec<String> = strings(item, "loses").collect();
        let set_by = raw(item, "set_by");
        let file = set_by.and_then(|place| place.rsplit_once(':')).map_or(set_by, |(file, _)| Some(file));
        let look = file.and_then(|file| Call::new("file_read").of("path", Form::Path, file));
        let set = Call::new("sysctl_set").with("set", json!({"net.ipv4.ip_forward": 1}));
        let mut finding =
            Finding::new(Kind::Network, Severity::High, format!("{key} is 0: no packet is passed on"))
                .weight(rank::MEANT);
        finding = match (set_by, loses.first()) {
            (Some(place), Some(loser)) => {
                let place = text::excerpt(place, 120);
                finding
                    .evidence(format!("{place} sets it to 0"))
                    .cause(format!("{place} is read after {loser}, and wins"))
                    .name(file.unwrap_or_default())
                    .call([look])
            }
            (Some(place), None) => finding
                .evidence(format!("{} sets it", text::excerpt(place, 120)))
                .cause("the file or somebody at work has turned it off")
                .name(file.unwrap_or_default())
                .call([look]),
            (None, _) => finding.cause("no file turns it on").call([Some(set)]),
        };
        notebook.add(finding);
    }
}
