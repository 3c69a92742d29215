//! Homes, and the files in them that decide who logs in. Only their owners and modes are looked at.

use linux_sysadmin_sdk::accounts::User;
use linux_sysadmin_sdk::{Privilege, prelude::*, text};
use serde_json::json;

use super::Rules;
use crate::finding::{Finding, Found};

/// Prints the homes themselves. The hole takes paths as texts, because root is refused paths in directories of
/// accounts.
const HOMES: CommandLine = CommandLine::new("find <text>... -maxdepth 0 -printf '%y %m %U %s %p\\n'");

/// Prints the files in homes that let somebody log in, and the directory that some of them are in.
const DOORS: CommandLine = CommandLine::new(
    "find <text>... -mindepth 1 -maxdepth 2 '(' -path '*/.ssh' -o -path '*/.ssh/authorized_keys*' -o -name .rhosts -o -name .shosts ')' -printf '%y %m %U %s %p\\n'",
);

/// The most homes that one command names.
const AT_ONCE: usize = 200;

pub(super) fn grants() -> [CommandGrant; 2] {
    [
        HOMES.read("whose the homes are, and who may write to them").as_root_if_available(),
        DOORS.read("whose the files of keys are, and who may write to them").as_root_if_available(),
    ]
}

/// A path with its owner and mode.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    kind: char,
    mode: u32,
    uid: u32,
    size: u64,
    path: String,
}

impl Place {
    fn parse(line: &str) -> Option<Self> {
        let [kind, mode, uid, size, path] = line.splitn(5, ' ').collect::<Vec<_>>()[..] else { return None };
        Some(Self {
            kind: kind.chars().next()?,
            mode: u32::from_str_radix(mode, 8).ok()?,
            uid: uid.parse().ok()?,
            size: size.parse().ok()?,
            path: path.to_owned(),
        })
    }
}

/// The homes of root, of people, and of accounts of the system that have a login shell.
pub(super) struct Homes {
    homes: Vec<Place>,
    doors: Vec<Place>,
    pub(super) unseen: Vec<String>,
}

impl Homes {
    pub(super) fn look(users: &[User], rules: &Rules, cx: &Context) -> Self {
        let is_own = |user: &&User| user.uid == 0 || rules.is_person(user) || user.has_login_shell();
        // The home of some accounts of the system is a directory of everybody's.
        let is_home = |home: &str| home.matches('/').count() >= 2 || home == "/root";
        let mut paths: Vec<&str> = users
            .iter()
            .filter(is_own)
            .map(|user| user.home.as_str())
            .filter(|home| home.starts_with('/') && is_home(home) && !text::has_hidden(home))
            .collect();
        paths.sort_unstable();
        paths.dedup();
        let mut found = Self { homes: Vec::new(), doors: Vec::new(), unseen: Vec::new() };
        for paths in paths.chunks(AT_ONCE) {
            found.add(paths, cx);
        }
        found
    }

    fn add(&mut self, paths: &[&str], cx: &Context) {
        let command =
            |line: CommandLine| line.with(paths.iter().copied()).privilege(Privilege::RootIfAvailable);
        match cx.run_each([command(HOMES), command(DOORS)]) {
            [Ok(homes), Ok(doors)] => {
                self.homes.extend(homes.text().lines().filter_map(Place::parse));
                self.doors.extend(doors.text().lines().filter_map(Place::parse));
                let denied =
                    |text: &str| text.lines().filter(|line| line.contains("Permission denied")).count();
                let denied = denied(&homes.error_text()) + denied(&doors.error_text());
                if denied > 0 {
                    self.unseen.push(format!("{denied} directories of homes: that takes root's rights"));
                }
            }
            [Err(problem), _] | [_, Err(problem)] => match paths {
                [path] => self.unseen.push(format!("the home {path}: {}", text::of_line(&problem.message))),
                // One home that can't be looked at keeps the others from being looked at.
                _ => paths.chunks(1).for_each(|path| self.add(path, cx)),
            },
        }
    }

    /// True if a key may open the account.
    pub(super) fn has_keys(&self, user: &User) -> bool {
        let file = format!("{}/.ssh/authorized_keys", user.home.trim_end_matches('/'));
        let is_keys = |door: &&Place| [file.as_str(), &format!("{file}2")].contains(&door.path.as_str());
        self.doors.iter().find(is_keys).is_some_and(|door| door.size > 0)
    }

    /// Adds what is weak in the homes.
    pub(super) fn judge(&self, users: &[User], rules: &Rules, found: &mut Found) {
        for home in &self.homes {
            let own = users.iter().filter(|user| user.home == home.path);
            let own: Vec<&User> = own.collect();
            let Some(user) = own.iter().find(|user| user.uid == home.uid).or(own.first()) else { continue };
            if home.kind == 'd' {
                // Packages give their homes other modes.
                of_home(home, user, rules.home_mode.filter(|_| rules.is_person(user)), found);
            }
            let below = format!("{}/", home.path.trim_end_matches('/'));
            for door in self.doors.iter().filter(|door| door.path.starts_with(&below)) {
                of_door(door, user, found);
            }
        }
    }
}

fn of_home(home: &Place, user: &User, mode: Option<u32>, found: &mut Found) {
    if home.uid != user.uid && home.uid != 0 {
        let evidence = format!("is the home of {}, and belongs to uid {}", user.name, home.uid);
        found.push(
            Finding::new(Severity::High, "home-owner", &home.path, evidence)
                .mend("perms_set", json!({"path": home.path, "owner": user.name})),
        );
    }
    // The sticky bit doesn't help: whoever may write here may add files that are missing, such as .ssh.
    if home.mode & 0o022 != 0 {
        let evidence = format!("mode {:04o}: others may write to the home of {}", home.mode, user.name);
        found.push(
            Finding::new(Severity::High, "home-writable", &home.path, evidence)
                .mend("perms_set", json!({"path": home.path, "mode": "go-w"})),
        );
    } else if let Some(rule) = mode.filter(|rule| home.mode & 0o077 & !rule != 0) {
        let evidence = format!("mode {:04o}, against HOME_MODE {rule:04o} in login.defs", home.mode);
        found.push(
            Finding::new(Severity::Warning, "home-open", &home.path, evidence)
                .mend("perms_set", json!({"path": home.path, "mode": format!("{:04o}", home.mode & rule)})),
        );
    }
}

fn of_door(door: &Place, user: &User, found: &mut Found) {
    let name = door.path.rsplit('/').next().unwrap_or_default();
    if [".rhosts", ".shosts"].contains(&name) {
        let evidence = format!("hosts that it names log in as {} without a password", user.name);
        found.push(
            Finding::new(Severity::High, "home-rhosts", &door.path, evidence)
                .mend("file_remove", json!({"path": door.path})),
        );
    } else if door.uid != user.uid && door.uid != 0 {
        let evidence = format!("lets somebody log in as {}, and belongs to uid {}", user.name, door.uid);
        found.push(
            Finding::new(Severity::High, "keys-owner", &door.path, evidence)
                .mend("perms_set", json!({"path": door.path, "owner": user.name})),
        );
    } else if door.kind != 'l' && door.mode & 0o022 != 0 {
        let evidence = format!("mode {:04o}: others may let themselves log in as {}", door.mode, user.name);
        found.push(
            Finding::new(Severity::High, "keys-writable", &door.path, evidence)
                .mend("perms_set", json!({"path": door.path, "mode": "go-w"})),
        );
    }
}
