//! One tool call, from request to envelope.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::{OnceCell, watch};
use tokio_util::sync::CancellationToken;

use crate::aliases::Older;
use crate::answer::{self, Answer};
use crate::arguments::{self, Arguments, Validators};
use crate::call::{Call, Routed};
use crate::config::{self, Loaded};
use crate::connections::Control;
use crate::envelope::Envelope;
use crate::jobs::{Jobs, JobsOf};
use crate::many::{Part, Parts};
use crate::parking::{Again, CallKey, Parking};
use crate::retry;
use crate::running::{About, Asked, Desk, Room, Running};
use crate::session::Known;
use crate::targets::{Naming, Picked, Targets};
use crate::turns::{Busy, Turns};
use host_approval::{Deciders, ListenError, Listener};
use host_audit::{Audit, Durability};
use host_base::Risk;
use host_base::problem::{Category, Problem};
use host_capability::Grants;
use host_components::{
    self, Anew, CallContext, Calling, Cold, Connections, Handing, Module, Places, Progress, Reach, Registry,
    Reply, Route, Session, Shape, Times, Tool,
};
use host_gate::CONFIRMATION_REQUIRED;
use host_gate::Confirmation;
use host_gate::ConfirmationMethod;
use host_gate::{Gate, Held, Question};
use host_gate::{Origin, target_used};
use host_inventory::InventoryError;
use host_knowledge::Lazy;
use host_policy::{Policy, PolicyError};
use host_system_mode::Mode;
use host_target::{Facts, LookedFor, Target};
use host_text::spelling;
use host_text::visible::excerpt;

/// Everything that a call needs and that outlives it.
pub struct Pipeline {
    live: RwLock<Arc<Live>>,
    cold: Cold,
    /// Done once the modules are loaded.
    first_look: OnceCell<()>,
    /// Counts the changes of the tools' list.
    changes: watch::Sender<u64>,
    /// Held while the modules are looked at anew, so that the latest look wins.
    reloading: tokio::sync::Mutex<()>,
    places: Places,
    targets: Arc<Targets>,
    loaded: Loaded,
    room: Room,
    /// What is about the other calls doesn't wait for them.
    room_of_host: Room,
    parking: Arc<Parking>,
    /// Where a person at a terminal reaches what is parked.
    listener: Mutex<Option<Listener>>,
    mode: Mode,
    gate: Arc<Gate>,
    jobs: Arc<Jobs>,
    /// The first answer of the first process says so, and no other.
    first_run: Mutex<bool>,
}

/// What a module has left once its plan was interrupted: to say what was undone.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its rules.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Its hosts.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
}

/// What may change while a server runs: calls keep what they began with.
pub struct Live {
    /// The modules and their tools.
    pub registry: Registry,
    validators: Validators,
    /// Why the configuration's file is not followed.
    pub config_error: Option<String>,
}

/// What a client asks for.
#[derive(Clone)]
pub struct Request {
    /// The tool's name.
    pub tool: String,
    /// As the client gave them.
    pub arguments: Map<String, Value>,
    /// What of it was said in an older spelling, and is put right. Nothing, as it comes.
    pub older: Older,
    /// Who asks.
    pub caller: Caller,
    /// Whether this client confirms in a second call.
    pub two_step: bool,
    /// Of a call that is made again with an answer: which one, where that could be told, and what was answered.
    pub answered: Option<(Result<String, Problem>, host_gate::Answer)>,
}

impl Request {
    fn about(&self, host: &str) -> About {
        let tool = host_text::redact::excerpt(&self.tool, 64);
        About { tool, host: host.to_owned(), agent_id: self.caller.agent_id.clone() }
    }
}

/// A call that has come.
pub struct Called {
    /// What has become of it.
    pub begun: Begun,
    /// What its answer says of the spelling, where that was an older one.
    pub note: Option<String>,
}

/// A call has begun.
pub enum Begun {
    /// It is on its way.
    Runs(Box<Running>),
    /// The same call waits for a person at a terminal.
    Waits(Arc<Question>),
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
    /// Whether its connection is a session, which has a current host.
    pub has_session: bool,
    /// Which of several that share a connection it is.
    pub agent_id: Option<String>,
}

