//! Points in the execution of a plan, of what puts it on record, and of what keeps modules, where a test can end the server
//! or make it fail.
//!
//! Nothing of it is in the program that ships: only with the feature `fault-points` is
//! `LINUX_SYSADMIN_FAULT=kill@POINT` or `fail@POINT` looked at.

use std::fmt::Arguments;

use crate::problem::Problem;

/// Passes a point: a problem where a test wants one here.
#[cfg(feature = "fault-points")]
pub fn pass(point: Arguments) -> Result<(), Problem> {
    use crate::problem::Category;
    let point = point.to_string();
    let wanted = std::env::var("LINUX_SYSADMIN_FAULT").unwrap_or_default();
    match wanted.split_once('@') {
        Some(("kill", at)) if at == point => {
            // As a crash: nothing is flushed, dropped or answered.
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

/// Passes a point.
#[cfg(not(feature = "fault-points"))]
pub fn pass(_point: Arguments) -> Result<(), Problem> {
    Ok(())
}
