//! A signal ends the tests instead of xtask, so that the hosts are still taken down.

use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Whether someone wants the run to stop, and the process groups that are ended then.
#[derive(Default)]
pub(super) struct Interrupt {
    stop: AtomicBool,
    groups: Mutex<BTreeSet<i32>>,
}

impl Interrupt {
    /// From now on a signal ends what is running.
    pub(super) fn watch() -> Result<Arc<Self>> {
        let interrupt = Arc::new(Self::default());
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let told = interrupt.clone();
        thread::spawn(move || {
            for _ in signals.forever() {
                eprintln!("xtask: stopping; the hosts are being taken down");
                told.stop.store(true, Ordering::SeqCst);
                told.end_all();
            }
        });
        Ok(interrupt)
    }

    pub(super) fn is_told(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// A process group that runs from now on. One that began after the signal is ended at once.
    pub(super) fn begins(&self, group: u32) {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).insert(group as i32);
        if self.is_told() {
            end(group as i32, Signal::KILL);
        }
    }

    /// Its leader has ended; whatever is left of it is killed.
    pub(super) fn ended(&self, group: u32) {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).remove(&(group as i32));
        end(group as i32, Signal::KILL);
    }

    fn end_all(&self) {
        for group in self.groups.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            end(*group, Signal::KILL);
        }
    }
}

fn end(group: i32, signal: Signal) {
    if let Some(group) = Pid::from_raw(group) {
        kill_process_group(group, signal).ok();
    }
}
