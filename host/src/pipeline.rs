//! One tool call, from request to envelope.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Instant;

use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::arguments::{self, Arguments, Validators};
use crate::audit::{Audit, Decision, Durability, Event, ModuleUsed};
use crate::capability::Risk;
use crate::component::{
    Absent, CONTRACT, CallContext, Cold, Module, Places, Progress, Registry, Reply, Route, Session, Shape,
    Tool,
};
use crate::config::{self, Loaded};
use crate::envelope::Envelope;
use crate::executed::Executed;
use crate::gate::{Gate, Outcome};
use crate::listing;
use crate::origin::{Origin, target_used};
use crate::problem::{Category, Problem};
use crate::record;
use crate::target::{Facts, Target};
use crate::turns::{Busy, Turns};
use crate::visible::excerpt;

/// Everything that a call needs and that outlives it.
pub struct Pipeline {
    live: RwLock<Arc<Live>>,
    /// Counts the changes of the tools' list.
    changes: watch::Sender<u64>,
    /// Held while the modules are looked at anew, so that the latest look wins.
    reloading: tokio::sync::Mutex<()>,
    places: Places,
    target: Arc<Target>,
    loaded: Loaded,
    turns: Turns,
    gate: Arc<Gate>,
    /// The first answer of the first process says so, and no other.
    first_run: Mutex<bool>,
}

/// What may change while a server runs: calls keep what they began with.
pub struct Live {
    /// The modules and their tools.
    pub registry: Registry,
    validators: Validators,
    /// Why the configuration's file is not followed.
    config_error: Option<String>,
}

/// Of an analysis.
const SEVERITIES: [&str; 4] = ["info", "warning", "high", "critical"];

/// What a client asks for.
pub struct Request {
    /// The tool's name.
    pub tool: String,
    /// As the client gave them.
    pub arguments: Map<String, Value>,
    /// Ends what is looking, with its processes.
    pub cancelled: CancellationToken,
    /// Where the client wants to know.
    pub progress: Progress,
    /// Who asks.
    pub caller: Caller,
}

/// Who asks, by their own word.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// Name and version.
    pub client: String,
    /// The protocol's version, where there is one.
    pub protocol: Option<String>,
    /// W3C's trace id, where the client follows its calls.
    pub trace_id: Option<String>,
}

impl Pipeline {
    /// With the modules of these places, for the target of the configuration.
    pub async fn new(places: Places, loaded: Loaded, cold: Cold) -> Self {
        let cache = config::directory("XDG_CACHE_HOME", ".cache");
        let registry = Registry::load(&places, &loaded.config.modules, cache, cold).await;
        registry.tell_absent();
        let live = Live { registry, validators: Validators::default(), config_error: None };
        let limits = &loaded.config.modules.limits;
        let turns = Turns::new(limits.calls_at_once.get() as usize, limits.calls_waiting.get() as usize);
        let target = Arc::new(Target::local(loaded.config.distro.clone()));
        let first_run = Mutex::new(loaded.generated);
        let audit = Arc::new(Audit::of_this_account(&loaded.config));
        let gate = Arc::new(Gate::new(loaded.config.safety.clone(), audit));
        Self {
            live: RwLock::new(Arc::new(live)),
            changes: watch::Sender::new(0),
            reloading: tokio::sync::Mutex::default(),
            places,
            target,
            loaded,
            turns,
            gate,
            first_run,
        }
    }

    /// Returns when no plan is on its way, and takes no more.
    pub async fn finished(&self) {
        self.gate.finished().await;
    }

