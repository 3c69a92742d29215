//! A handle of a call that runs. Whoever holds it waits for the call's next event, reads its progress, or cancels it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::call_key::CallKey;
use super::call_pool::CallPool;
use super::confirmation_channel::{ConfirmationChannel, OpenQuestion};
use crate::answers::envelope::Envelope;
use host_base::output_buffer::OutputBuffer;
use host_base::problem::{Category, Problem};
use host_gate::CommandLog;
use host_gate::ProgressReporter;
use host_text::visible::excerpt;

/// The tool, the host and the agent of a call, for lists and logs.
#[derive(Clone, Debug)]
pub struct CallInfo {
    /// The tool's name.
    pub tool: String,
    /// The target's name, or the number of hosts.
    pub host: String,
    /// The agent that calls, as it names itself, where several agents share the server.
    pub agent_id: Option<String>,
}

/// A call that runs. Dropping the handle cancels the call.
pub struct CallHandle {
    key: CallKey,
    says_confirmed: bool,
    info: CallInfo,
    started: (Instant, SystemTime),
    command_log: Arc<CommandLog>,
    task: JoinHandle<Envelope>,
    questions: mpsc::Receiver<OpenQuestion>,
    progress: ProgressText,
    cancelled: CancellationToken,
    _cancelled_when_dropped: DropGuard,
}

/// The next event in a call.
pub enum CallEvent {
    /// The call has ended with this answer.
    Ended(Box<Envelope>),
    /// The call needs a confirmation, and waits for it.
    Asks(OpenQuestion),
}

/// The latest progress message of a call, with the line that a command has printed since.
#[derive(Clone)]
pub struct ProgressText(Arc<Progress>);

struct Progress {
    latest: Mutex<ProgressMessage>,
    output: Arc<OutputBuffer>,
}

#[derive(Clone, Default)]
struct ProgressMessage {
    text: String,
    /// The number of the first line of output after the message.
    line: u64,
}

impl ProgressText {
    fn new(output: Arc<OutputBuffer>) -> Self {
        Self(Arc::new(Progress { latest: Mutex::default(), output }))
    }

    /// The latest message; empty where the call has reported nothing yet. A step may take hours, and its command says how far
    /// it is.
    pub fn latest(&self) -> String {
        // The call reports meanwhile, and doesn't wait until the output is read.
        let ProgressMessage { text, line } =
            self.0.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if text.is_empty() {
            return text;
        }
        let printed = self.0.output.lines_from(line, false).text;
        match printed.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) if !line.starts_with("$ ") => format!("{text}: {}", excerpt(line, 100)),
            _ => text,
        }
    }

    fn sink(&self) -> ProgressReporter {
        let progress = self.0.clone();
        Arc::new(move |fraction, message| {
            let mut text = excerpt(message, 200);
            if let Some(fraction) = fraction.filter(|fraction| fraction.is_finite()) {
                text = format!("{text} ({:.0}%)", fraction.clamp(0.0, 1.0) * 100.0);
            }
            let line = progress.output.lines_from(u64::MAX, false).next;
            *progress.latest.lock().unwrap_or_else(PoisonError::into_inner) = ProgressMessage { text, line };
        })
    }
}

impl CallHandle {
    /// Starts a call in the pool. `call` gets the channel by which it asks, the sink of its progress, and the token that
    /// cancels it.
    pub fn start<F>(
        info: CallInfo,
        key: CallKey,
        pool: &CallPool,
        call: impl FnOnce(Arc<ConfirmationChannel>, ProgressReporter, CancellationToken) -> F,
    ) -> Self
    where
        F: Future<Output = Envelope> + Send + 'static,
    {
        let (channel, questions) = ConfirmationChannel::new(pool, &info.host);
        let command_log = channel.command_log().clone();
        let (progress, cancelled) = (ProgressText::new(command_log.output.clone()), CancellationToken::new());
        // The future is boxed: it is large, and a new task is moved several times before it runs.
        let running = Box::pin(call(Arc::new(channel), progress.sink(), cancelled.clone()));
        let log = command_log.clone();
        let task = pool.tasks.spawn(async move {
            let envelope = running.await;
            log.set_beginning(envelope.error.as_ref().map_or(Ok(()), |error| Err(error.message.clone())));
            envelope
        });
        let _cancelled_when_dropped = cancelled.clone().drop_guard();
        Self {
            key,
            says_confirmed: false,
            info,
            started: (Instant::now(), SystemTime::now()),
            command_log,
            task,
            questions,
            progress,
            cancelled,
            _cancelled_when_dropped,
        }
    }

    /// Waits for the next event. Dropping the future loses nothing.
    pub async fn next_event(&mut self) -> CallEvent {
        tokio::select! {
            biased;
            Some(question) = self.questions.recv() => CallEvent::Asks(question),
            ended = &mut self.task => CallEvent::Ended(Box::new(ended.unwrap_or_else(|error| {
                tracing::error!(tool = self.info.tool, %error, "a call failed");
                let problem = Problem::new("INTERNAL_ERROR", Category::Internal, "the host failed; its log says how");
                Envelope::failure(&self.info.tool, &self.info.host, self.started.0, None, problem)
            }))),
        }
    }

    /// The tool, the host and the agent of the call.
    pub fn info(&self) -> &CallInfo {
        &self.info
    }

    /// The time at which the call started.
    pub fn started(&self) -> (Instant, SystemTime) {
        self.started
    }

    /// The commands that the call has run.
    pub fn command_log(&self) -> &Arc<CommandLog> {
        &self.command_log
    }

    /// Whether the call has ended.
    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Cancels the call. It ends with an envelope that says so.
    pub fn cancel(&self) {
        self.cancelled.cancel();
    }

    /// Whether the call was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// The call's progress.
    pub fn progress(&self) -> ProgressText {
        self.progress.clone()
    }

    /// Notes whether the request that started the call says that it is confirmed.
    pub fn with_says_confirmed(self, says_confirmed: bool) -> Self {
        Self { says_confirmed, ..self }
    }

    /// Whether the request that started the call says that it is confirmed.
    pub fn says_confirmed(&self) -> bool {
        self.says_confirmed
    }

    /// The key by which a repeated call is recognized.
    pub fn key(&self) -> &CallKey {
        &self.key
    }

    /// Whether the call has no question that nobody has received yet.
    #[cfg(test)]
    pub(super) fn has_no_question(&self) -> bool {
        self.questions.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_told_with_what_its_command_says_last() {
        let output = Arc::new(OutputBuffer::default());
        let progress = ProgressText::new(output.clone());
        let stream = output.open_stream();
        stream.write(b"what a look found\n");
        assert_eq!(progress.latest(), "");
        let report = progress.sink();
        report(Some(0.5), "copy the files");
        assert_eq!(progress.latest(), "copy the files (50%)");
        output.add_host_line("$ rsync");
        assert_eq!(progress.latest(), "copy the files (50%)");
        stream.write(b"10000 files\n20000 files\n\n3000");
        assert_eq!(progress.latest(), "copy the files (50%): 20000 files");
        report(None, "the next step");
        assert_eq!(progress.latest(), "the next step");
    }
}
