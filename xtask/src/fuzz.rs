//! Fuzzes the code that decides about commands and paths: each target of `fuzz/`, from the seeds that are checked in and
//! from the inputs that earlier runs found.

use crate::{cmd, files, workspace};
use anyhow::{Context, Result, bail};
use std::process::Command;

/// The targets, each with the longest input that is tried, in bytes.
const TARGETS: [(&str, usize); 2] = [("pattern", 1024), ("path", 256)];

/// Fuzzes every target for this long.
pub(crate) fn fuzz(seconds: u32) -> Result<()> {
    if !cmd::succeeds(workspace::cargo().args(["fuzz", "--version"])) {
        eprintln!("xtask: installing cargo-fuzz");
        cmd::run(workspace::cargo().args(["install", "cargo-fuzz", "--locked"]))?;
    }
    cmd::run(cargo_fuzz("build").args(["--fuzz-dir", "fuzz"]))?;
    for (target, longest) in TARGETS {
        eprintln!("xtask: fuzzing {target} for {seconds} s");
        let executions = run(target, longest, seconds)?;
        println!("{target}: {executions} executions, no failure");
    }
    Ok(())
}

/// Fuzzes one target; gives the number of executions.
fn run(target: &str, longest: usize, seconds: u32) -> Result<u64> {
    let fuzz = workspace::root().join("fuzz");
    // New inputs go to the first of the two.
    let (corpus, seeds) = (fuzz.join("corpus").join(target), fuzz.join("seeds").join(target));
    files::make_dir(&corpus)?;
    let mut command = cargo_fuzz("run");
    command.args(["--fuzz-dir", "fuzz", target]).args([&corpus, &seeds]);
    command.arg("--").arg(format!("-dict={}", seeds.with_extension("dict").display()));
    command.args([format!("-max_len={longest}"), format!("-max_total_time={seconds}")]);
    command.args(["-timeout=10", "-print_final_stats=1"]);
    let output = command.output().context("cannot start cargo fuzz")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        // The other lines than those of progress say what failed, on which input, and how to repeat it.
        for line in said.lines().filter(|line| !line.starts_with('#')) {
            eprintln!("{line}");
        }
        bail!("{target} failed: {}", output.status);
    }
    executions(&said).with_context(|| format!("{target} doesn't say how often it ran"))
}

/// A call of cargo-fuzz. It uses no sanitizer: the targets are built from code without `unsafe`, so a sanitizer would find
/// nothing. The variable makes a stable compiler accept the option for coverage counters.
fn cargo_fuzz(verb: &str) -> Command {
    let mut command = workspace::cargo();
    command.env("RUSTC_BOOTSTRAP", "1").args(["fuzz", verb, "--sanitizer", "none"]);
    command
}

fn executions(said: &str) -> Option<u64> {
    let count = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))?;
    count.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executions_are_read_from_the_statistics() {
        let said = "#2\tINITED cov: 3\nDone 12 runs in 1 second(s)\nstat::number_of_executed_units: 12\n\
                    stat::average_exec_per_sec:     4\n";
        assert_eq!(executions(said), Some(12));
        assert_eq!(executions("#2\tINITED cov: 3\n"), None);
    }

    #[test]
    fn every_target_has_seeds_and_a_dictionary() {
        let manifest = std::fs::read_to_string(workspace::root().join("fuzz/Cargo.toml")).unwrap();
        assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
        for (target, _) in TARGETS {
            let seeds = workspace::root().join("fuzz/seeds").join(target);
            assert!(manifest.contains(&format!("path = \"fuzz_targets/{target}.rs\"")));
            assert!(seeds.read_dir().unwrap().count() > 0 && seeds.with_extension("dict").is_file());
        }
    }
}
