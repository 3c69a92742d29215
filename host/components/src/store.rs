//! The store of one call. It counts the call's memory, time and calls into the host, and ends with the call.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::bindings::sysadmin::module::types::Place;
use super::call_clock::CallClock;
use super::limits::{CallBudget, ExceededLimit, GuestTime, Limiter};
use super::log::CallLog;
use super::system_services::SystemServices;
use super::tool_caller::ToolCaller;
use host_base::Risk;
use host_base::problem::Problem;
use host_capability::Grants;
use host_gate::CommandLog;
use host_gate::Origin;
use host_gate::{Confirmer, ProgressReporter};
use host_gate::{Gate, Mounts, ObservedOutputs, Outcome, PlannedChange, Replan, TargetLockSlot};
use host_knowledge::LoadedProfile;
use host_target::{Facts, Target};

/// The number of problems of one call whose details are kept.
const MOST_KEPT: usize = 16;

/// The handling of a plan that a module hands over.
#[derive(Clone)]
pub enum PlanHandling {
    /// The plan goes through the gate, which may have it made once more.
    Applied(Arc<dyn Replan>),
    /// The plan is only kept, to be compared with one that was confirmed.
    Kept(Arc<Mutex<Option<PlannedChange>>>),
}

/// All that a tool call may reach. While a module is described there is none, and every import traps.
#[derive(Clone)]
pub struct CallContext {
    /// The tool's name.
    pub tool: String,
    /// The tool's risk, as its description names it.
    pub risk: Risk,
    /// The machine on which commands run and files are read.
    pub target: Arc<Target>,
    /// The facts about the target.
    pub facts: Arc<Facts>,
    /// The grants of the module.
    pub grants: Arc<Grants>,
    /// True where the profiles that the module asks for allow it to look at those services.
    pub learns: bool,
    /// The time limits of the call and its commands.
    pub time_limits: TimeLimits,
    /// The services behind the interfaces that only the host's own modules import.
    pub system_services: SystemServices,
    /// The log that the commands are added to.
    pub command_log: Arc<CommandLog>,
    /// The gate that plans go through.
    pub gate: Arc<Gate>,
    /// The client, the tool, the module and the arguments.
    pub origin: Arc<Origin>,
    /// True for a dry run, which changes nothing.
    pub dry_run: bool,
    /// The lock on the target, for a tool that changes it.
    pub target_lock: TargetLockSlot,
    /// The way to ask for a confirmation.
    pub confirmer: Arc<dyn Confirmer>,
    /// The handling of the call's plan.
    pub plan_handling: PlanHandling,
    /// The outcome of the plan, once there is one.
    pub plan: Arc<OnceLock<Result<Outcome, Problem>>>,
    /// The function that is told how far the tool is, in the tool's own words.
    pub progress: ProgressReporter,
    /// The way to call other modules' tools. None in a call that a module makes itself, and where the module imports no
    /// such calls.
    pub tool_caller: Option<Arc<dyn ToolCaller>>,
    /// The budget of the call within which a module makes this one. None where a client makes it: each attempt then has a
    /// budget of its own.
    pub budget: Option<Arc<CallBudget>>,
}

/// The time limits of a call and its commands.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimits {
    /// The factor on the usual time. It is 2 where the usual time was not enough.
    pub factor: u32,
    /// The longest time, where the operator has set one.
    pub ceiling: Option<Duration>,
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self { factor: 1, ceiling: None }
    }
}

impl TimeLimits {
    /// The limit for something that usually has this one.
    pub(super) fn of(self, usual: Duration) -> Duration {
        let longer = usual.saturating_mul(self.factor);
        self.ceiling.map_or(longer, |ceiling| ceiling.min(longer))
    }
}

/// The data in a store.
pub(super) struct State {
    pub(super) wasi: WasiCtx,
    pub(super) table: ResourceTable,
    pub(super) limiter: Limiter,
    pub(super) guest_time: GuestTime,
    /// What the call has used of its limits, together with the calls within it.
    pub(super) budget: Arc<CallBudget>,
    pub(super) most_host_calls: u32,
    /// The number of commands that the guest reads from.
    pub(super) streams: usize,
    /// The streams among them that are looked through for secrets, by their handles, each with the end of what was read
    /// before.
    pub(super) looked_through: HashMap<u32, Vec<u8>>,
    pub(super) clock: Arc<CallClock>,
    pub(super) call: Option<Call>,
}

/// A call under way: its context, and its log.
pub(super) struct Call {
    pub(super) context: CallContext,
    pub(super) log: Arc<CallLog>,
    /// The SHA-256 of each file that was read whole. None stands for a file that did not exist.
    pub(super) file_hashes: Mutex<HashMap<String, Option<String>>>,
    /// The mounts of the target, once a path was looked at.
    pub(super) mounts: OnceCell<Arc<Mounts>>,
    /// The outputs of the commands by which the module looked.
    pub(super) observed: Arc<ObservedOutputs>,
    learned: Mutex<Learned>,
    /// Problems with details that a guest can't be told.
    kept: Mutex<Vec<Problem>>,
}

/// The grants that a call has got by profiles of services.
#[derive(Default)]
struct Learned {
    /// The grants of each profile, by its id.
    grants: Vec<(String, Arc<Grants>)>,
    /// All grants of the call together. None after a profile was added, until they are needed.
    allowed: Option<Arc<Grants>>,
}

impl Call {
    pub(super) fn new(context: CallContext, module: &Arc<str>) -> Self {
        let log = Arc::new(CallLog::new(module));
        let (file_hashes, mounts, observed, learned, kept) = Default::default();
        Self { context, log, file_hashes, mounts, observed, learned, kept }
    }

