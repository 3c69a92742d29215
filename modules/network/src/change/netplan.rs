//! Files of netplan, see netplan(5). They are edited line by line, so that comments stay, and what came of it is compared with
//! what was meant.

use linux_sysadmin_sdk::{Category, prelude::*};
use serde_yaml::{Mapping, Value};

use super::cidr::Cidr;
use super::edit::{Dns, Format, text_of};
use super::setting::{Route, Setting};

/// The definition of one interface.
pub(crate) struct Netplan {
    name: String,
    mac: Option<String>,
    /// The place of the definition in whichever file has it. A file that adds to it names it likewise.
    place: Option<Place>,
}

/// So many keys lead to a definition: `network`, its section, and its own name.
const DEFINITION: usize = 3;

/// The place of a definition: the keys of the section and of the definition.
#[derive(Clone)]
struct Place {
    section: String,
    id: String,
}

/// A mapping or a list within the lines.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// The line with the key.
    key: usize,
    /// The line behind the last one that belongs to it.
    end: usize,
    indent: usize,
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_content(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with('#')
}

/// Finds a key among the lines from `from` to `end`, which are indented by more than `outer`.
fn node(lines: &[String], from: usize, end: usize, outer: Option<usize>, key: &str) -> Option<Node> {
    let inner =
        (from..end).find(|number| is_content(&lines[*number])).map(|number| indent(&lines[number]))?;
    if outer.is_some_and(|outer| inner <= outer) {
        return None;
    }
    let is_key = |line: &str| {
        let (own, _) = line.trim_start().split_once(':').unwrap_or_default();
        indent(line) == inner && own.trim().trim_matches(['"', '\'']) == key
    };
    let at = (from..end).find(|number| is_content(&lines[*number]) && is_key(&lines[*number]))?;
    // The items of a list may stand as far left as its key.
    let belongs =
        |line: &str| indent(line) > inner || indent(line) == inner && line.trim_start().starts_with("- ");
    let mut last = at + 1;
    for (number, line) in lines.iter().enumerate().take(end).skip(at + 1) {
        if !is_content(line) {
            continue;
        }
        if !belongs(line) {
            break;
        }
        last = number + 1;
    }
    Some(Node { key: at, end: last, indent: inner })
}

fn child(lines: &[String], parent: Node, key: &str) -> Option<Node> {
    node(lines, parent.key + 1, parent.end, Some(parent.indent), key)
}

/// The ranges of the items of a block list.
fn items(lines: &[String], list: Node) -> Vec<std::ops::Range<usize>> {
    let numbers = list.key + 1..list.end;
    let starts = |number: &usize| is_content(&lines[*number]) && lines[*number].trim_start().starts_with('-');
    let Some(first) = numbers.clone().find(starts) else { return Vec::new() };
    let depth = indent(&lines[first]);
    let begins: Vec<usize> =
        numbers.filter(|number| starts(number) && indent(&lines[*number]) == depth).collect();
    let ends = begins.iter().skip(1).copied().chain([list.end]);
    begins.iter().zip(ends).map(|(begin, end)| *begin..end).collect()
}

impl Netplan {
    /// Finds the definition of an interface in the texts of the files.
    pub(crate) fn of(name: &str, mac: Option<&str>, texts: &[String]) -> Self {
        let place = |own: &Self| texts.iter().find_map(|text| own.place(&parse(text).ok()?));
        let mut own = Self { name: name.to_owned(), mac: None, place: None };
        own.place = place(&own);
        // A VLAN or a bridge may have the MAC address of the interface below it, so that only its name tells them apart.
        if own.place.is_none() {
            own.mac = mac.map(str::to_lowercase);
            own.place = place(&own);
        }
        own
    }

    fn place(&self, tree: &Value) -> Option<Place> {
        let network = tree.get("network")?.as_mapping()?;
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        for (section, definitions) in network {
            let Some(definitions) = definitions.as_mapping() else { continue };
            for (id, definition) in definitions {
                let Some(id) = id.as_str() else { continue };
                let matched = definition.get("match");
                let by_match = matched.is_some_and(|matched| {
                    let mac = text(matched, "macaddress").map(|mac| mac.to_lowercase());
                    text(matched, "name").as_deref() == Some(&self.name) || mac.is_some() && mac == self.mac
                });
                let renamed = text(definition, "set-name").is_some_and(|name| name == self.name);
                if renamed || by_match || matched.is_none() && id == self.name {
                    return Some(Place { section: section.as_str()?.to_owned(), id: id.to_owned() });
                }
            }
        }
        None
    }

