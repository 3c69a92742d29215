//! Services and timers of systemd, by what `systemctl` prints for programs.
#![forbid(unsafe_code)]

mod list;
mod name;
mod properties;
mod status;
mod systemctl;
mod time;
mod timers;

use linux_sysadmin_sdk::prelude::*;

/// The module.
pub fn module() -> Module {
    Module::new("services", env!("CARGO_PKG_VERSION"), "services", "Services and timers of systemd")
        .license(env!("CARGO_PKG_LICENSE"))
        .serves("init_system", &["systemd"])
        .command(systemctl::LOADED_SERVICES.read("states of the loaded services"))
        .command(systemctl::UNIT_FILES.read("what is installed, and what of it starts at boot"))
        .command(systemctl::STATUS.read("state of one unit"))
        .command(systemctl::UNIT_FILE.read("whether an unknown unit's file is there and can't be read"))
        .command(systemctl::LOADED_UNITS.read("names to suggest for an unknown unit"))
        .command(systemctl::LOADED_TIMERS.read("schedules of the loaded timers"))
        .command(systemctl::TIMERS.read("schedules of timers that are installed only"))
        .command(systemctl::ACTIVATED.read("how the last run of what a timer activates went"))
        .command(systemctl::ELAPSES.read("when the timers elapse next"))
        .command(systemctl::CLOCK.read("the target's own clock, for how long something has been running"))
        .tool(Tool::new("svc_list", "All services and their states, failed ones first", list::svc_list))
        .tool(Tool::new("svc_status", "Detailed state of one systemd unit", status::svc_status).instant())
        .tool(Tool::new("timer_list", "systemd timers: schedule, next and last run", timers::timer_list))
}

linux_sysadmin_sdk::export!(module);
