//! The machine's name, and its line in /etc/hosts.

use linux_sysadmin_sdk::prelude::*;

/// Sets the name in the file and the one that the kernel has. Without the options it would also delete the descriptive name
/// that an administrator may have given the machine ("Ada's laptop"), which an undo by this command doesn't bring back.
pub(crate) const SET: CommandLine = CommandLine::new("hostnamectl --static --transient set-hostname <host>");
/// The file with the name, see hostname(5).
pub(crate) const STATIC: &str = "/etc/hostname";
pub(crate) const HOSTS: &str = "/etc/hosts";
/// The longest name that Linux takes.
const LONGEST: usize = 64;

/// The name in the file.
pub(crate) fn current(file: &str) -> Option<&str> {
    file.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Checks a name by RFC 1123, and by what Linux takes.
pub(crate) fn check(name: &str) -> Result<()> {
    let is_label = |label: &str| {
        let inner = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (1..=63).contains(&label.len()) && inner && !label.starts_with('-') && !label.ends_with('-')
    };
    let is_number =
        name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    let is_loopback = ["localhost", "localhost4", "localhost6"]
        .iter()
        .any(|loopback| name.split('.').next().is_some_and(|first| first.eq_ignore_ascii_case(loopback)))
        || name.to_ascii_lowercase().ends_with(".localhost");
    match name.len() <= LONGEST && !is_number && name.split('.').all(is_label) {
        true if is_loopback => Err(Problem::validation(
            "INVALID_HOSTNAME",
            format!("{name} is every machine's name for itself: expected one that others can tell apart"),
        )),
        true => Ok(()),
        false => Err(Problem::validation(
            "INVALID_HOSTNAME",
            format!(
                "expected a host name of at most {LONGEST} characters: letters, digits and `-`, in labels that are joined by \
                 dots, of which none begins or ends with `-` and the last is no number"
            ),
        )),
    }
}

/// /etc/hosts with the new name in place of the old one, every other byte as it was. None where no line has the old name.
pub(crate) fn renamed(hosts: &[u8], old: &str, new: &str) -> Option<Vec<u8>> {
    let line = |line: &[u8]| {
        let renamed = std::str::from_utf8(line).ok().and_then(|line| renamed_line(line, old, new));
        renamed.map_or_else(|| line.to_vec(), String::into_bytes)
    };
    let text: Vec<u8> = hosts.split_inclusive(|byte| *byte == b'\n').flat_map(line).collect();
    Some(text).filter(|text| text != hosts)
}

/// The line with the new name. None where it doesn't have the old one.
fn renamed_line(line: &str, old: &str, new: &str) -> Option<String> {
    let short = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let (old_short, new_short) = (short(old), short(new));
    let (names, comment) = line.split_at(line.find('#').unwrap_or(line.len()));
    let (names, end) = names.split_at(names.trim_end().len());
    let words: Vec<&str> = names.split_whitespace().collect();
    let has_old = words.iter().skip(1).any(|word| *word == old || *word == old_short);
    // Other programs need the lines of `localhost` as they are, also where that was the machine's own name.
    if !has_old || words.contains(&"localhost") {
        return None;
    }
    let mut seen: Vec<String> = Vec::new();
    let mut text = String::new();
    let mut rest = names;
    for word in words {
        let now = match word {
            _ if word == old => new.to_owned(),
            _ if word == old_short => new_short.clone(),
            // The old name with its domain.
            _ => match word.strip_prefix(&old_short).filter(|domain| domain.starts_with('.')) {
                Some(_) if new.contains('.') => new.to_owned(),
                Some(domain) => format!("{new_short}{domain}"),
                None => word.to_owned(),
            },
        };
        let (blank, behind) = rest.split_once(word).unwrap_or_default();
        rest = behind;
        if !seen.contains(&now) {
            text.extend([blank, &now]);
            seen.push(now);
        }
    }
    if !seen.contains(&new_short) {
        text.extend([" ", &new_short]);
    }
    Some(text + end + comment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_labels_of_letters_digits_and_hyphens() {
        for name in ["web1", "a", "web1.example.org", "WEB-1", &format!("{}.b", "a".repeat(62))] {
            assert!(check(name).is_ok(), "{name}");
        }
        let long = format!("{}.{}", "a".repeat(32), "b".repeat(32));
        for name in ["", "-x", "x-", "a..b", ".a", "a.", "under_score", "käse", "a b", "10.0.0.1", "1", &long]
        {
            assert!(check(name).is_err_and(|problem| problem.message.contains("64")), "{name}");
        }
    }

    #[test]
    fn the_name_of_the_loopback_is_no_machines() {
        for name in ["localhost", "LocalHost", "localhost.localdomain", "localhost6", "web.localhost"] {
            assert!(check(name).is_err_and(|problem| problem.code == "INVALID_HOSTNAME"), "{name}");
        }
        assert!(check("localhosts").is_ok() && check("my-localhost.example.org").is_ok());
    }

    #[test]
    fn the_machines_own_line_gets_the_new_name_and_other_bytes_stay() {
        let renamed = |hosts: &str, old: &str, new: &str| {
            renamed(hosts.as_bytes(), old, new).map(|text| String::from_utf8(text).unwrap_or_default())
        };
        let hosts = "127.0.0.1 localhost\n127.0.1.1 old.example.org old # ours\n10.0.0.7 older old2\n";
        assert_eq!(
            renamed(hosts, "old", "new.example.org").as_deref(),
            Some("127.0.0.1 localhost\n127.0.1.1 new.example.org new # ours\n10.0.0.7 older old2\n")
        );
        for (line, old, new, expected) in [
            ("127.0.1.1 old.example.org old\n", "old", "new", "127.0.1.1 new.example.org new\n"),
            (
                "127.0.1.1\told.example.org\told\r\n",
                "old.example.org",
                "new.example.org",
                "127.0.1.1\tnew.example.org\tnew\r\n",
            ),
            ("127.0.1.1   old", "old", "new.example.org", "127.0.1.1   new.example.org new"),
            ("10.1.1.1 web  old  # old", "old", "web", "10.1.1.1 web  # old"),
            ("1.old.1.1 old\n", "old", "new", "1.old.1.1 new\n"),
        ] {
            let before = format!("\n127.0.0.1\tlocalhost \r\n\n{line}");
            let expected = format!("\n127.0.0.1\tlocalhost \r\n\n{expected}");
            assert_eq!(renamed(&before, old, new).as_deref(), Some(expected.as_str()), "{line:?}");
        }
        assert_eq!(renamed("127.0.0.1 localhost old\n", "old", "new"), None);
        assert_eq!(renamed("127.0.0.1 localhost\n", "old", "new"), None);
        // Fedora's file, on a machine that had no other name.
        let fedora = "127.0.0.1   localhost localhost.localdomain localhost4 localhost4.localdomain4\n\
                      ::1         localhost localhost.localdomain localhost6 localhost6.localdomain6\n";
        for old in ["localhost", "localhost.localdomain"] {
            assert_eq!(renamed(fedora, old, "web1"), None, "{old}");
        }
    }

    #[test]
    fn a_line_that_is_not_utf_8_stays_as_it_is() {
        let hosts = b"127.0.1.1 old\n# Gr\xfc\xdfe old\n";
        assert_eq!(renamed(hosts, "old", "new").as_deref(), Some(&b"127.0.1.1 new\n# Gr\xfc\xdfe old\n"[..]));
    }
}
