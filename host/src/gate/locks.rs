//! stub
use crate::{problem::Problem, target::Target};
#[derive(Clone, Debug)]
pub enum Lock {
    PackageDatabase,
    Systemd,
    Lvm,
    File(String),
    Named(String),
}
pub async fn check(_: &Target, _: &[Lock], _: &[String]) -> Result<(), Problem> {
    Ok(())
}
