//! The part of a plan that changes fstab, and what is said of fstab after it.

use linux_sysadmin_sdk::prelude::*;

use super::fstab::{self, Table};
use super::{units, validate, verify};

/// Adds the steps that write fstab and let systemd read it. findmnt checks the new file first, unless the file has errors
/// already: they would count as new ones.
pub(crate) fn with_fstab(change: Change, contents: Vec<u8>, cx: &Context) -> Change {
    let write = Step::write(fstab::PATH, contents);
    let is_clean = cx.run(verify::command()).is_ok_and(|output| output.exit_code == 0);
    let change = change.lock(Lock::File(fstab::PATH.to_owned()));
    let change = match is_clean {
        true => change.step(write.validate(verify::of_staged())),
        false => change.step(write).warning(
            "fstab has errors already, so that findmnt can't check the change: fstab_validate tells them",
        ),
    };
    match units::reload(cx) {
        // systemd reads the former file again after an undo.
        Some(reload) => change.step(Step::run(reload.clone())).after_undo(reload),
        None => change,
    }
}

/// A note where fstab has errors after the change.
pub(crate) fn findings(cx: &Context) -> Option<String> {
    let table = Table::read(cx).ok()?;
    let found = validate::findings(&table, cx);
    let errors = found.iter().filter(|finding| finding.severity == Severity::High).count();
    let first = found.first().filter(|_| errors > 0)?;
    let line = first.line.map(|line| format!(" in line {line}")).unwrap_or_default();
    Some(format!("fstab_validate tells {errors} errors, the first one{line}: {}", first.message))
}
