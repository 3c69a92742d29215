//! The ports that profiles declare, beside the sockets that are there.

use super::{Port, Profile, Protocol, Scope};
use crate::listening::{Reach, Socket};

/// Whether a socket belongs to the service. A socket without known processes counts as its own.
pub fn is_own(profile: &Profile, pid: Option<u64>, socket: &Socket) -> bool {
    let named = |(name, number): &(String, u64)| {
        profile.processes.iter().any(|known| known == name) || pid == Some(*number)
    };
    let has_socket_unit = profile.units.iter().any(|unit| unit.name.ends_with(".socket"));
    socket.processes.is_empty()
        || profile.processes.is_empty()
        || socket.processes.iter().any(named)
        || has_socket_unit && is_systemds(socket)
}

/// Whether systemd holds the socket, until it hands it to a service.
pub fn is_systemds(socket: &Socket) -> bool {
    socket.processes.iter().all(|(_, pid)| *pid == 1)
}

/// A port's number and protocol, as `53/udp`.
pub fn number(port: &Port) -> String {
    let protocol = if port.protocol == Protocol::Udp { "udp" } else { "tcp" };
    match port.first == port.last {
        true => format!("{}/{protocol}", port.first),
        false => format!("{}-{}/{protocol}", port.first, port.last),
    }
}

/// Whether the port can be reached from outside of its scope.
pub fn is_beyond(scope: Scope, reach: Reach) -> bool {
    match scope {
        Scope::Public => false,
        Scope::Lan => reach == Reach::Public,
        Scope::Local => reach != Reach::Local,
    }
}
