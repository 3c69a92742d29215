//! `net_dns_modify`: sets name servers and search domains where they are set today, by the program that writes resolv.conf.

use linux_sysadmin_sdk::{Category, Privilege, prelude::*, text};

use super::dns_show::LEADS_TO;
use crate::change::cidr;
use crate::change::edit::{self, Dns};
use crate::change::files;
use crate::change::owner::{Kept, Owner};
use crate::dns::resolv_conf::{self, MOST_SERVERS, RESOLV_CONF};
use crate::dns::{owner, resolvconf, resolved};
use crate::links::{self, LINKS, Link};
use crate::managers::{Managers, NMCLI_DEVICES};
use crate::name;
use crate::probe::dns::{self, NO_ANSWER};
use crate::public_files::{self, RESOLVED};
use crate::target::ADDRESSES;

/// The drop-in for servers of the whole machine.
const RESOLVED_DIRECTORY: &str = "/etc/systemd/resolved.conf.d";
const RESOLVED_OWN: &str = "/etc/systemd/resolved.conf.d/90-linux-sysadmin.conf";
const RESOLVED_SERVICE: &str = "systemd-resolved.service";
/// Succeeds where the file is there to which the symlink leads.
const IS_THERE: CommandLine =
    CommandLine::new("readlink --canonicalize-existing --no-newline -- /etc/resolv.conf");
const RESTART_RESOLVED: CommandLine = CommandLine::new("systemctl restart -- systemd-resolved.service");

/// The addresses at which systemd-resolved itself answers.
const STUBS: [&str; 2] = ["127.0.0.53", "127.0.0.54"];

/// So many servers and domains are taken. No resolver asks more of them in turn.
const MOST: usize = 8;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DnsModifyArgs {
    /// Name servers
    servers: Option<Vec<String>>,
    /// Search domains
    search: Option<Vec<String>>,
    /// Only for this interface
    interface: Option<String>,
    /// Name that must resolve
    check: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Outcome {
    /// What a dry run would have done.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    #[serde(flatten)]
    dns: Dns,
    /// What was set before, where it was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    was: Option<Dns>,
    owner: String,
    set_in: String,
}

/// What a change of name servers comes to.
struct Place {
    owner: String,
    now: Dns,
    kind: Kind,
}

enum Kind {
    /// The file itself, which a person edits, with its text.
    Plain(String),
    /// systemd-resolved for the whole machine.
    Resolved,
    /// The interface's owner.
    Interface(String, Owner),
    /// ifupdown's file, whose servers resolvconf is handed.
    Stanza(String, Owner),
    /// resolvconf's base file, with its text.
    Base(String),
}

pub(crate) fn command_grants() -> Vec<CommandGrant> {
    let restart = RESTART_RESOLVED.change(Risk::Moderate, "to have systemd-resolved read its servers");
    let is_there = IS_THERE.read("whether the file is there to which resolv.conf leads");
    resolvconf::command_grants().into_iter().chain([restart, is_there]).collect()
}

pub(crate) fn path_grants() -> Vec<PathGrant> {
    let reason = "name servers";
    let own = [RESOLV_CONF, RESOLVED_DIRECTORY, RESOLVED_OWN].map(|path| PathGrant::write(path, reason));
    own.into_iter().chain(resolvconf::path_grants()).collect()
}

pub(crate) fn net_dns_modify(args: DnsModifyArgs, cx: &Context) -> Result<Noted<Outcome>> {
    if args.servers.is_none() && args.search.is_none() {
        let message = "neither servers nor search is given: expected at least one of them";
        return Err(Problem::validation("NOTHING_ASKED", message));
    }
    let servers = args.servers.as_deref().map(servers).transpose()?;
    let search = args.search.as_deref().map(domains).transpose()?;
    let check = args.check.as_deref().map(name::check).transpose()?;
    let place = place(args.interface.as_deref(), cx)?;
    let dns = Dns {
        servers: servers.unwrap_or_else(|| place.now.servers.clone()),
        search: search.unwrap_or_else(|| place.now.search.clone()),
    };
    refuse_what_breaks(&place, &dns)?;
    if dns == place.now {
        let notes = vec!["it is so already: nothing was changed".to_owned()];
        let set_in = place.set_in();
        return Ok(Noted {
            data: Outcome { would: None, dns, was: None, owner: place.owner, set_in },
            notes,
        });
    }
    let mut notes = Vec::new();
    let new: Vec<String> =
        dns.servers.iter().filter(|server| !place.now.servers.contains(server)).cloned().collect();
    let (mut change, set_in, was, owner) = plan(place, &dns, cx)?;
    change = answering(change, &new, &dns, check, &mut notes, cx);
    if let Some(check) = check {
        // The host undoes the steps before this one where it fails.
        change = change.step(Step::run(ADDRESSES.with([check])));
    }
    let applied = cx.apply(change)?;
    let data = Outcome { would: applied.dry_run.then_some("set"), dns, was: Some(was), owner, set_in };
    Ok(Noted { data, notes })
}

/// The addresses of servers, each once.
fn servers(asked: &[String]) -> Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    for one in asked {
        let address = cidr::one_address("servers", one)?.to_string();
        if !found.contains(&address) {
            found.push(address);
        }
    }
    at_most("servers", found)
}

