//! The arguments of `svc_create_unit` and `svc_edit_unit`.

use linux_sysadmin_sdk::prelude::*;

use super::arguments::{self, Texts};
use super::syntax::Setting;

/// All but the unit are optional: creating needs `exec_start`, editing changes what is given.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct UnitArgs {
    /// Unit; without a type a service
    pub(crate) service: String,
    /// In words
    description: Option<String>,
    /// Absolute path first; % is a specifier
    exec_start: Option<String>,
    /// Account it runs as
    user: Option<String>,
    /// Absolute path
    working_directory: Option<String>,
    /// Units before it
    after: Option<Texts>,
    /// Targets, as multi-user.target
    wanted_by: Option<Texts>,
    /// As on-failure
    restart: Option<String>,
    /// As oneshot
    #[serde(rename = "type")]
    service_type: Option<String>,
    /// Whole file instead
    pub(crate) raw_content: Option<String>,
}

impl UnitArgs {
    fn section(&self) -> arguments::Service<'_> {
        arguments::Service {
            service_type: self.service_type.as_deref(),
            exec_start: self.exec_start.as_deref(),
            user: self.user.as_deref(),
            working_directory: self.working_directory.as_deref(),
            restart: self.restart.as_deref(),
        }
    }

    /// A note on the fields that are ignored because the caller gives the whole file.
    pub(crate) fn ignored(&self) -> Option<String> {
        arguments::ignored(&[
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

    /// The settings, in the order in which a file has them.
    pub(crate) fn settings(&self) -> Result<Vec<Setting>> {
        let mut settings = Vec::new();
        let description = self.description.as_deref();
        settings.extend(arguments::setting(
            "Unit",
            "Description",
            "description",
            description,
            arguments::anything,
        )?);
        settings.extend(arguments::units("Unit", "After", "after", self.after.as_ref())?);
        settings.extend(self.section().settings()?);
        settings.extend(arguments::units("Install", "WantedBy", "wanted_by", self.wanted_by.as_ref())?);
        Ok(settings)
    }

    /// Refuses a service's fields for another unit, because they belong in a [Service] section.
    pub(crate) fn must_fit(&self, unit: &str) -> Result<()> {
        if unit.ends_with(".service") || self.section().is_empty() {
            return Ok(());
        }
        let message = format!(
            "{unit} is no service: exec_start, user, working_directory, restart and type are a service's"
        );
        Err(Problem::validation("NOT_A_SERVICE", message).remedy("Give the whole file as raw_content"))
    }
}
