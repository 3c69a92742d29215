//! What a component may ask of the host, each question checked against its grants first.

use std::sync::Arc;

use wasmtime::component::Resource;

use super::bindings::sysadmin::module::types::{Command, Output, Place, Privilege, Problem};
use super::bindings::sysadmin::module::{
    confirm, distro_context, doc_emit, exec_command, progress, session, target_files, tool_calls, types,
};
use super::convert;
use super::limits::Stopped;
use super::store::{Call, State, unsupported};
use crate::capability::{Grants, Risk};
use crate::problem::{self, Category};
use crate::target::{OutputStream, PathCheck};

/// Commands of one call into the host: their outputs, 2 MiB each at most, are held at the same time.
const COMMANDS: usize = 32;

/// Commands that a module reads from at the same time.
const STREAMS: usize = 8;

type Answer<T> = Result<T, Problem>;

/// A question to the grants: about a path as it was asked for, and as it is after symlinks.
type MayReach = fn(&Grants, &str, &str, &crate::target::Privilege) -> Result<(), problem::Problem>;

fn to_guest<T>(answer: Result<T, problem::Problem>) -> Answer<T> {
    answer.map_err(convert::problem_to_guest)
}

impl Call {
    /// By these grants, for as long as the call goes on: what is left of its work on another thread finds nothing
    /// allowed any more.
    fn path_check(&self, privilege: &crate::target::Privilege, may: MayReach) -> Arc<PathCheck> {
        let (grants, log, privilege) = (self.grants.clone(), Arc::downgrade(&self.log), privilege.clone());
        Arc::new(move |asked, real| {
            let log = log.upgrade().ok_or_else(|| {
                problem::Problem::new("CANCELLED", Category::Other, "the call has ended already")
            })?;
            may(&grants, asked, real, &privilege).inspect_err(|problem| log.refused(problem, &[]))
        })
    }
}

/// Nothing is granted on the controller yet, so nothing is allowed there.
pub(super) fn on_target(place: Place) -> Result<(), problem::Problem> {
    match place {
        Place::Target => Ok(()),
        Place::Controller => Err(unsupported("commands and files of the controller")),
    }
}

fn read_only_tool(tool: &str) -> problem::Problem {
    let message = format!(
        "{tool} handed over a plan that changes something, but its module's description says that it changes nothing"
    );
    problem::Problem::new("READ_ONLY_TOOL", Category::Denied, message)
}

impl types::Host for State {}

impl exec_command::Host for State {
    async fn run(&mut self, command: Command) -> wasmtime::Result<Answer<Output>> {
        let mut answers = self.run_all(vec![command]).await?;
        Ok(answers.pop().unwrap_or_else(|| to_guest(Err(unsupported("an empty answer")))))
    }

    async fn run_all(&mut self, commands: Vec<Command>) -> wasmtime::Result<Vec<Answer<Output>>> {
        let call = self.call()?;
        if commands.len() > COMMANDS {
            let message = format!("{} commands at once; at most {COMMANDS} are taken", commands.len());
            let problem = problem::Problem::new("TOO_MANY_COMMANDS", Category::Resource, message);
            return Ok(vec![to_guest(Err(problem)); commands.len()]);
        }
        let checked = call.allowed(commands).await;
        let allowed: Vec<_> = checked.iter().filter_map(|checked| checked.as_ref().ok().cloned()).collect();
        let mut outputs = call.target.run_all(&allowed).await.into_iter();
        let answers = checked.into_iter().map(|checked| {
            let ran =
                checked.and_then(|_| outputs.next().unwrap_or_else(|| Err(unsupported("an empty answer"))));
            to_guest(ran.map(convert::output))
        });
        Ok(answers.collect())
    }

    async fn open(&mut self, command: Command) -> wasmtime::Result<Answer<Resource<OutputStream>>> {
        let streams = self.streams;
        let call = self.call()?;
        if streams >= STREAMS {
            let message = format!("more than {STREAMS} commands are read from at once");
            return Ok(to_guest(Err(problem::Problem::new(
                "TOO_MANY_COMMANDS",
                Category::Resource,
                message,
            ))));
        }
        let opened = match call.allowed(vec![command]).await.pop() {
            Some(Ok(command)) => call.target.open(&command).await,
            Some(Err(problem)) => Err(problem),
            None => Err(unsupported("an empty answer")),
        };
        Ok(match opened {
            Ok(stream) => {
                self.streams += 1;
                Ok(self.table.push(stream)?)
            }
            Err(problem) => to_guest(Err(problem)),
        })
    }
}

