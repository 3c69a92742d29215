//! What is told of a host and of the connection to it.

use std::time::Duration;

use host_openssh::Peer;

/// What is known of a host before anything is asked of it.
#[derive(Debug)]
pub struct KnownAs {
    /// As in `192.0.2.7:22`, or with a name.
    pub address: String,
    /// The account there.
    pub user: String,
    /// Fingerprints of its keys in known_hosts, as `SHA256:…`.
    pub host_keys: Vec<String>,
}

/// What is there of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Who is at the other end.
    pub peer: Peer,
    /// Of one answer.
    pub round_trip: Duration,
    /// Since it was made.
    pub up: Duration,
    /// Commands that run on it.
    pub channels: usize,
    /// How often one was had back before.
    pub restored: u64,
    /// How long it took to be made.
    pub made_in: Duration,
}
