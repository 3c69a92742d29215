//! Measures the tools that join knowledge with live state, on a host: the bytes of their answers, beside the output of the
//! commands that a good administrator would have typed instead (knowledge.yaml and the modules), and the time that large logs take.

use super::examples::{self, Example};
use super::lab::Hosts;
use super::{Row, Server};
use crate::build::Built;
use crate::{cmd, hosts};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Instant;

pub(super) const HOST: &str = "bench1";
const CASES: &str = include_str!("knowledge.yaml");
/// The program's path on the host.
const PROGRAM: &str = "/opt/linux-sysadmin/linux-sysadmin";
const MEBIBYTE: u64 = 1 << 20;
const JOURNAL: u64 = 200 * MEBIBYTE;
const TEXT: u64 = 1024 * MEBIBYTE;

/// Fills the journal by its own protocol up to the given size. The journal is rotated meanwhile.
const FILL_JOURNAL: &str = r#"
import os, socket, subprocess, sys, time
most = int(sys.argv[1])
names = ["nginx", "sshd", "cron", "app", "backup"]
def size():
    total = 0
    for place, _, files in os.walk("/var/log/journal"):
        for file in files:
            try:
                total += os.path.getsize(os.path.join(place, file))
            except FileNotFoundError:  # rotated
                pass
    return total
out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
out.connect("/run/systemd/journal/socket")
n = 0
while n % 5000 or size() < most:
    level = 3 if n % 400 == 0 else 4 if n % 90 == 0 else 6
    text = f"request {n} from 10.1.{n % 250}.{n % 199} took {n % 977} ms" if level == 6 else f"connection to upstream {n % 7} failed: timed out"
    out.send(f"PRIORITY={level}\nSYSLOG_IDENTIFIER={names[n % 5]}\nMESSAGE={text}\n".encode())
    n += 1
print(n)
"#;

/// Writes several text logs with times of the last day.
const FILL_TEXT: &str = r#"
import os, sys, time
most, files = int(sys.argv[1]), 4
os.makedirs("/var/log/bench", exist_ok=True)
for number in range(files):
    start = time.time() - 80000
    with open(f"/var/log/bench/app{number}.log", "w", buffering=1 << 20) as out:
        written = n = 0
        while written < most // files:
            at = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(start + n // 40))
            lines = []
            for n in range(n, n + 1000):
                level = "ERROR" if n % 5000 == 0 else "WARN" if n % 700 == 0 else "INFO"
                lines.append(f"{at} {level} worker-{n % 16} request {n} of user {n % 3571} for /api/v1/items/{n % 99991} took {n % 977} ms, status {200 if level == 'INFO' else 502}\n")
            n += 1
            text = "".join(lines)
            written += out.write(text)
"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    case: String,
    typical: bool,
    tool: String,
    /// It is left out, like `instead`, where the module describes the same call.
    arguments: Option<Value>,
    #[serde(default)]
    plant: String,
    #[serde(default)]
    mend: String,
    #[serde(default)]
    instead: Vec<String>,
}

/// Gives the figures, or none where there can be no hosts.
pub(super) fn calls(built: &Built) -> Result<Vec<Row>> {
    let names = [HOST.to_owned()];
    let Some(_host) = Hosts::up("debian", &names, built)? else { return Ok(Vec::new()) };
    let mut rows = bytes()?;
    rows.extend(large_logs()?);
    Ok(rows)
}

pub(super) fn sh(script: &str) -> Result<String> {
    cmd::output(&mut hosts::command(HOST, &["sh", "-c", script])?).with_context(|| script.to_owned())
}

fn python(script: &str, argument: u64) -> Result<String> {
    cmd::output(&mut hosts::command(HOST, &["python3", "-c", script, &argument.to_string()])?)
}

pub(super) fn serve() -> Result<Server> {
    let mut server = Server::start(&mut hosts::command(HOST, &["env", "HOME=/root", PROGRAM, "serve"])?)?;
    server.initialize().context("the server on the host")?;
    Ok(server)
}

/// The most memory that the server on the host ever had, in MB. The process that was started here only enters the host.
fn peak() -> Result<f64> {
    let said = sh("awk '/VmHWM/ { print $2 }' /proc/$(pgrep --newest --exact linux-sysadmin)/status")?;
    Ok(said.trim().parse::<f64>().context("VmHWM")? / 1024.0)
}

/// The text of an answer, as a model reads it.
fn answer(server: &mut Server, tool: &str, arguments: &Value) -> Result<String> {
    let answer = server.request("tools/call", json!({"name": tool, "arguments": arguments}))?;
    if answer["structuredContent"]["status"] != "success" {
        bail!("the measured call of {tool} failed: {answer}");
    }
    Ok(answer["content"][0]["text"].as_str().context("no text")?.to_owned())
}

