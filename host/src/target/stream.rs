//! Output: read as it comes, cut at its limit while it streams.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdout};

use super::Keep;
use super::group::Group;
use crate::problem::Problem;

/// What is kept of each of a command's two streams.
pub(super) const KEPT_BYTES: usize = 1 << 20;

/// One stream's kept part, and how much there was in all.
#[derive(Default)]
pub(super) struct Captured {
    pub(super) bytes: Vec<u8>,
    pub(super) total_bytes: u64,
    pub(super) total_lines: u64,
    pub(super) truncated: bool,
}

/// Collects into `captured`, so that what had come is there even where the reading is stopped.
pub(super) async fn capture(mut source: impl AsyncRead + Unpin, keep: Keep, captured: &mut Captured) {
    let mut kept = VecDeque::new();
    let mut chunk = vec![0; 64 * 1024];
    let mut last = b'\n';
    // A read error is the end of what can be had of a pipe.
    while let Ok(count @ 1..) = source.read(&mut chunk).await {
        let piece = &chunk[..count];
        captured.total_bytes += count as u64;
        captured.total_lines += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
        last = piece[count - 1];
        match keep {
            Keep::Head => {
                let room = KEPT_BYTES - captured.bytes.len();
                captured.bytes.extend_from_slice(&piece[..count.min(room)]);
                captured.truncated |= count > room;
            }
            Keep::Tail => {
                kept.extend(piece);
                if kept.len() > KEPT_BYTES {
                    kept.drain(..kept.len() - KEPT_BYTES);
                    captured.truncated = true;
                }
            }
        }
    }
    if last != b'\n' {
        captured.total_lines += 1;
    }
    if keep == Keep::Tail {
        captured.bytes = kept.into();
    }
}

/// A running command whose stdout is read piece by piece. Dropping it ends the command.
pub struct OutputStream {
    pub(super) stdout: ChildStdout,
    pub(super) _group: Group,
    pub(super) _child: Child,
}

impl OutputStream {
    /// At most `max_bytes`, and at most 1 MiB; empty at the end.
    pub async fn read(&mut self, max_bytes: u32) -> Result<Vec<u8>, Problem> {
        let mut piece = vec![0; (max_bytes as usize).clamp(1, KEPT_BYTES)];
        let count =
            self.stdout.read(&mut piece).await.map_err(|error| Problem::io("reading the output", &error))?;
        piece.truncate(count);
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn captured(input: &[u8], keep: Keep) -> Captured {
        let mut captured = Captured::default();
        capture(input, keep, &mut captured).await;
        captured
    }

    #[tokio::test]
    async fn the_kept_end_is_the_one_asked_for_and_the_rest_is_counted() {
        let mut input = b"first\n".to_vec();
        input.resize(KEPT_BYTES + 100, b'x');
        input.extend_from_slice(b"\nlast");
        for (keep, begins, ends) in
            [(Keep::Head, &b"first\n"[..], &b"xxx"[..]), (Keep::Tail, b"xxx", b"\nlast")]
        {
            let captured = captured(&input, keep).await;
            assert!(captured.truncated);
            assert_eq!(captured.bytes.len(), KEPT_BYTES);
            assert_eq!(captured.total_bytes, input.len() as u64);
            assert_eq!(captured.total_lines, 3);
            assert!(captured.bytes.starts_with(begins) && captured.bytes.ends_with(ends));
        }
    }

    #[tokio::test]
    async fn lines_are_counted_with_and_without_a_last_newline() {
        for (input, lines) in [(&b""[..], 0), (b"a", 1), (b"a\n", 1), (b"a\n\nb", 3)] {
            let captured = captured(input, Keep::Head).await;
            assert_eq!(captured.total_lines, lines, "{input:?}");
            assert!(!captured.truncated);
        }
    }
}
