//! Points at which a test can end the server or make a step fail: in the execution of a plan, in the audit log, and
//! where modules are kept.
//!
//! The program that ships has none of this. Only with the feature `fault-points` does it read `LINUX_SYSADMIN_FAULT`,
//! which is `kill@POINT` or `fail@POINT`.

use std::fmt::Arguments;

use crate::problem::Problem;

/// Passes a point. Returns a problem where a test wants this point to fail.
#[cfg(feature = "fault-points")]
pub fn pass(point: Arguments) -> Result<(), Problem> {
    use crate::problem::Category;
    let point = point.to_string();
    let wanted = std::env::var("LINUX_SYSADMIN_FAULT").unwrap_or_default();
    match wanted.split_once('@') {
        Some(("kill", at)) if at == point => {
            // This is like a crash: nothing is flushed, dropped or answered.
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            loop {
                std::thread::park();
            }
        }
        Some(("fail", at)) if at == point => {
            Err(Problem::new("FAULT", Category::Internal, format!("a test made {point} fail")))
        }
        _ => Ok(()),
    }
}

/// Passes a point. Without the feature `fault-points` nothing fails here.
#[cfg(not(feature = "fault-points"))]
pub fn pass(_point: Arguments) -> Result<(), Problem> {
    Ok(())
}
