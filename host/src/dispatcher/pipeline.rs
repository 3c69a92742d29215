//! One tool call on one host, in seven steps.
//!
//! 1. [`begin`](super::begin) finds the tool and replaces older names in the request.
//! 2. It also validates the arguments and takes out those that every tool has, before it chooses a host or joins a call
//!    that waits.
//! 3. It chooses the target as well. Here the target's facts choose the module, where several modules have the tool.
//! 4. The module is instantiated in a fresh store, with what this one call may reach.
//! 5. The module looks, and hands over a plan where the tool changes something.
//! 6. Each command is checked against the grants, and a plan goes through the gate as a whole.
//! 7. The module's answer becomes the envelope, and the call is put on record.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::call_state::{CallState, RoutedCall, module_used};
use super::session_info::SessionInfo;
use super::tool_calls::{CallingModule, ModuleToolCaller};
use super::{Caller, Dispatcher, LoadedModules, Request};
use crate::answers::envelope::Envelope;
use crate::answers::reply::{self, AnswerData};
use crate::arguments::Arguments;
use crate::calls;
use crate::calls::confirmation_channel::ConfirmationChannel;
use crate::calls::jobs::VisibleJobs;
use crate::calls::scheduler::SchedulerFull;
use crate::retry;
use crate::targets::control::TargetControl;
use host_audit::Durability;
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_capability::Grants;
use host_components::{
    CallContext, ConnectionService, JobService, Module, PlanHandling, ReplanCall, Reply, SessionService,
    Shape, SystemServices, TimeLimits, Tool, ToolCall, ToolCaller,
};
use host_gate::{CONFIRMATION_REQUIRED, Origin, ProgressReporter, TargetLockSlot, target_used};
use host_target::{Facts, Target};

/// The time that a module has to answer after its plan was interrupted and undone.
const CANCELLED_ANSWER_TIME: Duration = Duration::from_secs(5);

/// A call on one host after the first two steps.
pub(super) struct PreparedCall {
    pub(super) modules: Arc<LoadedModules>,
    pub(super) request: Request,
    /// The arguments as the tool takes them, or why the call is refused.
    pub(super) arguments: Result<Arguments, Problem>,
    pub(super) target: Arc<Target>,
    /// The module that makes the call within a call of its own. None where a client makes it.
    pub(super) calling: Option<CallingModule>,
}

/// The module that answers a call, its tool, and the target's facts that chose them.
struct ChosenModule {
    module: Arc<Module>,
    tool: Tool,
    facts: Arc<Facts>,
}

impl Dispatcher {
    /// Runs steps 3 to 7. Whatever happens, the call has an envelope and is on record.
    pub(super) async fn run(
        self: &Arc<Self>,
        call: PreparedCall,
        channel: Arc<ConfirmationChannel>,
        progress: ProgressReporter,
        cancelled: CancellationToken,
    ) -> Envelope {
        let started = Instant::now();
        let PreparedCall { modules, request, arguments, target, calling } = call;
        let call = call_state(&request, channel, calling);
        let answering = pin!(async {
            let arguments = arguments?;
            call.channel.acquire_slot().await.map_err(SchedulerFull::into_problem)?;
            let chosen = self.choose_module(&modules, &request.tool, &target, &call, &arguments).await?;
            let context = self.context(&modules, &chosen, &target, &call, &arguments, progress).await?;
            let reply = self.call_module(&chosen, &arguments, context, &call).await?;
            self.answer(&chosen, &arguments, reply)
        });
        let answer = self.unless_cancelled(&call, &target, started, cancelled, answering).await;
        let mut envelope = call.envelope(&call.origin.tool, target.name(), started, answer);
        envelope.set_connection_downtime(target.restored_since(started));
        // The arguments are not logged: they may hold secrets.
        let error = envelope.error.as_ref().map(|error| error.error_code.as_str());
        tracing::info!(tool = call.origin.tool, duration_ms = envelope.duration_ms, error, "called");
        self.record(&call, &envelope);
        envelope
    }

