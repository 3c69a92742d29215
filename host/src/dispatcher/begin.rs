//! Turns a request into a call that runs: finds the tool, validates the arguments, chooses the target, and then joins the
//! call that waits for this request or begins a new one, on one host or on many.

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::pipeline::PreparedCall;
use super::{Dispatched, DispatchedCall, Dispatcher, LoadedModules, Request};
use crate::answers::envelope::Envelope;
use crate::arguments::{self, Arguments};
use crate::calls::call_handle::CallHandle;
use crate::calls::call_key::CallKey;
use crate::calls::call_pool::CallPool;
use crate::calls::confirmation_channel::ConfirmationChannel;
use crate::calls::multi_host::{HostCall, MultiHostCall};
use crate::calls::pending_calls::RepeatedCall;
use crate::targets::{Selected, Selector};
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_components::Tool;

/// A request whose tool and targets are known.
struct ResolvedRequest {
    /// The arguments as the tool takes them, or why every host refuses the call.
    arguments: Result<Arguments, Problem>,
    selected: Selected,
    /// The key by which a repeated call is recognized.
    key: CallKey,
    /// Whether the client says that somebody has confirmed the call.
    says_confirmed: bool,
    only_looks: bool,
}

impl Dispatcher {
    /// Begins a call, or takes up one that waits. Whatever happens, the call has an envelope and is on record.
    pub async fn call(self: &Arc<Self>, mut request: Request) -> Dispatched {
        let modules = self.modules().await;
        let resolved = self.resolve(&modules, &mut request);
        let note = request.aliases.note();
        let call = match resolved {
            Ok(resolved) => self.join_or_begin(modules, request, resolved),
            Err(problem) => DispatchedCall::Runs(Box::new(self.refused(modules, request, problem))),
        };
        Dispatched { call, note }
    }

    /// Finds the tool, validates the arguments, and chooses the targets.
    fn resolve(&self, modules: &LoadedModules, request: &mut Request) -> Result<ResolvedRequest, Problem> {
        let Some(tool) = modules.registry.tool(&request.tool) else {
            // No call of an unknown tool waits, so the answer is one to another call.
            if let Some((id, answer)) = request.answered.take() {
                let key = CallKey::new(&request.tool, &request.arguments, None, []);
                self.pending_calls.resume(&id?, &key, answer)?;
            }
            return Err(modules.unknown_tool(&request.tool, &request.arguments));
        };
        if let Some(agent_id) = arguments::take_agent(tool, &mut request.arguments) {
            request.caller.agent_id = Some(agent_id);
        }
        request.aliases.apply(&modules.validators, tool, &mut request.tool, &mut request.arguments)?;
        let says_confirmed = arguments::take_confirmed(tool, &mut request.arguments, request.two_step)?;
        let hosts = arguments::take_host(tool, &mut request.arguments)?;
        let arguments = arguments::check(
            &modules.validators,
            tool,
            hosts.as_deref(),
            request.arguments.clone(),
            &request.aliases,
        );
        let selected = self.select_targets(modules, tool, hosts.as_deref(), request)?;
        let agent_id = request.caller.agent_id.as_deref();
        let key = CallKey::new(&request.tool, &request.arguments, agent_id, selected.names());
        let only_looks = tool.risk == Risk::ReadOnly;
        Ok(ResolvedRequest { arguments, selected, key, says_confirmed, only_looks })
    }

    /// Chooses the targets of a call. `named` is what the call names as its hosts.
    fn select_targets(
        &self,
        modules: &LoadedModules,
        tool: &Tool,
        named: Option<&[String]>,
        request: &Request,
    ) -> Result<Selected, Problem> {
        if tool.on_controller {
            let is_server_tool = modules.is_server_tool(&tool.name);
            return if is_server_tool { Ok(self.targets.controller()) } else { self.targets.local() }
                .map(Selected::One);
        }
        let changes = tool.risk > Risk::ReadOnly && !arguments::is_dry_run(tool, &request.arguments);
        self.targets.select(&Selector { named, has_session: request.caller.has_session, changes })
    }

