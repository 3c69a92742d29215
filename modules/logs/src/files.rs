//! Text logs: which may be asked for, their rotated files, and their contents piece by piece, whatever their size.

use std::io::Write;

use flate2::write::MultiGzDecoder;
use linux_sysadmin_sdk::knowledge::{Log, LogFormat, LogSource, Profile};
use linux_sysadmin_sdk::{Category, DurationCategory, Privilege, prelude::*};

use crate::budget::{Budget, Spent};
use crate::form::Form;
use crate::moment::{Clock, Range, SECOND};
use crate::pieces::{self, Lines};

/// What is read at once of a file, in parts that the host gives.
const PART: u64 = 1 << 20;
const PARTS: u64 = 4;
/// What is read to see a time.
const PROBE: u64 = 64 << 10;
/// How long a program may go on writing to a file that was rotated.
pub(crate) const LATE: i64 = 3600;

/// Programs that unpack on the target what isn't unpacked here, as they are granted.
pub(crate) const XZ: CommandLine = CommandLine::new("xz -d -c -- <path:/var/log/**>");
pub(crate) const ZSTD: CommandLine = CommandLine::new("zstd -d -c -q -- <path:/var/log/**>");
pub(crate) const BZIP2: CommandLine = CommandLine::new("bzip2 -d -c -- <path:/var/log/**>");

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    None,
    Gzip,
    Xz,
    Zstd,
    Bzip2,
}

impl Packing {
    fn of(name: &str) -> Self {
        match name.rsplit('.').next() {
            Some("gz") => Self::Gzip,
            Some("xz") => Self::Xz,
            Some("zst") => Self::Zstd,
            Some("bz2") => Self::Bzip2,
            _ => Self::None,
        }
    }
}

/// A file with lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) path: String,
    /// Seconds since the epoch: nothing in it is later.
    pub(crate) modified: i64,
    /// None where it isn't known, as behind a link.
    pub(crate) size: Option<u64>,
    pub(crate) packing: Packing,
}

/// What is in it that is no text.
pub(crate) fn binary(path: &str) -> Problem {
    Problem::validation("NOT_TEXT", format!("{path} is no text")).remedy(
        "wtmp, btmp and lastlog are read by last, lastb and lastlog; the journal by log_query without path",
    )
}

/// Whether a path may be one of a log at all; the host looks again, and behind links.
pub(crate) fn check(cx: &Context, path: &str) -> Result<()> {
    let is_plain = path.starts_with('/')
        && !path.chars().any(char::is_control)
        && path.split('/').skip(1).all(|part| !matches!(part, "" | "." | ".."));
    if !is_plain {
        let message = format!("{path:?} is no path of a log; expected an absolute one without `.` and `..`");
        return Err(Problem::validation("INVALID_PATH", message));
    }
    if path.starts_with("/var/log/") || cx.detected().iter().any(|profile| form_of(profile, path).is_some()) {
        return Ok(());
    }
    let message = format!("{path} isn't in /var/log, and no profile of a service here names it as a log");
    Err(Problem::validation("NOT_A_LOG", message)
        .remedy("Ask for a file in /var/log, or for the journal by units"))
}

/// What a profile says of a file.
fn form_of<'a>(profile: &'a Profile, path: &str) -> Option<&'a Log> {
    profile.logs.iter().find(|log| matches!(&log.source, LogSource::Path(glob) if covers(glob, path)))
}

/// The form that a profile of a service here knows, else the usual ones.
pub(crate) fn form(profiles: &[Profile], path: &str) -> Result<Form> {
    let name = path.rsplit('/').next().unwrap_or(path);
    match profiles.iter().find_map(|profile| form_of(profile, path)) {
        Some(log) if log.format == LogFormat::Binary => Err(binary(path)),
        Some(log) => Form::of(log, name),
        None => Ok(Form::unknown(name)),
    }
}

/// As globs of profiles are written: `*` within a name, `**` for any depth. A rotated file is covered as well.
pub(crate) fn covers(glob: &str, path: &str) -> bool {
    fn parts(glob: &[&str], path: &[&str]) -> bool {
        match (glob, path) {
            ([], []) => true,
            (["**"], [_, ..]) => true,
            (["**", rest @ ..], [_, after @ ..]) => parts(rest, path) || parts(glob, after),
            ([last], [name]) => word(last, name) || is_rotated(last, name),
            ([first, rest @ ..], [name, after @ ..]) => word(first, name) && parts(rest, after),
            _ => false,
        }
    }
    parts(&glob.split('/').collect::<Vec<_>>(), &path.split('/').collect::<Vec<_>>())
}

