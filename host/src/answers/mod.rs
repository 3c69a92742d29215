//! Makes the answers to clients: the envelope, the module's reply in it, and the remediation steps for errors.

pub mod envelope;
mod paging;
pub mod remediation;
pub mod reply;
pub mod text;
