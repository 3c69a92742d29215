//! Whether an account may read, write or execute a path, and what prevents it: path_resolution(7), acl(5).

use serde::Serialize;

use crate::files::Stat;
use crate::sudoers::rights::Identity;

use super::mode::symbolic;
use linux_sysadmin_sdk::paths::Acl;

/// The access of an account to a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Access {
    pub(crate) user: String,
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// True where the account may execute the file, or enter the directory.
    pub(crate) execute: bool,
    /// The reason why the access is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stopped_by: Option<String>,
}

impl Access {
    pub(crate) fn of(who: &Identity, passed: &[Stat], end: &Stat, acls: &[Acl]) -> Self {
        let acl = |stat: &Stat| acls.iter().find(|acl| acl.path == stat.path);
        let none = |stopped_by| Self {
            user: who.name.clone(),
            read: false,
            write: false,
            execute: false,
            stopped_by,
        };
        for directory in passed.iter().filter(|stat| stat.is_directory() && *stat != end) {
            let (bits, why) = bits(who, directory, acl(directory));
            if bits & 1 == 0 {
                return none(Some(format!(
                    "{} can't enter {} ({}, {why})",
                    who.name,
                    directory.path,
                    told(directory)
                )));
            }
        }
        let (bits, why) = bits(who, end, acl(end));
        let missing: Vec<&str> = [(4, "read"), (2, "write"), (1, "execute")]
            .iter()
            .filter(|(bit, _)| bits & bit == 0)
            .map(|(_, what)| *what)
            .collect();
        let stopped_by = (!missing.is_empty())
            .then(|| format!("{}: {why} gives no {} ({})", end.path, missing.join(", "), told(end)));
        Self { read: bits & 4 != 0, write: bits & 2 != 0, execute: bits & 1 != 0, ..none(stopped_by) }
    }
}

fn told(stat: &Stat) -> String {
    format!("{} {}:{}", symbolic(stat.kind.letter(), stat.mode), stat.owner, stat.group)
}

/// The permission bits that apply to an account, and where they come from.
fn bits(who: &Identity, stat: &Stat, acl: Option<&Acl>) -> (u32, String) {
    let (owner, group, other) = (stat.mode >> 6 & 7, stat.mode >> 3 & 7, stat.mode & 7);
    if who.uid == 0 {
        let execute = u32::from(stat.is_directory() || stat.mode & 0o111 != 0);
        return (6 | execute, "root".to_owned());
    }
    let is_own = |name: &str| name == who.name || name.parse() == Ok(who.uid);
    let is_in = |name: &str| who.groups.iter().any(|(own, gid)| own == name || name.parse() == Ok(*gid));
    if is_own(&stat.owner) {
        return (owner, "the owner's permission".to_owned());
    }
    let Some(acl) = acl else {
        return if is_in(&stat.group) {
            (group, format!("the group {}'s permission", stat.group))
        } else {
            (other, "everybody's permission".to_owned())
        };
    };
    let mask = acl.mask();
    if let Some(bits) = acl.of("user", &who.name) {
        return (bits & mask, format!("the ACL for {}", who.name));
    }
    let owners = is_in(&stat.group).then(|| acl.of("group", "").unwrap_or(group));
    let named = who.groups.iter().filter_map(|(name, _)| acl.of("group", name));
    // One group that gives a permission is enough.
    let of_groups = named.chain(owners).reduce(|all, bits| all | bits);
    match of_groups {
        Some(bits) => (bits & mask, "the ACL for its groups".to_owned()),
        None => (other, "everybody's permission".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Kind;

    fn stat(path: &str, kind: Kind, mode: u32, owner: &str, group: &str) -> Stat {
        Stat { path: path.into(), kind, mode, size: 0, owner: owner.into(), group: group.into() }
    }

    fn ada() -> Identity {
        Identity { name: "ada".into(), uid: 1000, groups: vec![("ada".into(), 1000), ("www".into(), 33)] }
    }

    #[test]
    fn the_first_class_that_fits_decides_and_no_other() {
        let table = [
            (0o640, "root", "www", (true, false, false)),
            (0o604, "root", "www", (false, false, false)),
            (0o077, "ada", "www", (false, false, false)),
            (0o644, "bob", "bob", (true, false, false)),
            (0o755, "ada", "root", (true, true, true)),
            (0o640, "root", "33", (true, false, false)),
        ];
        for (mode, owner, group, expected) in table {
            let end = stat("/x", Kind::File, mode, owner, group);
            let access = Access::of(&ada(), &[], &end, &[]);
            assert_eq!((access.read, access.write, access.execute), expected, "{mode:o} {owner}:{group}");
            assert_eq!(access.stopped_by.is_none(), expected == (true, true, true));
        }
    }

    #[test]
    fn a_directory_on_the_way_that_cannot_be_entered_is_named() {
        let passed = [
            stat("/", Kind::Directory, 0o755, "root", "root"),
            stat("/home/bob", Kind::Directory, 0o700, "bob", "bob"),
        ];
        let end = stat("/home/bob/x", Kind::File, 0o644, "bob", "bob");
        let access = Access::of(&ada(), &passed, &end, &[]);
        assert!(!access.read, "{access:?}");
        assert_eq!(
            access.stopped_by.unwrap(),
            "ada can't enter /home/bob (drwx------ bob:bob, everybody's permission)"
        );
    }

    #[test]
    fn root_reads_everything_and_executes_what_anybody_may() {
        let root = Identity { name: "root".into(), uid: 0, groups: Vec::new() };
        let file = |mode| stat("/x", Kind::File, mode, "ada", "ada");
        assert!(!Access::of(&root, &[], &file(0), &[]).execute);
        let access = Access::of(&root, &[], &file(0o001), &[]);
        assert!(access.read && access.write && access.execute);
    }

    #[test]
    fn an_acl_gives_and_takes_and_its_mask_bounds_it() {
        let end = stat("/x", Kind::File, 0o650, "root", "root");
        let acl = |lines: &[&str]| Acl {
            path: "/x".into(),
            lines: lines.iter().map(|line| line.to_string()).collect(),
        };
        for (lines, expected) in [
            (
                &["user::rw-", "user:ada:rwx", "group::---", "mask::r-x", "other::---"][..],
                (true, false, true),
            ),
            (&["user::rw-", "group::---", "group:www:rw-", "mask::rwx", "other::rwx"], (true, true, false)),
            (&["user::rw-", "user:bob:rwx", "group::---", "mask::rwx", "other::---"], (false, false, false)),
        ] {
            let access = Access::of(&ada(), &[], &end, &[acl(lines)]);
            assert_eq!((access.read, access.write, access.execute), expected, "{lines:?}");
        }
    }
}