    /// The modules and their tools as they are now.
    pub fn live(&self) -> Arc<Live> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The machine under administration.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Tells when the tools' list has changed.
    pub fn tools_changed(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Tells those who want to know that the tools' list has changed.
    pub fn announce(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Looks at the modules and at their part of the configuration anew.
    pub async fn reload(&self) {
        let _held = self.reloading.lock().await;
        let before = self.live();
        let (modules, config_error) = match config::read_again(&self.loaded) {
            Ok(config) => (config.modules, None),
            Err(error) => {
                tracing::error!(%error, "the configuration is not followed; what it said before holds");
                (before.registry.config().clone(), Some(error.to_string()))
            }
        };
        let registry = before.registry.reload(&self.places, &modules).await;
        registry.tell_absent();
        let same = registry.tools().eq(before.registry.tools());
        tracing::info!(modules = registry.modules().len(), same_tools = same, "looked at the modules anew");
        let live = Live { registry, validators: Validators::default(), config_error };
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(live);
        if !same {
            self.announce();
        }
    }

    /// With no module.
    #[cfg(test)]
    pub async fn without_modules() -> Self {
        let places = Places { host: None, system: "/nonexistent".into(), user: None };
        let loaded = Loaded { config: Default::default(), path: Default::default(), generated: false };
        Self::new(places, loaded, Cold::Compile).await
    }

    /// Answers a call. Whatever happens, there is an envelope, and a record of it.
    pub async fn call(&self, request: Request) -> Envelope {
        let started = Instant::now();
        let Request { tool, arguments, cancelled, progress, caller } = request;
        let name = crate::redact::excerpt(&tool, 64);
        let trace_id = caller.trace_id.unwrap_or_else(|| crate::gate::random_id().unwrap_or_default());
        let protocol = caller.protocol.unwrap_or_else(|| "cli".to_owned());
        let origin = Origin::new(trace_id, caller.client, protocol, name.clone(), &arguments);
        let call = Call { origin, executed: Arc::default(), plan: Arc::default(), routed: OnceLock::new() };
        let answering = async {
            let _turn = self.turns.take(self.target.name()).await.map_err(|busy| server_busy(&busy))?;
            self.answer(&tool, arguments, &call, progress).await
        };
        let answer = tokio::select! {
            answer = answering => answer,
            // Dropping the call drops its store and ends the process groups that it started; its plan is the gate's.
            () = cancelled.cancelled() => Err(Problem::new("CANCELLED", Category::Other, "the call was cancelled")),
        };
        let envelope = call.envelope(&name, self.target.name(), started, answer);
        // Never the arguments: what a caller says may be secret.
        let error = envelope.error.as_ref().map(|error| error.error_code.as_str());
        tracing::info!(tool = name, duration_ms = envelope.duration_ms, error, "called");
        let event = call.event(&envelope);
        if let Err(error) = self.gate.audit().append(&event, Durability::Lazy) {
            tracing::error!(tool = name, %error, "a call is not on record");
        }
        envelope
    }

    async fn answer(
        &self,
        name: &str,
        given: Map<String, Value>,
        call: &Call,
        progress: Progress,
    ) -> Result<(Answer, Reply), Problem> {
        let live = self.live();
        let known = live.registry.tool(name).ok_or_else(|| live.unknown_tool(name))?;
        let arguments = arguments::check(&live.validators, known, given)?;
        let facts = self.target.facts().await;
        let (module, tool) = live.route(name, &facts)?;
        let Arguments { own, limit, filter, dry_run } = arguments;
        let routed = call
            .routed
            .get_or_init(|| Routed::new(&call.origin, &module, &tool, &self.target, &facts, dry_run));

        let turn = match tool.risk > Risk::ReadOnly && !dry_run {
            true => Some(self.gate.turn(&self.target).await?),
            false => None,
        };
        let context = CallContext {
            tool: tool.name.clone(),
            risk: tool.risk,
            target: self.target.clone(),
            grants: module.grants(),
            ceiling: self.loaded.config.errors.ceiling(),
            session: module.imports("session").then(|| self.session(&live, &facts)),
            executed: call.executed.clone(),
            gate: self.gate.clone(),
            origin: routed.origin.clone(),
            dry_run,
            turn,
            plan: call.plan.clone(),
            progress,
            facts,
        };
        let limit = limit.unwrap_or_else(|| self.loaded.config.output.default_limit.get());
        let pushed_down = (tool.shape == Shape::Listing).then_some(limit);
        let mut reply = module.call(&tool, own, (pushed_down, filter.clone()), context).await?;
        let data = parse(&module, &tool, &mut reply)?;
        let answer = match data {
            Value::Array(items) => Answer::listing(items, reply.total, filter, limit),
            data => Answer { data, page: None },
        };
        Ok((answer, reply))
    }

    fn session(&self, live: &Arc<Live>, facts: &Arc<Facts>) -> Session {
        let (live, facts, target) = (live.clone(), facts.clone(), self.target.clone());
        Session {
            snapshot: self.snapshot(&live, &facts),
            sudoers: Box::new(move || {
                let (live, target, account) = (live.clone(), target.clone(), facts.user.clone());
                Box::pin(async move {
                    let modules = live.registry.modules().iter();
                    let fragments =
                        modules.map(|module| crate::sudoers::reference(&target, module, &account));
                    futures_util::future::join_all(fragments).await
                })
            }),
        }
    }

    /// What the session interface tells: a JSON object, documented in `wit/session.wit`.
    fn snapshot(&self, live: &Live, facts: &Facts) -> String {
        let module = |module: &Arc<Module>| {
            let description = &module.description;
            let tools: Vec<&str> = description.tools.iter().map(|tool| tool.name.as_str()).collect();
            let refuses = description.refuses(facts);
            let mut shown = json!({
                "name": description.name,
                "version": description.version,
                "origin": module.origin,
                "sha256": module.sha256,
                "tools": tools,
                "serves": refuses.is_none(),
            });
            if let Some(reason) = refuses {
                shown["reason"] = reason.into();
            }
            shown
        };
        let absent = |absent: &Absent| {
            let why = if absent.disabled { "disabled" } else { "error" };
            json!({"name": absent.name, "origin": absent.origin, why: absent.reason})
        };
        let registry = &live.registry;
        let modules: Vec<Value> =
            registry.modules().iter().map(module).chain(registry.absent().iter().map(absent)).collect();
        let first_run = std::mem::take(&mut *self.first_run.lock().unwrap_or_else(PoisonError::into_inner));
        let mut snapshot = json!({
            "target_host": self.target.name(),
            "distro": facts,
            "privilege": {
                "user": facts.user,
                "uid": facts.uid,
                "root": facts.uid == 0,
                "sudo": facts.sudo_available,
                "sudo_limited": facts.sudo_limited,
            },
            "server": {"version": env!("CARGO_PKG_VERSION"), "contract": CONTRACT},
            "modules": modules,
            "integration_mode": self.loaded.config.integration_mode,
            "config_path": self.loaded.path,
            "first_run": first_run,
        });
        if let Some(error) = &live.config_error {
            snapshot["config_error"] = json!(error);
        }
        if first_run {
            snapshot["config_generated"] = json!(self.loaded.path);
        }
        snapshot.to_string()
    }
}

impl Live {
    fn route(&self, name: &str, facts: &Facts) -> Result<(Arc<Module>, Tool), Problem> {
        match self.registry.route(name, facts) {
            Route::Module(module, tool) => Ok((module, tool)),
            Route::NotServed(reasons) => {
                let message = format!("{name} doesn't work on this target: {}", reasons.join("; "));
                Err(Problem::new("TARGET_NOT_SERVED", Category::State, message))
            }
            Route::Unknown => Err(self.unknown_tool(name)),
        }
    }

    /// Names the tools that were perhaps meant.
    fn unknown_tool(&self, name: &str) -> Problem {
        let wanted = excerpt(name, 64);
        let mut close: Vec<(usize, &str)> = self
            .registry
            .tools()
            .map(|tool| (distance(&wanted, &tool.name), tool.name.as_str()))
            .filter(|(distance, _)| *distance <= 3)
            .collect();
        close.sort_unstable();
        let problem = Problem::new("UNKNOWN_TOOL", Category::NotFound, format!("there is no tool {wanted}"));
        match close.as_slice() {
            [] => problem,
            close => {
                let names: Vec<&str> = close.iter().take(3).map(|(_, name)| *name).collect();
                problem.remedy(format!("Did you mean {}?", names.join(", ")))
            }
        }
    }
}

/// One call, as it is put on record.
struct Call {
    origin: Origin,
    executed: Arc<Executed>,
    plan: Arc<OnceLock<Result<Outcome, Problem>>>,
    routed: OnceLock<Routed>,
}

/// What is known once a module answers the call.
struct Routed {
    origin: Arc<Origin>,
    risk: Risk,
    dry_run: bool,
}

impl Routed {
    fn new(
        origin: &Origin,
        module: &Module,
        tool: &Tool,
        target: &Target,
        facts: &Facts,
        dry_run: bool,
    ) -> Self {
        let description = &module.description;
        let (name, version) = (description.name.clone(), description.version.clone());
        let module = ModuleUsed { name, version, sha256: module.sha256.clone() };
        let target = Some(target_used(target, facts));
        let origin = Arc::new(Origin { module: Some(module), target, ..origin.clone() });
        Self { origin, risk: tool.risk, dry_run }
    }
}

impl Call {
    /// The answer, with what became of the plan: whatever the module makes of it, a plan that broke is no success.
    fn envelope(
        &self,
        tool: &str,
        target: &str,
        started: Instant,
        answer: Result<(Answer, Reply), Problem>,
    ) -> Envelope {
        let plan = self.plan.get().and_then(|plan| plan.as_ref().ok());
        let answer = match (answer, plan) {
            (Ok(_), Some(Outcome::Broke { problem, .. })) => Err(problem.clone()),
            (Err(mut problem), Some(Outcome::Broke { problem: broke, .. })) => {
                problem
                    .details
                    .extend(broke.details.iter().map(|(name, value)| (name.clone(), value.clone())));
                Err(problem)
            }
            (answer, _) => answer,
        };
        match answer {
            Err(problem) => Envelope::failure(tool, target, started, self.executed.shown(), problem),
            Ok((answer, reply)) => {
                let mut envelope = Envelope::success(tool, target, started, self.executed.shown());
                answer.fill(&mut envelope, reply);
                envelope.dry_run = self.routed.get().is_some_and(|routed| routed.dry_run);
                match plan {
                    Some(Outcome::DryRun { preview, .. }) => envelope.preview = Some(preview.clone()),
                    Some(Outcome::Done { notes, .. }) => envelope.notes.extend(notes.iter().cloned()),
                    _ => {}
                }
                envelope
            }
        }
    }

    fn event(&self, envelope: &Envelope) -> Event {
        let routed = self.routed.get();
        let (change, decision) = match (self.plan.get(), self.executed.change(), routed) {
            (Some(Ok(Outcome::DryRun { .. })), _, _) => (None, Decision::DryRun),
            (Some(Err(_)), _, _) => (None, Decision::Refused),
            // One that was cancelled isn't told what becomes of its plan.
            (_, Some(id), _) => (Some(id.to_owned()), Decision::Allowed),
            (None, None, Some(routed)) if routed.risk == Risk::ReadOnly => (None, Decision::Looked),
            _ => (None, Decision::None),
        };
        record::call(record::Answered {
            origin: routed.map_or(&self.origin, |routed| &routed.origin),
            risk: routed.map(|routed| routed.risk),
            decision,
            change,
            envelope,
            executed: &self.executed,
        })
    }
}

fn server_busy(busy: &Busy) -> Problem {
    Problem::new("SERVER_BUSY", Category::Resource, busy.to_string())
}

/// The tool's data, as far as the host changes it.
struct Answer {
    data: Value,
    page: Option<PageInfo>,
}

struct PageInfo {
    total: u64,
    returned: u64,
    filter: Option<String>,
}

impl Answer {
    /// A module that gives a total has applied limit and filter itself; the limit holds all the same.
    fn listing(items: Vec<Value>, total: Option<u64>, filter: Option<String>, limit: u32) -> Self {
        let applied = if total.is_some() { None } else { filter.as_deref() };
        let page = listing::page(items, applied, limit);
        let total = total.unwrap_or(0).max(page.total);
        let returned = page.items.len() as u64;
        Self { data: Value::Array(page.items), page: Some(PageInfo { total, returned, filter }) }
    }

    fn fill(self, envelope: &mut Envelope, reply: Reply) {
        if let Some(page) = self.page {
            envelope.total = Some(page.total);
            envelope.returned = Some(page.returned);
            envelope.truncated = Some(page.returned < page.total);
            envelope.filter = page.filter;
        }
        envelope.data = Some(self.data);
        envelope.summary = reply.summary;
        envelope.severity = reply.severity;
        envelope.notes = reply.notes;
    }
}

/// What the module said, where it is what its description promised.
fn parse(module: &Module, tool: &Tool, reply: &mut Reply) -> Result<Value, Problem> {
    let wrong = |reason: String| {
        let message = format!("module {} answered {} with {reason}", module.description.name, tool.name);
        Problem::new("MODULE_INVALID_REPLY", Category::Internal, message)
    };
    let data: Value =
        serde_json::from_str(&reply.data).map_err(|error| wrong(format!("no JSON: {error}")))?;
    let is_analysis = tool.shape == Shape::Analysis;
    if is_analysis != reply.summary.is_some() || is_analysis != reply.severity.is_some() {
        return Err(wrong(
            "a summary and a severity where there is no analysis, or none where there is".to_owned(),
        ));
    }
    if reply.severity.as_ref().is_some_and(|severity| !SEVERITIES.contains(&severity.as_str())) {
        return Err(wrong(format!("a severity that is none of {}", SEVERITIES.join(", "))));
    }
    match (tool.shape, &data) {
        (Shape::Listing, Value::Array(_)) | (Shape::Single | Shape::Analysis, Value::Object(_)) => Ok(data),
        (Shape::Listing, _) => Err(wrong("something else than an array".to_owned())),
        _ => Err(wrong("something else than an object".to_owned())),
    }
}

/// Levenshtein's, for names of at most 64 characters.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, r) in right.iter().enumerate() {
            let changed = diagonal + usize::from(l != *r);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_counts_edits() {
        for (left, right, edits) in
            [("abc", "abc", 0), ("abc", "abd", 1), ("", "abc", 3), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(left, right), edits, "{left} {right}");
        }
    }

    #[test]
    fn a_module_that_paged_itself_is_not_paged_again_but_the_limit_holds() {
        let items = vec![json!({"a": 1}), json!({"a": 2}), json!({"a": 3})];
        let answer = Answer::listing(items.clone(), Some(40), Some("no such text".into()), 2);
        let page = answer.page.unwrap();
        assert_eq!((page.returned, page.total), (2, 40));
        let answer = Answer::listing(items, None, Some("2".into()), 50);
        assert_eq!(answer.data, json!([{"a": 2}]));
    }
}
