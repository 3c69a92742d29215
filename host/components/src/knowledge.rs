//! The knowledge interface: profiles as a module sees them, with the entries that hold for the target.

use std::sync::Arc;

use super::bindings::sysadmin::module::knowledge as guest;
use super::store::{Call, State};
use host_knowledge::{
    self as known, Candidate, Family, LoadedProfile, Profile, Status, TargetServices, holds_on,
};
use host_target::Services;

impl guest::Host for State {
    async fn find(&mut self, name: String) -> wasmtime::Result<Option<guest::Profile>> {
        let call = self.call()?;
        let knowledge = call.gate.knowledge().get();
        let Some(found) = knowledge.find(&name, &call.facts.family) else { return Ok(None) };
        let seen = call.services().await;
        call.learn(found);
        Ok(Some(profile(found, &TargetServices::new(knowledge, &call.facts.family, &seen))))
    }

    async fn detected(&mut self) -> wasmtime::Result<Vec<guest::Profile>> {
        let call = self.call()?;
        let knowledge = call.gate.knowledge().get();
        let seen = call.services().await;
        let resolved = TargetServices::new(knowledge, &call.facts.family, &seen);
        let detected = resolved.detected().map(|(found, _)| {
            call.learn(found);
            profile(found, &resolved)
        });
        Ok(detected.collect())
    }
}

impl Call {
    /// The services of the target. It is empty where the target doesn't answer, because a profile is useful without
    /// them too.
    async fn services(&self) -> Arc<Services> {
        self.target.services(false).await.unwrap_or_default()
    }
}

fn profile(found: &LoadedProfile, resolved: &TargetServices) -> guest::Profile {
    let Profile {
        id,
        name,
        summary,
        category,
        version_notes,
        units,
        processes,
        config,
        validate,
        data,
        logs,
        log_patterns,
        ports,
        provides,
        interactions,
        health,
        backup,
        troubleshooting,
        ..
    } = &found.profile;
    let (status, config_seen) = resolved.status_of(id);
    let here = |of: &Family| holds_on(of, resolved.family());
    guest::Profile {
        id: id.clone(),
        name: name.clone(),
        summary: summary.clone(),
        category: category.clone(),
        version_notes: version_notes.clone(),
        status: match status {
            Status::Active => guest::Status::Active,
            Status::Failed => guest::Status::Failed,
            Status::Inactive => guest::Status::Inactive,
            Status::Absent => guest::Status::Absent,
            Status::Unknown => guest::Status::Unknown,
        },
        config_seen,
        units: units.iter().filter(|one| here(&one.family)).map(unit).collect(),
        processes: processes.iter().filter(|one| here(&one.family)).map(|one| one.name.clone()).collect(),
        config: config.iter().filter(|one| here(&one.family)).map(config_file).collect(),
        validators: validate
            .iter()
            .filter(|one| here(&one.family))
            .map(|one| validator(one, &found.profile, resolved.family()))
            .collect(),
        data: data.iter().filter(|one| here(&one.family)).map(data_path).collect(),
        logs: logs.iter().filter(|one| here(&one.family)).filter_map(log).collect(),
        log_patterns: log_patterns.iter().map(log_pattern).collect(),
        ports: ports.iter().filter(|one| here(&one.family)).map(port).collect(),
        provides: provides.iter().map(|one| one.role.clone()).collect(),
        needs: needs(&found.profile, resolved),
        dependants: dependants(&found.profile, resolved),
        interactions: interactions.iter().map(|one| interaction(one, resolved)).collect(),
        health: health.iter().filter(|one| here(&one.family)).map(health_check).collect(),
        symptoms: troubleshooting.iter().map(|one| symptom(one, &here)).collect(),
        backup: backup.iter().filter(|one| here(&one.family)).filter_map(copied).collect(),
    }
}

fn unit(one: &known::Unit) -> guest::Unit {
    guest::Unit {
        name: one.name.clone(),
        aliases: one.aliases.clone(),
        main: one.main.0,
        reload: one.reload.0,
        optional: one.optional.0,
        what: one.what.clone(),
    }
}

