//! Clients hear that the list of tools has changed: all those of a handshake, and of the newest generation who
//! subscribed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// The changes of the list since this connection's client was last given it. Two that follow each other may be told
/// as one; the latest is always told.
pub(super) struct Changes {
    given: Mutex<watch::Receiver<u64>>,
    announced: AtomicBool,
}

impl Changes {
    /// Of the list that counts its changes here.
    pub(super) fn new(changed: watch::Receiver<u64>) -> Self {
        Self { given: Mutex::new(changed), announced: AtomicBool::new(false) }
    }

    /// The list is given, as it is from now on.
    pub(super) fn given(&self) {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).mark_unchanged();
    }

    /// Whether this is the first time that the whole connection is to be told.
    pub(super) fn announce_once(&self) -> bool {
        !self.announced.swap(true, Ordering::Relaxed)
    }

    /// Tells of every change to come, and of one since the list was given, until there is nobody to tell.
    pub(super) async fn tell<E, T>(&self, tell: impl Fn() -> T)
    where
        T: Future<Output = Result<(), E>>,
    {
        let mut changed = self.given.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // While somebody is told, further changes come together.
        while changed.changed().await.is_ok() && tell().await.is_ok() {}
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
    fn changes_while_a_client_is_told_are_told_together_and_the_latest_is_not_lost() {
        let list = watch::Sender::new(0);
        let changes = Changes::new(list.subscribe());
        let (reads, told) = (Semaphore::new(0), Mutex::new(Vec::new()));
        let mut telling = pin!(changes.tell(async || {
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
