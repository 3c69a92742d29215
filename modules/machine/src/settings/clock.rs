//! The clock: the time zone, the service that keeps it by the network, and the server that this service uses.

use std::collections::HashMap;

use linux_sysadmin_sdk::{Output, prelude::*, time};

use crate::near::near;

pub(crate) const SHOW: CommandLine = CommandLine::new("TZ=UTC timedatectl show");
pub(crate) const TIMESYNC: CommandLine = CommandLine::new("timedatectl show-timesync");
/// Prints the clock where timedatectl has no answer, as in a container without systemd.
pub(crate) const DATE: CommandLine = CommandLine::new("date -u +%FT%TZ");
pub(crate) const TRACKING: CommandLine = CommandLine::new("chronyc -c tracking");
macro_rules! services {
    ($command:literal) => {
        CommandLine::new(concat!(
            $command,
            " -- systemd-timesyncd.service chronyd.service chrony.service ntpd.service ntp.service ntpsec.service ",
            "openntpd.service"
        ))
    };
}

/// Prints the services that systemd has loaded, as each one is that runs. It answers in half the time of [`SERVICES`].
pub(crate) const LOADED: CommandLine = services!("systemctl list-units --all --plain --no-legend --no-pager");
pub(crate) const SERVICES: CommandLine = services!("systemctl show --property=Id,ActiveState,UnitFileState");
pub(crate) const SET_ZONE: CommandLine = CommandLine::new("timedatectl set-timezone <text>");
pub(crate) const NTP_ON: CommandLine = CommandLine::new("timedatectl set-ntp true");
pub(crate) const NTP_OFF: CommandLine = CommandLine::new("timedatectl set-ntp false");

/// The name of the time zone, on Debian's family.
pub(crate) const ZONE: &str = "/etc/timezone";

/// The directory of the time zones, and the tables that name the usual ones.
const ZONES: &str = "/usr/share/zoneinfo";
const TABLES: [&str; 2] = ["/usr/share/zoneinfo/zone1970.tab", "/usr/share/zoneinfo/zone.tab"];

/// The clock as timedatectl tells it.
#[derive(Default)]
pub(crate) struct Clock {
    pub(crate) zone: Option<String>,
    pub(crate) can_ntp: bool,
    pub(crate) ntp: bool,
    pub(crate) synchronized: bool,
    pub(crate) rtc_is_local: bool,
    /// The time as RFC 3339.
    pub(crate) time: Option<String>,
}

impl Clock {
    /// Reads the output of [`SHOW`].
    pub(crate) fn read(output: Result<Output>) -> Result<Self> {
        let output = output?.success("timedatectl")?;
        let text = output.text();
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        let is = |key| value(key) == Some("yes");
        Ok(Self {
            zone: value("Timezone").map(str::to_owned),
            can_ntp: is("CanNTP"),
            ntp: is("NTP"),
            synchronized: is("NTPSynchronized"),
            rtc_is_local: is("LocalRTC"),
            time: value("TimeUSec").and_then(rfc3339),
        })
    }

    /// Reads the time and the zone without timedatectl.
    pub(crate) fn by_date(cx: &Context) -> Result<Self> {
        let time = cx.run(DATE.command())?.success("date")?.text().trim().to_owned();
        let zone = cx.read(ZONE).ok().map(|zone| zone.trim().to_owned()).filter(|zone| !zone.is_empty());
        Ok(Self { zone, time: Some(time), ..Self::default() })
    }
}

/// `Fri 2026-11-27 02:36:57 UTC` as RFC 3339.
fn rfc3339(text: &str) -> Option<String> {
    let mut words = text.split(' ').skip(1);
    let (date, clock, zone) = (words.next()?, words.next()?, words.next()?);
    (zone == "UTC").then(|| format!("{date}T{clock}Z"))
}

/// A service that can keep the clock.
pub(crate) struct Service {
    pub(crate) unit: String,
    pub(crate) is_active: bool,
}

