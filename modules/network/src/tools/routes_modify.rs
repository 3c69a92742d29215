//! `net_routes_modify`: adds, removes or replaces a route, both now and for the next start.

use std::net::IpAddr;

use linux_sysadmin_sdk::{Category, prelude::*, text};

use super::modify::{self, Outcome};
use crate::change::cidr::{self, Cidr};
use crate::change::owner::Owner;
use crate::change::setting::{Printed, ROUTE_PATTERN, Route, Setting};
use crate::change::view::{Reach, View};
use crate::links::Link;

/// The highest number of a table that isn't one of the kernel's own (253 to 255), or above them.
const OWN_TABLES: std::ops::RangeInclusive<u32> = 253..=255;

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Action {
    Add,
    Remove,
    Replace,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RoutesModifyArgs {
    /// What to do
    action: Action,
    /// CIDR or default
    to: String,
    /// Gateway address
    via: Option<String>,
    /// Name, as eth0
    interface: Option<String>,
    /// Lower wins
    metric: Option<i64>,
    /// Number of a table
    table: Option<i64>,
}

/// The arguments, checked.
struct Asked {
    to: Cidr,
    via: Option<IpAddr>,
    interface: Option<String>,
    metric: Option<u32>,
    table: Option<u32>,
}

pub(crate) fn grants() -> [CommandGrant; 1] {
    [CommandGrant::change(ROUTE_PATTERN, Risk::High, "to add and remove routes now")]
}

pub(crate) fn net_routes_modify(args: RoutesModifyArgs, cx: &Context) -> Result<Noted<Outcome>> {
    let action = args.action;
    let asked = asked(args)?;
    let view = View::look(asked.to.is_v6(), cx)?;
    match action {
        Action::Add => add(&asked, &view, cx),
        Action::Remove => remove(&asked, &view, cx),
        Action::Replace => replace(&asked, &view, cx),
    }
}

fn asked(args: RoutesModifyArgs) -> Result<Asked> {
    let via = args.via.as_deref().map(|via| cidr::one_address("via", via)).transpose()?;
    let to = cidr::destination(&args.to, via)?;
    if via.is_some_and(|via| via.is_ipv6() != to.is_v6()) {
        let message =
            format!("to is {to} and via is of the other family: expected both of IPv4, or both of IPv6");
        return Err(Problem::validation("MIXED_FAMILIES", message));
    }
    if to.address.is_multicast() || to.address.is_loopback() {
        let message =
            format!("{to} isn't reached by routes of one's own: expected a network of other machines");
        return Err(Problem::validation("INVALID_NETWORK", message));
    }
    let number = |name: &str, number: Option<i64>| {
        let checked = number.map(u32::try_from).transpose();
        checked.map_err(|_| {
            let message = format!("{name} is {}: expected 0 to {}", number.unwrap_or_default(), u32::MAX);
            Problem::validation("INVALID_NUMBER", message)
        })
    };
    let metric = number("metric", args.metric)?.filter(|metric| *metric > 0);
    let table = number("table", args.table)?.filter(|table| !matches!(table, 0 | 254));
    if let Some(table) = table.filter(|table| OWN_TABLES.contains(table)) {
        let message =
            format!("table {table} is the kernel's own: expected another number, or none for the table main");
        return Err(Problem::validation("INVALID_NUMBER", message));
    }
    Ok(Asked { to, via, interface: args.interface, metric, table })
}

impl Asked {
    /// The interface that was named, or else the one through which the gateway is reached.
    ///
    /// Problems: `INTERFACE_NOT_FOUND`, `GATEWAY_UNREACHABLE`, `INTERFACE_NOT_GIVEN`.
    fn link<'a>(&self, view: &'a View) -> Result<&'a Link> {
        if let Some(name) = &self.interface {
            return view.link(name);
        }
        match self.via {
            Some(via) => view.link_of(via).ok_or_else(|| unreachable(via, None)),
            None => Err(Problem::validation(
                "INTERFACE_NOT_GIVEN",
                "neither via nor interface is given: expected the gateway, or the interface on which the machines are",
            )),
        }
    }

    /// The new route.
    fn route(&self, view: &View) -> Result<Route> {
        let link = self.link(view)?;
        modify::check_link(link, &view.links)?;
        if link.state() == "down" {
            let message = format!("{} is down, and the kernel takes no route through it", link.ifname);
            return Err(Problem::new("INTERFACE_DOWN", Category::State, message)
                .remedy(format!("Bring {} up first, by the program that manages it", link.ifname)));
        }
        if let Some(via) = self.via {
            let own =
                view.links.iter().find(|link| link.addr_info.iter().any(|own| own.local == via.to_string()));
            if let Some(own) = own {
                let message = format!(
                    "via is {via}, which is this machine's own address on {}: expected another machine's",
                    own.ifname
                );
                return Err(Problem::validation("GATEWAY_IS_OWN", message));
            }
            let is_link_local = matches!(via, IpAddr::V6(via) if via.segments()[0] & 0xffc0 == 0xfe80);
            let is_reached = view.link_of(via).is_some_and(|found| found.ifname == link.ifname);
            if !is_reached && !is_link_local {
                return Err(unreachable(via, Some(link)));
            }
        }
        Ok(Route {
            to: self.to,
            via: self.via,
            dev: link.ifname.clone(),
            src: None,
            metric: self.metric,
            table: self.table,
            protocol: Some("static".to_owned()),
            is_onlink: false,
        })
    }

    /// The routes of the kernel that are meant.
    fn meant<'a>(
        &self,
        view: &'a View,
        by_gateway: bool,
    ) -> Result<Vec<(&'a Printed, std::result::Result<Route, String>)>> {
        let name =
            self.interface.as_deref().map(|name| view.link(name)).transpose()?.map(|link| &link.ifname);
        let all = view
            .routes_to(self.to, self.table)
            .into_iter()
            .map(|printed| (printed, printed.route(view.is_v6)));
        let is_meant = |(_, route): &(&Printed, std::result::Result<Route, String>)| {
            let Ok(route) = route else { return true };
            let is_gateway = !by_gateway || self.via.is_none() || self.via == route.via;
            let is_link = !by_gateway || name.is_none_or(|name| *name == route.dev);
            is_gateway && is_link && self.metric.is_none_or(|metric| route.metric == Some(metric))
        };
        Ok(all.filter(is_meant).collect())
    }
}

