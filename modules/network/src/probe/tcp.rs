//! A connection over TCP that is closed at once, by nc(1) or else curl(1). Nothing is sent.

use std::net::IpAddr;

use linux_sysadmin_sdk::{Output, prelude::*};

use super::{NO_PROGRAM, no_program};

/// Connects and hangs up. The kernel needs three seconds to find that nobody has an address on the own network.
pub(crate) const NC: CommandLine = CommandLine::new("nc -z -n -v -w 4 -- <address> <port>");

/// Does the same where there is no nc. curl waits for what the other end says, and therefore ends by its time limit. The file
/// comes first: behind an option that the policy doesn't know it could be that option's value.
const CURL_4: CommandLine = CommandLine::new(
    "curl --output /dev/null --silent --verbose --connect-timeout 4 --max-time 5 telnet://<address>:<port>",
);
const CURL_6: CommandLine = CommandLine::new(
    "curl --output /dev/null --silent --verbose --connect-timeout 4 --max-time 5 'telnet://['<address>']:'<port>",
);

/// What became of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Open,
    /// The other end says that nothing listens there, or a firewall says so in its place.
    Refused,
    /// Nobody answers.
    TimedOut,
    /// A router, or the own kernel, says that the host isn't there.
    HostUnreachable,
    NetworkUnreachable,
    /// The own machine forbids it.
    Forbidden,
    Unknown,
    /// The target has no program that connects.
    Untried,
}

impl Outcome {
    /// The meaning in a few words.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Open => "something listens there and accepts",
            Self::Refused => "the address answers, and nothing listens on the port, or a firewall rejects it",
            Self::TimedOut => {
                "no answer at all: a firewall drops it, the machine is off, or the way back is missing"
            }
            Self::HostUnreachable => {
                "nobody has the address on its network, or a router or a firewall rejects it"
            }
            Self::NetworkUnreachable => "no route leads there",
            Self::Forbidden => "a rule of this machine forbids it",
            Self::Unknown => "the program said something that isn't known",
            Self::Untried => "no connection was tried, since there is neither nc nor curl",
        }
    }
}

/// The words of programs for each outcome. They are those of strerror(3), and of curl, OpenBSD's nc and ncat for a timeout.
const WORDS: [(&str, Outcome); 11] = [
    ("connection refused", Outcome::Refused),
    ("no route to host", Outcome::HostUnreachable),
    ("host is unreachable", Outcome::HostUnreachable),
    ("network is unreachable", Outcome::NetworkUnreachable),
    ("permission denied", Outcome::Forbidden),
    ("operation not permitted", Outcome::Forbidden),
    // The route is of the type blackhole.
    ("invalid argument", Outcome::Forbidden),
    ("timed out", Outcome::TimedOut),
    ("timeout was reached", Outcome::TimedOut),
    ("connect timeout", Outcome::TimedOut),
    ("ncat: timeout", Outcome::TimedOut),
];

pub(crate) fn grants() -> [CommandGrant; 3] {
    [NC, CURL_4, CURL_6].map(|line| line.read("whether a port of another machine accepts connections"))
}

/// Connects to each of the addresses at the same time.
///
/// Problems: `NO_PROGRAM` where the target has no program for it.
pub(crate) fn connect(addresses: &[IpAddr], port: u16, cx: &Context) -> Result<Vec<(IpAddr, Outcome)>> {
    let run = |line: fn(&IpAddr) -> CommandLine| {
        let commands =
            addresses.iter().map(|address| line(address).with([address.to_string(), port.to_string()]));
        cx.run_all(commands.collect()).into_iter().collect::<Result<Vec<Output>>>()
    };
    let outputs = match run(|_| NC) {
        // The nc of BusyBox doesn't know these options.
        Ok(outputs) if outputs.iter().any(|output| of(output) != Outcome::Unknown) => Ok(outputs),
        no_nc => {
            run(|address| if address.is_ipv4() { CURL_4 } else { CURL_6 }).or_else(|no_curl| match no_nc {
                Ok(outputs) => Ok(outputs),
                Err(no_nc) => Err(no_program(
                    "a connection over TCP",
                    &[("nc", no_nc), ("curl", no_curl)],
                    "netcat-openbsd (Debian) or nmap-ncat (Red Hat)",
                )),
            })
        }
    };
    Ok(addresses.iter().copied().zip(outputs?.iter().map(of)).collect())
}

/// [`connect`], or that no connection could be tried.
pub(crate) fn try_connect(addresses: &[IpAddr], port: u16, cx: &Context) -> Result<Vec<(IpAddr, Outcome)>> {
    match connect(addresses, port, cx) {
        Err(problem) if problem.code == NO_PROGRAM => {
            Ok(addresses.iter().map(|address| (*address, Outcome::Untried)).collect())
        }
        outcomes => outcomes,
    }
}

/// What became of the connection in an output of either program.
fn of(output: &Output) -> Outcome {
    let said = output.error_text().to_lowercase();
    if output.exit_code == 0 || said.contains("* connected to ") {
        return Outcome::Open;
    }
    WORDS.iter().find(|(words, _)| said.contains(words)).map_or(Outcome::Unknown, |(_, outcome)| *outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::output;

    #[test]
    fn each_program_says_in_its_words_what_became_of_it() {
        // Recorded with OpenBSD netcat 1.219-1 and curl 7.88.1; those of ncat are of the sources of Nmap 7.93 (ncat_connect.c).
        for (exit, said, expected) in [
            (0, "Connection to 198.51.100.20 8080 port [tcp/*] succeeded!", Outcome::Open),
            (1, "nc: connect to 198.51.100.20 port 81 (tcp) failed: Connection refused", Outcome::Refused),
            (
                1,
                "nc: connect to 198.51.100.99 port 81 (tcp) timed out: Operation now in progress",
                Outcome::TimedOut,
            ),
            (1, "nc: connect to 192.0.2.99 port 81 (tcp) failed: No route to host", Outcome::HostUnreachable),
            (1, "nc: connect to 203.0.113.5 port 81 (tcp) failed: Invalid argument", Outcome::Forbidden),
            (1, "nc: connect to 192.0.2.1 port 25 (tcp) failed: Permission denied", Outcome::Forbidden),
            (
                1,
                "nc: connect to 203.0.113.5 port 81 (tcp) failed: Network is unreachable",
                Outcome::NetworkUnreachable,
            ),
            (1, "Ncat: Connection refused.", Outcome::Refused),
            (1, "Ncat: TIMEOUT.", Outcome::TimedOut),
            (
                28,
                "*   Trying 198.51.100.20:8080...\n* Connected to 198.51.100.20 (198.51.100.20) port 8080 (#0)\n* Time-out",
                Outcome::Open,
            ),
            (7, "* connect to 198.51.100.20 port 81 failed: Connection refused", Outcome::Refused),
            (
                28,
                "*   Trying 192.0.2.99:81...\n* ipv4 connect timeout after 2000ms, move on!",
                Outcome::TimedOut,
            ),
            (1, "nc: invalid option -- 'z'", Outcome::Unknown),
            (1, "", Outcome::Unknown),
        ] {
            assert_eq!(of(&output(exit, "", said)), expected, "{said}");
        }
    }
}
