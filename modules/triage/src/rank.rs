//! The order of findings: what fits the complaint, then how severe it is, then how well it is explained.

use std::cmp::Reverse;

use linux_sysadmin_sdk::Severity;

use crate::complaint::Complaint;
use crate::finding::{Finding, Kind};
use crate::names::WHOLE;

/// The finding is of a kind that the complaint is about.
const FITS: u32 = 40;
/// The complaint names what the finding is about.
const NAMED: u32 = 50;
/// The complaint's words mean it without its name.
pub(crate) const MEANT: u32 = 40;
/// The finding contradicts what the complaint says or expects of it.
pub(crate) const CONTRADICTS: u32 = 60;
/// A line of the machine names the cause.
const EXACT: u32 = 8;
/// Something that has to do with it changed shortly before.
pub(crate) const CHANGED: u32 = 12;

/// The part of the first finding's score, in percent, from which on another one may be the cause as well.
const NEAR: u32 = 60;

/// Whether the finding explains the complaint: its cause is known, and a line of the machine or the complaint's own words lead to
/// it.
pub(crate) fn explains(finding: &Finding, complaint: &Complaint) -> bool {
    let is_named = share(finding, complaint) == WHOLE;
    let leads_to_it = finding.is_exact || is_named || finding.weight >= MEANT;
    finding.cause.is_some() && leads_to_it && (is_named || fits(finding, complaint))
}

/// Whether this finding may be the cause of the complaint as well as the first one may.
pub(crate) fn is_near(finding: &Finding, first: &Finding, complaint: &Complaint) -> bool {
    score(finding, complaint) * 100 >= score(first, complaint) * NEAR
}

/// Sorts findings, the likeliest cause of the complaint first.
pub(crate) fn sort(findings: &mut [Finding], complaint: &Complaint) {
    findings.sort_by_cached_key(|finding| {
        (Reverse(score(finding, complaint)), Reverse(finding.since), finding.what.clone())
    });
}

fn score(finding: &Finding, complaint: &Complaint) -> u32 {
    let severity = match finding.severity {
        Severity::Critical => 30,
        Severity::High => 20,
        Severity::Warning => 10,
        Severity::Info => 0,
    };
    // A change by itself explains nothing, and stands behind what is broken.
    let change = if finding.kind == Kind::Change { 0 } else { 1 };
    (severity
        + u32::from(fits(finding, complaint)) * FITS
        + share(finding, complaint) * NAMED / WHOLE
        + finding.weight
        + u32::from(finding.is_exact) * EXACT)
        * change
}

fn fits(finding: &Finding, complaint: &Complaint) -> bool {
    complaint.kinds.iter().any(|kind| finding.is_of(*kind))
}

/// How far the complaint names what the finding is about.
fn share(finding: &Finding, complaint: &Complaint) -> u32 {
    finding.names.iter().map(|name| named(name, complaint)).max().unwrap_or(0)
}

/// How far the complaint names this: a path by its beginning, anything else by its parts.
fn named(name: &str, complaint: &Complaint) -> u32 {
    let is_path = |path: &String| {
        path == name
            || path.strip_prefix(name.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
    };
    if name.starts_with('/') && name.len() > 1 && complaint.paths.iter().any(is_path) {
        return WHOLE;
    }
    if complaint.hosts.iter().any(|host| host.eq_ignore_ascii_case(name)) {
        return WHOLE;
    }
    let last = name.rsplit('/').next().unwrap_or(name);
    complaint.names(last)
}
