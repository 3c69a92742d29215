//! `/proc/PID/net/{tcp,udp}{,6}`: the sockets of the network namespace of a process, also one of a container. See proc_pid_net(5).

use std::collections::BTreeSet;
use std::net::IpAddr;

use linux_sysadmin_sdk::listening::Socket;

/// The files, below `/proc/PID/net`.
pub(crate) const TABLES: [&str; 4] = ["tcp", "tcp6", "udp", "udp6"];

/// The state of a UDP socket without a peer (TCP_CLOSE).
const UNCONNECTED: &str = "07";
const LISTENING: &str = "0A";

/// The sockets of a process.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Sockets {
    /// Those on which it waits for others, such as `tcp 0.0.0.0:22`.
    pub(crate) listening: BTreeSet<String>,
    /// The number of its connections over TCP and UDP.
    pub(crate) connections: usize,
}

/// Finds the sockets with these inodes. `texts` are the tables in the order of [`TABLES`], and their numbers have the byte
/// order of the machine.
pub(crate) fn of(inodes: &BTreeSet<u64>, texts: &[String], big_endian: bool) -> Sockets {
    let mut sockets = Sockets::default();
    for (table, text) in TABLES.iter().zip(texts) {
        let is_udp = table.starts_with("udp");
        for line in text.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, local, _, state, _, _, _, _, _, inode, ..] = fields[..] else { continue };
            if !inode.parse().is_ok_and(|inode| inodes.contains(&inode)) {
                continue;
            }
            match state {
                LISTENING | UNCONNECTED if is_udp == (state == UNCONNECTED) => {
                    let Some((address, port)) = address(local, big_endian) else { continue };
                    let socket = Socket { is_udp, address: Some(address), port, processes: Vec::new() };
                    sockets.listening.insert(format!("{} {}", socket.protocol(), socket.shown()));
                }
                LISTENING | UNCONNECTED => {}
                // A connection that its peer has closed counts until the process closes it, too.
                _ => sockets.connections += 1,
            }
        }
    }
    sockets
}

/// Reads `0100007F:0016`: words of 32 bits, each printed as a number, and the port.
fn address(text: &str, big_endian: bool) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let words = address.as_bytes().chunks(8).map(|word| {
        let digits = std::str::from_utf8(word).ok().filter(|digits| digits.len() == 8)?;
        let word = u32::from_str_radix(digits, 16).ok()?;
        Some(if big_endian { word.to_be_bytes() } else { word.to_le_bytes() })
    });
    let bytes = words.collect::<Option<Vec<_>>>()?.concat();
    let address = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        _ => return None,
    };
    Some((address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from /proc/PID/net on Linux 6.18.
    const TCP: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                                                     
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0000000000000000 100 0 0 10 0                      
   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4243 1 0000000000000000 100 0 0 10 0                      
   2: 0200C612:0016 0100C612:C8DE 01 00000000:00000000 02:0007F3C5 00000000     0        0 4244 2 0000000000000000 20 4 29 10 -1                     
   3: 0200C612:0016 0100C612:C8E0 08 00000000:00000001 00:00000000 00000000     0        0 4248 1 0000000000000000 20 4 28 10 -1                     
";
    const TCP6: &str = "\
   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4245 1 0
   1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4246 1 0
";
    const UDP: &str = "\
  100: 3500007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000   101        0 4247 2 0000000000000000 0
";

    fn sockets(inodes: &[u64]) -> Sockets {
        let texts = [TCP, TCP6, UDP, "garbage\n"].map(str::to_owned);
        of(&inodes.iter().copied().collect(), &texts, false)
    }

    #[test]
    fn sockets_of_a_process_are_those_with_its_inodes() {
        let listening = |sockets: &Sockets| sockets.listening.iter().cloned().collect::<Vec<_>>();
        let found = sockets(&[4242, 4244, 4245, 4246, 4247]);
        assert_eq!(listening(&found), ["tcp 0.0.0.0:22", "tcp [::1]:80", "tcp [::]:22", "udp 127.0.0.53:53"]);
        assert_eq!(found.connections, 1);
        assert_eq!(sockets(&[4244, 4248]).connections, 2);
        assert_eq!(listening(&sockets(&[4243])), ["tcp 127.0.0.1:8080"]);
        assert_eq!(sockets(&[1]), Sockets::default());
    }

    #[test]
    fn an_address_has_the_byte_order_of_the_machine() {
        assert_eq!(address("7F000001:0016", true), Some(([127, 0, 0, 1].into(), 22)));
        for text in [
            "",
            ":",
            "0100007F",
            "0100007F:x",
            "01:16",
            "0100007G:0016",
            "0100007F0100007F:0016",
            "é100007:1",
        ] {
            assert_eq!(address(text, false), None, "{text}");
        }
    }
}
