//! Limits on what a unit may take: how a caller gives them, and how systemd tells them, with what the unit takes now.

use std::collections::BTreeMap;

use linux_sysadmin_sdk::prelude::*;
use schemars::{Schema, SchemaGenerator};

use super::arguments;
use super::syntax::Setting;
use crate::systemd::properties::Properties;
use crate::systemd::{time, unit_name};

/// The smallest limit of memory that is taken, in bytes. Less is a number whose unit was forgotten.
const LEAST_MEMORY: u64 = 1 << 20;

/// A limit as a caller gives it.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Amount {
    Number(u64),
    Text(String),
}

impl JsonSchema for Amount {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Amount".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": ["string", "integer"]})
    }
}

/// A limit that the tools set.
pub(crate) struct Limit {
    /// The key in a unit file.
    pub(crate) key: &'static str,
    /// The argument of the tool.
    pub(crate) field: &'static str,
    check: fn(&str) -> std::result::Result<(), &'static str>,
}

pub(crate) const LIMITS: [Limit; 7] = [
    Limit { key: "MemoryMax", field: "memory_max", check: memory },
    Limit { key: "MemoryHigh", field: "memory_high", check: memory },
    Limit { key: "CPUQuota", field: "cpu_quota", check: quota },
    Limit { key: "CPUWeight", field: "cpu_weight", check: weight_or_idle },
    Limit { key: "IOWeight", field: "io_weight", check: weight },
    Limit { key: "TasksMax", field: "tasks_max", check: tasks },
    Limit { key: "LimitNOFILE", field: "limit_nofile", check: files },
];

/// The section of a unit's limits.
pub(crate) fn section(unit: &str) -> Result<&'static str> {
    let (_, suffix) = unit_name::split(unit);
    match suffix {
        ".service" => Ok("Service"),
        ".socket" => Ok("Socket"),
        ".mount" => Ok("Mount"),
        ".swap" => Ok("Swap"),
        ".slice" => Ok("Slice"),
        _ => {
            let message =
                format!("{unit} has no limits: expected a .service, .socket, .mount, .swap or .slice");
            Err(Problem::validation("INVALID_UNIT_TYPE", message))
        }
    }
}

/// The setting of a limit. Without a value, or with an empty one, it removes the limit.
pub(crate) fn setting(section: &'static str, limit: &Limit, value: Option<&Amount>) -> Result<Setting> {
    let value = match value {
        None => String::new(),
        Some(Amount::Number(number)) => number.to_string(),
        Some(Amount::Text(text)) => text.clone(),
    };
    if section == "Slice" && limit.key.starts_with("Limit") && !value.is_empty() {
        let message = format!("{} is no setting of a slice, which runs nothing itself", limit.key);
        return Err(Problem::validation("INVALID_VALUE", message));
    }
    let setting = arguments::setting(section, limit.key, limit.field, Some(&value), limit.check)?;
    Ok(setting.unwrap_or_else(|| Setting::new(section, limit.key, Vec::new())))
}

fn memory(value: &str) -> std::result::Result<(), &'static str> {
    const EXPECTED: &str =
        "an amount from 1M on with its unit, as 512M or 2G, a percentage of the memory, or infinity";
    let is_enough = || bytes(value).is_some_and(|bytes| bytes >= LEAST_MEMORY);
    if percent(value, 100.0) || value == "infinity" || is_enough() { Ok(()) } else { Err(EXPECTED) }
}

fn quota(value: &str) -> std::result::Result<(), &'static str> {
    if percent(value, 1e6) { Ok(()) } else { Err("a percentage of one CPU, as 50% or 150%") }
}

fn weight(value: &str) -> std::result::Result<(), &'static str> {
    let is_weight = number(value).is_some_and(|weight| (1..=10_000).contains(&weight));
    if is_weight { Ok(()) } else { Err("1 to 10000, where 100 is the default") }
}

fn weight_or_idle(value: &str) -> std::result::Result<(), &'static str> {
    if value == "idle" {
        Ok(())
    } else {
        weight(value).map_err(|_| "1 to 10000, where 100 is the default, or idle")
    }
}

