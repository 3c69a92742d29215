//! The account whose rights a command or a file access takes.

use serde::{Deserialize, Serialize};

/// The account whose rights a command or a file access takes. Written as `caller`, `root`, `root-if-available`,
/// `user:NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Privilege {
    /// The account that the target is reached as.
    Caller,
    /// Root, by `sudo -n`, or directly where the caller is root.
    Root,
    /// `Root` where its rights are available, else `Caller`.
    RootIfAvailable,
    /// Another account.
    User(String),
}

impl From<Privilege> for String {
    fn from(privilege: Privilege) -> Self {
        match privilege {
            Privilege::Caller => "caller".into(),
            Privilege::Root => "root".into(),
            Privilege::RootIfAvailable => "root-if-available".into(),
            Privilege::User(name) => format!("user:{name}"),
        }
    }
}

impl TryFrom<String> for Privilege {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match (text.as_str(), text.strip_prefix("user:")) {
            ("caller", _) => Ok(Self::Caller),
            ("root", _) => Ok(Self::Root),
            ("root-if-available", _) => Ok(Self::RootIfAvailable),
            (_, Some(name)) => Ok(Self::User(name.to_owned())),
            _ => Err(format!("expected caller, root, root-if-available or user:NAME, found {text}")),
        }
    }
}

impl Privilege {
    /// Returns the account whose rights are taken, where it isn't the caller.
    pub fn account(&self) -> Option<&str> {
        match self {
            Self::Caller => None,
            Self::Root | Self::RootIfAvailable => Some("root"),
            Self::User(name) => Some(name),
        }
    }
}