    /// The current grants of the call.
    pub(super) fn grants(&self) -> Arc<Grants> {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let Learned { grants, allowed } = &mut *learned;
        if grants.is_empty() {
            return self.context.grants.clone();
        }
        let all = || self.context.grants.with(grants.iter().map(|(_, grants)| &**grants));
        allowed.get_or_insert_with(|| Arc::new(all())).clone()
    }

    /// Adds the grants of a profile to this call.
    pub(super) fn learn(&self, known: &LoadedProfile) {
        if !self.learns {
            return;
        }
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        if learned.grants.iter().all(|(id, _)| *id != known.profile.id) {
            learned.grants.push((known.profile.id.clone(), known.grants(&self.facts.family)));
            learned.allowed = None;
        }
    }

    /// Keeps a problem whose details only the host knows.
    pub(super) fn keep(&self, problem: &Problem) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST_KEPT {
            kept.push(problem.clone());
        }
    }

    /// The host's own problem with its details, where the guest hands on a problem as it was told. Otherwise the
    /// guest's problem.
    fn recognized(&self, problem: Problem) -> Problem {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |kept: &&Problem| (&kept.code, &kept.message) == (&problem.code, &problem.message);
        match kept.iter().rev().find(is_same) {
            Some(kept) => Problem { details: kept.details.clone(), ..problem },
            None => problem,
        }
    }
}

impl Deref for Call {
    type Target = CallContext;

    fn deref(&self) -> &CallContext {
        &self.context
    }
}

impl State {
    /// Counts a call into the host and returns the call. It traps where there is no call, or one call into the host too
    /// many.
    pub(super) fn call(&mut self) -> wasmtime::Result<&Call> {
        if self.budget.count_host_call() > self.most_host_calls {
            return Err(ExceededLimit::HostCalls(self.most_host_calls).into());
        }
        match &self.call {
            Some(call) => Ok(call),
            None => Err(ExceededLimit::NoImportsWhileDescribing.into()),
        }
    }

    /// The problem that the guest answered with.
    pub(super) fn answered(&self, problem: Problem) -> Problem {
        match &self.call {
            Some(call) => call.recognized(problem),
            None => problem,
        }
    }

    /// The limit that the guest exceeded, if it did.
    pub(super) fn exceeded_limit(&self, trap: &wasmtime::Error) -> Option<ExceededLimit> {
        ExceededLimit::because(trap, self.limiter.refused)
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// The problem of an import that the contract has and this version of the host doesn't offer.
pub(super) fn unsupported(what: &str) -> Problem {
    Problem::new(
        "NOT_SUPPORTED",
        host_base::problem::Category::State,
        format!("this version of the host doesn't offer {what}"),
    )
}

/// Refuses the controller, on which nothing is granted yet.
pub(super) fn on_target(place: Place) -> Result<(), Problem> {
    match place {
        Place::Target => Ok(()),
        Place::Controller => Err(unsupported("commands and files of the controller")),
    }
}

#[cfg(test)]
impl CallContext {
    /// The context of a tool that looks at this machine, with a module that may do nothing.
    pub(super) fn of_a_test() -> Self {
        let target = Arc::new(Target::local(host_target::Overrides::default()));
        let origin = Origin::new(
            String::new(),
            String::new(),
            "cli".to_owned(),
            "look".to_owned(),
            &serde_json::Map::new(),
        );
        Self {
            tool: "look".to_owned(),
            risk: Risk::ReadOnly,
            facts: Arc::new(Facts::default()),
            target,
            grants: Arc::new(Grants::new("test")),
            learns: false,
            time_limits: TimeLimits::default(),
            system_services: SystemServices::default(),
            command_log: Arc::default(),
            gate: Arc::new(Gate::of_a_test()),
            origin: Arc::new(origin),
            dry_run: false,
            target_lock: TargetLockSlot::default(),
            confirmer: Arc::new(host_gate::NoConfirmer),
            plan_handling: PlanHandling::Kept(Arc::default()),
            plan: Arc::default(),
            progress: Arc::new(|_, _| {}),
            tool_caller: None,
            budget: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_base::problem::Category;

    #[test]
    fn time_is_doubled_and_never_above_the_ceiling() {
        let seconds = Duration::from_secs;
        for (times, ceiling, usual, expected) in [
            (1, None, 30, 30),
            (2, None, 30, 60),
            (1, Some(10), 30, 10),
            (2, Some(40), 30, 40),
            (2, Some(90), 30, 60),
        ] {
            let times = TimeLimits { factor: times, ceiling: ceiling.map(seconds) };
            assert_eq!(times.of(seconds(usual)), seconds(expected), "{times:?}");
        }
    }

    #[test]
    fn what_a_guest_hands_on_as_it_was_told_is_the_hosts_problem_with_its_details() {
        let call = Call::new(CallContext::of_a_test(), &Arc::from("test"));
        let lost = |message: &str| Problem::new("CONNECTION_FAILED", Category::Network, message);
        call.keep(&lost("one").detail("attempts", serde_json::json!([1])));
        call.keep(&lost("two").detail("attempts", serde_json::json!([2])));
        let details = |problem| serde_json::Value::Object(*call.recognized(problem).details);
        assert_eq!(details(lost("one")), serde_json::json!({"attempts": [1]}));
        assert_eq!(details(lost("two")), serde_json::json!({"attempts": [2]}));
        assert_eq!(details(lost("three")), serde_json::json!({}));
        assert_eq!(details(Problem::new("X", Category::Network, "one")), serde_json::json!({}));
    }
}
