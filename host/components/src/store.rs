//! One call's store: its memory, time and calls are counted, and nothing of it outlives the call.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use super::limits::{GuestTime, Limiter, Stopped};
use super::log::CallLog;
use super::reach::Reach;
use super::wall::WallTime;
use host_base::Risk;
use host_base::problem::Problem;
use host_capability::Grants;
use host_gate::Ask;
use host_gate::Executed;
use host_gate::Origin;
use host_gate::{Again, Gate, Held, Looked, Outcome, Planned};
use host_knowledge::Known;
use host_target::{Facts, Target};

/// Told how far a call is: a fraction where it is known, and what it is at.
pub type Progress = Arc<dyn Fn(Option<f32>, &str) + Send + Sync>;

/// Problems of one call whose details are kept.
const MOST_KEPT: usize = 16;

/// What becomes of the plan that a module hands over.
#[derive(Clone)]
pub enum Handing {
    /// It goes through the gate, which may have it made anew.
    Applied(Arc<dyn Again>),
    /// It is kept, and nothing else: it is compared with one that somebody has said yes to.
    Kept(Arc<Mutex<Option<Planned>>>),
}

/// What a tool call may reach. Without one, as while a module is described, every import traps.
#[derive(Clone)]
pub struct CallContext {
    /// The tool's name.
    pub tool: String,
    /// Its risk, as its description says.
    pub risk: Risk,
    /// Where commands run and files are.
    pub target: Arc<Target>,
    /// What is known of it.
    pub facts: Arc<Facts>,
    /// What the module may do.
    pub grants: Arc<Grants>,
    /// Whether what it learns of a service allows it to look there.
    pub learns: bool,
    /// How long the call and its commands may take.
    pub times: Times,
    /// What only modules that come with the host import.
    pub reach: Reach,
    /// What ran.
    pub executed: Arc<Executed>,
    /// What plans go through.
    pub gate: Arc<Gate>,
    /// Who asks.
    pub origin: Arc<Origin>,
    /// Only what would be.
    pub dry_run: bool,
    /// Of a tool that changes the target: nobody else does meanwhile.
    pub turn: Held,
    /// Who can put a question to somebody.
    pub ask: Arc<dyn Ask>,
    /// The way that the plan of the call goes.
    pub handing: Handing,
    /// The outcome of the plan, once there is one.
    pub plan: Arc<OnceLock<Result<Outcome, Problem>>>,
    /// Told how far the tool is, in its own words.
    pub progress: Progress,
}

/// How long what has a duration category may take.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// So many times what is usual: twice, where that wasn't enough.
    pub times: u32,
    /// The longest of all, where the operator set one.
    pub ceiling: Option<Duration>,
}

impl Default for Times {
    fn default() -> Self {
        Self { times: 1, ceiling: None }
    }
}

impl Times {
    /// For what usually may take so long.
    pub(super) fn of(self, usual: Duration) -> Duration {
        let longer = usual.saturating_mul(self.times);
        self.ceiling.map_or(longer, |ceiling| ceiling.min(longer))
    }
}

/// What a store holds.
pub(super) struct State {
    pub(super) wasi: WasiCtx,
    pub(super) table: ResourceTable,
    pub(super) limiter: Limiter,
    pub(super) guest_time: GuestTime,
    pub(super) host_calls: u32,
    pub(super) most_host_calls: u32,
    /// Commands that are being read from.
    pub(super) streams: usize,
    pub(super) wall_time: Arc<WallTime>,
    pub(super) call: Option<Call>,
}

/// A call under way: its context, and its part of the log.
pub(super) struct Call {
    pub(super) context: CallContext,
    pub(super) log: Arc<CallLog>,
    /// SHA-256 of each file that was read whole; none where it wasn't there.
    pub(super) seen: Mutex<HashMap<String, Option<String>>>,
    /// What commands said.
    pub(super) looked: Arc<Looked>,
    learned: Mutex<Learned>,
    /// Problems that say more than a guest can be told.
    kept: Mutex<Vec<Problem>>,
}

/// What a call learned of services by their profiles.
#[derive(Default)]
struct Learned {
    /// What each profile allows, by its id.
    grants: Vec<(String, Arc<Grants>)>,
    /// What the call may do with all of them, once that was asked since the last one came.
    allowed: Option<Arc<Grants>>,
}

impl Call {
    pub(super) fn new(context: CallContext, module: &Arc<str>) -> Self {
        let log = Arc::new(CallLog::new(module));
        let (seen, looked, learned, kept) = Default::default();
        Self { context, log, seen, looked, learned, kept }
    }

    /// What the module may do by now.
    pub(super) fn grants(&self) -> Arc<Grants> {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let Learned { grants, allowed } = &mut *learned;
        if grants.is_empty() {
            return self.context.grants.clone();
        }
        let all = || self.context.grants.with(grants.iter().map(|(_, grants)| &**grants));
        allowed.get_or_insert_with(|| Arc::new(all())).clone()
    }

    /// What a profile allows holds from now on, for this call.
    pub(super) fn learn(&self, known: &Known) {
        if !self.learns {
            return;
        }
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        if learned.grants.iter().all(|(id, _)| *id != known.profile.id) {
            learned.grants.push((known.profile.id.clone(), known.grants(&self.facts.family)));
            learned.allowed = None;
        }
    }

    /// Keeps what only the host says of a problem.
    pub(super) fn keep(&self, problem: &Problem) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MOST_KEPT {
            kept.push(problem.clone());
        }
    }

    /// What a guest hands on as it was told is the host's own problem, with all that it says.
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
    /// The call, counting one call into the host. A trap where there is none, or one too many.
    pub(super) fn call(&mut self) -> wasmtime::Result<&Call> {
        self.host_calls += 1;
        if self.host_calls > self.most_host_calls {
            return Err(Stopped::HostCalls(self.most_host_calls).into());
        }
        match &self.call {
            Some(call) => Ok(call),
            None => Err(Stopped::NoImportsWhileDescribing.into()),
        }
    }

    /// The problem that the guest answered with.
    pub(super) fn answered(&self, problem: Problem) -> Problem {
        match &self.call {
            Some(call) => call.recognized(problem),
            None => problem,
        }
    }

    /// Why the guest was stopped, where it used more than it may.
    pub(super) fn stopped(&self, trap: &wasmtime::Error) -> Option<Stopped> {
        Stopped::because(trap, self.limiter.refused)
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// The problem that every import gives where the host doesn't do yet what the contract allows for.
pub(super) fn unsupported(what: &str) -> Problem {
    Problem::new(
        "NOT_SUPPORTED",
        host_base::problem::Category::State,
        format!("this version of the host doesn't offer {what}"),
    )
}

#[cfg(test)]
impl CallContext {
    /// Of a tool that looks, on this machine, by a module that may do nothing.
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
            times: Times::default(),
            reach: Reach::default(),
            executed: Arc::default(),
            gate: Arc::new(Gate::of_a_test()),
            origin: Arc::new(origin),
            dry_run: false,
            turn: Held::default(),
            ask: Arc::new(host_gate::Nobody),
            handing: Handing::Kept(Arc::default()),
            plan: Arc::default(),
            progress: Arc::new(|_, _| {}),
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
            let times = Times { times, ceiling: ceiling.map(seconds) };
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