    /// Joins the call that waits for this request, or begins a new one. A call that a person has decided about goes on,
    /// whatever else the request says.
    fn join_or_begin(
        self: &Arc<Self>,
        modules: Arc<LoadedModules>,
        mut request: Request,
        resolved: ResolvedRequest,
    ) -> DispatchedCall {
        let key = &resolved.key;
        let resumed = match request.answered.take() {
            Some((id, answer)) => match id.and_then(|id| self.pending_calls.resume(&id, key, answer)) {
                Ok(call) => Some(call),
                Err(problem) => Some(self.refused(modules.clone(), request.clone(), problem)),
            },
            None if resolved.says_confirmed => self.pending_calls.take_confirmed(key),
            None => None,
        };
        let call = match resumed {
            Some(call) => call,
            None => match self.pending_calls.find_repeated(key) {
                Some(RepeatedCall::Decided(call)) => call,
                Some(RepeatedCall::Waits(question)) => return DispatchedCall::Waits(question),
                None => {
                    let says_confirmed = resolved.says_confirmed;
                    self.begin(modules, request, resolved).with_says_confirmed(says_confirmed)
                }
            },
        };
        DispatchedCall::Runs(Box::new(call))
    }

    /// A call that is refused already. It still runs, for its envelope and its record.
    fn refused(
        self: &Arc<Self>,
        modules: Arc<LoadedModules>,
        request: Request,
        problem: Problem,
    ) -> CallHandle {
        let target = self.targets.usual().clone();
        let key = CallKey::new(&request.tool, &request.arguments, None, [target.name()]);
        let call = PreparedCall { modules, request, arguments: Err(problem), target, calling: None };
        self.begin_on(call, key, &self.pool)
    }

    fn begin(
        self: &Arc<Self>,
        modules: Arc<LoadedModules>,
        request: Request,
        resolved: ResolvedRequest,
    ) -> CallHandle {
        let ResolvedRequest { arguments, selected, key, only_looks, .. } = resolved;
        match selected {
            Selected::One(target) => {
                let is_server_tool = modules.is_server_tool(&request.tool);
                let pool = if is_server_tool { &self.server_tool_pool } else { &self.pool };
                let call = PreparedCall { modules, request, arguments, target, calling: None };
                self.begin_on(call, key, pool)
            }
            Selected::Many(targets) => {
                let calls = targets.into_iter().map(|target| {
                    let (modules, request, arguments) = (modules.clone(), request.clone(), arguments.clone());
                    PreparedCall { modules, request, arguments, target, calling: None }
                });
                self.begin_on_many(calls.collect(), &request, key, only_looks)
            }
        }
    }

    pub(super) fn begin_on(
        self: &Arc<Self>,
        call: PreparedCall,
        key: CallKey,
        pool: &CallPool,
    ) -> CallHandle {
        let dispatcher = self.clone();
        let info = call.request.info(call.target.name());
        CallHandle::start(info, key, pool, move |channel, progress, cancelled| async move {
            dispatcher.run(call, channel, progress, cancelled).await
        })
    }

    /// Begins one call on each host, with a record of its own. Their answers become one envelope.
    fn begin_on_many(
        self: &Arc<Self>,
        calls: Vec<PreparedCall>,
        request: &Request,
        key: CallKey,
        only_looks: bool,
    ) -> CallHandle {
        let dispatcher = self.clone();
        let info = request.info(&format!("{} hosts", calls.len()));
        let tool = info.tool.clone();
        CallHandle::start(info, key, &self.pool, move |channel, _, cancelled| async move {
            dispatcher.run_on_many(calls, tool, only_looks, channel, cancelled).await
        })
    }

    async fn run_on_many(
        self: &Arc<Self>,
        calls: Vec<PreparedCall>,
        tool: String,
        only_looks: bool,
        channel: Arc<ConfirmationChannel>,
        cancelled: CancellationToken,
    ) -> Envelope {
        let started = Instant::now();
        if only_looks {
            channel.command_log().mark_decided();
        }
        let command_log = channel.command_log().clone();
        let pool = self.pool.for_hosts(calls.len(), command_log.output.clone());
        let calls = calls.into_iter().map(|call| {
            let host = call.target.name().to_owned();
            let key = CallKey::new(&call.request.tool, &call.request.arguments, None, [host.as_str()]);
            HostCall { host, call: self.begin_on(call, key, &pool) }
        });
        let serial = (!only_looks).then_some(self.loaded_config.config.ssh.serial.get() as usize);
        let mut request = MultiHostCall::new(tool.clone(), calls.collect(), serial, command_log);
        request.run(&*channel, &cancelled).await;
        // Folding thousands of rows takes seconds.
        let folded = tokio::task::spawn_blocking(move || request.envelope(started)).await;
        folded.unwrap_or_else(|error| {
            tracing::error!(tool, %error, "the answers of many hosts are lost");
            let problem =
                Problem::new("INTERNAL_ERROR", Category::Internal, "the host failed; its log says how");
            Envelope::failure(&tool, "many hosts", started, None, problem)
        })
    }
}
