//! Ansible's variables that say how a host is reached: those that are followed, the values that they may have, and
//! those that only cause a warning. The values of all others are never looked at or kept, because there are passwords
//! among them.

use std::collections::BTreeMap;
use std::sync::Arc;

use host_openssh::Alias;
use host_openssh::config::{check_host, check_user};
use host_text::visible::excerpt;

use super::{Entry, range};

/// The variables that are followed. Where an old name and a new one are both set, the one further down here wins, as
/// for Ansible (`vars` of the options in `lib/ansible/plugins/connection/ssh.py`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Variable {
    Host,
    SshHost,
    Port,
    SshPort,
    User,
    SshUser,
    KeyFile,
    SshKeyFile,
    Connection,
}

impl Variable {
    const ALL: [(&'static str, Self); 9] = [
        ("ansible_host", Self::Host),
        ("ansible_ssh_host", Self::SshHost),
        ("ansible_port", Self::Port),
        ("ansible_ssh_port", Self::SshPort),
        ("ansible_user", Self::User),
        ("ansible_ssh_user", Self::SshUser),
        ("ansible_private_key_file", Self::KeyFile),
        ("ansible_ssh_private_key_file", Self::SshKeyFile),
        ("ansible_connection", Self::Connection),
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, variable)| *variable)
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, variable)| *variable == self).map_or("", |(name, _)| name)
    }
}

/// Returns the advice about a variable that changes how Ansible reaches a host and isn't followed.
pub(super) fn ignored_variables(name: &str) -> Option<&'static str> {
    Some(match name {
        "ansible_password"
        | "ansible_pass"
        | "ansible_ssh_pass"
        | "ansible_ssh_password"
        | "ansible_become_pass"
        | "ansible_become_password"
        | "ansible_sudo_pass"
        | "ansible_su_pass"
        | "ansible_private_key"
        | "ansible_ssh_private_key"
        | "ansible_private_key_passphrase"
        | "ansible_ssh_private_key_passphrase"
        | "ansible_paramiko_pass"
        | "ansible_paramiko_password" => {
            "no password or key is taken from an inventory: use keys and ssh-agent"
        }
        "ansible_ssh_args"
        | "ansible_ssh_common_args"
        | "ansible_ssh_extra_args"
        | "ansible_ssh_executable"
        | "ansible_paramiko_proxy_command"
        | "ansible_host_key_checking"
        | "ansible_ssh_host_key_checking"
        | "ansible_paramiko_host_key_checking" => {
            "options and proxies belong into ~/.ssh/config, which is followed for every host"
        }
        _ => return None,
    })
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Number(i64),
    /// An empty value, which counts even if a group sets another.
    Nothing,
    /// A template of Jinja.
    Template,
    /// A value that ansible-vault encrypted.
    Encrypted,
    /// A value that is neither text nor a whole number, such as a list or a boolean.
    Other,
}

impl Value {
    /// Makes a value of plain text.
    pub(super) fn text(text: &str) -> Self {
        match text {
            "" => Self::Nothing,
            _ if ["{{", "{%", "{#"].iter().any(|begin| text.contains(begin)) => Self::Template,
            _ => Self::Text(text.to_owned()),
        }
    }

    /// Reads what stands after `=` in an INI inventory. It is a value if Python's `ast.literal_eval` reads it as one,
    /// and otherwise text.
    pub(super) fn literal(text: &str) -> Self {
        let text = text.trim();
        if Self::text(text) == Self::Template {
            return Self::Template;
        }
        match text.chars().next() {
            Some(quote @ ('"' | '\'')) => return quoted(&text[1..], quote),
            Some('[' | '{' | '(') => return Self::Other,
            _ => {}
        }
        // For Python, a comment may follow a value; in other text, `#` is a part of the text.
        let bare = text.split_once('#').map_or(text, |(before, _)| before.trim_end());
        match bare {
            "None" => Self::Nothing,
            "True" | "False" | "..." => Self::Other,
            _ => match number(bare) {
                Some(Ok(number)) => Self::Number(number),
                Some(Err(())) => Self::Other,
                None => Self::text(text),
            },
        }
    }
}

/// Reads what stands after a quote: the other quote, and then nothing but a comment.
fn quoted(text: &str, quote: char) -> Value {
    let Some((inside, behind)) = text.split_once(quote) else { return Value::Other };
    let behind = behind.trim_start();
    match (behind.is_empty() || behind.starts_with('#')) && !inside.contains('\\') {
        true => Value::text(inside),
        false => Value::Other,
    }
}

