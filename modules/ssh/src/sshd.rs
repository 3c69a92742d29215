//! The files in which the target's sshd looks for an account's keys. sshd tells them to root only; otherwise its defaults
//! are assumed.

use linux_sysadmin_sdk::{Category, prelude::*, sshd};

use crate::account::Account;

/// The file that the tools change: the first of the two defaults (sshd_config(5)).
const KEYS: &str = ".ssh/authorized_keys";

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
        let expanded = |file| sshd::expanded(file, &account.name, account.uid, &account.home);
        files.split_whitespace().map(expanded).collect()
    };
    let found = |mut files: Vec<String>, notes: Vec<String>| {
        files.retain(|file| *file != path);
        KeyFiles { path: path.clone(), others: files, notes }
    };
    let said = sshd::settings(&[&account.name], cx).remove(0);
    let settings = match said {
        Ok(settings) => settings,
        Err(problem) => {
            let why = problem.message.lines().next().unwrap_or_default().to_owned();
            let note =
                format!("sshd could not be asked where it looks for keys ({why}): its default is supposed");
            return Ok(found(all(sshd::KEY_FILES), vec![note]));
        }
    };
    let mut notes = Vec::new();
    if settings.is("PubkeyAuthentication", "no") {
        notes.push("sshd takes no keys at all: PubkeyAuthentication is no".to_owned());
    }
    let files = settings.get("AuthorizedKeysFile").unwrap_or(sshd::KEY_FILES);
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
