//! Runs all units: units that compute run beside units that wait for hosts. Each slot runs one unit after the other, the
//! longest first.

use super::Outcome;
use super::interrupt::Interrupt;
use super::process::{self, Report};
use super::slots::{self, Slot};
use super::timings::Timings;
use super::units::{Needs, Program, Unit};
use crate::build::Profile;
use crate::{dist, hosts, tally, workspace};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The home beside the program. Its cache keeps what the program compiles in the tests.
pub(super) fn test_home(program: &Path) -> PathBuf {
    program.with_file_name("test-home")
}

/// The program under test.
pub(super) fn program(profile: Profile) -> Result<PathBuf> {
    let folder = if profile == Profile::Dev { "debug" } else { "release" };
    let program = workspace::target_dir()?.join(folder).join(workspace::BINARY);
    program.canonicalize().context("the program is gone")
}

/// Runs all units, and takes down the hosts that it has brought up.
pub(super) fn run(
    units: &[Unit],
    profile: Profile,
    no_hosts: Option<String>,
    interrupt: &Interrupt,
    timings: &Timings,
) -> Result<Outcome> {
    if let Some(reason) = &no_hosts {
        println!("xtask: tests that need a host will be skipped: {reason}");
    }
    let program = program(profile)?;
    let slots = slots::for_units(units);
    let run = Run {
        environment: environment(&program, profile, no_hosts.as_deref())?,
        queue: Mutex::new(queue(units, timings)),
        ready: Ready::default(),
        outcome: Mutex::default(),
        interrupt,
        timings,
        dist: program.parent().map(Path::to_owned),
    };
    let mut ours = Vec::new();
    thread::scope(|scope| {
        for slot in &slots {
            let run = &run;
            scope.spawn(move || run.work(slot));
        }
        match &no_hosts {
            Some(_) => slots.iter().for_each(|slot| run.ready.say(slot.needs, Ok(()))),
            None => ours = run.bring_up(&slots),
        }
    });
    // Without names, every host of the machine would be taken down.
    let down = if ours.is_empty() { Ok(()) } else { timings.time("hosts down", || hosts::down(&ours)) };
    run.finish(down)
}

/// The environment of every unit.
struct Environment {
    variables: Vec<(&'static str, String)>,
    skip_log: tempfile::NamedTempFile,
}

fn environment(program: &Path, profile: Profile, no_hosts: Option<&str>) -> Result<Environment> {
    let skip_log = tempfile::NamedTempFile::new().context("cannot make a file for what is skipped")?;
    let text = |path: &Path| path.display().to_string();
    let mut variables = vec![
        ("LINUX_SYSADMIN_BIN", text(program)),
        ("LINUX_SYSADMIN_SKIP_LOG", text(skip_log.path())),
        ("XTASK", text(&std::env::current_exe()?)),
    ];
    if profile == Profile::Dev {
        variables.push(("LINUX_SYSADMIN_FAULT_POINTS", "1".to_owned()));
    }
    variables.extend(dist::client_variables()?.iter().map(|(name, program)| (*name, text(program))));
    // `dist --test` says itself where its packages are.
    let packages = dist::packages_of(program);
    if std::env::var_os(dist::PACKAGES_VARIABLE).is_none() && packages.is_dir() {
        variables.push((dist::PACKAGES_VARIABLE, text(&packages)));
    }
    variables.push(match no_hosts {
        None => ("LINUX_SYSADMIN_TEST_HOSTS", text(&hosts::hosts_json())),
        Some(reason) => ("LINUX_SYSADMIN_NO_HOSTS", reason.to_owned()),
    });
    Ok(Environment { variables, skip_log })
}

/// The units by their needs. They are taken from the end, where those are that took longest the last time.
fn queue(units: &[Unit], timings: &Timings) -> BTreeMap<Needs, Vec<Unit>> {
    let mut queue: BTreeMap<Needs, Vec<Unit>> = BTreeMap::new();
    for unit in units {
        queue.entry(unit.needs).or_default().push(unit.clone());
    }
    for units in queue.values_mut() {
        units.sort_by(|a, b| timings.expected(a).total_cmp(&timings.expected(b)));
    }
    queue
}

/// Says for each need whether its hosts are up, or why they aren't.
#[derive(Default)]
struct Ready {
    said: Mutex<BTreeMap<Needs, Result<(), String>>>,
    changed: Condvar,
}

impl Ready {
    fn say(&self, needs: Needs, up: Result<(), String>) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(needs, up);
        self.changed.notify_all();
    }

    fn wait(&self, needs: Needs) -> Result<(), String> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(up) = said.get(&needs) {
                return up.clone();
            }
            said = self.changed.wait(said).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

struct Run<'a> {
    environment: Environment,
    queue: Mutex<BTreeMap<Needs, Vec<Unit>>>,
    ready: Ready,
    outcome: Mutex<Outcome>,
    interrupt: &'a Interrupt,
    timings: &'a Timings,
    /// The folder of the program, which hosts get a copy of.
    dist: Option<PathBuf>,
}

