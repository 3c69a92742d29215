//! Measures what a user waits for, each figure beside its floor in the same run: on a shared machine only the ratio
//! means something. Prints a table and writes it as JSON.

mod ansible;
mod backup;
mod examples;
mod incidents;
mod knowledge;
mod lab;
mod listing;
mod many;
mod ran;
mod remote;
mod start;
mod tools;

pub(crate) use ran::functions_that_run;
pub(crate) use tools::inside as tools_inside;

use crate::build::{self, Built, Profile};
use crate::{cmd, workspace};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const CALLS: usize = 1000;
/// Calls of every tool before the memory is read.
const CALLS_OF_EACH: usize = 100;
/// A tool whose calls take longer than this in all is called less often, and the benchmark says so.
const LONGEST: Duration = Duration::from_secs(20);

/// One figure and its floor, both in `unit`.
#[derive(Clone)]
struct Row {
    what: Cow<'static, str>,
    unit: &'static str,
    ours: f64,
    floor: f64,
    floor_is: Cow<'static, str>,
}

/// Figures that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// The start of the server until its answers, and its memory at rest, with the modules and with four times as many
    Start,
    /// Bytes of the list of tools, beside the aims
    Listing,
    /// Single calls on this machine, policy verdicts, reading a file
    Calls,
    /// Each tool that only looks, beside its commands run at once and beside what one would type
    Tools,
    /// Calls over SSH, beside ssh
    Remote,
    /// A call on fifty hosts at once, beside ssh and Ansible
    Many,
    /// Bytes and large logs, beside the commands that one would type
    Knowledge,
    /// Bytes of everyday incidents mended by tools, beside the same in a shell
    Incidents,
    /// A backup of many files, beside rsync
    Backup,
    /// The memory after a hundred calls of every tool
    Memory,
}

/// Measures these parts, or all parts where none is named.
pub(crate) fn bench(parts: &[Part]) -> Result<()> {
    let rows = match parts {
        // A script is measured, which needs no build.
        [Part::Backup] => backup::copies()?,
        _ => measured(parts)?,
    };
    show(&rows);
    let shown: Vec<Value> = rows.iter().map(Row::json).collect();
    let path = workspace::target_dir()?.join("bench.json");
    std::fs::write(&path, serde_json::to_string_pretty(&shown)?)?;
    println!("\nAs JSON: {}", path.display());
    Ok(())
}

/// The figures of parts that measure the program.
fn measured(parts: &[Part]) -> Result<Vec<Row>> {
    let built = build::with_guests(Profile::Release)?;
    let floor = build_floor()?;
    lab::watch_for_signals()?;
    let listed = built.binary.with_file_name("bench-tools.json");
    let tools = cmd::output(Command::new(&built.binary).args(["tools", "--json"]))?;
    std::fs::write(&listed, &tools)?;
    let ours = || Server::start(Command::new(&built.binary).arg("serve"));
    let peer = || Server::start(Command::new(&floor).arg(&listed));

    let mut rows = Vec::new();
    for part in Part::value_variants().iter().filter(|part| parts.is_empty() || parts.contains(part)) {
        say(&format!("{part:?}"));
        match part {
            Part::Start => rows.extend(start::starts(&built, &floor)?),
            Part::Listing => rows.extend(listing::bytes(&built)?),
            Part::Calls => {
                rows.extend(calls(&built)?);
                rows.push(files(ours)?);
                rows.push(verdict(&built)?);
            }
            Part::Tools => rows.extend(tools::on_host(&built)?),
            Part::Remote => rows.extend(remote::calls(&built)?),
            Part::Many => rows.extend(many::calls(&built)?),
            Part::Knowledge => rows.extend(knowledge::calls(&built)?),
            Part::Incidents => rows.extend(incidents::played(&built)?),
            Part::Backup => rows.extend(backup::copies()?),
            Part::Memory => rows.extend(memory(ours, peer)?),
        }
    }
    Ok(rows)
}