impl Pipeline {
    /// With the modules of these places, for the targets of the configuration. An error where that can't be followed. The
    /// modules are loaded by who first asks for them.
    pub fn new(places: Places, loaded: Loaded, cold: Cold) -> Result<Self, StartError> {
        let policy = Policy::load(&loaded.config.policy)?;
        let registry = Registry::new(&loaded.config.modules, host_base::directories::cache());
        let live = Live { registry, validators: Validators::default(), config_error: None };
        let limits = &loaded.config.modules.limits;
        let turns = || Turns::new(limits.calls_at_once.get() as usize, limits.calls_waiting.get() as usize);
        let room = Room::new(turns());
        let room_of_host = room.beside(turns());
        let knowledge = Lazy::new(&loaded.config.knowledge, &loaded.path, policy.clone());
        let marks = knowledge.clone();
        let looked_for = LookedFor::new(move || marks.get().marks());
        let targets = Arc::new(Targets::new(&loaded.config, looked_for)?);
        let first_run = Mutex::new(loaded.generated);
        let audit = Arc::new(Audit::of_this_account(&loaded.config.audit));
        let gate = Arc::new(Gate::new(loaded.config.safety.clone(), policy, knowledge, audit));
        Ok(Self {
            live: RwLock::new(Arc::new(live)),
            cold,
            first_look: OnceCell::new(),
            changes: watch::Sender::new(0),
            reloading: tokio::sync::Mutex::default(),
            places,
            targets,
            loaded,
            room,
            room_of_host,
            parking: Arc::default(),
            listener: Mutex::default(),
            mode: host_system_mode::mode(),
            gate,
            jobs: Arc::default(),
            first_run,
        })
    }

    /// Ends what waits, and returns when no plan and no call is on its way.
    pub async fn finished(&self) {
        self.parking.close();
        self.jobs.close().await;
        drop(self.listener.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.gate.finished().await;
        self.room.is_empty().await;
        self.targets.close().await;
    }

    /// What is known of services.
    pub fn knowledge(&self) -> &Lazy {
        self.gate.knowledge()
    }

    /// The calls that go on by themselves.
    pub fn jobs(&self) -> &Arc<Jobs> {
        &self.jobs
    }

    /// When a call goes on by itself, of a client that has a way to ask for it; never, where nothing is set, and of a call
    /// that itself asks for such calls.
    pub fn job_after(&self, tool: &str, has_tasks: bool) -> Option<Duration> {
        let seconds = self.loaded.config.jobs.after_seconds.get();
        let live = self.now();
        let can_ask = || has_tasks || live.registry.modules().iter().any(|module| module.imports("jobs"));
        (seconds > 0 && can_ask() && !live.is_of_host(tool)).then(|| Duration::from_secs(seconds.into()))
    }

    /// The modules and their tools as they are now, once they are loaded.
    pub async fn live(&self) -> Arc<Live> {
        self.first_look.get_or_init(|| self.load()).await;
        self.now()
    }

    /// Whether the modules are loaded.
    pub fn is_loaded(&self) -> bool {
        self.first_look.initialized()
    }

    async fn load(&self) {
        let _held = self.reloading.lock().await;
        let registry = self.now().registry.load(&self.places, self.cold).await;
        registry.tell_absent();
        tracing::info!(modules = registry.modules().len(), tools = registry.tools().count(), "loaded");
        self.set_live(Live { registry, validators: Validators::default(), config_error: None });
    }

    fn set_live(&self, live: Live) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(live);
    }

    /// The modules and their tools as they are now: none, before they are loaded.
    fn now(&self) -> Arc<Live> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The machines under administration.
    pub fn targets(&self) -> &Targets {
        &self.targets
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
        // Where nothing was loaded yet, a list that was kept may have been given, and what came of it isn't known.
        let was_loaded = self.is_loaded();
        self.live().await;
        let _held = self.reloading.lock().await;
        let before = self.now();
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
        self.set_live(Live { registry, validators: Validators::default(), config_error });
        if !same || !was_loaded {
            self.announce();
        }
    }

