//! CPUs: their models, how many there are, and how they share cores, caches and memory.
//!
//! Values are those of lscpu. The caches of the first CPU that is online stand for all.

use std::collections::{BTreeMap, BTreeSet};

use super::{Files, Listings, arm, cpu_set};
use linux_sysadmin_sdk::prelude::*;

const CPUINFO: &str = "/proc/cpuinfo";
const SYSTEM: &str = "/sys/devices/system/cpu";
const PRESENT: &str = "/sys/devices/system/cpu/present";
const ONLINE: &str = "/sys/devices/system/cpu/online";
const VULNERABILITIES: &str = "/sys/devices/system/cpu/vulnerabilities";
const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";
const NODES: &str = "/sys/devices/system/node";

pub(crate) const FILES: &[&str] = &[CPUINFO, PRESENT, ONLINE];
pub(crate) const DIRECTORIES: &[&str] = &[VULNERABILITIES, POLICIES, NODES];
pub(crate) const GLOBS: &[&str] = &[
    "/sys/devices/system/cpu/vulnerabilities/*",
    "/sys/devices/system/cpu/cpufreq/*/cpuinfo_max_freq",
    "/sys/devices/system/cpu/cpufreq/*/cpuinfo_min_freq",
    "/sys/devices/system/cpu/*/cpufreq/cpuinfo_max_freq",
    "/sys/devices/system/cpu/*/cpufreq/cpuinfo_min_freq",
    "/sys/devices/system/cpu/*/topology/core_siblings_list",
    "/sys/devices/system/cpu/*/topology/thread_siblings_list",
    "/sys/devices/system/cpu/*/cache/*/level",
    "/sys/devices/system/cpu/*/cache/*/type",
    "/sys/devices/system/cpu/*/cache/*/size",
    "/sys/devices/system/cpu/*/cache/*/shared_cpu_map",
    "/sys/devices/system/node/*/cpumap",
];

/// The greatest number of caches of one CPU.
const CACHES: usize = 6;

#[derive(Serialize)]
pub(crate) struct Cpu {
    #[serde(skip_serializing_if = "Option::is_none")]
    vendor: Option<String>,
    /// The model, or several with the number of their CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Model>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<usize>,
    /// The CPUs that are there and not used. It is left out where all are online.
    #[serde(skip_serializing_if = "Option::is_none")]
    offline: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sockets: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cores_per_socket: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads_per_core: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_mhz: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_mhz: Option<u64>,
    /// The size of each kind of cache and how many there are, such as `512K x48`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    caches: BTreeMap<String, String>,
    /// The CPUs of each NUMA node. It is left out where there is only one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    numa_nodes: BTreeMap<usize, String>,
    /// The CPU's own support for virtual machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs_vms_by: Option<&'static str>,
    /// True where the CPU says that it is one of a virtual machine.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    under_hypervisor: bool,
    /// The weaknesses to which the kernel calls the CPU vulnerable, with its details.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    vulnerable: BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Model {
    One(String),
    Several(BTreeMap<String, usize>),
}

/// The files that depend on which CPUs and directories there are.
pub(crate) fn paths(files: &Files, listings: &Listings) -> Vec<String> {
    let online = online(files);
    let mut paths = listings.files_of(VULNERABILITIES, |_| true, &[""]);
    paths.iter_mut().for_each(|path| *path = path.trim_end_matches('/').to_owned());
    paths.extend(listings.files_of(NODES, is_node, &["cpumap"]));
    let frequencies = ["cpuinfo_max_freq", "cpuinfo_min_freq"];
    paths.extend(listings.files_of(POLICIES, is_policy, &frequencies));
    for cpu in &online {
        let of_topology = ["core_siblings_list", "thread_siblings_list"];
        paths.extend(of_topology.map(|file| format!("{SYSTEM}/cpu{cpu}/topology/{file}")));
    }
    if let Some(first) = online.first() {
        if !listings.names(POLICIES).iter().any(|name| is_policy(name)) {
            paths.extend(frequencies.map(|file| format!("{SYSTEM}/cpu{first}/cpufreq/{file}")));
        }
        for n in 0..CACHES {
            let of_cache = ["level", "type", "size", "shared_cpu_map"];
            paths.extend(of_cache.map(|file| format!("{SYSTEM}/cpu{first}/cache/index{n}/{file}")));
        }
    }
    paths
}

