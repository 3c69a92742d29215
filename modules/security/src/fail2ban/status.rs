//! `sec_fail2ban_status`: the jails, how they are configured, and whom they have banned.

use linux_sysadmin_sdk::{prelude::*, sshd};

use super::server::{self, Configured, Jail, Server};
use super::value;

/// The most addresses that are listed of each jail, and of one jail that was asked for.
const LISTED: (usize, usize) = (20, 1000);

/// Adds the tool.
pub(crate) fn tool(module: Module) -> Module {
    let tool =
        Tool::new("sec_fail2ban_status", "Jails of fail2ban: settings, failures, banned addresses", status);
    module.grants(server::grants).tool(tool)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct StatusArgs {
    /// Only this one
    jail: Option<String>,
}

/// A jail.
#[derive(Debug, Serialize)]
pub(crate) struct Item {
    jail: String,
    /// False where it is enabled on disk, but not at work.
    #[serde(skip_serializing_if = "Clone::clone")]
    running: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    banned: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    banned_total: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logs: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    journal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<Config>,
}

/// The settings on disk.
#[derive(Debug, Serialize)]
struct Config {
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maxretry: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    findtime: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bantime: Option<String>,
    backend: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignoreip: Vec<String>,
    actions: Vec<String>,
}

fn status(args: StatusArgs, cx: &Context) -> Result<Listing<Item>> {
    if let Some(jail) = &args.jail {
        value::check_jail(jail)?;
    }
    let Server { running, configured, wrong } = Server::look(cx)?;
    let mut notes = Vec::new();
    match (&running, &wrong) {
        (None, None) => {
            notes.push("fail2ban isn't running, so nobody is banned: svc_start service=fail2ban".to_owned());
        }
        (None, Some(wrong)) => {
            notes.push(format!("fail2ban isn't running, and can't start with its configuration: {wrong}"));
        }
        (Some(_), Some(wrong)) => {
            notes.push(format!("the next reload fails with the configuration on disk: {wrong}"))
        }
        (Some(_), None) => {}
    }
    let running = running.unwrap_or_default();
    let mut names = running.clone();
    names.extend(configured.keys().filter(|name| !running.contains(name)).cloned());
    let most = if args.jail.is_some() { LISTED.1 } else { LISTED.0 };
    if let Some(jail) = &args.jail {
        if !names.contains(jail) {
            let message = format!("there is no jail {jail} at work: there are {}", listed(&names));
            return Err(Problem::not_found("JAIL_NOT_FOUND", message)
                .remedy(format!("sec_fail2ban_configure jail={jail} action=enable, or action=create")));
        }
        names.retain(|name| name == jail);
    }
    let at_work: Vec<String> = names.iter().filter(|name| running.contains(name)).cloned().collect();
    let (states, unseen) = server::states(&at_work, cx);
    // The server lists such a jail, so that it is at work, whatever its numbers are.
    let is_at_work = |name: &String| unseen.iter().any(|line| line.starts_with(&format!("{name} ")));
    let own = sshd::client(cx);
    let items = names.iter().map(|name| {
        let state = states.iter().find(|state| state.name == *name);
        if own.as_ref().is_some_and(|own| state.is_some_and(|state| state.addresses.contains(own))) {
            notes.push(format!("{name} has banned the address in use: sec_fail2ban_configure action=unban"));
        }
        let running = state.is_some() || is_at_work(name);
        item(name, running, state, configured.get(name), most)
    });
    let items: Vec<Item> = items.collect();
    notes.extend(unseen);
    Ok(Listing { items, total: None, notes })
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn item(
    name: &str,
    running: bool,
    state: Option<&Jail>,
    configured: Option<&Configured>,
    most: usize,
) -> Item {
    let Jail { failed, banned, mut addresses, files, journal, .. } = state.cloned().unwrap_or_default();
    addresses.truncate(most);
    let config = configured.cloned().map(|config| Config {
        port: config.port,
        maxretry: config.maxretry,
        findtime: config.findtime,
        bantime: config.bantime,
        backend: config.backend,
        ignoreip: config.ignoreip,
        actions: config.actions,
    });
    Item {
        jail: name.to_owned(),
        running,
        failed: failed[0],
        failed_total: failed[1],
        banned: banned[0],
        banned_total: banned[1],
        addresses,
        logs: files,
        journal,
        config,
    }
}
