//! Reads the configuration file at the start of the server. At the very first start it writes one that has every option.

mod distro_of;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::retry::RetryPolicy;
pub use distro_of::DistroOf;
use host_base::{Within, directories, trusted_file};
use host_inventory::{Groups, HostPattern, InventoryPath};
use host_openssh::Alias;
use host_policy::PolicyFile;
use host_system_mode::Mode;
use host_target::Overrides;

/// The text of a new file. It says the same as [`Config::default`].
const DEFAULT: &str = include_str!("default.yaml");

/// The variable that names the file to read instead of the usual one. That file must exist.
const VARIABLE: &str = "LINUX_SYSADMIN_CONFIG";

/// The operator's configuration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The way in which a model should use these tools beside others.
    pub integration_mode: IntegrationMode,
    /// The size of answers.
    pub output: Output,
    /// The tools that clients see.
    pub tools: Tools,
    /// The handling of calls that fail.
    pub errors: Errors,
    /// The changes that need a confirmation, and the way of confirming them.
    pub safety: host_gate::Safety,
    /// The rules of the policy.
    pub policy: PolicyFile,
    /// The target, and how connections are kept.
    pub ssh: Ssh,
    /// The groups of hosts that a call may name.
    pub hosts: Groups,
    /// The Ansible inventories whose hosts and groups a call may name as well.
    pub inventory: Vec<InventoryPath>,
    /// The modules that are used, and their limits.
    pub modules: host_components::Modules,
    /// The profiles of services.
    pub knowledge: host_knowledge::Settings,
    /// The settings of the audit log.
    pub audit: host_audit::Config,
    /// The time after which long calls become jobs, and the limits of jobs.
    pub jobs: Jobs,
    /// Facts about the target of calls that name no host. They replace detected ones.
    pub distro: Overrides,
    /// The same for hosts that calls name.
    pub distro_of: DistroOf,
}

impl Config {
    /// Returns the rules by which a tool that only looks is tried again.
    pub fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy {
            max_retries: self.errors.max_retries.get(),
            backoff: Duration::from_secs(self.errors.retry_backoff_seconds.get().into()),
            reconnects: self.ssh.auto_reconnect,
        }
    }
}

/// The time after which long calls become jobs, and the limits of jobs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Jobs {
    /// Seconds after which a call that needs no confirmation any more becomes a job; 0 for never.
    pub after_seconds: Within<0, 3600>,
}

impl Default for Jobs {
    fn default() -> Self {
        // Most clients give up after a minute.
        Self { after_seconds: Within::new(50) }
    }
}

/// The way in which a model should use these tools beside others.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IntegrationMode {
    /// The model should use these tools and no others.
    Standalone,
    /// The model should use these tools where they fit better.
    #[default]
    Complementary,
    /// The model should use these tools first.
    Override,
}

/// The size of answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Output {
    /// The number of items of a listing where the call has no `limit`.
    pub default_limit: ListingLimit,
}

impl Default for Output {
    fn default() -> Self {
        Self { default_limit: Within::new(50) }
    }
}

/// The tools that clients see.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tools {
    /// The tools in a client's list.
    pub listing: Listing,
}

/// The tools in a client's list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Listing {
    /// The list has all tools.
    #[default]
    All,
    /// The list begins with the tools with which much work begins. Others are added as the client needs them.
    Compact,
}

/// The number of items that a listing returns at most.
pub type ListingLimit = Within<1, 10_000>;

/// The handling of calls that fail.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Errors {
    /// The number of times that a tool that only looks is tried again; 0 for never.
    pub max_retries: Within<0, 10>,
    /// Seconds before it is tried again. Each next wait is twice as long.
    pub retry_backoff_seconds: Within<1, 60>,
    /// The longest time of a command or a call in seconds; 0 for no limit. It does not end a step that must not be
    /// interrupted.
    pub command_timeout_ceiling: u32,
}

impl Default for Errors {
    fn default() -> Self {
        Self {
            max_retries: Within::new(3),
            retry_backoff_seconds: Within::new(2),
            command_timeout_ceiling: 0,
        }
    }
}

impl Errors {
    /// The longest time of a command or a call that may be interrupted, if there is a limit.
    pub fn ceiling(&self) -> Option<Duration> {
        (self.command_timeout_ceiling > 0).then(|| Duration::from_secs(self.command_timeout_ceiling.into()))
    }
}

