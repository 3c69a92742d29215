//! Examples of a pattern's command lines, by which a person or a rule can judge what the pattern is meant for.

use std::slice::from_ref;

use super::{HoleType, Item, MAX_EXAMPLES, Part, Token};

/// Argument lists that the items allow: the shortest way, and for each token a way that has it.
pub(super) fn argument_lists(items: &[Item]) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for wanted in std::iter::once(None).chain((0..count(items)).map(Some)) {
        if all.len() >= MAX_EXAMPLES {
            break;
        }
        let mut args = Vec::new();
        append(items, 0, wanted, &mut args);
        if !all.contains(&args) {
            all.push(args);
        }
    }
    all
}

/// The number of tokens in the items.
fn count(items: &[Item]) -> usize {
    let of_item = |item: &Item| match item {
        Item::Token(_) => 1,
        Item::Optional(items) => count(items),
        Item::Alternatives(ways) => ways.iter().map(|way| count(way)).sum(),
        Item::Repeat(item) => count(from_ref(item)),
    };
    items.iter().map(of_item).sum()
}

/// Appends the arguments of the shortest way that has the wanted token, if these items have it. Tokens are numbered in
/// the order of the text, and `first` is the number of the first token of these items.
fn append(items: &[Item], first: usize, wanted: Option<usize>, args: &mut Vec<String>) {
    let mut first = first;
    for item in items {
        let end = first + count(from_ref(item));
        let has_wanted = wanted.is_some_and(|wanted| (first..end).contains(&wanted));
        match item {
            Item::Token(token) => args.push(example(token)),
            Item::Optional(items) if has_wanted => append(items, first, wanted, args),
            Item::Optional(_) => {}
            Item::Alternatives(ways) => {
                let mut begin = first;
                let mut chosen = ways.first().map(|way| (way, first));
                for way in ways {
                    let end = begin + count(way);
                    if wanted.is_some_and(|wanted| (begin..end).contains(&wanted)) {
                        chosen = Some((way, begin));
                    }
                    begin = end;
                }
                if let Some((way, begin)) = chosen {
                    append(way, begin, wanted, args);
                }
            }
            Item::Repeat(item) => append(from_ref(item), first, wanted, args),
        }
        first = end;
    }
}

fn example(token: &Token) -> String {
    let part = |part: &Part| match part {
        Part::Literal(text) => text.clone(),
        Part::Hole(hole) => value(hole),
    };
    token.parts().iter().map(part).collect()
}

/// A plain value of the type. No rule is about it in particular.
fn value(hole: &HoleType) -> String {
    let value = match hole {
        HoleType::Unit => "example.service",
        HoleType::Package | HoleType::User | HoleType::Group => "example",
        HoleType::Text | HoleType::Secret | HoleType::Arg => "example",
        HoleType::Version => "1.0",
        HoleType::Path(None) => "/srv/example",
        HoleType::Path(Some(glob)) => return glob.text().replace("**", "example").replace('*', "example"),
        HoleType::Disk => "/dev/sda1",
        HoleType::Volume => "vg/root",
        HoleType::Interface => "eth0",
        HoleType::Int => "1",
        HoleType::Port => "8080",
        HoleType::Protocol => "tcp",
        HoleType::Address => "192.0.2.1",
        HoleType::Cidr => "192.0.2.0/24",
        HoleType::Host => "example.org",
        HoleType::Time => "now",
        HoleType::Size => "1G",
        HoleType::Mode => "0644",
        HoleType::Url => "https://example.org/",
        HoleType::Image => "example:latest",
    };
    value.to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Pattern;

    fn examples(text: &str) -> Vec<String> {
        let pattern = Pattern::parse(text).unwrap();
        let all = pattern.examples();
        assert!(all.iter().all(|args| pattern.matches(args).is_some()), "{text}: {all:?}");
        all.iter().map(|args| args.join(" ")).collect()
    }

    #[test]
    fn the_examples_have_each_token_and_match() {
        for (pattern, expected) in [
            ("uptime", &[""][..]),
            ("systemctl (start|stop) -- <unit>", &["start -- example.service", "stop -- example.service"]),
            ("x [--a [--b <int>]] (c|d e|[f]...)...", &["c", "--a c", "--a --b 1 c", "d e", "f"]),
            ("chown <user>:<group> -- <path:/srv/*/a/**>", &["example:example -- /srv/example/a/example"]),
        ] {
            assert_eq!(examples(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn every_type_has_a_plain_value() {
        for hole in [
            "unit",
            "package",
            "version",
            "user",
            "group",
            "path",
            "path:/srv/**",
            "path:/a/*.b",
            "disk",
            "volume",
            "interface",
            "int",
            "port",
            "protocol",
            "address",
            "cidr",
            "host",
            "time",
            "size",
            "mode",
            "url",
            "image",
            "text",
            "secret",
            "arg",
        ] {
            assert_eq!(examples(&format!("x -- <{hole}>")).len(), 1, "{hole}");
        }
    }

    #[test]
    fn a_pattern_with_many_ways_has_only_so_many_examples() {
        let ways: Vec<String> = (0..500).map(|number| format!("w{number}")).collect();
        let of_it = examples(&format!("x ({}) <int>", ways.join("|")));
        assert_eq!(of_it.len(), super::MAX_EXAMPLES);
    }
}