fn tasks(value: &str) -> std::result::Result<(), &'static str> {
    let is_count = number(value).is_some_and(|count| count > 0);
    let is_valid = is_count || percent(value, 100.0) || value == "infinity";
    if is_valid {
        Ok(())
    } else {
        Err("a number of tasks from 1 on, a percentage of the machine's, or infinity")
    }
}

fn files(value: &str) -> std::result::Result<(), &'static str> {
    const EXPECTED: &str =
        "a number of files from 16 on, SOFT:HARD with the soft one at most the hard one, or infinity";
    let limit =
        |text: &str| if text == "infinity" { Some(u64::MAX) } else { number(text).filter(|n| *n >= 16) };
    let (soft, hard) = value.split_once(':').unwrap_or((value, value));
    match (limit(soft), limit(hard)) {
        (Some(soft), Some(hard)) if soft <= hard => Ok(()),
        _ => Err(EXPECTED),
    }
}

fn number(value: &str) -> Option<u64> {
    let is_plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    value.parse().ok().filter(|_| is_plain)
}

fn decimal(value: &str) -> Option<f64> {
    let is_plain = value.starts_with(|c: char| c.is_ascii_digit())
        && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    value.parse().ok().filter(|_| is_plain)
}

/// Says whether it is a percentage above 0 with at most two decimals, as systemd reads it.
fn percent(value: &str, most: f64) -> bool {
    let Some(number) = value.strip_suffix('%') else { return false };
    let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    decimals <= 2 && decimal(number).is_some_and(|number| number > 0.0 && number <= most)
}

/// An amount of memory in bytes, with a unit to the base of 1024.
fn bytes(value: &str) -> Option<u64> {
    const UNITS: [(char, u32); 5] = [('B', 0), ('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let unit = UNITS.iter().find_map(|(unit, bits)| Some((value.strip_suffix(*unit)?, *bits)));
    let (digits, bits) = unit.unwrap_or((value, 0));
    let bytes = decimal(digits.trim_end())? * 2f64.powi(i32::try_from(bits).ok()?);
    (bytes < 2f64.powi(63)).then_some(bytes as u64)
}

/// A limit as systemd tells it.
#[derive(Clone, Debug, Serialize, PartialEq)]
#[serde(untagged)]
pub(crate) enum Told {
    Number(u64),
    Text(String),
}

/// A limit in effect, and what the unit takes now of what it limits.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub(crate) struct InEffect {
    limit: Told,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<u64>,
}

/// The limits in effect by their keys, memory in bytes. One that is infinite is left out, and so is one that the unit's
/// files don't set and of which it isn't known what the unit takes.
pub(crate) fn in_effect(
    unit: &Properties<'_>,
    open_files: Option<u64>,
    is_set: impl Fn(&str) -> bool,
) -> BTreeMap<&'static str, InEffect> {
    let told = |limit: &Limit| -> Option<InEffect> {
        let used = used(limit.key, unit, open_files);
        let limit = told(limit.key, unit).filter(|_| used.is_some() || is_set(limit.key))?;
        Some(InEffect { limit, used })
    };
    LIMITS.iter().filter_map(|limit| Some((limit.key, told(limit)?))).collect()
}

/// The amount that the unit takes now of what the key limits.
pub(crate) fn used(key: &str, unit: &Properties<'_>, open_files: Option<u64>) -> Option<u64> {
    match key {
        "MemoryMax" | "MemoryHigh" => unit.number("MemoryCurrent"),
        "TasksMax" => unit.number("TasksCurrent"),
        "LimitNOFILE" => open_files,
        _ => None,
    }
}

fn told(key: &str, unit: &Properties<'_>) -> Option<Told> {
    match key {
        "CPUQuota" => {
            let share = time::span(unit.text("CPUQuotaPerSecUSec")?)? as f64 / 1e4;
            Some(Told::Text(format!("{share}%")))
        }
        "LimitNOFILE" => match (unit.number("LimitNOFILESoft"), unit.number(key)) {
            (Some(soft), Some(hard)) if soft != hard => Some(Told::Text(format!("{soft}:{hard}"))),
            (Some(soft), None) => Some(Told::Text(format!("{soft}:infinity"))),
            (_, hard) => hard.map(Told::Number),
        },
        "CPUWeight" if unit.text(key) == Some("idle") => Some(Told::Text("idle".to_owned())),
        _ => unit.number(key).map(Told::Number),
    }
}

