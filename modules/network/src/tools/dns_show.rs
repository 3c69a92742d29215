//! `net_dns_show`: which servers are asked for names, who has set them, and where that is changed.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::{Output, prelude::*};

use crate::dns::hosts::{self, Entry, HOSTS, NSSWITCH};
use crate::dns::resolv_conf::{self, MOST_SERVERS, RESOLV_CONF};
use crate::dns::{owner, resolved};
use crate::links::{self, LINKS};
use crate::managers::{self, Managers, NMCLI_DEVICES};
use crate::name;
use crate::public_files::{self, RESOLVED};

/// Prints where the symlink leads, also where nothing is there.
pub(crate) const LEADS_TO: CommandLine =
    CommandLine::new("readlink --canonicalize-missing --no-newline -- /etc/resolv.conf");

/// Prints the addresses, routes and servers that NetworkManager has for each device, a line for each value. Not every version
/// knows each of the fields by itself.
const NMCLI_SERVERS: CommandLine =
    CommandLine::new("nmcli --terse --fields GENERAL.DEVICE,IP4,IP6 device show");

/// The address at which systemd-resolved answers.
const STUB: &str = "127.0.0.53";

/// So many links are asked for the settings of their own.
const MOST_LINKS: usize = 8;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DnsArgs {
    /// Its entries in /etc/hosts
    name: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Dns {
    resolv_conf: File,
    /// The sources of names, of nsswitch.conf(5).
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<Vec<Entry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved: Option<Resolved>,
    /// The servers that NetworkManager knows of, where systemd-resolved doesn't run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    network_manager: Vec<Link>,
}

#[derive(Serialize)]
struct File {
    #[serde(skip_serializing_if = "Option::is_none")]
    symlink_to: Option<String>,
    owner: &'static str,
    set_in: &'static str,
    servers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    search: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
}

#[derive(Serialize)]
struct Resolved {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    servers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    domains: Vec<String>,
    /// The servers that are asked where no others are set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fallback: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dnssec: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dns_over_tls: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<Link>,
}

#[derive(Debug, Default, Serialize)]
struct Link {
    name: String,
    servers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    domains: Vec<String>,
    /// The server that was asked last.
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    /// Whether names of no link's domain are asked here.
    #[serde(skip_serializing_if = "Option::is_none")]
    default_route: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dnssec: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dns_over_tls: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    managed_by: Option<String>,
}

pub(crate) fn command_grants() -> [CommandGrant; 6] {
    [
        LEADS_TO.read("whether resolv.conf is a symlink of the program that writes it"),
        NMCLI_SERVERS.read("name servers of NetworkManager"),
        resolved::IS_ACTIVE.read("whether systemd-resolved runs"),
        resolved::MANAGER.read("name servers of systemd-resolved"),
        resolved::LINK.read("name servers of one interface"),
        resolved::LINK_SERVERS.read("which interface has a name server at a loopback address"),
    ]
}

pub(crate) fn path_grants() -> Vec<PathGrant> {
    let files = [
        RESOLV_CONF,
        "/usr/lib/systemd/resolv.conf",
        "/run/NetworkManager/*.conf",
        "/run/resolvconf/*",
        "/run/netconfig/*",
        "/run/connman/resolv.conf",
        "/mnt/wsl/resolv.conf",
    ];
    let resolv = files.map(|glob| PathGrant::read(glob, "name servers"));
    let mut grants = Vec::from(resolv);
    grants.extend(public_files::grants("/run/systemd/resolve/*.conf", RESOLVED, "name servers"));
    grants.push(PathGrant::read(HOSTS, "addresses of names that no server is asked for"));
    grants.push(PathGrant::read(NSSWITCH, "the order in which sources of names are asked"));
    grants
}

pub(crate) fn net_dns_show(args: DnsArgs, cx: &Context) -> Result<Noted<Dns>> {
    let asked = args.name.as_deref().map(name::check).transpose()?;
    let commands =
        [LEADS_TO, resolved::IS_ACTIVE, LINKS, NMCLI_DEVICES, NMCLI_SERVERS].map(CommandLine::command);
    let [leads_to, is_active, links, nmcli, nmcli_servers] = cx.run_each(commands);
    let mut notes = Vec::new();
    let (file, text) = file(leads_to, cx, &mut notes);
    let mut texts = cx.read_all(&[NSSWITCH, HOSTS]).into_iter();
    let sources = texts.next().and_then(Result::ok).and_then(|text| hosts::sources(&text));
    let hosts = texts.next().and_then(Result::ok);
    let is_active = is_active.is_ok_and(|output| output.exit_code == 0);
    let links = links.and_then(links::parse).unwrap_or_default();
    let numbers: Vec<(u64, &str)> = links.iter().map(|link| (link.ifindex, link.ifname.as_str())).collect();
    let managers = Managers::look(cx, nmcli, &numbers);
    let resolved = if is_active { Some(of_resolved(cx, &numbers, &managers, &mut notes)) } else { None };
    notes.extend(faults(&file, &text, sources.as_deref(), is_active));
    let network_manager = match nmcli_servers {
        Ok(output) if !is_active && output.exit_code == 0 => of_network_manager(&output),
        _ => Vec::new(),
    };
    let hosts = asked.map(|asked| hosts::entries(&hosts.unwrap_or_default(), asked));
    Ok(Noted { data: Dns { resolv_conf: file, sources, hosts, resolved, network_manager }, notes })
}

/// The file, and its text where it could be read.
fn file(leads_to: Result<Output>, cx: &Context, notes: &mut Vec<String>) -> (File, Option<String>) {
    let target =
        leads_to.ok().filter(|output| output.exit_code == 0).map(|output| output.text().into_owned());
    let target = target.filter(|target| !target.is_empty() && target != RESOLV_CONF);
    let path = target.as_deref().unwrap_or(RESOLV_CONF);
    let text = match public_files::read(path, RESOLVED, cx) {
        Ok(text) => Some(text),
        Err(problem) if problem.category == linux_sysadmin_sdk::Category::NotFound => {
            notes.push(match &target {
                Some(target) => {
                    format!("{RESOLV_CONF} is a symlink to {target}, which isn't there: no server is set")
                }
                None => format!("there is no {RESOLV_CONF}: no server is set"),
            });
            None
        }
        Err(problem) => {
            notes.push(format!("{path} can't be read: {}", problem.message));
            None
        }
    };
    let found = text.as_deref().map(resolv_conf::parse).unwrap_or_default();
    let owner = owner::of(target.as_deref(), text.as_deref().unwrap_or_default());
    let (owner, set_in) = owner.map_or(("nobody", "the file itself"), |owner| (owner.name, owner.set_in));
    let resolv_conf::ResolvConf { servers, search, options } = found;
    (File { symlink_to: target, owner, set_in, servers, search, options }, text)
}

/// What is wrong by itself, whatever is asked for.
fn faults(file: &File, text: &Option<String>, sources: Option<&str>, is_active: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let asks = |source: &str| sources.is_none_or(|all| all.split(' ').any(|one| one == source));
    let has_stub = file.servers.iter().any(|server| server == STUB);
    if text.is_some() && file.servers.is_empty() {
        notes.push(format!("{RESOLV_CONF} names no server, so that 127.0.0.1 is asked"));
    }
    if has_stub && !is_active {
        notes.push(format!(
            "{STUB} is asked, and systemd-resolved, which answers there, isn't running (svc_status tells why)"
        ));
    }
    if let Some(left_out) = file.servers.get(MOST_SERVERS..).filter(|rest| !rest.is_empty()) {
        notes
            .push(format!("only the first {MOST_SERVERS} servers are used, and not {}", left_out.join(", ")));
    }
    if !asks("dns") && !asks("resolve") {
        let sources = sources.unwrap_or_default();
        notes.push(format!(
            "{NSSWITCH} has neither dns nor resolve for hosts ({sources}): no server is ever asked"
        ));
    }
    if is_active && !has_stub && file.owner != "systemd-resolved" && !(sources.is_some() && asks("resolve")) {
        notes.push(format!(
            "systemd-resolved runs, and programs don't ask it: they ask the servers of {RESOLV_CONF}"
        ));
    }
    notes
}

fn of_resolved(
    cx: &Context,
    links: &[(u64, &str)],
    managers: &Managers,
    notes: &mut Vec<String>,
) -> Resolved {
    let settings = match cx.run(resolved::MANAGER.command()) {
        Ok(output) if output.exit_code == 0 || !output.stdout.is_empty() => resolved::settings(&output),
        Ok(output) => {
            let said = output.error_text();
            notes.push(format!("systemd-resolved runs, and doesn't tell its servers: busctl said {said:?} (it prints JSON since version 240)"));
            resolved::Settings::default()
        }
        Err(problem) => {
            notes.push(format!("systemd-resolved runs, and doesn't tell its servers: {}", problem.message));
            resolved::Settings::default()
        }
    };
    let settings = settings.placed(&links.iter().map(|(number, _)| *number).collect::<Vec<_>>(), cx);
    let numbers = settings.links();
    let asked = &numbers[..numbers.len().min(MOST_LINKS)];
    let outputs = cx.run_all(asked.iter().map(|number| resolved::LINK.with([number.to_string()])).collect());
    let mut own = BTreeMap::new();
    for (number, output) in asked.iter().zip(outputs) {
        own.insert(*number, output.map(|output| resolved::link(&output)).unwrap_or_default());
    }
    let of = |all: &[(u64, String)], number: u64| -> Vec<String> {
        all.iter().filter(|(link, _)| *link == number).map(|(_, value)| value.clone()).collect()
    };
    let link = |number: &u64| {
        let own = own.remove(number).unwrap_or_default();
        let name = links.iter().find(|(index, _)| index == number).map(|(_, name)| (*name).to_owned());
        let name = name.unwrap_or_else(|| format!("number {number}"));
        let servers = of(&settings.servers, *number);
        Link {
            managed_by: managers.names(&name),
            current: own.current.filter(|_| servers.len() > 1),
            domains: of(&settings.domains, *number),
            default_route: own.default_route,
            // What holds for the whole machine isn't told again.
            dnssec: own.dnssec.filter(|own| Some(own) != settings.dnssec.as_ref()),
            dns_over_tls: own.dns_over_tls.filter(|own| Some(own) != settings.dns_over_tls.as_ref()),
            name,
            servers,
        }
    };
    let links: Vec<Link> = numbers.iter().map(link).collect();
    let has_own = !settings.servers.is_empty();
    Resolved {
        servers: of(&settings.servers, 0),
        domains: of(&settings.domains, 0),
        links,
        fallback: if has_own { Vec::new() } else { settings.fallback },
        dnssec: settings.dnssec,
        dns_over_tls: settings.dns_over_tls,
    }
}

/// Reads the output of [`NMCLI_SERVERS`]: `GENERAL.DEVICE:eth0`, `IP4.DNS[1]:192.0.2.53`.
fn of_network_manager(output: &Output) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    for line in output.text().lines() {
        let fields = managers::terse(line);
        let [key, value @ ..] = &fields[..] else { continue };
        // nmcli leaves the colons of an IPv6 address as they are in this form.
        let value = value.join(":");
        let key = key.split('[').next().unwrap_or(key);
        if key == "GENERAL.DEVICE" {
            links.push(Link { name: value, ..Link::default() });
            continue;
        }
        let Some(link) = links.last_mut().filter(|_| !value.is_empty()) else { continue };
        match key {
            "IP4.DNS" | "IP6.DNS" => link.servers.push(value),
            "IP4.DOMAIN" | "IP6.DOMAIN" | "IP4.SEARCHES" | "IP6.SEARCHES"
                if !link.domains.contains(&value) =>
            {
                link.domains.push(value);
            }
            _ => {}
        }
    }
    links.retain(|link| !link.servers.is_empty() || !link.domains.is_empty());
    links
}
