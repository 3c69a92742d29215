//! The configuration file: read once at the start, written with every option on the first.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::target::Overrides;

/// What a new file holds; [`Config::default`] is what it says.
const DEFAULT: &str = include_str!("default.yaml");

/// Which file to read instead of the usual one. It must exist.
const VARIABLE: &str = "LINUX_SYSADMIN_CONFIG";

/// What the operator decided.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// A hint for the model.
    pub integration_mode: IntegrationMode,
    /// How much is answered.
    pub output: Output,
    /// What happens when something doesn't work.
    pub errors: Errors,
    /// Facts that replace detected ones.
    pub distro: Overrides,
}

/// How a model should see these tools beside others.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IntegrationMode {
    /// These and no others.
    Standalone,
    /// These where they fit better.
    #[default]
    Complementary,
    /// These first.
    Override,
}

/// How much is answered.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Output {
    /// Most items of a listing where the call doesn't say.
    pub default_limit: Limit,
}

impl Default for Output {
    fn default() -> Self {
        Self { default_limit: Limit(50) }
    }
}

/// From 1 to 10,000 items.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "u32")]
pub struct Limit(u32);

impl Limit {
    /// The largest.
    pub const MOST: u32 = 10_000;

    /// Items.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for Limit {
    type Error = String;

    fn try_from(items: u32) -> Result<Self, String> {
        match items {
            1..=Self::MOST => Ok(Self(items)),
            _ => Err(format!("{items} is not a number of items from 1 to {}", Self::MOST)),
        }
    }
}

/// What happens when something doesn't work.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Errors {
    /// Seconds that nothing may exceed; 0 for no ceiling.
    pub command_timeout_ceiling: u32,
}

impl Errors {
    /// What nothing may exceed, if there is a ceiling.
    pub fn ceiling(&self) -> Option<Duration> {
        (self.command_timeout_ceiling > 0).then(|| Duration::from_secs(self.command_timeout_ceiling.into()))
    }
}

/// A configuration with where it came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What it says.
    pub config: Config,
    /// The file.
    pub path: PathBuf,
    /// Whether the file was written just now.
    pub generated: bool,
}

/// Why there is no configuration. Shown to the operator; the process ends with 2.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The named file can't be read.
    #[error("the configuration {} can't be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file says what can't be.
    #[error("the configuration {}, line {line}: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What was found, and what was expected.
        reason: String,
    },
    /// Neither the variable nor a home says where it is.
    #[error("neither {VARIABLE} nor HOME says where the configuration is")]
    Nowhere,
}

/// Reads the file that the environment names, or the user's own. That one may be missing, and is written then where
/// the session is to hear of it.
pub fn load(generate: bool) -> Result<Loaded, ConfigError> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        return read(PathBuf::from(named));
    }
    let path = directory("XDG_CONFIG_HOME", ".config").ok_or(ConfigError::Nowhere)?.join("config.yaml");
    let exists = match path.try_exists() {
        Ok(exists) => exists,
        Err(source) => return Err(ConfigError::Unreadable { path, source }),
    };
    match (exists, generate) {
        (true, _) => read(path),
        (false, true) => read_or_generate(path),
        (false, false) => Ok(Loaded { config: Config::default(), path, generated: false }),
    }
}

/// `linux-sysadmin` below one of the user's base directories.
pub fn directory(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute(variable).or_else(|| Some(absolute("HOME")?.join(below_home)))?;
    Some(base.join("linux-sysadmin"))
}

fn read(path: PathBuf) -> Result<Loaded, ConfigError> {
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(source) => return Err(ConfigError::Unreadable { path, source }),
    };
    match parse(&text) {
        Ok(config) => Ok(Loaded { config, path, generated: false }),
        Err(error) => {
            // The parser gives no place for what is wrong at the very beginning.
            let line = error.location().map_or(1, |place| place.line());
            Err(ConfigError::Invalid { path, line, reason: error.to_string() })
        }
    }
}

fn read_or_generate(path: PathBuf) -> Result<Loaded, ConfigError> {
    if path.exists() {
        return read(path);
    }
    match generate(&path) {
        Ok(()) => Ok(Loaded { config: Config::default(), path, generated: true }),
        // Another server has just written it.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => read(path),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "the configuration could not be written; defaults hold");
            Ok(Loaded { config: Config::default(), path, generated: false })
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
    // A file with nothing but comments is a null, and means the defaults.
    Ok(serde_yaml::from_str::<Option<Config>>(text)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_file_says_what_the_defaults_are() {
        let written = parse(DEFAULT).unwrap();
        assert_eq!(format!("{written:?}"), format!("{:?}", Config::default()));
    }

    #[test]
    fn every_option_that_is_commented_out_is_one() {
        let uncommented: String = DEFAULT
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(option) if option.starts_with("distro:") || option.starts_with("  ") => {
                    format!("{option}\n")
                }
                _ => format!("{line}\n"),
            })
            .collect();
        assert!(uncommented.contains("\n  codename: noble"), "{uncommented}");
        parse(&uncommented).unwrap();
    }

    #[test]
    fn what_is_unknown_or_does_not_fit_is_an_error_with_its_line() {
        let directory = tempfile::tempdir().unwrap();
        for (text, line, word) in [
            ("integration_mode: complementary\nintegraton: x\n", 2, "integraton"),
            ("safety: {}\n", 1, "safety"),
            ("output:\n  default_limit: many\n", 2, "default_limit"),
            ("output:\n  default_limit: 0\n", 2, "1 to 10000"),
            ("errors:\n  command_timeout_ceiling: -1\n", 2, "command_timeout_ceiling"),
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
        assert_eq!(Errors { command_timeout_ceiling: 0 }.ceiling(), None);
        assert_eq!(Errors { command_timeout_ceiling: 3 }.ceiling(), Some(Duration::from_secs(3)));
    }
}
