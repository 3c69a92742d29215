//! What the changing tools have in common: one lock, the programs that change accounts, and what they say when they refuse.

use linux_sysadmin_sdk::{Category, prelude::*};

use crate::name::Expiry;

/// All of them take turns, as the programs do with /etc/passwd.
pub(crate) const LOCK: &str = "accounts";

pub(crate) const USERDEL: CommandLine = CommandLine::new("userdel -- <user>");
pub(crate) const USERDEL_HOME: CommandLine = CommandLine::new("userdel --remove -- <user>");
pub(crate) const RENAME: CommandLine = CommandLine::new("usermod --login=<user> -- <user>");
pub(crate) const JOIN: CommandLine = CommandLine::new("gpasswd --add=<user> -- <group>");
pub(crate) const LEAVE: CommandLine = CommandLine::new("gpasswd --delete=<user> -- <group>");
pub(crate) const GROUPDEL: CommandLine = CommandLine::new("groupdel -- <group>");

const GROUPADD: &str = "groupadd [--system] [--gid=<int>] -- <group>";
/// What most accounts have. sudo's rules can allow these, and no path that is left open.
const USUAL_SHELL: &str =
    "[(--shell=/bin/bash|--shell=/usr/bin/bash|--shell=/bin/sh|--shell=/usr/sbin/nologin)]";
const FIELDS: &str = "[(--comment=|--comment=<text>)] [(--expiredate=|--expiredate=<time>)]";
const LOCK_ACCOUNT: &str = "usermod [--lock] --expiredate=1 -- <user>";
const UNLOCK_ACCOUNT: &str = "usermod [--unlock] (--expiredate=|--expiredate=<time>) -- <user>";

/// With what may stand between these options: a home, a shell.
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
        moderate(&useradd(USUAL_SHELL), "a new account, which no password opens"),
        moderate(
            &useradd("[--home-dir=<path>] [--shell=<path>]"),
            "the same with a home or shell of its own",
        ),
        moderate(
            &format!("usermod {FIELDS} {USUAL_SHELL} -- <user>"),
            "an account's comment, shell and expiry, and the way back",
        ),
        moderate(
            &format!("usermod {FIELDS} [--shell=<path>] [--home=<path> [--move-home]] -- <user>"),
            "the same with another home or shell",
        ),
        RENAME.change(Risk::Moderate, "another name for an account, and the way back"),
        JOIN.change(Risk::Moderate, "an account into a group"),
        LEAVE.change(Risk::Moderate, "an account out of a group"),
        moderate(LOCK_ACCOUNT, "nobody logs in to an account, by password or key"),
        moderate(UNLOCK_ACCOUNT, "an account as it was before it was locked"),
        USERDEL.change(Risk::High, "to remove an account, or a new one where the rest of a plan failed"),
        USERDEL_HOME.change(Risk::High, "the same with its home"),
        moderate(GROUPADD, "a new group"),
        GROUPDEL.change(Risk::High, "to remove a group"),
    ]
}

/// What is wanted of an account's fields, for `usermod`. Nothing is left as it is.
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

/// Locks the account for passwords, where one could open it, and for everything else.
pub(crate) fn lock(user: &str, password: bool) -> Command {
    let command = Command::new("usermod").args(password.then_some("--lock"));
    command.args(["--expiredate=1", "--", user]).as_root()
}

/// Its way back.
pub(crate) fn unlock(user: &str, password: bool, expires: &Expiry) -> Command {
    let command = Command::new("usermod").args(password.then_some("--unlock"));
    command.arg(expires.argument()).args(["--", user]).as_root()
}

pub(crate) fn groupadd(name: &str, gid: Option<u32>, system: bool) -> Command {
    let command = Command::new("groupadd").args(system.then_some("--system"));
    command.args(gid.map(|gid| format!("--gid={gid}"))).args(["--", name]).as_root()
}

/// A step that isn't killed: it holds the locks of /etc/passwd.
pub(crate) fn step(command: Command) -> Step {
    Step::run(command).uninterruptible()
}

/// A plan, under the lock.
pub(crate) fn plan(summary: String) -> Change {
    Change::new(summary).lock(Lock::Named(LOCK.to_owned()))
}

/// In the words of the program that refused.
pub(crate) fn apply(change: Change, cx: &Context) -> Result<Applied> {
    cx.apply(change).map_err(|failure| {
        let last = failure.outputs.last().map(Output::error_text).unwrap_or_default();
        let mut problem = Problem::from(failure);
        // Where it is the program's own no, and not the host's.
        if problem.code == "COMMAND_FAILED" && !last.is_empty() && !problem.message.contains(&last) {
            problem.message = format!("{}: {}", problem.message, last.replace('\n', "; "));
        }
        problem
    })
}

pub(crate) fn state(code: &str, message: String) -> Problem {
    Problem::new(code, Category::State, message)
}
