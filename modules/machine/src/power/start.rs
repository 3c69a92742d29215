//! Tells which packages need a restart of the machine, and what the last start brought.

use linux_sysadmin_sdk::{Category, DurationCategory, prelude::*};

use super::units::{NotUp, Units, states};

/// The file with the id that the kernel gave its current boot.
pub(crate) const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The packages that need a restart, one on each line. Debian's packages write it.
pub(crate) const RESTART_REQUIRED: &str = "/run/reboot-required.pkgs";
/// The directory that has a directory for each kernel that is installed.
pub(crate) const KERNELS: &str = "/usr/lib/modules";
/// Waits until the start has ended, and prints `running`, or `degraded` where units have failed.
pub(crate) const STATE: CommandLine = CommandLine::new("systemctl is-system-running --wait");

/// The machine after its restart.
#[derive(Serialize)]
pub(crate) struct Started {
    /// The state of all: `running`, `degraded` where units have failed, `starting` where some still start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system: Option<String>,
    /// The units that ran before, or that have failed now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_up: Vec<NotUp>,
}

/// The reasons for a restart: packages that say so, and a kernel that is newer than the one that runs.
pub(crate) fn required_by(cx: &Context) -> Vec<String> {
    let file = cx.read(RESTART_REQUIRED).unwrap_or_default();
    let mut needs: Vec<_> =
        file.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    needs.sort();
    needs.dedup();
    let installed = cx.list_dir(KERNELS).unwrap_or_default();
    needs.extend(newer_kernel(&installed, &cx.distro().kernel).map(|kernel| format!("kernel {kernel}")));
    needs
}

/// The newest of these kernels, where it is newer than the one that runs and both are installed.
fn newer_kernel<'a>(installed: &'a [String], running: &str) -> Option<&'a String> {
    let newest = installed.iter().max_by_key(|release| parts(release))?;
    (installed.iter().any(|release| release == running) && newest != running).then_some(newest)
}

/// A release in parts that compare as their authors count: numbers by value.
fn parts(release: &str) -> Vec<(u64, &str)> {
    let part = |part: &'_ str| part.parse().map_or(0, |number: u64| number + 1);
    release.split(['.', '-', '_', '+', '~']).map(|text| (part(text), text)).collect()
}

/// Waits until the start has ended, and compares the units with those of before.
pub(crate) fn look(before: &Units, cx: &Context) -> Started {
    let waited = cx.run(STATE.command().duration(DurationCategory::Normal));
    let system = match waited {
        Ok(output) => Some(output.text().trim().to_owned()).filter(|state| !state.is_empty()),
        Err(problem) => (problem.category == Category::Timeout).then(|| "starting".to_owned()),
    };
    let now = Units::read(cx.run(states()));
    Started { system, not_up: now.not_up(before) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_newer_by_the_value_of_its_numbers() {
        let installed = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (names, running, newer) in [
            (&["6.1.0-9-amd64", "6.1.0-38-amd64"][..], "6.1.0-9-amd64", Some("6.1.0-38-amd64")),
            (&["6.1.0-9-amd64", "6.1.0-38-amd64"], "6.1.0-38-amd64", None),
            (
                &["5.14.0-503.el9.x86_64", "5.14.0-70.el9.x86_64"],
                "5.14.0-70.el9.x86_64",
                Some("5.14.0-503.el9.x86_64"),
            ),
            // The kernel of a container is its host's.
            (&["6.1.0-38-amd64"], "6.18.44-fc", None),
            (&[], "6.1.0-38-amd64", None),
        ] {
            assert_eq!(newer_kernel(&installed(names), running).map(String::as_str), newer, "{names:?}");
        }
    }
}
