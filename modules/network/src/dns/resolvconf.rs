//! resolvconf of Debian, see resolvconf(8): each interface hands its servers in as a record, and a base file has those that hold
//! without any.

use linux_sysadmin_sdk::{Category, prelude::*};

use crate::change::edit::Dns;
use crate::dns::resolv_conf;

/// The file with what holds beside the records.
pub(crate) const BASE: &str = "/etc/resolvconf/resolv.conf.d/base";

/// The file that the package for the same purpose by another author has in its place.
pub(crate) const OPENRESOLV: &str = "/etc/resolvconf.conf";

const UPDATE: CommandLine = CommandLine::new("resolvconf -u");
const FORGET: CommandLine = CommandLine::new("resolvconf -d <text>");
const RECORD: &str = "resolvconf -a <text> < stdin";

const RECORDS: &str = "/run/resolvconf/interface";

pub(crate) fn command_grants() -> [CommandGrant; 3] {
    [
        UPDATE.change(Risk::Moderate, "to write resolv.conf anew"),
        FORGET.change(Risk::Moderate, "to take back an interface's name servers"),
        CommandGrant::change(RECORD, Risk::Moderate, "to hand in an interface's name servers"),
    ]
}

pub(crate) fn path_grants() -> [PathGrant; 3] {
    [
        PathGrant::write(BASE, "name servers of resolvconf"),
        PathGrant::read(OPENRESOLV, "which resolvconf it is"),
        PathGrant::read("/run/resolvconf/interface/*", "name servers that an interface has handed in"),
    ]
}

/// What the base file says.
pub(crate) fn base(cx: &Context) -> Result<String> {
    match cx.files_as(linux_sysadmin_sdk::Privilege::Root).read(BASE) {
        Err(problem) if problem.category == Category::NotFound => Ok(String::new()),
        other => other,
    }
}

/// The step that has resolvconf take over the base file, and the command after an undo.
pub(crate) fn update() -> Command {
    UPDATE.command().as_root()
}

/// The step that hands in the servers of an interface, as the script of ifupdown does when it is brought up, and takes them back.
pub(crate) fn record(device: &str, dns: &Dns, cx: &Context) -> Step {
    let names = ["inet", "inet6"].map(|family| format!("{device}.{family}"));
    let old = cx.read_all(&names.each_ref().map(|name| format!("{RECORDS}/{name}")));
    let found = old.into_iter().zip(&names).find_map(|(text, name)| Some((name, text.ok()?)));
    let name = found.as_ref().map_or(&names[0], |(name, _)| name);
    let hand_in = |text: &str| Command::new("resolvconf").args(["-a", name]).stdin(text).as_root();
    let new = resolv_conf::with("", &dns.servers, &dns.search);
    let undo = match &found {
        Some((_, text)) => hand_in(text),
        None => FORGET.with([name]).as_root(),
    };
    Step::run(hand_in(&new)).uninterruptible().undo(undo)
}
