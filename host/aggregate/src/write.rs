//! Writes a folded answer as JSON, and writes notes on what a reader can't see in it.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::cut;
use super::node::{
    ALWAYS_NAMED, Content, Group, Host, HostList, HostSet, Node, OWN_NAME, Omission, Part, Range, runs,
};
use host_text::visible::excerpt;

/// The greatest size of the JSON of all hosts together. A model can still read that much and keep the question in mind, and
/// an answer that is read for its differences is far shorter. A program that wants more can ask for less at a time.
const MAX_BYTES: usize = 256 << 10;

/// The member that marks what was left out.
const CUT: &str = "$cut";

/// The facts about an answer as a whole that its notes have to state.
#[derive(Default)]
pub struct Caveats {
    /// Whether some values of some hosts are not given.
    pub lossy: bool,
    /// The names of the hosts whose answers were cut before folding.
    pub cut_before: Option<String>,
    reordered: bool,
    labelled: bool,
    told_apart: bool,
    /// The number of items and members that were left out for their size.
    parts_cut: usize,
    /// The number of values and texts that were cut or left out for their size.
    values_cut: usize,
}

impl Caveats {
    /// Whether anything was left out for its size.
    pub fn is_cut(&self) -> bool {
        self.parts_cut + self.values_cut > 0
    }

    /// The notes.
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
                MAX_BYTES >> 10,
                self.parts_cut,
                self.values_cut
            ));
        }
        notes
    }
}

/// Writes a node as JSON of at most [`MAX_BYTES`] bytes.
pub fn bounded(mut node: Node<'_>, names: &[&str]) -> (Value, Caveats) {
    let mut room = MAX_BYTES;
    loop {
        node = cut::within(node, names, room);
        let (data, caveats) = render(&node, names);
        if super::node::length(&data) <= MAX_BYTES {
            return (data, caveats);
        }
        // The JSON was longer than the estimate, so the next attempt gets less room.
        room = room.min(cut::size(&node, names)) / 8 * 7;
    }
}

fn render(node: &Node<'_>, names: &[&str]) -> (Value, Caveats) {
    let mut writer =
        Writer { names, times: HashMap::new(), labels: HashMap::new(), caveats: Caveats::default() };
    writer.count(node);
    let data = writer.node(node);
    writer.caveats.labelled = !writer.labels.is_empty();
    (data, writer.caveats)
}

struct Writer<'a> {
    names: &'a [&'a str],
    /// The number of times that each set of hosts is named.
    times: HashMap<Vec<Host>, usize>,
    labels: HashMap<Vec<Host>, String>,
    caveats: Caveats,
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
                    if let Content::Value(node) = &group.content {
                        self.count(node);
                    }
                    if let HostList::Named(hosts) = &group.hosts {
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

    fn count_who(&mut self, who: &HostSet) {
        match who {
            HostSet::All => {}
            HostSet::On(hosts) | HostSet::NotOn(hosts) => self.count_hosts(hosts),
        }
    }

    fn count_hosts(&mut self, hosts: &[Host]) {
        if hosts.len() > ALWAYS_NAMED {
            *self.times.entry(hosts.to_vec()).or_default() += 1;
        }
    }

    fn node(&mut self, node: &Node<'_>) -> Value {
        match node {
            Node::Same(value) => escape_names(value),
            Node::Object { members, cut } => {
                let members = members.iter().map(|(name, part)| (escape_name(name), self.part(part)));
                let mut members: Map<String, Value> = members.collect();
                members.extend(self.left_out(cut));
                Value::Object(members)
            }
            Node::List { items, reordered, cut } => {
                self.caveats.reordered |= reordered;
                let mut items = runs(items).map(|run| self.run(run)).collect::<Vec<_>>().concat();
                items.extend(self.left_out(cut).map(|cut| Value::Object(Map::from_iter([cut]))));
                Value::Array(items)
            }
            Node::Differs(groups) => json!({ "$differs": self.groups(groups) }),
            Node::Range(range) => self.range(range),
            Node::Examples { some, values } => {
                self.caveats.lossy = true;
                json!({ "$examples": self.groups(some), "values": values })
            }
            Node::Text(text, most) => {
                self.caveats.values_cut += 1;
                json!(excerpt(text, *most))
            }
            Node::Gone(bytes) => {
                self.caveats.values_cut += 1;
                json!({ CUT: format!("{bytes} bytes") })
            }
        }
    }

    fn left_out(&mut self, cut: &Omission) -> Option<(String, Value)> {
        if cut.count == 0 {
            return None;
        }
        self.caveats.parts_cut += cut.count;
        let told = match cut.nothing_of.as_slice() {
            [] => json!(cut.count),
            few if few.len() <= ALWAYS_NAMED => json!({"count": cut.count, "hosts": self.named(few)}),
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

    fn who(&mut self, who: &HostSet) -> Option<(String, Value)> {
        self.caveats.told_apart |= *who != HostSet::All;
        match who {
            HostSet::All => None,
            HostSet::On(hosts) => Some(("$on".to_owned(), self.hosts(hosts))),
            HostSet::NotOn(hosts) => Some(("$not_on".to_owned(), self.hosts(hosts))),
        }
    }

    fn groups(&mut self, groups: &[Group<'_>]) -> Value {
        groups.iter().map(|group| self.group(group)).collect()
    }

    fn group(&mut self, group: &Group<'_>) -> Value {
        let (name, content) = match &group.content {
            Content::Value(node) => ("value", self.node(node)),
            Content::Diff(diff) => ("diff", json!(diff)),
            Content::OwnName => ("value", json!(OWN_NAME)),
            Content::Further(values) => {
                self.caveats.lossy = true;
                ("further", json!(values))
            }
        };
        let hosts = match &group.hosts {
            HostList::Named(hosts) => self.hosts(hosts),
            HostList::Counted(hosts) => json!(hosts),
        };
        json!({ name: content, "hosts": hosts })
    }

    fn range(&mut self, range: &Range<'_>) -> Value {
        self.caveats.lossy = true;
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

    /// The names of a set of hosts. A set that is named more than once gets a label the first time, and is only the label
    /// after that.
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

/// Escapes a name of the tool's own, so that it can't be taken for a name of folding.
fn escape_name(name: &str) -> String {
    if name.starts_with('$') { format!("${name}") } else { name.to_owned() }
}

/// Escapes all names in a value of the tool's own.
fn escape_names(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(escape_names).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(name, value)| (escape_name(name), escape_names(value))).collect(),
        ),
        value => value.clone(),
    }
}
