//! `sec_check_suid`: programs that give their caller other rights, against the database of packages.
//!
//! Mode bits and capabilities of files count alike. What a distribution ships so is known: of rpm's packages by rpm
//! itself, of dpkg's, which doesn't know modes, by a list of ours.

mod owners;
mod search;
mod shipped;

use std::collections::BTreeMap;

use linux_sysadmin_sdk::{mounts, prelude::*};
use serde_json::json;

use crate::finding::{Finding, Found, Report};
use owners::{Owner, Owners};
use search::Privileged;
pub(crate) use search::Search;

/// Directories to which accounts of people or services may write. A package has nothing there that gives rights.
const WRITABLE: [&str; 6] = ["/tmp", "/var/tmp", "/dev/shm", "/home", "/run/user", "/srv"];

pub(crate) fn tool(module: Module) -> Module {
    module.grants(grants).tool(
        Tool::new(
            "sec_check_suid",
            "setuid, setgid and capability files that no package has so",
            sec_check_suid,
        )
        .duration(linux_sysadmin_sdk::DurationCategory::Slow),
    )
}

fn grants(module: Module) -> Module {
    module.paths(mounts::grants()).commands(search::grants()).commands(owners::grants())
}

fn sec_check_suid(_: NoArgs, cx: &Context) -> Result<Analysis<Report>> {
    Ok(find(cx)?.analysis("setuid, setgid and capability files"))
}

fn find(cx: &Context) -> Result<Found> {
    finish(begin(cx)?, cx)
}

/// Begins the search, as `sec_audit` does before its other looks.
pub(crate) fn begin(cx: &Context) -> Result<Search> {
    Search::begin(cx)
}

/// Judges what the search finds.
pub(crate) fn finish(search: Search, cx: &Context) -> Result<Found> {
    let mut found = Found::default();
    let files = search.finish(cx, &mut found.unseen)?;
    let owners = Owners::look(&files, cx, &mut found.unseen);
    for file in &files {
        judge(file, &owners, &mut found);
    }
    Ok(found)
}

fn judge(file: &Privileged, owners: &Owners, found: &mut Found) {
    let path = &file.path;
    let rights = file.rights();
    let without = match &file.capabilities {
        Some(_) => json!({"argv": ["setcap", "-r", path], "as_root": true}),
        None => json!({"path": path, "mode": "ug-s"}),
    };
    let tool = if file.capabilities.is_some() { "command_run" } else { "perms_set" };
    let what = if file.capabilities.is_some() { "capability" } else { "suid" };
    if file.is_writable() {
        let evidence = format!("{rights}, and others may write to it");
        found.push(
            Finding::new(Severity::Critical, format!("{what}-writable"), path, evidence)
                .mend("perms_set", json!({"path": path, "mode": "go-w"})),
        );
    }
    let owner = owners.of(file);
    let finding = match owner {
        Owner::Unknown => return,
        Owner::None => {
            let is_worse = WRITABLE.iter().any(|directory| mounts::is_within(path, directory));
            let severity = if is_worse { Severity::Critical } else { Severity::High };
            Finding::new(
                severity,
                format!("{what}-unowned"),
                path,
                format!("{rights}; no package has the file"),
            )
            .mend(tool, without)
        }
        Owner::Package { name, is_modified: true, .. } => {
            let evidence = format!("{rights}; other contents than package {name} brought");
            Finding::new(Severity::Critical, format!("{what}-modified"), path, evidence)
                .mend("pkg_install", json!({"package": [name]}))
        }
        Owner::Package { name, has_rights: false, .. } => {
            let evidence = format!("{rights}; package {name} brings it without");
            Finding::new(Severity::High, format!("{what}-unexpected"), path, evidence).mend(tool, without)
        }
        Owner::Package { .. } => return,
    };
    found.push(finding);
}

/// Names of packages with the files that are asked about.
type ByPackage<'a> = BTreeMap<String, Vec<&'a Privileged>>;