/// The number that a value stands for, in the unit of what is used of it. None where only systemd knows it, as for a
/// percentage of the machine's memory.
pub(crate) fn amount(key: &str, value: &str) -> Option<u64> {
    if value == "infinity" {
        return Some(u64::MAX);
    }
    match key {
        "MemoryMax" | "MemoryHigh" => bytes(value),
        "LimitNOFILE" => amount("", value.split_once(':').map_or(value, |(soft, _)| soft)),
        _ => number(value),
    }
}

/// The part that a percentage is of a whole.
pub(crate) fn share(value: &str, whole: u64) -> Option<u64> {
    Some((decimal(value.strip_suffix('%')?)? / 100.0 * whole as f64) as u64)
}

/// Says whether the limit in effect is the one that was written. None where only systemd knows what it stands for.
pub(crate) fn holds(key: &str, value: &str, unit: &Properties<'_>) -> Option<bool> {
    let told = told(key, unit);
    let is = |expected: Told| Some(told.as_ref() == Some(&expected));
    match key {
        "CPUQuota" => {
            let wanted = decimal(value.strip_suffix('%')?)? * 1e4;
            let share = unit.text("CPUQuotaPerSecUSec").and_then(time::span).unwrap_or_default() as f64;
            // systemd prints it in milliseconds where it is a long one.
            Some((wanted - share).abs() <= 1e3)
        }
        _ if value == "infinity" => Some(told.is_none()),
        "CPUWeight" if value == "idle" => is(Told::Text(value.to_owned())),
        "LimitNOFILE" => match value.split_once(':') {
            Some((soft, hard)) if soft == hard => is(Told::Number(number(hard)?)),
            Some(_) => is(Told::Text(value.to_owned())),
            None => is(Told::Number(number(value)?)),
        },
        _ => is(Told::Number(amount(key, value)?)),
    }
}

