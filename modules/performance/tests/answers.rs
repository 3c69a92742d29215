//! Tests the answers where a part of `/proc` is missing, garbled or huge, the effect of each threshold, and the size of the
//! tools in a client's context.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::Problem;
use linux_sysadmin_sdk::testkit::{FakeTarget, takes_little_context};
use module_performance::module;
use serde_json::{Value, json};

const SAMPLED: [&str; 5] =
    ["perf_overview", "perf_top_processes", "perf_disk_io", "perf_network_io", "perf_bottleneck"];

fn call(target: FakeTarget, tool: &str, sample_ms: u32) -> Result<(Value, String, String), Problem> {
    let (data, reply) = target.call(&module(), tool, json!({"sample_ms": sample_ms}))?;
    Ok((data, reply.severity.unwrap_or_default(), reply.summary.unwrap_or_default()))
}

/// An idle machine with two cores, and its state a second before.
struct Machine {
    cpu: [u64; 8],
    files: Vec<(&'static str, String, String)>,
}

impl Machine {
    fn idle() -> Self {
        let same = |path, text: &str| (path, text.to_owned(), text.to_owned());
        let files = vec![
            ("/proc/uptime", "1000.00 5\n".to_owned(), "1001.00 5\n".to_owned()),
            same("/proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 900000 kB\n"),
            same("/proc/loadavg", "0.10 0.10 0.10 1/100 5\n"),
            same("/proc/vmstat", "pswpin 0\npswpout 0\noom_kill 3\n"),
            same("/proc/diskstats", "8 0 sda 0 0 0 0 0 0 0 0 0 0 0\n"),
            same("/proc/net/dev", "lo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"),
            same("/proc/1/stat", "1 (init) S 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 4096 25 0\n"),
        ];
        Self { cpu: [0, 0, 0, 200, 0, 0, 0, 0], files }
    }

    /// The ticks within the second: user, nice, system, idle, iowait, irq, softirq, steal.
    fn cpu(mut self, cpu: [u64; 8]) -> Self {
        self.cpu = cpu;
        self
    }

    fn file(self, path: &'static str, text: &str) -> Self {
        self.changed(path, text, text)
    }

    fn changed(mut self, path: &'static str, before: &str, after: &str) -> Self {
        self.files.retain(|(known, ..)| *known != path);
        self.files.push((path, before.to_owned(), after.to_owned()));
        self
    }

    fn without(mut self, path: &str) -> Self {
        self.files.retain(|(known, ..)| *known != path);
        self
    }

