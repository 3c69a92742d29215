//! The interfaces that a component may call. Each call is checked against the module's grants first.

use std::sync::{Arc, PoisonError};

use wasmtime::component::Resource;

use super::bindings::sysadmin::module::types::{Command, Output, Place, Privilege, Problem};
use super::bindings::sysadmin::module::{
    confirm, distro_context, doc_emit, exec_command, progress, redaction, target_files, types,
};
use super::convert;
use super::limits::PIECE;
use super::look_commands::AllowedLook;
use super::store::{Call, PlanHandling, State, on_target, unsupported};
use super::wildcard_reads::{mask_next, mask_output};
use host_base::Risk;
use host_base::problem::{self, Category};
use host_base::sha256;
use host_capability::Grants;
use host_gate::{Mounts, Outcome, PlanRequest, PlannedChange, Replan};
use host_target::{OutputStream, PathCheck, ReadRequest};
use host_text::redact::{excerpt, redact_each};

/// The number of commands in one call into the host. All their outputs, of at most 2 MiB each, are held at the same
/// time.
const COMMANDS: usize = 32;

/// The number of commands that a module may read from at the same time.
const STREAMS: usize = 8;

/// The number of files whose hashes are kept. A tool that changes files reads only few.
const MOST_SEEN: usize = 1000;

/// The number of characters of a path in a problem.
const MESSAGE: usize = 300;

/// The result of a function that a guest calls. The problem goes to the guest, and the call goes on.
pub(super) type GuestResult<T> = Result<T, Problem>;

/// A check of the grants for a path, as it was asked for and without symbolic links.
type MayReach = fn(&Grants, &str, &str, &host_base::Privilege) -> Result<(), problem::Problem>;

/// Adds the file's name to the problem where another account's rights are missing.
fn reading<T>(
    answer: Result<T, problem::Problem>,
    path: &str,
    privilege: &host_base::Privilege,
) -> Result<T, problem::Problem> {
    answer.map_err(|problem| problem.needed_for(&format!("looking at {}", excerpt(path, MESSAGE)), privilege))
}

fn to_guest<T>(answer: Result<T, problem::Problem>) -> GuestResult<T> {
    answer.map_err(convert::problem_to_guest)
}

impl Call {
    /// The answer in the contract's types. The guest can't be told all of a problem, so the problem is kept for the
    /// case that the guest hands it on.
    pub(super) fn to_guest<T>(&self, answer: Result<T, problem::Problem>) -> GuestResult<T> {
        if let Err(problem) = &answer
            && !problem.details.is_empty()
        {
            self.keep(problem);
        }
        to_guest(answer)
    }

    /// The mounts of the target, read once for the call.
    pub(super) async fn mounts(&self) -> Result<Arc<Mounts>, problem::Problem> {
        let read = || async { Mounts::read(&self.target).await.map(Arc::new) };
        self.mounts.get_or_try_init(read).await.cloned()
    }

    /// A check by the call's current grants. After the end of the call it allows nothing, so that work that is left on
    /// another thread finds nothing.
    async fn path_check(&self, privilege: &host_base::Privilege, may: MayReach) -> Arc<PathCheck> {
        let mounts = self.mounts().await;
        let (grants, log, privilege) = (self.grants(), Arc::downgrade(&self.log), privilege.clone());
        Arc::new(move |asked, real| {
            let log = log.upgrade().ok_or_else(|| {
                problem::Problem::new("CANCELLED", Category::Other, "the call has ended already")
            })?;
            let names = || mounts.as_ref().map(|mounts| mounts.other_names(real)).map_err(Clone::clone);
            may(&grants, asked, real, &privilege)
                .and_then(|()| names()?.iter().try_for_each(|name| grants.may_be(asked, name)))
                .inspect_err(|problem| log.refused(problem, &[]))
        })
    }
}

