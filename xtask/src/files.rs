//! Puts files in place so that no program ever reads a half-written one. A running binary can be replaced as well.

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Writes a temporary file beside the path and renames it.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>, mode: u32) -> Result<()> {
    in_place(path, mode, |temp| fs::write(temp, bytes.as_ref()))
}

/// Copies a file in the same way.
pub(crate) fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    in_place(to, mode, |temp| fs::copy(from, temp).map(|_| ()))
        .with_context(|| format!("cannot copy {}", from.display()))
}

/// The name of the file that holds what `sha256sum *.wasm` prints. The host loads only components that it names.
pub(crate) const SUMS: &str = "SHA256SUMS";

/// Writes the sums of a folder's *.wasm files beside them.
pub(crate) fn write_sums(dir: &Path) -> Result<()> {
    write_sums_of(dir, &components(dir)?)
}

/// Writes the sums of these files of a folder beside them.
pub(crate) fn write_sums_of(dir: &Path, names: &BTreeSet<String>) -> Result<()> {
    let mut sums = String::new();
    for name in names {
        let path = dir.join(name);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        sums.push_str(&format!("{}  {name}\n", hex::encode(Sha256::digest(bytes))));
    }
    write(&dir.join(SUMS), sums, 0o644)
}

/// The regular files below a folder, by their paths from there, in order.
pub(crate) fn all_below(dir: &Path) -> Result<BTreeSet<PathBuf>> {
    let (mut found, mut open) = (BTreeSet::new(), vec![dir.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            match path.is_dir() {
                true => open.push(path),
                false => found.extend(path.strip_prefix(dir).map(Path::to_owned)),
            }
        }
    }
    Ok(found)
}

/// Copies a folder with everything below it.
pub(crate) fn copy_all(from: &Path, to: &Path) -> Result<()> {
    for file in all_below(from)? {
        let target = to.join(&file);
        make_dir(target.parent().unwrap_or(to))?;
        copy(&from.join(&file), &target, 0o644)?;
    }
    Ok(())
}

/// Removes a folder and everything in it, where it is there.
pub(crate) fn remove_all(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", dir.display()))
        }
        _ => Ok(()),
    }
}

/// Copies `from`'s *.wasm files and their sums into `to` and removes those in `to` that `from` doesn't have.
pub(crate) fn sync_components(from: &Path, to: &Path) -> Result<()> {
    let wanted = components(from)?;
    make_dir(to)?;
    for name in &wanted {
        copy(&from.join(name), &to.join(name), 0o644)?;
    }
    copy(&from.join(SUMS), &to.join(SUMS), 0o644)?;
    remove_components_except(to, &wanted)
}

/// Removes the *.wasm files of a folder that aren't in `keep` (file names).
pub(crate) fn remove_components_except(dir: &Path, keep: &BTreeSet<String>) -> Result<()> {
    for name in components(dir)?.difference(keep) {
        let path = dir.join(name);
        fs::remove_file(&path).with_context(|| format!("cannot remove the stale {}", path.display()))?;
    }
    Ok(())
}

/// Makes a folder and its parents.
pub(crate) fn make_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
}

fn components(dir: &Path) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    Ok(entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".wasm"))
        .collect())
}

fn in_place(path: &Path, mode: u32, fill: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let temp = path.with_file_name(name);
    fill(&temp)
        .and_then(|()| fs::set_permissions(&temp, Permissions::from_mode(mode)))
        .and_then(|()| fs::rename(&temp, path))
        .inspect_err(|_| drop(fs::remove_file(&temp)))
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncing_removes_stale_components_and_nothing_else() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        make_dir(&from)?;
        make_dir(&to)?;
        fs::write(from.join("cron.wasm"), "new")?;
        fs::write(to.join("cron.wasm"), "old")?;
        fs::write(to.join("gone.wasm"), "old")?;
        fs::write(to.join("README"), "kept")?;
        write_sums(&from)?;
        sync_components(&from, &to)?;
        assert_eq!(fs::read_to_string(to.join("cron.wasm"))?, "new");
        let mut left: Vec<_> = fs::read_dir(&to)?.flatten().map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, ["README", "SHA256SUMS", "cron.wasm"]);
        Ok(())
    }

    #[test]
    fn sums_are_those_of_sha256sum() -> Result<()> {
        let dir = tempfile::tempdir()?;
        fs::write(dir.path().join("b.wasm"), "abc")?;
        fs::write(dir.path().join("a.wasm"), "")?;
        fs::write(dir.path().join("README"), "not counted")?;
        write_sums(dir.path())?;
        let expected = "\
            e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a.wasm\n\
            ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b.wasm\n";
        assert_eq!(fs::read_to_string(dir.path().join(SUMS))?, expected);
        Ok(())
    }
}
