//! The rule set that the kernel has, from all programs that show it.

use super::ruleset::Ruleset;
use crate::{Category, Command, CommandLine, Context, Module, Output, Privilege, Problem, Result};

const RULES: CommandLine = CommandLine::new("nft -j list ruleset");
/// Leaves out the elements of sets, which may be hundreds of thousands.
const WITHOUT_ELEMENTS: CommandLine = CommandLine::new("nft -j -t list ruleset");
const IPV4: CommandLine = CommandLine::new("iptables-save");
const IPV6: CommandLine = CommandLine::new("ip6tables-save");
const IPV4_LEGACY: CommandLine = CommandLine::new("iptables-legacy-save");
const IPV6_LEGACY: CommandLine = CommandLine::new("ip6tables-legacy-save");

/// Asks for the commands that show the kernel's rules.
pub(super) fn granted(module: Module) -> Module {
    let lines = [
        (RULES, "the kernel's rules for packets"),
        (WITHOUT_ELEMENTS, "the same where sets are very large"),
        (IPV4, "what nft doesn't show of iptables' rules"),
        (IPV6, "the same for IPv6"),
        (IPV4_LEGACY, "rules of the older iptables, which nft doesn't show"),
        (IPV6_LEGACY, "the same for IPv6"),
    ];
    module.commands(lines.map(|(line, reason)| line.read(reason).as_root_if_available()))
}

/// The rules, and what is to be said of them.
pub struct Kernel {
    /// All rules.
    pub ruleset: Ruleset,
    /// What isn't known of the rules, one sentence each.
    pub notes: Vec<String>,
}

/// Reads the rules. Other looks are made at the same time.
pub(super) fn read(cx: &Context, others: Vec<Command>) -> Result<(Kernel, Vec<Result<Output>>)> {
    let commands = [RULES, IPV4, IPV6].map(as_root).into_iter().chain(others);
    let mut outputs = cx.run_all(commands.collect()).into_iter();
    let mut next = || outputs.next().unwrap_or_else(|| Err(missing("nft")));
    let (nft, ipv4, ipv6) = (next(), next(), next());
    let mut notes = Vec::new();
    let is_missing = |problem: &Problem| problem.code == "PROGRAM_NOT_FOUND";
    let ruleset = match nft {
        Ok(output) if output.truncated => {
            notes.push("the sets are too large to be read: matches on them are unknown".to_owned());
            let terse = cx.run(as_root(WITHOUT_ELEMENTS))?;
            Ruleset::parse(&checked(terse, "nft")?.text())?.without_elements()
        }
        Ok(output) => Ruleset::parse(&checked(output, "nft")?.text())?,
        // On a machine with iptables alone, iptables-save shows all.
        Err(problem) if is_missing(&problem) && ipv4.is_ok() => {
            notes.push("nft isn't installed: tables of nftables alone aren't seen".to_owned());
            Ruleset::default()
        }
        Err(problem) => return Err(problem),
    };
    let mut kernel = Kernel { ruleset, notes };
    let mut has_legacy = false;
    for (family, output) in [("ip", ipv4), ("ip6", ipv6)] {
        match output {
            Ok(output) if output.exit_code == 0 && !output.truncated => {
                let text = output.text();
                let is_told = |text: &str| text.contains("legacy tables present");
                has_legacy |= is_told(&text) || is_told(&output.error_text());
                kernel.ruleset = kernel.ruleset.with_saved(family, &text);
            }
            Ok(output) if kernel.ruleset.has_hidden(family) => kernel.notes.push(format!(
                "{family}tables-save failed, so that matches of iptables are unknown: {}",
                crate::text::of_line(&output.error_text())
            )),
            Err(problem) if !is_missing(&problem) => return Err(problem),
            _ => {}
        }
    }
    if has_legacy {
        let [ipv4, ipv6] = cx.run_each([IPV4_LEGACY, IPV6_LEGACY].map(as_root));
        for (family, output) in [("ip", ipv4), ("ip6", ipv6)] {
            match output {
                Ok(output) if output.exit_code == 0 => {
                    kernel.ruleset = kernel.ruleset.with_saved(family, &output.text());
                }
                _ => kernel.notes.push(format!(
                    "there are rules of iptables-legacy for {family}, which couldn't be read: they may drop more"
                )),
            }
        }
    }
    Ok((kernel, outputs.collect()))
}

fn as_root(line: CommandLine) -> Command {
    line.command().privilege(Privilege::RootIfAvailable)
}

fn missing(program: &str) -> Problem {
    Problem::new("UNEXPECTED_OUTPUT", Category::Internal, format!("{program} gave no answer"))
}

/// The output of a program that shows rules to root only.
fn checked(output: Output, program: &str) -> Result<Output> {
    let said = output.error_text();
    if output.exit_code != 0 && (said.contains("not permitted") || said.contains("must be root")) {
        let message = format!("{program} shows the firewall's rules to root only");
        return Err(Problem::new("PRIVILEGE_REQUIRED", Category::Privilege, message));
    }
    output.success(program)
}
