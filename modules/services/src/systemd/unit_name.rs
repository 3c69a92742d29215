//! Unit names: how a caller may give them, how answers show them, and similar names for an unknown one.

use linux_sysadmin_sdk::{
    prelude::*,
    units::{self, TYPES},
};

/// The longest name, with its type, in bytes.
const LONGEST: usize = 255;

/// The number of units that are suggested for an unknown one.
const SUGGESTIONS: usize = 5;

/// The full name as systemctl understands it: `nginx` is `nginx.service`. It is checked here so that the error can say
/// what was expected, and no command runs for a text that isn't a name.
pub(crate) fn full(input: &str) -> Result<String> {
    let name = units::with_type(input);
    let (stem, _) = split(&name);
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    if let Some(template) = stem.strip_suffix('@').filter(|template| !template.is_empty()) {
        let message = format!("{} is a template, not a unit", shown(&name));
        return Err(Problem::validation("INVALID_UNIT_NAME", message)
            .remedy(format!("Name an instance, as in {}", shown(&format!("{template}@INSTANCE")))));
    }
    if matches!(name.as_str(), "-.mount" | "-.slice") {
        let message = format!("{name} is not accepted: names that begin with a dash aren't taken");
        return Err(Problem::validation("INVALID_UNIT_NAME", message)
            .remedy(format!("On the target itself: systemctl status -- {name}")));
    }
    if stem.is_empty()
        || stem.starts_with(['-', '@', '.'])
        || !name.bytes().all(is_allowed)
        || name.len() > LONGEST
    {
        let message = format!(
            "{} is not a unit name: expected 1 to {LONGEST} of A-Z a-z 0-9 : - _ . \\ @, the first a letter, a digit, \
             : _ or \\",
            shown(input)
        );
        return Err(Problem::validation("INVALID_UNIT_NAME", message)
            .remedy("Give the name as systemctl shows it, such as nginx, ssh.socket or getty@tty1"));
    }
    Ok(name)
}

/// The beginning of a template's instances and their type: `getty@` and `.service` of `getty@`. None for other names.
pub(crate) fn template(input: &str) -> Option<(&str, &str)> {
    let (stem, suffix) = split(input);
    let (stem, suffix) = if TYPES.contains(&suffix) { (stem, suffix) } else { (input, ".service") };
    (stem.len() > 1 && stem.ends_with('@')).then_some((stem, suffix))
}

/// The name as answers show it and arguments take it: that of a service has no type.
pub(crate) fn short(name: &str) -> &str {
    let stem = name.strip_suffix(".service").unwrap_or(name);
    if TYPES.iter().any(|suffix| stem.ends_with(suffix)) { name } else { stem }
}

/// The short names of several units.
pub(crate) fn shorts(units: &[String]) -> Vec<String> {
    units.iter().map(|unit| short(unit).to_owned()).collect()
}

/// Units of the same type whose names resemble an unknown name, the most similar first.
pub(crate) fn similar(name: &str, units: &[String]) -> Vec<String> {
    let (wanted, suffix) = split(name);
    let wanted = wanted.to_ascii_lowercase();
    let farthest = wanted.len().div_ceil(3).clamp(1, 3);
    let mut found = units
        .iter()
        .filter(|unit| *unit != name)
        .filter_map(|unit| {
            let candidate = unit.strip_suffix(suffix)?.to_ascii_lowercase();
            let contained = wanted.len().min(candidate.len()) > 2
                && (candidate.contains(&wanted) || wanted.contains(&candidate));
            let distance = distance_within(&wanted, &candidate, farthest);
            let rank = distance.or(contained.then(|| farthest + candidate.len().abs_diff(wanted.len())))?;
            Some((rank, short(unit).to_owned()))
        })
        .collect::<Vec<_>>();
    found.sort();
    found.dedup();
    found.truncate(SUGGESTIONS);
    found.into_iter().map(|(_, name)| name).collect()
}

/// Splits a name before its last dot.
pub(crate) fn split(name: &str) -> (&str, &str) {
    name.split_at(name.rfind('.').unwrap_or(name.len()))
}

