//! Opens files of this machine only where a grant allows it.
//!
//! A path is checked as it was asked for, and again with its symlinks resolved. The resolved path is then opened, and
//! the kernel is told to follow no further link. A link that is swapped in between leads to an error. As root, the
//! host only passes through directories that nobody else can change, see [`super::resolve`].

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::entry::{Entry, Trusted, name_of, not_a_regular_file};
use super::resolve::{LastLink, check_trusted, is_kernels};
use super::{Metadata, PathCheck, ReadRequest};
use host_base::problem::{Category, Problem};

/// The most bytes that one request returns.
pub(super) const MOST_BYTES: u64 = 1 << 20;

/// The most names that one listing holds.
pub(super) const MOST_NAMES: usize = 100_000;

/// Reads a part of a regular file.
pub(super) fn read(request: &ReadRequest, trusted: &Trusted, check: &PathCheck) -> Result<Vec<u8>, Problem> {
    let path = &request.path;
    let mut file = open(path, trusted, check, OFlags::empty())?;
    let metadata = file.metadata().map_err(|error| Problem::io(path, &error))?;
    if !metadata.is_file() {
        return Err(not_a_regular_file(path, FileType::from_raw_mode(metadata.mode())));
    }
    if request.offset != 0 {
        let from = match u64::try_from(request.offset) {
            Ok(offset) => SeekFrom::Start(offset),
            // An offset before the beginning means the beginning.
            Err(_) => SeekFrom::Start(metadata.len().saturating_sub(request.offset.unsigned_abs())),
        };
        file.seek(from).map_err(|error| Problem::io(path, &error))?;
    }
    // Files of /proc and /sys claim to be empty; one page holds most of them.
    let mut contents = Vec::with_capacity(metadata.len().clamp(4096, MOST_BYTES) as usize);
    file.take(request.max_bytes.min(MOST_BYTES))
        .read_to_end(&mut contents)
        .map_err(|error| Problem::io(path, &error))?;
    Ok(contents)
}

/// Returns what is at each path. A symlink at its end is not followed, one above it is. The tables of accounts and
/// groups are read once for each id and not for each path.
pub(super) fn stat_all(
    paths: &[String],
    trusted: &Trusted,
    check: &PathCheck,
) -> Vec<Result<Option<Metadata>, Problem>> {
    let (mut users, mut groups) = (HashMap::new(), HashMap::new());
    let mut stat = |path| {
        let Some(mut entry) = entry(path, trusted, check)? else { return Ok(None) };
        let owner = users.entry(entry.uid).or_insert_with_key(|uid| name_of("/etc/passwd", *uid));
        let group = groups.entry(entry.gid).or_insert_with_key(|gid| name_of("/etc/group", *gid));
        entry.names = Some((owner.clone(), group.clone()));
        Ok(Some(Metadata::from(&entry)))
    };
    paths.iter().map(|path| stat(path)).collect()
}

fn entry(path: &str, trusted: &Trusted, check: &PathCheck) -> Result<Option<Entry>, Problem> {
    check(path, path)?;
    if !is_kernels(path) {
        check_trusted(path, LastLink::Kept, trusted)?;
    }
    let (parent, name) = match (Path::new(path).parent(), Path::new(path).file_name()) {
        (Some(parent), Some(name)) => (parent, name),
        _ => (Path::new("/"), std::ffi::OsStr::new("")),
    };
    let real = match parent.canonicalize() {
        Ok(parent) => parent.join(name),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Problem::io(path, &error)),
    };
    check(path, &text(&real))?;
    if is_kernels(path) && !is_kernels(&text(&real)) {
        check_trusted(path, LastLink::Kept, trusted)?;
    }
    // This opens what was checked: a link that was put in its place since is an error.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = match open_without_links(&real, flags) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(error) => return Err(Problem::io(path, &error.into())),
    };
    let metadata = found.metadata().map_err(|error| Problem::io(path, &error))?;
    Ok(Some(Entry::from(&metadata)))
}

/// Returns the names in each directory, sorted. All directories together may hold at most [`MOST_NAMES`].
pub(super) fn list_all(
    paths: &[String],
    trusted: &Trusted,
    check: &PathCheck,
) -> Vec<Result<Vec<String>, Problem>> {
    let mut left = MOST_NAMES;
    let list = |path: &String| {
        let names = list(path, left, trusted, check)?;
        left -= names.len();
        Ok(names)
    };
    paths.iter().map(list).collect()
}

