//! Accounts of this machine as its passwd(5) table lists them, and the runtime directory that the servers of one
//! account share.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::passwd::{self, Entry};

/// The account that the server of system mode has for itself.
pub const SERVER: &str = "linux-sysadmin";

/// A login account, from its line in `/etc/passwd`. See passwd(5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The login name.
    pub name: String,
    /// The numeric user id.
    pub uid: u32,
    /// The home directory, an absolute path.
    pub home: PathBuf,
}

impl Account {
    /// Finds the account with this numeric id in `/etc/passwd`. Accounts of a directory service aren't found.
    pub fn of_uid(uid: u32) -> Option<Self> {
        find(&table(), |account| account.uid == uid)
    }

    /// Finds the account with this login name in `/etc/passwd`.
    pub fn named(name: &str) -> Option<Self> {
        find(&table(), |account| account.name == name)
    }
}

fn table() -> Vec<Entry> {
    passwd::read().unwrap_or_default()
}

/// Returns the first match, as the system's own look-ups do.
fn find(table: &[Entry], is_it: impl Fn(&Entry) -> bool) -> Option<Account> {
    let Entry { name, uid, home, .. } =
        table.iter().find(|entry| is_it(entry) && entry.home.is_absolute())?.clone();
    Some(Account { name, uid, home })
}

/// Whether this is a name of an account or a group as useradd(8) allows it: a letter or `_` first, which also keeps a name
/// from being read as a number, and at most 32 characters. No shell interprets one of them.
///
/// The `$` at the end that Samba's machines have is refused. A dot within is allowed, since directories such as Active
/// Directory make such names; at the end chown(1) reads it as "and the login group".
pub fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    name.len() <= 32
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(fits)
        && !name.ends_with('.')
}

/// Returns the directory that all servers of the account share, whatever home each has; it is empty after a boot.
/// Returns none where the directory above isn't the account's own.
pub fn runtime_directory(uid: u32) -> Option<PathBuf> {
    let parent = match uid {
        0 => PathBuf::from("/run"),
        uid => PathBuf::from(format!("/run/user/{uid}")),
    };
    is_its_own(&parent, uid).then(|| parent.join("linux-sysadmin"))
}

fn is_its_own(directory: &Path, uid: u32) -> bool {
    let is_its_own = |found: Metadata| found.is_dir() && found.uid() == uid && found.mode() & 0o022 == 0;
    std::fs::symlink_metadata(directory).is_ok_and(is_its_own)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const TABLE: &str = "root:x:0:0:root:/root:/bin/bash\n\
        # a comment\n\
        broken:x:ten:10::/home/broken:/bin/sh\n\
        short:x:11\n\
        relative:x:12:12::home/relative:/bin/sh\n\
        ada:x:1000:1000:Ada,,,:/home/ada:/bin/sh\n\
        ada:x:1001:1001::/home/second:/bin/sh\n\
        linux-sysadmin:x:990:990::/var/lib/linux-sysadmin:/usr/sbin/nologin\n";

    #[test]
    fn an_account_is_what_the_first_whole_line_of_its_name_says() {
        let table = passwd::parse(TABLE);
        let named = |name: &str| find(&table, |account| account.name == name);
        let found = |name| named(name).map(|account| (account.uid, account.home));
        assert_eq!(found("root"), Some((0, "/root".into())));
        assert_eq!(found("ada"), Some((1000, "/home/ada".into())));
        assert_eq!(found("linux-sysadmin"), Some((990, "/var/lib/linux-sysadmin".into())));
        for name in ["broken", "short", "relative", "# a comment", "nobody", ""] {
            assert_eq!(found(name), None, "{name}");
        }
        assert_eq!(find(&table, |account| account.uid == 1001).unwrap().home, Path::new("/home/second"));
    }

    #[test]
    fn a_directory_that_another_account_could_write_to_is_not_ones_own() {
        let directory = tempfile::tempdir().unwrap();
        let uid = rustix::process::geteuid().as_raw();
        for (mode, own) in [(0o700, true), (0o755, true), (0o775, false), (0o777, false), (0o1777, false)] {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(directory.path(), permissions).unwrap();
            assert_eq!(is_its_own(directory.path(), uid), own, "{mode:o}");
        }
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!is_its_own(directory.path(), uid + 1));
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(directory.path(), &link).unwrap();
        assert!(!is_its_own(&link, uid));
        assert!(!is_its_own(&directory.path().join("none"), uid));
    }
}
