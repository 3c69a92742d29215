//! Information about a host and about the connection to it.

use std::time::Duration;

use host_openssh::Peer;

/// The facts about a host that are known before it is asked anything.
#[derive(Debug)]
pub struct KnownHost {
    /// The address and port, such as `192.0.2.7:22`, or a name and port.
    pub address: String,
    /// The account that is used there.
    pub user: String,
    /// Fingerprints of the host's keys in known_hosts, as `SHA256:…`.
    pub host_keys: Vec<String>,
}

/// The state of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// The other end of the connection.
    pub peer: Peer,
    /// The time that one answer took.
    pub round_trip: Duration,
    /// The time since the connection was made.
    pub up: Duration,
    /// The number of commands that run on the connection.
    pub channels: usize,
    /// The number of times that a connection was restored before.
    pub restored: u64,
    /// The time that making the connection took.
    pub made_in: Duration,
}
