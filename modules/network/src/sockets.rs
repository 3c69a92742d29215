//! The sockets of TCP and UDP, as `ss` prints them.

use std::net::IpAddr;

use linux_sysadmin_sdk::{Output, OutputStream, Privilege, listening, prelude::*, text};

/// Prints all sockets of TCP and UDP, one a line.
pub(crate) const SOCKETS: CommandLine = CommandLine::new("ss -Htunap");

/// The most bytes that one reading of a long output returns.
const PIECE: u32 = 256 << 10;

/// The states as ss abbreviates them, and their names.
const STATES: [(&str, &str); 11] = [
    ("LISTEN", "listening"),
    ("UNCONN", "listening"),
    ("ESTAB", "established"),
    ("SYN-SENT", "syn-sent"),
    ("SYN-RECV", "syn-recv"),
    ("FIN-WAIT-1", "fin-wait-1"),
    ("FIN-WAIT-2", "fin-wait-2"),
    ("TIME-WAIT", "time-wait"),
    ("CLOSE-WAIT", "close-wait"),
    ("LAST-ACK", "last-ack"),
    ("CLOSING", "closing"),
];

/// A socket, with its other end where it is connected.
#[derive(Debug, PartialEq)]
pub(crate) struct Socket {
    pub(crate) local: listening::Socket,
    pub(crate) state: &'static str,
    pub(crate) remote: Option<(IpAddr, u16)>,
}

impl Socket {
    pub(crate) fn is_listening(&self) -> bool {
        self.state == "listening"
    }

    /// The numbers of its processes. Those that serve one port together share its socket.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let mut pids: Vec<u32> =
            self.local.processes.iter().filter_map(|(_, pid)| u32::try_from(*pid).ok()).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }
}

/// The states that a caller may ask for.
pub(crate) fn state_names() -> Vec<&'static str> {
    let mut names: Vec<_> = STATES.iter().map(|(_, name)| *name).collect();
    names.dedup();
    names
}

/// The name of a state in any spelling that ss and /proc/net have, such as `LISTEN` and `time_wait`.
pub(crate) fn state(asked: &str) -> Result<&'static str> {
    let text = asked.trim().to_lowercase().replace('_', "-");
    let is_meant = |(short, name): &&(&str, &str)| {
        *name == text || short.to_lowercase() == text || name.starts_with(&text) && text.len() > 3
    };
    STATES.iter().find(is_meant).map(|(_, name)| *name).ok_or_else(|| {
        let asked = linux_sysadmin_sdk::text::excerpt(asked, 40);
        let message = format!("state is {asked:?}: expected one of {}", state_names().join(", "));
        Problem::validation("INVALID_STATE", message)
    })
}

/// Reads all sockets of the machine, however many they are.
pub(crate) fn all(cx: &Context) -> Result<Vec<Socket>> {
    let command = || SOCKETS.command().privilege(Privilege::RootIfAvailable);
    let output = cx.run(command())?;
    if output.truncated {
        return streamed(cx.open(command())?);
    }
    parse(output.success("ss")?)
}

fn parse(output: Output) -> Result<Vec<Socket>> {
    let text = output.text();
    let sockets: Vec<_> = text.lines().filter_map(socket).collect();
    if sockets.is_empty() && !text.trim().is_empty() {
        return Err(Problem::unexpected("the output of ss", &text));
    }
    Ok(sockets)
}

fn streamed(mut stream: OutputStream) -> Result<Vec<Socket>> {
    let mut sockets = Vec::new();
    let mut rest = Vec::new();
    loop {
        let piece = stream.read(PIECE)?;
        let is_end = piece.is_empty();
        rest.extend(piece);
        let whole = match rest.iter().rposition(|byte| *byte == b'\n') {
            _ if is_end => rest.len(),
            Some(end) => end + 1,
            None => 0,
        };
        let lines: Vec<u8> = rest.drain(..whole).collect();
        sockets.extend(text::lossy(&lines).lines().filter_map(socket));
        if is_end {
            return Ok(sockets);
        }
    }
}

fn socket(line: &str) -> Option<Socket> {
    let mut words = line.split_whitespace();
    let is_udp = match words.next()? {
        "udp" => true,
        "tcp" => false,
        _ => return None,
    };
    let short = words.next()?;
    let state = STATES.iter().find(|(own, _)| *own == short).map(|(_, name)| *name)?;
    let (address, port) = listening::endpoint(words.nth(2)?)?;
    let remote = words.next().and_then(listening::endpoint);
    let remote = remote.and_then(|(address, port)| Some((address?.to_canonical(), port)));
    // A socket for both families shows an IPv4 address as a mapped one.
    let address = address.map(|address| address.to_canonical());
    let local = listening::Socket { is_udp, address, port, processes: listening::processes(line) };
    Some(Socket { local, state, remote })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn a_state_has_its_usual_spellings() {
        for (asked, name) in [
            ("listening", "listening"),
            ("LISTEN", "listening"),
            ("ESTABLISHED", "established"),
            ("estab", "established"),
            ("TIME_WAIT", "time-wait"),
            ("close-wait", "close-wait"),
            ("fin-wait-2", "fin-wait-2"),
        ] {
            assert_eq!(state(asked).unwrap(), name);
        }
        for asked in ["", "open", "-K", "all", "fi", "listening\nx"] {
            assert_eq!(state(asked).unwrap_err().code, "INVALID_STATE", "{asked}");
        }
    }

    #[test]
    fn more_sockets_than_one_output_keeps_are_read_to_the_last() {
        let line = |port: usize| {
            format!("tcp ESTAB 0 0 192.0.2.10:443 198.51.100.7:{port} users:((\"nginx\",pid=9,fd=3))\n")
        };
        let text: String = (1..=20_000).map(line).collect();
        assert!(text.len() > 1 << 20);
        let cx = FakeTarget::new().answer(&["ss", "-Htunap"], 0, text, "").context();
        let sockets = all(&cx).unwrap();
        assert_eq!(sockets.len(), 20_000);
        assert_eq!(sockets.last().unwrap().remote.unwrap().1, 20_000);
    }
}