    /// The place in this file: where it matches the interface, or else where other files have the definition.
    fn definition(&self, tree: &Value) -> Option<Place> {
        self.place(tree).or_else(|| self.place.clone())
    }

    /// Changes a list of the definition, both in the lines and in the tree, and compares them. `path` leads from the definition
    /// to the list.
    fn change(&self, text: &str, path: &[&str], new: &[Value]) -> Result<String> {
        let mut tree = parse(text)?;
        let place = self.definition(&tree).ok_or_else(|| not_editable(&["network"]))?;
        let mut keys = vec!["network", place.section.as_str(), place.id.as_str()];
        keys.extend(path);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        match new.is_empty() {
            true => take_out(&mut lines, &keys),
            false => set_lines(&mut lines, &keys, new),
        }
        .ok_or_else(|| not_editable(&keys))?;
        if tree.is_null() {
            // A new file says which version of the format it has.
            tree = parse("network:\n  version: 2\n")?;
        }
        set_tree(&mut tree, &keys, 0, new);
        let changed = text_of(&lines);
        match parse(&changed) {
            Ok(found) if found == tree => Ok(changed),
            _ => Err(not_editable(&keys)),
        }
    }

    fn list(&self, text: &str, path: &[&str]) -> Result<Vec<Value>> {
        let tree = parse(text)?;
        let Some(place) = self.definition(&tree) else { return Ok(Vec::new()) };
        let mut at = &tree["network"][place.section.as_str()][place.id.as_str()];
        for key in path {
            at = &at[*key];
        }
        Ok(at.as_sequence().cloned().unwrap_or_default())
    }
}

fn parse(text: &str) -> Result<Value> {
    serde_yaml::from_str(text).map_err(|error| {
        let message = format!("a file of netplan isn't YAML: {error}");
        Problem::new("CONFIG_INVALID", Category::State, message)
    })
}

fn not_editable(keys: &[&str]) -> Problem {
    let message = format!(
        "{} is written in a form that this tool doesn't edit: expected one key or item a line, or a list in brackets within one line",
        keys.join(".")
    );
    Problem::new("FORM_NOT_SUPPORTED", Category::State, message)
        .remedy("Edit the file with file_patch, then check it: command_run argv=[\"netplan\",\"generate\"]")
}

/// Sets the list at the end of the keys, before which `above` others stand.
fn set_tree(tree: &mut Value, keys: &[&str], above: usize, new: &[Value]) {
    let [key, rest @ ..] = keys else { return };
    if !tree.is_mapping() {
        *tree = Value::Mapping(Mapping::new());
    }
    let Some(map) = tree.as_mapping_mut() else { return };
    if !rest.is_empty() {
        let inner = map.entry(Value::from(*key)).or_insert(Value::Null);
        set_tree(inner, rest, above + 1, new);
        let is_left_empty = new.is_empty() && inner.as_mapping().is_some_and(Mapping::is_empty);
        if is_left_empty && above >= DEFINITION {
            map.remove(*key);
        }
        return;
    }
    if new.is_empty() {
        map.remove(*key);
    } else {
        map.insert(Value::from(*key), Value::Sequence(new.to_vec()));
    }
}

/// The text of a scalar. An IPv6 address is quoted, since a colon may make a mapping of it.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains([':', '~', '*', '#']) => format!("{text:?}"),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(is_true) => is_true.to_string(),
        _ => String::new(),
    }
}

/// The lines of an item of a list.
fn item(value: &Value, depth: usize) -> Vec<String> {
    let blanks = " ".repeat(depth);
    let Some(map) = value.as_mapping() else { return vec![format!("{blanks}- {}", scalar(value))] };
    let lines = map.iter().enumerate().map(|(number, (key, value))| {
        let mark = if number == 0 { "- " } else { "  " };
        format!("{blanks}{mark}{}: {}", scalar(key), scalar(value))
    });
    lines.collect()
}

