//! `net_addresses_modify`: gives an interface an address or takes one away, both now and for the next start.

use std::net::{IpAddr, Ipv4Addr};

use linux_sysadmin_sdk::{Category, prelude::*};

use super::modify::{self, Outcome};
use crate::change::cidr::{self, Cidr};
use crate::change::owner::Owner;
use crate::change::setting::{ADDRESS_PATTERN, Route, Setting};
use crate::change::view::{Reach, View};
use crate::links::{Address, Link};

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Action {
    Add,
    Remove,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct AddressesModifyArgs {
    /// Add or remove it
    action: Action,
    /// Name, as eth0
    interface: String,
    /// As 192.0.2.7/24
    address: String,
}

pub(crate) fn grants() -> [CommandGrant; 1] {
    [CommandGrant::change(ADDRESS_PATTERN, Risk::High, "to add and remove addresses now")]
}

pub(crate) fn net_addresses_modify(args: AddressesModifyArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let address = cidr::interface_address(&args.address)?;
    let view = View::look(address.is_v6(), cx)?;
    let link = view.link(&args.interface)?;
    match args.action {
        Action::Add => add(address, link, &view, cx),
        Action::Remove => remove(address, link, &view, cx),
    }
}

fn words(address: Cidr, link: &Link) -> String {
    format!("{address} dev {}", link.ifname)
}

/// The command that puts back an address as the kernel has it.
fn command(verb: &str, address: Cidr, broadcast: Option<String>, link: &Link, further: &[&str]) -> Command {
    let command = Command::new("ip").args(["address", verb]).arg(address.to_string());
    let command = match broadcast {
        Some(broadcast) => command.args(["broadcast".to_owned(), broadcast]),
        None => command,
    };
    command.args(["dev", &link.ifname]).args(further.iter().copied()).as_root()
}

fn put_back(own: &Address, address: Cidr, link: &Link) -> Command {
    let further: &[&str] = if own.noprefixroute { &["noprefixroute"] } else { &[] };
    command("replace", address, own.broadcast.clone(), link, further)
}

/// The broadcast address of a network of IPv4 that has one.
fn broadcast(address: Cidr) -> Option<String> {
    let IpAddr::V4(own) = address.address else { return None };
    let rest = u32::MAX.checked_shr(u32::from(address.length)).unwrap_or(0);
    (address.length < 31).then(|| Ipv4Addr::from(u32::from(own) | rest).to_string())
}

fn add(address: Cidr, link: &Link, view: &View, cx: &Context) -> Result<Noted<Outcome>> {
    modify::check_link(link, &view.links)?;
    let has = |link: &Link| link.addr_info.iter().any(|own| own.local == address.address.to_string());
    if let Some(other) = view.links.iter().find(|other| has(other) && other.ifname != link.ifname) {
        let message = format!("{} has {} already", other.ifname, address.address);
        return Err(Problem::new("ADDRESS_IN_USE", Category::State, message)
            .remedy("Remove it there first, or choose another one"));
    }
    let runs = link.addr_info.iter().any(|own| own.cidr() == Some(address));
    if let Some(own) = link.addr_info.iter().filter(|_| !runs && has(link)).find_map(Address::cidr) {
        let message = format!("{} has that address with another length, {own}", link.ifname);
        return Err(Problem::new("ADDRESS_IN_USE", Category::State, message).remedy("Remove that one first"));
    }
    let mut owner = Owner::of(link, &view.managers, cx)?;
    let kept = owner.keep(&[], &[Setting::Address(address)], &link.ifname, cx)?;
    let mut notes = Vec::new();
    let is_kept = kept.steps.is_empty();
    match (runs, is_kept) {
        (true, true) => notes.push("it has this address already: nothing was changed".to_owned()),
        (true, false) => {
            notes.push("it had this address already, which wasn't set for the next start".to_owned())
        }
        (false, true) if kept.set_in.is_some() => {
            notes.push("it was set for the next start already, and the interface hadn't got it".to_owned());
        }
        _ => {}
    }
    let outcome = modify::outcome(words(address, link), &owner, kept.set_in.clone(), link, &mut notes);
    if runs && is_kept {
        return Ok(Noted { data: outcome, notes });
    }
    let applies = kept.applies;
    let mut change = kept.add_to(Change::new(format!("Add the address {address} to {}", link.ifname)));
    if !runs && !applies {
        let add = command("add", address, broadcast(address), link, &[]);
        change = change.step(Step::run(add).undo(command("del", address, None, link, &[])));
    }
    if !runs || applies {
        // A second address of a network that the interface is in takes no packet from anybody.
        let is_new = !link.networks().any(|own| own == address.network());
        let reach = Reach { address: is_new.then_some((address, true)), ..Reach::default() };
        change = view.guarded(change, &reach);
    }
    modify::apply(change, "add", outcome, notes, cx)
}

fn remove(address: Cidr, link: &Link, view: &View, cx: &Context) -> Result<Noted<Outcome>> {
    let own = link.addr_info.iter().find(|own| own.cidr() == Some(address));
    let mut owner = Owner::of(link, &view.managers, cx)?;
    let kept = owner.keep(&[Setting::Address(address)], &[], &link.ifname, cx)?;
    let mut notes = Vec::new();
    let outcome = Outcome::removed(words(address, link), &owner, kept.set_in.clone());
    let change = Change::new(format!("Remove the address {address} from {}", link.ifname));
    let Some(own) = own else {
        if kept.steps.is_empty() {
            notes.push(format!("{} hasn't got this address: nothing was changed", link.ifname));
            return Ok(Noted { data: outcome, notes });
        }
        notes.push("it was set for the next start, and the interface hadn't got it".to_owned());
        return modify::apply(kept.add_to(change), "remove", outcome, notes, cx);
    };
    if own.address.is_some() {
        let message = format!(
            "{address} of {} belongs to a link from point to point, whose program sets it",
            link.ifname
        );
        return Err(Problem::new("ADDRESS_NOT_SIMPLE", Category::State, message));
    }
    if own.dynamic {
        notes.push("DHCP or a router gave it, and may give it again".to_owned());
    } else if kept.set_in.is_none()
        && let Some(name) = owner.name
    {
        notes.push(format!("{name} doesn't set this address: it was added by somebody else"));
    }
    let along = along(address, link, view)?;
    let applies = kept.applies;
    let mut change = if view.guards_removals() { kept.add_to(change) } else { kept.add_steps(change) };
    let mut step = Step::run(command("del", address, None, link, &[])).undo(put_back(own, address, link));
    for (other, cidr) in &along.addresses {
        step = step.undo(put_back(other, *cidr, link));
    }
    for route in &along.routes {
        step = step.undo(route.command("replace"));
    }
    if !along.addresses.is_empty() {
        let list: Vec<String> = along.addresses.iter().map(|(_, cidr)| cidr.to_string()).collect();
        change = change.warning(format!(
            "the kernel may take away with it, as secondary addresses of the same network: {}",
            list.join(", ")
        ));
    }
    if !along.routes.is_empty() {
        let list: Vec<String> = along.routes.iter().map(Route::in_words).collect();
        change =
            change.warning(format!("these routes need it: {}", linux_sysadmin_sdk::text::list(&list, 6)));
    }
    let others = along.addresses.iter().map(|(_, cidr)| *cidr).collect();
    let reach =
        Reach { removed: along.routes, address: Some((address, false)), along: others, ..Reach::default() };
    // The owner that applies the change itself puts back what it has set itself.
    let change = view.guarded(if applies { change } else { change.step(step) }, &reach);
    modify::apply(change, "remove", outcome, notes, cx)
}

/// What goes along with an address.
struct Along<'a> {
    addresses: Vec<(&'a Address, Cidr)>,
    routes: Vec<Route>,
}

/// The kernel removes the routes that have the address as their source, and all routes of IPv4 with the interface's last address.
/// Those whose gateway is in its network stay, and lead nowhere.
fn along<'a>(address: Cidr, link: &'a Link, view: &View) -> Result<Along<'a>> {
    let of_family = link.addr_info.iter().filter_map(|own| Some((own, own.cidr()?)));
    let of_family: Vec<_> =
        of_family.filter(|(_, cidr)| cidr.is_v6() == address.is_v6() && *cidr != address).collect();
    let is_last = of_family.is_empty() && !address.is_v6();
    let network = address.network();
    let is_covered = |via: IpAddr| of_family.iter().any(|(_, cidr)| cidr.contains(via));
    let mut routes = Vec::new();
    for printed in view.routes.iter().filter(|printed| !printed.is_kernels()) {
        // What isn't an ordinary route has no interface, or is the kernel's own.
        if printed.to(view.is_v6).is_none() {
            continue;
        }
        match printed.route(view.is_v6) {
            Ok(route) if route.dev == link.ifname => {
                let needs = is_last
                    || route.src == Some(address.address)
                    || route.via.is_some_and(|via| network.contains(via) && !is_covered(via));
                if needs {
                    routes.push(route);
                }
            }
            Err(why) if is_last && printed.is_through(&link.ifname) => {
                let message = format!(
                    "a route of {} would go with its last address, and can't be put back: {why}",
                    link.ifname
                );
                return Err(Problem::new("ROUTE_NOT_SIMPLE", Category::State, message));
            }
            _ => {}
        }
    }
    let at = link.addr_info.iter().position(|own| own.cidr() == Some(address)).unwrap_or_default();
    let behind = link.addr_info.iter().skip(at + 1).filter_map(|own| Some((own, own.cidr()?)));
    let addresses = behind.filter(|(_, cidr)| !cidr.is_v6() && cidr.network() == network).collect();
    Ok(Along { addresses, routes })
}
