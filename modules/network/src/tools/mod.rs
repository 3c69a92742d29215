//! The tools, one a file.

pub(crate) mod addresses_modify;
pub(crate) mod connections;
pub(crate) mod dns_modify;
pub(crate) mod dns_show;
pub(crate) mod explain;
pub(crate) mod interfaces;
mod modify;
pub(crate) mod routes_modify;
pub(crate) mod routes_show;
pub(crate) mod test;
pub(crate) mod wait;
