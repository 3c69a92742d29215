//! Measures each tool that only looks, beside what it looks at. One call is logged: its commands and the files that it reads.
//! Then the same commands and files are run and read natively and at once, in turn with the call. A tool whose questions
//! depend on earlier answers can't ask all at once, so it is also measured beside the same in its order. A tool that runs
//! no command is measured beside the least that a shell would run for it, a `cat` of its files.
//!
//! A tool whose module says what an administrator would type `instead` is also measured beside that: the time of the
//! command lines, each in a shell of its own and one after the other as one types them, and the bytes that they print beside
//! those of the answer: of its text, and of the object that a client may show a model instead.

use super::examples::{self, Examples};
use super::lab::Hosts;
use super::{Row, Server, median, say};
use crate::build::Built;
use crate::{cmd, hosts};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 30;
/// A tool that takes longer than this in all is measured in fewer rounds.
const LONGEST: Duration = Duration::from_secs(10);
const FEWEST_ROUNDS: usize = 5;
/// A tool should take at most this many times its floor.
const AIM: f64 = 1.2;
/// The server may add this many milliseconds to any call: a fifth of a command that takes 1 ms is less.
const ADDED_MS: f64 = 0.3;
/// A call may take this many milliseconds longer than the command lines that one would type.
const ABOVE_TYPED_MS: f64 = 0.5;
/// The text of an answer should have at most this part of the bytes that the command lines print.
const BYTES_AIM: f64 = 0.4;

/// The commands, files and directories that one call looked at.
#[derive(Default)]
struct Looked {
    /// Commands, in the order in which they were started.
    asked: Vec<Asked>,
    read: Vec<String>,
    listed: Vec<String>,
    stat: Vec<String>,
    /// True where the call runs no command, and a `cat` of its files stands in for one.
    is_cat: bool,
}

/// Gives the figures from a host with systemd and a package manager, or from this machine where there can be no host.
pub(super) fn on_host(built: &Built) -> Result<Vec<Row>> {
    let (host, examples) = ("bench1", examples::of_modules()?);
    let Some(_up) = Hosts::up("debian", &[host.to_owned()], built)? else {
        return calls(&built.binary, examples);
    };
    put(host, "/opt/xtask", &std::fs::read(std::env::current_exe()?)?)?;
    put(host, "/opt/examples.json", &serde_json::to_vec(&examples)?)?;
    let argv = ["/opt/xtask", "bench-tools", "/opt/linux-sysadmin/linux-sysadmin", "/opt/examples.json"];
    let rows: Vec<Value> = serde_json::from_str(&cmd::output(&mut hosts::command(host, &argv)?)?)?;
    rows.iter().map(Row::read).collect()
}

/// Puts a program or data on a host.
fn put(host: &str, path: &str, contents: &[u8]) -> Result<()> {
    let write = format!("cat > {path} && chmod 755 {path}");
    let mut child = hosts::command(host, &["sh", "-c", &write])?.stdin(Stdio::piped()).spawn()?;
    child.stdin.take().context("no stdin")?.write_all(contents)?;
    ensure!(child.wait()?.success(), "{path} could not be written on {host}");
    Ok(())
}

/// The part of [`on_host`] that runs on the host. It prints the rows as JSON.
pub(crate) fn inside(binary: &Path, examples: &Path) -> Result<()> {
    let examples = serde_json::from_str(&std::fs::read_to_string(examples)?)?;
    let rows: Vec<Value> = calls(binary, examples)?.iter().map(Row::json).collect();
    println!("{}", Value::from(rows));
    Ok(())
}

