//! The accounts and groups that the machine knows, from its own files or from a directory service.

use std::collections::BTreeSet;

use linux_sysadmin_sdk::accounts::{self, GETENT_NOT_FOUND};
pub(crate) use linux_sysadmin_sdk::accounts::{GETENT_PASSWD as USER, Group, User};
use linux_sysadmin_sdk::{Category, prelude::*};

/// Lists the accounts of the name service.
pub(crate) const USERS: CommandLine = CommandLine::new("getent passwd");
/// Lists the groups of the name service.
pub(crate) const GROUPS: CommandLine = CommandLine::new("getent group");
/// Asks for one group, also one that the name service doesn't list.
pub(crate) const GROUP: CommandLine = CommandLine::new("getent group -- <group>");
/// Prints the uid of the account that the target is reached as.
pub(crate) const CALLER_UID: CommandLine = CommandLine::new("id --user");
/// Prints the groups of that account, the primary one first.
pub(crate) const CALLER_GROUPS: CommandLine = CommandLine::new("id --groups --name");
/// Prints all groups of an account, including those that a directory service doesn't list.
pub(crate) const GROUPS_OF: CommandLine = CommandLine::new("id --groups --name -- <user>");

/// The files that are read besides the name service.
pub(crate) const FILES: [&str; 4] = ["/etc/passwd", "/etc/group", "/etc/login.defs", "/etc/nsswitch.conf"];

/// A uid or gid that isn't assigned yet, or isn't known. No account has this number.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// The ranges of uids and gids for people's accounts (login.defs(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ranges {
    pub(crate) uid_min: u32,
    pub(crate) uid_max: u32,
    pub(crate) gid_min: u32,
    pub(crate) gid_max: u32,
}

impl Ranges {
    fn read(login_defs: &str) -> Self {
        let value = |key: &str, usual: u32| {
            accounts::login_setting(login_defs, key).and_then(|value| value.parse().ok()).unwrap_or(usual)
        };
        Self {
            uid_min: value("UID_MIN", 1000),
            uid_max: value("UID_MAX", 60_000),
            gid_min: value("GID_MIN", 1000),
            gid_max: value("GID_MAX", 60_000),
        }
    }

    /// Whether the uid belongs to the system or to a package. A directory service may use numbers above the range.
    pub(crate) fn is_system_uid(self, uid: u32) -> bool {
        uid < self.uid_min || is_nobody(uid)
    }

    pub(crate) fn is_system_gid(self, gid: u32) -> bool {
        gid < self.gid_min || is_nobody(gid)
    }
}

fn is_nobody(number: u32) -> bool {
    [65_533, 65_534, 65_535].contains(&number)
}

/// All accounts and groups.
#[derive(Clone, Debug)]
pub(crate) struct Accounts {
    pub(crate) users: Vec<User>,
    pub(crate) groups: Vec<Group>,
    local_users: BTreeSet<String>,
    local_groups: BTreeSet<String>,
    pub(crate) ranges: Ranges,
    /// The directory services that accounts come from, such as `sss`.
    pub(crate) directories: Vec<String>,
}

impl Accounts {
    pub(crate) fn look(cx: &Context) -> Result<Self> {
        let [users, groups] = cx.run_each([USERS.command(), GROUPS.command()]);
        Self::of(users, groups, cx)
    }

