//! `file_search`: the lines of files that match an expression, with lines around them.
//!
//! `find` names the files of the trees. The host says which of them may be read: no secret is among those, and private
//! files are left out. `grep` on the target leaves out files that can't match, unless there are only a few small ones, and
//! the others are read. The expression is matched here, in linear time, and against the redacted lines only, because a
//! match would otherwise tell what is hidden.

use linux_sysadmin_sdk::knowledge::expression;
use linux_sysadmin_sdk::paths::Paths;
use linux_sysadmin_sdk::{DurationCategory, Privilege, prelude::*, text::excerpt};
use regex::Regex;
use regex_syntax::hir::literal::Extractor;

use crate::closed::ClosedDirectories;
use crate::decode::{Decoded, decode};
use crate::find::{Kind, Top, depth, is_untrusted, to_depth, top};
use crate::original::{self, LARGEST, PIECE};
use crate::places::{check, is_named, is_own, look};
use crate::private::{is_known, may_be_private, must_be_open};

/// The most trees of one call.
const MOST_PATHS: usize = 10;
/// The most files that are looked at, and the most bytes that are read.
const MOST_FILES: usize = 5000;
const MOST_BYTES: u64 = 32 << 20;
/// The most files of which it is looked up whether they are private. The others count as private.
const MOST_LOOKED_UP: usize = 50;
/// The number of files, and of bytes of their paths, that one command names.
const AT_ONCE: usize = 300;
const NAMED_BYTES: usize = 60 << 10;
/// The most files, and bytes of them, that are read without asking grep which ones can match.
const MOST_AT_ONCE: usize = 16;
const BYTES_AT_ONCE: u64 = 64 << 10;
/// The most lines and bytes of an answer.
const MOST_LINES: usize = 500;
const MOST_SHOWN: usize = 48 << 10;
/// The number of characters of a line.
const LONGEST: usize = 300;
/// The most lines around a match.
const MOST_AROUND: usize = 20;
/// The time in seconds after which no more files are read.
const SECONDS: f64 = 60.0;
/// The shortest text that grep looks for; shorter ones are in nearly every file.
const SHORTEST: usize = 3;
/// The most texts that grep looks for.
const MOST_TEXTS: usize = 16;

pub(crate) fn grants() -> [CommandGrant; 2] {
    let grant = CommandGrant::read(
        concat!(
            "LC_ALL=C grep --files-with-matches --null --no-messages --fixed-strings [--ignore-case] ",
            "--regexp=<text>... -- <path>..."
        ),
        "which files can match, of those that may be read; it prints their names only",
    );
    [grant.clone().as_root_if_available(), grant.as_user("*")]
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct SearchArgs {
    /// Regex crate's syntax
    pattern: String,
    /// Files or directories
    path: Paths,
    /// File names, as *.conf
    glob: Option<String>,
    /// Either case
    #[serde(default)]
    ignore_case: bool,
    /// Plain text
    #[serde(default)]
    fixed: bool,
    /// Lines around; default 0
    context: Option<usize>,
    /// Levels, default 8
    depth: Option<u32>,
}

/// The matches in one file.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    path: String,
    matches: usize,
    /// `12:` before a line that matches, `11-` before one around it, `--` between groups.
    lines: Vec<String>,
}

/// A file that may be searched.
struct Candidate {
    path: String,
    size: u64,
}

/// The numbers of files that were left out, by the reason.
#[derive(Default)]
struct Skipped {
    large: usize,
    binary: usize,
    denied: usize,
    private: usize,
    unread: usize,
    beyond: bool,
}