impl exec_command::HostOutputStream for State {
    async fn read(
        &mut self,
        stream: Resource<OutputStream>,
        max_bytes: u32,
    ) -> wasmtime::Result<Answer<Vec<u8>>> {
        self.call()?;
        Ok(to_guest(self.table.get_mut(&stream)?.read(max_bytes).await))
    }

    async fn drop(&mut self, stream: Resource<OutputStream>) -> wasmtime::Result<()> {
        self.table.delete(stream)?;
        self.streams -= 1;
        Ok(())
    }
}

impl target_files::Host for State {
    async fn read_all(
        &mut self,
        requests: Vec<target_files::Request>,
        privilege: Privilege,
        place: Place,
    ) -> wasmtime::Result<Vec<Answer<Vec<u8>>>> {
        let call = self.call()?;
        if let Err(problem) = on_target(place) {
            return Ok(vec![to_guest(Err(problem)); requests.len()]);
        }
        let privilege = convert::privilege(privilege);
        let check = call.path_check(&privilege, Grants::may_read);
        let requests = requests.into_iter().map(convert::read_request).collect();
        let answers = call.target.read_all(requests, &call.grants.access(&privilege), check).await;
        Ok(answers.into_iter().map(to_guest).collect())
    }

    async fn stat_all(
        &mut self,
        paths: Vec<String>,
        privilege: Privilege,
        place: Place,
    ) -> wasmtime::Result<Vec<Answer<Option<target_files::Metadata>>>> {
        let call = self.call()?;
        if let Err(problem) = on_target(place) {
            return Ok(vec![to_guest(Err(problem)); paths.len()]);
        }
        let privilege = convert::privilege(privilege);
        let check = call.path_check(&privilege, Grants::may_read);
        let answers = call.target.stat_all(paths, &call.grants.access(&privilege), check).await;
        Ok(answers
            .into_iter()
            .map(|answer| to_guest(answer.map(|found| found.map(convert::metadata))))
            .collect())
    }

    async fn list_dir(
        &mut self,
        path: String,
        privilege: Privilege,
        place: Place,
    ) -> wasmtime::Result<Answer<Vec<String>>> {
        let call = self.call()?;
        if let Err(problem) = on_target(place) {
            return Ok(to_guest(Err(problem)));
        }
        let privilege = convert::privilege(privilege);
        let check = call.path_check(&privilege, Grants::may_list);
        Ok(to_guest(call.target.list_dir(path, &call.grants.access(&privilege), check).await))
    }
}

impl confirm::Host for State {
    async fn apply(
        &mut self,
        _change: confirm::Change,
    ) -> wasmtime::Result<Result<confirm::Applied, confirm::Failure>> {
        let call = self.call()?;
        if call.risk == Risk::ReadOnly {
            // Ends the call: clients were told that this tool changes nothing, and no answer to it changes that.
            return Err(read_only_tool(&call.tool).into());
        }
        Ok(Err(confirm::Failure {
            problem: convert::problem_to_guest(unsupported("changes")),
            step: 0,
            outputs: Vec::new(),
            undone: Vec::new(),
            not_undone: Vec::new(),
            uncertain: false,
        }))
    }
}

impl distro_context::Host for State {
    async fn current(&mut self) -> wasmtime::Result<distro_context::Distro> {
        Ok(convert::distro(&self.call()?.facts))
    }
}

impl doc_emit::Host for State {
    async fn suggest(&mut self, _action: doc_emit::DocumentationAction) -> wasmtime::Result<Answer<()>> {
        self.call()?;
        Ok(to_guest(Err(unsupported("documentation suggestions"))))
    }
}

impl progress::Host for State {
    async fn report(&mut self, fraction: Option<f32>, message: String) -> wasmtime::Result<()> {
        (self.call()?.progress)(fraction, &message);
        Ok(())
    }
}

impl tool_calls::Host for State {
    async fn call_all(&mut self, calls: Vec<tool_calls::ToolCall>) -> wasmtime::Result<Vec<Answer<String>>> {
        self.call()?;
        Ok(calls.iter().map(|_| to_guest(Err(unsupported("calls of other modules' tools")))).collect())
    }
}

impl session::Host for State {
    async fn snapshot(&mut self) -> wasmtime::Result<String> {
        match &self.call()?.session {
            Some(session) => Ok(session.snapshot.clone()),
            None => Err(Stopped::NoImportsWhileDescribing.into()),
        }
    }

    async fn sudoers_reference(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        match &self.call()?.session {
            Some(session) => Ok((session.sudoers)().await),
            None => Err(Stopped::NoImportsWhileDescribing.into()),
        }
    }
}

#[cfg(test)]
mod tests;
