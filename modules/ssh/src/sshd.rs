//! The files in which the target's sshd looks for an account's keys. sshd tells them to root only; otherwise its defaults
//! are assumed.

use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

use crate::account::Account;

/// Prints sshd's settings for one account and the address of this connection, because `Match` blocks depend on them.
pub(crate) const SETTINGS: CommandLine =
    CommandLine::new("sshd -T -C user=<user>,host=<address>,addr=<address>");

/// The address that is used where the client's address isn't known.
const HERE: &str = "127.0.0.1";

/// The file that the tools change: the first of the two defaults (sshd_config(5)).
const KEYS: &str = ".ssh/authorized_keys";
/// The files in which sshd looks by default.
const DEFAULT: &str = ".ssh/authorized_keys .ssh/authorized_keys2";

/// The files with an account's keys.
pub(crate) struct KeyFiles {
    /// The file that the tools change.
    pub(crate) path: String,
    /// Other files whose keys open the account as well.
    pub(crate) others: Vec<String>,
    /// Notes on sshd's settings, one sentence each.
    pub(crate) notes: Vec<String>,
}

/// Asks sshd for the files with an account's keys.
pub(crate) fn places(account: &Account, cx: &Context) -> Result<KeyFiles> {
    let path = format!("{}/{KEYS}", account.home);
    let all = |files: &str| -> Vec<String> {
        files.split_whitespace().map(|file| expanded(file, account)).collect()
    };
    let found = |mut files: Vec<String>, notes: Vec<String>| {
        files.retain(|file| *file != path);
        KeyFiles { path: path.clone(), others: files, notes }
    };
    let address = client(cx).unwrap_or_else(|| HERE.to_owned());
    let command = SETTINGS.with([account.name.as_str(), &address, &address]);
    let said = cx.run(command.privilege(Privilege::RootIfAvailable)).and_then(|said| said.success("sshd"));
    let settings = match said {
        Ok(settings) => settings.text().into_owned(),
        Err(problem) => {
            let why = problem.message.lines().next().unwrap_or_default().to_owned();
            let note =
                format!("sshd could not be asked where it looks for keys ({why}): its default is supposed");
            return Ok(found(all(DEFAULT), vec![note]));
        }
    };
    let value = |name: &str| {
        settings
            .lines()
            .find_map(|line| line.split_once(' ').filter(|(key, _)| *key == name))
            .map(|(_, value)| value)
    };
    let mut notes = Vec::new();
    if value("pubkeyauthentication") == Some("no") {
        notes.push("sshd takes no keys at all: PubkeyAuthentication is no".to_owned());
    }
    let files = value("authorizedkeysfile").unwrap_or(DEFAULT);
    let places = all(files);
    if places.contains(&path) {
        return Ok(found(places, notes));
    }
    let message = format!(
        "sshd looks for {}'s keys in {files} (AuthorizedKeysFile): expected {path} among them, the only file that \
         this tool works on",
        account.name
    );
    Err(Problem::new("KEYS_ELSEWHERE", Category::State, message).remedy("Change that file by hand"))
}

/// The address from which the target is reached over SSH.
pub(crate) fn client(cx: &Context) -> Option<String> {
    cx.distro().extra.into_iter().find(|(name, _)| name == "ssh_client").map(|(_, address)| address)
}

/// A path with its tokens expanded (sshd_config(5), TOKENS). A relative path is below the home.
fn expanded(file: &str, account: &Account) -> String {
    let mut path = String::new();
    let mut rest = file.chars();
    while let Some(character) = rest.next() {
        if character != '%' {
            path.push(character);
            continue;
        }
        match rest.next() {
            Some('h') => path.push_str(&account.home),
            Some('u') => path.push_str(&account.name),
            Some('U') => path.push_str(&account.uid.to_string()),
            other => path.extend(other),
        }
    }
    if path.starts_with('/') { path } else { format!("{}/{path}", account.home) }
}
