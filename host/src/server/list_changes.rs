//! Tells clients that the list of tools has changed. Every client with a handshake is told; a client of the newest protocol
//! version is told where it subscribed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// The changes of the list since the client of this connection last got it. Two changes may become one notification, but no
/// change stays untold.
pub(super) struct ListChanges {
    seen: Mutex<watch::Receiver<u64>>,
    announced: AtomicBool,
}

impl ListChanges {
    /// Follows the list whose changes are counted here.
    pub(super) fn new(changed: watch::Receiver<u64>) -> Self {
        Self { seen: Mutex::new(changed), announced: AtomicBool::new(false) }
    }

    /// Notes that the client gets the list now, with all changes up to here.
    pub(super) fn mark_seen(&self) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).mark_unchanged();
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
        let mut changed = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Changes that come during a notification become one.
        while changed.changed().await.is_ok() && notify().await.is_ok() {}
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
        let list = watch::Sender::new(0);
        let changes = ListChanges::new(list.subscribe());
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
}
