//! Ports: those that services listen on, and those that their profiles declare.

pub(crate) mod declared;
pub(crate) mod listening;
