//! Ports that a service wants and another process has, and who listens where.

use std::collections::BTreeSet;

use linux_sysadmin_sdk::{Severity, text};
use serde_json::{Value, json};

use crate::call::{Call, Form};
use crate::envelope::{Envelope, count, list, raw, said, strings};
use crate::finding::{Finding, Kind};
use crate::notebook::{Listener, Notebook};

/// Reads `svc_port_audit`.
pub(crate) fn audited(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let data = envelope.data();
    for conflict in list(data, "conflicts") {
        let (Some(service), Some(port)) = (said(conflict, "service"), said(conflict, "port")) else {
            continue;
        };
        let unit = main_unit(&service, notebook);
        let held = said(conflict, "held_by").unwrap_or_default();
        let number = port.split('/').next().unwrap_or_default();
        let shows = Call::new("net_connections")
            .of("port", Form::Port, number)
            .map(|call| call.with("state", json!("listening")));
        if let Ok(number) = number.parse() {
            notebook.taken.push((unit.clone(), number));
        }
        let finding =
            Finding::new(Kind::Service, Severity::High, format!("{unit} doesn't get its port {port}"))
                .fits(&[Kind::Network])
                .cause(format!("{held} has the port"))
                .unit(&unit)
                .call([shows, Some(Call::new("svc_port_audit"))]);
        notebook.add(finding);
    }
    for missing in list(data, "not_listening") {
        let (Some(service), Some(port)) = (said(missing, "service"), said(missing, "port")) else { continue };
        let unit = main_unit(&service, notebook);
        let set_by = said(missing, "set_by").map(|setting| format!("set by {setting}")).unwrap_or_default();
        let finding = Finding::new(
            Kind::Service,
            Severity::Warning,
            format!("{unit} runs, and doesn't listen on {port}"),
        )
        .fits(&[Kind::Network])
        .evidence(set_by)
        .unit(&unit)
        .call([Call::new("svc_status").of("service", Form::Unit, &unit)]);
        notebook.add(finding);
    }
}

/// The main unit of a profile, without `.service`.
fn main_unit(profile: &str, notebook: &Notebook<'_>) -> String {
    let known = notebook.profiles.iter().find(|known| known.id == profile);
    let unit = known.and_then(|known| known.main_unit()).map_or(profile, |unit| unit.name.as_str());
    unit.trim_end_matches(".service").to_owned()
}

/// Reads `net_connections` of everything that listens.
pub(crate) fn listening(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    notebook.listeners.extend(envelope.items().map(listener));
}

/// Reads `net_connections` of one port that another process has.
pub(crate) fn holder(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    notebook.listeners.extend(envelope.items().map(listener));
}

fn listener(item: &Value) -> Listener {
    let sockets: Vec<String> = strings(item, "listens").collect();
    let port = |socket: &String| socket.rsplit(':').next()?.split(' ').next()?.parse().ok();
    let ports: BTreeSet<u16> = sockets.iter().filter_map(port).collect();
    let unit = said(item, "unit").map(|unit| unit.trim_end_matches(".service").to_owned());
    let command = raw(item, "command").map(|command| text::excerpt(command, 60)).unwrap_or_default();
    let whose = unit.clone().unwrap_or_else(|| "no unit".to_owned());
    let since = said(item, "started").map(|started| format!(", since {started}")).unwrap_or_default();
    let shown = format!("{command} (PID {}, {whose}{since})", count(item, "pid"));
    Listener { unit, shown, ports, sockets }
}
