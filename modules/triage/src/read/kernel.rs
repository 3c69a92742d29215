//! The kernel's own messages: processes killed for want of memory, disks with errors, file systems that became read-only.

use linux_sysadmin_sdk::Severity::{self, Critical, High, Warning};
use serde_json::json;

use crate::call::Call;
use crate::envelope::{Envelope, log_line, strings};
use crate::finding::Finding;
use crate::finding::Kind::{self, Disk, Network, Service, Slow};
use crate::moment;
use crate::notebook::Notebook;

/// What messages mean. The first one whose text a message has counts.
struct Message {
    has: &'static str,
    kinds: &'static [Kind],
    severity: Severity,
    what: &'static str,
    cause: &'static str,
    tool: &'static str,
}

const fn message(
    has: &'static str,
    kinds: &'static [Kind],
    severity: Severity,
    (what, cause): (&'static str, &'static str),
    tool: &'static str,
) -> Message {
    Message { has, kinds, severity, what, cause, tool }
}

const WRITES: (&str, &str) =
    ("a file system became read-only", "the kernel met errors on the disk, and lets nobody write any more");
const READS: (&str, &str) = ("a disk has errors", "the disk, its cable or its controller fails");
const DAMAGED: (&str, &str) = ("a file system is damaged", "what is on the disk isn't as it was written");

const MESSAGES: &[Message] = &[
    message(
        "Memory cgroup out of memory",
        &[Slow, Service],
        High,
        ("a process was killed for want of memory", "its unit has come to its own memory limit"),
        "perf_memory",
    ),
    message(
        "Out of memory: Killed process",
        &[Slow, Service],
        High,
        ("a process was killed for want of memory", "the machine had no memory left"),
        "perf_memory",
    ),
    message("emounting filesystem read-only", &[Disk, Service], Critical, WRITES, "disk_health"),
    message("Shutting down filesystem", &[Disk, Service], Critical, WRITES, "disk_health"),
    message("Aborting journal", &[Disk, Service], Critical, WRITES, "disk_health"),
    message("EXT4-fs error", &[Disk], High, DAMAGED, "disk_health"),
    message("Corruption", &[Disk], High, DAMAGED, "disk_health"),
    message("BTRFS error", &[Disk], High, DAMAGED, "disk_health"),
    message("critical medium error", &[Disk, Slow], High, READS, "disk_health"),
    message("I/O error", &[Disk, Slow], High, READS, "disk_health"),
    message(
        "blocked for more than",
        &[Slow, Disk],
        Warning,
        ("processes wait for a disk for minutes", "a disk or a file system of the network doesn't answer"),
        "perf_disk_io",
    ),
    message(
        "Hardware Error",
        &[Slow],
        High,
        ("the hardware reports errors", "memory or a processor fails"),
        "machine_info",
    ),
    message(
        "nf_conntrack: table full",
        &[Network],
        High,
        ("connections are dropped", "the table of connections is full"),
        "sysctl_get",
    ),
    message(
        "neighbor table overflow",
        &[Network],
        High,
        ("neighbours in the network are forgotten", "the table of neighbours is full"),
        "net_interfaces",
    ),
    message(
        "SYN flooding",
        &[Network],
        Warning,
        ("connections wait to be accepted", "a program accepts them too slowly, or they are an attack"),
        "net_connections",
    ),
];

/// Reads `log_query` of the kernel's messages. Several messages with one meaning are one finding, since the first of them.
pub(crate) fn messages(envelope: Envelope<'_>, _: &str, notebook: &mut Notebook<'_>) {
    let lines: Vec<String> = strings(envelope.data(), "lines").collect();
    let mut told: Vec<&str> = Vec::new();
    for line in &lines {
        let (time, text) = log_line(line);
        let Some(known) = MESSAGES.iter().find(|known| text.contains(known.has)) else { continue };
        if told.contains(&known.what) {
            continue;
        }
        told.push(known.what);
        let (kind, fits) = known.kinds.split_first().unwrap_or((&Service, &[]));
        let call = match known.tool {
            "sysctl_get" => Call::new("sysctl_get").with("keys", json!(["net.netfilter.nf_conntrack_max"])),
            tool => Call::new(tool),
        };
        let mut finding = Finding::new(*kind, known.severity, known.what)
            .fits(fits)
            .evidence(text)
            .cause(known.cause)
            .since(time.and_then(|time| moment::parse(time, notebook.is_utc)))
            .call([Some(call)]);
        finding.names.extend(killed(text));
        notebook.add(finding);
    }
}

/// The name in `Out of memory: Killed process 812 (mysqld) total-vm:…`.
fn killed(text: &str) -> Option<String> {
    let (name, _) = text.split_once("Killed process ")?.1.split_once(" (")?.1.split_once(')')?;
    Some(name.to_owned())
}
