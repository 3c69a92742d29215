//! tmp
use linux_sysadmin_sdk::prelude::*;
pub(crate) fn check(path: &str) -> Result<()> {
    let _ = path;
    Ok(())
}