/// `*` for any number of characters.
pub(crate) fn word(glob: &str, name: &str) -> bool {
    let mut parts = glob.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Whether a name is that of a rotated file of another: `syslog.1`, `syslog.2.gz`, `cron-20260101`, `x-20260101.log.xz`.
pub(crate) fn is_rotated(name: &str, rotated: &str) -> bool {
    let unpacked = [".gz", ".xz", ".zst", ".bz2"].iter().find_map(|packed| rotated.strip_suffix(packed));
    let plain = unpacked.unwrap_or(rotated);
    let is_counted = |text: &str| {
        let digits = text.trim_start_matches(['.', '-', '_']);
        text.len() > digits.len()
            && digits.starts_with(|letter: char| letter.is_ascii_digit())
            && digits.bytes().all(|byte| byte.is_ascii_digit() || b"-_.:T".contains(&byte))
    };
    if let Some(behind) = plain.strip_prefix(name) {
        return is_counted(behind) || matches!(behind, ".old") || behind.is_empty() && unpacked.is_some();
    }
    let within = name
        .rsplit_once('.')
        .and_then(|(stem, extension)| plain.strip_prefix(stem)?.strip_suffix(extension)?.strip_suffix('.'));
    within.is_some_and(is_counted)
}

/// A file and its rotated ones, newest first; those of which nothing lies in the range are left out.
pub(crate) fn family(cx: &Context, budget: &Budget<'_>, path: &str, range: Range) -> Result<Vec<File>> {
    let cx = &cx.files_as(Privilege::RootIfAvailable);
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let beside = budget.waiting(|| cx.list_dir(directory)).unwrap_or_default();
    let rotated = beside.iter().filter(|other| is_rotated(name, other));
    let paths: Vec<_> =
        std::iter::once(path.to_owned()).chain(rotated.map(|other| format!("{directory}/{other}"))).collect();
    let mut metadata = budget.waiting(|| cx.stat_all(&paths)).into_iter();
    let own = metadata.next().transpose()?.flatten();
    if own.as_ref().is_some_and(|own| own.is_dir) {
        let message = format!("{path} is a directory; expected a file");
        return Err(Problem::validation("IS_A_DIRECTORY", message)
            .remedy("log_disk_usage shows which files are in /var/log"));
    }
    let all = std::iter::once(own).chain(metadata.map(|other| other.ok().flatten())).zip(&paths);
    let mut files: Vec<_> = all
        .filter_map(|(metadata, path)| Some((metadata?, path)))
        .filter(|(metadata, _)| !metadata.is_dir)
        .map(|(metadata, path)| File {
            path: path.clone(),
            modified: if metadata.is_symlink { i64::MAX } else { metadata.modified_unix },
            size: (!metadata.is_symlink).then_some(metadata.size),
            packing: Packing::of(path),
        })
        .collect();
    if files.is_empty() {
        return Err(Problem::not_found("FILE_NOT_FOUND", format!("{path}: no such file")));
    }
    files.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| (a.path != path).cmp(&(b.path != path))));
    Ok(within(files, range))
}

/// Those that can hold lines of the range: a file begins where the one before it ends.
fn within(files: Vec<File>, range: Range) -> Vec<File> {
    let ends: Vec<_> = files.iter().skip(1).map(|file| file.modified).collect();
    let begins = ends.into_iter().map(Some).chain([None]);
    let is_meant = |file: &File, begins: Option<i64>| {
        range.since.is_none_or(|since| file.modified >= since)
            && range.until.zip(begins).is_none_or(|(until, begins)| begins - LATE <= until)
    };
    files
        .into_iter()
        .zip(begins)
        .filter(|(file, begins)| is_meant(file, *begins))
        .map(|(file, _)| file)
        .collect()
}

/// How the reading of a file ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At its end, or where the sink had enough.
    Whole,
    /// The call may use no more.
    Spent(Spent),
}

/// Each line of a file, oldest first, from a place on, until the sink has enough.
pub(crate) fn each(
    cx: &Context,
    budget: &Budget<'_>,
    file: &File,
    from: u64,
    mut sink: impl FnMut(&[u8]) -> bool,
) -> Result<End> {
    match file.packing {
        Packing::None => plain(cx, budget, file, from, sink),
        Packing::Gzip => gzip(cx, budget, file, sink),
        Packing::Xz => unpacked(cx, budget, file, XZ, &mut sink),
        Packing::Zstd => unpacked(cx, budget, file, ZSTD, &mut sink),
        Packing::Bzip2 => unpacked(cx, budget, file, BZIP2, &mut sink),
    }
}