pub(crate) fn file_search(args: SearchArgs, cx: &Context) -> Result<Listing<Found>> {
    if args.pattern.is_empty() {
        return Err(Problem::validation("EMPTY_PATTERN", "pattern is empty: expected what to search for"));
    }
    let pattern = if args.fixed { regex::escape(&args.pattern) } else { args.pattern.clone() };
    let matcher = expression(&if args.ignore_case { format!("(?i:{pattern})") } else { pattern.clone() })?;
    let around = args.context.unwrap_or(0).min(MOST_AROUND);
    let depth = depth(args.depth, 8)?;
    let started = cx.monotonic();
    let mut skipped = Skipped::default();
    let mut files = Vec::new();
    for path in args.path.checked(MOST_PATHS, |path| check(path, cx))? {
        named(&path, depth, args.glob.as_deref(), &mut files, &mut skipped, cx)?;
    }
    readable(&mut files, &mut skipped, cx);
    let searched = files.len();
    let texts = texts(&pattern, args.ignore_case);
    let mut at_once = Vec::new();
    let bytes: u64 = files.iter().map(|file| file.size).sum();
    if files.len() <= MOST_AT_ONCE && bytes <= BYTES_AT_ONCE {
        at_once = contents_at_once(&files, cx);
    } else if let Some(texts) = &texts {
        files = narrowed(files, texts, args.ignore_case, cx);
    }
    let mut answer = Answer::default();
    let mut read = 0;
    for (index, file) in files.into_iter().enumerate() {
        let is_over = read + file.size > MOST_BYTES || cx.monotonic() - started > SECONDS;
        if is_over || answer.is_full() {
            skipped.beyond = true;
            break;
        }
        let size = file.size;
        let contents = at_once.get_mut(index).and_then(Option::take);
        let has_match = match text(&file, contents, cx) {
            Ok(Some(text)) => answer.search(file.path, &text, &matcher, around, cx),
            Ok(None) => {
                skipped.binary += usize::from(texts.is_none());
                false
            }
            Err(_) => {
                skipped.unread += 1;
                false
            }
        };
        // A file that grep has found for its secret alone must leave no trace.
        if has_match || texts.is_none() {
            read += size;
        }
    }
    let total = answer.found.len() as u64;
    let mut notes = Vec::new();
    if total == 0 {
        notes.push(format!("{searched} files were searched"));
    } else if answer.matches as u64 > total {
        notes.push(format!("{} lines match", answer.matches));
    }
    notes.extend(skipped.told());
    if answer.is_cut {
        notes.push(format!("lines after the first {MOST_LINES} or {MOST_SHOWN} bytes are left out"));
    }
    Ok(Listing { items: answer.found, total: None, notes })
}

/// Adds the files at a path whose names the glob covers.
fn named(
    path: &str,
    depth: u32,
    glob: Option<&str>,
    files: &mut Vec<Candidate>,
    skipped: &mut Skipped,
    cx: &Context,
) -> Result<()> {
    match top(path, cx)? {
        Top::Nothing => return Err(original::no_such(path)),
        Top::Symlink => return Err(original::is_symlink(path, cx)),
        Top::File(found) => {
            must_be_open(path, &found, cx)?;
            files.push(Candidate { path: path.to_owned(), size: found.size });
            return Ok(());
        }
        Top::Directory => {}
    }
    let tree = to_depth(path, depth, cx)?;
    skipped.beyond |= tree.is_cut;
    let directory = path.trim_end_matches('/');
    for item in tree.items.into_iter().filter(|item| item.kind == Kind::File) {
        let name = item.path.rsplit('/').next().unwrap_or(&item.path);
        if glob.is_some_and(|glob| !is_named(glob, name) && !is_named(glob, &item.path)) {
            continue;
        }
        if files.len() == MOST_FILES {
            skipped.beyond = true;
            break;
        }
        files.push(Candidate { path: format!("{directory}/{}", item.path), size: item.size });
    }
    Ok(())
}

