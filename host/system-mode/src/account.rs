//! The account itself: what it must be, and what is in its home.
//!
//! Its home is below root's own `/var/lib/linux-sysadmin` and not that directory itself: `modules` there is root's, for
//! every account of the machine.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{ACCOUNT, Account, SystemError, groups, trust};
use host_base::passwd;
use host_target::Target;

/// Root's, with what belongs to no account.
pub const BASE: &str = "/var/lib/linux-sysadmin";
/// The account's.
pub const HOME: &str = "/var/lib/linux-sysadmin/home";

/// What is in it: configuration, log, compiled components, keys.
const OWN: [&str; 8] = [
    ".config",
    ".config/linux-sysadmin",
    ".local",
    ".local/state",
    ".local/state/linux-sysadmin",
    ".cache",
    ".cache/linux-sysadmin",
    ".ssh",
];

/// From this number on accounts are people's, where `login.defs` says nothing else.
const FIRST_OF_PEOPLE: u32 = 1000;

/// What there is of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing, but for a group of its name maybe.
    Missing { group_exists: bool },
    /// As it must be.
    Right(Account),
    /// An account of this name that is something else.
    Wrong(String),
}

/// Looks at this machine's tables; without root, not at passwords. Groups may come from elsewhere as well.
pub async fn state(target: &Target) -> Result<State, SystemError> {
    let table = |path: &str| {
        let path = Path::new(path);
        passwd::text(path).map_err(|error| SystemError::io(path, error))
    };
    let shadow = match table("/etc/shadow") {
        Err(SystemError::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => None,
        shadow => Some(shadow?),
    };
    Ok(match judged(&table("/etc/passwd")?, &table("/etc/group")?, shadow.as_deref()) {
        State::Right(account) => alone(account, &groups::of(target, Some(ACCOUNT)).await?),
        other => other,
    })
}

/// Whether these are its own group, and no other.
fn alone(account: Account, groups: &[u32]) -> State {
    let others: Vec<String> = groups.iter().filter(|gid| **gid != account.gid).map(u32::to_string).collect();
    match others.is_empty() {
        true => State::Right(account),
        false => State::Wrong(format!("it is in the groups of the numbers {}", others.join(", "))),
    }
}

fn judged(passwd: &str, group: &str, shadow: Option<&str>) -> State {
    let entries = passwd::parse(passwd);
    let Some(entry) = entries.iter().find(|entry| entry.name == ACCOUNT) else {
        let group_exists = group.lines().any(|line| line.split(':').next() == Some(ACCOUNT));
        return State::Missing { group_exists };
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
    match passwd::group_named(group, entry.gid) {
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
        true => State::Right(Account { uid, gid, home }),
        false => State::Wrong(wrong.join("; ")),
    }
}

/// What is wrong with a directory; nothing where it is this account's with this mode.
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

/// The directories in a home that are missing, and those that are wrong with the reason; the ones above first.
pub struct Own {
    pub missing: Vec<PathBuf>,
    pub wrong: Vec<(PathBuf, String)>,
}

/// Looks at what is in a home.
pub fn own(home: &Path, uid: u32) -> io::Result<Own> {
    let mut own = Own { missing: Vec::new(), wrong: Vec::new() };
    for path in OWN.iter().map(|below| home.join(below)) {
        match wrong_with(&path, uid, 0o700) {
            Ok(None) => {}
            Ok(Some(reason)) => own.wrong.push((path, reason)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => own.missing.push(path),
            Err(error) => return Err(error),
        }
    }
    Ok(own)
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
        assert_eq!(judged(LINE, group, Some(shadow)), State::Right(right.clone()));
        assert_eq!(judged(LINE, group, None), State::Right(right));
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
                State::Wrong(found) => assert!(found.contains(reason), "{found}"),
                other => panic!("{reason}: {other:?}"),
            }
        }
        assert_eq!(judged("", "", Some("")), State::Missing { group_exists: false });
        assert_eq!(judged("", group, Some("")), State::Missing { group_exists: true });
    }

    #[test]
    fn groups_that_come_from_elsewhere_are_shared_as_well() {
        let account = Account { uid: 998, gid: 997, home: HOME.into() };
        assert_eq!(alone(account.clone(), &[997]), State::Right(account.clone()));
        let State::Wrong(why) = alone(account, &[997, 27, 4]) else { panic!("it is in others") };
        assert!(why.ends_with("27, 4"), "{why}");
    }

    #[test]
    fn what_is_in_its_home_is_its_own_alone() {
        let home = tempfile::tempdir().unwrap();
        let uid = fs::metadata(home.path()).unwrap().uid();
        let found = own(home.path(), uid).unwrap();
        assert_eq!((found.missing.len(), found.wrong.len()), (OWN.len(), 0));
        for path in &found.missing {
            fs::create_dir_all(path).unwrap();
        }
        for path in &found.missing {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let found = own(home.path(), uid).unwrap();
        assert_eq!((found.missing.len(), found.wrong.len()), (0, 0));
        fs::set_permissions(home.path().join(".ssh"), fs::Permissions::from_mode(0o750)).unwrap();
        fs::remove_dir(home.path().join(".cache/linux-sysadmin")).unwrap();
        std::os::unix::fs::symlink("/etc", home.path().join(".cache/linux-sysadmin")).unwrap();
        let reasons: Vec<_> =
            own(home.path(), uid).unwrap().wrong.into_iter().map(|(_, reason)| reason).collect();
        assert_eq!(reasons, ["it is not a directory", "its mode is 0750, and not 0700"]);
        assert_eq!(own(home.path(), uid + 1).unwrap().wrong.len(), OWN.len());
    }
}