/// The target, and how connections are kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ssh {
    /// The usual target, by its name in the user's SSH configuration; `None` for this machine.
    pub target: Option<Alias>,
    /// Seconds between two keepalive messages; 0 for none.
    pub keepalive_interval: Within<0, 3600>,
    /// The number of keepalive messages without an answer after which the connection counts as lost.
    pub keepalive_max_missed: Within<1, 100>,
    /// Whether the host reconnects within the call that finds the connection lost.
    pub auto_reconnect: bool,
    /// The number of attempts to reconnect.
    pub max_reconnect_attempts: Within<1, 5>,
    /// The hosts that a call may name; `None` for all hosts that ssh and the inventory know when the server starts.
    pub allowed_hosts: Option<Vec<HostPattern>>,
    /// Whether calls may work on the server's own machine.
    pub local: bool,
    /// The number of hosts that one change changes at the same time, after the first host alone.
    pub serial: Within<1, 100>,
}

impl Default for Ssh {
    fn default() -> Self {
        Self {
            target: None,
            keepalive_interval: Within::new(15),
            keepalive_max_missed: Within::new(3),
            auto_reconnect: true,
            max_reconnect_attempts: Within::new(3),
            allowed_hosts: None,
            local: true,
            serial: Within::new(1),
        }
    }
}

impl Ssh {
    /// The usual target, where it is not this machine.
    pub fn alias(&self) -> Option<&str> {
        self.target.as_ref().and_then(Alias::elsewhere)
    }

    /// The settings of connections.
    pub fn settings(&self) -> host_target::ConnectionSettings {
        let interval = Duration::from_secs(self.keepalive_interval.get().into());
        host_target::ConnectionSettings {
            keepalive_interval: (!interval.is_zero()).then_some(interval),
            keepalive_max_missed: self.keepalive_max_missed.get() as usize,
            reconnects: self.auto_reconnect,
            attempts: self.max_reconnect_attempts.get() as usize,
            keys: Arc::default(),
            service_files: Default::default(),
        }
    }
}

/// A configuration, and the file that it came from.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// The configuration.
    pub config: Config,
    /// The file.
    pub path: PathBuf,
    /// True where the file was written just now.
    pub generated: bool,
}

/// The reason why there is no configuration. The operator sees it, and the process ends with 2.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The named file can't be read.
    #[error("the configuration {} can't be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is wrong.
    #[error("the configuration {}, line {line}: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The fault in that line, and what was expected.
        reason: String,
    },
    /// There is neither a variable nor a home directory that says where the file is.
    #[error("neither {VARIABLE} nor HOME says where the configuration is")]
    Nowhere,
}

/// Reads the file that the environment names, or else the account's own. The account's own file may be missing; `generate`
/// writes it then.
pub fn load(generate: bool) -> Result<LoadedConfig, ConfigError> {
    let loaded = find(generate)?;
    Ok(LoadedConfig { config: in_this_mode(loaded.config), ..loaded })
}

/// The configuration with the defaults of the mode that this process runs in.
fn in_this_mode(config: Config) -> Config {
    match host_system_mode::mode() {
        Mode::SingleUser => config,
        Mode::System { .. } => Config { modules: config.modules.in_system_mode(), ..config },
    }
}

fn find(generate: bool) -> Result<LoadedConfig, ConfigError> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        return read(PathBuf::from(named));
    }
    let path = directories::program_directory("XDG_CONFIG_HOME", ".config")
        .ok_or(ConfigError::Nowhere)?
        .join("config.yaml");
    let exists = match path.try_exists() {
        Ok(exists) => exists,
        Err(source) => return Err(ConfigError::Unreadable { path, source }),
    };
    match (exists, generate) {
        (true, _) => read(path),
        (false, true) => read_or_generate(path),
        (false, false) => Ok(LoadedConfig { config: Config::default(), path, generated: false }),
    }
}

/// Reads the file again. Where there is none, the defaults hold.
pub fn reload(loaded: &LoadedConfig) -> Result<Config, ConfigError> {
    or_defaults(read(loaded.path.clone())).map(in_this_mode)
}

/// Reads the configuration of the account that owns this home directory, from the file of this path.
pub fn load_for_account(home: &Path, path: PathBuf) -> Result<Config, ConfigError> {
    match fs::metadata(home) {
        Ok(metadata) => or_defaults(read_of(metadata.uid(), path)),
        Err(source) => Err(ConfigError::Unreadable { path, source }),
    }
}

