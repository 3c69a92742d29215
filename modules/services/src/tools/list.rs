//! `svc_list`: lists every service, those in the manager's memory and those that are only installed.

use std::collections::{BTreeMap, BTreeSet};

use linux_sysadmin_sdk::prelude::*;

use crate::systemd::exit_status::exit_status;
use crate::systemd::properties::{self, Properties};
use crate::systemd::systemctl::{self, UnitFile};
use crate::systemd::unit_name;

/// A service in the list.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct Service {
    service: String,
    active_state: String,
    sub_state: String,
    /// The unit file's state, as `systemctl list-unit-files` gives it.
    #[serde(skip_serializing_if = "String::is_empty")]
    enabled: String,
    /// The load state, where it isn't `loaded` and `enabled` doesn't say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    load_state: Option<String>,
    /// The failure of the last run, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// The exit code of a main process that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u64>,
    /// The number of restarts by the unit's policy since it was last started by other means.
    #[serde(skip_serializing_if = "Option::is_none")]
    restarts: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    aliases: Vec<String>,
    /// None for a service that is only installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

pub(crate) fn svc_list(_: NoArgs, cx: &Context) -> Result<Listing<Service>> {
    // One command follows the other, because the manager answers nothing else while it reads the unit files.
    let loaded = systemctl::answer(cx.run(systemctl::LOADED_SERVICES.command()))?;
    let (files, note) = systemctl::installed(cx.run(systemctl::SERVICE_FILES.command()));
    let items = services(&properties::parse_units(&loaded)?, &files);
    Ok(Listing { items, total: None, notes: note.into_iter().collect() })
}

