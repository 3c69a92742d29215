//! The command lines of systemd's programs, and parsers of what `systemctl list-*` prints. A grant and its uses share
//! one constant.
//!
//! Loaded units are read by `systemctl show`, which prints the same on old and new versions; some versions that are
//! still in use have no JSON. `show` prints times in its own time zone, hence `TZ=UTC`: `--timestamp=unix` is an error
//! before 251.

use linux_sysadmin_sdk::{Category, DurationCategory, Output, prelude::*};

/// Shows every service in the manager's memory. Without `--all`, a glob leaves inactive units out.
pub(crate) const LOADED_SERVICES: CommandLine = CommandLine::new(concat!(
    "systemctl show --all --property=Id,Names,Description,LoadState,ActiveState,SubState,UnitFileState,Result,",
    "NRestarts,ExecMainCode,ExecMainStatus -- '*.service'"
));

macro_rules! list_unit_files {
    ($which:literal) => {
        CommandLine::new(concat!(
            "systemctl list-unit-files --full --plain --no-legend --no-pager --output=json -- ",
            $which
        ))
    };
}

/// Lists every installed service, loaded or not. systemd looks where each unit file is linked, which takes a millisecond or
/// more for each, so only the files that are asked for are read. An older systemctl accepts `--output=json` and prints no
/// JSON; `--plain --no-legend` then makes lines of words.
pub(crate) const SERVICE_FILES: CommandLine = list_unit_files!("'*.service'");

/// Lists every installed timer, loaded or not.
pub(crate) const TIMER_FILES: CommandLine = list_unit_files!("'*.timer'");

/// Lists the unit file of one unit. It exits with 1 where there is none.
pub(crate) const UNIT_FILE: CommandLine = list_unit_files!("<unit>");

/// Lists the units in the manager's memory, which is fast even where there are thousands of unit files.
pub(crate) const LOADED_UNITS: CommandLine =
    CommandLine::new("systemctl list-units --all --plain --no-legend --full --no-pager --output=json");

/// Shows one unit, of any type.
pub(crate) const STATUS: CommandLine = CommandLine::new(concat!(
    "TZ=UTC systemctl show --property=Id,Names,Description,LoadState,LoadError,ActiveState,SubState,UnitFileState,",
    "FragmentPath,SourcePath,DropInPaths,NeedDaemonReload,Type,MainPID,User,Restart,NRestarts,Result,ExecMainCode,",
    "ExecMainStatus,StatusText,MemoryCurrent,MemoryPeak,MemoryMax,TasksCurrent,CPUUsageNSec,ActiveEnterTimestamp,",
    "InactiveEnterTimestamp,StateChangeTimestamp,ConditionResult,ConditionTimestamp,AssertResult,AssertTimestamp,",
    "Triggers,TriggeredBy,Listen,Where,What,ExecMainStartTimestamp,RequiredBy,RequisiteOf,BoundBy,ConsistsOf,WantedBy,",
    "InvocationID,ExecStart -- <unit>"
));

/// Shows what tells why a unit doesn't work.
pub(crate) const TROUBLE: CommandLine = CommandLine::new(concat!(
    "TZ=UTC systemctl show --property=Id,LoadState,LoadError,ActiveState,SubState,FragmentPath,MainPID,User,NRestarts,",
    "Result,ExecMainCode,ExecMainStatus,ExecStart,MemoryCurrent,MemoryMax,TasksCurrent,TasksMax,ConditionResult,",
    "ConditionTimestamp,AssertResult,AssertTimestamp,Requires,Requisite,BindsTo,After,InvocationID -- <unit>"
));

/// Shows all of a unit, of any type. systemctl asks for all of it in any case, and prints what isn't empty; the answer of the
/// tool names this command, and a list of properties would be longer than many units.
pub(crate) const TEXT: CommandLine = CommandLine::new("systemctl show -- <unit>");

/// Shows when systemd last looked which unit files there are. The first is empty before the first reload.
pub(crate) const LOADED_AT: CommandLine =
    CommandLine::new("TZ=UTC systemctl show --property=UnitsLoadTimestamp,UnitsLoadFinishTimestamp");

/// Shows which units a unit needs, and which units want it.
pub(crate) const AROUND: CommandLine =
    CommandLine::new("systemctl show --property=Id,Requires,Requisite,BindsTo,WantedBy -- <unit>");

