//! Steps that write or remove a file.

use super::super::file_problems::said;
use super::super::plan::Write;
use super::{Site, octal, run_one, split};
use host_base::Command;
use host_base::problem::{Category, Problem};
use host_target::Target;

/// The mode of a new file where the plan names none.
const NEW_MODE: u32 = 0o644;

impl Site {
    pub(super) async fn write(
        &self,
        target: &Target,
        write: &Write,
        validate: Option<&Command>,
        selinux: bool,
    ) -> Result<(), Problem> {
        let (staged, kept) = (self.staged(), self.kept());
        self.pass("before-staging")?;
        self.run(target, "mkdir", &["--mode=0700", "--", &self.staging], None).await?;
        self.pass("in-staging")?;
        if self.found.is_some() {
            // The new file gets mode, owner, access control list, extended attributes and security context before it
            // has contents.
            let like = ["--attributes-only", "--preserve=all", "--no-dereference", "--", &self.path, &staged];
            self.run(target, "cp", &like, None).await?;
        }
        let to = format!("of={staged}");
        let contents = ["oflag=nofollow", "conv=fsync", "bs=65536", "status=none"];
        let args: Vec<&str> = std::iter::once(to.as_str()).chain(contents).collect();
        self.run(target, "dd", &args, Some(write.contents.clone())).await?;
        if let Some(owner) = self.owner(&write.owner, &write.group)? {
            self.run(target, "chown", &["--no-dereference", "--", &owner, &staged], None).await?;
        }
        let mode = write.mode.or(if self.found.is_some() { None } else { Some(NEW_MODE) });
        if let Some(mode) = mode {
            self.run(target, "chmod", &["--", &octal(mode), &staged], None).await?;
        }
        if let Some(validate) = validate {
            self.validate(target, validate, &staged).await?;
            // The validation may have taken long.
            self.unchanged(target, false).await?;
        }
        self.pass("after-staging")?;
        if self.found.is_some() {
            self.run(target, "ln", &["--no-target-directory", "--", &self.path, &kept], None).await?;
            self.pass("after-link")?;
        }
        self.run(target, "mv", &["--no-target-directory", "--", &staged, &self.path], None).await?;
        self.pass("after-rename")?;
        if selinux && self.found.is_none() {
            // SELinux labels a file by its final path.
            self.run(target, "restorecon", &["--", &self.path], None).await?;
        }
        Ok(())
    }

    pub(super) async fn remove(&self, target: &Target) -> Result<(), Problem> {
        self.pass("before-staging")?;
        self.run(target, "mkdir", &["--mode=0700", "--", &self.staging], None).await?;
        self.pass("in-staging")?;
        self.run(target, "mv", &["--no-target-directory", "--", &self.path, &self.kept()], None).await?;
        self.pass("after-rename")
    }

    /// The argument `user:group` for chown where the plan names either. The other one stays as it is.
    pub(super) fn owner(
        &self,
        owner: &Option<String>,
        group: &Option<String>,
    ) -> Result<Option<String>, Problem> {
        let known = self.found.as_ref().map(|found| &found.metadata);
        match (owner, group, known) {
            (None, None, _) => Ok(None),
            (Some(owner), Some(group), _) => Ok(Some(format!("{owner}:{group}"))),
            (Some(owner), None, Some(known)) => Ok(Some(format!("{owner}:{}", known.group))),
            (None, Some(group), Some(known)) => Ok(Some(format!("{}:{group}", known.owner))),
            _ => {
                let message =
                    format!("{} is new: expected its owner along with its group, or neither", self.path);
                Err(Problem::new("INVALID_PLAN", Category::Internal, message))
            }
        }
    }

    async fn validate(&self, target: &Target, validate: &Command, staged: &str) -> Result<(), Problem> {
        let mut command = validate.clone();
        for arg in &mut command.args {
            if arg == "{}" {
                *arg = staged.to_owned();
            } else if let Some(option) = arg.strip_suffix("={}") {
                *arg = format!("{option}={staged}");
            }
        }
        let output = run_one(target, &command).await?;
        if output.exit_code == 0 {
            return Ok(());
        }
        let said = said(&output).replace(&format!("{}/", self.staging), &format!("{}/", split(&self.path).0));
        let message = format!(
            "{} says that {} isn't valid, so it was not written: {said}",
            validate.program, self.path
        );
        Err(Problem::new("VALIDATION_FAILED", Category::Validation, message))
    }
}
