//! Runs every test on a fresh machine: prerequisites, build, real hosts, all tests, the count.

use crate::build::{self, Profile};
use crate::tally::{self, Tally};
use crate::{cmd, hosts, image, workspace};
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;

/// The hosts that tests ask for by name, by what they are made of.
const HOSTS: [(&str, &[&str]); 4] = [
    ("debian", &["debian1", "debian2"]),
    ("rhel-like", &["rhel1", "rhel2"]),
    ("bare", &BARE),
    ("stocked", &["stocked1"]),
];
/// One, and those of which a test needs many.
const BARE: [&str; 11] = [
    "bare1", "fleet01", "fleet02", "fleet03", "fleet04", "fleet05", "fleet06", "fleet07", "fleet08",
    "fleet09", "fleet10",
];

/// Those that are done with a processor soon, and wait for one of a few machines: all of them at once, each takes what is
/// free.
const WAITING: &str = "on_hosts";

/// The home beside the program, in whose cache the tests keep what the program compiles.
const TEST_HOME: &str = "test-home";

/// Whether someone wants us to stop, and which process group has to be told.
#[derive(Default)]
struct Interrupt {
    stop: AtomicBool,
    group: AtomicI32,
}

/// Builds, brings hosts up, tests, takes the hosts down. The last line printed is the count.
pub(crate) fn test(release: bool, no_hosts: bool, filters: &[String]) -> Result<ExitCode> {
    let interrupt = watch_for_signals()?;
    if let Some(reason) = why_no_hosts(no_hosts) {
        let programs = Programs::build(release)?;
        let result = run_tests(&programs, Err(reason), filters, &interrupt);
        return finish(result, Ok(()), &interrupt);
    }
    hosts::install_needs()?;
    // The one waits for the network and the disk, the other computes.
    let (programs, images) = thread::scope(|scope| {
        let images = scope.spawn(|| HOSTS.iter().try_for_each(|(image, _)| image::ensure(image).map(drop)));
        let programs = Programs::build(release).and_then(|programs| compile_tests().map(|()| programs));
        (programs, images.join().unwrap_or_else(|_| bail!("the building of images has panicked")))
    });
    let programs = programs?;
    // Those that somebody else brought up are used, and theirs to take down.
    let is_ours = |name: &&str| !hosts::is_supervised(name);
    let names = HOSTS.iter().flat_map(|(_, names)| names.iter().copied());
    let ours: Vec<String> = names.filter(is_ours).map(str::to_owned).collect();
    let up = images.and_then(|()| {
        HOSTS.iter().try_for_each(|(image, names)| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            hosts::up(image, &names, programs.tested.parent())
                .with_context(|| format!("not all are up: {}", names.join(", ")))
        })
    });
    let json = up.as_ref().map(|()| hosts::hosts_json()).map_err(|error| format!("{error:#}"));
    let result = run_tests(&programs, json, filters, &interrupt);
    // Without names it would be every host there is.
    let down = if ours.is_empty() { Ok(()) } else { hosts::down(&ours) };
    finish(result, up.and(down), &interrupt)
}

/// What the tests run.
struct Programs {
    tested: PathBuf,
    /// With points where it can be made to fail.
    faulty: PathBuf,
}

impl Programs {
    /// In the dev profile, whose dependencies the tests are built with as well, or as it ships.
    fn build(release: bool) -> Result<Self> {
        let profile = if release { Profile::Release } else { Profile::Dev };
        // First: in the dev profile, what it leaves where cargo puts programs is replaced by the one without.
        let faulty = build::faulty(profile)?;
        let tested = build::build(profile)?.binary;
        // Else the first tests would all compile the same components.
        build::warm(&tested, Some(&tested.with_file_name(TEST_HOME)))?;
        let there = |path: PathBuf| path.canonicalize().context("the program is gone");
        Ok(Self { tested: there(tested)?, faulty: there(faulty)? })
    }
}

/// Compiles the tests and runs none.
fn compile_tests() -> Result<()> {
    cmd::run(workspace::cargo().args([
        "test",
        "--no-run",
        "--quiet",
        "--workspace",
        "--lib",
        "--bins",
        "--tests",
    ]))
}

/// Why this run cannot have hosts, where that is no failure.
fn why_no_hosts(no_hosts: bool) -> Option<String> {
    if no_hosts {
        return Some("--no-hosts was given".to_owned());
    }
    if !cmd::is_root() {
        return Some("hosts take root, and this run isn't root".to_owned());
    }
    // Root in a container, say.
    if !cmd::succeeds(Command::new("unshare").args(["--mount", "--net", "--uts", "--pid", "--fork", "true"]))
    {
        return Some("this root may not make namespaces".to_owned());
    }
    None
}

/// What cargo is to run, one after the other, each with its number of threads where that isn't as many as there are
/// processors.
fn groups() -> Result<[(Vec<String>, &'static [&'static str]); 3]> {
    let of_all =
        |args: &[&str]| ["--workspace"].iter().chain(args).map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
    let mut most = of_all(&["--lib", "--bins"]);
    for target in workspace::test_targets()?.into_iter().filter(|target| target != WAITING) {
        most.extend(["--test".to_owned(), target]);
    }
    Ok([(most, &[]), (of_all(&["--doc"]), &[]), (of_all(&["--test", WAITING]), &["--test-threads", "200"])])
}