fn calls(binary: &Path, examples: Examples) -> Result<Vec<Row>> {
    let state = tempfile::tempdir()?;
    let log = state.path().join("log");
    let mut traced = Server::start(
        Command::new(binary)
            .arg("serve")
            .env("XDG_STATE_HOME", state.path())
            .env("LINUX_SYSADMIN_LOG", "debug")
            .stderr(std::fs::File::create(&log)?),
    )?;
    let tools = examples::looking(&mut traced, examples)?;
    let mut server = Server::start(Command::new(binary).arg("serve"))?;
    server.initialize()?;
    let [mut rows, mut typed, mut bytes] = [const { Vec::new() }; 3];
    let mut objects = Vec::new();
    for (at, tool) in tools.iter().enumerate() {
        say(&format!("{}, {} of {}", tool.name, at + 1, tools.len()));
        let logged = std::fs::metadata(&log)?.len() as usize;
        traced.request("tools/call", tool.call())?;
        let looked =
            Looked::of_last_call(&log, logged).with_context(|| format!("what {} looks at", tool.name))?;
        // The first call of a tool loads its module.
        let answer = server.request("tools/call", tool.call())?;
        let [mut with, mut bare, mut in_turn, mut instead] = [const { Vec::new() }; 4];
        let mut printed = 0;
        let turns = looked.asked.len();
        let began = Instant::now();
        while with.len() < ROUNDS && (with.len() < FEWEST_ROUNDS || began.elapsed() < LONGEST) {
            let started = Instant::now();
            server.request("tools/call", tool.call())?;
            with.push(started.elapsed());
            let started = Instant::now();
            looked.at_once();
            bare.push(started.elapsed());
            if turns > 1 {
                let started = Instant::now();
                looked.in_turn();
                in_turn.push(started.elapsed());
            }
            if !tool.instead.is_empty() {
                let started = Instant::now();
                printed = tool.instead.iter().map(|line| type_line(line)).sum::<Result<usize>>()?;
                instead.push(started.elapsed());
            }
        }
        let row = looked.row(&tool.name, median(with, 0.5), median(bare, 0.5));
        let beside = (turns > 1 && !is_within(&row)).then(|| Row {
            what: format!("{}, in turn", tool.name).into(),
            floor: median(in_turn, 0.5),
            floor_is: format!("the same in {turns} steps").into(),
            ..row.clone()
        });
        if !tool.instead.is_empty() {
            let floor = median(instead, 0.5);
            let lines = tool.instead.len();
            let floor_is = format!("{lines} typed, {:+.2} ms beside them", row.ours - floor);
            let what = format!("{}, beside a shell", tool.name);
            typed.push(Row { what: what.into(), floor, floor_is: floor_is.into(), ..row.clone() });
            let text = answer["content"][0]["text"].as_str().context("an answer without text")?;
            objects.push(answer["structuredContent"].to_string().len() as f64 / printed as f64);
            bytes.push(Row {
                what: format!("{}, the answer's bytes", tool.name).into(),
                unit: "B",
                ours: text.len() as f64,
                floor: printed as f64,
                floor_is: format!("what {lines} typed print").into(),
            });
        }
        rows.push(row);
        rows.extend(beside);
    }
    let within = rows.iter().filter(|row| is_within(row)).count();
    say(&format!(
        "{within} of {} tools take at most {AIM} times their floor, or at most {ADDED_MS} ms more; some of the others do \
         beside commands in turn",
        tools.len()
    ));
    if !typed.is_empty() {
        let within = typed.iter().filter(|row| row.ours <= row.floor + ABOVE_TYPED_MS).count();
        say(&format!(
            "{within} of {} calls take at most {ABOVE_TYPED_MS} ms more than what one would type",
            typed.len()
        ));
        let above: Vec<String> = bytes
            .iter()
            .filter(|row| row.ours > BYTES_AIM * row.floor)
            .map(|row| format!("{} {:.2}", row.what, row.ours / row.floor))
            .collect();
        say(&format!("above {BYTES_AIM} of the bytes: {}", above.join("; ")));
        let texts = bytes.iter().map(|row| row.ours / row.floor).collect();
        for (what, mut ratios) in [("text", texts), ("object", objects)] {
            ratios.sort_by(f64::total_cmp);
            bytes.push(Row {
                what: format!("bytes of the {what} beside a shell, median of the ratios").into(),
                unit: "x",
                ours: ratios[ratios.len() / 2],
                floor: BYTES_AIM,
                floor_is: "aim".into(),
            });
        }
    }
    rows.extend(typed);
    rows.extend(bytes);
    Ok(rows)
}

/// Commands that are started together.
struct Asked {
    commands: Vec<Vec<String>>,
    /// True where something else is asked before these commands end.
    goes_on: bool,
}

