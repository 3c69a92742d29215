//! The remaining work after a change, by dnf's plugin `needs-restarting`. Nothing is reported where the plugin isn't
//! installed.

use linux_sysadmin_sdk::packages::Aftermath;
use linux_sysadmin_sdk::prelude::*;

use crate::command::{REBOOT, RESTART, after};

pub fn aftermath(cx: &Context) -> Aftermath {
    let said = |output: Result<Output>| output.map(|output| output.text().into_owned()).unwrap_or_default();
    let mut outputs = cx.run_all(vec![after(REBOOT), after(RESTART)]).into_iter();
    let reboot = outputs.next().map(said).unwrap_or_default();
    let restart = outputs.next().map(said).unwrap_or_default();
    Aftermath {
        reboot_required_by: reboot_required_by(&reboot),
        services_to_restart: units(&restart),
        notes: Vec::new(),
    }
}

/// Reads lines such as `  * kernel`, where `Reboot is required` follows.
fn reboot_required_by(text: &str) -> Vec<String> {
    if !text.contains("Reboot is required") {
        return Vec::new();
    }
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("* "));
    let names: Vec<_> = names.filter_map(|rest| rest.split_whitespace().next()).map(str::to_owned).collect();
    if names.is_empty() { vec!["*".to_owned()] } else { names }
}

/// Reads one unit per line.
fn units(text: &str) -> Vec<String> {
    let is_unit = |line: &&str| line.ends_with(".service") && !line.contains(char::is_whitespace);
    text.lines().map(str::trim).filter(is_unit).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of `dnf needs-restarting --reboothint` come from the source of dnf-plugins-core 4.3.1, and from a
    /// recording.
    #[test]
    fn a_reboot_is_required_by_the_packages_that_are_listed() {
        let required = "Core libraries or services have been updated since boot-up:\n  * glibc\n  * systemd\n\n\
            Reboot is required to fully utilize these updates.\nMore information: https://access.redhat.com/solutions/27943\n";
        assert_eq!(reboot_required_by(required), ["glibc", "systemd"]);
        let not = "No core libraries or services have been updated since boot-up.\nReboot should not be necessary.\n";
        assert!(reboot_required_by(not).is_empty());
        assert!(reboot_required_by("No such command: needs-restarting.").is_empty());
    }

    #[test]
    fn a_line_that_is_no_unit_is_none() {
        assert_eq!(units("crond.service\nsshd.service\n"), ["crond.service", "sshd.service"]);
        assert!(units("No such command: needs-restarting. Please use /usr/bin/dnf --help\n\n").is_empty());
    }
}
