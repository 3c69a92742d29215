//! Finds the files of an inventory, as `lib/ansible/inventory/manager.py` and the plugin `host_group_vars` of
//! ansible-core 2.19 do: a file, or all that a directory holds; and `group_vars` and `host_vars` beside it.
//!
//! A program that would print an inventory is never started.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::collected::{Collected, Location};
use super::variables::Value;
use super::{InventoryError, ini, yaml};
use host_base::trusted_file;

/// The most levels of directories that are followed.
const DEEPEST: usize = 16;
/// The most files that are read.
const MOST_FILES: usize = 5_000;

/// Ansible's INVENTORY_IGNORE_EXTS.
const IGNORED: [&str; 12] =
    [".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg", ".retry"];

/// The extensions of files of variables, and of inventories in YAML.
const YAML: [&str; 3] = ["yml", "yaml", "json"];

/// The beginning of a file that ansible-vault encrypted.
const VAULT: &[u8] = b"$ANSIBLE_VAULT";

/// Adds what the file says, or each file of the directory.
pub(super) fn read(path: &Path, collected: &mut Collected) -> Result<(), InventoryError> {
    let unreadable = |source| InventoryError::Unreadable { path: path.to_owned(), source };
    if fs::metadata(path).map_err(unreadable)?.is_dir() {
        let mut left = MOST_FILES;
        return directory(path, DEEPEST, &mut left, collected);
    }
    file(path, collected)
}

fn directory(
    path: &Path,
    depth: usize,
    left: &mut usize,
    collected: &mut Collected,
) -> Result<(), InventoryError> {
    let location = Location { file: path, line: None };
    let Some(depth) = depth.checked_sub(1) else {
        return Err(location.error("expected directories that are not that deep in one another"));
    };
    for name in names(path)? {
        let is_ignored = name.starts_with('.')
            || ["group_vars", "host_vars", "vars_plugins"].contains(&&*name)
            || IGNORED.iter().any(|suffix| name.ends_with(suffix));
        if is_ignored {
            continue;
        }
        *left = left
            .checked_sub(1)
            .ok_or_else(|| location.error(format!("expected at most {MOST_FILES} files")))?;
        let path = path.join(name);
        let found = metadata(&path)?;
        if found.is_dir() {
            directory(&path, depth, left, collected)?;
        } else if is_executable(&found) {
            let path = path.display();
            let warning =
                format!("{path} is left out of the inventory: it is a program, and none is started.");
            collected.warnings.push(warning);
        } else {
            file(&path, collected)?;
        }
    }
    Ok(())
}

/// Returns the names in a directory, sorted.
fn names(path: &Path) -> Result<BTreeSet<String>, InventoryError> {
    let unreadable = |source| InventoryError::Unreadable { path: path.to_owned(), source };
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name().into_string();
        let name =
            name.map_err(|_| Location { file: path, line: None }.error("expected names of files in UTF-8"))?;
        names.insert(name);
    }
    Ok(names)
}

fn metadata(path: &Path) -> Result<Metadata, InventoryError> {
    fs::metadata(path).map_err(|source| InventoryError::Unreadable { path: path.to_owned(), source })
}

fn is_executable(found: &Metadata) -> bool {
    found.permissions().mode() & 0o111 != 0
}

fn file(path: &Path, collected: &mut Collected) -> Result<(), InventoryError> {
    let location = Location { file: path, line: None };
    if is_executable(&metadata(path)?) {
        return Err(InventoryError::Executable { path: path.to_owned() });
    }
    let bytes = bytes(path)?;
    if bytes.starts_with(VAULT) {
        return Err(location.error("it is encrypted by ansible-vault: expected an inventory in clear"));
    }
    match extension(path) {
        Some("toml") => Err(location.error("expected an inventory in INI or YAML, found TOML")),
        Some(extension) if YAML.contains(&extension) => yaml::read(path, &text(path, bytes)?, collected),
        None if is_yaml(&bytes) => yaml::read(path, &text(path, bytes)?, collected),
        _ => ini::read(path, &bytes, collected),
    }
}

