//! What starts a schedule: a timer of systemd, or a file in `/etc/cron.d`.

use linux_sysadmin_sdk::{Category, DurationCategory, prelude::*};

use super::config::Config;
use super::when::When;
use crate::engine;

const RELOAD: CommandLine = CommandLine::new("systemctl daemon-reload");
const ENABLE: CommandLine = CommandLine::new("systemctl enable -- <unit>");
const RESTART: CommandLine = CommandLine::new("systemctl restart -- <unit>");
const ENABLE_NOW: CommandLine = CommandLine::new("systemctl enable --now -- <unit>");
const DISABLE_NOW: CommandLine = CommandLine::new("systemctl disable --now -- <unit>");
const TIMERS: CommandLine = CommandLine::new(
    "TZ=UTC systemctl show --property=Id,ActiveState,Result,NextElapseUSecRealtime,ExecMainExitTimestamp -- <unit>...",
);

const UNITS: &str = "/etc/systemd/system";
const CRON: &str = "/etc/cron.d";

/// The name of the units and of the cron job.
fn unit(name: &str) -> String {
    format!("linux-sysadmin-backup-{name}")
}

/// Whether systemd starts the schedules.
fn has_systemd(cx: &Context) -> bool {
    cx.distro().init_system == "systemd"
}

/// The files that start a schedule, with their texts.
fn files(config: &Config, when: &When, cx: &Context) -> Vec<(String, String)> {
    let (name, unit) = (&config.name, unit(&config.name));
    let run = format!("{} run {name}", engine::PATH);
    if !has_systemd(cx) {
        // What the script prints would be mailed at each run; its errors are.
        let text = format!(
            "# bak_schedule of linux-sysadmin writes this file.\nSHELL=/bin/sh\nPATH=/usr/sbin:/usr/bin:/sbin:/bin\n{} root {run} >/dev/null\n",
            when.cron
        );
        return vec![(format!("{CRON}/{unit}"), text)];
    }
    let service = format!(
        "[Unit]\nDescription=Backup {name}\nWants=network-online.target\nAfter=network-online.target\n\n\
         [Service]\nType=oneshot\nExecStart={run}\nNice=10\n"
    );
    let calendars: String =
        when.calendars.iter().map(|calendar| format!("OnCalendar={calendar}\n")).collect();
    let timer = format!(
        "[Unit]\nDescription=Backup {name}\n\n[Timer]\n{calendars}Persistent=true\n\n[Install]\nWantedBy=timers.target\n"
    );
    vec![(format!("{UNITS}/{unit}.service"), service), (format!("{UNITS}/{unit}.timer"), timer)]
}

/// The paths of the files that start a schedule.
fn paths(name: &str, cx: &Context) -> Vec<String> {
    let unit = unit(name);
    match has_systemd(cx) {
        true => vec![format!("{UNITS}/{unit}.timer"), format!("{UNITS}/{unit}.service")],
        false => vec![format!("{CRON}/{unit}")],
    }
}

/// Adds the steps that start the schedule from now on. `is_new` is false where it is replaced.
pub(crate) fn started(
    mut change: Change,
    config: &Config,
    when: &When,
    is_new: bool,
    cx: &Context,
) -> Result<Change> {
    if !has_systemd(cx) && cx.stat_all(&[CRON]).remove(0)?.is_none() {
        let message = format!("the target has neither systemd nor {CRON}");
        return Err(Problem::new("NO_SCHEDULER", Category::State, message).remedy("pkg_install package=cron"));
    }
    for (path, text) in files(config, when, cx) {
        // The host notices whoever changes the file meanwhile only where it was read.
        let _ = cx.read(&path);
        change = change.step(Step::write(path, text).mode(0o644).owner("root", "root"));
    }
    if !has_systemd(cx) {
        return Ok(change);
    }
    let timer = format!("{}.timer", unit(&config.name));
    let enable = Step::run(ENABLE.with([&timer]).as_root());
    let restart = Step::run(RESTART.with([&timer]).as_root());
    let enable = if is_new { enable.undo(DISABLE_NOW.with([&timer]).as_root()) } else { enable };
    Ok(change.step(reload()).step(enable).step(restart).after_undo(RELOAD.command().as_root()))
}