/// Keeps the files that the host lets the module read, and that aren't too large.
fn readable(files: &mut Vec<Candidate>, skipped: &mut Skipped, cx: &Context) {
    // Profiles name files with secrets of their services, which the host then denies.
    let _ = cx.detected();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    let all = files.len();
    files.retain(|file| file.size <= LARGEST);
    skipped.large += all - files.len();
    let paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
    let mut verdicts = Vec::with_capacity(paths.len());
    for paths in
        paths.chunk_by(|one, other| is_own(one) == is_own(other)).flat_map(|paths| paths.chunks(AT_ONCE))
    {
        let privilege = if is_own(&paths[0]) { Privilege::Caller } else { Privilege::RootIfAvailable };
        let found = cx.files_as(privilege.clone()).stat_all(paths);
        verdicts.extend(found.into_iter().map(|found| (found, privilege.clone())));
    }
    let directories = ClosedDirectories::above(paths.iter().map(String::as_str), cx);
    let mut verdicts = verdicts.into_iter();
    let mut looked_up = 0;
    files.retain(|file| match verdicts.next() {
        Some((Ok(Some(found)), used)) => {
            let is_private = may_be_private(&file.path, &found, &used, &directories, cx) && {
                looked_up += 1;
                looked_up > MOST_LOOKED_UP || !is_known(&file.path, cx)
            };
            skipped.private += usize::from(is_private);
            !found.is_symlink && !found.is_dir && !is_private
        }
        // Below a directory of another account, the file is read with other rights.
        Some((Err(problem), _)) => {
            let is_kept = is_untrusted(&problem);
            skipped.denied += usize::from(!is_kept);
            is_kept
        }
        _ => false,
    });
}

/// Texts of which every match holds one. None where there are no such texts.
fn texts(pattern: &str, ignore_case: bool) -> Option<Vec<String>> {
    let hir = regex_syntax::ParserBuilder::new().multi_line(true).build().parse(pattern).ok()?;
    let literals = Extractor::new().limit_total(MOST_TEXTS).extract(&hir);
    let literals =
        literals.literals()?.iter().map(|literal| String::from_utf8(literal.as_bytes().to_vec()).ok());
    let texts: Vec<String> = literals.collect::<Option<_>>()?;
    let is_usable = |text: &String| {
        (SHORTEST..200).contains(&text.len())
            && !text.starts_with('-')
            && !text.chars().any(char::is_control)
            // grep in the C locale knows no other case of other letters.
            && (!ignore_case || text.is_ascii())
    };
    (!texts.is_empty() && texts.len() <= MOST_TEXTS && texts.iter().all(is_usable)).then_some(texts)
}

/// The files that hold one of the texts. Where grep can't tell, a file stays.
fn narrowed(files: Vec<Candidate>, texts: &[String], ignore_case: bool, cx: &Context) -> Vec<Candidate> {
    let mut left = Vec::new();
    let mut rest = &files[..];
    let mut kept = vec![false; files.len()];
    while !rest.is_empty() {
        let mut bytes = 0;
        let count = rest.iter().take(AT_ONCE).take_while(|file| {
            bytes += file.path.len() + 1;
            bytes <= NAMED_BYTES
        });
        let count = count.count().max(1);
        let (chunk, behind) = rest.split_at(count);
        let from = files.len() - rest.len();
        let command = Command::new("grep")
            .env("LC_ALL", "C")
            .args(["--files-with-matches", "--null", "--no-messages", "--fixed-strings"])
            .args(ignore_case.then_some("--ignore-case"))
            .args(texts.iter().map(|text| format!("--regexp={text}")))
            .arg("--")
            .args(chunk.iter().map(|file| &file.path))
            .duration(DurationCategory::Normal);
        let run = |privilege: Privilege| cx.run(command.clone().privilege(privilege));
        match look(&chunk[0].path, cx, run) {
            // With 2, some file could not be read, and so can't be searched either.
            Ok(output) if output.exit_code <= 2 && !output.truncated => {
                let names: std::collections::HashSet<String> = output
                    .stdout
                    .split(|byte| *byte == 0)
                    .map(|name| String::from_utf8_lossy(name).into_owned())
                    .collect();
                for (index, file) in chunk.iter().enumerate() {
                    kept[from + index] = names.contains(&file.path);
                }
            }
            _ => kept[from..from + count].fill(true),
        }
        rest = behind;
    }
    for (file, is_kept) in files.into_iter().zip(kept) {
        if is_kept {
            left.push(file);
        }
    }
    left
}

/// The contents of small files, which are read in one look for each kind of rights. None where that look doesn't reach a file.
fn contents_at_once(files: &[Candidate], cx: &Context) -> Vec<Option<Vec<u8>>> {
    let same_rights = |one: &Candidate, other: &Candidate| is_own(&one.path) == is_own(&other.path);
    let contents = files.chunk_by(same_rights).flat_map(|files| {
        let privilege = if is_own(&files[0].path) { Privilege::Caller } else { Privilege::RootIfAvailable };
        let parts: Vec<_> = files.iter().map(|file| (file.path.as_str(), 0, PIECE)).collect();
        cx.files_as(privilege).read_parts(&parts)
    });
    contents.map(Result::ok).collect()
}

