//! A module for the tests: it waits for an hour before it says what it is.
#![forbid(unsafe_code)]

use std::time::Duration;

use linux_sysadmin_sdk::prelude::*;

/// The module, in an hour.
pub fn module() -> Module {
    std::thread::sleep(Duration::from_secs(3600));
    Module::new("sleepy", env!("CARGO_PKG_VERSION"), "sleepy", "For the tests")
}

linux_sysadmin_sdk::export!(module);