fn or_defaults(read: Result<LoadedConfig, ConfigError>) -> Result<Config, ConfigError> {
    match read {
        Ok(loaded) => Ok(loaded.config),
        Err(ConfigError::Unreadable { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Ok(Config::default())
        }
        Err(error) => Err(error),
    }
}

fn read(path: PathBuf) -> Result<LoadedConfig, ConfigError> {
    read_of(rustix::process::geteuid().as_raw(), path)
}

fn read_of(account: u32, path: PathBuf) -> Result<LoadedConfig, ConfigError> {
    let text = match trusted_file::read(&path, |metadata| is_own(account, metadata)) {
        Ok(text) => text,
        Err(source) => return Err(ConfigError::Unreadable { path, source }),
    };
    match parse(&text) {
        Ok(config) => Ok(LoadedConfig { config, path, generated: false }),
        Err(error) => {
            // The parser gives no location for an error at the very beginning.
            let line = error.location().map_or(1, |place| place.line());
            Err(ConfigError::Invalid { path, line, reason: error.to_string() })
        }
    }
}

/// Checks that the file belongs to the account or to root, and that nobody else may write to it. It decides who is asked
/// before a change.
fn is_own(account: u32, metadata: &fs::Metadata) -> std::io::Result<()> {
    let found = match (metadata.uid(), metadata.mode() & 0o002) {
        (uid, 0) if uid == account || uid == 0 => return Ok(()),
        (uid, 0) => format!("it belongs to the account with the number {uid}"),
        _ => "everybody may write to it".to_owned(),
    };
    let expected = "expected a file of this account's or of root's that nobody else may write to";
    Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, format!("{found}; {expected}")))
}

fn read_or_generate(path: PathBuf) -> Result<LoadedConfig, ConfigError> {
    if path.exists() {
        return read(path);
    }
    match generate(&path) {
        Ok(()) => Ok(LoadedConfig { config: Config::default(), path, generated: true }),
        // Another server has just written the file.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => read(path),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "the configuration could not be written; defaults hold");
            Ok(LoadedConfig { config: Config::default(), path, generated: false })
        }
    }
}

fn generate(path: &Path) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(DEFAULT.as_bytes())
}

