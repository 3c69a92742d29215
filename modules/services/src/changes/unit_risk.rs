//! The risk of starting or stopping a unit. For some units it is higher than usual, because the machine, the way into it
//! or its protection depends on them.
//!
//! Grants of their own name these units, and so the host knows the risk without the plan. A plan states it as well, since
//! no command line names the units that stop along.

use linux_sysadmin_sdk::{CommandGrant, Risk};

use crate::systemd::verb::Verb;

/// Units for which some verbs have a higher risk.
struct Group {
    verbs: &'static [Verb],
    risk: Risk,
    reason: &'static str,
    units: &'static [&'static str],
}

/// The risk of a unit that is in no [`Group`].
const ORDINARY: Risk = Risk::Moderate;

const GROUPS: [Group; 6] = [
    Group {
        verbs: &[Verb::Start, Verb::Restart, Verb::Enable],
        risk: Risk::Critical,
        reason: "gives a shell without a password, or ends the running system",
        units: &[
            "debug-shell.service",
            "rescue.target",
            "rescue.service",
            "emergency.target",
            "emergency.service",
            "runlevel1.target",
            "runlevel0.target",
            "runlevel6.target",
            "ctrl-alt-del.target",
            "reboot.target",
            "systemd-reboot.service",
            "poweroff.target",
            "systemd-poweroff.service",
            "halt.target",
            "systemd-halt.service",
            "kexec.target",
            "systemd-kexec.service",
            "soft-reboot.target",
            "systemd-soft-reboot.service",
            "exit.target",
            "systemd-exit.service",
            "shutdown.target",
            "final.target",
            "umount.target",
            "suspend.target",
            "systemd-suspend.service",
            "hibernate.target",
            "systemd-hibernate.service",
            "hybrid-sleep.target",
            "systemd-hybrid-sleep.service",
            "suspend-then-hibernate.target",
            "systemd-suspend-then-hibernate.service",
            "sleep.target",
            "initrd-switch-root.target",
            "initrd-switch-root.service",
            "initrd-cleanup.service",
            "initrd-udevadm-cleanup-db.service",
            "system-update.target",
            "factory-reset.target",
        ],
    },
    Group {
        verbs: &[Verb::Stop, Verb::Restart],
        risk: Risk::Critical,
        reason: "nearly every other unit stops with it",
        units: &[
            "system.slice",
            "user.slice",
            "init.scope",
            "sysinit.target",
            "basic.target",
            "local-fs.target",
            "sockets.target",
        ],
    },
    Group {
        verbs: &[Verb::Stop, Verb::Disable],
        risk: Risk::Critical,
        reason: "the machine is without its packet filter",
        units: &[
            "firewalld.service",
            "ufw.service",
            "nftables.service",
            "iptables.service",
            "ip6tables.service",
            "netfilter-persistent.service",
            "shorewall.service",
        ],
    },
    Group {
        verbs: &[Verb::Stop, Verb::Disable],
        risk: Risk::High,
        reason: "nobody can log in by ssh any more",
        units: &["ssh.service", "sshd.service", "ssh.socket", "sshd.socket"],
    },
    Group {
        verbs: &[Verb::Stop, Verb::Restart, Verb::Disable],
        risk: Risk::High,
        reason: "the machine can lose its network",
        units: &NETWORK,
    },
    Group {
        verbs: &[Verb::Stop, Verb::Restart, Verb::Disable],
        risk: Risk::High,
        reason: "much of the system depends on it, logins and systemctl among it",
        units: &[
            "dbus.service",
            "dbus.socket",
            "dbus-broker.service",
            "systemd-logind.service",
            "systemd-journald.service",
            "systemd-journald.socket",
            "systemd-journald-dev-log.socket",
            "systemd-udevd.service",
            "systemd-udevd-control.socket",
            "systemd-udevd-kernel.socket",
            "systemd-resolved.service",
            "systemd-homed.service",
            "systemd-userdbd.service",
            "systemd-user-sessions.service",
            "sssd.service",
            "auditd.service",
            "polkit.service",
        ],
    },
];

/// Daemons that configure the network. A plan that stops one undoes itself unless the host reaches the target again.
const NETWORK: [&str; 7] = [
    "NetworkManager.service",
    "systemd-networkd.service",
    "networking.service",
    "network.service",
    "dhcpcd.service",
    "wicked.service",
    "wickedd.service",
];

const DISPLAY_MANAGERS: [&str; 6] = [
    "display-manager.service",
    "gdm.service",
    "gdm3.service",
    "lightdm.service",
    "sddm.service",
    "xdm.service",
];

