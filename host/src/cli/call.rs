//! `linux-sysadmin call`: calls one tool through the same dispatcher as a client.

use std::io::{self, Write};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Map, Value};

use super::approve::Terminal;
use super::stdout::stdout;
use crate::answers::envelope::Envelope;
use crate::arguments::aliases::AppliedAliases;
use crate::arguments::schema::argument_schema;
use crate::calls::call_handle::{CallEvent, CallHandle};
use crate::dispatcher::{Caller, Dispatched, DispatchedCall, Dispatcher, Request};
use host_audit::{DecidedBy, Person};
use host_base::account::Account;
use host_base::problem::Problem;
use host_base::strict_json;
use host_gate::ConfirmationMethod;
use host_gate::Question;
use host_gate::{Answer, unavailable};

#[derive(Args)]
pub(super) struct Call {
    #[command(flatten)]
    pub(super) target: super::TargetOption,
    /// The tool's name, as `linux-sysadmin tools` lists it
    tool: String,
    /// Arguments; what the tool takes as a number, a boolean or a list is read as such
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,
    /// The arguments as one JSON object instead; `-` reads it from stdin
    #[arg(long, value_name = "OBJECT", num_args = 0..=1, default_missing_value = "{}", conflicts_with = "arguments")]
    json: Option<String>,
}

impl Call {
    pub(super) async fn run(self, dispatcher: &Arc<Dispatcher>) -> anyhow::Result<ExitCode> {
        let arguments = match &self.json {
            Some(text) => object(text)?,
            None => {
                let modules = dispatcher.modules().await;
                let tool = modules.registry.tool(&self.tool);
                let schema = tool.map(argument_schema).unwrap_or_default();
                let declared =
                    |key: &str| declared(&schema, tool.map_or(key, |tool| tool.aliases.argument(key)));
                let mut given = Map::new();
                for pair in &self.arguments {
                    let (key, value) = argument(pair, declared)?;
                    if given.insert(key.clone(), value).is_some() {
                        bail!("{key} is given twice");
                    }
                }
                given
            }
        };
        let caller = Caller { client: "linux-sysadmin call".to_owned(), ..Caller::default() };
        let request = Request {
            tool: self.tool,
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
        let text = serde_json::to_string_pretty(&Value::Object(envelope.into_json()))?;
        writeln!(stdout(), "{text}")?;
        Ok(code)
    }
}

/// Waits for the end of the call. Questions are asked at this terminal, where the person who typed the call is.
async fn follow(mut call: CallHandle) -> Envelope {
    let mut signal = pin!(crate::signals::asked_to_end());
    loop {
        let event = tokio::select! {
            event = call.next_event() => event,
            () = &mut signal, if !call.is_cancelled() => {
                call.cancel();
                continue;
            }
        };
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

fn object(text: &str) -> anyhow::Result<Map<String, Value>> {
    let text = if text == "-" { io::read_to_string(io::stdin())? } else { text.to_owned() };
    const EXPECTED: &str = "--json takes a JSON object, as {\"service\":\"nginx\"}";
    match strict_json::parse(text.as_bytes()).context(EXPECTED)? {
        Value::Object(object) => Ok(object),
        _ => bail!(EXPECTED),
    }
}

/// The type that the schema declares for an argument.
fn declared<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    schema.get("properties")?.get(name)?.get("type")?.as_str()
}

/// Reads `key=value` by the type that the tool's schema declares. A value that doesn't fit stays text, so that the check of
/// arguments names it, as it would for a client.
fn argument<'a>(pair: &str, declared: impl Fn(&str) -> Option<&'a str>) -> anyhow::Result<(String, Value)> {
    let Some((key, value)) = pair.split_once('=') else {
        bail!("{pair:?} is not of the form KEY=VALUE");
    };
    let value = match declared(key) {
        Some("string") | None => Value::from(value),
        Some(_) => strict_json::parse(value.as_bytes()).unwrap_or_else(|_| Value::from(value)),
    };
    Ok((key.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_read_as_the_schema_says() {
        let schema = json!({"properties": {
            "n": {"type": "integer"}, "s": {"type": "string"}, "b": {"type": "boolean"}, "l": {"type": "array"}
        }});
        let schema = schema.as_object().unwrap();
        for (pair, value) in [
            ("n=5", json!(5)),
            ("s=5", json!("5")),
            ("s=a=b", json!("a=b")),
            ("b=true", json!(true)),
            ("l=[1,2]", json!([1, 2])),
            ("n=many", json!("many")),
            ("unknown=5", json!("5")),
        ] {
            assert_eq!(argument(pair, |key| declared(schema, key)).unwrap().1, value, "{pair}");
        }
        assert!(
            argument("nonsense", |key| declared(schema, key)).unwrap_err().to_string().contains("KEY=VALUE")
        );
    }
}
