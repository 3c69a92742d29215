//! Steps that set mode, owner and group of what is there.
//!
//! The kernel takes the set-id bits from a file that gets another owner or group, so the owner comes first and the mode
//! after it.

use super::super::file_problems::{changed, no_answer};
use super::super::plan::Attributes;
use super::{Site, octal};
use host_audit::FileAttributes;
use host_base::Privilege;
use host_base::problem::{Category, Problem};
use host_target::{FileKind, Found, Metadata, Target};

/// The bits by which a program runs with its owner's or its group's rights.
const SET_ID: u32 = 0o6000;
const STICKY: u32 = 0o1000;

/// The attributes of what was found.
pub(super) fn of(found: &Found) -> FileAttributes {
    let Metadata { device, inode, mode, owner, group, .. } = found.metadata.clone();
    FileAttributes { is_directory: found.kind == FileKind::Directory, device, inode, mode, owner, group }
}

/// A file or directory that is on record with these attributes. All else is left out.
pub(super) fn found(on_record: &FileAttributes) -> Found {
    let FileAttributes { is_directory, device, inode, mode, owner, group } = on_record.clone();
    let kind = if is_directory { FileKind::Directory } else { FileKind::File };
    let metadata = Metadata {
        size: 0,
        mode,
        owner,
        group,
        modified_unix: 0,
        links: 1,
        device,
        inode,
        is_dir: is_directory,
        is_symlink: false,
    };
    Found { kind, metadata }
}

/// The command that sets owner and group.
pub(super) fn chown(path: &str, to: &FileAttributes) -> Vec<String> {
    let owner = format!("{}:{}", to.owner, to.group);
    ["chown", "--no-dereference", "--", &owner, path].map(str::to_owned).to_vec()
}

/// The command that sets the mode of a file or directory that has the mode `from` now.
pub(super) fn chmod(path: &str, from: u32, to: &FileAttributes) -> Vec<String> {
    // In an octal mode, chmod leaves the set-id bits of a directory set.
    let mode = match to.is_directory && from & !to.mode & SET_ID != 0 {
        true => symbolic(to.mode),
        false => octal(to.mode),
    };
    ["chmod", "--", &mode, path].map(str::to_owned).to_vec()
}

/// The mode in clauses that name each set-id bit. sudoers has room for five of them.
fn symbolic(mode: u32) -> String {
    let bits = |shift: u32| -> String {
        let bits = [(4, 'r'), (2, 'w'), (1, 'x')];
        bits.into_iter().filter(|(bit, _)| mode >> shift & bit != 0).map(|(_, letter)| letter).collect()
    };
    let set = |bit: u32| if mode & bit != 0 { "s" } else { "" };
    let cleared = match mode & SET_ID {
        0 => "ug-s,",
        0o2000 => "u-s,",
        0o4000 => "g-s,",
        _ => "",
    };
    let (user, group, others) = (bits(6), bits(3), bits(0));
    let sticky = if mode & STICKY != 0 { '+' } else { '-' };
    format!("u={user}{},g={group}{},o={others},{cleared}o{sticky}t", set(0o4000), set(0o2000))
}

/// The commands that make the one attributes of a path the other ones.
fn commands(path: &str, from: &FileAttributes, to: &FileAttributes) -> Vec<Vec<String>> {
    let is_given = (&from.owner, &from.group) != (&to.owner, &to.group);
    let loses_bits = is_given && !to.is_directory && from.mode & SET_ID != 0;
    let mut commands = Vec::new();
    if is_given {
        commands.push(chown(path, to));
    }
    if from.mode != to.mode || loses_bits {
        commands.push(chmod(path, from.mode, to));
    }
    commands
}

impl Site {
    /// The attributes of what was found.
    pub fn attributes(&self) -> Option<FileAttributes> {
        self.found.as_ref().map(of)
    }

    /// The attributes of what is there now.
    pub async fn attributes_now(&self, target: &Target) -> Result<Option<FileAttributes>, Problem> {
        let located = target.locate(vec![self.path.clone()], &self.access).await.pop();
        Ok(located.unwrap_or_else(|| Err(no_answer()))?.found.as_ref().map(of))
    }

    /// The attributes after the step.
    pub fn attributes_after(&self, wanted: &Attributes) -> Option<FileAttributes> {
        let former = self.attributes()?;
        let owner = wanted.owner.clone().unwrap_or_else(|| former.owner.clone());
        let group = wanted.group.clone().unwrap_or_else(|| former.group.clone());
        let is_given = (&owner, &group) != (&former.owner, &former.group);
        let kept = if is_given && !former.is_directory { former.mode & !SET_ID } else { former.mode };
        Some(FileAttributes { owner, group, mode: wanted.mode.unwrap_or(kept), ..former })
    }

