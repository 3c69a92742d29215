use std::cell::RefCell;
use std::sync::Arc;

use super::*;

const POLICY: RetryPolicy = RetryPolicy { max_retries: 3, backoff: Duration::from_secs(2), reconnects: true };

/// A problem by a short name.
fn problem(name: &str) -> Problem {
    let (code, category) = match name {
        "network" => ("NAME_NOT_RESOLVED", Category::Network),
        "lost" => ("CONNECTION_LOST", Category::Network),
        "failed" => ("CONNECTION_FAILED", Category::Network),
        "uncertain" => ("CHANGE_UNCERTAIN", Category::Network),
        "command" => ("COMMAND_TIMEOUT", Category::Timeout),
        "tool" => ("TOOL_TIMEOUT", Category::Timeout),
        "authentication" => ("AUTHENTICATION_FAILED", Category::Privilege),
        "host key" => ("HOST_KEY_CHANGED", Category::Denied),
        "privilege" => ("PRIVILEGE_REQUIRED", Category::Privilege),
        "not found" => ("X", Category::NotFound),
        "dependency" => ("X", Category::Dependency),
        "resource" => ("OUT_OF_SPACE", Category::Resource),
        "lock" => ("RESOURCE_LOCKED", Category::Lock),
        "validation" => ("INVALID_ARGUMENTS", Category::Validation),
        "state" => ("X", Category::State),
        "denied" => ("CAPABILITY_DENIED", Category::Denied),
        "internal" => ("MODULE_TRAPPED", Category::Internal),
        "other" => ("CANCELLED", Category::Other),
        name => panic!("{name}"),
    };
    Problem::new(code, category, name)
}

/// Runs a call whose attempts end like this one after the other: `ok`, or a problem's name. Gives when each attempt began and
/// the factor of its time, the result, and the summary.
async fn attempts(
    policy: RetryPolicy,
    may_retry: bool,
    ends: &[&str],
) -> (Vec<(u64, u32)>, Result<(), String>, RetrySummary) {
    let (log, seen, began) = (RetryLog::default(), RefCell::new(Vec::new()), Instant::now());
    let progress: ProgressReporter = Arc::new(|_, _| {});
    let look = |times| {
        let number = seen.borrow().len();
        seen.borrow_mut().push((began.elapsed().as_secs(), times));
        // Every further attempt ends like the last one.
        let end = *ends.get(number).unwrap_or(&ends[ends.len() - 1]);
        async move { if end == "ok" { Ok(()) } else { Err(problem(end)) } }
    };
    let ended = with_retries(policy, || may_retry, &log, &progress, look).await;
    (seen.take(), ended.map_err(|problem| problem.message), log.summary())
}

