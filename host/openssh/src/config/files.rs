//! Reads `~/.ssh/config` and `/etc/ssh/ssh_config` on a machine without ssh. It reads what most configurations consist
//! of, as ssh_config(5) describes it, and returns an error for what would take a whole ssh.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::settings::{Settings, Source};
use super::tokens::LocalUser;
use super::{SshOptions, invalid};
use host_base::problem::Problem;
use host_base::trusted_file;
use host_ssh_syntax::{ValueForm, directive, is_whole_line, matches_list, value_form, words};

/// The configuration of all accounts of this machine.
pub(super) const SYSTEM: &str = "/etc/ssh/ssh_config";

/// The depth of includes that ssh allows.
pub(super) const DEEPEST: usize = 16;

const IDENTITIES: [&str; 5] =
    ["~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ecdsa_sk", "~/.ssh/id_ed25519", "~/.ssh/id_ed25519_sk"];

/// Keywords whose values add up. Of all others, the first value holds.
const ADDING_UP: [&str; 7] = [
    "identityfile",
    "certificatefile",
    "sendenv",
    "setenv",
    "localforward",
    "remoteforward",
    "dynamicforward",
];

/// Returns the settings for the host, by the user's file and then the system's.
pub(super) fn read(
    user: &Path,
    system: &Path,
    alias: &str,
    options: &SshOptions,
    local_user: &LocalUser,
) -> Result<Settings, Problem> {
    let mut settings = Settings::new(Source::Files);
    for (keyword, value) in [
        ("hostname", options.hostname.clone()),
        ("port", options.port.map(|port| port.to_string())),
        ("user", options.user.clone()),
        ("identityfile", options.identity_file.as_ref().map(|file| file.to_string_lossy().into_owned())),
    ] {
        value.iter().for_each(|value| settings.add(keyword, value, None));
    }
    let mut reader = Reader { alias, local_user, settings, ignored: Vec::new(), directory: PathBuf::new() };
    for file in [user, system] {
        // A relative Include is below the including file's own directory.
        reader.directory = file.parent().unwrap_or(Path::new("/")).to_owned();
        reader.file(file, true, 0)?;
    }
    let mut settings = reader.settings;
    for (keyword, files) in DEFAULTS {
        if !settings.has(keyword) {
            files.iter().for_each(|file| settings.add(keyword, file, None));
        }
    }
    Ok(settings)
}

const DEFAULTS: [(&str, &[&str]); 3] = [
    ("identityfile", &IDENTITIES),
    ("userknownhostsfile", &["~/.ssh/known_hosts", "~/.ssh/known_hosts2"]),
    ("globalknownhostsfile", &["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"]),
];

/// Returns the known_hosts files that are used unless a file says otherwise.
pub(super) fn known_hosts(local_user: &LocalUser) -> Vec<PathBuf> {
    let files = DEFAULTS.iter().filter(|(keyword, _)| keyword.ends_with("knownhostsfile"));
    let files = files.flat_map(|(_, files)| files.iter());
    files
        .map(|file| file.strip_prefix("~/").map_or(PathBuf::from(file), |below| local_user.home.join(below)))
        .collect()
}

/// Returns the settings that hold without any file.
pub(super) fn defaults() -> Settings {
    let mut settings = Settings::new(Source::Files);
    for (keyword, files) in DEFAULTS {
        files.iter().for_each(|file| settings.add(keyword, file, None));
    }
    settings
}

struct Reader<'a> {
    alias: &'a str,
    local_user: &'a LocalUser,
    settings: Settings,
    /// Patterns of keywords that an IgnoreUnknown names.
    ignored: Vec<String>,
    directory: PathBuf,
}

