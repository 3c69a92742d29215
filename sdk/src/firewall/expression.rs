//! The left sides of matches: which value of the packet an expression of nft's JSON stands for.

use serde_json::Value;

use super::packet::{Packet, Protocol};
use super::ruleset::Table;
use super::value::{Kind, Subject, Truth, number};

/// The packet on its way, with what rules have changed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    pub packet: Packet,
    /// The packet as it arrived.
    pub original: Packet,
    /// The mark; `None` where it depends.
    pub mark: Option<u128>,
    /// The connection's mark.
    pub ct_mark: Option<u128>,
    /// Whether the kernel keeps track of the connection. `None` where it depends.
    pub is_tracked: Option<bool>,
    /// Whether the tracking comes later than the hook at hand.
    pub is_before_tracking: bool,
    /// Whether the destination was changed.
    pub is_redirected: bool,
    /// Whether the packet goes on to another machine.
    pub is_forwarded: bool,
}

impl State {
    pub(super) fn new(packet: &Packet) -> Self {
        Self {
            packet: packet.clone(),
            original: packet.clone(),
            mark: Some(0),
            ct_mark: Some(0),
            is_tracked: Some(true),
            is_before_tracking: true,
            is_redirected: false,
            is_forwarded: false,
        }
    }

    /// What holds on both ways.
    pub(super) fn merge(&mut self, other: &Self) {
        fn keep<T: PartialEq>(one: &mut Option<T>, other: &Option<T>) {
            if one != other {
                *one = None;
            }
        }
        keep(&mut self.mark, &other.mark);
        keep(&mut self.ct_mark, &other.ct_mark);
        keep(&mut self.is_tracked, &other.is_tracked);
    }
}

/// Whether the match holds.
pub(super) fn matches(body: &Value, state: &State, table: &Table) -> Truth {
    let null = Value::Null;
    let [op, left, right] = ["op", "left", "right"].map(|key| body.get(key).unwrap_or(&null));
    let subject = subject(left, state, table);
    if subject == Subject::Absent {
        return Truth::No;
    }
    match op.as_str() {
        Some("==") => is_in(&subject, right, table),
        Some("!=") => is_in(&subject, right, table).not(),
        Some("in") => match right {
            Value::Object(_) => is_in(&subject, right, table),
            Value::String(name) if name.starts_with('@') => is_in(&subject, right, table),
            _ => subject.has_bits(right),
        },
        Some("<") => subject.is_less(right),
        Some(">=") => subject.is_less(right).not(),
        Some("<=") => subject.is_less(right).or(subject.is_in(right)),
        Some(">") => subject.is_less(right).or(subject.is_in(right)).not(),
        _ => Truth::Maybe,
    }
}

/// Whether the subject is in a set that the rule itself has, or in one of the table.
fn is_in(subject: &Subject, right: &Value, table: &Table) -> Truth {
    match elements(right, table) {
        Some(Some(elements)) => {
            elements.iter().map(|element| subject.is_in(element)).fold(Truth::No, Truth::or)
        }
        Some(None) => Truth::Maybe,
        None => subject.is_in(right),
    }
}

/// The elements of a set. The outer `None` says that it is no set, the inner one that nobody knows them.
pub(super) fn elements<'a>(set: &'a Value, table: &'a Table) -> Option<Option<&'a [Value]>> {
    match set {
        Value::String(name) => {
            let known = table.sets.get(name.strip_prefix('@')?);
            Some(known.and_then(|elements| elements.as_deref()))
        }
        _ => set.get("set").map(|set| set.as_array().map(Vec::as_slice)),
    }
}

/// The value that the expression stands for.
pub(super) fn subject(expression: &Value, state: &State, table: &Table) -> Subject {
    let Some((kind, body)) = expression.as_object().and_then(|object| object.iter().next()) else {
        return Subject::Unknown;
    };
    let word = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default();
    match kind.as_str() {
        "payload" => payload(body, word("protocol"), word("field"), &state.packet),
        "meta" => meta(word("key"), state),
        "ct" => ct(word("key"), word("dir"), state),
        "fib" => fib(body, word("result"), &state.packet),
        // An ordinary first packet has no extension headers, and a match on one of their fields fails.
        "exthdr" if body.get("field").is_none() => Subject::number(Kind::Number, 0u8),
        "exthdr" => Subject::Absent,
        "concat" => {
            let parts: Vec<_> =
                body.as_array().into_iter().flatten().map(|part| subject(part, state, table)).collect();
            match parts.contains(&Subject::Absent) {
                true => Subject::Absent,
                false => Subject::Tuple(parts),
            }
        }
        "&" | "|" | "^" | "<<" | ">>" => calculated(kind, body, state, table),
        "map" => mapped(body, state, table),
        _ => Subject::Unknown,
    }
}