fn bytes() -> Result<Vec<Row>> {
    let cases: Vec<Case> = serde_yaml::from_str(CASES).context("knowledge.yaml")?;
    let mut of_modules = examples::of_modules()?;
    let mut server = serve()?;
    let (mut rows, mut ratios) = (Vec::new(), Vec::new());
    for case in cases {
        let example = match case.arguments {
            Some(_) => Example { arguments: case.arguments, instead: case.instead },
            None => of_modules.remove(&case.tool).with_context(|| format!("no module has {}", case.tool))?,
        };
        ensure!(!example.instead.is_empty(), "{}: nothing to type instead", case.case);
        sh(&case.plant)?;
        let ours = answer(&mut server, &case.tool, &example.arguments.unwrap_or_else(|| json!({})));
        let instead: Result<Vec<_>> =
            example.instead.iter().map(|line| sh(&format!("{{ {line}; }} 2>&1; true"))).collect();
        sh(&case.mend)?;
        let (ours, instead) = (ours?.len() as f64, instead?.iter().map(String::len).sum::<usize>() as f64);
        if case.typical {
            ratios.push(ours / instead);
        }
        rows.push(Row {
            what: format!("{}: {}", case.tool, case.case).into(),
            unit: "kB",
            ours: ours / 1000.0,
            floor: instead / 1000.0,
            floor_is: format!("{} commands", example.instead.len()).into(),
        });
    }
    ratios.sort_by(f64::total_cmp);
    let middle = ratios.get(ratios.len() / 2).copied().unwrap_or_default();
    rows.push(Row {
        what: "bytes of the typical case, median of the ratios".into(),
        unit: "x",
        ours: middle,
        floor: 1.0,
        floor_is: "the commands".into(),
    });
    Ok(rows)
}

fn large_logs() -> Result<Vec<Row>> {
    sh("set -e
        mkdir -p /var/log/journal /etc/systemd/journald.conf.d
        printf '[Journal]\\nStorage=persistent\\nRateLimitIntervalSec=0\\nSystemMaxUse=2G\\nForwardToSyslog=no\\n' > /etc/systemd/journald.conf.d/zz-bench.conf
        systemctl restart systemd-journald")?;
    python(FILL_JOURNAL, JOURNAL)?;
    python(FILL_TEXT, TEXT)?;
    let mut server = serve()?;
    let mut rows = Vec::new();
    let resting = peak()?;
    for (what, tool, arguments, instead) in [
        (
            "log_search of 200 MB of journal and 1 GB of text",
            "log_search",
            json!({"pattern": "upstream [36] failed"}),
            "journalctl --no-pager -g 'upstream [36] failed' -n 100; \
             grep -rhE 'upstream [36] failed' /var/log --include=*.log | tail -n 100",
        ),
        (
            "log_search of 1 GB of text",
            "log_search",
            json!({"pattern": "status 50[0-9]$", "path": "/var/log/bench"}),
            "grep -hE 'status 50[0-9]$' /var/log/bench/app*.log | tail -n 100",
        ),
        (
            "log_search of 1 GB of text, no word in it",
            "log_search",
            json!({"pattern": "user 35[0-9]{2} .* 50[0-9]$", "path": "/var/log/bench"}),
            "grep -hE 'user 35[0-9]{2} .* 50[0-9]$' /var/log/bench/app*.log | tail -n 100",
        ),
        (
            "log_summary of 200 MB of journal and 1 GB of text",
            "log_summary",
            json!({}),
            "journalctl -p warning --since -24h --no-pager | tail -n 200; \
             grep -hE 'ERROR|WARN' /var/log/bench/app*.log | tail -n 200",
        ),
    ] {
        // Both sides are to find the logs in memory, as far as they fit.
        sh("cat /var/log/bench/* /var/log/journal/*/* > /dev/null")?;
        let started = Instant::now();
        let said = answer(&mut server, tool, &arguments)?;
        let ours = started.elapsed();
        let started = Instant::now();
        let instead = sh(instead)?;
        let floor = started.elapsed();
        rows.push(Row {
            what: what.into(),
            unit: "s",
            ours: ours.as_secs_f64(),
            floor: floor.as_secs_f64(),
            floor_is: format!(
                "{:.1} kB beside {:.1} kB",
                said.len() as f64 / 1000.0,
                instead.len() as f64 / 1000.0
            )
            .into(),
        });
    }
    rows.push(Row {
        what: "the server's largest size in these searches, above that at rest".into(),
        unit: "MB",
        ours: peak()? - resting,
        floor: 64.0,
        floor_is: "aim".into(),
    });
    Ok(rows)
}