/// One grant for each group, which names its units.
pub(crate) fn grants() -> impl Iterator<Item = CommandGrant> {
    GROUPS.iter().map(|group| {
        let verbs: Vec<&str> = group.verbs.iter().map(|verb| verb.name()).collect();
        let pattern = format!("systemctl ({}) -- ({})", verbs.join("|"), group.units.join("|"));
        CommandGrant::change(&pattern, group.risk, group.reason)
    })
}

/// The risk of a verb for a unit, given by its own name and not an alias.
pub(crate) fn risk(verb: Verb, unit: &str) -> Risk {
    let found = groups(verb, unit).map(|group| group.risk).max();
    let ends = ends_sessions(verb, unit).then_some(Risk::High);
    found.max(ends).unwrap_or(ORDINARY).max(ORDINARY)
}

/// Warnings about a verb for a unit, for the person who confirms the plan.
pub(crate) fn warnings(verb: Verb, unit: &str) -> Vec<String> {
    let mut warnings: Vec<String> =
        groups(verb, unit).map(|group| format!("{} {unit}: {}", verb.name(), group.reason)).collect();
    let interrupts = matches!(verb, Verb::Stop | Verb::Restart);
    if ends_sessions(verb, unit) || (interrupts && DISPLAY_MANAGERS.contains(&unit)) {
        warnings.push(format!("{} {unit}: ends people's sessions", verb.name()));
    }
    if verb == Verb::Restart && ["ssh.service", "sshd.service"].contains(&unit) {
        warnings.push(format!(
            "restart {unit}: with a faulty configuration it doesn't come back (sshd -t tells); sessions stay"
        ));
    }
    warnings
}

/// Whether the target can become unreachable by it.
pub(crate) fn can_cut_off(verb: Verb, unit: &str) -> bool {
    matches!(verb, Verb::Stop | Verb::Restart) && NETWORK.contains(&unit)
}

fn groups(verb: Verb, unit: &str) -> impl Iterator<Item = &'static Group> {
    GROUPS.iter().filter(move |group| group.verbs.contains(&verb) && group.units.contains(&unit))
}

fn ends_sessions(verb: Verb, unit: &str) -> bool {
    let is_session = (unit.starts_with("user@") && unit.ends_with(".service"))
        || (unit.starts_with("user-") && unit.ends_with(".slice"))
        || (unit.starts_with("session-") && unit.ends_with(".scope"));
    matches!(verb, Verb::Stop | Verb::Restart) && is_session
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systemd::unit_name;

    #[test]
    fn what_costs_more_than_the_unit_is_graver_than_moderate() {
        let table = [
            (Verb::Start, "nginx.service", Risk::Moderate),
            (Verb::Start, "debug-shell.service", Risk::Critical),
            (Verb::Restart, "rescue.target", Risk::Critical),
            (Verb::Enable, "debug-shell.service", Risk::Critical),
            (Verb::Disable, "debug-shell.service", Risk::Moderate),
            (Verb::Stop, "sysinit.target", Risk::Critical),
            (Verb::Stop, "ufw.service", Risk::Critical),
            (Verb::Restart, "ufw.service", Risk::Moderate),
            (Verb::Stop, "ssh.service", Risk::High),
            (Verb::Restart, "ssh.service", Risk::Moderate),
            (Verb::Restart, "dbus.service", Risk::High),
            (Verb::Reload, "dbus.service", Risk::Moderate),
            (Verb::Stop, "user@1000.service", Risk::High),
            (Verb::Stop, "session-3.scope", Risk::High),
            (Verb::Start, "user@1000.service", Risk::Moderate),
            (Verb::Stop, "NetworkManager.service", Risk::High),
        ];
        for (verb, unit, expected) in table {
            assert_eq!(risk(verb, unit), expected, "{verb:?} {unit}");
            assert_eq!(
                expected == Risk::Moderate,
                groups(verb, unit).count() == 0 && !ends_sessions(verb, unit)
            );
        }
    }

    #[test]
    fn every_name_is_a_units_full_name() {
        for unit in GROUPS.iter().flat_map(|group| group.units).chain(&DISPLAY_MANAGERS) {
            assert_eq!(unit_name::full(unit).as_deref(), Ok(*unit));
        }
    }

    #[test]
    fn only_stopping_what_holds_the_network_can_cut_off() {
        assert!(can_cut_off(Verb::Stop, "networking.service"));
        assert!(can_cut_off(Verb::Restart, "NetworkManager.service"));
        for (verb, unit) in [
            (Verb::Start, "networking.service"),
            (Verb::Disable, "networking.service"),
            (Verb::Stop, "ssh.service"),
        ] {
            assert!(!can_cut_off(verb, unit), "{verb:?} {unit}");
        }
    }
}
