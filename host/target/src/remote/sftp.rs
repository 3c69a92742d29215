//! Files over SFTP, version 3 as OpenSSH speaks it. It has the rights of the account, and needs few round trips for
//! many files.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::join_all;
use russh::client::Msg;
use russh::{Channel, ChannelMsg};
use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error;
use russh_sftp::protocol::{FileAttributes, OpenFlags, StatusCode};
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::entry::{Entry, Trusted, not_a_regular_file};
use crate::files::{MOST_BYTES, MOST_NAMES, too_many_names};
use crate::local::{READ_BYTES, files_too_large};
use crate::resolve::{LastLink, NextStep, Resolved, Walk, is_kernels};
use crate::{PathCheck, ReadRequest};
use host_base::problem::{Category, Problem};

/// The time that SFTP may take to begin. A start-up file that prints something breaks it, and this notices it.
const BEGINNING: Duration = Duration::from_secs(5);
/// The time limit of one answer. The slowest is a disk that is waking up.
const ANSWER_SECONDS: u64 = 30;
/// The bytes that one request reads. Every server gives at least as many at once.
const PIECE: u32 = 32 << 10;
/// The number of files that are read at the same time.
const AT_ONCE: usize = 16;
/// The time limit of one file or listing.
const WHOLE: Duration = Duration::from_secs(60);
/// The number of requests that are under way for one file.
const AHEAD: usize = 8;

/// One session of SFTP.
pub(super) struct Sftp(Arc<RawSftpSession>);

/// An open file or directory, which is closed when this is dropped.
struct Open {
    session: Arc<RawSftpSession>,
    handle: String,
}

impl Drop for Open {
    fn drop(&mut self) {
        let (session, handle) = (self.session.clone(), std::mem::take(&mut self.handle));
        // Nobody waits for this.
        tokio::spawn(async move { session.close(handle).await });
    }
}

impl Sftp {
    pub(super) async fn begin(mut channel: Channel<Msg>) -> Result<Self, Error> {
        if let Err(error) = soon(ask(&mut channel)).await {
            // A channel that is only dropped stays open on the server.
            let _ = channel.close().await;
            return Err(error);
        }
        let session = RawSftpSession::new(channel.into_stream());
        session.set_timeout(ANSWER_SECONDS);
        soon(session.init()).await?;
        Ok(Self(Arc::new(session)))
    }

    /// Reads parts of files, and returns them in the order given.
    pub(super) async fn read_all(
        &self,
        requests: &[ReadRequest],
        trusted: &Trusted,
        check: &PathCheck,
    ) -> Vec<Result<Vec<u8>, Problem>> {
        let mut left = READ_BYTES;
        let mut answers = Vec::with_capacity(requests.len());
        // The chunks are small, so that little is held before it is counted.
        for some in requests.chunks(AT_ONCE) {
            if left == 0 {
                answers.extend(some.iter().map(|_| Err(files_too_large())));
                continue;
            }
            let reads = some.iter().map(|request| in_time(&request.path, self.read(request, trusted, check)));
            for answer in join_all(reads).await {
                left = left.saturating_sub(answer.as_ref().map_or(0, Vec::len));
                answers.push(answer);
            }
        }
        answers
    }

    async fn read(
        &self,
        request: &ReadRequest,
        trusted: &Trusted,
        check: &PathCheck,
    ) -> Result<Vec<u8>, Problem> {
        let path = &request.path;
        let wrong = |error: Error| problem(path, error);
        let real = self.real(path, trusted, check).await?;
        // Reading a pipe or a device would wait.
        let found = self.0.lstat(real.as_str()).await.map_err(wrong)?.attrs;
        let kind = FileType::from_raw_mode(found.permissions.unwrap_or_default());
        if kind != FileType::RegularFile {
            return Err(not_a_regular_file(path, kind));
        }
        let opened = self.0.open(real.as_str(), OpenFlags::READ, FileAttributes::empty()).await;
        let open = self.opened(opened.map_err(wrong)?.handle);
        let size = found.size.unwrap_or_default();
        let from = match u64::try_from(request.offset) {
            Ok(offset) => offset,
            // An offset before the beginning means the beginning.
            Err(_) => size.saturating_sub(request.offset.unsigned_abs()),
        };
        let most = request.max_bytes.min(MOST_BYTES);
        // The opened file must be the one that was looked at, as a link may have been there in between.
        let opened = self.0.fstat(open.handle.as_str()).await.map_err(wrong)?.attrs;
        if is_another(&found, &opened) {
            return Err(swapped(path));
        }
        self.contents(&open.handle, from, most, size).await.map_err(wrong)
    }

