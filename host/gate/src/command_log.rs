//! The commands of one call, as the envelope's `command_executed` and the audit log show them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;

use host_base::Command;
use host_base::output_buffer::OutputBuffer;
use host_capability::command_line;
use host_text::redact::excerpt;

/// The number of commands that are kept. A call that runs more of them doesn't show the rest.
const REMEMBERED: usize = 64;
/// The number of characters of a command line that are shown.
const SHOWN: usize = 2000;

/// One command that was started.
#[derive(Clone, Debug)]
pub struct LoggedCommand {
    program: String,
    /// The command line as it is shown.
    pub text: String,
    /// The exit code. It is none while the command runs.
    pub exit_code: Option<i32>,
}

/// Identifies a command of the log, so that its exit code can be added.
#[derive(Clone, Copy, Debug)]
pub struct CommandNumber(usize);

/// A change that has begun.
struct RunningChange {
    id: String,
    /// Stops the change. The gate then undoes it.
    cancel: CancellationToken,
}

/// The commands of one call, their output, and the change that the call makes.
#[derive(Default)]
pub struct CommandLog {
    commands: Mutex<Vec<LoggedCommand>>,
    change: OnceLock<RunningChange>,
    /// Set once the change begins, or once the call ends without it, with the reason.
    beginning: SetOnce<Result<(), String>>,
    /// Set once the change and its undo have ended.
    is_over: SetOnce<()>,
    /// The output of the commands while they run.
    pub output: Arc<OutputBuffer>,
    /// True once the call needs no confirmation any more.
    is_decided: AtomicBool,
    /// True while a command runs that the caller chose in order to look.
    is_look_of_caller: AtomicBool,
    /// The logs of the calls on single hosts, where the call is on several hosts.
    of_hosts: OnceLock<Vec<Arc<Self>>>,
}

/// A command that the caller chose in order to look, for as long as it runs.
pub struct LookOfCaller(Arc<CommandLog>);

impl Drop for LookOfCaller {
    fn drop(&mut self) {
        self.0.is_look_of_caller.store(false, Ordering::Relaxed);
    }
}

impl CommandLog {
    /// A log that adds the output of its commands to this buffer.
    pub fn with_output(output: OutputBuffer) -> Self {
        Self { output: Arc::new(output), ..Self::default() }
    }

    /// Notes that the call consists of calls with these logs, one on each host.
    pub fn consists_of(&self, of_hosts: Vec<Arc<Self>>) {
        let _ = self.of_hosts.set(of_hosts);
    }

    /// Adds a command that is about to start. The command comes without its secrets; `prefix` holds the words that call
    /// sudo.
    pub fn push(&self, prefix: &str, command: &Command) -> CommandNumber {
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        if commands.len() < REMEMBERED {
            let text = excerpt(&command_line(prefix, command), SHOWN);
            self.output.add_host_line(&format!("$ {text}"));
            commands.push(LoggedCommand { program: command.program.clone(), text, exit_code: None });
            return CommandNumber(commands.len() - 1);
        }
        CommandNumber(REMEMBERED)
    }

    /// Adds the exit code of a command.
    pub fn ended(&self, number: CommandNumber, exit_code: i32) {
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = commands.get_mut(number.0) {
            line.exit_code = Some(exit_code);
        }
    }

    /// Notes that the change with this id is on record from now on. A call makes at most one change.
    pub fn begins(&self, change: &str, cancel: &CancellationToken) {
        let _ = self.change.set(RunningChange { id: change.to_owned(), cancel: cancel.clone() });
        self.mark_decided();
        self.set_beginning(Ok(()));
    }

    /// Notes that the change has begun, or the reason why the call has ended without it. Only the first note counts.
    pub fn set_beginning(&self, beginning: Result<(), String>) {
        let _ = self.beginning.set(beginning);
    }

    /// Waits until the change begins, or until the call ends without it. The error is the reason.
    pub async fn beginning(&self) -> Result<(), String> {
        self.beginning.wait().await.clone()
    }

    /// Notes that the change has ended.
    pub fn ends(&self) {
        let _ = self.is_over.set(());
    }

