//! What a disk says of its own health, by smartctl(8) as JSON. The members are those of smartmontools 7.0 and later.

use linux_sysadmin_sdk::{Privilege, prelude::*};
use serde_json::Value;

/// Asks a disk, unless it sleeps: waking it takes time and wears it.
const ASK: CommandLine = CommandLine::new("smartctl --json --nocheck=standby --all -- <disk>");
/// Asks a disk behind a USB bridge that smartctl doesn't know. Nearly all of them pass SATA commands on.
const ASK_BEHIND_BRIDGE: CommandLine =
    CommandLine::new("smartctl --json --nocheck=standby --all --device=sat -- <disk>");

/// A disk above this temperature, in degrees Celsius, is too hot.
const HOT: u64 = 60;
/// From here on, a flash disk is nearly worn, in percent of what it was made for.
const NEARLY_WORN: u64 = 90;

pub(crate) fn grants() -> [CommandGrant; 2] {
    [
        ASK.read("what disks say of their health").as_root_if_available(),
        ASK_BEHIND_BRIDGE.read("what disks behind USB bridges say of their health").as_root_if_available(),
    ]
}

pub(crate) fn ask(disk: &str) -> Command {
    ASK.with([disk]).privilege(Privilege::RootIfAvailable)
}

pub(crate) fn ask_behind_bridge(disk: &str) -> Command {
    ASK_BEHIND_BRIDGE.with([disk]).privilege(Privilege::RootIfAvailable)
}

/// What a disk said.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Smart {
    /// Whether the disk answered.
    pub(crate) is_known: bool,
    pub(crate) model: Option<String>,
    pub(crate) serial: Option<String>,
    pub(crate) temperature: Option<u64>,
    pub(crate) hours: Option<u64>,
    /// The share of what a flash disk was made for that is used.
    pub(crate) worn_pct: Option<u64>,
    /// What is wrong, the worst first. For a disk that didn't answer: why.
    pub(crate) findings: Vec<(Severity, String)>,
}

/// Whether smartctl doesn't know the USB bridge that the disk is behind.
pub(crate) fn is_behind_unknown_bridge(answer: &Value) -> bool {
    messages(answer).any(|message| message.contains("Unknown USB bridge"))
}

/// The answer as JSON, whatever the exit code is: its bits repeat what the JSON says.
pub(crate) fn answer(output: &Output) -> Option<Value> {
    serde_json::from_slice::<Value>(&output.stdout).ok().filter(|value| value.get("smartctl").is_some())
}

fn messages(answer: &Value) -> impl Iterator<Item = &str> {
    let all = answer.pointer("/smartctl/messages").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|message| message.get("string")?.as_str())
}

fn number(answer: &Value, pointer: &str) -> Option<u64> {
    answer.pointer(pointer)?.as_u64()
}

fn text(answer: &Value, pointers: &[&str]) -> Option<String> {
    pointers.iter().find_map(|pointer| Some(answer.pointer(pointer)?.as_str()?.trim().to_owned()))
}

impl Smart {
    pub(crate) fn of(answer: &Value) -> Self {
        let passed = answer.pointer("/smart_status/passed").and_then(Value::as_bool);
        let has_data =
            ["ata_smart_attributes", "nvme_smart_health_information_log", "scsi_grown_defect_list"]
                .iter()
                .any(|name| answer.get(*name).is_some());
        let worn_pct = number(answer, "/nvme_smart_health_information_log/percentage_used")
            .or_else(|| number(answer, "/scsi_percentage_used_endurance_indicator"))
            .or_else(|| number(answer, "/endurance_used/current_percent"))
            .or_else(|| ata_wear(answer));
        let mut smart = Self {
            is_known: passed.is_some() || has_data,
            model: text(answer, &["/model_name", "/scsi_model_name", "/scsi_product"]),
            serial: text(answer, &["/serial_number"]),
            temperature: number(answer, "/temperature/current").filter(|celsius| *celsius > 0),
            hours: number(answer, "/power_on_time/hours"),
            worn_pct,
            findings: Vec::new(),
        };
        if smart.is_known {
            smart.findings = findings(answer, passed, &smart);
            smart.findings.sort_by_key(|(severity, _)| std::cmp::Reverse(*severity));
        } else {
            smart.findings = vec![(Severity::Info, silence(answer))];
        }
        smart
    }
}

/// Why a disk didn't answer.
fn silence(answer: &Value) -> String {
    let said: Vec<&str> = messages(answer).collect();
    let has = |words: &str| said.iter().any(|message| message.contains(words));
    if has("STANDBY") || has("SLEEP") {
        return "sleeps, and wasn't woken".to_owned();
    }
    if has("Permission denied") {
        return "root's rights are needed".to_owned();
    }
    if has("Unknown USB bridge") {
        return "its USB bridge passes no SMART on".to_owned();
    }
    if has("Unable to detect device type") {
        return "no disk of its own: a virtual one has no SMART".to_owned();
    }
    if answer.pointer("/smart_support/available").and_then(Value::as_bool) == Some(false) {
        return "has no SMART".to_owned();
    }
    if answer.pointer("/smart_support/enabled").and_then(Value::as_bool) == Some(false) {
        return "SMART is turned off (smartctl --smart=on turns it on)".to_owned();
    }
    said.first()
        .map_or_else(|| "told nothing".to_owned(), |message| linux_sysadmin_sdk::text::of_line(message))
}

