//! Pins a component. The first version of a module is added here; `update.rs` has the next ones.

use std::path::PathBuf;

use clap::Args;

use super::fetch::{Component, source_of};
use super::prompt::Prompt;
use super::scope;
use super::view::{ModuleView, heading, holds, line};
use crate::cli::text::wrap;
use host_base::Privilege;
use host_capability::{Concern, Request, Requests, by_concern};
use host_components::{Conflict, Examined, InstallError, ModuleInstaller, Origin};
use host_text::visible::visible;

#[derive(Args)]
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
    pub(super) async fn run(self, workshop: &ModuleInstaller, prompt: &Prompt) -> anyhow::Result<Outcome> {
        Ok(self.add(workshop, prompt).await)
    }

    async fn add(self, workshop: &ModuleInstaller, prompt: &Prompt) -> Outcome {
        let component = Component::fetch(&source_of(&self.source)?, self.pinning.sha256.as_deref())?;
        let examined = component.examine(workshop, false).await?;
        let added = self.decide(workshop, prompt, &examined);
        finished(workshop, &examined, added).await
    }

    fn decide(&self, workshop: &ModuleInstaller, prompt: &Prompt, examined: &Examined) -> Outcome {
        let name = &examined.description().name;
        let installed = workshop.entry(name)?;
        if installed.is_some_and(|(origin, _)| origin == scope(self.system)) {
            let from = source_of(&self.source)?;
            let advice = format!("use `linux-sysadmin modules update {name} {from}`");
            return Err(refused(examined, format!("a module named {name} is installed; {advice}")));
        }
        let replaces = self.pinning.check(examined)?;
        say(&ModuleView::of_file(examined).to_string())?;
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
    /// Requests that nobody has reviewed are asked about one by one.
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
        let mut accepted = Requests::default();
        let mut declined = 0;
        for (number, (concern, request)) in by_concern(asked).into_iter().enumerate() {
            let grave = match (concern, &request) {
                (Concern::Reviewed(_), _) => false,
                // With its own account's rights the server shows only what that account can see.
                (Concern::Files, Request::Path(files)) => files.privilege != Privilege::Caller,
                _ => true,
            };
            if grave && !holds(accepted_before, &request) {
                let heading = wrap(heading(concern), "", "  ");
                say(&format!("\n{heading}\n{}", line(number + 1, concern, &request, false).trim_end()))?;
                let name = &examined.description().name;
                let is_granted = match request {
                    Request::AnyProgram(_) => {
                        prompt.name("     To grant this, type the module's name: ", name)?
                    }
                    _ => prompt.yes("     Grant this?")?,
                };
                if !is_granted {
                    declined += 1;
                    continue;
                }
            }
            match request {
                Request::Command(request) => accepted.commands.push(request.clone()),
                Request::Path(request) => accepted.paths.push(request.clone()),
                Request::AnyProgram(request) => accepted.any_program.push(request.clone()),
                Request::Signals(request) => accepted.signals.push(request.clone()),
                Request::OwnProgram(request) => accepted.own_programs.push(request.clone()),
                Request::Tool(request) => accepted.tools.push(request.clone()),
            }
        }
        let granted = accepted.commands.len()
            + accepted.paths.len()
            + accepted.any_program.len()
            + accepted.signals.len()
            + accepted.own_programs.len()
            + accepted.tools.len();
        let name = &examined.description().name;
        let without = if declined > 0 { format!(" and without {declined}") } else { String::new() };
        let question = format!("\nPin {name} with {granted} of its requests{without}?");
        Ok(prompt.yes(&question)?.then_some(accepted))
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

pub(super) fn say(text: &str) -> Result<(), InstallError> {
    use std::io::Write;
    writeln!(std::io::stdout().lock(), "{text}").map_err(|error| InstallError::NotAsked(error.to_string()))
}