    /// Stops the change as far as it can still be stopped, and has it undone. The result is false where there is no
    /// change.
    pub fn cancel_change(&self) -> bool {
        let Some(change) = self.change.get() else { return false };
        change.cancel.cancel();
        true
    }

    /// Waits until the change has ended.
    pub async fn wait_until_over(&self) {
        self.is_over.wait().await;
    }

    /// Notes that the call needs no confirmation any more, whatever it does.
    pub fn mark_decided(&self) {
        self.is_decided.store(true, Ordering::Relaxed);
    }

    /// Notes that a command runs which the caller chose in order to look. Its output is what the caller asked for, so the call
    /// needs nobody's answer until the command ends.
    pub fn begin_look_of_caller(self: &Arc<Self>) -> LookOfCaller {
        self.is_look_of_caller.store(true, Ordering::Relaxed);
        LookOfCaller(self.clone())
    }

    /// Whether the call goes on without anybody's answer, so that a caller may stop waiting for it.
    pub fn is_decided(&self) -> bool {
        let goes_on = |log: &Arc<Self>| log.is_decided() || log.beginning.initialized();
        self.is_decided.load(Ordering::Relaxed)
            || self.is_look_of_caller.load(Ordering::Relaxed)
            || self.of_hosts.get().is_some_and(|logs| logs.iter().all(goes_on))
    }

    /// The command with its output added to this log while it runs.
    pub fn with_output_recorded(&self, command: &Command) -> Command {
        Command { output_buffer: Some(self.output.clone()), ..command.clone() }
    }

    /// The id of the change that has begun. It is kept after the caller has gone.
    pub fn change(&self) -> Option<&str> {
        self.change.get().map(|change| change.id.as_str())
    }

    /// The commands that are kept, in the order in which they started.
    pub fn lines(&self) -> Vec<LoggedCommand> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The command line, or the programs' names where several commands ran. None where nothing ran.
    pub fn shown(&self) -> Option<String> {
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        match commands.as_slice() {
            [] => None,
            // A line that repeats is a command that was tried again.
            [line, again @ ..] if again.iter().all(|other| other.text == line.text) => {
                Some(line.text.clone())
            }
            several => {
                let mut programs: Vec<&str> = Vec::new();
                for line in several {
                    if !programs.contains(&line.program.as_str()) {
                        programs.push(&line.program);
                    }
                }
                Some(format!("multiple ({})", programs.join(", ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn command(program: &str, arg: &str) -> Command {
        Command::new(program, [arg], Duration::ZERO)
    }

    #[test]
    fn a_caller_may_leave_while_a_look_of_its_own_runs_and_for_good_once_a_change_has_begun() {
        let log = Arc::new(CommandLog::default());
        assert!(!log.is_decided());
        let look = log.begin_look_of_caller();
        assert!(log.is_decided());
        drop(look);
        assert!(!log.is_decided());
        let look = log.begin_look_of_caller();
        log.begins("1", &CancellationToken::new());
        drop(look);
        assert!(log.is_decided());
    }

    #[test]
    fn a_caller_may_leave_while_the_calls_on_all_hosts_look_or_have_ended() {
        let (whole, one, other) = (CommandLog::default(), Arc::new(CommandLog::default()), Arc::default());
        whole.consists_of(vec![one.clone(), Arc::clone(&other)]);
        let look = one.begin_look_of_caller();
        assert!(!whole.is_decided());
        other.set_beginning(Err("there is no such program".to_owned()));
        assert!(whole.is_decided());
        drop(look);
        assert!(!whole.is_decided());
    }

    #[test]
    fn one_line_is_shown_whole_however_often_it_was_tried_and_of_several_the_programs() {
        for (commands, shown) in [
            (&[][..], None),
            (&[("cat", "a")], Some("cat a")),
            (&[("cat", "a"), ("cat", "a")], Some("cat a")),
            (&[("cat", "a"), ("cat", "b")], Some("multiple (cat)")),
            (&[("cat", "a"), ("ls", "a"), ("cat", "a")], Some("multiple (cat, ls)")),
        ] {
            let command_log = CommandLog::default();
            for (program, arg) in commands {
                command_log.push("", &command(program, arg));
            }
            assert_eq!(command_log.shown().as_deref(), shown);
            assert_eq!(command_log.lines().len(), commands.len());
        }
    }
}
