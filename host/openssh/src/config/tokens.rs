//! Expands values: `~`, tokens such as `%h`, and `${VARIABLE}`, as under TOKENS and ENVIRONMENT VARIABLES of
//! ssh_config(5). All are expanded in one pass, so that no value is read as a token.

use std::ffi::OsString;
use std::path::PathBuf;

use rustix::system::uname;
use sha1::{Digest, Sha1};

use super::settings::Setting;
use host_base::account::Account;
use host_base::problem::Problem;
use host_base::program::PATH;

/// The account on this machine that connects.
#[derive(Clone, Debug)]
pub(super) struct LocalUser {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) home: PathBuf,
    /// The variables of this process that ssh gets.
    pub(super) variables: Vec<(&'static str, String)>,
}

impl LocalUser {
    /// Returns the account of this process. As ssh does, it uses the system's table, and the environment for an
    /// account that isn't in it.
    pub(super) fn current() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let (name, home) = match Account::of_uid(uid) {
            Some(account) => (account.name, account.home),
            None => {
                let home = variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
                let name = variable("USER").or_else(|| variable("LOGNAME"));
                (name.unwrap_or_else(|| uid.to_string()), home.unwrap_or_else(|| "/".into()))
            }
        };
        let mut variables = vec![
            ("HOME", home.to_string_lossy().into_owned()),
            ("PATH", variable("PATH").unwrap_or_else(|| PATH.to_owned())),
            ("USER", name.clone()),
            ("LOGNAME", name.clone()),
        ];
        // These name sockets and files of the session.
        for name in ["SSH_AUTH_SOCK", "XDG_RUNTIME_DIR"] {
            variables.extend(variable(name).map(|value| (name, value)));
        }
        Self { name, uid, home, variables }
    }

    /// Returns the environment that ssh gets.
    pub(super) fn environment(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        self.variables.iter().map(|(name, value)| (*name, value.into()))
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|(known, _)| *known == name).map(|(_, value)| &**value)
    }
}

/// The values of tokens.
pub(super) struct Tokens<'a> {
    pub(super) local_user: &'a LocalUser,
    pub(super) alias: &'a str,
    pub(super) hostname: String,
    pub(super) port: u16,
    pub(super) user: &'a str,
    pub(super) key_alias: &'a str,
    pub(super) jump: Option<&'a str>,
}

impl Tokens<'_> {
    /// Expands a file's path, with tilde, tokens and variables.
    pub(super) fn path(&self, setting: &Setting) -> Result<PathBuf, Problem> {
        let (home, rest) = self.tilde(setting)?;
        let mut path = home.map_or_else(String::new, |home| home.to_string_lossy().into_owned());
        self.expand(setting, rest, &mut path, |token| self.of_paths(setting, token), true)?;
        Ok(path.into())
    }

    /// Expands a host name, in which `%h` is the alias.
    pub(super) fn hostname(&self, setting: &Setting) -> Result<String, Problem> {
        let token = |token| Ok((token == 'h').then(|| self.alias.to_owned()));
        let mut name = String::new();
        self.expand(setting, setting.value, &mut name, token, false)?;
        Ok(name)
    }

    /// Expands a word of ProxyCommand or a part of ProxyJump.
    pub(super) fn word(&self, setting: &Setting, word: &str) -> Result<String, Problem> {
        let token = |token| {
            let value = match token {
                'h' => self.hostname.clone(),
                'n' => self.alias.to_owned(),
                'p' => self.port.to_string(),
                'r' => self.user.to_owned(),
                _ => return Ok(None),
            };
            // This holds wherever it stands in a word, so that no program takes a name for an option.
            match value.starts_with('-') {
                true => Err(setting.invalid(&format!("%{token} stands for {value}, which begins with -"))),
                false => Ok(Some(value)),
            }
        };
        let mut expanded = String::new();
        self.expand(setting, word, &mut expanded, token, false)?;
        Ok(expanded)
    }

    /// Returns the home that a tilde stands for, and the text after it.
    fn tilde<'t>(&self, setting: &Setting<'t>) -> Result<(Option<PathBuf>, &'t str), Problem> {
        let Some(behind) = setting.value.strip_prefix('~') else { return Ok((None, setting.value)) };
        let (name, rest) = behind.find('/').map_or((behind, ""), |slash| behind.split_at(slash));
        if name.is_empty() {
            return Ok((Some(self.local_user.home.clone()), rest));
        }
        let account = Account::named(name);
        let home = account.ok_or_else(|| setting.invalid(&format!("there is no account {name}")))?.home;
        Ok((Some(home), rest))
    }

    fn of_paths(&self, setting: &Setting, token: char) -> Result<Option<String>, Problem> {
        Ok(Some(match token {
            'C' => match self.jump {
                None => self.connection(),
                Some(_) => {
                    return Err(
                        setting.invalid("%C with a ProxyJump isn't the same for every version of ssh")
                    );
                }
            },
            'd' => self.local_user.home.to_string_lossy().into_owned(),
            'h' => self.hostname.clone(),
            'i' => self.local_user.uid.to_string(),
            'j' => self.jump.unwrap_or_default().to_owned(),
            'k' => self.key_alias.to_owned(),
            'L' => this_machine().split('.').next().unwrap_or_default().to_owned(),
            'l' => this_machine(),
            'n' => self.alias.to_owned(),
            'p' => self.port.to_string(),
            'r' => self.user.to_owned(),
            'u' => self.local_user.name.clone(),
            _ => return Ok(None),
        }))
    }

    /// Returns the hash of `%l%h%p%r`.
    fn connection(&self) -> String {
        let all = format!("{}{}{}{}", this_machine(), self.hostname, self.port, self.user);
        hex::encode(Sha1::digest(all))
    }

    fn expand(
        &self,
        setting: &Setting,
        text: &str,
        expanded: &mut String,
        value_of: impl Fn(char) -> Result<Option<String>, Problem>,
        variables: bool,
    ) -> Result<(), Problem> {
        let mut rest = text;
        while let Some(at) = rest.find(['%', '$']) {
            expanded.push_str(&rest[..at]);
            let behind = &rest[at + 1..];
            if rest[at..].starts_with('%') {
                let token = behind.chars().next();
                match token {
                    Some('%') => expanded.push('%'),
                    Some(token) => match value_of(token)? {
                        Some(value) => expanded.push_str(&value),
                        None => return Err(setting.invalid(&format!("there is no token %{token} here"))),
                    },
                    None => return Err(setting.invalid("it ends in a single %; %% stands for one")),
                }
                rest = &behind[token.map_or(0, char::len_utf8)..];
            } else if let Some(named) = behind.strip_prefix('{').filter(|_| variables) {
                let Some((name, behind)) = named.split_once('}') else {
                    return Err(setting.invalid("a ${ has no end"));
                };
                let value = self.local_user.variable(name).ok_or_else(|| {
                    let seen: Vec<_> = self.local_user.variables.iter().map(|(name, _)| *name).collect();
                    let seen = seen.join(", ");
                    setting
                        .invalid(&format!("the variable {name} isn't set; those that can be used are {seen}"))
                })?;
                expanded.push_str(value);
                rest = behind;
            } else {
                expanded.push('$');
                rest = behind;
            }
        }
        expanded.push_str(rest);
        Ok(())
    }
}

/// Returns this machine's own name, with its domain where it has one.
fn this_machine() -> String {
    uname().nodename().to_string_lossy().into_owned()
}
