//! Requests for what a module needs: command lines and paths, each with its reason.

use crate::bindings::exports::sysadmin::module::describe;
use crate::{Place, Privilege, Risk};

/// The methods that say whose rights a grant takes.
macro_rules! privileges {
    ($grant:ident) => {
        impl $grant {
            /// Takes only the rights of the account that the target is reached as.
            pub fn as_caller(self) -> Self {
                self.privilege(Privilege::Caller)
            }

            /// Takes root's rights at most.
            pub fn as_root(self) -> Self {
                self.privilege(Privilege::Root)
            }

            /// Takes root's rights where the target allows them. The host refuses this for a change, where it must be
            /// certain whose rights are taken.
            pub fn as_root_if_available(self) -> Self {
                self.privilege(Privilege::RootIfAvailable)
            }

            /// Takes the rights of this account. `*` stands for any account but root.
            pub fn as_user(self, name: &str) -> Self {
                self.privilege(Privilege::User(name.to_owned()))
            }

            fn privilege(mut self, privilege: Privilege) -> Self {
                self.0.privilege = privilege;
                self
            }
        }
    };
}

privileges!(CommandGrant);
privileges!(PathGrant);
privileges!(AnyProgramGrant);
privileges!(SignalGrant);

/// A request for a command line.
#[derive(Clone)]
pub struct CommandGrant(describe::CommandGrant);

impl CommandGrant {
    /// The request as the contract has it.
    pub(crate) fn into_request(self) -> describe::CommandGrant {
        self.0
    }

    /// The command line may look, as the account that the target is reached as.
    pub fn read(pattern: &str, reason: &str) -> Self {
        Self(describe::CommandGrant {
            pattern: pattern.to_owned(),
            effect: describe::Effect::Read,
            privilege: Privilege::Caller,
            place: Place::Target,
            risk: Risk::ReadOnly,
            reason: reason.to_owned(),
        })
    }

    /// The command line is a program's own simulation of a change.
    pub fn dry_run(pattern: &str, reason: &str) -> Self {
        let mut grant = Self::read(pattern, reason);
        grant.0.effect = describe::Effect::DryRun;
        grant
    }

    /// The command line may be a step of a plan, with root's rights. `risk` is the least risk of such a plan.
    pub fn change(pattern: &str, risk: Risk, reason: &str) -> Self {
        let mut grant = Self::read(pattern, reason);
        grant.0.effect = describe::Effect::Change;
        grant.0.privilege = Privilege::Root;
        grant.0.risk = risk;
        grant
    }
}

/// A request for any program with any arguments, which amounts to full control of the account.
#[derive(Clone)]
pub struct AnyProgramGrant(describe::AnyProgramGrant);

impl AnyProgramGrant {
    /// The request as the contract has it.
    pub(crate) fn into_request(self) -> describe::AnyProgramGrant {
        self.0
    }

    /// The module may run any program, as the account that the target is reached as.
    pub fn new(reason: &str) -> Self {
        Self(describe::AnyProgramGrant {
            privilege: Privilege::Caller,
            place: Place::Target,
            reason: reason.to_owned(),
        })
    }
}

/// A request for signals to processes, which can end any process that the rights reach.
#[derive(Clone)]
pub struct SignalGrant(describe::SignalGrant);

impl SignalGrant {
    /// The request as the contract has it.
    pub(crate) fn into_request(self) -> describe::SignalGrant {
        self.0
    }

    /// Plans may send signals, with root's rights.
    pub fn new(reason: &str) -> Self {
        Self(describe::SignalGrant {
            privilege: Privilege::Root,
            place: Place::Target,
            reason: reason.to_owned(),
        })
    }
}

/// A request for a program of the module's own, which its plans put on the target. Units and crontabs that its plans write
/// may run it with the arguments that a [`CommandGrant`] of its path allows.
#[derive(Clone)]
pub struct OwnProgramGrant(describe::OwnProgramGrant);

impl OwnProgramGrant {
    /// The request as the contract has it.
    pub(crate) fn into_request(self) -> describe::OwnProgramGrant {
        self.0
    }

    /// A program with this path, `/usr/local/lib/linux-sysadmin/NAME`, and the SHA-256 of its contents in lower-case
    /// hexadecimal digits.
    pub fn new(path: &str, sha256: &str, reason: &str) -> Self {
        let [path, sha256, reason] = [path, sha256.trim(), reason].map(str::to_owned);
        Self(describe::OwnProgramGrant { path, sha256, reason })
    }
}

/// A request for files.
#[derive(Clone)]
pub struct PathGrant(describe::PathGrant);

impl PathGrant {
    /// The request as the contract has it.
    pub(crate) fn into_request(self) -> describe::PathGrant {
        self.0
    }

    /// The module may read the files, as the account that the target is reached as.
    pub fn read(glob: &str, reason: &str) -> Self {
        Self(describe::PathGrant {
            glob: glob.to_owned(),
            write: false,
            privilege: Privilege::Caller,
            place: Place::Target,
            reason: reason.to_owned(),
        })
    }

    /// Plans may write and remove the files, and the module may read them, with root's rights.
    pub fn write(glob: &str, reason: &str) -> Self {
        let mut grant = Self::read(glob, reason);
        grant.0.write = true;
        grant.0.privilege = Privilege::Root;
        grant
    }

    /// The module may read a directory of data on the machine that the server runs on, such as `/usr/share/zoneinfo/**`. It
    /// reads the files by `std::fs`, not through the [`Context`](crate::Context).
    pub fn data(glob: &str, reason: &str) -> Self {
        let mut grant = Self::read(glob, reason);
        grant.0.place = Place::Controller;
        grant
    }
}
