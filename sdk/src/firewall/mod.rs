//! The domain `firewall`: tools whose names, schemas and answers are the same for ufw, firewalld and nftables. A [`Backend`]
//! knows where its firewall keeps rules, reads them, and proposes the steps that change them. What is the same for all is done
//! here: the arguments are checked, the effect on packets is told before anything is changed, and a change that could cut off
//! somebody who is logged in becomes critical and is undone by the machine itself, unless the host reaches it anew.
//!
//! Whether a packet gets in, the kernel's own rules tell, whoever wrote them: see [`Ruleset::evaluate`].

mod asked;
mod effect;
mod evaluate;
mod explain;
mod expression;
mod interfaces;
mod kernel;
mod list_rules;
mod others;
mod packet;
mod proposal;
mod rule;
mod rules;
mod ruleset;
mod status;
mod switch;
mod text;
mod unified;
mod unit;
mod value;
mod ways_in;
mod xtables;

use serde::Serialize;

pub use evaluate::{Answer, Decision, End, Verdict};
pub use interfaces::interface_towards;
pub use kernel::Kernel;
pub use others::{Published, writer_of};
pub use packet::{Packet, Protocol};
pub use proposal::{After, Proposal};
pub use rule::{Action, Direction, FirewallRule, Listed};
pub use ruleset::{Chain, Hook, Rule, Ruleset, Table};
pub use text::{expression as in_words, rule as rule_in_words};
pub use unified::unified;
pub use unit::{Unit, unit};

use crate::{Context, Module, Result, Risk, Tool};

/// A firewall: where a module reads its state and its rules.
pub trait Backend {
    /// The firewall's name: `ufw`, `firewalld` or `nftables`.
    fn name(&self) -> &'static str;

    /// The module without its tools: its name, its grants, and the targets that it serves.
    fn module(&self) -> Module;

    /// Whether the firewall is active, and what it does by default.
    fn standing(&self, kernel: &Kernel, cx: &Context) -> Result<Standing>;

    /// The firewall's rules, in their order.
    fn rules(&self, kernel: &Kernel, cx: &Context) -> Result<Rules>;

    /// Both, for a firewall that tells them by the same commands.
    fn standing_and_rules(&self, kernel: &Kernel, cx: &Context) -> Result<(Standing, Rules)> {
        Ok((self.standing(kernel, cx)?, self.rules(kernel, cx)?))
    }

    /// The steps that add a rule behind the others, now and for the next start. A rule that is there takes none.
    fn adding(&self, rule: &FirewallRule, kernel: &Kernel, cx: &Context) -> Result<Proposal>;

    /// The steps that remove a rule. A rule that the firewall hasn't got takes none.
    fn removing(&self, rule: &FirewallRule, kernel: &Kernel, cx: &Context) -> Result<Proposal>;

    /// The steps that make the firewall active now and at each start. A firewall that is takes none.
    fn enabling(&self, kernel: &Kernel, cx: &Context) -> Result<Proposal>;

    /// The steps that make it inactive now and at each start. A firewall that is takes none.
    fn disabling(&self, kernel: &Kernel, cx: &Context) -> Result<Proposal>;

    /// Whether the kernel has what [`Backend::enabling`] gives it.
    fn is_on(&self, kernel: &Kernel, cx: &Context) -> Result<bool> {
        Ok(self.standing(kernel, cx)?.active)
    }
}

/// The state of a firewall.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Whether the kernel has its rules now.
    pub active: bool,
    /// Whether it becomes active at boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_boot: Option<bool>,
    /// What happens by default to packets to the machine: `allow`, `deny`, `reject`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incoming: Option<String>,
    /// What happens by default to packets from the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outgoing: Option<String>,
    /// What happens by default to packets that go through the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<String>,
    /// The zones in use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<Zone>,
    /// What is unusual, one sentence each.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// A zone of firewalld that is in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Zone {
    /// The name.
    pub name: String,
    /// Whether it has what no other zone has.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
    /// What happens to other packets: `default`, `ACCEPT`, `DROP`, `%%REJECT%%`.
    pub target: String,
    /// Its interfaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<String>,
    /// Its sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

/// The rules of a firewall.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The rules in their order.
    pub items: Vec<Listed>,
    /// What is to be said of them, one sentence each.
    pub notes: Vec<String>,
}

/// The module of a backend, with the tools.
pub fn module<B: Backend + 'static>(backend: fn() -> B) -> Module {
    let looks = [kernel::granted, interfaces::granted, unit::granted, asked::granted, ways_in::granted];
    let module = looks.into_iter().fold(backend().module(), Module::grants);
    [
        Tool::new("fw_status", "Firewall: state, defaults, rules in short", move |args, cx: &Context| {
            status::status(&backend(), args, cx)
        }),
        Tool::new("fw_list_rules", "The firewall's rules", move |args, cx: &Context| {
            list_rules::list_rules(&backend(), args, cx)
        }),
        Tool::new("fw_explain", "Would a connection get in, and why", move |args, cx: &Context| {
            explain::explain(&backend(), args, cx)
        }),
        of_rule(Tool::new("fw_add_rule", "Add a rule behind the others", move |args, cx: &Context| {
            rules::add(&backend(), args, cx)
        })),
        of_rule(Tool::new("fw_remove_rule", "Remove a listed rule", move |args, cx: &Context| {
            rules::remove(&backend(), args, cx)
        })),
        Tool::new(
            "fw_enable",
            "Activate the firewall, which keeps out what no rule allows",
            move |args, cx: &Context| switch::enable(&backend(), args, cx),
        )
        .risk(Risk::Critical),
        Tool::new("fw_disable", "Deactivate the firewall; its rules are kept", move |args, cx: &Context| {
            switch::disable(&backend(), args, cx)
        })
        .risk(Risk::Critical),
    ]
    .into_iter()
    .fold(module, Module::tool)
}

/// A tool that changes one rule. It takes the words of the firewalls' own programs as well.
fn of_rule(tool: Tool) -> Tool {
    tool.risk(Risk::Moderate)
        .argument_alias("proto", "protocol")
        .argument_alias("from", "source")
        .argument_alias("to", "destination")
        .value_alias("action", "accept", "allow")
        .value_alias("action", "drop", "deny")
}
