//! Version 0.1 of the contract, beside the current one. Components that were built for it load as before.
//!
//! A type of a component is known by its shape. All of the older version's types but those of a plan and of a description
//! have kept theirs, so most functions of the current version are offered under the older names as well.

use wasmtime::component::{HasSelf, Linker, Resource, ResourceType};

use self::bindings::exports::sysadmin::module::describe as described;
use self::bindings::sysadmin::module::confirm as planned;
use super::bindings::exports::sysadmin::module::describe;
use super::bindings::sysadmin::module::{
    confirm, distro_context, doc_emit, exec_command, knowledge, progress, redaction, target_files, tool_calls,
};
use super::store::State;
use host_target::OutputStream;

/// The bindings of the older version. They share the types that have kept their shape.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub(super) mod bindings {
    wasmtime::component::bindgen!({
        world: "tool-module",
        path: "../../wit/0.1",
        imports: { default: async | trappable },
        exports: { default: async },
        additional_derives: [serde::Serialize],
        with: {
            "sysadmin:module/types": crate::bindings::sysadmin::module::types,
            "sysadmin:module/exec-command": crate::bindings::sysadmin::module::exec_command,
            "sysadmin:module/target-files": crate::bindings::sysadmin::module::target_files,
            "sysadmin:module/distro-context": crate::bindings::sysadmin::module::distro_context,
            "sysadmin:module/doc-emit": crate::bindings::sysadmin::module::doc_emit,
            "sysadmin:module/progress": crate::bindings::sysadmin::module::progress,
            "sysadmin:module/tool-calls": crate::bindings::sysadmin::module::tool_calls,
            "sysadmin:module/knowledge": crate::bindings::sysadmin::module::knowledge,
            "sysadmin:module/redaction": crate::bindings::sysadmin::module::redaction,
        },
    });
}

/// Offers a function of the current version under its older name. Its parameters are on the left of the arrow.
macro_rules! offer {
    ($linker:expr, $interface:literal: $($name:literal = $host:ident :: $function:ident($($arg:ident: $type:ty),*);)*) => {{
        let mut instance = $linker.instance(concat!("sysadmin:module/", $interface, "@0.1.0"))?;
        $(instance.func_wrap_async($name, |mut store, ($($arg,)*): ($($type,)*)| {
            Box::new(async move { Ok(($host::Host::$function(store.data_mut(), $($arg),*).await?,)) })
        })?;)*
        instance
    }};
}

/// Links the older version.
pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    use super::bindings::sysadmin::module::types::{Command, Place, Privilege};
    // An interface that only has types.
    linker.instance("sysadmin:module/types@0.1.0")?;
    let mut streams = offer!(linker, "exec-command":
        "run" = exec_command::run(command: Command);
        "run-all" = exec_command::run_all(commands: Vec<Command>);
        "open" = exec_command::open(command: Command);
    );
    let stream = ResourceType::host::<OutputStream>();
    streams.resource_async("output-stream", stream, |mut store, number| {
        Box::new(async move {
            let stream = Resource::new_own(number);
            exec_command::HostOutputStream::drop(store.data_mut(), stream).await
        })
    })?;
    streams.func_wrap_async(
        "[method]output-stream.read",
        |mut store, (stream, most): (Resource<OutputStream>, u32)| {
            Box::new(async move {
                Ok((exec_command::HostOutputStream::read(store.data_mut(), stream, most).await?,))
            })
        },
    )?;
    offer!(linker, "target-files":
        "read-all" = target_files::read_all(requests: Vec<target_files::Request>, privilege: Privilege, place: Place);
        "stat-all" = target_files::stat_all(paths: Vec<String>, privilege: Privilege, place: Place);
        "list-all" = target_files::list_all(paths: Vec<String>, privilege: Privilege, place: Place);
    );
    offer!(linker, "distro-context": "current" = distro_context::current(););
    offer!(linker, "doc-emit": "suggest" = doc_emit::suggest(action: doc_emit::DocumentationAction););
    offer!(linker, "tool-calls": "call-all" = tool_calls::call_all(calls: Vec<tool_calls::ToolCall>););
    offer!(linker, "knowledge":
        "find" = knowledge::find(name: String);
        "detected" = knowledge::detected();
    );
    offer!(linker, "redaction": "redact" = redaction::redact(texts: Vec<String>););
    // A function without a result.
    let mut instance = linker.instance("sysadmin:module/progress@0.1.0")?;
    instance.func_wrap_async("report", |mut store, (fraction, message): (Option<f32>, String)| {
        Box::new(async move { progress::Host::report(store.data_mut(), fraction, message).await })
    })?;
    planned::add_to_linker::<_, HasSelf<State>>(linker, |state| state)
}