fn list(path: &str, most: usize, trusted: &Trusted, check: &PathCheck) -> Result<Vec<String>, Problem> {
    let directory = open(path, trusted, check, OFlags::DIRECTORY)?;
    let entries = rustix::fs::Dir::new(directory).map_err(|error| Problem::io(path, &error.into()))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| Problem::io(path, &error.into()))?;
        let name = entry.file_name().to_string_lossy();
        if name != "." && name != ".." {
            names.push(name.into_owned());
        }
        if names.len() > most {
            return Err(too_many_names(path, most));
        }
    }
    names.sort_unstable();
    Ok(names)
}

pub(super) fn too_many_names(path: &str, most: usize) -> Problem {
    let message = format!("{path} holds more than {most} names");
    Problem::new("DIRECTORY_TOO_LARGE", Category::Resource, message)
}

fn open(path: &str, trusted: &Trusted, check: &PathCheck, flags: OFlags) -> Result<File, Problem> {
    check(path, path)?;
    // Most reads are of the kernel's own files, and cost a single call.
    if !is_kernels(path) {
        check_trusted(path, LastLink::Followed, trusted)?;
    }
    // With these flags, opening a pipe doesn't wait for the other end.
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match open_without_links(Path::new(path), flags) {
        // A link is on the way. The host finds out where it leads, checks that path as well, and opens it.
        Err(Errno::LOOP) => {
            let real = Path::new(path).canonicalize().map_err(|error| Problem::io(path, &error))?;
            check(path, &text(&real))?;
            if is_kernels(path) && !is_kernels(&text(&real)) {
                check_trusted(path, LastLink::Followed, trusted)?;
            }
            open_without_links(&real, flags).map_err(|error| not_opened(path, error))
        }
        opened => opened.map_err(|error| not_opened(path, error)),
    }
}

/// The problem of a file that can't be opened. To the kernel, a socket has no device to open.
fn not_opened(path: &str, error: Errno) -> Problem {
    if error == Errno::NXIO
        && let Ok(found) = std::fs::metadata(path)
    {
        return not_a_regular_file(path, FileType::from_raw_mode(found.mode()));
    }
    Problem::io(path, &error.into())
}

