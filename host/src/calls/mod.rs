//! The life of calls: how one runs, waits for a confirmation, goes on as a job, or runs on many hosts at once.
//!
//! A [`call_handle::CallHandle`] is a call that runs. It asks through its
//! [`confirmation_channel::ConfirmationChannel`], and waits in [`pending_calls`] until the answer comes.

pub mod call_handle;
pub mod call_key;
pub mod call_pool;
pub mod confirmation_channel;
pub mod jobs;
pub mod multi_host;
pub mod pending_calls;
pub mod scheduler;
#[cfg(test)]
mod test_calls;

use host_base::problem::{Category, Problem};

/// The error of a call that was cancelled.
pub fn cancelled() -> Problem {
    Problem::new("CANCELLED", Category::Other, "the call was cancelled")
}
