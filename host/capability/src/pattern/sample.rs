//! Makes command lines from a pattern, for tests. Bytes decide every choice, so that property tests and a fuzzer can search
//! for choices that break a rule.

use super::{HoleType, Item, Part, Pattern, Token};

/// Arguments as the pattern describes them. Where holes share a token they may still not match, because a value may
/// hold a separator.
pub fn argv(pattern: &Pattern, choices: &mut dyn Iterator<Item = u8>) -> Vec<String> {
    let mut args = Vec::new();
    sequence(pattern.items(), choices, &mut args);
    args
}

fn sequence(items: &[Item], choices: &mut dyn Iterator<Item = u8>, args: &mut Vec<String>) {
    for item in items {
        let choice = choices.next().map_or(0, usize::from);
        match item {
            Item::Token(token) => args.push(argument(token, choices)),
            Item::Optional(items) if choice % 2 == 1 => sequence(items, choices, args),
            Item::Optional(_) => {}
            Item::Alternatives(ways) => sequence(&ways[choice % ways.len()], choices, args),
            Item::Repeat(item) => {
                for _ in 0..=choice % 3 {
                    sequence(std::slice::from_ref(item), choices, args);
                }
            }
        }
    }
}

fn argument(token: &Token, choices: &mut dyn Iterator<Item = u8>) -> String {
    let part = |part: &Part| match part {
        Part::Literal(text) => text.clone(),
        Part::Hole(hole) => value(hole, choices.next().map_or(0, usize::from)),
    };
    token.parts().iter().map(part).collect()
}

/// A value that the hole accepts, except where every value of its glob is secret.
fn value(hole: &HoleType, choice: usize) -> String {
    let values: &[&str] = match hole {
        HoleType::Unit => &["nginx.service", "getty@tty1", "a"],
        HoleType::Package => &["nginx", "g++", "a"],
        HoleType::Version => &["1:2.0-3", "1"],
        HoleType::User | HoleType::Group => &["root", "www-data", "_a"],
        HoleType::Path(None) => &["/", "/srv/a", "/a/", "/etc/hosts"],
        HoleType::Path(Some(glob)) => {
            let some = glob.text().replace("/**", ["/a/b", "/c"][choice % 2]);
            return some.replace('*', ["x", "", "shadow"][choice / 2 % 3]);
        }
        HoleType::Disk => &["/dev/sda1", "/dev/vg/root"],
        HoleType::Volume => &["vg/root", "data"],
        HoleType::Interface => &["eth0", "lo"],
        HoleType::Int => &["0", "10", "99999999999"],
        HoleType::Port => &["22", "65535"],
        HoleType::Protocol => &["tcp", "ipv6-icmp"],
        HoleType::Address => &["127.0.0.1", "::1"],
        HoleType::Cidr => &["10.0.0.0/8", "::/0"],
        HoleType::Host => &["example.org", "::1", "a"],
        HoleType::Time => &["now", "1 hour ago", "2026-01-31 10:00"],
        HoleType::Size => &["10G", "-5%", "+1K"],
        HoleType::Mode => &["0644", "u+x,go="],
        HoleType::Url => &["https://a.b/c?d", "http://[::1]:80"],
        HoleType::Image => &["nginx:latest", "a.b:5000/c"],
        HoleType::Text | HoleType::Secret => &["a", "a b", "=", ":ä", "/etc/shadow"],
        HoleType::Arg => &["", "-x", "--", "a\nb", "sh"],
    };
    values[choice % values.len()].to_owned()
}

/// Generates items of a pattern from these tokens, with groups and repetitions.
#[cfg(test)]
pub fn any_item(tokens: &'static [&'static str]) -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;

    let token = prop::sample::select(tokens).prop_map(str::to_owned);
    token.prop_recursive(3, 12, 3, |inner| {
        let sequence = prop::collection::vec(inner, 1..3).prop_map(|items| items.join(" "));
        (sequence.clone(), sequence, 0..5).prop_map(|(one, other, kind)| match kind {
            0 => format!("[{one}]"),
            1 => format!("({one}|{other})"),
            2 => format!("[{one}]..."),
            3 => format!("({one}|{other})..."),
            _ => format!("({one})..."),
        })
    })
}
