//! Reads what names hosts in an inventory: a name or an address, perhaps with ranges in it and a port behind it, as
//! Ansible does (`lib/ansible/parsing/utils/addresses.py`, and `expand_hostname_range` of
//! `lib/ansible/plugins/inventory`).

use std::net::Ipv6Addr;

/// The most hosts that one range may stand for.
pub(super) const MOST: u64 = 10_000;

/// The hosts that a word stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hosts {
    /// The names, in order.
    pub(super) names: Vec<String>,
    /// The port of each of them.
    pub(super) port: Option<u16>,
}

/// Parses `name`, `name:port` or `[address]:port`, each perhaps with ranges. The error says in words what is wrong.
pub(super) fn hosts(word: &str) -> Result<Hosts, String> {
    let (pattern, port) = split_port(word)?;
    let names = names(pattern)?;
    // Ansible takes such a port for a part of the name.
    if port.is_some() && !names.iter().all(|name| can_have_port(name)) {
        return Err("expected a name or an address in front of the port".to_owned());
    }
    Ok(Hosts { names, port })
}

fn split_port(word: &str) -> Result<(&str, Option<u16>), String> {
    if let Some((inside, port)) = word.strip_prefix('[').and_then(|rest| rest.rsplit_once("]:"))
        && is_number(port)
    {
        return Ok((inside, Some(number_of_port(port)?)));
    }
    match word.rsplit_once(':') {
        Some((name, port)) if is_number(port) && !outside_of_ranges(name).any(|c| c == ':' || c == ']') => {
            Ok((name, Some(number_of_port(port)?)))
        }
        Some((_, "")) if !word.ends_with("::") => Err("expected a port behind the colon".to_owned()),
        _ => Ok((word, None)),
    }
}

