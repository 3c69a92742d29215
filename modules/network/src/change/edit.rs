//! What the formats of network configuration have in common.

use linux_sysadmin_sdk::prelude::*;

use super::setting::Setting;

/// Name servers and search domains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Dns {
    pub(crate) servers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) search: Vec<String>,
}

impl Dns {
    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.search.is_empty()
    }
}

/// A format of files that configure one interface. What a file says of other interfaces, and its comments, stay as they are.
pub(crate) trait Format {
    /// True if the file is the one in which the interface is configured.
    fn holds(&self, text: &str) -> bool;

    /// The text with the setting, which it hasn't got.
    fn add(&self, text: &str, setting: &Setting) -> Result<String>;

    /// The text without the setting. None where it hasn't got it.
    fn remove(&self, text: &str, setting: &Setting) -> Result<Option<String>>;

    /// The servers and domains in the text.
    fn dns(&self, text: &str) -> Dns;

    /// The text with these servers and domains in place of those that it has.
    fn set_dns(&self, text: &str, dns: &Dns) -> Result<String>;
}

/// The words in a comment by which a program says that it writes the file.
const MARKS: [&str; 7] = [
    "generated",
    "do not edit",
    "don't edit",
    "managed by",
    "be overwritten",
    "will not persist",
    "edited by hand",
];

/// True if a comment says that a program writes the file, so that a change would be lost.
pub(crate) fn is_generated(text: &str) -> bool {
    let comments = text.lines().filter(|line| line.starts_with(['#', ';'])).map(str::to_lowercase);
    comments.into_iter().any(|line| MARKS.iter().any(|mark| line.contains(mark)))
}

/// Joins lines to a text that ends with a newline.
pub(crate) fn text_of<S: AsRef<str>>(lines: &[S]) -> String {
    lines.iter().map(|line| format!("{}\n", line.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_tells_that_a_program_writes_a_file() {
        for (text, expected) in [
            (
                "# This file is generated from information provided by the datasource.  Changes\n# to it will not persist\n",
                true,
            ),
            ("# Ansible managed by ops. Do not edit\n", true),
            (
                "# This file describes the network interfaces available on your system\n# and how to activate them. For more information, see interfaces(5).\n",
                false,
            ),
            ("# Let NetworkManager manage all devices on this system\nnetwork:\n", false),
            ("[Match]\nName=generated\n", false),
            ("", false),
        ] {
            assert_eq!(is_generated(text), expected, "{text}");
        }
    }
}
