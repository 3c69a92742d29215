//! Echo requests, by the ping(8) of iputils or BusyBox.

use std::net::IpAddr;

use linux_sysadmin_sdk::{Output, prelude::*, text};

use super::no_program;

/// Sends three requests, and waits at most five seconds.
pub(crate) const PING: CommandLine = CommandLine::new("ping -q -c 3 -w 5 -- <address>");

/// The counts and the times of the answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Ping {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) loss_percent: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rtt_ms: Option<Times>,
    /// What ping says besides, such as that it may not send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) said: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Times {
    min: f64,
    avg: f64,
    max: f64,
}

/// Pings each of the addresses at the same time.
pub(crate) fn ping(addresses: &[IpAddr], cx: &Context) -> Result<Vec<(IpAddr, Ping)>> {
    let commands = addresses.iter().map(|address| PING.with([address.to_string()])).collect();
    let outputs = cx.run_all(commands).into_iter().collect::<Result<Vec<Output>>>();
    let outputs = outputs.map_err(|problem| {
        no_program("ping", &[("ping", problem)], "iputils-ping (Debian) or iputils (Red Hat)")
    })?;
    Ok(addresses.iter().copied().zip(outputs.iter().map(parse)).collect())
}

fn parse(output: &Output) -> Ping {
    let text = output.text();
    let mut ping = Ping::default();
    for line in text.lines() {
        if line.contains(" packets transmitted, ") {
            let number = |word: &str| {
                let before = line.split(", ").find(|part| part.contains(word))?;
                before.trim().split([' ', '%']).next()?.parse().ok()
            };
            ping.sent = number("transmitted").unwrap_or_default();
            ping.received = number("received").unwrap_or_default();
        } else if line.starts_with("rtt ") || line.starts_with("round-trip ") {
            ping.rtt_ms = times(line);
        }
    }
    ping.loss_percent = (100 * ping.sent.saturating_sub(ping.received)).checked_div(ping.sent).unwrap_or(100);
    let said = output.error_text();
    ping.said = said.lines().next().map(text::of_line).filter(|line| !line.is_empty());
    ping
}

/// Reads `rtt min/avg/max/mdev = 0.026/0.031/0.038/0.005 ms`.
fn times(line: &str) -> Option<Times> {
    let numbers = line.split_once(" = ")?.1.split(' ').next()?;
    let mut numbers = numbers.split('/').map(|number| number.parse::<f64>().ok());
    let mut next = || numbers.next().flatten();
    Some(Times { min: next()?, avg: next()?, max: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::output;

    #[test]
    fn loss_and_times_are_read_from_either_ping() {
        let times = |min, avg, max| Some(Times { min, avg, max });
        for (exit, said, errors, expected) in [
            // Recorded with BusyBox 1.35.0.
            (
                0,
                "PING 198.51.100.20 (198.51.100.20): 56 data bytes\n\n--- 198.51.100.20 ping statistics ---\n3 packets transmitted, 3 packets received, 0% packet loss\nround-trip min/avg/max = 0.116/0.143/0.178 ms\n",
                "",
                Ping {
                    sent: 3,
                    received: 3,
                    loss_percent: 0,
                    rtt_ms: times(0.116, 0.143, 0.178),
                    said: None,
                },
            ),
            (
                1,
                "\n--- 192.0.2.99 ping statistics ---\n2 packets transmitted, 0 packets received, 100% packet loss\n",
                "",
                Ping { sent: 2, loss_percent: 100, ..Ping::default() },
            ),
            // After the sources of iputils 20221126 (ping/ping_common.c, finish).
            (
                1,
                "PING 192.0.2.99 (192.0.2.99) 56(84) bytes of data.\n\n--- 192.0.2.99 ping statistics ---\n3 packets transmitted, 0 received, +3 errors, 100% packet loss, time 2039ms\npipe 3\n",
                "",
                Ping { sent: 3, loss_percent: 100, ..Ping::default() },
            ),
            (
                0,
                "3 packets transmitted, 2 received, 33.3333% packet loss, time 2003ms\nrtt min/avg/max/mdev = 0.026/0.031/0.038/0.005 ms\n",
                "",
                Ping {
                    sent: 3,
                    received: 2,
                    loss_percent: 33,
                    rtt_ms: times(0.026, 0.031, 0.038),
                    said: None,
                },
            ),
            (
                2,
                "",
                "ping: connect: Network is unreachable\n",
                Ping {
                    loss_percent: 100,
                    said: Some("ping: connect: Network is unreachable".into()),
                    ..Ping::default()
                },
            ),
            (1, "garbage\n", "", Ping { loss_percent: 100, ..Ping::default() }),
        ] {
            assert_eq!(parse(&output(exit, said, errors)), expected, "{said}");
        }
    }
}
