use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::*;

type Acquiring = Pin<Box<dyn Future<Output = Result<Slot, SchedulerFull>>>>;

/// Calls that are polled only when a test says so.
struct Calls {
    scheduler: Arc<Scheduler>,
    waiting: Vec<(String, Acquiring)>,
    running: Vec<(String, Slot)>,
}

impl Calls {
    fn new(at_once: usize, waiting: usize) -> Self {
        Self {
            scheduler: Arc::new(Scheduler::new(at_once, waiting)),
            waiting: Vec::new(),
            running: Vec::new(),
        }
    }

    /// Lets a call of this target arrive. Gives the targets whose calls got a slot.
    fn arrive(&mut self, target: &str) -> Vec<String> {
        let (scheduler, name) = (self.scheduler.clone(), target.to_owned());
        self.waiting.push((target.to_owned(), Box::pin(async move { scheduler.acquire(&name).await })));
        self.poll()
    }

    /// Ends the call that has run longest. Gives the targets whose calls got a slot.
    fn end(&mut self) -> Vec<String> {
        drop(self.running.remove(0));
        self.poll()
    }

    fn poll(&mut self) -> Vec<String> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut served = Vec::new();
        for (target, mut acquiring) in std::mem::take(&mut self.waiting) {
            match acquiring.as_mut().poll(&mut cx) {
                Poll::Pending => self.waiting.push((target, acquiring)),
                Poll::Ready(slot) => {
                    served.push(target.clone());
                    self.running.push((target, slot.expect("the queue has room")));
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
    // The next two free slots are theirs, though a hundred calls came before.
    assert_eq!(calls.end(), ["a"]);
    assert_eq!(calls.end(), ["b"]);
    // One call of each target runs; the next free slot goes to the flood.
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
        calls.scheduler.0.state().targets["a"].waiting.iter().map(|waiter| waiter.number).collect()
    };
    assert_eq!(numbers(&calls), [2, 3]);
    calls.end();
    assert_eq!(numbers(&calls), [3]);
}

#[test]
fn among_targets_with_as_many_running_the_one_served_longest_ago_is_next() {
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
    // `b` has been served before and waits. `y` and `x` come anew, one after the other.
    let mut served = Vec::new();
    for target in ["y", "x"] {
        calls.arrive(target);
        served.extend(calls.end());
    }
    assert!(served.contains(&"b".to_owned()), "{served:?}");
}

#[test]
fn a_call_that_does_not_fit_into_the_queue_fails_at_once() {
    let mut calls = Calls::new(1, 1);
    calls.arrive("a");
    calls.arrive("a");
    let mut acquiring = Box::pin(calls.scheduler.acquire("b"));
    let Poll::Ready(Err(full)) = acquiring.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("it doesn't wait")
    };
    assert_eq!(full.to_string(), "1 calls are being worked on and 1 wait; this one doesn't");
    drop(acquiring);
    // The queue has room again when the call that waited has its slot.
    calls.end();
    assert!(calls.arrive("b").is_empty());
}

#[test]
fn a_call_that_is_given_up_while_it_waits_leaves_the_queue() {
    let mut calls = Calls::new(1, 2);
    for target in ["a", "b", "c"] {
        calls.arrive(target);
    }
    drop(calls.waiting.remove(0));
    assert_eq!(calls.scheduler.0.state().waiting, 1);
    assert_eq!(calls.end(), ["c"]);
}

#[test]
fn a_slot_that_was_given_to_a_call_given_up_in_that_moment_goes_to_the_next() {
    let mut calls = Calls::new(1, 2);
    for target in ["a", "b", "c"] {
        calls.arrive(target);
    }
    // `b` has its slot, and isn't polled any more.
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
    assert!(calls.scheduler.0.state().targets.is_empty());
}

#[tokio::test]
async fn a_call_that_waits_is_woken() {
    let scheduler = Arc::new(Scheduler::new(1, 1));
    let first = scheduler.acquire("a").await.unwrap();
    let waiting = tokio::spawn({
        let scheduler = scheduler.clone();
        async move { scheduler.acquire("b").await }
    });
    while scheduler.0.state().waiting == 0 {
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
    fn never_more_than_so_many_run_and_no_slot_is_lost(
        at_once in 1_usize..4,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut calls = Calls::new(at_once, 1000);
        for step in steps {
            match step {
                Step::Arrive(target) => {
                    let (scheduler, name) = (calls.scheduler.clone(), target.to_string());
                    let mut acquiring: Acquiring = Box::pin(async move { scheduler.acquire(&name).await });
                    match acquiring.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                        Poll::Ready(slot) => calls.running.push((target.to_string(), slot.unwrap())),
                        Poll::Pending => calls.waiting.push((target.to_string(), acquiring)),
                    }
                }
                Step::End(at) if !calls.running.is_empty() => {
                    let at = at % calls.running.len();
                    drop(calls.running.remove(at));
                }
                Step::GiveUp(at) if !calls.waiting.is_empty() => {
                    // It may have been given its slot without knowing yet.
                    let at = at % calls.waiting.len();
                    drop(calls.waiting.remove(at));
                }
                Step::Poll => drop(calls.poll()),
                Step::End(_) | Step::GiveUp(_) => {}
            }
            let alive = calls.running.len() + calls.waiting.len();
            let state = calls.scheduler.0.state();
            prop_assert!(calls.running.len() <= at_once);
            prop_assert_eq!(state.running, alive.min(at_once));
            prop_assert_eq!(state.waiting, alive - alive.min(at_once));
        }
        // The calls that are left are served one after the other.
        calls.poll();
        while !calls.running.is_empty() {
            calls.end();
        }
        prop_assert!(calls.waiting.is_empty());
        prop_assert!(calls.scheduler.0.state().targets.is_empty());
    }
}
