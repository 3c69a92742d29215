//! `svc_create_unit` and `svc_edit_unit`: a unit file, by field or as a whole, and a daemon-reload.

use linux_sysadmin_sdk::prelude::*;

use crate::fields::{self, Texts};
use crate::installed::{self, File, Written};
use crate::unit::{self, Unit};
use crate::unit_file::{self, Setting};

/// All but the name are optional: creating needs `exec_start`, editing changes what is given.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct UnitArgs {
    /// A service without a type
    name: String,
    description: Option<String>,
    /// Absolute path first; % is a specifier
    exec_start: Option<String>,
    user: Option<String>,
    working_directory: Option<String>,
    after: Option<Texts>,
    wanted_by: Option<Texts>,
    restart: Option<String>,
    #[serde(rename = "type")]
    service_type: Option<String>,
    /// The whole file instead
    raw_content: Option<String>,
}

impl UnitArgs {
    fn service(&self) -> fields::Service<'_> {
        fields::Service {
            service_type: self.service_type.as_deref(),
            exec_start: self.exec_start.as_deref(),
            user: self.user.as_deref(),
            working_directory: self.working_directory.as_deref(),
            restart: self.restart.as_deref(),
        }
    }

    fn ignored(&self) -> Option<String> {
        fields::ignored(&[
            ("description", self.description.is_some()),
            ("exec_start", self.exec_start.is_some()),
            ("user", self.user.is_some()),
            ("working_directory", self.working_directory.is_some()),
            ("after", self.after.is_some()),
            ("wanted_by", self.wanted_by.is_some()),
            ("restart", self.restart.is_some()),
            ("type", self.service_type.is_some()),
        ])
    }

    /// In the order in which a file has them.
    fn settings(&self) -> Result<Vec<Setting>> {
        let mut settings = Vec::new();
        let description = self.description.as_deref();
        settings.extend(fields::setting(
            "Unit",
            "Description",
            "description",
            description,
            fields::anything,
        )?);
        settings.extend(fields::units("Unit", "After", "after", self.after.as_ref())?);
        settings.extend(self.service().settings()?);
        settings.extend(fields::units("Install", "WantedBy", "wanted_by", self.wanted_by.as_ref())?);
        Ok(settings)
    }

    /// Fields of a [Service] section belong in no other unit.
    fn must_fit(&self, unit: &str) -> Result<()> {
        if unit.ends_with(".service") || self.service().is_empty() {
            return Ok(());
        }
        let message = format!(
            "{unit} is no service: exec_start, user, working_directory, restart and type are a service's"
        );
        Err(Problem::validation("NOT_A_SERVICE", message).remedy("Give the whole file as raw_content"))
    }
}

pub(crate) fn svc_create_unit(args: UnitArgs, cx: &Context) -> Result<Noted<Written>> {
    let unit = installed::file_name(&args.name, ".service")?;
    let mut notes = Vec::new();
    let text = match &args.raw_content {
        Some(whole) => {
            notes.extend(args.ignored());
            fields::whole_file(whole)?.to_owned()
        }
        None => {
            if !unit.ends_with(".service") {
                let message = format!("{unit} is no service: only a service can be made from fields");
                return Err(Problem::validation("NOT_A_SERVICE", message)
                    .remedy("Give the whole file as raw_content; for a timer, timer_create"));
            }
            new_service(&unit, args.settings()?, "multi-user.target")?
        }
    };
    let file = installed::new_file(&unit, text, cx)?;
    let mut reply = file.reply();
    let change = file.write(Change::new(format!("Create the unit {unit}")));
    if apply(change, cx)?.dry_run {
        reply.would = Some("create");
    } else {
        notes.extend(installed::look_again(&mut reply, &[&file], cx));
        let name = &reply.unit;
        notes.push(format!(
            "it is neither started nor enabled: svc_start service={name}, svc_enable service={name} now=true"
        ));
    }
    Ok(Noted { data: reply, notes })
}

