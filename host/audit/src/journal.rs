//! The head goes to the journal as well: another account's log, which whoever can rewrite this one can't.
//!
//! In journald's native protocol, <https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>: one datagram, a field a line. Where
//! there is no journal, or it doesn't keep up, nothing is waited for.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// Where journald listens.
pub const SOCKET: &str = "/run/systemd/journal/socket";

/// How a message begins; the sequence number and the hash follow.
pub const HEAD: &str = "audit head ";

/// The journal's identifier of every message.
pub const IDENTIFIER: &str = "linux-sysadmin";

/// A way to the journal.
#[derive(Debug)]
pub struct Journal {
    socket: Option<UnixDatagram>,
    path: PathBuf,
}

impl Journal {
    /// Opens nothing yet that could fail loudly.
    pub fn new(path: PathBuf) -> Self {
        let socket = UnixDatagram::unbound().ok().filter(|socket| socket.set_nonblocking(true).is_ok());
        Self { socket, path }
    }

    /// Tells the journal of a head.
    pub fn tell(&self, directory: &Path, seq: u64, hash: &str) {
        let Some(socket) = &self.socket else { return };
        // Priority 5 is notice. Several logs may go to one journal, so each says which it is.
        let mut message = format!("MESSAGE={HEAD}{seq} {hash}\nPRIORITY=5\nSYSLOG_IDENTIFIER={IDENTIFIER}\n");
        let directory = directory.to_string_lossy();
        // A value with a line's end would need the protocol's other form.
        if !directory.contains('\n') {
            message.push_str(&format!("LINUX_SYSADMIN_AUDIT={directory}\n"));
        }
        let _ = socket.send_to(message.as_bytes(), &self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_one_datagram_and_a_missing_journal_is_no_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        Journal::new(path.clone()).tell(Path::new("/x"), 6, "ff");
        let journal = UnixDatagram::bind(&path).unwrap();
        Journal::new(path).tell(Path::new("/x"), 7, "ab");
        let mut bytes = [0; 512];
        let length = journal.recv(&mut bytes).unwrap();
        assert_eq!(
            std::str::from_utf8(&bytes[..length]).unwrap(),
            "MESSAGE=audit head 7 ab\nPRIORITY=5\nSYSLOG_IDENTIFIER=linux-sysadmin\nLINUX_SYSADMIN_AUDIT=/x\n"
        );
    }
}
