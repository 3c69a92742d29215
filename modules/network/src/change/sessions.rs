//! The sessions of people on this machine, and the ways that their packets take. A change that touches one of them may cut it.

use std::net::IpAddr;

use linux_sysadmin_sdk::{listening, prelude::*, text};

use super::cidr::Cidr;
use super::setting::Route;
use crate::ip;
use crate::links::Link;
use crate::sockets;
use crate::tools::routes_show::{GET, MATCH, Raw};

/// So many ways are looked at. A session beyond that is touched by whatever concerns the address of its other end.
const MOST: usize = 16;

/// The machine at the other end of sessions, and the way to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Session {
    pub(crate) peer: IpAddr,
    /// This machine's address, to which they are.
    pub(crate) local: IpAddr,
    /// The interface through which packets leave.
    dev: Option<String>,
    via: Option<IpAddr>,
    /// The destination of the route that decides.
    by_route: Option<Cidr>,
}

/// The sessions on this machine.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    pub(crate) found: Vec<Session>,
    /// False where the connections can't be listed, or the host's own isn't among them.
    pub(crate) is_complete: bool,
    /// True if the host is here by a connection.
    pub(crate) has_client: bool,
}

/// Finds the sessions.
pub(crate) fn find(cx: &Context) -> Sessions {
    let client = cx.distro().extra.into_iter().find(|(name, _)| name == "ssh_client");
    let client = client.and_then(|(_, address)| address.parse::<IpAddr>().ok());
    let has_client = client.is_some();
    let Ok(sockets) = sockets::all(cx) else { return Sessions { has_client, ..Sessions::default() } };
    let is_listening = |port: u16| {
        sockets
            .iter()
            .any(|socket| socket.is_listening() && !socket.local.is_udp && socket.local.port == port)
    };
    let mut ends: Vec<(IpAddr, IpAddr)> = Vec::new();
    for socket in sockets.iter().filter(|socket| socket.state == "established" && !socket.local.is_udp) {
        let (Some(local), Some((peer, _))) = (socket.local.address, socket.remote) else { continue };
        // A process that isn't told may be the session's, and so may any that serves the host's own connection.
        let names = socket.local.names();
        let is_login = |name: &&str| name.starts_with("sshd") || listening::LOGINS.contains(name);
        let is_session = names.is_empty() || client == Some(peer) || names.iter().any(is_login);
        let is_new = !peer.is_loopback() && !ends.contains(&(peer, local));
        if is_session && is_new && is_listening(socket.local.port) {
            ends.push((peer, local));
        }
    }
    let own = client.filter(|own| !own.is_loopback());
    let is_complete = own.is_none_or(|own| ends.iter().any(|(peer, _)| *peer == own));
    // The host's own connection comes first, so that its way is always looked at.
    ends.sort_unstable_by_key(|(peer, local)| (client != Some(*peer), *peer, *local));
    let looked_at = &ends[..ends.len().min(MOST)];
    let ways = looked_at.iter().map(|(peer, _)| GET.with([peer.to_string()]));
    let routes = looked_at.iter().map(|(peer, _)| MATCH.with([peer.to_string()]));
    let outputs = cx.run_all(ways.chain(routes).collect());
    let mut raws = outputs.into_iter().map(|output| ip::objects::<Raw>(output.ok()?).ok()?.list.pop());
    let ways: Vec<_> = raws.by_ref().take(looked_at.len()).collect();
    let ways = ways.into_iter().zip(raws).chain(std::iter::repeat_with(|| (None, None)));
    let found = ends.into_iter().zip(ways).map(|((peer, local), (way, route))| {
        let way = way.unwrap_or_default();
        let by_route = route.and_then(|route| match route.dst.as_str() {
            "default" => Some(Cidr::everything(peer.is_ipv6())),
            dst => Cidr::read(dst),
        });
        let via = way.next_hop().and_then(|via| via.parse().ok());
        Session { peer, local, dev: way.dev, via, by_route }
    });
    Sessions { found: found.collect(), is_complete, has_client }
}

