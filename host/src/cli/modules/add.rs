//! Pins a component. The first version of a module is added here; `update.rs` has the next ones.

use std::path::{Path, PathBuf};

use clap::Args;

use super::fetch::{Component, source_of};
use super::prompt::Prompt;
use super::questions::{self, say};
use super::scope;
use super::view::{ModuleView, holds};
use crate::cli::text::wrap;
use host_capability::{Request, Requests};
use host_components::{Conflict, Examined, InstallError, ModuleInstaller, Origin};
use host_policy::Policy;
use host_text::visible::visible;

#[derive(Args, Default)]
pub(super) struct Pinning {
    /// The SHA-256 that the component must have; an address on the web needs it
    #[arg(long, value_name = "HEX")]
    pub(super) sha256: Option<String>,
    /// Accept every request without a question
    #[arg(long, requires = "sha256")]
    yes: bool,
    /// Take the place of tools of the host's own modules
    #[arg(long)]
    replace: bool,
}

#[derive(Args)]
pub(super) struct Add {
    /// The component: a file, `oci://REGISTRY/NAME:TAG@sha256:HEX`, or `https://SERVER/PATH`
    #[arg(value_name = "FILE|ADDRESS")]
    source: PathBuf,
    #[command(flatten)]
    pinning: Pinning,
    /// Add it for every account of this machine, as root
    #[arg(long)]
    system: bool,
}

/// A message about what was done, if there is one.
pub(super) type Outcome = Result<Option<String>, InstallError>;

impl Add {
    /// Adds this component for the account itself, with every question.
    pub(super) fn of(file: &Path) -> Self {
        Self { source: file.to_owned(), pinning: Pinning::default(), system: false }
    }

    pub(super) async fn add(self, workshop: &ModuleInstaller, prompt: &Prompt, policy: &Policy) -> Outcome {
        let component = Component::fetch(&source_of(&self.source)?, self.pinning.sha256.as_deref())?;
        let examined = component.examine(workshop, false).await?;
        let added = self.decide(workshop, (prompt, policy), &examined);
        finished(workshop, &examined, added).await
    }

    fn decide(
        &self,
        workshop: &ModuleInstaller,
        (prompt, policy): (&Prompt, &Policy),
        examined: &Examined,
    ) -> Outcome {
        let name = &examined.description().name;
        let installed = workshop.entry(name)?;
        if installed.is_some_and(|(origin, _)| origin == scope(self.system)) {
            let from = source_of(&self.source)?;
            let advice = format!("use `linux-sysadmin modules update {name} {from}`");
            return Err(refused(examined, format!("a module named {name} is installed; {advice}")));
        }
        let replaces = self.pinning.check(examined)?;
        say(&ModuleView::of_file(examined).held_against(policy).to_string())?;
        let asked = &examined.description().requests;
        let Some(accepted) = self.pinning.accept(examined, prompt, asked, &Requests::default())? else {
            return Err(refused(examined, "you said no; nothing was changed".to_owned()));
        };
        workshop.install(scope(self.system), examined, None, accepted, replaces)?;
        Ok(Some(done("added", examined)))
    }
}

impl Pinning {
    /// Checks whether the component may be added, and gives the host's tools that it replaces.
    fn check(&self, examined: &Examined) -> Result<Vec<String>, InstallError> {
        self.check_update(examined, &[])
    }

    pub(super) fn check_update(
        &self,
        examined: &Examined,
        replaced: &[String],
    ) -> Result<Vec<String>, InstallError> {
        if let Some(expected) = &self.sha256
            && !expected.eq_ignore_ascii_case(examined.sha256())
        {
            let found = examined.sha256();
            return Err(refused(examined, format!("its SHA-256 is {found}, and you expect {expected}")));
        }
        let mut replaces = Vec::new();
        for conflict in &examined.conflicts {
            match conflict {
                Conflict::Shadows { origin: Origin::Host, tool, .. } if replaced.contains(tool) => {}
                Conflict::Shadows { origin: Origin::Host, tool, .. } if self.replace => {
                    replaces.push(tool.clone());
                }
                Conflict::Shadows { origin: Origin::Host, .. } => {
                    let advice = "`--replace` has this module's tool take the place of that one";
                    return Err(refused(examined, format!("{conflict}; {advice}")));
                }
                conflict => return Err(refused(examined, conflict.to_string())),
            }
        }
        if !self.yes && !Prompt::default().is_possible() {
            let advice = format!("--yes --sha256 {}", examined.sha256());
            return Err(refused(
                examined,
                format!("there is no terminal to ask at; once you have read what it asks for: {advice}"),
            ));
        }
        Ok(replaces)
    }

    /// Asks the operator for the requests, and gives those that are accepted; `None` where the operator declines the module.
    pub(super) fn accept(
        &self,
        examined: &Examined,
        prompt: &Prompt,
        asked: &Requests,
        accepted_before: &Requests,
    ) -> Result<Option<Requests>, InstallError> {
        let is_more = |any| !holds(accepted_before, &Request::AnyProgram(any));
        let wants_more = asked.any_program.iter().any(is_more);
        if self.yes && wants_more {
            let reason = "it asks for any program, which is full control of the account: `--yes` doesn't grant that; \
                          add it at a terminal, where its name is typed";
            return Err(refused(examined, reason.to_owned()));
        }
        if self.yes {
            return Ok(Some(asked.clone()));
        }
        questions::ask(examined.description(), prompt, asked, accepted_before)
    }
}

pub(super) fn refused(examined: &Examined, reason: String) -> InstallError {
    InstallError::Refused { path: examined.shown_source().into(), reason }
}

pub(super) fn done(verb: &str, examined: &Examined) -> String {
    let description = examined.description();
    format!("{verb} {} {}", description.name, description.version)
}

/// Says whether the module is used now. Not every pinned module is.
pub(super) async fn finished(workshop: &ModuleInstaller, examined: &Examined, done: Outcome) -> Outcome {
    let Ok(Some(done)) = done else {
        workshop.forget(examined);
        return done;
    };
    Ok(Some(match workshop.unused(&examined.description().name).await {
        None => format!("{done}; a running server has its tools within a second"),
        Some(why) => wrap(&visible(&format!("{done}; NOT USED: {why}")), "", "  "),
    }))
}
