//! Compares the ports that a profile declares with the ports that are listened on.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::knowledge::ports::{is_own, is_systemds, number};
use linux_sysadmin_sdk::knowledge::{Port, Profile};
use linux_sysadmin_sdk::listening::Socket;
use linux_sysadmin_sdk::{prelude::*, processes};

/// The ports that differ from the declaration.
#[derive(Debug, Default, Serialize, PartialEq, Eq)]
pub(crate) struct Ports {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_listening: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) held_by_others: Vec<String>,
    /// The sockets on which the service listens instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) listening: Vec<String>,
}

/// Compares the ports of one service. Optional ports aren't missed. None where all is as declared.
pub(crate) fn compare(
    profile: &Profile,
    pid: Option<u64>,
    is_active: bool,
    sockets: &[Socket],
    cx: &Context,
) -> Option<Ports> {
    let mut ports = Ports::default();
    for port in profile.ports.iter().filter(|port| !port.optional) {
        let on: Vec<&Socket> = sockets.iter().filter(|socket| socket.is_on(port)).collect();
        let (own, others): (Vec<&Socket>, Vec<&Socket>) =
            on.into_iter().partition(|socket| is_own(profile, pid, socket));
        // A service that doesn't run may still hold a port for a moment, because its checker opens it, as nginx's does.
        match (own.is_empty() || !is_active, others.is_empty()) {
            (true, true) if is_active => ports.not_listening.push(declared(port)),
            (true, false) => {
                ports.held_by_others.push(format!("{} is held by {}", number(port), holders(&others, cx)))
            }
            _ => {}
        }
    }
    if is_active && (!ports.not_listening.is_empty() || !ports.held_by_others.is_empty()) {
        let own = sockets.iter().filter(|socket| {
            !socket.processes.is_empty() && !is_systemds(socket) && is_own(profile, pid, socket)
        });
        ports.listening = own.map(|socket| format!("{} {}", socket.protocol(), socket.shown())).collect();
        ports.listening.sort();
        ports.listening.dedup();
        ports.listening.truncate(10);
    }
    (ports != Ports::default()).then_some(ports)
}

/// The number of processes that are told.
const MOST: usize = 4;

/// The processes that hold sockets, with the addresses. Of processes that share a socket, this is the first one.
pub(crate) fn holders(sockets: &[&Socket], cx: &Context) -> String {
    let mut held: BTreeMap<(u64, &str), Vec<String>> = BTreeMap::new();
    for socket in sockets {
        let first = socket.processes.iter().min_by_key(|(_, pid)| *pid);
        let (pid, name) = first.map_or((0, ""), |(name, pid)| (*pid, name.as_str()));
        held.entry((pid, name)).or_default().push(socket.shown());
    }
    let found = processes::by_pid(cx, held.keys().filter_map(|(pid, _)| u32::try_from(*pid).ok()).take(MOST));
    let shown = held.into_iter().take(MOST).map(|((pid, name), mut addresses)| {
        addresses.sort();
        addresses.dedup();
        let found = u32::try_from(pid).ok().and_then(|pid| found.get(&pid));
        let who = found.map_or_else(|| format!("PID {pid} ({name})"), |found| found.process.shown());
        format!("{who} on {}", addresses.join(", "))
    });
    shown.collect::<Vec<_>>().join("; ")
}

/// A port with its purpose and the setting that sets it.
pub(crate) fn declared(port: &Port) -> String {
    let set_by = port.set_by.as_deref().map(|setting| format!(", set by {setting}")).unwrap_or_default();
    format!("{} {}{set_by}", number(port), port.what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::knowledge::{Protocol, Scope};
    use linux_sysadmin_sdk::listening;
    use linux_sysadmin_sdk::testkit::{FakeTarget, profile};

    fn nginx() -> Profile {
        let port = |number, optional| Port {
            first: number,
            last: number,
            protocol: Protocol::Tcp,
            scope: Scope::Public,
            optional,
            what: "HTTP".into(),
            set_by: None,
        };
        let mut nginx = profile("nginx");
        nginx.processes = vec!["nginx".into()];
        nginx.ports = vec![port(80, false), port(443, true)];
        nginx
    }

    fn of(is_active: bool, ss: &str) -> Option<Ports> {
        compare(&nginx(), Some(7), is_active, &listening::parse(ss), &FakeTarget::new().context())
    }

    #[test]
    fn only_what_is_not_as_declared_is_told() {
        let own = "tcp LISTEN 0 1 0.0.0.0:80 *:* users:((\"nginx\",pid=8,fd=1))\n";
        let by_number = "tcp LISTEN 0 1 0.0.0.0:80 *:* users:((\"renamed\",pid=7,fd=1))\n";
        let hidden = "tcp LISTEN 0 1 0.0.0.0:80 *:*\n";
        let other = "tcp LISTEN 0 1 127.0.0.1:80 *:* users:((\"apache2\",pid=9,fd=1))\n";
        let elsewhere = "tcp LISTEN 0 1 [::]:8080 *:* users:((\"nginx\",pid=8,fd=1))\n";
        for well in [own, by_number, hidden, &format!("{own}{other}")] {
            assert_eq!(of(true, well), None, "{well}");
        }
        assert_eq!(of(false, ""), None);
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let expected = Ports {
            not_listening: words(&["80/tcp HTTP"]),
            listening: words(&["tcp [::]:8080"]),
            ..Ports::default()
        };
        assert_eq!(of(true, elsewhere), Some(expected));
        let taken = Ports {
            held_by_others: words(&["80/tcp is held by PID 9 (apache2) on 127.0.0.1:80"]),
            ..Ports::default()
        };
        assert_eq!(of(true, other), Some(taken));
        assert!(of(false, other).is_some());
        assert_eq!(of(false, &format!("{own}{other}")), of(false, other));
    }

    #[test]
    fn what_systemd_holds_for_a_service_with_a_socket_is_its_own() {
        let ss = "tcp LISTEN 0 1 *:80 *:* users:((\"systemd\",pid=1,fd=1))\n";
        assert!(of(true, ss).is_some());
        let mut nginx = nginx();
        let unit = |name: &str| linux_sysadmin_sdk::knowledge::Unit {
            name: name.into(),
            aliases: Vec::new(),
            main: false,
            reload: false,
            optional: false,
            what: None,
        };
        nginx.units = vec![unit("nginx.socket")];
        assert_eq!(compare(&nginx, None, true, &listening::parse(ss), &FakeTarget::new().context()), None);
    }
}
