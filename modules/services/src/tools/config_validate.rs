//! `svc_config_validate`: has a service's own checker check the configuration on disk.

use linux_sysadmin_sdk::knowledge::config_checks::{Validated, checked, validated};
use linux_sysadmin_sdk::knowledge::config_paths::covers;
use linux_sysadmin_sdk::knowledge::{self, Profile, Validator};
use linux_sysadmin_sdk::{Category, prelude::*};

use crate::profile::command_batch::CommandBatch;
use crate::profile::service_lookup;
use crate::systemd::unit_name;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ValidateArgs {
    /// Unit or profile, as nginx
    service: String,
    /// Only this file
    path: Option<String>,
}

pub(crate) fn svc_config_validate(args: ValidateArgs, cx: &Context) -> Result<Analysis<Validated>> {
    let profile = service_lookup::profile(&args.service, cx)?;
    let checkers = checkers(&profile, args.path.as_deref())?;
    let mut batch = CommandBatch::default();
    let commands: Vec<_> =
        checkers.iter().map(|one| (*one, batch.add(knowledge::command(&one.argv, one.root)))).collect();
    let outputs = batch.run(cx);
    let checks = commands
        .into_iter()
        .map(|(one, command)| checked(one, &one.argv, one.root, outputs.of(command)))
        .collect();
    let what = format!("The configuration of {} on disk", profile.name);
    Ok(validated(profile.id, &what, checks))
}

/// All checkers of a profile, or those that read a file.
fn checkers<'a>(profile: &'a Profile, path: Option<&str>) -> Result<Vec<&'a Validator>> {
    let id = &profile.id;
    if profile.validators.is_empty() {
        let message = format!("the service {id} has no checker of its configuration");
        return Err(Problem::new("NO_CHECKER", Category::NotFound, message)
            .remedy(format!("See what its health checks say: svc_status service={id}")));
    }
    let Some(path) = path else { return Ok(profile.validators.iter().collect()) };
    if !profile.config.iter().any(|file| covers(&file.path, path)) {
        let files: Vec<&str> = profile.config.iter().map(|file| file.path.as_str()).collect();
        let message = format!("{} is no configuration of {id}", unit_name::shown(path));
        return Err(Problem::validation("NOT_ITS_CONFIGURATION", message)
            .remedy(format!("Its configuration: {}", files.join(", "))));
    }
    let reads = |one: &&Validator| one.covers.is_empty() || one.covers.iter().any(|own| covers(own, path));
    let found: Vec<_> = profile.validators.iter().filter(reads).collect();
    if found.is_empty() {
        let message = format!("no checker of {id} reads {path}");
        return Err(Problem::new("NO_CHECKER", Category::NotFound, message));
    }
    Ok(found)
}
