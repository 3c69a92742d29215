//! `file_patch`: applies a unified diff to one or several files as one plan. Either all of it fits, or nothing is changed
//! and every hunk that doesn't fit is shown beside the file's real lines.

use linux_sysadmin_sdk::{Category, prelude::*};

use crate::closed::why_copy_is_given;
use crate::lines::{Lines, REDACTED};
use crate::original::{self, LARGEST, Original};
use crate::patch::apply::{Missed, Patched, apply};
use crate::patch::conflict::told;
use crate::patch::locate::Miss;
use crate::patch::parse::{FilePatch, Tag, parse};
use crate::places::{check, shown};
use crate::plan::{Done, Entry, Plan, Work, must_be_free, must_have_directory, shown_hash, unchanged};

/// The most hunks that are shown where they don't fit.
const MOST_CONFLICTS: usize = 8;
/// The number of notes on single hunks.
const MOST_NOTES: usize = 10;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct PatchArgs {
    /// Unified diff
    #[schemars(length(max = LARGEST))]
    diff: String,
    /// File that it patches
    path: Option<String>,
    /// Where its relative names start
    directory: Option<String>,
    /// Default: if needed
    as_root: Option<bool>,
}

/// The outcome of the hunks of one file.
enum Outcome {
    Patched(Patched),
    /// The file has all new lines already.
    Done,
}

pub(crate) fn file_patch(args: PatchArgs, cx: &Context) -> Result<Noted<Done>> {
    let files = parse(&args.diff)?;
    let names =
        Names { path: args.path.as_deref(), directory: args.directory.as_deref(), files: files.len() };
    let mut plan = Plan { verb: "patch", as_root: args.as_root, ..Plan::default() };
    let (mut conflicts, mut already, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for file in merged(files, &names, cx)? {
        let (old, new) = (file.old.as_deref(), file.new.as_deref());
        for path in old.iter().chain(&new) {
            if seen.iter().any(|known| known == path) {
                let message =
                    format!("the diff changes {} twice: expected one section for each file", shown(path));
                return Err(Problem::validation("FILE_TWICE", message));
            }
        }
        seen.extend(old.into_iter().chain(new).map(str::to_owned));
        match add(&file.patch, old, new, &mut plan, &mut conflicts, cx)? {
            true => {}
            false => already.extend(new.or(old).map(str::to_owned)),
        }
    }
    if !conflicts.is_empty() {
        return Err(conflict(conflicts));
    }
    if plan.works.is_empty() {
        let names = already.iter().map(|path| shown(path)).collect::<Vec<_>>().join(", ");
        return Ok(unchanged(format!("{names} has these changes already: nothing was changed")));
    }
    plan.notes.extend(already.iter().map(|path| format!("{} has its changes already", shown(path))));
    plan.summary = match &plan.entries[..] {
        [only] => format!("Patch {}", shown(&only.path)),
        several => format!("Patch {} files", several.len()),
    };
    plan.apply(cx)
}

/// The files of a diff by their paths. The sections of one file are joined.
struct Named<'a> {
    old: Option<String>,
    new: Option<String>,
    patch: FilePatch<'a>,
}

fn merged<'a>(files: Vec<FilePatch<'a>>, names: &Names<'_>, cx: &Context) -> Result<Vec<Named<'a>>> {
    let mut all: Vec<Named<'a>> = Vec::new();
    for patch in files {
        let (old, new) = names.of(&patch, cx)?;
        let known = all.iter_mut().find(|known| known.old == old && known.new == new && old == new);
        match known {
            Some(known) => {
                let first = known.patch.hunks.len();
                known.patch.hunks.extend(patch.hunks);
                for (number, hunk) in known.patch.hunks.iter_mut().enumerate().skip(first) {
                    hunk.number = number + 1;
                }
                known.patch.mode = patch.mode.or(known.patch.mode);
            }
            None => all.push(Named { old, new, patch }),
        }
    }
    Ok(all)
}

/// The arguments by which the names of a diff become paths.
struct Names<'a> {
    path: Option<&'a str>,
    directory: Option<&'a str>,
    files: usize,
}

