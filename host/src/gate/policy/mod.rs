//! What a change would do, beside what the grants allow.

pub mod text;
