//! The compile cache of a test's home.
//!
//! A program that forgets a component removes it from its cache. Where two homes had the same cache, one test could remove
//! what another one had just added. So each home has a cache of its own, which begins with all that earlier homes have
//! compiled, and hands on what it adds.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{binary, modules};

/// The directory below which the tests keep what the program compiles.
fn test_home() -> PathBuf {
    binary().canonicalize().expect("the program").with_file_name("test-home")
}

/// The cache that homes begin with. Each home would compile the same modules anew without it.
pub(crate) fn shared_cache() -> PathBuf {
    test_home().join(".cache")
}

/// The program's directory in a cache. Only its account may look into it, or the program doesn't use it.
fn entries(cache: &Path) -> io::Result<PathBuf> {
    let directory = cache.join("linux-sysadmin");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    Ok(directory)
}

/// The names of the complete entries. Incomplete ones have hidden names.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let all = fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    all.filter(|name| !matches!(name, Ok(name) if name.starts_with('.'))).collect()
}

/// The names of all in the shared cache that is of components which are there, each below the directory before it. Others are
/// left from components that were built before.
pub(crate) fn of_components() -> io::Result<Vec<String>> {
    let folders = fs::read_dir(binary().with_file_name("test-modules"))?;
    let folders = folders.map(|folder| Ok(folder?.path())).chain([Ok(modules())]);
    let sums =
        folders.map(|folder: io::Result<PathBuf>| match fs::read_to_string(folder?.join("SHA256SUMS")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read,
        });
    let sums = sums.collect::<io::Result<String>>()?;
    let there: HashSet<&str> = sums.lines().filter_map(|line| line.split(' ').next()).collect();
    let shared = entries(&shared_cache())?;
    let directory = shared.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let of_one = |name: &String| name.split('-').next().is_some_and(|sum| there.contains(sum));
    let kept = names(&shared)?.into_iter().filter(of_one).map(|name| format!("{directory}/{name}"));
    Ok([directory.clone()].into_iter().chain(kept).collect())
}

/// A cache that no other home uses.
pub(crate) struct HomeCache(TempDir);

impl HomeCache {
    /// A cache with all that is in the shared one.
    pub(crate) fn new() -> io::Result<Self> {
        let shared = entries(&shared_cache())?;
        // Both are on the same file system, so that an entry can have a name in each.
        let caches = test_home().join(".caches");
        fs::create_dir_all(&caches)?;
        let cache = Self(TempDir::new_in(caches)?);
        let own = entries(cache.path())?;
        for name in names(&shared)? {
            match fs::hard_link(shared.join(&name), own.join(&name)) {
                // A home that uses the shared cache itself has removed it just now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                linked => linked?,
            }
        }
        Ok(cache)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    fn hand_on(&self) -> io::Result<()> {
        let (own, shared) = (entries(self.path())?, entries(&shared_cache())?);
        names(&own)?.iter().try_for_each(|name| fs::rename(own.join(name), shared.join(name)))
    }
}

impl Drop for HomeCache {
    fn drop(&mut self) {
        // What isn't handed on is only compiled once more.
        let _ = self.hand_on();
    }
}