/// Whether a call takes no longer than its floor allows.
fn is_within(row: &Row) -> bool {
    row.ours <= (AIM * row.floor).max(row.floor + ADDED_MS)
}

impl Looked {
    fn of_last_call(log: &Path, logged: usize) -> Result<Self> {
        // A thread of its own writes the log.
        std::thread::sleep(Duration::from_millis(20));
        let mut looked = Self::default();
        let text = String::from_utf8_lossy(&std::fs::read(log)?[logged..]).into_owned();
        for line in text.lines() {
            let Some((before, at)) = line.split_once(" at=") else { continue };
            let Some((_, how)) = before.rsplit_once("how=") else { continue };
            let at: Vec<String> = serde_json::from_str(at).with_context(|| line.to_owned())?;
            match how.trim_matches('"') {
                how @ ("run" | "open") => {
                    let split = |line: String| shell_words::split(&line).with_context(|| line.clone());
                    let commands: Vec<_> = at.into_iter().map(split).collect::<Result<_>>()?;
                    if !commands.is_empty() {
                        looked.asked.push(Asked { commands, goes_on: how == "open" });
                    }
                }
                "read" => looked.read.extend(at),
                "list" => looked.listed.extend(at),
                _ => looked.stat.extend(at),
            }
        }
        if looked.asked.is_empty() {
            let cat = std::iter::once("cat".to_owned()).chain(std::mem::take(&mut looked.read));
            looked.asked.push(Asked { commands: vec![cat.collect()], goes_on: false });
            looked.is_cat = true;
        }
        Ok(looked)
    }

    fn commands(&self) -> impl Iterator<Item = &Vec<String>> {
        self.asked.iter().flat_map(|asked| &asked.commands)
    }

    /// Runs all commands side by side and reads the files: nothing could be faster.
    fn at_once(&self) {
        std::thread::scope(|scope| {
            for argv in self.commands() {
                scope.spawn(|| run(argv));
            }
            self.files();
        });
    }

    /// Does the same, but starts commands that depend on earlier answers after these.
    fn in_turn(&self) {
        std::thread::scope(|scope| {
            for asked in &self.asked {
                let started: Vec<_> = asked.commands.iter().map(|argv| scope.spawn(|| run(argv))).collect();
                if !asked.goes_on {
                    started.into_iter().for_each(|command| drop(command.join()));
                }
            }
            self.files();
        });
    }

    fn files(&self) {
        for path in &self.read {
            std::hint::black_box(std::fs::read(path).ok());
        }
        for path in &self.listed {
            std::hint::black_box(std::fs::read_dir(path).map(Iterator::count).ok());
        }
        for path in &self.stat {
            std::hint::black_box(std::fs::symlink_metadata(path).ok());
        }
    }

    fn row(&self, tool: &str, ours: f64, floor: f64) -> Row {
        let commands = self.commands().count();
        let files = self.read.len() + self.listed.len() + self.stat.len();
        let floor_is = match (self.is_cat, self.asked.first()) {
            (true, Some(cat)) => format!("a cat of {} files", cat.commands[0].len() - 1),
            _ => format!("{commands} commands at once, {files} files"),
        };
        Row { what: tool.to_owned().into(), unit: "ms", ours, floor, floor_is: floor_is.into() }
    }
}

/// A program with the environment that the server gives it, so that a locale costs both the same.
pub(super) fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    command.env("LC_ALL", "C.UTF-8").env("HOME", "/root").current_dir("/").stdin(Stdio::null());
    command
}

/// Runs a command line in a shell, and returns how many bytes it prints.
fn type_line(line: &str) -> Result<usize> {
    let output = bare(Path::new("sh")).args(["-c", line]).output().with_context(|| line.to_owned())?;
    Ok(output.stdout.len() + output.stderr.len())
}

fn run(argv: &[String]) {
    let variables = argv.iter().take_while(|token| token.contains('=')).count();
    let Some((program, args)) = argv[variables..].split_first() else { return };
    let mut command = bare(Path::new(program));
    command.args(args);
    command.envs(argv[..variables].iter().filter_map(|variable| variable.split_once('=')));
    std::hint::black_box(command.output().ok());
}
