//! `linux-sysadmin approve`: shows the whole plan of a call that waits, and lets a person at the terminal approve it.
//! Exit codes: 0 approved, 1 it was not or nothing came of it, 2 wrong usage, or there is no terminal.
//!
//! Plan, question and answer go through `/dev/tty` and never through the standard streams. Whoever types the answer has seen
//! the plan, whatever is redirected.
//!
//! Others may write to the terminal, too, and show a false plan over the real one. So a second question names what is about to
//! be approved, and takes only a code that nobody else knows.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use rustix::fs::OFlags;
use rustix::termios::{QueueSelector, tcflush};

use super::pending_call::{self, IdPrefix, PlanView, find, now};
use super::screen::{Screen, fold};
use super::stdout::stdout;
use super::text::risk_name;
use host_approval::{Beginning, Servers, WaitingCall};
use host_base::Risk;
use host_text::visible::one_line;

// Each paragraph a line: it is wrapped as wide as the terminal is.
const AFTER_HELP: &str = "\
The whole plan is shown at the terminal, and the answer is read there and nowhere else: `yes`, or for a plan of \
critical risk the name of its target. Then the summary is shown once more, with a code to type: others may have written \
over the plan. Anything else approves nothing, and the call goes on waiting. What was shown is what runs: a plan that has become another one since is not approved.

In system mode only root approves, and never the account that the client runs as. Where a logger writes messages of any \
account to terminals, nothing is approved: `linux-sysadmin system status` says how to turn that off.";

/// The process's own terminal, see tty(4).
const TERMINAL: &str = "/dev/tty";
/// The number of bytes of an answer.
const MAX_ANSWER: u64 = 1024;

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Approve {
    /// The call, as `linux-sysadmin pending` lists it; the first 4 digits are enough, where no other call has them
    id: IdPrefix,
}

impl Approve {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let mut terminal = Terminal::of_this_process().context(
            "an approval is typed at a terminal, and this process has none; `linux-sysadmin pending ID` shows the plan \
             without one",
        )?;
        let ways = host_system_mode::unsafe_terminal().context("the loggers' configuration can't be read")?;
        if !ways.is_empty() {
            eprintln!("not approved: what stands at a terminal may not be the plan");
            ways.iter().for_each(|way| eprintln!("  {}", one_line(way)));
            return Ok(ExitCode::FAILURE);
        }
        let found = match find(&Servers::within_reach(), &self.id).await {
            Ok(found) => found,
            Err(error) => {
                pending_call::print_error(&error);
                return Ok(ExitCode::FAILURE);
            }
        };
        if !terminal.is_approved(&found.waiting).context("the terminal is gone: nothing was decided")? {
            let id = one_line(&found.waiting.id);
            eprintln!("not approved: the call goes on waiting; `linux-sysadmin deny {id}` refuses it");
            return Ok(ExitCode::FAILURE);
        }
        let said = match found.server.decide(&found.waiting, true).await {
            Ok(Beginning::Running) => "approved: the change is running, and the client gets the outcome",
            Ok(Beginning::Unknown) => "approved: the change has not begun yet; the client gets the outcome",
            Ok(Beginning::Nothing(why)) => {
                eprintln!("approved, but nothing was done: {}", one_line(&why));
                return Ok(ExitCode::FAILURE);
            }
            Err(error) => {
                pending_call::print_error(&error);
                return Ok(ExitCode::FAILURE);
            }
        };
        writeln!(stdout(), "{said}")?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The terminal at which a person reads and types.
pub(super) struct Terminal(File);

impl Terminal {
    /// Opens the process's own terminal.
    pub(super) fn of_this_process() -> io::Result<Self> {
        Self::open(Path::new(TERMINAL))
    }

    fn open(path: &Path) -> io::Result<Self> {
        // Opening it must not make it the controlling terminal.
        let flags = OFlags::NOCTTY.bits().cast_signed();
        let file = File::options().read(true).write(true).custom_flags(flags).open(path)?;
        match rustix::termios::isatty(&file) {
            true => Ok(Self(file)),
            false => Err(rustix::io::Errno::NOTTY.into()),
        }
    }

