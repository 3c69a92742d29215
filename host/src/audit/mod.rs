//! stub
use serde_json::Value;
pub enum Durability {
    Lazy,
    Synced,
}
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct AuditError(String);
impl AuditError {
    pub fn internal(e: impl ToString) -> Self {
        Self(e.to_string())
    }
}
#[derive(Default)]
pub struct Settings;
impl From<&crate::config::AuditLog> for Settings {
    fn from(_: &crate::config::AuditLog) -> Self {
        Settings
    }
}
pub struct Audit;
pub struct Appended;
impl Audit {
    pub fn new(_: std::path::PathBuf, _: Settings) -> Self {
        Self
    }
    pub fn append(&self, _: &Event, _: Durability) -> Result<Appended, AuditError> {
        Ok(Appended)
    }
}
pub struct ChangeBegun;
pub enum Event {
    ChangeBegun(Box<ChangeBegun>),
    Call,
    Ended,
}
pub enum Decision {
    Allowed,
    DryRun,
    Refused,
    Looked,
}
pub fn canonical(v: &Value) -> Result<String, AuditError> {
    Ok(v.to_string())
}