fn show(rows: &[Row]) {
    println!("{:<46} {:>10} {:>10} {:>7}  floor", "", "ours", "floor", "ratio");
    for row in rows {
        let Row { what, unit, ours, floor, floor_is } = row;
        println!(
            "{what:<46} {ours:>7.2} {unit:<2} {floor:>7.2} {unit:<2} {:>6.2}x  {floor_is}",
            ours / floor
        );
    }
}

impl Row {
    /// Reads a row that [`Row::json`] wrote.
    fn read(row: &Value) -> Result<Self> {
        let text = |member: &str| -> Result<String> {
            Ok(row[member].as_str().with_context(|| format!("{member} of {row}"))?.to_owned())
        };
        let number = |member: &str| row[member].as_f64().with_context(|| format!("{member} of {row}"));
        let (ours, floor) = (number("ours")?, number("floor")?);
        let unit = ["ms", "B", "x"].into_iter().find(|unit| row["unit"] == *unit);
        let unit = unit.with_context(|| format!("unit of {row}"))?;
        Ok(Self { what: text("what")?.into(), unit, ours, floor, floor_is: text("floor_is")?.into() })
    }

    fn json(&self) -> Value {
        json!({
            "what": self.what, "unit": self.unit, "ours": self.ours, "floor": self.floor,
            "ratio": self.ours / self.floor, "floor_is": self.floor_is,
        })
    }
}

/// Tells the person who waits what is being measured. This goes to stderr, since the table goes to stdout.
fn say(what: &str) {
    eprintln!("bench: {what}");
}

fn build_floor() -> Result<PathBuf> {
    cmd::run(workspace::cargo().args(build::release_flags()).args([
        "build",
        "--release",
        "--package",
        "bench-floor",
    ]))?;
    Ok(workspace::target_dir()?.join("release/bench-floor"))
}

/// Measures a call that runs one command, and subtracts the time of the command alone.
fn calls(built: &Built) -> Result<Vec<Row>> {
    let probe = built.binary.with_file_name("test-modules").join("probe");
    let mut server = Server::start(Command::new(&built.binary).arg("serve").arg("--modules").arg(probe))?;
    server.initialize()?;
    let params = json!({"name": "probe_run", "arguments": {"argv": ["echo", "--", "nginx"], "root": false}});
    let (mut with, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let started = Instant::now();
        let answer = server.request("tools/call", params.clone())?;
        with.push(started.elapsed());
        if answer["structuredContent"]["status"] != "success" {
            bail!("the measured call failed: {answer}");
        }
        let started = Instant::now();
        let output = tools::bare(Path::new("/usr/bin/echo")).args(["--", "nginx"]).output()?;
        bare.push(started.elapsed());
        if !output.status.success() {
            bail!("echo failed");
        }
    }
    let row = |what: &'static str, at| {
        let floor = median(bare.clone(), at);
        Row {
            what: what.into(),
            unit: "ms",
            ours: median(with.clone(), at),
            floor,
            floor_is: "the command, spawned bare".into(),
        }
    };
    let mut rows =
        vec![row("call that runs one command, median", 0.5), row("call that runs one command, p99", 0.99)];
    let added = |of: &Row, what: &'static str| Row {
        what: what.into(),
        unit: "ms",
        ours: of.ours - of.floor,
        floor: of.floor,
        floor_is: "the command, spawned bare".into(),
    };
    rows.push(added(&rows[0], "  of which added by the server, median"));
    rows.push(added(&rows[1], "  of which added by the server, p99"));
    Ok(rows)
}

/// Measures a tool that only reads files, beside reading the same files.
fn files(ours: impl Fn() -> Result<Server>) -> Result<Row> {
    let mut server = ours()?;
    server.initialize()?;
    let (mut with, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let started = Instant::now();
        server.request("tools/call", json!({"name": "perf_uptime", "arguments": {}}))?;
        with.push(started.elapsed());
        let started = Instant::now();
        for path in ["/proc/uptime", "/proc/stat", "/proc/loadavg"] {
            std::fs::read(path)?;
        }
        bare.push(started.elapsed());
    }
    Ok(Row {
        what: "perf_uptime, median".into(),
        unit: "ms",
        ours: median(with, 0.5),
        floor: median(bare, 0.5),
        floor_is: "reading the same files".into(),
    })
}