fn second_plan(tool: &str) -> problem::Problem {
    let message =
        format!("{tool} handed over a second plan; a call has one, and it is shown and undone as a whole");
    problem::Problem::new("SECOND_PLAN", Category::Internal, message)
}

/// The problem that ends a call of which only the plan is wanted. Nobody sees it.
fn is_kept() -> problem::Problem {
    problem::Problem::new("PLAN_KEPT", Category::Internal, "the plan was only to be made")
}

fn read_only_tool(tool: &str) -> problem::Problem {
    let message = format!(
        "{tool} handed over a plan that changes something, but its module's description says that it changes nothing"
    );
    problem::Problem::new("READ_ONLY_TOOL", Category::Denied, message)
}

impl types::Host for State {}

impl exec_command::Host for State {
    async fn run(&mut self, command: Command) -> wasmtime::Result<GuestResult<Output>> {
        let mut answers = self.run_all(vec![command]).await?;
        Ok(answers.pop().unwrap_or_else(|| to_guest(Err(unsupported("an empty answer")))))
    }

    async fn run_all(&mut self, commands: Vec<Command>) -> wasmtime::Result<Vec<GuestResult<Output>>> {
        let call = self.call()?;
        if commands.len() > COMMANDS {
            let message = format!("{} commands at once; at most {COMMANDS} are taken", commands.len());
            let problem = problem::Problem::new("TOO_MANY_COMMANDS", Category::Resource, message);
            return Ok(vec![to_guest(Err(problem)); commands.len()]);
        }
        let checked = call.allowed("run", commands).await;
        let allowed = checked.iter().filter_map(|checked| Some(checked.as_ref().ok()?.command.clone()));
        let allowed: Vec<_> = allowed.collect();
        let mut outputs = call.target.run_all(&allowed).await.into_iter();
        let answers = checked.into_iter().map(|checked| {
            let ran = checked.and_then(|AllowedLook { command, number, is_looked_through }| {
                let mut output = outputs.next().unwrap_or_else(|| Err(unsupported("an empty answer")))?;
                call.command_log.ended(number, output.exit_code);
                if call.may_have_plan() {
                    call.observed.note(&command, &output);
                }
                if is_looked_through {
                    mask_output(&mut output);
                }
                Ok(output)
            });
            call.to_guest(ran.map(convert::output))
        });
        Ok(answers.collect())
    }

    async fn run_pipeline(
        &mut self,
        pipeline: types::Pipeline,
    ) -> wasmtime::Result<GuestResult<Vec<Output>>> {
        let call = self.call()?;
        let ran = call.run_pipeline(pipeline).await;
        Ok(call.to_guest(ran.map(|outputs| outputs.into_iter().map(convert::output).collect())))
    }

    async fn open(&mut self, command: Command) -> wasmtime::Result<GuestResult<Resource<OutputStream>>> {
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
        let opened = match call.allowed("open", vec![command]).await.pop() {
            Some(Ok(AllowedLook { command, is_looked_through, .. })) => {
                let stream = call.target.open(&command).await;
                stream.map(|stream| (stream, is_looked_through))
            }
            Some(Err(problem)) => Err(problem),
            None => Err(unsupported("an empty answer")),
        };
        Ok(match opened {
            Ok((stream, is_looked_through)) => {
                self.streams += 1;
                let stream = self.table.push(stream)?;
                if is_looked_through {
                    self.looked_through.insert(stream.rep(), Vec::new());
                }
                Ok(stream)
            }
            Err(problem) => call.to_guest(Err(problem)),
        })
    }
}

impl exec_command::HostOutputStream for State {
    async fn read(
        &mut self,
        stream: Resource<OutputStream>,
        max_bytes: u32,
    ) -> wasmtime::Result<GuestResult<Vec<u8>>> {
        self.call()?;
        let piece = self.table.get_mut(&stream)?.read(max_bytes).await;
        Ok(to_guest(piece.map(|piece| match self.looked_through.get_mut(&stream.rep()) {
            Some(before) => mask_next(before, piece),
            None => piece,
        })))
    }