/// The mapping or list at the end of the keys, or at the end of as many of them as there are, with their number.
fn find(lines: &[String], keys: &[&str]) -> (usize, Option<Node>) {
    let mut at: Option<Node> = None;
    for (known, key) in keys.iter().enumerate() {
        let found = match at {
            None => node(lines, 0, lines.len(), None, key),
            Some(parent) => child(lines, parent, key),
        };
        if found.is_none() {
            return (known, at);
        }
        at = found;
    }
    (keys.len(), at)
}

/// Takes out the list at the end of the keys, and each mapping above it that has nothing else. netplan refuses a definition
/// without a value, so that one that has nothing else becomes an empty mapping. None where there is no such list.
fn take_out(lines: &mut Vec<String>, keys: &[&str]) -> Option<()> {
    for length in (DEFINITION..=keys.len()).rev() {
        let (known, at) = find(lines, &keys[..length]);
        let at = at.filter(|_| known == length)?;
        let has_others = (at.key + 1..at.end).any(|number| is_content(&lines[number]));
        if length < keys.len() && has_others {
            return Some(());
        }
        if length == DEFINITION {
            let (name, rest) = lines[at.key].split_once(':')?;
            lines[at.key] = format!("{name}: {{}}{rest}");
        } else {
            lines.drain(at.key..at.end);
        }
    }
    Some(())
}

/// Sets the list at the end of the keys. None where the lines have a form that isn't known here.
fn set_lines(lines: &mut Vec<String>, keys: &[&str], new: &[Value]) -> Option<()> {
    let (known, at) = find(lines, keys);
    if known == keys.len() {
        return replace(lines, at?, new);
    }
    // Nothing hangs below a key whose value stands in its own line, unless that is the empty mapping.
    if let Some(parent) = at {
        let rest = rest_of(&lines[parent.key]);
        if let Some(behind) = rest.strip_prefix("{}") {
            let (key, _) = lines[parent.key].split_once(':')?;
            lines[parent.key] = format!("{key}:{behind}");
        }
        if !rest_of(&lines[parent.key]).is_empty() {
            return None;
        }
    }
    let step = 2;
    let mut depth = match at {
        None => 0,
        Some(parent) => {
            let inner = (parent.key + 1..parent.end).find(|number| is_content(&lines[*number]));
            inner.map_or(parent.indent + step, |number| indent(&lines[number]))
        }
    };
    let mut added = Vec::new();
    for (number, key) in keys.iter().enumerate().skip(known) {
        added.push(format!("{}{key}:", " ".repeat(depth)));
        if number == 0 {
            added.push(format!("{}version: 2", " ".repeat(depth + step)));
        }
        depth += step;
    }
    added.extend(new.iter().flat_map(|value| item(value, depth)));
    let end = at.map_or(lines.len(), |parent| parent.end);
    lines.splice(end..end, added);
    Some(())
}

/// What follows the key in its line, without a comment.
fn rest_of(line: &str) -> &str {
    let rest = line.split_once(':').map_or("", |(_, rest)| rest.trim());
    if rest.starts_with('#') { "" } else { rest }
}

/// Writes a list that exists anew, keeping the lines of the items that stay.
fn replace(lines: &mut Vec<String>, list: Node, new: &[Value]) -> Option<()> {
    let rest = rest_of(&lines[list.key]).to_owned();
    if rest.starts_with('[') {
        // Only scalars stand in brackets.
        if list.end > list.key + 1 || !rest.ends_with(']') || new.iter().any(Value::is_mapping) {
            return None;
        }
        let values: Vec<String> = new.iter().map(scalar).collect();
        let head = lines[list.key].split_once(':')?.0.to_owned();
        lines[list.key] = format!("{head}: [{}]", values.join(", "));
        return Some(());
    }
    if !rest.is_empty() {
        return None;
    }
    let ranges = items(lines, list);
    let depth = indent(&lines[ranges.first()?.start]);
    let value_of = |range: &std::ops::Range<usize>| -> Option<Value> {
        let text = text_of(&lines[range.clone()]);
        serde_yaml::from_str::<Vec<Value>>(&text).ok()?.pop()
    };
    let old: Vec<(Value, std::ops::Range<usize>)> =
        ranges.into_iter().map(|range| Some((value_of(&range)?, range))).collect::<Option<_>>()?;
    let mut wanted = new.to_vec();
    let mut gone = Vec::new();
    for (value, range) in old {
        match wanted.iter().position(|wanted| *wanted == value) {
            Some(at) => {
                wanted.remove(at);
            }
            None => gone.push(range),
        }
    }
    let added: Vec<String> = wanted.iter().flat_map(|value| item(value, depth)).collect();
    lines.splice(list.end..list.end, added);
    for range in gone.into_iter().rev() {
        lines.drain(range);
    }
    Some(())
}

