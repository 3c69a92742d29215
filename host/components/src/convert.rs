//! Converts between the contract's types and the host's own. Each type is converted in one direction, and no decision
//! is made here.

use std::time::Duration;

use super::bindings::exports::sysadmin::module::describe;
use super::bindings::sysadmin::module::{confirm, distro_context, target_files, types};
use super::store::TimeLimits;
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_base::{Command, Keep, Output, Privilege};
use host_capability::{
    AnyProgramRequest, CommandRequest, Effect, OwnProgramRequest, PathRequest, Place, SignalRequest,
};
use host_gate::resource_locks::ResourceLock;
use host_gate::{
    Action, Attributes, Change, Directory, FilePath, Move, Outcome, PowerChange, Run, Step, Write,
};
use host_target::{Facts, Metadata, ProcessId, ProcessSignal, ReadRequest};
use host_text::visible::visible;

/// The time that a command of this category may take.
pub(super) fn command_time(category: types::DurationCategory) -> Duration {
    Duration::from_secs(match category {
        types::DurationCategory::Instant => 10,
        types::DurationCategory::Quick => 30,
        types::DurationCategory::Normal => 120,
        types::DurationCategory::Slow => 600,
        types::DurationCategory::LongRunning => 1800,
    })
}

/// The time that a tool of this category may compute.
pub(super) fn guest_time(category: types::DurationCategory) -> Duration {
    Duration::from_secs(match category {
        types::DurationCategory::Instant => 2,
        types::DurationCategory::Quick => 5,
        types::DurationCategory::Normal => 10,
        types::DurationCategory::Slow => 30,
        types::DurationCategory::LongRunning => 60,
    })
}

pub(super) fn privilege(privilege: types::Privilege) -> Privilege {
    match privilege {
        types::Privilege::Caller => Privilege::Caller,
        types::Privilege::Root => Privilege::Root,
        types::Privilege::RootIfAvailable => Privilege::RootIfAvailable,
        types::Privilege::User(name) => Privilege::User(name),
    }
}

pub(super) fn risk(risk: types::Risk) -> Risk {
    match risk {
        types::Risk::ReadOnly => Risk::ReadOnly,
        types::Risk::Low => Risk::Low,
        types::Risk::Moderate => Risk::Moderate,
        types::Risk::High => Risk::High,
        types::Risk::Critical => Risk::Critical,
    }
}

fn place(place: types::Place) -> Place {
    match place {
        types::Place::Target => Place::Target,
        types::Place::Controller => Place::Controller,
    }
}

pub(super) fn command_request(grant: describe::CommandGrant) -> CommandRequest {
    CommandRequest {
        pattern: grant.pattern,
        effect: match grant.effect {
            describe::Effect::Read => Effect::Read,
            describe::Effect::DryRun => Effect::DryRun,
            describe::Effect::Change => Effect::Change,
        },
        privilege: privilege(grant.privilege),
        place: place(grant.place),
        risk: risk(grant.risk),
        reason: visible(&grant.reason).into_owned(),
    }
}

pub(super) fn path_request(grant: describe::PathGrant) -> PathRequest {
    PathRequest {
        glob: grant.glob,
        write: grant.write,
        privilege: privilege(grant.privilege),
        place: place(grant.place),
        reason: visible(&grant.reason).into_owned(),
    }
}

pub(super) fn any_program_request(grant: describe::AnyProgramGrant) -> AnyProgramRequest {
    AnyProgramRequest {
        privilege: privilege(grant.privilege),
        place: place(grant.place),
        reason: visible(&grant.reason).into_owned(),
    }
}

pub(super) fn signal_request(grant: describe::SignalGrant) -> SignalRequest {
    SignalRequest {
        privilege: privilege(grant.privilege),
        place: place(grant.place),
        reason: visible(&grant.reason).into_owned(),
    }
}

pub(super) fn own_program_request(grant: describe::OwnProgramGrant) -> OwnProgramRequest {
    OwnProgramRequest {
        path: visible(&grant.path).into_owned(),
        sha256: grant.sha256,
        reason: visible(&grant.reason).into_owned(),
    }
}

pub(super) fn command(command: types::Command, times: TimeLimits) -> Command {
    let timeout = times.of(command_time(command.duration));
    Command {
        env: command.env,
        stdin: command.stdin,
        privilege: privilege(command.privilege),
        keep: match command.keep {
            types::Keep::Head => Keep::Head,
            types::Keep::Tail => Keep::Tail,
        },
        ..Command::new(command.program, command.args, timeout)
    }
}

/// The longest time of a pipeline in seconds.
const LONGEST_PIPELINE: u32 = 86_400;