fn unreachable(via: IpAddr, link: Option<&Link>) -> Problem {
    let place = match link {
        None => "no interface of this machine is in its network".to_owned(),
        Some(link) => {
            let networks: Vec<String> = link
                .networks()
                .filter(|network| network.is_v6() == via.is_ipv6())
                .map(|network| network.to_string())
                .collect();
            let networks = if networks.is_empty() { "none".to_owned() } else { networks.join(", ") };
            format!("it isn't in a network of {}, which has {networks}", link.ifname)
        }
    };
    let problem = Problem::new(
        "GATEWAY_UNREACHABLE",
        Category::State,
        format!("the gateway {via} can't be reached directly: {place}"),
    );
    problem.remedy("Name a gateway in a network of this machine: net_interfaces tells its addresses")
}

fn add(asked: &Asked, view: &View, cx: &Context) -> Result<Noted<Outcome>> {
    let route = asked.route(view)?;
    let link = view.link(&route.dev)?;
    let mut owner = Owner::of(link, &view.managers, cx)?;
    let setting = Setting::Route(route.clone());
    // The owner may have given the route a metric of its own.
    let is_set = owner.place_of(&setting).is_some();
    let mut runs = false;
    for (_, other) in asked.meant(view, false)? {
        let Ok(other) = other else { continue };
        if other.is_same_as(&route) || is_set && route.has_set(&other) && other.dev == route.dev {
            runs = true;
        } else if other.is_for(&route) {
            let message = format!("there is a route to it: {}", other.in_words());
            return Err(Problem::new("ROUTE_EXISTS", Category::State, message)
                .remedy("action=replace changes it; another metric adds a second one, of which the lower metric counts"));
        }
    }
    let kept = owner.keep(&[], &[setting], &link.ifname, cx)?;
    let mut notes = Vec::new();
    let is_kept = kept.steps.is_empty();
    match (runs, is_kept) {
        (true, true) => notes.push("there is this route already: nothing was changed".to_owned()),
        (true, false) => notes.push("it was there already, and not set for the next start".to_owned()),
        (false, true) if is_set => {
            notes.push("it was set for the next start already, and wasn't there".to_owned());
        }
        _ => {}
    }
    let outcome = modify::outcome(route.in_words(), &owner, kept.set_in.clone(), link, &mut notes);
    if runs && is_kept {
        return Ok(Noted { data: outcome, notes });
    }
    let applies = kept.applies;
    let mut change = kept.add_to(Change::new(format!("Add the route {}", route.in_words())));
    if !runs && !applies {
        change = change.step(Step::run(route.command("add")).undo(route.command("del")));
    }
    if !runs || applies {
        change = view.guarded(change, &Reach { added: vec![route], ..Reach::default() });
    }
    modify::apply(change, "add", outcome, notes, cx)
}

