//! Failures of many hosts: hosts that failed in the same way are told of together, and the most common ways first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use host_text::redact::excerpt;

/// The number of different failures that are told.
const MAX_FAILURES: usize = 20;
/// The number of characters of a message or a remediation step.
const MAX_MESSAGE: usize = 500;
/// The number of remediation steps of one failure.
const MAX_STEPS: usize = 3;
/// The number of bytes of a failure's other details.
const MAX_DETAILS: usize = 2000;

/// The text that stands in messages for the name of each host that failed in this way.
const HOST: &str = "{host}";

/// Leaves out the address behind a host's name, which differs between hosts that fail in the same way.
fn without_address(message: &str) -> String {
    let opening = format!("{HOST} (");
    let Some((before, rest)) = message.split_once(&opening) else { return message.to_owned() };
    let Some((address, after)) = rest.split_once(')') else { return message.to_owned() };
    match address.contains([' ', '(']) {
        true => message.to_owned(),
        false => format!("{before}{HOST}{after}"),
    }
}

/// The reason why one host gives no answer.
#[derive(Clone, Copy, Debug)]
pub struct HostFailure<'a> {
    /// The code of the error.
    pub error_code: &'a str,
    /// The message, which may hold the host's name.
    pub message: &'a str,
    /// What can be done about it.
    pub remediation: &'a [String],
    /// The other members of the host's own answer.
    pub details: &'a Map<String, Value>,
}

/// The failures of all hosts. Hosts that failed in the same way stand together.
#[derive(Debug, Default)]
pub struct Failures(BTreeMap<String, (Map<String, Value>, Vec<String>)>);

impl Failures {
    /// Adds the failure of a host.
    pub fn add(&mut self, host: &str, error: HostFailure<'_>) {
        let message = without_address(&error.message.replace(host, HOST));
        let steps: Vec<String> =
            error.remediation.iter().take(MAX_STEPS).map(|step| excerpt(step, MAX_MESSAGE)).collect();
        let mut failure = Map::new();
        failure.insert("error_code".to_owned(), error.error_code.into());
        failure.insert("message".to_owned(), excerpt(&message, MAX_MESSAGE).into());
        failure.insert("remediation".to_owned(), steps.into());
        let mut room = MAX_DETAILS;
        for (name, value) in error.details {
            // A detail that doesn't fit is left out: cut, it would say something else.
            let length = name.len() + value.to_string().len();
            if let Some(left) = room.checked_sub(length) {
                failure.insert(name.clone(), value.clone());
                room = left;
            }
        }
        let key = json!(failure).to_string();
        self.0.entry(key).or_insert_with(|| (failure, Vec::new())).1.push(host.to_owned());
    }

    /// The most common failures, and the hosts of all others together.
    pub fn into_json(self) -> Vec<Value> {
        let mut all: Vec<_> = self.0.into_values().collect();
        all.sort_by_key(|(_, hosts)| Reverse(hosts.len()));
        let further = all.split_off(all.len().min(MAX_FAILURES));
        if !further.is_empty() {
            let count = further.len();
            let codes: BTreeSet<&str> =
                further.iter().filter_map(|(failure, _)| failure.get("error_code")?.as_str()).collect();
            let message =
                format!("{count} further failures are left out: ask one of these hosts alone for its own");
            let failure = Map::from_iter([
                ("error_code".to_owned(), "FURTHER_FAILURES".into()),
                ("message".to_owned(), message.into()),
                ("remediation".to_owned(), json!([])),
                ("error_codes".to_owned(), codes.into_iter().take(MAX_FAILURES).collect()),
            ]);
            all.push((failure, further.into_iter().flat_map(|(_, hosts)| hosts).collect()));
        }
        let to_json = |(failure, hosts): (Map<String, Value>, Vec<String>)| {
            Value::Object([("hosts".to_owned(), json!(hosts))].into_iter().chain(failure).collect())
        };
        all.into_iter().map(to_json).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_in_many_ways_is_told_of_the_most_common_and_the_others_are_named() {
        let mut failures = Failures::default();
        for number in 0..1000 {
            // The first hundred hosts fail in ten ways, the others each in its own way.
            let what = if number < 100 { number % 10 } else { number };
            let details = json!({"log": "d".repeat(1 << 20), "lock_info": {"pid": what}});
            let failure = HostFailure {
                error_code: "BROKEN",
                message: &format!("{what} {}", "m".repeat(4000)),
                remediation: &["r".repeat(4000)],
                details: details.as_object().unwrap(),
            };
            failures.add(&format!("h{number}"), failure);
        }
        let told = failures.into_json();
        assert_eq!(told.len(), MAX_FAILURES + 1);
        assert!(json!(told).to_string().len() < 64 << 10);
        for failure in &told[..10] {
            assert_eq!(failure["hosts"].as_array().unwrap().len(), 10);
            assert!(failure.get("log").is_none() && failure["lock_info"]["pid"].is_u64());
        }
        let last = &told[MAX_FAILURES];
        assert_eq!(
            (&last["error_code"], &last["error_codes"]),
            (&json!("FURTHER_FAILURES"), &json!(["BROKEN"]))
        );
        assert_eq!(last["hosts"].as_array().unwrap().len(), 1000 - 100 - 10);
    }
}