    /// Shows the plan, asks twice, and reads the answers.
    pub(super) fn is_approved(&mut self, waiting: &WaitingCall) -> io::Result<bool> {
        let screen = Screen::of(&self.0);
        writeln!(self.0, "{}", PlanView { waiting, now: now(), screen })?;
        let random = host_base::id::random().map_err(|problem| io::Error::other(problem.message))?;
        Ok(self.asks(&Question::about(waiting))? && self.asks(&Question::again(waiting, &random))?)
    }

    /// Asks, and reads the answer.
    fn asks(&mut self, question: &Question) -> io::Result<bool> {
        // Input that was typed before the plan or the code was shown is no answer to it.
        tcflush(&self.0, QueueSelector::IFlush)?;
        write!(self.0, "{} ", question.shown(Screen::of(&self.0)))?;
        question.is_approved(&self.0)
    }
}

/// A question after the plan.
struct Question {
    text: String,
    /// The answer that approves the plan.
    word: String,
}

impl Question {
    fn about(waiting: &WaitingCall) -> Self {
        let target = one_line(&waiting.target);
        let is_cut = waiting.question.lines().any(|line| line.trim_start().starts_with("NOT SHOWN: "));
        match waiting.risk {
            risk if is_cut && risk < Risk::Critical => Self {
                text: format!(
                    "Not all of this plan is shown, see NOT SHOWN above. To approve it all the same, type the name of its \
                     target, {target}:"
                ),
                word: target.trim().to_owned(),
            },
            // Nobody types a machine's name by habit, as they may type yes.
            Risk::Critical => Self {
                text: format!("The risk is CRITICAL. To approve it, type the name of its target, {target}:"),
                word: target.trim().to_owned(),
            },
            risk => {
                let risk = risk_name(risk);
                Self {
                    text: format!("To approve this very plan on {target}, of {risk} risk, type yes:"),
                    word: "yes".to_owned(),
                }
            }
        }
    }

    /// The second question, whose code is made of random hexadecimal digits.
    fn again(waiting: &WaitingCall, random: &str) -> Self {
        let word: String = random.bytes().take(4).map(|digit| char::from(b'0' + digit % 10)).collect();
        let reason = waiting.preview["escalation_reason"]
            .as_str()
            .map(|reason| format!("because: {}\n", one_line(reason)));
        let (summary, target) = (one_line(&waiting.summary), one_line(&waiting.target));
        let (reason, risk) = (reason.unwrap_or_default(), risk_name(waiting.risk));
        let text = format!("\n{reason}Type {word} to approve on {target}, of {risk} risk: {summary}:");
        Self { text, word }
    }

