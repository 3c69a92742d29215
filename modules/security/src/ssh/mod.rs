//! sshd: what is weak in its effective configuration, and hardening that can't lock anybody out.

mod action;
mod administrators;
mod check;
mod config_file;
mod harden;
mod key_login;
mod lockout;
mod sshd_files;
mod weakness;

pub(crate) use check::{ahead, find, tool as check};
pub(crate) use harden::tool as harden;

#[cfg(test)]
mod tests;
