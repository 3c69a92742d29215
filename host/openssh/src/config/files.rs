//! `~/.ssh/config` and `/etc/ssh/ssh_config` as we read them ourselves, for a machine without ssh: what most
//! configurations consist of, read as ssh_config(5) says, and an error for what would take a whole ssh.

pub(super) mod words;

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::settings::{Settings, Source};
use super::tokens::Caller;
use super::{Given, invalid};
use crate::pattern;
use host_base::problem::Problem;
use host_base::small_file;

/// For every account of the machine.
pub(super) const SYSTEM: &str = "/etc/ssh/ssh_config";

/// As deep as ssh goes.
pub(super) const DEEPEST: usize = 16;

const IDENTITIES: [&str; 5] =
    ["~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ecdsa_sk", "~/.ssh/id_ed25519", "~/.ssh/id_ed25519_sk"];

/// Whose values add up; of all others the first one holds.
const ADDING_UP: [&str; 7] = [
    "identityfile",
    "certificatefile",
    "sendenv",
    "setenv",
    "localforward",
    "remoteforward",
    "dynamicforward",
];

/// Whose value is the rest of the line, quotes, `#` and all.
const WHOLE_LINES: [&str; 4] = ["proxycommand", "localcommand", "remotecommand", "knownhostscommand"];

/// Which take several words.
const SEVERAL_WORDS: [&str; 10] = [
    "userknownhostsfile",
    "globalknownhostsfile",
    "sendenv",
    "setenv",
    "localforward",
    "remoteforward",
    "canonicaldomains",
    "canonicalizepermittedcnames",
    "ipqos",
    "rekeylimit",
];

/// The rest of ssh_config(5), OpenSSH 10.0, and what distributions add for GSSAPI: each takes one word.
const ONE_WORD: &[&str] = &[
    "addkeystoagent",
    "addressfamily",
    "batchmode",
    "bindaddress",
    "bindinterface",
    "canonicalizefallbacklocal",
    "canonicalizehostname",
    "canonicalizemaxdots",
    "casignaturealgorithms",
    "certificatefile",
    "challengeresponseauthentication",
    "channeltimeout",
    "checkhostip",
    "ciphers",
    "clearallforwardings",
    "compression",
    "connectionattempts",
    "connecttimeout",
    "controlmaster",
    "controlpath",
    "controlpersist",
    "dynamicforward",
    "enableescapecommandline",
    "enablesshkeysign",
    "escapechar",
    "exitonforwardfailure",
    "fingerprinthash",
    "forkafterauthentication",
    "forwardagent",
    "forwardx11",
    "forwardx11timeout",
    "forwardx11trusted",
    "gatewayports",
    "gssapiauthentication",
    "gssapiclientidentity",
    "gssapidelegatecredentials",
    "gssapikexalgorithms",
    "gssapikeyexchange",
    "gssapirenewalforcesrekey",
    "gssapiserveridentity",
    "gssapitrustdns",
    "hashknownhosts",
    "hostbasedacceptedalgorithms",
    "hostbasedauthentication",
    "hostkeyalgorithms",
    "hostkeyalias",
    "hostname",
    "identitiesonly",
    "identityagent",
    "identityfile",
    "kbdinteractiveauthentication",
    "kbdinteractivedevices",
    "kexalgorithms",
    "loglevel",
    "logverbose",
    "macs",
    "nohostauthenticationforlocalhost",
    "numberofpasswordprompts",
    "obscurekeystroketiming",
    "passwordauthentication",
    "permitlocalcommand",
    "permitremoteopen",
    "pkcs11provider",
    "port",
    "preferredauthentications",
    "proxyjump",
    "proxyusefdpass",
    "pubkeyacceptedalgorithms",
    "pubkeyacceptedkeytypes",
    "pubkeyauthentication",
    "requesttty",
    "requiredrsasize",
    "revokedhostkeys",
    "securitykeyprovider",
    "serveralivecountmax",
    "serveraliveinterval",
    "sessiontype",
    "stdinnull",
    "streamlocalbindmask",
    "streamlocalbindunlink",
    "stricthostkeychecking",
    "syslogfacility",
    "tag",
    "tcpkeepalive",
    "tunnel",
    "tunneldevice",
    "updatehostkeys",
    "user",
    "verifyhostkeydns",
    "visualhostkey",
    "xauthlocation",
];

