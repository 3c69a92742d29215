//! Writes what was found as JSON, and says in notes what a reader can't see in it.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::cut;
use super::node::{Group, Host, Hosts, LeftOut, NAMED, Node, OWN_NAME, Part, Range, Said, Who, runs};
use host_text::visible::excerpt;

/// Bytes of JSON that an answer of all hosts together may have: about what a model reads without losing sight of what
/// it was asked, and far more than any that is read for what differs. More of it would be for a program, which can ask
/// for less at a time.
const MOST: usize = 256 << 10;

/// Stands where there was no room for more.
const CUT: &str = "$cut";

/// What a reader has to be told about an answer as a whole.
#[derive(Default)]
pub struct Seen {
    /// Not everything is said of every host.
    pub lossy: bool,
    /// Some answers were cut before they were folded.
    pub cut_before: Option<String>,
    reordered: bool,
    labelled: bool,
    told_apart: bool,
    /// Items and members that there was no room for.
    parts_cut: usize,
    /// The same of values and texts.
    values_cut: usize,
}

impl Seen {
    /// Whether there was no room for something.
    pub fn is_cut(&self) -> bool {
        self.parts_cut + self.values_cut > 0
    }

    /// A sentence each.
    pub fn notes(&self) -> Vec<String> {
        let all = [
            (
                self.lossy,
                "Not everything is said of every host: $range is the least, the middle and the greatest value \
                 (low and high: whose), $examples are some, further counts what is left out. Ask one host for its \
                 own.",
            ),
            (
                self.reordered,
                "Some items don't stand in the same order on every host: ask one host for its own, where order \
                 matters.",
            ),
            (self.labelled, "$1 and so on stand for the hosts that are named where it stands first."),
        ];
        let mut notes: Vec<String> =
            all.iter().filter(|(applies, _)| *applies).map(|(_, note)| (*note).to_owned()).collect();
        if let Some(hosts) = self.cut_before.as_ref().filter(|_| self.told_apart) {
            notes.push(format!(
                "The listing is cut on {hosts}: what $on and $not_on say is lacking there may only have been cut. \
                 Use a filter or a greater limit where it matters."
            ));
        }
        if self.is_cut() {
            notes.push(format!(
                "There was room for {} KiB: {} items and members and {} values are left out where $cut stands, or \
                 where a text ends with its length. Name fewer hosts, use a filter or a smaller limit.",
                MOST >> 10,
                self.parts_cut,
                self.values_cut
            ));
        }
        notes
    }
}

/// As JSON of at most [`MOST`] bytes.
pub fn bounded(mut node: Node<'_>, names: &[&str]) -> (Value, Seen) {
    let mut room = MOST;
    loop {
        node = cut::within(node, names, room);
        let (data, seen) = render(&node, names);
        if super::node::length(&data) <= MOST {
            return (data, seen);
        }
        // It was longer than it was taken to be.
        room = room.min(cut::size(&node, names)) / 8 * 7;
    }
}

fn render(node: &Node<'_>, names: &[&str]) -> (Value, Seen) {
    let mut writer = Writer { names, times: HashMap::new(), labels: HashMap::new(), seen: Seen::default() };
    writer.count(node);
    let data = writer.node(node);
    writer.seen.labelled = !writer.labels.is_empty();
    (data, writer.seen)
}

struct Writer<'a> {
    names: &'a [&'a str],
    /// How often a set of hosts is named.
    times: HashMap<Vec<Host>, usize>,
    labels: HashMap<Vec<Host>, String>,
    seen: Seen,
}