impl Reader<'_> {
    /// Reads a file. A missing one is empty. `active` says whether the part that includes it is about this host.
    fn file(&mut self, path: &Path, active: bool, depth: usize) -> Result<(), Problem> {
        let text = match trusted_file::read(path, |found| check_owner(found, self.local_user)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(invalid(format!("{}: {error}", path.display()))),
        };
        let mut is_ours = active;
        for (index, line) in text.lines().enumerate() {
            let place = format!("{}:{}", path.display(), index + 1);
            let wrong = |why: &str| {
                invalid(format!("{place}: {why}")).remedy(
                    "Install ssh (openssh-client), which reads every configuration, or write it otherwise",
                )
            };
            let Some((keyword, rest)) = directive(line) else { continue };
            let keyword = keyword.to_ascii_lowercase();
            let values = if is_whole_line(&keyword) {
                vec![rest.to_owned()]
            } else {
                word_texts(rest).map_err(&wrong)?
            };
            if values.iter().all(String::is_empty) {
                return Err(wrong(&format!("{keyword} has no value")));
            }
            match &*keyword {
                "host" => is_ours = active && matches_list(values.iter().map(String::as_str), self.alias),
                "match" if matches!(&values[..], [all] if all.eq_ignore_ascii_case("all")) => {
                    is_ours = active
                }
                "match" => {
                    return Err(wrong(
                        "Match can only be read with `all`, since there is no ssh to look at the rest",
                    ));
                }
                "include" if depth >= DEEPEST => return Err(wrong("files are included too deeply")),
                "include" => {
                    for value in &values {
                        for file in
                            included(value, &self.directory, self.local_user).map_err(|why| wrong(&why))?
                        {
                            self.file(&file, is_ours, depth + 1)?;
                        }
                    }
                }
                "ignoreunknown" if is_ours && self.ignored.is_empty() => {
                    self.ignored = values[0].to_ascii_lowercase().split(',').map(str::to_owned).collect();
                }
                "ignoreunknown" => {}
                _ => self.setting(&keyword, &values, is_ours, &place).map_err(|why| wrong(&why))?,
            }
        }
        Ok(())
    }

    fn setting(
        &mut self,
        keyword: &str,
        values: &[String],
        is_ours: bool,
        place: &str,
    ) -> Result<(), String> {
        let Some(form) = value_form(keyword) else {
            return match matches_list(self.ignored.iter().map(String::as_str), keyword) {
                true => Ok(()),
                false => Err(format!("{keyword} isn't known")),
            };
        };
        if form == ValueForm::Word && values.len() > 1 {
            return Err(format!("{keyword} takes one value, found {}", values.len()));
        }
        if !is_ours || !ADDING_UP.contains(&keyword) && self.settings.has(keyword) {
            return Ok(());
        }
        let value = &values[0];
        match keyword {
            "canonicalizehostname" if value != "no" && value != "false" => {
                return Err("CanonicalizeHostname can't be followed without ssh".to_owned());
            }
            "hostkeyalgorithms" | "kexalgorithms" | "ciphers" | "macs" if value.starts_with('-') => {
                return Err(format!("{keyword} {value} is less than a list that only ssh has"));
            }
            // The one that comes first holds.
            "proxyjump" if self.settings.has("proxycommand") => return Ok(()),
            "proxycommand" if self.settings.has("proxyjump") => return Ok(()),
            _ => {}
        }
        match keyword {
            "localforward" | "remoteforward" => self.settings.add(keyword, &values.join(" "), Some(place)),
            _ => values.iter().for_each(|value| self.settings.add(keyword, value, Some(place))),
        }
        Ok(())
    }
}

/// The words of a value, without their quotes.
pub(super) fn word_texts(value: &str) -> Result<Vec<String>, &'static str> {
    Ok(words(value)?.into_iter().map(|word| word.text).collect())
}

/// Returns the files that a pattern names, sorted.
pub(super) fn included(
    pattern: &str,
    directory: &Path,
    local_user: &LocalUser,
) -> Result<Vec<PathBuf>, String> {
    let path = match pattern.strip_prefix("~/") {
        Some(below) => local_user.home.join(below),
        None if pattern.starts_with('~') => {
            return Err(format!("{pattern} is in another account's home"));
        }
        None => directory.join(pattern),
    };
    if pattern.contains(['%', '$']) {
        return Err(format!("tokens and variables in Include {pattern} can't be followed without ssh"));
    }
    let options = glob::MatchOptions {
        require_literal_separator: true,
        require_literal_leading_dot: true,
        ..Default::default()
    };
    let text = path.to_str().ok_or_else(|| format!("{} is no UTF-8", path.display()))?;
    let found = glob::glob_with(text, options).map_err(|error| format!("Include {pattern}: {error}"))?;
    found.map(|file| file.map_err(|error| error.to_string())).collect()
}

/// Checks owner and mode as ssh does. An account that can write to the file could have anything run.
pub(super) fn check_owner(found: &std::fs::Metadata, local_user: &LocalUser) -> io::Result<()> {
    let is_own = found.uid() == 0 || found.uid() == local_user.uid;
    if is_own && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::other(
        "bad owner or permissions: it belongs to another account, or others can write to it",
    ))
}

#[cfg(test)]
mod tests;
