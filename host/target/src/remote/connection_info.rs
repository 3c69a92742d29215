//! Information about a host and about the connection to it.

use std::time::Duration;

use host_openssh::Peer;

/// The facts about a host that are known before it is asked anything.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownHost {
    /// The address and port, such as `192.0.2.7:22`, or a name and port.
    pub address: String,
    /// The account that is used there.
    pub user: String,
    /// Fingerprints of the host's keys in known_hosts, as `SHA256:…`.
    pub host_keys: Vec<String>,
    /// Fingerprints of the authorities in known_hosts that may sign the host's key.
    pub authorities: Vec<String>,
    /// Whether the configuration accepts any key on the first contact.
    pub accepts_new: bool,
}

impl KnownHost {
    /// Whether a connection can succeed, as far as the host's key decides.
    pub fn may_be_reached(&self) -> bool {
        !self.host_keys.is_empty() || !self.authorities.is_empty() || self.accepts_new
    }
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
