//! `svc_edit_unit`: changes settings of a unit file, or replaces the whole file.

use linux_sysadmin_sdk::prelude::*;

use crate::systemd::unit;
use crate::unit_files::planned_file::{self, Written};
use crate::unit_files::unit_args::UnitArgs;
use crate::unit_files::{arguments, edit};

pub(crate) fn svc_edit_unit(args: UnitArgs, cx: &Context) -> Result<Noted<Written>> {
    let name = planned_file::file_name(&args.service, ".service")?;
    let mut notes = Vec::new();
    let settings = match &args.raw_content {
        Some(whole) => {
            notes.extend(args.ignored());
            arguments::whole_file(whole)?;
            Vec::new()
        }
        None => {
            args.must_fit(&name)?;
            args.settings()?
        }
    };
    let unit = unit::known(&name, cx)?;
    let file = edit::edited(&unit, &settings, args.raw_content.as_deref(), cx)?;
    let mut reply = file.reply();
    if file.is_unchanged() {
        return Ok(edit::unchanged(reply, &unit, notes));
    }
    let change = file.write(Change::new(format!("Edit the unit {}", unit.id)));
    if edit::apply(change, cx)?.dry_run {
        reply.would = Some("edit");
    } else {
        notes.extend(planned_file::look_again(&mut reply, &[&file], cx));
        if unit.is_running() {
            notes.push(format!(
                "it runs as before until it is restarted: svc_restart service={}",
                unit.short()
            ));
        }
    }
    notes.extend(edit::notes(&unit, &file));
    Ok(Noted { data: reply, notes })
}
