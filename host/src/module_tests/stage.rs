//! A host of its own for a module's tests: the real one, with the module installed in a folder of its own, one recorded
//! machine as its only target, and its records in that folder. Nothing of the account is changed, and no other machine can be
//! reached.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};

use super::transcripts::RecordedFolder;
use crate::answers::envelope::Envelope;
use crate::arguments::aliases::AppliedAliases;
use crate::calls::call_handle::{CallEvent, CallHandle};
use crate::config::{Config, LoadedConfig};
use crate::dispatcher::{Caller, Dispatched, DispatchedCall, Dispatcher, Request};
use host_audit::{AuditLog, DecidedBy};
use host_base::Within;
use host_capability::Place;
use host_components::{
    CompileMode, Conflict, Examined, InstallError, ModuleDirectories, ModuleInstaller, Modules, Origin,
};
use host_gate::{Answer, ConfirmationMethod};
use host_target::Target;
use host_target::recorded::{Asked, Playback, RecordedMachine, Recording};

/// The name by which the tests call.
const CLIENT: &str = "linux-sysadmin modules test";

/// The folder with the module that is tested, installed with all that it asks for on targets. It is removed when this is
/// dropped.
pub struct Workshop {
    folder: tempfile::TempDir,
    /// The modules that come with the program, whose tools the module may call.
    host_modules: Option<PathBuf>,
    config: Config,
    /// The component as the host found it.
    pub examined: Examined,
    installer: ModuleInstaller,
}

impl Workshop {
    /// Examines a component and installs it with all that it asks for on targets.
    pub async fn new(
        file: &Path,
        host_modules: Option<PathBuf>,
        operators: &Config,
    ) -> anyhow::Result<Result<Self, InstallError>> {
        let folder = tempfile::Builder::new().prefix("linux-sysadmin-test-").tempdir()?;
        // The limits and the rules are the operator's. Everything else is as in a new configuration, so that a test gives the
        // same result on every machine.
        let modules = Modules { limits: operators.modules.limits.clone(), ..Modules::default() };
        let mut config = Config { policy: operators.policy.clone(), modules, ..Config::default() };
        // No call fails for a reason that passes by itself.
        config.errors.max_retries = Within::new(0);
        let mut host_modules = host_modules;
        let mut installer = open(folder.path(), host_modules.as_deref(), &config).await;
        let mut examined = match installer.examine(file, false).await {
            Ok(examined) => examined,
            Err(refused) => return Ok(Err(refused)),
        };
        // A module of the program's own takes the place of the installed one of its name.
        let is_itself = |conflict: &Conflict| matches!(conflict, Conflict::Name { .. });
        if examined.conflicts.iter().any(is_itself) {
            host_modules = None;
            installer = open(folder.path(), None, &config).await;
            examined = match installer.examine(file, false).await {
                Ok(examined) => examined,
                Err(refused) => return Ok(Err(refused)),
            };
        }
        if !examined.conflicts.is_empty() {
            host_modules = None;
        }
        let mut asked = (*examined.description().requests).clone();
        // A test gives the same result on every machine, and needs no file of this one.
        asked.paths.retain(|path| path.place == Place::Target);
        if let Err(refused) = installer.install(Origin::User, &examined, None, asked, Vec::new()) {
            return Ok(Err(refused));
        }
        Ok(Ok(Self { folder, host_modules, config, examined, installer }))
    }

    /// Examines the component once more. Its description is made anew.
    pub async fn examine_again(&self) -> Result<Examined, InstallError> {
        self.installer.examine(self.examined.path(), true).await
    }

