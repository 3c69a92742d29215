//! Counters of interfaces in `/proc/net/dev`, and their state and speed in `/sys/class/net`.
//!
//! See proc_pid_net(5) and Documentation/ABI/testing/sysfs-class-net. Bytes count as they cross the interface.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::prelude::*;

use crate::rounding::{is_zero_count, percent, tenth};
use crate::sample::Interval;

pub(crate) const NET_DEV: &str = "/proc/net/dev";

/// The counters of an interface since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counters {
    rx_bytes: u64,
    rx_packets: u64,
    rx_errors: u64,
    rx_drops: u64,
    tx_bytes: u64,
    tx_packets: u64,
    tx_errors: u64,
    tx_drops: u64,
}

type Interfaces = BTreeMap<String, Counters>;

fn parse(text: &str) -> Result<Interfaces> {
    let mut interfaces = Interfaces::new();
    // The two lines of the heading have no colon.
    for line in text.lines().filter(|line| line.contains(':')) {
        let (name, counters) = line_of(line).ok_or_else(|| Problem::unexpected(NET_DEV, line))?;
        interfaces.insert(name.to_owned(), counters);
    }
    // There is always `lo`, and so a file without any line was truncated.
    if interfaces.is_empty() { Err(Problem::unexpected(NET_DEV, text)) } else { Ok(interfaces) }
}

fn line_of(line: &str) -> Option<(&str, Counters)> {
    // An alias has a colon in its name (eth0:1), and there is no space before a large number (eth0:4294967296).
    let (name, values) = line.rsplit_once(':')?;
    let values = values.split_whitespace().map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>()?;
    let [
        rx_bytes,
        rx_packets,
        rx_errors,
        rx_drops,
        _,
        _,
        _,
        _,
        tx_bytes,
        tx_packets,
        tx_errors,
        tx_drops,
        ..,
    ] = *values.as_slice()
    else {
        return None;
    };
    let counters =
        Counters { rx_bytes, rx_packets, rx_errors, rx_drops, tx_bytes, tx_packets, tx_errors, tx_drops };
    Some((name.trim(), counters))
}

/// An interface over the sample. Counts of errors and drops that are 0 are left out.
#[derive(Clone, Serialize)]
pub(crate) struct Interface {
    pub(crate) interface: String,
    /// The state: `up`, `down`, `unknown` (as for loopback) and others of RFC 2863.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// The speed in Mbit/s, as negotiated with the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    speed_mbit_s: Option<u64>,
    pub(crate) rx_kb_s: f64,
    pub(crate) tx_kb_s: f64,
    rx_packets_s: f64,
    tx_packets_s: f64,
    /// The utilization of the busier direction, in percent of the speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) util_pct: Option<f64>,
    /// The errors and drops of both directions within the sample.
    #[serde(skip_serializing_if = "is_zero_count")]
    pub(crate) new_losses: u64,
    /// The count since boot.
    #[serde(skip_serializing_if = "is_zero_count")]
    rx_errors: u64,
    /// The count since boot.
    #[serde(skip_serializing_if = "is_zero_count")]
    tx_errors: u64,
    /// The count since boot.
    #[serde(skip_serializing_if = "is_zero_count")]
    rx_drops: u64,
    /// The count since boot.
    #[serde(skip_serializing_if = "is_zero_count")]
    tx_drops: u64,
    /// The packets of both directions within the sample.
    #[serde(skip)]
    pub(crate) packets: u64,
}

impl Interface {
    fn between(name: &str, before: Counters, after: Counters, interval: &Interval) -> Self {
        let new = |field: fn(&Counters) -> u64| field(&after).saturating_sub(field(&before));
        let rate = |field: fn(&Counters) -> u64| interval.rate(field(&before), field(&after));
        let losses: [fn(&Counters) -> u64; 4] =
            [|c| c.rx_errors, |c| c.tx_errors, |c| c.rx_drops, |c| c.tx_drops];
        Self {
            interface: name.to_owned(),
            state: None,
            speed_mbit_s: None,
            rx_kb_s: tenth(rate(|c| c.rx_bytes) / 1024.0),
            tx_kb_s: tenth(rate(|c| c.tx_bytes) / 1024.0),
            rx_packets_s: tenth(rate(|c| c.rx_packets)),
            tx_packets_s: tenth(rate(|c| c.tx_packets)),
            util_pct: None,
            new_losses: losses.into_iter().map(new).fold(0, u64::saturating_add),
            rx_errors: after.rx_errors,
            tx_errors: after.tx_errors,
            rx_drops: after.rx_drops,
            tx_drops: after.tx_drops,
            packets: new(|c| c.rx_packets).saturating_add(new(|c| c.tx_packets)),
        }
    }

