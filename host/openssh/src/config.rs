//! The settings of OpenSSH's configuration for a host. They are asked of `ssh -G`, which knows all of it, or read from
//! the files where there is no ssh. Both give [`Settings`], from which a [`HostConfig`] is made.
//!
//! The configuration is the user's own and trusted. An alias may come from a model, and so may the values that it
//! expands to.

mod aliases;
mod files;
mod ignored_settings;
mod names;
mod proxy;
mod settings;
mod ssh_output;
mod tokens;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use aliases::{HostAliases, aliases};
use host_base::problem::{Category, Problem};
use host_base::program::Programs;
pub use names::{check_host, check_user};
use settings::{Setting, Settings, Source};
use tokens::{LocalUser, Tokens};

/// The settings by which a host is reached, and its keys are accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct HostConfig {
    /// The alias that was asked for.
    pub alias: String,
    /// The host's name or address.
    pub hostname: String,
    /// The port, which is never 0.
    pub port: u16,
    /// The account there.
    pub user: String,
    /// The identity files, in the order in which they are tried. Of ssh's defaults only those that exist are listed.
    pub identity_files: Vec<PathBuf>,
    /// The certificates that are set, or else those beside the identity files.
    pub certificate_files: Vec<PathBuf>,
    /// Whether the agent's other keys are not offered.
    pub identities_only: bool,
    /// The agent's socket.
    pub agent: Option<PathBuf>,
    /// The hosts or the program between this machine and the host.
    pub proxy: Proxy,
    /// The name by which the host's key is known, in place of its name and port.
    pub host_key_alias: Option<String>,
    /// The user's known_hosts files. New keys are recorded in the first.
    pub user_known_hosts: Vec<PathBuf>,
    /// The known_hosts files of this machine's administrator.
    pub global_known_hosts: Vec<PathBuf>,
    /// The treatment of an unknown host key.
    pub strict: Strict,
    /// Whether a recorded key hides its host's name.
    pub hash_known_hosts: bool,
    /// The time limit of the connection. None means as long as the system waits.
    pub connect_timeout: Option<Duration>,
    /// The addresses that are used. None means both families.
    pub address_family: Option<Family>,
    /// The address of this machine that the connection comes from, where it has several.
    pub bind_address: Option<String>,
    /// The algorithms of host keys, best first. None, as in the next three, where only ssh's own list is set.
    pub host_key_algorithms: Option<Vec<String>>,
    /// The key exchanges, best first.
    pub kex: Option<Vec<String>>,
    /// The ciphers, best first.
    pub ciphers: Option<Vec<String>>,
    /// The MACs, best first.
    pub macs: Option<Vec<String>>,
    /// A sentence about each setting that isn't followed.
    pub warnings: Vec<String>,
}

/// The hosts or the program between this machine and the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// The connection goes straight to the host.
    None,
    /// The connection passes through these other hosts, in this order.
    Jump(Vec<Jump>),
    /// A program and its arguments. Its input and output are the connection.
    Command(Vec<String>),
}

/// A host on the way to another. Its name may be an alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jump {
    /// The account there. None means the one of its own configuration.
    pub user: Option<String>,
    /// An alias, a name or an address.
    pub host: String,
    /// The port. None means the one of its own configuration.
    pub port: Option<u16>,
}

/// The treatment of an unknown host key. A changed one is always refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strict {
    /// An unknown key is refused.
    Yes,
    /// An unknown key is refused, because there is nobody to ask.
    Ask,
    /// An unknown key is accepted, and recorded.
    AcceptNew,
}

/// The addresses of a host that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4 addresses only.
    Inet,
    /// IPv6 addresses only.
    Inet6,
}

/// Options that take precedence over the configuration, as ssh's command-line options do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SshOptions {
    /// The host name, as with `ssh -o HostName=`.
    pub hostname: Option<String>,
    /// The port, as with `ssh -p`.
    pub port: Option<u16>,
    /// The account, as with `ssh -l`.
    pub user: Option<String>,
    /// The identity file, as with `ssh -i`: an absolute path, or one below `~/`.
    pub identity_file: Option<PathBuf>,
}

/// Returns the home of the account that runs this program, as ssh determines it.
pub fn home() -> PathBuf {
    LocalUser::current().home
}

/// Returns what the configuration says of a host: by `ssh -G`, or by reading the files where there is no ssh.
pub async fn resolve(alias: &str, options: &SshOptions) -> Result<HostConfig, Problem> {
    let local_user = LocalUser::current();
    names::check_alias(alias)?;
    let options = check(options, &local_user)?;
    match Programs::default().find("ssh") {
        Ok(ssh) => by_ssh(&ssh, &[], alias, &options, &local_user).await,
        Err(problem) if problem.code == "PROGRAM_NOT_FOUND" => {
            let user = local_user.home.join(".ssh/config");
            by_files(&user, Path::new(files::SYSTEM), alias, &options, &local_user)
        }
        Err(problem) => Err(problem),
    }
}