/// Domains in small letters, each once.
fn domains(asked: &[String]) -> Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    for one in asked {
        let refused = |problem: Problem| {
            Problem::validation(
                "INVALID_DOMAIN",
                problem.message.replace("no host's name", "no search domain"),
            )
        };
        let domain = name::check(one).map_err(refused)?.to_ascii_lowercase();
        if !found.contains(&domain) {
            found.push(domain);
        }
    }
    at_most("search", found)
}

fn at_most(argument: &str, found: Vec<String>) -> Result<Vec<String>> {
    if found.len() <= MOST {
        return Ok(found);
    }
    let message = format!("{argument} has {} items: expected at most {MOST}", found.len());
    Err(Problem::validation("TOO_MANY", message))
}

impl Place {
    fn set_in(&self) -> String {
        match &self.kind {
            Kind::Plain(_) => RESOLV_CONF.to_owned(),
            Kind::Resolved => RESOLVED_OWN.to_owned(),
            Kind::Base(_) => resolvconf::BASE.to_owned(),
            Kind::Interface(device, _) | Kind::Stanza(device, _) => device.clone(),
        }
    }
}

/// Finds who sets the servers, and what they are now.
fn place(interface: Option<&str>, cx: &Context) -> Result<Place> {
    let commands = [LEADS_TO, resolved::IS_ACTIVE, LINKS, NMCLI_DEVICES].map(CommandLine::command);
    let [leads_to, is_active, links, nmcli] = cx.run_each(commands);
    let target = leads_to?.success("readlink")?.text().into_owned();
    let target = Some(target).filter(|target| !target.is_empty() && target != RESOLV_CONF);
    let links = links::parse(links?)?;
    let numbers: Vec<(u64, &str)> = links.iter().map(|link| (link.ifindex, link.ifname.as_str())).collect();
    let managers = Managers::look(cx, nmcli, &numbers);
    let named = interface.map(|name| named(name, &links)).transpose()?;
    let text = match public_files::read(target.as_deref().unwrap_or(RESOLV_CONF), RESOLVED, cx) {
        Ok(text) => Some(text),
        Err(problem) if problem.category == Category::NotFound => None,
        // The symlink leads to where no program that is known has its file.
        Err(problem) if target.is_some() && problem.code == "CAPABILITY_DENIED" => {
            (cx.run(IS_THERE.command())?.exit_code == 0).then(String::new)
        }
        Err(problem) => return Err(problem),
    };
    let is_active = is_active.is_ok_and(|output| output.exit_code == 0);
    let of_interface = |link: &Link| -> Result<(String, Owner)> {
        Ok((link.ifname.clone(), Owner::of(link, &managers, cx)?))
    };
    match owner::of(target.as_deref(), text.as_deref().unwrap_or_default())
        .map(|owner| (owner.name, owner.set_in))
    {
        None => plain(target, text, named),
        Some(("systemd-resolved", _)) if !is_active => {
            let message = format!("{RESOLV_CONF} is systemd-resolved's, which isn't running");
            Err(Problem::new("RESOLVER_DOWN", Category::State, message)
                .remedy("svc_status service=systemd-resolved tells why, and svc_start starts it"))
        }
        Some(("systemd-resolved", _)) => {
            let settings = resolved::settings(&cx.run(resolved::MANAGER.command())?);
            let settings = settings.placed(&links.iter().map(|link| link.ifindex).collect::<Vec<_>>(), cx);
            let having = settings.servers.iter().map(|(number, _)| *number).filter(|number| *number > 0);
            let having: Vec<u64> = having.collect();
            let link = match named {
                Some(link) => Some(link),
                None => only(links.iter().filter(|link| having.contains(&link.ifindex)))?,
            };
            match link {
                Some(link) => {
                    let (device, owner) = of_interface(link)?;
                    by_interface("systemd-resolved", device, owner)
                }
                None => {
                    let of = |all: &[(u64, String)]| -> Vec<String> {
                        all.iter().filter(|(link, _)| *link == 0).map(|(_, value)| value.clone()).collect()
                    };
                    let now = Dns { servers: of(&settings.servers), search: of(&settings.domains) };
                    Ok(Place { owner: "systemd-resolved".to_owned(), now, kind: Kind::Resolved })
                }
            }
        }
        Some(("NetworkManager", _)) => {
            let managed = |link: &&Link| {
                managers.names(&link.ifname).is_some_and(|names| names.contains("NetworkManager"))
            };
            let link = match named {
                Some(link) => link,
                None => only(links.iter().filter(managed))?.ok_or_else(|| {
                    let message =
                        format!("{RESOLV_CONF} is NetworkManager's, which has no active connection");
                    Problem::new("NOT_CONFIGURED", Category::State, message)
                })?,
            };
            let (device, owner) = of_interface(link)?;
            by_interface("NetworkManager", device, owner)
        }
        Some(("resolvconf", set_in)) => {
            if cx.read(resolvconf::OPENRESOLV).is_ok() {
                let set_in = format!("{} (name_servers=), for openresolv", resolvconf::OPENRESOLV);
                return Err(not_supported("resolvconf", &set_in));
            }
            by_resolvconf(named, &links, &managers, set_in, cx)
        }
        Some((owner, set_in)) => Err(not_supported(owner, set_in)),
    }
}

