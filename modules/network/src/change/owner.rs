//! The program that configures an interface at boot, and how it is told a change.

use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

use super::edit::{Dns, Format};
use super::files::Files;
use super::ifupdown::Ifupdown;
use super::netplan::Netplan;
use super::network_manager::Connection;
use super::networkd::Networkd;
use super::setting::Setting;
use super::view::GUARD;
use crate::links::Link;
use crate::managers::Managers;

pub(crate) const NETPLAN_GENERATE: CommandLine = CommandLine::new("netplan generate");
pub(crate) const NETPLAN_APPLY: CommandLine = CommandLine::new("netplan apply");
pub(crate) const NETWORKCTL_RELOAD: CommandLine = CommandLine::new("networkctl reload");
pub(crate) const NETWORKCTL_STATUS: CommandLine =
    CommandLine::new("networkctl status --no-pager <interface>");

const NETPLAN: &str = "/etc/netplan";
const NETPLAN_OWN: &str = "/etc/netplan/90-linux-sysadmin.yaml";
const NETWORKD: &str = "/etc/systemd/network";
const INTERFACES: &str = "/etc/network/interfaces";
const INTERFACES_D: &str = "/etc/network/interfaces.d";

/// The program that keeps an interface's settings, with what it has of them.
pub(crate) struct Owner {
    /// The name as `net_interfaces` tells it, None where nobody configures the interface at boot.
    pub(crate) name: Option<&'static str>,
    keeper: Keeper,
}

enum Keeper {
    Networkd(Files),
    Netplan(Files),
    Ifupdown(Files),
    NetworkManager(Connection),
    Nobody,
}

/// The steps that make a change last.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) steps: Vec<Step>,
    pub(crate) after_undo: Vec<Command>,
    /// Where it is set: a file or a connection.
    pub(crate) set_in: Option<String>,
    /// True if the steps change the running state as well. The owner then sets up the interface anew.
    pub(crate) applies: bool,
}

impl Kept {
    /// The change with the steps. What an owner takes over beside them isn't known, so that it is guarded.
    pub(crate) fn add_to(self, change: Change) -> Change {
        let change = if self.applies { change.guard(GUARD) } else { change };
        self.add_steps(change)
    }

    /// The change with the steps alone.
    pub(crate) fn add_steps(self, change: Change) -> Change {
        let change = self.steps.into_iter().fold(change, Change::step);
        self.after_undo.into_iter().fold(change, Change::after_undo)
    }
}

pub(crate) fn command_grants() -> Vec<CommandGrant> {
    let mut grants = vec![
        NETPLAN_GENERATE.change(Risk::High, "to write what netplan's files say for the next start"),
        NETPLAN_APPLY.change(Risk::High, "to apply netplan's name servers"),
        NETWORKCTL_RELOAD.change(Risk::High, "to apply name servers of systemd-networkd"),
        NETWORKCTL_STATUS.read("to wait until systemd-networkd has applied them"),
    ];
    grants.extend(Connection::grants());
    grants
}

pub(crate) fn path_grants() -> Vec<PathGrant> {
    let reason = "addresses, routes and name servers of interfaces";
    let written = [
        "/etc/netplan/*.yaml",
        "/etc/systemd/network/*.network",
        "/etc/systemd/network/*.network.d",
        "/etc/systemd/network/*.network.d/*.conf",
        "/etc/network/interfaces",
        "/etc/network/interfaces.d/*",
    ];
    let listed = [NETPLAN, INTERFACES_D].map(|directory| PathGrant::read(directory, reason).as_root());
    let read = ["/run/systemd/network/*", "/usr/lib/systemd/network/*", "/lib/systemd/network/*"];
    let written = written.into_iter().map(|glob| PathGrant::write(glob, reason));
    let read = read.into_iter().map(|glob| PathGrant::read(glob, reason));
    written.chain(listed).chain(read).collect()
}