fn is_node(name: &str) -> bool {
    is_numbered(name, "node")
}

/// Older kernels have the governors' directories beside the policies.
fn is_policy(name: &str) -> bool {
    is_numbered(name, "policy")
}

fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|n| n.parse::<usize>().is_ok())
}

fn set(files: &Files, path: &str) -> Option<Vec<usize>> {
    files.text(path).and_then(cpu_set::of_list)
}

fn online(files: &Files) -> Vec<usize> {
    set(files, ONLINE).unwrap_or_default()
}

impl Cpu {
    pub(crate) fn of(cx: &Context, files: &Files, listings: &Listings) -> Self {
        let cpuinfo = files.text(CPUINFO).unwrap_or_default();
        let value = |keys: &[&str]| {
            let mut fields = fields(cpuinfo).filter(|(key, _)| keys.contains(key));
            fields.next().map(|(_, value)| super::shown(value)).filter(|value| !value.is_empty())
        };
        let online = online(files);
        let present = set(files, PRESENT).filter(|present| !present.is_empty());
        let offline =
            present.iter().flatten().filter(|cpu| !online.contains(cpu)).copied().collect::<Vec<_>>();
        let topology = |file: &str| {
            let paths = online.iter().map(|cpu| format!("{SYSTEM}/cpu{cpu}/topology/{file}"));
            paths.filter_map(|path| set(files, &path)).collect::<BTreeSet<_>>()
        };
        let (sockets, cores) = (topology("core_siblings_list"), topology("thread_siblings_list"));
        let model = models(cpuinfo, &cx.distro().architecture);
        // The kernel groups different CPUs of one chip as if they were sockets.
        let differ = matches!(model, Some(Model::Several(_)));
        let flags = value_of_flags(cpuinfo);
        let has = |flag: &str| flags.split_whitespace().any(|found| found == flag);
        let implementer = value(&["CPU implementer"]);
        let vendor = value(&["vendor_id", "CPU Vendor", "mvendorid"]);
        Self {
            vendor: vendor.or_else(|| implementer.as_deref().and_then(arm::vendor).map(str::to_owned)),
            model,
            cpus: present.map(|present| present.len()).or(Some(online.len()).filter(|count| *count > 0)),
            offline: Some(cpu_set::list(&offline)).filter(|list| !list.is_empty() && !online.is_empty()),
            sockets: Some(sockets.len()).filter(|count| *count > 0 && !differ),
            cores_per_socket: cores
                .len()
                .checked_div(sockets.len())
                .filter(|each| !differ && each * sockets.len() == cores.len()),
            threads_per_core: cores.iter().map(Vec::len).max(),
            max_mhz: frequencies(files, listings, &online, "cpuinfo_max_freq").max(),
            min_mhz: frequencies(files, listings, &online, "cpuinfo_min_freq").min(),
            caches: caches(files, &online),
            numa_nodes: numa_nodes(files, listings),
            runs_vms_by: has("vmx").then_some("VT-x").or(has("svm").then_some("AMD-V")),
            under_hypervisor: has("hypervisor"),
            vulnerable: vulnerable(files, listings),
        }
    }
}

/// The lines `KEY : VALUE`.
fn fields(cpuinfo: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(key, value)| (key.trim(), value.trim()))
}

fn value_of_flags(cpuinfo: &str) -> &str {
    fields(cpuinfo).find(|(key, _)| *key == "flags").map_or("", |(_, value)| value)
}

