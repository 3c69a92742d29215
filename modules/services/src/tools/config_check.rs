//! `svc_config_check`: has a service's own checker check a text that isn't its configuration yet.

use linux_sysadmin_sdk::knowledge::config_checks::{Validated, checked, validated};
use linux_sysadmin_sdk::knowledge::{self, Candidate, Profile, Validator};
use linux_sysadmin_sdk::{Category, prelude::*};

use crate::profile::service_lookup;

/// All exit codes: whatever the checker's verdict is, the plan has not failed.
const ANY: std::ops::RangeInclusive<i32> = 0..=255;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CheckArgs {
    /// Unit or profile, as nginx
    service: String,
    /// Its whole new main file
    contents: String,
}

pub(crate) fn svc_config_check(args: CheckArgs, cx: &Context) -> Result<Analysis<Validated>> {
    let profile = service_lookup::profile(&args.service, cx)?;
    let Profile { id, name, .. } = &profile;
    let checkers = profile.validators.iter();
    let checkers: Vec<(&Validator, &Candidate)> =
        checkers.filter_map(|one| Some((one, one.candidate.as_ref()?))).collect();
    let Some((_, Candidate { path, .. })) = checkers.first() else {
        let message = format!("the service {id} has no checker of a text that isn't its configuration yet");
        return Err(Problem::new("NO_CHECKER", Category::NotFound, message)
            .remedy(format!("Check what is on disk: svc_config_validate service={id}")));
    };
    let change = Change::new(format!("Have a text checked that could be the configuration of {name}"))
        .step(Step::write(path, args.contents).mode(0o600));
    let success: Vec<i32> = ANY.collect();
    let change = checkers.iter().fold(change, |change, (_, candidate)| {
        change.step(Step::run(knowledge::command(&candidate.argv, false).as_root()).success(&success))
    });
    let change = change
        .step(Step::run(Command::new("rm").args(["--", path]).as_root()))
        .warning(format!("With root's rights, {name} may load, run or read what the text names"));
    let applied = cx.apply(change)?;
    let what = format!("The text for {name}");
    if applied.dry_run {
        let summary = format!("{what} would be checked");
        let data = Validated { profile: profile.id, would: Some("check"), valid: None, checks: Vec::new() };
        return Ok(Analysis { data, summary, severity: Severity::Info });
    }
    let outputs = applied.outputs.into_iter().map(Ok);
    let checks = checkers.iter().zip(outputs).map(|((one, candidate), output)| {
        // The checker had root's rights, and so its verdict counts even where it could not read a file.
        let mut checked = checked(one, &candidate.argv, false, &output);
        for mistake in &mut checked.errors {
            // The file has been removed, and the caller never knew its path.
            mistake.file.take_if(|file| file == path);
            mistake.message = mistake.message.replace(path, "the text");
        }
        checked
    });
    let checks = checks.collect();
    Ok(validated(profile.id, &what, checks))
}