    async fn drop(&mut self, stream: Resource<OutputStream>) -> wasmtime::Result<()> {
        self.looked_through.remove(&stream.rep());
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
    ) -> wasmtime::Result<Vec<GuestResult<Vec<u8>>>> {
        let call = self.call()?;
        if let Err(problem) = on_target(place) {
            return Ok(vec![to_guest(Err(problem)); requests.len()]);
        }
        let privilege = convert::privilege(privilege);
        let check = call.path_check(&privilege, Grants::may_read).await;
        let requests: Vec<_> = requests.into_iter().map(convert::read_request).collect();
        call.log.looks("read", || requests.iter().map(|request| &request.path).collect());
        let access = call.grants().access(&privilege);
        let mut answers = call.target.read_all(requests.clone(), &access, check.clone()).await;
        if call.may_have_plan() {
            call.has_read(&requests, &answers);
        }
        call.look_through(&requests, &privilege, check, &mut answers).await;
        let answers = requests.iter().zip(answers);
        Ok(answers
            .map(|(request, answer)| call.to_guest(reading(answer, &request.path, &privilege)))
            .collect())
    }

    async fn stat_all(
        &mut self,
        paths: Vec<String>,
        privilege: Privilege,
        place: Place,
    ) -> wasmtime::Result<Vec<GuestResult<Option<target_files::Metadata>>>> {
        let call = self.call()?;
        if let Err(problem) = on_target(place) {
            return Ok(vec![to_guest(Err(problem)); paths.len()]);
        }
        let privilege = convert::privilege(privilege);
        let check = call.path_check(&privilege, Grants::may_read).await;
        call.log.looks("stat", || paths.iter().collect());
        let answers = call.target.stat_all(paths.clone(), &call.grants().access(&privilege), check).await;
        let answers = paths.iter().zip(answers);
        Ok(answers
            .map(|(path, answer)| {
                let found = reading(answer, path, &privilege);
                call.to_guest(found.map(|found| found.map(convert::metadata)))
            })
            .collect())
    }

    async fn list_all(
        &mut self,
        paths: Vec<String>,
        privilege: Privilege,
        place: Place,
    ) -> wasmtime::Result<Vec<GuestResult<Vec<String>>>> {
        let call = self.call()?;
        if let Err(problem) = on_target(place) {
            return Ok(vec![to_guest(Err(problem)); paths.len()]);
        }
        let privilege = convert::privilege(privilege);
        let check = call.path_check(&privilege, Grants::may_list).await;
        call.log.looks("list", || paths.iter().collect());
        let answers = call.target.list_all(paths.clone(), &call.grants().access(&privilege), check).await;
        let answers = paths.iter().zip(answers);
        Ok(answers.map(|(path, names)| call.to_guest(reading(names, path, &privilege))).collect())
    }
}

impl redaction::Host for State {
    async fn redact(&mut self, texts: Vec<String>) -> wasmtime::Result<Vec<String>> {
        self.call()?;
        Ok(redact_each(texts))
    }
}

impl confirm::Host for State {
    /// Applies the plan. Where it is refused, the call ends, so that the module's answer can't hide the refusal.
    async fn apply(
        &mut self,
        change: confirm::Change,
    ) -> wasmtime::Result<Result<confirm::Applied, confirm::Failure>> {
        // A plan may take longer than the call may look, and a confirmation longer still.
        let clock = self.clock.clone();
        let _still = clock.pause();
        let call = self.call()?;
        if !call.may_have_plan() {
            let refused = read_only_tool(&call.tool);
            // The refusal is recorded as the plan's outcome, since the call did not only look.
            let _ = call.plan.set(Err(refused.clone()));
            return Err(refused.into());
        }
        if call.plan.get().is_some() {
            return Err(second_plan(&call.tool).into());
        }
        let replan = match &call.plan_handling {
            PlanHandling::Applied(replan) => replan.clone(),
            PlanHandling::Kept(kept) => {
                let planned = call.planned(change)?;
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(planned);
                return Err(is_kept().into());
            }
        };
        let applied = call.apply(change, replan).await;
        let answer = match &applied {
            Ok(outcome) => Ok(convert::outcome(outcome)),
            Err(refused) => Err(refused.clone().into()),
        };
        // Only this call sets it: a call has one guest, and a guest makes one call into the host at a time.
        let _ = call.plan.set(applied);
        answer
    }
}