/// Opens a path and follows no link anywhere in it.
fn open_without_links(path: &Path, flags: OFlags) -> Result<File, Errno> {
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS) {
        Ok(file) => Ok(File::from(file)),
        // The kernel is older than 5.6, or a seccomp filter doesn't know the call. The host opens the file and then
        // looks what was opened.
        Err(Errno::NOSYS | Errno::PERM) => {
            let file = File::from(rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty())?);
            let opened =
                std::fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file)));
            if opened.is_ok_and(|opened| opened == path) { Ok(file) } else { Err(Errno::LOOP) }
        }
        Err(error) => Err(error),
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn below(allowed: &Path) -> impl Fn(&str, &str) -> Result<(), Problem> + Send + Sync + use<> {
        let allowed = text(allowed);
        move |_, real| match real.starts_with(&allowed) {
            true => Ok(()),
            false => Err(Problem::new("PATH_DENIED", Category::Denied, real)),
        }
    }

    fn request(path: &Path, offset: i64, max_bytes: u64) -> ReadRequest {
        ReadRequest { path: text(path), offset, max_bytes }
    }

    fn stat(path: &str, trusted: &Trusted, check: &PathCheck) -> Result<Option<Metadata>, Problem> {
        stat_all(&[path.to_owned()], trusted, check).remove(0)
    }

    #[test]
    fn a_link_that_leads_out_is_refused_and_one_that_stays_inside_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        let inside = directory.join("inside");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(inside.join("file"), "content").unwrap();
        std::fs::write(directory.join("secret"), "secret").unwrap();
        symlink(inside.join("file"), inside.join("good")).unwrap();
        symlink(directory.join("secret"), inside.join("bad")).unwrap();
        symlink(&directory, inside.join("up")).unwrap();
        let check = below(&inside);
        assert_eq!(
            read(&request(&inside.join("good"), 0, 100), &Trusted::Anyone, &check).unwrap(),
            b"content"
        );
        for path in ["bad", "up/secret"] {
            assert_eq!(
                read(&request(&inside.join(path), 0, 100), &Trusted::Anyone, &check).unwrap_err().code,
                "PATH_DENIED",
                "{path}"
            );
        }
        assert_eq!(
            list(&text(&inside.join("up")), MOST_NAMES, &Trusted::Anyone, &check).unwrap_err().code,
            "PATH_DENIED"
        );
        assert_eq!(
            stat(&text(&inside.join("up/secret")), &Trusted::Anyone, &check).unwrap_err().code,
            "PATH_DENIED"
        );
        assert!(stat(&text(&inside.join("bad")), &Trusted::Anyone, &check).unwrap().unwrap().is_symlink);
    }

    #[test]
    fn an_offset_counts_from_the_beginning_or_from_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        let file = directory.join("file");
        std::fs::write(&file, "0123456789").unwrap();
        let check = below(&directory);
        for (offset, most, expected) in
            [(0, 3, "012"), (4, 100, "456789"), (-3, 100, "789"), (-100, 2, "01"), (99, 5, "")]
        {
            assert_eq!(
                read(&request(&file, offset, most), &Trusted::Anyone, &check).unwrap(),
                expected.as_bytes(),
                "{offset}"
            );
        }
    }

    #[test]
    fn only_regular_files_are_read_and_a_pipe_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        let pipe = directory.join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        let socket = directory.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let check = below(&directory);
        for path in [&pipe, &directory, &socket] {
            assert_eq!(
                read(&request(path, 0, 1), &Trusted::Anyone, &check).unwrap_err().code,
                "NOT_A_REGULAR_FILE"
            );
        }
        assert_eq!(
            read(&request(&directory.join("none"), 0, 1), &Trusted::Anyone, &check).unwrap_err().code,
            "FILE_NOT_FOUND"
        );
    }

    #[test]
    fn a_listing_is_sorted_and_a_stat_of_nothing_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        for name in ["b", "a", ".c"] {
            std::fs::write(directory.join(name), "").unwrap();
        }
        let check = below(&directory);
        assert_eq!(list(&text(&directory), MOST_NAMES, &Trusted::Anyone, &check).unwrap(), [".c", "a", "b"]);
        assert!(stat(&text(&directory.join("none")), &Trusted::Anyone, &check).unwrap().is_none());
        let owner = stat(&text(&directory.join("a")), &Trusted::Anyone, &check).unwrap().unwrap().owner;
        assert_eq!(owner, name_of("/etc/passwd", rustix::process::geteuid().as_raw()));
    }

    #[test]
    fn as_root_only_roots_directories_are_gone_through() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().canonicalize().unwrap();
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).unwrap();
        let file = directory.join("file");
        std::fs::write(&file, "content").unwrap();
        std::fs::create_dir(directory.join("inner")).unwrap();
        let all = |_: &str, _: &str| Ok(());
        for (trusted, code) in [(Trusted::Anyone, ""), (Trusted::Root, "UNTRUSTED_DIRECTORY")] {
            let read = read(&request(&file, 0, 100), &trusted, &all).map(drop);
            let stat = stat(&text(&file), &trusted, &all).map(drop);
            let list = list(&text(&directory.join("inner")), MOST_NAMES, &trusted, &all).map(drop);
            for answer in [read, stat, list] {
                assert_eq!(answer.map_or_else(|problem| problem.code, |()| String::new()), code);
            }
        }
        let passwd = request(Path::new("/etc/passwd"), 0, 100);
        assert!(read(&passwd, &Trusted::Root, &all).is_ok());
    }

    #[test]
    fn a_link_of_a_process_leads_root_nowhere() {
        let all = |_: &str, _: &str| Ok(());
        let exe = request(Path::new("/proc/self/exe"), 0, 4);
        assert_eq!(read(&exe, &Trusted::Anyone, &all).unwrap(), b"\x7fELF");
        assert_eq!(read(&exe, &Trusted::Root, &all).unwrap_err().code, "UNRESOLVABLE_PATH");
        let below = stat("/proc/self/root/etc/passwd", &Trusted::Root, &all);
        assert_eq!(below.unwrap_err().code, "UNRESOLVABLE_PATH");
        // Links that stay within the kernel's files are followed.
        assert!(!read(&request(Path::new("/proc/mounts"), 0, 100), &Trusted::Root, &all).unwrap().is_empty());
    }
}
