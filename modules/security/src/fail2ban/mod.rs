//! fail2ban: which jails work and whom they have banned, and own settings of jails, which fail2ban checks before they count.

mod configure;
mod jail_files;
mod python;
mod server;
mod status;
mod value;

pub(crate) use configure::tool as configure;
pub(crate) use status::tool as status;

#[cfg(test)]
mod tests;
