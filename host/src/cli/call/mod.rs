//! `linux-sysadmin call`: calls one tool through the same dispatcher as a client. It prints for a person at a terminal, and
//! JSON for a program.

mod answer;
mod arguments;
mod spinner;
mod values;

use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::{Map, Value};

use super::approve::Terminal;
use super::completion;
use super::screen::Screen;
use super::stdout::stdout;
use super::tool_help;
use crate::answers::envelope::Envelope;
use crate::arguments::aliases::AppliedAliases;
use crate::arguments::schema::argument_schema;
use crate::calls::call_handle::{CallEvent, CallHandle};
use crate::dispatcher::{Caller, Dispatched, DispatchedCall, Dispatcher, Request};
use host_audit::{DecidedBy, Person};
use host_base::account::Account;
use host_base::problem::Problem;
use host_gate::ConfirmationMethod;
use host_gate::Question;
use host_gate::{Answer, unavailable};
use spinner::Spinner;

// Each paragraph a line: it is wrapped as wide as the terminal is.
const AFTER_HELP: &str = "\
`linux-sysadmin tools` lists the tools, and `linux-sysadmin call TOOL --help` shows the arguments of one. A tool that changes \
something takes dry_run=true, which shows the plan and changes nothing. Where a person has to confirm the plan, it is shown at \
the terminal, and the answer is read there.

At a terminal the answer is text, and elsewhere the JSON that a client gets.";

#[derive(Args)]
#[command(
    disable_help_flag = true,
    override_usage = "linux-sysadmin call [OPTIONS] TOOL [KEY=VALUE]...",
    after_help = AFTER_HELP
)]
pub(super) struct Call {
    #[command(flatten)]
    pub(super) target: super::TargetOption,
    /// The tool's name, as `linux-sysadmin tools` lists it
    #[arg(required_unless_present = "help", add = ArgValueCompleter::new(completion::tools))]
    tool: Option<String>,
    /// Arguments; what the tool takes as a number, a boolean or a list is read as such, and each further value of a list adds to it
    #[arg(value_name = "KEY=VALUE", add = ArgValueCompleter::new(completion::arguments))]
    arguments: Vec<String>,
    /// The arguments as one JSON object instead; `-` reads it from stdin
    #[arg(long, value_name = "OBJECT", conflicts_with = "arguments")]
    args: Option<String>,
    /// Print JSON at a terminal, too
    #[arg(long)]
    json: bool,
    /// Print help; with a tool, about its arguments
    #[arg(short, long)]
    help: bool,
}

impl Call {
    /// Whether help about the command itself is wanted, which takes no configuration.
    pub(super) fn wants_general_help(&self) -> bool {
        self.help && self.tool.is_none()
    }

    pub(super) async fn run(self, dispatcher: &Arc<Dispatcher>) -> anyhow::Result<ExitCode> {
        let name = self.tool.clone().unwrap_or_default();
        if self.help {
            let text = tool_help::text(dispatcher, &name, Screen::of_stdout()).await?;
            stdout().write_all(text.as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        let arguments = self.arguments(dispatcher, &name).await?;
        let caller = Caller { client: "linux-sysadmin call".to_owned(), ..Caller::default() };
        let request = Request {
            tool: name,
            arguments,
            aliases: AppliedAliases::default(),
            caller,
            two_step: false,
            answered: None,
        };
        let started = std::time::Instant::now();
        let Dispatched { call, note } = dispatcher.call(request).await;
        let mut envelope = match call {
            DispatchedCall::Runs(call) => follow(*call).await,
            // This doesn't happen: the process has no other call.
            DispatchedCall::Waits(question) => {
                dispatcher.waiting_envelope(&question, ConfirmationMethod::Terminal, started)
            }
        };
        envelope.add_note(note);
        dispatcher.shut_down().await;
        let code = if envelope.is_error() { ExitCode::from(1) } else { ExitCode::SUCCESS };
        let envelope = envelope.into_json();
        let text = match self.json || !io::stdout().is_terminal() {
            true => serde_json::to_string_pretty(&Value::Object(envelope))? + "\n",
            false => answer::text(&envelope, Screen::of_stdout()),
        };
        stdout().write_all(text.as_bytes())?;
        Ok(code)
    }

    /// The arguments as they are given to the tool.
    async fn arguments(&self, dispatcher: &Dispatcher, name: &str) -> anyhow::Result<Map<String, Value>> {
        if let Some(text) = &self.args {
            return arguments::object(text);
        }
        let modules = dispatcher.modules().await;
        let tool = modules.registry.tool(name);
        let schema = tool.map(argument_schema).unwrap_or_default();
        let properties = schema.get("properties").and_then(Value::as_object);
        let property = |key: &str| properties?.get(tool.map_or(key, |tool| tool.aliases.argument(key)));
        arguments::pairs(&self.arguments, property)
    }
}

/// Waits for the end of the call. Questions are asked at this terminal, where the person who typed the call is.
async fn follow(mut call: CallHandle) -> Envelope {
    let mut signal = pin!(crate::signals::asked_to_end());
    let (mut spinner, mut steps) = (Spinner::new(), tokio::time::interval(spinner::STEP));
    // The time that a person takes to answer counts for nothing.
    steps.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (what, progress) = (format!("{} on {}", call.info().tool, call.info().host), call.progress());
    loop {
        let event = tokio::select! {
            event = call.next_event() => event,
            _ = steps.tick(), if spinner.has_terminal() => {
                spinner.step(&what, &progress.latest());
                continue;
            }
            () = &mut signal, if !call.is_cancelled() => {
                call.cancel();
                continue;
            }
        };
        spinner.clear();
        match event {
            CallEvent::Ended(envelope) => return *envelope,
            CallEvent::Asks(open) => {
                let answer = tokio::select! {
                    answer = ask(&open.question) => answer,
                    () = &mut signal => {
                        call.cancel();
                        continue;
                    }
                };
                // Where the answer is too late, the call's envelope says so.
                let _ = open.answer(answer);
            }
        }
    }
}

async fn ask(question: &Question) -> Result<Answer, Problem> {
    let mut terminal = Terminal::of_this_process()
        .map_err(|_| unavailable("this process has no terminal; call it at one, or serve a client"))?;
    let waiting = host_approval::WaitingCall::of(question, SystemTime::now());
    // However long typing takes, the question expires at its time.
    let typed = tokio::task::spawn_blocking(move || terminal.is_approved(&waiting)).await;
    let uid = rustix::process::getuid().as_raw();
    let account = Account::of_uid(uid).map_or_else(|| uid.to_string(), |account| account.name);
    let by = DecidedBy::Terminal(Person { uid, account });
    match typed {
        Ok(Ok(true)) => Ok(Answer::Yes(by)),
        Ok(Ok(false)) => Ok(Answer::No(by)),
        Ok(Err(error)) => Err(unavailable(format!("the terminal is gone: {error}"))),
        Err(error) => Err(unavailable(error)),
    }
}
