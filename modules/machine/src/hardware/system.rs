//! The system: distribution, kernel, boot, and what the machine runs in.
//!
//! The machine id never appears: machine-id(5) asks to keep it confidential.

use super::Files;
use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::text::excerpt;
use linux_sysadmin_sdk::time::rfc3339;

const HOSTNAME: &str = "/proc/sys/kernel/hostname";
const RELEASE: &str = "/proc/sys/kernel/osrelease";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const TAINTED: &str = "/proc/sys/kernel/tainted";
const UPTIME: &str = "/proc/uptime";
const COMMAND_LINE: &str = "/proc/cmdline";
/// Debian's packages and unattended-upgrades leave this file. Its text is for people.
const REBOOT_REQUIRED: &str = "/run/reboot-required";

pub(crate) const FILES: &[&str] =
    &[HOSTNAME, RELEASE, BOOT_ID, TAINTED, UPTIME, COMMAND_LINE, REBOOT_REQUIRED];

/// The longest command line that the kernel of x86 takes, in bytes.
const LONGEST_COMMAND_LINE: usize = 2048;

#[derive(Serialize)]
pub(crate) struct System {
    hostname: String,
    distribution: String,
    kernel: String,
    architecture: String,
    /// The container or else the hypervisor, by the name that systemd-detect-virt has for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    virtualization: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    booted_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uptime_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_line: Option<String>,
    /// Why the kernel's developers would not trust a report of this kernel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tainted: Vec<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    reboot_required: bool,
}

impl System {
    pub(crate) fn of(cx: &Context, files: &Files, in_full: bool) -> Self {
        let known = cx.distro();
        let fact =
            |name: &str| known.extra.iter().find(|(fact, _)| fact == name).map(|(_, value)| value.clone());
        let uptime = files.text(UPTIME).and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        let uptime = uptime.filter(|uptime| *uptime >= 0.0);
        // The host looks for secrets in the whole line: the end of a cut one could be a part of a secret.
        let command_line = files.text(COMMAND_LINE).filter(|_| in_full).map(str::to_owned);
        let command_line = command_line.and_then(|line| cx.redacted(vec![line]).pop());
        Self {
            hostname: files.line(HOSTNAME).unwrap_or(known.hostname),
            distribution: format!("{} {}", known.name, known.version).trim().to_owned(),
            kernel: files.line(RELEASE).unwrap_or(known.kernel),
            architecture: known.architecture,
            virtualization: fact("virtualization"),
            time_zone: fact("timezone"),
            booted_at: uptime.map(|uptime| rfc3339((cx.now() - uptime).round() as i64)),
            uptime_s: uptime.map(|uptime| uptime as u64),
            boot_id: files.line(BOOT_ID).filter(|_| in_full),
            command_line: command_line.map(|line| excerpt(&line, LONGEST_COMMAND_LINE)),
            tainted: files.number(TAINTED).map(taints).unwrap_or_default(),
            reboot_required: files.text(REBOOT_REQUIRED).is_some(),
        }
    }
}

/// The meaning of each bit of the taint, by Documentation/admin-guide/tainted-kernels.rst of Linux 6.18.
const TAINTS: &[&str] = &[
    "proprietary module loaded",
    "module force-loaded",
    "kernel outside of its specification",
    "module force-unloaded",
    "machine check exception",
    "bad page",
    "taint asked for by a program",
    "kernel died: oops or BUG",
    "ACPI table overridden",
    "kernel warning",
    "staging driver loaded",
    "workaround for a firmware bug",
    "module from outside the kernel's tree",
    "unsigned module loaded",
    "soft lockup",
    "live patch applied",
    "taint of the distribution",
    "randomized structure layout",
    "in-kernel test run",
    "fwctl changed a device's firmware state",
];

fn taints(bits: u64) -> Vec<&'static str> {
    TAINTS.iter().enumerate().filter(|(n, _)| bits & (1 << n) != 0).map(|(_, meaning)| *meaning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_of_the_taint_has_its_meaning() {
        assert_eq!(taints(0), [""; 0]);
        // P, O and E, as with a driver built by DKMS.
        assert_eq!(
            taints(1 | 1 << 12 | 1 << 13),
            ["proprietary module loaded", "module from outside the kernel's tree", "unsigned module loaded"]
        );
        assert_eq!(taints(u64::MAX).len(), TAINTS.len());
    }
}