impl Session {
    /// True if a route that is removed decides about its packets.
    pub(crate) fn loses(&self, route: &Route) -> bool {
        match (route.table, self.by_route) {
            (None, Some(decides)) => {
                decides == route.to && self.dev.as_ref().is_none_or(|dev| *dev == route.dev)
            }
            // Rules may send its packets to another table.
            _ => route.to.contains(self.peer),
        }
    }

    /// True if a network that is added takes its packets, or those to its gateway, away from the route that has them now.
    pub(crate) fn is_taken_by(&self, to: Cidr, links: &[Link]) -> bool {
        let decides = self.by_route.map_or(0, |route| route.length);
        let is_taken = to.contains(self.peer) && to.length >= decides;
        let takes_gateway = self.via.is_some_and(|via| {
            let own = links.iter().flat_map(Link::networks).filter(|network| network.contains(via));
            to.contains(via) && to.length >= own.map(|network| network.length).max().unwrap_or(0)
        });
        is_taken || takes_gateway
    }

    /// True if it is to this address. Where no other address is in the same network, also if its packets go through
    /// that network.
    pub(crate) fn needs(&self, address: Cidr, has_others: bool) -> bool {
        let network = address.network();
        let is_through = self.by_route == Some(network) || self.via.is_some_and(|via| network.contains(via));
        self.local == address.address || is_through && !has_others
    }
}