    /// With no module.
    #[cfg(test)]
    pub fn without_modules() -> Self {
        let places = Places { host: None, system: "/nonexistent".into(), user: None };
        let loaded = Loaded { config: Default::default(), path: Default::default(), generated: false };
        match Self::new(places, loaded, Cold::Compile) {
            Ok(pipeline) => pipeline,
            Err(error) => panic!("the built-in rules hold: {error}"),
        }
    }

    /// Begins a call, or takes up one that waits. Whatever happens, there is an envelope, and a record of it.
    pub async fn call(self: &Arc<Self>, mut request: Request) -> Called {
        let live = self.live().await;
        let tool = live.registry.tool(&request.tool);
        let put_right = match tool {
            Some(tool) => request.older.put_right(tool, &mut request.tool, &mut request.arguments),
            None => Ok(()),
        };
        let note = request.older.note();
        Called { begun: self.called(request, tool, put_right), note }
    }

    /// A call of this tool, in which there are real names only, or two spellings of one argument.
    fn called(
        self: &Arc<Self>,
        mut request: Request,
        tool: Option<&Tool>,
        put_right: Result<(), Problem>,
    ) -> Begun {
        let confirmed = put_right.and_then(|()| match tool {
            Some(tool) => arguments::take_confirmed(tool, &mut request.arguments, request.two_step),
            None => Ok(false),
        });
        let says_confirmed = matches!(confirmed, Ok(true));
        if let Some(agent_id) = tool.and_then(|tool| arguments::take_agent(tool, &mut request.arguments)) {
            request.caller.agent_id = Some(agent_id);
        }
        let picked = match tool {
            Some(tool) => self.pick(tool, &mut request),
            None => Ok(Picked::One(self.targets.usual().clone())),
        };
        let agent_id = request.caller.agent_id.clone();
        let key = |picked: &Picked| {
            CallKey::new(&request.tool, &request.arguments, agent_id.as_deref(), picked.names())
        };
        let resumed = match (confirmed, picked, request.answered.take()) {
            (Err(problem), ..) | (_, Err(problem), _) => Err(problem),
            (_, Ok(picked), Some((id, answer))) => {
                let resumed = id.and_then(|id| self.parking.resume(&id, &key(&picked), answer));
                resumed.map(|running| (picked, Some(running)))
            }
            (Ok(true), Ok(picked), None) => {
                let running = self.parking.confirmed(&key(&picked));
                Ok((picked, running))
            }
            (Ok(false), Ok(picked), None) => Ok((picked, None)),
        };
        let running = match resumed {
            Ok((_, Some(running))) => running,
            // What a person has decided goes on, whatever else is said of the same call.
            Err(problem) => self.refused(request, problem),
            Ok((picked, None)) => {
                let key = key(&picked);
                match self.parking.again(&key) {
                    Some(Again::Decided(running)) => running,
                    Some(Again::Waits(question)) => return Begun::Waits(question),
                    None => self.begin(request, key, picked).said_to_be_confirmed(says_confirmed),
                }
            }
        };
        Begun::Runs(Box::new(running))
    }

    /// Where it works.
    fn pick(&self, tool: &Tool, request: &mut Request) -> Result<Picked, Problem> {
        if tool.on_controller {
            let of_host = self.now().is_of_host(&tool.name);
            return if of_host { Ok(self.targets.controller()) } else { self.targets.here() }
                .map(Picked::One);
        }
        let said = arguments::take_host(tool, &mut request.arguments)?;
        let changes = tool.risk > Risk::ReadOnly && !arguments::is_dry_run(tool, &request.arguments);
        let has_session = request.caller.has_session;
        self.targets.pick(&Naming { said: said.as_deref(), has_session, changes })
    }

    /// One that is refused already, for its answer and its record.
    fn refused(self: &Arc<Self>, request: Request, problem: Problem) -> Running {
        let (pipeline, target) = (self.clone(), self.targets.usual().clone());
        let key = CallKey::new(&request.tool, &request.arguments, None, [target.name()]);
        let about = request.about(target.name());
        Running::begin(about, key, &self.room, move |desk, progress, cancelled| async move {
            pipeline.run(request, (target, Err(problem)), desk, progress, cancelled).await
        })
    }

