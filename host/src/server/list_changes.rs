//! Tells clients that the list of tools has changed. Every client with a handshake is told; a client of the newest protocol
//! version is told where it subscribed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// The changes of the list since the client of this connection last got it. Two changes may become one notification, but no
/// change stays untold.
pub(super) struct ListChanges {
    seen: Mutex<Changes>,
    announced: AtomicBool,
}

/// Where changes are counted: those of all tools, and those of this client's own list.
#[derive(Clone)]
struct Changes {
    all: watch::Receiver<u64>,
    own: watch::Receiver<u64>,
}

impl ListChanges {
    /// Follows the list of all tools whose changes are counted here, and this client's own.
    pub(super) fn new(all: watch::Receiver<u64>, own: watch::Receiver<u64>) -> Self {
        Self { seen: Mutex::new(Changes { all, own }), announced: AtomicBool::new(false) }
    }

    /// Notes that the client gets the list now, with all changes up to here.
    pub(super) fn mark_seen(&self) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.all.mark_unchanged();
        seen.own.mark_unchanged();
    }

    /// Whether this is the first time that the connection asks for notifications.
    pub(super) fn is_first_request(&self) -> bool {
        !self.announced.swap(true, Ordering::Relaxed)
    }

    /// Notifies the client of every change since it got the list, until the notification fails.
    pub(super) async fn notify_all<E, T>(&self, notify: impl Fn() -> T)
    where
        T: Future<Output = Result<(), E>>,
    {
        let Changes { mut all, mut own } = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        loop {
            // Changes that come during a notification become one.
            let changed = tokio::select! {
                changed = all.changed() => changed,
                changed = own.changed() => changed,
            };
            if changed.is_err() || notify().await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::pin;
    use std::sync::Mutex;
    use std::task::{Context, Waker};

    use tokio::sync::Semaphore;

    use super::*;

    #[test]
    fn changes_during_a_notification_become_one_and_the_latest_is_not_lost() {
        let (list, own) = (watch::Sender::new(0), watch::Sender::new(0));
        let changes = ListChanges::new(list.subscribe(), own.subscribe());
        let (reads, told) = (Semaphore::new(0), Mutex::new(Vec::new()));
        let mut telling = pin!(changes.notify_all(async || {
            told.lock().unwrap().push(*list.borrow());
            reads.acquire().await.unwrap().forget();
            Ok::<(), Infallible>(())
        }));
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..1000 {
            list.send_modify(|changes| *changes += 1);
            assert!(telling.as_mut().poll(&mut cx).is_pending());
        }
        reads.add_permits(10);
        assert!(telling.as_mut().poll(&mut cx).is_pending());
        assert_eq!(*told.lock().unwrap(), [1, 1000]);
    }

    #[test]
    fn a_change_of_either_list_is_told_and_none_that_was_seen() {
        let (list, own) = (watch::Sender::new(0), watch::Sender::new(0));
        let changes = ListChanges::new(list.subscribe(), own.subscribe());
        for changed in [&list, &own] {
            changed.send_modify(|changes| *changes += 1);
        }
        changes.mark_seen();
        let told = Mutex::new(0);
        let mut telling = pin!(changes.notify_all(async || {
            *told.lock().unwrap() += 1;
            Ok::<(), Infallible>(())
        }));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(telling.as_mut().poll(&mut cx).is_pending());
        assert_eq!(*told.lock().unwrap(), 0);
        for (changed, expected) in [(&own, 1), (&list, 2), (&own, 3)] {
            changed.send_modify(|changes| *changes += 1);
            assert!(telling.as_mut().poll(&mut cx).is_pending());
            assert_eq!(*told.lock().unwrap(), expected);
        }
    }
}