/// Measures the policy's verdict on an everyday command, within one process: to start a process takes a hundred times as
/// long. No smaller task could be the floor, so the floor is the aim.
fn verdict(built: &Built) -> Result<Row> {
    let times = (CALLS * 10).to_string();
    let argv = ["systemctl", "restart", "--", "nginx.service"];
    let mut command = Command::new(&built.binary);
    let answer = cmd::output(command.args(["policy", "check", "--bench", &times, "--"]).args(argv))?;
    let nanoseconds =
        serde_json::from_str::<Value>(&answer)?["verdict_ns"].as_f64().context("no verdict_ns")?;
    let ours = nanoseconds / 1000.0;
    Ok(Row {
        what: "policy verdict on one argv".into(),
        unit: "us",
        ours,
        floor: 10.0,
        floor_is: "aim".into(),
    })
}

/// Measures resident memory after a hundred calls of every tool that only looks.
fn memory(ours: impl Fn() -> Result<Server>, peer: impl Fn() -> Result<Server>) -> Result<Vec<Row>> {
    let tools = examples::looking(&mut ours()?, examples::of_modules()?)?;
    let mut servers = [ours()?, peer()?];
    let mut resident = Vec::new();
    for server in &mut servers {
        server.initialize()?;
        server.request("tools/list", json!({}))?;
    }
    for server in &mut servers {
        for (at, tool) in tools.iter().enumerate() {
            say(&format!("{CALLS_OF_EACH} calls of {}, {} of {}", tool.name, at + 1, tools.len()));
            let began = Instant::now();
            for calls in 0..CALLS_OF_EACH {
                if began.elapsed() > LONGEST {
                    say(&format!("  it was called {calls} times only, since each takes long"));
                    break;
                }
                server.request("tools/call", tool.call())?;
            }
        }
        resident.push(server.resident()?);
    }
    let floor_is = "native server, same protocol library";
    Ok(vec![Row {
        what: "memory after 100 calls of every looking tool".into(),
        unit: "MB",
        ours: resident[0],
        floor: resident[1],
        floor_is: floor_is.into(),
    }])
}

/// Milliseconds at this quantile.
fn median(mut times: Vec<Duration>, at: f64) -> f64 {
    times.sort();
    let index = ((times.len().saturating_sub(1)) as f64 * at) as usize;
    times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
}

/// A server and its pipes.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Server {
    fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("no stdin")?;
        let output = BufReader::new(child.stdout.take().context("no stdout")?);
        Ok(Self { child, input, output, next: 0 })
    }

    fn initialize(&mut self) -> Result<()> {
        let client = json!({"name": "bench", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        self.request("initialize", params)?;
        writeln!(self.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#)?;
        Ok(())
    }

    fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        // A client sends a message in one write.
        self.input.write_all(format!("{request}\n").as_bytes())?;
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("the server ended");
        }
        let mut answer: Value = serde_json::from_str(&line)?;
        if answer["id"] != self.next || answer.get("result").is_none() {
            bail!("{method} was answered by {answer}");
        }
        Ok(answer["result"].take())
    }

    /// The memory of the server once it does nothing more by itself, which its processor time shows.
    fn at_rest(&self) -> Result<f64> {
        let ticks = || -> Result<Vec<String>> {
            let stat =
                std::fs::read_to_string(Path::new("/proc").join(self.child.id().to_string()).join("stat"))?;
            let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
            Ok(fields.skip(11).take(2).map(str::to_owned).collect())
        };
        let mut before = ticks()?;
        loop {
            std::thread::sleep(Duration::from_millis(100));
            let now = ticks()?;
            if now == before {
                return self.resident();
            }
            before = now;
        }
    }

    fn resident(&self) -> Result<f64> {
        self.mebibytes("VmRSS:")
    }

    /// The most memory that it ever had.
    fn peak(&self) -> Result<f64> {
        self.mebibytes("VmHWM:")
    }

    fn mebibytes(&self, field: &str) -> Result<f64> {
        let status =
            std::fs::read_to_string(Path::new("/proc").join(self.child.id().to_string()).join("status"))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(field))
            .with_context(|| format!("no {field}"))?;
        let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kibibytes / 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
