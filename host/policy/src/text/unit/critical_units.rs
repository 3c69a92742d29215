//! Units whose start or stop endangers the machine: starting one ends the running system or gives a shell, stopping another
//! cuts off logins, the network or what protects the machine.
//!
//! The sets of `rules.yaml` name these units, so that the text of a unit and a command of systemctl are judged by the same
//! names.

use std::sync::LazyLock;

use crate::glob::{self, ANY, Met};
use crate::load::builtin_words;

/// Starting one of these gives a shell without a password, or ends the running system.
static DANGEROUS_TO_START: LazyLock<Vec<String>> = LazyLock::new(|| builtin_words("grave"));

/// Stopping one of these cuts off logins, the network or the packet filter, or takes down nearly everything.
static DANGEROUS_TO_STOP: LazyLock<Vec<String>> = LazyLock::new(|| {
    ["lifelines", "firewalls", "networks", "storage", "trunks"].into_iter().flat_map(builtin_words).collect()
});

/// The targets that are reached last at the start, or at the shutdown. Logins don't wait for them.
const LATE: [&str; 5] =
    ["multi-user.target", "graphical.target", "default.target", "timers.target", "shutdown.target"];

/// Whether it is dangerous that this unit may have to wait for the unit `by`. An unknown target counts as dangerous.
pub fn is_dangerous_to_delay(name: &str, by: &str) -> bool {
    match name.ends_with(".target") || name.contains('%') {
        // Sockets and paths come before these targets anyway.
        true if name == "sockets.target" => !by.ends_with(".socket"),
        true if name == "paths.target" => !by.ends_with(".path"),
        true => !LATE.contains(&name),
        false => is_dangerous_to_stop(name),
    }
}

/// Whether it is dangerous to start this unit. A specifier in the name stands for any text.
pub fn is_dangerous_to_start(name: &str) -> bool {
    is_among(name, &DANGEROUS_TO_START)
}

/// Whether it is dangerous to stop this unit, or to limit it.
pub fn is_dangerous_to_stop(name: &str) -> bool {
    is_among(name, &DANGEROUS_TO_STOP) || holds_sessions(name)
}

/// Whether the unit is a slice, a scope or a service that has login sessions or system units in it. A name with a number is
/// that of one account, and one that ends in a dash that of all.
fn holds_sessions(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    let (is_slice, is_scope) = (name.ends_with(".slice"), name.ends_with(".scope"));
    name == "-.slice"
        || is_slice
            && ["user-", "system-", "machine", "session-", "app-"].iter().any(|start| name.starts_with(start))
        || is_scope && name.starts_with("session-")
        || ["user@", "user-runtime-dir@"].iter().any(|template| name.starts_with(template))
}

/// Whether one of the globs matches the name, or may match it: a specifier in the name stands for any text.
fn is_among(name: &str, globs: &[String]) -> bool {
    let name = with_open_specifiers(name.trim_end_matches('.'));
    globs.iter().any(|glob| glob::word(glob, &name) != Met::No)
}

/// The name with an unknown part in place of each specifier, which is a `%` and a character.
fn with_open_specifiers(name: &str) -> String {
    let mut parts = name.split('%');
    let mut open = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut rest = part.chars();
        rest.next();
        open.push(ANY);
        open.push_str(rest.as_str());
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specifier_stands_for_anything() {
        for name in
            ["debug-shell.service", "debug-%i.service", "%i", "%i.service", "%j-%i.target", "debug-shell.%i"]
        {
            assert!(is_dangerous_to_start(name), "{name}");
        }
        for name in [
            "debug-shell@.service",
            "nginx.service",
            "app@%i.service",
            "app-%i.target",
            "debug-shells.service",
            "%äx",
        ] {
            assert!(!is_dangerous_to_start(name), "{name}");
        }
        assert!(is_dangerous_to_stop("ssh.service") && !is_dangerous_to_stop("nginx.service"));
        for name in [
            "user-0.slice",
            "user-.slice",
            "user-%i.slice",
            "-.slice",
            "user@0.service",
            "user@.service",
            "session-3.scope",
            "getty@tty1.service",
            "serial-getty@ttyS0.service",
        ] {
            assert!(is_dangerous_to_stop(name), "{name}");
        }
        for name in ["app.slice", "users.slice", "user-app.service", "session-app.service"] {
            assert!(!is_dangerous_to_stop(name), "{name}");
        }
        for name in
            ["sysinit.target", "basic.target", "local-fs.target", "ssh.service", "%i.target", "own.target"]
        {
            assert!(is_dangerous_to_delay(name, "a.service"), "{name}");
        }
        for name in ["multi-user.target", "nginx.service", "shutdown.target"] {
            assert!(!is_dangerous_to_delay(name, "a.service"), "{name}");
        }
        assert!(
            is_dangerous_to_delay("sockets.target", "a.service")
                && !is_dangerous_to_delay("sockets.target", "a.socket")
        );
    }
}
