//! `machine_time`: the clock, and what keeps it.

use linux_sysadmin_sdk::prelude::*;

use crate::settings::clock::{self, Clock, Server, services};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct TimeArgs {}

/// The clock.
#[derive(Serialize)]
pub(crate) struct Time {
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
    synchronized: bool,
    /// The service that keeps the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(flatten)]
    server: Option<Server>,
    /// True where the hardware's clock has the local time, which is wrong for hours when that changes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    rtc_in_local_time: bool,
    /// Why the clock isn't synchronized.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// The call that helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

pub(crate) fn time(_: TimeArgs, cx: &Context) -> Result<Single<Time>> {
    let commands = [clock::SHOW, clock::TIMESYNC, clock::TRACKING, clock::LOADED].map(CommandLine::command);
    let [shown, timesync, tracking, units] = cx.run_each(commands);
    let (clock, silent) = match Clock::read(shown) {
        Ok(clock) => (clock, None),
        Err(problem) => (Clock::by_date(cx)?, Some(problem.message)),
    };
    let services = match clock::running(units) {
        Some(service) => vec![service],
        // Without systemd, systemctl has no answer either.
        None if silent.is_some() => Vec::new(),
        None => services(cx.run(clock::SERVICES.command())),
    };
    let running = services.first().filter(|service| service.is_active);
    let server = match running.map(|service| service.unit.as_str()) {
        Some("systemd-timesyncd.service") => clock::timesync(timesync),
        Some("chrony.service" | "chronyd.service") => clock::tracking(tracking),
        // A chronyd that no systemd started is known by its answer alone.
        None if silent.is_some() => clock::tracking(tracking),
        _ => None,
    };
    let synchronized = clock.synchronized || server.is_some();
    let (why, next) = match (synchronized, services.first()) {
        (true, _) => (None, None),
        (false, None) if silent.is_some() => {
            (silent.and_then(|said| said.lines().next().map(str::to_owned)), None)
        }
        (false, None) => {
            let why = "no service that keeps the clock by the network is installed";
            (Some(why.to_owned()), Some("pkg_install package=chrony".to_owned()))
        }
        (false, Some(service)) if !service.is_active => {
            let next = match clock.can_ntp && !clock.ntp {
                true => "machine_set ntp=true".to_owned(),
                false => format!("svc_start service={}", service.unit),
            };
            (Some(format!("{} doesn't run", service.unit)), Some(next))
        }
        (false, Some(service)) => {
            let why = format!("{} runs, and no server has answered it", service.unit);
            (Some(why), Some(format!("svc_logs service={}", service.unit)))
        }
    };
    Ok(Single(Time {
        time: clock.time,
        time_zone: clock.zone,
        synchronized,
        by: running.map(|service| service.unit.clone()),
        server,
        rtc_in_local_time: clock.rtc_is_local,
        why,
        next,
    }))
}