fn payload(body: &Value, protocol: &str, field: &str, packet: &Packet) -> Subject {
    let ports = |has: bool| match (has, field) {
        (false, _) => Subject::Absent,
        (true, "dport") => Subject::number(Kind::Number, packet.port),
        (true, "sport") => match packet.source_port {
            Some(port) => Subject::number(Kind::Number, port),
            None => Subject::Numbers(Kind::Number, 1024, 65535),
        },
        // A first packet asks for a connection, and does nothing else.
        (true, "flags") => Subject::number(Kind::TcpFlags, 2u8),
        (true, "ackseq" | "urgptr" | "reserved") => Subject::number(Kind::Number, 0u8),
        (true, _) => Subject::Unknown,
    };
    let version = if packet.is_v6 { "ip6" } else { "ip" };
    match protocol {
        "ip" | "ip6" if protocol != version => Subject::Absent,
        "ip" | "ip6" => match field {
            "saddr" => address(packet.source, packet.is_v6),
            "daddr" => address(packet.destination, packet.is_v6),
            "protocol" | "nexthdr" => Subject::number(Kind::Protocol, packet.protocol_number()),
            "version" => Subject::number(Kind::Number, if packet.is_v6 { 6u8 } else { 4 }),
            "hdrlength" => Subject::number(Kind::Number, 5u8),
            _ => Subject::Unknown,
        },
        "tcp" => ports(packet.protocol == Protocol::Tcp),
        "udp" => ports(packet.protocol == Protocol::Udp),
        // Without ports, the bytes in their place are compared.
        "th" if packet.protocol == Protocol::Icmp => Subject::Unknown,
        "th" => ports(true),
        "icmp" | "icmpv6" => {
            let is_v6 = protocol == "icmpv6";
            match (packet.protocol == Protocol::Icmp && packet.is_v6 == is_v6, field) {
                (false, _) => Subject::Absent,
                (true, "type") if is_v6 => Subject::number(Kind::Icmpv6Type, 128u8),
                (true, "type") => Subject::number(Kind::IcmpType, 8u8),
                (true, "code") => Subject::number(Kind::Number, 0u8),
                (true, _) => Subject::Unknown,
            }
        }
        "sctp" | "dccp" | "udplite" | "ah" | "esp" | "comp" | "igmp" | "arp" | "vlan" => Subject::Absent,
        _ => match (body.get("base").and_then(Value::as_str), body.get("offset"), body.get("len")) {
            (Some("th" | "transport"), Some(offset), Some(len)) if *len == 16 && *offset == 16 => {
                ports_by("dport", packet)
            }
            (Some("th" | "transport"), Some(offset), Some(len)) if *len == 16 && *offset == 0 => {
                ports_by("sport", packet)
            }
            _ => Subject::Unknown,
        },
    }
}

fn ports_by(field: &str, packet: &Packet) -> Subject {
    payload(&Value::Null, "th", field, packet)
}

fn address(known: Option<std::net::IpAddr>, is_v6: bool) -> Subject {
    known.map_or_else(|| Subject::any_machine(is_v6), Subject::address)
}

fn meta(key: &str, state: &State) -> Subject {
    let packet = &state.packet;
    let is_v6 = packet.is_v6;
    match key {
        "l4proto" => Subject::number(Kind::Protocol, packet.protocol_number()),
        "nfproto" => Subject::number(Kind::Family, if is_v6 { 10u8 } else { 2 }),
        "protocol" => Subject::number(Kind::EtherType, if is_v6 { 0x86ddu16 } else { 0x800 }),
        "iifname" | "iif" => match &packet.interface {
            Some(name) => Subject::Text(name.clone()),
            None => Subject::SomeInterface,
        },
        // Nothing leaves the machine at the hook `input`.
        "oifname" | "oif" if !state.is_forwarded => Subject::Text(String::new()),
        "oifname" | "oif" => Subject::SomeInterface,
        "mark" => state.mark.map_or(Subject::Unknown, |mark| Subject::number(Kind::Number, mark)),
        "pkttype" if !is_group(packet) => Subject::Text("host".to_owned()),
        _ => Subject::Unknown,
    }
}

fn is_group(packet: &Packet) -> bool {
    packet.destination.is_some_and(|address| match address {
        std::net::IpAddr::V4(address) => address.octets()[0] >= 224 || address.octets()[3] == 255,
        std::net::IpAddr::V6(address) => address.is_multicast(),
    })
}