/// What holds for the host, by the user's file and then the system's.
pub(super) fn read(
    user: &Path,
    system: &Path,
    alias: &str,
    given: &Given,
    caller: &Caller,
) -> Result<Settings, Problem> {
    let mut settings = Settings::new(Source::Files);
    for (keyword, value) in [
        ("hostname", given.hostname.clone()),
        ("port", given.port.map(|port| port.to_string())),
        ("user", given.user.clone()),
        ("identityfile", given.identity_file.as_ref().map(|file| file.to_string_lossy().into_owned())),
    ] {
        value.iter().for_each(|value| settings.add(keyword, value, None));
    }
    let mut reader = Reader { alias, caller, settings, ignored: Vec::new(), directory: PathBuf::new() };
    for file in [user, system] {
        // What a file includes is below its own directory.
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

/// Where the keys of known hosts are, unless a file says otherwise.
pub(super) fn known_hosts(caller: &Caller) -> Vec<PathBuf> {
    let files = DEFAULTS.iter().filter(|(keyword, _)| keyword.ends_with("knownhostsfile"));
    let files = files.flat_map(|(_, files)| files.iter());
    files
        .map(|file| file.strip_prefix("~/").map_or(PathBuf::from(file), |below| caller.home.join(below)))
        .collect()
}

/// What holds without any file.
pub(super) fn defaults() -> Settings {
    let mut settings = Settings::new(Source::Files);
    for (keyword, files) in DEFAULTS {
        files.iter().for_each(|file| settings.add(keyword, file, None));
    }
    settings
}

struct Reader<'a> {
    alias: &'a str,
    caller: &'a Caller,
    settings: Settings,
    /// Patterns of keywords that an IgnoreUnknown names.
    ignored: Vec<String>,
    directory: PathBuf,
}

impl Reader<'_> {
    /// Nothing is in a file that isn't there. `active`: whether what includes it is about this host.
    fn file(&mut self, path: &Path, active: bool, depth: usize) -> Result<(), Problem> {
        let text = match small_file::read(path, |found| may(found, self.caller)) {
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
            let Some((keyword, rest)) = words::keyword(line) else { continue };
            let keyword = keyword.to_ascii_lowercase();
            let values = if WHOLE_LINES.contains(&&*keyword) {
                vec![rest.to_owned()]
            } else {
                words::split(rest).map_err(&wrong)?
            };
            if values.iter().all(String::is_empty) {
                return Err(wrong(&format!("{keyword} has no value")));
            }
            match &*keyword {
                "host" => is_ours = active && pattern::lists(values.iter().map(String::as_str), self.alias),
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
                            included(value, &self.directory, self.caller).map_err(|why| wrong(&why))?
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
        let takes_one = ONE_WORD.contains(&keyword);
        if !takes_one && !SEVERAL_WORDS.contains(&keyword) && !WHOLE_LINES.contains(&keyword) {
            return match pattern::lists(self.ignored.iter().map(String::as_str), keyword) {
                true => Ok(()),
                false => Err(format!("{keyword} isn't known")),
            };
        }
        if takes_one && values.len() > 1 {
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
            // Whichever comes first.
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

/// Files that a pattern names, sorted.
pub(super) fn included(pattern: &str, directory: &Path, caller: &Caller) -> Result<Vec<PathBuf>, String> {
    let path = match pattern.strip_prefix("~/") {
        Some(below) => caller.home.join(below),
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

/// As ssh has it: a file that another account can write to could have anything run.
pub(super) fn may(found: &std::fs::Metadata, caller: &Caller) -> io::Result<()> {
    let is_own = found.uid() == 0 || found.uid() == caller.uid;
    if is_own && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::other(
        "bad owner or permissions: it belongs to another account, or others can write to it",
    ))
}

#[cfg(test)]
mod tests;
