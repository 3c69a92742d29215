//! `svc_create_unit`: writes the file of a new unit.

use linux_sysadmin_sdk::prelude::*;

use crate::unit_files::planned_file::{self, Written};
use crate::unit_files::unit_args::UnitArgs;
use crate::unit_files::{arguments, edit};

pub(crate) fn svc_create_unit(args: UnitArgs, cx: &Context) -> Result<Noted<Written>> {
    let unit = planned_file::file_name(&args.service, ".service")?;
    let mut notes = Vec::new();
    let text = match &args.raw_content {
        Some(whole) => {
            notes.extend(args.ignored());
            arguments::whole_file(whole)?.to_owned()
        }
        None => {
            if !unit.ends_with(".service") {
                let message = format!("{unit} is no service: only a service can be made from fields");
                return Err(Problem::validation("NOT_A_SERVICE", message)
                    .remedy("Give the whole file as raw_content; for a timer, timer_create"));
            }
            edit::new_service(&unit, args.settings()?, "multi-user.target")?
        }
    };
    let file = planned_file::new_file(&unit, text, cx)?;
    let mut reply = file.reply();
    let change = file.write(Change::new(format!("Create the unit {unit}")));
    if edit::apply(change, cx)?.dry_run {
        reply.would = Some("create");
    } else {
        notes.extend(planned_file::look_again(&mut reply, &[&file], cx));
        let name = &reply.unit;
        notes.push(format!(
            "it is neither started nor enabled: svc_start service={name}, svc_enable service={name} now=true"
        ));
    }
    Ok(Noted { data: reply, notes })
}