/// Returns the known_hosts files that are used unless the configuration says otherwise.
pub fn known_hosts_files() -> Vec<PathBuf> {
    files::known_hosts(&LocalUser::current())
}

async fn by_ssh(
    ssh: &Path,
    extra_args: &[&str],
    alias: &str,
    options: &SshOptions,
    local_user: &LocalUser,
) -> Result<HostConfig, Problem> {
    let (settings, defaults) = ssh_output::ask(ssh, extra_args, alias, options, local_user).await?;
    host_config(alias, &settings, &defaults, local_user)
}

fn by_files(
    user: &Path,
    system: &Path,
    alias: &str,
    options: &SshOptions,
    local_user: &LocalUser,
) -> Result<HostConfig, Problem> {
    let settings = files::read(user, system, alias, options, local_user)?;
    host_config(alias, &settings, &files::defaults(), local_user)
}

fn invalid(message: impl Into<String>) -> Problem {
    Problem::new("SSH_CONFIG_INVALID", Category::Validation, message)
}

/// Checks the options, and replaces `~` by the home.
fn check(options: &SshOptions, local_user: &LocalUser) -> Result<SshOptions, Problem> {
    if options.port == Some(0) {
        return Err(invalid("expected a port from 1 to 65535, found 0"));
    }
    options.user.as_deref().map_or(Ok(()), names::check_user)?;
    options.hostname.as_deref().map_or(Ok(()), |name| names::check_host("a host name", name))?;
    let mut options = options.clone();
    if let Some(file) = &mut options.identity_file {
        if let Ok(below) = file.strip_prefix("~") {
            *file = local_user.home.join(below);
        }
        // ssh would go on without a missing file, with whatever key it finds.
        if !file.is_absolute() || !file.is_file() {
            return Err(invalid(format!(
                "expected the absolute path of an identity file, found {}, which {}",
                file.display(),
                if file.is_absolute() { "is no file that can be read" } else { "isn't absolute" }
            )));
        }
    }
    Ok(options)
}

fn host_config(
    alias: &str,
    settings: &Settings,
    defaults: &Settings,
    local_user: &LocalUser,
) -> Result<HostConfig, Problem> {
    // The setting would refuse keys that known_hosts accepts, and so they would be accepted without it.
    if let Some(setting) = settings.get("RevokedHostKeys").filter(|setting| setting.value != "none") {
        return Err(setting.invalid("is not followed: revoke the keys by lines with @revoked in known_hosts"));
    }
    let user = match settings.get("User") {
        Some(setting) => setting.value.to_owned(),
        None => local_user.name.clone(),
    };
    names::check_user(&user)?;
    let port = match settings.get("Port") {
        Some(setting) => names::port(setting.value).ok_or_else(|| setting.invalid("expected 1 to 65535"))?,
        None => 22,
    };
    let host_key_alias = settings.get("HostKeyAlias").map(|setting| key_alias(&setting)).transpose()?;
    let jump = settings.get("ProxyJump").filter(|setting| setting.value != "none");
    let mut tokens = Tokens {
        local_user,
        alias,
        hostname: alias.to_owned(),
        port,
        user: &user,
        key_alias: host_key_alias.as_deref().unwrap_or(alias),
        jump: jump.as_ref().map(|setting| setting.value),
    };
    if let Some(setting) = settings.get("HostName") {
        tokens.hostname = match settings.source {
            Source::Ssh => setting.value.to_owned(),
            Source::Files => tokens.hostname(&setting)?,
        };
    }
    tokens.hostname = tokens.hostname.to_ascii_lowercase();
    names::check_host("a host name", &tokens.hostname)?;

    let mut warnings = ignored_settings::warnings(settings, defaults);
    let identity_files = identity_files(settings, defaults, &tokens, &mut warnings)?;
    let certificate_files = certificate_files(settings, &identity_files, &tokens)?;
    let algorithms = |keyword| {
        let setting: Option<Setting> = settings.get(keyword);
        let differs = |set: &Setting| defaults.get(keyword).is_none_or(|own| own.value != set.value);
        let set = setting.filter(|set| differs(set) && !ignored_settings::adds_to_a_list(set.value));
        set.map(|set| set.value.split(',').map(str::to_owned).collect())
    };
    let yes = |keyword| settings.get(keyword).map_or(Ok(false), |setting| setting.is_yes());
    Ok(HostConfig {
        alias: alias.to_owned(),
        proxy: proxy::proxy(jump, settings.get("ProxyCommand"), &tokens)?,
        identities_only: yes("IdentitiesOnly")?,
        agent: agent(settings, &tokens)?,
        user_known_hosts: known_hosts(settings, "UserKnownHostsFile", &tokens)?,
        global_known_hosts: known_hosts(settings, "GlobalKnownHostsFile", &tokens)?,
        strict: settings.get("StrictHostKeyChecking").map_or(Ok(Strict::Ask), |setting| strict(&setting))?,
        hash_known_hosts: yes("HashKnownHosts")?,
        connect_timeout: settings
            .get("ConnectTimeout")
            .map_or(Ok(None), |setting| settings::duration(&setting))?,
        address_family: settings.get("AddressFamily").map_or(Ok(None), |setting| family(&setting))?,
        bind_address: settings.get("BindAddress").map(|setting| setting.value.to_owned()),
        host_key_algorithms: algorithms("HostKeyAlgorithms"),
        kex: algorithms("KexAlgorithms"),
        ciphers: algorithms("Ciphers"),
        macs: algorithms("MACs"),
        hostname: tokens.hostname.clone(),
        identity_files,
        certificate_files,
        port,
        host_key_alias,
        warnings,
        user,
    })
}