/// The models of all blocks. Where the kernel tells names, the first one counts for all CPUs; ARM tells numbers, and its
/// CPUs may differ.
fn models(cpuinfo: &str, architecture: &str) -> Option<Model> {
    let mut models = BTreeMap::<String, usize>::new();
    let mut implementer = "";
    for (key, value) in fields(cpuinfo) {
        match key {
            "CPU implementer" => implementer = value,
            "CPU part" => {
                let name = arm::model(implementer, value)
                    .map_or_else(|| format!("{architecture} part {value}"), str::to_owned);
                *models.entry(super::shown(&name)).or_default() += 1;
            }
            _ => {}
        }
    }
    if models.len() > 1 {
        return Some(Model::Several(models));
    }
    let named = ["model name", "Model Name", "cpu", "uarch", "cpu model"];
    // PowerPC and SPARC name the model `cpu`; RISC-V names it `uarch`. An older ARM says only `Processor`.
    let named = || fields(cpuinfo).find(|(key, value)| named.contains(key) && !value.is_empty());
    let only = models.into_keys().next().or_else(|| named().map(|(_, value)| super::shown(value)));
    only.or_else(|| mainframe(cpuinfo)).map(Model::One)
}

/// The machine type of an s390, which stands within its lines of processors.
fn mainframe(cpuinfo: &str) -> Option<String> {
    let (_, machine) = cpuinfo.split_once("machine = ")?;
    machine.split_whitespace().next().map(|machine| format!("machine type {}", super::shown(machine)))
}

/// The frequencies of all policies, in MHz.
fn frequencies(
    files: &Files,
    listings: &Listings,
    online: &[usize],
    file: &str,
) -> impl Iterator<Item = u64> {
    let policies = listings.files_of(POLICIES, is_policy, &[file]);
    let first = online.first().map(|cpu| format!("{SYSTEM}/cpu{cpu}/cpufreq/{file}"));
    let khz = policies.into_iter().chain(first).filter_map(|path| files.number(&path));
    khz.filter(|khz| *khz > 0).map(|khz| khz / 1000)
}

fn caches(files: &Files, online: &[usize]) -> BTreeMap<String, String> {
    let Some(first) = online.first() else { return BTreeMap::new() };
    let caches = (0..CACHES).filter_map(|n| {
        let path = |file: &str| format!("{SYSTEM}/cpu{first}/cache/index{n}/{file}");
        let kind = match files.text(&path("type"))? {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        let size = files.line(&path("size"))?;
        let shared =
            files.text(&path("shared_cpu_map")).and_then(cpu_set::of_mask).map_or(0, |cpus| cpus.len());
        // Where the CPUs don't share evenly, the first one can't stand for the others.
        let count = online.len().checked_div(shared).filter(|count| count * shared == online.len());
        let count = count.map(|count| format!(" x{count}")).unwrap_or_default();
        Some((format!("L{}{kind}", files.number(&path("level"))?), format!("{size}{count}")))
    });
    caches.collect()
}

/// The nodes where there are several. A node may have memory only.
fn numa_nodes(files: &Files, listings: &Listings) -> BTreeMap<usize, String> {
    let nodes = listings.names(NODES).iter().filter_map(|name| {
        let number = name.strip_prefix("node")?.parse().ok()?;
        let cpus = cpu_set::of_mask(files.text(&format!("{NODES}/{name}/cpumap"))?)?;
        Some((number, cpu_set::list(&cpus)))
    });
    let nodes: BTreeMap<_, _> = nodes.collect();
    if nodes.len() > 1 { nodes } else { BTreeMap::new() }
}

fn vulnerable(files: &Files, listings: &Listings) -> BTreeMap<String, String> {
    let all = listings.names(VULNERABILITIES).iter();
    let vulnerable = all.filter_map(|name| {
        let state = files.line(&format!("{VULNERABILITIES}/{name}"))?;
        let details = state.strip_prefix("Vulnerable")?.trim_start_matches([':', ';', ',', ' ']);
        Some((name.clone(), if details.is_empty() { "yes".to_owned() } else { details.to_owned() }))
    });
    vulnerable.collect()
}
