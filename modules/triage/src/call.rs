//! The call that a finding suggests. A text of the target becomes an argument only where it has the form of what the argument
//! means.

use linux_sysadmin_sdk::accounts::check_user;
use linux_sysadmin_sdk::packages::check_name;
use linux_sysadmin_sdk::{prelude::*, text};
use serde_json::{Map, Value, json};

/// The longest path, host or text in an argument, in bytes.
const LONGEST: usize = 255;

/// The greatest number of a process on Linux.
const MOST_PIDS: u64 = 1 << 22;

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
}

impl Call {
    /// A call without arguments.
    pub(crate) fn new(tool: &'static str) -> Self {
        Self { tool: tool.to_owned(), arguments: Map::new() }
    }

    /// Adds an argument that this module itself has written.
    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        self.arguments.insert(name.to_owned(), value);
        self
    }

    /// Adds an argument from the target. None where the text hasn't the form of it.
    pub(crate) fn of(self, name: &str, form: Form, text: &str) -> Option<Self> {
        let value = form.value(text)?;
        Some(self.with(name, value))
    }
}

/// The form that a text of the target must have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Form {
    Unit,
    User,
    Package,
    Path,
    Host,
    Port,
    Pid,
    /// The number of a line, from 1.
    Line,
    /// A text to search for as it is.
    Literal,
}

impl Form {
    /// The form of a hole of this name in the data of [`crate::signs`].
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "service" => Self::Unit,
            "user" => Self::User,
            "path" | "file" | "dir" => Self::Path,
            "host" => Self::Host,
            "port" => Self::Port,
            "pid" => Self::Pid,
            "line" => Self::Line,
            "text" => Self::Literal,
            _ => return None,
        })
    }

    /// The argument, where the text has this form.
    pub(crate) fn value(self, text: &str) -> Option<Value> {
        let is_short = !text.is_empty() && text.len() <= LONGEST && !text::has_hidden(text);
        let number = |most: u64| {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u64>().ok().filter(|number| is_plain && (1..=most).contains(number)).map(Value::from)
        };
        let words = |more: &str| {
            !text.starts_with('-') && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        let is_it = is_short
            && match self {
                Self::Unit => words(":_.@-\\"),
                Self::User => check_user(text).is_ok(),
                Self::Package => check_name(text).is_ok(),
                Self::Path => text.starts_with('/') && text.split('/').all(|part| part != ".."),
                Self::Host => words("._:-"),
                Self::Port => return number(65_535).filter(|_| is_short),
                Self::Pid => return number(MOST_PIDS).filter(|_| is_short),
                Self::Line => return number(u64::from(u32::MAX)).filter(|_| is_short),
                Self::Literal => true,
            };
        is_it.then(|| json!(text))
    }
}

/// The tools that a `next` of another tool's answer may name, with the form of the argument that it may give.
const NEXT: &[(&str, &str, Form)] = &[
    ("svc_start", "service", Form::Unit),
    ("svc_restart", "service", Form::Unit),
    ("svc_status", "service", Form::Unit),
    ("svc_logs", "service", Form::Unit),
    ("proc_info", "pid", Form::Pid),
];

/// Reads `svc_start service=chrony.service`, as answers suggest a call. None for anything that isn't one of [`NEXT`], or one of
/// two calls without a hole.
pub(crate) fn next(text: &str) -> Option<Call> {
    match text {
        "machine_set ntp=true" => return Some(Call::new("machine_set").with("ntp", json!(true))),
        "pkg_install package=chrony" => {
            return Some(Call::new("pkg_install").with("package", json!("chrony")));
        }
        _ => {}
    }
    let (tool, argument) = text.split_once(' ')?;
    let (name, value) = argument.split_once('=')?;
    let (tool, name, form) = NEXT.iter().find(|known| (known.0, known.1) == (tool, name))?;
    Call::new(tool).of(name, *form, value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_the_target_is_an_argument_only_in_its_form() {
        use Form::{Host, Line, Literal, Package, Path, Pid, Port, Unit, User};
        for (form, good, bad) in [
            (
                Unit,
                &["nginx", "getty@tty1.service", "dev-disk\\x2dby.device"][..],
                &["-H", "a b", "a;b", "", "ä"][..],
            ),
            (User, &["anna", "www-data"], &["-x", "a:b", "a\nb", ""]),
            (Package, &["nginx", "libc6"], &["-x", "nginx=1", "a b"]),
            (Path, &["/etc/x", "/srv/a b"], &["etc/x", "/a/../b", "/a\u{202e}b", "/a\nb", ""]),
            (Host, &["db.intern.example", "192.0.2.1", "2001:db8::1"], &["-x", "a/b", "a b", "$(id)"]),
            (Port, &["80", "65535"], &["0", "65536", "+80", "8 0", "-1", ""]),
            (Pid, &["1", "4190000"], &["0", "-1", "99999999", "1;2"]),
            (Line, &["1"], &["0", "x"]),
            (Literal, &["a.b"], &["", "a\nb", "a\u{200b}"]),
        ] {
            for text in good {
                assert!(form.value(text).is_some(), "{form:?} {text}");
            }
            for text in bad {
                assert_eq!(form.value(text), None, "{form:?} {text}");
            }
            assert_eq!(form.value(&"9".repeat(300)), None, "{form:?}");
        }
    }

    #[test]
    fn a_suggestion_in_an_answer_is_a_call_of_few_tools_only() {
        let read = |text: &str| next(text).map(|call| serde_json::to_value(call).unwrap());
        assert_eq!(
            read("svc_start service=chrony.service"),
            Some(json!({"tool": "svc_start", "arguments": {"service": "chrony.service"}}))
        );
        assert_eq!(
            read("pkg_install package=chrony"),
            Some(json!({"tool": "pkg_install", "arguments": {"package": "chrony"}}))
        );
        for text in
            ["command_run argv=id", "svc_start service=-Hx", "svc_start unit=x", "svc_start", "", "a=b"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
