//! The machine's name, its time zone, its locale, and whether it keeps its clock by the network.

pub(crate) mod clock;
pub(crate) mod hostname;
pub(crate) mod locale;

use linux_sysadmin_sdk::prelude::*;

/// Adds the grants of everything about these settings.
pub(crate) fn grants(module: Module) -> Module {
    let changes = [
        (hostname::SET, "set the machine's name"),
        (clock::SET_ZONE, "set the time zone"),
        (clock::NTP_ON, "keep the clock by the network"),
        (clock::NTP_OFF, "no longer keep the clock by the network"),
        (locale::SET, "set the locale"),
    ];
    module
        .command(clock::SHOW.read("the clock, the time zone, and whether the clock is kept by the network"))
        .command(clock::DATE.read("the clock where timedatectl has no answer"))
        .command(clock::TIMESYNC.read("the server that systemd-timesyncd uses"))
        .command(clock::TRACKING.read("the server that chronyd uses, and how far the clock is off"))
        .command(clock::LOADED.read("which service keeps the clock"))
        .command(clock::SERVICES.read("which service could keep it"))
        .command(locale::STATUS.read("the locale"))
        .command(locale::LIST.read("which locales there are"))
        .path(PathGrant::read(hostname::STATIC, "the machine's name"))
        .path(PathGrant::read(clock::ZONE, "the name of the time zone"))
        .path(PathGrant::write(hostname::HOSTS, "the line with the machine's own name"))
        .path(PathGrant::read("/usr/share/zoneinfo/**", "which time zones there are"))
        .commands(changes.map(|(line, reason)| line.change(Risk::Moderate, reason)))
}
