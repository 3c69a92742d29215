//! Commands that are asked all at once, each of them once, however many want to know.

use linux_sysadmin_sdk::{Output, prelude::*};

/// To be asked.
#[derive(Default)]
pub(crate) struct Questions(Vec<Command>);

/// Which of them it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked(usize);

/// What they said.
pub(crate) struct Answers(Vec<Result<Output>>);

impl Questions {
    /// One more, unless it is asked already.
    pub(crate) fn ask(&mut self, command: Command) -> Asked {
        let known = self.0.iter().position(|known| *known == command);
        Asked(known.unwrap_or_else(|| {
            self.0.push(command);
            self.0.len() - 1
        }))
    }

    /// All at once.
    pub(crate) fn answers(self, cx: &Context) -> Answers {
        Answers(if self.0.is_empty() { Vec::new() } else { cx.run_all(self.0) })
    }
}

impl Answers {
    /// To one of them.
    pub(crate) fn of(&self, asked: Asked) -> &Result<Output> {
        &self.0[asked.0]
    }

    /// Of what succeeded, whole or not.
    pub(crate) fn stdout(&self, asked: Asked) -> Option<String> {
        let output = self.of(asked).as_ref().ok()?;
        (output.exit_code == 0).then(|| output.text().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn the_same_command_is_asked_once() {
        let mut questions = Questions::default();
        let asked = ["a", "b", "a"].map(|program| questions.ask(Command::new(program)));
        assert_eq!(questions.0.len(), 2);
        let cx = FakeTarget::new().answer(&["a"], 0, "A", "").answer(&["b"], 1, "B", "").context();
        let answers = questions.answers(&cx);
        let said = asked.map(|asked| answers.stdout(asked));
        assert_eq!(said, [Some("A".to_owned()), None, Some("A".to_owned())]);
    }
}
