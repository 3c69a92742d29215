//! The rights of persons to the account: one line of sudoers for each, and what `sudo -l` says they may do besides.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::ACCOUNT;
use host_capability::SudoVersion;

/// The file with the lines. It can't be a fragment, as a module's name has no underscore, and nothing else writes to
/// it.
pub const FILE: &str = "/etc/sudoers.d/linux-sysadmin_serve";

const HEAD: &str = "\
# Who may start the server of the account linux-sysadmin: this very command, and nothing else by it.
# Written by `linux-sysadmin system install`, taken away by `linux-sysadmin system remove`.
";
const ALIAS: &str = "LINUX_SYSADMIN_SERVE";

/// With these settings, the three pipes are all that reaches the server from its client: no variable, and no limit on
/// what a change may take. sudo itself puts nothing between: no terminal, and no log of the data.
const SETTINGS: &str = "env_reset, !setenv, !env_keep, !env_check, !requiretty, !use_pty, !log_input, !log_output, \
                        !noexec, !closefrom_override";
/// Limits, for versions of sudo that have them. Otherwise a client could choose a limit that ends the server in the
/// middle of a change.
const LIMITS: &str = ", rlimit_core=0, rlimit_cpu=infinity, rlimit_fsize=infinity, rlimit_nproc=infinity";

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeRights {
    /// The program that may be started, with the argument `serve` and nothing else.
    pub program: PathBuf,
    /// The users who may start it.
    pub users: BTreeSet<String>,
}

impl ServeRights {
    /// Returns the file's text for this version of sudo. The rewrite in Rust knows none of the settings, and has
    /// nothing that they would turn off.
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

    /// Reads what [`ServeRights::text`] wrote, for any version of sudo. Returns the line as an error where the file
    /// holds something else, which must not be thrown away unseen.
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

/// Says whether sudoers takes a name for one account. It needs no escapes, and isn't an alias (`ALL`, `Defaults`), a
/// group (`%sudo`) or a number (`#0`).
pub fn is_plain(user: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
    user.len() <= 256 && user.bytes().all(fits) && user.as_bytes().first().is_some_and(begins)
}

/// Says whether a program's path can be written in sudoers as it is.
pub fn is_plain_program(path: &Path) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-".contains(&byte);
    path.is_absolute() && path.to_str().is_some_and(|text| text.bytes().all(fits))
}

/// A line of `sudo -l`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SudoListEntry {
    /// The line as sudo prints it.
    pub line: String,
    /// Whether it is the line of system mode.
    pub is_own: bool,
    /// Whether some of its commands run without a password.
    pub without_password: bool,
}

/// Returns settings by which a command runs without a password although its line asks for one. `sudo -l` lists them
/// before the lines: settings of the user, of accounts that the user becomes, and of commands. Text in quotes counts
/// as a setting as well, because one too many is the safe side.
pub fn passwordless_settings(output: &str) -> Vec<String> {
    let end = output.find(HEADING).unwrap_or(output.len());
    let words = output[..end].split([',', ' ', '\t', '\n']).map(|word| word.trim_matches('"'));
    let is_loose = |word: &&str| {
        ["!authenticate", "timestamp_type=global", "!tty_tickets"].contains(word)
            || word.strip_prefix("timestamp_timeout=").is_some_and(|minutes| minutes.starts_with('-'))
            || exempt_group(word).is_some()
    };
    words.filter(is_loose).map(str::to_owned).collect()
}

/// Returns the group, by name or number, whose members a setting is for. None where it is for everybody.
pub fn exempt_group(setting: &str) -> Option<&str> {
    let group = setting.strip_prefix("exempt_group=")?.trim_matches('"');
    Some(group.trim_start_matches(['%', '#']))
}

/// The text between the settings and the lines.
const HEADING: &str = " may run the following commands on ";

/// Returns the program that somebody may start as the server, by the output of `sudo -l`.
pub fn program(output: &str) -> Option<PathBuf> {
    let head = format!("({ACCOUNT}) NOPASSWD: ");
    let program = |line: &str| line.trim().strip_prefix(&head)?.strip_suffix(" serve").map(PathBuf::from);
    output.lines().find_map(program).filter(|path| is_plain_program(path))
}

/// Reads the lines of `sudo -l`. There are none where sudo says that the user may not run anything.
pub fn sudo_list(output: &str, program: &Path) -> Vec<SudoListEntry> {
    let heading = |line: &&str| !line.contains(HEADING);
    let mut lines: Vec<String> = Vec::new();
    for line in output.lines().skip_while(heading).skip(1) {
        match line.strip_prefix("    ") {
            Some(entry) if entry.starts_with('(') => lines.push(entry.to_owned()),
            // A long line continues in the next one.
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
    let sudo_list = |line: String| SudoListEntry {
        is_own: line == own,
        without_password: line.contains("NOPASSWD:"),
        line,
    };
    lines.into_iter().map(sudo_list).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUDO: Option<SudoVersion> = Some(SudoVersion::Sudo(1, 9, 13));

    fn rights(users: &[&str]) -> ServeRights {
        let users = users.iter().map(|user| (*user).to_owned()).collect();
        ServeRights { program: "/usr/local/bin/linux-sysadmin".into(), users }
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
            assert_eq!(ServeRights::parse(&text), Ok(rights(&["alice"])), "{sudo:?}");
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
            assert_eq!(ServeRights::parse(&format!("{text}{more}\n")), Err(more.to_owned()));
        }
        assert!(ServeRights::parse("").is_err());
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

    /// The output of sudo 1.9.13p3.
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
            let sudo_list = sudo_list(text, program).into_iter();
            sudo_list
                .map(|sudo_list| (sudo_list.line, sudo_list.is_own, sudo_list.without_password))
                .collect::<Vec<_>>()
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

    /// The output of sudo 1.9.13p3.
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
            assert_eq!(passwordless_settings(&format!("{head}{more}{tail}")), found, "{more}");
        }
        assert_eq!(passwordless_settings("User alice is not allowed to run sudo on vm.\n"), [""; 0]);
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