fn parse(text: &str) -> Result<Config, serde_yaml::Error> {
    // A file as it was written at the first start says the defaults, and need not be parsed.
    if text == DEFAULT {
        return Ok(Config::default());
    }
    // A file with nothing but comments is parsed as null, and means the defaults.
    Ok(serde_yaml::from_str::<Option<Config>>(text)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_file_says_what_the_defaults_are() {
        let written = parse(&format!("{DEFAULT}\n")).unwrap();
        assert_eq!(format!("{written:?}"), format!("{:?}", Config::default()));
    }

    #[test]
    fn a_configuration_that_others_may_write_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.yaml");
        fs::write(&path, DEFAULT).unwrap();
        assert!(read(path.clone()).is_ok());
        let metadata = fs::metadata(&path).unwrap();
        assert!(is_own(metadata.uid(), &metadata).is_ok());
        assert_eq!(is_own(metadata.uid() + 1, &metadata).is_ok(), metadata.uid() == 0);
        // A file of root's is accepted for every account.
        assert!(is_own(1234, &fs::metadata("/etc/passwd").unwrap()).is_ok());
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        let Err(ConfigError::Unreadable { source, .. }) = read(path) else { panic!("it was read") };
        assert!(source.to_string().contains("everybody may write to it"), "{source}");
    }

    #[test]
    fn every_option_that_is_commented_out_is_one() {
        let uncommented: String = DEFAULT
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(option)
                    if ["distro:", "distro_of:", "hosts:", "inventory:", "  "]
                        .iter()
                        .any(|begin| option.starts_with(begin)) =>
                {
                    format!("{option}\n")
                }
                _ => format!("{line}\n"),
            })
            .collect();
        assert!(uncommented.contains("\n  codename: noble"), "{uncommented}");
        assert!(uncommented.contains("\n  web: [web1,"), "{uncommented}");
        assert!(uncommented.contains("\n  router1: {"), "{uncommented}");
        parse(&uncommented).unwrap();
    }

    #[test]
    fn what_is_unknown_or_does_not_fit_is_an_error_with_its_line() {
        let directory = tempfile::tempdir().unwrap();
        for (text, line, word) in [
            ("integration_mode: complementary\nintegraton: x\n", 2, "integraton"),
            ("slash_commands: {}\n", 1, "slash_commands"),
            ("safety:\n  confirmation_threshold: read-only\n", 2, "low, moderate, high or critical"),
            ("safety:\n  confirmation_threshold: some\n", 2, "some"),
            ("safety:\n  confirmed: true\n", 2, "confirmed"),
            ("safety:\n  confirmation: never\n", 2, "two-step"),
            ("output:\n  default_limit: many\n", 2, "default_limit"),
            ("output:\n  default_limit: 0\n", 2, "1 to 10000"),
            ("tools:\n  listing: some\n", 2, "`all` or `compact`"),
            ("tools:\n  list: all\n", 2, "list"),
            ("policy:\n  paths: /x\n", 2, "paths"),
            ("policy:\n  include_builtin: some\n", 2, "include_builtin"),
            ("modules:\n  policy: all\n", 2, "all"),
            ("modules:\n  disabled: ['../x']\n", 2, "64 hexadecimal digits"),
            ("modules:\n  disabled: ['sha256:abc']\n", 2, "64 hexadecimal digits"),
            ("modules:\n  limits:\n    memory_mib: 8\n", 3, "16 to 1024"),
            ("modules:\n  limits:\n    memory: 64\n", 3, "memory"),
            ("audit:\n  rotate_mib: 0\n", 2, "1 to 1024"),
            ("audit:\n  keep: 201\n", 2, "1 to 200"),
            ("audit:\n  retain: 20\n", 2, "retain"),
            ("errors:\n  command_timeout_ceiling: -1\n", 2, "command_timeout_ceiling"),
            ("errors:\n  max_retries: 11\n", 2, "from 0 to 10"),
            ("errors:\n  retry_backoff_seconds: 0\n", 2, "from 1 to 60"),
            ("ssh:\n  allowed_hosts: [web, -oX]\n", 2, "is not a host's name"),
            ("ssh:\n  allowed_hosts: ['web[01:20]']\n", 2, "ranges as [01:20]"),
            ("ssh:\n  allowed_hosts: web\n", 2, "allowed_hosts"),
            ("ssh:\n  local: maybe\n", 2, "local"),
            ("hosts: [web1]\n", 1, "groups, each with a list of hosts"),
            ("hosts:\n  web: web1\n", 2, "hosts"),
            ("hosts:\n  web: [web1, 'w b']\n", 2, "is not a host's name"),
            ("hosts:\n  web: ['web[1:1000000000]']\n", 2, "at most 10000 hosts"),
            ("hosts:\n  web: [a]\n  web: [b]\n", 2, "is there twice"),
            ("hosts:\n  all: [a]\n", 2, "a meaning of its own"),
            ("hosts:\n  -web: [a]\n", 2, "not a group's name"),
            ("inventory: [hosts.ini]\n", 1, "expected an absolute path"),
            ("inventory: /etc/ansible/hosts\n", 1, "inventory"),
            ("integration_mode: sometimes\n", 1, "sometimes"),
            ("distro:\n  famly: debian\n", 2, "famly"),
            ("output: [\n", 1, "output"),
            ("output:\n  default_limit: 5\n default_limit: 6\n", 3, ""),
        ] {
            let path = directory.path().join("config.yaml");
            fs::write(&path, text).unwrap();
            let error = read(path).unwrap_err().to_string();
            let at = format!("config.yaml, line {line}: ");
            assert!(error.contains(&at) && error.contains(word), "{text:?}: {error}");
        }
    }

    #[test]
    fn an_empty_file_means_the_defaults() {
        for text in ["", "# nothing\n", "---\n"] {
            assert_eq!(parse(text).unwrap().output.default_limit.get(), 50, "{text:?}");
        }
    }

    #[test]
    fn the_first_start_writes_the_file_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/linux-sysadmin/config.yaml");
        let loaded = read_or_generate(path.clone()).unwrap();
        assert!(loaded.generated);
        assert_eq!(fs::read_to_string(&path).unwrap(), DEFAULT);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!read_or_generate(path).unwrap().generated);
    }

    #[test]
    fn a_ceiling_of_zero_is_none() {
        let ceiling =
            |command_timeout_ceiling| Errors { command_timeout_ceiling, ..Errors::default() }.ceiling();
        assert_eq!(ceiling(0), None);
        assert_eq!(ceiling(3), Some(Duration::from_secs(3)));
    }
}
