//! The firewall with ufw. Its rules are read from its own files, because `ufw status` is a table for people.
#![forbid(unsafe_code)]

mod changes;
mod config;
mod tuple;
mod user_rules;

use linux_sysadmin_sdk::Privilege;
use linux_sysadmin_sdk::firewall::{Backend, FirewallRule, Kernel, Listed, Proposal, Rules, Standing};
use linux_sysadmin_sdk::prelude::*;

const RULES: &str = "/etc/ufw/user.rules";
const RULES_OF_IPV6: &str = "/etc/ufw/user6.rules";
const CONFIG: &str = "/etc/ufw/ufw.conf";
const DEFAULTS: &str = "/etc/default/ufw";

/// The module.
pub fn module() -> Module {
    linux_sysadmin_sdk::firewall::module(|| Ufw)
}

linux_sysadmin_sdk::export!(module);

struct Ufw;

/// Asks for ufw's files. Its rules are root's alone.
fn files(module: Module) -> Module {
    let of_root = [(RULES, "ufw's rules"), (RULES_OF_IPV6, "its rules for IPv6")]
        .map(|(path, reason)| PathGrant::read(path, reason).as_root_if_available());
    let of_all = [(CONFIG, "whether ufw is enabled"), (DEFAULTS, "what ufw does by default")]
        .map(|(path, reason)| PathGrant::read(path, reason).as_root_if_available());
    module.paths(of_root).paths(of_all)
}

impl Backend for Ufw {
    fn name(&self) -> &'static str {
        "ufw"
    }

    fn module(&self) -> Module {
        Module::new("firewall-ufw", env!("CARGO_PKG_VERSION"), "firewall", "The firewall with ufw")
            .license(env!("CARGO_PKG_LICENSE"))
            .serves("firewall_backend", &["ufw"])
            .grants(files)
            .grants(changes::granted)
    }

    fn standing(&self, kernel: &Kernel, cx: &Context) -> Result<Standing> {
        let [config, defaults] = read(cx, [CONFIG, DEFAULTS]);
        Ok(config::standing(&config?, &defaults?, is_loaded(kernel)))
    }

    fn rules(&self, kernel: &Kernel, cx: &Context) -> Result<Rules> {
        let [ipv4, ipv6] = read(cx, [RULES, RULES_OF_IPV6]);
        let ipv4 = tuple::rules(&ipv4?);
        // Without IPv6, the file may be missing.
        let ipv6 = match ipv6 {
            Ok(text) => tuple::rules(&text),
            Err(problem) if problem.code == "FILE_NOT_FOUND" => Vec::new(),
            Err(problem) => return Err(problem),
        };
        let inactive = (!is_loaded(kernel)).then(|| "ufw is inactive: none of its rules holds".to_owned());
        Ok(Rules { items: both(ipv4, ipv6), notes: inactive.into_iter().collect() })
    }

    fn adding(&self, rule: &FirewallRule, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
        changes::adding(rule, kernel, cx)
    }

    fn removing(&self, rule: &FirewallRule, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
        changes::removing(rule, kernel, cx)
    }

    fn enabling(&self, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
        changes::enabling(kernel, cx)
    }

    fn disabling(&self, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
        changes::disabling(kernel, cx)
    }
}

fn read<const N: usize>(cx: &Context, paths: [&str; N]) -> [Result<String>; N] {
    let mut texts = cx.files_as(Privilege::RootIfAvailable).read_all(&paths).into_iter();
    paths.map(|path| texts.next().unwrap_or_else(|| Err(Problem::unexpected(path, ""))))
}

/// True if the kernel has ufw's rules.
fn is_loaded(kernel: &Kernel) -> bool {
    kernel.ruleset.active_firewalls().contains(&"ufw")
}

/// A rule that ufw has made for both families is one rule.
fn both(ipv4: Vec<Listed>, ipv6: Vec<Listed>) -> Vec<Listed> {
    let has_address = |listed: &Listed| match (&listed.rule, &listed.raw) {
        (Some(rule), _) => rule.source.is_some() || rule.destination.is_some(),
        (None, Some(raw)) => tuple::has_address(raw),
        (None, None) => false,
    };
    let mut left = ipv6;
    let mut items = Vec::new();
    for mut listed in ipv4 {
        if !has_address(&listed) {
            match left.iter().position(|other| *other == listed) {
                Some(same) => drop(left.remove(same)),
                None => listed.family = Some("ipv4"),
            }
        }
        items.push(listed);
    }
    for mut listed in left {
        listed.family = (!has_address(&listed)).then_some("ipv6");
        items.push(listed);
    }
    items
}
