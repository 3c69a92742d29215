//! How names become addresses: the files of the resolver, and systemd-resolved.

pub(crate) mod hosts;
pub(crate) mod owner;
pub(crate) mod resolv_conf;
pub(crate) mod resolvconf;
pub(crate) mod resolved;
