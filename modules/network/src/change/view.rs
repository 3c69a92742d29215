//! The network as it is before a change: interfaces, their managers, the routes of one family, and the sessions.

use std::net::IpAddr;

use linux_sysadmin_sdk::{Category, prelude::*};

use super::cidr::Cidr;
use super::sessions::{self, Session, Sessions};
use super::setting::{Printed, Route};
use crate::ip;
use crate::links::{self, Address, LINKS, Link};
use crate::managers::{Managers, NMCLI_DEVICES};
use crate::tools::interfaces;
use crate::tools::routes_show::{ROUTES_4, ROUTES_6};

/// The time in seconds in which the host must reach the target again. After it, the target undoes the change itself.
pub(crate) const GUARD: u32 = 60;

/// What a change is planned on.
pub(crate) struct View {
    pub(crate) links: Vec<Link>,
    pub(crate) managers: Managers,
    pub(crate) routes: Vec<Printed>,
    pub(crate) is_v6: bool,
    sessions: Sessions,
}

impl View {
    pub(crate) fn look(is_v6: bool, cx: &Context) -> Result<Self> {
        let routes = if is_v6 { ROUTES_6 } else { ROUTES_4 };
        let [links, nmcli, routes] =
            cx.run_each([LINKS.command(), NMCLI_DEVICES.command(), routes.command()]);
        let links = links::parse(links?)?;
        let numbers: Vec<(u64, &str)> =
            links.iter().map(|link| (link.ifindex, link.ifname.as_str())).collect();
        let managers = Managers::look(cx, nmcli, &numbers);
        let found = ip::objects::<Printed>(routes?)?;
        if !found.is_complete {
            let message =
                "this machine has more routes than can be read at once, as a router of the internet has";
            return Err(Problem::new("TOO_MANY_ROUTES", Category::Resource, message)
                .remedy("Have its routing daemon make the change"));
        }
        Ok(Self { links, managers, routes: found.list, is_v6, sessions: sessions::find(cx) })
    }

    /// The interface of that name.
    ///
    /// Problems: `INVALID_INTERFACE`, `INTERFACE_NOT_FOUND`.
    pub(crate) fn link(&self, name: &str) -> Result<&Link> {
        interfaces::check(name)?;
        self.links
            .iter()
            .find(|link| link.is_named(name))
            .ok_or_else(|| interfaces::unknown(name, &self.links))
    }

    /// The interface through which an address is reached without a gateway.
    pub(crate) fn link_of(&self, address: IpAddr) -> Option<&Link> {
        let longest = |link: &&Link| {
            let holding = link.networks().filter(|network| network.contains(address));
            holding.map(|network| network.length).max()
        };
        let direct = self.links.iter().filter(|link| longest(link).is_some()).max_by_key(longest);
        // A route without a gateway makes machines reachable as an address does.
        direct.or_else(|| {
            let routes = self.routes.iter().filter_map(|printed| printed.route(self.is_v6).ok());
            let on_link = routes.filter(|route| route.via.is_none() && route.table.is_none());
            let route =
                on_link.filter(|route| route.to.contains(address)).max_by_key(|route| route.to.length)?;
            self.links.iter().find(|link| link.ifname == route.dev)
        })
    }

    /// The ordinary routes to a destination in a table.
    pub(crate) fn routes_to(&self, to: Cidr, table: Option<u32>) -> Vec<&Printed> {
        let is_it = |printed: &&Printed| printed.to(self.is_v6) == Some(to) && printed.table() == Ok(table);
        self.routes.iter().filter(is_it).collect()
    }

    /// Raises the risk of a plan that touches the default route or the way of a session, says which, and arms the guard. It is
    /// armed as well where sessions aren't known.
    pub(crate) fn guarded(&self, mut change: Change, reach: &Reach) -> Change {
        let sessions = &self.sessions.found;
        let touched: Vec<&Session> = sessions.iter().filter(|session| self.touches(session, reach)).collect();
        let is_default = |route: &Route| route.to.is_everything() && route.table.is_none();
        let touches_default = reach.removed.iter().chain(&reach.added).any(is_default);
        if touches_default {
            change = change.warning(format!(
                "it touches the default route of {}, by which this machine reaches other networks",
                if self.is_v6 { "IPv6" } else { "IPv4" }
            ));
        }
        if let Some(warning) = sessions::warning(&touched) {
            change = change.warning(warning);
        }
        if touches_default || !touched.is_empty() {
            return change.risk(Risk::Critical).guard(GUARD);
        }
        // What is changed may be the way of a session that isn't known.
        let is_removal = matches!(reach.address, Some((_, false)));
        let has_nobody = sessions.is_empty() && (!is_removal || self.guards_removals());
        if self.sessions.is_complete && !has_nobody { change } else { change.guard(GUARD) }
    }

    /// True if a guard can tell an address that is removed from a way that is lost. A host on the machine itself has no
    /// connection to try: it counts the addresses, and has each removal undone.
    pub(crate) fn guards_removals(&self) -> bool {
        self.sessions.has_client
    }

    fn addresses(&self) -> impl Iterator<Item = Cidr> {
        self.links.iter().flat_map(|link| &link.addr_info).filter_map(Address::cidr)
    }

    fn touches(&self, session: &Session, reach: &Reach) -> bool {
        reach.removed.iter().any(|route| session.loses(route))
            || reach.added.iter().any(|route| session.is_taken_by(route.to, &self.links))
            || match reach.address {
                Some((address, true)) => session.is_taken_by(address.network(), &self.links),
                Some((address, false)) => {
                    let gone = || std::iter::once(&address).chain(&reach.along);
                    let stays = |own: &Cidr| !gone().any(|gone| gone == own);
                    let has_others =
                        self.addresses().any(|own| own.network() == address.network() && stays(&own));
                    gone().any(|gone| session.needs(*gone, has_others))
                }
                None => false,
            }
    }
}

/// What a change takes away and brings.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    pub(crate) removed: Vec<Route>,
    pub(crate) added: Vec<Route>,
    /// An address, and whether it is added.
    pub(crate) address: Option<(Cidr, bool)>,
    /// The addresses of the same network that may go along with one that is removed.
    pub(crate) along: Vec<Cidr>,
}
