//! Runs the tests on a fresh machine: installs what they need, builds everything once, brings real hosts up, runs the tests
//! and prints the count.
//!
//! Tests that compute and tests that wait for hosts run at the same time, see [`schedule`]. [`selection`] says which tests
//! run: those of every change, all of them, or those of CI.

mod binaries;
mod interrupt;
mod process;
mod schedule;
mod selection;
mod slots;
mod timings;
mod units;

use crate::build::{self, Profile};
use crate::tally::Tally;
use crate::{apt, cmd, compiler, dist, hosts, image, new_modules, workspace};
use anyhow::{Result, bail};
use interrupt::Interrupt;
use selection::Selection;
use std::process::{Command, ExitCode};
use std::thread;
use timings::Timings;

/// The arguments of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Run the whole matrix as well: every story in each of its ways, points of failure, properties, fleets
    #[arg(long, conflicts_with = "ci")]
    all: bool,
    /// Run what CI runs: lints, what has to hold at every change, the rest of what the last commits touched, and a slice of
    /// the rest
    #[arg(long)]
    ci: bool,
    /// Test the program as it ships, in the release profile: slower to build, and without points of failure
    #[arg(long)]
    release: bool,
    /// Skip what needs a host
    #[arg(long)]
    no_hosts: bool,
    /// Print how long the builds and the longest tests took
    #[arg(long)]
    timings: bool,
    /// Run only tests whose names contain one of these
    filters: Vec<String>,
}

/// Builds, brings hosts up, runs the tests, and takes the hosts down. The last line printed is the count.
pub(crate) fn test(options: &Options) -> Result<ExitCode> {
    let interrupt = Interrupt::watch()?;
    let timings = Timings::load()?;
    let selection = Selection::of(options);
    let profile = if options.release { Profile::Release } else { Profile::Dev };
    let no_hosts = why_no_hosts(options.no_hosts);
    if no_hosts.is_none() {
        timings.time("needs of the hosts", hosts::install_needs)?;
        timings.time("needs of the tests", || apt::ensure("tests", &workspace::programs_of_tests()?))?;
    }
    let environment = compiler::environment(options.ci)?;
    // The images wait for the network and the disk while the builds compute.
    let built = thread::scope(|scope| {
        let images = no_hosts.is_none().then(|| scope.spawn(|| make_images(&timings)));
        let built = build_all(profile, options.ci, &environment, &timings);
        // An image that can't be made is reported where its hosts are asked for.
        images.map(|images| images.join());
        built
    });
    let binaries = built?;
    if options.all && no_hosts.is_none() {
        make_packages(profile, &timings)?;
    }
    let units = selection.choose(units::of(&binaries, &options.filters, profile, &environment)?)?;
    interrupt.tests_begin();
    let outcome = schedule::run(&units, profile, no_hosts, &interrupt, &timings)?;
    if options.timings {
        timings.print();
    }
    timings.save()?;
    finish(&outcome, &selection, &interrupt)
}

/// The result of a run.
#[derive(Debug, Default)]
struct Outcome {
    tally: Tally,
    /// Failures other than tests that failed.
    failures: Vec<String>,
}

/// Makes the images that every run needs.
fn make_images(timings: &Timings) {
    let make = |name: &str| {
        if let Err(error) = timings.time(&format!("image {name}"), || image::ensure(name)) {
            eprintln!("xtask: {error:#}");
        }
    };
    make("base");
    let names = slots::IMAGES_OF_EVERY_RUN;
    thread::scope(|scope| names.iter().for_each(|name| drop(scope.spawn(move || make(name)))));
}

/// Builds the components, the program and the tests. With `lints`, as for CI, warnings are errors.
fn build_all(
    profile: Profile,
    lints: bool,
    environment: &compiler::Environment,
    timings: &Timings,
) -> Result<Vec<binaries::Binary>> {
    thread::scope(|scope| {
        let formatting = lints.then(|| scope.spawn(|| timings.time("formatting", crate::lint::formatting)));
        let python =
            scope.spawn(|| timings.time("components and clients of Python", || build::python(profile)));
        timings.time("components", || build::components(profile))?;
        formatting.map_or(Ok(()), |formatting| {
            formatting.join().unwrap_or_else(|_| bail!("the check of the formatting has panicked"))
        })?;
        let binaries = timings.time("program and tests", || binaries::build(profile, environment))?;
        let program = schedule::program(profile)?;
        python.join().unwrap_or_else(|_| bail!("the build of the parts from Python has panicked"))?;
        timings.time("new modules", || new_modules::build(profile, &program))?;
        timings.time("compile cache", || {
            let home = schedule::test_home(&program);
            build::warm(&program, Some(&home)).and_then(|()| build::warm_guests(&program, &home))
        })?;
        Ok(binaries)
    })
}

/// Makes packages of the program under test, which some tests install. Without them, as without a network, those are skipped.
fn make_packages(profile: Profile, timings: &Timings) -> Result<()> {
    let program = schedule::program(profile)?;
    if let Err(error) = timings.time("packages", || dist::packages_for_tests(&program)) {
        eprintln!("xtask: there are no packages to install: {error:#}");
        crate::files::remove_all(&dist::packages_of(&program))?;
    }
    Ok(())
}

/// The reason why this run has no hosts, where that is no failure.
fn why_no_hosts(no_hosts: bool) -> Option<String> {
    if no_hosts {
        return Some("--no-hosts was given".to_owned());
    }
    if !cmd::is_root() {
        return Some("hosts take root, and this run isn't root".to_owned());
    }
    // This happens to root in a container.
    if !cmd::succeeds(Command::new("unshare").args(["--mount", "--net", "--uts", "--pid", "--fork", "true"]))
    {
        return Some("this root may not make namespaces".to_owned());
    }
    None
}

/// Prints the failures and then the count, with the slice's name before it.
fn finish(outcome: &Outcome, selection: &Selection, interrupt: &Interrupt) -> Result<ExitCode> {
    for failure in &outcome.failures {
        println!("FAILED: {failure}");
    }
    if interrupt.is_told() {
        bail!("interrupted; so far: {}", outcome.tally);
    }
    let name = selection.name().map(|name| format!("{name}: ")).unwrap_or_default();
    println!("{name}{}", outcome.tally);
    let fine = outcome.tally.failed == 0 && outcome.failures.is_empty();
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
