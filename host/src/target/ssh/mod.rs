//! Machines across SSH: what OpenSSH's files say of a host.

mod config;
mod known_hosts;
mod pattern;
