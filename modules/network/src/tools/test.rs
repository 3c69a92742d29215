//! `net_test`: one probe of another machine, with its answer as data.

use std::net::IpAddr;

use linux_sysadmin_sdk::prelude::*;

use crate::dns::hosts::{self, HOSTS, NSSWITCH};
use crate::dns::resolv_conf::{self, MOST_SERVERS, RESOLV_CONF};
use crate::name;
use crate::probe::{dns, ping, tcp, tls, trace};
use crate::target::{Family, Found, Target};

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Test {
    Ping,
    Trace,
    Tcp,
    Tls,
    Dns,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct TestArgs {
    /// Kind of test
    test: Test,
    /// Name or address
    target: String,
    /// Port, for tcp and tls
    port: Option<i64>,
    /// DNS record type, as MX
    record: Option<String>,
    /// DNS server to ask
    server: Option<String>,
    /// 4 or 6
    family: Option<i64>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    Each(Vec<Each>),
    Trace {
        address: IpAddr,
        reached: bool,
        hops: Vec<trace::Hop>,
        by: &'static str,
    },
    Tls {
        address: IpAddr,
        #[serde(flatten)]
        tls: Box<tls::Tls>,
    },
    Dns(Box<Dns>),
}

/// What came of one of the addresses of the target.
#[derive(Serialize)]
pub(crate) struct Each {
    address: IpAddr,
    #[serde(flatten)]
    result: EachResult,
}

#[derive(Serialize)]
#[serde(untagged)]
enum EachResult {
    Ping(ping::Ping),
    Tcp { result: tcp::Outcome, meaning: &'static str },
}

/// The way of an answer: what the machine's own programs get, and what each server says.
#[derive(Default, Serialize)]
pub(crate) struct Dns {
    /// The addresses that programs of this machine get.
    #[serde(skip_serializing_if = "Option::is_none")]
    addresses: Option<Vec<IpAddr>>,
    /// The sources that are asked, in this order.
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<String>,
    /// The line of /etc/hosts that has the name, so that no server is asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<hosts::Entry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    servers: Vec<dns::Answer>,
}

pub(crate) fn grants() -> Vec<CommandGrant> {
    let mut grants = vec![
        crate::target::ADDRESSES.read("the addresses that a name has for this machine"),
        ping::PING.read("whether another machine answers"),
        trace::TRACEROUTE.read("the routers on the way to another machine"),
        trace::TRACEPATH.read("the routers on the way to another machine"),
        trace::MTR.read("the routers on the way to another machine"),
        dns::DIG.read("what a DNS server answers"),
    ];
    grants.extend(tcp::grants());
    grants.extend(tls::grants());
    grants
}

pub(crate) fn net_test(args: TestArgs, cx: &Context) -> Result<Noted<Answer>> {
    let family = Family::of(args.family)?;
    let target = if args.test == Test::Dns && args.target.contains('_') {
        // Names of services have underscores, which no host has.
        Target::Name(name::check(&args.target)?.to_owned())
    } else {
        Target::parse(&args.target)?
    };
    let port = args.port.map(name::check_port).transpose()?;
    refuse_others(&args)?;
    let answer = match args.test {
        Test::Ping => {
            let results = ping::ping(&target.addresses(family, cx)?, cx)?;
            Answer::Each(
                results
                    .into_iter()
                    .map(|(address, ping)| Each { address, result: EachResult::Ping(ping) })
                    .collect(),
            )
        }
        Test::Tcp => {
            let port = port.ok_or_else(needs_port)?;
            let results = tcp::connect(&target.addresses(family, cx)?, port, cx)?;
            let each = |(address, result): (IpAddr, tcp::Outcome)| Each {
                address,
                result: EachResult::Tcp { result, meaning: result.meaning() },
            };
            Answer::Each(results.into_iter().map(each).collect())
        }
        Test::Trace => {
            let address = first(&target, family, cx)?;
            let trace = trace::trace(address, cx)?;
            let reached = trace.hops.iter().any(|hop| hop.address.as_deref() == Some(&address.to_string()));
            let mut notes = Vec::new();
            if trace.is_cut {
                notes.push("the time was up after 50 s, before the last hop".to_owned());
            }
            let data = Answer::Trace { address, reached, hops: trace.hops, by: trace.by };
            return Ok(Noted { data, notes });
        }
        Test::Tls => {
            let address = first(&target, family, cx)?;
            let tls = Box::new(tls::look(target.name(), address, port.unwrap_or(443), cx)?);
            Answer::Tls { address, tls }
        }
        Test::Dns => return of_dns(&target, &args, family, cx),
    };
    Ok(Noted { data: answer, notes: Vec::new() })
}

fn needs_port() -> Problem {
    Problem::validation("INVALID_ARGUMENTS", "test=tcp needs a port: expected 1 to 65535")
}

/// Refuses arguments that the test wouldn't heed.
fn refuse_others(args: &TestArgs) -> Result<()> {
    let takes_port = matches!(args.test, Test::Tcp | Test::Tls);
    let is_dns = args.test == Test::Dns;
    for (is_given, is_taken, argument, tests) in [
        (args.port.is_some(), takes_port, "port", "tcp and tls"),
        (args.record.is_some(), is_dns, "record", "dns"),
        (args.server.is_some(), is_dns, "server", "dns"),
    ] {
        if is_given && !is_taken {
            let message = format!("{argument} is only for the test {tests}: expected no such argument");
            return Err(Problem::validation("INVALID_ARGUMENTS", message));
        }
    }
    Ok(())
}

/// The address that programs try first.
fn first(target: &Target, family: Family, cx: &Context) -> Result<IpAddr> {
    let addresses = target.addresses(family, cx)?;
    addresses.first().copied().ok_or_else(|| Problem::not_found("NAME_NOT_FOUND", "the name has no address"))
}

fn of_dns(target: &Target, args: &TestArgs, family: Family, cx: &Context) -> Result<Noted<Answer>> {
    let default = match (target, family) {
        (Target::Address(_), _) => "PTR",
        (_, Family::V6) => "AAAA",
        _ => "A",
    };
    let record = args.record.as_deref().map(dns::record_type).transpose()?.unwrap_or(default);
    let name = match target {
        Target::Name(name) => name.clone(),
        Target::Address(address) => reverse(*address),
    };
    let server: Option<IpAddr> = args.server.as_deref().map(server).transpose()?;
    let mut answer = Dns::default();
    let mut notes = Vec::new();
    // What one server says has nothing to do with the machine's own sources.
    if server.is_none() {
        let mut texts = cx.read_all(&[NSSWITCH, HOSTS]).into_iter().map(|text| text.unwrap_or_default());
        answer.sources = texts.next().and_then(|text| hosts::sources(&text));
        answer.hosts = texts.next().map(|text| hosts::entries(&text, &name)).unwrap_or_default();
        if matches!(record, "A" | "AAAA") {
            match target.find(family, cx)? {
                Found::Addresses(addresses) => answer.addresses = Some(addresses),
                Found::Nothing => answer.addresses = Some(Vec::new()),
                Found::NoAnswer => {
                    notes.push("no answer came within 8 s by the machine's own sources".to_owned())
                }
            }
        }
    }
    let servers = match server {
        Some(server) => vec![server.to_string()],
        None => {
            let text = cx.read(RESOLV_CONF).unwrap_or_default();
            let servers = resolv_conf::parse(&text).servers.into_iter().take(MOST_SERVERS);
            servers.filter(|server| server.parse::<IpAddr>().is_ok()).collect()
        }
    };
    match dns::ask(&servers, record, &name, cx) {
        Ok(answers) => answer.servers = answers,
        // What the machine's own programs get is an answer, too.
        Err(problem) if answer.addresses.is_some() => {
            notes.push(format!("servers weren't asked one by one: {}", problem.message))
        }
        Err(problem) => return Err(problem),
    }
    notes.extend(differences(&answer, &name));
    Ok(Noted { data: Answer::Dns(Box::new(answer)), notes })
}

fn server(asked: &str) -> Result<IpAddr> {
    asked.trim().parse().map_err(|_| {
        let asked = linux_sysadmin_sdk::text::excerpt(asked, 60);
        let message =
            format!("server is {asked:?}: expected the address of a DNS server, such as 192.0.2.53");
        Problem::validation("INVALID_SERVER", message)
    })
}

/// The name under which DNS keeps the name of an address, see RFC 1035 and RFC 3596.
fn reverse(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let digits = address
                .octets()
                .iter()
                .rev()
                .map(|byte| format!("{:x}.{:x}.", byte & 15, byte >> 4))
                .collect::<String>();
            format!("{digits}ip6.arpa")
        }
    }
}

/// What a person has to know of servers that don't agree.
fn differences(answer: &Dns, name: &str) -> Vec<String> {
    let mut notes = Vec::new();
    let statuses: std::collections::BTreeSet<&str> =
        answer.servers.iter().map(|one| one.status.as_str()).collect();
    if statuses.len() > 1 {
        notes.push(format!(
            "the servers don't agree about {name}: programs get what the first one that answers says"
        ));
    }
    if !answer.hosts.is_empty()
        && answer.sources.as_deref().is_none_or(|sources| sources.starts_with("files"))
    {
        notes.push(format!("{HOSTS} has {name}, so that no server is asked"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_name_in_dns() {
        assert_eq!(reverse([192, 0, 2, 7].into()), "7.2.0.192.in-addr.arpa");
        let address = "2001:db8::7".parse::<std::net::Ipv6Addr>();
        let expected = "7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
        assert_eq!(address.map(|address| reverse(address.into())).as_deref(), Ok(expected));
    }
}
