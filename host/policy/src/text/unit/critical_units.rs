//! Units whose start or stop endangers the machine: starting one ends the running system or gives a shell, stopping another
//! cuts off logins, the network or what protects the machine.

/// Starting one of these gives a shell without a password, or ends the running system.
const DANGEROUS_TO_START: [&str; 40] = [
    "debug-shell.service",
    "rescue.target",
    "rescue.service",
    "emergency.target",
    "emergency.service",
    "runlevel0.target",
    "runlevel1.target",
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
    "container-getty@.service",
];

/// Stopping one of these cuts off logins, the network or the packet filter, or takes down nearly everything.
const DANGEROUS_TO_STOP: [&str; 43] = [
    "system.slice",
    "user.slice",
    "init.scope",
    "sysinit.target",
    "basic.target",
    "local-fs.target",
    "sockets.target",
    "multi-user.target",
    "graphical.target",
    "network.target",
    "network-online.target",
    "firewalld.service",
    "ufw.service",
    "nftables.service",
    "iptables.service",
    "ip6tables.service",
    "netfilter-persistent.service",
    "shorewall.service",
    "ssh.service",
    "sshd.service",
    "ssh.socket",
    "sshd.socket",
    "NetworkManager.service",
    "systemd-networkd.service",
    "networking.service",
    "network.service",
    "dhcpcd.service",
    "wicked.service",
    "dbus.service",
    "dbus.socket",
    "dbus-broker.service",
    "systemd-logind.service",
    "systemd-journald.service",
    "systemd-journald.socket",
    "systemd-udevd.service",
    "systemd-resolved.service",
    "systemd-homed.service",
    "systemd-userdbd.service",
    "systemd-user-sessions.service",
    "sssd.service",
    "auditd.service",
    "polkit.service",
    "fail2ban.service",
];

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
    DANGEROUS_TO_START.iter().any(|unit| could_be(name, unit))
}

/// Whether it is dangerous to stop this unit, or to limit it.
pub fn is_dangerous_to_stop(name: &str) -> bool {
    DANGEROUS_TO_STOP.iter().any(|unit| could_be(name, unit)) || holds_sessions(name)
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
        || ["user@", "user-runtime-dir@", "getty@", "serial-getty@", "autovt@", "console-getty."].iter().any(|template| name.starts_with(template))
}

fn could_be(name: &str, unit: &str) -> bool {
    let name = name.trim_end_matches('.');
    match name.split_once('%') {
        None => name == unit,
        Some((start, rest)) => {
            // The end of the name is the text behind the letter of the last specifier.
            let rest = rest.rsplit('%').next().unwrap_or(rest);
            let mut end = rest.chars();
            end.next();
            let end = end.as_str();
            unit.len() >= start.len() + end.len() && unit.starts_with(start) && unit.ends_with(end)
        }
    }
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
            "console-getty.service",
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
