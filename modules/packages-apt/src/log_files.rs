//! Logs with their rotated files, compressed or not, of which the latest are read. All logs are read at the same time, and each
//! time twice as many of their files as before: over a slow connection, small files take long only where they are asked for one
//! after the other.

use std::collections::VecDeque;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::text::lossy_string;

/// The most bytes that are read of one file, uncompressed. Of a larger one, the end is read.
const MOST_BYTES: usize = 4 << 20;
/// The most bytes that one question reads.
const PART: u64 = 1 << 20;

/// A log, and what was found in it.
pub(crate) struct Log<'a, T> {
    directory: &'a str,
    name: &'a str,
    /// Reads a file, the oldest entry first.
    parse: fn(&str) -> Vec<T>,
    /// The files that haven't been read, the latest first.
    left: VecDeque<File>,
    /// The entries, the latest first.
    found: Vec<T>,
}

impl<'a, T> Log<'a, T> {
    pub(crate) fn new(directory: &'a str, name: &'a str, parse: fn(&str) -> Vec<T>) -> Self {
        Self { directory, name, parse, left: VecDeque::new(), found: Vec::new() }
    }

    /// The paths of its files, the latest first: `history.log`, `history.log.1.gz`, `history.log.2.gz` ….
    fn paths(&self, names: Vec<String>) -> Vec<String> {
        let age = |file: &str| {
            let rest = file.strip_prefix(self.name)?;
            let rest = rest.strip_suffix(".gz").unwrap_or(rest);
            if rest.is_empty() { Some(0) } else { rest.strip_prefix('.')?.parse::<u32>().ok() }
        };
        let mut files: Vec<_> = names.into_iter().filter_map(|file| Some((age(&file)?, file))).collect();
        files.sort();
        files.into_iter().map(|(_, file)| format!("{}/{file}", self.directory)).collect()
    }

    /// The next files: at most so many, and together no more bytes than one file may have.
    fn next(&mut self, most: usize) -> Vec<File> {
        let (mut files, mut bytes) = (Vec::new(), 0);
        while files.len() < most
            && let Some(file) =
                self.left.pop_front_if(|file| bytes == 0 || bytes + file.read_size() <= MOST_BYTES as u64)
        {
            bytes += file.read_size();
            files.push(file);
        }
        files
    }
}

/// Returns the entries of each log, the latest first. Of a log that has enough of them, no older file is read.
pub(crate) fn latest<T, const N: usize>(
    mut logs: [Log<'_, T>; N],
    is_enough: impl Fn(usize) -> bool,
    cx: &Context,
) -> Result<[Vec<T>; N]> {
    find_files(&mut logs, cx)?;
    let mut most = 1;
    loop {
        let next =
            logs.each_mut().map(|log| if is_enough(log.found.len()) { Vec::new() } else { log.next(most) });
        if next.iter().all(Vec::is_empty) {
            return Ok(logs.map(|log| log.found));
        }
        let parts: Vec<_> = next.iter().flatten().flat_map(File::parts).collect();
        let mut read = cx.read_parts(&parts).into_iter();
        for (log, files) in logs.iter_mut().zip(&next) {
            for file in files {
                let parts: Result<Vec<_>> = read.by_ref().take(file.parts().count()).collect();
                let contents = parts?.concat();
                if !is_enough(log.found.len()) {
                    log.found.extend((log.parse)(&file.text(contents)).into_iter().rev());
                }
            }
        }
        most *= 2;
    }
}

/// Finds the files of all logs.
fn find_files<T>(logs: &mut [Log<'_, T>], cx: &Context) -> Result<()> {
    let directories: Vec<&str> = logs.iter().map(|log| log.directory).collect();
    let mut paths = Vec::new();
    for (log, names) in logs.iter().zip(cx.list_all(&directories)) {
        let names = match names {
            Err(problem) if problem.code == "FILE_NOT_FOUND" => Vec::new(),
            names => names?,
        };
        paths.push(log.paths(names));
    }
    let mut found = cx.stat_all(&paths.concat()).into_iter();
    for (log, paths) in logs.iter_mut().zip(paths) {
        for (path, found) in paths.into_iter().zip(&mut found) {
            log.left.push_back(File { path, size: found?.map_or(0, |found| found.size) });
        }
    }
    Ok(())
}

/// A file of a log.
struct File {
    path: String,
    size: u64,
}

impl File {
    fn is_packed(&self) -> bool {
        self.path.ends_with(".gz")
    }

    fn read_size(&self) -> u64 {
        self.size.min(MOST_BYTES as u64)
    }

    /// The offset of the first byte that is read.
    fn begin(&self) -> u64 {
        if self.is_packed() { 0 } else { self.size - self.read_size() }
    }

    fn parts(&self) -> impl Iterator<Item = (&str, i64, u64)> {
        let offsets = (self.begin()..self.begin() + self.read_size()).step_by(PART as usize);
        offsets.map(|at| (self.path.as_str(), at.cast_signed(), PART))
    }

    /// The text, unpacked. Of a large one only the end is left, from the first whole line on.
    fn text(&self, contents: Vec<u8>) -> String {
        let (contents, is_cut) = match self.is_packed() {
            true => end(MultiGzDecoder::new(contents.as_slice())),
            false => (contents, self.begin() > 0),
        };
        let text = lossy_string(contents);
        if is_cut { text.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned()) } else { text }
    }
}

/// Reads the last part of a stream without keeping the rest, and says whether there was more before it. A stream that
/// breaks off ends there.
fn end(mut reader: impl Read) -> (Vec<u8>, bool) {
    let (mut kept, mut piece, mut is_cut) = (Vec::new(), vec![0; 1 << 16], false);
    loop {
        let read = reader.read(&mut piece).unwrap_or(0);
        kept.extend_from_slice(&piece[..read]);
        if kept.len() > 2 * MOST_BYTES || read == 0 && kept.len() > MOST_BYTES {
            kept.drain(..kept.len() - MOST_BYTES);
            is_cut = true;
        }
        if read == 0 {
            return (kept, is_cut);
        }
    }
}
