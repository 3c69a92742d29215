//! `net_wait`: waits until a port answers, or no longer does.

use std::net::IpAddr;
use std::time::Duration;

use linux_sysadmin_sdk::prelude::*;

use crate::name;
use crate::probe::NO_PROGRAM;
use crate::probe::tcp::{self, Outcome};
use crate::sockets::{self, Socket};
use crate::target::{Family, Found, Target};

/// The seconds for which it waits, where the caller doesn't say it, and at most.
const SECONDS: i64 = 30;
const MOST_SECONDS: i64 = 300;

/// The time between two attempts.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct WaitArgs {
    /// TCP port
    port: i64,
    /// Default: this machine
    target: Option<String>,
    /// Until nothing answers
    closed: Option<bool>,
    /// At most 300, default 30
    seconds: Option<i64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Waited {
    /// Whether it came to what was waited for.
    done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
    /// What the port did at last.
    last: &'static str,
    waited_s: f64,
    attempts: u32,
    /// The call that helps further.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

pub(crate) fn net_wait(args: WaitArgs, cx: &Context) -> Result<Single<Waited>> {
    let port = name::check_port(args.port)?;
    let seconds = args.seconds.unwrap_or(SECONDS);
    if !(1..=MOST_SECONDS).contains(&seconds) {
        let message = format!("seconds is {seconds}: expected 1 to {MOST_SECONDS}");
        return Err(Problem::validation("INVALID_ARGUMENTS", message));
    }
    let target = Target::parse(args.target.as_deref().unwrap_or("127.0.0.1"))?;
    let is_closed_wanted = args.closed == Some(true);
    let begin = cx.monotonic();
    let waited = || ((cx.monotonic() - begin) * 10.0).round() / 10.0;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let (address, last, is_open) = attempt(&target, port, cx)?;
        let is_done = is_open != is_closed_wanted;
        let is_over = waited() + PAUSE.as_secs_f64() > seconds as f64;
        if is_done || is_over {
            let next = (!is_done).then(|| next(&target, port, is_closed_wanted));
            return Ok(Single(Waited { done: is_done, address, last, waited_s: waited(), attempts, next }));
        }
        cx.sleep(PAUSE);
    }
}

/// One attempt: the address that answers, what became of it, and whether it is open. A name that isn't known yet may be later.
fn attempt(target: &Target, port: u16, cx: &Context) -> Result<(Option<IpAddr>, &'static str, bool)> {
    let addresses = match target.find(Family::Any, cx)? {
        Found::Addresses(addresses) => addresses,
        Found::Nothing => return Ok((None, "the name has no address", false)),
        Found::NoAnswer => return Ok((None, "no DNS server answers", false)),
    };
    let outcomes = match tcp::connect(&addresses, port, cx) {
        // Who listens on this machine is known without a connection.
        Err(problem) if problem.code == NO_PROGRAM && addresses.iter().all(IpAddr::is_loopback) => {
            return own(port, cx);
        }
        outcomes => outcomes?,
    };
    let open = outcomes.iter().find(|(_, outcome)| *outcome == Outcome::Open);
    let told = open.or(outcomes.first());
    let (address, outcome) =
        told.map_or((None, Outcome::Unknown), |(address, outcome)| (Some(*address), *outcome));
    Ok((address, outcome.meaning(), outcome == Outcome::Open))
}

/// The same of a port of this machine, from the sockets that it has.
fn own(port: u16, cx: &Context) -> Result<(Option<IpAddr>, &'static str, bool)> {
    let is_on = |socket: &Socket| {
        let address = socket.local.address;
        let is_reached = address.is_none_or(|own| own.is_unspecified() || own.to_canonical().is_loopback());
        socket.is_listening() && !socket.local.is_udp && socket.local.port == port && is_reached
    };
    let is_open = sockets::all(cx)?.iter().any(is_on);
    let last = if is_open { "something listens there" } else { "nothing listens there" };
    Ok((None, last, is_open))
}

fn next(target: &Target, port: u16, is_closed_wanted: bool) -> String {
    match (is_closed_wanted, target) {
        (true, _) => format!("net_connections(port={port}) on that machine tells who listens"),
        (false, Target::Address(address)) if address.is_loopback() => {
            format!(
                "net_connections(port={port}) tells who listens, svc_status what keeps the service from starting"
            )
        }
        (false, Target::Address(address)) => {
            format!("net_explain(target={address}, port={port}) tells what stands in the way")
        }
        (false, Target::Name(name)) => {
            format!("net_explain(target={name}, port={port}) tells what stands in the way")
        }
    }
}
