//! Reads the lines of a text log piece by piece, whatever its size, and unpacks it where it is packed.

use std::io::Write;

use flate2::write::MultiGzDecoder;
use linux_sysadmin_sdk::{Category, DurationCategory, OutputStream, Privilege, prelude::*};

use super::file::{File, Packing};
use super::line_splitter::{self, LineSplitter};
use crate::budget::{Budget, Spent};

/// The size of a part in bytes. The host reads one part of a file at a time.
pub(super) const PART: u64 = 1 << 20;
/// The number of parts that are asked for at once.
const PARTS: u64 = 4;

/// Programs that unpack a file on the target. Only gzip is unpacked by this module.
pub(crate) const XZ: CommandLine = CommandLine::new("xz -d -c -- <path:/var/log/**>");
pub(crate) const ZSTD: CommandLine = CommandLine::new("zstd -d -c -q -- <path:/var/log/**>");
pub(crate) const BZIP2: CommandLine = CommandLine::new("bzip2 -d -c -- <path:/var/log/**>");

/// The problem that a file isn't text.
pub(crate) fn binary(path: &str) -> Problem {
    Problem::validation("NOT_TEXT", format!("{path} is no text")).remedy(
        "wtmp, btmp and lastlog are read by last, lastb and lastlog; the journal by log_query without path",
    )
}

/// The end of the reading of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The whole file was read, or the sink returned false.
    Whole,
    /// A limit of the budget was reached.
    Spent(Spent),
}

/// A program that unpacks a file, and was started before the file is read.
pub(crate) struct Unpacking {
    path: String,
    stream: Result<OutputStream>,
}

impl Unpacking {
    /// Starts the program that unpacks the first of these files that needs one. It goes on while other files are read.
    pub(crate) fn first<'f>(
        cx: &Context,
        budget: &Budget<'_>,
        mut files: impl Iterator<Item = &'f File>,
    ) -> Option<Self> {
        let (file, program) = files.find_map(|file| Some((file, unpacker(file.packing)?)))?;
        Some(Self::new(cx, budget, file, program))
    }

    fn new(cx: &Context, budget: &Budget<'_>, file: &File, program: CommandLine) -> Self {
        let command = program.with([&file.path]).privilege(Privilege::RootIfAvailable);
        let stream = budget.waiting(|| cx.open(command.duration(DurationCategory::Slow)));
        Self { path: file.path.clone(), stream }
    }

    /// Whether it unpacks this file.
    pub(crate) fn is_of(&self, file: &File) -> bool {
        self.path == file.path
    }
}

/// The program that unpacks files of this kind on the target. This module unpacks gzip itself.
fn unpacker(packing: Packing) -> Option<CommandLine> {
    match packing {
        Packing::None | Packing::Gzip => None,
        Packing::Xz => Some(XZ),
        Packing::Zstd => Some(ZSTD),
        Packing::Bzip2 => Some(BZIP2),
    }
}

/// Reads each line of a file from an offset on, the oldest first, until the sink returns false. In a packed file, it reads
/// from the start.
pub(crate) fn each(
    cx: &Context,
    budget: &Budget<'_>,
    file: &File,
    from: u64,
    sink: impl FnMut(&[u8]) -> bool,
) -> Result<End> {
    each_of(cx, budget, file, from, None, sink)
}

/// The same where the program that unpacks the file may have been started already.
pub(crate) fn each_of(
    cx: &Context,
    budget: &Budget<'_>,
    file: &File,
    from: u64,
    begun: Option<Unpacking>,
    sink: impl FnMut(&[u8]) -> bool,
) -> Result<End> {
    if let Some(program) = unpacker(file.packing) {
        let begun = begun.unwrap_or_else(|| Unpacking::new(cx, budget, file, program));
        return unpacked(budget, file, begun.stream?, sink);
    }
    match file.packing {
        Packing::Gzip => gzip(cx, budget, file, sink),
        _ => plain(cx, budget, file, from, sink),
    }
}

/// Reads a file in pieces, without unpacking it, until the sink returns false.
fn raw(
    cx: &Context,
    budget: &Budget<'_>,
    file: &File,
    from: u64,
    mut sink: impl FnMut(&[u8]) -> Result<bool>,
) -> Result<End> {
    let cx = &cx.files_as(Privilege::RootIfAvailable);
    let mut offset = from;
    loop {
        if let Some(spent) = budget.spent() {
            return Ok(End::Spent(spent));
        }
        // A small file is one part.
        let left = file.size.map_or(PART, |size| size.saturating_sub(offset));
        let count = left.div_ceil(PART).clamp(1, PARTS);
        let parts: Vec<_> = (0..count)
            .map(|part| (file.path.as_str(), i64::try_from(offset + part * PART).unwrap_or(i64::MAX), PART))
            .collect();
        for part in budget.read_parts(cx, &parts) {
            let part = part?;
            offset += part.len() as u64;
            if part.is_empty() || !sink(&part)? || (part.len() as u64) < PART {
                return Ok(End::Whole);
            }
        }
    }
}