impl Owner {
    /// Finds the owner of an interface.
    ///
    /// Problems: `SEVERAL_MANAGERS`, `MANAGER_NOT_SUPPORTED`, and `NOT_CONFIGURED` where its files don't have the interface.
    pub(crate) fn of(link: &Link, managers: &Managers, cx: &Context) -> Result<Self> {
        let found = managers.of(&link.ifname);
        let [manager] = &found[..] else {
            if found.is_empty() {
                return Ok(Self { name: None, keeper: Keeper::Nobody });
            }
            let names: Vec<_> = found.iter().map(|manager| manager.name).collect();
            let message = format!("{} is configured by {} at once", link.ifname, names.join(" and "));
            return Err(Problem::new("SEVERAL_MANAGERS", Category::State, message)
                .remedy("Leave it to one of them first, so that a change isn't taken back by another one"));
        };
        let name = manager.name;
        let keeper = match name {
            "systemd-networkd" => Keeper::Networkd(networkd(manager.config.as_deref(), cx)?),
            "ifupdown" => Keeper::Ifupdown(ifupdown(link, cx)?),
            "NetworkManager" => Keeper::NetworkManager(Connection::of(&link.ifname, cx)?),
            _ if name.starts_with("netplan") => Keeper::Netplan(netplan(link, cx)?),
            _ => {
                let message = format!("{} is configured by {name}, which this tool can't tell", link.ifname);
                return Err(Problem::new("MANAGER_NOT_SUPPORTED", Category::State, message));
            }
        };
        if let Keeper::Netplan(files) | Keeper::Ifupdown(files) = &keeper
            && !files.hold()
        {
            let message = format!("{name} has configured {}, and its files don't have it", link.ifname);
            return Err(Problem::new("NOT_CONFIGURED", Category::State, message)
                .remedy("The files have been changed since: net_interfaces tells what it has now"));
        }
        Ok(Self { name: Some(name), keeper })
    }

    /// Where this is set to last, None where it isn't.
    pub(crate) fn place_of(&self, setting: &Setting) -> Option<String> {
        match &self.keeper {
            Keeper::Networkd(files) | Keeper::Netplan(files) | Keeper::Ifupdown(files) => {
                files.place_of(setting).map(str::to_owned)
            }
            Keeper::NetworkManager(connection) => connection.has(setting).then(|| connection.name()),
            Keeper::Nobody => None,
        }
    }

    /// The steps after which the removed settings aren't set at the next start, and the added ones are. What is so already
    /// takes no step. NetworkManager has the device take it over at once, since it gives routes a metric of its own.
    pub(crate) fn keep(
        &mut self,
        removed: &[Setting],
        added: &[Setting],
        device: &str,
        cx: &Context,
    ) -> Result<Kept> {
        let mut kept = Kept::default();
        match &mut self.keeper {
            Keeper::Nobody => {}
            Keeper::NetworkManager(connection) => {
                let is_set = added.iter().any(|setting| connection.has(setting));
                kept.steps = connection.steps(removed, added);
                kept.applies = !kept.steps.is_empty();
                kept.set_in = Some(connection.name()).filter(|_| kept.applies || is_set);
                if kept.applies {
                    let reapply = Connection::reapply(device);
                    kept.steps.push(Step::run(reapply.clone()).uninterruptible());
                    kept.after_undo.push(reapply);
                }
            }
            Keeper::Networkd(files) | Keeper::Netplan(files) | Keeper::Ifupdown(files) => {
                for setting in removed {
                    if let Some(path) = files.remove(setting)? {
                        kept.set_in = Some(path);
                    }
                }
                for setting in added {
                    kept.set_in = Some(match files.place_of(setting) {
                        Some(path) => path.to_owned(),
                        None => files.add(setting)?,
                    });
                }
                kept.steps = files.steps(cx)?;
                if matches!(self.keeper, Keeper::Netplan(_)) && !kept.steps.is_empty() {
                    // netplan checks its files by this, and a file that it refuses is undone.
                    kept.steps.push(Step::run(NETPLAN_GENERATE.command().as_root()).uninterruptible());
                    kept.after_undo.push(NETPLAN_GENERATE.command().as_root());
                }
            }
        }
        Ok(kept)
    }

    /// The servers and domains that it keeps. None where it keeps none for the interface.
    pub(crate) fn dns(&self) -> Option<Dns> {
        match &self.keeper {
            Keeper::Networkd(files) | Keeper::Netplan(files) | Keeper::Ifupdown(files) => Some(files.dns()),
            Keeper::NetworkManager(connection) => Some(connection.dns()),
            Keeper::Nobody => None,
        }
    }

