//! What OpenSSH's configuration says of a host.

use std::path::PathBuf;
use std::time::Duration;

use crate::problem::{Category, Problem};

pub struct HostConfig {
    pub alias: String,
    pub hostname: String,
    pub port: u16,
    pub user: String,
    pub identity_files: Vec<PathBuf>,
    pub certificate_files: Vec<PathBuf>,
    pub identities_only: bool,
    pub agent: Option<PathBuf>,
    pub proxy: Proxy,
    pub host_key_alias: Option<String>,
    pub user_known_hosts: Vec<PathBuf>,
    pub global_known_hosts: Vec<PathBuf>,
    pub strict: Strict,
    pub hash_known_hosts: bool,
    pub connect_timeout: Option<Duration>,
    pub address_family: Option<Family>,
    pub bind_address: Option<String>,
    pub host_key_algorithms: Option<Vec<String>>,
    pub kex: Option<Vec<String>>,
    pub ciphers: Option<Vec<String>>,
    pub macs: Option<Vec<String>>,
    pub warnings: Vec<String>,
}

pub enum Proxy {
    None,
    Jump(Vec<Jump>),
    Command(Vec<String>),
}

#[derive(Clone)]
pub struct Jump {
    pub user: Option<String>,
    pub host: String,
    pub port: Option<u16>,
}

#[derive(Clone, Copy)]
pub enum Strict {
    Yes,
    Ask,
    AcceptNew,
}

#[derive(Clone, Copy)]
pub enum Family {
    V4,
    V6,
}

#[derive(Default)]
pub struct Given {
    pub port: Option<u16>,
    pub user: Option<String>,
    pub identity_file: Option<PathBuf>,
}

pub async fn resolve(alias: &str, _: &Given) -> Result<HostConfig, Problem> {
    Err(Problem::new("SSH_CONFIG_INVALID", Category::Validation, format!("{alias}: stub")))
}