/// Reads a file that not everybody can write to. A file that its group may write to is accepted, because the group is
/// trusted with it.
fn bytes(path: &Path) -> Result<Vec<u8>, InventoryError> {
    let read = trusted_file::read_bytes(path, |found| match found.permissions().mode() & 0o002 {
        0 => Ok(()),
        _ => Err(io::Error::other("everybody can write to it")),
    });
    read.map_err(|source| InventoryError::Unreadable { path: path.to_owned(), source })
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, InventoryError> {
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].split(|byte| *byte == b'\n').count();
        Location { file: path, line: Some(line) }.error("expected UTF-8")
    })
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}

/// Says whether a file whose name doesn't tell is YAML, by its first line that isn't a comment. No line of INI has a
/// colon after its first word.
fn is_yaml(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let Some(line) = lines.find(|line| !line.is_empty() && !line.starts_with(b"#")) else { return false };
    let word = line.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    line.starts_with(b"---") || line.starts_with(b"%YAML") || line.starts_with(b"{") || word.ends_with(b":")
}

/// Adds the variables beside an inventory, for all hosts and groups that are known by now.
pub(super) fn read_variables(path: &Path, collected: &mut Collected) -> Result<(), InventoryError> {
    let base = match metadata(path)?.is_dir() {
        true => path.to_owned(),
        false => path.parent().unwrap_or(Path::new("/")).to_owned(),
    };
    let (groups, hosts) = collected.names();
    let (groups, hosts): (Vec<_>, Vec<_>) =
        (groups.map(str::to_owned).collect(), hosts.map(str::to_owned).collect());
    beside(&base.join("group_vars"), &groups, collected, |collected, name, variable, value, location| {
        collected.set_group_vars(name, variable, || value, location);
    })?;
    beside(&base.join("host_vars"), &hosts, collected, |collected, name, variable, value, location| {
        collected.set_host_vars(name, variable, || value, location);
    })
}

fn beside(
    directory: &Path,
    owners: &[String],
    collected: &mut Collected,
    set: impl Fn(&mut Collected, &str, &str, Value, &Location),
) -> Result<(), InventoryError> {
    match fs::metadata(directory) {
        Ok(found) if found.is_dir() => {}
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(InventoryError::Unreadable { path: directory.to_owned(), source: error });
        }
        _ => return Ok(()),
    }
    let present = names(directory)?;
    for owner in owners {
        // Only the first of these that exists counts.
        let names = [owner.clone()].into_iter().chain(YAML.map(|extension| format!("{owner}.{extension}")));
        let Some(name) = names.into_iter().find(|name| present.contains(name)) else { continue };
        let mut files = Vec::new();
        let path = directory.join(name);
        match metadata(&path)?.is_dir() {
            true => files_below(&path, DEEPEST, &mut files)?,
            false => files.push(path),
        }
        for file in files {
            let location = Location { file: &file, line: None };
            let bytes = bytes(&file)?;
            if bytes.starts_with(VAULT) {
                let file = file.display();
                let warning = format!("{file} is encrypted by ansible-vault; what it sets is not followed.");
                collected.warnings.push(warning);
                continue;
            }
            for (variable, value) in yaml::variables(&file, &text(&file, bytes)?)? {
                set(collected, owner, &variable, value, &location);
            }
        }
    }
    Ok(())
}

/// Collects every file of variables in a directory with a host's or a group's name, sorted.
fn files_below(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), InventoryError> {
    let location = Location { file: path, line: None };
    let Some(depth) = depth.checked_sub(1) else {
        return Err(location.error("expected directories that are not that deep in one another"));
    };
    for name in names(path)?.iter().filter(|name| !name.starts_with('.') && !name.ends_with('~')) {
        let path = path.join(name);
        let extension = extension(&path);
        match metadata(&path)?.is_dir() {
            true if extension.is_none() => files_below(&path, depth, files)?,
            false if extension.is_none_or(|extension| YAML.contains(&extension)) => files.push(path),
            _ => {}
        }
        if files.len() > MOST_FILES {
            return Err(location.error(format!("expected at most {MOST_FILES} files")));
        }
    }
    Ok(())
}