fn ct(key: &str, dir: &str, state: &State) -> Subject {
    let has_none = state.is_before_tracking || state.is_tracked == Some(false);
    if key == "state" {
        return match (state.is_before_tracking, state.is_tracked) {
            (_, None) => Subject::Unknown,
            (_, Some(false)) => Subject::number(Kind::CtState, 64u8),
            (true, Some(true)) => Subject::number(Kind::CtState, 1u8),
            (false, Some(true)) => Subject::number(Kind::CtState, 8u8),
        };
    }
    if has_none {
        return Subject::Absent;
    }
    if state.is_tracked.is_none() {
        return Subject::Unknown;
    }
    let original = &state.original;
    match (key, dir) {
        ("mark", _) => state.ct_mark.map_or(Subject::Unknown, |mark| Subject::number(Kind::Number, mark)),
        ("status", _) => Subject::number(Kind::CtStatus, if state.is_redirected { 32u8 } else { 0 }),
        ("direction", _) => Subject::number(Kind::Direction, 0u8),
        ("l3proto", _) => Subject::number(Kind::Family, if original.is_v6 { 10u8 } else { 2 }),
        ("protocol", _) => Subject::number(Kind::Protocol, original.protocol_number()),
        ("saddr" | "ip saddr" | "ip6 saddr", "original") => payload(
            &Value::Null,
            if key == "saddr" { version(original) } else { key.trim_end_matches(" saddr") },
            "saddr",
            original,
        ),
        ("daddr" | "ip daddr" | "ip6 daddr", "original") => payload(
            &Value::Null,
            if key == "daddr" { version(original) } else { key.trim_end_matches(" daddr") },
            "daddr",
            original,
        ),
        ("proto-src", "original") => ports_by("sport", original),
        ("proto-dst", "original") => ports_by("dport", original),
        _ => Subject::Unknown,
    }
}

fn version(packet: &Packet) -> &'static str {
    if packet.is_v6 { "ip6" } else { "ip" }
}

/// The routing table's view of an address.
fn fib(body: &Value, result: &str, packet: &Packet) -> Subject {
    let flags = match body.get("flags") {
        Some(Value::Array(flags)) => flags.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(flag)) => vec![flag.as_str()],
        _ => Vec::new(),
    };
    let of_source = flags.contains(&"saddr");
    match result {
        "type" if !of_source && !is_group(packet) => Subject::Text("local".to_owned()),
        "type" if of_source => match packet.source {
            Some(address) if packet.is_own(address) => Subject::Text("local".to_owned()),
            Some(_) if !packet.own.is_empty() => Subject::Text("unicast".to_owned()),
            _ => Subject::Unknown,
        },
        "oif" | "oifname" if of_source => match packet.is_on_route {
            Some(is_on_route) => Subject::number(Kind::Number, is_on_route),
            None => Subject::Unknown,
        },
        _ => Subject::Unknown,
    }
}

fn calculated(op: &str, body: &Value, state: &State, table: &Table) -> Subject {
    let Some([left, right]) = body.as_array().map(Vec::as_slice) else { return Subject::Unknown };
    let left = subject(left, state, table);
    let Subject::Numbers(kind, ..) = left else {
        return if left == Subject::Absent { left } else { Subject::Unknown };
    };
    let mask = number(kind, right).or_else(|| {
        // A mask of an address is written as one.
        right.as_str().and_then(|text| number(kind, &Value::from(text)))
    });
    let (Some(value), Some(mask)) = (left.exact(), mask) else { return Subject::Unknown };
    let width = if kind == Kind::Ipv6 { u128::MAX } else { u128::from(u32::MAX) };
    let result = match op {
        "&" => value & mask,
        "|" => value | mask,
        "^" => value ^ mask,
        "<<" => u32::try_from(mask).ok().and_then(|by| value.checked_shl(by)).unwrap_or_default() & width,
        _ => u32::try_from(mask).ok().and_then(|by| value.checked_shr(by)).unwrap_or_default(),
    };
    Subject::number(kind, result)
}

/// The value that a map gives for a key. A key that the map lacks ends the rule.
fn mapped(body: &Value, state: &State, table: &Table) -> Subject {
    let (Some(key), Some(data)) = (body.get("key"), body.get("data")) else { return Subject::Unknown };
    let key = subject(key, state, table);
    let Some(Some(pairs)) = elements(data, table) else { return Subject::Unknown };
    for pair in pairs {
        let Some([known, value]) = pair.as_array().map(Vec::as_slice) else { return Subject::Unknown };
        match key.is_in(known) {
            Truth::Yes => return constant(value),
            Truth::Maybe => return Subject::Unknown,
            Truth::No => {}
        }
    }
    Subject::Absent
}

/// A value that is written out: a number, an address or a name.
pub(super) fn constant(value: &Value) -> Subject {
    match value {
        Value::Number(number) => {
            number.as_u64().map_or(Subject::Unknown, |n| Subject::number(Kind::Number, n))
        }
        Value::String(text) => match text.parse() {
            Ok(address) => Subject::address(address),
            Err(_) => Subject::Text(text.clone()),
        },
        _ => Subject::Unknown,
    }
}