fn findings(answer: &Value, passed: Option<bool>, smart: &Smart) -> Vec<(Severity, String)> {
    let mut found = Vec::new();
    if passed == Some(false) {
        found.push((Severity::Critical, "the disk says that it is failing: replace it now".to_owned()));
    }
    ata(answer, &mut found);
    nvme(answer, &mut found);
    scsi(answer, &mut found);
    if let Some(celsius) = smart.temperature.filter(|celsius| *celsius >= HOT) {
        found.push((Severity::Warning, format!("{celsius} °C is too hot")));
    }
    match smart.worn_pct {
        Some(worn @ 100..) => {
            found.push((Severity::High, format!("worn: {worn} % of its endurance is used")))
        }
        Some(worn @ NEARLY_WORN..) => {
            found.push((Severity::Warning, format!("nearly worn: {worn} % of its endurance is used")));
        }
        _ => {}
    }
    found
}

/// The attributes whose raw values are counts of faults on all disks that have them.
const COUNTS: [(u64, Severity, &str); 6] = [
    (5, Severity::Warning, "sectors were replaced by spare ones"),
    (10, Severity::High, "times it didn't spin up at once"),
    (187, Severity::Warning, "errors couldn't be corrected"),
    (197, Severity::High, "sectors can't be read and wait to be replaced"),
    (198, Severity::High, "sectors couldn't be corrected by a test"),
    (199, Severity::Warning, "transfers over the cable went wrong: check the cable"),
];

/// Some disks put other numbers into the upper half of a raw value.
const RAW: u64 = 0xffff_ffff;

fn ata(answer: &Value, found: &mut Vec<(Severity, String)>) {
    let table = answer.pointer("/ata_smart_attributes/table").and_then(Value::as_array);
    for attribute in table.into_iter().flatten() {
        let raw = number(attribute, "/raw/value").unwrap_or(0) & RAW;
        let id = number(attribute, "/id");
        if let Some((_, severity, what)) = COUNTS.iter().find(|(of, _, _)| Some(*of) == id && raw > 0) {
            found.push((*severity, format!("{raw} {what}")));
        }
        let name = text(attribute, &["/name"]).unwrap_or_default();
        match attribute.pointer("/when_failed").and_then(Value::as_str) {
            Some("now") => found.push((Severity::High, format!("{name} is below its threshold"))),
            Some("past") => found.push((Severity::Warning, format!("{name} was below its threshold"))),
            _ => {}
        }
    }
    if let Some(count @ 1..) = number(answer, "/ata_smart_error_log/summary/count") {
        found.push((Severity::Warning, format!("{count} errors are in its log")));
    }
    // The latest test comes first.
    let latest = answer.pointer("/ata_smart_self_test_log/standard/table/0/status");
    if latest.and_then(|status| status.get("passed")).and_then(Value::as_bool) == Some(false) {
        let said = latest.and_then(|status| status.get("string")).and_then(Value::as_str).unwrap_or_default();
        found.push((Severity::High, format!("its latest self-test failed: {said}")));
    }
}

/// The wear of a SATA flash disk: the normalized value counts down from 100.
fn ata_wear(answer: &Value) -> Option<u64> {
    let table = answer.pointer("/ata_smart_attributes/table")?.as_array()?;
    let is_wear = |attribute: &&Value| {
        let name = attribute.get("name").and_then(Value::as_str).unwrap_or_default();
        ["Wear_Leveling_Count", "Media_Wearout_Indicator", "SSD_Life_Left", "Percent_Lifetime_Remain"]
            .contains(&name)
    };
    let value = number(table.iter().find(is_wear)?, "/value")?;
    (1..=100).contains(&value).then(|| 100 - value)
}

/// The bits of NVMe's critical warning (NVM Express base specification, SMART log).
const WARNINGS: [(u64, &str); 5] = [
    (1, "its spare blocks are used up"),
    (2, "it is too hot or too cold"),
    (4, "it has become unreliable"),
    (8, "it has become read-only"),
    (16, "its backup of volatile memory has failed"),
];

fn nvme(answer: &Value, found: &mut Vec<(Severity, String)>) {
    let Some(log) = answer.get("nvme_smart_health_information_log") else { return };
    let warning = number(log, "/critical_warning").unwrap_or(0);
    for (_, what) in WARNINGS.iter().filter(|(bit, _)| warning & bit != 0) {
        found.push((Severity::Critical, (*what).to_owned()));
    }
    let (spare, least) = (number(log, "/available_spare"), number(log, "/available_spare_threshold"));
    if let (Some(spare), Some(least)) = (spare, least)
        && spare < least
        && warning & 1 == 0
    {
        found.push((
            Severity::Critical,
            format!("{spare} % of its spare blocks are left, fewer than {least} %"),
        ));
    }
    if let Some(errors @ 1..) = number(log, "/media_errors") {
        found.push((Severity::High, format!("{errors} blocks couldn't be read or written")));
    }
}

fn scsi(answer: &Value, found: &mut Vec<(Severity, String)>) {
    if let Some(count @ 1..) = number(answer, "/scsi_grown_defect_list") {
        found.push((Severity::Warning, format!("{count} sectors were replaced by spare ones")));
    }
    for what in ["read", "write", "verify"] {
        let pointer = format!("/scsi_error_counter_log/{what}/total_uncorrected_errors");
        if let Some(count @ 1..) = number(answer, &pointer) {
            found.push((Severity::High, format!("{count} {what} errors couldn't be corrected")));
        }
    }
}
