//! To be replaced.
use super::request::CommandRequest;

/// Whether it was found harmless.
pub fn is_reviewed(request: &CommandRequest) -> bool {
    request.pattern == "uptime"
}