/// The commands of a pipeline, which have its time.
pub(super) fn pipeline(pipeline: types::Pipeline, times: TimeLimits) -> Result<Vec<Command>, Problem> {
    let types::Pipeline { commands, seconds } = pipeline;
    if seconds.is_some_and(|seconds| seconds == 0 || seconds > LONGEST_PIPELINE) {
        let message = format!("a pipeline of another time than 1 to {LONGEST_PIPELINE} s");
        return Err(Problem::new("INVALID_PIPELINE", Category::Validation, message));
    }
    let with_time = |said: types::Command| {
        on_target(said.place)?;
        let command = command(said, times);
        let timeout = seconds.map_or(command.timeout, |seconds| Duration::from_secs(seconds.into()));
        Ok(Command { timeout, ..command })
    };
    commands.into_iter().map(with_time).collect()
}

pub(super) fn output(output: Output) -> types::Output {
    types::Output {
        exit_code: output.exit_code,
        stdout: output.stdout,
        stderr: output.stderr,
        stdout_bytes: output.stdout_bytes,
        stdout_lines: output.stdout_lines,
        truncated: output.truncated,
        duration_ms: u64::try_from(output.duration.as_millis()).unwrap_or(u64::MAX),
    }
}

pub(super) fn read_request(request: target_files::Request) -> ReadRequest {
    ReadRequest { path: request.path, offset: request.offset, max_bytes: request.max_bytes }
}

pub(super) fn metadata(metadata: Metadata) -> target_files::Metadata {
    target_files::Metadata {
        size: metadata.size,
        mode: metadata.mode,
        owner: metadata.owner,
        group: metadata.group,
        modified_unix: metadata.modified_unix,
        is_dir: metadata.is_dir,
        is_symlink: metadata.is_symlink,
    }
}

pub(super) fn distro(facts: &Facts) -> distro_context::Distro {
    let user = ("user".to_owned(), facts.user.clone());
    let client = facts.ssh_client.map(|address| ("ssh_client".to_owned(), address.to_string()));
    distro_context::Distro {
        family: facts.family.clone(),
        name: facts.name.clone(),
        version: facts.version.clone(),
        codename: facts.codename.clone(),
        package_manager: facts.package_manager.clone(),
        init_system: facts.init_system.clone(),
        firewall_backend: facts.firewall_backend.clone(),
        mac_system: facts.mac_system.clone(),
        mac_mode: facts.mac_mode.clone(),
        container_runtime: facts.container_runtime.clone(),
        log_system: facts.log_system.clone(),
        user_management: facts.user_management.clone(),
        hostname: facts.hostname.clone(),
        kernel: facts.kernel.clone(),
        architecture: facts.architecture.clone(),
        sudo_available: facts.root_available(),
        extra: facts.extra.clone().into_iter().chain([user]).chain(client).collect(),
    }
}

const CATEGORIES: [(Category, types::Category); 12] = [
    (Category::Privilege, types::Category::Privilege),
    (Category::NotFound, types::Category::NotFound),
    (Category::Dependency, types::Category::Dependency),
    (Category::Resource, types::Category::Resource),
    (Category::Lock, types::Category::Lock),
    (Category::Network, types::Category::Network),
    (Category::Timeout, types::Category::Timeout),
    (Category::Validation, types::Category::Validation),
    (Category::State, types::Category::State),
    (Category::Denied, types::Category::Denied),
    (Category::Internal, types::Category::Internal),
    (Category::Other, types::Category::Other),
];

pub(super) fn problem_to_guest(problem: Problem) -> types::Problem {
    let category = CATEGORIES.iter().find(|(host, _)| *host == problem.category);
    types::Problem {
        code: problem.code,
        category: category.map_or(types::Category::Other, |(_, guest)| *guest),
        message: problem.message,
        remediation: problem.remediation,
    }
}

pub(super) fn problem_from_guest(problem: types::Problem) -> Problem {
    let category = CATEGORIES.iter().find(|(_, guest)| *guest == problem.category);
    Problem {
        code: problem.code,
        category: category.map_or(Category::Other, |(host, _)| *host),
        message: problem.message,
        remediation: problem.remediation,
        details: Default::default(),
    }
}

/// Refuses the parts of a plan that are not on the target.
fn on_target(place: types::Place) -> Result<(), Problem> {
    match place {
        types::Place::Target => Ok(()),
        types::Place::Controller => {
            let message = "the module handed over a plan for the machine that the server runs on; plans change the target";
            Err(Problem::new("NOT_SUPPORTED", Category::State, message))
        }
    }
}

