//! A command line as it is shown: short, and without the passwords that people put there.

/// Enough to tell two of the same program apart.
const LONGEST: usize = 160;

/// From `/proc/PID/cmdline`: arguments with a NUL after each. None for kernel threads and zombies, which have none.
pub(crate) fn shown(cmdline: &str) -> Option<String> {
    let mut shown = String::new();
    let mut hide_next = false;
    for argument in cmdline.trim_end_matches(['\0', '\n']).split('\0') {
        let argument = argument.replace(char::is_control, " ");
        if !shown.is_empty() {
            shown.push(' ');
        }
        if std::mem::take(&mut hide_next) && !argument.starts_with('-') {
            shown.push_str("***");
            continue;
        }
        match argument.split_once('=') {
            Some((name, _)) if is_secret(name) => shown.push_str(&format!("{name}=***")),
            _ => {
                hide_next = argument.starts_with('-') && is_secret(&argument);
                shown.push_str(&argument);
            }
        }
    }
    let shown = shown.trim();
    if shown.is_empty() {
        return None;
    }
    match shown.char_indices().nth(LONGEST) {
        Some((at, _)) => Some(format!("{}…", &shown[..at])),
        None => Some(shown.to_owned()),
    }
}

/// By the name of an option or a variable: `--password`, `DB_PASSWORD`, `--api-key`.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "passphrase", "secret", "token", "credential", "api-key", "apikey", "api_key"]
        .iter()
        .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_joined_and_secrets_hidden() {
        let table = [
            ("sleep\x0010\0", "sleep 10"),
            ("nginx: master process /usr/sbin/nginx\0\0\0\0", "nginx: master process /usr/sbin/nginx"),
            ("sh\0-c\0a\nb\0", "sh -c a b"),
            ("mysqld\0--datadir=/srv/x\0", "mysqld --datadir=/srv/x"),
            ("mysql\0--password=abc\0-u\0root\0", "mysql --password=*** -u root"),
            ("x\0--api-key\0abc\0y\0", "x --api-key *** y"),
            ("x\0--token\0--verbose\0", "x --token --verbose"),
            ("env\0PGPASSWORD=abc\0psql\0", "env PGPASSWORD=*** psql"),
            ("mkdir\0secret\0tokens\0", "mkdir secret tokens"),
            ("x\0\0y\0", "x  y"),
        ];
        for (cmdline, expected) in table {
            assert_eq!(shown(cmdline).as_deref(), Some(expected), "{cmdline:?}");
        }
        for none in ["", "\0", "\0\0\n"] {
            assert_eq!(shown(none), None);
        }
    }

    #[test]
    fn a_long_one_is_cut_between_characters() {
        let shown = shown(&"ä".repeat(1000)).unwrap();
        assert_eq!(shown.chars().count(), LONGEST + 1);
        assert!(shown.ends_with("ä…"));
    }
}