/// The text of a file, whose contents may be read already. None where it isn't text.
fn text(file: &Candidate, contents: Option<Vec<u8>>, cx: &Context) -> Result<Option<String>> {
    let contents = if let Some(contents) = contents {
        contents
    } else if file.size < PIECE {
        look(&file.path, cx, |privilege| {
            cx.files_as(privilege).read_parts(&[(&file.path, 0, PIECE)]).remove(0)
        })?
    } else {
        original::contents(&file.path, file.size, cx)?
    };
    Ok(match decode(contents) {
        Decoded::Text { text, .. } => Some(text),
        Decoded::Binary(_) => None,
    })
}

/// The matches so far.
#[derive(Default)]
struct Answer {
    found: Vec<Found>,
    matches: usize,
    lines: usize,
    bytes: usize,
    is_cut: bool,
}

impl Answer {
    fn is_full(&self) -> bool {
        self.lines >= MOST_LINES || self.bytes >= MOST_SHOWN
    }

    fn search(&mut self, path: String, text: &str, matcher: &Regex, around: usize, cx: &Context) -> bool {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let lines = cx.redacted(lines);
        let hits: Vec<usize> = (0..lines.len()).filter(|at| matcher.is_match(&lines[*at])).collect();
        if hits.is_empty() {
            return false;
        }
        self.matches += hits.len();
        let mut found = Found { path, matches: hits.len(), lines: Vec::new() };
        let mut next = 0;
        for (index, hit) in hits.iter().enumerate() {
            if self.is_full() {
                self.is_cut = true;
                break;
            }
            let begin = hit.saturating_sub(around).max(next);
            let end = (hit + around + 1).min(lines.len());
            // A line around this match may be a match itself, which comes next.
            let end = hits.get(index + 1).map_or(end, |next| end.min(*next));
            if around > 0 && next > 0 && begin > next {
                found.lines.push("--".to_owned());
            }
            for (at, text) in lines.iter().enumerate().take(end).skip(begin) {
                let mark = if at == *hit { ':' } else { '-' };
                let line = format!("{}{mark}{}", at + 1, excerpt(text, LONGEST));
                (self.lines, self.bytes) = (self.lines + 1, self.bytes + line.len());
                found.lines.push(line);
            }
            next = end.max(next);
        }
        self.found.push(found);
        true
    }
}

impl Skipped {
    fn told(&self) -> Vec<String> {
        let mut told = Vec::new();
        let mut tell = |count: usize, what: String| {
            if count > 0 {
                told.push(format!("{count} files {what}"));
            }
        };
        tell(
            self.large,
            format!("are larger than {LARGEST} bytes and weren't searched; log_search searches large logs"),
        );
        tell(self.binary, "are no text and weren't searched".to_owned());
        tell(self.denied, "may not be read, as those with secrets".to_owned());
        tell(
            self.private,
            "are private and weren't searched: only their owner may read them, and nothing says that they hold no secret"
                .to_owned(),
        );
        tell(self.unread, "could not be read".to_owned());
        if self.beyond {
            told.push(
                "not all files were searched: ask for a smaller tree or depth, or for a glob".to_owned(),
            );
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grep_looks_for_texts_that_every_match_holds() {
        for (pattern, ignore_case, expected) in [
            ("listen", false, Some(&["listen"][..])),
            (r"listen\s+\d+", false, Some(&["listen"])),
            ("(foo|bar)x", false, Some(&["foox", "barx"])),
            ("foo|bar", true, Some(&["foo", "bar"])),
            (".*foo", false, None),
            ("ab", false, None),
            ("-foo", false, None),
            ("äöü", true, None),
            ("(", false, None),
        ] {
            let found = texts(pattern, ignore_case);
            assert_eq!(
                found.as_deref().map(|texts| texts.iter().map(String::as_str).collect::<Vec<_>>()),
                expected.map(<[&str]>::to_vec),
                "{pattern}"
            );
        }
    }
}