    /// A new call.
    fn begin(self: &Arc<Self>, request: Request, key: CallKey, picked: Picked) -> Running {
        match picked {
            Picked::One(target) => {
                let of_host = self.now().is_of_host(&request.tool);
                self.begin_on(request, key, target, if of_host { &self.room_of_host } else { &self.room })
            }
            Picked::Many(targets) => self.begin_on_many(request, key, targets),
        }
    }

    fn begin_on(
        self: &Arc<Self>,
        request: Request,
        key: CallKey,
        target: Arc<Target>,
        room: &Room,
    ) -> Running {
        let pipeline = self.clone();
        let about = request.about(target.name());
        Running::begin(about, key, room, move |desk, progress, cancelled| async move {
            pipeline.run(request, (target, Ok(())), desk, progress, cancelled).await
        })
    }

    /// A call of its own on each, which are put on record each for itself.
    fn begin_on_many(self: &Arc<Self>, request: Request, key: CallKey, targets: Vec<Arc<Target>>) -> Running {
        let pipeline = self.clone();
        let about = request.about(&format!("{} hosts", targets.len()));
        let tool = about.tool.clone();
        Running::begin(about, key, &self.room, move |desk, _, cancelled| async move {
            let started = Instant::now();
            let only_looks = pipeline.now().registry.tool(&request.tool).map(|tool| tool.risk);
            if only_looks == Some(Risk::ReadOnly) {
                desk.executed().decided();
            }
            let room = pipeline.room.of_parts(targets.len());
            let parts = targets.into_iter().map(|target| {
                let host = target.name().to_owned();
                let key = CallKey::new(&request.tool, &request.arguments, None, [host.as_str()]);
                Part { host, running: pipeline.begin_on(request.clone(), key, target, &room) }
            });
            let changes = only_looks != Some(Risk::ReadOnly);
            let serial = changes.then_some(pipeline.loaded.config.ssh.serial.get() as usize);
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
        })
    }

    async fn run(
        &self,
        request: Request,
        (target, refused): (Arc<Target>, Result<(), Problem>),
        desk: Arc<Desk>,
        progress: Progress,
        cancelled: CancellationToken,
    ) -> Envelope {
        let started = Instant::now();
        let Request { tool, arguments, older, caller, .. } = request;
        let name = host_text::redact::excerpt(&tool, 64);
        let trace_id = caller.trace_id.clone().unwrap_or_else(|| host_base::id::random().unwrap_or_default());
        let protocol = caller.protocol.clone().unwrap_or_else(|| "cli".to_owned());
        let origin = Origin::new(trace_id, caller.client.clone(), protocol, name.clone(), &arguments);
        let origin = Origin { called_as: older.tool.clone(), ..origin };
        let (plan, routed, tries) = Default::default();
        let executed = desk.executed().clone();
        let Caller { has_session, agent_id, .. } = caller;
        let call = Call { origin, executed, plan, routed, desk, tries, has_session, agent_id };
        let answering = async {
            refused?;
            call.desk.take().await.map_err(Busy::into_problem)?;
            self.answer(&tool, (arguments, &older), &target, &call, progress).await
        };
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
        let answer = loop {
            tokio::select! {
                biased;
                // A question is on record whatever becomes of it, and before it.
                Some(_on_record) = questions.recv() => {
                    let asked = Problem::new(CONFIRMATION_REQUIRED, Category::Denied, "");
                    self.record(&call, &call.envelope(&name, target.name(), started, Err(asked)));
                }
                answer = &mut answering => break answer,
                // Dropping the call drops its store and ends the process groups that it started; its plan is the gate's.
                () = &mut cancelled => {
                    break Err(Problem::new("CANCELLED", Category::Other, "the call was cancelled"));
                }
            }
        };
        let mut envelope = call.envelope(&name, target.name(), started, answer);
        envelope.restored(target.restored_since(started));
        // Never the arguments: what a caller says may be secret.
        let error = envelope.error.as_ref().map(|error| error.error_code.as_str());
        tracing::info!(tool = name, duration_ms = envelope.duration_ms, error, "called");
        self.record(&call, &envelope);
        envelope
    }