/// Shows whether units run.
pub(crate) const ACTIVE: CommandLine =
    CommandLine::new("systemctl show --property=Id,ActiveState -- <unit>...");

macro_rules! show_timers {
    ($flags:literal, $units:literal) => {
        CommandLine::new(concat!(
            "TZ=UTC systemctl show ",
            $flags,
            "--property=Id,Unit,LoadState,ActiveState,SubState,UnitFileState,Result,TimersCalendar,TimersMonotonic,",
            "OnClockChange,OnTimezoneChange,NextElapseUSecRealtime,NextElapseUSecMonotonic,LastTriggerUSec,Persistent,",
            "RandomizedDelayUSec,StateChangeTimestamp,StateChangeTimestampMonotonic -- ",
            $units
        ))
    };
}

/// Shows every timer in the manager's memory.
pub(crate) const LOADED_TIMERS: CommandLine = show_timers!("--all ", "'*.timer'");

/// Shows timers by name.
pub(crate) const TIMERS: CommandLine = show_timers!("", "<unit>...");

/// Shows the units that timers activate.
pub(crate) const ACTIVATED: CommandLine =
    CommandLine::new("systemctl show --property=Id,LoadState,Result -- <unit>...");

/// Lists when timers elapse. Only `list-timers` exactly converts a time of the monotonic clock into a time of day. Old
/// versions print no JSON.
pub(crate) const ELAPSES: CommandLine =
    CommandLine::new("systemctl list-timers --all --full --no-legend --no-pager --output=json");

/// Prints the target's clock, in seconds since the epoch.
pub(crate) const CLOCK: CommandLine = CommandLine::new("date +%s");

/// Shows the properties that a change depends on. An older systemd leaves out the ones that it doesn't have.
pub(crate) const STATE: CommandLine = CommandLine::new(concat!(
    "systemctl show --property=Id,LoadState,LoadError,ActiveState,SubState,UnitFileState,Type,CanStart,CanStop,",
    "CanReload,FragmentPath,SourcePath,DropInPaths,TriggeredBy,RequiredBy,RequisiteOf,BoundBy,ConsistsOf,",
    "PropagatesStopTo,Conflicts,ConflictedBy -- <unit>..."
));

/// Shows a unit after a change.
pub(crate) const AFTERWARDS: CommandLine = CommandLine::new(concat!(
    "TZ=UTC systemctl show --property=Id,LoadState,LoadError,ActiveState,SubState,UnitFileState,Type,Result,",
    "ExecMainCode,ExecMainStatus,ConditionResult,ConditionTimestamp,InvocationID -- <unit>"
));

pub(crate) const START: CommandLine = CommandLine::new("systemctl start -- <unit>");
pub(crate) const STOP: CommandLine = CommandLine::new("systemctl stop -- <unit>");
pub(crate) const RESTART: CommandLine = CommandLine::new("systemctl restart -- <unit>");
pub(crate) const RELOAD: CommandLine = CommandLine::new("systemctl reload -- <unit>");
pub(crate) const ENABLE: CommandLine = CommandLine::new("systemctl enable -- <unit>");
pub(crate) const DISABLE: CommandLine = CommandLine::new("systemctl disable -- <unit>");
pub(crate) const MASK: CommandLine = CommandLine::new("systemctl mask -- <unit>");
pub(crate) const MASK_RUNTIME: CommandLine = CommandLine::new("systemctl mask --runtime -- <unit>");
pub(crate) const UNMASK: CommandLine = CommandLine::new("systemctl unmask -- <unit>");
pub(crate) const UNMASK_RUNTIME: CommandLine = CommandLine::new("systemctl unmask --runtime -- <unit>");
pub(crate) const DAEMON_RELOAD: CommandLine = CommandLine::new("systemctl daemon-reload");

/// Checks that a unit file can be loaded. For what systemd merely ignores, such as an unknown key, it prints a line and
/// exits with 0. `--recursive-errors` is an error before 250.
pub(crate) const VERIFY: CommandLine =
    CommandLine::new("systemd-analyze verify --man=no -- <path:/etc/systemd/system/*>");

