//! One tool call on one host, in seven steps.
//!
//! 1. The tool is found, with older spellings put right: [`begin`](super::begin).
//! 2. The arguments are validated, and the common ones split off: there as well, before a host is chosen or a call that
//!    waits is joined.
//! 3. The target is chosen there too; its facts choose the module where several have the tool.
//! 4. The module is instantiated in a fresh store, with what this one call may reach.
//! 5. It looks, and hands over a plan where the tool changes something.
//! 6. Each command is held against the grants, and a plan goes through the gate as a whole.
//! 7. What the module answers becomes the envelope, and is put on record.

use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Caller, Dispatcher, Live, Request};
use crate::answer::{self, Answer};
use crate::arguments::Arguments;
use crate::call::{Call, Routed};
use crate::connections::Control;
use crate::envelope::Envelope;
use crate::jobs::JobsOf;
use crate::retry;
use crate::running::Desk;
use crate::session::Known;
use crate::turns::Busy;
use host_audit::Durability;
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_capability::Grants;
use host_components::{
    Anew, CallContext, Calling, Connections, Handing, Jobs, Module, Progress, Reach, Reply, Session, Shape,
    Times, Tool,
};
use host_gate::{CONFIRMATION_REQUIRED, Held, Origin, target_used};
use host_target::{Facts, Target};

/// What a module has left once its plan was interrupted: to say what was undone.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A call on one host, as it comes from the first steps.
pub(super) struct Step {
    pub(super) live: Arc<Live>,
    pub(super) request: Request,
    /// The arguments as the tool takes them, or why the call is refused.
    pub(super) arguments: Result<Arguments, Problem>,
    pub(super) target: Arc<Target>,
}

/// The module that answers a call, its tool, and the target's facts by which they were chosen.
struct Chosen {
    module: Arc<Module>,
    tool: Tool,
    facts: Arc<Facts>,
}

impl Dispatcher {
    /// Steps 3 to 7. Whatever happens, there is an envelope, and a record of it.
    pub(super) async fn run(
        &self,
        step: Step,
        desk: Arc<Desk>,
        progress: Progress,
        cancelled: CancellationToken,
    ) -> Envelope {
        let started = Instant::now();
        let Step { live, request, arguments, target } = step;
        let call = called(&request, desk);
        let answer = self
            .unless_cancelled(&call, &target, started, cancelled, async {
                let arguments = arguments?;
                call.desk.take().await.map_err(Busy::into_problem)?;
                let chosen = self.choose(&live, &request.tool, &target, &call, &arguments).await?;
                let context = self.context(&live, &chosen, &target, &call, &arguments, progress).await?;
                let reply = self.look(&chosen, &arguments, context, &call).await?;
                self.answer(&chosen, &arguments, reply)
            })
            .await;
        let mut envelope = call.envelope(&call.origin.tool, target.name(), started, answer);
        envelope.restored(target.restored_since(started));
        // Never the arguments: what a caller says may be secret.
        let error = envelope.error.as_ref().map(|error| error.error_code.as_str());
        tracing::info!(tool = call.origin.tool, duration_ms = envelope.duration_ms, error, "called");
        self.record(&call, &envelope);
        envelope
    }

    /// The end of an answer's making, or of the call where that is cancelled. Questions are put on record as they come.
    async fn unless_cancelled(
        &self,
        call: &Call,
        target: &Target,
        started: Instant,
        cancelled: CancellationToken,
        answering: impl Future<Output = Result<(Answer, Reply), Problem>>,
    ) -> Result<(Answer, Reply), Problem> {
        let mut answering = pin!(answering);
        let cancelled = async {
            cancelled.cancelled().await;
            // What it has begun is undone or done, and it says which.
            if call.executed.interrupt() {
                call.executed.over().await;
                tokio::time::sleep(LAST_WORDS).await;
            }
        };
        let mut cancelled = pin!(cancelled);
        let mut questions = call.desk.questions_put();
        loop {
            tokio::select! {
                biased;
                // A question is on record whatever becomes of it, and before it.
                Some(_on_record) = questions.recv() => {
                    let asked = Problem::new(CONFIRMATION_REQUIRED, Category::Denied, "");
                    self.record(call, &call.envelope(&call.origin.tool, target.name(), started, Err(asked)));
                }
                answer = &mut answering => return answer,
                // Dropping the call drops its store and ends the process groups that it started; its plan is the gate's.
                () = &mut cancelled => {
                    return Err(Problem::new("CANCELLED", Category::Other, "the call was cancelled"));
                }
            }
        }
    }

    /// Step 3: the target's facts choose the module.
    async fn choose(
        &self,
        live: &Live,
        name: &str,
        target: &Target,
        call: &Call,
        arguments: &Arguments,
    ) -> Result<Chosen, Problem> {
        let facts = target.facts().await?;
        let (module, tool) = live.route(name, &facts)?;
        let used = target_used(target, &facts, target.host_key().await);
        if tool.risk == Risk::ReadOnly {
            call.executed.decided();
        }
        call.routed.get_or_init(|| {
            Routed::new(&call.origin, &module, &tool, used, &facts.family, arguments.dry_run)
        });
        Ok(Chosen { module, tool, facts })
    }