fn named<'a>(name: &str, links: &'a [Link]) -> Result<&'a Link> {
    super::interfaces::check(name)?;
    links.iter().find(|link| link.is_named(name)).ok_or_else(|| super::interfaces::unknown(name, links))
}

fn not_supported(owner: &str, set_in: &str) -> Problem {
    let message = format!("{RESOLV_CONF} is written by {owner}, so that a change of it would be lost");
    Problem::new("OWNER_NOT_SUPPORTED", Category::State, message).remedy(format!("Set it in {set_in}"))
}

/// The only one of some interfaces, None where there is none.
fn only<'a>(mut links: impl Iterator<Item = &'a Link>) -> Result<Option<&'a Link>> {
    let first = links.next();
    let others: Vec<&str> = links.map(|link| link.ifname.as_str()).collect();
    if let Some(first) = first.filter(|_| !others.is_empty()) {
        let names = [&[first.ifname.as_str()], &others[..]].concat();
        let message = format!("several interfaces have name servers of their own: {}", text::list(&names, 8));
        return Err(Problem::new("SEVERAL_INTERFACES", Category::State, message).remedy("Name interface"));
    }
    Ok(first)
}

/// A file that belongs to nobody else.
fn plain(target: Option<String>, text: Option<String>, named: Option<&Link>) -> Result<Place> {
    if let Some(target) = target {
        let (code, what) = match text {
            Some(_) => ("RESOLV_CONF_IS_SYMLINK", "of which no program is known that writes it"),
            None => ("RESOLV_CONF_IS_MISSING", "which isn't there"),
        };
        let message = format!("{RESOLV_CONF} is a symlink to {target}, {what}");
        return Err(Problem::new(code, Category::State, message)
            .remedy("Start the program that writes it, or replace the symlink by a file of your own first"));
    }
    if let Some(link) = named {
        let message = format!(
            "{RESOLV_CONF} is a plain file, which holds for all interfaces and not for {} alone",
            link.ifname
        );
        return Err(Problem::validation("INTERFACE_NOT_USED", message));
    }
    let text = text.unwrap_or_default();
    refuse_generated(RESOLV_CONF, &text)?;
    let found = resolv_conf::parse(&text);
    let now = Dns { servers: found.servers, search: found.search };
    Ok(Place { owner: "nobody".to_owned(), now, kind: Kind::Plain(text) })
}

/// Refuses a file that a program writes which isn't known here.
fn refuse_generated(path: &str, text: &str) -> Result<()> {
    if edit::is_generated(text) {
        return Err(files::generated(path));
    }
    Ok(())
}