/// The sentence about the sessions that a change touches, for the person who decides.
pub(crate) fn warning(touched: &[&Session]) -> Option<String> {
    let mut peers: Vec<String> = touched.iter().map(|session| session.peer.to_string()).collect();
    peers.dedup();
    let to = &touched.first()?.local;
    Some(format!(
        "it touches the way of the session from {} to {to}, which may be the one in use",
        text::list(&peers, 5)
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    const NAMESPACE: &str = include_str!("../../tests/data/namespace.txt");

    fn found(sockets: &str) -> Sessions {
        find(&FakeTarget::new().transcript(NAMESPACE).answer(&["ss", "-Htunap"], 0, sockets, "").context())
    }

    /// Connections and sockets here are written by hand, in the format of ss.
    const LISTENING: &str = "tcp LISTEN 0 128 *:22 *:* users:((\"sshd\",pid=400,fd=3))\n\
        tcp LISTEN 0 128 *:80 *:* users:((\"nginx\",pid=600,fd=3))\n";

    #[test]
    fn a_session_is_from_outside_and_to_a_port_that_sshd_has() {
        for (line, is_session) in [
            ("tcp ESTAB 0 0 192.0.2.10:22 198.51.100.20:50000 users:((\"sshd\",pid=502,fd=4))", true),
            (
                "tcp ESTAB 0 0 [::ffff:192.0.2.10]:22 [::ffff:198.51.100.20]:50000 users:((\"sshd-session\",pid=502,fd=4))",
                true,
            ),
            // Whose it is can't be told.
            ("tcp ESTAB 0 0 192.0.2.10:22 198.51.100.20:50000", true),
            ("tcp ESTAB 0 0 192.0.2.10:22 198.51.100.20:50000 users:((\"dropbear\",pid=502,fd=4))", true),
            ("tcp ESTAB 0 0 192.0.2.10:80 198.51.100.20:50000 users:((\"nginx\",pid=601,fd=4))", false),
            ("tcp ESTAB 0 0 192.0.2.10:50000 198.51.100.20:22 users:((\"ssh\",pid=700,fd=4))", false),
            ("tcp ESTAB 0 0 127.0.0.1:22 127.0.0.1:50000 users:((\"sshd\",pid=502,fd=4))", false),
            ("tcp TIME-WAIT 0 0 192.0.2.10:22 198.51.100.20:50000", false),
        ] {
            let sessions = found(&format!("{LISTENING}{line}\n{line}\n"));
            assert_eq!(sessions.found.len(), usize::from(is_session), "{line}");
        }
        for (text, is_complete) in [("", true), ("garbage\n", false)] {
            let sessions = found(text);
            assert_eq!((sessions.found, sessions.is_complete), (Vec::new(), is_complete), "{text}");
        }
    }

    #[test]
    fn the_hosts_own_connection_is_a_session_whoever_serves_it_and_however_many_there_are() {
        let line = |peer: &str, name: &str| {
            format!("tcp ESTAB 0 0 192.0.2.10:80 {peer}:50000 users:((\"{name}\",pid=601,fd=4))\n")
        };
        let mut sockets = LISTENING.to_owned() + &line("198.51.100.20", "nginx");
        for number in 1..=40 {
            sockets += &line(&format!("192.0.2.{}", 100 + number), "xrdp");
        }
        let mut target = FakeTarget::new().transcript(NAMESPACE).answer(&["ss", "-Htunap"], 0, sockets, "");
        target.distro.extra.push(("ssh_client".to_owned(), "198.51.100.20".to_owned()));
        let sessions = find(&target.context()).found;
        assert_eq!(sessions.len(), 41);
        assert_eq!(
            (sessions[0].peer.to_string(), sessions[0].dev.as_deref()),
            ("198.51.100.20".to_owned(), Some("eth0"))
        );
        // What decides about one whose way isn't looked at isn't known.
        let last = &sessions[40];
        assert!(last.is_taken_by(Cidr::everything(false), &[]) && last.by_route.is_none(), "{last:?}");
    }

    #[test]
    fn there_may_be_other_sessions_where_the_hosts_own_is_not_among_them() {
        let line = "tcp ESTAB 0 0 192.0.2.10:22 198.51.100.20:50000 users:((\"sshd\",pid=502,fd=4))\n";
        for (client, is_complete) in [("198.51.100.20", true), ("198.51.100.21", false), ("127.0.0.1", true)]
        {
            let sockets = format!("{LISTENING}{line}");
            let mut target =
                FakeTarget::new().transcript(NAMESPACE).answer(&["ss", "-Htunap"], 0, sockets, "");
            target.distro.extra.push(("ssh_client".to_owned(), client.to_owned()));
            let sessions = find(&target.context());
            assert_eq!((sessions.found.len(), sessions.is_complete), (1, is_complete), "{client}");
        }
    }

    #[test]
    fn a_network_takes_a_session_where_it_is_narrower_than_what_it_has() {
        let line = "tcp ESTAB 0 0 192.0.2.10:22 198.51.100.20:50000 users:((\"sshd\",pid=502,fd=4))\n";
        let session = found(&format!("{LISTENING}{line}")).found.remove(0);
        assert_eq!((session.dev.as_deref(), session.by_route), (Some("eth0"), Some(Cidr::everything(false))));
        let links: Vec<Link> = serde_json::from_str(
            r#"[{"ifname":"eth0","addr_info":[{"local":"192.0.2.10","prefixlen":24}]}]"#,
        )
        .unwrap();
        for (network, is_taken) in [
            ("198.51.100.0/24", true),
            ("0.0.0.0/0", true),
            ("203.0.113.0/24", false),
            // The gateway itself, and a network around it that its own interface's is narrower than.
            ("192.0.2.1/32", true),
            ("192.0.0.0/16", false),
            ("::/0", false),
        ] {
            assert_eq!(session.is_taken_by(Cidr::read(network).unwrap(), &links), is_taken, "{network}");
        }
        for (address, is_needed) in [
            ("192.0.2.10/24", true),
            ("192.0.2.11/24", true),
            ("10.8.0.1/16", false),
            ("2001:db8::1/64", false),
        ] {
            assert_eq!(session.needs(Cidr::read(address).unwrap(), false), is_needed, "{address}");
        }
        assert!(!session.needs(Cidr::read("192.0.2.11/24").unwrap(), true));
        assert!(session.needs(Cidr::read("192.0.2.10/24").unwrap(), true));
    }
}
