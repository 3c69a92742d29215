//! Values. The kernel separates the words of a value by tabs, and people by blanks.

use linux_sysadmin_sdk::prelude::*;

use super::key::Key;

/// The most characters of a value.
const MOST: usize = 1000;
/// Limits: the smaller, the less the machine can do.
const LIMITS: [&str; 8] = [
    "fs.aio-max-nr",
    "fs.file-max",
    "fs.inotify.max_user_instances",
    "fs.inotify.max_user_watches",
    "kernel.pid_max",
    "kernel.threads-max",
    "net.core.somaxconn",
    "vm.max_map_count",
];

/// A value as somebody gives it.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Value {
    Number(i64),
    Text(String),
}

impl Value {
    /// The value as one line, its words separated by one blank.
    pub(crate) fn checked(&self, key: &Key) -> Result<String> {
        let text = match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        };
        let is_visible = text.chars().all(|c| c == '\t' || c.is_ascii_graphic() || c == ' ');
        let words = words(&text);
        // An argument that begins with a dash is an option, unless it is a number.
        let is_option = words
            .strip_prefix('-')
            .is_some_and(|rest| rest.is_empty() || !rest.bytes().all(|byte| byte.is_ascii_digit()));
        match is_visible && !is_option && (1..=MOST).contains(&words.len()) {
            true => Ok(words),
            false => Err(Problem::validation(
                "INVALID_VALUE",
                format!(
                    "the value of {}: expected 1 to {MOST} visible ASCII characters on one line, beginning with `-` only as \
                     a number",
                    key.name()
                ),
            )),
        }
    }
}

/// The words of a value, separated by one blank.
pub(crate) fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Says what a smaller limit does.
pub(crate) fn lowers(key: &Key, before: &str, after: &str) -> Option<String> {
    let is_less =
        before.parse::<u64>().is_ok_and(|before| after.parse::<u64>().is_ok_and(|after| after < before));
    (is_less && LIMITS.contains(&key.name().as_str())).then(|| {
        format!("lowers {} from {before} to {after}: programs that need more than that fail", key.name())
    })
}