/// Returns the identity files. A default one counts only where it exists.
fn identity_files(
    settings: &Settings,
    defaults: &Settings,
    tokens: &Tokens,
    warnings: &mut Vec<String>,
) -> Result<Vec<PathBuf>, Problem> {
    let mut files: Vec<PathBuf> = Vec::new();
    for setting in settings.all("IdentityFile").filter(|setting| setting.value != "none") {
        let file = tokens.path(&setting)?;
        let is_default = defaults.all("IdentityFile").any(|default| default.value == setting.value);
        if !file.is_absolute() {
            let file = file.display();
            warnings.push(format!(
                "IdentityFile {file} is not absolute and not used: nothing says what it is below."
            ));
        } else if !files.contains(&file) && (!is_default || exists(&file) || exists(&beside(&file, ".pub"))) {
            files.push(file);
        }
    }
    Ok(files)
}

fn certificate_files(
    settings: &Settings,
    identities: &[PathBuf],
    tokens: &Tokens,
) -> Result<Vec<PathBuf>, Problem> {
    let set: Vec<_> = settings.all("CertificateFile").collect();
    if set.is_empty() {
        let beside = identities.iter().map(|identity| beside(identity, "-cert.pub"));
        return Ok(beside.filter(|certificate| exists(certificate)).collect());
    }
    set.iter().filter(|setting| setting.value != "none").map(|setting| tokens.path(setting)).collect()
}

/// Returns the path with a suffix, such as `.pub`.
pub(crate) fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Says whether a file exists, or may exist.
fn exists(file: &Path) -> bool {
    file.try_exists().unwrap_or(true)
}

fn agent(settings: &Settings, tokens: &Tokens) -> Result<Option<PathBuf>, Problem> {
    let variable = |name: &str| tokens.local_user.variable(name).filter(|value| !value.is_empty());
    let Some(setting) = settings.get("IdentityAgent") else {
        return Ok(variable("SSH_AUTH_SOCK").map(PathBuf::from));
    };
    Ok(match setting.value {
        "none" => None,
        "SSH_AUTH_SOCK" => variable("SSH_AUTH_SOCK").map(PathBuf::from),
        value => match value.strip_prefix('$').filter(|name| !name.starts_with('{')) {
            Some(name) => {
                let socket = variable(name);
                Some(socket.ok_or_else(|| setting.invalid(&format!("names {name}, which isn't set")))?.into())
            }
            None if settings.source == Source::Ssh => Some(value.into()),
            None => Some(tokens.path(&setting)?),
        },
    })
}

fn known_hosts(settings: &Settings, keyword: &'static str, tokens: &Tokens) -> Result<Vec<PathBuf>, Problem> {
    let path = |setting: Setting| {
        let path = match settings.source {
            Source::Files if keyword == "UserKnownHostsFile" => tokens.path(&setting)?,
            _ => PathBuf::from(setting.value),
        };
        // `ssh -G` separates them with blanks. Keys that a missing file revokes would be trusted.
        let is_absolute = path.is_absolute();
        is_absolute.then_some(path).ok_or_else(|| {
            setting.invalid("expected absolute paths without blanks; those that begin with ~ are, too")
        })
    };
    settings.all(keyword).filter(|setting| setting.value != "none").map(path).collect()
}

/// Returns the name in lower case, as ssh has it. It is written into known_hosts, where a star would make it the name
/// of every host.
fn key_alias(setting: &Setting) -> Result<String, Problem> {
    let of_aliases =
        |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']' | '%' | '/');
    match !setting.value.is_empty() && setting.value.chars().all(of_aliases) {
        true => Ok(setting.value.to_ascii_lowercase()),
        false => Err(setting.invalid("expected a name, without blanks and patterns")),
    }
}

fn strict(setting: &Setting) -> Result<Strict, Problem> {
    match setting.value {
        "accept-new" => Ok(Strict::AcceptNew),
        // A warning says so.
        "ask" | "off" => Ok(Strict::Ask),
        _ if setting.is_yes()? => Ok(Strict::Yes),
        _ => Ok(Strict::Ask),
    }
}

fn family(setting: &Setting) -> Result<Option<Family>, Problem> {
    match setting.value {
        "any" => Ok(None),
        "inet" => Ok(Some(Family::Inet)),
        "inet6" => Ok(Some(Family::Inet6)),
        _ => Err(setting.invalid("expected any, inet or inet6")),
    }
}

#[cfg(test)]
mod tests;
