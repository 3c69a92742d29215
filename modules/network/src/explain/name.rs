//! The first step: the name has an address for this machine. Where it has none, the sources and servers are asked one by one.

use std::net::IpAddr;

use linux_sysadmin_sdk::{prelude::*, text};

use super::Step;
use crate::dns::hosts::{self, HOSTS, NSSWITCH};
use crate::dns::resolv_conf::{self, MOST_SERVERS, RESOLV_CONF, ResolvConf};
use crate::probe::dns;
use crate::probe::tcp::{self, Outcome};
use crate::target::{Family, Found, Target};

const STEP: &str = "name";

/// The port of DNS. Servers answer there over TCP as well as over UDP.
const DNS: u16 = 53;

/// So many other domains are tried.
const MOST_DOMAINS: usize = 4;

/// The step, and the addresses where there are some.
pub(crate) fn step(target: &Target, cx: &Context) -> Result<(Step, Vec<IpAddr>)> {
    let name = match target {
        Target::Address(address) => {
            return Ok((Step::ok(STEP, "an address, which needs no name server"), vec![*address]));
        }
        Target::Name(name) => name,
    };
    let found = target.find(Family::Any, cx)?;
    let mut texts = cx.read_all(&[HOSTS, NSSWITCH, RESOLV_CONF]).into_iter().map(Result::ok);
    let mut next = || texts.next().flatten();
    let (hosts, sources, resolv) =
        (next().unwrap_or_default(), next().and_then(|text| hosts::sources(&text)), next());
    let entries = hosts::entries(&hosts, name);
    if let Found::Addresses(addresses) = found {
        let shown: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
        let mut step = Step::ok(STEP, format!("{name} is {}", shown.join(", ")));
        // A forgotten line there is a usual reason for a wrong address.
        let is_from = |entry: &&hosts::Entry| shown.contains(&entry.address);
        if let Some(entry) = entries.iter().find(is_from) {
            step = step.with(format!("by line {} of {HOSTS}, so that no server was asked", entry.line));
        }
        return Ok((step, addresses));
    }
    let resolv_conf = resolv.as_deref().map(resolv_conf::parse);
    let step = why(name, &found, sources.as_deref(), resolv_conf, &hosts, cx)?;
    Ok((step, Vec::new()))
}

fn why(
    name: &str,
    found: &Found,
    sources: Option<&str>,
    resolv_conf: Option<ResolvConf>,
    hosts: &str,
    cx: &Context,
) -> Result<Step> {
    let Some(conf) = resolv_conf else {
        let found = format!("{name} isn't found: {RESOLV_CONF} can't be read, or leads nowhere");
        return Ok(Step::fails(STEP, found).next("net_dns_show tells where it leads and who writes it"));
    };
    let asks_servers = sources.is_none_or(|all| all.split(' ').any(|one| matches!(one, "dns" | "resolve")));
    if !asks_servers {
        let found = format!(
            "{name} isn't in {HOSTS}, and no server is asked: {NSSWITCH} has only {} for hosts",
            sources.unwrap_or_default()
        );
        return Ok(Step::fails(STEP, found).next(format!("add dns to the line hosts of {NSSWITCH}")));
    }
    let servers: Vec<IpAddr> =
        conf.servers.iter().take(MOST_SERVERS).filter_map(|server| server.parse().ok()).collect();
    if servers.is_empty() {
        let found = format!("{name} isn't found: {RESOLV_CONF} names no server");
        return Ok(
            Step::fails(STEP, found).next("net_dns_show tells who writes it, and where its servers are set")
        );
    }
    let full = full_name(name, &conf);
    let answers = dns::ask(&servers.iter().map(IpAddr::to_string).collect::<Vec<_>>(), "A", &full, cx).ok();
    let states: Vec<(bool, String)> = match &answers {
        Some(answers) => answers.iter().map(|answer| of_answer(answer, &full)).collect(),
        // Without dig, a server that accepts connections is taken for one that answers.
        None => over_tcp(&servers, cx)?,
    };
    let is_any_alive = states.iter().any(|(is_alive, _)| *is_alive);
    let evidence: Vec<String> = states.into_iter().map(|(_, state)| state).collect();
    let fails = |found: String| Step { evidence: evidence.clone(), ..Step::fails(STEP, found) };
    if !is_any_alive {
        let servers: Vec<String> = servers.iter().map(IpAddr::to_string).collect();
        let (what, next) = match servers.as_slice() {
            [one] => (format!("the only name server, {one}, doesn't answer"), one.clone()),
            [first, ..] => {
                (format!("none of the name servers answers: {}", servers.join(", ")), first.clone())
            }
            [] => Default::default(),
        };
        let next = format!(
            "net_explain(target={next}, port={DNS}) tells why; net_dns_show tells where the servers are set"
        );
        return Ok(fails(format!("{name} isn't found: {what}")).next(next));
    }
    let is_error = |answer: &dns::Answer| !matches!(answer.status.as_str(), "NOERROR" | "NXDOMAIN");
    if answers.is_some_and(|answers| answers.iter().all(is_error)) {
        let found =
            format!("{name} isn't found: the name servers answer with an error, and not about the name");
        return Ok(fails(found).next("look at the name server's own log, or at the servers that it asks"));
    }
    if *found == Found::NoAnswer {
        let found = format!(
            "{name} got no answer within 8 s: a server before one that answers is dead, or they wait for others"
        );
        return Ok(fails(found)
            .next("put a server that answers first; net_dns_show tells where the servers are set"));
    }
    if let Some((domain, addresses)) = elsewhere(name, &conf, hosts, cx)? {
        let search = if conf.search.is_empty() { "empty".to_owned() } else { conf.search.join(" ") };
        let found = format!(
            "{name} isn't found, because the search list is {search}: {name}.{domain} is {}",
            text::list(&addresses, 3)
        );
        let next =
            format!("use {name}.{domain}, or set the search domain {domain}; net_dns_show tells where");
        return Ok(fails(found).next(next));
    }
    let found = match conf.search.as_slice() {
        search if !search.is_empty() && !name.contains('.') => {
            format!(
                "no server knows {name}, nor that name in one of the search domains ({})",
                search.join(" ")
            )
        }
        _ => format!("no server knows {name}"),
    };
    Ok(fails(found).next(format!("net_test(test=dns, target={name}) shows what each server says")))
}

