//! Pins a component: the first version of a module, or an update.

use std::path::PathBuf;

use clap::Args;

use super::prompt::Prompt;
use super::questions::{self, say};
use super::scope;
use super::view::{ModuleView, heading, holds, line, refusals};
use crate::cli::text::{risk_name, wrap};
use host_capability::{Requests, by_concern};
use host_components::{Conflict, Examined, InstallError, ModuleInstaller, Origin};
use host_policy::Policy;
use host_text::visible::visible;

#[derive(Args)]
pub(super) struct Pinning {
    /// The SHA-256 that the component must have
    #[arg(long, value_name = "HEX")]
    sha256: Option<String>,
    /// Accept every request without a question
    #[arg(long, requires = "sha256")]
    yes: bool,
    /// Take the place of tools of the host's own modules
    #[arg(long)]
    replace: bool,
}

#[derive(Args)]
pub(super) struct Add {
    /// The component
    file: PathBuf,
    #[command(flatten)]
    pinning: Pinning,
    /// Add it for every account of this machine, as root
    #[arg(long)]
    system: bool,
}

#[derive(Args)]
pub(super) struct Update {
    /// The module's name
    name: String,
    /// The component of its new version
    file: PathBuf,
    #[command(flatten)]
    pinning: Pinning,
}

/// A message about what was done, if there is one.
type Outcome = Result<Option<String>, InstallError>;

impl Add {
    pub(super) async fn run(
        self,
        workshop: &ModuleInstaller,
        prompt: &Prompt,
        policy: &Policy,
    ) -> anyhow::Result<Outcome> {
        Ok(self.add(workshop, prompt, policy).await)
    }

    async fn add(self, workshop: &ModuleInstaller, prompt: &Prompt, policy: &Policy) -> Outcome {
        let examined = workshop.examine(&self.file, false).await?;
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
            let advice = format!("use `linux-sysadmin modules update {name} {}`", self.file.display());
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

impl Update {
    pub(super) async fn run(
        self,
        workshop: &ModuleInstaller,
        prompt: &Prompt,
        policy: &Policy,
    ) -> anyhow::Result<Outcome> {
        Ok(self.update(workshop, prompt, policy).await)
    }

    async fn update(self, workshop: &ModuleInstaller, prompt: &Prompt, policy: &Policy) -> Outcome {
        if workshop.entry(&self.name)?.is_none() {
            return Err(InstallError::Unknown(self.name));
        }
        let examined = workshop.examine(&self.file, true).await?;
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
        if entry.sha256 == examined.sha256() && workshop.is_as_pinned(&self.name) {
            return Err(refused(examined, format!("these are the bytes that {} has already", self.name)));
        }
        let description = examined.description();
        let is_still_there = |tool: &&String| description.tools.iter().any(|new| new.name == **tool);
        let mut replaces: Vec<String> = entry.replaces.iter().filter(is_still_there).cloned().collect();
        replaces.extend(self.pinning.check_update(examined, &replaces)?);
        say(&format!("{} {} -> {}", self.name, entry.version, description.version))?;
        say(&format!("  sha256   {}\n        -> {}", entry.sha256, examined.sha256()))?;
        say(&wrap(&visible(&examined.path().display().to_string()), "  file     ", "           "))?;
        if !entry.enabled {
            say(&format!("  It is disabled and stays so; `linux-sysadmin modules enable {}`", self.name))?;
        }
        say(&differences(workshop, examined, &entry.grants))?;
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

impl Pinning {
    /// Checks whether the component may be added, and gives the host's tools that it replaces.
    fn check(&self, examined: &Examined) -> Result<Vec<String>, InstallError> {
        self.check_update(examined, &[])
    }

    fn check_update(&self, examined: &Examined, replaced: &[String]) -> Result<Vec<String>, InstallError> {
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
    fn accept(
        &self,
        examined: &Examined,
        prompt: &Prompt,
        asked: &Requests,
        accepted_before: &Requests,
    ) -> Result<Option<Requests>, InstallError> {
        let wants_more = asked.any_program.iter().any(|any| !accepted_before.any_program.contains(any));
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

/// Lists what the new version requests and has beyond the old one, the gravest first, and then what it no longer has.
fn differences(workshop: &ModuleInstaller, examined: &Examined, granted: &Requests) -> String {
    let new = &examined.description();
    let mut text = String::new();
    let mut section = |heading: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text.push_str(&format!("\n{heading}\n{}", lines.concat()));
        }
    };
    let asked = by_concern(&new.requests).into_iter().enumerate();
    let wider = asked.filter(|(_, (_, request))| !holds(granted, request));
    let wider = wider.map(|(number, (concern, request))| {
        format!("{}\n{}", wrap(heading(concern), "  ", "    "), line(number + 1, concern, &request, false))
    });
    section("WIDER: it asks for what was not granted before", wider.collect());
    let old = workshop.registry.modules().iter().find(|module| module.description.name == new.name);
    let old_tools = old.map(|module| module.description.tools.as_slice()).unwrap_or_default();
    let tools = new.tools.iter().filter_map(|tool| {
        let before = old_tools.iter().find(|before| before.name == tool.name);
        match before {
            None => Some(format!("  new       {} ({})\n", tool.name, risk_name(tool.risk))),
            Some(before) if before.risk != tool.risk => Some(format!(
                "  risk      {}: {} -> {}\n",
                tool.name,
                risk_name(before.risk),
                risk_name(tool.risk)
            )),
            Some(before) if before.input_schema != tool.input_schema || before.shape != tool.shape => {
                Some(format!("  changed   {}: other arguments or another answer\n", tool.name))
            }
            Some(before) if before.aliases != tool.aliases => {
                Some(format!("  aliases   {}: other older names are understood\n", tool.name))
            }
            Some(_) => None,
        }
    });
    let gone = old_tools.iter().filter(|before| !new.tools.iter().any(|tool| tool.name == before.name));
    let gone = gone.map(|before| format!("  gone      {}\n", before.name));
    section("Tools", tools.chain(gone).collect());
    let narrower = by_concern(granted).into_iter().filter(|(_, request)| !holds(&new.requests, request));
    let narrower =
        narrower.enumerate().map(|(at, (concern, request))| line(at + 1, concern, &request, false));
    section("No longer asked for", narrower.collect());
    match text.is_empty() {
        true => "\nIt asks for nothing new, and its tools are the same.".to_owned(),
        false => text.trim_end().to_owned(),
    }
}

fn refused(examined: &Examined, reason: String) -> InstallError {
    InstallError::Refused { path: examined.path().to_owned(), reason }
}

fn done(verb: &str, examined: &Examined) -> String {
    let description = examined.description();
    format!("{verb} {} {}", description.name, description.version)
}

/// Says whether the module is used now. Not every pinned module is.
async fn finished(workshop: &ModuleInstaller, examined: &Examined, done: Outcome) -> Outcome {
    let Ok(Some(done)) = done else {
        workshop.forget(examined);
        return done;
    };
    Ok(Some(match workshop.unused(&examined.description().name).await {
        None => format!("{done}; a running server has its tools within a second"),
        Some(why) => wrap(&visible(&format!("{done}; NOT USED: {why}")), "", "  "),
    }))
}