    /// Waits for the answer, or for the end of a cancelled call. Records each question before it is shown.
    async fn unless_cancelled(
        &self,
        call: &CallState,
        target: &Target,
        started: Instant,
        cancelled: CancellationToken,
        mut answering: Pin<&mut impl Future<Output = Result<(AnswerData, Reply), Problem>>>,
    ) -> Result<(AnswerData, Reply), Problem> {
        let cancelled = async {
            cancelled.cancelled().await;
            // A plan that has begun is undone or finished, and the module answers which.
            if call.command_log.cancel_change() {
                call.command_log.wait_until_over().await;
                tokio::time::sleep(CANCELLED_ANSWER_TIME).await;
            }
        };
        let mut cancelled = pin!(cancelled);
        let mut questions = call.channel.questions_to_record();
        loop {
            tokio::select! {
                biased;
                // First in this list, so that a question is on record before its call ends. Dropping the signal at the end of
                // this block lets the question go on.
                Some(_recorded) = questions.recv() => {
                    let asked = Problem::new(CONFIRMATION_REQUIRED, Category::Denied, "");
                    self.record(call, &call.envelope(&call.origin.tool, target.name(), started, Err(asked)));
                }
                answer = &mut answering => return answer,
                // Dropping the call drops its store and ends the process groups that it started. Its plan belongs to the
                // gate, and goes on.
                () = &mut cancelled => {
                    return Err(calls::cancelled());
                }
            }
        }
    }

    /// Step 3: chooses the module by the target's facts.
    async fn choose_module(
        &self,
        modules: &Arc<LoadedModules>,
        name: &str,
        target: &Target,
        call: &CallState,
        arguments: &Arguments,
    ) -> Result<ChosenModule, Problem> {
        let facts = target.facts().await?;
        let (module, tool) = modules.route(name, &facts)?;
        let used = target_used(target, &facts, target.host_key().await);
        if tool.risk == Risk::ReadOnly {
            call.command_log.mark_decided();
        }
        call.routed.get_or_init(|| {
            let chosen = (modules, &*module);
            RoutedCall::new(&call.origin, chosen, &tool, used, &facts.family, arguments.dry_run)
        });
        Ok(ChosenModule { module, tool, facts })
    }

    /// Step 4: puts together what this one call may reach. A tool that changes something locks the target.
    async fn context(
        self: &Arc<Self>,
        modules: &Arc<LoadedModules>,
        ChosenModule { module, tool, facts }: &ChosenModule,
        target: &Arc<Target>,
        call: &CallState,
        arguments: &Arguments,
        progress: ProgressReporter,
    ) -> Result<CallContext, Problem> {
        let dry_run = arguments.dry_run;
        let origin =
            call.routed.get().map_or_else(|| Arc::new(call.origin.clone()), |routed| routed.origin.clone());
        let grants = self.grants(module, target).await?;
        let lock = TargetLockSlot::default();
        // A tool about the server itself locks the target only once it has a plan.
        if tool.risk > Risk::ReadOnly && !dry_run && !modules.is_server_tool(&tool.name) {
            // Boxed, because it is large, and the calls that only look would be as large.
            lock.hold(Box::pin(self.gate.lock_target(target)).await?);
        }
        let session = module.imports("session").then(|| {
            let info = SessionInfo {
                modules: modules.clone(),
                target: target.clone(),
                facts: facts.clone(),
                safety: self.loaded_config.config.safety.clone(),
                integration_mode: self.loaded_config.config.integration_mode,
                config_path: self.loaded_config.path.display().to_string(),
                mode: self.mode,
                first_run: self.first_run.clone(),
                knowledge: self.knowledge().clone(),
                client_tools: call.client_tools.clone(),
            };
            Arc::new(info) as Arc<dyn SessionService>
        });
        let connections = module.imports("target-control").then(|| {
            let mode = (call.has_session, dry_run);
            let caller = (origin.clone(), call.channel.clone() as Arc<dyn host_gate::Confirmer>);
            Arc::new(TargetControl::new(&self.targets, target, mode, caller)) as Arc<dyn ConnectionService>
        });
        let jobs = module.imports("jobs").then(|| {
            Arc::new(VisibleJobs::new(&self.jobs, call.agent_id.clone(), dry_run)) as Arc<dyn JobService>
        });
        let calls_tools = call.calling.is_none() && module.imports("tool-calls");
        let tool_caller = calls_tools.then(|| {
            let caller = ModuleToolCaller::new(self, modules, module_used(module), target, call);
            Arc::new(caller) as Arc<dyn ToolCaller>
        });
        Ok(CallContext {
            tool: tool.name.clone(),
            risk: tool.risk,
            target: target.clone(),
            grants,
            learns: module.learns(),
            time_limits: TimeLimits { factor: 1, ceiling: self.loaded_config.config.errors.ceiling() },
            system_services: SystemServices { session, connections, jobs },
            command_log: call.command_log.clone(),
            gate: self.gate.clone(),
            origin,
            dry_run,
            target_lock: lock,
            confirmer: call.channel.clone(),
            plan_handling: PlanHandling::Kept(Arc::default()),
            plan: call.plan.clone(),
            progress,
            facts: facts.clone(),
            tool_caller,
            budget: call.calling.as_ref().map(|calling| calling.budget.clone()),
        })
    }

