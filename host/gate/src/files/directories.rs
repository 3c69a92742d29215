//! Steps that make a directory, or remove one that is empty.

use super::super::file_problems::{also, no_answer};
use super::super::mounts::Mounts;
use super::super::plan::Directory;
use super::attributes::{chmod, chown};
use super::{Site, octal};
use host_audit::FileAttributes;
use host_base::problem::{Category, Problem};
use host_target::Target;
use host_text::visible::excerpt;

/// The number of characters of a name in a message.
const NAME: usize = 200;

impl Site {
    pub(super) async fn make_directory(&self, target: &Target, directory: &Directory) -> Result<(), Problem> {
        let mode = format!("--mode={}", octal(directory.mode));
        self.run(target, "mkdir", &[&mode, "--", &self.path], None).await?;
        let owned = async {
            self.pass("after-mkdir")?;
            if let Some(owner) = self.owner(&directory.owner, &directory.group)? {
                self.run(target, "chown", &["--no-dereference", "--", &owner, &self.path], None).await?;
            }
            Ok::<(), Problem>(())
        };
        match owned.await {
            Err(problem) if !problem.is_uncertain() => {
                self.remove_directory(target).await.map_err(|second| also(problem.clone(), &second))?;
                Err(problem)
            }
            owned => owned,
        }
    }

    /// Removes a directory that the step made. A directory that isn't empty stays.
    pub async fn remove_directory(&self, target: &Target) -> Result<(), Problem> {
        self.run(target, "rmdir", &["--", &self.path], None).await.map(drop)
    }

    /// Checks that nothing is mounted in the directory, and that it could be made again.
    pub(super) async fn check_removal(&self, target: &Target) -> Result<(), Problem> {
        let path = &self.path;
        if let Some(point) = Mounts::read(target).await?.mounted_below(path) {
            let message = format!("{path} is to be removed, but something is mounted at {point}");
            return Err(Problem::new("MOUNT_POINT", Category::State, message));
        }
        self.may_run_all(&self.making_again(target.facts().await?.mac_system == "selinux"))
    }

    /// Checks that the plan's earlier steps remove all that the directory holds. `removed` has their paths, each with whether
    /// it is a directory that goes only after the plan.
    pub async fn check_emptied(
        &mut self,
        target: &Target,
        removed: &[(String, bool)],
    ) -> Result<(), Problem> {
        let names = self.names(target).await?;
        let path_of = |name: &String| format!("{}/{name}", self.path.trim_end_matches('/'));
        let step = |name: &String| removed.iter().find(|(path, _)| *path == path_of(name));
        let (left, gone): (Vec<&String>, Vec<&String>) = names.iter().partition(|name| step(name).is_none());
        if let Some(first) = left.first() {
            return Err(self.not_empty(first));
        }
        let stay = |name: &&String| step(name).is_some_and(|(_, stays)| *stays);
        self.emptied = (!gone.is_empty()).then(|| gone.into_iter().filter(stay).cloned().collect());
        Ok(())
    }

    /// Removes a directory that is empty. One that holds the copies of earlier steps is only checked: it goes with them.
    pub(super) async fn remove_when_empty(&self, target: &Target) -> Result<(), Problem> {
        let Some(directories) = &self.emptied else {
            self.remove_directory(target).await?;
            return self.pass("after-rmdir");
        };
        let copies = self.copies_of_change();
        let names = self.names(target).await?;
        match names.iter().find(|name| !name.starts_with(&copies) && !directories.contains(name)) {
            Some(name) => Err(self.not_empty(name)),
            None => Ok(()),
        }
    }

    /// The names in the directory.
    async fn names(&self, target: &Target) -> Result<Vec<String>, Problem> {
        target.list_dir(self.path.clone(), &self.access, self.only_here()).await
    }

    fn not_empty(&self, name: &str) -> Problem {
        let message = format!(
            "{} holds {}, which the plan doesn't remove; only an empty directory is removed",
            self.path,
            excerpt(name, NAME)
        );
        Problem::new("DIRECTORY_NOT_EMPTY", Category::State, message)
    }

    pub(super) async fn undo_removal(&self, target: &Target) -> Result<(), Problem> {
        match self.make_again(target).await? {
            true => Ok(()),
            false => Err(Problem::new("FILE_CHANGED", Category::State, "something else is there by now")),
        }
    }

    /// Makes a removed directory again, with its former mode, owner and group. The result is false where something is
    /// there.
    pub async fn make_again(&self, target: &Target) -> Result<bool, Problem> {
        if self.is_there(target).await? {
            return Ok(false);
        }
        let selinux = target.facts().await?.mac_system == "selinux";
        for argv in self.making_again(selinux).iter().filter(|argv| argv[0] == "mkdir") {
            self.run_argv(target, argv).await?;
        }
        self.pass("after-mkdir")?;
        self.put_former_attributes(target).await?;
        if selinux {
            self.run(target, "restorecon", &["--", &self.path], None).await?;
        }
        Ok(true)
    }

    /// Gives a directory that was made again the attributes of the former one.
    pub async fn put_former_attributes(&self, target: &Target) -> Result<(), Problem> {
        let now = self.attributes_now(target).await?;
        let (Some(now), Some(former)) = (now, self.attributes()) else { return Err(no_answer()) };
        let former = FileAttributes { device: now.device, inode: now.inode, ..former };
        self.put(target, &now, &former).await
    }

    /// The commands that make a removed directory again.
    pub(super) fn making_again(&self, selinux: bool) -> Vec<Vec<String>> {
        let Some(former) = self.attributes() else { return Vec::new() };
        let made = ["mkdir", &format!("--mode={}", octal(former.mode)), "--", &self.path].map(str::to_owned);
        let mut commands =
            vec![made.to_vec(), chown(&self.path, &former), chmod(&self.path, u32::MAX, &former)];
        if selinux {
            commands.push(["restorecon", "--", &self.path].map(str::to_owned).to_vec());
        }
        commands
    }
}