/// The service that runs, by the output of [`LOADED`].
pub(crate) fn running(output: Result<Output>) -> Option<Service> {
    let text = output.ok()?.text().into_owned();
    text.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().take(3).collect();
        match words[..] {
            [unit, "loaded", "active"] => Some(Service { unit: unit.to_owned(), is_active: true }),
            _ => None,
        }
    })
}

/// The services that are installed, the one that runs first. An alias is named once.
pub(crate) fn services(output: Result<Output>) -> Vec<Service> {
    let text = output.map(|output| output.text().into_owned()).unwrap_or_default();
    let mut found: Vec<Service> = Vec::new();
    for block in text.split("\n\n") {
        let values: HashMap<_, _> = block.lines().filter_map(|line| line.split_once('=')).collect();
        let value = |key: &str| values.get(key).copied().unwrap_or_default();
        let is_active = value("ActiveState") == "active";
        let is_installed = is_active || !value("UnitFileState").is_empty();
        if is_installed && found.iter().all(|service| service.unit != value("Id")) {
            found.push(Service { unit: value("Id").to_owned(), is_active });
        }
    }
    found.sort_by_key(|service| !service.is_active);
    found
}

/// The server that the clock is kept by.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Server {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stratum: Option<u8>,
    /// The seconds between the clock and the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) off_by_seconds: Option<f64>,
    /// The time of the last measurement that counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) measured_at: Option<String>,
}

/// Reads the output of [`TRACKING`]: values between commas, in the order of `chronyc tracking`. None where chronyd follows no
/// server.
pub(crate) fn tracking(output: Result<Output>) -> Option<Server> {
    let output = output.ok().filter(|output| output.exit_code == 0)?;
    let text = output.text();
    let values: Vec<&str> = text.lines().next()?.split(',').collect();
    let number = |at: usize| values.get(at)?.parse::<f64>().ok();
    if values.len() < 14 || values[13] == "Not synchronised" {
        return None;
    }
    Some(Server {
        server: Some(values[1].to_owned()).filter(|name| !name.is_empty()),
        stratum: values[2].parse().ok(),
        off_by_seconds: number(4).map(f64::abs),
        measured_at: number(3).map(|unix| time::rfc3339(unix as i64)),
    })
}

/// Reads the output of [`TIMESYNC`]. None where systemd-timesyncd has no answer of a server.
pub(crate) fn timesync(output: Result<Output>) -> Option<Server> {
    let output = output.ok().filter(|output| output.exit_code == 0)?;
    let text = output.text();
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let message = value("NTPMessage")?;
    let stratum = message.split([' ', ',']).find_map(|word| word.strip_prefix("Stratum="))?.parse().ok();
    let name = value("ServerName").or_else(|| value("ServerAddress")).map(str::to_owned);
    Some(Server { server: name, stratum, ..Server::default() })
}

