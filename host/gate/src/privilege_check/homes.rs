//! Finds out whose home directory a path is in, and who needs a path to log in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host_base::{Privilege, passwd};
use host_policy::text::{home_owner_of_file, home_owner_of_path};
use host_target::Found;

use super::{AT_ONCE, PrivilegeCheck, command, is_peoples};

/// The home directory that a path is, or is in.
#[derive(Debug)]
pub struct Home {
    /// The accounts that have it as their home.
    pub owners: Vec<String>,
    /// Whether the path is the home directory itself.
    pub is_itself: bool,
    /// Whether one of the owners may be a person, who logs in there.
    pub is_peoples: bool,
}

/// A path that an account needs to log in.
#[derive(Debug, PartialEq)]
pub struct LoginPath {
    pub account: String,
    /// `home`, `shell` or `keys`.
    pub what: &'static str,
}

/// The keys of an account in its home, see `AuthorizedKeysFile` in sshd_config(5).
const KEYS: &str = ".ssh/authorized_keys";

/// The device and the inode of a file.
type FileId = (u64, u64);
/// Paths with the files to which they lead.
pub(super) type FileIds = Vec<(FileId, PathBuf)>;

impl PrivilegeCheck<'_> {
    /// The home directory that a path is or lies in, by the target's accounts. Homes are told apart by device and inode, so
    /// a link or a mount in another place hides none. Where no account has a home there, the name in `/home/NAME` counts.
    /// An error where the target doesn't list its accounts.
    pub async fn home(&mut self, path: &str, found: Option<&Found>) -> Result<Option<Home>, ()> {
        let accounts = self.passwd().await.ok_or(())?;
        let homes = self.homes(&accounts).await.ok_or(())?;
        let way: Vec<PathBuf> = Path::new(path).ancestors().map(Path::to_owned).collect();
        let mut way_ids = self.file_ids(&way).await.ok_or(())?;
        // What is closed to the caller counts by its path, and by the paths that it has by mounts.
        let others = self.other_names(path).await.ok_or(())?;
        if let Some(found) = found {
            way_ids.push(((found.metadata.device, found.metadata.inode), PathBuf::from(path)));
        }
        let above: Vec<PathBuf> =
            others.iter().flat_map(|name| Path::new(name).ancestors()).map(Path::to_owned).collect();
        for directory in way.iter().chain(&above) {
            // Nobody's home is the root directory.
            if directory.parent().is_none() {
                break;
            }
            let ids: Vec<FileId> =
                way_ids.iter().filter(|(_, at)| at == directory).map(|(id, _)| *id).collect();
            let is_here = |entry: &&passwd::Entry| {
                entry.home == *directory
                    || homes.iter().any(|(id, home)| ids.contains(id) && *home == entry.home)
            };
            let owners: Vec<&passwd::Entry> = accounts.iter().filter(is_here).collect();
            if !owners.is_empty() {
                return Ok(Some(Home {
                    is_itself: others
                        .iter()
                        .map(String::as_str)
                        .chain([path])
                        .any(|name| directory == Path::new(name)),
                    is_peoples: owners.iter().any(|owner| is_peoples(owner.uid)),
                    owners: owners.into_iter().map(|owner| owner.name.clone()).collect(),
                }));
            }
        }
        Ok(home_owner_of_path(path).map(|owner| Home {
            owners: vec![owner],
            is_itself: home_owner_of_file(path).is_none(),
            is_peoples: true,
        }))
    }

    /// The reason why a path may be in the home of an account that is as good as root, wherever that home lies.
    pub async fn home_power(&mut self, path: &str, found: Option<&Found>) -> Option<String> {
        let Ok(home) = self.home(path, found).await else {
            return Some("and the target doesn't say whose home that is in".to_owned());
        };
        for owner in home.map(|home| home.owners).unwrap_or_default() {
            if let Some(why) = self.root_equivalence(&owner).await {
                return Some(format!("in the home of an account that is as good as root: {why}"));
            }
        }
        None
    }

    /// The first path at or below this one that a login needs, if there is one: an account's home below it, at any depth, an account's shell,
    /// or an account's keys where links lead to them. An error where the target doesn't say.
    pub async fn login_below(&mut self, path: &str, id: FileId) -> Result<Option<LoginPath>, ()> {
        let accounts = self.passwd().await.ok_or(())?;
        let keys: Vec<PathBuf> = accounts.iter().map(|entry| entry.home.join(KEYS)).collect();
        let places: Vec<&Path> = accounts
            .iter()
            .zip(&keys)
            .flat_map(|(entry, keys)| [&*entry.home, &*entry.shell, &**keys])
            .filter(|place| !place.as_os_str().is_empty())
            .collect();
        let real = self.real_paths(&places).await.ok_or(())?;
        let real = |place: &Path| real.get(place).cloned().unwrap_or_default();
        let mut ways: Vec<(LoginPath, Vec<PathBuf>)> = Vec::new();
        for (entry, keys) in accounts.iter().zip(&keys) {
            let home = real(&entry.home);
            // A home itself is judged by more than who may enter it.
            let homes = [&entry.home, &home].into_iter().flat_map(|home| home.ancestors().skip(1));
            let shells = [entry.shell.clone(), real(&entry.shell)];
            let shells = shells.iter().flat_map(|shell| shell.ancestors());
            let own_keys = real(keys);
            // Without links, the keys are where the rules know them.
            let is_led = own_keys != home.join(KEYS);
            let keys = own_keys.ancestors().filter(|place| is_led && !home.starts_with(place));
            let of = |what, way: Vec<&Path>| {
                let login = LoginPath { account: entry.name.clone(), what };
                (
                    login,
                    way.into_iter().filter(|place| place.parent().is_some()).map(Path::to_owned).collect(),
                )
            };
            ways.extend([
                of("home", homes.collect()),
                of("shell", shells.collect()),
                of("keys", keys.collect()),
            ]);
        }
        let mut all: Vec<PathBuf> = ways.iter().flat_map(|(_, way)| way.clone()).collect();
        all.sort();
        all.dedup();
        let ids = self.file_ids(&all).await.ok_or(())?;
        let mut names = self.other_names(path).await.ok_or(())?;
        names.push(path.to_owned());
        let is_it = |way: &PathBuf| {
            names.iter().any(|name| way == Path::new(name))
                || ids.iter().any(|(known, known_as)| *known == id && known_as == way)
        };
        Ok(ways.into_iter().find(|(_, way)| way.iter().any(is_it)).map(|(login, _)| login))
    }

    /// The paths to which these lead by links. None where the target doesn't say.
    async fn real_paths(&self, places: &[&Path]) -> Option<BTreeMap<PathBuf, PathBuf>> {
        let places: Vec<String> = places.iter().map(|place| place.to_string_lossy().into_owned()).collect();
        let places: Vec<String> = BTreeSet::from_iter(places).into_iter().collect();
        let mut real = BTreeMap::new();
        for some in places.chunks(AT_ONCE) {
            let args: Vec<&str> = ["-m", "--"].into_iter().chain(some.iter().map(String::as_str)).collect();
            let answers = self.answers(&[command("realpath", &args, Privilege::Caller)]).await?;
            let lines: Vec<PathBuf> = answers.concat().lines().map(PathBuf::from).collect();
            if lines.len() != some.len() {
                return None;
            }
            real.extend(some.iter().map(PathBuf::from).zip(lines));
        }
        Some(real)
    }

    /// The home directories that the caller can look at, with what they are.
    async fn homes(&mut self, accounts: &[passwd::Entry]) -> Option<Arc<FileIds>> {
        if self.homes.is_none() {
            let homes = accounts.iter().map(|entry| entry.home.clone());
            let mut homes: Vec<PathBuf> =
                homes.filter(|home| home.is_absolute() && home.parent().is_some()).collect();
            homes.sort();
            homes.dedup();
            self.homes = Some(self.file_ids(&homes).await.map(Arc::new));
        }
        self.homes.clone()?
    }

    /// The devices and inodes of these paths, with links followed. Paths that aren't there or that the caller can't look at are
    /// left out. None where the target doesn't answer.
    async fn file_ids(&self, paths: &[PathBuf]) -> Option<FileIds> {
        let names: Vec<String> = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let asked = names.chunks(AT_ONCE).map(|names| {
            let options = ["-L", "-c", "%d:%i:%n", "--"];
            let args: Vec<&str> = options.into_iter().chain(names.iter().map(String::as_str)).collect();
            command("stat", &args, Privilege::Caller)
        });
        let mut found = Vec::new();
        for answer in self.target.run_all(&asked.collect::<Vec<_>>()).await {
            let output = answer.ok().filter(|output| !output.truncated)?;
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            found.extend(printed.lines().filter_map(|line| {
                let mut fields = line.splitn(3, ':');
                let id = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
                Some((id, PathBuf::from(fields.next()?)))
            }));
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use host_target::test_connection::{Fate, TestConnection};
    use host_target::{Facts, Target};

    use super::*;

    #[tokio::test]
    async fn homes_are_told_apart_by_what_they_are_and_the_nearest_one_counts() {
        let place = tempfile::tempdir().unwrap();
        let at = |path: &str| place.path().join(path).to_string_lossy().into_owned();
        for directory in ["real/below", "ada/bob"] {
            std::fs::create_dir_all(at(directory)).unwrap();
        }
        std::os::unix::fs::symlink(at("real"), at("link")).unwrap();
        let table = format!(
            "linked:x:1000:1000::{}:/bin/sh\nada:x:998:998::{}:/bin/sh\nbob:x:1001:1001::{}:/bin/sh\n\
             nobody:x:65534:65534::/:/bin/sh\nweb:x:1002:1002::/srv/web:/bin/sh\n\
             boss:x:1003:1003::/home/web/boss:/bin/sh\n",
            at("link"),
            at("ada"),
            at("ada/bob")
        );
        let (target, facts) = (Target::local(host_target::Overrides::default()), Facts::default());
        let mut check = PrivilegeCheck::new(&target, &facts);
        check.passwd = Some(Some(Arc::new(passwd::parse(&table))));
        for (path, owner, is_itself) in [
            (at("real"), Some("linked"), true),
            (at("real/below"), Some("linked"), false),
            (at("ada/bob/x"), Some("bob"), false),
            (at("ada/x"), Some("ada"), false),
            (at("elsewhere"), None, false),
            ("/home/web/boss".to_owned(), Some("boss"), true),
            ("/home/web/x".to_owned(), Some("web"), false),
            ("/srv/web".to_owned(), Some("web"), true),
        ] {
            let home = check.home(&path, None).await.unwrap();
            let found = home.as_ref().map(|home| (home.owners.join(" "), home.is_itself));
            assert_eq!(found, owner.map(|owner| (owner.to_owned(), is_itself)), "{path}");
        }
        for (path, below) in [("real", None), ("ada", Some("bob")), ("ada/bob", None), ("other", Some("bob"))]
        {
            // Another name of the directory.
            let seen = if path == "other" { "ada" } else { path };
            let seen = std::fs::metadata(at(seen)).unwrap();
            let found = check.login_below(&at(path), (seen.dev(), seen.ino())).await.unwrap();
            assert_eq!(found.map(|login| login.account).as_deref(), below, "{path}");
        }
        // The target knows none of these accounts, so each counts as root.
        assert!(check.home_power(&at("real/below"), None).await.is_some());
        assert!(check.home_power(&at("elsewhere"), None).await.is_none());
        // A home that is reached by a link is below what the link leads to as well.
        std::fs::create_dir_all(at("disk/homes/eve")).unwrap();
        std::os::unix::fs::symlink(at("disk/homes"), at("homes")).unwrap();
        let moved = format!("eve:x:1004:1004::{}:/bin/sh\n", at("homes/eve"));
        let mut check_moved = PrivilegeCheck::new(&target, &facts);
        check_moved.passwd = Some(Some(Arc::new(passwd::parse(&moved))));
        for (path, below) in [("disk", Some("eve")), ("disk/homes", Some("eve")), ("disk/homes/eve", None)] {
            let seen = std::fs::metadata(at(path)).unwrap();
            let found = check_moved.login_below(&at(path), (seen.dev(), seen.ino())).await.unwrap();
            assert_eq!(found.map(|login| login.account).as_deref(), below, "{path}");
        }
        // A login needs its shell, and what the shell's name leads to.
        std::fs::create_dir_all(at("prefix/bin")).unwrap();
        std::fs::write(at("prefix/bin/shell"), "").unwrap();
        std::os::unix::fs::symlink(at("prefix/bin/shell"), at("shell")).unwrap();
        let shells = format!("eve:x:1004:1004::/home/eve:{}\nsync:x:4:4::/bin:\n", at("shell"));
        let mut check_shells = PrivilegeCheck::new(&target, &facts);
        check_shells.passwd = Some(Some(Arc::new(passwd::parse(&shells))));
        for (path, is_needed) in
            [("prefix", true), ("prefix/bin", true), ("prefix/bin/shell", true), ("disk", false)]
        {
            let seen = std::fs::metadata(at(path)).unwrap();
            let found = check_shells.login_below(&at(path), (seen.dev(), seen.ino())).await.unwrap();
            let eve = LoginPath { account: "eve".to_owned(), what: "shell" };
            assert_eq!(found, is_needed.then_some(eve), "{path}");
        }
        // Links may lead from a home to the keys.
        std::fs::create_dir_all(at("kay/dotfiles/ssh")).unwrap();
        std::fs::write(at("kay/dotfiles/ssh/authorized_keys"), "").unwrap();
        std::os::unix::fs::symlink("dotfiles/ssh", at("kay/.ssh")).unwrap();
        let keys = format!("kay:x:1005:1005::{}:/bin/sh\n", at("kay"));
        let mut check_keys = PrivilegeCheck::new(&target, &facts);
        check_keys.passwd = Some(Some(Arc::new(passwd::parse(&keys))));
        for (path, is_needed) in [
            ("kay", false),
            ("kay/dotfiles", true),
            ("kay/dotfiles/ssh", true),
            ("kay/dotfiles/ssh/authorized_keys", true),
            ("ada", false),
        ] {
            let seen = std::fs::metadata(at(path)).unwrap();
            let found = check_keys.login_below(&at(path), (seen.dev(), seen.ino())).await.unwrap();
            let kay = LoginPath { account: "kay".to_owned(), what: "keys" };
            assert_eq!(found, is_needed.then_some(kay), "{path}");
        }
        // A target that doesn't answer says nothing.
        let silent = TestConnection::new(|_| Fate::NeverComes);
        let silent = Target::over_test_connection(&silent);
        let mut check_silent = PrivilegeCheck::new(&silent, &facts);
        check_silent.passwd = Some(Some(Arc::new(passwd::parse(&table))));
        assert!(check_silent.home(&at("elsewhere"), None).await.is_err());
        assert!(check_silent.login_below(&at("elsewhere"), (0, 0)).await.is_err());
        // Without a table, nobody knows whose home it is.
        check.passwd = Some(None);
        assert!(check.home_power(&at("elsewhere"), None).await.is_some());
        assert!(check.home("/srv/web", None).await.is_err());
    }
}