pub(crate) fn svc_edit_unit(args: UnitArgs, cx: &Context) -> Result<Noted<Written>> {
    let name = installed::file_name(&args.name, ".service")?;
    let mut notes = Vec::new();
    let settings = match &args.raw_content {
        Some(whole) => {
            notes.extend(args.ignored());
            fields::whole_file(whole)?;
            Vec::new()
        }
        None => {
            args.must_fit(&name)?;
            args.settings()?
        }
    };
    let unit = unit::known(&name, cx)?;
    let file = edited(&unit, &settings, args.raw_content.as_deref(), cx)?;
    let mut reply = file.reply();
    if file.is_unchanged() {
        return Ok(unchanged(reply, &unit, notes));
    }
    let change = file.write(Change::new(format!("Edit the unit {}", unit.id)));
    if apply(change, cx)?.dry_run {
        reply.would = Some("edit");
    } else {
        notes.extend(installed::look_again(&mut reply, &[&file], cx));
        if unit.is_running() {
            notes.push(format!(
                "it runs as before until it is restarted: svc_restart service={}",
                unit.short()
            ));
        }
    }
    notes.extend(beside(&unit, &file));
    Ok(Noted { data: reply, notes })
}

/// A service's file. Without a wish it is wanted by `wanted_by`; an empty one is wanted by nothing.
pub(crate) fn new_service(unit: &str, mut settings: Vec<Setting>, wanted_by: &str) -> Result<String> {
    let of = |key: &str| settings.iter().find(|setting| setting.key == key);
    if of("ExecStart").is_none_or(|setting| setting.values.is_empty()) {
        let message =
            format!("exec_start is missing: expected what {unit} runs, with an absolute path in front");
        return Err(Problem::validation("MISSING_EXEC_START", message));
    }
    if of("WantedBy").is_none() && !wanted_by.is_empty() {
        settings.push(Setting::new("Install", "WantedBy", vec![wanted_by.to_owned()]));
    }
    Ok(unit_file::render(&settings))
}

/// The file of an existing unit with the settings, or with the whole text.
pub(crate) fn edited(unit: &Unit, settings: &[Setting], whole: Option<&str>, cx: &Context) -> Result<File> {
    if settings.is_empty() && whole.is_none() {
        let message =
            format!("nothing is to be changed of {}: expected a field besides name, or raw_content", unit.id);
        return Err(Problem::validation("NOTHING_TO_CHANGE", message));
    }
    if settings.iter().any(|setting| setting.key == "ExecStart" && setting.values.is_empty()) {
        return Err(Problem::validation(
            "MISSING_EXEC_START",
            "exec_start is empty: expected what the service runs",
        ));
    }
    let mut file = installed::existing_file(unit, cx)?;
    file.text = match whole {
        Some(whole) => whole.to_owned(),
        None => {
            file.is_text()?;
            unit_file::edit(&file.text, settings)?
        }
    };
    Ok(file)
}

pub(crate) fn unchanged(mut reply: Written, unit: &Unit, mut notes: Vec<String>) -> Noted<Written> {
    reply.instead_of = None;
    reply.active_state = Some(unit.active_state.clone());
    reply.enabled = Some(unit.enabled.clone()).filter(|enabled| !enabled.is_empty());
    notes.push("its file says so already: nothing was written".to_owned());
    Noted { data: reply, notes }
}

/// What else decides, or doesn't follow by itself.
pub(crate) fn beside(unit: &Unit, file: &File) -> Vec<String> {
    let mut notes = Vec::new();
    if !unit.drop_ins.is_empty() {
        notes.push(format!("drop-ins come on top of it: {}", unit.drop_ins.join(", ")));
    }
    let wanted_by = |text: &str| unit_file::values(text, "Install", "WantedBy");
    let former = file.former.as_deref().map(wanted_by).unwrap_or_default();
    if unit.enabled.starts_with("enabled") && former != wanted_by(&file.text) {
        let name = unit.short();
        notes.push(format!(
            "it stays enabled as before until it is enabled anew: svc_disable service={name}, svc_enable service={name}"
        ));
    }
    notes
}

/// The file, then a daemon-reload, and once more after an undo.
fn apply(change: Change, cx: &Context) -> Result<Applied> {
    let change = change
        .step(Step::run(installed::daemon_reload()).uninterruptible())
        .after_undo(installed::daemon_reload())
        .lock(Lock::Systemd);
    Ok(cx.apply(change)?)
}
