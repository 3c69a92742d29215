//! The plan of a call that changes files: one step for each file, the checks of the services around them, and the answer.

use std::collections::HashMap;
use std::ops::Range;

use linux_sysadmin_sdk::{Category, Privilege, prelude::*};

use crate::closed::why_moved_is_given;
use crate::lines::Lines;
use crate::original::{LARGEST, metadata, must_be_mutable, sha256};
use crate::places::{shown, writer};
use crate::service::{self, ChangedFile, Service, Told};
use crate::{checkers, effects};

/// A change of one path.
pub(crate) enum Work {
    /// A whole file is written.
    Write {
        path: String,
        contents: Vec<u8>,
        mode: Option<u32>,
        /// The owner and the group.
        owner: Option<(String, String)>,
    },
    /// A file or a symlink is removed.
    Remove(String),
    /// A directory is removed, after all that is in it.
    RemoveDirectory(String),
    /// A directory is made.
    MakeDirectory { path: String, mode: u32, owner: Option<(String, String)> },
    /// A file or a directory gets another path.
    Move { from: String, to: String },
    /// The mode is set.
    Mode { path: String, mode: u32 },
}

impl Work {
    fn path(&self) -> &str {
        match self {
            Self::Write { path, .. } | Self::MakeDirectory { path, .. } | Self::Mode { path, .. } => path,
            Self::Remove(path) | Self::RemoveDirectory(path) | Self::Move { from: path, .. } => path,
        }
    }

    fn step(self, privilege: Privilege) -> Step {
        let owned = |step: Step, owner: Option<(String, String)>| match owner {
            Some((owner, group)) => step.owner(owner, group),
            None => step,
        };
        match self {
            Self::Write { path, contents, mode, owner } => {
                let check = checkers::of(&path);
                let step = owned(Step::write(path, contents), owner).files_as(privilege);
                let step = match check {
                    Some(check) => step.validate(check),
                    None => step,
                };
                match mode {
                    Some(bits) => step.mode(bits),
                    None => step,
                }
            }
            Self::Remove(path) => Step::remove(path).files_as(privilege),
            Self::MakeDirectory { path, mode, owner } => {
                owned(Step::make_directory(path, mode), owner).files_as(privilege)
            }
            Self::RemoveDirectory(path) => Step::remove_directory(path).files_as(privilege),
            Self::Move { from, to } => Step::move_to(from, to).files_as(privilege),
            Self::Mode { path, mode } => Step::attributes(path, Some(mode), None, None).files_as(privilege),
        }
    }
}

/// A change of one path, as an answer tells it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Entry {
    pub(crate) path: String,
    /// The kind of change, such as `modified`.
    pub(crate) change: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// The number of lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) added: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) removed: Option<usize>,
    /// The number of files, symlinks and directories in a directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) holds: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<String>,
    /// The hash of the new contents, unless they hold a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<String>,
    /// Hunks that were found at another line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) moved_hunks: Vec<String>,
}

/// The answer of the tools that change files.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Done {
    files: Vec<Entry>,
    /// The action in a dry run, where nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    would: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    services: Vec<Told>,
    /// The calls that make a change of the system's own files take effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next: Vec<String>,
}

/// Everything that one call changes.
#[derive(Default)]
pub(crate) struct Plan {
    /// The action in one word.
    pub(crate) verb: &'static str,
    /// The plan in one sentence in the imperative.
    pub(crate) summary: String,
    pub(crate) works: Vec<Work>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) notes: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) as_root: Option<bool>,
    /// Paths that are there already, and that must not be immutable.
    pub(crate) existing: Vec<String>,
    /// The reasons why others may read the copies of files that they may not read.
    pub(crate) given: Vec<String>,
}

/// The answer where there is nothing to change.
pub(crate) fn unchanged(note: String) -> Noted<Done> {
    Noted { data: Done::default(), notes: vec![note] }
}

/// The hash of new contents for an answer. None where they hold a secret, which a hash would let somebody guess.
pub(crate) fn shown_hash(contents: &[u8], cx: &Context) -> Option<String> {
    let lines = Lines::new(contents)?.with_secrets(cx);
    (!lines.has_hidden()).then(|| sha256(contents))
}

