//! Permissions: `perms_check` and `perms_set`.

pub(crate) mod access;
pub(crate) mod check;
pub(crate) mod mode;
pub(crate) mod path_walk;
pub(crate) mod protected_paths;
pub(crate) mod set;
