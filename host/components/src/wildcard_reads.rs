//! Looks through what a third party's module reads by a wildcard alone: contents of files, and the output of commands with
//! such paths. Which files hold secrets is known by their paths only where programs have fixed ones. What is recognized as a
//! private key or a password is hidden byte by byte, so that the module still finds everything else in its place.
//!
//! A module can also ask for a part that begins within a secret. So each part is judged together with what stands around
//! it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::limits::PIECE;
use super::store::Call;
use host_base::problem::Problem;
use host_base::{Output, Privilege};
use host_target::{PathCheck, ReadRequest};
use host_text::redact::{mask, mask_between};

/// The number of bytes before and behind a part that are read to judge it. A private key has some 3 KiB.
const AROUND: u64 = 16 << 10;

impl Call {
    /// Hides secrets in what was read of files that no grant names.
    pub(super) async fn look_through(
        &self,
        requests: &[ReadRequest],
        privilege: &Privilege,
        check: Arc<PathCheck>,
        answers: &mut [Result<Vec<u8>, Problem>],
    ) {
        let grants = self.grants();
        let mut read: Vec<(usize, &ReadRequest, &mut Vec<u8>)> = Vec::new();
        for (number, (request, answer)) in requests.iter().zip(answers).enumerate() {
            if let Ok(contents) = answer
                && !contents.is_empty()
                && grants.is_looked_through(&request.path, privilege)
            {
                read.push((number, request, contents));
            }
        }
        let parts: Vec<(usize, ReadRequest)> = read
            .iter()
            .filter(|(_, request, contents)| !is_whole(request, contents))
            .map(|(number, request, _)| (*number, around(request)))
            .collect();
        let mut wider = HashMap::new();
        if !parts.is_empty() {
            let (numbers, requests): (Vec<usize>, Vec<ReadRequest>) = parts.into_iter().unzip();
            let contents = self.target.read_all(requests, &grants.access(privilege), check).await;
            wider.extend(numbers.into_iter().zip(contents));
        }
        for (number, request, contents) in read {
            let hidden = match wider.remove(&number) {
                None => mask(contents).into_owned(),
                Some(wide) => masked_part(request, contents, &wide.unwrap_or_default()),
            };
            *contents = hidden;
        }
    }
}

/// Hides secrets in what a command has printed.
pub(super) fn mask_output(output: &mut Output) {
    for printed in [&mut output.stdout, &mut output.stderr] {
        if let Cow::Owned(masked) = mask(printed) {
            *printed = masked;
        }
    }
}

/// The next piece of what a command prints, with its secrets hidden. `before` keeps the end of what was read, by which the
/// next piece is judged.
pub(super) fn mask_next(before: &mut Vec<u8>, piece: Vec<u8>) -> Vec<u8> {
    let masked = mask_between(before, &piece, b"");
    before.extend_from_slice(&piece);
    let surplus = before.len().saturating_sub(AROUND as usize);
    before.drain(..surplus);
    masked
}

/// Whether the contents are those of the whole file.
fn is_whole(request: &ReadRequest, contents: &[u8]) -> bool {
    request.offset == 0 && (contents.len() as u64) < request.max_bytes.min(PIECE)
}

/// The request for a part of a file together with what stands around it.
fn around(request: &ReadRequest) -> ReadRequest {
    let before = before(request);
    let max_bytes = request.max_bytes.min(PIECE).saturating_add(before + AROUND).min(PIECE);
    let offset = request.offset.saturating_sub(i64::try_from(before).unwrap_or(i64::MAX));
    ReadRequest { path: request.path.clone(), offset, max_bytes }
}

/// The number of bytes before a part that are read with it. Before the beginning of a file there are none; how far away
/// that is isn't known of a part that is counted from the end.
fn before(request: &ReadRequest) -> u64 {
    u64::try_from(request.offset).map_or(AROUND, |offset| offset.min(AROUND))
}

/// The place in the wider part, which has this length, at which the part itself begins. `None` where the length of the file
/// isn't known, from whose end the part is counted.
fn begin(request: &ReadRequest, wide: usize) -> Option<usize> {
    let wide = wide as u64;
    let begin = if request.offset >= 0 {
        before(request)
    } else {
        let from_end = request.offset.unsigned_abs();
        let (whole, most) = (from_end.saturating_add(AROUND), around(request).max_bytes);
        if wide < whole.min(most) {
            // The wider part is the whole file.
            wide.saturating_sub(from_end)
        } else if whole <= most {
            AROUND
        } else {
            return None;
        }
    };
    usize::try_from(begin).ok()
}

