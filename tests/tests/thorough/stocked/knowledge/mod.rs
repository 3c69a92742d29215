//! The profiles of `knowledge/` agree with a real machine that has the services: the files of a profile exist, its ports
//! listen, and its health checks tell a service that runs from one that doesn't.
//!
//! `tests/data/knowledge_real.yaml` lists what can't be checked on such a host, each with its message. An entry that can be
//! checked after all is a failure as well.

mod profile;
mod stocked;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Instant;

use linux_sysadmin_tests::host;

use profile::{Check, Profile, Setting, Verdict, settings};
use stocked::{Outcome, Stocked, until_held};

/// The least number of profiles that are checked.
const AT_LEAST: usize = 30;

/// Messages of a command that doesn't know its arguments.
const USAGE: &str = "(unrecognized|unknown|invalid|illegal|no such|unexpected) (option|argument|command|operation|subcommand|verb|flag|switch|action|object)|(option|argument)s? .*(not recognized|unrecognized|unknown|ambiguous|requires an argument)|missing operand|too (many|few) arguments|^usage:|traceback|is not (a|an) .*command";

/// The results for a profile.
struct Held {
    id: String,
    seconds: u64,
    items: BTreeMap<String, Outcome>,
    /// The parts that weren't checked, each with the reason.
    left_out: Vec<String>,
}

