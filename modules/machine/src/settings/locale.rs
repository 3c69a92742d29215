//! The locale.

use linux_sysadmin_sdk::{Output, prelude::*};

use crate::near::near;

pub(crate) const STATUS: CommandLine = CommandLine::new("localectl status");
pub(crate) const LIST: CommandLine = CommandLine::new("localectl list-locales");
pub(crate) const SET: CommandLine = CommandLine::new("localectl set-locale <text>...");

/// The variables in the output of [`STATUS`], each as `NAME=value` on a line.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(|line| line.trim().trim_start_matches("System Locale:").trim());
    lines.filter(|line| line.starts_with("LANG=") || line.starts_with("LANGUAGE=") || line.starts_with("LC_"))
}

/// The value of LANG in the output of [`STATUS`].
pub(crate) fn current(text: &str) -> Option<&str> {
    variables(text).find_map(|line| line.strip_prefix("LANG="))
}

/// The command that sets LANG. localectl unsets every variable that isn't given, so the others are given as well.
pub(crate) fn set(lang: &str, text: &str) -> Command {
    let others = variables(text).filter(|line| !line.starts_with("LANG=")).map(str::to_owned);
    SET.with(std::iter::once(format!("LANG={lang}")).chain(others))
}

/// The locales that the C library itself has. No list names them.
const BUILT_IN: [&str; 2] = ["C", "POSIX"];

/// The locale as the machine writes it. A charset is the same however it is spelled.
pub(crate) fn known(asked: &str, list: Result<Output>) -> Result<String> {
    if BUILT_IN.contains(&asked) {
        return Ok(asked.to_owned());
    }
    let list = list?.success("localectl")?;
    let same = |name: &str| name.to_lowercase().replace('-', "");
    let text = list.text();
    let names: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if let Some(found) = names.iter().find(|name| same(name) == same(asked)) {
        return Ok((*found).to_owned());
    }
    let close = near(asked, names.iter().map(|name| (*name).to_owned()));
    let shown: String = asked.chars().filter(|character| !character.is_control()).take(64).collect();
    let problem = Problem::validation("UNKNOWN_LOCALE", format!("this machine has no locale {shown:?}"));
    let problem = match close.is_empty() {
        true => problem,
        false => problem.remedy(format!("Near: {}", close.join(", "))),
    };
    Err(problem.remedy(
        "To make it: on Debian a line in /etc/locale.gen and `locale-gen`, on Fedora the package glibc-langpack-LANGUAGE",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::output;

    #[test]
    fn the_locale_is_read_and_found_however_it_is_spelled() {
        // localectl of systemd 252.
        let text = "System Locale: LANG=C.UTF-8\n    VC Keymap: (unset)\n   X11 Layout: (unset)\n";
        assert_eq!(current(text), Some("C.UTF-8"));
        assert_eq!(
            current("System Locale: LC_TIME=C\n               LANG=de_DE.UTF-8\n"),
            Some("de_DE.UTF-8")
        );
        assert_eq!(current("   System Locale: n/a\n"), None);
        let two = "System Locale: LANG=C.UTF-8\n               LC_TIME=de_DE.UTF-8\n    VC Keymap: (unset)\n";
        assert_eq!(set("de_DE.UTF-8", two).args, ["set-locale", "LANG=de_DE.UTF-8", "LC_TIME=de_DE.UTF-8"]);
        let list = || Ok(output(0, "C.UTF-8\nde_DE.UTF-8\n", ""));
        assert_eq!(known("de_DE.utf8", list()).as_deref(), Ok("de_DE.UTF-8"));
        let problem = known("de_DE.UTF-9", list()).unwrap_err();
        assert!(problem.remediation[0].contains("de_DE.UTF-8"), "{problem:?}");
        assert!(known("C\nX", list()).is_err() && known("c", list()).is_err());
        assert_eq!(known("C", list()).as_deref(), Ok("C"));
        assert_eq!(known("POSIX", list()).as_deref(), Ok("POSIX"));
    }
}
