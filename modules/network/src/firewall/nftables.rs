//! The ruleset as `nft --json` prints it, see libnftables-json(5).

use serde_json::Value;

use super::{Action, Chain, Chains, Packet, Rule, is_in, is_interface};

pub(super) fn chains(text: &str, packet: &Packet<'_>) -> Option<Chains> {
    let ruleset: Value = serde_json::from_str(text).ok()?;
    let mut chains = Chains::new();
    for object in ruleset.get("nftables")?.as_array()? {
        if let Some(chain) = object.get("chain") {
            let is_of_family = is_of_family(chain, packet);
            let hook = text_of(chain, "hook");
            let entry: &mut Chain = chains.entry(name(chain, "name")).or_default();
            entry.is_base =
                is_of_family && matches!(hook, "output" | "postrouting") && text_of(chain, "type") != "nat";
            entry.drops_by_policy = text_of(chain, "policy") == "drop";
        } else if let Some(rule) = object.get("rule") {
            let chain = name(rule, "chain");
            let rule = read(rule, &chain, packet);
            chains.entry(chain).or_default().rules.push(rule);
        }
    }
    Some(chains)
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn name(value: &Value, of_chain: &str) -> String {
    format!(
        "table {} {} chain {}",
        text_of(value, "family"),
        text_of(value, "table"),
        text_of(value, of_chain)
    )
}

fn is_of_family(chain: &Value, packet: &Packet<'_>) -> bool {
    match text_of(chain, "family") {
        "inet" => true,
        "ip" => packet.to.is_ipv4(),
        "ip6" => packet.to.is_ipv6(),
        _ => false,
    }
}

fn read(rule: &Value, chain: &str, packet: &Packet<'_>) -> Rule {
    let statements = rule.get("expr").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut fits = Some(true);
    let mut action = Action::Nothing;
    let mut words = Vec::new();
    for statement in statements {
        let Some((kind, body)) = statement.as_object().and_then(|object| object.iter().next()) else {
            continue;
        };
        let target = || {
            let own = name(rule, "chain");
            let base = own.rsplit_once(' ').map_or("", |(base, _)| base);
            format!("{base} {}", text_of(body, "target"))
        };
        match kind.as_str() {
            "match" => {
                fits = both(fits, matches(body, packet));
                words.push(shown(body));
                continue;
            }
            "accept" => action = Action::Accept,
            "drop" | "reject" => action = Action::Block,
            "return" => action = Action::Return,
            "jump" => action = Action::Jump(target()),
            "goto" => action = Action::Goto(target()),
            "counter" | "log" | "comment" | "notrack" | "mangle" | "meter" => continue,
            // A limit, an extension of iptables, or a map of verdicts: some of the packets are meant.
            "vmap" => {
                fits = both(fits, None);
                action = Action::Block;
            }
            _ => fits = both(fits, None),
        }
        words.push(kind.clone());
    }
    let handle = rule.get("handle").map(|handle| format!(" handle {handle}")).unwrap_or_default();
    Rule { fits, action, text: format!("{chain}{handle}: {}", words.join(" ")) }
}

/// Both have to hold. What can't be told of one leaves both open, unless the other one doesn't hold.
fn both(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn shown(body: &Value) -> String {
    let left = body.get("left").map(|left| {
        let payload =
            left.get("payload").map(|of| format!("{} {}", text_of(of, "protocol"), text_of(of, "field")));
        let key = |kind: &str| left.get(kind).map(|of| format!("{kind} {}", text_of(of, "key")));
        payload.or_else(|| key("meta")).or_else(|| key("ct")).unwrap_or_else(|| left.to_string())
    });
    let operator = match text_of(body, "op") {
        "==" | "in" => String::new(),
        other => format!("{other} "),
    };
    let right =
        body.get("right").map(|right| right.as_str().map_or_else(|| right.to_string(), str::to_owned));
    format!("{} {operator}{}", left.unwrap_or_default(), right.unwrap_or_default())
}

fn matches(body: &Value, packet: &Packet<'_>) -> Option<bool> {
    let (left, right) = (body.get("left")?, body.get("right")?);
    let holds = if let Some(payload) = left.get("payload") {
        of_payload(text_of(payload, "protocol"), text_of(payload, "field"), right, packet)
    } else if let Some(meta) = left.get("meta") {
        match (text_of(meta, "key"), packet.out) {
            ("oifname" | "oif", Some(out)) => any(right, &|value| Some(is_interface(out, value.as_str()?))),
            ("l4proto", _) => any(right, &|value| Some(value == "tcp" || value == 6)),
            ("nfproto", _) => {
                let own = if packet.to.is_ipv4() { "ipv4" } else { "ipv6" };
                any(right, &|value| Some(value == own))
            }
            _ => None,
        }
    } else if left.get("ct").is_some_and(|ct| text_of(ct, "key") == "state") {
        any(right, &|value| Some(value == "new"))
    } else {
        None
    }?;
    Some(if text_of(body, "op") == "!=" { !holds } else { holds })
}

fn of_payload(protocol: &str, field: &str, right: &Value, packet: &Packet<'_>) -> Option<bool> {
    match (protocol, field) {
        ("tcp" | "th", "dport") => any(right, &|value| is_port(value, packet.port?)),
        ("udp" | "sctp" | "icmp" | "icmpv6" | "igmp" | "esp" | "ah" | "dccp" | "udplite", _) => Some(false),
        ("ip", _) if packet.to.is_ipv6() => Some(false),
        ("ip6", _) if packet.to.is_ipv4() => Some(false),
        ("ip" | "ip6", "daddr") => any(right, &|value| is_address(value, packet.to)),
        ("ip" | "ip6", "saddr") => any(right, &|value| is_address(value, packet.from?)),
        ("ip", "protocol") | ("ip6", "nexthdr") => any(right, &|value| Some(value == "tcp" || value == 6)),
        _ => None,
    }
}

/// Says whether one of the values fits: the only one, or one of a set or a list. A named set isn't looked into.
fn any(right: &Value, fits: &dyn Fn(&Value) -> Option<bool>) -> Option<bool> {
    let list = right.get("set").or(Some(right)).and_then(Value::as_array);
    let Some(list) = list else {
        let is_named = right.as_str().is_some_and(|text| text.starts_with('@'));
        return if is_named { None } else { fits(right) };
    };
    let mut is_known = true;
    for value in list {
        match fits(value) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => is_known = false,
        }
    }
    is_known.then_some(false)
}

fn is_port(value: &Value, port: u16) -> Option<bool> {
    let port = u64::from(port);
    match value.get("range").and_then(Value::as_array) {
        Some(range) => Some((range.first()?.as_u64()?..=range.get(1)?.as_u64()?).contains(&port)),
        None => Some(value.as_u64()? == port),
    }
}

fn is_address(value: &Value, address: std::net::IpAddr) -> Option<bool> {
    if let Some(prefix) = value.get("prefix") {
        return is_in(address, &format!("{}/{}", text_of(prefix, "addr"), prefix.get("len")?));
    }
    if let Some(range) = value.get("range").and_then(Value::as_array) {
        let bound = |at: usize| range.get(at)?.as_str()?.parse::<std::net::IpAddr>().ok();
        return Some((bound(0)?..=bound(1)?).contains(&address));
    }
    is_in(address, value.as_str()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::firewall::{Verdict, judge};
    use serde_json::json;

    fn verdict(chain: Value, rules: &[Value]) -> Verdict {
        let mut objects = vec![
            json!({"metainfo": {"version": "1.0.6", "json_schema_version": 1}}),
            json!({"table": {"family": "inet", "name": "filter", "handle": 1}}),
            json!({"chain": chain}),
            json!({"chain": {"family": "inet", "table": "filter", "name": "web", "handle": 9}}),
        ];
        objects.extend(rules.iter().map(|rule| json!({"rule": rule})));
        let packet = Packet {
            to: [198, 51, 100, 20].into(),
            from: Some([192, 0, 2, 10].into()),
            port: Some(8080),
            out: Some("eth0"),
        };
        judge(&chains(&json!({"nftables": objects}).to_string(), &packet).unwrap())
    }

    fn base(policy: &str) -> Value {
        json!({"family": "inet", "table": "filter", "name": "output", "handle": 2, "type": "filter", "hook": "output", "prio": 0,
               "policy": policy})
    }

    fn rule(chain: &str, expr: Value) -> Value {
        json!({"family": "inet", "table": "filter", "chain": chain, "handle": 7, "expr": expr})
    }

    fn field(protocol: &str, field: &str, op: &str, right: Value) -> Value {
        json!({"match": {"op": op, "left": {"payload": {"protocol": protocol, "field": field}}, "right": right}})
    }

    #[test]
    fn a_rule_stops_the_packets_that_it_matches() {
        let passes = Verdict::Passes;
        let blocked =
            |text: &str| Verdict::Blocked(format!("table inet filter chain output handle 7: {text}"));
        let state =
            |right: Value| json!({"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": right}});
        let out =
            |name: &str| json!({"match": {"op": "==", "left": {"meta": {"key": "oifname"}}, "right": name}});
        let drop = || json!({"drop": null});
        for (expr, expected) in [
            (
                json!([field("tcp", "dport", "==", json!(8080)), {"counter": {"packets": 0, "bytes": 0}}, {"reject": {"type": "icmp", "expr": "port-unreachable"}}]),
                blocked("tcp dport 8080 reject"),
            ),
            (json!([field("tcp", "dport", "==", json!(81)), drop()]), passes.clone()),
            (json!([field("tcp", "dport", "!=", json!(81)), drop()]), blocked("tcp dport != 81 drop")),
            (
                json!([field("tcp", "dport", "==", json!({"range": [8000, 9000]})), drop()]),
                blocked("tcp dport {\"range\":[8000,9000]} drop"),
            ),
            (
                json!([field("tcp", "dport", "==", json!({"set": [80, {"range": [8080, 8081]}]})), drop()]),
                blocked("tcp dport {\"set\":[80,{\"range\":[8080,8081]}]} drop"),
            ),
            (json!([field("udp", "dport", "==", json!(8080)), drop()]), passes.clone()),
            (
                json!([
                    field("ip", "daddr", "==", json!({"prefix": {"addr": "198.51.100.0", "len": 24}})),
                    drop()
                ]),
                blocked("ip daddr {\"prefix\":{\"addr\":\"198.51.100.0\",\"len\":24}} drop"),
            ),
            (
                json!([field("ip", "saddr", "==", json!("192.0.2.10")), drop()]),
                blocked("ip saddr 192.0.2.10 drop"),
            ),
            (json!([field("ip6", "daddr", "==", json!("::1")), drop()]), passes.clone()),
            (json!([state(json!(["established", "related"])), drop()]), passes.clone()),
            (json!([state(json!("new")), drop()]), blocked("ct state new drop")),
            (json!([out("eth*"), drop()]), blocked("meta oifname eth* drop")),
            (json!([out("lo"), drop()]), passes.clone()),
            (json!([{"log": {"prefix": "x"}}, {"accept": null}]), passes.clone()),
        ] {
            assert_eq!(verdict(base("accept"), &[rule("output", expr.clone())]), expected, "{expr}");
        }
    }

    #[test]
    fn what_rules_do_not_tell_is_not_certain() {
        let may =
            |text: &str| Verdict::MayBeBlocked(format!("table inet filter chain output handle 7: {text}"));
        let user = json!({"match": {"op": "==", "left": {"meta": {"key": "skuid"}}, "right": 1000}});
        assert_eq!(
            verdict(base("accept"), &[rule("output", json!([user, {"drop": null}]))]),
            may("meta skuid 1000 drop")
        );
        let set = field("ip", "daddr", "==", json!("@banned"));
        assert_eq!(
            verdict(base("accept"), &[rule("output", json!([set, {"drop": null}]))]),
            may("ip daddr @banned drop")
        );
        let xt = json!({"xt": {"type": "match", "name": "owner"}});
        assert_eq!(verdict(base("accept"), &[rule("output", json!([xt, {"drop": null}]))]), may("xt drop"));
        // A rule that may let it pass stands before the policy.
        let found = verdict(base("drop"), &[rule("output", json!([user, {"accept": null}]))]);
        assert_eq!(
            found,
            Verdict::MayBeBlocked("the policy of table inet filter chain output is drop".to_owned())
        );
    }

    #[test]
    fn chains_are_followed_and_the_policy_counts_at_the_end() {
        let policy = Verdict::Blocked("the policy of table inet filter chain output is drop".to_owned());
        assert_eq!(verdict(base("drop"), &[]), policy);
        let jump = rule("output", json!([{"jump": {"target": "web"}}]));
        let accepts = rule("web", json!([field("tcp", "dport", "==", json!(8080)), {"accept": null}]));
        let returns = rule("web", json!([{"return": null}]));
        assert_eq!(verdict(base("drop"), &[jump.clone(), accepts.clone()]), Verdict::Passes);
        assert_eq!(verdict(base("drop"), &[jump.clone(), returns, accepts]), policy);
        let drops = rule("web", json!([{"drop": null}]));
        let expected = Verdict::Blocked("table inet filter chain web handle 7: drop".to_owned());
        assert_eq!(verdict(base("accept"), &[jump.clone(), drops]), expected);
        // A chain that calls itself ends.
        let circle = rule("web", json!([{"jump": {"target": "web"}}]));
        assert_eq!(verdict(base("accept"), &[jump, circle]), Verdict::Passes);
        let of_input = json!({"family": "inet", "table": "filter", "name": "input", "type": "filter", "hook": "input", "policy": "drop"});
        assert_eq!(verdict(of_input, &[]), Verdict::Passes);
        assert!(
            chains("garbage", &Packet { to: [0, 0, 0, 0].into(), from: None, port: None, out: None })
                .is_none()
        );
    }
}
