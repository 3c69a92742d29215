//! Names: whether name servers are set, whether each of them answers, and what the names of the complaint stand for.

use std::net::IpAddr;

use linux_sysadmin_sdk::knowledge::{Profile, Status};
use linux_sysadmin_sdk::{Category, Problem, Severity, text};
use serde_json::{Value, json};

use crate::call::{Call, Form};
use crate::envelope::{Envelope, count, list, raw, said, strings};
use crate::finding::{Finding, Kind};
use crate::notebook::Notebook;
use crate::rank;

/// The address at which systemd-resolved answers.
const STUB: &str = "127.0.0.53";

/// The category of profiles of name servers.
const SERVERS: &str = "dns";

/// Reads `net_dns_show`.
pub(crate) fn shown(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let data = envelope.data();
    let servers: Vec<String> = strings(&data["resolv_conf"], "servers").collect();
    notebook.servers = servers.clone();
    let has_stub = servers.iter().any(|server| server == STUB);
    let what = if servers.is_empty() {
        "no name server is set"
    } else if has_stub && data["resolved"].is_null() {
        "systemd-resolved is asked for names, and doesn't run"
    } else {
        return;
    };
    let start = Call::new("svc_status").with("service", json!("systemd-resolved"));
    let finding = Finding::new(Kind::Dns, Severity::High, what)
        .fits(&[Kind::Network])
        .evidence(envelope.notes().next().unwrap_or_default())
        .call([Some(start).filter(|_| has_stub), Some(Call::new("net_dns_show"))]);
    notebook.add(finding);
}

/// Reads `net_test` of the machine's own name: what the answer is doesn't matter, but that one comes from each server.
pub(crate) fn resolvers(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    silent(envelope.data(), notebook);
}

/// Tells the servers that don't answer.
fn silent(data: &Value, notebook: &mut Notebook<'_>) {
    let servers: Vec<&Value> = list(data, "servers").collect();
    for server in &servers {
        let (Some(address), Some(status)) = (raw(server, "server"), raw(server, "status")) else { continue };
        if !matches!(status, "no answer" | "SERVFAIL" | "REFUSED") {
            continue;
        }
        let others = servers.iter().any(|other| matches!(raw(other, "status"), Some("NOERROR" | "NXDOMAIN")));
        let grade = if others { Severity::Warning } else { Severity::High };
        let finding = Finding::new(
            Kind::Dns,
            grade,
            format!("the name server {} gives {status}", text::excerpt(address, 60)),
        )
        .fits(&[Kind::Network, Kind::Slow])
        .evidence(said(server, "said").unwrap_or_default())
        .name(address)
        .call([
            Call::new("net_explain")
                .of("target", Form::Host, address)
                .map(|call| call.with("port", json!(53))),
            Some(Call::new("net_dns_show")),
        ]);
        notebook.add(finding);
    }
}

/// Reads `net_test` of a host that the complaint names.
pub(crate) fn host(envelope: Envelope<'_>, host: &str, notebook: &mut Notebook<'_>) {
    let data = envelope.data();
    silent(data, notebook);
    let addresses: Vec<String> = strings(data, "addresses").collect();
    if data["addresses"].is_array() && addresses.is_empty() {
        return no_address(data, host, notebook);
    }
    let expected = &notebook.complaint.addresses;
    let is_expected =
        |address: &String| address.parse::<IpAddr>().is_ok_and(|address| expected.contains(&address));
    if expected.is_empty() || addresses.is_empty() || addresses.iter().any(is_expected) {
        return;
    }
    let wanted = expected.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ");
    let what = format!("{host} stands for {}, and not for {wanted}", text::list(&addresses, 3));
    let mut finding = Finding::new(Kind::Dns, Severity::High, what)
        .fits(&[Kind::Network, Kind::Service])
        .name(host)
        .weight(rank::CONTRADICTS);
    finding = match list(data, "hosts").next() {
        Some(entry) => {
            let (line, address) = (count(entry, "line"), said(entry, "address").unwrap_or_default());
            let look = Call::new("file_search").with("path", json!("/etc/hosts")).with("fixed", json!(true));
            finding
                .evidence(format!("/etc/hosts:{line} has {address} for it"))
                .cause(format!("line {line} of /etc/hosts is out of date, and no name server is asked"))
                .name("/etc/hosts")
                .call([look.of("pattern", Form::Literal, host)])
        }
        None => {
            let test = Call::new("net_test").with("test", json!("dns"));
            finding.cause("the name server has the former address").call([test.of(
                "target",
                Form::Host,
                host,
            )])
        }
    };
    notebook.add(finding);
}

fn no_address(data: &Value, host: &str, notebook: &mut Notebook<'_>) {
    let server = list(data, "servers").find(|server| raw(server, "status") == Some("NXDOMAIN"));
    // Where the servers weren't asked one by one, the first of them was asked.
    let first = || notebook.servers.first().cloned();
    let address = server.and_then(|server| said(server, "server")).or_else(first).unwrap_or_default();
    let own = own_server(&address, notebook.profiles);
    let test = Call::new("net_test").with("test", json!("dns")).of("target", Form::Host, host);
    let mut finding = Finding::new(Kind::Dns, Severity::High, format!("{host} has no address"))
        .fits(&[Kind::Network, Kind::Service])
        .name(host)
        .weight(rank::CONTRADICTS);
    if server.is_some() {
        let address = text::excerpt(&address, 60);
        finding =
            finding.evidence(format!("the name server {address} says that there is no such name (NXDOMAIN)"));
    }
    finding = match own {
        Some((profile, directory)) => {
            let zone = host.split_once('.').map_or(host, |(_, zone)| zone);
            let look = Call::new("file_search").with("fixed", json!(true)).of("path", Form::Path, &directory);
            let look = look.and_then(|look| look.of("pattern", Form::Literal, zone));
            finding
                .cause(format!(
                    "{} on this machine, which answers for {zone}, has no record of it",
                    profile.name
                ))
                .name(profile.id.clone())
                .name(directory)
                .call([look, test])
        }
        None => finding.call([test]),
    };
    notebook.add(finding);
}

/// The name server that runs on this machine, where the one that was asked is at a loopback address, and the directory of its
/// configuration.
fn own_server<'a>(address: &str, profiles: &'a [Profile]) -> Option<(&'a Profile, String)> {
    let is_own = address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let serves = |profile: &&Profile| profile.category == SERVERS && profile.status == Status::Active;
    let directory = |profile: &'a Profile| {
        let main = profile.config.iter().find(|file| file.main).or(profile.config.first())?;
        Some((profile, main.path.rsplit_once('/')?.0.to_owned()))
    };
    let is_deep = |found: &(&Profile, String)| found.1.matches('/').count() > 1;
    // systemd-resolved only passes questions on, and its configuration has no records.
    let others =
        profiles.iter().filter(|_| is_own).filter(serves).filter(|profile| profile.id != "systemd-resolved");
    others.filter_map(directory).find(is_deep)
}

/// Reads a problem of `net_test`: a name that isn't found is a finding, and not a look that failed.
pub(crate) fn failed(problem: &Problem, host: &str, notebook: &mut Notebook<'_>) -> bool {
    let is_missing = problem.category == Category::NotFound && problem.code.starts_with("NAME");
    if is_missing {
        no_address(&Value::Null, host, notebook);
    }
    is_missing
}
