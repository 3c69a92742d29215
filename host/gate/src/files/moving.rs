//! Steps that move a file or a directory.
//!
//! A move is one rename on one file system. `mv` would copy what it can't rename, and says nothing where something is in the
//! way. So the mounts are looked at before the move, and after it what lies at both places, by device and inode.

use super::super::file_problems::{changed, no_answer};
use super::super::mounts::Mounts;
use super::{Site, split};
use host_base::problem::{Category, Problem};
use host_target::{FileKind, Located, Target};

/// The device and the inode of a file or directory.
type FileId = (u64, u64);

/// The ids of what lies at the old place and at the new one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whereabouts {
    pub old: Option<FileId>,
    pub new: Option<FileId>,
}

impl Site {
    /// The device and the inode of what was found.
    pub fn file_id(&self) -> Option<FileId> {
        self.found.as_ref().map(|found| (found.metadata.device, found.metadata.inode))
    }

    /// Checks that the move is one rename to a place where nothing is, and that it can be undone.
    pub(super) async fn check_move(&self, target: &Target, to: &Located) -> Result<(), Problem> {
        let (from, to, is_free) = (&self.path, &to.path, to.found.is_none());
        let state = |code: &str, message: String| Err(Problem::new(code, Category::State, message));
        if to == from || to.starts_with(&format!("{from}/")) {
            let message = format!("{from} can't be moved to {to}, which is itself or in it");
            return Err(Problem::new("MOVE_INTO_ITSELF", Category::Validation, message));
        }
        if !is_free {
            return state("FILE_EXISTS", format!("{from} is to be moved to {to}, but that exists already"));
        }
        let mounts = Mounts::read(target).await?;
        let above = self.device_of_parent(target, from).await?;
        let is_device_alone = self.is_directory() && above != self.device();
        if mounts.mounted_below(from).is_some() || is_device_alone {
            return state("MOUNT_POINT", format!("{from} can't be moved: something is mounted there"));
        }
        if !mounts.are_together(from, to) || above != self.device_of_parent(target, to).await? {
            let message = format!(
                "{to} is on another file system than {from}; only a move within one file system is made"
            );
            return state("OTHER_FILE_SYSTEM", message);
        }
        if self.is_directory() && !mounts.renames_directories(from) {
            let message = format!("{from} is on an overlay, which may not rename a directory");
            return state("DIRECTORY_STAYS", message);
        }
        self.may_run_all(&[mv(from, to), mv(to, from)])
    }

    fn device(&self) -> Option<u64> {
        self.found.as_ref().map(|found| found.metadata.device)
    }

    /// The device of the nearest directory above a path that is there.
    async fn device_of_parent(&self, target: &Target, path: &str) -> Result<Option<u64>, Problem> {
        let mut above = split(path).0;
        loop {
            let directory = if above.is_empty() { "/" } else { above };
            let located = target.locate(vec![directory.to_owned()], &self.access).await.pop();
            match located.unwrap_or_else(|| Err(no_answer()))?.found {
                Some(found) if found.kind == FileKind::Directory => return Ok(Some(found.metadata.device)),
                Some(_) => return Err(changed(directory)),
                None if above.is_empty() => return Ok(None),
                None => above = split(above).0,
            }
        }
    }

    pub(super) async fn move_there(&self, target: &Target) -> Result<(), Problem> {
        let (Some(to), Some(id)) = (&self.to, self.file_id()) else { return Err(no_answer()) };
        self.pass("before-rename")?;
        self.rename(target, (self.path.as_str(), to.as_str()), id).await?;
        self.pass("after-rename")
    }

    /// Moves what has this id back to its old place.
    pub async fn move_back(&self, target: &Target, id: FileId) -> Result<(), Problem> {
        let Some(to) = &self.to else { return Err(no_answer()) };
        self.rename(target, (to.as_str(), self.path.as_str()), id).await
    }

    /// Renames what has this id, and checks that it has arrived. What else has been moved is moved back.
    async fn rename(&self, target: &Target, (from, to): (&str, &str), id: FileId) -> Result<(), Problem> {
        let moved = self.run_argv(target, &mv(from, to)).await;
        if let Err(problem) = &moved
            && problem.is_uncertain()
        {
            return Err(problem.clone());
        }
        let [at_from, at_to] = self.ids(target, [from, to]).await?;
        if at_to == Some(id) {
            return Ok(());
        }
        match (at_from, at_to) {
            (Some(_), Some(_)) => {
                let message = format!("{to} exists by now, so nothing was moved there");
                Err(Problem::new("FILE_EXISTS", Category::State, message))
            }
            (None, Some(_)) if moved.is_ok() => {
                self.run_argv(target, &mv(to, from)).await?;
                Err(changed(from))
            }
            _ => moved.and(Err(changed(from))),
        }
    }

    /// The ids of what lies at both places now.
    pub async fn whereabouts(&self, target: &Target) -> Result<Whereabouts, Problem> {
        let Some(to) = &self.to else { return Err(no_answer()) };
        let [old, new] = self.ids(target, [&self.path, to]).await?;
        Ok(Whereabouts { old, new })
    }

    async fn ids(&self, target: &Target, paths: [&str; 2]) -> Result<[Option<FileId>; 2], Problem> {
        let located = target.locate(paths.map(str::to_owned).to_vec(), &self.access).await;
        let mut ids = [None; 2];
        for (id, located) in ids.iter_mut().zip(located) {
            *id = located?.found.map(|found| (found.metadata.device, found.metadata.inode));
        }
        Ok(ids)
    }

    /// Moves it back, where the step came so far.
    pub(super) async fn take_back_move(&self, target: &Target) -> Result<(), Problem> {
        let (Some(id), at) = (self.file_id(), self.whereabouts(target).await?) else {
            return Err(no_answer());
        };
        match at.new == Some(id) {
            true => self.move_back(target, id).await,
            false => Ok(()),
        }
    }

    pub(super) async fn undo_move(&self, target: &Target) -> Result<(), Problem> {
        let changed = |message: String| Err(Problem::new("FILE_CHANGED", Category::State, message));
        match (self.file_id(), self.whereabouts(target).await?) {
            (Some(id), Whereabouts { old: None, new }) if new == Some(id) => self.move_back(target, id).await,
            (id, Whereabouts { new, .. }) if new == id => {
                changed(format!("something else is at {} by now, so it stays", self.path))
            }
            _ => changed("somebody has moved or replaced it since, so it stays".to_owned()),
        }
    }

    pub(super) fn move_back_by_target(&self) -> Vec<(Vec<String>, Option<String>)> {
        self.to.iter().map(|to| (mv(to, &self.path), Some(to.clone()))).collect()
    }
}

/// The command that moves something where nothing is in the way.
fn mv(from: &str, to: &str) -> Vec<String> {
    ["mv", "--no-clobber", "--no-target-directory", "--", from, to].map(str::to_owned).to_vec()
}
