//! Warnings about starting or stopping a unit on which the machine, the way into it or its protection depends.
//!
//! They say what is lost, also where nothing is changed, as in `svc_dependency_impact`. The host decides the risk of a
//! plan: its policy knows these units as well.

use crate::systemd::verb::Verb;

/// Units about which there is the same warning.
struct Group {
    verbs: &'static [Verb],
    reason: &'static str,
    units: &'static [&'static str],
}

const GROUPS: [Group; 5] = [
    Group {
        verbs: &[Verb::Stop, Verb::Restart],
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
        reason: "nobody can log in by ssh any more",
        units: &["ssh.service", "sshd.service", "ssh.socket", "sshd.socket"],
    },
    Group {
        verbs: &[Verb::Stop, Verb::Restart, Verb::Disable],
        reason: "the machine can lose its network",
        units: &NETWORK,
    },
    Group {
        verbs: &[Verb::Stop, Verb::Restart, Verb::Disable],
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

/// Warnings about a verb for a unit, given by its own name and not an alias.
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
    // What is masked does not start at boot either.
    let verb = if verb.masks() { Verb::Disable } else { verb };
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
    fn a_warning_says_what_is_lost() {
        let table = [
            (Verb::Start, "nginx.service", ""),
            (Verb::Stop, "sysinit.target", "nearly every other unit stops with it"),
            (Verb::Stop, "ufw.service", "the machine is without its packet filter"),
            (Verb::Restart, "ufw.service", ""),
            (Verb::Stop, "ssh.service", "nobody can log in by ssh any more"),
            (Verb::Restart, "ssh.service", "with a faulty configuration it doesn't come back"),
            (Verb::Restart, "dbus.service", "much of the system depends on it"),
            (Verb::Reload, "dbus.service", ""),
            (Verb::Stop, "user@1000.service", "ends people's sessions"),
            (Verb::Stop, "session-3.scope", "ends people's sessions"),
            (Verb::Start, "user@1000.service", ""),
            (Verb::Restart, "gdm.service", "ends people's sessions"),
            (Verb::Stop, "NetworkManager.service", "the machine can lose its network"),
            (Verb::Mask, "ssh.service", "nobody can log in by ssh any more"),
            (Verb::MaskRuntime, "dbus.service", "much of the system depends on it"),
            (Verb::Unmask, "ssh.service", ""),
        ];
        for (verb, unit, expected) in table {
            let said = warnings(verb, unit);
            let start = format!("{} {unit}: {expected}", verb.name());
            assert_eq!(said.len(), usize::from(!expected.is_empty()), "{said:?}");
            assert!(said.iter().all(|warning| warning.starts_with(&start)), "{said:?}");
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