pub(super) fn change(change: confirm::Change, times: TimeLimits) -> Result<Change, Problem> {
    let step_command = |said: types::Command| {
        on_target(said.place)?;
        Ok(command(said, times))
    };
    let commands =
        |all: Vec<types::Command>| all.into_iter().map(step_command).collect::<Result<Vec<_>, Problem>>();
    let at = |at: confirm::FilePath| {
        on_target(at.place)?;
        Ok::<_, Problem>(FilePath { path: at.path, privilege: privilege(at.privilege) })
    };
    let step = |said: confirm::Step| {
        let action = match said.action {
            confirm::Action::Run(run) => Action::Run(Run {
                command: step_command(run.command)?,
                piped: Vec::new(),
                any_exit: false,
                success: run.success,
                interruptible: run.interruptible,
            }),
            confirm::Action::WriteFile(write) => Action::Write(Write {
                at: at(write.at)?,
                contents: write.contents,
                mode: write.mode,
                owner: write.owner,
                group: write.group,
                sensitive: write.sensitive,
                validate: write.validate.map(step_command).transpose()?,
            }),
            confirm::Action::RemoveFile(path) => Action::Remove(at(path)?),
            confirm::Action::RemoveDirectory(path) => Action::RemoveDirectory(at(path)?),
            confirm::Action::MovePath(moved) => Action::Move(Move { from: at(moved.at)?, to: moved.to }),
            confirm::Action::SetAttributes(attributes) => Action::SetAttributes(Attributes {
                at: at(attributes.at)?,
                mode: attributes.mode,
                owner: attributes.owner,
                group: attributes.group,
            }),
            confirm::Action::RunPipeline(run) => {
                let mut commands = pipeline(run.pipeline, times)?.into_iter();
                let none = || Problem::new("INVALID_PLAN", Category::Internal, "a pipeline without commands");
                Action::Run(Run {
                    command: commands.next().ok_or_else(none)?,
                    piped: commands.collect(),
                    any_exit: run.any_exit,
                    success: Vec::new(),
                    interruptible: true,
                })
            }
            confirm::Action::SignalProcesses(signal) => Action::Signal(process_signal(signal)),
            confirm::Action::MakeDirectory(directory) => Action::MakeDirectory(Directory {
                at: at(directory.at)?,
                mode: directory.mode,
                owner: directory.owner,
                group: directory.group,
            }),
        };
        Ok(Step { action, undo: commands(said.undo)? })
    };
    Ok(Change {
        summary: change.summary,
        steps: change.steps.into_iter().map(step).collect::<Result<_, Problem>>()?,
        after_undo: commands(change.after_undo)?,
        guard: change.guard.map(|guard| Duration::from_secs(guard.seconds.into())),
        power: change.power.map(|power| match power {
            confirm::PowerChange::Restart(seconds) => {
                PowerChange::Restart(Duration::from_secs(seconds.into()))
            }
            confirm::PowerChange::Off => PowerChange::Off,
        }),
        locks: change.locks.into_iter().map(lock).collect(),
        risk: change.risk.map(risk),
        warnings: change.warnings,
        affected_services: change.affected_services,
        dry_run: change.dry_run.map(step_command).transpose()?,
    })
}

fn process_signal(said: confirm::ProcessSignal) -> ProcessSignal {
    let id = |said: confirm::Process| ProcessId { pid: said.pid, start_ticks: said.start_ticks };
    ProcessSignal {
        processes: said.processes.into_iter().map(id).collect(),
        tree: said.tree,
        signal: said.signal,
        wait_seconds: said.wait_seconds,
        kill: said.kill,
        privilege: privilege(said.privilege),
    }
}

fn lock(lock: confirm::Lock) -> ResourceLock {
    match lock {
        confirm::Lock::PackageDatabase => ResourceLock::PackageDatabase,
        confirm::Lock::Systemd => ResourceLock::Systemd,
        confirm::Lock::Lvm => ResourceLock::Lvm,
        confirm::Lock::File(path) => ResourceLock::File(path),
        confirm::Lock::Named(name) => ResourceLock::Named(name),
    }
}

pub(super) fn outcome(outcome: &Outcome) -> Result<confirm::Applied, confirm::Failure> {
    let outputs = |all: &[Output]| all.iter().cloned().map(output).collect();
    match outcome {
        Outcome::DryRun { outputs: all, .. } => Ok(confirm::Applied { outputs: outputs(all), dry_run: true }),
        Outcome::Done { outputs: all, .. } => Ok(confirm::Applied { outputs: outputs(all), dry_run: false }),
        Outcome::Failed { problem, step, outputs: all, undone, not_undone, uncertain } => {
            Err(confirm::Failure {
                problem: problem_to_guest(problem.clone()),
                step: u32::try_from(*step).unwrap_or(u32::MAX),
                outputs: outputs(all),
                undone: undone.clone(),
                not_undone: not_undone.clone(),
                uncertain: *uncertain,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_from_where_is_among_the_further_facts() {
        let zone = ("timezone".to_owned(), "Etc/UTC".to_owned());
        let user = ("user".to_owned(), "ada".to_owned());
        let mut facts = Facts { extra: [zone.clone()].into(), user: "ada".to_owned(), ..Facts::default() };
        assert_eq!(distro(&facts).extra, [zone.clone(), user.clone()]);
        facts.ssh_client = "2001:db8::7".parse().ok();
        assert_eq!(distro(&facts).extra, [zone, user, ("ssh_client".to_owned(), "2001:db8::7".to_owned())]);
    }
}
