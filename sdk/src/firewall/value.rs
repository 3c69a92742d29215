//! Values as rules compare them: numbers with an order, and names. A value that isn't known is a range of numbers, and a
//! comparison of ranges may come out as "it depends".

use std::net::IpAddr;

use serde_json::Value;

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    Yes,
    No,
    /// It holds for some packets of the kind that was asked about, or what it asks can't be known.
    Maybe,
}

impl Truth {
    pub(super) fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Maybe => Self::Maybe,
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Maybe,
        }
    }

    pub(super) fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }
}

impl From<bool> for Truth {
    fn from(is_true: bool) -> Self {
        if is_true { Self::Yes } else { Self::No }
    }
}

/// The meaning of a value, which says how the other side of a comparison is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ipv4,
    Ipv6,
    Number,
    /// A protocol above IP, by number or name.
    Protocol,
    /// `ipv4` or `ipv6`.
    Family,
    /// A protocol above Ethernet.
    EtherType,
    TcpFlags,
    CtState,
    CtStatus,
    IcmpType,
    Icmpv6Type,
    Direction,
}

/// The left side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// One number, or one of a range.
    Numbers(Kind, u128, u128),
    Text(String),
    /// Any interface but the loopback.
    SomeInterface,
    /// Several values side by side.
    Tuple(Vec<Subject>),
    /// The packet has no such field: the rule doesn't match, whatever it compares.
    Absent,
    /// The value depends on what nobody asked about, such as time or traffic.
    Unknown,
}

impl Subject {
    pub(super) fn number(kind: Kind, number: impl Into<u128>) -> Self {
        let number = number.into();
        Self::Numbers(kind, number, number)
    }

    pub(super) fn address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::number(Kind::Ipv4, u32::from(address)),
            IpAddr::V6(address) => Self::number(Kind::Ipv6, u128::from(address)),
        }
    }

    /// Any address of a machine: neither multicast nor broadcast, and not the loopback's.
    pub(super) fn any_machine(is_v6: bool) -> Self {
        match is_v6 {
            false => Self::Numbers(Kind::Ipv4, 0x0100_0000, 0xdfff_ffff),
            true => Self::Numbers(Kind::Ipv6, 2, (0xff << 120) - 1),
        }
    }

    /// The one number that it is.
    pub(super) fn exact(&self) -> Option<u128> {
        match self {
            Self::Numbers(_, low, high) if low == high => Some(*low),
            _ => None,
        }
    }

    /// Whether it is equal to the right side, or in it, where that is a set, a range or a prefix.
    pub(super) fn is_in(&self, right: &Value) -> Truth {
        if let Some(element) = right.get("elem").and_then(|element| element.get("val")) {
            return self.is_in(element);
        }
        if right.as_str() == Some("*") && *self != Self::Absent {
            return Truth::Yes;
        }
        if let Some(many) = right.get("set").and_then(Value::as_array).or(right.as_array()) {
            return many.iter().map(|one| self.is_in(one)).fold(Truth::No, Truth::or);
        }
        match self {
            Self::Absent => Truth::No,
            Self::Unknown => Truth::Maybe,
            Self::SomeInterface => match right.as_str() {
                Some("lo") => Truth::No,
                _ => Truth::Maybe,
            },
            Self::Text(text) => match right {
                Value::String(pattern) => is_named(text, pattern).into(),
                // A number stands for an interface that is gone, or whose name nft didn't find.
                _ => Truth::Maybe,
            },
            Self::Tuple(parts) => match right.get("concat").and_then(Value::as_array) {
                Some(others) if others.len() == parts.len() => parts
                    .iter()
                    .zip(others)
                    .map(|(part, other)| part.is_in(other))
                    .fold(Truth::Yes, Truth::and),
                _ => Truth::Maybe,
            },
            Self::Numbers(kind, low, high) => match bounds(*kind, right) {
                None => Truth::Maybe,
                Some((first, last)) if first <= *low && *high <= last => Truth::Yes,
                Some((first, last)) if last < *low || *high < first => Truth::No,
                // The kernel itself drops what claims to come from the loopback and doesn't.
                Some((first, last))
                    if *kind == Kind::Ipv4 && low != high && first >> 24 == 127 && last >> 24 == 127 =>
                {
                    Truth::No
                }
                Some(_) => Truth::Maybe,
            },
        }
    }

    /// Whether it is less than the right side.
    pub(super) fn is_less(&self, right: &Value) -> Truth {
        let Self::Numbers(kind, low, high) = self else { return self.undecided() };
        match number(*kind, right) {
            None => Truth::Maybe,
            Some(bound) if *high < bound => Truth::Yes,
            Some(bound) if *low >= bound => Truth::No,
            Some(_) => Truth::Maybe,
        }
    }

    /// Whether any of the bits of the right side is set, as `ct state new,established` asks.
    pub(super) fn has_bits(&self, right: &Value) -> Truth {
        let Self::Numbers(kind, ..) = self else { return self.undecided() };
        match (self.exact(), number(*kind, right)) {
            (Some(bits), Some(mask)) => (bits & mask != 0).into(),
            _ => Truth::Maybe,
        }
    }

    fn undecided(&self) -> Truth {
        if *self == Self::Absent { Truth::No } else { Truth::Maybe }
    }
}

/// `eth*` stands for all names that begin so, and `\*` for a star.
fn is_named(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) if !begin.ends_with('\\') => name.starts_with(begin),
        _ => name == pattern.replace("\\*", "*"),
    }
}