    pub(crate) fn traffic(&self) -> f64 {
        self.rx_kb_s + self.tx_kb_s
    }

    /// Sets state, speed and utilization. The speed of virtual interfaces and of links that are down is unknown: reading it
    /// fails, or gives -1, which older kernels print as an unsigned number of 16 or 32 bits.
    fn link(&mut self, state: Option<String>, speed: Option<String>) {
        self.state = state.map(|state| state.trim().to_owned()).filter(|state| !state.is_empty());
        self.speed_mbit_s = speed
            .and_then(|speed| speed.trim().parse().ok())
            .filter(|speed| !matches!(speed, 0 | 0xffff | 0xffff_ffff));
        self.util_pct = self.speed_mbit_s.map(|speed| {
            let bits_s = self.rx_kb_s.max(self.tx_kb_s) * 1024.0 * 8.0;
            tenth(percent(bits_s, speed as f64 * 1e6))
        });
    }
}

/// The interfaces of a sample, the one with the most traffic first.
pub(crate) fn interfaces(interval: &Interval, cx: &Context) -> Result<Vec<Interface>> {
    let (before, after) = interval.both(NET_DEV, parse)?;
    let mut interfaces = after
        .iter()
        .map(|(name, counters)| {
            let earlier = before.as_ref().and_then(|all| all.get(name)).copied().unwrap_or_default();
            Interface::between(name, earlier, *counters, interval)
        })
        .collect::<Vec<_>>();
    let paths = interfaces.iter().flat_map(|found| {
        ["operstate", "speed"].map(|file| format!("/sys/class/net/{}/{file}", found.interface))
    });
    let mut facts = cx.read_all(&paths.collect::<Vec<_>>()).into_iter().map(Result::ok);
    for interface in &mut interfaces {
        interface.link(facts.next().flatten(), facts.next().flatten());
    }
    interfaces.sort_by(|a, b| b.traffic().total_cmp(&a.traffic()).then(a.interface.cmp(&b.interface)));
    Ok(interfaces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn names_and_numbers_are_told_apart() {
        let numbers = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16";
        let expected = Counters {
            rx_bytes: 1,
            rx_packets: 2,
            rx_errors: 3,
            rx_drops: 4,
            tx_bytes: 9,
            tx_packets: 10,
            tx_errors: 11,
            tx_drops: 12,
        };
        for name in ["eth0", "eth0:1", "br-1.5", "veth@if3", "wlp2s0"] {
            let all = parse(&format!("Inter-| Receive\n face |bytes\n  {name}:{numbers}\n")).unwrap();
            assert_eq!(all, Interfaces::from([(name.to_owned(), expected)]));
        }
        let glued = parse(&format!("eth0:{}", numbers.trim_start())).unwrap();
        assert_eq!(glued["eth0"], expected);
    }

    #[test]
    fn what_is_not_net_dev_is_a_problem() {
        for text in [
            "",
            "Inter-| Receive\n face |bytes\n",
            "eth0: 1 2 3",
            "eth0: x 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
            "a:b",
        ] {
            assert_eq!(parse(text).unwrap_err().code, "UNEXPECTED_OUTPUT", "{text:?}");
        }
    }

    #[test]
    fn a_link_without_a_speed_has_no_utilization() {
        let target = |speed: &str| {
            let net = |bytes: u64| {
                format!("==> /proc/net/dev <==\neth0: {bytes} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\n")
            };
            let speed = format!("==> /sys/class/net/eth0/speed <==\n{speed}\n");
            FakeTarget::new().recording(&net(0)).recording(&(net(62_500_000) + &speed))
        };
        let call = |speed| {
            target(speed)
                .call(&crate::module(), "perf_network_io", serde_json::json!({"sample_ms": 1000}))
                .unwrap()
                .0
        };
        assert_eq!(call("1000")[0]["util_pct"], 50.0);
        for unknown in ["-1", "0", "", "65535", "4294967295", "fast"] {
            assert!(call(unknown)[0].get("util_pct").is_none(), "{unknown:?}");
        }
    }
}