fn config_file(one: &known::Config) -> guest::ConfigFile {
    let apply = one.apply.and_then(|apply| {
        Some(match apply {
            known::Apply::Reload => guest::ApplyBy::Reload,
            known::Apply::Restart => guest::ApplyBy::Restart,
            known::Apply::AtOnce => guest::ApplyBy::AtOnce,
            known::Apply::Command => guest::ApplyBy::Command(one.apply_argv.clone()?),
        })
    });
    guest::ConfigFile {
        path: one.path.clone(),
        what: one.what.clone(),
        main: one.main.0,
        optional: one.optional.0,
        generated: one.generated.0,
        apply,
    }
}

fn data_path(one: &known::Data) -> guest::DataPath {
    guest::DataPath { path: one.path.clone(), what: one.what.clone(), optional: one.optional.0 }
}

fn expectation(
    exit: Option<i32>,
    contains: &Option<String>,
    matches: &Option<String>,
    lacks: &Option<String>,
) -> guest::Expectation {
    guest::Expectation { exit, contains: contains.clone(), matches: matches.clone(), lacks: lacks.clone() }
}

fn validator(one: &known::Validator, profile: &Profile, family: &str) -> guest::Validator {
    let candidate = one.candidate.as_ref().and_then(|argv| Candidate::of(profile, argv, family));
    guest::Validator {
        argv: one.argv.clone(),
        root: one.root.0,
        what: one.what.clone(),
        covers: one.covers.clone(),
        expect: expectation(one.expect_exit, &one.expect_contains, &one.expect_matches, &one.expect_lacks),
        error: one.error.clone(),
        candidate: candidate.map(|Candidate { path, argv }| guest::Candidate { path, argv }),
    }
}

fn health_check(one: &known::HealthCheck) -> guest::HealthCheck {
    guest::HealthCheck {
        id: one.id.clone(),
        what: one.what.clone(),
        argv: one.argv.clone(),
        root: one.root.0,
        expect: expectation(one.expect_exit, &one.expect_contains, &one.expect_matches, &one.expect_lacks),
        unknown_matches: one.unknown_matches.clone(),
        sick: one.sick.clone(),
        severity: severity(one.severity),
    }
}

fn severity(severity: known::Severity) -> guest::Severity {
    match severity {
        known::Severity::Warning => guest::Severity::Warning,
        known::Severity::Error => guest::Severity::Error,
        known::Severity::Critical => guest::Severity::Critical,
    }
}

fn log(one: &known::Log) -> Option<guest::Log> {
    let source = match (&one.journal, &one.path, &one.identifier) {
        (Some(unit), ..) => guest::LogSource::Journal(unit.clone()),
        (_, Some(path), _) => guest::LogSource::Path(path.clone()),
        (_, _, Some(identifier)) => guest::LogSource::Identifier(identifier.clone()),
        _ => return None,
    };
    Some(guest::Log {
        source,
        format: match one.format {
            known::LogFormat::Journal => guest::LogFormat::Journal,
            known::LogFormat::Syslog => guest::LogFormat::Syslog,
            known::LogFormat::Common => guest::LogFormat::Common,
            known::LogFormat::Json => guest::LogFormat::Json,
            known::LogFormat::Logfmt => guest::LogFormat::Logfmt,
            known::LogFormat::Plain => guest::LogFormat::Plain,
            known::LogFormat::Other => guest::LogFormat::Other,
            known::LogFormat::Binary => guest::LogFormat::Binary,
        },
        line: one.line.clone(),
        time: one.time.clone(),
        root: one.root.0,
        optional: one.optional.0,
        what: one.what.clone(),
    })
}

fn log_pattern(one: &known::LogPattern) -> guest::LogPattern {
    guest::LogPattern {
        matches: one.matches.clone(),
        severity: severity(one.severity),
        means: one.means.clone(),
        symptom: one.symptom.clone(),
    }
}