/// Returns the characters outside of brackets. An unclosed bracket goes on to the end.
fn outside_of_ranges(name: &str) -> impl Iterator<Item = char> {
    let mut is_inside = false;
    name.chars().filter(move |character| match character {
        '[' if !is_inside => {
            is_inside = true;
            false
        }
        ']' if is_inside => {
            is_inside = false;
            false
        }
        _ => !is_inside,
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses a port from 1 to 65535.
pub(super) fn port(text: &str) -> Option<u16> {
    is_number(text).then(|| text.parse().ok())?.filter(|port| *port != 0)
}

fn number_of_port(text: &str) -> Result<u16, String> {
    port(text).ok_or_else(|| "expected a port from 1 to 65535".to_owned())
}

fn can_have_port(name: &str) -> bool {
    let is_label = |label: &str| !label.is_empty() && !label.starts_with('-') && !label.ends_with(['-', '_']);
    name.parse::<Ipv6Addr>().is_ok() || (!name.contains(':') && name.split('.').all(is_label))
}

/// Returns the names that a pattern stands for. The first range changes most slowly.
pub(super) fn names(pattern: &str) -> Result<Vec<String>, String> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    let mut last = "";
    while let Some((head, behind)) = rest.split_once('[') {
        let (range, tail) =
            behind.split_once(']').ok_or("expected a range that ends, as in web[01:20]".to_owned())?;
        pieces.push((head, Range::parse(range)?));
        (rest, last) = (tail, tail);
    }
    if pieces.is_empty() {
        last = pattern;
    }
    if last.contains(']') || pieces.iter().any(|(head, _)| head.contains(']')) {
        return Err("expected a range that begins, as in web[01:20]".to_owned());
    }
    let count = pieces.iter().try_fold(1_u64, |count, (_, range)| count.checked_mul(range.count()));
    if count.is_none_or(|count| count > MOST) {
        return Err(format!("expected a range of at most {MOST} hosts"));
    }
    let mut names = vec![String::new()];
    for (head, range) in &pieces {
        names = names
            .iter()
            .flat_map(|name| range.items().map(move |item| format!("{name}{head}{item}")))
            .collect();
    }
    names.iter_mut().for_each(|name| name.push_str(last));
    Ok(names)
}

/// A range `begin:end` or `begin:end:step` of numbers or letters. It includes both ends.
struct Range {
    begin: u64,
    end: u64,
    step: u64,
    form: Form,
}

enum Form {
    /// Numbers, filled with zeros to this width.
    Number(usize),
    Letter,
}

impl Range {
    fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected a range as [01:20], [a:f] or [0:100:10]: begin, end and step";
        let bounds: Vec<&str> = text.split(':').collect();
        let (begin, end, step) = match bounds[..] {
            [begin, end] => (begin, end, "1"),
            [begin, end, step] => (begin, end, step),
            _ => return Err(EXPECTED.to_owned()),
        };
        // A missing begin means 0.
        let begin = if begin.is_empty() { "0" } else { begin };
        let number = |text: &str| is_number(text).then(|| text.parse::<u64>().ok()).flatten();
        let step = number(step).filter(|step| *step > 0).ok_or(EXPECTED)?;
        let (begin, end, form) = match (letter(begin), letter(end), number(begin), number(end)) {
            (Some(begin), Some(end), ..) => (begin, end, Form::Letter),
            (_, _, Some(first), Some(last)) => {
                let is_filled = begin.len() > 1 && begin.starts_with('0');
                if is_filled && begin.len() != end.len() {
                    return Err(
                        "expected a range whose begin and end have as many digits, as [01:20]".to_owned()
                    );
                }
                (first, last, Form::Number(if is_filled { begin.len() } else { 1 }))
            }
            _ => return Err(EXPECTED.to_owned()),
        };
        match begin <= end {
            true => Ok(Self { begin, end, step, form }),
            false => Err("expected a range whose begin comes before its end".to_owned()),
        }
    }

    fn count(&self) -> u64 {
        ((self.end - self.begin) / self.step).saturating_add(1)
    }

    fn items(&self) -> impl Iterator<Item = String> {
        (0..self.count()).map(|at| {
            let at = self.begin + at * self.step;
            match self.form {
                Form::Number(width) => format!("{at:0width$}"),
                Form::Letter => letter_at(at).to_string(),
            }
        })
    }
}

/// Returns the position of a letter. Small letters come before capital ones.
fn letter(text: &str) -> Option<u64> {
    match text.as_bytes() {
        [byte @ b'a'..=b'z'] => Some(u64::from(byte - b'a')),
        [byte @ b'A'..=b'Z'] => Some(u64::from(byte - b'A') + 26),
        _ => None,
    }
}

fn letter_at(index: u64) -> char {
    let byte = u8::try_from(index).unwrap_or_default();
    char::from(if byte < 26 { b'a' + byte } else { b'A' + byte - 26 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_range_stands_for_its_hosts() {
        for (word, names, port) in [
            ("web", "web", None),
            ("web:2222", "web", Some(2222)),
            ("10.0.0.1:22", "10.0.0.1", Some(22)),
            ("[10.0.0.1]:22", "10.0.0.1", Some(22)),
            ("fe80::1", "fe80::1", None),
            ("2001:db8::", "2001:db8::", None),
            ("[2001:db8::1]:2222", "2001:db8::1", Some(2222)),
            ("[2001:db8::[1:2]]:2222", "2001:db8::1 2001:db8::2", Some(2222)),
            ("2001:db8::[9:11]", "2001:db8::9 2001:db8::10 2001:db8::11", None),
            ("web[1:3]", "web1 web2 web3", None),
            ("web[:2]", "web0 web1 web2", None),
            (
                "web[08:11].example.com:22",
                "web08.example.com web09.example.com web10.example.com web11.example.com",
                Some(22),
            ),
            ("web[1:10:4]", "web1 web5 web9", None),
            ("web[00:04:2]x", "web00x web02x web04x", None),
            ("[a:c]web", "aweb bweb cweb", None),
            ("db-[y:B]", "db-y db-z db-A db-B", None),
            ("r[1:2]n[a:b]", "r1na r1nb r2na r2nb", None),
            ("web[5:5]", "web5", None),
            ("web[1:010:9]", "web1 web10", None),
        ] {
            let found = hosts(word).unwrap();
            assert_eq!((found.names.join(" ").as_str(), found.port), (names, port), "{word}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for (word, why) in [
            ("web[]", "expected a range as"),
            ("web[1]", "expected a range as"),
            ("web[1:]", "expected a range as"),
            ("web[1:2:0]", "expected a range as"),
            ("web[1:2:-1]", "expected a range as"),
            ("web[1:2:3:4]", "expected a range as"),
            ("web[1:f]", "expected a range as"),
            ("web[ab:cd]", "expected a range as"),
            ("web[+1:2]", "expected a range as"),
            ("web[1: 2]", "expected a range as"),
            ("web[1:99999999999999999999]", "expected a range as"),
            ("web[3:1]", "before its end"),
            ("web[A:a]", "before its end"),
            ("web[01:100]", "as many digits"),
            ("web[1:2", "that ends"),
            ("web1:2]", "that begins"),
            ("web[1:2]]", "that begins"),
            ("w]b[1:2]", "that begins"),
            ("web[1:1000000000]", "at most 10000"),
            ("web[0:18446744073709551615]", "at most 10000"),
            ("w[1:999][1:999][1:999][1:999][1:999][1:999][1:999]", "at most 10000"),
            ("web:", "a port behind"),
            ("web:0", "1 to 65535"),
            ("web:65536", "1 to 65535"),
            ("web_:22", "in front of the port"),
            ("-web:22", "in front of the port"),
            (".web:22", "in front of the port"),
        ] {
            let found = hosts(word).unwrap_err();
            assert!(found.contains(why), "{word}: {found}");
        }
    }

    proptest! {
        #[test]
        fn a_range_is_every_step_from_begin_to_end(begin in 0_u64..500, more in 0_u64..500, step in 1_u64..9) {
            let end = begin + more;
            let expected: Vec<_> = (begin..=end).step_by(step as usize).map(|at| format!("n{at}-x")).collect();
            prop_assert_eq!(names(&format!("n[{begin}:{end}:{step}]-x")).unwrap(), expected);
        }

        #[test]
        fn what_is_filled_with_zeros_stays_as_long(begin in 0_u64..99, more in 0_u64..900) {
            let found = names(&format!("[{begin:03}:{:03}]", begin + more)).unwrap();
            prop_assert_eq!(found.len() as u64, more + 1);
            prop_assert!(found.iter().all(|name| name.len() == 3));
        }

        #[test]
        fn no_word_makes_more_than_the_most_or_panics(word in r"[a-z0-9\[\]:.\-]{0,40}") {
            if let Ok(found) = hosts(&word) {
                prop_assert!(!found.names.is_empty() && found.names.len() as u64 <= MOST);
                prop_assert!(found.names.iter().all(|name| !name.contains(['[', ']'])));
            }
        }
    }
}