impl Names<'_> {
    /// The former and the new path. None for a file that isn't there before or after.
    fn of(&self, file: &FilePatch<'_>, cx: &Context) -> Result<(Option<String>, Option<String>)> {
        if let Some(path) = self.path {
            if self.files > 1 {
                let message =
                    format!("the diff changes {} files, and path names one: expected directory", self.files);
                return Err(Problem::validation("SEVERAL_FILES", message));
            }
            check(path, cx)?;
            let is = |name: &Option<String>| (name.is_some() || !file.is_named).then(|| path.to_owned());
            return Ok((is(&file.old), is(&file.new)));
        }
        if file.old.is_none() && file.new.is_none() {
            let message = "the diff names no file: expected `--- PATH` and `+++ PATH`, or the argument path";
            return Err(Problem::validation("NO_NAME", message));
        }
        let full = |name: &Option<String>| name.as_deref().map(|name| self.full(name, cx)).transpose();
        let (old, new) = (full(&file.old)?, full(&file.new)?);
        let is_renamed = file.hunks.is_empty() || file.is_copy;
        if let (Some(old), Some(new)) = (&old, &new)
            && old != new
            && !is_renamed
            && !self.renames(old, new, cx)
        {
            let message = format!(
                "the diff is from {} to {}: expected the same name twice, or the argument path",
                shown(old),
                shown(new)
            );
            return Err(Problem::validation("TWO_NAMES", message));
        }
        Ok((old, new))
    }

    /// Whether a diff between two names moves the file: only the former one is there.
    fn renames(&self, old: &str, new: &str, cx: &Context) -> bool {
        matches!((original::metadata(old, cx), original::metadata(new, cx)), (Ok(Some(_)), Ok(None)))
    }

    fn full(&self, name: &str, cx: &Context) -> Result<String> {
        let path = match (name.starts_with('/'), self.directory) {
            (true, _) => name.to_owned(),
            (false, Some(directory)) => format!("{}/{name}", directory.trim_end_matches('/')),
            (false, None) => format!("/{name}"),
        };
        check(&path, cx)?;
        let is_outside = self.directory.is_some_and(|directory| {
            !path.strip_prefix(directory.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
        });
        if is_outside {
            let message = format!("{} isn't below the directory of the call", shown(&path));
            return Err(Problem::validation("OUTSIDE_DIRECTORY", message));
        }
        Ok(path)
    }
}

/// Adds the changes of one file to the plan. False where the file has them already.
fn add(
    file: &FilePatch<'_>,
    old: Option<&str>,
    new: Option<&str>,
    plan: &mut Plan,
    conflicts: &mut Vec<String>,
    cx: &Context,
) -> Result<bool> {
    let path = new.or(old).unwrap_or_default();
    let before = match old {
        Some(old) => Some(original::must_read(old, cx)?),
        None => original::read(path, cx)?,
    };
    let text = before.as_ref().map_or(&b""[..], |before| &before.contents);
    let lines = Lines::new(text).ok_or_else(|| too_many_lines(path))?.with_secrets(cx);
    must_not_add_redacted(path, &lines, file)?;
    let patched = match outcome(&lines, file, old.unwrap_or(path), conflicts) {
        None => return Ok(true),
        Some(Outcome::Done) => return Ok(false),
        Some(Outcome::Patched(patched)) => patched,
    };
    note(file, &patched, path, plan);
    let mut entry = Entry { path: path.to_owned(), ..Entry::default() };
    (entry.added, entry.removed) = (Some(patched.added), Some(patched.removed));
    entry.moved_hunks =
        patched.moved.iter().take(MOST_NOTES).map(|(hunk, by)| format!("{hunk}: {by:+} lines")).collect();
    plan.existing.extend(old.map(str::to_owned));
    match (old, new, &before) {
        (Some(old), None, _) => {
            entry.change = "removed";
            if !patched.contents.is_empty() {
                conflicts
                    .push(format!("{}: the diff removes the file, but not all of its lines", shown(old)));
            }
            plan.works.push(Work::Remove(old.to_owned()));
        }
        (None, Some(new), before) => {
            entry.change = "created";
            if before.is_some() && !text.is_empty() {
                conflicts.push(format!("{}: the diff makes a new file, and one is there", shown(new)));
            }
            must_have_directory(new, cx)?;
            written(new, patched.contents, file.mode, None, &mut entry, plan, cx);
        }
        (Some(old), Some(new), Some(before)) if old != new => {
            must_be_free(new, cx)?;
            must_have_directory(new, cx)?;
            entry.change = if file.is_copy { "copied" } else { "moved" };
            (entry.path, entry.to) = (old.to_owned(), Some(new.to_owned()));
            if file.hunks.is_empty() && !file.is_copy && file.mode.is_none() {
                plan.works.push(Work::Move { from: old.to_owned(), to: new.to_owned() });
            } else {
                let given = why_copy_is_given(old, &before.metadata, new, plan.as_root, cx)?;
                plan.given.extend(given);
                written(new, patched.contents, file.mode, Some(before), &mut entry, plan, cx);
                if !file.is_copy {
                    plan.works.push(Work::Remove(old.to_owned()));
                }
            }
        }
        (Some(old), Some(_), Some(before)) => {
            entry.change = "modified";
            let mode = file.mode.filter(|mode| *mode != before.metadata.mode & 0o777);
            if file.hunks.is_empty() {
                let Some(mode) = mode else { return Ok(false) };
                (entry.added, entry.removed, entry.mode) = (None, None, Some(format!("{mode:04o}")));
                plan.works.push(Work::Mode { path: old.to_owned(), mode });
            } else {
                written(old, patched.contents, mode, None, &mut entry, plan, cx);
            }
        }
        _ => {}
    }
    plan.entries.push(entry);
    Ok(true)
}

