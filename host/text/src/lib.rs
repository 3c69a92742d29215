//! Text that may be shown to a person or a model, or put on record: nothing in it that can't be seen, and no secret.
//!
//! The crate knows neither commands nor files nor hosts: whoever shows something calls it, and nothing calls back.
#![forbid(unsafe_code)]

pub mod characters;
pub mod redact;
pub mod spelling;
pub mod visible;
