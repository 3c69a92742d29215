use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::*;

type Taking = Pin<Box<dyn Future<Output = Result<Turn, Busy>>>>;

/// Calls by hand: each one is looked at only when a test says so.
struct Calls {
    turns: Arc<Turns>,
    waiting: Vec<(String, Taking)>,
    running: Vec<(String, Turn)>,
}

impl Calls {
    fn new(at_once: usize, waiting: usize) -> Self {
        Self { turns: Arc::new(Turns::new(at_once, waiting)), waiting: Vec::new(), running: Vec::new() }
    }

    /// Asks for a turn; the targets that got one by that.
    fn arrive(&mut self, target: &str) -> Vec<String> {
        let (turns, name) = (self.turns.clone(), target.to_owned());
        self.waiting.push((target.to_owned(), Box::pin(async move { turns.take(&name).await })));
        self.poll()
    }

    /// Ends the oldest running call; the targets that got a turn by that.
    fn end(&mut self) -> Vec<String> {
        drop(self.running.remove(0));
        self.poll()
    }

    fn poll(&mut self) -> Vec<String> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut served = Vec::new();
        for (target, mut taking) in std::mem::take(&mut self.waiting) {
            match taking.as_mut().poll(&mut cx) {
                Poll::Pending => self.waiting.push((target, taking)),
                Poll::Ready(turn) => {
                    served.push(target.clone());
                    self.running.push((target, turn.expect("a place to wait")));
                }
            }
        }
        served
    }
}

#[test]
fn a_flood_on_one_target_does_not_starve_two_others() {
    let mut calls = Calls::new(3, 1000);
    for _ in 0..100 {
        calls.arrive("flood");
    }
    assert_eq!(calls.running.len(), 3);
    calls.arrive("a");
    calls.arrive("b");
    // The very next two free turns are theirs, though a hundred came before.
    assert_eq!(calls.end(), ["a"]);
    assert_eq!(calls.end(), ["b"]);
    // One of each is running; who ends makes room for the flood.
    assert_eq!(calls.end(), ["flood"]);
    calls.arrive("a");
    calls.arrive("b");
    let mut served = Vec::new();
    for _ in 0..6 {
        let ended = calls.running[0].0.clone();
        if ended != "flood" {
            calls.arrive(&ended);
        }
        served.extend(calls.end());
    }
    for target in ["a", "b", "flood"] {
        assert_eq!(served.iter().filter(|served| *served == target).count(), 2, "{served:?}");
    }
}

#[test]
fn within_a_target_the_first_to_come_is_the_first_to_go() {
    let mut calls = Calls::new(1, 10);
    for _ in 0..3 {
        calls.arrive("a");
    }
    let numbers = |calls: &Calls| -> Vec<u64> {
        calls.turns.0.state().targets["a"].waiting.iter().map(|waiter| waiter.number).collect()
    };
    assert_eq!(numbers(&calls), [2, 3]);
    calls.end();
    assert_eq!(numbers(&calls), [3]);
}

#[test]
fn of_targets_with_as_many_running_the_one_served_longest_ago_is_next() {
    let mut calls = Calls::new(1, 10);
    for target in ["a", "b", "c", "a", "b", "c"] {
        calls.arrive(target);
    }
    let order: Vec<String> = (0..5).flat_map(|_| calls.end()).collect();
    assert_eq!(order, ["b", "c", "a", "b", "c"]);
}

#[test]
fn targets_that_come_and_go_do_not_pass_by_one_that_waits() {
    let mut calls = Calls::new(1, 10);
    for target in ["b", "x", "b"] {
        calls.arrive(target);
    }
    assert_eq!(calls.end(), ["x"]);
    // `b` has been served before and waits. `y` and `x` take turns in coming anew.
    let mut served = Vec::new();
    for target in ["y", "x"] {
        calls.arrive(target);
        served.extend(calls.end());
    }
    assert!(served.contains(&"b".to_owned()), "{served:?}");
}

