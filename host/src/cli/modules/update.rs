//! Pins the next version of a module: the one that the operator names, or the one that its tag on a registry stands for now.

use std::path::{Path, PathBuf};

use clap::Args;

use super::add::{Outcome, Pinning, done, finished, refused};
use super::changes::{differences, version_notice};
use super::fetch::{Component, client, elsewhere, source_of};
use super::prompt::Prompt;
use super::questions::say;
use super::view::refusals;
use crate::cli::text::wrap;
use host_components::{Examined, InstallError, ModuleInstaller, Origin};
use host_distribution::{Reference, RegistryClient, Resolved, Source};
use host_policy::Policy;
use host_text::visible::visible;

#[derive(Args)]
pub(super) struct Update {
    /// The module's name
    name: String,
    /// The component of its new version, as for `add` [default: the tag that it was added by]
    #[arg(value_name = "FILE|ADDRESS")]
    source: Option<PathBuf>,
    #[command(flatten)]
    pinning: Pinning,
}

/// What the tag of a module's reference stands for now.
struct Latest {
    client: RegistryClient,
    resolved: Resolved,
    /// The reference that was pinned.
    pinned: Reference,
}

impl Update {
    /// Updates the module to this component, with every question.
    pub(super) fn of(name: &str, file: &Path) -> Self {
        Self { name: name.to_owned(), source: Some(file.to_owned()), pinning: Pinning::default() }
    }

    pub(super) async fn update(
        self,
        workshop: &ModuleInstaller,
        prompt: &Prompt,
        policy: &Policy,
    ) -> Outcome {
        let Some((_, entry)) = workshop.entry(&self.name)? else {
            return Err(InstallError::Unknown(self.name));
        };
        let component = match &self.source {
            Some(written) => Component::fetch(&source_of(written)?, self.pinning.sha256.as_deref())?,
            None => {
                let latest = Latest::of(&self.name, &entry.source)?;
                if latest.is_pinned() && workshop.is_as_pinned(&self.name) {
                    let reference = &latest.resolved.reference;
                    return Ok(Some(format!("{} {} is up to date: {reference}", self.name, entry.version)));
                }
                Component::pull(&latest.client, &latest.resolved)?
            }
        };
        let examined = component.examine(workshop, true).await?;
        let updated = self.decide(workshop, (prompt, policy), &examined);
        finished(workshop, &examined, updated).await
    }

    fn decide(
        &self,
        workshop: &ModuleInstaller,
        (prompt, policy): (&Prompt, &Policy),
        examined: &Examined,
    ) -> Outcome {
        let theirs = &examined.description().name;
        if *theirs != self.name {
            let reason = format!("it says that its name is {theirs}; {} stays as it is", self.name);
            return Err(refused(examined, reason));
        }
        let Some((origin, entry)) = workshop.entry(&self.name)? else {
            return Err(InstallError::Unknown(self.name.clone()));
        };
        if origin == Origin::System && !rustix::process::geteuid().is_root() {
            return Err(InstallError::Roots(self.name.clone()));
        }
        let is_same = entry.sha256 == examined.sha256();
        if is_same && workshop.is_as_pinned(&self.name) {
            return Err(refused(examined, format!("these are the bytes that {} has already", self.name)));
        }
        let description = examined.description();
        let is_still_there = |tool: &&String| description.tools.iter().any(|new| new.name == **tool);
        let mut replaces: Vec<String> = entry.replaces.iter().filter(is_still_there).cloned().collect();
        replaces.extend(self.pinning.check_update(examined, &replaces)?);
        if let Some(notice) = version_notice(&entry.version, &description.version).filter(|_| !is_same) {
            say(&wrap(&notice, "", "  "))?;
        }
        say(&format!("{} {} -> {}", self.name, entry.version, description.version))?;
        say(&format!("  sha256   {}\n        -> {}", entry.sha256, examined.sha256()))?;
        say(&wrap(&visible(&entry.source), "  source   ", "           "))?;
        say(&wrap(&visible(&examined.shown_source()), "        -> ", "           "))?;
        if !entry.enabled {
            say(&format!("  It is disabled and stays so; `linux-sysadmin modules enable {}`", self.name))?;
        }
        let old = workshop.registry.modules().iter().find(|module| module.description.name == self.name);
        let old_tools = old.map(|module| module.description.tools.as_slice()).unwrap_or_default();
        say(&differences(old_tools, &entry.grants, description))?;
        let refusals = refusals(policy, &description.requests);
        if !refusals.is_empty() {
            say(refusals.trim_end())?;
        }
        if !replaces.is_empty() {
            say(&format!("\nTakes the place of the host's own: {}", replaces.join(", ")))?;
        }
        // A request that was declined before is asked about again: it may have been declined for the old version only.
        let Some(accepted) = self.pinning.accept(examined, prompt, &description.requests, &entry.grants)?
        else {
            return Err(refused(examined, format!("you said no; {} stays as it is", self.name)));
        };
        workshop.install(origin, examined, Some(&entry), accepted, replaces)?;
        Ok(Some(done("updated", examined)))
    }
}

impl Latest {
    /// Asks the registry that a module was added from.
    fn of(name: &str, added_from: &str) -> Result<Self, InstallError> {
        let refused = |reason: &str| InstallError::Elsewhere {
            address: added_from.to_owned(),
            reason: format!("{reason}; name what {name} is to be updated to"),
        };
        let Source::Registry(pinned) = source_of(Path::new(added_from))? else {
            return Err(refused("only a tag on a registry says which version is the next one"));
        };
        let Some(latest) = pinned.latest() else {
            return Err(refused("a digest never means anything else, and it has no tag"));
        };
        let client = client();
        let resolved = tokio::task::block_in_place(|| client.resolve(&latest));
        let resolved = resolved.map_err(|error| elsewhere(&Source::Registry(latest), &error))?;
        Ok(Self { client, resolved, pinned })
    }

    fn is_pinned(&self) -> bool {
        self.resolved.reference == self.pinned
    }
}
