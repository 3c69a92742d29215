//! The firewall with {{program}}. The sdk has the tools; here are the commands, and the parsers of what they print.
//!
//! The commands and their output are examples: `{{program}} status` prints `active` or `inactive`, and `{{program}} rules`
//! prints `ACTION DIRECTION PROTOCOL PORT`. Put those of your firewall in their place, and recordings of a real machine into
//! `tests/transcripts`.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::Category;
use linux_sysadmin_sdk::firewall::{
    self, Action, After, Backend, Direction, FirewallRule, Kernel, Listed, Proposal, Rules, Standing,
};
use linux_sysadmin_sdk::prelude::*;

// A command line is written once, and used twice: for the grant, and for the command that it allows.
const STATUS: CommandLine = CommandLine::new("{{program}} status");
const RULES: CommandLine = CommandLine::new("{{program}} rules");
const ENABLE: CommandLine = CommandLine::new("{{program}} enable");
const DISABLE: CommandLine = CommandLine::new("{{program}} disable");

// Alternatives can't be written as a `CommandLine`: `command` below makes the commands that these allow.
const ADD: &str =
    "{{program}} add (allow|deny|reject) (in|out) (tcp|udp|any) (any|<port>|<port>:<port>)";
const REMOVE: &str =
    "{{program}} remove (allow|deny|reject) (in|out) (tcp|udp|any) (any|<port>|<port>:<port>)";

/// The module.
pub fn module() -> Module {
    firewall::module(|| Firewall)
}

linux_sysadmin_sdk::export!(module);

struct Firewall;

/// What the module may do, each with the reason that the operator reads.
fn granted(module: Module) -> Module {
    module
        .command(STATUS.read("whether the firewall is active"))
        .command(RULES.read("its rules"))
        .command(CommandGrant::change(ADD, Risk::Moderate, "add a rule"))
        .command(CommandGrant::change(REMOVE, Risk::High, "remove a rule"))
        .command(ENABLE.change(Risk::Critical, "make it active"))
        .command(DISABLE.change(Risk::Critical, "make it inactive"))
}

fn is_active(cx: &Context) -> Result<bool> {
    let output = cx.run(STATUS.command())?.success("{{program}}")?;
    match output.text().trim() {
        "active" => Ok(true),
        "inactive" => Ok(false),
        other => Err(Problem::unexpected("{{program}} status", other)),
    }
}

/// Reads a line such as `allow in tcp 22`. What the unified words don't say is shown as it is.
fn listed(line: &str) -> Listed {
    rule(line).map_or_else(|| Listed::raw(line), Listed::of)
}

fn rule(line: &str) -> Option<FirewallRule> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [action, direction, protocol, port] = words.try_into().ok()?;
    let action = match action {
        "allow" => Action::Allow,
        "deny" => Action::Deny,
        "reject" => Action::Reject,
        _ => return None,
    };
    let direction = match direction {
        "in" => Direction::In,
        "out" => Direction::Out,
        _ => return None,
    };
    Some(FirewallRule {
        action,
        direction,
        port: (port != "any").then(|| String::from(port)),
        protocol: String::from(protocol),
        source: None,
        destination: None,
        comment: None,
    })
}

/// The command that adds or removes a rule.
fn command(verb: &str, rule: &FirewallRule) -> Command {
    let action = match rule.action {
        Action::Allow => "allow",
        Action::Deny => "deny",
        Action::Reject => "reject",
    };
    let direction = match rule.direction {
        Direction::In => "in",
        Direction::Out => "out",
    };
    let port = rule.port.as_deref().unwrap_or("any");
    Command::new("{{program}}").args([verb, action, direction, &rule.protocol, port]).as_root()
}

/// Refuses a rule that the firewall can't keep, before anything is changed.
fn check(rule: &FirewallRule) -> Result<()> {
    let more = [&rule.source, &rule.destination, &rule.comment];
    if more.into_iter().all(Option::is_none) {
        return Ok(());
    }
    let message = "{{program}} has rules for ports only: expected no source, destination and comment";
    Err(Problem::new("NOT_SUPPORTED", Category::State, message))
}

/// The kernel's rules after a change. Where they aren't known, the sdk takes the change for one that may cut off whoever is
/// logged in: it is critical, and the machine undoes it by itself unless the host reaches it anew. A backend that knows its
/// firewall's rules in the kernel says `After::Rules`.
fn after(is_active: bool) -> After {
    if is_active { After::Unknown } else { After::Same }
}

impl Backend for Firewall {
    fn name(&self) -> &'static str {
        "{{program}}"
    }

    fn module(&self) -> Module {
        Module::new("{{name}}", env!("CARGO_PKG_VERSION"), "firewall", env!("CARGO_PKG_DESCRIPTION"))
            .license(env!("CARGO_PKG_LICENSE"))
            // The module is called on targets with this firewall only.
            .serves("firewall_backend", &["{{program}}"])
            .grants(granted)
    }

    fn standing(&self, _: &Kernel, cx: &Context) -> Result<Standing> {
        let unit = firewall::unit("{{program}}.service", cx)?;
        Ok(Standing { active: is_active(cx)?, at_boot: Some(unit.is_enabled), ..Standing::default() })
    }

    fn rules(&self, _: &Kernel, cx: &Context) -> Result<Rules> {
        let output = cx.run(RULES.command())?.success("{{program}}")?;
        Ok(Rules { items: output.text().lines().map(listed).collect(), notes: Vec::new() })
    }

    fn adding(&self, rule: &FirewallRule, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
        check(rule)?;
        if self.rules(kernel, cx)?.items.iter().any(|known| known.is(rule)) {
            return Ok(Proposal::new("", After::Same));
        }
        let step = Step::run(command("add", rule)).undo(command("remove", rule)).uninterruptible();
        let summary = format!("Have {{program}} {}", rule.in_words());
        Ok(Proposal { steps: vec![step], ..Proposal::new(summary, after(is_active(cx)?)) })
    }

    fn removing(&self, rule: &FirewallRule, kernel: &Kernel, cx: &Context) -> Result<Proposal> {
        if !self.rules(kernel, cx)?.items.iter().any(|known| known.is(rule)) {
            return Ok(Proposal::new("", After::Same));
        }
        let step = Step::run(command("remove", rule)).undo(command("add", rule)).uninterruptible();
        let summary = format!("Remove the rule `{}` of {{program}}", rule.in_words());
        Ok(Proposal { steps: vec![step], ..Proposal::new(summary, after(is_active(cx)?)) })
    }

    fn enabling(&self, _: &Kernel, cx: &Context) -> Result<Proposal> {
        if is_active(cx)? {
            return Ok(Proposal::new("", After::Same));
        }
        let step = Step::run(ENABLE.command().as_root()).undo(DISABLE.command().as_root());
        let summary = "Make {{program}} active, now and at each start";
        Ok(Proposal { steps: vec![step.uninterruptible()], ..Proposal::new(summary, After::Unknown) })
    }

    fn disabling(&self, _: &Kernel, cx: &Context) -> Result<Proposal> {
        if !is_active(cx)? {
            return Ok(Proposal::new("", After::Same));
        }
        let step = Step::run(DISABLE.command().as_root()).undo(ENABLE.command().as_root());
        let summary = "Make {{program}} inactive, now and at each start";
        Ok(Proposal { steps: vec![step.uninterruptible()], ..Proposal::new(summary, After::Unknown) })
    }
}
