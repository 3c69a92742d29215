//! The name of a host in the configuration and in a call's `host`.

use serde::Deserialize;

/// The name of a host in the user's SSH configuration, or `localhost`, which is this machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Alias(String);

impl Alias {
    /// Returns the name, unless it is this machine's.
    pub fn elsewhere(&self) -> Option<&str> {
        Some(self.0.as_str()).filter(|name| *name != "localhost")
    }
}

impl std::str::FromStr for Alias {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::try_from(text.to_owned())
    }
}

impl TryFrom<String> for Alias {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        let shown = host_text::visible::excerpt(&text, 40);
        match text.as_str() {
            name if (1..=255).contains(&name.len())
                && name.bytes().all(fits)
                && !name.starts_with(['-', '.']) =>
            {
                Ok(Self(text))
            }
            _ => Err(format!(
                "{shown:?} is not a host's name: expected one of letters, digits, `-`, `.`, `_` and `:`, as in `Host` of \
                 ~/.ssh/config; user and port belong there, too"
            )),
        }
    }
}