/// The first and the last number of a range, of a prefix, or of one value.
fn bounds(kind: Kind, right: &Value) -> Option<(u128, u128)> {
    if let Some([first, last]) = right.get("range").and_then(Value::as_array).map(Vec::as_slice) {
        return Some((number(kind, first)?, number(kind, last)?));
    }
    if let Some(prefix) = right.get("prefix") {
        let width: u32 = match kind {
            Kind::Ipv4 => 32,
            Kind::Ipv6 => 128,
            _ => return None,
        };
        let length = u32::try_from(prefix.get("len")?.as_u64()?).ok().filter(|length| *length <= width)?;
        let address = number(kind, prefix.get("addr")?)?;
        let rest = 1u128.checked_shl(width - length).map_or(u128::MAX, |size| size - 1);
        return Some((address & !rest, address & !rest | rest));
    }
    let one = number(kind, right)?;
    Some((one, one))
}

/// One value of the right side as a number. Names stand for numbers, and a list of flags for all of them.
pub(super) fn number(kind: Kind, value: &Value) -> Option<u128> {
    match value {
        Value::Number(number) => number.as_u64().map(u128::from),
        Value::Bool(is_true) => Some((*is_true).into()),
        Value::Array(flags) => flags.iter().try_fold(0, |bits, flag| Some(bits | number(kind, flag)?)),
        Value::String(name) => named(kind, name),
        Value::Object(_) => {
            let flags = value.get("|")?.as_array()?;
            flags.iter().try_fold(0, |bits, flag| Some(bits | number(kind, flag)?))
        }
        Value::Null => None,
    }
}

fn named(kind: Kind, name: &str) -> Option<u128> {
    match kind {
        Kind::Ipv4 => return name.parse().ok().map(|address: std::net::Ipv4Addr| u32::from(address).into()),
        Kind::Ipv6 => return name.parse().ok().map(|address: std::net::Ipv6Addr| address.into()),
        _ => {}
    }
    let digits = name.strip_prefix("0x");
    let parsed = match digits {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => name.parse().ok(),
    };
    parsed.or_else(|| names(kind).iter().find(|(known, _)| *known == name).map(|(_, number)| *number))
}

/// The names that nft prints in place of numbers.
fn names(kind: Kind) -> &'static [(&'static str, u128)] {
    match kind {
        Kind::Protocol => &[
            ("icmp", 1),
            ("igmp", 2),
            ("ipencap", 4),
            ("tcp", 6),
            ("udp", 17),
            ("dccp", 33),
            ("ipv6", 41),
            ("ipv6-route", 43),
            ("ipv6-frag", 44),
            ("gre", 47),
            ("esp", 50),
            ("ah", 51),
            ("icmpv6", 58),
            ("ipv6-icmp", 58),
            ("ipv6-nonxt", 59),
            ("ipv6-opts", 60),
            ("ospf", 89),
            ("ipip", 94),
            ("pim", 103),
            ("ipcomp", 108),
            ("comp", 108),
            ("vrrp", 112),
            ("l2tp", 115),
            ("sctp", 132),
            ("udplite", 136),
        ],
        Kind::Family => &[("ipv4", 2), ("ipv6", 10)],
        Kind::EtherType => &[
            ("ip", 0x800),
            ("ip4", 0x800),
            ("arp", 0x806),
            ("vlan", 0x8100),
            ("8021q", 0x8100),
            ("ip6", 0x86dd),
            ("8021ad", 0x88a8),
        ],
        Kind::TcpFlags => &[
            ("fin", 1),
            ("syn", 2),
            ("rst", 4),
            ("psh", 8),
            ("ack", 16),
            ("urg", 32),
            ("ecn", 64),
            ("cwr", 128),
        ],
        Kind::CtState => &[("invalid", 1), ("established", 2), ("related", 4), ("new", 8), ("untracked", 64)],
        Kind::CtStatus => &[
            ("expected", 1),
            ("seen-reply", 2),
            ("assured", 4),
            ("confirmed", 8),
            ("snat", 16),
            ("dnat", 32),
            ("dying", 512),
        ],
        Kind::IcmpType => &[
            ("echo-reply", 0),
            ("destination-unreachable", 3),
            ("source-quench", 4),
            ("redirect", 5),
            ("echo-request", 8),
            ("router-advertisement", 9),
            ("router-solicitation", 10),
            ("time-exceeded", 11),
            ("parameter-problem", 12),
            ("timestamp-request", 13),
            ("timestamp-reply", 14),
            ("info-request", 15),
            ("info-reply", 16),
            ("address-mask-request", 17),
            ("address-mask-reply", 18),
        ],
        Kind::Icmpv6Type => &[
            ("destination-unreachable", 1),
            ("packet-too-big", 2),
            ("time-exceeded", 3),
            ("parameter-problem", 4),
            ("echo-request", 128),
            ("echo-reply", 129),
            ("mld-listener-query", 130),
            ("mld-listener-report", 131),
            ("mld-listener-done", 132),
            ("mld-listener-reduction", 132),
            ("nd-router-solicit", 133),
            ("nd-router-advert", 134),
            ("nd-neighbor-solicit", 135),
            ("nd-neighbor-advert", 136),
            ("nd-redirect", 137),
            ("router-renumbering", 138),
            ("ind-neighbor-solicit", 141),
            ("ind-neighbor-advert", 142),
            ("mld2-listener-report", 143),
        ],
        Kind::Direction => &[("original", 0), ("reply", 1)],
        Kind::Ipv4 | Kind::Ipv6 | Kind::Number => &[],
    }
}
