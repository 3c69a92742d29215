//! Records a new key, so that it is known from now on.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use russh::keys::PublicKey;
use russh::keys::ssh_key::known_hosts::HostPatterns;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use super::line::{SALT, hashed as hash_of};
use super::{HostNames, KeyVerdict, KnownHosts, read_all, refusal};
use crate::config::Strict;
use host_base::problem::Problem;

/// The time for which another server's line is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time between two attempts.
const AGAIN: Duration = Duration::from_millis(10);

/// Adds the key to the file, unless it is known there. Returns a problem where the file knows another key by now, or
/// others could change what is written.
pub fn record(file: &Path, host: &HostNames, key: &PublicKey, hashed: bool) -> Result<(), Problem> {
    let wrong = |error: io::Error| {
        Problem::io(&format!("the host key can't be written to {}", file.display()), &error)
            .remedy("Mend what the message names, or set UserKnownHostsFile to a file of your own")
    };
    let opened = open(file).map_err(wrong)?;
    lock(&opened).map_err(wrong)?;
    let written = read_all(&opened).map_err(wrong)?;
    let mut known = KnownHosts::default();
    known.add(file, &written);
    match known.judge(host, key) {
        KeyVerdict::Known => return Ok(()),
        verdict => {
            if let Some(problem) = refusal(host, key, &verdict, Strict::AcceptNew) {
                return Err(problem);
            }
        }
    }
    let mut line = line(host, key, hashed).map_err(wrong)?;
    if !written.is_empty() && !written.ends_with(b"\n") {
        line.insert(0, '\n');
    }
    let added = (&opened).write_all(line.as_bytes()).and_then(|()| opened.sync_data());
    added.map_err(|error| {
        // Half a line would spoil the next line that somebody adds.
        _ = opened.set_len(written.len() as u64);
        wrong(error)
    })
}

fn line(host: &HostNames, key: &PublicKey, hashed: bool) -> io::Result<String> {
    let name = host.listed();
    let name = if hashed {
        let mut salt = [0; SALT];
        getrandom(&mut salt, GetRandomFlags::empty())?;
        let hash = hash_of(&name, &salt);
        HostPatterns::HashedName { salt: salt.to_vec(), hash }.to_string()
    } else {
        name
    };
    let key = PublicKey::new(key.key_data().clone(), "").to_openssh().map_err(io::Error::other)?;
    Ok(format!("{name} {key}\n"))
}

/// Opens the file. Creates it and its directory, such as `~/.ssh`, where they don't exist.
fn open(path: &Path) -> io::Result<File> {
    let own = rustix::process::geteuid().as_raw();
    if let Some(directory) = path.parent() {
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    // A link is followed if its owner could also have written the file that it leads to.
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink() && found.uid() != own) {
        return Err(io::Error::other("it is another account's link"));
    }
    let file = File::options()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file, and nothing stays in it"));
    }
    if found.uid() != own || found.mode() & 0o022 != 0 {
        return Err(io::Error::other("others can write to it"));
    }
    Ok(file)
}

/// Locks the file until it is closed. Whoever holds the lock writes one line.
fn lock(file: &File) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => thread::sleep(AGAIN),
            Err(Errno::WOULDBLOCK) => return Err(io::Error::other("another program keeps it locked")),
            other => return Ok(other?),
        }
    }
}
