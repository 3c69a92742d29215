//! What persons may do with the account: one line of sudoers each, and what sudo says they may do besides.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::ACCOUNT;
use host_capability::SudoVersion;

/// The file that holds the lines. No fragment is called so, since a module's name has no underscore, and nothing else
/// writes to it.
pub const FILE: &str = "/etc/sudoers.d/linux-sysadmin_serve";

const HEAD: &str = "\
# Who may start the server of the account linux-sysadmin: this very command, and nothing else by it.
# Written by `linux-sysadmin system install`, taken away by `linux-sysadmin system remove`.
";
const ALIAS: &str = "LINUX_SYSADMIN_SERVE";

/// Nothing of the client's reaches the server but the three pipes: no variable and no limit on what a change may take. And
/// nothing of sudo's own stands between them: no terminal, no log of what goes through.
const SETTINGS: &str = "env_reset, !setenv, !env_keep, !env_check, !requiretty, !use_pty, !log_input, !log_output, \
                        !noexec, !closefrom_override";
/// Where sudo has them. A server that is ended in the middle of a change by a limit that its client chose is no use.
const LIMITS: &str = ", rlimit_core=0, rlimit_cpu=infinity, rlimit_fsize=infinity, rlimit_nproc=infinity";

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Which program may be started, with `serve` and nothing else.
    pub program: PathBuf,
    /// By whom.
    pub users: BTreeSet<String>,
}

impl Rights {
    /// The file's text, for the sudo that is there. The rewrite in Rust knows none of the settings, and has no way to
    /// turn off what they turn off.
    pub fn text(&self, sudo: Option<SudoVersion>) -> String {
        let mut text = format!("{HEAD}Cmnd_Alias {ALIAS} = {} serve\n", self.program.display());
        let limits = match sudo {
            Some(SudoVersion::Sudo(major, minor, patch)) if (major, minor, patch) >= (1, 9, 13) => LIMITS,
            _ => "",
        };
        if sudo != Some(SudoVersion::Rs) {
            text.push_str(&format!("Defaults!{ALIAS} {SETTINGS}{limits}\n"));
        }
        for user in &self.users {
            text.push_str(&format!("{user}{LINE}\n"));
        }
        text
    }

    /// Reads what [`Rights::text`] wrote, for whichever sudo. An error, with the line, where something else is in it: it
    /// isn't thrown away unseen.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut program, mut users) = (None, BTreeSet::new());
        for line in text.lines() {
            if line.starts_with('#') || line.starts_with(&format!("Defaults!{ALIAS} ")) {
                continue;
            }
            let alias = line.strip_prefix(&format!("Cmnd_Alias {ALIAS} = "));
            if let Some(path) = alias.and_then(|command| command.strip_suffix(" serve")) {
                program = Some(PathBuf::from(path));
            } else if let Some(user) = line.strip_suffix(LINE).filter(|user| is_plain(user)) {
                users.insert(user.to_owned());
            } else {
                return Err(line.to_owned());
            }
        }
        let program = program.ok_or_else(|| "it names no command".to_owned())?;
        Ok(Self { program, users })
    }
}

const LINE: &str = " ALL=(linux-sysadmin) NOPASSWD: LINUX_SYSADMIN_SERVE";

/// A name that sudoers takes for one account: nothing to escape, no alias (`ALL`, `Defaults`), no group (`%sudo`), no
/// number (`#0`).
pub fn is_plain(user: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
    user.len() <= 256 && user.bytes().all(fits) && user.as_bytes().first().is_some_and(begins)
}

/// Where a program can be written as it is.
pub fn is_plain_program(path: &Path) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-".contains(&byte);
    path.is_absolute() && path.to_str().is_some_and(|text| text.bytes().all(fits))
}

/// A line of `sudo -l`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// As sudo says it.
    pub line: String,
    /// The one that system mode is about.
    pub is_own: bool,
    /// Whether any of it goes without a password.
    pub without_password: bool,
}

/// Settings by which a command goes without a password although its line takes one, in what `sudo -l` says of somebody
/// before the lines: of them, of accounts that they become, and of commands. What stands in quotes is taken for a setting
/// as well: rather one too many.
pub fn loose(output: &str) -> Vec<String> {
    let end = output.find(HEADING).unwrap_or(output.len());
    let words = output[..end].split([',', ' ', '\t', '\n']).map(|word| word.trim_matches('"'));
    let is_loose = |word: &&str| {
        ["!authenticate", "timestamp_type=global", "!tty_tickets"].contains(word)
            || word.strip_prefix("timestamp_timeout=").is_some_and(|minutes| minutes.starts_with('-'))
            || exempt_group(word).is_some()
    };
    words.filter(is_loose).map(str::to_owned).collect()
}

