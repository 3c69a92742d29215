//! The contents of a step's file: before the plan, and now. A symbolic link isn't followed: what it holds is its target.

use std::sync::Arc;

use super::super::file_problems::{changed, failed, no_answer};
use super::{Site, TIMEOUT};
use host_base::Command;
use host_base::problem::{Category, Problem};
use host_base::sha256;
use host_target::{FileKind, PathCheck, ReadRequest, Target};

/// The size in bytes of the largest file that a plan replaces or removes. The host reads the file to show it, and to
/// see whether somebody has changed it. Of a larger file that is only moved, this much is read.
pub(super) const LARGEST: usize = 8 << 20;
/// The number of bytes that one read returns, as in [`host_target`].
pub(super) const PIECE: u64 = 1 << 20;
impl Site {
    /// The contents of the file at the place, or the target of the symbolic link there.
    pub(super) async fn read(&self, target: &Target, is_link: bool) -> Result<Vec<u8>, Problem> {
        let contents = self.beginning(target, is_link).await?;
        if contents.len() > LARGEST {
            let message =
                format!("{} is larger than {LARGEST} bytes, the most that a plan changes", self.path);
            return Err(Problem::new("FILE_TOO_LARGE", Category::Resource, message));
        }
        Ok(contents)
    }

    /// The same, up to a little more than the largest size.
    pub(super) async fn beginning(&self, target: &Target, is_link: bool) -> Result<Vec<u8>, Problem> {
        if is_link {
            return self.read_link(target).await;
        }
        let mut contents = Vec::new();
        let check = self.only_here();
        loop {
            let offset = contents.len() as i64;
            let request = ReadRequest { path: self.path.clone(), offset, max_bytes: PIECE };
            let piece = target.read_all(vec![request], &self.access, check.clone()).await.pop();
            let piece = piece.unwrap_or_else(|| Err(no_answer()))?;
            contents.extend_from_slice(&piece);
            if (piece.len() as u64) < PIECE || contents.len() > LARGEST {
                return Ok(contents);
            }
        }
    }

    async fn read_link(&self, target: &Target) -> Result<Vec<u8>, Problem> {
        let args = ["--zero", "--", &self.path].map(str::to_owned);
        self.may_run("readlink", &args, false)?;
        let privilege = self.access.privilege.clone();
        let command = Command { privilege, ..Command::new("readlink", args, TIMEOUT) };
        let output = target.run_all(&[command]).await.pop().unwrap_or_else(|| Err(no_answer()))?;
        match output.stdout.strip_suffix(b"\0") {
            Some(leads_to) if output.exit_code == 0 => Ok(leads_to.to_vec()),
            _ => Err(failed("readlink", &self.path, &output)),
        }
    }

    /// Allows the place itself, and nothing that a link put there leads to.
    pub(super) fn only_here(&self) -> Arc<PathCheck> {
        let only = self.path.clone();
        Arc::new(move |asked, real| match asked == only && real == only {
            true => Ok(()),
            false => Err(changed(&only)),
        })
    }

    /// The SHA-256 of the contents before the plan, where they were read whole.
    pub fn sha256(&self) -> Option<String> {
        self.before.as_deref().filter(|before| before.len() <= LARGEST).map(sha256::of)
    }

    /// The SHA-256 of what the file or link at the place holds now. None where nothing is there.
    pub async fn now(&self, target: &Target) -> Result<Option<String>, Problem> {
        let located = target.locate(vec![self.path.clone()], &self.access).await.pop();
        match located.unwrap_or_else(|| Err(no_answer()))?.found {
            None => Ok(None),
            Some(found) => {
                let contents = self.read(target, found.kind == FileKind::Symlink).await?;
                Ok(Some(sha256::of(&contents)))
            }
        }
    }
}