fn by_interface(writer: &str, device: String, owner: Owner) -> Result<Place> {
    match (owner.name, owner.dns()) {
        (Some("ifupdown"), _) | (None, _) | (_, None) => {
            let who = owner.name.unwrap_or("no program");
            let message = format!("{who} configures {device}, which {writer} isn't told name servers by");
            Err(Problem::new("NOT_CONFIGURED", Category::State, message)
                .remedy("Leave out interface, to set servers for the whole machine"))
        }
        (Some(name), Some(now)) => {
            let owner_name =
                if name.contains(writer) { name.to_owned() } else { format!("{writer}, by {name}") };
            Ok(Place { owner: owner_name, now, kind: Kind::Interface(device, owner) })
        }
    }
}

fn by_resolvconf(
    named: Option<&Link>,
    links: &[Link],
    managers: &Managers,
    set_in: &str,
    cx: &Context,
) -> Result<Place> {
    let is_ifupdowns = |link: &&Link| managers.names(&link.ifname).as_deref() == Some("ifupdown");
    let candidates: Vec<&Link> = match named {
        Some(link) => vec![link],
        None => links.iter().filter(is_ifupdowns).collect(),
    };
    let mut having = Vec::new();
    for link in candidates {
        let owner = Owner::of(link, managers, cx)?;
        let is_named = named.is_some();
        match owner.dns() {
            Some(now) if owner.name == Some("ifupdown") && (is_named || !now.is_empty()) => {
                having.push((link, owner, now));
            }
            _ if is_named => return Err(not_supported("resolvconf", set_in)),
            _ => {}
        }
    }
    only(having.iter().map(|(link, ..)| *link))?;
    if let Some((link, owner, now)) = having.pop() {
        let kind = Kind::Stanza(link.ifname.clone(), owner);
        return Ok(Place { owner: "resolvconf, by ifupdown".to_owned(), now, kind });
    }
    let text = resolvconf::base(cx)?;
    refuse_generated(resolvconf::BASE, &text)?;
    let found = resolv_conf::parse(&text);
    let now = Dns { servers: found.servers, search: found.search };
    Ok(Place { owner: "resolvconf".to_owned(), now, kind: Kind::Base(text) })
}

/// Refuses what would leave the machine without names.
fn refuse_what_breaks(place: &Place, dns: &Dns) -> Result<()> {
    if matches!(place.kind, Kind::Plain(_)) && dns.servers.len() > MOST_SERVERS {
        let message = format!(
            "servers has {} items, of which the C library asks the first {MOST_SERVERS} only",
            dns.servers.len()
        );
        return Err(Problem::validation("TOO_MANY", message));
    }
    if place.owner.starts_with("systemd-resolved")
        && let Some(stub) = dns.servers.iter().find(|server| STUBS.contains(&server.as_str()))
    {
        let message =
            format!("{stub} is systemd-resolved itself, which would ask itself: expected other servers");
        return Err(Problem::validation("INVALID_ADDRESS", message));
    }
    if matches!(place.kind, Kind::Plain(_)) && dns.servers.is_empty() {
        let message = "servers is empty, by which 127.0.0.1 would be asked: expected at least one server";
        return Err(Problem::validation("INVALID_ADDRESS", message));
    }
    Ok(())
}

/// The plan, where it is set, what was set before, and whose it is.
fn plan(place: Place, dns: &Dns, cx: &Context) -> Result<(Change, String, Dns, String)> {
    let set_in = place.set_in();
    let list = |values: &[String]| if values.is_empty() { "none".to_owned() } else { values.join(", ") };
    let summary = format!("Set name servers: {}; search domains: {}", list(&dns.servers), list(&dns.search));
    let change = Change::new(summary);
    let Place { owner, now, kind } = place;
    let with_owner = |kept: Kept, device: String| {
        let set_in = kept.set_in.clone().unwrap_or(device);
        (kept.add_to(change.clone()), set_in)
    };
    let (change, set_in) = match kind {
        Kind::Plain(text) => {
            let write = Step::write(RESOLV_CONF, resolv_conf::with(&text, &dns.servers, &dns.search));
            (change.step(write), set_in)
        }
        Kind::Base(text) => {
            let write = Step::write(resolvconf::BASE, resolv_conf::with(&text, &dns.servers, &dns.search));
            let update = resolvconf::update();
            (change.step(write).step(Step::run(update.clone())).after_undo(update), set_in)
        }
        Kind::Resolved => (resolved_plan(change, dns, cx)?, set_in),
        Kind::Interface(device, mut owner) => with_owner(owner.keep_dns(dns, &device, cx)?, device),
        Kind::Stanza(device, mut owner) => {
            let (change, set_in) = with_owner(owner.keep_dns(dns, &device, cx)?, device.clone());
            (change.step(resolvconf::record(&device, dns, cx)), set_in)
        }
    };
    Ok((change, set_in, now, owner))
}

