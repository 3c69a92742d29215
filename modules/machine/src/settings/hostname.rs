//! The machine's name, and its line in /etc/hosts.

use linux_sysadmin_sdk::prelude::*;

pub(crate) const SET: CommandLine = CommandLine::new("hostnamectl set-hostname <host>");
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
    match name.len() <= LONGEST && !is_number && name.split('.').all(is_label) {
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

/// /etc/hosts with the new name in place of the old one. None where no line has the old name.
pub(crate) fn renamed(hosts: &str, old: &str, new: &str) -> Option<String> {
    let short = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let (old_short, new_short) = (short(old), short(new));
    let mut is_changed = false;
    let line = |line: &str| {
        let (names, comment) = line.split_once('#').map_or((line, None), |(names, rest)| (names, Some(rest)));
        let words: Vec<&str> = names.split_whitespace().collect();
        let has_old = words.iter().skip(1).any(|word| *word == old || *word == old_short);
        // Other programs need the lines of `localhost` as they are, also where that was the machine's own name.
        if !has_old || words.contains(&"localhost") {
            return line.to_owned();
        }
        is_changed = true;
        let mut renamed: Vec<String> = Vec::new();
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
            if !renamed.contains(&now) {
                renamed.push(now);
            }
        }
        if !renamed.contains(&new_short) {
            renamed.push(new_short.clone());
        }
        let comment = comment.map(|rest| format!(" #{rest}")).unwrap_or_default();
        renamed.join(" ") + &comment
    };
    let lines: Vec<String> = hosts.lines().map(line).collect();
    is_changed.then(|| lines.join("\n") + "\n").filter(|text| text != hosts)
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
    fn the_machines_own_line_gets_the_new_name_and_others_stay() {
        let hosts = "127.0.0.1 localhost\n127.0.1.1 old.example.org old # ours\n10.0.0.7 older old2\n";
        assert_eq!(
            renamed(hosts, "old", "new.example.org").as_deref(),
            Some("127.0.0.1 localhost\n127.0.1.1 new.example.org new # ours\n10.0.0.7 older old2\n")
        );
        assert_eq!(
            renamed("127.0.1.1 old.example.org old\n", "old", "new").as_deref(),
            Some("127.0.1.1 new.example.org new\n")
        );
        assert_eq!(
            renamed("127.0.1.1\told.example.org old\n", "old.example.org", "new.example.org").as_deref(),
            Some("127.0.1.1 new.example.org new\n")
        );
        assert_eq!(
            renamed("127.0.1.1 old\n", "old", "new.example.org").as_deref(),
            Some("127.0.1.1 new.example.org new\n")
        );
        assert_eq!(renamed("127.0.0.1 localhost old\n", "old", "new"), None);
        assert_eq!(renamed("127.0.0.1 localhost\n", "old", "new"), None);
        // Fedora's file, on a machine that had no other name.
        let fedora = "127.0.0.1   localhost localhost.localdomain localhost4 localhost4.localdomain4\n\
                      ::1         localhost localhost.localdomain localhost6 localhost6.localdomain6\n";
        for old in ["localhost", "localhost.localdomain"] {
            assert_eq!(renamed(fedora, old, "web1"), None, "{old}");
        }
    }
}