/// The name as a server is asked for it first.
fn full_name(name: &str, conf: &ResolvConf) -> String {
    match conf.search.first() {
        Some(domain) if !name.contains('.') => format!("{name}.{domain}"),
        _ => name.to_owned(),
    }
}

fn of_answer(answer: &dns::Answer, asked: &str) -> (bool, String) {
    let dns::Answer { server, status, said, .. } = answer;
    let said = said.as_ref().map(|said| format!(" ({said})")).unwrap_or_default();
    (status != dns::NO_ANSWER, format!("{server} says {status} to {asked}{said}"))
}

fn over_tcp(servers: &[IpAddr], cx: &Context) -> Result<Vec<(bool, String)>> {
    let state = |(server, outcome): (IpAddr, Outcome)| {
        // One that can't be asked isn't held for dead.
        let is_alive = matches!(outcome, Outcome::Open | Outcome::Untried);
        let said = if outcome == Outcome::Open { "accepts connections" } else { outcome.meaning() };
        (is_alive, format!("{server} port {DNS} over TCP: {said}"))
    };
    Ok(tcp::try_connect(servers, DNS, cx)?.into_iter().map(state).collect())
}

/// A domain of this machine that isn't in the search list, and in which the name has an address.
fn elsewhere(
    name: &str,
    conf: &ResolvConf,
    hosts: &str,
    cx: &Context,
) -> Result<Option<(String, Vec<String>)>> {
    if name.contains('.') {
        return Ok(None);
    }
    let own = cx.distro().hostname;
    let mut domains: Vec<String> = Vec::new();
    let mut add = |domain: &str| {
        let domain = domain.trim_end_matches('.').to_owned();
        let is_new = !domains.contains(&domain) && !conf.search.contains(&domain);
        if is_new && crate::name::check(&domain).is_ok() {
            domains.push(domain);
        }
    };
    let short = own.split('.').next().unwrap_or(&own).to_owned();
    if let Some((_, domain)) = own.split_once('.') {
        add(domain);
    }
    // The machine's own full name stands in /etc/hosts beside the short one.
    for full in hosts::entries(hosts, &short).into_iter().flat_map(|entry| entry.names) {
        if let Some(domain) = full.strip_prefix(&format!("{short}.")) {
            add(domain);
        }
    }
    // A part of a search domain too much is as usual as a misspelled one.
    for search in &conf.search {
        if let Some((_, parent)) = search.split_once('.').filter(|(_, parent)| parent.contains('.')) {
            add(parent);
        }
    }
    for domain in domains.into_iter().take(MOST_DOMAINS) {
        let target = Target::Name(format!("{name}.{domain}"));
        if let Found::Addresses(addresses) = target.find(Family::Any, cx)? {
            return Ok(Some((domain, addresses.iter().map(IpAddr::to_string).collect())));
        }
    }
    Ok(None)
}
