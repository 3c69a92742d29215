//! The system account: the properties that it must have, and the directories in its home.
//!
//! The account's home lies below `/var/lib/linux-sysadmin`, which itself is root's: `modules` there is root's as well, and
//! serves every account of the machine.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{ACCOUNT, Account, SystemError, groups, trust};
use host_base::passwd;
use host_target::Target;

/// The directory of root's that holds what belongs to no account.
pub const BASE: &str = "/var/lib/linux-sysadmin";
/// The account's home.
pub const HOME: &str = "/var/lib/linux-sysadmin/home";

/// The directories in the home, for configuration, log, compiled components and keys.
const HOME_DIRECTORIES: [&str; 8] = [
    ".config",
    ".config/linux-sysadmin",
    ".local",
    ".local/state",
    ".local/state/linux-sysadmin",
    ".cache",
    ".cache/linux-sysadmin",
    ".ssh",
];

/// The first number of people's accounts, where `login.defs` sets no other.
const FIRST_OF_PEOPLE: u32 = 1000;

/// The state of the system account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountState {
    /// There is no account, but perhaps a group of its name.
    Missing { group_exists: bool },
    /// The account is as it must be.
    Right(Account),
    /// An account of this name has other properties.
    Wrong(String),
}

/// Looks at this machine's tables. Without root it doesn't see passwords. Groups may also come from elsewhere.
pub async fn state(target: &Target) -> Result<AccountState, SystemError> {
    let table = |path: &str| {
        let path = Path::new(path);
        passwd::text_or_empty(path).map_err(|error| SystemError::io(path, error))
    };
    let shadow = match table("/etc/shadow") {
        Err(SystemError::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => None,
        shadow => Some(shadow?),
    };
    Ok(match judged(&table("/etc/passwd")?, &table("/etc/group")?, shadow.as_deref()) {
        AccountState::Right(account) => alone(account, &groups::of(target, Some(ACCOUNT)).await?),
        other => other,
    })
}

/// Checks that these groups are the account's own group and no other.
fn alone(account: Account, groups: &[u32]) -> AccountState {
    let others: Vec<String> = groups.iter().filter(|gid| **gid != account.gid).map(u32::to_string).collect();
    match others.is_empty() {
        true => AccountState::Right(account),
        false => AccountState::Wrong(format!("it is in the groups of the numbers {}", others.join(", "))),
    }
}

fn judged(passwd: &str, group: &str, shadow: Option<&str>) -> AccountState {
    let entries = passwd::parse(passwd);
    let Some(entry) = entries.iter().find(|entry| entry.name == ACCOUNT) else {
        let group_exists = group.lines().any(|line| line.split(':').next() == Some(ACCOUNT));
        return AccountState::Missing { group_exists };
    };
    let mut wrong = Vec::new();
    if entry.uid == 0 || entry.uid >= FIRST_OF_PEOPLE {
        wrong.push(format!("its number is {}, which is no system account's", entry.uid));
    }
    if let Some(other) = entries.iter().find(|other| other.uid == entry.uid && other.name != ACCOUNT) {
        wrong.push(format!("{} has the same number {}", other.name, entry.uid));
    }
    if entry.home != Path::new(HOME) {
        wrong.push(format!("its home is {}, and not {HOME}", entry.home.display()));
    }
    let shell = entry.shell.file_name().unwrap_or_default();
    if shell != "nologin" && shell != "false" {
        wrong.push(format!("its shell is {:?}: one can log in", entry.shell.display().to_string()));
    }
    if shadow.is_some_and(|shadow| !passwd::is_locked(shadow, ACCOUNT)) {
        wrong.push("it has a password: one can log in".to_owned());
    }
    match passwd::name_of(group, entry.gid) {
        Some(own) if own == ACCOUNT => {}
        Some(other) => wrong.push(format!("its group is {other}, and not one of its own")),
        None => wrong.push(format!("its group, of the number {}, is not in /etc/group", entry.gid)),
    }
    if let Some(other) = entries.iter().find(|other| other.gid == entry.gid && other.name != ACCOUNT) {
        wrong.push(format!("{} has the same group", other.name));
    }
    let groups = passwd::groups_of(group, ACCOUNT);
    let others: Vec<String> = groups.into_iter().filter(|group| group != ACCOUNT).collect();
    if !others.is_empty() {
        wrong.push(format!("it is a member of {}", others.join(", ")));
    }
    let passwd::Entry { uid, gid, home, .. } = entry.clone();
    match wrong.is_empty() {
        true => AccountState::Right(Account { uid, gid, home }),
        false => AccountState::Wrong(wrong.join("; ")),
    }
}

/// Returns what is wrong with a directory. None where it is this account's and has this mode.
pub fn wrong_with(path: &Path, uid: u32, mode: u32) -> io::Result<Option<String>> {
    let found = fs::symlink_metadata(path)?;
    let is = found.mode() & 0o7777;
    Ok(if !found.is_dir() {
        Some("it is not a directory".to_owned())
    } else if found.uid() != uid {
        Some(format!("it belongs to {}", trust::name_of(found.uid())))
    } else if is != mode {
        Some(format!("its mode is {is:04o}, and not {mode:04o}"))
    } else {
        None
    })
}

/// The directories in a home that are missing, and those that are wrong, with the reason. Upper ones come first.
pub struct HomeDirectories {
    pub missing: Vec<PathBuf>,
    pub wrong: Vec<(PathBuf, String)>,
}

/// Looks at the directories in a home.
pub fn home_directories(home: &Path, uid: u32) -> io::Result<HomeDirectories> {
    let mut home_directories = HomeDirectories { missing: Vec::new(), wrong: Vec::new() };
    for path in HOME_DIRECTORIES.iter().map(|below| home.join(below)) {
        match wrong_with(&path, uid, 0o700) {
            Ok(None) => {}
            Ok(Some(reason)) => home_directories.wrong.push((path, reason)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => home_directories.missing.push(path),
            Err(error) => return Err(error),
        }
    }
    Ok(home_directories)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const LINE: &str =
        "linux-sysadmin:x:998:997:an MCP server:/var/lib/linux-sysadmin/home:/usr/sbin/nologin\n";

    #[test]
    fn the_account_is_nobodys_login_and_shares_nothing() {
        let group = "linux-sysadmin:x:997:\nsudo:x:27:alice\n";
        let shadow = "linux-sysadmin:!:19000::::::\n";
        let right = Account { uid: 998, gid: 997, home: HOME.into() };
        assert_eq!(judged(LINE, group, Some(shadow)), AccountState::Right(right.clone()));
        assert_eq!(judged(LINE, group, None), AccountState::Right(right));
        for (passwd, group, shadow, reason) in [
            (LINE.replace("998", "1000"), group, shadow, "no system account's"),
            (LINE.replace("998", "0"), group, shadow, "no system account's"),
            (
                format!("{LINE}alice:x:998:5::/home/alice:/bin/sh\n"),
                group,
                shadow,
                "alice has the same number",
            ),
            (
                format!("{LINE}alice:x:1000:997::/home/alice:/bin/sh\n"),
                group,
                shadow,
                "alice has the same group",
            ),
            (LINE.replace("997", "27"), group, shadow, "its group is sudo"),
            (LINE.replace("997", "0"), group, shadow, "its group, of the number 0, is not in"),
            (LINE.to_owned(), "docker:x:997:\nlinux-sysadmin:x:997:\n", shadow, "its group is docker"),
            (LINE.replace("/var/lib/linux-sysadmin/home", "/home/x"), group, shadow, "its home is /home/x"),
            (LINE.replace("/usr/sbin/nologin", "/bin/bash"), group, shadow, "its shell is \"/bin/bash\""),
            (LINE.replace("/usr/sbin/nologin", ""), group, shadow, "its shell is \"\""),
            (LINE.to_owned(), group, "linux-sysadmin:$y$x:19000::::::\n", "it has a password"),
            (
                LINE.to_owned(),
                "linux-sysadmin:x:997:\nsudo:x:27:linux-sysadmin\n",
                shadow,
                "it is a member of sudo",
            ),
        ] {
            match judged(&passwd, group, Some(shadow)) {
                AccountState::Wrong(found) => assert!(found.contains(reason), "{found}"),
                other => panic!("{reason}: {other:?}"),
            }
        }
        assert_eq!(judged("", "", Some("")), AccountState::Missing { group_exists: false });
        assert_eq!(judged("", group, Some("")), AccountState::Missing { group_exists: true });
    }

    #[test]
    fn groups_that_come_from_elsewhere_are_shared_as_well() {
        let account = Account { uid: 998, gid: 997, home: HOME.into() };
        assert_eq!(alone(account.clone(), &[997]), AccountState::Right(account.clone()));
        let AccountState::Wrong(why) = alone(account, &[997, 27, 4]) else { panic!("it is in others") };
        assert!(why.ends_with("27, 4"), "{why}");
    }

    #[test]
    fn what_is_in_its_home_is_its_own_alone() {
        let home = tempfile::tempdir().unwrap();
        let uid = fs::metadata(home.path()).unwrap().uid();
        let found = home_directories(home.path(), uid).unwrap();
        assert_eq!((found.missing.len(), found.wrong.len()), (HOME_DIRECTORIES.len(), 0));
        for path in &found.missing {
            fs::create_dir_all(path).unwrap();
        }
        for path in &found.missing {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let found = home_directories(home.path(), uid).unwrap();
        assert_eq!((found.missing.len(), found.wrong.len()), (0, 0));
        fs::set_permissions(home.path().join(".ssh"), fs::Permissions::from_mode(0o750)).unwrap();
        fs::remove_dir(home.path().join(".cache/linux-sysadmin")).unwrap();
        std::os::unix::fs::symlink("/etc", home.path().join(".cache/linux-sysadmin")).unwrap();
        let reasons: Vec<_> =
            home_directories(home.path(), uid).unwrap().wrong.into_iter().map(|(_, reason)| reason).collect();
        assert_eq!(reasons, ["it is not a directory", "its mode is 0750, and not 0700"]);
        assert_eq!(home_directories(home.path(), uid + 1).unwrap().wrong.len(), HOME_DIRECTORIES.len());
    }
}