/// Parses a whole number as Python writes it in decimal, or recognizes another kind of number.
fn number(text: &str) -> Option<Result<i64, ()>> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain {
        // A zero in front makes it text, unless all digits are zeros.
        let is_number = !digits.starts_with('0') || digits.bytes().all(|byte| byte == b'0');
        return is_number.then(|| text.parse().map_err(|_| ()));
    }
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text).to_ascii_lowercase().replace('_', "");
    let based = |prefix: &str, base: u32| {
        rest.strip_prefix(prefix).is_some_and(|digits| u128::from_str_radix(digits, base).is_ok())
    };
    let is_float = rest.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && rest.strip_suffix('j').unwrap_or(&rest).parse::<f64>().is_ok();
    (is_float || based("0x", 16) || based("0o", 8) || based("0b", 2)).then_some(Err(()))
}

/// A value, and the place where it was set.
#[derive(Clone, Debug)]
pub(super) struct SetValue {
    pub(super) value: Value,
    pub(super) location: Arc<str>,
}

/// The followed variables of a host or a group.
pub(super) type Variables = BTreeMap<Variable, SetValue>;

/// Returns how a host is reached, by its variables. The error says why this isn't followed, and where it was set.
pub(super) fn entry(name: &str, variables: &Variables) -> Result<Entry, (String, Option<Arc<str>>)> {
    let connection = read(variables, &[Variable::Connection], |value| match value {
        Value::Text(text) => match text.strip_prefix("ansible.builtin.").unwrap_or(text) {
            "local" => Ok(true),
            "ssh" | "smart" | "paramiko" | "paramiko_ssh" => Ok(false),
            other => {
                Err(format!("is {:?}, and only hosts that ssh reaches are followed", excerpt(other, 40)))
            }
        },
        _ => Err("is no text".to_owned()),
    })?;
    name.parse::<Alias>().map_err(|why| (why, None))?;
    let mut entry = Entry { name: name.to_owned(), is_local: connection == Some(true), ..Entry::default() };
    if entry.is_local {
        return Ok(entry);
    }
    entry.hostname = read(variables, &[Variable::Host, Variable::SshHost], |value| match value {
        Value::Text(text) => {
            check_host("a host", text).map(|()| text.clone()).map_err(|problem| problem.message)
        }
        _ => Err("is no name and no address".to_owned()),
    })?;
    entry.port = read(variables, &[Variable::Port, Variable::SshPort], |value| {
        let port = match value {
            Value::Text(text) => range::port(text),
            Value::Number(number) => u16::try_from(*number).ok().filter(|port| *port != 0),
            _ => None,
        };
        port.ok_or_else(|| "is no port from 1 to 65535".to_owned())
    })?;
    entry.user = read(variables, &[Variable::User, Variable::SshUser], |value| {
        let user = match value {
            Value::Text(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return Err("is no account's name".to_owned()),
        };
        check_user(&user).map(|()| user).map_err(|problem| problem.message)
    })?;
    entry.identity_file = read(variables, &[Variable::KeyFile, Variable::SshKeyFile], |value| match value {
        Value::Text(path) if is_path(path) => Ok(path.clone()),
        _ => Err(
            "is no absolute path and none that begins with ~/: Ansible takes it from wherever it is started"
                .to_owned(),
        ),
    })?;
    if name != "localhost" {
        return Ok(entry);
    }
    // Ansible reaches it by ssh. Here the name is this machine, which is reached without ssh.
    let is_elsewhere = entry.hostname.is_some() || entry.port.is_some() || entry.user.is_some();
    match is_elsewhere || entry.identity_file.is_some() {
        false => Ok(Entry { is_local: true, ..entry }),
        true => {
            let reason = "localhost is always this machine itself, and the inventory reaches it by ssh: set \
                          ansible_connection=local, or give it another name";
            Err((reason.to_owned(), None))
        }
    }
}

/// Reads the last of these variables that is set.
fn read<T>(
    variables: &Variables,
    names: &[Variable],
    read: impl Fn(&Value) -> Result<T, String>,
) -> Result<Option<T>, (String, Option<Arc<str>>)> {
    let set = names.iter().rev().find_map(|name| {
        let set = variables.get(name).filter(|set| set.value != Value::Nothing)?;
        Some((name.name(), set))
    });
    let Some((name, SetValue { value, location })) = set else { return Ok(None) };
    let found = match value {
        Value::Template => Err("is a template, and nothing is filled in here".to_owned()),
        Value::Encrypted => Err("is encrypted by ansible-vault".to_owned()),
        value => read(value),
    };
    found.map(Some).map_err(|why| (format!("{name} {why}"), Some(location.clone())))
}

fn is_path(path: &str) -> bool {
    (path.starts_with('/') || path.starts_with("~/")) && !path.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_is_what_python_reads() {
        let text = |text: &str| Value::Text(text.to_owned());
        for (literal, expected) in [
            ("web.example.com", text("web.example.com")),
            ("10.0.0.1", text("10.0.0.1")),
            ("2222", Value::Number(2222)),
            (" 2222 # of the container", Value::Number(2222)),
            ("022", text("022")),
            ("00", Value::Number(0)),
            ("-1", Value::Number(-1)),
            ("'2222'", text("2222")),
            ("\"ada\" # comment", text("ada")),
            ("ada # comment", text("ada # comment")),
            ("None", Value::Nothing),
            ("", Value::Nothing),
            ("''", Value::Nothing),
            ("True", Value::Other),
            ("22.0", Value::Other),
            ("0x16", Value::Other),
            ("2_2", Value::Other),
            ("1e3", Value::Other),
            ("99999999999999999999", Value::Other),
            ("['a']", Value::Other),
            ("'a' 'b'", Value::Other),
            (r"'a\x62'", Value::Other),
            ("'a", Value::Other),
            ("{{ lookup('env', 'X') }}", Value::Template),
            ("\"{{ x }}\"", Value::Template),
            ("a{% if b %}c{% endif %}", Value::Template),
            ("3com", text("3com")),
            ("inf", text("inf")),
            ("nan", text("nan")),
        ] {
            assert_eq!(Value::literal(literal), expected, "{literal}");
        }
    }

    fn set(variables: &[(&str, &str)]) -> Variables {
        let location: Arc<str> = "hosts.ini:3".into();
        let set = |value: &str| SetValue { value: Value::literal(value), location: location.clone() };
        variables.iter().map(|(name, value)| (Variable::named(name).unwrap(), set(value))).collect()
    }

    #[test]
    fn what_is_set_says_how_a_host_is_reached() {
        let all = set(&[
            ("ansible_host", "10.0.0.1"),
            ("ansible_port", "2222"),
            ("ansible_user", "1000"),
            ("ansible_ssh_private_key_file", "~/.ssh/id_web"),
            ("ansible_connection", "ansible.builtin.ssh"),
        ]);
        let expected = Entry {
            name: "web".to_owned(),
            hostname: Some("10.0.0.1".to_owned()),
            port: Some(2222),
            user: Some("1000".to_owned()),
            identity_file: Some("~/.ssh/id_web".to_owned()),
            is_local: false,
        };
        assert_eq!(entry("web", &all).unwrap(), expected);
        let old = set(&[("ansible_host", "a"), ("ansible_ssh_host", "b"), ("ansible_ssh_user", "")]);
        assert_eq!(entry("web", &old).unwrap().hostname.unwrap(), "b");
        assert_eq!(entry("web", &old).unwrap().user, None);
        let local = set(&[("ansible_connection", "local"), ("ansible_host", "{{ x }}")]);
        assert_eq!(
            entry("here", &local).unwrap(),
            Entry { name: "here".to_owned(), is_local: true, ..Entry::default() }
        );
        assert!(entry("localhost", &set(&[])).unwrap().is_local);
    }

    #[test]
    fn what_is_not_followed_leaves_the_host_out_and_says_why() {
        for (name, value, why) in [
            ("ansible_connection", "docker", "ansible_connection is \"docker\""),
            ("ansible_connection", "winrm", "only hosts that ssh reaches"),
            ("ansible_connection", "True", "is no text"),
            ("ansible_host", "{{ ip }}", "ansible_host is a template"),
            ("ansible_host", "-oProxyCommand=id", "begins with -"),
            ("ansible_host", "root@web", "the user is given apart"),
            ("ansible_host", "web:22", "the port is given apart"),
            ("ansible_host", "10", "is no name and no address"),
            ("ansible_port", "0", "is no port"),
            ("ansible_port", "65536", "is no port"),
            ("ansible_port", "ssh", "is no port"),
            ("ansible_port", "{{ port }}", "ansible_port is a template"),
            ("ansible_user", "-lroot", "not beginning with -"),
            ("ansible_user", "a b", "an account's name"),
            ("ansible_user", "['a']", "is no account's name"),
            ("ansible_ssh_private_key_file", "keys/id", "is no absolute path"),
            ("ansible_private_key_file", "~other/id", "is no absolute path"),
        ] {
            let (reason, location) = entry("web", &set(&[(name, value)])).unwrap_err();
            assert!(reason.contains(why), "{name}={value}: {reason}");
            assert_eq!(location.as_deref(), Some("hosts.ini:3"));
        }
        let mut encrypted = set(&[("ansible_user", "x")]);
        encrypted.get_mut(&Variable::User).unwrap().value = Value::Encrypted;
        assert!(entry("web", &encrypted).unwrap_err().0.contains("ansible-vault"));
    }

    #[test]
    fn localhost_is_never_reached_by_ssh() {
        for (name, value) in [
            ("ansible_host", "10.0.0.1"),
            ("ansible_port", "2222"),
            ("ansible_user", "ada"),
            ("ansible_ssh_private_key_file", "/k"),
        ] {
            let variables = set(&[(name, value)]);
            assert!(entry("localhost", &variables).unwrap_err().0.contains("always this machine"), "{name}");
        }
    }
}