/// Refuses a time zone that this machine doesn't have.
pub(crate) fn check_zone(zone: &str, cx: &Context) -> Result<()> {
    let is_name = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte))
            && !part.starts_with('-')
    };
    // Debian's link of this name leads to /etc/localtime, which would then lead to itself.
    let is_link_to_own = zone.rsplit('/').next() == Some("localtime");
    let is_zone = zone.len() <= 64 && zone.split('/').all(is_name) && !is_link_to_own;
    let path = format!("{ZONES}/{zone}");
    let found = is_zone.then(|| cx.stat_all(&[&path]).pop()).flatten();
    // There are tables beside the zones.
    let is_table = || cx.read_bytes(&path).is_ok_and(|bytes| !bytes.starts_with(b"TZif"));
    if matches!(found, Some(Ok(Some(metadata))) if !metadata.is_dir) && !is_table() {
        return Ok(());
    }
    let tables = cx.read_all(&TABLES).into_iter().flatten().collect::<Vec<_>>();
    let names = tables.iter().flat_map(|table| table.lines()).filter(|line| !line.starts_with('#'));
    let close = near(zone, names.filter_map(|line| line.split('\t').nth(2)).map(str::to_owned));
    let shown: String = zone.chars().filter(|character| !character.is_control()).take(64).collect();
    let message =
        format!("{shown:?} is no time zone of this machine: expected one such as Europe/Berlin or UTC");
    let problem = Problem::validation("UNKNOWN_TIME_ZONE", message);
    Err(if close.is_empty() { problem } else { problem.remedy(format!("Near: {}", close.join(", "))) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::output;

    fn said(text: &str) -> Result<Output> {
        Ok(output(0, text, ""))
    }

    #[test]
    fn the_clock_is_read() {
        // timedatectl of systemd 252, Debian 12.
        let text = "Timezone=Europe/Berlin\nLocalRTC=no\nCanNTP=yes\nNTP=yes\nNTPSynchronized=no\n\
                    TimeUSec=Fri 2026-11-27 02:36:57 UTC\n";
        let clock = Clock::read(said(text)).unwrap();
        assert_eq!(clock.zone.as_deref(), Some("Europe/Berlin"));
        assert_eq!(clock.time.as_deref(), Some("2026-11-27T02:36:57Z"));
        assert!(clock.can_ntp && clock.ntp && !clock.synchronized && !clock.rtc_is_local);
    }

    #[test]
    fn chronyd_tells_its_server_or_that_it_follows_none() {
        // The first is chronyc of chrony 4.3 without a server; the second has the form of its manual's example.
        let none = "00000000,,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,1.000000000,\
                    1.000000000,0.0,Not synchronised\n";
        assert_eq!(tracking(said(none)), None);
        let some = "CB00710F,ntp.example.net,3,1500000000.5,-0.000006523,-0.000006747,0.000035822,3.225,0.000,0.129,\
                    0.013639022,0.001100737,64.2,Normal\n";
        let expected = Server {
            server: Some("ntp.example.net".into()),
            stratum: Some(3),
            off_by_seconds: Some(0.000006523),
            measured_at: Some("2017-07-14T02:40:00Z".into()),
        };
        assert_eq!(tracking(said(some)), Some(expected));
        for odd in ["", "506 Cannot talk to daemon\n", "a,b\n"] {
            assert_eq!(tracking(said(odd)), None, "{odd}");
        }
    }

    #[test]
    fn timesyncd_tells_its_server_once_it_has_an_answer() {
        // The form of systemd's own example in timedatectl(1) and org.freedesktop.timesync1(5).
        let text = "SystemNTPServers=\nFallbackNTPServers=0.debian.pool.ntp.org\nServerName=0.debian.pool.ntp.org\n\
                    ServerAddress=192.0.2.1\nPollIntervalUSec=2min 8s\nNTPMessage={ Leap=0, Version=4, Mode=4, Stratum=2, \
                    Precision=-25, Ignored=no, PacketCount=3, Jitter=1.2ms }\nFrequency=-12345\n";
        let found = timesync(said(text)).unwrap();
        assert_eq!((found.server.as_deref(), found.stratum), (Some("0.debian.pool.ntp.org"), Some(2)));
        assert_eq!(timesync(said("ServerName=0.debian.pool.ntp.org\n")), None);
        assert_eq!(timesync(Ok(output(1, "", "Failed to parse bus message: No route to host\n"))), None);
    }

    #[test]
    fn the_service_that_runs_comes_first_and_an_alias_once() {
        // systemctl of systemd 252, Debian 12 with chrony.
        let text = "Id=systemd-timesyncd.service\nActiveState=inactive\nUnitFileState=\n\n\
                    Id=systemd-off.service\nActiveState=inactive\nUnitFileState=disabled\n\n\
                    Id=chrony.service\nActiveState=active\nUnitFileState=enabled\n\n\
                    Id=chrony.service\nActiveState=active\nUnitFileState=enabled\n";
        let found: Vec<_> =
            services(said(text)).into_iter().map(|found| (found.unit, found.is_active)).collect();
        assert_eq!(found, [("chrony.service".to_owned(), true), ("systemd-off.service".to_owned(), false)]);
    }
}
