//! Reads the tables of accounts and groups: passwd(5), group(5) and shadow(5).

use std::io;
use std::path::{Path, PathBuf};

/// A line of passwd(5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The login name.
    pub name: String,
    /// The numeric user id.
    pub uid: u32,
    /// The numeric id of the account's primary group.
    pub gid: u32,
    /// The home directory, which need not exist.
    pub home: PathBuf,
    /// The program that a login starts.
    pub shell: PathBuf,
}

/// Reads the accounts of this machine. The list is empty where the file is missing.
pub fn read() -> io::Result<Vec<Entry>> {
    Ok(parse(&text_or_empty(Path::new("/etc/passwd"))?))
}

/// Reads a file that only root writes, such as a table. The text is empty where the file is missing, and bytes that
/// aren't UTF-8 are replaced.
pub fn text_or_empty(path: &Path) -> io::Result<String> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// Parses the lines of passwd(5). Lines of another form are skipped, as the system's own look-ups do.
pub fn parse(text: &str) -> Vec<Entry> {
    text.lines().filter_map(entry).collect()
}

fn entry(line: &str) -> Option<Entry> {
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, uid, gid, _, home, shell] = fields[..] else { return None };
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    (!name.is_empty() && !name.starts_with(['+', '-', '#'])).then_some(())?;
    Some(Entry {
        name: name.to_owned(),
        uid: number(uid)?,
        gid: number(gid)?,
        home: home.into(),
        shell: shell.into(),
    })
}

/// Returns the groups that list the account as a member.
pub fn groups_of(group: &str, account: &str) -> Vec<String> {
    with_member(group, account).map(|(name, _)| name.to_owned()).collect()
}

/// Returns the numeric ids of the groups that list the account as a member.
pub fn group_ids_of(group: &str, account: &str) -> Vec<u32> {
    with_member(group, account).filter_map(|(_, id)| id.parse().ok()).collect()
}

/// The names and ids of the groups with this member.
fn with_member<'a>(group: &'a str, account: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    group.lines().filter_map(move |line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, id, members] = fields[..] else { return None };
        members.split(',').any(|member| member == account).then_some((name, id))
    })
}

/// Returns the name that a table of accounts or of groups gives to a numeric id. The first line counts, as in the
/// system's own look-ups.
pub fn name_of(table: &str, id: u32) -> Option<&str> {
    table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then_some(name)
    })
}

/// Says whether no password opens the account: shadow(5) has one that nothing matches, or doesn't list the account.
pub fn is_locked(shadow: &str, account: &str) -> bool {
    let mut lines = shadow.lines().filter_map(|line| line.split_once(':'));
    match lines.find(|(name, _)| *name == account) {
        Some((_, rest)) => rest.starts_with(['!', '*']),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read_and_what_is_none_is_passed_over() {
        let text = "root:x:0:0:root:/root:/bin/bash\n\
                    +::::::\n\
                    # comment\n\
                    short:x:1\n\
                    signed:x:+7:7::/:/bin/sh\n\
                    huge:x:99999999999:7::/:/bin/sh\n\
                    :x:7:7::/:/bin/sh\n\
                    linux-sysadmin:x:998:997:linux-sysadmin:/var/lib/linux-sysadmin/home:/usr/sbin/nologin\n";
        let entries = parse(text);
        let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["root", "linux-sysadmin"]);
        assert_eq!((entries[1].uid, entries[1].gid), (998, 997));
        assert_eq!(entries[1].home, Path::new("/var/lib/linux-sysadmin/home"));
        assert_eq!(entries[1].shell, Path::new("/usr/sbin/nologin"));
    }

    #[test]
    fn a_member_is_a_whole_name() {
        let group = "sudo:x:27:alice,linux-sysadmin\nadm:x:4:linux-sysadmin2,not-linux-sysadmin\ndocker:x:9:linux-sysadmin\n";
        assert_eq!(groups_of(group, "linux-sysadmin"), ["sudo", "docker"]);
        assert_eq!(group_ids_of(group, "linux-sysadmin"), [27, 9]);
        assert!(groups_of(group, "sysadmin").is_empty());
    }

    #[test]
    fn a_groups_number_has_the_first_name() {
        let group = "sudo:x:27:997\nbroken:x\nfirst:x:997:\nsecond:x:997:\n";
        assert_eq!(name_of(group, 997), Some("first"));
        assert_eq!(name_of(group, 27), Some("sudo"));
        assert_eq!(name_of(group, 9), None);
    }

    #[test]
    fn a_password_that_something_matches_is_no_lock() {
        for (shadow, locked) in [
            ("a:!:19000::::::\n", true),
            ("a:!!:19000::::::\n", true),
            ("a:*:19000::::::\n", true),
            ("a:!$y$j9T$x:19000::::::\n", true),
            ("a:$y$j9T$x:19000::::::\n", false),
            ("a::19000::::::\n", false),
            ("ab::19000::::::\n", true),
            ("", true),
        ] {
            assert_eq!(is_locked(shadow, "a"), locked, "{shadow:?}");
        }
    }
}
