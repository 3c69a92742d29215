//! Measures the script that makes backups beside the bare rsync that it runs: many small files with a large one that is nearly
//! all holes, copied anew and once more without a change. Both keep the full paths, and end when everything is on the disk.

use super::{Row, median};
use crate::{cmd, workspace};
use anyhow::{Context, Result};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FILES: usize = 100_000;
const FILES_OF_A_DIRECTORY: usize = 1000;
const SPARSE_BYTES: u64 = 10 << 30;
/// The rounds. They are few, since each writes all files twice.
const ROUNDS: usize = 5;
/// The copies of a round in which nothing has changed. They take a quarter of the time, and differ more from each other.
const UNCHANGED: usize = 4;

/// Gives the figures, or none where rsync is missing.
pub(super) fn copies() -> Result<Vec<Row>> {
    if cmd::find_program("rsync").is_none() {
        eprintln!("xtask: backups aren't measured: there is no rsync");
        return Ok(Vec::new());
    }
    let place = tempfile::Builder::new().prefix("lsa-bench-backup").tempdir_in("/var/tmp")?;
    let at = |name: &str| place.path().join(name);
    let (source, script) = (at("source"), at("backup"));
    fill(&source)?;
    std::fs::write(&script, text(&at("run"))?)?;

    let mut times = [const { Vec::new() }; 2].map(|first| [first, Vec::new()]);
    for round in 0..ROUNDS {
        eprintln!("bench: round {} of {ROUNDS}", round + 1);
        // New places each time, and nothing is removed before the end: for minutes ext4 passes over the inodes of removed files
        // one by one, which would take up to half of the next one's time.
        let destinations = ["ours", "bare"].map(|name| at(&format!("{name}-{round}")));
        for destination in &destinations {
            std::fs::create_dir(destination)?;
            std::fs::set_permissions(destination, std::fs::Permissions::from_mode(0o700))?;
        }
        for number in 0..=UNCHANGED {
            // What comes second finds the machine as the first one has left it, so that they take turns.
            for which in [(round + number) % 2, (round + number + 1) % 2] {
                let destination = &destinations[which];
                settle(destination)?;
                let time = match which {
                    0 => backed_up(&script, &source, destination)?,
                    _ => copied(&source, destination, number)?,
                };
                times[which][number.min(1)].push(time);
            }
        }
    }
    let [ours, bare] = times;
    let row = |what: &'static str, [ours, floor]: [&Vec<Duration>; 2]| Row {
        what: what.into(),
        unit: "ms",
        ours: median(ours.clone(), 0.5),
        floor: median(floor.clone(), 0.5),
        floor_is: "rsync -aHAXSR, sync -f".into(),
    };
    Ok(vec![
        row("first backup of 100000 files, median", [&ours[0], &bare[0]]),
        row("the next one, nothing changed, median", [&ours[1], &bare[1]]),
    ])
}

fn fill(source: &Path) -> Result<()> {
    for number in 0..FILES {
        let directory = source.join((number / FILES_OF_A_DIRECTORY).to_string());
        if number % FILES_OF_A_DIRECTORY == 0 {
            std::fs::create_dir_all(&directory)?;
        }
        std::fs::write(directory.join(number.to_string()), format!("file {number}\n"))?;
    }
    std::fs::File::create(source.join("sparse"))?.set_len(SPARSE_BYTES)?;
    Ok(())
}

/// The script, with its locks in a place of its own.
fn text(run: &Path) -> Result<String> {
    let directory = workspace::root().join("modules/backup/src");
    let part = |name: &str| {
        std::fs::read_to_string(directory.join(name)).with_context(|| format!("{name} can't be read"))
    };
    let text = [part("engine.sh")?, part("restic.sh")?, part("dispatch.sh")?].concat();
    Ok(text.replace("RUN=/run/linux-sysadmin-backup", &format!("RUN='{}'", run.display())))
}

fn backed_up(script: &Path, source: &Path, destination: &Path) -> Result<Duration> {
    let destination = format!("--destination={}", destination.display());
    timed(Command::new("sh").arg(script).args(["create", &destination, "--"]).arg(source))
}

/// Copies as deep as the script does, since rsync opens each directory above a file anew.
fn copied(source: &Path, destination: &Path, number: usize) -> Result<Duration> {
    let tree = |number: usize| destination.join(number.to_string()).join("tree");
    let to = tree(number);
    std::fs::create_dir_all(&to)?;
    let mut rsync = Command::new("rsync");
    rsync.arg("-aHAXSR");
    if number > 0 {
        rsync.arg(format!("--link-dest={}", tree(number - 1).display()));
    }
    let started = Instant::now();
    timed(rsync.arg(source).arg(&to))?;
    settle(&to)?;
    Ok(started.elapsed())
}

/// Waits until everything is on the disk: files that were made or removed before would cost whoever comes next.
fn settle(place: &Path) -> Result<()> {
    cmd::run(Command::new("sync").arg("-f").arg(place))
}

fn timed(command: &mut Command) -> Result<Duration> {
    let started = Instant::now();
    cmd::run(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))?;
    Ok(started.elapsed())
}