    /// The question at the width of the screen, with a column for the cursor.
    fn shown(&self, screen: Screen) -> String {
        let lines = self.text.split('\n').flat_map(|line| fold(line, screen.columns() - 1, "  "));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Whether the first line is the word. An empty line never is.
    fn is_approved(&self, answers: impl Read) -> io::Result<bool> {
        let mut answer = Vec::new();
        BufReader::new(answers.take(MAX_ANSWER)).read_until(b'\n', &mut answer)?;
        let answer = answer.trim_ascii();
        Ok(!answer.is_empty() && answer == self.word.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::pending_call::tests::waiting;
    use super::*;

    #[test]
    fn only_the_very_word_approves() {
        for (risk, answer, approved) in [
            (Risk::High, "yes\n", true),
            (Risk::High, " yes \r\n", true),
            (Risk::Moderate, "yes", true),
            (Risk::High, "y\n", false),
            (Risk::High, "YES\n", false),
            (Risk::High, "yes yes\n", false),
            (Risk::High, "no\nyes\n", false),
            (Risk::High, "\n", false),
            (Risk::High, "", false),
            (Risk::High, "web1\n", false),
            (Risk::High, "yes\u{0}\n", false),
            (Risk::Critical, "web1\n", true),
            (Risk::Critical, "yes\n", false),
            (Risk::Critical, "web\n", false),
            (Risk::Critical, "\n", false),
        ] {
            let question = Question::about(&waiting(risk));
            assert_eq!(question.is_approved(answer.as_bytes()).unwrap(), approved, "{risk:?} {answer:?}");
        }
        let long = format!("{}yes\n", " ".repeat(2000));
        assert!(!Question::about(&waiting(Risk::High)).is_approved(long.as_bytes()).unwrap());
        let nameless = WaitingCall { target: " ".to_owned(), ..waiting(Risk::Critical) };
        assert!(!Question::about(&nameless).is_approved(&b"\n"[..]).unwrap());
    }

    #[test]
    fn the_question_names_target_and_risk_and_shows_nothing_hidden() {
        assert_eq!(
            Question::about(&waiting(Risk::High)).text,
            "To approve this very plan on web1, of high risk, type yes:"
        );
        let hostile = WaitingCall { target: "web1\n\u{1b}[2J".to_owned(), ..waiting(Risk::Critical) };
        assert_eq!(
            Question::about(&hostile).text,
            "The risk is CRITICAL. To approve it, type the name of its target, web1\\n\\u{1b}[2J:"
        );
    }

    #[test]
    fn a_question_fits_the_screen_and_its_last_words_stay_together() {
        let long = WaitingCall {
            summary: "Replace the configuration of the resolver by one that forwards every question"
                .to_owned(),
            ..waiting(Risk::High)
        };
        let cut = WaitingCall { question: "NOT SHOWN: 3 more lines".to_owned(), ..waiting(Risk::High) };
        let again = Question::again(&long, "0000");
        let asked = format!(
            "\nType {} to approve on web1, of high risk: Replace the configuration of the\n  \
             resolver by one that forwards every question:",
            again.word
        );
        for (question, shown) in [
            (
                Question::about(&waiting(Risk::Critical)),
                "The risk is CRITICAL. To approve it, type the name of its target, web1:",
            ),
            (
                Question::about(&cut),
                "Not all of this plan is shown, see NOT SHOWN above. To approve it all the same,\n  \
                 type the name of its target, web1:",
            ),
            (again, asked.as_str()),
        ] {
            assert_eq!(question.shown(Screen::plain(80)), shown);
        }
    }

    #[test]
    fn the_second_question_shows_what_is_approved_and_takes_its_own_code_only() {
        let hostile = WaitingCall {
            summary: "Restart\n\u{9b}2J".to_owned(),
            preview: serde_json::json!({"escalation_reason": "it runs\nas root"}),
            ..waiting(Risk::High)
        };
        let question = Question::again(&hostile, "09af5c7700112233");
        let code = question.word.clone();
        assert!(code.len() == 4 && code.bytes().all(|digit| digit.is_ascii_digit()), "{code}");
        let shown = "approve on web1, of high risk: Restart\\n\\u{9b}2J:";
        assert_eq!(question.text, format!("\nbecause: it runs\\nas root\nType {code} to {shown}"));
        for (answer, approved) in [(code.as_str(), true), ("yes", false), ("web1", false), ("", false)] {
            assert_eq!(question.is_approved(format!("{answer}\n").as_bytes()).unwrap(), approved, "{answer}");
        }
        assert_ne!(Question::again(&hostile, "1").text, Question::again(&hostile, "2").text);
        let plain = Question::again(&waiting(Risk::Critical), "0000");
        assert!(plain.text.starts_with("\nType ") && !plain.is_approved(&b"web1\n"[..]).unwrap());
    }

    #[test]
    fn a_plan_that_is_not_shown_completely_is_not_approved_by_a_yes() {
        let question = "May this be done?\n   | +a\n   NOT SHOWN: 1019 more lines of the diff are left out\n";
        let cut = WaitingCall { question: question.to_owned(), ..waiting(Risk::High) };
        let asked = Question::about(&cut);
        assert!(asked.text.contains("NOT SHOWN above"), "{}", asked.text);
        assert!(!asked.is_approved(&b"yes\n"[..]).unwrap() && asked.is_approved(&b"web1\n"[..]).unwrap());
    }

    #[test]
    fn what_is_no_terminal_is_not_asked_at() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for path in [file.path(), Path::new("/dev/null"), Path::new("/dev/no-such-terminal")] {
            assert!(Terminal::open(path).is_err(), "{}", path.display());
        }
    }
}
