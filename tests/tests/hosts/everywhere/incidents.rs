//! Plays everyday incidents on a real host: `triage` finds the cause by what a user reports, the calls of the data mend it, and
//! so do the commands that one would type in a shell. The table that the test prints compares their bytes; nothing is asserted
//! of these.

use linux_sysadmin_tests::{Changing, Client, way};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Incident {
    id: String,
    symptom: String,
    family: String,
    r#break: String,
    /// Texts of the first finding of `triage`.
    found: Vec<String>,
    calls: Vec<Call>,
    shell: Vec<String>,
    mended: String,
    clean: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    arguments: Value,
    /// The error code of a call that shows the incident by failing.
    fails: Option<String>,
}

/// What was sent and what came back.
#[derive(Default)]
struct Count {
    calls: usize,
    bytes: usize,
    /// The bytes of questions, which a person reads. In two steps a model reads them as well.
    asked: usize,
}

impl Count {
    /// Counts a call. A model reads one of the two forms of an answer; this is the one for programs.
    fn add(&mut self, arguments: &Value, envelope: &Value) {
        self.calls += 1;
        self.bytes += arguments.to_string().len() + envelope.to_string().len();
    }
}

#[tokio::test]
async fn triage_finds_the_cause_of_everyday_incidents_and_further_calls_mend_them() {
    let incidents = incidents();
    let test = "triage_finds_the_cause_of_everyday_incidents_and_further_calls_mend_them";
    let Some(machine) = Changing::by(way(), test, "", &clean(&incidents)) else { return };
    let mut client = machine.serve_default().await;
    let mut wrong = Vec::new();
    for incident in &incidents {
        breaks(&machine, incident);
        let mut tools = Count::default();
        let complaint = json!({"complaint": incident.symptom});
        let first = client.envelope("triage", complaint.clone()).await;
        tools.add(&complaint, &first);
        wrong.extend(not_found(incident, &first));
        by_tools(&mut client, incident, &mut tools).await;
        machine.nothing_is_left_behind();
        is_mended(&machine, incident);
        breaks(&machine, incident);
        let shell = by_shell(&machine, incident);
        is_mended(&machine, incident);
        eprintln!(
            "{:<24} {:>2} calls {:>5} bytes and {:>5} of questions; {:>2} commands {:>5} bytes",
            incident.id, tools.calls, tools.bytes, tools.asked, shell.calls, shell.bytes
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Says what is missing where the first finding isn't the cause with a call that goes on from there.
fn not_found(incident: &Incident, envelope: &Value) -> Option<String> {
    let Incident { id, found, .. } = incident;
    let first = &envelope["data"]["findings"][0];
    let is_found = found.iter().all(|text| first.to_string().contains(text.as_str()));
    let is_right = is_found && first["call"]["tool"].is_string();
    (!is_right).then(|| format!("{id}: expected {found:?} in the first finding: {envelope:#}"))
}

/// The incidents that can be made on the host.
fn incidents() -> Vec<Incident> {
    let mut incidents: Vec<Incident> =
        serde_yaml::from_str(include_str!("../../../data/incidents.yaml")).expect("the data");
    assert_eq!(incidents.len(), 16);
    let is_debian = way().host().starts_with("debian");
    incidents.retain(|incident| is_debian || incident.family == "both");
    incidents
}

/// The script that takes all of them away.
fn clean(incidents: &[Incident]) -> String {
    incidents.iter().map(|incident| incident.clean.as_str()).collect::<Vec<_>>().join("\n")
}

/// Makes the incident.
fn breaks(machine: &Changing, incident: &Incident) {
    let Incident { id, r#break, mended, .. } = incident;
    // The journal has what was said until then.
    machine.sh(&format!("# {id}\nset -e\n{}\njournalctl --sync", r#break));
    assert!(!machine.holds(mended), "{id}: nothing is broken");
}

/// Waits until all is well, since some services reload after the command that asks them to has ended. Then it takes the
/// incident away.
fn is_mended(machine: &Changing, incident: &Incident) {
    let Incident { id, mended, clean, .. } = incident;
    machine.until(&format!("# {id}\n{mended}"));
    machine.sh(&format!("# {id}\n( {clean}\n) > /dev/null 2>&1 || :"));
}

async fn by_tools(client: &mut Client, incident: &Incident, count: &mut Count) {
    for Call { tool, arguments, fails } in &incident.calls {
        let mut envelope = client.envelope(tool, arguments.clone()).await;
        if envelope["status"] == "confirmation_required" {
            count.asked += envelope.to_string().len();
            let mut confirmed = arguments.clone();
            confirmed["confirmed"] = json!(true);
            envelope = client.envelope(tool, confirmed).await;
        }
        count.add(arguments, &envelope);
        let code = envelope["error_code"].as_str();
        assert_eq!(code, fails.as_deref(), "{}: {tool} {arguments}: {envelope}", incident.id);
    }
}

fn by_shell(machine: &Changing, incident: &Incident) -> Count {
    let outputs =
        incident.shell.iter().map(|line| line.len() + machine.sh(&format!("{{ {line}\n}} 2>&1 || :")).len());
    Count { calls: incident.shell.len(), bytes: outputs.sum(), asked: 0 }
}