    fn opened(&self, handle: String) -> Open {
        Open { session: self.0.clone(), handle }
    }

    /// Reads the contents. Of a file that tells its size it reads several pieces at once; the kernel's files claim to
    /// be empty.
    async fn contents(&self, handle: &str, from: u64, most: u64, size: u64) -> Result<Vec<u8>, Error> {
        let mut contents = Vec::new();
        loop {
            let done = contents.len() as u64;
            if done >= most {
                return Ok(contents);
            }
            let expected = size.saturating_sub(from.saturating_add(done)).min(most - done);
            let pieces = (expected.div_ceil(PIECE.into()) as usize).clamp(1, AHEAD) as u64;
            let ask = |number: u64| {
                let begin = done + number * u64::from(PIECE);
                let length = u64::from(PIECE).min(most.saturating_sub(begin));
                (begin, length as u32)
            };
            let asked: Vec<_> = (0..pieces).map(ask).filter(|(_, length)| *length > 0).collect();
            let reads =
                asked.iter().map(|(begin, length)| self.0.read(handle, from.saturating_add(*begin), *length));
            for (read, (_, length)) in join_all(reads).await.into_iter().zip(&asked) {
                match read {
                    Ok(piece) => {
                        let short = piece.data.len() < *length as usize;
                        contents.extend_from_slice(&piece.data[..piece.data.len().min(*length as usize)]);
                        if piece.data.is_empty() {
                            return Ok(contents);
                        }
                        // The pieces after this one begin too late.
                        if short {
                            break;
                        }
                    }
                    Err(Error::Status(status)) if status.status_code == StatusCode::Eof => {
                        return Ok(contents);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// Returns the names in each directory, sorted. All directories together may hold at most [`MOST_NAMES`].
    pub(super) async fn list_all(
        &self,
        paths: &[String],
        trusted: &Trusted,
        check: &PathCheck,
    ) -> Vec<Result<Vec<String>, Problem>> {
        let left = AtomicUsize::new(MOST_NAMES);
        let mut answers = Vec::with_capacity(paths.len());
        for some in paths.chunks(AT_ONCE) {
            let lists = some.iter().map(|path| in_time(path, self.names(path, &left, trusted, check)));
            answers.extend(join_all(lists).await);
        }
        answers
    }

    async fn names(
        &self,
        path: &str,
        left: &AtomicUsize,
        trusted: &Trusted,
        check: &PathCheck,
    ) -> Result<Vec<String>, Problem> {
        let wrong = |error: Error| problem(path, error);
        let real = self.real(path, trusted, check).await?;
        // For a path that isn't a directory, the server would only say that it failed.
        let found = self.0.lstat(real.as_str()).await.map_err(wrong)?.attrs;
        if FileType::from_raw_mode(found.permissions.unwrap_or_default()) != FileType::Directory {
            return Err(Problem::io(path, &Errno::NOTDIR.into()));
        }
        let open = self.opened(self.0.opendir(real.as_str()).await.map_err(wrong)?.handle);
        if self.real(path, trusted, check).await? != real {
            return Err(swapped(path));
        }
        let mut names = Vec::new();
        loop {
            match self.0.readdir(open.handle.as_str()).await {
                // An empty answer means the end, though a server should say so in another way.
                Ok(some) if some.files.is_empty() => break,
                Ok(some) => {
                    let known = names.len();
                    let some = some.files.into_iter().map(|file| file.filename);
                    names.extend(some.filter(|name| name != "." && name != ".."));
                    let more = names.len() - known;
                    let taken = left.try_update(Relaxed, Relaxed, |left| left.checked_sub(more));
                    if let Err(left) = taken {
                        return Err(too_many_names(path, known + left));
                    }
                }
                Err(Error::Status(status)) if status.status_code == StatusCode::Eof => break,
                Err(error) => return Err(wrong(error)),
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns where a path leads. It may be reached as it was asked for and with its symlinks resolved.
    async fn real(&self, path: &str, trusted: &Trusted, check: &PathCheck) -> Result<String, Problem> {
        check(path, path)?;
        let real = match (trusted, is_kernels(path)) {
            (Trusted::Anyone, _) | (_, true) => {
                let name = self.0.realpath(path).await.map_err(|error| problem(path, error))?;
                let name = name.files.into_iter().next().map(|file| file.filename);
                name.ok_or_else(|| problem(path, Error::UnexpectedPacket))?
            }
            _ => self.resolve(path, LastLink::Followed, trusted).await?.unless_dangling(path)?.path,
        };
        check(path, &real)?;
        if is_kernels(path) && !is_kernels(&real) && *trusted != Trusted::Anyone {
            self.resolve(path, LastLink::Followed, trusted).await?;
        }
        Ok(real)
    }

    /// Returns where a path leads, after looking at every directory on the way.
    pub(super) async fn resolve(
        &self,
        path: &str,
        last: LastLink,
        trusted: &Trusted,
    ) -> Result<Resolved, Problem> {
        let mut walk = Walk::new(path, last, trusted)?;
        loop {
            match walk.ask() {
                NextStep::Look(paths) => {
                    let entries = join_all(paths.iter().map(|path| self.look(path))).await;
                    walk.looked(entries)?;
                }
                NextStep::Follow(link) => walk.followed(&self.read_link(&link).await?)?,
                NextStep::Done(resolved) => return Ok(resolved),
            }
        }
    }

    async fn look(&self, path: &str) -> Result<Option<Entry>, Problem> {
        match self.0.lstat(path).await {
            Ok(found) => Ok(Some(entry(&found.attrs))),
            Err(Error::Status(status)) if status.status_code == StatusCode::NoSuchFile => Ok(None),
            Err(error) => Err(problem(path, error)),
        }
    }

    async fn read_link(&self, link: &str) -> Result<String, Problem> {
        let led = self.0.readlink(link).await.map_err(|error| problem(link, error))?;
        let target = led.files.into_iter().next().map(|file| file.filename);
        target.ok_or_else(|| problem(link, Error::UnexpectedPacket))
    }
}

/// Starts SFTP on a channel.
async fn ask(channel: &mut Channel<Msg>) -> Result<(), Error> {
    let failed = |why: &str| Error::UnexpectedBehavior(why.to_owned());
    let asked = channel.request_subsystem(true, "sftp").await;
    asked.map_err(|error| failed(&error.to_string()))?;
    loop {
        match channel.wait().await {
            Some(ChannelMsg::Success) => return Ok(()),
            Some(ChannelMsg::WindowAdjusted { .. }) => {}
            _ => return Err(failed("the server has no such subsystem")),
        }
    }
}

async fn soon<T>(begun: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let late = |_| Err(Error::UnexpectedBehavior("no answer in time".to_owned()));
    tokio::time::timeout(BEGINNING, begun).await.unwrap_or_else(late)
}

/// Compares all that SFTP tells of a file.
fn is_another(one: &FileAttributes, other: &FileAttributes) -> bool {
    let told = |found: &FileAttributes| (found.uid, found.gid, found.permissions, found.mtime, found.size);
    // A log file may have grown.
    let (one, other) = (told(one), told(other));
    (one.0, one.1, one.2) != (other.0, other.1, other.2)
        || one.3 > other.3
        || one.4 > other.4 && one.3 == other.3
}

fn swapped(path: &str) -> Problem {
    let message =
        format!("{path} is something else than a moment ago: somebody is changing what is on its way");
    Problem::new("FILE_CHANGED", Category::State, message)
}

/// Makes an entry. Ids stand for the names, which only the target knows.
fn entry(found: &FileAttributes) -> Entry {
    let (uid, gid) = (found.uid.unwrap_or(u32::MAX), found.gid.unwrap_or(u32::MAX));
    Entry {
        mode: found.permissions.unwrap_or_default(),
        uid,
        gid,
        size: found.size.unwrap_or_default(),
        modified_unix: found.mtime.unwrap_or_default().into(),
        // SFTP doesn't tell these. Callers that need them use `stat`.
        links: 0,
        device: 0,
        inode: 0,
        names: Some((uid.to_string(), gid.to_string())),
    }
}

/// Returns the problem in the words that the system itself would use here.
fn problem(path: &str, error: Error) -> Problem {
    match error {
        Error::Status(status) => match status.status_code {
            StatusCode::NoSuchFile => Problem::io(path, &Errno::NOENT.into()),
            StatusCode::PermissionDenied => Problem::io(path, &Errno::ACCESS.into()),
            StatusCode::ConnectionLost | StatusCode::NoConnection => lost(path, &status.error_message),
            _ => {
                let message = format!("{path}: {}", status.error_message);
                Problem::new("IO_ERROR", Category::Other, message)
            }
        },
        Error::Timeout => {
            let message = format!("{path} was not read in time");
            Problem::new("COMMAND_TIMEOUT", Category::Timeout, message)
        }
        other => lost(path, &other.to_string()),
    }
}

async fn in_time<T>(path: &str, work: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    let late = |_| Err(problem(path, Error::Timeout));
    tokio::time::timeout(WHOLE, work).await.unwrap_or_else(late)
}

fn lost(path: &str, why: &str) -> Problem {
    let message = format!("{path} was not read: the connection was lost ({why})");
    Problem::new("CONNECTION_LOST", Category::Network, message)
}