/// Refuses a line that would put the redacted form of a secret into a file with secrets.
fn must_not_add_redacted(path: &str, lines: &Lines<'_>, file: &FilePatch<'_>) -> Result<()> {
    let mut added = file.hunks.iter().flat_map(|hunk| hunk.lines()).filter(|line| line.tag == Tag::Add);
    if !lines.has_hidden() || !added.any(|line| line.text.contains(REDACTED)) {
        return Ok(());
    }
    let message = format!("{} holds a secret, and the diff adds a line with its redacted form", shown(path));
    Err(Problem::validation("REDACTED_TEXT", message)
        .remedy("Leave the line with the secret as context, as file_read shows it: it stays as it is"))
}

/// Adds the writing of a file. Where it is another file than before, it gets the mode and the owner of that file.
fn written(
    path: &str,
    contents: Vec<u8>,
    mode: Option<u32>,
    like: Option<&Original>,
    entry: &mut Entry,
    plan: &mut Plan,
    cx: &Context,
) {
    let mode = mode.or(like.map(|like| like.metadata.mode));
    let owner = like.map(|like| (like.metadata.owner.clone(), like.metadata.group.clone()));
    entry.mode = mode.map(|mode| format!("{mode:04o}"));
    entry.sha256 = shown_hash(&contents, cx);
    plan.works.push(Work::Write { path: path.to_owned(), contents, mode, owner });
}

/// Applies the hunks of a file. None where some don't fit, which `conflicts` then tells.
fn outcome(
    lines: &Lines<'_>,
    file: &FilePatch<'_>,
    path: &str,
    conflicts: &mut Vec<String>,
) -> Option<Outcome> {
    let missed: Vec<Missed<'_, '_>> = match apply(lines, &file.hunks) {
        Ok(patched) => return Some(Outcome::Patched(patched)),
        Err(missed) => missed,
    };
    let is_done = |missed: &&Missed<'_, '_>| matches!(missed.miss, Miss::Done(_));
    if missed.iter().filter(is_done).count() == file.hunks.len() {
        return Some(Outcome::Done);
    }
    conflicts.extend(missed.iter().map(|missed| told(&shown(path), lines, missed)));
    None
}

/// Notes what the engine has put up with.
fn note(file: &FilePatch<'_>, patched: &Patched, path: &str, plan: &mut Plan) {
    let path = shown(path);
    if patched.is_loose {
        plan.notes.push(format!("{path}: the ends of lines differ from the diff's; those of the file stay"));
    }
    let wrong = file.hunks.iter().filter_map(|hunk| Some((hunk, hunk.wrong_counts?)));
    for (hunk, (old, new)) in wrong.take(MOST_NOTES) {
        plan.notes.push(format!(
            "{path}: the header of hunk {} counts {old} and {new} lines, the hunk has {} and {}",
            hunk.number, hunk.counts.0, hunk.counts.1
        ));
    }
}

fn conflict(mut conflicts: Vec<String>) -> Problem {
    let more = conflicts.len().saturating_sub(MOST_CONFLICTS);
    conflicts.truncate(MOST_CONFLICTS);
    let mut message = format!("nothing was changed, because the diff doesn't fit.\n{}", conflicts.join("\n"));
    if more > 0 {
        message.push_str(&format!("\nand {more} more"));
    }
    Problem::new("PATCH_CONFLICT", Category::State, message)
        .remedy("Correct these hunks by the lines shown, and call file_patch with the whole diff again")
}

pub(crate) fn too_many_lines(path: &str) -> Problem {
    let message = format!("{} has more than {} lines", shown(path), crate::lines::MOST);
    Problem::new("FILE_TOO_LARGE", Category::Resource, message)
}