    fn record(&self, call: &Call, envelope: &Envelope) {
        if let Err(error) = self.gate.audit().append(&call.event(envelope), Durability::Lazy) {
            tracing::error!(tool = call.origin.tool, %error, "a call is not on record");
        }
    }

    /// How a question reaches whoever answers it, from a client that can be asked in this way.
    pub fn way(&self, client: Option<ConfirmationMethod>, question: &Question) -> ConfirmationMethod {
        match self.way_of(client) {
            // What can cost the machine isn't left to what a client says that somebody said.
            _ if question.risk == Risk::Critical && self.mode != Mode::SingleUser => {
                ConfirmationMethod::Terminal
            }
            ConfirmationMethod::TwoStep if question.never_by_client_alone => ConfirmationMethod::Terminal,
            // A client would have to cut it, and what was cut nobody has said yes to.
            ConfirmationMethod::InputRequired | ConfirmationMethod::Elicitation
                if !question.fits_a_client() =>
            {
                ConfirmationMethod::Terminal
            }
            way => way,
        }
    }

    /// The same, before there is a question.
    pub fn way_of(&self, client: Option<ConfirmationMethod>) -> ConfirmationMethod {
        match self.loaded.config.safety.confirmation {
            Confirmation::Terminal => ConfirmationMethod::Terminal,
            Confirmation::TwoStep => ConfirmationMethod::TwoStep,
            Confirmation::Auto => client.unwrap_or(ConfirmationMethod::TwoStep),
        }
    }

    /// Keeps a call until its answer comes: what is to be answered meanwhile. None where the call goes on and says why.
    pub fn park(
        &self,
        way: ConfirmationMethod,
        asked: Asked,
        running: Running,
    ) -> Result<Arc<Question>, Box<Running>> {
        if way == ConfirmationMethod::Terminal
            && let Err(error) = self.listen()
        {
            let _ = asked.answer(Err(host_gate::unavailable(error)));
            return Err(Box::new(running));
        }
        let question = asked.question.clone();
        if way == ConfirmationMethod::TwoStep && running.says_confirmed() {
            let _ = asked.answer(Err(host_gate::not_shown(&question)));
            return Err(Box::new(running));
        }
        self.parking.park(way, asked, running)?;
        Ok(question)
    }

    /// From the first call on that waits for a person at a terminal.
    fn listen(&self) -> Result<(), ListenError> {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if listener.is_none() {
            let parked: Arc<dyn host_approval::Parked> = self.parking.clone();
            let deciders = match self.mode {
                Mode::SingleUser => Deciders::Account,
                Mode::System { client } => Deciders::Root { client },
            };
            *listener = Some(Listener::start(&parked, self.gate.audit().directory(), deciders)?);
        }
        Ok(())
    }

    /// The answer to a call that waits, which came at this time.
    pub fn waits(&self, question: &Question, way: ConfirmationMethod, came: Instant) -> Envelope {
        let problem = host_gate::confirmation_required(question, way);
        Envelope::failure(&question.tool, &question.target, came, None, problem)
    }

