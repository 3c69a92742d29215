//! Components from elsewhere: from a registry of the Open Container Initiative or a web server, and to such a registry.
//!
//! Whoever answers is not trusted. What comes out of here has the SHA-256 that was asked for, or the one that the answer to
//! a tag has named. Every answer is bounded in size and in time. The crate knows no module and no contract.
#![forbid(unsafe_code)]

mod address;
mod authorization;
mod credentials;
mod download;
mod error;
mod http;
mod manifest;
mod publish;
mod reference;
mod registry_client;
mod repository;
#[cfg(test)]
mod test_server;

pub use address::{Source, WebAddress};
pub use download::Download;
pub use error::DistributionError;
pub use manifest::Annotations;
pub use publish::Published;
pub use reference::Reference;
pub use registry_client::{RegistryClient, Resolved};
