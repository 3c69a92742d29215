//! The routers on the way to an address, by traceroute(8), tracepath(8) or mtr(8).

use std::net::IpAddr;

use linux_sysadmin_sdk::{DurationCategory, Output, prelude::*};

use super::{PROGRAM_NOT_FOUND, no_program};
use crate::target::{PROGRAM_IS_MISSING, TIME_IS_UP};

/// Asks one packet for each hop.
pub(crate) const TRACEROUTE: CommandLine =
    CommandLine::new("timeout 50 traceroute -n -q 1 -w 2 -m 20 -- <address>");
pub(crate) const TRACEPATH: CommandLine = CommandLine::new("timeout 50 tracepath -n -m 20 -- <address>");
pub(crate) const MTR: CommandLine =
    CommandLine::new("timeout 50 mtr --json --no-dns --report-cycles 1 --max-ttl 20 -- <address>");

/// A router on the way, and the target itself at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Hop {
    pub(crate) hop: u64,
    /// None where it doesn't answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rtt_ms: Option<f64>,
    /// What it says in place of passing the packet on, as traceroute(8) abbreviates it: `!H` for an unreachable host, `!N` for
    /// an unreachable network, `!X` for a firewall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<String>,
}

/// The hops, and the program that found them.
pub(crate) struct Trace {
    pub(crate) by: &'static str,
    pub(crate) hops: Vec<Hop>,
    /// True where the time was up before the last hop.
    pub(crate) is_cut: bool,
}

pub(crate) fn trace(address: IpAddr, cx: &Context) -> Result<Trace> {
    let mut tried = Vec::new();
    for (by, line, parse) in [
        ("traceroute", TRACEROUTE, lines as fn(&str) -> Vec<Hop>),
        ("tracepath", TRACEPATH, lines),
        ("mtr", MTR, json),
    ] {
        match cx.run(line.with([address.to_string()]).duration(DurationCategory::Normal)) {
            Ok(output) if output.exit_code != PROGRAM_IS_MISSING => {
                let hops = parse(&output.text());
                if !hops.is_empty() {
                    return Ok(Trace { by, hops, is_cut: output.exit_code == TIME_IS_UP });
                }
                tried.push((by, failed(output, by)));
            }
            Ok(_) => tried.push((by, Problem::not_found(PROGRAM_NOT_FOUND, format!("there is no {by}")))),
            Err(problem) => tried.push((by, problem)),
        }
    }
    Err(no_program(
        "a trace",
        &tried,
        "traceroute, or iputils-tracepath (Debian) or iputils (Red Hat), or mtr",
    ))
}

fn failed(output: Output, program: &'static str) -> Problem {
    match output.success(program) {
        Ok(output) => Problem::unexpected(program, &output.text()),
        Err(problem) => problem,
    }
}

/// Reads the lines of traceroute and of tracepath: ` 1  192.0.2.1  0.045 ms !H`, ` 2:  no reply`, ` 2  *`. tracepath tells one
/// hop twice where it first learns of the own interface.
fn lines(text: &str) -> Vec<Hop> {
    let mut hops: Vec<Hop> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(Ok(hop)) = words.next().map(|word| word.trim_end_matches([':', '?']).parse::<u64>()) else {
            continue;
        };
        let words: Vec<&str> = words.collect();
        let address =
            words.first().filter(|word| word.parse::<IpAddr>().is_ok()).map(|word| (*word).to_owned());
        let is_known = address.is_some() || matches!(words.first(), Some(&"*" | &"no"));
        if !is_known {
            continue;
        }
        let time = words.iter().position(|word| word.ends_with("ms")).and_then(|at| {
            let word = words[at].trim_end_matches("ms");
            if word.is_empty() { words.get(at.checked_sub(1)?)?.parse().ok() } else { word.parse().ok() }
        });
        let mark = words.iter().find(|word| word.starts_with('!')).map(|word| (*word).to_owned());
        let found = Hop { hop, address, rtt_ms: time, mark };
        match hops.last_mut().filter(|last| last.hop == hop) {
            Some(last) => *last = found,
            None => hops.push(found),
        }
    }
    hops
}

#[derive(Deserialize)]
struct Report {
    report: Hubs,
}

#[derive(Deserialize)]
struct Hubs {
    hubs: Vec<Hub>,
}

#[derive(Deserialize)]
struct Hub {
    count: serde_json::Value,
    host: String,
    #[serde(rename = "Avg")]
    average: Option<f64>,
}

/// Reads the report of mtr. Its older versions write the number of a hop as text.
fn json(text: &str) -> Vec<Hop> {
    let Ok(Report { report }) = serde_json::from_str(text) else { return Vec::new() };
    let hop = |hub: Hub| {
        let number = hub.count.as_u64().or_else(|| hub.count.as_str()?.parse().ok())?;
        let address = Some(hub.host).filter(|host| host != "???");
        let rtt_ms = hub.average.filter(|_| address.is_some());
        Some(Hop { hop: number, address, rtt_ms, mark: None })
    };
    report.hubs.into_iter().filter_map(hop).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(hop: u64, address: Option<&str>, rtt_ms: Option<f64>, mark: Option<&str>) -> Hop {
        Hop { hop, address: address.map(str::to_owned), rtt_ms, mark: mark.map(str::to_owned) }
    }

    #[test]
    fn each_program_tells_its_hops() {
        let two =
            [hop(1, Some("192.0.2.1"), Some(0.012), None), hop(2, Some("198.51.100.20"), Some(0.004), None)];
        // Recorded with BusyBox 1.35.0.
        let recorded = "traceroute to 198.51.100.20 (198.51.100.20), 20 hops max, 46 byte packets\n 1  192.0.2.1  0.012 ms\n 2  198.51.100.20  0.004 ms\n";
        assert_eq!(lines(recorded), two);
        assert_eq!(
            lines("traceroute to x\n 1  192.0.2.1  0.011 ms\n 2  *\n 3  192.0.2.9  1.5 ms  !H\n"),
            [
                hop(1, Some("192.0.2.1"), Some(0.011), None),
                hop(2, None, None, None),
                hop(3, Some("192.0.2.9"), Some(1.5), Some("!H"))
            ]
        );
        // After the sources of iputils 20221126 (tracepath.c).
        let tracepath = " 1?: [LOCALHOST]                      pmtu 1500\n 1:  192.0.2.1                                             0.060ms \n 1:  192.0.2.1                                             0.012ms \n 2:  no reply\n 3:  198.51.100.20                                         0.044ms reached\n     Resume: pmtu 1500 hops 3 back 3 \n";
        assert_eq!(
            lines(tracepath),
            [
                hop(1, Some("192.0.2.1"), Some(0.012), None),
                hop(2, None, None, None),
                hop(3, Some("198.51.100.20"), Some(0.044), None)
            ]
        );
        // After the sources of mtr 0.95 (ui/report.c).
        let mtr = r#"{"report":{"mtr":{"src":"a","dst":"198.51.100.20","tests":1},"hubs":[{"count":1,"host":"192.0.2.1","Loss%":0.0,"Snt":1,"Last":0.1,"Avg":0.012},{"count":"2","host":"???","Loss%":100.0,"Avg":0.0}]}}"#;
        assert_eq!(json(mtr), [hop(1, Some("192.0.2.1"), Some(0.012), None), hop(2, None, None, None)]);
        for text in ["", "garbage", "{}", "traceroute: bad option"] {
            assert!(lines(text).is_empty() && json(text).is_empty(), "{text}");
        }
    }
}
