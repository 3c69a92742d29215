//! The contents of files that a plan gives to others, by a new owner or group, or by rights to read. Whoever says yes says it to
//! what is in them then.

use std::collections::BTreeMap;
use std::sync::Arc;

use host_base::Privilege;
use host_capability::Grants;
use host_policy::command_words;
use host_target::{FileKind, Found, PathCheck, ReadRequest, Target};

use super::path_rights::PathRights;
use super::plan::Action;
use super::prepare::{PreparedAction, PreparedPlan};

/// The number of bytes of each file that are compared.
const BEGINNING: u64 = 1 << 20;

/// A file that others get.
#[derive(Debug)]
struct GivenFile {
    size: u64,
    modified_unix: i64,
    /// The first bytes. None where they can't be read with the rights of the step.
    beginning: Option<Vec<u8>>,
}

impl GivenFile {
    /// Whether this is what the other one was. A log may have grown.
    fn continues(&self, former: &Self) -> bool {
        match (&self.beginning, &former.beginning) {
            (Some(now), Some(former)) => now.starts_with(former),
            (None, None) => (self.size, self.modified_unix) == (former.size, former.modified_unix),
            _ => false,
        }
    }
}

/// The files that a plan gives to others, by their paths.
#[derive(Debug, Default)]
pub struct GivenFiles(BTreeMap<String, GivenFile>);

impl GivenFiles {
    /// Reads the files of this plan.
    pub async fn of(plan: &PreparedPlan, target: &Target, grants: &Grants) -> Self {
        let mut files = Self::default();
        for (step, prepared) in plan.change.steps.iter().zip(&plan.steps) {
            match (&step.action, &prepared.action) {
                (Action::SetAttributes(attributes), PreparedAction::File(site, _)) => {
                    let rights = PathRights::of_attributes(&site.path, attributes);
                    let found = site.found.as_ref();
                    files.add(&rights, (&site.path, found), &attributes.at.privilege, (target, grants)).await;
                }
                (_, PreparedAction::Run(command)) => {
                    for command in command.all() {
                        let argv = command_words(&command.command);
                        let Some(rights) = PathRights::of_command(&argv) else { continue };
                        for at in rights.paths.iter().filter_map(|path| command.found_at(path)) {
                            files.add(&rights, at, &command.command.privilege, (target, grants)).await;
                        }
                    }
                }
                _ => {}
            }
        }
        files
    }

    async fn add(
        &mut self,
        rights: &PathRights<'_>,
        (path, found): (&str, Option<&Found>),
        privilege: &Privilege,
        (target, grants): (&Target, &Grants),
    ) {
        let Some(Found { kind: FileKind::File, metadata }) = found else { return };
        let gives =
            rights.owner.is_some() || rights.group.is_some() || rights.opens(metadata.mode) & 0o044 != 0;
        if !gives || self.0.contains_key(path) {
            return;
        }
        let only = path.to_owned();
        let check: Arc<PathCheck> = Arc::new(move |asked, real| match asked == only && real == only {
            true => Ok(()),
            false => Err(super::file_problems::changed(&only)),
        });
        let request = ReadRequest { path: path.to_owned(), offset: 0, max_bytes: BEGINNING };
        let read = target.read_all(vec![request], &grants.access(privilege), check).await.pop();
        let (size, modified_unix) = (metadata.size, metadata.modified_unix);
        let beginning = read.and_then(Result::ok);
        self.0.insert(path.to_owned(), GivenFile { size, modified_unix, beginning });
    }

    /// The first file with other contents than before.
    pub fn changed_since(&self, former: &Self) -> Option<&str> {
        let mut files = self.0.iter();
        let changed =
            files.find(|(path, now)| former.0.get(*path).is_none_or(|former| !now.continues(former)));
        changed.map(|(path, _)| path.as_str())
    }
}