fn remove(asked: &Asked, view: &View, cx: &Context) -> Result<Noted<Outcome>> {
    let mut meant = asked.meant(view, true)?;
    if meant.len() > 1 {
        return Err(several(&meant));
    }
    let Some((printed, route)) = meant.pop() else { return remove_setting(asked, view, cx) };
    let route = removable(printed, route)?;
    let link = view.link(&route.dev)?;
    let mut owner = Owner::of(link, &view.managers, cx)?;
    let kept = owner.keep(&[Setting::Route(route.clone())], &[], &link.ifname, cx)?;
    let mut notes = Vec::new();
    if kept.set_in.is_none() {
        notes.push(not_kept(&route, &owner));
    }
    let outcome = Outcome::removed(route.in_words(), &owner, kept.set_in.clone());
    let applies = kept.applies;
    let mut change = kept.add_to(Change::new(format!("Remove the route {}", route.in_words())));
    if !applies {
        change = change.step(Step::run(route.command("del")).undo(route.command("add")));
    }
    let change = view.guarded(change, &Reach { removed: vec![route], ..Reach::default() });
    modify::apply(change, "remove", outcome, notes, cx)
}

/// Removes a route that is set for the next start only.
fn remove_setting(asked: &Asked, view: &View, cx: &Context) -> Result<Noted<Outcome>> {
    let link = match asked.link(view) {
        Ok(link) => link,
        Err(problem) if asked.interface.is_some() => return Err(problem),
        Err(_) => return Ok(nothing(asked)),
    };
    let route = Route {
        to: asked.to,
        via: asked.via,
        dev: link.ifname.clone(),
        src: None,
        metric: asked.metric,
        table: asked.table,
        protocol: None,
        is_onlink: false,
    };
    let mut owner = Owner::of(link, &view.managers, cx)?;
    let kept = owner.keep(&[Setting::Route(route.clone())], &[], &link.ifname, cx)?;
    if kept.steps.is_empty() {
        return Ok(nothing(asked));
    }
    let notes = vec!["it was set for the next start, and wasn't there".to_owned()];
    let outcome = Outcome::removed(route.in_words(), &owner, kept.set_in.clone());
    let summary = format!("Remove the route {}, which is set for the next start", route.in_words());
    modify::apply(kept.add_to(Change::new(summary)), "remove", outcome, notes, cx)
}

fn nothing(asked: &Asked) -> Noted<Outcome> {
    let data = Outcome::unchanged(asked.to.in_words());
    Noted { data, notes: vec!["there is no such route: nothing was changed".to_owned()] }
}