    /// The steps that set servers and domains, and have the owner take them over. ifupdown hands them to resolvconf, which the
    /// caller has to do.
    pub(crate) fn keep_dns(&mut self, dns: &Dns, device: &str, cx: &Context) -> Result<Kept> {
        let mut kept = Kept::default();
        let apply = match &mut self.keeper {
            Keeper::Nobody => return Ok(kept),
            Keeper::NetworkManager(connection) => {
                kept.set_in = Some(connection.name());
                kept.steps = connection.dns_steps(dns)?;
                Some(Connection::reapply(device))
            }
            Keeper::Networkd(files) | Keeper::Netplan(files) | Keeper::Ifupdown(files) => {
                kept.set_in = Some(files.set_dns(dns)?);
                kept.steps = files.steps(cx)?;
                match self.keeper {
                    Keeper::Networkd(_) => Some(NETWORKCTL_RELOAD.command().as_root()),
                    Keeper::Netplan(_) => Some(
                        NETPLAN_APPLY
                            .command()
                            .as_root()
                            .duration(linux_sysadmin_sdk::DurationCategory::Slow),
                    ),
                    _ => None,
                }
            }
        };
        kept.applies = apply.is_some() && !kept.steps.is_empty();
        if let Some(apply) = apply.filter(|_| !kept.steps.is_empty()) {
            kept.steps.push(Step::run(apply.clone()).uninterruptible());
            kept.after_undo.push(apply);
            if matches!(self.keeper, Keeper::Networkd(_)) {
                // systemd-networkd answers the reload before it has set up the interface anew, and other questions after it. A
                // name that is asked for meanwhile would be answered by the former servers. The undo waits likewise.
                let applied = NETWORKCTL_STATUS.with([device]);
                kept.steps.push(Step::run(applied.clone()));
                kept.after_undo.push(applied);
            }
        }
        Ok(kept)
    }
}

/// The paths of the files with this ending in a directory, none where there is no such directory.
fn in_directory(directory: &str, ending: &str, cx: &Context) -> Result<Vec<String>> {
    match cx.files_as(Privilege::Root).list_dir(directory) {
        Ok(names) => {
            let own = names.into_iter().filter(|name| name.ends_with(ending) && !name.starts_with('.'));
            Ok(own.map(|name| format!("{directory}/{name}")).collect())
        }
        Err(problem) if problem.category == Category::NotFound => Ok(Vec::new()),
        Err(problem) => Err(problem),
    }
}

fn networkd(file: Option<&str>, cx: &Context) -> Result<Files> {
    let Some(file) = file else {
        let message = "systemd-networkd doesn't tell by which file it has configured the interface";
        return Err(Problem::new("NOT_CONFIGURED", Category::State, message));
    };
    let name = file.rsplit('/').next().unwrap_or(file);
    let directory = format!("{NETWORKD}/{name}.d");
    let mut paths = in_directory(&directory, ".conf", cx)?;
    let mut others = Vec::new();
    // What programs and packages write lies elsewhere.
    match file.strip_prefix(NETWORKD) {
        Some(_) => paths.insert(0, file.to_owned()),
        None => others.push(file.to_owned()),
    }
    let own = format!("{directory}/90-linux-sysadmin.conf");
    Files::read(|_| Box::new(Networkd), &paths, &others, Some((own, 0o644)), cx)
}

fn ifupdown(link: &Link, cx: &Context) -> Result<Files> {
    let main = cx.files_as(Privilege::Root).read(INTERFACES)?;
    let mut paths = vec![INTERFACES.to_owned()];
    let includes = main.lines().any(|line| line.starts_with("source") && line.contains("interfaces.d"));
    if includes {
        paths.extend(in_directory(INTERFACES_D, "", cx)?);
    }
    let format = Box::new(Ifupdown { name: link.ifname.clone() });
    Files::read(|_| format, &paths, &[], None, cx)
}

fn netplan(link: &Link, cx: &Context) -> Result<Files> {
    let paths = in_directory(NETPLAN, ".yaml", cx)?;
    let format = |texts: &[String]| -> Box<dyn Format> {
        Box::new(Netplan::of(&link.ifname, link.mac.as_deref(), texts))
    };
    Files::read(format, &paths, &[], Some((NETPLAN_OWN.to_owned(), 0o600)), cx)
}