/// Checks a calendar expression, and prints when it elapses in the target's time zone.
pub(crate) const CALENDAR: CommandLine =
    CommandLine::new("systemd-analyze calendar --iterations=3 -- <text>");

/// The command with which systemd reads all unit files again, as root.
pub(crate) fn daemon_reload() -> Command {
    DAEMON_RELOAD.command().as_root().duration(DurationCategory::Normal)
}

/// The stdout of a command that succeeded, or the reason why it failed.
pub(crate) fn answer(output: Result<Output>) -> Result<String> {
    const UNREACHABLE: [&str; 4] = [
        "Failed to connect to bus",
        "Failed to connect to system scope bus",
        "Failed to get D-Bus",
        "not been booted with",
    ];
    let output = output?;
    let said = output.error_text();
    if output.exit_code != 0 && UNREACHABLE.iter().any(|sign| said.contains(sign)) {
        let message = format!("the service manager does not answer: {}", said.replace('\n', "; "));
        return Err(Problem::new("SERVICE_MANAGER_UNREACHABLE", Category::State, message)
            .remedy("Check that process 1 is systemd: ps -p 1 -o comm=")
            .remedy("Check that the account may use the system bus: systemctl is-system-running"));
    }
    Ok(output.success("systemctl")?.text().into_owned())
}

/// Reads what [`CLOCK`] prints. None where the command failed.
pub(crate) fn clock(output: Result<Output>) -> Option<i64> {
    output.ok().filter(|output| output.exit_code == 0)?.text().trim().parse().ok()
}

/// An installed unit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnitFile {
    pub(crate) name: String,
    /// Such as `enabled`, `static`, `generated` or `masked`.
    pub(crate) state: String,
}

impl UnitFile {
    /// True for what can't be started by this name: a template needs an instance's name, and an alias is another unit's.
    pub(crate) fn is_template_or_alias(&self) -> bool {
        self.name.contains("@.") || self.state == "alias"
    }
}

/// The installed units. Where the command failed (it is slow with very many unit files), none, and a note that says so.
pub(crate) fn installed(output: Result<Output>) -> (Vec<UnitFile>, Option<String>) {
    // systemctl ends with 1 where no unit file has such a name, and says nothing.
    let has_none = |output: &Output| {
        output.exit_code == 1 && output.stderr.is_empty() && matches!(output.text().trim(), "" | "[]")
    };
    if output.as_ref().is_ok_and(has_none) {
        return (Vec::new(), None);
    }
    match answer(output).and_then(|text| unit_files(&text)) {
        Ok(files) => (files, None),
        Err(problem) => {
            let why = problem.message.replace('\n', "; ");
            (Vec::new(), Some(format!("units that are installed but not loaded are missing: {why}")))
        }
    }
}

/// Reads what `systemctl list-unit-files` prints, as JSON or as words.
pub(crate) fn unit_files(text: &str) -> Result<Vec<UnitFile>> {
    #[derive(Deserialize)]
    struct Row {
        unit_file: String,
        state: Option<String>,
    }
    if text.starts_with('[') {
        let rows: Vec<Row> =
            serde_json::from_str(text).map_err(|_| Problem::unexpected("systemctl list-unit-files", text))?;
        return Ok(rows
            .into_iter()
            .map(|row| UnitFile { name: row.unit_file, state: row.state.unwrap_or_default() })
            .collect());
    }
    let words = text.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            // Unit names and states hold no blanks. A third word is the vendor's preset.
            (Some(name), Some(state)) if name.contains('.') => {
                Ok(UnitFile { name: name.to_owned(), state: state.to_owned() })
            }
            _ => Err(Problem::unexpected("systemctl list-unit-files", line)),
        }
    });
    words.collect()
}

