//! From a request to a call that runs. The tool is found and the arguments are validated; then a target is chosen; then the
//! request joins the call that waits for it, or begins a new one, on one host or on many.

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::pipeline::Step;
use super::{Begun, Called, Dispatcher, Live, Request};
use crate::arguments::{self, Arguments};
use crate::call_key::CallKey;
use crate::envelope::Envelope;
use crate::many::{Part, Parts};
use crate::parking::Again;
use crate::running::{Desk, Room, Running};
use crate::targets::{Naming, Picked};
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_components::Tool;

/// What a request asks for, once its tool is known.
struct Found {
    /// The arguments as the tool takes them, or why every host refuses the call.
    arguments: Result<Arguments, Problem>,
    picked: Picked,
    /// What makes this call the same as one that waits.
    key: CallKey,
    /// Whether the client says that somebody has confirmed it.
    says_confirmed: bool,
    only_looks: bool,
}

impl Dispatcher {
    /// Begins a call, or takes up one that waits. Whatever happens, there is an envelope, and a record of it.
    pub async fn call(self: &Arc<Self>, mut request: Request) -> Called {
        let live = self.live().await;
        let found = self.find(&live, &mut request);
        let note = request.older.note();
        let begun = match found {
            Ok(found) => self.join_or_begin(live, request, found),
            Err(problem) => Begun::Runs(Box::new(self.refused(live, request, problem))),
        };
        Called { begun, note }
    }

    /// Finds the tool, validates the arguments, and chooses where the call works.
    fn find(&self, live: &Live, request: &mut Request) -> Result<Found, Problem> {
        let Some(tool) = live.registry.tool(&request.tool) else {
            // No call of it waits, so an answer to one is to another call.
            if let Some((id, answer)) = request.answered.take() {
                let key = CallKey::new(&request.tool, &request.arguments, None, []);
                self.parking.resume(&id?, &key, answer)?;
            }
            return Err(live.unknown_tool(&request.tool));
        };
        if let Some(agent_id) = arguments::take_agent(tool, &mut request.arguments) {
            request.caller.agent_id = Some(agent_id);
        }
        request.older.put_right(tool, &mut request.tool, &mut request.arguments)?;
        let says_confirmed = arguments::take_confirmed(tool, &mut request.arguments, request.two_step)?;
        let hosts = arguments::take_host(tool, &mut request.arguments)?;
        let arguments = arguments::check(&live.validators, tool, request.arguments.clone(), &request.older);
        let picked = self.pick(live, tool, hosts.as_deref(), request)?;
        let agent_id = request.caller.agent_id.as_deref();
        let key = CallKey::new(&request.tool, &request.arguments, agent_id, picked.names());
        Ok(Found { arguments, picked, key, says_confirmed, only_looks: tool.risk == Risk::ReadOnly })
    }

    /// Where a call works.
    fn pick(
        &self,
        live: &Live,
        tool: &Tool,
        said: Option<&[String]>,
        request: &Request,
    ) -> Result<Picked, Problem> {
        if tool.on_controller {
            let of_host = live.is_of_host(&tool.name);
            return if of_host { Ok(self.targets.controller()) } else { self.targets.here() }
                .map(Picked::One);
        }
        let changes = tool.risk > Risk::ReadOnly && !arguments::is_dry_run(tool, &request.arguments);
        self.targets.pick(&Naming { said, has_session: request.caller.has_session, changes })
    }

    /// What a person has decided goes on, whatever else is said of the same call.
    fn join_or_begin(self: &Arc<Self>, live: Arc<Live>, mut request: Request, found: Found) -> Begun {
        let resumed = match request.answered.take() {
            Some((id, answer)) => match id.and_then(|id| self.parking.resume(&id, &found.key, answer)) {
                Ok(running) => Some(running),
                Err(problem) => Some(self.refused(live.clone(), request.clone(), problem)),
            },
            None if found.says_confirmed => self.parking.confirmed(&found.key),
            None => None,
        };
        let running = match resumed {
            Some(running) => running,
            None => match self.parking.again(&found.key) {
                Some(Again::Decided(running)) => running,
                Some(Again::Waits(question)) => return Begun::Waits(question),
                None => {
                    let says_confirmed = found.says_confirmed;
                    self.begin(live, request, found).said_to_be_confirmed(says_confirmed)
                }
            },
        };
        Begun::Runs(Box::new(running))
    }

    /// A call that is refused already, for its answer and its record.
    fn refused(self: &Arc<Self>, live: Arc<Live>, request: Request, problem: Problem) -> Running {
        let target = self.targets.usual().clone();
        let key = CallKey::new(&request.tool, &request.arguments, None, [target.name()]);
        self.begin_on(Step { live, request, arguments: Err(problem), target }, key, &self.room)
    }

    fn begin(self: &Arc<Self>, live: Arc<Live>, request: Request, found: Found) -> Running {
        let Found { arguments, picked, key, only_looks, .. } = found;
        match picked {
            Picked::One(target) => {
                let room = if live.is_of_host(&request.tool) { &self.room_of_host } else { &self.room };
                self.begin_on(Step { live, request, arguments, target }, key, room)
            }
            Picked::Many(targets) => {
                let parts = targets.into_iter().map(|target| {
                    let (live, request, arguments) = (live.clone(), request.clone(), arguments.clone());
                    Step { live, request, arguments, target }
                });
                self.begin_on_many(parts.collect(), &request, key, only_looks)
            }
        }
    }

    fn begin_on(self: &Arc<Self>, step: Step, key: CallKey, room: &Room) -> Running {
        let dispatcher = self.clone();
        let about = step.request.about(step.target.name());
        Running::begin(about, key, room, move |desk, progress, cancelled| async move {
            dispatcher.run(step, desk, progress, cancelled).await
        })
    }

    /// A call of its own on each host, which are put on record each for itself, and one answer of them all.
    fn begin_on_many(
        self: &Arc<Self>,
        steps: Vec<Step>,
        request: &Request,
        key: CallKey,
        only_looks: bool,
    ) -> Running {
        let dispatcher = self.clone();
        let about = request.about(&format!("{} hosts", steps.len()));
        let tool = about.tool.clone();
        Running::begin(about, key, &self.room, move |desk, _, cancelled| async move {
            dispatcher.many(steps, tool, only_looks, desk, cancelled).await
        })
    }

    async fn many(
        self: &Arc<Self>,
        steps: Vec<Step>,
        tool: String,
        only_looks: bool,
        desk: Arc<Desk>,
        cancelled: CancellationToken,
    ) -> Envelope {
        let started = Instant::now();
        if only_looks {
            desk.executed().decided();
        }
        let room = self.room.of_parts(steps.len());
        let parts = steps.into_iter().map(|step| {
            let host = step.target.name().to_owned();
            let key = CallKey::new(&step.request.tool, &step.request.arguments, None, [host.as_str()]);
            Part { host, running: self.begin_on(step, key, &room) }
        });
        let serial = (!only_looks).then_some(self.loaded.config.ssh.serial.get() as usize);
        let mut all = Parts::new(tool.clone(), parts.collect(), serial, desk.executed().clone());
        all.run(&*desk, &cancelled).await;
        // Thousands of rows take seconds.
        let folded = tokio::task::spawn_blocking(move || all.envelope(started)).await;
        folded.unwrap_or_else(|error| {
            tracing::error!(tool, %error, "the answers of many hosts are lost");
            let problem =
                Problem::new("INTERNAL_ERROR", Category::Internal, "the host failed; its log says how");
            Envelope::failure(&tool, "many hosts", started, None, problem)
        })
    }
}