/// The words for a limit in effect in a sentence.
pub(crate) fn in_words(key: &str, unit: &Properties<'_>) -> String {
    match told(key, unit) {
        Some(Told::Number(number)) => number.to_string(),
        Some(Told::Text(text)) => text,
        None => "infinity".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::systemd::properties;

    #[test]
    fn a_value_is_one_that_systemd_takes_and_that_makes_sense() {
        let table: [(&str, &[&str], &[&str]); 6] = [
            (
                "MemoryMax",
                &["2G", "512M", "1.5G", "1048576", "10%", "100%", "infinity", "4T", ""],
                &[
                    "2", "0", "512K", "-1G", "2GB", "2Gi", "200%", "0%", "1e9", "max", "2 G B", ".5G",
                    "9999999T", "a\nb",
                ],
            ),
            (
                "CPUQuota",
                &["50%", "150%", "33.33%", "1000%"],
                &["50", "0%", "infinity", "1.234%", "-5%", "%"],
            ),
            ("CPUWeight", &["1", "10000", "idle"], &["0", "10001", "50%", "Idle"]),
            ("IOWeight", &["100"], &["idle", "0"]),
            (
                "TasksMax",
                &["1", "4915", "10%", "infinity"],
                &["0", "200%", "1.5", "1K", "18446744073709551616"],
            ),
            (
                "LimitNOFILE",
                &["65536", "1024:4096", "infinity", "1024:infinity"],
                &["0", "3", "4096:1024", "1K", ":", "1:2:3"],
            ),
        ];
        for (key, good, bad) in table {
            let limit = LIMITS.iter().find(|limit| limit.key == key).unwrap();
            let of = |value: &str| setting("Service", limit, Some(&Amount::Text(value.to_owned())));
            for value in good {
                assert!(of(value).is_ok(), "{key} {value}");
            }
            for value in bad {
                let problem = of(value).unwrap_err();
                assert_eq!(problem.code, "INVALID_VALUE", "{key} {value}");
                assert!(problem.message.starts_with(&format!("{} is ", limit.field)), "{}", problem.message);
                assert!(problem.message.contains("expected"), "{}", problem.message);
            }
        }
    }

    #[test]
    fn a_limit_is_of_a_unit_that_runs_something_or_groups_it() {
        assert_eq!(
            ["a.service", "a.slice", "m.mount"].map(|unit| section(unit).unwrap()),
            ["Service", "Slice", "Mount"]
        );
        for unit in ["a.timer", "a.target", "a.path", "session-1.scope", "a.device"] {
            assert_eq!(section(unit).unwrap_err().code, "INVALID_UNIT_TYPE", "{unit}");
        }
        let files = LIMITS.iter().find(|limit| limit.key == "LimitNOFILE").unwrap();
        assert_eq!(setting("Slice", files, Some(&Amount::Number(1024))).unwrap_err().code, "INVALID_VALUE");
    }

    #[test]
    fn what_systemd_tells_is_held_against_what_was_written() {
        // Recorded from systemctl 252: the values of a unit with MemoryMax=2G, CPUQuota=150%, TasksMax=10% and so on.
        let shown = "MemoryMax=2147483648\nMemoryHigh=infinity\nCPUQuotaPerSecUSec=1.500000s\nTasksMax=19273\n\
            LimitNOFILE=2000\nLimitNOFILESoft=1000\nCPUWeight=idle\nIOWeight=[not set]";
        let units = properties::parse(shown);
        let table = [
            ("MemoryMax", "2G", Some(true)),
            ("MemoryMax", "2048M", Some(true)),
            ("MemoryMax", "1G", Some(false)),
            ("MemoryMax", "10%", None),
            ("MemoryMax", "infinity", Some(false)),
            ("MemoryHigh", "infinity", Some(true)),
            ("CPUQuota", "150%", Some(true)),
            ("CPUQuota", "50%", Some(false)),
            ("TasksMax", "19273", Some(true)),
            ("LimitNOFILE", "1000:2000", Some(true)),
            ("LimitNOFILE", "2000", Some(false)),
            ("CPUWeight", "idle", Some(true)),
            ("CPUWeight", "50", Some(false)),
            ("IOWeight", "50", Some(false)),
        ];
        for (key, value, expected) in table {
            assert_eq!(holds(key, value, &units[0]), expected, "{key} {value}");
        }
        let endless = properties::parse("LimitNOFILE=infinity\nLimitNOFILESoft=1024");
        assert_eq!(holds("LimitNOFILE", "1024:infinity", &endless[0]), Some(true));
        assert_eq!(holds("LimitNOFILE", "infinity", &endless[0]), Some(false));
        assert_eq!(in_words("LimitNOFILE", &endless[0]), "1024:infinity");
        for (span, expected) in
            [("500ms", "50%"), ("333ms", "33.3%"), ("10s", "1000%"), ("1min 40s", "10000%")]
        {
            let text = format!("CPUQuotaPerSecUSec={span}");
            assert_eq!(told("CPUQuota", &properties::parse(&text)[0]), Some(Told::Text(expected.to_owned())));
        }
    }

    #[test]
    fn limits_without_anything_to_tell_are_left_out() {
        let shown = "MemoryCurrent=50541363\nMemoryMax=infinity\nMemoryHigh=67108864\nTasksMax=4915\nTasksCurrent=[not set]\n\
            LimitNOFILE=524288\nLimitNOFILESoft=1024\nCPUWeight=[not set]";
        let units = properties::parse(shown);
        let said = |set: &[&str], open: Option<u64>| {
            serde_json::to_value(in_effect(&units[0], open, |key| set.contains(&key))).unwrap()
        };
        let memory = serde_json::json!({"limit": 67_108_864, "used": 50_541_363});
        assert_eq!(said(&[], None), serde_json::json!({"MemoryHigh": memory}));
        let set = said(&["TasksMax", "LimitNOFILE"], Some(7));
        let files = serde_json::json!({"limit": "1024:524288", "used": 7});
        assert_eq!(
            set,
            serde_json::json!({"MemoryHigh": memory, "TasksMax": {"limit": 4915}, "LimitNOFILE": files})
        );
    }
}