/// A part with its secrets hidden. Where its surroundings don't tell what it begins with, its first line is hidden too.
fn masked_part(request: &ReadRequest, part: &[u8], wide: &[u8]) -> Vec<u8> {
    let found = begin(request, wide.len()).and_then(|begin| {
        let (before, rest) = wide.split_at_checked(begin)?;
        let common = rest.len().min(part.len());
        // The file may have changed meanwhile. The wider part may also end before this one.
        (common > 0 && rest[..common] == part[..common]).then(|| (before, &rest[common..]))
    });
    if let Some((before, after)) = found {
        return mask_between(before, part, after);
    }
    let mut masked = mask(part).into_owned();
    if request.offset != 0 {
        let line = part.iter().position(|byte| *byte == b'\n').unwrap_or(part.len());
        masked[..line].fill(b'*');
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads as a target does.
    fn read(file: &[u8], request: &ReadRequest) -> Vec<u8> {
        let begin = match usize::try_from(request.offset) {
            Ok(offset) => offset.min(file.len()),
            Err(_) => file.len().saturating_sub(request.offset.unsigned_abs() as usize),
        };
        let most = request.max_bytes.min(PIECE) as usize;
        file[begin..].iter().take(most).copied().collect()
    }

    fn request(offset: i64, max_bytes: u64) -> ReadRequest {
        ReadRequest { path: "/srv/x".to_owned(), offset, max_bytes }
    }

    #[test]
    fn a_part_shows_no_secret_wherever_it_begins() {
        let fill = "a line of a log that is not secret\n".repeat(1500);
        for (head, tail) in [("", ""), (fill.as_str(), ""), ("", fill.as_str()), (&fill, &fill)] {
            let file = format!("{head}user=ada\npassword=correct-horse-battery\nport=22\n{tail}");
            let secret = file.find("correct-horse").unwrap();
            let whole = mask(file.as_bytes());
            for (from, most) in
                [(secret - 12, 40), (secret, 8), (secret + 3, 5), (secret + 10, 2000), (0, secret + 4)]
            {
                let from_end = -i64::try_from(file.len() - from).unwrap();
                for offset in [i64::try_from(from).unwrap(), from_end] {
                    let request = request(offset, most as u64);
                    let part = read(file.as_bytes(), &request);
                    let wide = read(file.as_bytes(), &around(&request));
                    let shown = masked_part(&request, &part, &wide);
                    assert_eq!(shown.len(), part.len());
                    let hidden = &whole[from..from + part.len()];
                    let shown = String::from_utf8_lossy(&shown);
                    let is_same = shown.as_bytes() == hidden;
                    // At an unknown distance from the beginning, the first line is hidden as a whole.
                    let behind = shown.split_once('\n').map_or("", |(_, behind)| behind);
                    assert!(is_same || hidden.ends_with(behind.as_bytes()), "{offset} {most}: {shown}");
                    for piece in ["correct", "orse-", "battery"] {
                        assert!(!shown.contains(piece), "{offset} {most}: {shown}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_a_command_prints_shows_no_secret_in_whatever_pieces_it_is_read() {
        let printed = "user=ada\npassword=hunter2\nport=22\n";
        let hidden = "user=ada\npassword=*******\nport=22\n";
        for size in [1, 2, 5, 12, 100] {
            let (mut before, mut seen) = (Vec::new(), Vec::new());
            for piece in printed.as_bytes().chunks(size) {
                seen.extend(mask_next(&mut before, piece.to_vec()));
            }
            assert_eq!(String::from_utf8(seen).unwrap(), hidden, "{size}");
        }
        let mut output = Output { stdout: printed.into(), stderr: printed.into(), ..Output::default() };
        mask_output(&mut output);
        assert_eq!([output.stdout, output.stderr], [hidden.as_bytes(); 2]);
        let mut before = vec![b'x'; AROUND as usize];
        mask_next(&mut before, vec![b'y'; 10]);
        assert_eq!(before.len(), AROUND as usize);
    }

    #[test]
    fn what_cannot_be_read_again_loses_its_first_line() {
        let part = b"tery\nport=22\npassword=hunter2\n";
        let shown = String::from_utf8(masked_part(&request(30, 100), part, b"")).unwrap();
        assert_eq!(shown, "****\nport=22\npassword=*******\n");
    }
}
