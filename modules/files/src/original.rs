//! A file as it is before a change. The host compares its hash with what is there when the plan is made and run.

use linux_sysadmin_sdk::paths::{self, IMMUTABLE, LSATTR};
use linux_sysadmin_sdk::{Category, prelude::*};
use sha2::{Digest, Sha256};

use crate::places::{look, shown};
use crate::private::must_be_open;

/// The size in bytes of the largest file that is changed, as in the host.
pub(crate) const LARGEST: u64 = 8 << 20;
/// The number of bytes that one read returns.
pub(crate) const PIECE: u64 = 1 << 20;

/// The number of paths whose attributes one command prints.
const AT_ONCE: usize = 50;

/// Prints where a symlink leads in the end.
pub(crate) const READLINK: CommandLine =
    CommandLine::new("readlink --canonicalize-missing --no-newline -- <path>");

/// A regular file with its contents.
#[derive(Clone, Debug)]
pub(crate) struct Original {
    pub(crate) metadata: Metadata,
    pub(crate) contents: Vec<u8>,
}

/// The metadata of a path, `None` where nothing is there.
pub(crate) fn metadata(path: &str, cx: &Context) -> Result<Option<Metadata>> {
    look(path, cx, |privilege| cx.files_as(privilege).stat_all(&[path]).remove(0))
}

/// The file at a path, `None` where nothing is there. Directories, symlinks and private files are refused.
pub(crate) fn read(path: &str, cx: &Context) -> Result<Option<Original>> {
    let Some(metadata) = metadata(path, cx)? else {
        // The host notes that nothing was there, and refuses the plan where that has changed.
        let _ = look(path, cx, |privilege| cx.files_as(privilege).read_parts(&[(path, 0, PIECE)]).remove(0));
        return Ok(None);
    };
    must_be_file(path, &metadata, cx)?;
    must_be_open(path, &metadata, cx)?;
    let contents = contents(path, metadata.size, cx)?;
    if contents.len() as u64 != metadata.size {
        let message = format!("{} has changed its size while it was read; nothing was changed", shown(path));
        return Err(Problem::new("FILE_CHANGED", Category::State, message).remedy("Call the tool again"));
    }
    Ok(Some(Original { metadata, contents }))
}

/// The file at a path, which must be there.
pub(crate) fn must_read(path: &str, cx: &Context) -> Result<Original> {
    read(path, cx)?.ok_or_else(|| no_such(path))
}

pub(crate) fn no_such(path: &str) -> Problem {
    Problem::not_found("FILE_NOT_FOUND", format!("there is no {}", shown(path)))
}

/// Refuses what isn't a regular file of at most [`LARGEST`] bytes.
pub(crate) fn must_be_file(path: &str, metadata: &Metadata, cx: &Context) -> Result<()> {
    if metadata.is_dir {
        let message = format!("{} is a directory: expected a file", shown(path));
        return Err(Problem::validation("IS_A_DIRECTORY", message));
    }
    if metadata.is_symlink {
        return Err(is_symlink(path, cx));
    }
    if metadata.size > LARGEST {
        let message =
            format!("{} has {} bytes; a file of at most {LARGEST} is changed", shown(path), metadata.size);
        return Err(Problem::new("FILE_TOO_LARGE", Category::Resource, message));
    }
    Ok(())
}

/// The problem of a symlink, which isn't followed. It names where the symlink leads.
pub(crate) fn is_symlink(path: &str, cx: &Context) -> Problem {
    let message = format!("{} is a symlink, and isn't followed", shown(path));
    let problem = Problem::new("SYMLINK", Category::Denied, message);
    match leads_to(path, cx) {
        Some(target) => problem.remedy(format!("Name what it leads to: {target}")),
        None => problem,
    }
}

/// The path to which a symlink leads in the end.
pub(crate) fn leads_to(path: &str, cx: &Context) -> Option<String> {
    let run = |privilege| cx.run(READLINK.with([path]).privilege(privilege));
    let output = look(path, cx, run).and_then(|output| output.success("readlink")).ok()?;
    Some(output.text().into_owned()).filter(|target| !target.is_empty())
}

/// The contents of a file of this size. Several parts are read at once.
pub(crate) fn contents(path: &str, size: u64, cx: &Context) -> Result<Vec<u8>> {
    // The last part goes beyond the size, so that it shows whether the file grows.
    let parts = (0..=size / PIECE).map(|part| (path, (part * PIECE) as i64, PIECE)).collect::<Vec<_>>();
    look(path, cx, |privilege| {
        let mut contents = Vec::with_capacity(size as usize);
        for part in cx.files_as(privilege).read_parts(&parts) {
            contents.extend_from_slice(&part?);
        }
        Ok(contents)
    })
}

/// The hash as answers have it.
pub(crate) fn sha256(contents: &[u8]) -> String {
    Sha256::digest(contents).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses paths that not even root may change. Some file systems have no attributes.
pub(crate) fn must_be_mutable(paths: &[String], cx: &Context) -> Result<()> {
    for paths in paths.chunks(AT_ONCE) {
        let [first, ..] = paths else { continue };
        let run = |privilege| cx.run(LSATTR.with(paths).privilege(privilege));
        let Ok(output) = look(first, cx, run) else { continue };
        for of in paths::attributes(&output.text()) {
            if let Some((letter, name)) = IMMUTABLE.iter().find(|known| !of.names(&[**known]).is_empty()) {
                let path = shown(&of.path);
                let message = format!("{path} is {name} (lsattr): not even root changes it");
                return Err(Problem::new("IMMUTABLE", Category::State, message)
                    .remedy(format!("Allow changes first: chattr -{letter} {path}")));
            }
        }
    }
    Ok(())
}