#[test]
fn who_does_not_fit_into_the_queue_is_told_at_once() {
    let mut calls = Calls::new(1, 1);
    calls.arrive("a");
    calls.arrive("a");
    let mut taking = Box::pin(calls.turns.take("b"));
    let Poll::Ready(Err(busy)) = taking.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("it doesn't wait")
    };
    assert_eq!(busy.to_string(), "1 calls are being worked on and 1 wait; this one doesn't");
    drop(taking);
    // The place is free again when the one that waited has its turn.
    calls.end();
    assert!(calls.arrive("b").is_empty());
}

#[test]
fn a_call_that_is_given_up_while_it_waits_leaves_its_place() {
    let mut calls = Calls::new(1, 2);
    for target in ["a", "b", "c"] {
        calls.arrive(target);
    }
    drop(calls.waiting.remove(0));
    assert_eq!(calls.turns.0.state().waiting, 1);
    assert_eq!(calls.end(), ["c"]);
}

#[test]
fn a_turn_that_was_given_to_a_call_given_up_in_that_moment_goes_to_the_next() {
    let mut calls = Calls::new(1, 2);
    for target in ["a", "b", "c"] {
        calls.arrive(target);
    }
    // `b` has its turn, and isn't looked at any more.
    drop(calls.running.remove(0));
    drop(calls.waiting.remove(0));
    assert_eq!(calls.poll(), ["c"]);
}

#[test]
fn nothing_is_kept_of_targets_without_calls() {
    let mut calls = Calls::new(2, 10);
    for target in ["a", "b", "c", "d"] {
        calls.arrive(target);
    }
    while !calls.running.is_empty() {
        calls.end();
    }
    assert!(calls.turns.0.state().targets.is_empty());
}

#[tokio::test]
async fn who_waits_is_woken() {
    let turns = Arc::new(Turns::new(1, 1));
    let first = turns.take("a").await.unwrap();
    let waiting = tokio::spawn({
        let turns = turns.clone();
        async move { turns.take("b").await }
    });
    while turns.0.state().waiting == 0 {
        tokio::task::yield_now().await;
    }
    drop(first);
    waiting.await.unwrap().unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Arrive(usize),
    End(usize),
    GiveUp(usize),
    Poll,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_usize..4).prop_map(Step::Arrive),
        3 => (0_usize..8).prop_map(Step::End),
        2 => (0_usize..8).prop_map(Step::GiveUp),
        3 => Just(Step::Poll),
    ]
}

proptest! {
    #[test]
    fn never_more_than_so_many_run_and_no_turn_is_lost(
        at_once in 1_usize..4,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut calls = Calls::new(at_once, 1000);
        for step in steps {
            match step {
                Step::Arrive(target) => {
                    let (turns, name) = (calls.turns.clone(), target.to_string());
                    let mut taking: Taking = Box::pin(async move { turns.take(&name).await });
                    match taking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                        Poll::Ready(turn) => calls.running.push((target.to_string(), turn.unwrap())),
                        Poll::Pending => calls.waiting.push((target.to_string(), taking)),
                    }
                }
                Step::End(at) if !calls.running.is_empty() => {
                    let at = at % calls.running.len();
                    drop(calls.running.remove(at));
                }
                Step::GiveUp(at) if !calls.waiting.is_empty() => {
                    // Perhaps one that has been given its turn and doesn't know yet.
                    let at = at % calls.waiting.len();
                    drop(calls.waiting.remove(at));
                }
                Step::Poll => drop(calls.poll()),
                Step::End(_) | Step::GiveUp(_) => {}
            }
            let alive = calls.running.len() + calls.waiting.len();
            let state = calls.turns.0.state();
            prop_assert!(calls.running.len() <= at_once);
            prop_assert_eq!(state.running, alive.min(at_once));
            prop_assert_eq!(state.waiting, alive - alive.min(at_once));
        }
        // Whoever is left is served, one after the other.
        calls.poll();
        while !calls.running.is_empty() {
            calls.end();
        }
        prop_assert!(calls.waiting.is_empty());
        prop_assert!(calls.turns.0.state().targets.is_empty());
    }
}