fn resolved_plan(mut change: Change, dns: &Dns, cx: &Context) -> Result<Change> {
    let root = cx.files_as(Privilege::Root);
    refuse_edited(root.read(RESOLVED_OWN))?;
    if root.stat_all(&[RESOLVED_DIRECTORY]).remove(0)?.is_none() {
        change = change.step(Step::make_directory(RESOLVED_DIRECTORY, 0o755));
    }
    // An empty value takes back what other files say.
    let mut lines = vec!["[Resolve]".to_owned()];
    for (name, values) in [("DNS", &dns.servers), ("Domains", &dns.search)] {
        lines.push(format!("{name}="));
        lines.extend((!values.is_empty()).then(|| format!("{name}={}", values.join(" "))));
    }
    let restart = RESTART_RESOLVED.command().as_root();
    Ok(change
        .step(Step::write(RESOLVED_OWN, edit::text_of(&lines)))
        .step(Step::run(restart.clone()).uninterruptible())
        .after_undo(restart)
        .affects(RESOLVED_SERVICE))
}

/// Refuses a drop-in of the tools with lines that aren't theirs, since it is written anew.
fn refuse_edited(text: Result<String>) -> Result<()> {
    let is_own = |line: &str| {
        let line = line.trim();
        line.is_empty() || line == "[Resolve]" || line.starts_with("DNS=") || line.starts_with("Domains=")
    };
    match text {
        Ok(text) if text.lines().all(is_own) => Ok(()),
        Ok(_) => {
            let message = format!(
                "{RESOLVED_OWN} has other lines than DNS= and Domains=: somebody has edited it, and a change by this tool \
                 would lose that"
            );
            Err(Problem::new("FILE_EDITED", Category::State, message)
                .remedy(format!("Move the other lines to a file of their own in {RESOLVED_DIRECTORY}")))
        }
        Err(problem) if problem.category == Category::NotFound => Ok(()),
        Err(problem) => Err(problem),
    }
}

/// Warns of new servers that don't answer, as far as a program can ask them.
fn answering(
    mut change: Change,
    new: &[String],
    dns: &Dns,
    check: Option<&str>,
    notes: &mut Vec<String>,
    cx: &Context,
) -> Change {
    if dns.servers.is_empty() {
        change =
            change.warning("no server is left here: names resolve only where another interface has servers");
        return change.risk(Risk::High);
    }
    if new.is_empty() {
        return change;
    }
    match dns::ask(new, "NS", check.unwrap_or("."), cx) {
        Ok(answers) => {
            let silent: Vec<&str> = answers
                .iter()
                .filter(|answer| answer.status == NO_ANSWER)
                .map(|answer| answer.server.as_str())
                .collect();
            if silent.is_empty() {
                return change;
            }
            change = change.warning(format!("no answer came from {}", text::list(&silent, 8)));
            if silent.len() == dns.servers.len() {
                change =
                    change.warning("none of the servers answers: no name would resolve").risk(Risk::Critical);
            }
            change
        }
        Err(problem) => {
            let how = if check.is_some() { "" } else { "; check=NAME would undo what breaks" };
            notes.push(format!("whether the servers answer wasn't asked: {}{how}", problem.message));
            change
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_domains_have_one_spelling_and_come_once() {
        let of = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            servers(&of(&["2001:DB8:0::53", "2001:db8::53", "192.0.2.53"])).unwrap(),
            ["2001:db8::53", "192.0.2.53"]
        );
        assert_eq!(domains(&of(&["Corp.Example.", "corp.example"])).unwrap(), ["corp.example"]);
        for bad in ["", "192.0.2.53:53", "dns.example", "0.0.0.0", "-a", "192.0.2.53 192.0.2.54"] {
            assert_eq!(servers(&of(&[bad])).unwrap_err().code, "INVALID_ADDRESS", "{bad}");
        }
        for bad in ["", "a b", "-x", "a..b", "http://a", "*.example", "a\nnameserver 192.0.2.6", "127.1"] {
            assert_eq!(domains(&of(&[bad])).unwrap_err().code, "INVALID_DOMAIN", "{bad:?}");
        }
        let many: Vec<String> = (1..=9).map(|number| format!("192.0.2.{number}")).collect();
        assert_eq!(servers(&many).unwrap_err().code, "TOO_MANY");
    }
}
