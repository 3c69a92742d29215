//! What OpenSSH's configuration says of a host: asked of `ssh -G`, which knows all of it, or read from the files where
//! there is no ssh. Both give [`Settings`], and from those a [`HostConfig`] is made.
//!
//! A configuration is the user's own and trusted; an alias may be a model's word, and so may be what it expands to.

mod aliases;
mod files;
mod names;
mod printed;
mod proxy;
mod settings;
mod tokens;
mod unfollowed;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use aliases::{Aliases, aliases};
use host_base::problem::{Category, Problem};
use host_base::program::Programs;
pub use names::{check_host, check_user};
use settings::{Setting, Settings, Source};
use tokens::{Caller, Tokens};

/// How a host is reached, and what of it is believed.
#[derive(Clone, Debug, PartialEq)]
pub struct HostConfig {
    /// As it was asked for.
    pub alias: String,
    /// A name or an address.
    pub hostname: String,
    /// Never 0.
    pub port: u16,
    /// The account there.
    pub user: String,
    /// In the order in which they are tried; of ssh's defaults those that exist.
    pub identity_files: Vec<PathBuf>,
    /// Those that are set, or else what lies beside the identities.
    pub certificate_files: Vec<PathBuf>,
    /// Whether the agent's other keys stay out of it.
    pub identities_only: bool,
    /// The agent's socket.
    pub agent: Option<PathBuf>,
    /// What stands in between.
    pub proxy: Proxy,
    /// What its key is known by, in place of name and port.
    pub host_key_alias: Option<String>,
    /// Where keys that are new are recorded, in the first.
    pub user_known_hosts: Vec<PathBuf>,
    /// Where the machine's administrator says which keys are known.
    pub global_known_hosts: Vec<PathBuf>,
    /// What is done with a key that isn't known.
    pub strict: Strict,
    /// Whether a recorded key hides its host's name.
    pub hash_known_hosts: bool,
    /// None: as long as the system waits.
    pub connect_timeout: Option<Duration>,
    /// None: either.
    pub address_family: Option<Family>,
    /// Of this machine, where it has several.
    pub bind_address: Option<String>,
    /// Best first. None, as for the next three, where nothing but ssh's own list is set.
    pub host_key_algorithms: Option<Vec<String>>,
    /// Best first.
    pub kex: Option<Vec<String>>,
    /// Best first.
    pub ciphers: Option<Vec<String>>,
    /// Best first.
    pub macs: Option<Vec<String>>,
    /// What is set and not followed, each a sentence.
    pub warnings: Vec<String>,
}

/// What stands between this machine and the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// Nothing.
    None,
    /// Other hosts, in the order in which they are gone through.
    Jump(Vec<Jump>),
    /// A program and its arguments, whose input and output are the connection.
    Command(Vec<String>),
}

/// A host on the way to another. Its name may be an alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jump {
    /// None: as its own configuration says.
    pub user: Option<String>,
    /// An alias, a name or an address.
    pub host: String,
    /// None: as its own configuration says.
    pub port: Option<u16>,
}

/// What is done with a host key that isn't known. A changed one is refused by each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strict {
    /// It is refused.
    Yes,
    /// It is refused, since there is nobody to be asked.
    Ask,
    /// It is taken, and recorded.
    AcceptNew,
}

/// Which addresses of a host are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4 only.
    Inet,
    /// IPv6 only.
    Inet6,
}

/// What was given besides the alias, and goes before the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// As `ssh -o HostName=`.
    pub hostname: Option<String>,
    /// As `ssh -p`.
    pub port: Option<u16>,
    /// As `ssh -l`.
    pub user: Option<String>,
    /// As `ssh -i`: absolute, or below `~/`.
    pub identity_file: Option<PathBuf>,
}

/// The home of whoever runs this, as ssh takes it.
pub fn home() -> PathBuf {
    Caller::current().home
}

/// What the configuration says of a host: by `ssh -G`, or by our own reading where there is no ssh.
pub async fn resolve(alias: &str, given: &Given) -> Result<HostConfig, Problem> {
    let caller = Caller::current();
    names::check_alias(alias)?;
    let given = check(given, &caller)?;
    match Programs::default().find("ssh") {
        Ok(ssh) => by_ssh(&ssh, &[], alias, &given, &caller).await,
        Err(problem) if problem.code == "PROGRAM_NOT_FOUND" => {
            let user = caller.home.join(".ssh/config");
            by_files(&user, Path::new(files::SYSTEM), alias, &given, &caller)
        }
        Err(problem) => Err(problem),
    }
}