/// Reads the names that [`LOADED_UNITS`] prints, as JSON or as words, without the units that nothing defines.
pub(crate) fn loaded_units(text: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Row {
        unit: String,
        load: Option<String>,
    }
    if text.starts_with('[') {
        let rows: Vec<Row> = serde_json::from_str(text).unwrap_or_default();
        let defined = rows.into_iter().filter(|row| row.load.as_deref() != Some("not-found"));
        return defined.map(|row| row.unit).collect();
    }
    let names = text.lines().filter_map(|line| {
        // A mark may precede the name.
        let mut words = line.split_whitespace().skip_while(|word| !word.contains('.'));
        let (name, load) = (words.next()?, words.next()?);
        (load != "not-found").then(|| name.to_owned())
    });
    names.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit;

    fn output(exit_code: i32, stdout: &str, stderr: &str) -> Result<Output> {
        Ok(testkit::output(exit_code, stdout, stderr))
    }

    #[test]
    fn a_machine_without_systemd_is_said_to_be_that() {
        // Recorded from systemctl 252 where process 1 is something else.
        let said = "System has not been booted with systemd as init system (PID 1). Can't operate.\n\
                    Failed to connect to bus: Host is down\n";
        let problem = answer(output(1, "", said)).unwrap_err();
        assert_eq!(
            (problem.code.as_str(), problem.category),
            ("SERVICE_MANAGER_UNREACHABLE", Category::State)
        );
        assert!(problem.message.contains("Host is down"), "{}", problem.message);
        assert!(!problem.message.contains('\n') && !problem.remediation.is_empty());
    }

    #[test]
    fn any_other_failure_quotes_stderr_and_a_cut_answer_is_none() {
        let problem = answer(output(1, "", "Failed to list units: Access denied\n")).unwrap_err();
        assert_eq!(problem.code, "COMMAND_FAILED");
        assert!(problem.message.ends_with("Failed to list units: Access denied"));
        let cut = output(0, "Id=a.service\n", "").map(|output| Output { truncated: true, ..output });
        assert_eq!(answer(cut).unwrap_err().code, "OUTPUT_TOO_LARGE");
    }

    #[test]
    fn unit_files_are_read_from_json_and_from_words() {
        let expected = [
            ("cron.service", "enabled"),
            ("getty@.service", "enabled"),
            ("apt-daily.timer", "masked"),
            ("x.mount", ""),
        ]
        .map(|(name, state)| UnitFile { name: name.into(), state: state.into() });
        let json = r#"[{"unit_file":"cron.service","state":"enabled","preset":"enabled"},
            {"unit_file":"getty@.service","state":"enabled"},{"unit_file":"apt-daily.timer","state":"masked","preset":null},
            {"unit_file":"x.mount","state":null,"new":[1]}]"#;
        assert_eq!(unit_files(json).unwrap(), expected);
        let words = "cron.service enabled enabled\ngetty@.service   enabled   -\n\napt-daily.timer masked\n";
        assert_eq!(unit_files(words).unwrap(), expected[..3]);
        assert_eq!(unit_files("").unwrap(), []);
        for malformed in ["[{\"unit_file\":", "[1]", "no unit here\n", "cron.service\n"] {
            assert_eq!(unit_files(malformed).unwrap_err().code, "UNEXPECTED_OUTPUT", "{malformed:?}");
        }
    }

    #[test]
    fn no_unit_file_of_a_name_is_none_and_no_failure() {
        // systemctl 252 and 257 exit with 1, with `[]` as JSON and with nothing as words.
        for none in ["[]\n", ""] {
            assert_eq!(installed(output(1, none, "")), (Vec::new(), None), "{none:?}");
        }
        for failed in [output(1, "", "Failed to list unit files: Connection timed out\n"), output(4, "", "")]
        {
            let (files, note) = installed(failed);
            assert!(files.is_empty());
            assert!(note.unwrap().starts_with("units that are installed but not loaded are missing: "));
        }
    }

    #[test]
    fn loaded_units_are_read_from_json_and_from_words() {
        let json = r#"[{"unit":"-.mount","load":"loaded","active":"active","sub":"mounted","description":"Root"},
            {"unit":"auditd.service","load":"not-found"},{"unit":"off.service","load":"masked"},{"unit":"a.timer"}]"#;
        assert_eq!(loaded_units(json), ["-.mount", "off.service", "a.timer"]);
        let words = "-.mount        loaded    active   mounted Root Mount\n● auditd.service not-found inactive dead auditd\n\
                     * off.service masked inactive dead off.service\n\n";
        assert_eq!(loaded_units(words), ["-.mount", "off.service"]);
        for none in ["", "[]", "[{\"unit\":", "[1]", "no unit here\n"] {
            assert!(loaded_units(none).is_empty(), "{none:?}");
        }
    }
}