fn plain(
    cx: &Context,
    budget: &Budget<'_>,
    file: &File,
    from: u64,
    mut sink: impl FnMut(&[u8]) -> bool,
) -> Result<End> {
    let mut lines = LineSplitter::new(line_splitter::MOST);
    let mut is_first = true;
    // Reading may begin in the middle of a line, which is left out.
    let mut is_partial = from > 0;
    let mut wants_more = true;
    let end = raw(cx, budget, file, from, |piece| {
        if std::mem::take(&mut is_first) && is_binary(piece) {
            return Err(binary(&file.path));
        }
        if line_splitter::is_hole(piece) {
            return Ok(true);
        }
        wants_more = lines.piece(piece, |line| std::mem::take(&mut is_partial) || sink(line));
        Ok(wants_more)
    })?;
    if wants_more && end == End::Whole {
        lines.end(|line| is_partial || sink(line));
    }
    Ok(end)
}

/// Splits unpacked text into lines while it is unpacked, so that little of it is in memory.
struct Unpacked<S> {
    lines: LineSplitter,
    sink: S,
    wants_more: bool,
    unpacked: u64,
}

impl<S: FnMut(&[u8]) -> bool> Write for Unpacked<S> {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        if self.wants_more {
            self.wants_more = self.lines.piece(piece, &mut self.sink);
        }
        self.unpacked += piece.len() as u64;
        Ok(piece.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn gzip(cx: &Context, budget: &Budget<'_>, file: &File, sink: impl FnMut(&[u8]) -> bool) -> Result<End> {
    let unpacked =
        Unpacked { lines: LineSplitter::new(line_splitter::MOST), sink, wants_more: true, unpacked: 0 };
    let mut decoder = MultiGzDecoder::new(unpacked);
    let damaged = |decoder: &MultiGzDecoder<_>, error: &std::io::Error| {
        let unpacked: &Unpacked<_> = decoder.get_ref();
        let message = format!("{} is damaged after {} bytes: {error}", file.path, unpacked.unpacked);
        Problem::new("DAMAGED_FILE", Category::Other, message)
    };
    let end = raw(cx, budget, file, 0, |piece| {
        // A piece can be a thousand times as large once it is unpacked.
        for piece in piece.chunks(32 << 10) {
            decoder.write_all(piece).map_err(|error| damaged(&decoder, &error))?;
            if budget.spent().is_some() {
                return Ok(false);
            }
        }
        Ok(decoder.get_ref().wants_more)
    })?;
    if let Some(spent) = budget.spent() {
        return Ok(End::Spent(spent));
    }
    if end == End::Whole && decoder.get_ref().wants_more {
        decoder.try_finish().map_err(|error| damaged(&decoder, &error))?;
        let Unpacked { lines, sink, .. } = decoder.get_mut();
        lines.end(sink);
    }
    Ok(end)
}

fn unpacked(
    budget: &Budget<'_>,
    file: &File,
    mut stream: OutputStream,
    mut sink: impl FnMut(&[u8]) -> bool,
) -> Result<End> {
    let mut lines = LineSplitter::new(line_splitter::MOST);
    let mut is_any = false;
    loop {
        if let Some(spent) = budget.spent() {
            return Ok(End::Spent(spent));
        }
        let piece = budget.read(&mut stream)?;
        if piece.is_empty() {
            lines.end(&mut sink);
            // A stream reports no errors.
            if !is_any && file.size.is_some_and(|size| size > 64) {
                let message = format!("{} can't be unpacked", file.path);
                return Err(Problem::new("DAMAGED_FILE", Category::Other, message));
            }
            return Ok(End::Whole);
        }
        is_any = true;
        if !lines.piece(&piece, &mut sink) {
            return Ok(End::Whole);
        }
    }
}

/// Whether a piece is from a packed file, or from one with records of fixed length: it has many characters that no text has,
/// or zeros in several places. One or two runs of zeros are no sign, because truncated logs have them before their lines.
pub(crate) fn is_binary(piece: &[u8]) -> bool {
    let piece = &piece[..piece.len().min(8 << 10)];
    let zeros = piece.iter().filter(|byte| **byte == 0).count();
    let text = piece.len() - zeros;
    let odd = piece.iter().filter(|byte| **byte < 32 && !matches!(**byte, 0 | 7..=13 | 27)).count();
    let holes = piece.windows(2).filter(|pair| pair[0] != 0 && pair[1] == 0).count();
    text > 0 && (odd * 20 > text || zeros * 3 > piece.len() && holes > 2 && odd > 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;
    use crate::text_logs::file::family;
    use crate::text_logs::path::check;
    use crate::time_range::Range;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    fn read(target: FakeTarget, path: &str) -> Result<Vec<String>> {
        let cx = target.context();
        let budget = Budget::quick(&cx);
        let mut found = Vec::new();
        for file in family(&cx, &budget, path, Range::default())?.iter().rev() {
            each(&cx, &budget, file, 0, |line| {
                found.push(String::from_utf8_lossy(line).into_owned());
                true
            })?;
        }
        Ok(found)
    }

    /// The text as gzip packs it.
    pub(crate) fn packed(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn packed_files_are_read_like_others_and_damaged_ones_say_so() {
        let two = [packed("a\nb"), packed("c\nd\n")].concat();
        let target = || FakeTarget::new().file("/var/log/x", "");
        assert_eq!(
            read(target().file("/var/log/x.1.gz", two.clone()), "/var/log/x").unwrap(),
            ["a", "bc", "d"]
        );
        let problem = read(target().file("/var/log/x.1.gz", &two[..30]), "/var/log/x").unwrap_err();
        assert_eq!(problem.code, "DAMAGED_FILE");
        let xz = target().file("/var/log/x.1.xz", vec![1; 100]);
        let answers =
            |said: &str| xz.clone().answer(&["xz", "-d", "-c", "--", "/var/log/x.1.xz"], 0, said, "");
        assert_eq!(read(answers("e\nf"), "/var/log/x").unwrap(), ["e", "f"]);
        assert_eq!(read(answers(""), "/var/log/x").unwrap_err().code, "DAMAGED_FILE");
    }

    #[test]
    fn what_was_begun_to_be_unpacked_is_read_in_its_turn() {
        let target = FakeTarget::new()
            .file("/var/log/x", "a\n")
            .file("/var/log/x.1.xz", vec![1; 100])
            .answer(&["xz", "-d", "-c", "--", "/var/log/x.1.xz"], 0, "e\nf", "");
        let cx = target.context();
        let budget = Budget::quick(&cx);
        let files = family(&cx, &budget, "/var/log/x", Range::default()).unwrap();
        let mut unpacking = Unpacking::first(&cx, &budget, files.iter());
        let mut found = Vec::new();
        for file in &files {
            let begun = unpacking.take_if(|unpacking| unpacking.is_of(file));
            let read = each_of(&cx, &budget, file, 0, begun, |line| {
                found.push(String::from_utf8_lossy(line).into_owned());
                true
            });
            assert_eq!(read.unwrap(), End::Whole);
        }
        assert_eq!(found, ["a", "e", "f"]);
        assert!(unpacking.is_none());
    }

    #[test]
    fn whatever_is_in_a_file_its_lines_are_found() {
        let long = vec![b'x'; 10 << 20];
        for (contents, expected) in [
            (&b""[..], vec![]),
            (b"no end", vec!["no end".to_owned()]),
            (b"a\r\n\nb\n", vec!["a".to_owned(), String::new(), "b".to_owned()]),
            (b"caf\xe9\n", vec!["caf\u{fffd}".to_owned()]),
            (&[&long, &b"\nb\n"[..]].concat(), vec!["x".repeat(line_splitter::MOST), "b".to_owned()]),
            (&[&vec![0; 5 << 20], &b"\0\0a\n"[..]].concat(), vec!["a".to_owned()]),
        ] {
            assert_eq!(read(FakeTarget::new().file("/var/log/x", contents), "/var/log/x").unwrap(), expected);
        }
    }

    #[test]
    fn what_is_no_log_is_refused() {
        // The first record of a wtmp, as in utmp(5).
        let mut wtmp = vec![0; 1536];
        wtmp[0] = 2;
        wtmp[8] = b'~';
        wtmp[44..50].copy_from_slice(b"reboot");
        // The number of a process looks like the end of a line, and there is a time.
        wtmp[4] = b'\n';
        wtmp[340..344].copy_from_slice(&1_795_346_221_u32.to_le_bytes());
        let target = FakeTarget::new().file("/var/log/wtmp", wtmp).file("/var/log/nginx/error.log", "");
        for (path, code) in [
            ("/var/log/wtmp", "NOT_TEXT"),
            ("/var/log/nginx", "IS_A_DIRECTORY"),
            ("/var/log/none", "FILE_NOT_FOUND"),
        ] {
            assert_eq!(read(target.clone(), path).unwrap_err().code, code, "{path}");
        }
        let cx = target.context();
        for (path, code) in [
            ("/etc/passwd", "NOT_A_LOG"),
            ("/var/logs/x", "NOT_A_LOG"),
            ("/var/log/../../etc/shadow", "INVALID_PATH"),
            ("/var/log//x", "INVALID_PATH"),
            ("/var/log/", "INVALID_PATH"),
            ("var/log/x", "INVALID_PATH"),
            ("/var/log/x\ny", "INVALID_PATH"),
            ("", "INVALID_PATH"),
        ] {
            assert_eq!(check(&cx, path).unwrap_err().code, code, "{path}");
        }
    }
}