/// The count, and whether cargo itself was content.
struct Outcome {
    tally: Tally,
    cargo_succeeded: bool,
}

impl Default for Outcome {
    fn default() -> Self {
        Self { tally: Tally::default(), cargo_succeeded: true }
    }
}

impl Outcome {
    fn and(mut self, other: Self) -> Self {
        self.tally.add(&other.tally);
        Self { tally: self.tally, cargo_succeeded: self.cargo_succeeded && other.cargo_succeeded }
    }
}

/// `hosts` is hosts.json, or why there is none.
fn run_tests(
    programs: &Programs,
    hosts: Result<PathBuf, String>,
    filters: &[String],
    interrupt: &Interrupt,
) -> Result<Outcome> {
    let skip_log = std::env::temp_dir().join(format!("linux-sysadmin-skips-{}", std::process::id()));
    fs::write(&skip_log, "").with_context(|| format!("cannot write {}", skip_log.display()))?;

    if let Err(reason) = &hosts {
        println!("xtask: tests that need a host will be skipped: {reason}");
    }
    let xtask = std::env::current_exe()?;
    let run = |which: &[String], threads: &[&str]| {
        let mut cargo = workspace::cargo();
        cargo.args(["test", "--no-fail-fast"]).args(which).arg("--").args(filters).args(threads);
        cargo.env("LINUX_SYSADMIN_BIN", &programs.tested);
        cargo.env("LINUX_SYSADMIN_FAULTY_BIN", &programs.faulty);
        cargo.env("LINUX_SYSADMIN_SKIP_LOG", &skip_log).env("XTASK", &xtask);
        cargo.env_remove("LINUX_SYSADMIN_TEST_HOSTS").env_remove("LINUX_SYSADMIN_NO_HOSTS");
        match &hosts {
            Ok(json) => cargo.env("LINUX_SYSADMIN_TEST_HOSTS", json),
            Err(reason) => cargo.env("LINUX_SYSADMIN_NO_HOSTS", reason),
        };
        stream(&mut cargo, interrupt)
    };
    let outcome = groups()?.iter().try_fold(Outcome::default(), |all, (which, threads)| {
        run(which, threads).map(|outcome| all.and(outcome))
    });
    let skips = tally::parse_skips(&fs::read_to_string(&skip_log).unwrap_or_default());
    fs::remove_file(&skip_log).ok();
    let mut outcome = outcome?;
    for (test, reason) in &skips {
        println!("SKIPPED {test}: {reason}");
    }
    outcome.tally.skip(skips.len() as u64);
    Ok(outcome)
}

/// Passes the tests' stdout on while counting.
fn stream(cargo: &mut Command, interrupt: &Interrupt) -> Result<Outcome> {
    if interrupt.stop.load(Ordering::SeqCst) {
        return Ok(Outcome { tally: Tally::default(), cargo_succeeded: false });
    }
    // A group of its own: a Ctrl-C then reaches us first, and all of it can be ended by one signal.
    let mut child = cargo
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", cmd::describe(cargo)))?;
    interrupt.group.store(child.id() as i32, Ordering::SeqCst);
    if interrupt.stop.load(Ordering::SeqCst) {
        interrupt.end_group();
    }
    let mut tally = Tally::default();
    let mut stdout = BufReader::new(child.stdout.take().context("cargo has no stdout")?);
    let mut line = Vec::new();
    while stdout.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        tally.add_line(&String::from_utf8_lossy(&line));
        line.clear();
    }
    let status = child.wait()?;
    interrupt.group.store(0, Ordering::SeqCst);
    Ok(Outcome { tally, cargo_succeeded: status.success() })
}

/// Prints the count; `hosts` is whether bringing them up and down went well.
fn finish(tested: Result<Outcome>, hosts: Result<()>, interrupt: &Interrupt) -> Result<ExitCode> {
    if let Err(error) = &hosts {
        eprintln!("xtask: the hosts failed: {error:#}");
    }
    let outcome = tested?;
    if interrupt.stop.load(Ordering::SeqCst) {
        bail!("interrupted; so far: {}", outcome.tally);
    }
    if !outcome.cargo_succeeded && outcome.tally.failed == 0 {
        eprintln!("xtask: a test binary did not build or did not run to its end; see above");
    }
    println!("{}", outcome.tally);
    let fine = outcome.cargo_succeeded && outcome.tally.failed == 0 && hosts.is_ok();
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Interrupt {
    fn end_group(&self) {
        if let Some(group) = Pid::from_raw(self.group.load(Ordering::SeqCst)) {
            kill_process_group(group, Signal::TERM).ok();
        }
    }
}

/// From now on a signal ends the tests instead of us, so that the hosts are still taken down.
fn watch_for_signals() -> Result<Arc<Interrupt>> {
    let interrupt = Arc::new(Interrupt::default());
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let told = interrupt.clone();
    thread::spawn(move || {
        for _ in signals.forever() {
            eprintln!("xtask: stopping; the hosts are being taken down");
            told.stop.store(true, Ordering::SeqCst);
            told.end_group();
        }
    });
    Ok(interrupt)
}