/// The group, by name or number, whose members one of those settings is for; nothing where it is for everybody.
pub fn exempt_group(setting: &str) -> Option<&str> {
    let group = setting.strip_prefix("exempt_group=")?.trim_matches('"');
    Some(group.trim_start_matches(['%', '#']))
}

/// What stands between settings and lines.
const HEADING: &str = " may run the following commands on ";

/// The program that somebody may start as the server, by what `sudo -l` says of them.
pub fn program(output: &str) -> Option<PathBuf> {
    let head = format!("({ACCOUNT}) NOPASSWD: ");
    let program = |line: &str| line.trim().strip_prefix(&head)?.strip_suffix(" serve").map(PathBuf::from);
    output.lines().find_map(program).filter(|path| is_plain_program(path))
}

/// Reads what `sudo -l` says that somebody may run; nothing where it says that they may not run anything.
pub fn listed(output: &str, program: &Path) -> Vec<Listed> {
    let heading = |line: &&str| !line.contains(HEADING);
    let mut lines: Vec<String> = Vec::new();
    for line in output.lines().skip_while(heading).skip(1) {
        match line.strip_prefix("    ") {
            Some(entry) if entry.starts_with('(') => lines.push(entry.to_owned()),
            // A long line goes on in the next one.
            Some(more) => {
                if let Some(last) = lines.last_mut() {
                    last.push(' ');
                    last.push_str(more.trim());
                }
            }
            None => {}
        }
    }
    let own = format!("({ACCOUNT}) NOPASSWD: {} serve", program.display());
    let listed =
        |line: String| Listed { is_own: line == own, without_password: line.contains("NOPASSWD:"), line };
    lines.into_iter().map(listed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUDO: Option<SudoVersion> = Some(SudoVersion::Sudo(1, 9, 13));

    fn rights(users: &[&str]) -> Rights {
        let users = users.iter().map(|user| (*user).to_owned()).collect();
        Rights { program: "/usr/local/bin/linux-sysadmin".into(), users }
    }

    #[test]
    fn a_person_gets_one_line_with_exact_arguments() {
        let text = rights(&["bob", "alice"]).text(SUDO);
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                "Cmnd_Alias LINUX_SYSADMIN_SERVE = /usr/local/bin/linux-sysadmin serve",
                "Defaults!LINUX_SYSADMIN_SERVE env_reset, !setenv, !env_keep, !env_check, !requiretty, !use_pty, \
                 !log_input, !log_output, !noexec, !closefrom_override, rlimit_core=0, rlimit_cpu=infinity, \
                 rlimit_fsize=infinity, rlimit_nproc=infinity",
                "alice ALL=(linux-sysadmin) NOPASSWD: LINUX_SYSADMIN_SERVE",
                "bob ALL=(linux-sysadmin) NOPASSWD: LINUX_SYSADMIN_SERVE",
            ]
        );
    }

    #[test]
    fn settings_are_written_where_sudo_knows_them() {
        for (sudo, settings, limits) in [
            (SUDO, true, true),
            (Some(SudoVersion::Sudo(1, 8, 31)), true, false),
            (Some(SudoVersion::Rs), false, false),
            (None, true, false),
        ] {
            let text = rights(&["alice"]).text(sudo);
            assert_eq!((text.contains("Defaults!"), text.contains("rlimit")), (settings, limits), "{sudo:?}");
            assert_eq!(Rights::parse(&text), Ok(rights(&["alice"])), "{sudo:?}");
        }
    }

    #[test]
    fn what_install_did_not_write_is_not_read() {
        let text = rights(&["alice"]).text(SUDO);
        for more in [
            "bob ALL=(ALL) NOPASSWD: ALL",
            "%sudo ALL=(linux-sysadmin) NOPASSWD: LINUX_SYSADMIN_SERVE",
            "ALL ALL=(linux-sysadmin) NOPASSWD: LINUX_SYSADMIN_SERVE",
            "Cmnd_Alias OTHER = /bin/sh",
            "Cmnd_Alias LINUX_SYSADMIN_SERVE = /bin/sh",
            "Defaults env_keep += \"HOME\"",
        ] {
            assert_eq!(Rights::parse(&format!("{text}{more}\n")), Err(more.to_owned()));
        }
        assert!(Rights::parse("").is_err());
    }

    #[test]
    fn a_name_is_one_account_and_nothing_else() {
        for (user, plain) in [
            ("alice", true),
            ("_alice-2", true),
            ("a.b", true),
            ("ALL", false),
            ("Alice", false),
            ("%sudo", false),
            ("#0", false),
            ("1000", false),
            ("+group", false),
            ("-alice", false),
            ("a b", false),
            ("a,b", false),
            ("a\\b", false),
            ("a\n", false),
            ("", false),
        ] {
            assert_eq!(is_plain(user), plain, "{user:?}");
        }
        for (program, plain) in [
            ("/usr/local/bin/linux-sysadmin", true),
            ("/opt/a b/linux-sysadmin", false),
            ("/opt/a*/linux-sysadmin", false),
            ("/opt/a,b", false),
            ("linux-sysadmin", false),
        ] {
            assert_eq!(is_plain_program(Path::new(program)), plain, "{program}");
        }
    }

    /// As sudo 1.9.13p3 says it.
    #[test]
    fn what_a_person_may_do_is_read_from_what_sudo_says() {
        let program = Path::new("/usr/local/bin/linux-sysadmin");
        let head = "Matching Defaults entries for alice on debian1:\n    env_reset, mail_badpass, \
                    secure_path=/usr/local/sbin\\:/usr/local/bin, use_pty\n\n\
                    Runas and Command-specific defaults for alice:\n    \
                    Defaults!/usr/local/bin/linux-sysadmin serve env_reset, !setenv\n\n\
                    User alice may run the following commands on debian1:\n";
        let own = "    (linux-sysadmin) NOPASSWD: /usr/local/bin/linux-sysadmin serve";
        let found = |text: &str| {
            let listed = listed(text, program).into_iter();
            listed.map(|listed| (listed.line, listed.is_own, listed.without_password)).collect::<Vec<_>>()
        };
        let line = |text: &str, is_own, without| (text.to_owned(), is_own, without);
        assert_eq!(found(&format!("{head}{own}")), [line(own.trim(), true, true)]);
        let more =
            format!("{head}    (ALL : ALL) ALL\n{own}\n    (root) NOPASSWD: /bin/a,\n        /bin/b\n");
        assert_eq!(
            found(&more),
            [
                line("(ALL : ALL) ALL", false, false),
                line(own.trim(), true, true),
                line("(root) NOPASSWD: /bin/a, /bin/b", false, true),
            ]
        );
        for beyond in [
            "(linux-sysadmin) NOPASSWD: /usr/local/bin/linux-sysadmin",
            "(linux-sysadmin) NOPASSWD: /usr/local/bin/linux-sysadmin serve *",
            "(linux-sysadmin) NOPASSWD: /usr/local/bin/linux-sysadmin serve, /bin/sh",
            "(linux-sysadmin) NOPASSWD: /opt/linux-sysadmin serve",
            "(linux-sysadmin) NOPASSWD: SETENV: /usr/local/bin/linux-sysadmin serve",
            "(linux-sysadmin, root) NOPASSWD: /usr/local/bin/linux-sysadmin serve",
        ] {
            assert_eq!(found(&format!("{head}    {beyond}\n")), [line(beyond, false, true)]);
        }
        assert_eq!(super::program(&more).as_deref(), Some(program));
        assert_eq!(super::program("    (root) NOPASSWD: /bin/a serve\n"), None);
        assert_eq!(found("User alice is not allowed to run sudo on debian1.\n"), []);
    }

    /// As sudo 1.9.13p3 says it.
    #[test]
    fn settings_that_make_a_password_needless_are_found_wherever_they_stand() {
        let head = "Matching Defaults entries for alice on vm:\n    env_reset, mail_badpass,\n    \
                    secure_path=/usr/local/sbin\\:/usr/local/bin\\:/usr/sbin\\:/usr/bin\\:/sbin\\:/bin,\n    use_pty";
        let tail = "\n\nUser alice may run the following commands on vm:\n    (ALL : ALL) ALL\n    \
                    (root) /bin/x !authenticate\n";
        for (more, found) in [
            ("", &[][..]),
            (", !authenticate", &["!authenticate"]),
            (", exempt_group=exm", &["exempt_group=exm"]),
            (
                ", timestamp_timeout=-1, timestamp_type=global, passprompt=\"a,\n    b\"",
                &["timestamp_timeout=-1", "timestamp_type=global"],
            ),
            (",\n    timestamp_timeout=-0.5", &["timestamp_timeout=-0.5"]),
            (", !tty_tickets", &["!tty_tickets"]),
            (
                "\n\nRunas and Command-specific defaults for alice:\n    \
                 Defaults>root !authenticate    Defaults!/bin/ls !authenticate",
                &["!authenticate", "!authenticate"],
            ),
            (", timestamp_timeout=15, timestamp_timeout=0, timestamp_type=ppid", &[]),
            (", authenticate, !exempt_group, timestamp_type=tty, tty_tickets", &[]),
        ] {
            assert_eq!(loose(&format!("{head}{more}{tail}")), found, "{more}");
        }
        assert_eq!(loose("User alice is not allowed to run sudo on vm.\n"), [""; 0]);
        for (setting, group) in [
            ("exempt_group=exm", Some("exm")),
            ("exempt_group=\"exm\"", Some("exm")),
            ("exempt_group=#4344", Some("4344")),
            ("!authenticate", None),
        ] {
            assert_eq!(exempt_group(setting), group, "{setting}");
        }
    }
}