/// The route of an item of `routes`.
fn route(item: &Value) -> Option<Route> {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let number =
        |key: &str| item.get(key).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    let via: Option<std::net::IpAddr> = match text("via") {
        Some(via) => Some(via.parse().ok()?),
        None => None,
    };
    let to = match text("to")? {
        "default" => Cidr::everything(via.is_some_and(|via| via.is_ipv6())),
        to => Cidr::read(to)?,
    };
    Some(Route {
        to,
        via,
        dev: String::new(),
        src: None,
        metric: number("metric"),
        table: number("table").filter(|table| *table != 254),
        protocol: None,
        is_onlink: false,
    })
}

fn route_item(route: &Route) -> Value {
    let mut map = Mapping::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            map.insert(Value::from(key), value);
        }
    };
    set("to", Some(Value::from(route.to.in_words())));
    set("via", route.via.map(|via| via.to_string().into()));
    set("from", route.src.map(|src| src.to_string().into()));
    set("on-link", route.is_onlink.then(|| true.into()));
    set("metric", route.metric.map(Value::from));
    set("table", route.table.map(Value::from));
    // A route without a gateway is for machines on the link, which netplan 0.106 wants to be told.
    set("scope", route.via.is_none().then(|| "link".into()));
    Value::Mapping(map)
}

/// An address of an interface is a text, or a mapping with its options.
fn is_address(item: &Value, wanted: Cidr) -> bool {
    let text = match item {
        Value::Mapping(map) => map.keys().next().and_then(Value::as_str),
        other => other.as_str(),
    };
    text.and_then(Cidr::read) == Some(wanted)
}

fn texts(values: &[Value]) -> Vec<String> {
    values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

const SERVERS: [&str; 2] = ["nameservers", "addresses"];
const SEARCH: [&str; 2] = ["nameservers", "search"];

impl Format for Netplan {
    fn holds(&self, text: &str) -> bool {
        parse(text).ok().and_then(|tree| self.place(&tree)).is_some()
    }

    fn add(&self, text: &str, setting: &Setting) -> Result<String> {
        let (key, value) = match setting {
            Setting::Route(route) => ("routes", route_item(route)),
            Setting::Address(address) => ("addresses", Value::from(address.to_string())),
        };
        let mut list = self.list(text, &[key])?;
        list.push(value);
        self.change(text, &[key], &list)
    }

    fn remove(&self, text: &str, setting: &Setting) -> Result<Option<String>> {
        let key = if matches!(setting, Setting::Route(_)) { "routes" } else { "addresses" };
        let mut list = self.list(text, &[key])?;
        let at = list.iter().position(|item| match setting {
            Setting::Route(wanted) => route(item).is_some_and(|route| route.has_set(wanted)),
            Setting::Address(wanted) => is_address(item, *wanted),
        });
        let Some(at) = at else { return Ok(None) };
        list.remove(at);
        self.change(text, &[key], &list).map(Some)
    }

    fn dns(&self, text: &str) -> Dns {
        let of = |path: &[&str]| texts(&self.list(text, path).unwrap_or_default());
        Dns { servers: of(&SERVERS), search: of(&SEARCH) }
    }

    fn set_dns(&self, text: &str, dns: &Dns) -> Result<String> {
        let mut text = text.to_owned();
        for (path, values) in [(SERVERS, &dns.servers), (SEARCH, &dns.search)] {
            let now = texts(&self.list(&text, &path)?);
            if now == *values {
                continue;
            }
            let new: Vec<Value> = values.iter().map(|value| Value::from(value.as_str())).collect();
            text = self.change(&text, &path, &new)?;
        }
        Ok(text)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
