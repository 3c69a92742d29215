//! Says whether accounts other than root could put something else at a path.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

/// The number of links that the kernel follows.
const MOST_LINKS: usize = 40;

/// Returns who besides root could do so, or none. A path that doesn't exist yet is judged by the directory that it
/// will be in.
pub fn who_else(path: &Path) -> io::Result<Option<String>> {
    who_else_below(Path::new("/"), path, 0)
}

/// Returns the same for a directory and everything in it. The directory must exist.
pub fn who_else_in(directory: &Path) -> io::Result<Option<String>> {
    for entry in fs::read_dir(directory)? {
        if let Some(found) = who_else(&entry?.path())? {
            return Ok(Some(found));
        }
    }
    who_else(directory)
}

/// Returns the same for everything above a path, whoever owns the path itself.
pub fn who_else_in_parents(path: &Path) -> io::Result<Option<String>> {
    who_else(path.parent().unwrap_or(path))
}

/// Walks the path as the kernel does, link by link. Each directory and each link on it must belong to `owner`, and
/// nobody else may be able to write to it. All paths begin at `root`.
fn who_else_below(root: &Path, path: &Path, owner: u32) -> io::Result<Option<String>> {
    let mut at = root.to_owned();
    let mut ahead = steps(path);
    let mut links = 0;
    if let Some(found) = whose(&at, &fs::symlink_metadata(&at)?, owner) {
        return Ok(Some(found));
    }
    while let Some(name) = ahead.pop() {
        if name == ".." {
            if at != root {
                at.pop();
            }
            continue;
        }
        let next = at.join(name);
        let metadata = match fs::symlink_metadata(&next) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if let Some(found) = whose(&next, &metadata, owner) {
            return Ok(Some(found));
        }
        if !metadata.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(io::Error::other("too many symlinks"));
        }
        let leads_to = fs::read_link(&next)?;
        if leads_to.is_absolute() {
            at = root.to_owned();
        }
        ahead.extend(steps(&leads_to));
    }
    Ok(None)
}

/// Returns the names of a path, the last one first.
fn steps(path: &Path) -> Vec<OsString> {
    let step = |component: Component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().rev().filter_map(step).collect()
}

fn whose(path: &Path, metadata: &fs::Metadata, owner: u32) -> Option<String> {
    let (path, uid, mode) = (path.display(), metadata.uid(), metadata.mode());
    if uid != owner {
        return Some(format!("{path} belongs to {}", name_of(uid)));
    }
    // A link's own mode says nothing. A group's bits stand for all that an access control list allows, acl(5).
    match (metadata.is_symlink(), mode & 0o002, mode & 0o020) {
        (true, _, _) | (_, 0, 0) => None,
        (_, 0, _) => Some(format!("a group may write to {path} (mode {:04o})", mode & 0o7777)),
        _ => Some(format!("everybody may write to {path} (mode {:04o})", mode & 0o7777)),
    }
}

/// Returns an account's name, or its number where it has none.
pub fn name_of(uid: u32) -> String {
    let entries = host_base::passwd::read().unwrap_or_default();
    let entry = entries.into_iter().find(|entry| entry.uid == uid);
    entry.map_or_else(|| format!("the account {uid}"), |entry| entry.name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            tree.chmod("", 0o755);
            for directory in ["usr", "usr/bin", "opt", "opt/real"] {
                fs::create_dir(tree.path(directory)).unwrap();
                tree.chmod(directory, 0o755);
            }
            fs::write(tree.path("usr/bin/tool"), "").unwrap();
            tree.chmod("usr/bin/tool", 0o755);
            tree
        }

        fn path(&self, below: &str) -> PathBuf {
            self.0.path().join(below)
        }

        fn chmod(&self, below: &str, mode: u32) {
            fs::set_permissions(self.path(below), fs::Permissions::from_mode(mode)).unwrap();
        }

        fn who_else(&self, path: &str) -> Option<String> {
            let owner = fs::metadata(self.0.path()).unwrap().uid();
            who_else_below(self.0.path(), Path::new(path), owner).unwrap()
        }
    }

    #[test]
    fn every_directory_on_the_way_counts() {
        for (path, mode, found) in [
            ("", 0o755, None),
            ("usr/bin/tool", 0o775, Some("a group may write to ")),
            ("usr/bin/tool", 0o757, Some("everybody may write to ")),
            ("usr/bin", 0o775, Some("a group may write to ")),
            ("usr", 0o1777, Some("everybody may write to ")),
            ("", 0o777, Some("everybody may write to ")),
            // This directory isn't on the path.
            ("opt", 0o777, None),
        ] {
            let tree = Tree::new();
            tree.chmod(path, mode);
            let said = tree.who_else("/usr/bin/tool");
            match found {
                None => assert_eq!(said, None, "{path}"),
                Some(found) => {
                    let said = said.unwrap();
                    assert!(
                        said.starts_with(found)
                            && said.contains(tree.path(path).to_string_lossy().trim_end_matches('/')),
                        "{said}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_link_is_followed_and_so_is_the_one_behind_it() {
        let tree = Tree::new();
        symlink("/opt/next", tree.path("usr/bin/link")).unwrap();
        symlink("../opt/real/../real/tool", tree.path("opt/next")).unwrap();
        fs::write(tree.path("opt/real/tool"), "").unwrap();
        assert_eq!(tree.who_else("/usr/bin/link"), None);
        for behind in ["opt/real", "opt"] {
            tree.chmod(behind, 0o777);
            assert!(tree.who_else("/usr/bin/link").is_some(), "{behind}");
            tree.chmod(behind, 0o755);
        }
    }

    #[test]
    fn a_link_that_leads_to_itself_is_an_error_and_not_an_endless_way() {
        let tree = Tree::new();
        symlink("/usr/bin/link", tree.path("usr/bin/link")).unwrap();
        let owner = fs::metadata(tree.0.path()).unwrap().uid();
        assert!(who_else_below(tree.0.path(), Path::new("/usr/bin/link"), owner).is_err());
    }

    #[test]
    fn another_accounts_file_is_another_accounts() {
        let tree = Tree::new();
        let owner = fs::metadata(tree.0.path()).unwrap().uid();
        let said = who_else_below(tree.0.path(), Path::new("/usr/bin/tool"), owner + 1).unwrap().unwrap();
        assert!(said.contains("belongs to"), "{said}");
    }

    #[test]
    fn what_is_not_there_yet_is_judged_by_what_it_is_to_be_in() {
        let tree = Tree::new();
        assert_eq!(tree.who_else("/usr/lib/new/file"), None);
        tree.chmod("usr", 0o777);
        assert!(tree.who_else("/usr/lib/new/file").is_some());
    }
}