    /// Step 4: what this one call may reach. Of a tool that changes something, the target is this call's alone.
    async fn context(
        &self,
        live: &Arc<Live>,
        Chosen { module, tool, facts }: &Chosen,
        target: &Arc<Target>,
        call: &Call,
        arguments: &Arguments,
        progress: Progress,
    ) -> Result<CallContext, Problem> {
        let dry_run = arguments.dry_run;
        let origin =
            call.routed.get().map_or_else(|| Arc::new(call.origin.clone()), |routed| routed.origin.clone());
        let grants = self.grants(module, target).await?;
        let turn = Held::default();
        // What is about connections or about other calls takes its turn only where it has a plan.
        if tool.risk > Risk::ReadOnly && !dry_run && !live.is_of_host(&tool.name) {
            turn.hold(self.gate.turn(target).await?);
        }
        let session = match module.imports("session") {
            true => Some(self.session(live, target, facts).await),
            false => None,
        };
        let connections = module.imports("target-control").then(|| {
            let how = (call.has_session, dry_run);
            let asked = (origin.clone(), call.desk.clone() as Arc<dyn host_gate::Ask>);
            Arc::new(Control::new(&self.targets, target, how, asked)) as Arc<dyn Connections>
        });
        let jobs = module
            .imports("jobs")
            .then(|| Arc::new(JobsOf::new(&self.jobs, call.agent_id.clone(), dry_run)) as Arc<dyn Jobs>);
        Ok(CallContext {
            tool: tool.name.clone(),
            risk: tool.risk,
            target: target.clone(),
            grants,
            learns: module.learns(),
            times: Times { times: 1, ceiling: self.loaded.config.errors.ceiling() },
            reach: Reach { session, connections, jobs },
            executed: call.executed.clone(),
            gate: self.gate.clone(),
            origin,
            dry_run,
            turn,
            ask: call.desk.clone(),
            handing: Handing::Kept(Arc::default()),
            plan: call.plan.clone(),
            progress,
            facts: facts.clone(),
        })
    }

    /// Steps 5 and 6: the module looks, again where that may help, and what it wants done goes through the gate.
    async fn look(
        &self,
        Chosen { module, tool, .. }: &Chosen,
        arguments: &Arguments,
        context: CallContext,
        call: &Call,
    ) -> Result<Reply, Problem> {
        let pushed_down = (tool.shape == Shape::Listing).then(|| self.limit(arguments));
        let calling = Arc::new(Calling {
            module: module.clone(),
            tool: tool.clone(),
            arguments: arguments.own.clone(),
            context: (pushed_down, arguments.filter.clone()),
        });
        let once = |times| {
            let mut once = context.clone();
            once.times.times = times;
            once.handing = Handing::Kept(Arc::default());
            once.handing = Handing::Applied(Arc::new(Anew { calling: calling.clone(), call: once.clone() }));
            module.call(tool, calling.arguments.clone(), calling.context.clone(), once)
        };
        let only_looks = || tool.risk == Risk::ReadOnly && call.plan.get().is_none();
        let rules = self.loaded.config.retries();
        let looked = retry::retrying(rules, only_looks, &call.tries, &context.progress, once).await;
        if looked.as_ref().is_err_and(|problem| problem.code == "CONNECTION_LOST") {
            context.target.loss_is_told().await;
        }
        looked
    }

    /// Step 7: the part of the envelope that the module's reply is. [`Dispatcher::run`] puts it on record.
    fn answer(
        &self,
        Chosen { module, tool, .. }: &Chosen,
        arguments: &Arguments,
        mut reply: Reply,
    ) -> Result<(Answer, Reply), Problem> {
        let answer = match answer::parse(module, tool, &mut reply)? {
            Value::Array(items) => {
                Answer::listing(items, reply.total, arguments.filter.clone(), self.limit(arguments))
            }
            data => Answer { data, page: None },
        };
        Ok((answer, reply))
    }

    fn limit(&self, arguments: &Arguments) -> u32 {
        arguments.limit.unwrap_or_else(|| self.loaded.config.output.default_limit.get())
    }

    fn record(&self, call: &Call, envelope: &Envelope) {
        if let Err(error) = self.gate.audit().append(&call.event(envelope), Durability::Lazy) {
            tracing::error!(tool = call.origin.tool, %error, "a call is not on record");
        }
    }

    /// A module's, where anything may run at all: a call about connections has this machine as its target even where
    /// nothing may be run on it.
    async fn grants(&self, module: &Module, target: &Target) -> Result<Arc<Grants>, Problem> {
        let grants = match module.grants().await {
            Ok(grants) => grants,
            Err(problem) => {
                // It isn't what was listed; the next call finds what it is.
                self.reload().await;
                return Err(problem);
            }
        };
        Ok(if target.is_remote() || self.targets.here().is_ok() { grants } else { Arc::default() })
    }

    async fn session(&self, live: &Arc<Live>, target: &Arc<Target>, facts: &Facts) -> Arc<Session> {
        let first_run = std::mem::take(&mut *self.first_run.lock().unwrap_or_else(PoisonError::into_inner));
        let known = Known::new(live, target, &self.loaded, self.mode, first_run, self.knowledge());
        Arc::new(known.session(facts).await)
    }
}

/// The call as it is put on record, before a module answers it.
fn called(request: &Request, desk: Arc<Desk>) -> Call {
    let Request { tool, arguments, older, caller, .. } = request;
    let Caller { has_session, agent_id, client, protocol, trace_id } = caller.clone();
    let name = host_text::redact::excerpt(tool, 64);
    let trace_id = trace_id.unwrap_or_else(|| host_base::id::random().unwrap_or_default());
    let protocol = protocol.unwrap_or_else(|| "cli".to_owned());
    let origin = Origin::new(trace_id, client, protocol, name, arguments);
    let origin = Origin { called_as: older.tool.clone(), ..origin };
    let executed = desk.executed().clone();
    let (plan, routed, tries) = Default::default();
    Call { origin, executed, plan, routed, desk, tries, has_session, agent_id }
}