    /// Checks that the attributes can be set and set back. chmod follows a link, so nobody else may be able to put one
    /// there: with the caller's own rights, it would lead to another file of the caller's.
    pub(super) async fn check_attributes(&self, target: &Target, wanted: &Attributes) -> Result<(), Problem> {
        if self.access.privilege == Privilege::Caller {
            target.safe_for(&self.path, &target.facts().await?.user).await?;
        }
        let (Some(former), Some(after)) = (self.attributes(), self.attributes_after(wanted)) else {
            return Err(no_answer());
        };
        self.may_run_all(&commands(&self.path, &former, &after))?;
        self.may_run_all(&self.restoring(wanted))
    }

    pub(super) async fn set_attributes(&self, target: &Target, wanted: &Attributes) -> Result<(), Problem> {
        let (Some(former), Some(after)) = (self.attributes(), self.attributes_after(wanted)) else {
            return Err(no_answer());
        };
        self.put(target, &former, &after).await
    }

    /// Makes the attributes of what is there other ones, and checks that it has them then.
    pub async fn put(
        &self,
        target: &Target,
        from: &FileAttributes,
        to: &FileAttributes,
    ) -> Result<(), Problem> {
        for argv in commands(&self.path, from, to) {
            self.run_argv(target, &argv).await?;
            self.pass(&format!("after-{}", argv[0]))?;
        }
        match self.attributes_now(target).await? {
            Some(now) if now == *to => Ok(()),
            Some(FileAttributes { mode, owner, group, .. }) => {
                let message = format!(
                    "{} has mode {} and belongs to {owner}:{group}; expected mode {} and {}:{}",
                    self.path,
                    octal(mode),
                    octal(to.mode),
                    to.owner,
                    to.group
                );
                Err(Problem::new("ATTRIBUTES_NOT_SET", Category::State, message))
            }
            None => Err(changed(&self.path)),
        }
    }

    /// The commands that set the former attributes again.
    pub(super) fn restoring(&self, wanted: &Attributes) -> Vec<Vec<String>> {
        match (self.attributes_after(wanted), self.attributes()) {
            (Some(after), Some(former)) => commands(&self.path, &after, &former),
            _ => Vec::new(),
        }
    }

    /// Sets the former attributes again, however far the step came.
    pub(super) async fn take_back_attributes(&self, target: &Target) -> Result<(), Problem> {
        let (now, former) = (self.attributes_now(target).await?, self.attributes());
        match (now, former) {
            (Some(now), Some(former)) if is_same(&now, &former) => self.put(target, &now, &former).await,
            _ => Err(changed(&self.path)),
        }
    }

    pub(super) async fn undo_attributes(&self, target: &Target, wanted: &Attributes) -> Result<(), Problem> {
        let now = self.attributes_now(target).await?;
        if now.is_none() || now != self.attributes_after(wanted) {
            let message = "somebody has changed it since, so it stays";
            return Err(Problem::new("FILE_CHANGED", Category::State, message));
        }
        self.take_back_attributes(target).await
    }
}

/// Whether both are the same file or directory, whatever its attributes.
pub fn is_same(one: &FileAttributes, other: &FileAttributes) -> bool {
    (one.is_directory, one.device, one.inode) == (other.is_directory, other.device, other.inode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_comes_before_the_mode_and_no_bit_is_left_that_is_not_meant() {
        let attributes = |is_directory: bool, mode: u32, owner: &str| FileAttributes {
            is_directory,
            device: 1,
            inode: 2,
            mode,
            owner: owner.to_owned(),
            group: "root".to_owned(),
        };
        for (is_directory, from, to, expected) in [
            (false, (0o644, "root"), (0o644, "root"), &[][..]),
            (false, (0o644, "root"), (0o600, "root"), &["chmod -- 0600 /a"]),
            (false, (0o644, "root"), (0o644, "ada"), &["chown --no-dereference -- ada:root /a"]),
            (
                false,
                (0o4755, "root"),
                (0o755, "ada"),
                &["chown --no-dereference -- ada:root /a", "chmod -- 0755 /a"],
            ),
            (
                false,
                (0o4755, "root"),
                (0o4755, "ada"),
                &["chown --no-dereference -- ada:root /a", "chmod -- 4755 /a"],
            ),
            (true, (0o2775, "root"), (0o2775, "ada"), &["chown --no-dereference -- ada:root /a"]),
            (true, (0o2775, "root"), (0o2755, "root"), &["chmod -- 2755 /a"]),
            (true, (0o2775, "root"), (0o1750, "root"), &["chmod -- u=rwx,g=rx,o=,ug-s,o+t /a"]),
        ] {
            let (from, to) = (attributes(is_directory, from.0, from.1), attributes(is_directory, to.0, to.1));
            let found: Vec<String> = commands("/a", &from, &to).iter().map(|argv| argv.join(" ")).collect();
            assert_eq!(found, expected, "{from:?} {to:?}");
        }
    }
}