impl Plan {
    /// Hands the plan to the host.
    pub(crate) fn apply(self, cx: &Context) -> Result<Noted<Done>> {
        self.must_fit()?;
        must_be_mutable(&self.existing, cx)?;
        let services = service::join(&self.changed_files(), cx);
        let mut change =
            self.warnings.iter().fold(Change::new(self.summary), |change, warning| change.warning(warning));
        let moved = self.works.iter().filter_map(|work| match work {
            Work::Move { from, to } => Some((from, to)),
            _ => None,
        });
        let mut given = self.given;
        for (from, to) in moved {
            if let Some(metadata) = metadata(from, cx)? {
                given.extend(why_moved_is_given(from, &metadata, to, cx)?);
            }
        }
        change = given.into_iter().fold(change, |change, why| change.risk(Risk::High).warning(why));
        change = services.iter().fold(change, |change, service| service.before(change));
        let count = self.works.len();
        // All paths in one directory take the same rights.
        let mut known: HashMap<String, Privilege> = HashMap::new();
        for work in self.works {
            let directory = work.path().rsplit_once('/').map_or("", |(directory, _)| directory);
            let privilege = match known.get(directory) {
                Some(privilege) => privilege.clone(),
                None => {
                    let privilege = writer(work.path(), self.as_root, cx)?;
                    known.insert(directory.to_owned(), privilege.clone());
                    privilege
                }
            };
            change = change.step(work.step(privilege));
        }
        change = services.iter().fold(change, |change, service| service.after(change));
        let first = services.iter().map(Service::steps_before).sum::<usize>();
        let files = first..first + count;
        let applied = cx.apply(change).map_err(|failure| failed(failure, &files, &services))?;
        let mut outputs = applied.outputs.iter();
        let before: Vec<_> = services.iter().map(|service| service.outputs_before(&mut outputs)).collect();
        let told = services.iter().zip(before).map(|(service, before)| {
            let outputs =
                if applied.dry_run { Vec::new() } else { service.outputs_after(before, &mut outputs) };
            service.told(&outputs, cx)
        });
        let services = told.filter(Told::says_something).collect();
        let would = applied.dry_run.then_some(self.verb);
        let changed = self.entries.iter().flat_map(|entry| [Some(entry.path.as_str()), entry.to.as_deref()]);
        let next = effects::next(changed.flatten());
        Ok(Noted { data: Done { files: self.entries, would, services, next }, notes: self.notes })
    }

    /// Refuses files that are larger than the host writes by one plan.
    fn must_fit(&self) -> Result<()> {
        let mut all = 0;
        for work in &self.works {
            let Work::Write { path, contents, .. } = work else { continue };
            let bytes = contents.len() as u64;
            all += bytes;
            let message = match (bytes > LARGEST, all > LARGEST) {
                (true, _) => format!(
                    "{} would have {bytes} bytes; a file of at most {LARGEST} is written",
                    shown(path)
                ),
                (_, true) => format!(
                    "the files up to {} would have {all} bytes together; one call writes at most {LARGEST}: patch fewer \
                     of them at once",
                    shown(path)
                ),
                _ => continue,
            };
            return Err(Problem::new("FILE_TOO_LARGE", Category::Resource, message));
        }
        Ok(())
    }

    fn changed_files(&self) -> Vec<ChangedFile<'_>> {
        let files = self.works.iter().flat_map(|work| match work {
            Work::Write { path, contents, .. } => vec![ChangedFile { path, contents: Some(contents) }],
            Work::Remove(path) => vec![ChangedFile { path, contents: None }],
            Work::Move { from, to } => {
                vec![ChangedFile { path: from, contents: None }, ChangedFile { path: to, contents: None }]
            }
            _ => Vec::new(),
        });
        files.collect()
    }
}

/// The problem of a plan that failed. Where a checker has refused the files, its errors are the message. `files` are the
/// numbers of the steps that are no checks.
fn failed(failure: Failure, files: &Range<usize>, services: &[Service]) -> Problem {
    let last = failure.outputs.last().cloned().filter(|_| !files.contains(&(failure.step as usize)));
    let problem = Problem::from(failure);
    let refusal = last
        .filter(|_| problem.code == "COMMAND_FAILED")
        .and_then(|output| services.iter().find_map(|service| service.refusal(&output)));
    match refusal {
        Some(refusal) => Problem { code: refusal.code, message: refusal.message, ..problem },
        None => problem,
    }
}

/// Refuses a path at which something is already.
pub(crate) fn must_be_free(path: &str, cx: &Context) -> Result<()> {
    match crate::original::metadata(path, cx)? {
        None => Ok(()),
        Some(_) => {
            let message = format!("{} exists already: expected a path where nothing is", shown(path));
            Err(Problem::new("FILE_EXISTS", Category::State, message))
        }
    }
}

/// Refuses a path whose directory isn't there.
pub(crate) fn must_have_directory(path: &str, cx: &Context) -> Result<()> {
    let directory = path.rsplit_once('/').map_or("/", |(directory, _)| directory);
    // The tops of what may be changed, such as /etc, are covered by no grant and always there.
    if directory.matches('/').count() < 2 {
        return Ok(());
    }
    match crate::original::metadata(directory, cx) {
        Ok(Some(found)) if found.is_dir || found.is_symlink => Ok(()),
        Ok(Some(_)) => Err(Problem::new(
            "NOT_A_DIRECTORY",
            Category::State,
            format!("{} is no directory", shown(directory)),
        )),
        Ok(None) => {
            Err(Problem::not_found("NO_DIRECTORY", format!("there is no directory {}", shown(directory)))
                .remedy(format!("Make it first: file_mkdir path={}", shown(directory))))
        }
        // A grant covers what is in /usr/local, and not /usr/local itself.
        Err(problem) if problem.code == "CAPABILITY_DENIED" => Ok(()),
        Err(problem) => Err(problem),
    }
}

/// Reads a mode such as `0640`.
pub(crate) fn mode(text: Option<&str>) -> Result<Option<u32>> {
    let Some(text) = text else { return Ok(None) };
    let bits = Some(text)
        .filter(|text| (3..=4).contains(&text.len()))
        .and_then(|text| u32::from_str_radix(text, 8).ok());
    bits.map(Some).ok_or_else(|| {
        Problem::validation(
            "INVALID_MODE",
            format!("{:?} is no mode: expected octal digits such as 0640", shown(text)),
        )
    })
}