impl Call {
    /// The plan that the module hands over, with all that the module has seen in this call.
    fn planned(&self, change: confirm::Change) -> Result<PlannedChange, problem::Problem> {
        Ok(PlannedChange {
            change: convert::change(change, self.time_limits)?,
            file_hashes: self.file_hashes.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            observed: self.observed.clone(),
        })
    }

    async fn apply(
        &self,
        change: confirm::Change,
        replan: Arc<dyn Replan>,
    ) -> Result<Outcome, problem::Problem> {
        let PlannedChange { change, file_hashes, observed } = self.planned(change)?;
        let asking = PlanRequest {
            origin: self.origin.clone(),
            risk: self.risk,
            grants: self.grants(),
            target: self.target.clone(),
            facts: self.facts.clone(),
            dry_run: self.dry_run,
            target_lock: self.target_lock.clone(),
            confirmer: self.confirmer.clone(),
            replan,
            file_hashes,
            observed,
            command_log: self.command_log.clone(),
            progress: self.progress.clone(),
        };
        self.gate.apply(asking, change).await.inspect_err(|problem| {
            if problem.code == "CAPABILITY_DENIED" {
                self.log.refused(problem, &[]);
            }
        })
    }

    /// Whether the call may make a plan, so that its observations have to be kept.
    pub(super) fn may_have_plan(&self) -> bool {
        self.risk != Risk::ReadOnly
    }

    /// Keeps the hashes of files that were read whole, for a plan that is made from them.
    fn has_read(&self, requests: &[ReadRequest], answers: &[Result<Vec<u8>, problem::Problem>]) {
        let mut known = self.file_hashes.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, hash) in read_whole(requests, answers) {
            if known.len() < MOST_SEEN {
                known.insert(path, hash);
            }
        }
    }
}

/// The SHA-256 of each file that these answers hold whole, by its path; none for a file that doesn't exist. A large file is
/// whole where its pieces follow each other from its beginning to a piece that is shorter than it was asked for.
fn read_whole(
    requests: &[ReadRequest],
    answers: &[Result<Vec<u8>, problem::Problem>],
) -> Vec<(String, Option<String>)> {
    let mut whole = Vec::new();
    // The pieces of the file whose end isn't reached.
    let mut begun: Option<(&str, Vec<u8>)> = None;
    for (request, answer) in requests.iter().zip(answers) {
        let before = begun.take().filter(|(path, contents)| {
            *path == request.path && usize::try_from(request.offset) == Ok(contents.len())
        });
        match (answer, before.or_else(|| (request.offset == 0).then(|| (request.path.as_str(), Vec::new()))))
        {
            (Ok(piece), Some((path, mut contents))) => {
                contents.extend_from_slice(piece);
                if (piece.len() as u64) < request.max_bytes.min(PIECE) {
                    whole.push((path.to_owned(), Some(sha256::of(&contents))));
                } else {
                    begun = Some((path, contents));
                }
            }
            (Err(problem), _) if problem.category == Category::NotFound => {
                whole.push((request.path.clone(), None));
            }
            _ => {}
        }
    }
    whole
}

impl distro_context::Host for State {
    async fn current(&mut self) -> wasmtime::Result<distro_context::Distro> {
        Ok(convert::distro(&self.call()?.facts))
    }
}

impl doc_emit::Host for State {
    async fn suggest(&mut self, _action: doc_emit::DocumentationAction) -> wasmtime::Result<GuestResult<()>> {
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

#[cfg(test)]
mod tests;
