//! The ports that profiles declare.

pub(crate) mod declared;
