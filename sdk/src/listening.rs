//! Listening sockets, as `ss -Hltunp` prints them. Without root's rights, ss leaves out the processes of other accounts.

use std::net::IpAddr;

use crate::{Command, CommandGrant, CommandLine, Privilege, knowledge};

const LISTENING: CommandLine = CommandLine::new("ss -Hltunp");

const UNIX: CommandLine = CommandLine::new("ss -H -x -l -p");

/// Programs by which people log in over the network.
pub const LOGINS: [&str; 9] = [
    "sshd",
    "sshd-session",
    "sshd-auth",
    "dropbear",
    "telnetd",
    "in.telnetd",
    "xrdp",
    "cockpit-ws",
    "cockpit-tls",
];

/// The grant for [`unix_command`], which runs as root where possible.
pub fn unix_grant() -> CommandGrant {
    UNIX.read("which programs listen on a socket that is a file").as_root_if_available()
}

/// The command that prints the sockets of files (AF_UNIX) on which programs listen.
pub fn unix_command() -> Command {
    UNIX.command().privilege(Privilege::RootIfAvailable)
}

/// The processes that listen on the socket of this path, in the output of [`unix_command`].
pub fn unix_listeners(text: &str, path: &str) -> Vec<u64> {
    // A line is `u_str LISTEN 0 4096 /run/x.sock 4711 * 0 users:(("x",pid=1,fd=3))`, and a path may hold blanks.
    let is_on_it = |line: &str| {
        let rest = line.split_once(" /").map(|(_, rest)| rest);
        let behind = rest.and_then(|rest| rest.strip_prefix(path.strip_prefix('/')?));
        behind.and_then(|behind| behind.strip_prefix(' ')).is_some_and(|behind| {
            let inode = behind.split(' ').next().unwrap_or_default();
            !inode.is_empty() && inode.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let mut pids: Vec<u64> =
        text.lines().filter(|line| is_on_it(line)).flat_map(processes).map(|(_, pid)| pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// The grant for [`command`], which runs as root where possible.
pub fn grant() -> CommandGrant {
    LISTENING.read("which ports are listened on, and by which programs").as_root_if_available()
}

/// The command that prints the listening sockets.
pub fn command() -> Command {
    LISTENING.command().privilege(Privilege::RootIfAvailable)
}

/// A listening socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Whether it is a UDP socket, and not one of TCP.
    pub is_udp: bool,
    /// None where it listens on every address.
    pub address: Option<IpAddr>,
    /// The number of the port.
    pub port: u16,
    /// The names and numbers of its processes. Empty where they are hidden, and for a socket of the kernel.
    pub processes: Vec<(String, u64)>,
}

/// The range from which a socket can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The machine itself reaches it.
    Local,
    /// The machines of the own network reach it.
    Lan,
    /// Through every address that the machine has.
    Any,
    /// Through an address of the internet.
    Public,
}

impl Socket {
    /// `tcp` or `udp`.
    pub fn protocol(&self) -> &'static str {
        if self.is_udp { "udp" } else { "tcp" }
    }

    /// Address and port, as `0.0.0.0:80`. `*` stands for every address.
    pub fn shown(&self) -> String {
        match self.address {
            None => format!("*:{}", self.port),
            Some(IpAddr::V6(address)) => format!("[{address}]:{}", self.port),
            Some(IpAddr::V4(address)) => format!("{address}:{}", self.port),
        }
    }

    /// The names of its processes, without duplicates.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.processes.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether it has the number and protocol of a declared port.
    pub fn is_on(&self, port: &knowledge::Port) -> bool {
        self.is_udp == (port.protocol == knowledge::Protocol::Udp)
            && (port.first..=port.last).contains(&self.port)
    }

    /// The range from which it can be reached. Firewalls are not taken into account.
    pub fn reach(&self) -> Reach {
        let Some(address) = self.address else { return Reach::Any };
        match address.to_canonical() {
            address if address.is_unspecified() => Reach::Any,
            address if address.is_loopback() => Reach::Local,
            IpAddr::V4(address) => {
                let [first, second, ..] = address.octets();
                let is_shared = first == 100 && (64..128).contains(&second);
                let is_own = address.is_private() || address.is_link_local() || address.is_multicast();
                if is_own || is_shared || address.is_broadcast() { Reach::Lan } else { Reach::Public }
            }
            IpAddr::V6(address) => {
                let is_own = address.is_unique_local() || address.is_unicast_link_local();
                if is_own || address.is_multicast() { Reach::Lan } else { Reach::Public }
            }
        }
    }
}

/// The sockets in the output of [`command`]. Other lines are skipped.
pub fn parse(text: &str) -> Vec<Socket> {
    text.lines().filter_map(socket).collect()
}

fn socket(line: &str) -> Option<Socket> {
    let mut words = line.split_whitespace();
    let is_udp = match words.next()? {
        "udp" => true,
        "tcp" => false,
        _ => return None,
    };
    let (address, port) = endpoint(words.nth(3)?)?;
    Some(Socket { is_udp, address, port, processes: processes(line) })
}

/// Reads an address and a port as ss prints them, such as `*:80` and `[fe80::1]%eth0:546`. No address stands for every one.
/// `None` for what has no port, as the other end of a listening socket.
pub fn endpoint(text: &str) -> Option<(Option<IpAddr>, u16)> {
    let (address, port) = text.rsplit_once(':')?;
    let address = address.trim_start_matches('[');
    // The interface may precede or follow the bracket.
    let address = address.split(['%', ']']).next().unwrap_or(address);
    let address = if address == "*" { None } else { Some(address.parse().ok()?) };
    Some((address, port.parse().ok()?))
}

/// The names and numbers of the processes in a line of ss, `users:(("nginx",pid=812,fd=6),("a (b",pid=1,fd=3))`. A name may
/// hold any characters.
pub fn processes(line: &str) -> Vec<(String, u64)> {
    let Some((_, users)) = line.split_once("users:(") else { return Vec::new() };
    let mut found: Vec<(String, u64)> = Vec::new();
    for part in users.split("(\"").skip(1) {
        let Some((name, rest)) = part.split_once("\",pid=") else { continue };
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        if let Ok(pid) = digits.parse() {
            found.push((name.to_owned(), pid));
        }
    }
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_is_a_file_has_those_who_listen_on_it() {
        // Recorded as root from ss of iproute2 6.1.0, and one with a blank in its name.
        let text = "\
u_str LISTEN 0      4096                         /run/systemd/private 4984008 * 0 users:((\"systemd\",pid=17,fd=17))
u_dgr UNCONN 0      0                     /run/systemd/journal/syslog 4984015 * 0 users:((\"rsyslogd\",pid=33,fd=3),(\"systemd\",pid=1,fd=26))
u_str LISTEN 0      5                     /run/a 1 4984016 * 0 users:((\"x\",pid=40,fd=3))
u_str LISTEN 0      5                     /run/hidden 4984017 * 0
";
        for (path, pids) in [
            ("/run/systemd/private", &[17][..]),
            ("/run/systemd/journal/syslog", &[1, 33]),
            ("/run/a 1", &[40]),
            ("/run/systemd", &[]),
            ("/run/hidden", &[]),
            ("", &[]),
        ] {
            assert_eq!(unix_listeners(text, path), pids, "{path}");
        }
    }

    /// Recorded as root from ss of iproute2 6.1.0, on Debian 12.
    const RECORDED: &str = "\
udp   UNCONN 0      0      127.0.0.53%lo:53         0.0.0.0:*    users:((\"systemd-resolve\",pid=330,fd=13))
udp   UNCONN 0      0      [fe80::1]%eth0:546            [::]:*    users:((\"systemd-network\",pid=201,fd=22))
tcp   LISTEN 0      511          0.0.0.0:80         0.0.0.0:*    users:((\"nginx\",pid=813,fd=5),(\"nginx\",pid=812,fd=5))
tcp   LISTEN 0      4096               *:9100             *:*    users:((\"prometheus-node\",pid=77,fd=3))
tcp   LISTEN 0      128             [::]:22            [::]:*    users:((\"sshd\",pid=12,fd=4),(\"systemd\",pid=1,fd=90))
tcp   LISTEN 0      64           0.0.0.0:2049       0.0.0.0:*
";

    #[test]
    fn sockets_are_read_with_the_names_of_their_processes() {
        let sockets = parse(RECORDED);
        let shown: Vec<_> = sockets
            .iter()
            .map(|one| (one.protocol(), one.shown(), one.names().join(","), one.reach()))
            .collect();
        let of = |protocol, at: &str, names: &str, reach| (protocol, at.to_owned(), names.to_owned(), reach);
        let expected = [
            of("udp", "127.0.0.53:53", "systemd-resolve", Reach::Local),
            of("udp", "[fe80::1]:546", "systemd-network", Reach::Lan),
            of("tcp", "0.0.0.0:80", "nginx", Reach::Any),
            of("tcp", "*:9100", "prometheus-node", Reach::Any),
            of("tcp", "[::]:22", "sshd,systemd", Reach::Any),
            of("tcp", "0.0.0.0:2049", "", Reach::Any),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_no_socket_is_passed_over() {
        for line in [
            "",
            "tcp",
            "tcp LISTEN 0 1",
            "tcp LISTEN 0 1 nowhere *:*",
            "tcp LISTEN 0 1 1.2.3.4:99999 *:*",
            "tcp LISTEN 0 1 1.2.3:80 *:*",
            "nl UNCONN 0 0 1.2.3.4:80 *:*",
            "Netid State Recv-Q Send-Q Local Address:Port",
            "ss: Verbindung abgelehnt",
        ] {
            assert_eq!(parse(line), [], "{line}");
        }
    }

    #[test]
    fn a_name_may_hold_what_names_are_made_of() {
        let line = "tcp LISTEN 0 1 127.0.0.1:80 0.0.0.0:* users:((\"a \"(b),c\",pid=7,fd=1),(\"d\",pid=x,fd=2),(\"e\",pid=9,fd=3))";
        let expected = [("a \"(b),c".to_owned(), 7), ("e".to_owned(), 9)];
        assert_eq!(parse(line)[0].processes, expected);
    }

    #[test]
    fn addresses_reach_as_far_as_they_are_routed() {
        for (address, reach) in [
            ("127.0.0.1", Reach::Local),
            ("[::1]", Reach::Local),
            ("[::ffff:127.0.0.1]", Reach::Local),
            ("10.1.2.3", Reach::Lan),
            ("192.168.1.1", Reach::Lan),
            ("169.254.1.1", Reach::Lan),
            ("100.64.1.1", Reach::Lan),
            ("[fd00::1]", Reach::Lan),
            ("198.51.100.7", Reach::Public),
            ("[2001:db8::1]", Reach::Public),
            ("[::]", Reach::Any),
            ("0.0.0.0", Reach::Any),
            ("*", Reach::Any),
        ] {
            let line = format!("tcp LISTEN 0 1 {address}:80 *:*");
            assert_eq!(parse(&line)[0].reach(), reach, "{address}");
        }
    }
}
