//! The options of a mount, joined by commas as in mount(8).

use linux_sysadmin_sdk::prelude::*;

/// Options whose values are secrets. mount.cifs(8) reads the first five, mount.davfs and curlftpfs the others.
const SECRETS: [&str; 7] = ["password", "pass", "passwd", "password2", "pass2", "secret", "key"];

/// Options that only one of the two sides shows, or that mean the default.
const MODES: [(&str, &str); 8] = [
    ("ro", "rw"),
    ("rw", "ro"),
    ("nosuid", ""),
    ("nodev", ""),
    ("noexec", ""),
    ("noatime", ""),
    ("nodiratime", ""),
    ("sync", ""),
];

/// The options one by one. A comma within quotes is part of a value, as in SELinux contexts.
pub(crate) fn all(options: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    options.split(move |character| {
        is_quoted ^= character == '"';
        character == ',' && !is_quoted
    })
}

/// Whether an option is there, with or without a value.
pub(crate) fn has(options: &str, name: &str) -> bool {
    all(options).any(|option| name_of(option) == name)
}

fn name_of(option: &str) -> &str {
    option.split_once('=').map_or(option, |(name, _)| name)
}

/// The names of the options that hold a secret.
pub(crate) fn secrets(options: &str) -> Vec<&str> {
    all(options).filter(|option| is_secret(option)).map(name_of).collect()
}

fn is_secret(option: &str) -> bool {
    let Some((name, value)) = option.split_once('=') else { return false };
    let name = name.to_ascii_lowercase();
    // mount.cifs(8) takes `user=NAME%PASSWORD`.
    SECRETS.contains(&name.as_str()) || matches!(name.as_str(), "user" | "username") && value.contains('%')
}

/// The options with `***` in place of secrets.
pub(crate) fn shown(options: &str) -> String {
    let option = |option: &str| match is_secret(option) {
        true => format!("{}=***", name_of(option)),
        false => option.to_owned(),
    };
    all(options).map(option).collect::<Vec<_>>().join(",")
}

/// Those options of fstab that don't hold now, each as a sentence's part.
pub(crate) fn differences(wanted: &str, actual: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (option, opposite) in MODES {
        // Of `ro` and `rw`, the last one holds.
        let last = all(wanted).filter(|one| *one == option || *one == opposite).last();
        if last == Some(option) && !has(actual, option) {
            found.push(match opposite {
                "" => format!("fstab says {option}, which doesn't hold now"),
                opposite => format!("fstab says {option}, and it is mounted {opposite}"),
            });
        }
    }
    let is_ro = has(actual, "ro") && !all(wanted).any(|option| matches!(option, "ro" | "rw"));
    if is_ro {
        found
            .push("it is mounted ro, and fstab doesn't say so: the kernel does that after errors".to_owned());
    }
    found
}

/// Refuses options that can't stand in fstab, or that hold a secret.
pub(crate) fn check(options: &str) -> Result<()> {
    let is_odd = |option: &str| option.is_empty() || option.chars().any(|c| c.is_control() || c == '\'');
    if all(options).any(is_odd) || options.matches('"').count() % 2 == 1 || options.starts_with('-') {
        let message =
            "expected options as in fstab, such as \"defaults,nofail\": joined by commas, none of them empty";
        return Err(Problem::validation("INVALID_OPTIONS", message));
    }
    let secrets = secrets(options);
    if !secrets.is_empty() {
        let message = format!(
            "options hold a secret ({}), and every account can read /etc/fstab: expected credentials=FILE",
            secrets.join(", ")
        );
        return Err(Problem::validation("SECRET_IN_OPTIONS", message)
            .remedy("Have a person put username= and password= into a file of root with mode 0600, and pass credentials=FILE"));
    }
    let once =
        ["remount", "move", "make-private", "make-shared", "make-slave", "x-mount.mkdir", "X-mount.mkdir"];
    match once.into_iter().find(|name| has(options, name)) {
        Some(name) => {
            let message =
                format!("{name} is no option for a mount that stays: expected options of the file system");
            Err(Problem::validation("INVALID_OPTIONS", message))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_found_by_its_whole_name() {
        let options = "rw,context=\"a:b:c0,c1\",pri=5,nofail";
        assert_eq!(all(options).collect::<Vec<_>>(), ["rw", "context=\"a:b:c0,c1\"", "pri=5", "nofail"]);
        assert!(has(options, "pri") && has(options, "nofail") && !has(options, "c1\"") && !has(options, "r"));
    }

    #[test]
    fn a_secret_is_never_shown_and_refused() {
        for options in ["user=a,password=hunter2", "PASS=hunter2", "username=a%hunter2", "rw,passwd=hunter2"]
        {
            assert!(!shown(options).contains("hunter2"), "{options}");
            let problem = check(options).unwrap_err();
            assert_eq!(problem.code, "SECRET_IN_OPTIONS");
            assert!(!format!("{problem:?}").contains("hunter2"), "{problem:?}");
        }
        assert_eq!(shown("credentials=/etc/c,user=a"), "credentials=/etc/c,user=a");
    }

    #[test]
    fn options_that_cannot_stand_in_fstab_are_refused() {
        for options in ["", "rw,,ro", ",", "rw\nx", "-o", "a=\"b", "remount,rw", "rw,x-mount.mkdir", "a'b"] {
            assert_eq!(check(options).unwrap_err().code, "INVALID_OPTIONS", "{options:?}");
        }
        for options in
            ["defaults", "x-systemd.device-timeout=10s,nofail", "context=\"a,b\"", "subvol=/@ home"]
        {
            assert!(check(options).is_ok(), "{options}");
        }
    }

    #[test]
    fn what_fstab_says_is_compared_with_what_holds() {
        for (wanted, actual, expected) in [
            ("defaults", "rw,relatime", vec![]),
            ("ro", "ro,relatime", vec![]),
            ("ro,rw", "rw", vec![]),
            ("noexec,nofail", "rw", vec!["fstab says noexec, which doesn't hold now"]),
            ("rw", "ro", vec!["fstab says rw, and it is mounted ro"]),
            (
                "errors=remount-ro",
                "ro",
                vec!["it is mounted ro, and fstab doesn't say so: the kernel does that after errors"],
            ),
        ] {
            assert_eq!(differences(wanted, actual), expected, "{wanted} {actual}");
        }
    }
}
