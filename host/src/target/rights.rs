use super::{Command, Privilege};
use crate::problem::Problem;
pub use rustix::process::Signal;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rights {
    pub available: bool,
    pub limited: bool,
    pub root: bool,
}
impl Rights {
    pub(super) fn takes_sudo(self, privilege: &Privilege) -> bool {
        match privilege {
            Privilege::Caller => false,
            Privilege::User(_) => true,
            Privilege::Root => !self.root,
            Privilege::RootIfAvailable => !self.root && self.available,
        }
    }
}
pub(super) struct Head {
    pub argv: Vec<String>,
    pub shown: String,
    pub ends: Ends,
}
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ends {
    Group,
    Sudo(Signal),
}
pub(super) fn head(
    command: &Command,
    rights: Rights,
    find: impl Fn(&str) -> Result<String, Problem>,
) -> Result<Head, Problem> {
    let none = Head { argv: vec![], shown: String::new(), ends: Ends::Group };
    let sudo = |args: &[&str]| -> Result<Head, Problem> {
        let mut argv = vec![find("sudo")?];
        argv.extend(args.iter().map(|arg| (*arg).to_owned()));
        if !rights.limited {
            argv.extend(command.env.iter().map(|(n, v)| format!("{n}={v}")));
        }
        argv.push("--".into());
        Ok(Head { argv, shown: format!("sudo {} ", args.join(" ")), ends: Ends::Sudo(Signal::TERM) })
    };
    if !rights.takes_sudo(&command.privilege)
        && !(command.privilege == Privilege::Root && !rights.root && !rights.available)
    {
        return Ok(none);
    }
    if !rights.available {
        return Err(super::local::no_root());
    }
    match &command.privilege {
        Privilege::User(name) => sudo(&["-n", "-u", name]),
        _ => sudo(&["-n"]),
    }
}
