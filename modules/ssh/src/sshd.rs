//! Where the target's sshd looks for an account's keys. It says so to root only; to others its default is supposed.

use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

use crate::account::Account;

/// Its settings for one account, from the address that this connection comes from: `Match` blocks count.
pub(crate) const SETTINGS: CommandLine =
    CommandLine::new("sshd -T -C user=<user>,host=<address>,addr=<address>");

/// Where nothing is known of where a login comes from.
const HERE: &str = "127.0.0.1";

/// sshd_config(5): the first of the default's two.
const DEFAULT: &str = ".ssh/authorized_keys";

/// The file of the account's keys, and what should be known of it.
pub(crate) fn keys_file(account: &Account, cx: &Context) -> Result<(String, Vec<String>)> {
    let path = format!("{}/{DEFAULT}", account.home);
    let address = client(cx).unwrap_or_else(|| HERE.to_owned());
    let command = SETTINGS.with([account.name.as_str(), &address, &address]);
    let said = cx.run(command.privilege(Privilege::RootIfAvailable)).and_then(|said| said.success("sshd"));
    let settings = match said {
        Ok(settings) => settings.text().into_owned(),
        Err(problem) => {
            let why = problem.message.lines().next().unwrap_or_default().to_owned();
            let note =
                format!("sshd could not be asked where it looks for keys ({why}): ~/{DEFAULT} is supposed");
            return Ok((path, vec![note]));
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
    if files.split_whitespace().any(|file| expanded(file, account) == path) {
        return Ok((path, notes));
    }
    let message = format!(
        "sshd looks for {}'s keys in {files} (AuthorizedKeysFile): expected {path} among them, the only file that \
         this tool works on",
        account.name
    );
    Err(Problem::new("KEYS_ELSEWHERE", Category::State, message).remedy("Change that file by hand"))
}

/// The address that the target is reached from over SSH, where it is.
pub(crate) fn client(cx: &Context) -> Option<String> {
    cx.distro().extra.into_iter().find(|(name, _)| name == "ssh_client").map(|(_, address)| address)
}

/// sshd_config(5), TOKENS; what isn't absolute then is below the home.
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
