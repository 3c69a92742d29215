//! Whether an account reaches a path now, by the modes of the path and of the directories above it. Access control lists and
//! the unit's sandbox are left out.

use linux_sysadmin_sdk::{Privilege, prelude::*};

/// Shows what paths are and whose, never what is in them.
pub(crate) const STAT: CommandLine = CommandLine::new("stat '--format=%a|%U|%G|%F|%n' -- <path>...");

/// Shows the groups of an account.
pub(crate) const GROUPS: CommandLine = CommandLine::new("id --groups --name -- <user>");

/// What is known of a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// There is nothing at the path.
    Missing,
    /// The account can't get there. The text names the obstacle.
    Denied(String),
    /// The account can read it, and execute it where it may be executed. The text says who may do what.
    Readable { can_write: bool, can_execute: bool, shown: String },
    /// The path can't be looked at.
    Unknown,
}

/// An account with its groups.
pub(crate) struct Account {
    pub(crate) name: String,
    groups: Vec<String>,
}

impl Account {
    /// The account of a unit. None where there is no such account.
    pub(crate) fn find(name: Option<&str>, cx: &Context) -> Option<Self> {
        let name = name.filter(|name| !name.is_empty()).unwrap_or("root").to_owned();
        if name == "root" {
            return Some(Self { name, groups: Vec::new() });
        }
        let output = cx.run(GROUPS.with([&name])).ok()?;
        let groups = (output.exit_code == 0).then(|| output.text().into_owned())?;
        Some(Self { name, groups: groups.split_whitespace().map(str::to_owned).collect() })
    }

    /// The bits of a mode that count for the account: 4 to read, 2 to write, 1 to execute.
    fn bits(&self, place: &Place) -> u32 {
        if self.name == "root" {
            // Root executes what anybody may execute.
            return 6 | u32::from(place.is_directory || place.mode & 0o111 != 0);
        }
        let shift = if place.owner == self.name {
            6
        } else if self.groups.contains(&place.group) {
            3
        } else {
            0
        };
        (place.mode >> shift) & 7
    }
}

/// A path that exists.
struct Place {
    path: String,
    mode: u32,
    owner: String,
    group: String,
    is_directory: bool,
}

impl Place {
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(5, '|');
        let mode = u32::from_str_radix(parts.next()?, 8).ok()?;
        let [owner, group, kind] = [parts.next()?, parts.next()?, parts.next()?];
        let path = parts.next()?.to_owned();
        Some(Self {
            path,
            mode,
            owner: owner.to_owned(),
            group: group.to_owned(),
            is_directory: kind == "directory",
        })
    }

    fn shown(&self) -> String {
        format!("{} is {}:{} {:04o}", self.path, self.owner, self.group, self.mode)
    }
}

/// The directories above a path, the root first, and the path itself.
fn way(path: &str) -> Vec<String> {
    let mut way: Vec<String> =
        path.match_indices('/').skip(1).map(|(end, _)| path[..end].to_owned()).collect();
    way.push(path.to_owned());
    way
}

/// The access of an account to each path now.
pub(crate) fn check(paths: &[String], account: &Account, cx: &Context) -> Vec<Access> {
    // A command is refused as a whole, so that each path has its own.
    let commands =
        paths.iter().map(|path| STAT.with(way(path)).privilege(Privilege::RootIfAvailable)).collect();
    if paths.is_empty() {
        return Vec::new();
    }
    let outputs = cx.run_all(commands);
    paths
        .iter()
        .zip(outputs)
        .map(|(path, output)| match output {
            Ok(output) => judged(path, &output.text(), &output.error_text(), account),
            Err(_) => Access::Unknown,
        })
        .collect()
}

fn judged(path: &str, stdout: &str, stderr: &str, account: &Account) -> Access {
    let places: Vec<Place> = stdout.lines().filter_map(Place::parse).collect();
    for place in places.iter().filter(|place| place.path != path) {
        if place.is_directory && account.bits(place) & 1 == 0 {
            return Access::Denied(format!("{} may not enter it: {}", account.name, place.shown()));
        }
    }
    let Some(place) = places.iter().find(|place| place.path == path) else {
        return if stderr.contains("No such file") { Access::Missing } else { Access::Unknown };
    };
    let bits = account.bits(place);
    if bits & 4 == 0 {
        return Access::Denied(format!("{} may not read it: {}", account.name, place.shown()));
    }
    Access::Readable { can_write: bits & 2 != 0, can_execute: bits & 1 != 0, shown: place.shown() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of stat of coreutils 9.1.
    const STATS: &str = "755|root|root|directory|/srv\n750|app|app|directory|/srv/app\n\
                         640|root|app|regular file|/srv/app/conf\n";

    fn account(name: &str, groups: &[&str]) -> Account {
        Account { name: name.to_owned(), groups: groups.iter().map(|group| (*group).to_owned()).collect() }
    }

    #[test]
    fn the_way_to_a_path_begins_at_the_root() {
        assert_eq!(way("/srv/app/conf"), ["/srv", "/srv/app", "/srv/app/conf"]);
        assert_eq!(way("/srv"), ["/srv"]);
    }

    #[test]
    fn an_account_reaches_what_the_modes_allow() {
        let of = |account: &Account| judged("/srv/app/conf", STATS, "", account);
        let shown = "/srv/app/conf is root:app 0640".to_owned();
        let readable = |can_write| Access::Readable { can_write, can_execute: false, shown: shown.clone() };
        assert_eq!(of(&account("root", &[])), readable(true));
        assert_eq!(of(&account("app", &["app"])), readable(false));
        let denied = "www may not enter it: /srv/app is app:app 0750".to_owned();
        assert_eq!(of(&account("www", &["www"])), Access::Denied(denied));
        let closed = STATS.replace("640|root|app", "600|root|root");
        let denied = "app may not read it: /srv/app/conf is root:root 0600".to_owned();
        assert_eq!(judged("/srv/app/conf", &closed, "", &account("app", &["app"])), Access::Denied(denied));
    }

    #[test]
    fn what_is_not_there_is_missing_and_what_cannot_be_seen_is_unknown() {
        let app = account("app", &["app"]);
        let (head, _) = STATS.rsplit_once("640").unwrap_or_default();
        let said = "stat: cannot statx '/srv/app/conf': No such file or directory\n";
        assert_eq!(judged("/srv/app/conf", head, said, &app), Access::Missing);
        let said = "stat: cannot statx '/srv/app/conf': Permission denied\n";
        assert_eq!(judged("/srv/app/conf", head, said, &app), Access::Unknown);
        assert_eq!(judged("/srv/app/conf", "", "", &app), Access::Unknown);
    }
}