fn replace(asked: &Asked, view: &View, cx: &Context) -> Result<Noted<Outcome>> {
    let mut meant = asked.meant(view, false)?;
    if meant.len() > 1 {
        return Err(several(&meant));
    }
    let Some((printed, old)) = meant.pop() else {
        let message = format!("there is no route to {} that could be replaced", asked.to.in_words());
        return Err(Problem::not_found("ROUTE_NOT_FOUND", message).remedy("action=add adds one"));
    };
    let old = removable(printed, old)?;
    let mut new = asked.route(view)?;
    new.metric = old.metric;
    // The source address belongs to its interface.
    new.src = old.src.filter(|_| old.dev == new.dev);
    let (removed, added) = (Setting::Route(old.clone()), Setting::Route(new.clone()));
    let (from, link) = (view.link(&old.dev)?, view.link(&new.dev)?);
    let mut owner = Owner::of(link, &view.managers, cx)?;
    let mut notes = Vec::new();
    let runs = old.is_same_as(&new);
    let mut change = Change::new(format!("Replace the route {} by {}", old.in_words(), new.in_words()));
    let kept = if old.dev == new.dev {
        let is_kept = owner.place_of(&removed).is_some();
        let gone = if runs { &[][..] } else { std::slice::from_ref(&removed) };
        let kept = owner.keep(gone, &[added], &link.ifname, cx)?;
        if !is_kept && owner.name.is_some() {
            notes.push(not_kept(&old, &owner));
        }
        kept
    } else {
        let mut former = Owner::of(from, &view.managers, cx)?;
        change = former.keep(&[removed], &[], &from.ifname, cx)?.add_to(change);
        owner.keep(&[], &[added], &link.ifname, cx)?
    };
    let is_kept = kept.steps.is_empty();
    let mut outcome = modify::outcome(new.in_words(), &owner, kept.set_in.clone(), link, &mut notes);
    if runs && is_kept {
        notes.insert(0, "there is this route already: nothing was changed".to_owned());
        return Ok(Noted { data: outcome, notes });
    }
    outcome.was = Some(old.in_words());
    let applies = kept.applies;
    change = kept.add_to(change);
    if !runs && !applies {
        change = change.step(Step::run(new.command("replace")).undo(old.command("replace")));
    }
    if !runs || applies {
        change = view.guarded(change, &Reach { removed: vec![old], added: vec![new], ..Reach::default() });
    }
    modify::apply(change, "replace", outcome, notes, cx)
}

/// Refuses what isn't a setting of anybody's, or can't be put back.
fn removable(printed: &Printed, route: std::result::Result<Route, String>) -> Result<Route> {
    let route = route.map_err(|why| {
        let message = format!("this route can't be put back as it is, so that it isn't touched: {why}");
        Problem::new("ROUTE_NOT_SIMPLE", Category::State, message)
    })?;
    if printed.is_kernels() {
        let message = format!("{} comes with an address of {}", route.in_words(), route.dev);
        return Err(Problem::new("KERNEL_ROUTE", Category::State, message)
            .remedy("net_addresses_modify removes the address, and its route with it"));
    }
    Ok(route)
}

fn several(meant: &[(&Printed, std::result::Result<Route, String>)]) -> Problem {
    let words = meant.iter().map(|(_, route)| match route {
        Ok(route) => route.in_words(),
        Err(why) => format!("one that can't be changed ({why})"),
    });
    let words: Vec<String> = words.collect();
    let message = format!("several routes are meant: {}", text::list(&words, 6));
    Problem::new("AMBIGUOUS_ROUTE", Category::State, message)
        .remedy("Name via, interface or metric of one of them")
}

/// The sentence where the next start isn't changed by a removal.
fn not_kept(route: &Route, owner: &Owner) -> String {
    match (route.protocol.as_deref(), owner.name) {
        (Some("dhcp"), _) => {
            "the DHCP server gives this route, and it may come back with the next lease".to_owned()
        }
        (Some("ra"), _) => {
            "a router announces this route, and it may come back with the next announcement".to_owned()
        }
        (_, Some(name)) => format!(
            "{name} doesn't set this route: it was made by somebody else, and is gone until they do it again"
        ),
        (_, None) => format!("no program is known that sets routes of {} at the next start", route.dev),
    }
}