impl Run<'_> {
    /// Brings up the hosts of all slots, one image after the other. The image comes first for which most units wait.
    /// Gives the names of the hosts that weren't up before.
    fn bring_up(&self, slots: &[Slot]) -> Vec<String> {
        self.ready.say(Needs::Nothing, Ok(()));
        let mut ours = Vec::new();
        let mut failed = BTreeMap::new();
        let kinds: BTreeSet<Needs> = slots.iter().map(|slot| slot.needs).collect();
        let of_kind =
            |needs: Needs| slots.iter().filter(move |slot| slot.needs == needs).flat_map(|slot| &slot.hosts);
        let first = [Needs::Debian, Needs::Rhel, Needs::Lab];
        for group in [&first[..], &[Needs::Fleet], &[Needs::Stocked], &[Needs::Arch]] {
            let group: Vec<Needs> = group.iter().copied().filter(|needs| kinds.contains(needs)).collect();
            let mut images: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            for (image, name) in group.iter().flat_map(|needs| of_kind(*needs)) {
                images.entry(image).or_default().push(name.clone());
            }
            for (image, names) in images {
                if self.interrupt.is_told() {
                    break;
                }
                ours.extend(names.iter().filter(|name| !hosts::is_supervised(name)).cloned());
                let up = self
                    .timings
                    .time(&format!("hosts of {image}"), || hosts::up(image, &names, self.dist.as_deref()));
                if let Err(error) = up {
                    failed.insert(image, format!("not all hosts of `{image}` are up: {error:#}"));
                }
            }
            for needs in group {
                let why = of_kind(needs).find_map(|(image, _)| failed.get(image).cloned());
                self.ready.say(needs, why.map_or(Ok(()), Err));
            }
        }
        ours
    }

    /// Runs units with the slot's needs until none is left.
    fn work(&self, slot: &Slot) {
        let mut up = self.ready.wait(slot.needs);
        while let Some(unit) = self.next(slot.needs) {
            let report = match &up {
                Ok(()) => process::run(&unit, &mut self.command(&unit, slot), self.interrupt)
                    .unwrap_or_else(|error| Report::not_run(&unit, &format!("{error:#}"))),
                Err(why) => Report::not_run(&unit, why),
            };
            // A unit that the interrupt has killed says nothing about its tests.
            if !self.interrupt.is_told() {
                self.tell(&unit, &report);
                if report.is_late {
                    up = self.make_anew(slot).map_err(|error| format!("{error:#}"));
                }
            }
        }
    }

    /// Makes the hosts of a slot anew, so that the next unit finds nothing of one that was ended in the middle.
    fn make_anew(&self, slot: &Slot) -> Result<()> {
        let names: Vec<String> = slot.hosts.iter().map(|(_, name)| name.clone()).collect();
        // Without names, every host of the machine would be taken down.
        if names.is_empty() {
            return Ok(());
        }
        self.timings.time("hosts made anew", || {
            hosts::down(&names).context("the hosts of a unit that was ended could not be taken down")?;
            for (image, name) in &slot.hosts {
                hosts::up(image, std::slice::from_ref(name), self.dist.as_deref())?;
            }
            Ok(())
        })
    }

    fn next(&self, needs: Needs) -> Option<Unit> {
        if self.interrupt.is_told() {
            return None;
        }
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&needs)?.pop()
    }

    fn command(&self, unit: &Unit, slot: &Slot) -> Command {
        let mut command = unit.command();
        for name in ["LINUX_SYSADMIN_TEST_HOSTS", "LINUX_SYSADMIN_NO_HOSTS", "LINUX_SYSADMIN_FAULT_POINTS"] {
            command.env_remove(name);
        }
        command.envs(self.environment.variables.iter().cloned());
        if !slot.instead.is_empty() {
            command.env("LINUX_SYSADMIN_TEST_HOST", &slot.instead);
        }
        if let Program::Tests { .. } = unit.program {
            // A stable test harness reports the time of each test only with this variable.
            command.env("RUSTC_BOOTSTRAP", "1").args(["-Z", "unstable-options", "--report-time"]);
        }
        command
    }

    /// Prints a line about a unit that succeeded, and the whole output of a unit that failed.
    fn tell(&self, unit: &Unit, report: &Report) {
        self.timings.add(unit, report);
        let mut outcome = self.outcome();
        let mut stdout = std::io::stdout().lock();
        if !report.is_fine() {
            writeln!(stdout, "\n---- {}\n{}", unit.label, report.output).ok();
            let why = report.broken.clone();
            outcome.failures.push(format!(
                "{}: {}",
                unit.label,
                why.unwrap_or_else(|| failed(&report.output))
            ));
        }
        let result = if report.is_fine() { "ok" } else { "FAILED" };
        let seconds = report.took.as_secs_f64();
        writeln!(stdout, "{result:<6} {seconds:>7.1} s  {:<60} {}", unit.label, report.tally).ok();
        outcome.tally.add(&report.tally);
    }

    fn outcome(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(self, down: Result<()>) -> Result<Outcome> {
        let skips = tally::parse_skips(&fs::read_to_string(self.environment.skip_log.path())?);
        let mut outcome = self.outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (test, reason) in &skips {
            println!("SKIPPED {test}: {reason}");
        }
        outcome.tally.skip(skips.len() as u64);
        if let Err(error) = down {
            outcome.failures.push(format!("the hosts could not be taken down: {error:#}"));
        }
        Ok(outcome)
    }
}

/// The names of the tests that failed.
fn failed(output: &str) -> String {
    let names = output.lines().filter_map(|line| {
        let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
        result.starts_with("FAILED").then_some(name)
    });
    names.collect::<Vec<_>>().join(", ")
}
