//! Tests that each host's answer can be restored from the folded answer, unless a note says that not everything is given.

use std::collections::HashMap;

use proptest::sample::Index;

use super::*;

/// The sets of hosts that have a label, by label.
type Labels = HashMap<String, Vec<String>>;

/// The answer of one host, as a reader restores it from the folded answer. None is a part that the host lacks.
fn unfolded(value: &Value, host: &str, labels: &Labels) -> Option<Value> {
    match value {
        Value::Array(items) => {
            let mut list = Vec::new();
            for item in items {
                match (item.get("$items").and_then(Value::as_array), has(item, host, labels)) {
                    (Some(items), true) => {
                        list.extend(items.iter().filter_map(|item| unfolded(item, host, labels)))
                    }
                    (None, true) => list.extend(unfolded(item, host, labels)),
                    (_, false) => {}
                }
            }
            Some(Value::Array(list))
        }
        Value::Object(_) if !has(value, host, labels) => None,
        Value::Object(members) => {
            if let Some(value) = members.get("$value") {
                return unfolded(value, host, labels);
            }
            if let Some(Value::Array(groups)) = members.get("$differs") {
                return of_group(groups, host, labels);
            }
            let members = members.iter().filter(|(name, _)| !is_folding(name));
            let members = members.filter_map(|(name, value)| {
                Some((name.strip_prefix('$').unwrap_or(name).to_owned(), unfolded(value, host, labels)?))
            });
            Some(Value::Object(members.collect()))
        }
        value => Some(value.clone()),
    }
}

fn is_folding(name: &str) -> bool {
    name.starts_with('$') && !name.starts_with("$$")
}

fn has(value: &Value, host: &str, labels: &Labels) -> bool {
    let is_in = |hosts: &Value| names(hosts, labels).iter().any(|name| name == host);
    value.get("$on").is_none_or(is_in) && !value.get("$not_on").is_some_and(is_in)
}

fn names(hosts: &Value, labels: &Labels) -> Vec<String> {
    match hosts {
        Value::String(label) => labels[label].clone(),
        Value::Object(labelled) => names(&labelled.values().next().unwrap().clone(), labels),
        Value::Array(names) => names.iter().map(|name| name.as_str().unwrap().to_owned()).collect(),
        _ => Vec::new(),
    }
}

/// The value of the group that names the host, or of the last group, which has all other hosts.
fn of_group(groups: &[Value], host: &str, labels: &Labels) -> Option<Value> {
    let last = groups.last().unwrap();
    let own = groups.iter().find(|group| names(&group["hosts"], labels).iter().any(|name| name == host));
    let group = own.unwrap_or(last);
    assert!(own.is_some() || last["hosts"].is_number(), "{host} is in none of {groups:?}");
    if let Some(diff) = group.get("diff") {
        let text = last["value"].as_str().unwrap();
        return Some(json!(patched(text, diff.as_str().unwrap())));
    }
    if group["value"] == "$host" { Some(json!(host)) } else { unfolded(&group["value"], host, labels) }
}

/// Applies a diff as patch(1) does.
fn patched(text: &str, diff: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut new, mut done, mut was_added) = (String::new(), 0, false);
    for line in diff.split_inclusive('\n') {
        if let Some(header) = line.strip_prefix("@@ -") {
            let range = header.split(' ').next().unwrap();
            let (start, count) = range.split_once(',').unwrap_or((range, "1"));
            let start: usize = start.parse().unwrap();
            // Where a hunk removes nothing, its line number is that of the line before it.
            let start = if count == "0" { start } else { start - 1 };
            lines[done..start].iter().for_each(|line| new.push_str(line));
            done = start;
        } else if let Some(removed) = line.strip_prefix('-') {
            assert_eq!(removed.trim_end(), lines[done].trim_end());
            done += 1;
        } else if let Some(added) = line.strip_prefix('+') {
            new.push_str(added);
        } else {
            assert!(line.starts_with("\\ No newline"), "{line}");
            new.truncate(new.len() - usize::from(was_added));
        }
        was_added = line.starts_with('+');
    }
    lines[done..].iter().for_each(|line| new.push_str(line));
    new
}

