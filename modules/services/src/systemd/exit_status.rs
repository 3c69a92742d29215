//! How a unit ended: whether it failed, and its main process's end in words.

use super::properties::Properties;

/// Exit codes by which systemd says why it couldn't start a process (systemd.exec(5)).
const EXIT_CODES: [(u64, &str); 9] = [
    (200, "its working directory can't be entered"),
    (203, "its program can't be run"),
    (209, "its standard output can't be opened"),
    (216, "its group doesn't exist"),
    (217, "its account doesn't exist"),
    (226, "a path of its sandbox isn't there, or the sandbox can't be made"),
    (233, "its runtime directory can't be made"),
    (238, "its state directory can't be made"),
    (240, "its log directory can't be made"),
];

/// Whether a unit's last run ended badly, and none has begun since.
pub(crate) fn has_failed(unit: &Properties<'_>) -> bool {
    unit.text("ActiveState") == Some("failed") || unit.text("SubState") == Some("auto-restart")
}

/// What systemd means by an exit code of its own.
pub(crate) fn exit_code_means(code: u64) -> Option<&'static str> {
    EXIT_CODES.iter().find(|(known, _)| *known == code).map(|(_, means)| *means)
}

/// The exit code or the signal of a main process that ended badly. `ExecMainCode` is `si_code` of waitid(2): 1 exited,
/// 2 killed, 3 dumped core.
pub(crate) fn exit_status(unit: &Properties<'_>) -> (Option<u64>, Option<String>) {
    const SIGNALS: [(u64, &str); 11] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (15, "SIGTERM"),
    ];
    let status = unit.number("ExecMainStatus").filter(|status| *status != 0);
    match (unit.number("ExecMainCode"), status) {
        (Some(1), status) => (status, None),
        (Some(2 | 3), Some(signal)) => {
            let name = SIGNALS.iter().find(|(number, _)| *number == signal).map(|(_, name)| name.to_string());
            (None, Some(name.unwrap_or_else(|| format!("signal {signal}"))))
        }
        _ => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systemd::properties;

    #[test]
    fn how_a_process_ended_is_a_code_or_a_signal() {
        let table = [
            ("ExecMainCode=1\nExecMainStatus=203", Some(203), None),
            ("ExecMainCode=1\nExecMainStatus=0", None, None),
            ("ExecMainCode=2\nExecMainStatus=11", None, Some("SIGSEGV")),
            ("ExecMainCode=3\nExecMainStatus=6", None, Some("SIGABRT")),
            ("ExecMainCode=2\nExecMainStatus=34", None, Some("signal 34")),
            ("ExecMainCode=0\nExecMainStatus=0", None, None),
            ("ExecMainCode=exited", None, None),
            ("", None, None),
        ];
        for (text, code, signal) in table {
            let text = format!("Id=a.service\n{text}");
            assert_eq!(
                exit_status(&properties::parse(&text)[0]),
                (code, signal.map(str::to_owned)),
                "{text}"
            );
        }
    }
}