#[tokio::test(start_paused = true)]
async fn what_passes_by_itself_is_tried_again_and_nothing_else() {
    let once = &[(0, 1)][..];
    for (ends, expected) in [
        (&["ok"][..], once),
        // Waits double.
        (&["network"], &[(0, 1), (2, 1), (6, 1), (14, 1)]),
        (&["network", "ok"], &[(0, 1), (2, 1)]),
        (&["network", "network", "ok"], &[(0, 1), (2, 1), (6, 1)]),
        // A connection comes back by itself, once.
        (&["lost", "ok"], &[(0, 1), (0, 1)]),
        (&["lost"], &[(0, 1), (0, 1), (2, 1), (6, 1)]),
        (&["network", "lost", "ok"], &[(0, 1), (2, 1), (2, 1)]),
        // Connecting was tried several times already.
        (&["failed"], once),
        (&["lost", "failed"], &[(0, 1), (0, 1)]),
        // Once more, with twice the time.
        (&["command"], &[(0, 1), (0, 2)]),
        (&["tool"], &[(0, 1), (0, 2)]),
        (&["tool", "command"], &[(0, 1), (0, 2)]),
        (&["command", "network", "command"], &[(0, 1), (0, 2), (2, 2)]),
        (&["network", "command", "network", "ok"], &[(0, 1), (2, 1), (2, 2), (6, 2)]),
        // These don't pass by themselves.
        (&["authentication"], once),
        (&["host key"], once),
        (&["privilege"], once),
        (&["not found"], once),
        (&["dependency"], once),
        (&["resource"], once),
        (&["lock"], once),
        (&["validation"], once),
        (&["state"], once),
        (&["denied"], once),
        (&["internal"], once),
        (&["other"], once),
        (&["network", "lock"], &[(0, 1), (2, 1)]),
    ] {
        let (seen, ended, summary) = attempts(POLICY, true, ends).await;
        assert_eq!(seen, expected, "{ends:?}");
        assert_eq!(summary.retries as usize, expected.len() - 1, "{ends:?}");
        let last = *ends.get(seen.len() - 1).unwrap_or(&ends[ends.len() - 1]);
        assert_eq!(ended, if last == "ok" { Ok(()) } else { Err(last.to_owned()) }, "{ends:?}");
        // Every attempt that failed is in the summary, except an only one.
        let failed = seen.len() - usize::from(last == "ok");
        assert_eq!(summary.failed.len(), if seen.len() == 1 { 0 } else { failed }, "{ends:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_have_changed_something_is_never_tried_again() {
    for ends in [["network"], ["lost"], ["uncertain"], ["command"], ["tool"]] {
        let (seen, _, summary) = attempts(POLICY, false, &ends).await;
        assert_eq!((seen.len(), summary), (1, RetrySummary::default()), "{ends:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_operator_says_how_often_and_no_wait_is_longer_than_a_minute() {
    for (max_retries, backoff, expected) in
        [(0, 2, &[0][..]), (1, 2, &[0, 2]), (3, 30, &[0, 30, 90, 150]), (5, 60, &[0, 60, 120, 180, 240, 300])]
    {
        let policy = RetryPolicy { max_retries, backoff: Duration::from_secs(backoff), ..POLICY };
        let (seen, ..) = attempts(policy, true, &["network"]).await;
        assert_eq!(seen.iter().map(|(began, _)| *began).collect::<Vec<_>>(), expected);
    }
    let (seen, ..) = attempts(RetryPolicy { max_retries: 0, ..POLICY }, true, &["command"]).await;
    assert_eq!(seen.len(), 1);
    // Where the operator doesn't want it, a lost connection doesn't come back by itself.
    let no_reconnect = RetryPolicy { reconnects: false, ..POLICY };
    let (seen, ended, _) = attempts(no_reconnect, true, &["lost", "ok"]).await;
    assert_eq!((seen.len(), ended), (1, Err("lost".to_owned())));
    let (seen, ..) = attempts(no_reconnect, true, &["network", "ok"]).await;
    assert_eq!(seen.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn each_attempt_is_told_with_its_time_and_its_problem() {
    let (_, _, summary) = attempts(POLICY, true, &["lost", "network", "ok"]).await;
    let attempt = |after_seconds, error_code: &str, message: &str| Attempt {
        after_seconds,
        error_code: error_code.to_owned(),
        message: message.to_owned(),
    };
    let expected = [attempt(0.0, "CONNECTION_LOST", "lost"), attempt(0.0, "NAME_NOT_RESOLVED", "network")];
    assert_eq!(summary, RetrySummary { retries: 2, failed: expected.to_vec() });
    let (_, _, summary) = attempts(POLICY, true, &["network", "network", "state"]).await;
    let after: Vec<f64> = summary.failed.iter().map(|attempt| attempt.after_seconds).collect();
    assert_eq!(after, [0.0, 2.0, 6.0]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_says_so_and_ends_when_it_is_dropped() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let (log, telling) = (RetryLog::default(), said.clone());
    let progress: ProgressReporter = Arc::new(move |_, text| telling.lock().unwrap().push(text.to_owned()));
    let looking =
        with_retries(POLICY, || true, &log, &progress, |_| async { Err::<(), _>(problem("network")) });
    assert!(tokio::time::timeout(Duration::from_secs(1), looking).await.is_err());
    assert_eq!(*said.lock().unwrap(), ["trying again in 2 s: network"]);
    // The second attempt had not begun yet.
    let summary = log.summary();
    assert_eq!((summary.retries, summary.failed.len()), (0, 1));
}
