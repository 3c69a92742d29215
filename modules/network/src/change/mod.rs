//! Changes to the network: what is set now, which program keeps it, and whose connection it carries.

pub(crate) mod cidr;
pub(crate) mod edit;
pub(crate) mod files;
mod ifupdown;
mod netplan;
mod network_manager;
mod networkd;
pub(crate) mod owner;
pub(crate) mod sessions;
pub(crate) mod setting;
pub(crate) mod view;
