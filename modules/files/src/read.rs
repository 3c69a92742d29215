//! `file_read`: a file's text by lines or bytes, with what an edit of it needs to know.
//!
//! The text is redacted line by line, with the whole file or many lines around as the context, so that a key is recognized
//! whose first line isn't shown. A hash is told only of a file without secrets, because it would let somebody guess them.

use linux_sysadmin_sdk::time::rfc3339;
use linux_sysadmin_sdk::{Category, prelude::*};

use crate::decode::{Decoded, decode, whole_characters};
use crate::lines::{self, LineEnd, Lines};
use crate::original::{self, LARGEST, PIECE, contents, sha256};
use crate::patch_files::too_many_lines;
use crate::places::{check, look, shown};
use crate::private::must_be_open;
use crate::{owner, service};

/// The most lines and bytes of an answer.
const MOST_LINES: usize = 1000;
const MOST_BYTES: usize = 64 << 10;
/// The number of bytes before a part, in which a key may begin.
const MARGIN: u64 = 32 << 10;
/// The number of bytes that are searched for a line of a large file.
const MOST_SCANNED: u64 = 64 << 20;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ReadArgs {
    /// File, absolute
    path: String,
    /// First line
    from: Option<usize>,
    /// Last line
    to: Option<usize>,
    /// The number of last lines
    tail: Option<usize>,
    /// Bytes from here; negative: from the end
    offset: Option<i64>,
    /// Number of bytes
    bytes: Option<usize>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Read {
    path: String,
    /// The target of a symlink. Everything else describes the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    leads_to: Option<String>,
    size: u64,
    mode: String,
    owner: String,
    group: String,
    modified: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
    /// The format of a file that isn't text.
    #[serde(skip_serializing_if = "Option::is_none")]
    binary: Option<&'static str>,
    /// `crlf`, or `mixed`. Left out where every line ends in a newline alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_ends: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    no_newline_at_end: bool,
    /// The number of all lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<usize>,
    /// The number of the first line of `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The lines of `text` in which something was redacted. They can't be patched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    redacted: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    profiles: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<String>,
}

pub(crate) fn file_read(args: ReadArgs, cx: &Context) -> Result<Noted<Read>> {
    check(&args.path, cx)?;
    let kinds = [
        args.from.or(args.to).is_some(),
        args.tail.is_some(),
        args.offset.or(args.bytes.map(|_| 0)).is_some(),
    ];
    let is_reversed = args.to.zip(args.from).is_some_and(|(to, from)| to < from);
    if kinds.iter().filter(|is_asked| **is_asked).count() > 1 || args.from == Some(0) || is_reversed {
        let message = "expected from and to, or tail, or offset and bytes; lines are counted from 1";
        return Err(Problem::validation("INVALID_RANGE", message));
    }
    let path = &args.path;
    let mut found = original::metadata(path, cx)?.ok_or_else(|| {
        let directory = path.rsplit_once('/').map_or("/", |(directory, _)| directory);
        original::no_such(path).remedy(format!("See what is there: file_list path={}", shown(directory)))
    })?;
    let mut read = Read { path: path.clone(), ..Read::default() };
    if found.is_symlink {
        let target = original::leads_to(path, cx).ok_or_else(|| original::is_symlink(path, cx))?;
        check(&target, cx)?;
        found = original::metadata(&target, cx)?.ok_or_else(|| {
            let message = format!("{} is a symlink to {}, which isn't there", shown(path), shown(&target));
            Problem::not_found("FILE_NOT_FOUND", message)
        })?;
        read.leads_to = Some(target);
    }
    let path = read.leads_to.clone().unwrap_or_else(|| path.clone());
    if found.is_dir {
        let message = format!("{} is a directory: expected a file", shown(&path));
        return Err(Problem::validation("IS_A_DIRECTORY", message)
            .remedy(format!("List it: file_list path={}", shown(&path))));
    }
    must_be_open(&path, &found, cx)?;
    read.size = found.size;
    read.mode = format!("{:04o}", found.mode);
    (read.owner, read.group) = (found.owner, found.group);
    read.modified = rfc3339(found.modified_unix);
    let mut notes = Vec::new();
    // The kernel's files say that they are empty.
    let is_kernels = path.starts_with("/proc/") || path.starts_with("/sys/");
    if let Some(offset) = args.offset.or(args.bytes.map(|_| 0)) {
        part(&mut read, &path, offset, args.bytes.unwrap_or(MOST_BYTES), cx)?;
    } else if found.size <= LARGEST {
        let size = if is_kernels { 0 } else { found.size };
        let contents = contents(&path, size, cx)?;
        if contents.len() as u64 != found.size && !is_kernels {
            notes.push(format!("its size changed while it was read: {} bytes were read", contents.len()));
        }
        match contents.iter().filter(|byte| **byte == b'\n').count() < lines::MOST {
            true => whole(&mut read, &args, contents, &mut notes, cx)?,
            false => large(&mut read, &args, &path, &mut notes, cx)?,
        }
        // The kernel's files have other contents each time.
        read.sha256.take_if(|_| is_kernels);
    } else {
        large(&mut read, &args, &path, &mut notes, cx)?;
    }
    read.profiles = service::profiles(&path, cx);
    read.package = owner::package(&path, cx);
    Ok(Noted { data: read, notes })
}

/// Shows lines of a file that was read whole.
fn whole(
    read: &mut Read,
    args: &ReadArgs,
    contents: Vec<u8>,
    notes: &mut Vec<String>,
    cx: &Context,
) -> Result<()> {
    let hash = sha256(&contents);
    let text = match decode(contents) {
        Decoded::Text { text, encoding } => {
            read.encoding = encoding;
            text
        }
        Decoded::Binary(format) => {
            (read.binary, read.sha256) = (Some(format), Some(hash));
            return Ok(());
        }
    };
    let lines = Lines::new(text.as_bytes()).ok_or_else(|| too_many_lines(&read.path))?.with_secrets(cx);
    read.sha256 = (!lines.has_hidden()).then_some(hash);
    let crlf =
        (0..lines.len()).filter(|at| lines.has_newline(*at) && lines.end(*at) == LineEnd::CrLf).count();
    let ended = (0..lines.len()).filter(|at| lines.has_newline(*at)).count();
    read.line_ends = (crlf > 0).then_some(if crlf == ended { "crlf" } else { "mixed" });
    read.no_newline_at_end = ended != lines.len();
    read.lines = Some(lines.len());
    let first = match (args.tail, args.from) {
        (Some(tail), _) => lines.len().saturating_sub(tail),
        (None, from) => from.unwrap_or(1) - 1,
    };
    if first >= lines.len() && args.from.is_some() {
        let message =
            format!("{} has {} lines, and line {} is asked for", shown(&read.path), lines.len(), first + 1);
        return Err(Problem::validation("INVALID_RANGE", message));
    }
    let last = args.to.unwrap_or(lines.len()).min(lines.len());
    show(read, &lines, first, last, notes);
    Ok(())
}

/// Shows the lines from `first` to before `last`, as many as an answer takes.
fn show(read: &mut Read, lines: &Lines<'_>, first: usize, last: usize, notes: &mut Vec<String>) {
    let mut text = String::new();
    let mut at = first;
    while at < last.min(first + MOST_LINES) {
        let line = lines.shown(at);
        if text.len() + line.len() > MOST_BYTES && !text.is_empty() {
            break;
        }
        if lines.is_hidden(at) {
            read.redacted.push(at + 1);
        }
        if line.len() > MOST_BYTES {
            text.push_str(&line.chars().take(MOST_BYTES / 4).collect::<String>());
            notes.push(format!("line {} has {} bytes and is cut; read it with offset", at + 1, line.len()));
        } else {
            text.push_str(&line);
        }
        text.push('\n');
        at += 1;
    }
    if at < last {
        notes.push(format!(
            "cut after line {at}; go on with file_read path={} from={}",
            shown(&read.path),
            at + 1
        ));
    }
    (read.from, read.text) = (Some(first + 1), Some(text));
}

/// Reads bytes of a file at an offset.
fn bytes_at(path: &str, offset: i64, length: u64, cx: &Context) -> Result<Vec<u8>> {
    look(path, cx, |privilege| cx.files_as(privilege).read_parts(&[(path, offset, length)]).remove(0))
}

/// Shows bytes of a file.
fn part(read: &mut Read, path: &str, offset: i64, length: usize, cx: &Context) -> Result<()> {
    let length = length.clamp(1, MOST_BYTES);
    // The text before the part may begin a key.
    let margin = (MARGIN as i64).min(if offset < 0 { read.size as i64 + offset } else { offset }.max(0));
    let found = bytes_at(path, offset - margin, (length as i64 + margin) as u64, cx)?;
    let (before, own) = found.split_at((margin as usize).min(found.len()));
    let (before, own) = (decode(before.to_vec()), decode(whole_characters(own).to_vec()));
    let text = match own {
        Decoded::Text { text, encoding } => {
            read.encoding = encoding;
            text
        }
        Decoded::Binary(format) => {
            read.binary = Some(format);
            return Ok(());
        }
    };
    let before = if let Decoded::Text { text, .. } = before { text } else { String::new() };
    // The part may begin in the middle of a line.
    let whole = format!("{before}{text}");
    let own: Vec<String> = whole.split('\n').map(str::to_owned).collect();
    let redacted = cx.redacted(own.clone());
    let first = before.matches('\n').count();
    let begun = before.rsplit('\n').next().unwrap_or_default().len();
    let mut shown_text = String::new();
    for (index, (line, hidden)) in own.iter().zip(&redacted).enumerate().skip(first) {
        if index > first {
            shown_text.push('\n');
        }
        match line == hidden {
            true => shown_text.push_str(if index == first { &line[begun.min(line.len())..] } else { line }),
            // A part of a redacted line could hold a part of the secret.
            false if index == first => shown_text.push_str("[redacted]"),
            false => shown_text.push_str(hidden),
        }
    }
    read.text = Some(shown_text);
    Ok(())
}

/// Shows lines of a file that is too large to be read whole.
fn large(read: &mut Read, args: &ReadArgs, path: &str, notes: &mut Vec<String>, cx: &Context) -> Result<()> {
    notes.push(format!(
        "the file has more than {LARGEST} bytes or {} lines, so that it isn't hashed and its lines aren't counted",
        lines::MOST
    ));
    let (piece, first, number) = match args.tail {
        Some(tail) => {
            let piece = bytes_at(path, -(PIECE as i64), PIECE, cx)?;
            let lines = piece.iter().filter(|byte| **byte == b'\n').count();
            (piece, lines.saturating_sub(tail), None)
        }
        None => scanned(path, args.from.unwrap_or(1), cx)?,
    };
    let text = match decode(whole_characters(&piece).to_vec()) {
        Decoded::Text { text, encoding } => {
            read.encoding = encoding;
            text
        }
        Decoded::Binary(format) => {
            read.binary = Some(format);
            return Ok(());
        }
    };
    let lines = Lines::new(text.as_bytes()).ok_or_else(|| too_many_lines(path))?.with_secrets(cx);
    let asked = args.to.zip(number).map(|(to, number)| to + 1 - number.min(to));
    let last = asked.map_or(lines.len(), |count| first + count).min(lines.len());
    show(read, &lines, first, last, notes);
    // The numbers of the lines are known only where the file was read from its beginning.
    read.from = number;
    match number {
        Some(number) => {
            read.redacted.iter_mut().for_each(|line| *line = *line - (first + 1) + number);
            notes.retain(|note| !note.starts_with("cut after line"));
            let shown_lines = read.text.as_ref().map_or(0, |text| text.matches('\n').count());
            if args.to.is_none_or(|to| to >= number + shown_lines) {
                notes.push(format!(
                    "go on with file_read path={} from={}",
                    shown(path),
                    number + shown_lines
                ));
            }
        }
        None => {
            read.redacted.clear();
            notes.retain(|note| !note.starts_with("cut after line"));
        }
    }
    Ok(())
}

/// A piece of a large file with a line and what follows it: its bytes, the index of the line in it, and the line's number.
fn scanned(path: &str, from: usize, cx: &Context) -> Result<(Vec<u8>, usize, Option<usize>)> {
    let begin = begin_of(path, from, cx)?;
    // Some text before the line stays, in which a key may begin.
    let margin = begin.min(MARGIN);
    let piece = bytes_at(path, (begin - margin) as i64, PIECE, cx)?;
    let before = piece.get(..margin as usize).unwrap_or(&piece);
    let index = before.iter().filter(|byte| **byte == b'\n').count();
    Ok((piece, index, Some(from)))
}

/// The offset at which a line of a large file begins.
fn begin_of(path: &str, from: usize, cx: &Context) -> Result<u64> {
    let (mut offset, mut begin, mut number) = (0, 0, 1);
    while offset < MOST_SCANNED {
        let piece = bytes_at(path, offset as i64, PIECE, cx)?;
        if number == from && (!piece.is_empty() || begin < offset) {
            return Ok(begin);
        }
        if piece.is_empty() {
            let lines = if begin < offset { number } else { number - 1 };
            let message = format!("{} has {lines} lines, and line {from} is asked for", shown(path));
            return Err(Problem::validation("INVALID_RANGE", message));
        }
        for (at, _) in piece.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            (begin, number) = (offset + at as u64 + 1, number + 1);
            // A line begins only where something follows the newline, which the next piece shows.
            if number == from && at + 1 < piece.len() {
                return Ok(begin);
            }
            if number == from {
                break;
            }
        }
        offset += piece.len() as u64;
    }
    let message = format!("line {from} of {} is below the first {MOST_SCANNED} bytes", shown(path));
    Err(Problem::new("FILE_TOO_LARGE", Category::Resource, message)
        .remedy("Read it with offset and bytes, or with tail"))
}
