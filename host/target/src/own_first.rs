//! Questions about paths for which root's rights are granted, of which this process answers by itself those that it can.

use super::command_problem::no_root;
use host_base::problem::Problem;

/// Questions, of which this process has answered some by itself.
pub(super) struct OwnFirst<Q, T> {
    answers: Vec<Option<T>>,
    /// The questions that are left for commands.
    pub(super) rest: Vec<Q>,
}

impl<Q: Clone, T> OwnFirst<Q, T> {
    /// Answers by `own` those questions that this process `may` answer here. A problem is no answer, and neither is what isn't
    /// enough.
    pub(super) async fn ask<M, F: Future<Output = Vec<Result<T, Problem>>>>(
        here: Option<M>,
        asked: &[Q],
        may: impl Fn(&Q) -> bool,
        is_enough: impl Fn(&T) -> bool,
        own: impl FnOnce(M, Vec<Q>) -> F,
    ) -> Self {
        let open: Vec<Q> = asked.iter().filter(|question| may(question)).cloned().collect();
        let answered = match here {
            Some(here) if !open.is_empty() => own(here, open).await,
            _ => Vec::new(),
        };
        let (mut answered, mut rest) = (answered.into_iter(), Vec::new());
        let answer = |question: &Q| {
            let answer = if may(question) { answered.next().and_then(Result::ok) } else { None };
            let answer = answer.filter(&is_enough);
            if answer.is_none() {
                rest.push(question.clone());
            }
            answer
        };
        let answers = asked.iter().map(answer).collect();
        Self { answers, rest }
    }

    /// The answers that this process found by itself.
    pub(super) fn own(&self) -> impl Iterator<Item = &T> {
        self.answers.iter().flatten()
    }

    /// All answers in the order of the questions. `rest` answers those that were left.
    pub(super) fn with(self, rest: Vec<Result<T, Problem>>) -> Vec<Result<T, Problem>> {
        let mut rest = rest.into_iter();
        let answers = self.answers.into_iter();
        answers.map(|own| own.map_or_else(|| rest.next().unwrap_or_else(|| Err(no_root())), Ok)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_this_process_does_not_find_by_itself_is_left_and_the_order_stays() {
        let own = async |(), open: Vec<i32>| {
            assert_eq!(open, [2, 3, 4, 6]);
            open.into_iter()
                .map(|number| if number == 3 { Err(no_root()) } else { Ok(number * 10) })
                .collect()
        };
        let found = OwnFirst::ask(
            Some(()),
            &[1, 2, 3, 4, 5, 6],
            |number| ![1, 5].contains(number),
            |found| *found != 40,
            own,
        )
        .await;
        assert_eq!(found.own().copied().collect::<Vec<_>>(), [20, 60]);
        assert_eq!(found.rest, [1, 3, 4, 5]);
        let rest = vec![Ok(1), Err(no_root()), Ok(4), Ok(5)];
        let all: Vec<_> = found.with(rest).into_iter().map(Result::ok).collect();
        assert_eq!(all, [Some(1), Some(20), None, Some(4), Some(5), Some(60)]);
    }

    #[tokio::test]
    async fn where_this_process_may_answer_nothing_it_is_not_asked() {
        let never = async |(), _: Vec<i32>| -> Vec<Result<i32, Problem>> { panic!("asked") };
        for (here, may) in [(Some(()), false), (None, true)] {
            let found = OwnFirst::ask(here, &[1, 2], |_| may, |_| true, never).await;
            assert_eq!(found.rest, [1, 2]);
            let all: Vec<_> = found.with(vec![Ok(1), Ok(2)]).into_iter().map(Result::unwrap).collect();
            assert_eq!(all, [1, 2]);
        }
    }
}