/// All services: first the failed ones, then those that change their state (as in a crash loop), then those that run, those
/// that are active otherwise, and the inactive ones.
fn services(loaded: &[Properties<'_>], files: &[UnitFile]) -> Vec<Service> {
    let states: BTreeMap<&str, &str> =
        files.iter().map(|file| (file.name.as_str(), file.state.as_str())).collect();
    let mut known = BTreeSet::new();
    let mut services = Vec::new();
    for unit in loaded {
        let Some(id) = unit.text("Id") else { continue };
        let names = unit.words("Names");
        known.extend(names.iter().cloned());
        known.insert(id.to_owned());
        services.extend(from_manager(id, unit, &names, &states));
    }
    let installed = files.iter().filter(|file| !known.contains(&file.name));
    services.extend(installed.filter(|file| !file.is_template_or_alias()).map(only_installed));
    services.sort_by(|a, b| (rank(a), &a.service).cmp(&(rank(b), &b.service)));
    services
}

/// A service in the manager's memory. None for a name that other units refer to and no file defines.
fn from_manager(
    id: &str,
    unit: &Properties<'_>,
    names: &[String],
    states: &BTreeMap<&str, &str>,
) -> Option<Service> {
    let load_state = unit.text("LoadState").unwrap_or("loaded");
    let active_state = unit.text("ActiveState").unwrap_or("unknown");
    if load_state == "not-found" && active_state == "inactive" {
        return None;
    }
    let enabled = unit.text("UnitFileState").or_else(|| states.get(id).copied()).unwrap_or_default();
    let aliases = names.iter().filter(|alias| *alias != id).map(|alias| unit_name::short(alias).to_owned());
    let result = unit.string("Result").filter(|result| result != "success");
    Some(Service {
        service: unit_name::short(id).to_owned(),
        active_state: active_state.to_owned(),
        sub_state: unit.text("SubState").unwrap_or("unknown").to_owned(),
        enabled: enabled.to_owned(),
        load_state: (!matches!(load_state, "loaded" | "masked")).then(|| load_state.to_owned()),
        exit_code: exit_status(unit).0.filter(|_| result.is_some()),
        result,
        restarts: unit.number("NRestarts").filter(|count| *count > 0),
        aliases: aliases.collect(),
        // For a unit without a description, systemd prints the unit's name.
        description: unit.string("Description").filter(|description| description != id),
    })
}

/// A service that isn't in the manager's memory. It neither runs nor has failed.
fn only_installed(file: &UnitFile) -> Service {
    Service {
        service: unit_name::short(&file.name).to_owned(),
        active_state: "inactive".to_owned(),
        sub_state: "dead".to_owned(),
        enabled: file.state.clone(),
        load_state: None,
        result: None,
        exit_code: None,
        restarts: None,
        aliases: Vec::new(),
        description: None,
    }
}

fn rank(service: &Service) -> u8 {
    match (service.active_state.as_str(), service.sub_state.as_str()) {
        ("failed", _) => 0,
        ("active", "running") => 2,
        ("active", _) => 3,
        ("inactive", _) => 4,
        _ => 1,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn file(name: &str, state: &str) -> UnitFile {
        UnitFile { name: name.to_owned(), state: state.to_owned() }
    }

    #[test]
    fn loaded_and_installed_services_are_one_list() {
        let loaded = properties::parse(
            "Id=ssh.service\nNames=ssh.service sshd.service\nDescription=OpenBSD Secure Shell server\nLoadState=loaded\n\
             ActiveState=active\nSubState=running\nUnitFileState=enabled\n\n\
             Id=gone.service\nDescription=gone.service\nLoadState=not-found\nActiveState=inactive\nSubState=dead\n\n\
             Id=removed.service\nDescription=\nLoadState=not-found\nActiveState=active\nSubState=running\n\n\
             Id=bad.service\nLoadState=bad-setting\nActiveState=failed\nSubState=failed\nUnitFileState=static\nNew=1\n\n\
             Id=off.service\nLoadState=masked\nActiveState=inactive\nSubState=dead\nUnitFileState=masked",
        );
        let files = [
            file("ssh.service", "enabled"),
            file("sshd.service", "alias"),
            file("getty@.service", "enabled"),
            file("other.service", "alias"),
            file("rsync.service", "disabled"),
            file("off.service", "masked"),
        ];
        let services = services(&loaded, &files);
        let shown = serde_json::to_value(&services).unwrap();
        let expected = serde_json::json!([
            {"service": "bad", "active_state": "failed", "sub_state": "failed", "enabled": "static",
             "load_state": "bad-setting"},
            {"service": "removed", "active_state": "active", "sub_state": "running", "load_state": "not-found"},
            {"service": "ssh", "active_state": "active", "sub_state": "running", "enabled": "enabled",
             "aliases": ["sshd"], "description": "OpenBSD Secure Shell server"},
            {"service": "off", "active_state": "inactive", "sub_state": "dead", "enabled": "masked"},
            {"service": "rsync", "active_state": "inactive", "sub_state": "dead", "enabled": "disabled"},
        ]);
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_needs_attention_comes_first() {
        let states = [
            ("a", "inactive", "dead"),
            ("b", "active", "exited"),
            ("c", "active", "running"),
            ("d", "activating", "auto-restart"),
            ("e", "failed", "failed"),
            ("f", "reloading", "reload"),
            ("g", "maintenance", "x"),
        ];
        let text: String = states
            .iter()
            .map(|(id, active, sub)| format!("Id={id}.service\nActiveState={active}\nSubState={sub}\n\n"))
            .collect();
        let order: Vec<_> =
            services(&properties::parse(&text), &[]).into_iter().map(|item| item.service).collect();
        assert_eq!(order, ["e", "d", "f", "g", "c", "b", "a"]);
    }

    #[test]
    fn how_the_last_run_ended_is_said_where_not_well() {
        let table = [
            (
                "Result=success\nNRestarts=0\nExecMainCode=1\nExecMainStatus=1",
                serde_json::json!([null, null, null]),
            ),
            (
                "Result=exit-code\nNRestarts=2\nExecMainCode=1\nExecMainStatus=7",
                serde_json::json!(["exit-code", 7, 2]),
            ),
            ("Result=signal\nExecMainCode=2\nExecMainStatus=11", serde_json::json!(["signal", null, null])),
            (
                "Result=exit-code\nExecMainCode=0\nExecMainStatus=0",
                serde_json::json!(["exit-code", null, null]),
            ),
            ("", serde_json::json!([null, null, null])),
        ];
        for (text, expected) in table {
            let text = format!("Id=a.service\n{text}\n");
            let item = serde_json::to_value(&services(&properties::parse(&text), &[])[0]).unwrap();
            assert_eq!(
                serde_json::json!([item["result"], item["exit_code"], item["restarts"]]),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn nothing_is_an_empty_list() {
        assert!(services(&[], &[]).is_empty());
    }
}