impl Writer<'_> {
    fn count(&mut self, node: &Node<'_>) {
        match node {
            Node::Same(_) | Node::Range(_) | Node::Text(..) | Node::Gone(_) => {}
            Node::Object { members, .. } => members.iter().for_each(|(_, part)| self.count_part(part)),
            Node::List { items, .. } => {
                for run in runs(items) {
                    self.count_who(&run[0].who);
                    run.iter().for_each(|part| self.count(&part.node));
                }
            }
            Node::Differs(groups) | Node::Examples { some: groups, .. } => {
                for group in groups {
                    if let Said::Value(node) = &group.said {
                        self.count(node);
                    }
                    if let Hosts::Named(hosts) = &group.hosts {
                        self.count_hosts(hosts);
                    }
                }
            }
        }
    }

    fn count_part(&mut self, part: &Part<'_>) {
        self.count_who(&part.who);
        self.count(&part.node);
    }

    fn count_who(&mut self, who: &Who) {
        match who {
            Who::All => {}
            Who::On(hosts) | Who::NotOn(hosts) => self.count_hosts(hosts),
        }
    }

    fn count_hosts(&mut self, hosts: &[Host]) {
        if hosts.len() > NAMED {
            *self.times.entry(hosts.to_vec()).or_default() += 1;
        }
    }

    fn node(&mut self, node: &Node<'_>) -> Value {
        match node {
            Node::Same(value) => own(value),
            Node::Object { members, cut } => {
                let members = members.iter().map(|(name, part)| (own_name(name), self.part(part)));
                let mut members: Map<String, Value> = members.collect();
                members.extend(self.left_out(cut));
                Value::Object(members)
            }
            Node::List { items, reordered, cut } => {
                self.seen.reordered |= reordered;
                let mut items = runs(items).map(|run| self.run(run)).collect::<Vec<_>>().concat();
                items.extend(self.left_out(cut).map(|cut| Value::Object(Map::from_iter([cut]))));
                Value::Array(items)
            }
            Node::Differs(groups) => json!({ "$differs": self.groups(groups) }),
            Node::Range(range) => self.range(range),
            Node::Examples { some, values } => {
                self.seen.lossy = true;
                json!({ "$examples": self.groups(some), "values": values })
            }
            Node::Text(text, most) => {
                self.seen.values_cut += 1;
                json!(excerpt(text, *most))
            }
            Node::Gone(bytes) => {
                self.seen.values_cut += 1;
                json!({ CUT: format!("{bytes} bytes") })
            }
        }
    }

    fn left_out(&mut self, cut: &LeftOut) -> Option<(String, Value)> {
        if cut.count == 0 {
            return None;
        }
        self.seen.parts_cut += cut.count;
        let told = match cut.nothing_of.as_slice() {
            [] => json!(cut.count),
            few if few.len() <= NAMED => json!({"count": cut.count, "hosts": self.named(few)}),
            many => json!({"count": cut.count, "hosts": many.len()}),
        };
        Some((CUT.to_owned(), told))
    }

    fn part(&mut self, part: &Part<'_>) -> Value {
        let Some((member, hosts)) = self.who(&part.who) else { return self.node(&part.node) };
        let (name, value) = match self.node(&part.node) {
            Value::Object(members) => {
                return Value::Object([(member, hosts)].into_iter().chain(members).collect());
            }
            value => ("$value", value),
        };
        Value::Object(Map::from_iter([(member, hosts), (name.to_owned(), value)]))
    }

    fn run(&mut self, run: &[Part<'_>]) -> Vec<Value> {
        if let [one] = run {
            return vec![self.part(one)];
        }
        let who = self.who(&run[0].who);
        let items: Vec<Value> = run.iter().map(|part| self.node(&part.node)).collect();
        match who {
            None => items,
            Some(who) => {
                vec![Value::Object(Map::from_iter([who, ("$items".to_owned(), Value::Array(items))]))]
            }
        }
    }

    fn who(&mut self, who: &Who) -> Option<(String, Value)> {
        self.seen.told_apart |= *who != Who::All;
        match who {
            Who::All => None,
            Who::On(hosts) => Some(("$on".to_owned(), self.hosts(hosts))),
            Who::NotOn(hosts) => Some(("$not_on".to_owned(), self.hosts(hosts))),
        }
    }

    fn groups(&mut self, groups: &[Group<'_>]) -> Value {
        groups.iter().map(|group| self.group(group)).collect()
    }

    fn group(&mut self, group: &Group<'_>) -> Value {
        let (name, said) = match &group.said {
            Said::Value(node) => ("value", self.node(node)),
            Said::Diff(diff) => ("diff", json!(diff)),
            Said::OwnName => ("value", json!(OWN_NAME)),
            Said::Further(values) => {
                self.seen.lossy = true;
                ("further", json!(values))
            }
        };
        let hosts = match &group.hosts {
            Hosts::Named(hosts) => self.hosts(hosts),
            Hosts::Counted(hosts) => json!(hosts),
        };
        json!({ name: said, "hosts": hosts })
    }

    fn range(&mut self, range: &Range<'_>) -> Value {
        self.seen.lossy = true;
        let mut members = Map::from_iter([("$range".to_owned(), json!(range.ends))]);
        for (name, hosts) in [("low", &range.low), ("high", &range.high)] {
            if !hosts.is_empty() {
                members.insert(name.to_owned(), self.named(hosts));
            }
        }
        if !range.outliers.is_empty() {
            let outliers = range.outliers.iter();
            let outliers = outliers.map(|(value, hosts)| json!({"value": value, "hosts": self.named(hosts)}));
            members.insert("outliers".to_owned(), outliers.collect());
        }
        if range.further > 0 {
            members.insert("further".to_owned(), json!(range.further));
        }
        Value::Object(members)
    }

    /// Their names, with a label where they are named again; later that alone.
    fn hosts(&mut self, hosts: &[Host]) -> Value {
        if let Some(label) = self.labels.get(hosts) {
            return json!(label);
        }
        let names = self.named(hosts);
        if self.times.get(hosts).is_none_or(|times| *times < 2) {
            return names;
        }
        let label = format!("${}", self.labels.len() + 1);
        self.labels.insert(hosts.to_vec(), label.clone());
        json!({ label: names })
    }

    fn named(&self, hosts: &[Host]) -> Value {
        hosts.iter().map(|host| self.names[*host]).collect()
    }
}

/// A name of the tool's.
fn own_name(name: &str) -> String {
    if name.starts_with('$') { format!("${name}") } else { name.to_owned() }
}

/// A value of the tool's: its names can't be taken for those of folding.
fn own(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(own).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (own_name(name), own(value))).collect())
        }
        value => value.clone(),
    }
}
