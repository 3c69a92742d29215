//! Finds out whose home directory a path is in.

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

/// The device and the inode of a file.
type FileId = (u64, u64);
/// The ends of stat's messages about a path where nothing is.
const ABSENT: [&str; 2] = [": No such file or directory", ": Not a directory"];
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
        // A directory that is closed to the caller counts by its path alone, so that a file in the home of an ordinary account
        // is told from others.
        let mut way_ids = self.file_ids(&way).await.ok_or(())?.0;
        if let Some(found) = found {
            way_ids.push(((found.metadata.device, found.metadata.inode), PathBuf::from(path)));
        }
        for directory in &way {
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
                    is_itself: directory == Path::new(path),
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

    /// The account that has its home below a directory, at any depth, if there is one. An error where the target doesn't say.
    pub async fn home_below(&mut self, path: &str, id: FileId) -> Result<Option<String>, ()> {
        let accounts = self.passwd().await.ok_or(())?;
        let above = |entry: &passwd::Entry| -> Vec<PathBuf> {
            let above = entry.home.ancestors().skip(1).filter(|path| path.parent().is_some());
            above.map(Path::to_owned).collect()
        };
        let mut all: Vec<PathBuf> = accounts.iter().flat_map(above).collect();
        all.sort();
        all.dedup();
        let ids = self.file_ids(&all).await.filter(|(_, is_complete)| *is_complete).ok_or(())?.0;
        let is_it = |way: &PathBuf| {
            way == Path::new(path) || ids.iter().any(|(known, known_as)| *known == id && known_as == way)
        };
        Ok(accounts.iter().find(|entry| above(entry).iter().any(is_it)).map(|entry| entry.name.clone()))
    }

    /// The home directories that exist, with what they are. None where that is unknown of one of them.
    async fn homes(&mut self, accounts: &[passwd::Entry]) -> Option<Arc<FileIds>> {
        if self.homes.is_none() {
            let homes = accounts.iter().map(|entry| entry.home.clone());
            let mut homes: Vec<PathBuf> =
                homes.filter(|home| home.is_absolute() && home.parent().is_some()).collect();
            homes.sort();
            homes.dedup();
            let found = self.file_ids(&homes).await.filter(|(_, is_complete)| *is_complete);
            self.homes = Some(found.map(|(homes, _)| Arc::new(homes)));
        }
        self.homes.clone()?
    }

    /// The devices and inodes of those of these paths that are there, with links followed, and whether the caller could look
    /// at each path. None where the target doesn't answer.
    async fn file_ids(&self, paths: &[PathBuf]) -> Option<(FileIds, bool)> {
        let names: Vec<String> = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let asked = names.chunks(AT_ONCE).map(|names| {
            let options = ["-L", "-c", "%d:%i:%n", "--"];
            let args: Vec<&str> = options.into_iter().chain(names.iter().map(String::as_str)).collect();
            command("stat", &args, Privilege::Caller)
        });
        let (mut found, mut absent) = (Vec::new(), 0);
        for answer in self.target.run_all(&asked.collect::<Vec<_>>()).await {
            let output = answer.ok().filter(|output| !output.truncated)?;
            let is_absent = |line: &&str| ABSENT.iter().any(|why| line.ends_with(why));
            absent += String::from_utf8_lossy(&output.stderr).lines().filter(is_absent).count();
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            found.extend(printed.lines().filter_map(|line| {
                let mut fields = line.splitn(3, ':');
                let id = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
                Some((id, PathBuf::from(fields.next()?)))
            }));
        }
        let is_complete = found.len() + absent == names.len();
        Some((found, is_complete))
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
            let found = check.home_below(&at(path), (seen.dev(), seen.ino())).await.unwrap();
            assert_eq!(found.as_deref(), below, "{path}");
        }
        // The target knows none of these accounts, so each counts as root.
        assert!(check.home_power(&at("real/below"), None).await.is_some());
        assert!(check.home_power(&at("elsewhere"), None).await.is_none());
        // A home that can't be looked at may be anywhere.
        let closed = TestConnection::new(|_| Fate::Says(1, "1:2:/home/web/boss\n".to_owned()));
        let closed = Target::over_test_connection(&closed);
        let mut check_closed = PrivilegeCheck::new(&closed, &facts);
        check_closed.passwd = Some(Some(Arc::new(passwd::parse(&table))));
        assert!(check_closed.home(&at("elsewhere"), None).await.is_err());
        assert!(check_closed.home_below(&at("elsewhere"), (0, 0)).await.is_err());
        // Without a table, nobody knows whose home it is.
        check.passwd = Some(None);
        assert!(check.home_power(&at("elsewhere"), None).await.is_some());
        assert!(check.home("/srv/web", None).await.is_err());
    }
}