    /// A host whose only target is this recorded machine.
    pub fn stage(&self, machine: &RecordedFolder) -> anyhow::Result<Stage> {
        let recorded =
            Arc::new(RecordedMachine::new(&format!("recorded-{}", machine.name), machine.facts.clone()));
        let target = Arc::new(Target::recorded(recorded.clone()));
        // The folder has no configuration: a host that reads it again goes on with the same.
        let path = self.folder.path().join("config.yaml");
        let loaded = LoadedConfig { config: self.config.clone(), path, generated: false };
        let log = self.folder.path().join("log").join(&machine.name);
        let audit =
            AuditLog::new(log, self.config.audit.settings()).with_journal(self.folder.path().join("journal"));
        let places = places(self.folder.path(), self.host_modules.as_deref());
        let dispatcher = Arc::new(Dispatcher::for_target(places, loaded, target, audit)?);
        Ok(Stage { machine: recorded, dispatcher })
    }

    /// Forgets what was compiled for the tests, unless the account has the same module among its own.
    pub fn close(self, accounts: &ModuleInstaller) {
        accounts.forget(&self.examined);
    }
}

fn places(folder: &Path, host: Option<&Path>) -> ModuleDirectories {
    ModuleDirectories {
        host: host.map(Path::to_owned),
        system: folder.join("system"),
        user: Some(folder.join("modules")),
    }
}

async fn open(folder: &Path, host: Option<&Path>, config: &Config) -> ModuleInstaller {
    ModuleInstaller::open(places(folder, host), &config.modules, CompileMode::Now).await
}

/// A host with one recorded machine.
pub struct Stage {
    machine: Arc<RecordedMachine>,
    dispatcher: Arc<Dispatcher>,
}

/// A call that was tried.
#[derive(Clone, Debug)]
pub struct TriedAnswer {
    /// The answer as a client gets it.
    pub envelope: Map<String, Value>,
    /// What was asked of the machine.
    pub asked: Asked,
}

impl TriedAnswer {
    /// The code of the error, where the call failed.
    pub fn error(&self) -> Option<&str> {
        self.envelope.get("error_code")?.as_str()
    }

    /// The error in one sentence.
    pub fn message(&self) -> String {
        let message = self.envelope.get("message").and_then(Value::as_str).unwrap_or_default();
        format!("{}: {message}", self.error().unwrap_or("no error"))
    }

    /// Whether a part of a change ran.
    pub fn has_changed(&self) -> bool {
        self.asked.ran.iter().any(|ran| ran.changes)
    }
}

impl Stage {
    /// The reason why the module isn't used here. None where it is.
    pub async fn unused(&self, module: &str) -> Option<String> {
        let modules = self.dispatcher.modules().await;
        let unused = modules.registry.unused_modules().iter().find(|unused| unused.name == module);
        unused.map(|unused| unused.reason.clone())
    }

    /// Calls a tool as a client does. Whatever has to be confirmed is confirmed.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        recording: Recording,
        playback: Playback,
    ) -> TriedAnswer {
        self.machine.play(recording, playback);
        let request = Request {
            tool: tool.to_owned(),
            arguments,
            aliases: AppliedAliases::default(),
            caller: Caller { client: CLIENT.to_owned(), ..Caller::default() },
            two_step: false,
            answered: None,
        };
        let started = Instant::now();
        let Dispatched { call, note } = self.dispatcher.call(request).await;
        let mut envelope = match call {
            DispatchedCall::Runs(call) => confirmed(*call).await,
            // This doesn't happen: no other call is made meanwhile.
            DispatchedCall::Waits(question) => {
                self.dispatcher.waiting_envelope(&question, ConfirmationMethod::Terminal, started)
            }
        };
        envelope.add_note(note);
        TriedAnswer { envelope: envelope.into_json(), asked: self.machine.asked() }
    }

    /// Ends the host.
    pub async fn close(self) {
        self.dispatcher.shut_down().await;
    }
}

/// Waits for the end of a call, and says yes to its question.
async fn confirmed(mut call: CallHandle) -> Envelope {
    loop {
        match call.next_event().await {
            CallEvent::Ended(envelope) => return *envelope,
            CallEvent::Asks(open) => {
                // Where the call no longer waits, its envelope says so.
                let _ = open.answer(Ok(Answer::Yes(DecidedBy::Other(CLIENT.to_owned()))));
            }
        }
    }
}
