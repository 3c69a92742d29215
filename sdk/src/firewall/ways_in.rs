//! The ways by which people are on the machine, or can get there: logged-in sessions over the network, and the ports at which
//! programs wait for logins.

use std::net::IpAddr;

use super::evaluate::{Answer, Verdict};
use super::interfaces::{self, Interface};
use super::packet::{Packet, Protocol};
use super::ruleset::Ruleset;
use crate::{Command, CommandLine, Context, Module, Output, Privilege, Result, listening, text};

const ESTABLISHED: CommandLine = CommandLine::new("ss -Htnp state established");

/// The most ways that a sentence names.
const MOST_NAMED: usize = 6;

/// Asks for the commands that show sessions.
pub(super) fn granted(module: Module) -> Module {
    module
        .command(ESTABLISHED.read("which sessions a rule would cut").as_root_if_available())
        .command(listening::grant())
}

/// The commands that show sessions.
pub(super) fn looks() -> Vec<Command> {
    let established = ESTABLISHED.command().privilege(Privilege::RootIfAvailable);
    vec![established, listening::command(), interfaces::look()]
}

/// A way in.
struct Way {
    /// The client's address. `None` for a port that anybody may come to.
    peer: Option<IpAddr>,
    local: Option<IpAddr>,
    port: u16,
    program: String,
    /// Whether it is the server's own connection.
    is_own: bool,
}

/// All ways in.
pub(super) struct WaysIn {
    ways: Vec<Way>,
    interfaces: Vec<Interface>,
    /// False where sessions couldn't be looked at, so that there may be others.
    is_known: bool,
}

/// What a change would do to the ways in.
pub(super) struct Cut {
    /// The ways that it would close, or may close.
    pub closed: Vec<String>,
    /// Whether the ways in are all known.
    pub is_known: bool,
}

impl WaysIn {
    /// Reads the outputs of [`looks`].
    pub(super) fn read(outputs: Vec<Result<Output>>, cx: &Context) -> Self {
        let mut outputs = outputs.into_iter();
        let mut next = || outputs.next().and_then(Result::ok).filter(|output| output.exit_code == 0);
        let (established, listening, addresses) = (next(), next(), next());
        let is_read = established.is_some() && listening.is_some() && addresses.is_some();
        let sockets = listening.map_or_else(Vec::new, |output| listening::parse(&output.text()));
        let client = cx.distro().extra.into_iter().find(|(name, _)| name == "ssh_client");
        let client = client.and_then(|(_, address)| address.parse::<IpAddr>().ok());
        let ports: Vec<u16> =
            sockets.iter().filter(|socket| !socket.is_udp).map(|socket| socket.port).collect();
        let text = established.map_or_else(String::new, |output| output.text().into_owned());
        let sessions = text.lines().filter_map(|line| session(line, client));
        let mut ways: Vec<Way> = sessions.filter(|way| ports.contains(&way.port)).collect();
        // The connection by which the host is here may be another one than its address tells.
        let is_known = is_read && (client.is_none() || ways.iter().any(|way| way.is_own));
        for socket in sockets.iter().filter(|socket| !socket.is_udp) {
            let names = socket.names();
            let program = names.iter().find(|name| listening::LOGINS.contains(name));
            if let Some(program) = program.filter(|_| socket.reach() != listening::Reach::Local)
                && !ways.iter().any(|way| way.peer.is_none() && way.port == socket.port)
            {
                ways.push(Way {
                    peer: None,
                    local: None,
                    port: socket.port,
                    program: (*program).to_owned(),
                    is_own: false,
                });
            }
        }
        let interfaces = interfaces::read(addresses.map(Ok)).unwrap_or_default();
        Self { ways, interfaces, is_known }
    }

    /// The addresses of the machine.
    pub(super) fn own_addresses(&self) -> Vec<IpAddr> {
        self.interfaces.iter().flat_map(|interface| &interface.addresses).copied().collect()
    }

    /// The ways that are open with the first rule set, and not for certain with the second one.
    pub(super) fn cut(&self, before: &Ruleset, after: &Ruleset) -> Cut {
        let mut closed = Vec::new();
        for way in &self.ways {
            let is_closed = |is_v6: bool| {
                let packet = self.packet(way, is_v6);
                let (now, then) = (before.evaluate(&packet), after.evaluate(&packet));
                let is_shut =
                    |answer: &Answer| [Verdict::Dropped, Verdict::Rejected].contains(&answer.verdict);
                match way.peer {
                    Some(_) => !is_shut(&now) && then.verdict != Verdict::Accepted && now != then,
                    // A port may stay open for some.
                    None => !is_shut(&now) && is_shut(&then),
                }
            };
            let families = match way.peer {
                Some(peer) => vec![peer.is_ipv6()],
                None => vec![false, true],
            };
            if families.into_iter().any(is_closed) {
                closed.push(way.in_words());
            }
        }
        closed.dedup();
        Cut { closed, is_known: self.is_known }
    }

    fn packet(&self, way: &Way, is_v6: bool) -> Packet {
        let at = way
            .local
            .and_then(|local| self.interfaces.iter().find(|interface| interface.addresses.contains(&local)));
        Packet {
            source: way.peer,
            destination: way.local,
            interface: at.map(|interface| interface.name.clone()),
            is_on_route: at.map(|_| true),
            own: self.own_addresses(),
            ..Packet::to_port(Protocol::Tcp, way.port, is_v6)
        }
    }
}

impl Cut {
    /// The ways in one sentence. `None` where none is closed.
    pub(super) fn in_words(&self) -> Option<String> {
        match (self.closed.is_empty(), self.is_known) {
            (false, _) => Some(format!("this cuts off {}", text::list(&self.closed, MOST_NAMED))),
            (true, false) => {
                Some("which sessions this cuts off isn't known: they couldn't be looked at".to_owned())
            }
            (true, true) => None,
        }
    }
}

impl Way {
    fn in_words(&self) -> String {
        let Self { port, program, .. } = self;
        match self.peer {
            Some(peer) if self.is_own => format!("this server's own session from {peer} at port {port}"),
            Some(peer) => format!("the session of {program} from {peer} at port {port}"),
            None => format!("logins at port {port} ({program})"),
        }
    }
}

/// A line is `0 0 192.0.2.1:22 192.0.2.7:51234 users:(("sshd",pid=812,fd=4))`.
fn session(line: &str, client: Option<IpAddr>) -> Option<Way> {
    let mut words = line.split_whitespace().skip(2);
    let (local, port) = listening::endpoint(words.next()?)?;
    let (peer, _) = listening::endpoint(words.next()?)?;
    let [local, peer] = [local?, peer?].map(|address| address.to_canonical());
    let names = listening::processes(line);
    let program = names.iter().map(|(name, _)| name).find(|name| listening::LOGINS.contains(&name.as_str()));
    let is_own = client == Some(peer);
    let program = match program {
        Some(program) => program.clone(),
        None if is_own => "SSH".to_owned(),
        None => return None,
    };
    // What comes from the machine itself arrives at the loopback.
    let is_local = peer.is_loopback() || local == peer;
    (!is_local).then_some(Way { peer: Some(peer), local: Some(local), port, program, is_own })
}
