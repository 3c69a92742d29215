//! Measures the script that makes backups beside the bare rsync that it runs: many small files with a large one that is nearly
//! all holes, copied anew and once more without a change. Both keep the full paths, and end when everything is on the disk.

use super::{Row, median};
use crate::{cmd, workspace};
use anyhow::{Context, Result};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FILES: usize = 100_000;
const FILES_OF_A_DIRECTORY: usize = 1000;
const SPARSE_BYTES: u64 = 10 << 30;
/// The rounds. They are few, since each writes all files twice.
const ROUNDS: usize = 5;
/// The copies of a round in which nothing has changed. They take a quarter of the time, and differ more from each other.
const UNCHANGED: usize = 3;

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

    let (mut ours, mut bare) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for round in 0..ROUNDS {
        eprintln!("bench: round {} of {ROUNDS}", round + 1);
        // What comes second finds the machine as the first one has left it, so that they take turns.
        for is_ours in [round % 2 == 0, round % 2 != 0] {
            // A new place each time, and nothing is removed before the end: for minutes ext4 passes over the inodes of
            // removed files one by one, which would take up to half of the next one's time.
            let destination = at(&format!("destination-{round}-{is_ours}"));
            std::fs::create_dir(&destination)?;
            std::fs::set_permissions(&destination, std::fs::Permissions::from_mode(0o700))?;
            if is_ours {
                for number in 0..=UNCHANGED {
                    settle(&destination)?;
                    let mut command = Command::new("sh");
                    command
                        .arg(&script)
                        .arg("create")
                        .arg(format!("--destination={}", destination.display()));
                    ours[number.min(1)].push(timed(command.arg("--").arg(&source))?);
                }
            } else {
                // They lie as deep as in a destination of the script, since rsync opens each directory above a file anew.
                let mut former: Option<PathBuf> = None;
                for number in 0..=UNCHANGED {
                    let tree = destination.join(number.to_string()).join("tree");
                    let mut rsync = Command::new("rsync");
                    rsync.arg("-aHAXSR");
                    rsync.args(former.map(|former| format!("--link-dest={}", former.display())));
                    bare[number.min(1)].push(copied(&mut rsync, &source, &tree)?);
                    former = Some(tree);
                }
            }
        }
    }
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

fn copied(rsync: &mut Command, source: &Path, to: &Path) -> Result<Duration> {
    std::fs::create_dir_all(to)?;
    settle(to)?;
    let started = Instant::now();
    timed(rsync.arg(source).arg(to))?;
    settle(to)?;
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
