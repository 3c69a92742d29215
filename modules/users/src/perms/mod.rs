//! Permissions: `perms_check` and `perms_set`.

pub(crate) mod access;
pub(crate) mod acl;
pub(crate) mod check;
pub(crate) mod mode;
pub(crate) mod set;
pub(crate) mod trees;
pub(crate) mod walk;
