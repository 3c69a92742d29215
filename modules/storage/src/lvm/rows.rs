//! The reports of pvs, vgs and lvs as rows, and what a report that can't be made means.

use linux_sysadmin_sdk::{Category, Output, prelude::*, text};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::report::{Group, Pv, Volume};

const WHO_HOLDS: &str =
    "proc_list file=/run/lock/lvm tells who holds the lock; wait for its end, and call this again";

/// The rows of one report, and what LVM said beside it.
pub(super) fn rows<T: DeserializeOwned>(
    output: Result<Output>,
    key: &str,
    remarks: &mut Vec<String>,
) -> Result<Vec<T>> {
    let output = output.map_err(explained)?;
    for line in output.error_text().lines().map(text::of_line) {
        // A machine without a device mapper says this at each look, and programs that inherit files say that.
        let is_noise =
            line.is_empty() || line.contains("Activation disabled") || line.contains(" leaked on ");
        if !is_noise && !remarks.contains(&line) {
            remarks.push(line);
        }
    }
    // Without root's rights LVM sees no disk, and the report is empty.
    if remarks.iter().any(|remark| remark.contains("non-root user")) {
        let message = format!("LVM tells about volumes to root alone: {}", remarks.join("; "));
        return Err(Problem::new("PRIVILEGE_REQUIRED", Category::Privilege, message));
    }
    if output.truncated {
        return Err(output.success("lvs").err().unwrap_or_else(|| Problem::unexpected("lvs", "")));
    }
    let text = output.text();
    let report = serde_json::from_str::<Value>(&text).unwrap_or_default();
    let found = report.pointer(&format!("/report/0/{key}")).and_then(|rows| Vec::deserialize(rows).ok());
    match (found, output.exit_code) {
        // Where one group fails, the others are reported, and the exit code is 5.
        (Some(found), 0) => Ok(found),
        (Some(found), _) if !remarks.iter().any(|remark| is_lock(remark)) => Ok(found),
        (_, 0) => Err(Problem::unexpected("the report of LVM", &text)),
        _ if remarks.iter().any(|remark| is_lock(remark)) => Err(locked(remarks)),
        (_, code) => {
            let message = format!("LVM ended with exit code {code}: {}", remarks.join("; "));
            Err(Problem::new("COMMAND_FAILED", Category::Other, message))
        }
    }
}

fn is_lock(remark: &str) -> bool {
    remark.contains("Can't get lock")
        || remark.contains("flock failed")
        || remark.contains("waiting for lock")
}

fn locked(remarks: &[String]) -> Problem {
    let message = format!("another command holds LVM's lock: {}", remarks.join("; "));
    Problem::new("LVM_LOCKED", Category::State, message).remedy(WHO_HOLDS)
}

/// Tells what a report that can't be made means.
fn explained(problem: Problem) -> Problem {
    match problem.code.as_str() {
        "PROGRAM_NOT_FOUND" => problem
            .remedy("pkg_install package=[lvm2] brings it; without it this machine uses no logical volumes"),
        "COMMAND_TIMEOUT" => {
            let message =
                "LVM gave no report in 10 s: another command holds its lock, or a disk doesn't answer";
            Problem::new("LVM_NO_ANSWER", Category::Timeout, message)
                .remedy(WHO_HOLDS)
                .remedy("disk_health tells of disks; log_search of the kernel's messages names one that doesn't answer")
        }
        _ => problem,
    }
}

#[derive(Deserialize)]
pub(super) struct PvRow {
    pv_name: String,
    pub(super) vg_uuid: String,
    pv_size: String,
    pv_free: String,
    pv_attr: String,
    #[serde(default)]
    pv_missing: String,
}

#[derive(Deserialize)]
pub(super) struct VgRow {
    vg_name: String,
    vg_uuid: String,
    vg_attr: String,
    vg_extent_size: String,
    vg_extent_count: String,
    vg_free_count: String,
    vg_missing_pv_count: String,
}

#[derive(Deserialize)]
pub(super) struct LvRow {
    vg_name: String,
    pub(super) vg_uuid: String,
    lv_name: String,
    lv_attr: String,
    lv_size: String,
    lv_path: String,
    lv_dm_path: String,
    lv_layout: String,
    origin: String,
    pool_lv: String,
    data_percent: String,
    metadata_percent: String,
    lv_kernel_minor: String,
}

/// LVM writes numbers as texts, and nothing where it doesn't know one.
fn number(text: &str) -> u64 {
    text.parse().unwrap_or_default()
}

impl PvRow {
    pub(super) fn pv(self) -> Pv {
        Pv {
            size: number(&self.pv_size),
            free: number(&self.pv_free),
            is_missing: !self.pv_missing.is_empty() || self.pv_attr.contains('m'),
            is_allocatable: self.pv_attr.starts_with('a'),
            name: self.pv_name,
        }
    }
}

impl VgRow {
    pub(super) fn group(self) -> Group {
        Group {
            extent: number(&self.vg_extent_size),
            extents: number(&self.vg_extent_count),
            free_extents: number(&self.vg_free_count),
            missing: number(&self.vg_missing_pv_count),
            name: self.vg_name,
            uuid: self.vg_uuid,
            attributes: self.vg_attr,
            pvs: Vec::new(),
            volumes: Vec::new(),
        }
    }
}

impl LvRow {
    pub(super) fn volume(self) -> Volume {
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let path = match self.lv_path.is_empty() {
            true => format!("{}/{}", self.vg_name, self.lv_name),
            false => self.lv_path,
        };
        Volume {
            size: number(&self.lv_size),
            data_percent: self.data_percent.parse().ok(),
            metadata_percent: self.metadata_percent.parse().ok(),
            origin: some(self.origin),
            pool: some(self.pool_lv),
            group: self.vg_name,
            name: self.lv_name,
            attributes: self.lv_attr,
            mapper: self.lv_dm_path,
            layout: self.lv_layout,
            path,
            number: self.lv_kernel_minor.parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_that_cannot_be_made_has_its_reason() {
        let problem = |code: &str| explained(Problem::new(code, Category::NotFound, "no such program: pvs"));
        let missing = problem("PROGRAM_NOT_FOUND");
        assert!(missing.remediation[0].contains("pkg_install package=[lvm2]"), "{missing:?}");
        assert_eq!(problem("COMMAND_TIMEOUT").code, "LVM_NO_ANSWER");
        assert_eq!(problem("PRIVILEGE_REQUIRED").remediation, [""; 0]);
    }
}