/// Where the keys of known hosts are, unless the configuration says otherwise.
pub fn known_hosts_files() -> Vec<PathBuf> {
    files::known_hosts(&Caller::current())
}

async fn by_ssh(
    ssh: &Path,
    options: &[&str],
    alias: &str,
    given: &Given,
    caller: &Caller,
) -> Result<HostConfig, Problem> {
    let (settings, defaults) = printed::ask(ssh, options, alias, given, caller).await?;
    host_config(alias, &settings, &defaults, caller)
}

fn by_files(
    user: &Path,
    system: &Path,
    alias: &str,
    given: &Given,
    caller: &Caller,
) -> Result<HostConfig, Problem> {
    let settings = files::read(user, system, alias, given, caller)?;
    host_config(alias, &settings, &files::defaults(), caller)
}

fn invalid(message: impl Into<String>) -> Problem {
    Problem::new("SSH_CONFIG_INVALID", Category::Validation, message)
}

/// What was given, with the home in place of `~`.
fn check(given: &Given, caller: &Caller) -> Result<Given, Problem> {
    if given.port == Some(0) {
        return Err(invalid("expected a port from 1 to 65535, found 0"));
    }
    given.user.as_deref().map_or(Ok(()), names::check_user)?;
    given.hostname.as_deref().map_or(Ok(()), |name| names::check_host("a host name", name))?;
    let mut given = given.clone();
    if let Some(file) = &mut given.identity_file {
        if let Ok(below) = file.strip_prefix("~") {
            *file = caller.home.join(below);
        }
        // ssh goes on without one that isn't there, by whatever key it finds.
        if !file.is_absolute() || !file.is_file() {
            return Err(invalid(format!(
                "expected the absolute path of an identity file, found {}, which {}",
                file.display(),
                if file.is_absolute() { "is no file that can be read" } else { "isn't absolute" }
            )));
        }
    }
    Ok(given)
}

fn host_config(
    alias: &str,
    settings: &Settings,
    defaults: &Settings,
    caller: &Caller,
) -> Result<HostConfig, Problem> {
    // It would refuse keys that known_hosts accepts: to go on without it is to accept them.
    if let Some(setting) = settings.get("RevokedHostKeys").filter(|setting| setting.value != "none") {
        return Err(setting.invalid("is not followed: revoke the keys by lines with @revoked in known_hosts"));
    }
    let user = match settings.get("User") {
        Some(setting) => setting.value.to_owned(),
        None => caller.name.clone(),
    };
    names::check_user(&user)?;
    let port = match settings.get("Port") {
        Some(setting) => names::port(setting.value).ok_or_else(|| setting.invalid("expected 1 to 65535"))?,
        None => 22,
    };
    let host_key_alias = settings.get("HostKeyAlias").map(|setting| key_alias(&setting)).transpose()?;
    let jump = settings.get("ProxyJump").filter(|setting| setting.value != "none");
    let mut tokens = Tokens {
        caller,
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

    let mut warnings = unfollowed::warnings(settings, defaults);
    let identity_files = identity_files(settings, defaults, &tokens, &mut warnings)?;
    let certificate_files = certificate_files(settings, &identity_files, &tokens)?;
    let algorithms = |keyword| {
        let setting: Option<Setting> = settings.get(keyword);
        let differs = |set: &Setting| defaults.get(keyword).is_none_or(|own| own.value != set.value);
        let set = setting.filter(|set| differs(set) && !unfollowed::adds_to_a_list(set.value));
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

/// Of those that nobody has set, one that isn't there is nobody's.
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

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Whether a file is there, or may be.
fn exists(file: &Path) -> bool {
    file.try_exists().unwrap_or(true)
}

fn agent(settings: &Settings, tokens: &Tokens) -> Result<Option<PathBuf>, Problem> {
    let variable = |name: &str| tokens.caller.variable(name).filter(|value| !value.is_empty());
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
        // `ssh -G` separates them with blanks. A file that isn't found is one whose revoked keys are trusted.
        let is_absolute = path.is_absolute();
        is_absolute.then_some(path).ok_or_else(|| {
            setting.invalid("expected absolute paths without blanks; those that begin with ~ are, too")
        })
    };
    settings.all(keyword).filter(|setting| setting.value != "none").map(path).collect()
}

/// In lower case, as ssh has it. It is written into known_hosts, where a star would make it the name of every host.
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
        // Said in a warning.
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
