//! The first packet of a connection, as the packet filter sees it: what is known of it, and what is left open.

use std::net::IpAddr;

/// The protocol above IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP: the packet is a SYN.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP or ICMPv6: the packet is an echo request.
    Icmp,
}

/// The first packet of a new connection that arrives at the machine. What is `None` may be anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Whether it is IPv6.
    pub is_v6: bool,
    /// The protocol.
    pub protocol: Protocol,
    /// The source. Where it is open, it is any address of one machine.
    pub source: Option<IpAddr>,
    /// The destination. Where it is open, it is any address of this machine.
    pub destination: Option<IpAddr>,
    /// The source's port. Where it is open, it is one that a client gets, from 1024 on.
    pub source_port: Option<u16>,
    /// The port.
    pub port: u16,
    /// The interface at which it arrives. Where it is open, it isn't the loopback.
    pub interface: Option<String>,
    /// Whether the route to the source leaves by the interface at which the packet arrived, as rpfilter asks.
    pub is_on_route: Option<bool>,
    /// All addresses of this machine, which say whether a changed destination is still this machine.
    pub own: Vec<IpAddr>,
}

impl Packet {
    /// A packet to a port of this machine, of which nothing else is known.
    pub fn to_port(protocol: Protocol, port: u16, is_v6: bool) -> Self {
        Self {
            is_v6,
            protocol,
            source: None,
            destination: None,
            source_port: None,
            port,
            interface: None,
            is_on_route: None,
            own: Vec::new(),
        }
    }

    /// The protocol's number.
    pub(super) fn protocol_number(&self) -> u128 {
        match (self.protocol, self.is_v6) {
            (Protocol::Tcp, _) => 6,
            (Protocol::Udp, _) => 17,
            (Protocol::Icmp, false) => 1,
            (Protocol::Icmp, true) => 58,
        }
    }

    /// Whether the packet stays on this machine after its destination became this one.
    pub(super) fn is_own(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.destination == Some(address) || self.own.contains(&address)
    }
}