#[test]
fn what_a_profile_says_is_so_on_a_real_machine() {
    let Some(host) = host("what_a_profile_says_is_so_on_a_real_machine", "stocked1") else { return };
    let stocked = Stocked(host);
    let installed = stocked.installed();
    let (profiles, settings) = (Profile::all(), settings());
    // The author of a profile can name the only profiles to check, as `nginx,sshd`.
    let only = std::env::var("LINUX_SYSADMIN_TEST_PROFILES").unwrap_or_default();
    let before = stocked.active();
    let (mut held, mut not_held, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for id in settings.keys() {
        if !profiles.iter().any(|profile| profile.id == *id) {
            wrong.push(format!("{id}: there is no such profile"));
        }
    }
    let nothing = Setting::default();
    for profile in &profiles {
        if !only.is_empty() && !only.split(',').any(|id| id == profile.id) {
            continue;
        }
        if let Some(why) = why_not(profile, &installed) {
            not_held.push(format!("{:<20} not held: {why}", profile.id));
            continue;
        }
        let setting = settings.get(&profile.id).unwrap_or(&nothing);
        let begun = Instant::now();
        let mut one = hold(&stocked, profile, setting, &installed);
        one.seconds = begun.elapsed().as_secs();
        wrong.extend(contradictions(&one, setting));
        held.push(one);
        let left = stocked.active();
        let changed: Vec<_> = before.symmetric_difference(&left).collect();
        if !changed.is_empty() {
            wrong.push(format!("{}: the host isn't left as it was: {changed:?}", profile.id));
        }
    }
    print_table(&held, &not_held, &settings);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(held.len() >= AT_LEAST || !only.is_empty(), "only {} profiles were held", held.len());
}

/// The reason why a profile can't be checked on this host.
fn why_not(profile: &Profile, installed: &BTreeSet<String>) -> Option<String> {
    let needed: Vec<_> = profile.packages.iter().filter(|package| !package.optional).collect();
    let missing: Vec<_> = needed.iter().filter(|package| !installed.contains(&package.name)).collect();
    let any = profile.packages.iter().any(|package| installed.contains(&package.name));
    if profile.packages.is_empty() {
        return Some("no package of Debian's has it".to_owned());
    }
    if missing.is_empty() && any {
        return None;
    }
    let all = if missing.is_empty() {
        profile.packages.iter().collect()
    } else {
        missing.into_iter().copied().collect::<Vec<_>>()
    };
    let named = |package: &&profile::Package| match &package.origin {
        Some(origin) => format!("{} (from {origin})", package.name),
        None => package.name.clone(),
    };
    Some(format!("not installed: {}", all.iter().map(named).collect::<Vec<_>>().join(", ")))
}

/// Checks a profile: first what the installation brings, then what is there while the service runs, then the health checks
/// while it doesn't run.
fn hold(stocked: &Stocked, profile: &Profile, setting: &Setting, installed: &BTreeSet<String>) -> Held {
    let mut held = Held { id: profile.id.clone(), seconds: 0, items: BTreeMap::new(), left_out: Vec::new() };
    for unit in profile.units.iter().filter(|unit| !unit.optional) {
        held.items.insert(format!("unit {}", unit.name), stocked.unit(unit));
    }
    let checks = || profile.troubleshooting.iter().flat_map(|trouble| &trouble.checks);
    let mut programs: Vec<(&Vec<String>, &[String])> = Vec::new();
    for check in profile.health.iter().chain(&profile.validate).chain(checks()) {
        programs.push((&check.argv, &check.needs));
        programs.extend(check.candidate.iter().map(|argv| (argv, &check.needs[..])));
    }
    programs.extend(profile.backup.iter().filter_map(|backup| Some((backup.argv.as_ref()?, &[][..]))));
    let mut missing = BTreeSet::new();
    for (argv, needs) in programs {
        match stocked.program(argv, needs, installed) {
            Some(outcome) => drop(held.items.insert(format!("program {}", argv[0]), outcome)),
            None => drop(missing.insert(argv[0].clone())),
        }
    }
    held.left_out.extend(missing.iter().map(|program| format!("{program} isn't installed")));

    let was_active = stocked.active();
    let in_the_way: Vec<_> = setting.stop.iter().filter(|unit| was_active.contains(*unit)).cloned().collect();
    stocked.stop(&in_the_way);
    let files = stocked.put(&setting.files);
    stocked.all(&setting.before);
    let main = profile.main().filter(|unit| !unit.is_template()).map(|unit| unit.name.clone());
    let start = setting.start.clone().unwrap_or_else(|| main.into_iter().collect());
    let started = start.iter().try_for_each(|unit| stocked.start(unit));
    let runs = started.is_ok();
    if !start.is_empty() {
        held.items.insert("start".to_owned(), started);
    }
    stocked.all(&setting.run);

    held.hold_places(stocked, profile, setting);
    let usable = |check: &&Check| !missing.contains(&check.argv[0]);
    let mut tells = Vec::new();
    if runs {
        let checks: Vec<_> = profile.health.iter().filter(usable).collect();
        tells = held.hold_running(stocked, profile, &checks, setting);
    }
    held.hold_commands(stocked, profile, usable);

    // The service stops now.
    let begun_by_us = |unit: &String| !was_active.contains(unit) && !unit.ends_with(".target");
    let mut to_stop: Vec<String> = stocked.active().into_iter().filter(begun_by_us).collect();
    to_stop.extend(start.iter().filter(|unit| was_active.contains(*unit)).cloned());
    match &setting.never_stopped {
        _ if !runs => stocked.stop(&to_stop),
        Some(why) => held.left_out.push(format!("not stopped: {why}")),
        None => {
            stocked.stop(&to_stop);
            // Without a service, the files that the test has put there make the difference.
            if start.is_empty() {
                stocked.put_back(&files);
                stocked.all(&setting.after);
            }
            held.items.insert("stopped".to_owned(), one_tells(stocked, &tells));
        }
    }
    if !start.is_empty() {
        stocked.put_back(&files);
        stocked.all(&setting.after);
    }
    // A target that was started with the service is stopped with it.
    stocked.stop(&stocked.active().difference(&was_active).cloned().collect::<Vec<_>>());
    for unit in was_active.difference(&stocked.active()) {
        stocked
            .start(unit)
            .unwrap_or_else(|error| panic!("{}: {unit} doesn't come back: {error}", profile.id));
    }
    stocked.0.run(&["systemctl", "reset-failed"]);
    held
}

/// Asserts that one of these checks reports a fault, and that none takes a failed command for health.
fn one_tells(stocked: &Stocked, checks: &[(&Check, Option<i32>)]) -> Outcome {
    let (mut told, mut said) = (false, Vec::new());
    for (check, exit) in checks {
        let (verdict, now) = stocked.check(check);
        if verdict == Verdict::Met && now.exit != *exit {
            return Err(format!("{} is met by a command that failed: {}", check.id, now.output));
        }
        told |= verdict == Verdict::Unmet;
        said.push(format!("{}: {verdict:?} by {:?}", check.id, now.output));
    }
    if told { Ok(()) } else { Err(format!("no check tells that it is stopped: {}", said.join("; "))) }
}

impl Held {
    /// Checks the files on disk.
    fn hold_places(&mut self, stocked: &Stocked, profile: &Profile, setting: &Setting) {
        let mut items: Vec<(String, Box<dyn Fn() -> Outcome>)> = Vec::new();
        for place in profile.config.iter().chain(&profile.data) {
            items.push((format!("path {}", place.path), Box::new(|| stocked.of_place(place))));
        }
        for backup in &profile.backup {
            let path = backup.path.iter().map(|path| format!("path {path}"));
            items.extend(
                path.map(|path| (path, Box::new(|| stocked.backup(backup)) as Box<dyn Fn() -> Outcome>)),
            );
        }
        self.items.extend(until_held(items, |item| cannot(setting, item)));
    }

    /// Checks a service that runs; gives the health checks that succeed, with the exit codes of their commands.
    fn hold_running<'a>(
        &mut self,
        stocked: &Stocked,
        profile: &Profile,
        checks: &[&'a Check],
        setting: &Setting,
    ) -> Vec<(&'a Check, Option<i32>)> {
        let mut items: Vec<(String, Box<dyn Fn() -> Outcome>)> = Vec::new();
        if profile.processes.iter().any(|process| !process.name.is_empty()) {
            items.push(("process".to_owned(), Box::new(|| stocked.processes(profile))));
        }
        for log in profile.logs.iter().filter(|log| !log.optional) {
            let name = log.journal.as_ref().or(log.path.as_ref()).or(log.identifier.as_ref());
            let name = name.map(String::as_str).unwrap_or_default();
            items.push((format!("log {name}"), Box::new(|| stocked.log(log))));
        }
        for port in profile.ports.iter().filter(|port| !port.optional) {
            let name = format!("port {}/{}", port.port, port.protocol);
            items.push((name, Box::new(|| stocked.port(port, profile))));
        }
        for check in checks {
            let met = || match stocked.check(check) {
                (Verdict::Unmet, said) => {
                    Err(format!("{:?} exits with {:?}:\n{}", check.argv, said.exit, said.output))
                }
                _ => Ok(()),
            };
            items.push((format!("health {}", check.id), Box::new(met)));
        }
        self.items.extend(until_held(items, |item| cannot(setting, item)));
        let now = checks.iter().map(|check| (*check, stocked.check(check)));
        let well = now.filter(|(_, (verdict, _))| *verdict == Verdict::Met);
        well.map(|(check, (_, said))| (check, said.exit)).collect()
    }

    /// Checks the command that validates the configuration, and the commands that look for causes.
    fn hold_commands(&mut self, stocked: &Stocked, profile: &Profile, usable: impl Fn(&&Check) -> bool) {
        for check in profile.validate.iter().filter(&usable) {
            let outcome = match stocked.check(check) {
                (Verdict::Met, _) => Ok(()),
                (_, said) => Err(format!("it exits with {:?}:\n{}", said.exit, said.output)),
            };
            self.items.insert(format!("validate {}", check.argv.join(" ")), outcome);
            let main = profile.config.iter().find(|place| place.main);
            if let (Some(candidate), Some(main)) = (&check.candidate, main) {
                let outcome = stocked.candidate(check, candidate, &main.path);
                self.items.insert(format!("candidate {}", candidate.join(" ")), outcome);
            }
        }
        for trouble in &profile.troubleshooting {
            for check in trouble.checks.iter().filter(&usable) {
                let (_, said) = stocked.check(check);
                // A command that reads a log prints messages of other programs.
                let usage = said.exit != Some(0) && profile::is_match(USAGE, &said.output.to_lowercase());
                let outcome = if usage || matches!(said.exit, None | Some(124..=127)) {
                    Err(format!("it exits with {:?}:\n{}", said.exit, said.output))
                } else {
                    Ok(())
                };
                self.items.insert(format!("check {}: {}", trouble.id, check.argv.join(" ")), outcome);
            }
        }
    }
}

/// Whether the list says that this can't be checked.
fn cannot(setting: &Setting, item: &str) -> bool {
    setting.cannot.iter().any(|cannot| cannot.item == item)
}

/// The contradictions to the profile, and to the list of what can't be checked.
fn contradictions(held: &Held, setting: &Setting) -> Vec<String> {
    let mut all = Vec::new();
    for (item, outcome) in &held.items {
        let known = setting.cannot.iter().find(|cannot| cannot.item == *item);
        match (outcome, known) {
            (Err(message), None) => all.push(format!("{}: {item}: {message}", held.id)),
            (Err(message), Some(known)) if !message.contains(&known.says) => {
                all.push(format!("{}: {item}: not {:?}, but: {message}", held.id, known.says));
            }
            (Ok(()), Some(_)) => all.push(format!("{}: {item}: it can be held now", held.id)),
            _ => {}
        }
    }
    let unknown = setting.cannot.iter().filter(|cannot| !held.items.contains_key(&cannot.item));
    all.extend(unknown.map(|cannot| format!("{}: {}: there is no such item", held.id, cannot.item)));
    all
}

/// Prints a table to the log of the run, which the test harness doesn't capture.
fn print_table(held: &[Held], not_held: &[String], settings: &BTreeMap<String, Setting>) {
    let mut lines = vec![format!("{} profiles held, {} not", held.len(), not_held.len())];
    for one in held {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for (item, _) in one.items.iter().filter(|(_, outcome)| outcome.is_ok()) {
            *kinds.entry(item.split(' ').next().unwrap_or_default()).or_default() += 1;
        }
        let kinds: Vec<_> = kinds.iter().map(|(kind, number)| format!("{kind} {number}")).collect();
        lines.push(format!("{:<20} {} ({} s)", one.id, kinds.join(", "), one.seconds));
        for cannot in settings.get(&one.id).iter().flat_map(|setting| &setting.cannot) {
            lines.push(format!("{:<20}   but {}: {} ({})", "", cannot.item, cannot.says, cannot.why));
        }
        lines.extend(one.left_out.iter().map(|why| format!("{:<20}   but {why}", "")));
    }
    lines.extend(not_held.iter().cloned());
    let _ = writeln!(std::io::stderr(), "{}", lines.join("\n"));
}
