//! Decides what a process of the system account takes from the process that started it: its arguments and its pipes.
//!
//! The person who may start the server may not choose which configuration it reads. sudo drops variables only as far
//! as its own configuration says (`env_keep`), and one of `HOME`, `XDG_CONFIG_HOME` or `LINUX_SYSADMIN_CONFIG` would
//! be enough. Therefore, before anything is read, the program starts itself again with an environment made from the
//! passwd entry. **This is the only place that decides it**: all else reads variables as in single-user mode.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::Mode;

use super::{ACCOUNT, Account};
use host_base::program::PATH;

/// The variable in which sudo gives the number of its caller. sudo overwrites what the caller had set.
pub const CLIENT: &str = "SUDO_UID";

/// Makes the environment clean. It is called before anything reads the environment or the arguments, and does nothing
/// in a process of another account. Returns an error where the process's account is unknown or its environment can't
/// be made clean; the process must not go on then.
pub fn enforce_clean_environment() -> io::Result<()> {
    let Some(account) = super::running_as()? else { return Ok(()) };
    std::env::set_current_dir("/")?;
    rustix::process::umask(Mode::from_raw_mode(0o077));
    let given: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    let clean = clean(&given, &account);
    if clean == given {
        return Ok(());
    }
    let mut arguments = std::env::args_os();
    // The program is started by its path, and keeps its name as its first argument.
    let mut anew = Command::new(std::env::current_exe()?);
    anew.arg0(arguments.next().unwrap_or_else(|| ACCOUNT.into())).args(arguments).env_clear().envs(clean);
    Err(anew.exec())
}

/// Returns the environment of the account's processes, made from the one that they were given.
fn clean(given: &BTreeMap<OsString, OsString>, account: &Account) -> BTreeMap<OsString, OsString> {
    let passed = [(CLIENT, is_number as fn(&str) -> bool), ("TERM", is_terminal)];
    let passed = passed.into_iter().filter_map(|(name, fits)| {
        let value = given.get(OsStr::new(name))?;
        value.to_str().is_some_and(fits).then(|| (OsString::from(name), value.clone()))
    });
    let own: [(&str, OsString); 4] = [
        ("HOME", account.home.clone().into()),
        ("USER", ACCOUNT.into()),
        ("LOGNAME", ACCOUNT.into()),
        ("PATH", PATH.into()),
    ];
    own.into_iter().map(|(name, value)| (name.into(), value)).chain(passed).collect()
}

/// Says whether a text is an account's number as sudo writes it.
fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u32>().is_ok()
}

fn is_terminal(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-+._".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(given: &[(&str, &str)]) -> BTreeMap<String, String> {
        let account = Account { uid: 998, gid: 998, home: "/var/lib/linux-sysadmin/home".into() };
        let given = given.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let once = clean(&given, &account);
        assert_eq!(clean(&once, &account), once, "a clean one is left as it is, or this would never end");
        let text = |text: OsString| text.into_string().unwrap();
        once.into_iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    #[test]
    fn home_and_path_are_the_accounts_own_whatever_was_given() {
        let own = cleaned(&[]);
        let names: Vec<_> = own.keys().map(String::as_str).collect();
        assert_eq!(names, ["HOME", "LOGNAME", "PATH", "USER"]);
        assert_eq!(own["HOME"], "/var/lib/linux-sysadmin/home");
        let given = [("HOME", "/tmp/x"), ("USER", "root"), ("LOGNAME", "root"), ("PATH", "/tmp/x")];
        assert_eq!(cleaned(&given), own);
    }

    #[test]
    fn nothing_that_says_where_something_is_or_how_it_runs_is_taken() {
        for name in [
            "LINUX_SYSADMIN_CONFIG",
            "LINUX_SYSADMIN_MODULES",
            "LINUX_SYSADMIN_LOG",
            "LINUX_SYSADMIN_FAULT",
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
            "XDG_DATA_HOME",
            "XDG_CACHE_HOME",
            "LD_PRELOAD",
            "TZ",
            "TZDIR",
            "RUST_LOG",
            "SUDO_USER",
            "SUDO_COMMAND",
            "TMPDIR",
        ] {
            assert_eq!(cleaned(&[(name, "/tmp/x")]), cleaned(&[]), "{name}");
        }
    }

    #[test]
    fn what_is_passed_on_is_what_it_says() {
        for (name, value, passed) in [
            ("SUDO_UID", "1000", true),
            ("SUDO_UID", "0", true),
            ("SUDO_UID", "", false),
            ("SUDO_UID", "+1", false),
            ("SUDO_UID", "-1", false),
            ("SUDO_UID", "4294967296", false),
            ("TERM", "xterm-256color", true),
            ("TERM", "", false),
            ("TERM", "../x", false),
            ("TERM", "x\u{1b}[2J", false),
        ] {
            assert_eq!(cleaned(&[(name, value)]).contains_key(name), passed, "{name}={value:?}");
        }
    }
}