fn labels_in(value: &Value, labels: &mut Labels) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| labels_in(item, labels)),
        Value::Object(members) => {
            for (name, value) in members {
                let is_label = name.strip_prefix('$').is_some_and(|number| number.parse::<usize>().is_ok());
                if is_label && members.len() == 1 {
                    labels.insert(name.clone(), names(value, labels));
                }
                labels_in(value, labels);
            }
        }
        _ => {}
    }
}

/// The value with its lists sorted, for comparisons where folding may change the order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            items.sort_by_key(Value::to_string);
            Value::Array(items)
        }
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(name, value)| (name.clone(), sorted(value))).collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(members.into_iter().collect())
        }
        value => value.clone(),
    }
}

/// Whether the folded answer gives everything.
fn is_whole(answers: &[Value]) -> Result<bool, TestCaseError> {
    let folded = folded(answers.len(), |host| answers[host].clone());
    let again = super::folded(answers.len(), |host| answers[host].clone());
    prop_assert_eq!(folded.data.to_string(), again.data.to_string());
    let given: usize = answers.iter().map(|answer| answer.to_string().len() + "web01".len() + 30).sum();
    let length = folded.data.to_string().len();
    prop_assert!(length <= given + 200, "{} of {}: {}", length, given, folded.data);
    if folded.notes.iter().any(|note| note == LOSSY) {
        prop_assert!(answers.len() > 5, "{}", folded.data);
        return Ok(false);
    }
    let mut labels = Labels::new();
    labels_in(&folded.data, &mut labels);
    for (host, answer) in answers.iter().enumerate() {
        let said = unfolded(&folded.data, &name(host), &labels).unwrap();
        if folded.notes.iter().any(|note| note == REORDERED) {
            prop_assert_eq!(sorted(&said), sorted(answer), "{} in {}", name(host), folded.data);
        } else {
            prop_assert_eq!(&said, answer, "{} in {}", name(host), folded.data);
        }
    }
    Ok(true)
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ab]{0,2}".prop_map(Value::from),
        "([ab]{1,9}\n){2,9}[ab]?".prop_map(Value::from),
        "\\PC{0,8}".prop_map(|text| Value::from(host_text::visible::visible(&text))),
        (0_u32..60).prop_map(|minute| json!(format!("2026-11-22T08:{minute:02}:00Z"))),
    ];
    let names =
        || prop_oneof!["[abc]", Just("name".to_owned()), Just("$on".to_owned()), Just("$differs".to_owned())];
    leaf.prop_recursive(4, 48, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((names(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Replaces one of the values in a value by another, or removes it.
fn changed(value: &mut Value, at: &[Index], new: Option<&Value>) {
    let Some((first, rest)) = at.split_first() else {
        *value = new.cloned().unwrap_or_default();
        return;
    };
    match value {
        Value::Array(items) if !items.is_empty() => {
            let place = first.index(items.len());
            if rest.is_empty() && new.is_none() {
                items.remove(place);
            } else {
                changed(&mut items[place], rest, new);
            }
        }
        Value::Object(members) if !members.is_empty() => {
            let name = members.keys().nth(first.index(members.len())).unwrap().clone();
            if rest.is_empty() && new.is_none() {
                members.shift_remove(&name);
            } else {
                changed(&mut members[&name], rest, new);
            }
        }
        value => *value = new.cloned().unwrap_or_default(),
    }
}

/// Copies of one answer, of which some were changed.
fn alike() -> impl Strategy<Value = Vec<Value>> {
    let change = (
        any::<Index>(),
        proptest::collection::vec(any::<Index>(), 1..4),
        proptest::option::of(json_values()),
    );
    (json_values(), 2_usize..20, proptest::collection::vec(change, 0..12)).prop_map(
        |(value, hosts, changes)| {
            let mut answers = vec![value; hosts];
            for (host, at, new) in changes {
                let host = host.index(hosts);
                changed(&mut answers[host], &at, new.as_ref());
            }
            answers
        },
    )
}

/// Small answers of many hosts, whose values are of one kind or of several, few or many.
fn measured_on_many() -> impl Strategy<Value = Vec<Value>> {
    let value = (0_u8..5, 1_u32..60).prop_flat_map(|(kind, most)| {
        (0..most).prop_map(move |number| match (kind, number % 3) {
            (0, _) | (4, 0) => json!(number * number),
            (1, _) => json!(format!("2026-11-22T08:{number:02}:00Z")),
            (2, _) => json!(format!("{}\n", "line\n".repeat(20) + &number.to_string())),
            (3, _) | (4, 1) => json!(format!("text {number}")),
            _ => Value::Null,
        })
    });
    let common = prop_oneof![Just(None), Just(Some(json!("common")))];
    let host = (any::<bool>(), value.clone(), value);
    (common, proptest::collection::vec(host, 6..60)).prop_map(|(common, hosts)| {
        let answer = |(is_common, a, b): (bool, Value, Value)| match &common {
            Some(common) if is_common => json!({"a": common, "list": [{"name": "x", "b": b}]}),
            _ => json!({"a": a, "list": [{"name": "x", "b": b}]}),
        };
        hosts.into_iter().map(answer).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn copies_fold_to_the_copy(value in json_values(), hosts in 1_usize..20) {
        let mut value = value;
        // Another test covers escaping.
        value = serde_json::from_str(&value.to_string().replace("\"$", "\"")).unwrap();
        let folded = folded(hosts, |_| value.clone());
        prop_assert_eq!(folded.data.to_string(), value.to_string());
        prop_assert!(folded.notes.is_empty());
    }

    #[test]
    fn whatever_hosts_say_can_be_had_back(answers in proptest::collection::vec(json_values(), 2..20)) {
        is_whole(&answers)?;
    }

    #[test]
    fn what_hosts_say_otherwise_can_be_had_back(answers in alike()) {
        is_whole(&answers)?;
    }

    #[test]
    fn what_many_hosts_measure_can_be_had_back_or_is_said_not_to_be_all(answers in measured_on_many()) {
        is_whole(&answers)?;
    }

    #[test]
    fn whoever_is_unlike_most_hosts_is_named(others in proptest::collection::vec((0_usize..60, "[a-z]{1,3}"), 1..29)) {
        let mut answers = vec![json!({"release": "most have this"}); 60];
        for (host, value) in others {
            answers[host] = json!({"release": value});
        }
        let shown = folded(60, |host| answers[host].clone()).data.to_string();
        for (host, answer) in answers.iter().enumerate() {
            let is_named = shown.contains(&format!("\"{}\"", name(host)));
            prop_assert_eq!(is_named, answer["release"] != "most have this", "{} in {}", name(host), shown);
        }
    }

    #[test]
    fn up_to_five_hosts_lose_nothing(answers in alike()) {
        prop_assert!(is_whole(&answers[..answers.len().min(5)])?);
    }

    #[test]
    fn the_only_one_that_differs_is_named(value in json_values(), at in proptest::collection::vec(any::<Index>(), 1..4), new in json_values(), host in 0_usize..30) {
        let mut answers = vec![value; 30];
        changed(&mut answers[host], &at, Some(&new));
        let folded = folded(30, |host| answers[host].clone());
        let is_named = folded.data.to_string().contains(&format!("\"{}\"", name(host)));
        let others = if host == 0 { 1 } else { 0 };
        prop_assert_eq!(is_named, answers[host] != answers[others], "{}", folded.data);
    }
}

#[test]
fn what_the_tools_say_of_two_hosts_can_be_had_back() {
    let mut other = svc_list();
    change(&mut other, "service", "nginx")["active_state"] = json!("failed");
    other.as_array_mut().unwrap().remove(9);
    let failing = json!([{"service": "x", "active_state": "failed"}]);
    for answers in [
        vec![svc_list(), other.clone()],
        vec![svc_list(), other, failing],
        vec![timer_list(), json!([])],
        vec![session_info("a"), session_info("bb"), json!({})],
        vec![perf_overview(), json!({"data": null}), perf_overview()["data"].take()],
    ] {
        assert!(is_whole(&answers).unwrap());
    }
}
