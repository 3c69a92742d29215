//! Questions of a known number: an array of them, and an array of answers to take apart.

use std::array;

use crate::{Category, Command, Context, Output, Problem, Result};

impl Context {
    /// [`Context::run_all`] for as many commands as the tool spells out: `let [users, groups] = cx.run_each([a, b]);`
    pub fn run_each<const N: usize>(&self, commands: [Command; N]) -> [Result<Output>; N] {
        let mut answers = self.run_all(commands.into()).into_iter();
        array::from_fn(|_| {
            let none = || Err(Problem::new("NO_ANSWER", Category::Internal, "the host gave no answer"));
            answers.next().unwrap_or_else(none)
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::{Command, testkit::FakeTarget};

    #[test]
    fn answers_come_in_the_order_of_the_questions() {
        let cx = FakeTarget::new().answer(&["a"], 0, "A", "").answer(&["b"], 0, "B", "").context();
        let [b, missing, a] = cx.run_each(["b", "c", "a"].map(Command::new));
        assert_eq!((b.unwrap().text(), a.unwrap().text()), ("B".into(), "A".into()));
        assert_eq!(missing.unwrap_err().code, "NOT_RECORDED");
    }
}
