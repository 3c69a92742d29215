//! The commands of one call, as they are shown: in the envelope's `command_executed`, and on record.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;

use host_base::Command;
use host_base::heard::Heard;
use host_capability::command_line;
use host_text::redact::excerpt;

/// Commands that are remembered; a call that runs more of them doesn't show them all.
const REMEMBERED: usize = 64;
/// Characters of a command line that are shown.
const SHOWN: usize = 2000;

/// One command that was started.
#[derive(Clone, Debug)]
pub struct Line {
    program: String,
    /// As it is shown.
    pub text: String,
    /// Where it has ended.
    pub exit_code: Option<i32>,
}

/// Names a command, to say how it ended.
#[derive(Clone, Copy, Debug)]
pub struct Number(usize);

/// A plan under way.
struct Change {
    id: String,
    /// Ends it, and has it undone.
    cancel: CancellationToken,
}

/// The commands of one call, what they say, and the change that it makes.
#[derive(Default)]
pub struct Executed {
    lines: Mutex<Vec<Line>>,
    change: OnceLock<Change>,
    /// It is over, and so is its undo.
    is_over: SetOnce<()>,
    /// As it comes.
    pub heard: Arc<Heard>,
    /// Nobody has to be asked any more.
    is_decided: AtomicBool,
}

impl Executed {
    /// Adds a command that is about to start. It comes without its secrets; `prefix` is how sudo is called.
    pub fn push(&self, prefix: &str, command: &Command) -> Number {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < REMEMBERED {
            let text = excerpt(&command_line(prefix, command), SHOWN);
            self.heard.say(&format!("$ {text}"));
            lines.push(Line { program: command.program.clone(), text, exit_code: None });
            return Number(lines.len() - 1);
        }
        Number(REMEMBERED)
    }

    /// How a command ended.
    pub fn ended(&self, number: Number, exit_code: i32) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get_mut(number.0) {
            line.exit_code = Some(exit_code);
        }
    }

    /// The change of this id is on record from now on. A call makes one at most.
    pub fn begins(&self, change: &str, cancel: &CancellationToken) {
        let _ = self.change.set(Change { id: change.to_owned(), cancel: cancel.clone() });
        self.decided();
    }

    /// The change is over.
    pub fn ends(&self) {
        let _ = self.is_over.set(());
    }

    /// Has the change undone, as far as it may still be stopped: whether there is one.
    pub fn interrupt(&self) -> bool {
        let Some(change) = self.change.get() else { return false };
        change.cancel.cancel();
        true
    }

    /// Waits until the change is over.
    pub async fn over(&self) {
        self.is_over.wait().await;
    }

    /// Whatever it does, it does without anybody's further word.
    pub fn decided(&self) {
        self.is_decided.store(true, Ordering::Relaxed);
    }

    /// Whether it goes on by itself, so that nobody has to wait for it.
    pub fn is_decided(&self) -> bool {
        self.is_decided.load(Ordering::Relaxed)
    }

    /// The same command, heard while it runs.
    pub fn listening(&self, command: &Command) -> Command {
        Command { heard: Some(self.heard.clone()), ..command.clone() }
    }

    /// The change that has begun, whether the call is still there to be told of its end or not.
    pub fn change(&self) -> Option<&str> {
        self.change.get().map(|change| change.id.as_str())
    }

    /// All that are remembered.
    pub fn lines(&self) -> Vec<Line> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The command line, or the programs where there were several; none where nothing ran.
    pub fn shown(&self) -> Option<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        match lines.as_slice() {
            [] => None,
            // The same line again is one that was tried again.
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
    use host_base::{Keep, Privilege};

    fn command(program: &str, arg: &str) -> Command {
        Command {
            program: program.to_owned(),
            args: vec![arg.to_owned()],
            env: Vec::new(),
            stdin: None,
            privilege: Privilege::Caller,
            timeout: Duration::ZERO,
            keep: Keep::Head,
            heard: None,
        }
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
            let executed = Executed::default();
            for (program, arg) in commands {
                executed.push("", &command(program, arg));
            }
            assert_eq!(executed.shown().as_deref(), shown);
            assert_eq!(executed.lines().len(), commands.len());
        }
    }
}