    async fn answer(
        &self,
        name: &str,
        (given, older): (Map<String, Value>, &Older),
        target: &Arc<Target>,
        call: &Call,
        progress: Progress,
    ) -> Result<(Answer, Reply), Problem> {
        let live = self.now();
        let known = live.registry.tool(name).ok_or_else(|| live.unknown_tool(name))?;
        let arguments = arguments::check(&live.validators, known, given, older)?;
        let facts = target.facts().await?;
        let (module, tool) = live.route(name, &facts)?;
        let Arguments { own, limit, filter, dry_run } = arguments;
        let used = target_used(target, &facts, target.host_key().await);
        if tool.risk == Risk::ReadOnly {
            call.executed.decided();
        }
        let routed = call
            .routed
            .get_or_init(|| Routed::new(&call.origin, &module, &tool, used, &facts.family, dry_run));

        let grants = self.grants(&module, target).await?;
        let turn = Held::default();
        // What is about connections or about other calls takes its turn only where it has a plan.
        if tool.risk > Risk::ReadOnly && !dry_run && !live.is_of_host(name) {
            turn.hold(self.gate.turn(target).await?);
        }
        let reach = Reach {
            session: match module.imports("session") {
                true => Some(self.session(&live, target, &facts).await),
                false => None,
            },
            connections: module
                .imports("target-control")
                .then(|| self.connections(target, call, routed.origin.clone(), dry_run)),
            jobs: module.imports("jobs").then(|| {
                let agent_id = call.agent_id.clone();
                Arc::new(JobsOf::new(&self.jobs, agent_id, dry_run)) as Arc<dyn host_components::Jobs>
            }),
        };
        let context = |times| CallContext {
            tool: tool.name.clone(),
            risk: tool.risk,
            target: target.clone(),
            grants: grants.clone(),
            learns: module.learns(),
            times: Times { times, ceiling: self.loaded.config.errors.ceiling() },
            reach: reach.clone(),
            executed: call.executed.clone(),
            gate: self.gate.clone(),
            origin: routed.origin.clone(),
            dry_run,
            turn: turn.clone(),
            ask: call.desk.clone(),
            handing: Handing::Kept(Arc::default()),
            plan: call.plan.clone(),
            progress: progress.clone(),
            facts: facts.clone(),
        };
        let limit = limit.unwrap_or_else(|| self.loaded.config.output.default_limit.get());
        let pushed_down = (tool.shape == Shape::Listing).then_some(limit);
        let calling = Arc::new(Calling {
            module: module.clone(),
            tool: tool.clone(),
            arguments: own,
            context: (pushed_down, filter.clone()),
        });
        let look = |times| {
            let mut once = context(times);
            once.handing = Handing::Applied(Arc::new(Anew { calling: calling.clone(), call: once.clone() }));
            module.call(&tool, calling.arguments.clone(), calling.context.clone(), once)
        };
        let only_looks = || tool.risk == Risk::ReadOnly && call.plan.get().is_none();
        let rules = self.loaded.config.retries();
        let looked = retry::retrying(rules, only_looks, &call.tries, &progress, look).await;
        if looked.as_ref().is_err_and(|problem| problem.code == "CONNECTION_LOST") {
            target.loss_is_told().await;
        }
        let mut reply = looked?;
        let data = answer::parse(&module, &tool, &mut reply)?;
        let answer = match data {
            Value::Array(items) => Answer::listing(items, reply.total, filter, limit),
            data => Answer { data, page: None },
        };
        Ok((answer, reply))
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

    fn connections(
        &self,
        target: &Arc<Target>,
        call: &Call,
        origin: Arc<Origin>,
        dry_run: bool,
    ) -> Arc<dyn Connections> {
        let how = (call.has_session, dry_run);
        Arc::new(Control::new(&self.targets, target, how, (origin, call.desk.clone())))
    }

    async fn session(&self, live: &Arc<Live>, target: &Arc<Target>, facts: &Facts) -> Arc<Session> {
        let first_run = std::mem::take(&mut *self.first_run.lock().unwrap_or_else(PoisonError::into_inner));
        let knowledge = self.knowledge();
        let known = Known::new(live, target, &self.loaded, self.mode, first_run, knowledge);
        Arc::new(known.session(facts).await)
    }
}

impl Live {
    /// Whether a tool is about connections or about other calls, which the host has, and no target.
    fn is_of_host(&self, tool: &str) -> bool {
        let is_it = |known: &Tool| known.name == tool && known.on_controller;
        let of_host = |module: &&Arc<Module>| module.imports("target-control") || module.imports("jobs");
        self.registry
            .modules()
            .iter()
            .filter(of_host)
            .any(|module| module.description.tools.iter().any(is_it))
    }

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
        let close = spelling::close(name, self.registry.tools().map(|tool| tool.name.as_str()));
        let problem = Problem::new("UNKNOWN_TOOL", Category::NotFound, format!("there is no tool {wanted}"));
        match close.as_slice() {
            [] => problem,
            close => {
                let names = &close[..close.len().min(3)];
                problem.remedy(format!("Did you mean {}?", names.join(", ")))
            }
        }
    }
}
