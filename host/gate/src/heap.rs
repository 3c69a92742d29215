//! Keeps what a plan awaits off the stack of a thread, which is small.

use std::pin::Pin;

/// Makes a future on the heap. A future that an async function makes and boxes afterwards takes a part of the stack all the same.
pub fn on_heap<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::pin(make())
}