    /// Steps 5 and 6: calls the module, and calls it again where that may help. Its plan goes through the gate.
    async fn call_module(
        &self,
        ChosenModule { module, tool, .. }: &ChosenModule,
        arguments: &Arguments,
        context: CallContext,
        call: &CallState,
    ) -> Result<Reply, Problem> {
        let pushed_down = (tool.shape == Shape::Listing).then(|| self.limit(arguments));
        let calling = Arc::new(ToolCall {
            module: module.clone(),
            tool: tool.clone(),
            arguments: arguments.own.clone(),
            context: (pushed_down, arguments.filter.clone()),
        });
        let once = |times| {
            let mut once = context.clone();
            once.time_limits.factor = times;
            once.plan_handling = PlanHandling::Kept(Arc::default());
            once.plan_handling = PlanHandling::Applied(Arc::new(ReplanCall {
                tool_call: calling.clone(),
                call: once.clone(),
            }));
            module.call(tool, calling.arguments.clone(), calling.context.clone(), once)
        };
        let only_looks = || tool.risk == Risk::ReadOnly && call.plan.get().is_none();
        let policy = self.loaded_config.config.retry_policy();
        let reply = retry::with_retries(policy, only_looks, &call.retries, &context.progress, once).await;
        if reply.as_ref().is_err_and(|problem| problem.code == "CONNECTION_LOST") {
            context.target.note_told_loss().await;
        }
        reply
    }

    /// Step 7: checks the module's reply and applies `limit` and `filter`. [`Dispatcher::run`] makes the envelope of it and
    /// puts it on record.
    fn answer(
        &self,
        ChosenModule { module, tool, .. }: &ChosenModule,
        arguments: &Arguments,
        mut reply: Reply,
    ) -> Result<(AnswerData, Reply), Problem> {
        let answer = match reply::parse(module, tool, &mut reply)? {
            Value::Array(items) => {
                AnswerData::listing(items, reply.total, arguments.filter.clone(), self.limit(arguments))
            }
            data => AnswerData { data, page: None },
        };
        Ok((answer, reply))
    }

    fn limit(&self, arguments: &Arguments) -> u32 {
        arguments.limit.unwrap_or_else(|| self.loaded_config.config.output.default_limit.get())
    }

    fn record(&self, call: &CallState, envelope: &Envelope) {
        if let Err(error) = self.gate.audit().append(&call.audit_event(envelope), Durability::Lazy) {
            tracing::error!(tool = call.origin.tool, %error, "a call is not on record");
        }
    }

    /// The module's grants. A call about connections has the server's own machine as its target, and gets no grants where
    /// nothing may run there.
    async fn grants(&self, module: &Module, target: &Target) -> Result<Arc<Grants>, Problem> {
        let grants = match module.grants().await {
            Ok(grants) => grants,
            Err(problem) => {
                // The module is no longer the one that was listed. The next call finds the one that is there now.
                self.reload().await;
                return Err(problem);
            }
        };
        Ok(if target.is_remote() || self.targets.local().is_ok() { grants } else { Arc::default() })
    }
}

/// The state of a call before its module is chosen.
fn call_state(
    request: &Request,
    channel: Arc<ConfirmationChannel>,
    calling: Option<CallingModule>,
) -> CallState {
    let Request { tool, arguments, aliases, caller, .. } = request;
    let Caller { has_session, agent_id, client, protocol, trace_id, tools: client_tools } = caller.clone();
    let name = host_text::redact::excerpt(tool, 64);
    let trace_id = trace_id.unwrap_or_else(|| host_base::id::random().unwrap_or_default());
    let protocol = protocol.unwrap_or_else(|| "cli".to_owned());
    let origin = Origin::new(trace_id, client, protocol, name, arguments);
    let called_by = calling.as_ref().map(|calling| calling.module.clone());
    let origin = Origin { called_as: aliases.tool.clone(), called_by, ..origin };
    let command_log = channel.command_log().clone();
    let (plan, routed, retries) = Default::default();
    CallState {
        origin,
        command_log,
        plan,
        routed,
        channel,
        retries,
        has_session,
        agent_id,
        calling,
        client_tools,
    }
}