/// Pieces of a file as they lie there, until the sink has enough.
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
    let mut lines = Lines::new(pieces::MOST);
    let mut is_first = true;
    // What is before the first whole line is the rest of another.
    let mut is_partial = from > 0;
    let mut wants_more = true;
    let end = raw(cx, budget, file, from, |piece| {
        if std::mem::take(&mut is_first) && is_binary(piece) {
            return Err(binary(&file.path));
        }
        if pieces::is_hole(piece) {
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

/// What is unpacked is cut into lines at once.
struct Unpacked<S> {
    lines: Lines,
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
    let unpacked = Unpacked { lines: Lines::new(pieces::MOST), sink, wants_more: true, unpacked: 0 };
    let mut decoder = MultiGzDecoder::new(unpacked);
    let damaged = |decoder: &MultiGzDecoder<_>, error: &std::io::Error| {
        let unpacked: &Unpacked<_> = decoder.get_ref();
        let message = format!("{} is damaged after {} bytes: {error}", file.path, unpacked.unpacked);
        Problem::new("DAMAGED_FILE", Category::Other, message)
    };
    let end = raw(cx, budget, file, 0, |piece| {
        // A small piece can be a thousand times as much.
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
    cx: &Context,
    budget: &Budget<'_>,
    file: &File,
    program: CommandLine,
    sink: &mut impl FnMut(&[u8]) -> bool,
) -> Result<End> {
    let command = program.with([&file.path]).privilege(Privilege::RootIfAvailable);
    let mut stream = budget.waiting(|| cx.open(command.duration(DurationCategory::Slow)))?;
    let mut lines = Lines::new(pieces::MOST);
    let mut is_any = false;
    loop {
        if let Some(spent) = budget.spent() {
            return Ok(End::Spent(spent));
        }
        let piece = budget.read(&mut stream)?;
        if piece.is_empty() {
            lines.end(&mut *sink);
            // A stream tells nothing of errors.
            if !is_any && file.size.is_some_and(|size| size > 64) {
                let message = format!("{} can't be unpacked", file.path);
                return Err(Problem::new("DAMAGED_FILE", Category::Other, message));
            }
            return Ok(End::Whole);
        }
        is_any = true;
        if !lines.piece(&piece, &mut *sink) {
            return Ok(End::Whole);
        }
    }
}

/// Whether a piece is of a file with records of fixed length, or of a packed one: text with zeros between, again and again,
/// or with characters that no text has. A hole or two say nothing, as truncated logs have them in front of their lines.
pub(crate) fn is_binary(piece: &[u8]) -> bool {
    let piece = &piece[..piece.len().min(8 << 10)];
    let zeros = piece.iter().filter(|byte| **byte == 0).count();
    let text = piece.len() - zeros;
    let odd = piece.iter().filter(|byte| **byte < 32 && !matches!(**byte, 0 | 7..=13 | 27)).count();
    let holes = piece.windows(2).filter(|pair| pair[0] != 0 && pair[1] == 0).count();
    text > 0 && (odd * 20 > text || zeros * 3 > piece.len() && holes > 2 && odd > 0)
}

/// Where the lines since a time begin in a file: a place somewhat before the first of them.
pub(crate) fn begin(
    cx: &Context,
    budget: &Budget<'_>,
    file: &File,
    form: &Form,
    clock: &Clock<'_>,
    range: Range,
) -> u64 {
    range.since.map_or(0, |since| around(cx, budget, file, form, clock, since).0)
}

/// Where the lines until a time end in a file of this size: a place somewhat behind the last of them.
pub(crate) fn end(
    cx: &Context,
    budget: &Budget<'_>,
    (file, size): (&File, u64),
    form: &Form,
    clock: &Clock<'_>,
    range: Range,
) -> u64 {
    range.until.map_or(size, |until| around(cx, budget, file, form, clock, until + 1).1)
}

/// Places before and behind the first line of a time: few pieces apart, unless nobody knows.
fn around(
    cx: &Context,
    budget: &Budget<'_>,
    file: &File,
    form: &Form,
    clock: &Clock<'_>,
    second: i64,
) -> (u64, u64) {
    let (Some(size), Packing::None) = (file.size, file.packing) else { return (0, u64::MAX) };
    let cx = &cx.files_as(Privilege::RootIfAvailable);
    let (mut low, mut high) = (0, size);
    while high - low > 8 * PART {
        let middle = low + (high - low) / 2;
        let part = (file.path.as_str(), i64::try_from(middle).unwrap_or(i64::MAX), PROBE);
        let Some(Ok(part)) = budget.read_parts(cx, &[part]).pop() else { break };
        let lines = part.split(|byte| *byte == b'\n').skip(1);
        match lines.filter_map(|line| form.time(line, clock, file.near(clock))).next() {
            Some(at) if at >= second * SECOND => high = middle + PROBE,
            Some(_) => low = middle,
            None => break,
        }
    }
    (low, high.min(size))
}

impl File {
    pub(crate) fn new(path: String, modified: i64, size: u64) -> Self {
        Self { packing: Packing::of(&path), path, modified, size: Some(size) }
    }

    /// A time that nothing in it lies after.
    pub(crate) fn near(&self, clock: &Clock<'_>) -> i64 {
        if self.modified == i64::MAX { clock.now() } else { self.modified }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::FakeTarget;

    #[test]
    fn a_rotated_file_is_known_by_its_name() {
        for (name, rotated) in [
            ("syslog", "syslog.1"),
            ("syslog", "syslog.2.gz"),
            ("cron", "cron-20260101"),
            ("cron", "cron-20260101.xz"),
            ("access.log", "access.log.12.zst"),
            ("access.log", "access-20260101.log"),
            ("access.log", "access.log-20260101-1767225600.bz2"),
            ("postgresql.log", "postgresql.log.old"),
        ] {
            assert!(is_rotated(name, rotated), "{rotated}");
        }
        for (name, other) in [
            ("syslog", "syslog"),
            ("syslog", "syslog-ng"),
            ("access.log", "access.log.bak~"),
            ("access.log", "other_access.log"),
            ("access.log", "access_admin.log"),
            ("auth.log", "auth.log.d"),
            ("log", "log.smbd"),
        ] {
            assert!(!is_rotated(name, other), "{other}");
        }
    }

    #[test]
    fn a_glob_covers_its_files_and_their_rotated_ones() {
        for (glob, path, expected) in [
            ("/var/log/x.log", "/var/log/x.log", true),
            ("/var/log/x.log", "/var/log/x.log.1.gz", true),
            ("/var/log/x.log", "/var/log/y.log", false),
            ("/var/lib/docker/containers/*/*-json.log", "/var/lib/docker/containers/3f/3f-json.log", true),
            ("/var/lib/docker/containers/*/*-json.log", "/var/lib/docker/containers/3f/config.json", false),
            ("/var/lib/docker/containers/*/*-json.log", "/var/lib/docker/containers/3f/a/3f-json.log", false),
            ("/var/log/pods/**", "/var/log/pods/a/b/0.log", true),
            ("/var/log/pods/**", "/var/log/pods", false),
            ("/var/log/samba/log.*", "/var/log/samba/log.smbd", true),
        ] {
            assert_eq!(covers(glob, path), expected, "{glob} {path}");
        }
    }

    #[test]
    fn what_cant_hold_lines_of_the_range_isnt_read() {
        let file = |modified: i64| File {
            path: modified.to_string(),
            modified: modified * 86_400,
            size: Some(1),
            packing: Packing::None,
        };
        let days = |since: Option<i64>, until: Option<i64>| -> Vec<i64> {
            let day = |day: Option<i64>| day.map(|day| day * 86_400);
            let files =
                within(vec![file(9), file(6), file(3)], Range { since: day(since), until: day(until) });
            files.iter().map(|file| file.modified / 86_400).collect()
        };
        assert_eq!(days(None, None), [9, 6, 3]);
        assert_eq!(days(Some(7), None), [9]);
        assert_eq!(days(Some(5), None), [9, 6]);
        assert_eq!(days(None, Some(5)), [6, 3]);
        assert_eq!(days(Some(10), None), [] as [i64; 0]);
        assert_eq!(days(Some(4), Some(5)), [6]);
    }

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

    fn packed(text: &str) -> Vec<u8> {
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
    fn whatever_is_in_a_file_its_lines_are_found() {
        let long = vec![b'x'; 10 << 20];
        for (contents, expected) in [
            (&b""[..], vec![]),
            (b"no end", vec!["no end".to_owned()]),
            (b"a\r\n\nb\n", vec!["a".to_owned(), String::new(), "b".to_owned()]),
            (b"caf\xe9\n", vec!["caf\u{fffd}".to_owned()]),
            (&[&long, &b"\nb\n"[..]].concat(), vec!["x".repeat(pieces::MOST), "b".to_owned()]),
            (&[&vec![0; 5 << 20], &b"\0\0a\n"[..]].concat(), vec!["a".to_owned()]),
        ] {
            assert_eq!(read(FakeTarget::new().file("/var/log/x", contents), "/var/log/x").unwrap(), expected);
        }
    }

    #[test]
    fn what_is_no_log_is_refused() {
        // The first record of a wtmp, utmp(5).
        let mut wtmp = vec![0; 1536];
        wtmp[0] = 2;
        wtmp[8] = b'~';
        wtmp[44..50].copy_from_slice(b"reboot");
        // A process's number that reads as the end of a line, and a time.
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
