//! Sends heads to the system's journal. The journal belongs to another account, so somebody who can rewrite the audit log
//! can't rewrite the heads there.
//!
//! The messages use journald's native protocol, <https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>: one datagram, one field per
//! line. Sending never waits; where there is no journal, or it is too slow, the message is lost.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// The socket on which journald listens.
pub const SOCKET: &str = "/run/systemd/journal/socket";

/// The beginning of a message. The record's number and hash follow.
pub const MESSAGE_PREFIX: &str = "audit head ";

/// The SYSLOG_IDENTIFIER of every message.
pub const IDENTIFIER: &str = "linux-sysadmin";

/// A socket for messages to the journal.
#[derive(Debug)]
pub struct Journal {
    socket: Option<UnixDatagram>,
    path: PathBuf,
}

impl Journal {
    /// Makes a sender to the journal at this path. It never fails: without a socket, [`tell`](Self::tell) does nothing.
    pub fn new(path: PathBuf) -> Self {
        let socket = UnixDatagram::unbound().ok().filter(|socket| socket.set_nonblocking(true).is_ok());
        Self { socket, path }
    }

    /// Sends a head to the journal.
    pub fn tell(&self, directory: &Path, seq: u64, hash: &str) {
        let Some(socket) = &self.socket else { return };
        // Priority 5 is `notice`. Several logs may go to one journal, so each message names its log.
        let mut message =
            format!("MESSAGE={MESSAGE_PREFIX}{seq} {hash}\nPRIORITY=5\nSYSLOG_IDENTIFIER={IDENTIFIER}\n");
        let directory = directory.to_string_lossy();
        // A value with a newline would need the protocol's other form.
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