/// Adds the steps after which nothing starts the schedule any more.
pub(crate) fn stopped(mut change: Change, name: &str, cx: &Context) -> Change {
    if has_systemd(cx) {
        let timer = format!("{}.timer", unit(name));
        let disable = Step::run(DISABLE_NOW.with([&timer]).as_root());
        change = change.step(disable.undo(ENABLE_NOW.with([&timer]).as_root()));
    }
    let paths = paths(name, cx);
    for (path, found) in paths.iter().zip(cx.stat_all(&paths)) {
        if matches!(found, Ok(Some(_))) {
            change = change.step(Step::remove(path));
        }
    }
    match has_systemd(cx) {
        true => change.step(reload()).after_undo(RELOAD.command().as_root()),
        false => change,
    }
}

fn reload() -> Step {
    Step::run(RELOAD.command().as_root()).uninterruptible()
}

/// What systemd says of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// The next start.
    pub(crate) next: Option<String>,
    /// The end of the last run, and whether it failed.
    pub(crate) last: Option<String>,
    pub(crate) failed: bool,
    /// Whether nothing starts it.
    pub(crate) off: bool,
}

/// Asks systemd about the schedules. The states are in the order of the names; elsewhere they are empty.
pub(crate) fn states(names: &[&str], cx: &Context) -> Vec<State> {
    if names.is_empty() || !has_systemd(cx) {
        return names.iter().map(|_| State::default()).collect();
    }
    let units =
        names.iter().flat_map(|name| ["timer", "service"].map(|kind| format!("{}.{kind}", unit(name))));
    let output = cx.run(TIMERS.with(units).duration(DurationCategory::Quick));
    let text = output.map(|output| output.text().into_owned()).unwrap_or_default();
    let value = |unit: &str, key: &str| {
        let block = text
            .split("\n\n")
            .find(|block| block.lines().any(|line| line.strip_prefix("Id=") == Some(unit)))?;
        let value = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(value.to_owned()).filter(|value| !value.is_empty() && value != "n/a")
    };
    let state = |name: &&str| {
        let [timer, service] = ["timer", "service"].map(|kind| format!("{}.{kind}", unit(name)));
        State {
            next: value(&timer, "NextElapseUSecRealtime"),
            last: value(&service, "ExecMainExitTimestamp"),
            failed: value(&service, "Result").is_some_and(|result| result != "success"),
            off: value(&timer, "ActiveState").is_some_and(|state| state != "active"),
        }
    };
    names.iter().map(state).collect()
}

pub(crate) fn grants(module: Module) -> Module {
    let module = [
        "/etc/systemd/system/linux-sysadmin-backup-*.service",
        "/etc/systemd/system/linux-sysadmin-backup-*.timer",
        "/etc/cron.d/linux-sysadmin-backup-*",
    ]
    .into_iter()
    .fold(module, |module, glob| {
        module
            .path(PathGrant::write(glob, "what starts a schedule"))
            .path(PathGrant::read(glob, "whether a schedule is there"))
    });
    module
        .path(PathGrant::read(CRON, "whether cron is there"))
        .command(TIMERS.read("when schedules run"))
        .command(RELOAD.change(Risk::Low, "after a timer was written"))
        .command(ENABLE.change(Risk::Moderate, "to start a schedule at boot"))
        .command(RESTART.change(Risk::Moderate, "to start a schedule's timer"))
        .command(ENABLE_NOW.change(Risk::Moderate, "to undo the removal of a schedule"))
        .command(DISABLE_NOW.change(Risk::Moderate, "to remove a schedule"))
}