/// The beginning of a caller's text, quoted, with control characters made visible.
pub(crate) fn shown(input: &str) -> String {
    let start: String = input.chars().take(60).collect();
    let more = if start.len() < input.len() { format!("… ({} bytes)", input.len()) } else { String::new() };
    format!("{start:?}{more}")
}

/// The Levenshtein distance between two texts, or none where it is more than `most`.
fn distance_within(a: &str, b: &str, most: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().filter(|distance| *distance <= most)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_type_is_a_services() {
        let table = [
            ("nginx", "nginx.service"),
            ("nginx.service", "nginx.service"),
            ("ssh.socket", "ssh.socket"),
            ("getty@tty1", "getty@tty1.service"),
            ("user@1000.service", "user@1000.service"),
            ("a@b@c", "a@b@c.service"),
            ("php8.2-fpm", "php8.2-fpm.service"),
            (r"dev-disk-by\x2duuid-1.swap", r"dev-disk-by\x2duuid-1.swap"),
            ("_x:y", "_x:y.service"),
        ];
        for (input, expected) in table {
            assert_eq!(full(input).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_no_name_is_refused_with_what_was_expected() {
        let (long, longest) = ("a".repeat(300), "a".repeat(248));
        let inputs = [
            "",
            "-Hhost",
            "--help",
            "-",
            "*",
            "ssh*",
            "a?",
            "[a]",
            "a b",
            "a\nb",
            "a\0b",
            "a\t",
            "../x",
            "/etc/passwd",
            "a/b",
            "a;b",
            "$(id)",
            "a=b",
            "é",
            ".service",
            ".",
            "..",
            "@",
            "@x",
            "@.service",
            ".timer",
            &long,
            &longest,
        ];
        for input in inputs {
            let problem = full(input).unwrap_err();
            assert_eq!(problem.code, "INVALID_UNIT_NAME", "{input:?}");
            assert!(problem.message.contains("expected 1 to 255 of"), "{}", problem.message);
            assert!(
                problem.message.len() < 300 && !problem.message.contains(['\0', '\n', '\t']),
                "{}",
                problem.message
            );
        }
        assert_eq!(full(&longest[1..]).unwrap().len(), 255);
    }

    #[test]
    fn units_that_begin_with_a_dash_are_refused_as_such() {
        for input in ["-.mount", "-.slice"] {
            let problem = full(input).unwrap_err();
            assert_eq!(problem.code, "INVALID_UNIT_NAME");
            assert!(
                problem.message.contains("names that begin with a dash aren't taken"),
                "{}",
                problem.message
            );
        }
    }

    #[test]
    fn a_template_is_refused_with_the_way_to_an_instance() {
        for input in ["getty@", "getty@.service"] {
            let problem = full(input).unwrap_err();
            assert_eq!(problem.code, "INVALID_UNIT_NAME");
            assert_eq!(problem.message, "\"getty@.service\" is a template, not a unit");
            assert_eq!(problem.remediation, ["Name an instance, as in \"getty@INSTANCE\""]);
        }
    }

    #[test]
    fn a_short_name_means_the_same_unit() {
        for name in ["nginx.service", "ssh.socket", "foo.socket.service", "a.b.service", "x.timer.service"] {
            assert_eq!(full(short(name)).unwrap(), name);
        }
        assert_eq!([short("nginx.service"), short("foo.socket.service")], ["nginx", "foo.socket.service"]);
    }

    #[test]
    fn suggestions_are_the_closest_of_the_same_type() {
        let names = "nginx.service nginx.socket postgresql.service postgresql@.service apache2.service ssh.service \
                     rsync.service cron.service chrony.service getty@.service a.service";
        let units: Vec<_> = names.split_whitespace().map(str::to_owned).collect();
        let table: [(&str, &[&str]); 8] = [
            ("nginx.service", &[]),
            ("nginz.service", &["nginx"]),
            ("NGINX.service", &["nginx"]),
            ("ngin.socket", &["nginx.socket"]),
            ("postgres.service", &["postgresql", "postgresql@"]),
            ("apache.service", &["apache2"]),
            ("getty.service", &["getty@"]),
            ("zzzzzzzz.service", &[]),
        ];
        for (name, expected) in table {
            assert_eq!(similar(name, &units), expected, "{name}");
        }
    }
}
