//! Rules in nft's own words, made of its JSON. What has no words here is shown as JSON.

use serde_json::Value;

use super::ruleset::Rule;

/// The longest set that is written out.
const MOST_ELEMENTS: usize = 8;

/// A whole rule, as iptables or nft writes it.
pub fn rule(rule: &Rule) -> String {
    if let Some(line) = &rule.line {
        return line.clone();
    }
    let parts = rule.expr.iter().map(statement).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ")
}

/// A statement of a rule. Counters are left out.
pub(super) fn statement(part: &Value) -> String {
    let Some((kind, body)) = part.as_object().and_then(|part| part.iter().next()) else {
        return part.to_string();
    };
    let word = |key: &str| body.get(key).map(expression).unwrap_or_default();
    match kind.as_str() {
        "match" => {
            let is_masked = body.get("left").is_some_and(|left| left.get("&").is_some());
            let op = match word("op").as_str() {
                "==" | "in" if !is_masked => String::new(),
                op => format!("{op} "),
            };
            format!("{} {op}{}", word("left"), word("right"))
        }
        "vmap" => format!("{} vmap {}", word("key"), word("data")),
        "accept" | "drop" | "continue" | "return" | "notrack" => kind.clone(),
        "jump" | "goto" => format!("{kind} {}", word("target")),
        "counter" | "last" => String::new(),
        "log" => "log".to_owned(),
        "mangle" => format!("{} set {}", word("key"), word("value")),
        "reject" => match (word("type").as_str(), word("expr")) {
            ("", _) => "reject".to_owned(),
            ("tcp reset", _) => "reject with tcp reset".to_owned(),
            (kind, reason) => format!("reject with {kind} {reason}"),
        },
        "dnat" | "snat" | "redirect" | "masquerade" => {
            let to = match (body.get("addr"), body.get("port")) {
                (None, None) => return kind.clone(),
                (Some(address), None) => expression(address),
                (address, Some(port)) => {
                    format!("{}:{}", address.map(expression).unwrap_or_default(), expression(port))
                }
            };
            format!("{kind} to {to}")
        }
        "limit" if body.is_object() => {
            let over = if body.get("inv") == Some(&Value::Bool(true)) { "over " } else { "" };
            let unit = match body.get("rate_unit").and_then(Value::as_str) {
                Some(unit) if unit != "packets" => format!(" {unit}"),
                _ => String::new(),
            };
            format!("limit rate {over}{}{unit}/{}", word("rate"), word("per"))
        }
        "limit" => format!("limit name {}", expression(body)),
        "ct count" => {
            let over = if body.get("inv") == Some(&Value::Bool(true)) { "over " } else { "" };
            format!("ct count {over}{}", word("val"))
        }
        "set" => {
            let inner: Vec<String> =
                body.get("stmt").and_then(Value::as_array).into_iter().flatten().map(statement).collect();
            format!("{} {} {{ {} {}}}", word("op"), word("set"), word("elem"), spaced(&inner))
        }
        "xt" => match body {
            Value::Null => "a match or target of iptables".to_owned(),
            _ if body.get("text").is_some() => word("text"),
            _ => format!("{} of iptables", word("name")),
        },
        _ => part.to_string(),
    }
}

fn spaced(words: &[String]) -> String {
    words.iter().map(|word| format!("{word} ")).collect()
}

/// An expression or a value.
pub fn expression(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(many) => listed(many, ","),
        Value::Object(object) => match object.iter().next() {
            Some((kind, body)) => operator(kind, body).unwrap_or_else(|| value.to_string()),
            None => String::new(),
        },
        _ => value.to_string(),
    }
}

fn listed(values: &[Value], between: &str) -> String {
    let mut words: Vec<String> = values.iter().take(MOST_ELEMENTS).map(element).collect();
    if values.len() > MOST_ELEMENTS {
        words.push(format!("… {} more", values.len() - MOST_ELEMENTS));
    }
    words.join(between)
}

/// An element of a set, or a key of a map with its value.
fn element(value: &Value) -> String {
    match value.as_array().map(Vec::as_slice) {
        Some([key, data]) if data.is_object() => format!("{} : {}", expression(key), statement(data)),
        Some([key, data]) => format!("{} : {}", expression(key), expression(data)),
        _ => expression(value),
    }
}

fn operator(kind: &str, body: &Value) -> Option<String> {
    let word = |key: &str| body.get(key).map(expression).unwrap_or_default();
    let pair = || match body.as_array().map(Vec::as_slice) {
        Some([left, right]) => Some((expression(left), expression(right))),
        _ => None,
    };
    Some(match kind {
        "payload" if body.get("base").is_some() => {
            format!("@{},{},{}", word("base"), word("offset"), word("len"))
        }
        "payload" => format!("{} {}", word("protocol"), word("field")),
        "meta" => match word("key").as_str() {
            key @ ("iif" | "oif" | "iifname" | "oifname" | "skuid" | "skgid") => key.to_owned(),
            key => format!("meta {key}"),
        },
        "ct" => match word("dir").as_str() {
            "" => format!("ct {}", word("key")),
            dir => format!("ct {dir} {}", word("key")),
        },
        "fib" => {
            let flags = match body.get("flags") {
                Some(Value::Array(flags)) => listed(flags, " . "),
                _ => word("flags"),
            };
            format!("fib {flags} {}", word("result"))
        }
        "exthdr" => format!("exthdr {}", word("name")),
        "prefix" => format!("{}/{}", word("addr"), word("len")),
        "range" => pair().map(|(first, last)| format!("{first}-{last}"))?,
        "concat" => listed(body.as_array()?, " . "),
        "set" => match body {
            Value::Array(many) => format!("{{ {} }}", listed(many, ", ")),
            one => expression(one),
        },
        "elem" => word("val"),
        "map" => format!("{} map {}", word("key"), word("data")),
        "&" | "|" | "^" | "<<" | ">>" => match body.as_array().map(Vec::as_slice) {
            Some([left, Value::Array(flags)]) => {
                format!("{} {kind} ({})", expression(left), listed(flags, "|"))
            }
            Some(many) => many.iter().map(expression).collect::<Vec<_>>().join(&format!(" {kind} ")),
            None => return None,
        },
        _ => return None,
    })
}
