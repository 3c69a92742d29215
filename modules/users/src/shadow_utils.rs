//! The programs that change accounts and groups: useradd, usermod, userdel, groupadd, groupdel and gpasswd.

use linux_sysadmin_sdk::accounts::expiry::Expiry;
use linux_sysadmin_sdk::prelude::*;

pub(crate) const USERDEL: CommandLine = CommandLine::new("userdel -- <user>");
pub(crate) const USERDEL_HOME: CommandLine = CommandLine::new("userdel --remove -- <user>");
pub(crate) const RENAME: CommandLine = CommandLine::new("usermod --login=<user> -- <user>");
pub(crate) const JOIN: CommandLine = CommandLine::new("gpasswd --add=<user> -- <group>");
pub(crate) const LEAVE: CommandLine = CommandLine::new("gpasswd --delete=<user> -- <group>");
pub(crate) const GROUPDEL: CommandLine = CommandLine::new("groupdel -- <group>");

const GROUPADD: &str = "groupadd [--system] [--gid=<int>] -- <group>";
/// The usual shells. sudo's rules can allow these options, but not a path that is left open.
const USUAL_SHELL: &str =
    "[(--shell=/bin/bash|--shell=/usr/bin/bash|--shell=/bin/sh|--shell=/usr/sbin/nologin)]";
const FIELDS: &str = "[(--comment=|--comment=<text>)] [(--expiredate=|--expiredate=<time>)]";
const LOCK_ACCOUNT: &str = "usermod [--lock] --expiredate=1 -- <user>";
const UNLOCK_ACCOUNT: &str = "usermod [--unlock] (--expiredate=|--expiredate=<time>) -- <user>";

/// The pattern of `useradd`, with `place` for home and shell.
fn useradd(place: &str) -> String {
    format!(
        "useradd [--system] (--create-home|--no-create-home) [--uid=<int>] [--gid=<group>] {place} \
         [--comment=<text>] [--expiredate=<time>] \
         [(--groups=<group>|--groups=<group>,<group>|--groups=<group>,<group>,<group>\
         |--groups=<group>,<group>,<group>,<group>)] -- <user>"
    )
}

pub(crate) fn grants() -> Vec<CommandGrant> {
    let moderate = |pattern: &str, reason: &str| CommandGrant::change(pattern, Risk::Moderate, reason);
    vec![
        moderate(&useradd(USUAL_SHELL), "to make an account without a password"),
        moderate(
            &useradd("[--home-dir=<path>] [--shell=<path>]"),
            "to make an account with another home or shell",
        ),
        moderate(
            &format!("usermod {FIELDS} {USUAL_SHELL} -- <user>"),
            "to change an account's comment, shell and expiry, and to undo that",
        ),
        moderate(
            &format!("usermod {FIELDS} [--shell=<path>] [--home=<path> [--move-home]] -- <user>"),
            "to change an account's home and shell, and to undo that",
        ),
        RENAME.change(Risk::Moderate, "to rename an account, and to undo that"),
        JOIN.change(Risk::Moderate, "to add an account to a group"),
        LEAVE.change(Risk::Moderate, "to remove an account from a group"),
        moderate(LOCK_ACCOUNT, "to lock an account"),
        moderate(UNLOCK_ACCOUNT, "to unlock an account"),
        USERDEL.change(Risk::High, "to remove an account, also a new one where the rest of a plan failed"),
        USERDEL_HOME.change(Risk::High, "to remove an account with its home"),
        moderate(GROUPADD, "to make a group"),
        GROUPDEL.change(Risk::High, "to remove a group"),
    ]
}

/// New values of an account's fields, for `usermod`. `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) comment: Option<String>,
    pub(crate) shell: Option<String>,
    pub(crate) expires: Option<Expiry>,
    pub(crate) home: Option<String>,
    pub(crate) move_home: bool,
}

impl Fields {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn command(&self, user: &str) -> Command {
        let mut command = Command::new("usermod");
        let options = [
            self.comment.as_ref().map(|comment| format!("--comment={comment}")),
            self.expires.as_ref().map(Expiry::argument),
            self.shell.as_ref().map(|shell| format!("--shell={shell}")),
            self.home.as_ref().map(|home| format!("--home={home}")),
            self.move_home.then(|| "--move-home".to_owned()),
        ];
        command = command.args(options.into_iter().flatten());
        command.arg("--").arg(user).as_root()
    }
}

/// Locks an account: its expiry keeps everybody out, and its password is locked as well where there is one.
pub(crate) fn lock(user: &str, password: bool) -> Command {
    let command = Command::new("usermod").args(password.then_some("--lock"));
    command.args(["--expiredate=1", "--", user]).as_root()
}

/// Undoes [`lock`].
pub(crate) fn unlock(user: &str, password: bool, expires: &Expiry) -> Command {
    let command = Command::new("usermod").args(password.then_some("--unlock"));
    command.arg(expires.argument()).args(["--", user]).as_root()
}

pub(crate) fn groupadd(name: &str, gid: Option<u32>, system: bool) -> Command {
    let command = Command::new("groupadd").args(system.then_some("--system"));
    command.args(gid.map(|gid| format!("--gid={gid}"))).args(["--", name]).as_root()
}