    fn target(&self) -> FakeTarget {
        let cpu = self.cpu.map(|ticks| ticks.to_string()).join(" ");
        let stat =
            |cpu: &str| format!("==> /proc/stat <==\ncpu {cpu}\ncpu0 0 0 0 0\ncpu1 0 0 0 0\nbtime 5\n");
        let mut recordings = [stat("0 0 0 0 0 0 0 0"), stat(&cpu)];
        for (path, before, after) in &self.files {
            for (recording, text) in recordings.iter_mut().zip([before, after]) {
                recording.push_str(&format!("\n==> {path} <==\n{text}"));
            }
        }
        FakeTarget::new().recording(&recordings[0]).recording(&recordings[1])
    }
}

#[test]
fn each_threshold_leads_to_its_finding() {
    let idle = Machine::idle;
    let memory = |available: u32| {
        idle().file("/proc/meminfo", &format!("MemTotal: 10000000 kB\nMemAvailable: {available} kB\n"))
    };
    let pressure = |path, some: f64, full: f64| {
        let line = |kind, now| format!("{kind} avg10={now} avg60=0.00 avg300=0.00 total=0\n");
        idle().file(path, &(line("some", some) + &line("full", full)))
    };
    let disk = |busy_ms: u32, ms_per_read: u32| {
        let after = format!("8 0 sda 10 0 80 {} 0 0 0 0 0 {busy_ms} 500\n", ms_per_read * 10);
        idle().changed("/proc/diskstats", "8 0 sda 0 0 0 0 0 0 0 0 0 0 0\n", &after)
    };
    let swap = |pages: u32| idle().changed("/proc/vmstat", "pswpin 0\n", &format!("pswpin {pages}\n"));
    let net = |bytes: u64, packets: u32, drops: u32| {
        let after = format!("eth0: {bytes} {packets} 0 {drops} 0 0 0 0 0 0 0 0 0 0 0 0\n");
        let before = "eth0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
        idle().file("/sys/class/net/eth0/speed", "1000\n").changed("/proc/net/dev", before, &after)
    };
    let table = [
        ("idle", idle(), "none", "info"),
        ("CPU below", idle().cpu([158, 0, 0, 42, 0, 0, 0, 0]), "none", "info"),
        ("CPU 80%", idle().cpu([100, 20, 40, 40, 0, 0, 0, 0]), "cpu", "warning"),
        ("CPU 90%", idle().cpu([180, 0, 0, 20, 0, 0, 0, 0]), "cpu", "high"),
        (
            "CPU and queue",
            idle().cpu([200, 0, 0, 0, 0, 0, 0, 0]).file("/proc/loadavg", "8.0 8 8 9/99 5\n"),
            "cpu",
            "critical",
        ),
        ("queue alone", idle().file("/proc/loadavg", "80.0 80 80 9/99 5\n"), "none", "info"),
        ("CPU pressure", pressure("/proc/pressure/cpu", 40.0, 0.0), "cpu", "warning"),
        ("CPU pressure of all is meaningless", pressure("/proc/pressure/cpu", 0.0, 99.0), "none", "info"),
        ("steal 10%", idle().cpu([0, 0, 0, 180, 0, 0, 0, 20]), "steal", "warning"),
        ("steal before CPU", idle().cpu([130, 0, 0, 0, 0, 0, 0, 70]), "steal", "high"),
        ("the worse one first", idle().cpu([175, 0, 0, 0, 0, 0, 0, 25]), "cpu", "high"),
        ("steal 50%", idle().cpu([0, 0, 0, 100, 0, 0, 0, 100]), "steal", "critical"),
        ("memory 10%", memory(1_000_000), "none", "info"),
        ("memory below 10%", memory(999_999), "memory", "warning"),
        ("memory below 5%", memory(499_999), "memory", "high"),
        ("memory below 2%", memory(199_999), "memory", "critical"),
        (
            "5% of much is enough",
            idle().file("/proc/meminfo", "MemTotal: 1000000000 kB\nMemAvailable: 50000000 kB\n"),
            "none",
            "info",
        ),
        ("swapping", swap(100), "memory", "warning"),
        ("thrashing", swap(1000), "memory", "high"),
        ("OOM kill", idle().changed("/proc/vmstat", "oom_kill 3\n", "oom_kill 4\n"), "memory", "critical"),
        ("memory pressure", pressure("/proc/pressure/memory", 10.0, 0.0), "memory", "warning"),
        ("memory pressure of all", pressure("/proc/pressure/memory", 40.0, 40.0), "memory", "critical"),
        ("iowait 10%", idle().cpu([0, 0, 0, 180, 20, 0, 0, 0]), "disk_io", "warning"),
        ("iowait 25%", idle().cpu([0, 0, 0, 150, 50, 0, 0, 0]), "disk_io", "high"),
        ("iowait 50%", idle().cpu([0, 0, 0, 100, 100, 0, 0, 0]), "disk_io", "critical"),
        ("busy and quick", disk(1000, 1), "none", "info"),
        ("busy and slow", disk(900, 20), "disk_io", "warning"),
        ("full and slow", disk(950, 100), "disk_io", "high"),
        ("slow and idle", disk(500, 500), "none", "info"),
        ("I/O pressure", pressure("/proc/pressure/io", 20.0, 0.0), "disk_io", "warning"),
        ("I/O pressure of all", pressure("/proc/pressure/io", 80.0, 70.0), "disk_io", "critical"),
        ("network below", net(86_000_000, 60_000, 0), "none", "info"),
        ("network 70%", net(87_500_000, 60_000, 0), "network", "warning"),
        ("network 90%", net(112_500_000, 80_000, 0), "network", "high"),
        ("few losses", net(0, 10, 9), "none", "info"),
        ("losses", net(0, 990, 10), "network", "warning"),
        ("many losses", net(0, 100, 10), "network", "high"),
        ("memory before what it causes", memory(400_000).cpu([180, 0, 0, 0, 50, 0, 0, 0]), "memory", "high"),
    ];
    for (case, machine, bottleneck, severity) in table {
        let (data, found, summary) = call(machine.target(), "perf_bottleneck", 1000).unwrap();
        assert_eq!((&data["bottleneck"], found.as_str()), (&json!(bottleneck), severity), "{case}: {data}");
        assert_eq!(data["findings"].as_array().unwrap().is_empty(), bottleneck == "none", "{case}");
        assert_eq!(summary.starts_with("No bottleneck"), bottleneck == "none", "{case}: {summary}");
    }
}

#[test]
fn one_full_core_is_told_and_is_no_bottleneck_of_the_machine() {
    let text = |ticks: u32| {
        format!(
            "==> /proc/stat <==\ncpu 0 0 0 0\ncpu0 0 0 0 0\ncpu1 {ticks} 0 0 0\n\n==> /proc/meminfo <==\nMemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n"
        )
    };
    let later = text(100).replace("cpu 0 0 0 0", "cpu 100 0 0 300").replace("cpu0 0 0 0 0", "cpu0 0 0 0 100");
    let target = FakeTarget::new().recording(&text(0)).recording(&later);
    let (_, severity, summary) = call(target, "perf_overview", 1000).unwrap();
    assert_eq!(severity, "info");
    assert!(summary.contains("Core 1 alone is full (100%)"), "{summary}");
}

#[test]
fn what_is_now_is_no_evidence_beside_averages_since_boot() {
    let stat = "7 (x) R 0 1 1 0 -1 0 0 0 0 0 62000 0 0 0 20 0 1 0 5 4096 25 0\n";
    let machine = Machine::idle()
        .cpu([120, 0, 0, 80, 0, 0, 0, 0])
        .file("/proc/pressure/cpu", "some avg10=90.00 avg60=0.00 avg300=0.00 total=0\n")
        .file("/proc/7/stat", stat);
    // Without a sample, the target shows its first reading.
    let target = |machine: &Machine| {
        let text = "==> /proc/stat <==\ncpu 170 0 0 30 0 0 0 0\ncpu0 0 0 0 0\ncpu1 0 0 0 0\n";
        let rest = machine.files.iter().map(|(path, text, _)| format!("\n==> {path} <==\n{text}"));
        FakeTarget::new().recording(&(text.to_owned() + &rest.collect::<String>()))
    };
    let (data, severity, summary) = call(target(&machine), "perf_bottleneck", 0).unwrap();
    assert_eq!(severity, "warning", "{data}");
    assert!(data.get("top_process").is_none(), "{data}");
    assert!(summary.starts_with("CPU is the likely bottleneck at 85% of 2 cores on average since boot. "));
    assert!(summary.contains("At present, something waited for CPU 90% of the last 10 s."), "{summary}");
    let (_, _, summary) = call(machine.target(), "perf_bottleneck", 1000).unwrap();
    assert!(
        summary.contains("at 60% of 2 cores (something waited for CPU 90% of the last 10 s)"),
        "{summary}"
    );
}

#[test]
fn usage_of_nobody_who_is_visible_is_told() {
    let full = Machine::idle().cpu([200, 0, 0, 0, 0, 0, 0, 0]);
    let busy = |ticks: u32| format!("7 (x) R 0 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 5 4096 25 0\n");
    let (data, _, summary) = call(full.target(), "perf_bottleneck", 1000).unwrap();
    assert!(summary.contains("Visible processes account for only 0% of the CPU time used"), "{summary}");
    assert!(data.get("top_process").is_none(), "{data}");
    let with = |ticks| {
        let machine = Machine::idle().cpu([200, 0, 0, 0, 0, 0, 0, 0]);
        let machine = machine.changed("/proc/7/stat", &busy(0), &busy(ticks));
        call(machine.target(), "perf_bottleneck", 1000).unwrap()
    };
    let (data, _, summary) = with(60);
    assert!(summary.contains("only 30% of the CPU time used"), "{summary}");
    assert_eq!(data["top_process"]["cpu_pct"], 60.0);
    assert!(!with(120).2.contains("Visible"));
    let interrupts = Machine::idle().cpu([0, 0, 0, 0, 0, 100, 100, 0]);
    assert!(!call(interrupts.target(), "perf_bottleneck", 1000).unwrap().2.contains("Visible"));
}

#[test]
fn without_cpu_or_memory_there_is_no_analysis_and_without_the_rest_there_is() {
    for tool in ["perf_overview", "perf_bottleneck"] {
        for needed in ["/proc/meminfo", "/proc/stat"] {
            let machine = Machine::idle().without("/proc/meminfo");
            let target = match needed {
                "/proc/meminfo" => machine.target(),
                _ => FakeTarget::new().recording("==> /proc/uptime <==\n5 5\n"),
            };
            let problem = call(target, tool, 1000).unwrap_err();
            assert_eq!(problem.code, "FILE_NOT_FOUND");
            assert!(problem.message.contains(needed), "{}", problem.message);
        }
        let mut bare = Machine::idle();
        for path in ["/proc/loadavg", "/proc/vmstat", "/proc/diskstats", "/proc/net/dev", "/proc/1/stat"] {
            bare = bare.without(path);
        }
        let (data, severity, _) = call(bare.target(), tool, 1000).unwrap();
        assert_eq!(severity, "info");
        assert_eq!(data["missing"].as_array().unwrap().len(), 4, "{data}");
    }
}

#[test]
fn garbled_files_are_problems_or_named_and_never_a_panic() {
    let huge = "x".repeat(2 << 20);
    let long = format!("cpu {}", "9 ".repeat(100_000));
    for bad in
        ["", "\n", "\0\0\0", "x", "cpu", "1 2 3", ": : :", "(((", ")", "\u{fffd}\u{fffd}", &huge, &long]
    {
        for path in [
            "/proc/stat",
            "/proc/uptime",
            "/proc/meminfo",
            "/proc/loadavg",
            "/proc/vmstat",
            "/proc/diskstats",
            "/proc/net/dev",
            "/proc/1/stat",
            "/proc/1/status",
            "/proc/pressure/io",
            "/etc/passwd",
            "/sys/block/dm-0/dm/name",
            "/sys/class/net/lo/speed",
            "/sys/block/zram0/mm_stat",
        ] {
            let machine = Machine::idle().file(path, bad);
            for (tool, sample_ms) in SAMPLED.iter().flat_map(|tool| [(tool, 0), (tool, 1000)]) {
                match call(machine.target(), tool, sample_ms) {
                    Ok((data, ..)) => {
                        assert!(!data.to_string().contains("null"), "{tool} with {path}: {data}")
                    }
                    Err(problem) => assert!(!problem.message.is_empty() && problem.message.len() < 1000),
                }
            }
            for tool in ["perf_memory", "perf_uptime"] {
                let _ = machine.target().call(&module(), tool, json!({}));
            }
        }
    }
}

#[test]
fn what_is_garbled_is_named() {
    let table = [
        ("perf_disk_io", "/proc/diskstats", "UNEXPECTED_OUTPUT"),
        ("perf_network_io", "/proc/net/dev", "UNEXPECTED_OUTPUT"),
        ("perf_bottleneck", "/proc/meminfo", "UNEXPECTED_OUTPUT"),
        ("perf_top_processes", "/proc/1/stat", "NO_PROCESSES"),
    ];
    for (tool, path, code) in table {
        let problem = call(Machine::idle().file(path, "garbage: here\n").target(), tool, 1000).unwrap_err();
        assert_eq!(problem.code, code, "{tool}");
    }
    let (data, ..) =
        call(Machine::idle().file("/proc/diskstats", "garbage").target(), "perf_overview", 1000).unwrap();
    assert_eq!(data["missing"], json!(["/proc/diskstats is not in the expected form: \"garbage\""]));
}

#[test]
fn processes_of_others_that_are_hidden_are_mentioned() {
    let notes = |machine: &Machine| {
        machine.target().call(&module(), "perf_top_processes", json!({})).unwrap().1.notes
    };
    let machine = Machine::idle();
    assert_eq!(notes(&machine), ["cpu_pct is right to within 1, where 100 is one core"]);
    let own = "77 (sh) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 4096 25 0\n";
    assert_eq!(notes(&machine.without("/proc/1/stat").file("/proc/77/stat", own)).len(), 2);
}

#[test]
fn mapped_devices_have_their_name() {
    let line = "254 0 dm-0 1 0 8 1 0 0 0 0 0 1 1\n";
    let machine = Machine::idle().file("/proc/diskstats", line).file("/sys/block/dm-0/dm/name", "vg-root\n");
    let (data, ..) = call(machine.target(), "perf_disk_io", 1000).unwrap();
    assert_eq!((&data[0]["device"], &data[0]["name"]), (&json!("dm-0"), &json!("vg-root")));
}

#[test]
fn tools_are_read_only_and_small_in_a_clients_context() {
    for tool in module().description().tools {
        takes_little_context(&tool);
        assert_eq!(tool.risk, linux_sysadmin_sdk::Risk::ReadOnly);
    }
}

#[test]
fn the_module_runs_nothing_and_reads_no_secret() {
    let capabilities = module().description().capabilities;
    assert!(capabilities.commands.is_empty());
    for grant in capabilities.paths {
        assert!(!grant.write && !grant.reason.is_empty(), "{}", grant.glob);
        // No path below a process ends in a wildcard, because that would cover its environment and memory.
        assert!(!grant.glob.ends_with("**") && !grant.glob.ends_with("/proc/*"), "{}", grant.glob);
    }
}