    /// Reads the outputs of [`USERS`] and [`GROUPS`], for a tool that runs them together with other commands.
    pub(crate) fn of(users: Result<Output>, groups: Result<Output>, cx: &Context) -> Result<Self> {
        let mut files = cx.read_all(&FILES).into_iter();
        let mut next = || files.next().unwrap_or(Ok(String::new()));
        let (passwd, group) = (next()?, next()?);
        let (login_defs, nsswitch) = (next().unwrap_or_default(), next().unwrap_or_default());
        let users = users?.success("getent passwd")?;
        let groups = groups?.success("getent group")?;
        let names = |text: &str| {
            text.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.to_owned()).collect()
        };
        Ok(Self {
            users: users.text().lines().filter_map(User::parse).collect(),
            groups: groups.text().lines().filter_map(Group::parse).collect(),
            local_users: names(&passwd),
            local_groups: names(&group),
            ranges: Ranges::read(&login_defs),
            directories: directories(&nsswitch),
        })
    }

    /// Adds this account if the name service doesn't list it.
    pub(crate) fn with(mut self, name: &str, cx: &Context) -> Result<(Self, User)> {
        accounts::check_user(name)?;
        if let Some(user) = self.user(name).cloned() {
            return Ok((self, user));
        }
        let user = accounts::find(name, cx)?;
        self.users.push(user.clone());
        Ok((self, user))
    }

    /// Adds these groups if the name service doesn't list them.
    pub(crate) fn with_groups<'a>(
        mut self,
        names: impl IntoIterator<Item = &'a String>,
        cx: &Context,
    ) -> Result<Self> {
        for name in names {
            accounts::check_group(name)?;
            if self.group(name).is_some() || self.directories.is_empty() {
                continue;
            }
            let output = cx.run(GROUP.with([name]))?;
            if output.exit_code != GETENT_NOT_FOUND {
                let text = output.success("getent group")?.text().into_owned();
                self.groups.extend(text.lines().next().and_then(Group::parse));
            }
        }
        Ok(self)
    }

    /// Adds the account in use with its current groups, if a directory service doesn't list them.
    pub(crate) fn with_caller(mut self, caller: &str, cx: &Context) -> Result<Self> {
        if self.directories.is_empty() && self.user(caller).is_some() {
            return Ok(self);
        }
        let [uid, groups] = cx.run_each([CALLER_UID.command(), CALLER_GROUPS.command()]);
        let (uid, groups) = (uid?.success("id")?, groups?.success("id")?);
        if self.user(caller).is_none() {
            let said = uid.text();
            let uid = said.trim().parse().map_err(|_| Problem::unexpected("id", &said))?;
            self.users.push(User {
                name: caller.to_owned(),
                uid,
                gid: UNKNOWN,
                comment: String::new(),
                home: String::new(),
                shell: String::new(),
            });
        }
        for name in groups.text().split_whitespace() {
            let known = self.groups.iter().position(|group| group.name == name).unwrap_or(self.groups.len());
            if known == self.groups.len() {
                self.groups.push(Group { name: name.to_owned(), gid: UNKNOWN, members: Vec::new() });
            }
            let members = &mut self.groups[known].members;
            if !members.iter().any(|member| member == caller) {
                members.push(caller.to_owned());
            }
        }
        Ok(self)
    }

    pub(crate) fn user(&self, name: &str) -> Option<&User> {
        self.users.iter().find(|user| user.name == name)
    }

    pub(crate) fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// The group of this name, or a problem where there is none.
    pub(crate) fn known_group(&self, name: &str) -> Result<&Group> {
        accounts::check_group(name)?;
        self.group(name).ok_or_else(|| {
            Problem::not_found("GROUP_NOT_FOUND", format!("there is no group {name}"))
                .remedy(format!("group_create name={name}, or look at group_list"))
        })
    }

    /// The name of a group, or its number where it has no name.
    pub(crate) fn group_name(&self, gid: u32) -> String {
        let known = self.groups.iter().find(|group| group.gid == gid);
        known.map_or_else(|| gid.to_string(), |group| group.name.clone())
    }

    /// The groups of an account besides the primary one.
    pub(crate) fn secondary(&self, user: &User) -> Vec<&str> {
        let is_member = |group: &&Group| group.gid != user.gid && group.members.contains(&user.name);
        self.groups.iter().filter(is_member).map(|group| group.name.as_str()).collect()
    }

    /// The accounts whose primary group this is.
    pub(crate) fn primary_of(&self, gid: u32) -> Vec<&str> {
        self.users.iter().filter(|user| user.gid == gid).map(|user| user.name.as_str()).collect()
    }

    pub(crate) fn is_local_user(&self, name: &str) -> bool {
        self.local_users.contains(name)
    }

    pub(crate) fn is_local_group(&self, name: &str) -> bool {
        self.local_groups.contains(name)
    }

    /// Refuses an account that isn't in /etc/passwd, because usermod changes that file only.
    pub(crate) fn must_be_local(&self, user: &User) -> Result<()> {
        if self.is_local_user(&user.name) {
            return Ok(());
        }
        let name = &user.name;
        let message = format!(
            "{name} isn't in /etc/passwd but comes from {}: the programs of this machine can't change it",
            self.origin()
        );
        Err(Problem::new("NOT_LOCAL", Category::State, message)
            .remedy(format!("Change {name} in the directory")))
    }

    pub(crate) fn must_be_local_group(&self, group: &Group) -> Result<()> {
        if self.is_local_group(&group.name) {
            return Ok(());
        }
        let message = format!(
            "the group {} isn't in /etc/group but comes from {}: the programs of this machine can't change it",
            group.name,
            self.origin()
        );
        Err(Problem::new("NOT_LOCAL", Category::State, message).remedy("Change it in the directory"))
    }

    fn origin(&self) -> String {
        match self.directories.as_slice() {
            [] => "a directory".to_owned(),
            names => format!("a directory ({})", names.join(", ")),
        }
    }
}

/// The sources of accounts in nsswitch.conf(5) that aren't on this machine.
fn directories(nsswitch: &str) -> Vec<String> {
    let line =
        nsswitch.lines().find_map(|line| line.trim_start().strip_prefix("passwd:")).unwrap_or_default();
    let line = line.split('#').next().unwrap_or_default();
    let is_own = |word: &&str| {
        !matches!(*word, "files" | "compat" | "systemd" | "altfiles" | "db") && !word.starts_with('[')
    };
    line.split_whitespace().filter(is_own).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_from_the_system_by_login_defs() {
        let usual = Ranges::read("");
        let own = Ranges::read("# UID_MIN 5\nUID_MIN\t\t  500\nGID_MIN 400\nUID_MAX many\n");
        assert_eq!((own.uid_min, own.uid_max, own.gid_min), (500, 60_000, 400));
        for (ranges, uid, is_system) in [
            (usual, 0, true),
            (usual, 999, true),
            (usual, 1000, false),
            (usual, 65_534, true),
            (usual, 1_800_000_001, false),
            (own, 500, false),
        ] {
            assert_eq!(ranges.is_system_uid(uid), is_system, "{uid}");
        }
    }

    #[test]
    fn directories_are_the_sources_that_are_none_of_the_machines_own() {
        for (text, expected) in [
            ("passwd:         files systemd\ngroup: files sss\n", &[][..]),
            ("# passwd: ldap\npasswd: sss files systemd # winbind\n", &["sss"]),
            ("passwd: files [NOTFOUND=continue] ldap winbind", &["ldap", "winbind"]),
            ("", &[]),
        ] {
            assert_eq!(directories(text), expected, "{text}");
        }
    }
}