fn port(one: &known::Port) -> guest::Port {
    guest::Port {
        first: one.port,
        last: one.to.unwrap_or(one.port),
        protocol: match one.protocol {
            known::Protocol::Tcp => guest::Protocol::Tcp,
            known::Protocol::Udp => guest::Protocol::Udp,
        },
        scope: match one.scope {
            known::Scope::Public => guest::Scope::Public,
            known::Scope::Lan => guest::Scope::Lan,
            known::Scope::Local => guest::Scope::Local,
        },
        optional: one.optional.0,
        what: one.what.clone(),
        set_by: one.set_by.clone(),
    }
}

fn owned(ids: Vec<&str>) -> Vec<String> {
    ids.into_iter().map(str::to_owned).collect()
}

fn needs(of: &Profile, resolved: &TargetServices) -> Vec<guest::Need> {
    let needs = of.requires.iter().map(|one| guest::Need {
        role: one.role.clone(),
        why: one.why.clone(),
        if_down: one.if_down.clone(),
        optional: one.optional.0,
        typical: one.typical.clone(),
        filled_by: owned(resolved.fillers(of, &one.role, &one.typical)),
    });
    needs.collect()
}

/// The dependants that the profile names, and the profiles that name this one as their need.
fn dependants(of: &Profile, resolved: &TargetServices) -> Vec<guest::Dependant> {
    let declared = of.required_by.iter().map(|one| guest::Dependant {
        role: one.role.clone(),
        why: one.why.clone(),
        if_down: one.if_down.clone(),
        profiles: owned(resolved.of_role(of, &one.role)),
    });
    let others = resolved.dependants(of).into_iter().map(|(other, need)| guest::Dependant {
        role: need.role.clone(),
        why: need.why.clone(),
        if_down: need.if_down.clone(),
        profiles: vec![other.id.clone()],
    });
    declared.chain(others).collect()
}

fn interaction(one: &known::Interaction, resolved: &TargetServices) -> guest::Interaction {
    guest::Interaction {
        with: one.with.clone(),
        kind: match one.kind {
            known::InteractionKind::Conflicts => guest::InteractionKind::Conflicts,
            known::InteractionKind::Uses => guest::InteractionKind::Uses,
            known::InteractionKind::UsedBy => guest::InteractionKind::UsedBy,
            known::InteractionKind::Order => guest::InteractionKind::Order,
            known::InteractionKind::Shares => guest::InteractionKind::Shares,
        },
        what: one.what.clone(),
        active: resolved.status_of(&one.with).0 == Status::Active,
    }
}

fn symptom(one: &known::Symptom, here: &impl Fn(&Family) -> bool) -> guest::Symptom {
    let checks = one.checks.iter().filter(|check| here(&check.family));
    let diagnosis = |check: &known::Diagnosis| guest::Diagnosis {
        argv: check.argv.clone(),
        root: check.root.0,
        findings: check.results.iter().map(finding).collect(),
    };
    let cause = |cause: &known::Cause| guest::Cause {
        id: cause.id.clone(),
        cause: cause.cause.clone(),
        fix: cause.fix.clone(),
    };
    guest::Symptom {
        id: one.id.clone(),
        symptom: one.symptom.clone(),
        checks: checks.map(diagnosis).collect(),
        causes: one.causes.iter().map(cause).collect(),
    }
}

fn finding(one: &known::Finding) -> guest::Finding {
    guest::Finding {
        exit: one.if_exit,
        exit_not: one.if_exit_not,
        contains: one.if_contains.clone(),
        matches: one.if_matches.clone(),
        lacks: one.if_lacks.clone(),
        cause: one.cause.clone(),
        means: one.means.clone(),
    }
}

fn copied(one: &known::Backup) -> Option<guest::Backup> {
    match (&one.path, &one.argv) {
        (Some(path), _) => Some(guest::Backup::Path(path.clone())),
        (_, Some(argv)) => Some(guest::Backup::Command(argv.clone())),
        _ => None,
    }
}