impl planned::Host for State {
    async fn apply(
        &mut self,
        change: planned::Change,
    ) -> wasmtime::Result<Result<planned::Applied, planned::Failure>> {
        let applied = confirm::Host::apply(self, current(change)).await?;
        Ok(applied
            .map(|confirm::Applied { outputs, dry_run }| planned::Applied { outputs, dry_run })
            .map_err(|failure| {
                let confirm::Failure { problem, step, outputs, undone, not_undone, uncertain } = failure;
                planned::Failure { problem, step, outputs, undone, not_undone, uncertain }
            }))
    }
}

/// A plan in the current version's types.
fn current(change: planned::Change) -> confirm::Change {
    let planned::Change {
        summary,
        steps,
        after_undo,
        guard,
        locks,
        risk,
        warnings,
        affected_services,
        dry_run,
    } = change;
    let at = |planned::FilePath { path, privilege, place }| confirm::FilePath { path, privilege, place };
    let action = |action| match action {
        planned::Action::Run(planned::RunCommand { command, success, interruptible }) => {
            confirm::Action::Run(confirm::RunCommand { command, success, interruptible })
        }
        planned::Action::WriteFile(write) => {
            let planned::FileWrite { at: file, contents, mode, owner, group, sensitive, validate } = write;
            let at = at(file);
            confirm::Action::WriteFile(confirm::FileWrite {
                at,
                contents,
                mode,
                owner,
                group,
                sensitive,
                validate,
            })
        }
        planned::Action::RemoveFile(file) => confirm::Action::RemoveFile(at(file)),
        planned::Action::MakeDirectory(planned::Directory { at: file, mode, owner, group }) => {
            confirm::Action::MakeDirectory(confirm::Directory { at: at(file), mode, owner, group })
        }
    };
    let lock = |lock| match lock {
        planned::Lock::PackageDatabase => confirm::Lock::PackageDatabase,
        planned::Lock::Systemd => confirm::Lock::Systemd,
        planned::Lock::Lvm => confirm::Lock::Lvm,
        planned::Lock::File(path) => confirm::Lock::File(path),
        planned::Lock::Named(name) => confirm::Lock::Named(name),
    };
    let step = |planned::Step { action: said, undo }| confirm::Step { action: action(said), undo };
    confirm::Change {
        summary,
        steps: steps.into_iter().map(step).collect(),
        after_undo,
        guard: guard.map(|planned::Guard { seconds }| confirm::Guard { seconds }),
        power: None,
        locks: locks.into_iter().map(lock).collect(),
        risk,
        warnings,
        affected_services,
        dry_run,
    }
}

/// A description in the current version's types.
pub(super) fn description(said: described::Description) -> describe::Description {
    let described::Description {
        name,
        version,
        summary,
        homepage,
        license,
        domain,
        serves,
        tools,
        capabilities,
    } = said;
    let described::Capabilities { commands, paths, tools: calls } = capabilities;
    let capabilities = describe::Capabilities {
        commands: commands.into_iter().map(command_grant).collect(),
        paths: paths.into_iter().map(path_grant).collect(),
        tools: calls,
        any_program: Vec::new(),
        signals: Vec::new(),
        own_programs: Vec::new(),
    };
    let condition = |described::Condition { fact, any_of }| describe::Condition { fact, any_of };
    describe::Description {
        name,
        version,
        summary,
        homepage,
        license,
        domain,
        serves: serves.into_iter().map(condition).collect(),
        tools: tools.into_iter().map(tool).collect(),
        capabilities,
        hints: Vec::new(),
    }
}

fn command_grant(grant: described::CommandGrant) -> describe::CommandGrant {
    let described::CommandGrant { pattern, effect, privilege, place, risk, reason } = grant;
    let effect = match effect {
        described::Effect::Read => describe::Effect::Read,
        described::Effect::DryRun => describe::Effect::DryRun,
        described::Effect::Change => describe::Effect::Change,
    };
    describe::CommandGrant { pattern, effect, privilege, place, risk, reason }
}

fn path_grant(grant: described::PathGrant) -> describe::PathGrant {
    let described::PathGrant { glob, write, privilege, place, reason } = grant;
    describe::PathGrant { glob, write, privilege, place, reason }
}

fn tool(said: described::Tool) -> describe::Tool {
    let described::Tool { name, summary, input_schema, risk, duration, shape, place, aliases } = said;
    let shape = match shape {
        described::Shape::Single => describe::Shape::Single,
        described::Shape::Listing => describe::Shape::Listing,
        described::Shape::Analysis => describe::Shape::Analysis,
    };
    let described::Aliases { tool, arguments, values } = aliases;
    let argument = |described::ArgumentAlias { alias, argument }| describe::ArgumentAlias { alias, argument };
    let value =
        |described::ValueAlias { argument, alias, value }| describe::ValueAlias { argument, alias, value };
    let aliases = describe::Aliases {
        tool,
        arguments: arguments.into_iter().map(argument).collect(),
        values: values.into_iter().map(value).collect(),
    };
    describe::Tool { name, summary, input_schema, risk, duration, shape, place, aliases }
}
